//! Agents that present another payment under the `payment-identifier` of one that was claimed before.

use super::*;

/// Presents a payment for a session under the identifier of the session's first payment, once that one is claimed.
pub(super) async fn present_again(sim: &Arc<Simulation>, engine: &Running, session: u32, number: usize) -> Again {
    let Some(known) = sim.clients().sessions.get(&session).cloned() else { return Again::No };
    let first = sim.clients().payloads.range((session, 0)..=(session, usize::MAX)).next().map(|(_, made)| made.clone());
    let Some(first) = first.filter(|first| first.payload.identifier.is_some()) else { return Again::No };
    if !is_claimed(sim, first.tx_id) || engine.process.endpoint().is_some() {
        return Again::No;
    }
    let from = agent(number + 1);
    let fee_units = known.fee.as_ref().map_or(0, |(_, units)| *units);
    let (units, currency) = (known.amount.units - fee_units, known.amount.currency);
    let mut transfers = vec![Hive::transfer(&from, known.pay_to.as_str(), units, currency, &memo_of(known.id))];
    if let Some((collector, units)) = &known.fee {
        transfers.push(Hive::transfer(&from, collector, *units, currency, &format!("fee-{}", known.id)));
    }
    let transaction = sim.hive().transaction(&from, transfers, Duration::from_secs(60));
    let tx_id = sim.hive().id_of(&transaction);
    sim.observe(|observer| observer.intents.insert(tx_id, Some(known.id)));
    let nonce = format!("again-{session}-{number}");
    let identifier = first.payload.identifier.clone();
    let payload = PaymentPayload { version: Version::V1, transaction, nonce, identifier, accepted: None };
    let request = X402Request { target: Target::Session(known.id), payload };
    let verified = engine.x402.verify(&request).await.map(drop);
    let settled = engine.x402.settle(&request).await.map(drop);
    sim.mark("a payment identifier is reused");
    for verdict in [verified, settled] {
        // A restored store may not know the first one.
        let is_excused = !is_claimed(sim, first.tx_id)
            || matches!(&verdict, Err(X402Error::Unavailable(error)) if *error != EngineError::IdentifierReused);
        let is_right = verdict == Err(X402Error::Unavailable(EngineError::IdentifierReused));
        sim.observe(|observer| {
            if is_right || is_excused {
                observer.passes("verdicts-are-right");
            } else {
                let text = format!("a used identifier returns {verdict:?}");
                observer.violate("verdicts-are-right", text, Some(known.id));
            }
        });
    }
    Again::No
}

fn is_claimed(sim: &Simulation, tx_id: TxId) -> bool {
    sim.observe(|observer| observer.claims.contains_key(&tx_id))
}
