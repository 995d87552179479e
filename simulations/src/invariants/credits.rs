//! Invariants of the transfers of a payment: the disposition and route of each, and the totals.

use engine::payment::Exception;

use super::*;

/// Block intervals from a request to cancel to its cutoff, and the same where a wallet was opened.
const MARGIN_BLOCKS: [u32; 2] = [5, 20];

/// Returns the disposition of a new transfer, by the session before it.
fn called(before: &Payment, credit: &Credit) -> Disposition {
    let is_claimed = before.claim.as_ref().is_some_and(|claim| claim.tx_id == credit.tx_id);
    let completed_it = before.paid_by == Some(credit.tx_id);
    let is_after = |limit: Timestamp| credit.block.is_some_and(|block| block.time > limit);
    let cutoff = before.pending_cancellation().map(|request| request.cutoff);
    if credit.money.currency != before.amount.currency {
        Disposition::WrongCurrency
    } else if credit.from == before.pay_to {
        Disposition::SelfTransfer
    } else if credit.to != before.pay_to {
        Disposition::Fee
    } else if before.state == State::Completed && !completed_it {
        Disposition::Surplus
    } else if before.state == State::Failed {
        Disposition::AfterFailure
    } else if before.state == State::UserCancelled {
        Disposition::AfterCancel
    } else if before.state == State::SystemCancelled {
        Disposition::Late
    } else if completed_it || is_claimed {
        Disposition::Counted
    } else if is_after(before.expires_at + before.grace) {
        Disposition::Late
    } else if cutoff.is_some_and(is_after) {
        Disposition::AfterCancel
    } else {
        Disposition::Counted
    }
}

pub(super) fn every_transfer_is_judged(write: &PaymentWrite<'_>) -> Verdict {
    let (Some(before), after) = (write.before, write.after) else { return Ok(()) };
    let is_decided = before.pending_cancellation().is_some() && after.pending_cancellation().is_none();
    let rows = || write.rows.values();
    let wrong = |credit: &Credit, why: &str| {
        Err(format!("{} over {} is classified as {:?}: {why}", credit.tx_id, credit.money, credit.disposition))
    };
    for credit in write.written {
        let key = (credit.tx_id, credit.op_in_tx);
        let old = write.replaced.iter().find(|old| (old.tx_id, old.op_in_tx) == key);
        let is_moved = old.is_none_or(|old| (old.finality, old.block) != (credit.finality, credit.block));
        let was = old.map(|old| old.disposition).filter(|was| *was == credit.disposition);
        let wanted = called(before, credit);
        let is_renamed = match (old.map_or(wanted, |old| old.disposition), credit.disposition) {
            (Disposition::Late | Disposition::Counted, Disposition::AfterCancel) => after.state == State::UserCancelled,
            (Disposition::AfterCancel, Disposition::Counted | Disposition::Surplus) => {
                after.state != State::UserCancelled
            }
            _ => false,
        };
        let is_as_it_was = was.is_some() && (!is_moved || credit.finality == Finality::Orphaned);
        if credit.disposition != wanted && !is_as_it_was && !(is_decided && is_renamed) {
            return wrong(credit, &format!("expected {wanted:?}"));
        }
    }
    if is_decided && after.state == State::UserCancelled {
        let is_open = |credit: &&Credit| match credit.disposition {
            Disposition::Counted => credit.finality != Finality::Irreversible,
            disposition => disposition == Disposition::Late,
        };
        if let Some(credit) = rows().find(is_open) {
            return wrong(credit, "the session was cancelled before it");
        }
    } else if is_decided {
        let is_left = |credit: &&Credit| {
            credit.disposition == Disposition::AfterCancel
                || (credit.disposition == Disposition::Surplus && after.state != State::Completed)
        };
        if let Some(credit) = rows().find(is_left) {
            return wrong(credit, &format!("the request to cancel was dropped, and the session is {}", after.state));
        }
    }
    if write.moved_to(State::Completed) {
        let others = rows().filter(|credit| Some(credit.tx_id) != after.paid_by);
        let paid = Sums::of(others, after).paid;
        let text = || format!("{paid} of {} units arrived before the transfer that completed it", after.amount.units);
        hold(paid < u128::from(after.amount.units), text)?;
    }
    Ok(())
}

pub(super) fn ways_are_kept(write: &PaymentWrite<'_>) -> Verdict {
    let (after, observer) = (write.after, write.observer);
    for credit in write.written {
        let key = (credit.tx_id, credit.op_in_tx);
        let way = (credit.route, credit.memo_normalized);
        if let Some(old) = write.replaced.iter().find(|old| (old.tx_id, old.op_in_tx) == key) {
            let text =
                || format!("{} had the route {:?} and now has {way:?}", credit.tx_id, (old.route, old.memo_normalized));
            hold(
                (old.route, old.memo_normalized, old.seq) == (credit.route, credit.memo_normalized, credit.seq),
                text,
            )?;
            continue;
        }
        let has_it = |payment: &Payment| payment.claim.as_ref().is_some_and(|claim| claim.tx_id == credit.tx_id);
        let was_ever_claimed =
            observer.claims.get(&credit.tx_id).is_some_and(|claimed| claimed.purpose == Purpose::Session(after.id));
        let wanted = if observer.assignments_by_hand.contains(&key) {
            (Route::Manual, false)
        } else if write.before.is_some_and(has_it) {
            (Route::X402, false)
        } else {
            let is_free = credit.to == after.pay_to && credit.memo != memo_of(after.id);
            (Route::Wallet, is_free && !was_ever_claimed)
        };
        hold(way == wanted, || format!("{} has the route {wanted:?} and is stored with {way:?}", credit.tx_id))?;
    }
    Ok(())
}

/// The totals of a payment's transfers, smallest units.
pub(super) struct Sums {
    pub(super) paid: u128,
    seen: u128,
    fee: u128,
    surplus: u128,
    late: u128,
}

impl Sums {
    pub(super) fn of<'c>(rows: impl Iterator<Item = &'c Credit>, payment: &Payment) -> Self {
        let (mut counted, mut fee) = ([0u128; 2], [0u128; 2]);
        let (mut surplus, mut late) = (0, 0);
        for credit in rows.filter(|credit| credit.finality != Finality::Orphaned) {
            let units = u128::from(credit.money.units);
            let last = if credit.finality == Finality::Irreversible { units } else { 0 };
            match credit.disposition {
                Disposition::Counted => counted = [counted[0] + last, counted[1] + units],
                Disposition::Fee => fee = [fee[0] + last, fee[1] + units],
                Disposition::Surplus => surplus += units,
                Disposition::Late | Disposition::AfterCancel | Disposition::AfterFailure => late += units,
                Disposition::WrongCurrency | Disposition::SelfTransfer => {}
            }
        }
        // What is collected beyond the quoted fee is no part of the price.
        let [fee_paid, fee_seen] = fee.map(|units| units.min(u128::from(payment.quote.fee_units)));
        Self { paid: counted[0] + fee_paid, seen: counted[1] + fee_seen, fee: fee[1], surplus, late }
    }
}

pub(super) fn sums_follow_from_transfers(write: &PaymentWrite<'_>) -> Verdict {
    let payment = write.after;
    let refunds = payment.refunds.iter().filter(|refund| refund.money.currency == payment.amount.currency);
    let (refunded, shown) = (refunds.map(|refund| refund.money.units).sum::<u64>(), payment.refunded_units());
    hold(shown == refunded, || format!("{shown} units are shown as refunded, and {refunded} are"))?;
    let ends = |payment: &Payment| (payment.state, payment.is_reversed);
    if write.written.is_empty() && write.before.is_some_and(|before| ends(before) == ends(payment)) {
        return Ok(());
    }
    let sums = Sums::of(write.rows.values(), payment);
    let amount = u128::from(payment.amount.units);
    let is_completed = payment.state == State::Completed;
    let collects = matches!(payment.quote.fee_mode, FeeMode::Split { .. });
    let shown = |wanted: u128, shown: u64, what: &str| {
        hold(u128::from(shown) == wanted, || format!("{shown} units are shown as {what}, and {wanted} are"))
    };
    shown(sums.paid, payment.paid_units(), "paid")?;
    shown(sums.seen, payment.seen_units(), "seen")?;
    shown(if is_completed { sums.seen } else { sums.paid }, payment.received_units(), "received")?;
    let missing = if is_completed { 0 } else { amount.saturating_sub(sums.paid) };
    shown(missing, payment.remaining_units(), "missing")?;
    let above = if is_completed { sums.seen.saturating_sub(amount) } else { 0 };
    shown(above + sums.surplus, payment.overpaid_units(), "too much")?;
    shown(sums.late, payment.late_units(), "late")?;
    shown(sums.fee, payment.fee_collected_units(), "the fee")?;
    let lacks_fee = is_completed && collects && sums.fee < u128::from(payment.quote.fee_units);
    hold(payment.fee_is_missing() == lacks_fee, || format!("that a fee is missing is {lacks_fee}"))?;
    let has = |disposition| {
        write.rows.values().any(|credit| credit.disposition == disposition && credit.finality != Finality::Orphaned)
    };
    let wanted = [
        (Exception::Underpaid, !is_completed && sums.paid > 0 && sums.paid < amount),
        (Exception::Overpaid, is_completed && sums.seen > amount),
        (Exception::PaidAgain, has(Disposition::Surplus)),
        (Exception::PaidLate, has(Disposition::Late)),
        (Exception::PaidAfterCancel, has(Disposition::AfterCancel)),
        (Exception::PaidAfterFailure, has(Disposition::AfterFailure)),
        (Exception::WrongCurrency, has(Disposition::WrongCurrency)),
        (Exception::SelfTransfer, has(Disposition::SelfTransfer)),
        (Exception::Manual, write.rows.values().any(|credit| credit.route == Route::Manual)),
        (Exception::SettlementReversed, payment.is_reversed),
    ];
    let wanted: Vec<_> = wanted.into_iter().filter(|(_, is_so)| *is_so).map(|(exception, _)| exception).collect();
    let reported = payment.exceptions();
    hold(reported == wanted, || format!("its exceptions are {reported:?} and should be {wanted:?}"))
}

pub(super) fn cutoff_is_some_blocks_away(write: &PaymentWrite<'_>) -> Verdict {
    let Some(before) = write.before.filter(|before| before.cancellation.is_none()) else { return Ok(()) };
    let Some(request) = &write.after.cancellation else { return Ok(()) };
    let blocks = MARGIN_BLOCKS[usize::from(before.wallet_opened_at.is_some())];
    let wanted = (request.requested_at + write.observer.block_interval * blocks).min(before.expires_at + before.grace);
    hold(request.cutoff == wanted, || format!("its cutoff is {} and should be {wanted}", request.cutoff))
}
