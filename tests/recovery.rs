//! Restart after kills: no acknowledged write is lost, and nothing counts twice.

use std::{
    collections::BTreeSet,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};

use crate::harness::{
    Dev, LedgerProcess, Process, Receiver, Reply, Serve, Shop, background, folder, order, pause, until,
};

crate::tests!(
    acknowledged_writes_survive_a_kill,
    a_payment_seen_before_a_kill_completes_after_it,
    a_payment_made_during_downtime_is_found,
    an_unsent_webhook_is_sent_after_the_restart,
    a_webhook_with_a_lost_response_is_repeated_with_the_same_id,
    a_timely_payment_completes_although_the_gateway_was_down_past_the_expiry,
    kills_at_any_moment_lose_no_payment_and_count_none_twice,
    a_killed_ledger_continues_its_chain,
    a_second_process_on_the_same_data_is_rejected,
    sigterm_ends_the_gateway_cleanly,
    dev_with_a_data_directory_keeps_state_private_to_its_owner,
    start_failures_have_a_reason_and_their_own_exit_code,
    an_admin_key_is_created_with_a_stopped_or_a_running_gateway,
    three_nodes_are_followed_although_one_is_disconnected,
);

const PRICE: &str = "1.500 HBD";

/// A ledger and the data directory of a gateway.
struct Setup {
    ledger: LedgerProcess,
    data: PathBuf,
}

impl Setup {
    fn new() -> Self {
        let folder = folder("recovery");
        Self { ledger: LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0"), data: folder.join("data") }
    }

    /// Starts the gateway on the data directory.
    #[track_caller]
    fn serve(&self) -> Serve {
        Serve::start(&self.data, &self.ledger.ledger)
    }

    /// Pays with the ledger's control port, whether or not its node can be reached.
    #[track_caller]
    fn pay(&self, shop: &Shop, memo: &str) {
        let params = json!({ "from": "alice", "to": shop.account.name, "amount": PRICE, "memo": memo });
        self.ledger.ledger.order("transfer", &params);
    }
}

/// Returns the shop with the restarted gateway.
fn back(shop: &Shop, serve: &Serve) -> Shop {
    Shop { api: serve.api.clone(), ..shop.clone() }
}

fn acknowledged_writes_survive_a_kill() {
    let setup = Setup::new();
    let mut serve = setup.serve();
    let shop = Shop::open(&serve.api, &setup.ledger.ledger);
    for round in 0_u32..3 {
        let stop = Arc::new(AtomicBool::new(false));
        let callers: Vec<_> = (0..4)
            .map(|_| {
                let (shop, stop) = (back(&shop, &serve), Arc::clone(&stop));
                background(move || {
                    let mut acknowledged = Vec::new();
                    let mut sent = 0;
                    while !stop.load(Ordering::SeqCst) {
                        sent += 1;
                        match shop.post("/api/public/payments", &order()).try_send() {
                            Ok(response) if response.status == 201 => acknowledged.push(response.json()),
                            Ok(response) => panic!("{} {}", response.status, response.text()),
                            Err(_) => break,
                        }
                    }
                    (sent, acknowledged)
                })
            })
            .collect();
        pause(Duration::from_millis(150 + u64::from(round) * 170));
        serve.process.kill();
        stop.store(true, Ordering::SeqCst);
        let done: Vec<(usize, Vec<Value>)> = callers.into_iter().map(|caller| caller.join().unwrap()).collect();
        let before = 0;
        serve = setup.serve();
        let shop = back(&shop, &serve);
        let mut count = before;
        for made in done.iter().flat_map(|(_, made)| made) {
            let record = shop.payment(made["id"].as_str().unwrap());
            for member in ["slug", "amount", "fee", "net", "description", "expiresAt", "createdAt", "status"] {
                assert_eq!(record[member], made[member], "{member}");
            }
            let page = serve.api.get(&format!("/for/{}", made["slug"].as_str().unwrap())).header("accept", "text/html");
            assert_eq!(page.send().status, 200);
            count += 1;
        }
        assert!(count > 0, "the kill came before the first response");
    }
    assert_eq!(back(&shop, &serve).get("/api/public/merchants/me").send().ok(200)["id"], shop.id);
}

fn a_payment_seen_before_a_kill_completes_after_it() {
    let setup = Setup::new();
    let mut serve = setup.serve();
    let (shop, receiver) = (Shop::open(&serve.api, &setup.ledger.ledger), Receiver::start());
    shop.set_webhook(&receiver);
    let payment = shop.open_payment();
    setup.ledger.ledger.hold_irreversibility(true);
    setup.ledger.ledger.transfer(&setup.ledger.demo_account("alice"), &shop.account.name, PRICE, &payment.memo);
    shop.until(&payment.id, "seen", |p| p["transfers"][0]["finality"] == "reversible");
    serve.process.kill();
    let serve = setup.serve();
    let shop = back(&shop, &serve);
    shop.until(&payment.id, "seen again", |p| p["transfers"][0]["finality"] == "reversible");
    shop.cancel(&payment.id).refused(409, "payment_detected");
    setup.ledger.ledger.hold_irreversibility(false);
    let done = shop.until_status(&payment.id, "completed");
    assert_eq!((&done["amountPaid"], done["transfers"].as_array().map(Vec::len)), (&json!("1500"), Some(1)));
    receiver.hook(0).verify(&shop.secret);
    assert_eq!(receiver.hooks_after(Duration::from_millis(300)).len(), 1);
}

fn a_payment_made_during_downtime_is_found() {
    let setup = Setup::new();
    let mut serve = setup.serve();
    let (shop, receiver) = (Shop::open(&serve.api, &setup.ledger.ledger), Receiver::start());
    shop.set_webhook(&receiver);
    let payment = shop.open_payment();
    serve.process.kill();
    setup.pay(&shop, &payment.memo);
    // More blocks than one range request returns.
    setup.ledger.ledger.produce(2_500);
    let serve = setup.serve();
    let done = back(&shop, &serve).until_status(&payment.id, "completed");
    assert_eq!((&done["amountPaid"], &done["exceptions"]), (&json!("1500"), &json!([])));
    receiver.hook(0).verify(&shop.secret);
}

fn an_unsent_webhook_is_sent_after_the_restart() {
    let setup = Setup::new();
    let mut serve = setup.serve();
    let (shop, receiver) = (Shop::open(&serve.api, &setup.ledger.ledger), Receiver::start());
    shop.set_webhook(&receiver);
    let address = receiver.address();
    drop(receiver);
    until("the endpoint to be gone", || std::net::TcpStream::connect(address).is_err().then_some(()));
    let payment = shop.open_payment();
    setup.pay(&shop, &payment.memo);
    shop.until_status(&payment.id, "completed");
    serve.process.kill();
    let receiver = Receiver::again_at(address);
    let _serve = setup.serve();
    let hook = receiver.hook(0);
    hook.verify(&shop.secret);
    let data = &hook.json()["data"];
    assert_eq!((&data["id"], &data["status"]), (&json!(payment.id), &json!("completed")));
}

fn a_webhook_with_a_lost_response_is_repeated_with_the_same_id() {
    let setup = Setup::new();
    let mut serve = setup.serve();
    let (shop, receiver) = (Shop::open(&serve.api, &setup.ledger.ledger), Receiver::start());
    shop.set_webhook(&receiver);
    receiver.reply(&[Reply::CloseConnection]);
    let payment = shop.open_payment();
    setup.pay(&shop, &payment.memo);
    let first = receiver.hook(0);
    serve.process.kill();
    let _serve = setup.serve();
    let second = receiver.hook(1);
    second.verify(&shop.secret);
    assert_eq!(first.header("webhook-id"), second.header("webhook-id"));
    assert_eq!(first.body, second.body);
}

fn a_timely_payment_completes_although_the_gateway_was_down_past_the_expiry() {
    let setup = Setup::new();
    let mut serve = setup.serve();
    let (shop, receiver) = (Shop::open(&serve.api, &setup.ledger.ledger), Receiver::start());
    shop.set_webhook(&receiver);
    let mut short = order();
    short["expiresInSeconds"] = json!(60);
    let (paid, unpaid, late) = (shop.open_with(&short), shop.open_with(&short), shop.open_with(&short));
    serve.process.kill();
    setup.pay(&shop, &paid.memo);
    setup.ledger.ledger.produce(3);
    setup.ledger.ledger.advance(7_200);
    setup.pay(&shop, &late.memo);
    setup.ledger.ledger.produce(3);
    let serve = Serve::start_unready(&setup.data, &setup.ledger.ledger);
    let shop = back(&shop, &serve);
    let done = shop.until_status(&paid.id, "completed");
    assert_eq!(done["exceptions"], json!([]));
    shop.until_status(&unpaid.id, "system_cancelled");
    let late = shop.until(&late.id, "late", |p| p["exceptions"] == json!(["paid_late"]));
    assert_eq!((&late["status"], &late["amountLate"]), (&json!("system_cancelled"), &json!("1500")));
    receiver.hook(2);
}

fn kills_at_any_moment_lose_no_payment_and_count_none_twice() {
    let setup = Setup::new();
    let mut serve = setup.serve();
    let (shop, receiver) = (Shop::open(&serve.api, &setup.ledger.ledger), Receiver::start());
    shop.set_webhook(&receiver);
    let mut paid = BTreeSet::new();
    for round in 0..8_u64 {
        let shop = back(&shop, &serve);
        for _ in 0..3 {
            let payment = shop.open_payment();
            setup.pay(&shop, &payment.memo);
            paid.insert(payment.id);
        }
        // From right after the transfer until well after its block: seen, credited, completed, notified or not.
        pause(Duration::from_millis(round * 160));
        serve.process.kill();
        serve = setup.serve();
    }
    let shop = back(&shop, &serve);
    for id in &paid {
        let done = shop.until_status(id, "completed");
        assert_eq!((&done["amountPaid"], &done["exceptions"]), (&json!("1500"), &json!([])), "{done}");
        assert_eq!(done["transfers"].as_array().map(Vec::len), Some(1), "{done}");
    }
    let reported = || {
        let hooks = receiver.hooks();
        let of = |hook: &crate::harness::Hook| hook.json()["data"]["id"].as_str().unwrap().to_owned();
        let events: BTreeSet<_> = hooks.iter().map(|hook| (of(hook), hook.header("webhook-id").to_owned())).collect();
        events
    };
    until("every webhook", || (reported().len() >= paid.len()).then_some(()));
    let reported = reported();
    assert_eq!(reported.len(), paid.len(), "one event a payment, whatever was repeated");
    assert_eq!(reported.into_iter().map(|(id, _)| id).collect::<BTreeSet<_>>(), paid);
}

fn a_killed_ledger_continues_its_chain() {
    let mut setup = Setup::new();
    let serve = setup.serve();
    let shop = Shop::open(&serve.api, &setup.ledger.ledger);
    let (before, after) = (shop.open_payment(), shop.open_payment());
    setup.pay(&shop, &before.memo);
    shop.until_status(&before.id, "completed");
    let alice = setup.ledger.demo_account("alice");
    let head = setup.ledger.ledger.order("status", &json!({}))["head"]["number"].as_u64().unwrap();
    let address = setup.ledger.ledger.rpc.base.strip_prefix("http://").unwrap().to_owned();
    setup.ledger.process.kill();
    let state = setup.data.with_file_name("chain");
    setup.ledger = LedgerProcess::start(&state, &address);
    assert!(setup.ledger.ledger.order("status", &json!({}))["head"]["number"].as_u64().unwrap() >= head);
    assert_eq!(setup.ledger.demo_account("alice").key, alice.key);
    assert_eq!(mode(&state), 0o600, "the seed of all keys is in it");
    setup.pay(&shop, &after.memo);
    shop.until_status(&after.id, "completed");
    assert_eq!(shop.payment(&before.id)["transfers"].as_array().map(Vec::len), Some(1));
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

fn a_second_process_on_the_same_data_is_rejected() {
    let setup = Setup::new();
    let serve = setup.serve();
    let shop = Shop::open(&serve.api, &setup.ledger.ledger);
    for command in ["serve", "engine"] {
        let mut args = Serve::args(&setup.data, &setup.ledger.ledger, &[]);
        args[0] = command.to_owned();
        if command == "engine" {
            args.drain(3..5);
            args.push("--grpc-listen=127.0.0.1:0".to_owned());
        }
        let refused = Process::start(&args).finish();
        assert_eq!(refused.code, Some(5), "{refused:?}");
        assert!(refused.stderr.contains("in use") || refused.stderr.contains("another process"), "{refused:?}");
        assert!(refused.stderr.contains(setup.data.to_str().unwrap()), "{refused:?}");
        assert!(!refused.stderr.contains("panicked"), "{refused:?}");
    }
    let state = setup.data.with_file_name("chain");
    let ledger = ["ledger", "--listen", "127.0.0.1:0", "--control-listen", "127.0.0.1:0", "--state"];
    let ledger: Vec<&str> = ledger.into_iter().chain([state.to_str().unwrap()]).collect();
    let refused = Process::start(&ledger).finish();
    assert!(!refused.success && refused.stderr.contains("in use by another process"), "{refused:?}");
    shop.open_payment();
}

fn sigterm_ends_the_gateway_cleanly() {
    let setup = Setup::new();
    let mut serve = setup.serve();
    let shop = Shop::open(&serve.api, &setup.ledger.ledger);
    let payment = shop.open_payment();
    let status = serve.process.stop();
    assert!(status.success(), "{status:?}\n{}", serve.process.log());
    let serve = setup.serve();
    let shop = back(&shop, &serve);
    setup.pay(&shop, &payment.memo);
    shop.until_status(&payment.id, "completed");
    let mut process = serve.process;
    process.signal("INT");
    assert!(process.wait().success());
}

fn dev_with_a_data_directory_keeps_state_private_to_its_owner() {
    let data = folder("dev").join("data");
    let flag = format!("--data={}", data.to_str().unwrap());
    let mut dev = Dev::with(&[&flag]);
    let report = dev.startup.clone();
    let demo = |dev: &Dev, path: &str| dev.api.get(path).bearer(report["merchant"]["apiKey"].as_str().unwrap()).send();
    let create = dev.api.post("/api/public/payments", &order()).bearer(report["merchant"]["apiKey"].as_str().unwrap());
    let id = create.send().ok(201)["id"].as_str().unwrap().to_owned();
    dev.process.kill();
    for entry in std::fs::read_dir(&data).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path) & 0o077, 0, "others may read {}", path.display());
    }
    assert_eq!(mode(&data), 0o700);
    let dev = Dev::with(&[&flag]);
    for member in ["merchant", "admin", "accounts"] {
        assert_eq!(dev.startup[member], report[member], "{member}");
    }
    let path = format!("/api/public/payments/{id}");
    assert_eq!(demo(&dev, &path).ok(200)["status"], "pending");
    let to = report["merchant"]["account"].as_str().unwrap();
    dev.ledger.transfer(&dev.demo_account("alice"), to, PRICE, &format!("pos-{id}"));
    until("the payment", || (demo(&dev, &path).ok(200)["status"] == "completed").then_some(()));

    let args = ["dev", "--json", "--listen", "127.0.0.1:0", "--ledger-listen", "127.0.0.1:0", "--grpc-listen"];
    let args: Vec<&str> = args.into_iter().chain(["127.0.0.1:0", &flag]).collect();
    let refused = Process::start(&args).finish();
    assert!(!refused.success && refused.stderr.contains("in use"), "{refused:?}");
}

fn start_failures_have_a_reason_and_their_own_exit_code() {
    let setup = Setup::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let data = setup.data.to_str().unwrap();
    let node = setup.ledger.ledger.rpc.base.as_str();
    let toml = folder("config").join("settings.toml");
    std::fs::write(&toml, "[session]\nlifetime = 60\n").unwrap();
    let toml = toml.to_str().unwrap();
    let serve = ["serve", "--init", "--listen", "127.0.0.1:0", "--data", data, "--node", node];
    for (more, code, words) in [
        (vec!["--network", "dev", "--set", "session.lifetime=60"], 3, "session.lifetime"),
        (vec!["--network", "dev", "--set", "session.lifetime_seconds=5"], 3, "session.lifetime_seconds"),
        (vec!["--network", "dev", "--config", toml], 3, "session.lifetime"),
        (vec!["--network", "dev", "--config", "/nowhere.toml"], 3, "/nowhere.toml"),
        (vec!["--network", "testnet"], 3, "network"),
        (vec!["--network", "dev", "--set", &format!("listen={taken}")], 4, &taken),
        // A development ledger is rejected for the main network, whatever its chain id.
        (vec![], 6, "development"),
        (vec!["--network", "dev", "--set", &format!("chain_id={}", "0".repeat(64))], 6, "chain"),
        (vec!["--nonsense"], 2, "--nonsense"),
    ] {
        let mut args: Vec<&str> = serve.to_vec();
        if code == 4 {
            args.drain(2..4);
        }
        args.extend(more.iter().copied());
        let ended = Process::start(&args).finish();
        assert_eq!(ended.code, Some(code), "{more:?}: {ended:?}");
        assert!(ended.stderr.contains(words), "{more:?}: {ended:?}");
        assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    }
}

fn an_admin_key_is_created_with_a_stopped_or_a_running_gateway() {
    let setup = Setup::new();
    let node = setup.ledger.ledger.rpc.base.as_str();
    let data = setup.data.to_str().unwrap();
    let args = ["admin", "--json", "--account", "hivetill.fees", "--network", "dev", "--data", data, "--node", node];
    let made = Process::start(&args).finish();
    assert!(made.success, "{made:?}");
    let made: Value = serde_json::from_str(&made.stdout).expect("a line of JSON");
    let serve = setup.serve();
    let shop = Shop::open(&serve.api, &setup.ledger.ledger);
    let list = serve.api.get("/api/admin/merchants").bearer(made["apiKey"].as_str().unwrap()).send().ok(200);
    let ids: Vec<_> = list["data"].as_array().unwrap().iter().map(|merchant| merchant["id"].clone()).collect();
    assert_eq!(ids, [json!(shop.id), made["id"].clone()]);
    let second = Process::start(&args).finish();
    assert!(second.success, "a running gateway is asked through its socket: {second:?}");
    let second: Value = serde_json::from_str(&second.stdout).expect("a line of JSON");
    let key = second["apiKey"].as_str().expect("a key");
    let me = serve.api.get("/api/public/merchants/me").bearer(key).send().ok(200);
    assert_eq!((&me["id"], &me["privileges"]), (&second["id"], &json!(["admin"])));
    std::fs::remove_file(setup.data.join("engine.sock")).expect("its socket");
    let refused = Process::start(&args).finish();
    assert!(!refused.success && refused.stderr.contains("--engine-url"), "{refused:?}");
}

fn three_nodes_are_followed_although_one_is_disconnected() {
    let folder = folder("nodes");
    let (chain, data) = (folder.join("chain"), folder.join("data"));
    let mut process = Process::start(&[
        "ledger",
        "--json",
        "--listen",
        "127.0.0.1:0",
        "--listen",
        "127.0.0.1:0",
        "--listen",
        "127.0.0.1:0",
        "--control-listen",
        "127.0.0.1:0",
        "--block-interval",
        "250ms",
        "--state",
        chain.to_str().unwrap(),
    ]);
    let report = process.ready();
    let nodes: Vec<&str> = report["nodes"].as_array().unwrap().iter().map(|node| node.as_str().unwrap()).collect();
    let ledger = crate::harness::Ledger::new(nodes[2], report["control"].as_str().unwrap());
    let mut args = Serve::args(&data, &crate::harness::Ledger::new(nodes[0], ""), &[]);
    args.extend([format!("--node={}", nodes[1]), format!("--node={}", nodes[2])]);
    let mut serve = Process::start(&args);
    let api = crate::harness::Api::new(&format!("http://{}", serve.log_after("listening on ")));
    crate::harness::until_ready(&api);
    let shop = Shop::open(&api, &ledger);
    let pay = |memo: &str| {
        let params = json!({ "from": "alice", "to": shop.account.name, "amount": PRICE, "memo": memo });
        ledger.order("transfer", &params);
    };
    for fault in [
        json!({ "node": 0, "disconnected": true }),
        json!({ "node": 0, "disconnected": false, "lie": { "kind": "omitTransfers" } }),
        json!({ "node": 0, "lie": { "kind": "inflateTransfers" } }),
        json!({ "node": 0, "lie": null, "httpStatus": 503 }),
    ] {
        ledger.order("node", &fault);
        let payment = shop.open_payment();
        pay(&payment.memo);
        let done = shop.until_status(&payment.id, "completed");
        assert_eq!((&done["amountPaid"], &done["exceptions"]), (&json!("1500"), &json!([])), "{fault}: {done}");
    }
    let invented = shop.open_payment();
    let head = ledger.order("status", &json!({}))["head"]["number"].as_u64().unwrap();
    let lie = json!({
        "kind": "inventTransfer", "block": head + 3, "from": "alice", "to": shop.account.name, "amount": PRICE,
        "memo": invented.memo,
    });
    ledger.order("node", &json!({ "node": 0, "httpStatus": null, "lie": lie }));
    ledger.produce(12);
    let honest = shop.open_payment();
    pay(&honest.memo);
    shop.until_status(&honest.id, "completed");
    let record = shop.payment(&invented.id);
    assert_eq!((&record["status"], &record["amountPaid"]), (&json!("pending"), &json!("0")), "{record}");
}
