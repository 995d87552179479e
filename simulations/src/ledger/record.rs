//! The journal of a chain: records from which the same chain is replayed.

use engine::{
    account::AccountName,
    hive::{AccountAuthorities, Authority, BlockHeader, Pack, PublicKey, Signature, Transaction, merkle_root},
    ledger::BlockId,
    money::{Currency, HivePrice},
    time::Timestamp,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{
    account::Account,
    block::{Block, Included},
    chain::Chain,
    evaluate::Changes,
    fork::Orphans,
};

/// One change of the chain, in the order in which it happened.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// A block was produced.
    Block {
        /// Its id, which the replay must reach again.
        id: String,
        /// Its time, seconds since 1970.
        seconds: u64,
        /// How often the chain had forked.
        generation: u32,
        /// The witness's signature, hex.
        signature: String,
        /// Its transactions: the packing and the signed bytes in it, hex.
        transactions: Vec<(String, String)>,
    },
    /// Blocks were removed.
    Fork {
        /// How many.
        depth: u32,
    },
    /// An account was created or changed by the control API.
    Account {
        /// Its name.
        name: String,
        /// Owner, active and posting authority.
        authorities: [Box<RawValue>; 3],
        /// Its memo key.
        memo_key: String,
    },
    /// Money was minted or burned.
    Grant {
        /// Whose.
        name: String,
        /// Of which currency.
        currency: Currency,
        /// The amount, in 1/1000; negative if it was burned.
        units: i64,
    },
    /// An account got or lost its resource credits.
    ResourceCredits {
        /// Whose.
        name: String,
        /// Whether it has them now.
        has_rc: bool,
    },
    /// The witnesses' price changed.
    Price {
        /// HBD side, in 1/1000.
        base_hbd_units: u64,
        /// HIVE side, in 1/1000.
        quote_hive_units: u64,
    },
}

/// Why records cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// A member of a record cannot be parsed.
    #[error("the `{field}` of a record cannot be parsed")]
    Field {
        /// Which member.
        field: &'static str,
    },
    /// A transaction no longer applies.
    #[error("a transaction of block {block} no longer applies")]
    Transaction {
        /// The block's number.
        block: u32,
    },
    /// The replayed block has another id: the journal is of another chain, or damaged.
    #[error("block {block} is replayed with another id")]
    BlockId {
        /// The block's number.
        block: u32,
    },
}

impl Record {
    pub(super) fn of_block(block: &Block, generation: u32) -> Self {
        let each = |included: &Included| {
            let bytes = included.transaction.signed_bytes(included.pack);
            (included.pack.to_string(), hex::encode(bytes))
        };
        Self::Block {
            id: block.id.to_string(),
            seconds: block.time().seconds(),
            generation,
            signature: block.witness_signature.to_string(),
            transactions: block.transactions.iter().map(each).collect(),
        }
    }

    pub(super) fn of_account(account: &Account) -> Self {
        let raw = |authority: &Authority| RawValue::from_string(authority.to_json()).expect("an authority is JSON");
        let AccountAuthorities { owner, active, posting } = &account.authorities;
        Self::Account {
            name: account.name.to_string(),
            authorities: [raw(owner), raw(active), raw(posting)],
            memo_key: account.memo_key.to_string(),
        }
    }
}

impl Chain {
    /// Replays a record. Pending transactions are not recorded: a node that exits loses them.
    ///
    /// # Errors
    /// [`ReplayError`], if the record is not of this chain.
    pub fn replay(&mut self, record: &Record) -> Result<(), ReplayError> {
        let field = |field| ReplayError::Field { field };
        let account = |name: &str| AccountName::parse(name).map_err(|_| field("name"));
        let records = self.records.take();
        match record {
            Record::Block { id, seconds, generation, signature, transactions } => {
                self.generation = *generation;
                let time = Timestamp::from_seconds(*seconds);
                let transactions = transactions
                    .iter()
                    .map(|(pack, bytes)| included(pack, bytes).ok_or(field("transactions")))
                    .collect::<Result<Vec<_>, _>>()?;
                let signature = Signature::parse(signature).ok_or(field("signature"))?;
                let id = BlockId::parse(id).ok_or(field("id"))?;
                self.replay_block(id, time, signature, transactions)?;
            }
            Record::Fork { depth } => {
                self.fork(*depth, &Orphans::Drop).map_err(|_| field("depth"))?;
            }
            Record::Account { name, authorities, memo_key } => {
                let [owner, active, posting] = authorities
                    .each_ref()
                    .map(|json| Authority::parse(json.get().as_bytes()).map_err(|_| field("authorities")));
                let authorities = AccountAuthorities { owner: owner?, active: active?, posting: posting? };
                let memo_key = PublicKey::parse(memo_key).map_err(|_| field("memo_key"))?;
                self.set_account(&account(name)?, authorities, memo_key);
            }
            Record::Grant { name, currency, units } => {
                self.grant(&account(name)?, *currency, *units);
            }
            Record::ResourceCredits { name, has_rc } => {
                self.set_rc(&account(name)?, *has_rc);
            }
            Record::Price { base_hbd_units, quote_hive_units } => {
                self.set_price(HivePrice::new(*base_hbd_units, *quote_hive_units).ok_or(field("base_hbd_units"))?);
            }
        }
        self.records = records;
        Ok(())
    }

    fn replay_block(
        &mut self,
        id: BlockId,
        time: Timestamp,
        witness_signature: Signature,
        transactions: Vec<Included>,
    ) -> Result<(), ReplayError> {
        let block = id.number();
        let mut changes = Changes::default();
        for included in &transactions {
            let own = self.state.evaluate(&changes, &included.transaction, self.head_time());
            changes.merge(own.map_err(|_| ReplayError::Transaction { block })?);
        }
        let (virtual_operations, own) = self.state.due(&changes, time);
        changes.merge(own);
        let leaves: Vec<Vec<u8>> =
            transactions.iter().map(|included| included.transaction.signed_bytes(included.pack)).collect();
        let header = BlockHeader {
            previous: self.head(),
            timestamp: time,
            witness: self.witness(block),
            transaction_merkle_root: merkle_root(leaves.iter().map(Vec::as_slice)),
        };
        if header.id(&witness_signature) != id || block != self.head().number() + 1 {
            return Err(ReplayError::BlockId { block });
        }
        self.append(Block { id, header, witness_signature, transactions, virtual_operations, changes });
        Ok(())
    }
}

fn included(pack: &str, bytes: &str) -> Option<Included> {
    let pack = Pack::ALL.into_iter().find(|each| each.as_str() == pack)?;
    let transaction = Transaction::from_signed_bytes(&hex::decode(bytes).ok()?).ok()?;
    Some(Included { id: transaction.id(pack), pack, transaction })
}
