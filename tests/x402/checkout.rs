//! Agents pay at a checkout URL.

use engine::hive::{ChainId, Form, Pack};
use serde_json::{Value, json};

use super::{
    PRICE, block_of, decode, encode, json_of, nonce, offer, paid_for_good, sign, transfers_with_memo, v1, v2, visit,
};
use crate::harness::{Dev, Receiver, Shop, Split, folder, shared};

crate::tests!(
    an_agent_pays_with_the_header_of_version_1,
    an_agent_pays_with_the_header_of_version_2,
    an_agent_pays_by_the_public_id_without_getting_the_slug,
    hive_and_hbd_are_paid_with_either_packing,
    a_memo_with_a_nonce_pays_an_unbound_payment,
    version_1_accepts_an_overpayment_and_flags_it,
    a_collected_fee_is_a_separate_transfer,
    a_closed_checkout_has_errors_in_order_of_precedence,
    an_inactive_merchant_accepts_no_x402_payment,
    an_expired_session_returns_410,
    a_gateway_of_two_processes_accepts_the_same_payment,
);

/// Pays at a URL and returns the response body.
#[track_caller]
fn pay(shop: &Shop, path: &str, payment: &Value) -> Value {
    let response = visit(&shop.api, path, Some(payment));
    let body = response.ok(200);
    let receipt = response.receipt();
    assert_eq!((&receipt["success"], &receipt["network"]), (&json!(true), &json!("hive:mainnet")));
    assert_eq!((&receipt["transaction"], &receipt["txId"]), (&body["txId"], &body["txId"]));
    assert_eq!(receipt["payer"], body["payer"]);
    assert_eq!(response.header("cache-control"), Some("no-store, private"));
    body
}

fn an_agent_pays_with_the_header_of_version_1() {
    let dev = shared();
    let (shop, agent, receiver) = (dev.shop(), dev.ledger.account("agent"), Receiver::start());
    shop.set_webhook(&receiver);
    let payment = shop.open_payment();
    let path = format!("/for/{}", payment.slug);
    let asked = offer(&shop.api, &path, 1);
    assert_eq!((&asked["maxAmountRequired"], &asked["resource"]), (&json!(PRICE), &json!(path)));
    assert_eq!(asked["extra"], json!({ "sessionId": payment.id, "memo": payment.memo }));
    let (to, memo) = (asked["payTo"].as_str().unwrap(), asked["extra"]["memo"].as_str().unwrap());
    let signed = dev.ledger.signed(&agent, &[(to, PRICE, memo)]);
    let tx_id = signed.id(Pack::Legacy).to_string();
    let shown = v1(&json_of(&signed), &nonce());

    let body = pay(&shop, &path, &shown);
    let wanted =
        json!({ "success": true, "txId": tx_id, "payer": agent.name, "sessionId": payment.id, "status": "completed" });
    assert_eq!(body, wanted);
    let record = paid_for_good(&shop, &payment.id);
    assert_eq!((&record["internalId"], &record["transfers"][0]["route"]), (&json!(tx_id), &json!("x402")));
    let hook = receiver.hook(0);
    hook.verify(&shop.secret);
    assert_eq!(hook.json()["data"]["status"], "completed");

    // The same payment has the same receipt; no other payment is accepted.
    let mut replayed = wanted.clone();
    replayed["replayed"] = json!(true);
    assert_eq!(pay(&shop, &path, &shown), replayed);
    let accepted =
        json!({ "scheme": "exact", "network": "hive:mainnet", "amount": "1500", "asset": "HBD", "payTo": to });
    assert_eq!(
        pay(&shop, &path, &v2(&json_of(&signed), shown["payload"]["nonce"].as_str().unwrap(), &accepted)),
        replayed
    );
    let anew = v2(&json_of(&signed), &nonce(), &accepted);
    visit(&shop.api, &path, Some(&anew)).closed(409, "session_completed");
    visit(&shop.api, &path, None).closed(409, "session_completed");
    let other = dev.ledger.signed(&agent, &[(to, PRICE, memo)]);
    visit(&shop.api, &path, Some(&v1(&json_of(&other), &nonce()))).closed(409, "session_completed");
    let page = shop.api.get(&path).header("accept", "text/html").send();
    assert!(page.status == 200 && page.text().contains("Paid"));
    assert!(block_of(&dev.ledger, &tx_id).is_some());
    assert_eq!(block_of(&dev.ledger, &other.id(Pack::Legacy).to_string()), None);
    assert_eq!(transfers_with_memo(&dev.ledger, memo), 1);
    assert_eq!(receiver.hooks().len(), 1);
}

fn an_agent_pays_with_the_header_of_version_2() {
    let dev = shared();
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    let payment = shop.open_payment();
    let path = format!("/for/{}", payment.slug);
    let accepted = offer(&shop.api, &path, 2);
    assert_eq!((&accepted["amount"], &accepted["asset"]), (&json!("1500"), &json!("HBD")));
    let signed = dev.ledger.signed(&agent, &[(&shop.account.name, PRICE, &payment.memo)]);
    let mut swapped = accepted.clone();
    swapped["amount"] = json!("1499");
    let response = visit(&shop.api, &path, Some(&v2(&json_of(&signed), &nonce(), &swapped)));
    response.denied("accepted_requirements_mismatch");
    let more = dev.ledger.signed(&agent, &[(&shop.account.name, "1.501 HBD", &payment.memo)]);
    let response = visit(&shop.api, &path, Some(&v2(&json_of(&more), &nonce(), &accepted)));
    response.denied("invalid_exact_hive_payload_amount_mismatch");
    let body = pay(&shop, &path, &v2(&json_of(&signed), &nonce(), &accepted));
    assert_eq!((&body["sessionId"], &body["payer"]), (&json!(payment.id), &json!(agent.name)));
    paid_for_good(&shop, &payment.id);
}

fn an_agent_pays_by_the_public_id_without_getting_the_slug() {
    let dev = shared();
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    let payment = shop.open_payment();
    let path = format!("/checkout/{}", payment.id);
    let response = visit(&shop.api, &path, None);
    let report = format!(
        "{} {} {}",
        response.text(),
        decode(response.header("x-payment").unwrap()),
        decode(response.header("payment-required").unwrap())
    );
    assert!(report.contains(&path) && !report.contains(&payment.slug), "{report}");
    let signed = dev.ledger.signed(&agent, &[(&shop.account.name, PRICE, &payment.memo)]);
    let body = pay(&shop, &path, &v1(&json_of(&signed), &nonce()));
    assert_eq!(body["sessionId"], payment.id);
}

fn hive_and_hbd_are_paid_with_either_packing() {
    let dev = shared();
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    for (currency, pack, form) in [
        ("HIVE", Pack::Legacy, Form::Condenser),
        ("HIVE", Pack::Hf26, Form::Hf26),
        ("HBD", Pack::Hf26, Form::Condenser),
        ("HBD", Pack::Legacy, Form::Hf26),
    ] {
        let order = json!({ "amount": "1500", "currency": currency, "description": "A blue mug" });
        let payment = shop.open_with(&order);
        let path = format!("/for/{}", payment.slug);
        let amount = format!("1.500 {currency}");
        assert_eq!(offer(&shop.api, &path, 1)["maxAmountRequired"], amount);
        let mut signed = dev.ledger.signed(&agent, &[(&shop.account.name, &amount, &payment.memo)]);
        sign(&mut signed, ChainId::MAINNET, pack, &[&agent.key]);
        let json = serde_json::from_str(&signed.to_json(form)).unwrap();
        let body = pay(&shop, &path, &v1(&json, &nonce()));
        assert_eq!(body["txId"], signed.id(pack).to_string(), "{currency} {pack:?} {form:?}");
        assert!(block_of(&dev.ledger, &signed.id(pack).to_string()).is_some());
    }
}

fn a_memo_with_a_nonce_pays_an_unbound_payment() {
    let dev = shared();
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    let (first, second) = (shop.open_payment(), shop.open_payment());
    let nonce = nonce();
    let signed = dev.ledger.signed(&agent, &[(&shop.account.name, PRICE, &format!("x402:{nonce}"))]);
    let path = format!("/for/{}", first.slug);
    let other = "f".repeat(32);
    visit(&shop.api, &path, Some(&v1(&json_of(&signed), &other))).denied("invalid_exact_hive_payload_memo_mismatch");
    let shown = v1(&json_of(&signed), &nonce);
    pay(&shop, &path, &shown);
    // A payment of one session pays no other.
    visit(&shop.api, &format!("/for/{}", second.slug), Some(&shown)).closed(409, "duplicate_settlement");
    paid_for_good(&shop, &first.id);
    assert_eq!(shop.payment(&second.id)["transfers"], json!([]));
}

fn version_1_accepts_an_overpayment_and_flags_it() {
    let dev = shared();
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    let payment = shop.open_payment();
    let signed = dev.ledger.signed(&agent, &[(&shop.account.name, "2.000 HBD", &payment.memo)]);
    pay(&shop, &format!("/for/{}", payment.slug), &v1(&json_of(&signed), &nonce()));
    let record = shop.until(&payment.id, "overpaid", |p| p["exceptions"] == json!(["overpaid"]));
    assert_eq!((&record["amountOverpaid"], &record["status"]), (&json!("500"), &json!("completed")));
}

fn a_collected_fee_is_a_separate_transfer() {
    let dev = Dev::with(&["--set=fees.mode=split", "--set=fees.account=hivetill.fees"]);
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    let order = json!({ "amount": "10500", "currency": "HBD", "description": "Two mugs" });
    let payment = shop.open_with(&order);
    let path = format!("/for/{}", payment.slug);
    let asked = offer(&shop.api, &path, 1);
    let fee_memo = format!("fee-{}", payment.id);
    assert_eq!(
        asked["extra"],
        json!({"sessionId": payment.id, "memo": payment.memo, "feeAccount": "hivetill.fees", "feeAmount": "0.157 HBD",
            "netAmount": "10.343 HBD", "feeMemo": fee_memo})
    );
    assert_eq!(offer(&shop.api, &path, 2)["extra"], asked["extra"]);
    let to = shop.account.name.as_str();
    let net = (to, "10.343 HBD", payment.memo.as_str());
    let fee = ("hivetill.fees", "0.157 HBD", fee_memo.as_str());
    let show = |transfers: &[(&str, &str, &str)]| {
        visit(&shop.api, &path, Some(&v1(&json_of(&dev.ledger.signed(&agent, transfers)), &nonce())))
    };
    // Attack 23: every way to omit the fee.
    for (transfers, word) in [
        (&[(to, "10.500 HBD", payment.memo.as_str())][..], "operations"),
        (&[net, (to, "0.157 HBD", &fee_memo)], "recipient_mismatch"),
        (&[net, ("hivetill.fees", "0.156 HBD", &fee_memo)], "amount"),
        (&[(to, "10.342 HBD", &payment.memo), ("hivetill.fees", "0.158 HBD", &fee_memo)], "amount"),
        (&[net, ("hivetill.fees", "0.157 HIVE", &fee_memo)], "asset_mismatch"),
        (&[net, ("hivetill.fees", "0.157 HBD", "a fee")], "memo_mismatch"),
        (&[net, fee, fee], "operations"),
    ] {
        show(transfers).denied(&format!("invalid_exact_hive_payload_{word}"));
    }
    let signed = dev.ledger.signed(&agent, &[fee, net]);
    let body = pay(&shop, &path, &v1(&json_of(&signed), &nonce()));
    assert_eq!(body["payer"], agent.name);
    let record = shop.until(&payment.id, "paid with its fee", |p| p["amountPaid"] == "10500");
    let dispositions: Vec<_> = record["transfers"].as_array().unwrap().iter().map(|t| &t["disposition"]).collect();
    assert_eq!(dispositions, ["fee", "counted"]);
    assert_eq!((&record["exceptions"], &record["net"]), (&json!([]), &json!("10343")));
    let month = shop.get("/api/public/billing/me").send().ok(200)["currentMonth"].clone();
    let billed = (&month["totalVolumeCents"], &month["projectedInvoiceCents"]);
    assert_eq!(billed, (&json!(1_050), &json!(0)), "it is not billed again");
}

fn a_closed_checkout_has_errors_in_order_of_precedence() {
    let dev = shared();
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    let (cancelled, paid) = (shop.open_payment(), shop.open_payment());
    shop.cancelled(&cancelled.id);
    dev.ledger.transfer(&agent, &shop.account.name, PRICE, &paid.memo);
    paid_for_good(&shop, &paid.id);
    let signed = dev.ledger.signed(&agent, &[(&shop.account.name, PRICE, &cancelled.memo)]);
    let shown = v1(&json_of(&signed), &nonce());
    for shown in [None, Some(&shown)] {
        for base in ["for", "checkout"] {
            let place = |opened: &crate::harness::Opened| {
                let last = if base == "for" { &opened.slug } else { &opened.id };
                format!("/{base}/{last}")
            };
            let gone = visit(&shop.api, &place(&cancelled), shown).closed(410, "session_not_pending");
            assert_eq!((&gone["status"], &gone["sessionId"]), (&json!("user_cancelled"), &json!(cancelled.id)));
            let done = visit(&shop.api, &place(&paid), shown).closed(409, "session_completed");
            assert_eq!(done["status"], "completed");
        }
        visit(&shop.api, "/for/nothing", shown).refused(404, "not_found");
        visit(&shop.api, "/checkout/pay_00000000000000000000000000", shown).refused(404, "not_found");
    }
    let wallet = shop.payment(&paid.id)["internalId"].as_str().unwrap().to_owned();
    assert!(block_of(&dev.ledger, &wallet).is_some());
}

fn an_inactive_merchant_accepts_no_x402_payment() {
    let dev = shared();
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    let (open, paid) = (shop.open_payment(), shop.open_payment());
    let (path, paid_path) = (format!("/for/{}", open.slug), format!("/for/{}", paid.slug));
    let receipt = v1(&json_of(&dev.ledger.signed(&agent, &[(&shop.account.name, PRICE, &paid.memo)])), &nonce());
    pay(&shop, &paid_path, &receipt);
    let shown = v1(&json_of(&dev.ledger.signed(&agent, &[(&shop.account.name, PRICE, &open.memo)])), &nonce());
    let browser = |path: &str| shop.api.get(path).header("accept", "text/html").send().status;

    shop.update(&json!({ "x402Enabled": false })).ok(200);
    let all = [None, Some(&shown)];
    for shown in all {
        let body = visit(&shop.api, &path, shown).closed(403, "x402_disabled");
        assert_eq!((&body["code"], &body["error"]), (&json!("FORBIDDEN_ERROR"), &json!("x402_disabled")));
    }
    assert_eq!((browser(&path), browser(&paid_path)), (200, 200), "browsers are unaffected");
    assert_eq!(visit(&shop.api, &paid_path, Some(&receipt)).status, 200, "and what is completed is");
    assert_eq!(super::verify(&shop.api, &super::session(&open.id), &shown)["invalidReason"], "x402_disabled");
    shop.update(&json!({ "x402Enabled": true })).ok(200);

    let set_active = |active: bool| {
        let path = format!("/api/admin/merchants/{}/active", shop.id);
        shop.api.post(&path, &json!({ "isActive": active })).bearer(dev.admin_key()).send().ok(200);
    };
    set_active(false);
    for shown in all {
        visit(&shop.api, &path, shown).closed(403, "merchant_inactive");
    }
    assert_eq!(super::settle(&shop.api, &super::session(&open.id), &shown)["errorReason"], "merchant_inactive");
    set_active(true);
    pay(&shop, &path, &shown);
}

fn an_expired_session_returns_410() {
    let dev = Dev::start();
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    let mut order = crate::harness::order();
    order["expiresInSeconds"] = json!(60);
    let payment = shop.open_with(&order);
    let path = format!("/for/{}", payment.slug);
    let asked = offer(&shop.api, &path, 2);
    assert!(asked["maxTimeoutSeconds"].as_u64().is_some_and(|seconds| (1..=60).contains(&seconds)), "{asked}");
    dev.ledger.hold_irreversibility(true);
    dev.ledger.advance(61);
    let signed = dev.ledger.signed(&agent, &[(&shop.account.name, PRICE, &payment.memo)]);
    let shown = v1(&json_of(&signed), &nonce());
    let gone = crate::harness::until("its time to be over", || {
        let response = visit(&shop.api, &path, None);
        (response.status == 410).then_some(response)
    });
    assert_eq!(gone.closed(410, "session_expired")["status"], "pending", "the chain has not expired it yet");
    visit(&shop.api, &path, Some(&shown)).closed(410, "session_expired");
    assert_eq!(super::settle(&shop.api, &super::session(&payment.id), &shown)["errorReason"], "session_expired");
    dev.ledger.hold_irreversibility(false);
    shop.until_status(&payment.id, "system_cancelled");
    visit(&shop.api, &path, Some(&shown)).closed(410, "session_expired");
}

fn a_gateway_of_two_processes_accepts_the_same_payment() {
    let folder = folder("x402-split");
    let setup = crate::harness::LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
    let split = Split::start(&folder.join("data"), &setup.ledger);
    let shop = Shop::open(&split.api, &setup.ledger);
    let payment = shop.open_payment();
    let agent = setup.demo_account("alice");
    let signed = setup.ledger.signed(&agent, &[(&shop.account.name, PRICE, &payment.memo)]);
    let path = format!("/for/{}", payment.slug);
    let accepted = offer(&shop.api, &path, 2);
    let shown = v2(&json_of(&signed), &nonce(), &accepted);
    let body = pay(&shop, &path, &shown);
    assert_eq!(body["txId"], signed.id(Pack::Legacy).to_string());
    assert_eq!(shop.api.get("/api/public/x402/health").send().ok(200)["status"], "ok");
    let mut engine = split.engine;
    engine.kill();
    let response = shop.api.get(&path).header("x-payment", &encode(&shown)).send();
    assert_eq!(response.status, 503, "{}", response.text());
    assert!(response.header("retry-after").is_some() && response.header("x-payment").is_none());
    assert_eq!(response.json()["error"], "unexpected_settle_error");
}
