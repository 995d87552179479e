//! Unmatched transfers of a merchant: listed, assigned, ignored, refunded.

use serde_json::{Value, json};

use crate::harness::{Shop, shared, until};

crate::tests!(
    a_transfer_without_a_memo_is_listed_with_its_candidates_and_assigned,
    a_recurrent_transfer_is_listed_and_pays_no_session,
    transfers_of_other_merchants_are_not_found,
    a_late_payment_is_resolved_and_needs_no_attention,
    a_refund_is_prepared_signed_and_recorded,
    every_field_of_these_requests_is_validated_by_name,
);

/// Waits until a shop has this number of unmatched transfers, and returns them, newest first.
#[track_caller]
fn unmatched_of(shop: &Shop, count: usize) -> Vec<Value> {
    until("the transfers to be listed", || {
        let list = shop.get("/api/public/unmatched?status=open").send().ok(200);
        let data = list["data"].as_array().expect("data").clone();
        (data.len() == count).then_some(data)
    })
}

fn path(unmatched: &Value, rest: &str) -> String {
    format!("/api/public/unmatched/{}{rest}", unmatched["id"].as_str().expect("an id"))
}

fn a_transfer_without_a_memo_is_listed_with_its_candidates_and_assigned() {
    let dev = shared();
    let (shop, alice) = (dev.shop().prove(), dev.demo_account("alice"));
    let (wanted, other) = (shop.open_payment(), shop.open_payment());
    let unlike = shop.open_with(&json!({ "amount": "77", "currency": "HIVE", "description": "unlike" }));
    let tx_id = dev.ledger.transfer(&alice, &shop.account.name, "1.500 HBD", "thanks!");
    let unmatched = unmatched_of(&shop, 1).remove(0);
    assert_eq!(
        (&unmatched["txId"], &unmatched["reason"], &unmatched["from"]),
        (&json!(tx_id), &json!("no_session"), &json!("alice"))
    );
    assert_eq!(unmatched["amount"], json!({ "value": "1500", "formatted": "1.500 HBD", "currency": "HBD" }));
    let found = shop.get(&path(&unmatched, "/candidates")).send().ok(200);
    let ids: Vec<_> = found["data"].as_array().expect("data").iter().map(|c| c["payment"]["id"].clone()).collect();
    assert_eq!(ids, [json!(other.id), json!(wanted.id)], "newest first, and not {}", unlike.id);
    assert_eq!(found["data"][0]["matches"], json!(["amount", "time"]));

    let assign = |id: &str| shop.post(&path(&unmatched, "/assign"), &json!({ "paymentId": id })).send();
    let paid = assign(&wanted.id).ok(200);
    assert_eq!((&paid["status"], &paid["exceptions"]), (&json!("completed"), &json!(["manual"])));
    assert_eq!((&paid["transfers"][0]["route"], &paid["internalId"]), (&json!("manual"), &json!(tx_id)));
    assert_eq!(assign(&wanted.id).ok(200), paid, "the same again is the same");
    assign(&other.id).refused(409, "transfer_assigned");
    shop.post(&path(&unmatched, "/ignore"), &json!({})).send().refused(409, "transfer_assigned");
    let kept = shop.get(&path(&unmatched, "")).send().ok(200);
    assert_eq!((&kept["status"], &kept["paymentId"]), (&json!("assigned"), &json!(wanted.id)));
    assert!(kept["handledBy"].as_str().is_some_and(|by| by.starts_with("key_")), "{kept}");
    assert_eq!(unmatched_of(&shop, 0), [] as [Value; 0]);

    for memo in ["one", "two", "three"] {
        dev.ledger.transfer(&alice, &shop.account.name, "0.001 HBD", memo);
    }
    let all = unmatched_of(&shop, 3);
    let page = shop.get("/api/public/unmatched?status=open&limit=2").send().ok(200);
    assert_eq!(page["data"], json!(all[..2]));
    let cursor = page["nextCursor"].as_str().expect("another page");
    let rest = shop.get(&format!("/api/public/unmatched?status=open&cursor={cursor}")).send().ok(200);
    assert_eq!((&rest["data"], &rest["nextCursor"]), (&json!(all[2..]), &Value::Null));
    let ignored = shop.post(&path(&all[0], "/ignore"), &json!({ "note": "a gift" })).send().ok(200);
    assert_eq!((&ignored["status"], &ignored["note"]), (&json!("ignored"), &json!("a gift")));
    assert_eq!(unmatched_of(&shop, 2), all[1..]);
}

fn a_recurrent_transfer_is_listed_and_pays_no_session() {
    let dev = shared();
    let shop = dev.shop().prove();
    let payment = shop.open_payment();
    dev.ledger.create_recurrent_transfer(&dev.demo_account("alice"), &shop.account.name, "1.500 HBD", &payment.memo);
    let unmatched = unmatched_of(&shop, 1).remove(0);
    assert_eq!((&unmatched["reason"], &unmatched["from"]), (&json!("unsupported_operation"), &json!("alice")));
    assert_eq!(unmatched["amount"]["formatted"], "1.500 HBD");
    assert_eq!(shop.payment(&payment.id)["status"], "pending", "its memo names the session, and it is no transfer");
}

fn transfers_of_other_merchants_are_not_found() {
    let dev = shared();
    let (shop, other) = (dev.shop().prove(), dev.shop().prove());
    dev.ledger.transfer(&dev.demo_account("alice"), &shop.account.name, "1.500 HBD", "thanks!");
    let unmatched = unmatched_of(&shop, 1).remove(0);
    let theirs = other.open_payment();
    for (shop, path) in [(&other, path(&unmatched, "")), (&shop, "/api/public/unmatched/1-2".to_owned())] {
        shop.get(&path).send().refused(404, "not_found");
        shop.get(&format!("{path}/candidates")).send().refused(404, "not_found");
        shop.post(&format!("{path}/ignore"), &json!({})).send().refused(404, "not_found");
        shop.post(&format!("{path}/assign"), &json!({ "paymentId": theirs.id })).send().refused(404, "not_found");
    }
    shop.api.get("/api/public/unmatched").send().refused(401, "invalid_api_key");
    for path in ["refund", "resolve"] {
        let path = format!("/api/public/payments/{}/{path}", theirs.id);
        let request =
            if path.ends_with("refund") { shop.get(&path) } else { shop.post(&path, &json!({ "kind": "ignored" })) };
        request.send().refused(404, "not_found");
    }
}

fn a_late_payment_is_resolved_and_needs_no_attention() {
    let dev = shared();
    let shop = dev.shop().prove();
    let payment = shop.open_payment();
    shop.cancelled(&payment.id);
    let resolve = |body: &Value| shop.post(&format!("/api/public/payments/{}/resolve", payment.id), body).send();
    dev.ledger.transfer(&dev.demo_account("alice"), &shop.account.name, "1.500 HBD", &payment.memo);
    shop.until(&payment.id, "late", |p| p["needsAttention"] == true);
    let unusual = |shop: &Shop| shop.get("/api/public/payments?unusual=true").send().ok(200)["data"].clone();
    assert_eq!(unusual(&shop)[0]["id"], payment.id);
    let body = json!({ "kind": "accepted", "note": "it is all right", "txId": "ab".repeat(20) });
    let resolved = resolve(&body).ok(200);
    assert_eq!(
        (&resolved["status"], &resolved["exceptions"]),
        (&json!("user_cancelled"), &json!(["paid_after_cancel"]))
    );
    assert_eq!((&resolved["needsAttention"], &resolved["resolution"]["kind"]), (&json!(false), &json!("accepted")));
    assert_eq!((&resolved["resolution"]["note"], &resolved["resolution"]["txId"]), (&body["note"], &body["txId"]));
    assert_eq!(unusual(&shop), json!([]));
    assert_eq!(shop.payment(&payment.id), resolved);
    // The note may contain a person's name: it is deleted on request, and the decision remains.
    let note = format!("/api/public/payments/{}/note", payment.id);
    let delete = |key: &str| dev.api.request("DELETE", &note).bearer(key).send();
    delete(&dev.shop().key).refused(404, "not_found");
    let left = delete(&shop.key).ok(200);
    let mut wanted = resolved.clone();
    wanted["resolution"]["note"] = left["resolution"]["note"].clone();
    wanted["updatedAt"] = left["updatedAt"].clone();
    assert_eq!(left, wanted);
    assert!(!left.to_string().contains("it is all right"), "{left}");
    assert_eq!((delete(&shop.key).ok(200), shop.payment(&payment.id)), (left.clone(), left));
    let audit = format!("/api/admin/audit?merchantId={}", shop.id);
    let reported = dev.api.get(&audit).bearer(dev.admin_key()).send().ok(200);
    let reported =
        reported["data"].as_array().unwrap().iter().filter(|entry| entry["action"] == "payment_note_deleted");
    assert_eq!(reported.map(|entry| entry["subject"].as_str().unwrap()).collect::<Vec<_>>(), [payment.id.as_str()]);
    let waiting = shop.open_payment();
    let path = format!("/api/public/payments/{}/resolve", waiting.id);
    shop.post(&path, &json!({ "kind": "ignored" })).send().refused(409, "nothing_to_resolve");
}

fn a_refund_is_prepared_signed_and_recorded() {
    let dev = shared();
    let (shop, alice) = (dev.shop().prove(), dev.demo_account("alice"));
    let payment = shop.open_payment();
    dev.ledger.transfer(&alice, &shop.account.name, "1.750 HBD", &payment.memo);
    shop.until_status(&payment.id, "completed");
    let plan = shop.get(&format!("/api/public/payments/{}/refund", payment.id)).send().ok(200);
    let memo = format!("refund-{}", payment.id);
    let transfer = json!({ "from": shop.account.name, "to": "alice", "amount": "0.250 HBD", "memo": memo });
    assert_eq!(plan["operation"], json!(["transfer", transfer]));
    assert_eq!((&plan["memo"], &plan["amount"]["value"]), (&json!(memo), &json!("250")));
    assert_eq!(plan["owed"], json!([{ "to": "alice", "amount": plan["amount"] }]));
    assert!(plan["uri"].as_str().is_some_and(|uri| uri.starts_with("hive://sign/op/")), "{plan}");
    let tx_id = dev.ledger.transfer(&shop.account, "alice", "0.250 HBD", &memo);
    let refunded = shop.until(&payment.id, "refunded", |p| p["amountRefunded"] == "250");
    assert_eq!((&refunded["refunds"][0]["txId"], &refunded["status"]), (&json!(tx_id), &json!("completed")));
    let again = format!("/api/public/payments/{}/refund", payment.id);
    shop.get(&again).send().wrong(&["amount"]);
    let whole = shop.get(&format!("{again}?amount=1500&to=bob&currency=HIVE")).send().ok(200);
    assert_eq!((&whole["to"], &whole["amount"]["formatted"]), (&json!("bob"), &json!("1.500 HIVE")));
}

fn every_field_of_these_requests_is_validated_by_name() {
    let dev = shared();
    let shop = dev.shop().prove();
    let payment = shop.open_payment();
    let resolve = format!("/api/public/payments/{}/resolve", payment.id);
    for (body, fields) in [
        (json!({}), vec!["kind"]),
        (json!({ "kind": "paid", "note": 7 }), vec!["kind", "note"]),
        (json!({ "kind": "ignored", "note": "x".repeat(501) }), vec!["note"]),
        (json!({ "kind": "ignored", "txId": "abc" }), vec!["txId"]),
    ] {
        shop.post(&resolve, &body).send().wrong(&fields);
    }
    let refund = format!("/api/public/payments/{}/refund", payment.id);
    for (query, field) in [
        ("amount=0", "amount"),
        ("amount=1.5", "amount"),
        ("amount=1", "to"),
        ("amount=1&to=No", "to"),
        ("currency=BTC", "currency"),
    ] {
        shop.get(&format!("{refund}?{query}")).send().wrong(&[field]);
    }
    shop.get("/api/public/unmatched?limit=101&status=lost").send().wrong(&["limit", "status"]);
    shop.get("/api/public/unmatched?cursor=x").send().wrong(&["cursor"]);
    shop.post("/api/public/unmatched/1-0-0/assign", &json!({})).send().wrong(&["paymentId"]);
}
