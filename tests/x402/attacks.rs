//! Attacks on payments over HTTP, numbered as in the specification.

use std::time::Duration;

use engine::{
    hive::{ChainId, Pack, Signature, Transaction},
    time::Timestamp,
};
use serde_json::{Value, json};

use super::{PRICE, block_of, encode, json_of, nonce, session, settle, sign, transfers_with_memo, v1, verify, visit};
use crate::harness::{Dev, Payer, Shop, raw, shared};

crate::tests!(
    every_check_has_its_reason,
    attack_07_another_signature_of_a_transaction_is_the_same_payment,
    attack_13_a_payer_rejected_by_the_chain_can_pay_again,
    attack_17_an_authority_includes_weights_and_delegates,
    attack_18_only_the_active_authority_pays,
    attack_19_only_transfers_are_accepted,
    attack_21_amounts_have_only_one_form,
    attack_25_payment_payloads_are_not_logged,
    attack_26_a_payment_for_another_chain_pays_nothing,
    attack_27_malicious_headers_are_rejected,
    attack_28_prefetches_and_other_methods_do_not_pay,
    attack_33_responses_reveal_nothing_about_others,
    attack_34_a_slug_cannot_be_guessed,
    attack_36_the_payer_is_the_signer,
);

/// A shop, an agent and an open session.
struct Scene {
    dev: &'static Dev,
    shop: Shop,
    agent: Payer,
    id: String,
    path: String,
    memo: String,
}

impl Scene {
    fn new() -> Self {
        let dev = shared();
        let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
        let payment = shop.open_payment();
        Self { dev, shop, agent, id: payment.id, path: format!("/for/{}", payment.slug), memo: payment.memo }
    }

    /// The valid transfer, signed by its payer.
    fn signed(&self) -> Transaction {
        self.dev.ledger.signed(&self.agent, &[(&self.shop.account.name, PRICE, &self.memo)])
    }

    /// The same transaction with another operation, signed by the payer.
    fn changed(&self, change: impl FnOnce(&mut Transaction)) -> Transaction {
        let mut transaction = self.signed();
        change(&mut transaction);
        sign(&mut transaction, ChainId::MAINNET, Pack::Legacy, &[&self.agent.key]);
        transaction
    }

    fn transfer(&self, payer: &Payer, to: &str, amount: &str, memo: &str) -> Transaction {
        self.dev.ledger.signed(payer, &[(to, amount, memo)])
    }

    #[track_caller]
    fn reason(&self, transaction: &Transaction) -> String {
        let verdict = verify(&self.shop.api, &session(&self.id), &v1(&json_of(transaction), &nonce()));
        verdict["invalidReason"].as_str().unwrap_or_default().to_owned()
    }

    #[track_caller]
    fn pays(&self, transaction: &Transaction) {
        let response = visit(&self.shop.api, &self.path, Some(&v1(&json_of(transaction), &nonce())));
        assert_eq!(response.status, 200, "{}", response.text());
    }
}

fn every_check_has_its_reason() {
    let scene = Scene::new();
    let to = scene.shop.account.name.as_str();
    let (agent, shop) = (&scene.agent, &scene.shop);
    let expires = |seconds: u64| scene.changed(|tx| tx.expiration = tx.expiration + Duration::from_secs(seconds));
    let third_party = scene.dev.ledger.account("agent");
    let nobody = Payer { name: "nobody.there".to_owned(), key: agent.key.clone() };
    let foreign = shop.open_payment();
    let rich = "1000001.000 HBD";
    let twice = {
        let mut transaction = scene.signed();
        sign(&mut transaction, ChainId::MAINNET, Pack::Legacy, &[&agent.key, &agent.key]);
        transaction
    };
    let two = scene.dev.ledger.signed(agent, &[(to, PRICE, &scene.memo), (to, PRICE, &scene.memo)]);
    let payload = "invalid_exact_hive_payload";
    for (transaction, word) in [
        (two, format!("{payload}_operations")),
        (scene.transfer(agent, "hivetill.fees", PRICE, &scene.memo), format!("{payload}_recipient_mismatch")),
        (scene.transfer(&shop.account, to, PRICE, &scene.memo), format!("{payload}_self_payment")),
        (scene.transfer(agent, to, "1.500 HIVE", &scene.memo), format!("{payload}_asset_mismatch")),
        (scene.transfer(agent, to, "1.499 HBD", &scene.memo), format!("{payload}_amount")),
        (scene.transfer(agent, to, PRICE, ""), format!("{payload}_memo_mismatch")),
        (scene.transfer(agent, to, PRICE, &foreign.memo), format!("{payload}_memo_mismatch")),
        (scene.transfer(agent, to, PRICE, &format!(" {}", scene.memo)), format!("{payload}_memo_mismatch")),
        (expires(3_700), format!("{payload}_expiration_too_far")),
        (scene.changed(|tx| tx.expiration = Timestamp::from_seconds(1_700_000_000)), "payment_expired".to_owned()),
        (twice, format!("{payload}_signature")),
        (
            scene.transfer(&Payer { name: agent.name.clone(), ..third_party }, to, PRICE, &scene.memo),
            format!("{payload}_authority"),
        ),
        (scene.transfer(&nobody, to, PRICE, &scene.memo), format!("{payload}_account_not_found")),
        (scene.transfer(agent, to, rich, &scene.memo), "insufficient_funds".to_owned()),
    ] {
        assert_eq!(scene.reason(&transaction), word, "{}", transaction.to_condenser_json());
    }
    let mut unsigned = scene.signed();
    unsigned.signatures.clear();
    assert_eq!(scene.reason(&unsigned), format!("{payload}_authority"));
    let good = json_of(&scene.signed());
    let target = session(&scene.id);
    let with = |pointer: &str, value: Value| {
        let mut shown = v1(&good, &nonce());
        *shown.pointer_mut(pointer).expect("a member") = value;
        verify(&shop.api, &target, &shown)["invalidReason"].clone()
    };
    for (pointer, value, word) in [
        ("/x402Version", json!(3), "invalid_x402_version"),
        ("/x402Version", json!(2), "invalid_payload"),
        ("/scheme", json!("upto"), "unsupported_scheme"),
        ("/network", json!("hive:testnet"), "invalid_network"),
        ("/payload/nonce", json!(""), "invalid_payload"),
        ("/payload/nonce", json!("n".repeat(257)), "invalid_payload"),
        ("/payload/signedTransaction/ref_block_num", json!(65_536), "invalid_payload"),
    ] {
        assert_eq!(with(pointer, value.clone()), word, "{pointer} {value}");
    }
    // The CAIP-2 name of the main chain is accepted as input and never returned.
    assert_eq!(with("/network", json!("hive:beeab0de000000000000000000000000")), Value::Null);
    let unknown = session("pay_00000000000000000000000000");
    assert_eq!(verify(&shop.api, &unknown, &v1(&good, &nonce()))["invalidReason"], "session_not_found");
    shop.cancelled(&foreign.id);
    let late = scene.transfer(agent, to, PRICE, &foreign.memo);
    let verdict = verify(&shop.api, &session(&foreign.id), &v1(&json_of(&late), &nonce()));
    assert_eq!(verdict["invalidReason"], "session_not_pending");
    assert_eq!(shop.payment(&scene.id)["transfers"], json!([]), "nothing of all this was sent");
    scene.pays(&scene.signed());
}

/// The other valid signature for the same key and digest: `s` and the curve's order less `s` are equivalent.
fn other_signature(signature: &Signature) -> Signature {
    const ORDER: [u8; 32] = [
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 0xba, 0xae,
        0xdc, 0xe6, 0xaf, 0x48, 0xa0, 0x3b, 0xbf, 0xd2, 0x5e, 0x8c, 0xd0, 0x36, 0x41, 0x41,
    ];
    let mut bytes = signature.0;
    let mut borrow = 0_i16;
    for (at, order) in ORDER.iter().enumerate().rev() {
        let difference = i16::from(*order) - i16::from(bytes[33 + at]) - borrow;
        borrow = i16::from(difference < 0);
        bytes[33 + at] = u8::try_from(difference.rem_euclid(256)).expect("a byte");
    }
    bytes[0] = ((bytes[0] - 31) ^ 1) + 31;
    Signature(bytes)
}

fn attack_07_another_signature_of_a_transaction_is_the_same_payment() {
    let scene = Scene::new();
    let signed = scene.signed();
    let mut other = signed.clone();
    other.signatures[0] = other_signature(&signed.signatures[0]);
    assert_ne!(other.signatures, signed.signatures);
    let nonce = nonce();
    let request =
        |transaction: &Transaction| visit(&scene.shop.api, &scene.path, Some(&v1(&json_of(transaction), &nonce)));
    // No wallet makes the signature with the high half of the curve; it is rejected before anything is claimed.
    request(&other).denied("invalid_exact_hive_payload_signature");
    let first = request(&signed).ok(200);
    request(&other).closed(409, "session_completed");
    let mut again = request(&signed).ok(200);
    assert_eq!(again["replayed"].take(), true);
    assert_eq!((&again["txId"], &again["payer"]), (&first["txId"], &first["payer"]), "one transaction, one receipt");
    assert_eq!(transfers_with_memo(&scene.dev.ledger, &scene.memo), 1);
}

fn attack_13_a_payer_rejected_by_the_chain_can_pay_again() {
    let scene = Scene::new();
    let set_rc = |has: bool| scene.dev.ledger.order("set_rc", &json!({ "name": scene.agent.name, "hasRc": has }));
    set_rc(false);
    let (signed, nonce) = (scene.signed(), nonce());
    let shown = v1(&json_of(&signed), &nonce);
    let body = visit(&scene.shop.api, &scene.path, Some(&shown)).denied("invalid_transaction_state");
    assert_eq!(body["payer"], scene.agent.name);
    set_rc(true);
    // A permanently rejected payment stays rejected; a newly signed one is accepted.
    visit(&scene.shop.api, &scene.path, Some(&shown)).denied("invalid_transaction_state");
    scene.pays(&scene.signed());
    assert_eq!(block_of(&scene.dev.ledger, &signed.id(Pack::Legacy).to_string()), None);
}

fn attack_17_an_authority_includes_weights_and_delegates() {
    let scene = Scene::new();
    let ledger = &scene.dev.ledger;
    let (second, delegate) = (ledger.account("agent"), ledger.account("agent"));
    let public = |payer: &Payer| engine::hive::PrivateKey::from_wif(&payer.key).expect("a key").public().to_string();
    let authority = json!({
        "weight_threshold": 3,
        "account_auths": [[delegate.name, 1]],
        "key_auths": [[public(&scene.agent), 2], [public(&second), 1]],
    });
    let order = json!({ "name": scene.agent.name, "role": "active", "authority": authority });
    ledger.order("set_authority", &order);
    let by = |keys: &[&str]| {
        let mut transaction = scene.signed();
        sign(&mut transaction, ChainId::MAINNET, Pack::Legacy, keys);
        transaction
    };
    let (own, other, delegated) = (scene.agent.key.as_str(), second.key.as_str(), delegate.key.as_str());
    for keys in [&[own][..], &[other], &[delegated], &[other, delegated]] {
        assert_eq!(scene.reason(&by(keys)), "invalid_exact_hive_payload_authority", "{keys:?}");
    }
    for keys in [&[own, other][..], &[own, delegated], &[other, own, delegated]] {
        assert_eq!(scene.reason(&by(keys)), "", "{keys:?}");
    }
    scene.pays(&by(&[own, delegated]));
}

fn attack_18_only_the_active_authority_pays() {
    let scene = Scene::new();
    let name = format!("{}x", scene.agent.name);
    let params = json!({ "name": name, "balances": ["10.000 HBD"] });
    let keys = scene.dev.ledger.order("create_account", &params)["keys"].clone();
    for (role, word) in [
        ("owner", "invalid_exact_hive_payload_authority"),
        ("posting", "invalid_exact_hive_payload_authority"),
        ("memo", "invalid_exact_hive_payload_authority"),
        ("active", ""),
    ] {
        let payer = Payer { name: name.clone(), key: keys[role].as_str().expect("a key").to_owned() };
        let signed = scene.transfer(&payer, &scene.shop.account.name, PRICE, &scene.memo);
        assert_eq!(scene.reason(&signed), word, "{role}");
    }
}

fn attack_19_only_transfers_are_accepted() {
    let scene = Scene::new();
    let (from, to) = (scene.agent.name.as_str(), scene.shop.account.name.as_str());
    let good = json_of(&scene.signed());
    let transfer = good["operations"][0].clone();
    let savings = json!(["transfer_to_savings", { "from": from, "to": to, "amount": PRICE, "memo": scene.memo }]);
    let recurrent = json!(["recurrent_transfer", { "from": from, "to": to, "amount": PRICE, "memo": scene.memo,
        "recurrence": 24, "executions": 2, "extensions": [] }]);
    let custom =
        json!(["custom_json", { "required_auths": [from], "required_posting_auths": [], "id": "x", "json": "{}" }]);
    let escrow = json!(["escrow_transfer", { "from": from, "to": to }]);
    let target = session(&scene.id);
    for operations in [
        json!([]),
        json!([savings]),
        json!([recurrent]),
        json!([custom]),
        json!([escrow]),
        json!([transfer, custom]),
        json!([transfer, escrow]),
        json!([transfer, transfer]),
    ] {
        let mut transaction = good.clone();
        transaction["operations"] = operations.clone();
        let verdict = verify(&scene.shop.api, &target, &v1(&transaction, &nonce()));
        assert_eq!(verdict["invalidReason"], "invalid_exact_hive_payload_operations", "{operations}");
    }
    let mut extended = good;
    extended["extensions"] = json!([[0, {}]]);
    let verdict = verify(&scene.shop.api, &target, &v1(&extended, &nonce()));
    assert_eq!(verdict["invalidReason"], "invalid_payload");
}

fn attack_21_amounts_have_only_one_form() {
    let scene = Scene::new();
    let target = session(&scene.id);
    let good = json_of(&scene.signed());
    for amount in [
        "+1.500 HBD",
        "-1.500 HBD",
        "01.500 HBD",
        ".500 HBD",
        "1.5 HBD",
        "1.5000 HBD",
        "1.500 SBD",
        "1.500  HBD",
        "1.500 HBD ",
        "1.500HBD",
        "1,500 HBD",
        "1.500 hbd",
        "1.500 TBD",
        "1e3 HBD",
        "NaN HBD",
        "99999999999999999.000 HBD",
    ] {
        let mut transaction = good.clone();
        transaction["operations"][0][1]["amount"] = json!(amount);
        let verdict = verify(&scene.shop.api, &target, &v1(&transaction, &nonce()));
        assert_eq!(verdict["invalidReason"], "invalid_payload", "{amount}");
    }
    let hf26: Value = serde_json::from_str(&scene.signed().to_hf26_json()).expect("JSON");
    for (member, value) in [
        ("amount", json!(1500)),
        ("amount", json!("+1500")),
        ("amount", json!("1.5e3")),
        ("amount", json!("9223372036854775808")),
        ("precision", json!(2)),
        ("precision", json!("3")),
        ("nai", json!("@@000000014")),
        ("nai", json!("HBD")),
    ] {
        let mut transaction = hf26.clone();
        transaction["operations"][0]["value"]["amount"][member] = value.clone();
        let verdict = verify(&scene.shop.api, &target, &v1(&transaction, &nonce()));
        assert_eq!(verdict["invalidReason"], "invalid_payload", "{member} {value}");
    }
    // The parsed and serialized transaction is verified: additional fields change nothing.
    let mut more = good;
    more["operations"][0][1]["amount_"] = json!("9.000 HBD");
    more["transaction_id"] = json!("00");
    assert_eq!(verify(&scene.shop.api, &target, &v1(&more, &nonce()))["isValid"], true);
}

fn attack_25_payment_payloads_are_not_logged() {
    let dev = Dev::with(&["--set=log.level=trace"]);
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    let payment = shop.open_payment();
    let path = format!("/for/{}", payment.slug);
    let poor = dev.ledger.signed(&agent, &[(&shop.account.name, "1.499 HBD", &payment.memo)]);
    let good = dev.ledger.signed(&agent, &[(&shop.account.name, PRICE, &payment.memo)]);
    let mut secrets = Vec::new();
    for transaction in [&poor, &good] {
        let shown = v1(&json_of(transaction), &nonce());
        settle(&shop.api, &session(&payment.id), &shown);
        visit(&shop.api, &path, Some(&shown));
        secrets.push(encode(&shown)[..80].to_owned());
        secrets.push(encode(&shown)[80..160].to_owned());
        secrets.push(transaction.signatures[0].to_string());
        secrets.push(shown["payload"]["nonce"].as_str().expect("a nonce").to_owned());
    }
    shop.until_status(&payment.id, "completed");
    let log = dev.process.log();
    assert!(log.contains(&payment.id), "the session's life cycle is logged");
    for secret in secrets {
        assert!(!log.contains(&secret), "{secret} is in the log");
    }
}

fn attack_26_a_payment_for_another_chain_pays_nothing() {
    let scene = Scene::new();
    let testnet = ChainId::parse("18dcf0a285365fc58b71f18b3d3fec954aa0c141c44e4e5cb4cf777b9eab274e").expect("an id");
    for pack in [Pack::Legacy, Pack::Hf26] {
        let mut transaction = scene.signed();
        sign(&mut transaction, testnet, pack, &[&scene.agent.key]);
        assert_eq!(scene.reason(&transaction), "invalid_exact_hive_payload_authority", "{pack:?}");
    }
}

fn attack_27_malicious_headers_are_rejected() {
    let scene = Scene::new();
    let good = encode(&v1(&json_of(&scene.signed()), &nonce()));
    let twice =
        v1(&json_of(&scene.signed()), &nonce()).to_string().replacen("\"scheme\"", "\"scheme\":\"upto\",\"scheme\"", 1);
    let twice = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, twice);
    let builder = |headers: &str| {
        let request = format!("GET {} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}\r\n", scene.path);
        raw(&scene.shop.api, request.as_bytes()).expect("a response")
    };
    for headers in [
        format!("x-payment: {good}\r\nX-Payment: {good}\r\n"),
        format!("x-payment: {good}\r\nPAYMENT-SIGNATURE: {good}\r\n"),
        format!("x-payment: {good},{good}\r\n"),
        format!("x-payment: {good} x\r\n"),
        format!("x-payment: {twice}\r\n"),
        "x-payment: \r\n".to_owned(),
        "x-payment: \u{e9}\r\n".to_owned(),
        "accept: text/html\r\nx-payment: bm90IGpzb24=\r\n".to_owned(),
    ] {
        let response = builder(&headers);
        let body = response.closed(400, "invalid_payload");
        assert!(body["error"].is_string() && body["success"] == false, "{body}");
    }
    // Folded lines and NUL are invalid in HTTP.
    for headers in [format!("x-payment: {}\r\n {}\r\n", &good[..40], &good[40..]), "x-payment: a\0b\r\n".to_owned()] {
        assert_eq!(builder(&headers).status, 400);
    }
    for (bytes, status) in [(16 * 1024 + 1, 431), (33 * 1024, 431), (200 * 1024, 431)] {
        assert_eq!(builder(&format!("x-payment: {}\r\n", "A".repeat(bytes))).status, status, "{bytes}");
    }
    assert_eq!(scene.shop.payment(&scene.id)["status"], "pending");
    assert_eq!(builder(&format!("X-PAYMENT: {good}\r\n")).status, 200);
}

fn attack_28_prefetches_and_other_methods_do_not_pay() {
    let scene = Scene::new();
    let shown = encode(&v1(&json_of(&scene.signed()), &nonce()));
    let request = |method: &str| scene.shop.api.request(method, &scene.path).header("x-payment", &shown);
    assert_eq!(request("HEAD").send().status, 402);
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        request(method).send().refused(405, "method_not_allowed");
    }
    assert_eq!(request("OPTIONS").send().status, 204);
    for ahead in ["prefetch", "prefetch;prerender"] {
        assert_eq!(request("GET").header("Sec-Purpose", ahead).send().status, 402, "{ahead}");
    }
    let record = scene.shop.payment(&scene.id);
    assert_eq!((&record["status"], &record["internalId"]), (&json!("pending"), &Value::Null));
    let paid = request("GET").header("accept", "text/html").send();
    assert_eq!((paid.status, paid.header("location")), (200, None));
    let response = visit(&scene.shop.api, &scene.path, None);
    assert!(response.header("etag").is_none() && response.header("cache-control") == Some("no-store"));
}

fn attack_33_responses_reveal_nothing_about_others() {
    let (scene, other) = (Scene::new(), Scene::new());
    let signed = scene.transfer(&scene.agent, &scene.shop.account.name, PRICE, &other.memo);
    let response = visit(&scene.shop.api, &scene.path, Some(&v1(&json_of(&signed), &nonce())));
    response.denied("invalid_exact_hive_payload_memo_mismatch");
    assert!(!response.text().contains(&other.id));
    let paid = other.signed();
    other.pays(&paid);
    let response = visit(&scene.shop.api, &scene.path, Some(&v1(&json_of(&paid), &nonce())));
    response.closed(409, "duplicate_settlement");
    assert!(!response.text().contains(&other.id) && response.receipt()["transaction"] == "");

    let dev = Dev::start();
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    let payment = shop.open_payment();
    let signed = dev.ledger.signed(&agent, &[(&shop.account.name, PRICE, &payment.memo)]);
    dev.ledger.disconnect(true);
    let node = dev.ledger.rpc.base.strip_prefix("http://").expect("plain http").to_owned();
    let shown = v1(&json_of(&signed), &nonce());
    let response = visit(&shop.api, &format!("/for/{}", payment.slug), Some(&shown));
    assert_eq!(response.status, 503);
    assert!(!response.text().contains(&node) && !response.receipt().to_string().contains(&node), "{}", response.text());
}

fn attack_34_a_slug_cannot_be_guessed() {
    let shop = shared().shop();
    let (one, other) = (shop.open_payment().slug, shop.open_payment().slug);
    let (name, secret) = one.rsplit_once('-').expect("words and a secret");
    let (other_name, other_secret) = other.rsplit_once('-').expect("words and a secret");
    assert_eq!((name, secret.len(), other_secret.len()), (other_name, 26, 26), "26 characters of 5 bits");
    // Neither value can be derived from the other: of 26 random characters one in 32 is equal by chance.
    let same = secret.bytes().zip(other_secret.bytes()).filter(|(a, b)| a == b).count();
    assert!(same < 13, "{secret} {other_secret}");
    for at in [0, 13, 25] {
        let mut guess = secret.to_owned();
        let changed = if &guess[at..=at] == "0" { "1" } else { "0" };
        guess.replace_range(at..=at, changed);
        shop.api.get(&format!("/for/{name}-{guess}")).header("accept", "application/json").send().ok(404);
    }
}

fn attack_36_the_payer_is_the_signer() {
    let scene = Scene::new();
    let mut shown = v1(&json_of(&scene.signed()), &nonce());
    for holder in ["", "/payload", "/payload/signedTransaction"] {
        shown.pointer_mut(holder).expect("an object")["payer"] = json!("third.party");
        shown.pointer_mut(holder).expect("an object")["from"] = json!("third.party");
    }
    let verdict = verify(&scene.shop.api, &session(&scene.id), &shown);
    assert_eq!(verdict, json!({ "isValid": true, "payer": scene.agent.name }));
    let outcome = settle(&scene.shop.api, &session(&scene.id), &shown);
    assert_eq!((&outcome["success"], &outcome["payer"]), (&json!(true), &json!(scene.agent.name)));
}
