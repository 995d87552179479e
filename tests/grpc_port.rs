//! The gRPC port as client libraries see it: status codes, health, limits, compression, metrics, graceful shutdown.

use http::uri::PathAndQuery;
use proto::{
    ApiError, Caller, IntoRecord, Reason,
    v1::{self, payment_service_client::PaymentServiceClient},
};
use tokio_stream::StreamExt;
use tonic::{Code, Request, Status, client::Grpc, codec::CompressionEncoding, transport::Channel};
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient};
use tonic_types::StatusExt;

use crate::{
    grpc::{Port, mug, with_key},
    harness::{Shop, until},
};

crate::tests!(
    an_error_is_a_google_rpc_status,
    an_interrupted_watch_is_unavailable_and_a_finished_one_ends_with_ok,
    health_needs_no_token_and_names_every_service,
    malformed_and_oversized_messages_get_the_standard_codes,
    compressed_requests_are_read,
    watches_do_not_exhaust_unary_calls,
    a_request_id_is_echoed_and_calls_are_counted,
    a_mutation_without_a_required_field_is_rejected_and_changes_nothing,
    an_idempotency_key_is_applied_or_rejected,
    a_settlement_honours_a_key_for_a_seller_only,
    a_violation_names_the_path_of_its_field,
    an_unknown_status_is_rejected,
    an_undefined_enum_number_is_rejected_and_changes_nothing,
    a_watch_ends_when_its_key_is_revoked,
    two_different_keys_are_rejected,
    a_call_cancelled_before_its_message_is_not_counted_as_a_failure,
);

fn an_error_is_a_google_rpc_status() {
    let port = Port::open();
    let (engine, shop) = (port.engine(), port.dev.shop());
    let wrong = v1::CreatePaymentRequest {
        amount_units: 0,
        redirect_url: Some("javascript:alert(1)".to_owned()),
        expires_in_seconds: Some(1),
        ..mug()
    };
    let status = port.run(engine.payments().create_payment(with_key(&shop, wrong))).expect_err("refused");
    let details = status.get_error_details();
    let info = details.error_info().expect("ErrorInfo");
    assert_eq!((info.reason.as_str(), info.domain.as_str()), ("VALIDATION_FAILED", "hivetill"));
    let fields: Vec<_> = details.bad_request().expect("BadRequest").field_violations.iter().collect();
    let paths: Vec<_> = fields.iter().map(|field| field.field.as_str()).collect();
    assert_eq!(paths, ["amount_units", "redirect_url", "expires_in_seconds"], "protobuf names");
    assert!(status.message().starts_with("amount_units: "), "{}", status.message());
    assert!(fields.iter().all(|field| !field.description.is_empty()));
    assert!(details.retry_info().is_none(), "a repeat would not help");
    let json: Vec<_> = ApiError::from(status).fields.into_iter().map(|field| field.field).collect();
    assert_eq!(json, ["amount", "redirectUrl", "expiresInSeconds"], "REST keeps its own names");
    let list = v1::ListPaymentsRequest { page_size: 101, ..v1::ListPaymentsRequest::default() };
    let status = port.run(engine.payments().list_payments(with_key(&shop, list))).expect_err("refused");
    assert!(status.message().starts_with("page_size: "), "{}", status.message());
    assert!(ApiError::from(status).message.starts_with("limit: "), "REST keeps its own names");
    let spaced = Caller { idempotency_key: Some(http::HeaderValue::from_static("a b")), ..Caller::with_key(&shop.key) };
    lacks(port.run(engine.payments().create_payment(spaced.request(mug()))), &["idempotency-key"]);
}

fn an_interrupted_watch_is_unavailable_and_a_finished_one_ends_with_ok() {
    let mut port = Port::open();
    let (engine, shop) = (port.engine(), port.dev.shop());
    let (open, done) = (shop.open_payment(), shop.open_payment());
    port.dev.ledger.transfer(&port.dev.demo_account("alice"), &shop.account.name, "1.500 HBD", &done.memo);
    shop.until_status(&done.id, "completed");
    let watch = |id: &str| with_key(&shop, v1::WatchPaymentRequest { payment_id: id.to_owned() });
    let finished: Vec<Result<_, Status>> = port.run(async {
        engine.payments().watch_payment(watch(&done.id)).await.expect("a stream").into_inner().collect().await
    });
    assert!(finished.iter().all(Result::is_ok), "a stream that ended with a final state ends with OK");
    let mut pending = port.run(engine.payments().watch_payment(watch(&open.id))).expect("a stream").into_inner();
    let mut events = port.run(engine.events().watch_events(with_key(&shop, v1::WatchEventsRequest::default())));
    let events = events.as_mut().expect("a stream").get_mut();
    assert!(port.run(pending.next()).expect("at once").is_ok());
    assert!(port.run(events.next()).expect("at once").is_ok());
    let mut health = HealthClient::new(port.channel());
    let mut serving = port.run(health.watch(HealthCheckRequest::default())).expect("a stream").into_inner();
    assert_eq!(port.run(serving.next()).expect("at once").expect("healthy").status(), ServingStatus::Serving);
    port.dev.process.signal("TERM");
    let cut = port.run(pending.next()).expect("a status").expect_err("cut off");
    assert_eq!(cut.code(), Code::Unavailable, "{cut:?}");
    let cut = port.run(events.next()).expect("a status").expect_err("cut off");
    assert_eq!(cut.code(), Code::Unavailable, "{cut:?}");
    let reported = port.run(serving.next()).expect("a status").expect("a change");
    assert_eq!(reported.status(), ServingStatus::NotServing);
    assert!(port.dev.process.wait().success());
}

fn health_needs_no_token_and_names_every_service() {
    let port = Port::open();
    let mut health = HealthClient::new(port.channel());
    for service in proto::SERVICES.iter().chain(&[""]) {
        let asked = HealthCheckRequest { service: (*service).to_owned() };
        let response = port.run(health.check(asked)).unwrap_or_else(|refused| panic!("{service}: {refused}"));
        assert_eq!(response.into_inner().status(), ServingStatus::Serving, "{service}");
    }
    let asked = HealthCheckRequest { service: "hivetill.engine.v1.Nobody".to_owned() };
    assert_eq!(port.run(health.check(asked)).expect_err("unknown").code(), Code::NotFound);
}

/// A message with bytes where the interface has text.
#[derive(Clone, PartialEq, prost::Message)]
struct NotText {
    #[prost(bytes = "vec", tag = "1")]
    payment_id: Vec<u8>,
}

fn malformed_and_oversized_messages_get_the_standard_codes() {
    let port = Port::open();
    let (engine, shop) = (port.engine(), port.dev.shop());
    let malformed = async {
        let mut client: Grpc<Channel> = Grpc::new(port.channel_async().await);
        client.ready().await.expect("ready");
        let mut request = with_key(&shop, NotText { payment_id: vec![0xff, 0xfe] });
        request.metadata_mut().insert("authorization", port.bearer());
        let path = PathAndQuery::from_static("/hivetill.engine.v1.PaymentService/GetPayment");
        let codec = tonic_prost::ProstCodec::<NotText, v1::GetPaymentResponse>::default();
        client.unary(request, path, codec).await
    };
    let status = port.run(malformed).expect_err("refused");
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    let large = v1::CreatePaymentRequest { description: "x".repeat(5 << 20), ..mug() };
    let status = port.run(engine.payments().create_payment(with_key(&shop, large))).expect_err("refused");
    assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
    let mut headers = with_key(&shop, mug());
    headers.metadata_mut().insert("x-large", "x".repeat(64 << 10).parse().expect("text"));
    let status = port.run(engine.payments().create_payment(headers)).expect_err("refused");
    assert_ne!(status.code(), Code::Ok);
    let small = port.run(engine.payments().create_payment(with_key(&shop, mug())));
    assert!(small.is_ok(), "large headers of one call do not end the connection: {small:?}");
}

fn compressed_requests_are_read() {
    let port = Port::open();
    let shop = port.dev.shop();
    let client = PaymentServiceClient::new(port.transport());
    let mut client = client.send_compressed(CompressionEncoding::Gzip).accept_compressed(CompressionEncoding::Gzip);
    let made = port.run(client.create_payment(with_key(&shop, mug()))).expect("created");
    assert_eq!(made.metadata().get("grpc-encoding").map(|value| value.as_bytes()), Some(b"gzip".as_slice()));
    assert_eq!(made.into_record().expect("a payment").description, mug().description);
}

fn watches_do_not_exhaust_unary_calls() {
    let port = Port::open();
    let (engine, shop) = (port.engine(), port.dev.shop());
    let payment = shop.open_payment();
    let asked = || v1::WatchPaymentRequest { payment_id: payment.id.clone() };
    let get = v1::GetPaymentRequest { payment_id: payment.id.clone() };
    let mut streams = Vec::new();
    let refused = port.run(async {
        loop {
            match engine.payments().watch_payment(with_key(&shop, asked())).await {
                Ok(stream) => streams.push(stream),
                Err(refused) => return refused,
            }
            assert!(streams.len() < 1_024, "no limit");
        }
    });
    assert_eq!((refused.code(), streams.len()), (Code::ResourceExhausted, 512), "{refused:?}");
    let details = refused.get_error_details();
    let info = details.error_info().expect("ErrorInfo");
    assert_eq!((info.reason.as_str(), info.domain.as_str()), ("RATE_LIMITED", "hivetill"));
    assert!(refused.message().contains("has the maximum of 512 watches; open another connection"), "{refused:?}");
    assert!(details.retry_info().is_none() && details.bad_request().is_none(), "no wait ends a watch: {details:?}");
    assert!(port.run(engine.payments().get_payment(with_key(&shop, get))).is_ok(), "unary calls go on");
    streams.truncate(500);
    let again = until("an ended watch frees its place", || {
        port.run(engine.payments().watch_payment(with_key(&shop, asked()))).ok()
    });
    drop(again);
}

fn a_request_id_is_echoed_and_calls_are_counted() {
    let mut port = Port::with(&["--set=metrics.listen=127.0.0.1:0", "--set=log.level=info"]);
    let metrics = crate::operations::metrics::metrics_of(&mut port.dev.process);
    let (engine, shop) = (port.engine(), port.dev.shop());
    let named = |shop: &Shop| -> Request<v1::GetPaymentRequest> {
        let id = http::HeaderValue::from_static("order-4711");
        let caller = Caller { request_id: Some(id), ..Caller::with_key(&shop.key) };
        caller.request(v1::GetPaymentRequest { payment_id: shop.open_payment().id })
    };
    let response = port.run(engine.payments().get_payment(named(&shop))).expect("read");
    assert_eq!(response.metadata().get("x-request-id").and_then(|id| id.to_str().ok()), Some("order-4711"));
    let refused = port.run(engine.payments().get_payment(v1::GetPaymentRequest::default())).expect_err("no key");
    assert_eq!(ApiError::from(refused).reason, Reason::InvalidApiKey);
    let page = metrics.get("/metrics").send().text();
    for line in [
        "hivetill_grpc_server_handled_total{method=\"hivetill.engine.v1.PaymentService/GetPayment\",code=\"OK\"} 1",
        "hivetill_grpc_server_handled_total{method=\"hivetill.engine.v1.PaymentService/GetPayment\",code=\"UNAUTHENTICATED\"} 1",
        "hivetill_grpc_server_handling_seconds_count{method=\"hivetill.engine.v1.PaymentService/GetPayment\"} 2",
    ] {
        assert!(page.contains(line), "{line} is not in\n{page}");
    }
}

#[track_caller]
fn lacks<T>(response: Result<T, Status>, paths: &[&str]) {
    let status = response.map(|_| ()).expect_err("refused");
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    let details = status.get_error_details();
    let fields = &details.bad_request().expect("BadRequest").field_violations;
    assert_eq!(fields.iter().map(|field| field.field.as_str()).collect::<Vec<_>>(), paths);
}

fn a_mutation_without_a_required_field_is_rejected_and_changes_nothing() {
    let port = Port::open();
    let (engine, shop) = (port.engine(), port.dev.shop());
    let admin = Caller::with_key(port.dev.admin_key());
    let merchant_id = || shop.id.clone();
    let read = || {
        let request = with_key(&shop, v1::GetCurrentMerchantRequest {});
        port.run(engine.merchants().get_current_merchant(request)).expect("read").into_record().expect("a merchant")
    };
    let change = |icon_url| {
        let request = v1::UpdateMerchantRequest { merchant_id: merchant_id(), icon_url, ..Default::default() };
        port.run(engine.merchants().update_merchant(with_key(&shop, request)))
    };
    change(Some(v1::TextChange::from(Some("https://shop.example/icon.png".to_owned())))).expect("set");
    let before = read();
    lacks(change(Some(v1::TextChange::default())), &["icon_url"]);
    let request = v1::SetMerchantActiveRequest { merchant_id: merchant_id(), active: None };
    lacks(port.run(engine.merchants().set_merchant_active(admin.request(request))), &["active"]);
    let request = v1::RotateWebhookSecretRequest { merchant_id: merchant_id(), grace_hours: None };
    lacks(port.run(engine.merchants().rotate_webhook_secret(with_key(&shop, request))), &["grace_hours"]);
    let keys = v1::ListApiKeysRequest { merchant_id: merchant_id() };
    let keys = port.run(engine.api_keys().list_api_keys(with_key(&shop, keys))).expect("listed").into_inner().keys;
    let key_id = keys[0].id.clone();
    let request = v1::RollApiKeyRequest { merchant_id: merchant_id(), key_id, overlap_hours: None };
    lacks(port.run(engine.api_keys().roll_api_key(with_key(&shop, request))), &["overlap_hours"]);
    let limit = |change| {
        let request = v1::SetMerchantLimitsRequest { merchant_id: merchant_id(), change };
        port.run(engine.compliance().set_merchant_limits(admin.request(request)))
    };
    let part = v1::Thresholds { single_cents: Some(5), ..v1::Thresholds::default() };
    lacks(limit(None), &["limits"]);
    lacks(
        limit(Some(v1::set_merchant_limits_request::Change::Limits(part))),
        &["limits.daily_cents", "limits.monthly_cents"],
    );
    let reason = "checked".to_owned();
    let request = v1::ClearHoldRequest { merchant_id: merchant_id(), reason, limits: Some(v1::Thresholds::default()) };
    let cleared = port.run(engine.compliance().clear_hold(admin.request(request)));
    lacks(cleared, &["limits.single_cents", "limits.daily_cents", "limits.monthly_cents"]);
    let tiers = vec![v1::FeeTier::default()];
    let free = port.run(engine.billing().set_fee_tiers(admin.request(v1::SetFeeTiersRequest { tiers })));
    lacks(free, &["tiers[0].percent_ten_thousandths"]);
    let request = v1::ReplayWebhooksRequest { merchant_id: merchant_id(), since: None, endpoint_id: None };
    lacks(port.run(engine.webhook_endpoints().replay_webhooks(with_key(&shop, request))), &["since"]);
    let after = read();
    assert_eq!((after.active, &after.icon_url), (true, &before.icon_url));
    let request = v1::GetComplianceStatusRequest { merchant_id: merchant_id() };
    let status = port.run(engine.compliance().get_compliance_status(admin.request(request))).expect("read");
    assert!(!status.into_record().expect("a status").own_limits);
    let tiers = port.run(engine.billing().get_fee_tiers(admin.request(v1::GetFeeTiersRequest {}))).expect("read");
    assert_eq!(tiers.into_record().expect("tiers").version, 0);
}

fn an_idempotency_key_is_applied_or_rejected() {
    let port = Port::open();
    let (engine, shop) = (port.engine(), port.dev.shop());
    let key = http::HeaderValue::from_static("order-4711");
    let caller = Caller { idempotency_key: Some(key), ..Caller::with_key(&shop.key) };
    let create = || {
        let made = port.run(engine.payments().create_payment(caller.request(mug()))).expect("created");
        made.into_record().expect("a payment").id
    };
    let first = create();
    assert_eq!(create(), first, "done once");
    let (merchant_id, name, scopes) =
        (shop.id.clone(), "second".to_owned(), vec![v1::ApiKeyScope::PaymentsRead.into()]);
    let request = v1::CreateApiKeyRequest { merchant_id: merchant_id.clone(), name, scopes };
    lacks(port.run(engine.api_keys().create_api_key(caller.request(request))), &["idempotency-key"]);
    let request = v1::RotateWebhookSecretRequest { merchant_id: merchant_id.clone(), grace_hours: Some(1) };
    lacks(port.run(engine.merchants().rotate_webhook_secret(caller.request(request))), &["idempotency-key"]);
    let request = v1::CancelPaymentRequest { payment_id: first.clone() };
    lacks(port.run(engine.payments().cancel_payment(caller.request(request))), &["idempotency-key"]);
    let id = first.clone();
    let request = v1::GetPaymentRequest { payment_id: first };
    let read = port.run(engine.payments().get_payment(caller.request(request))).expect("a read takes no notice of it");
    assert_eq!(read.into_record().expect("a payment").status(), v1::PaymentStatus::Pending, "nothing was cancelled");
    let keys = port.run(engine.api_keys().list_api_keys(with_key(&shop, v1::ListApiKeysRequest { merchant_id })));
    assert_eq!(keys.expect("listed").into_inner().keys.len(), 1);
    shop.cancelled(&id);
    let again = port.run(engine.payments().create_payment(caller.request(mug()))).expect("repeated");
    assert_eq!(again.metadata().get("idempotent-replayed").map(|value| value.as_bytes()), Some(b"true".as_slice()));
    assert_eq!(again.into_record().expect("a payment").status(), v1::PaymentStatus::UserCancelled, "as it is now");
}

fn a_settlement_honours_a_key_for_a_seller_only() {
    let port = Port::open();
    let (engine, shop) = (port.engine(), port.dev.shop());
    let named = Caller { idempotency_key: Some(http::HeaderValue::from_static("order-1")), ..Caller::default() };
    let of_seller = Caller { api_key: Caller::with_key(&shop.key).api_key, ..named.clone() };
    let settle = |caller: &Caller, target: v1::x402_payment::Target| {
        let payment = Some(v1::X402Payment { target: Some(target), x402_version: 1, ..Default::default() });
        port.run(engine.x402().settle_payment(caller.request(v1::SettlePaymentRequest { payment, resource: None })))
    };
    let session = || v1::x402_payment::Target::SessionId(shop.open_payment().id);
    let requirements = || v1::x402_payment::Target::Requirements(v1::X402Requirements::default());
    lacks(settle(&named, session()), &["idempotency-key"]);
    lacks(settle(&of_seller, session()), &["idempotency-key"]);
    lacks(settle(&named, requirements()), &["idempotency-key"]);
    settle(&of_seller, requirements()).expect("a verdict");
    settle(&Caller::default(), session()).expect("a verdict");
}

fn a_violation_names_the_path_of_its_field() {
    let port = Port::open();
    let (engine, shop) = (port.engine(), port.dev.shop());
    let unnamed = Caller { idempotency_key: Some(http::HeaderValue::from_static("")), ..Caller::with_key(&shop.key) };
    lacks(port.run(engine.payments().create_payment(unnamed.request(mug()))), &["idempotency-key"]);
    let request = v1::SendTestWebhookRequest { merchant_id: shop.id.clone(), ..Default::default() };
    lacks(port.run(engine.webhook_endpoints().send_test_webhook(unnamed.request(request))), &["idempotency-key"]);
    let request = v1::SettlePaymentRequest { payment: Some(v1::X402Payment::default()), resource: None };
    lacks(port.run(engine.x402().settle_payment(Caller::default().request(request))), &["payment.session_id"]);
    let request = v1::UpdateMerchantRequest {
        merchant_id: shop.id.clone(),
        webhook_events: Some(v1::WebhookEvents { types: vec![99] }),
        ..Default::default()
    };
    lacks(port.run(engine.merchants().update_merchant(with_key(&shop, request))), &["webhook_events.types"]);
}

fn an_unknown_status_is_rejected() {
    let port = Port::open();
    let (engine, shop) = (port.engine(), port.dev.shop().prove());
    let list = |statuses| {
        let request = v1::ListUnmatchedRequest { statuses, ..Default::default() };
        port.run(engine.unmatched_transfers().list_unmatched(with_key(&shop, request)))
    };
    for unknown in [vec![77], vec![0], vec![1, -1]] {
        lacks(list(unknown), &["statuses"]);
    }
    for known in [vec![], vec![1], vec![1, 2, 3]] {
        list(known).expect("a list");
    }
}

fn an_undefined_enum_number_is_rejected_and_changes_nothing() {
    let port = Port::open();
    let (engine, shop) = (port.engine(), port.dev.shop());
    let merchant_id = || shop.id.clone();
    let known = i32::from(v1::ApiKeyScope::PaymentsRead);
    // An unknown number next to a known one must not be silently dropped.
    for scopes in [vec![known, 99], vec![0], vec![known, -1], vec![]] {
        let request = v1::CreateApiKeyRequest { merchant_id: merchant_id(), name: "till".to_owned(), scopes };
        lacks(port.run(engine.api_keys().create_api_key(with_key(&shop, request))), &["scopes"]);
    }
    let known = i32::from(v1::EventType::PaymentStatusChanged);
    for types in [vec![known, 99], vec![known, 0], vec![]] {
        let request = v1::UpdateMerchantRequest {
            merchant_id: merchant_id(),
            webhook_events: Some(v1::WebhookEvents { types }),
            ..v1::UpdateMerchantRequest::default()
        };
        lacks(port.run(engine.merchants().update_merchant(with_key(&shop, request))), &["webhook_events.types"]);
    }
    for kind in [0, 99] {
        let request = v1::SendTestWebhookRequest {
            merchant_id: merchant_id(),
            r#type: Some(kind),
            status: None,
            endpoint_id: None,
        };
        lacks(port.run(engine.webhook_endpoints().send_test_webhook(with_key(&shop, request))), &["type"]);
    }
    let request = v1::ListApiKeysRequest { merchant_id: merchant_id() };
    let keys = port.run(engine.api_keys().list_api_keys(with_key(&shop, request))).expect("listed").into_inner().keys;
    assert_eq!(keys.len(), 1, "no key was made");
    let read = port.run(engine.merchants().get_current_merchant(with_key(&shop, v1::GetCurrentMerchantRequest {})));
    let merchant = read.expect("read").into_record().expect("a merchant");
    assert_eq!(merchant.webhook_events, [known], "as it was");
}

fn a_watch_ends_when_its_key_is_revoked() {
    let port = Port::open();
    let (engine, shop) = (port.engine(), port.dev.shop());
    let (merchant_id, payment) = (|| shop.id.clone(), shop.open_payment());
    port.run(async {
        let scopes = vec![v1::ApiKeyScope::PaymentsRead.into()];
        let request = v1::CreateApiKeyRequest { merchant_id: merchant_id(), name: "till".to_owned(), scopes };
        let made = engine.api_keys().create_api_key(with_key(&shop, request)).await.expect("made").into_inner();
        let request = v1::WatchPaymentRequest { payment_id: payment.id.clone() };
        let watch = engine.payments().watch_payment(Caller::with_key(&made.api_key).request(request)).await;
        let mut watch = watch.expect("a stream").into_inner();
        watch.message().await.expect("the payment now");
        let key_id = made.key.expect("a record").id;
        let request = v1::RevokeApiKeyRequest { merchant_id: merchant_id(), key_id };
        engine.api_keys().revoke_api_key(with_key(&shop, request)).await.expect("revoked");
        let request = v1::CancelPaymentRequest { payment_id: payment.id.clone() };
        engine.payments().cancel_payment(with_key(&shop, request)).await.expect("asked");
        let refused = watch.message().await.expect_err("the key opens nothing any more");
        assert_eq!((refused.code(), ApiError::from(refused).reason), (Code::Unauthenticated, Reason::InvalidApiKey));
    });
}

fn two_different_keys_are_rejected() {
    let port = Port::open();
    let (engine, shop, other) = (port.engine(), port.dev.shop(), port.dev.shop());
    let mut request = with_key(&shop, v1::GetCurrentMerchantRequest {});
    request.metadata_mut().append("x-api-key", other.key.parse().expect("a value"));
    let refused = port.run(engine.merchants().get_current_merchant(request)).expect_err("whose call is it?");
    assert_eq!(ApiError::from(refused).reason, Reason::ConflictingCredentials);
    let mut request = with_key(&shop, v1::GetCurrentMerchantRequest {});
    request.metadata_mut().append("x-api-key", shop.key.parse().expect("a value"));
    port.run(engine.merchants().get_current_merchant(request)).expect("the same twice is one");

    let create = |keys: &[&'static str]| {
        let mut request = with_key(&shop, mug());
        for key in keys {
            request.metadata_mut().append("idempotency-key", key.parse().expect("a value"));
        }
        port.run(engine.payments().create_payment(request))
    };
    lacks(create(&["order-1", "order-2"]), &["idempotency-key"]);
    create(&["order-3", "order-3"]).expect("the same twice is one");
    let body = crate::harness::order();
    let post = || shop.post("/api/public/payments", &body);
    post().header("idempotency-key", "order-4").header("idempotency-key", "order-5").send().wrong(&["Idempotency-Key"]);
    assert_eq!(shop.get("/api/public/payments").send().ok(200)["data"].as_array().map(Vec::len), Some(1));
}

fn a_call_cancelled_before_its_message_is_not_counted_as_a_failure() {
    let mut port = Port::with(&["--set=metrics.listen=127.0.0.1:0", "--set=log.level=info"]);
    let metrics = crate::operations::metrics::metrics_of(&mut port.dev.process);
    let shop = port.dev.shop();
    let mut client: Grpc<Channel> = Grpc::new(port.channel());
    let mut request = with_key(&shop, tokio_stream::pending::<v1::GetPaymentRequest>());
    request.metadata_mut().insert("authorization", port.bearer());
    let path = PathAndQuery::from_static("/hivetill.engine.v1.PaymentService/GetPayment");
    let codec = tonic_prost::ProstCodec::<v1::GetPaymentRequest, v1::GetPaymentResponse>::default();
    let mut call = Box::pin(async move {
        client.ready().await.expect("ready");
        client.client_streaming(request, path, codec).await
    });
    // The call and its connection exist only while their runtime runs.
    let a_moment = std::time::Duration::from_millis(5);
    let shows = |line: &str| metrics.get("/metrics").send().text().contains(line).then_some(());
    until("the call to be open", || {
        let response = port.run(async { tokio::time::timeout(a_moment, &mut call).await });
        assert!(response.is_err(), "it waits for its message: {response:?}");
        shows("hivetill_grpc_server_open_calls 1\n")
    });
    drop(call);
    until("the call to be cancelled", || {
        let _ = port.run(async { tokio::time::timeout(a_moment, std::future::pending::<()>()).await });
        shows("{method=\"hivetill.engine.v1.PaymentService/GetPayment\",code=\"CANCELLED\"} 1")
    });
    assert!(!metrics.get("/metrics").send().text().contains("code=\"INTERNAL\""));
}
