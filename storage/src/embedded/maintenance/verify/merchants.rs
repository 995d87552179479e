//! Verifies merchants, their indexes and their compliance statuses.

use engine::ids::MerchantId;

use super::lengths::compare_length;
use crate::{
    embedded::{fault::Fault, wal::snapshot::Snapshot},
    record::{self, merchant::MerchantFacts},
    store::report::Report,
};

pub(super) fn verify(snapshot: &Snapshot, report: &mut Report) -> Result<(), Fault> {
    let mut rows = MerchantRows::default();
    for entry in snapshot.merchants().iter()? {
        let (key, bytes) = entry?;
        let id = MerchantId::from_bits(key.value());
        let facts = report.read("merchants", id, record::merchant_facts(bytes.value()));
        if let Some(facts) = &facts {
            rows.count(facts);
            api_keys(snapshot, id, facts, report)?;
        }
        // Secrets stay sealed, so that a backup can be verified without its master key.
        if let Some(merchant) = report.read("merchants", id, record::merchant_to_json(id, bytes.value())) {
            let account = merchant["hiveAccount"].as_str().unwrap_or_default();
            let is_watched = snapshot.accounts().get_intact(account)?.is_some();
            report.hold(is_watched, "accounts", id, "the merchant's account is not watched");
        }
        if let Some(facts) = &facts {
            merchant_accounts(snapshot, id, facts, report)?;
        }
    }
    for entry in snapshot.endpoints().iter()? {
        let (key, bytes) = entry?;
        report.read("endpoints", MerchantId::from_bits(key.value()), record::endpoint_from_bytes(bytes.value()));
    }
    compare_length(report, "api_keys", &snapshot.api_keys(), rows.api_keys)?;
    compare_length(report, "account_merchants", &snapshot.account_merchants(), rows.merchants)?;
    compare_length(report, "proven_merchants", &snapshot.proven_merchants(), rows.proven)?;
    compare_length(report, "pending_accounts", &snapshot.pending_accounts(), rows.pending)?;
    compliance_statuses(snapshot, report)
}

/// The number of rows that the merchants have in each of their indexes.
#[derive(Default)]
struct MerchantRows {
    merchants: u64,
    api_keys: u64,
    proven: u64,
    pending: u64,
}

impl MerchantRows {
    fn count(&mut self, facts: &MerchantFacts) {
        self.merchants += 1;
        self.api_keys += facts.digests.len() as u64;
        self.proven += u64::from(facts.is_proven);
        self.pending += u64::from(facts.pending_due_at.is_some());
    }
}

fn api_keys(snapshot: &Snapshot, id: MerchantId, facts: &MerchantFacts, report: &mut Report) -> Result<(), Fault> {
    for digest in &facts.digests {
        let is_its = snapshot.api_keys().get_intact(digest)?.is_some_and(|holder| holder.value() == id.bits());
        report.hold(is_its, "api_keys", id, "no entry for one of the merchant's keys");
    }
    Ok(())
}

/// Checks the rows of a merchant in the indexes of accounts.
fn merchant_accounts(
    snapshot: &Snapshot,
    id: MerchantId,
    facts: &MerchantFacts,
    report: &mut Report,
) -> Result<(), Fault> {
    let key = (facts.account.as_str(), id.bits());
    let is_listed = snapshot.account_merchants().get_intact(key)?.is_some();
    report.hold(is_listed, "account_merchants", id, "no entry for the merchant's account");
    if facts.is_proven {
        let is_found = snapshot.proven_merchants().get_intact(key)?.is_some();
        let problem = "no entry: its limits would not apply to other merchants of the account";
        report.hold(is_found, "proven_merchants", id, problem);
    }
    if let Some(due_at) = facts.pending_due_at {
        let is_found = snapshot.pending_accounts().get_intact((due_at.millis(), id.bits()))?.is_some();
        report.hold(is_found, "pending_accounts", id, "no entry: the change of account would never take effect");
    }
    Ok(())
}

fn compliance_statuses(snapshot: &Snapshot, report: &mut Report) -> Result<(), Fault> {
    let on_hold = snapshot.on_hold();
    let mut held = 0;
    for entry in snapshot.compliance_statuses().iter()? {
        let (key, bytes) = entry?;
        let id = MerchantId::from_bits(key.value());
        let status = report.read("compliance_statuses", id, record::compliance_from_bytes(bytes.value()));
        if status.is_some_and(|status| status.hold.is_some()) {
            held += 1;
            report.hold(on_hold.get_intact(id.bits())?.is_some(), "on_hold", id, "no entry for the merchant's hold");
        }
    }
    compare_length(report, "on_hold", &on_hold, held)
}
