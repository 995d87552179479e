//! Merchants that manage their keys, events and accounts, and the operator.

use engine::{
    audit::Actor,
    billing::{RawTier, Tiers},
    compliance::Thresholds,
    ids::EndpointId,
    merchant::{KeyRejection, Scope, Scopes},
    payment::State,
    webhook::{Delivery, EndpointDraft, EndpointUpdate, EventType, RawEndpointUpdate, Subscriptions, Trigger},
};

use super::{ownership::sign_proof, reads, watches, *};
use crate::{client_state::GivenKey, receivers::second_url_of, script::ManagementAction};

/// The overlap of a rolled key and its successor.
const OVERLAP: Duration = Duration::from_secs(600);

/// Returns the handles of a merchant's requests, so that the audit log names it.
pub(super) fn handles_of(sim: &Simulation, engine: &Running, merchant: MerchantId) -> Running {
    let key = sim
        .observe(|observer| observer.merchants.get(&merchant).and_then(|known| known.keys.first()).map(|key| key.id));
    engine.by(Actor { merchant: Some(merchant), key, ip: Some("192.0.2.7".to_owned()) })
}

pub(super) async fn manage(
    sim: &Arc<Simulation>,
    engine: &Running,
    merchant: usize,
    action: ManagementAction,
) -> Again {
    let Some(id) = sim.clients().merchants.get(&merchant).map(|shop| shop.id) else { return Again::In(1_000) };
    let own = handles_of(sim, engine, id);
    // The operator acts with an administrator's key of another merchant.
    let administrator = sim.clients().merchants.get(&0).map_or(id, |shop| shop.id);
    let operator = &handles_of(sim, engine, administrator);
    let outcome = match action {
        ManagementAction::SendTest => send_test(sim, &own, id).await,
        ManagementAction::Subscribe => subscribe(sim, &own, id).await,
        ManagementAction::ManageEndpoint => manage_endpoint(sim, &own, id, merchant).await,
        ManagementAction::Read => return reads::read_records(sim, &own, id).await,
        ManagementAction::WatchEvents => return watches::watch_events(sim, &own, id).await,
        ManagementAction::CreateKey => create_key(sim, &own, id).await,
        ManagementAction::RevokeKey => revoke_key(sim, &own, id).await,
        ManagementAction::RollKey => roll_key(sim, &own, id).await,
        ManagementAction::UseKeys => return use_keys(sim, engine, id).await,
        ManagementAction::ProveBySignature => return sign_proof(sim, &own, id).await,
        ManagementAction::CancelAccountChange => cancel_change(sim, &own, id).await,
        ManagementAction::PayInvoice => pay_invoice(sim, &own, id).await,
        ManagementAction::ClearHold => clear_hold(sim, operator, id).await,
        ManagementAction::SetLimits => set_limits(sim, operator, id).await,
        ManagementAction::SetFeeTiers => set_fee_tiers(sim, operator).await,
        ManagementAction::MakeInvoices => make_invoices(sim, operator).await,
    };
    sim.event(Source::Merchant, "manages", None, merchant as u64, || match &outcome {
        Ok(()) => format!("merchant {merchant}: {action:?}"),
        Err(error) => format!("merchant {merchant}: {action:?} fails: {error}"),
    });
    match outcome {
        Err(EngineError::Overloaded | EngineError::StoreFailed | EngineError::LedgerUnavailable) => Again::In(2_000),
        _ => Again::No,
    }
}

// ---- events ----------------------------------------------------------------------------------------------------------

async fn send_test(sim: &Arc<Simulation>, engine: &Running, id: MerchantId) -> Result<(), EngineError> {
    let number = usize::try_from(sim.now_ms() / 1_000).unwrap_or(0);
    let kind = EventType::ALL[number % EventType::ALL.len()];
    let status = State::ALL[number / 7 % State::ALL.len()];
    let key = (number % 2 == 0).then(|| IdempotencyKey::parse(&format!("test-{number}")).expect("a key of ours"));
    let to = EndpointId::default_of(id);
    let sent = engine.webhooks.send_test(id, to, (kind, status), key.as_ref()).await?;
    let delivery = &sent.logged.delivery;
    let is_right = (delivery.merchant, delivery.trigger) == (id, Trigger::Test);
    let again = match &key {
        Some(key) => Some(engine.webhooks.send_test(id, to, (kind, status), Some(key)).await?),
        None => None,
    };
    let is_repeated = again.is_none_or(|again| again.is_replay && again.logged.delivery.id == delivery.id);
    sim.mark("a test event is sent");
    sim.observe(|observer| {
        if is_right && is_repeated && (!sent.is_replay || key.is_some()) {
            observer.passes("tests-are-sent-once");
        } else {
            let text = format!("a test event is {:?}, repeated under its key: {is_repeated}", sent.logged);
            observer.violate("tests-are-sent-once", text, None);
        }
    });
    Ok(())
}

async fn subscribe(sim: &Arc<Simulation>, engine: &Running, id: MerchantId) -> Result<(), EngineError> {
    let has_all = sim.observe(|observer| {
        let known = observer.merchants.get(&id).map(|merchant| merchant.webhook_events);
        known.is_some_and(|events| events.has(EventType::Exception))
    });
    let all: Vec<String> = EventType::ALL.iter().map(|kind| kind.as_str().to_owned()).collect();
    let wanted = if has_all { Subscriptions::default() } else { Subscriptions::check(&all).expect("types of ours") };
    let updated = engine.merchants.update(id, Update { webhook_events: Some(wanted), ..Update::default() }).await?;
    sim.observe(|observer| {
        if updated.webhook_events == wanted {
            observer.passes("subscriptions-decide");
        } else {
            observer.violate("subscriptions-decide", format!("{id} is subscribed to something else"), None);
        }
    });
    Ok(())
}

/// Creates a second endpoint; or changes, tests, enables or deletes the one that the merchant has.
async fn manage_endpoint(
    sim: &Arc<Simulation>,
    engine: &Running,
    id: MerchantId,
    merchant: usize,
) -> Result<(), EngineError> {
    let number = sim.now_ms() / 1_000;
    let known = sim.observe(|observer| observer.merchants.get(&id).and_then(|known| known.endpoints.first().cloned()));
    let events = match number % 3 {
        0 => vec![EventType::Exception.as_str().to_owned()],
        1 => vec![EventType::StatusChanged.as_str().to_owned(), EventType::RefundCompleted.as_str().to_owned()],
        _ => vec![EventType::TransferUnmatched.as_str().to_owned(), EventType::X402Settled.as_str().to_owned()],
    };
    let Some(endpoint) = known else {
        let url = second_url_of(merchant, "books");
        let draft = EndpointDraft::check(&url, "the books", &events, false).expect("an endpoint of ours");
        engine.merchants.create_endpoint(id, draft).await?;
        sim.mark("a second endpoint is created");
        return Ok(());
    };
    let update = |raw: RawEndpointUpdate| EndpointUpdate::check(raw, false).expect("an update of ours");
    match number % 7 {
        0 | 1 => {
            let raw = RawEndpointUpdate { events: Some(events), ..RawEndpointUpdate::default() };
            engine.merchants.update_endpoint(id, endpoint.id, update(raw)).await?;
        }
        2 => {
            let is_enabled = Some(!endpoint.is_enabled);
            let raw = RawEndpointUpdate { is_enabled, ..RawEndpointUpdate::default() };
            engine.merchants.update_endpoint(id, endpoint.id, update(raw)).await?;
            sim.mark("a second endpoint is switched off or on");
        }
        3 => {
            let url = Some(second_url_of(merchant, &format!("books-{number}")));
            let raw = RawEndpointUpdate { url, ..RawEndpointUpdate::default() };
            engine.merchants.update_endpoint(id, endpoint.id, update(raw)).await?;
            let grace = Duration::from_secs(number % 2 * 600);
            engine.merchants.rotate_endpoint_secret(id, endpoint.id, grace).await?;
        }
        4 => {
            engine.merchants.delete_endpoint(id, endpoint.id).await?;
            sim.mark("a second endpoint is deleted");
        }
        5 => {
            let event = (EventType::StatusChanged, State::Completed);
            let sent = engine.webhooks.send_test(id, endpoint.id, event, None).await?;
            check_test(sim, &sent.logged.delivery, endpoint.id);
        }
        _ => {
            engine.webhooks.enable_endpoint(id, endpoint.id).await?;
            let since = engine.now().minus(Duration::from_secs(3_600));
            engine.webhooks.replay(id, Some(endpoint.id), since).await?;
        }
    }
    Ok(())
}

/// Checks that a test event is sent to the endpoint that it tests.
fn check_test(sim: &Simulation, delivery: &Delivery, endpoint: EndpointId) {
    sim.observe(|observer| {
        if (delivery.endpoint, delivery.trigger) == (endpoint, Trigger::Test) {
            observer.passes("tests-are-sent-once");
        } else {
            observer.violate("tests-are-sent-once", format!("a test of {endpoint} is {delivery:?}"), None);
        }
    });
}

// ---- keys ------------------------------------------------------------------------------------------------------------

async fn create_key(sim: &Arc<Simulation>, engine: &Running, id: MerchantId) -> Result<(), EngineError> {
    let wanted = match sim.now_ms() / 1_000 % 3 {
        0 => vec![Scope::PaymentsRead],
        1 => vec![Scope::PaymentsRead, Scope::PaymentsWrite],
        _ => vec![Scope::MerchantWrite, Scope::MerchantPayout],
    };
    let words: Vec<String> = wanted.iter().map(|scope| scope.as_str().to_owned()).collect();
    let scopes = Scopes::parse(&words).expect("scopes of ours");
    let (key, text) = engine.merchants.create_api_key(id, "till", scopes).await?;
    let is_right =
        key.scopes == scopes && key.name == "till" && text.ends_with(&key.last4) && text.starts_with(&key.prefix);
    sim.observe(|observer| {
        if is_right {
            observer.passes("keys-are-valid-until-they-end");
        } else {
            observer.violate("keys-are-valid-until-they-end", format!("a new key of {id} is {key:?}"), None);
        }
    });
    sim.clients().keys.push(GivenKey { merchant: id, id: key.id, text, scopes: words });
    Ok(())
}

/// Returns an issued key of a merchant that may still be valid.
fn own_key(sim: &Simulation, id: MerchantId) -> Option<GivenKey> {
    let given: Vec<GivenKey> = sim.clients().keys.iter().filter(|key| key.merchant == id).cloned().collect();
    sim.observe(|observer| {
        let merchant = observer.merchants.get(&id)?;
        given.into_iter().find(|given| merchant.keys.iter().any(|key| key.id == given.id))
    })
}

async fn revoke_key(sim: &Arc<Simulation>, engine: &Running, id: MerchantId) -> Result<(), EngineError> {
    let Some(given) = own_key(sim, id) else { return Ok(()) };
    let revoked = engine.merchants.revoke_api_key(id, given.id).await;
    if matches!(revoked, Err(EngineError::Key(KeyRejection::NotFound))) {
        let now = sim.wall_of(&engine.process);
        sim.observe(|observer| {
            // It may have expired, or an earlier call may have revoked it.
            let is_valid = observer.key_state(id, given.id).is_some_and(|end| end.is_none_or(|end| end > now));
            if is_valid {
                observer.violate("keys-are-valid-until-they-end", format!("a key of {id} cannot be revoked"), None);
            }
        });
    }
    revoked?;
    sim.mark("an API key is revoked");
    let is_open = engine.merchants.authenticate_key(&given.text).await.is_ok();
    sim.observe(|observer| {
        if is_open {
            let text = format!("a revoked key of {id} is accepted");
            observer.violate("keys-are-valid-until-they-end", text, None);
        }
    });
    Ok(())
}

async fn roll_key(sim: &Arc<Simulation>, engine: &Running, id: MerchantId) -> Result<(), EngineError> {
    let Some(given) = own_key(sim, id) else { return Ok(()) };
    let is_allowed = sim.engine_settings().key_roll;
    let rolled = engine.merchants.roll_api_key(id, given.id, OVERLAP).await;
    let is_as_set = matches!(rolled, Err(EngineError::NoKeyRoll)) != is_allowed;
    sim.observe(|observer| {
        if is_as_set {
            observer.passes("keys-are-valid-until-they-end");
        } else {
            let text = format!("keys may be rolled: {is_allowed}, and one is: {}", rolled.is_ok());
            observer.violate("keys-are-valid-until-they-end", text, None);
        }
    });
    let (key, text, valid_until) = rolled?;
    let old = sim.observe(|observer| observer.key_state(id, given.id));
    let is_ending = valid_until.is_some() && old.is_none_or(|end| end.is_some() && end <= valid_until);
    sim.observe(|observer| {
        if !is_ending {
            let text = format!("a rolled key is valid until {old:?}, and was to be until {valid_until:?}");
            observer.violate("keys-are-valid-until-they-end", text, None);
        }
    });
    sim.mark("an API key is rolled");
    sim.clients().keys.push(GivenKey { merchant: id, id: key.id, text, scopes: given.scopes });
    Ok(())
}

/// Uses every key that was ever issued to a merchant: only the valid ones are accepted.
async fn use_keys(sim: &Arc<Simulation>, engine: &Running, id: MerchantId) -> Again {
    let given: Vec<GivenKey> = sim.clients().keys.iter().filter(|key| key.merchant == id).cloned().collect();
    for key in given {
        let before = sim.observe(|observer| observer.key_state(id, key.id));
        let now = engine.now();
        let found = engine.merchants.authenticate_key(&key.text).await;
        let after = sim.observe(|observer| observer.key_state(id, key.id));
        if before != after {
            continue;
        }
        let is_valid = before.is_some_and(|end| end.is_none_or(|end| now < end));
        let is_over_now = before.flatten().is_some_and(|end| engine.now() >= end);
        let flaw = match found {
            Ok((merchant, stored)) => {
                let scopes: Vec<_> = stored.scopes.iter().map(|scope| scope.as_str().to_owned()).collect();
                let is_right = is_valid && merchant.id == id && stored.id == key.id && scopes == key.scopes;
                (!is_right)
                    .then(|| format!("a key that is valid until {before:?} has created {} as {stored:?}", merchant.id))
            }
            Err(EngineError::Unauthenticated) => {
                (is_valid && !is_over_now).then(|| format!("a valid key of {id} is refused"))
            }
            Err(_) => None,
        };
        sim.observe(|observer| match flaw {
            Some(text) => observer.violate("keys-are-valid-until-they-end", text, None),
            None => observer.passes("keys-are-valid-until-they-end"),
        });
    }
    Again::No
}

// ---- accounts and invoices -------------------------------------------------------------------------------------------

async fn cancel_change(sim: &Arc<Simulation>, engine: &Running, id: MerchantId) -> Result<(), EngineError> {
    engine.merchants.cancel_account_change(id).await?;
    sim.mark("a change of an account is cancelled");
    Ok(())
}

/// Has the oldest unpaid invoice of a merchant paid by its payer.
async fn pay_invoice(sim: &Arc<Simulation>, engine: &Running, id: MerchantId) -> Result<(), EngineError> {
    let summary = engine.operations.billing_summary(id).await?;
    let unpaid = summary.periods.iter().rev().find_map(|period| {
        let invoice = period.invoice.as_ref().filter(|invoice| invoice.paid_at.is_none())?;
        invoice.session.as_ref().map(|(session, _)| *session)
    });
    let Some(session) = unpaid else { return Ok(()) };
    let payment = engine.payments.any(session).await?;
    let from = payer(1);
    let tx_id = {
        let mut hive = sim.hive();
        let memo = memo_of(payment.id);
        let transfer =
            Hive::transfer(&from, payment.pay_to.as_str(), payment.amount.units, payment.amount.currency, &memo);
        let transaction = hive.transaction(&from, vec![transfer], Duration::from_secs(60));
        let tx_id = hive.id_of(&transaction);
        hive.chain.broadcast(transaction).is_ok().then_some(tx_id)
    };
    sim.observe(|observer| {
        if let Some(tx_id) = tx_id {
            observer.intents.insert(tx_id, Some(payment.id));
            observer.own_broadcasts.insert(tx_id);
            observer.ever_accepted.insert(tx_id);
        }
    });
    Ok(())
}

// ---- the operator ----------------------------------------------------------------------------------------------------

async fn clear_hold(sim: &Arc<Simulation>, engine: &Running, id: MerchantId) -> Result<(), EngineError> {
    let was_on_hold = sim.observe(|observer| observer.has_hold(id));
    let report = engine.merchants.clear_compliance(id, "operator".to_owned(), "verified".to_owned(), None).await?;
    if was_on_hold {
        sim.mark("a compliance hold is lifted");
    }
    reads::check_report(sim, engine, id, &report);
    Ok(())
}

async fn set_limits(sim: &Arc<Simulation>, engine: &Running, id: MerchantId) -> Result<(), EngineError> {
    let has_own =
        sim.observe(|observer| observer.model.compliance.get(&id).is_some_and(|status| status.limits.is_some()));
    let limits = Thresholds { single_cents: 200_000, daily_cents: 500_000, monthly_cents: 900_000 };
    let report = engine.merchants.limit_compliance(id, (!has_own).then_some(limits)).await?;
    reads::check_report(sim, engine, id, &report);
    Ok(())
}

async fn set_fee_tiers(sim: &Arc<Simulation>, engine: &Running) -> Result<(), EngineError> {
    let number = u32::try_from(sim.now_ms() / 60_000 % 5).unwrap_or(0);
    let tier =
        |min_cents, max_cents, percent_ten_thousandths| RawTier { min_cents, max_cents, percent_ten_thousandths };
    let first = 100 * (1 + u64::from(number)) * 37;
    let raw = [
        tier(0, Some(first), 15_000 + number),
        tier(first + 1, Some(40_000), 12_345),
        tier(40_001, None, 9_000 - 1_000 * number),
    ];
    let tiers = Tiers::check(&raw).expect("tiers of ours");
    let schedule = engine.operations.set_fee_tiers(tiers.clone()).await?;
    sim.mark("the fee tiers are replaced");
    sim.observe(|observer| {
        if schedule.tiers == tiers {
            observer.passes("invoices-follow-from-usage");
        } else {
            observer.violate("invoices-follow-from-usage", format!("{tiers} were set, not {}", schedule.tiers), None);
        }
    });
    Ok(())
}

async fn make_invoices(sim: &Arc<Simulation>, engine: &Running) -> Result<(), EngineError> {
    let made = engine.operations.generate_invoices(None).await?;
    if !made.periods.is_empty() {
        sim.mark("the operator makes invoices");
    }
    Ok(())
}
