//! `hivetill mcp` with the official clients of the Model Context Protocol, TypeScript and Python, over standard input and
//! output and over streamable HTTP.

use std::{path::PathBuf, process::Command, sync::OnceLock};

use libtest_mimic::Trial;
use serde_json::{Value, json};

use super::{clients::run, folder, prepare, prepare_python, with};
use crate::{
    gate::{Gate, Upstream, tools::TOOLS},
    harness::{Process, shared},
    wallet::agent::Agent,
};

/// Every test of this file.
pub(super) fn tests() -> Vec<Trial> {
    let both = ["typescript", "python"].into_iter().flat_map(|client| ["stdio", "http"].map(|mode| (client, mode)));
    both.map(|(client, mode)| {
        let title = format!("the_official_{client}_client_pays_and_sells_over_{mode}");
        Trial::ignorable_test(crate::title(module_path!(), &title), move || {
            with(&missing(client), || session(client, mode))
        })
    })
    .collect()
}

fn sources() -> PathBuf {
    folder().join("mcp")
}

fn environment() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/mcp"))
}

/// Installs what a client needs; returns what is missing.
fn missing(client: &str) -> Option<String> {
    static NODE: OnceLock<Option<String>> = OnceLock::new();
    static PYTHON: OnceLock<Option<String>> = OnceLock::new();
    match client {
        "typescript" => NODE.get_or_init(|| prepare(&sources())).clone(),
        _ => PYTHON.get_or_init(|| prepare_python(&environment(), &sources().join("requirements.txt"))).clone(),
    }
}

fn session(client: &str, mode: &str) {
    let dev = shared();
    let (shop, agent) = (dev.shop(), Agent::new(dev, "[limits]\nday = \"2.000 HBD\"\n"));
    let (first, second) = (shop.open_payment(), shop.open_payment());
    let upstream = Upstream::start();
    let gate = Gate::start(dev, &shop, &upstream, TOOLS);
    let url = |slug: &str| format!("{}/for/{slug}", shop.api.base);
    let directory = agent.directory.to_str().expect("a path");
    let token = "a-token-of-at-least-32-characters-0";
    let settings = [
        format!("HIVETILL_KEY={}", agent.payer.key),
        format!("HIVETILL_API={}", shop.api.base),
        format!("HIVETILL_API_KEY={}", shop.key),
        format!("HIVETILL_MCP_TOKEN={token}"),
    ];
    let binary = env!("CARGO_BIN_EXE_hivetill");
    let mut arguments: Vec<&str> = settings.iter().map(String::as_str).collect();
    arguments.extend([binary, "mcp", "--wallet", directory, "--listen", "127.0.0.1:0"]);
    let mut server = (mode == "http").then(|| Process::program("env", &agent.directory, &arguments));
    let (place, secret) = match &mut server {
        Some(server) => (server.ready()["mcp"].as_str().expect("its URL").to_owned(), token),
        None => (binary.to_owned(), directory),
    };
    let mut command = match client {
        "typescript" => Command::new("node"),
        _ => Command::new(environment().join("bin/python")),
    };
    let program = sources().join(if client == "typescript" { "client.mjs" } else { "client.py" });
    command.arg(program).args([mode, &place, secret, &url(&first.slug), &url(&second.slug), &gate.url("/mcp")]);
    for setting in &settings[..3] {
        let (name, value) = setting.split_once('=').expect("a setting");
        command.env(name, value);
    }
    let printed = run(command.current_dir(sources()));
    let line = printed.lines().find(|line| line.starts_with('{')).unwrap_or_else(|| panic!("{printed}"));
    let seen: Value = serde_json::from_str(line).expect("one line of JSON");

    let tools = [
        "pay_url",
        "pay_tool",
        "get_receipt",
        "wallet_status",
        "create_payment",
        "get_payment",
        "list_payments",
        "refund_plan",
    ];
    assert_eq!(seen["tools"], json!(tools));
    assert_eq!((&seen["offer"]["status"], &seen["offer"]["amount"]), (&json!("offer"), &json!("1.500 HBD")), "{seen}");
    assert_eq!((&seen["offer"]["policy"]["permitted"], &seen["offer"]["isError"]), (&json!(true), &json!(false)));
    assert!(seen["offer"]["nextStep"].as_str().is_some_and(|step| step.contains("confirm: true")), "{}", seen["offer"]);
    assert_eq!(seen["before"]["limits"][0]["used"], "0.000 HBD", "a price is shown without a payment");
    assert_eq!(
        (&seen["paid"]["status"], &seen["paid"]["isError"]),
        (&json!("paid"), &json!(false)),
        "{}",
        seen["paid"]
    );
    assert!(seen["progress"].as_array().is_some_and(|steps| steps.len() >= 2), "{}", seen["progress"]);
    assert_eq!((&seen["again"]["replayed"], &seen["again"]["txId"]), (&json!(true), &seen["paid"]["txId"]));
    assert_eq!(seen["receipt"]["receipt"]["transaction"], seen["paid"]["txId"], "{}", seen["receipt"]);
    assert_eq!(seen["stored"]["txId"], seen["paid"]["txId"]);
    assert_eq!(
        (&seen["next"]["isError"], &seen["next"]["reason"]),
        (&json!(true), &json!("above_day_limit")),
        "{}",
        seen["next"]
    );
    assert!(seen["next"]["nextStep"].as_str().is_some_and(|step| step.contains("availableAt")), "{}", seen["next"]);
    assert_eq!((&seen["wrong"]["isError"], &seen["wrong"]["reason"]), (&json!(true), &json!("bad_arguments")));
    assert!(seen["wrong"]["message"].as_str().is_some_and(|text| text.contains("confrm")), "{}", seen["wrong"]);
    assert_eq!(seen["created"]["id"], seen["repeated"]["id"], "one idempotency key, one payment");
    assert_eq!((&seen["payment"]["status"], &seen["payment"]["id"]), (&json!("pending"), &seen["created"]["id"]));
    assert_eq!(seen["listed"]["data"].as_array().map(Vec::len), Some(1), "{}", seen["listed"]);
    assert_eq!((&seen["missing"]["httpStatus"], &seen["missing"]["isError"]), (&json!(404), &json!(true)));
    assert!(seen["missing"]["nextStep"].as_str().is_some_and(|step| !step.is_empty()));
    assert!(seen["plan"].is_object(), "{}", seen["plan"]);
    assert!(
        seen["resources"]
            .as_array()
            .is_some_and(|all| all.contains(&json!(format!("hivetill://receipts/{}", seen["paid"]["entry"]))))
    );
    assert_eq!(seen["page"], "# Agent wallet");
    assert!(!printed.contains(&agent.payer.key) && !printed.contains(&shop.key), "no secret is shown");
    assert_eq!(
        shop.until_status(&first.id, "completed")["internalId"],
        seen["paid"]["txId"],
        "the merchant sees the sale"
    );
    paid_a_tool(&seen, &upstream);
    assert_eq!((agent.charged(), agent.used()), (1_550, 1_550));
}

/// Checks what the agent saw of a paid tool of another server.
fn paid_a_tool(seen: &Value, upstream: &Upstream) {
    let (offer, paid, again) = (&seen["toolOffer"], &seen["toolPaid"], &seen["toolAgain"]);
    assert_eq!((&offer["status"], &offer["amount"]), (&json!("offer"), &json!("0.050 HBD")), "{offer}");
    assert!(offer["nextStep"].as_str().is_some_and(|step| step.starts_with("Call pay_tool again")), "{offer}");
    assert_eq!((&paid["status"], &paid["isError"]), (&json!("paid"), &json!(false)), "{paid}");
    assert_eq!(paid["response"]["structuredContent"]["report"], "Mugs are up 3 %", "{paid}");
    assert_eq!(paid["receipt"]["transaction"], paid["txId"], "{paid}");
    assert_eq!((&again["replayed"], &again["txId"]), (&json!(true), &paid["txId"]), "{again}");
    let wrong = &seen["toolWrong"];
    assert_eq!((&wrong["isError"], &wrong["reason"]), (&json!(true), &json!("bad_request")), "{wrong}");
    let [request] = &upstream.requests()[..] else { panic!("one request") };
    assert_eq!(request.body, b"{\"topic\":\"Mugs\"}");
}
