//! Payments at the limits of the rules: just within a rule, or just beyond it. They are verified and never settled.

use engine::{
    hive::{Operation, RecurrentTransfer, Signature},
    time::Timestamp,
    x402::AcceptedRequirements,
};

use super::*;

/// How far a transaction may expire ahead, and how long it must be valid, seconds.
const FARTHEST_SECONDS: u64 = 3_600;
const SHORTEST_SECONDS: u64 = 3;
/// The maximum number of signatures.
const MAX_SIGNATURES: usize = 40;

/// A payment that an agent presents, before the change.
struct Presented {
    version: Version,
    transaction: Transaction,
    nonce: String,
    accepted: Option<AcceptedRequirements>,
    /// The engine's time, a whole second.
    now: Timestamp,
}

impl Presented {
    /// Changes the transfer to the payee.
    fn change(&mut self, change: impl FnOnce(&mut engine::hive::Transfer)) {
        if let Some(Operation::Transfer(transfer)) = self.transaction.operations.first_mut() {
            change(transfer);
        }
    }

    fn expires_in(&mut self, seconds: u64) {
        self.transaction.expiration = Timestamp::from_seconds(self.now.seconds() + seconds);
    }

    fn in_version(&mut self, version: Version) {
        self.version = version;
        if version == Version::V1 {
            self.accepted = None;
        }
    }

    fn with_nonce_memo(&mut self, nonce: &str) {
        self.nonce = nonce.to_owned();
        let memo = format!("x402:{nonce}");
        self.change(|transfer| transfer.memo = memo);
    }
}

/// A change of a valid payment, and the reason for which it must be refused; none if it must be accepted.
struct Change {
    what: &'static str,
    wanted: Option<Reason>,
    make: fn(&mut Presented),
}

const fn change(what: &'static str, wanted: Option<Reason>, make: fn(&mut Presented)) -> Change {
    Change { what, wanted, make }
}

const CHANGES: [Change; 26] = [
    change("the farthest expiration", None, |one| one.expires_in(FARTHEST_SECONDS)),
    change("a farther expiration", Some(Reason::ExpirationTooFar), |one| one.expires_in(FARTHEST_SECONDS + 1)),
    change("the nearest expiration", None, |one| one.expires_in(SHORTEST_SECONDS + 1)),
    change("a nearer expiration", Some(Reason::PaymentExpired), |one| one.expires_in(SHORTEST_SECONDS)),
    change("version 1", None, |one| one.in_version(Version::V1)),
    change("one unit more in version 1", None, |one| {
        one.in_version(Version::V1);
        one.change(|transfer| transfer.amount.units += 1);
    }),
    change("one unit less in version 1", Some(Reason::Amount), |one| {
        one.in_version(Version::V1);
        one.change(|transfer| transfer.amount.units -= 1);
    }),
    change("one unit more in version 2", Some(Reason::AmountMismatch), |one| {
        one.change(|transfer| transfer.amount.units += 1);
    }),
    change("one unit less in version 2", Some(Reason::Amount), |one| one.change(|transfer| transfer.amount.units -= 1)),
    change("another amount accepted", Some(Reason::AcceptedRequirementsMismatch), |one| {
        if let Some(accepted) = &mut one.accepted {
            accepted.amount = "7777.777 HBD".to_owned();
        }
    }),
    change("another payee accepted", Some(Reason::AcceptedRequirementsMismatch), |one| {
        if let Some(accepted) = &mut one.accepted {
            accepted.pay_to = "mallory".to_owned();
        }
    }),
    change("the amount accepted in words", None, |one| {
        let Some(Operation::Transfer(_)) = one.transaction.operations.first() else { return };
        if let Some(accepted) = &mut one.accepted {
            let units: u64 = accepted.amount.parse().unwrap_or(0);
            accepted.amount = format!("{}.{:03} {}", units / 1_000, units % 1_000, accepted.asset);
        }
    }),
    change("a memo of the nonce", None, |one| one.with_nonce_memo("0123456789abcdef0123456789ABCDEF")),
    change("a memo of a nonce of 31 digits", Some(Reason::MemoMismatch), |one| {
        one.with_nonce_memo("0123456789abcdef0123456789abcde");
    }),
    change("a memo of a nonce that is no number", Some(Reason::MemoMismatch), |one| {
        one.with_nonce_memo("0123456789abcdef0123456789abcdeg");
    }),
    change("a memo of another nonce", Some(Reason::MemoMismatch), |one| {
        one.change(|transfer| transfer.memo = "x402:0123456789abcdef0123456789abcdef".to_owned());
    }),
    change("a memo with more than the id", Some(Reason::MemoMismatch), |one| {
        one.change(|transfer| transfer.memo.push(' '));
    }),
    change("no operation", Some(Reason::Operations), |one| one.transaction.operations.clear()),
    change("an operation that is no transfer", Some(Reason::Operations), |one| {
        let Some(Operation::Transfer(transfer)) = one.transaction.operations.first().cloned() else { return };
        let engine::hive::Transfer { from, to, amount, memo } = transfer;
        one.transaction.operations[0] = Operation::RecurrentTransfer(RecurrentTransfer {
            from,
            to,
            amount,
            memo,
            recurrence: 24,
            executions: 2,
            extensions: Vec::new(),
        });
    }),
    change("another payee", Some(Reason::RecipientMismatch), |one| {
        one.change(|transfer| transfer.to = "mallory".to_owned());
    }),
    change("the payee as payer", Some(Reason::SelfPayment), |one| {
        for operation in &mut one.transaction.operations {
            if let Operation::Transfer(transfer) = operation {
                transfer.from = one.accepted.as_ref().map_or_else(String::new, |accepted| accepted.pay_to.clone());
            }
        }
    }),
    change("an account that does not exist", Some(Reason::AccountNotFound), |one| {
        for operation in &mut one.transaction.operations {
            if let Operation::Transfer(transfer) = operation {
                transfer.from = "nobody-at-all".to_owned();
            }
        }
    }),
    change("too many signatures", Some(Reason::Signature), |one| {
        one.transaction.signatures = vec![Signature([31; 65]); MAX_SIGNATURES + 1];
    }),
    change("a signature that is none", Some(Reason::Signature), |one| {
        one.transaction.signatures = vec![Signature([0; 65])];
    }),
    change("a memo that no node would read as it was signed", Some(Reason::MemoMismatch), |one| {
        one.nonce = "\u{1}".to_owned();
        one.change(|transfer| transfer.memo = "x402:\u{1}".to_owned());
    }),
    change("nothing", None, |_| {}),
];

/// Verifies an agent's payment for a session concurrently, with one change that its number selects.
pub(super) fn verify_at_limits(
    sim: &Arc<Simulation>,
    engine: &Running,
    session: u32,
    number: usize,
    transaction: Transaction,
) {
    let Some(known) = sim.clients().sessions.get(&session).cloned() else { return };
    let (sim, engine) = (Arc::clone(sim), engine.clone());
    let one = &CHANGES[(usize::try_from(session).unwrap_or(0) + number) % CHANGES.len()];
    tokio::spawn(async move {
        // The limits of time are of whole seconds.
        sim.sleep(1_000 - engine.now().millis() % 1_000).await;
        let now = engine.now();
        if now.millis() % 1_000 != 0 {
            return;
        }
        let mut presented = present(&known, session, number, transaction, now);
        (one.make)(&mut presented);
        let Presented { version, transaction, nonce, accepted, .. } = presented;
        let payload = PaymentPayload { version, transaction, nonce, identifier: None, accepted };
        let request = X402Request { target: Target::Session(known.id), payload };
        let verdict = engine.x402.verify(&request).await;
        request_failed(&sim, "a verification", &verdict, Some(known.id));
        // A store that several engines share may not be reached at once: a limit of time is judged within its second.
        if sim.has_shared_store() && engine.now().seconds() != now.seconds() {
            return;
        }
        judge(&sim, &known, one, &verdict);
    });
}

/// Returns a valid payment of an agent for a session: another transaction than the one it pays with.
fn present(known: &Session, session: u32, number: usize, mut transaction: Transaction, now: Timestamp) -> Presented {
    transaction.expiration = Timestamp::from_seconds(now.seconds() + 30);
    for operation in &mut transaction.operations {
        if let Operation::Transfer(transfer) = operation
            && transfer.to == known.pay_to.as_str()
        {
            transfer.memo = memo_of(known.id);
        }
    }
    let accepted = AcceptedRequirements {
        amount: known.amount.units.to_string(),
        asset: known.amount.currency.code().to_owned(),
        pay_to: known.pay_to.to_string(),
    };
    let nonce = format!("at-the-limits-{session}-{number}-{}", now.seconds());
    Presented { version: Version::V2, transaction, nonce, accepted: Some(accepted), now }
}

/// Checks a verdict, unless the session gives another reason.
fn judge(sim: &Simulation, known: &Session, one: &Change, verdict: &Result<AccountName, X402Error>) {
    let given = match verdict {
        Ok(_) => None,
        Err(X402Error::Refused(refused)) => Some(refused.reason),
        Err(X402Error::Unavailable(_)) => return,
    };
    // These are checked before the payment.
    let is_of_the_session = matches!(
        given,
        Some(
            Reason::SessionNotPending
                | Reason::SessionExpired
                | Reason::SessionCancelling
                | Reason::MerchantInactive
                | Reason::X402Disabled
                | Reason::SessionNotFound
        )
    );
    sim.observe(|observer| {
        if given == one.wanted || is_of_the_session {
            observer.passes("limits-of-rules-are-exact");
        } else {
            let words = |reason: Option<Reason>| reason.map_or("accepted", |reason| reason.as_str());
            let text = format!("{}: {}, and not {}", one.what, words(given), words(one.wanted));
            observer.violate("limits-of-rules-are-exact", text, Some(known.id));
        }
    });
}
