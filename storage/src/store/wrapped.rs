//! Wrappers around a store, such as those of tests and simulations. A wrapper implements only what it changes.

use std::any::Any;

use crate::store::error::{Read, ReadError};

/// A read that is about to run.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The name of the method.
    pub name: &'static str,
    /// Its arguments, in order.
    pub arguments: &'a [&'a dyn Any],
}

impl Call<'_> {
    /// Returns the argument at an index from 0; none if it has another type.
    #[must_use]
    pub fn argument<T: 'static>(&self, place: usize) -> Option<&T> {
        self.arguments.get(place)?.downcast_ref()
    }
}

/// A store that forwards its reads to an inner store. It implements every topic that the inner store implements.
pub trait Wrapped: Send + Sync + 'static {
    /// The type of the inner store.
    type Inner: ?Sized;

    /// Returns the inner store.
    fn inner(&self) -> &Self::Inner;

    /// Runs before each read. An error replaces the read's result.
    ///
    /// # Errors
    /// The error that the read should return.
    fn before(&self, call: &Call<'_>) -> Result<(), ReadError> {
        let _ = call;
        Ok(())
    }

    /// Awaits a read of the inner store, with any work before and after it. Each call of `read` performs the read once.
    fn around<'a, T, R>(&'a self, name: &'static str, read: R) -> Read<'a, T>
    where
        T: Send + 'a,
        R: Fn() -> Read<'a, T> + Send + Sync + 'a,
    {
        let _ = name;
        read()
    }
}
