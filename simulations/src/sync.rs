//! Locks of a simulation, which runs in one thread.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex; only injected panics poison it, and they leave the value valid.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
