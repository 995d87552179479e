//! The body of a paid response: records when it reached its end, or that it did not.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use super::{claim::Claim, state::Step};

/// The place of the claim of a response's payment; it stays empty if nothing is settled.
#[derive(Clone, Default)]
pub(super) struct Slot(Arc<Mutex<Option<Claim>>>);

impl Slot {
    /// Puts a claim that the end of the response concludes.
    pub(super) fn put(&self, claim: Claim) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(claim);
    }

    fn end(&self, step: Step, failure: Option<&str>) {
        let claim = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(claim) = claim {
            claim.step(step, failure);
        }
    }
}

/// The body.
pub(super) struct Delivery<B: Body> {
    inner: B,
    slot: Slot,
}

impl<B: Body> Delivery<B> {
    /// Returns a body whose end concludes a claim.
    pub(super) fn new(inner: B, claim: Claim) -> Self {
        let slot = Slot::default();
        slot.put(claim);
        Self { inner, slot }
    }

    /// Returns a body whose end concludes the claim in a slot, if there is one then.
    pub(super) const fn of_slot(inner: B, slot: Slot) -> Self {
        Self { inner, slot }
    }
}

impl<B> Body for Delivery<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx).map_err(Into::into);
        match &polled {
            Poll::Ready(None) => self.slot.end(Step::Serve, None),
            Poll::Ready(Some(Ok(_))) if self.inner.is_end_stream() => self.slot.end(Step::Serve, None),
            Poll::Ready(Some(Err(error))) => {
                let why = format!("the response was cut off: {error}");
                self.slot.end(Step::Fail, Some(&why));
            }
            Poll::Ready(Some(Ok(_))) | Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

impl<B: Body> Drop for Delivery<B> {
    fn drop(&mut self) {
        // An empty body is never polled.
        let step = if self.inner.is_end_stream() { Step::Serve } else { Step::Fail };
        self.slot.end(step, Some("the client disconnected").filter(|_| step == Step::Fail));
    }
}
