//! Streaming responses.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use futures_util::{Stream, StreamExt, stream};
use proto::{ApiError, Reason};
use tokio::time::{Instant, sleep};
use tonic::{Code, Response, Status, Streaming};

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

/// How long a watch tries to continue after its engine was lost. Then it ends, and its client reconnects.
const RESUME_TIMEOUT: Duration = Duration::from_secs(20);
/// The shortest delay before a watch continues.
const RESUME_DELAY: Duration = Duration::from_millis(50);
/// The watches of a lost engine continue within this time of each other, so that they do not arrive all at once.
const RESUME_SPREAD_MS: u64 = 500;

/// Returns the messages of a watch, which continues at another engine or after a restart if its engine is lost. `advance`
/// updates the position by a message, and `open` opens the watch after a position.
pub(crate) fn resumed<T, P, F>(
    first: Streaming<T>,
    start: P,
    advance: impl Fn(&T, &mut P) + Send,
    open: impl Fn(P) -> F + Send + Sync,
) -> impl Stream<Item = T> + Send
where
    T: Send + 'static,
    P: Clone + Send + Sync,
    F: Future<Output = Result<Response<Streaming<T>>, Status>> + Send,
{
    let state = (first, start, advance, Arc::new(open));
    stream::unfold(state, |(mut messages, mut position, advance, open)| async move {
        loop {
            match messages.next().await? {
                Ok(message) => {
                    advance(&message, &mut position);
                    return Some((message, (messages, position, advance, open)));
                }
                Err(status) => messages = reopen(&*open, &position, status).await?,
            }
        }
    })
}

/// Opens a watch again after it ended with `status`; `None` if that cannot help or did not succeed in time.
async fn reopen<T, P: Clone, F>(open: &impl Fn(P) -> F, position: &P, mut status: Status) -> Option<Streaming<T>>
where
    F: Future<Output = Result<Response<Streaming<T>>, Status>>,
{
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let spread = COUNT.fetch_add(1, Ordering::Relaxed).wrapping_mul(191) % RESUME_SPREAD_MS;
    let deadline = Instant::now() + RESUME_TIMEOUT;
    while is_temporary(&status) && Instant::now() < deadline {
        sleep(RESUME_DELAY + Duration::from_millis(spread)).await;
        match open(position.clone()).await {
            Ok(opened) => return Some(opened.into_inner()),
            Err(refused) => status = refused,
        }
    }
    None
}

/// Returns whether a watch that ended with this status may continue: its engine or its connection was lost.
fn is_temporary(status: &Status) -> bool {
    if status.details().is_empty() {
        // A status of the transport.
        return matches!(
            status.code(),
            Code::Unavailable | Code::Unknown | Code::Internal | Code::Cancelled | Code::DeadlineExceeded
        );
    }
    let reason = ApiError::from(status.clone()).reason;
    matches!(reason, Reason::EngineUnavailable | Reason::StoreUnavailable | Reason::Overloaded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_continues_after_a_lost_engine_and_ends_after_a_refusal() {
        for status in [
            Status::unknown("h2 protocol error: error reading a body from connection"),
            Status::unavailable("the engine does not respond"),
            ApiError::new(Reason::EngineUnavailable).into(),
            ApiError::new(Reason::StoreUnavailable).into(),
        ] {
            assert!(is_temporary(&status), "{status:?}");
        }
        for reason in [Reason::InvalidApiKey, Reason::NotFound, Reason::RateLimited, Reason::Internal] {
            assert!(!is_temporary(&ApiError::new(reason).into()), "{reason:?}");
        }
        assert!(!is_temporary(&Status::unimplemented("no such service")));
    }
}
