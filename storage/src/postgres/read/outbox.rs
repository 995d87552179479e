//! Reads of events and of deliveries.

use std::sync::Arc;

use engine::{
    event_list::{EventList, Tail},
    ids::{DeliveryId, EndpointId, EventId, MerchantId},
    merchant::Merchant,
    time::Timestamp,
    webhook::{Attempt, Delivery, DeliveryRecord, DeliveryState, EndpointHealth},
};
use tokio_postgres::Row;

use crate::{
    batch::EventRecord,
    embedded::tables::meta,
    postgres::{
        fault::Fault,
        read::{
            accounts::{limit_of, merchant, read as read_merchant},
            business::epochs,
        },
        readers::Readers,
        table::Table,
        tables::webhooks::{AttemptRow, health, logged, tail},
        values::{Id, Moment, column, signed, unsigned},
    },
    record::{self, vault::Vault},
    store::{
        outbox::{DeliveryQuery, Due, DueWork, Passed},
        page::Page,
    },
};

/// Maximum number of deliveries that a page reads beyond those it returns.
const MAX_READ: usize = 2_000;
/// Number of additional queues that are read, because some have no deliverable entry.
const SPARE: usize = 16;

/// Reads a delivery from its merchant, its id and its record.
fn delivery_of(row: &Row, first: usize) -> Result<DeliveryRecord, Fault> {
    let (Id(merchant), Id(id)) = (column(row, first)?, column(row, first + 1)?);
    logged((merchant, id), column(row, first + 2)?)
}

fn deliveries_of(readers: &Readers, rows: &[Row]) -> Result<Vec<DeliveryRecord>, Fault> {
    let mut found = Vec::with_capacity(rows.len());
    for row in rows {
        found.extend(readers.pass(delivery_of(row, 0))?);
    }
    Ok(found)
}

/// Returns deliveries due at or before `now`, earliest first, at most `limit`.
pub(crate) async fn due(readers: &Readers, now: Timestamp, limit: usize) -> Result<Vec<Delivery>, Fault> {
    let sql =
        "SELECT merchant_id, id, record FROM deliveries WHERE due_at <= $1 ORDER BY due_at, event_id, id LIMIT $2";
    let rows = readers.query(sql, &[&Moment(now), &limit_of(limit)]).await?;
    Ok(deliveries_of(readers, &rows)?.into_iter().map(|logged| logged.delivery).collect())
}

/// Returns the earliest due time after `now`.
pub(crate) async fn next_due(readers: &Readers, now: Timestamp) -> Result<Option<Timestamp>, Fault> {
    let sql = "SELECT due_at FROM deliveries WHERE due_at > $1 ORDER BY due_at LIMIT 1";
    let rows = readers.query(sql, &[&Moment(now)]).await?;
    rows.first().map(|row| column(row, 0).map(|Moment(due_at)| due_at)).transpose()
}

/// The first due queues, the health of their endpoints, and their first deliveries.
const WORK: &str = "SELECT h.endpoint_id, h.version, e.record, d.id, d.record, d.trigger = 'auto' AND EXISTS ( \
     SELECT 1 FROM deliveries o WHERE o.payment_id = d.payment_id AND o.event_seq < d.event_seq \
     AND o.endpoint_id = h.endpoint_id AND o.trigger = 'auto' AND o.due_at IS NOT NULL), \
     (SELECT q.due_at FROM deliveries q \
     WHERE q.endpoint_id = h.endpoint_id AND q.due_at IS NOT NULL ORDER BY q.due_at LIMIT 1), h.merchant_id, m.record \
     FROM (SELECT endpoint_id, merchant_id, version, due_at FROM outbox_heads \
     WHERE due_at <= $1 AND endpoint_id <> ALL($2) AND bucket = ANY($6) ORDER BY due_at, endpoint_id LIMIT $3) AS h \
     LEFT JOIN endpoints e ON e.id = h.endpoint_id LEFT JOIN merchants m ON m.id = h.merchant_id \
     LEFT JOIN LATERAL (SELECT id, record, payment_id, event_seq, trigger, due_at FROM deliveries \
     WHERE endpoint_id = h.endpoint_id AND due_at <= $1 AND id <> ALL($4) \
     ORDER BY due_at, event_seq, id LIMIT $5) AS d ON true \
     ORDER BY h.due_at, h.endpoint_id, d.due_at, d.event_seq, d.id";

/// Returns the due deliveries of several endpoints. The endpoint with the earliest due delivery comes first.
pub(crate) async fn due_work(
    readers: &Readers,
    now: Timestamp,
    endpoints: usize,
    per_endpoint: usize,
    passed: &Passed,
    vault: &Vault,
) -> Result<Vec<DueWork>, Fault> {
    let excluded: Vec<Id> = passed.endpoints.iter().map(|endpoint| Id(endpoint.bits())).collect();
    let known: Vec<Id> = passed.deliveries.iter().map(|delivery| Id(delivery.bits())).collect();
    let buckets: Vec<i16> = (0..=u8::MAX).filter(|bucket| passed.buckets.contains(*bucket)).map(i16::from).collect();
    let queues = limit_of(endpoints.saturating_add(known.len()).saturating_add(SPARE));
    let limit = limit_of(per_endpoint);
    let rows = readers.query(WORK, &[&Moment(now), &excluded, &queues, &known, &limit, &buckets]).await?;
    let (mut work, mut stale) = (Vec::<DueWork>::new(), Stale::default());
    for row in &rows {
        let Id(bits) = column(row, 0)?;
        let endpoint = EndpointId::from_bits(bits);
        if work.last().is_none_or(|work| work.endpoint != endpoint) {
            let first = column::<Option<Moment>>(row, 6)?.map(|Moment(due_at)| due_at);
            if first.is_none_or(|first| first > now) {
                stale.add(bits, column(row, 1)?, first);
                continue;
            }
            // A damaged health record starts over.
            let known = column::<Option<&[u8]>>(row, 2)?.map(|bytes| health(bits, bytes));
            let health = known.map(|known| readers.pass(known)).transpose()?.flatten().unwrap_or_default();
            let Id(merchant) = column(row, 7)?;
            work.push(DueWork {
                endpoint,
                merchant: MerchantId::from_bits(merchant),
                record: merchant_of(readers, row, vault)?,
                health,
                deliveries: Vec::new(),
            });
        }
        let Some(Id(id)) = column::<Option<Id>>(row, 3)? else { continue };
        let Id(merchant) = column(row, 7)?;
        let delivery = readers.pass(logged((merchant, id), column(row, 4)?))?;
        let (Some(delivery), Some(work)) = (delivery, work.last_mut()) else { continue };
        work.deliveries.push(Due { delivery: delivery.delivery, follows: column(row, 5)? });
    }
    stale.repair(readers).await?;
    let mut found = 0;
    // A queue without a deliverable entry does not count toward `endpoints`.
    work.retain(|work| {
        found += usize::from(!work.deliveries.is_empty());
        found <= endpoints
    });
    Ok(work)
}

/// Reads the merchant of a row of due work; none if there is none or it is damaged.
fn merchant_of(readers: &Readers, row: &Row, vault: &Vault) -> Result<Option<Arc<Merchant>>, Fault> {
    if column::<Option<&[u8]>>(row, 8)?.is_none() {
        return Ok(None);
    }
    readers.pass(read_merchant(row, 7, vault))
}

/// Returns the record of a merchant and one of its events. A damaged event is none.
pub(crate) async fn webhook_content(
    readers: &Readers,
    id: MerchantId,
    event_seq: u64,
    vault: &Vault,
) -> Result<(Option<Arc<Merchant>>, Option<EventRecord>), Fault> {
    let (merchant, event) = futures_util::join!(merchant(readers, id, vault), event(readers, id, event_seq));
    Ok((merchant?, readers.pass(event)?.flatten()))
}

/// Heads of queues whose first delivery is due later than the head.
#[derive(Debug, Default)]
struct Stale {
    endpoints: Vec<Id>,
    versions: Vec<i64>,
    due: Vec<Moment>,
}

impl Stale {
    fn add(&mut self, endpoint: u128, version: i64, due_at: Option<Timestamp>) {
        self.endpoints.push(Id(endpoint));
        self.versions.push(version);
        self.due.push(Moment(due_at.unwrap_or(Timestamp::MAX)));
    }

    /// Sets the heads that are unchanged since they were read.
    async fn repair(&self, readers: &Readers) -> Result<(), Fault> {
        if self.endpoints.is_empty() {
            return Ok(());
        }
        let sql = "UPDATE outbox_heads t SET due_at = u.due_at, version = t.version + 1 \
                   FROM unnest($1::uuid[], $2::bigint[], $3::timestamptz[]) AS u (endpoint_id, version, due_at) \
                   WHERE t.endpoint_id = u.endpoint_id AND t.version = u.version";
        readers.query(sql, &[&self.endpoints, &self.versions, &self.due]).await.map(drop)
    }
}

/// Returns the health of an endpoint.
pub(crate) async fn endpoint(readers: &Readers, id: EndpointId) -> Result<EndpointHealth, Fault> {
    let rows = readers.query("SELECT record FROM endpoints WHERE id = $1", &[&Id(id.bits())]).await?;
    let read = rows.first().map(|row| health(id.bits(), column(row, 0)?));
    Ok(read.map(|read| readers.pass(read)).transpose()?.flatten().unwrap_or_default())
}

/// Returns a merchant's delivery.
pub(crate) async fn delivery(
    readers: &Readers,
    merchant: MerchantId,
    id: DeliveryId,
) -> Result<Option<DeliveryRecord>, Fault> {
    let sql = "SELECT merchant_id, id, record FROM deliveries WHERE merchant_id = $1 AND id = $2";
    let rows = readers.query(sql, &[&Id(merchant.bits()), &Id(id.bits())]).await?;
    rows.first().map(|row| delivery_of(row, 0)).transpose()
}

/// Lists a merchant's deliveries, newest first; they are not counted.
pub(crate) async fn deliveries(readers: &Readers, query: &DeliveryQuery) -> Result<Page<DeliveryRecord>, Fault> {
    let DeliveryQuery { merchant, before, limit, states, event, payment, endpoint } = query;
    let (merchant, endpoint) = (Id(merchant.bits()), endpoint.map(|endpoint| Id(endpoint.bits())));
    let before = before.map(|before| Id(before.bits()));
    let names: Vec<&str> = states.iter().map(|state| state.as_str()).collect();
    let one_more = limit_of(limit.saturating_add(1));
    let is_older = "($2::uuid IS NULL OR d.id < $2)";
    if event.is_some() || payment.is_some() {
        let by = if event.is_some() { "event_id" } else { "payment_id" };
        let sql = format!(
            "SELECT d.merchant_id, d.id, d.record FROM deliveries d WHERE d.{by} = $4 AND d.merchant_id = $1 AND {is_older} \
             AND (cardinality($3::text[]) = 0 OR d.state = ANY($3)) AND ($5::uuid IS NULL OR d.payment_id = $5) \
             AND ($7::uuid IS NULL OR d.endpoint_id = $7) ORDER BY d.id DESC LIMIT $6"
        );
        let payment = payment.map(|payment| Id(payment.bits()));
        let key = event.map_or(payment, |event| Some(Id(event.bits())));
        let rows = readers.query(&sql, &[&merchant, &before, &names, &key, &payment, &one_more, &endpoint]).await?;
        return page(readers, &rows, *limit);
    }
    if !states.is_empty() && !states.contains(&DeliveryState::Delivered) {
        let sql = format!(
            "SELECT n.merchant_id, n.id, n.record FROM unnest($3::text[]) AS s (state) CROSS JOIN LATERAL \
             (SELECT d.merchant_id, d.id, d.record FROM deliveries d WHERE d.merchant_id = $1 AND d.state = s.state \
             AND d.state <> 'delivered' AND {is_older} AND ($5::uuid IS NULL OR d.endpoint_id = $5) \
             ORDER BY d.id DESC LIMIT $4) AS n ORDER BY n.id DESC LIMIT $4"
        );
        let rows = readers.query(&sql, &[&merchant, &before, &names, &one_more, &endpoint]).await?;
        return page(readers, &rows, *limit);
    }
    let sql = format!(
        "SELECT d.merchant_id, d.id, CASE WHEN (cardinality($3::text[]) = 0 OR d.state = ANY($3)) \
         AND ($5::uuid IS NULL OR d.endpoint_id = $5) THEN d.record END \
         FROM deliveries d WHERE d.merchant_id = $1 AND {is_older} ORDER BY d.id DESC LIMIT $4"
    );
    let most =
        if states.is_empty() && endpoint.is_none() { one_more } else { limit_of(limit.saturating_add(MAX_READ)) };
    let rows = readers.query(&sql, &[&merchant, &before, &names, &most, &endpoint]).await?;
    let mut found = Vec::new();
    for row in &rows {
        if found.len() == *limit + 1 {
            break;
        }
        if column::<Option<&[u8]>>(row, 2)?.is_some() {
            found.extend(readers.pass(delivery_of(row, 0))?);
        }
    }
    let mut page = Page::of(found, 0);
    if page.items.len() > *limit {
        page.items.truncate(*limit);
        page.next = page.items.last().map(|logged| logged.delivery.id.bits());
    } else if signed(rows.len() as u64) == most {
        page.next = rows.last().map(|row| column(row, 1).map(|Id(id)| id)).transpose()?;
    }
    Ok(page)
}

/// Returns a page from its rows, of which one more than the limit was requested.
fn page(readers: &Readers, rows: &[Row], limit: usize) -> Result<Page<DeliveryRecord>, Fault> {
    let mut page = Page::of(deliveries_of(readers, rows.get(..limit).unwrap_or(rows))?, 0);
    if rows.len() > limit {
        page.next = rows.get(limit.saturating_sub(1)).map(|row| column(row, 1).map(|Id(id)| id)).transpose()?;
    }
    Ok(page)
}

/// Returns a merchant's deliveries after `after` that may be replayed, oldest first, at most `limit`.
pub(crate) async fn replayable(
    readers: &Readers,
    merchant: MerchantId,
    after: DeliveryId,
    limit: usize,
) -> Result<Vec<Delivery>, Fault> {
    let sql = "SELECT n.merchant_id, n.id, n.record FROM unnest(ARRAY['held', 'failed']) AS s (state) CROSS JOIN LATERAL \
               (SELECT merchant_id, id, record FROM deliveries d WHERE d.merchant_id = $1 AND d.state = s.state \
               AND d.state <> 'delivered' AND d.trigger = 'auto' AND d.id > $2 ORDER BY d.id LIMIT $3) AS n \
               ORDER BY n.id LIMIT $3";
    let rows = readers.query(sql, &[&Id(merchant.bits()), &Id(after.bits()), &limit_of(limit)]).await?;
    let found = deliveries_of(readers, &rows)?.into_iter().filter(DeliveryRecord::is_replayable);
    Ok(found.map(|logged| logged.delivery).collect())
}

/// Returns the attempts made to deliver an event, in order.
pub(crate) async fn attempts(readers: &Readers, event: EventId) -> Result<Vec<Attempt>, Fault> {
    let sql = "SELECT event_id, delivery_id, number, record FROM attempts WHERE event_id = $1 \
               ORDER BY delivery_id, number";
    let mut found = Vec::new();
    for row in &readers.query(sql, &[&Id(event.bits())]).await? {
        found.extend(readers.pass(AttemptRow::read(row))?.map(|(_, row)| row.0));
    }
    Ok(found)
}

fn event_of(row: &Row) -> Result<EventRecord, Fault> {
    let (Id(merchant), seq) = (column(row, 0)?, unsigned(column(row, 1)?));
    let damaged = Fault::damaged("events", format!("{seq} of {}", MerchantId::from_bits(merchant)));
    record::event_from_bytes((merchant, seq), column(row, 2)?).map_err(damaged)
}

/// Returns an event of a merchant by its place in the list.
pub(crate) async fn event(readers: &Readers, merchant: MerchantId, seq: u64) -> Result<Option<EventRecord>, Fault> {
    let sql = "SELECT merchant_id, seq, record FROM events WHERE merchant_id = $1 AND seq = $2";
    let rows = readers.query(sql, &[&Id(merchant.bits()), &signed(seq)]).await?;
    rows.first().map(event_of).transpose()
}

/// Returns the merchant of an event, and the event's position in the merchant's list.
pub(crate) async fn event_place(readers: &Readers, event: EventId) -> Result<Option<(MerchantId, u64)>, Fault> {
    let rows = readers.query("SELECT merchant_id, seq FROM events WHERE id = $1", &[&Id(event.bits())]).await?;
    let place = |row: &Row| {
        let Id(merchant) = column(row, 0)?;
        Ok((MerchantId::from_bits(merchant), unsigned(column(row, 1)?)))
    };
    rows.first().map(place).transpose()
}

/// Returns a merchant's events after `after`, in order, at most `limit`.
pub(crate) async fn events(
    readers: &Readers,
    merchant: MerchantId,
    after: u64,
    limit: usize,
) -> Result<Vec<EventRecord>, Fault> {
    let sql = "SELECT merchant_id, seq, record FROM events WHERE merchant_id = $1 AND seq > $2 ORDER BY seq LIMIT $3";
    let mut found = Vec::new();
    for row in &readers.query(sql, &[&Id(merchant.bits()), &signed(after), &limit_of(limit)]).await? {
        found.extend(readers.pass(event_of(row))?);
    }
    Ok(found)
}

/// Returns the epochs and the end of a merchant's list of events.
pub(crate) async fn event_list(readers: &Readers, merchant: MerchantId) -> Result<EventList, Fault> {
    let sql = "SELECT v.value, t.last_seq, t.epoch, t.last_before_epoch FROM (SELECT 1) AS one \
               LEFT JOIN single_values v ON v.name = $2 LEFT JOIN event_lists t ON t.merchant_id = $1";
    let rows = readers.query(sql, &[&Id(merchant.bits()), &meta::EPOCHS]).await?;
    let Some(row) = rows.first() else {
        return Ok(EventList { epochs: epochs(readers).await?, tail: Tail::EMPTY });
    };
    let damaged = Fault::damaged("single_values", meta::EPOCHS);
    let epochs = column::<Option<&[u8]>>(row, 0)?.map(record::epochs_from_bytes).transpose().map_err(damaged)?;
    let tail = if column::<Option<i64>>(row, 1)?.is_some() { tail(row, 1)? } else { Tail::EMPTY };
    Ok(EventList { epochs: epochs.unwrap_or_default(), tail })
}

/// Returns when the oldest stored event happened.
pub(crate) async fn oldest_event(readers: &Readers) -> Result<Option<Timestamp>, Fault> {
    let sql = "SELECT happened_at FROM events ORDER BY happened_at LIMIT 1";
    let rows = readers.query(sql, &[]).await?;
    rows.first().map(|row| column(row, 0).map(|Moment(at)| at)).transpose()
}
