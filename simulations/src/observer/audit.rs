//! The audit log: what a merchant or the operator changes has its entry in the same commit.

use engine::{
    audit::{Entry, FieldChange},
    compliance::ComplianceChange,
};

use super::*;

/// A field of a merchant that the audit log shows, and its value.
type Field = (&'static str, Option<String>);

fn without_query(url: &Option<String>) -> Option<String> {
    url.as_ref().map(|url| match url.find('?') {
        Some(at) => format!("{}?…", &url[..at]),
        None => url.clone(),
    })
}

/// Returns the fields of a merchant as the audit log shows them.
fn fields_of(merchant: &Merchant) -> Vec<Field> {
    let keys = merchant.keys.iter().map(|key| {
        let end = key.expires_at.map_or_else(String::new, |end| format!(" until {end}"));
        format!("{} …{} [{}]{end}", key.id, key.last4, key.scopes)
    });
    let status = match &merchant.ownership.proof {
        None => "unverified",
        Some(proof) if proof.stale_since.is_some() => "stale",
        Some(_) => "verified",
    };
    let pending = merchant.ownership.pending.as_ref().map(|pending| {
        let by = match (pending.current.is_some(), pending.new.is_some()) {
            (false, false) => "no account",
            (true, false) => "current",
            (false, true) => "new",
            (true, true) => "current and new",
        };
        format!("{} from {}, proven by {by}", pending.account, pending.effective_at)
    });
    let endpoints = merchant.endpoints.iter().map(|endpoint| {
        let events: Vec<_> = endpoint.events.types().map(|kind| kind.as_str()).collect();
        let url = without_query(&Some(endpoint.url.clone())).unwrap_or_default();
        format!("{} {url} [{}]{}", endpoint.id, events.join(" "), if endpoint.is_enabled { "" } else { " disabled" })
    });
    let endpoints = endpoints.collect::<Vec<_>>().join(", ");
    vec![
        ("name", Some(merchant.name.clone())),
        ("hiveAccount", Some(merchant.hive_account.to_string())),
        ("accountVerification", Some(status.to_owned())),
        ("pendingAccount", pending),
        ("iconUrl", without_query(&merchant.icon_url)),
        ("webhookUrl", without_query(&merchant.webhook_url)),
        ("supportUrl", without_query(&merchant.support_url)),
        ("isActive", Some(merchant.is_active.to_string())),
        ("x402Enabled", Some(merchant.x402_enabled.to_string())),
        ("restartEnabled", Some(merchant.restart_enabled.to_string())),
        ("apiKeys", Some(keys.collect::<Vec<_>>().join(", "))),
        ("webhookEndpoints", Some(endpoints).filter(|text| !text.is_empty())),
    ]
}

/// Returns the audit events that a change of a merchant must have.
fn changes_of(before: Option<&Merchant>, after: &Merchant) -> Vec<FieldChange> {
    let old: Vec<Field> = before.map(fields_of).unwrap_or_default();
    let was = |name: &str| old.iter().find(|(known, _)| *known == name).and_then(|(_, value)| value.clone());
    let changed = fields_of(after).into_iter().filter(|(name, value)| was(name) != *value);
    let mut changes: Vec<FieldChange> =
        changed.map(|(name, after)| FieldChange { field: name.to_owned(), before: was(name), after }).collect();
    if before.is_some_and(|before| before.secrets.current != after.secrets.current) {
        changes.push(FieldChange { field: "webhookSecret".to_owned(), before: None, after: None });
    }
    for endpoint in before.iter().flat_map(|before| &before.endpoints) {
        let now = after.endpoints.iter().find(|now| now.id == endpoint.id);
        if now.is_some_and(|now| now.secrets.current != endpoint.secrets.current) {
            let field = format!("webhookEndpoints.{}.secret", endpoint.id);
            changes.push(FieldChange { field, before: None, after: None });
        }
    }
    changes
}

/// Returns the action of a change of a merchant, where its fields determine it.
fn action_of(before: Option<&Merchant>, after: &Merchant) -> Option<&'static str> {
    let Some(before) = before else { return Some("merchant_registered") };
    if before.is_active != after.is_active {
        return Some(if after.is_active { "merchant_activated" } else { "merchant_deactivated" });
    }
    if before.secrets.current != after.secrets.current {
        return Some("webhook_secret_rotated");
    }
    let is_kept = |key: &engine::merchant::ApiKey| before.keys.iter().any(|known| known.id == key.id);
    let (kept, new) = (after.keys.iter().filter(|key| is_kept(key)).count(), after.keys.len());
    match (kept, new - kept) {
        _ if before.keys.iter().map(|key| key.id).eq(after.keys.iter().map(|key| key.id)) => None,
        (_, 0) => Some("api_key_revoked"),
        (0, 1) if new == 1 => None,
        _ => None,
    }
}

/// Returns the actions of which a change of compliance must have one.
const fn compliance_actions(change: &ComplianceChange) -> &'static [&'static str] {
    match change {
        ComplianceChange::Hold(_) => &["merchant_flagged"],
        ComplianceChange::Clear(_) => &["compliance_cleared"],
        ComplianceChange::Limit { .. } => &["compliance_limits_set", "compliance_cleared"],
    }
}

impl Observer {
    /// Checks that the changes of a batch are in the audit log with it. Payments and merchants are as they were before.
    pub(super) fn audited(&mut self, batch: &Batch) {
        if self.has_several_engines {
            return;
        }
        let entries: Vec<&Entry> = batch
            .writes
            .iter()
            .filter_map(|write| match write {
                Write::Audit(entry) => Some(&**entry),
                _ => None,
            })
            .collect();
        let mut flaw = batch.writes.iter().find_map(|write| self.audit_flaw(write, batch, &entries));
        let is_known = |entry: &&&Entry| {
            let merchant = entry.actor.merchant;
            merchant.is_some_and(|merchant| merchant != entry.merchant && !self.merchants.contains_key(&merchant))
        };
        if let Some(entry) = entries.iter().find(is_known) {
            flaw.get_or_insert(format!("{} was done by {:?}", entry.action, entry.actor));
        }
        match flaw {
            Some(text) => self.violate("changes-are-audited", text, None),
            None if entries.is_empty() => {}
            None => self.passes("changes-are-audited"),
        }
    }

    fn audit_flaw(&self, write: &Write, batch: &Batch, entries: &[&Entry]) -> Option<String> {
        let has = |actions: &[&str], merchant: Option<MerchantId>, subject: Option<String>| {
            let is_it = |entry: &&&Entry| {
                actions.contains(&entry.action.as_str())
                    && merchant.is_none_or(|merchant| entry.merchant == merchant)
                    && subject.as_ref().is_none_or(|subject| entry.subject.as_ref() == Some(subject))
            };
            let is_missing = !entries.iter().any(|entry| is_it(&entry));
            is_missing.then(|| format!("the audit log has no {actions:?} of {subject:?}: {entries:?}"))
        };
        match write {
            Write::Merchant { merchant, .. } => self.merchant_flaw(merchant, entries),
            Write::Payment { payment, .. } => {
                let before = self.payments.get(&payment.id).map(|known| &known.payment)?;
                let subject = || Some(payment.id.to_string());
                let merchant = Some(payment.merchant);
                let note = |payment: &Payment| payment.resolution.as_ref().map(|resolution| resolution.note.clone());
                let decision = |payment: &Payment| payment.resolution.as_ref().map(|one| (one.kind, one.at));
                if payment.resolution.is_some() && decision(before) != decision(payment) {
                    has(&["payment_resolved"], merchant, subject())
                } else if payment.resolution.is_some() && note(before) != note(payment) {
                    has(&["payment_note_deleted"], merchant, subject())
                } else if before.metadata != payment.metadata {
                    has(&["payment_metadata_deleted"], merchant, subject())
                } else if before.cancellation.is_none()
                    && payment.cancellation.is_some_and(|one| one.by == engine::payment::Canceller::Merchant)
                {
                    has(&["payment_cancel_requested"], merchant, subject())
                } else {
                    None
                }
            }
            Write::Handle { place, handling, .. } => {
                let name = format!("{}-{}-{}", place.block_num, place.tx_in_block, place.op_in_tx);
                match handling {
                    Handling::Assigned { by, .. } if by == BY_MEMO => None,
                    Handling::Assigned { payment, .. } => {
                        let merchant = self.payments.get(payment).map(|known| known.payment.merchant);
                        has(&["transfer_assigned"], merchant, Some(name))
                    }
                    Handling::Ignored { .. } => has(&["transfer_ignored"], None, Some(name)),
                    Handling::Open => None,
                }
            }
            Write::Redeliver(delivery) => has(&["webhook_redelivered"], Some(delivery.merchant), None),
            Write::Event(record) if record.is_test => {
                let subject = record.deliveries.first().map(|(_, delivery)| delivery.to_string());
                has(&["webhook_tested"], Some(record.merchant), subject)
            }
            Write::EnableEndpoint { merchant, .. } => {
                let is_own =
                    |write: &Write| matches!(write, Write::Merchant { merchant: own, .. } if own.id == *merchant);
                if batch.writes.iter().any(is_own) { None } else { has(&["webhook_enabled"], Some(*merchant), None) }
            }
            Write::Compliance { merchant, change } => has(compliance_actions(change), Some(*merchant), None),
            Write::FeeTiers { .. } => has(&["fee_tiers_changed"], None, None),
            Write::ReceiptKeys { expected, .. } if *expected > 0 => has(&["receipt_key_rotated"], None, None),
            Write::Invoice(invoicing) => {
                let is_new = invoicing.period.invoice.is_none();
                let action = if is_new { "invoice_generated" } else { "invoice_renewed" };
                has(&[action], Some(invoicing.period.merchant), None)
            }
            _ => None,
        }
    }

    fn merchant_flaw(&self, merchant: &Merchant, entries: &[&Entry]) -> Option<String> {
        let before = self.merchants.get(&merchant.id);
        let expected = changes_of(before, merchant);
        let own: Vec<_> = entries.iter().filter(|entry| entry.merchant == merchant.id).collect();
        if expected.is_empty() && own.is_empty() {
            return None;
        }
        let action = action_of(before, merchant);
        let is_it = |entry: &&&&Entry| {
            entry.changes == expected
                && action.is_none_or(|action| entry.action == action)
                && entry.at == merchant.updated_at
        };
        let is_missing = !own.iter().any(|entry| is_it(&entry));
        is_missing.then(|| format!("{} changes {expected:?}, and the audit log has {own:?}", merchant.id))
    }
}
