//! The invariants: each a named function, all in one list. They are asked at the moment something is seen.

mod claims;
mod credits;
mod cursor;
mod decisions;
mod deletions;
mod payments;
mod reconciliation;
mod webhooks;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use engine::{
    ids::{DeliveryId, EventId, PaymentId},
    ledger::{Transfer, TxId, match_refund_memo, memo_of},
    payment::{
        Cancellation, ClaimFinality, Credit, Disposition, FeeMode, Finality, LISTED_TRANSFERS_MAX, Payment, Route,
        State, Totals, shown_memo,
    },
    time::Timestamp,
    webhook::{Outcome, SCHEDULE, Secret},
    x402::{ClaimOutcome, Purpose},
};
use hmac::{Hmac, KeyInit, Mac};
use serde::Deserialize;
use sha2::Sha256;
use storage::{Handling, Unmatched};

use crate::observer::{
    Attempted, BooksWrite, Broadcast, CursorWrite, End, Observer, PaymentWrite, ReceivedWebhook, Response, Rows,
};

use self::{claims::*, credits::*, cursor::*, decisions::*, deletions::*, payments::*, reconciliation::*, webhooks::*};

pub(crate) use self::payments::paid_in_time;

/// What an invariant says: it holds, or what was seen instead.
pub type Verdict = Result<(), String>;
/// The same where the invariant looks over all sessions.
pub type FinalVerdict = Result<(), (String, Option<PaymentId>)>;

/// An invariant.
pub struct Invariant {
    /// Its name in reports and scenario files.
    pub name: &'static str,
    /// Where it comes from: S and L as in the fault model, G as in the gateway's list.
    pub code: &'static str,
    /// The rule in words.
    pub says: &'static str,
    /// When and how it is asked.
    pub check: Check,
}

/// When an invariant is asked, and the function that answers.
pub enum Check {
    /// When a payment's snapshot became durable.
    Payment(fn(&PaymentWrite<'_>) -> Verdict),
    /// When the scanner's cursor became durable.
    Cursor(fn(&CursorWrite<'_>) -> Verdict),
    /// When the check of a day's books is written.
    Books(fn(&BooksWrite<'_>) -> Verdict),
    /// When a receiver hears a webhook.
    Webhook(fn(&ReceivedWebhook<'_>) -> Verdict),
    /// When an attempt is recorded.
    Attempt(fn(&Attempted<'_>) -> Verdict),
    /// When the engine hands a transaction to a node.
    Broadcast(fn(&Broadcast<'_>) -> Verdict),
    /// When an answer reaches its caller.
    Response(fn(&Observer, &Response<'_>) -> Verdict),
    /// When faults have ended and everything should have come right.
    End(fn(&End<'_>) -> FinalVerdict),
    /// By the simulation itself, at boots and while time passes.
    Simulation,
}

macro_rules! invariants {
    ($($name:literal, $code:literal, $check:expr, $says:literal;)*) => {
        /// Every invariant.
        pub const INVARIANTS: &[Invariant] =
            &[$(Invariant { name: $name, code: $code, says: $says, check: $check },)*];
    };
}

invariants! {
    "acknowledged-create-survives", "S1", Check::Response(acknowledged_create_survives), "A session whose creation was answered is durable at that moment.";
    "durable-survives-boot", "S1", Check::Simulation, "After every crash the store holds exactly what was durable before it.";
    "store-verifies", "S1", Check::Simulation, "At every start and at the end the whole store verifies: every record, every index, every count.";
    "index-tells-the-truth", "S1", Check::Simulation, "At every start the index of what the chain has to decide lists just those sessions.";
    "credit-is-on-the-chain", "S2 G2", Check::Payment(credit_is_on_the_chain), "A final credit is a transfer of an irreversible block, to the last unit.";
    "final-credit-never-changes", "S2", Check::Payment(final_credit_never_changes), "A final credit keeps its money, block and disposition for ever.";
    "credited-sums-are-the-chains", "S2 G4", Check::End(credited_sums_are_the_chains), "What a session is credited is the sum of the irreversible transfers that name it.";
    "snapshot-tells-its-rows", "G4", Check::Payment(snapshot_tells_its_rows), "A payment lists few transfers, as their rows are, and sums up all of them, whoever sent them.";
    "completed-is-paid", "S3 G2", Check::Payment(completed_is_paid), "A session completes only on enough irreversible money, or on its claimed transaction as sure as was asked.";
    "heard-is-durable", "S3", Check::Webhook(heard_is_durable), "A merchant hears a state only when it is durable.";
    "terminal-is-terminal", "S4 G1", Check::Payment(terminal_is_terminal), "Transitions are those of the table; none leaves a terminal state.";
    "versions-count", "S4", Check::Payment(versions_count), "Every write of a session replaces the one before it.";
    "terms-never-change", "G1", Check::Payment(terms_never_change), "Amount, account, fee, address and expiry are fixed at creation.";
    "cancel-request-is-clean", "S5", Check::Payment(cancel_request_is_clean), "No request to cancel is taken while money is seen or a claim is open.";
    "cancel-request-is-kept", "S5", Check::Payment(cancel_request_is_kept), "Who asked, when, and the cutoff never change; a dropped request stays dropped.";
    "block-time-decides-cancel", "S5 G1", Check::Payment(cancel_is_decided_by_block_time), "A session is cancelled when an irreversible block passed the cutoff and no money came up to it; otherwise the request is dropped.";
    "no-claim-while-cancelling", "S5", Check::Payment(nothing_is_claimed_while_cancelling), "Nothing new is claimed for a session that is being cancelled.";
    "acknowledged-cancel-sticks", "S5", Check::Response(acknowledged_cancel_sticks), "A request to cancel that was answered is durable at that moment.";
    "transfer-credits-one-session", "S6 G3", Check::Payment(transfer_credits_one_session), "A transfer is credited to one session, once.";
    "nothing-is-skipped", "S7", Check::Cursor(nothing_is_skipped), "The cursor never passes a transfer whose effects are not durable.";
    "cursor-goes-forward", "S7", Check::Cursor(cursor_goes_forward), "The cursor moves up, over irreversible blocks only.";
    "no-transfer-is-lost", "G5 S11", Check::End(no_transfer_is_lost), "Every transfer to a watched account is credited once or kept as unmatched once.";
    "unmatched-has-no-session", "G4", Check::End(unmatched_has_no_session), "A transfer kept as unmatched names no session it could pay.";
    "only-owners-read", "G4", Check::Simulation, "Only a merchant that has proven an account is shown its unmatched money, and no other.";
    "proofs-come-from-the-account", "G4", Check::Simulation, "An account is proven by the operator's word, or by an irreversible transfer of the account to itself that answers a challenge of this merchant.";
    "accounts-change-rarely", "G4", Check::Simulation, "A merchant changes its account at most three times in 24 hours.";
    "sold-or-assigned", "G4", Check::Simulation, "A transfer that was settled for somebody's resource pays no session.";
    "only-owners-decide", "G4", Check::Simulation, "Only a merchant that has proven an account, under the keys that the account has, decides about its unmatched money.";
    "books-tell-the-truth", "G4 G5", Check::Books(books_tell_the_truth), "The check of a day's books compares every account's whole day with the ledger, once it is final, and finds no difference where there is none.";
    "days-follow-each-other", "G5", Check::Books(days_follow_each_other), "No day of the books is left out; one is told of again only if it was not checked.";
    "every-day-is-told-of", "L4", Check::End(every_day_is_told_of), "The books of a day that is over are checked, or are said not to be.";
    "one-event-per-transition", "G6", Check::Payment(one_event_per_transition), "Every transition announces one event, in the same commit, that says what happened.";
    "exceptions-are-announced", "G6", Check::Payment(exceptions_are_announced), "New exceptions are announced in the same commit, by an event that names them and says what the payment is.";
    "transfers-are-called-what-they-are", "G4", Check::Payment(transfers_are_called_what_they_are), "What a transfer does for its session, and what it is called, follows from currency, payer, block time and the session's state.";
    "sequence-has-no-gap", "S8", Check::Payment(sequence_has_no_gap), "A session's sequence counts its states without gaps.";
    "webhook-is-readable", "S8", Check::Simulation, "A webhook has the headers and the body of the interface.";
    "webhook-is-signed", "S8", Check::Webhook(webhook_is_signed), "Every attempt is signed with the secret in force, both ways, for its own time.";
    "webhook-body-never-changes", "S8", Check::Webhook(webhook_body_never_changes), "Every attempt carries the event's body, byte for byte.";
    "delivered-is-delivered", "G6", Check::Webhook(delivered_is_delivered), "An event whose success is recorded is not sent again.";
    "one-attempt-at-a-time", "S8", Check::Webhook(one_attempt_at_a_time), "A session's events go out one after the other.";
    "endpoints-are-spared", "S8", Check::Webhook(endpoints_are_spared), "An endpoint gets at most eight requests at once, and one at a time while its circuit breaker is open.";
    "attempts-are-counted", "S8", Check::Webhook(attempts_are_counted), "The attempt's number is one more than the attempts recorded.";
    "record-says-what-happened", "G6", Check::Attempt(record_says_what_happened), "A recorded attempt has the outcome the receiver gave.";
    "record-shows-no-secret", "S8", Check::Attempt(record_shows_no_secret), "A recorded attempt names the endpoint without its query, the digest of the body, and no signature.";
    "schedule-is-kept", "L2", Check::Attempt(schedule_is_kept), "A failed delivery is tried again as the schedule says, ten times in all.";
    "claimed-before-broadcast", "S10 G8", Check::Broadcast(claimed_before_broadcast), "A transaction is broadcast only after its claim is durable.";
    "claimed-once", "S10 G8", Check::Simulation, "A transaction and a nonce are claimed once, ever.";
    "one-claim-at-a-time", "S10", Check::Payment(one_claim_at_a_time), "A session has one open claim, made in the same commit.";
    "failure-is-certain", "S10", Check::Payment(failure_is_certain), "A session fails, and a settlement is reversed, only when an irreversible block proves that the transaction cannot come.";
    "settled-is-paid", "S10", Check::Response(settled_is_paid), "An agent hears success only for a session that its transaction has durably completed.";
    "told-once", "S10", Check::Response(told_once), "A payment for another server is called a success once.";
    "let-go-is-not-taken", "S10", Check::End(let_go_is_not_taken), "A claim is let go of only when its transaction cannot be on the chain for good, whatever its payer was told.";
    "paid-promptly-completes", "L1", Check::Payment(paid_promptly_completes), "While a majority of nodes, the disk and the process work, a wallet's payment completes within ten block intervals of its finality.";
    "nothing-valid-is-refused", "L5", Check::Simulation, "While a majority of nodes, the disk and the process work, no valid call is refused and every honest payment ends as it should.";
    "lists-tell-the-truth", "G7", Check::Simulation, "A list of payments, by any filter and page, is that of the payments that are durable.";
    "searches-find-payments", "G7", Check::Simulation, "A search finds the payments of which a word begins with each word that is asked for, and no others.";
    "refused-is-not-taken", "S10", Check::End(refused_is_not_taken), "A payment that was refused for good never moves money.";
    "expiry-has-evidence", "G9", Check::Payment(expiry_has_evidence), "A session expires only when an irreversible block is later than its time, and never if it was paid in time.";
    "paid-in-time-completes", "G10", Check::End(paid_in_time_completes), "Whoever paid in time, whatever happened to us meanwhile, has paid.";
    "no-state-from-the-future", "S12", Check::Payment(no_state_from_the_future), "No record refers to a block the chain has not had.";
    "every-session-ends", "L1", Check::End(every_session_ends), "Every session is terminal once its time is over for good.";
    "every-webhook-goes-out", "L2 L3", Check::End(every_webhook_goes_out), "No delivery is overdue; every event is delivered, given up by the rules, or waits for its time.";
    "scanner-catches-up", "L4", Check::End(scanner_catches_up), "The scanner reaches the newest irreversible blocks.";
    "claims-are-decided", "L1", Check::End(claims_are_decided), "No claim stays open after its transaction has expired for good.";
    "sightings-are-decided", "G10", Check::End(sightings_are_decided), "What was sighted in a block that is decided by now is final or gone.";
    "reversal-is-noticed", "S10", Check::End(reversal_is_noticed), "A completed session whose transaction is not on the chain says so.";
    "one-key-one-session", "G7", Check::Simulation, "One idempotency key opens one session, however often and whenever it is asked.";
    "usage-counts-once", "S2", Check::Simulation, "What a merchant is billed for is the sum of its completed payments, each counted once, with the fees that are missing.";
    "verified-is-open", "S10", Check::Simulation, "A payment is verified only for a session that waits for money.";
    "public-buys-nothing", "S10", Check::Simulation, "A transaction that anybody can read on the chain, shown without its signatures, is no payment.";
    "shops-are-apart", "G7", Check::Simulation, "No call lets a merchant see or change what is another's, and an order number in two shops is two orders.";
    "decision-is-kept", "G4", Check::Payment(resolution_is_kept), "What a merchant decided about a session's exceptions stays on its record until unusual money comes that it was not decided about.";
    "decision-covers-what-came-before", "G4", Check::Payment(decision_covers_what_came_before), "A decision is about the transfers that the payment had; unusual money that becomes final later is not decided about.";
    "acknowledged-decision-sticks", "S1", Check::Response(acknowledged_decision_sticks), "A decision that was answered is durable at that moment.";
    "refund-is-owed", "G4", Check::Response(refund_is_owed), "A planned refund goes back to who paid, and to nobody more than was sent and is not back yet.";
    "price-is-kept", "G4", Check::Response(price_is_kept), "What is owed back of a completed payment leaves its price with the merchant.";
    "refunds-due-follow-from-transfers", "G4", Check::Response(refunds_due_follow_from_transfers), "What is owed back, to whom and in which currency follows from the transfers, what was accepted, and what was sent back since.";
    "refunds-are-noted", "G4", Check::End(refunds_are_noted), "Every irreversible refund is noted at its session, once.";
    "worth-is-the-markets", "G1", Check::Payment(worth_is_the_markets), "A payment in HBD is worth as many dollars while the market is within the bounds of the peg, and what the market pays beyond.";
    "left-accounts-are-watched", "G4", Check::Simulation, "An account is watched for a month after the last merchant left it.";
    "held-only-while-disabled", "L2", Check::Simulation, "A delivery is held only while its merchant has no endpoint, or one that said that it is gone or has failed for five days.";
    "store-error-stops-the-engine", "L5", Check::Simulation, "The engine stops within five seconds of a read of its store that failed with an I/O error, and of a commit whose outcome is unknown.";
    "secrets-are-sealed", "S8", Check::Simulation, "While there is a master key no row shows a webhook secret, and only the key in force is needed.";
    "damage-stays-in-its-row", "S1", Check::Simulation, "A damaged row is named by each verification and served to nobody, and changes and stops nothing but itself.";
    "restore-begins-an-epoch", "S1", Check::Simulation, "A store that was restored from a backup begins a new epoch of its events, and no other start does.";
    "other-chains-are-not-asked", "G8", Check::Simulation, "A node that says that it serves another chain is asked for nothing else.";
    "rate-limits-are-kept", "L6", Check::Simulation, "A node that limits the rate of requests is left alone for as long as it says.";
    "webhooks-go-out-at-once", "L2", Check::Simulation, "While a majority of nodes, the disk and the process work, an event is sent to its endpoint within five seconds.";
    "agents-hear-at-once", "L1", Check::Simulation, "While a majority of nodes, the disk and the process work, an agent that waits hears within a second that its payment is settled, or refused for good; with several engines within two, as it may wait at another engine than the one that decides.";
    "transfers-are-sighted-promptly", "L1", Check::Simulation, "While a majority of nodes, the disk and the process work, a wallet's transfer is noted at its session within ten block intervals of its block.";
    "endpoints-are-as-attempted", "L2", Check::Simulation, "What is known of an endpoint (disabled, failing since when, how often, for which events) follows from its attempts, and its merchant is warned after one day of failures and after three.";
    "only-acceptance-keeps-money", "G4", Check::Simulation, "A decision other than acceptance changes nothing of what is owed.";
    "boot-ends", "L5", Check::Simulation, "The engine starts within a minute when nothing is wrong with disk and nodes.";
    "stop-ends", "L5", Check::Simulation, "A stop in order ends, whatever goes wrong meanwhile.";
    "time-moves", "L6", Check::Simulation, "Nothing spins while virtual time stands still.";
    "no-panic", "L5", Check::Simulation, "Nothing panics but what the simulation makes panic.";
    "clients-see-no-failure", "C1", Check::Simulation, "A client gets 503 with Retry-After while the engine, its disk or its nodes fail, and no other failure ever.";
    "valid-requests-are-taken", "C1", Check::Simulation, "A valid request is taken, or answered 503, whatever else clients do.";
    "answers-are-durable", "C2", Check::Simulation, "What a client is told of a session is what it ordered and what is durable.";
    "states-are-told-as-they-are", "C3", Check::Simulation, "A state that a client reads is one that the session had while the client waited for the answer.";
    "keys-stand-for-one-order", "C4", Check::Simulation, "An idempotency key under which something else is ordered is refused, and orders nothing.";
    "anothers-is-unknown", "C5", Check::Simulation, "What another merchant has is answered like what nobody has, by REST and by gRPC.";
    "mistakes-are-named", "C6", Check::Simulation, "A client's mistake gets the status and the reason of that mistake, and names the field.";
    "mistakes-change-nothing", "C6", Check::Simulation, "No wrong order opens a session.";
    "forms-need-their-token", "C8", Check::Simulation, "A form without its session and its token changes nothing, and no page is shown to who is not logged in.";
    "limits-are-kept", "C7", Check::Simulation, "Nobody below a limit is refused; who exceeds it gets 429 with Retry-After.";
    "every-transfer-is-judged", "G4", Check::Payment(every_transfer_is_judged), "Each transfer is called by what it is and by how the session was when it came; deciding a request to cancel renames only what waited for it.";
    "ways-are-kept", "G4", Check::Payment(ways_are_kept), "A transfer says by which way it came and whether its memo had more than the id, and both never change.";
    "sums-follow-from-transfers", "G4", Check::Payment(sums_follow_from_transfers), "Every sum and every exception that is shown of a payment follows from its transfers.";
    "few-secrets-sign", "S8", Check::Simulation, "At most three replaced webhook secrets are valid beside the present one.";
    "malformed-payments-are-refused", "G8", Check::Simulation, "A payment or requirements that break a rule of the format are refused for that rule; at its limits they are read.";
    "payments-are-read", "G8", Check::Simulation, "What an agent writes in a header or a body, in either version, is read as it was meant.";
    "answers-name-their-payer", "G8", Check::Simulation, "Who pays is told its own payment: transaction, payer and block; who shows another's payment is told none of them.";
    "replays-are-told", "G8", Check::Simulation, "One request is told that it made a payment; every other is told that another did.";
    "verdicts-are-right", "G8", Check::Simulation, "What is wrong with a payment decides for which reason it is refused, and nothing that is wrong is verified.";
    "one-success-per-request", "S10", Check::Simulation, "A settled transaction is a success for one request: of one seller, for one resource, under one key.";
    "cutoff-is-some-blocks-away", "S5", Check::Payment(cutoff_is_some_blocks_away), "The cutoff of a request to cancel is five blocks away, twenty once a wallet was opened, and never after the deadline.";
    "writes-change-something", "S4", Check::Payment(writes_change_something), "A payment is written only if something of it changes.";
    "refused-only-if-never-taken", "S10", Check::Simulation, "A claim is refused only if no node has responded that it has the transaction, ever.";
    "claims-are-pursued", "L1", Check::Simulation, "While a majority of nodes, the disk and the process work, a claimed transaction is sent until its claim is decided, and the claim is decided within ten block intervals of the evidence that it requires.";
    "nodes-are-spared", "L6", Check::Simulation, "A transaction is sent to a node at most twice a second, every 15 seconds once a majority has accepted it, and not after its expiration.";
    "one-scanner-moves-the-cursor", "S7", Check::Simulation, "No commit that moves the cursor conflicts with another one while a single engine runs.";
    "nodes-are-called-what-they-are", "G8", Check::Simulation, "What operators see of a node (rate limited, failing, disagreeing, stale, slow, ok) follows from its responses.";
    "few-sessions-are-active", "L6", Check::Simulation, "No more sessions are active than the settings allow, but for those with a claim; a session is active from its creation on while there is space.";
    "sellers-hear-of-their-success", "S10", Check::Simulation, "Nobody who may have the success of a payment is refused before somebody has it.";
    "limits-of-rules-are-exact", "G8", Check::Simulation, "A payment just within a rule is verified, and one just beyond it is refused for that rule.";
    "wrong-orders-are-refused", "G1", Check::Simulation, "An order that breaks rules is refused, and names each field that does.";
    "stale-writes-are-refused", "S4", Check::Simulation, "Whoever has seen an older state of the store, or writes what is taken, writes nothing.";
    "refusals-have-a-reason", "S4", Check::Simulation, "The store refuses a commit only because it is stale, claims what is claimed, repeats a key, or exceeds a limit.";
    "commits-replace-what-was-read", "S4", Check::Simulation, "No commit replaces what its writer has not read, claims twice, repeats a key within its day, or exceeds a quota.";
    "limits-of-volume-hold", "G1", Check::Simulation, "A payment is opened only within the limits of its merchant's volume, and never while the merchant is on hold.";
    "invoices-follow-from-usage", "S2", Check::Simulation, "A month that is over is billed once, for its usage by the tiers in force, and what was collected too much is carried over.";
    "audit-log-is-complete", "G7", Check::Simulation, "The audit log holds every entry, in order, and lists each for the merchants that it concerns.";
    "keys-are-kept-for-a-day", "G7", Check::Simulation, "An idempotency key is kept for a day, with what was done under it.";
    "events-are-kept", "G6", Check::Simulation, "Every event is kept for its retention, at its place in the list of its merchant.";
    "deliveries-are-as-attempted", "G6", Check::Simulation, "The record, the attempts, the lists and the outbox of a delivery follow from what was done about it.";
    "claims-are-kept", "S10", Check::Simulation, "A claim is found by its transaction, its nonce and its identifier, as it was stored.";
    "unmatched-are-as-handled", "G4", Check::Simulation, "Every unmatched transfer is listed, with what was decided about it, and waits for the payment that it names.";
    "accounts-are-indexed", "G4", Check::Simulation, "Which accounts are watched, proven, pending or left, and whose an API key is, follows from the merchants.";
    "volume-follows-from-payments", "S2", Check::Simulation, "The sums of days, the volume of merchants and their compliance status follow from their payments.";
    "retention-ends", "L2", Check::Simulation, "Nothing is kept for longer than its retention.";
    "changes-are-audited", "G7", Check::Simulation, "What a merchant or the operator changes is in the audit log from the same commit on, with the fields that changed.";
    "deletions-are-due", "G7", Check::Payment(deletions_are_due), "Metadata and notes are deleted once their merchant asks for it or their retention is over, and nothing else with them.";
    "wallet-reports-are-kept", "S5", Check::Payment(wallet_reports_are_kept), "A wallet is reported once, of a payment that waits for money, and the report is kept.";
    "requests-are-in-time", "S5 G9", Check::Payment(requests_are_in_time), "No claim and no request to cancel is made after the deadline of a payment.";
    "worth-is-the-witnesses", "G1", Check::Payment(worth_is_the_witnesses), "A payment in HIVE is worth what the witnesses' price says that a majority of nodes gave last.";
    "states-keep-their-time", "S4", Check::Payment(states_keep_their_time), "A payment says which state it left, and when it completed, and both stay as they are.";
    "orders-are-as-made", "G1", Check::Simulation, "A payment that is created is what its merchant ordered, under the fee, the account and the lifetime that were in force.";
    "tests-are-sent-once", "G6", Check::Simulation, "A test event is sent once, and once under one idempotency key.";
    "subscriptions-decide", "G6", Check::Simulation, "An event is sent to the endpoints that are subscribed to its type, and to no others.";
    "keys-are-valid-until-they-end", "G7", Check::Simulation, "An API key is accepted with its scopes until it is revoked, replaced, or over, and no longer.";
    "watches-show-changes", "G7", Check::Simulation, "A watch of a payment shows durable snapshots in order, the newest one soon, and ends with a final state.";
    "event-streams-are-complete", "G6", Check::Simulation, "A stream of events shows each event of its merchant once, in order, as it is durable, and soon.";
    "event-pages-are-complete", "G6", Check::Simulation, "The pages of a list of events are the events of their merchant, in order, from where the cursor says.";
    "sales-are-their-sellers", "G4", Check::Simulation, "A sale is listed for the merchant that settled it, and for the owners of the account where no owner did.";
    "candidates-fit-their-transfer", "G4", Check::Simulation, "The payments proposed for an unmatched transfer fit its amount or its payer, the likeliest first.";
    "transfer-pages-are-complete", "G4", Check::Simulation, "The pages of a payment's transfers are all of them, newest first.";
    "every-day-is-listed", "G5", Check::Simulation, "The reconciled days are listed as they were stored.";
    "merchants-are-listed", "G7", Check::Simulation, "The list of merchants, by any filter, is that of the merchants that are durable.";
    "retention-is-kept", "G7", Check::Simulation, "Nothing is deleted before its retention is over.";
    "claims-are-as-sure-as-set", "S10", Check::Payment(claims_are_as_sure_as_set), "A claim completes its payment when it is as sure as the settings ask for a payment of its value.";
    "sellers-may-repeat", "S10", Check::Simulation, "A seller that repeats a successful request under its idempotency key gets the same success again.";
    "expired-claims-leave-nothing", "S10", Check::End(expired_claims_leave_nothing), "A claim that was refused, or whose transaction expired, leaves no open claim, no completed payment and no transfer that is not on the ledger.";
    "endpoints-are-paced", "S8", Check::Webhook(endpoints_are_paced), "An endpoint gets at most 25 requests at once, and then 25 a second.";
    "accounts-change-by-consent", "G4", Check::Simulation, "A proven account changes only once both accounts have agreed and the wait is over; a challenge is answered once.";
    "webhooks-are-claimed", "S8", Check::Simulation, "Several engines send a webhook only under a claim that the store accepted, and one repeats the attempt of another, with the same event, only once the duty has passed on.";
    "unknown-commits-are-resolved", "S1", Check::Simulation, "An engine that does not know the outcome of a commit resolves it by a write before it does anything else.";
    "engines-outlive-their-store", "L7", Check::Simulation, "No engine of a shared store exits because the store cannot be reached for a while.";
    "failures-are-bridged", "L7", Check::Simulation, "While the engines of a shared store fail one at a time, nothing waits longer than a lease and ten block intervals.";
    "requests-are-shared", "L6", Check::Simulation, "Several engines request about as many heads and blocks of each node as one engine.";
    "opened-once-the-chain-is-followed", "S7", Check::Payment(opened_once_the_chain_is_followed), "A payment is created only once the engine follows the chain from a block whose number is durable.";
    "replays-are-complete", "G6", Check::Simulation, "A replay sends every event of its time that was not delivered, and is refused for a time that is not within the last 30 days.";
    "expected", "", Check::Simulation, "What the scenario expects.";
}

// ---- answers ---------------------------------------------------------------------------------------------------------

fn acknowledged_create_survives(observer: &Observer, response: &Response<'_>) -> Verdict {
    let (Response::Created(payment) | Response::Read(payment)) = response else { return Ok(()) };
    let durable = observer.payments.get(&payment.id).is_some_and(|known| known.payment.version >= payment.version);
    hold(durable, || "an answer tells of a session that is not durable".to_owned())
}

fn acknowledged_cancel_sticks(observer: &Observer, response: &Response<'_>) -> Verdict {
    let Response::Cancelled(payment) = response else { return Ok(()) };
    let durable = observer.payments.get(&payment.id).is_some_and(|known| known.payment.cancellation.is_some());
    hold(durable, || "a request to cancel was answered and is not durable".to_owned())
}

// ---- the end ---------------------------------------------------------------------------------------------------------

fn every_session_ends(end: &End<'_>) -> FinalVerdict {
    for (id, payment) in &end.stored {
        let over = end.observer.final_time > payment.expires_at + payment.grace;
        if !payment.state.is_terminal() && over && payment.claim.is_none() {
            return Err((format!("{id} is still {} and its time is over for good", payment.state), Some(*id)));
        }
        let undecided = payment.pending_cancellation().filter(|request| end.observer.final_time > request.cutoff);
        if let Some(request) = undecided {
            return Err((format!("{id} is still being cancelled and its cutoff was {}", request.cutoff), Some(*id)));
        }
    }
    Ok(())
}

fn claims_are_decided(end: &End<'_>) -> FinalVerdict {
    for id in &end.in_flight {
        let payment = end.stored.get(id);
        let expiration = payment.and_then(|payment| payment.claim.as_ref()).map(|claim| claim.expiration);
        let is_over = |expiration| end.observer.final_time > expiration + Duration::from_secs(120);
        // Without a claim it is listed for a transfer that was sighted, which another invariant looks at.
        let should_not_be_there = payment.is_none_or(|payment| !payment.awaits_finality());
        if expiration.map_or(should_not_be_there, is_over) {
            return Err((format!("the claim of {id} is open though its transaction has expired for good"), Some(*id)));
        }
    }
    for claimed in end.observer.claims.values() {
        if let Purpose::Facilitated(facilitation) = &claimed.purpose
            && claimed.outcome.is_open()
            && end.observer.final_time > facilitation.expiration + Duration::from_secs(120)
        {
            return Err((format!("the fate of {} is open for good", claimed.tx_id), None));
        }
    }
    Ok(())
}

fn sightings_are_decided(end: &End<'_>) -> FinalVerdict {
    let Some(cursor) = end.observer.cursor else { return Ok(()) };
    for (id, payment) in &end.stored {
        let open = end.observer.rows.get(id).into_iter().flat_map(|rows| rows.values()).find(|credit| {
            let block = credit.block.map_or(u32::MAX, |block| block.position.block_num);
            // The blocks just above the cursor may be under way.
            credit.finality == Finality::Reversible && block.saturating_add(40) < cursor.block_id.number()
        });
        if let Some(credit) = open.filter(|_| payment.claim.is_none()) {
            return Err((format!("{} is still called reversible for {id}", credit.tx_id), Some(*id)));
        }
    }
    Ok(())
}

fn reversal_is_noticed(end: &End<'_>) -> FinalVerdict {
    for (id, payment) in &end.stored {
        let Some(paid_by) = payment.paid_by.filter(|_| payment.state == State::Completed) else { continue };
        let is_there = end.observer.final_tx_ids.contains(&paid_by);
        if is_there == payment.is_reversed && payment.claim.is_none() {
            let what = if is_there { "is called reversed and is on the chain" } else { "vanished and nobody says so" };
            return Err((format!("{paid_by}, which completed {id}, {what}"), Some(*id)));
        }
    }
    Ok(())
}

fn paid_in_time_completes(end: &End<'_>) -> FinalVerdict {
    for (id, payment) in &end.stored {
        let paid = paid_in_time(payment, end.observer) >= payment.amount.units;
        if paid && matches!(payment.state, State::Pending | State::Processing | State::SystemCancelled) {
            return Err((format!("{id} was paid in time and is {}", payment.state), Some(*id)));
        }
        let in_time = payment.cancellation.map_or(0, |request| paid_until(payment, end.observer, request.cutoff));
        if in_time > 0 && payment.state == State::UserCancelled {
            return Err((format!("{id} is cancelled and {in_time} units came before the cutoff"), Some(*id)));
        }
    }
    Ok(())
}

fn credited_sums_are_the_chains(end: &End<'_>) -> FinalVerdict {
    let observer = end.observer;
    for (id, payment) in &end.stored {
        let keys = observer.final_by_session.get(id).map_or(&[][..], Vec::as_slice);
        let on_chain: u64 = keys
            .iter()
            .filter(|key| observer.target_of(**key) == Some(*id))
            .filter_map(|key| observer.final_transfers.get(key))
            .filter(|transfer| is_read(observer, transfer) && is_of(observer, payment, transfer))
            .map(|transfer| transfer.money.units)
            .sum();
        let rows = observer.rows.get(id).into_iter().flat_map(|rows| rows.values());
        let finals = rows.filter(|credit| credit.finality == Finality::Irreversible);
        // A transaction that only its claim ties to the session is not in the list above.
        let by_memo = finals.filter(|credit| keys.contains(&(credit.tx_id, credit.op_in_tx)));
        let credited: u64 = by_memo.map(|credit| credit.money.units).sum();
        if credited != on_chain {
            return Err((format!("{id} is credited {credited} units, the chain has {on_chain}"), Some(*id)));
        }
    }
    Ok(())
}

fn is_read(observer: &Observer, transfer: &Transfer) -> bool {
    let number = transfer.position.block_num;
    let after_first = observer.first_cursor.is_some_and(|first| number > first.block_id.number());
    after_first && observer.cursor.is_some_and(|cursor| number <= cursor.block_id.number())
}

fn is_of(observer: &Observer, payment: &Payment, transfer: &Transfer) -> bool {
    let collects = matches!(payment.quote.fee_mode, FeeMode::Split { .. }) && observer.is_fee_account(&transfer.to);
    transfer.to == payment.pay_to || collects
}

fn no_transfer_is_lost(end: &End<'_>) -> FinalVerdict {
    let observer = end.observer;
    let mut kept_of: BTreeMap<TxId, Vec<&Unmatched>> = BTreeMap::new();
    for kept in &end.stored_unmatched {
        kept_of.entry(kept.transfer.tx_id).or_default().push(kept);
    }
    for (key, transfer) in &observer.final_transfers {
        if !is_read(observer, transfer) {
            continue;
        }
        let rows = observer.credited.get(key).and_then(|id| observer.rows.get(id));
        let credits = usize::from(rows.is_some_and(|rows| rows.contains_key(key)));
        let waits = |kept: &&Unmatched| kept.transfer == *transfer && !is_assigned(kept);
        let kept = kept_of.get(&transfer.tx_id).map_or(0, |kept| kept.iter().copied().filter(waits).count());
        let Some(watched) = observer.is_watched(transfer) else { continue };
        if credits + kept != usize::from(watched) && (watched || kept > 0) {
            let text = format!(
                "{} over {} to {} is credited {credits} times and kept as unmatched {kept} times",
                key.0, transfer.money, transfer.to
            );
            return Err((text, observer.target_of(*key)));
        }
    }
    Ok(())
}

/// Returns whether a transfer that paid no session was put to one since.
fn is_assigned(unmatched: &Unmatched) -> bool {
    matches!(unmatched.handling, Handling::Assigned { .. })
}

fn unmatched_has_no_session(end: &End<'_>) -> FinalVerdict {
    for unmatched in end.stored_unmatched.iter().filter(|unmatched| !is_assigned(unmatched)) {
        let transfer = &unmatched.transfer;
        let target = end.observer.target_of((transfer.tx_id, transfer.position.op_in_tx));
        let payment = target.and_then(|id| end.stored.get(&id));
        if let Some(payment) = payment.filter(|payment| is_of(end.observer, payment, &unmatched.transfer)) {
            let text = format!("{} names {} and is kept as unmatched", unmatched.transfer.tx_id, payment.id);
            return Err((text, target));
        }
    }
    Ok(())
}

fn every_webhook_goes_out(end: &End<'_>) -> FinalVerdict {
    for delivery in &end.outbox {
        let overdue = end.now.since(delivery.due_at).as_secs();
        if overdue > 180 {
            let text =
                format!("{} waits since {overdue} s after its time, with {} attempts", delivery.id, delivery.attempts);
            return Err((text, Some(delivery.payment)));
        }
    }
    let waiting: BTreeSet<_> = end.outbox.iter().map(|delivery| delivery.id).collect();
    for (id, delivery_state) in &end.observer.deliveries {
        let waits = waiting.contains(id);
        if waits != delivery_state.due_at.is_some() {
            return Err((
                format!("event {} is lost from the outbox, or back in it", delivery_state.event),
                Some(delivery_state.payment),
            ));
        }
    }
    Ok(())
}

fn scanner_catches_up(end: &End<'_>) -> FinalVerdict {
    let behind = end.observer.final_num.saturating_sub(end.scanned_num);
    // A poll may be as much as ten seconds away.
    if behind <= 8 { Ok(()) } else { Err((format!("the scanner is {behind} blocks behind"), None)) }
}

// ---- helpers ---------------------------------------------------------------------------------------------------------

fn hold(holds: bool, text: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(text()) }
}

impl PaymentWrite<'_> {
    fn moved_to(&self, state: State) -> bool {
        self.after.state == state && self.before.is_none_or(|before| before.state != state)
    }
}

impl Observer {
    /// Returns whether a transfer concerns the engine; none where it may or may not.
    fn is_watched(&self, transfer: &Transfer) -> Option<bool> {
        if self.is_fee_account(&transfer.to) {
            return Some(true);
        }
        self.accounts.is_kept(&transfer.to, transfer.position.block_num)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    id: String,
    data: Data,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    /// None in events of no payment.
    payment_id: Option<String>,
    status: Option<String>,
    sequence: Option<u32>,
}

impl Body {
    fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

type Read = (DeliveryId, u32, EventId, Option<PaymentId>, String, u32);

/// Reads a webhook as a receiver does: delivery, attempt, event, payment (none in tests and in events of no payment),
/// status, sequence.
#[must_use]
pub fn read_webhook(headers: &[(String, String)], body: &[u8]) -> Option<Read> {
    let header = |name: &str| headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let body = Body::read(body)?;
    Some((
        header("X-Hivetill-Delivery")?.parse().ok()?,
        header("X-Hivetill-Attempt")?.parse().ok()?,
        body.id.parse().ok()?,
        match body.data.payment_id {
            Some(id) if id.starts_with("test_") => None,
            Some(id) => Some(id.parse().ok()?),
            None => None,
        },
        body.data.status.unwrap_or_default(),
        body.data.sequence.unwrap_or_default(),
    ))
}
