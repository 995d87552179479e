//! Decides quorum queries: pure functions of the responses, independent of network, clock and node order.
//!
//! A value is trusted when [`needed`] of the configured nodes return it. An absent node (slow, failing, rate limited,
//! without the API) casts no vote.

use std::collections::BTreeMap;

use engine::{
    account::AccountName,
    ledger::{Block, BlockId, Head},
    money::{HbdPrice, HivePrice, Money},
    mutant,
};

use crate::environment::{Account, NodeError, TxStatus};

/// How many blocks a head may be behind the highest head that a majority has reached and still be fresh.
pub(crate) const FRESH_BLOCKS: u32 = 5;
/// Maximum difference of prices that count as equal, in percent.
const PRICE_SPREAD_PERCENT: u128 = 2;

/// Returns how many of the configured nodes decide: a majority, or more if the settings require it.
pub(crate) fn needed(configured: usize, at_least: usize) -> usize {
    if mutant!("one-node-is-enough") {
        return 1;
    }
    let majority = configured / 2 + 1;
    majority.max(at_least)
}

/// Returns how many nodes decide about account history, which many nodes do not serve: a majority of those that may
/// serve it, and never one of several.
pub(crate) fn needed_of_history(configured: usize, lacking: usize, at_least: usize) -> usize {
    let eligible = configured.saturating_sub(lacking);
    needed(eligible, at_least).max(configured.min(2))
}

/// Returns the value that at least `needed` of the responses contain.
pub(crate) fn agreed<T: PartialEq>(answers: &[T], needed: usize) -> Option<&T> {
    answers.iter().find(|value| answers.iter().filter(|other| other == value).count() >= needed)
}

/// Returns the highest value that at least `needed` of the responses have reached.
pub(crate) fn reached<T: Ord + Copy>(values: impl IntoIterator<Item = T>, needed: usize) -> Option<T> {
    let mut values: Vec<T> = values.into_iter().collect();
    values.sort_unstable_by(|a, b| b.cmp(a));
    let at = if mutant!("highest-finality-wins") { 0 } else { needed.checked_sub(1)? };
    (values.len() >= needed).then(|| values[at])
}

/// Returns whether a head is fresh, compared with the highest head that a majority has reached.
pub(crate) const fn is_fresh(head_num: u32, reached: u32) -> bool {
    head_num.saturating_add(FRESH_BLOCKS) >= reached
}

/// Returns the head of the chain: number, time and finality, each as at least `needed` nodes have reached it.
pub(crate) fn head(heads: &[Head], needed: usize) -> Option<Head> {
    let number = reached(heads.iter().map(|head| head.block_id.number()), needed)?;
    let time = reached(heads.iter().map(|head| head.time), needed)?;
    let irreversible_num = reached(heads.iter().map(|head| head.irreversible_num), needed)?;
    let ids: Vec<BlockId> = heads.iter().map(|head| head.block_id).filter(|id| id.number() == number).collect();
    let most = ids.iter().max_by_key(|id| ids.iter().filter(|other| other == id).count());
    Some(Head { block_id: *most?, time, irreversible_num })
}

/// Returns the longest prefix of a range of blocks on which at least `needed` responses agree.
pub(crate) fn blocks(answers: &[&[Block]], count: usize, needed: usize) -> Vec<Block> {
    let mut agreed_on = Vec::new();
    for at in 0..count {
        let given: Vec<&Block> = answers.iter().filter_map(|blocks| blocks.get(at)).collect();
        match agreed(&given, needed) {
            Some(block) => agreed_on.push((*block).clone()),
            None => break,
        }
    }
    agreed_on
}

/// Accounts as the nodes report them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Accounts {
    /// The accounts that exist.
    pub(crate) found: Vec<Account>,
    /// Whether all responses contain the same balances.
    pub(crate) is_settled: bool,
}

/// Returns the accounts that exist, once at least `needed` responses agree on the existence and the active authority of
/// each. Balances change with every block: each is the highest that `needed` responses reach, or the highest one while
/// no more than `needed` nodes have responded, because only the chain finally rejects a payment.
pub(crate) fn accounts(names: &[AccountName], answers: &[&[Account]], needed: usize) -> Option<Accounts> {
    let (mut found, mut is_settled) = (Vec::new(), true);
    for name in names {
        let given: Vec<Option<&Account>> =
            answers.iter().map(|accounts| accounts.iter().find(|account| account.name == *name)).collect();
        let authorities: Vec<_> = given.iter().map(|account| account.map(|account| &account.active)).collect();
        let Some(active) = agreed(&authorities, needed)? else { continue };
        let alike: Vec<&Account> =
            given.iter().flatten().filter(|account| account.active == **active).copied().collect();
        is_settled &= alike.windows(2).all(|pair| pair[0].balances == pair[1].balances);
        let units = |at: usize| alike.iter().map(move |account| account.balances[at].units);
        let balance = |at: usize| {
            let most = if alike.len() > needed && !mutant!("highest-balance-is-believed") {
                reached(units(at), needed)
            } else {
                units(at).max()
            };
            Money::new(most.unwrap_or(0), alike[0].balances[at].currency)
        };
        found.push(Account { name: *name, active: (*active).clone(), balances: [balance(0), balance(1)] });
    }
    Some(Accounts { found, is_settled })
}

/// Returns the status of a transaction. Inclusion in a block and final expiration need `needed` nodes; presence in the
/// mempool needs one.
pub(crate) fn transaction(answers: &[TxStatus], needed: usize) -> Option<TxStatus> {
    let mut places: BTreeMap<u32, (usize, usize)> = BTreeMap::new();
    for status in answers {
        match status {
            TxStatus::InIrreversibleBlock(num) => {
                let (in_block, irreversible) = places.entry(*num).or_default();
                (*in_block, *irreversible) = (*in_block + 1, *irreversible + 1);
            }
            TxStatus::InReversibleBlock(num) => places.entry(*num).or_default().0 += 1,
            _ => {}
        }
    }
    if let Some((num, _)) = places.iter().find(|(_, (_, irreversible))| *irreversible >= needed) {
        return Some(TxStatus::InIrreversibleBlock(*num));
    }
    if let Some((num, _)) = places.iter().find(|(_, (in_block, _))| *in_block >= needed) {
        return Some(TxStatus::InReversibleBlock(*num));
    }
    let count = |wanted: fn(&TxStatus) -> bool| answers.iter().filter(|status| wanted(status)).count();
    if count(|status| matches!(status, TxStatus::ExpiredIrreversible)) >= needed {
        return Some(TxStatus::ExpiredIrreversible);
    }
    if !places.is_empty() || answers.contains(&TxStatus::InMempool) {
        return Some(TxStatus::InMempool);
    }
    if answers.contains(&TxStatus::TooOld) {
        return Some(TxStatus::TooOld);
    }
    (answers.len() >= needed).then_some(TxStatus::Unknown)
}

/// A node's reply to a broadcast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The node accepted the transaction or already had it.
    Accepted,
    /// The transaction violates the rules of the ledger.
    Refused(NodeError),
    /// The node did not receive the transaction.
    NotSent,
    /// It is unknown whether the node received the transaction.
    Unknown,
}

impl Reply {
    /// Classifies a node's response to a broadcast. A duplicate counts as accepted.
    pub(crate) fn of(answer: Result<(), NodeError>) -> Self {
        match answer {
            Ok(()) => Self::Accepted,
            Err(NodeError::Rpc { message, .. }) if message.contains("Duplicate transaction check failed") => {
                Self::Accepted
            }
            Err(error) if error.lacks_api() => Self::NotSent,
            Err(error @ NodeError::Rpc { .. }) if !error.is_the_nodes_fault() => Self::Refused(error),
            Err(NodeError::Unreachable(_) | NodeError::WrongChain(_) | NodeError::RateLimited { .. }) => Self::NotSent,
            Err(_) => Self::Unknown,
        }
    }
}

/// The outcome of a broadcast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BroadcastOutcome {
    /// A majority accepted the transaction.
    Accepted,
    /// A majority refused it, and no node that responded accepted it.
    Refused(NodeError),
    /// At least one node has it or may have it.
    PossiblySent,
    /// No node received it.
    NotSent,
}

/// Returns the outcome of a broadcast from the replies so far.
pub(crate) fn broadcast(replies: &[Reply], needed: usize) -> BroadcastOutcome {
    let taken = replies.iter().filter(|reply| **reply == Reply::Accepted).count();
    if taken >= needed {
        return BroadcastOutcome::Accepted;
    }
    let refusals: Vec<&NodeError> = replies
        .iter()
        .filter_map(|reply| match reply {
            Reply::Refused(error) => Some(error),
            _ => None,
        })
        .collect();
    if mutant!("lost-response-is-refusal") && replies.contains(&Reply::Unknown) {
        return BroadcastOutcome::Refused(NodeError::Rpc {
            code: -32_003,
            data_code: None,
            name: String::new(),
            message: "lost".to_owned(),
        });
    }
    let is_hasty = mutant!("one-refusal-is-enough") && !refusals.is_empty();
    if is_hasty || (taken == 0 && refusals.len() >= needed) {
        let code = |error: &NodeError| match error {
            NodeError::Rpc { data_code, .. } => *data_code,
            _ => None,
        };
        let like = |error: &NodeError| refusals.iter().filter(|other| code(other) == code(error)).count();
        // The most frequent reason; the first of several equally frequent ones.
        let most = refusals.iter().rev().max_by_key(|error| like(error)).expect("at least one refusal");
        return BroadcastOutcome::Refused((*most).clone());
    }
    if replies.iter().any(|reply| matches!(reply, Reply::Accepted | Reply::Unknown)) {
        BroadcastOutcome::PossiblySent
    } else {
        BroadcastOutcome::NotSent
    }
}

/// Returns the median of at least `needed` prices that lie within two percent of each other.
pub(crate) fn price(answers: &[Option<HivePrice>], needed: usize) -> Option<Option<HivePrice>> {
    if answers.iter().filter(|price| price.is_none()).count() >= needed {
        return Some(None);
    }
    let cross = |a: &HivePrice, b: &HivePrice| u128::from(a.base_hbd_units) * u128::from(b.quote_hive_units);
    close(answers.iter().flatten().copied().collect(), needed, cross).map(Some)
}

/// Returns the median of at least `needed` prices of HBD that lie within two percent of each other; `None` if as many
/// nodes have no price.
pub(crate) fn hbd_price(answers: &[Option<HbdPrice>], needed: usize) -> Option<Option<HbdPrice>> {
    let without = answers.iter().filter(|price| price.is_none()).count();
    if without >= needed || mutant!("hbd-price-unknown") || (without > 0 && mutant!("one-node-without-price-decides")) {
        return Some(None);
    }
    let micro_usd = |price: &HbdPrice, _: &HbdPrice| u128::from(price.micro_usd());
    close(answers.iter().flatten().copied().collect(), needed, micro_usd).map(Some)
}

/// Returns the median of the lowest `needed` prices within two percent of each other. `size` scales one to compare it
/// with another.
fn close<P: Copy>(mut prices: Vec<P>, needed: usize, size: impl Fn(&P, &P) -> u128) -> Option<P> {
    prices.sort_by(|a, b| size(a, b).cmp(&size(b, a)));
    let is_close = |window: &&[P]| {
        let (low, high) = (&window[0], &window[window.len() - 1]);
        size(high, low) * 100 <= size(low, high) * (100 + PRICE_SPREAD_PERCENT)
    };
    let window = prices.windows(needed.max(1)).find(is_close)?;
    Some(window[(window.len() - 1) / 2])
}
