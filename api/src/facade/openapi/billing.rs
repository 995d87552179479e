//! Schemas of billing.

use serde_json::{Value, json};

use super::shape::{
    boolean, given_url, integer, list, nullable, object, optional, page, reference, text, time, url, with, words,
};

/// Adds every schema of billing.
pub(super) fn add(add: &mut impl FnMut(&str, Value)) {
    add("FeeTier", tier());
    add("FeeTiers", object(&[("tiers", list("FeeTier")), ("version", cents()), ("updatedAt", nullable(time()))]));
    let tiers = json!({ "type": "array", "items": reference("FeeTier"), "minItems": 1, "maxItems": 20 });
    add("SetFeeTiers", object(&[("tiers", tiers)]));
    add("BillingPeriod", period());
    let merchant = [
        ("merchantId", text()),
        ("merchantName", text()),
        ("merchantHiveAccountName", text()),
        ("merchantIconUrl", nullable(given_url())),
    ];
    add("AdminBillingPeriod", with(period(), &merchant));
    add("BillingPeriodPage", page("AdminBillingPeriod"));
    let current = object(&[
        ("periodStart", time()),
        ("periodEnd", time()),
        ("totalVolumeCents", cents()),
        ("transactionCount", cents()),
        ("projectedInvoiceCents", cents()),
    ]);
    let summary = |period: &str| {
        object(&[
            ("merchantId", text()),
            ("merchantName", text()),
            ("currentMonth", current.clone()),
            ("outstandingInvoices", list(period)),
            ("paidInvoices", list(period)),
            ("outstandingAmountCents", cents()),
            ("totalPaidCents", cents()),
            ("feeTiers", list("FeeTier")),
        ])
    };
    add("BillingSummary", summary("BillingPeriod"));
    add("AdminBillingSummary", summary("AdminBillingPeriod"));
    add("BillingOverview", overview());
    add(
        "GenerateInvoices",
        optional(&[("year", nullable(integer(1_970, 9_997))), ("month", nullable(integer(1, 12)))]),
    );
    let detail = object(&[
        ("merchantId", text()),
        ("merchantName", text()),
        ("volumeCents", cents()),
        ("invoiceCents", cents()),
        ("period", reference("AdminBillingPeriod")),
    ]);
    let details = json!({ "type": "array", "items": detail });
    let made = object(&[("invoicesGenerated", cents()), ("totalBilledCents", cents()), ("details", details)]);
    add("GeneratedInvoices", made);
}

/// The states of a billing period.
pub(super) fn status() -> Value {
    words(&["open", "invoiced", "paid", "overdue"])
}

fn cents() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn tier() -> Value {
    let bound = || json!({ "type": "integer", "minimum": 0, "maximum": engine::billing::MAX_VOLUME_CENTS });
    let percent = json!({ "type": "number", "minimum": 0, "maximum": 100 });
    object(&[("minVolumeCents", bound()), ("maxVolumeCents", nullable(bound())), ("percentFee", percent)])
}

fn period() -> Value {
    with(
        object(&[
            ("id", text()),
            ("periodStart", time()),
            ("periodEnd", time()),
            ("totalVolumeCents", cents()),
            ("transactionCount", cents()),
            ("invoiceAmountCents", cents()),
            ("status", status()),
            ("invoiceSessionId", nullable(text())),
            ("invoiceSlug", nullable(text())),
            ("invoicePaymentUrl", nullable(url())),
            ("createdAt", time()),
            ("updatedAt", time()),
            ("dueAt", nullable(time())),
            ("paidAt", nullable(time())),
        ]),
        &[("splitVolumeCents", cents()), ("missingFeeCents", cents())],
    )
}

fn overview() -> Value {
    let totals = object(&[
        ("merchantsCount", cents()),
        ("merchantsBehindCount", cents()),
        ("merchantsPaidCount", cents()),
        ("totalOutstandingCents", cents()),
        ("totalPaidAllTimeCents", cents()),
        ("currentMonthVolumeCents", cents()),
        ("currentMonthProjectedCents", cents()),
    ]);
    let account = object(&[
        ("merchantId", text()),
        ("merchantName", text()),
        ("hiveAccountName", text()),
        ("iconUrl", nullable(given_url())),
        ("currentMonthVolumeCents", cents()),
        ("currentMonthProjectedCents", cents()),
        ("outstandingInvoices", cents()),
        ("outstandingAmountCents", cents()),
        ("paidInvoices", cents()),
        ("paidAmountCents", cents()),
        ("oldestUnpaidPeriodStart", nullable(time())),
        ("isBehind", boolean()),
    ]);
    object(&[("totals", totals), ("merchants", json!({ "type": "array", "items": account }))])
}
