//! What the threads of the commit path synchronize with. `interleavings` has another module of this name, with loom's.

pub(super) use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc},
    thread,
};
