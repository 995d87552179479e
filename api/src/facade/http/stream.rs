//! Streaming responses.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::Stream;

use crate::facade::limits::StreamPermit;

/// Makes a stream `Sync`, as warp requires. It is only polled through `&mut`, so the mutex is never locked.
pub(crate) struct Shared<S> {
    events: std::sync::Mutex<Pin<Box<S>>>,
    _permit: Option<StreamPermit>,
}

impl<S> Shared<S> {
    /// Wraps a stream, which holds its permit until it is dropped.
    pub(crate) fn new(stream: S, permit: Option<StreamPermit>) -> Self {
        Self { events: std::sync::Mutex::new(Box::pin(stream)), _permit: permit }
    }
}

impl<S: Stream> Stream for Shared<S> {
    type Item = S::Item;
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        self.events.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner).as_mut().poll_next(cx)
    }
}
