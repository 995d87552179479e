//! All routes of the facade, one row per method and path. Dispatch, rate limits, the verification of API keys and the
//! OpenAPI document are derived from it.

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

/// Returns the handler that calls a function with the placeholders it needs.
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

const PAGE: Parameter = ("page", "page", "Page number, from 1.");
const LIMIT: Parameter = ("limit", "limit", "Maximum number of items on a page; default 20.");
const CURSOR: Parameter = ("cursor", "text", "The `nextCursor` of the previous response, instead of `page`.");
const IDS: Parameter = ("ids", "text", "Only these payments, separated by commas; at most 100.");
const SEARCH: Parameter =
    ("query", "text", "Words from the id, the description, the metadata, the payer or the id of a transaction.");
/// The format of an export.
const FILE: [Parameter; 2] = [
    ("format", "format", "`csv` (default) or `json`."),
    ("bom", "boolean", "Whether a CSV file starts with a byte order mark."),
];
/// Filters of payments.
const PAYMENT_FILTERS: [Parameter; 7] = [
    ("status", "statuses", "Only these statuses, separated by commas."),
    ("from", "time", "Created at or after this time."),
    ("to", "time", "Created before this time."),
    ("currency", "currency", "Only this currency."),
    ("minAmount", "text", "Minimum amount in smallest units, of either currency."),
    ("maxAmount", "text", "Maximum amount in smallest units, of either currency."),
    ("unusual", "boolean", "`true`: only payments that need attention; `false`: only others."),
];
/// Filters of merchants.
const MERCHANT_FILTERS: [Parameter; 3] = [
    ("query", "text", "A part of the id, the name or the Hive account."),
    ("active", "boolean", "`true`: only active merchants; `false`: only inactive ones."),
    ("flagged", "boolean", "`true`: only merchants on a compliance hold; `false`: only others."),
];
/// Filters of webhook deliveries.
const DELIVERY_FILTERS: [Parameter; 4] = [
    ("status", "text", "Only these statuses, separated by commas: pending, held, delivered, failed."),
    ("eventId", "text", "Only deliveries of this event."),
    ("paymentId", "text", "Only deliveries of this payment's events."),
    ("endpointId", "text", "Only deliveries to this endpoint."),
];

/// Concatenates two lists of parameters into an array of `N`.
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

const FILTERS: &[Parameter] = &join::<12>(&join::<10>(&[PAGE, LIMIT, CURSOR], &PAYMENT_FILTERS), &[IDS, SEARCH]);
const EXPORT: &[Parameter] = &join::<10>(&join::<9>(&FILE, &PAYMENT_FILTERS), &[SEARCH]);
const MERCHANTS: &[Parameter] = &join::<5>(&[PAGE, LIMIT], &MERCHANT_FILTERS);
const MERCHANT_EXPORT: &[Parameter] = &join::<5>(&FILE, &MERCHANT_FILTERS);
const DELIVERIES: &[Parameter] = &join::<6>(
    &[
        ("cursor", "text", "The `nextCursor` of the previous response."),
        ("limit", "limit", "Maximum number of deliveries; default 20."),
    ],
    &DELIVERY_FILTERS,
);
const DELIVERY_EXPORT: &[Parameter] = &join::<6>(&FILE, &DELIVERY_FILTERS);

const READ: &str = "payments:read";
const WRITE: &str = "payments:write";
const MERCHANT: &str = "merchant:write";
const PAYOUT: &str = "merchant:payout";

#[rustfmt::skip]
const PAYMENTS: &[Route] = &[
    post("/api/public/payments", "Create a payment", to!(payments::create)).key(WRITE).body("CreatePayment").idempotent()
        .responds(&[(201, Json("Created"))]).errors(&[409, 422]),
    post("/api/public/payments/create", "Create a payment; short response", to!(payments::create_short)).id("payments.createShort").key(WRITE).body("CreatePayment").idempotent()
        .responds(&[(201, Json("CreatedShort"))]).errors(&[409, 422]),
    get("/api/public/payments", "List payments, newest first", to!(payments::list)).key(READ).query(FILTERS).responds(&[(200, Json("PaymentPage"))]),
    get("/api/public/payments/list", "Alias of `GET /api/public/payments`", to!(payments::list)).id("payments.listAlias").key(READ).query(FILTERS).responds(&[(200, Json("PaymentPage"))]),
    get("/api/public/payments/export", "Export payments to a file", to!(export::payments)).rates(Rates::Export).key(READ).query(EXPORT).responds(&[(200, File("Payment"))]),
    get("/api/public/payments/volume", "Get the payment volume of the last days", to!(payments::volume)).key(READ).query(&[("days", "text", "Number of days, 1 to 366, the last of which is today; default 30.")]).responds(&[(200, Json("Volume"))]),
    get("/api/public/payments/fee-rate", "Get the fee rate of new payments", to!(payments::fee_rate)).responds(&[(200, Json("FeeRate"))]),
    get("/api/public/payments/{id}", "Get a payment", to!(payments::get, id)).key(READ).responds(&[(200, Json("Payment"))]),
    get("/api/public/payments/{id}/status", "Get the status of a payment", to!(payments::status, id)).id("payments.getStatus").key(READ).responds(&[(200, Json("CurrentStatus"))]),
    get("/api/public/payments/{id}/transfers", "List the transfers of a payment, newest first", to!(payments::transfers, id)).id("payments.listTransfers").key(READ)
        .query(&[("cursor", "text", "The `nextCursor` of the previous response."), ("limit", "limit", "Maximum number of transfers; default 20.")])
        .responds(&[(200, Json("TransferList"))]),
    post("/api/public/payments/{id}/cancel", "Request the cancellation of a payment; the first irreversible block after `cutoff` decides", to!(payments::cancel, id)).key(WRITE).responds(&[(200, Json("Payment"))]).errors(&[409]),
    delete("/api/public/payments/{id}/metadata", "Delete the metadata of a finished payment", to!(payments::delete_metadata, id)).id("payments.deleteMetadata").key(WRITE).responds(&[(200, Json("Payment"))]).errors(&[409]),
    delete("/api/public/payments/{id}/note", "Delete the note of a payment's resolution", to!(payments::delete_note, id)).id("payments.deleteNote").key(WRITE).responds(&[(200, Json("Payment"))]),
];

#[rustfmt::skip]
const EVENTS: &[Route] = &[
    get("/api/public/events", "List events after a cursor, oldest first", to!(events::list)).key(READ)
        .query(&[("after", "text", "The `nextCursor` of the previous response. After a restore of the store, an older cursor is answered with 410 and the `nextCursor` to continue with."), ("limit", "limit", "Maximum number of events; default 20.")])
        .responds(&[(200, Json("EventList"))]).errors(&[410]),
    get("/api/public/events/{event}", "Get an event", to!(events::get, id)).id("events.get").key(READ).responds(&[(200, Json("Event"))]),
    get("/api/public/events/stream", "Stream events as they happen (server-sent events)", to!(events::stream)).key(READ)
        .query(&[("after", "text", "The cursor to start after; default now.")]).responds(&[(200, Text("text/event-stream"))]).errors(&[410]),
];

#[rustfmt::skip]
const OF_MERCHANTS: &[Route] = &[
    post("/api/public/merchants/register", "Register a merchant; API key and webhook secret are returned only once", to!(merchants::register)).rates(Rates::Registration).body("Register").responds(&[(201, Json("Registered"))]).errors(&[403]),
    get("/api/public/merchants/me", "Get the merchant of the API key", to!(merchants::me)).key("").responds(&[(200, Json("Merchant"))]),
    get("/api/public/merchants/{id}", "Get a merchant: your own, or any as an admin", to!(merchants::get, id)).key("").responds(&[(200, Json("Merchant"))]),
    post("/api/public/merchants/{id}", "Update a merchant; only the fields of the body change", to!(merchants::update, id)).key(MERCHANT).body("UpdateMerchant").responds(&[(200, Json("Merchant"))]).errors(&[409]),
    put("/api/public/merchants/{id}", "Alias of `POST /api/public/merchants/{id}`", to!(merchants::update, id)).id("merchants.updateAlias").key(MERCHANT).body("UpdateMerchant").responds(&[(200, Json("Merchant"))]).errors(&[409]),
    post("/api/public/merchants/{id}/webhook-secret", "Rotate the webhook secret; the new one is returned only once", to!(merchants::rotate_secret, id)).id("merchants.rotateWebhookSecret").key(MERCHANT).optional_body("RotateSecret").responds(&[(200, Json("Secret"))]).errors(&[409]),
    post("/api/public/merchants/{id}/account-proof", "Issue a challenge that proves control of the Hive account", to!(ownership::challenge, id)).id("accountProofs.issueChallenge").key(PAYOUT).optional_body("IssueChallenge").responds(&[(200, Json("AccountChallenge"))]).errors(&[409]),
    put("/api/public/merchants/{id}/account-proof", "Prove control of the Hive account with signatures of its active authority", to!(ownership::prove, id)).id("accountProofs.prove").key(PAYOUT).body("AccountProof").responds(&[(200, Json("ProvenAccount"))]).errors(&[409, 410]),
    delete("/api/public/merchants/{id}/pending-account", "Cancel a pending change of the Hive account", to!(ownership::cancel, id)).id("merchants.cancelAccountChange").key(PAYOUT).responds(&[(200, Json("Merchant"))]).errors(&[409]),
    get("/api/public/merchants/{id}/webhook", "Get the health of the webhook endpoint", to!(webhooks::endpoint, id)).id("webhooks.getEndpoint").key(READ).responds(&[(200, Json("WebhookEndpoint"))]),
    post("/api/public/merchants/{id}/webhook-enable", "Enable the webhook endpoint", to!(webhooks::enable, id)).id("webhooks.enable").key(MERCHANT).optional_body("EnableWebhook").responds(&[(200, Json("EnabledWebhook"))]).errors(&[409]),
    get("/api/public/merchants/{id}/webhook-endpoints", "List webhook endpoints with their health", to!(webhooks::endpoints, id)).id("webhookEndpoints.list").key(READ).responds(&[(200, Json("WebhookEndpoints"))]),
    post("/api/public/merchants/{id}/webhook-endpoints", "Create a webhook endpoint; its secret is returned only once", to!(webhooks::create, id)).id("webhookEndpoints.create").key(MERCHANT).body("CreateWebhookEndpoint").responds(&[(201, Json("MadeWebhookEndpoint"))]).errors(&[409]),
    get("/api/public/merchants/{id}/webhook-endpoints/{endpoint}", "Get a webhook endpoint with its health", to!(webhooks::endpoint_of, id, part)).id("webhookEndpoints.get").key(READ).responds(&[(200, Json("WebhookEndpoint"))]),
    put("/api/public/merchants/{id}/webhook-endpoints/{endpoint}", "Update a webhook endpoint; only the fields of the body change", to!(webhooks::update, id, part)).id("webhookEndpoints.update").key(MERCHANT).body("UpdateWebhookEndpoint").responds(&[(200, Json("WebhookEndpoint"))]),
    delete("/api/public/merchants/{id}/webhook-endpoints/{endpoint}", "Delete a webhook endpoint", to!(webhooks::remove, id, part)).id("webhookEndpoints.delete").key(MERCHANT).responds(&[(200, Json("WebhookEndpoints"))]),
    post("/api/public/merchants/{id}/webhook-endpoints/{endpoint}/secret", "Rotate the secret of a webhook endpoint; the new one is returned only once", to!(webhooks::rotate, id, part)).id("webhookEndpoints.rotateSecret").key(MERCHANT).optional_body("RotateSecret").responds(&[(200, Json("Secret"))]).errors(&[409]),
    post("/api/public/merchants/{id}/webhook-endpoints/{endpoint}/enable", "Enable a webhook endpoint", to!(webhooks::enable_of, id, part)).id("webhookEndpoints.enable").key(MERCHANT).optional_body("EnableWebhook").responds(&[(200, Json("EnabledWebhook"))]).errors(&[409]),
    post("/api/public/merchants/{id}/webhook-endpoints/{endpoint}/test", "Send a test event to a webhook endpoint", to!(webhooks::test_of, id, part)).rates(Rates::WebhookTest).id("webhookEndpoints.test").key(MERCHANT).optional_body("TestWebhook").idempotent().responds(&[(200, Json("Delivery"))]).errors(&[409]),
    post("/api/public/merchants/{id}/webhook-replay", "Redeliver held and failed webhooks since a time", to!(webhooks::replay, id)).id("webhooks.replay").key(MERCHANT).body("ReplayWebhooks").responds(&[(200, Json("Replayed"))]).errors(&[409]),
    post("/api/public/merchants/{id}/webhook-test", "Send a test event", to!(webhooks::test, id)).rates(Rates::WebhookTest).id("webhooks.test").key(MERCHANT).optional_body("TestWebhook").idempotent().responds(&[(200, Json("Delivery"))]).errors(&[409]),
    get("/api/public/merchants/{id}/webhook-deliveries", "List webhook deliveries, newest first", to!(webhooks::deliveries, id)).id("webhookDeliveries.list").key(READ)
        .query(DELIVERIES)
        .responds(&[(200, Json("DeliveryList"))]),
    get("/api/public/merchants/{id}/webhook-deliveries/export", "Export webhook deliveries to a file", to!(export::deliveries, id)).rates(Rates::Export).id("webhookDeliveries.export").key(READ).query(DELIVERY_EXPORT).responds(&[(200, File("Delivery"))]),
    get("/api/public/merchants/{id}/webhook-deliveries/{delivery}", "Get a webhook delivery with its attempts", to!(webhooks::delivery, id, part)).key(READ).responds(&[(200, Json("DeliveryWithAttempts"))]),
    post("/api/public/merchants/{id}/webhook-deliveries/{delivery}/redeliver", "Redeliver a webhook", to!(webhooks::redeliver, id, part)).rates(Rates::Redeliver).key(MERCHANT).idempotent().responds(&[(200, Json("Delivery"))]).errors(&[409]),
    get("/api/public/merchants/{id}/api-keys", "List API keys", to!(keys::list, id)).id("apiKeys.list").key(MERCHANT).responds(&[(200, Json("ApiKeys"))]),
    post("/api/public/merchants/{id}/api-keys", "Create an API key, which is returned only once", to!(keys::create, id)).id("apiKeys.create").key(MERCHANT).body("CreateKey").responds(&[(201, Json("MadeKey"))]).errors(&[409]),
    delete("/api/public/merchants/{id}/api-keys/{key}", "Revoke an API key", to!(keys::revoke, id, part)).key(MERCHANT).responds(&[(200, Json("ApiKeys"))]).errors(&[409]),
    post("/api/public/merchants/{id}/api-keys/{key}/roll", "Roll an API key, if the operator allows it", to!(keys::roll, id, part)).key(MERCHANT).optional_body("RollKey").responds(&[(200, Json("MadeKey"))]).errors(&[409]),
];

#[rustfmt::skip]
const UNMATCHED: &[Route] = &[
    get("/api/public/unmatched", "List unmatched transfers, newest first", to!(unmatched::list)).key(READ)
        .query(&[("cursor", "text", "The `nextCursor` of the previous response."), ("limit", "limit", "Maximum number of transfers; default 20."), ("status", "text", "Only these statuses, separated by commas: open, assigned, ignored.")])
        .responds(&[(200, Json("UnmatchedList"))]),
    get("/api/public/x402/sales", "List x402 sales of the merchant's own resources, newest first", to!(sales::list)).id("x402.sales").key(READ)
        .query(&[("cursor", "text", "The `nextCursor` of the previous response."), ("limit", "limit", "Maximum number of sales; default 20.")])
        .responds(&[(200, Json("SaleList"))]),
    get("/api/public/x402/sales/export", "Export x402 sales to a file", to!(export::sales)).rates(Rates::Export).id("x402.exportSales").key(READ)
        .query(&[("format", "text", "`csv` (default) or `json`."), ("bom", "flag", "Whether a CSV file starts with a byte order mark.")])
        .responds(&[(200, File("Sale"))]),
    get("/api/public/unmatched/{id}", "Get an unmatched transfer", to!(unmatched::get, id)).key(READ).responds(&[(200, Json("Unmatched"))]),
    get("/api/public/unmatched/{id}/candidates", "List payments that an unmatched transfer may belong to", to!(unmatched::candidates, id)).key(READ).responds(&[(200, Json("Candidates"))]),
    post("/api/public/unmatched/{id}/assign", "Assign an unmatched transfer to a payment", to!(unmatched::assign, id)).key(WRITE).body("Assign").responds(&[(200, Json("Payment"))]).errors(&[409]),
    post("/api/public/unmatched/{id}/ignore", "Ignore an unmatched transfer", to!(unmatched::ignore, id)).key(WRITE).optional_body("Ignore").responds(&[(200, Json("Unmatched"))]).errors(&[409]),
    post("/api/public/payments/{id}/resolve", "Resolve the exceptions of a payment", to!(unmatched::resolve, id)).key(WRITE).body("Resolve").responds(&[(200, Json("Payment"))]).errors(&[409]),
    get("/api/public/payments/{id}/refund", "Prepare a refund for signing", to!(unmatched::refund, id)).id("payments.prepareRefund").key(READ)
        .query(&[("amount", "text", "Amount in smallest units; default the refundable amount."), ("currency", "currency", "Currency of the amount."), ("to", "text", "Hive account of the recipient.")])
        .responds(&[(200, Json("RefundPlan"))]).errors(&[409]),
];

#[rustfmt::skip]
const BILLING: &[Route] = &[
    get("/api/public/billing/me", "Get usage and fees of the merchant of the API key", to!(billing::mine)).key(READ).responds(&[(200, Json("BillingSummary"))]),
    get("/api/admin/billing/overview", "Get usage and fees of all merchants", to!(billing::overview)).admin().responds(&[(200, Json("BillingOverview"))]),
    get("/api/admin/billing/merchant/{id}", "Get usage and fees of a merchant", to!(billing::of_merchant, id)).admin().responds(&[(200, Json("AdminBillingSummary"))]),
    get("/api/admin/billing/periods", "List billing periods, newest first", to!(billing::periods)).admin()
        .query(&[PAGE, LIMIT, ("merchantId", "text", "Only periods of this merchant."), ("status", "billing", "Only periods with this status.")])
        .responds(&[(200, Json("BillingPeriodPage"))]),
    get("/api/admin/billing/tiers", "List the fee tiers", to!(billing::get_tiers)).id("admin.billing.getTiers").admin().responds(&[(200, Json("FeeTiers"))]),
    put("/api/admin/billing/tiers", "Replace the fee tiers", to!(billing::set_tiers)).id("admin.billing.setTiers").admin().body("SetFeeTiers").responds(&[(200, Json("FeeTiers"))]).errors(&[409]),
    post("/api/admin/billing/generate-invoices", "Generate missing invoices of one month or of all past months", to!(billing::generate)).admin().optional_body("GenerateInvoices").responds(&[(200, Json("GeneratedInvoices"))]).errors(&[409]),
];

#[rustfmt::skip]
const ADMIN: &[Route] = &[
    get("/api/admin/merchants", "List merchants, newest first", to!(admin::list)).admin().query(MERCHANTS).responds(&[(200, Json("MerchantPage"))]),
    get("/api/admin/merchants/list", "Alias of `GET /api/admin/merchants`", to!(admin::list)).id("admin.merchants.listAlias").admin().query(MERCHANTS).responds(&[(200, Json("MerchantPage"))]),
    get("/api/admin/merchants/export", "Export merchants to a file", to!(export::merchants)).rates(Rates::Export).admin().query(MERCHANT_EXPORT).responds(&[(200, File("Merchant"))]),
    post("/api/admin/merchants/change-status", "Activate or deactivate a merchant", to!(admin::change_status)).admin().query(&[("merchantId", "text", "Required. The merchant.")]).body("ChangeStatus").responds(&[(200, Json("Merchant"))]).errors(&[409]),
    post("/api/admin/merchants/{id}/active", "Activate or deactivate a merchant", to!(admin::set_active, id)).id("admin.merchants.setActive").admin().body("SetActive").responds(&[(200, Json("Merchant"))]).errors(&[409]),
    post("/api/admin/merchants/{id}/api-key", "Replace all API keys of a merchant by a new one, which is returned only once", to!(admin::reissue_key, id)).id("admin.merchants.reissueApiKey").admin().responds(&[(200, Json("Reissued"))]).errors(&[409]),
    get("/api/admin/merchants/{id}/compliance", "Get the compliance status of a merchant", to!(compliance::get, id)).id("admin.compliance.get").admin().responds(&[(200, Json("ComplianceStatus"))]),
    post("/api/admin/merchants/{id}/compliance/clear", "Clear a compliance hold after a review", to!(compliance::clear, id)).id("admin.compliance.clear").admin().body("ClearHold").responds(&[(200, Json("ComplianceStatus"))]).errors(&[409]),
    put("/api/admin/merchants/{id}/compliance/limits", "Set the limits of a merchant; `{\"limits\": null}` restores the default limits", to!(compliance::set_limits, id)).id("admin.compliance.setLimits").admin().body("SetLimits").responds(&[(200, Json("ComplianceStatus"))]).errors(&[409]),
    get("/api/admin/payments/{id}", "Get any merchant's payment with its timeline; the audit log records each read", to!(admin::payment, id)).id("admin.payments.get").admin().responds(&[(200, Json("PaymentDossier"))]),
    get("/api/admin/nodes", "List the Hive nodes with their health", to!(health::nodes)).admin().responds(&[(200, Json("Nodes"))]),
    get("/api/admin/books", "List daily reconciliations, newest first", to!(reconciliation::list)).admin()
        .query(&[("cursor", "text", "The `nextCursor` of the previous response."), ("limit", "limit", "Maximum number of days; default 20.")])
        .responds(&[(200, Json("ReconciliationPage"))]),
    get("/api/admin/audit", "List audit events, newest first", to!(keys::audit)).admin()
        .query(&[("cursor", "text", "The `nextCursor` of the previous response."), ("limit", "limit", "Maximum number of entries; default 20."), ("merchantId", "text", "Only entries about this merchant.")])
        .responds(&[(200, Json("AuditPage"))]),
];

/// Responses of a checkout URL to programs and browsers.
const CHECKOUT_RESPONSES: &[(u16, Content)] = &[(200, JsonOrPage("Paid")), (402, Json("PaymentRequired"))];

#[rustfmt::skip]
const CHECKOUT: &[Route] = &[
    get("/for/{slug}", "Get the checkout page; programs get 402 with payment requirements", to!(checkout::by_slug, id)).payable().checkout().responds(CHECKOUT_RESPONSES).errors(&[403, 409, 410]),
    get("/for/{slug}/status", "Get the live status", to!(checkout::status_by_slug, id)).checkout().responds(&[(200, Json("LiveStatus"))]),
    get("/for/{slug}/events", "Stream the live status (server-sent events)", to!(checkout::events_by_slug, id)).checkout().responds(&[(200, Text("text/event-stream"))]),
    post("/for/{slug}/cancel", "Request cancellation as the customer", to!(checkout::cancel_by_slug, id)).checkout().responds(&[(200, JsonOrPage("CancelRequested")), (303, Empty)]).errors(&[403, 409]),
    post("/for/{slug}/wallet", "Report an opened wallet or a known transaction, which extends the time of a cancellation", to!(checkout::report_by_slug, id)).checkout().responds(&[(200, Json("CancelRequested"))]).errors(&[409, 410]),
    post("/for/{slug}/restart", "Start an expired payment again as the customer", to!(checkout::restart_by_slug, id)).checkout().responds(&[(200, JsonOrPage("CreatedShort")), (303, Empty)]).errors(&[403, 409]),
    get("/checkout/{id}", "Get the checkout page by payment id; browsers are redirected to the slug until a transfer is seen", to!(checkout::by_id, id)).payable().checkout().responds(&[(200, JsonOrPage("Paid")), (303, Empty), (402, Json("PaymentRequired"))]).errors(&[403, 409, 410]),
    get("/checkout/{id}/status", "Get the live status", to!(checkout::status_by_id, id)).checkout().responds(&[(200, Json("LiveStatus"))]),
    get("/checkout/{id}/events", "Stream the live status (server-sent events)", to!(checkout::events_by_id, id)).checkout().responds(&[(200, Text("text/event-stream"))]),
    post("/checkout/{id}/cancel", "Request cancellation as the customer, with the form token of the page", to!(checkout::cancel_by_id, id)).checkout().form("CancelForm").responds(&[(200, JsonOrPage("CancelRequested")), (303, Empty)]).errors(&[403, 409, 413]),
    post("/checkout/{id}/restart", "Start an expired payment again as the customer, with the form token of the page", to!(checkout::restart_by_id, id)).checkout().form("RestartForm").responds(&[(200, JsonOrPage("CreatedShort")), (303, Empty)]).errors(&[403, 409, 413]),
];

#[rustfmt::skip]
const X402: &[Route] = &[
    get("/api/public/x402/health", "Get the health of the x402 facilitator", to!(x402::health)).responds(&[(200, Json("X402Health"))]),
    get("/api/public/x402/supported-networks", "List the supported networks", |_, _, _| Box::pin(x402::supported_networks())).responds(&[(200, Json("Networks"))]),
    get("/api/public/x402/supported", "List the supported kinds of payment", |_, _, _| Box::pin(x402::supported())).responds(&[(200, Json("Supported"))]),
    post("/api/public/x402/verify", "Verify a payment without broadcasting it", to!(x402::verify)).optional_key().rates(Rates::X402).body("X402Request").reads().responds(&[(200, Json("Verified"))]).errors(&[401]),
    post("/api/public/x402/settle", "Verify a payment and broadcast it", to!(x402::settle)).optional_key().rates(Rates::X402).body("X402Request").idempotent().responds(&[(200, Json("Settled"))]).errors(&[401, 409]),
];

#[rustfmt::skip]
const ABOUT: &[Route] = &[
    get("/api/health", "Get the health of the service", to!(health::health)).health().id("health.get").responds(&[(200, Json("Health"))]),
    get("/livez", "Liveness probe", |_, _, _| Box::pin(health::live())).health().id("health.live").responds(&[(200, Json("Alive"))]),
    get("/readyz", "Readiness probe", to!(health::ready)).health().id("health.ready").responds(&[(200, Json("Ready")), (503, Json("NotReady"))]),
    get("/openapi.json", "Get this OpenAPI document", |facade, call, _| Box::pin(openapi::document(facade, call, all()))).id("about.openapi").responds(&[(200, Json("Description")), (304, Empty)]),
    get("/docs", "Get the API reference as a page", |facade, call, _| Box::pin(openapi::docs(facade, call, all()))).id("about.docs").responds(&[(200, Text("text/html")), (304, Empty)]),
    get("/llms.txt", "Get an introduction for AI agents", |facade, _, _| Box::pin(openapi::llms(facade))).id("about.llms").responds(&[(200, Text("text/plain"))]),
    get("/.well-known/jwks.json", "Get the public keys of signed offers and receipts", to!(x402::key_set)).responds(&[(200, Text("application/json"))]).unlisted(),
    get("/assets/{file}", "Get a static file of the pages", |_, call, [file, _]| Box::pin(html::asset(call, file))).responds(&[(200, Text("*/*"))]).unlisted(),
];

/// The rows of each group, in the order of [`TAGS`].
const GROUPS: [&[Route]; 9] = [PAYMENTS, EVENTS, OF_MERCHANTS, UNMATCHED, BILLING, ADMIN, CHECKOUT, X402, ABOUT];

/// All routes with their tags.
static ROUTES: LazyLock<Vec<Route>> = LazyLock::new(|| {
    let tagged = TAGS.into_iter().zip(GROUPS);
    tagged.flat_map(|((tag, _), routes)| routes.iter().map(move |route| Route { tag, ..*route })).collect()
});

/// Returns all routes of the table.
pub(crate) fn all() -> &'static [Route] {
    &ROUTES
}
