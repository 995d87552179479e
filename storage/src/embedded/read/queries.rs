//! Lists: pages of merchants, newest first, and the indexes that single questions read.

use std::ops::Bound;

use engine::{
    account::AccountName,
    audit::Entry,
    ids::{MerchantId, PaymentId},
    time::Timestamp,
};

use crate::{
    embedded::{fault::Fault, wal::snapshot::Snapshot},
    record::{self, vault::Vault},
    store::query::{AuditQuery, ListedMerchant, MerchantQuery, Page, PageAt},
};

/// A page being cut out of a list that is offered newest first.
struct Slice {
    at: PageAt,
    limit: usize,
    known_total: Option<u64>,
    ids: Vec<u128>,
    seen: u64,
}

impl Slice {
    fn of(at: PageAt, limit: usize, known_total: Option<u64>) -> Self {
        Self { at, limit, known_total, ids: Vec::new(), seen: 0 }
    }

    /// Counts an item; says whether it is on the page.
    fn offer(&mut self, id: u128) -> bool {
        let starts = match self.at {
            PageAt::Number(number) => self.seen >= number.saturating_sub(1).saturating_mul(self.limit as u64),
            PageAt::After(last) | PageAt::Following(last) => id < last,
        };
        self.seen += 1;
        let is_on_page = starts && self.ids.len() < self.limit;
        if is_on_page {
            self.ids.push(id);
        }
        is_on_page
    }

    /// Says whether nothing that follows can change the page or its total.
    fn is_settled(&self) -> bool {
        let is_full = self.ids.len() >= self.limit;
        let is_uncounted = matches!(self.at, PageAt::Following(_));
        (is_uncounted && is_full) || self.known_total.is_some_and(|total| self.seen >= total || is_full)
    }
}

/// Lists merchants. There are few of them: words are looked for by reading them all.
pub(crate) fn merchants(
    snapshot: &Snapshot,
    query: &MerchantQuery,
    vault: &Vault,
) -> Result<Page<ListedMerchant>, Fault> {
    let list = snapshot.merchants();
    let on_hold = snapshot.on_hold();
    let text = query.query.as_deref().map(|text| text.trim().to_lowercase()).filter(|text| !text.is_empty());
    let is_unfiltered = text.is_none() && query.active.is_none() && query.on_hold.is_none();
    let is_counted = is_unfiltered && !matches!(query.at, PageAt::Following(_));
    let known_total = if is_counted { Some(list.len()?) } else { None };
    let end = match query.at {
        PageAt::After(id) if known_total.is_some() => Bound::Excluded(id),
        PageAt::Following(id) => Bound::Excluded(id),
        _ => Bound::Unbounded,
    };
    let mut page = Slice::of(query.at, query.limit, known_total);
    let mut items = Vec::new();
    for entry in list.range::<u128>((Bound::Unbounded, end))?.rev() {
        if page.is_settled() {
            break;
        }
        let (key, bytes) = entry?;
        let id = MerchantId::from_bits(key.value());
        let is_on_hold = on_hold.has(id.bits())?;
        if query.on_hold.is_some_and(|wanted| is_on_hold != wanted) {
            continue;
        }
        let read = record::merchant_from_bytes(id, bytes.value(), vault).map_err(Fault::damaged("merchants", id));
        let Some(merchant) = list.pass(read)? else { continue };
        let is_found = text.as_ref().is_none_or(|text| {
            id.to_string().contains(text)
                || merchant.name.to_lowercase().contains(text)
                || merchant.hive_account.as_str().contains(text)
        });
        if is_found && query.active.is_none_or(|active| merchant.is_active == active) && page.offer(id.bits()) {
            items.push(ListedMerchant { merchant, is_on_hold });
        }
    }
    let next = items.last().filter(|_| items.len() >= query.limit).map(|listed| listed.merchant.id.bits());
    Ok(Page { next, ..Page::of(items, known_total.unwrap_or(page.seen)) })
}

/// A line of the audit log as it is stored, and whom it concerns.
#[derive(Debug)]
pub(crate) struct Audited {
    pub(crate) record: Vec<u8>,
    merchant: u128,
    actor: Option<u128>,
}

impl Audited {
    /// Encodes a line.
    pub(crate) fn of(entry: Entry) -> Self {
        let (merchant, actor) = (entry.merchant.bits(), entry.actor.merchant.map(MerchantId::bits));
        Self { record: record::audit_to_bytes(entry), merchant, actor }
    }

    /// Returns the merchants it concerns, each once.
    pub(crate) fn merchants(&self) -> impl Iterator<Item = u128> {
        std::iter::once(self.merchant).chain(self.actor.filter(|actor| *actor != self.merchant))
    }
}

/// Returns entries of the audit log, newest first.
pub(crate) fn audit(snapshot: &Snapshot, query: &AuditQuery) -> Result<Vec<Entry>, Fault> {
    let log = snapshot.audit();
    let last = match query.before {
        Some(0) => return Ok(Vec::new()),
        before => before.map_or(u64::MAX, |before| before - 1),
    };
    let read =
        |seq: u64, bytes: &[u8]| log.pass(record::audit_from_bytes(seq, bytes).map_err(Fault::damaged("audit", seq)));
    let mut found = Vec::new();
    if let Some(merchant) = query.merchant.map(MerchantId::bits) {
        for row in snapshot.audit_by_merchant().range((merchant, 0)..=(merchant, last))?.rev() {
            if found.len() >= query.limit {
                break;
            }
            let (_, seq) = row?.0.value();
            let Some(bytes) = log.get_sound(seq)? else { continue };
            found.extend(read(seq, bytes.value())?);
        }
        return Ok(found);
    }
    for row in log.range::<u64>(..=last)?.rev() {
        if found.len() >= query.limit {
            break;
        }
        let (seq, bytes) = row?;
        found.extend(read(seq.value(), bytes.value())?);
    }
    Ok(found)
}

/// Returns watched accounts after `after` in order of name.
pub(crate) fn accounts(
    snapshot: &Snapshot,
    after: Option<&AccountName>,
    limit: usize,
) -> Result<Vec<AccountName>, Fault> {
    let start = after.map_or(Bound::Unbounded, |after| Bound::Excluded(after.as_str()));
    let mut found = Vec::new();
    // One too many does no harm, one too few loses money: a damaged row is watched, too.
    for key in snapshot.accounts().range::<&str>((start, Bound::Unbounded))?.all_keys() {
        if found.len() == limit {
            break;
        }
        found.extend(AccountName::parse(key?.value()).ok());
    }
    Ok(found)
}

/// Returns pending payments whose deadline is before `before`, earliest first.
pub(crate) fn due(
    snapshot: &Snapshot,
    before: Timestamp,
    after: Option<(Timestamp, PaymentId)>,
    limit: usize,
) -> Result<Vec<(Timestamp, PaymentId)>, Fault> {
    let end = (before.millis(), 0);
    let start = match after.map(|(deadline, id)| (deadline.millis(), id.bits())) {
        Some(after) if after >= end => return Ok(Vec::new()),
        Some(after) => Bound::Excluded(after),
        None => Bound::Unbounded,
    };
    snapshot
        .deadlines()
        .range::<(u64, u128)>((start, Bound::Excluded(end)))?
        .take(limit)
        .map(|entry| {
            let (deadline_ms, id) = entry?.0.value();
            Ok((Timestamp::from_millis(deadline_ms), PaymentId::from_bits(id)))
        })
        .collect()
}
