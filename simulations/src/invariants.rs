//! The invariants: each a named function, all in one list. They are checked at the moment of each observation.

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
    ids::{DeliveryId, EndpointId},
    ledger::{Transfer, TxId, match_refund_memo, memo_of},
    merchant::Merchant,
    payment::{
        Cancellation, ClaimFinality, Credit, Disposition, FeeMode, Finality, LISTED_TRANSFERS_MAX, Payment, Route,
        State, Totals, shown_memo,
    },
    time::Timestamp,
    webhook::{Outcome, SCHEDULE, Secret, Secrets},
    x402::{ClaimOutcome, Purpose},
};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use storage::{Handling, Unmatched};

use crate::observer::{
    Attempted, Broadcast, Check, CursorWrite, End, FinalVerdict, Invariant, Observer, PaymentWrite, ReceivedWebhook,
    ReconciliationWrite, Response, Rows, Verdict,
};

use self::{claims::*, credits::*, cursor::*, decisions::*, deletions::*, payments::*, reconciliation::*, webhooks::*};

macro_rules! invariants {
    ($($name:literal, $code:literal, $check:expr, $description:literal;)*) => {
        /// Every invariant.
        pub const INVARIANTS: &[Invariant] =
            &[$(Invariant { name: $name, code: $code, description: $description, check: $check },)*];
    };
}

invariants! {
    "acknowledged-create-survives", "S1", Check::Response(acknowledged_create_survives), "A session is durable when its creation is acknowledged.";
    "durable-survives-boot", "S1", Check::Simulation, "After every crash the store holds exactly what was durable before it.";
    "store-verifies", "S1", Check::Simulation, "At every start and at the end the whole store verifies: every record, every index, every count.";
    "index-matches-the-sessions", "S1", Check::Simulation, "At every start the index of sessions that the chain decides lists exactly those sessions.";
    "credit-is-on-the-chain", "S2 G2", Check::Payment(credit_is_on_the_chain), "A final credit is a transfer of an irreversible block, to the last unit.";
    "final-credit-never-changes", "S2", Check::Payment(final_credit_never_changes), "A final credit keeps its money, block and disposition for ever.";
    "credited-sums-are-the-chains", "S2 G4", Check::End(credited_sums_are_the_chains), "What a session is credited is the sum of the irreversible transfers that name it.";
    "snapshot-matches-its-rows", "G4", Check::Payment(snapshot_matches_its_rows), "A payment lists a limited number of transfers, equal to their rows, and its totals cover all of them.";
    "completed-is-paid", "S3 G2", Check::Payment(completed_is_paid), "A session completes only on enough irreversible money, or on its claimed transaction with the required finality.";
    "webhook-state-is-durable", "S3", Check::Webhook(webhook_state_is_durable), "A webhook reports a state only when it is durable.";
    "terminal-is-terminal", "S4 G1", Check::Payment(terminal_is_terminal), "Transitions are those of the table; none leaves a terminal state.";
    "versions-count", "S4", Check::Payment(versions_count), "Every write of a session replaces the one before it.";
    "terms-never-change", "G1", Check::Payment(terms_never_change), "Amount, account, fee, address and expiry are fixed at creation.";
    "cancel-request-is-clean", "S5", Check::Payment(cancel_request_is_clean), "No cancellation is accepted while a transfer was seen or a claim is open.";
    "cancel-request-is-kept", "S5", Check::Payment(cancel_request_is_kept), "Caller, time and cutoff of a cancellation request never change; a dropped request stays dropped.";
    "block-time-decides-cancel", "S5 G1", Check::Payment(cancel_is_decided_by_block_time), "A session is cancelled when an irreversible block is later than the cutoff and no transfer arrived before it; otherwise the request is dropped.";
    "no-claim-while-cancelling", "S5", Check::Payment(nothing_is_claimed_while_cancelling), "Nothing new is claimed for a session that is being cancelled.";
    "acknowledged-cancel-sticks", "S5", Check::Response(acknowledged_cancel_sticks), "A cancellation is durable when it is acknowledged.";
    "transfer-credits-one-session", "S6 G3", Check::Payment(transfer_credits_one_session), "A transfer is credited to one session, once.";
    "nothing-is-skipped", "S7", Check::Cursor(nothing_is_skipped), "The cursor never passes a transfer whose effects are not durable.";
    "cursor-goes-forward", "S7", Check::Cursor(cursor_goes_forward), "The cursor moves up, over irreversible blocks only.";
    "no-transfer-is-lost", "G5 S11", Check::End(no_transfer_is_lost), "Every transfer to a watched account is credited once or kept as unmatched once.";
    "unmatched-has-no-session", "G4", Check::End(unmatched_has_no_session), "A transfer kept as unmatched names no session it could pay.";
    "only-owners-read", "G4", Check::Simulation, "A merchant sees unmatched transfers of its own proven accounts only.";
    "proofs-come-from-the-account", "G4", Check::Simulation, "An account is proven by the operator, or by an irreversible transfer of the account to itself in response to a challenge of this merchant.";
    "accounts-change-rarely", "G4", Check::Simulation, "A merchant changes its account at most three times in 24 hours.";
    "sold-or-assigned", "G4", Check::Simulation, "A transfer that was settled for a seller's resource pays no session.";
    "only-owners-decide", "G4", Check::Simulation, "Only a merchant that has proven an account, under the keys that the account has, decides about its unmatched transfers.";
    "reconciliation-matches-the-ledger", "G4 G5", Check::Reconciliation(reconciliation_matches_the_ledger), "The reconciliation of a day compares all entries of every account with the ledger once the day is irreversible, and finds no difference where there is none.";
    "days-are-consecutive", "G5", Check::Reconciliation(days_are_consecutive), "No day is left out of the reconciliation; a day is stored again only if it was not reconciled.";
    "every-day-is-reconciled", "L4", Check::End(every_day_is_reconciled), "Every past day is reconciled, or recorded as not reconciled.";
    "one-event-per-transition", "G6", Check::Payment(one_event_per_transition), "Every transition emits one accurate event in the same commit.";
    "exceptions-are-announced", "G6", Check::Payment(exceptions_are_announced), "New exceptions emit an event in the same commit that names them and the state of the payment.";
    "refunds-are-announced", "G6", Check::Payment(refunds_are_announced), "A new refund emits an event in the same commit that names it and the state of the payment.";
    "unmatched-are-announced", "G6", Check::Simulation, "A new unmatched transfer emits an event in the same commit for each merchant that has proven its account, and for no other.";
    "transfers-are-called-what-they-are", "G4", Check::Payment(transfers_are_called_what_they_are), "The disposition of a transfer follows from currency, payer, block time and the session's state.";
    "sequence-has-no-gap", "S8", Check::Payment(sequence_has_no_gap), "A session's sequence counts its states without gaps.";
    "webhook-is-readable", "S8", Check::Simulation, "A webhook has the headers and the body of the interface.";
    "webhook-is-signed", "S8", Check::Webhook(webhook_is_signed), "Every attempt is signed with the secret in force, both ways, for its own time.";
    "webhook-body-never-changes", "S8", Check::Webhook(webhook_body_never_changes), "Every attempt carries the event's body, byte for byte.";
    "delivered-is-delivered", "G6", Check::Webhook(delivered_is_delivered), "An event whose success is recorded is not sent again.";
    "one-attempt-at-a-time", "S8", Check::Webhook(one_attempt_at_a_time), "A session's events go out one after the other.";
    "endpoints-are-spared", "S8", Check::Webhook(endpoints_are_spared), "An endpoint gets at most eight requests at once, and one at a time while its circuit breaker is open.";
    "attempts-are-counted", "S8", Check::Webhook(attempts_are_counted), "The attempt's number is one more than the attempts recorded.";
    "attempt-record-is-accurate", "G6", Check::Attempt(attempt_record_is_accurate), "A recorded attempt has the outcome of the receiver's response.";
    "record-shows-no-secret", "S8", Check::Attempt(record_shows_no_secret), "A recorded attempt names the endpoint without its query, the digest of the body, and no signature.";
    "schedule-is-kept", "L2", Check::Attempt(schedule_is_kept), "A failed delivery is retried on schedule, ten attempts in all.";
    "claimed-before-broadcast", "S10 G8", Check::Broadcast(claimed_before_broadcast), "A transaction is broadcast only after its claim is durable.";
    "claimed-once", "S10 G8", Check::Simulation, "A transaction and a nonce are claimed once, ever.";
    "one-claim-at-a-time", "S10", Check::Payment(one_claim_at_a_time), "A session has one open claim, made in the same commit.";
    "failure-is-certain", "S10", Check::Payment(failure_is_certain), "A session fails, and a settlement is reversed, only when an irreversible block proves that the transaction cannot come.";
    "settled-is-paid", "S10", Check::Response(settled_is_paid), "An agent gets a success only for a session that its transaction has durably completed.";
    "success-is-reported-once", "S10", Check::Response(success_is_reported_once), "A payment for another server is reported as a success once.";
    "released-claims-never-settle", "S10", Check::End(released_claims_never_settle), "A claim is released only when its transaction cannot become irreversible, whatever was reported to its payer.";
    "paid-promptly-completes", "L1", Check::Payment(paid_promptly_completes), "While a majority of nodes, the disk and the process work, a wallet's payment completes within ten block intervals of its finality.";
    "nothing-valid-is-refused", "L5", Check::Simulation, "While a majority of nodes, the disk and the process work, no valid call is refused and every honest payment ends as it should.";
    "lists-match-the-payments", "G7", Check::Simulation, "A list of payments, by any filter and page, contains the durable payments.";
    "searches-find-payments", "G7", Check::Simulation, "A search finds exactly the payments with a word that begins with each requested word.";
    "refused-is-not-taken", "S10", Check::End(refused_is_not_taken), "A payment that was refused for good never moves money.";
    "expiry-has-evidence", "G9", Check::Payment(expiry_has_evidence), "A session expires only when an irreversible block is later than its time, and never if it was paid in time.";
    "paid-in-time-completes", "G10", Check::End(paid_in_time_completes), "A payment that was paid in time completes, whatever failed meanwhile.";
    "no-state-from-the-future", "S12", Check::Payment(no_state_from_the_future), "No record refers to a block the chain has not had.";
    "every-session-ends", "L1", Check::End(every_session_ends), "Every session is terminal once an irreversible block is later than its expiry.";
    "every-webhook-goes-out", "L2 L3", Check::End(every_webhook_goes_out), "No delivery is overdue; every event is delivered, failed for good, or scheduled.";
    "scanner-catches-up", "L4", Check::End(scanner_catches_up), "The scanner reaches the newest irreversible blocks.";
    "claims-are-decided", "L1", Check::End(claims_are_decided), "No claim stays open after its transaction has expired by an irreversible block.";
    "sightings-are-decided", "G10", Check::End(sightings_are_decided), "A transfer that was sighted in a block is final or removed once the block is decided.";
    "reversal-is-noticed", "S10", Check::End(reversal_is_noticed), "A completed session whose transaction is not on the chain is marked as reversed.";
    "one-key-one-session", "G7", Check::Simulation, "One idempotency key opens one session, however often and whenever the request is repeated.";
    "usage-counts-once", "S2", Check::Simulation, "The usage of a merchant is the sum of its completed payments, each counted once, with the uncollected fees.";
    "verified-is-open", "S10", Check::Simulation, "A payment is verified only for a pending session.";
    "public-buys-nothing", "S10", Check::Simulation, "A transaction from the public chain, presented without its signatures, is no payment.";
    "shops-are-apart", "G7", Check::Simulation, "No call lets a merchant see or change another's data, and an order number in two shops is two orders.";
    "decision-is-kept", "G4", Check::Payment(resolution_is_kept), "A merchant's resolution stays on the session until a new exception occurs that it does not cover.";
    "decision-covers-what-came-before", "G4", Check::Payment(decision_covers_what_came_before), "A resolution covers the transfers that the payment had; later exceptions are not covered.";
    "acknowledged-decision-sticks", "S1", Check::Response(acknowledged_decision_sticks), "A resolution is durable when it is acknowledged.";
    "refund-is-owed", "G4", Check::Response(refund_is_owed), "A planned refund goes to the payers, and to none more than it sent and has not got back.";
    "price-is-kept", "G4", Check::Response(price_is_kept), "The refunds due of a completed payment never reduce what the merchant keeps below its price.";
    "refunds-due-follow-from-transfers", "G4", Check::Response(refunds_due_follow_from_transfers), "Amount, payee and currency of refunds due follow from the transfers, what was accepted, and what was sent back since.";
    "refunds-are-noted", "G4", Check::End(refunds_are_noted), "Every irreversible refund is recorded at its session, once.";
    "worth-is-the-markets", "G1", Check::Payment(worth_is_the_markets), "A payment in HBD has one dollar per HBD while the market is within the bounds of the peg, and the market's price otherwise.";
    "left-accounts-are-watched", "G4", Check::Simulation, "An account is watched for a month after the last merchant left it.";
    "held-only-while-disabled", "L2", Check::Simulation, "A delivery is held only while its merchant has no endpoint, or one that responded with 410 Gone or has failed for five days.";
    "store-error-stops-the-engine", "L5", Check::Simulation, "The engine stops within five seconds of a read of its store that failed with an I/O error, and of a commit whose outcome is unknown.";
    "secrets-are-sealed", "S8", Check::Simulation, "While there is a master key no row shows a webhook secret, and only the key in force is needed.";
    "damage-stays-in-its-row", "S1", Check::Simulation, "A damaged row is named by each verification and returned to no caller, and affects no other row.";
    "restore-begins-an-epoch", "S1", Check::Simulation, "A store that was restored from a backup begins a new epoch of its events, and no other start does.";
    "other-chains-are-not-asked", "G8", Check::Simulation, "A node that reports another chain gets no other requests.";
    "rate-limits-are-kept", "L6", Check::Simulation, "A node that limits the rate of requests gets none until its `Retry-After` has passed.";
    "webhooks-go-out-at-once", "L2", Check::Simulation, "While a majority of nodes, the disk and the process work, an event is sent to its endpoint within five seconds.";
    "agents-hear-at-once", "L1", Check::Simulation, "While a majority of nodes, the disk and the process work, a waiting agent gets the final outcome of its payment within a second; with several engines within two, as it may wait at another engine than the one that decides.";
    "transfers-are-sighted-promptly", "L1", Check::Simulation, "While a majority of nodes, the disk and the process work, a wallet's transfer is recorded at its session within ten block intervals of its block.";
    "endpoints-are-as-attempted", "L2", Check::Simulation, "The health of an endpoint (disabled, failing since when, how often, for which events) follows from its attempts, and its merchant is warned after one day of failures and after three.";
    "only-acceptance-keeps-money", "G4", Check::Simulation, "Only acceptance reduces the refunds due.";
    "boot-ends", "L5", Check::Simulation, "The engine starts within a minute when nothing is wrong with disk and nodes.";
    "stop-ends", "L5", Check::Simulation, "A graceful shutdown ends, whatever fails meanwhile.";
    "time-moves", "L6", Check::Simulation, "No busy loop runs while virtual time does not advance.";
    "no-panic", "L5", Check::Simulation, "Only injected panics occur.";
    "clients-see-no-failure", "C1", Check::Simulation, "A client gets 503 with Retry-After while the engine, its disk or its nodes fail, and no other failure.";
    "valid-requests-are-taken", "C1", Check::Simulation, "A valid request succeeds or gets 503, whatever else clients do.";
    "responses-are-durable", "C2", Check::Simulation, "A response about a session matches the order and what is durable.";
    "reported-states-are-current", "C3", Check::Simulation, "A state that a client reads is one that the session had during the request.";
    "keys-stand-for-one-order", "C4", Check::Simulation, "Another order with a used idempotency key is refused, and creates nothing.";
    "anothers-is-unknown", "C5", Check::Simulation, "A request for another merchant's object gets the same response as for an unknown one, by REST and by gRPC.";
    "mistakes-are-named", "C6", Check::Simulation, "An invalid request gets the status and the reason of its mistake, and the response names the field.";
    "mistakes-change-nothing", "C6", Check::Simulation, "No invalid order creates a session.";
    "forms-need-their-token", "C8", Check::Simulation, "A form without its session and its CSRF token changes nothing, and pages require a login.";
    "limits-are-kept", "C7", Check::Simulation, "No caller below a rate limit is refused; one that exceeds it gets 429 with Retry-After.";
    "every-transfer-is-judged", "G4", Check::Payment(every_transfer_is_judged), "The disposition of a transfer follows from the transfer and the session's state when it arrived; a decided cancellation reclassifies only the transfers that waited for it.";
    "ways-are-kept", "G4", Check::Payment(ways_are_kept), "A transfer records its route and whether its memo had text around the id, and both never change.";
    "sums-follow-from-transfers", "G4", Check::Payment(sums_follow_from_transfers), "Every total and every exception of a payment follows from its transfers.";
    "few-secrets-sign", "S8", Check::Simulation, "At most three replaced webhook secrets are valid in addition to the current one.";
    "malformed-payments-are-refused", "G8", Check::Simulation, "A payment or requirements that break a rule of the format are refused for that rule; at its limits they are accepted.";
    "payments-are-read", "G8", Check::Simulation, "The payment of an agent, in a header or a body and in either version, is parsed correctly.";
    "responses-name-only-their-payer", "G8", Check::Simulation, "A payer gets transaction, payer and block of its own payment; a caller that presents another's payment gets none of them.";
    "replays-are-marked", "G8", Check::Simulation, "One request of a payment gets an original receipt; every other gets one that is marked as replayed.";
    "verdicts-are-right", "G8", Check::Simulation, "The reason of a refusal follows from the payment's defect, and no defective payment is verified.";
    "one-success-per-request", "S10", Check::Simulation, "A settled transaction is a success for one request: of one seller, for one resource, under one key.";
    "cutoff-is-some-blocks-away", "S5", Check::Payment(cutoff_is_some_blocks_away), "The cutoff of a cancellation request is five blocks away, twenty once a wallet was opened, and never after the deadline.";
    "writes-change-something", "S4", Check::Payment(writes_change_something), "A payment is written only if it changes.";
    "refused-only-if-never-taken", "S10", Check::Simulation, "A claim is refused only if no node has ever responded that it has the transaction.";
    "claims-are-pursued", "L1", Check::Simulation, "While a majority of nodes, the disk and the process work, a claimed transaction is sent until its claim is decided, and the claim is decided within ten block intervals of the evidence that it requires.";
    "nodes-are-spared", "L6", Check::Simulation, "A transaction is sent to a node at most twice a second, every 15 seconds once a majority has accepted it, and not after its expiration.";
    "one-scanner-moves-the-cursor", "S7", Check::Simulation, "No commit that moves the cursor conflicts with another one while a single engine runs.";
    "nodes-are-called-what-they-are", "G8", Check::Simulation, "The reported condition of a node (rate limited, failing, disagreeing, stale, slow, ok) follows from its responses.";
    "few-sessions-are-active", "L6", Check::Simulation, "No more sessions are active than the settings allow, except for those with a claim; a session is active from its creation on while the limit allows it.";
    "sellers-receive-their-success", "S10", Check::Simulation, "No caller that may have the success of a payment is refused before one has it.";
    "limits-of-rules-are-exact", "G8", Check::Simulation, "A payment just within a rule is verified, and one just beyond it is refused for that rule.";
    "wrong-orders-are-refused", "G1", Check::Simulation, "An invalid order is refused, and the response names each invalid field.";
    "stale-writes-are-refused", "S4", Check::Simulation, "A write that is based on an older state of the store, or that reuses a unique value, is refused as a whole.";
    "refusals-have-a-reason", "S4", Check::Simulation, "The store refuses a commit only because it is stale, claims a claimed transaction, repeats a key, or exceeds a limit.";
    "commits-replace-what-was-read", "S4", Check::Simulation, "No commit replaces what its writer has not read, claims twice, repeats a key within its day, or exceeds a quota.";
    "limits-of-volume-hold", "G1", Check::Simulation, "A payment is created only within the limits of its merchant's volume, and never while the merchant is on hold.";
    "invoices-follow-from-usage", "S2", Check::Simulation, "A past month is billed once, for its usage by the tiers in force, and an excess of collected fees is carried over.";
    "audit-log-is-complete", "G7", Check::Simulation, "The audit log holds every entry, in order, and lists each for the merchants that it concerns.";
    "keys-are-kept-for-a-day", "G7", Check::Simulation, "An idempotency key is kept for a day, with its result.";
    "events-are-kept", "G6", Check::Simulation, "Every event is kept for its retention, at its position in the list of its merchant.";
    "deliveries-are-as-attempted", "G6", Check::Simulation, "The record, the attempts, the lists and the outbox of a delivery follow from its attempts and requests.";
    "claims-are-kept", "S10", Check::Simulation, "A claim is found by its transaction, its nonce and its identifier, as it was stored.";
    "unmatched-are-as-handled", "G4", Check::Simulation, "Every unmatched transfer is listed with its resolution, and is matched when the payment that it names appears.";
    "accounts-are-indexed", "G4", Check::Simulation, "The indexes of watched, proven, pending and former accounts and of API keys follow from the merchants.";
    "volume-follows-from-payments", "S2", Check::Simulation, "The sums of days, the volume of merchants and their compliance status follow from their payments.";
    "retention-ends", "L2", Check::Simulation, "Nothing is kept for longer than its retention.";
    "changes-are-audited", "G7", Check::Simulation, "A change by a merchant or the operator has an audit event in the same commit, with the changed fields.";
    "deletions-are-due", "G7", Check::Payment(deletions_are_due), "Metadata and notes are deleted on the merchant's request or after their retention, and nothing else with them.";
    "wallet-reports-are-kept", "S5", Check::Payment(wallet_reports_are_kept), "An opened wallet is reported once, for a pending payment, and the report is kept.";
    "requests-are-in-time", "S5 G9", Check::Payment(requests_are_in_time), "No claim and no cancellation request is made after the deadline of a payment.";
    "worth-is-the-witnesses", "G1", Check::Payment(worth_is_the_witnesses), "A payment in HIVE has the value at the witnesses' price that a majority of nodes returned last.";
    "states-keep-their-time", "S4", Check::Payment(states_keep_their_time), "A payment records its previous state and its completion time correctly, and both never change.";
    "orders-are-as-made", "G1", Check::Simulation, "A created payment matches its order, with the fee, the account and the lifetime in force.";
    "tests-are-sent-once", "G6", Check::Simulation, "A test event is sent once, and once under one idempotency key.";
    "subscriptions-decide", "G6", Check::Simulation, "An event is sent to the endpoints that are subscribed to its type, and to no others.";
    "keys-are-valid-until-they-end", "G7", Check::Simulation, "An API key is accepted with its scopes until it is revoked, replaced, or expired.";
    "watches-show-changes", "G7", Check::Simulation, "A watch of a payment returns durable snapshots in order, the newest one promptly, and ends with a final state.";
    "event-streams-are-complete", "G6", Check::Simulation, "A stream of events returns each durable event of its merchant once, in order and promptly.";
    "event-pages-are-complete", "G6", Check::Simulation, "The pages of an event list contain the events of their merchant, in order, from the cursor on.";
    "sales-are-their-sellers", "G4", Check::Simulation, "A sale is listed for the merchant that settled it, and for the owners of the account if none of them settled it.";
    "candidates-fit-their-transfer", "G4", Check::Simulation, "The payments proposed for an unmatched transfer fit its amount or its payer, the likeliest first.";
    "transfer-pages-are-complete", "G4", Check::Simulation, "The pages of a payment's transfers are all of them, newest first.";
    "every-day-is-listed", "G5", Check::Simulation, "The reconciled days are listed as they were stored.";
    "merchants-are-listed", "G7", Check::Simulation, "The list of merchants, by any filter, contains the durable merchants.";
    "retention-is-kept", "G7", Check::Simulation, "Nothing is deleted before its retention is over.";
    "claims-are-as-sure-as-set", "S10", Check::Payment(claims_are_as_sure_as_set), "A claim completes its payment when it has the finality that the settings require for a payment of its value.";
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
    "never-over-budget", "S10", Check::Simulation, "Within any hour of block times the agent with a wallet spends at most its limit, and no payment exceeds the limit of one payment or the amount that an operator approved.";
    "one-charge-per-request", "S10", Check::Simulation, "A request of the agent with a wallet is paid by at most one transaction, whatever is repeated or killed.";
    "released-is-not-spent", "S10", Check::Simulation, "A payment that a wallet has released is in no block.";
    "expected", "", Check::Simulation, "What the scenario expects.";
}

// ---- responses ---------------------------------------------------------------------------------------------------------

fn acknowledged_create_survives(observer: &Observer, response: &Response<'_>) -> Verdict {
    let (Response::Created(payment) | Response::Read(payment)) = response else { return Ok(()) };
    let durable = observer.payments.get(&payment.id).is_some_and(|known| known.payment.version >= payment.version);
    hold(durable, || "a response reports a session that is not durable".to_owned())
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
            return Err((format!("the outcome of {} stays open", claimed.tx_id), None));
        }
    }
    Ok(())
}

fn sightings_are_decided(end: &End<'_>) -> FinalVerdict {
    let Some(cursor) = end.observer.cursor else { return Ok(()) };
    for (id, payment) in &end.stored {
        let open = end.observer.rows.get(id).into_iter().flat_map(|rows| rows.values()).find(|credit| {
            let block = credit.block.map_or(u32::MAX, |block| block.position.block_num);
            // The blocks just above the cursor may be in progress.
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
        let is_there = end.observer.final_ops.contains_key(&paid_by);
        if is_there == payment.is_reversed && payment.claim.is_none() {
            let what = if is_there {
                "is marked as reversed and is on the chain"
            } else {
                "vanished and is not marked as reversed"
            };
            return Err((format!("{paid_by}, which completed {id}, {what}"), Some(*id)));
        }
    }
    Ok(())
}

fn paid_in_time_completes(end: &End<'_>) -> FinalVerdict {
    for (id, payment) in &end.stored {
        let paid = end.observer.paid_in_time(payment) >= payment.amount.units;
        if paid && matches!(payment.state, State::Pending | State::Processing | State::SystemCancelled) {
            return Err((format!("{id} was paid in time and is {}", payment.state), Some(*id)));
        }
        let in_time = payment.cancellation.map_or(0, |request| end.observer.paid_until(payment, request.cutoff));
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

/// Returns whether an unmatched transfer has been assigned to a session since.
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
