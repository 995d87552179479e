//! Floods of transfers from third parties: they do not affect the customer's payment.

use std::{collections::BTreeSet, fs};

use serde_json::{Value, json};

use crate::harness::{Dev, Payer, Shop, background, until};

crate::tests!(
    five_hundred_transfers_of_third_parties_do_not_affect_the_customer,
    a_list_of_transfers_is_limited_to_its_merchant_and_validates_parameters,
);

/// Transfers in one transaction: as many memos of 2 kB as a block can hold.
const AT_ONCE: usize = 25;
/// Maximum size of a payment's record, bytes.
const RECORD_MAX: usize = 100_000;

/// Sends transactions full of transfers whose memos consist of characters that take six bytes of JSON each.
#[track_caller]
fn flood(dev: &Dev, shop: &Shop, payer: &Payer, transactions: usize, amount: &str, memo: &str) {
    let memo = format!("{memo} {}", "\u{1}".repeat(1_950));
    let transfers = vec![(shop.account.name.as_str(), amount, memo.as_str()); AT_ONCE];
    for _ in 0..transactions {
        dev.ledger.try_transfers(payer, &transfers).expect("the node takes the transaction");
        // The next one refers to another head block and therefore has another id.
        dev.ledger.produce(1);
    }
}

/// Reads every page of a payment's transfers.
#[track_caller]
fn pages(shop: &Shop, id: &str) -> Vec<Value> {
    let (mut all, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = shop.get(&format!("/api/public/payments/{id}/transfers?limit=100{cursor}")).send().ok(200);
        all.extend(page["data"].as_array().expect("data").iter().cloned());
        let Some(next) = page["nextCursor"].as_str() else { return all };
        cursor = format!("&cursor={next}");
    }
}

/// Returns the resident memory of a process, bytes.
fn resident_bytes(dev: &Dev) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", dev.process.id())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line of the memory");
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().expect("kilobytes") * 1_024
}

fn five_hundred_transfers_of_third_parties_do_not_affect_the_customer() {
    let dev = Dev::start();
    let (shop, alice) = (dev.shop().prove(), dev.demo_account("alice"));
    let (first, mallory) = (dev.ledger.account("early"), dev.ledger.account("mallory"));
    let payment = shop.open_payment();
    // One transfer in the right currency that will be the oldest, then many, then the customer's, then many again.
    dev.ledger.transfer(&first, &shop.account.name, "0.010 HBD", &payment.memo);
    dev.ledger.produce(1);
    flood(&dev, &shop, &mallory, 8, "0.001 HIVE", &payment.memo);
    flood(&dev, &shop, &mallory, 2, "0.001 HBD", &payment.memo);
    let paid_with = dev.ledger.transfer(&alice, &shop.account.name, "1.500 HBD", &payment.memo);
    dev.ledger.produce(1);
    flood(&dev, &shop, &mallory, 2, "0.001 HBD", &payment.memo);
    flood(&dev, &shop, &mallory, 8, "0.001 HIVE", &payment.memo);

    let done = shop.until_status(&payment.id, "completed");
    assert_eq!(done["internalId"], json!(paid_with));
    let all_final = |all: &[Value]| all.len() == 502 && all.iter().all(|t| t["finality"] == "irreversible");
    let all = until("every transfer to be final", || Some(pages(&shop, &payment.id)).filter(|all| all_final(all)));
    let names: BTreeSet<_> = all.iter().map(|t| (t["txId"].to_string(), t["opIndex"].as_u64())).collect();
    assert_eq!(names.len(), 502, "each is listed once");
    assert!(all.iter().all(|transfer| transfer["memo"].as_str().is_some_and(|memo| memo.chars().count() <= 256)));
    assert_eq!(all.last().map(|oldest| &oldest["from"]), Some(&json!(first.name)), "newest first");

    let response = shop.get(&format!("/api/public/payments/{}", payment.id)).send();
    let (record, bytes) = (response.json(), response.text().len());
    assert!(bytes <= RECORD_MAX, "the record takes {bytes} bytes");
    let listed = record["transfers"].as_array().expect("transfers");
    assert_eq!((listed.len(), &record["transferCount"]), (20, &json!(502)));
    assert!(listed.iter().any(|transfer| transfer["txId"] == json!(paid_with)), "what completed it is listed");
    // 0.010 and 50 times 0.001 counted before it completed; the other 0.050 are surplus.
    assert_eq!((&record["amountPaid"], &record["amountOverpaid"]), (&json!("1560"), &json!("110")));
    assert_eq!(record["exceptions"], json!(["overpaid", "paid_again", "wrong_currency"]));
    // One sequence number for completion, and one for each notification of new exceptions.
    let events =
        shop.get("/api/public/events?after=0&limit=100").send().ok(200)["events"].as_array().map_or(0, Vec::len);
    assert_eq!((&record["sequence"], &record["statusReason"]), (&json!(1 + events), &json!("paid")));
    assert!(events <= 6, "502 transfers make {events} events");

    // The amounts owed are computed from rows, and the largest one is suggested.
    let refund = shop.get(&format!("/api/public/payments/{}/refund", payment.id)).send().ok(200);
    assert_eq!((&refund["to"], &refund["amount"]["formatted"]), (&json!("alice"), &json!("0.060 HBD")));
    let owed: Vec<_> = refund["owed"].as_array().expect("owed").iter().map(|o| &o["amount"]["formatted"]).collect();
    assert_eq!(owed, ["0.060 HBD", "0.400 HIVE", "0.050 HBD"]);
    // The payer of an unlisted transfer still finds the payment, also combined with another word.
    for query in [first.name.clone(), format!("{}%20mug", first.name)] {
        let found = shop.get(&format!("/api/public/payments?query={query}")).send().ok(200);
        assert_eq!(found["data"][0]["id"], json!(payment.id), "{query}");
    }
    // A transfer without a memo can still be assigned to it.
    dev.ledger.transfer(&alice, &shop.account.name, "0.002 HBD", "");
    let unmatched = until("it to be listed", || {
        let list = shop.get("/api/public/unmatched?status=open").send().ok(200);
        list["data"].as_array().expect("data").first().cloned()
    });
    let path = format!("/api/public/unmatched/{}/assign", unmatched["id"].as_str().expect("an id"));
    let assigned = shop.post(&path, &json!({ "paymentId": payment.id })).send().ok(200);
    assert_eq!((&assigned["transferCount"], &assigned["amountOverpaid"]), (&json!(503), &json!("112")));

    let before = resident_bytes(&dev);
    let path = format!("/api/public/payments/{}", payment.id);
    let reader = |_| {
        let (shop, path) = (shop.clone(), path.clone());
        background(move || (0..5).for_each(|_| drop(shop.get(&path).send().ok(200))))
    };
    let readers: Vec<_> = (0..60).map(reader).collect();
    readers.into_iter().for_each(|reader| reader.join().expect("it reads"));
    let grown = resident_bytes(&dev).saturating_sub(before);
    assert!(grown <= 20 << 20, "60 readers took {grown} bytes");
}

fn a_list_of_transfers_is_limited_to_its_merchant_and_validates_parameters() {
    let dev = crate::harness::shared();
    let (shop, other) = (dev.shop().prove(), dev.shop());
    let payment = shop.open_payment();
    let path = format!("/api/public/payments/{}/transfers", payment.id);
    assert_eq!(shop.get(&path).send().ok(200), json!({ "data": [], "nextCursor": null }));
    other.get(&path).send().refused(404, "not_found");
    dev.api.get(&path).send().refused(401, "invalid_api_key");
    shop.get("/api/public/payments/pay_nonsense/transfers").send().refused(404, "not_found");
    for cursor in ["-1", "01", "x", "1.5", "99999999999999999999"] {
        shop.get(&format!("{path}?cursor={cursor}")).send().wrong(&["cursor"]);
    }
    for limit in ["0", "101", "x"] {
        shop.get(&format!("{path}?limit={limit}")).send().wrong(&["limit"]);
    }
    let alice = dev.demo_account("alice");
    for amount in ["0.500 HBD", "0.600 HBD", "0.400 HBD"] {
        dev.ledger.transfer(&alice, &shop.account.name, amount, &payment.memo);
    }
    let record = shop.until_status(&payment.id, "completed");
    let page = shop.get(&format!("{path}?limit=2")).send().ok(200);
    let rest = page["nextCursor"].as_str().expect("there is another");
    let rest = shop.get(&format!("{path}?limit=2&cursor={rest}")).send().ok(200);
    assert_eq!(rest["nextCursor"], Value::Null);
    let both = [&page["data"], &rest["data"]].into_iter().filter_map(Value::as_array).flatten();
    let oldest_first: Vec<_> = both.rev().cloned().collect();
    assert_eq!(record["transfers"], json!(oldest_first), "the record lists what the pages hold");
}
