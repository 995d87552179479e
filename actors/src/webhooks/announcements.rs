//! Events of no payment: settled sales, changes of an account, and unmatched transfers.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    sync::Arc,
};

use engine::{
    account::AccountName,
    ids::{DeliveryId, EndpointId, EventId, MerchantId, PaymentId},
    merchant::Merchant,
    mutant,
    time::Timestamp,
    webhook::{self, AccountChange, EventType, SettledSale, UnmatchedTransfer},
    x402::ClaimRecord,
};
use storage::{EventRecord, ReadError, Unmatched, Write};

use crate::context::Context;

/// Maximum number of merchants on one account that get the event of a sale settled without an API key, or of an unmatched
/// transfer.
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
        let sale = SettledSale {
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
        let body = webhook::settled(id, &sale, at);
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
    let change = AccountChange {
        merchant_id: after.id.to_string(),
        change,
        hive_account: after.hive_account.to_string(),
        pending_account: pending.map(|pending| pending.account.to_string()),
        effective_at: new.map(|pending| pending.effective_at.to_string()),
        livemode: !context.settings.development,
    };
    let body = webhook::account_change(id, &change, at);
    Some(announce(context, after, EventType::AccountChange, id, at, body))
}

/// Returns the events of new unmatched transfers with their merchants: those that have proven the account. What was
/// announced before is left out.
pub(crate) async fn unmatched_events(
    context: &Context,
    unmatched: &[&Unmatched],
    at: Timestamp,
) -> Result<Vec<(MerchantId, Write)>, ReadError> {
    let mut owners: BTreeMap<AccountName, Vec<Arc<Merchant>>> = BTreeMap::new();
    let mut events = Vec::new();
    for &Unmatched { transfer, reason, .. } in unmatched {
        if mutant!("unmatched-not-notified") {
            continue;
        }
        let merchants = match owners.entry(transfer.to) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(read_owners(context, transfer.to).await?),
        };
        for merchant in merchants.iter() {
            let id = webhook::unmatched_event_id(transfer, merchant.id);
            // A block that is scanned again was announced; a damaged index must not stop the scanner.
            if context.sound(context.env.store.event_place(id).await)? != Some(None) {
                continue;
            }
            let livemode = !context.settings.development;
            let data = UnmatchedTransfer::of(transfer, merchant.id, reason.as_str(), livemode);
            let body = webhook::transfer_unmatched(id, &data, at);
            events.push((merchant.id, announce(context, merchant, EventType::TransferUnmatched, id, at, body)));
        }
    }
    Ok(events)
}

/// Returns the merchants that have proven an account.
async fn read_owners(context: &Context, account: AccountName) -> Result<Vec<Arc<Merchant>>, ReadError> {
    let mut owners = Vec::new();
    let known = context.sound(context.env.store.proven_merchants(account, MAX_OWNERS).await)?;
    for owner in known.unwrap_or_default() {
        owners.extend(context.sound(context.env.store.merchant(owner).await)?.flatten());
    }
    Ok(owners)
}

fn announce(
    context: &Context,
    merchant: &Merchant,
    kind: EventType,
    id: EventId,
    at: Timestamp,
    body: Vec<u8>,
) -> Write {
    Write::Event(EventRecord {
        id,
        seq: 0,
        merchant: merchant.id,
        kind,
        payment: PaymentId::from_bits(id.bits()),
        deliveries: deliveries(context, merchant, kind, at),
        at,
        body,
        is_test: false,
    })
}

/// Returns new deliveries of an event: one to each endpoint of the merchant that subscribes to it.
pub(crate) fn deliveries(
    context: &Context,
    merchant: &Merchant,
    kind: EventType,
    at: Timestamp,
) -> Vec<(EndpointId, DeliveryId)> {
    let mut endpoints: Vec<EndpointId> = merchant.subscribers(kind).collect();
    let default = EndpointId::default_of(merchant.id);
    if mutant!("subscription-ignored") && !endpoints.contains(&default) {
        endpoints.push(default);
    }
    if mutant!("event-to-unsubscribed-endpoint") {
        let unsubscribed = merchant.endpoints.iter().filter(|endpoint| !endpoint.events.has(kind));
        endpoints.extend(unsubscribed.map(|endpoint| endpoint.id));
    }
    endpoints.into_iter().map(|endpoint| (endpoint, context.env.entropy.delivery_id(at))).collect()
}
