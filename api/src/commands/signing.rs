//! Transaction building and signing for the commands that pay.

use std::time::Duration;

use actors::{
    environment::{Node as _, NodeError},
    hive_rpc::HiveRpc,
};
use engine::{
    hive::{ChainId, Invalid, Operation, Pack, PrivateKey, Transaction, Transfer, tapos_of},
    ledger::BlockId,
    time::Timestamp,
};

/// The state of a chain that a new transaction refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Anchor {
    /// The chain id, part of every digest.
    pub(super) chain: ChainId,
    /// The time of the head block, from which expirations are calculated.
    pub(super) head_time: Timestamp,
    /// An irreversible block for TaPoS.
    pub(super) block: BlockId,
}

/// The error of transfers that cannot be signed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unsignable {
    /// The ledger would refuse the transaction.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// hived would parse a different memo than the signed one.
    #[error("the memo has control characters that hived's JSON cannot carry")]
    Memo,
}

impl Anchor {
    /// Reads the state from a node. On a new chain without irreversible blocks, the block is the head block.
    pub(super) async fn of(node: &HiveRpc) -> Result<Self, NodeError> {
        let chain = node.identity().await?.chain_id;
        let head = node.head().await?;
        let block = match head.irreversible_num {
            0 => None,
            number => node.blocks(number, 1).await?.first().map(|block| block.id),
        };
        Ok(Self { chain, head_time: head.time, block: block.unwrap_or(head.block_id) })
    }

    /// Signs transfers as one transaction that expires `expires_in` after the head block's time.
    ///
    /// # Errors
    /// [`Unsignable`], before anything is signed.
    pub(super) fn sign(
        &self,
        transfers: Vec<Transfer>,
        expires_in: Duration,
        pack: Pack,
        key: &PrivateKey,
    ) -> Result<Transaction, Unsignable> {
        let mut transaction = self.unsigned(transfers, expires_in)?;
        transaction.sign(self.chain, pack, key);
        Ok(transaction)
    }

    /// Builds a transaction of transfers without a signature; it expires `expires_in` after the head's time.
    ///
    /// # Errors
    /// [`Unsignable`].
    pub(super) fn unsigned(&self, transfers: Vec<Transfer>, expires_in: Duration) -> Result<Transaction, Unsignable> {
        let (ref_block_num, ref_block_prefix) = tapos_of(self.block);
        let transaction = Transaction {
            ref_block_num,
            ref_block_prefix,
            // Times on the ledger are whole seconds.
            expiration: Timestamp::from_seconds((self.head_time + expires_in).seconds()),
            operations: transfers.into_iter().map(Operation::Transfer).collect(),
            signatures: Vec::new(),
        };
        transaction.validate()?;
        if !transaction.survives_json() {
            return Err(Unsignable::Memo);
        }
        Ok(transaction)
    }
}
