//! Invariants of every write of a payment.

use std::collections::BTreeSet;

use engine::{
    fields::MetadataValue,
    money::{Currency, HivePrice},
    payment::Exception,
};
use storage::EventRecord;

use super::*;

pub(super) fn terminal_is_terminal(write: &PaymentWrite<'_>) -> Verdict {
    let after = write.after.state;
    let Some(before) = write.before.map(|before| before.state) else {
        return hold(after == State::Pending, || format!("it begins as {after}"));
    };
    let allowed = match (before, after) {
        (State::Pending, State::Completed | State::Processing | State::UserCancelled | State::SystemCancelled)
        | (State::Processing, State::Completed | State::Failed) => true,
        (before, after) => before == after,
    };
    hold(allowed, || format!("it went from {before} to {after}"))
}

pub(super) fn versions_count(write: &PaymentWrite<'_>) -> Verdict {
    let expected = write.before.map_or(1, |before| before.version + 1);
    hold(write.after.version == expected, || format!("version {} where {expected} follows", write.after.version))
}

pub(super) fn writes_change_something(write: &PaymentWrite<'_>) -> Verdict {
    let Some(before) = write.before else { return Ok(()) };
    let is_repeated = write.written.is_empty()
        && Payment { version: before.version, updated_at: before.updated_at, ..write.after.clone() } == *before;
    hold(!is_repeated, || "it was written again as it was".to_owned())
}

pub(super) fn terms_never_change(write: &PaymentWrite<'_>) -> Verdict {
    let Some(before) = write.before else { return Ok(()) };
    let after = write.after;
    let terms = |payment: &Payment| {
        (
            (payment.merchant, payment.amount, payment.pay_to, payment.slug, payment.is_invoice, payment.livemode),
            (payment.created_at, payment.expires_at, payment.grace),
        )
    };
    let is_kept = terms(before) == terms(after)
        && before.quote == after.quote
        && before.description == after.description
        && (&before.redirect_url, &before.cancel_url) == (&after.redirect_url, &after.cancel_url);
    hold(is_kept, || "its terms changed after creation".to_owned())
}

pub(super) fn cancel_request_is_clean(write: &PaymentWrite<'_>) -> Verdict {
    let Some(before) = write.before.filter(|before| before.cancellation.is_none()) else { return Ok(()) };
    let Some(request) = &write.after.cancellation else { return Ok(()) };
    let seen = write.rows.values().any(|credit| {
        matches!(credit.disposition, Disposition::Counted | Disposition::Fee) && credit.finality != Finality::Orphaned
    });
    hold(!seen, || "its cancellation was accepted although a transfer for it was seen".to_owned())?;
    hold(before.claim.is_none(), || "its cancellation was accepted although a claim was open".to_owned())?;
    let deadline = before.expires_at + before.grace;
    hold(request.cutoff <= deadline, || format!("the cutoff {} is later than {deadline}", request.cutoff))
}

pub(super) fn cancel_request_is_kept(write: &PaymentWrite<'_>) -> Verdict {
    let Some(before) = write.before.and_then(|before| before.cancellation) else { return Ok(()) };
    let after = write.after.cancellation;
    let terms = |request: Cancellation| (request.by, request.requested_at, request.cutoff);
    hold(after.map(terms) == Some(terms(before)), || "the request to cancel was replaced".to_owned())?;
    let reopened = before.dropped_at.is_some() && after.is_some_and(|request| request.dropped_at != before.dropped_at);
    hold(!reopened, || "a dropped cancellation request reappeared".to_owned())
}

pub(super) fn cancel_is_decided_by_block_time(write: &PaymentWrite<'_>) -> Verdict {
    let Some(request) = write.before.and_then(Payment::pending_cancellation) else {
        return hold(!write.moved_to(State::UserCancelled), || "it was cancelled without a request".to_owned());
    };
    let (payment, observer, cutoff) = (write.after, write.observer, request.cutoff);
    let in_time = observer.paid_until(payment, cutoff);
    if write.moved_to(State::UserCancelled) {
        hold(observer.final_time > cutoff, || {
            format!("it was cancelled at {cutoff} and the newest irreversible block is of {}", observer.final_time)
        })?;
        return hold(in_time == 0, || format!("it was cancelled though {in_time} units came up to the cutoff"));
    }
    if payment.pending_cancellation().is_none() {
        return hold(in_time > 0, || {
            "its cancellation request was dropped although no transfer had arrived".to_owned()
        });
    }
    Ok(())
}

pub(super) fn nothing_is_claimed_while_cancelling(write: &PaymentWrite<'_>) -> Verdict {
    let is_asked = write.before.is_some_and(|before| before.pending_cancellation().is_some());
    hold(!is_asked || write.claim.is_none(), || "a claim was accepted while it was being cancelled".to_owned())
}

pub(super) fn transfer_credits_one_session(write: &PaymentWrite<'_>) -> Verdict {
    let mut keys: Vec<_> = write.after.transfers.iter().map(|credit| (credit.tx_id, credit.op_in_tx)).collect();
    for credit in write.written.iter().filter(|credit| credit.finality == Finality::Irreversible) {
        let other = write.observer.credited.get(&(credit.tx_id, credit.op_in_tx)).filter(|id| **id != write.after.id);
        hold(other.is_none(), || format!("{} is credited to another session, too", credit.tx_id))?;
    }
    keys.sort_unstable();
    let twice = keys.windows(2).find(|pair| pair[0] == pair[1]);
    hold(twice.is_none(), || format!("{:?} is credited twice", twice.map(|pair| pair[0])))
}

pub(super) fn credit_is_on_the_chain(write: &PaymentWrite<'_>) -> Verdict {
    for credit in write.written.iter().filter(|credit| credit.finality == Finality::Irreversible) {
        let Some(real) = write.observer.final_transfers.get(&(credit.tx_id, credit.op_in_tx)) else {
            return Err(format!(
                "{} from {} over {} is on no irreversible block",
                credit.tx_id, credit.from, credit.money
            ));
        };
        let same = real.money == credit.money
            && real.from == credit.from
            && real.to == credit.to
            && real.memo == credit.memo
            && credit.block.is_none_or(|block| block.position == real.position && block.time == real.block_time);
        hold(same, || format!("{} is credited as {} and is {} on the chain", credit.tx_id, credit.money, real.money))?;
        let target = write.observer.target_of((credit.tx_id, credit.op_in_tx));
        hold(target == Some(write.after.id), || format!("{} does not name this session", credit.tx_id))?;
    }
    Ok(())
}

pub(super) fn final_credit_never_changes(write: &PaymentWrite<'_>) -> Verdict {
    let mut finals = write.replaced.iter().filter(|credit| credit.finality == Finality::Irreversible);
    // A final credit does not change, except for its disposition when this write decides a cancellation request.
    let is_decided = write.before.is_some_and(|before| before.pending_cancellation().is_some())
        && write.after.pending_cancellation().is_none();
    let is_kept = |credit: &&&Credit| {
        write.written.iter().any(|after| {
            after == **credit
                || (is_decided && Credit { disposition: credit.disposition, ..after.clone() } == ***credit)
        })
    };
    let lost = finals.find(|credit| !is_kept(&credit));
    hold(lost.is_none(), || format!("the final credit {} changed", lost.map_or(TxId::default(), |credit| credit.tx_id)))
}

pub(super) fn snapshot_matches_its_rows(write: &PaymentWrite<'_>) -> Verdict {
    let (payment, rows) = (write.after, write.rows);
    hold(payment.transfers.len() <= LISTED_TRANSFERS_MAX, || format!("it lists {}", payment.transfers.len()))?;
    let differs = payment.transfers.iter().find(|listed| {
        let row = rows.get(&(listed.tx_id, listed.op_in_tx));
        row.is_none_or(|row| **listed != Credit { memo: shown_memo(row.memo.clone()), ..row.clone() })
    });
    hold(differs.is_none(), || format!("it lists {:?}, which its row is not", differs.map(|listed| listed.tx_id)))?;
    let is_ordered = payment.transfers.is_sorted_by(|older, newer| older.seq < newer.seq);
    hold(is_ordered, || "it lists its transfers in another order than they arrived".to_owned())?;
    if rows.len() > LISTED_TRANSFERS_MAX {
        let listed: Vec<u64> = payment.transfers.iter().map(|credit| credit.seq).collect();
        let wanted = listed_of(write);
        hold(listed == wanted, || format!("it lists the transfers {listed:?} and should list {wanted:?}"))?;
    }
    hold(payment.totals() == Totals::of(rows.values()), || {
        format!("its sums are not those of its {} transfers: it has {:?}", rows.len(), payment.unlisted)
    })
}

/// Returns the numbers of the transfers that a payment should list, of those that it listed before and those that the transition
/// concerns: those of its claim, those that completed it, those of agents, and the newest.
fn listed_of(write: &PaymentWrite<'_>) -> Vec<u64> {
    let payment = write.after;
    let rank = |credit: &Credit| {
        let is_claimed = payment.claim.as_ref().is_some_and(|claim| claim.tx_id == credit.tx_id);
        let completed_it = payment.paid_by == Some(credit.tx_id);
        (is_claimed, completed_it, credit.route == Route::X402, credit.seq)
    };
    let before = write.before.map_or(&[][..], |before| &before.transfers);
    let read: BTreeSet<u64> =
        before.iter().chain(write.written).chain(&payment.transfers).map(|credit| credit.seq).collect();
    let mut ranked: Vec<&Credit> = write.rows.values().filter(|credit| read.contains(&credit.seq)).collect();
    ranked.sort_unstable_by_key(|credit| rank(credit));
    let mut listed: Vec<u64> = ranked.iter().rev().take(LISTED_TRANSFERS_MAX).map(|credit| credit.seq).collect();
    listed.sort_unstable();
    listed
}

pub(super) fn completed_is_paid(write: &PaymentWrite<'_>) -> Verdict {
    let payment = write.after;
    if !write.moved_to(State::Completed) {
        return Ok(());
    }
    let amount = payment.amount;
    // A claimed transaction is in time if it was claimed in time; a wallet's transfer must be in a block in time.
    let deadline = payment.expires_at + payment.grace;
    let is_claimed =
        |tx_id| write.observer.claims.get(&tx_id).is_some_and(|c| c.purpose == Purpose::Session(payment.id));
    let in_time = |credit: &&Credit| credit.block.is_some_and(|b| b.time <= deadline) || is_claimed(credit.tx_id);
    let on_chain: u64 = write
        .rows
        .values()
        .filter(|credit| counts(credit, payment))
        .filter(in_time)
        .filter(|credit| write.observer.final_transfers.contains_key(&(credit.tx_id, credit.op_in_tx)))
        .map(|credit| credit.money.units)
        .sum();
    if on_chain >= amount.units {
        return Ok(());
    }
    // Not by irreversible transfers; check its claim.
    let claim = write.before.and_then(|before| before.claim.as_ref()).filter(|c| payment.paid_by == Some(c.tx_id));
    let Some(claim) = claim else {
        return Err(format!("it completed with {on_chain} of {} irreversible units and no claim", amount.units));
    };
    let claimed: u64 = claim.transfers.iter().map(|transfer| transfer.money.units).sum();
    hold(claimed >= amount.units, || format!("its claim pays {claimed} of {} units", amount.units))?;
    let observer = write.observer;
    let sure = match claim.finality {
        ClaimFinality::Accepted => observer.ever_accepted.contains(&claim.tx_id),
        ClaimFinality::InBlock => observer.ever_included.contains(&claim.tx_id),
        ClaimFinality::Irreversible => false,
    };
    hold(sure, || format!("it completed on {} without the evidence that its claim requires", claim.tx_id))
}

/// Returns whether a credit is final money toward the amount.
pub(super) fn counts(credit: &Credit, payment: &Payment) -> bool {
    credit.finality == Finality::Irreversible
        && credit.money.currency == payment.amount.currency
        && credit.from != payment.pay_to
        && matches!(credit.disposition, Disposition::Counted | Disposition::Fee)
}

pub(super) fn one_event_per_transition(write: &PaymentWrite<'_>) -> Verdict {
    let Some(before) = write.before else {
        return hold(write.event.is_none(), || "a creation was announced".to_owned());
    };
    let moved = before.state != write.after.state;
    let Some(event) = write.event else {
        return hold(!moved, || format!("{} was not announced", write.after.state));
    };
    hold(moved, || "an event without a transition".to_owned())?;
    let wanted = whole_body(write.after, before.state, before.sequence + 1, event);
    event_matches(event, &wanted)
}

fn event_matches(event: &EventRecord, wanted: &serde_json::Value) -> Verdict {
    let reported: serde_json::Value = serde_json::from_slice(&event.body).map_err(|error| error.to_string())?;
    hold(reported == *wanted, || format!("the event is {reported} and should be {wanted}"))
}

/// Builds the body of an event as the interface describes it.
fn whole_body(payment: &Payment, previous: State, sequence: u32, event: &EventRecord) -> serde_json::Value {
    let (id, at) = (payment.id.to_string(), event.at.to_string());
    let exceptions: Vec<_> = payment.exceptions().into_iter().map(Exception::as_str).collect();
    let text = |value: &MetadataValue| match value {
        MetadataValue::Text(text) => serde_json::json!(text),
        MetadataValue::List(list) => serde_json::json!(list),
    };
    let metadata: serde_json::Map<_, _> =
        payment.metadata.iter().map(|(key, value)| (key.clone(), text(value))).collect();
    let mut body = serde_json::json!({
        "type": event.kind.as_str(),
        "id": event.id.to_string(),
        "createdAt": at,
        "timestamp": at,
        "data": {
            "id": id,
            "paymentId": id,
            "merchantId": payment.merchant.to_string(),
            "status": payment.state.as_str(),
            "previousStatus": previous.as_str(),
            "providerId": "hive",
            "sequence": sequence,
            "exceptions": exceptions,
            "metadata": metadata,
            "livemode": payment.livemode,
        },
    });
    if let Some(paid_by) = payment.paid_by {
        body["data"]["internalId"] = serde_json::json!(paid_by.to_string());
    }
    body
}

/// Returns the disposition of a final transfer if it is the payment's first of that disposition.
fn first_of_a_kind(write: &PaymentWrite<'_>) -> Option<&'static str> {
    write.before?;
    let is_final = |credit: &&Credit, kind| credit.disposition == kind && credit.finality == Finality::Irreversible;
    let kinds = [
        (Disposition::Surplus, "paid_again"),
        (Disposition::Late, "paid_late"),
        (Disposition::AfterCancel, "paid_after_cancel"),
        (Disposition::AfterFailure, "paid_after_failure"),
        (Disposition::WrongCurrency, "wrong_currency"),
        (Disposition::SelfTransfer, "self_transfer"),
    ];
    let is_first = |kind: Disposition| {
        let is_written = |credit: &Credit| {
            let is_it = |now: &Credit| (now.tx_id, now.op_in_tx) == (credit.tx_id, credit.op_in_tx);
            write.written.iter().any(is_it)
        };
        write.written.iter().any(|credit| is_final(&credit, kind))
            && !write.replaced.iter().any(|credit| is_final(&credit, kind))
            && !write.rows.values().any(|credit| is_final(&credit, kind) && !is_written(credit))
    };
    kinds.into_iter().find(|(kind, _)| is_first(*kind)).map(|(_, word)| word)
}

pub(super) fn exceptions_are_announced(write: &PaymentWrite<'_>) -> Verdict {
    let (after, before) = (write.after, write.before);
    let words = |payment: &Payment| payment.exceptions().into_iter().map(Exception::as_str).collect::<Vec<_>>();
    if let Some(word) = first_of_a_kind(write) {
        let reported = write.exception.and_then(|event| serde_json::from_slice::<serde_json::Value>(&event.body).ok());
        let new = reported.as_ref().and_then(|reported| reported["data"]["newExceptions"].as_array());
        let is_announced = new.is_some_and(|new| new.iter().any(|reported| reported == word));
        hold(is_announced, || format!("the first transfer that is {word} arrived without an event"))?;
    }
    let Some(event) = write.exception else {
        let Some(before) = before else { return Ok(()) };
        let was_known = |credit: &Credit| match before.listed(credit.tx_id, credit.op_in_tx) {
            Some(known) => is_final_and_unusual(known),
            None => credit.seq <= before.transfer_count(),
        };
        let is_notable = |credit: &&Credit| credit.money.units.saturating_mul(10) >= after.amount.units;
        let silent = write.written.iter().filter(is_notable).find(|c| is_final_and_unusual(c) && !was_known(c));
        return hold(silent.is_none(), || format!("{:?} arrived without an event", silent.map(|credit| credit.money)));
    };
    let reported: serde_json::Value = serde_json::from_slice(&event.body).map_err(|error| error.to_string())?;
    let new = reported["data"]["newExceptions"].as_array().cloned().unwrap_or_default();
    let has = words(after);
    let is_had = |word: &serde_json::Value| word.as_str().is_some_and(|word| has.contains(&word));
    hold(!new.is_empty() && new.iter().all(is_had), || format!("new exceptions {new:?} where it has {has:?}"))?;
    hold(before.is_some(), || "exceptions are announced with the creation".to_owned())?;
    let mut wanted = whole_body(after, after.previous_state.unwrap_or(after.state), after.sequence, event);
    wanted["data"]["newExceptions"] = new.into();
    event_matches(event, &wanted)
}

pub(super) fn refunds_are_announced(write: &PaymentWrite<'_>) -> Verdict {
    let Some(before) = write.before else {
        return hold(write.refund.is_none(), || "a refund is announced with the creation".to_owned());
    };
    let (after, new) = (write.after, write.after.refunds.get(before.refunds.len()));
    let (Some(event), Some(refund)) = (write.refund, new) else {
        return hold(write.refund.is_none() && new.is_none(), || {
            format!("the new refund is {new:?}, and it is announced: {}", write.refund.is_some())
        });
    };
    let mut wanted = whole_body(after, after.previous_state.unwrap_or(after.state), after.sequence, event);
    wanted["data"]["refund"] = serde_json::json!({
        "txId": refund.tx_id.to_string(),
        "opIndex": refund.op_in_tx,
        "to": refund.to.to_string(),
        "value": refund.money.units.to_string(),
        "formatted": refund.money.to_string(),
        "currency": refund.money.currency.code(),
        "at": refund.at.to_string(),
    });
    event_matches(event, &wanted)
}

pub(super) fn transfers_are_called_what_they_are(write: &PaymentWrite<'_>) -> Verdict {
    let (after, before) = (write.after, write.before);
    let deadline = after.expires_at + after.grace;
    // A transfer of a released claim is treated like any other.
    let is_claimed = |tx_id| {
        let claimed = write.observer.claims.get(&tx_id).filter(|_| !write.observer.released_claims.contains(&tx_id));
        claimed.is_some_and(|claim| claim.purpose == Purpose::Session(after.id))
    };
    let is_asked = after.cancellation.is_some_and(|request| request.dropped_at.is_none());
    for credit in write.rows.values() {
        let Credit { disposition, tx_id, .. } = credit;
        let wrong = |why: &str| Err(format!("{tx_id} is classified as {disposition:?}: {why}"));
        let is_other = credit.money.currency != after.amount.currency;
        let is_own = !is_other && credit.from == after.pay_to;
        let is_fee = !is_other && !is_own && credit.to != after.pay_to;
        for (is_so, wanted) in
            [(is_other, Disposition::WrongCurrency), (is_own, Disposition::SelfTransfer), (is_fee, Disposition::Fee)]
        {
            if is_so != (*disposition == wanted) {
                return wrong(&format!("{is_so} that it is {wanted:?}"));
            }
        }
        let is_after = credit.block.is_some_and(|block| block.time > deadline) && !is_claimed(*tx_id);
        let fits = match disposition {
            Disposition::Surplus => after.state == State::Completed,
            Disposition::Late => {
                after.state == State::SystemCancelled || (is_after && after.state != State::UserCancelled)
            }
            Disposition::AfterCancel => is_asked,
            Disposition::AfterFailure => after.state == State::Failed,
            _ => true,
        };
        if !fits {
            return wrong(&format!("the session is {}, asked to be cancelled: {is_asked}", after.state));
        }
    }
    // The disposition of a transfer to an ended session follows from its final state.
    let was_known =
        |credit: &Credit| write.replaced.iter().any(|old| (old.tx_id, old.op_in_tx) == (credit.tx_id, credit.op_in_tx));
    let plain = |credit: &&Credit| {
        let of_itself = [Disposition::WrongCurrency, Disposition::SelfTransfer, Disposition::Fee];
        !was_known(credit) && !of_itself.contains(&credit.disposition) && after.paid_by != Some(credit.tx_id)
    };
    let wanted = match before.map(|before| before.state) {
        Some(State::Completed) => Disposition::Surplus,
        Some(State::Failed) => Disposition::AfterFailure,
        Some(State::UserCancelled) => Disposition::AfterCancel,
        Some(State::SystemCancelled) => Disposition::Late,
        _ => return Ok(()),
    };
    let other = write.written.iter().filter(plain).find(|credit| credit.disposition != wanted);
    hold(other.is_none(), || {
        let other = other.map(|credit| (credit.tx_id, credit.disposition));
        format!("{other:?} arrived when the session was {}", after.state)
    })
}

pub(super) fn sequence_has_no_gap(write: &PaymentWrite<'_>) -> Verdict {
    let expected = match write.before {
        None => 1,
        Some(before) if before.state == write.after.state => before.sequence,
        Some(before) => before.sequence + 1,
    };
    // New exceptions are one more announcement, and so is a refund.
    let announced = u32::from(write.exception.is_some()) + u32::from(write.refund.is_some());
    hold(write.after.sequence == expected + announced, || {
        format!("sequence {} where {expected} follows", write.after.sequence)
    })
}

pub(super) fn one_claim_at_a_time(write: &PaymentWrite<'_>) -> Verdict {
    let before = write.before.and_then(|before| before.claim.as_ref());
    let Some(after) = write.after.claim.as_ref().filter(|claim| Some(*claim) != before) else { return Ok(()) };
    hold(before.is_none(), || format!("the claim on {} replaced another", after.tx_id))?;
    hold(write.before.is_some_and(|before| before.state == State::Pending), || "claimed when not pending".to_owned())?;
    let with = write.claim.is_some_and(|claimed| {
        claimed.tx_id == after.tx_id
            && claimed.nonce == after.nonce
            && claimed.purpose == Purpose::Session(write.after.id)
    });
    hold(with, || format!("the claim on {} is not permanent", after.tx_id))?;
    let own = memo_of(write.after.id);
    let foreign = after.transfers.iter().find(|transfer| {
        transfer.to == write.after.pay_to && transfer.memo != own && !transfer.memo.starts_with("x402:")
    });
    hold(foreign.is_none(), || format!("{} names another session and was claimed for this one", after.tx_id))?;
    let fee_memo = format!("fee-{}", write.after.id);
    let other = after.transfers.iter().find(|transfer| transfer.to != write.after.pay_to && transfer.memo != fee_memo);
    hold(other.is_none(), || format!("the fee of {} names another session and was claimed", after.tx_id))
}

pub(super) fn failure_is_certain(write: &PaymentWrite<'_>) -> Verdict {
    let reversed = write.after.is_reversed && write.before.is_some_and(|before| !before.is_reversed);
    if !write.moved_to(State::Failed) && !reversed {
        return Ok(());
    }
    let Some(claim) = write.before.and_then(|before| before.claim.as_ref()) else {
        return Err("it failed without a claim".to_owned());
    };
    let observer = write.observer;
    hold(observer.final_time > claim.expiration, || {
        format!("{} can still be included: the newest irreversible block is of {}", claim.tx_id, observer.final_time)
    })?;
    let is_there =
        claim.transfers.iter().any(|transfer| observer.final_transfers.contains_key(&(claim.tx_id, transfer.op_in_tx)));
    hold(!is_there, || format!("{} is irreversible on the chain", claim.tx_id))
}

pub(super) fn expiry_has_evidence(write: &PaymentWrite<'_>) -> Verdict {
    if !write.moved_to(State::SystemCancelled) {
        return Ok(());
    }
    let (payment, observer) = (write.after, write.observer);
    let deadline = payment.expires_at + payment.grace;
    hold(observer.final_time > deadline, || {
        format!("it expired at {deadline} and the newest irreversible block is of {}", observer.final_time)
    })?;
    let claim = write.before.and_then(|before| before.claim.as_ref());
    hold(claim.is_none(), || "it expired with a claim in flight".to_owned())?;
    let in_time = observer.paid_in_time(payment);
    hold(in_time < payment.amount.units, || format!("it expired though {in_time} units were paid in time"))
}

pub(super) fn no_state_from_the_future(write: &PaymentWrite<'_>) -> Verdict {
    let included = &write.observer.ever_included;
    let unknown = write.written.iter().find(|credit| credit.block.is_some() && !included.contains(&credit.tx_id));
    hold(unknown.is_none(), || {
        format!("{} was never in a block", unknown.map_or(TxId::default(), |credit| credit.tx_id))
    })
}

pub(super) fn paid_promptly_completes(write: &PaymentWrite<'_>) -> Verdict {
    let (payment, observer) = (write.after, write.observer);
    if observer.is_affected_by_damage(payment) {
        return Ok(());
    }
    let Some(prompt_ms) = observer.prompt_ms.filter(|_| write.moved_to(State::Completed)) else { return Ok(()) };
    let by_claim = write.before.is_some_and(|before| before.claim.is_some()) || payment.claim.is_some();
    let by_hand = write.rows.values().any(|credit| credit.route == Route::Manual);
    if by_claim || by_hand {
        return Ok(());
    }
    let counted = write.rows.values().filter(|credit| counts(credit, payment));
    let blocks = counted.filter_map(|credit| credit.block).map(|block| block.position.block_num);
    let last_ms = blocks.filter_map(|number| observer.finalized_ms.get(&number)).max();
    let stored_ms = observer.payments.get(&payment.id).map_or(0, |known| known.stored_ms);
    // A session that another engine created may arrive here after its transfers.
    let Some(last_ms) = last_ms.filter(|last_ms| **last_ms > stored_ms) else { return Ok(()) };
    let took_ms = observer.now_ms.saturating_sub(*last_ms);
    hold(took_ms <= prompt_ms, || format!("it completed {took_ms} ms after its money was irreversible"))
}

/// How far HBD may be off its peg and count as one dollar, in millionths of a dollar.
const PEG_BOUNDS_MICRO_USD: u64 = 50_000;

pub(super) fn worth_is_the_markets(write: &PaymentWrite<'_>) -> Verdict {
    let (payment, usd_cents) = (write.after, write.after.quote.usd_cents);
    let is_elsewhere = write.observer.other_engine.contains(&payment.id);
    let is_opened = write.before.is_none() && !payment.is_invoice && !is_elsewhere;
    if !is_opened || payment.amount.currency != Currency::Hbd {
        return Ok(());
    }
    let worth = |micro_usd: u64| {
        let is_at_peg = micro_usd.abs_diff(1_000_000) <= PEG_BOUNDS_MICRO_USD;
        payment.amount.units * if is_at_peg { 1_000_000 } else { micro_usd } / 10_000_000
    };
    // A price that becomes durable while a payment is opened may come too late for it.
    let readings = &write.observer.hbd_read;
    hold(readings.iter().any(|micro_usd| worth(micro_usd) == usd_cents), || {
        format!("{} is worth {usd_cents} cents, and HBD was read last as {readings:?} millionths", payment.amount)
    })
}

pub(super) fn worth_is_the_witnesses(write: &PaymentWrite<'_>) -> Verdict {
    let (payment, observer) = (write.after, write.observer);
    let is_opened = write.before.is_none() && !observer.other_engine.contains(&payment.id);
    if !is_opened || payment.amount.currency != Currency::Hive {
        return Ok(());
    }
    let worth = |price: &HivePrice| {
        let units = u128::from(payment.amount.units) * u128::from(price.base_hbd_units);
        units / u128::from(price.quote_hive_units) / 10
    };
    // A price that becomes durable while a payment is opened may come too late for it.
    let prices = &observer.hive_read;
    hold(prices.iter().any(|price| worth(&price) == u128::from(payment.quote.usd_cents)), || {
        format!("{} is worth {} cents, and HIVE was read last as {prices:?}", payment.amount, payment.quote.usd_cents)
    })?;
    let rate = payment.quote.rate.map(|rate| rate.price);
    hold(rate.is_some_and(|rate| prices.iter().any(|price| price == rate)), || {
        format!("it keeps {rate:?} as its price, and HIVE was read last as {prices:?}")
    })
}

pub(super) fn states_keep_their_time(write: &PaymentWrite<'_>) -> Verdict {
    let after = write.after;
    let is_completed = after.state == State::Completed;
    hold(after.completed_at.is_some() == is_completed, || {
        format!("it is {} and completed at {:?}", after.state, after.completed_at)
    })?;
    hold(after.paid_by.is_some() == is_completed, || format!("it is {} and paid by {:?}", after.state, after.paid_by))?;
    let Some(before) = write.before else {
        let at = (after.previous_state, after.updated_at);
        return hold(at == (None, after.created_at), || format!("it begins with {at:?}"));
    };
    let previous = if before.state == after.state { before.previous_state } else { Some(before.state) };
    hold(after.previous_state == previous, || {
        format!("it left {:?} and records {:?}", previous, after.previous_state)
    })?;
    let is_new = before.state != after.state && is_completed;
    let completed_at = if is_new { Some(after.updated_at) } else { before.completed_at };
    hold(after.completed_at == completed_at, || {
        format!("it completed at {completed_at:?} and records {:?}", after.completed_at)
    })?;
    let paid_by = before.paid_by.or(after.paid_by);
    hold(after.paid_by == paid_by, || format!("it was paid by {paid_by:?} and records {:?}", after.paid_by))
}

pub(super) fn claims_are_as_sure_as_set(write: &PaymentWrite<'_>) -> Verdict {
    let before = write.before.and_then(|before| before.claim.as_ref());
    let Some(claim) = write.after.claim.as_ref().filter(|_| before.is_none()) else { return Ok(()) };
    let Some((from_cents, finality)) = write.observer.claim_finality else { return Ok(()) };
    let wanted = if write.after.quote.usd_cents >= from_cents { ClaimFinality::Irreversible } else { finality };
    hold(claim.finality == wanted, || format!("its claim completes it {:?}, and should {wanted:?}", claim.finality))
}
