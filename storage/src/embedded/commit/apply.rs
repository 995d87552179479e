//! Applies the batches of one group commit: each batch is checked as a whole, then written as a whole or rejected
//! without effect.

use std::{collections::BTreeSet, ops::Bound};

use engine::{
    event_list::{Epoch, Tail},
    ids::PaymentId,
    ledger::TxId,
    mutant,
    time::Timestamp,
    x402::{ClaimRecord, Purpose},
};

use crate::{
    batch::{CommitError, CommitId, Cursor, Resolution},
    embedded::{
        commit::{
            accounts, billing, claims, compliance, duties,
            group::{Checked, Finished, Group, Overlay, conflict},
            indexes, ledger_entries, outbox,
            prepared::{MerchantStep, PaymentStep, Prepared, Step},
            transfers, unmatched,
        },
        fault::Fault,
        read::{
            deliveries,
            search::{self, Indexed},
        },
        tables::{BYTES_COUNT, meta},
        wal::single,
    },
    record::{self, codes::Code},
};

impl<'t> Group<'t> {
    /// Writes a batch, or returns the reason for its rejection and writes nothing of it.
    pub(crate) fn apply(&mut self, mut batch: Prepared) -> Result<Result<(), CommitError>, Fault> {
        let mut overlay = Overlay::default();
        if let Some(id) = batch.id.filter(|id| self.commits.is_known(*id)) {
            return Ok(Err(CommitError::Conflict { what: format!("commit {id}") }));
        }
        for step in &mut batch.steps {
            match self.check(step, &mut overlay) {
                Ok(Ok(())) => {}
                Ok(Err(refusal)) => return Ok(Err(refusal)),
                // The batch is rejected: a row that it would replace is damaged, as its caller will find when it reads
                // the row.
                Err(fault @ Fault::Damaged { .. }) => {
                    tracing::error!(%fault, "write rejected: {fault}");
                    return Ok(Err(CommitError::Conflict { what: fault.to_string() }));
                }
                Err(fault) => return Err(fault),
            }
        }
        for step in batch.steps {
            self.write(step)?;
        }
        if let Some(id) = batch.id {
            self.commits.applied(id);
        }
        self.applied += 1;
        Ok(Ok(()))
    }

    /// Writes the accumulated changes and ends the group.
    pub(crate) fn finish(mut self) -> Result<Finished, Fault> {
        self.write_accumulated()?;
        Ok(Finished { applied: self.applied, search_cursor: self.search_cursor })
    }

    /// Writes what was accumulated over all batches.
    fn write_accumulated(&mut self) -> Result<(), Fault> {
        self.write_counts()?;
        indexes::write_days(self)?;
        for (merchant, Tail { last, epoch, last_before_epoch: before }) in std::mem::take(&mut self.event_tails) {
            self.tables.event_seqs().insert(merchant, (last, epoch.bits(), before));
        }
        compliance::write_all(self)?;
        billing::write_all(self)?;
        outbox::write_heads(self)
    }
}

/// The checks: compares what a batch expects with the stored rows and the earlier steps of the same batch.
impl Group<'_> {
    fn check(&mut self, step: &mut Step, overlay: &mut Overlay) -> Checked {
        match step {
            Step::Merchant(step) => self.check_merchant(step, overlay),
            Step::Payment(step) => self.check_payment(step, overlay),
            Step::Transfer(step) => transfers::check(self, step, overlay),
            Step::Event(step) => outbox::check_event(self, step, overlay),
            Step::Claim { claimed, names } => self.check_claim(claimed, names, overlay),
            Step::ClaimOutcome { tx_id, expected, outcome, record, is_facilitation } => {
                let decided = match claims::check_outcome(self, *tx_id, expected, outcome, overlay)? {
                    Ok(decided) => decided,
                    Err(refusal) => return Ok(Err(refusal)),
                };
                *is_facilitation = matches!(decided.purpose, Purpose::Facilitated(_));
                *record = record::claimed_to_bytes(&decided);
                Ok(Ok(()))
            }
            Step::ForgetClaims { tx_ids, names } => claims::check(self, tx_ids, names, overlay),
            Step::Remember { remembered, most, before } => self.check_remember(remembered, *most, before, overlay),
            Step::Delivery(step) => outbox::check_delivery(self, step, overlay),
            Step::Cursor { cursor, expected } => self.check_cursor(*cursor, *expected, overlay),
            Step::Index(indexed) => self.check_index(indexed),
            Step::Forget { made_before } => {
                overlay.delete_keys(*made_before);
                Ok(Ok(()))
            }
            Step::Handle { account, place, handling, record, names, assigned } => {
                let handled = match unmatched::check(self, overlay, account, *place, handling)? {
                    Ok(handled) => handled,
                    Err(refusal) => return Ok(Err(refusal)),
                };
                (*assigned, *record, *names) = (handled.assigned, handled.record, handled.names);
                self.check_assigned(*assigned, overlay)
            }
            Step::Unmatched { account, place, record, .. } => {
                unmatched::prefetch(self, overlay, account, *place, record)
            }
            Step::CheckCompliance { check, assessment } => compliance::check(self, check, assessment),
            Step::Admit { payment, merchant, quota } => self.check_quota(*payment, *merchant, *quota, overlay),
            Step::Compliance { merchant, change } => compliance::check_change(self, *merchant, change),
            Step::Invoice(invoicing) => billing::check_invoice(self, overlay, invoicing),
            Step::FeeTiers { schedule, expected } => billing::check_tiers(self, overlay, schedule, *expected),
            Step::ReceiptKeys { version, expected, .. } => self.check_receipt_keys(*version, *expected, overlay),
            Step::BeginEpoch(_) => self.check_epoch(),
            Step::Forbid(id) => self.check_forbidden(*id),
            Step::Reconciliation { from, checked_at, expected, .. } => {
                self.check_reconciliation(*from, *checked_at, *expected, overlay)
            }
            Step::Rate { at, expected, .. } => self.check_rate(*at, *expected, overlay),
            Step::Note { name, value, expected } => self.check_note(name, value, expected.as_deref(), overlay),
            Step::Lease { engine, is_new, until, .. } => duties::check_lease(self, *engine, *is_new, *until, overlay),
            Step::EndLease { engine, by, now } => duties::check_end(self, *engine, *by, *now, overlay),
            Step::Duty { duty, engine, is_taken, expected } => {
                duties::check_duty(self, *duty, *engine, *is_taken, *expected, overlay)
            }
            Step::OnDuty { duty, term } => duties::check_term(self, *duty, *term, overlay),
            Step::EnableEndpoint(endpoint) => {
                overlay.enabled.insert(endpoint.bits());
                Ok(Ok(()))
            }
            Step::Audit(_) | Step::Unwatch(_) | Step::Prune { .. } => Ok(Ok(())),
        }
    }

    /// Checks that the transaction of an assigned transfer was not settled for another server.
    fn check_assigned(&mut self, assigned: Option<(TxId, PaymentId)>, overlay: &mut Overlay) -> Checked {
        let Some((tx_id, payment)) = assigned else { return Ok(Ok(())) };
        overlay.assigned.insert(tx_id.0, payment);
        claims::check_not_facilitated(self, tx_id, overlay)
    }

    /// Checks that the store waits for its next epoch.
    fn check_epoch(&self) -> Checked {
        match deliveries::epochs(&self.tables.meta())?.last() {
            Some(&Epoch::PENDING) => Ok(Ok(())),
            _ => conflict("the epoch"),
        }
    }

    /// Forbids a commit of unknown outcome, unless it was applied.
    fn check_forbidden(&mut self, id: CommitId) -> Checked {
        match self.commits.resolve(id) {
            Resolution::Forbidden => Ok(Ok(())),
            Resolution::Applied => conflict(format_args!("commit {id}")),
        }
    }

    fn check_payment(&mut self, step: &mut PaymentStep, overlay: &mut Overlay) -> Checked {
        let id = step.id.bits();
        let stored = match overlay.payments.get(&id) {
            Some(facts) => Some(*facts),
            None => match self.tables.payments().get(id)? {
                Some(bytes) => Some(record::payment_facts(bytes.value()).map_err(Fault::damaged("payments", step.id))?),
                None => None,
            },
        };
        if stored.map(|facts| facts.version) != step.expected {
            return conflict(format_args!("payment {}", step.id));
        }
        match stored {
            Some(stored) if (stored.merchant, stored.slug) != (step.facts.merchant, step.facts.slug) => {
                return conflict(format_args!("the merchant or the slug of payment {}", step.id));
            }
            Some(_) => {}
            None => {
                let slug = step.facts.slug;
                if overlay.slugs.contains_key(&slug) || self.tables.slugs().has(slug)? {
                    return conflict(format_args!("the slug of payment {}", step.id));
                }
                overlay.slugs.insert(slug, id);
            }
        }
        if step.completed_volume.is_some() && stored.is_none_or(|stored| stored.state != step.facts.state) {
            let known = compliance::prefetch(self, step.facts.merchant)?;
            assert_eq!(known, Ok(()), "a prefetch rejects nothing");
        }
        if let Some(change) = billing::change_of(&step.facts, step.sale, stored.as_ref()) {
            billing::prefetch(self, overlay, step.id, step.facts.merchant, &change)?;
        }
        step.before = stored;
        overlay.payments.insert(id, step.facts);
        Ok(Ok(()))
    }

    fn check_merchant(&mut self, step: &mut MerchantStep, overlay: &mut Overlay) -> Checked {
        let id = step.id.bits();
        let stored = match overlay.merchants.get(&id) {
            Some(facts) => Some(facts.clone()),
            None => match self.tables.merchants().get(id)? {
                Some(bytes) => {
                    Some(record::merchant_facts(bytes.value()).map_err(Fault::damaged("merchants", step.id))?)
                }
                None => None,
            },
        };
        if stored.as_ref().map(|facts| facts.version) != step.expected {
            return conflict(format_args!("merchant {}", step.id));
        }
        for digest in &step.facts.digests {
            let holder = match overlay.keys.get(digest) {
                Some(holder) => *holder,
                None => self.tables.api_keys().get(digest)?.map(|holder| holder.value()),
            };
            if holder.is_some_and(|holder| holder != id) {
                return conflict(format_args!("an API key of merchant {}", step.id));
            }
        }
        for digest in stored.iter().flat_map(|stored| &stored.digests) {
            overlay.keys.insert(*digest, None);
        }
        for digest in &step.facts.digests {
            overlay.keys.insert(*digest, Some(id));
        }
        step.before = stored;
        overlay.merchants.insert(id, step.facts.clone());
        Ok(Ok(()))
    }

    fn check_claim(&mut self, claimed: &ClaimRecord, names: &[[u8; 32]], overlay: &mut Overlay) -> Checked {
        let tx_id = claimed.tx_id.0;
        let mut claimed_by = vec![tx_id];
        let names_checked = if mutant!("identifier-not-claimed") { 1 } else { usize::MAX };
        for name in names.iter().take(names_checked).filter(|_| !mutant!("nonce-claimed-twice")) {
            match overlay.nonces.get(name) {
                Some(tx_id) => claimed_by.push(*tx_id),
                None => claimed_by.extend(self.tables.nonces().get(name)?.map(|tx_id| *tx_id.value())),
            }
        }
        for tx_id in claimed_by {
            let earlier = match overlay.claims.get(&tx_id) {
                Some(earlier) => Some(earlier.clone()),
                None => claims::stored(self, tx_id)?,
            };
            if let Some(earlier) = earlier {
                return Ok(Err(CommitError::Claimed(Box::new(earlier))));
            }
        }
        // A transaction with an assigned transfer cannot seal_secrets a claim.
        let assigned = match overlay.assigned.get(&tx_id) {
            Some(payment) => Some(*payment),
            None => self.tables.assigned().get(&tx_id)?.map(|payment| PaymentId::from_bits(payment.value())),
        };
        if let Some(payment) = assigned {
            return Ok(Err(CommitError::Assigned(payment)));
        }
        overlay.nonces.extend(names.iter().map(|name| (*name, tx_id)));
        overlay.claims.insert(tx_id, claimed.clone());
        Ok(Ok(()))
    }

    fn check_rate(&mut self, at: Timestamp, expected: Option<Timestamp>, overlay: &mut Overlay) -> Checked {
        let stored = match overlay.rate_at {
            Some(at) => Some(at),
            None => match single::read(&self.tables.meta(), meta::RATE)? {
                Some(bytes) => Some(record::rate_from_bytes(&bytes).map_err(Fault::damaged("meta", meta::RATE))?.at),
                None => None,
            },
        };
        if stored != expected && !mutant!("rate-moves-back") {
            return conflict("the price of HIVE");
        }
        overlay.rate_at = Some(at);
        Ok(Ok(()))
    }

    fn check_receipt_keys(&mut self, version: u64, expected: u64, overlay: &mut Overlay) -> Checked {
        let stored = match overlay.receipt_keys_version {
            Some(version) => version,
            None => match single::read(&self.tables.meta(), meta::RECEIPT_KEYS)? {
                Some(bytes) => {
                    record::receipt_keys_version(&bytes).map_err(Fault::damaged("meta", meta::RECEIPT_KEYS))?
                }
                None => 0,
            },
        };
        if stored != expected {
            return conflict("the receipt keys");
        }
        overlay.receipt_keys_version = Some(version);
        Ok(Ok(()))
    }

    fn check_note(
        &mut self,
        name: &'static str,
        value: &[u8],
        expected: Option<&[u8]>,
        overlay: &mut Overlay,
    ) -> Checked {
        let stored = match overlay.notes.get(name) {
            Some(value) => Some(value.clone()),
            None => single::read(&self.tables.meta(), &meta::note(name))?,
        };
        if stored.as_deref() != expected {
            return conflict(format_args!("the note {name}"));
        }
        overlay.notes.insert(name, value.to_vec());
        Ok(Ok(()))
    }

    /// A damaged reconciliation counts as none: it is made again.
    fn check_reconciliation(
        &mut self,
        from: Timestamp,
        checked_at: Timestamp,
        expected: Option<Timestamp>,
        overlay: &mut Overlay,
    ) -> Checked {
        let days = self.tables.reconciled_days();
        let stored = match overlay.days_checked.get(&from.millis()) {
            Some(at) => Some(*at),
            None => match days.get_intact(from.millis())? {
                Some(bytes) => {
                    let read = record::day_from_bytes(bytes.value());
                    days.skip_damaged(read.map_err(Fault::damaged("reconciled_days", from)))?.map(|day| day.checked_at)
                }
                None => None,
            },
        };
        if stored != expected {
            return conflict(format_args!("the reconciliation of {from}"));
        }
        overlay.days_checked.insert(from.millis(), checked_at);
        Ok(Ok(()))
    }

    fn check_cursor(&mut self, cursor: Cursor, expected: Option<Cursor>, overlay: &mut Overlay) -> Checked {
        let stored = match overlay.cursor {
            Some(cursor) => Some(cursor),
            None => match single::read(&self.tables.meta(), meta::CURSOR)? {
                Some(bytes) => Some(record::cursor_from_bytes(&bytes).map_err(Fault::damaged("meta", meta::CURSOR))?),
                None => None,
            },
        };
        if stored != expected {
            return conflict("the cursor");
        }
        overlay.cursor = Some(cursor);
        Ok(Ok(()))
    }

    /// The words come from a snapshot: they are complete if no payment was inserted since.
    fn check_index(&mut self, indexed: &Indexed) -> Checked {
        if indexed.after != self.search_cursor {
            return conflict("the search cursor");
        }
        let range = (Bound::Excluded(indexed.after), Bound::Included(indexed.up_to));
        let mut payments = 0u64;
        for entry in self.tables.payments().range::<u128>(range)? {
            entry?;
            payments += 1;
        }
        if payments == indexed.payments { Ok(Ok(())) } else { conflict("the payments to index") }
    }
}

/// The writes. They follow the checks and cannot be rejected.
impl Group<'_> {
    fn write(&mut self, step: Step) -> Result<(), Fault> {
        match step {
            Step::Merchant(step) => self.write_merchant(step),
            Step::Payment(step) => self.write_payment(*step),
            Step::Transfer(step) => transfers::write(self, &step),
            Step::Event(step) => outbox::insert_event(self, &step),
            Step::ClaimOutcome { tx_id, outcome, record, is_facilitation, .. } => {
                claims::write_outcome(self, tx_id, &outcome, &record, is_facilitation)
            }
            Step::Claim { claimed, names } => {
                claims::write(self, &claimed, &names);
                Ok(())
            }
            Step::Remember { remembered, before, .. } => self.write_remembered(&remembered, before),
            Step::Forget { made_before } => self.forget(made_before),
            Step::Delivery(step) => outbox::apply_delivery(self, &step),
            Step::EnableEndpoint(endpoint) => outbox::reset_endpoint(self, endpoint),
            Step::Unwatch(account) => accounts::unwatch(self, &account),
            Step::ForgetClaims { tx_ids, names } => claims::forget(self, &tx_ids, &names),
            Step::Prune { happened_before } => outbox::prune(self, happened_before),
            Step::Cursor { cursor, .. } => self.set(meta::CURSOR, &record::cursor_to_bytes(&cursor)),
            Step::Unmatched { account, place, record, names, ledger_entries } => {
                ledger_entries.iter().try_for_each(|line| ledger_entries::write(self, line))?;
                unmatched::keep(self, &account, place, &record, names)
            }
            Step::Handle { account, place, record, names, assigned, .. } => {
                if let Some((tx_id, payment)) = assigned {
                    self.tables.assigned().insert(&tx_id.0, payment.bits());
                }
                unmatched::handle(self, &account, place, &record, names)
            }
            Step::Invoice(invoicing) => billing::invoice(self, *invoicing),
            Step::FeeTiers { schedule, .. } => self.set(meta::FEE_TIERS, &record::schedule_to_bytes(&schedule)),
            Step::ReceiptKeys { record, .. } => self.set(meta::RECEIPT_KEYS, &record),
            Step::Audit(audited) => self.append_audit(&audited),
            Step::CheckCompliance { check, assessment } => compliance::write_assessment(self, &check, assessment),
            Step::Admit { .. } | Step::Forbid(_) | Step::OnDuty { .. } => Ok(()),
            Step::Compliance { merchant, change } => compliance::change(self, merchant, change),
            Step::Reconciliation { from, record, .. } => {
                self.tables.reconciled_days().insert(from.millis(), record.as_slice());
                Ok(())
            }
            Step::BeginEpoch(epoch) => {
                let mut epochs = deliveries::epochs(&self.tables.meta())?;
                epochs.pop();
                epochs.push(epoch);
                self.set(meta::EPOCHS, &record::epochs_to_bytes(&epochs))
            }
            Step::Rate { record, .. } => self.set(meta::RATE, &record),
            Step::Lease { engine, is_new, now, until } => duties::write_lease(self, engine, is_new, now, until),
            Step::EndLease { engine, .. } => duties::end_lease(self, engine),
            Step::Duty { duty, engine, is_taken, expected } => {
                duties::write_duty(self, duty, engine, is_taken, expected);
                Ok(())
            }
            Step::Note { name, value, .. } => self.set(&meta::note(name), &value),
            Step::Index(indexed) => {
                for (merchant, word, payment) in &indexed.entries {
                    self.tables.search().insert((*merchant, word.as_str(), *payment), ());
                }
                self.search_cursor = indexed.up_to;
                self.set(meta::SEARCH_CURSOR, &indexed.up_to.to_be_bytes())
            }
        }
    }

    fn write_payment(&mut self, step: PaymentStep) -> Result<(), Fault> {
        let PaymentStep {
            id,
            facts,
            record,
            sale,
            updated_at,
            before,
            completed_volume,
            ledger_entries,
            refund_words,
            ..
        } = step;
        let bits = id.bits();
        if before.is_some_and(|before| before.metadata > facts.metadata) {
            indexes::remove_metadata_words(self, id, &record)?;
        }
        self.tables.payments().insert(bits, record.as_slice());
        indexes::list_payment(self, facts.merchant, bits, before.map(|before| before.summary), &facts.summary)?;
        indexes::count_day(self, facts.merchant, bits, before.as_ref().map(|before| &before.summary), &facts.summary);
        if before.is_none() {
            self.tables.slugs().insert(facts.slug, bits);
            if bits <= self.search_cursor {
                self.index_now(id, &record)?;
            }
        }
        if facts.refunds > before.map_or(0, |before| before.refunds) {
            let search = self.tables.search();
            for word in &refund_words {
                search.insert((facts.merchant, word.as_str(), bits), ());
            }
        }
        ledger_entries.iter().try_for_each(|line| ledger_entries::write(self, line))?;
        let bytes_before = before.map_or(0, |before| before.bytes);
        *self.counts.entry((facts.merchant, BYTES_COUNT)).or_default() +=
            facts.bytes.cast_signed() - bytes_before.cast_signed();
        let state_before = before.map(|before| before.state);
        if state_before != Some(facts.state) {
            *self.counts.entry((facts.merchant, facts.state.number())).or_default() += 1;
            if let Some(state) = state_before {
                *self.counts.entry((facts.merchant, state.number())).or_default() -= 1;
            }
        }
        // `completed` is final: a payment counts once, when it reaches that state.
        if let Some((at, usd_cents)) = completed_volume.filter(|_| state_before != Some(facts.state)) {
            compliance::count(self, facts.merchant, at, usd_cents)?;
        }
        if let Some(change) = billing::change_of(&facts, sale, before.as_ref()) {
            billing::change(self, id, facts.merchant, &change, updated_at)?;
        }
        let deadline_before = before.and_then(|before| before.deadline_ms);
        if deadline_before != facts.deadline_ms {
            if let Some(deadline_ms) = deadline_before {
                self.tables.deadlines().remove((deadline_ms, bits))?;
            }
            if let Some(deadline_ms) = facts.deadline_ms.filter(|_| !mutant!("deadline-not-indexed")) {
                self.tables.deadlines().insert((deadline_ms, bits), ());
            }
        }
        match (before.is_some_and(|before| before.is_in_flight), facts.is_in_flight) {
            (false, true) if mutant!("claim-not-indexed") => {}
            (false, true) => self.tables.in_flight().insert(bits, ()),
            (true, false) => self.tables.in_flight().remove(bits)?,
            _ => {}
        }
        Ok(())
    }

    /// Indexes a payment whose id precedes the search cursor, because a clock ran behind.
    fn index_now(&mut self, id: PaymentId, record: &[u8]) -> Result<(), Fault> {
        let payment = record::payment_from_bytes(id, record).map_err(Fault::damaged("payments", id))?;
        for word in search::indexed_words_of(&payment) {
            self.tables.search().insert((payment.merchant.bits(), word.as_str(), id.bits()), ());
        }
        Ok(())
    }

    fn write_merchant(&mut self, step: MerchantStep) -> Result<(), Fault> {
        let id = step.id.bits();
        self.tables.merchants().insert(id, step.record.as_slice());
        let none = BTreeSet::new();
        let before = step.before.as_ref().map_or(&none, |before| &before.digests);
        for removed in before.difference(&step.facts.digests) {
            self.tables.api_keys().remove(removed)?;
        }
        for new in step.facts.digests.difference(before) {
            self.tables.api_keys().insert(new, id);
        }
        accounts::index(self, id, step.before.as_ref(), &step.facts, step.at)
    }
}

#[cfg(test)]
mod tests;
