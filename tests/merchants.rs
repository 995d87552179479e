//! Merchants: registration, their record, their secrets, and admin actions.

use serde_json::{Value, json};

use crate::harness::{Receiver, Shop, order, shared, until};

crate::tests!(
    a_registration_shows_key_and_secret_once,
    a_registration_needs_a_name_and_an_account_that_can_receive,
    visible_texts_reject_invisible_characters,
    an_update_works_with_both_methods_and_changes_only_named_fields,
    an_explicit_null_clears_a_url,
    urls_are_validated,
    a_merchant_can_access_only_itself,
    two_merchants_may_share_an_account,
    a_new_webhook_secret_replaces_the_old_one_immediately,
    during_the_grace_period_both_secrets_sign,
    replaced_secrets_sign_until_their_own_expiry_and_a_fourth_is_rejected,
    an_admin_lists_finds_and_filters_merchants,
    an_inactive_merchant_can_read_but_not_create_payments,
    a_new_key_replaces_the_old_one_immediately,
    admin_paths_need_an_admin,
);

const REGISTER: &str = "/api/public/merchants/register";

fn path(shop: &Shop) -> String {
    format!("/api/public/merchants/{}", shop.id)
}

fn a_registration_shows_key_and_secret_once() {
    let dev = shared();
    let account = dev.ledger.account("reg");
    let body = json!({ "name": "Größe & Söhne", "hiveAccount": account.name, "iconUrl": "https://shop.example/i.png" });
    let made = dev.api.post(REGISTER, &body).send().ok(201);
    let (key, secret) = (made["apiKey"].as_str().unwrap(), made["webhookSecret"].as_str().unwrap());
    let hex = key.strip_prefix("sk_live_").unwrap();
    assert!(hex.len() == 48 && hex.bytes().all(|b| b.is_ascii_hexdigit()), "{key}");
    assert_eq!(secret.strip_prefix("whsec_").unwrap().len(), 44, "base64 of 32 bytes");
    let merchant = &made["merchant"];
    assert!(merchant["id"].as_str().is_some_and(|id| id.starts_with("mer_") && id.len() == 30));
    assert_eq!(merchant["name"], "Größe & Söhne");
    assert_eq!(merchant["hiveAccount"], account.name);
    assert_eq!(merchant["hiveAccountName"], account.name);
    assert_eq!(merchant["iconUrl"], "https://shop.example/i.png");
    assert_eq!((&merchant["isActive"], &merchant["active"]), (&json!(true), &json!(true)));
    assert_eq!(merchant["x402Enabled"], true);
    assert_eq!(merchant["privileges"], json!([]));
    assert_eq!(merchant["apiKeyLast4"], &key[key.len() - 4..]);
    assert!(merchant["createdAt"].as_str().is_some_and(|at| at.ends_with('Z')));

    let me = dev.api.get("/api/public/merchants/me").bearer(key).send();
    for text in [key, secret, hex] {
        assert!(!me.text().contains(text), "shown again");
    }
    let by_id = dev.api.get(&format!("/api/public/merchants/{}", merchant["id"].as_str().unwrap()));
    assert_eq!(by_id.x_api_key(key).send().ok(200)["id"], merchant["id"]);
    until("the key's use to be noted", || {
        let me = dev.api.get("/api/public/merchants/me").bearer(key).send().ok(200);
        me["apiKeyLastUsedAt"].is_string().then_some(())
    });

    let alias = json!({ "name": "By its other name", "hiveAccountName": account.name });
    assert_eq!(dev.api.post(REGISTER, &alias).send().ok(201)["merchant"]["hiveAccount"], account.name);
}

fn a_registration_needs_a_name_and_an_account_that_can_receive() {
    let api = &shared().api;
    let account = shared().ledger.account("reg").name;
    let long = "é".repeat(101);
    for (body, fields) in [
        (json!({}), vec!["hiveAccount", "name"]),
        (json!({ "name": "x" }), vec!["hiveAccount"]),
        (json!({ "hiveAccount": account }), vec!["name"]),
        (json!({ "name": "", "hiveAccount": account }), vec!["name"]),
        (json!({ "name": " ", "hiveAccount": account }), vec!["name"]),
        (json!({ "name": "a\nb", "hiveAccount": account }), vec!["name"]),
        (json!({ "name": long, "hiveAccount": account }), vec!["name"]),
        (json!({ "name": 7, "hiveAccount": account }), vec!["name"]),
        (json!({ "name": null, "hiveAccount": account }), vec!["name"]),
        (json!({ "name": ["x"], "hiveAccount": { "a": 1 } }), vec!["hiveAccount", "name"]),
        (json!({ "name": "x", "hiveAccount": account, "iconUrl": "ftp://x" }), vec!["iconUrl"]),
        (json!({ "name": "x", "hiveAccount": account, "iconUrl": "not a url" }), vec!["iconUrl"]),
        (json!({ "name": "x", "hiveAccount": account, "iconUrl": 1 }), vec!["iconUrl"]),
        (json!({ "name": "x", "hiveAccount": account, "hiveAccountName": "bob" }), vec!["hiveAccountName"]),
    ] {
        api.post(REGISTER, &body).send().wrong(&fields);
    }
    let fits = json!({ "name": "é".repeat(100), "hiveAccount": account });
    api.post(REGISTER, &fits).send().ok(201);
    for (account, reason) in [
        ("nobody-here", "unknown_account"),
        ("null", "refused_account"),
        ("steem.dao", "refused_account"),
        ("hive.fund", "refused_account"),
        ("Alice", "validation_failed"),
        ("al", "validation_failed"),
        ("a..b", "validation_failed"),
        ("-alice", "validation_failed"),
        ("alice ", "validation_failed"),
        ("@alice", "validation_failed"),
        ("", "validation_failed"),
        ("abcdefghijklmnopq", "validation_failed"),
    ] {
        let response = api.post(REGISTER, &json!({ "name": "x", "hiveAccount": account })).send();
        let body = response.wrong(&["hiveAccount"]);
        assert_eq!(body["reason"], reason, "{account:?}: {body}");
    }
}

fn visible_texts_reject_invisible_characters() {
    let shop = shared().shop();
    let put = |body: &Value| shop.api.put(&path(&shop), body).bearer(&shop.key).send();
    let account = &shop.account.name;
    for name in ["فروشگاه کتاب‌های من", "I ❤️ tea 👨‍👩‍👧‍👦", "Cafe\u{301}"] {
        let made = shop.api.post(REGISTER, &json!({ "name": name, "hiveAccount": account })).send().ok(201);
        let shown = made["merchant"]["name"].as_str().expect("a name").to_owned();
        assert_eq!(shown, name.replace("e\u{301}", "é"));
        let renamed = put(&json!({ "name": name })).ok(200);
        assert_eq!(renamed["name"], shown);
        let mut body = order();
        body["description"] = json!(name);
        assert_eq!(shop.post("/api/public/payments", &body).send().ok(201)["description"], shown);
    }
    for hidden in [
        "Shop\u{202e}gnp",
        "Sh\u{200b}op",
        "Shop\u{e0041}",
        "\u{3164}",
        "\u{200d}",
        "a\u{2066}b",
        "Shop\u{200d}",
        "\u{2800}",
    ] {
        shop.api.post(REGISTER, &json!({ "name": hidden, "hiveAccount": account })).send().wrong(&["name"]);
        put(&json!({ "name": hidden })).wrong(&["name"]);
        let mut body = order();
        body["description"] = json!(hidden);
        shop.post("/api/public/payments", &body).send().wrong(&["description"]);
        let url = format!("https://shop.example/{hidden}");
        put(&json!({ "supportUrl": url })).wrong(&["supportUrl"]);
    }
    let refused = put(&json!({ "webhookUrl": "localhost:3000/hook" })).wrong(&["webhookUrl"]);
    assert!(refused.to_string().contains("must begin with a scheme, such as https://localhost:3000/hook"), "{refused}");
}

fn an_update_works_with_both_methods_and_changes_only_named_fields() {
    let shop = shared().shop();
    let before = shop.get(&path(&shop)).send().ok(200);
    let posted = shop.api.post(&path(&shop), &json!({ "x402Enabled": false })).x_api_key(&shop.key).send().ok(200);
    assert_eq!((&posted["x402Enabled"], &posted["name"]), (&json!(false), &before["name"]));
    let url = "https://shop.example/hook?token=1";
    let put = shop.api.put(&path(&shop), &json!({ "webhookUrl": url })).bearer(&shop.key).send().ok(200);
    assert_eq!((&put["webhookUrl"], &put["x402Enabled"]), (&json!(url), &json!(false)));
    let named = shop.update(&json!({ "name": "New name", "iconUrl": "https://shop.example/x.svg" })).ok(200);
    assert_eq!((&named["name"], &named["webhookUrl"]), (&json!("New name"), &json!(url)));
    let same = shop.update(&json!({})).ok(200);
    assert_eq!(same["name"], "New name");
    let moved = shared().ledger.account("moved").name;
    assert_eq!(shop.update(&json!({ "hiveAccountName": moved })).ok(200)["hiveAccount"], moved);
    shop.update(&json!({ "hiveAccount": "nobody-here" })).wrong(&["hiveAccount"]);
    shop.update(&json!({ "hiveAccount": "null" })).wrong(&["hiveAccount"]);
    assert_eq!(shop.get(&path(&shop)).send().ok(200)["hiveAccount"], moved, "a refused update changes nothing");
}

fn an_explicit_null_clears_a_url() {
    let shop = shared().shop();
    shop.update(&json!({ "webhookUrl": "https://a.example/h", "iconUrl": "https://a.example/i" })).ok(200);
    let cleared = shop.update(&json!({ "webhookUrl": null })).ok(200);
    assert_eq!((&cleared["webhookUrl"], &cleared["iconUrl"]), (&json!(null), &json!("https://a.example/i")));
    assert_eq!(shop.update(&json!({ "iconUrl": null })).ok(200)["iconUrl"], json!(null));
    for (member, value) in [("name", json!(null)), ("hiveAccount", json!(null)), ("x402Enabled", json!(null))] {
        shop.update(&json!({ member: value })).wrong(&[member]);
    }
}

fn urls_are_validated() {
    let shop = shared().shop();
    let long = format!("https://a.example/{}", "x".repeat(2_048));
    for bad in ["", "shop", "ftp://a.example/", "https://", "https://u:p@a.example/", "https://a.example/#f", &long] {
        shop.update(&json!({ "webhookUrl": bad })).wrong(&["webhookUrl"]);
    }
    for bad in [json!(1), json!(true), json!(["https://a.example"])] {
        shop.update(&json!({ "webhookUrl": bad })).wrong(&["webhookUrl"]);
    }
    shop.update(&json!({ "x402Enabled": "true" })).wrong(&["x402Enabled"]);
    shop.update(&json!({ "webhookUrl": 1, "x402Enabled": 2, "name": 3 })).wrong(&["webhookUrl", "x402Enabled", "name"]);
}

fn a_merchant_can_access_only_itself() {
    let (shop, other) = (shared().shop(), shared().shop());
    for id in [other.id.as_str(), "mer_00000000000000000000000000", "nonsense"] {
        let path = format!("/api/public/merchants/{id}");
        shop.get(&path).send().refused(403, "forbidden_merchant");
        shop.post(&path, &json!({ "name": "mine" })).send().refused(403, "forbidden_merchant");
        let put = shop.api.put(&path, &json!({ "name": "mine" })).bearer(&shop.key).send();
        put.refused(403, "forbidden_merchant");
        let secret = format!("{path}/webhook-secret");
        shop.post(&secret, &json!({})).send().refused(403, "forbidden_merchant");
    }
    assert_ne!(other.get(&path(&other)).send().ok(200)["name"], "mine");
}

fn two_merchants_may_share_an_account() {
    let dev = shared();
    let first = dev.shop();
    let second = Shop::open_for(&dev.api, first.account.clone());
    let (of_first, of_second) = (first.open_payment(), second.open_payment());
    let alice = dev.demo_account("alice");
    for payment in [&of_second, &of_first] {
        dev.ledger.transfer(&alice, &first.account.name, "1.500 HBD", &payment.memo);
    }
    first.until_status(&of_first.id, "completed");
    second.until_status(&of_second.id, "completed");
    first.get(&format!("/api/public/payments/{}", of_second.id)).send().refused(404, "not_found");
}

/// Cancels a payment of the shop, which sends a webhook to its receiver.
fn event(shop: &Shop, receiver: &Receiver, number: usize) -> crate::harness::Hook {
    let payment = shop.open_payment();
    shop.cancelled(&payment.id);
    receiver.hook(number)
}

fn a_new_webhook_secret_replaces_the_old_one_immediately() {
    let (shop, receiver) = (shared().shop(), Receiver::start());
    shop.set_webhook(&receiver);
    event(&shop, &receiver, 0).verify(&shop.secret);
    let made = shop.api.request("POST", &format!("{}/webhook-secret", path(&shop))).bearer(&shop.key).send().ok(200);
    let new = made["webhookSecret"].as_str().unwrap();
    assert!(new.starts_with("whsec_") && new != shop.secret);
    let hook = event(&shop, &receiver, 1);
    hook.verify(new);
    assert!(!hook.is_signed_by_legacy_rule("x-hivetill-signature", &shop.secret));
    assert!(hook.headers.get("x-hivetill-signature-previous").is_none());
    assert_eq!(hook.header("webhook-signature").split(' ').count(), 1);
}

fn during_the_grace_period_both_secrets_sign() {
    let (shop, receiver) = (shared().shop(), Receiver::start());
    shop.set_webhook(&receiver);
    let path = format!("{}/webhook-secret", path(&shop));
    let made = shop.post(&path, &json!({ "graceHours": 1 })).send().ok(200);
    let new = made["webhookSecret"].as_str().unwrap();
    let hook = event(&shop, &receiver, 0);
    hook.verify(new);
    assert!(hook.is_signed_by_legacy_rule("x-hivetill-signature-previous", &shop.secret));
    let standard = standardwebhooks::Webhook::new(&shop.secret).unwrap();
    standard.verify(&hook.body, &hook.headers).expect("the old secret still verifies");
    for bad in [json!(169), json!(-1), json!(1.5), json!("1")] {
        shop.post(&path, &json!({ "graceHours": bad })).send().wrong(&["graceHours"]);
    }
}

fn replaced_secrets_sign_until_their_own_expiry_and_a_fourth_is_rejected() {
    let (shop, receiver) = (shared().shop(), Receiver::start());
    shop.set_webhook(&receiver);
    let path = format!("{}/webhook-secret", path(&shop));
    let mut secrets = vec![shop.secret.clone()];
    let mut ends = Vec::new();
    for hours in [3, 1, 2] {
        let made = shop.post(&path, &json!({ "graceHours": hours })).send().ok(200);
        secrets.push(made["webhookSecret"].as_str().expect("a secret").to_owned());
        ends.push(made["previousValidUntil"].as_str().expect("a time").to_owned());
    }
    let refused = shop.post(&path, &json!({ "graceHours": 1 })).send();
    refused.refused(409, "too_many_webhook_secrets");
    assert!(refused.text().contains(&ends[1]), "the second ends first: {}", refused.text());
    let hook = event(&shop, &receiver, 0);
    hook.verify(&secrets[3]);
    assert_eq!(hook.header("webhook-signature").split(' ').count(), 4);
    for (secret, name) in secrets.iter().zip(["-3", "-2", ""]) {
        assert!(hook.is_signed_by_legacy_rule(&format!("x-hivetill-signature-previous{name}"), secret), "{name}");
        let standard = standardwebhooks::Webhook::new(secret).expect("a secret");
        standard.verify(&hook.body, &hook.headers).expect("each valid secret verifies");
    }
    // An immediate replacement is always possible and ends only the replaced secret.
    let made = shop.post(&path, &json!({})).send().ok(200);
    let hook = event(&shop, &receiver, 1);
    hook.verify(made["webhookSecret"].as_str().expect("a secret"));
    assert_eq!(hook.header("webhook-signature").split(' ').count(), 4);
    assert!(hook.is_signed_by_legacy_rule("x-hivetill-signature-previous-3", &secrets[0]));
    assert!(!hook.is_signed_by_legacy_rule("x-hivetill-signature-previous", &secrets[3]));
}

fn an_admin_lists_finds_and_filters_merchants() {
    let dev = shared();
    let admin = |path: &str| dev.api.get(path).bearer(dev.admin_key()).send();
    let shop = dev.shop();
    let ids = |page: &Value| -> Vec<String> {
        page["data"].as_array().unwrap().iter().map(|m| m["id"].as_str().unwrap().to_owned()).collect()
    };
    for path in ["/api/admin/merchants", "/api/admin/merchants/list"] {
        let page = admin(&format!("{path}?query={}", shop.id)).ok(200);
        assert_eq!(ids(&page), [shop.id.as_str()]);
        assert_eq!(page["pagination"], json!({ "page": 1, "limit": 20, "total": 1, "totalPages": 1 }));
        assert_eq!(ids(&admin(&format!("{path}?query={}", shop.account.name)).ok(200)), [shop.id.as_str()]);
        let by_name = admin(&format!("{path}?query=shop%20of%20{}", shop.account.name)).ok(200);
        assert_eq!(ids(&by_name), [shop.id.as_str()]);
        assert_eq!(ids(&admin(&format!("{path}?active=false&query={}", shop.id)).ok(200)), [""; 0]);
        assert_eq!(ids(&admin(&format!("{path}?active=true&query={}", shop.id)).ok(200)), [shop.id.as_str()]);
        assert_eq!(ids(&admin(&format!("{path}?limit=1")).ok(200)).len(), 1);
        admin(&format!("{path}?limit=101")).wrong(&["limit"]);
        admin(&format!("{path}?page=0")).wrong(&["page"]);
        admin(&format!("{path}?active=maybe")).wrong(&["active"]);
    }
    let foreign = admin(&format!("/api/public/merchants/{}", shop.id)).ok(200);
    assert_eq!(foreign["id"], shop.id, "an admin sees any merchant");
    assert!(!foreign.to_string().contains(&shop.key) && !foreign.to_string().contains(&shop.secret));
    let named = dev.api.post(&path(&shop), &json!({ "name": "By the admin" })).bearer(dev.admin_key()).send();
    assert_eq!(named.ok(200)["name"], "By the admin");
    admin("/api/public/merchants/mer_00000000000000000000000000").refused(404, "not_found");
    assert_eq!(admin("/api/public/merchants/me").ok(200)["privileges"], json!(["admin"]));
}

fn an_inactive_merchant_can_read_but_not_create_payments() {
    let dev = shared();
    let (shop, receiver) = (dev.shop(), Receiver::start());
    shop.set_webhook(&receiver);
    let payment = shop.open_payment();
    let active = format!("/api/admin/merchants/{}/active", shop.id);
    let set = |path: &str, body: &Value| dev.api.post(path, body).bearer(dev.admin_key()).send();
    assert_eq!(set(&active, &json!({ "isActive": false })).ok(200)["isActive"], false);
    for path in ["/api/public/payments", "/api/public/payments/create"] {
        shop.post(path, &order()).send().refused(403, "inactive_merchant");
    }
    assert_eq!(shop.payment(&payment.id)["status"], "pending");
    shop.get("/api/public/payments").send().ok(200);
    shop.update(&json!({ "name": "Still here" })).ok(200);
    let secret = format!("{}/webhook-secret", path(&shop));
    let new = shop.post(&secret, &json!({})).send().ok(200)["webhookSecret"].as_str().unwrap().to_owned();
    dev.ledger.transfer(&dev.demo_account("alice"), &shop.account.name, "1.500 HBD", &payment.memo);
    shop.until_status(&payment.id, "completed");
    receiver.hook(0).verify(&new);

    let other = format!("/api/admin/merchants/change-status?merchantId={}", shop.id);
    assert_eq!(set(&other, &json!({ "role": "user" })).ok(200)["isActive"], true);
    shop.open_payment();
    assert_eq!(set(&other, &json!({ "role": "nonActive" })).ok(200)["isActive"], false);
    assert_eq!(set(&active, &json!({ "isActive": true })).ok(200)["isActive"], true);
    set(&other, &json!({ "role": "admin" })).wrong(&["role"]);
    set(&other, &json!({})).wrong(&["role"]);
    set("/api/admin/merchants/change-status", &json!({ "role": "user" })).wrong(&["merchantId"]);
    set(&active, &json!({ "isActive": "yes" })).wrong(&["isActive"]);
    set(&active, &json!({})).wrong(&["isActive"]);
    let unknown = "/api/admin/merchants/mer_00000000000000000000000000/active";
    set(unknown, &json!({ "isActive": true })).refused(404, "not_found");
}

fn a_new_key_replaces_the_old_one_immediately() {
    let dev = shared();
    let shop = dev.shop();
    let path = format!("/api/admin/merchants/{}/api-key", shop.id);
    let made = dev.api.request("POST", &path).bearer(dev.admin_key()).send().ok(200);
    let new = made["apiKey"].as_str().unwrap();
    assert!(new.starts_with("sk_live_") && new != shop.key);
    shop.get("/api/public/merchants/me").send().refused(401, "invalid_api_key");
    let me = dev.api.get("/api/public/merchants/me").bearer(new).send().ok(200);
    assert_eq!((&me["id"], &me["apiKeyLast4"]), (&json!(shop.id), &json!(new[new.len() - 4..])));
}

fn admin_paths_need_an_admin() {
    let shop = shared().shop();
    let id = &shop.id;
    for (method, path, body) in [
        ("GET", "/api/admin/merchants".to_owned(), None),
        ("GET", "/api/admin/merchants/list".to_owned(), None),
        ("POST", format!("/api/admin/merchants/{id}/active"), Some(json!({ "isActive": false }))),
        ("POST", format!("/api/admin/merchants/change-status?merchantId={id}"), Some(json!({ "role": "nonActive" }))),
        ("POST", format!("/api/admin/merchants/{id}/api-key"), None),
    ] {
        let request = || {
            let request = shop.api.request(method, &path);
            if let Some(body) = &body { request.json(body) } else { request }
        };
        request().bearer(&shop.key).send().refused(403, "admin_required");
        request().send().refused(401, "invalid_api_key");
        request().bearer("sk_live_none").send().refused(401, "invalid_api_key");
    }
    assert_eq!(shop.get("/api/public/merchants/me").send().ok(200)["isActive"], true);
}
