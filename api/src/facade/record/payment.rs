//! The record of a payment in JSON: the names of the interface, and beside them the names published clients read.

use std::collections::BTreeMap;

use engine::{money::Money, time::Timestamp};
use proto::{
    ApiError,
    v1::{self, metadata_value::Value as MetadataKind},
};
use serde::{Serialize, Serializer, ser::SerializeMap};

use super::{
    cancellation,
    value::{Sum, Text, instant, price},
    words::{
        cancelled_by_word, disposition_word, exception_word, finality_word, resolution_word, route_word, status_word,
    },
};

/// The payment provider, the same on every record.
const PROVIDER: &str = "hive";
const PRECISION: u8 = 3;

/// An amount object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Amount {
    value: Text<u64>,
    formatted: Text<Money>,
    currency: &'static str,
    usd_cents: u64,
}

impl Amount {
    fn of(payment: &v1::Payment) -> Result<Self, ApiError> {
        let money = price(payment)?;
        Ok(Self {
            value: Text(money.units),
            formatted: Text(money),
            currency: money.currency.code(),
            usd_cents: payment.usd_cents,
        })
    }
}

/// What creation answers: the first shape of the interface, with the slug.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Created<'a> {
    id: &'a str,
    slug: &'a str,
    status: &'static str,
    checkout_url: String,
    slug_url: String,
    amount: Amount,
    fee: Text<u64>,
    net: Text<u64>,
    description: &'a str,
    expires_at: Text<Timestamp>,
    created_at: Text<Timestamp>,
    amount_formatted: Text<Money>,
    currency: &'static str,
    precision: u8,
    usd_equivalent_cents: u64,
}

impl<'a> Created<'a> {
    /// Returns the record with links below `base_url`.
    ///
    /// # Errors
    /// `internal` where the engine names no currency that is known.
    pub(crate) fn of(base_url: &str, payment: &'a v1::Payment) -> Result<Self, ApiError> {
        let amount = Amount::of(payment)?;
        Ok(Self {
            id: &payment.id,
            slug: &payment.slug,
            status: status_word(payment.status),
            checkout_url: checkout_url(base_url, &payment.id),
            slug_url: slug_url(base_url, &payment.slug),
            fee: Text(payment.fee_units),
            net: Text(payment.net_units),
            description: &payment.description,
            expires_at: Text(instant(payment.expires_at)),
            created_at: Text(instant(payment.created_at)),
            amount_formatted: Text(amount.formatted.0),
            currency: amount.currency,
            precision: PRECISION,
            usd_equivalent_cents: payment.usd_cents,
            amount,
        })
    }
}

/// What creation answers on its other path: the second shape, with the checkout address under its usual name too.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CreatedShort<'a> {
    id: &'a str,
    slug: &'a str,
    redirect_url: &'a str,
    checkout_url: &'a str,
}

impl<'a> CreatedShort<'a> {
    pub(crate) fn of(payment: &'a v1::Payment, slug_url: &'a str) -> Self {
        Self { id: &payment.id, slug: &payment.slug, redirect_url: slug_url, checkout_url: slug_url }
    }
}

/// The checkout address by id.
pub(crate) fn checkout_url(base_url: &str, id: &str) -> String {
    format!("{base_url}/checkout/{id}")
}

/// The checkout address by slug.
pub(crate) fn slug_url(base_url: &str, slug: &str) -> String {
    format!("{base_url}/for/{slug}")
}

/// The whole record of a payment.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Payment<'a> {
    id: &'a str,
    merchant_id: &'a str,
    status: &'static str,
    checkout_url: String,
    slug: &'a str,
    slug_url: String,
    amount: Amount,
    fee: Text<u64>,
    net: Text<u64>,
    description: &'a str,
    metadata: Metadata<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    redirect_url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cancel_url: Option<&'a str>,
    expires_at: Text<Timestamp>,
    completed_at: Option<Text<Timestamp>>,
    created_at: Text<Timestamp>,
    updated_at: Text<Timestamp>,

    // Other names of the above, for published clients.
    amount_formatted: Text<Money>,
    currency: &'static str,
    precision: u8,
    usd_equivalent_cents: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    redirection_url: Option<&'a str>,
    merchant_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    merchant_icon_url: Option<&'a str>,
    provider_id: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    internal_id: Option<&'a str>,

    // What the ledger said.
    pay_to: &'a str,
    memo: &'a str,
    amount_paid: Text<u64>,
    amount_remaining: Text<u64>,
    amount_overpaid: Text<u64>,
    amount_late: Text<u64>,
    amount_refunded: Text<u64>,
    exceptions: Vec<&'static str>,
    transfers: Vec<Transfer<'a>>,
    transfer_count: u64,
    refunds: Vec<Refund<'a>>,
    resolution: Option<Resolution<'a>>,
    needs_attention: bool,
    tx_id: Option<&'a str>,
    tx_hint: Option<&'a str>,

    // How it came here.
    previous_status: Option<&'static str>,
    status_reason: Option<&'static str>,
    cancel_requested: bool,
    cancel_requested_at: Option<Text<Timestamp>>,
    cancelled_by: Option<&'static str>,
    cutoff: Option<Text<Timestamp>>,
    wallet_opened_at: Option<Text<Timestamp>>,
    sequence: u64,
    expired: bool,
    rate_at: Option<Text<Timestamp>>,
    livemode: bool,
}

impl<'a> Payment<'a> {
    /// Returns the record with links below `base_url`.
    ///
    /// # Errors
    /// `internal` where the engine names no currency that is known.
    pub(crate) fn of(base_url: &str, payment: &'a v1::Payment) -> Result<Self, ApiError> {
        let amount = Amount::of(payment)?;
        let tx_id = payment.tx_id.as_deref();
        let request = cancellation::standing(payment);
        Ok(Self {
            id: &payment.id,
            merchant_id: &payment.merchant_id,
            status: status_word(payment.status),
            checkout_url: checkout_url(base_url, &payment.id),
            slug: &payment.slug,
            slug_url: slug_url(base_url, &payment.slug),
            fee: Text(payment.fee_units),
            net: Text(payment.net_units),
            description: &payment.description,
            metadata: Metadata(&payment.metadata),
            redirect_url: payment.redirect_url.as_deref(),
            cancel_url: payment.cancel_url.as_deref(),
            expires_at: Text(instant(payment.expires_at)),
            completed_at: payment.completed_at.map(|at| Text(instant(at))),
            created_at: Text(instant(payment.created_at)),
            updated_at: Text(instant(payment.updated_at)),
            amount_formatted: Text(amount.formatted.0),
            currency: amount.currency,
            precision: PRECISION,
            usd_equivalent_cents: payment.usd_cents,
            redirection_url: payment.redirect_url.as_deref(),
            merchant_name: &payment.merchant_name,
            merchant_icon_url: payment.merchant_icon_url.as_deref(),
            provider_id: PROVIDER,
            internal_id: tx_id,
            pay_to: &payment.pay_to,
            memo: &payment.memo,
            amount_paid: Text(payment.amount_paid_units),
            amount_remaining: Text(payment.amount_remaining_units),
            amount_overpaid: Text(payment.amount_overpaid_units),
            amount_late: Text(payment.amount_late_units),
            amount_refunded: Text(payment.amount_refunded_units),
            exceptions: payment.exceptions.iter().map(|wire| exception_word(*wire)).collect(),
            transfers: payment.transfers.iter().map(Transfer::of).collect::<Result<_, _>>()?,
            transfer_count: payment.transfer_count,
            refunds: payment.refunds.iter().map(Refund::of).collect::<Result<_, _>>()?,
            resolution: payment.resolution.as_ref().map(Resolution::of),
            needs_attention: payment.needs_attention,
            tx_id,
            tx_hint: payment.tx_hint.as_deref(),
            previous_status: (payment.previous_status != 0).then(|| status_word(payment.previous_status)),
            status_reason: payment.status_reason().rest_name(),
            cancel_requested: request.is_some(),
            cancel_requested_at: request.map(|request| Text(instant(request.requested_at))),
            cancelled_by: request.map(|request| cancelled_by_word(request.by)),
            cutoff: request.map(|request| Text(instant(request.cutoff))),
            wallet_opened_at: payment.wallet_opened_at.map(|at| Text(instant(at))),
            sequence: payment.sequence,
            expired: payment.expired,
            rate_at: payment.rate_at.map(|at| Text(instant(at))),
            livemode: payment.livemode,
            amount,
        })
    }
}

/// A payment's metadata, as it was given.
struct Metadata<'a>(&'a BTreeMap<String, v1::MetadataValue>);

impl Serialize for Metadata<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in self.0 {
            match &value.value {
                Some(MetadataKind::Text(text)) => map.serialize_entry(key, text)?,
                Some(MetadataKind::List(list)) => map.serialize_entry(key, &list.items)?,
                None => {}
            }
        }
        map.end()
    }
}

/// Writes a payment's metadata as one text.
pub(crate) fn metadata_text(metadata: &BTreeMap<String, v1::MetadataValue>) -> String {
    serde_json::to_string(&Metadata(metadata)).unwrap_or_default()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Transfer<'a> {
    tx_id: &'a str,
    op_index: u32,
    block_num: Option<u32>,
    block_time: Option<Text<Timestamp>>,
    from: &'a str,
    to: &'a str,
    amount: Sum,
    memo: &'a str,
    finality: &'static str,
    disposition: &'static str,
    route: &'static str,
    memo_normalized: bool,
}

impl<'a> Transfer<'a> {
    /// # Errors
    /// `internal` where the amount is missing or its currency is unknown.
    pub(crate) fn of(transfer: &'a v1::Transfer) -> Result<Self, ApiError> {
        Ok(Self {
            tx_id: &transfer.tx_id,
            op_index: transfer.op_index,
            block_num: transfer.block_num,
            block_time: transfer.block_time.map(|at| Text(instant(at))),
            from: &transfer.from_account,
            to: &transfer.to_account,
            amount: Sum::of(transfer.amount.as_ref())?,
            memo: &transfer.memo,
            finality: finality_word(transfer.finality),
            disposition: disposition_word(transfer.disposition),
            route: route_word(transfer.route),
            memo_normalized: transfer.memo_normalized,
        })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Refund<'a> {
    tx_id: &'a str,
    op_index: u32,
    amount: Sum,
    at: Text<Timestamp>,
}

impl<'a> Refund<'a> {
    fn of(refund: &'a v1::Refund) -> Result<Self, ApiError> {
        let (amount, at) = (Sum::of(refund.amount.as_ref())?, Text(instant(refund.at)));
        Ok(Self { tx_id: &refund.tx_id, op_index: refund.op_index, amount, at })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Resolution<'a> {
    kind: &'static str,
    by: &'a str,
    at: Text<Timestamp>,
    note: &'a str,
    tx_id: Option<&'a str>,
}

impl<'a> Resolution<'a> {
    fn of(resolution: &'a v1::Resolution) -> Self {
        Self {
            kind: resolution_word(resolution.kind),
            by: &resolution.by,
            at: Text(instant(resolution.at)),
            note: &resolution.note,
            tx_id: resolution.tx_id.as_deref(),
        }
    }
}
