//! The obligations of a client in `specs/transports-v2/mcp.md` of the x402 specification.

use super::*;

const OURS: TxId = TxId([1; 20]);

fn required(error: &str) -> Value {
    json!({
        "x402Version": 2, "error": error, "resource": { "url": "mcp://tool/report" },
        "accepts": [{
            "scheme": "exact", "network": "hive:mainnet", "amount": "50", "asset": "HBD", "payTo": "shop.demo",
            "maxTimeoutSeconds": 60, "extra": {},
        }],
    })
}

fn text(json: &Value) -> Value {
    json!([{ "type": "text", "text": json.to_string() }])
}

fn receipt(success: bool, transaction: &str, reason: &str) -> Value {
    json!({ "success": success, "transaction": transaction, "network": "hive:mainnet", "errorReason": reason })
}

fn error(code: i32, data: Option<Value>) -> Reply {
    Reply::Error(ErrorData::new(ErrorCode(code), "an error", data))
}

#[test]
fn requirements_are_found_in_each_place_that_the_transport_names() {
    let (offer, other) = (required("payment_required"), required("another"));
    let wrapped = json!({ "x402/error": { "code": 402, "message": "Payment required", "data": offer } });
    let found = [
        json!({ "isError": true, "structuredContent": offer, "content": text(&offer) }),
        json!({ "isError": true, "structuredContent": offer, "content": text(&other) }),
        json!({ "isError": true, "structuredContent": wrapped, "content": text(&other) }),
        json!({ "isError": true, "content": text(&offer) }),
        json!({ "isError": true, "content": text(&wrapped) }),
        json!({ "isError": true, "structuredContent": { "code": 1 }, "content": text(&offer) }),
        json!({ "isError": true, "resultType": "complete", "structuredContent": offer, "content": [] }),
    ];
    for result in found {
        assert_eq!(required_of(&Reply::Result(result.clone())), Some(offer.clone()), "{result}");
    }
    assert_eq!(required_of(&error(402, Some(offer.clone()))), Some(offer.clone()), "version 1 of the transport");
    let absent = [
        json!({ "structuredContent": offer, "content": text(&offer) }),
        json!({ "isError": false, "structuredContent": offer, "content": text(&offer) }),
        json!({ "isError": true, "structuredContent": { "x402Version": 2 }, "content": [] }),
        json!({ "isError": true, "structuredContent": { "accepts": [] }, "content": [] }),
        json!({ "isError": true, "content": [{ "type": "text", "text": "Payment required" }] }),
        json!({ "isError": true, "content": [{ "type": "image", "data": "" }] }),
    ];
    for result in absent {
        assert_eq!(required_of(&Reply::Result(result.clone())), None, "{result}");
    }
    assert_eq!(required_of(&error(-32_602, Some(offer))), None);
}

#[test]
fn the_payment_is_in_the_meta_of_the_same_call() {
    let request = Request::get(Url::parse("https://tools.example/mcp").unwrap());
    let arguments = json!({ "topic": "mugs" }).as_object().unwrap().clone();
    let call = ToolCall::new(request, "report".to_owned(), arguments);
    let params = |payment: Option<&Value>| serde_json::to_value(call.params(payment)).unwrap();
    let payment = json!({ "x402Version": 2, "accepted": {}, "payload": {} });
    assert_eq!(params(None), json!({ "name": "report", "arguments": { "topic": "mugs" } }));
    let paid = json!({ "name": "report", "arguments": { "topic": "mugs" }, "_meta": { "x402/payment": payment } });
    assert_eq!(params(Some(&payment)), paid);
    assert_eq!(call.url().as_str(), "https://tools.example/mcp#report");
}

#[test]
fn another_tool_or_other_arguments_are_another_purchase() {
    let call = |url: &str, tool: &str, arguments: Value, key: Option<&str>| {
        let request = Request::get(Url::parse(url).unwrap());
        let request = key.map_or(Ok(request.clone()), |key| request.clone().with_idempotency_key(key)).unwrap();
        ToolCall::new(request, tool.to_owned(), arguments.as_object().unwrap().clone()).key()
    };
    let first = call("https://a.example/mcp", "report", json!({ "a": 1, "b": 2 }), None);
    assert_eq!(first, call("https://a.example/mcp", "report", json!({ "b": 2, "a": 1 }), None));
    for other in [
        call("https://b.example/mcp", "report", json!({ "a": 1, "b": 2 }), None),
        call("https://a.example/mcp", "other", json!({ "a": 1, "b": 2 }), None),
        call("https://a.example/mcp", "report", json!({ "a": 1, "b": 3 }), None),
        call("https://a.example/mcp", "report", json!({ "a": 1, "b": 2 }), Some("again")),
        Request::get(Url::parse("https://a.example/mcp").unwrap()).key(),
    ] {
        assert_ne!(first, other);
    }
}

#[test]
fn each_reply_to_a_payment_has_one_meaning() {
    let (ours, theirs) = (OURS.to_string(), TxId([2; 20]).to_string());
    let refused = |reason: &str, is_ours| Verdict::Refused { reason: reason.to_owned(), message: None, is_ours };
    let not_yet = |reason: &str| Verdict::NotYet { reason: reason.to_owned(), wait: RETRY };
    let content = json!([{ "type": "text", "text": "Mugs are up 3 %" }]);
    let paid = Verdict::Paid { response: json!({ "content": content }) };
    let meta = |receipt: Value| json!({ "x402/payment-response": receipt });
    let again = |reason: &str| json!({ "isError": true, "structuredContent": required(reason), "content": [] });
    let with = |mut result: Value, receipt: Value| {
        result["_meta"] = meta(receipt);
        result
    };
    let undelivered = Verdict::Undelivered { reason: "tool_failed".to_owned() };
    let cases = [
        (json!({ "content": content, "_meta": meta(receipt(true, &ours, "")) }), paid.clone()),
        (json!({ "isError": false, "content": content }), paid),
        (json!({ "content": content, "_meta": meta(receipt(true, &theirs, "")) }), Verdict::Foreign),
        (json!({ "content": content, "_meta": meta(receipt(true, "nonsense", "")) }), Verdict::Foreign),
        (
            json!({ "content": [], "_meta": meta(receipt(false, "", "insufficient_funds")) }),
            refused("insufficient_funds", false),
        ),
        (again("insufficient_funds"), refused("insufficient_funds", false)),
        (
            with(again("Settlement failed"), receipt(false, "", "insufficient_funds")),
            refused("insufficient_funds", false),
        ),
        (with(again("x"), receipt(false, &ours, "duplicate_settlement")), refused("duplicate_settlement", true)),
        (with(again("x"), receipt(false, &theirs, "duplicate_settlement")), refused("duplicate_settlement", false)),
        (with(again("x"), receipt(false, &ours, "settlement_pending")), not_yet("settlement_pending")),
        (again("unexpected_settle_error"), not_yet("unexpected_settle_error")),
        (json!({ "isError": true, "content": [], "_meta": meta(receipt(true, &ours, "")) }), undelivered),
        (json!({ "isError": true, "content": [] }), refused("tool_failed", false)),
    ];
    for (result, expected) in cases {
        assert_eq!(judge(&Reply::Result(result.clone()), OURS).0, expected, "{result}");
    }
    // Earlier versions of the transport had the receipt of a failure in the structured content.
    let mut earlier = again("Payment settlement failed: insufficient funds");
    earlier["structuredContent"]["x402/payment-response"] = receipt(false, "", "insufficient_funds");
    assert_eq!(judge(&Reply::Result(earlier), OURS).0, refused("insufficient_funds", false));
    assert_eq!(judge(&error(-32_603, None), OURS).0, not_yet("mcp_error_-32603"));
    let invalid =
        Verdict::Refused { reason: "mcp_error_-32602".into(), message: Some("an error".into()), is_ours: false };
    assert_eq!(judge(&error(-32_602, None), OURS).0, invalid);
}

#[test]
fn a_false_offer_of_a_tool_is_not_quoted() {
    let read = |json: &Value| Quote::read_required(json, Currency::Hbd);
    assert!(read(&required("x")).is_ok());
    let change = |member: &str, value: Value| {
        let mut json = required("x");
        json["accepts"][0][member] = value;
        json
    };
    let cases = [
        (change("scheme", json!("upto")), "no_hive_offer"),
        (change("network", json!("eip155:84532")), "no_hive_offer"),
        (change("amount", json!("-50")), "malformed_offer"),
        (change("payTo", json!("Shop.Demo")), "malformed_offer"),
        (json!({ "x402Version": 3, "accepts": [] }), "malformed_offer"),
        (json!({ "x402Version": 2, "accepts": [] }), "no_offer"),
    ];
    for (json, reason) in cases {
        assert_eq!(read(&json).unwrap_err().as_str(), reason, "{json}");
    }
}
