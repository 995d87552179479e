//! A failed call, as a JSON-RPC error.

use serde_json::{Value, json};

use crate::ledger::Refused;

/// A JSON-RPC error.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// Its code.
    pub code: i32,
    /// Its message.
    pub message: String,
    /// hived's exception, where there is one.
    pub data: Option<Value>,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for Failure {}

impl Failure {
    /// Not JSON.
    pub(super) fn parse() -> Self {
        Self { code: -32700, message: "Parse Error".into(), data: None }
    }

    /// JSON, but no request.
    pub(super) fn request(message: &str) -> Self {
        Self { code: -32600, message: message.into(), data: None }
    }

    /// No such API or method.
    pub(super) fn method(expression: &str, text: &str) -> Self {
        Self { code: -32601, ..Self::assert(expression, text) }
    }

    /// Parameters that the method does not take.
    pub(super) fn params(text: &str) -> Self {
        let data = exception(7, "bad_cast_exception", "Bad Cast", "", text, json!({}));
        Self { code: -32002, message: format!("Bad Cast:{text}"), data: Some(data) }
    }

    /// hived's `FC_ASSERT`.
    pub(super) fn assert(expression: &str, text: &str) -> Self {
        let data = exception(10, "assert_exception", "Assert Exception", expression, text, json!({}));
        Self { code: -32003, message: format!("Assert Exception:{expression}: {text}"), data: Some(data) }
    }

    /// The ledger is going down.
    pub(super) fn stopped() -> Self {
        Self { code: -32603, message: "the dev ledger has stopped".into(), data: None }
    }

    /// The node's faults drop the response.
    pub(super) fn no_answer() -> Self {
        Self { code: -32603, message: "the node sends no response".into(), data: None }
    }

    /// Reads the error of a response.
    pub(super) fn of_answer(error: &Value) -> Self {
        Self {
            code: error["code"].as_i64().and_then(|code| i32::try_from(code).ok()).unwrap_or_default(),
            message: error["message"].as_str().unwrap_or_default().to_owned(),
            data: error.get("data").cloned(),
        }
    }

    /// Returns the error's members as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match &self.data {
            Some(data) => json!({ "code": self.code, "message": self.message, "data": data }),
            None => json!({ "code": self.code, "message": self.message }),
        }
    }
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Self {
        let rendered = refused.render();
        let (format, facts) = match &refused {
            Refused::MissingAuthority { account, authorities, .. } => {
                let authority = |authority: &engine::hive::Authority| {
                    serde_json::from_str::<Value>(&authority.to_json()).expect("an authority is JSON")
                };
                let word = rendered.text.rsplit_once(' ').map_or("", |(words, _)| words);
                let facts = json!({
                    "id": account.as_str(),
                    "owner": authority(&authorities.owner),
                    "active": authority(&authorities.active),
                    "posting": authority(&authorities.posting),
                });
                (format!("{word} ${{id}}"), facts)
            }
            Refused::Tapos { given, expected } => {
                (String::new(), json!({ "trx.ref_block_prefix": given, "tapos_block_summary": expected }))
            }
            _ => (rendered.text.clone(), json!({})),
        };
        let data = exception(rendered.code, rendered.name, rendered.what, rendered.expression, &format, facts);
        Self { code: rendered.rpc_code, message: rendered.message(), data: Some(data) }
    }
}

fn exception(code: u32, name: &str, what: &str, expression: &str, format: &str, facts: Value) -> Value {
    let context = json!({
        "level": "error", "file": "dev_ledger", "line": 0, "method": "push_transaction", "hostname": "",
        "timestamp": "1970-01-01T00:00:00"
    });
    let mut data = json!({
        "code": code, "name": name, "message": what, "stack": [{ "context": context, "format": format, "data": facts }]
    });
    if !expression.is_empty() {
        data["extension"] = json!({ "assertion_expression": expression });
    }
    data
}
