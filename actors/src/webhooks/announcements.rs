//! Events besides those of a payment's status: settled sales, and changes of an account.

use engine::{
    ids::{EventId, MerchantId, PaymentId},
    merchant::Merchant,
    mutant,
    time::Timestamp,
    webhook::{self, AccountChange, EventType, SettledSale},
    x402::ClaimRecord,
};
use storage::{EventRecord, ReadError, Write};

use crate::context::Context;

/// Maximum number of merchants on one account that get the event of a sale settled without an API key.
pub(crate) const MAX_OWNERS: usize = 20;

/// Returns the events of a settled sale with their merchants: the one that settled it with its API key, and unless it
/// has proven the account, the merchants that have.
pub(crate) async fn sale_events(
    context: &Context,
    claimed: &ClaimRecord,
    block_num: Option<u32>,
    at: Timestamp,
) -> Result<Vec<(MerchantId, Write)>, ReadError> {
    let Some(sale) = claimed.sale() else { return Ok(Vec::new()) };
    let mut owners = context.env.store.proven_merchants(claimed.pay_to, MAX_OWNERS).await?;
    if let Some(seller) = sale.seller {
        if owners.contains(&seller) {
            owners.clear();
        }
        owners.push(seller);
    }
    let mut events = Vec::new();
    for owner in owners {
        let Some(merchant) = context.sound(context.env.store.merchant(owner).await)?.flatten() else { continue };
        let id = webhook::sale_event_id(claimed.tx_id, owner, claimed.at);
        let told = SettledSale {
            tx_id: claimed.tx_id.to_string(),
            merchant_id: owner.to_string(),
            payer: sale.payer.as_str(),
            pay_to: claimed.pay_to.as_str(),
            value: sale.amount.units.to_string(),
            formatted: sale.amount.to_string(),
            currency: sale.amount.currency.code(),
            resource: &sale.resource,
            block_num,
            livemode: !context.settings.development,
        };
        let body = webhook::settled(id, &told, at);
        events.push((owner, announce(context, &merchant, EventType::X402Settled, id, at, body)));
    }
    Ok(events)
}

/// Returns the event of a change of a merchant's proven account, if there is one.
pub(crate) fn account_event(context: &Context, before: &Merchant, after: &Merchant, at: Timestamp) -> Option<Write> {
    let (old, new) = (before.ownership.pending.as_ref(), after.ownership.pending.as_ref());
    let (change, pending) = match (old, new) {
        (old, Some(new)) if old.is_none_or(|old| old.account != new.account) => ("requested", Some(new)),
        (Some(old), None) if old.account == after.hive_account => ("completed", None),
        (Some(old), None) => ("cancelled", Some(old)),
        _ => return None,
    };
    let id = context.env.entropy.event_id(at);
    let told = AccountChange {
        merchant_id: after.id.to_string(),
        change,
        hive_account: after.hive_account.to_string(),
        pending_account: pending.map(|pending| pending.account.to_string()),
        effective_at: new.map(|pending| pending.effective_at.to_string()),
        livemode: !context.settings.development,
    };
    let body = webhook::account_change(id, &told, at);
    Some(announce(context, after, EventType::AccountChange, id, at, body))
}

fn announce(
    context: &Context,
    merchant: &Merchant,
    kind: EventType,
    id: EventId,
    at: Timestamp,
    body: Vec<u8>,
) -> Write {
    let is_sent = merchant.webhook_events.has(kind) || mutant!("subscription-ignored");
    Write::Event(EventRecord {
        id,
        seq: 0,
        merchant: merchant.id,
        kind,
        payment: PaymentId::from_bits(id.bits()),
        delivery: is_sent.then(|| context.env.entropy.delivery_id(at)),
        at,
        body,
        is_test: false,
    })
}
