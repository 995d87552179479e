//! The JSON record of a payment: the names of the interface, and aliases for published clients.
#![expect(unused_qualifications, reason = "the derived schemas qualify the types of optional fields")]

use std::collections::BTreeMap;

use proto::{
    ApiError,
    v1::{self, metadata_value::Value as MetadataKind},
};
use serde::{Serialize, Serializer, ser::SerializeMap};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ArrayBuilder, ObjectBuilder, OneOfBuilder, RefOr, Schema, schema::Type},
};

use super::{
    cancellation,
    names::{
        cancelled_by_name, disposition_name, exception_name, finality_name, resolution_name, route_name, status_name,
    },
    schema::{
        CancelledByName, Code, DispositionName, ExceptionName, FinalityName, Formatted, ProviderName, ResolutionName,
        RouteName, StatusName, StatusReasonName, Text, Time, Units,
    },
    value::{Sum, instant, price},
};

/// The payment provider of every record.
const PROVIDER: &str = "hive";
const PRECISION: u8 = 3;

/// An amount with its value in US cents.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Amount {
    value: Units,
    formatted: Formatted,
    currency: Code,
    usd_cents: u64,
}

impl Amount {
    fn of(payment: &v1::Payment) -> Result<Self, ApiError> {
        let money = price(payment)?;
        Ok(Self {
            value: Text(money.units),
            formatted: Text(money),
            currency: Text(money.currency),
            usd_cents: payment.usd_cents,
        })
    }
}

/// A new payment.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Created<'a> {
    id: &'a str,
    slug: &'a str,
    status: StatusName,
    #[schema(format = "uri")]
    checkout_url: String,
    #[schema(format = "uri")]
    slug_url: String,
    amount: Amount,
    fee: Units,
    net: Units,
    description: &'a str,
    expires_at: Time,
    created_at: Time,
    amount_formatted: Formatted,
    currency: Code,
    precision: u8,
    usd_equivalent_cents: u64,
}

impl<'a> Created<'a> {
    /// Returns the record with links below `base_url`.
    ///
    /// # Errors
    /// `internal` if the engine returns no known currency.
    pub(crate) fn of(base_url: &str, payment: &'a v1::Payment) -> Result<Self, ApiError> {
        let amount = Amount::of(payment)?;
        Ok(Self {
            id: &payment.id,
            slug: &payment.slug,
            status: StatusName(status_name(payment.status)),
            checkout_url: checkout_url(base_url, &payment.id),
            slug_url: slug_url(base_url, &payment.slug),
            fee: Text(payment.fee_units),
            net: Text(payment.net_units),
            description: &payment.description,
            expires_at: Text(instant(payment.expires_at)),
            created_at: Text(instant(payment.created_at)),
            amount_formatted: Text(amount.formatted.0),
            currency: Text(amount.currency.0),
            precision: PRECISION,
            usd_equivalent_cents: payment.usd_cents,
            amount,
        })
    }
}

/// The short form of a new payment: its slug and its URL, each under two names.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CreatedShort<'a> {
    id: &'a str,
    slug: &'a str,
    #[schema(format = "uri")]
    redirect_url: &'a str,
    #[schema(format = "uri")]
    checkout_url: &'a str,
}

impl<'a> CreatedShort<'a> {
    pub(crate) fn of(payment: &'a v1::Payment, slug_url: &'a str) -> Self {
        Self { id: &payment.id, slug: &payment.slug, redirect_url: slug_url, checkout_url: slug_url }
    }
}

/// Returns the checkout URL by id.
pub(crate) fn checkout_url(base_url: &str, id: &str) -> String {
    format!("{base_url}/checkout/{id}")
}

/// Returns the checkout URL by slug.
pub(crate) fn slug_url(base_url: &str, slug: &str) -> String {
    format!("{base_url}/for/{slug}")
}

/// The whole record of a payment.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Payment<'a> {
    id: &'a str,
    merchant_id: &'a str,
    status: StatusName,
    #[schema(format = "uri")]
    checkout_url: String,
    slug: &'a str,
    #[schema(format = "uri")]
    slug_url: String,
    amount: Amount,
    fee: Units,
    net: Units,
    description: &'a str,
    metadata: Metadata<'a>,
    /// A URL, as it was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    redirect_url: Option<&'a str>,
    /// A URL, as it was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    cancel_url: Option<&'a str>,
    expires_at: Time,
    #[schema(required = true)]
    completed_at: Option<Time>,
    created_at: Time,
    updated_at: Time,

    // Aliases of the fields above, for published clients.
    amount_formatted: Formatted,
    currency: Code,
    precision: u8,
    usd_equivalent_cents: u64,
    /// A URL, as it was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    redirection_url: Option<&'a str>,
    merchant_name: &'a str,
    /// A URL, as it was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    merchant_icon_url: Option<&'a str>,
    provider_id: ProviderName,
    /// The transaction that completed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    internal_id: Option<&'a str>,

    // What the ledger reported.
    pay_to: &'a str,
    memo: &'a str,
    amount_paid: Units,
    amount_remaining: Units,
    amount_overpaid: Units,
    amount_late: Units,
    amount_refunded: Units,
    exceptions: Vec<ExceptionName>,
    /// Those of a signed transaction, those that completed the payment and the newest others, at most 20. All of them:
    /// `/transfers`.
    transfers: Vec<Transfer<'a>>,
    /// How many transfers named the payment, listed here or not.
    transfer_count: u64,
    refunds: Vec<Refund<'a>>,
    #[schema(required = true)]
    resolution: Option<Resolution<'a>>,
    needs_attention: bool,
    #[schema(required = true)]
    tx_id: Option<&'a str>,
    #[schema(required = true)]
    tx_hint: Option<&'a str>,

    // Origin of the payment.
    #[schema(required = true)]
    previous_status: Option<StatusName>,
    #[schema(required = true)]
    status_reason: Option<StatusReasonName>,
    /// Whether a request to cancel is undecided or in force.
    cancel_requested: bool,
    #[schema(required = true)]
    cancel_requested_at: Option<Time>,
    #[schema(required = true)]
    cancelled_by: Option<CancelledByName>,
    /// The last block time at which a transfer still counts.
    #[schema(required = true)]
    cutoff: Option<Time>,
    /// When the page first reported an opened wallet.
    #[schema(required = true)]
    wallet_opened_at: Option<Time>,
    sequence: u64,
    expired: bool,
    #[schema(required = true)]
    rate_at: Option<Time>,
    livemode: bool,
}

impl<'a> Payment<'a> {
    /// Returns the record with links below `base_url`.
    ///
    /// # Errors
    /// `internal` if the engine returns no known currency.
    pub(crate) fn of(base_url: &str, payment: &'a v1::Payment) -> Result<Self, ApiError> {
        let amount = Amount::of(payment)?;
        let tx_id = payment.tx_id.as_deref();
        let request = cancellation::active_request(payment);
        Ok(Self {
            id: &payment.id,
            merchant_id: &payment.merchant_id,
            status: StatusName(status_name(payment.status)),
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
            currency: Text(amount.currency.0),
            precision: PRECISION,
            usd_equivalent_cents: payment.usd_cents,
            redirection_url: payment.redirect_url.as_deref(),
            merchant_name: &payment.merchant_name,
            merchant_icon_url: payment.merchant_icon_url.as_deref(),
            provider_id: ProviderName(PROVIDER),
            internal_id: tx_id,
            pay_to: &payment.pay_to,
            memo: &payment.memo,
            amount_paid: Text(payment.amount_paid_units),
            amount_remaining: Text(payment.amount_remaining_units),
            amount_overpaid: Text(payment.amount_overpaid_units),
            amount_late: Text(payment.amount_late_units),
            amount_refunded: Text(payment.amount_refunded_units),
            exceptions: payment.exceptions.iter().map(|wire| ExceptionName(exception_name(*wire))).collect(),
            transfers: payment.transfers.iter().map(Transfer::of).collect::<Result<_, _>>()?,
            transfer_count: payment.transfer_count,
            refunds: payment.refunds.iter().map(Refund::of).collect::<Result<_, _>>()?,
            resolution: payment.resolution.as_ref().map(Resolution::of),
            needs_attention: payment.needs_attention,
            tx_id,
            tx_hint: payment.tx_hint.as_deref(),
            previous_status: (payment.previous_status != 0).then(|| StatusName(status_name(payment.previous_status))),
            status_reason: payment.status_reason().rest_name().map(StatusReasonName),
            cancel_requested: request.is_some(),
            cancel_requested_at: request.map(|request| Text(instant(request.requested_at))),
            cancelled_by: request.map(|request| CancelledByName(cancelled_by_name(request.by))),
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

/// The metadata of a payment, as set by the merchant.
pub(crate) struct Metadata<'a>(&'a BTreeMap<String, v1::MetadataValue>);

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

impl PartialSchema for Metadata<'_> {
    fn schema() -> RefOr<Schema> {
        let text = || ObjectBuilder::new().schema_type(Type::String).max_length(Some(500));
        let texts = ArrayBuilder::new().items(text()).max_items(Some(20));
        ObjectBuilder::new()
            .description(Some("Data of the merchant: up to 50 keys, each with a text or a list of texts."))
            .examples([serde_json::json!({ "orderId": "A-1001" })])
            .max_properties(Some(50))
            .property_names(Some(
                ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).max_length(Some(40)),
            ))
            .additional_properties(Some(Schema::from(OneOfBuilder::new().item(text()).item(texts))))
            .into()
    }
}

impl ToSchema for Metadata<'_> {}

/// Serializes the metadata of a payment as one text.
pub(crate) fn metadata_text(metadata: &BTreeMap<String, v1::MetadataValue>) -> String {
    serde_json::to_string(&Metadata(metadata)).unwrap_or_default()
}

/// A transfer that names a payment.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Transfer<'a> {
    tx_id: &'a str,
    op_index: u32,
    #[schema(required = true)]
    block_num: Option<u32>,
    #[schema(required = true)]
    block_time: Option<Time>,
    from: &'a str,
    to: &'a str,
    amount: Sum,
    /// The first 256 characters; a longer one ends with an ellipsis.
    memo: &'a str,
    finality: FinalityName,
    disposition: DispositionName,
    route: RouteName,
    /// Whether text around the payment's name in the memo was ignored.
    memo_normalized: bool,
}

impl<'a> Transfer<'a> {
    /// # Errors
    /// `internal` if the amount is missing or its currency is unknown.
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
            finality: FinalityName(finality_name(transfer.finality)),
            disposition: DispositionName(disposition_name(transfer.disposition)),
            route: RouteName(route_name(transfer.route)),
            memo_normalized: transfer.memo_normalized,
        })
    }
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Refund<'a> {
    tx_id: &'a str,
    op_index: u32,
    amount: Sum,
    at: Time,
}

impl<'a> Refund<'a> {
    fn of(refund: &'a v1::Refund) -> Result<Self, ApiError> {
        let (amount, at) = (Sum::of(refund.amount.as_ref())?, Text(instant(refund.at)));
        Ok(Self { tx_id: &refund.tx_id, op_index: refund.op_index, amount, at })
    }
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Resolution<'a> {
    kind: ResolutionName,
    by: &'a str,
    at: Time,
    note: &'a str,
    #[schema(required = true)]
    tx_id: Option<&'a str>,
}

impl<'a> Resolution<'a> {
    fn of(resolution: &'a v1::Resolution) -> Self {
        Self {
            kind: ResolutionName(resolution_name(resolution.kind)),
            by: &resolution.by,
            at: Text(instant(resolution.at)),
            note: &resolution.note,
            tx_id: resolution.tx_id.as_deref(),
        }
    }
}
