//! What every paying command does with a key: refer to the chain, build transfers, sign them once.

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

/// Where a chain stands: what a new transaction refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Anchor {
    /// The chain, which every digest begins with.
    pub(super) chain: ChainId,
    /// The head's time, from which an expiration counts.
    pub(super) head_time: Timestamp,
    /// A block that no fork can take back.
    pub(super) block: BlockId,
}

/// Why transfers cannot be signed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unsignable {
    /// No chain would take them.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// hived would read another memo than was signed.
    #[error("the memo has control characters that hived's JSON cannot carry")]
    Memo,
}

impl Anchor {
    /// Asks a node. A young chain has nothing irreversible; its head has to do.
    pub(super) async fn of(node: &HiveRpc) -> Result<Self, NodeError> {
        let chain = node.identity().await?.chain_id;
        let head = node.head().await?;
        let block = match head.irreversible_num {
            0 => None,
            number => node.blocks(number, 1).await?.first().map(|block| block.id),
        };
        Ok(Self { chain, head_time: head.time, block: block.unwrap_or(head.block_id) })
    }

    /// Signs transfers, all or nothing, that live for `expires_in` from the head's time on.
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
        let (ref_block_num, ref_block_prefix) = tapos_of(self.block);
        let mut transaction = Transaction {
            ref_block_num,
            ref_block_prefix,
            // The chain's times are whole seconds.
            expiration: Timestamp::from_seconds((self.head_time + expires_in).seconds()),
            operations: transfers.into_iter().map(Operation::Transfer).collect(),
            signatures: Vec::new(),
        };
        transaction.validate()?;
        if !transaction.survives_json() {
            return Err(Unsignable::Memo);
        }
        transaction.sign(self.chain, pack, key);
        Ok(transaction)
    }
}
