//! Agents that pay sessions by x402: honest ones, and those that deviate ([`AgentBehavior`]).

use super::{
    facade::{settle_payment, verify_payment},
    payloads::Meant,
    responses::Shown,
    *,
};

/// Numbers from here on are an agent's second payment for a session.
const SECOND: usize = 100;

/// Returns the account that an agent pays from.
fn payer_of(number: usize, behavior: AgentBehavior) -> String {
    match behavior {
        AgentBehavior::NoMoney => POOR.to_owned(),
        AgentBehavior::SpendFirst => SPENDER.to_owned(),
        AgentBehavior::ReplaceKeys => KEYED.to_owned(),
        _ => agent(number % SECOND),
    }
}

/// Returns an agent's payment for a session, which it makes once.
fn payload(sim: &Arc<Simulation>, session: u32, number: usize, behavior: AgentBehavior) -> Option<Payload> {
    let (known, made) = {
        let clients = sim.clients();
        (clients.sessions.get(&session).cloned(), clients.payloads.get(&(session, number)).cloned())
    };
    let known = known?;
    if made.is_some() {
        return made;
    }
    let from = payer_of(number, behavior);
    let nonce = format!("{:032x}", u128::from(session) << 32 | (number % SECOND) as u128);
    let memo = if behavior == AgentBehavior::NonceMemo { format!("x402:{nonce}") } else { memo_of(known.id) };
    let fee_units = known.fee.as_ref().map_or(0, |(_, units)| *units);
    let mut units = known.amount.units - fee_units;
    if behavior == AgentBehavior::TooLittle {
        units = (units / 2).max(1);
    }
    let asked = known.amount.currency;
    let other = if asked == Currency::Hbd { Currency::Hive } else { Currency::Hbd };
    let currency = if behavior == AgentBehavior::OtherCurrency { other } else { asked };
    let fee_currency = if behavior == AgentBehavior::OtherFeeCurrency { other } else { currency };
    let lives = match behavior {
        AgentBehavior::Expiring => Duration::from_secs(3),
        AgentBehavior::FarExpiration => Duration::from_secs(4 * 3_600),
        // The same content, and another transaction.
        AgentBehavior::SameNonce => Duration::from_secs(72),
        _ => Duration::from_secs(75),
    };
    let mut transfers = vec![Hive::transfer(&from, known.pay_to.as_str(), units, currency, &memo)];
    if let Some((collector, units)) = &known.fee {
        let of =
            if behavior == AgentBehavior::OtherFeeMemo { PaymentId::from_bits(known.id.bits() ^ 32) } else { known.id };
        let memo = format!("fee-{of}");
        let units = if behavior == AgentBehavior::SmallFee { units.saturating_sub(1).max(1) } else { *units };
        transfers.push(Hive::transfer(&from, collector, units, fee_currency, &memo));
    }
    if behavior == AgentBehavior::FurtherTransfer {
        transfers.push(Hive::transfer(&from, "mallory", 1, currency, "and this"));
    }
    let transaction = sim.hive().transaction(&from, transfers, lives);
    let tx_id = sim.hive().id_of(&transaction);
    sim.observe(|observer| {
        let intent = (behavior != AgentBehavior::NonceMemo).then_some(known.id);
        observer.intents.insert(tx_id, intent);
        // The fee names the session even where a restored store knows no claim.
        if behavior == AgentBehavior::NonceMemo && known.fee.is_some() {
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
    let payload = meant.read_for(sim, known.id)?;
    let owes = units + fee_units < known.amount.units;
    // Without a fee the payment is valid, and a fee of 0.001 cannot be smaller.
    let has_no_fault = match behavior {
        AgentBehavior::SmallFee => fee_units < 2,
        behavior => behavior.is_about_fee() && known.fee.is_none(),
    };
    let behavior = if has_no_fault { AgentBehavior::Honest } else { behavior };
    let made = Payload { payload, tx_id, from, behavior, owes };
    sim.clients().payloads.insert((session, number), made.clone());
    Some(made)
}

/// Pays a session by x402, and repeats the request until its response is final.
pub(super) async fn settle(
    sim: &Arc<Simulation>,
    engine: &Running,
    session: u32,
    number: usize,
    behavior: AgentBehavior,
) -> Again {
    if behavior == AgentBehavior::ShowPublicTransaction {
        return show_public(sim, engine, session, number).await;
    }
    if behavior == AgentBehavior::SameIdentifier {
        return identifiers::present_again(sim, engine, session, number).await;
    }
    let (for_session, by) = match behavior {
        AgentBehavior::Replay { of } => (of, number),
        AgentBehavior::SameNonce => (session, number + SECOND),
        _ => (session, number),
    };
    let target = sim.clients().sessions.get(&session).map(|known| known.id);
    if behavior == AgentBehavior::SpendFirst {
        get_money(sim, session).await;
    }
    let Some((target, made)) = target.zip(payload(sim, for_session, by, behavior)) else { return Again::In(2_000) };
    let behavior = if for_session == session { made.behavior } else { behavior };
    let request = X402Request { target: Target::Session(target), payload: made.payload.clone() };
    let settlement = Settlement { sim, engine, session, number, target, made, behavior, request };
    let tx_id = settlement.made.tx_id;
    // A payment that was refused before it was broadcast stays payable: its agent presents it again.
    sim.observe(|observer| observer.refused.shift_remove(&tx_id));
    if behavior == AgentBehavior::OwnBroadcast {
        broadcast_oneself(sim, session, &settlement.made.payload.transaction, tx_id);
    }
    if behavior == AgentBehavior::SpendFirst {
        spend(sim, session);
    }
    if behavior == AgentBehavior::ReplaceKeys {
        replace_keys_soon(sim, session);
    }
    if behavior == AgentBehavior::Twice {
        settlement.settle_concurrently();
    }
    if behavior == AgentBehavior::Honest && engine.process.endpoint().is_none() && !sim.script.setup.signatures {
        let transaction = settlement.made.payload.transaction.clone();
        limits_of_rules::verify_at_limits(sim, engine, session, number, transaction);
    }
    // The chain also refuses a payment without money, and a far expiration: only a verification shows that the engine checks
    // them.
    if sim.verifies_first() || matches!(behavior, AgentBehavior::NoMoney | AgentBehavior::FarExpiration) {
        settlement.verify().await;
    }
    settlement.settle_until_final().await
}

/// An agent's payment of a session, which it has settled.
struct Settlement<'a> {
    sim: &'a Arc<Simulation>,
    engine: &'a Running,
    session: u32,
    /// The agent's number.
    number: usize,
    target: PaymentId,
    made: Payload,
    behavior: AgentBehavior,
    request: X402Request,
}

impl Settlement<'_> {
    /// Returns the payment as the invariants about responses need it.
    fn shown(&self) -> Shown<'_> {
        let Payload { from, tx_id, owes, .. } = &self.made;
        let behavior = Some(self.behavior);
        Shown { session: Some(self.target), payer: from, tx_id: *tx_id, behavior, owes: *owes }
    }

    /// Sends the same request in another task.
    fn settle_concurrently(&self) {
        let (sim, engine, number) = (Arc::clone(self.sim), self.engine.clone(), self.number);
        let (request, made, target) = (self.request.clone(), self.made.clone(), self.target);
        self.shown().begins(&sim);
        tokio::spawn(async move {
            let Payload { from, tx_id, behavior, owes, .. } = &made;
            let shown =
                Shown { session: Some(target), payer: from, tx_id: *tx_id, behavior: Some(*behavior), owes: *owes };
            if let Ok(settled) = settle_payment(&sim, &engine, number, &request).await {
                let response = Response::Settled { payment: target, settled: &settled };
                sim.observe(|observer| observer.responded(&response));
                shown.settled(&sim, &settled);
            }
        });
    }

    /// Returns whether nodes with different heads give different keys of the payer, and too few of those that respond agree.
    fn may_nodes_differ(&self) -> bool {
        self.behavior == AgentBehavior::ReplaceKeys
    }

    /// Has the payment verified, which changes nothing whatever the response is.
    async fn verify(&self) {
        let Self { sim, engine, session, number, target, .. } = *self;
        let (is_open, was_closed) = (is_open(sim, engine, target), is_closed(sim, target));
        let verdict = verify_payment(sim, engine, number, &self.request).await;
        if !self.may_nodes_differ() {
            request_failed(sim, "a verification", &verdict, Some(target));
        }
        self.shown().verified(sim, &verdict);
        let verdict = verdict.map(drop);
        let is_open = is_open && !(was_closed && is_closed(sim, target));
        sim.observe(|observer| match (&verdict, is_open) {
            (Ok(()), false) => {
                let text = "a payment is verified for a session that accepts none".to_owned();
                observer.violate("verified-is-open", text, Some(target));
            }
            _ => observer.passes("verified-is-open"),
        });
        sim.event(Source::Payer, "verified", Some(session), u64::from(verdict.is_ok()), || {
            format!("agent {number} verifies a payment of session {session}: {}", describe_verdict(&verdict))
        });
    }

    /// Requests the settlement until a response is final. An agent whose engine cannot reach the shared store repeats its request
    /// at another one.
    async fn settle_until_final(&self) -> Again {
        for attempt in 0..MAX_REQUESTS {
            let Some(response) = self.request_once().await else {
                if self.sim.returns() {
                    self.sim.sleep(5_000).await;
                    continue;
                }
                return Again::No;
            };
            if self.sim.loses_reply() {
                self.sim.sleep(1_000).await;
                continue;
            }
            let refusal = refusal_of(&response);
            let changes_engines = matches!(response, Err(X402Error::Unavailable(_)))
                && self.behavior == AgentBehavior::Honest
                && self.sim.has_shared_store();
            self.trace(response, refusal);
            match refusal {
                None => {
                    self.sim.clients().settled += 1;
                    self.sim.mark("an agent's payment settles");
                    return Again::No;
                }
                Some(_) if changes_engines => {
                    self.sim.mark("an agent whose engine cannot reach the store calls another one");
                    return Again::In(2_000);
                }
                Some(Refusal { reason: Reason::SettlementPending, .. }) if attempt == 0 => {
                    self.sim.mark("a settlement is pending");
                }
                Some(Refusal { may_change: true, .. }) => {}
                Some(Refusal { reason, .. }) => {
                    self.note_final_refusal(reason);
                    return Again::No;
                }
            }
            self.sim.sleep(2_000).await;
        }
        Again::No
    }

    /// Requests the settlement, and checks the response against the invariants; returns none if the agent disconnects.
    async fn request_once(&self) -> Option<Result<actors::Settled, X402Error>> {
        let Self { sim, engine, number, target, .. } = *self;
        let shown = self.shown();
        shown.begins(sim);
        let begun_ms = sim.now_ms();
        let response = unless_left(sim, settle_payment(sim, engine, number, &self.request)).await?;
        if !self.may_nodes_differ() {
            request_failed(sim, "a settlement", &response, Some(target));
        }
        sim.observe(|observer| observer.settlement_responded(target, self.made.tx_id, response.is_ok(), begun_ms));
        match &response {
            Ok(settled) => {
                let response = Response::Settled { payment: target, settled };
                sim.observe(|observer| observer.responded(&response));
                shown.settled(sim, settled);
            }
            Err(X402Error::Refused(refused)) => shown.refused(sim, refused),
            Err(X402Error::Unavailable(_)) => {}
        }
        Some(response)
    }

    fn trace(&self, response: Result<actors::Settled, X402Error>, refusal: Option<Refusal>) {
        let Self { sim, session, number, .. } = *self;
        if let Some(Refusal { reason, .. }) = refusal {
            sim.mark(reason.as_str());
        }
        let detail = refusal.map_or(0, |Refusal { reason, .. }| reason as u64 + 1);
        let verdict = response.map(drop);
        sim.event(Source::Payer, "settles", Some(session), detail, || {
            format!("agent {number} pays session {session}: {}", describe_verdict(&verdict))
        });
    }

    fn note_final_refusal(&self, reason: Reason) {
        let Self { sim, session, target, .. } = *self;
        if sim.requires_outcome(session, RequiredOutcome::Settled) {
            sim.refuse(format!("an honest agent is refused: {}", reason.as_str()), Some(target));
        }
        let is_own = !matches!(self.behavior, AgentBehavior::Replay { .. });
        if is_own && reason != Reason::DuplicateSettlement {
            sim.observe(|observer| {
                observer.refused.insert(self.made.tx_id);
            });
        }
        if reason == Reason::DuplicateSettlement {
            sim.mark("a second settlement is refused");
        }
    }
}

/// Why a payment was not settled.
#[derive(Debug, Clone, Copy)]
struct Refusal {
    reason: Reason,
    /// Whether a later request may have another response.
    may_change: bool,
}

fn refusal_of(response: &Result<actors::Settled, X402Error>) -> Option<Refusal> {
    match response {
        Ok(_) => None,
        Err(X402Error::Unavailable(_)) => Some(Refusal { reason: Reason::UnexpectedSettleError, may_change: true }),
        Err(X402Error::Refused(refused)) => {
            let reason = refused.reason;
            let may_change = matches!(
                reason,
                Reason::SettlementPending | Reason::UnexpectedSettleError | Reason::UnexpectedVerifyError
            );
            Some(Refusal { reason, may_change })
        }
    }
}

/// Returns whether a session waits for money now, as it is durable.
fn is_open(sim: &Arc<Simulation>, engine: &Running, target: PaymentId) -> bool {
    let now = engine.now();
    sim.observe(|observer| {
        let payment = observer.payments.get(&target).map(|known| &known.payment);
        payment.is_none_or(|payment| {
            payment.state == engine::payment::State::Pending
                && now <= payment.expires_at + payment.grace
                && payment.pending_cancellation().is_none()
        })
    })
}

/// Returns whether a session's merchant accepts no payments of agents.
fn is_closed(sim: &Arc<Simulation>, target: PaymentId) -> bool {
    sim.observe(|observer| {
        let merchant = observer.payments.get(&target).and_then(|known| observer.merchants.get(&known.payment.merchant));
        merchant.is_some_and(|merchant| !merchant.is_active || !merchant.x402_enabled)
    })
}

/// Replaces the keys of an agent's account: immediately, or while its payment is in flight.
fn replace_keys_soon(sim: &Arc<Simulation>, session: u32) {
    let sim = Arc::clone(sim);
    let wait_ms = [0, 400, 1_500, 6_000][usize::try_from(session % 4).unwrap_or(0)];
    tokio::spawn(async move {
        sim.sleep(wait_ms).await;
        sim.hive().replace_signing_keys(KEYED);
        sim.nodes_may_differ();
        sim.mark("the keys of a paying account are replaced");
        sim.event(Source::Payer, "rekeys", Some(session), 0, || format!("the keys of {KEYED} are replaced"));
    });
}

/// Funds an account for a session, and waits until the transfer is in a block.
async fn get_money(sim: &Arc<Simulation>, session: u32) {
    let Some(known) = sim.clients().sessions.get(&session).cloned() else { return };
    send(sim, "mallory", SPENDER, known.amount);
    sim.sleep(4 * sim.script.setup.block_seconds * 1_000).await;
}

/// Spends the balance that is meant for a session before the payment settles.
fn spend(sim: &Arc<Simulation>, session: u32) {
    let Some(known) = sim.clients().sessions.get(&session).cloned() else { return };
    if send(sim, SPENDER, "mallory", known.amount) {
        sim.mark("an agent spends what it pays with");
        sim.event(Source::Payer, "spent balance", Some(session), known.amount.units, || {
            format!("{SPENDER} spends the balance for session {session}")
        });
    }
}

fn send(sim: &Simulation, from: &str, to: &str, money: Money) -> bool {
    let mut hive = sim.hive();
    let transfer = Hive::transfer(from, to, money.units, money.currency, "");
    let transaction = hive.transaction(from, vec![transfer], Duration::from_secs(60));
    hive.chain.broadcast(transaction).is_ok()
}

/// Takes a transaction that paid a session from the chain, and presents it without its signatures and with another nonce: for
/// the session, and for another one.
async fn show_public(sim: &Arc<Simulation>, engine: &Running, session: u32, number: usize) -> Again {
    let Some(target) = sim.clients().sessions.get(&session).map(|known| known.id) else { return Again::In(5_000) };
    let paid_by = sim.observe(|observer| observer.final_by_session.get(&target)?.first().map(|(tx_id, _)| *tx_id));
    let Some(mut transaction) = paid_by.and_then(|tx_id| included(sim, tx_id)) else { return Again::No };
    transaction.signatures.clear();
    let nonce = format!("public-{session}-{number}");
    let payload = PaymentPayload { version: Version::V1, transaction, nonce, identifier: None, accepted: None };
    let other = sim.clients().sessions.values().map(|known| known.id).find(|id| *id != target);
    for shown_at in [Some(target), other].into_iter().flatten() {
        let request = X402Request { target: Target::Session(shown_at), payload: payload.clone() };
        let verdict = settle_payment(sim, engine, number, &request).await;
        if let Err(X402Error::Refused(refused)) = &verdict
            && (refused.payer.is_some() || refused.tx_id.is_some())
        {
            let text = format!("presenting a public transaction returns {refused:?}");
            sim.observe(|observer| observer.violate("responses-name-only-their-payer", text, Some(shown_at)));
        }
        let verdict = verdict.map(drop);
        sim.event(Source::Payer, "presents_public", Some(session), u64::from(verdict.is_ok()), || {
            format!(
                "agent {number} presents for {shown_at} the payment of session {session}: {}",
                describe_verdict(&verdict)
            )
        });
        sim.observe(|observer| match verdict {
            Ok(()) => {
                let seen = "a transaction from the chain, without its signatures, was accepted as a payment".to_owned();
                observer.violate("public-buys-nothing", seen, Some(shown_at));
            }
            Err(_) => observer.passes("public-buys-nothing"),
        });
    }
    sim.mark("a third party presents a public transaction");
    Again::No
}

/// Returns a transaction that a block holds.
fn included(sim: &Simulation, tx_id: TxId) -> Option<Transaction> {
    let hive = sim.hive();
    let (number, at) = hive.chain.find(tx_id)?;
    let found = hive.chain.block(number)?.transactions.get(usize::try_from(at).ok()?)?;
    Some(found.transaction.clone())
}

fn broadcast_oneself(sim: &Arc<Simulation>, session: u32, transaction: &Transaction, tx_id: TxId) {
    sim.observe(|observer| {
        observer.own_broadcasts.insert(tx_id);
    });
    let taken = sim.hive().chain.broadcast(transaction.clone()).is_ok();
    if taken {
        sim.observe(|observer| {
            observer.ever_accepted.insert(tx_id);
        });
    }
    sim.event(Source::Payer, "own_broadcast", Some(session), u64::from(taken), || {
        format!("the agent of {} broadcasts {tx_id} itself", name_of(Some(session)))
    });
}

/// Describes a response for the trace.
pub(super) fn describe_verdict(verdict: &Result<(), X402Error>) -> String {
    match verdict {
        Ok(()) => "yes".to_owned(),
        Err(X402Error::Refused(refused)) => refused.reason.as_str().to_owned(),
        Err(X402Error::Unavailable(error)) => error.to_string(),
    }
}
