//! Additional API keys, and encryption of secrets at rest.

use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Dev, Ledger, LedgerProcess, Process, Receiver, Response, Serve, Shop, folder, order, shared};

crate::tests!(
    a_key_is_limited_to_its_scopes,
    a_key_cannot_grant_more_than_its_own_scopes,
    invalid_key_requests_name_their_field,
    a_revoked_key_is_rejected_and_no_key_revokes_itself,
    a_key_revokes_only_keys_whose_scopes_it_has,
    keys_are_rolled_by_support_by_default,
    a_rolled_key_stays_valid_for_its_overlap,
    support_revokes_every_key_of_a_merchant,
    a_key_without_the_admin_scope_has_no_admin_rights,
    sealed_secrets_sign_the_same_under_another_master_key,
    serve_creates_a_master_key_that_no_backup_contains,
    unencrypted_secrets_are_reported_by_the_doctor_and_sealed_at_the_next_start,
);

fn keys_of(shop: &Shop) -> String {
    format!("/api/public/merchants/{}/api-keys", shop.id)
}

fn create(shop: &Shop, scopes: &[&str]) -> Response {
    shop.post(&keys_of(shop), &json!({ "name": "till 3", "scopes": scopes })).send()
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// Returns the shop with another of its keys.
fn with(shop: &Shop, key: &Value) -> Shop {
    Shop { key: text(key), ..shop.clone() }
}

fn a_key_is_limited_to_its_scopes() {
    let shop = shared().shop();
    let payment = shop.open_payment();
    let cases: [(&str, [u16; 4]); 3] = [
        ("payments:read", [200, 403, 403, 200]),
        ("payments:write", [403, 201, 403, 200]),
        ("merchant:write", [403, 403, 200, 200]),
    ];
    for (scope, [read, write, change, me]) in cases {
        let made = create(&shop, &[scope]).ok(201);
        assert_eq!(made["key"]["scopes"], json!([scope]));
        let other = with(&shop, &made["apiKey"]);
        let list = other.get("/api/public/payments").send();
        let opened = other.post("/api/public/payments", &order()).send();
        let changed = other.update(&json!({ "name": "Mugs" }));
        let seen = other.get("/api/public/merchants/me").send();
        assert_eq!([list.status, opened.status, changed.status, seen.status], [read, write, change, me], "{scope}");
        for refused in [list, opened, changed].iter().filter(|response| response.status == 403) {
            refused.refused(403, "insufficient_scope");
        }
        let cancelled = other.cancel(&payment.id);
        assert_eq!(cancelled.status, if scope == "payments:write" { 200 } else { 403 }, "{scope}");
    }
    let keys = shop.get(&keys_of(&shop)).send();
    let keys = keys.ok(200)["data"].clone();
    assert_eq!(keys.as_array().map(Vec::len), Some(4));
    assert_eq!(keys[0]["scopes"], json!(["payments:read", "payments:write", "merchant:write", "merchant:payout"]));
    assert_eq!((&keys[1]["name"], &keys[1]["expiresAt"]), (&json!("till 3"), &Value::Null));
    assert!(text(&keys[1]["prefix"]).starts_with("sk_live_") && text(&keys[1]["last4"]).len() == 4, "{keys}");
    assert!(keys[1]["lastUsedAt"].is_string() || keys[1]["lastUsedAt"].is_null());
}

fn a_key_cannot_grant_more_than_its_own_scopes() {
    let shop = shared().shop();
    create(&shop, &["admin"]).refused(403, "insufficient_scope");
    let made = create(&shop, &["merchant:write"]).ok(201);
    let small = with(&shop, &made["apiKey"]);
    create(&small, &["merchant:write", "payments:read"]).refused(403, "insufficient_scope");
    create(&small, &["merchant:write"]).ok(201);
    let other = shared().shop();
    other.post(&keys_of(&shop), &json!({ "scopes": ["payments:read"] })).send().refused(403, "forbidden_merchant");
    other.get(&keys_of(&shop)).send().refused(403, "forbidden_merchant");
}

fn invalid_key_requests_name_their_field() {
    let shop = shared().shop();
    for scopes in [json!([]), json!(["payments"]), json!("payments:read"), json!([1]), Value::Null] {
        shop.post(&keys_of(&shop), &json!({ "scopes": scopes })).send().wrong(&["scopes"]);
    }
    let body = json!({ "name": "x".repeat(101), "scopes": ["payments:read"] });
    shop.post(&keys_of(&shop), &body).send().wrong(&["name"]);
    for _ in 0..19 {
        create(&shop, &["payments:read"]).ok(201);
    }
    create(&shop, &["payments:read"]).refused(409, "too_many_api_keys");
}

fn a_revoked_key_is_rejected_and_no_key_revokes_itself() {
    let shop = shared().shop();
    let made = create(&shop, &["payments:read"]).ok(201);
    let other = with(&shop, &made["apiKey"]);
    other.get("/api/public/payments").send().ok(200);
    let place = |id: &Value| format!("{}/{}", keys_of(&shop), text(id));
    let revoke = |id: &Value| shop.api.request("DELETE", &place(id)).bearer(&shop.key).send();
    let left = revoke(&made["key"]["id"]).ok(200);
    assert_eq!(left["data"].as_array().map(Vec::len), Some(1));
    other.get("/api/public/payments").send().refused(401, "invalid_api_key");
    revoke(&left["data"][0]["id"]).refused(409, "api_key_in_use");
    revoke(&made["key"]["id"]).refused(404, "not_found");
    revoke(&json!("nonsense")).refused(404, "not_found");
    shop.get("/api/public/payments").send().ok(200);
}

/// Otherwise a stolen key with few scopes could lock the merchant out.
fn a_key_revokes_only_keys_whose_scopes_it_has() {
    let shop = shared().shop();
    let reader = create(&shop, &["payments:read"]).ok(201);
    let settings = with(&shop, &create(&shop, &["merchant:write"]).ok(201)["apiKey"]);
    let second = create(&shop, &["merchant:write"]).ok(201);
    let revoke =
        |id: &str| shop.api.request("DELETE", &format!("{}/{id}", keys_of(&shop))).bearer(&settings.key).send();
    for key in [first_key(&shop), text(&reader["key"]["id"])] {
        revoke(&key).refused(403, "insufficient_scope");
    }
    revoke(&text(&second["key"]["id"])).ok(200);
    with(&shop, &reader["apiKey"]).get("/api/public/payments").send().ok(200);
    shop.get("/api/public/merchants/me").send().ok(200);
}

fn first_key(shop: &Shop) -> String {
    text(&shop.get(&keys_of(shop)).send().ok(200)["data"][0]["id"])
}

fn keys_are_rolled_by_support_by_default() {
    let shop = shared().shop();
    let roll = format!("{}/{}/roll", keys_of(&shop), first_key(&shop));
    shop.post(&roll, &json!({})).send().refused(403, "key_roll_disabled");
    shop.get("/api/public/merchants/me").send().ok(200);
}

fn a_rolled_key_stays_valid_for_its_overlap() {
    let dev = Dev::with(&["--set=keys.roll=true"]);
    let shop = dev.shop();
    let roll =
        |shop: &Shop, body: Value| shop.post(&format!("{}/{}/roll", keys_of(shop), first_key(shop)), &body).send();
    roll(&shop, json!({ "overlapHours": 73 })).wrong(&["overlapHours"]);
    let made = roll(&shop, json!({ "overlapHours": 24 })).ok(200);
    assert!(made["previousValidUntil"].is_string(), "{made}");
    let next = with(&shop, &made["apiKey"]);
    let me = next.get("/api/public/merchants/me").send().ok(200);
    assert_eq!(me["apiKeyLast4"], text(&made["apiKey"])[52..]);
    shop.get("/api/public/merchants/me").send().ok(200);
    let last = roll(&next, json!({})).ok(200);
    assert_eq!(last["previousValidUntil"], Value::Null);
    next.get("/api/public/merchants/me").send().refused(401, "invalid_api_key");
    with(&shop, &last["apiKey"]).get("/api/public/merchants/me").send().ok(200);
    shop.get("/api/public/merchants/me").send().ok(200);
}

fn support_revokes_every_key_of_a_merchant() {
    let dev = shared();
    let shop = dev.shop();
    let made = create(&shop, &["payments:read"]).ok(201);
    let path = format!("/api/admin/merchants/{}/api-key", shop.id);
    let new = dev.api.request("POST", &path).bearer(dev.admin_key()).send().ok(200);
    for old in [&json!(shop.key), &made["apiKey"]] {
        with(&shop, old).get("/api/public/merchants/me").send().refused(401, "invalid_api_key");
    }
    with(&shop, &new["apiKey"]).get("/api/public/merchants/me").send().ok(200);
}

fn a_key_without_the_admin_scope_has_no_admin_rights() {
    let dev = shared();
    let me = dev.api.get("/api/public/merchants/me").bearer(dev.admin_key()).send().ok(200);
    let path = format!("/api/public/merchants/{}/api-keys", text(&me["id"]));
    let body = json!({ "scopes": ["payments:read", "merchant:write"] });
    let made = dev.api.post(&path, &body).bearer(dev.admin_key()).send().ok(201);
    let small = text(&made["apiKey"]);
    dev.api.get("/api/admin/merchants").bearer(&small).send().refused(403, "admin_required");
    dev.api.get("/api/admin/audit").bearer(&small).send().refused(403, "admin_required");
    let shop = dev.shop();
    dev.api.get(&keys_of(&shop)).bearer(&small).send().refused(403, "forbidden_merchant");
    dev.api.get("/api/admin/merchants").bearer(dev.admin_key()).send().ok(200);
    let key = format!("{path}/{}", text(&made["key"]["id"]));
    dev.api.request("DELETE", &key).bearer(dev.admin_key()).send().ok(200);
}

fn sealed_secrets_sign_the_same_under_another_master_key() {
    let data = folder("sealed");
    let place = data.to_str().expect("a path").to_owned();
    let data_flag = format!("--data={place}");
    let mut dev = Dev::with(&[&data_flag]);
    let shop = dev.shop();
    let receiver = Receiver::start();
    shop.set_webhook(&receiver);
    let signed = |shop: &Shop, number: usize| {
        let payment = shop.open_payment();
        shop.cancelled(&payment.id);
        receiver.hook(number).verify(&shop.secret);
    };
    signed(&shop, 0);
    let key_file = data.join("master-key");
    let first = std::fs::read_to_string(&key_file).expect("dev keeps a master key");
    dev.process.stop();
    let holds = |text: &str| {
        let store = std::fs::read_dir(&data).expect("the data").map(|entry| entry.expect("an entry").path());
        let files: Vec<_> =
            store.filter(|path| path.is_file() && path.extension().is_none_or(|e| e != "json")).collect();
        assert!(files.len() > 1, "{files:?}");
        files.iter().any(|path| {
            let bytes = std::fs::read(path).expect("a file");
            bytes.windows(text.len()).any(|window| window == text.as_bytes())
        })
    };
    assert!(holds(&shop.account.name), "nothing can be found in the store");
    assert!(!holds(&shop.secret), "the webhook secret stands in the store");
    assert!(!holds(&shop.key), "the API key stands in the store");

    let key_flag = format!("--set=master_key_file={}", key_file.display());
    let rotated = Process::start(&["rotate-master-key", "--network=dev", &data_flag, &key_flag]).finish();
    assert!(rotated.success, "{rotated:?}");
    let second = std::fs::read_to_string(&key_file).expect("the new key");
    assert_ne!(first, second);
    let mut dev = Dev::with(&[&data_flag]);
    let shop = Shop { api: dev.api.clone(), ..shop };
    signed(&shop, 1);
    dev.process.stop();

    std::fs::write(&key_file, first).expect("the old key");
    let args = ["dev", "--json", "--listen=127.0.0.1:0", "--ledger-listen=127.0.0.1:0", "--grpc-listen=127.0.0.1:0"];
    let args: Vec<&str> = args.into_iter().chain([data_flag.as_str()]).collect();
    let refused = Process::start(&args).finish();
    assert!(!refused.success);
    assert!(refused.stderr.contains("another master key"), "{refused:?}");
}

/// Returns the names of the files in a directory that contain a text.
fn holding(folder: &Path, text: &str) -> Vec<String> {
    let files = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let holds = |path: &std::path::PathBuf| {
        path.is_file() && std::fs::read(path).expect("a file").windows(text.len()).any(|is| is == text.as_bytes())
    };
    files.filter(holds).map(|path| path.file_name().expect("a name").to_string_lossy().into_owned()).collect()
}

/// Starts `serve` where it must not start; returns its output.
#[track_caller]
fn refused(data: &Path, ledger: &Ledger) -> String {
    let ended = Process::start(&Serve::args(data, ledger, &[])).finish();
    assert!(!ended.success && !ended.stderr.contains("panicked"), "{ended:?}");
    ended.stderr
}

fn serve_creates_a_master_key_that_no_backup_contains() {
    let folder = folder("sealed");
    let ledger = LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
    let (data, again, backup) = (folder.join("data"), folder.join("again"), folder.join("backup"));
    let mut serve = Serve::start(&data, &ledger.ledger);
    let key_file = data.join("master-key");
    let key = std::fs::read_to_string(&key_file).expect("a key is made");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&key_file).expect("a file").permissions());
    assert_eq!((key.trim().len(), mode & 0o777), (64, 0o600));
    assert!(!data.join("master-key.new").exists());
    let (shop, receiver) = (Shop::open(&serve.api, &ledger.ledger), Receiver::start());
    shop.set_webhook(&receiver);
    let flags = [format!("--data={}", data.display()), format!("--to={}", backup.display())];
    let taken = Process::start(&["backup", &flags[0], &flags[1]]).finish();
    assert!(taken.success && taken.stdout.contains("The master key is not in the backup"), "{taken:?}");
    assert!(serve.process.stop().success());
    assert_eq!(holding(&data, &shop.secret), [""; 0]);
    assert_eq!(holding(&data, key.trim()), ["master-key"]);
    assert_eq!(holding(&folder, key.trim()), [""; 0], "the backup holds the key");

    let flags = [format!("--data={}", again.display()), format!("--from={}", backup.display())];
    let restored = Process::start(&["restore", &flags[0], &flags[1]]).finish();
    assert!(restored.success && restored.stdout.contains("The master key is not in the backup"), "{restored:?}");
    let report = refused(&again, &ledger.ledger);
    assert!(report.contains("master-key") && report.contains("master_key_file"), "{report}");
    let left: Vec<_> = std::fs::read_dir(&again).expect("a folder").map(|e| e.expect("an entry").file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with("master-key")), "a wrong key is left: {left:?}");
    std::fs::copy(&key_file, again.join("master-key")).expect("the kept copy");
    let serve = Serve::start(&again, &ledger.ledger);
    let shop = Shop { api: serve.api.clone(), ..shop };
    let payment = shop.open_payment();
    shop.cancel(&payment.id).ok(200);
    receiver.hook(0).verify(&shop.secret);
}

fn unencrypted_secrets_are_reported_by_the_doctor_and_sealed_at_the_next_start() {
    let folder = folder("sealed");
    let ledger = LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
    let data = folder.join("data");
    let doctor = || {
        let flags = [format!("--data={}", data.display()), format!("--node={}", ledger.ledger.rpc.base)];
        let report = Process::start(&["doctor", "--json", "--network=dev", &flags[0], &flags[1]]).finish();
        let report: Value = serde_json::from_str(&report.stdout).unwrap_or_else(|_| panic!("{report:?}"));
        let found = report["findings"].as_array().expect("findings").iter().find(|found| found["check"] == "secrets");
        found.unwrap_or_else(|| panic!("nothing of secrets: {report}")).clone()
    };
    let mut serve = Serve::with(&data, &ledger.ledger, &["--set=encrypt_secrets=false"]);
    let shop = Shop::open(&serve.api, &ledger.ledger);
    assert!(serve.process.log().contains("encrypt_secrets is off"), "{}", serve.process.log());
    let found = doctor();
    assert!(
        found["severity"] == "warning" && found["message"].as_str().is_some_and(|seen| seen.contains("of 1 merchant"))
    );
    assert!(serve.process.stop().success());
    assert!(!data.join("master-key").exists() && !holding(&data, &shop.secret).is_empty());
    assert_eq!(doctor()["severity"], "warning", "of an idle store, too");

    let mut serve = Serve::start(&data, &ledger.ledger);
    assert_eq!(
        holding(&data, &shop.secret),
        [""; 0],
        "sealed at the start, with nothing left in freed pages or the log"
    );
    assert_eq!(doctor()["severity"], "ok");
    assert!(serve.process.stop().success());
    assert_eq!(doctor()["severity"], "ok", "of an idle store, too");
    std::fs::remove_file(data.join("master-key")).expect("the key");
    assert!(refused(&data, &ledger.ledger).contains("master-key"));
}
