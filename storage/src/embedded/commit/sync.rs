//! The synchronization primitives of the commit path. `interleavings` replaces this module with loom's primitives.

pub(super) use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
};
