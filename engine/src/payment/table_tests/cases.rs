//! Tests of partial, excess, repeated, late and wrong-currency transfers.

use super::*;

#[test]
fn partial_payments_complete_with_the_transfer_that_reaches_the_amount() {
    let case = Case::of(open())
        .then(paid(1, 400, OPENED + 9), OPENED + 12)
        .then(paid(2, 500, OPENED + 12), OPENED + 15)
        .is(State::Pending, &["underpaid"])
        .then(paid(3, 100, OPENED + 15), OPENED + 18)
        .is(State::Completed, &[])
        .sums(1_000, 0, 0, 0);
    assert_eq!(case.payment.paid_by, Some(tx(3)));
}

#[test]
fn one_transfer_above_the_amount_is_overpaid() {
    Case::of(open())
        .then(paid(1, 1_200, OPENED + 9), OPENED + 12)
        .is(State::Completed, &["overpaid"])
        .sums(1_200, 0, 200, 0);
}

#[test]
fn a_second_transfer_for_a_paid_session_is_paid_again_and_changes_no_state() {
    let case = Case::of(open())
        .then(paid(1, 1_000, OPENED + 9), OPENED + 12)
        .then(paid(2, 1_000, OPENED + 9), OPENED + 12)
        .is(State::Completed, &["paid_again"])
        .sums(1_000, 0, 1_000, 0);
    assert_eq!(case.events.len(), 1);
}

#[test]
fn two_transfers_of_one_transaction_are_two_transfers() {
    let mut second = transfer(1, 600, OPENED + 9);
    second.position.op_in_tx = 1;
    Case::of(open())
        .then(paid(1, 400, OPENED + 9), OPENED + 12)
        .then(credit(second, Finality::Irreversible), OPENED + 12)
        .is(State::Completed, &[]);
}

#[test]
fn the_same_operation_seen_twice_counts_once() {
    Case::of(open())
        .then(paid(1, 400, OPENED + 9), OPENED + 12)
        .refused(paid(1, 400, OPENED + 9), OPENED + 15, Rejection::Unchanged { id: ID })
        .refused(
            credit(transfer(1, 400, OPENED + 9), Finality::Reversible),
            OPENED + 15,
            Rejection::Unchanged { id: ID },
        )
        .sums(400, 600, 0, 0);
}

#[test]
fn a_block_at_the_expiry_counts_and_a_later_one_is_late() {
    Case::of(open()).then(paid(1, 1_000, EXPIRES), EXPIRES + 90).is(State::Completed, &[]);
    Case::of(open())
        .then(paid(1, 1_000, EXPIRES + 1), EXPIRES + 1)
        .is(State::Pending, &["paid_late"])
        .then(expire(EXPIRES + 1), EXPIRES + 4)
        .is(State::SystemCancelled, &["paid_late"])
        .then(paid(2, 300, EXPIRES + 60), EXPIRES + 63)
        .sums(0, 1_000, 0, 1_300);
}

#[test]
fn a_grace_period_extends_the_deadline_not_the_expiry() {
    let payment = Payment { grace: Duration::from_secs(6), ..open() };
    let case = Case::of(payment.clone()).then(paid(1, 1_000, EXPIRES + 6), EXPIRES + 9).is(State::Completed, &[]);
    assert_eq!(case.payment.expires_at, at(EXPIRES));
    Case::of(payment).refused(expire(EXPIRES + 6), EXPIRES + 9, Rejection::NotDue { id: ID, ends_at: at(EXPIRES + 6) });
}

#[test]
fn transfers_after_a_cancellation_are_recorded_without_a_state_change() {
    Case::of(open())
        .then(cancel(), OPENED + 5)
        .then(expire(OPENED + 21), OPENED + 24)
        .then(paid(1, 1_000, OPENED + 24), OPENED + 27)
        .is(State::UserCancelled, &["paid_after_cancel"])
        .sums(0, 1_000, 0, 1_000);
}

#[test]
fn transfers_in_the_other_currency_do_not_count() {
    let hive = Transfer { money: Money::new(1_000, Hive), ..transfer(1, 0, OPENED + 9) };
    Case::of(open())
        .then(credit(hive, Finality::Irreversible), OPENED + 12)
        .is(State::Pending, &["wrong_currency"])
        .sums(0, 1_000, 0, 0)
        .then(paid(2, 1_000, OPENED + 12), OPENED + 15)
        .is(State::Completed, &["wrong_currency"]);
}

#[test]
fn a_merchant_cannot_pay_itself() {
    let own = Transfer { from: name("blue.mugs"), ..transfer(1, 1_000, OPENED + 9) };
    Case::of(open())
        .then(credit(own, Finality::Irreversible), OPENED + 12)
        .is(State::Pending, &["self_transfer"])
        .sums(0, 1_000, 0, 0);
}

#[test]
fn a_transfer_to_another_account_is_rejected() {
    let foreign = Transfer { to: name("third.party"), ..transfer(1, 1_000, OPENED + 9) };
    Case::of(open()).refused(
        credit(foreign, Finality::Irreversible),
        OPENED + 12,
        Rejection::ForeignTransfer { id: ID },
    );
}

#[test]
fn a_fork_orphans_a_transfer_that_may_reappear_in_another_block() {
    let seen = credit(transfer(1, 1_000, OPENED + 9), Finality::Reversible);
    let case = Case::of(open())
        .then(seen, OPENED + 9)
        .then(Command::Orphan { tx_id: tx(1), op_in_tx: 0 }, OPENED + 12)
        .is(State::Pending, &[])
        .sums(0, 1_000, 0, 0)
        .refused(Command::Orphan { tx_id: tx(1), op_in_tx: 0 }, OPENED + 12, Rejection::Unchanged { id: ID });
    assert_eq!(case.payment.seen_units(), 0, "it can be cancelled again");
    let again = case.then(credit(transfer(1, 1_000, OPENED + 15), Finality::Reversible), OPENED + 15);
    assert_eq!(again.payment.seen_units(), 1_000);
    again.then(paid(1, 1_000, OPENED + 15), OPENED + 18).is(State::Completed, &[]).sums(1_000, 0, 0, 0);
}

#[test]
fn a_fork_that_moves_a_transfer_past_the_expiry_makes_it_late() {
    Case::of(open())
        .then(credit(transfer(1, 1_000, EXPIRES), Finality::Reversible), EXPIRES)
        .then(paid(1, 1_000, EXPIRES + 3), EXPIRES + 6)
        .is(State::Pending, &["paid_late"]);
}

#[test]
fn a_wallet_payment_while_a_claim_is_in_flight_completes_and_the_other_is_paid_again() {
    let settle = Command::Settle { tx_id: tx(5), evidence: ClaimFinality::Irreversible, block: block_at(OPENED + 12) };
    let case = claimed()
        .then(paid(1, 1_000, OPENED + 9), OPENED + 12)
        .is(State::Completed, &[])
        .then(settle, OPENED + 15)
        .is(State::Completed, &["paid_again"])
        .sums(1_000, 0, 1_000, 0);
    assert_eq!((case.payment.paid_by, case.events.len()), (Some(tx(1)), 1));
}

#[test]
fn x402_on_a_partially_paid_session_completes_it_overpaid() {
    let settle = Command::Settle { tx_id: tx(5), evidence: ClaimFinality::Irreversible, block: block_at(OPENED + 12) };
    Case::of(open())
        .then(paid(1, 400, OPENED + 6), OPENED + 9)
        .then(Command::Claim(claim(5, &[("blue.mugs", 1_000)])), OPENED + 10)
        .then(settle, OPENED + 15)
        .is(State::Completed, &["overpaid"])
        .sums(1_400, 0, 400, 0);
}
