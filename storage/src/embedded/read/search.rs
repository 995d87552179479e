//! Search over payments: which words a payment has, the index over them, and what a query finds.
//!
//! A payment is found by a query if each word of the query starts a word of its description, of a metadata value, of a
//! payer's name or of a transaction's id, or its own id. Ids need no index: the digits of an id are a number's, so their
//! beginning is a range of the payment table. Words are indexed later than their payment; what the indexer has not read
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

/// Bytes of a word that count.
const WORD_MAX_BYTES: usize = 32;
/// Different words of a payment that count.
const WORDS_MAX: usize = 100;
/// Payments the indexer leaves alone at first: one of the same moment may still be on its way to the disk.
const INDEX_LAG: std::time::Duration = std::time::Duration::from_secs(10);
/// Words of the index that are merged; of more, their rows are sorted.
pub(crate) const MERGED_MAX: usize = 64;
/// Rows of the index that are sorted.
pub(crate) const SORTED_MAX: usize = 2_000;

/// Returns the words a payment is found by from its creation on, apart from its id.
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

/// Returns the words that a transfer adds to its payment: who paid, and the transaction's id.
pub(crate) fn transfer_words_of(credit: &Credit) -> Vec<String> {
    let mut words = if mutant!("payers-not-searched") { Vec::new() } else { words_in(credit.from.as_str()) };
    words.push(word_of(credit.tx_id));
    words
}

/// Returns the words that refunds add: the transactions' ids.
pub(crate) fn refund_words_of(payment: &Payment) -> Vec<String> {
    payment.refunds.iter().map(|refund| word_of(refund.tx_id)).collect()
}

/// Returns the word that a transaction's id is.
fn word_of(tx_id: TxId) -> String {
    let mut word = tx_id.to_string();
    word.truncate(WORD_MAX_BYTES);
    word
}

/// Returns the words of a text: letters and digits in lower case, cut to [`WORD_MAX_BYTES`].
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

/// What a payment is found by: the beginning of a word, or an amount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A word starts with it.
    Word {
        /// In lower case.
        text: String,
        /// The ids whose digits start with it.
        ids: Option<RangeInclusive<u128>>,
    },
    /// So many smallest units are asked for.
    Amount(RangeInclusive<u64>),
}

impl Wanted {
    /// Reads the words of a query, each of which must be found; none if it is blank. A query of nothing but punctuation has no
    /// words and finds nothing.
    pub(crate) fn parse(query: &str) -> Option<Vec<Self>> {
        if query.trim().is_empty() {
            return None;
        }
        let words: BTreeSet<String> = query.split_whitespace().flat_map(|term| words_in(bare_id(term))).collect();
        let mut words: Vec<_> = words.into_iter().map(|text| Self::Word { ids: id_range(&text), text }).collect();
        // Longer words are found less often.
        words.sort_by_key(|word| std::cmp::Reverse(word.text().len()));
        Some(words)
    }

    fn text(&self) -> &str {
        match self {
            Self::Word { text, .. } => text,
            Self::Amount(_) => "",
        }
    }

    /// Returns the first of its words in the index that may stand there.
    pub(crate) fn first(&self) -> String {
        match self {
            Self::Word { text, .. } => text.clone(),
            Self::Amount(units) => amount_word(*units.start()),
        }
    }

    /// Says whether a word of the index at or after the first is one of its words.
    fn is_word(&self, word: &str) -> bool {
        match self {
            Self::Word { text, .. } => word.starts_with(text),
            Self::Amount(units) => *word <= *amount_word(*units.end()),
        }
    }

    /// Returns the word that stands after all of its words in the index.
    pub(crate) fn end(&self) -> String {
        match self {
            Self::Word { text, .. } => format!("{text}{}", char::MAX),
            Self::Amount(units) => format!("{}{}", amount_word(*units.end()), char::MAX),
        }
    }

    /// Says whether a payment is found by it, as far as its record tells.
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

/// Returns the word in the index that an amount is: no text has it, and it orders as the amount does.
fn amount_word(units: u64) -> String {
    format!("\u{1}{units:016x}")
}

/// Returns what the indexer writes of a payment.
pub(crate) fn indexed_words_of(payment: &Payment) -> impl Iterator<Item = String> {
    words_of(payment).into_iter().chain(std::iter::once(amount_word(payment.amount.units)))
}

/// Says whether a payment is found by everything that is wanted. Transfers that its record does not list are read, as many as
/// `budget` has; what remains of it is left there.
pub(crate) fn finds(snapshot: &Snapshot, wanted: &[&Wanted], id: u128, budget: &mut Budget) -> Result<bool, Fault> {
    let (payments, key) = (snapshot.payments(), PaymentId::from_bits(id));
    let read = || {
        let bytes = payments.get(id)?;
        let bytes = bytes.ok_or_else(|| Fault::inconsistent("payments", key, "it is listed and not there"))?;
        record::payment_from_bytes(key, bytes.value()).map_err(Fault::damaged("payments", key))
    };
    // What cannot be read is not found.
    let Some(payment) = payments.pass(read())? else { return Ok(false) };
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
        let Some(credit) = rows.pass(read.map_err(|why| Fault::inconsistent("transfers", name(), why)))? else {
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

/// Returns a term without the `pay_` or `pos-pay_` before an id.
fn bare_id(term: &str) -> &str {
    let prefix = |prefix: &str| {
        let head = term.get(..prefix.len())?;
        let rest = &term[prefix.len()..];
        (head.eq_ignore_ascii_case(prefix) && !rest.is_empty()).then_some(rest)
    };
    prefix("pos-pay_").or_else(|| prefix("pay_")).unwrap_or(term)
}

/// Returns the ids whose digits start with `word`.
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

/// Returns the indexed payments that are found by one thing; none where its words are too many to be merged, and their rows
/// too many to be sorted.
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
        merged.add(List::Ids(listed::newest(snapshot, merchant, Facets::ALL, ids)?))?;
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
        for (count, listed) in listed::newest(snapshot, merchant, Facets::ALL, ids)?.enumerate() {
            if count == SORTED_MAX {
                return Ok(None);
            }
            found.insert(listed?.0);
        }
    }
    Ok(Some(Postings::Few(found.into_iter().collect())))
}

/// Returns the last payment the indexer has read.
pub(crate) fn cursor(snapshot: &Snapshot) -> Result<u128, Fault> {
    match single::read(&snapshot.meta(), meta::SEARCH_CURSOR) {
        // From the beginning: the words that are indexed already are indexed again.
        Ok(None) | Err(Fault::Damaged { .. }) => Ok(0),
        Ok(Some(bytes)) => bytes.as_slice().try_into().map(u128::from_be_bytes).map_err(|_| {
            Fault::inconsistent("meta", meta::SEARCH_CURSOR, format_args!("it has {} bytes", bytes.len()))
        }),
        Err(fault) => Err(fault),
    }
}

/// The words of some payments, next in line to be indexed.
#[derive(Debug)]
pub(crate) struct Indexed {
    /// The search cursor they were read after.
    pub(crate) after: u128,
    /// The last of them.
    pub(crate) up_to: u128,
    /// How many they are.
    pub(crate) payments: u64,
    /// Merchant, word, payment; sorted, which is how a B-tree takes them fastest.
    pub(crate) entries: Vec<(u128, String, u128)>,
}

/// Gathers the words of at most `max` payments after the cursor, oldest first; none if there is nothing to do.
pub(crate) fn gather(snapshot: &Snapshot, now: Timestamp, max: usize) -> Result<Option<Indexed>, Fault> {
    let after = cursor(snapshot)?;
    // The last id that can have been made so long ago: all of its random bits set.
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
            // One that cannot be read must not keep all later ones from being found.
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
    fn the_beginning_of_an_id_is_a_range_of_ids() {
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
