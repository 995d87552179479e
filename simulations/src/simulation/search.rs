//! A model of search: the results of a search, compared with the durable payments.

use engine::payment::Payment;
use storage::{PageAt, PaymentQuery, ReadError, prelude::*};

use super::*;

/// How often a list or a search is compared though no payment was written since the last one, in a million.
const UNCHANGED_COMPARED: u32 = 50_000;
/// Searches that are compared at the end of a run.
const SEARCHES_AT_THE_END: usize = 10;
/// Pages of a search that have its own limit; the rest of a search is read in few pages.
const PAGES_OF_ITS_LIMIT: usize = 2;
/// The limit of the other pages.
const LIMIT_OF_THE_REST: usize = 1_000;

impl Simulation {
    /// Compares a random list or search with its model, at some steps: at few of those since which no payment was written.
    pub(super) async fn compare_a_query(&self, store: &EmbeddedStore) -> Result<(), ReadError> {
        let is_changed = std::mem::take(&mut lock(&self.observer).is_list_changed);
        let (is_due, is_search) = {
            let random = &mut lock(&self.streams).queries;
            (is_changed || random.chance(UNCHANGED_COMPARED), random.chance(500_000))
        };
        if !is_due {
            return Ok(());
        }
        if is_search { self.compare_a_search(store).await } else { self.compare_a_list(store).await }
    }

    /// Compares one search with its model, at some steps. Its words are drawn from the payments.
    async fn compare_a_search(&self, store: &EmbeddedStore) -> Result<(), ReadError> {
        let drawn = {
            let observer = lock(&self.observer);
            let random = &mut lock(&self.streams).queries;
            // A search reads every payment that is not indexed yet.
            let rare = 500_000 / (1 + observer.payments.len() / 200);
            if !random.chance(u32::try_from(rare).unwrap_or(1)) {
                return Ok(());
            }
            draw(&observer.payments, random)
        };
        match drawn {
            Some(query) => self.compare_search(store, query).await,
            None => Ok(()),
        }
    }

    /// Compares some searches with their model.
    pub(super) async fn compare_searches(&self, store: &EmbeddedStore) -> Result<(), ReadError> {
        for _ in 0..SEARCHES_AT_THE_END {
            let drawn = draw(&lock(&self.observer).payments, &mut lock(&self.streams).queries);
            if let Some(query) = drawn {
                self.compare_search(store, query).await?;
            }
        }
        Ok(())
    }

    /// Reads every page of a search. A payment that matches before and after must be found, one that matches neither before
    /// nor after must not.
    async fn compare_search(&self, store: &EmbeddedStore, mut query: PaymentQuery) -> Result<(), ReadError> {
        let before = self.matches_of(&query);
        let mut found = Vec::new();
        for number in 1.. {
            let page = store.payments(query.clone()).await?;
            found.extend(page.items.iter().map(|payment| payment.id));
            let Some(next) = page.next else { break };
            query.at = PageAt::Following(next);
            if number >= PAGES_OF_ITS_LIMIT {
                query.limit = LIMIT_OF_THE_REST;
            }
        }
        let asked = words_in(query.query.as_deref().unwrap_or_default());
        let after = |id: &PaymentId| {
            self.observe(|observer| {
                let own = observer.payments.get(id).filter(|known| known.payment.merchant == query.merchant);
                own.map_or(Match::No, |known| match_of(&known.payment, &asked))
            })
        };
        let returned: BTreeSet<&PaymentId> = found.iter().collect();
        let missing = before
            .iter()
            .find(|(id, matched)| **matched == Match::Yes && !returned.contains(id) && after(id) == Match::Yes);
        let was = |id: &PaymentId| before.get(id).copied().unwrap_or(Match::No);
        let wrong = found.iter().find(|id| was(id) == Match::No && after(id) == Match::No);
        let is_ordered = found.is_sorted_by(|newer, older| newer.bits() > older.bits());
        self.observe(|observer| {
            // The index of a damaged row is rebuilt once the row is repaired.
            if (missing.is_none() && wrong.is_none() && is_ordered) || observer.was_damaged {
                observer.passes("searches-find-payments");
                return;
            }
            let text = format!("{query:?} finds {} payments; missing {missing:?}, wrong {wrong:?}", found.len());
            observer.violate("searches-find-payments", text, None);
        });
        Ok(())
    }

    fn matches_of(&self, query: &PaymentQuery) -> BTreeMap<PaymentId, Match> {
        let asked = words_in(query.query.as_deref().unwrap_or_default());
        let is_its_own = |payment: &Payment| payment.merchant == query.merchant;
        self.observe(|observer| {
            let payments = observer.payments.values().map(|known| &*known.payment).filter(|one| is_its_own(one));
            payments.map(|payment| (payment.id, match_of(payment, &asked))).collect()
        })
    }
}

/// Whether a search finds a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Match {
    Yes,
    No,
    /// It has transfers that its snapshot does not list.
    Unknown,
}

/// Each word of a search starts the payment's id, or a word of its description, metadata, payers or transactions.
fn match_of(payment: &Payment, asked: &[String]) -> Match {
    let is_found = asked.iter().all(|part| has_a_word_with(payment, part));
    match is_found {
        true => Match::Yes,
        false if payment.unlisted.is_some() => Match::Unknown,
        false => Match::No,
    }
}

fn has_a_word_with(payment: &Payment, part: &str) -> bool {
    let is_in = |text: &str| words_in(text).iter().any(|word| word.starts_with(part));
    digits_of(payment.id).starts_with(part)
        || is_in(&payment.description)
        || payment.metadata.values().flat_map(|value| value.texts()).any(is_in)
        || payment.transfers.iter().any(|one| is_in(one.from.as_str()) || one.tx_id.to_string().starts_with(part))
        || payment.refunds.iter().any(|refund| refund.tx_id.to_string().starts_with(part))
}

fn words_in(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

fn digits_of(id: PaymentId) -> String {
    id.to_string().trim_start_matches("pay_").to_owned()
}

/// Draws what to search for: the beginning of a word of a payment, or of two.
fn draw(
    payments: &crate::index::Index<PaymentId, crate::observer::Known>,
    random: &mut Random,
) -> Option<PaymentQuery> {
    let at = random.index(payments.len().max(1));
    let payment = payments.get_index(at).map(|(_, known)| Arc::clone(&known.payment))?;
    let mut words = vec![digits_of(payment.id)];
    words.extend(payment.metadata.values().flat_map(|value| value.texts()).flat_map(words_in));
    for transfer in &payment.transfers {
        words.push(transfer.from.as_str().to_owned());
        words.push(transfer.tx_id.to_string());
    }
    let mut part = |words: &[String]| {
        let word = random.pick(words);
        word.chars().take(random.index(word.len()) + 1).collect::<String>()
    };
    let asked = match part(&words) {
        one if one.len() % 2 == 0 => format!("{one} {}", part(&words)),
        one => one,
    };
    Some(PaymentQuery { query: Some(asked), ..PaymentQuery::all(payment.merchant, 1 + random.index(20)) })
}
