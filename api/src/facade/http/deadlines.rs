//! The deadlines of one connection: for a head to arrive, for a kept-alive connection to be used, for an answer to be
//! taken.

use std::{
    future::poll_fn,
    io::{self, IoSlice},
    pin::{Pin, pin},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use http_body_util::BodyExt;
use hyper::body::{Body, Frame, SizeHint};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    time::Instant,
};

/// How long each part of an exchange may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    pub(crate) head: Duration,
    pub(crate) idle: Duration,
    pub(crate) write: Duration,
}

/// A client that takes less than this is too slow: what it takes earns it so much more time.
const MIN_BYTES_PER_SECOND: u64 = 1_024;

/// What a connection waits for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overdue {
    /// The rest of a request's head.
    Head,
    /// Another request.
    Idle,
    /// The client, which does not take its answer.
    Write,
}

impl Overdue {
    /// Returns the word of metrics and logs.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Head => "head",
            Self::Idle => "idle",
            Self::Write => "write",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// A head arrives since then.
    Head(Instant),
    /// A request is handled. Its body has a timeout of its own.
    Busy,
    /// Nothing is asked since then.
    Idle(Instant),
}

/// What a connection is doing, shared by its socket, its service and its driver.
#[derive(Debug)]
pub(crate) struct Watch {
    timeouts: Timeouts,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// Since when the socket takes nothing.
    stalled: Option<Instant>,
    /// How long it may go on so.
    credit: Duration,
    /// Whether the rest of an answer is thrown away with the connection.
    is_reset: bool,
}

impl Watch {
    /// Begins with the connection's first head.
    pub(crate) fn new(timeouts: Timeouts) -> Arc<Self> {
        let phase = Phase::Head(Instant::now());
        let state = State { phase, stalled: None, credit: timeouts.write, is_reset: false };
        Arc::new(Self { timeouts, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a whole head has arrived.
    pub(crate) fn begin(&self) {
        self.state().phase = Phase::Busy;
    }

    fn end(&self) {
        self.state().phase = Phase::Idle(Instant::now());
    }

    fn read(&self) {
        let mut state = self.state();
        if let Phase::Idle(_) = state.phase {
            state.phase = Phase::Head(Instant::now());
        }
    }

    fn stall(&self) {
        self.state().stalled.get_or_insert_with(Instant::now);
    }

    fn wrote(&self, bytes: usize) {
        let mut state = self.state();
        if let Some(since) = state.stalled.take() {
            state.credit = state.credit.saturating_sub(since.elapsed());
        }
        if state.credit < self.timeouts.write {
            let earned = Duration::from_millis((bytes as u64).saturating_mul(1_000) / MIN_BYTES_PER_SECOND);
            state.credit = state.credit.saturating_add(earned).min(self.timeouts.write);
        }
    }

    /// Returns the next deadline, and of what it is.
    fn deadline(&self) -> Option<(Instant, Overdue)> {
        let state = self.state();
        let phase = match state.phase {
            Phase::Head(since) => Some((since + self.timeouts.head, Overdue::Head)),
            Phase::Idle(since) => Some((since + self.timeouts.idle, Overdue::Idle)),
            Phase::Busy => None,
        };
        let write = state.stalled.map(|since| (since + state.credit, Overdue::Write));
        phase.into_iter().chain(write).min_by_key(|(at, _)| *at)
    }
}

/// Drives a connection to its end, or until it is overdue.
pub(crate) async fn drive<F: Future>(connection: F, watch: &Watch) -> Result<F::Output, Overdue> {
    let mut connection = pin!(connection);
    let mut sleep = pin!(tokio::time::sleep(watch.timeouts.head));
    poll_fn(|cx| {
        if let Poll::Ready(end) = connection.as_mut().poll(cx) {
            return Poll::Ready(Ok(end));
        }
        // Only the connection's own work moves its deadline.
        let Some((at, what)) = watch.deadline() else { return Poll::Pending };
        if sleep.deadline() != at {
            sleep.as_mut().reset(at);
        }
        sleep.as_mut().poll(cx).map(|()| {
            watch.state().is_reset = what == Overdue::Write;
            Err(what)
        })
    })
    .await
}

/// A socket that tells its watch what it does.
pub(crate) struct Watched {
    stream: TcpStream,
    watch: Arc<Watch>,
}

impl Watched {
    pub(crate) const fn new(stream: TcpStream, watch: Arc<Watch>) -> Self {
        Self { stream, watch }
    }

    fn noted(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Pending => self.watch.stall(),
            Poll::Ready(Ok(bytes)) => self.watch.wrote(*bytes),
            Poll::Ready(Err(_)) => {}
        }
        written
    }
}

/// Who does not take an answer leaves nothing of it in the kernel either.
impl Drop for Watched {
    fn drop(&mut self) {
        if self.watch.state().is_reset {
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Watched {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.watch.read();
        }
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.noted(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.noted(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// An answer's body, whose end is the end of its exchange.
pub(crate) struct Tracked<B> {
    body: B,
    watch: Arc<Watch>,
}

impl<B> Tracked<B> {
    pub(crate) const fn new(body: B, watch: Arc<Watch>) -> Self {
        Self { body, watch }
    }
}

impl<B> Drop for Tracked<B> {
    fn drop(&mut self) {
        self.watch.end();
    }
}

impl<B: Body + Unpin> Body for Tracked<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        pin!(self.body.frame()).poll(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUTS: Timeouts =
        Timeouts { head: Duration::from_secs(1), idle: Duration::from_secs(5), write: Duration::from_secs(10) };

    fn due(watch: &Watch) -> Option<(u128, Overdue)> {
        watch.deadline().map(|(at, what)| (at.duration_since(Instant::now()).as_millis(), what))
    }

    #[tokio::test(start_paused = true)]
    async fn each_phase_has_a_deadline_of_its_own() {
        let watch = Watch::new(TIMEOUTS);
        tokio::time::advance(Duration::from_millis(400)).await;
        watch.read();
        assert_eq!(due(&watch), Some((600, Overdue::Head)), "more bytes do not move it");
        watch.begin();
        assert_eq!(due(&watch), None);
        watch.end();
        assert_eq!(due(&watch), Some((5_000, Overdue::Idle)));
        tokio::time::advance(Duration::from_secs(4)).await;
        watch.read();
        assert_eq!(due(&watch), Some((1_000, Overdue::Head)), "the next head begins with its first byte");
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_a_byte_now_and_then_runs_out_of_time_and_who_takes_enough_does_not() {
        let watch = Watch::new(TIMEOUTS);
        watch.begin();
        for second in 0..9 {
            watch.stall();
            assert_eq!(due(&watch).map(|(ms, _)| ms), Some(10_000 - second * 1_000), "a byte earns nothing");
            tokio::time::advance(Duration::from_secs(1)).await;
            watch.wrote(1);
        }
        watch.stall();
        assert_eq!(due(&watch), Some((1_000, Overdue::Write)));
        tokio::time::advance(Duration::from_millis(500)).await;
        watch.wrote(4 * 1_024);
        assert_eq!(due(&watch), None, "a handler's work has no deadline here");
        watch.stall();
        assert_eq!(due(&watch), Some((4_500, Overdue::Write)));
        for _ in 0..100 {
            tokio::time::advance(Duration::from_secs(2)).await;
            watch.wrote(4 * 1_024);
            watch.stall();
        }
        assert_eq!(due(&watch), Some((10_000, Overdue::Write)), "time that is earned does not add up for ever");
    }
}
