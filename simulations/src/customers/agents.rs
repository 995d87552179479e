//! Agents at work: they sign, hand in, ask again until they have an answer, and try what they should not.

use super::{
    answers::{Shown, Sold, sells},
    clients::{settle_payment, verify_payment},
    payloads::Meant,
    *,
};

/// Numbers from here on are an agent's second payment for a session.
const SECOND: usize = 100;

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
    let from = match trick {
        Trick::Poor => POOR.to_owned(),
        Trick::Spends => SPENDER.to_owned(),
        _ => agent(number % SECOND),
    };
    let nonce = format!("{:032x}", u128::from(session) << 32 | (number % SECOND) as u128);
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
    let lives = match trick {
        Trick::Expiring => Duration::from_secs(3),
        // The same words, and another transaction.
        Trick::SameNonce => Duration::from_secs(72),
        _ => Duration::from_secs(75),
    };
    let mut transfers = vec![Hive::transfer(&from, known.pay_to.as_str(), units, currency, &memo)];
    if let Some((collector, units)) = &known.fee {
        let of = if trick == Trick::OtherFeeMemo { PaymentId::from_bits(known.id.bits() ^ 32) } else { known.id };
        let memo = format!("fee-{of}");
        transfers.push(Hive::transfer(&from, collector, *units, currency, &memo));
    }
    let transaction = world.hive().transaction(&from, transfers, lives);
    let tx_id = world.hive().id_of(&transaction);
    world.observe(|observer| {
        let intent = (trick != Trick::NonceMemo).then_some(known.id);
        observer.intents.insert(tx_id, intent);
        // The fee names the session all the same, also where a restored store knows no claim.
        if trick == Trick::NonceMemo && known.fee.is_some() {
            observer.fee_intents.insert((tx_id, 1), known.id);
        }
    });
    let meant = Meant {
        transaction,
        nonce,
        price: known.amount,
        pay_to: known.pay_to,
        style: session + u32::try_from(number % SECOND).unwrap_or(0),
        named: format!("{session}-{number}"),
    };
    let payload = meant.read_for(world, known.id)?;
    let owes = units + fee_units < known.amount.units;
    // Without a fee there is no memo of one.
    let trick = if trick == Trick::OtherFeeMemo && known.fee.is_none() { Trick::None } else { trick };
    let made = Payload { payload, tx_id, from, trick, owes };
    world.people().payloads.insert((session, number), made.clone());
    Some(made)
}

pub(super) async fn settle(world: &Arc<World>, engine: &Engine, session: u32, number: usize, trick: Trick) -> Again {
    if trick == Trick::Public {
        return show_public(world, engine, session, number).await;
    }
    let (for_session, by) = match trick {
        Trick::Replay { of } => (of, number),
        Trick::SameNonce => (session, number + SECOND),
        _ => (session, number),
    };
    let target = world.people().sessions.get(&session).map(|known| known.id);
    if trick == Trick::Spends {
        get_money(world, session).await;
    }
    let Some((target, made)) = target.zip(payload(world, for_session, by, trick)) else { return Again::In(2_000) };
    let trick = if for_session == session { made.trick } else { trick };
    let shown =
        Shown { session: Some(target), payer: &made.from, tx_id: made.tx_id, trick: Some(trick), owes: made.owes };
    let is_closed = || is_closed(world, target);
    // What was refused before anything was handed in stays payable: its agent shows it once more.
    world.observe(|observer| observer.refused.shift_remove(&made.tx_id));
    if trick == Trick::OwnBroadcast {
        broadcast_oneself(world, session, &made.payload.transaction, made.tx_id);
    }
    let request = X402Request { target: Target::Session(target), payload: made.payload.clone() };
    if trick == Trick::Spends {
        spend(world, session);
    }
    if trick == Trick::Twice {
        let (world, engine, request, made) = (Arc::clone(world), engine.clone(), request.clone(), made.clone());
        shown.begins(&world);
        tokio::spawn(async move {
            let Payload { from, tx_id, trick, owes, .. } = &made;
            let shown = Shown { session: Some(target), payer: from, tx_id: *tx_id, trick: Some(*trick), owes: *owes };
            if let Ok(settled) = settle_payment(&world, &engine, number, &request).await {
                let answer = Answer::Settled { payment: target, settled: &settled };
                world.observe(|observer| observer.answers(&answer));
                shown.settled(&world, &settled);
            }
        });
    }
    // Whether the money is there, the chain says as well: only a verification shows that it is looked at.
    if world.verifies_first() || trick == Trick::Poor {
        // Verifying changes nothing, whatever it says.
        let (is_open, was_closed) = (is_open(world, engine, target), is_closed());
        let verdict = verify_payment(world, engine, number, &request).await;
        shown.verified(world, &verdict);
        let verdict = verdict.map(drop);
        let is_open = is_open && !(was_closed && is_closed());
        world.observe(|observer| match (&verdict, is_open) {
            (Ok(()), false) => {
                let text = "a payment is verified for a session that takes none".to_owned();
                observer.violate("verified-is-open", text, Some(target));
            }
            _ => observer.passes("verified-is-open"),
        });
        world.event(Lane::Payer, "verified", Some(session), u64::from(verdict.is_ok()), || {
            format!("agent {number} asks whether it can pay session {session}: {}", said(&verdict))
        });
    }
    for ask in 0..MAX_ASKS {
        shown.begins(world);
        let begun_ms = world.now_ms();
        let answer = settle_payment(world, engine, number, &request).await;
        world.observe(|observer| observer.hears_of(target, made.tx_id, answer.is_ok(), begun_ms));
        match &answer {
            Ok(settled) => {
                let answer = Answer::Settled { payment: target, settled };
                world.observe(|observer| observer.answers(&answer));
                shown.settled(world, settled);
            }
            Err(X402Error::Refused(refused)) => shown.refused(world, refused),
            Err(X402Error::Unavailable(_)) => {}
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
            world.mark(reason.as_str());
        }
        let told = refusal.map_or(0, |(reason, _)| reason as u64 + 1);
        let verdict = answer.map(drop);
        world.event(Lane::Payer, "settles", Some(session), told, || {
            format!("agent {number} pays session {session}: {}", said(&verdict))
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
                    world.refuse(format!("an honest agent is refused: {}", reason.as_str()), Some(target));
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
fn is_open(world: &Arc<World>, engine: &Engine, target: PaymentId) -> bool {
    let now = engine.now();
    world.observe(|observer| {
        let payment = observer.payments.get(&target).map(|known| &known.payment);
        payment.is_none_or(|payment| {
            payment.state == engine::payment::State::Pending
                && now <= payment.expires_at + payment.grace
                && payment.pending_cancellation().is_none()
        })
    })
}

/// Says whether a session's merchant takes no payments of agents.
fn is_closed(world: &Arc<World>, target: PaymentId) -> bool {
    world.observe(|observer| {
        let merchant = observer.payments.get(&target).and_then(|known| observer.merchants.get(&known.payment.merchant));
        merchant.is_some_and(|merchant| !merchant.is_active || !merchant.x402_enabled)
    })
}

/// Gives an account as much as it needs for a session, and waits until it has it.
async fn get_money(world: &Arc<World>, session: u32) {
    let Some(known) = world.people().sessions.get(&session).cloned() else { return };
    send(world, "mallory", SPENDER, known.amount);
    world.sleep(4 * world.script.setup.block_seconds * 1_000).await;
}

/// Sends the money for a session away, before anybody pays with it.
fn spend(world: &Arc<World>, session: u32) {
    let Some(known) = world.people().sessions.get(&session).cloned() else { return };
    if send(world, SPENDER, "mallory", known.amount) {
        world.mark("an agent spends what it pays with");
        world.event(Lane::Payer, "spends", Some(session), known.amount.units, || {
            format!("{SPENDER} sends away what it is about to pay session {session} with")
        });
    }
}

fn send(world: &World, from: &str, to: &str, money: Money) -> bool {
    let mut hive = world.hive();
    let transfer = Hive::transfer(from, to, money.units, money.currency, "");
    let transaction = hive.transaction(from, vec![transfer], Duration::from_secs(60));
    hive.chain.broadcast(transaction).is_ok()
}

/// Takes a transaction that paid a session from the chain, and shows it without its signatures and beside another nonce: at
/// the session, and at another one.
async fn show_public(world: &Arc<World>, engine: &Engine, session: u32, number: usize) -> Again {
    let Some(target) = world.people().sessions.get(&session).map(|known| known.id) else { return Again::In(5_000) };
    let paid_by = world.observe(|observer| observer.truth_by_session.get(&target)?.first().map(|(tx_id, _)| *tx_id));
    let Some(mut transaction) = paid_by.and_then(|tx_id| included(world, tx_id)) else { return Again::No };
    transaction.signatures.clear();
    let nonce = format!("public-{session}-{number}");
    let payload = PaymentPayload { version: Version::V1, transaction, nonce, identifier: None, accepted: None };
    let other = world.people().sessions.values().map(|known| known.id).find(|id| *id != target);
    for shown_at in [Some(target), other].into_iter().flatten() {
        let request = X402Request { target: Target::Session(shown_at), payload: payload.clone() };
        let verdict = settle_payment(world, engine, number, &request).await;
        if let Err(X402Error::Refused(refused)) = &verdict
            && (refused.payer.is_some() || refused.tx_id.is_some())
        {
            let text = format!("who shows what is public is told {refused:?}");
            world.observe(|observer| observer.violate("answers-name-their-payer", text, Some(shown_at)));
        }
        let verdict = verdict.map(drop);
        world.event(Lane::Payer, "shows_public", Some(session), u64::from(verdict.is_ok()), || {
            format!("agent {number} shows at {shown_at} what paid session {session}: {}", said(&verdict))
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

pub(super) async fn facilitate(world: &Arc<World>, engine: &Engine, number: usize, resource: u32, units: u64) -> Again {
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
        let answer = settle_payment(world, engine, number, &request).await;
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
            format!("agent {number} pays elsewhere {resource}: {}", said(&verdict))
        });
        if !is_open && !world.loses_reply() {
            if world.is_sound() && verdict.is_err() {
                world.refuse(format!("a payment for another server is refused: {}", said(&verdict)), None);
            }
            return Again::No;
        }
        world.sleep(2_000).await;
    }
    Again::No
}

/// A request to a seller: what is asked for, what is shown, and who asks the engine under which key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Purchase {
    pub(super) agent: usize,
    pub(super) resource: u32,
    pub(super) shown: u32,
    pub(super) seller: Option<usize>,
    pub(super) key: Option<u32>,
    pub(super) units: u64,
}

/// Returns who is paid for a resource: a merchant of ours for every third.
fn payee(resource: u32) -> AccountName {
    let name = if resource.is_multiple_of(3) { account(0, false) } else { ELSEWHERE.to_owned() };
    AccountName::parse(&name).expect("a name of ours")
}

/// Shows a payment at a seller's resource, perhaps one that was made for another resource.
pub(super) async fn purchase(world: &Arc<World>, engine: &Engine, purchase: Purchase) -> Again {
    let Purchase { agent: number, resource, shown, seller, key, units } = purchase;
    let seller = match seller {
        Some(seller) => match world.people().merchants.get(&seller).map(|shop| shop.id) {
            Some(id) => Some(id),
            None => return Again::In(2_000),
        },
        None => None,
    };
    let amount = Money::new(units, Currency::Hbd);
    let known = world.people().visits.get(&shown).cloned();
    // Two payments have one nonce: for one payee the second is none.
    let nonce = format!("sale-{}", shown / 2);
    let (from, transaction) = match known {
        Some(known) => known,
        None => {
            let from = agent(number);
            let memo = if shown.is_multiple_of(2) { format!("x402:{nonce}") } else { String::new() };
            let transfer = Hive::transfer(&from, payee(shown).as_str(), units, Currency::Hbd, &memo);
            let transaction = world.hive().transaction(&from, vec![transfer], Duration::from_secs(75));
            let tx_id = world.hive().id_of(&transaction);
            world.observe(|observer| observer.intents.insert(tx_id, None));
            world.people().visits.insert(shown, (from.clone(), transaction.clone()));
            (from, transaction)
        }
    };
    let tx_id = world.hive().id_of(&transaction);
    let (pay_to, named) = (payee(shown), format!("a-sale-{shown}"));
    let meant = Meant { transaction, nonce, price: amount, pay_to, style: shown, named };
    let resource_text = format!("https://seller.example/{resource}");
    let wanted = Requirements { amount, pay_to: payee(resource), resource: resource_text, valid_before: None };
    let Some((payload, requirements)) = meant.read_at(world, &wanted) else { return Again::No };
    let sold = Sold { resource: requirements.resource.clone(), seller, key };
    let request = X402Request { target: Target::Requirements(requirements), payload };
    let key = key.and_then(|key| IdempotencyKey::parse(&format!("request-{key}")).ok());
    let caller = actors::Caller { seller, key };
    let shown_at = Shown { session: None, payer: &from, tx_id, trick: None, owes: false };
    for _ in 0..MAX_ASKS {
        shown_at.begins(world);
        let answer = engine.x402.settle_for(&request, &caller).await;
        match &answer {
            Ok(settled) => {
                shown_at.settled(world, settled);
                sells(world, tx_id, &sold, settled);
                world.mark("a payment for a seller settles");
                if settled.is_replay {
                    world.mark("a seller asks again under its key");
                }
            }
            Err(X402Error::Refused(refused)) => {
                shown_at.refused(world, refused);
                if refused.reason == Reason::DuplicateSettlement {
                    world.mark("a payment is shown at another resource");
                }
            }
            Err(X402Error::Unavailable(_)) => {}
        }
        let is_open = match &answer {
            Ok(_) => false,
            Err(X402Error::Unavailable(error)) => {
                !matches!(error, EngineError::KeyReused | EngineError::IdentifierReused)
            }
            Err(X402Error::Refused(refused)) => refused.reason == Reason::SettlementPending,
        };
        let verdict = answer.map(drop);
        world.event(Lane::Payer, "visits", None, u64::from(resource), || {
            format!("agent {number} shows at {} what it made for {shown}: {}", sold.resource, said(&verdict))
        });
        if !is_open && !world.loses_reply() {
            return Again::No;
        }
        world.sleep(2_000).await;
    }
    Again::No
}

fn said(verdict: &Result<(), X402Error>) -> String {
    match verdict {
        Ok(()) => "yes".to_owned(),
        Err(X402Error::Refused(refused)) => refused.reason.as_str().to_owned(),
        Err(X402Error::Unavailable(error)) => error.to_string(),
    }
}
