//! The end of a simulation: faults end, the store is compared with what was durable, the final state is checked.

use std::collections::BTreeSet;
use storage::{ReadError, prelude::*};

use engine::{
    billing::{Sale, Usage},
    ids::EndpointId,
    merchant::Merchant,
    money::Money,
    payment::{Exception, Payment},
    webhook::{EndpointHealth, Warning},
};

use super::*;
use crate::{
    observer::{Response, Rows},
    script::Expect,
};

/// How much longer a simulation runs so that what is due can happen, milliseconds.
const LONGEST_WAIT_MS: u64 = 40 * 86_400_000;

/// Returns the transfers of a payment as they are stored.
async fn rows_of(store: &EmbeddedStore, id: PaymentId) -> Result<Rows, ReadError> {
    let rows = store.transfers(id, None, usize::MAX).await?;
    Ok(rows.into_iter().map(|row| ((row.tx_id, row.op_in_tx), row)).collect())
}

/// Findings of a verification that a violation shows.
const SHOWN_FINDINGS: usize = 4;

impl Simulation {
    /// Compares the store with what was durable, and resolves commits of unknown outcome.
    pub(super) async fn compare(&self, store: &EmbeddedStore) -> Result<(), String> {
        self.disk.set_quiet(true);
        let compared = self.compare_quietly(store).await;
        self.disk.set_quiet(false);
        compared
    }

    /// Verifies the whole store: every record, every index and every count.
    fn verify(&self, store: &EmbeddedStore) -> Result<(), String> {
        let report = store.verify_inline().map_err(|error| error.to_string())?;
        let first: Vec<&str> = report.findings.iter().take(SHOWN_FINDINGS).map(String::as_str).collect();
        self.observe(|observer| {
            if first.is_empty() {
                observer.passes("store-verifies");
            } else {
                let text = format!("{} findings, the first: {}", report.finding_count, first.join("; "));
                observer.violate("store-verifies", text, None);
            }
        });
        Ok(())
    }

    /// Checks that no row shows a secret while there is a master key.
    fn check_secrets(&self, store: &EmbeddedStore) -> Result<(), String> {
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

    async fn compare_quietly(&self, store: &EmbeddedStore) -> Result<(), String> {
        if self.is_damaged() {
            self.observe(|observer| {
                observer.posts_in_flight.clear();
                observer.receiver_responses.clear();
            });
            return self.compare_damaged(store).await;
        }
        self.verify(store)?;
        self.check_secrets(store)?;
        self.resolve_unknown_commits(store).await.map_err(|error| error.to_string())?;
        self.compare_with_durable(store).await.map_err(|error| error.to_string())
    }

    /// Resolves which commits of unknown outcome are in the store.
    async fn resolve_unknown_commits(&self, store: &EmbeddedStore) -> Result<(), ReadError> {
        let unknown_commits = self.observe(|observer| {
            observer.posts_in_flight.clear();
            std::mem::take(&mut observer.unknown_commits)
        });
        for batch in unknown_commits {
            // What the store has may be from an earlier one of these batches: a transaction is claimed once, and has one outcome.
            let is_overtaken = |write: &Write| match write {
                Write::Claim(claimed) => self.observe(|observer| observer.known_claim(claimed.tx_id).is_some()),
                Write::ClaimOutcome { tx_id, expected, .. } => self
                    .observe(|observer| observer.known_claim(*tx_id).is_some_and(|known| known.outcome != *expected)),
                _ => false,
            };
            let applied = !batch.writes.iter().any(is_overtaken) && unknown_commits::is_applied(store, &batch).await?;
            self.mark(if applied {
                "a commit of unknown outcome was applied"
            } else {
                "a commit of unknown outcome was dropped"
            });
            if applied {
                self.trace_commit(&batch);
                self.observe(|observer| observer.committed(&batch));
            }
        }
        Ok(())
    }

    /// Compares what changed since the last start with what was durable.
    async fn compare_with_durable(&self, store: &EmbeddedStore) -> Result<(), ReadError> {
        let (dirty, cursor, merchants) = self.observe(|observer| {
            observer.receiver_responses.clear();
            let merchants: Vec<_> = observer.merchants.values().cloned().collect();
            (std::mem::take(&mut observer.dirty), observer.cursor, merchants)
        });
        let mut lost = self.find_lost_payment(store, dirty).await?;
        let stored_cursor = store.cursor().await?;
        if stored_cursor != cursor {
            lost.get_or_insert((format!("the cursor is {stored_cursor:?} and was {cursor:?}"), None));
        }
        for merchant in merchants {
            if store.merchant(merchant.id).await?.as_deref() != Some(&merchant) {
                lost.get_or_insert((format!("{} is not as it was durable", merchant.id), None));
            }
        }
        self.compare_endpoints(store).await?;
        self.compare_undecided(store, lost.is_none()).await?;
        self.compare_records(store, false).await?;
        self.observe(|observer| match lost {
            Some((text, payment)) => observer.violate("durable-survives-boot", text, payment),
            None => observer.passes("durable-survives-boot"),
        });
        Ok(())
    }

    /// Returns the first payment that is not stored as it was durable.
    async fn find_lost_payment(
        &self,
        store: &EmbeddedStore,
        payments: BTreeSet<PaymentId>,
    ) -> Result<Option<(String, Option<PaymentId>)>, ReadError> {
        for id in payments {
            let stored = store.payment(id).await?;
            let rows = rows_of(store, id).await?;
            let same = self.observe(|observer| {
                observer.payments.get(&id).is_some_and(|known| stored.as_ref() == Some(&known.payment))
                    && observer.rows.get(&id).map_or(rows.is_empty(), |known| *known == rows)
            });
            if !same {
                let what =
                    stored.map_or_else(|| "nothing".to_owned(), |s| format!("{} version {}", s.state, s.version));
                return Ok(Some((format!("{id} is not as it was durable: the store has {what}"), Some(id))));
            }
        }
        Ok(None)
    }

    /// Compares the index of undecided payments with the payments, unless the store lost some.
    async fn compare_undecided(&self, store: &EmbeddedStore, has_all: bool) -> Result<(), ReadError> {
        let indexed = store.in_flight().await?;
        self.observe(|observer| {
            let payments = observer.payments.values().map(|known| &known.payment);
            let mut undecided: Vec<PaymentId> = payments.filter(|p| p.awaits_finality()).map(|p| p.id).collect();
            undecided.sort_unstable();
            if has_all && undecided != indexed {
                let text = format!("{} sessions are listed as undecided, and {} are", indexed.len(), undecided.len());
                let missing = undecided.into_iter().find(|id| !indexed.contains(id));
                observer.violate("index-matches-the-sessions", text, missing);
            } else {
                observer.passes("index-matches-the-sessions");
            }
        });
        Ok(())
    }

    /// Compares the stored health of endpoints with the expected one.
    pub(super) async fn compare_endpoints(&self, store: &EmbeddedStore) -> Result<(), ReadError> {
        let endpoints: Vec<_> = self.observe(|observer| {
            let of = |merchant: &Merchant| {
                let others = merchant.endpoints.iter().map(|endpoint| endpoint.id);
                std::iter::once(EndpointId::default_of(merchant.id)).chain(others).collect::<Vec<_>>()
            };
            observer.merchants.values().flat_map(of).collect()
        });
        for endpoint in endpoints {
            let stored = store.endpoint(endpoint).await?;
            self.observe(|observer| {
                // The content of a damaged row is learned again.
                let known = observer.endpoints.get(&endpoint).map(|seen| seen.known.clone()).unwrap_or_default();
                if let Some(text) = wrong_warning(&stored) {
                    observer.violate("endpoints-are-as-attempted", text, None);
                } else if stored == known || observer.was_damaged {
                    observer.passes("endpoints-are-as-attempted");
                } else {
                    let text = format!("{endpoint} is known as {stored:?}, and its attempts show {known:?}");
                    observer.violate("endpoints-are-as-attempted", text, None);
                }
            });
        }
        Ok(())
    }

    /// Ends all faults: from now on everything must recover.
    pub(super) fn heal(self: &Arc<Self>) {
        self.faults_on.store(false, Ordering::Relaxed);
        self.hive().heal();
        self.observe_market();
        self.receivers().heal();
        self.set_disk_faults();
        self.disk.disarm();
        lock(&self.cuts).clear();
        if let Some(store) = lock(&self.shared_store).as_ref() {
            store.heal();
        }
        self.disk.set_spare(None);
        self.check_armed_points();
        *lock(&self.armed_faults) = ArmedFaults::default();
        for process in &self.processes {
            *lock(&process.armed) = process::ArmedPoints::default();
            process.resume();
            self.set_clock(process, 0);
        }
        self.event(Source::Process, "heal", None, 0, || "faults end; everything must recover from now on".to_owned());
        let is_repaired = self.repair_rows();
        self.repair_log();
        // Some sixty blocks.
        self.schedule_in(self.block_ms() * 200 / 3, Event::Finish);
        if is_repaired || !self.script.setup.heal_without_restart {
            self.processes.iter().for_each(|process| self.exit_process(process, ProcessExit::Killed));
        }
    }

    /// Checks whether everything has recovered; returns whether the run is over.
    pub(super) async fn finish(self: &Arc<Self>, engine: &Engine, store: &EmbeddedStore) -> bool {
        // Wait for sessions with a longer lifetime and for webhooks that are due soon.
        let (latest_ms, known) = self.observe(|observer| {
            // Do not wait for the year in which an invoice may be paid.
            let open = observer.payments.values().map(|known| &known.payment);
            let open = open.filter(|p| !p.state.is_terminal() && !p.is_invoice);
            let sessions =
                open.map(|p| (p.expires_at + p.grace).max(p.claim.as_ref().map_or(Timestamp::EPOCH, |c| c.expiration)));
            let claims =
                observer.payments.values().filter_map(|known| known.payment.claim.as_ref()).map(|c| c.expiration);
            let other_engine = observer.claims.values().filter_map(|claimed| match &claimed.purpose {
                engine::x402::Purpose::Facilitated(facilitation) if claimed.outcome.is_open() => {
                    Some(facilitation.expiration)
                }
                _ => None,
            });
            // A scenario that counts webhooks waits for those that are still to come.
            let counts = self.script.expect.iter().any(|expect| expect.webhooks.is_some());
            let to_come =
                observer.deliveries.values().filter(|_| counts).filter_map(|delivery_state| delivery_state.due_at);
            let latest = sessions.chain(claims).chain(other_engine).chain(to_come).max();
            (latest.map(|time| time.millis().saturating_sub(EPOCH_SECONDS * 1_000)), observer.payments.len())
        });
        let now_ms = self.now_ms();
        let margin = (20 + u64::from(self.script.setup.finality_lag)) * self.block_ms();
        let wanted = latest_ms.map_or(now_ms, |latest| latest + margin + 120_000 + 4 * self.block_ms());
        {
            let mut event_queue = lock(&self.event_queue);
            if wanted > now_ms && wanted > event_queue.last_finish_ms && wanted < now_ms + LONGEST_WAIT_MS {
                event_queue.last_finish_ms = wanted;
                drop(event_queue);
                self.schedule(wanted, Event::Finish);
                return false;
            }
        }
        self.disk.set_quiet(true);
        let looked = self.check_end(engine, store, known).await;
        self.disk.set_quiet(false);
        if let Err(why) = looked {
            self.observe(|observer| {
                observer.violate("durable-survives-boot", format!("the store cannot be read: {why}"), None);
            });
        }
        true
    }

    /// Checks the final state of the store, with `known` payments that were durable.
    async fn check_end(self: &Arc<Self>, engine: &Engine, store: &EmbeddedStore, known: usize) -> Result<(), String> {
        self.verify(store)?;
        self.check_final_state(engine, store, known).await.map_err(|error| error.to_string())?;
        self.check_expected_nodes(engine);
        self.check_expectations();
        self.check_wallet();
        Ok(())
    }

    async fn check_final_state(
        self: &Arc<Self>,
        engine: &Engine,
        store: &EmbeddedStore,
        known: usize,
    ) -> Result<(), ReadError> {
        let (stored, stored_rows) = self.read_payments(store).await?;
        let accounts: Vec<_> = self.observe(|observer| observer.accounts.ever().chain(observer.fee_account).collect());
        let mut stored_unmatched = Vec::new();
        for account in accounts {
            stored_unmatched.extend(store.unmatched(account, usize::MAX).await?);
        }
        self.compare_endpoints(store).await?;
        self.compare_usage(store, stored.values()).await?;
        self.compare_records(store, true).await?;
        self.check_retention(store).await?;
        self.compare_every_list(store).await?;
        self.compare_searches(store).await?;
        self.check_required_outcomes();
        self.check_refunds_due(engine, &stored).await;
        let in_flight = store.in_flight().await?;
        let outbox = store.due_deliveries(Timestamp::MAX, usize::MAX).await?;
        let scanned_num = engine.operations.health().await.map_or(0, |health| health.ledger.scanned_num);
        let now = engine.now();
        let differing = self.observe(|observer| {
            let differs = |(id, payment): (&PaymentId, &Payment)| {
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
        Ok(())
    }

    /// Checks what is owed back of each payment that has transfers.
    async fn check_refunds_due(&self, engine: &Engine, stored: &BTreeMap<PaymentId, Payment>) {
        for payment in stored.values().filter(|payment| payment.transfer_count() > 0) {
            if let Ok(owed) = engine.payments.owed(payment).await {
                self.observe(|observer| observer.responded(&Response::Owed { payment, owed: &owed }));
            }
        }
    }

    /// Returns the payments that were durable as they are stored, and their transfers.
    async fn read_payments(
        &self,
        store: &EmbeddedStore,
    ) -> Result<(BTreeMap<PaymentId, Payment>, BTreeMap<PaymentId, Rows>), ReadError> {
        let ids: Vec<PaymentId> = self.observe(|observer| observer.payments.keys().copied().collect());
        let (mut stored, mut stored_rows) = (BTreeMap::new(), BTreeMap::new());
        for id in ids {
            let rows = rows_of(store, id).await?;
            if !rows.is_empty() {
                stored_rows.insert(id, rows);
            }
            match store.payment(id).await? {
                Some(payment) => drop(stored.insert(id, payment)),
                None => self
                    .observe(|observer| observer.violate("durable-survives-boot", format!("{id} is gone"), Some(id))),
            }
        }
        Ok((stored, stored_rows))
    }

    /// Checks what was counted for billing against the payments that completed.
    async fn compare_usage<'p>(
        &self,
        store: &EmbeddedStore,
        payments: impl Iterator<Item = &'p Payment>,
    ) -> Result<(), ReadError> {
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

    /// Checks that the kills and the panics at points that a scenario names have happened, of several engines to one of them:
    /// without it, the run shows nothing.
    fn check_armed_points(&self) {
        // Random steps have no names of sessions, and may be at points that their run does not reach.
        if self.script.names.is_empty() {
            return;
        }
        let has_several = self.processes.len() > 1;
        for process in &self.processes {
            let struck = &lock(&self.armed_faults).struck_points;
            let is_left = |point: &&String| !has_several || !struck.contains(point.as_str());
            let armed = lock(&process.armed);
            let left = armed.kill_at.iter().chain(&armed.panic_at).find(is_left).cloned();
            drop(armed);
            self.observe(|observer| match left {
                Some(point) => {
                    let text = format!("the point {point:?} is not reached after its step and before faults end");
                    observer.violate("expected", text, None);
                }
                None => observer.passes("expected"),
            });
        }
    }

    /// Checks the payments of the agent with a wallet against the chain.
    fn check_wallet(&self) {
        let contradiction = self.clients().wallet.contradicted_by(&self.hive().chain);
        self.observe(|observer| match contradiction {
            Some((invariant, text)) => observer.violate(invariant, text, None),
            None => {
                for invariant in ["never-over-budget", "one-charge-per-request", "released-is-not-spent"] {
                    observer.passes(invariant);
                }
            }
        });
    }

    /// Checks the final states that the scenario expects.
    fn check_expectations(&self) {
        for expect in &self.script.expect {
            let id = self.clients().sessions.get(&expect.session).map(|known| known.id);
            self.observe(|observer| {
                let known = id.and_then(|id| observer.payments.get(&id));
                let Some((id, payment)) = id.zip(known.map(|known| known.payment.clone())) else {
                    observer.violate("expected", format!("session {} was never created", expect.session), None);
                    return;
                };
                let received = observer.received.get(&id).map_or(0, BTreeSet::len);
                match difference(expect, &payment, received) {
                    Some(text) => observer.violate("expected", text, Some(id)),
                    None => observer.passes("expected"),
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
}

/// Returns what is wrong with the warnings about an endpoint around the times at which they change.
fn wrong_warning(endpoint: &EndpointHealth) -> Option<String> {
    let since = endpoint.failing_since?;
    let hours = |count: u64| Duration::from_secs(count * 3_600);
    let moment = Duration::from_millis(1);
    let times = [
        (Duration::ZERO, None),
        (hours(24) - moment, None),
        (hours(24), Some(Warning::Failing24Hours)),
        (hours(72) - moment, Some(Warning::Failing24Hours)),
        (hours(72), Some(Warning::Failing72Hours)),
        (hours(500), Some(Warning::Failing72Hours)),
    ];
    let wrong = times.into_iter().find(|(after, wanted)| endpoint.warning(since + *after) != *wanted);
    wrong.map(|(after, wanted)| format!("the warning after {} s of failures is not {wanted:?}", after.as_secs()))
}

/// Returns the first way in which a payment differs from what a scenario expects; its merchant received `webhooks` events.
fn difference(expect: &Expect, payment: &Payment, webhooks: usize) -> Option<String> {
    let state = payment.state.as_str();
    if !expect.states.is_empty() && !expect.states.iter().any(|word| word == state) {
        return Some(format!("it is {state}, expected {}", expect.states.join(" or ")));
    }
    let cents = payment.quote.usd_cents;
    if let Some(wanted) = expect.usd_cents.filter(|wanted| *wanted != cents) {
        return Some(format!("it is worth {cents} US cents, expected {wanted}"));
    }
    let credited = Money::new(payment.paid_units(), payment.amount.currency);
    if let Some(wanted) = expect.credited.filter(|wanted| *wanted != credited) {
        return Some(format!("{credited} is credited, expected {wanted}"));
    }
    if let Some(mut wanted) = expect.exceptions.clone() {
        wanted.sort_unstable();
        let exceptions: BTreeSet<_> = payment.exceptions().into_iter().map(Exception::as_str).collect();
        if !wanted.iter().map(String::as_str).eq(exceptions.iter().copied()) {
            return Some(format!("its exceptions are {exceptions:?}, expected {wanted:?}"));
        }
    }
    let wanted = expect.webhooks.filter(|wanted| *wanted != webhooks)?;
    Some(format!("the merchant got {webhooks} events, expected {wanted}"))
}
