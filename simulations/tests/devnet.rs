//! The dev ledger over real sockets: responses of nodes, effects of the control API, and golden responses.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use engine::{
    hive::{Asset, Operation, Pack, RecurrentTransfer, Symbol, Transaction, tapos_of},
    ledger::BlockId,
    time::Timestamp,
};
use serde_json::{Value, json};
use simulations::{
    devnet::{Devnet, Options},
    ledger::{Genesis, Role},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

const START: u64 = 1_800_000_000;

/// A ledger with a fixed clock that produces blocks on request only.
fn options() -> Options {
    let clock = Arc::new(|| Timestamp::from_seconds(START));
    let options = Options::new(Genesis::demo([7; 32], Timestamp::from_seconds(START)), clock);
    Options { auto_produce: false, ..options }
}

async fn start() -> Devnet {
    Devnet::start(options()).await.unwrap()
}

/// Sends raw HTTP and returns the response; empty if the other side closes the connection.
async fn exchange(address: SocketAddr, request: String) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    // A closed connection gives an error or an early end; both count as empty.
    let _ = stream.read_to_string(&mut answer).await;
    answer
}

async fn post(address: SocketAddr, body: &Value) -> Option<String> {
    let body = body.to_string();
    let length = body.len();
    let head = format!("POST / HTTP/1.1\r\nHost: ledger\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    let answer = exchange(address, head + &body).await;
    answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
}

async fn rpc(address: SocketAddr, method: &str, params: Value) -> Result<Value, Value> {
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let text = post(address, &request).await.expect("an answer");
    let mut answer: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {text}"));
    match answer.get_mut("error") {
        Some(error) => Err(error.take()),
        None => Ok(answer["result"].take()),
    }
}

async fn ask(devnet: &Devnet, method: &str, params: Value) -> Value {
    rpc(devnet.rpc_addrs[0], method, params).await.unwrap_or_else(|error| panic!("{method}: {error}"))
}

async fn control(devnet: &Devnet, method: &str, params: Value) -> Value {
    devnet.control(method, params).await.unwrap_or_else(|error| panic!("{method}: {error}"))
}

/// Prints a response with sorted members, independently of the JSON library.
fn pretty(value: &Value) -> String {
    fn sorted(value: &Value) -> Value {
        match value {
            Value::Object(members) => {
                let members: BTreeMap<_, _> = members.iter().map(|(name, value)| (name, sorted(value))).collect();
                json!(members)
            }
            Value::Array(items) => items.iter().map(sorted).collect(),
            other => other.clone(),
        }
    }
    serde_json::to_string_pretty(&sorted(value)).unwrap()
}

#[tokio::test]
async fn the_main_responses_match_the_snapshots() {
    let devnet = start().await;
    let paid = control(
        &devnet,
        "control.transfer",
        json!({"from": "alice", "to": "shop.demo", "amount": "1.250 HBD", "memo": "pos-1 é"}),
    )
    .await;
    let id = paid["id"].as_str().unwrap().to_owned();
    control(&devnet, "control.produce", json!({"count": 4})).await;
    for (name, method, params) in [
        ("condenser properties", "condenser_api.get_dynamic_global_properties", json!([])),
        ("database properties", "database_api.get_dynamic_global_properties", json!({})),
        ("condenser block", "condenser_api.get_block", json!([1])),
        ("block", "block_api.get_block", json!({"block_num": 1})),
        ("block range", "block_api.get_block_range", json!({"starting_block_num": 3, "count": 5})),
        ("block header", "block_api.get_block_header", json!({"block_num": 1})),
        ("condenser accounts", "condenser_api.get_accounts", json!([["alice", "nobody"]])),
        ("accounts", "database_api.find_accounts", json!({"accounts": ["alice", "nobody"]})),
        ("condenser transaction", "condenser_api.get_transaction", json!([id])),
        ("transaction", "account_history_api.get_transaction", json!({"id": id})),
        ("operations", "account_history_api.get_ops_in_block", json!({"block_num": 1, "include_reversible": true})),
        ("condenser operations", "condenser_api.get_ops_in_block", json!([1, false])),
        ("status", "transaction_status_api.find_transaction", json!({"transaction_id": id})),
        ("median price", "condenser_api.get_current_median_history_price", json!([])),
        ("price feed", "database_api.get_current_price_feed", json!({})),
        ("order book", "condenser_api.get_order_book", json!([1])),
        ("feed history", "condenser_api.get_feed_history", json!([])),
        ("version", "database_api.get_version", json!({})),
        ("hardforks", "database_api.get_hardfork_properties", json!({})),
        ("chain properties", "condenser_api.get_chain_properties", json!([])),
        ("resource credits", "rc_api.find_rc_accounts", json!({"accounts": ["alice"]})),
        ("control status", "", json!({})),
    ] {
        let answer = match method {
            "" => control(&devnet, "control.status", params).await,
            method => ask(&devnet, method, params).await,
        };
        insta::assert_snapshot!(name.replace(' ', "_"), pretty(&answer));
    }
    devnet.shutdown().await;
}

#[tokio::test]
async fn a_refusal_is_hiveds_own() {
    let devnet = start().await;
    control(&devnet, "control.produce", json!({})).await;
    let node = devnet.rpc_addrs[0];
    let unsigned = json!({
        "ref_block_num": 0, "ref_block_prefix": 0, "expiration": "2027-01-15T08:00:30",
        "operations": [["transfer", {"from": "alice", "to": "bob", "amount": "1.000 HBD", "memo": ""}]],
        "extensions": [], "signatures": [],
    });
    let denied = rpc(node, "condenser_api.broadcast_transaction", json!([unsigned])).await.unwrap_err();
    insta::assert_snapshot!("missing_authority", pretty(&denied));
    let denied = rpc(node, "network_broadcast_api.broadcast_transaction", json!({"trx": unsigned})).await.unwrap_err();
    assert_eq!(denied["data"]["code"], 3_010_000);
    let poor =
        devnet.control("control.transfer", json!({"from": "alice", "to": "bob", "amount": "99999999.000 HBD"})).await;
    insta::assert_snapshot!("insufficient_funds", pretty(&poor.unwrap_err().to_json()));
    let unknown = rpc(node, "condenser_api.get_transaction", json!(["00".repeat(20)])).await.unwrap_err();
    insta::assert_snapshot!("unknown_transaction", pretty(&unknown));
    let mut bad = unsigned.clone();
    bad["operations"][0][1]["amount"] = json!("1.0 HBD");
    let malformed = rpc(node, "condenser_api.broadcast_transaction", json!([bad])).await.unwrap_err();
    insta::assert_snapshot!("malformed_transaction", pretty(&malformed));
    devnet.shutdown().await;
}

#[tokio::test]
async fn blocks_and_accounts_that_are_not_there() {
    let devnet = start().await;
    control(&devnet, "control.produce", json!({"count": 3})).await;
    assert_eq!(ask(&devnet, "condenser_api.get_block", json!([99])).await, Value::Null);
    assert_eq!(ask(&devnet, "block_api.get_block", json!({"block_num": 99})).await, json!({}));
    assert_eq!(
        ask(&devnet, "block_api.get_block_range", json!({"starting_block_num": 99, "count": 5})).await,
        json!({"blocks": []})
    );
    assert_eq!(ask(&devnet, "condenser_api.get_accounts", json!([["nobody"]])).await, json!([]));
    assert_eq!(ask(&devnet, "condenser_api.lookup_account_names", json!([["nobody"]])).await, json!([null]));
    assert_eq!(
        ask(&devnet, "database_api.find_accounts", json!({"accounts": ["nobody"]})).await,
        json!({"accounts": []})
    );
    for (params, words) in [
        (json!({"starting_block_num": 1, "count": 1001}), "You can only ask for 1000 blocks at a time"),
        (json!({"starting_block_num": 0, "count": 1}), "Invalid starting block number"),
    ] {
        let error = rpc(devnet.rpc_addrs[0], "block_api.get_block_range", params).await.unwrap_err();
        assert_eq!(error["code"], -32003);
        assert!(error["message"].as_str().unwrap().contains(words));
    }
    let range = ask(&devnet, "block_api.get_block_range", json!({"starting_block_num": 2, "count": 5})).await;
    assert_eq!(range["blocks"].as_array().unwrap().len(), 2);
    devnet.shutdown().await;
}

#[tokio::test]
async fn every_method_that_is_listed_is_there() {
    let devnet = start().await;
    let methods = ask(&devnet, "jsonrpc.get_methods", json!([])).await;
    for method in methods.as_array().unwrap() {
        let method = method.as_str().unwrap();
        if let Err(error) = rpc(devnet.rpc_addrs[0], method, json!({})).await {
            assert_eq!(error["code"], -32002, "{method} wants parameters: {error}");
        }
    }
    for method in ["condenser_api.get_nothing", "nothing_api.get", "nothing"] {
        let error = rpc(devnet.rpc_addrs[0], method, json!([])).await.unwrap_err();
        assert_eq!(error["code"], -32601, "{method}");
    }
    devnet.shutdown().await;
}

#[tokio::test]
async fn browsers_of_any_origin_may_call() {
    let devnet = start().await;
    let preflight = "OPTIONS / HTTP/1.1\r\nHost: ledger\r\nOrigin: https://wallet.example\r\nAccess-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type, x-app\r\nConnection: close\r\n\r\n";
    let answer = exchange(devnet.rpc_addrs[0], preflight.to_owned()).await.to_lowercase();
    assert!(answer.starts_with("http/1.1 204"), "{answer}");
    for header in [
        "access-control-allow-origin: *",
        "access-control-allow-headers: content-type, x-app",
        "access-control-allow-methods: post",
    ] {
        assert!(answer.contains(header), "{header} in {answer}");
    }
    let body = r#"[{"jsonrpc":"2.0","id":1,"method":"condenser_api.get_version"},{"jsonrpc":"2.0","id":2,"method":"call","params":["condenser_api","get_block",[1]]}]"#;
    let batch = format!(
        "POST /rpc HTTP/1.1\r\nHost: ledger\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let answer = exchange(devnet.rpc_addrs[0], batch).await;
    assert!(answer.to_lowercase().contains("access-control-allow-origin: *"));
    let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    assert!(body[0]["result"]["hive_revision"].as_str().unwrap().starts_with("hivetill-dev"));
    assert_eq!(body[1], json!({"jsonrpc": "2.0", "id": 2, "result": null}));
    assert!(
        exchange(devnet.rpc_addrs[0], "GET / HTTP/1.1\r\nHost: l\r\nConnection: close\r\n\r\n".into())
            .await
            .starts_with("HTTP/1.1 405")
    );
    devnet.shutdown().await;
}

#[tokio::test]
async fn several_nodes_show_one_chain_each_with_its_own_faults() {
    let any = options().nodes[0];
    let devnet = Devnet::start(Options { nodes: vec![any, any, any], ..options() }).await.unwrap();
    control(&devnet, "control.produce", json!({"count": 10})).await;
    control(&devnet, "control.node", json!({"node": 1, "lagBlocks": 4})).await;
    control(&devnet, "control.node", json!({"node": 2, "disconnected": true})).await;
    let head = |node: usize| {
        let address = devnet.rpc_addrs[node];
        async move {
            rpc(address, "condenser_api.get_dynamic_global_properties", json!([])).await.unwrap()["head_block_number"]
                .clone()
        }
    };
    assert_eq!((head(0).await, head(1).await), (json!(10), json!(6)));
    let version = json!({"jsonrpc": "2.0", "id": 1, "method": "condenser_api.get_version"});
    assert_eq!(post(devnet.rpc_addrs[2], &version).await, None);
    control(&devnet, "control.node", json!({"node": 0, "httpStatus": 429})).await;
    let answer = exchange(
        devnet.rpc_addrs[0],
        "POST / HTTP/1.1\r\nHost: l\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}".into(),
    )
    .await;
    assert!(answer.starts_with("HTTP/1.1 429"), "{answer}");
    control(&devnet, "control.node", json!({"node": 0, "httpStatus": null, "garbage": true})).await;
    let garbage = post(devnet.rpc_addrs[0], &version).await.unwrap();
    assert!(serde_json::from_str::<Value>(&garbage).is_err(), "{garbage}");
    control(&devnet, "control.heal", json!({})).await;
    for node in 0..3 {
        assert_eq!(head(node).await, json!(10));
    }
    devnet.shutdown().await;
}

#[tokio::test]
async fn a_lost_reply_is_still_a_broadcast() {
    let devnet = start().await;
    let genesis = devnet.genesis();
    let mut chain = simulations::ledger::Chain::new(genesis);
    chain.produce(Timestamp::from_seconds(START));
    control(&devnet, "control.produce", json!({})).await;
    let transfer = chain.transfer("alice", "bob", "1.000 HBD", "lost", &genesis.key("alice", Role::Active)).unwrap();
    let id = transfer.id(Pack::Legacy).to_string();
    let trx: Value = serde_json::from_str(&transfer.to_condenser_json()).unwrap();
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "condenser_api.broadcast_transaction", "params": [trx]});
    control(&devnet, "control.node", json!({"dropBroadcastReplies": 1})).await;
    assert_eq!(post(devnet.rpc_addrs[0], &request).await, None);
    let again = rpc(devnet.rpc_addrs[0], "condenser_api.broadcast_transaction", json!([trx])).await.unwrap_err();
    assert!(again["message"].as_str().unwrap().contains("Duplicate transaction check failed"));
    control(&devnet, "control.produce", json!({})).await;
    let status = ask(&devnet, "transaction_status_api.find_transaction", json!({"transaction_id": id})).await;
    assert_eq!(status, json!({"status": "within_reversible_block", "block_num": 2, "rc_cost": 157}));
    devnet.shutdown().await;
}

#[tokio::test]
async fn a_synchronous_broadcast_returns_its_block_and_a_refused_one_returns_immediately() {
    let devnet = start().await;
    let genesis = devnet.genesis();
    let mut chain = simulations::ledger::Chain::new(genesis);
    chain.produce(Timestamp::from_seconds(START));
    control(&devnet, "control.produce", json!({})).await;
    let transfer = chain.transfer("alice", "bob", "1.000 HBD", "waits", &genesis.key("alice", Role::Active)).unwrap();
    let id = transfer.id(Pack::Legacy).to_string();
    let trx: Value = serde_json::from_str(&transfer.to_condenser_json()).unwrap();
    let address = devnet.rpc_addrs[0];
    let method = "condenser_api.broadcast_transaction_synchronous";
    let waiting = tokio::spawn({
        let trx = trx.clone();
        async move { rpc(address, method, json!([trx])).await }
    });
    while control(&devnet, "control.status", json!({})).await["mempool"] == json!([]) {
        tokio::task::yield_now().await;
    }
    assert!(!waiting.is_finished(), "it is in no block yet");
    control(&devnet, "control.produce", json!({})).await;
    let answer = waiting.await.unwrap().unwrap();
    assert_eq!(answer, json!({ "id": id, "block_num": 2, "trx_num": 0, "expired": false }));
    let again =
        rpc(address, "call", json!(["network_broadcast_api", "broadcast_transaction_synchronous", [trx]])).await;
    assert!(again.unwrap_err()["message"].as_str().unwrap().contains("Duplicate transaction check failed"));
    devnet.shutdown().await;
}

#[tokio::test]
async fn an_account_history_is_returned_in_both_forms_and_filtered() {
    let devnet = start().await;
    for (from, to, memo) in [("alice", "shop.demo", "one"), ("bob", "shop.demo", "two"), ("alice", "bob", "three")] {
        let params = json!({ "from": from, "to": to, "amount": "1.000 HBD", "memo": memo });
        control(&devnet, "control.transfer", params).await;
        control(&devnet, "control.produce", json!({})).await;
    }
    let irreversible = ask(&devnet, "condenser_api.get_account_history", json!(["alice", -1, 10])).await;
    control(&devnet, "control.produce", json!({ "count": 25 })).await;
    let memos = |history: &Value| -> Vec<(u64, String)> {
        let entry = |entry: &Value| {
            let op = &entry[1]["op"];
            let members = if op.is_array() { &op[1] } else { &op["value"] };
            (entry[0].as_u64().unwrap(), members["memo"].as_str().unwrap().to_owned())
        };
        history.as_array().unwrap().iter().map(entry).collect()
    };
    let all = vec![(0, "one".to_owned()), (1, "three".to_owned())];
    let condenser = ask(&devnet, "condenser_api.get_account_history", json!(["alice", -1, 10])).await;
    assert_eq!((memos(&irreversible), memos(&condenser)), (all[..1].to_vec(), all.clone()));
    assert_eq!(condenser[0][1]["op"][1]["amount"], "1.000 HBD");
    assert_eq!(condenser[0][1]["op_in_trx"], 0);
    let newer =
        ask(&devnet, "account_history_api.get_account_history", json!({ "account": "alice", "limit": 1 })).await;
    assert_eq!(memos(&newer["history"]), all[1..]);
    let older = ask(&devnet, "condenser_api.get_account_history", json!(["alice", 0, 1])).await;
    assert_eq!(memos(&older), all[..1]);
    // Transfers are number 2, producer rewards 64: the first bit of the higher half.
    let transfers = ask(&devnet, "condenser_api.get_account_history", json!(["alice", -1, 10, 4, 0])).await;
    assert_eq!(memos(&transfers), all);
    let votes = ask(&devnet, "condenser_api.get_account_history", json!(["alice", -1, 10, 1, 0])).await;
    assert_eq!(votes, json!([]));
    let header = ask(&devnet, "block_api.get_block_header", json!({ "block_num": 1 })).await;
    let witness = &header["header"]["witness"];
    let params = json!({ "account": witness, "operation_filter_high": 1, "include_reversible": true });
    let rewards = ask(&devnet, "account_history_api.get_account_history", params).await;
    let rewards = rewards["history"].as_array().unwrap().clone();
    assert!(!rewards.is_empty());
    assert!(rewards.iter().all(|entry| entry[1]["op"]["type"] == "producer_reward_operation"), "{rewards:?}");
    let wrong = rpc(devnet.rpc_addrs[0], "condenser_api.get_account_history", json!(["alice", 5, 100])).await;
    assert_eq!(wrong.unwrap_err()["code"], -32003);
    devnet.shutdown().await;
}

#[tokio::test]
async fn the_control_api_has_its_own_endpoint_too() {
    let devnet = start().await;
    let address = devnet.control_addr.unwrap();
    let status = rpc(address, "control.produce", json!({"count": 2})).await.unwrap();
    assert_eq!(status["head"]["number"], 2);
    let advanced = rpc(address, "control.advance_time", json!({"seconds": 3600})).await.unwrap();
    assert_eq!(advanced["head"]["time"], "2027-01-15T09:00:06");
    let fork = rpc(address, "control.fork", json!({"depth": 1, "transactions": "drop"})).await.unwrap();
    assert_eq!((fork["orphanedBlocks"].as_array().unwrap().len(), &fork["status"]["head"]["number"]), (1, &json!(4)));
    let these =
        rpc(address, "control.fork", json!({"depth": 0, "transactions": {"drop": []}, "blocks": 0})).await.unwrap();
    assert_eq!(these["dropped"], json!([]));
    let account =
        rpc(address, "control.create_account", json!({"name": "mallory", "balances": ["5.000 HBD"]})).await.unwrap();
    assert!(account["keys"]["active"].as_str().unwrap().starts_with('5'));
    assert_eq!(
        rpc(address, "control.transfer", json!({"from": "mallory", "to": "bob", "amount": "5.000 HBD"}))
            .await
            .map(|_| ()),
        Ok(())
    );
    let grant = rpc(address, "control.grant", json!({"name": "bob", "amount": "-1.000 HIVE"})).await.unwrap();
    assert_eq!(grant["balance"], "9999.000 HIVE");
    for (method, params) in [
        ("control.produce", json!({"cuont": 2})),
        ("control.node", json!({"node": 7})),
        ("control.node", json!({"lie": {"kind": "unheardOf"}})),
        ("control.create_account", json!({"name": "bob"})),
        ("control.set_price", json!({"base": "1.000 HIVE", "quote": "1.000 HBD"})),
        ("control.set_market", json!({"base": "0.258 HBD"})),
        ("control.grant", json!({"name": "bob", "amount": "1 HBD"})),
        ("control.fork", json!({"depth": 1, "transactions": "lose"})),
    ] {
        let error = rpc(address, method, params).await.unwrap_err();
        assert_eq!(error["code"], -32002, "{method}: {error}");
    }
    let error = rpc(address, "control.fork", json!({"depth": 50})).await.unwrap_err();
    assert_eq!(error["code"], -32003);
    assert_eq!(rpc(address, "condenser_api.get_version", json!([])).await.unwrap_err()["code"], -32601);
    devnet.shutdown().await;
}

#[tokio::test]
async fn what_a_recurrent_transfer_pays_is_read_as_a_payment_engine_reads_it() {
    let devnet = start().await;
    control(&devnet, "control.produce", json!({"count": 1})).await;
    let head = ask(&devnet, "database_api.get_dynamic_global_properties", json!({})).await;
    let (ref_block_num, ref_block_prefix) = tapos_of(BlockId::parse(head["head_block_id"].as_str().unwrap()).unwrap());
    let agreement = RecurrentTransfer {
        from: "alice".into(),
        to: "shop.demo".into(),
        amount: Asset { units: 5_000, symbol: Symbol::Hbd },
        memo: "sub-1".into(),
        recurrence: 24,
        executions: 2,
        extensions: Vec::new(),
    };
    let mut transaction = Transaction {
        ref_block_num,
        ref_block_prefix,
        expiration: Timestamp::from_seconds(START + 600),
        operations: vec![Operation::RecurrentTransfer(agreement)],
        signatures: Vec::new(),
    };
    let key = options().genesis.key("alice", Role::Active);
    transaction.sign(options().genesis.chain_id, Pack::Legacy, &key);
    let trx: Value = serde_json::from_str(&transaction.to_condenser_json()).unwrap();
    ask(&devnet, "condenser_api.broadcast_transaction", json!([trx])).await;
    control(&devnet, "control.produce", json!({"count": 6})).await;
    let params = json!({"block_num": 2, "only_virtual": true, "include_reversible": false});
    let answer = ask(&devnet, "account_history_api.get_ops_in_block", params).await;
    let paid = engine::hive::block::parse_virtual_operations(&answer.to_string()).unwrap().unwrap().transfers;
    let paid: Vec<_> = paid.iter().map(|t| (t.from.as_str(), t.to.as_str(), t.money.units, t.memo.as_str())).collect();
    assert_eq!(paid, [("alice", "shop.demo", 5_000, "sub-1")]);
    devnet.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn blocks_come_by_themselves_when_asked_to() {
    let devnet = Devnet::start(Options { auto_produce: true, ..options() }).await.unwrap();
    let number = |status: Value| status["head"]["number"].as_u64().unwrap();
    tokio::time::sleep(Duration::from_millis(30_500)).await;
    assert_eq!(number(control(&devnet, "control.status", json!({})).await), 10);
    control(&devnet, "control.auto_produce", json!({"on": false})).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(number(control(&devnet, "control.status", json!({})).await), 10);
    control(&devnet, "control.auto_produce", json!({"on": true, "intervalMs": 100})).await;
    tokio::time::sleep(Duration::from_millis(1_050)).await;
    assert_eq!(number(control(&devnet, "control.status", json!({})).await), 20);
    devnet.shutdown().await;
}

#[tokio::test]
async fn a_chain_on_disk_goes_on_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let with_state = || Options { state: Some(folder.path().join("chain")), ..options() };
    let devnet = Devnet::start(with_state()).await.unwrap();
    control(&devnet, "control.transfer", json!({"from": "alice", "to": "bob", "amount": "1.000 HBD"})).await;
    let before = control(&devnet, "control.produce", json!({"count": 3})).await;
    devnet.shutdown().await;
    let other_genesis = Genesis::demo([9; 32], Timestamp::from_seconds(1));
    let devnet = Devnet::start(Options { genesis: other_genesis, ..with_state() }).await.unwrap();
    let after = control(&devnet, "control.status", json!({})).await;
    assert_eq!((&after["head"], &after["irreversible"]), (&before["head"], &before["irreversible"]));
    assert_eq!(devnet.genesis().seed, [7; 32]);
    let accounts = ask(&devnet, "condenser_api.get_accounts", json!([["bob"]])).await;
    assert_eq!(accounts[0]["hbd_balance"], "10001.000 HBD");
    devnet.shutdown().await;
}
