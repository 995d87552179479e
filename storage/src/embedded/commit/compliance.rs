//! The compliance status of merchants: checked when a payment is created, updated when one completes, written once per
//! group.

use engine::{
    compliance::{Assessment, ComplianceChange, ComplianceStatus, PaymentCheck},
    ids::MerchantId,
    mutant,
    time::Timestamp,
};

use crate::{
    batch::CommitError,
    embedded::{
        commit::{
            accounts,
            audit::EncodedEntry,
            group::{CachedCompliance, Checked, Group, conflict},
        },
        fault::Fault,
        read::compliance::read,
    },
    record,
};

/// Returns the status of a merchant, including the changes of earlier batches of the group.
fn cached<'g>(group: &'g mut Group<'_>, merchant: u128) -> Result<&'g mut CachedCompliance, Fault> {
    if !group.compliance.contains_key(&merchant) {
        let table = group.tables.compliance_statuses();
        let stored = match table.get(merchant) {
            Ok(Some(bytes)) => read(merchant, bytes.value()),
            Ok(None) => Ok(ComplianceStatus::default()),
            Err(fault) => Err(fault),
        };
        let stored = table.skip_damaged(stored)?;
        let is_damaged = stored.is_none();
        let status = stored.unwrap_or_default();
        let was_on_hold = if is_damaged { group.tables.on_hold().has(merchant)? } else { status.hold.is_some() };
        group.compliance.insert(merchant, CachedCompliance { status, is_changed: false, was_on_hold, is_damaged });
    }
    Ok(group.compliance.get_mut(&merchant).expect("it was inserted above"))
}

/// Reads a status that a later write will change, so that a damaged row fails only its own batch.
pub(crate) fn prefetch(group: &mut Group<'_>, merchant: u128) -> Checked {
    cached(group, merchant)?;
    Ok(Ok(()))
}

/// Checks that a change starts from the merchant's current status.
pub(crate) fn check_change(group: &mut Group<'_>, merchant: MerchantId, change: &ComplianceChange) -> Checked {
    let entry = cached(group, merchant.bits())?;
    if entry.is_damaged || entry.status.accepts(change) {
        Ok(Ok(()))
    } else {
        conflict(format_args!("the compliance status of merchant {merchant}"))
    }
}

/// Checks a new payment against the committed status; returns the assessment to store in `assessment`.
pub(crate) fn check(group: &mut Group<'_>, check: &PaymentCheck, assessment: &mut Option<Box<Assessment>>) -> Checked {
    let merchant = check.merchant.bits();
    let mut others = Vec::new();
    for other in accounts::proven_merchants(group, &check.account)?.into_iter().filter(|other| *other != merchant) {
        let entry = cached(group, other)?;
        // A damaged status may contain a hold.
        if entry.is_damaged {
            return Err(Fault::inconsistent(
                "compliance_statuses",
                MerchantId::from_bits(other),
                "it cannot be read; an admin can clear it",
            ));
        }
        others.push(entry.status.clone());
    }
    let entry = cached(group, merchant)?;
    if entry.is_damaged {
        return Err(Fault::inconsistent(
            "compliance_statuses",
            check.merchant,
            "it cannot be read; an admin can clear it",
        ));
    }
    match entry.status.check(check, &others) {
        Ok(next) => {
            *assessment = next.map(Box::new);
            Ok(Ok(()))
        }
        Err(refusal) => Ok(Err(CommitError::OnHold(refusal))),
    }
}

/// Stores the assessment of a check, and appends its audit events.
pub(crate) fn write_assessment(
    group: &mut Group<'_>,
    check: &PaymentCheck,
    assessment: Option<Box<Assessment>>,
) -> Result<(), Fault> {
    let Some(assessment) = assessment else { return Ok(()) };
    for entry in assessment.audit_entries(check) {
        group.append_audit(&EncodedEntry::of(entry))?;
    }
    let entry = cached(group, check.merchant.bits())?;
    (entry.status, entry.is_changed) = (assessment.status, true);
    Ok(())
}

/// Applies a change.
pub(crate) fn change(group: &mut Group<'_>, merchant: MerchantId, change: ComplianceChange) -> Result<(), Fault> {
    let entry = cached(group, merchant.bits())?;
    entry.status.apply(change);
    (entry.is_changed, entry.is_damaged) = (true, false);
    Ok(())
}

/// Adds a completed payment to the merchant's volume.
pub(crate) fn count(group: &mut Group<'_>, merchant: u128, at: Timestamp, usd_cents: u64) -> Result<(), Fault> {
    let entry = cached(group, merchant)?;
    entry.status.record_completed(at, usd_cents);
    entry.is_changed = true;
    Ok(())
}

/// Writes the changed statuses.
pub(crate) fn write_all(group: &mut Group<'_>) -> Result<(), Fault> {
    for (merchant, entry) in std::mem::take(&mut group.compliance) {
        if entry.is_changed && !entry.is_damaged {
            group.tables.compliance_statuses().insert(merchant, record::compliance_to_bytes(&entry.status).as_slice());
            match (entry.was_on_hold, entry.status.hold.is_some()) {
                (false, true) if mutant!("hold-not-listed") => {}
                (false, true) => group.tables.on_hold().insert(merchant, ()),
                (true, false) => group.tables.on_hold().remove(merchant)?,
                _ => {}
            }
        }
    }
    Ok(())
}
