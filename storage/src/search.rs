//! Search over payments: which words a payment has, the index over them, and what a query finds.
//!
//! A payment is found by a query if each word of the query starts a word of its description, of a metadata value, of a
//! payer's name or of a transaction's id, or its own id. Ids need no index: the digits of an id are a number's, so their
//! beginning is a range of the payment table. Words are indexed later than their payment; what the indexer has not read
//! yet is searched by reading it. What money adds is indexed by the commit that adds it: the indexer may have passed.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    ops::{Bound, RangeInclusive},
};

use engine::{
    ids::{self, PaymentId},
    ledger::TxId,
    payment::{Credit, Payment},
    time::Timestamp,
};

use crate::{
    fault::Fault,
    listed::{self, Facets},
    record, single,
    snapshot::Snapshot,
    tables::meta,
};

/// Bytes of a word that count.
const WORD_MAX_BYTES: usize = 32;
/// Different words of a payment that count.
const WORDS_MAX: usize = 100;
/// Payments the indexer leaves alone at first: one of the same moment may still be on its way to the disk.
const INDEX_LAG: std::time::Duration = std::time::Duration::from_secs(10);
/// Up to so many candidates it is cheaper to read them than to walk the index for the query's next word.
const FEW: usize = 256;

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
    let mut words = words_in(credit.from.as_str());
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

/// What a query asks for: every word must be found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wanted(Vec<WantedWord>);

#[derive(Debug, PartialEq, Eq)]
struct WantedWord {
    text: String,
    /// The ids whose digits start with it.
    ids: Option<RangeInclusive<u128>>,
}

impl Wanted {
    /// Reads a query; none if it is blank. A query of nothing but punctuation finds nothing.
    pub(crate) fn parse(query: &str) -> Option<Self> {
        if query.trim().is_empty() {
            return None;
        }
        let words: BTreeSet<String> = query.split_whitespace().flat_map(|term| words_in(bare_id(term))).collect();
        let mut words: Vec<_> = words.into_iter().map(|text| WantedWord { ids: id_range(&text), text }).collect();
        // Longer words are found less often.
        words.sort_by_key(|word| std::cmp::Reverse(word.text.len()));
        Some(Self(words))
    }

    /// Returns the places of the words by which a payment is not found as far as its record tells; none for a query of
    /// nothing but punctuation, which finds nothing.
    fn missing(&self, payment: &Payment) -> Option<Vec<usize>> {
        let mut words = words_of(payment);
        words.extend(payment.transfers.iter().flat_map(transfer_words_of));
        words.extend(refund_words_of(payment));
        let is_missing = |wanted: &WantedWord| {
            let is_its_id = wanted.ids.as_ref().is_some_and(|ids| ids.contains(&payment.id.bits()));
            !is_its_id && !words.iter().any(|word| word.starts_with(&wanted.text))
        };
        let missing = self.0.iter().enumerate().filter(|(_, wanted)| is_missing(wanted)).map(|(at, _)| at);
        (!self.0.is_empty()).then(|| missing.collect())
    }
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

/// Returns a merchant's payments that a query finds.
pub(crate) fn find(snapshot: &Snapshot, merchant: u128, wanted: &Wanted) -> Result<BTreeSet<u128>, Fault> {
    let Some((first, others)) = wanted.0.split_first() else { return Ok(BTreeSet::new()) };
    let cursor = cursor(snapshot)?;
    let mut found = with_word(snapshot, merchant, first)?;
    for word in others {
        if found.len() <= FEW {
            break;
        }
        let also = with_word(snapshot, merchant, word)?;
        found.retain(|id| also.contains(id));
    }
    let payments = snapshot.payments();
    let payment = |key: PaymentId| {
        let bytes = payments.get(key.bits())?;
        let bytes = bytes.ok_or_else(|| Fault::contradicted("payments", key, "it is listed and not there"))?;
        record::payment_from_bytes(key, bytes.value()).map_err(Fault::damaged("payments", key))
    };
    // What is found by a word, for the payments whose record does not list all of its transfers.
    let mut indexed: BTreeMap<usize, BTreeSet<u128>> = BTreeMap::new();
    let mut reads = |id: u128| {
        // What cannot be read is not found.
        let Some(payment) = payments.pass(payment(PaymentId::from_bits(id)))? else { return Ok::<_, Fault>(false) };
        let Some(missing) = wanted.missing(&payment) else { return Ok(false) };
        if payment.unlisted.is_none() {
            return Ok(missing.is_empty());
        }
        for at in missing {
            let with = match indexed.entry(at) {
                Entry::Occupied(found) => found.into_mut(),
                Entry::Vacant(place) => place.insert(with_word(snapshot, merchant, &wanted.0[at])?),
            };
            if !with.contains(&id) {
                return Ok(false);
            }
        }
        Ok(true)
    };
    if !others.is_empty() && found.len() <= FEW {
        let mut checked = BTreeSet::new();
        for id in found {
            if reads(id)? {
                checked.insert(id);
            }
        }
        found = checked;
    }
    let unread = cursor.saturating_add(1)..=u128::MAX;
    for listed in listed::newest(snapshot, merchant, Facets::ALL, unread)? {
        let (id, _) = listed?;
        if reads(id)? {
            found.insert(id);
        }
    }
    Ok(found)
}

/// Returns a merchant's payments whose id or whose indexed words start with a word.
fn with_word(snapshot: &Snapshot, merchant: u128, word: &WantedWord) -> Result<BTreeSet<u128>, Fault> {
    let mut found = BTreeSet::new();
    let first = (merchant, word.text.as_str(), 0);
    for entry in snapshot.search().range(first..)? {
        let key = entry?.0;
        let (owner, text, id) = key.value();
        if owner != merchant || !text.starts_with(&word.text) {
            break;
        }
        found.insert(id);
    }
    if let Some(ids) = &word.ids {
        for listed in listed::newest(snapshot, merchant, Facets::ALL, ids.clone())? {
            found.insert(listed?.0);
        }
    }
    Ok(found)
}

/// Returns the last payment the indexer has read.
pub(crate) fn cursor(snapshot: &Snapshot) -> Result<u128, Fault> {
    match single::read(&snapshot.meta(), meta::SEARCH_CURSOR) {
        // From the beginning: the words that are indexed already are indexed again.
        Ok(None) | Err(Fault::Damaged { .. }) => Ok(0),
        Ok(Some(bytes)) => bytes.as_slice().try_into().map(u128::from_be_bytes).map_err(|_| {
            Fault::contradicted("meta", meta::SEARCH_CURSOR, format_args!("it has {} bytes", bytes.len()))
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
                indexed.entries.extend(words_of(&payment).into_iter().map(|word| (merchant, word, id.bits())));
            }
            // One that cannot be read must not keep all later ones from being found.
            Err(damage) => tracing::error!(payment.id = %id, %damage, "payment {id} is damaged and not indexed"),
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
        assert_eq!(Wanted::parse("?!"), Some(Wanted(Vec::new())));
        assert_eq!(Wanted::parse("pay_").unwrap().0[0].text, "pay");
    }
}
