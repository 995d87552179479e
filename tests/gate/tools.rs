//! The tools of a gate: x402 over MCP as in `specs/transports-v2/mcp.md` of the x402 specification, from outside.

use std::{io::Write as _, net::TcpStream};

use serde_json::{Value, json};

use super::{Behavior, Gate, Upstream, sales, sold};
use crate::{
    harness::{Dev, Payer, Shop, shared, until},
    wallet::agent::Agent,
    x402::{json_of, nonce, v2},
};

crate::tests!(
    the_obligations_of_a_server_in_the_mcp_transport_hold,
    a_failed_tool_is_not_charged,
    a_tool_that_failed_after_its_settlement_is_owed,
    a_call_whose_client_disconnects_is_served_when_it_is_repeated,
    a_wallet_pays_a_tool_once_until_its_budget_ends,
    calls_that_pay_nothing_are_reported,
);

/// The tools of a gate, for its file.
pub(crate) const TOOLS: &str = "[[tool]]\nname = \"report\"\npath = \"/report-tool\"\nprice = \"0.050 HBD\"\n\
    description = \"A report on a topic\"\n[tool.input_schema]\ntype = \"object\"\nrequired = [\"topic\"]\n\
    [tool.input_schema.properties.topic]\ntype = \"string\"\n\
    [[tool]]\nname = \"work\"\npath = \"/work-tool\"\nprice = \"1.500 HBD\"\nsettle = \"before\"\n\
    [[tool]]\nname = \"greet\"\npath = \"/greet\"\ndescription = \"Greets\"\n";
const PAYMENT: &str = "x402/payment";
const SETTLEMENT: &str = "x402/payment-response";

/// A gate with tools, and the accounts of a sale.
struct Scene {
    dev: &'static Dev,
    shop: Shop,
    buyer: Payer,
    upstream: Upstream,
    gate: Gate,
}

impl Scene {
    fn new() -> Self {
        let dev = shared();
        let (shop, upstream) = (dev.shop(), Upstream::start());
        let gate = Gate::start(dev, &shop, &upstream, TOOLS);
        Self { dev, buyer: dev.ledger.account("buyer"), shop, upstream, gate }
    }

    /// Calls a method of the endpoint; returns the response.
    #[track_caller]
    fn rpc(&self, method: &str, params: &Value) -> Value {
        let request =
            self.gate.api.post("/mcp", &json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }));
        let request = request.header("accept", "application/json, text/event-stream");
        request.header("mcp-protocol-version", "2025-06-18").send().ok(200)
    }

    /// Calls a tool with this topic; returns the result.
    #[track_caller]
    fn call(&self, tool: &str, topic: &str, payment: Option<&Value>) -> Value {
        self.rpc("tools/call", &params(tool, topic, payment))["result"].clone()
    }

    /// Signs a payment of an amount for the requirements of a result.
    #[track_caller]
    fn payment(&self, required: &Value, amount: &str) -> Value {
        let accepted = &required["structuredContent"]["accepts"][0];
        let (nonce, to) = (nonce(), accepted["payTo"].as_str().expect("a payee"));
        let transaction = self.dev.ledger.signed(&self.buyer, &[(to, amount, &format!("x402:{nonce}"))]);
        v2(&json_of(&transaction), &nonce, accepted)
    }
}

fn params(tool: &str, topic: &str, payment: Option<&Value>) -> Value {
    let mut params = json!({ "name": tool, "arguments": { "topic": topic } });
    if let Some(payment) = payment {
        params["_meta"] = json!({ PAYMENT: payment });
    }
    params
}

/// Returns the JSON in the first text of a result.
fn text_of(result: &Value) -> Value {
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    serde_json::from_str(text).unwrap_or_default()
}

/// Returns whether a result is payment requirements in both formats, with this reason.
fn requires(result: &Value, reason: &str) -> bool {
    let content = &result["structuredContent"];
    result["isError"] == true
        && content["x402Version"] == 2
        && content["error"] == reason
        && content["accepts"].as_array().is_some_and(|accepts| accepts.len() == 1)
        && result["content"][0]["type"] == "text"
        && text_of(result) == *content
}

/// Calls a tool in the protocol version without sessions and initialization.
#[track_caller]
fn call_2026(scene: &Scene, payment: Option<&Value>) -> Value {
    let mut params = params("report", "Mugs", payment);
    let prefix = "io.modelcontextprotocol";
    params["_meta"][format!("{prefix}/protocolVersion")] = "2026-07-28".into();
    params["_meta"][format!("{prefix}/clientInfo")] = json!({ "name": "test", "version": "1" });
    params["_meta"][format!("{prefix}/clientCapabilities")] = json!({ "extensions": { "org.x402/payment": {} } });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let request = scene.gate.api.post("/mcp", &body).header("accept", "application/json, text/event-stream");
    let request = request.header("mcp-protocol-version", "2026-07-28").header("mcp-method", "tools/call");
    let response = request.header("mcp-name", "report").send();
    assert_eq!(response.status, 200, "{}", response.text());
    let text = response.text();
    let json = text.lines().rev().find_map(|line| line.strip_prefix("data: ")).unwrap_or(&text);
    serde_json::from_str::<Value>(json).unwrap_or_else(|error| panic!("{error}: {text}"))["result"].clone()
}

fn the_obligations_of_a_server_in_the_mcp_transport_hold() {
    let scene = Scene::new();
    let unpaid = scene.call("report", "Mugs", None);
    let executed_unpaid = scene.upstream.requests().len();
    let resource =
        json!({ "url": "mcp://tool/report", "description": "A report on a topic", "mimeType": "application/json" });
    let offer = json!({
        "scheme": "exact", "network": "hive:mainnet", "amount": "50", "asset": "HBD", "payTo": scene.shop.account.name,
        "maxTimeoutSeconds": 60, "extra": {},
    });
    let payment = scene.payment(&unpaid, "0.050 HBD");
    let paid = scene.call("report", "Mugs", Some(&payment));
    let receipt = &paid["_meta"][SETTLEMENT];
    let executed_paid = scene.upstream.requests().len();
    let used = scene.call("report", "Mugs", Some(&payment));
    let other = scene.call("report", "Cups", Some(&payment));
    let low = scene.call("report", "Mugs", Some(&scene.payment(&unpaid, "0.049 HBD")));
    let malformed = scene.call("report", "Mugs", Some(&json!({ "x402Version": 2 })));
    let executed = scene.upstream.requests().len();
    let (modern_unpaid, modern_paid) =
        (call_2026(&scene, None), call_2026(&scene, Some(&scene.payment(&unpaid, "0.050 HBD"))));
    let amount = "invalid_exact_hive_payload_amount";
    let obligations = [
        ("an unpaid call returns isError and PaymentRequired in both formats", requires(&unpaid, "payment_required")),
        ("the requirements name the tool as resource", unpaid["structuredContent"]["resource"] == resource),
        ("the requirements have the price", unpaid["structuredContent"]["accepts"] == json!([offer])),
        ("an unpaid call has no settlement response", unpaid["_meta"][SETTLEMENT].is_null()),
        ("an unpaid call executes nothing", executed_unpaid == 0),
        (
            "a paid call returns the content without isError",
            text_of(&paid)["report"] == "Mugs are up 3 %" && paid["isError"] != true,
        ),
        ("a paid call executes once", executed_paid == 1),
        ("the settlement response is in _meta", receipt["success"] == true && receipt["network"] == "hive:mainnet"),
        ("it names the payer", receipt["payer"] == scene.buyer.name.as_str()),
        ("it names the transaction", receipt["transaction"].as_str().is_some_and(|id| id.len() == 40)),
        ("a used payment returns PaymentRequired with the reason", requires(&used, "duplicate_settlement")),
        ("it is refused for another call, too", requires(&other, "duplicate_settlement")),
        ("an invalid payment returns PaymentRequired with the reason", requires(&low, amount)),
        ("a malformed payment returns PaymentRequired with the reason", requires(&malformed, "invalid_payload")),
        ("a refusal has a settlement response", low["_meta"][SETTLEMENT]["errorReason"] == amount),
        ("it reports no success", low["_meta"][SETTLEMENT]["success"] == false),
        ("a refused payment executes nothing", executed == 1),
        ("results of earlier protocol versions have no resultType", unpaid["resultType"].is_null()),
        (
            "without support of the extension the tool-result binding is used",
            requires(&modern_unpaid, "payment_required"),
        ),
        ("a tool result of MCP 2026-07-28 has resultType complete", modern_unpaid["resultType"] == "complete"),
        ("so has a paid one", modern_paid["resultType"] == "complete"),
        ("and its settlement response", modern_paid["_meta"][SETTLEMENT]["success"] == true),
    ];
    for (obligation, holds) in obligations {
        assert!(
            holds,
            "{obligation}: {unpaid}\n{paid}\n{used}\n{other}\n{low}\n{malformed}\n{modern_unpaid}\n{modern_paid}"
        );
    }
    sold(&scene.shop, 2);
    let listed = scene.rpc("tools/list", &json!({}))["result"]["tools"].clone();
    assert_eq!(listed[0]["description"], "A report on a topic Costs 0.050 HBD (x402).", "{listed}");
    assert_eq!((&listed[0]["inputSchema"]["required"], &listed[2]["name"]), (&json!(["topic"]), &json!("greet")));
    assert_eq!(scene.upstream.requests()[0].body, b"{\"topic\":\"Mugs\"}");
    let signature = payment["payload"]["signedTransaction"]["signatures"][0].as_str().expect("a signature");
    assert!(!scene.gate.process.log().contains(signature), "payments are not logged");
}

fn a_failed_tool_is_not_charged() {
    let scene = Scene::new();
    let payment = scene.payment(&scene.call("report", "Mugs", None), "0.050 HBD");
    for (behavior, text) in [(Behavior::Fails(500), "no report"), (Behavior::HangsUp, "upstream_unreachable")] {
        scene.upstream.set(behavior);
        let failed = scene.call("report", "Mugs", Some(&payment));
        assert_eq!((&failed["isError"], &failed["_meta"][SETTLEMENT]), (&json!(true), &Value::Null), "{failed}");
        assert!(failed["content"][0]["text"].as_str().is_some_and(|shown| shown.contains(text)), "{failed}");
    }
    assert!(sales(&scene.shop).is_empty() && scene.gate.owed().is_empty());
    scene.upstream.set(Behavior::Works);
    let served = scene.call("report", "Mugs", Some(&payment));
    assert_eq!(served["_meta"][SETTLEMENT]["success"], true, "the same payment is still good: {served}");
    sold(&scene.shop, 1);
}

fn a_tool_that_failed_after_its_settlement_is_owed() {
    let scene = Scene::new();
    let payment = scene.payment(&scene.call("work", "Mugs", None), "1.500 HBD");
    scene.upstream.set(Behavior::Fails(503));
    let failed = scene.call("work", "Mugs", Some(&payment));
    assert_eq!((&failed["isError"], &failed["_meta"][SETTLEMENT]["success"]), (&json!(true), &json!(true)), "{failed}");
    let owed = scene.gate.owed();
    assert_eq!(
        (owed.len(), &owed[0]["state"], &owed[0]["amount"]),
        (1, &json!("owed"), &json!("1.500 HBD")),
        "{owed:?}"
    );
    assert!(owed[0]["request"].as_str().is_some_and(|request| request.starts_with("tools/call work ")), "{owed:?}");
    scene.upstream.set(Behavior::Works);
    let other = scene.call("work", "Cups", Some(&payment));
    assert!(requires(&other, "duplicate_settlement"), "the credit is for the same arguments: {other}");
    let served = scene.call("work", "Mugs", Some(&payment));
    assert_eq!((served["isError"] == true, text_of(&served)["report"].is_string()), (false, true), "{served}");
    assert!(until("it to be served", || Some(scene.gate.owed()).filter(Vec::is_empty)).is_empty());
    let forwarded = scene.upstream.requests().pop().expect("a request");
    assert!(forwarded.head.contains(&format!("x-hivetill-payer: {}", scene.buyer.name)), "{}", forwarded.head);
    sold(&scene.shop, 1);
}

fn a_call_whose_client_disconnects_is_served_when_it_is_repeated() {
    let scene = Scene::new();
    let payment = scene.payment(&scene.call("work", "Mugs", None), "1.500 HBD");
    let params = params("work", "Mugs", Some(&payment));
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
    let address = scene.gate.api.base.strip_prefix("http://").expect("http");
    let mut stream = TcpStream::connect(address).expect("the gate listens");
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2025-06-18\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).expect("it is sent");
    drop(stream);
    let served = until("the call to be served", || {
        let result = scene.call("work", "Mugs", Some(&payment));
        (result["isError"] != true).then_some(result)
    });
    assert_eq!(served["_meta"][SETTLEMENT]["success"], true, "{served}");
    sold(&scene.shop, 1);
    let used = scene.call("work", "Mugs", Some(&payment));
    assert!(requires(&used, "duplicate_settlement"), "{used}");
}

fn a_wallet_pays_a_tool_once_until_its_budget_ends() {
    let scene = Scene::new();
    let agent = Agent::new(scene.dev, "[limits]\nday = \"0.099 HBD\"\n");
    let url = scene.gate.url("/mcp");
    let pay = |topic: &str, more: &[&str]| {
        let arguments = json!({ "topic": topic }).to_string();
        agent.pay(&url, &[&["--tool", "report", "--data", arguments.as_str()][..], more].concat())
    };
    let offer = pay("Mugs", &["--dry-run"]);
    assert_eq!((offer.code, &offer.json["amount"]), (Some(0), &json!("0.050 HBD")), "{} {}", offer.json, offer.stderr);
    assert_eq!((scene.upstream.requests().len(), agent.used()), (0, 0), "a dry run executes and reserves nothing");
    let paid = pay("Mugs", &[]);
    assert_eq!((paid.code, &paid.json["status"]), (Some(0), &json!("paid")), "{} {}", paid.json, paid.stderr);
    assert_eq!(paid.json["response"]["structuredContent"]["report"], "Mugs are up 3 %", "{}", paid.json);
    assert_eq!(paid.json["receipt"]["transaction"], paid.json["txId"], "{}", paid.json);
    let again = pay("Mugs", &[]);
    assert_eq!((&again.json["replayed"], &again.json["txId"]), (&json!(true), &paid.json["txId"]), "{}", again.json);
    let over = pay("Cups", &[]);
    assert_eq!((over.code, &over.json["reason"]), (Some(10), &json!("above_day_limit")), "{}", over.json);
    assert_eq!((agent.charged(), agent.used(), scene.upstream.requests().len()), (50, 50, 1));
    let history = agent.wallet(&["history"]).json;
    let entry = &history["payments"][0];
    assert_eq!((&entry["method"], &entry["url"]), (&json!("tools/call"), &json!(format!("{url}#report"))), "{history}");
    sold(&scene.shop, 1);
}

fn calls_that_pay_nothing_are_reported() {
    let scene = Scene::new();
    let agent = Agent::new(scene.dev, "[limits]\nday = \"2.000 HBD\"\n");
    let url = scene.gate.url("/mcp");
    let free = agent.pay(&url, &["--tool", "greet"]);
    assert_eq!((free.code, &free.json["status"]), (Some(0), &json!("free")), "{} {}", free.json, free.stderr);
    let unknown = agent.pay(&url, &["--tool", "steal"]);
    assert_eq!((unknown.code, &unknown.json["reason"]), (Some(11), &json!("mcp_error_-32602")), "{}", unknown.json);
    let elsewhere = agent.pay(&scene.upstream.url(), &["--tool", "report"]);
    assert_eq!(
        (elsewhere.code, &elsewhere.json["reason"]),
        (Some(13), &json!("server_unreachable")),
        "{}",
        elsewhere.json
    );
    let wrong = agent.pay(&url, &["--tool", "report", "--data", "[]"]);
    assert_eq!((wrong.code, &wrong.json["reason"]), (Some(2), &json!("bad_request")), "{}", wrong.json);
    scene.upstream.set(Behavior::Fails(500));
    let failed = agent.pay(&url, &["--tool", "greet"]);
    assert_eq!((failed.code, &failed.json["reason"]), (Some(11), &json!("tool_failed")), "{}", failed.json);
    assert_eq!((agent.charged(), agent.used()), (0, 0));
}
