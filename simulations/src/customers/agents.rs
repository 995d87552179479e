//! Agents at work: they sign, hand in, ask again until they have an answer, and try what they should not.

use super::{
    clients::{settle_payment, verify_payment},
    *,
};

/// Returns an agent's payment for a session, which it makes once.
fn payload(world: &Arc<World>, session: u32, number: usize, trick: Trick) -> Option<Payload> {
    let (known, made) = {
        let people = world.people();
        (people.sessions.get(&session).cloned(), people.payloads.get(&(session, number)).cloned())
    };
    let known = known?;
    if made.is_some() {
        return made;
    }
    let from = if trick == Trick::Poor { POOR.to_owned() } else { agent(number) };
    let nonce = format!("{:032x}", u128::from(session) << 32 | number as u128);
    let memo = if trick == Trick::NonceMemo { format!("x402:{nonce}") } else { memo_of(known.id) };
    let fee_units = known.fee.as_ref().map_or(0, |(_, units)| *units);
    let mut units = known.amount.units - fee_units;
    if trick == Trick::TooLittle {
        units = (units / 2).max(1);
    }
    let currency = match (trick, known.amount.currency) {
        (Trick::OtherCurrency, Currency::Hbd) => Currency::Hive,
        (Trick::OtherCurrency, Currency::Hive) => Currency::Hbd,
        (_, currency) => currency,
    };
    let lives = if trick == Trick::Expiring { Duration::from_secs(3) } else { Duration::from_secs(75) };
    let mut transfers = vec![Hive::transfer(&from, known.pay_to.as_str(), units, currency, &memo)];
    if let Some((collector, units)) = &known.fee {
        let memo = format!("fee-{}", known.id);
        transfers.push(Hive::transfer(&from, collector, *units, currency, &memo));
    }
    let transaction = world.hive().transaction(&from, transfers, lives);
    let tx_id = world.hive().id_of(&transaction);
    world.observe(|observer| {
        let intent = (trick != Trick::NonceMemo).then_some(known.id);
        observer.intents.insert(tx_id, intent);
    });
    let payload = PaymentPayload { version: Version::V1, transaction, nonce, identifier: None, accepted: None };
    let made = Payload { payload, tx_id };
    world.people().payloads.insert((session, number), made.clone());
    Some(made)
}

pub(super) async fn settle(world: &Arc<World>, gateway: &Gateway, session: u32, number: usize, trick: Trick) -> Again {
    if trick == Trick::Public {
        return show_public(world, gateway, session, number).await;
    }
    let for_session = match trick {
        Trick::Replay { of } => of,
        _ => session,
    };
    let target = world.people().sessions.get(&session).map(|known| known.id);
    let Some((target, made)) = target.zip(payload(world, for_session, number, trick)) else { return Again::In(2_000) };
    if trick == Trick::OwnBroadcast {
        broadcast_oneself(world, session, &made.payload.transaction, made.tx_id);
    }
    let request = X402Request { target: Target::Session(target), payload: made.payload.clone() };
    if trick == Trick::Twice {
        let (world, gateway, request) = (Arc::clone(world), gateway.clone(), request.clone());
        tokio::spawn(async move {
            if let Ok(settled) = settle_payment(&world, &gateway, number, &request).await {
                let answer = Answer::Settled { payment: target, settled: &settled };
                world.observe(|observer| observer.answers(&answer));
            }
        });
    }
    if world.verifies_first() {
        // Verifying changes nothing, whatever it says.
        let is_open = is_open(world, gateway, target);
        let verdict = verify_payment(world, gateway, number, &request).await;
        world.observe(|observer| match (&verdict, is_open) {
            (Ok(()), false) => {
                let text = "a payment is verified for a session that takes none".to_owned();
                observer.violate("verified-is-open", text, Some(target));
            }
            _ => observer.passes("verified-is-open"),
        });
        world.event(Lane::Payer, "verified", Some(session), u64::from(verdict.is_ok()), || {
            format!("agent {number} asks whether it can pay session {session}: {}", shown(&verdict))
        });
    }
    for ask in 0..MAX_ASKS {
        let answer = settle_payment(world, gateway, number, &request).await;
        if let Ok(settled) = &answer {
            let answer = Answer::Settled { payment: target, settled };
            world.observe(|observer| observer.answers(&answer));
        }
        if world.loses_reply() {
            world.sleep(1_000).await;
            continue;
        }
        let refusal = match &answer {
            Ok(_) => None,
            Err(X402Error::Unavailable(_)) => Some((Reason::UnexpectedSettleError, true)),
            Err(X402Error::Refused(refused)) => Some((
                refused.reason,
                matches!(
                    refused.reason,
                    Reason::SettlementPending | Reason::UnexpectedSettleError | Reason::UnexpectedVerifyError
                ),
            )),
        };
        if let Some((reason, _)) = refusal {
            world.mark(reason.word());
        }
        let told = refusal.map_or(0, |(reason, _)| reason as u64 + 1);
        let verdict = answer.map(drop);
        world.event(Lane::Payer, "settles", Some(session), told, || {
            format!("agent {number} pays session {session}: {}", shown(&verdict))
        });
        match refusal {
            None => {
                world.people().settled += 1;
                world.mark("an agent's payment settles");
                return Again::No;
            }
            Some((Reason::SettlementPending, _)) if ask == 0 => world.mark("a settlement is pending"),
            Some((_, true)) => {}
            Some((reason, false)) => {
                if world.is_plain(session, Plain::Settled) {
                    world.refuse(format!("an honest agent is refused: {}", reason.word()), Some(target));
                }
                let is_own = !matches!(trick, Trick::Replay { .. });
                if is_own && reason != Reason::DuplicateSettlement {
                    world.observe(|observer| {
                        observer.refused.insert(made.tx_id);
                    });
                }
                if reason == Reason::DuplicateSettlement {
                    world.mark("a second settlement is refused");
                }
                return Again::No;
            }
        }
        world.sleep(2_000).await;
    }
    Again::No
}

/// Says whether a session waits for money now, as it is durable.
fn is_open(world: &Arc<World>, gateway: &Gateway, target: PaymentId) -> bool {
    let now = gateway.now();
    world.observe(|observer| {
        let payment = observer.payments.get(&target).map(|known| &known.payment);
        payment.is_none_or(|payment| {
            payment.state == engine::payment::State::Pending
                && now <= payment.expires_at + payment.grace
                && payment.undecided_cancellation().is_none()
        })
    })
}

/// Takes a transaction that paid a session from the chain, and shows it without its signatures and beside another nonce: at
/// the session, and at another one.
async fn show_public(world: &Arc<World>, gateway: &Gateway, session: u32, number: usize) -> Again {
    let Some(target) = world.people().sessions.get(&session).map(|known| known.id) else { return Again::In(5_000) };
    let paid_by = world.observe(|observer| observer.truth_by_session.get(&target)?.first().map(|(tx_id, _)| *tx_id));
    let Some(mut transaction) = paid_by.and_then(|tx_id| included(world, tx_id)) else { return Again::No };
    transaction.signatures.clear();
    let nonce = format!("public-{session}-{number}");
    let payload = PaymentPayload { version: Version::V1, transaction, nonce, identifier: None, accepted: None };
    let other = world.people().sessions.values().map(|known| known.id).find(|id| *id != target);
    for shown_at in [Some(target), other].into_iter().flatten() {
        let request = X402Request { target: Target::Session(shown_at), payload: payload.clone() };
        let verdict = settle_payment(world, gateway, number, &request).await.map(drop);
        world.event(Lane::Payer, "shows_public", Some(session), u64::from(verdict.is_ok()), || {
            format!("agent {number} shows at {shown_at} what paid session {session}: {}", shown(&verdict))
        });
        world.observe(|observer| match verdict {
            Ok(()) => {
                let seen = "a transaction from the chain, without its signatures, was taken for a payment".to_owned();
                observer.violate("public-buys-nothing", seen, Some(shown_at));
            }
            Err(_) => observer.passes("public-buys-nothing"),
        });
    }
    world.mark("a stranger shows a public transaction");
    Again::No
}

/// Returns a transaction that a block holds.
fn included(world: &World, tx_id: TxId) -> Option<Transaction> {
    let hive = world.hive();
    let (number, at) = hive.chain.find(tx_id)?;
    let found = hive.chain.block(number)?.transactions.get(usize::try_from(at).ok()?)?;
    Some(found.transaction.clone())
}

fn broadcast_oneself(world: &Arc<World>, session: u32, transaction: &Transaction, tx_id: TxId) {
    world.observe(|observer| {
        observer.own_broadcasts.insert(tx_id);
    });
    let taken = world.hive().chain.broadcast(transaction.clone()).is_ok();
    if taken {
        world.observe(|observer| {
            observer.ever_accepted.insert(tx_id);
        });
    }
    world.event(Lane::Payer, "own_broadcast", Some(session), u64::from(taken), || {
        format!("the agent of {} broadcasts {tx_id} itself", name_of(Some(session)))
    });
}

pub(super) async fn facilitate(
    world: &Arc<World>,
    gateway: &Gateway,
    number: usize,
    resource: u32,
    units: u64,
) -> Again {
    let made = world.people().facilitated.get(&resource).cloned();
    let payload = match made {
        Some(payload) => payload,
        None => {
            let from = agent(number);
            let nonce = format!("elsewhere-{resource}");
            let transfer = Hive::transfer(&from, ELSEWHERE, units, Currency::Hbd, &format!("x402:{nonce}"));
            let transaction = world.hive().transaction(&from, vec![transfer], Duration::from_secs(75));
            let tx_id = world.hive().id_of(&transaction);
            world.observe(|observer| {
                observer.intents.insert(tx_id, None);
            });
            let payload = PaymentPayload { version: Version::V1, transaction, nonce, identifier: None, accepted: None };
            world.people().facilitated.insert(resource, payload.clone());
            payload
        }
    };
    let requirements = Requirements {
        amount: Money::new(units, Currency::Hbd),
        pay_to: AccountName::parse(ELSEWHERE).expect("a name of ours"),
        resource: format!("https://elsewhere.example/{resource}"),
        valid_before: None,
    };
    let tx_id = world.hive().id_of(&payload.transaction);
    let request = X402Request { target: Target::Requirements(requirements), payload };
    for _ in 0..MAX_ASKS {
        let answer = settle_payment(world, gateway, number, &request).await;
        // Under an idempotency key the same success may be told again.
        if answer.as_ref().is_ok_and(|settled| !settled.is_replay) {
            world.observe(|observer| observer.answers(&Answer::Facilitated { tx_id }));
            world.mark("a payment for another server settles");
        }
        let is_open = match &answer {
            Ok(_) => false,
            Err(X402Error::Unavailable(_)) => true,
            Err(X402Error::Refused(refused)) => refused.reason == Reason::SettlementPending,
        };
        let verdict = answer.map(drop);
        world.event(Lane::Payer, "facilitates", None, u64::from(resource), || {
            format!("agent {number} pays elsewhere {resource}: {}", shown(&verdict))
        });
        if !is_open && !world.loses_reply() {
            if world.is_sound() && verdict.is_err() {
                world.refuse(format!("a payment for another server is refused: {}", shown(&verdict)), None);
            }
            return Again::No;
        }
        world.sleep(2_000).await;
    }
    Again::No
}

fn shown(verdict: &Result<(), X402Error>) -> String {
    match verdict {
        Ok(()) => "yes".to_owned(),
        Err(X402Error::Refused(refused)) => refused.reason.word().to_owned(),
        Err(X402Error::Unavailable(error)) => error.to_string(),
    }
}
