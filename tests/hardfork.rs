//! Operations and extensions of a future hard fork: payments next to them complete, and the operator is notified.

use serde_json::json;

use crate::{
    harness::{Dev, until},
    operations::{alarms::Watch, metrics::LISTEN},
};

crate::tests!(
    a_payment_next_to_unknown_operations_completes,
    unknown_virtual_operations_are_counted_and_do_not_hide_transfers,
    many_unknown_kinds_are_limited_to_few_series_and_lines,
);

fn dev() -> Dev {
    Dev::with(&[LISTEN, "--set=log.level=info"])
}

/// Returns the log lines about unknown operations.
fn reported(dev: &Dev) -> Vec<String> {
    let log = dev.process.log();
    let kinds = log.lines().filter_map(|line| line.split_once("operation of the unknown kind ")?.1.split(':').next());
    kinds.map(str::to_owned).collect()
}

/// Returns the metric of unknown operations: kind and count.
fn counted(watch: &Watch) -> Vec<(String, u64)> {
    let page = watch.text();
    let series = page.lines().filter_map(|line| line.strip_prefix("hivetill_unknown_operations_total{kind=\""));
    let read = series.map(|rest| rest.split_once("\"} ").expect("a value"));
    read.map(|(kind, count)| (kind.to_owned(), count.parse().expect("a number"))).collect()
}

fn a_payment_next_to_unknown_operations_completes() {
    let mut dev = dev();
    let watch = Watch::of(&mut dev.process);
    let (shop, alice) = (dev.shop(), dev.demo_account("alice"));
    watch.is_quiet(&["HivetillUnknownOperations"]);
    let nested = json!({ "to": shop.account.name, "amount": [[[{ "x": [1, { "y": null }] }]]], "memo": "pos-" });
    let operations = json!([
        { "type": "pay_later_operation", "value": nested },
        { "type": "transfer_v2_operation", "value": { "from": "alice", "to": shop.account.name, "amount": "1.500 HBD" } },
        ["pay_later", { "numbers": [1, 2.5, -3] }, "a third part"],
        { "value": 7, "type": "pay_later_operation", "extensions": [{ "type": "future_extension", "value": {} }] },
        { "type": "\u{1f}{kind=\"x\"}\n", "value": {} },
    ]);
    let extensions = json!([{ "type": "future_extension", "value": { "x": 1 } }, [9, {}]]);
    for place in ["alone", "before", "after"] {
        let order = json!({ "operations": operations, "place": place, "extensions": extensions });
        dev.ledger.order("foreign_operations", &order);
        let payment = shop.open_payment();
        dev.ledger.transfer(&alice, &shop.account.name, "1.500 HBD", &payment.memo);
        let paid = shop.until_status(&payment.id, "completed");
        assert_eq!(paid["transfers"].as_array().map(Vec::len), Some(1), "{place}: {paid}");
        assert_eq!(paid["exceptions"], json!([]), "{place}: {paid}");
    }
    dev.ledger.order("foreign_operations", &json!({ "operations": [] }));
    watch.until_fires("HivetillUnknownOperations");
    let mut kinds = reported(&dev);
    kinds.sort();
    assert_eq!(kinds, ["malformed", "pay_later", "transfer_v2"], "one line for each kind");
    let counts = counted(&watch);
    let of = |kind: &str| counts.iter().find(|(name, _)| name == kind).map_or(0, |(_, count)| *count);
    assert!(of("pay_later") >= 9 && of("pay_later") == 3 * of("transfer_v2"), "{counts:?}");
    assert_eq!(of("malformed"), of("transfer_v2"), "{counts:?}");
    let unmatched = shop.get("/api/public/unmatched").send();
    assert!(unmatched.status == 403 || unmatched.json()["data"] == json!([]), "{}", unmatched.text());
}

fn unknown_virtual_operations_are_counted_and_do_not_hide_transfers() {
    let mut dev = dev();
    let watch = Watch::of(&mut dev.process);
    let (shop, alice) = (dev.shop(), dev.demo_account("alice"));
    let vested =
        json!({ "type": "interest_on_savings_operation", "value": { "owner": "alice", "paid": [1, { "x": null }] } });
    let order = json!({ "operations": [], "virtualOperations": [vested.clone(), vested] });
    dev.ledger.order("foreign_operations", &order);
    let payment = shop.open_payment();
    dev.ledger.transfer(&alice, &shop.account.name, "1.500 HBD", &payment.memo);
    shop.until_status(&payment.id, "completed");
    watch.until_fires("HivetillUnknownOperations");
    assert_eq!(reported(&dev), ["interest_on_savings"], "one line");
    let counts = counted(&watch);
    let of = |kind: &str| counts.iter().find(|(name, _)| name == kind).map_or(0, |(_, count)| *count);
    assert!(of("interest_on_savings") >= 2, "{counts:?}");
    assert_eq!(of("producer_reward"), 0, "{counts:?}");
}

fn many_unknown_kinds_are_limited_to_few_series_and_lines() {
    let mut dev = dev();
    let watch = Watch::of(&mut dev.process);
    let shop = dev.shop();
    for block in 0..4 {
        let kinds = (0..30).map(|n| json!({ "type": format!("kind_{block}_{n}_operation"), "value": {} }));
        dev.ledger.order("foreign_operations", &json!({ "operations": kinds.collect::<Vec<_>>() }));
        dev.ledger.produce(1);
    }
    dev.ledger.order("foreign_operations", &json!({ "operations": [] }));
    let payment = shop.open_payment();
    dev.ledger.transfer(&dev.demo_account("alice"), &shop.account.name, "1.500 HBD", &payment.memo);
    shop.until_status(&payment.id, "completed");
    let series = until("all to be counted", || {
        let series = counted(&watch);
        (series.iter().map(|(_, count)| count).sum::<u64>() >= 120).then_some(series)
    });
    assert!(series.len() <= 17, "{series:?}");
    assert!(reported(&dev).len() <= 17, "{:?}", reported(&dev));
}
