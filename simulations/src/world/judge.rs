//! The end of a world: faults are healed, the store is looked through, and what is left is judged.

use std::collections::BTreeSet;
use storage::prelude::*;

use engine::billing::{Sale, Usage};

use super::*;
use crate::observer::Rows;

/// How much longer a world goes on so that what is due can happen, milliseconds.
const LONGEST_WAIT_MS: u64 = 40 * 86_400_000;

/// Returns the transfers of a payment as they are stored.
async fn rows_of(store: &EmbeddedStore, id: PaymentId) -> Result<Rows, storage::ReadError> {
    let rows = store.transfers(id, None, usize::MAX).await?;
    Ok(rows.into_iter().map(|row| ((row.tx_id, row.op_in_tx), row)).collect())
}

impl World {
    /// Compares the store with what was durable, and learns what became of commits of unknown fate.
    pub(super) async fn compare(&self, store: &EmbeddedStore) -> Result<(), String> {
        self.disk.set_quiet(true);
        let compared = self.compare_quietly(store).await;
        self.disk.set_quiet(false);
        compared
    }

    /// Verifies the whole store: every record, every index and every count.
    fn verify(&self, store: &EmbeddedStore) -> Result<(), String> {
        let report = store.verify_inline().map_err(|error| error.to_string())?;
        self.observe(|observer| match report.findings.first() {
            Some(first) => {
                let text = format!("{} findings, the first: {first}", report.finding_count);
                observer.violate("store-verifies", text, None);
            }
            None => observer.passes("store-verifies"),
        });
        Ok(())
    }

    /// Holds that no row shows a secret while there is a master key.
    fn look_for_secrets(&self, store: &EmbeddedStore) -> Result<(), String> {
        if lock(&self.sealing).current == 0 {
            return Ok(());
        }
        let mut shown = Vec::new();
        let prefix = engine::webhook::Secret::PREFIX.as_bytes();
        let see = |row: storage::Row| {
            if memchr::memmem::find(&row.value, prefix).is_some() {
                shown.push(row.table);
            }
        };
        store.each_row_inline(see).map_err(|error| error.to_string())?;
        self.observe(|observer| match shown.first() {
            Some(table) => observer.violate("secrets-are-sealed", format!("a row of {table} shows a secret"), None),
            None => observer.passes("secrets-are-sealed"),
        });
        Ok(())
    }

    pub(super) async fn compare_quietly(&self, store: &EmbeddedStore) -> Result<(), String> {
        let failed = |error: storage::ReadError| error.to_string();
        if self.is_damaged() {
            self.observe(|observer| {
                observer.posting.clear();
                observer.answered.clear();
            });
            return self.compare_damaged(store).await;
        }
        self.verify(store)?;
        self.look_for_secrets(store)?;
        let maybe = self.observe(|observer| {
            observer.posting.clear();
            std::mem::take(&mut observer.maybe)
        });
        for batch in maybe {
            let applied = is_applied(store, &batch).await.map_err(failed)?;
            self.mark(if applied { "an unknown commit was committed" } else { "an unknown commit was not" });
            if applied {
                self.tell_commit(&batch);
                self.observe(|observer| observer.committed(&batch));
            }
        }
        let (dirty, cursor, merchants) = self.observe(|observer| {
            observer.answered.clear();
            let merchants: Vec<_> = observer.merchants.values().cloned().collect();
            (std::mem::take(&mut observer.dirty), observer.cursor, merchants)
        });
        let mut lost = None;
        for id in dirty {
            let stored = store.payment(id).await.map_err(failed)?;
            let rows = rows_of(store, id).await.map_err(failed)?;
            let same = self.observe(|observer| {
                observer.payments.get(&id).is_some_and(|known| stored.as_ref() == Some(&known.payment))
                    && observer.rows.get(&id).map_or(rows.is_empty(), |known| *known == rows)
            });
            if !same {
                let what =
                    stored.map_or_else(|| "nothing".to_owned(), |s| format!("{} version {}", s.state, s.version));
                lost = Some((format!("{id} is not as it was durable: the store has {what}"), Some(id)));
                break;
            }
        }
        let stored_cursor = store.cursor().await.map_err(failed)?;
        if stored_cursor != cursor {
            lost.get_or_insert((format!("the cursor is {stored_cursor:?} and was {cursor:?}"), None));
        }
        for merchant in merchants {
            if store.merchant(merchant.id).await.map_err(failed)?.as_deref() != Some(&merchant) {
                lost.get_or_insert((format!("{} is not as it was durable", merchant.id), None));
            }
        }
        self.compare_endpoints(store).await.map_err(failed)?;
        let indexed = store.in_flight().await.map_err(failed)?;
        self.observe(|observer| {
            let payments = observer.payments.values().map(|known| &known.payment);
            let mut undecided: Vec<PaymentId> = payments.filter(|p| p.awaits_finality()).map(|p| p.id).collect();
            undecided.sort_unstable();
            if lost.is_none() && undecided != indexed {
                let text = format!("{} sessions are listed as undecided, and {} are", indexed.len(), undecided.len());
                let missing = undecided.into_iter().find(|id| !indexed.contains(id));
                observer.violate("index-tells-the-truth", text, missing);
            } else {
                observer.passes("index-tells-the-truth");
            }
        });
        self.observe(|observer| match lost {
            Some((text, payment)) => observer.violate("durable-survives-boot", text, payment),
            None => observer.passes("durable-survives-boot"),
        });
        Ok(())
    }

    /// Compares what the store knows of endpoints with what their attempts say.
    async fn compare_endpoints(&self, store: &EmbeddedStore) -> Result<(), storage::ReadError> {
        let merchants: Vec<_> = self.observe(|observer| observer.merchants.keys().copied().collect());
        for merchant in merchants {
            let stored = store.endpoint(merchant).await?;
            self.observe(|observer| {
                // What a damaged row said is learned anew.
                let known = observer.endpoints.get(&merchant).map(|seen| seen.known.clone()).unwrap_or_default();
                if stored == known || observer.was_damaged {
                    observer.passes("endpoints-are-as-attempted");
                } else {
                    let text =
                        format!("the endpoint of {merchant} is known as {stored:?}, and its attempts say {known:?}");
                    observer.violate("endpoints-are-as-attempted", text, None);
                }
            });
        }
        Ok(())
    }

    /// Ends everything that is wrong: from now on all must come right.
    pub(super) fn heal(self: &Arc<Self>) {
        self.faults_on.store(false, Ordering::Relaxed);
        self.hive().heal();
        self.observe_market();
        self.receivers().heal();
        self.set_disk_faults();
        self.disk.disarm();
        self.disk.set_spare(None);
        *lock(&self.traps) = Traps::default();
        self.set_clock(0);
        self.event(Lane::Process, "heal", None, 0, || "faults end here; everything has to come right now".to_owned());
        let is_mended = self.mend();
        self.mend_log();
        // Some sixty blocks.
        self.schedule_in(self.block_ms() * 200 / 3, Event::Finish);
        if is_mended || !self.script.setup.heal_without_restart {
            self.die(Death::Killed);
        }
    }

    /// Looks whether everything has come right; says whether it is over.
    pub(super) async fn finish(self: &Arc<Self>, engine: &Engine, store: &EmbeddedStore) -> bool {
        // Sessions that live longer, webhooks whose time is near: give them theirs.
        let (latest_ms, known) = self.observe(|observer| {
            let open = observer.payments.values().map(|known| &known.payment).filter(|p| !p.state.is_terminal());
            let sessions =
                open.map(|p| (p.expires_at + p.grace).max(p.claim.as_ref().map_or(Timestamp::EPOCH, |c| c.expiration)));
            let claims =
                observer.payments.values().filter_map(|known| known.payment.claim.as_ref()).map(|c| c.expiration);
            let elsewhere = observer.claims.values().filter_map(|claimed| match &claimed.purpose {
                engine::x402::Purpose::Facilitated(facilitation)
                    if claimed.outcome == engine::x402::ClaimOutcome::Open =>
                {
                    Some(facilitation.expiration)
                }
                _ => None,
            });
            // A scenario that counts webhooks waits for those that are still to come.
            let counts = self.script.expect.iter().any(|expect| expect.webhooks.is_some());
            let to_come = observer.deliveries.values().filter(|_| counts).filter_map(|carried| carried.due_at);
            let latest = sessions.chain(claims).chain(elsewhere).chain(to_come).max();
            (latest.map(|time| time.millis().saturating_sub(EPOCH_SECONDS * 1_000)), observer.payments.len())
        });
        let now_ms = self.now_ms();
        let margin = (20 + u64::from(self.script.setup.finality_lag)) * self.block_ms();
        let wanted = latest_ms.map_or(now_ms, |latest| latest + margin + 120_000 + 4 * self.block_ms());
        {
            let mut agenda = lock(&self.agenda);
            if wanted > now_ms && wanted > agenda.last_finish_ms && wanted < now_ms + LONGEST_WAIT_MS {
                agenda.last_finish_ms = wanted;
                drop(agenda);
                self.schedule(wanted, Event::Finish);
                return false;
            }
        }
        self.disk.set_quiet(true);
        let looked = self.look(engine, store, known).await;
        self.disk.set_quiet(false);
        if let Err(why) = looked {
            self.observe(|observer| {
                observer.violate("durable-survives-boot", format!("the store cannot be read: {why}"), None);
            });
        }
        true
    }

    pub(super) async fn look(
        self: &Arc<Self>,
        engine: &Engine,
        store: &EmbeddedStore,
        known: usize,
    ) -> Result<(), String> {
        let failed = |error: storage::ReadError| error.to_string();
        self.verify(store)?;
        let ids: Vec<PaymentId> = self.observe(|observer| observer.payments.keys().copied().collect());
        let mut stored = BTreeMap::new();
        let mut stored_rows = BTreeMap::new();
        for id in ids {
            let rows = rows_of(store, id).await.map_err(failed)?;
            if !rows.is_empty() {
                stored_rows.insert(id, rows);
            }
            match store.payment(id).await.map_err(failed)? {
                Some(payment) => drop(stored.insert(id, payment)),
                None => self
                    .observe(|observer| observer.violate("durable-survives-boot", format!("{id} is gone"), Some(id))),
            }
        }
        let accounts: Vec<_> = self.observe(|observer| observer.accounts.ever().chain(observer.fee_account).collect());
        let mut stored_unmatched = Vec::new();
        for account in accounts {
            stored_unmatched.extend(store.unmatched(account, usize::MAX).await.map_err(failed)?);
        }
        self.compare_endpoints(store).await.map_err(failed)?;
        self.look_at_usage(store, stored.values()).await.map_err(failed)?;
        self.compare_every_list(store).await.map_err(failed)?;
        self.judge_plain();
        let in_flight = store.in_flight().await.map_err(failed)?;
        let outbox = store.due_deliveries(Timestamp::MAX, usize::MAX).await.map_err(failed)?;
        let scanned_num = engine.operations.health().await.map_or(0, |health| health.ledger.scanned_num);
        let now = engine.now();
        let differing = self.observe(|observer| {
            let differs = |(id, payment): (&PaymentId, &engine::payment::Payment)| {
                observer.payments.get(id).is_none_or(|known| *known.payment != *payment).then_some(*id)
            };
            let other_rows = |id: &&PaymentId| stored_rows.get(id) != observer.rows.get(id);
            stored.iter().find_map(differs).or_else(|| stored.keys().find(other_rows).copied())
        });
        if let Some(id) = differing.or_else(|| (stored.len() < known).then_some(PaymentId::from_bits(0))) {
            let text = format!("{id} is not stored as it was made durable");
            self.observe(|observer| observer.violate("durable-survives-boot", text, Some(id)));
        }
        self.observe(|observer| {
            observer.ends(|observer| End { observer, now, scanned_num, in_flight, stored, stored_unmatched, outbox });
            for name in ["boot-ends", "stop-ends", "time-moves", "no-panic", "webhook-is-readable", "claimed-once"] {
                observer.passes(name);
            }
        });
        self.check_expectations();
        Ok(())
    }

    /// Holds what was counted for billing against the payments that completed.
    async fn look_at_usage<'p>(
        &self,
        store: &EmbeddedStore,
        payments: impl Iterator<Item = &'p engine::payment::Payment>,
    ) -> Result<(), storage::ReadError> {
        let mut sold: BTreeMap<_, Usage> = BTreeMap::new();
        for payment in payments {
            if let Some(sale) = Sale::of(payment) {
                sold.entry(payment.merchant).or_default().add(&sale);
            }
        }
        let merchants: Vec<_> = self.observe(|observer| observer.merchants.keys().copied().collect());
        for merchant in merchants {
            let mut counted = Usage::default();
            for period in store.periods_of(merchant).await? {
                counted.volume_cents += period.usage.volume_cents;
                counted.payments += period.usage.payments;
                counted.split_volume_cents += period.usage.split_volume_cents;
                counted.missing_fee_millicents += period.usage.missing_fee_millicents;
            }
            let wanted = sold.get(&merchant).copied().unwrap_or_default();
            self.observe(|observer| {
                if counted == wanted {
                    observer.passes("usage-counts-once");
                } else {
                    let text = format!("{merchant} is billed for {counted:?} and sold {wanted:?}");
                    observer.violate("usage-counts-once", text, None);
                }
            });
        }
        Ok(())
    }

    pub(super) fn check_expectations(&self) {
        for expect in &self.script.expect {
            let id = self.people().sessions.get(&expect.session).map(|known| known.id);
            self.observe(|observer| {
                let Some((id, payment)) =
                    id.and_then(|id| observer.payments.get(&id).map(|known| (id, known.payment.clone())))
                else {
                    observer.violate("expected", format!("session {} was never opened", expect.session), None);
                    return;
                };
                let state = payment.state.as_str();
                let mut wrong = Vec::new();
                if !expect.states.is_empty() && !expect.states.iter().any(|word| word == state) {
                    wrong.push(format!("it is {state}, expected {}", expect.states.join(" or ")));
                }
                let cents = payment.quote.usd_cents;
                if let Some(wanted) = expect.usd_cents.filter(|wanted| *wanted != cents) {
                    wrong.push(format!("it is worth {cents} US cents, expected {wanted}"));
                }
                if let Some(units) = expect.credited_units.filter(|units| *units != payment.paid_units()) {
                    wrong.push(format!("{} units are credited, expected {units}", payment.paid_units()));
                }
                let exceptions: BTreeSet<_> =
                    payment.exceptions().into_iter().map(engine::payment::Exception::as_str).collect();
                let is_other =
                    |wanted: &&Vec<String>| !wanted.iter().map(String::as_str).eq(exceptions.iter().copied());
                let wanted = expect.exceptions.clone().map(|mut wanted| {
                    wanted.sort_unstable();
                    wanted
                });
                if let Some(wanted) = wanted.as_ref().filter(is_other) {
                    wrong.push(format!("its exceptions are {exceptions:?}, expected {wanted:?}"));
                }
                let heard = observer.heard.get(&id).map_or(0, BTreeSet::len);
                if let Some(wanted) = expect.webhooks.filter(|wanted| *wanted != heard) {
                    wrong.push(format!("the merchant heard {heard} events, expected {wanted}"));
                }
                if let Some(first) = wrong.first() {
                    observer.violate("expected", first.clone(), Some(id));
                } else {
                    observer.passes("expected");
                }
            });
        }
    }

    pub(super) fn outcome(&self) -> Outcome {
        let observer = lock(&self.observer);
        let mut trace = self.trace();
        let (digest, len) = self.disk.digest();
        let (operations, syncs) = self.disk.counts();
        for word in [digest, len, operations, syncs] {
            trace.mix(word);
        }
        let mut outcome = Outcome {
            violation: observer.violation().cloned(),
            hash: trace.hash(),
            faults: trace.faults().clone(),
            marks: trace.marks(),
            places: trace.places().clone(),
            passes: observer.passes.clone(),
            virtual_ms: self.time.base_ms.load(Ordering::Relaxed),
            boots: u32::try_from(trace.marked("the process starts")).unwrap_or(0),
            events: trace.events(),
            syncs,
            lines: trace.take_lines(),
            ..Outcome::default()
        };
        for known in observer.payments.values() {
            *outcome.states.entry(known.payment.state.as_str()).or_default() += 1;
            outcome.lifecycles += u64::from(known.payment.state.is_terminal());
        }
        outcome
    }

    // ---- blocks and trouble ----------------------------------------------------------------------------------------
}
