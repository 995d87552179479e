//! Unmatched transfers: inserted once, listed, handled, and found when the session that they name is created.

use engine::{
    account::AccountName,
    ids::PaymentId,
    ledger::{ChainPosition, TxId},
};

use crate::{
    batch::{CommitError, Handling, Unmatched},
    embedded::{
        commit::group::{Checked, Group, Overlay},
        fault::Fault,
        read::unmatched::{key, named, read},
    },
    record,
};

/// The rows to write for a handled transfer.
pub(crate) struct Handled {
    /// Its new record.
    pub(crate) record: Vec<u8>,
    /// The unknown session that it names.
    pub(crate) names: Option<PaymentId>,
    /// The transaction and the session of an assignment.
    pub(crate) assigned: Option<(TxId, PaymentId)>,
}

/// Inserts a transfer unless it exists: after a crash blocks are read again, and the handling must not be overwritten.
pub(crate) fn keep(
    group: &mut Group<'_>,
    account: &AccountName,
    place: ChainPosition,
    record: &[u8],
    names: Option<PaymentId>,
) -> Result<(), Fault> {
    let key = key(account, place);
    if group.tables.unmatched().has(key)? {
        return Ok(());
    }
    group.tables.unmatched().insert(key, record);
    if let Some(id) = names {
        group.tables.unmatched_by_payment().insert((id.bits(), key.0, key.1, key.2, key.3), ());
    }
    Ok(())
}

/// Records in the overlay that a transfer will be inserted.
pub(crate) fn prefetch(
    group: &mut Group<'_>,
    overlay: &mut Overlay,
    account: &AccountName,
    place: ChainPosition,
    record: &[u8],
) -> Checked {
    let at = (*account, place);
    if !overlay.handled.contains_key(&at) && !group.tables.unmatched().has(key(account, place))? {
        overlay.handled.insert(at, read(key(account, place), record)?);
    }
    Ok(Ok(()))
}

/// Checks that a transfer can be handled.
pub(crate) fn check(
    group: &mut Group<'_>,
    overlay: &mut Overlay,
    account: &AccountName,
    place: ChainPosition,
    handling: &Handling,
) -> Result<Result<Handled, CommitError>, Fault> {
    let stored = match overlay.handled.get(&(*account, place)) {
        Some(unmatched) => Some(unmatched.clone()),
        None => match group.tables.unmatched().get(key(account, place))? {
            Some(bytes) => Some(read(key(account, place), bytes.value())?),
            None => None,
        },
    };
    // An assignment is permanent: the transfer counts for its session.
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
    overlay.handled.insert((*account, place), next);
    Ok(Ok(Handled { record, names, assigned }))
}

/// Writes what [`check`] returned. The transfer no longer waits for the session `done_with`.
pub(crate) fn handle(
    group: &mut Group<'_>,
    account: &AccountName,
    place: ChainPosition,
    record: &[u8],
    done_with: Option<PaymentId>,
) -> Result<(), Fault> {
    let key = key(account, place);
    group.tables.unmatched().insert(key, record);
    if let Some(id) = done_with {
        group.tables.unmatched_by_payment().remove((id.bits(), key.0, key.1, key.2, key.3))?;
    }
    Ok(())
}
