//! Every route of the facade, one row a method and path. Dispatch, limits, the check of keys before bodies, and the
//! OpenAPI description follow from it.

use std::sync::LazyLock;

use crate::facade::{
    http::{
        query::Parameter,
        route::{
            Content,
            Content::{Empty, File, Json, JsonOrPage, Text},
            Route, delete, get, post, put,
        },
    },
    limits::Rates,
    openapi::{self, TAGS},
    pages::{checkout::handlers as checkout, html},
    rest::{
        admin, billing, compliance, events, export, health, keys, merchants, ownership, payments, reconciliation,
        sales, unmatched, webhooks,
    },
    x402,
};

/// Calls a function of the facade, with the values of the path's placeholders that it takes.
macro_rules! to {
    ($function:path) => {
        |facade, call, _| Box::pin($function(facade, call))
    };
    ($function:path, id) => {
        |facade, call, [id, _]| Box::pin($function(facade, call, id))
    };
    ($function:path, id, part) => {
        |facade, call, [id, part]| Box::pin($function(facade, call, id, part))
    };
}

const PAGE: Parameter = ("page", "page", "From 1.");
const LIMIT: Parameter = ("limit", "limit", "Items on a page, 20 when missing.");
const CURSOR: Parameter = ("cursor", "text", "The `nextCursor` of an answer, in place of `page`.");
const IDS: Parameter = ("ids", "text", "Only these payments, at most 100; commas between them.");
const WORDS: Parameter =
    ("query", "text", "Words of the id, the description, metadata, the payer or a transaction's id.");
/// How an export is written.
const FILE: [Parameter; 2] =
    [("format", "format", "csv when missing."), ("bom", "boolean", "Whether the CSV begins with a byte order mark.")];
/// Which payments are meant.
const PAYMENT_FILTERS: [Parameter; 7] = [
    ("status", "statuses", "Only these states; commas between them."),
    ("from", "time", "Created at or after."),
    ("to", "time", "Created before."),
    ("currency", "currency", "Only this currency."),
    ("minAmount", "text", "Asking for at least so many smallest units, of either currency."),
    ("maxAmount", "text", "Asking for at most so many smallest units, of either currency."),
    ("unusual", "boolean", "Only payments that need attention, or that do not."),
];
/// Which merchants are meant.
const MERCHANT_FILTERS: [Parameter; 3] = [
    ("query", "text", "A part of the id, the name or the account."),
    ("active", "boolean", "Only active merchants, or only inactive ones."),
    ("flagged", "boolean", "Only merchants on hold for compliance, or only others."),
];
/// Which deliveries are meant.
const DELIVERY_FILTERS: [Parameter; 3] = [
    ("status", "text", "Only these states: pending, held, delivered, failed; commas between them."),
    ("eventId", "text", "Only of this event."),
    ("paymentId", "text", "Only of this payment's events."),
];

/// Joins two lists of parameters into one of `N`.
const fn join<const N: usize>(first: &[Parameter], second: &[Parameter]) -> [Parameter; N] {
    assert!(first.len() + second.len() == N);
    let mut all = [("", "", ""); N];
    let mut at = 0;
    while at < N {
        all[at] = if at < first.len() { first[at] } else { second[at - first.len()] };
        at += 1;
    }
    all
}

const FILTERS: &[Parameter] = &join::<12>(&join::<10>(&[PAGE, LIMIT, CURSOR], &PAYMENT_FILTERS), &[IDS, WORDS]);
const EXPORT: &[Parameter] = &join::<10>(&join::<9>(&FILE, &PAYMENT_FILTERS), &[WORDS]);
const MERCHANTS: &[Parameter] = &join::<5>(&[PAGE, LIMIT], &MERCHANT_FILTERS);
const MERCHANT_EXPORT: &[Parameter] = &join::<5>(&FILE, &MERCHANT_FILTERS);
const DELIVERIES: &[Parameter] = &join::<5>(
    &[("cursor", "text", "The `nextCursor` of an answer."), ("limit", "limit", "Deliveries at most, 20 when missing.")],
    &DELIVERY_FILTERS,
);
const DELIVERY_EXPORT: &[Parameter] = &join::<5>(&FILE, &DELIVERY_FILTERS);

const READ: &str = "payments:read";
const WRITE: &str = "payments:write";
const MERCHANT: &str = "merchant:write";
const PAYOUT: &str = "merchant:payout";

#[rustfmt::skip]
const PAYMENTS: &[Route] = &[
    post("/api/public/payments", "Create a payment", to!(payments::create)).key(WRITE).body("CreatePayment").idempotent()
        .responds(&[(201, Json("Created"))]).refuses(&[409, 422]),
    post("/api/public/payments/create", "Create a payment; the short answer", to!(payments::create_short)).id("payments.createShort").key(WRITE).body("CreatePayment").idempotent()
        .responds(&[(201, Json("CreatedShort"))]).refuses(&[409, 422]),
    get("/api/public/payments", "List payments, newest first", to!(payments::list)).key(READ).query(FILTERS).responds(&[(200, Json("PaymentPage"))]),
    get("/api/public/payments/list", "The same under its other name", to!(payments::list)).id("payments.listAlias").key(READ).query(FILTERS).responds(&[(200, Json("PaymentPage"))]),
    get("/api/public/payments/export", "Every payment of the filter, as a file", to!(export::payments)).rates(Rates::Export).key(READ).query(EXPORT).responds(&[(200, File("Payment"))]),
    get("/api/public/payments/volume", "Sums over the last days", to!(payments::volume)).key(READ).query(&[("days", "text", "1 to 366, 30 when missing; today is the last.")]).responds(&[(200, Json("Volume"))]),
    get("/api/public/payments/fee-rate", "The fee of payments created now", to!(payments::fee_rate)).responds(&[(200, Json("FeeRate"))]),
    get("/api/public/payments/{id}", "One payment", to!(payments::get, id)).key(READ).responds(&[(200, Json("Payment"))]),
    get("/api/public/payments/{id}/status", "Its state alone", to!(payments::status, id)).id("payments.getStatus").key(READ).responds(&[(200, Json("Status"))]),
    get("/api/public/payments/{id}/transfers", "All of its transfers, newest first", to!(payments::transfers, id)).id("payments.listTransfers").key(READ)
        .query(&[("cursor", "text", "The `nextCursor` of an answer."), ("limit", "limit", "Transfers at most, 20 when missing.")])
        .responds(&[(200, Json("TransferList"))]),
    post("/api/public/payments/{id}/cancel", "Request its cancellation; the first irreversible block later than `cutoff` decides", to!(payments::cancel, id)).key(WRITE).responds(&[(200, Json("Payment"))]).refuses(&[409]),
    delete("/api/public/payments/{id}/metadata", "Delete the metadata of a payment that has ended", to!(payments::delete_metadata, id)).id("payments.deleteMetadata").key(WRITE).responds(&[(200, Json("Payment"))]).refuses(&[409]),
    delete("/api/public/payments/{id}/note", "Delete the note of the decision about a payment", to!(payments::delete_note, id)).id("payments.deleteNote").key(WRITE).responds(&[(200, Json("Payment"))]),
];

#[rustfmt::skip]
const EVENTS: &[Route] = &[
    get("/api/public/events", "Events after a cursor, oldest first", to!(events::list)).key(READ)
        .query(&[("after", "text", "The `nextCursor` of an answer. One that was given out before the store was restored answers 410 with the `nextCursor` to go on with."), ("limit", "limit", "Events at most, 20 when missing.")])
        .responds(&[(200, Json("EventList"))]).refuses(&[410]),
    get("/api/public/events/{event}", "One event", to!(events::get, id)).id("events.get").key(READ).responds(&[(200, Json("Event"))]),
    get("/api/public/events/stream", "Events as they happen (server-sent events)", to!(events::stream)).key(READ)
        .query(&[("after", "text", "Where to begin; now when missing.")]).responds(&[(200, Text("text/event-stream"))]).refuses(&[410]),
];

#[rustfmt::skip]
const OF_MERCHANTS: &[Route] = &[
    post("/api/public/merchants/register", "Register; the key and the secret are shown this once", to!(merchants::register)).rates(Rates::Registration).body("Register").responds(&[(201, Json("Registered"))]).refuses(&[403]),
    get("/api/public/merchants/me", "The merchant of the key", to!(merchants::me)).key("").responds(&[(200, Json("Merchant"))]),
    get("/api/public/merchants/{id}", "A merchant: oneself, or any for an admin", to!(merchants::get, id)).key("").responds(&[(200, Json("Merchant"))]),
    post("/api/public/merchants/{id}", "Change what the body names", to!(merchants::update, id)).key(MERCHANT).body("UpdateMerchant").responds(&[(200, Json("Merchant"))]).refuses(&[409]),
    put("/api/public/merchants/{id}", "The same by its other method", to!(merchants::update, id)).id("merchants.updateAlias").key(MERCHANT).body("UpdateMerchant").responds(&[(200, Json("Merchant"))]).refuses(&[409]),
    post("/api/public/merchants/{id}/webhook-secret", "A new webhook secret, shown this once", to!(merchants::rotate_secret, id)).id("merchants.rotateWebhookSecret").key(MERCHANT).optional_body("RotateSecret").responds(&[(200, Json("Secret"))]).refuses(&[409]),
    post("/api/public/merchants/{id}/account-proof", "A challenge by which the Hive account is proven", to!(ownership::challenge, id)).id("accountProofs.issueChallenge").key(PAYOUT).optional_body("IssueChallenge").responds(&[(200, Json("AccountChallenge"))]).refuses(&[409]),
    put("/api/public/merchants/{id}/account-proof", "Answer a challenge with signatures of the account's active authority", to!(ownership::prove, id)).id("accountProofs.prove").key(PAYOUT).body("AccountProof").responds(&[(200, Json("ProvenAccount"))]).refuses(&[409, 410]),
    delete("/api/public/merchants/{id}/pending-account", "Cancel a pending change of the Hive account", to!(ownership::cancel, id)).id("merchants.cancelAccountChange").key(PAYOUT).responds(&[(200, Json("Merchant"))]).refuses(&[409]),
    get("/api/public/merchants/{id}/webhook", "How the webhook endpoint is", to!(webhooks::endpoint, id)).id("webhooks.getEndpoint").key(READ).responds(&[(200, Json("WebhookEndpoint"))]),
    post("/api/public/merchants/{id}/webhook-enable", "Enable it again", to!(webhooks::enable, id)).id("webhooks.enable").key(MERCHANT).optional_body("EnableWebhook").responds(&[(200, Json("EnabledWebhook"))]).refuses(&[409]),
    post("/api/public/merchants/{id}/webhook-replay", "Send again what was held or given up since a time", to!(webhooks::replay, id)).id("webhooks.replay").key(MERCHANT).body("ReplayWebhooks").responds(&[(200, Json("Replayed"))]).refuses(&[409]),
    post("/api/public/merchants/{id}/webhook-test", "Send a test event", to!(webhooks::test, id)).rates(Rates::WebhookTest).id("webhooks.test").key(MERCHANT).optional_body("TestWebhook").idempotent().responds(&[(200, Json("Delivery"))]).refuses(&[409]),
    get("/api/public/merchants/{id}/webhook-deliveries", "The log of deliveries, newest first", to!(webhooks::deliveries, id)).id("webhookDeliveries.list").key(READ)
        .query(DELIVERIES)
        .responds(&[(200, Json("DeliveryList"))]),
    get("/api/public/merchants/{id}/webhook-deliveries/export", "Every delivery of the filter, as a file", to!(export::deliveries, id)).rates(Rates::Export).id("webhookDeliveries.export").key(READ).query(DELIVERY_EXPORT).responds(&[(200, File("Delivery"))]),
    get("/api/public/merchants/{id}/webhook-deliveries/{delivery}", "One delivery with its attempts", to!(webhooks::delivery, id, part)).key(READ).responds(&[(200, Json("DeliveryWithAttempts"))]),
    post("/api/public/merchants/{id}/webhook-deliveries/{delivery}/redeliver", "Send it again", to!(webhooks::redeliver, id, part)).rates(Rates::Redeliver).key(MERCHANT).idempotent().responds(&[(200, Json("Delivery"))]).refuses(&[409]),
    get("/api/public/merchants/{id}/api-keys", "What is known of the keys", to!(keys::list, id)).id("apiKeys.list").key(MERCHANT).responds(&[(200, Json("ApiKeys"))]),
    post("/api/public/merchants/{id}/api-keys", "A further key, shown this once", to!(keys::create, id)).id("apiKeys.create").key(MERCHANT).body("CreateKey").responds(&[(201, Json("MadeKey"))]).refuses(&[409]),
    delete("/api/public/merchants/{id}/api-keys/{key}", "Take a key back", to!(keys::revoke, id, part)).key(MERCHANT).responds(&[(200, Json("ApiKeys"))]).refuses(&[409]),
    post("/api/public/merchants/{id}/api-keys/{key}/roll", "Give a key a successor, where the operator allows it", to!(keys::roll, id, part)).key(MERCHANT).optional_body("RollKey").responds(&[(200, Json("MadeKey"))]).refuses(&[409]),
];

#[rustfmt::skip]
const UNMATCHED: &[Route] = &[
    get("/api/public/unmatched", "Transfers that paid no session, newest first", to!(unmatched::list)).key(READ)
        .query(&[("cursor", "text", "The `nextCursor` of an answer."), ("limit", "limit", "Transfers at most, 20 when missing."), ("status", "text", "open, assigned or ignored; commas between them.")])
        .responds(&[(200, Json("UnmatchedList"))]),
    get("/api/public/x402/sales", "Sales settled by x402 for the merchant's own resources, newest first", to!(sales::list)).id("x402.sales").key(READ)
        .query(&[("cursor", "text", "The `nextCursor` of a response."), ("limit", "limit", "Sales at most, 20 when missing.")])
        .responds(&[(200, Json("SaleList"))]),
    get("/api/public/x402/sales/export", "Every sale, as a file", to!(export::sales)).rates(Rates::Export).id("x402.exportSales").key(READ)
        .query(&[("format", "text", "csv (default) or json."), ("bom", "flag", "Whether a CSV file begins with a byte order mark.")])
        .responds(&[(200, File("Sale"))]),
    get("/api/public/unmatched/{id}", "One of them", to!(unmatched::get, id)).key(READ).responds(&[(200, Json("Unmatched"))]),
    get("/api/public/unmatched/{id}/candidates", "Payments it may have been meant for", to!(unmatched::candidates, id)).key(READ).responds(&[(200, Json("Candidates"))]),
    post("/api/public/unmatched/{id}/assign", "Put it to a payment", to!(unmatched::assign, id)).key(WRITE).body("Assign").responds(&[(200, Json("Payment"))]).refuses(&[409]),
    post("/api/public/unmatched/{id}/ignore", "Nothing is to be done about it", to!(unmatched::ignore, id)).key(WRITE).optional_body("Ignore").responds(&[(200, Json("Unmatched"))]).refuses(&[409]),
    post("/api/public/payments/{id}/resolve", "What was decided about a payment's exceptions", to!(unmatched::resolve, id)).key(WRITE).body("Resolve").responds(&[(200, Json("Payment"))]).refuses(&[409]),
    get("/api/public/payments/{id}/refund", "A refund to sign", to!(unmatched::refund, id)).id("payments.prepareRefund").key(READ)
        .query(&[("amount", "text", "Smallest units; what is owed when missing."), ("currency", "currency", "Of the amount."), ("to", "text", "Whom.")])
        .responds(&[(200, Json("RefundPlan"))]).refuses(&[409]),
];

#[rustfmt::skip]
const BILLING: &[Route] = &[
    get("/api/public/billing/me", "What the merchant of the key used and owes", to!(billing::mine)).key(READ).responds(&[(200, Json("BillingSummary"))]),
    get("/api/admin/billing/overview", "What everybody used and owes", to!(billing::overview)).admin().responds(&[(200, Json("BillingOverview"))]),
    get("/api/admin/billing/merchant/{id}", "What a merchant used and owes", to!(billing::of_merchant, id)).admin().responds(&[(200, Json("AdminBillingSummary"))]),
    get("/api/admin/billing/periods", "Merchants' months, newest first", to!(billing::periods)).admin()
        .query(&[("page", "page", "From 1."), ("limit", "limit", "Items on a page, 20 when missing."), ("merchantId", "text", "Only this merchant's."), ("status", "billing", "Only those that stand so.")])
        .responds(&[(200, Json("BillingPeriodPage"))]),
    get("/api/admin/billing/tiers", "The fee tiers", to!(billing::get_tiers)).id("admin.billing.getTiers").admin().responds(&[(200, Json("FeeTiers"))]),
    put("/api/admin/billing/tiers", "Replace the fee tiers", to!(billing::set_tiers)).id("admin.billing.setTiers").admin().body("SetFeeTiers").responds(&[(200, Json("FeeTiers"))]).refuses(&[409]),
    post("/api/admin/billing/generate-invoices", "Make the invoices that are missing, of one month or of all that are over", to!(billing::generate)).admin().optional_body("GenerateInvoices").responds(&[(200, Json("GeneratedInvoices"))]).refuses(&[409]),
];

#[rustfmt::skip]
const ADMIN: &[Route] = &[
    get("/api/admin/merchants", "List merchants, newest first", to!(admin::list)).admin().query(MERCHANTS).responds(&[(200, Json("MerchantPage"))]),
    get("/api/admin/merchants/list", "The same under its other name", to!(admin::list)).id("admin.merchants.listAlias").admin().query(MERCHANTS).responds(&[(200, Json("MerchantPage"))]),
    get("/api/admin/merchants/export", "Every merchant of the filter, as a file", to!(export::merchants)).rates(Rates::Export).admin().query(MERCHANT_EXPORT).responds(&[(200, File("Merchant"))]),
    post("/api/admin/merchants/change-status", "Activate or deactivate a merchant", to!(admin::change_status)).admin().query(&[("merchantId", "text", "Required. Which.")]).body("ChangeStatus").responds(&[(200, Json("Merchant"))]).refuses(&[409]),
    post("/api/admin/merchants/{id}/active", "Activate or deactivate a merchant", to!(admin::set_active, id)).id("admin.merchants.setActive").admin().body("SetActive").responds(&[(200, Json("Merchant"))]).refuses(&[409]),
    post("/api/admin/merchants/{id}/api-key", "A new key in place of all, shown this once", to!(admin::reissue_key, id)).id("admin.merchants.reissueApiKey").admin().responds(&[(200, Json("Reissued"))]).refuses(&[409]),
    get("/api/admin/merchants/{id}/compliance", "Where a merchant stands with compliance", to!(compliance::get, id)).id("admin.compliance.get").admin().responds(&[(200, Json("Standing"))]),
    post("/api/admin/merchants/{id}/compliance/clear", "End a hold: somebody has looked", to!(compliance::clear, id)).id("admin.compliance.clear").admin().body("ClearHold").responds(&[(200, Json("Standing"))]).refuses(&[409]),
    put("/api/admin/merchants/{id}/compliance/limits", "Give a merchant hard limits of its own; `{\"limits\": null}` takes them away", to!(compliance::set_limits, id)).id("admin.compliance.setLimits").admin().body("SetLimits").responds(&[(200, Json("Standing"))]).refuses(&[409]),
    get("/api/admin/payments/{id}", "Any merchant's payment with its timeline; the audit log records each read", to!(admin::payment, id)).id("admin.payments.get").admin().responds(&[(200, Json("PaymentDossier"))]),
    get("/api/admin/nodes", "How the ledger's nodes are", to!(health::nodes)).admin().responds(&[(200, Json("Nodes"))]),
    get("/api/admin/books", "What the daily checks of the books said, newest day first", to!(reconciliation::list)).admin()
        .query(&[("cursor", "text", "The `nextCursor` of an answer."), ("limit", "limit", "Days at most, 20 when missing.")])
        .responds(&[(200, Json("BooksPage"))]),
    get("/api/admin/audit", "What admins and merchants did, newest first", to!(keys::audit)).admin()
        .query(&[("cursor", "text", "The `nextCursor` of an answer."), ("limit", "limit", "Entries at most, 20 when missing."), ("merchantId", "text", "Only what concerns this merchant.")])
        .responds(&[(200, Json("AuditPage"))]),
];

/// How an address of a session answers programs and browsers.
const AT_ADDRESS: &[(u16, Content)] = &[(200, JsonOrPage("Paid")), (402, Json("PaymentRequired"))];

#[rustfmt::skip]
const CHECKOUT: &[Route] = &[
    get("/for/{slug}", "The checkout page; programs are asked for a payment by 402", to!(checkout::by_slug, id)).payable().checkout().responds(AT_ADDRESS).refuses(&[403, 409, 410]),
    get("/for/{slug}/status", "The live status", to!(checkout::status_by_slug, id)).checkout().responds(&[(200, Json("LiveStatus"))]),
    get("/for/{slug}/events", "The live status as it changes (server-sent events)", to!(checkout::events_by_slug, id)).checkout().responds(&[(200, Text("text/event-stream"))]),
    post("/for/{slug}/cancel", "Request cancellation for the customer", to!(checkout::cancel_by_slug, id)).checkout().responds(&[(200, JsonOrPage("CancelRequested")), (303, Empty)]).refuses(&[403, 409]),
    post("/for/{slug}/wallet", "Report an opened wallet or a known transaction, so that a cancellation leaves it time to arrive", to!(checkout::report_by_slug, id)).checkout().responds(&[(200, Json("CancelRequested"))]).refuses(&[409, 410]),
    get("/checkout/{id}", "The same by the payment's public id; a browser is moved to the slug while no money was seen", to!(checkout::by_id, id)).payable().checkout().responds(&[(200, JsonOrPage("Paid")), (303, Empty), (402, Json("PaymentRequired"))]).refuses(&[403, 409, 410]),
    get("/checkout/{id}/status", "The live status", to!(checkout::status_by_id, id)).checkout().responds(&[(200, Json("LiveStatus"))]),
    get("/checkout/{id}/events", "The live status as it changes (server-sent events)", to!(checkout::events_by_id, id)).checkout().responds(&[(200, Text("text/event-stream"))]),
    post("/checkout/{id}/cancel", "Request cancellation for the customer, with the page's form token", to!(checkout::cancel_by_id, id)).checkout().form("CancelForm").responds(&[(200, JsonOrPage("CancelRequested")), (303, Empty)]).refuses(&[403, 409, 413]),
];

#[rustfmt::skip]
const X402: &[Route] = &[
    get("/api/public/x402/health", "Whether payments can be verified and settled", to!(x402::health)).responds(&[(200, Json("X402Health"))]),
    get("/api/public/x402/supported-networks", "The networks payments are taken on", |_, _, _| Box::pin(x402::supported_networks())).responds(&[(200, Json("Networks"))]),
    get("/api/public/x402/supported", "Every kind of payment that is taken", |_, _, _| Box::pin(x402::supported())).responds(&[(200, Json("Supported"))]),
    post("/api/public/x402/verify", "Check a payment; nothing is sent", to!(x402::verify)).optional_key().rates(Rates::X402).body("X402Request").reads().responds(&[(200, Json("Verified"))]).refuses(&[401]),
    post("/api/public/x402/settle", "Check a payment, and bring it onto the ledger", to!(x402::settle)).optional_key().rates(Rates::X402).body("X402Request").idempotent().responds(&[(200, Json("Settled"))]).refuses(&[401, 409]),
];

#[rustfmt::skip]
const ABOUT: &[Route] = &[
    get("/api/health", "Whether payments can be stored", to!(health::health)).health().id("health.get").responds(&[(200, Json("Health"))]),
    get("/livez", "The process runs", |_, _, _| Box::pin(health::live())).health().id("health.live").responds(&[(200, Json("Alive"))]),
    get("/readyz", "Whether everything works", to!(health::ready)).health().id("health.ready").responds(&[(200, Json("Ready")), (503, Json("NotReady"))]),
    get("/openapi.json", "This description", |facade, call, _| Box::pin(openapi::document(facade, call, all()))).id("about.openapi").responds(&[(200, Json("Description")), (304, Empty)]),
    get("/docs", "This description to read", |facade, call, _| Box::pin(openapi::docs(facade, call, all()))).id("about.docs").responds(&[(200, Text("text/html")), (304, Empty)]),
    get("/llms.txt", "What an agent should know first", |facade, _, _| Box::pin(openapi::llms(facade))).id("about.llms").responds(&[(200, Text("text/plain"))]),
    get("/assets/{file}", "What the pages are made of", |_, _, [file, _]| Box::pin(html::asset(file))).responds(&[(200, Text("*/*"))]).unlisted(),
];

/// The rows of each group, in the order of [`TAGS`].
const GROUPS: [&[Route]; 9] = [PAYMENTS, EVENTS, OF_MERCHANTS, UNMATCHED, BILLING, ADMIN, CHECKOUT, X402, ABOUT];

/// Every route of the table.
static ROUTES: LazyLock<Vec<Route>> = LazyLock::new(|| {
    let tagged = TAGS.into_iter().zip(GROUPS);
    tagged.flat_map(|((tag, _), routes)| routes.iter().map(move |route| Route { tag, ..*route })).collect()
});

/// Returns every route of the interface.
pub(crate) fn all() -> &'static [Route] {
    &ROUTES
}
