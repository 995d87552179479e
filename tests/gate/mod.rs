//! The gate: an unmodified HTTP server that is paid by programs, with a credit for each payment without a response.

mod page;
mod upstream;

use std::path::PathBuf;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

use crate::{
    harness::{Api, Dev, Payer, Process, Response, Shop, folder, shared, until},
    wallet::agent::Agent,
    x402::{encode, json_of, nonce, v1},
};
pub(crate) use upstream::Upstream;
use upstream::{Behavior, STREAMED};

crate::tests!(
    a_request_is_paid_served_and_listed_for_the_merchant,
    a_wallet_pays_a_post_through_the_gate_until_its_budget_ends,
    requests_refused_by_the_upstream_are_not_charged,
    a_payment_without_a_response_stays_valid_for_the_same_request,
    a_broken_response_leaves_a_credit_across_kill_9,
    one_payment_pays_for_one_request,
    a_wrong_payment_never_reaches_the_upstream,
    bodies_are_streamed_in_both_directions,
    free_and_unknown_routes_are_distinguished,
    a_gate_with_its_own_engine_settles,
    receipts_are_signed_with_a_key_that_survives_restarts,
    a_gate_with_unsigned_receipts_has_no_key_set,
);

/// Returns every test of this module.
pub(crate) fn all() -> Vec<libtest_mimic::Trial> {
    [tests(), page::tests()].into_iter().flatten().collect()
}

/// A running gate.
pub(crate) struct Gate {
    api: Api,
    process: Process,
    directory: PathBuf,
    routes: PathBuf,
}

impl Gate {
    /// Starts a gate whose engine is that of a development gateway.
    pub(crate) fn start(dev: &Dev, shop: &Shop, upstream: &Upstream, more: &str) -> Self {
        let directory = folder("gate");
        let routes = directory.join("gate.toml");
        let text = format!(
            "upstream = \"{}\"\npay_to = \"{}\"\n{more}\n\
             [[route]]\nmethod = \"GET\"\npath = \"/report\"\nprice = \"0.050 HBD\"\ndescription = \"A report\"\n\
             [[route]]\nmethod = \"POST\"\npath = \"/work\"\nprice = \"1.500 HBD\"\nsettle = \"before\"\n\
             [[route]]\npath = \"/free\"\n",
            upstream.url(),
            shop.account.name
        );
        std::fs::write(&routes, text).expect("the routes are written");
        let process = Self::process(dev, shop, &directory, &routes);
        Self::ready(process, directory, routes)
    }

    fn process(dev: &Dev, shop: &Shop, directory: &std::path::Path, routes: &std::path::Path) -> Process {
        let text = |member: &str| dev.startup[member].as_str().expect("a text").to_owned();
        let settings = [format!("HIVETILL_GRPC_TOKEN={}", text("grpcToken")), format!("HIVETILL_API_KEY={}", shop.key)];
        let (data, routes, engine) = (directory.display().to_string(), routes.display().to_string(), text("grpc"));
        let binary = env!("CARGO_BIN_EXE_hivetill");
        let mut arguments = vec!["-i", &settings[0], &settings[1], binary, "gate", "--json", "--listen", "127.0.0.1:0"];
        arguments.extend(["--data", &data, "--routes", &routes, "--engine-url", &engine]);
        Process::program("env", directory, &arguments)
    }

    fn ready(mut process: Process, directory: PathBuf, routes: PathBuf) -> Self {
        let api = Api::new(process.ready()["gate"].as_str().expect("its URL"));
        Self { api, process, directory, routes }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.api.base)
    }

    /// Returns the credits of the gate.
    fn owed(&self) -> Vec<Value> {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hivetill"));
        command.env_clear().args(["gate", "--owed", "--data", &self.directory.display().to_string()]);
        command.args(["--routes", &self.routes.display().to_string()]);
        let output = command.output().expect("the binary starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let json: Value = serde_json::from_str(text.trim())
            .unwrap_or_else(|error| panic!("{error}: {text} {}", String::from_utf8_lossy(&output.stderr)));
        json["owed"].as_array().expect("a list").clone()
    }
}

/// Signs a payment of version 1.
fn signed(dev: &Dev, payer: &Payer, to: &str, amount: &str) -> String {
    let nonce = nonce();
    let transaction = dev.ledger.signed(payer, &[(to, amount, &format!("x402:{nonce}"))]);
    encode(&v1(&json_of(&transaction), &nonce))
}

fn receipt(response: &Response) -> Value {
    let header = response.header("payment-response").expect("a receipt");
    serde_json::from_slice(&BASE64_STANDARD.decode(header).expect("base64")).expect("JSON")
}

/// Waits until the merchant's list has this number of sales.
#[track_caller]
fn sold(shop: &Shop, count: usize) {
    until("the sales", || (sales(shop).len() >= count).then_some(()));
    assert_eq!(sales(shop).len(), count);
}

fn sales(shop: &Shop) -> Vec<Value> {
    shop.get("/api/public/x402/sales").send().ok(200)["data"].as_array().expect("sales").clone()
}

fn a_request_is_paid_served_and_listed_for_the_merchant() {
    let dev = shared();
    let (shop, buyer, upstream) = (dev.shop(), dev.ledger.account("buyer"), Upstream::start());
    let gate = Gate::start(dev, &shop, &upstream, "");
    let asked = gate.api.get("/report").send();
    assert_eq!(asked.status, 402, "{}", asked.text());
    let accepts = asked.json()["accepts"][0].clone();
    assert_eq!((&accepts["maxAmountRequired"], &accepts["payTo"]), (&json!("0.050 HBD"), &json!(shop.account.name)));
    let second = BASE64_STANDARD.decode(asked.header("payment-required").expect("version 2")).expect("base64");
    let second: Value = serde_json::from_slice(&second).expect("JSON");
    assert_eq!(
        (&second["accepts"][0]["amount"], &second["resource"]["url"]),
        (&json!("50"), &json!(gate.url("/report")))
    );
    assert!(upstream.requests().is_empty(), "an unpaid request is not forwarded");

    let payment = signed(dev, &buyer, &shop.account.name, "0.050 HBD");
    let served = gate.api.get("/report?year=2026").header("x-payment", &payment).header("accept", "*/*").send();
    assert_eq!((served.status, &served.json()["report"]), (200, &json!("Mugs are up 3 %")), "{}", served.text());
    let receipt = receipt(&served);
    assert_eq!((&receipt["success"], &receipt["payer"]), (&json!(true), &json!(buyer.name)));
    assert!(receipt["extensions"]["offer-receipt"]["info"]["receipt"]["signature"].is_string(), "{receipt}");
    let [forwarded] = &upstream.requests()[..] else { panic!("one request") };
    assert!(forwarded.head.starts_with("get /report?year=2026 "), "{}", forwarded.head);
    assert!(
        !forwarded.head.contains("x-payment") && forwarded.head.contains("x-forwarded-for: 127.0.0.1"),
        "{}",
        forwarded.head
    );
    let sold = until("the sale", || sales(&shop).first().cloned());
    assert_eq!((&sold["amount"]["value"], &sold["resource"]), (&json!("50"), &json!(gate.url("/report"))), "{sold}");
    assert_eq!(sold["txId"], receipt["transaction"]);

    let document = gate.api.get("/.well-known/x402").send().ok(200);
    assert_eq!(document["resources"], json!([gate.url("/report"), gate.url("/work")]));
    assert_eq!(document["items"][0]["accepts"][0]["amount"], "50");
    assert!(gate.owed().is_empty());
    assert!(!gate.process.log().contains(&payment), "payments are not logged");
}

fn a_wallet_pays_a_post_through_the_gate_until_its_budget_ends() {
    let dev = shared();
    let (shop, upstream) = (dev.shop(), Upstream::start());
    let gate = Gate::start(dev, &shop, &upstream, "");
    let agent = Agent::new(dev, "[limits]\nday = \"2.000 HBD\"\n");
    let pay = |order: &str| agent.pay(&gate.url("/work"), &["--data", order]);
    let first = pay("{\"order\":1}");
    assert_eq!(
        (first.code, &first.json["response"]["report"]),
        (Some(0), &json!("Mugs are up 3 %")),
        "{} {}",
        first.json,
        first.stderr
    );
    let [forwarded] = &upstream.requests()[..] else { panic!("one request") };
    assert_eq!(forwarded.body, b"{\"order\":1}");
    assert!(forwarded.head.contains(&format!("x-hivetill-payer: {}", agent.payer.name)), "{}", forwarded.head);
    assert_eq!(pay("{\"order\":1}").json["replayed"], true);
    let second = pay("{\"order\":2}");
    assert_eq!((second.code, &second.json["reason"]), (Some(10), &json!("above_day_limit")), "{}", second.json);
    assert_eq!((agent.charged(), upstream.requests().len()), (1_500, 1));
}

fn requests_refused_by_the_upstream_are_not_charged() {
    let dev = shared();
    let (shop, buyer, upstream) = (dev.shop(), dev.ledger.account("buyer"), Upstream::start());
    let gate = Gate::start(dev, &shop, &upstream, "");
    let payment = signed(dev, &buyer, &shop.account.name, "0.050 HBD");
    let get = || gate.api.get("/report").header("x-payment", &payment).send();
    for (behavior, status) in [(Behavior::Fails(404), 404), (Behavior::Fails(500), 500), (Behavior::HangsUp, 502)] {
        upstream.set(behavior);
        let failed = get();
        assert_eq!((failed.status, failed.header("payment-response")), (status, None), "{}", failed.text());
    }
    assert!(sales(&shop).is_empty() && gate.owed().is_empty());
    upstream.set(Behavior::Works);
    assert_eq!(get().status, 200, "the same payment is still good");
    assert_eq!(until("the sale", || Some(sales(&shop)).filter(|sales| !sales.is_empty())).len(), 1);
}

fn a_payment_without_a_response_stays_valid_for_the_same_request() {
    let dev = shared();
    let (shop, buyer, upstream) = (dev.shop(), dev.ledger.account("buyer"), Upstream::start());
    let gate = Gate::start(dev, &shop, &upstream, "");
    let payment = signed(dev, &buyer, &shop.account.name, "1.500 HBD");
    let post = |path: &str| gate.api.post(path, &json!({ "order": 1 })).header("x-payment", &payment).send();
    for behavior in [Behavior::Fails(503), Behavior::HangsUp] {
        upstream.set(behavior);
        let failed = post("/work");
        assert!(failed.status >= 500, "{}", failed.text());
        assert_eq!(receipt(&failed)["success"], true, "the money has moved");
        let owed = gate.owed();
        assert_eq!(
            (owed.len(), &owed[0]["state"], &owed[0]["amount"]),
            (1, &json!("owed"), &json!("1.500 HBD")),
            "{owed:?}"
        );
        assert_eq!((&owed[0]["payer"], &owed[0]["request"]), (&json!(buyer.name), &json!("POST /work")));
    }
    assert_eq!(post("/work?other=1").status, 409, "the credit is for the same request");
    upstream.set(Behavior::Works);
    let served = post("/work");
    assert_eq!((served.status, &receipt(&served)["success"]), (200, &json!(true)), "{}", served.text());
    assert!(gate.owed().is_empty());
    assert_eq!(post("/work").status, 409, "it is served once");
    sold(&shop, 1);
}

fn a_broken_response_leaves_a_credit_across_kill_9() {
    let dev = shared();
    let (shop, buyer, upstream) = (dev.shop(), dev.ledger.account("buyer"), Upstream::start());
    let mut gate = Gate::start(dev, &shop, &upstream, "");
    let payment = signed(dev, &buyer, &shop.account.name, "0.050 HBD");
    upstream.set(Behavior::Breaks);
    let broken = gate.api.get("/report").header("x-payment", &payment).try_send();
    assert!(broken.is_err(), "the client sees that the response is not whole");
    let owed = until("the credit", || gate.owed().first().cloned());
    assert_eq!(owed["state"], "owed", "{owed}");
    gate.process.kill();
    assert_eq!(gate.owed().len(), 1, "the record is read without the gate");
    let process = Gate::process(dev, &shop, &gate.directory, &gate.routes);
    let gate = Gate::ready(process, gate.directory.clone(), gate.routes.clone());
    upstream.set(Behavior::Works);
    assert_eq!(gate.api.get("/report").header("x-payment", &payment).send().status, 200);
    assert!(gate.owed().is_empty());
    sold(&shop, 1);
}

fn one_payment_pays_for_one_request() {
    let dev = shared();
    let (shop, buyer, upstream) = (dev.shop(), dev.ledger.account("buyer"), Upstream::start());
    let gate = Gate::start(dev, &shop, &upstream, "");
    let payment = signed(dev, &buyer, &shop.account.name, "0.050 HBD");
    let runs: Vec<_> = (0..8)
        .map(|_| {
            let (api, payment) = (gate.api.clone(), payment.clone());
            crate::harness::background(move || api.get("/report").header("x-payment", &payment).send().status)
        })
        .collect();
    let mut statuses: Vec<u16> = runs.into_iter().map(|run| run.join().expect("it ends")).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409, 409, 409, 409, 409, 409]);
    assert_eq!(gate.api.get("/report").header("x-payment", &payment).send().status, 409);
    sold(&shop, 1);
    assert_eq!(upstream.requests().len(), 1);
}

fn a_wrong_payment_never_reaches_the_upstream() {
    let dev = shared();
    let (shop, buyer, upstream) = (dev.shop(), dev.ledger.account("buyer"), Upstream::start());
    let gate = Gate::start(dev, &shop, &upstream, "");
    let other = dev.ledger.account("other");
    let pay = |payment: &str| gate.api.get("/report").header("x-payment", payment).send();
    let cases = [
        (signed(dev, &buyer, &shop.account.name, "0.049 HBD"), "invalid_exact_hive_payload_amount"),
        (signed(dev, &buyer, &shop.account.name, "0.050 HIVE"), "invalid_exact_hive_payload_asset_mismatch"),
        (signed(dev, &buyer, &other.name, "0.050 HBD"), "invalid_exact_hive_payload_recipient_mismatch"),
    ];
    for (payment, reason) in cases {
        let refused = pay(&payment);
        assert_eq!((refused.status, &refused.json()["errorReason"]), (402, &json!(reason)), "{}", refused.text());
        assert!(refused.header("payment-required").is_some(), "it requires a payment again");
        assert_eq!(receipt(&refused)["success"], false);
    }
    assert_eq!(pay("nonsense").status, 400);
    assert_eq!(pay(&"A".repeat(20_000)).status, 431);
    let good = signed(dev, &buyer, &shop.account.name, "0.050 HBD");
    let twice = gate.api.get("/report").header("x-payment", &good).header("payment-signature", &good).send();
    assert_eq!(twice.status, 400);
    assert_eq!(gate.api.request("HEAD", "/report").header("x-payment", &good).send().status, 402, "HEAD never pays");
    for path in ["/%72eport", "//report", "/x/../report", "/report;v=1"] {
        let refused = gate.api.get(path).send();
        assert!(matches!(refused.status, 400 | 402), "{path}: {}", refused.text());
    }
    assert_eq!(gate.api.get("/REPORT/").send().status, 402, "another spelling costs the same");
    assert!(upstream.requests().is_empty() && sales(&shop).is_empty());
}

fn bodies_are_streamed_in_both_directions() {
    let dev = shared();
    let (shop, buyer, upstream) = (dev.shop(), dev.ledger.account("buyer"), Upstream::start());
    let gate = Gate::start(dev, &shop, &upstream, "");
    upstream.set(Behavior::Streams);
    let payment = signed(dev, &buyer, &shop.account.name, "1.500 HBD");
    let sent = vec![b'y'; 4 << 20];
    let served = gate.api.request("POST", "/work").header("x-payment", &payment).body(sent.clone()).send();
    assert_eq!((served.status, served.body.len()), (200, STREAMED));
    assert_eq!(upstream.requests()[0].body, sent);
    assert_eq!(receipt(&served)["success"], true);
    assert!(until("it to be served", || Some(gate.owed()).filter(Vec::is_empty)).is_empty());
}

fn free_and_unknown_routes_are_distinguished() {
    let dev = shared();
    let (shop, upstream) = (dev.shop(), Upstream::start());
    let gate = Gate::start(dev, &shop, &upstream, "");
    assert_eq!(gate.api.get("/free").send().status, 200);
    assert_eq!(gate.api.get("/unknown").send().status, 404);
    let open = Gate::start(dev, &shop, &upstream, "unmatched = \"free\"");
    assert_eq!(open.api.get("/unknown").send().status, 200);
    let forged =
        open.api.get("/free").header("x-hivetill-payer", "third.party").header("x-http-method-override", "POST").send();
    assert_eq!(forged.status, 200);
    let last = upstream.requests().pop().expect("a request");
    assert!(!last.head.contains("x-hivetill-payer") && !last.head.contains("override"), "{}", last.head);
}

fn a_gate_with_its_own_engine_settles() {
    let dev = shared();
    let (payee, buyer, upstream) = (dev.ledger.account("payee"), dev.ledger.account("buyer"), Upstream::start());
    let directory = folder("gate");
    let routes = directory.join("gate.toml");
    let text = format!(
        "upstream = \"{}\"\npay_to = \"{}\"\n[[route]]\npath = \"/report\"\nprice = \"0.050 HBD\"\n",
        upstream.url(),
        payee.name
    );
    std::fs::write(&routes, text).expect("the routes are written");
    let (data, file) = (directory.join("data").display().to_string(), routes.display().to_string());
    let arguments = |owed: bool| {
        let mut arguments =
            vec!["gate", "--json", "--listen", "127.0.0.1:0", "--network", "dev", "--data", &data, "--routes", &file];
        arguments.extend([
            "--node",
            &dev.ledger.rpc.base,
            "--set=ledger.block_interval_ms=250",
            "--set=ledger.poll_interval_ms=50",
        ]);
        if owed {
            arguments.push("--owed");
        }
        arguments.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>()
    };
    let mut process = Process::start(&arguments(false));
    let api = Api::new(process.ready()["gate"].as_str().expect("its URL"));
    let payment = signed(dev, &buyer, &payee.name, "0.050 HBD");
    let served = until("the engine to follow the ledger", || {
        let served = api.get("/report").header("x-payment", &payment).send();
        (served.status != 503).then_some(served)
    });
    assert_eq!((served.status, &receipt(&served)["payer"]), (200, &json!(buyer.name)), "{}", served.text());
    assert!(process.stop().success(), "{}", process.log());
    let mut again = Process::start(&arguments(false));
    let api = Api::new(again.ready()["gate"].as_str().expect("its URL"));
    assert_eq!(api.get("/report").header("x-payment", &payment).send().status, 409, "it remembers what was served");
}

fn receipts_are_signed_with_a_key_that_survives_restarts() {
    let dev = shared();
    let (shop, upstream) = (dev.shop(), Upstream::start());
    let mut gate = Gate::start(dev, &shop, &upstream, "");
    let before = gate.api.get("/.well-known/jwks.json").send().ok(200);
    let key = &before["keys"][0];
    assert_eq!((&key["kty"], &key["crv"], &key["alg"]), (&json!("OKP"), &json!("Ed25519"), &json!("EdDSA")));
    assert!(key.get("d").is_none(), "the private key is not published");
    gate.process.kill();
    let process = Gate::process(dev, &shop, &gate.directory, &gate.routes);
    let gate = Gate::ready(process, gate.directory.clone(), gate.routes.clone());
    assert_eq!(gate.api.get("/.well-known/jwks.json").send().ok(200), before);
    assert!(upstream.requests().is_empty(), "the gate itself responds");
}

fn a_gate_with_unsigned_receipts_has_no_key_set() {
    let dev = shared();
    let (shop, buyer, upstream) = (dev.shop(), dev.ledger.account("buyer"), Upstream::start());
    let gate = Gate::start(dev, &shop, &upstream, "receipts = \"unsigned\"");
    assert_eq!(gate.api.get("/.well-known/jwks.json").send().status, 404);
    let payment = signed(dev, &buyer, &shop.account.name, "0.050 HBD");
    let served = gate.api.get("/report").header("x-payment", &payment).send();
    assert_eq!(served.status, 200, "{}", served.text());
    let receipt = receipt(&served);
    assert_eq!((&receipt["success"], receipt.get("extensions")), (&json!(true), None));
}
