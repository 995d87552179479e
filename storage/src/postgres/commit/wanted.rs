//! The rows that a group of batches needs.

use std::collections::{BTreeMap, BTreeSet};

use engine::{account::AccountName, billing::Month, payment::State, time::Timestamp};

use crate::{
    batch::{Handling, Write},
    duty::Duty,
    embedded::{commit::prepared::unique_keys, tables::meta},
    postgres::{
        commit::{
            merchants::ACCOUNT_NUMBER,
            outbox::key_of,
            prepared::{PaymentStep, Prepared, Step},
            working::Working,
        },
        table::{Rows, Table},
        tables::ledger::UnmatchedKey,
    },
};

/// Rows to load besides those by key.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// Whether rows that should be absent are loaded. At first they are not: the insertion of an existing row fails.
    pub(super) is_careful: bool,
    pub(super) usage: BTreeSet<u128>,
    pub(super) provers: BTreeSet<AccountName>,
    pub(super) owners: BTreeSet<AccountName>,
    /// Merchants whose accounts are wanted, whatever they are.
    pub(super) accounts_of: BTreeSet<u128>,
    /// Merchants and the first month of which periods are wanted.
    pub(super) periods: BTreeMap<u128, Month>,
    /// Payments that may settle an invoice.
    pub(super) invoices: BTreeSet<u128>,
    /// Endpoints and how many deliveries leave their queues.
    pub(super) queues: BTreeMap<u128, usize>,
    pub(super) claim_names: BTreeSet<[u8; 32]>,
    /// Unmatched transfers whose transactions' claims and uses are wanted.
    pub(super) handled: BTreeSet<UnmatchedKey>,
    pub(super) slugs: BTreeSet<u128>,
    pub(super) event_ids: BTreeSet<u128>,
    /// Sequence numbers of new transfers.
    pub(super) places: BTreeSet<(u128, u64)>,
    /// Payments that lose words.
    pub(super) erased: BTreeSet<u128>,
    /// Duties whose holders' leases are wanted.
    pub(super) held: BTreeSet<Duty>,
    /// Whether the time by the clock of the database is wanted.
    pub(super) needs_clock: bool,
    /// Ids of commits that should be new.
    pub(super) commits: BTreeSet<u128>,
    pub(super) forget_before: Option<Timestamp>,
    pub(super) prune_before: Option<Timestamp>,
}

impl Wanted {
    /// Returns the rows that the batches of a group need; rows by key are requested in `working`.
    pub(crate) fn of(batches: &[Prepared], is_careful: bool, working: &mut Working) -> Self {
        let mut wanted = Self { is_careful, ..Self::default() };
        wanted.commits.extend(batches.iter().filter_map(|batch| batch.id));
        for step in batches.iter().flat_map(|batch| &batch.steps) {
            match step {
                Step::Payment(step) => wanted.payment(step, working),
                Step::Other(write) => wanted.write(write, working),
            }
        }
        wanted
    }

    fn want_new<T: Table>(&self, rows: &mut Rows<T>, key: T::Key) {
        if self.is_careful {
            rows.want(key);
        } else {
            rows.assume_absent(key);
        }
    }

    fn payment(&mut self, step: &PaymentStep, working: &mut Working) {
        let (id, facts) = (step.payment.id.bits(), step.row.facts);
        match step.expected {
            None => {
                self.want_new(&mut working.payments, id);
                self.slugs.insert(facts.slug);
            }
            Some(_) => working.payments.want(id),
        }
        // Metadata is only deleted as a whole. Whether the payment had any is known once it is loaded.
        if self.is_careful && step.expected.is_some() && facts.metadata == 0 {
            self.erased.insert(id);
        }
        if facts.state != State::Completed {
            return;
        }
        if step.turnover.is_some() {
            working.compliance.want(facts.merchant);
        }
        match &step.sale {
            Some(sale) => self.period(facts.merchant, Month::of(sale.at)),
            None => drop(self.invoices.insert(id)),
        }
    }

    fn period(&mut self, merchant: u128, month: Month) {
        let first = self.periods.entry(merchant).or_insert(month);
        *first = month.min(*first);
    }

    fn write(&mut self, write: &Write, working: &mut Working) {
        match write {
            Write::Payment { .. } | Write::Audit(_) => {}
            Write::Merchant { merchant, .. } => {
                working.merchants.want(merchant.id.bits());
                merchant.keys.iter().for_each(|key| working.keys.want(key.digest.0));
                working.accounts.want(merchant.hive_account);
                working.singles.want(ACCOUNT_NUMBER.to_owned());
                self.accounts_of.insert(merchant.id.bits());
            }
            Write::Transfer { payment, credit, .. } => {
                working.transfers.want((payment.bits(), credit.tx_id.0, credit.op_in_tx));
                self.places.insert((payment.bits(), credit.seq));
            }
            Write::Remember { remembered, .. } => {
                let merchant = remembered.merchant.bits();
                working.idempotency.want((merchant, remembered.key));
                self.usage.insert(merchant);
            }
            Write::Forget { made_before } => {
                self.forget_before = self.forget_before.max(Some(*made_before));
            }
            Write::Event(event) => {
                let merchant = event.merchant.bits();
                working.lists.want(merchant);
                working.singles.want(meta::EPOCHS.to_owned());
                self.event_ids.insert(event.id.bits());
                for (_, delivery) in &event.deliveries {
                    self.want_new(&mut working.deliveries, (merchant, delivery.bits()));
                }
            }
            Write::Claim(claim) => {
                self.want_new(&mut working.claims, claim.tx_id.0);
                self.want_new(&mut working.uses, claim.tx_id.0);
                for name in unique_keys(claim) {
                    self.want_new(&mut working.names, name);
                    self.claim_names.extend(Some(name).filter(|_| self.is_careful));
                }
            }
            Write::ClaimOutcome { tx_id, .. } => working.claims.want(tx_id.0),
            Write::ForgetClaims(tx_ids) => {
                for tx_id in tx_ids {
                    working.claims.want(tx_id.0);
                    working.uses.want(tx_id.0);
                }
            }
            Write::Attempt { delivery, .. }
            | Write::Undeliverable(delivery)
            | Write::Hold { delivery, .. }
            | Write::Replay { delivery, .. } => {
                working.deliveries.want(key_of(delivery));
                *self.queues.entry(delivery.endpoint.bits()).or_default() += 1;
                if matches!(write, Write::Attempt { .. } | Write::Hold { .. }) {
                    working.endpoints.want(delivery.endpoint.bits());
                }
                if matches!(write, Write::Hold { .. }) {
                    working.merchants.want(delivery.merchant.bits());
                }
            }
            Write::Redeliver(delivery) => self.want_new(&mut working.deliveries, key_of(delivery)),
            Write::EnableEndpoint { endpoint, .. } => working.endpoints.want(endpoint.bits()),
            Write::Unwatch(account) => drop(self.owners.insert(*account)),
            Write::Prune { happened_before } => {
                self.prune_before = self.prune_before.max(Some(*happened_before));
            }
            other => self.single(other, working),
        }
    }

    /// Requests the rows of writes that change one row, or a few of an engine.
    fn single(&mut self, write: &Write, working: &mut Working) {
        match write {
            Write::Reconciliation { day, .. } => working.reconciled.want(day.from),
            Write::Cursor { .. } => working.singles.want(meta::CURSOR.to_owned()),
            Write::Unmatched(unmatched) => {
                working.unmatched.want((*unmatched.account(), unmatched.transfer.position));
                // An assignment in the same group writes the row of its transaction's uses, which may exist.
                if self.is_careful {
                    working.claims.want(unmatched.transfer.tx_id.0);
                    working.uses.want(unmatched.transfer.tx_id.0);
                }
            }
            Write::Handle { account, place, handling } => {
                working.unmatched.want((*account, *place));
                if matches!(handling, Handling::Assigned { .. }) {
                    self.handled.insert((*account, *place));
                }
            }
            Write::Invoice(invoicing) => self.period(invoicing.period.merchant.bits(), invoicing.period.month),
            Write::FeeTiers { .. } => working.singles.want(meta::FEE_TIERS.to_owned()),
            Write::ReceiptKeys { .. } => working.singles.want(meta::RECEIPT_KEYS.to_owned()),
            Write::CheckCompliance(check) => {
                working.compliance.want(check.merchant.bits());
                self.provers.insert(check.account);
            }
            Write::Admit { merchant, .. } => drop(self.usage.insert(merchant.bits())),
            Write::Compliance { merchant, .. } => working.compliance.want(merchant.bits()),
            Write::Rate { .. } => working.singles.want(meta::RATE.to_owned()),
            Write::BeginEpoch(_) => working.singles.want(meta::EPOCHS.to_owned()),
            Write::Note { name, .. } => working.singles.want(meta::note(name)),
            Write::Lease { engine, .. } | Write::EndLease { engine, .. } => {
                self.needs_clock = true;
                working.engines.want(*engine);
            }
            Write::Duty { duty, engine, .. } => {
                working.duties.want(*duty);
                working.engines.want(*engine);
                self.held.insert(*duty);
            }
            Write::OnDuty { duty, .. } => working.duties.want(*duty),
            _ => {}
        }
    }
}
