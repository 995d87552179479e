//! Verifies duties, leases and the list of added accounts.

use engine::account::AccountName;

use crate::{
    embedded::{fault::Fault, wal::snapshot::Snapshot},
    store::{
        duties::{Duty, EngineId},
        report::Report,
    },
};

pub(super) fn verify(snapshot: &Snapshot, report: &mut Report) -> Result<(), Fault> {
    for entry in snapshot.engines().iter()? {
        let (engine, lease) = entry?;
        let (since, until) = lease.value();
        report.hold(since <= until, "engines", EngineId::from_bits(engine.value()), "its lease ends before it begins");
    }
    for entry in snapshot.duties().iter()? {
        let (name, held) = entry?;
        report.hold(Duty::parse(name.value()).is_some(), "duties", name.value(), "there is no such duty");
        report.hold(held.value().0 > 0, "duties", name.value(), "its term is 0");
    }
    for entry in snapshot.accounts_added().iter()? {
        let (number, account) = entry?;
        let is_name = AccountName::parse(account.value()).is_ok();
        report.hold(is_name, "accounts_added", number.value(), "not the name of an account");
    }
    Ok(())
}
