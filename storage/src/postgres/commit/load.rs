//! Loads the rows that a group of batches needs, in one round trip.

use std::collections::{BTreeMap, BTreeSet};

use engine::{account::AccountName, time::Timestamp};
use futures_util::try_join;

use crate::{
    duty::Duty,
    postgres::{
        commit::{
            business::MAX_FORGOTTEN_KEYS,
            outbox::MAX_PRUNED_EVENTS,
            wanted::Wanted,
            working::{Counts, Queue, Working},
        },
        connection::Connection,
        fault::Fault,
        table::{Rows, Table, load, read_columns},
        tables::{
            business::{ComplianceRow, IdempotencyRow, PeriodRow, compliance},
            duties::EngineRow,
            ledger::{ClaimRow, UnmatchedRow, UseRow},
            merchants::AccountRow,
            payments::TransferRow,
            webhooks::{AttemptRow, EventRow, Head},
        },
        values::{Columns, Id, Moment, Values, column, signed, unsigned},
    },
};

impl Wanted {
    /// Reads everything that is wanted.
    ///
    /// # Errors
    /// See [`Fault`].
    pub(crate) async fn load(self, connection: &Connection, working: &mut Working) -> Result<(), Fault> {
        let c = connection;
        let w = working;
        try_join!(
            load(c, &mut w.merchants),
            load(c, &mut w.keys),
            load(c, &mut w.payments),
            load(c, &mut w.lists),
            load(c, &mut w.deliveries),
            load(c, &mut w.endpoints),
            load(c, &mut w.names),
            load(c, &mut w.unmatched),
            load(c, &mut w.singles),
            self.accounts(c, &mut w.accounts, &mut w.owners),
            self.claims(c, &mut w.claims),
            self.uses(c, &mut w.uses),
            self.provers(c, &mut w.compliance, &mut w.provers),
            self.usage(c, &mut w.usage),
            self.idempotency_keys(c, &mut w.idempotency),
            self.periods(c, &mut w.periods),
            self.invoices(c, &mut w.invoices),
            self.queues(c, &mut w.queues),
            self.transfers(c, &mut w.transfers),
            self.slugs(c, &mut w.slugs),
            self.events(c, &mut w.events, &mut w.event_ids),
            self.attempts(c, &mut w.attempts),
            self.unindexed(c, &mut w.unindexed),
            load(c, &mut w.reconciled),
            load(c, &mut w.duties),
            self.engines(c, &mut w.engines),
            self.clock(c, &mut w.now),
            self.known_commits(c, &mut w.known_commits),
        )?;
        Ok(())
    }

    async fn accounts(
        &self,
        c: &Connection,
        rows: &mut Rows<AccountRow>,
        owners: &mut BTreeMap<AccountName, u64>,
    ) -> Result<(), Fault> {
        let names: BTreeSet<_> = rows.take_wanted().into_iter().chain(self.owners.iter().copied()).collect();
        if names.is_empty() && self.accounts_of.is_empty() {
            return Ok(());
        }
        // The version and the number of merchants are from one snapshot: a merchant that is added later changes the version.
        let sql = "SELECT t.name, t.version, t.number, t.watched_since, t.unwatch_at, \
                   CASE WHEN t.name = ANY($3) THEN (SELECT count(*) FROM merchants m WHERE m.account = t.name) END \
                   FROM (SELECT unnest($1::text[]) UNION SELECT account FROM merchants WHERE id = ANY($2::uuid[])) \
                   AS u (name) JOIN accounts AS t ON t.name = u.name";
        let texts = |names: &mut dyn Iterator<Item = &AccountName>| -> Vec<String> {
            names.map(|name| name.as_str().to_owned()).collect()
        };
        let (names, counted) = (texts(&mut names.iter()), texts(&mut self.owners.iter()));
        for row in c.query(sql, &[&names, &ids(&self.accounts_of), &counted]).await? {
            let (name, account) = AccountRow::read(&row)?;
            rows.found(name, account);
            if let Some(count) = column::<Option<i64>>(&row, 5)? {
                owners.insert(name, unsigned(count));
            }
        }
        Ok(())
    }

    fn handled_keys(&self) -> Columns {
        let mut keys = Columns::of(UnmatchedRow::KEY.iter().map(|(_, kind)| *kind));
        self.handled.iter().for_each(|key| keys.push(UnmatchedRow::key_cells(key)));
        keys
    }

    async fn claims(&self, c: &Connection, rows: &mut Rows<ClaimRow>) -> Result<(), Fault> {
        let wanted = rows.take_wanted();
        if wanted.is_empty() && self.claim_names.is_empty() && self.handled.is_empty() {
            return Ok(());
        }
        let sql = format!(
            "SELECT {} FROM (SELECT unnest($1::bytea[]) UNION SELECT n.tx_id FROM claim_names n WHERE n.digest = ANY($2) \
             UNION {HANDLED_TRANSACTIONS}) AS u (tx_id) JOIN claims AS t ON t.tx_id = u.tx_id",
            read_columns::<ClaimRow>("t")
        );
        let (wanted, names) = (bytes(&wanted), bytes(&self.claim_names));
        for row in query_with(c, &sql, &[&wanted, &names], &self.handled_keys()).await? {
            let (key, claim) = ClaimRow::read(&row)?;
            rows.found(key, claim);
        }
        Ok(())
    }

    async fn uses(&self, c: &Connection, rows: &mut Rows<UseRow>) -> Result<(), Fault> {
        let wanted = rows.take_wanted();
        if wanted.is_empty() && self.handled.is_empty() {
            return Ok(());
        }
        let sql = format!(
            "SELECT {} FROM (SELECT unnest($1::bytea[]) UNION SELECT unnest($2::bytea[]) UNION {HANDLED_TRANSACTIONS}) \
             AS u (tx_id) JOIN transaction_uses AS t ON t.tx_id = u.tx_id",
            read_columns::<UseRow>("t")
        );
        let (wanted, none) = (bytes(&wanted), Vec::<Vec<u8>>::new());
        for row in query_with(c, &sql, &[&wanted, &none], &self.handled_keys()).await? {
            let (key, used) = UseRow::read(&row)?;
            rows.found(key, used);
        }
        Ok(())
    }

    async fn provers(
        &self,
        c: &Connection,
        rows: &mut Rows<ComplianceRow>,
        provers: &mut BTreeMap<AccountName, Vec<u128>>,
    ) -> Result<(), Fault> {
        let wanted = rows.take_wanted();
        if wanted.is_empty() && self.provers.is_empty() {
            return Ok(());
        }
        let sql = "SELECT NULL, t.merchant_id, t.version, t.record FROM compliance_statuses t \
                   WHERE t.merchant_id = ANY($1) UNION ALL \
                   SELECT m.account, m.id, t.version, t.record FROM merchants m \
                   LEFT JOIN compliance_statuses t ON t.merchant_id = m.id \
                   WHERE m.account = ANY($2) AND m.is_account_proven";
        let accounts: Vec<&str> = self.provers.iter().map(AccountName::as_str).collect();
        for row in c.query(sql, &[&ids(&wanted), &accounts]).await? {
            let (account, Id(merchant)) = (column::<Option<&str>>(&row, 0)?, column(&row, 1)?);
            if let Some(account) = account.and_then(|account| AccountName::parse(account).ok()) {
                provers.entry(account).or_default().push(merchant);
            }
            let Some(version) = column::<Option<i64>>(&row, 2)? else { continue };
            let status = compliance(merchant, column(&row, 3)?)?;
            rows.found(merchant, ComplianceRow { version: unsigned(version), status });
        }
        Ok(())
    }

    async fn usage(&self, c: &Connection, usage: &mut BTreeMap<u128, super::working::UsageCount>) -> Result<(), Fault> {
        if self.usage.is_empty() {
            return Ok(());
        }
        let sql = "SELECT merchant_id, sum(open_payments)::bigint, sum(stored_bytes)::bigint, \
                   sum(idempotency_keys)::bigint FROM merchant_usage WHERE merchant_id = ANY($1) GROUP BY merchant_id";
        for row in c.query(sql, &[&ids(&self.usage)]).await? {
            let Id(merchant) = column(&row, 0)?;
            usage.entry(merchant).or_default().loaded = Counts {
                open_payments: column(&row, 1)?,
                stored_bytes: column(&row, 2)?,
                idempotency_keys: column(&row, 3)?,
            };
        }
        Ok(())
    }

    async fn idempotency_keys(&self, c: &Connection, rows: &mut Rows<IdempotencyRow>) -> Result<(), Fault> {
        load(c, rows).await?;
        let Some(before) = self.forget_before else { return Ok(()) };
        let sql = format!(
            "SELECT {} FROM idempotency t WHERE t.made_ms < $1 ORDER BY t.made_ms, t.merchant_id, t.key LIMIT $2",
            read_columns::<IdempotencyRow>("t")
        );
        for row in c.query(&sql, &[&signed(before.millis()), &MAX_FORGOTTEN_KEYS]).await? {
            let (key, record) = IdempotencyRow::read(&row)?;
            rows.found(key, record);
        }
        Ok(())
    }

    async fn periods(&self, c: &Connection, rows: &mut Rows<PeriodRow>) -> Result<(), Fault> {
        if self.periods.is_empty() && self.invoices.is_empty() {
            return Ok(());
        }
        let columns = read_columns::<PeriodRow>("t");
        let sql = format!(
            "SELECT {columns} FROM unnest($1::uuid[], $2::integer[]) AS u (merchant_id, month) \
             JOIN billing_periods t ON t.merchant_id = u.merchant_id AND t.month >= u.month UNION \
             SELECT {columns} FROM invoice_payments i JOIN billing_periods t \
             ON t.month = i.month AND t.merchant_id = i.merchant_id WHERE i.payment_id = ANY($3)"
        );
        let merchants: Vec<Id> = self.periods.keys().map(|merchant| Id(*merchant)).collect();
        let months = self.periods.values().map(|month| i32::try_from(month.number()).unwrap_or(i32::MAX));
        let months: Vec<i32> = months.collect();
        for row in c.query(&sql, &[&merchants, &months, &ids(&self.invoices)]).await? {
            let (key, period) = PeriodRow::read(&row)?;
            rows.found(key, period);
        }
        Ok(())
    }

    async fn invoices(
        &self,
        c: &Connection,
        rows: &mut Rows<crate::postgres::tables::business::InvoiceRow>,
    ) -> Result<(), Fault> {
        self.invoices.iter().for_each(|payment| rows.want(*payment));
        load(c, rows).await
    }

    async fn queues(&self, c: &Connection, queues: &mut BTreeMap<u128, Queue>) -> Result<(), Fault> {
        if self.queues.is_empty() {
            return Ok(());
        }
        // One snapshot: a delivery that is added later changes the version of the head.
        let sql = "SELECT u.endpoint_id, h.version, h.due_at, d.due_at, d.id \
                   FROM unnest($1::uuid[], $2::bigint[]) AS u (endpoint_id, removed) \
                   LEFT JOIN outbox_heads h ON h.endpoint_id = u.endpoint_id \
                   LEFT JOIN LATERAL (SELECT due_at, id FROM deliveries WHERE endpoint_id = u.endpoint_id \
                   AND due_at IS NOT NULL ORDER BY due_at LIMIT u.removed + 1) AS d ON true";
        let endpoints: Vec<Id> = self.queues.keys().map(|endpoint| Id(*endpoint)).collect();
        let removed: Vec<i64> = self.queues.values().map(|count| i64::try_from(*count).unwrap_or(i64::MAX)).collect();
        for row in c.query(sql, &[&endpoints, &removed]).await? {
            let Id(endpoint) = column(&row, 0)?;
            let queue = queues.entry(endpoint).or_default();
            if let Some(version) = column::<Option<i64>>(&row, 1)? {
                let Moment(due_at) = column(&row, 2)?;
                queue.head = Some(Head { version: unsigned(version), due_at });
            }
            if let Some(Moment(due_at)) = column(&row, 3)? {
                let Id(delivery) = column(&row, 4)?;
                queue.first.push((due_at, delivery));
            }
        }
        Ok(())
    }

    async fn transfers(&self, c: &Connection, rows: &mut Rows<TransferRow>) -> Result<(), Fault> {
        load(c, rows).await?;
        let columns = read_columns::<TransferRow>("t");
        if self.is_careful && !self.places.is_empty() {
            let sql = format!(
                "SELECT {columns} FROM unnest($1::uuid[], $2::bigint[]) AS u (payment_id, seq) \
                 JOIN transfers t ON t.payment_id = u.payment_id AND t.seq = u.seq"
            );
            let payments: Vec<Id> = self.places.iter().map(|(payment, _)| Id(*payment)).collect();
            let places: Vec<i64> = self.places.iter().map(|(_, seq)| signed(*seq)).collect();
            for row in c.query(&sql, &[&payments, &places]).await? {
                let (key, transfer) = TransferRow::read(&row)?;
                rows.found(key, transfer);
            }
        }
        if !self.erased.is_empty() {
            let sql = format!("SELECT {columns} FROM transfers t WHERE t.payment_id = ANY($1)");
            for row in c.query(&sql, &[&ids(&self.erased)]).await? {
                let (key, transfer) = TransferRow::read(&row)?;
                rows.found(key, transfer);
            }
        }
        Ok(())
    }

    async fn slugs(&self, c: &Connection, slugs: &mut BTreeSet<u128>) -> Result<(), Fault> {
        if !self.is_careful || self.slugs.is_empty() {
            return Ok(());
        }
        for row in c.query("SELECT slug FROM payments WHERE slug = ANY($1)", &[&ids(&self.slugs)]).await? {
            let Id(slug) = column(&row, 0)?;
            slugs.insert(slug);
        }
        Ok(())
    }

    async fn events(
        &self,
        c: &Connection,
        rows: &mut Rows<EventRow>,
        stored: &mut BTreeSet<u128>,
    ) -> Result<(), Fault> {
        if self.is_careful && !self.event_ids.is_empty() {
            for row in c.query("SELECT id FROM events WHERE id = ANY($1)", &[&ids(&self.event_ids)]).await? {
                let Id(event) = column(&row, 0)?;
                stored.insert(event);
            }
        }
        let Some(before) = self.prune_before else { return Ok(()) };
        let sql = format!(
            "SELECT {} FROM events t WHERE t.happened_at < $1 ORDER BY t.happened_at, t.id LIMIT $2",
            read_columns::<EventRow>("t")
        );
        for row in c.query(&sql, &[&Moment(before), &MAX_PRUNED_EVENTS]).await? {
            let (key, event) = EventRow::read(&row)?;
            rows.found(key, event);
        }
        Ok(())
    }

    async fn attempts(&self, c: &Connection, rows: &mut Rows<AttemptRow>) -> Result<(), Fault> {
        let Some(before) = self.prune_before else { return Ok(()) };
        let sql = format!(
            "SELECT {} FROM (SELECT id FROM events WHERE happened_at < $1 ORDER BY happened_at, id LIMIT $2) AS u \
             JOIN attempts t ON t.event_id = u.id",
            read_columns::<AttemptRow>("t")
        );
        for row in c.query(&sql, &[&Moment(before), &MAX_PRUNED_EVENTS]).await? {
            let (key, attempt) = AttemptRow::read(&row)?;
            rows.found(key, attempt);
        }
        Ok(())
    }

    async fn engines(&self, c: &Connection, rows: &mut Rows<EngineRow>) -> Result<(), Fault> {
        load(c, rows).await?;
        if self.held.is_empty() {
            return Ok(());
        }
        let columns = read_columns::<EngineRow>("t");
        let sql = format!("SELECT {columns} FROM duties d JOIN engines t ON t.id = d.holder WHERE d.name = ANY($1)");
        let names: Vec<String> = self.held.iter().map(Duty::to_string).collect();
        for row in c.query(&sql, &[&names]).await? {
            let (engine, lease) = EngineRow::read(&row)?;
            rows.found(engine, lease);
        }
        Ok(())
    }

    async fn clock(&self, c: &Connection, now: &mut Timestamp) -> Result<(), Fault> {
        if self.needs_clock {
            Moment(*now) = column(&c.one("SELECT clock_timestamp()", &[]).await?, 0)?;
        }
        Ok(())
    }

    async fn known_commits(&self, c: &Connection, known: &mut BTreeSet<u128>) -> Result<(), Fault> {
        if !self.is_careful || self.commits.is_empty() {
            return Ok(());
        }
        for row in c.query("SELECT id FROM commits WHERE id = ANY($1)", &[&ids(&self.commits)]).await? {
            let Id(commit) = column(&row, 0)?;
            known.insert(commit);
        }
        Ok(())
    }

    /// Reads which commits still wait for the words of payments that lose them: the indexer and this commit change the same row.
    async fn unindexed(&self, c: &Connection, found: &mut BTreeMap<u128, u128>) -> Result<(), Fault> {
        if self.erased.is_empty() {
            return Ok(());
        }
        let sql = "SELECT u.payment_id, c.id FROM unnest($1::uuid[]) AS u (payment_id) \
                   JOIN commits c ON c.unindexed_payments IS NOT NULL AND c.unindexed_payments @> ARRAY[u.payment_id]";
        for row in c.query(sql, &[&ids(&self.erased)]).await? {
            let (Id(payment), Id(commit)) = (column(&row, 0)?, column(&row, 1)?);
            found.insert(payment, commit);
        }
        Ok(())
    }
}

const HANDLED_TRANSACTIONS: &str = "SELECT m.tx_id FROM unnest($3::text[], $4::bigint[], $5::bigint[], $6::bigint[]) \
     AS k (account, block_num, tx_in_block, op_in_tx) JOIN unmatched_transfers m ON m.account = k.account \
     AND m.block_num = k.block_num AND m.tx_in_block = k.tx_in_block AND m.op_in_tx = k.op_in_tx";

async fn query_with(
    c: &Connection,
    sql: &str,
    first: &[&(dyn tokio_postgres::types::ToSql + Sync)],
    rest: &Columns,
) -> Result<Vec<tokio_postgres::Row>, Fault> {
    let parameters: Vec<_> = first.iter().copied().chain(rest.lists.iter().map(Values::parameter)).collect();
    c.query(sql, &parameters).await
}

fn ids(bits: &BTreeSet<u128>) -> Vec<Id> {
    bits.iter().map(|bits| Id(*bits)).collect()
}

fn bytes<const N: usize>(keys: &BTreeSet<[u8; N]>) -> Vec<Vec<u8>> {
    keys.iter().map(|key| key.to_vec()).collect()
}
