//! Signed offers and receipts of checkout pages, and the keys that sign them.

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use serde_json::{Value, json};

use super::{PRICE, decode, json_of, nonce, session, settle, v1, visit};
use crate::harness::{Api, LedgerProcess, Process, Response, Serve, Shop, Split, folder, shared, until};

crate::tests!(
    a_checkout_page_signs_its_offer_and_its_receipt,
    the_facilitator_signs_receipts_of_sessions_only,
    a_gateway_with_unsigned_offers_signs_nothing,
    a_key_survives_a_kill_before_its_first_use,
    a_key_is_encrypted_with_each_new_master_key,
    a_rotated_key_remains_in_the_key_set,
);

/// A signature: its key id, and what is signed.
#[track_caller]
fn read(jws: &Value) -> (Value, Value) {
    let parts: Vec<&str> = jws.as_str().expect("a JWS").split('.').collect();
    assert_eq!(parts.len(), 3, "{jws}");
    let json = |part: &str| -> Value {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(part).expect("base64url");
        serde_json::from_slice(&bytes).expect("JSON")
    };
    let header = json(parts[0]);
    assert_eq!(header["alg"], "EdDSA");
    (header["kid"].clone(), json(parts[1]))
}

/// Returns the requirements of version 2 and the signature of their offer, if there is one.
#[track_caller]
fn signed_offer(response: &Response) -> (Value, Option<Value>) {
    assert_eq!(response.status, 402, "{}", response.text());
    let required = decode(response.header("payment-required").expect("version 2"));
    let extension = &required["extensions"]["offer-receipt"];
    let signature = extension.is_object().then(|| {
        let offers = extension["info"]["offers"].as_array().expect("offers");
        assert_eq!(offers.len(), 1, "{extension}");
        assert_eq!((&offers[0]["format"], &offers[0]["acceptIndex"]), (&json!("jws"), &json!(0)));
        offers[0]["signature"].clone()
    });
    (required, signature)
}

/// Returns the signature of the receipt in a settlement response, if there is one.
fn signed_receipt(outcome: &Value) -> Option<Value> {
    let receipt = outcome.get("extensions")?.get("offer-receipt")?["info"]["receipt"].clone();
    assert_eq!(receipt["format"], "jws", "{outcome}");
    Some(receipt["signature"].clone())
}

/// Returns the ids of the published keys, which contain no secret.
#[track_caller]
fn key_ids(api: &Api) -> Vec<Value> {
    let set = api.get("/.well-known/jwks.json").send().ok(200);
    let keys = set["keys"].as_array().expect("keys");
    for key in keys {
        assert_eq!((&key["kty"], &key["crv"], &key["alg"]), (&json!("OKP"), &json!("Ed25519"), &json!("EdDSA")));
        assert!(key.get("d").is_none(), "the secret key is not published");
    }
    keys.iter().map(|key| key["kid"].clone()).collect()
}

/// Returns the id of the key that signs the offers of a shop.
#[track_caller]
pub(crate) fn signing_key(shop: &Shop) -> Value {
    let payment = shop.open_payment();
    let (_, signature) = signed_offer(&visit(&shop.api, &format!("/for/{}", payment.slug), None));
    read(&signature.expect("a signed offer")).0
}

fn a_checkout_page_signs_its_offer_and_its_receipt() {
    let dev = shared();
    let (shop, agent) = (dev.shop(), dev.ledger.account("agent"));
    let payment = shop.open_payment();
    let path = format!("/for/{}", payment.slug);
    let (required, signature) = signed_offer(&visit(&shop.api, &path, None));
    let (key, mut offer) = read(&signature.expect("a signed offer"));
    assert!(key_ids(&shop.api).contains(&key), "{key}");
    assert!(offer["validUntil"].take().is_u64());
    let (url, accepted) = (&required["resource"]["url"], &required["accepts"][0]);
    let wanted = json!({
        "amount": accepted["amount"], "asset": "HBD", "network": "hive:mainnet", "payTo": shop.account.name,
        "resourceUrl": url, "scheme": "exact", "validUntil": null, "version": 1,
    });
    assert_eq!(offer, wanted);

    let signed = dev.ledger.signed(&agent, &[(&shop.account.name, PRICE, &payment.memo)]);
    let shown = v1(&json_of(&signed), &nonce());
    let response = visit(&shop.api, &path, Some(&shown));
    let body = response.ok(200);
    assert!(body.get("extensions").is_none(), "{body}");
    let signature = signed_receipt(&response.receipt()).expect("a signed receipt");
    let (receipt_key, mut receipt) = read(&signature);
    assert_eq!(receipt_key, key);
    assert!(receipt["issuedAt"].take().is_u64());
    let wanted = json!({
        "issuedAt": null, "network": "hive:mainnet", "payer": agent.name, "resourceUrl": url,
        "transaction": body["txId"], "version": 1,
    });
    assert_eq!(receipt, wanted);
    let again = visit(&shop.api, &path, Some(&shown));
    assert_eq!(signed_receipt(&again.receipt()), Some(signature), "a repeated request gets the same receipt");
    let refused = visit(&shop.api, &path, Some(&v1(&json_of(&signed), &nonce())));
    assert_eq!((refused.status, signed_receipt(&refused.receipt())), (409, None));
}

fn the_facilitator_signs_receipts_of_sessions_only() {
    let dev = shared();
    let (shop, agent, server) = (dev.shop(), dev.ledger.account("agent"), dev.ledger.account("server"));
    let payment = shop.open_payment();
    let signed = dev.ledger.signed(&agent, &[(&shop.account.name, PRICE, &payment.memo)]);
    let outcome = settle(&dev.api, &session(&payment.id), &v1(&json_of(&signed), &nonce()));
    assert_eq!(outcome["success"], true, "{outcome}");
    let (key, receipt) = read(&signed_receipt(&outcome).expect("a signed receipt"));
    assert!(key_ids(&dev.api).contains(&key));
    let url = receipt["resourceUrl"].as_str().expect("a URL");
    assert!(url.ends_with(&format!("/checkout/{}", payment.id)), "{url}: the slug is secret");
    assert_eq!((&receipt["payer"], &receipt["transaction"]), (&json!(agent.name), &outcome["txId"]));

    // Only the other server can say that it served its resource.
    let nonce = nonce();
    let signed = dev.ledger.signed(&agent, &[(&server.name, PRICE, &format!("x402:{nonce}"))]);
    let requirements = json!({
        "scheme": "exact", "network": "hive:mainnet", "maxAmountRequired": PRICE, "payTo": server.name,
        "resource": "https://x.example/a", "asset": "HBD", "maxTimeoutSeconds": 60,
    });
    let outcome = settle(&dev.api, &json!({ "paymentRequirements": requirements }), &v1(&json_of(&signed), &nonce));
    assert_eq!((&outcome["success"], signed_receipt(&outcome)), (&json!(true), None), "{outcome}");
}

fn a_gateway_with_unsigned_offers_signs_nothing() {
    let folder = folder("unsigned-offers");
    let ledger = LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
    let serve = Serve::with(&folder.join("data"), &ledger.ledger, &["--set=x402.sign=false"]);
    let (shop, agent) = (Shop::open(&serve.api, &ledger.ledger), ledger.demo_account("alice"));
    let payment = shop.open_payment();
    let path = format!("/for/{}", payment.slug);
    assert_eq!(signed_offer(&visit(&shop.api, &path, None)).1, None);
    let signed = ledger.ledger.signed(&agent, &[(&shop.account.name, PRICE, &payment.memo)]);
    let response = visit(&shop.api, &path, Some(&v1(&json_of(&signed), &nonce())));
    assert_eq!((response.status, signed_receipt(&response.receipt())), (200, None), "{}", response.text());
    assert_eq!(key_ids(&shop.api), Vec::<Value>::new());
}

fn a_key_survives_a_kill_before_its_first_use() {
    let folder = folder("receipt-key");
    let ledger = LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
    let data = folder.join("data");
    let mut serve = Serve::start(&data, &ledger.ledger);
    let created = key_ids(&serve.api);
    assert_eq!(created.len(), 1);
    serve.process.kill();
    let serve = Serve::start(&data, &ledger.ledger);
    let shop = Shop::open(&serve.api, &ledger.ledger);
    assert_eq!((key_ids(&serve.api), signing_key(&shop)), (created.clone(), created[0].clone()));
}

fn a_key_is_encrypted_with_each_new_master_key() {
    let folder = folder("receipt-key-sealed");
    let ledger = LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
    let data = folder.join("data");
    let mut serve = Serve::start(&data, &ledger.ledger);
    let shop = Shop::open(&serve.api, &ledger.ledger);
    let created = key_ids(&serve.api);
    assert_eq!((created.len(), signing_key(&shop)), (1, created[0].clone()));
    assert!(serve.process.stop().success());
    let data_flag = format!("--data={}", data.display());
    let rotated = Process::start(&["rotate-master-key", "--network=dev", &data_flag]).finish();
    assert!(rotated.success, "{rotated:?}");
    let mut serve = Serve::start(&data, &ledger.ledger);
    let shop = Shop { api: serve.api.clone(), ..shop };
    assert_eq!((key_ids(&serve.api), signing_key(&shop)), (created.clone(), created[0].clone()));
    assert!(serve.process.stop().success());
    let verified = Process::start(&["verify", &data_flag]).finish();
    assert!(verified.success, "{verified:?}");
}

fn a_rotated_key_remains_in_the_key_set() {
    let folder = folder("receipt-key-rotation");
    let ledger = LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
    let split = Split::start(&folder.join("data"), &ledger.ledger);
    let shop = Shop::open(&split.api, &ledger.ledger);
    let first = signing_key(&shop);
    assert_eq!(key_ids(&split.api), std::slice::from_ref(&first));
    let flags = [format!("--data={}", split.data.display()), format!("--node={}", ledger.ledger.rpc.base)];
    let command = ["admin", "rotate-receipt-key", "--json", "--set=network=dev", &flags[0], &flags[1]];
    let rotated = Process::start(&command).finish();
    assert!(rotated.success, "{rotated:?}");
    let line: Value = serde_json::from_str(rotated.stdout.trim()).expect("a line of JSON");
    let second = line["keyId"].clone();
    assert_ne!(second, first);
    assert_eq!(key_ids(&split.api), [second.clone(), first]);
    until("offers with the new key", || (signing_key(&shop) == second).then_some(()));
}
