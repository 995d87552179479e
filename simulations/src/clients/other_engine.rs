//! Another engine on the same records: it creates a session that reaches this engine's store later, or never.

use engine::{
    ids::{PaymentId, SlugToken},
    payment::Terms,
};
use storage::{Batch, CommitError, Write};

use super::*;

/// Creates a session that this engine does not know yet; its customers do.
pub(super) async fn create_elsewhere(
    sim: &Arc<Simulation>,
    engine: &Running,
    session: u32,
    merchant: usize,
    amount: Money,
    lifetime_seconds: Option<u64>,
) -> Again {
    let Some(shop) = sim.clients().merchants.get(&merchant).cloned() else { return Again::In(1_000) };
    let Ok(record) = engine.merchants.get(shop.id).await else { return Again::In(1_000) };
    // An engine creates nothing before it follows the ledger, and its cursor is in these same records.
    if sim.observe(|observer| observer.cursor.is_none()) {
        return Again::In(1_000);
    }
    let settings = sim.script.setup.settings();
    let terms = Terms {
        merchant: record.id,
        pay_to: record.hive_account,
        fee_percent: settings.fee_percent,
        fee_mode: settings.fee_mode,
        rate: None,
        default_lifetime: settings.session_lifetime,
        grace: settings.session_grace,
        livemode: true,
    };
    let now = sim.wall_of(&engine.process);
    let (mut random, mut slug) = ([0; 10], [0; 16]);
    engine.process.draw(&mut random);
    engine.process.draw(&mut slug);
    let (id, slug) = (PaymentId::new(now, random), SlugToken::from_bits(u128::from_be_bytes(slug)));
    let payment =
        Payment::open(draft(session, amount, lifetime_seconds), terms, id, slug, now).expect("a price of HBD is known");
    sim.event(Source::Merchant, "created_elsewhere", Some(session), payment.amount.units, || {
        format!("another engine creates session {session} over {} until {}", payment.amount, payment.expires_at)
    });
    let mut clients = sim.clients();
    clients.sessions.insert(session, Session::of(&payment));
    clients.other_engine.insert(session, payment);
    Again::No
}

/// Writes the session to the store as it was when it was created.
pub(super) async fn hand_over(sim: &Arc<Simulation>, engine: &Running, session: u32) -> Again {
    let Some(payment) = sim.clients().other_engine.get(&session).cloned() else { return Again::In(1_000) };
    if sim.is_damaged() {
        // Transfers that wait for the session as unmatched rows cannot all be read.
        return Again::In(5_000);
    }
    let Some(store) = engine.process.store() else { return Again::In(1_000) };
    let id = payment.id;
    sim.observe(|observer| observer.other_engine.insert(id));
    let write = Write::Payment { payment: Arc::new(payment), expected: None };
    match store.commit(Batch::of(write)).await {
        // An earlier attempt succeeded without a response.
        Ok(()) | Err(CommitError::Conflict { .. }) => {}
        Err(_) => return Again::In(1_500),
    }
    sim.clients().other_engine.remove(&session);
    let came_before = sim.observe(|observer| {
        if let Some(durable) = observer.payments.get_mut(&id) {
            durable.session = Some(session);
        }
        observer.unmatched.keys().any(|key| observer.target_of(*key) == Some(id))
    });
    if came_before {
        sim.mark("a session appears after its transfer");
    }
    sim.event(Source::Merchant, "copied", Some(session), 0, || {
        format!("session {session} is copied into this engine's store")
    });
    Again::No
}
