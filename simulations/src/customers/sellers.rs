//! Agents that pay for the resources of other servers and of sellers.

use super::{
    agents::said,
    answers::{Shown, Sold, sells},
    clients::settle_payment,
    payloads::Meant,
    *,
};

/// Has a payment for another server settled.
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
pub(super) async fn purchase(world: &Arc<World>, engine: &Engine, purchase: Purchase) -> Again {
    let seller = match purchase.seller {
        Some(seller) => match world.people().merchants.get(&seller).map(|shop| shop.id) {
            Some(id) => Some(id),
            None => return Again::In(2_000),
        },
        None => None,
    };
    let Some(offer) = offer(world, &purchase, seller) else { return Again::No };
    let shown = Shown { session: None, payer: &offer.from, tx_id: offer.tx_id, behavior: None, owes: false };
    for _ in 0..MAX_ASKS {
        shown.begins(world);
        let answer = engine.x402.settle_for(&offer.request, &offer.caller).await;
        check_sale(world, &offer, &shown, &answer);
        let is_open = match &answer {
            Ok(_) => false,
            Err(X402Error::Unavailable(error)) => {
                !matches!(error, EngineError::KeyReused | EngineError::IdentifierReused)
            }
            Err(X402Error::Refused(refused)) => refused.reason == Reason::SettlementPending,
        };
        let verdict = answer.map(drop);
        world.event(Lane::Payer, "visits", None, u64::from(purchase.resource), || {
            let Purchase { agent, shown, .. } = purchase;
            format!("agent {agent} shows at {} what it made for {shown}: {}", offer.sold.resource, said(&verdict))
        });
        if !is_open && !world.loses_reply() {
            return Again::No;
        }
        world.sleep(2_000).await;
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
fn offer(world: &Arc<World>, purchase: &Purchase, seller: Option<MerchantId>) -> Option<Offer> {
    let Purchase { resource, shown, key, units, .. } = *purchase;
    let amount = Money::new(units, Currency::Hbd);
    // Two resources share a nonce: for one payee the second payment is a duplicate.
    let nonce = format!("sale-{}", shown / 2);
    let (from, transaction) = made_for(world, purchase, &nonce);
    let tx_id = world.hive().id_of(&transaction);
    let (pay_to, named) = (payee(shown), format!("a-sale-{shown}"));
    let meant = Meant { transaction, nonce, price: amount, pay_to, style: shown, named };
    let resource_text = format!("https://seller.example/{resource}");
    let wanted = Requirements { amount, pay_to: payee(resource), resource: resource_text, valid_before: None };
    let (payload, requirements) = meant.read_at(world, &wanted)?;
    let sold = Sold { resource: requirements.resource.clone(), seller, key };
    let request = X402Request { target: Target::Requirements(requirements), payload };
    let key = key.and_then(|key| IdempotencyKey::parse(&format!("request-{key}")).ok());
    Some(Offer { from, tx_id, sold, request, caller: actors::Caller { seller, key } })
}

/// Returns the payer and the transaction that pays for a resource, which is made once.
fn made_for(world: &Arc<World>, purchase: &Purchase, nonce: &str) -> (String, Transaction) {
    let Purchase { agent: number, shown, units, .. } = *purchase;
    if let Some(known) = world.people().visits.get(&shown).cloned() {
        return known;
    }
    let from = agent(number);
    let memo = if shown.is_multiple_of(2) { format!("x402:{nonce}") } else { String::new() };
    let transfer = Hive::transfer(&from, payee(shown).as_str(), units, Currency::Hbd, &memo);
    let transaction = world.hive().transaction(&from, vec![transfer], Duration::from_secs(75));
    let tx_id = world.hive().id_of(&transaction);
    world.observe(|observer| observer.intents.insert(tx_id, None));
    world.people().visits.insert(shown, (from.clone(), transaction.clone()));
    (from, transaction)
}

/// Checks the response to a seller against the invariants.
fn check_sale(world: &Arc<World>, offer: &Offer, shown: &Shown<'_>, answer: &Result<actors::Settled, X402Error>) {
    match answer {
        Ok(settled) => {
            shown.settled(world, settled);
            sells(world, offer.tx_id, &offer.sold, settled);
            world.mark("a payment for a seller settles");
            if settled.is_replay {
                world.mark("a seller asks again under its key");
            }
        }
        Err(X402Error::Refused(refused)) => {
            shown.refused(world, refused);
            if refused.reason == Reason::DuplicateSettlement {
                world.mark("a payment is shown at another resource");
            }
        }
        Err(X402Error::Unavailable(_)) => {}
    }
}
