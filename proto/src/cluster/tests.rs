//! Tests of several engines: health checks, load balancing, and what is repeated.

use std::{convert::Infallible, sync::Mutex};

use http::HeaderValue;
use prost::Message;
use tokio::net::TcpListener;
use tonic_health::pb::HealthCheckResponse;

use super::*;
use crate::caller::IDEMPOTENCY_KEY;

const READ: &str = "/hivetill.engine.v1.PaymentService/GetPayment";
const CREATION: &str = "/hivetill.engine.v1.PaymentService/CreatePayment";
const HEALTH: &str = "/grpc.health.v1.Health/Check";

/// What an engine does with calls.
#[derive(Debug, Clone)]
enum Behaviour {
    Respond,
    /// Reports that it is not ready, and responds.
    NotReady,
    /// Resets the stream of every call but health checks.
    Reset,
    Refuse(Reason),
}

/// An engine and the number of its calls, without health checks.
struct TestEngine {
    url: String,
    calls: Arc<AtomicUsize>,
    behaviour: Arc<Mutex<Behaviour>>,
}

impl TestEngine {
    async fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let engine = Self { url, calls: Arc::default(), behaviour: Arc::new(Mutex::new(behaviour)) };
        let (calls, behaviour) = (Arc::clone(&engine.calls), Arc::clone(&engine.behaviour));
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (calls, behaviour) = (Arc::clone(&calls), Arc::clone(&behaviour));
                let service = hyper::service::service_fn(move |request: http::Request<hyper::body::Incoming>| {
                    let behaviour = behaviour.lock().expect("one test").clone();
                    let response = respond(request.uri().path(), &behaviour, &calls);
                    async move { response }
                });
                let executor = hyper_util::rt::TokioExecutor::new();
                let socket = hyper_util::rt::TokioIo::new(socket);
                tokio::spawn(hyper::server::conn::http2::Builder::new(executor).serve_connection(socket, service));
            }
        });
        engine
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    fn set(&self, behaviour: Behaviour) {
        *self.behaviour.lock().expect("one test") = behaviour;
    }

    fn channel(&self) -> (String, Channel) {
        (self.url.clone(), Channel::from_shared(self.url.clone()).expect("a URL").connect_lazy())
    }
}

fn respond(path: &str, behaviour: &Behaviour, calls: &AtomicUsize) -> Result<http::Response<Body>, &'static str> {
    if path == HEALTH {
        let is_ready = !matches!(behaviour, Behaviour::NotReady);
        let status = if is_ready { ServingStatus::Serving } else { ServingStatus::NotServing };
        return Ok(message(&HealthCheckResponse { status: status.into() }.encode_to_vec()));
    }
    calls.fetch_add(1, Ordering::SeqCst);
    match behaviour {
        Behaviour::Respond | Behaviour::NotReady => Ok(message(&[])),
        Behaviour::Reset => Err("reset"),
        Behaviour::Refuse(reason) => Ok(Status::from(ApiError::new(*reason)).into_http()),
    }
}

/// Returns a response with a message and status 0.
fn message(bytes: &[u8]) -> http::Response<Body> {
    let length = u32::try_from(bytes.len()).expect("short").to_be_bytes();
    let framed = [&[0][..], &length, bytes].concat();
    let trailers = [(http::HeaderName::from_static("grpc-status"), HeaderValue::from_static("0"))];
    let trailers = async move { Some(Ok::<_, Infallible>(trailers.into_iter().collect())) };
    let body = Full::new(Bytes::from(framed)).with_trailers(trailers);
    let response = http::Response::builder().header("content-type", "application/grpc");
    response.body(Body::new(body)).expect("a response")
}

fn request(path: &str, key: Option<&'static str>) -> http::Request<Body> {
    let request = http::Request::post(format!("http://engine{path}")).header("content-type", "application/grpc");
    let request = key.into_iter().fold(request, |request, key| request.header(IDEMPOTENCY_KEY, key));
    request.body(Body::new(Full::new(Bytes::from_static(&[0; 5])))).expect("a request")
}

/// Calls a method; returns `None` for success, and otherwise the reason.
async fn call(cluster: &Cluster, path: &str, key: Option<&'static str>) -> Option<Reason> {
    let response = cluster.call(request(path, key)).await.expect("a response");
    Status::from_header_map(response.headers()).map(|status| ApiError::from(status).reason)
}

async fn until_checked(cluster: &Cluster) {
    for member in &cluster.members {
        let mut condition = member.condition.subscribe();
        condition.wait_for(|condition| *condition != Condition::Unknown).await.expect("it is checked");
    }
}

/// A URL at which nothing listens.
async fn nobody() -> (String, Channel) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    (url.clone(), Channel::from_shared(url).expect("a URL").connect_lazy())
}

#[tokio::test]
async fn a_call_with_a_lost_response_is_repeated_only_if_that_is_safe() {
    let (broken, good) = (TestEngine::start(Behaviour::Reset).await, TestEngine::start(Behaviour::Respond).await);
    let cluster = Cluster::start([broken.channel(), good.channel()]);
    until_checked(&cluster).await;
    for _ in 0..20 {
        assert_eq!(call(&cluster, READ, None).await, None);
        assert_eq!(call(&cluster, CREATION, Some("order-1")).await, None);
    }
    assert!(broken.calls() > 0, "both engines get calls");
    let repeated = cluster.states()[0].repeated;
    assert_eq!(repeated, broken.calls() as u64);

    let before = (broken.calls(), good.calls());
    let mut refused = 0;
    for _ in 0..20 {
        match call(&cluster, CREATION, None).await {
            None => {}
            Some(reason) => {
                assert_eq!(reason, Reason::EngineUnavailable);
                refused += 1;
            }
        }
    }
    assert_eq!(broken.calls() - before.0, refused);
    assert_eq!(good.calls() - before.1, 20 - refused, "no second creation without a key");
    assert!(refused > 0);
}

#[tokio::test]
async fn a_call_that_was_not_sent_is_made_at_another_engine() {
    let good = TestEngine::start(Behaviour::Respond).await;
    let cluster = Cluster::start([nobody().await, good.channel()]);
    for _ in 0..6 {
        assert_eq!(call(&cluster, CREATION, None).await, None);
    }
    assert_eq!(good.calls(), 6);
    assert!(!cluster.states()[0].is_ready);
    let refused = TestEngine::start(Behaviour::Refuse(Reason::EngineAccessDenied)).await;
    let cluster = Cluster::start([refused.channel(), good.channel()]);
    until_checked(&cluster).await;
    for _ in 0..6 {
        assert_eq!(call(&cluster, CREATION, None).await, None);
    }
    assert_eq!(good.calls(), 12);
}

#[tokio::test]
async fn an_engine_that_is_not_ready_gets_calls_only_if_no_other_is() {
    let (waiting, good) = (TestEngine::start(Behaviour::NotReady).await, TestEngine::start(Behaviour::Respond).await);
    let cluster = Cluster::start([waiting.channel(), good.channel()]);
    until_checked(&cluster).await;
    for _ in 0..6 {
        assert_eq!(call(&cluster, READ, None).await, None);
    }
    assert_eq!((waiting.calls(), good.calls()), (0, 6));
    let alone = Cluster::start([waiting.channel(), nobody().await]);
    until_checked(&alone).await;
    assert_eq!(call(&alone, READ, None).await, None);
    assert_eq!(waiting.calls(), 1);
}

#[tokio::test]
async fn only_temporary_errors_are_repeated() {
    for (reason, is_repeated) in [
        (Reason::StoreUnavailable, true),
        (Reason::NodeUnavailable, true),
        (Reason::Overloaded, true),
        (Reason::NotFound, false),
        (Reason::RateUnavailable, false),
        (Reason::IdempotencyInProgress, false),
    ] {
        let refusing = || TestEngine::start(Behaviour::Refuse(reason));
        let (first, second) = (refusing().await, refusing().await);
        let cluster = Cluster::start([first.channel(), second.channel()]);
        until_checked(&cluster).await;
        assert_eq!(call(&cluster, READ, None).await, Some(reason));
        assert_eq!(first.calls() + second.calls(), 1 + usize::from(is_repeated), "{reason:?}");
        assert_eq!(call(&cluster, CREATION, None).await, Some(reason));
        assert_eq!(first.calls() + second.calls(), 2 + usize::from(is_repeated), "{reason:?}");
    }
}

#[tokio::test]
async fn calls_are_divided_between_ready_engines() {
    let (one, two) = (TestEngine::start(Behaviour::Respond).await, TestEngine::start(Behaviour::Respond).await);
    let cluster = Cluster::start([one.channel(), two.channel()]);
    until_checked(&cluster).await;
    for _ in 0..10 {
        assert_eq!(call(&cluster, READ, None).await, None);
    }
    assert_eq!((one.calls(), two.calls()), (5, 5));
    assert!(cluster.states().iter().all(|state| state.is_ready && state.calls == 0));
}

#[tokio::test]
async fn one_deadline_applies_to_all_attempts() {
    // A listener whose connections nobody serves.
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", silent.local_addr().expect("bound"));
    let channel = || (url.clone(), Channel::from_shared(url.clone()).expect("a URL").connect_lazy());
    let cluster = Cluster::with_deadline([channel(), channel()], Duration::from_millis(200));
    let response = cluster.call(request(READ, None)).await.expect("a response");
    let status = Status::from_header_map(response.headers()).expect("a failure");
    assert_eq!(ApiError::from(status).reason, Reason::Timeout);
}

#[tokio::test]
async fn a_watch_ends_when_its_engine_is_not_ready_and_another_one_is() {
    let (own, other) = (TestEngine::start(Behaviour::Respond).await, TestEngine::start(Behaviour::NotReady).await);
    let cluster = Cluster::start([own.channel(), other.channel()]);
    until_checked(&cluster).await;
    let member = &cluster.members[0];
    let pending = http_body_util::StreamBody::new(tokio_stream::pending::<Result<Frame<Bytes>, Infallible>>());
    let lost = Some(member.lost());
    let mut stream = OpenStream { body: Body::new(pending), lost, _counted: Counted::new(&member.streams) };
    assert!(polled_once(&mut stream).is_none(), "it is open");
    assert_eq!(member.state().streams, 1);
    own.set(Behaviour::NotReady);
    let mut condition = member.condition.subscribe();
    condition.wait_for(|condition| *condition == Condition::NotReady).await.expect("it is checked");
    assert!(polled_once(&mut stream).is_none(), "no other engine is ready");
    other.set(Behaviour::Respond);
    let ended = stream.frame().await.expect("an error").expect_err("lost");
    assert_eq!(ended.code(), Code::Unavailable);
    assert!(stream.frame().await.is_none());
    drop(stream);
    assert_eq!(member.state().streams, 0);
}

/// Polls a stream once.
fn polled_once(stream: &mut OpenStream) -> Option<Result<Frame<Bytes>, Status>> {
    let mut context = Context::from_waker(std::task::Waker::noop());
    match Pin::new(stream).poll_frame(&mut context) {
        Poll::Ready(frame) => frame,
        Poll::Pending => None,
    }
}
