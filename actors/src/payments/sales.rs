//! Sales: transfers that were settled by x402 for a resource. They pay no session and cannot be assigned.

use engine::{
    ids::MerchantId, ledger::ChainPosition, merchant::Merchant, mutant, payment::ClaimFinality, time::Timestamp,
    x402::Facilitation,
};
use storage::Unmatched;

use crate::{context::Context, error::EngineError, payments::handle::Payments, webhooks::announcements::MAX_OWNERS};

/// Transfers read at once.
const PAGE: usize = 100;
/// Maximum number of transfers skipped for one page.
const MAX_PASSED: usize = 5_000;

/// A page of a list of transfers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part<T> {
    /// The rows, newest first.
    pub rows: Vec<T>,
    /// The position of the next page; `None` on the last one.
    pub next: Option<ChainPosition>,
}

/// A sale with its transfer on the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sale {
    /// The transfer.
    pub transfer: engine::ledger::Transfer,
    /// What was sold, as its server named it.
    pub resource: String,
    /// The merchant whose API key the settlement contained.
    pub seller: Option<MerchantId>,
    /// When the payment was claimed.
    pub claimed_at: Timestamp,
    /// The finality at which the settlement succeeded.
    pub finality: ClaimFinality,
}

/// A transfer that pays no session, with its settlement.
pub(crate) struct Incoming {
    pub(crate) unmatched: Unmatched,
    pub(crate) sale: Option<(Box<Facilitation>, Timestamp)>,
}

/// Adds the settlement of a transfer. A claim may be younger than the transfer's row: it is read, not copied.
pub(crate) async fn incoming(context: &Context, unmatched: Unmatched) -> Result<Incoming, storage::ReadError> {
    let claimed = context.sound(context.env.store.claim(unmatched.transfer.tx_id).await)?.flatten();
    let sale = claimed.and_then(|claimed| {
        let sale = claimed.sale()?;
        Some((Box::new(sale.clone()), claimed.at))
    });
    Ok(Incoming { unmatched, sale })
}

impl Payments {
    /// Lists the sales to a merchant's account, newest first, older than `before`: those settled with its own API key,
    /// and if it has proven the account also those settled without a key or by a merchant without a proof.
    ///
    /// # Errors
    /// Store errors.
    pub async fn sales(
        &self,
        merchant: &Merchant,
        before: Option<ChainPosition>,
        limit: usize,
    ) -> Result<Part<Sale>, EngineError> {
        let has_proven = merchant.proof_for(&merchant.hive_account).is_some();
        let owners = self.access.context.env.store.proven_merchants(merchant.hive_account, MAX_OWNERS).await;
        let owners = owners.map_err(|error| self.access.read_failed(&error))?;
        self.list_incoming(merchant, before, limit, |incoming| {
            let (facilitation, claimed_at) = incoming.sale?;
            let is_own = match facilitation.seller {
                Some(seller) if seller == merchant.id || owners.contains(&seller) => seller == merchant.id,
                _ => has_proven || mutant!("sales-shown-to-anybody"),
            };
            let Facilitation { resource, seller, finality, .. } = *facilitation;
            is_own.then_some(Sale { transfer: incoming.unmatched.transfer, resource, seller, claimed_at, finality })
        })
        .await
    }

    /// Lists the transfers to a merchant's account that pay no session and that `pick` selects.
    pub(crate) async fn list_incoming<T>(
        &self,
        merchant: &Merchant,
        before: Option<ChainPosition>,
        limit: usize,
        pick: impl Fn(Incoming) -> Option<T> + Send,
    ) -> Result<Part<T>, EngineError> {
        let newest = ChainPosition { block_num: u32::MAX, tx_in_block: u32::MAX, op_in_tx: u32::MAX };
        let mut before = before.unwrap_or(newest);
        let (mut rows, mut last, mut passed) = (Vec::new(), None, 0);
        while passed < MAX_PASSED {
            let page = self.access.context.env.store.unmatched_before(merchant.hive_account, before, PAGE).await;
            let page = page.map_err(|error| self.access.read_failed(&error))?;
            let is_last = page.len() < PAGE;
            for unmatched in page {
                let place = unmatched.transfer.position;
                (before, passed) = (place, passed + 1);
                let incoming =
                    incoming(&self.access.context, unmatched).await.map_err(|error| self.access.read_failed(&error))?;
                let Some(row) = pick(incoming) else { continue };
                // One more than the page shows that there is a next one.
                if rows.len() == limit {
                    return Ok(Part { rows, next: last });
                }
                last = Some(place);
                rows.push(row);
            }
            if is_last {
                return Ok(Part { rows, next: None });
            }
        }
        Ok(Part { rows, next: Some(before) })
    }
}
