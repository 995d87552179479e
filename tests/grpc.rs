//! The engine's gRPC port as internal services use it.

use std::future::Future;

use proto::{
    ApiError, Caller, Engine, IntoRecord, Reason, Transport,
    v1::{self, PaymentStatus},
};
use tokio_stream::StreamExt;
use tonic::{Code, Status, transport::Channel};

use crate::harness::{Dev, Shop, TIMEOUT, folder};

crate::tests!(
    a_service_registers_creates_watches_and_lists,
    every_call_needs_the_bearer_token,
    an_error_has_its_reason_and_fields,
    health_and_reflection_are_served,
    a_service_reads_and_watches_a_merchants_events,
    a_service_reads_usage_and_the_preview_of_an_invoice,
    a_payment_without_a_target_is_rejected_and_for_an_unknown_session_gets_a_verdict,
    compliance_and_reconciliation_are_for_admins_and_validate_fields,
    a_service_manages_a_merchants_webhooks,
    a_service_proves_and_changes_accounts,
);

/// A gateway, the token of its port, and a runtime for its clients.
pub(crate) struct Port {
    pub(crate) dev: Dev,
    token: String,
    runtime: tokio::runtime::Runtime,
}

impl Port {
    pub(crate) fn open() -> Self {
        Self::with(&[])
    }

    pub(crate) fn with(more: &[&str]) -> Self {
        let data = folder("grpc").join("data");
        let data_flag = format!("--data={}", data.to_str().expect("a path"));
        let dev = Dev::with(&[&[data_flag.as_str()], more].concat());
        let token = dev.startup["grpcToken"].as_str().expect("the token").to_owned();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        Self { dev, token, runtime }
    }

    #[track_caller]
    pub(crate) fn run<T>(&self, work: impl Future<Output = T>) -> T {
        let limited = async { tokio::time::timeout(TIMEOUT, work).await };
        self.runtime.block_on(limited).expect("a response in time")
    }

    pub(crate) async fn channel_async(&self) -> Channel {
        let url = self.dev.startup["grpc"].as_str().expect("the port").to_owned();
        Channel::from_shared(url).expect("a URL").connect().await.expect("the port responds")
    }

    pub(crate) fn channel(&self) -> Channel {
        self.run(self.channel_async())
    }

    pub(crate) fn transport(&self) -> Transport {
        Transport::remote(self.channel(), Some(&self.token)).expect("a token")
    }

    pub(crate) fn engine(&self) -> Engine {
        Engine::new(self.transport())
    }

    pub(crate) fn bearer(&self) -> tonic::metadata::MetadataValue<tonic::metadata::Ascii> {
        format!("Bearer {}", self.token).parse().expect("a header")
    }
}

pub(crate) fn with_key<T>(shop: &Shop, message: T) -> tonic::Request<T> {
    Caller::with_key(&shop.key).request(message)
}

pub(crate) fn mug() -> v1::CreatePaymentRequest {
    v1::CreatePaymentRequest {
        amount_units: 1_500,
        currency: v1::Currency::Hbd.into(),
        description: "A blue mug".to_owned(),
        ..v1::CreatePaymentRequest::default()
    }
}

fn a_service_registers_creates_watches_and_lists() {
    let port = Port::open();
    let engine = port.engine();
    let account = port.dev.ledger.account("grpc");
    let registration =
        v1::RegisterMerchantRequest { name: "By gRPC".to_owned(), hive_account: account.name.clone(), icon_url: None };
    let made = port.run(engine.merchants().register_merchant(registration)).expect("registered").into_inner();
    let merchant = made.merchant.expect("a merchant");
    let shop =
        Shop { api: port.dev.api.clone(), id: merchant.id, key: made.api_key, secret: made.webhook_secret, account };
    let payment = port
        .run(engine.payments().create_payment(with_key(&shop, mug())))
        .expect("created")
        .into_record()
        .expect("a record");
    assert_eq!(payment.status(), PaymentStatus::Pending);
    assert_eq!((payment.amount_units, payment.fee_units, payment.net_units), (1_500, 22, 1_478));
    assert_eq!(shop.payment(&payment.id)["slug"], payment.slug.as_str(), "REST shows the same payment");

    let by_id = || v1::GetPaymentRequest { payment_id: payment.id.clone() };
    let watch = v1::WatchPaymentRequest { payment_id: payment.id.clone() };
    let status = |snapshot: v1::WatchPaymentResponse| snapshot.payment.expect("a payment").status();
    let statuses = port.run(async {
        let mut stream = engine.payments().watch_payment(with_key(&shop, watch)).await.expect("a stream").into_inner();
        let mut statuses = vec![status(stream.next().await.expect("at once").expect("a snapshot"))];
        let (ledger, to, memo) = (port.dev.ledger.clone(), shop.account.name.clone(), payment.memo.clone());
        let alice = port.dev.demo_account("alice");
        crate::harness::background(move || ledger.transfer(&alice, &to, "1.500 HBD", &memo));
        while let Some(snapshot) = stream.next().await {
            statuses.push(status(snapshot.expect("a snapshot")));
        }
        statuses
    });
    assert_eq!(statuses.last(), Some(&PaymentStatus::Completed), "the stream ends with the last state: {statuses:?}");
    let got = port
        .run(engine.payments().get_payment(with_key(&shop, by_id())))
        .expect("read")
        .into_record()
        .expect("a record");
    assert_eq!((got.status(), got.amount_paid_units), (PaymentStatus::Completed, 1_500));
    let list = v1::ListPaymentsRequest::default();
    let list = port.run(engine.payments().list_payments(with_key(&shop, list))).expect("listed").into_inner();
    assert_eq!((list.total_size, list.payments.len(), list.next_page_token.as_str()), (Some(1), 1, ""));
    let again = port
        .run(engine.payments().create_payment(with_key(&shop, mug())))
        .expect("created")
        .into_record()
        .expect("a record");
    let cancel = v1::CancelPaymentRequest { payment_id: again.id };
    let cancelled = port.run(engine.payments().cancel_payment(with_key(&shop, cancel))).expect("cancelled");
    let asked = cancelled.into_record().expect("a record").cancellation.expect("a request to cancel");
    assert_eq!((asked.by(), asked.dropped_at), (v1::CancelledBy::Merchant, None));
    let rate = port.run(engine.fees().get_fee_rate(v1::GetFeeRateRequest {})).expect("a rate").into_inner();
    assert_eq!(rate.fee_percent_ten_thousandths, 15_000);
    let endpoint = v1::GetWebhookEndpointRequest { merchant_id: shop.id.clone(), endpoint_id: None };
    let endpoint = port.run(engine.webhook_endpoints().get_webhook_endpoint(with_key(&shop, endpoint)));
    assert_eq!(endpoint.expect("read").into_record().expect("a record").url, None);
}

fn a_service_reads_usage_and_the_preview_of_an_invoice() {
    let port = Port::open();
    let (engine, shop) = (port.engine(), port.dev.shop());
    let payment = shop.open_payment();
    port.dev.ledger.transfer(&port.dev.demo_account("alice"), &shop.account.name, "1.500 HBD", &payment.memo);
    shop.until_status(&payment.id, "completed");
    let mine = port.run(engine.billing().get_my_billing(with_key(&shop, v1::GetMyBillingRequest {})));
    let mine = mine.expect("read").into_record().expect("a record");
    let current = mine.current.expect("a month");
    assert_eq!((current.total_volume_cents, current.transaction_count, current.invoice_amount_cents), (150, 1, 2));
    assert_eq!((current.status(), mine.fee_tiers[0].percent_ten_thousandths), (v1::BillingStatus::Open, Some(15_000)));
    let admin = |message| Caller::with_key(port.dev.admin_key()).request(message);
    let request = v1::GenerateInvoicesRequest::default();
    let refusal = port.run(engine.billing().generate_invoices(admin(request)));
    refused(refusal, Code::FailedPrecondition, Reason::BillingNotConfigured, &[]);
    let request = v1::GenerateInvoicesRequest { year: None, month: Some(1) };
    refused(
        port.run(engine.billing().generate_invoices(admin(request))),
        Code::InvalidArgument,
        Reason::ValidationFailed,
        &["year"],
    );
    let tiers = |percent_ten_thousandths| v1::SetFeeTiersRequest {
        tiers: vec![v1::FeeTier {
            min_volume_cents: 0,
            max_volume_cents: None,
            percent_ten_thousandths: Some(percent_ten_thousandths),
        }],
    };
    let set =
        |request| port.run(engine.billing().set_fee_tiers(Caller::with_key(port.dev.admin_key()).request(request)));
    assert_eq!(set(tiers(20_000)).expect("set").into_record().expect("a record").version, 1);
    refused(set(tiers(2_000_000)), Code::InvalidArgument, Reason::ValidationFailed, &["tiers[0].percentFee"]);
    let shops = with_key(&shop, tiers(0));
    refused(port.run(engine.billing().set_fee_tiers(shops)), Code::PermissionDenied, Reason::AdminRequired, &[]);
}

fn every_call_needs_the_bearer_token() {
    let port = Port::open();
    for token in [None, Some(""), Some("wrong"), Some(&port.token[1..])] {
        let engine = Engine::new(Transport::remote(port.channel(), token).expect("a token"));
        let denied = [
            port.run(engine.fees().get_fee_rate(v1::GetFeeRateRequest {})).map(|_| ()),
            port.run(engine.system().get_health(v1::GetHealthRequest {})).map(|_| ()),
            port.run(engine.merchants().register_admin(v1::RegisterAdminRequest::default())).map(|_| ()),
        ];
        for denied in denied {
            let status = denied.expect_err("denied");
            assert_eq!(status.code(), Code::Unauthenticated, "{token:?}");
            assert_eq!(ApiError::from(status).reason, Reason::EngineAccessDenied);
        }
    }
}

#[track_caller]
fn refused<T>(response: Result<T, Status>, code: Code, reason: Reason, fields: &[&str]) {
    let status = response.map(|_| ()).expect_err("refused");
    assert_eq!(status.code(), code, "{status:?}");
    let error = ApiError::from(status);
    assert_eq!(error.reason, reason);
    assert_eq!(error.fields.iter().map(|field| field.field.as_str()).collect::<Vec<_>>(), fields);
}

fn an_error_has_its_reason_and_fields() {
    let port = Port::open();
    let (engine, shop, other) = (port.engine(), port.dev.shop(), port.dev.shop());
    let wrong = v1::CreatePaymentRequest { amount_units: 0, description: String::new(), ..mug() };
    let response = port.run(engine.payments().create_payment(with_key(&shop, wrong)));
    refused(response, Code::InvalidArgument, Reason::ValidationFailed, &["amount", "description"]);
    let response = port.run(engine.payments().create_payment(mug()));
    refused(response, Code::Unauthenticated, Reason::InvalidApiKey, &[]);
    let foreign = v1::GetPaymentRequest { payment_id: other.open_payment().id };
    let response = port.run(engine.payments().get_payment(with_key(&shop, foreign)));
    refused(response, Code::NotFound, Reason::NotFound, &[]);
    let response = port.run(engine.merchants().list_merchants(with_key(&shop, v1::ListMerchantsRequest::default())));
    refused(response, Code::PermissionDenied, Reason::AdminRequired, &[]);
    let unknown =
        v1::RegisterMerchantRequest { name: "x".to_owned(), hive_account: "nobody-here".to_owned(), icon_url: None };
    let response = port.run(engine.merchants().register_merchant(unknown));
    refused(response, Code::InvalidArgument, Reason::UnknownAccount, &["hiveAccount"]);
    let unspecified = v1::CreatePaymentRequest { currency: 0, ..mug() };
    let response = port.run(engine.payments().create_payment(with_key(&shop, unspecified)));
    refused(response, Code::InvalidArgument, Reason::ValidationFailed, &["currency"]);
    let future = v1::CreatePaymentRequest { currency: 99, ..mug() };
    let response = port.run(engine.payments().create_payment(with_key(&shop, future)));
    refused(response, Code::InvalidArgument, Reason::ValidationFailed, &["currency"]);
    let most = v1::CreatePaymentRequest { amount_units: u64::MAX, ..mug() };
    let response = port.run(engine.payments().create_payment(with_key(&shop, most)));
    refused(response, Code::InvalidArgument, Reason::ValidationFailed, &["amount"]);
}

fn health_and_reflection_are_served() {
    use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient};
    use tonic_reflection::pb::v1::{
        ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
        server_reflection_request::MessageRequest, server_reflection_response::MessageResponse,
    };
    let port = Port::open();
    let transport = Transport::remote(port.channel(), Some(&port.token)).expect("a token");
    let health = port.run(
        HealthClient::new(transport.clone())
            .check(HealthCheckRequest { service: "hivetill.engine.v1.PaymentService".to_owned() }),
    );
    assert_eq!(health.expect("healthy").into_inner().status(), ServingStatus::Serving);
    let request = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(MessageRequest::ListServices(String::new())),
    };
    let response = port.run(async {
        let mut client = ServerReflectionClient::new(transport);
        let mut stream = client.server_reflection_info(tokio_stream::iter([request])).await?.into_inner();
        stream.next().await.expect("a response")
    });
    let Some(MessageResponse::ListServicesResponse(list)) = response.expect("reflected").message_response else {
        panic!("no list of services");
    };
    let names: Vec<String> = list.service.into_iter().map(|service| service.name).collect();
    for service in proto::SERVICES {
        assert!(names.contains(&(*service).to_owned()), "{service} in {names:?}");
    }
}

fn a_payment_without_a_target_is_rejected_and_for_an_unknown_session_gets_a_verdict() {
    let port = Port::open();
    let engine = port.engine();
    for request in [v1::X402Payment::default(), v1::X402Payment { nonce: "n".into(), ..v1::X402Payment::default() }] {
        let payment = Some(request);
        let verify = v1::VerifyPaymentRequest { payment: payment.clone() };
        let verify = port.run(engine.x402().verify_payment(verify));
        refused(verify, Code::InvalidArgument, Reason::ValidationFailed, &["sessionId"]);
        let settle = port.run(engine.x402().settle_payment(v1::SettlePaymentRequest { payment, resource: None }));
        refused(settle, Code::InvalidArgument, Reason::ValidationFailed, &["sessionId"]);
    }
    let target = v1::x402_payment::Target::SessionId("pay_x".to_owned());
    let payment = v1::X402Payment { target: Some(target), x402_version: 1, ..v1::X402Payment::default() };
    let request = v1::VerifyPaymentRequest { payment: Some(payment) };
    let verdict = port.run(engine.x402().verify_payment(request)).expect("a verdict").into_inner().verdict;
    let Some(v1::verify_payment_response::Verdict::Refused(refused)) = verdict else { panic!("{verdict:?}") };
    assert_eq!(refused.reason(), v1::X402Reason::InvalidPayload, "a verdict is a response");
}

fn a_service_reads_and_watches_a_merchants_events() {
    let port = Port::open();
    let (engine, shop) = (port.engine(), port.dev.shop());
    let cancel = || {
        let payment = shop.open_payment();
        shop.cancelled(&payment.id);
        payment.id
    };
    let first = cancel();
    let list = |after: &str| {
        let request = v1::ListEventsRequest { page_token: after.to_owned(), page_size: 0 };
        port.run(engine.events().list_events(with_key(&shop, request))).map(tonic::Response::into_inner)
    };
    let listed = list("").expect("listed");
    assert_eq!((listed.events.len(), listed.next_page_token.as_str(), listed.has_more), (1, "1", false));
    assert_eq!((listed.events[0].cursor.as_str(), &listed.events[0].payment_id), ("1", &first));
    let body: serde_json::Value = serde_json::from_slice(&listed.events[0].body).expect("JSON");
    assert_eq!(body["id"], listed.events[0].id.as_str());
    refused(list("nonsense"), Code::InvalidArgument, Reason::ValidationFailed, &["after"]);
    let reported = port.run(async {
        let request = v1::WatchEventsRequest { page_token: Some("0".to_owned()) };
        let mut stream = engine.events().watch_events(with_key(&shop, request)).await.expect("a stream").into_inner();
        let ready = stream.next().await.expect("at once").expect("a place");
        assert_eq!((ready.next_page_token.as_str(), ready.event), ("0", None));
        let mut reported = Vec::new();
        reported.push(stream.next().await.expect("what was").expect("an event"));
        let (asking, id) = (shop.clone(), shop.open_payment().id);
        let second = id.clone();
        crate::harness::background(move || asking.cancel(&id));
        reported.push(stream.next().await.expect("what happens").expect("an event"));
        assert_eq!(reported[1].event.as_ref().map(|event| event.payment_id.as_str()), Some(second.as_str()));
        reported
    });
    assert_eq!(reported[0].event.as_ref(), listed.events.first());
    assert_eq!(reported.iter().map(|reported| reported.next_page_token.as_str()).collect::<Vec<_>>(), ["1", "2"]);
    let keyless = port.run(engine.events().watch_events(v1::WatchEventsRequest::default()));
    refused(keyless, Code::Unauthenticated, Reason::InvalidApiKey, &[]);
}

fn compliance_and_reconciliation_are_for_admins_and_validate_fields() {
    use v1::set_merchant_limits_request::Change;
    let port = Port::open();
    let (engine, shop) = (port.engine(), port.dev.shop());
    let get = v1::GetComplianceStatusRequest { merchant_id: shop.id.clone() };
    let response = port.run(engine.compliance().get_compliance_status(with_key(&shop, get.clone())));
    refused(response, Code::PermissionDenied, Reason::AdminRequired, &[]);
    let admin = Caller::with_key(port.dev.admin_key());
    let limits = v1::Thresholds { single_cents: Some(5), daily_cents: Some(0), monthly_cents: Some(7) };
    let set = |limits: Option<v1::Thresholds>| {
        let change = limits.map_or(Change::Remove(()), Change::Limits);
        v1::SetMerchantLimitsRequest { merchant_id: shop.id.clone(), change: Some(change) }
    };
    let response = port.run(engine.compliance().set_merchant_limits(with_key(&shop, set(None))));
    refused(response, Code::PermissionDenied, Reason::AdminRequired, &[]);
    let wrong = set(Some(v1::Thresholds { daily_cents: Some(u64::MAX), ..limits }));
    let response = port.run(engine.compliance().set_merchant_limits(admin.request(wrong)));
    refused(response, Code::InvalidArgument, Reason::ValidationFailed, &["limits.dailyCents"]);
    let status = port.run(engine.compliance().set_merchant_limits(admin.request(set(Some(limits)))));
    assert_eq!(status.expect("set").into_record().expect("a record").limits, Some(limits));
    let status = port
        .run(engine.compliance().get_compliance_status(admin.request(get)))
        .expect("read")
        .into_record()
        .expect("a record");
    assert!(status.own_limits && status.hold.is_none() && status.limits == Some(limits), "{status:?}");
    let clear = |merchant_id: &str, reason: &str| v1::ClearHoldRequest {
        merchant_id: merchant_id.to_owned(),
        reason: reason.to_owned(),
        limits: None,
    };
    let response = port.run(engine.compliance().clear_hold(with_key(&shop, clear(&shop.id, "me"))));
    refused(response, Code::PermissionDenied, Reason::AdminRequired, &[]);
    let response = port.run(engine.compliance().clear_hold(admin.request(clear(&shop.id, " "))));
    refused(response, Code::InvalidArgument, Reason::ValidationFailed, &["reason"]);
    let response = port.run(engine.compliance().clear_hold(admin.request(clear("mer_nobody", "why"))));
    refused(response, Code::NotFound, Reason::NotFound, &[]);
    let response = port
        .run(engine.reconciliation().list_reconciliations(with_key(&shop, v1::ListReconciliationsRequest::default())));
    refused(response, Code::PermissionDenied, Reason::AdminRequired, &[]);
    let wrong = v1::ListReconciliationsRequest { page_token: "-1".to_owned(), page_size: 0 };
    refused(
        port.run(engine.reconciliation().list_reconciliations(admin.request(wrong))),
        Code::InvalidArgument,
        Reason::ValidationFailed,
        &["cursor"],
    );
    let none = port
        .run(engine.reconciliation().list_reconciliations(admin.request(v1::ListReconciliationsRequest::default())));
    assert_eq!(none.expect("listed").into_inner(), v1::ListReconciliationsResponse::default());
    let listed = v1::ListMerchantsRequest { flagged: Some(true), ..v1::ListMerchantsRequest::default() };
    let listed = port.run(engine.merchants().list_merchants(admin.request(listed))).expect("listed").into_inner();
    assert_eq!((listed.total_size, listed.merchants.len()), (0, 0));
}

fn a_service_manages_a_merchants_webhooks() {
    let port = Port::open();
    let (engine, shop, other) = (port.engine(), port.dev.shop(), port.dev.shop());
    let test = || v1::SendTestWebhookRequest { merchant_id: shop.id.clone(), ..Default::default() };
    let response = port.run(engine.webhook_endpoints().send_test_webhook(with_key(&shop, test())));
    refused(response, Code::FailedPrecondition, Reason::NoWebhookEndpoint, &[]);
    let receiver = crate::harness::Receiver::start();
    shop.set_webhook(&receiver);
    let sent = port
        .run(engine.webhook_endpoints().send_test_webhook(with_key(&shop, test())))
        .expect("sent")
        .into_record()
        .expect("a record");
    assert_eq!(sent.trigger(), v1::WebhookTrigger::Test);
    receiver.hook(0);
    let named = v1::GetWebhookDeliveryRequest { merchant_id: shop.id.clone(), delivery_id: sent.id.clone() };
    let get = || port.run(engine.webhook_endpoints().get_webhook_delivery(with_key(&shop, named.clone())));
    let delivered = crate::harness::until("it is delivered", || {
        let logged = get().expect("read").into_record().expect("a record");
        (logged.state() == v1::WebhookDeliveryState::Delivered).then_some(logged)
    });
    assert_eq!((delivered.attempts, delivered.attempt_log.len(), delivered.last_http_status), (1, 1, Some(200)));
    let again = v1::RedeliverWebhookRequest { merchant_id: shop.id.clone(), delivery_id: sent.id.clone() };
    let again = port.run(engine.webhook_endpoints().redeliver_webhook(with_key(&shop, again)));
    let again = again.expect("sent again").into_record().expect("a record");
    assert_eq!((again.trigger(), &again.event_id), (v1::WebhookTrigger::Manual, &sent.event_id));
    assert_ne!(again.id, sent.id);
    let list = |page_size, page_token: String| v1::ListWebhookDeliveriesRequest {
        merchant_id: shop.id.clone(),
        page_size,
        page_token,
        ..v1::ListWebhookDeliveriesRequest::default()
    };
    let first = port.run(engine.webhook_endpoints().list_webhook_deliveries(with_key(&shop, list(1, String::new()))));
    let first = first.expect("listed").into_inner();
    assert_eq!(first.deliveries[0].id, again.id);
    let rest = list(1, first.next_page_token);
    let rest = port.run(engine.webhook_endpoints().list_webhook_deliveries(with_key(&shop, rest))).expect("listed");
    assert_eq!(rest.into_inner().deliveries[0].id, sent.id);
    let enable =
        v1::EnableWebhookEndpointRequest { merchant_id: shop.id.clone(), replay_since: None, endpoint_id: None };
    let enabled = port.run(engine.webhook_endpoints().enable_webhook_endpoint(with_key(&shop, enable)));
    assert!(enabled.expect("enabled").into_inner().endpoint.is_some_and(|endpoint| endpoint.enabled));
    let wrong = v1::ReplayWebhooksRequest {
        merchant_id: shop.id.clone(),
        since: Some(proto::time::from_millis(1)),
        endpoint_id: None,
    };
    let response = port.run(engine.webhook_endpoints().replay_webhooks(with_key(&shop, wrong)));
    refused(response, Code::InvalidArgument, Reason::ValidationFailed, &["since"]);
    let response = port.run(engine.webhook_endpoints().get_webhook_delivery(with_key(&other, named)));
    refused(response, Code::PermissionDenied, Reason::ForbiddenMerchant, &[]);
    let log = v1::ListAuditRequest { merchant_id: Some(shop.id.clone()), ..v1::ListAuditRequest::default() };
    let log = port.run(engine.audit_log().list_audit(Caller::with_key(port.dev.admin_key()).request(log)));
    let reported: Vec<_> = log.expect("listed").into_inner().entries.into_iter().map(|entry| entry.action).collect();
    assert_eq!(reported[..3], ["webhook_enabled", "webhook_redelivered", "webhook_tested"]);
}

fn a_service_proves_and_changes_accounts() {
    use v1::{AccountChallengeAction, AccountProofMethod, AccountVerification};
    let port = Port::open();
    let engine = port.engine();
    let shop = port.dev.shop();
    let list =
        || port.run(engine.unmatched_transfers().list_unmatched(with_key(&shop, v1::ListUnmatchedRequest::default())));
    let refused = list().expect_err("nothing is proven");
    assert_eq!((refused.code(), ApiError::from(refused).reason), (Code::PermissionDenied, Reason::AccountNotProven));
    let id = || shop.id.clone();
    let challenge = |hive_account: Option<String>, cancel| {
        let request = v1::IssueAccountChallengeRequest { merchant_id: id(), hive_account, cancel };
        port.run(engine.account_proofs().issue_account_challenge(with_key(&shop, request)))
            .expect("issued")
            .into_inner()
    };
    let submit = |challenge: &v1::IssueAccountChallengeResponse, signer: &crate::harness::Payer| {
        let signatures = vec![signer.sign(&challenge.text)];
        let request = v1::SubmitAccountProofRequest { merchant_id: id(), nonce: challenge.nonce.clone(), signatures };
        port.run(engine.account_proofs().submit_account_proof(with_key(&shop, request)))
    };
    let issued = challenge(None, false);
    assert_eq!((issued.action(), &issued.hive_account), (AccountChallengeAction::Verify, &shop.account.name));
    let wrong = submit(&issued, &port.dev.demo_account("alice")).expect_err("another account's key");
    assert_eq!(ApiError::from(wrong).fields[0].field, "signatures[0]");
    let proven = submit(&issued, &shop.account).expect("proven").into_inner();
    let merchant = proven.merchant.expect("the merchant");
    assert!(proven.complete && merchant.account_verified_at.is_some());
    assert_eq!(merchant.account_verification(), AccountVerification::Verified);
    assert_eq!(merchant.account_verified_by(), AccountProofMethod::Signature);
    assert_eq!(submit(&issued, &shop.account).expect_err("it is used up").code(), Code::NotFound);
    list().expect("the owner may read");

    let new = port.dev.ledger.account("new");
    let update = || v1::UpdateMerchantRequest {
        merchant_id: id(),
        hive_account: Some(new.name.clone()),
        ..v1::UpdateMerchantRequest::default()
    };
    let asked = port
        .run(engine.merchants().update_merchant(with_key(&shop, update())))
        .expect("asked")
        .into_record()
        .expect("a record");
    assert_eq!(asked.pending_account.map(|pending| pending.hive_account), Some(new.name.clone()));
    let change = challenge(None, false);
    assert_eq!((change.action(), change.new_hive_account()), (AccountChallengeAction::Change, new.name.as_str()));
    let cancel = challenge(None, true);
    assert_eq!((cancel.action(), cancel.new_hive_account()), (AccountChallengeAction::CancelChange, ""));
    let kept = submit(&cancel, &shop.account).expect("cancelled").into_inner().merchant.expect("the merchant");
    assert_eq!((kept.pending_account, kept.hive_account), (None, shop.account.name.clone()));
    let nothing = v1::CancelAccountChangeRequest { merchant_id: id() };
    let nothing = port.run(engine.account_proofs().cancel_account_change(with_key(&shop, nothing)));
    assert_eq!(ApiError::from(nothing.expect_err("nothing is pending")).reason, Reason::NoPendingAccount);

    port.run(engine.merchants().update_merchant(with_key(&shop, update()))).expect("asked again");
    let word = v1::VerifyMerchantRequest { merchant_id: id(), hive_account: Some(new.name.clone()) };
    let vouched =
        port.run(engine.account_proofs().verify_merchant(word)).expect("vouched").into_record().expect("a record");
    let pending = vouched.pending_account.expect("it waits a day nevertheless");
    assert!(pending.current_proven && pending.new_proven && vouched.hive_account == shop.account.name);
    let cancel = v1::CancelAccountChangeRequest { merchant_id: id() };
    let cancelled =
        port.run(engine.account_proofs().cancel_account_change(with_key(&shop, cancel))).expect("cancelled");
    assert_eq!(cancelled.into_record().expect("a record").pending_account, None);
}
