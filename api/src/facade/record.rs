//! How records look in JSON: the names of the interface, and beside them the names published clients read.

mod merchant;

use std::{collections::BTreeMap, fmt::Display};

use engine::{
    money::{Currency, Money},
    time::Timestamp,
};
pub(super) use merchant::{Merchant, network_word, verification_word};
use proto::v1::{
    self, CancelledBy, Disposition, Finality, PaymentException, PaymentStatus, ResolutionKind, Route,
    metadata_value::Value as MetadataKind,
};
use serde::{Serialize, Serializer, ser::SerializeMap};

use super::{Facade, cancellation};

/// The payment provider, the same on every record.
const PROVIDER: &str = "hive";
const PRECISION: u8 = 3;

/// A value that is written as its text.
pub(super) struct Text<T>(pub(super) T);

impl<T: Display> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// Reads a currency of the wire. A number from the future reads as HBD; the engine refuses to make such a payment.
pub(super) fn currency(wire: i32) -> Currency {
    match v1::Currency::try_from(wire) {
        Ok(v1::Currency::Hive) => Currency::Hive,
        _ => Currency::Hbd,
    }
}

/// Writes a currency for the wire.
pub(super) const fn currency_to_wire(currency: Currency) -> v1::Currency {
    match currency {
        Currency::Hive => v1::Currency::Hive,
        Currency::Hbd => v1::Currency::Hbd,
    }
}

/// Reads an instant of the wire.
pub(super) fn instant(wire: impl Into<Option<proto::time::Timestamp>>) -> Timestamp {
    Timestamp::from_millis(wire.into().and_then(proto::time::to_millis).unwrap_or(0))
}

/// Writes an instant for the wire.
pub(super) fn instant_to_wire(instant: Timestamp) -> proto::time::Timestamp {
    proto::time::from_millis(instant.millis())
}

/// Returns a state's word.
pub(crate) fn status_word(wire: i32) -> &'static str {
    word(PaymentStatus::try_from(wire), PaymentStatus::Unspecified, PaymentStatus::as_str_name, &STATUS_WORDS)
}

/// Finds the state of a word.
pub(super) fn status_of_word(text: &str) -> Option<PaymentStatus> {
    (1..=6).filter_map(|wire| PaymentStatus::try_from(wire).ok()).find(|status| status_word((*status).into()) == text)
}

/// What a name of the wire and its word share, so that both stay in step: `PAYMENT_STATUS_PENDING`, `pending`.
pub(super) struct Words {
    pub(super) prefix: &'static str,
    pub(super) words: &'static [&'static str],
}

pub(super) fn word<T: Copy, E>(
    read: Result<T, E>,
    unknown: T,
    name: fn(&T) -> &'static str,
    words: &Words,
) -> &'static str {
    let name = name(&read.unwrap_or(unknown));
    let bare = name.strip_prefix(words.prefix).unwrap_or(name);
    words.words.iter().find(|word| word.eq_ignore_ascii_case(bare)).copied().unwrap_or("unknown")
}

pub(super) static STATUS_WORDS: Words = Words {
    prefix: "PAYMENT_STATUS_",
    words: &["pending", "processing", "completed", "failed", "user_cancelled", "system_cancelled"],
};
pub(super) static EXCEPTION_WORDS: Words = Words {
    prefix: "PAYMENT_EXCEPTION_",
    words: &[
        "underpaid",
        "overpaid",
        "paid_again",
        "paid_late",
        "paid_after_cancel",
        "paid_after_failure",
        "wrong_currency",
        "self_transfer",
        "settlement_reversed",
        "manual",
    ],
};
pub(super) static FINALITY_WORDS: Words =
    Words { prefix: "FINALITY_", words: &["reversible", "irreversible", "orphaned"] };
pub(super) static DISPOSITION_WORDS: Words = Words {
    prefix: "DISPOSITION_",
    words: &["counted", "surplus", "late", "after_cancel", "after_failure", "wrong_currency", "self", "fee"],
};
pub(super) static ROUTE_WORDS: Words = Words { prefix: "ROUTE_", words: &["wallet", "x402", "manual"] };
pub(super) static CANCELLED_BY_WORDS: Words = Words { prefix: "CANCELLED_BY_", words: &["customer", "merchant"] };
pub(super) static RESOLUTION_WORDS: Words =
    Words { prefix: "RESOLUTION_KIND_", words: &["accepted", "refunded", "ignored"] };

pub(super) fn exception_word(wire: i32) -> &'static str {
    let read = PaymentException::try_from(wire);
    word(read, PaymentException::Unspecified, PaymentException::as_str_name, &EXCEPTION_WORDS)
}

pub(super) fn finality_word(wire: i32) -> &'static str {
    word(Finality::try_from(wire), Finality::Unspecified, Finality::as_str_name, &FINALITY_WORDS)
}

pub(super) fn disposition_word(wire: i32) -> &'static str {
    word(Disposition::try_from(wire), Disposition::Unspecified, Disposition::as_str_name, &DISPOSITION_WORDS)
}

pub(super) fn resolution_word(wire: i32) -> &'static str {
    let read = ResolutionKind::try_from(wire);
    word(read, ResolutionKind::Unspecified, ResolutionKind::as_str_name, &RESOLUTION_WORDS)
}

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
    fn of(payment: &v1::Payment) -> Self {
        let money = Money::new(payment.amount_units, currency(payment.currency));
        Self {
            value: Text(money.units),
            formatted: Text(money),
            currency: money.currency.code(),
            usd_cents: payment.usd_cents,
        }
    }
}

/// A plain amount of a transfer or refund.
#[derive(Serialize)]
pub(super) struct Sum {
    value: Text<u64>,
    formatted: Text<Money>,
    currency: &'static str,
}

impl Sum {
    pub(super) fn of(money: Option<&v1::Money>) -> Self {
        let money =
            money.map_or(Money::new(0, Currency::Hbd), |money| Money::new(money.units, currency(money.currency)));
        Self { value: Text(money.units), formatted: Text(money), currency: money.currency.code() }
    }
}

/// What creation answers: the first shape of the interface, with the slug.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Created<'a> {
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
    pub(super) fn of(facade: &Facade, payment: &'a v1::Payment) -> Self {
        let amount = Amount::of(payment);
        Self {
            id: &payment.id,
            slug: &payment.slug,
            status: status_word(payment.status),
            checkout_url: checkout_url(facade, &payment.id),
            slug_url: slug_url(facade, &payment.slug),
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
        }
    }
}

/// What creation answers on its other path: the second shape, with the checkout address under its usual name too.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CreatedShort<'a> {
    id: &'a str,
    slug: &'a str,
    redirect_url: &'a str,
    checkout_url: &'a str,
}

impl<'a> CreatedShort<'a> {
    pub(super) fn of(payment: &'a v1::Payment, slug_url: &'a str) -> Self {
        Self { id: &payment.id, slug: &payment.slug, redirect_url: slug_url, checkout_url: slug_url }
    }
}

/// The checkout address by id.
pub(super) fn checkout_url(facade: &Facade, id: &str) -> String {
    facade.url(&format!("/checkout/{id}"))
}

/// The checkout address by slug.
pub(super) fn slug_url(facade: &Facade, slug: &str) -> String {
    facade.url(&format!("/for/{slug}"))
}

/// The whole record of a payment.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Payment<'a> {
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
    pub(super) fn of(facade: &Facade, payment: &'a v1::Payment) -> Self {
        Self::at(&facade.base_url, payment)
    }

    /// The same for who has only the address the world reaches us at.
    pub(super) fn at(base_url: &str, payment: &'a v1::Payment) -> Self {
        let amount = Amount::of(payment);
        let tx_id = payment.tx_id.as_deref();
        let request = cancellation::standing(payment);
        Self {
            id: &payment.id,
            merchant_id: &payment.merchant_id,
            status: status_word(payment.status),
            checkout_url: format!("{base_url}/checkout/{}", payment.id),
            slug: &payment.slug,
            slug_url: format!("{base_url}/for/{}", payment.slug),
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
            transfers: payment.transfers.iter().map(Transfer::of).collect(),
            transfer_count: payment.transfer_count,
            refunds: payment.refunds.iter().map(Refund::of).collect(),
            resolution: payment.resolution.as_ref().map(Resolution::of),
            needs_attention: payment.needs_attention,
            tx_id,
            tx_hint: payment.tx_hint.as_deref(),
            previous_status: (payment.previous_status != 0).then(|| status_word(payment.previous_status)),
            status_reason: payment.status_reason().word(),
            cancel_requested: request.is_some(),
            cancel_requested_at: request.map(|request| Text(instant(request.requested_at))),
            cancelled_by: request.map(|request| {
                let read = CancelledBy::try_from(request.by);
                word(read, CancelledBy::Unspecified, CancelledBy::as_str_name, &CANCELLED_BY_WORDS)
            }),
            cutoff: request.map(|request| Text(instant(request.cutoff))),
            wallet_opened_at: payment.wallet_opened_at.map(|at| Text(instant(at))),
            sequence: payment.sequence,
            expired: payment.expired,
            rate_at: payment.rate_at.map(|at| Text(instant(at))),
            livemode: payment.livemode,
            amount,
        }
    }
}

/// Writes a percentage as the shortest JSON number.
pub(super) fn percent(ten_thousandths: u32) -> serde_json::Number {
    let text = engine::money::FeePercent::from_ten_thousandths(ten_thousandths).unwrap_or_default().to_string();
    text.parse().unwrap_or_else(|_| 0.into())
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
pub(super) fn metadata_text(metadata: &BTreeMap<String, v1::MetadataValue>) -> String {
    String::from_utf8(super::answer::to_json(&Metadata(metadata))).unwrap_or_default()
}

/// Returns the words of a payment's exceptions.
pub(super) fn exception_words(wire: &[i32]) -> Vec<&'static str> {
    wire.iter().map(|wire| exception_word(*wire)).collect()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Transfer<'a> {
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
    pub(super) fn of(transfer: &'a v1::Transfer) -> Self {
        Self {
            tx_id: &transfer.tx_id,
            op_index: transfer.op_index,
            block_num: transfer.block_num,
            block_time: transfer.block_time.map(|at| Text(instant(at))),
            from: &transfer.from_account,
            to: &transfer.to_account,
            amount: Sum::of(transfer.amount.as_ref()),
            memo: &transfer.memo,
            finality: finality_word(transfer.finality),
            disposition: disposition_word(transfer.disposition),
            route: word(Route::try_from(transfer.route), Route::Unspecified, Route::as_str_name, &ROUTE_WORDS),
            memo_normalized: transfer.memo_normalized,
        }
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
    fn of(refund: &'a v1::Refund) -> Self {
        let at = Text(instant(refund.at));
        Self { tx_id: &refund.tx_id, op_index: refund.op_index, amount: Sum::of(refund.amount.as_ref()), at }
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

/// Returns the token of a next page, where there is one.
pub(super) fn token(token: &str) -> Option<&str> {
    Some(token).filter(|token| !token.is_empty())
}

/// A page of records.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Page<T> {
    data: Vec<T>,
    pagination: Pagination,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Pagination {
    page: u32,
    limit: u32,
    /// Only where the list was counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_pages: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    total_is_lower_bound: bool,
}

impl<T> Page<T> {
    pub(super) fn new(data: Vec<T>, page: u32, limit: u32, total: u64, next_cursor: Option<String>) -> Self {
        let page = Self::uncounted(data, page, limit, next_cursor);
        page.counted(total, false)
    }

    /// Returns a page of a list that was not counted.
    pub(super) const fn uncounted(data: Vec<T>, page: u32, limit: u32, next_cursor: Option<String>) -> Self {
        let pagination = Pagination { page, limit, total: None, total_pages: None, total_is_lower_bound: false };
        Self { data, pagination, next_cursor }
    }

    /// Says how many there are, or that there are more.
    pub(super) fn counted(mut self, total: u64, is_lower_bound: bool) -> Self {
        let pages = total.div_ceil(u64::from(self.pagination.limit.max(1)));
        (self.pagination.total, self.pagination.total_pages) = (Some(total), Some(pages));
        self.pagination.total_is_lower_bound = is_lower_bound;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every number of the wire from 1 on has its word, and the list has no word more.
    fn walk(words: &Words, word_of: impl Fn(i32) -> &'static str) {
        let count = i32::try_from(words.words.len()).expect("few");
        for wire in 1..=count {
            assert_ne!(word_of(wire), "unknown", "{}{wire}", words.prefix);
        }
        assert_eq!(word_of(0), "unknown");
        assert_eq!(word_of(count + 1), "unknown", "{} has a number without a word", words.prefix);
    }

    #[test]
    fn every_number_of_the_wire_has_a_word() {
        walk(&STATUS_WORDS, status_word);
        walk(&EXCEPTION_WORDS, exception_word);
        walk(&FINALITY_WORDS, finality_word);
        walk(&DISPOSITION_WORDS, disposition_word);
        walk(&super::super::astray::REASON_WORDS, super::super::astray::reason_word);
        walk(&super::super::astray::STATUS_WORDS, super::super::astray::status_word);
        walk(&ROUTE_WORDS, |wire| word(Route::try_from(wire), Route::Unspecified, Route::as_str_name, &ROUTE_WORDS));
        walk(&CANCELLED_BY_WORDS, |wire| {
            word(CancelledBy::try_from(wire), CancelledBy::Unspecified, CancelledBy::as_str_name, &CANCELLED_BY_WORDS)
        });
        walk(&RESOLUTION_WORDS, resolution_word);
        assert_eq!(status_of_word("user_cancelled"), Some(PaymentStatus::UserCancelled));
        assert_eq!(status_of_word("PENDING"), None);
    }

    #[test]
    fn a_percentage_is_the_shortest_number() {
        for (ten_thousandths, text) in [(15_000, "1.5"), (0, "0"), (125, "0.0125"), (1_000_000, "100")] {
            assert_eq!(percent(ten_thousandths).to_string(), text);
        }
    }

    #[test]
    fn pages_count_from_the_total() {
        for (total, limit, pages) in [(0, 20, 0), (1, 20, 1), (20, 20, 1), (21, 20, 2)] {
            let page = Page::<()>::new(Vec::new(), 1, limit, total, None);
            assert_eq!(page.pagination.total_pages, Some(pages));
        }
    }
}
