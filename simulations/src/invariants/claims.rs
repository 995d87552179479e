//! Invariants of claimed transactions, and of the responses to agents.

use super::*;

pub(super) fn claimed_before_broadcast(broadcast: &Broadcast<'_>) -> Verdict {
    let claim = broadcast.observer.claims.get(&broadcast.tx_id);
    hold(claim.is_some(), || format!("{} was broadcast and is not claimed", broadcast.tx_id))
}

pub(super) fn settled_is_paid(observer: &Observer, response: &Response<'_>) -> Verdict {
    let Response::Settled { payment, settled } = response else { return Ok(()) };
    let (tx_id, known) = (settled.tx_id, observer.payments.get(payment).map(|known| &known.payment));
    let paid = known.filter(|known| known.state == State::Completed && known.paid_by == Some(tx_id));
    let Some(paid) = paid else {
        return Err(format!("success for {tx_id}, which has not durably completed the session"));
    };
    let mut credits = paid.transfers.iter().filter(|credit| credit.tx_id == tx_id && credit.to == paid.pay_to);
    let Some(credit) = credits.next() else { return Ok(()) };
    hold(settled.payer == credit.from && settled.amount == credit.money, || {
        format!("{} of {} is reported where {} of {} arrived", settled.amount, settled.payer, credit.money, credit.from)
    })
}

pub(super) fn success_is_reported_once(observer: &Observer, response: &Response<'_>) -> Verdict {
    let Response::Facilitated { tx_id } = response else { return Ok(()) };
    hold(!observer.reported.contains(tx_id), || format!("{tx_id} was reported as a success twice"))?;
    let settled = observer
        .claims
        .get(tx_id)
        .is_some_and(|claimed| matches!(claimed.outcome, ClaimOutcome::Settled { is_reported: true, .. }));
    hold(settled, || format!("{tx_id} is reported as a success and is not durably settled"))
}

pub(super) fn refused_is_not_taken(end: &End<'_>) -> FinalVerdict {
    let observer = end.observer;
    // A transaction in a removed block has no effect.
    let mut refused = observer.refused.difference(&observer.own_broadcasts);
    // A restored store cannot know what was broadcast since its backup: its payer gets a refusal.
    let may_be = |tx_id: &TxId| observer.is_misled(*tx_id) || observer.forgotten.contains(tx_id);
    let taken = refused.find(|tx_id| observer.final_ops.contains_key(*tx_id) && !may_be(tx_id));
    match taken {
        None => Ok(()),
        Some(tx_id) => {
            Err((format!("{tx_id} was refused for good and is irreversible on the chain"), observer.target(*tx_id)))
        }
    }
}

pub(super) fn released_claims_never_settle(end: &End<'_>) -> FinalVerdict {
    let observer = end.observer;
    // A payer that broadcasts its transaction itself may do so at any time.
    let may_be = |tx_id: &TxId| observer.own_broadcasts.contains(tx_id) || observer.is_misled(*tx_id);
    if let Some(tx_id) =
        observer.released_claims.iter().find(|tx_id| observer.final_ops.contains_key(*tx_id) && !may_be(tx_id))
    {
        return Err((format!("the claim on {tx_id} was released and it is on the chain"), observer.target(*tx_id)));
    }
    for claimed in observer.claims.values() {
        let is_over = matches!(claimed.outcome, ClaimOutcome::Refused { .. } | ClaimOutcome::Expired);
        let is_there = observer.final_ops.contains_key(&claimed.tx_id);
        if is_over && is_there && !may_be(&claimed.tx_id) {
            let text = format!(
                "{} is irreversible on the chain and its outcome is stored as {:?}",
                claimed.tx_id, claimed.outcome
            );
            return Err((text, None));
        }
    }
    Ok(())
}

pub(super) fn expired_claims_leave_nothing(end: &End<'_>) -> FinalVerdict {
    let observer = end.observer;
    for claimed in observer.claims.values() {
        let is_over = matches!(claimed.outcome, ClaimOutcome::Refused { .. } | ClaimOutcome::Expired);
        let Purpose::Session(id) = claimed.purpose else { continue };
        let Some(payment) = end.stored.get(&id).filter(|_| is_over) else { continue };
        let tx_id = claimed.tx_id;
        let is_there = observer.final_ops.contains_key(&tx_id);
        let rows = observer.rows.get(&id).into_iter().flat_map(|rows| rows.values());
        let kept = rows.filter(|credit| credit.tx_id == tx_id && credit.finality != Finality::Orphaned).count();
        let flaw = if payment.claim.as_ref().is_some_and(|claim| claim.tx_id == tx_id) {
            Some("its payment still has the claim")
        } else if payment.paid_by == Some(tx_id) && !is_there && !payment.is_reversed {
            Some("its payment is completed by it")
        } else if kept > 0 && !is_there && !payment.is_reversed {
            Some("a transfer of it is stored, and is not on the ledger")
        } else if payment.state == State::Processing {
            Some("its payment is still processing")
        } else {
            None
        };
        if let Some(why) = flaw {
            return Err((format!("the claim of {tx_id} is {:?}: {why}", claimed.outcome), Some(id)));
        }
    }
    Ok(())
}
