//! Invariants of merchants' decisions and refunds.

use engine::{
    account::AccountName,
    money::Currency,
    payment::{Acceptance, RefundPlan, ResolutionKind},
};

use super::*;

pub(super) fn resolution_is_kept(write: &PaymentWrite<'_>) -> Verdict {
    let Some((before, decision)) = write.before.and_then(|before| Some((before, before.resolution.as_ref()?))) else {
        return Ok(());
    };
    // Later exceptions, and transfers that became exceptions later, are not covered by the resolution.
    let was_decided = |credit: &Credit| {
        let known = before.listed(credit.tx_id, credit.op_in_tx);
        credit.seq <= before.decided_transfers && known.is_none_or(is_unusual)
    };
    let is_reopened = write.written.iter().any(|credit| is_final_and_unusual(credit) && !was_decided(credit));
    let known = before.exceptions();
    let has_new = write.after.exceptions().iter().any(|exception| !known.contains(exception));
    let is_kept = write.after.resolution.is_some() || is_reopened || has_new;
    hold(is_kept, || format!("the decision of {} is gone", decision.by))
}

pub(super) fn decision_covers_what_came_before(write: &PaymentWrite<'_>) -> Verdict {
    let (Some(before), after) = (write.before, write.after) else { return Ok(()) };
    let (count, is_new) = (write.rows.len() as u64, after.resolution != before.resolution);
    if let Some(decision) = after.resolution.as_ref().filter(|decision| is_new && !decision.note.is_empty()) {
        let accepted =
            Acceptance { transfers: count, refunds: after.refunds.len() as u64, had_ended: after.state.is_terminal() };
        let wanted = match decision.kind {
            ResolutionKind::Accepted => Some(accepted),
            // Another decision about the same transfers revokes the acceptance.
            _ => before.accepted.filter(|accepted| accepted.transfers != count),
        };
        let is_right = (after.decided_transfers, after.accepted) == (count, wanted);
        return hold(is_right, || {
            let (decided, accepted) = (after.decided_transfers, after.accepted);
            format!("{decided} of {count} transfers are decided about, and {accepted:?} is accepted, not {wanted:?}")
        });
    }
    let is_same = (after.decided_transfers, after.accepted) == (before.decided_transfers, before.accepted);
    hold(is_same, || "what is decided about changed without a decision".to_owned())?;
    let was_decided = |credit: &Credit| {
        let old = write.replaced.iter().find(|old| (old.tx_id, old.op_in_tx) == (credit.tx_id, credit.op_in_tx));
        old.is_some_and(|old| {
            old.finality == Finality::Irreversible || (old.seq <= before.decided_transfers && is_unusual(old))
        })
    };
    let further = write.written.iter().find(|credit| is_final_and_unusual(credit) && !was_decided(credit));
    hold(further.is_none() || after.resolution.is_none(), || {
        format!("the resolution is still in force, and does not cover {:?}", further.map(|credit| credit.tx_id))
    })
}

pub(super) fn acknowledged_decision_sticks(observer: &Observer, response: &Response<'_>) -> Verdict {
    let Response::Resolved(payment) = response else { return Ok(()) };
    let stored = observer.payments.get(&payment.id).and_then(|known| known.payment.resolution.as_ref());
    hold(stored.is_some(), || "a resolution was acknowledged and is not durable".to_owned())
}

pub(super) fn refund_is_owed(observer: &Observer, response: &Response<'_>) -> Verdict {
    let Response::Planned { payment, plan: RefundPlan { from, to, money, .. } } = response else { return Ok(()) };
    hold(*from == payment.pay_to, || format!("@{from} is to send back what @{} was paid", payment.pay_to))?;
    let sent = observer.final_transfers_to(payment.id).filter(|t| t.from == *to && t.money.currency == money.currency);
    let sent: u64 = sent.map(|transfer| transfer.money.units).sum();
    let back = payment.refunds.iter().filter(|refund| refund.to == *to && refund.money.currency == money.currency);
    let back: u64 = back.map(|refund| refund.money.units).sum();
    hold(back + money.units <= sent, || {
        format!("@{to} sent {sent} units, was sent {back} back, and is to be sent {} more", money.units)
    })?;
    let Some(accepted) = observer.accepted.get(&payment.id) else { return Ok(()) };
    let kept = accepted.iter().filter_map(|key| observer.final_transfers.get(key));
    let kept = kept.filter(|transfer| transfer.from == *to && transfer.money.currency == money.currency);
    let kept: u64 = kept.map(|transfer| transfer.money.units).sum();
    hold(money.units <= sent.saturating_sub(kept), || {
        format!("@{to} sent {sent} units, of which the merchant keeps {kept}, and is to be sent {}", money.units)
    })
}

pub(super) fn price_is_kept(observer: &Observer, response: &Response<'_>) -> Verdict {
    let Response::Owed { payment, owed } = response else { return Ok(()) };
    let is_reversed = observer.payments.get(&payment.id).is_some_and(|known| known.payment.is_reversed);
    if payment.state != State::Completed || is_reversed {
        return Ok(());
    }
    let currency = payment.amount.currency;
    let owed: u64 = owed.iter().filter(|owed| owed.money.currency == currency).map(|owed| owed.money.units).sum();
    if owed == 0 {
        return Ok(());
    }
    let received = observer.final_transfers_to(payment.id).filter(|transfer| {
        let is_paid = transfer.to == payment.pay_to || observer.is_fee_account(&transfer.to);
        is_paid && transfer.from != payment.pay_to && transfer.money.currency == currency
    });
    let received: u64 = received.map(|transfer| transfer.money.units).sum();
    hold(owed + payment.amount.units <= received, || {
        format!("{owed} of {received} units are owed back, and the price is {}", payment.amount.units)
    })
}

pub(super) fn refunds_due_follow_from_transfers(observer: &Observer, response: &Response<'_>) -> Verdict {
    let Response::Owed { payment, owed } = response else { return Ok(()) };
    let is_current = observer.payments.get(&payment.id).is_some_and(|known| *known.payment == **payment);
    if !is_current || observer.is_affected_by_damage(payment) {
        return Ok(());
    }
    let wanted = due_of(payment, observer.rows.get(&payment.id).unwrap_or(&Rows::new()));
    let given = owed.iter().map(|due| ((due.to, due.money.currency), due.money.units)).collect();
    hold(wanted == given, || format!("{given:?} is owed back, and {wanted:?} should be"))
}

/// Computes what is owed back, by payer and currency.
fn due_of(payment: &Payment, rows: &Rows) -> BTreeMap<(AccountName, Currency), u64> {
    let paid = u64::try_from(Sums::of(rows.values(), payment).paid).unwrap_or(u64::MAX);
    let (is_completed, price) = (payment.state == State::Completed, payment.amount.units);
    // A completed payment owes nothing before its price is irreversible.
    let waits = |currency| is_completed && !payment.is_reversed && paid < price && currency == payment.amount.currency;
    let mut to_return = match payment.state {
        State::Completed => paid.saturating_sub(price),
        state if state.is_terminal() => u64::MAX,
        _ => 0,
    };
    let mut due = BTreeMap::<_, u64>::new();
    let mut newest_first: Vec<&Credit> = rows.values().collect();
    newest_first.sort_unstable_by_key(|credit| std::cmp::Reverse(credit.seq));
    for credit in newest_first {
        let is_accepted =
            |accepted: Acceptance| credit.seq <= accepted.transfers && (accepted.had_ended || is_unusual(credit));
        let is_left_out = credit.finality != Finality::Irreversible
            || waits(credit.money.currency)
            || payment.accepted.is_some_and(is_accepted);
        let units = match credit.disposition {
            _ if is_left_out => 0,
            Disposition::Counted => credit.money.units.min(to_return),
            Disposition::Fee | Disposition::SelfTransfer => 0,
            _ => credit.money.units,
        };
        if credit.disposition == Disposition::Counted {
            to_return -= units;
        }
        *due.entry((credit.from, credit.money.currency)).or_default() += units;
    }
    let before_acceptance = payment.accepted.map_or(0, |accepted| accepted.refunds);
    for refund in payment.refunds.iter().skip(usize::try_from(before_acceptance).unwrap_or(usize::MAX)) {
        let own = (refund.to, refund.money.currency);
        let others: Vec<_> = due.keys().filter(|key| **key != own && key.1 == own.1).copied().collect();
        let mut left = refund.money.units;
        for key in [own].into_iter().chain(others) {
            if let Some(units) = due.get_mut(&key) {
                let deducted = left.min(*units);
                *units -= deducted;
                left -= deducted;
            }
        }
    }
    due.retain(|_, units| *units > 0);
    due
}

pub(super) fn refunds_are_noted(end: &End<'_>) -> FinalVerdict {
    for (key, transfer) in &end.observer.final_transfers {
        let Some(id) = match_refund_memo(&transfer.memo) else { continue };
        let Some(payment) = end.stored.get(&id) else { continue };
        let is_one = transfer.from == payment.pay_to && transfer.position.block_num <= end.scanned_num;
        if is_one && !payment.refunds.iter().any(|refund| (refund.tx_id, refund.op_in_tx) == *key) {
            return Err((format!("the refund {} by {} is not recorded", transfer.money, key.0), Some(id)));
        }
    }
    for (id, payment) in &end.stored {
        for (at, refund) in payment.refunds.iter().enumerate() {
            let key = (refund.tx_id, refund.op_in_tx);
            let final_transfers = end.observer.final_transfers.get(&key);
            let is_own = |final_transfers: &Transfer| {
                final_transfers.from == payment.pay_to && final_transfers.to != payment.pay_to
            };
            if final_transfers.is_none_or(|final_transfers| {
                (final_transfers.to, final_transfers.money) != (refund.to, refund.money) || !is_own(final_transfers)
            }) {
                return Err((
                    format!("{} is recorded as refunded, and the chain shows otherwise", refund.money),
                    Some(*id),
                ));
            }
            if payment.refunds[..at].iter().any(|other| (other.tx_id, other.op_in_tx) == key) {
                return Err((format!("{} is recorded twice as refunded", refund.money), Some(*id)));
            }
        }
    }
    Ok(())
}

pub(super) fn is_unusual(credit: &Credit) -> bool {
    !matches!(credit.disposition, Disposition::Counted | Disposition::Fee)
}

pub(super) fn is_final_and_unusual(credit: &Credit) -> bool {
    credit.finality == Finality::Irreversible && is_unusual(credit)
}
