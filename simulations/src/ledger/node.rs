//! A node's view of the chain: late, stalled, forked, or wrong. Several nodes share one chain.

use std::borrow::Cow;

use engine::{
    account::AccountName,
    hive::{Asset, Authority, Operation, Pack, PrivateKey, Transaction, Transfer, tapos_of},
    ledger::BlockId,
    money::{HivePrice, Money},
    time::Timestamp,
};

use super::{
    account::{Account, BalanceKind},
    block::{Block, Included},
    chain::Chain,
};

/// The faults of a node; by default none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// How many blocks it is behind.
    pub lag_blocks: u32,
    /// The block at which it has stopped.
    pub stalled_at: Option<u32>,
    /// The newest block that it shares with the others: of what comes after, it has as many blocks, and others, without
    /// a transaction, until the chain's are irreversible.
    pub branch_from: Option<u32>,
    /// The wrong data that it returns.
    pub lie: Option<Lie>,
}

/// What a lying node returns. Block ids stay those of the chain: the lie shows when the contents of blocks are compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lie {
    /// A block contains an invented transfer.
    InventTransfer {
        /// The block that contains it, according to the node.
        block: u32,
        /// The invented payer.
        from: AccountName,
        /// The invented payee.
        to: AccountName,
        /// How much.
        money: Money,
        /// The memo.
        memo: String,
    },
    /// No block contains a transfer.
    OmitTransfers,
    /// Every transfer has ten times its amount.
    InflateTransfers,
    /// Finality reaches the head.
    EverythingIsFinal,
    /// The head is this many blocks further, and final.
    HeadAhead {
        /// How many blocks.
        blocks: u32,
    },
    /// Every account's active authority is this key.
    Keys {
        /// The key.
        key: engine::hive::PublicKey,
    },
    /// Every account has this much of each currency.
    Balances {
        /// Units of 1/1000.
        units: i64,
    },
    /// A range of blocks begins with the second one.
    SkipBlocks,
    /// No block refers to the one before it.
    UnlinkBlocks,
    /// Broadcasts are accepted and dropped.
    SwallowBroadcasts,
    /// Broadcasts are refused as expired.
    RefuseBroadcasts,
    /// HIVE has this price.
    Price {
        /// The price.
        price: HivePrice,
    },
}

/// The chain as one node shows it.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    chain: &'a Chain,
    node: &'a Node,
}

impl Node {
    /// Returns this node's view of the chain.
    #[must_use]
    pub const fn view<'a>(&'a self, chain: &'a Chain) -> View<'a> {
        View { chain, node: self }
    }
}

impl<'a> View<'a> {
    /// Returns the chain behind it.
    #[must_use]
    pub const fn chain(&self) -> &'a Chain {
        self.chain
    }

    /// Returns the id and time of the newest block it shows; zero and the genesis time before the first.
    #[must_use]
    pub fn head(&self) -> (BlockId, Timestamp) {
        let genesis = || (BlockId::default(), self.chain.genesis_time());
        let (mut id, time) = self.chain.block(self.last()).map_or_else(genesis, |block| {
            let is_apart = self.is_apart(block.number());
            (if is_apart { of_the_branch(block.id) } else { block.id }, block.time())
        });
        if let Some(Lie::HeadAhead { blocks }) = self.node.lie {
            let number = id.number().saturating_add(blocks);
            id.0[..4].copy_from_slice(&number.to_be_bytes());
        }
        (id, time)
    }

    /// Returns the last irreversible block number that it reports.
    #[must_use]
    pub fn irreversible_num(&self) -> u32 {
        match self.node.lie {
            Some(Lie::EverythingIsFinal | Lie::HeadAhead { .. }) => self.head().0.number(),
            _ => self.chain.irreversible_num().min(self.last()),
        }
    }

    /// Returns a block as it reports it.
    #[must_use]
    pub fn block(&self, number: u32) -> Option<Cow<'a, Block>> {
        let block = self.chain.block(number).filter(|_| number <= self.last())?;
        if self.is_apart(number) {
            let mut block = block.clone();
            block.id = of_the_branch(block.id);
            if self.is_apart(number - 1) {
                block.header.previous = of_the_branch(block.header.previous);
            }
            block.transactions.clear();
            block.virtual_operations.clear();
            return Some(Cow::Owned(block));
        }
        Some(match &self.node.lie {
            Some(Lie::InventTransfer { block: at, from, to, money, memo }) if *at == number => {
                let operation = Transfer {
                    from: from.to_string(),
                    to: to.to_string(),
                    amount: Asset::from(*money),
                    memo: memo.clone(),
                };
                Cow::Owned(with_transfer(block.clone(), operation))
            }
            Some(Lie::OmitTransfers) => {
                let mut block = block.clone();
                let pays = |operation: &Operation| matches!(operation, Operation::Transfer(_));
                block.transactions.retain(|included| !included.transaction.operations.iter().any(pays));
                block.virtual_operations.clear();
                Cow::Owned(block)
            }
            Some(Lie::InflateTransfers) => {
                let mut block = block.clone();
                let operations = block.transactions.iter_mut().flat_map(|one| &mut one.transaction.operations);
                for operation in operations {
                    if let Operation::Transfer(transfer) = operation {
                        inflate(&mut transfer.amount);
                    }
                }
                for operation in &mut block.virtual_operations {
                    if let Some(amount) = operation.amount_paid() {
                        inflate(amount);
                    }
                }
                Cow::Owned(block)
            }
            Some(Lie::UnlinkBlocks) => {
                let mut block = block.clone();
                block.header.previous = of_the_branch(block.header.previous);
                Cow::Owned(block)
            }
            _ => Cow::Borrowed(block),
        })
    }

    /// Returns the first block that it returns of a requested range.
    #[must_use]
    pub const fn first_of_range(&self, from: u32) -> u32 {
        if matches!(self.node.lie, Some(Lie::SkipBlocks)) { from + 1 } else { from }
    }

    /// Returns an account as it reports it.
    #[must_use]
    pub fn account(&self, name: &str) -> Option<Cow<'a, Account>> {
        let account = self.chain.account(name)?;
        Some(match self.node.lie {
            Some(Lie::Keys { key }) => {
                let mut account = account.clone();
                account.authorities.active = Authority::of_key(key);
                Cow::Owned(account)
            }
            Some(Lie::Balances { units }) => {
                let mut account = account.clone();
                account.balances[BalanceKind::Hive as usize] = units;
                account.balances[BalanceKind::Hbd as usize] = units;
                Cow::Owned(account)
            }
            _ => Cow::Borrowed(account),
        })
    }

    /// Returns whether broadcasts are accepted and dropped.
    #[must_use]
    pub const fn swallows_broadcasts(&self) -> bool {
        matches!(self.node.lie, Some(Lie::SwallowBroadcasts))
    }

    /// Returns whether valid broadcasts are refused.
    #[must_use]
    pub const fn refuses_broadcasts(&self) -> bool {
        matches!(self.node.lie, Some(Lie::RefuseBroadcasts))
    }

    /// Returns the price of HIVE as it reports it.
    #[must_use]
    pub fn price(&self) -> HivePrice {
        match self.node.lie {
            Some(Lie::Price { price }) => price,
            _ => self.chain.price(),
        }
    }

    /// Returns whether it has another block there than the chain.
    fn is_apart(&self, number: u32) -> bool {
        self.node.branch_from.is_some_and(|from| number > from.max(self.chain.irreversible_num()))
    }

    /// Returns whether it shows a block as the chain has it.
    #[must_use]
    pub fn shows_as_it_is(&self, number: u32) -> bool {
        number <= self.last() && !self.is_apart(number)
    }

    /// Returns whether it has the block that a transaction refers to, if the chain has it.
    #[must_use]
    pub fn has_referred(&self, transaction: &Transaction) -> bool {
        let numbers = (self.last() + 1..=self.chain.head().number())
            .chain(self.node.branch_from.map_or(u32::MAX, |from| from + 1)..=self.last());
        let unseen = numbers.filter(|number| !self.shows_as_it_is(*number));
        let refers = |block: &Block| tapos_of(block.id) == (transaction.ref_block_num, transaction.ref_block_prefix);
        !unseen.filter_map(|number| self.chain.block(number)).any(refers)
    }

    /// Returns the newest block it has.
    #[must_use]
    pub fn last(&self) -> u32 {
        let newest = self.chain.head().number().saturating_sub(self.node.lag_blocks);
        self.node.stalled_at.map_or(newest, |stalled| newest.min(stalled))
    }
}

/// Returns the id of the block that another branch has in the place of this one.
const fn of_the_branch(mut id: BlockId) -> BlockId {
    let last = id.0.len() - 1;
    id.0[last] ^= 0xff;
    id
}

const fn inflate(amount: &mut Asset) {
    amount.units = amount.units.saturating_mul(10);
}

/// Adds a transfer with an id that looks like one and a signature of nobody's key.
fn with_transfer(mut block: Block, transfer: Transfer) -> Block {
    let mut transaction = Transaction {
        ref_block_num: 0,
        ref_block_prefix: 0,
        expiration: block.time(),
        operations: vec![Operation::Transfer(transfer)],
        signatures: Vec::new(),
    };
    let nobody = PrivateKey::from_bytes(&[1; 32]).expect("one is a key");
    transaction.sign(engine::hive::ChainId::ZERO, Pack::Legacy, &nobody);
    block.transactions.push(Included { id: transaction.id(Pack::Legacy), pack: Pack::Legacy, transaction });
    block
}
