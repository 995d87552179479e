//! What an observer knows: what is durable, what is irreversible on the chain, what was acknowledged. It sees every
//! commit, every webhook, every broadcast and every response at the moment they happen, and checks the invariants then.

mod audit;
mod check;
mod claims;
mod deliveries;
mod durable;
mod engines;
mod events;
mod latency;
mod observations;
mod payments;
mod proofs;
mod readings;
mod received;
mod watched;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use engine::{
    account::AccountName,
    billing::Schedule,
    idempotency::{IdempotencyRecord, Resource},
    ids::{DeliveryId, EndpointId, EventId, KeyId, MerchantId, PaymentId},
    ledger::{ChainPosition, Transfer, TxId},
    merchant::Merchant,
    money::HivePrice,
    payment::{ClaimFinality, Credit, Finality, LISTED_TRANSFERS_MAX, Payment, Rate, State},
    reconciliation::Day,
    time::Timestamp,
    webhook::{Attempt, Delivery, Endpoint, EventType, Outcome},
    x402::{ClaimOutcome, ClaimRecord, Purpose},
};
use storage::{Batch, Cursor, EventRecord, Handling, Unmatched, Write};

use crate::{
    index::{Index, IndexSet},
    model::StoreModel,
};

pub(crate) use self::readings::Readings;
pub use self::{
    check::{Check, FinalVerdict, Invariant, Verdict},
    claims::Broadcasts,
    durable::Durable,
    engines::{EngineDuties, EngineSetup, Paused},
    latency::Latency,
    observations::*,
    proofs::Proofs,
    received::read_webhook,
    watched::Watched,
};

/// A broken invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which.
    pub invariant: &'static str,
    /// The observation.
    pub text: String,
    /// The session it is about, by its number in the script.
    pub session: Option<u32>,
    /// When.
    pub at_ms: u64,
}

/// What the observer knows.
#[derive(Default)]
pub struct Observer {
    /// The invariants that it checks.
    invariants: &'static [Invariant],
    /// Durable payments.
    pub payments: Index<PaymentId, Known>,
    /// Whether a payment was written since a list or a search was last compared.
    pub(crate) is_list_changed: bool,
    /// Their transfers.
    pub rows: BTreeMap<PaymentId, Rows>,
    /// Durable merchants.
    pub merchants: BTreeMap<MerchantId, Merchant>,
    /// Every account a merchant ever had.
    pub accounts: Watched,
    /// Proofs of accounts.
    pub proofs: Proofs,
    /// When awaited things happened.
    pub latency: Latency,
    /// The stored reconciliations, by the time the day ends.
    pub reconciled: BTreeMap<Timestamp, Day>,
    /// Announced events.
    pub events: Index<EventId, EventRecord>,
    /// The length of each merchant's list of events.
    pub event_seqs: BTreeMap<MerchantId, u64>,
    /// Deliveries.
    pub deliveries: Index<DeliveryId, DeliveryState>,
    /// Claims.
    pub claims: Index<TxId, ClaimRecord>,
    /// Nonces of claims.
    pub nonces: Index<(AccountName, String), TxId>,
    /// The scanner's cursor.
    pub cursor: Option<Cursor>,
    /// The first cursor: earlier blocks do not concern the engine.
    pub first_cursor: Option<Cursor>,
    /// Unmatched transfers.
    pub unmatched: BTreeMap<(TxId, u32), Unmatched>,
    /// Which session each final transfer is credited to.
    pub credited: Index<(TxId, u32), PaymentId>,
    /// The transfers of irreversible blocks.
    pub final_transfers: Index<(TxId, u32), Transfer>,
    /// Their operations by transaction.
    pub final_ops: Index<TxId, Vec<u32>>,
    /// The transfers that pay a session, or once did.
    pub(super) final_by_target: Index<PaymentId, Vec<(TxId, u32)>>,
    /// The transfers by block.
    pub final_by_block: BTreeMap<u32, Vec<(TxId, u32)>>,
    /// The same by the session that their memo names.
    pub final_by_session: Index<PaymentId, Vec<(TxId, u32)>>,
    /// The time of the newest irreversible block, and its number.
    pub final_time: Timestamp,
    /// Its number.
    pub final_num: u32,
    /// Which session a transaction's memo names, as its sender meant it; every transaction of a customer is here.
    pub intents: Index<TxId, Option<PaymentId>>,
    /// Which session the memo of a fee names in a transaction whose other memo names none.
    pub fee_intents: BTreeMap<(TxId, u32), PaymentId>,
    /// The sessions that single transfers were assigned to.
    pub assignments: BTreeMap<(TxId, u32), PaymentId>,
    /// Those that were assigned by hand.
    pub assignments_by_hand: BTreeSet<(TxId, u32)>,
    /// Transactions that have ever been in a block, irreversible or not.
    pub ever_included: IndexSet<TxId>,
    /// The blocks they were in.
    pub included_in: BTreeSet<(TxId, u32)>,
    /// Whether every node always has the same blocks.
    pub has_one_chain: bool,
    /// Payments that agents presented, and their outcomes.
    pub shown: BTreeMap<TxId, Presentations>,
    /// Which callers got the success of a payment for a resource.
    pub sold: BTreeMap<TxId, Sold>,
    /// Transactions that a node has accepted.
    pub ever_accepted: IndexSet<TxId>,
    /// Transactions that their payers broadcast themselves.
    pub own_broadcasts: IndexSet<TxId>,
    /// Transactions whose payer got a final refusal.
    pub refused: IndexSet<TxId>,
    /// Nodes that refused a transaction because they were behind, or returned wrong data about it.
    pub wrong_refusals: BTreeMap<TxId, BTreeSet<usize>>,
    /// What the engine sent to nodes, and what it received from them.
    pub broadcasts: Broadcasts,
    /// Nodes that refused a transaction at its last broadcast.
    pub refusals: BTreeMap<TxId, BTreeSet<usize>>,
    /// How many nodes there are.
    pub nodes: usize,
    /// Transactions whose claim was released without a transfer: the engine regards them as refused or expired for good.
    pub released_claims: IndexSet<TxId>,
    /// Transactions whose open claim a restored store does not know: they may still settle, whatever was reported since.
    pub forgotten: IndexSet<TxId>,
    /// The transfers of a session that its merchant accepted as they came.
    pub accepted: BTreeMap<PaymentId, BTreeSet<(TxId, u32)>>,
    /// When blocks became irreversible, virtual milliseconds, by number.
    pub finalized_ms: BTreeMap<u32, u64>,
    /// When endpoints were last set or enabled, virtual milliseconds.
    pub endpoint_set_ms: BTreeMap<EndpointId, u64>,
    /// Maximum time from the irreversibility of a wallet's payment to its completion without faults, milliseconds.
    pub prompt_ms: Option<u64>,
    /// Whether no fault is injected and no node is late.
    pub is_calm: bool,
    /// The time between two blocks.
    pub block_interval: Duration,
    /// Sessions that another engine created, with its prices.
    pub other_engine: BTreeSet<PaymentId>,
    /// What the market has paid for HBD, in millionths of a dollar, and until when, virtual milliseconds.
    pub hbd_prices: BTreeMap<u64, u64>,
    /// What it pays now.
    pub hbd_now: u64,
    /// Until when a majority of the nodes last lacked the price of HBD, virtual milliseconds.
    pub priceless_until_ms: u64,
    /// The durable price of HBD, and the one before, in millionths of a dollar.
    pub(crate) hbd_read: Readings<u64>,
    /// The durable prices.
    pub(crate) rate: Option<Rate>,
    /// The witnesses' prices of HIVE, and until when each was in force, virtual milliseconds; the last one is.
    pub(crate) hive_prices: Vec<(HivePrice, u64)>,
    /// The durable price of HIVE, and the one before.
    pub(crate) hive_read: Readings<HivePrice>,
    /// Payments for other servers whose payer got a success.
    pub reported: IndexSet<TxId>,
    /// The account that collects fees.
    pub fee_account: Option<AccountName>,
    /// Batches whose outcome is unknown.
    pub unknown_commits: Vec<Batch>,
    /// The response of each receiver to the attempt in flight.
    pub receiver_responses: BTreeMap<(DeliveryId, u32), Outcome>,
    /// The expected health of endpoints by their attempts, since each was set or enabled.
    pub endpoints: BTreeMap<EndpointId, EndpointSeen>,
    /// Events that receivers got, by payment.
    pub received: Index<PaymentId, BTreeSet<EventId>>,
    /// Requests in flight.
    pub posts_in_flight: BTreeMap<DeliveryId, PaymentId>,
    /// When merchants last changed their subscriptions, virtual milliseconds.
    subscribed_ms: BTreeMap<MerchantId, u64>,
    /// When the account of a merchant or its proof last changed, virtual milliseconds.
    proof_changed_ms: BTreeMap<MerchantId, u64>,
    /// When the recent requests to each endpoint began, virtual milliseconds: those of ten seconds, of one process.
    pub(crate) posts_ms: BTreeMap<EndpointId, Vec<u64>>,
    /// The number of durable batches.
    pub(crate) commits: u64,
    /// When events became durable, virtual milliseconds.
    pub(crate) events_ms: BTreeMap<EventId, u64>,
    /// The expected content of the store apart from payments.
    pub(crate) model: StoreModel,
    /// The fee tiers of the settings, where merchants are billed.
    pub(crate) flat_tiers: Option<Schedule>,
    /// Payments whose merchant requested the deletion of metadata or note.
    pub(crate) deletions: BTreeSet<PaymentId>,
    /// How long the metadata of ended payments is kept.
    pub(crate) metadata_retention: Option<Duration>,
    /// The minimum delay of the change of a proven account.
    pub(crate) account_change_wait: Duration,
    /// How long events are kept.
    pub(crate) event_retention: Duration,
    /// The value from which a claim completes only on an irreversible block, US cents, and the finality below it.
    pub(crate) claim_finality: Option<(u64, ClaimFinality)>,
    /// How long the notes of decisions are kept.
    pub(crate) note_retention: Option<Duration>,
    /// Payments changed since the last boot.
    pub dirty: BTreeSet<PaymentId>,
    /// Sessions by their idempotency key.
    pub remembered: BTreeMap<(MerchantId, [u8; 32]), PaymentId>,
    /// Sessions that callers got in a response, by the number of their request.
    pub opened: BTreeMap<u32, PaymentId>,
    /// Whether any row has been damaged.
    pub was_damaged: bool,
    /// When a backup was last restored, virtual milliseconds; 0 if none was.
    pub(crate) restored_ms: u64,
    /// Whether several engines share the store. The order of its rows is then not modeled.
    pub(crate) has_several_engines: bool,
    /// How several engines are set up.
    pub(crate) engine_setup: EngineSetup,
    /// Their duties.
    pub(crate) duties: EngineDuties,
    /// Payments that a damaged row concerns.
    pub damaged_payments: BTreeSet<PaymentId>,
    /// Merchants that a damaged row concerns.
    pub damaged_merchants: BTreeSet<MerchantId>,
    /// How often each invariant was checked and held.
    pub passes: Vec<u64>,
    /// The current time, virtual milliseconds.
    pub now_ms: u64,
    /// When the wall clock jumped last, virtual milliseconds.
    jumped_ms: Option<u64>,
    violation: Option<Violation>,
    marks: Vec<&'static str>,
}

impl Observer {
    /// Returns an observer without observations.
    #[must_use]
    pub fn new(invariants: &'static [Invariant], fee_account: Option<AccountName>, has_several_engines: bool) -> Self {
        let at_peg = 1_000_000;
        Self {
            invariants,
            fee_account,
            has_several_engines,
            passes: vec![0; invariants.len()],
            hbd_now: at_peg,
            priceless_until_ms: 0,
            hbd_read: Readings::of(at_peg),
            ..Self::default()
        }
    }

    /// Takes the first violation out.
    pub fn violation(&self) -> Option<&Violation> {
        self.violation.as_ref()
    }

    /// Takes the marks that were set since the last call.
    pub fn take_marks(&mut self) -> Vec<&'static str> {
        std::mem::take(&mut self.marks)
    }

    /// Records a broken invariant. Only the first is kept: later ones may be consequences.
    pub fn violate(&mut self, invariant: &'static str, text: String, payment: Option<PaymentId>) {
        let session = payment.and_then(|id| self.payments.get(&id)).and_then(|known| known.session);
        let at_ms = self.now_ms;
        self.violation.get_or_insert(Violation { invariant, text, session, at_ms });
    }

    /// Records that a rare state was reached.
    pub(crate) fn mark(&mut self, name: &'static str) {
        self.marks.push(name);
    }

    /// Checks every invariant of a kind.
    fn ask(&mut self, payment: Option<PaymentId>, ask: impl Fn(&Self, &Check) -> Option<Verdict>) {
        for (at, invariant) in self.invariants.iter().enumerate() {
            match ask(self, &invariant.check) {
                None => {}
                Some(Ok(())) => self.passes[at] += 1,
                Some(Err(text)) => {
                    self.violate(invariant.name, text, payment);
                    return;
                }
            }
        }
    }

    /// Records that a node refuses what the chain accepts.
    pub fn refused_wrongly(&mut self, tx_id: TxId, node: usize) {
        self.wrong_refusals.entry(tx_id).or_default().insert(node);
    }

    /// Returns whether a majority of nodes refused a transaction, or were wrong about it. Another node may have accepted it
    /// without a response that arrived, and relay it later: then its outcome is not known.
    #[must_use]
    pub fn is_misled(&self, tx_id: TxId) -> bool {
        let decide =
            |nodes: &BTreeMap<TxId, BTreeSet<usize>>| nodes.get(&tx_id).is_some_and(|of| of.len() > self.nodes / 2);
        decide(&self.refusals) || decide(&self.wrong_refusals)
    }

    /// Returns whether a damaged row concerns a payment.
    #[must_use]
    pub fn is_affected_by_damage(&self, payment: &Payment) -> bool {
        self.damaged_payments.contains(&payment.id) || self.damaged_merchants.contains(&payment.merchant)
    }

    // ---- what is durable -------------------------------------------------------------------------------------------

    /// Records that a batch is durable.
    pub fn committed(&mut self, batch: &Batch) {
        self.commits += 1;
        self.accepted_commit(batch);
        self.audited(batch);
        for write in &batch.writes {
            if let Write::Handle { account, place, handling: Handling::Assigned { payment, by, .. } } = write {
                self.assigned(account, *place, *payment, by);
            }
        }
        self.unmatched_are_announced(batch);
        for write in &batch.writes {
            self.model_write(write);
            self.written(write, batch);
        }
        self.claims_are_dropped(batch);
    }

    /// Checks that a payment has no claim on a transaction that is refused or has expired.
    fn claims_are_dropped(&mut self, batch: &Batch) {
        for write in &batch.writes {
            let Write::ClaimOutcome { tx_id, outcome: ClaimOutcome::Refused { .. } | ClaimOutcome::Expired, .. } =
                write
            else {
                continue;
            };
            let Some(id) = self.claims.get(tx_id).and_then(claims::session_of) else { continue };
            let claim = self.payments.get(&id).and_then(|known| known.payment.claim.as_ref());
            if claim.is_some_and(|claim| claim.tx_id == *tx_id) {
                let text = format!("{tx_id} is refused or has expired, and its claim stays");
                self.violate("expired-claims-leave-nothing", text, Some(id));
            } else {
                self.passes("expired-claims-leave-nothing");
            }
        }
    }

    /// Records that one write of a batch is durable.
    fn written(&mut self, write: &Write, batch: &Batch) {
        match write {
            Write::Payment { payment, .. } => self.payment_written(payment, batch),
            Write::Merchant { merchant, .. } => self.merchant_written(merchant),
            Write::Rate { rate, .. } => self.rate_written(rate),
            Write::Event(record) => self.event_written(record),
            Write::Claim(claimed) => self.claim_written(claimed),
            Write::ClaimOutcome { tx_id, outcome, .. } => self.settlement_written(*tx_id, outcome),
            Write::Attempt { delivery, attempt } => self.attempt_written(delivery, attempt),
            Write::Redeliver(delivery) => self.redelivery_written(delivery),
            Write::Replay { delivery, at } => self.replay_written(delivery.id, *at),
            Write::Undeliverable(delivery) => self.left_outbox(delivery),
            Write::Hold { delivery, .. } => {
                self.held(delivery);
                self.left_outbox(delivery);
            }
            Write::Unmatched(unmatched) => self.unmatched_written(unmatched),
            Write::Cursor { cursor, .. } => self.cursor_written(*cursor),
            Write::Remember { remembered, .. } => self.idempotency_key_written(remembered),
            Write::EnableEndpoint { endpoint, .. } => {
                self.endpoints.remove(endpoint);
                self.endpoint_set_ms.insert(*endpoint, self.now_ms);
            }
            Write::Unwatch(account) => self.unwatched(account),
            Write::Invoice(_) => self.marks.push("a month is invoiced"),
            Write::Reconciliation { day, .. } => self.books_written(day),
            // Transfers are observed with their payment, assignments before everything else in the batch.
            Write::Transfer { .. } | Write::Handle { .. } => {}
            Write::Lease { engine, .. } => self.lease_written(*engine),
            Write::EndLease { engine, by, .. } => self.lease_ended(*engine, *by),
            Write::Duty { duty, expected, .. } => self.duty_written(*duty, expected + 1),
            Write::Audit(_)
            | Write::BeginEpoch(_)
            | Write::Note { .. }
            | Write::OnDuty { .. }
            | Write::Forget { .. }
            | Write::Prune { .. }
            | Write::ForgetClaims(_)
            | Write::FeeTiers { .. }
            | Write::ReceiptKeys { .. }
            | Write::CheckCompliance(_)
            | Write::Admit { .. }
            | Write::Compliance { .. } => {}
        }
    }

    fn merchant_written(&mut self, merchant: &Merchant) {
        self.accounts.has(merchant.hive_account, merchant.updated_at, self.scanned());
        self.secrets_written(merchant);
        self.ownership_written(merchant);
        let before = self.merchants.insert(merchant.id, merchant.clone());
        let subscribed = |merchant: &Merchant| {
            let others = merchant.endpoints.iter().map(|endpoint| (endpoint.id, endpoint.events, endpoint.is_enabled));
            (merchant.webhook_events, others.collect::<Vec<_>>())
        };
        if before.as_ref().is_some_and(|before| subscribed(before) != subscribed(merchant)) {
            self.subscribed_ms.insert(merchant.id, self.now_ms);
        }
        let proven = |merchant: &Merchant| (merchant.hive_account, merchant.ownership.proof.is_some());
        if before.as_ref().is_none_or(|before| proven(before) != proven(merchant)) {
            self.proof_changed_ms.insert(merchant.id, self.now_ms);
        }
        if before.as_ref().is_none_or(|before| before.webhook_url != merchant.webhook_url) {
            self.endpoint_set_ms.insert(EndpointId::default_of(merchant.id), self.now_ms);
        }
        for endpoint in &merchant.endpoints {
            let known = before.iter().flat_map(|before| &before.endpoints).find(|known| known.id == endpoint.id);
            let set = |endpoint: &Endpoint| (endpoint.url.clone(), endpoint.is_enabled);
            if known.is_none_or(|known| set(known) != set(endpoint)) {
                self.endpoint_set_ms.insert(endpoint.id, self.now_ms);
            }
        }
        if let Some(before) = before.filter(|before| before.hive_account != merchant.hive_account) {
            self.accounts.left(before.hive_account, self.now_ms);
        }
    }

    /// Records that a delivery left the outbox.
    fn left_outbox(&mut self, delivery: &Delivery) {
        if let Some(delivery_state) = self.deliveries.get_mut(&delivery.id) {
            delivery_state.due_at = None;
        }
    }

    fn idempotency_key_written(&mut self, remembered: &IdempotencyRecord) {
        let Resource::Payment(made) = remembered.resource else { return };
        let earlier = self.remembered.insert((remembered.merchant, remembered.key), made);
        if let Some(earlier) = earlier.filter(|earlier| *earlier != made) {
            let text = format!("{earlier} and {made} were created with one key");
            self.violate("one-key-one-session", text, Some(earlier));
        }
    }

    /// Records that an account is no longer watched, if no merchant has it.
    fn unwatched(&mut self, account: &AccountName) {
        if self.merchants.values().any(|merchant| merchant.hive_account == *account) {
            return;
        }
        let scanned = self.scanned();
        if self.accounts.ends(*account, self.now_ms, scanned) {
            self.passes("left-accounts-are-watched");
            self.marks.push("an account is no longer watched");
        } else {
            let text = format!("@{account} is no longer watched, and its merchant left it less than a month ago");
            self.violate("left-accounts-are-watched", text, None);
        }
    }

    /// Returns the newest block whose effects are durable.
    fn scanned(&self) -> u32 {
        self.cursor.map_or(0, |cursor| cursor.block_id.number())
    }

    fn unmatched_written(&mut self, unmatched: &Unmatched) {
        let transfer = &unmatched.transfer;
        let key = (transfer.tx_id, transfer.position.op_in_tx);
        if self.final_transfers.get(&key).is_none_or(|true_one| true_one != transfer) {
            let text = format!("{} op {} is kept as unmatched and is not on the chain", key.0, key.1);
            self.violate("credit-is-on-the-chain", text, None);
        }
        self.unmatched.insert(key, unmatched.clone());
        self.marks.push("a transfer matches no session");
    }

    /// Returns when an API key expires: none if it is not the merchant's, inner none if it never expires.
    pub(crate) fn key_state(&self, merchant: MerchantId, key: KeyId) -> Option<Option<Timestamp>> {
        let merchant = self.merchants.get(&merchant)?;
        merchant.keys.iter().find(|known| known.id == key).map(|known| known.expires_at)
    }

    /// Records the assignment of a transfer: it counts for the session instead of the one of its memo, if the session
    /// still waits.
    fn assigned(&mut self, account: &AccountName, place: ChainPosition, payment: PaymentId, by: &str) {
        let is_it = |kept: &&mut Unmatched| kept.transfer.to == *account && kept.transfer.position == place;
        let Some(kept) = self.unmatched.values_mut().find(is_it) else {
            self.violate("no-transfer-is-lost", "an unknown transfer is assigned".to_owned(), Some(payment));
            return;
        };
        let key = (kept.transfer.tx_id, place.op_in_tx);
        let owner = self.payments.get(&payment).and_then(|known| self.merchants.get(&known.payment.merchant));
        if by != BY_MEMO && !owner.is_some_and(|owner| has_proven(owner, account)) {
            let text = format!("@{account} was never proven by the merchant that assigns its money");
            self.violate("only-owners-decide", text, Some(payment));
        }
        if self.claims.get(&key.0).is_some_and(|claimed| claimed.sale().is_some()) {
            self.violate("sold-or-assigned", format!("{} was sold and is assigned", key.0), Some(payment));
        }
        self.assignments.insert(key, payment);
        self.final_has_target(key);
        if by != BY_MEMO {
            self.assignments_by_hand.insert(key);
        }
        if self.payments.get(&payment).is_some_and(|known| known.payment.state == State::Pending) {
            let meant = self.final_by_session.entry(payment).or_default();
            if !meant.contains(&key) {
                meant.push(key);
            }
        }
    }

    fn books_written(&mut self, day: &Day) {
        self.ask(None, |observer, check| match check {
            Check::Reconciliation(check) => Some(check(&ReconciliationWrite { day, observer })),
            _ => None,
        });
        self.marks.push(if day.unchecked == 0 { "a day is reconciled" } else { "a day cannot be reconciled" });
        self.reconciled.insert(day.to, day.clone());
    }

    /// Records that a commit that moves the cursor conflicts with another one.
    pub fn cursor_refused(&mut self) {
        // A damaged row is no longer as the scanner wrote it. Of several engines another one may have taken over.
        if !self.was_damaged && !self.has_several_engines {
            let text = "a commit that moves the cursor is refused without a concurrent one".to_owned();
            self.violate("one-scanner-moves-the-cursor", text, None);
        }
    }

    fn cursor_written(&mut self, to: Cursor) {
        if let Some(from) = self.cursor {
            self.ask(None, |observer, check| match check {
                Check::Cursor(check) => Some(check(&CursorWrite { from, to, observer })),
                _ => None,
            });
        }
        self.passes("one-scanner-moves-the-cursor");
        self.first_cursor.get_or_insert(to);
        self.cursor = Some(to);
    }
}
