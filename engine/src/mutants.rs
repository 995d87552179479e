//! Mutants for mutation testing: deliberate defects that the simulator must detect, each at a `mutant!("name")` in the
//! code. Builds with debug assertions contain them, and the simulator activates one at a time; in release builds the
//! macro is constantly `false`.

macro_rules! mutants {
    ($($name:literal: $says:literal;)*) => {
        /// Every mutant with its description.
        pub const ALL: &[(&str, &str)] = &[$(($name, $says),)*];
    };
}

mutants! {
    "transfers-not-deduped": "a transfer seen twice is credited twice";
    "unlisted-not-summed": "the money of transfers that a payment's record does not list is forgotten";
    "unlisted-not-loaded": "a transfer that a payment's record does not list is taken for a new one";
    "late-money-counts": "a transfer in a block after the expiry counts";
    "cancel-ignores-money": "a session is cancelled though money for it was seen";
    "cancel-ignores-claim": "a session is cancelled though a signed transaction for it is out";
    "cancelled-at-once": "a request to cancel ends the session without waiting for the block that decides it";
    "cancel-decided-despite-money": "a session is cancelled though money counted before the cutoff";
    "money-after-cutoff-counts": "money in a block after the cutoff of a cancellation counts";
    "claim-while-cancelling": "an agent may pay a session that is being cancelled";
    "expiry-ignores-claim": "a session expires though a signed transaction for it is out";
    "expiry-by-our-clock": "a session expires by the wall clock, not by an irreversible block";
    "reversible-completes": "money in a block that can still change completes a session";
    "wrong-currency-counts": "money in the other currency counts";
    "self-transfer-counts": "a merchant can pay itself";
    "any-money-completes": "a part of the amount completes a session";
    "exact-is-too-little": "exactly the amount does not complete a session";
    "claim-replaces-claim": "a second agent's claim takes the place of the first";
    "buried-by-our-clock": "a transaction is given up by the wall clock, not by an irreversible block";
    "sequence-stands-still": "a new state keeps the sequence of the old one";
    "event-tells-the-old-state": "the webhook tells the state that was left";
    "claim-let-go-in-a-block": "a claim is let go while a fork can still take its transaction";
    "signed-without-time": "the older signature does not cover the time";
    "old-secret-signs": "webhooks are signed with the replaced secret";
    "grace-never-ends": "the replaced secret signs for ever";
    "gives-up-after-four": "a delivery is given up after four attempts";
    "timeout-is-success": "a receiver that did not answer in time counts as told";
    "commit-not-synced": "a commit is acknowledged before it is on disk";
    "log-not-replayed": "what was synced to the log is forgotten when the process starts again";
    "log-place-not-stored": "a checkpoint does not say where the log begins anew";
    "turned-log-not-read": "of the log's two files only the one that begins it is read after a crash";
    "frozen-rows-unseen": "what a checkpoint is writing is not read meanwhile";
    "checkpoint-keeps-removed": "a checkpoint leaves the rows in the database that were removed since the last one";
    "event-without-delivery": "an event is kept and never put into the outbox";
    "deadline-not-indexed": "sessions are not found when they are due";
    "claim-not-indexed": "sessions with a claim are not found at start";
    "delivered-stays": "a delivered event stays in the outbox";
    "create-told-before-stored": "a creation is acknowledged before it is committed";
    "cancel-told-before-stored": "a cancellation is acknowledged before it is committed";
    "cursor-passes-failures": "the cursor moves though a session did not take its credit";
    "unmatched-forgotten": "transfers without a session are not kept";
    "broadcast-before-claim": "an agent's transaction is broadcast before its claim is durable";
    "lost-answer-is-refusal": "a lost answer to a broadcast counts as a refusal";
    "one-node-is-enough": "one node is believed where a majority must agree";
    "one-refusal-is-enough": "a broadcast that one node refuses counts as refused";
    "loudest-finality": "the highest finality any node claims is believed";
    "retries-forgotten": "a failed delivery is not tried again";
    "events-race": "two events of one session go out at once";
    "told-twice": "a payment for another server is called a success every time it is asked";
    "claims-not-recovered": "claims are not followed up after a restart";
    "expiry-not-swept": "nobody looks for sessions that are due";
    "key-not-remembered": "an idempotency key is not kept with its session";
    "usage-counted-again": "a payment counts for billing whenever it is written after it completed";
    "amount-not-checked": "an agent may pay too little";
    "memo-not-checked": "an agent may pay one session with another's transaction";
    "forks-not-rolled-back": "a transfer that a fork removed stays sighted";
    "ambiguous-takes-the-first": "a memo that names two sessions pays the first";
    "encrypted-is-read": "a memo that starts with # is read as if it did not";
    "unmatched-not-booked": "a transfer without a session is kept and not entered in the books";
    "books-skip-accounts": "the check of a day's books ends with the first account";
    "silence-is-agreement": "an account of which no node tells the history counts as checked";
    "books-closed-early": "a day's books are checked before its history is final";
    "unknown-block-is-empty": "of a block that a node does not have, it is believed that nothing happened by itself";
    "expiry-before-its-money": "a session expires though money that came before it waits for it";
    "rights-without-proof": "a merchant decides about the money of an account that it has not proven";
    "only-exact-memos": "a memo with words around the id names nobody";
    "spares-are-not-asked": "where the chain stands is asked of the first nodes only, as many as must agree";
    "honest-agents-are-refused": "a transaction with less than two minutes left counts as about to expire";
    "event-without-metadata": "a webhook leaves out the metadata of its payment";
    "unlisted-not-judged": "a decided request to cancel leaves transfers as they are that a payment's record does not list";
    "another-shop-is-let-in": "a merchant may read, cancel and decide about another's payment";
    "decision-told-before-stored": "a merchant's decision is acknowledged before it is committed";
    "refund-not-deducted": "refunded amounts are still owed";
    "refund-noted-again": "a refund that is read again is noted again";
    "refund-forgotten": "a refund on the chain is not noted at its payment";
    "currency-of-agents-not-checked": "an agent may pay in the other currency";
    "payers-not-searched": "payments are not found by who paid";
    "unread-not-searched": "payments are not found before they are indexed";
    "replay-takes-the-taken": "events that were taken are replayed, too";
    "replay-continues": "a replayed delivery goes on where its schedule ended";
    "redelivery-is-retried": "a delivery that somebody asked for is tried again like any other";
    "attention-not-listed": "the list does not know which payments need attention";
    "listed-twice": "a payment stays in the list of the state that it left";
    "day-not-counted": "the totals of a day miss the outcomes of its payments";
    "exceptions-told-once": "an exception is announced once, whatever comes for it later";
    "accepted-is-owed-again": "what was accepted is owed again once something new has to be decided about";
    "anybody-shows-a-payment": "who shows a claimed transaction is taken for its payer";
    "cutoff-money-stays-cancelled": "money after the cutoff of a dropped request to cancel is still called late for it";
    "verifies-what-is-over": "a payment is verified for a session whose time is over";
    "log-shows-signatures": "the log of deliveries shows the signatures of its requests";
    "hands-in-what-is-refused": "a transaction is submitted again while its refusal is being stored";
    "excess-owed-to-each": "what is paid too much is owed to each who paid";
    "left-for-a-day": "an account that its merchant left is watched for a day";
    "breaker-holds": "what is due to an endpoint that cannot be reached is held as if it were disabled";
    "breaker-never-known": "an endpoint that cannot be reached gets as many requests at once as any other";
    "endpoint-gets-twice-as-many": "an endpoint gets sixteen requests at once";
    "disabled-early": "an endpoint is disabled after an hour of failures";
    "late-claim-counts": "a claim that is settled after a wallet completed the session counts";
    "free-memos-are-exact": "a memo with words around the id is kept as the plain one";
    "assigned-is-a-wallets": "a transfer that a merchant assigned is kept as one that the scanner found";
    "surplus-is-not-too-much": "what came after the session completed is not part of what was paid too much";
    "cutoff-next-block": "the cutoff of a request to cancel is one block away";
    "payer-not-named": "a refusal does not name the payer, though its signatures are verified";
    "balance-not-checked": "an agent without the money is verified";
    "replay-not-told": "every request is told that it made the payment";
    "nonce-claimed-twice": "two transactions are claimed under one nonce";
    "fee-amount-not-checked": "an agent may pay a smaller fee";
    "currency-of-fee-not-checked": "an agent may pay the fee in the other currency";
    "far-expirations-are-taken": "an agent's transaction may expire whenever it likes";
    "further-transfers-are-taken": "an agent's transaction may hold further transfers";
    "scheme-not-checked": "a payment of any scheme is read";
    "network-not-checked": "a payment for any network is read";
    "long-nonces-are-read": "a nonce may have any length";
    "long-headers-are-read": "a payment's header may have any length";
    "hidden-characters-in-resources": "a resource may have characters that nobody sees";
    "fee-memo-not-checked": "the memo of the fee may name another session";
    "sold-to-any-resource": "a payment for one resource is a success for another, too";
    "sold-to-any-seller": "a payment that one seller had settled is a success for another";
    "key-of-any-request": "a repeated success needs no idempotency key";
    "identifier-not-read": "the payer's name for its payment is not read";
    "anybody-refunds": "what another shop sends back is noted as a refund";
    "four-old-secrets-sign": "a fourth replaced webhook secret is kept";
    "hbd-price-unknown": "nodes are taken to know no price of HBD";
    "small-exceptions-untold": "the first exception of a kind is not announced if it is 0.001";
    "hbd-is-always-a-dollar": "HBD counts as one dollar, whatever the market pays for it";
    "failing-since-the-last-failure": "an endpoint counts as failing since its last failure, not since its first";
    "owed-before-the-price-is-final": "what was paid again is owed back while the price can still leave the chain";
    "every-decision-accepts": "whatever a merchant decides about a payment, its money is kept as accepted";
    "chain-id-not-checked": "a node of another chain is used";
    "retry-after-ignored": "a node that limits the rate is asked again after two seconds, whatever it says";
    "missing-history-is-empty": "the history of a node that keeps none counts as an empty one";
    "one-node-without-a-price": "one node without a price of HBD is believed";
    "webhooks-wait-for-the-alarm": "a new event does not wake the delivery of webhooks";
    "agents-wait-the-hold": "an agent hears of its settled payment only when its time to wait is over";
    "scanner-polls-rarely": "the ledger is read every minute";
    "restore-leaves-out-claims": "a restored store has no claims of agents' transactions";
    "restore-keeps-the-epoch": "a restored store goes on in the epoch of its backup";
    "proof-by-any-sender": "a transfer of anybody to itself proves the account that a challenge names";
    "stale-proof-decides": "a merchant whose account has other keys since its proof decides about its money";
    "proven-account-changes-at-once": "a merchant that has proven its account changes it at once, and the proof stays";
    "unmatched-shown-without-proof": "a merchant is shown unmatched transfers of an account that it has not proven";
    "account-changes-unlimited": "a merchant changes its account as often as it likes";
    "read-error-ignored": "a read error of the store does not stop the engine";
    "repair-reads-every-page": "after a crash the whole file is read, and one damaged row keeps the engine from starting";
    "rotation-forgets-one": "another master key leaves one merchant's secrets sealed with the old one";
    "secrets-in-clear": "webhook secrets are stored unencrypted though there is a master key";
    "damaged-log-is-cut": "entries of the log after a damaged one are lost";
    "damaged-row-is-served": "a row that is damaged on disk is read as it stands there";
    "damaged-row-is-fatal": "the engine gives up where it reads a damaged row";
    "damaged-row-holds-up": "whoever meets a damaged row stays before it";
    "unknown-is-refused": "a commit whose outcome is unknown is taken for one that wrote nothing";
    "retry-without-forbidding": "a commit whose outcome is unknown is repeated under another id before the first is forbidden";
    "rate-moves-back": "an older price of HIVE replaces a newer one";
    "held-though-enabled": "a webhook is held although its endpoint has been enabled meanwhile";
    "stale-rejection": "an engine rejects a command by a copy of the payment that another engine has changed";
    "unshared-refusal": "an engine broadcasts what another claimed without a note on the claim, and takes a refusal for the last word";
    "accounts-before-blocks": "the watched accounts are read before the blocks, not after";
    "wall-clock-lease": "a lease is counted by the wall clock";
    "lease-from-after-renewal": "a lease is counted from the answer to its renewal, not from before it is sent";
    "double-duty": "an engine works on every duty, whoever holds it";
    "changes-elsewhere-unseen": "what another engine changes is not noticed by those who watch it here";
    "deposed-holder-sends": "an engine sends webhooks of buckets that another engine has taken";
    "orphans-not-adopted": "claims of an engine that has gone are followed by nobody";
    "cursor-without-expected": "the cursor is moved whatever the store has";
    "facade-form-token-not-checked": "a checkout is cancelled by its public id without the token of its page";
    "facade-dashboard-token-not-checked": "a form of the dashboard needs no token of its session";
    "facade-logout-leaves-the-session": "the cookie of the dashboard is good after the logout";
    "facade-another-shop-reads": "a merchant may read another's payment by its id";
    "facade-state-is-the-last-one": "the state alone is answered with the one that was left";
    "facade-mistake-is-our-fault": "a body that is no JSON is answered 500";
    "facade-no-retry-after": "a refusal does not say when to come again";
    "facade-checkout-is-unlimited": "one address may ask for checkouts as often as it likes";
    "facade-unknown-fields-pass": "fields that no request has are ignored";
    "facade-other-order-gets-the-first": "another order under a key that was used is answered with the first one's payment";
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
    panic!("there is no mutant of this name")
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
            assert_eq!(index_of(name), index, "{name} is there twice");
        }
    }

    #[test]
    #[cfg(debug_assertions)]
    fn one_mutant_is_on_until_another_is() {
        activate(Some("only-exact-memos"));
        let on = (mutant!("only-exact-memos"), mutant!("amount-not-checked"));
        activate(Some("not-a-mutant"));
        let unknown = mutant!("only-exact-memos");
        activate(None);
        assert_eq!((on, unknown, mutant!("only-exact-memos")), ((true, false), false, false));
        assert_eq!(compiled_in().map(<[_]>::len), Some(ALL.len()));
    }
}
