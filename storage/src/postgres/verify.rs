//! Verification of a database: every record is decoded and compared with the other columns of its row, with the rows that refer to it,
//! and with the sums that follow from it.

use std::collections::{BTreeMap, BTreeSet};

use engine::{
    billing::Sale,
    ids::MerchantId,
    ledger::TxId,
    payment::{Credit, Payment, Totals, shown_memo},
};
use tokio_postgres::Row;

use crate::{
    batch::Handling,
    embedded::{commit::prepared::unique_keys, tables::meta},
    postgres::{
        commit::{
            sums::{DayTotals, Sum, Sums},
            working::Counts,
        },
        connection::Connection,
        fault::Fault,
        schema,
        table::TABLE_NAMES,
        tables::{
            business::{AuditRow, ComplianceRow, IdempotencyRow, InvoiceRow, PeriodRow, ReconciledRow, SingleRow},
            duties::{DutyRow, EngineRow},
            ledger::{ClaimRow, EntryRow, NameRow, UnmatchedRow, UseRow, named},
            merchants::{AccountRow, KeyRow, MerchantRow},
            payments::{PaymentRow, TransferRow, WordRow},
            webhooks::{AttemptRow, DeliveryRow, EndpointRow, EventRow, ListRow},
        },
        values::{Id, bytes_of, column, unsigned},
        whole::{Pages, Shape, Whole, stored},
    },
    record,
    store::{error::OpenError, report::Report},
};

/// Verifies the database as the open transaction sees it.
///
/// # Errors
/// Those of the connection. Findings in the data are in the report.
pub(crate) async fn verify(connection: &Connection) -> Result<Report, OpenError> {
    let mut report = Report { schema: schema::LEVEL, tables: lengths(connection).await?, ..Report::default() };
    let mut sums = Sums::default();
    let mut sales = Sales::new();
    let verifier = Verifier { connection };
    verifier.payments(&mut report, &mut sums, &mut sales).await?;
    verifier.merchants(&mut report).await?;
    verifier.claims(&mut report).await?;
    verifier.unmatched(&mut report).await?;
    verifier.months(&mut report, &sales).await?;
    verifier.each::<IdempotencyRow>(&mut report, |_, (merchant, _), _| sums.key(*merchant)).await?;
    verifier.sums(&mut report, &mut sums).await?;
    verifier.others(&mut report).await?;
    verifier.relations(&mut report).await?;
    verifier.singles(&mut report).await?;
    Ok(report)
}

/// Returns the number of rows of each table.
async fn lengths(connection: &Connection) -> Result<Vec<(&'static str, u64)>, Fault> {
    let counts = TABLE_NAMES.map(|table| format!("(SELECT count(*) FROM {table})")).join(", ");
    let row = connection.one(&format!("SELECT {counts}"), &[]).await?;
    let length = |(place, table)| Ok::<_, Fault>((table, unsigned(column(&row, place)?)));
    TABLE_NAMES.into_iter().enumerate().map(length).collect()
}

/// The number of a merchant's completed payments, and their amount in US cents.
type Sales = BTreeMap<u128, (u64, u64)>;

/// What must hold between the rows of different tables: the name of a table, what is wrong, and a query for the keys of the rows of
/// which it is not true.
const RELATIONS: [(&str, &str, &str); 9] = [
    (
        "transfers",
        "its payment does not exist, or is of another merchant",
        "SELECT t.payment_id::text FROM transfers t LEFT JOIN payments p ON p.id = t.payment_id \
         WHERE p.merchant_id IS DISTINCT FROM t.merchant_id",
    ),
    (
        "event_lists",
        "its last sequence number would be used again",
        "SELECT e.merchant_id::text FROM (SELECT merchant_id, max(seq) AS last FROM events GROUP BY merchant_id) AS e \
         LEFT JOIN event_lists l ON l.merchant_id = e.merchant_id WHERE l.last_seq IS NULL OR l.last_seq < e.last",
    ),
    (
        "outbox_heads",
        "missing or too late: the queue would be read too late or never",
        "SELECT d.endpoint_id::text FROM (SELECT endpoint_id, min(due_at) AS due_at FROM deliveries \
         WHERE due_at IS NOT NULL GROUP BY endpoint_id) AS d LEFT JOIN outbox_heads h ON h.endpoint_id = d.endpoint_id \
         WHERE h.due_at IS NULL OR h.due_at > d.due_at",
    ),
    (
        "transaction_uses",
        "no row for the claim: its transaction could be assigned, too",
        "SELECT encode(c.tx_id, 'hex') FROM claims c LEFT JOIN transaction_uses u ON u.tx_id = c.tx_id \
         WHERE u.tx_id IS NULL",
    ),
    (
        "claim_names",
        "its claim does not exist",
        "SELECT encode(n.tx_id, 'hex') FROM claim_names n LEFT JOIN claims c ON c.tx_id = n.tx_id WHERE c.tx_id IS NULL",
    ),
    (
        "accounts",
        "the merchant's account is not watched",
        "SELECT m.id::text FROM merchants m LEFT JOIN accounts a ON a.name = m.account WHERE a.name IS NULL",
    ),
    (
        "payment_words",
        "its payment does not exist, or is of another merchant",
        "SELECT DISTINCT w.payment_id::text FROM payment_words w LEFT JOIN payments p ON p.id = w.payment_id \
         WHERE p.merchant_id IS DISTINCT FROM w.merchant_id",
    ),
    (
        "api_keys",
        "its merchant does not exist",
        "SELECT k.merchant_id::text FROM api_keys k LEFT JOIN merchants m ON m.id = k.merchant_id WHERE m.id IS NULL",
    ),
    (
        "invoice_payments",
        "its billing period does not exist",
        "SELECT i.payment_id::text FROM invoice_payments i LEFT JOIN billing_periods b \
         ON b.month = i.month AND b.merchant_id = i.merchant_id WHERE b.month IS NULL",
    ),
];

struct Verifier<'c> {
    connection: &'c Connection,
}

impl Verifier<'_> {
    async fn payments(&self, report: &mut Report, sums: &mut Sums, sales: &mut Sales) -> Result<(), Fault> {
        let mut pages = Pages::<PaymentRow>::of(self.connection);
        loop {
            let page = pages.next().await?;
            if page.is_empty() {
                return Ok(());
            }
            let mut payments = Vec::with_capacity(page.len());
            for row in &page {
                let Id(id) = column(row, 0)?;
                let Some((payment, decoded)) = found(report, PaymentRow::decoded(id, column(row, 1)?))? else {
                    continue;
                };
                compare::<PaymentRow>(report, row, &id, &decoded)?;
                sums.payment(id, &decoded.facts);
                if let Some(sale) = Sale::of(&payment) {
                    let (payments, cents) = sales.entry(decoded.facts.merchant).or_default();
                    (*payments, *cents) = (*payments + 1, cents.saturating_add(sale.usd_cents));
                }
                if let Some(inconsistency) = report.totals.enter(&payment) {
                    report.find("payments", payment.id, inconsistency);
                }
                payments.push(payment);
            }
            self.relatives(report, &payments).await?;
            self.transfers(report, &payments).await?;
        }
    }

    /// Checks that the merchants and the claims of payments exist.
    async fn relatives(&self, report: &mut Report, payments: &[Payment]) -> Result<(), Fault> {
        let merchants: BTreeSet<u128> = payments.iter().map(|payment| payment.merchant.bits()).collect();
        let wanted: Vec<Id> = merchants.into_iter().map(Id).collect();
        let rows = self.connection.query("SELECT id FROM merchants WHERE id = ANY($1)", &[&wanted]).await?;
        let known = rows.iter().map(|row| column(row, 0).map(|Id(id)| id)).collect::<Result<BTreeSet<_>, _>>()?;
        let claimed = |payment: &Payment| payment.claim.as_ref().map(|claim| claim.tx_id.0);
        let wanted: Vec<Vec<u8>> = payments.iter().filter_map(claimed).map(|tx_id| tx_id.to_vec()).collect();
        let rows = self.connection.query("SELECT tx_id FROM claims WHERE tx_id = ANY($1)", &[&wanted]).await?;
        let claims = rows.iter().map(|row| bytes_of::<20>(row, 0)).collect::<Result<BTreeSet<_>, _>>()?;
        for payment in payments {
            let has_merchant = known.contains(&payment.merchant.bits());
            report.hold(has_merchant, "payments", payment.id, "its merchant does not exist");
            let has_claim = claimed(payment).is_none_or(|tx_id| claims.contains(&tx_id));
            report.hold(has_claim, "claims", payment.id, "no record of the payment's claim");
        }
        Ok(())
    }

    /// Compares the transfers of payments with the lists and the totals in their records.
    async fn transfers(&self, report: &mut Report, payments: &[Payment]) -> Result<(), Fault> {
        let sql = "SELECT payment_id, tx_id, op_in_tx, record, seq, merchant_id, sender, receiver, amount_units, currency, \
                   block_num, is_final FROM transfers WHERE payment_id = ANY($1)";
        let ids: Vec<Id> = payments.iter().map(|payment| Id(payment.id.bits())).collect();
        let mut credits = BTreeMap::<u128, Vec<Credit>>::new();
        for row in self.connection.query(sql, &[&ids]).await? {
            if let Some((key, transfer)) = found(report, TransferRow::whole(&row))? {
                compare::<TransferRow>(report, &row, &key, &transfer)?;
                credits.entry(key.0).or_default().push(transfer.credit);
            }
        }
        for payment in payments {
            let (mut totals, mut listed) = (Totals::default(), 0);
            for credit in credits.remove(&payment.id.bits()).unwrap_or_default() {
                totals.add(&credit);
                let Some(shown) = payment.listed(credit.tx_id, credit.op_in_tx) else { continue };
                listed += 1;
                let name = format!("{} of {}", credit.tx_id, payment.id);
                let memo = shown_memo(credit.memo.clone());
                let is_same = *shown == Credit { memo, ..credit };
                report.hold(is_same, "transfers", name, "differs from the payment's record");
            }
            report.hold(listed == payment.transfers.len(), "transfers", payment.id, "a listed transfer is missing");
            let is_same = totals == payment.totals();
            report.hold(is_same, "transfers", payment.id, "the totals differ from the payment's record");
        }
        Ok(())
    }

    async fn merchants(&self, report: &mut Report) -> Result<(), Fault> {
        let mut expected = 0;
        for (id, row) in self.table::<MerchantRow>(report).await? {
            let digests: Vec<Vec<u8>> = row.facts.digests.iter().map(|digest| digest.to_vec()).collect();
            expected += digests.len() as u64;
            let sql = "SELECT count(*) FROM api_keys WHERE digest = ANY($1) AND merchant_id = $2";
            let row = self.connection.one(sql, &[&digests, &Id(id)]).await?;
            let has_all = unsigned(column(&row, 0)?) == digests.len() as u64;
            report.hold(has_all, "api_keys", MerchantId::from_bits(id), "no entry for one of the merchant's keys");
        }
        self.table::<KeyRow>(report).await?;
        expect_length(report, "api_keys", expected);
        Ok(())
    }

    async fn claims(&self, report: &mut Report) -> Result<(), Fault> {
        let mut names = 0;
        let mut pages = Pages::<ClaimRow>::of(self.connection);
        loop {
            let page = pages.next().await?;
            if page.is_empty() {
                break;
            }
            let claims = rows_of::<ClaimRow>(report, &page)?;
            let keys: Vec<_> = claims.iter().flat_map(|(_, row)| unique_keys(&row.claim)).collect();
            let wanted: Vec<Vec<u8>> = keys.iter().map(|key| key.to_vec()).collect();
            let sql = "SELECT digest, tx_id FROM claim_names WHERE digest = ANY($1)";
            let mut holders = BTreeMap::new();
            for row in self.connection.query(sql, &[&wanted]).await? {
                holders.insert(bytes_of::<32>(&row, 0)?, bytes_of::<20>(&row, 1)?);
            }
            names += keys.len() as u64;
            for (tx_id, row) in &claims {
                let has_all = unique_keys(&row.claim).iter().all(|key| holders.get(key) == Some(tx_id));
                let problem = "no entry: the claim's nonce or identifier could be used again";
                report.hold(has_all, "claim_names", TxId(*tx_id), problem);
            }
        }
        expect_length(report, "claim_names", names);
        Ok(())
    }

    async fn unmatched(&self, report: &mut Report) -> Result<(), Fault> {
        let mut assigned = BTreeMap::new();
        self.each::<UnmatchedRow>(report, |report, (account, place), row| {
            let unmatched = &row.unmatched;
            report.totals.enter_unmatched(unmatched.transfer.money);
            let waits_for = named(unmatched).filter(|_| unmatched.handling == Handling::Open);
            let name = format!("{account} {place:?}");
            let problem = "its payment differs from the record: the transfer would not find its session";
            report.hold(row.waits_for == waits_for, "unmatched_transfers", &name, problem);
            if let Handling::Assigned { .. } = unmatched.handling {
                assigned.insert(unmatched.transfer.tx_id.0, name);
            }
        })
        .await?;
        self.each::<UseRow>(report, |_, tx_id, row| {
            if row.assigned.is_some() {
                assigned.remove(tx_id);
            }
        })
        .await?;
        for name in assigned.into_values() {
            report.find("transaction_uses", name, "no entry: the transaction could be claimed again");
        }
        Ok(())
    }

    /// Compares usage in billing periods with completed payments: each payment counts once, in any month.
    async fn months(&self, report: &mut Report, sales: &Sales) -> Result<(), Fault> {
        let mut counted = Sales::new();
        self.each::<PeriodRow>(report, |_, (merchant, _), row| {
            let usage = &row.period.usage;
            let (payments, cents) = counted.entry(*merchant).or_default();
            *payments += usage.payments;
            *cents = cents.saturating_add(usage.volume_cents);
        })
        .await?;
        for merchant in sales.keys().chain(counted.keys().filter(|merchant| !sales.contains_key(merchant))) {
            let of = |sales: &Sales| sales.get(merchant).copied().unwrap_or_default();
            let (sold, billed) = (of(sales), of(&counted));
            let message = format!(
                "{} payments of {} cents completed, {} of {} cents counted",
                sold.0, sold.1, billed.0, billed.1
            );
            report.hold(sold == billed, "billing_periods", MerchantId::from_bits(*merchant), &message);
        }
        Ok(())
    }

    /// Compares the stored sums of all slots with those of the records.
    async fn sums(&self, report: &mut Report, sums: &mut Sums) -> Result<(), Fault> {
        let sql = "SELECT merchant_id, sum(open_payments)::bigint, sum(stored_bytes)::bigint, \
                   sum(idempotency_keys)::bigint FROM merchant_usage GROUP BY merchant_id";
        let mut stored = BTreeMap::new();
        for row in self.connection.query(sql, &[]).await? {
            let Id(merchant) = column(&row, 0)?;
            let [open_payments, stored_bytes, idempotency_keys] =
                [column(&row, 1)?, column(&row, 2)?, column(&row, 3)?];
            stored.insert(merchant, Counts { open_payments, stored_bytes, idempotency_keys });
        }
        for merchant in sums.usage.keys().chain(stored.keys().filter(|merchant| !sums.usage.contains_key(merchant))) {
            let of = |usage: &BTreeMap<u128, Counts>| usage.get(merchant).copied().unwrap_or_default();
            let (counted, stored) = (of(&sums.usage), of(&stored));
            let problem = format!("{stored:?} stored, {counted:?} counted");
            report.hold(counted == stored, "merchant_usage", MerchantId::from_bits(*merchant), &problem);
        }
        let mut totals = self.day_totals().await?;
        totals.trim();
        sums.totals.trim();
        report.hold(totals.days == sums.totals.days, "payment_days", "sums", "they differ from the payments");
        report.hold(totals.waits == sums.totals.waits, "payment_waits", "sums", "they differ from the payments");
        Ok(())
    }

    async fn day_totals(&self) -> Result<DayTotals, Fault> {
        let mut totals = DayTotals::default();
        let sql = "SELECT merchant_id, day, facet, is_invoice, sum(payments)::bigint, sum(amount_units)::bigint, \
                   sum(usd_cents)::bigint FROM payment_days GROUP BY merchant_id, day, facet, is_invoice";
        let day_of = |row: &Row| Ok::<_, Fault>(unsigned(column::<i32>(row, 1)?.into()));
        for row in self.connection.query(sql, &[]).await? {
            let (Id(merchant), facet) = (column(&row, 0)?, column::<i16>(&row, 2)?);
            let sum = Sum { payments: column(&row, 4)?, units: column(&row, 5)?, usd_cents: column(&row, 6)? };
            let key = (merchant, day_of(&row)?, u8::try_from(facet).unwrap_or(u8::MAX), column(&row, 3)?);
            totals.days.insert(key, sum);
        }
        let sql = "SELECT merchant_id, day, bucket, sum(payments)::bigint FROM payment_waits \
                   GROUP BY merchant_id, day, bucket";
        for row in self.connection.query(sql, &[]).await? {
            let (Id(merchant), bucket) = (column(&row, 0)?, column::<i32>(&row, 2)?);
            totals.waits.insert((merchant, day_of(&row)?, u32::try_from(bucket).unwrap_or(u32::MAX)), column(&row, 3)?);
        }
        Ok(totals)
    }

    /// Decodes the tables that nothing else is compared with.
    async fn others(&self, report: &mut Report) -> Result<(), Fault> {
        macro_rules! tables {
            ($($row:ty),+ $(,)?) => { $(self.each::<$row>(report, |_, _, _| {}).await?;)+ };
        }
        tables!(
            AccountRow,
            AttemptRow,
            AuditRow,
            ComplianceRow,
            DeliveryRow,
            EndpointRow,
            EngineRow,
            EntryRow,
            EventRow,
            InvoiceRow,
            ListRow,
            NameRow,
            ReconciledRow,
            WordRow,
        );
        self.each::<DutyRow>(report, |report, duty, row| report.hold(row.term > 0, "duties", duty, "its term is 0"))
            .await
    }

    async fn relations(&self, report: &mut Report) -> Result<(), Fault> {
        for (table, problem, sql) in RELATIONS {
            for row in self.connection.query(sql, &[]).await? {
                report.find(table, column::<&str>(&row, 0)?, problem);
            }
        }
        Ok(())
    }

    async fn singles(&self, report: &mut Report) -> Result<(), Fault> {
        for (name, SingleRow { value, .. }) in self.table::<SingleRow>(report).await? {
            let read = match name.as_str() {
                meta::CURSOR => {
                    let cursor = report.read("single_values", &name, record::cursor_from_bytes(&value));
                    report.scanned_block = cursor.map(|cursor| cursor.block_id.number());
                    Ok(())
                }
                meta::RATE => record::rate_from_bytes(&value).map(drop),
                meta::EPOCHS => record::epochs_from_bytes(&value).map(drop),
                meta::FEE_TIERS => record::schedule_from_bytes(&value).map(drop),
                meta::RECEIPT_KEYS => record::receipt_keys_version(&value).map(drop),
                _ => Ok(()),
            };
            report.read("single_values", &name, read);
        }
        Ok(())
    }

    /// Decodes a table that fits into memory.
    async fn table<T: Whole>(&self, report: &mut Report) -> Result<Vec<(T::Key, T)>, Fault> {
        let mut all = Vec::new();
        self.each::<T>(report, |_, key, row| all.push((key.clone(), row.clone()))).await?;
        Ok(all)
    }

    /// Decodes a table and compares each row with its record.
    async fn each<T: Whole>(
        &self,
        report: &mut Report,
        mut visit: impl FnMut(&mut Report, &T::Key, &T) + Send,
    ) -> Result<(), Fault> {
        let mut pages = Pages::<T>::of(self.connection);
        loop {
            let page = pages.next().await?;
            if page.is_empty() {
                return Ok(());
            }
            for (key, row) in rows_of::<T>(report, &page)? {
                visit(report, &key, &row);
            }
        }
    }
}

fn rows_of<T: Whole>(report: &mut Report, page: &[Row]) -> Result<Vec<(T::Key, T)>, Fault> {
    let mut rows = Vec::with_capacity(page.len());
    for row in page {
        let Some((key, decoded)) = found(report, T::whole(row))? else { continue };
        compare::<T>(report, row, &key, &decoded)?;
        rows.push((key, decoded));
    }
    Ok(rows)
}

/// Returns a decoded row; adds a finding if it does not decode.
fn found<T>(report: &mut Report, read: Result<T, Fault>) -> Result<Option<T>, Fault> {
    match read {
        Ok(row) => Ok(Some(row)),
        Err(Fault::Damaged { table, key, why }) => {
            report.find(table, key, why);
            Ok(None)
        }
        Err(fault) => Err(fault),
    }
}

/// Compares the columns of a row with its record. The bytes of the record may be those of an older version.
fn compare<T: Whole>(report: &mut Report, row: &Row, key: &T::Key, decoded: &T) -> Result<(), Fault> {
    let expected = T::key_cells(key).into_iter().chain(decoded.cells());
    for (((name, _), stored), expected) in Shape::of::<T>().columns().zip(stored::<T>(row)?).zip(expected) {
        if *name != "record" && stored != expected {
            let place: Vec<String> = T::key_cells(key).iter().map(ToString::to_string).collect();
            report.find(T::NAME, place.join(" "), format_args!("the column {name} differs from the record"));
        }
    }
    Ok(())
}

fn expect_length(report: &mut Report, table: &'static str, expected: u64) {
    let rows = report.tables.iter().find(|(name, _)| *name == table).map_or(0, |(_, rows)| *rows);
    report.hold(rows == expected, table, rows, &format!("expected {expected} rows"));
}
