//! Claims and unmatched transfers: a claim of a transaction and the assignment of one of its transfers exclude each other.

use engine::{
    account::AccountName,
    ids::PaymentId,
    ledger::{ChainPosition, TxId},
    time::Timestamp,
    x402::{ClaimOutcome, ClaimRecord},
};

use crate::{
    batch::{CommitError, Handling, Unmatched},
    embedded::commit::{ledger_entries, prepared::unique_keys},
    postgres::{
        commit::{
            payments,
            working::{Checked, Working, conflict},
        },
        tables::ledger::{ClaimRow, NameRow, UnmatchedRow, UseRow, named},
    },
};

/// Claims a transaction, its nonce and its identifier, unless one of them was claimed or assigned.
pub(crate) fn claim(working: &mut Working, claim: &ClaimRecord) -> Checked {
    let tx_id = claim.tx_id.0;
    let names = unique_keys(claim);
    let by_name = names.iter().filter_map(|name| working.names.get(name).map(|row| row.0));
    let earlier = std::iter::once(tx_id).chain(by_name).find_map(|tx_id| working.claims.get(&tx_id));
    if let Some(earlier) = earlier {
        return Ok(Err(CommitError::Claimed(Box::new(earlier.claim.clone()))));
    }
    // A transaction with an assigned transfer cannot settle a claim.
    if let Some(payment) = working.uses.get(&tx_id).and_then(|used| used.assigned) {
        return Ok(Err(CommitError::Assigned(PaymentId::from_bits(payment))));
    }
    for name in names {
        working.names.put(name, NameRow(tx_id));
    }
    working.claims.put(tx_id, ClaimRow { version: claim.at.millis(), claim: claim.clone() });
    touch(working, claim.tx_id, None, claim.at);
    Ok(Ok(()))
}

/// Writes the row that a claim and an assignment of one transaction both write: of two at once, one fails. A row that is made
/// again has another version than any before it.
fn touch(working: &mut Working, tx_id: TxId, assigned: Option<u128>, at: Timestamp) {
    let row = match working.uses.get(&tx_id.0) {
        Some(row) => UseRow { version: row.version + 1, assigned: assigned.or(row.assigned) },
        None => UseRow { version: at.millis(), assigned },
    };
    working.uses.put(tx_id.0, row);
}

/// Writes the outcome of a claim whose outcome is `expected`.
pub(crate) fn outcome(working: &mut Working, tx_id: TxId, expected: &ClaimOutcome, outcome: &ClaimOutcome) -> Checked {
    let stored = working.claims.get(&tx_id.0).filter(|row| row.claim.outcome == *expected).cloned();
    let Some(ClaimRow { version, claim }) = stored else {
        return conflict(format_args!("the outcome of {tx_id}"));
    };
    let claim = ClaimRecord { outcome: outcome.clone(), ..claim };
    working.claims.put(tx_id.0, ClaimRow { version: version + 1, claim });
    Ok(Ok(()))
}

/// Deletes claims if each of them can be deleted.
pub(crate) fn forget(working: &mut Working, tx_ids: &[TxId]) -> Checked {
    for tx_id in tx_ids {
        let is_changed = working.claims.touched().any(|(touched, _)| *touched == tx_id.0);
        let stored = working.claims.get(&tx_id.0).filter(|row| !is_changed && row.claim.is_forgettable()).cloned();
        let Some(ClaimRow { claim, .. }) = stored else { return conflict(format_args!("the claim of {tx_id}")) };
        for name in unique_keys(&claim) {
            working.names.remove_unread(name, NameRow(tx_id.0));
        }
        working.claims.set(tx_id.0, None);
        if working.uses.get(&tx_id.0).is_some_and(|used| used.assigned.is_none()) {
            working.uses.set(tx_id.0, None);
        }
    }
    Ok(Ok(()))
}

/// Inserts an unmatched transfer. An existing one is not changed: blocks are read again after a crash.
pub(crate) fn insert_unmatched(working: &mut Working, unmatched: &Unmatched) {
    if let Some(line) = ledger_entries::of_unmatched(unmatched) {
        payments::write_entry(working, &line);
    }
    let key = (*unmatched.account(), unmatched.transfer.position);
    if working.unmatched.get(&key).is_none() {
        let waits_for = named(unmatched);
        working.unmatched.put(key, UnmatchedRow { version: 1, unmatched: unmatched.clone(), waits_for });
    }
}

/// Handles a transfer that is not assigned. An assigned transfer counts for its session; nothing takes it back.
pub(crate) fn handle(
    working: &mut Working,
    account: AccountName,
    place: ChainPosition,
    handling: &Handling,
) -> Checked {
    let key = (account, place);
    let is_open = |row: &&UnmatchedRow| !matches!(row.unmatched.handling, Handling::Assigned { .. });
    let Some(row) = working.unmatched.get(&key).filter(is_open).cloned() else {
        return conflict(format_args!("the transfer to {account} in block {}", place.block_num));
    };
    let tx_id = row.unmatched.transfer.tx_id;
    if let Handling::Assigned { payment, at, .. } = handling {
        // A transfer that settles a claim of another server cannot also pay a session.
        if let Some(sold) = working.claims.get(&tx_id.0).filter(|row| row.claim.sale().is_some()) {
            return Ok(Err(CommitError::Claimed(Box::new(sold.claim.clone()))));
        }
        touch(working, tx_id, Some(payment.bits()), *at);
    }
    let unmatched = Unmatched { handling: handling.clone(), ..row.unmatched };
    working.unmatched.put(key, UnmatchedRow { version: row.version + 1, unmatched, waits_for: None });
    Ok(Ok(()))
}
