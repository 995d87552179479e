//! Webhook deliveries of a merchant: endpoint health, the delivery log, replay and redelivery.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Dev, Receiver, Reply, Response, Shop, folder, shared, until};

crate::tests!(
    the_log_shows_requests_and_responses,
    the_log_is_paginated_and_filtered,
    an_event_is_redelivered_on_request,
    a_test_event_is_delivered_and_marked_as_a_test,
    a_test_event_has_the_requested_type_and_status,
    a_delivery_shows_its_request_without_signatures,
    a_network_error_is_classified,
    a_request_repeated_with_its_idempotency_key_is_sent_once,
    every_delivery_is_exported,
    an_endpoint_that_returns_410_is_disabled_and_gets_held_events_when_enabled,
    a_failing_endpoint_has_the_status_failing,
    invalid_webhook_requests_name_their_field,
    an_endpoint_is_accessible_to_its_merchant_only,
    requested_deliveries_survive_a_kill,
    a_private_webhook_address_is_rejected_when_it_is_saved,
);

fn event(shop: &Shop) -> String {
    let payment = shop.open_payment();
    shop.cancelled(&payment.id);
    payment.id
}

fn shop() -> (Shop, Receiver) {
    let (shop, receiver) = (shared().shop(), Receiver::start());
    shop.set_webhook(&receiver);
    (shop, receiver)
}

fn path(shop: &Shop, rest: &str) -> String {
    format!("/api/public/merchants/{}/{rest}", shop.id)
}

fn deliveries(shop: &Shop, query: &str) -> Vec<Value> {
    let list = shop.get(&path(shop, &format!("webhook-deliveries{query}"))).send().ok(200);
    list["deliveries"].as_array().expect("a list").clone()
}

#[track_caller]
fn delivery(shop: &Shop, id: &str) -> Value {
    shop.get(&path(shop, &format!("webhook-deliveries/{id}"))).send().ok(200)
}

/// Waits until a delivery has a status.
#[track_caller]
fn until_delivery(shop: &Shop, id: &str, status: &str) -> Value {
    until(&format!("{id} to be {status}"), || {
        let found = delivery(shop, id);
        (found["status"] == status).then_some(found)
    })
}

/// Waits until there are `count` deliveries and none is pending; returns them newest first.
#[track_caller]
fn settled(shop: &Shop, count: usize) -> Vec<Value> {
    until(&format!("{count} deliveries to settle"), || {
        let found = deliveries(shop, "");
        let is_settled = found.len() == count && found.iter().all(|one| one["status"] != "pending");
        is_settled.then_some(found)
    })
}

#[track_caller]
fn id_of(delivery: &Value) -> &str {
    delivery["id"].as_str().expect("an id")
}

fn endpoint(shop: &Shop) -> Value {
    shop.get(&path(shop, "webhook")).send().ok(200)
}

fn the_log_shows_requests_and_responses() {
    let (shop, receiver) = shop();
    receiver.reply(&[Reply::Status(503)]);
    event(&shop);
    let hook = receiver.hook(0);
    let id = hook.header("x-hivetill-delivery").to_owned();
    let waiting = until("the first attempt to be written down", || {
        let found = delivery(&shop, &id);
        (found["attempts"] == 1).then_some(found)
    });
    assert_eq!((&waiting["status"], &waiting["lastOutcome"]), (&json!("pending"), &json!("http_error")));
    assert!(waiting["nextAttemptAt"].is_string());
    let done = until_delivery(&shop, &id, "delivered");
    assert_eq!(done["eventId"], hook.header("webhook-id"));
    assert_eq!(
        (&done["trigger"], &done["attempts"], &done["lastHttpStatus"]),
        (&json!("auto"), &json!(2), &json!(200))
    );
    let default = shop.id.replace("mer_", "we_");
    assert_eq!((&done["merchantId"], &done["endpointId"]), (&json!(shop.id), &json!(default)));
    let log = done["attemptLog"].as_array().expect("attempts");
    assert_eq!(log.len(), 2);
    assert_eq!(
        (&log[0]["attempt"], &log[0]["outcome"], &log[0]["httpStatus"]),
        (&json!(1), &json!("http_error"), &json!(503))
    );
    assert_eq!(log[1]["outcome"], "success");
    assert_eq!(log[0]["responseSnippet"], "ok");
    assert_eq!(log[0]["url"], format!("{}/hook", receiver.address()), "a query may hold a secret");
    assert_eq!(log[0]["nextAttemptAt"], log[1]["scheduledAt"]);
    use sha2::Digest as _;
    assert_eq!(log[0]["requestBytesSha256"], hex::encode(sha2::Sha256::digest(&hook.body)));
    assert_eq!(deliveries(&shop, "").len(), 1);
}

fn the_log_is_paginated_and_filtered() {
    let (shop, receiver) = shop();
    for _ in 0..5 {
        event(&shop);
    }
    let all = settled(&shop, 5);
    receiver.hook(4);
    let mut read = Vec::new();
    let mut cursor = Value::Null;
    while read.len() < 5 {
        let after = cursor.as_str().map_or(String::new(), |cursor| format!("&cursor={cursor}"));
        let part = shop.get(&path(&shop, &format!("webhook-deliveries?limit=2{after}"))).send().ok(200);
        read.extend(part["deliveries"].as_array().expect("a list").clone());
        cursor = part["nextCursor"].clone();
    }
    assert_eq!((read, cursor), (all.clone(), Value::Null));
    assert_eq!(deliveries(&shop, "?status=delivered").len(), 5);
    assert_eq!(deliveries(&shop, "?status=held,failed,pending").len(), 0);
    let event = all[2]["eventId"].as_str().expect("an id");
    assert_eq!(deliveries(&shop, &format!("?eventId={event}")), [all[2].clone()]);
}

fn an_event_is_redelivered_on_request() {
    let (shop, receiver) = shop();
    event(&shop);
    let first = settled(&shop, 1).remove(0);
    let again = shop.post(&path(&shop, &format!("webhook-deliveries/{}/redeliver", id_of(&first))), &json!({}));
    let again = again.send().ok(200);
    assert_eq!((&again["trigger"], &again["eventId"]), (&json!("manual"), &first["eventId"]));
    assert_ne!(again["id"], first["id"]);
    let (one, two) = (receiver.hook(0), receiver.hook(1));
    assert_eq!((one.body, one.headers["webhook-id"].clone()), (two.body.clone(), two.headers["webhook-id"].clone()));
    assert_eq!(two.header("x-hivetill-delivery"), id_of(&again));
    two.verify(&shop.secret);
    until_delivery(&shop, id_of(&again), "delivered");
    let listed = shop.get("/api/public/events").send().ok(200);
    assert_eq!(listed["events"].as_array().map(Vec::len), Some(1), "it is the same event");
}

fn a_test_event_is_delivered_and_marked_as_a_test() {
    let (shop, receiver) = shop();
    let sent = shop.post(&path(&shop, "webhook-test"), &json!({})).send().ok(200);
    assert_eq!(sent["trigger"], "test");
    let hook = receiver.hook(0);
    hook.verify(&shop.secret);
    let body = hook.json();
    assert_eq!((&body["type"], &body["data"]["livemode"]), (&json!("payment.status_changed"), &json!(false)));
    assert!(body["data"]["id"].as_str().is_some_and(|id| id.starts_with("test_")));
    assert_eq!((&body["id"], &body["data"]["merchantId"]), (&sent["eventId"], &json!(shop.id)));
    until_delivery(&shop, id_of(&sent), "delivered");
    receiver.reply(&[Reply::Status(500)]);
    let sent = shop.post(&path(&shop, "webhook-test"), &json!({})).send().ok(200);
    assert_eq!(until_delivery(&shop, id_of(&sent), "failed")["attempts"], 1, "a test is not repeated");
    assert_eq!(endpoint(&shop)["status"], "active", "and does not affect the endpoint's health");
}

fn a_test_event_has_the_requested_type_and_status() {
    let (shop, receiver) = shop();
    let request = |body: &Value| shop.post(&path(&shop, "webhook-test"), body).send();
    let all = [
        json!({ "type": "payment.status_changed", "status": "system_cancelled" }),
        json!({ "type": "payment.exception", "status": "pending" }),
        json!({ "status": "failed" }),
        json!({ "type": "x402.settled" }),
        json!({ "type": "merchant.account_change" }),
        json!({ "type": "refund.completed", "status": "completed" }),
        json!({ "type": "transfer.unmatched" }),
    ];
    for (number, wanted) in all.iter().enumerate() {
        let sent = request(wanted).ok(200);
        until_delivery(&shop, id_of(&sent), "delivered");
        let hook = receiver.hook(number);
        hook.verify(&shop.secret);
        let body = hook.json();
        let kind = wanted["type"].as_str().unwrap_or("payment.status_changed");
        assert_eq!((&body["type"], hook.header("x-hivetill-event")), (&json!(kind), kind), "{body}");
        assert_eq!(body["data"].get("status"), wanted.get("status"), "{body}");
        assert_eq!(body["data"]["merchantId"], shop.id.as_str());
    }
    for (body, field, near) in [
        (json!({ "type": "payment.status_change" }), "type", "did you mean payment.status_changed?"),
        (json!({ "status": "complete" }), "status", "did you mean completed?"),
        (json!({ "status": "paid" }), "status", "must be one of pending, "),
        (json!({ "status": "pending" }), "status", "cannot be pending"),
        (json!({ "type": "x402.settled", "status": "completed" }), "status", "is not allowed"),
        (json!({ "type": 1 }), "type", "must be a string"),
        (json!({ "kind": "x402.settled" }), "kind", ""),
    ] {
        let refused = request(&body);
        assert!(refused.status == 400 && refused.text().contains(near), "{body}: {}", refused.text());
        assert_eq!(refused.json()["details"][0]["field"], field, "{body}");
    }
    assert_eq!(receiver.hooks().len(), all.len(), "a refused test sends nothing");
}

fn a_delivery_shows_its_request_without_signatures() {
    let (shop, receiver) = shop();
    shop.post(&path(&shop, "webhook-secret"), &json!({ "graceHours": 1 })).send().ok(200);
    event(&shop);
    let sent = settled(&shop, 1).remove(0);
    let hook = receiver.hook(0);
    let shown = delivery(&shop, id_of(&sent));
    assert_eq!(shown["requestBody"].as_str().map(str::as_bytes), Some(&*hook.body));
    let headers = shown["attemptLog"][0]["requestHeaders"].as_object().expect("headers");
    assert!(headers.len() >= 11, "{headers:?}");
    for (name, value) in headers {
        let received = hook.header(&name.to_lowercase());
        if name.to_lowercase().contains("signature") {
            assert_eq!(value, "[redacted]", "{name}");
            assert!(!shown.to_string().contains(received), "{name}");
        } else {
            assert_eq!(value, received, "{name}");
        }
    }
    let list = shop.get(&path(&shop, "webhook-deliveries")).send().ok(200);
    assert!(list["deliveries"][0].get("requestBody").is_none(), "a list stays small");
    let id = sent["eventId"].as_str().expect("an event");
    let one = shop.get(&format!("/api/public/events/{id}")).send();
    assert_eq!((one.status, one.text().as_bytes()), (200, &*hook.body), "the event is what was sent");
    let third_party = shared().shop();
    third_party.get(&format!("/api/public/events/{id}")).send().refused(404, "not_found");
    for none in ["evt_00000000000000000000000000", "pay_1", "x"] {
        shop.get(&format!("/api/public/events/{none}")).send().refused(404, "not_found");
    }
}

fn a_network_error_is_classified() {
    let (shop, receiver) = shop();
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address").port();
    drop(receiver);
    // The path contains names of other errors.
    shop.update(&json!({ "webhookUrl": format!("http://127.0.0.1:{port}/dns/tls") })).ok(200);
    let sent = shop.post(&path(&shop, "webhook-test"), &json!({})).send().ok(200);
    let failed = until_delivery(&shop, id_of(&sent), "failed");
    assert_eq!((&failed["lastOutcome"], &failed["attemptLog"][0]["outcome"]), (&json!("refused"), &json!("refused")));
}

fn a_request_repeated_with_its_idempotency_key_is_sent_once() {
    let (shop, receiver) = shop();
    let events = [event(&shop), event(&shop)];
    let all = settled(&shop, events.len());
    let request =
        |rest: &str, key: &str| shop.post(&path(&shop, rest), &json!({})).header("idempotency-key", key).send();
    let again =
        |delivery: &Value, key: &str| request(&format!("webhook-deliveries/{}/redeliver", id_of(delivery)), key);
    let (test, redeliver) = (|| request("webhook-test", "one"), || again(&all[0], "one"));
    let requests: [&dyn Fn() -> Response; 2] = [&test, &redeliver];
    for request in requests {
        let first = request();
        assert_eq!(first.header("idempotent-replayed"), None);
        let second = request();
        assert_eq!(second.header("idempotent-replayed"), Some("true"));
        let (first, second) = (first.ok(200), second.ok(200));
        assert_eq!(first["id"], second["id"]);
        until_delivery(&shop, id_of(&first), "delivered");
    }
    again(&all[1], "one").refused(422, "idempotency_key_reused");
    again(&all[1], "").wrong(&["Idempotency-Key"]);
    again(&all[1], "two").ok(200);
    let sent = settled(&shop, events.len() + 3);
    assert_eq!(receiver.hooks().len(), sent.len(), "two events, one test, two once more");
}

fn every_delivery_is_exported() {
    let (shop, _receiver) = shop();
    for _ in 0..3 {
        event(&shop);
    }
    let all = settled(&shop, 3);
    let export = |query: &str| shop.get(&path(&shop, &format!("webhook-deliveries/export{query}"))).send();
    let whole = export("?format=json").ok(200);
    assert_eq!(whole.as_array(), Some(&all));
    let csv = export("").text();
    let rows: Vec<&str> = csv.lines().collect();
    assert_eq!(rows.len(), 4, "{csv}");
    assert!(rows[0].starts_with("id,eventId,trigger,status,"));
    for (row, delivery) in rows[1..].iter().zip(&all) {
        assert!(row.starts_with(&format!("{},", id_of(delivery))) && row.contains(",auto,delivered,1,"), "{row}");
    }
    let event = all[1]["eventId"].as_str().expect("an id");
    assert_eq!(export(&format!("?format=json&eventId={event}")).ok(200), json!([all[1]]));
    assert_eq!(export("?format=json&status=failed").ok(200), json!([]));
    export("?format=xml").wrong(&["format"]);
    export("?status=gone").wrong(&["status"]);
}

fn an_endpoint_that_returns_410_is_disabled_and_gets_held_events_when_enabled() {
    let (shop, receiver) = shop();
    assert_eq!(endpoint(&shop)["status"], "active");
    receiver.reply(&[Reply::Status(410)]);
    let mut ids = vec![event(&shop)];
    receiver.hook(0);
    let disabled = until("the endpoint to be disabled", || {
        let found = endpoint(&shop);
        (found["status"] == "disabled").then_some(found)
    });
    assert_eq!((&disabled["enabled"], &disabled["disabledReason"]), (&json!(false), &json!("gone")));
    ids.extend([event(&shop), event(&shop)]);
    let held = settled(&shop, 3);
    let ancient = json!({ "replaySince": "2020-01-01T00:00:00Z" });
    shop.post(&path(&shop, "webhook-enable"), &ancient).send().wrong(&["replaySince"]);
    assert_eq!(endpoint(&shop)["status"], "disabled", "what is refused enables nothing");
    assert!(held.iter().all(|one| one["status"] == "held"), "{held:?}");
    assert_eq!(receiver.hooks_after(Duration::from_millis(300)).len(), 1);
    let since = json!({ "replaySince": held[2]["createdAt"] });
    let enabled = shop.post(&path(&shop, "webhook-enable"), &since).send().ok(200);
    assert_eq!((&enabled["status"], &enabled["replayed"]), (&json!("active"), &json!(3)));
    receiver.hook(3);
    let mut reported: Vec<String> = receiver.hooks()[1..]
        .iter()
        .map(|hook| hook.json()["data"]["id"].as_str().expect("an id").to_owned())
        .collect();
    reported.sort();
    ids.sort();
    assert_eq!(reported, ids);
    let replay = shop.post(&path(&shop, "webhook-replay"), &json!({ "since": held[2]["createdAt"] })).send().ok(200);
    assert_eq!((&replay["replayed"], &replay["hasMore"]), (&json!(0), &json!(false)));
}

fn a_failing_endpoint_has_the_status_failing() {
    let (shop, receiver) = shop();
    receiver.reply(&[Reply::CloseConnection, Reply::Redirect(receiver.address())]);
    event(&shop);
    let failing = until("two failures", || {
        let found = endpoint(&shop);
        (found["failedAttempts"] == 2).then_some(found)
    });
    assert_eq!((&failing["status"], &failing["enabled"]), (&json!("failing"), &json!(true)));
    assert!(failing["failingSince"].is_string() && failing["lastFailureAt"].is_string());
    assert_eq!((&failing["warning"], &failing["breakerOpen"]), (&Value::Null, &json!(false)));
    let log = deliveries(&shop, "").remove(0);
    let log = delivery(&shop, id_of(&log))["attemptLog"].clone();
    assert_eq!((&log[0]["outcome"], &log[1]["httpStatus"]), (&json!("reset"), &json!(307)));
    let enabled = shop.post(&path(&shop, "webhook-enable"), &json!({})).send().ok(200);
    let health = ["status", "failingSince", "lastFailureAt"];
    assert_eq!(health.map(|field| &enabled[field]), health.map(|field| &failing[field]), "enabling changes no health");
}

fn invalid_webhook_requests_name_their_field() {
    let bare = shared().shop();
    for rest in ["webhook-test", "webhook-enable"] {
        bare.post(&path(&bare, rest), &json!({})).send().refused(409, "no_webhook_endpoint");
    }
    assert_eq!((&endpoint(&bare)["status"], &endpoint(&bare)["url"]), (&json!("none"), &Value::Null));
    event(&bare);
    let held = settled(&bare, 1).remove(0);
    assert_eq!(held["status"], "held", "an event for a disabled endpoint is kept");
    let (shop, _receiver) = shop();
    let replay = |body: Value| shop.post(&path(&shop, "webhook-replay"), &body).send();
    for bad in [json!("yesterday"), json!(7), json!("2020-01-01T00:00:00Z"), json!("9000-01-01T00:00:00Z")] {
        replay(json!({ "since": bad })).wrong(&["since"]);
    }
    replay(json!({})).wrong(&["since"]);
    shop.post(&path(&shop, "webhook-enable"), &json!({ "replaySince": "x" })).send().wrong(&["replaySince"]);
    for (query, field) in
        [("status=gone", "status"), ("limit=0", "limit"), ("cursor=7", "cursor"), ("eventId=7", "eventId")]
    {
        shop.get(&path(&shop, &format!("webhook-deliveries?{query}"))).send().wrong(&[field]);
    }
    for id in ["whd_0", "whd_00000000000000000000000001", id_of(&held)] {
        shop.get(&path(&shop, &format!("webhook-deliveries/{id}"))).send().refused(404, "not_found");
        let again = path(&shop, &format!("webhook-deliveries/{id}/redeliver"));
        shop.post(&again, &json!({})).send().refused(404, "not_found");
    }
}

fn an_endpoint_is_accessible_to_its_merchant_only() {
    let (shop, other) = (shared().shop(), shared().shop());
    let requests = [
        ("GET", "webhook"),
        ("POST", "webhook-enable"),
        ("POST", "webhook-replay"),
        ("POST", "webhook-test"),
        ("GET", "webhook-deliveries"),
        ("GET", "webhook-deliveries/export"),
        ("GET", "webhook-deliveries/whd_00000000000000000000000001"),
        ("POST", "webhook-deliveries/whd_00000000000000000000000001/redeliver"),
    ];
    for (method, rest) in requests {
        let since = json!({ "since": "2026-01-01T00:00:00Z" });
        let body = if rest == "webhook-replay" { since } else { json!({}) };
        let request = || {
            let request = shop.api.request(method, &path(&shop, rest));
            if method == "POST" { request.json(&body) } else { request }
        };
        request().send().refused(401, "invalid_api_key");
        request().bearer(&other.key).send().refused(403, "forbidden_merchant");
        let by_admin = request().bearer(shared().admin_key()).send();
        assert!(!matches!(by_admin.status, 401 | 403), "{method} {rest}: {}", by_admin.status);
    }
}

fn requested_deliveries_survive_a_kill() {
    let data = folder("deliveries").join("data");
    let data = format!("--data={}", data.to_str().expect("a path"));
    let mut dev = Dev::with(&[&data]);
    let (shop, receiver) = (dev.shop(), Receiver::start());
    shop.set_webhook(&receiver);
    event(&shop);
    let first = settled(&shop, 1).remove(0);
    // The endpoint is down, then the gateway as well.
    let address = receiver.address();
    drop(receiver);
    until("the endpoint to be gone", || std::net::TcpStream::connect(address).is_err().then_some(()));
    let waiting = event(&shop);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let silent = listener.local_addr().expect("bound");
    shop.update(&json!({ "webhookUrl": format!("http://{silent}/hook") })).ok(200);
    // The kernel accepts connections and no process responds: attempts are in progress when the process dies.
    let again = shop.post(&path(&shop, &format!("webhook-deliveries/{}/redeliver", id_of(&first))), &json!({}));
    let again = again.send().ok(200);
    let test = shop.post(&path(&shop, "webhook-test"), &json!({})).send().ok(200);
    dev.process.kill();
    drop(listener);
    let receiver = Receiver::again_at(silent);
    let dev = Dev::with(&[&data]);
    let shop = Shop { api: dev.api.clone(), ..shop };
    let reported = until("every delivery", || {
        let hooks = receiver.hooks();
        let reported: Vec<String> = hooks.iter().map(|hook| hook.header("x-hivetill-delivery").to_owned()).collect();
        let has = |id: &str| reported.iter().any(|reported| reported == id);
        let has_event = hooks.iter().any(|hook| hook.json()["data"]["id"] == waiting.as_str());
        (has(id_of(&again)) && has(id_of(&test)) && has_event).then_some(hooks)
    });
    for hook in reported {
        hook.verify(&shop.secret);
    }
    for id in [id_of(&again), id_of(&test)] {
        until_delivery(&shop, id, "delivered");
    }
}

fn a_private_webhook_address_is_rejected_when_it_is_saved() {
    let dev = Dev::with(&["--set=webhooks.allow_insecure=false"]);
    let shop = dev.shop();
    let save = |url: &str| shop.update(&json!({ "webhookUrl": url }));
    for url in [
        "http://shop.example/hook",
        "https://127.0.0.1/hook",
        "https://[::1]/hook",
        "https://[::ffff:10.0.0.1]/hook",
        "https://2130706433/hook",
        "https://169.254.169.254/latest/meta-data",
        "https://localhost/hook",
        "https://printer/hook",
        "https://vault.internal/hook",
        "https://shop.example:22/hook",
        "https://user:secret@shop.example/hook",
        "https://shop.example/hook#part",
    ] {
        save(url).wrong(&["webhookUrl"]);
    }
    for url in ["https://shop.example/hook", "https://shop.example:8443/hook?x=1"] {
        save(url).ok(200);
    }
}
