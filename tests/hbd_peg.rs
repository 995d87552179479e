//! HBD off its peg of one US dollar: payments are valued at the market price, or rejected, and the operator is alerted.

use serde_json::{Value, json};

use crate::{
    harness::{Dev, Shop, order, until},
    operations::{alarms::Watch, metrics::LISTEN},
};

crate::tests!(
    hbd_off_its_peg_is_valued_at_the_market_price_and_raises_an_alarm,
    hbd_off_its_peg_is_rejected_if_configured,
    the_bounds_of_the_peg_are_configurable,
);

fn dev(more: &[&str]) -> Dev {
    let mut args = vec![LISTEN, "--set=log.level=info", "--set=ledger.rate_interval_seconds=1"];
    args.extend(more);
    Dev::with(&args)
}

/// Sets the price of 10.000 HIVE in the internal market. The witnesses' price is 2.580 dollars.
fn market_pays(dev: &Dev, hbd: &str) {
    dev.ledger.order("set_market", &json!({ "base": hbd, "quote": "10.000 HIVE" }));
}

/// Opens a payment of 1.500 of a currency, and returns its record.
fn opened(shop: &Shop, currency: &str) -> Value {
    let mut wanted = order();
    wanted["currency"] = json!(currency);
    shop.payment(&shop.open_with(&wanted).id)
}

fn until_worth(shop: &Shop, currency: &str, cents: u64) -> Value {
    until(&format!("1.500 {currency} to be worth {cents} cents"), || {
        let record = opened(shop, currency);
        (record["usdEquivalentCents"] == cents).then_some(record)
    })
}

fn hbd_off_its_peg_is_valued_at_the_market_price_and_raises_an_alarm() {
    let mut dev = dev(&[]);
    let watch = Watch::of(&mut dev.process);
    let shop = dev.shop();
    until_worth(&shop, "HIVE", 38);
    let at_peg = until_worth(&shop, "HBD", 150);
    assert_eq!(at_peg["rateAt"], Value::Null);
    // Within the bounds: 0.96 and 1.04 dollars.
    for within in ["2.687 HBD", "2.481 HBD"] {
        market_pays(&dev, within);
        assert_eq!(opened(&shop, "HBD")["usdEquivalentCents"], 150);
    }
    watch.is_quiet(&["HivetillHbdOffPeg"]);
    market_pays(&dev, "3.225 HBD");
    let below = until_worth(&shop, "HBD", 120);
    assert!(below["rateAt"].is_string(), "{below}");
    dev.process.log_after("1 HBD costs 0.8 USD, more than 5 % off its peg");
    watch.until_fires("HivetillHbdOffPeg");
    assert!(watch.text().contains("hivetill_hbd_usd 0.8\n"), "{}", watch.text());
    // The witnesses' price of HIVE is in dollars and does not change.
    assert_eq!(opened(&shop, "HIVE")["usdEquivalentCents"], 38);
    // The payer owes the requested amount.
    let payment = shop.open_payment();
    dev.ledger.transfer(&dev.demo_account("alice"), &shop.account.name, "1.500 HBD", &payment.memo);
    let paid = shop.until_status(&payment.id, "completed");
    assert_eq!((&paid["usdEquivalentCents"], &paid["exceptions"]), (&json!(120), &json!([])), "{paid}");
    market_pays(&dev, "1.290 HBD");
    until_worth(&shop, "HBD", 300);
    dev.ledger.order("set_market", &json!({}));
    until_worth(&shop, "HBD", 150);
    dev.process.log_after("it is at its peg again");
    until("the alarm to end", || (!watch.fires("HivetillHbdOffPeg")).then_some(()));
    assert_eq!(
        shop.payment(&payment.id)["usdEquivalentCents"],
        120,
        "what a payment is worth is fixed at its creation"
    );
}

fn hbd_off_its_peg_is_rejected_if_configured() {
    let dev = dev(&["--set=ledger.hbd_off_peg=refuse"]);
    let shop = dev.shop();
    until_worth(&shop, "HIVE", 38);
    let create = || shop.post("/api/public/payments", &order()).header("idempotency-key", "order-1").send();
    let id = create().ok(201)["id"].as_str().expect("an id").to_owned();
    market_pays(&dev, "3.225 HBD");
    let refused = until("HBD to be refused", || {
        let response = shop.post("/api/public/payments", &order()).send();
        (response.status != 201).then_some(response)
    });
    assert_eq!(refused.header("retry-after"), Some("60"));
    refused.refused(503, "hbd_off_peg");
    opened(&shop, "HIVE");
    // A payment opened before can be repeated and paid.
    assert_eq!(create().json()["id"], id);
    dev.ledger.transfer(&dev.demo_account("alice"), &shop.account.name, "1.500 HBD", &format!("pos-{id}"));
    shop.until_status(&id, "completed");
    dev.ledger.order("set_market", &json!({}));
    until("HBD to be taken again", || (shop.post("/api/public/payments", &order()).send().status == 201).then_some(()));
}

fn the_bounds_of_the_peg_are_configurable() {
    let dev = dev(&["--set=ledger.hbd_peg_percent=1"]);
    let shop = dev.shop();
    market_pays(&dev, "2.687 HBD");
    until_worth(&shop, "HBD", 144);
}
