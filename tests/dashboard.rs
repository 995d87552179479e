//! The dashboard over HTTP: sessions, CSRF protection, and every action without a browser.

use serde_json::{Value, json};

use crate::harness::{Api, Dev, Receiver, Response, Shop, shared, until};

crate::tests!(
    a_key_opens_a_session_with_a_secure_cookie,
    a_wrong_key_opens_no_session_and_is_not_echoed,
    every_page_requires_a_session,
    a_session_id_chosen_by_the_client_is_rejected,
    forms_are_protected_against_csrf,
    payments_of_other_merchants_are_not_found,
    only_admins_see_merchants,
    pages_load_nothing_external_and_cannot_be_framed,
    logging_out_everywhere_ends_every_session,
    a_replaced_key_ends_its_sessions,
    payments_are_filtered_searched_and_exported_completely,
    no_export_cell_is_a_formula,
    a_test_payment_is_created_paid_and_cancelled,
    settings_are_saved_and_validated_by_field,
    a_new_secret_is_shown_once,
    an_admin_switches_a_merchant_off_and_on_and_issues_a_key,
    unmatched_transfers_are_assigned_or_ignored,
    a_merchant_proves_its_account_and_reviews_an_account_change,
    an_exception_is_resolved_and_its_refund_prepared,
    metadata_is_deleted_once_the_payment_is_final,
    webhooks_are_listed_tested_and_redelivered,
    guessing_keys_at_the_login_locks_the_ip_address_out,
);

/// A logged-in user.
pub(crate) struct Visitor {
    api: Api,
    pub(crate) cookie: String,
    token: String,
}

fn post_form(api: &Api, path: &str, cookie: Option<&str>, body: &str) -> Response {
    let request = api.request("POST", path).header("accept", "text/html");
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let request = if let Some(cookie) = cookie { request.header("cookie", cookie) } else { request };
    request.body(body).send()
}

fn form(pairs: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

pub(crate) fn cookie_of(response: &Response) -> String {
    let set = response.header("set-cookie").expect("a cookie");
    set.split(';').next().expect("its value").to_owned()
}

impl Visitor {
    pub(crate) fn log_in(api: &Api, key: &str) -> Self {
        let response = post_form(api, "/dashboard/login", None, &form(&[("key", key)]));
        assert_eq!((response.status, response.header("location")), (303, Some("/dashboard")), "{}", response.text());
        let mut visitor = Self { api: api.clone(), cookie: cookie_of(&response), token: String::new() };
        let page = visitor.page("/dashboard");
        let token = page.split("name=\"token\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
        visitor.token = token.expect("a form's token").to_owned();
        visitor
    }

    pub(crate) fn of(shop: &Shop) -> Self {
        Self::log_in(&shop.api, &shop.key)
    }

    /// Returns the same user at another facade.
    pub(crate) fn at(&self, api: &Api) -> Self {
        Self { api: api.clone(), cookie: self.cookie.clone(), token: self.token.clone() }
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.api.get(path).header("accept", "text/html").header("cookie", &self.cookie).send()
    }

    #[track_caller]
    pub(crate) fn page(&self, path: &str) -> String {
        let response = self.get(path);
        assert_eq!(response.status, 200, "{path}: {}", response.text());
        response.text()
    }

    pub(crate) fn send(&self, path: &str, pairs: &[(&str, &str)]) -> Response {
        let pairs: Vec<(&str, &str)> =
            [("token", self.token.as_str())].into_iter().chain(pairs.iter().copied()).collect();
        post_form(&self.api, path, Some(&self.cookie), &form(&pairs))
    }

    #[track_caller]
    pub(crate) fn done(&self, path: &str, pairs: &[(&str, &str)]) -> String {
        let response = self.send(path, pairs);
        assert_eq!(response.status, 303, "{path}: {}", response.text());
        response.header("location").expect("a page").to_owned()
    }
}

fn a_key_opens_a_session_with_a_secure_cookie() {
    let shop = shared().shop();
    let response = post_form(&shop.api, "/dashboard/login", None, &form(&[("key", &format!(" {} ", shop.key))]));
    let cookie = response.header("set-cookie").expect("a cookie");
    assert!(cookie.starts_with("__Host-hivetill="), "{cookie}");
    for part in ["Path=/", "Secure", "HttpOnly", "SameSite=Lax"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("Domain") && !cookie.contains(&shop.key));
    let page = Visitor::of(&shop).page("/dashboard");
    assert!(page.contains("Overview") && !page.contains(&shop.key) && !page.contains("<script"));
}

fn a_wrong_key_opens_no_session_and_is_not_echoed() {
    let api = &shared().api;
    for key in ["", "sk_live_000000000000000000000000000000000000000000000000", "<script>alert(1)</script>"] {
        let response = post_form(api, "/dashboard/login", None, &form(&[("key", key)]));
        assert_eq!(response.status, 401, "{key}");
        assert!(response.header("set-cookie").is_none());
        let page = response.text();
        assert!(page.contains("The API key is invalid") && (key.is_empty() || !page.contains(key)), "{page}");
    }
}

fn every_page_requires_a_session() {
    let api = &shared().api;
    let cookie = format!("__Host-hivetill={}", "0".repeat(66));
    for path in ["", "/payments", "/payments/new", "/payments.csv", "/settings", "/merchants", "/payments/pay_x"] {
        for cookie in ["", &cookie] {
            let response = api.get(&format!("/dashboard{path}")).header("cookie", cookie).send();
            assert_eq!((response.status, response.header("location")), (303, Some("/dashboard/login")), "{path}");
        }
    }
    for path in ["/logout", "/settings", "/payments/new", "/settings/secret", "/payments/pay_x/cancel"] {
        let response = post_form(api, &format!("/dashboard{path}"), Some(&cookie), "name=x");
        assert_eq!((response.status, response.header("location")), (303, Some("/dashboard/login")), "{path}");
    }
}

fn a_session_id_chosen_by_the_client_is_rejected() {
    let shop = shared().shop();
    let chosen = format!("__Host-hivetill={}", "a".repeat(66));
    let response = post_form(&shop.api, "/dashboard/login", Some(&chosen), &form(&[("key", &shop.key)]));
    let first = cookie_of(&response);
    assert_ne!(first, chosen);
    // Another login creates another session and ends the previous one.
    let response = post_form(&shop.api, "/dashboard/login", Some(&first), &form(&[("key", &shop.key)]));
    assert_ne!(cookie_of(&response), first);
    for old in [chosen, first] {
        assert_eq!(shop.api.get("/dashboard").header("cookie", &old).send().status, 303);
    }
}

fn forms_are_protected_against_csrf() {
    let shop = shared().shop();
    let (visitor, other) = (Visitor::of(&shop), Visitor::of(&shop));
    let change = |token: &str| form(&[("token", token), ("name", "Stolen"), ("hiveAccount", &shop.account.name)]);
    for token in ["", "00", &other.token] {
        let response = post_form(&shop.api, "/dashboard/settings", Some(&visitor.cookie), &change(token));
        assert_eq!(response.status, 403, "{token}");
    }
    let from = |header: &str, value: &str| {
        let request =
            shop.api.request("POST", "/dashboard/settings").header("cookie", &visitor.cookie).header(header, value);
        request.header("content-type", "application/x-www-form-urlencoded").body(change(&visitor.token)).send().status
    };
    assert_eq!(from("sec-fetch-site", "cross-site"), 403);
    assert_eq!(from("sec-fetch-site", "same-site"), 403);
    assert_eq!(from("origin", "https://evil.example"), 403);
    assert_eq!(from("origin", "null"), 403);
    assert_ne!(shop.get("/api/public/merchants/me").send().ok(200)["name"], "Stolen");
    assert_eq!(from("origin", &shop.api.base), 303);
    assert_eq!(shop.get("/api/public/merchants/me").send().ok(200)["name"], "Stolen");
    let login = shop.api.request("POST", "/dashboard/login").header("origin", "https://evil.example");
    assert_eq!(login.body(form(&[("key", &shop.key)])).send().status, 403, "a cross-site form cannot log in");
}

fn payments_of_other_merchants_are_not_found() {
    let (shop, other) = (shared().shop(), shared().shop());
    let foreign = other.open_payment();
    let visitor = Visitor::of(&shop);
    assert_eq!(visitor.get(&format!("/dashboard/payments/{}", foreign.id)).status, 404);
    for action in ["cancel", "pay"] {
        let path = format!("/dashboard/payments/{}/{action}", foreign.id);
        assert_eq!(visitor.send(&path, &[("how", "full")]).status, 404, "{action}");
    }
    for path in ["/dashboard/payments", "/dashboard/payments.csv", "/dashboard/payments.json"] {
        assert!(!visitor.page(&format!("{path}?query={}", foreign.id)).contains(&foreign.memo[4..30].repeat(2)));
    }
    assert!(!visitor.page("/dashboard/payments.csv").contains(&foreign.id));
    assert_eq!(other.payment(&foreign.id)["status"], "pending");
}

fn only_admins_see_merchants() {
    let shop = shared().shop();
    let visitor = Visitor::of(&shop);
    assert!(!visitor.page("/dashboard").contains("/dashboard/merchants"));
    assert_eq!(visitor.get("/dashboard/merchants").status, 403);
    assert_eq!(visitor.send(&format!("/dashboard/merchants/{}/active", shop.id), &[("active", "false")]).status, 403);
    assert_eq!(visitor.send(&format!("/dashboard/merchants/{}/key", shop.id), &[]).status, 403);
    assert_eq!(shop.get("/api/public/merchants/me").send().ok(200)["isActive"], true);
}

fn pages_load_nothing_external_and_cannot_be_framed() {
    let shop = shared().shop();
    let visitor = Visitor::of(&shop);
    for path in ["/dashboard", "/dashboard/login", "/dashboard/payments", "/dashboard/settings", "/dashboard/nothing"] {
        let response = visitor.get(path);
        let policy = response.header("content-security-policy").expect("a policy");
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"), "{path}: {policy}");
        for (name, value) in
            [("x-frame-options", "DENY"), ("cache-control", "no-store"), ("referrer-policy", "no-referrer")]
        {
            assert_eq!(response.header(name), Some(value), "{path}");
        }
        let page = response.text();
        assert!(!page.contains("<script") && !page.contains(" style=") && !page.contains(" onclick"), "{path}");
    }
}

fn logging_out_everywhere_ends_every_session() {
    let shop = shared().shop();
    let (here, there, third) = (Visitor::of(&shop), Visitor::of(&shop), Visitor::of(&shop));
    assert_eq!(here.done("/dashboard/logout", &[]), "/dashboard/login");
    assert_eq!((here.get("/dashboard").status, there.get("/dashboard").status), (303, 200));
    there.done("/dashboard/logout", &[("everywhere", "1")]);
    assert_eq!((there.get("/dashboard").status, third.get("/dashboard").status), (303, 303));
}

fn a_replaced_key_ends_its_sessions() {
    let dev = shared();
    let shop = dev.shop();
    let visitor = Visitor::of(&shop);
    dev.api
        .request("POST", &format!("/api/admin/merchants/{}/api-key", shop.id))
        .bearer(dev.admin_key())
        .send()
        .ok(200);
    let response = visitor.get("/dashboard");
    assert_eq!((response.status, response.header("location")), (303, Some("/dashboard/login")));
}

fn payments_are_filtered_searched_and_exported_completely() {
    let shop = shared().shop();
    let visitor = Visitor::of(&shop);
    let open = |n: u32| {
        let metadata = json!({ "order": format!("order-{n}") });
        let currency = if n.is_multiple_of(2) { "HIVE" } else { "HBD" };
        shop.open_with(
            &json!({ "amount": "1000", "currency": currency, "description": format!("Mug {n}"), "metadata": metadata }),
        )
    };
    let payments: Vec<_> = (0..25).map(open).collect();
    shop.cancelled(&payments[3].id);
    let page = visitor.page("/dashboard/payments");
    assert!(page.contains("25 payments") && page.contains("Mug 24") && !page.contains("Mug 3<"), "{page}");
    let next = page.split("href=\"").find(|rest| rest.contains("cursor=")).and_then(|rest| rest.split('"').next());
    assert!(visitor.page(&next.expect("older ones").replace("&#38;", "&")).contains("Mug 3<"));
    for (filter, count) in [
        ("currency=HBD", 12),
        ("status=user_cancelled", 1),
        ("status=pending&currency=HIVE", 13),
        ("query=order-17", 1),
        ("query=Mug", 25),
        ("from=2020-01-01&to=2020-01-02", 0),
        ("from=2020-01-01", 25),
        ("unusual=1", 0),
    ] {
        let page = visitor.page(&format!("/dashboard/payments?{filter}"));
        assert!(page.contains(&format!("{count} payments")), "{filter}: {page}");
        let rows = visitor.get(&format!("/dashboard/payments.json?{filter}")).json();
        assert_eq!(rows.as_array().map(Vec::len), Some(count), "{filter}");
        let csv = visitor.page(&format!("/dashboard/payments.csv?{filter}"));
        assert_eq!(csv.lines().count(), count + 1, "{filter}");
    }
    let wrong = visitor.get("/dashboard/payments?from=yesterday&status=paid");
    assert_eq!(wrong.status, 400);
    assert!(wrong.text().contains("from must be") && wrong.text().contains("status must be"));
}

fn no_export_cell_is_a_formula() {
    let shop = shared().shop();
    let body = json!({ "amount": "1000", "currency": "HBD", "description": "=HYPERLINK(\"https://evil.example\")",
        "metadata": { "@note": "+1" } });
    shop.open_with(&body);
    let response = Visitor::of(&shop).get("/dashboard/payments.csv");
    assert!(response.header("content-disposition").is_some_and(|value| value.starts_with("attachment")));
    let csv = response.text();
    assert!(
        csv.contains("\"'=HYPERLINK(\"\"https://evil.example\"\")\"") && csv.contains("\"{\"\"@note\"\":\"\"+1\"\"}\""),
        "{csv}"
    );
}

fn a_test_payment_is_created_paid_and_cancelled() {
    let shop = shared().shop();
    let visitor = Visitor::of(&shop);
    let make = |amount: &str| {
        let fields =
            [("amount", amount), ("currency", "HBD"), ("description", "A <b>mug</b>"), ("metadata", "order=7\n")];
        visitor.done("/dashboard/payments/new", &fields)
    };
    let id = |path: &str| path.rsplit('/').next().expect("an id").to_owned();
    type Row = (&'static str, &'static str, fn(&Value) -> bool);
    let states: [Row; 5] = [
        ("full", "completed", |record| record["status"] == "completed"),
        ("partial", "underpaid", |record| record["amountPaid"] == "1250"),
        ("over", "overpaid", |record| record["amountOverpaid"] == "1000"),
        ("currency", "wrong_currency", |record| record["exceptions"][0] == "wrong_currency"),
        ("memo", "pending", |record| record["status"] == "pending"),
    ];
    for (how, word, is) in states {
        let path = make("2.5");
        assert!(visitor.page(&path).contains("A &#60;b&#62;mug"));
        visitor.done(&format!("{path}/pay"), &[("how", how)]);
        shop.until(&id(&path), word, is);
        assert!(visitor.page(&path).contains(word), "{how}");
    }
    let path = make("1");
    visitor.done(&format!("{path}/cancel"), &[]);
    shop.until_status(&id(&path), "user_cancelled");
    visitor.done(&format!("{path}/pay"), &[("how", "late")]);
    shop.until(&id(&path), "paid after the end", |record| record["amountLate"] == "1000");
    for (field, value) in [
        ("amount", "1.2345"),
        ("amount", "-1"),
        ("description", ""),
        ("minutes", "0"),
        ("redirectUrl", "javascript:alert(1)"),
    ] {
        let mut fields = vec![("amount", "1"), ("currency", "HBD"), ("description", "x")];
        fields.retain(|(name, _)| *name != field);
        fields.push((field, value));
        let response = visitor.send("/dashboard/payments/new", &fields);
        assert_eq!(response.status, 400, "{field}");
        assert!(response.text().contains(&format!("<li>{field} ")), "{field}: {}", response.text());
    }
}

fn settings_are_saved_and_validated_by_field() {
    let shop = shared().shop();
    let visitor = Visitor::of(&shop);
    let account = shop.account.name.as_str();
    let path = visitor.done(
        "/dashboard/settings",
        &[
            ("name", "Mugs & more"),
            ("hiveAccount", account),
            ("iconUrl", "https://a.example/i.png"),
            ("webhookUrl", "https://a.example/h"),
            ("supportUrl", "mailto:help@a.example"),
        ],
    );
    assert!(visitor.page(&path).contains("Saved."));
    let record = shop.get("/api/public/merchants/me").send().ok(200);
    assert_eq!((&record["name"], &record["x402Enabled"]), (&json!("Mugs & more"), &json!(false)));
    assert_eq!(record["restartEnabled"], false);
    assert_eq!(record["supportUrl"], "mailto:help@a.example");
    let wrong =
        visitor.send("/dashboard/settings", &[("name", ""), ("hiveAccount", "No"), ("iconUrl", "javascript:x")]);
    assert_eq!(wrong.status, 400);
    let page = wrong.text();
    for field in ["name", "hiveAccount", "iconUrl"] {
        assert!(page.contains(&format!("<li>{field} ")), "{field}: {page}");
    }
    assert_eq!(record["webhookEvents"], json!(["payment.status_changed"]));
    let more = [("event.payment.exception", "1"), ("event.x402.settled", "1")];
    let with = |rest: &[(&'static str, &'static str)]| {
        let own = [("name", "Mugs"), ("hiveAccount", account), ("x402", "1"), ("restart", "1")];
        visitor.done("/dashboard/settings", &[&own, rest].concat());
        shop.get("/api/public/merchants/me").send().ok(200)
    };
    let record = with(&more);
    assert_eq!(record["restartEnabled"], true);
    assert_eq!(record["webhookEvents"], json!(["payment.status_changed", "payment.exception", "x402.settled"]));
    let page = visitor.page("/dashboard/settings");
    let is_ticked = |word: &str| {
        let (_, rest) = page.split_once(&format!("name=\"event.{word}\"")).expect(word);
        rest.split('>').next().is_some_and(|rest| rest.contains("checked"))
    };
    for (word, wanted) in [
        ("payment.status_changed", true),
        ("payment.exception", true),
        ("x402.settled", true),
        ("merchant.account_change", false),
    ] {
        assert_eq!(is_ticked(word), wanted, "{word}");
    }
    let record = with(&[]);
    assert_eq!(record["webhookEvents"], json!(["payment.status_changed"]), "every endpoint is sent it");
    assert_eq!(
        (&record["iconUrl"], &record["x402Enabled"]),
        (&Value::Null, &json!(true)),
        "an emptied field is cleared"
    );
}

fn a_new_secret_is_shown_once() {
    let shop = shared().shop();
    let visitor = Visitor::of(&shop);
    let response = visitor.send("/dashboard/settings/secret", &[("graceHours", "24")]);
    let page = response.text();
    let secret = page.split("class=\"secret\">").nth(1).and_then(|rest| rest.split('<').next()).expect("a secret");
    assert!(secret.starts_with("whsec_") && page.contains("also signs until"));
    assert!(!visitor.page("/dashboard/settings").contains("whsec_"));
    assert_eq!(visitor.send("/dashboard/settings/secret", &[("graceHours", "169")]).status, 400);
}

fn an_admin_switches_a_merchant_off_and_on_and_issues_a_key() {
    let dev: &Dev = shared();
    let shop = dev.shop().prove();
    let admin = Visitor::log_in(&dev.api, dev.admin_key());
    let page = admin.page(&format!("/dashboard/merchants?query={}&limit=50", shop.account.name));
    assert!(page.contains(&shop.id) && page.contains("Deactivate"), "{page}");
    let path = format!("/dashboard/merchants/{}/active", shop.id);
    assert!(admin.page(&admin.done(&path, &[("active", "false")])).contains("The merchant is inactive."));
    assert_eq!(shop.get("/api/public/merchants/me").send().ok(200)["isActive"], false);
    assert!(Visitor::of(&shop).page("/dashboard").contains("inactive"));
    admin.done(&path, &[("active", "true")]);
    let page = admin.send(&format!("/dashboard/merchants/{}/key", shop.id), &[]).text();
    let key = page.split("class=\"secret\">").nth(1).and_then(|rest| rest.split('<').next()).expect("a key");
    shop.get("/api/public/merchants/me").send().refused(401, "invalid_api_key");
    Visitor::log_in(&dev.api, key);
}

fn unmatched_transfers_are_assigned_or_ignored() {
    let dev = shared();
    let (shop, other) = (dev.shop().prove(), dev.shop().prove());
    let (visitor, third_party) = (Visitor::of(&shop), Visitor::of(&other));
    let payment = shop.open_payment();
    let bob = dev.demo_account("bob");
    dev.ledger.transfer(&bob, &shop.account.name, "1.500 HBD", "for the <b>mug</b>");
    dev.ledger.transfer(&bob, &shop.account.name, "0.007 HBD", "a tip");
    let page = until("both transfers", || {
        let page = visitor.page("/dashboard/unmatched");
        (page.contains("a tip") && page.contains("for the &#60;b&#62;mug")).then_some(page)
    });
    let link = |words: &str| {
        let row = page.split("<tr>").find(|row| row.contains(words)).expect("its row");
        row.split("href=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("its page").to_owned()
    };
    let (mug, tip) = (link("for the"), link("a tip"));
    assert!(visitor.page(&mug).contains("A blue mug"), "the open payment is the likeliest");
    assert_eq!(third_party.get(&mug).status, 404);
    assert_eq!(third_party.send(&format!("{mug}/assign"), &[("paymentId", &payment.id)]).status, 404);
    let wrong = visitor.send(&format!("{mug}/assign"), &[("paymentId", "pay_nonsense")]);
    assert!((400..500).contains(&wrong.status), "{}", wrong.status);
    let path = visitor.done(&format!("{mug}/assign"), &[("paymentId", &payment.id)]);
    assert!(visitor.page(&path).contains("assigned to this payment"));
    shop.until(&payment.id, "paid by hand", |record| record["transfers"][0]["route"] == "manual");
    visitor.done(&format!("{tip}/ignore"), &[("note", "Thanks")]);
    assert!(!visitor.page("/dashboard/unmatched").contains("a tip"));
    assert!(visitor.page("/dashboard/unmatched?status=ignored").contains("a tip"));
    assert!(visitor.page(&tip).contains("Thanks"));
}

fn an_exception_is_resolved_and_its_refund_prepared() {
    let dev = shared();
    let shop = dev.shop().prove();
    let visitor = Visitor::of(&shop);
    let payment = shop.open_payment();
    dev.ledger.transfer(&dev.demo_account("bob"), &shop.account.name, "2.500 HBD", &payment.memo);
    shop.until(&payment.id, "overpaid", |record| record["amountOverpaid"] == "1000");
    let path = format!("/dashboard/payments/{}", payment.id);
    assert!(visitor.page(&path).contains(&format!("{path}/refund")));
    let refund = visitor.page(&format!("{path}/refund"));
    for part in ["1.000 HBD", "@bob", &format!("refund-{}", payment.id), "hive://sign/op/", "hivesigner.com/sign/"] {
        assert!(refund.contains(part), "{part}: {refund}");
    }
    assert!(visitor.page(&format!("{path}/refund?amount=0.25")).contains("0.250 HBD"));
    assert_eq!(visitor.get(&format!("{path}/refund?amount=much")).status, 400);
    let wrong = visitor.send(&format!("{path}/resolve"), &[("kind", "forgotten")]);
    assert!((400..500).contains(&wrong.status), "{}", wrong.status);
    visitor.done(&format!("{path}/resolve"), &[("kind", "accepted"), ("note", "It was a <tip>")]);
    let record = shop.payment(&payment.id);
    assert_eq!((&record["resolution"]["kind"], &record["needsAttention"]), (&json!("accepted"), &json!(false)));
    assert!(visitor.page(&path).contains("It was a &#60;tip&#62;"));
    visitor.done(&format!("{path}/delete-note"), &[]);
    let page = visitor.page(&path);
    assert!(!page.contains("&#60;tip&#62;") && !page.contains("delete-note") && page.contains("accepted"), "{page}");
}

fn metadata_is_deleted_once_the_payment_is_final() {
    let shop = shared().shop();
    let visitor = Visitor::of(&shop);
    let payment = shop.open_with(&json!({
        "amount": "1500", "currency": "HBD", "description": "Mug", "metadata": { "customer": "adalovelace" },
    }));
    let path = format!("/dashboard/payments/{}", payment.id);
    assert!(!visitor.page(&path).contains("delete-metadata"), "it can still change");
    let early = visitor.send(&format!("{path}/delete-metadata"), &[]);
    assert_eq!(early.status, 409, "{}", early.text());
    shop.cancelled(&payment.id);
    assert!(visitor.page(&path).contains("delete-metadata"));
    visitor.done(&format!("{path}/delete-metadata"), &[]);
    let page = visitor.page(&path);
    assert!(!page.contains("adalovelace") && !page.contains("delete-metadata"), "{page}");
}

fn webhooks_are_listed_tested_and_redelivered() {
    let (shop, other) = (shared().shop(), shared().shop());
    let (visitor, third_party) = (Visitor::of(&shop), Visitor::of(&other));
    assert!(visitor.page("/dashboard/webhooks").contains("not set"));
    let receiver = Receiver::start();
    shop.set_webhook(&receiver);
    visitor.done("/dashboard/webhooks/test", &[]);
    let payment = shop.open_payment();
    shop.cancelled(&payment.id);
    let page = until("both deliveries", || {
        let page = visitor.page("/dashboard/webhooks?state=delivered");
        (page.matches(">Redeliver<").count() == 2).then_some(page)
    });
    assert!(page.contains("success 200") && page.contains("<td>test</td>"), "{page}");
    let link = page.split("<td><a href=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a delivery");
    assert!(visitor.page(link).contains("Attempt 1: success 200"));
    assert_eq!(third_party.get(link).status, 404);
    assert_eq!(third_party.send(&format!("{link}/redeliver"), &[]).status, 404);
    let shown = visitor.done(&format!("{link}/redeliver"), &[]);
    assert!(visitor.page(&shown).contains("The event is being redelivered."));
    until("the third", || {
        let page = visitor.page("/dashboard/webhooks?state=delivered");
        (page.matches(">Redeliver<").count() == 3).then_some(())
    });
    // A test event of a chosen type and status.
    for (kind, status, event) in [
        ("payment.status_changed", "failed", json!({ "status": "failed" })),
        ("payment.exception", "pending", json!({ "status": "pending" })),
        ("merchant.account_change", "", json!({})),
    ] {
        let before = receiver.hooks().len();
        visitor.done("/dashboard/webhooks/test", &[("type", kind), ("status", status)]);
        let sent = until("the test event", || receiver.hooks().get(before).map(crate::harness::Hook::json));
        assert_eq!(sent["type"], kind);
        assert_eq!(sent["data"]["status"], event["status"], "{sent}");
    }
    for (kind, status, field) in [
        ("payment.status_changed", "pending", "status"),
        ("x402.settled", "completed", "status"),
        ("payment.created", "", "type"),
        ("payment.exception", "paid", "status"),
    ] {
        let refused = visitor.send("/dashboard/webhooks/test", &[("type", kind), ("status", status)]);
        assert_eq!(refused.status, 400, "{kind} {status}");
        let page = refused.text();
        assert!(page.contains(&format!("<li>{field} ")), "{field}: {page}");
        assert!(page.contains(&format!("<option selected>{kind}</option>")) || field == "type", "kept: {page}");
    }
    visitor.done("/dashboard/webhooks/replay", &[("hours", "24")]);
    for hours in ["0", "721", "x"] {
        assert_eq!(visitor.send("/dashboard/webhooks/replay", &[("hours", hours)]).status, 400, "{hours}");
    }
}

fn guessing_keys_at_the_login_locks_the_ip_address_out() {
    let dev = Dev::with(&["--limits", "production"]);
    let wrong = form(&[("key", "sk_live_000000000000000000000000000000000000000000000000")]);
    let locked =
        (0..30).map(|_| post_form(&dev.api, "/dashboard/login", None, &wrong)).find(|response| response.status == 429);
    let page = locked.expect("an end to guessing").text();
    assert!(page.contains("too many invalid API keys"), "{page}");
    // The correct key is rejected, too, during the lockout.
    let right = form(&[("key", dev.startup["merchant"]["apiKey"].as_str().expect("a key"))]);
    assert_eq!(post_form(&dev.api, "/dashboard/login", None, &right).status, 429);
}

fn a_merchant_proves_its_account_and_reviews_an_account_change() {
    let dev = shared();
    let shop = dev.shop();
    let visitor = Visitor::of(&shop);
    let refused = visitor.get("/dashboard/unmatched");
    assert_eq!(refused.status, 403);
    assert!(refused.text().contains("Prove ownership"), "{}", refused.text());
    let shown = visitor.send("/dashboard/account/challenge", &[("hiveAccount", &shop.account.name)]);
    assert_eq!(shown.status, 200);
    let challenge = shop.challenge(&json!({}));
    let (text, nonce) = (challenge["text"].as_str().expect("a text"), challenge["nonce"].as_str().expect("a nonce"));
    for part in [nonce, challenge["transfer"]["hivesignerUrl"].as_str().expect("a link"), "/assets/account.js"] {
        assert!(shown.text().contains(part), "{part} is missing: {}", shown.text());
    }
    let wrong = dev.demo_account("alice").sign(text);
    let wrong = visitor.send("/dashboard/account/prove", &[("nonce", nonce), ("signatures", &wrong)]);
    assert_eq!(wrong.status, 400);
    assert!(wrong.text().contains("active authority"), "{}", wrong.text());
    let path = visitor.done("/dashboard/account/prove", &[("nonce", nonce), ("signatures", &shop.account.sign(text))]);
    assert!(visitor.page(&path).contains("Ownership is proven."));
    assert!(visitor.page("/dashboard/unmatched").contains("No transfers."));

    let new = dev.ledger.account("new");
    shop.update(&json!({ "hiveAccount": new.name })).ok(200);
    assert!(visitor.page("/dashboard").contains(&format!("to @{} is pending", new.name)), "every page announces it");
    let page = visitor.page("/dashboard/account");
    assert!(page.contains(&format!("Sign as @{}", shop.account.name)), "{page}");
    let path = visitor.done("/dashboard/account/cancel", &[]);
    assert!(visitor.page(&path).contains("The change was cancelled."));
    assert!(!visitor.page("/dashboard").contains("is pending"));
}
