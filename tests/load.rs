//! `hivetill load` as an operator runs it.

use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::{
    gate::{Gate, Upstream},
    harness::{Dev, shared},
};

crate::tests!(
    every_workload_measures_its_requests,
    a_requested_rate_is_not_exceeded,
    a_run_that_hits_rate_limits_fails,
    paid_requests_through_a_gate_are_compared_with_its_upstream,
    invalid_load_options_fail_before_the_measurement,
);

fn command(dev: &Dev, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hivetill"));
    command.env_clear().arg("load").args(arguments).args(["--url", &dev.api.base, "--node", &dev.ledger.rpc.base]);
    command.env("HIVETILL_API_KEY", dev.startup["merchant"]["apiKey"].as_str().expect("a key"));
    command.env("HIVETILL_KEY", &dev.demo_account("alice").key);
    command
}

fn stderr_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn report(dev: &Dev, arguments: &[&str]) -> Value {
    let more = ["--json", "--duration", "500ms", "--warmup", "100ms", "--connections", "4"];
    let output = command(dev, &[arguments, &more[..]].concat()).output().expect("the binary starts");
    assert!(output.status.success(), "{arguments:?}: {}", stderr_of(&output));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn every_workload_measures_its_requests() {
    let dev = shared();
    for (workload, status) in
        [("create", "201"), ("status", "200"), ("list", "200"), ("checkout", "200"), ("x402-verify", "200")]
    {
        let report = report(dev, &[workload, "--sessions", "20"]);
        assert_eq!((&report["workload"], &report["errors"]), (&json!(workload), &json!(0)));
        assert_eq!(report["statuses"][status], report["responses"], "{report}");
        assert!(report["responses"].as_u64() > Some(0) && report["latencyUs"]["p50"].as_u64() > Some(0), "{report}");
        assert!(report["server"]["cpuUsPerResponse"].as_f64() > Some(0.0), "{report}");
        assert_eq!(report["limits"], Value::Null);
    }
    // Each signed payment is settled once.
    let settled = report(dev, &["x402-settle", "--sessions", "4"]);
    assert_eq!((&settled["responses"], &settled["errors"]), (&json!(4), &json!(0)), "{settled}");
    let mixed = report(dev, &["mixed", "--sessions", "5"]);
    assert!(mixed["statuses"]["201"].as_u64() < mixed["statuses"]["200"].as_u64(), "{mixed}");
}

fn a_requested_rate_is_not_exceeded() {
    let report = report(shared(), &["status", "--sessions", "5", "--rate", "40"]);
    // Half a second of it. A busy machine may be slower, never faster.
    assert!(report["responses"].as_u64() <= Some(24), "{report}");
    assert_eq!(report["rate"], 40);
}

fn a_run_that_hits_rate_limits_fails() {
    let dev = Dev::with(&["--limits", "production"]);
    let output =
        command(&dev, &["create", "--json", "--duration", "2s", "--warmup", "1s"]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(stderr_of(&output).contains("rate limits"), "{}", stderr_of(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("the report nevertheless");
    assert!(report["limits"].as_str().is_some_and(|limits| limits.contains("writes")), "{report}");
}

fn paid_requests_through_a_gate_are_compared_with_its_upstream() {
    let dev = shared();
    let (shop, upstream) = (dev.shop(), Upstream::start());
    let gate = Gate::start(dev, &shop, &upstream, "");
    let (paid, bare) = (gate.url("/report"), format!("{}/report", upstream.url()));
    let load = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hivetill"));
        command.env_clear().args(["load", "gate", "--node", &dev.ledger.rpc.base]).args(arguments);
        command.env("HIVETILL_KEY", &dev.demo_account("alice").key).output().expect("it starts")
    };
    let options = ["--sessions", "4", "--connections", "2", "--rate", "50", "--duration", "3s", "--warmup", "100ms"];
    let output = load(&[&["--url", &paid, "--upstream", &bare, "--json"][..], &options[..]].concat());
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("one line of JSON");
    assert_eq!((&report["workload"], &report["errors"]), (&json!("gate"), &json!(0)), "{report}");
    assert!(report["responses"].as_u64().is_some_and(|count| (1..=4).contains(&count)), "each payment once: {report}");
    assert_eq!(report["statuses"], json!({ "200": report["responses"] }), "{report}");
    assert!(report["latencyUs"]["p99"].as_u64() > Some(0) && report["server"]["pid"].is_u64(), "{report}");
    let compared = &report["upstream"];
    assert_eq!((&compared["url"], &compared["errors"]), (&json!(bare), &json!(0)), "{report}");
    assert!(compared["responses"].as_u64() > Some(4) && compared["latencyUs"]["p50"].as_u64() > Some(0), "{report}");
    assert!(report["ratio"].as_f64().is_some_and(|ratio| ratio > 0.0 && ratio < 1.0), "{report}");
    let requests = upstream.requests();
    assert!(!requests.iter().any(|request| request.head.contains("payment")), "the upstream gets no payment");
    // Offers that are no route of a gate are refused before anything is paid.
    let free = load(&["--url", &gate.url("/free"), "--upstream", &bare, "--duration", "200ms"]);
    assert!(free.status.code() == Some(1) && stderr_of(&free).contains("not with 402"), "{free:?}");
    let alone = load(&["--url", &paid]);
    assert!(alone.status.code() == Some(2) && stderr_of(&alone).contains("--upstream"), "{alone:?}");
}

fn invalid_load_options_fail_before_the_measurement() {
    let dev = shared();
    let mut wrong_key = command(dev, &["status"]);
    wrong_key.env("HIVETILL_API_KEY", "sk_live_none");
    let output = wrong_key.output().expect("it starts");
    assert!(output.status.code() == Some(1) && stderr_of(&output).contains("401"), "{output:?}");
    let mut unsigned = command(dev, &["x402-verify", "--sessions", "1"]);
    unsigned.env_remove("HIVETILL_KEY");
    assert!(stderr_of(&unsigned.output().expect("it starts")).contains("HIVETILL_KEY"));
    let mut elsewhere = Command::new(env!("CARGO_BIN_EXE_hivetill"));
    elsewhere.args(["load", "status", "--url", "http://192.0.2.1:8080", "--api-key", "sk_live_none"]);
    assert!(stderr_of(&elsewhere.output().expect("it starts")).contains("--allow-remote"));
}
