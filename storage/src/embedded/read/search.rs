//! Search for payments: the words of a payment, the index of words, and queries.
//!
//! A query matches a payment if each of its words is the beginning of a word of the description, a metadata value, a
//! payer's name or a transaction id, or the beginning of the payment's id. Ids need no index: a prefix of an id is a
//! range of the payments table. Words are indexed after their payment was committed; payments that are not indexed yet
//! are read. Words of transfers and refunds are indexed by the commit that adds them, because the indexer may have
//! passed their payment.
//! yet is searched by reading it. What money adds is indexed by the commit that adds it: the indexer may have passed.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    ops::{Bound, RangeInclusive},
};

use engine::{
    ids::{self, PaymentId},
    ledger::TxId,
    mutant,
    payment::{Credit, Payment},
    time::Timestamp,
};

use crate::{
    embedded::{
        fault::Fault,
        read::{
            budget::Budget,
            listed::{self, Facets, Ids, common},
            postings::{List, Merged, Postings, WordRows},
        },
        tables::meta,
        wal::{single, snapshot::Snapshot},
    },
    record,
};

/// Maximum length of an indexed word, bytes. Longer words are truncated.
const WORD_MAX_BYTES: usize = 32;
/// Maximum number of different indexed words of a payment.
const WORDS_MAX: usize = 100;
/// Age at which the indexer reads a payment: payments with earlier ids may still be committed until then.
const INDEX_LAG: std::time::Duration = std::time::Duration::from_secs(10);
/// Maximum number of words that are merged. With more words, their rows are sorted.
pub(crate) const MERGED_MAX: usize = 64;
/// Maximum number of rows that are sorted.
pub(crate) const SORTED_MAX: usize = 2_000;

/// Returns the search words of a payment at its creation, without its id.
pub(crate) fn words_of(payment: &Payment) -> BTreeSet<String> {
    let texts = payment.metadata.values().flat_map(|value| value.texts());
    let mut words = BTreeSet::new();
    for text in std::iter::once(payment.description.as_str()).chain(texts) {
        for word in words_in(text) {
            if words.len() == WORDS_MAX {
                return words;
            }
            words.insert(word);
        }
    }
    words
}

/// Returns the search words of a transfer: the payer and the transaction id.
pub(crate) fn transfer_words_of(credit: &Credit) -> Vec<String> {
    let mut words = if mutant!("payers-not-searched") { Vec::new() } else { words_in(credit.from.as_str()) };
    words.push(word_of(credit.tx_id));
    words
}

/// Returns the search words of refunds: the transaction ids.
pub(crate) fn refund_words_of(payment: &Payment) -> Vec<String> {
    payment.refunds.iter().map(|refund| word_of(refund.tx_id)).collect()
}

/// Returns the search word of a transaction id.
fn word_of(tx_id: TxId) -> String {
    let mut word = tx_id.to_string();
    word.truncate(WORD_MAX_BYTES);
    word
}

/// Returns the words of a text: letters and digits in lower case, truncated to [`WORD_MAX_BYTES`].
fn words_in(text: &str) -> Vec<String> {
    let text = match text.is_ascii() {
        true => Cow::Borrowed(text),
        false => Cow::Owned(text.chars().flat_map(char::to_lowercase).collect()),
    };
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| word[..word.floor_char_boundary(WORD_MAX_BYTES)].to_ascii_lowercase())
        .collect()
}

/// A search condition: the beginning of a word, or an amount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The beginning of a word.
    Word {
        /// The text, in lower case.
        text: String,
        /// The range of ids that start with the text.
        ids: Option<RangeInclusive<u128>>,
    },
    /// A range of requested amounts, smallest units.
    Amount(RangeInclusive<u64>),
}

impl Wanted {
    /// Parses a query into conditions that must all match; `None` if it is blank. A query of punctuation only has no
    /// conditions and matches nothing.
    pub(crate) fn parse(query: &str) -> Option<Vec<Self>> {
        if query.trim().is_empty() {
            return None;
        }
        let words: BTreeSet<String> = query.split_whitespace().flat_map(|term| words_in(bare_id(term))).collect();
        let mut words: Vec<_> = words.into_iter().map(|text| Self::Word { ids: id_range(&text), text }).collect();
        // Longer words have fewer matches.
        words.sort_by_key(|word| std::cmp::Reverse(word.text().len()));
        Some(words)
    }

    fn text(&self) -> &str {
        match self {
            Self::Word { text, .. } => text,
            Self::Amount(_) => "",
        }
    }

    /// Returns the smallest word in the index that may match.
    pub(crate) fn first(&self) -> String {
        match self {
            Self::Word { text, .. } => text.clone(),
            Self::Amount(units) => amount_word(*units.start()),
        }
    }

    /// Returns whether a word of the index, at or after the first, matches.
    fn is_word(&self, word: &str) -> bool {
        match self {
            Self::Word { text, .. } => word.starts_with(text),
            Self::Amount(units) => *word <= *amount_word(*units.end()),
        }
    }

    /// Returns the word that sorts after all of its words in the index.
    pub(crate) fn end(&self) -> String {
        match self {
            Self::Word { text, .. } => format!("{text}{}", char::MAX),
            Self::Amount(units) => format!("{}{}", amount_word(*units.end()), char::MAX),
        }
    }

    /// Returns whether a payment's record matches.
    pub(crate) fn finds(&self, payment: &Payment, words: &BTreeSet<String>) -> bool {
        match self {
            Self::Word { text, ids } => {
                let is_its_id = ids.as_ref().is_some_and(|ids| ids.contains(&payment.id.bits()));
                is_its_id
                    || words
                        .range::<str, _>((Bound::Included(&**text), Bound::Unbounded))
                        .next()
                        .is_some_and(|word| word.starts_with(text))
            }
            Self::Amount(units) => units.contains(&payment.amount.units),
        }
    }
}

/// Returns the index word of an amount. No text has such a word, and words order like amounts.
fn amount_word(units: u64) -> String {
    format!("\u{1}{units:016x}")
}

/// Returns the words of a payment that the indexer writes.
pub(crate) fn indexed_words_of(payment: &Payment) -> impl Iterator<Item = String> {
    words_of(payment).into_iter().chain(std::iter::once(amount_word(payment.amount.units)))
}

/// Returns whether a payment matches all conditions. Transfers that its record does not list are read within `budget`.
pub(crate) fn finds(snapshot: &Snapshot, wanted: &[&Wanted], id: u128, budget: &mut Budget) -> Result<bool, Fault> {
    let (payments, key) = (snapshot.payments(), PaymentId::from_bits(id));
    let read = || {
        let bytes = payments.get(id)?;
        let bytes = bytes.ok_or_else(|| Fault::inconsistent("payments", key, "it is listed but missing"))?;
        record::payment_from_bytes(key, bytes.value()).map_err(Fault::damaged("payments", key))
    };
    // A damaged payment does not match.
    let Some(payment) = payments.skip_damaged(read())? else { return Ok(false) };
    let mut words = words_of(&payment);
    words.extend(payment.transfers.iter().flat_map(transfer_words_of));
    words.extend(refund_words_of(&payment));
    let mut missing: Vec<_> = wanted.iter().filter(|wanted| !wanted.finds(&payment, &words)).collect();
    if missing.is_empty() || payment.unlisted.is_none() {
        return Ok(missing.is_empty());
    }
    let rows = snapshot.transfers();
    for entry in rows.range((id, &[0; 20], 0)..=(id, &[u8::MAX; 20], u32::MAX))? {
        let (key, bytes) = entry?;
        let name = || format!("{} of {}", TxId(*key.value().1), PaymentId::from_bits(id));
        let read = record::transfer_from_bytes(key.value(), bytes.value());
        let Some(credit) = rows.skip_damaged(read.map_err(|why| Fault::inconsistent("transfers", name(), why)))? else {
            continue;
        };
        let words: BTreeSet<String> = transfer_words_of(&credit).into_iter().collect();
        missing.retain(|wanted| !wanted.finds(&payment, &words));
        budget.spend(1);
        if missing.is_empty() || budget.is_spent() {
            break;
        }
    }
    Ok(missing.is_empty())
}

/// Returns a term without the prefix `pay_` or `pos-pay_` of an id.
fn bare_id(term: &str) -> &str {
    let prefix = |prefix: &str| {
        let head = term.get(..prefix.len())?;
        let rest = &term[prefix.len()..];
        (head.eq_ignore_ascii_case(prefix) && !rest.is_empty()).then_some(rest)
    };
    prefix("pos-pay_").or_else(|| prefix("pay_")).unwrap_or(term)
}

/// Returns the range of ids whose text starts with `word`.
fn id_range(word: &str) -> Option<RangeInclusive<u128>> {
    if word.len() > ids::ENCODED_LEN {
        return None;
    }
    let bound = |digit: char| {
        let padding = std::iter::repeat_n(digit, ids::ENCODED_LEN - word.len());
        ids::decode(&word.chars().chain(padding).collect::<String>())
    };
    Some(bound('0')?..=bound('z')?)
}

/// Returns the indexed payments that match a condition; `None` if it has too many words to merge and too many rows to
/// sort.
pub(crate) fn find<'s>(
    snapshot: &'s Snapshot,
    merchant: u128,
    wanted: &Wanted,
    among: &Ids,
) -> Result<Option<Postings<'s>>, Fault> {
    if among.is_empty() {
        return Ok(Some(Postings::Few(Vec::new())));
    }
    let index = snapshot.search();
    let ids = match wanted {
        Wanted::Word { ids: Some(ids), .. } => Some(common(ids, among)),
        _ => None,
    };
    let (mut merged, mut next) = (Merged::default(), wanted.first());
    loop {
        let start = (Bound::Excluded((merchant, &*next, u128::MAX)), Bound::Unbounded);
        let found = match merged.len() {
            0 => index.range::<(u128, &str, u128)>((merchant, &*next, 0)..)?.next(),
            _ => index.range::<(u128, &str, u128)>(start)?.next(),
        };
        let Some(row) = found.transpose()? else { break };
        let (owner, word, _) = row.0.value();
        if owner != merchant || !wanted.is_word(word) {
            break;
        }
        if merged.len() == MERGED_MAX {
            return sorted(snapshot, merchant, wanted, among, ids);
        }
        word.clone_into(&mut next);
        let rows = WordRows::of(snapshot, merchant, next.clone(), (*among.start(), *among.end()))?;
        merged.add(List::Word(Box::new(rows)))?;
    }
    if let Some(ids) = ids {
        merged.add(List::Ids(listed::newest_first(snapshot, merchant, Facets::ALL, ids)?))?;
    }
    Ok(Some(Postings::Merged(merged)))
}

fn sorted<'s>(
    snapshot: &'s Snapshot,
    merchant: u128,
    wanted: &Wanted,
    among: &Ids,
    ids: Option<Ids>,
) -> Result<Option<Postings<'s>>, Fault> {
    let mut found = BTreeSet::new();
    let first = wanted.first();
    for (count, row) in snapshot.search().range((merchant, &*first, 0)..)?.enumerate() {
        let key = row?.0;
        let (owner, word, id) = key.value();
        if owner != merchant || !wanted.is_word(word) {
            break;
        }
        if count == SORTED_MAX {
            return Ok(None);
        }
        found.extend(Some(id).filter(|id| among.contains(id)));
    }
    if let Some(ids) = ids {
        for (count, listed) in listed::newest_first(snapshot, merchant, Facets::ALL, ids)?.enumerate() {
            if count == SORTED_MAX {
                return Ok(None);
            }
            found.insert(listed?.0);
        }
    }
    Ok(Some(Postings::Few(found.into_iter().collect())))
}

/// Returns the last indexed payment.
pub(crate) fn cursor(snapshot: &Snapshot) -> Result<u128, Fault> {
    match single::read(&snapshot.meta(), meta::SEARCH_CURSOR) {
        // Start from the beginning: indexing words again has no effect.
        Ok(None) | Err(Fault::Damaged { .. }) => Ok(0),
        Ok(Some(bytes)) => bytes.as_slice().try_into().map(u128::from_be_bytes).map_err(|_| {
            Fault::inconsistent("meta", meta::SEARCH_CURSOR, format_args!("it has {} bytes", bytes.len()))
        }),
        Err(fault) => Err(fault),
    }
}

/// The search words of a range of payments, ready to be indexed.
#[derive(Debug)]
pub(crate) struct Indexed {
    /// The search cursor before.
    pub(crate) after: u128,
    /// The last payment.
    pub(crate) up_to: u128,
    /// The number of payments.
    pub(crate) payments: u64,
    /// Merchant, word, payment; sorted, which is the fastest order for inserts into a B-tree.
    pub(crate) entries: Vec<(u128, String, u128)>,
}

/// Collects the words of at most `max` payments after the search cursor, oldest first; `None` if there are no payments.
pub(crate) fn gather(snapshot: &Snapshot, now: Timestamp, max: usize) -> Result<Option<Indexed>, Fault> {
    let after = cursor(snapshot)?;
    // The largest id of that time: all random bits set.
    let settled = (u128::from(now.minus(INDEX_LAG).millis()) << 80) | (u128::MAX >> 48);
    if settled <= after {
        return Ok(None);
    }
    let mut indexed = Indexed { after, up_to: after, payments: 0, entries: Vec::new() };
    let range = (Bound::Excluded(after), Bound::Included(settled));
    for entry in snapshot.payments().range::<u128>(range)?.take(max) {
        let (key, bytes) = entry?;
        let id = PaymentId::from_bits(key.value());
        match record::payment_from_bytes(id, bytes.value()) {
            Ok(payment) => {
                let merchant = payment.merchant.bits();
                indexed.entries.extend(indexed_words_of(&payment).map(|word| (merchant, word, id.bits())));
            }
            // A damaged payment must not stop the indexing of later ones.
            Err(damage) => tracing::error!(payment.id = %id, %damage, "payment {id} is damaged: not indexed"),
        }
        indexed.up_to = id.bits();
        indexed.payments += 1;
    }
    if indexed.payments == 0 {
        return Ok(None);
    }
    indexed.entries.sort_unstable();
    Ok(Some(indexed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_letters_and_digits_in_lower_case() {
        let words = |text: &str| words_in(text);
        assert_eq!(words("Blue mug, 2× — «LARGE»!"), ["blue", "mug", "2", "large"]);
        assert_eq!(words("ÉTÉ_2026 東京"), ["été", "2026", "東京"]);
        assert_eq!(words(&"é".repeat(40)), ["é".repeat(16)]);
        assert_eq!(words(" .,- "), [""; 0]);
    }

    #[test]
    fn a_prefix_of_an_id_is_a_range_of_ids() {
        let id = PaymentId::from_bits(u128::MAX / 5);
        let text = id.to_string();
        for length in 1..=26 {
            let range = id_range(&text[4..4 + length]).unwrap();
            assert!(range.contains(&id.bits()), "{length}");
        }
        assert_eq!(id_range(&text[4..]), Some(id.bits()..=id.bits()));
        assert_eq!((id_range("8"), id_range("u1"), id_range(&"0".repeat(27))), (None, None, None));
    }

    #[test]
    fn an_id_may_carry_its_prefixes() {
        let id = PaymentId::from_bits(7).to_string();
        let bare = Wanted::parse(&id[4..]);
        assert_eq!(Wanted::parse(&id), bare);
        assert_eq!(Wanted::parse(&format!(" POS-{} ", id.to_uppercase())), bare);
        assert_eq!(Wanted::parse(" \t"), None);
        assert_eq!(Wanted::parse("?!"), Some(Vec::new()));
        assert_eq!(Wanted::parse("pay_").unwrap()[0].text(), "pay");
    }
}
