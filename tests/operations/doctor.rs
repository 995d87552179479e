//! `hivetill doctor`: healthy parts are reported as ok, problems by name and with a remedy.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use serde_json::{Value, json};

use crate::harness::{Dev, Ledger, LedgerProcess, Process, Receiver, Reply, Serve, Split, folder};

crate::tests!(
    a_healthy_gateway_is_reported_as_ok,
    a_dead_node_and_one_of_another_chain_are_reported,
    a_lying_node_among_three_is_reported,
    an_endpoint_is_tested_and_a_readable_master_key_is_reported,
    a_remote_engine_is_checked_and_files_of_another_user_are_reported,
);

/// Runs the doctor on a development ledger; returns its exit code and its report.
#[track_caller]
fn doctor(data: &Path, more: &[&str]) -> (i32, Value) {
    let data = format!("--data={}", data.display());
    let mut args = vec!["doctor", "--json", "--network=dev", &data];
    args.extend(more);
    let ended = Process::start(&args).finish();
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    (ended.code.expect("it ended by itself"), serde_json::from_str(&ended.stdout).expect("a line of JSON"))
}

/// Returns the findings with a grade.
fn found<'v>(report: &'v Value, grade: &str) -> Vec<&'v Value> {
    report["findings"].as_array().expect("findings").iter().filter(|finding| finding["severity"] == grade).collect()
}

/// Returns the findings about registration.
fn registrations(report: &Value) -> Vec<(&str, &str)> {
    let findings = report["findings"].as_array().expect("findings").iter();
    let about_it = findings.filter(|finding| finding["check"] == "registration");
    about_it.map(|f| (f["severity"].as_str().expect("a text"), f["message"].as_str().expect("a text"))).collect()
}

#[track_caller]
fn failing<'v>(report: &'v Value, what: &str) -> &'v Value {
    let failing = found(report, "failing");
    let finding = failing.into_iter().find(|finding| finding["check"].as_str().is_some_and(|is| is.contains(what)));
    let finding = finding.unwrap_or_else(|| panic!("nothing failing of {what}: {report}"));
    assert!(finding["remedy"].as_str().is_some_and(|remedy| !remedy.is_empty()), "{finding}");
    finding
}

fn a_healthy_gateway_is_reported_as_ok() {
    let folder = folder("doctor");
    let ledger = LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
    let data = folder.join("data");
    let node = format!("--node={}", ledger.ledger.rpc.base);
    let (code, report) = doctor(&data, &[&node]);
    assert_eq!((code, found(&report, "failing")), (0, vec![]), "{report}");
    assert!(!data.join("hivetill.redb").exists(), "it looks and makes nothing");
    assert_eq!(registrations(&report), [("ok", "registration is open")]);
    let _serve = Serve::with(&data, &ledger.ledger, &["--set=registration=closed"]);
    let (code, report) = doctor(&data, &[&node]);
    assert_eq!((code, found(&report, "failing")), (0, vec![]), "{report}");
    let stale = "the setting is open, but the running engine was started with closed";
    assert_eq!(registrations(&report), [("ok", "registration is closed"), ("warning", stale)]);
    let (_, report) = doctor(&data, &[&node, "--set=registration=closed"]);
    assert_eq!(registrations(&report), [("ok", "registration is closed")]);
    let well: Vec<&str> =
        found(&report, "ok").iter().map(|finding| finding["check"].as_str().expect("a text")).collect();
    for what in ["data directory", "disk", "engine", "clock"] {
        assert!(well.contains(&what), "{what}: {report}");
    }
    let seen: Vec<String> = found(&report, "ok").iter().map(|finding| finding["message"].to_string()).collect();
    assert!(seen.iter().any(|seen| seen.contains("hard fork 28")), "{report}");
    assert!(seen.iter().any(|seen| seen.contains("healthy, at block")), "{report}");
    let text = Process::start(&["doctor", "--network=dev", &node, &format!("--data={}", data.display())]).finish();
    assert!(text.success && text.stdout.contains("->") && text.stdout.contains("warning"), "{text:?}");
}

fn a_dead_node_and_one_of_another_chain_are_reported() {
    let dev = Dev::start();
    let data = folder("doctor");
    let node = dev.ledger.rpc.base.as_str();
    let (code, report) = doctor(&data, &["--node", node, "--node=http://127.0.0.1:1"]);
    assert_eq!(code, 13, "{report}");
    failing(&report, "node 127.0.0.1:1");
    assert_eq!(found(&report, "failing").len(), 1, "{report}");
    let zeros = format!("--set=chain_id={}", "0".repeat(64));
    let (code, report) = doctor(&data, &["--node", node, &zeros]);
    assert_eq!(code, 13, "{report}");
    assert!(failing(&report, "node")["message"].as_str().is_some_and(|seen| seen.contains("another chain")));
    failing(&report, "nodes");
    dev.ledger.disconnect(true);
    let (code, report) = doctor(&data, &["--node", node]);
    assert_eq!(code, 13, "{report}");
}

fn a_lying_node_among_three_is_reported() {
    let folder = folder("doctor");
    let chain = folder.join("chain");
    let listen = ["--listen", "127.0.0.1:0"].repeat(3);
    let mut args = vec!["ledger", "--json", "--control-listen", "127.0.0.1:0", "--block-interval", "250ms"];
    args.extend(listen);
    args.extend(["--state", chain.to_str().expect("a path")]);
    let mut process = Process::start(&args);
    let report = process.ready();
    let nodes: Vec<&str> = report["nodes"].as_array().expect("nodes").iter().filter_map(Value::as_str).collect();
    let ledger = Ledger::new(nodes[0], report["control"].as_str().expect("control"));
    let to = ledger.account("shop");
    ledger.order("transfer", &json!({ "from": "alice", "to": to.name, "amount": "1.000 HBD", "memo": "x" }));
    ledger.produce(4);
    let flags: Vec<String> = nodes.iter().map(|node| format!("--node={node}")).collect();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let (code, report) = doctor(&folder, &flags);
    assert_eq!((code, found(&report, "failing")), (0, vec![]), "{report}");
    ledger.order("node", &json!({ "node": 1, "lie": { "kind": "inflateTransfers" } }));
    let (code, report) = doctor(&folder, &flags);
    assert_eq!(code, 13, "{report}");
    let liar = nodes[1].trim_start_matches("http://");
    assert!(
        failing(&report, liar)["message"].as_str().is_some_and(|seen| seen.contains("differs from that of")),
        "{report}"
    );
    assert_eq!(found(&report, "failing").len(), 1, "only the liar: {report}");
    let (code, report) = doctor(&folder, &flags[..2]);
    assert_eq!((code, found(&report, "failing").len()), (13, 2), "of two, the faulty one is unknown: {report}");
}

fn an_endpoint_is_tested_and_a_readable_master_key_is_reported() {
    let dev = Dev::start();
    let data = folder("doctor");
    let node = format!("--node={}", dev.ledger.rpc.base);
    let receiver = Receiver::start();
    let plain = "--set=webhooks.allow_insecure=true";
    let (code, report) = doctor(&data, &[&node, plain, "--webhook", &receiver.url()]);
    assert_eq!(code, 0, "{report}");
    assert_eq!(receiver.hook(0).json()["from"], "hivetill doctor");
    receiver.reply(&[Reply::Status(500)]);
    let (code, report) = doctor(&data, &[&node, plain, "--webhook", &receiver.url()]);
    assert_eq!(code, 13);
    failing(&report, "webhooks");
    let (code, report) = doctor(&data, &[&node, "--webhook", &receiver.url()]);
    assert!(code == 13 && failing(&report, "webhooks")["message"].as_str().is_some_and(|seen| seen.contains("https")));
    let (code, report) = doctor(&data, &[&node, "--webhook", "https://10.0.0.1/hook"]);
    assert!(
        code == 13 && failing(&report, "webhooks")["message"].as_str().is_some_and(|seen| seen.contains("private"))
    );
    let key = data.join("key");
    fs::write(&key, "00".repeat(32)).expect("written");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).expect("ours");
    let (code, report) = doctor(&data, &[&node, &format!("--set=master_key_file={}", key.display())]);
    assert!(
        code == 13 && failing(&report, "settings")["remedy"].as_str().is_some_and(|r| r.contains("600")),
        "{report}"
    );
    assert!(!report.to_string().contains("0000000000"), "{report}");
}

fn a_remote_engine_is_checked_and_files_of_another_user_are_reported() {
    let folder = folder("doctor");
    let ledger = LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
    let node = format!("--node={}", ledger.ledger.rpc.base);
    let mut split = Split::start(&folder.join("data"), &ledger.ledger);
    let token = fs::read_to_string(split.data.join("grpc-token")).expect("the engine's token");
    let (url, token) = (format!("--engine-url={}", split.grpc), format!("--set=grpc.token={}", token.trim()));
    // The data directory of this machine belongs to another gateway: only the engine is checked.
    let nowhere = folder.join("nowhere");
    let (code, report) = doctor(&nowhere, &[&node, &url, &token]);
    assert_eq!((code, found(&report, "failing")), (0, vec![]), "{report}");
    let seen: Vec<String> = found(&report, "ok").iter().map(|finding| finding["message"].to_string()).collect();
    for words in ["healthy, at block", "of commit", "webhook secrets of 0 merchants are encrypted"] {
        assert!(seen.iter().any(|seen| seen.contains(words)), "{words}: {report}");
    }
    let (code, report) = doctor(&nowhere, &[&node, &url, "--set=grpc.token=a-wrong-token-of-32-characters-or-more"]);
    assert_eq!(code, 13, "{report}");
    failing(&report, "engine");
    assert!(split.engine.stop().success());
    let (code, report) = doctor(&split.data, &[&node]);
    assert_eq!((code, found(&report, "failing")), (0, vec![]), "{report}");
    assert!(found(&report, "ok").iter().any(|finding| finding["check"] == "store"), "the store is opened: {report}");

    let log = split.data.join("hivetill.wal");
    fs::set_permissions(&log, fs::Permissions::from_mode(0o400)).expect("ours");
    let (code, report) = doctor(&split.data, &[&node]);
    assert_eq!(code, 13, "{report}");
    assert!(failing(&report, "data directory")["message"].as_str().is_some_and(|seen| seen.contains("hivetill.wal")));
    fs::set_permissions(&log, fs::Permissions::from_mode(0o600)).expect("ours");
    fs::write(split.data.join("hivetill.redb"), b"no database at all").expect("written");
    let (code, report) = doctor(&split.data, &[&node]);
    assert_eq!(code, 13, "{report}");
    failing(&report, "store");
}
