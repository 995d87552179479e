//! The keys of `[environment]` about the operator's policies: retention, limits, billing.

use std::fmt::Write as _;

use super::super::{
    Problem,
    file::RawSetup,
    values::{duration, show},
};
use crate::options::Policies;

/// Reads the keys; those that are left out keep their values.
pub(super) fn read(raw: &RawSetup, policies: &mut Policies) -> Result<(), Problem> {
    let seconds = |name: &str, text: &Option<String>, value: &mut u64| -> Result<(), Problem> {
        if let Some(text) = text {
            *value = duration(name, text)? / 1_000;
        }
        Ok(())
    };
    seconds("event_retention", &raw.event_retention, &mut policies.event_retention_seconds)?;
    seconds("metadata_retention", &raw.metadata_retention, &mut policies.metadata_retention_seconds)?;
    seconds("note_retention", &raw.note_retention, &mut policies.note_retention_seconds)?;
    seconds("account_change_wait", &raw.account_change_wait, &mut policies.account_change_wait_seconds)?;
    if policies.event_retention_seconds == 0 {
        return Err("`event_retention` must be more than nothing".to_owned());
    }
    let numbers = [
        (raw.single_limit_cents, &mut policies.single_limit_cents),
        (raw.daily_limit_cents, &mut policies.daily_limit_cents),
        (raw.monthly_limit_cents, &mut policies.monthly_limit_cents),
        (raw.open_payments, &mut policies.open_payments),
        (raw.idempotency_keys, &mut policies.idempotency_keys),
        (raw.irreversible_from_cents, &mut policies.irreversible_from_cents),
    ];
    for (given, value) in numbers {
        *value = given.unwrap_or(*value);
    }
    let switches = [
        (raw.billing, &mut policies.bills),
        (raw.key_roll, &mut policies.key_roll),
        (raw.only_registered, &mut policies.only_registered),
        (raw.refuse_off_peg, &mut policies.refuses_off_peg),
    ];
    for (given, value) in switches {
        *value = given.unwrap_or(*value);
    }
    Ok(())
}

/// Writes the keys whose values are not the defaults.
pub(super) fn write(out: &mut String, policies: &Policies) {
    let usual = Policies::default();
    let times = [
        ("event_retention", policies.event_retention_seconds, usual.event_retention_seconds),
        ("metadata_retention", policies.metadata_retention_seconds, usual.metadata_retention_seconds),
        ("note_retention", policies.note_retention_seconds, usual.note_retention_seconds),
        ("account_change_wait", policies.account_change_wait_seconds, usual.account_change_wait_seconds),
    ];
    for (key, seconds, usual) in times {
        if seconds != usual {
            let _ = writeln!(out, "{key} = {:?}", show(seconds * 1_000));
        }
    }
    let numbers = [
        ("single_limit_cents", policies.single_limit_cents, usual.single_limit_cents),
        ("daily_limit_cents", policies.daily_limit_cents, usual.daily_limit_cents),
        ("monthly_limit_cents", policies.monthly_limit_cents, usual.monthly_limit_cents),
        ("open_payments", policies.open_payments, usual.open_payments),
        ("idempotency_keys", policies.idempotency_keys, usual.idempotency_keys),
        ("irreversible_from_cents", policies.irreversible_from_cents, usual.irreversible_from_cents),
    ];
    for (key, value, usual) in numbers {
        if value != usual {
            let _ = writeln!(out, "{key} = {value}");
        }
    }
    let switches = [
        ("billing", policies.bills),
        ("key_roll", policies.key_roll),
        ("only_registered", policies.only_registered),
        ("refuse_off_peg", policies.refuses_off_peg),
    ];
    for (key, is_on) in switches {
        if is_on {
            let _ = writeln!(out, "{key} = true");
        }
    }
}
