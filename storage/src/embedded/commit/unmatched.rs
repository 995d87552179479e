//! Transfers that paid no session: kept once, listed, handled, and found again when the session they name appears.

use std::ops::Bound;

use engine::{
    account::AccountName,
    ids::PaymentId,
    ledger::{MemoMatch, Place, TxId, match_fee_memo, match_memo},
    time::Timestamp,
};

use crate::{
    batch::{CommitError, Handling, Unmatched, UnmatchedReason},
    embedded::{
        commit::apply::{Ahead, Checked, Group},
        fault::Fault,
        read::listed::{self, Facets},
        wal::snapshot::Snapshot,
    },
    record,
    store::query::{StrayKey, Vicinity},
};

/// Summaries looked at for the payments near a transfer at most.
const MAX_LOOKED_AT: usize = 20_000;

/// A stray transfer's account and place.
pub(crate) type StrayPlace = (AccountName, Place);

/// A transfer that may be handled.
pub(crate) struct Handled {
    /// Its new record.
    pub(crate) record: Vec<u8>,
    /// The session it waited for.
    pub(crate) names: Option<PaymentId>,
    /// Its transaction and the session it is assigned to.
    pub(crate) assigned: Option<(TxId, PaymentId)>,
}

type Key<'k> = (&'k str, u32, u32, u32);

fn key(account: &AccountName, place: Place) -> Key<'_> {
    (account.as_str(), place.block_num, place.tx_in_block, place.op_in_tx)
}

/// Returns the session a transfer names that nobody knew when it came.
pub(crate) fn named(unmatched: &Unmatched) -> Option<PaymentId> {
    if unmatched.reason != UnmatchedReason::UnknownSession {
        return None;
    }
    let memo = &unmatched.transfer.memo;
    match (match_memo(memo), match_fee_memo(memo)) {
        (MemoMatch::Exact(id) | MemoMatch::Normalized(id), _)
        | (_, MemoMatch::Exact(id) | MemoMatch::Normalized(id)) => Some(id),
        _ => None,
    }
}

/// Keeps a transfer, unless it is kept: the chain is read again after a crash, and what was decided stays decided.
pub(crate) fn keep(
    group: &mut Group<'_>,
    account: &AccountName,
    place: Place,
    record: &[u8],
    names: Option<PaymentId>,
) -> Result<(), Fault> {
    let key = key(account, place);
    if group.tables.unmatched().has(key)? {
        return Ok(());
    }
    group.tables.unmatched().insert(key, record);
    if let Some(id) = names {
        group.tables.strays().insert((id.bits(), key.0, key.1, key.2, key.3), ());
    }
    Ok(())
}

/// Notes for later steps of the batch that a transfer will be kept.
pub(crate) fn foresee(
    group: &mut Group<'_>,
    ahead: &mut Ahead,
    account: &AccountName,
    place: Place,
    record: &[u8],
) -> Checked {
    let at = (*account, place);
    if !ahead.handled.contains_key(&at) && !group.tables.unmatched().has(key(account, place))? {
        ahead.handled.insert(at, read(key(account, place), record)?);
    }
    Ok(Ok(()))
}

/// Checks that a transfer may be handled.
pub(crate) fn check(
    group: &mut Group<'_>,
    ahead: &mut Ahead,
    account: &AccountName,
    place: Place,
    handling: &Handling,
) -> Result<Result<Handled, CommitError>, Fault> {
    let stored = match ahead.handled.get(&(*account, place)) {
        Some(unmatched) => Some(unmatched.clone()),
        None => match group.tables.unmatched().get(key(account, place))? {
            Some(bytes) => Some(read(key(account, place), bytes.value())?),
            None => None,
        },
    };
    // An assigned transfer counts for its session; nothing takes it back.
    let Some(stored) = stored.filter(|stored| !matches!(stored.handling, Handling::Assigned { .. })) else {
        let what = format!("the transfer to {account} in block {}", place.block_num);
        return Ok(Err(CommitError::Conflict { what }));
    };
    let names = named(&stored);
    let assigned = match handling {
        Handling::Assigned { payment, .. } => Some((stored.transfer.tx_id, *payment)),
        Handling::Open | Handling::Ignored { .. } => None,
    };
    let next = Unmatched { handling: handling.clone(), ..stored };
    let record = record::unmatched_to_bytes(next.clone());
    ahead.handled.insert((*account, place), next);
    Ok(Ok(Handled { record, names, assigned }))
}

/// Writes what [`check`] made. `done_with` no longer waits for its session.
pub(crate) fn handle(
    group: &mut Group<'_>,
    account: &AccountName,
    place: Place,
    record: &[u8],
    done_with: Option<PaymentId>,
) -> Result<(), Fault> {
    let key = key(account, place);
    group.tables.unmatched().insert(key, record);
    if let Some(id) = done_with {
        group.tables.strays().remove((id.bits(), key.0, key.1, key.2, key.3))?;
    }
    Ok(())
}

fn read(key: Key<'_>, bytes: &[u8]) -> Result<Unmatched, Fault> {
    record::unmatched_from_bytes(key, bytes).map_err(Fault::damaged("unmatched", format!("{key:?}")))
}

/// Returns a transfer that paid no session.
pub(crate) fn at(snapshot: &Snapshot, account: &AccountName, place: Place) -> Result<Option<Unmatched>, Fault> {
    let key = key(account, place);
    snapshot.unmatched().get(key)?.map(|bytes| read(key, bytes.value())).transpose()
}

/// Returns the transfers to an account that paid no session and are older than `before`, newest first.
pub(crate) fn before(
    snapshot: &Snapshot,
    account: &AccountName,
    before: Place,
    limit: usize,
) -> Result<Vec<Unmatched>, Fault> {
    let table = snapshot.unmatched();
    let mut found = Vec::new();
    for entry in table.range((account.as_str(), 0, 0, 0)..key(account, before))?.rev() {
        if found.len() == limit {
            break;
        }
        let (key, bytes) = entry?;
        found.extend(table.pass(read(key.value(), bytes.value()))?);
    }
    Ok(found)
}

/// Returns the transfers that wait for the session they name, after `after`, by session.
pub(crate) fn waiting(snapshot: &Snapshot, after: Option<&StrayKey>, limit: usize) -> Result<Vec<StrayKey>, Fault> {
    let start = match after {
        Some((id, account, place)) => {
            let (account, block, tx, op) = key(account, *place);
            Bound::Excluded((id.bits(), account, block, tx, op))
        }
        None => Bound::Unbounded,
    };
    snapshot
        .strays()
        .range::<(u128, &str, u32, u32, u32)>((start, Bound::Unbounded))?
        .take(limit)
        .map(|entry| {
            let key = entry?.0;
            let (id, account, block_num, tx_in_block, op_in_tx) = key.value();
            let account = AccountName::parse(account).map_err(|why| Fault::contradicted("strays", account, why))?;
            Ok((PaymentId::from_bits(id), account, Place { block_num, tx_in_block, op_in_tx }))
        })
        .collect()
}

/// Returns the payments of a vicinity, newest first: ids begin with the time they were made, so a span of time is a
/// range of them.
pub(crate) fn payments_near(snapshot: &Snapshot, near: &Vicinity) -> Result<Vec<PaymentId>, Fault> {
    let ids = listed::ids_made(Some(near.from), Some(Timestamp::from_millis(near.to.millis().saturating_add(1))));
    let mut found = Vec::new();
    for listed in listed::newest(snapshot, near.merchant.bits(), Facets::ALL, ids)?.take(MAX_LOOKED_AT) {
        let (id, summary) = listed?;
        if summary.amount == near.money || summary.is_unusual {
            found.push(PaymentId::from_bits(id));
        }
        if found.len() >= near.limit {
            break;
        }
    }
    Ok(found)
}
