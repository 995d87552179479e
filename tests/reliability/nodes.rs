//! Ledger nodes with every fault of public nodes: no payer is blamed, no payment is lost, no restart is needed.

use std::{collections::BTreeMap, time::Duration};

use engine::hive::Pack;
use serde_json::{Value, json};
use simulations::random::Random;

use super::{
    client::{PAYMENTS, is_nobodys_fault},
    final_check::read_chain,
    print_progress, switch,
};
use crate::{
    harness::{
        Api, Fault, Ledger, LedgerProcess, Opened, Payer, Process, Proxy, Receiver, Serve, Shop, Stopwatch, background,
        folder, order, pause, until, until_ready,
    },
    x402::{encode, json_of, nonce, v1},
};

crate::tests!(node_faults_never_blame_the_payer_or_lose_a_payment);

const PRICE: &str = "1.500 HBD";

/// A gateway of three nodes, each behind its own proxy; two of them must agree.
struct Net {
    random: Random,
    ledger: LedgerProcess,
    proxies: Vec<Proxy>,
    serve: Process,
    shop: Shop,
    payer: Payer,
    receiver: Receiver,
    /// Paid payments, which must complete.
    paid: Vec<Opened>,
    /// Open payments by HTTP 402: the header, the transaction, and whether the receipt was sent.
    shown: Vec<Shown>,
    /// The number of responses by reason.
    words: BTreeMap<String, u64>,
}

struct Shown {
    payment: Opened,
    header: String,
    tx_id: String,
    is_settled: bool,
}

fn node_faults_never_blame_the_payer_or_lose_a_payment() {
    let (seeds, first) = (switch("HIVETILL_NODE_SEEDS", 1), switch("HIVETILL_SEED", 1));
    for seed in first..first + seeds {
        let watch = Stopwatch::start();
        print_progress(&format!("reliability: faults of nodes, HIVETILL_SEED={seed}"));
        let mut net = Net::start(seed);
        for _ in 0..switch("HIVETILL_NODE_ROUNDS", 3) {
            net.round();
        }
        net.without_any_node();
        net.everything_completes();
        let committed: BTreeMap<Fault, u64> =
            net.proxies.iter().flat_map(Proxy::committed).fold(BTreeMap::new(), |mut sum, (fault, count)| {
                *sum.entry(fault).or_default() += count;
                sum
            });
        print_progress(&format!(
            "reliability: seed {seed}: {} payments completed, {} of them by HTTP 402 ({:?}); faults {committed:?}; {:?}",
            net.paid.len() + net.shown.len(),
            net.shown.len(),
            net.words,
            watch.elapsed()
        ));
    }
}

impl Net {
    fn start(seed: u64) -> Self {
        let folder = folder("nodes");
        let ledger = LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
        let proxies: Vec<Proxy> = (0..3).map(|_| Proxy::before(&ledger.ledger.rpc)).collect();
        let mut args = Serve::args(&folder.join("data"), &Ledger::new(&proxies[0].url(), ""), &[]);
        args.extend(proxies[1..].iter().map(|proxy| format!("--node={}", proxy.url())));
        args.push("--set=ledger.request_timeout_ms=400".to_owned());
        let mut serve = Process::start(&args);
        let api = Api::new(&format!("http://{}", serve.log_after("listening on ")));
        until_ready(&api);
        let (shop, receiver) = (Shop::open(&api, &ledger.ledger), Receiver::start());
        shop.set_webhook(&receiver);
        Self {
            random: Random::new(seed),
            payer: ledger.ledger.account("payer"),
            ledger,
            proxies,
            serve,
            shop,
            receiver,
            paid: Vec::new(),
            shown: Vec::new(),
            words: BTreeMap::new(),
        }
    }

    /// A period of faults of one or two nodes, during which payments are created and paid.
    fn round(&mut self) {
        let ill = self.random.index(3);
        let also = self.random.below(2) == 0;
        for (at, proxy) in self.proxies.iter().enumerate() {
            let is_ill = at == ill || (also && at == (ill + 1) % 3);
            if is_ill {
                let faults: Vec<Fault> = (0..3).map(|_| *self.random.pick(&Fault::ALL)).collect();
                // If two of three are faulty, they must respond now and then.
                let percent = if also { 50 } else { self.random.between(40, 100) };
                proxy.inject_faults(self.random.draw(), percent, &faults);
            } else {
                proxy.clear_faults();
            }
        }
        let is_away = self.random.below(4) == 0;
        if is_away {
            self.proxies[ill].stop_listening();
        }
        for _ in 0..3 {
            self.pay();
            self.begin_x402();
            self.ask_x402();
            pause(Duration::from_millis(self.random.below(300)));
        }
        if is_away {
            self.proxies[ill].listen_again();
        }
    }

    /// Creates a payment and pays it with a transfer; the payer's own node is healthy.
    fn pay(&mut self) {
        let payment = self.shop.open_payment();
        self.ledger.ledger.transfer(&self.payer, &self.shop.account.name, PRICE, &payment.memo);
        self.paid.push(payment);
    }

    /// Creates a payment, and signs its payment by HTTP 402.
    fn begin_x402(&mut self) {
        let payment = self.shop.open_payment();
        let transfer = (self.shop.account.name.as_str(), PRICE, payment.memo.as_str());
        let signed = self.ledger.ledger.signed(&self.payer, &[transfer]);
        let tx_id = signed.id(Pack::Legacy).to_string();
        self.shown.push(Shown { payment, header: encode(&v1(&json_of(&signed), &nonce())), tx_id, is_settled: false });
    }

    /// Submits every unsettled payment by HTTP 402 once. No response may blame the payer.
    fn ask_x402(&mut self) {
        for shown in self.shown.iter_mut().filter(|shown| !shown.is_settled) {
            let path = format!("/for/{}", shown.payment.slug);
            let response = self.shop.api.get(&path).header("x-payment", &shown.header).send();
            let body: Value = serde_json::from_slice(&response.body).unwrap_or_default();
            let word = match response.status {
                200 => {
                    assert_eq!(body["txId"], shown.tx_id.as_str(), "{body}");
                    shown.is_settled = true;
                    "settled"
                }
                402 if is_nobodys_fault(&body["error"]) => body["error"].as_str().unwrap_or_default(),
                503 => body["reason"].as_str().unwrap_or_default(),
                status => panic!("a valid payment gets {status} {body}"),
            };
            *self.words.entry(word.to_owned()).or_default() += 1;
        }
    }

    /// No node responds: requests that need none succeed, and the state is reported.
    fn without_any_node(&mut self) {
        for proxy in &self.proxies {
            proxy.clear_faults();
        }
        for (at, proxy) in self.proxies.iter().enumerate() {
            match at {
                0 => proxy.stop_listening(),
                1 => proxy.inject_faults(1, 100, &[Fault::Hang]),
                _ => proxy.inject_faults(1, 100, &[Fault::Status(502), Fault::TruncateJson, Fault::WrongId]),
            }
        }
        let api = self.shop.api.clone();
        until("the outage to be noticed", || (api.get("/readyz").send().status == 503).then_some(()));
        assert_eq!(api.get("/api/health").send().ok(200)["status"], "degraded");
        assert_eq!(api.get("/livez").send().status, 200);
        for _ in 0..3 {
            self.pay();
        }
        let cancelled = self.shop.open_payment();
        self.shop.cancel(&cancelled.id).ok(200);
        self.begin_x402();
        let last = self.shown.last().expect("begun");
        let (path, header) = (format!("/for/{}", last.payment.slug), last.header.clone());
        let asked = {
            let api = api.clone();
            // The transaction is kept for a while in case a node comes back.
            background(move || api.get(&path).header("x-payment", &header).send())
        };
        assert_eq!(self.shop.post(PAYMENTS, &order()).send().status, 201);
        self.proxies[0].listen_again();
        for proxy in &self.proxies {
            proxy.clear_faults();
        }
        let response = asked.join().expect("no panic");
        let is_fair = response.status == 200 || is_nobodys_fault(&response.json()["error"]);
        assert!(is_fair, "{} {}", response.status, response.text());
    }

    /// All nodes are healthy again: every paid payment completes once, and is reported once.
    fn everything_completes(&mut self) {
        until("every settlement", || {
            self.ask_x402();
            self.shown.iter().all(|shown| shown.is_settled).then_some(())
        });
        let ids = self.paid.iter().chain(self.shown.iter().map(|shown| &shown.payment));
        let ids: Vec<(String, String)> = ids.map(|payment| (payment.id.clone(), payment.memo.clone())).collect();
        for (id, _) in &ids {
            let is_done = |p: &Value| p["status"] == "completed" && p["transfers"][0]["finality"] == "irreversible";
            let done = self.shop.until(id, "completed for good", is_done);
            assert_eq!((&done["amountPaid"], &done["exceptions"]), (&json!("1500"), &json!([])), "{done}");
            assert_eq!(done["transfers"].as_array().map(Vec::len), Some(1), "{done}");
        }
        let chain = read_chain(&self.ledger.ledger);
        for (id, memo) in &ids {
            assert_eq!(chain.get(memo).map(Vec::len), Some(1), "{id} on the ledger");
        }
        let reported = || {
            let mut reported: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for hook in self.receiver.hooks() {
                hook.verify(&self.shop.secret);
                let data = hook.json()["data"].clone();
                let event = hook.header("webhook-id").to_owned();
                let events = reported.entry(data["id"].as_str().unwrap_or_default().to_owned()).or_default();
                if data["status"] == "completed" && !events.contains(&event) {
                    events.push(event);
                }
            }
            reported
        };
        until("every webhook", || ids.iter().all(|(id, _)| reported().contains_key(id)).then_some(()));
        let reported = reported();
        for (id, _) in &ids {
            assert_eq!(reported[id].len(), 1, "{id} was notified as {:?}", reported[id]);
        }
        until_ready(&self.shop.api);
        assert!(self.serve.has_ended().is_none() && !self.serve.log().contains("panicked"), "{}", self.serve.log());
    }
}
