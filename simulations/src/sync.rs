//! Locks of a simulation, which runs in one thread.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex; a panic of a holder is planned, and leaves the value valid.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
