//! Agents that pay for the resources of other servers and of sellers.

use super::{
    agents::describe_verdict,
    facade::settle_payment,
    payloads::Meant,
    responses::{Shown, key_of, refuses_sale, sells},
    *,
};
use crate::observer::Sold;

/// Has a payment for another server settled.
pub(super) async fn facilitate(
    sim: &Arc<Simulation>,
    engine: &Running,
    number: usize,
    resource: u32,
    units: u64,
) -> Again {
    let made = sim.clients().facilitated.get(&resource).cloned();
    let payload = match made {
        Some(payload) => payload,
        None => {
            let from = agent(number);
            let nonce = format!("elsewhere-{resource}");
            let transfer = Hive::transfer(&from, ELSEWHERE, units, Currency::Hbd, &format!("x402:{nonce}"));
            let transaction = sim.hive().transaction(&from, vec![transfer], Duration::from_secs(75));
            let tx_id = sim.hive().id_of(&transaction);
            sim.observe(|observer| {
                observer.intents.insert(tx_id, None);
            });
            let payload = PaymentPayload { version: Version::V1, transaction, nonce, identifier: None, accepted: None };
            sim.clients().facilitated.insert(resource, payload.clone());
            payload
        }
    };
    let requirements = Requirements {
        amount: Money::new(units, Currency::Hbd),
        pay_to: AccountName::parse(ELSEWHERE).expect("a name of ours"),
        resource: format!("https://elsewhere.example/{resource}"),
        valid_before: None,
    };
    let tx_id = sim.hive().id_of(&payload.transaction);
    let request = X402Request { target: Target::Requirements(requirements), payload };
    for _ in 0..MAX_REQUESTS {
        let Some(response) = unless_left(sim, settle_payment(sim, engine, number, &request)).await else {
            if sim.returns() {
                sim.sleep(5_000).await;
                continue;
            }
            return Again::No;
        };
        request_failed(sim, "a settlement for another server", &response, None);
        // Under an idempotency key the same success may be reported again.
        if response.as_ref().is_ok_and(|settled| !settled.is_replay) {
            sim.observe(|observer| observer.responded(&Response::Facilitated { tx_id }));
            sim.mark("a payment for another server settles");
        }
        let is_unregistered = sim.engine_settings().x402.only_registered;
        if is_unregistered && response.is_ok() {
            let text = format!("{tx_id} is settled for an account of no merchant");
            sim.observe(|observer| observer.violate("verdicts-are-right", text, None));
        }
        let is_open = match &response {
            Ok(_) => false,
            Err(X402Error::Unavailable(_)) => true,
            Err(X402Error::Refused(refused)) => refused.reason == Reason::SettlementPending,
        };
        let verdict = response.map(drop);
        sim.event(Source::Payer, "facilitates", None, u64::from(resource), || {
            format!("agent {number} pays elsewhere {resource}: {}", describe_verdict(&verdict))
        });
        if !is_open && !sim.loses_reply() {
            if sim.is_sound() && verdict.is_err() && !is_unregistered {
                sim.refuse(format!("a payment for another server is refused: {}", describe_verdict(&verdict)), None);
            }
            return Again::No;
        }
        sim.sleep(2_000).await;
    }
    Again::No
}

/// A request to a seller: the resource, the payment that is presented, and who calls the engine under which key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Purchase {
    pub(super) agent: usize,
    pub(super) resource: u32,
    pub(super) shown: u32,
    pub(super) seller: Option<usize>,
    pub(super) key: Option<u32>,
    pub(super) units: u64,
}

/// Returns the payee of a resource: a merchant for every third.
fn payee(resource: u32) -> AccountName {
    let name = if resource.is_multiple_of(3) { account(0, false) } else { ELSEWHERE.to_owned() };
    AccountName::parse(&name).expect("a name of ours")
}

/// Presents a payment at a seller's resource, perhaps one that was made for another resource.
pub(super) async fn purchase(sim: &Arc<Simulation>, engine: &Running, purchase: Purchase) -> Again {
    let seller = match purchase.seller {
        Some(seller) => match sim.clients().merchants.get(&seller).map(|shop| shop.id) {
            Some(id) => Some(id),
            None => return Again::In(2_000),
        },
        None => None,
    };
    let Some(offer) = offer(sim, &purchase, seller) else { return Again::No };
    let shown = Shown { session: None, payer: &offer.from, tx_id: offer.tx_id, behavior: None, owes: false };
    for _ in 0..MAX_REQUESTS {
        shown.begins(sim);
        let Some(response) = unless_left(sim, engine.x402.settle_for(&offer.request, &offer.caller)).await else {
            if sim.returns() {
                sim.sleep(5_000).await;
                continue;
            }
            return Again::No;
        };
        request_failed(sim, "a settlement for a seller", &response, None);
        check_sale(sim, &offer, &shown, &response);
        let is_open = match &response {
            Ok(_) => false,
            Err(X402Error::Unavailable(error)) => {
                !matches!(error, EngineError::KeyReused | EngineError::IdentifierReused)
            }
            Err(X402Error::Refused(refused)) => refused.reason == Reason::SettlementPending,
        };
        let verdict = response.map(drop);
        sim.event(Source::Payer, "visits", None, u64::from(purchase.resource), || {
            let Purchase { agent, shown, .. } = purchase;
            format!(
                "agent {agent} presents at {} its payment for {shown}: {}",
                offer.sold.resource,
                describe_verdict(&verdict)
            )
        });
        if !is_open && !sim.loses_reply() {
            return Again::No;
        }
        sim.sleep(2_000).await;
    }
    Again::No
}

/// A payment that an agent presents at a seller's resource.
struct Offer {
    from: String,
    tx_id: TxId,
    sold: Sold,
    request: X402Request,
    caller: actors::Caller,
}

/// Builds what an agent presents; none if the engine cannot read it.
fn offer(sim: &Arc<Simulation>, purchase: &Purchase, seller: Option<MerchantId>) -> Option<Offer> {
    let Purchase { resource, shown, key, units, .. } = *purchase;
    let amount = Money::new(units, Currency::Hbd);
    // Two resources share a nonce: for one payee the second payment is a duplicate.
    let nonce = format!("sale-{}", shown / 2);
    let (from, transaction) = made_for(sim, purchase, &nonce);
    let tx_id = sim.hive().id_of(&transaction);
    // Two others share a payment identifier.
    let (pay_to, named) = (payee(shown), format!("a-sale-{}", shown.div_ceil(2)));
    let meant = Meant { transaction, nonce, price: amount, pay_to, style: shown, named };
    let resource_text = format!("https://seller.example/{resource}");
    let wanted = Requirements { amount, pay_to: payee(resource), resource: resource_text, valid_before: None };
    let (payload, requirements) = meant.read_at(sim, &wanted)?;
    let sold = Sold { resource: requirements.resource.clone(), seller, key };
    let request = X402Request { target: Target::Requirements(requirements), payload };
    let key = key.map(key_of);
    Some(Offer { from, tx_id, sold, request, caller: actors::Caller { seller, key } })
}

/// Returns the payer and the transaction that pays for a resource, which is made once.
fn made_for(sim: &Arc<Simulation>, purchase: &Purchase, nonce: &str) -> (String, Transaction) {
    let Purchase { agent: number, shown, units, .. } = *purchase;
    if let Some(known) = sim.clients().visits.get(&shown).cloned() {
        return known;
    }
    let from = agent(number);
    let memo = if shown.is_multiple_of(2) { format!("x402:{nonce}") } else { String::new() };
    let transfer = Hive::transfer(&from, payee(shown).as_str(), units, Currency::Hbd, &memo);
    let transaction = sim.hive().transaction(&from, vec![transfer], Duration::from_secs(75));
    let tx_id = sim.hive().id_of(&transaction);
    sim.observe(|observer| observer.intents.insert(tx_id, None));
    sim.clients().visits.insert(shown, (from.clone(), transaction.clone()));
    (from, transaction)
}

/// Checks the response to a seller against the invariants.
fn check_sale(sim: &Arc<Simulation>, offer: &Offer, shown: &Shown<'_>, response: &Result<actors::Settled, X402Error>) {
    match response {
        Ok(settled) => {
            shown.settled(sim, settled);
            sells(sim, offer.tx_id, &offer.sold, settled);
            sim.mark("a payment for a seller settles");
            if settled.is_replay {
                sim.mark("a seller repeats a request under its key");
            }
        }
        Err(X402Error::Refused(refused)) => {
            shown.refused(sim, refused);
            refuses_sale(sim, offer.tx_id, &offer.sold, refused);
            may_repeat(sim, offer, refused.reason);
            if refused.reason == Reason::DuplicateSettlement {
                sim.mark("a payment is presented for another resource");
            }
        }
        Err(X402Error::Unavailable(_)) => {}
    }
}

/// Checks that a seller whose request succeeded gets the same success again with its idempotency key.
fn may_repeat(sim: &Simulation, offer: &Offer, reason: Reason) {
    let Offer { sold, tx_id, .. } = offer;
    sim.observe(|observer| {
        let has_key = sold.seller.is_some() && sold.key.is_some();
        let was_first = observer.sold.get(tx_id) == Some(sold) && observer.reported.contains(tx_id);
        let is_refused = reason == Reason::DuplicateSettlement && has_key && was_first;
        if is_refused && !observer.forgotten.contains(tx_id) {
            let text = format!("{tx_id} was a success for {sold:?}, and the same request is refused");
            observer.violate("sellers-may-repeat", text, None);
        } else {
            observer.passes("sellers-may-repeat");
        }
    });
}
