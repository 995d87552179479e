//! The stored forms of what comes from the ledger: claims, the cursor, unmatched transfers, the price.

use engine::{
    hive::PublicKey,
    ids::{MerchantId, PaymentId},
    ledger::{BlockId, ChainPosition, Transfer, TxId},
    money::Money,
    x402::{ClaimOutcome, ClaimRecord, Facilitation, PayerProof, Purpose, Reason},
};
use prost::Message;

use crate::{
    batch::{Cursor, Handling, Unmatched},
    record::{
        codes::Code,
        wire::{Bits, Damage, account, array, code, id, seal, time, unseal},
    },
};

const CLAIMED_VERSION: u8 = 1;
const CURSOR_VERSION: u8 = 1;
const UNMATCHED_VERSION: u8 = 1;

#[derive(Clone, PartialEq, Message)]
struct ClaimedRecord {
    #[prost(string, tag = "1")]
    nonce: String,
    /// The session it pays; none if it was settled for another server.
    #[prost(message, optional, tag = "2")]
    payment: Option<Bits>,
    #[prost(uint64, tag = "3")]
    at_ms: u64,
    #[prost(message, optional, tag = "4")]
    facilitation: Option<FacilitationRecord>,
    #[prost(uint32, tag = "5")]
    outcome: u32,
    /// The reason of a refusal, as on the wire.
    #[prost(string, tag = "6")]
    refusal: String,
    #[prost(string, tag = "7")]
    refusal_message: String,
    #[prost(string, tag = "8")]
    pay_to: String,
    #[prost(string, optional, tag = "9")]
    identifier: Option<String>,
    #[prost(message, optional, tag = "10")]
    proof: Option<ProofRecord>,
    #[prost(uint32, optional, tag = "11")]
    block_num: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ProofRecord {
    #[prost(uint32, tag = "1")]
    pack: u32,
    #[prost(bytes = "vec", tag = "2")]
    digest: Vec<u8>,
    #[prost(bytes = "vec", repeated, tag = "3")]
    keys: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct FacilitationRecord {
    #[prost(string, tag = "1")]
    payer: String,
    #[prost(message, optional, tag = "2")]
    seller: Option<Bits>,
    #[prost(uint64, tag = "3")]
    units: u64,
    #[prost(uint32, tag = "4")]
    currency: u32,
    #[prost(string, tag = "5")]
    resource: String,
    #[prost(string, tag = "6")]
    signed_json: String,
    #[prost(uint64, tag = "7")]
    expiration_ms: u64,
    #[prost(uint32, tag = "8")]
    finality: u32,
    #[prost(bytes = "vec", optional, tag = "9")]
    request_key: Option<Vec<u8>>,
}

/// The outcomes of a claim. A record without one is open.
const OPEN: u32 = 0;
const SETTLED: u32 = 1;
const REPORTED: u32 = 2;
const REFUSED: u32 = 3;
const EXPIRED: u32 = 4;
const SHARED: u32 = 5;

#[derive(Clone, PartialEq, Message)]
struct CursorRecord {
    #[prost(bytes = "vec", tag = "1")]
    block_id: Vec<u8>,
    #[prost(uint64, tag = "2")]
    time_ms: u64,
}

#[derive(Clone, PartialEq, Message)]
struct UnmatchedRecord {
    #[prost(bytes = "vec", tag = "1")]
    tx_id: Vec<u8>,
    #[prost(uint64, tag = "2")]
    block_time_ms: u64,
    #[prost(string, tag = "3")]
    from: String,
    #[prost(uint64, tag = "4")]
    units: u64,
    #[prost(uint32, tag = "5")]
    currency: u32,
    #[prost(string, tag = "6")]
    memo: String,
    #[prost(uint32, tag = "7")]
    reason: u32,
    /// The handling. A record without one is open.
    #[prost(uint32, tag = "8")]
    handling: u32,
    #[prost(message, optional, tag = "9")]
    payment: Option<Bits>,
    #[prost(string, tag = "10")]
    by: String,
    #[prost(uint64, tag = "11")]
    handled_at_ms: u64,
    #[prost(string, tag = "12")]
    note: String,
}

/// The handlings of an unmatched transfer.
const UNHANDLED: u32 = 0;
const ASSIGNED: u32 = 1;
const IGNORED: u32 = 2;

/// Returns the stored form of a claim. Its transaction is the key and not repeated.
pub(crate) fn claimed_to_bytes(claimed: &ClaimRecord) -> Vec<u8> {
    let (payment, facilitation) = match &claimed.purpose {
        Purpose::Session(payment) => (Some(payment.bits().into()), None),
        Purpose::Facilitated(facilitation) => (None, Some(facilitation_record(facilitation))),
    };
    let (outcome, refusal, refusal_message) = match &claimed.outcome {
        ClaimOutcome::Open => (OPEN, "", ""),
        ClaimOutcome::Shared => (SHARED, "", ""),
        ClaimOutcome::Settled { is_reported: false, .. } => (SETTLED, "", ""),
        ClaimOutcome::Settled { is_reported: true, .. } => (REPORTED, "", ""),
        ClaimOutcome::Refused { reason, message } => (REFUSED, reason.as_str(), message.as_str()),
        ClaimOutcome::Expired => (EXPIRED, "", ""),
    };
    let block_num = match &claimed.outcome {
        ClaimOutcome::Settled { block_num, .. } => *block_num,
        _ => None,
    };
    let record = ClaimedRecord {
        nonce: claimed.nonce.clone(),
        payment,
        at_ms: claimed.at.millis(),
        facilitation,
        outcome,
        refusal: refusal.to_owned(),
        refusal_message: refusal_message.to_owned(),
        pay_to: claimed.pay_to.as_str().to_owned(),
        identifier: claimed.identifier.clone(),
        proof: Some((&claimed.proof).into()),
        block_num,
    };
    seal(CLAIMED_VERSION, &record)
}

/// Decodes a claim.
pub(crate) fn claimed_from_bytes(tx_id: TxId, bytes: &[u8]) -> Result<ClaimRecord, Damage> {
    let record: ClaimedRecord = unseal(CLAIMED_VERSION, bytes)?;
    let purpose = match record.facilitation {
        Some(facilitation) => Purpose::Facilitated(Box::new(read_facilitation(facilitation)?)),
        None => Purpose::Session(PaymentId::from_bits(id("payment", record.payment)?)),
    };
    let outcome = match record.outcome {
        OPEN => ClaimOutcome::Open,
        SHARED => ClaimOutcome::Shared,
        code @ (SETTLED | REPORTED) => {
            ClaimOutcome::Settled { is_reported: code == REPORTED, block_num: record.block_num }
        }
        REFUSED => {
            let reason = Reason::parse(&record.refusal)
                .ok_or_else(|| Damage::Value { field: "refusal", value: record.refusal.clone() })?;
            ClaimOutcome::Refused { reason, message: record.refusal_message }
        }
        EXPIRED => ClaimOutcome::Expired,
        other => return Err(Damage::Value { field: "outcome", value: other.to_string() }),
    };
    Ok(ClaimRecord {
        tx_id,
        pay_to: account("pay_to", &record.pay_to)?,
        nonce: record.nonce,
        identifier: record.identifier,
        proof: record.proof.ok_or(Damage::Missing("proof"))?.try_into()?,
        purpose,
        outcome,
        at: time(record.at_ms),
    })
}

impl From<&PayerProof> for ProofRecord {
    fn from(proof: &PayerProof) -> Self {
        let keys = proof.keys.iter().map(|key| key.0.to_vec()).collect();
        Self { pack: proof.pack.number(), digest: proof.digest.to_vec(), keys }
    }
}

impl TryFrom<ProofRecord> for PayerProof {
    type Error = Damage;
    fn try_from(record: ProofRecord) -> Result<Self, Damage> {
        let key = |bytes: &Vec<u8>| array("proof key", bytes).map(PublicKey);
        Ok(Self {
            pack: code("proof pack", record.pack)?,
            digest: array("proof digest", &record.digest)?,
            keys: record.keys.iter().map(key).collect::<Result<_, Damage>>()?,
        })
    }
}

fn facilitation_record(facilitation: &Facilitation) -> FacilitationRecord {
    FacilitationRecord {
        payer: facilitation.payer.as_str().to_owned(),
        seller: facilitation.seller.map(|seller| seller.bits().into()),
        units: facilitation.amount.units,
        currency: facilitation.amount.currency.number(),
        resource: facilitation.resource.clone(),
        signed_json: facilitation.signed_json.clone(),
        expiration_ms: facilitation.expiration.millis(),
        finality: facilitation.finality.number(),
        request_key: facilitation.request_key.map(|key| key.to_vec()),
    }
}

fn read_facilitation(record: FacilitationRecord) -> Result<Facilitation, Damage> {
    Ok(Facilitation {
        payer: account("payer", &record.payer)?,
        seller: record.seller.map(|seller| id("seller", Some(seller))).transpose()?.map(MerchantId::from_bits),
        request_key: record.request_key.map(|key| array("request_key", &key)).transpose()?,
        amount: Money::new(record.units, code("currency", record.currency)?),
        resource: record.resource,
        signed_json: record.signed_json,
        expiration: time(record.expiration_ms),
        finality: code("finality", record.finality)?,
    })
}

/// Returns the stored form of the cursor.
pub(crate) fn cursor_to_bytes(cursor: &Cursor) -> Vec<u8> {
    seal(CURSOR_VERSION, &CursorRecord { block_id: cursor.block_id.0.to_vec(), time_ms: cursor.time.millis() })
}

/// Decodes the cursor.
pub(crate) fn cursor_from_bytes(bytes: &[u8]) -> Result<Cursor, Damage> {
    let record: CursorRecord = unseal(CURSOR_VERSION, bytes)?;
    Ok(Cursor { block_id: BlockId(array("block_id", &record.block_id)?), time: time(record.time_ms) })
}

/// Returns the stored form of an unmatched transfer. Its receiver and its position are the key and not repeated.
pub(crate) fn unmatched_to_bytes(unmatched: Unmatched) -> Vec<u8> {
    let transfer = unmatched.transfer;
    let (handling, payment, by, handled_at_ms, note) = match unmatched.handling {
        Handling::Open => (UNHANDLED, None, String::new(), 0, String::new()),
        Handling::Assigned { payment, by, at } => {
            (ASSIGNED, Some(payment.bits().into()), by, at.millis(), String::new())
        }
        Handling::Ignored { by, at, note } => (IGNORED, None, by, at.millis(), note),
    };
    let record = UnmatchedRecord {
        tx_id: transfer.tx_id.0.to_vec(),
        block_time_ms: transfer.block_time.millis(),
        from: transfer.from.as_str().to_owned(),
        units: transfer.money.units,
        currency: transfer.money.currency.number(),
        memo: transfer.memo,
        reason: unmatched.reason.number(),
        handling,
        payment,
        by,
        handled_at_ms,
        note,
    };
    seal(UNMATCHED_VERSION, &record)
}

/// Decodes an unmatched transfer.
pub(crate) fn unmatched_from_bytes(
    (to, block_num, tx_in_block, op_in_tx): (&str, u32, u32, u32),
    bytes: &[u8],
) -> Result<Unmatched, Damage> {
    let record: UnmatchedRecord = unseal(UNMATCHED_VERSION, bytes)?;
    let transfer = Transfer {
        tx_id: TxId(array("tx_id", &record.tx_id)?),
        position: ChainPosition { block_num, tx_in_block, op_in_tx },
        block_time: time(record.block_time_ms),
        from: account("from", &record.from)?,
        to: account("to", to)?,
        money: Money::new(record.units, code("currency", record.currency)?),
        memo: record.memo,
    };
    let at = time(record.handled_at_ms);
    let handling = match record.handling {
        UNHANDLED => Handling::Open,
        ASSIGNED => {
            Handling::Assigned { payment: PaymentId::from_bits(id("payment", record.payment)?), by: record.by, at }
        }
        IGNORED => Handling::Ignored { by: record.by, at, note: record.note },
        other => return Err(Damage::Value { field: "handling", value: other.to_string() }),
    };
    Ok(Unmatched { transfer, reason: code("reason", record.reason)?, handling })
}
