//! The classification of the transfers of a block.

use std::collections::{BTreeMap, BTreeSet};

use engine::{
    ids::PaymentId,
    ledger::{Block, MemoMatch, Transfer, TxId, match_fee_memo, match_memo, match_refund_memo},
    mutant,
    ownership::merchant_in_proof_memo,
    payment::FeeMode,
    x402::{ClaimRecord, Purpose},
};
use storage::{ReadError, UnmatchedReason};

use crate::{chain::ledger::Ledger, context::Context};

/// A transfer with its classification.
pub(crate) struct ClassifiedTransfer<'b> {
    pub(crate) transfer: &'b Transfer,
    pub(crate) classification: Classification,
    /// The payment that the transfer refunds, by its memo.
    pub(crate) refunds: Option<PaymentId>,
}

/// The purpose of a transfer for this engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Classification {
    /// Pays a session. The flag is set if the memo contains more than the session id.
    Session(PaymentId, bool),
    /// Sent to a merchant's account and matches no session.
    Account(UnmatchedReason),
    /// Sent to a merchant's account and settled by x402 for another server.
    Sale,
    /// Proves the ownership of an account.
    Proof,
    /// Unrelated to this engine.
    Nobody,
}

/// Returns whether a transfer is a sale.
pub(crate) fn is_sale(classified: &[ClassifiedTransfer<'_>], transfer: &Transfer) -> bool {
    classified.iter().any(|classified| {
        classified.classification == Classification::Sale && classified.transfer.position == transfer.position
    })
}

/// Classifies transfers by the claims, the memos and the watched accounts.
pub(crate) struct Classifier<'s> {
    pub(crate) context: &'s Context,
    pub(crate) ledger: &'s Ledger,
}

impl Classifier<'_> {
    /// Classifies every transfer of some blocks, in order.
    pub(crate) async fn transfers<'b>(&self, blocks: &'b [Block]) -> Result<Vec<ClassifiedTransfer<'b>>, ReadError> {
        let transfers = || blocks.iter().flat_map(|block| &block.transfers);
        // One read for all: only transfers to watched accounts can be claimed here.
        let to_watched = transfers().filter(|transfer| self.ledger.watched.contains(&transfer.to));
        let tx_ids: BTreeSet<TxId> = to_watched.map(|transfer| transfer.tx_id).collect();
        let claims = match tx_ids.is_empty() {
            true => Vec::new(),
            false => self.context.env.store.claims(tx_ids.into_iter().collect()).await?,
        };
        let claims: BTreeMap<TxId, ClaimRecord> = claims.into_iter().map(|claimed| (claimed.tx_id, claimed)).collect();
        let classified = transfers().map(|transfer| ClassifiedTransfer {
            transfer,
            classification: self.classify(transfer, claims.get(&transfer.tx_id)),
            refunds: self.refund_of(transfer),
        });
        Ok(classified.collect())
    }

    /// Returns the payment that a transfer refunds.
    fn refund_of(&self, transfer: &Transfer) -> Option<PaymentId> {
        self.ledger.watched.contains(&transfer.from).then(|| match_refund_memo(&transfer.memo)).flatten()
    }

    /// Classifies a transfer by the claim of its transaction, otherwise by its memo. If the record of the claim is
    /// damaged, the memo decides: a session that holds the claim recognizes it.
    fn classify(&self, transfer: &Transfer, claimed: Option<&ClaimRecord>) -> Classification {
        if merchant_in_proof_memo(transfer).is_some() {
            return Classification::Proof;
        }
        if self.ledger.watched.contains(&transfer.to) {
            match claimed {
                Some(ClaimRecord { purpose: Purpose::Session(id), .. }) => {
                    return Classification::Session(*id, false);
                }
                Some(claimed) if claimed.sale().is_some() => return Classification::Sale,
                _ => {}
            }
        }
        self.classify_memo(transfer)
    }

    fn classify_memo(&self, transfer: &Transfer) -> Classification {
        let is_fee = matches!(&self.context.settings.fee_mode, FeeMode::Split { account } if *account == transfer.to);
        let read = if is_fee { match_fee_memo(&transfer.memo) } else { match_memo(&transfer.memo) };
        let reason = match read {
            MemoMatch::Exact(id) => return Classification::Session(id, false),
            MemoMatch::Normalized(id) => {
                return Classification::Session(id, !is_fee && !mutant!("normalized-memos-are-exact"));
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
