//! A block of the chain, with everything that JSON-RPC returns of it.

use engine::{
    account::AccountName,
    hive::{Asset, BlockHeader, Operation, Pack, Signature, Transaction},
    ledger::{self, BlockId, ChainPosition, TxId},
    time::Timestamp,
};

use super::evaluate::Changes;

/// A transaction in a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Included {
    /// The transaction.
    pub transaction: Transaction,
    /// The packing that its signers signed: it decides the id.
    pub pack: Pack,
    /// Its id.
    pub id: TxId,
}

/// A virtual operation: an effect of a block that is in no transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VirtualOperation {
    /// One payment of a recurrent transfer.
    FillRecurrentTransfer {
        /// Who pays.
        from: AccountName,
        /// Who receives.
        to: AccountName,
        /// How much.
        amount: Asset,
        /// The memo of the recurrent transfer.
        memo: String,
        /// How many payments remain.
        remaining_executions: u16,
    },
    /// A payment of a recurrent transfer that the payer's balance did not allow.
    FailedRecurrentTransfer {
        /// Who pays.
        from: AccountName,
        /// Who receives.
        to: AccountName,
        /// How much.
        amount: Asset,
        /// The memo of the recurrent transfer.
        memo: String,
        /// How many payments remain.
        remaining_executions: u16,
        /// How many have failed in a row; the tenth ends the recurrent transfer.
        consecutive_failures: u16,
    },
    /// A transfer out of savings.
    FillTransferFromSavings {
        /// Whose savings.
        from: AccountName,
        /// Who receives.
        to: AccountName,
        /// How much.
        amount: Asset,
        /// The request's number.
        request_id: u32,
        /// The request's memo.
        memo: String,
    },
}

/// A block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Its id, which contains its number.
    pub id: BlockId,
    /// Its header.
    pub header: BlockHeader,
    /// The witness's signature over the header.
    pub witness_signature: Signature,
    /// Its transactions, in order.
    pub transactions: Vec<Included>,
    /// Its virtual operations, after the transactions.
    pub virtual_operations: Vec<VirtualOperation>,
    pub(super) changes: Changes,
}

impl Block {
    /// Returns its number.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.id.number()
    }

    /// Returns its time.
    #[must_use]
    pub const fn time(&self) -> Timestamp {
        self.header.timestamp
    }

    /// Returns the block as a payment engine reads it: its transfers only.
    #[must_use]
    pub fn neutral(&self) -> ledger::Block {
        let mut transfers = Vec::new();
        for (tx_in_block, included) in (0u32..).zip(&self.transactions) {
            for (op_in_tx, operation) in (0u32..).zip(&included.transaction.operations) {
                transfers.extend(transfer(included.id, operation, self, tx_in_block, op_in_tx));
            }
        }
        let previous = self.header.previous;
        // No operation of this chain opens an escrow.
        let unknown_operations = std::collections::BTreeMap::new();
        ledger::Block {
            id: self.id,
            previous,
            time: self.time(),
            transfers,
            escrow_releases: Vec::new(),
            unknown_operations,
        }
    }
}

impl Block {
    /// Returns the virtual transfers of the block. Its first virtual operation is the producer's reward.
    #[must_use]
    pub fn virtual_transfers(&self) -> Vec<ledger::Transfer> {
        (1..).zip(&self.virtual_operations).filter_map(|(at, operation)| operation.transfer(self, at)).collect()
    }
}

impl VirtualOperation {
    /// Returns the money it moves, if it does, to be changed by a node that lies.
    pub(super) const fn amount_paid(&mut self) -> Option<&mut Asset> {
        match self {
            Self::FillRecurrentTransfer { amount, .. } | Self::FillTransferFromSavings { amount, .. } => Some(amount),
            Self::FailedRecurrentTransfer { .. } => None,
        }
    }

    /// Returns the money it moves, if it does: `at` is its place among the block's.
    #[must_use]
    pub fn transfer(&self, block: &Block, at: u32) -> Option<ledger::Transfer> {
        let (from, to, amount, memo) = match self {
            Self::FillRecurrentTransfer { from, to, amount, memo, .. }
            | Self::FillTransferFromSavings { from, to, amount, memo, .. } => (from, to, amount, memo),
            Self::FailedRecurrentTransfer { .. } => return None,
        };
        let mut tx_id = TxId::default();
        tx_id.0[..4].copy_from_slice(&block.number().to_be_bytes());
        let place = ChainPosition { block_num: block.number(), tx_in_block: u32::MAX, op_in_tx: at };
        let (from, to, money, memo) = (*from, *to, amount.money()?, memo.clone());
        Some(ledger::Transfer { tx_id, position: place, block_time: block.time(), from, to, money, memo })
    }
}

fn transfer(
    tx_id: TxId,
    operation: &Operation,
    block: &Block,
    tx_in_block: u32,
    op_in_tx: u32,
) -> Option<ledger::Transfer> {
    let (from, to, money, memo) = operation.payment()?;
    let place = ChainPosition { block_num: block.number(), tx_in_block, op_in_tx };
    Some(ledger::Transfer { tx_id, position: place, block_time: block.time(), from, to, money, memo: memo.to_owned() })
}
