//! JSON-RPC 2.0 as hived implements it: single requests, batches, and the `call` form.

use serde_json::{Value, json};

use super::{
    failure::Failure,
    faults::Faults,
    host::{Answer, Host},
    node_api::NodeApi,
};

/// Handles the body of a request to a node, or closes the connection if the node has that fault.
pub(super) fn answer_node(host: &mut Host, node: usize, body: &[u8]) -> Answer {
    let faults = host.nodes[node].clone();
    if faults.disconnected {
        return Answer::HangUp;
    }
    if let Some(status) = faults.http_status {
        let body = json!({ "error": format!("the node responds with {status}") }).to_string().into_bytes();
        return Answer::Reply { status, body, delay: faults.delay, retry_after: faults.retry_after_seconds };
    }
    let mut broadcasts = 0;
    let mut answered = answer(body, |method, params| {
        broadcasts += u32::from(method.contains(".broadcast_transaction"));
        NodeApi { host: &mut *host, node }.call(method, params)
    });
    if broadcasts > 0 && host.nodes[node].take_dropped_reply() {
        return Answer::HangUp;
    }
    if faults.garbage {
        answered.truncate(answered.len() / 2);
    }
    Answer::Reply { status: 200, body: answered, delay: faults.delay, retry_after: None }
}

impl Faults {
    fn take_dropped_reply(&mut self) -> bool {
        let drops = self.drop_broadcast_replies > 0;
        self.drop_broadcast_replies = self.drop_broadcast_replies.saturating_sub(1);
        drops
    }
}

/// Executes one request or a batch.
pub(super) fn answer(body: &[u8], mut call: impl FnMut(&str, &Value) -> Result<Value, Failure>) -> Vec<u8> {
    let Ok(request) = serde_json::from_slice::<Value>(body) else {
        return respond(&Value::Null, Err(Failure::parse())).into_bytes();
    };
    let text = match &request {
        Value::Array(batch) if batch.is_empty() => respond(&Value::Null, Err(Failure::request("Array is empty"))),
        Value::Array(batch) => {
            let responses: Vec<String> = batch.iter().map(|each| one(each, &mut call)).collect();
            format!("[{}]", responses.join(","))
        }
        single => one(single, &mut call),
    };
    text.into_bytes()
}

fn one(request: &Value, call: &mut impl FnMut(&str, &Value) -> Result<Value, Failure>) -> String {
    let id = match &request["id"] {
        id @ (Value::Number(_) | Value::String(_)) => id.clone(),
        _ => Value::Null,
    };
    respond(&id, dispatch(request, call))
}

fn dispatch(request: &Value, call: &mut impl FnMut(&str, &Value) -> Result<Value, Failure>) -> Result<Value, Failure> {
    if !request.is_object() {
        return Err(Failure::request("A request must be an object"));
    }
    if request["jsonrpc"] != "2.0" {
        return Err(Failure::request("jsonrpc value is not \"2.0\""));
    }
    if !matches!(request["id"], Value::Null | Value::Number(_) | Value::String(_)) {
        return Err(Failure::request("Only integer value or string is allowed for member id"));
    }
    let method = request["method"].as_str().ok_or_else(|| Failure::request("A member method does not exist"))?;
    let none = json!({});
    let params = request.get("params").unwrap_or(&none);
    if method != "call" {
        return call(method, params);
    }
    // ["api", "method", args]
    let parts = params.as_array().filter(|parts| (2..=3).contains(&parts.len()));
    let parts = parts.ok_or_else(|| Failure::params("params should be {\"api\", \"method\", \"args\"}"))?;
    let (Some(api), Some(method)) = (parts[0].as_str(), parts[1].as_str()) else {
        return Err(Failure::params("API and method are strings"));
    };
    call(&format!("{api}.{method}"), parts.get(2).unwrap_or(&none))
}

/// Parses a response of [`answer`].
pub(super) fn result(body: &[u8]) -> Result<Value, Failure> {
    let mut answer: Value = serde_json::from_slice(body).map_err(|_| Failure::no_answer())?;
    match answer.get("error") {
        Some(error) => Err(Failure::of_answer(error)),
        None => Ok(answer["result"].take()),
    }
}

/// Writes the members in hived's order.
fn respond(id: &Value, result: Result<Value, Failure>) -> String {
    match result {
        Ok(result) => format!(r#"{{"jsonrpc":"2.0","result":{result},"id":{id}}}"#),
        Err(failure) => format!(r#"{{"jsonrpc":"2.0","error":{},"id":{id}}}"#, failure.to_json()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(body: &str) -> String {
        let call = |method: &str, params: &Value| match method {
            "api.echo" => Ok(params.clone()),
            _ => Err(Failure::method("x", "Could not find method")),
        };
        String::from_utf8(answer(body.as_bytes(), call)).unwrap()
    }

    #[test]
    fn a_request_has_an_answer_with_its_id() {
        assert_eq!(
            say(r#"{"jsonrpc":"2.0","id":7,"method":"api.echo","params":[1]}"#),
            r#"{"jsonrpc":"2.0","result":[1],"id":7}"#
        );
        assert_eq!(
            say(r#"{"jsonrpc":"2.0","id":"a","method":"call","params":["api","echo",{"x":1}]}"#),
            r#"{"jsonrpc":"2.0","result":{"x":1},"id":"a"}"#
        );
    }

    #[test]
    fn a_batch_has_an_answer_for_each() {
        let body = r#"[{"jsonrpc":"2.0","id":1,"method":"api.echo"},{"jsonrpc":"2.0","id":2,"method":"api.none"}]"#;
        let responses: Value = serde_json::from_str(&say(body)).unwrap();
        assert_eq!(responses[0], json!({"jsonrpc": "2.0", "result": {}, "id": 1}));
        assert_eq!((&responses[1]["id"], &responses[1]["error"]["code"]), (&json!(2), &json!(-32601)));
        assert_eq!(say("[]"), r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"Array is empty"},"id":null}"#);
    }

    #[test]
    fn what_is_no_request_has_an_error_and_no_panic() {
        for (body, code) in [
            ("{", -32700),
            ("7", -32600),
            (r#"{"id":1,"method":"api.echo"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":[],"method":"api.echo"}"#, -32600),
            (r#"{"jsonrpc":"2.0","id":1,"method":"call","params":[]}"#, -32002),
            (r#"{"jsonrpc":"2.0","id":1,"method":"call","params":[1,2]}"#, -32002),
        ] {
            let answer: Value = serde_json::from_str(&say(body)).unwrap();
            assert_eq!(answer["error"]["code"], code, "{body}");
        }
    }
}
