//! The chain: its state, validation of transactions, block production.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use engine::{
    account::AccountName,
    hive::{
        Asset, BlockHeader, ChainId, Operation, Pack, PrivateKey, PublicKey, Refusal, Signature, Transaction, Transfer,
        merkle_root, tapos_of,
    },
    ledger::{BlockId, TxId},
    money::{HivePrice, Money, MoneyError},
    time::Timestamp,
};

use crate::index::Index;

use super::{
    account::{Account, BalanceKind},
    block::{Block, Included},
    evaluate::{Changes, State},
    genesis::Genesis,
    record::Record,
    refused::Refused,
};

/// The largest block, and 256 bytes less the largest transaction (`maximum_block_size`, voted by witnesses).
pub(super) const MAX_BLOCK_BYTES: usize = 65_536;
const MAX_TRANSACTION_BYTES: usize = MAX_BLOCK_BYTES - 256;
/// How long a node keeps a transaction that no block includes (`HIVE_MAX_TIME_UNTIL_EXPIRATION`).
const MEMPOOL_LIFE: Duration = Duration::from_secs(3_600);
/// How many blocks back a transaction may refer.
const TAPOS_BLOCKS: u32 = 65_536;
/// The witnesses, which produce the blocks in turn.
const WITNESSES: u32 = 21;

/// A Hive chain. See the [module](super).
#[derive(Debug, Clone)]
pub struct Chain {
    pub(super) chain_id: ChainId,
    pub(super) genesis_time: Timestamp,
    pub(super) witness_key: Option<PrivateKey>,
    pub(super) signing_key: PublicKey,
    pub(super) state: State,
    pub(super) blocks: Vec<Block>,
    pub(super) index: Index<TxId, (u32, u32)>,
    pub(super) pending: Vec<Pending>,
    pub(super) pending_changes: Changes,
    pub(super) irreversible: u32,
    pub(super) lag: u32,
    pub(super) irreversibility_held: bool,
    pub(super) transactions_held: bool,
    pub(super) step: Duration,
    /// How often the chain has forked: it changes the witness, and so the ids of blocks that would be equal.
    pub(super) generation: u32,
    pub(super) price: HivePrice,
    /// What the internal market pays; none where it follows the witnesses.
    pub(super) market: Option<HivePrice>,
    pub(super) records: Option<Vec<Record>>,
    recovered: Recovered,
}

/// The keys of recently submitted transactions, by their id and signatures. A client that is not sure submits the same
/// again, to every node, and each broadcast needs them.
#[derive(Debug, Clone, Default)]
struct Recovered(BTreeMap<(TxId, Vec<Signature>), BTreeSet<PublicKey>>);

/// Transactions whose keys are kept at once, some 2 MB of them.
const RECOVERED_MAX: usize = 4_096;

impl Recovered {
    fn keys(&mut self, of: &Transaction, chain: ChainId, pack: Pack) -> Result<BTreeSet<PublicKey>, Refusal> {
        let place = (of.id(pack), of.signatures.clone());
        if let Some(keys) = self.0.get(&place) {
            return Ok(keys.clone());
        }
        let keys = of.recover(chain, pack)?;
        if self.0.len() >= RECOVERED_MAX {
            self.0.clear();
        }
        self.0.insert(place, keys.clone());
        Ok(keys)
    }
}

/// A pending transaction.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    pub(super) included: Included,
    accepted_at: Timestamp,
    size: usize,
}

/// What a node knows of a transaction (`transaction_status_api`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Never seen, and it could still come.
    Unknown,
    /// Waits for a block.
    WithinMempool,
    /// In a reversible block.
    WithinReversibleBlock(u32),
    /// In an irreversible block.
    WithinIrreversibleBlock(u32),
    /// Expired by the head, not in a block; a fork could still change that.
    ExpiredReversible,
    /// Expired by an irreversible block: it can never be included.
    ExpiredIrreversible,
    /// Expired longer ago than the node remembers.
    TooOld,
}

impl Chain {
    /// Begins a chain. It has no block yet; [`Chain::produce`] makes number 1.
    #[must_use]
    pub fn new(genesis: &Genesis) -> Self {
        let witness_key = genesis.witness_key();
        let mut chain = Self {
            chain_id: genesis.chain_id,
            genesis_time: whole_seconds(genesis.time),
            signing_key: witness_key.public(),
            witness_key: genesis.sign_blocks.then_some(witness_key),
            state: State::default(),
            blocks: Vec::new(),
            index: Index::default(),
            pending: Vec::new(),
            pending_changes: Changes::default(),
            irreversible: 0,
            lag: 2,
            irreversibility_held: false,
            transactions_held: false,
            step: Duration::from_secs(3),
            generation: 0,
            price: genesis.price,
            market: None,
            records: None,
            recovered: Recovered::default(),
        };
        chain.found(genesis);
        chain.records = genesis.keep_records.then(Vec::new);
        chain
    }

    /// Returns the newest block's id; zero before the first.
    #[must_use]
    pub fn head(&self) -> BlockId {
        self.blocks.last().map_or_else(BlockId::default, |block| block.id)
    }

    /// Returns the newest block's time; the genesis time before the first.
    #[must_use]
    pub fn head_time(&self) -> Timestamp {
        self.blocks.last().map_or(self.genesis_time, Block::time)
    }

    /// Returns the number of the last irreversible block.
    #[must_use]
    pub const fn irreversible_num(&self) -> u32 {
        self.irreversible
    }

    /// Returns a block by number, from 1.
    #[must_use]
    pub fn block(&self, number: u32) -> Option<&Block> {
        self.blocks.get(usize::try_from(number.checked_sub(1)?).ok()?)
    }

    /// Returns where a transaction is: its block's number and its index there.
    #[must_use]
    pub fn find(&self, tx_id: TxId) -> Option<(u32, u32)> {
        self.index.get(&tx_id).copied()
    }

    /// Returns the pending transactions, oldest first.
    pub fn mempool(&self) -> impl Iterator<Item = &Included> {
        self.pending.iter().map(|pending| &pending.included)
    }

    /// Returns an account.
    #[must_use]
    pub fn account(&self, name: &str) -> Option<&Account> {
        self.state.accounts.get(&AccountName::parse(name).ok()?)
    }

    /// Returns every account, by name.
    pub fn accounts(&self) -> impl Iterator<Item = &Account> {
        self.state.accounts.values()
    }

    /// Returns the sum of one balance over all accounts.
    #[must_use]
    pub fn supply(&self, kind: BalanceKind) -> Asset {
        Asset { units: self.state.supply[kind as usize], symbol: kind.symbol() }
    }

    /// Returns the chain's id.
    #[must_use]
    pub const fn chain_id(&self) -> ChainId {
        self.chain_id
    }

    /// Returns the public key of the witnesses.
    #[must_use]
    pub const fn signing_key(&self) -> PublicKey {
        self.signing_key
    }

    /// Returns HBD for HIVE, by the witnesses' price.
    #[must_use]
    pub const fn price(&self) -> HivePrice {
        self.price
    }

    /// Returns HBD for HIVE, by the best bid and ask of the internal market.
    #[must_use]
    pub fn market(&self) -> HivePrice {
        self.market.unwrap_or(self.price)
    }

    /// Returns when the chain began.
    #[must_use]
    pub const fn genesis_time(&self) -> Timestamp {
        self.genesis_time
    }

    /// Checks a transaction as a node does on broadcast, and keeps it for the next block.
    ///
    /// # Errors
    /// [`Refused`], in hived's order: size, shape, signatures and authority in both packings, duplicate, reference
    /// block, expiration, resource credits, balances.
    pub fn broadcast(&mut self, transaction: Transaction) -> Result<TxId, Refused> {
        let size = transaction.signed_bytes(Pack::Legacy).len();
        let (included, changes) = self.check(transaction, size)?;
        let tx_id = included.id;
        self.pending_changes.merge(changes);
        self.pending.push(Pending { included, accepted_at: self.head_time(), size });
        Ok(tx_id)
    }

    /// Returns whether a transaction would be accepted, without accepting it.
    ///
    /// # Errors
    /// [`Refused`], as it would be.
    pub fn would_take(&mut self, transaction: &Transaction) -> Result<(), Refused> {
        let size = transaction.signed_bytes(Pack::Legacy).len();
        self.check(transaction.clone(), size).map(|_| ())
    }

    /// Makes a transaction of a removed block pending again.
    pub(super) fn push_pending(&mut self, included: Included) {
        let size = included.transaction.signed_bytes(included.pack).len();
        self.pending.push(Pending { included, accepted_at: self.head_time(), size });
    }

    fn check(&mut self, transaction: Transaction, size: usize) -> Result<(Included, Changes), Refused> {
        if size > MAX_TRANSACTION_BYTES {
            return Err(Refused::TooLarge { size, limit: MAX_TRANSACTION_BYTES });
        }
        transaction.validate()?;
        let (recovered, chain_id) = (&mut self.recovered, self.chain_id);
        let authorized = transaction.authorize_by(&self.state, |pack| recovered.keys(&transaction, chain_id, pack));
        let refuse = |refusal| self.refusal(refusal);
        let authorized = authorized.map_err(refuse)?;
        if self.is_known(authorized.tx_id) {
            return Err(Refused::Duplicate);
        }
        self.check_tapos(&transaction)?;
        transaction.check_expiration(self.head_time()).map_err(refuse)?;
        for (_, account) in transaction.required()? {
            if self.state.accounts.get(&account).is_some_and(|account| !account.has_rc) {
                return Err(Refused::NoRc { account });
            }
        }
        let changes = self.state.evaluate(&self.pending_changes, &transaction, self.head_time())?;
        Ok((Included { pack: authorized.pack, id: authorized.tx_id, transaction }, changes))
    }

    /// Returns whether signatures and authority hold, for one packing (`verify_authority`).
    ///
    /// # Errors
    /// [`Refused`]; balances, expiration and reference block are not checked.
    pub fn verify_authority(&self, transaction: &Transaction, pack: Pack) -> Result<(), Refused> {
        let keys = transaction.recover(self.chain_id, pack).map_err(|refusal| self.refusal(refusal))?;
        engine::hive::check(&transaction.required()?, &self.state, &keys)
            .map_err(|denied| self.refusal(Refusal::Authority(denied)))
    }

    fn refusal(&self, refusal: Refusal) -> Refused {
        Refused::from_refusal(refusal, |name| self.state.accounts.get(name).map(|account| account.authorities.clone()))
    }

    /// Returns whether a transaction is in a block or pending.
    #[must_use]
    pub fn is_known(&self, tx_id: TxId) -> bool {
        self.index.contains_key(&tx_id) || self.pending.iter().any(|pending| pending.included.id == tx_id)
    }

    fn check_tapos(&self, transaction: &Transaction) -> Result<(), Refused> {
        let head = self.head().number();
        let back = head.wrapping_sub(u32::from(transaction.ref_block_num)) & (TAPOS_BLOCKS - 1);
        let referred = head.checked_sub(back).and_then(|number| self.block(number)).map(|block| block.id);
        let (_, expected) = tapos_of(referred.unwrap_or_default());
        let given = transaction.ref_block_prefix;
        if given == expected { Ok(()) } else { Err(Refused::Tapos { given, expected }) }
    }

    /// Produces a block of the pending transactions. Its time is `now` in whole seconds, or one step after the block before it,
    /// whichever is later: the chain's time never stands still and never goes back.
    pub fn produce(&mut self, now: Timestamp) -> &Block {
        let head_time = self.head_time();
        let time = whole_seconds(now).max(head_time + self.step);
        let mut changes = Changes::default();
        let mut transactions = Vec::new();
        let mut bytes = 0;
        let waiting = std::mem::take(&mut self.pending);
        let (held, mut left) = (self.transactions_held, Vec::new());
        for pending in waiting {
            let transaction = &pending.included.transaction;
            if transaction.expiration <= head_time || pending.accepted_at + MEMPOOL_LIFE <= head_time {
                continue;
            }
            // A witness omits transactions that would be expired at its block's time.
            if held || transaction.expiration < time || bytes + pending.size > MAX_TRANSACTION_BYTES {
                left.push(pending);
                continue;
            }
            // Transactions that an earlier one of this block made invalid are dropped.
            if let Ok(own) = self.state.evaluate(&changes, transaction, head_time) {
                changes.merge(own);
                bytes += pending.size;
                transactions.push(pending.included);
            }
        }
        let (virtual_operations, own) = self.state.due(&changes, time);
        changes.merge(own);
        self.pending = left;
        let (header, witness_signature) = self.sign_header(time, &transactions);
        let id = header.id(&witness_signature);
        self.append(Block { id, header, witness_signature, transactions, virtual_operations, changes })
    }

    fn sign_header(&self, time: Timestamp, transactions: &[Included]) -> (BlockHeader, Signature) {
        let leaves: Vec<Vec<u8>> =
            transactions.iter().map(|included| included.transaction.signed_bytes(included.pack)).collect();
        let header = BlockHeader {
            previous: self.head(),
            timestamp: time,
            witness: self.witness(self.head().number() + 1),
            transaction_merkle_root: merkle_root(leaves.iter().map(Vec::as_slice)),
        };
        let signature = self.witness_key.as_ref().map_or(Signature([0; 65]), |key| key.sign(&header.digest()));
        (header, signature)
    }

    /// Returns the witness of the block of this number.
    pub(super) fn witness(&self, number: u32) -> String {
        format!("witness-{:02}", (number + self.generation) % WITNESSES)
    }

    pub(super) fn append(&mut self, mut block: Block) -> &Block {
        let number = block.number();
        block.changes = self.state.apply(block.changes);
        for (place, included) in (0u32..).zip(&block.transactions) {
            self.index.insert(included.id, (number, place));
        }
        if let Some(records) = &mut self.records {
            records.push(Record::of_block(&block, self.generation));
        }
        self.blocks.push(block);
        self.settle();
        self.recheck_pending();
        self.blocks.last().expect("a block was just appended")
    }

    /// Advances finality, unless it is held. Irreversible blocks need no undo data.
    pub(super) fn settle(&mut self) {
        if self.irreversibility_held {
            return;
        }
        let before = self.irreversible;
        self.irreversible = before.max(self.head().number().saturating_sub(self.lag));
        let place = |number: u32| usize::try_from(number).expect("a block number fits");
        for block in &mut self.blocks[place(before)..place(self.irreversible)] {
            block.changes = Changes::default();
        }
    }

    /// Evaluates pending transactions against the new head, as hived does after each block; invalid ones are dropped.
    pub(super) fn recheck_pending(&mut self) {
        let mut changes = Changes::default();
        let (state, now) = (&self.state, self.blocks.last().map_or(self.genesis_time, Block::time));
        self.pending.retain(|pending| {
            let own = state.evaluate(&changes, &pending.included.transaction, now);
            own.map(|own| changes.merge(own)).is_ok()
        });
        self.pending_changes = changes;
    }

    /// Returns the status of a transaction; with its expiration also whether it can still be included.
    #[must_use]
    pub fn status(&self, tx_id: TxId, expiration: Option<Timestamp>) -> Status {
        if let Some((number, _)) = self.find(tx_id) {
            return if number <= self.irreversible {
                Status::WithinIrreversibleBlock(number)
            } else {
                Status::WithinReversibleBlock(number)
            };
        }
        if self.is_known(tx_id) {
            return Status::WithinMempool;
        }
        let final_time = self.block(self.irreversible).map_or(self.genesis_time, Block::time);
        match expiration {
            Some(expiration) if expiration < self.genesis_time => Status::TooOld,
            Some(expiration) if expiration <= final_time => Status::ExpiredIrreversible,
            Some(expiration) if expiration <= self.head_time() => Status::ExpiredReversible,
            _ => Status::Unknown,
        }
    }

    /// Builds and signs a transfer that expires a minute after the head, as most wallets do: in the legacy packing,
    /// with the newest block as its reference.
    ///
    /// # Errors
    /// [`MoneyError`], if the amount is not of the form `1.000 HBD`.
    pub fn transfer(
        &self,
        from: &str,
        to: &str,
        amount: &str,
        memo: &str,
        key: &PrivateKey,
    ) -> Result<Transaction, MoneyError> {
        let amount = Asset::from(Money::parse_ledger(amount)?);
        let operation = Transfer { from: from.to_owned(), to: to.to_owned(), amount, memo: memo.to_owned() };
        let (ref_block_num, ref_block_prefix) = tapos_of(self.head());
        let mut transaction = Transaction {
            ref_block_num,
            ref_block_prefix,
            expiration: self.head_time() + Duration::from_secs(60),
            operations: vec![Operation::Transfer(operation)],
            signatures: Vec::new(),
        };
        transaction.sign(self.chain_id, Pack::Legacy, key);
        Ok(transaction)
    }

    /// Returns the records since the last call, for a journal.
    pub fn take_records(&mut self) -> Vec<Record> {
        self.records.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

/// Block times are whole seconds.
pub(super) fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_seconds(time.seconds())
}
