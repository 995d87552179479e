//! Compliance: a payment above a limit, the resulting hold, and its clearance by an admin.

use serde_json::{Value, json};

use crate::harness::{Dev, Shop};

crate::tests!(a_merchant_above_its_limits_is_on_hold_until_an_admin_clears_it);

fn create(shop: &Shop, path: &str, units: u64) -> crate::harness::Response {
    let body = json!({ "amount": units.to_string(), "currency": "HBD", "description": "A mug" });
    shop.post(&format!("/api/public/payments{path}"), &body).send()
}

fn a_merchant_above_its_limits_is_on_hold_until_an_admin_clears_it() {
    let dev = Dev::with(&[
        "--limits=production",
        "--set=limits.register=",
        "--set=limits.compliance_single_cents=1000",
        "--set=limits.compliance_daily_cents=1500",
        "--set=limits.compliance_contact=compliance@pay.example",
    ]);
    let (shop, other) = (dev.shop(), dev.shop());
    let path = format!("/api/admin/merchants/{}/compliance", shop.id);
    let admin = |method: &str, rest: &str, body: &Value| {
        dev.api.request(method, &format!("{path}{rest}")).bearer(dev.admin_key()).json(body).send()
    };
    let paid: Value = create(&shop, "", 10_000).ok(201);
    let id = paid["id"].as_str().expect("an id");
    dev.ledger.transfer(&dev.demo_account("alice"), &shop.account.name, "10.000 HBD", &format!("pos-{id}"));
    shop.until_status(id, "completed");

    let refused = create(&shop, "", 5_010).refused(403, "compliance_hold");
    let message = refused["statusMessage"].as_str().expect("a message");
    assert!(message.contains("compliance@pay.example") && message.contains("identity verification"), "{message}");
    for path in ["", "/create"] {
        create(&shop, path, 10).refused(403, "compliance_hold");
    }
    assert_eq!(shop.payment(id)["status"], "completed", "reading goes on");
    create(&other, "", 10).ok(201);

    let status = dev.api.get(&path).bearer(dev.admin_key()).send().ok(200);
    assert_eq!((&status["flagged"], &status["flag"]["window"]), (&json!(true), &json!("24h")));
    assert_eq!((&status["flag"]["usdCents"], &status["completedLast24hCents"]), (&json!(1_501), &json!(1_000)));
    dev.api.get(&path).bearer(&shop.key).send().refused(403, "admin_required");
    let list = |query: &str| {
        let page: Value =
            dev.api.get(&format!("/api/admin/merchants/list?{query}")).bearer(dev.admin_key()).send().ok(200);
        let rows = page["data"].as_array().expect("rows");
        assert_eq!(page["pagination"]["total"], rows.len(), "{page}");
        rows.iter().map(|row| (row["id"].clone(), row["flagged"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(list("flagged=true"), [(json!(shop.id), json!(true))]);
    assert!(list("flagged=false").contains(&(json!(other.id), json!(false))));
    assert!(list("limit=100").len() > list("flagged=false&limit=100").len());
    dev.api.get("/api/admin/merchants?flagged=perhaps").bearer(dev.admin_key()).send().wrong(&["flagged"]);
    let file = dev.api.get("/api/admin/merchants/export?format=json&flagged=true").bearer(dev.admin_key()).send();
    assert_eq!(file.ok(200)[0]["id"], json!(shop.id));
    assert!(shop.get("/api/public/merchants/me").send().ok(200)["flagged"].is_null(), "visible to admins only");
    dev.api
        .post(&format!("{path}/clear"), &json!({ "reason": "me" }))
        .bearer(&shop.key)
        .send()
        .refused(403, "admin_required");

    admin("POST", "/clear", &json!({})).wrong(&["reason"]);
    admin("POST", "/clear", &json!({ "reason": "x".repeat(501) })).wrong(&["reason"]);
    admin("POST", "/clear", &json!({ "reason": "x", "limits": { "singleCents": -1 } })).wrong(&[
        "limits.singleCents",
        "limits.dailyCents",
        "limits.monthlyCents",
    ]);
    admin("PUT", "/limits", &json!({ "singleCents": 1 })).wrong(&["dailyCents", "monthlyCents"]);
    create(&shop, "", 10).refused(403, "compliance_hold");
    let limits = json!({ "singleCents": 2_000, "dailyCents": 0, "monthlyCents": 0 });
    let cleared = admin("POST", "/clear", &json!({ "reason": "passport seen", "limits": limits })).ok(200);
    assert_eq!(
        (&cleared["flagged"], &cleared["limits"], &cleared["ownLimits"]),
        (&json!(false), &limits, &json!(true))
    );
    assert_eq!(cleared["clearances"][0]["reason"], "passport seen");
    assert_eq!(list("flagged=true"), []);
    let log: Value =
        dev.api.get(&format!("/api/admin/audit?merchantId={}", shop.id)).bearer(dev.admin_key()).send().ok(200);
    let reported = log["data"].as_array().expect("entries");
    let clearing = reported.iter().find(|entry| entry["action"] == "compliance_cleared").expect("an audit event");
    assert!(clearing["changes"].to_string().contains("passport seen"), "{clearing}");
    assert!(reported.iter().any(|entry| entry["action"] == "merchant_flagged"), "{reported:?}");
    create(&shop, "", 20_000).ok(201);
    let back = admin("PUT", "/limits", &json!({ "limits": null })).ok(200);
    assert_eq!((&back["ownLimits"], &back["limits"]["singleCents"]), (&json!(false), &json!(1_000)));
    create(&shop, "", 20_000).refused(403, "compliance_hold");
    let missing = "/api/admin/merchants/mer_00000000000000000000000000/compliance";
    dev.api.get(missing).bearer(dev.admin_key()).send().refused(404, "not_found");
}
