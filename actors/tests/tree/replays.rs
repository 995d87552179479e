//! Every way to show a payment twice, against a model: one transaction is one success.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use actors::{Caller, EngineError, Settled, Target, X402Error, X402Request};
use engine::{
    hive::{ChainId, Pack, Transaction},
    idempotency::IdempotencyKey,
    ids::{MerchantId, PaymentId},
    ledger::memo_of,
    payment::State,
    x402::{PaymentPayload, Reason, Refused, Version},
};
use proptest::prelude::*;

use crate::{
    environment::{TestEngine, key_of, name},
    facilitated::requirements,
    store,
    x402::{id_of, op, signed},
};

/// Whose signature a payment carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signer {
    Payer,
    Nobody,
    Other,
    PayerAndOther,
}

/// How a payment is shown: which transaction, under which nonce and identifier, signed by whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Show {
    tx: usize,
    nonce: u8,
    identifier: Option<u8>,
    signer: Signer,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    /// A server of somebody else settles what it was shown.
    Elsewhere { show: Show, resource: bool, seller: Option<usize>, key: Option<u8> },
    /// The payment is shown for a session.
    Session { show: Show, session: usize },
    /// The payer's wallet sends it.
    Wallet { tx: usize },
}

/// Two transactions for other servers, one for each session, one that names nobody.
const TRANSACTIONS: usize = 5;
const SESSIONS: usize = 2;
const ELSEWHERE: &str = "somebody";
const SHOP: &str = "blue.mugs";

fn nonce(number: u8) -> String {
    format!("{number:032x}")
}

fn shows() -> impl Strategy<Value = Show> {
    let signer = prop_oneof![
        6 => Just(Signer::Payer),
        1 => Just(Signer::Nobody),
        1 => Just(Signer::Other),
        1 => Just(Signer::PayerAndOther),
    ];
    let identifier = prop_oneof![2 => Just(None), 1 => (0u8..2).prop_map(Some)];
    (0..TRANSACTIONS, 0u8..3, identifier, signer).prop_map(|(tx, nonce, identifier, signer)| Show {
        tx,
        nonce,
        identifier,
        signer,
    })
}

fn steps() -> impl Strategy<Value = Step> {
    let key = prop_oneof![1 => Just(None), 2 => (0u8..2).prop_map(Some)];
    let seller = prop_oneof![1 => Just(None), 2 => (0usize..2).prop_map(Some)];
    prop_oneof![
        8 => (shows(), any::<bool>(), seller, key)
            .prop_map(|(show, resource, seller, key)| Step::Elsewhere { show, resource, seller, key }),
        6 => (shows(), 0..SESSIONS).prop_map(|(show, session)| Step::Session { show, session }),
        1 => (0..TRANSACTIONS).prop_map(|tx| Step::Wallet { tx }),
    ]
}

/// What a claim was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum For {
    Elsewhere { resource: bool },
    Session(usize),
}

/// What is predicted of a settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Predicted {
    Success { is_replay: bool },
    KeyReused,
    IdentifierReused,
    Refused,
}

#[derive(Debug, Clone, Copy)]
struct Claim {
    show: Show,
    paid: For,
}

#[derive(Debug, Default)]
struct Model {
    claims: BTreeMap<usize, Claim>,
    nonces: BTreeSet<(&'static str, u8)>,
    identifiers: BTreeMap<(&'static str, u8), usize>,
    /// What was settled under the key of a seller.
    keys: BTreeMap<(usize, u8), usize>,
    sent_by_wallet: BTreeSet<usize>,
    completed: BTreeSet<usize>,
}

impl Model {
    fn elsewhere(&mut self, show: Show, resource: bool, key: Option<(usize, u8)>) -> Predicted {
        let paid = For::Elsewhere { resource };
        if let Some(earlier) = key.and_then(|key| self.keys.get(&key)) {
            let claim = &self.claims[earlier];
            let is_same = proves(claim, show) && claim.paid == paid;
            return if is_same { Predicted::Success { is_replay: true } } else { Predicted::KeyReused };
        }
        let predicted = self.claim(show, ELSEWHERE, paid, show.tx < 2);
        if predicted == (Predicted::Success { is_replay: false })
            && let Some(key) = key
        {
            self.keys.insert(key, show.tx);
        }
        predicted
    }

    fn session(&mut self, show: Show, session: usize) -> Predicted {
        let paid = For::Session(session);
        if let Some(claim) = self.claims.get(&show.tx)
            && proves(claim, show)
            && claim.paid == paid
        {
            return Predicted::Success { is_replay: true };
        }
        let names_it = show.tx == 2 + session || (show.tx == 4 && show.nonce == 0);
        let predicted = self.claim(show, SHOP, paid, names_it && !self.completed.contains(&session));
        if predicted == (Predicted::Success { is_replay: false }) {
            self.completed.insert(session);
        }
        predicted
    }

    fn claim(&mut self, show: Show, payee: &'static str, paid: For, pays: bool) -> Predicted {
        if self.claims.contains_key(&show.tx) {
            return Predicted::Refused;
        }
        let named = show.identifier.and_then(|identifier| self.identifiers.get(&(payee, identifier)));
        if named.is_some() {
            return Predicted::IdentifierReused;
        }
        let is_fresh = !self.nonces.contains(&(payee, show.nonce)) && !self.sent_by_wallet.contains(&show.tx);
        let is_signed = matches!(show.signer, Signer::Payer | Signer::PayerAndOther);
        if !is_fresh || !is_signed || !pays {
            return Predicted::Refused;
        }
        self.claims.insert(show.tx, Claim { show, paid });
        self.nonces.insert((payee, show.nonce));
        self.identifiers.extend(show.identifier.map(|identifier| ((payee, identifier), show.tx)));
        Predicted::Success { is_replay: false }
    }
}

/// Says whether a payment is shown by who claimed it: same nonce, same bytes, same keys.
fn proves(claim: &Claim, show: Show) -> bool {
    (claim.show.tx, claim.show.nonce, claim.show.signer) == (show.tx, show.nonce, show.signer)
}

struct Run {
    test: TestEngine,
    sellers: Vec<MerchantId>,
    sessions: Vec<PaymentId>,
    transactions: Vec<Transaction>,
    model: Model,
}

impl Run {
    async fn start() -> Self {
        let test = TestEngine::started(store()).await;
        let merchant = test.merchant().await;
        let sellers = vec![merchant.id, test.merchant().await.id];
        let mut sessions = Vec::new();
        for _ in 0..SESSIONS {
            sessions.push(test.open(&merchant).await.id);
        }
        let soon = test.engine().now() + Duration::from_secs(3_000);
        let pay = |to: &str, memo: &str| signed(vec![op("agent", to, 1_000, memo)], soon, "agent");
        let transactions = vec![
            pay(ELSEWHERE, "one"),
            pay(ELSEWHERE, "two"),
            pay(SHOP, &memo_of(sessions[0])),
            pay(SHOP, &memo_of(sessions[1])),
            pay(SHOP, &format!("x402:{}", nonce(0))),
        ];
        Self { test, sellers, sessions, transactions, model: Model::default() }
    }

    fn payload(&self, show: Show) -> PaymentPayload {
        let mut transaction = self.transactions[show.tx].clone();
        transaction.signatures.clear();
        let signers: &[&str] = match show.signer {
            Signer::Payer => &["agent"],
            Signer::Nobody => &[],
            Signer::Other => &["other"],
            Signer::PayerAndOther => &["other", "agent"],
        };
        for signer in signers {
            transaction.sign(ChainId::MAINNET, Pack::Legacy, &key_of(signer));
        }
        let identifier = show.identifier.map(|number| format!("identifier-of-{number}-payments"));
        PaymentPayload { version: Version::V1, transaction, nonce: nonce(show.nonce), identifier, accepted: None }
    }

    /// Settles while blocks go on.
    async fn settle(&self, target: Target, show: Show, caller: Caller) -> Result<Settled, X402Error> {
        let request = X402Request { target, payload: self.payload(show) };
        let engine = self.test.engine();
        let verdict = engine.x402.verify(&request).await;
        let is_claimed = self.model.claims.contains_key(&show.tx);
        assert!(!(is_claimed && verdict.is_ok()), "a claimed transaction is never valid again");
        let mut settlement = tokio::spawn(async move { engine.x402.settle_for(&request, &caller).await });
        loop {
            tokio::select! {
                biased;
                settlement = &mut settlement => return settlement.unwrap(),
                () = tokio::time::sleep(Duration::from_secs(1)) => {
                    self.test.ledger.produce_mempool();
                    self.test.ledger.settle();
                }
            }
        }
    }

    fn check(
        &self,
        show: Show,
        predicted: Predicted,
        settlement: &Result<Settled, X402Error>,
    ) -> Result<(), TestCaseError> {
        let tx_id = id_of(&self.transactions[show.tx]);
        match (predicted, settlement) {
            (Predicted::Success { is_replay }, Ok(settled)) => {
                prop_assert_eq!((settled.is_replay, settled.tx_id, settled.payer), (is_replay, tx_id, name("agent")));
                prop_assert_eq!(self.test.ledger.count_on_chain(tx_id), 1);
            }
            (Predicted::KeyReused, Err(X402Error::Unavailable(EngineError::KeyReused))) => {}
            (Predicted::IdentifierReused, Err(X402Error::Unavailable(EngineError::IdentifierReused))) => {}
            (Predicted::Refused, Err(X402Error::Refused(Refused { reason, payer, tx_id: named, .. }))) => {
                prop_assert!(*reason != Reason::SettlementPending);
                let is_payer = matches!(show.signer, Signer::Payer | Signer::PayerAndOther);
                prop_assert!(is_payer || (payer.is_none() && named.is_none()), "named to a stranger: {:?}", settlement);
                prop_assert!(named.is_none_or(|named| named == tx_id), "another's transaction");
            }
            _ => return Err(TestCaseError::fail(format!("predicted {predicted:?}, got {settlement:?}"))),
        }
        Ok(())
    }

    async fn step(&mut self, step: Step) -> Result<(), TestCaseError> {
        match step {
            Step::Elsewhere { show, resource, seller, key } => {
                let named = if resource { "/a" } else { "/b" };
                let caller = Caller {
                    seller: seller.map(|seller| self.sellers[seller]),
                    key: key.map(|key| IdempotencyKey::parse(&format!("key-{key}")).unwrap()),
                };
                let settlement = self.settle(Target::Requirements(requirements(named)), show, caller).await;
                let predicted = self.model.elsewhere(show, resource, seller.zip(key));
                self.check(show, predicted, &settlement)
            }
            Step::Session { show, session } => {
                let target = Target::Session(self.sessions[session]);
                let settlement = self.settle(target, show, Caller::default()).await;
                let predicted = self.model.session(show, session);
                self.check(show, predicted, &settlement)
            }
            Step::Wallet { tx } => {
                if self.model.claims.contains_key(&tx) || !self.model.sent_by_wallet.insert(tx) {
                    return Ok(());
                }
                let json = self.transactions[tx].to_condenser_json();
                self.test.env.nodes[0].broadcast(json).await.unwrap();
                self.test.ledger.produce_mempool();
                self.test.ledger.settle();
                if let Some(session) = tx.checked_sub(2).filter(|session| *session < SESSIONS) {
                    if self.model.completed.insert(session) {
                        self.test.until_state(self.sessions[session], State::Completed).await;
                    } else {
                        tokio::time::sleep(Duration::from_secs(30)).await;
                    }
                }
                Ok(())
            }
        }
    }
}

proptest! {
    // 128 unless PROPTEST_CASES asks for more.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 2, ..ProptestConfig::default() })]

    #[test]
    fn one_transaction_is_one_success_however_it_is_shown(steps in prop::collection::vec(steps(), 1..20)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut run = Run::start().await;
            for step in steps {
                run.step(step).await?;
            }
            Ok::<_, TestCaseError>(())
        })?;
    }
}
