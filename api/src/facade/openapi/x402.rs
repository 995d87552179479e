//! Schemas of x402 payments.

use engine::x402::{NETWORK, NETWORK_CAIP2};
use serde_json::{Value, json};

use super::shape::{
    array, boolean, count, described, error_code, object, open, optional, reference, text, time, units, with, words,
};

/// Adds every schema of x402.
pub(super) fn add(add: &mut impl FnMut(&str, Value)) {
    let network = || words(&[NETWORK]);
    let replayed = || described(boolean(), "Whether an earlier request contained this payment.");
    add("PaymentRequired", payment_required());
    let paid = [
        ("success", json!({ "type": "boolean", "const": true })),
        ("txId", text()),
        ("payer", text()),
        ("sessionId", text()),
        ("status", words(&["completed"])),
    ];
    add("Paid", with(object(&paid), &[("replayed", replayed())]));
    add("Networks", array(network()));
    let whatever = || described(open(object(&[])), "Reserved; empty.");
    let kind = object(&[
        ("x402Version", json!({ "type": "integer", "enum": [1, 2] })),
        ("scheme", words(&["exact"])),
        ("network", words(&[NETWORK, NETWORK_CAIP2])),
        ("extra", whatever()),
    ]);
    add("Supported", object(&[("kinds", array(kind)), ("extensions", array(text())), ("signers", whatever())]));
    add("X402Health", object(&[("status", words(&["ok"])), ("network", network()), ("headBlock", count())]));
    add(
        "X402Request",
        json!({
            "type": "object",
            "description": "A payment for a payment of this gateway (`sessionId`) or for another server (`paymentRequirements`).",
            "required": ["paymentPayload"],
            "properties": {
                "sessionId": { "type": "string" },
                "paymentPayload": { "type": "object" },
                "paymentRequirements": { "type": "object" },
            },
        }),
    );
    let verdict = [("payer", text()), ("invalidReason", text()), ("invalidMessage", text()), ("transaction", text())];
    add("Verified", with(object(&[("isValid", boolean())]), &verdict));
    let outcome = [
        ("payer", text()),
        ("errorReason", text()),
        ("errorMessage", text()),
        ("blockNum", count()),
        ("amount", units()),
        ("replayed", replayed()),
        ("extensions", whatever()),
    ];
    let settled = [("success", boolean()), ("txId", text()), ("transaction", text()), ("network", network())];
    add("Settled", with(object(&settled), &outcome));
}

/// The payment requirements, in addition to the fields of every error. While the outcome of a payment is pending,
/// nothing more is required: `accepts` is missing, and `txId` is the transaction to wait for.
fn payment_required() -> Value {
    let extra = with(
        object(&[("sessionId", text()), ("memo", text())]),
        &[("feeAccount", text()), ("feeAmount", text()), ("netAmount", text()), ("feeMemo", text())],
    );
    let accepted = object(&[
        ("x402Version", json!({ "type": "integer", "enum": [1] })),
        ("scheme", words(&["exact"])),
        ("network", words(&[NETWORK])),
        ("maxAmountRequired", text()),
        ("resource", text()),
        ("description", text()),
        ("mimeType", text()),
        ("payTo", text()),
        ("validBefore", time()),
        ("asset", text()),
        ("maxTimeoutSeconds", count()),
        ("extra", extra),
    ]);
    let own = optional(&[
        ("x402Version", json!({ "type": "integer", "enum": [1] })),
        ("accepts", array(accepted)),
        ("success", boolean()),
        ("errorReason", text()),
        ("errorMessage", text()),
        ("payer", text()),
        ("sessionId", text()),
        ("status", text()),
        ("txId", text()),
    ]);
    let reason = reference("Reason");
    let standard = [("statusCode", count()), ("statusMessage", text()), ("code", error_code()), ("reason", reason)];
    let mut schema = with(own, &standard);
    schema = with(schema, &[("error", text()), ("requestId", text())]);
    schema["required"] = json!(["error", "statusCode", "statusMessage", "code", "reason", "requestId"]);
    schema
}
