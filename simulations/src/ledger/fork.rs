//! Operations of test chains only: forks, held finality, new accounts and money.

use std::{collections::BTreeSet, time::Duration};

use engine::{
    account::AccountName,
    hive::{AccountAuthorities, Authority, PublicKey},
    ledger::{BlockId, TxId},
    money::{Currency, HivePrice},
    time::Timestamp,
};

use super::{
    account::{Account, BalanceKind},
    block::Included,
    chain::Chain,
    genesis::Genesis,
    record::Record,
};

/// The outcome of the transactions in blocks that a fork removes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Orphans {
    /// They are pending again and included in the new branch if they are still valid.
    Keep,
    /// They are dropped; clients may broadcast them again.
    Drop,
    /// These are dropped, the others are pending again.
    DropThese(BTreeSet<TxId>),
}

/// The effect of a fork.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fork {
    /// The last block that both branches share; zero for the genesis.
    pub parent: BlockId,
    /// The ids of the removed blocks, oldest first.
    pub orphaned_blocks: Vec<BlockId>,
    /// The ids of the dropped transactions.
    pub dropped: Vec<TxId>,
}

/// Why a fork is impossible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ForkError {
    /// It would remove an irreversible block.
    #[error("only {reversible} blocks are reversible; hold irreversibility first")]
    Irreversible {
        /// How many blocks may be removed.
        reversible: u32,
    },
}

impl Chain {
    /// Removes the newest `depth` blocks. The new branch has no block yet: produce at least `depth + 1`, as no node
    /// changes to a branch that is not longer.
    ///
    /// # Errors
    /// [`ForkError::Irreversible`].
    pub fn fork(&mut self, depth: u32, orphans: &Orphans) -> Result<Fork, ForkError> {
        let reversible = self.head().number() - self.irreversible;
        if depth > reversible {
            return Err(ForkError::Irreversible { reversible });
        }
        let keep = self.blocks.len() - usize::try_from(depth).expect("a block number fits");
        let taken = self.blocks.split_off(keep);
        if let (Some(records), true) = (&mut self.records, depth > 0) {
            records.push(Record::Fork { depth });
        }
        self.generation += 1;
        let mut fork = Fork { parent: self.head(), orphaned_blocks: Vec::new(), dropped: Vec::new() };
        let mut orphaned: Vec<Included> = Vec::new();
        for block in taken.iter().rev() {
            self.state.undo(block.changes.clone());
        }
        for block in taken {
            fork.orphaned_blocks.push(block.id);
            orphaned.extend(block.transactions);
        }
        // Transactions of removed blocks come first; those that were already pending come after them.
        let waiting = std::mem::take(&mut self.pending);
        for included in orphaned {
            self.index.swap_remove(&included.id);
            let forget = match orphans {
                Orphans::Keep => false,
                Orphans::Drop => true,
                Orphans::DropThese(ids) => ids.contains(&included.id),
            };
            if forget {
                fork.dropped.push(included.id);
            } else {
                self.push_pending(included);
            }
        }
        self.pending.extend(waiting);
        self.recheck_pending();
        Ok(fork)
    }

    /// Sets by how many blocks finality lags behind the head; default 2.
    pub fn set_irreversibility_lag(&mut self, blocks: u32) {
        self.lag = blocks;
        self.settle();
    }

    /// Holds finality, or releases it; then it catches up immediately.
    pub fn hold_irreversibility(&mut self, held: bool) {
        self.irreversibility_held = held;
        self.settle();
    }

    /// Returns whether finality is held.
    #[must_use]
    pub const fn is_irreversibility_held(&self) -> bool {
        self.irreversibility_held
    }

    /// Leaves pending transactions out of the next blocks, or includes them again.
    pub fn hold_transactions(&mut self, held: bool) {
        self.transactions_held = held;
    }

    /// Returns whether transactions are left out of blocks.
    #[must_use]
    pub const fn are_transactions_held(&self) -> bool {
        self.transactions_held
    }

    /// Drops the pending transactions, and returns their number.
    pub fn forget_mempool(&mut self) -> usize {
        let count = self.pending.len();
        self.pending.clear();
        self.recheck_pending();
        count
    }

    /// Sets the minimum time between two blocks; default 3 seconds, whole seconds, may be 0.
    pub fn set_block_step(&mut self, step: Duration) {
        self.step = Duration::from_secs(step.as_secs());
    }

    /// Returns the minimum time between two blocks.
    #[must_use]
    pub const fn block_step(&self) -> Duration {
        self.step
    }

    /// Sets the witnesses' price.
    pub fn set_price(&mut self, price: HivePrice) {
        self.price = price;
        self.record(Record::Price { base_hbd_units: price.base_hbd_units, quote_hive_units: price.quote_hive_units });
    }

    /// Sets the internal market's price; with none it follows the witnesses'.
    pub const fn set_market(&mut self, price: Option<HivePrice>) {
        self.market = price;
    }

    /// Creates an account, or gives an existing one these authorities. It needs no block, and no fork undoes it.
    pub fn set_account(&mut self, name: &AccountName, authorities: AccountAuthorities, memo_key: PublicKey) {
        let (id, now) = (u32::try_from(self.state.accounts.len()).unwrap_or(u32::MAX), self.head_time());
        let account = self.state.accounts.entry(*name).or_insert_with(|| Account {
            id,
            name: *name,
            authorities: authorities.clone(),
            memo_key,
            created: now,
            updated: now,
            has_rc: true,
            balances: [0; BalanceKind::COUNT],
        });
        account.authorities = authorities;
        account.memo_key = memo_key;
        account.updated = now;
        let record = Record::of_account(account);
        self.record(record);
    }

    /// Mints money for an account (or burns it, down to 0). Returns `false`, if there is no such account.
    pub fn grant(&mut self, name: &AccountName, currency: Currency, units: i64) -> bool {
        let Some(account) = self.state.accounts.get_mut(name) else { return false };
        let kind = match currency {
            Currency::Hive => BalanceKind::Hive,
            Currency::Hbd => BalanceKind::Hbd,
        };
        let balance = &mut account.balances[kind as usize];
        let units = units.max(-*balance);
        *balance = balance.saturating_add(units);
        self.state.supply[kind as usize] = self.state.supply[kind as usize].saturating_add(units);
        self.record(Record::Grant { name: name.to_string(), currency, units });
        true
    }

    /// Gives an account its resource credits or takes them. Returns `false`, if there is no such account.
    pub fn set_rc(&mut self, name: &AccountName, has_rc: bool) -> bool {
        let Some(account) = self.state.accounts.get_mut(name) else { return false };
        account.has_rc = has_rc;
        self.record(Record::ResourceCredits { name: name.to_string(), has_rc });
        true
    }

    /// Creates the accounts of a genesis.
    pub(super) fn found(&mut self, genesis: &Genesis) {
        for name in Genesis::SPECIAL {
            let name = AccountName::parse(name).expect("hived's own names are names");
            // `temp` has a threshold of 0: no signature is needed. The others have no keys.
            let threshold = u32::from(name.as_str() != "temp");
            let nobody = || Authority { weight_threshold: threshold, ..Authority::default() };
            let authorities = AccountAuthorities { owner: nobody(), active: nobody(), posting: nobody() };
            self.set_account(&name, authorities, PublicKey([0; 33]));
        }
        for account in &genesis.accounts {
            let (authorities, memo_key) = genesis.authorities(account.name.as_str());
            self.set_account(&account.name, authorities, memo_key);
            for (currency, units) in [(Currency::Hive, account.hive_units), (Currency::Hbd, account.hbd_units)] {
                self.grant(&account.name, currency, i64::try_from(units).unwrap_or(i64::MAX));
            }
        }
    }

    pub(super) fn record(&mut self, record: Record) {
        if let Some(records) = &mut self.records {
            records.push(record);
        }
    }

    /// Returns the time of the chain's newest block, or of its genesis, moved by `by`: for tests of expiry.
    #[must_use]
    pub fn time_after(&self, by: Duration) -> Timestamp {
        self.head_time() + by
    }
}
