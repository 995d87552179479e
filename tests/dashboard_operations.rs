//! The operations of a merchant in the dashboard: search for payments, redelivery of webhooks, figures, key rotation.

use serde_json::json;

use crate::{
    dashboard::{Visitor, cookie_of},
    harness::{Dev, Receiver, shared, until},
};

crate::tests!(
    user_texts_are_escaped_on_every_page,
    payments_are_found_by_payer_transaction_and_amount,
    a_payments_page_lists_its_deliveries_and_redelivers,
    the_overview_counts_every_payment,
    a_key_is_rolled_if_allowed_and_the_session_continues,
    pages_and_exports_have_the_limits_of_the_api,
    pages_with_form_tokens_are_never_compressed,
    an_endpoint_is_created_changed_tested_and_deleted,
);

fn pages_with_form_tokens_are_never_compressed() {
    let shop = shared().shop();
    let visitor = Visitor::of(&shop);
    for path in ["/dashboard", "/dashboard/payments?query=token", "/dashboard/settings"] {
        let request = shop.api.get(path).header("accept", "text/html").header("cookie", &visitor.cookie);
        let response = request.header("accept-encoding", "gzip").send();
        assert_eq!((response.status, response.header("content-encoding")), (200, None), "{path}");
        assert!(response.sent_bytes > 1_024, "{path} is large enough to be compressed: {}", response.sent_bytes);
    }
}

fn an_endpoint_is_created_changed_tested_and_deleted() {
    let (shop, books) = (shared().shop(), Receiver::start());
    let visitor = Visitor::of(&shop);
    assert!(visitor.page("/dashboard/endpoints").contains("No additional endpoints."));
    let url = books.url();
    let wrong = visitor.send("/dashboard/endpoints", &[("url", "books"), ("description", "the books")]);
    let page = wrong.text();
    assert!(wrong.status == 400 && page.contains("events must contain") && page.contains("the books"), "{page}");
    let fields = [("url", url.as_str()), ("description", "the books"), ("event.payment.exception", "1")];
    let made = visitor.send("/dashboard/endpoints", &fields);
    assert!(made.status == 200 && made.text().contains("whsec_"), "{}", made.text());
    let page = visitor.page("/dashboard/endpoints");
    let link = page.split("href=\"").find(|rest| rest.starts_with("/dashboard/endpoints/we_"));
    let path = link.and_then(|rest| rest.split('"').next()).expect("a link to the endpoint").to_owned();
    assert!(page.contains("payment.exception") && page.contains("the books"), "{page}");
    assert_eq!(visitor.done(&format!("{path}/test"), &[("type", "refund.completed")]), format!("{path}?done=tested"));
    assert_eq!(books.hook(0).header("x-hivetill-event"), "refund.completed");
    let id = path.rsplit('/').next().expect("an id");
    let log = visitor.page(&format!("/dashboard/webhooks?endpoint={id}"));
    assert!(log.contains("Deliveries to") && log.contains("whd_"), "{log}");
    // Without the box it gets no events.
    visitor.done(&path, &[("url", url.as_str()), ("event.refund.completed", "1")]);
    let page = visitor.page(&path);
    assert!(page.contains("disabled") && !page.contains("the books"), "{page}");
    let rotated = visitor.send(&format!("{path}/secret"), &[("graceHours", "24")]);
    assert!(rotated.status == 200 && rotated.text().contains("whsec_"), "{}", rotated.text());
    let other = Visitor::of(&shared().shop());
    assert_eq!(other.get(&path).status, 404, "an id of another merchant is unknown");
    visitor.done(&format!("{path}/delete"), &[]);
    assert_eq!(visitor.get(&path).status, 404);
    assert!(visitor.page("/dashboard/endpoints").contains("No additional endpoints."));
}

fn payments_are_found_by_payer_transaction_and_amount() {
    let dev = shared();
    let (shop, payer) = (dev.shop(), dev.ledger.account("payer"));
    let visitor = Visitor::of(&shop);
    let (small, large) = (
        shop.open_payment(),
        shop.open_with(&json!({ "amount": "90000", "currency": "HIVE", "description": "A <b>table</b>" })),
    );
    let tx_id = dev.ledger.transfer(&payer, &shop.account.name, "1.500 HBD", &small.memo);
    shop.until_status(&small.id, "completed");
    for (filter, wanted) in [
        (format!("query={}", payer.name), vec![&small.id]),
        (format!("query={tx_id}"), vec![&small.id]),
        (format!("query={}", &tx_id[..10]), vec![&small.id]),
        ("min=2".to_owned(), vec![&large.id]),
        ("max=89.999".to_owned(), vec![&small.id]),
        ("min=90&max=90&currency=HIVE".to_owned(), vec![&large.id]),
        ("min=1&max=100".to_owned(), vec![&large.id, &small.id]),
        ("min=91".to_owned(), vec![]),
    ] {
        let page = visitor.page(&format!("/dashboard/payments?{filter}"));
        let found: Vec<&String> = [&large.id, &small.id].into_iter().filter(|id| page.contains(*id)).collect();
        assert_eq!(found, wanted, "{filter}");
        let rows = visitor.get(&format!("/dashboard/payments.json?{filter}")).json();
        assert_eq!(rows.as_array().map(Vec::len), Some(wanted.len()), "{filter}");
    }
    let wrong = visitor.get("/dashboard/payments?min=much");
    assert!(wrong.status == 400 && wrong.text().contains("minAmount must be a number"), "{}", wrong.text());
}

fn a_payments_page_lists_its_deliveries_and_redelivers() {
    let (shop, other) = (shared().shop(), shared().shop());
    let (visitor, receiver) = (Visitor::of(&shop), Receiver::start());
    shop.set_webhook(&receiver);
    let (payment, beside) = (shop.open_payment(), shop.open_payment());
    let path = format!("/dashboard/payments/{}", payment.id);
    assert!(visitor.page(&path).contains("No deliveries yet."));
    for id in [&payment.id, &beside.id] {
        shop.cancelled(id);
    }
    let sent = |count: usize| {
        until(&format!("{count} deliveries"), || {
            let page = visitor.page(&path);
            (page.matches("success 200").count() == count).then_some(page)
        })
    };
    let page = sent(1);
    assert_eq!(page.matches(">Redeliver<").count(), 1, "only its own: {page}");
    let again =
        page.split("action=\"").find(|rest| rest.contains("/redeliver")).and_then(|rest| rest.split('"').next());
    let again = again.expect("a way to send it again");
    assert_eq!(Visitor::of(&other).send(again, &[("payment", &payment.id)]).status, 404);
    let back = visitor.done(again, &[("payment", &payment.id)]);
    assert!(back.starts_with(&path) && visitor.page(&back).contains("The event is being redelivered."), "{back}");
    assert!(sent(2).contains("<td>redelivery</td>"));
    let elsewhere = visitor.done(again, &[("payment", "//evil.example")]);
    assert!(elsewhere.starts_with("/dashboard/webhooks?"), "{elsewhere}");
}

fn the_overview_counts_every_payment() {
    let shop = shared().shop();
    let visitor = Visitor::of(&shop);
    let (paid, cancelled) = (shop.open_payment(), shop.open_payment());
    shop.open_payment();
    shop.cancelled(&cancelled.id);
    visitor.done(&format!("/dashboard/payments/{}/pay", paid.id), &[("how", "full")]);
    shop.until_status(&paid.id, "completed");
    // A block that was just produced is read a moment later.
    let up_to_date = || Some(visitor.page("/dashboard")).filter(|page| page.contains("Up to date (block"));
    let page = until("the overview is up to date", up_to_date);
    for part in ["$1.50", "1 completed, 50.0 % success rate", ": 3. Each payment counts", "not set"] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let volume = shop.get("/api/public/payments/volume?days=2").send().ok(200);
    let today = &volume["days"][1];
    assert_eq!((&today["opened"], &today["completed"], &today["ended"]), (&json!(3), &json!(1), &json!(2)), "{volume}");
    assert_eq!((&today["hbd"], &today["usdCents"]), (&json!("1500"), &json!(150)), "{volume}");
    assert!(volume["medianMsToPay"].is_u64());
    for wrong in ["0", "367", "x"] {
        shop.get(&format!("/api/public/payments/volume?days={wrong}")).send().wrong(&["days"]);
    }
}

fn a_key_is_rolled_if_allowed_and_the_session_continues() {
    let dev = Dev::with(&["--set=keys.roll=true"]);
    let shop = dev.shop();
    let (visitor, elsewhere) = (Visitor::of(&shop), Visitor::of(&shop));
    let page = visitor.page("/dashboard/settings");
    assert!(page.contains("this login") && page.contains(&shop.key[shop.key.len() - 4..]), "{page}");
    let roll = page.split("action=\"").find(|rest| rest.contains("/roll\"")).and_then(|rest| rest.split('"').next());
    let roll = roll.expect("a way to roll the key").to_owned();
    assert_eq!(visitor.send(&roll, &[("overlapHours", "73")]).status, 400);
    let response = visitor.send(&roll, &[("overlapHours", "0")]);
    let text = response.text();
    let key = text.split("class=\"secret\">").nth(1).and_then(|rest| rest.split('<').next()).expect("a key").to_owned();
    shop.get("/api/public/merchants/me").send().refused(401, "invalid_api_key");
    shop.api.get("/api/public/merchants/me").bearer(&key).send().ok(200);
    let renewed = cookie_of(&response);
    assert_ne!(renewed, visitor.cookie, "the session is another one from now on");
    assert_eq!(shop.api.get("/dashboard").header("cookie", &renewed).send().status, 200);
    assert_eq!((visitor.get("/dashboard").status, elsewhere.get("/dashboard").status), (303, 303));
    let forbidden = shared().shop();
    let page = Visitor::of(&forbidden).page("/dashboard/settings");
    assert!(page.contains("the operator can issue a new one") && !page.contains("/roll\""), "{page}");
}

fn pages_and_exports_have_the_limits_of_the_api() {
    let dev = Dev::with(&[
        "--limits",
        "production",
        "--set=limits.api_reads=1/min burst 6",
        "--set=limits.api_writes=1/min burst 3",
        "--set=limits.export=1/min burst 1",
    ]);
    let (shop, other) = (dev.shop(), dev.shop());
    let visitor = Visitor::of(&shop);
    assert_eq!(visitor.get("/dashboard/payments.csv").status, 200);
    let refused = visitor.get("/dashboard/payments.json");
    assert!(refused.status == 429 && refused.text().contains("Too many requests"), "{}", refused.text());
    assert!(refused.header("retry-after").is_some());
    let reads = (0..6).map(|_| visitor.get("/dashboard/payments").status).collect::<Vec<_>>();
    assert_eq!((reads.first(), reads.last()), (Some(&200), Some(&429)), "{reads:?}");
    let writes = (0..4).map(|_| visitor.send("/dashboard/webhooks/test", &[]).status).collect::<Vec<_>>();
    assert_eq!(writes.last(), Some(&429), "{writes:?}");
    assert_eq!(Visitor::of(&other).get("/dashboard/payments").status, 200, "others go on");
}

fn user_texts_are_escaped_on_every_page() {
    const EVIL: &str = "<img src=x onerror=alert(1)>\"'";
    let dev = shared();
    let shop = dev.shop().prove();
    shop.update(&json!({ "name": EVIL, "supportUrl": "https://a.example/?<script>" })).ok(200);
    let payment = shop.open_with(&json!({
        "amount": "1500", "currency": "HBD", "description": EVIL, "metadata": { EVIL: EVIL, "list": [EVIL] },
        "redirectUrl": "https://a.example/?\"><script>", "cancelUrl": "https://a.example/?'><script>",
    }));
    let bob = dev.demo_account("bob");
    dev.ledger.transfer(&bob, &shop.account.name, "2.500 HBD", &payment.memo);
    dev.ledger.transfer(&bob, &shop.account.name, "0.001 HBD", EVIL);
    shop.until(&payment.id, "overpaid", |record| record["amountOverpaid"] == "1000");
    let keys = format!("/api/public/merchants/{}/api-keys", shop.id);
    shop.post(&keys, &json!({ "name": EVIL, "scopes": ["payments:read"] })).send().ok(201);
    let visitor = Visitor::of(&shop);
    let path = format!("/dashboard/payments/{}", payment.id);
    visitor.done(&format!("{path}/resolve"), &[("kind", "accepted"), ("note", EVIL)]);
    let unmatched = until("the unmatched transfer", || {
        let page = visitor.page("/dashboard/unmatched");
        let link = page.split("href=\"").find(|rest| rest.starts_with("/dashboard/unmatched/"))?;
        Some(link.split('"').next()?.to_owned())
    });
    let admin = Visitor::log_in(&dev.api, dev.admin_key());
    let pages = [
        visitor.page("/dashboard"),
        visitor.page(&format!("/dashboard/payments?query={}", "%3Cimg%20src=x%22")),
        visitor.page(&path),
        visitor.get(&format!("{path}/refund")).text(),
        visitor.page(&unmatched),
        visitor.page("/dashboard/settings"),
        visitor.send("/dashboard/payments/new", &[("description", EVIL), ("metadata", EVIL), ("amount", EVIL)]).text(),
        visitor.send("/dashboard/settings", &[("name", EVIL), ("iconUrl", EVIL), ("webhookUrl", EVIL)]).text(),
        admin.page(&format!("/dashboard/merchants?query={}", shop.id)),
        admin.page(&format!("/dashboard/merchants/{}", shop.id)),
        admin.page(&format!("/dashboard/audit?merchantId={}", shop.id)),
    ];
    for page in pages {
        assert!(page.contains("<h1>") && !page.contains("<img") && !page.contains("<script"), "{page}");
        assert!(!page.contains("href=\"javascript:") && !page.contains("href=\"data:"), "{page}");
    }
}
