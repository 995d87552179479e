//! Ownership of Hive accounts: proofs by signature, by transfer and by the operator, the rights that need a proof, and
//! changes of a proven account.

use serde_json::{Value, json};

use crate::harness::{Dev, Payer, Process, Shop, folder, shared, until};

crate::tests!(
    without_a_proof_a_merchant_is_paid_but_cannot_handle_unmatched_transfers,
    a_signature_of_the_active_key_proves_an_account_once,
    other_signatures_prove_nothing,
    signatures_add_up_to_the_threshold,
    a_transfer_to_oneself_proves_an_account,
    a_proof_is_stale_once_the_active_authority_changes,
    a_proven_account_changes_only_with_proofs_of_both_accounts,
    a_pending_change_is_cancelled_with_the_key_or_by_the_current_account,
    changing_the_payout_account_needs_its_own_scope,
    an_account_can_change_three_times_a_day,
    the_operator_verifies_an_account,
    registration_can_require_approval_or_be_closed,
);

fn me(shop: &Shop) -> Value {
    shop.get("/api/public/merchants/me").send().ok(200)
}

fn path(shop: &Shop, rest: &str) -> String {
    format!("/api/public/merchants/{}{rest}", shop.id)
}

/// Returns the account of a shop with another of its keys.
fn with_key(shop: &Shop, key: &str) -> Payer {
    Payer { name: shop.account.name.clone(), key: key.to_owned() }
}

/// Returns an order that changes the active authority of a shop's account.
fn of_active(shop: &Shop, authority: &Value) -> Value {
    json!({ "name": shop.account.name, "role": "active", "authority": authority })
}

fn without_a_proof_a_merchant_is_paid_but_cannot_handle_unmatched_transfers() {
    let dev = shared();
    let shop = dev.shop().prove();
    let thief = Shop::open_for(&dev.api, shop.account.clone());
    let record = me(&thief);
    assert_eq!((&record["accountVerified"], &record["accountVerification"]), (&json!(false), &json!("unverified")));
    assert_eq!((&record["accountVerifiedAt"], &record["pendingAccount"]), (&Value::Null, &Value::Null));
    let trap = thief.open_payment();
    dev.ledger.transfer(&dev.demo_account("alice"), &shop.account.name, "1.500 HBD", "for the mug");
    let id = until("the transfer to be listed", || {
        let list = shop.get("/api/public/unmatched").send().ok(200);
        list["data"][0]["id"].as_str().map(str::to_owned)
    });
    let unmatched = format!("/api/public/unmatched/{id}");
    let body = thief.get("/api/public/unmatched").send().refused(403, "account_not_proven");
    let message = body["statusMessage"].as_str().expect("a message");
    assert!(message.contains(&format!("@{}", shop.account.name)), "{message}");
    for rest in ["", "/candidates"] {
        thief.get(&format!("{unmatched}{rest}")).send().refused(403, "account_not_proven");
    }
    let assign = json!({ "paymentId": trap.id });
    thief.post(&format!("{unmatched}/assign"), &assign).send().refused(403, "account_not_proven");
    thief.post(&format!("{unmatched}/ignore"), &json!({})).send().refused(403, "account_not_proven");
    let own = shop.open_payment();
    shop.post(&format!("{unmatched}/assign"), &json!({ "paymentId": own.id })).send().ok(200);
    // Payments need no proof.
    dev.ledger.transfer(&dev.demo_account("alice"), &shop.account.name, "1.500 HBD", &trap.memo);
    thief.until_status(&trap.id, "completed");
}

fn a_signature_of_the_active_key_proves_an_account_once() {
    let shop = shared().shop();
    let challenge = shop.challenge(&json!({}));
    let (nonce, expires) = (challenge["nonce"].as_str().expect("a nonce"), challenge["expiresAt"].as_str());
    let text = challenge["text"].as_str().expect("a text");
    let server = shop.api.base.trim_start_matches("http://");
    let lines: Vec<&str> = text.lines().collect();
    let wanted = [
        "Hivetill account proof".to_owned(),
        lines[1].to_owned(),
        format!("merchant: {}", shop.id),
        format!("account: {}", shop.account.name),
        "action: verify".to_owned(),
        format!("nonce: {nonce}"),
        format!("expires: {}", expires.expect("an end")),
    ];
    assert_eq!(lines, wanted);
    assert!(lines[1].starts_with("server: "), "{text} from {server}");
    assert_eq!(shop.challenge(&json!({ "hiveAccount": shop.account.name })), challenge, "it is returned again");
    let signed = json!({ "nonce": nonce, "signatures": [shop.account.sign(text)] });
    let proven = shop.put_proof(&signed).ok(200);
    assert_eq!((&proven["complete"], &proven["merchant"]["accountVerifiedBy"]), (&json!(true), &json!("signature")));
    assert!(proven["merchant"]["accountVerifiedAt"].as_str().is_some_and(|at| at.ends_with('Z')));
    assert_eq!(me(&shop)["accountVerification"], "verified");
    shop.put_proof(&signed).refused(404, "not_found");
    assert_ne!(shop.challenge(&json!({}))["nonce"], challenge["nonce"]);
}

fn other_signatures_prove_nothing() {
    let dev = shared();
    let (shop, other) = (dev.shop(), dev.shop());
    let accounts = dev.ledger.order("accounts", &json!({}));
    let is_its = |account: &&Value| account["name"] == json!(shop.account.name);
    let keys = accounts.as_array().and_then(|all| all.iter().find(is_its)).expect("its account")["keys"].clone();
    let key = |role: &str| keys[role].as_str().unwrap_or_else(|| panic!("no {role} key in {keys}")).to_owned();
    let challenge = shop.challenge(&json!({}));
    for signer in [with_key(&shop, &key("posting")), with_key(&shop, &key("owner")), other.account.clone()] {
        shop.response(&challenge, &[&signer]).wrong(&["signatures[0]"]);
    }
    // The text of another merchant with the same account, and of another server.
    let twin = Shop::open_for(&dev.api, shop.account.clone());
    let theirs = twin.challenge(&json!({}))["text"].as_str().expect("a text").to_owned();
    let here = challenge["text"].as_str().expect("a text");
    let elsewhere = here.replace("server: ", "server: evil.");
    for text in [theirs.as_str(), &elsewhere, &here.replace("verify", "cancel change"), &format!("{here}\n")] {
        let body = json!({ "nonce": challenge["nonce"], "signatures": [shop.account.sign(text)] });
        shop.put_proof(&body).wrong(&["signatures[0]"]);
    }
    // Another merchant's challenge is not available.
    let stolen = json!({ "nonce": challenge["nonce"], "signatures": [shop.account.sign(here)] });
    twin.put_proof(&stolen).refused(404, "not_found");
    for (body, field) in [
        (json!({ "signatures": ["00"] }), "nonce"),
        (json!({ "nonce": "x", "signatures": ["00"] }), "nonce"),
        (json!({ "nonce": challenge["nonce"] }), "signatures"),
        (json!({ "nonce": challenge["nonce"], "signatures": [] }), "signatures"),
        (json!({ "nonce": challenge["nonce"], "signatures": [1] }), "signatures"),
        (json!({ "nonce": challenge["nonce"], "signatures": ["zz"] }), "signatures[0]"),
        (json!({ "nonce": challenge["nonce"], "signatures": vec!["00".repeat(65); 41] }), "signatures"),
    ] {
        shop.put_proof(&body).wrong(&[field]);
    }
    shop.post(&path(&shop, "/account-proof"), &json!({ "hiveAccount": "alice" })).send().wrong(&["hiveAccount"]);
    shop.post(&path(&other, "/account-proof"), &json!({})).send().refused(403, "forbidden_merchant");
    assert_eq!(me(&shop)["accountVerification"], "unverified");
    shop.prove();
}

fn signatures_add_up_to_the_threshold() {
    let dev = shared();
    let shop = dev.shop();
    let signers: Vec<Payer> = (0..2).map(|_| dev.ledger.account("signer")).collect();
    let public = |payer: &Payer| {
        let key = engine::hive::PrivateKey::from_wif(&payer.key).expect("a key");
        json!([key.public().to_string(), 1])
    };
    let mut keys: Vec<Value> = signers.iter().map(public).collect();
    keys.sort_by_key(ToString::to_string);
    let authority = json!({ "weight_threshold": 2, "account_auths": [], "key_auths": keys });
    dev.ledger.order("set_authority", &of_active(&shop, &authority));
    let challenge = shop.challenge(&json!({}));
    let first = shop.response(&challenge, &[&signers[0]]).ok(200);
    assert_eq!((&first["complete"], &first["signatures"]), (&json!(false), &json!(1)));
    let again = shop.response(&challenge, &[&signers[0]]).ok(200);
    assert_eq!((&again["complete"], &again["signatures"]), (&json!(false), &json!(1)), "one key counts once");
    assert_eq!(me(&shop)["accountVerified"], false);
    shop.response(&challenge, &[&shop.account]).wrong(&["signatures[0]"]);
    assert_eq!(shop.response(&challenge, &[&signers[1]]).ok(200)["complete"], true);
}

fn a_transfer_to_oneself_proves_an_account() {
    let dev = shared();
    let shop = dev.shop();
    let challenge = shop.challenge(&json!({}));
    let transfer = &challenge["transfer"];
    let memo = transfer["memo"].as_str().expect("a memo");
    assert!(memo.starts_with(&format!("Merchant {} at ", shop.id)), "{memo}");
    let may = format!(" may use @{}: {}", shop.account.name, challenge["nonce"].as_str().expect("a nonce"));
    assert!(memo.ends_with(&may), "{memo}");
    assert_eq!(transfer["operation"][1]["memo"], memo);
    for member in ["uri", "hivesignerUrl"] {
        assert!(transfer[member].as_str().is_some_and(|url| url.contains("sign/op/")), "{transfer}");
    }
    // A customer who is tricked into paying with this memo pays the shop, and proves nothing.
    dev.ledger.transfer(&dev.demo_account("alice"), &shop.account.name, "0.001 HBD", memo);
    dev.ledger.transfer(&shop.account, &shop.account.name, "0.001 HBD", memo);
    until("the proof to be read", || (me(&shop)["accountVerifiedBy"] == "transfer").then_some(()));
    // A transfer of the next block is listed after everything before it.
    dev.ledger.transfer(&dev.demo_account("bob"), &shop.account.name, "0.002 HBD", "later");
    let list = until("what came later", || {
        let list = shop.get("/api/public/unmatched").send().ok(200);
        list.to_string().contains("later").then_some(list)
    });
    let from: Vec<&Value> = list["data"].as_array().expect("data").iter().map(|row| &row["from"]).collect();
    assert_eq!(from, ["bob", "alice"], "the proof is not listed: {list}");
}

fn a_proof_is_stale_once_the_active_authority_changes() {
    let dev = shared();
    let shop = dev.shop().prove();
    dev.ledger.transfer(&dev.demo_account("alice"), &shop.account.name, "1.500 HBD", "for the mug");
    let id = until("the transfer to be listed", || {
        let list = shop.get("/api/public/unmatched").send().ok(200);
        list["data"][0]["id"].as_str().map(str::to_owned)
    });
    let payment = shop.open_payment();
    let heir = dev.ledger.account("heir");
    let public = engine::hive::PrivateKey::from_wif(&heir.key).expect("a key").public().to_string();
    dev.ledger.order("set_authority", &of_active(&shop, &json!(public)));
    let assign =
        || shop.post(&format!("/api/public/unmatched/{id}/assign"), &json!({ "paymentId": payment.id })).send();
    let refused = assign().refused(403, "account_not_proven");
    assert!(refused["statusMessage"].as_str().expect("a message").contains("changed"), "{refused}");
    assert_eq!((&me(&shop)["accountVerification"], &me(&shop)["accountVerified"]), (&json!("stale"), &json!(false)));
    let challenge = shop.challenge(&json!({}));
    shop.response(&challenge, &[&shop.account]).wrong(&["signatures[0]"]);
    shop.response(&challenge, &[&with_key(&shop, &heir.key)]).ok(200);
    assert_eq!(assign().ok(200)["status"], "completed");
}

fn a_proven_account_changes_only_with_proofs_of_both_accounts() {
    let dev = Dev::with(&["--set=merchants.account_change_hours=0"]);
    let shop = dev.shop().prove();
    let new = dev.ledger.account("new");
    let asked = shop.update(&json!({ "hiveAccount": new.name, "name": "Moving" })).ok(200);
    assert_eq!((&asked["hiveAccount"], &asked["name"]), (&json!(shop.account.name), &json!("Moving")));
    let pending = &asked["pendingAccount"];
    assert_eq!(
        (&pending["hiveAccount"], &pending["currentProven"], &pending["newProven"]),
        (&json!(new.name), &json!(false), &json!(false))
    );
    let of_new = shop.challenge(&json!({ "hiveAccount": new.name }));
    shop.response(&of_new, &[&shop.account]).wrong(&["signatures[0]"]);
    let answered = shop.response(&of_new, &[&new]).ok(200);
    assert_eq!(answered["merchant"]["hiveAccount"], json!(shop.account.name), "the current account has not agreed");
    let of_current = shop.challenge(&json!({}));
    assert_eq!(of_current["action"], format!("change to {}", new.name));
    shop.response(&of_current, &[&new]).wrong(&["signatures[0]"]);
    shop.response(&of_current, &[&shop.account]).ok(200);
    let changed = until("the change to take effect", || {
        let record = me(&shop);
        (record["hiveAccount"] == json!(new.name)).then_some(record)
    });
    assert_eq!((&changed["accountVerified"], &changed["pendingAccount"]), (&json!(true), &Value::Null));
    assert_eq!(announced(&shop), ["requested", "completed"]);
    let payment = shop.open_payment();
    dev.ledger.transfer(&dev.demo_account("alice"), &new.name, "1.500 HBD", &payment.memo);
    shop.until_status(&payment.id, "completed");
}

fn a_pending_change_is_cancelled_with_the_key_or_by_the_current_account() {
    let dev = shared();
    let shop = dev.shop().prove();
    let new = dev.ledger.account("new");
    let cancel = || shop.api.request("DELETE", &path(&shop, "/pending-account")).bearer(&shop.key).send();
    cancel().refused(409, "no_pending_account");
    let asked = shop.update(&json!({ "hiveAccount": new.name })).ok(200);
    let waits = |record: &Value| record["pendingAccount"]["effectiveAt"].as_str().map(str::to_owned);
    assert!(waits(&asked).is_some());
    shop.response(&shop.challenge(&json!({ "hiveAccount": new.name })), &[&new]).ok(200);
    shop.response(&shop.challenge(&json!({})), &[&shop.account]).ok(200);
    let agreed = me(&shop);
    assert_eq!((&agreed["hiveAccount"], waits(&agreed)), (&json!(shop.account.name), waits(&asked)), "it waits a day");
    assert_eq!(cancel().ok(200)["pendingAccount"], Value::Null);

    shop.update(&json!({ "hiveAccount": new.name })).ok(200);
    let keys = path(&shop, "/api-keys");
    let made = shop.post(&keys, &json!({ "name": "till", "scopes": ["payments:read"] })).send().ok(201);
    let till = Shop { key: made["apiKey"].as_str().expect("a key").to_owned(), ..shop.clone() };
    till.api
        .request("DELETE", &path(&shop, "/pending-account"))
        .bearer(&till.key)
        .send()
        .refused(403, "insufficient_scope");
    till.post(&path(&shop, "/account-proof"), &json!({})).send().refused(403, "insufficient_scope");
    // The current account cancels with any key of the merchant.
    let challenge = till.challenge(&json!({ "cancel": true }));
    assert_eq!(challenge["action"], "cancel change");
    till.response(&challenge, &[&new]).wrong(&["signatures[0]"]);
    till.response(&challenge, &[&shop.account]).ok(200);
    assert_eq!(me(&shop)["pendingAccount"], Value::Null);
    assert_eq!(announced(&shop), ["requested", "cancelled", "requested", "cancelled"]);
}

/// Returns the events about changes of the account, oldest first.
fn announced(shop: &Shop) -> Vec<String> {
    let list = shop.get("/api/public/events").send().ok(200);
    let events = list["events"].as_array().expect("events").iter();
    let changes = events.filter(|event| event["type"] == "merchant.account_change");
    changes.map(|event| event["data"]["change"].as_str().expect("a change").to_owned()).collect()
}

fn changing_the_payout_account_needs_its_own_scope() {
    let dev = shared();
    let shop = dev.shop();
    let key_of = |scopes: &[&str]| {
        let body = json!({ "name": "a key", "scopes": scopes });
        let made = shop.post(&path(&shop, "/api-keys"), &body).send().ok(201);
        Shop { key: made["apiKey"].as_str().expect("a key").to_owned(), ..shop.clone() }
    };
    let (clerk, boss) = (key_of(&["merchant:write"]), key_of(&["merchant:payout"]));
    let new = dev.ledger.account("new").name;
    clerk.update(&json!({ "hiveAccount": new })).refused(403, "insufficient_scope");
    clerk.update(&json!({ "name": "By the clerk", "hiveAccount": new })).refused(403, "insufficient_scope");
    assert_eq!(clerk.update(&json!({ "name": "By the clerk" })).ok(200)["name"], "By the clerk");
    // A key cannot create a key with more scopes than its own.
    let more = json!({ "name": "more", "scopes": ["merchant:payout"] });
    clerk.post(&path(&shop, "/api-keys"), &more).send().refused(403, "insufficient_scope");
    boss.update(&json!({ "name": "By the boss" })).refused(403, "insufficient_scope");
    assert_eq!(boss.update(&json!({ "hiveAccount": new })).ok(200)["hiveAccount"], json!(new));
}

fn an_account_can_change_three_times_a_day() {
    let dev = shared();
    let shop = dev.shop();
    for _ in 0..3 {
        shop.update(&json!({ "hiveAccount": dev.ledger.account("often").name })).ok(200);
    }
    let fourth = json!({ "hiveAccount": dev.ledger.account("often").name });
    shop.update(&fourth).refused(429, "too_many_account_changes");
    shop.update(&json!({ "hiveAccount": me(&shop)["hiveAccount"] })).ok(200);
}

fn the_operator_verifies_an_account() {
    let data = folder("vouched").join("data");
    let data = data.to_str().expect("a path");
    let dev = Dev::with(&[&format!("--data={data}")]);
    let demo =
        dev.api.get("/api/public/merchants/me").bearer(dev.startup["merchant"]["apiKey"].as_str().expect("a key"));
    assert_eq!(demo.send().ok(200)["accountVerifiedBy"], "operator", "the demo shop is verified");
    let shop = dev.shop();
    let vouch = |merchant: &str| {
        let args = ["admin", "verify-merchant", "--json", "--network", "dev", "--data", data, "--merchant", merchant];
        Process::start(&args).finish()
    };
    assert!(!vouch("mer_00000000000000000000000000").success);
    let report = vouch(&shop.id);
    assert!(report.success, "{report:?}");
    let line: Value = serde_json::from_str(&report.stdout).expect("a line of JSON");
    assert_eq!(line, json!({ "id": shop.id, "hiveAccount": shop.account.name }));
    assert_eq!((&me(&shop)["accountVerified"], &me(&shop)["accountVerifiedBy"]), (&json!(true), &json!("operator")));
    let log = dev.api.get(&format!("/api/admin/audit?merchantId={}", shop.id)).bearer(dev.admin_key()).send().ok(200);
    assert!(log.to_string().contains("account_vouched_for"), "{log}");
}

fn registration_can_require_approval_or_be_closed() {
    let closed = Dev::with(&["--set=registration=closed"]);
    let account = closed.ledger.account("late").name;
    let body = json!({ "name": "Late", "hiveAccount": account });
    closed.api.post("/api/public/merchants/register", &body).send().refused(403, "registration_closed");
    let dev = Dev::with(&["--set=registration=approval"]);
    let shop = dev.shop();
    assert_eq!(me(&shop)["isActive"], false);
    shop.post("/api/public/payments", &crate::harness::order()).send().refused(403, "inactive_merchant");
    let active = format!("/api/admin/merchants/{}/active", shop.id);
    dev.api.post(&active, &json!({ "isActive": true })).bearer(dev.admin_key()).send().ok(200);
    shop.open_payment();
}
