//! Merchants that manage sessions: decisions, refunds, redelivered webhooks; and access to another's sessions.

use engine::{
    ids::{DeliveryId, EndpointId},
    payment::{Resolution, ResolutionKind},
    webhook::DeliveryRecord,
};
use storage::DeliveryQuery;

use super::*;
use crate::script::SessionAction;

/// The age up to which events are replayed, milliseconds.
const REPLAYED_MS: u64 = 20 * 86_400_000;

pub(super) async fn act_on_session(
    sim: &Arc<Simulation>,
    engine: &Running,
    session: u32,
    action: SessionAction,
) -> Again {
    let Some(known) = sim.clients().sessions.get(&session).cloned() else { return Again::In(5_000) };
    let engine = &management::handles_of(sim, engine, known.merchant);
    match action {
        SessionAction::Resolve => resolve(sim, engine, session, &known).await,
        SessionAction::Refund => refund(sim, engine, session, &known).await,
        SessionAction::Redeliver => redeliver(sim, engine, session, &known).await,
        SessionAction::ReplayWebhooks => replay_webhooks(sim, engine, session, &known).await,
        SessionAction::ReportWallet => report_wallet(sim, engine, session, &known).await,
        SessionAction::DeleteMetadata | SessionAction::DeleteNote => delete(sim, engine, session, &known, action).await,
        SessionAction::Watch => watches::watch_payment(sim, engine, known.id).await,
        SessionAction::AccessByOther => access_by_other(sim, engine, session, &known).await,
    }
}

async fn resolve(sim: &Arc<Simulation>, engine: &Running, session: u32, known: &Session) -> Again {
    let Ok(merchant) = engine.merchants.get(known.merchant).await else { return Again::In(1_000) };
    // Each kind in turn.
    let kind = ResolutionKind::ALL[usize::try_from((u64::from(session) + sim.now_ms() / 1_000) % 3).unwrap_or(0)];
    let before = engine.payments.get(known.merchant, known.id).await.ok();
    let owed_before = match &before {
        Some(before) => engine.payments.owed(before).await.ok(),
        None => None,
    };
    let decided = Resolution { kind, ..decision(sim, engine, "merchant") };
    match engine.payments.resolve(&merchant, known.id, decided).await {
        Ok(payment) => {
            let owed = engine.payments.owed(&payment).await.ok();
            let is_next =
                before.is_some_and(|before| before.version + 1 == payment.version && before.accepted.is_none());
            sim.observe(|observer| {
                if payment.resolution.as_ref().is_none_or(|stored| stored.kind != kind) {
                    let text = format!("{kind:?} was decided, and {:?} is returned", payment.resolution);
                    observer.violate("acknowledged-decision-sticks", text, Some(known.id));
                }
                if is_next && kind != ResolutionKind::Accepted && owed.is_some() && owed_before.is_some() {
                    if owed == owed_before {
                        observer.passes("only-acceptance-keeps-money");
                    } else {
                        let text = format!("{owed_before:?} was owed before {kind:?} was decided, and {owed:?} is");
                        observer.violate("only-acceptance-keeps-money", text, Some(known.id));
                    }
                }
            });
            sim.observe(|observer| observer.responded(&Response::Resolved(&payment)));
            if let Some(owed) = &owed {
                sim.observe(|observer| observer.responded(&Response::Owed { payment: &payment, owed }));
            }
            sim.mark("a merchant decides about an exception");
            sim.event(Source::Merchant, "resolved", Some(session), 0, || {
                format!("the merchant decides about session {session}")
            });
            Again::No
        }
        Err(EngineError::Rejected(_)) => Again::No,
        Err(error) => {
            call_failed(sim, "a decision", &error, Some(known.id));
            Again::In(2_000)
        }
    }
}

fn decision(sim: &Arc<Simulation>, engine: &Running, by: &str) -> Resolution {
    Resolution {
        kind: ResolutionKind::Accepted,
        by: by.to_owned(),
        at: sim.wall_of(&engine.process),
        note: "by telephone".to_owned(),
        tx_id: None,
    }
}

/// Requests the plan of a refund, and executes it with the merchant's wallet.
async fn refund(sim: &Arc<Simulation>, engine: &Running, session: u32, known: &Session) -> Again {
    let Ok(payment) = engine.payments.get(known.merchant, known.id).await else { return Again::In(2_000) };
    let Ok(owed) = engine.payments.owed(&payment).await else { return Again::In(2_000) };
    sim.observe(|observer| observer.responded(&Response::Owed { payment: &payment, owed: &owed }));
    let Ok(plan) = payment.refund_plan(&owed, None, None) else { return Again::No };
    sim.observe(|observer| observer.responded(&Response::Planned { payment: &payment, plan: &plan }));
    let sent = {
        let mut hive = sim.hive();
        let from = plan.from.to_string();
        let transfer = Hive::transfer(&from, plan.to.as_str(), plan.money.units, plan.money.currency, &plan.memo);
        let transaction = hive.transaction(&from, vec![transfer], Duration::from_secs(60));
        hive.chain.broadcast(transaction).is_ok()
    };
    if sent {
        sim.mark("a merchant sends a refund");
    }
    sim.event(Source::Merchant, "refunds", Some(session), plan.money.units, || {
        format!("the merchant sends {} of session {session} back to {}", plan.money, plan.to)
    });
    Again::No
}

/// The checkout page reports that the customer opened a wallet.
async fn report_wallet(sim: &Arc<Simulation>, engine: &Running, session: u32, known: &Session) -> Again {
    match engine.payments.report_wallet(known.id).await {
        Ok(payment) => {
            let is_stored = sim.observe(|observer| {
                let durable = observer.payments.get(&known.id).map(|known| known.payment.wallet_opened_at);
                payment.wallet_opened_at.is_some() && durable == Some(payment.wallet_opened_at)
            });
            sim.observe(|observer| {
                if is_stored {
                    observer.passes("wallet-reports-are-kept");
                } else {
                    let text = "a report of an opened wallet was acknowledged and is not durable".to_owned();
                    observer.violate("wallet-reports-are-kept", text, Some(known.id));
                }
            });
            sim.mark("a wallet is reported");
            sim.event(Source::Payer, "wallet", Some(session), 0, || {
                format!("a wallet is opened for session {session}")
            });
            Again::No
        }
        Err(EngineError::Rejected(_)) => Again::No,
        Err(_) => Again::In(1_000),
    }
}

/// Deletes the metadata of a session, or the note of the decision about it.
async fn delete(
    sim: &Arc<Simulation>,
    engine: &Running,
    session: u32,
    known: &Session,
    action: SessionAction,
) -> Again {
    sim.observe(|observer| observer.deletions.insert(known.id));
    let answer = match action {
        SessionAction::DeleteNote => engine.payments.delete_note(known.merchant, known.id).await,
        _ => engine.payments.delete_metadata(known.merchant, known.id).await,
    };
    match answer {
        Ok(payment) => {
            let note = |payment: &Payment| payment.resolution.as_ref().is_some_and(|one| !one.note.is_empty());
            let is_left = |payment: &Payment| match action {
                SessionAction::DeleteNote => note(payment),
                _ => !payment.metadata.is_empty(),
            };
            let is_kept = sim.observe(|observer| {
                let durable =
                    observer.payments.get(&known.id).filter(|durable| durable.payment.version == payment.version);
                is_left(&payment) || durable.is_some_and(|durable| is_left(&durable.payment))
            });
            sim.observe(|observer| {
                if is_kept {
                    observer.violate("deletions-are-due", "what was deleted is still there".to_owned(), Some(known.id));
                } else {
                    observer.passes("deletions-are-due");
                }
            });
            sim.mark("a merchant deletes metadata or a note");
            sim.event(Source::Merchant, "deletes", Some(session), 0, || format!("{action:?} of session {session}"));
            Again::No
        }
        Err(EngineError::Rejected(_)) => Again::No,
        Err(_) => Again::In(2_000),
    }
}

async fn deliveries_of(engine: &Running, merchant: MerchantId, payment: PaymentId) -> Option<Vec<DeliveryRecord>> {
    let query = DeliveryQuery {
        merchant,
        before: None,
        limit: 20,
        states: Vec::new(),
        event: None,
        payment: Some(payment),
        endpoint: None,
    };
    engine.webhooks.deliveries(query).await.ok().map(|page| page.items)
}

async fn redeliver(sim: &Arc<Simulation>, engine: &Running, session: u32, known: &Session) -> Again {
    let Some(found) = deliveries_of(engine, known.merchant, known.id).await else { return Again::In(2_000) };
    let Some(newest) = found.first() else { return Again::No };
    match engine.webhooks.redeliver(known.merchant, newest.delivery.id, None).await {
        Ok(_) => {
            sim.mark("an event is redelivered on request");
            sim.event(Source::Merchant, "redelivers", Some(session), 0, || {
                format!("the merchant redelivers the newest event of session {session}")
            });
            Again::No
        }
        Err(EngineError::NoEndpoint | EngineError::EventForgotten | EngineError::EndpointNotFound) => Again::No,
        Err(error) => {
            call_failed(sim, "a redelivery", &error, Some(known.id));
            Again::In(2_000)
        }
    }
}

/// Enables the endpoint, and replays what it missed.
async fn replay_webhooks(sim: &Arc<Simulation>, engine: &Running, session: u32, known: &Session) -> Again {
    replays::check_limits(sim, engine);
    let since = engine.now().minus(Duration::from_millis(REPLAYED_MS));
    let mut undelivered = Vec::new();
    let response = match engine.webhooks.enable_endpoint(known.merchant, EndpointId::default_of(known.merchant)).await {
        Ok(_) => {
            undelivered = replays::undelivered(sim, known.merchant, since);
            engine.webhooks.replay(known.merchant, None, since).await
        }
        Err(error) => Err(error),
    };
    match response {
        Ok(replayed) => {
            replays::check(sim, &undelivered, replayed);
            if replayed.count > 0 {
                sim.mark("undelivered events are replayed");
            }
            sim.event(Source::Merchant, "replays", Some(session), replayed.count as u64, || {
                format!("the merchant of session {session} replays {} events", replayed.count)
            });
            Again::No
        }
        Err(EngineError::NoEndpoint) => Again::No,
        Err(error) => {
            call_failed(sim, "a replay of webhooks", &error, Some(known.id));
            Again::In(2_000)
        }
    }
}

/// Another merchant uses the session's ids wherever a call takes one.
async fn access_by_other(sim: &Arc<Simulation>, engine: &Running, session: u32, known: &Session) -> Again {
    let other = sim.clients().merchants.values().map(|shop| shop.id).find(|id| *id != known.merchant);
    let Some(other) = other else { return Again::No };
    let Ok(outsider) = engine.merchants.get(other).await else { return Again::In(1_000) };
    let delivery = sim.observe(|observer| observer.delivery_of(known.id)).unwrap_or(DeliveryId::from_bits(1));
    let mut allowed = Vec::new();
    let mut tried = |call: &'static str, is_allowed: bool| is_allowed.then(|| allowed.push(call));
    tried("read the payment", engine.payments.get(other, known.id).await.is_ok());
    tried("cancel the payment", engine.payments.cancel(other, known.id).await.is_ok());
    tried(
        "resolve the payment",
        engine.payments.resolve(&outsider, known.id, decision(sim, engine, "outsider")).await.is_ok(),
    );
    let seen = deliveries_of(engine, other, known.id).await.is_some_and(|found| !found.is_empty());
    tried("list the deliveries", seen);
    tried("read a delivery", engine.webhooks.delivery(other, delivery).await.is_ok());
    tried("send a delivery again", engine.webhooks.redeliver(other, delivery, None).await.is_ok());
    // The same order number in two shops is two orders.
    let key = IdempotencyKey::parse(&format!("order-{session}")).expect("a key of ours");
    let opened = engine.payments.open(&outsider, draft(session, known.amount, None), Some(&key)).await;
    let is_anothers = opened.is_ok_and(|opened| {
        sim.observe(|observer| observer.responded(&Response::Created(&opened.payment)));
        opened.payment.merchant != other
    });
    tried("have its order number answered with the payment", is_anothers);
    sim.mark("a merchant calls with another's ids");
    sim.event(Source::Merchant, "calls_with_others_ids", Some(session), 0, || {
        format!("another merchant uses the ids of session {session} in every call")
    });
    sim.observe(|observer| match allowed.first() {
        Some(call) => observer.violate("shops-are-apart", format!("another merchant may {call}"), Some(known.id)),
        None => observer.passes("shops-are-apart"),
    });
    Again::No
}
