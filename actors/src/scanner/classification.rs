//! The classification of the transfers of a block.

use engine::{
    ids::PaymentId,
    ledger::{Block, MemoMatch, Transfer, match_fee_memo, match_memo, match_refund_memo},
    mutant,
    ownership::merchant_in_proof_memo,
    payment::FeeMode,
    x402::{ClaimRecord, Purpose},
};
use storage::{ReadError, UnmatchedReason};

use crate::scanner::blocks::Scanner;

/// A transfer with its classification.
pub(crate) struct ClassifiedTransfer<'b> {
    pub(crate) transfer: &'b Transfer,
    pub(crate) classification: Classification,
    /// The payment that the transfer refunds, by its memo.
    pub(crate) refunds: Option<PaymentId>,
}

/// The purpose of a transfer, as far as this engine is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Classification {
    /// Pays a session. The flag is set if the memo contains more than the session id.
    Session(PaymentId, bool),
    /// Goes to a merchant's account and matches no session.
    Account(UnmatchedReason),
    /// Goes to a merchant's account and was settled by x402 for another server.
    Sale,
    /// Proves the ownership of an account.
    Proof,
    /// Unrelated to this engine.
    Nobody,
}

impl Scanner {
    /// Classifies every transfer of some blocks, in order.
    pub(crate) async fn classify_transfers<'b>(
        &self,
        blocks: &'b [Block],
    ) -> Result<Vec<ClassifiedTransfer<'b>>, ReadError> {
        let mut classified = Vec::new();
        for transfer in blocks.iter().flat_map(|block| &block.transfers) {
            classified.push(ClassifiedTransfer {
                transfer,
                classification: self.classify(transfer).await?,
                refunds: self.refund_of(transfer),
            });
        }
        Ok(classified)
    }

    /// Returns the payment whose money a transfer sends back.
    fn refund_of(&self, transfer: &Transfer) -> Option<PaymentId> {
        self.ledger.watched.contains(&transfer.from).then(|| match_refund_memo(&transfer.memo)).flatten()
    }

    /// Classifies a transfer by the claim of its transaction, or else by its memo.
    async fn classify(&self, transfer: &Transfer) -> Result<Classification, ReadError> {
        if merchant_in_proof_memo(transfer).is_some() {
            return Ok(Classification::Proof);
        }
        if self.ledger.watched.contains(&transfer.to) {
            // If the record of the claim is damaged the memo decides: a session that holds the claim recognizes it.
            let claimed = self.context.sound(self.context.env.store.claim(transfer.tx_id).await)?.flatten();
            match claimed {
                Some(ClaimRecord { purpose: Purpose::Session(id), .. }) => {
                    return Ok(Classification::Session(id, false));
                }
                Some(claimed) if claimed.sale().is_some() => return Ok(Classification::Sale),
                _ => {}
            }
        }
        Ok(self.classify_memo(transfer))
    }

    fn classify_memo(&self, transfer: &Transfer) -> Classification {
        let is_fee = matches!(&self.context.settings.fee_mode, FeeMode::Split { account } if *account == transfer.to);
        let read = if is_fee { match_fee_memo(&transfer.memo) } else { match_memo(&transfer.memo) };
        let reason = match read {
            MemoMatch::Exact(id) => return Classification::Session(id, false),
            MemoMatch::Normalized(id) => {
                return Classification::Session(id, !is_fee && !mutant!("free-memos-are-exact"));
            }
            MemoMatch::None => UnmatchedReason::NoSession,
            MemoMatch::Ambiguous => UnmatchedReason::AmbiguousMemo,
            MemoMatch::Encrypted => UnmatchedReason::EncryptedMemo,
        };
        if self.ledger.watched.contains(&transfer.to) {
            Classification::Account(reason)
        } else {
            Classification::Nobody
        }
    }
}
