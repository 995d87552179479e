//! Lists of a merchant's payments that need no words, and the sums of days.

use std::{collections::BTreeMap, time::Duration};

use engine::{
    money::Currency,
    payment::{Payment, State},
};

use crate::{
    embedded::read::{
        days::{Tally, day_of, ids_of, median},
        listed::{self, Facets, Ids, common},
        payments::{MAX_COUNTED, Slice, from_cursor},
        search::Wanted,
    },
    postgres::{
        fault::Fault,
        read::{accounts::limit_of, payments::read, search},
        readers::Readers,
        values::{Id, column, signed, unsigned},
    },
    record::summary::facet_of,
    store::{
        page::{Page, PageAt},
        payments::{DayVolume, PaymentQuery, Volume, VolumeQuery},
    },
};

/// The ids of the newest payments of merchant `$1`, of facets `$2`, from id `$3` to `$4`, at most `$5` of each facet.
pub(crate) const NEWEST: &str = "SELECT n.id FROM unnest($2::smallint[]) AS f (facet) CROSS JOIN LATERAL \
     (SELECT id FROM payments WHERE merchant_id = $1 AND facet = f.facet AND id >= $3 AND id <= $4 \
     ORDER BY id DESC LIMIT $5) AS n ORDER BY n.id DESC";

/// Number of skipped payments from which a page by number is located by the sums of days.
const SHALLOW: u64 = 1_000;

/// A list of payments as the index divides it.
#[derive(Debug, Clone)]
pub(crate) struct List {
    pub(crate) merchant: Id,
    pub(crate) facets: Vec<i16>,
    pub(crate) ids: Ids,
}

impl List {
    /// Returns the same list of other ids.
    pub(crate) fn of_ids(&self, ids: Ids) -> Self {
        Self { ids, ..self.clone() }
    }

    /// Returns its newest payments, at most `limit`.
    pub(crate) async fn newest(&self, readers: &Readers, skipped: u64, limit: usize) -> Result<Vec<Payment>, Fault> {
        if self.ids.is_empty() {
            return Ok(Vec::new());
        }
        let sql = format!(
            "SELECT p.id, p.record FROM ({NEWEST} OFFSET $6 LIMIT $7) AS u JOIN payments p ON p.id = u.id ORDER BY p.id DESC"
        );
        let (first, last, limit) = (Id(*self.ids.start()), Id(*self.ids.end()), limit_of(limit));
        let (skipped, each) = (signed(skipped), signed(skipped).saturating_add(limit));
        let rows = readers.query(&sql, &[&self.merchant, &self.facets, &first, &last, &each, &skipped, &limit]).await?;
        let mut found = Vec::with_capacity(rows.len());
        for row in &rows {
            found.extend(readers.pass(read(row, 0))?);
        }
        Ok(found)
    }

    /// Counts its payments day by day: by the sums of whole days, and one by one at the edges.
    async fn tally(&self, readers: &Readers) -> Result<Tally, Fault> {
        if self.ids.is_empty() {
            return Ok(Tally::default());
        }
        let (first, last) = (day_of(*self.ids.start()), day_of(*self.ids.end()));
        let whole = |day: u64| common(&ids_of(day), &self.ids) == ids_of(day);
        let edges: Vec<u64> = [first, last].into_iter().filter(|day| !whole(*day)).collect();
        let sums = "SELECT day, sum(payments)::bigint FROM payment_days WHERE merchant_id = $1 AND facet = ANY($2) \
                    AND day >= $3 AND day <= $4 GROUP BY day ORDER BY day";
        let bound = |day: u64| i32::try_from(day).unwrap_or(i32::MAX);
        let (low, high) = (bound(first), bound(last));
        let sums = async { readers.query(sums, &[&self.merchant, &self.facets, &low, &high]).await };
        let (sums, first_edge, last_edge) = futures_util::try_join!(
            sums,
            self.edge(readers, edges.first().copied()),
            self.edge(readers, edges.get(1).copied().filter(|day| *day != first)),
        )?;
        let mut days = BTreeMap::new();
        for row in &sums {
            let day = u64::try_from(column::<i32>(row, 0)?).unwrap_or(0);
            days.insert(day, (unsigned(column(row, 1)?), false));
        }
        days.extend(first_edge.into_iter().chain(last_edge));
        let days = days.into_iter().filter(|(_, (count, _))| *count > 0);
        Ok(Tally::of(days.map(|(day, (count, has_more))| (day, count, has_more)).collect()))
    }

    /// Counts the payments of a day of which not all are of the list.
    async fn edge(&self, readers: &Readers, day: Option<u64>) -> Result<Option<(u64, (u64, bool))>, Fault> {
        let Some(day) = day else { return Ok(None) };
        let ids = common(&ids_of(day), &self.ids);
        let sql = format!("SELECT count(*) FROM ({NEWEST} LIMIT $5) AS n");
        let (first, last, limit) = (Id(*ids.start()), Id(*ids.end()), signed(MAX_COUNTED + 1));
        let rows = readers.query(&sql, &[&self.merchant, &self.facets, &first, &last, &limit]).await?;
        let count = rows.first().map(|row| column(row, 0)).transpose()?.map_or(0, unsigned);
        Ok(Some((day, (count.min(MAX_COUNTED), count > MAX_COUNTED))))
    }
}

/// Lists a merchant's payments.
pub(crate) async fn payments(readers: &Readers, query: &PaymentQuery) -> Result<Page<Payment>, Fault> {
    let ids = listed::ids_made(query.from, query.to);
    let mut wanted = Vec::new();
    let words = query.query.as_deref().and_then(Wanted::parse);
    if words.as_ref().is_some_and(Vec::is_empty) {
        return Ok(Page::of(Vec::new(), 0));
    }
    if query.min_units.is_some() || query.max_units.is_some() {
        wanted.push(Wanted::Amount(query.min_units.unwrap_or(0)..=query.max_units.unwrap_or(u64::MAX)));
    }
    wanted.extend(words.into_iter().flatten());
    let facets = Facets::of(query).iter().map(i16::from).collect();
    let list = List { merchant: Id(query.merchant.bits()), facets, ids: from_cursor(query, ids) };
    match wanted.is_empty() && query.ids.is_empty() {
        true => indexed(readers, query, list).await,
        false => search::searched(readers, query, &list, &wanted).await,
    }
}

async fn indexed(readers: &Readers, query: &PaymentQuery, list: List) -> Result<Page<Payment>, Fault> {
    let limit = query.limit.saturating_add(1);
    let skipped = Slice::of(query).skipped;
    let mut page = Page::of(Vec::new(), 0);
    if !matches!(query.at, PageAt::Number(_)) {
        page.items = list.newest(readers, 0, limit).await?;
    } else if skipped <= SHALLOW {
        let (items, tally) = futures_util::try_join!(list.newest(readers, skipped, limit), list.tally(readers))?;
        page.items = items;
        (page.total, page.total_is_lower_bound) = (tally.total(), tally.is_lower_bound());
    } else {
        let tally = list.tally(readers).await?;
        (page.total, page.total_is_lower_bound) = (tally.total(), tally.is_lower_bound());
        if skipped < page.total || page.total_is_lower_bound {
            let (last, skipped) = tally.after(skipped);
            let ids = *list.ids.start()..=*list.ids.end().min(&last);
            page.items = list.of_ids(ids).newest(readers, skipped, limit).await?;
        }
    }
    if page.items.len() > query.limit {
        page.items.truncate(query.limit);
        page.next = page.items.last().map(|payment| payment.id.bits());
    }
    Ok(page)
}

/// Returns the state and the currency of each facet.
fn facets() -> BTreeMap<i16, (State, Currency)> {
    let mut facets = BTreeMap::new();
    for state in State::ALL {
        for currency in Currency::ALL {
            for is_unusual in [false, true] {
                facets.insert(facet_of(state, currency, is_unusual).into(), (state, currency));
            }
        }
    }
    facets
}

/// Returns the sums of the requested days. Invoices are no sales.
pub(crate) async fn volume(readers: &Readers, query: &VolumeQuery) -> Result<Volume, Fault> {
    let first = query.last_day.saturating_sub(query.days.saturating_sub(1));
    let mut days: BTreeMap<u64, DayVolume> =
        (first..=query.last_day).map(|day| (day, DayVolume { day, ..DayVolume::default() })).collect();
    let sums = "SELECT day, facet, sum(payments)::bigint, sum(amount_units)::bigint, sum(usd_cents)::bigint \
                FROM payment_days WHERE merchant_id = $1 AND day >= $2 AND day <= $3 AND NOT is_invoice \
                GROUP BY day, facet";
    let waits = "SELECT bucket, sum(payments)::bigint FROM payment_waits \
                 WHERE merchant_id = $1 AND day >= $2 AND day <= $3 GROUP BY bucket";
    let bound = |day: u64| i32::try_from(day).unwrap_or(i32::MAX);
    let (merchant, low, high) = (Id(query.merchant.bits()), bound(first), bound(query.last_day));
    let (sums, waits) =
        futures_util::try_join!(async { readers.query(sums, &[&merchant, &low, &high]).await }, async {
            readers.query(waits, &[&merchant, &low, &high]).await
        },)?;
    let facets = facets();
    for row in &sums {
        let day = days.get_mut(&u64::try_from(column::<i32>(row, 0)?).unwrap_or(0));
        let (Some(day), Some((state, currency))) = (day, facets.get(&column(row, 1)?)) else { continue };
        let (payments, units, cents) = (column(row, 2)?, column(row, 3)?, column(row, 4)?);
        day.opened += unsigned(payments);
        if state.is_terminal() {
            day.ended += unsigned(payments);
        }
        if *state == State::Completed {
            day.completed += unsigned(payments);
            day.usd_cents += unsigned(cents);
            match currency {
                Currency::Hive => day.hive_units += unsigned(units),
                Currency::Hbd => day.hbd_units += unsigned(units),
            }
        }
    }
    let mut buckets = BTreeMap::new();
    for row in &waits {
        let (bucket, count) = (u32::try_from(column::<i32>(row, 0)?).unwrap_or(0), unsigned(column(row, 1)?));
        if count > 0 {
            buckets.insert(bucket, count);
        }
    }
    Ok(Volume { days: days.into_values().collect(), median_wait: median(&buckets).map(Duration::from_millis) })
}
