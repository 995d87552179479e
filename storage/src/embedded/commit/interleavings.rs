//! The commit path in many interleavings of its threads: callers, the writer, a checkpoint and a close.
//!
//! loom runs the same files with its own primitives, one thread at a time, and goes through the orders in which the threads can
//! use them. The writer is a model of the real one: rows are numbers, the disk is memory.

#[expect(dead_code, clippy::duplicate_mod, reason = "the same file with loom's primitives; the model fails at nothing")]
#[path = "checkpoints.rs"]
mod checkpoints;
#[expect(dead_code, clippy::duplicate_mod, reason = "the same file with loom's primitives; nobody asks for its length")]
#[path = "queue.rs"]
mod queue;

/// loom's primitives in the place of the standard library's.
mod sync {
    pub(super) use loom::{
        sync::{Condvar, Mutex, MutexGuard, mpsc},
        thread,
    };
    pub(super) use std::sync::{Arc, PoisonError};
}

mod model;
