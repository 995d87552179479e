//! Prepares a batch for the writer: expensive work that needs no database runs in the caller's task.

use std::sync::Arc;

use engine::{billing::Sale, ids::MerchantId, payment::Payment, time::Timestamp};

use crate::{
    batch::{Batch, CommitId, Write},
    embedded::{commit::ledger_entries, read::search},
    postgres::tables::payments::PaymentRow,
};

/// A batch whose payments are rows already.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    /// The id of the commit.
    pub(crate) id: Option<u128>,
    /// The writes, in order.
    pub(crate) steps: Vec<Step>,
}

/// One write.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Payment(Box<PaymentStep>),
    Other(Box<Write>),
}

/// A payment to write.
#[derive(Debug, Clone)]
pub(crate) struct PaymentStep {
    pub(crate) payment: Arc<Payment>,
    pub(crate) expected: Option<u64>,
    pub(crate) row: PaymentRow,
    /// When it completed, and its value in US cents; none before that, and for invoices, which are no sales.
    pub(crate) turnover: Option<(Timestamp, u64)>,
    /// Its usage, once it has completed.
    pub(crate) sale: Option<Sale>,
    /// The transactions of its refunds, by which it is found.
    pub(crate) refund_words: Vec<String>,
    /// Its refunds as ledger entries.
    pub(crate) entries: Vec<ledger_entries::LedgerEntryRow>,
}

impl Prepared {
    /// Prepares a batch.
    ///
    /// # Panics
    /// If a version does not increase.
    pub(crate) fn of(batch: Batch) -> Self {
        Self { id: batch.id.map(CommitId::bits), steps: batch.writes.into_iter().map(Step::of).collect() }
    }

    /// Returns the merchant whose rows it changes most: batches of one merchant have the same writer.
    pub(crate) fn merchant(&self) -> Option<MerchantId> {
        self.steps.iter().find_map(|step| match step {
            Step::Payment(step) => Some(step.payment.merchant),
            Step::Other(write) => match &**write {
                Write::Merchant { merchant, .. } => Some(merchant.id),
                Write::Event(event) => Some(event.merchant),
                Write::Remember { remembered, .. } => Some(remembered.merchant),
                Write::Attempt { delivery, .. }
                | Write::Undeliverable(delivery)
                | Write::Hold { delivery, .. }
                | Write::Redeliver(delivery)
                | Write::Replay { delivery, .. } => Some(delivery.merchant),
                Write::EnableEndpoint { merchant, .. } | Write::Compliance { merchant, .. } => Some(*merchant),
                Write::Invoice(invoicing) => Some(invoicing.period.merchant),
                _ => None,
            },
        })
    }
}

impl Step {
    /// Returns whether it inserts a row that is assumed to be absent at first.
    pub(crate) fn is_insertion(&self) -> bool {
        match self {
            Self::Payment(step) => step.expected.is_none(),
            Self::Other(write) => matches!(
                **write,
                Write::Event(_) | Write::Claim(_) | Write::Redeliver(_) | Write::Transfer { .. } | Write::Unmatched(_)
            ),
        }
    }

    fn of(write: Write) -> Self {
        match write {
            Write::Payment { payment, expected } => {
                let is_newer = expected.is_none_or(|expected| payment.version > expected);
                assert!(is_newer, "a snapshot's version grows with every write");
                Self::Payment(Box::new(PaymentStep {
                    expected,
                    row: PaymentRow::of(&payment),
                    turnover: payment.completed_volume(),
                    sale: Sale::of(&payment),
                    refund_words: search::refund_words_of(&payment),
                    entries: ledger_entries::of_payment(&payment),
                    payment,
                }))
            }
            other => Self::Other(Box::new(other)),
        }
    }
}
