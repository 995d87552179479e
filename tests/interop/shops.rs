//! The shops of the pages "A shop in fifteen minutes", in Node and in Python, as printed: whatever happens to webhooks,
//! the shop and the gateway, each paid order ships exactly once.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    process::{Command, Stdio},
};

use engine::payment::Exception;
use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::with;
use crate::{
    documentation::blocks,
    harness::{Api, Hook, LedgerProcess, Process, Receiver, Response, Serve, Shop, folder, until},
    x402::{json_of, nonce, v1},
};

/// A program of the documentation.
#[derive(Debug, Clone, Copy)]
struct Program {
    page: &'static str,
    language: &'static str,
    interpreter: &'static str,
    file: &'static str,
    /// Writes the cursor of another gateway into the database.
    seed: &'static str,
}

const PROGRAMS: [(&str, Program); 2] = [
    (
        "the_shop_in_node_ships_each_order_once",
        Program {
            page: "docs/how-to/shop-in-node.md",
            language: "js",
            interpreter: "node",
            file: "shop.mjs",
            seed: r#"echo '{"cursor":"4711"}' > shop.jsonl"#,
        },
    ),
    (
        "the_shop_in_python_ships_each_order_once",
        Program {
            page: "docs/how-to/shop-in-python.md",
            language: "python",
            interpreter: "python3",
            file: "shop.py",
            seed: r#"python3 -c 'import sqlite3; sqlite3.connect("shop.db").executescript("UPDATE place SET cursor = 4711")'"#,
        },
    ),
];

/// Returns every test of this file.
pub(super) fn tests() -> Vec<Trial> {
    let each = PROGRAMS.map(|(title, program)| {
        let title = crate::title(module_path!(), title);
        Trial::ignorable_test(title, move || with(&missing(program.interpreter), move || journey(program)))
    });
    each.into()
}

/// Returns whether an interpreter is missing.
fn missing(interpreter: &str) -> Option<String> {
    let found = Command::new(interpreter).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    (!found.is_ok_and(|status| status.success())).then(|| format!("{interpreter} is not installed"))
}

/// A ledger, a gateway, a merchant, an endpoint that records every webhook, and the program, to which the test forwards
/// webhooks.
struct Street {
    setup: LedgerProcess,
    data: PathBuf,
    serve: Serve,
    merchant: Shop,
    receiver: Receiver,
    program: Program,
    work: PathBuf,
    process: Option<Process>,
    shop: Api,
    /// The number of shipments of each order by program processes that have ended.
    shipped: BTreeMap<String, usize>,
}

impl Street {
    fn new(program: Program) -> Self {
        let work = folder("street");
        let source = blocks(program.page, program.language);
        assert_eq!(source.len(), 1, "{} holds one program", program.page);
        std::fs::write(work.join(program.file), &source[0]).expect("the program is written");
        let setup = LedgerProcess::start(&work.join("chain"), "127.0.0.1:0");
        let data = work.join("data");
        let serve = Serve::start(&data, &setup.ledger);
        let merchant = Shop::open(&serve.api, &setup.ledger).prove();
        let receiver = Receiver::start();
        merchant.set_webhook(&receiver);
        let shop = serve.api.clone();
        let shipped = BTreeMap::new();
        Self { setup, data, serve, merchant, receiver, program, work, process: None, shop, shipped }
    }

    /// Starts the program, which reads events at its start and then at the given interval.
    #[track_caller]
    fn start(&mut self, follow_seconds: &str) {
        let mut process = self.program(follow_seconds, "test");
        let port = process.ready()["listening"].as_u64().expect("its port");
        self.shop = Api::new(&format!("http://127.0.0.1:{port}"));
        self.process = Some(process);
    }

    /// Asserts that a program in live mode exits before it sells anything on a development network.
    #[track_caller]
    fn stops_in_the_wrong_mode(&self) {
        let ended = self.program("0.2", "live").finish();
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(
            ended.stderr.contains("expects live mode, and the gateway follows the network development"),
            "{ended:?}"
        );
        let payments = self.merchant.get("/api/public/payments").send().ok(200);
        assert_eq!(payments["data"], json!([]), "nothing is sold");
    }

    fn program(&self, follow_seconds: &str, mode: &str) -> Process {
        let settings = [
            format!("HIVETILL_API={}", self.serve.api.base),
            format!("HIVETILL_API_KEY={}", self.merchant.key),
            format!("HIVETILL_WEBHOOK_SECRET={}", self.merchant.secret),
            format!("FOLLOW_SECONDS={follow_seconds}"),
            "PORT=0".to_owned(),
            format!("HIVETILL_MODE={mode}"),
        ];
        let more = [self.program.interpreter, self.program.file];
        let arguments: Vec<&str> = settings.iter().map(String::as_str).chain(more).collect();
        Process::program("env", &self.work, &arguments)
    }

    /// Kills the program and counts its shipments.
    #[track_caller]
    fn stop(&mut self) {
        let mut process = self.process.take().expect("it runs");
        process.kill();
        for line in process.finish().stdout.lines() {
            let line: Value = serde_json::from_str(line).expect("a line of JSON");
            if let Some(order) = line["ship"].as_str() {
                *self.shipped.entry(order.to_owned()).or_default() += 1;
            }
        }
    }

    /// Orders a mug; returns the order and its payment, if there is one yet.
    #[track_caller]
    fn order(&self) -> (String, Option<String>) {
        let made = self.shop.post("/orders", &json!({})).send().ok(201);
        let order = made["order"].as_str().expect("an order").to_owned();
        let payment = self.look(&order)["payment"].as_str().map(str::to_owned);
        assert_eq!(payment.is_some(), made["checkoutUrl"].is_string(), "{made}");
        (order, payment)
    }

    /// Orders a mug while the gateway runs; returns the order and its payment.
    #[track_caller]
    fn new_order(&self) -> (String, String) {
        let (order, payment) = self.order();
        (order, payment.expect("the gateway runs"))
    }

    #[track_caller]
    fn look(&self, order: &str) -> Value {
        self.shop.get(&format!("/orders/{order}")).send().ok(200)
    }

    /// Waits until the program has a state of an order.
    #[track_caller]
    fn until(&self, order: &str, what: &str, is: impl Fn(&Value) -> bool) {
        until(&format!("the shop to know that {order} is {what}"), || is(&self.look(order)).then_some(()));
    }

    /// Pays as a customer.
    #[track_caller]
    fn pay(&self, payment: &str, amount: &str) {
        let memo = format!("pos-{payment}");
        let params = json!({ "from": "alice", "to": self.merchant.account.name, "amount": amount, "memo": memo });
        self.setup.ledger.order("transfer", &params);
    }

    /// Waits for the webhook about a payment.
    #[track_caller]
    fn hook(&self, payment: &str) -> Hook {
        until(&format!("the webhook about {payment}"), || {
            self.receiver.hooks().into_iter().find(|hook| hook.json()["data"]["id"] == payment)
        })
    }

    /// Forwards a webhook to the program with the given body.
    #[track_caller]
    fn hand_on(&self, hook: &Hook, body: &[u8]) -> Response {
        let is_wanted = |name: &str| name.starts_with("x-hivetill-") || name == "content-type";
        let headers = hook.headers.iter().filter(|(name, _)| is_wanted(name.as_str()));
        let request = self.shop.request("POST", "/hook").body(body);
        headers
            .fold(request, |request, (name, value)| request.header(name.as_str(), value.to_str().expect("text")))
            .send()
    }

    #[track_caller]
    fn refused_by_the_shop(&self, hook: &Hook) {
        let forged = String::from_utf8_lossy(&hook.body).replace("completed", "completed ");
        assert_eq!(self.hand_on(hook, forged.as_bytes()).status, 401, "a changed body has another signature");
        let unsigned = self.shop.request("POST", "/hook").body(hook.body.clone()).send();
        assert_eq!(unsigned.status, 401, "a third party cannot sign");
    }
}

fn is_shipped(order: &Value) -> bool {
    order["shipped"] == true && order["status"] == "completed"
}

fn journey(program: Program) {
    let mut street = Street::new(program);
    street.stops_in_the_wrong_mode();
    let mut shipped = webhooks_alone(&mut street);
    shipped.extend(outages(&mut street));
    shipped.extend(refusals(&mut street));
    shipped.push(restored(&mut street));
    let mut end = Exceptional::default();
    agents(&street, &mut end);
    customers(&street, &mut end);
    assert_eq!(end.seen, Exception::ALL.into_iter().collect(), "every exception is played");
    shipped.extend(end.sold);
    // At the end everything is repeated: all events, and all webhooks in reverse order.
    for hook in street.receiver.hooks().iter().rev() {
        assert_eq!(street.hand_on(hook, &hook.body).status, 200);
    }
    street.stop();
    let wanted: BTreeMap<String, usize> = shipped.into_iter().map(|order| (order, 1)).collect();
    assert_eq!(street.shipped, wanted, "each paid order once, and no other; not sold: {:?}", end.unsold);
}

/// Webhooks that are forged, repeated, late, out of order and lost, to a shop that reads no events.
fn webhooks_alone(street: &mut Street) -> Vec<String> {
    let seeded = Command::new("sh").args(["-c", street.program.seed]).current_dir(&street.work).status();
    assert!(seeded.is_ok_and(|status| status.success()), "the database is written");
    street.start("3600");
    let orders: Vec<(String, String)> = (0..3).map(|_| street.new_order()).collect();
    for (_, payment) in &orders {
        street.pay(payment, "1.500 HBD");
    }
    let hooks: Vec<Hook> = orders.iter().map(|(_, payment)| street.hook(payment)).collect();
    assert!(orders.iter().all(|(order, _)| !is_shipped(&street.look(order))), "the shop was not notified");
    street.refused_by_the_shop(&hooks[0]);
    // The last one is lost; the others arrive in reverse order, twice each.
    for hook in hooks[..2].iter().rev().chain(&hooks[..2]) {
        assert_eq!(street.hand_on(hook, &hook.body).status, 200);
    }
    let known: Vec<bool> = orders.iter().map(|(order, _)| is_shipped(&street.look(order))).collect();
    assert_eq!(known, [true, true, false]);
    // The shop was down, and reads from the events what the webhooks did not deliver.
    street.stop();
    street.start("3600");
    street.until(&orders[2].0, "shipped", is_shipped);
    assert_eq!(street.hand_on(&hooks[2], &hooks[2].body).status, 200, "late");
    orders.into_iter().map(|(order, _)| order).collect()
}

/// The gateway is killed during a payment; orders are created and payments are paid while it is down.
fn outages(street: &mut Street) -> Vec<String> {
    let (before, payment) = street.order();
    street.pay(&payment.expect("the gateway runs"), "1.500 HBD");
    street.serve.process.kill();
    let (during, none) = street.order();
    assert_eq!(none, None, "the payment could not be created");
    street.serve = Serve::start(&street.data, &street.setup.ledger);
    street.merchant.api = street.serve.api.clone();
    // The gateway has another port now.
    street.stop();
    street.start("0.2");
    street.until(&before, "shipped", is_shipped);
    street.until(&during, "payable", |order| order["payment"].is_string());
    let payment = street.look(&during)["payment"].as_str().expect("a payment").to_owned();
    street.pay(&payment, "1.500 HBD");
    street.until(&during, "shipped", is_shipped);
    vec![before, during]
}

/// The gateway is restored from a backup: a payment that was cancelled afterwards is pending again, and is paid. Its
/// events reuse sequence numbers that the shop has seen.
fn restored(street: &mut Street) -> String {
    let (order, payment) = street.new_order();
    let (backup, again) = (street.work.join("backup"), street.work.join("again"));
    let run = |words: [&str; 3], paths: [&std::path::Path; 2]| {
        let [command, one, other] = words;
        let flags = [format!("--{one}={}", paths[0].display()), format!("--{other}={}", paths[1].display())];
        let ended = Process::start(&[command, &flags[0], &flags[1]]).finish();
        assert!(ended.success, "{ended:?}");
    };
    run(["backup", "data", "to"], [&street.data, &backup]);
    street.merchant.cancelled(&payment);
    street.until(&order, "cancelled", |order| order["status"] == "user_cancelled");
    street.serve.process.kill();
    run(["restore", "data", "from"], [&again, &backup]);
    std::fs::copy(street.data.join("master-key"), again.join("master-key")).expect("the key is kept beside the backup");
    street.data = again;
    street.serve = Serve::start(&street.data, &street.setup.ledger);
    street.merchant.api = street.serve.api.clone();
    street.stop();
    street.start("0.2");
    street.pay(&payment, "1.500 HBD");
    street.until(&order, "shipped", is_shipped);
    order
}

/// The secret is rotated while the shop has the old one; the merchant is inactive while an order is created and another
/// is paid; a third party sends a signature that is not text.
fn refusals(street: &mut Street) -> Vec<String> {
    let path = format!("/api/public/merchants/{}/webhook-secret", street.merchant.id);
    street.merchant.post(&path, &json!({ "graceHours": 24 })).send().ok(200);
    let (rotated, payment) = street.new_order();
    street.pay(&payment, "1.500 HBD");
    let hook = street.hook(&payment);
    assert_eq!(street.hand_on(&hook, &hook.body).status, 200, "the old secret signs during its grace");
    street.until(&rotated, "shipped", is_shipped);
    let odd = street
        .shop
        .request("POST", "/hook")
        .header("x-hivetill-timestamp", "1")
        .header("x-hivetill-signature", "\u{e9}");
    assert_eq!(odd.body(hook.body.clone()).send().status, 401);

    let (node, data) = (street.setup.ledger.rpc.base.as_str(), street.data.to_str().expect("a path"));
    let admin = ["admin", "--json", "--account", "hivetill.fees", "--network", "dev", "--data", data, "--node", node];
    let admin: Value = serde_json::from_str(&Process::start(&admin).finish().stdout).expect("a line of JSON");
    let set_active = |is_active: bool| {
        let path = format!("/api/admin/merchants/{}/active", street.merchant.id);
        let request = street.serve.api.post(&path, &json!({ "isActive": is_active }));
        request.bearer(admin["apiKey"].as_str().expect("a key")).send().ok(200);
    };
    let (paid, payment) = street.new_order();
    set_active(false);
    let (refused, none) = street.order();
    assert_eq!(none, None, "an inactive merchant opens no payment");
    street.pay(&payment, "1.500 HBD");
    street.until(&paid, "shipped", is_shipped);
    set_active(true);
    street.until(&refused, "payable", |order| order["payment"].is_string());
    let payment = street.look(&refused)["payment"].as_str().expect("a payment").to_owned();
    street.pay(&payment, "1.500 HBD");
    street.until(&refused, "shipped", is_shipped);
    vec![rotated, paid, refused]
}

/// Orders with an exceptional outcome: those that ship, those that do not, and the exceptions that the shop saw.
#[derive(Debug, Default)]
struct Exceptional {
    sold: Vec<String>,
    unsold: Vec<String>,
    seen: BTreeSet<Exception>,
}

impl Exceptional {
    /// Waits until the program has the outcome of an order and its exception.
    #[track_caller]
    fn ends(&mut self, street: &Street, order: &str, exception: Exception, status: &str) {
        let is_sold = status == "completed";
        let what = format!("{status} with {}", exception.as_str());
        street.until(order, &what, |order| {
            let all = order["exceptions"].as_array();
            order["status"] == status
                && (order["shipped"] == true) == is_sold
                && all.is_some_and(|all| all.contains(&exception.as_str().into()))
        });
        if is_sold { &mut self.sold } else { &mut self.unsold }.push(order.to_owned());
        self.seen.insert(exception);
    }
}

/// Payments of agents: one fails and its transfer is found later, one completes and is permanently orphaned.
fn agents(street: &Street, end: &mut Exceptional) {
    let (ledger, agent) = (&street.setup.ledger, street.setup.ledger.account("agent"));
    let (failing, reversed) = (street.new_order(), street.new_order());
    let settle = |payment: &str| {
        let memo = format!("pos-{payment}");
        let signed = ledger.signed(&agent, &[(&street.merchant.account.name, "1.500 HBD", &memo)]);
        let body = json!({ "sessionId": payment, "paymentPayload": v1(&json_of(&signed), &nonce()) });
        let api = street.serve.api.clone();
        move || api.post("/api/public/x402/settle", &body).send().ok(200)
    };
    ledger.hold_irreversibility(true);
    assert_eq!(settle(&reversed.1)()["success"], true);
    street.until(&reversed.0, "shipped", is_shipped);
    ledger.order("hold_transactions", &json!({ "held": true }));
    assert_eq!(settle(&failing.1)()["errorReason"], "settlement_pending");
    street.until(&failing.0, "processing", |order| order["status"] == "processing");
    // No block contains either transaction before it expires.
    ledger.auto_produce(false);
    let status = ledger.order("status", &json!({}));
    let depth = status["head"]["number"].as_u64().expect("a head") - status["irreversible"].as_u64().expect("a number");
    ledger.order("fork", &json!({ "depth": depth, "transactions": "drop" }));
    ledger.advance(600);
    ledger.order("forget_mempool", &json!({}));
    ledger.order("hold_transactions", &json!({ "held": false }));
    ledger.hold_irreversibility(false);
    ledger.auto_produce(true);
    end.ends(street, &reversed.0, Exception::SettlementReversed, "completed");
    street.merchant.until_status(&failing.1, "failed");
    street.pay(&failing.1, "1.500 HBD");
    end.ends(street, &failing.0, Exception::PaidAfterFailure, "failed");
}

/// Every exceptional payment of a customer.
fn customers(street: &Street, end: &mut Exceptional) {
    let new = || street.new_order();
    let shows = |payment: &str, exception: Exception| {
        let word = Value::from(exception.as_str());
        let found = |record: &Value| record["exceptions"].as_array().is_some_and(|all| all.contains(&word));
        street.merchant.until(payment, exception.as_str(), found);
    };
    let (over, again, parts, wrong) = (new(), new(), new(), new());
    street.pay(&over.1, "2.000 HBD");
    street.pay(&again.1, "1.500 HBD");
    street.merchant.until_status(&again.1, "completed");
    street.pay(&again.1, "1.500 HBD");
    street.pay(&parts.1, "1.000 HBD");
    shows(&parts.1, Exception::Underpaid);
    street.pay(&parts.1, "0.500 HBD");
    street.until(&parts.0, "shipped", is_shipped);
    end.sold.push(parts.0);
    street.pay(&wrong.1, "1.500 HIVE");
    shows(&wrong.1, Exception::WrongCurrency);
    end.ends(street, &over.0, Exception::Overpaid, "completed");
    end.ends(street, &again.0, Exception::PaidAgain, "completed");
    // A transfer without a memo, assigned by the merchant.
    let by_hand = new();
    let params = json!({ "from": "bob", "to": street.merchant.account.name, "amount": "1.500 HBD", "memo": "mug" });
    street.setup.ledger.order("transfer", &params);
    let unmatched = until("the unmatched transfer", || {
        let list = street.merchant.get("/api/public/unmatched").send().ok(200);
        list["data"].as_array()?.iter().find(|each| each["memo"] == "mug")?["id"].as_str().map(str::to_owned)
    });
    let assign = format!("/api/public/unmatched/{unmatched}/assign");
    street.merchant.post(&assign, &json!({ "paymentId": by_hand.1 })).send().ok(200);
    end.ends(street, &by_hand.0, Exception::Manual, "completed");
    // Cancelled, underpaid, paid by the merchant itself, and paid too late.
    let (cancelled, under, own, late) = (new(), new(), new(), new());
    street.merchant.cancelled(&cancelled.1);
    street.pay(&cancelled.1, "1.500 HBD");
    end.ends(street, &cancelled.0, Exception::PaidAfterCancel, "user_cancelled");
    street.pay(&under.1, "1.000 HBD");
    shows(&under.1, Exception::Underpaid);
    let account = &street.merchant.account;
    street.setup.ledger.transfer(account, &account.name, "1.500 HBD", &format!("pos-{}", own.1));
    shows(&own.1, Exception::SelfTransfer);
    street.setup.ledger.advance(1_900);
    street.merchant.until_status(&late.1, "system_cancelled");
    street.pay(&late.1, "1.500 HBD");
    for (order, exception) in [
        (under.0, Exception::Underpaid),
        (own.0, Exception::SelfTransfer),
        (wrong.0, Exception::WrongCurrency),
        (late.0, Exception::PaidLate),
    ] {
        end.ends(street, &order, exception, "system_cancelled");
    }
}
