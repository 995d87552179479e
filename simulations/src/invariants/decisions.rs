//! Invariants of merchants' decisions and refunds.

use engine::payment::RefundPlan;

use super::*;

pub(super) fn resolution_is_kept(write: &PaymentWrite<'_>) -> Verdict {
    let Some((before, decision)) = write.before.and_then(|before| Some((before, before.resolution.as_ref()?))) else {
        return Ok(());
    };
    // What is unusual and came later, or was not unusual then, was not decided about.
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

pub(super) fn acknowledged_decision_sticks(observer: &Observer, response: &Response<'_>) -> Verdict {
    let Response::Resolved(payment) = response else { return Ok(()) };
    let stored = observer.payments.get(&payment.id).and_then(|known| known.payment.resolution.as_ref());
    hold(stored.is_some(), || "a decision was answered and is not durable".to_owned())
}

pub(super) fn refund_is_owed(observer: &Observer, response: &Response<'_>) -> Verdict {
    let Response::Planned { payment, plan: RefundPlan { from, to, money, .. } } = response else { return Ok(()) };
    hold(*from == payment.pay_to, || format!("@{from} is to send back what @{} was paid", payment.pay_to))?;
    let meant = observer.final_transfers.iter().filter(|(key, _)| observer.target_of(**key) == Some(payment.id));
    let sent = meant.map(|(_, transfer)| transfer).filter(|t| t.from == *to && t.money.currency == money.currency);
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
    let meant = observer.final_transfers.iter().filter(|(key, _)| observer.target_of(**key) == Some(payment.id));
    let received = meant.map(|(_, transfer)| transfer).filter(|transfer| {
        let is_paid = transfer.to == payment.pay_to || observer.is_fee_account(&transfer.to);
        is_paid && transfer.from != payment.pay_to && transfer.money.currency == currency
    });
    let received: u64 = received.map(|transfer| transfer.money.units).sum();
    let owed: u64 = owed.iter().filter(|owed| owed.money.currency == currency).map(|owed| owed.money.units).sum();
    hold(owed == 0 || owed + payment.amount.units <= received, || {
        format!("{owed} of {received} units are owed back, and the price is {}", payment.amount.units)
    })
}

pub(super) fn refunds_are_noted(end: &End<'_>) -> FinalVerdict {
    for (key, transfer) in &end.observer.final_transfers {
        let Some(id) = match_refund_memo(&transfer.memo) else { continue };
        let Some(payment) = end.stored.get(&id) else { continue };
        let is_one = transfer.from == payment.pay_to && transfer.position.block_num <= end.scanned_num;
        if is_one && !payment.refunds.iter().any(|refund| (refund.tx_id, refund.op_in_tx) == *key) {
            return Err((format!("{} was sent back by {} and is not noted", transfer.money, key.0), Some(id)));
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
                    format!("{} is noted as sent back, and the chain says otherwise", refund.money),
                    Some(*id),
                ));
            }
            if payment.refunds[..at].iter().any(|other| (other.tx_id, other.op_in_tx) == key) {
                return Err((format!("{} is noted twice as sent back", refund.money), Some(*id)));
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
