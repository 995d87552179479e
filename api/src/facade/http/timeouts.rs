//! Timeouts of a connection: until a request head has arrived, while it is idle, and while the client does not read.

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

/// Timeouts of the phases of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    pub(crate) head: Duration,
    pub(crate) idle: Duration,
    pub(crate) write: Duration,
}

/// Minimum rate at which a client must read a response, in bytes per second.
const MIN_BYTES_PER_SECOND: u64 = 1_024;

/// The phase in which a connection timed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeoutPhase {
    /// A request head did not arrive in time.
    Head,
    /// No further request arrived.
    Idle,
    /// The client did not read the response fast enough.
    Write,
}

impl TimeoutPhase {
    /// Returns the name in metrics and logs.
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
    /// A head is being received since then.
    Head(Instant),
    /// A request is handled. Reading its body has a separate timeout.
    Busy,
    /// No request is in progress since then.
    Idle(Instant),
}

/// The state of a connection, shared by its socket, its service and its driver.
#[derive(Debug)]
pub(crate) struct ConnectionTimer {
    timeouts: Timeouts,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// When writes to the socket began to block.
    stalled: Option<Instant>,
    /// How much longer they may block. Bytes that the client reads add to it.
    credit: Duration,
    /// Whether the connection is closed with a reset, which discards unsent bytes.
    is_reset: bool,
}

impl ConnectionTimer {
    /// Starts the timeout of the first head.
    pub(crate) fn new(timeouts: Timeouts) -> Arc<Self> {
        let phase = Phase::Head(Instant::now());
        let state = State { phase, stalled: None, credit: timeouts.write, is_reset: false };
        Arc::new(Self { timeouts, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the timeout of the head: it has arrived.
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

    /// Returns the next deadline and its phase.
    fn deadline(&self) -> Option<(Instant, TimeoutPhase)> {
        let state = self.state();
        let phase = match state.phase {
            Phase::Head(since) => Some((since + self.timeouts.head, TimeoutPhase::Head)),
            Phase::Idle(since) => Some((since + self.timeouts.idle, TimeoutPhase::Idle)),
            Phase::Busy => None,
        };
        let write = state.stalled.map(|since| (since + state.credit, TimeoutPhase::Write));
        phase.into_iter().chain(write).min_by_key(|(at, _)| *at)
    }
}

/// Drives a connection until it ends or times out.
pub(crate) async fn drive<F: Future>(connection: F, timer: &ConnectionTimer) -> Result<F::Output, TimeoutPhase> {
    let mut connection = pin!(connection);
    let mut sleep = pin!(tokio::time::sleep(timer.timeouts.head));
    poll_fn(|cx| {
        if let Poll::Ready(end) = connection.as_mut().poll(cx) {
            return Poll::Ready(Ok(end));
        }
        // Only the connection's own progress changes its deadline.
        let Some((at, what)) = timer.deadline() else { return Poll::Pending };
        if sleep.deadline() != at {
            sleep.as_mut().reset(at);
        }
        sleep.as_mut().poll(cx).map(|()| {
            timer.state().is_reset = what == TimeoutPhase::Write;
            Err(what)
        })
    })
    .await
}

/// A socket that reports its reads and writes to the timer.
pub(crate) struct TimedStream {
    stream: TcpStream,
    timer: Arc<ConnectionTimer>,
}

impl TimedStream {
    pub(crate) const fn new(stream: TcpStream, timer: Arc<ConnectionTimer>) -> Self {
        Self { stream, timer }
    }

    fn noted(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Pending => self.timer.stall(),
            Poll::Ready(Ok(bytes)) => self.timer.wrote(*bytes),
            Poll::Ready(Err(_)) => {}
        }
        written
    }
}

// After a write timeout the kernel must not keep unsent bytes for a client that does not read them.
impl Drop for TimedStream {
    fn drop(&mut self) {
        if self.timer.state().is_reset {
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for TimedStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.timer.read();
        }
        read
    }
}

impl AsyncWrite for TimedStream {
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

/// A response body. When it is dropped, the connection becomes idle.
pub(crate) struct TimedBody<B> {
    body: B,
    timer: Arc<ConnectionTimer>,
}

impl<B> TimedBody<B> {
    pub(crate) const fn new(body: B, timer: Arc<ConnectionTimer>) -> Self {
        Self { body, timer }
    }
}

impl<B> Drop for TimedBody<B> {
    fn drop(&mut self) {
        self.timer.end();
    }
}

impl<B: Body + Unpin> Body for TimedBody<B> {
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

    fn due(timer: &ConnectionTimer) -> Option<(u128, TimeoutPhase)> {
        timer.deadline().map(|(at, what)| (at.duration_since(Instant::now()).as_millis(), what))
    }

    #[tokio::test(start_paused = true)]
    async fn each_phase_has_a_deadline_of_its_own() {
        let timer = ConnectionTimer::new(TIMEOUTS);
        tokio::time::advance(Duration::from_millis(400)).await;
        timer.read();
        assert_eq!(due(&timer), Some((600, TimeoutPhase::Head)), "further bytes do not extend it");
        timer.begin();
        assert_eq!(due(&timer), None);
        timer.end();
        assert_eq!(due(&timer), Some((5_000, TimeoutPhase::Idle)));
        tokio::time::advance(Duration::from_secs(4)).await;
        timer.read();
        assert_eq!(due(&timer), Some((1_000, TimeoutPhase::Head)), "the next head starts with its first byte");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_reader_times_out_and_a_fast_enough_one_does_not() {
        let timer = ConnectionTimer::new(TIMEOUTS);
        timer.begin();
        for second in 0..9 {
            timer.stall();
            assert_eq!(due(&timer).map(|(ms, _)| ms), Some(10_000 - second * 1_000), "one byte adds nothing");
            tokio::time::advance(Duration::from_secs(1)).await;
            timer.wrote(1);
        }
        timer.stall();
        assert_eq!(due(&timer), Some((1_000, TimeoutPhase::Write)));
        tokio::time::advance(Duration::from_millis(500)).await;
        timer.wrote(4 * 1_024);
        assert_eq!(due(&timer), None, "the handler has no deadline here");
        timer.stall();
        assert_eq!(due(&timer), Some((4_500, TimeoutPhase::Write)));
        for _ in 0..100 {
            tokio::time::advance(Duration::from_secs(2)).await;
            timer.wrote(4 * 1_024);
            timer.stall();
        }
        assert_eq!(due(&timer), Some((10_000, TimeoutPhase::Write)), "the credit has a maximum");
    }
}
