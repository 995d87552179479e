//! Billing: usage in a month, the invoice, and its payment at the invoice's checkout.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::harness::{Dev, RequestBuilder, Response, Shop, folder, shared, until};

crate::tests!(
    a_month_is_invoiced_once_and_paid_at_the_invoices_checkout,
    a_collected_fee_is_not_invoiced_and_a_missing_one_is,
    fee_tiers_are_read_and_replaced_as_a_whole,
    invalid_billing_requests_name_their_field,
    billing_is_visible_to_admins_and_to_the_merchant_itself,
);

/// Longer than any month, seconds.
const A_MONTH: u64 = 32 * 86_400;

fn admin(dev: &Dev, method: &str, path: &str) -> RequestBuilder {
    dev.api.request(method, &format!("/api/admin/billing/{path}")).bearer(dev.admin_key())
}

fn request(dev: &Dev, path: &str) -> Value {
    admin(dev, "GET", path).send().ok(200)
}

fn mine(shop: &Shop) -> Value {
    shop.get("/api/public/billing/me").send().ok(200)
}

fn generate(dev: &Dev, body: &Value) -> Response {
    admin(dev, "POST", "generate-invoices").json(body).send()
}

#[track_caller]
fn sell(dev: &Dev, shop: &Shop, units: u64) -> String {
    let body = json!({ "amount": units.to_string(), "currency": "HBD", "description": "Mugs" });
    let payment = shop.open_with(&body);
    let amount = format!("{}.{:03} HBD", units / 1_000, units % 1_000);
    dev.ledger.transfer(&dev.ledger.account("buyer"), &shop.account.name, &amount, &payment.memo);
    shop.until_status(&payment.id, "completed");
    payment.id
}

#[track_caller]
fn has_members(value: &Value, wanted: &[&str]) {
    let members: BTreeSet<&str> = value.as_object().expect("an object").keys().map(String::as_str).collect();
    let missing: Vec<_> = wanted.iter().filter(|name| !members.contains(**name)).collect();
    assert!(missing.is_empty(), "{missing:?} of {value}");
}

const PERIOD: [&str; 12] = [
    "id",
    "periodStart",
    "periodEnd",
    "totalVolumeCents",
    "transactionCount",
    "invoiceAmountCents",
    "status",
    "invoiceSessionId",
    "invoiceSlug",
    "invoicePaymentUrl",
    "createdAt",
    "updatedAt",
];

fn a_month_is_invoiced_once_and_paid_at_the_invoices_checkout() {
    let folder = folder("billing");
    let data = format!("--data={}", folder.join("data").to_str().expect("a path"));
    let mut dev = Dev::with(&[&data]);
    let (operator, shop) = (dev.shop(), dev.shop());
    sell(&dev, &shop, 100_000);
    let used = mine(&shop);
    assert_eq!(used["currentMonth"]["totalVolumeCents"], 10_000);
    dev.process.kill();
    let setting = format!("--set=billing.merchant_id={}", operator.id);
    let dev = Dev::with(&[&data, &setting]);
    let [operator, shop] = [operator, shop].map(|of| Shop { api: dev.api.clone(), ..of });
    assert_eq!(mine(&shop), used, "what was counted is as durable as the payment");
    has_members(
        &used,
        &[
            "merchantId",
            "merchantName",
            "currentMonth",
            "outstandingInvoices",
            "paidInvoices",
            "outstandingAmountCents",
            "totalPaidCents",
            "feeTiers",
        ],
    );
    let month = &used["currentMonth"];
    assert_eq!((&month["transactionCount"], &month["projectedInvoiceCents"]), (&json!(1), &json!(150)));
    assert_eq!(used["feeTiers"], json!([{ "minVolumeCents": 0, "maxVolumeCents": null, "percentFee": 1.5 }]));
    let (year, number) = (&month["periodStart"].as_str().unwrap()[..4], &month["periodStart"].as_str().unwrap()[5..7]);
    let this = json!({ "year": year.parse::<u32>().unwrap(), "month": number.parse::<u32>().unwrap() });
    generate(&dev, &this).wrong(&["month"]);

    dev.ledger.advance(A_MONTH);
    let invoice = until("the invoice", || mine(&shop)["outstandingInvoices"].get(0).cloned());
    has_members(&invoice, &PERIOD);
    assert_eq!((&invoice["status"], &invoice["invoiceAmountCents"]), (&json!("invoiced"), &json!(150)));
    assert_eq!((&invoice["periodStart"], &invoice["periodEnd"]), (&month["periodStart"], &month["periodEnd"]));
    assert!(invoice["id"].as_str().is_some_and(|id| id.starts_with("inv_")));
    for body in [&this, &json!({})] {
        let again = generate(&dev, body).ok(200);
        assert_eq!(again, json!({ "invoicesGenerated": 0, "totalBilledCents": 0, "details": [] }));
    }
    assert_eq!(mine(&shop)["outstandingAmountCents"], 150);
    let overview = request(&dev, "overview");
    let totals = &overview["totals"];
    assert_eq!((&totals["merchantsCount"], &totals["totalOutstandingCents"]), (&json!(1), &json!(150)));
    assert_eq!((&totals["merchantsBehindCount"], &totals["merchantsPaidCount"]), (&json!(0), &json!(0)));
    assert_eq!((&totals["currentMonthVolumeCents"], &totals["totalPaidAllTimeCents"]), (&json!(0), &json!(0)));
    has_members(totals, &["currentMonthProjectedCents"]);
    assert_eq!(overview["merchants"][0]["oldestUnpaidPeriodStart"], invoice["periodStart"]);

    // The invoice is a payment of the operator.
    let url = invoice["invoicePaymentUrl"].as_str().expect("an address");
    let slug = invoice["invoiceSlug"].as_str().expect("a slug");
    assert!(url.ends_with(&format!("/for/{slug}")), "{url}");
    let page = dev.api.get(&format!("/for/{slug}")).header("accept", "text/html").send();
    assert!(page.status == 200 && page.text().contains("1.500 HBD"), "{}", page.text());
    let session = invoice["invoiceSessionId"].as_str().expect("a session");
    let record = operator.payment(session);
    assert_eq!((&record["amount"]["value"], &record["fee"]), (&json!("1500"), &json!("0")));
    assert_eq!(record["payTo"], operator.account.name.as_str());
    shop.get(&format!("/api/public/payments/{session}")).send().refused(404, "not_found");
    dev.ledger.transfer(&shop.account, &operator.account.name, "1.500 HBD", &format!("pos-{session}"));
    operator.until_status(session, "completed");
    let paid = mine(&shop);
    assert_eq!((&paid["outstandingInvoices"], &paid["outstandingAmountCents"]), (&json!([]), &json!(0)));
    assert_eq!((&paid["paidInvoices"][0]["status"], &paid["totalPaidCents"]), (&json!("paid"), &json!(150)));
    assert_eq!(paid["paidInvoices"][0]["invoicePaymentUrl"], Value::Null);
    assert_eq!(mine(&operator)["currentMonth"]["totalVolumeCents"], 0, "fees are no sales");
    sell(&dev, &operator, 100_000);
    let own = mine(&operator)["currentMonth"].clone();
    assert_eq!((&own["totalVolumeCents"], &own["projectedInvoiceCents"]), (&json!(10_000), &json!(0)));
    assert_eq!(request(&dev, "overview")["totals"]["merchantsCount"], 1, "the operator is not billed");
    let of_shop = request(&dev, &format!("merchant/{}", shop.id));
    assert_eq!(of_shop["paidInvoices"][0]["merchantHiveAccountName"], shop.account.name.as_str());
    let list = request(&dev, &format!("periods?status=paid&merchantId={}", shop.id));
    assert_eq!((&list["pagination"]["total"], &list["data"][0]["id"]), (&json!(1), &invoice["id"]));
    has_members(
        &list["data"][0],
        &["merchantId", "merchantName", "merchantHiveAccountName", "merchantIconUrl", "invoiceAmountCents"],
    );
    for query in ["status=invoiced", "status=overdue", &format!("status=paid&merchantId={}", operator.id), "page=2"] {
        assert_eq!(request(&dev, &format!("periods?{query}"))["data"], json!([]), "{query}");
    }
    let log = dev.api.get(&format!("/api/admin/audit?merchantId={}", shop.id)).bearer(dev.admin_key()).send().ok(200);
    let reported: Vec<_> =
        log["data"].as_array().unwrap().iter().filter(|e| e["action"] == "invoice_generated").collect();
    assert_eq!((reported.len(), &reported[0]["subject"]), (1, &invoice["id"]));
}

fn a_collected_fee_is_not_invoiced_and_a_missing_one_is() {
    let dev = Dev::with(&["--set=fees.mode=split", "--set=fees.account=hivetill.fees"]);
    let (shop, payer) = (dev.shop(), dev.ledger.account("payer"));
    let order = json!({ "amount": "100000", "currency": "HBD", "description": "Mugs" });
    let (whole, plain) = (shop.open_with(&order), shop.open_with(&order));
    let to = shop.account.name.as_str();
    let fee_memo = format!("fee-{}", whole.id);
    let both = [(to, "98.500 HBD", whole.memo.as_str()), ("hivetill.fees", "1.500 HBD", fee_memo.as_str())];
    dev.ledger.try_transfers(&payer, &both).expect("the node takes both");
    let record = shop.until_status(&whole.id, "completed");
    assert_eq!(record["transfers"][1]["disposition"], "fee", "{record}");
    let month = mine(&shop)["currentMonth"].clone();
    assert_eq!((&month["totalVolumeCents"], &month["projectedInvoiceCents"]), (&json!(10_000), &json!(0)));
    dev.ledger.transfer(&payer, to, "100.000 HBD", &plain.memo);
    shop.until_status(&plain.id, "completed");
    let month = mine(&shop)["currentMonth"].clone();
    assert_eq!((&month["totalVolumeCents"], &month["projectedInvoiceCents"]), (&json!(20_000), &json!(150)));
    let period = request(&dev, &format!("periods?merchantId={}", shop.id))["data"][0].clone();
    assert_eq!((&period["splitVolumeCents"], &period["missingFeeCents"]), (&json!(20_000), &json!(150)));
}

fn fee_tiers_are_read_and_replaced_as_a_whole() {
    let dev = Dev::start();
    let tier = |min: Value, max: Value, percent: Value| json!({ "minVolumeCents": min, "maxVolumeCents": max, "percentFee": percent });
    let first = request(&dev, "tiers");
    assert_eq!((&first["tiers"][0]["percentFee"], &first["version"]), (&json!(1.5), &json!(0)));
    let put = |tiers: &Value| admin(&dev, "PUT", "tiers").json(&json!({ "tiers": tiers })).send();
    let good = json!([
        tier(json!(0), json!(99_999), json!(1.5)),
        tier(json!(100_000), json!(999_999), json!(1)),
        tier(json!(1_000_000), json!(null), json!(0.1234)),
    ]);
    let stored = put(&good).ok(200);
    assert_eq!((&stored["tiers"], &stored["version"]), (&good, &json!(1)));
    assert_eq!(request(&dev, "tiers"), stored);
    let last = || tier(json!(10), json!(null), json!(1));
    for (tiers, field) in [
        (json!([]), "tiers"),
        (json!({}), "tiers"),
        (json!([1]), "tiers[0]"),
        (json!([tier(json!(1), json!(null), json!(1))]), "tiers[0].minVolumeCents"),
        (json!([tier(json!(0), json!(9), json!(1))]), "tiers[0].maxVolumeCents"),
        (json!([tier(json!(0), json!(8), json!(1)), last()]), "tiers[1].minVolumeCents"),
        (json!([tier(json!(0), json!(10), json!(1)), last()]), "tiers[1].minVolumeCents"),
        (json!([tier(json!(0), json!(9.5), json!(1)), last()]), "tiers[0].maxVolumeCents"),
        (json!([tier(json!(0), json!(9), json!(-1)), last()]), "tiers[0].percentFee"),
        (json!([tier(json!(0), json!(9), json!(100.1)), last()]), "tiers[0].percentFee"),
        (json!([tier(json!(0), json!(9), json!(1.00001)), last()]), "tiers[0].percentFee"),
        (json!([tier(json!(0), json!(9), json!("1")), last()]), "tiers[0].percentFee"),
        (json!([{ "minVolumeCents": 0, "percentFee": 1 }]), "tiers[0].maxVolumeCents"),
        (json!([tier(json!(-1), json!(null), json!(1))]), "tiers[0].minVolumeCents"),
    ] {
        put(&tiers).wrong(&[field]);
    }
    admin(&dev, "PUT", "tiers").json(&json!({})).send().wrong(&["tiers"]);
    assert_eq!(request(&dev, "tiers"), stored, "what is refused changes nothing");
    let log = dev.api.get("/api/admin/audit?limit=1").bearer(dev.admin_key()).send().ok(200);
    assert_eq!(log["data"][0]["action"], "fee_tiers_changed", "{log}");
}

fn invalid_billing_requests_name_their_field() {
    let dev = shared();
    let wrong = |path: &str, fields: &[&str]| admin(dev, "GET", path).send().wrong(fields);
    wrong("periods?status=late", &["status"]);
    wrong("periods?page=0&limit=101", &["page", "limit"]);
    wrong("periods?merchantId=x", &["merchantId"]);
    for (body, field) in [
        (json!({ "month": 4 }), "year"),
        (json!({ "year": 2026 }), "month"),
        (json!({ "year": 2026, "month": 13 }), "month"),
        (json!({ "year": 2026, "month": "4" }), "month"),
        (json!({ "year": 1969, "month": 4 }), "year"),
        (json!({ "year": 9997, "month": 12 }), "month"),
    ] {
        generate(dev, &body).wrong(&[field]);
    }
    for missing in ["merchant/mer_00000000000000000000000000", "merchant/x"] {
        admin(dev, "GET", missing).send().refused(404, "not_found");
    }
    let refused = generate(dev, &json!({})).refused(409, "billing_not_configured");
    assert!(refused["statusMessage"].as_str().is_some_and(|text| text.contains("billing.merchant_id")), "{refused}");
}

fn billing_is_visible_to_admins_and_to_the_merchant_itself() {
    let dev = shared();
    let shop = dev.shop();
    for (method, path) in [
        ("GET", "overview".to_owned()),
        ("GET", format!("merchant/{}", shop.id)),
        ("GET", "periods".to_owned()),
        ("GET", "tiers".to_owned()),
        ("PUT", "tiers".to_owned()),
        ("POST", "generate-invoices".to_owned()),
    ] {
        let path = format!("/api/admin/billing/{path}");
        let tiers = json!({ "tiers": [{ "minVolumeCents": 0, "maxVolumeCents": null, "percentFee": 0 }] });
        let with = |request: RequestBuilder| if method == "PUT" { request.json(&tiers) } else { request };
        with(dev.api.request(method, &path).bearer(&shop.key)).send().refused(403, "admin_required");
        with(dev.api.request(method, &path)).send().refused(401, "invalid_api_key");
    }
    dev.api.get("/api/public/billing/me").send().refused(401, "invalid_api_key");
    let body = json!({ "name": "till", "scopes": ["payments:write"] });
    let made = shop.post(&format!("/api/public/merchants/{}/api-keys", shop.id), &body).send().ok(201);
    let key = made["apiKey"].as_str().expect("a key");
    dev.api.get("/api/public/billing/me").bearer(key).send().refused(403, "insufficient_scope");
    sell(dev, &shop, 1_500);
    let month = mine(&shop)["currentMonth"].clone();
    assert_eq!((&month["totalVolumeCents"], &month["transactionCount"]), (&json!(150), &json!(1)));
    assert_eq!(mine(&dev.shop())["currentMonth"]["totalVolumeCents"], 0);
}
