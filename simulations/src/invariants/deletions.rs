//! Invariants of deletions, and of what must not change with them.

use super::*;

/// How far the engine's clock may be ahead of the time after a step, and how long a decision may take to be stored.
const CLOCK_AHEAD: Duration = Duration::from_secs(240);

pub(super) fn deletions_are_due(write: &PaymentWrite<'_>) -> Verdict {
    let (Some(before), after) = (write.before, write.after) else { return Ok(()) };
    let note = |payment: &Payment| payment.resolution.as_ref().map(|resolution| resolution.note.clone());
    let lost_metadata = before.metadata != after.metadata;
    let is_same_decision = before.resolution.as_ref().map(|one| one.at) == after.resolution.as_ref().map(|one| one.at);
    let lost_note = is_same_decision && note(before) != note(after);
    if !lost_metadata && !lost_note {
        return Ok(());
    }
    hold(after.metadata.is_empty() || !lost_metadata, || "its metadata changed".to_owned())?;
    hold(note(after).is_none_or(|note| note.is_empty()) || !lost_note, || {
        "the note of its decision changed".to_owned()
    })?;
    let mut expected = before.clone();
    (expected.version, expected.updated_at) = (after.version, after.updated_at);
    if lost_metadata {
        expected.metadata.clone_from(&after.metadata);
        hold(before.state.is_terminal(), || format!("its metadata is deleted while it is {}", before.state))?;
    } else {
        expected.resolution.clone_from(&after.resolution);
    }
    hold(expected == *after, || "more is deleted of it than its metadata or its note".to_owned())?;
    let observer = write.observer;
    if observer.deletions.contains(&after.id) || observer.has_jumped() {
        return Ok(());
    }
    let now = observer.true_time() + CLOCK_AHEAD;
    let (since, kept) = if lost_metadata {
        (before.updated_at, observer.metadata_retention)
    } else {
        (before.resolution.as_ref().map_or(now, |one| one.at), observer.note_retention)
    };
    let is_over = kept.is_some_and(|kept| since + kept <= now);
    hold(is_over, || {
        format!("a record with a retention of {kept:?} since {since} is deleted at {now} without a request")
    })
}

pub(super) fn wallet_reports_are_kept(write: &PaymentWrite<'_>) -> Verdict {
    let (Some(before), after) = (write.before, write.after) else {
        return hold(write.after.wallet_opened_at.is_none(), || "it begins with an opened wallet".to_owned());
    };
    if before.wallet_opened_at == after.wallet_opened_at {
        return Ok(());
    }
    hold(before.wallet_opened_at.is_none(), || "the time at which its wallet was opened changed".to_owned())?;
    let is_open = before.state == State::Pending && before.pending_cancellation().is_none();
    hold(is_open && after.state == before.state, || format!("a wallet is reported while it is {}", before.state))?;
    let deadline = before.expires_at + before.grace;
    let at = after.wallet_opened_at.unwrap_or(Timestamp::MAX);
    hold(at <= deadline, || format!("a wallet is reported at {at}, after {deadline}"))
}

pub(super) fn requests_are_in_time(write: &PaymentWrite<'_>) -> Verdict {
    let Some(before) = write.before else { return Ok(()) };
    let deadline = before.expires_at + before.grace;
    if let Some(claimed) = write.claim {
        hold(claimed.at <= deadline, || format!("it was claimed at {}, after {deadline}", claimed.at))?;
    }
    let Some(request) = write.after.cancellation.filter(|_| before.cancellation.is_none()) else { return Ok(()) };
    let at = request.requested_at;
    hold(at <= deadline, || format!("its cancellation was requested at {at}, after {deadline}"))
}
