//! Payers, agents and merchants: each step of a script becomes a transfer on the chain or a call to the engine, which may
//! be slow, refused, or without a response.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use actors::{EngineError, Target, X402Error, X402Request};
use engine::{
    account::AccountName,
    hive::Transaction,
    idempotency::IdempotencyKey,
    ids::{MerchantId, PaymentId},
    ledger::{TxId, memo_of},
    merchant::{Merchant, Registration, Update},
    money::{Currency, Money},
    payment::{Canceller, Draft, Payment},
    x402::{PaymentPayload, Reason, Requirements, Version},
};
use storage::Handling;

use self::{
    agent_wallet::{WalletRequest, pay_with_wallet},
    agents::settle,
    availability::{call_failed, request_failed, unless_left},
    drafts::draft,
    management::manage,
    orders::create,
    other_engine::{create_elsewhere, hand_over},
    ownership::act_on_ownership,
    sellers::{Purchase, facilitate, purchase},
    session_actions::act_on_session,
    wallets::{Agreement, pay, pay_again},
};
use crate::{
    client_state::{
        ELSEWHERE, KEYED, POOR, Payload, Repeated, SPENDER, Session, Shop, THIRD_PARTY, account, agent, payer,
    },
    hive::Hive,
    observer::Response,
    receivers::{name_of, url_of},
    script::{Action, AgentBehavior, Memo, MerchantChange},
    simulation::{RequiredOutcome, Running, Simulation},
    trace::Source,
};

mod agent_wallet;
mod agents;
mod availability;
mod drafts;
mod facade;
mod identifiers;
mod limits_of_rules;
mod management;
mod orders;
mod other_engine;
mod ownership;
mod payloads;
mod reads;
mod replays;
mod responses;
mod sellers;
mod session_actions;
mod wallets;
mod watches;

/// How often a failed step is retried, where a real client would retry.
const MAX_TRIES: u32 = 25;
/// How often an agent requests the outcome of one payment.
const MAX_REQUESTS: u32 = 60;
/// Executes a step; `gateway` is none while the engine is down.
pub(crate) fn act(sim: &Arc<Simulation>, engine: Option<&Running>, action: Action, tries: u32) {
    if tries > MAX_TRIES {
        sim.event(Source::Payer, "gives_up", action.session(), 0, || format!("gives up: {action:?}"));
        return;
    }
    match &action {
        Action::Pay { session, payer, units, currency, memo } => {
            pay(sim, *session, *payer, Money::new(*units, *currency), *memo, &action, tries);
        }
        Action::PayAgain { session, payer, units, currency, every_hours, times } => {
            let agreement = Agreement {
                payer: *payer,
                money: Money::new(*units, *currency),
                every_hours: *every_hours,
                times: *times,
            };
            pay_again(sim, *session, &agreement, &action, tries);
        }
        _ => call(sim, engine, action, tries),
    }
}

/// Calls the engine concurrently.
fn call(sim: &Arc<Simulation>, engine: Option<&Running>, action: Action, tries: u32) {
    let Some(engine) = engine.cloned() else {
        sim.act_later(2_000, action, tries + 1);
        return;
    };
    let number = Some(sim.clients().begin_call(Repeated::Action(action.clone(), tries), engine.process.number));
    let (called, client) = (engine.clone(), Arc::clone(sim));
    let sim = Arc::clone(sim);
    let task = called.spawn(&client, async move {
        sim.sleep(sim.client_wait_ms()).await;
        let through = match engine.process.endpoint() {
            Some(endpoint) => facade::call(&sim, &endpoint, &engine, &action).await,
            None => None,
        };
        let again = match &action {
            _ if through.is_some() => through.unwrap_or(Again::No),
            Action::Create { session, merchant, units, currency, lifetime_seconds } => {
                let money = Money::new(*units, *currency);
                create(&sim, &engine, *session, *merchant, money, *lifetime_seconds).await
            }
            Action::Cancel { session, by_merchant } => cancel(&sim, &engine, *session, *by_merchant).await,
            Action::Assign { session } => assign(&sim, &engine, *session).await,
            Action::ActOnSession { session, action } => act_on_session(&sim, &engine, *session, *action).await,
            Action::Settle { session, agent, behavior } => settle(&sim, &engine, *session, *agent, *behavior).await,
            Action::Facilitate { agent, resource, units } => facilitate(&sim, &engine, *agent, *resource, *units).await,
            Action::PayWithWallet { request, units } => {
                pay_with_wallet(&sim, &engine, WalletRequest { number: *request, units: *units }).await
            }
            Action::Purchase { agent, resource, shown, seller, key, units } => {
                let (agent, resource, shown, units) = (*agent, *resource, *shown, *units);
                purchase(&sim, &engine, Purchase { agent, resource, shown, seller: *seller, key: *key, units }).await
            }
            Action::ChangeMerchant { merchant, change } => change_merchant(&sim, &engine, *merchant, *change).await,
            Action::Ownership { merchant, action } => act_on_ownership(&sim, &engine, *merchant, *action).await,
            Action::Manage { merchant, action } => manage(&sim, &engine, *merchant, *action).await,
            Action::CreateElsewhere { session, merchant, units, lifetime_seconds } => {
                let money = Money::new(*units, Currency::Hbd);
                create_elsewhere(&sim, &engine, *session, *merchant, money, *lifetime_seconds).await
            }
            Action::HandOver { session } => hand_over(&sim, &engine, *session).await,
            Action::Pay { .. } | Action::PayAgain { .. } | Action::Inject(_) | Action::CallFacade { .. } => Again::No,
        };
        let is_alone = sim.clients().end_call(number);
        if let Again::In(ms) = again
            && is_alone
        {
            sim.act_later(ms, action, tries + 1);
        }
    });
    client.clients().has_task(number, task);
}

/// Whether a step should be retried.
enum Again {
    No,
    In(u64),
}

// ---- merchants -------------------------------------------------------------------------------------------------------

/// Registers a merchant and its endpoint.
pub(crate) fn register(sim: &Arc<Simulation>, engine: Option<&Running>, merchant: usize) {
    let Some(engine) = engine.cloned() else {
        sim.register_later(1_000, merchant);
        return;
    };
    let (called, client) = (engine.clone(), Arc::clone(sim));
    // Merchants of a single engine wait without a limit.
    let number = sim
        .has_shared_store()
        .then(|| sim.clients().begin_call(Repeated::Registration(merchant), engine.process.number));
    let sim = Arc::clone(sim);
    let task = called.spawn(&client, async move {
        let name = format!("Shop {merchant}");
        let registration =
            Registration::check(&name, &account(merchant, false), None).expect("a name and an account of ours");
        let Ok(registered) = engine.merchants.register(registration, false).await else {
            if sim.clients().end_call(number) {
                sim.register_later(1_000, merchant);
            }
            return;
        };
        let update = Update { webhook_url: Some(Some(url_of(merchant))), ..Update::default() };
        let id = registered.merchant.id;
        while engine.merchants.update(id, update.clone()).await.is_err() {
            sim.sleep(1_000).await;
        }
        sim.event(Source::Merchant, "registered", None, merchant as u64, || format!("shop {merchant} registers"));
        let shop = Shop { id, api_key: registered.api_key, uses_other_account: false };
        let mut clients = sim.clients();
        clients.end_call(number);
        clients.merchants.insert(merchant, shop);
    });
    client.clients().has_task(number, task);
}

async fn change_merchant(sim: &Arc<Simulation>, engine: &Running, merchant: usize, change: MerchantChange) -> Again {
    let Some(shop) = sim.clients().merchants.get(&merchant).cloned() else { return Again::In(1_000) };
    let id = shop.id;
    let update = |update: Update| engine.merchants.update(id, update);
    let outcome = match change {
        MerchantChange::RotateSecret { grace_seconds } => {
            let grace = Duration::from_secs(grace_seconds);
            engine.merchants.rotate_webhook_secret(id, grace).await.map(drop)
        }
        MerchantChange::SwitchOff => engine.merchants.set_active(id, false).await.map(drop),
        MerchantChange::SwitchOn => engine.merchants.set_active(id, true).await.map(drop),
        MerchantChange::OtherAccount => {
            let name = account(merchant, !shop.uses_other_account);
            let hive_account = Some(AccountName::parse(&name).expect("a name of ours"));
            update(Update { hive_account, ..Update::default() }).await.map(drop)
        }
        MerchantChange::NoEndpoint => update(Update { webhook_url: Some(None), ..Update::default() }).await.map(drop),
        MerchantChange::Endpoint => {
            update(Update { webhook_url: Some(Some(url_of(merchant))), ..Update::default() }).await.map(drop)
        }
        MerchantChange::NoX402 => update(Update { x402_enabled: Some(false), ..Update::default() }).await.map(drop),
        MerchantChange::NewKey => match engine.merchants.reissue_api_key(id).await {
            Ok((_, key)) => {
                if let Some(shop) = sim.clients().merchants.get_mut(&merchant) {
                    shop.api_key = key;
                }
                Ok(())
            }
            Err(error) => Err(error),
        },
    };
    match outcome {
        Ok(()) => {
            if change == MerchantChange::OtherAccount
                && let Some(shop) = sim.clients().merchants.get_mut(&merchant)
            {
                shop.uses_other_account = !shop.uses_other_account;
            }
            if matches!(change, MerchantChange::RotateSecret { .. }) && sim.has_waiting_webhooks() {
                sim.mark("a secret is rotated between two attempts");
            }
            sim.event(Source::Merchant, "changed", None, merchant as u64, || format!("shop {merchant}: {change:?}"));
            Again::No
        }
        // It has what it asked for three times already.
        Err(EngineError::TooManySecrets { .. }) => Again::No,
        Err(error) => {
            call_failed(sim, "a change of a merchant", &error, None);
            sim.event(Source::Merchant, "change_fails", None, merchant as u64, || {
                format!("shop {merchant}: {change:?} fails: {error}")
            });
            Again::In(2_000)
        }
    }
}

async fn cancel(sim: &Arc<Simulation>, engine: &Running, session: u32, by_merchant: bool) -> Again {
    let Some(known) = sim.clients().sessions.get(&session).cloned() else { return Again::In(1_000) };
    let (by, response) = if by_merchant {
        (Canceller::Merchant, engine.payments.cancel(known.merchant, known.id).await)
    } else {
        // A customer uses the secret of the checkout URL.
        match engine.payments.by_slug(known.slug).await {
            Ok(payment) => (Canceller::Customer, engine.payments.cancel_checkout(payment.id).await),
            Err(_) => return Again::In(1_000),
        }
    };
    match response {
        Ok(payment) => {
            sim.observe(|observer| observer.responded(&Response::Cancelled(&payment)));
            sim.event(Source::Payer, "cancel_requested", Some(session), 0, || {
                format!("the {} of session {session} requests its cancellation", by.as_str())
            });
            Again::No
        }
        Err(EngineError::Rejected(rejection)) => {
            if sim.requires_outcome(session, RequiredOutcome::Cancelled) {
                sim.refuse(format!("session {session} is not cancelled: {rejection}"), Some(known.id));
            }
            sim.event(Source::Payer, "cancel_refused", Some(session), 0, || {
                format!("session {session} is not cancelled: {rejection}")
            });
            sim.mark("a cancel loses the race");
            Again::No
        }
        Err(error) => {
            call_failed(sim, "a cancellation", &error, Some(known.id));
            Again::In(1_000)
        }
    }
}

/// Assigns the oldest unmatched transfer to a session.
async fn assign(sim: &Arc<Simulation>, engine: &Running, session: u32) -> Again {
    let Some(known) = sim.clients().sessions.get(&session).cloned() else { return Again::In(1_000) };
    let merchant = match engine.payments.by_slug(known.slug).await {
        Ok(payment) => engine.merchants.get(payment.merchant).await,
        Err(error) => Err(error),
    };
    let Ok(merchant) = merchant else { return Again::In(1_000) };
    let unmatched = match engine.payments.unmatched(&merchant, None, 1_000).await {
        Ok(unmatched) => unmatched,
        // An unverified merchant requests its activation from the operator.
        Err(EngineError::NotProven { .. }) => {
            verify_by_operator(sim, engine, &merchant).await;
            return Again::In(1_000);
        }
        Err(_) => return Again::In(1_000),
    };
    let Some(oldest) = unmatched.rows.iter().rfind(|unmatched| unmatched.handling == Handling::Open) else {
        return Again::In(2_000);
    };
    let before = sim.observe(|observer| observer.proofs.keys());
    match engine.payments.assign(&merchant, oldest.transfer.position, known.id, "merchant".to_owned()).await {
        Ok(_) => {
            ownership::decided(sim, &merchant, &oldest.transfer.to, &before);
            sim.event(Source::Merchant, "assigned", Some(session), 0, || {
                format!("{} is assigned to session {session}", oldest.transfer.money)
            });
            sim.mark("a merchant assigns a transfer");
            Again::No
        }
        Err(EngineError::Rejected(_) | EngineError::TransferAssigned(_)) => Again::No,
        Err(EngineError::NotProven { .. }) => {
            verify_by_operator(sim, engine, &merchant).await;
            Again::In(1_000)
        }
        Err(error) => {
            call_failed(sim, "an assignment", &error, Some(known.id));
            Again::In(1_000)
        }
    }
}

/// Has the operator verify a merchant's account. A failure is retried at the next check.
async fn verify_by_operator(sim: &Arc<Simulation>, engine: &Running, merchant: &Merchant) {
    let owner = (merchant.id, merchant.hive_account);
    sim.observe(|observer| observer.proofs.operator_verifies(owner));
    if engine.merchants.vouch_for(merchant.id, Some(merchant.hive_account)).await.is_ok() {
        sim.observe(|observer| observer.proofs.operator_verified(owner));
    }
}
