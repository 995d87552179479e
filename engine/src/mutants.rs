//! Mutants for mutation testing: deliberate defects that the simulator must detect, each at a `mutant!("name")` in the
//! code. Builds with debug assertions contain them, and the simulator activates one at a time; in release builds the
//! macro is constantly `false`.

macro_rules! mutants {
    ($($name:literal: $description:literal;)*) => {
        /// Every mutant with its description.
        pub const ALL: &[(&str, &str)] = &[$(($name, $description),)*];
    };
}

mutants! {
    "wallet-pays-a-request-again": "a request of an agent with a wallet is paid again although its payment counts";
    "budget-ends-with-the-transaction": "a payment leaves a wallet's budgets when its transaction expires";
    "wallet-trusts-its-clock": "a wallet measures its budgets by the system clock, without the ledger's head";
    "approval-covers-any-amount": "an operator's approval permits a higher amount than the approved one";
    "wallet-releases-at-expiration": "a wallet releases an expired payment although no majority of the nodes proves its absence";
    "transfers-not-deduped": "a transfer that is read twice is credited twice";
    "unlisted-not-summed": "totals omit the transfers that a payment's record does not list";
    "unlisted-not-loaded": "a transfer that a payment's record does not list is treated as new";
    "late-transfer-counts": "a transfer in a block after the expiry counts";
    "cancel-ignores-transfers": "a session is cancelled although a transfer for it was seen";
    "cancel-ignores-claim": "a session is cancelled although it has an open claim";
    "cancelled-immediately": "a cancellation request cancels the session without waiting for the block that decides it";
    "cancel-decided-despite-transfers": "a session is cancelled although transfers counted before the cutoff";
    "transfer-after-cutoff-counts": "a transfer in a block after the cutoff of a cancellation counts";
    "claim-while-cancelling": "an agent can claim a session that is being cancelled";
    "expiry-ignores-claim": "a session expires although it has an open claim";
    "expiry-by-wall-clock": "a session expires by the wall clock instead of an irreversible block";
    "reversible-completes": "a transfer in a reversible block completes a session";
    "wrong-currency-counts": "a transfer in the wrong currency counts";
    "self-transfer-counts": "a transfer from the merchant to itself counts";
    "partial-amount-completes": "a part of the amount completes a session";
    "exact-amount-is-too-little": "the exact amount does not complete a session";
    "claim-replaces-claim": "a second agent's claim replaces the first";
    "claim-expires-by-wall-clock": "a claim expires by the wall clock instead of an irreversible block";
    "sequence-not-incremented": "a transition does not increment the sequence number";
    "event-has-old-state": "a webhook contains the previous state";
    "claim-dropped-while-reversible": "a claim is dropped while a fork can still remove its transaction";
    "signature-without-timestamp": "the legacy signature does not cover the timestamp";
    "old-secret-signs": "webhooks are signed with the replaced secret";
    "grace-never-ends": "the replaced secret never becomes invalid";
    "gives-up-after-four": "a delivery fails after four attempts";
    "timeout-is-success": "an attempt that times out counts as delivered";
    "commit-not-synced": "a commit is acknowledged before it is synced";
    "log-not-replayed": "the write-ahead log is not replayed at the start";
    "log-start-not-stored": "a checkpoint does not store the LSN at which the log begins";
    "second-segment-not-replayed": "only the first segment of the log is replayed after a crash";
    "sealed-memtable-not-read": "reads skip the sealed memtable during a checkpoint";
    "checkpoint-keeps-removed": "a checkpoint does not remove removed rows from the database";
    "event-without-delivery": "an event is stored without its delivery in the outbox";
    "deadline-not-indexed": "due sessions are not found";
    "claim-not-indexed": "sessions with a claim are not found at the start";
    "delivered-stays-in-outbox": "a delivered event stays in the outbox";
    "create-acknowledged-before-commit": "a creation is acknowledged before it is committed";
    "cancel-acknowledged-before-commit": "a cancellation is acknowledged before it is committed";
    "cursor-passes-failures": "the cursor advances although a credit failed";
    "unmatched-not-stored": "unmatched transfers are not stored";
    "broadcast-before-claim": "an agent's transaction is broadcast before its claim is durable";
    "lost-response-is-refusal": "a lost response to a broadcast counts as a refusal";
    "one-node-is-enough": "one node decides where a majority must agree";
    "one-refusal-is-enough": "a broadcast that one node refuses counts as refused";
    "highest-finality-wins": "the highest last irreversible block that any node returns is used";
    "no-retries": "a failed delivery is not retried";
    "events-of-a-session-overlap": "two events of one session are sent concurrently";
    "settlement-succeeds-twice": "every request to settle the same payment for another server succeeds";
    "claims-not-recovered": "open claims are not followed after a restart";
    "expiry-not-swept": "due sessions are never collected";
    "idempotency-key-not-stored": "an idempotency key is not stored with its session";
    "usage-counted-again": "every write of a completed payment adds to the usage";
    "amount-not-checked": "an agent can pay too little";
    "memo-not-checked": "an agent can pay a session with the transaction of another";
    "forks-not-rolled-back": "a transfer that a fork removed stays credited";
    "ambiguous-memo-pays-the-first": "a memo that names two sessions pays the first";
    "encrypted-memo-is-matched": "an encrypted memo is matched as plain text";
    "unmatched-without-ledger-entry": "an unmatched transfer has no ledger entry";
    "reconciliation-skips-accounts": "the daily reconciliation ends after the first account";
    "missing-history-is-agreement": "an account without a history response counts as reconciled";
    "reconciled-too-early": "a day is reconciled before its history is irreversible";
    "unknown-block-is-empty": "a block that a node does not have counts as one without virtual operations";
    "expiry-before-credits": "a session expires although an earlier transfer is not credited yet";
    "rights-without-proof": "a merchant decides about unmatched transfers of an account that it has not proven";
    "only-exact-memos": "a memo with text around the session id matches no session";
    "head-from-quorum-only": "the head is requested from only as many nodes as must agree";
    "two-minute-expirations-are-refused": "a transaction that expires within two minutes counts as about to expire";
    "event-without-metadata": "a webhook omits the payment's metadata";
    "unlisted-not-reclassified": "a decided cancellation does not reclassify unlisted transfers";
    "other-merchant-is-authorized": "a merchant can read, cancel and resolve the payments of another";
    "resolution-acknowledged-before-commit": "a merchant's resolution is acknowledged before it is committed";
    "refund-not-deducted": "refunds do not reduce the amount owed";
    "refund-recorded-twice": "a refund that is read twice is recorded twice";
    "refund-not-recorded": "a refund on the chain is not recorded";
    "refund-not-notified": "a refund makes no event";
    "unmatched-not-notified": "an unmatched transfer makes no event";
    "currency-of-agents-not-checked": "an agent can pay in the other currency";
    "payers-not-searched": "search does not find payments by payer";
    "unindexed-not-searched": "search does not find payments that are not indexed";
    "replay-includes-delivered": "delivered events are replayed, too";
    "replay-continues-schedule": "a replayed delivery continues its schedule instead of restarting it";
    "redelivery-is-retried": "a requested redelivery is retried like an automatic one";
    "attention-not-listed": "lists do not show which payments need attention";
    "listed-twice": "a payment stays in the list of its previous state";
    "day-not-counted": "daily sums omit changes of payments";
    "exceptions-notified-once": "an exception is notified once, even if it grows";
    "accepted-is-owed-again": "accepted amounts are owed again after a new exception";
    "payer-proof-not-checked": "any caller who presents a claimed transaction counts as its payer";
    "cutoff-money-stays-cancelled": "transfers after the cutoff of a dropped cancellation stay `paid_after_cancel`";
    "expired-session-is-verified": "a payment is verified for an expired session";
    "delivery-log-has-signatures": "the log of deliveries contains signatures";
    "refused-transaction-is-broadcast-again": "a refused transaction is broadcast again while the refusal is stored";
    "excess-owed-to-each": "the excess amount is owed to every payer";
    "former-account-watched-for-a-day": "a former account is watched for only a day";
    "breaker-holds-deliveries": "an open circuit breaker holds deliveries as if the endpoint were disabled";
    "no-breaker": "an unreachable endpoint gets as many concurrent requests as any other";
    "double-endpoint-concurrency": "an endpoint gets sixteen concurrent requests";
    "endpoint-disabled-early": "an endpoint is disabled after one hour of failures";
    "late-claim-counts": "a claim settled after a wallet completed the session counts";
    "normalized-memos-are-exact": "a memo with text around the session id is recorded as exact";
    "assigned-has-wallet-route": "an assigned transfer is recorded with the route of a wallet transfer";
    "surplus-is-not-excess": "surplus transfers are not part of the excess amount";
    "cutoff-next-block": "the cutoff of a cancellation is the next block";
    "payer-not-named": "a refusal with verified signatures does not name the payer";
    "balance-not-checked": "an agent without sufficient funds is verified";
    "replay-not-marked": "a repeated receipt is not marked as replayed";
    "nonce-claimed-twice": "two transactions can claim one nonce";
    "fee-amount-not-checked": "an agent can pay a smaller fee";
    "currency-of-fee-not-checked": "an agent can pay the fee in the other currency";
    "far-expirations-are-accepted": "an agent's transaction can have any expiration";
    "extra-transfers-are-accepted": "an agent's transaction can contain extra transfers";
    "scheme-not-checked": "a payment of any scheme is accepted";
    "network-not-checked": "a payment for any network is accepted";
    "long-nonces-are-accepted": "a nonce can have any length";
    "long-headers-are-accepted": "a payment header can have any length";
    "hidden-characters-in-resources": "a resource can contain invisible characters";
    "written-as-it-was": "a transfer that a payment has is written again";
    "decision-covers-what-follows": "a decision also covers transfers that came after it";
    "refund-deducted-twice": "a refund to one payer is also deducted from what others are owed";
    "oldest-unlisted-first": "the completing transfer is no longer listed after newer ones";
    "disagreement-never-known": "a node that contradicts the majority is reported as ok";
    "slowness-never-known": "a slow node is reported as ok";
    "highest-balance-is-believed": "the highest balance that any node returns is used";
    "claimed-session-is-passivated": "a session is passivated although a claim was stored after the decision to passivate it";
    "idle-sessions-stay": "more sessions are active than the settings allow";
    "orders-to-passivated-forgotten": "messages for a session that is being passivated are dropped";
    "refused-though-taken": "a payment is refused although a node accepted its transaction";
    "nodes-are-flooded": "a transaction is resubmitted to nodes without a pause";
    "claims-sent-once": "a transaction that no node accepts is not resubmitted";
    "cursor-not-remembered": "the scanner does not remember the cursor that it stored";
    "skipped-blocks-unseen": "blocks that do not follow each other are accepted";
    "sellers-refused-their-success": "a seller that repeats its request is refused its success";
    "nearest-expiration-refused": "a transaction that is valid just long enough is refused";
    "second-warning-forgotten": "no warning is shown after three days of failures";
    "fee-memo-not-checked": "the fee's memo can name another session";
    "settlement-not-bound-to-resource": "a payment for one resource succeeds for another";
    "settlement-not-bound-to-seller": "a payment that one seller had settled succeeds for another";
    "repeat-without-idempotency-key": "repeating a success needs no idempotency key";
    "identifier-not-read": "the payment identifier is ignored";
    "other-merchant-refunds": "a transfer of another merchant is recorded as a refund";
    "four-old-secrets-sign": "a fourth replaced webhook secret stays valid";
    "hbd-price-unknown": "nodes count as having no price of HBD";
    "small-exceptions-not-notified": "the first exception of a kind is not notified if it is 0.001";
    "hbd-is-always-a-dollar": "HBD counts as one dollar at any market price";
    "claim-dropped-with-its-request": "a claim whose caller disconnects while it is stored is not followed";
    "key-not-stored-with-report": "the idempotency key to which a success is first reported is not stored";
    "failing-since-the-last-failure": "an endpoint counts as failing since its last failure instead of its first";
    "owed-before-payment-is-irreversible": "a second payment is owed back while the first is reversible";
    "every-resolution-accepts": "every resolution accepts the payment";
    "chain-id-not-checked": "a node of another chain is used";
    "retry-after-ignored": "a node that limits the rate is called again after two seconds, whatever its `Retry-After`";
    "missing-history-is-empty": "the history of a node without the account history API counts as empty";
    "one-node-without-price-decides": "one node without a price of HBD decides";
    "webhooks-wait-for-the-timer": "a new event does not wake the dispatcher";
    "agents-wait-the-full-hold": "an agent gets the settlement of its payment only when the hold ends";
    "scanner-polls-rarely": "the scanner polls once a minute";
    "restore-omits-claims": "a restored store has no claims";
    "restore-keeps-the-epoch": "a restored store continues in the epoch of its backup";
    "proof-by-any-sender": "a transfer of any sender to itself proves the account of a challenge";
    "stale-proof-decides": "a merchant with a stale proof decides about unmatched transfers";
    "proven-account-changes-immediately": "a merchant changes its proven account immediately and keeps the proof";
    "unmatched-shown-without-proof": "a merchant sees unmatched transfers of an account that it has not proven";
    "account-changes-unlimited": "a merchant changes its account without limit";
    "read-error-ignored": "a read error of the store does not stop the engine";
    "repair-reads-every-page": "after a crash the whole file is read, and one damaged row keeps the engine from starting";
    "rotation-skips-a-merchant": "another master key leaves one merchant's secrets sealed with the old one";
    "secrets-not-encrypted": "webhook secrets are stored unencrypted though there is a master key";
    "damaged-log-is-truncated": "entries of the log after a damaged one are lost";
    "damaged-row-is-returned": "a row that is damaged on disk is read as it stands there";
    "damaged-row-is-fatal": "the engine gives up where it reads a damaged row";
    "damaged-row-blocks": "whoever meets a damaged row stays before it";
    "unknown-is-refused": "a commit whose outcome is unknown is taken for one that wrote nothing";
    "retry-without-forbidding": "a commit whose outcome is unknown is repeated under another id before the first is forbidden";
    "rate-moves-back": "an older price of HIVE replaces a newer one";
    "held-though-enabled": "a webhook is held although its endpoint has been enabled meanwhile";
    "stale-rejection": "an engine rejects a command by a copy of the payment that another engine has changed";
    "unshared-refusal": "an engine broadcasts what another claimed without a note on the claim, and takes a refusal for the last word";
    "accounts-of-others-unseen": "the scanner does not see the accounts of merchants that register through another engine";
    "wall-clock-lease": "a lease is counted by the wall clock";
    "lease-from-after-renewal": "a lease is counted from the answer to its renewal, not from before it is sent";
    "duties-kept-without-nodes": "an engine that reaches no ledger node keeps the duty of reading the ledger";
    "double-duty": "an engine works on every duty, whoever holds it";
    "changes-elsewhere-unseen": "what another engine changes is not noticed by those who watch it here";
    "deposed-holder-sends": "an engine sends webhooks of buckets that another engine has taken";
    "orphans-not-adopted": "claims of an engine that has gone are followed by nobody";
    "cursor-without-expected": "the cursor is moved whatever the store has";
    "keys-deleted-early": "idempotency keys are deleted after an hour";
    "events-deleted-early": "events are deleted after half of their retention";
    "newer-events-deleted": "retention deletes newer events, too";
    "responses-outlive-events": "the responses of receivers stay when their event is deleted";
    "metadata-deleted-early": "the retention of metadata begins with the creation of its payment";
    "notes-kept-for-ever": "retention deletes no notes of decisions";
    "deletion-takes-more": "the note of a decision is deleted with the metadata";
    "fee-rounded-up": "the fee is rounded up";
    "ordered-lifetime-ignored": "the requested lifetime of a payment is ignored";
    "grace-not-kept": "a payment has no grace period";
    "hive-price-never-renewed": "the price of HIVE is not updated";
    "volume-window-halved": "only the current hour counts for a limit";
    "limits-halved": "a payment over half of a limit is refused";
    "hold-not-applied": "a merchant on hold opens payments";
    "clearing-keeps-the-volume": "the volume that led to a hold counts after it is lifted";
    "quota-allows-one-more": "a merchant may have one open payment more than its quota";
    "account-change-without-wait": "the change of a proven account does not wait";
    "challenge-answered-twice": "a challenge stays after its answer";
    "late-transfer-proves": "a transfer proves an account after its challenge has expired";
    "any-signature-proves": "any signature proves an account";
    "revoked-key-stays": "a revoked API key is accepted";
    "rolled-key-never-ends": "a rolled API key does not expire";
    "rolled-key-gets-all-scopes": "the successor of an API key has every scope";
    "expired-key-is-valid": "an expired API key is accepted";
    "subscription-ignored": "events of every type are sent to every endpoint";
    "event-to-unsubscribed-endpoint": "additional endpoints get events of types that they do not subscribe to";
    "test-is-retried": "a test event is sent on the schedule of other events";
    "tests-disable-endpoints": "failed tests and redeliveries count against an endpoint";
    "endpoint-not-paced": "requests of an endpoint are not rate-limited";
    "watchers-not-notified": "watchers of a payment receive only its final state";
    "streams-not-woken": "a new event does not wake the streams of its merchant";
    "stream-leaves-out-events": "a resumed stream skips one event";
    "cursor-one-too-far": "a cursor of an event list skips one event";
    "revocation-not-audited": "the audit log does not say that an API key was revoked";
    "audit-leaves-out-accounts": "the audit log does not say that an account changed";
    "decisions-not-audited": "a merchant's decision is not in the audit log";
    "invoices-before-the-month-ends": "a month is billed before it is over";
    "first-tier-for-all": "every volume is billed by the first tier";
    "collected-fees-billed-again": "fees collected with payments are billed again";
    "billed-month-counts-on": "usage is added to a month that is already billed";
    "paid-invoice-stays-open": "an invoice stays unpaid when its payment completes";
    "invoices-count-as-volume": "paid invoices count as the operator's volume";
    "finality-by-the-usual": "a payment of any value completes with the finality of small ones";
    "unknown-sellers-are-served": "payments to accounts without a merchant are settled although the settings forbid it";
    "success-under-a-key-reported-once": "a success under an idempotency key is reported once";
    "off-peg-not-refused": "a payment in HBD is opened off its peg although the settings forbid it";
    "sales-shown-without-proof": "a sale is listed for every merchant with its account";
    "candidates-of-other-accounts": "payments to another account are proposed for a transfer";
    "transfer-pages-overlap": "a page of transfers begins with the last one of the page before";
    "wallet-reported-again": "a second report of an opened wallet replaces the first";
    "cancelled-after-the-deadline": "a payment may be cancelled after its deadline";
    "completed-when-it-was-opened": "the completion time of a payment is its creation time";
    "watched-since-the-last-change": "an account counts as watched since its merchant last changed";
    "end-before-the-epoch-lost": "the end of an event list before a restore is lost";
    "hold-not-listed": "the list of merchants on hold is not kept";
    "audit-not-listed-for-its-actor": "an entry of the audit log is not listed for the merchant that acted";
    "identifier-not-claimed": "two payments are claimed under one payment identifier";
    "sellers-claims-deleted": "claims that a seller requested are deleted as those without a seller";
    "refused-claim-stays": "the claim of a refused transaction stays";
    "facade-form-token-not-checked": "a checkout is cancelled by its public id without the token of its page";
    "facade-dashboard-token-not-checked": "a form of the dashboard needs no token of its session";
    "facade-logout-keeps-the-session": "the cookie of the dashboard is good after the logout";
    "facade-other-merchant-reads": "a merchant may read another's payment by its id";
    "facade-status-is-the-previous-one": "the state alone is answered with the one that was left";
    "facade-bad-json-is-500": "a body that is no JSON is answered 500";
    "facade-no-retry-after": "a refusal does not say when to come again";
    "facade-checkout-is-unlimited": "one address may ask for checkouts as often as it likes";
    "facade-unknown-fields-are-ignored": "fields that no request has are ignored";
    "facade-key-reuse-returns-the-first": "another order under a key that was used is answered with the first one's payment";
}

/// Returns whether a mutant is observable only by clients of the facade.
#[must_use]
pub fn is_facade_mutant(name: &str) -> bool {
    name.starts_with("facade-")
}

/// Returns the index of a mutant. Evaluated at compile time: an unknown name does not compile.
///
/// # Panics
/// If there is no mutant of this name.
#[must_use]
pub const fn index_of(name: &str) -> usize {
    let mut index = 0;
    while index < ALL.len() {
        if is_same(ALL[index].0.as_bytes(), name.as_bytes()) {
            return index;
        }
        index += 1;
    }
    panic!("unknown mutant")
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut at = 0;
    while at < one.len() {
        if one[at] != other[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(debug_assertions)]
mod switch {
    use std::cell::Cell;

    /// No mutant is active.
    const NONE: usize = usize::MAX;

    thread_local! {
        static ACTIVE: Cell<usize> = const { Cell::new(NONE) };
    }

    /// Activates one mutant in this thread, or none.
    pub fn activate(name: Option<&str>) {
        let found = name.and_then(|name| super::ALL.iter().position(|(known, _)| *known == name));
        ACTIVE.set(found.unwrap_or(NONE));
    }

    /// Returns whether the mutant with this index is active in this thread. Compares two integers only, because it is
    /// called on hot paths.
    #[must_use]
    #[inline]
    pub fn is_active(index: usize) -> bool {
        ACTIVE.get() == index
    }

    /// Returns every mutant; `None` in a release build.
    #[must_use]
    pub const fn compiled_in() -> Option<&'static [(&'static str, &'static str)]> {
        Some(super::ALL)
    }
}

#[cfg(not(debug_assertions))]
mod switch {
    /// Does nothing: a release build has no mutants.
    pub const fn activate(_name: Option<&str>) {}

    /// Returns `false`: a release build has no mutants.
    #[must_use]
    #[inline(always)]
    pub const fn is_active(_index: usize) -> bool {
        false
    }

    /// Returns every mutant; `None` in a release build.
    #[must_use]
    pub const fn compiled_in() -> Option<&'static [(&'static str, &'static str)]> {
        None
    }
}

pub use switch::{activate, compiled_in, is_active};

/// Evaluates to whether a mutant is active; constantly `false` in a release build.
#[macro_export]
macro_rules! mutant {
    ($name:literal) => {{
        const INDEX: usize = $crate::mutants::index_of($name);
        $crate::mutants::is_active(INDEX)
    }};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mutant_names_are_unique() {
        for (index, (name, _)) in ALL.iter().enumerate() {
            assert_eq!(index_of(name), index, "{name} occurs twice");
        }
    }

    #[test]
    #[cfg(debug_assertions)]
    fn one_mutant_is_active_at_a_time() {
        activate(Some("only-exact-memos"));
        let on = (mutant!("only-exact-memos"), mutant!("amount-not-checked"));
        activate(Some("not-a-mutant"));
        let unknown = mutant!("only-exact-memos");
        activate(None);
        assert_eq!((on, unknown, mutant!("only-exact-memos")), ((true, false), false, false));
        assert_eq!(compiled_in().map(<[_]>::len), Some(ALL.len()));
    }
}
