//! A model of search: the results of a search, compared with the durable payments.

use engine::payment::Payment;
use storage::{PageAt, PaymentQuery, ReadError, prelude::*};

use super::*;

/// Searches that are compared at the end of a run.
const SEARCHES_AT_THE_END: usize = 10;

impl Simulation {
    /// Compares one search with its model, at some steps. Its words are drawn from the payments.
    pub(super) async fn compare_a_search(&self, store: &EmbeddedStore) -> Result<(), ReadError> {
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
        loop {
            let page = store.payments(query.clone()).await?;
            found.extend(page.items.iter().map(|payment| payment.id));
            let Some(next) = page.next else { break };
            query.at = PageAt::Following(next);
        }
        let after = self.matches_of(&query);
        let of = |matches: &BTreeMap<PaymentId, Match>, id| matches.get(id).copied().unwrap_or(Match::No);
        let missing = before
            .iter()
            .find(|(id, matched)| **matched == Match::Yes && of(&after, id) == Match::Yes && !found.contains(id));
        let wrong = found.iter().find(|id| of(&before, id) == Match::No && of(&after, id) == Match::No);
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
        let asked = query.query.as_deref().unwrap_or_default();
        let is_its_own = |payment: &Payment| payment.merchant == query.merchant;
        self.observe(|observer| {
            let payments = observer.payments.values().map(|known| &*known.payment).filter(|one| is_its_own(one));
            payments.map(|payment| (payment.id, match_of(payment, asked))).collect()
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
fn match_of(payment: &Payment, asked: &str) -> Match {
    let mut words = vec![digits_of(payment.id)];
    words.extend(words_in(&payment.description));
    words.extend(payment.metadata.values().flat_map(|value| value.texts()).flat_map(words_in));
    for transfer in &payment.transfers {
        words.extend(words_in(transfer.from.as_str()));
        words.push(transfer.tx_id.to_string());
    }
    words.extend(payment.refunds.iter().map(|refund| refund.tx_id.to_string()));
    let is_found = words_in(asked).iter().all(|part| words.iter().any(|word| word.starts_with(part)));
    match is_found {
        true => Match::Yes,
        false if payment.unlisted.is_some() => Match::Unknown,
        false => Match::No,
    }
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
