//! The facade and the gRPC services of an engine in this process, without sockets, for the clients of the simulator.

use std::{convert::Infallible, sync::Arc};

use futures_util::{
    StreamExt as _,
    future::{BoxFuture, FutureExt as _},
    stream::BoxStream,
};
use http::{HeaderName, HeaderValue};
use http_body_util::Full;
use proto::{ApiError, Caller, Engine, IntoRecord, v1};
use simulations::front::{self, Boot, Call, Denied, Endpoint, Front, Method, Reply, Request, Shown};
use tonic::{Status, body::Body};
use tower::util::BoxCloneSyncService;

use crate::{
    config::Config,
    facade::{DashboardState, Facade, server, status_word},
    service::{Metrics, Service, Tokens, server as grpc},
};

/// The base URL of the facade: https, because the dashboard's session cookies need it.
const BASE_URL: &str = "https://pay.example";
/// The access token of the gRPC services.
const TOKEN: &str = "the-token-of-simulated-services-0";

/// Registers the facade and the gRPC services as the front of simulated engines.
pub fn install() {
    front::install(&InProcess);
}

/// Creates facades with default settings, and the gRPC services.
#[derive(Debug)]
struct InProcess;

impl Front for InProcess {
    fn open(&self, boot: Boot) -> Arc<dyn Endpoint> {
        let service = Service::new(boot.engine);
        let edge = Config::default().edge(boot.now);
        let dashboard = Some(DashboardState::new(boot.secret, None));
        let facade = Facade::with_edge(edge, dashboard, Engine::new(service.in_process()), BASE_URL, boot.seed);
        let tokens = Tokens::new([TOKEN.to_owned()], []);
        let access = grpc::Access { tokens, tls: None, connections: 0, metrics: Metrics::default() };
        Arc::new(Interfaces { facade, grpc: BoxCloneSyncService::new(grpc::in_process(service, access)) })
    }
}

type Grpc = BoxCloneSyncService<http::Request<Body>, http::Response<Body>, Infallible>;
type PaymentClient = v1::payment_service_client::PaymentServiceClient<Grpc>;

/// The interfaces of one simulated process.
struct Interfaces {
    facade: Arc<Facade>,
    grpc: Grpc,
}

impl Endpoint for Interfaces {
    fn rest(&self, request: Request) -> BoxFuture<'static, Reply> {
        rest(Arc::clone(&self.facade), request).boxed()
    }

    fn grpc(&self, call: Call) -> BoxFuture<'static, Result<Vec<Shown>, Denied>> {
        let client = PaymentClient::new(self.grpc.clone());
        async move { call_grpc(client, call).await.map_err(denied) }.boxed()
    }

    fn watch(&self, key: String, id: String) -> BoxFuture<'static, Result<BoxStream<'static, Shown>, Denied>> {
        let mut client = PaymentClient::new(self.grpc.clone());
        async move {
            let request = with_key(v1::WatchPaymentRequest { payment_id: id }, &key, None);
            let snapshots = client.watch_payment(request).await.map_err(denied)?.into_inner();
            let snapshots = snapshots.take_while(|snapshot| std::future::ready(snapshot.is_ok()));
            let shown = snapshots.filter_map(|snapshot| async move { Some(show(&snapshot.ok()?.payment?)) });
            Ok(shown.boxed())
        }
        .boxed()
    }
}

async fn rest(facade: Arc<Facade>, request: Request) -> Reply {
    let Request { method, path, headers, body, client } = request;
    let mut sent = http::Request::builder().method(method).uri(path);
    sent = sent.header(http::header::HOST, "pay.example");
    if !body.is_empty() {
        sent = sent.header(http::header::CONTENT_LENGTH, body.len());
    }
    for (name, value) in headers {
        sent = sent.header(HeaderName::from_static(name), HeaderValue::from_str(&value).expect("a header of a client"));
    }
    let sent = sent.body(Full::new(body)).expect("a request of a client");
    let (head, body) = server::handle(&facade, client, sent).await.into_parts();
    let headers =
        head.headers.iter().filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())));
    Reply { status: head.status.as_u16(), headers: headers.collect(), body }
}

async fn call_grpc(mut client: PaymentClient, call: Call) -> Result<Vec<Shown>, Status> {
    let Call { key, idempotency_key, method } = call;
    let payment = match method {
        Method::Create { units, currency, description, expires_in_seconds } => {
            let currency = match currency {
                "HIVE" => v1::Currency::Hive,
                "HBD" => v1::Currency::Hbd,
                _ => v1::Currency::Unspecified,
            };
            let request = v1::CreatePaymentRequest {
                amount_units: units,
                currency: currency.into(),
                description,
                expires_in_seconds,
                ..v1::CreatePaymentRequest::default()
            };
            client.create_payment(with_key(request, &key, idempotency_key.as_deref())).await?.into_record()?
        }
        Method::Get(id) => {
            client.get_payment(with_key(v1::GetPaymentRequest { payment_id: id }, &key, None)).await?.into_record()?
        }
        Method::Cancel(id) => client
            .cancel_payment(with_key(v1::CancelPaymentRequest { payment_id: id }, &key, None))
            .await?
            .into_record()?,
        Method::List => {
            let request = with_key(v1::ListPaymentsRequest::default(), &key, None);
            let page = client.list_payments(request).await?.into_inner();
            return Ok(page.payments.iter().map(show).collect());
        }
    };
    Ok(vec![show(&payment)])
}

/// Wraps a message with an API key, an idempotency key and the access token.
fn with_key<T>(message: T, key: &str, idempotency_key: Option<&str>) -> tonic::Request<T> {
    let idempotency_key = idempotency_key.and_then(|key| HeaderValue::from_str(key).ok());
    let mut request = Caller { idempotency_key, ..Caller::with_key(key) }.request(message);
    let token = HeaderValue::from_str(&format!("Bearer {TOKEN}")).expect("a header");
    request.metadata_mut().as_mut().insert(http::header::AUTHORIZATION, token);
    request
}

fn show(payment: &v1::Payment) -> Shown {
    Shown {
        id: payment.id.clone(),
        status: status_word(payment.status),
        sequence: payment.sequence,
        units: payment.amount_units,
    }
}

fn denied(status: Status) -> Denied {
    let code = format!("{:?}", status.code());
    let error = ApiError::from(status);
    Denied { code, reason: error.row().name, retry_after: error.retry_after_seconds }
}
