//! Where merchants stand with compliance: judged with every creation, counted with every completion, written once a
//! group.

use engine::{
    compliance::{Assessment, ComplianceChange, ComplianceStatus, PaymentCheck},
    ids::MerchantId,
    time::Timestamp,
};

use crate::{
    batch::CommitError,
    embedded::{
        commit::{
            accounts,
            audit::Audited,
            group::{CachedStanding, Checked, Group, conflict},
        },
        fault::Fault,
        read::compliance::read,
    },
    record,
};

/// Returns the standing of a merchant, earlier batches of the group included.
fn held<'g>(group: &'g mut Group<'_>, merchant: u128) -> Result<&'g mut CachedStanding, Fault> {
    if !group.standings.contains_key(&merchant) {
        let table = group.tables.standings();
        let stored = match table.get(merchant) {
            Ok(Some(bytes)) => read(merchant, bytes.value()),
            Ok(None) => Ok(ComplianceStatus::default()),
            Err(fault) => Err(fault),
        };
        let stored = table.pass(stored)?;
        let is_damaged = stored.is_none();
        let standing = stored.unwrap_or_default();
        let was_on_hold = if is_damaged { group.tables.on_hold().has(merchant)? } else { standing.hold.is_some() };
        group.standings.insert(merchant, CachedStanding { standing, is_changed: false, was_on_hold, is_damaged });
    }
    Ok(group.standings.get_mut(&merchant).expect("it was put there just now"))
}

/// Reads a standing that a later write will change: what cannot be read refuses its batch alone.
pub(crate) fn prefetch(group: &mut Group<'_>, merchant: u128) -> Checked {
    held(group, merchant)?;
    Ok(Ok(()))
}

/// Refuses a change that starts from where the merchant no longer stands.
pub(crate) fn check_change(group: &mut Group<'_>, merchant: MerchantId, change: &ComplianceChange) -> Checked {
    let held = held(group, merchant.bits())?;
    if held.is_damaged || held.standing.accepts(change) {
        Ok(Ok(()))
    } else {
        conflict(format_args!("where merchant {merchant} stands"))
    }
}

/// Judges a creation against everything that is committed before it; fills in what is to be noted.
pub(crate) fn check(group: &mut Group<'_>, check: &PaymentCheck, noted: &mut Option<Box<Assessment>>) -> Checked {
    let merchant = check.merchant.bits();
    let mut others = Vec::new();
    for other in accounts::provers(group, &check.account)?.into_iter().filter(|other| *other != merchant) {
        let held = held(group, other)?;
        // What cannot be read may hide a hold.
        if held.is_damaged {
            return Err(Fault::contradicted(
                "standings",
                MerchantId::from_bits(other),
                "it cannot be read; an admin may clear it",
            ));
        }
        others.push(held.standing.clone());
    }
    let held = held(group, merchant)?;
    if held.is_damaged {
        return Err(Fault::contradicted("standings", check.merchant, "it cannot be read; an admin may clear it"));
    }
    match held.standing.check(check, &others) {
        Ok(next) => {
            *noted = next.map(Box::new);
            Ok(Ok(()))
        }
        Err(refusal) => Ok(Err(CommitError::OnHold(refusal))),
    }
}

/// Keeps what a check noted, and tells the audit log.
pub(crate) fn note(group: &mut Group<'_>, check: &PaymentCheck, noted: Option<Box<Assessment>>) -> Result<(), Fault> {
    let Some(noted) = noted else { return Ok(()) };
    for entry in noted.audit_entries(check) {
        group.append_audit(&Audited::of(entry))?;
    }
    let held = held(group, check.merchant.bits())?;
    (held.standing, held.is_changed) = (noted.status, true);
    Ok(())
}

/// Makes a change.
pub(crate) fn change(group: &mut Group<'_>, merchant: MerchantId, change: ComplianceChange) -> Result<(), Fault> {
    let held = held(group, merchant.bits())?;
    held.standing.apply(change);
    (held.is_changed, held.is_damaged) = (true, false);
    Ok(())
}

/// Counts a payment that completed.
pub(crate) fn count(group: &mut Group<'_>, merchant: u128, at: Timestamp, usd_cents: u64) -> Result<(), Fault> {
    let held = held(group, merchant)?;
    held.standing.record_completed(at, usd_cents);
    held.is_changed = true;
    Ok(())
}

/// Writes what changed.
pub(crate) fn write_all(group: &mut Group<'_>) -> Result<(), Fault> {
    for (merchant, held) in std::mem::take(&mut group.standings) {
        if held.is_changed && !held.is_damaged {
            group.tables.standings().insert(merchant, record::standing_to_bytes(&held.standing).as_slice());
            match (held.was_on_hold, held.standing.hold.is_some()) {
                (false, true) => group.tables.on_hold().insert(merchant, ()),
                (true, false) => group.tables.on_hold().remove(merchant)?,
                _ => {}
            }
        }
    }
    Ok(())
}
