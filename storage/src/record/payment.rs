//! The stored form of a payment.

use std::{sync::Arc, time::Duration};

use engine::{
    fields::MetadataValue,
    ids::{MerchantId, PaymentId, SlugToken},
    ledger::TxId,
    money::Money,
    payment::{
        Acceptance, Cancellation, Claim, ClaimedTransfer, Credit, FeeMode, Payment, Quote, Rate, Refund, Resolution,
        Totals,
    },
    time::Timestamp,
};
use prost::Message;

use crate::record::{
    codes::Code,
    ledger::ProofRecord,
    rate::RateRecord,
    summary::Summary,
    transfer::{CreditRecord, TotalsRecord},
    wire::{Bits, Damage, account, array, code, code_of, id, millis, optional_code, seal, time, unseal},
};

pub(super) const VERSION: u8 = 1;

#[derive(Clone, PartialEq, Message)]
struct PaymentRecord {
    #[prost(message, optional, tag = "1")]
    merchant: Option<Bits>,
    #[prost(uint64, tag = "2")]
    version: u64,
    #[prost(uint32, tag = "3")]
    state: u32,
    #[prost(uint32, tag = "4")]
    previous_state: u32,
    #[prost(uint32, tag = "5")]
    sequence: u32,
    #[prost(message, optional, tag = "6")]
    slug: Option<Bits>,
    #[prost(uint64, tag = "7")]
    amount_units: u64,
    #[prost(uint32, tag = "8")]
    currency: u32,
    #[prost(message, optional, tag = "9")]
    quote: Option<QuoteRecord>,
    #[prost(string, tag = "10")]
    pay_to: String,
    #[prost(string, tag = "11")]
    description: String,
    #[prost(message, repeated, tag = "12")]
    metadata: Vec<MetadataRecord>,
    #[prost(string, optional, tag = "13")]
    redirect_url: Option<String>,
    #[prost(string, optional, tag = "14")]
    cancel_url: Option<String>,
    #[prost(uint64, tag = "15")]
    created_at_ms: u64,
    #[prost(uint64, tag = "16")]
    updated_at_ms: u64,
    #[prost(uint64, tag = "17")]
    expires_at_ms: u64,
    #[prost(uint64, tag = "18")]
    grace_ms: u64,
    #[prost(uint64, optional, tag = "19")]
    completed_at_ms: Option<u64>,
    #[prost(bool, tag = "20")]
    livemode: bool,
    #[prost(message, repeated, tag = "21")]
    transfers: Vec<CreditRecord>,
    #[prost(message, optional, tag = "22")]
    claim: Option<ClaimRecord>,
    #[prost(bytes = "vec", optional, tag = "23")]
    paid_by: Option<Vec<u8>>,
    #[prost(message, optional, tag = "24")]
    cancellation: Option<CancellationRecord>,
    #[prost(bool, tag = "25")]
    is_reversed: bool,
    #[prost(message, optional, tag = "26")]
    resolution: Option<ResolutionRecord>,
    #[prost(message, repeated, tag = "27")]
    refunds: Vec<RefundRecord>,
    #[prost(bool, tag = "28")]
    is_invoice: bool,
    #[prost(uint64, optional, tag = "29")]
    wallet_opened_at_ms: Option<u64>,
    /// None if every transfer is listed.
    #[prost(message, optional, tag = "30")]
    unlisted: Option<TotalsRecord>,
    /// `Summary::is_unusual`, so that [`payment_facts`](super::indexed::payment_facts) need not derive it.
    #[prost(bool, tag = "31")]
    is_unusual: bool,
    #[prost(uint64, tag = "32")]
    decided_transfers: u64,
    #[prost(message, optional, tag = "33")]
    accepted: Option<AcceptedRecord>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct AcceptedRecord {
    #[prost(uint64, tag = "1")]
    transfers: u64,
    #[prost(uint64, tag = "2")]
    refunds: u64,
    #[prost(bool, tag = "3")]
    had_ended: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct CancellationRecord {
    #[prost(uint32, tag = "1")]
    by: u32,
    #[prost(uint64, tag = "2")]
    requested_at_ms: u64,
    #[prost(uint64, tag = "3")]
    pub(super) cutoff_ms: u64,
    #[prost(uint64, optional, tag = "4")]
    pub(super) dropped_at_ms: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct ResolutionRecord {
    #[prost(uint32, tag = "1")]
    kind: u32,
    #[prost(string, tag = "2")]
    by: String,
    #[prost(uint64, tag = "3")]
    at_ms: u64,
    #[prost(string, tag = "4")]
    note: String,
    #[prost(bytes = "vec", optional, tag = "5")]
    tx_id: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct RefundRecord {
    #[prost(bytes = "vec", tag = "1")]
    tx_id: Vec<u8>,
    #[prost(uint32, tag = "2")]
    op_in_tx: u32,
    #[prost(string, tag = "3")]
    to: String,
    #[prost(uint64, tag = "4")]
    units: u64,
    #[prost(uint32, tag = "5")]
    currency: u32,
    #[prost(uint64, tag = "6")]
    at_ms: u64,
}

#[derive(Clone, PartialEq, Message)]
struct QuoteRecord {
    #[prost(uint64, tag = "1")]
    fee_units: u64,
    /// The account that receives the fee as part of the payment; none if the fee is invoiced.
    #[prost(string, optional, tag = "2")]
    split_account: Option<String>,
    #[prost(uint64, tag = "3")]
    usd_cents: u64,
    #[prost(message, optional, tag = "4")]
    rate: Option<RateRecord>,
}

#[derive(Clone, PartialEq, Message)]
struct MetadataRecord {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(bool, tag = "2")]
    is_list: bool,
    #[prost(string, repeated, tag = "3")]
    texts: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
struct ClaimRecord {
    #[prost(bytes = "vec", tag = "1")]
    tx_id: Vec<u8>,
    #[prost(string, tag = "2")]
    nonce: String,
    #[prost(string, tag = "3")]
    payer: String,
    #[prost(message, repeated, tag = "4")]
    transfers: Vec<ClaimedTransferRecord>,
    #[prost(string, tag = "5")]
    signed_json: String,
    #[prost(uint64, tag = "6")]
    expiration_ms: u64,
    #[prost(uint64, tag = "7")]
    claimed_at_ms: u64,
    #[prost(uint32, tag = "8")]
    finality: u32,
    #[prost(string, optional, tag = "9")]
    identifier: Option<String>,
    #[prost(message, optional, tag = "10")]
    proof: Option<ProofRecord>,
}

#[derive(Clone, PartialEq, Message)]
struct ClaimedTransferRecord {
    #[prost(uint32, tag = "1")]
    op_in_tx: u32,
    #[prost(string, tag = "2")]
    to: String,
    #[prost(uint64, tag = "3")]
    units: u64,
    #[prost(uint32, tag = "4")]
    currency: u32,
    #[prost(string, tag = "5")]
    memo: String,
}

/// Returns the stored form of a payment. Its id is the key and not repeated.
pub(crate) fn payment_to_bytes(payment: &Payment) -> Vec<u8> {
    seal(VERSION, &PaymentRecord::from(payment))
}

/// Decodes a payment.
pub(crate) fn payment_from_bytes(id: PaymentId, bytes: &[u8]) -> Result<Payment, Damage> {
    unseal::<PaymentRecord>(VERSION, bytes)?.into_payment(id)
}

impl From<&Payment> for PaymentRecord {
    fn from(payment: &Payment) -> Self {
        Self {
            merchant: Some(payment.merchant.bits().into()),
            version: payment.version,
            state: payment.state.number(),
            previous_state: code_of(payment.previous_state),
            sequence: payment.sequence,
            slug: Some(payment.slug.bits().into()),
            amount_units: payment.amount.units,
            currency: payment.amount.currency.number(),
            quote: Some((&payment.quote).into()),
            pay_to: payment.pay_to.as_str().to_owned(),
            description: payment.description.clone(),
            metadata: payment.metadata.iter().map(MetadataRecord::from).collect(),
            redirect_url: payment.redirect_url.clone(),
            cancel_url: payment.cancel_url.clone(),
            created_at_ms: payment.created_at.millis(),
            updated_at_ms: payment.updated_at.millis(),
            expires_at_ms: payment.expires_at.millis(),
            grace_ms: millis(payment.grace),
            completed_at_ms: payment.completed_at.map(Timestamp::millis),
            livemode: payment.livemode,
            transfers: payment.transfers.iter().map(CreditRecord::from).collect(),
            claim: payment.claim.as_deref().map(ClaimRecord::from),
            paid_by: payment.paid_by.map(|tx_id| tx_id.0.to_vec()),
            cancellation: payment.cancellation.map(CancellationRecord::from),
            is_reversed: payment.is_reversed,
            resolution: payment.resolution.as_ref().map(ResolutionRecord::from),
            refunds: payment.refunds.iter().map(RefundRecord::from).collect(),
            is_invoice: payment.is_invoice,
            wallet_opened_at_ms: payment.wallet_opened_at.map(Timestamp::millis),
            unlisted: payment.unlisted.as_deref().map(TotalsRecord::from),
            is_unusual: Summary::of(payment).is_unusual,
            decided_transfers: payment.decided_transfers,
            accepted: payment.accepted.map(AcceptedRecord::from),
        }
    }
}

impl PaymentRecord {
    fn into_payment(self, key: PaymentId) -> Result<Payment, Damage> {
        let tx_id = |bytes: Vec<u8>| array("paid_by", &bytes).map(TxId);
        Ok(Payment {
            id: key,
            merchant: MerchantId::from_bits(id("merchant", self.merchant)?),
            version: self.version,
            state: code("state", self.state)?,
            previous_state: optional_code("previous_state", self.previous_state)?,
            sequence: self.sequence,
            slug: SlugToken::from_bits(id("slug", self.slug)?),
            amount: Money::new(self.amount_units, code("currency", self.currency)?),
            quote: self.quote.ok_or(Damage::Missing("quote"))?.try_into()?,
            pay_to: account("pay_to", &self.pay_to)?,
            description: self.description,
            metadata: self.metadata.into_iter().map(MetadataRecord::into_entry).collect::<Result<_, _>>()?,
            redirect_url: self.redirect_url,
            cancel_url: self.cancel_url,
            created_at: time(self.created_at_ms),
            updated_at: time(self.updated_at_ms),
            expires_at: time(self.expires_at_ms),
            grace: Duration::from_millis(self.grace_ms),
            completed_at: self.completed_at_ms.map(time),
            livemode: self.livemode,
            transfers: self.transfers.into_iter().map(Credit::try_from).collect::<Result<_, _>>()?,
            claim: self.claim.map(Claim::try_from).transpose()?.map(Arc::new),
            paid_by: self.paid_by.map(tx_id).transpose()?,
            cancellation: self.cancellation.map(Cancellation::try_from).transpose()?,
            wallet_opened_at: self.wallet_opened_at_ms.map(time),
            is_reversed: self.is_reversed,
            resolution: self.resolution.map(Resolution::try_from).transpose()?,
            refunds: self.refunds.into_iter().map(Refund::try_from).collect::<Result<_, _>>()?,
            is_invoice: self.is_invoice,
            unlisted: self.unlisted.map(Totals::try_from).transpose()?.map(Box::new),
            decided_transfers: self.decided_transfers,
            accepted: self.accepted.map(Acceptance::from),
        })
    }
}

impl From<Acceptance> for AcceptedRecord {
    fn from(Acceptance { transfers, refunds, had_ended }: Acceptance) -> Self {
        Self { transfers, refunds, had_ended }
    }
}

impl From<AcceptedRecord> for Acceptance {
    fn from(AcceptedRecord { transfers, refunds, had_ended }: AcceptedRecord) -> Self {
        Self { transfers, refunds, had_ended }
    }
}

impl From<Cancellation> for CancellationRecord {
    fn from(request: Cancellation) -> Self {
        Self {
            by: request.by.number(),
            requested_at_ms: request.requested_at.millis(),
            cutoff_ms: request.cutoff.millis(),
            dropped_at_ms: request.dropped_at.map(Timestamp::millis),
        }
    }
}

impl TryFrom<CancellationRecord> for Cancellation {
    type Error = Damage;
    fn try_from(record: CancellationRecord) -> Result<Self, Damage> {
        Ok(Self {
            by: code("cancelled by", record.by)?,
            requested_at: time(record.requested_at_ms),
            cutoff: time(record.cutoff_ms),
            dropped_at: record.dropped_at_ms.map(time),
        })
    }
}

impl From<&Quote> for QuoteRecord {
    fn from(quote: &Quote) -> Self {
        let split_account = match &quote.fee_mode {
            FeeMode::Invoice => None,
            FeeMode::Split { account } => Some(account.as_str().to_owned()),
        };
        Self {
            fee_units: quote.fee_units,
            split_account,
            usd_cents: quote.usd_cents,
            rate: quote.rate.map(RateRecord::from),
        }
    }
}

impl TryFrom<QuoteRecord> for Quote {
    type Error = Damage;
    fn try_from(record: QuoteRecord) -> Result<Self, Damage> {
        let fee_mode = match record.split_account {
            None => FeeMode::Invoice,
            Some(name) => FeeMode::Split { account: account("split_account", &name)? },
        };
        Ok(Self {
            fee_units: record.fee_units,
            fee_mode,
            usd_cents: record.usd_cents,
            rate: record.rate.map(Rate::try_from).transpose()?,
        })
    }
}

impl From<(&String, &MetadataValue)> for MetadataRecord {
    fn from((key, value): (&String, &MetadataValue)) -> Self {
        let (is_list, texts) = match value {
            MetadataValue::Text(text) => (false, vec![text.clone()]),
            MetadataValue::List(texts) => (true, texts.clone()),
        };
        Self { key: key.clone(), is_list, texts }
    }
}

impl MetadataRecord {
    fn into_entry(mut self) -> Result<(String, MetadataValue), Damage> {
        let value = if self.is_list {
            MetadataValue::List(self.texts)
        } else {
            MetadataValue::Text(self.texts.pop().ok_or(Damage::Missing("metadata text"))?)
        };
        Ok((self.key, value))
    }
}

impl From<&Resolution> for ResolutionRecord {
    fn from(resolution: &Resolution) -> Self {
        Self {
            kind: resolution.kind.number(),
            by: resolution.by.clone(),
            at_ms: resolution.at.millis(),
            note: resolution.note.clone(),
            tx_id: resolution.tx_id.map(|tx_id| tx_id.0.to_vec()),
        }
    }
}

impl TryFrom<ResolutionRecord> for Resolution {
    type Error = Damage;
    fn try_from(record: ResolutionRecord) -> Result<Self, Damage> {
        let tx_id = |bytes: Vec<u8>| array("resolution tx_id", &bytes).map(TxId);
        Ok(Self {
            kind: code("resolution kind", record.kind)?,
            by: record.by,
            at: time(record.at_ms),
            note: record.note,
            tx_id: record.tx_id.map(tx_id).transpose()?,
        })
    }
}

impl From<&Refund> for RefundRecord {
    fn from(refund: &Refund) -> Self {
        Self {
            tx_id: refund.tx_id.0.to_vec(),
            op_in_tx: refund.op_in_tx,
            to: refund.to.as_str().to_owned(),
            units: refund.money.units,
            currency: refund.money.currency.number(),
            at_ms: refund.at.millis(),
        }
    }
}

impl TryFrom<RefundRecord> for Refund {
    type Error = Damage;
    fn try_from(record: RefundRecord) -> Result<Self, Damage> {
        Ok(Self {
            tx_id: array("refund tx_id", &record.tx_id).map(TxId)?,
            op_in_tx: record.op_in_tx,
            to: account("refund to", &record.to)?,
            money: Money::new(record.units, code("refund currency", record.currency)?),
            at: time(record.at_ms),
        })
    }
}

impl From<&Claim> for ClaimRecord {
    fn from(claim: &Claim) -> Self {
        Self {
            tx_id: claim.tx_id.0.to_vec(),
            nonce: claim.nonce.clone(),
            payer: claim.payer.as_str().to_owned(),
            transfers: claim
                .transfers
                .iter()
                .map(|transfer| ClaimedTransferRecord {
                    op_in_tx: transfer.op_in_tx,
                    to: transfer.to.as_str().to_owned(),
                    units: transfer.money.units,
                    currency: transfer.money.currency.number(),
                    memo: transfer.memo.clone(),
                })
                .collect(),
            signed_json: claim.signed_json.clone(),
            expiration_ms: claim.expiration.millis(),
            claimed_at_ms: claim.claimed_at.millis(),
            finality: claim.finality.number(),
            identifier: claim.identifier.clone(),
            proof: Some((&claim.proof).into()),
        }
    }
}

impl TryFrom<ClaimRecord> for Claim {
    type Error = Damage;
    fn try_from(record: ClaimRecord) -> Result<Self, Damage> {
        let transfer = |transfer: ClaimedTransferRecord| {
            Ok(ClaimedTransfer {
                op_in_tx: transfer.op_in_tx,
                to: account("claimed to", &transfer.to)?,
                money: Money::new(transfer.units, code("claimed currency", transfer.currency)?),
                memo: transfer.memo,
            })
        };
        Ok(Self {
            tx_id: array("claim tx_id", &record.tx_id).map(TxId)?,
            nonce: record.nonce,
            payer: account("claim payer", &record.payer)?,
            transfers: record.transfers.into_iter().map(transfer).collect::<Result<_, Damage>>()?,
            signed_json: record.signed_json,
            expiration: time(record.expiration_ms),
            claimed_at: time(record.claimed_at_ms),
            finality: code("claim finality", record.finality)?,
            identifier: record.identifier,
            proof: record.proof.ok_or(Damage::Missing("claim proof"))?.try_into()?,
        })
    }
}
