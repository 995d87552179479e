//! Prepares a batch for the writer: expensive work that needs no lock runs in the caller's task.

use engine::{
    account::AccountName,
    billing::{Sale, Schedule},
    compliance,
    event_list::Epoch,
    idempotency::IdempotencyRecord,
    ids::{DeliveryId, EndpointId, EventId, MerchantId, PaymentId},
    ledger::{ChainPosition, TxId},
    merchant::Merchant,
    mutant,
    payment::{Credit, Payment},
    quota::Quota,
    time::Timestamp,
    webhook::{Attempt, Delivery, Trigger},
    x402::{ClaimOutcome, ClaimRecord},
};
use sha2::{Digest, Sha256};

use crate::{
    batch::{Batch, CommitId, Cursor, EventRecord, Handling, HoldReason, Invoicing, Write},
    duty::{Duty, EngineId},
    embedded::{
        commit::{audit::EncodedEntry, ledger_entries},
        read::{
            search::{self, Indexed},
            unmatched,
        },
    },
    record::{self, event::AttemptKey, indexed::PaymentFacts, merchant::MerchantFacts, vault::Vault},
};

/// A batch with encoded records.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// The id of the commit.
    pub(crate) id: Option<CommitId>,
    /// The writes, in order.
    pub(crate) steps: Vec<Step>,
}

/// One write.
#[derive(Debug)]
pub(crate) enum Step {
    Merchant(MerchantStep),
    Payment(Box<PaymentStep>),
    Transfer(Box<TransferStep>),
    Event(EventStep),
    Claim {
        claimed: ClaimRecord,
        /// The keys of its nonce and its identifier.
        names: Vec<[u8; 32]>,
    },
    ClaimOutcome {
        tx_id: TxId,
        expected: ClaimOutcome,
        outcome: ClaimOutcome,
        /// The encoded claim with its new outcome; set by the writer's check.
        record: Vec<u8>,
        is_facilitation: bool,
    },
    Remember {
        remembered: IdempotencyRecord,
        /// Maximum number of keys of the merchant.
        most: u64,
        /// A deleted key that is replaced; set by the writer's check.
        before: Option<IdempotencyRecord>,
    },
    Forget {
        made_before: Timestamp,
    },
    Delivery(DeliveryStep),
    EnableEndpoint(EndpointId),
    Unwatch(AccountName),
    ForgetClaims {
        tx_ids: Vec<TxId>,
        /// The keys of their nonces and identifiers; set by the writer's check.
        names: Vec<[u8; 32]>,
    },
    Prune {
        happened_before: Timestamp,
    },
    Cursor {
        cursor: Cursor,
        expected: Option<Cursor>,
    },
    Unmatched {
        account: AccountName,
        place: ChainPosition,
        record: Vec<u8>,
        /// The unknown session it names.
        names: Option<PaymentId>,
        ledger_entries: Option<ledger_entries::LedgerEntryRow>,
    },
    Handle {
        account: AccountName,
        place: ChainPosition,
        handling: Handling,
        /// The encoded transfer with its new handling; set by the writer's check.
        record: Vec<u8>,
        /// The unknown session that the stored transfer names.
        names: Option<PaymentId>,
        /// The transaction and the session of an assignment; set by the writer's check.
        assigned: Option<(TxId, PaymentId)>,
    },
    Invoice(Box<Invoicing>),
    FeeTiers {
        schedule: Schedule,
        expected: u64,
    },
    ReceiptKeys {
        version: u64,
        /// With the sealed key.
        record: Vec<u8>,
        expected: u64,
    },
    Audit(EncodedEntry),
    Rate {
        record: Vec<u8>,
        at: Timestamp,
        expected: Option<Timestamp>,
    },
    Lease {
        engine: EngineId,
        is_new: bool,
        now: Timestamp,
        until: Timestamp,
    },
    EndLease {
        engine: EngineId,
        by: EngineId,
        now: Timestamp,
    },
    Duty {
        duty: Duty,
        engine: EngineId,
        is_taken: bool,
        expected: u64,
    },
    OnDuty {
        duty: Duty,
        term: u64,
    },
    BeginEpoch(Epoch),
    Note {
        name: &'static str,
        value: Vec<u8>,
        expected: Option<Vec<u8>>,
    },
    CheckCompliance {
        check: compliance::PaymentCheck,
        /// The assessment to store; set by the writer's check.
        assessment: Option<Box<compliance::Assessment>>,
    },
    Compliance {
        merchant: MerchantId,
        change: compliance::ComplianceChange,
    },
    Admit {
        payment: PaymentId,
        merchant: MerchantId,
        quota: Quota,
    },
    Reconciliation {
        from: Timestamp,
        record: Vec<u8>,
        checked_at: Timestamp,
        expected: Option<Timestamp>,
    },
    /// Search words of payments, from the indexer.
    Index(Indexed),
    /// A commit that must not be applied from now on.
    Forbid(CommitId),
}

/// A merchant to write.
#[derive(Debug)]
pub(crate) struct MerchantStep {
    pub(crate) id: MerchantId,
    pub(crate) facts: MerchantFacts,
    pub(crate) expected: Option<u64>,
    /// When the change was made.
    pub(crate) at: Timestamp,
    pub(crate) record: Vec<u8>,
    /// The replaced merchant; set by the writer's check.
    pub(crate) before: Option<MerchantFacts>,
}

impl MerchantStep {
    fn of(merchant: Merchant, expected: Option<u64>, vault: &Vault) -> Self {
        assert_newer(merchant.version, expected);
        Self {
            id: merchant.id,
            facts: MerchantFacts::of(&merchant),
            expected,
            at: merchant.updated_at,
            record: record::merchant_to_bytes(merchant, vault),
            before: None,
        }
    }
}

/// A payment to write.
#[derive(Debug)]
pub(crate) struct PaymentStep {
    pub(crate) id: PaymentId,
    pub(crate) facts: PaymentFacts,
    pub(crate) expected: Option<u64>,
    pub(crate) record: Vec<u8>,
    /// The transaction ids of its refunds, for search.
    pub(crate) refund_words: Vec<String>,
    /// When it completed and its amount in US cents; none if it has not completed, and for invoices, which are not
    /// sales.
    pub(crate) completed_volume: Option<(Timestamp, u64)>,
    /// Its contribution to its merchant's usage, once it has completed.
    pub(crate) sale: Option<Sale>,
    /// When it was updated.
    pub(crate) updated_at: Timestamp,
    /// Its refunds as ledger entries.
    pub(crate) ledger_entries: Vec<ledger_entries::LedgerEntryRow>,
    /// The replaced payment; set by the writer's check.
    pub(crate) before: Option<PaymentFacts>,
}

impl PaymentStep {
    fn of(payment: &Payment, expected: Option<u64>) -> Self {
        assert_newer(payment.version, expected);
        let record = record::payment_to_bytes(payment);
        Self {
            id: payment.id,
            facts: PaymentFacts::of(payment, &record),
            expected,
            refund_words: search::refund_words_of(payment),
            completed_volume: payment.completed_volume(),
            sale: Sale::of(payment),
            updated_at: payment.updated_at,
            ledger_entries: ledger_entries::of_payment(payment),
            record,
            before: None,
        }
    }
}

/// A change of a delivery.
#[derive(Debug)]
pub(crate) enum DeliveryStep {
    Attempt { delivery: Delivery, attempt: Box<Attempt>, key: AttemptKey, record: Vec<u8> },
    Hold { delivery: Delivery, reason: HoldReason },
    GiveUp(Delivery),
    Redeliver(Delivery),
    Replay { delivery: Delivery, at: Timestamp },
}

impl DeliveryStep {
    /// Prepares an attempt.
    fn attempt(delivery: Delivery, attempt: Attempt) -> Self {
        assert_eq!(
            (attempt.delivery, attempt.event, attempt.number),
            (delivery.id, delivery.event, delivery.attempts + 1),
            "an attempt is the next one of its delivery"
        );
        Self::Attempt {
            delivery,
            key: (attempt.event.bits(), attempt.delivery.bits(), attempt.number),
            record: record::attempt_to_bytes(attempt.clone()),
            attempt: Box::new(attempt),
        }
    }

    /// Returns the delivery as it was read.
    pub(crate) fn delivery(&self) -> &Delivery {
        match self {
            Self::Attempt { delivery, .. }
            | Self::Hold { delivery, .. }
            | Self::GiveUp(delivery)
            | Self::Redeliver(delivery)
            | Self::Replay { delivery, .. } => delivery,
        }
    }
}

/// An event to insert_event.
#[derive(Debug)]
pub(crate) struct EventStep {
    pub(crate) id: EventId,
    pub(crate) merchant: MerchantId,
    payment: PaymentId,
    deliveries: Vec<(EndpointId, DeliveryId)>,
    pub(crate) at: Timestamp,
    is_test: bool,
    pub(crate) record: Vec<u8>,
}

impl EventStep {
    fn of(event: &EventRecord) -> Self {
        Self {
            id: event.id,
            merchant: event.merchant,
            payment: event.payment,
            deliveries: event.deliveries.clone(),
            at: event.at,
            is_test: event.is_test,
            record: record::event_to_bytes(event),
        }
    }

    /// Returns its deliveries, due at once; `seq` is the event's position in the merchant's list.
    pub(crate) fn deliveries(&self, seq: u64) -> impl Iterator<Item = Delivery> {
        self.deliveries.iter().map(move |(endpoint, id)| Delivery {
            id: *id,
            event: self.id,
            event_seq: seq,
            merchant: self.merchant,
            endpoint: *endpoint,
            payment: self.payment,
            trigger: if self.is_test && !mutant!("test-is-retried") { Trigger::Test } else { Trigger::Auto },
            attempts: 0,
            schedule_from: 0,
            due_at: self.at,
        })
    }
}

impl Prepared {
    /// Encodes a batch.
    pub(crate) fn from_batch(batch: Batch, vault: &Vault) -> Self {
        let steps = batch.writes.into_iter().map(|write| Step::from_write(write, vault)).collect();
        Self { id: batch.id, steps }
    }

    /// Forbids a commit that was not applied; refused where it was.
    pub(crate) fn forbidding(id: CommitId) -> Self {
        Self { id: None, steps: vec![Step::Forbid(id)] }
    }
}

impl Step {
    fn from_write(write: Write, vault: &Vault) -> Self {
        match write {
            Write::Merchant { merchant, expected } => Self::Merchant(MerchantStep::of(*merchant, expected, vault)),
            Write::Payment { payment, expected } => Self::Payment(Box::new(PaymentStep::of(&payment, expected))),
            Write::Transfer { payment, merchant, credit } => {
                Self::Transfer(Box::new(TransferStep::of(payment, merchant, *credit)))
            }
            Write::Event(event) => Self::Event(EventStep::of(&event)),
            Write::Remember { remembered, most } => Self::Remember { remembered, most, before: None },
            Write::Forget { made_before } => Self::Forget { made_before },
            Write::Claim(claimed) => Self::Claim { names: unique_keys(&claimed), claimed },
            Write::ClaimOutcome { tx_id, expected, outcome } => {
                Self::ClaimOutcome { tx_id, expected, outcome, record: Vec::new(), is_facilitation: false }
            }
            Write::Attempt { delivery, attempt } => Self::Delivery(DeliveryStep::attempt(delivery, attempt)),
            Write::Undeliverable(delivery) => Self::Delivery(DeliveryStep::GiveUp(delivery)),
            Write::Hold { delivery, reason } => Self::Delivery(DeliveryStep::Hold { delivery, reason }),
            Write::Redeliver(delivery) => Self::Delivery(DeliveryStep::Redeliver(delivery)),
            Write::Replay { delivery, at } => Self::Delivery(DeliveryStep::Replay { delivery, at }),
            Write::EnableEndpoint { endpoint, .. } => Self::EnableEndpoint(endpoint),
            Write::Unwatch(account) => Self::Unwatch(account),
            Write::ForgetClaims(tx_ids) => Self::ForgetClaims { tx_ids, names: Vec::new() },
            Write::Prune { happened_before } => Self::Prune { happened_before },
            Write::Cursor { cursor, expected } => Self::Cursor { cursor, expected },
            Write::Unmatched(unmatched) => Self::Unmatched {
                account: *unmatched.account(),
                place: unmatched.transfer.position,
                names: unmatched::named(&unmatched),
                ledger_entries: ledger_entries::of_unmatched(&unmatched),
                record: record::unmatched_to_bytes(unmatched),
            },
            Write::Handle { account, place, handling } => {
                Self::Handle { account, place, handling, record: Vec::new(), names: None, assigned: None }
            }
            Write::Invoice(invoicing) => Self::Invoice(invoicing),
            Write::FeeTiers { schedule, expected } => {
                assert!(schedule.version > expected, "a write increments the version");
                Self::FeeTiers { schedule, expected }
            }
            Write::ReceiptKeys { keys, expected } => {
                assert!(keys.version > expected, "a write increments the version");
                Self::ReceiptKeys {
                    version: keys.version,
                    record: record::receipt_keys_to_bytes(&keys, vault),
                    expected,
                }
            }
            Write::Audit(entry) => Self::Audit(EncodedEntry::of(*entry)),
            Write::CheckCompliance(check) => Self::CheckCompliance { check, assessment: None },
            Write::Reconciliation { day, expected } => Self::Reconciliation {
                from: day.from,
                checked_at: day.checked_at,
                record: record::day_to_bytes(*day),
                expected,
            },
            Write::Admit { payment, merchant, quota } => Self::Admit { payment, merchant, quota },
            Write::Compliance { merchant, change } => Self::Compliance { merchant, change },
            Write::BeginEpoch(epoch) => Self::BeginEpoch(epoch),
            Write::Rate { rate, expected } => Self::Rate { at: rate.at, record: record::rate_to_bytes(rate), expected },
            Write::Lease { engine, is_new, now, duration } => {
                Self::Lease { engine, is_new, now, until: now + duration }
            }
            Write::EndLease { engine, by, now } => Self::EndLease { engine, by, now },
            Write::Duty { duty, engine, is_taken, expected } => Self::Duty { duty, engine, is_taken, expected },
            Write::OnDuty { duty, term } => Self::OnDuty { duty, term },
            Write::Note { name, value, expected } => Self::Note { name, value, expected },
        }
    }
}

/// Asserts that a snapshot has a new version: with an unchanged one a conflict would go undetected.
fn assert_newer(version: u64, expected: Option<u64>) {
    assert!(expected.is_none_or(|expected| version > expected), "a write increments the version");
}

/// Returns the keys of a claim's nonce and identifier, which must be unique like its transaction.
pub(crate) fn unique_keys(claimed: &ClaimRecord) -> Vec<[u8; 32]> {
    let identifier = claimed.identifier.iter().map(|identifier| identifier_digest(&claimed.pay_to, identifier));
    std::iter::once(nonce_digest(&claimed.pay_to, &claimed.nonce)).chain(identifier).collect()
}

/// Returns the key of a nonce: a digest, because payers choose nonces of any length.
pub(crate) fn nonce_digest(pay_to: &AccountName, nonce: &str) -> [u8; 32] {
    name_digest("nonce", pay_to.as_str(), nonce)
}

/// Returns the key of a payment identifier.
pub(crate) fn identifier_digest(pay_to: &AccountName, identifier: &str) -> [u8; 32] {
    name_digest("identifier", pay_to.as_str(), identifier)
}

/// Account names contain no zero byte, so that different triples have different encodings.
fn name_digest(kind: &str, pay_to: &str, text: &str) -> [u8; 32] {
    let hash = Sha256::new().chain_update(kind).chain_update([0]).chain_update(pay_to).chain_update([0]);
    hash.chain_update(text).finalize().into()
}

/// A transfer to write.
#[derive(Debug)]
pub(crate) struct TransferStep {
    pub(crate) payment: PaymentId,
    pub(crate) merchant: MerchantId,
    pub(crate) credit: Credit,
    /// Whether it is new; set by the writer's check.
    pub(crate) is_new: bool,
}

impl TransferStep {
    /// Creates the step for a transfer of a merchant's payment.
    pub(crate) const fn of(payment: PaymentId, merchant: MerchantId, credit: Credit) -> Self {
        Self { payment, merchant, credit, is_new: false }
    }
}
