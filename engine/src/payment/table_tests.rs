//! Tests of the state machine, one for each row of the specification's tables.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use super::*;
use crate::{
    hive::Pack,
    ids::EventId,
    ledger::{ChainPosition, Transfer, memo_of},
    money::{Currency::*, FeePercent},
};

mod cancelling;
mod cases;
mod many;
mod resolution;

const OPENED: u64 = 1_000_000;
const EXPIRES: u64 = OPENED + 1_800;
const BLOCK: Duration = Duration::from_secs(3);

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_seconds(seconds)
}

fn name(text: &str) -> AccountName {
    AccountName::parse(text).unwrap()
}

fn tx(n: u8) -> TxId {
    TxId([n; 20])
}

fn draft(units: u64, currency: Currency) -> Draft {
    Draft {
        amount: Money::new(units, currency),
        description: "Blue mug".to_owned(),
        metadata: Metadata::new(),
        redirect_url: None,
        cancel_url: None,
        lifetime: None,
    }
}

fn terms(fee_mode: FeeMode) -> Terms {
    Terms {
        merchant: MerchantId::from_bits(1),
        pay_to: name("blue.mugs"),
        fee_percent: FeePercent::parse("1.5").unwrap(),
        fee_mode,
        rate: None,
        default_lifetime: Duration::from_secs(1_800),
        grace: Duration::ZERO,
        livemode: true,
    }
}

fn open_with(fee_mode: FeeMode) -> Payment {
    Payment::open(draft(1_000, Hbd), terms(fee_mode), PaymentId::from_bits(7), SlugToken::from_bits(8), at(OPENED))
        .unwrap()
}

fn open() -> Payment {
    open_with(FeeMode::Invoice)
}

fn split() -> Payment {
    open_with(FeeMode::Split { account: name("fee.collector") })
}

/// A transfer of `units` HBD from alice that names the session, in a block at `seconds`.
fn transfer(n: u8, units: u64, seconds: u64) -> Transfer {
    Transfer {
        tx_id: tx(n),
        position: ChainPosition { block_num: u32::try_from(seconds / 3).unwrap(), tx_in_block: 0, op_in_tx: 0 },
        block_time: at(seconds),
        from: name("alice"),
        to: name("blue.mugs"),
        money: Money::new(units, Hbd),
        memo: memo_of(PaymentId::from_bits(7)),
    }
}

fn credit(transfer: Transfer, finality: Finality) -> Command {
    Command::Credit { transfer, finality, route: Route::Wallet, memo_normalized: false }
}

fn paid(n: u8, units: u64, seconds: u64) -> Command {
    credit(transfer(n, units, seconds), Finality::Irreversible)
}

fn claim(n: u8, transfers: &[(&str, u64)]) -> Arc<Claim> {
    Arc::new(Claim {
        tx_id: tx(n),
        nonce: format!("nonce-{n}"),
        identifier: None,
        proof: PayerProof { pack: Pack::Legacy, digest: [n; 32], keys: BTreeSet::new() },
        payer: name("agent.one"),
        transfers: transfers
            .iter()
            .zip(0..)
            .map(|((to, units), op_in_tx)| ClaimedTransfer {
                op_in_tx,
                to: name(to),
                money: Money::new(*units, Hbd),
                memo: String::new(),
            })
            .collect(),
        signed_json: String::new(),
        expiration: at(OPENED + 600),
        claimed_at: at(OPENED + 1),
        finality: ClaimFinality::InBlock,
    })
}

fn block_at(seconds: u64) -> Option<CreditBlock> {
    Some(CreditBlock { position: transfer(0, 1, seconds).position, time: at(seconds) })
}

/// A payment under test with its events so far and the rows of its transfers as stored.
struct Case {
    payment: Payment,
    events: Vec<Event>,
    rows: BTreeMap<(TxId, u32), Credit>,
}

impl Case {
    fn of(payment: Payment) -> Self {
        Self { payment, events: Vec::new(), rows: BTreeMap::new() }
    }

    /// Applies a command that must be accepted.
    fn then(mut self, command: Command, seconds: u64) -> Self {
        let mut known = self.loaded(&command);
        let mut step = known.apply(&command, at(seconds)).unwrap();
        if known.needs_unlisted_rows(&step.payment) {
            for (key, row) in &self.rows {
                if row.awaits_cancellation() && known.listed(key.0, key.1).is_none() {
                    known.load(row.clone());
                }
            }
            step = known.apply(&command, at(seconds)).unwrap();
        }
        assert_eq!(step.payment.version, self.payment.version + 1);
        assert_eq!(
            step.event.is_some(),
            step.payment.state != self.payment.state,
            "an event for a new state, and only then"
        );
        self.events.extend(step.event);
        self.payment = step.payment;
        for row in step.rows {
            let memo =
                self.rows.get(&(row.tx_id, row.op_in_tx)).map_or_else(|| row.memo.clone(), |row| row.memo.clone());
            self.rows.insert((row.tx_id, row.op_in_tx), Credit { memo, ..row });
        }
        self.holds_its_rows()
    }

    /// Returns the payment with the rows that a command requires, as loaded from a store.
    fn loaded(&self, command: &Command) -> Payment {
        let mut payment = self.payment.clone();
        for key in payment.required_rows(command) {
            if let Some(row) = self.rows.get(&key) {
                payment.load(row.clone());
            }
        }
        payment
    }

    /// Asserts that listed transfers are limited, ordered and equal to their rows, and that totals are correct.
    fn holds_its_rows(self) -> Self {
        let payment = &self.payment;
        assert!(payment.transfers.len() <= LISTED_TRANSFERS_MAX);
        assert!(payment.transfers.is_sorted_by_key(|credit| credit.seq));
        for credit in &payment.transfers {
            let row = self.rows[&(credit.tx_id, credit.op_in_tx)].clone();
            assert_eq!(*credit, Credit { memo: shown_memo(row.memo.clone()), ..row });
        }
        assert_eq!(payment.totals(), Totals::of(self.rows.values()));
        assert_eq!(payment.transfer_count(), self.rows.len() as u64);
        self
    }

    /// Applies a command that must be rejected.
    fn refused(self, command: Command, seconds: u64, why: Rejection) -> Self {
        assert_eq!(self.loaded(&command).apply(&command, at(seconds)), Err(why));
        self
    }

    fn is(self, state: State, exceptions: &[&str]) -> Self {
        assert_eq!(self.payment.state, state);
        let words: Vec<_> = self.payment.exceptions().into_iter().map(Exception::as_str).collect();
        assert_eq!(words, exceptions);
        self
    }

    fn sums(self, paid: u64, remaining: u64, overpaid: u64, late: u64) -> Self {
        let payment = &self.payment;
        assert_eq!(
            (payment.paid_units(), payment.remaining_units(), payment.overpaid_units(), payment.late_units()),
            (paid, remaining, overpaid, late)
        );
        self
    }
}

const ID: PaymentId = PaymentId::from_bits(7);

fn expire(seconds: u64) -> Command {
    Command::Expire { irreversible_time: at(seconds) }
}

fn cancel() -> Command {
    Command::Cancel { by: Canceller::Customer, block_interval: BLOCK }
}

fn refuse() -> Command {
    Command::Refuse { tx_id: tx(5), reason: crate::x402::Reason::InsufficientFunds, message: String::new() }
}

fn claimed() -> Case {
    Case::of(open()).then(Command::Claim(claim(5, &[("blue.mugs", 1_000)])), OPENED + 1)
}

// ---- the interface's own table ------------------------------------------------------------------------------------

#[test]
fn creation_opens_a_pending_session_with_an_expiry() {
    let payment = open();
    assert_eq!((payment.state, payment.sequence, payment.expires_at), (State::Pending, 1, at(EXPIRES)));
    assert_eq!((payment.quote.fee_units, payment.net_units(), payment.quote.usd_cents), (15, 985, 100));
}

#[test]
fn pending_to_processing_to_completed() {
    let case = claimed().then(Command::MarkUnknown { tx_id: tx(5) }, OPENED + 21).is(State::Processing, &[]);
    let settle = Command::Settle { tx_id: tx(5), evidence: ClaimFinality::Irreversible, block: block_at(OPENED + 30) };
    let case = case.then(settle, OPENED + 33).is(State::Completed, &[]);
    let states: Vec<_> = case.events.iter().map(|e| (e.from, e.to, e.sequence)).collect();
    assert_eq!(states, [(State::Pending, State::Processing, 2), (State::Processing, State::Completed, 3)]);
    assert_eq!(case.payment.completed_at, Some(at(OPENED + 33)));
}

#[test]
fn processing_to_failed() {
    let mark_expired = |seconds| Command::MarkExpired { tx_id: tx(5), irreversible_time: at(seconds) };
    claimed()
        .then(Command::MarkUnknown { tx_id: tx(5) }, OPENED + 21)
        .refused(mark_expired(OPENED + 600), OPENED + 600, Rejection::NotDue { id: ID, ends_at: at(OPENED + 600) })
        .then(mark_expired(OPENED + 603), OPENED + 603)
        .is(State::Failed, &[]);
}

#[test]
fn pending_to_user_cancelled_when_an_irreversible_block_passed_the_cutoff() {
    let case = Case::of(open()).then(cancel(), OPENED + 5).is(State::Pending, &[]);
    let request = Cancellation {
        by: Canceller::Customer,
        requested_at: at(OPENED + 5),
        cutoff: at(OPENED + 20),
        dropped_at: None,
    };
    assert_eq!((case.payment.cancellation, case.events.len()), (Some(request), 0), "notified at the decision");
    case.refused(cancel(), OPENED + 6, Rejection::AlreadyCancelled { id: ID })
        .refused(expire(OPENED + 20), OPENED + 90, Rejection::NotDue { id: ID, ends_at: at(OPENED + 20) })
        .then(expire(OPENED + 21), OPENED + 90)
        .is(State::UserCancelled, &[])
        .refused(cancel(), OPENED + 91, Rejection::AlreadyCancelled { id: ID });
}

#[test]
fn pending_to_system_cancelled_only_after_an_irreversible_block_passed_the_expiry() {
    Case::of(open())
        .refused(expire(EXPIRES), EXPIRES + 60, Rejection::NotDue { id: ID, ends_at: at(EXPIRES) })
        .then(expire(EXPIRES + 1), EXPIRES + 60)
        .is(State::SystemCancelled, &[]);
}

#[test]
fn pending_to_completed_by_a_wallet() {
    let case =
        Case::of(open()).then(paid(1, 1_000, OPENED + 9), OPENED + 12).is(State::Completed, &[]).sums(1_000, 0, 0, 0);
    assert_eq!(case.payment.paid_by, Some(tx(1)));
    assert_eq!(case.events.len(), 1);
}

#[test]
fn pending_to_completed_by_x402() {
    let settle = Command::Settle { tx_id: tx(5), evidence: ClaimFinality::InBlock, block: block_at(OPENED + 3) };
    let case = claimed().then(settle, OPENED + 4).is(State::Completed, &[]);
    assert_eq!(case.payment.transfers[0].finality, Finality::Reversible);
    assert_eq!(
        (case.payment.paid_units(), case.payment.received_units()),
        (0, 1_000),
        "completed on what it asked for"
    );
    assert!(case.payment.claim.is_some(), "watched until irreversible");
    let seen = Transfer { from: name("agent.one"), ..transfer(5, 1_000, OPENED + 3) };
    let case = case.then(credit(seen, Finality::Irreversible), OPENED + 6).is(State::Completed, &[]);
    assert_eq!((case.payment.claim, case.payment.transfers.len()), (None, 1), "one transfer, counted once");
}

#[test]
fn final_states_never_change() {
    let ends = [
        Case::of(open()).then(paid(1, 1_000, OPENED + 9), OPENED + 12),
        Case::of(open()).then(cancel(), OPENED + 5).then(expire(OPENED + 21), OPENED + 24),
        Case::of(open()).then(expire(EXPIRES + 3), EXPIRES + 3),
        claimed()
            .then(Command::MarkUnknown { tx_id: tx(5) }, OPENED + 21)
            .then(Command::MarkExpired { tx_id: tx(5), irreversible_time: at(OPENED + 603) }, OPENED + 603),
    ];
    for end in ends {
        let before = end.payment.state;
        let commands = [
            cancel(),
            Command::Cancel { by: Canceller::Merchant, block_interval: BLOCK },
            Command::ReportWallet,
            expire(EXPIRES + 9_000),
            paid(77, 1_000, OPENED + 30),
            paid(78, 1_000, EXPIRES + 30),
            Command::Claim(claim(9, &[("blue.mugs", 1_000)])),
            Command::MarkUnknown { tx_id: tx(5) },
            refuse(),
            Command::Settle { tx_id: tx(5), evidence: ClaimFinality::Irreversible, block: None },
            Command::MarkExpired { tx_id: tx(5), irreversible_time: at(EXPIRES) },
        ];
        for command in commands {
            if let Ok(step) = end.payment.apply(&command, at(EXPIRES + 9_000)) {
                assert_eq!((step.payment.state, step.event), (before, None), "{command:?}");
            }
        }
    }
}

// ---- the decisions' table -----------------------------------------------------------------------------------------

#[test]
fn a_reversible_transfer_blocks_cancellation_without_a_state_change() {
    let seen = credit(transfer(1, 1_000, OPENED + 9), Finality::Reversible);
    Case::of(open())
        .then(seen.clone(), OPENED + 9)
        .is(State::Pending, &[])
        .sums(0, 1_000, 0, 0)
        .refused(seen, OPENED + 10, Rejection::Unchanged { id: ID })
        .refused(cancel(), OPENED + 10, Rejection::Detected { id: ID })
        .refused(Command::Claim(claim(5, &[("blue.mugs", 1_000)])), OPENED + 10, Rejection::Detected { id: ID })
        .then(paid(1, 1_000, OPENED + 9), OPENED + 12)
        .is(State::Completed, &[])
        .sums(1_000, 0, 0, 0);
}

#[test]
fn a_transfer_found_by_the_scanner_cannot_be_claimed() {
    let claim = || Command::Claim(claim(5, &[("blue.mugs", 400)]));
    let detected = || Rejection::Detected { id: ID };
    let seen = credit(transfer(5, 400, OPENED + 9), Finality::Reversible);
    let orphaned = Command::Orphan { tx_id: tx(5), op_in_tx: transfer(5, 400, OPENED + 9).position.op_in_tx };
    Case::of(open())
        .then(seen, OPENED + 9)
        .refused(claim(), OPENED + 10, detected())
        .then(orphaned, OPENED + 11)
        .refused(claim(), OPENED + 11, detected())
        .then(paid(5, 400, OPENED + 12), OPENED + 15)
        .refused(claim(), OPENED + 15, detected())
        .is(State::Pending, &["underpaid"]);
}

#[test]
fn a_partial_payment_stays_pending_with_the_remaining_amount() {
    Case::of(open())
        .then(paid(1, 400, OPENED + 9), OPENED + 12)
        .is(State::Pending, &["underpaid"])
        .sums(400, 600, 0, 0)
        .refused(cancel(), OPENED + 13, Rejection::Detected { id: ID });
}

#[test]
fn a_claim_in_flight_blocks_expiry_cancel_and_other_claims() {
    let in_flight = Rejection::InFlight { id: ID, tx_id: tx(5) };
    claimed()
        .is(State::Pending, &[])
        .refused(expire(EXPIRES + 3), EXPIRES + 3, in_flight.clone())
        .refused(cancel(), OPENED + 3, in_flight.clone())
        .refused(Command::Claim(claim(6, &[("blue.mugs", 1_000)])), OPENED + 3, in_flight);
}

#[test]
fn the_claimed_transaction_counts_whatever_its_block_time() {
    let late = Transfer { from: name("agent.one"), ..transfer(5, 1_000, EXPIRES + 30) };
    let case = claimed().then(credit(late, Finality::Irreversible), EXPIRES + 33).is(State::Completed, &[]);
    assert_eq!((case.payment.claim, case.payment.transfers[0].route), (None, Route::X402));
}

#[test]
fn a_reversible_block_completes_a_claim_that_requires_no_more() {
    let seen = |finality| {
        let claim = Arc::new(Claim { finality, ..(*claim(5, &[("blue.mugs", 1_000)])).clone() });
        let seen = Transfer { from: name("agent.one"), ..transfer(5, 1_000, OPENED + 3) };
        Case::of(open())
            .then(Command::Claim(claim), OPENED + 1)
            .then(credit(seen, Finality::Reversible), OPENED + 3)
            .payment
            .state
    };
    assert_eq!(seen(ClaimFinality::Accepted), State::Completed);
    assert_eq!(seen(ClaimFinality::InBlock), State::Completed);
    assert_eq!(seen(ClaimFinality::Irreversible), State::Pending);
    let seen = Transfer { from: name("agent.one"), ..transfer(5, 1_000, OPENED + 30) };
    claimed()
        .then(Command::MarkUnknown { tx_id: tx(5) }, OPENED + 21)
        .then(credit(seen, Finality::Reversible), OPENED + 30)
        .is(State::Processing, &[]);
}

#[test]
fn a_definite_rejection_allows_another_claim() {
    claimed()
        .then(refuse(), OPENED + 3)
        .is(State::Pending, &[])
        .refused(refuse(), OPENED + 4, Rejection::NoSuchClaim { id: ID, tx_id: tx(5) })
        .then(Command::Claim(claim(6, &[("blue.mugs", 1_000)])), OPENED + 5);
}

#[test]
fn a_rejection_by_a_node_does_not_decide_an_unknown_outcome() {
    let processing = Rejection::NotPending { id: ID, state: State::Processing };
    claimed().then(Command::MarkUnknown { tx_id: tx(5) }, OPENED + 21).refused(refuse(), OPENED + 22, processing);
}

#[test]
fn a_transaction_found_after_its_payment_failed_is_paid_after_failure() {
    let seen = Transfer { from: name("agent.one"), ..transfer(5, 1_000, OPENED + 600) };
    claimed()
        .then(Command::MarkUnknown { tx_id: tx(5) }, OPENED + 21)
        .then(Command::MarkExpired { tx_id: tx(5), irreversible_time: at(OPENED + 603) }, OPENED + 603)
        .then(credit(seen, Finality::Irreversible), OPENED + 700)
        .is(State::Failed, &["paid_after_failure"])
        .sums(0, 1_000, 0, 1_000);
}

#[test]
fn an_expired_payment_keeps_its_partial_payment_and_rejects_claims_before_the_ledger_confirms_expiry() {
    let case = Case::of(open()).then(paid(1, 400, OPENED + 9), OPENED + 12);
    assert!(case.payment.is_expired(at(EXPIRES + 1)) && !case.payment.is_expired(at(EXPIRES)));
    case.refused(Command::Claim(claim(5, &[("blue.mugs", 1_000)])), EXPIRES + 1, Rejection::Expired { id: ID })
        .then(expire(EXPIRES + 3), EXPIRES + 3)
        .is(State::SystemCancelled, &["underpaid"])
        .sums(400, 600, 0, 0);
    Case::of(open()).refused(cancel(), EXPIRES + 1, Rejection::Expired { id: ID });
}

#[test]
fn a_completed_payment_whose_transaction_expires_is_reversed_and_stays_completed() {
    let settle = Command::Settle { tx_id: tx(5), evidence: ClaimFinality::Accepted, block: None };
    let case = claimed()
        .then(settle, OPENED + 2)
        .is(State::Completed, &[])
        .then(Command::MarkExpired { tx_id: tx(5), irreversible_time: at(OPENED + 603) }, OPENED + 603)
        .is(State::Completed, &["settlement_reversed"]);
    assert_eq!(case.payment.transfers[0].finality, Finality::Orphaned);
}

#[test]
fn a_payment_completed_on_acceptance_records_its_block_when_irreversible_or_after_a_fork() {
    let settle = || Command::Settle { tx_id: tx(5), evidence: ClaimFinality::Accepted, block: None };
    let seen = |finality| credit(transfer(5, 1_000, OPENED + 3), finality);
    let place = |case: &Case| (case.payment.transfers[0].finality, case.payment.transfers[0].block.is_some());
    let case = claimed()
        .then(settle(), OPENED + 2)
        .refused(seen(Finality::Reversible), OPENED + 4, Rejection::Unchanged { id: ID })
        .then(seen(Finality::Irreversible), OPENED + 9)
        .is(State::Completed, &[]);
    assert_eq!((case.payment.transfers.len(), place(&case)), (1, (Finality::Irreversible, true)));
    let case = claimed()
        .then(settle(), OPENED + 2)
        .then(Command::Orphan { tx_id: tx(5), op_in_tx: 0 }, OPENED + 4)
        .then(seen(Finality::Reversible), OPENED + 6);
    assert_eq!((case.payment.transfers.len(), place(&case)), (1, (Finality::Reversible, true)));
}

// ---- a collected fee ----------------------------------------------------------------------------------------------

fn fee(n: u8, units: u64) -> Command {
    let mut transfer = Transfer { to: name("fee.collector"), ..transfer(n, units, OPENED + 9) };
    transfer.position.op_in_tx = 1;
    credit(transfer, Finality::Irreversible)
}

#[test]
fn net_and_fee_together_pay_the_amount() {
    let case = Case::of(split())
        .then(paid(1, 985, OPENED + 9), OPENED + 12)
        .is(State::Pending, &["underpaid"])
        .then(fee(1, 15), OPENED + 12)
        .is(State::Completed, &[])
        .sums(1_000, 0, 0, 0);
    assert!(!case.payment.fee_is_missing());
}

#[test]
fn a_full_transfer_without_a_fee_transfer_completes_with_a_missing_fee() {
    let case = Case::of(split()).then(paid(1, 1_000, OPENED + 9), OPENED + 12).is(State::Completed, &[]);
    assert!(case.payment.fee_is_missing());
}

#[test]
fn a_large_fee_transfer_does_not_pay_the_merchant() {
    Case::of(split()).then(fee(1, 1_000), OPENED + 12).is(State::Pending, &["underpaid"]).sums(15, 985, 0, 0);
}

#[test]
fn a_fee_that_cannot_be_split_is_invoiced() {
    let open = |units, account| {
        let terms = terms(FeeMode::Split { account: name(account) });
        Payment::open(draft(units, Hbd), terms, ID, SlugToken::from_bits(8), at(OPENED)).unwrap().quote.fee_mode
    };
    assert_eq!(open(1, "fee.collector"), FeeMode::Invoice, "a fee of 0");
    assert_eq!(open(1_000, "blue.mugs"), FeeMode::Invoice, "the merchant collects it");
    assert_eq!(open(1_000, "fee.collector"), FeeMode::Split { account: name("fee.collector") });
    let all = Terms {
        fee_percent: FeePercent::parse("100").unwrap(),
        ..terms(FeeMode::Split { account: name("fee.collector") })
    };
    let all = Payment::open(draft(10, Hbd), all, ID, SlugToken::from_bits(8), at(OPENED)).unwrap();
    assert_eq!(all.quote.fee_mode, FeeMode::Invoice, "a net of 0");
}

// ---- opening ------------------------------------------------------------------------------------------------------

#[test]
fn a_hive_payment_requires_a_price_and_fixes_it() {
    let rate = Rate { price: HivePrice::new(258, 1_000).unwrap(), hbd: None, at: at(OPENED - 60) };
    let open = |rate| {
        let terms = Terms { rate, ..terms(FeeMode::Invoice) };
        Payment::open(draft(10_500, Hive), terms, ID, SlugToken::from_bits(8), at(OPENED))
    };
    assert_eq!(open(None), Err(NoRate));
    let quote = open(Some(rate)).unwrap().quote;
    assert_eq!((quote.usd_cents, quote.rate), (270, Some(rate)));
    let hbd = Terms { rate: Some(rate), ..terms(FeeMode::Invoice) };
    let hbd = Payment::open(draft(1_000, Hbd), hbd, ID, SlugToken::from_bits(8), at(OPENED)).unwrap();
    assert_eq!(hbd.quote.rate, None);
}

#[test]
fn every_bad_field_of_a_draft_is_named() {
    let raw = RawDraft {
        amount_units: 0,
        currency: Hbd,
        description: String::new(),
        metadata: Metadata::new(),
        redirect_url: Some("javascript:alert(1)".to_owned()),
        cancel_url: Some("ftp://x".to_owned()),
        expires_in_seconds: Some(59),
    };
    let fields: Vec<_> = Draft::check(raw).unwrap_err().into_iter().map(|v| v.field).collect();
    assert_eq!(fields, ["amount", "description", "redirectUrl", "cancelUrl", "expiresInSeconds"]);
}

#[test]
fn event_ids_are_deterministic() {
    let event = |payment: &Payment| payment.apply(&expire(EXPIRES + 1), at(EXPIRES + 5)).unwrap().event.unwrap().id;
    assert_eq!(event(&open()), event(&open()));
    let later = open().apply(&expire(EXPIRES + 1), at(EXPIRES + 9_000)).unwrap().event.unwrap().id;
    assert_eq!(event(&open()), later, "at every evaluation");
    let other = Payment { id: PaymentId::from_bits(9), ..open() };
    assert_ne!(event(&open()), event(&other));
    assert_ne!(event(&open()), EventId::from_bits(0));
}
