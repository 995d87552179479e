//! Test and live gateways are distinguishable: by programs before they sell anything, and by people on every page.

use proto::{Caller, IntoRecord, v1};
use serde_json::Value;

use crate::{dashboard::Visitor, grpc::Port, harness::shared};

crate::tests!(
    health_and_merchant_records_show_the_mode,
    grpc_shows_the_mode,
    every_page_of_a_development_network_shows_the_test_mode,
);

#[track_caller]
fn is_development(record: &Value) {
    assert_eq!((&record["livemode"], &record["network"]), (&false.into(), &"development".into()), "{record}");
}

fn health_and_merchant_records_show_the_mode() {
    let dev = shared();
    let shop = dev.shop();
    is_development(&dev.api.get("/api/health").send().ok(200));
    is_development(&shop.get("/api/public/merchants/me").send().ok(200));
    is_development(&shop.get(&format!("/api/public/merchants/{}", shop.id)).send().ok(200));
    let found = dev.api.get(&format!("/api/admin/merchants?query={}", shop.id)).bearer(dev.admin_key()).send().ok(200);
    is_development(&found["data"][0]);
}

fn grpc_shows_the_mode() {
    let port = Port::open();
    let shop = port.dev.shop();
    let engine = port.engine();
    port.run(async {
        let health = engine.system().get_health(Caller::default().request(v1::GetHealthRequest {})).await;
        let health = health.expect("health").into_inner();
        assert_eq!((health.livemode, health.network()), (false, v1::LedgerNetwork::Development));
        let request = Caller::with_key(&shop.key).request(v1::GetCurrentMerchantRequest {});
        let me = engine
            .merchants()
            .get_current_merchant(request)
            .await
            .and_then(IntoRecord::into_record)
            .expect("a merchant");
        assert_eq!((me.livemode, me.network()), (false, v1::LedgerNetwork::Development));
    });
}

fn every_page_of_a_development_network_shows_the_test_mode() {
    let dev = shared();
    let shop = dev.shop();
    let (open, paid) = (shop.open_payment(), shop.open_payment());
    dev.ledger.transfer(&dev.demo_account("bob"), &shop.account.name, "1.500 HBD", &paid.memo);
    shop.until_status(&paid.id, "completed");
    let check = |path: &str, response: &crate::harness::Response| {
        let page = response.text();
        assert_eq!(page.matches("id=\"test-mode\"").count(), 1, "{path}: {page}");
        assert!(page.contains("No real money moves."), "{path}: {page}");
    };
    let own = [format!("/for/{}", open.slug), format!("/for/{}", paid.slug)];
    let none = [
        format!("/checkout/{}", paid.id),
        "/for/nothing".to_owned(),
        "/checkout/pay_nothing".to_owned(),
        "/dashboard/login".to_owned(),
        "/docs".to_owned(),
    ];
    for path in own.iter().chain(&none) {
        check(path, &dev.api.get(path).header("accept", "text/html").send());
    }
    let visitor = Visitor::log_in(&dev.api, dev.admin_key());
    for path in [
        "",
        "/payments",
        "/payments/new",
        "/unmatched",
        "/webhooks",
        "/settings",
        "/account",
        "/merchants",
        "/audit",
        "/nodes",
        "/nothing",
        "/payments/pay_nothing",
    ] {
        let path = format!("/dashboard{path}");
        check(&path, &visitor.get(&path));
    }
}
