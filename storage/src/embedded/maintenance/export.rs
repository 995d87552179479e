//! Records as JSON, one object each, for other programs and for inspection. Secrets and digests are omitted.

use engine::{
    audit::Entry,
    billing::{Month, Period},
    fields::MetadataValue,
    ids::{DeliveryId, EndpointId, EventId, MerchantId, PaymentId},
    ledger::{Transfer, TxId},
    money::Money,
    payment::{Credit, Payment, Rate},
    time::Timestamp,
    webhook::{Attempt, DeliveryRecord, EndpointHealth, Outcome},
    x402::{ClaimOutcome, ClaimRecord, Purpose},
};
use redb::Value as _;
use serde_json::{Value, json};

use crate::{
    batch::{Cursor, EventRecord, Handling, Unmatched},
    duty::EngineId,
    embedded::{
        fault::Fault,
        maintenance::backup::Row,
        tables::{self, meta},
    },
    record::{self, event::AttemptKey, transfer::TransferKey, wire::Damage},
    store::error::ReadError,
};

/// Returns a row as a JSON object whose `record` is its kind; none for a row of an index, which adds no information.
///
/// # Errors
/// [`ReadError::Damaged`] for a record that does not decode.
pub fn record(row: &Row) -> Result<Option<Value>, ReadError> {
    let key = row.key.as_slice();
    let Some(bytes) = tables::open_row(&row.table, key, &row.value)? else { return Ok(None) };
    let read = match row.table.as_str() {
        "payments" => {
            let id = PaymentId::from_bits(u128::from_bytes(key));
            record::payment_from_bytes(id, bytes).map(|payment| payment_json(&payment))
        }
        "transfers" => {
            let key = <TransferKey<'_>>::from_bytes(key);
            record::transfer_from_bytes(key, bytes).map(|credit| {
                let mut json = credit_json(&credit);
                json["record"] = json!("transfer");
                json["payment"] = json!(PaymentId::from_bits(key.0).to_string());
                json
            })
        }
        "merchants" => record::merchant_to_json(MerchantId::from_bits(u128::from_bytes(key)), bytes),
        "events" => record::event_from_bytes(<(u128, u64)>::from_bytes(key), bytes).map(event_json),
        "deliveries" => record::delivery_from_bytes(<(u128, u128)>::from_bytes(key), bytes).map(|d| delivery_json(&d)),
        "attempts" => record::attempt_from_bytes(AttemptKey::from_bytes(key), bytes).map(attempt_json),
        "endpoints" => {
            let id = EndpointId::from_bits(u128::from_bytes(key));
            record::endpoint_from_bytes(bytes).map(|health| endpoint_json(id, &health))
        }
        "claims" => record::claimed_from_bytes(TxId(*<&[u8; 20]>::from_bytes(key)), bytes).map(|c| claim_json(&c)),
        "unmatched" => {
            record::unmatched_from_bytes(<(&str, u32, u32, u32)>::from_bytes(key), bytes).map(|u| unmatched_json(&u))
        }
        "audit" => record::audit_from_bytes(u64::from_bytes(key), bytes).map(|entry| audit_json(&entry)),
        "billing" => {
            let (month, merchant) = <(u32, u128)>::from_bytes(key);
            period(month, MerchantId::from_bits(merchant), bytes).map(|period| period_json(&period))
        }
        "duties" => Ok(duty_json(key, <(u64, u64)>::from_bytes(bytes))),
        "engines" => Ok(engine_json(EngineId::from_bits(u64::from_bytes(key)), <(u64, u64)>::from_bytes(bytes))),
        "meta" if key == meta::CURSOR.as_bytes() => record::cursor_from_bytes(bytes).map(|cursor| cursor_json(&cursor)),
        "meta" if key == meta::RATE.as_bytes() => record::rate_from_bytes(bytes).map(|rate| rate_json(&rate)),
        "meta" if key == meta::RECEIPT_KEYS.as_bytes() => record::receipt_keys_to_json(bytes),
        _ => return Ok(None),
    };
    let table = TABLES.iter().find(|table| **table == row.table).copied().unwrap_or("unknown");
    Ok(Some(read.map_err(|damage| Fault::damaged(table, hex(key))(damage))?))
}

/// Returns a row's record as JSON if one of its texts contains an account's name as a word.
///
/// # Errors
/// [`ReadError::Damaged`] for a record that does not decode.
pub fn record_naming(row: &Row, account: &str) -> Result<Option<Value>, ReadError> {
    let finder = memchr::memmem::Finder::new(account.as_bytes());
    // Account names are stored as text: a byte search excludes most rows without decoding them.
    if finder.find(&row.value).is_none() && finder.find(&row.key).is_none() {
        return Ok(None);
    }
    Ok(record(row)?.filter(|record| names(record, account)))
}

/// Returns whether a text contains an account's name as a word.
fn names(json: &Value, account: &str) -> bool {
    match json {
        Value::String(text) => text.match_indices(account).any(|(at, _)| {
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
            let (before, after) = (&text[..at], &text[at + account.len()..]);
            // A full stop can end a sentence or be a part of a name.
            let goes_on = after.starts_with(is_part)
                || after.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()));
            !before.ends_with(|c: char| is_part(c) || c == '.') && !goes_on
        }),
        Value::Array(items) => items.iter().any(|item| names(item, account)),
        Value::Object(members) => members.iter().any(|(key, value)| key == account || names(value, account)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The tables whose rows are records.
const TABLES: [&str; 14] = [
    "duties",
    "engines",
    "payments",
    "transfers",
    "merchants",
    "events",
    "deliveries",
    "attempts",
    "endpoints",
    "claims",
    "unmatched",
    "audit",
    "billing",
    "meta",
];

fn period(number: u32, merchant: MerchantId, bytes: &[u8]) -> Result<Period, Damage> {
    let month =
        Month::from_number(number).ok_or_else(|| Damage::Value { field: "month", value: number.to_string() })?;
    record::period_from_bytes(merchant, month, bytes)
}

fn period_json(period: &Period) -> Value {
    let invoice = period.invoice.as_ref().map(|invoice| {
        json!({
            "cents": invoice.cents, "session": invoice.session.as_ref().map(|(id, _)| id.to_string()),
            "createdAt": invoice.created_at.to_string(), "dueAt": invoice.due_at.to_string(),
            "paidAt": invoice.paid_at.map(|at| at.to_string()), "tiersVersion": invoice.tiers_version,
        })
    });
    json!({
        "record": "period", "id": period.id().to_string(), "merchant": period.merchant.to_string(),
        "month": period.month.to_string(), "volumeCents": period.usage.volume_cents, "payments": period.usage.payments,
        "splitVolumeCents": period.usage.split_volume_cents,
        "missingFeeMillicents": period.usage.missing_fee_millicents, "invoice": invoice,
    })
}

fn endpoint_json(id: EndpointId, health: &EndpointHealth) -> Value {
    json!({
        "record": "endpoint", "id": id.to_string(),
        "disabled": health.disabled.map(|(reason, _)| reason.as_str()),
        "disabledAt": health.disabled.map(|(_, at)| at.to_string()),
    })
}

fn audit_json(entry: &Entry) -> Value {
    let changes = entry.changes.iter();
    let changes = changes.map(|c| json!({"field": c.field, "before": c.before, "after": c.after}));
    json!({
        "record": "audit", "seq": entry.seq, "at": entry.at.to_string(), "action": entry.action,
        "actor": entry.actor.merchant.map(|id| id.to_string()), "key": entry.actor.key.map(|id| id.to_string()),
        "ip": entry.actor.ip, "merchant": entry.merchant.to_string(), "subject": entry.subject,
        "changes": changes.collect::<Vec<_>>(),
    })
}

fn duty_json(name: &[u8], (term, holder): (u64, u64)) -> Value {
    let holder = (holder != 0).then(|| EngineId::from_bits(holder).to_string());
    json!({"record": "duty", "duty": String::from_utf8_lossy(name), "term": term, "holder": holder})
}

fn engine_json(engine: EngineId, (since, until): (u64, u64)) -> Value {
    let at = |millis| Timestamp::from_millis(millis).to_string();
    json!({"record": "engine", "engine": engine.to_string(), "since": at(since), "until": at(until)})
}

fn cursor_json(cursor: &Cursor) -> Value {
    json!({"record": "cursor", "block": cursor.block_id.number(), "time": cursor.time.to_string()})
}

fn rate_json(rate: &Rate) -> Value {
    json!({
        "record": "rate", "baseHbdUnits": rate.price.base_hbd_units.to_string(),
        "quoteHiveUnits": rate.price.quote_hive_units.to_string(), "at": rate.at.to_string(),
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Amounts are strings, because many JSON parsers lose precision of large numbers.
fn money(money: Money) -> Value {
    json!({"units": money.units.to_string(), "currency": money.currency.code()})
}

fn when(at: Option<Timestamp>) -> Option<String> {
    at.map(|at| at.to_string())
}

fn payment_json(payment: &Payment) -> Value {
    let metadata = payment.metadata.iter().map(|(key, value)| {
        let value = match value {
            MetadataValue::Text(text) => json!(text),
            MetadataValue::List(texts) => json!(texts),
        };
        (key.clone(), value)
    });
    let refunds = payment.refunds.iter().map(|refund| {
        json!({
            "txId": refund.tx_id.to_string(), "opInTx": refund.op_in_tx, "to": refund.to.as_str(),
            "money": money(refund.money), "at": refund.at.to_string(),
        })
    });
    let resolution = payment.resolution.as_ref().map(|resolution| {
        json!({
            "kind": resolution.kind.as_str(), "by": resolution.by, "at": resolution.at.to_string(), "note": resolution.note,
            "txId": resolution.tx_id.map(|id| id.to_string()),
        })
    });
    json!({
        "record": "payment", "id": payment.id.to_string(), "merchant": payment.merchant.to_string(),
        "version": payment.version, "status": payment.state.as_str(),
        "previousStatus": payment.previous_state.map(|state| state.as_str()), "sequence": payment.sequence,
        "amount": money(payment.amount), "feeUnits": payment.quote.fee_units.to_string(),
        "usdCents": payment.quote.usd_cents, "payTo": payment.pay_to.as_str(), "description": payment.description,
        "metadata": metadata.collect::<serde_json::Map<_, _>>(), "redirectUrl": payment.redirect_url,
        "cancelUrl": payment.cancel_url, "createdAt": payment.created_at.to_string(),
        "updatedAt": payment.updated_at.to_string(), "expiresAt": payment.expires_at.to_string(),
        "completedAt": when(payment.completed_at), "livemode": payment.livemode,
        "paidUnits": payment.paid_units().to_string(), "paidBy": payment.paid_by.map(|id| id.to_string()),
        "claimed": payment.claim.as_ref().map(|claim| claim.tx_id.to_string()),
        "payer": payment.claim.as_ref().map(|claim| claim.payer.to_string()), "resolution": resolution,
        "isReversed": payment.is_reversed, "transfers": payment.transfers.iter().map(credit_json).collect::<Vec<_>>(),
        "transferCount": payment.transfer_count(), "refunds": refunds.collect::<Vec<_>>(),
    })
}

fn credit_json(credit: &Credit) -> Value {
    json!({
        "seq": credit.seq, "txId": credit.tx_id.to_string(), "opInTx": credit.op_in_tx,
        "block": credit.block.map(|block| block.position.block_num), "from": credit.from.as_str(),
        "to": credit.to.as_str(), "money": money(credit.money), "memo": credit.memo,
        "finality": format!("{:?}", credit.finality).to_lowercase(),
        "disposition": credit.disposition.as_str(), "route": format!("{:?}", credit.route).to_lowercase(),
    })
}

fn event_json(event: EventRecord) -> Value {
    let body = serde_json::from_slice::<Value>(&event.body);
    let deliveries = event.deliveries.iter();
    let deliveries = deliveries.map(|(to, id)| json!({"endpoint": to.to_string(), "delivery": id.to_string()}));
    json!({
        "record": "event", "id": event.id.to_string(), "merchant": event.merchant.to_string(), "seq": event.seq,
        "payment": event.payment.to_string(), "deliveries": deliveries.collect::<Vec<_>>(),
        "type": event.kind.as_str(), "at": event.at.to_string(), "isTest": event.is_test,
        "body": body.unwrap_or_else(|_| json!(String::from_utf8_lossy(&event.body))),
    })
}

fn delivery_json(logged: &DeliveryRecord) -> Value {
    let delivery = &logged.delivery;
    json!({
        "record": "delivery", "id": delivery.id.to_string(), "merchant": delivery.merchant.to_string(),
        "endpoint": delivery.endpoint.to_string(), "event": delivery.event.to_string(),
        "payment": delivery.payment.to_string(),
        "trigger": delivery.trigger.as_str(), "state": logged.state.as_str(), "attempts": delivery.attempts,
        "dueAt": delivery.due_at.to_string(), "lastAt": when(logged.last.map(|(_, at)| at)),
        "lastOutcome": logged.last.map(|(outcome, _)| outcome.as_str()),
    })
}

fn attempt_json(attempt: Attempt) -> Value {
    let status = Outcome::status(attempt.outcome);
    json!({
        "record": "attempt", "event": EventId::to_string(&attempt.event),
        "delivery": DeliveryId::to_string(&attempt.delivery), "merchant": attempt.merchant.to_string(),
        "number": attempt.number, "trigger": attempt.trigger.as_str(), "endpoint": attempt.endpoint,
        "startedAt": attempt.started_at.to_string(), "durationMs": attempt.duration_ms,
        "outcome": attempt.outcome.as_str(), "status": status, "nextAttemptAt": when(attempt.next_attempt_at),
    })
}

fn claim_json(claimed: &ClaimRecord) -> Value {
    let (payment, facilitated) = match &claimed.purpose {
        Purpose::Session(id) => (Some(id.to_string()), None),
        Purpose::Facilitated(facilitation) => {
            let of = json!({
                "payer": facilitation.payer.as_str(), "payTo": claimed.pay_to.as_str(),
                "amount": money(facilitation.amount), "resource": facilitation.resource,
            });
            (None, Some(of))
        }
    };
    let outcome = match &claimed.outcome {
        ClaimOutcome::Open | ClaimOutcome::Shared => "open",
        ClaimOutcome::Settled { .. } => "settled",
        ClaimOutcome::Refused { reason, .. } => reason.as_str(),
        ClaimOutcome::Expired => "expired",
    };
    json!({
        "record": "claim", "txId": claimed.tx_id.to_string(), "at": claimed.at.to_string(), "outcome": outcome,
        "payment": payment, "facilitated": facilitated,
    })
}

fn unmatched_json(unmatched: &Unmatched) -> Value {
    let (handling, payment) = match &unmatched.handling {
        Handling::Open => ("open", None),
        Handling::Assigned { payment, .. } => ("assigned", Some(payment.to_string())),
        Handling::Ignored { .. } => ("ignored", None),
    };
    let Transfer { tx_id, position: place, block_time, from, to, money: sent, memo } = &unmatched.transfer;
    json!({
        "record": "unmatched", "txId": tx_id.to_string(), "opInTx": place.op_in_tx, "block": place.block_num,
        "blockTime": block_time.to_string(), "from": from.as_str(), "to": to.as_str(), "money": money(*sent),
        "memo": memo, "reason": unmatched.reason.as_str(), "handling": handling, "payment": payment,
    })
}
