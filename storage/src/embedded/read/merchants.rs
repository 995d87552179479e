//! Reads of merchants: one by id, and lists.

use std::{ops::Bound, sync::Arc};

use engine::{ids::MerchantId, merchant::Merchant};

use crate::{
    embedded::{fault::Fault, wal::snapshot::Snapshot},
    record::{self, vault::Vault},
    store::{
        merchants::{ListedMerchant, MerchantQuery},
        page::{Page, PageAt},
    },
};

/// Returns a merchant.
pub(crate) fn merchant(snapshot: &Snapshot, id: MerchantId, vault: &Vault) -> Result<Option<Arc<Merchant>>, Fault> {
    match snapshot.merchants().get(id.bits())? {
        Some(bytes) => {
            record::merchant_from_bytes(id, bytes.value(), vault).map(Some).map_err(Fault::damaged("merchants", id))
        }
        None => Ok(None),
    }
}

/// A page under construction, to which items are offered newest first.
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

    /// Counts an item; returns whether it is on the page.
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

    /// Returns whether later items cannot change the page or its total.
    fn is_settled(&self) -> bool {
        let is_full = self.ids.len() >= self.limit;
        let is_uncounted = matches!(self.at, PageAt::Following(_));
        (is_uncounted && is_full) || self.known_total.is_some_and(|total| self.seen >= total || is_full)
    }
}

/// Lists merchants. A text query reads all merchants, because there are few.
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
        let Some(merchant) = list.skip_damaged(read)? else { continue };
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
