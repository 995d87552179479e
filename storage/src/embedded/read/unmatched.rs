//! Reads of unmatched transfers.

use std::ops::Bound;

use engine::{
    account::AccountName,
    ids::PaymentId,
    ledger::{ChainPosition, MemoMatch, match_fee_memo, match_memo},
    time::Timestamp,
};

use crate::{
    batch::{Unmatched, UnmatchedReason},
    embedded::{
        fault::Fault,
        read::listed::{self, Facets},
        wal::snapshot::Snapshot,
    },
    record,
    store::{payments::Vicinity, unmatched::WaitingTransferKey},
};

/// Maximum number of summaries that a search for candidate payments reads.
pub(crate) const MAX_SUMMARIES_READ: usize = 20_000;

/// The account and ledger position of an unmatched transfer.
pub(crate) type UnmatchedPlace = (AccountName, ChainPosition);

pub(crate) type Key<'k> = (&'k str, u32, u32, u32);

pub(crate) fn key(account: &AccountName, place: ChainPosition) -> Key<'_> {
    (account.as_str(), place.block_num, place.tx_in_block, place.op_in_tx)
}

/// Returns the session that a transfer names and that was unknown when the transfer arrived.
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

pub(crate) fn read(key: Key<'_>, bytes: &[u8]) -> Result<Unmatched, Fault> {
    record::unmatched_from_bytes(key, bytes).map_err(Fault::damaged("unmatched", format!("{key:?}")))
}

/// Returns an unmatched transfer.
pub(crate) fn at(snapshot: &Snapshot, account: &AccountName, place: ChainPosition) -> Result<Option<Unmatched>, Fault> {
    let key = key(account, place);
    snapshot.unmatched().get(key)?.map(|bytes| read(key, bytes.value())).transpose()
}

/// Returns the unmatched transfers of an account before the position `before`, newest first.
pub(crate) fn before(
    snapshot: &Snapshot,
    account: &AccountName,
    before: ChainPosition,
    limit: usize,
) -> Result<Vec<Unmatched>, Fault> {
    let table = snapshot.unmatched();
    let mut found = Vec::new();
    for entry in table.range((account.as_str(), 0, 0, 0)..key(account, before))?.rev() {
        if found.len() == limit {
            break;
        }
        let (key, bytes) = entry?;
        found.extend(table.skip_damaged(read(key.value(), bytes.value()))?);
    }
    Ok(found)
}

/// Returns the transfers that wait for the session that they name, after `after`, by session.
pub(crate) fn waiting(
    snapshot: &Snapshot,
    after: Option<&WaitingTransferKey>,
    limit: usize,
) -> Result<Vec<WaitingTransferKey>, Fault> {
    let start = match after {
        Some((id, account, place)) => {
            let (account, block, tx, op) = key(account, *place);
            Bound::Excluded((id.bits(), account, block, tx, op))
        }
        None => Bound::Unbounded,
    };
    snapshot
        .unmatched_by_payment()
        .range::<(u128, &str, u32, u32, u32)>((start, Bound::Unbounded))?
        .take(limit)
        .map(|entry| {
            let key = entry?.0;
            let (id, account, block_num, tx_in_block, op_in_tx) = key.value();
            let account =
                AccountName::parse(account).map_err(|why| Fault::inconsistent("unmatched_by_payment", account, why))?;
            Ok((PaymentId::from_bits(id), account, ChainPosition { block_num, tx_in_block, op_in_tx }))
        })
        .collect()
}

/// Returns the candidate payments for a transfer, newest first. Ids start with their creation time, so a time range is
/// a range of ids.
pub(crate) fn payments_near(snapshot: &Snapshot, near: &Vicinity) -> Result<Vec<PaymentId>, Fault> {
    let ids = listed::ids_made(Some(near.from), Some(Timestamp::from_millis(near.to.millis().saturating_add(1))));
    let mut found = Vec::new();
    for listed in listed::newest(snapshot, near.merchant.bits(), Facets::ALL, ids)?.take(MAX_SUMMARIES_READ) {
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
