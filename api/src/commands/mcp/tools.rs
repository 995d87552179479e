//! The tools with their schemas and annotations.

use std::sync::Arc;

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Value, json};

/// The side effects of a tool.
enum Effect {
    /// Reads only.
    Reads,
    /// Moves money; repeating it changes nothing more.
    Pays,
    /// Adds a record; repeating it with its idempotency key changes nothing more.
    Creates,
}

fn tool(
    name: &'static str,
    title: &str,
    effect: &Effect,
    description: &'static str,
    input: Value,
    output: Value,
) -> Tool {
    let object = |schema: Value| match schema {
        Value::Object(object) => Arc::new(object),
        _ => unreachable!("a schema is an object"),
    };
    let annotations = match effect {
        Effect::Reads => ToolAnnotations::with_title(title).read_only(true).destructive(false).idempotent(true),
        Effect::Pays => ToolAnnotations::with_title(title).read_only(false).destructive(true).idempotent(true),
        Effect::Creates => ToolAnnotations::with_title(title).read_only(false).destructive(false).idempotent(true),
    };
    Tool::new(name, description, object(input))
        .with_title(title)
        .with_raw_output_schema(object(output))
        .with_annotations(annotations.open_world(true))
}

fn input(properties: Value, required: &[&str]) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// A result that is an object with at least these members, or a failure.
fn output(required: &[&str]) -> Value {
    json!({ "type": "object", "anyOf": [{ "required": required }, { "required": ["reason", "message", "nextStep"] }] })
}

/// Returns the tools of a wallet.
pub(super) fn of_wallet() -> Vec<Tool> {
    let pay = json!({
        "url": { "type": "string", "format": "uri", "description": "The URL that responds with 402, such as a checkout URL" },
        "confirm": { "type": "boolean", "default": false, "description": "false: show the price and whether the policy permits it; true: pay" },
        "maxAmount": { "type": "string", "pattern": r"^(0|[1-9]\d*)\.\d{3} (HIVE|HBD)$", "description": "Maximum to pay, such as \"1.500 HBD\"; use the price that you decided on" },
        "method": { "type": "string", "enum": ["GET", "POST", "PUT", "PATCH", "DELETE"], "default": "GET" },
        "headers": { "type": "object", "additionalProperties": { "type": "string" }, "description": "Request headers" },
        "body": { "type": "string", "description": "Request body; JSON unless headers name another content-type" },
        "idempotencyKey": { "type": "string", "maxLength": 255, "description": "Name of the purchase. The same request with the same key is paid once; choose a new key to buy the same thing again" }
    });
    let pay_tool = json!({
        "server": { "type": "string", "format": "uri", "description": "The URL of the MCP server (streamable HTTP)" },
        "tool": { "type": "string", "description": "The name of its tool" },
        "arguments": { "type": "object", "description": "The arguments of the tool" },
        "confirm": { "type": "boolean", "default": false, "description": "false: show the price and whether the policy permits it; true: pay" },
        "maxAmount": pay["maxAmount"],
        "headers": { "type": "object", "additionalProperties": { "type": "string" }, "description": "Request headers, such as Authorization" },
        "idempotencyKey": { "type": "string", "maxLength": 255, "description": "Name of the purchase. The same call with the same key is paid once; choose a new key to buy the same thing again" }
    });
    let id = json!({ "id": { "type": "integer", "minimum": 1, "description": "`entry` of pay_url or pay_tool, or `id` of wallet_status" } });
    vec![
        tool(
            "pay_url",
            "Pay a URL",
            &Effect::Pays,
            "Pays a URL that responds with HTTP 402 (x402) from the wallet, within its policy. Call it first without confirm to see the \
             price. A repeated call with the same arguments never pays twice: it returns the stored result, or repeats the same \
             transaction while the outcome is unknown.",
            input(pay, &["url"]),
            output(&["status", "nextStep"]),
        ),
        tool(
            "pay_tool",
            "Pay a tool of another MCP server",
            &Effect::Pays,
            "Calls a paid tool of another MCP server (x402 over MCP) and pays from the wallet, within its policy. Call it first \
             without confirm to see the price; a tool without a price runs at once. A repeated call with the same arguments never \
             pays twice: it returns the stored result, or repeats the same transaction while the outcome is unknown.",
            input(pay_tool, &["server", "tool"]),
            output(&["status", "nextStep"]),
        ),
        tool(
            "get_receipt",
            "Get a receipt",
            &Effect::Reads,
            "Returns one payment of the wallet: state, transaction, receipt and the seller's response.",
            input(id, &["id"]),
            output(&["id", "state"]),
        ),
        tool(
            "wallet_status",
            "Wallet status",
            &Effect::Reads,
            "Returns the wallet's limits with what is used and left, payments with an open outcome, and payments that await approval.",
            input(json!({}), &[]),
            output(&["account", "limits"]),
        ),
    ]
}

/// Returns the tools of a merchant.
pub(super) fn of_merchant() -> Vec<Tool> {
    let create = json!({
        "amount": { "type": "string", "pattern": r"^(0|[1-9]\d*)\.\d{3} (HIVE|HBD)$", "description": "Such as \"1.500 HBD\"" },
        "description": { "type": "string", "description": "What is sold; shown to the customer" },
        "redirectUrl": { "type": "string", "format": "uri" },
        "cancelUrl": { "type": "string", "format": "uri" },
        "metadata": { "type": "object", "description": "Returned with the payment" },
        "expiresInSeconds": { "type": "integer", "minimum": 60, "maximum": 86_400 },
        "idempotencyKey": { "type": "string", "maxLength": 255, "description": "The same key creates one payment" }
    });
    let id = || json!({ "id": { "type": "string", "pattern": "^pay_[0-9a-z]{26}$" } });
    let list = json!({
        "status": { "type": "string", "enum": ["pending", "processing", "completed", "failed", "user_cancelled", "system_cancelled"] },
        "query": { "type": "string", "description": "Id, description, amount, payer, transaction or a metadata value" },
        "limit": { "type": "integer", "minimum": 1, "maximum": 100, "default": 20 },
        "cursor": { "type": "string", "description": "`nextCursor` of the previous page" }
    });
    vec![
        tool(
            "create_payment",
            "Create a payment",
            &Effect::Creates,
            "Creates a payment session of the merchant. Give the customer its `checkoutUrl`.",
            input(create, &["amount", "description"]),
            output(&["id", "status"]),
        ),
        tool(
            "get_payment",
            "Get a payment",
            &Effect::Reads,
            "Returns one payment of the merchant with its state, transfers and exceptions.",
            input(id(), &["id"]),
            output(&["id", "status"]),
        ),
        tool(
            "list_payments",
            "List payments",
            &Effect::Reads,
            "Lists the merchant's payments, the newest first.",
            input(list, &[]),
            output(&["data"]),
        ),
        tool(
            "refund_plan",
            "Plan a refund",
            &Effect::Reads,
            "Returns the transfer that would refund a payment, for the merchant to sign in a wallet. Nothing is sent.",
            input(id(), &["id"]),
            output(&[]),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tool_has_a_strict_schema_and_accurate_annotations() {
        let tools: Vec<Tool> = of_wallet().into_iter().chain(of_merchant()).collect();
        assert_eq!(tools.len(), 8);
        for tool in &tools {
            let schema = tool.schema_as_json_value();
            assert_eq!(
                (&schema["type"], &schema["additionalProperties"]),
                (&json!("object"), &json!(false)),
                "{}",
                tool.name
            );
            assert!(jsonschema::validator_for(&schema).is_ok(), "{}", tool.name);
            assert!(tool.description.is_some() && tool.output_schema.is_some());
            let annotations = tool.annotations.as_ref().expect("annotations");
            let moves_money = matches!(&*tool.name, "pay_url" | "pay_tool");
            assert_eq!(annotations.destructive_hint, Some(moves_money), "{}", tool.name);
            assert_eq!(
                annotations.read_only_hint,
                Some(!matches!(&*tool.name, "pay_url" | "pay_tool" | "create_payment")),
                "{}",
                tool.name
            );
        }
    }
}
