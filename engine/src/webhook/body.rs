//! Webhook bodies: serialized once, then stored, signed and sent as these bytes.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::{
    fields::MetadataValue,
    ids::{EventId, MerchantId, PaymentId},
    ledger::{Transfer, TxId},
    mutant,
    payment::{Event, Exception, ExceptionEvent, Payment, Refund, RefundEvent, State, shown_memo},
    time::Timestamp,
    webhook::EventType,
};

/// Returns the body of `payment.status_changed`.
#[must_use]
pub fn status_changed(payment: &Payment, event: &Event) -> Vec<u8> {
    let id = payment.id.to_string();
    let at = event.at.to_string();
    let body = Body {
        r#type: EventType::StatusChanged.as_str(),
        id: event.id.to_string(),
        created_at: &at,
        timestamp: &at,
        data: Data {
            id: &id,
            payment_id: &id,
            merchant_id: payment.merchant.to_string(),
            status: if mutant!("event-has-old-state") { event.from } else { event.to }.as_str(),
            previous_status: event.from.as_str(),
            provider_id: "hive",
            internal_id: payment.paid_by.map(|tx_id| tx_id.to_string()),
            sequence: event.sequence,
            exceptions: words(&payment.exceptions()),
            new_exceptions: None,
            refund: None,
            metadata: metadata(payment),
            livemode: payment.livemode,
        },
    };
    bytes_of(&body)
}

/// Returns the body of `payment.exception`.
#[must_use]
pub fn exception(payment: &Payment, ExceptionEvent { event, new }: &ExceptionEvent) -> Vec<u8> {
    unchanged(EventType::Exception, payment, event, (Some(words(new)), None))
}

/// Returns the body of `refund.completed`.
#[must_use]
pub fn refund_completed(payment: &Payment, RefundEvent { event, refund }: &RefundEvent) -> Vec<u8> {
    unchanged(EventType::RefundCompleted, payment, event, (None, Some(RefundData::of(refund))))
}

/// Returns the body of an event that does not change the status of its payment.
fn unchanged(
    kind: EventType,
    payment: &Payment,
    event: &Event,
    (new_exceptions, refund): (Option<Vec<&str>>, Option<RefundData>),
) -> Vec<u8> {
    let id = payment.id.to_string();
    let at = event.at.to_string();
    let previous = payment.previous_state.unwrap_or(payment.state);
    bytes_of(&Body {
        r#type: kind.as_str(),
        id: event.id.to_string(),
        created_at: &at,
        timestamp: &at,
        data: Data {
            id: &id,
            payment_id: &id,
            merchant_id: payment.merchant.to_string(),
            status: payment.state.as_str(),
            previous_status: previous.as_str(),
            provider_id: "hive",
            internal_id: payment.paid_by.map(|tx_id| tx_id.to_string()),
            sequence: event.sequence,
            exceptions: words(&payment.exceptions()),
            new_exceptions,
            refund,
            metadata: metadata(payment),
            livemode: payment.livemode,
        },
    })
}

/// An x402 payment settled for a resource of a merchant's server.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SettledSale<'a> {
    /// The transaction.
    pub tx_id: String,
    /// The merchant.
    pub merchant_id: String,
    /// The payer.
    pub payer: &'a str,
    /// The payee.
    pub pay_to: &'a str,
    /// The amount, smallest units.
    pub value: String,
    /// The amount as on the ledger.
    pub formatted: String,
    /// The currency.
    pub currency: &'static str,
    /// The resource, as its server describes it.
    pub resource: &'a str,
    /// The block, unless acceptance by a node was sufficient.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_num: Option<u32>,
    /// Whether it uses real money.
    pub livemode: bool,
}

/// Returns the event id of a sale for a merchant, derived from the transaction and its claim time, so that an event
/// announced again after a restore keeps its id.
#[must_use]
pub fn sale_event_id(tx_id: TxId, merchant: MerchantId, claimed_at: Timestamp) -> EventId {
    let hash = Sha256::new().chain_update(tx_id.0).chain_update(merchant.bits().to_be_bytes()).finalize();
    let mut random = [0; 10];
    random.copy_from_slice(&hash[..10]);
    EventId::new(claimed_at, random)
}

/// Returns the body of `x402.settled`.
#[must_use]
pub fn settled(id: EventId, sale: &SettledSale<'_>, at: Timestamp) -> Vec<u8> {
    let at = at.to_string();
    let kind = EventType::X402Settled.as_str();
    bytes_of(&Body { r#type: kind, id: id.to_string(), created_at: &at, timestamp: &at, data: sale })
}

/// A change of a merchant's verified account.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AccountChange {
    /// The merchant.
    pub merchant_id: String,
    /// `requested`, `cancelled` or `completed`.
    pub change: &'static str,
    /// The current account.
    pub hive_account: String,
    /// The new account of a requested or cancelled change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_account: Option<String>,
    /// The earliest time a requested change takes effect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effective_at: Option<String>,
    /// Whether it uses real money.
    pub livemode: bool,
}

/// Returns the body of `merchant.account_change`.
#[must_use]
pub fn account_change(id: EventId, change: &AccountChange, at: Timestamp) -> Vec<u8> {
    let at = at.to_string();
    let kind = EventType::AccountChange.as_str();
    bytes_of(&Body { r#type: kind, id: id.to_string(), created_at: &at, timestamp: &at, data: change })
}

/// A transfer to a merchant's account that matches no payment.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnmatchedTransfer<'a> {
    /// The id of the transfer among the unmatched ones.
    pub transfer_id: String,
    /// The merchant.
    pub merchant_id: String,
    /// Why it matches no payment.
    pub reason: &'static str,
    /// The transaction.
    pub tx_id: String,
    /// The operation's index in it.
    pub op_index: u32,
    /// The block.
    pub block_num: u32,
    /// The time of the block.
    pub block_time: String,
    /// The sender.
    pub from: &'a str,
    /// The account that received it.
    pub to: &'a str,
    /// The amount, smallest units.
    pub value: String,
    /// The amount as on the ledger.
    pub formatted: String,
    /// The currency.
    pub currency: &'static str,
    /// The memo, shortened like those of the list.
    pub memo: String,
    /// Whether it uses real money.
    pub livemode: bool,
}

impl<'a> UnmatchedTransfer<'a> {
    /// Returns what a merchant is notified of about a transfer; `reason` is the wire name of the reason.
    #[must_use]
    pub fn of(transfer: &'a Transfer, merchant: MerchantId, reason: &'static str, livemode: bool) -> Self {
        Self {
            transfer_id: transfer.position.to_string(),
            merchant_id: merchant.to_string(),
            reason,
            tx_id: transfer.tx_id.to_string(),
            op_index: transfer.position.op_in_tx,
            block_num: transfer.position.block_num,
            block_time: transfer.block_time.to_string(),
            from: transfer.from.as_str(),
            to: transfer.to.as_str(),
            value: transfer.money.units.to_string(),
            formatted: transfer.money.to_string(),
            currency: transfer.money.currency.code(),
            memo: shown_memo(transfer.memo.clone()),
            livemode,
        }
    }
}

/// Returns the event id of an unmatched transfer for a merchant, derived from the transfer's position, so that a block
/// that is scanned again cannot duplicate the event.
#[must_use]
pub fn unmatched_event_id(transfer: &Transfer, merchant: MerchantId) -> EventId {
    let position = transfer.position;
    let hash = Sha256::new()
        .chain_update(transfer.tx_id.0)
        .chain_update(position.block_num.to_be_bytes())
        .chain_update(position.tx_in_block.to_be_bytes())
        .chain_update(position.op_in_tx.to_be_bytes())
        .chain_update(merchant.bits().to_be_bytes())
        .finalize();
    let mut random = [0; 10];
    random.copy_from_slice(&hash[..10]);
    EventId::new(transfer.block_time, random)
}

/// Returns the body of `transfer.unmatched`.
#[must_use]
pub fn transfer_unmatched(id: EventId, transfer: &UnmatchedTransfer<'_>, at: Timestamp) -> Vec<u8> {
    let at = at.to_string();
    let kind = EventType::TransferUnmatched.as_str();
    bytes_of(&Body { r#type: kind, id: id.to_string(), created_at: &at, timestamp: &at, data: transfer })
}

fn words(exceptions: &[Exception]) -> Vec<&'static str> {
    exceptions.iter().map(|exception| exception.as_str()).collect()
}

fn metadata(payment: &Payment) -> BTreeMap<&str, Value<'_>> {
    let kept = payment.metadata.iter().filter(|_| !mutant!("event-without-metadata"));
    kept.map(|(key, value)| (key.as_str(), Value(value))).collect()
}

/// Returns the body of a test event: of any type, for a payment that does not exist (`test_…`), never live. `status` is
/// the status of payment events.
#[must_use]
pub fn test_event(
    id: EventId,
    merchant: MerchantId,
    payment: PaymentId,
    (kind, status): (EventType, State),
    at: Timestamp,
) -> Vec<u8> {
    let merchant_id = merchant.to_string();
    let account = "test".to_owned();
    match kind {
        EventType::StatusChanged | EventType::Exception | EventType::RefundCompleted => {}
        EventType::X402Settled => {
            let sale = SettledSale {
                tx_id: "0".repeat(40),
                merchant_id,
                payer: "test",
                pay_to: "test",
                value: "1".to_owned(),
                formatted: "0.001 HBD".to_owned(),
                currency: "HBD",
                resource: "https://example.com/test",
                block_num: None,
                livemode: false,
            };
            return settled(id, &sale, at);
        }
        EventType::AccountChange => {
            let change = AccountChange {
                merchant_id,
                change: "cancelled",
                hive_account: account.clone(),
                pending_account: Some(account),
                effective_at: None,
                livemode: false,
            };
            return account_change(id, &change, at);
        }
        EventType::TransferUnmatched => {
            let transfer = UnmatchedTransfer {
                transfer_id: "0-0-0".to_owned(),
                merchant_id,
                reason: "no_session",
                tx_id: "0".repeat(40),
                op_index: 0,
                block_num: 0,
                block_time: at.to_string(),
                from: "test",
                to: "test",
                value: "1".to_owned(),
                formatted: "0.001 HBD".to_owned(),
                currency: "HBD",
                memo: String::new(),
                livemode: false,
            };
            return transfer_unmatched(id, &transfer, at);
        }
    }
    let refund = (kind == EventType::RefundCompleted).then(|| RefundData::test(at));
    let (at, is_exception) = (at.to_string(), kind == EventType::Exception);
    let payment = format!("test_{}", payment.to_string().trim_start_matches(PaymentId::PREFIX));
    let exceptions = if is_exception { words(&[Exception::Underpaid]) } else { Vec::new() };
    bytes_of(&Body {
        r#type: kind.as_str(),
        id: id.to_string(),
        created_at: &at,
        timestamp: &at,
        data: Data {
            id: &payment,
            payment_id: &payment,
            merchant_id,
            status: status.as_str(),
            previous_status: if status == State::Failed { State::Processing } else { State::Pending }.as_str(),
            provider_id: "hive",
            internal_id: None,
            sequence: 1,
            new_exceptions: is_exception.then(|| exceptions.clone()),
            refund,
            exceptions,
            metadata: BTreeMap::new(),
            livemode: false,
        },
    })
}

fn bytes_of<T: Serialize>(body: &Body<'_, T>) -> Vec<u8> {
    // The capacity of a body without metadata.
    let mut bytes = Vec::with_capacity(640);
    serde_json::to_writer(&mut bytes, body).expect("texts and numbers always serialize");
    bytes
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a, T> {
    r#type: &'a str,
    id: String,
    created_at: &'a str,
    timestamp: &'a str,
    data: T,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data<'a> {
    id: &'a str,
    payment_id: &'a str,
    merchant_id: String,
    status: &'a str,
    previous_status: &'a str,
    provider_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    internal_id: Option<String>,
    sequence: u32,
    exceptions: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new_exceptions: Option<Vec<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refund: Option<RefundData>,
    metadata: BTreeMap<&'a str, Value<'a>>,
    livemode: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RefundData {
    tx_id: String,
    op_index: u32,
    to: String,
    value: String,
    formatted: String,
    currency: &'static str,
    at: String,
}

impl RefundData {
    fn of(refund: &Refund) -> Self {
        Self {
            tx_id: refund.tx_id.to_string(),
            op_index: refund.op_in_tx,
            to: refund.to.to_string(),
            value: refund.money.units.to_string(),
            formatted: refund.money.to_string(),
            currency: refund.money.currency.code(),
            at: refund.at.to_string(),
        }
    }

    /// Returns the refund of a test event.
    fn test(at: Timestamp) -> Self {
        Self {
            tx_id: "0".repeat(40),
            op_index: 0,
            to: "test".to_owned(),
            value: "1".to_owned(),
            formatted: "0.001 HBD".to_owned(),
            currency: "HBD",
            at: at.to_string(),
        }
    }
}

struct Value<'a>(&'a MetadataValue);

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            MetadataValue::Text(text) => text.serialize(serializer),
            MetadataValue::List(list) => list.serialize(serializer),
        }
    }
}
