//! Every route of the facade as the description tells it, one line a route. A route that stands in `facade/mod.rs` and
//! not here fails a test, and the reverse.

/// Who may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// No key is needed.
    Anyone,
    /// A merchant's key with this scope; empty: any key.
    Key(&'static str),
    /// An admin's key.
    Admin,
}

/// What an answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// JSON of this schema.
    Json(&'static str),
    /// The same for programs, a page for browsers.
    JsonOrPage(&'static str),
    /// Rows of this schema, as CSV or JSON.
    File(&'static str),
    /// Text of this media type.
    Text(&'static str),
    /// Nothing.
    Empty,
}

/// A query parameter: its name, its schema's name in `schemas::parameter`, and what it does.
pub(in crate::facade) type Parameter = (&'static str, &'static str, &'static str);

/// One method of one address.
#[derive(Debug, Clone, Copy)]
pub(in crate::facade) struct Route {
    pub(in crate::facade) method: &'static str,
    pub(in crate::facade) path: &'static str,
    pub(super) tag: &'static str,
    pub(super) summary: &'static str,
    pub(super) access: Access,
    pub(super) query: &'static [Parameter],
    pub(super) body: Option<&'static str>,
    pub(super) is_body_optional: bool,
    pub(super) is_form: bool,
    pub(super) is_idempotent: bool,
    is_read: bool,
    pub(super) is_page: bool,
    pub(super) is_unlisted: bool,
    pub(super) answers: &'static [(u16, Answer)],
    refused: &'static [u16],
    id: Option<&'static str>,
}

impl Route {
    const fn new(method: &'static str, path: &'static str, summary: &'static str) -> Self {
        Self {
            method,
            path,
            tag: "",
            summary,
            access: Access::Anyone,
            query: &[],
            body: None,
            is_body_optional: false,
            is_form: false,
            is_idempotent: false,
            is_read: false,
            is_page: false,
            is_unlisted: false,
            answers: &[],
            refused: &[],
            id: None,
        }
    }

    const fn key(self, scope: &'static str) -> Self {
        Self { access: Access::Key(scope), ..self }
    }

    const fn admin(self) -> Self {
        Self { access: Access::Admin, ..self }
    }

    const fn query(self, query: &'static [Parameter]) -> Self {
        Self { query, ..self }
    }

    const fn body(self, schema: &'static str) -> Self {
        Self { body: Some(schema), ..self }
    }

    const fn maybe_body(self, schema: &'static str) -> Self {
        Self { body: Some(schema), is_body_optional: true, ..self }
    }

    /// Takes the form of a page.
    const fn form(self, schema: &'static str) -> Self {
        Self { body: Some(schema), is_form: true, ..self }
    }

    const fn idempotent(self) -> Self {
        Self { is_idempotent: true, ..self }
    }

    /// Marks a POST that changes nothing.
    const fn reads(self) -> Self {
        Self { is_read: true, ..self }
    }

    const fn page(self) -> Self {
        Self { is_page: true, ..self }
    }

    /// Leaves the route out of the description: it belongs to the pages and is no interface.
    const fn unlisted(self) -> Self {
        Self { is_unlisted: true, ..self }
    }

    const fn answers(self, answers: &'static [(u16, Answer)]) -> Self {
        Self { answers, ..self }
    }

    const fn refuses(self, refused: &'static [u16]) -> Self {
        Self { refused, ..self }
    }

    /// Returns every status of a refusal: those of its own, and those that follow from what it takes.
    pub(super) fn refusals(&self) -> impl Iterator<Item = u16> + use<> {
        let mut all = self.refused.to_vec();
        all.extend([400, 404, 408, 414, 429, 431, 500, 503]);
        if self.access != Access::Anyone {
            all.extend([401, 403]);
        }
        if self.body.is_some() && !self.is_form {
            all.extend([413, 415]);
        }
        if self.is_idempotent {
            all.push(422);
        }
        all.sort_unstable();
        all.dedup();
        all.into_iter()
    }

    /// Names the operation for generators of clients, such as `payments.create`.
    const fn id(self, id: &'static str) -> Self {
        Self { id: Some(id), ..self }
    }

    /// Returns the operation's name for generators of clients: the resource and what is done with it, such as
    /// `payments.cancel`. The resource is the last word before a placeholder, or the first word.
    pub(super) fn operation_id(&self) -> String {
        if let Some(id) = self.id {
            return id.to_owned();
        }
        let mut parts: Vec<&str> =
            self.path.split('/').filter(|part| !matches!(*part, "" | "api" | "public")).collect();
        let admin = if parts.first() == Some(&"admin") { parts.remove(0) } else { "" };
        let last = parts.iter().rposition(|part| part.starts_with('{'));
        let resource = match parts[last.map_or(0, |last| last - 1)] {
            "for" => "checkoutBySlug".to_owned(),
            word => camel(&[word]),
        };
        let action = match (&parts[last.map_or(1, |last| last + 1)..], self.method, last.is_some()) {
            ([], GET, false) => "list".to_owned(),
            ([], POST, false) => "create".to_owned(),
            ([], POST, true) => "update".to_owned(),
            ([], method, _) => method.to_owned(),
            (words, _, _) => camel(words),
        };
        let words = [admin, &resource, &action];
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(".")
    }
}

/// Writes words as one name: `webhook-secret` as `webhookSecret`.
fn camel(words: &[&str]) -> String {
    let mut name = String::new();
    for word in words.iter().flat_map(|word| word.split(['-', '.'])) {
        let mut letters = word.chars();
        if name.is_empty() {
            name.push_str(word);
        } else {
            name.extend(letters.next().map(|first| first.to_ascii_uppercase()));
            name.push_str(letters.as_str());
        }
    }
    name
}

/// The groups, in the order of the page.
pub(super) const TAGS: [(&str, &str); 9] = [
    ("Payments", "Create payments, and see what became of them."),
    ("Events", "What happened, in order."),
    ("Merchants", "Registration, the own record, keys and secrets."),
    ("Astray", "Money that came otherwise than planned."),
    ("Billing", "What merchants used and owe, and the operator's invoices."),
    ("Admin", "The operator's work."),
    ("Checkout", "The customer's page, and payment by programs at the same address."),
    ("x402", "Verifying and settling payments of programs, for our sessions and for anybody's server."),
    ("About", "How the gateway is, and what it can do."),
];

use Answer::{Empty, File, Json, JsonOrPage, Text};

const FILTERS: &[Parameter] = &[
    ("page", "page", "From 1."),
    ("limit", "limit", "Items on a page, 20 when missing."),
    ("cursor", "text", "The `nextCursor` of an answer, in place of `page`."),
    ("status", "statuses", "Only these states; commas between them."),
    ("from", "time", "Created at or after."),
    ("to", "time", "Created before."),
    ("currency", "currency", "Only this currency."),
    ("minAmount", "text", "Asking for at least so many smallest units, of either currency."),
    ("maxAmount", "text", "Asking for at most so many smallest units, of either currency."),
    ("unusual", "boolean", "Only payments that need attention, or that do not."),
    ("ids", "text", "Only these payments, at most 100; commas between them."),
    ("query", "text", "Words of the id, the description, metadata, the payer or a transaction's id."),
];
const EXPORT: &[Parameter] = &[
    ("format", "format", "csv when missing."),
    ("bom", "boolean", "Whether the CSV begins with a byte order mark."),
    ("status", "statuses", "Only these states; commas between them."),
    ("from", "time", "Created at or after."),
    ("to", "time", "Created before."),
    ("currency", "currency", "Only this currency."),
    ("minAmount", "text", "Asking for at least so many smallest units, of either currency."),
    ("maxAmount", "text", "Asking for at most so many smallest units, of either currency."),
    ("unusual", "boolean", "Only payments that need attention, or that do not."),
    ("query", "text", "Words of the id, the description, metadata, the payer or a transaction's id."),
];
const MERCHANTS: &[Parameter] = &[
    ("page", "page", "From 1."),
    ("limit", "limit", "Items on a page, 20 when missing."),
    ("query", "text", "A part of the id, the name or the account."),
    ("active", "boolean", "Only active merchants, or only inactive ones."),
    ("flagged", "boolean", "Only merchants on hold for compliance, or only others."),
];
const DELIVERY_EXPORT: &[Parameter] = &[
    ("format", "format", "csv when missing."),
    ("bom", "boolean", "Whether the CSV begins with a byte order mark."),
    ("status", "text", "Only these states: pending, held, delivered, failed; commas between them."),
    ("eventId", "text", "Only of this event."),
    ("paymentId", "text", "Only of this payment's events."),
];

const MERCHANT_EXPORT: &[Parameter] = &[
    ("format", "format", "csv when missing."),
    ("bom", "boolean", "Whether the CSV begins with a byte order mark."),
    ("query", "text", "A part of the id, the name or the account."),
    ("active", "boolean", "Only active merchants, or only inactive ones."),
    ("flagged", "boolean", "Only merchants on hold for compliance, or only others."),
];

const GET: &str = "get";
const POST: &str = "post";
const PUT: &str = "put";
const DELETE: &str = "delete";

const fn route(method: &'static str, path: &'static str, summary: &'static str) -> Route {
    Route::new(method, path, summary)
}

const READ: &str = "payments:read";
const WRITE: &str = "payments:write";
const MERCHANT: &str = "merchant:write";
const PAYOUT: &str = "merchant:payout";

#[rustfmt::skip]
const PAYMENTS: &[Route] = &[
    route(POST, "/api/public/payments", "Create a payment").key(WRITE).body("CreatePayment").idempotent()
        .answers(&[(201, Json("Created"))]).refuses(&[409, 422]),
    route(POST, "/api/public/payments/create", "Create a payment; the short answer").id("payments.createShort").key(WRITE).body("CreatePayment").idempotent()
        .answers(&[(201, Json("CreatedShort"))]).refuses(&[409, 422]),
    route(GET, "/api/public/payments", "List payments, newest first").key(READ).query(FILTERS).answers(&[(200, Json("PaymentPage"))]),
    route(GET, "/api/public/payments/list", "The same under its other name").id("payments.listAlias").key(READ).query(FILTERS).answers(&[(200, Json("PaymentPage"))]),
    route(GET, "/api/public/payments/export", "Every payment of the filter, as a file").key(READ).query(EXPORT).answers(&[(200, File("Payment"))]),
    route(GET, "/api/public/payments/volume", "Sums over the last days").key(READ).query(&[("days", "text", "1 to 366, 30 when missing; today is the last.")]).answers(&[(200, Json("Volume"))]),
    route(GET, "/api/public/payments/fee-rate", "The fee of payments created now").answers(&[(200, Json("FeeRate"))]),
    route(GET, "/api/public/payments/{id}", "One payment").key(READ).answers(&[(200, Json("Payment"))]),
    route(GET, "/api/public/payments/{id}/status", "Its state alone").id("payments.getStatus").key(READ).answers(&[(200, Json("Status"))]),
    route(GET, "/api/public/payments/{id}/transfers", "All of its transfers, newest first").id("payments.listTransfers").key(READ)
        .query(&[("cursor", "text", "The `nextCursor` of an answer."), ("limit", "limit", "Transfers at most, 20 when missing.")])
        .answers(&[(200, Json("TransferList"))]),
    route(POST, "/api/public/payments/{id}/cancel", "Request its cancellation; the first irreversible block later than `cutoff` decides").key(WRITE).answers(&[(200, Json("Payment"))]).refuses(&[409]),
    route(DELETE, "/api/public/payments/{id}/metadata", "Delete the metadata of a payment that has ended").id("payments.deleteMetadata").key(WRITE).answers(&[(200, Json("Payment"))]).refuses(&[409]),
    route(DELETE, "/api/public/payments/{id}/note", "Delete the note of the decision about a payment").id("payments.deleteNote").key(WRITE).answers(&[(200, Json("Payment"))]),
];

#[rustfmt::skip]
const EVENTS: &[Route] = &[
    route(GET, "/api/public/events", "Events after a cursor, oldest first").key(READ)
        .query(&[("after", "text", "The `nextCursor` of an answer. One that was given out before the store was restored answers 410 with the `nextCursor` to go on with."), ("limit", "limit", "Events at most, 20 when missing.")])
        .answers(&[(200, Json("EventList"))]).refuses(&[410]),
    route(GET, "/api/public/events/{event}", "One event").id("events.get").key(READ).answers(&[(200, Json("Event"))]),
    route(GET, "/api/public/events/stream", "Events as they happen (server-sent events)").key(READ)
        .query(&[("after", "text", "Where to begin; now when missing.")]).answers(&[(200, Text("text/event-stream"))]).refuses(&[410]),
];

#[rustfmt::skip]
const OF_MERCHANTS: &[Route] = &[
    route(POST, "/api/public/merchants/register", "Register; the key and the secret are shown this once").body("Register").answers(&[(201, Json("Registered"))]).refuses(&[403]),
    route(GET, "/api/public/merchants/me", "The merchant of the key").key("").answers(&[(200, Json("Merchant"))]),
    route(GET, "/api/public/merchants/{id}", "A merchant: oneself, or any for an admin").key("").answers(&[(200, Json("Merchant"))]),
    route(POST, "/api/public/merchants/{id}", "Change what the body names").key(MERCHANT).body("UpdateMerchant").answers(&[(200, Json("Merchant"))]).refuses(&[409]),
    route(PUT, "/api/public/merchants/{id}", "The same by its other method").id("merchants.updateAlias").key(MERCHANT).body("UpdateMerchant").answers(&[(200, Json("Merchant"))]).refuses(&[409]),
    route(POST, "/api/public/merchants/{id}/webhook-secret", "A new webhook secret, shown this once").id("merchants.rotateWebhookSecret").key(MERCHANT).maybe_body("RotateSecret").answers(&[(200, Json("Secret"))]).refuses(&[409]),
    route(POST, "/api/public/merchants/{id}/account-proof", "A challenge by which the Hive account is proven").id("accountProofs.issueChallenge").key(PAYOUT).maybe_body("IssueChallenge").answers(&[(200, Json("AccountChallenge"))]).refuses(&[409]),
    route(PUT, "/api/public/merchants/{id}/account-proof", "Answer a challenge with signatures of the account's active authority").id("accountProofs.prove").key(PAYOUT).body("AccountProof").answers(&[(200, Json("ProvenAccount"))]).refuses(&[409, 410]),
    route(DELETE, "/api/public/merchants/{id}/pending-account", "Cancel a pending change of the Hive account").id("merchants.cancelAccountChange").key(PAYOUT).answers(&[(200, Json("Merchant"))]).refuses(&[409]),
    route(GET, "/api/public/merchants/{id}/webhook", "How the webhook endpoint is").id("webhooks.getEndpoint").key(READ).answers(&[(200, Json("WebhookEndpoint"))]),
    route(POST, "/api/public/merchants/{id}/webhook-enable", "Enable it again").id("webhooks.enable").key(MERCHANT).maybe_body("EnableWebhook").answers(&[(200, Json("EnabledWebhook"))]).refuses(&[409]),
    route(POST, "/api/public/merchants/{id}/webhook-replay", "Send again what was held or given up since a time").id("webhooks.replay").key(MERCHANT).body("ReplayWebhooks").answers(&[(200, Json("Replayed"))]).refuses(&[409]),
    route(POST, "/api/public/merchants/{id}/webhook-test", "Send a test event").id("webhooks.test").key(MERCHANT).maybe_body("TestWebhook").idempotent().answers(&[(200, Json("Delivery"))]).refuses(&[409]),
    route(GET, "/api/public/merchants/{id}/webhook-deliveries", "The log of deliveries, newest first").id("webhookDeliveries.list").key(READ)
        .query(&[("cursor", "text", "The `nextCursor` of an answer."), ("limit", "limit", "Deliveries at most, 20 when missing."), ("status", "text", "Only these states: pending, held, delivered, failed; commas between them."), ("eventId", "text", "Only of this event."), ("paymentId", "text", "Only of this payment's events.")])
        .answers(&[(200, Json("DeliveryList"))]),
    route(GET, "/api/public/merchants/{id}/webhook-deliveries/export", "Every delivery of the filter, as a file").id("webhookDeliveries.export").key(READ).query(DELIVERY_EXPORT).answers(&[(200, File("Delivery"))]),
    route(GET, "/api/public/merchants/{id}/webhook-deliveries/{delivery}", "One delivery with its attempts").key(READ).answers(&[(200, Json("DeliveryWithAttempts"))]),
    route(POST, "/api/public/merchants/{id}/webhook-deliveries/{delivery}/redeliver", "Send it again").key(MERCHANT).idempotent().answers(&[(200, Json("Delivery"))]).refuses(&[409]),
    route(GET, "/api/public/merchants/{id}/api-keys", "What is known of the keys").id("apiKeys.list").key(MERCHANT).answers(&[(200, Json("ApiKeys"))]),
    route(POST, "/api/public/merchants/{id}/api-keys", "A further key, shown this once").id("apiKeys.create").key(MERCHANT).body("CreateKey").answers(&[(201, Json("MadeKey"))]).refuses(&[409]),
    route(DELETE, "/api/public/merchants/{id}/api-keys/{key}", "Take a key back").key(MERCHANT).answers(&[(200, Json("ApiKeys"))]).refuses(&[409]),
    route(POST, "/api/public/merchants/{id}/api-keys/{key}/roll", "Give a key a successor, where the operator allows it").key(MERCHANT).maybe_body("RollKey").answers(&[(200, Json("MadeKey"))]).refuses(&[409]),
];

#[rustfmt::skip]
const ASTRAY: &[Route] = &[
    route(GET, "/api/public/unmatched", "Transfers that paid no session, newest first").key(READ)
        .query(&[("cursor", "text", "The `nextCursor` of an answer."), ("limit", "limit", "Transfers at most, 20 when missing."), ("status", "text", "open, assigned or ignored; commas between them.")])
        .answers(&[(200, Json("UnmatchedList"))]),
    route(GET, "/api/public/x402/sales", "Sales settled by x402 for the merchant's own resources, newest first").id("x402.sales").key(READ)
        .query(&[("cursor", "text", "The `nextCursor` of a response."), ("limit", "limit", "Sales at most, 20 when missing.")])
        .answers(&[(200, Json("SaleList"))]),
    route(GET, "/api/public/x402/sales/export", "Every sale, as a file").id("x402.exportSales").key(READ)
        .query(&[("format", "text", "csv (default) or json."), ("bom", "flag", "Whether a CSV file begins with a byte order mark.")])
        .answers(&[(200, File("Sale"))]),
    route(GET, "/api/public/unmatched/{id}", "One of them").key(READ).answers(&[(200, Json("Unmatched"))]),
    route(GET, "/api/public/unmatched/{id}/candidates", "Payments it may have been meant for").key(READ).answers(&[(200, Json("Candidates"))]),
    route(POST, "/api/public/unmatched/{id}/assign", "Put it to a payment").key(WRITE).body("Assign").answers(&[(200, Json("Payment"))]).refuses(&[409]),
    route(POST, "/api/public/unmatched/{id}/ignore", "Nothing is to be done about it").key(WRITE).maybe_body("Ignore").answers(&[(200, Json("Unmatched"))]).refuses(&[409]),
    route(POST, "/api/public/payments/{id}/resolve", "What was decided about a payment's exceptions").key(WRITE).body("Resolve").answers(&[(200, Json("Payment"))]).refuses(&[409]),
    route(GET, "/api/public/payments/{id}/refund", "A refund to sign").id("payments.prepareRefund").key(READ)
        .query(&[("amount", "text", "Smallest units; what is owed when missing."), ("currency", "currency", "Of the amount."), ("to", "text", "Whom.")])
        .answers(&[(200, Json("RefundPlan"))]).refuses(&[409]),
];

#[rustfmt::skip]
const BILLING: &[Route] = &[
    route(GET, "/api/public/billing/me", "What the merchant of the key used and owes").key(READ).answers(&[(200, Json("BillingSummary"))]),
    route(GET, "/api/admin/billing/overview", "What everybody used and owes").admin().answers(&[(200, Json("BillingOverview"))]),
    route(GET, "/api/admin/billing/merchant/{id}", "What a merchant used and owes").admin().answers(&[(200, Json("AdminBillingSummary"))]),
    route(GET, "/api/admin/billing/periods", "Merchants' months, newest first").admin()
        .query(&[("page", "page", "From 1."), ("limit", "limit", "Items on a page, 20 when missing."), ("merchantId", "text", "Only this merchant's."), ("status", "billing", "Only those that stand so.")])
        .answers(&[(200, Json("BillingPeriodPage"))]),
    route(GET, "/api/admin/billing/tiers", "The fee tiers").id("admin.billing.getTiers").admin().answers(&[(200, Json("FeeTiers"))]),
    route(PUT, "/api/admin/billing/tiers", "Replace the fee tiers").id("admin.billing.setTiers").admin().body("SetFeeTiers").answers(&[(200, Json("FeeTiers"))]).refuses(&[409]),
    route(POST, "/api/admin/billing/generate-invoices", "Make the invoices that are missing, of one month or of all that are over").admin().maybe_body("GenerateInvoices").answers(&[(200, Json("GeneratedInvoices"))]).refuses(&[409]),
];

#[rustfmt::skip]
const ADMIN: &[Route] = &[
    route(GET, "/api/admin/merchants", "List merchants, newest first").admin().query(MERCHANTS).answers(&[(200, Json("MerchantPage"))]),
    route(GET, "/api/admin/merchants/list", "The same under its other name").id("admin.merchants.listAlias").admin().query(MERCHANTS).answers(&[(200, Json("MerchantPage"))]),
    route(GET, "/api/admin/merchants/export", "Every merchant of the filter, as a file").admin().query(MERCHANT_EXPORT).answers(&[(200, File("Merchant"))]),
    route(POST, "/api/admin/merchants/change-status", "Activate or deactivate a merchant").admin().query(&[("merchantId", "text", "Required. Which.")]).body("ChangeStatus").answers(&[(200, Json("Merchant"))]).refuses(&[409]),
    route(POST, "/api/admin/merchants/{id}/active", "Activate or deactivate a merchant").id("admin.merchants.setActive").admin().body("SetActive").answers(&[(200, Json("Merchant"))]).refuses(&[409]),
    route(POST, "/api/admin/merchants/{id}/api-key", "A new key in place of all, shown this once").id("admin.merchants.reissueApiKey").admin().answers(&[(200, Json("Reissued"))]).refuses(&[409]),
    route(GET, "/api/admin/merchants/{id}/compliance", "Where a merchant stands with compliance").id("admin.compliance.get").admin().answers(&[(200, Json("Standing"))]),
    route(POST, "/api/admin/merchants/{id}/compliance/clear", "End a hold: somebody has looked").id("admin.compliance.clear").admin().body("ClearHold").answers(&[(200, Json("Standing"))]).refuses(&[409]),
    route(PUT, "/api/admin/merchants/{id}/compliance/limits", "Give a merchant hard limits of its own; `{\"limits\": null}` takes them away").id("admin.compliance.setLimits").admin().body("SetLimits").answers(&[(200, Json("Standing"))]).refuses(&[409]),
    route(GET, "/api/admin/payments/{id}", "Any merchant's payment with its timeline; the audit log records each read").id("admin.payments.get").admin().answers(&[(200, Json("PaymentDossier"))]),
    route(GET, "/api/admin/nodes", "How the ledger's nodes are").admin().answers(&[(200, Json("Nodes"))]),
    route(GET, "/api/admin/books", "What the daily checks of the books said, newest day first").admin()
        .query(&[("cursor", "text", "The `nextCursor` of an answer."), ("limit", "limit", "Days at most, 20 when missing.")])
        .answers(&[(200, Json("BooksPage"))]),
    route(GET, "/api/admin/audit", "What admins and merchants did, newest first").admin()
        .query(&[("cursor", "text", "The `nextCursor` of an answer."), ("limit", "limit", "Entries at most, 20 when missing."), ("merchantId", "text", "Only what concerns this merchant.")])
        .answers(&[(200, Json("AuditPage"))]),
];

/// How an address of a session answers programs and browsers.
const AT_ADDRESS: &[(u16, Answer)] = &[(200, JsonOrPage("Paid")), (402, Json("PaymentRequired"))];

#[rustfmt::skip]
const CHECKOUT: &[Route] = &[
    route(GET, "/for/{slug}", "The checkout page; programs are asked for a payment by 402").page().answers(AT_ADDRESS).refuses(&[403, 409, 410]),
    route(GET, "/for/{slug}/status", "The live status").page().answers(&[(200, Json("LiveStatus"))]),
    route(GET, "/for/{slug}/events", "The live status as it changes (server-sent events)").page().answers(&[(200, Text("text/event-stream"))]),
    route(POST, "/for/{slug}/cancel", "Request cancellation for the customer").page().answers(&[(200, JsonOrPage("CancelRequested")), (303, Empty)]).refuses(&[403, 409]),
    route(POST, "/for/{slug}/wallet", "Report an opened wallet or a known transaction, so that a cancellation leaves it time to arrive").page().answers(&[(200, Json("CancelRequested"))]).refuses(&[409, 410]),
    route(GET, "/checkout/{id}", "The same by the payment's public id; a browser is moved to the slug while no money was seen").page().answers(&[(200, JsonOrPage("Paid")), (303, Empty), (402, Json("PaymentRequired"))]).refuses(&[403, 409, 410]),
    route(GET, "/checkout/{id}/status", "The live status").page().answers(&[(200, Json("LiveStatus"))]),
    route(GET, "/checkout/{id}/events", "The live status as it changes (server-sent events)").page().answers(&[(200, Text("text/event-stream"))]),
    route(POST, "/checkout/{id}/cancel", "Request cancellation for the customer, with the page's form token").page().form("CancelForm").answers(&[(200, JsonOrPage("CancelRequested")), (303, Empty)]).refuses(&[403, 409, 413]),
];

#[rustfmt::skip]
const X402: &[Route] = &[
    route(GET, "/api/public/x402/health", "Whether payments can be verified and settled").answers(&[(200, Json("X402Health"))]),
    route(GET, "/api/public/x402/supported-networks", "The networks payments are taken on").answers(&[(200, Json("Networks"))]),
    route(GET, "/api/public/x402/supported", "Every kind of payment that is taken").answers(&[(200, Json("Supported"))]),
    route(POST, "/api/public/x402/verify", "Check a payment; nothing is sent").body("X402Request").reads().answers(&[(200, Json("Verified"))]).refuses(&[401]),
    route(POST, "/api/public/x402/settle", "Check a payment, and bring it onto the ledger").body("X402Request").idempotent().answers(&[(200, Json("Settled"))]).refuses(&[401, 409]),
];

#[rustfmt::skip]
const ABOUT: &[Route] = &[
    route(GET, "/api/health", "Whether payments can be stored").id("health.get").answers(&[(200, Json("Health"))]),
    route(GET, "/livez", "The process runs").id("health.live").answers(&[(200, Json("Alive"))]),
    route(GET, "/readyz", "Whether everything works").id("health.ready").answers(&[(200, Json("Ready")), (503, Json("NotReady"))]),
    route(GET, "/openapi.json", "This description").id("about.openapi").answers(&[(200, Json("Description")), (304, Empty)]),
    route(GET, "/docs", "This description to read").id("about.docs").answers(&[(200, Text("text/html")), (304, Empty)]),
    route(GET, "/llms.txt", "What an agent should know first").id("about.llms").answers(&[(200, Text("text/plain"))]),
    route(GET, "/assets/{file}", "What the pages are made of").answers(&[(200, Text("*/*"))]).unlisted(),
];

/// Finds the route of a method and a path.
fn find(method: &http::Method, path: &str) -> Option<Route> {
    let fits = |route: &Route| {
        let (parts, asked) = (route.path.split('/'), path.split('/'));
        let is_same = |(part, asked): (&str, &str)| part == asked || part.starts_with('{');
        route.method.eq_ignore_ascii_case(method.as_str())
            && parts.clone().count() == asked.clone().count()
            && parts.zip(asked).all(is_same)
    };
    // A route that is named goes before one with a placeholder.
    routes().filter(fits).min_by_key(|route| route.path.matches('{').count())
}

/// Returns the query parameters of a list or an export, by its method and path; `None` where parameters are ignored.
pub(in crate::facade) fn parameters(method: &http::Method, path: &str) -> Option<&'static [Parameter]> {
    let found = find(method, path).filter(|_| path.starts_with("/api/"))?;
    Some(found.query).filter(|query| !query.is_empty())
}

/// Says whether a route changes something without honouring an `Idempotency-Key`.
pub(in crate::facade) fn ignores_keys(method: &http::Method, path: &str) -> bool {
    let changes = |route: &Route| !matches!(route.method, GET) && !route.is_read;
    find(method, path).filter(changes).is_some_and(|route| !route.is_idempotent)
}

/// Returns every route.
pub(in crate::facade) fn routes() -> impl Iterator<Item = Route> {
    let groups = [PAYMENTS, EVENTS, OF_MERCHANTS, ASTRAY, BILLING, ADMIN, CHECKOUT, X402, ABOUT];
    let tagged = TAGS.into_iter().zip(groups);
    tagged.flat_map(|((tag, _), routes)| routes.iter().map(move |route| Route { tag, ..*route }))
}
