//! An agent that pays with a wallet: it reserves, signs, submits and records. It can be killed between any two steps, and repeats the
//! request when it runs again.

use actors::Presence;
use engine::{
    time::Timestamp,
    wallet::{State, Step},
};

use super::{agents::describe_verdict, facade::settle_payment, *};
use crate::{
    agent_wallet::{Payment, Reservation, WALLET, spending},
    options::EPOCH_SECONDS,
};

/// Time until an operator decides, milliseconds.
const DECISION_MS: u64 = 40_000;
/// Time until a killed agent runs again, milliseconds.
const RESTART_MS: u64 = 5_000;

/// A request for a resource that costs money.
#[derive(Debug, Clone, Copy)]
pub(super) struct WalletRequest {
    pub(super) number: u32,
    pub(super) units: u64,
}

/// Pays for a resource, or repeats the payment of an earlier run of the same request.
pub(super) async fn pay_with_wallet(sim: &Arc<Simulation>, engine: &Running, mut request: WalletRequest) -> Again {
    look_up(sim, request.number);
    // Some servers raise their price while an operator decides.
    let mut rise = if request.number % 5 == 2 { 500 } else { 0 };
    loop {
        match reserve(sim, request) {
            Some(Reservation::Submit(entry)) => return submit(sim, engine, request, entry).await,
            Some(Reservation::AwaitApproval(entry)) => {
                sim.sleep(DECISION_MS).await;
                let is_granted = request.number % 4 != 3;
                let decided = sim.clients().wallet.decide(entry, is_granted, clock(sim, request.number));
                let text = if is_granted { "approves" } else { "denies" };
                sim.event(Source::Payer, "decides", None, u64::from(request.number), || {
                    format!("an operator {text} {} units for request {}", request.units, request.number)
                });
                if decided.is_err() {
                    return Again::No;
                }
                request.units += std::mem::take(&mut rise);
            }
            Some(Reservation::Refused(refusal)) => {
                sim.mark("a wallet's policy refuses a payment");
                sim.event(Source::Payer, "policy", None, u64::from(request.number), || {
                    format!("the wallet refuses {} units for request {}: {refusal}", request.units, request.number)
                });
                return Again::No;
            }
            None => return Again::In(RESTART_MS),
        }
    }
}

/// Reserves the payment; none if the agent is killed before.
fn reserve(sim: &Arc<Simulation>, request: WalletRequest) -> Option<Reservation> {
    if sim.kills_agent("reserving") {
        return None;
    }
    let times = (clock(sim, request.number), head_time(sim, request.number));
    let spending = spending(elsewhere(), request.units);
    let mut made = None;
    let reserved = {
        let (mut clients, mut hive) = (sim.clients(), sim.hive());
        clients.wallet.reserve(request.number, &spending, times, || {
            let nonce = format!("wallet-{}-{}", request.number, times.1.seconds());
            let transfer = Hive::transfer(WALLET, ELSEWHERE, request.units, Currency::Hbd, &format!("x402:{nonce}"));
            let transaction = hive.transaction(WALLET, vec![transfer], Duration::from_secs(75));
            let (tx_id, expires_at) = (hive.id_of(&transaction), transaction.expiration);
            let payload = PaymentPayload { version: Version::V1, transaction, nonce, identifier: None, accepted: None };
            made = Some(tx_id);
            Payment { tx_id, expires_at, payload }
        })
    };
    if let Some(tx_id) = made {
        sim.observe(|observer| {
            observer.intents.insert(tx_id, None);
        });
    }
    // A state that allows no reservation is an error of the wallet's rules.
    let reserved = reserved.map_err(|rejection| {
        sim.observe(|observer| observer.violate("never-over-budget", rejection.to_string(), None));
    });
    if sim.kills_agent("signing") { None } else { reserved.ok() }
}

/// How far the clock of the agent's machine is ahead for some requests.
const CLOCK_AHEAD: Duration = Duration::from_secs(3 * 3_600);

/// Returns the clock of the agent's machine. For no request both this clock and the head are wrong.
fn clock(sim: &Simulation, number: u32) -> Timestamp {
    let clock = Timestamp::from_millis(EPOCH_SECONDS * 1_000 + sim.now_ms());
    if number % 4 == 2 { clock + CLOCK_AHEAD } else { clock }
}

/// Returns the time of the ledger's head, for some requests as the first node reports it.
fn head_time(sim: &Simulation, number: u32) -> Timestamp {
    let now_ms = sim.now_ms();
    let hive = sim.hive();
    if number.is_multiple_of(2) { hive.chain.head_time() } else { hive.reported_head_time(now_ms) }
}

/// Submits a payment until its outcome is known, and records it.
async fn submit(sim: &Arc<Simulation>, engine: &Running, request: WalletRequest, entry: usize) -> Again {
    let known = sim.clients().wallet.entry(entry).cloned();
    let Some((payment, state)) = known.and_then(|entry| Some((entry.payment?, entry.state))) else { return Again::No };
    if state == State::Paid {
        sim.mark("a wallet repeats a stored response");
        return Again::No;
    }
    if state == State::Reserved {
        record(sim, entry, Step::Sign);
    }
    let requirements = Requirements {
        amount: Money::new(request.units, Currency::Hbd),
        pay_to: elsewhere(),
        resource: format!("https://elsewhere.example/wallet/{}", request.number),
        valid_before: None,
    };
    let tx_id = payment.tx_id;
    let submitted = X402Request { target: Target::Requirements(requirements), payload: payment.payload };
    for _ in 0..MAX_REQUESTS {
        if sim.kills_agent("submitting") {
            return Again::In(RESTART_MS);
        }
        let response = settle_payment(sim, engine, 0, &submitted).await;
        request_failed(sim, "a settlement of a wallet's payment", &response, None);
        if response.as_ref().is_ok_and(|settled| !settled.is_replay) {
            sim.observe(|observer| observer.responded(&Response::Facilitated { tx_id }));
        }
        let verdict = response.map(drop);
        sim.event(Source::Payer, "wallet", None, u64::from(request.number), || {
            format!("the wallet pays request {}: {}", request.number, describe_verdict(&verdict))
        });
        if sim.kills_agent("recording") {
            return Again::In(RESTART_MS);
        }
        let is_lost = sim.loses_reply();
        match verdict {
            _ if is_lost => {}
            Ok(()) => {
                record(sim, entry, Step::Confirm);
                sim.mark("a wallet pays");
                return Again::No;
            }
            Err(X402Error::Refused(refused)) if refused.reason == Reason::DuplicateSettlement => {
                record(sim, entry, Step::FindInBlock);
                return Again::No;
            }
            Err(X402Error::Refused(refused)) if refused.reason != Reason::SettlementPending => {
                look_up(sim, request.number);
                return Again::No;
            }
            Err(_) => {}
        }
        sim.sleep(2_000).await;
    }
    Again::No
}

/// Looks up the latest payment of a request if it has expired by the system clock: it is in a block, or its amount is released.
fn look_up(sim: &Arc<Simulation>, number: u32) {
    let open = {
        let clients = sim.clients();
        let entry = clients.wallet.latest(number);
        let known = entry.and_then(|entry| clients.wallet.entry(entry)).filter(|entry| entry.state.is_open());
        entry.zip(known.and_then(|entry| entry.payment.clone()))
    };
    let Some((entry, payment)) = open.filter(|(_, payment)| payment.expires_at <= clock(sim, number)) else { return };
    let (now_ms, nodes) = (sim.now_ms(), sim.script.setup.nodes);
    let reports = sim.hive().reports_of(payment.tx_id, payment.expires_at, now_ms);
    match Presence::of(reports, nodes) {
        Presence::InBlock => record(sim, entry, Step::FindInBlock),
        Presence::Absent => {
            record(sim, entry, Step::ProveAbsent);
            sim.mark("a wallet releases a payment");
        }
        Presence::Unknown => {}
    }
}

fn record(sim: &Arc<Simulation>, entry: usize, step: Step) {
    let recorded = sim.clients().wallet.conclude(entry, step);
    sim.observe(|observer| match recorded {
        Ok(()) => observer.passes("one-charge-per-request"),
        Err(rejection) => observer.violate("one-charge-per-request", rejection.to_string(), None),
    });
}

/// Returns the account of the servers that the agent pays.
fn elsewhere() -> AccountName {
    AccountName::parse(ELSEWHERE).expect("a name of ours")
}
