//! The commit path under many interleavings of its threads: callers, the writer, a checkpoint and a close.
//!
//! loom compiles the same files with its own synchronization primitives, runs one thread at a time, and explores the
//! orders in which threads can use the primitives. A model replaces the writer: rows are numbers, the disk is memory.

#[expect(dead_code, clippy::duplicate_mod, reason = "the same file with loom's primitives; the model never fails")]
#[path = "checkpoints.rs"]
mod checkpoints;
#[expect(dead_code, clippy::duplicate_mod, reason = "the same file with loom's primitives; its length is not read")]
#[path = "queue.rs"]
mod queue;

/// loom's primitives in place of those of the standard library.
mod sync {
    pub(super) use loom::{
        sync::{Condvar, Mutex, MutexGuard, mpsc},
        thread,
    };
    pub(super) use std::sync::{Arc, PoisonError};
}

mod model;
