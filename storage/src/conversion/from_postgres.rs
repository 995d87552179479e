//! The rows of a database as rows of an embedded store, with all of its indexes.

use std::{borrow::Borrow, collections::BTreeMap};

use engine::{
    event_list::Tail,
    ids::PaymentId,
    payment::Payment,
    webhook::{DeliveryState, Trigger},
    x402::Purpose,
};
use futures_util::future::BoxFuture;
use redb::{Key, TableDefinition, TableHandle as _, Value};

use super::{Progress, Watcher};
use crate::{
    batch::Handling,
    embedded::{
        commit::audit::EncodedEntry,
        maintenance::backup::Row,
        read::{days::day_of, search::indexed_words_of},
        tables::{self, BYTES_COUNT, DayKey, KEYS_COUNT, SCHEMA_VERSION, meta},
        wal::{entry::Lsn, single},
    },
    postgres::{
        commit::merchants::ACCOUNT_NUMBER,
        connection::Connection,
        fault::Fault,
        tables::{
            business::{AuditRow, ComplianceRow, IdempotencyRow, InvoiceRow, PeriodRow, ReconciledRow, SingleRow},
            duties::{DutyRow, EngineRow},
            ledger::{ClaimRow, EntryKey, EntryRow, NameRow, UnmatchedRow, UseRow},
            merchants::{AccountRow, KeyRow, MerchantRow},
            payments::{PaymentRow, TransferRow, WordRow},
            webhooks::{AttemptRow, DeliveryRow, EndpointRow, EventRow, ListRow},
        },
        values::{Id, column},
        whole::{Pages, Whole},
    },
    record::{
        self,
        checked::{Checked, Seed},
        codes::Code,
        summary::facet,
        sums::DaySums,
    },
    store::error::OpenError,
};

/// Receives rows of an embedded store.
pub(crate) trait Receiver: Send {
    /// Takes a row, or the error of a record that does not decode.
    ///
    /// # Errors
    /// Any error ends the read.
    fn take(&mut self, row: Result<Row, OpenError>) -> Result<(), OpenError>;

    /// Waits until the rows that were taken are passed on. More rows follow only then.
    ///
    /// # Errors
    /// As [`Self::take`].
    fn flush(&mut self) -> BoxFuture<'_, Result<(), OpenError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

impl<F: FnMut(Result<Row, OpenError>) -> Result<(), OpenError> + Send> Receiver for F {
    fn take(&mut self, row: Result<Row, OpenError>) -> Result<(), OpenError> {
        self(row)
    }
}

/// The single values that describe the database itself.
pub(crate) const OWN_SINGLES: [&str; 2] = ["installation", ACCOUNT_NUMBER];

/// The tables whose rows are read, to be counted.
const TABLES: [&str; 24] = [
    "payments",
    "transfers",
    "payment_words",
    "merchants",
    "api_keys",
    "accounts",
    "idempotency",
    "events",
    "event_lists",
    "deliveries",
    "attempts",
    "endpoints",
    "claims",
    "claim_names",
    "transaction_uses",
    "unmatched_transfers",
    "ledger_entries",
    "reconciled_days",
    "compliance_statuses",
    "billing_periods",
    "invoice_payments",
    "audit_log",
    "duties",
    "single_values",
];

/// Returns how many rows [`each_row`] reads.
pub(crate) async fn count(connection: &Connection) -> Result<u64, Fault> {
    let counts = TABLES.map(|table| format!("(SELECT count(*) FROM {table})")).join(" + ");
    let row = connection.one(&format!("SELECT {counts}"), &[]).await?;
    Ok(crate::postgres::values::unsigned(column(&row, 0)?))
}

/// Passes every row to `receiver`. All of them are of one snapshot if the connection is in a transaction that has one.
///
/// # Errors
/// See [`OpenError`]; any error of the receiver.
pub(crate) async fn each_row(
    connection: &Connection,
    expected: u64,
    receiver: &mut dyn Receiver,
    watch: Watcher<'_>,
) -> Result<u64, OpenError> {
    let mut reader = Reader { connection, out: Out { receiver }, watch, rows: 0, expected };
    let mut sums = Sums::default();
    reader.payments(&mut sums).await?;
    reader.transfers().await?;
    reader.words(&sums).await?;
    reader.merchants().await?;
    reader.idempotency(&mut sums).await?;
    reader.events().await?;
    reader.deliveries(&mut sums).await?;
    reader.claims().await?;
    reader.unmatched().await?;
    reader.ledger().await?;
    reader.business().await?;
    reader.singles().await?;
    sums.write(&mut reader.out)?;
    reader.out.receiver.flush().await?;
    Ok(reader.rows)
}

/// What an embedded store has one row of for many payments, keys or deliveries.
#[derive(Debug, Default)]
struct Sums {
    counts: BTreeMap<(u128, u32), u64>,
    days: BTreeMap<DayKey, DaySums>,
    /// The earliest due time of each endpoint's queue.
    heads: BTreeMap<u128, u64>,
    last_payment: Option<u128>,
}

impl Sums {
    fn count(&mut self, merchant: u128, code: u32, by: u64) {
        *self.counts.entry((merchant, code)).or_default() += by;
    }

    fn write(&self, out: &mut Out<'_>) -> Result<(), OpenError> {
        for (key, count) in &self.counts {
            out.row(tables::PAYMENT_COUNTS, *key, count)?;
        }
        for (key, sums) in &self.days {
            out.row(tables::PAYMENT_DAYS, *key, record::sums_to_bytes(sums).as_slice())?;
        }
        for (endpoint, due_ms) in &self.heads {
            out.row(tables::OUTBOX_HEADS, *endpoint, *due_ms)?;
            out.row(tables::OUTBOX_DUE, (*due_ms, *endpoint), ())?;
        }
        Ok(())
    }
}

/// Passes rows on in their stored form.
struct Out<'p> {
    receiver: &'p mut dyn Receiver,
}

impl Out<'_> {
    fn row<'k, 'v, K: Key + 'static, V: Value + 'static>(
        &mut self,
        table: TableDefinition<'static, K, Checked<V>>,
        key: impl Borrow<K::SelfType<'k>>,
        value: impl Borrow<V::SelfType<'v>>,
    ) -> Result<(), OpenError> {
        let key = K::as_bytes(key.borrow()).as_ref().to_vec();
        let value = Seed::of(table.name()).seal(&key, V::as_bytes(value.borrow()).as_ref());
        self.receiver.take(Ok(Row { table: table.name().to_owned(), key, value }))
    }

    fn single(&mut self, name: &str, value: &[u8]) -> Result<(), OpenError> {
        self.row(tables::META, name, value)?;
        self.row(tables::META, single::second(name).as_str(), value)
    }
}

struct Reader<'r> {
    connection: &'r Connection,
    out: Out<'r>,
    watch: Watcher<'r>,
    rows: u64,
    expected: u64,
}

impl Reader<'_> {
    /// Reads a table.
    async fn table<T: Whole>(
        &mut self,
        mut each: impl FnMut(&mut Out<'_>, T::Key, T) -> Result<(), OpenError> + Send,
    ) -> Result<(), OpenError> {
        let mut pages = Pages::<T>::of(self.connection);
        loop {
            let page = pages.next().await?;
            if page.is_empty() {
                return Ok(());
            }
            for row in &page {
                match T::whole(row) {
                    Ok((key, row)) => each(&mut self.out, key, row)?,
                    Err(damaged @ Fault::Damaged { .. }) => self.out.receiver.take(Err(damaged.into()))?,
                    Err(fault) => return Err(fault.into()),
                }
            }
            self.out.receiver.flush().await?;
            self.rows += page.len() as u64;
            (self.watch)(Progress { table: T::NAME, rows: self.rows, expected: self.expected });
        }
    }

    async fn payments(&mut self, sums: &mut Sums) -> Result<(), OpenError> {
        self.table::<PaymentRow>(|out, id, row| {
            let facts = row.facts;
            out.row(tables::PAYMENTS, id, row.record.as_slice())?;
            out.row(tables::SLUGS, facts.slug, id)?;
            let listed = (facts.merchant, facet(&facts.summary), id);
            out.row(tables::PAYMENTS_BY_MERCHANT, listed, &record::summary_to_bytes(&facts.summary))?;
            if let Some(deadline_ms) = facts.deadline_ms {
                out.row(tables::DEADLINES, (deadline_ms, id), ())?;
            }
            if facts.is_in_flight {
                out.row(tables::IN_FLIGHT, id, ())?;
            }
            sums.count(facts.merchant, facts.state.number(), 1);
            sums.count(facts.merchant, BYTES_COUNT, facts.bytes);
            sums.days.entry((facts.merchant, day_of(id))).or_default().add(&facts.summary);
            sums.last_payment = Some(id);
            Ok(())
        })
        .await
    }

    async fn transfers(&mut self) -> Result<(), OpenError> {
        self.table::<TransferRow>(|out, (payment, tx_id, op_in_tx), TransferRow { credit, .. }| {
            let record = record::transfer_to_bytes(&credit);
            out.row(tables::TRANSFERS, (payment, &tx_id, op_in_tx), record.as_slice())?;
            out.row(tables::TRANSFER_ORDER, (payment, credit.seq), (&tx_id, op_in_tx))
        })
        .await
    }

    /// Writes the search index, with the words of the payments that the database has not indexed yet.
    async fn words(&mut self, sums: &Sums) -> Result<(), OpenError> {
        self.table::<WordRow>(|out, (merchant, word, payment), WordRow| {
            out.row(tables::SEARCH, (merchant, word.as_str(), payment), ())
        })
        .await?;
        let sql = "SELECT c.id, p.id, p.record FROM (SELECT id, unindexed_payments FROM commits \
                   WHERE unindexed_payments IS NOT NULL AND id > $1 ORDER BY id LIMIT 50) AS c \
                   CROSS JOIN LATERAL unnest(c.unindexed_payments) AS u (id) JOIN payments p ON p.id = u.id \
                   ORDER BY c.id, p.id";
        let mut after = Id(0);
        loop {
            let rows = self.connection.query(sql, &[&after]).await?;
            let Some(last) = rows.last() else { break };
            after = column(last, 0)?;
            for row in &rows {
                let Id(id) = column(row, 1)?;
                // A damaged payment was reported before.
                if let Ok((payment, _)) = PaymentRow::decoded(id, column(row, 2)?) {
                    self.out.words(&payment)?;
                }
            }
        }
        match sums.last_payment {
            Some(last) => self.out.single(meta::SEARCH_CURSOR, &last.to_be_bytes()),
            None => Ok(()),
        }
    }

    async fn merchants(&mut self) -> Result<(), OpenError> {
        self.table::<MerchantRow>(|out, id, row| {
            out.row(tables::MERCHANTS, id, row.record())?;
            let account = (row.facts.account.as_str(), id);
            out.row(tables::ACCOUNT_MERCHANTS, account, ())?;
            if row.facts.is_proven {
                out.row(tables::PROVEN_MERCHANTS, account, ())?;
            }
            match row.facts.pending_due_at {
                Some(due_at) => out.row(tables::PENDING_ACCOUNTS, (due_at.millis(), id), ()),
                None => Ok(()),
            }
        })
        .await?;
        self.table::<KeyRow>(|out, digest, KeyRow(merchant)| out.row(tables::API_KEYS, &digest, merchant)).await?;
        self.table::<AccountRow>(|out, name, row| {
            out.row(tables::ACCOUNTS, name.as_str(), row.watched_since.millis())?;
            out.row(tables::ACCOUNTS_ADDED, row.number, name.as_str())?;
            match row.unwatch_at {
                Some(until) => out.row(tables::RETIRED_ACCOUNTS, name.as_str(), until.millis()),
                None => Ok(()),
            }
        })
        .await
    }

    async fn idempotency(&mut self, sums: &mut Sums) -> Result<(), OpenError> {
        self.table::<IdempotencyRow>(|out, (merchant, digest), IdempotencyRow(remembered)| {
            let record = record::idempotency_to_bytes(&remembered);
            out.row(tables::IDEMPOTENCY, (merchant, &digest), record.as_slice())?;
            sums.count(merchant, KEYS_COUNT, 1);
            out.row(tables::IDEMPOTENCY_TIMES, (remembered.at.millis(), merchant, &digest), ())
        })
        .await
    }

    async fn events(&mut self) -> Result<(), OpenError> {
        self.table::<EventRow>(|out, place, row| {
            let Some(event) = row.event() else { return Ok(()) };
            out.row(tables::EVENTS, place, record::event_to_bytes(event).as_slice())?;
            out.row(tables::EVENT_IDS, event.id.bits(), place)?;
            out.row(tables::EVENT_TIMES, (event.at.millis(), event.id.bits()), ())
        })
        .await?;
        self.table::<ListRow>(|out, merchant, ListRow(Tail { last, epoch, last_before_epoch })| {
            out.row(tables::EVENT_SEQS, merchant, (last, epoch.bits(), last_before_epoch))
        })
        .await
    }

    async fn deliveries(&mut self, sums: &mut Sums) -> Result<(), OpenError> {
        self.table::<DeliveryRow>(|out, (merchant, id), DeliveryRow { logged, .. }| {
            let delivery = &logged.delivery;
            out.row(tables::DELIVERIES, (merchant, id), record::delivery_to_bytes(&logged).as_slice())?;
            out.row(tables::PAYMENT_DELIVERIES, (delivery.payment.bits(), id), ())?;
            out.row(tables::EVENT_DELIVERIES, (delivery.event.bits(), id), ())?;
            if logged.state != DeliveryState::Delivered {
                out.row(tables::UNDELIVERED, (merchant, logged.state.number(), id), ())?;
            }
            if logged.state != DeliveryState::Pending {
                return Ok(());
            }
            let (endpoint, due_ms) = (delivery.endpoint.bits(), delivery.due_at.millis());
            let head = sums.heads.entry(endpoint).or_insert(due_ms);
            *head = due_ms.min(*head);
            out.row(tables::OUTBOX, (endpoint, due_ms, delivery.event_seq, id), merchant)?;
            if delivery.trigger == Trigger::Auto {
                out.row(tables::PENDING_DELIVERIES, (delivery.payment.bits(), endpoint, delivery.event_seq, id), ())?;
            }
            Ok(())
        })
        .await?;
        self.table::<AttemptRow>(|out, key, AttemptRow(attempt)| {
            out.row(tables::ATTEMPTS, key, record::attempt_to_bytes(attempt).as_slice())
        })
        .await?;
        self.table::<EndpointRow>(|out, endpoint, row| {
            out.row(tables::ENDPOINTS, endpoint, record::endpoint_to_bytes(&row.health).as_slice())
        })
        .await
    }

    async fn claims(&mut self) -> Result<(), OpenError> {
        self.table::<ClaimRow>(|out, tx_id, ClaimRow { claim, .. }| {
            out.row(tables::CLAIMS, &tx_id, record::claimed_to_bytes(&claim).as_slice())?;
            if matches!(claim.purpose, Purpose::Facilitated(_)) && claim.outcome.is_open() {
                out.row(tables::FACILITATIONS, &tx_id, ())?;
            }
            Ok(())
        })
        .await?;
        self.table::<NameRow>(|out, digest, NameRow(tx_id)| out.row(tables::NONCES, &digest, &tx_id)).await?;
        self.table::<UseRow>(|out, tx_id, UseRow { assigned, .. }| match assigned {
            Some(payment) => out.row(tables::ASSIGNED, &tx_id, payment),
            None => Ok(()),
        })
        .await
    }

    async fn unmatched(&mut self) -> Result<(), OpenError> {
        self.table::<UnmatchedRow>(|out, (account, place), UnmatchedRow { unmatched, waits_for, .. }| {
            let key = (account.as_str(), place.block_num, place.tx_in_block, place.op_in_tx);
            let waits_for = waits_for.filter(|_| unmatched.handling == Handling::Open);
            out.row(tables::UNMATCHED, key, record::unmatched_to_bytes(unmatched).as_slice())?;
            match waits_for {
                Some(payment) => out.row(tables::UNMATCHED_BY_PAYMENT, (payment, key.0, key.1, key.2, key.3), ()),
                None => Ok(()),
            }
        })
        .await
    }

    async fn ledger(&mut self) -> Result<(), OpenError> {
        self.table::<EntryRow>(|out, (account, key), EntryRow(money)| {
            let EntryKey(at_ms, tx_id, op_in_tx, kind, payment) = key;
            let key = (account.as_str(), at_ms, &tx_id, op_in_tx, kind, payment);
            out.row(tables::LEDGER_ENTRIES, key, (money.units, money.currency.number()))
        })
        .await?;
        self.table::<ReconciledRow>(|out, from, row| out.row(tables::RECONCILED_DAYS, from.millis(), row.record()))
            .await
    }

    async fn business(&mut self) -> Result<(), OpenError> {
        self.table::<ComplianceRow>(|out, merchant, ComplianceRow { status, .. }| {
            out.row(tables::COMPLIANCE_STATUSES, merchant, record::compliance_to_bytes(&status).as_slice())?;
            if status.hold.is_some() { out.row(tables::ON_HOLD, merchant, ()) } else { Ok(()) }
        })
        .await?;
        self.table::<PeriodRow>(|out, (merchant, month), PeriodRow { period, .. }| {
            out.row(tables::BILLING, (month, merchant), record::period_to_bytes(&period).as_slice())?;
            if period.is_unsettled() { out.row(tables::UNSETTLED, (month, merchant), ()) } else { Ok(()) }
        })
        .await?;
        self.table::<InvoiceRow>(|out, payment, InvoiceRow(month, merchant)| {
            out.row(tables::INVOICE_SESSIONS, payment, (month, merchant))
        })
        .await?;
        // The numbers of a database have gaps, those of an embedded store have none.
        let mut number = 0;
        self.table::<AuditRow>(|out, _, AuditRow(entry)| {
            number += 1;
            let entry = EncodedEntry::of(entry);
            out.row(tables::AUDIT, number, entry.record.as_slice())?;
            entry.merchants().try_for_each(|merchant| out.row(tables::AUDIT_BY_MERCHANT, (merchant, number), ()))
        })
        .await
    }

    async fn singles(&mut self) -> Result<(), OpenError> {
        self.table::<EngineRow>(|out, engine, row| {
            out.row(tables::ENGINES, engine.bits(), (row.since.millis(), row.until.millis()))
        })
        .await?;
        self.table::<DutyRow>(|out, duty, DutyRow { term, holder }| {
            let holder = holder.map_or(0, crate::duty::EngineId::bits);
            out.row(tables::DUTIES, duty.to_string().as_str(), (term, holder))
        })
        .await?;
        self.table::<SingleRow>(|out, name, row| {
            if OWN_SINGLES.contains(&name.as_str()) { Ok(()) } else { out.single(&name, &row.value) }
        })
        .await?;
        self.out.single(meta::SCHEMA, &SCHEMA_VERSION.to_be_bytes())?;
        self.out.single(meta::LOG, &Lsn::START.to_bytes())
    }
}

impl Out<'_> {
    fn words(&mut self, payment: &Payment) -> Result<(), OpenError> {
        let (merchant, id) = (payment.merchant.bits(), PaymentId::bits(payment.id));
        indexed_words_of(payment).try_for_each(|word| self.row(tables::SEARCH, (merchant, word.as_str(), id), ()))
    }
}
