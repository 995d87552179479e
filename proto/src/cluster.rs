//! Several engines over one store: health checks, load balancing, and repetition of calls at another engine.
//!
//! tonic's balanced channel does not fit: it knows neither whether an engine is ready nor which one a call has tried, and
//! a dead engine, which fails at once, looks like the least loaded one.

use std::{
    error::Error,
    fmt,
    pin::Pin,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame};
use http_body_util::{BodyExt, Full};
use tokio::{
    sync::{Notify, watch},
    time::{sleep, timeout},
};
use tonic::{Code, ConnectError, Status, body::Body, transport::Channel};
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient};
use tower::ServiceExt;
use tracing::{debug, info, warn};

use crate::{ApiError, Reason, Repetition, connection::ConnectionHealth};

type BoxError = Box<dyn Error + Send + Sync>;
type Response = http::Response<Body>;

/// Interval of the health checks of an engine.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// An engine that does not respond to a health check for this long counts as unreachable.
const CHECK_TIMEOUT: Duration = Duration::from_secs(3);
/// Interval at which a waiting call looks for a better engine if its own is not ready.
const LOST_INTERVAL: Duration = Duration::from_millis(250);
/// Deadline of a call over all engines; of a stream until it begins.
const DEADLINE: Duration = Duration::from_secs(30);

/// The engines that a facade calls.
pub(crate) struct Cluster {
    members: Vec<Arc<Member>>,
    /// Rotates the order of engines with equal load.
    turn: AtomicUsize,
    deadline: Duration,
}

/// What a facade knows about an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineState {
    /// The URL.
    pub url: String,
    /// Whether it reports that it is ready.
    pub is_ready: bool,
    /// Calls without a response yet.
    pub calls: usize,
    /// Open streams.
    pub streams: usize,
    /// Calls that failed here and were repeated at another engine.
    pub repeated: u64,
}

/// The condition of an engine; the preferred one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Condition {
    Ready,
    /// It has not been checked yet.
    Unknown,
    NotReady,
    Unreachable,
}

struct Member {
    url: String,
    /// Its place in `conditions`.
    index: usize,
    /// The conditions of all engines.
    conditions: Conditions,
    channel: Channel,
    connection: ConnectionHealth,
    condition: watch::Sender<Condition>,
    /// Requests a health check now.
    check: Notify,
    calls: Arc<AtomicUsize>,
    streams: Arc<AtomicUsize>,
    repeated: AtomicU64,
}

type Conditions = Arc<Vec<watch::Receiver<Condition>>>;

/// The outcome of a call at one engine.
enum Outcome {
    /// It is final.
    Final(Result<Response, BoxError>),
    /// The engine did not act on the call.
    NotProcessed(Response),
    /// The engine may have acted on the call.
    Unknown(Response),
}

/// Counts a call or a stream of an engine while it is held.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Cluster {
    /// Creates a cluster of engines by URL, and begins their health checks. Must be called within a Tokio runtime.
    pub(crate) fn start(engines: impl IntoIterator<Item = (String, Channel)>) -> Arc<Self> {
        Self::with_deadline(engines, DEADLINE)
    }

    fn with_deadline(engines: impl IntoIterator<Item = (String, Channel)>, deadline: Duration) -> Arc<Self> {
        let engines: Vec<_> =
            engines.into_iter().map(|engine| (engine, watch::Sender::new(Condition::Unknown))).collect();
        let conditions: Conditions = Arc::new(engines.iter().map(|(_, condition)| condition.subscribe()).collect());
        let members = engines.into_iter().enumerate().map(|(index, ((url, channel), condition))| {
            Arc::new(Member {
                connection: ConnectionHealth::of(url.clone()),
                url,
                index,
                conditions: Arc::clone(&conditions),
                channel,
                condition,
                check: Notify::new(),
                calls: Arc::default(),
                streams: Arc::default(),
                repeated: AtomicU64::new(0),
            })
        });
        let members: Vec<Arc<Member>> = members.collect();
        for member in &members {
            tokio::spawn(check_health(Arc::downgrade(member)));
        }
        Arc::new(Self { members, turn: AtomicUsize::new(0), deadline })
    }

    /// Returns the state of each engine.
    pub(crate) fn states(&self) -> Vec<EngineState> {
        self.members.iter().map(|member| member.state()).collect()
    }

    /// Calls an engine, and further ones as long as the call fails and may be repeated.
    pub(crate) async fn call(&self, request: http::Request<Body>) -> Result<Response, BoxError> {
        timeout(self.deadline, self.call_each(request))
            .await
            .unwrap_or_else(|_| Ok(Status::deadline_exceeded("no engine responded in time").into_http()))
    }

    async fn call_each(&self, request: http::Request<Body>) -> Result<Response, BoxError> {
        let (parts, body) = request.into_parts();
        // No method has a stream of requests.
        let body = body.collect().await?.to_bytes();
        let is_safe = Repetition::of(parts.uri.path()).is_safe(&parts.headers);
        let is_stream = crate::STREAMS.contains(&parts.uri.path());
        let mut tried = vec![false; self.members.len()];
        let mut last: Option<(usize, Response)> = None;
        while let Some(chosen) = self.choose(&tried, is_stream) {
            tried[chosen] = true;
            if let Some((failed, _)) = last.take() {
                let (from, to) = (&self.members[failed], &self.members[chosen]);
                from.repeated.fetch_add(1, Ordering::Relaxed);
                debug!(rpc.method = parts.uri.path(), "call repeated at {} after a failure at {}", to.url, from.url);
            }
            let request = http::Request::from_parts(parts.clone(), Body::new(Full::new(body.clone())));
            let failed = match self.members[chosen].call(request, is_stream, is_safe).await {
                Outcome::Final(result) => return result,
                Outcome::Unknown(response) if !is_safe => return Ok(response),
                Outcome::NotProcessed(response) | Outcome::Unknown(response) => response,
            };
            last = Some((chosen, failed));
        }
        Ok(last.map_or_else(|| Status::unavailable("no engine is configured").into_http(), |(_, response)| response))
    }

    /// Chooses the engine with the least load among those in the best condition. A repetition leaves engines alone that
    /// cannot be reached; a first attempt does not, because the health check may be out of date.
    fn choose(&self, tried: &[bool], is_stream: bool) -> Option<usize> {
        let is_first = !tried.contains(&true);
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let count = self.members.len();
        let rotated = (0..count).map(|offset| turn.wrapping_add(offset) % count);
        let candidates = rotated.filter(|&index| !tried[index]).filter_map(|index| {
            let member = &self.members[index];
            let condition = *member.condition.borrow();
            let may_call = is_first || condition != Condition::Unreachable;
            may_call.then(|| (condition, member.load(is_stream), index))
        });
        candidates.min_by_key(|(condition, load, _)| (*condition, *load)).map(|(_, _, index)| index)
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.states()).finish()
    }
}

impl Member {
    fn state(&self) -> EngineState {
        EngineState {
            url: self.url.clone(),
            is_ready: *self.condition.borrow() == Condition::Ready,
            calls: self.calls.load(Ordering::Relaxed),
            streams: self.streams.load(Ordering::Relaxed),
            repeated: self.repeated.load(Ordering::Relaxed),
        }
    }

    fn load(&self, is_stream: bool) -> usize {
        if is_stream { self.streams.load(Ordering::Relaxed) } else { self.calls.load(Ordering::Relaxed) }
    }

    fn set(&self, condition: Condition, why: &str) {
        let is_changed = self.condition.send_if_modified(|known| {
            let is_changed = *known != condition;
            *known = condition;
            is_changed
        });
        match condition {
            _ if !is_changed => {}
            Condition::Ready => info!(engine.url = self.url, "engine {} is ready", self.url),
            Condition::NotReady | Condition::Unreachable | Condition::Unknown => {
                warn!(engine.url = self.url, "engine {} gets no calls while another one is ready: {why}", self.url);
            }
        }
    }

    /// Calls the engine. A call that may be repeated is given up once the engine is lost.
    async fn call(&self, request: http::Request<Body>, is_stream: bool, is_safe: bool) -> Outcome {
        let counted = Counted::new(if is_stream { &self.streams } else { &self.calls });
        let (stream, _call) = if is_stream { (Some(counted), None) } else { (None, Some(counted)) };
        let call = self.exchange(request, stream);
        if !is_safe {
            return call.await;
        }
        tokio::select! {
            biased;
            outcome = call => outcome,
            () = self.lost() => Outcome::Unknown(no_response().into_http()),
        }
    }

    /// Completes once the engine is lost: it is not ready, or does not respond, while another one is ready.
    fn lost(&self) -> Lost {
        let (index, conditions) = (self.index, Arc::clone(&self.conditions));
        let mut own = conditions[index].clone();
        Box::pin(async move {
            loop {
                let is_ready = |condition: &watch::Receiver<Condition>| *condition.borrow() == Condition::Ready;
                // An error means that nothing checks the engine any more.
                if own.wait_for(|condition| *condition > Condition::Unknown).await.is_err()
                    || conditions.iter().any(is_ready)
                {
                    return;
                }
                sleep(LOST_INTERVAL).await;
            }
        })
    }

    /// Sends a request and reads the response; of a stream only its beginning. A stream is counted until it ends.
    async fn exchange(&self, request: http::Request<Body>, stream: Option<Counted>) -> Outcome {
        let is_watch = request.uri().path().rsplit('/').next().is_some_and(|method| method.starts_with("Watch"));
        let result = self.channel.clone().oneshot(request).await;
        let failure = result.as_ref().err().map(|error| {
            let is_sent = !causes(error).any(|cause| cause.is::<ConnectError>());
            if is_sent {
                self.check.notify_one();
            } else {
                self.set(Condition::Unreachable, "it cannot be reached");
            }
            is_sent
        });
        let response = match (self.connection.record(result), failure) {
            (Err(timed_out), _) => return Outcome::Final(Err(timed_out)),
            (Ok(response), Some(true)) => return Outcome::Unknown(response),
            (Ok(response), Some(false)) => return Outcome::NotProcessed(response),
            (Ok(response), None) => response,
        };
        if let Some(status) = Status::from_header_map(response.headers()) {
            return judge(&status, response);
        }
        let (head, body) = response.into_parts();
        if let Some(counted) = stream {
            let lost = is_watch.then(|| self.lost());
            return Outcome::Final(Ok(Response::from_parts(
                head,
                Body::new(OpenStream { body, lost, _counted: counted }),
            )));
        }
        // The engine may exit between the head and the end of a response.
        match body.collect().await {
            Ok(whole) => {
                let status = whole.trailers().and_then(Status::from_header_map);
                let response = Response::from_parts(head, Body::new(whole));
                match status {
                    Some(status) => judge(&status, response),
                    None => Outcome::Final(Ok(response)),
                }
            }
            Err(_) => {
                self.check.notify_one();
                Outcome::Unknown(Status::unavailable("the connection to the engine was lost").into_http())
            }
        }
    }
}

fn no_response() -> Status {
    Status::unavailable("the engine does not respond")
}

type Lost = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The body of a stream. A watch ends with `UNAVAILABLE` once its engine is lost, so that its reader continues at another
/// one.
struct OpenStream {
    body: Body,
    lost: Option<Lost>,
    _counted: Counted,
}

impl HttpBody for OpenStream {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            return Poll::Ready(frame);
        }
        match self.lost.as_mut().map(|lost| lost.as_mut().poll(cx)) {
            Some(Poll::Ready(())) => {
                self.lost = None;
                self.body = Body::empty();
                Poll::Ready(Some(Err(no_response())))
            }
            _ => Poll::Pending,
        }
    }
}

/// Decides whether a status is final.
fn judge(status: &Status, response: Response) -> Outcome {
    match (status.code(), ApiError::from(status.clone()).reason) {
        (Code::Unauthenticated, Reason::EngineAccessDenied) => Outcome::NotProcessed(response),
        (
            Code::Unavailable,
            Reason::EngineUnavailable | Reason::StoreUnavailable | Reason::NodeUnavailable | Reason::Overloaded,
        ) => Outcome::Unknown(response),
        _ => Outcome::Final(Ok(response)),
    }
}

fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// Checks the health of an engine until nothing uses it any more.
async fn check_health(engine: Weak<Member>) {
    while let Some(member) = engine.upgrade() {
        let request = HealthCheckRequest::default();
        let mut client = HealthClient::new(member.channel.clone());
        match timeout(CHECK_TIMEOUT, client.check(request)).await {
            Ok(Ok(report)) if report.get_ref().status() == ServingStatus::Serving => member.set(Condition::Ready, ""),
            Ok(Ok(_)) => member.set(Condition::NotReady, "it reports that it is not ready"),
            Ok(Err(status)) => member.set(Condition::Unreachable, status.message()),
            Err(_) => member.set(Condition::Unreachable, "it does not respond to health checks"),
        }
        // A failed call requests a check at once.
        let _ = timeout(CHECK_INTERVAL, member.check.notified()).await;
    }
}

#[cfg(test)]
mod tests;
