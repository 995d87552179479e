//! Lists by ids, words and amounts: what the index finds, and what is not indexed yet by reading it. A bounded number of payments is
//! read; the next page continues from there.

use std::collections::{BTreeMap, BTreeSet};

use engine::{ids::PaymentId, payment::Payment};

use crate::{
    embedded::read::{
        listed::{ANY_ID, Facets, common},
        payments::{MAX_LOOKED_UP, Slice},
        search::{Wanted, indexed_words_of, refund_words_of, transfer_words_of, words_of},
    },
    postgres::{
        fault::Fault,
        read::{
            accounts::limit_of,
            lists::{List, NEWEST},
            payments::{read, transfer_of},
        },
        readers::Readers,
        table::Table,
        tables::payments::WordRow,
        values::{Columns, Id, Kind, Values, column},
    },
    store::{page::Page, payments::PaymentQuery},
};

/// Entries of one word that are read; a word that has more is looked for in the records.
const MAX_POSTINGS: usize = 10_000;
/// Records that one page may read.
const MAX_RECORDS: usize = 1_100;
/// Records that are read at once.
const CHUNK: usize = 200;
/// Length up to which a list is read instead of searched.
const SHORT_LIST: usize = 500;

/// Lists by ids, words and amounts.
pub(crate) async fn searched(
    readers: &Readers,
    query: &PaymentQuery,
    list: &List,
    wanted: &[Wanted],
) -> Result<Page<Payment>, Fault> {
    let all: Vec<&Wanted> = wanted.iter().collect();
    let mut search = Search { readers, list, slice: Slice::of(query), shown: BTreeMap::new(), read: 0 };
    if !query.ids.is_empty() {
        let asked = query.ids.iter().map(|id| id.bits()).filter(|id| list.ids.contains(id)).collect();
        search.look_at(asked, &BTreeMap::from([(None, all)])).await?;
        return search.page().await;
    }
    let is_narrow = list.facets.len() < Facets::ALL.iter().count() || list.ids != ANY_ID;
    if is_narrow && list.newest(readers, 0, SHORT_LIST + 1).await?.len() <= SHORT_LIST {
        search.walk(&all).await?;
        return search.page().await;
    }
    // The records are searched for a word with too many entries.
    let (mut found, mut others): (Option<BTreeSet<u128>>, Vec<&Wanted>) = (None, Vec::new());
    for (at, wanted) in wanted.iter().enumerate() {
        let postings = if at < MAX_LOOKED_UP { search.postings(wanted).await? } else { None };
        match postings {
            Some(postings) => {
                found = Some(match found {
                    Some(found) => found.intersection(&postings).copied().collect(),
                    None => postings,
                });
            }
            None => others.push(wanted),
        }
    }
    let unread = search.unread().await?;
    match (found, unread) {
        (Some(mut found), Some(unread)) => {
            // Payments that are not indexed are compared with every word; those that the index found, with the words that were not looked up.
            let mut asked: BTreeMap<Option<u128>, Vec<&Wanted>> = BTreeMap::from([(None, others)]);
            asked.extend(unread.iter().map(|id| (Some(*id), all.clone())));
            found.extend(unread);
            search.look_at(found, &asked).await?;
        }
        _ => search.walk(&all).await?,
    }
    search.page().await
}

/// A page under construction.
struct Search<'s> {
    readers: &'s Readers,
    list: &'s List,
    slice: Slice,
    /// Payments that were read and may be on the page.
    shown: BTreeMap<u128, Payment>,
    /// How many records were read.
    read: usize,
}

impl<'w> Search<'_> {
    /// Returns the payments that a word or amount finds in the index; none where they are too many.
    async fn postings(&self, wanted: &Wanted) -> Result<Option<BTreeSet<u128>>, Fault> {
        let limit = limit_of(MAX_POSTINGS + 1);
        let sql = "SELECT payment_id FROM payment_words WHERE merchant_id = $1 AND word >= $2 AND word < $3 LIMIT $4";
        let (first, end) = (wanted.first(), wanted.end());
        let words = async { self.readers.query(sql, &[&self.list.merchant, &first, &end, &limit]).await };
        let ids = match wanted {
            Wanted::Word { ids: Some(ids), .. } => common(ids, &self.list.ids),
            _ => crate::embedded::read::listed::NO_ID,
        };
        let by_id = async {
            if ids.is_empty() {
                return Ok(Vec::new());
            }
            let (first, last) = (Id(*ids.start()), Id(*ids.end()));
            let parameters: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
                [&self.list.merchant, &self.list.facets, &first, &last, &limit];
            self.readers.query(&format!("{NEWEST} LIMIT $5"), &parameters).await
        };
        let (words, by_id) = futures_util::try_join!(words, by_id)?;
        if words.len() > MAX_POSTINGS || by_id.len() > MAX_POSTINGS {
            return Ok(None);
        }
        let mut found = BTreeSet::new();
        for row in words.iter().chain(&by_id) {
            let Id(id) = column(row, 0)?;
            found.extend(Some(id).filter(|id| self.list.ids.contains(id)));
        }
        Ok(Some(found))
    }

    /// Returns the payments of the list that are not indexed yet; none where they are too many to be read.
    async fn unread(&self) -> Result<Option<BTreeSet<u128>>, Fault> {
        let sql = "SELECT p.id FROM commits c CROSS JOIN LATERAL unnest(c.unindexed_payments) AS u (id) \
                   JOIN payments p ON p.id = u.id WHERE c.unindexed_payments IS NOT NULL \
                   AND p.merchant_id = $1 AND p.facet = ANY($2) LIMIT $3";
        let limit = limit_of(MAX_RECORDS + 1);
        let rows = self.readers.query(sql, &[&self.list.merchant, &self.list.facets, &limit]).await?;
        let ids = rows.iter().map(|row| column(row, 0).map(|Id(id)| id)).collect::<Result<BTreeSet<_>, Fault>>()?;
        let ids: BTreeSet<u128> = ids.into_iter().filter(|id| self.list.ids.contains(id)).collect();
        Ok(Some(ids).filter(|_| rows.len() <= MAX_RECORDS))
    }

    /// Reads payments, newest first, and offers those of the list that match the words in `asked`: its own, or else those of all others.
    async fn look_at(
        &mut self,
        ids: BTreeSet<u128>,
        asked: &BTreeMap<Option<u128>, Vec<&'w Wanted>>,
    ) -> Result<(), Fault> {
        let sql = "SELECT id, record FROM payments WHERE id = ANY($1) AND merchant_id = $2 AND facet = ANY($3) \
                   ORDER BY id DESC";
        let ids: Vec<Id> = ids.into_iter().rev().map(Id).collect();
        let others = asked.get(&None).map(Vec::as_slice).unwrap_or_default();
        for chunk in ids.chunks(CHUNK) {
            let rows = self.readers.query(sql, &[&chunk, &self.list.merchant, &self.list.facets]).await?;
            let mut payments = Vec::with_capacity(rows.len());
            for row in &rows {
                payments.extend(self.readers.pass(read(row, 0))?);
            }
            for payment in payments {
                let wanted = asked.get(&Some(payment.id.bits())).map_or(others, Vec::as_slice);
                if self.offer(payment, wanted).await? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Reads every payment of the list, newest first.
    async fn walk(&mut self, wanted: &[&'w Wanted]) -> Result<(), Fault> {
        let mut list = self.list.clone();
        loop {
            let payments = list.newest(self.readers, 0, CHUNK).await?;
            let Some(last) = payments.last().map(|payment| payment.id.bits()) else { return Ok(()) };
            for payment in payments {
                if self.offer(payment, wanted).await? {
                    return Ok(());
                }
            }
            match last.checked_sub(1).filter(|end| end >= list.ids.start()) {
                Some(end) => list = list.of_ids(*list.ids.start()..=end),
                None => return Ok(()),
            }
        }
    }

    /// Offers a payment; returns whether the page is complete.
    async fn offer(&mut self, payment: Payment, wanted: &[&Wanted]) -> Result<bool, Fault> {
        let id = payment.id.bits();
        // Payments that the index found are free.
        self.read += usize::from(!wanted.is_empty());
        if self.finds(&payment, wanted).await? {
            self.slice.offer(id);
            self.shown.insert(id, payment);
            let found: BTreeSet<u128> = self.slice.found.iter().copied().collect();
            self.shown.retain(|id, _| found.contains(id));
        }
        let is_over = self.slice.is_settled() || self.read >= MAX_RECORDS;
        if is_over {
            self.slice.stop(id);
        }
        Ok(is_over)
    }

    /// Returns whether a payment is found by everything that is wanted.
    async fn finds(&self, payment: &Payment, wanted: &[&Wanted]) -> Result<bool, Fault> {
        if wanted.is_empty() {
            return Ok(true);
        }
        let mut words = words_of(payment);
        words.extend(payment.transfers.iter().flat_map(transfer_words_of));
        words.extend(refund_words_of(payment));
        let mut missing: Vec<_> = wanted.iter().filter(|wanted| !wanted.finds(payment, &words)).collect();
        if missing.is_empty() || payment.unlisted.is_none() {
            return Ok(missing.is_empty());
        }
        let sql = "SELECT payment_id, tx_id, op_in_tx, record FROM transfers WHERE payment_id = $1 LIMIT $2";
        let rows = self.readers.query(sql, &[&Id(payment.id.bits()), &limit_of(MAX_POSTINGS)]).await?;
        for row in &rows {
            let Some(credit) = self.readers.pass(transfer_of(row))? else { continue };
            let words: BTreeSet<String> = transfer_words_of(&credit).into_iter().collect();
            missing.retain(|wanted| !wanted.finds(payment, &words));
        }
        Ok(missing.is_empty())
    }

    async fn page(self) -> Result<Page<Payment>, Fault> {
        let Self { slice: Slice { found, total, total_is_lower_bound, next, .. }, mut shown, .. } = self;
        let items = found.iter().filter_map(|id| shown.remove(id)).collect();
        Ok(Page { items, total, total_is_lower_bound, next })
    }
}

/// Writes the words of payments that are not indexed yet, of at most `max` payments or of one commit, and returns of how many. It
/// fails where one of the payments changed meanwhile, or another indexer was faster: nothing is indexed from a stale record.
pub(crate) async fn index(readers: &Readers, max: usize) -> Result<usize, Fault> {
    let sql = "SELECT c.id, p.id, p.record, p.version FROM (SELECT id, unindexed_payments FROM commits \
               WHERE unindexed_payments IS NOT NULL ORDER BY id LIMIT $1) AS c \
               CROSS JOIN LATERAL unnest(c.unindexed_payments) AS u (id) LEFT JOIN payments p ON p.id = u.id ORDER BY c.id";
    let connection = readers.connection().await?;
    let rows = connection.query(sql, &[&limit_of(max)]).await?;
    let mut commits = BTreeSet::new();
    let mut payments = Columns::of([Kind::Uuid, Kind::Integer]);
    let mut words = Columns::of(WordRow::KEY.iter().map(|(_, kind)| *kind));
    for row in &rows {
        let Id(commit) = column(row, 0)?;
        if payments.rows >= max && !commits.contains(&commit) {
            break;
        }
        commits.insert(commit);
        let Some(Id(id)) = column(row, 1)? else { continue };
        payments.push([id.into(), crate::postgres::values::Cell::Integer(Some(column(row, 3)?))]);
        // A damaged payment must not block the indexing of later ones.
        let Some(payment) = readers.pass(read(row, 1))? else { continue };
        let of = |word: String| WordRow::key_cells(&(payment.merchant.bits(), word, PaymentId::bits(payment.id)));
        indexed_words_of(&payment).for_each(|word| words.push(of(word)));
    }
    if commits.is_empty() {
        return Ok(0);
    }
    let commits: Vec<Id> = commits.into_iter().map(Id).collect();
    let (expected_payments, expected_commits) = (limit_of(payments.rows), limit_of(commits.len()));
    let lists = payments.lists.iter().chain(&words.lists).map(Values::parameter);
    let mut parameters: Vec<_> = lists.collect();
    let rest: [&(dyn tokio_postgres::types::ToSql + Sync); 3] = [&commits, &expected_payments, &expected_commits];
    parameters.extend(rest);
    connection.query(INDEX, &parameters).await?;
    Ok(payments.rows)
}

/// Locks the payments as they were read. A commit that removes words writes the rows of their commits, too.
const INDEX: &str = "WITH same AS (SELECT p.id FROM payments p JOIN unnest($1::uuid[], $2::bigint[]) AS u (id, version) \
     ON p.id = u.id AND p.version = u.version FOR UPDATE OF p), \
     words AS (INSERT INTO payment_words (merchant_id, word, payment_id) \
     SELECT * FROM unnest($3::uuid[], $4::text[], $5::uuid[]) ON CONFLICT DO NOTHING), \
     done AS (UPDATE commits SET unindexed_payments = NULL WHERE id = ANY($6::uuid[]) \
     AND unindexed_payments IS NOT NULL RETURNING 1) \
     SELECT 1 / ((SELECT count(*) FROM same) = $7::bigint AND (SELECT count(*) FROM done) = $8::bigint)::integer";
