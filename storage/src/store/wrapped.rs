//! Stores in front of another store, such as those of tests and simulations: they state only what they change.

use std::any::Any;

use crate::store::error::{Read, ReadError};

/// A read that is about to be made.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The name of the method.
    pub name: &'static str,
    /// Its arguments, in order.
    pub arguments: &'a [&'a dyn Any],
}

impl Call<'_> {
    /// Returns an argument, counted from 0; none where it is of another type.
    #[must_use]
    pub fn argument<T: 'static>(&self, place: usize) -> Option<&T> {
        self.arguments.get(place)?.downcast_ref()
    }
}

/// A store that passes its reads on to another: it implements every topic that the other does.
pub trait Wrapped: Send + Sync + 'static {
    /// The other store.
    type Inner: ?Sized;

    /// Returns the other store.
    fn inner(&self) -> &Self::Inner;

    /// Called before each read; an error is returned in its place.
    ///
    /// # Errors
    /// Whatever the wrapper wants the read to fail with.
    fn before(&self, call: &Call<'_>) -> Result<(), ReadError> {
        let _ = call;
        Ok(())
    }

    /// Awaits the read of the other store, and whatever goes before and after it.
    fn around<'a, T: Send + 'a>(&'a self, name: &'static str, read: Read<'a, T>) -> Read<'a, T> {
        let _ = name;
        read
    }
}
