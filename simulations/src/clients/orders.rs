//! Payments that merchants create, and the responses.

use engine::payment::{FeeMode, State};

use super::*;
use crate::options::FEE_ACCOUNT;

/// Returns the idempotency key of an order: every other shop sends one, so that a repetition creates nothing new.
fn key_of(session: u32) -> Option<IdempotencyKey> {
    let key = session.is_multiple_of(2).then(|| format!("order-{session}"));
    key.and_then(|key| IdempotencyKey::parse(&key).ok())
}

pub(super) async fn create(
    sim: &Arc<Simulation>,
    engine: &Running,
    session: u32,
    merchant: usize,
    amount: Money,
    lifetime_seconds: Option<u64>,
) -> Again {
    let Some(shop) = sim.clients().merchants.get(&merchant).cloned() else { return Again::In(1_000) };
    let record = match engine.merchants.authenticate(&shop.api_key).await {
        // The response with the new key was lost, but the operator can still find the merchant.
        Err(EngineError::Unauthenticated) => engine.merchants.get(shop.id).await,
        found => found,
    };
    let Ok(record) = record else { return Again::In(1_000) };
    drafts::try_order(sim, session, amount);
    let (draft, key) = (draft(session, amount, lifetime_seconds), key_of(session));
    let payment = match engine.payments.open(&record, draft.clone(), key.as_ref()).await {
        Ok(opened) => {
            if opened.is_replay {
                sim.mark("an idempotency key is reused");
            } else {
                check_order(sim, &record, &draft, &opened.payment);
            }
            if key.is_some() {
                sim.observe(|observer| observer.opens(session, opened.payment.id));
            }
            opened.payment
        }
        Err(error) => return not_created(sim, session, shop.id, &error),
    };
    sim.observe(|observer| observer.responded(&Response::Created(&payment)));
    if sim.loses_reply() {
        sim.event(Source::Merchant, "create_unanswered", Some(session), 0, || {
            format!("session {session} is created as {} and the response is lost", payment.id)
        });
        return Again::In(1_000);
    }
    sim.event(Source::Merchant, "created", Some(session), payment.amount.units, || {
        format!("shop {merchant} creates session {session} over {} until {}", payment.amount, payment.expires_at)
    });
    let known = Session::of(&payment);
    sim.observe(|observer| {
        if let Some(durable) = observer.payments.get_mut(&known.id) {
            durable.session = Some(session);
        }
    });
    sim.clients().sessions.insert(session, known);
    Again::No
}

/// Returns whether a limit of the operator refuses an order.
const fn is_limit(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::OnHold { .. }
            | EngineError::Quota(_)
            | EngineError::TooManyIdempotencyKeys
            | EngineError::HbdOffPeg
    )
}

/// Handles a failed creation. The model of the store checks the reason of a limit.
fn not_created(sim: &Arc<Simulation>, session: u32, merchant: MerchantId, error: &EngineError) -> Again {
    sim.event(Source::Merchant, "create_fails", Some(session), 0, || {
        format!("session {session} is not created: {error}")
    });
    if is_limit(error) {
        sim.clients().delayed.insert(session);
    }
    match error {
        EngineError::InactiveMerchant => return Again::No,
        EngineError::OnHold { .. } => {
            sim.mark("a merchant on hold is refused");
            sim.observe(|observer| {
                if observer.is_on_hold(merchant) {
                    observer.passes("limits-of-volume-hold");
                } else {
                    let text = format!("{merchant} is refused, and nobody is on hold");
                    observer.violate("limits-of-volume-hold", text, None);
                }
            });
            return Again::In(120_000);
        }
        EngineError::Quota(_) => sim.mark("a quota refuses a payment"),
        EngineError::TooManyIdempotencyKeys => sim.mark("a merchant has too many idempotency keys"),
        EngineError::HbdOffPeg => sim.mark("a payment is refused while HBD is off its peg"),
        _ if sim.is_sound() => sim.refuse(format!("session {session} is not created: {error}"), None),
        _ => return Again::In(1_500),
    }
    Again::In(30_000)
}

/// Checks a new payment against its order.
fn check_order(sim: &Simulation, merchant: &Merchant, draft: &Draft, payment: &Payment) {
    let settings = sim.engine_settings();
    let units = draft.amount.units;
    // A fee of 1.5 percent, rounded down.
    let fee_units = units * 15 / 1_000;
    let collects = sim.script.setup.split_fee && fee_units > 0 && payment.pay_to.as_str() != FEE_ACCOUNT;
    let fee_mode = if collects && fee_units < units {
        FeeMode::Split { account: AccountName::parse(FEE_ACCOUNT).expect("a name of ours") }
    } else {
        FeeMode::Invoice
    };
    let lives = payment.expires_at.since(payment.created_at);
    let is_right = [
        ("its amount", payment.amount == draft.amount),
        ("its merchant", payment.merchant == merchant.id && payment.pay_to == merchant.hive_account),
        ("its description", payment.description == draft.description),
        ("its metadata", payment.metadata == draft.metadata),
        ("its URLs", (&payment.redirect_url, &payment.cancel_url) == (&draft.redirect_url, &draft.cancel_url)),
        ("its fee", payment.quote.fee_units == fee_units && payment.quote.fee_mode == fee_mode),
        ("its lifetime", sim.may_give(draft.lifetime, payment.grace, lives)),
        ("its network", payment.livemode),
        ("its price", !(settings.hbd_peg.refuses && payment.quote.rate.is_some_and(|rate| rate.hbd.is_some()))),
        ("its state", payment.state == State::Pending && payment.sequence == 1 && payment.transfers.is_empty()),
    ];
    let wrong = is_right.iter().find(|(_, is_right)| !is_right);
    sim.observe(|observer| match wrong {
        Some((what, _)) => {
            let text = format!("{what} is not as ordered: {draft:?} gives {payment:?}");
            observer.violate("orders-are-as-made", text, Some(payment.id));
        }
        None => observer.passes("orders-are-as-made"),
    });
}
