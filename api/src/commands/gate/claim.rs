//! The claim of one request on its payment: verify, settle, and record how far it came. Shared by HTTP requests and tool
//! calls.

use std::sync::{Arc, PoisonError};

use actors::{environment::Clock as _, system::SystemClock};
use engine::{
    ledger::TxId,
    x402::{PaymentPayload, Reason},
};

use super::{
    ledger::{Failed, Payment},
    offer::{Denial, Settled},
    proxy::Gate,
    routes::Price,
    state::{State, Step},
};

/// What a payment is for.
#[derive(Clone, Copy)]
pub(super) struct Sale<'a> {
    pub(super) price: &'a Price,
    /// The URL of the offer.
    pub(super) url: &'a str,
    pub(super) payload: &'a PaymentPayload,
}

/// The claim, released when it is dropped.
pub(super) struct Claim {
    pub(super) gate: Arc<Gate>,
    tx_id: TxId,
    request: String,
}

/// The state in which an earlier request left the payment.
pub(super) enum Progress {
    /// There was none.
    New,
    /// The settlement began with this idempotency key, and its outcome is not recorded.
    Settling(String),
    /// It is settled, and its request was not served.
    Credit(Settled),
}

/// Why a payment is not settled.
pub(super) enum Unsettled {
    /// It was refused; another payment may be accepted.
    Denied(Denial),
    /// It was used.
    Used(Denial),
    /// A request with it is being served.
    Busy(Denial),
    /// Its outcome is unknown until the ledger decides.
    Pending(Denial),
    /// No verdict was reached: the same payment may be submitted again.
    Unjudged(Denial),
}

impl Claim {
    /// Claims a payment for a request.
    pub(super) fn take(gate: &Arc<Gate>, tx_id: TxId, request: String) -> Result<Self, Unsettled> {
        let is_first = gate.in_flight.lock().unwrap_or_else(PoisonError::into_inner).insert(tx_id);
        if is_first {
            return Ok(Self { gate: Arc::clone(gate), tx_id, request });
        }
        let message = "a request with this payment is being served; repeat it in a moment".to_owned();
        Err(Unsettled::Busy(Denial { reason: Reason::DuplicateSettlement, message, payer: None, tx_id: None }))
    }

    /// Reads the record of the payment.
    pub(super) fn progress(&self) -> Result<Progress, Unsettled> {
        let Some(record) = self.gate.ledger.find(self.tx_id)? else { return Ok(Progress::New) };
        if record.request != self.request || record.state() == Some(State::Served) {
            let message = "this payment was used for a request".to_owned();
            let tx_id = Some(self.tx_id.to_string());
            return Err(Unsettled::Used(Denial { reason: Reason::DuplicateSettlement, message, payer: None, tx_id }));
        }
        if record.state().is_some_and(State::is_credit) {
            return Ok(Progress::Credit(Settled { tx_id: record.tx_id, payer: record.payer }));
        }
        Ok(Progress::Settling(record.idempotency_key))
    }

    /// Checks the payment; nothing is moved.
    pub(super) async fn verify(&self, sale: &Sale<'_>) -> Result<(), Unsettled> {
        match self.gate.facilitator.verify(sale.price, sale.url, sale.payload).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(denial)) => Err(denied(denial)),
            Err(error) => Err(unjudged(&error.message)),
        }
    }

    /// Records the start of a settlement, settles, and records the result.
    pub(super) async fn settle(&self, sale: &Sale<'_>, idempotency_key: String) -> Result<Settled, Unsettled> {
        let ledger = &self.gate.ledger;
        let mut payment = Payment::new(self.tx_id, self.request.clone(), idempotency_key, SystemClock.now());
        payment.amount = sale.price.amount.to_string();
        payment.pay_to = sale.price.pay_to.to_string();
        ledger.put(self.tx_id, &payment)?;
        let key = payment.idempotency_key.clone();
        match self.gate.facilitator.settle(sale.price, sale.url, sale.payload, &key).await {
            Ok(Ok(settled)) => {
                payment.payer.clone_from(&settled.payer);
                ledger.put(self.tx_id, &payment)?;
                self.step(Step::Settle, None);
                Ok(settled)
            }
            Ok(Err(denial)) if denial.reason == Reason::SettlementPending => Err(Unsettled::Pending(denial)),
            Ok(Err(denial)) if denial.reason == Reason::UnexpectedSettleError => Err(unjudged(&denial.message)),
            Ok(Err(denial)) => {
                ledger.remove(self.tx_id)?;
                Err(denied(denial))
            }
            Err(error) => Err(unjudged(&error.message)),
        }
    }

    /// Records a step; a failed write is logged and does not undo the payment.
    pub(super) fn step(&self, step: Step, failure: Option<&str>) {
        if let Err(error) = self.gate.ledger.step(self.tx_id, step, failure, SystemClock.now()) {
            tracing::error!("cannot record a payment: {error}");
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.gate.in_flight.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.tx_id);
    }
}

impl From<Failed> for Unsettled {
    fn from(error: Failed) -> Self {
        unjudged(&error.to_string())
    }
}

fn denied(denial: Denial) -> Unsettled {
    match denial.reason {
        Reason::DuplicateSettlement => Unsettled::Used(denial),
        Reason::UnexpectedVerifyError | Reason::UnexpectedSettleError => unjudged(&denial.message),
        _ => Unsettled::Denied(denial),
    }
}

fn unjudged(why: &str) -> Unsettled {
    tracing::warn!("no verdict on a payment: {why}");
    let message = "no verdict was reached; repeat the request with the same payment".to_owned();
    Unsettled::Unjudged(Denial { reason: Reason::UnexpectedSettleError, message, payer: None, tx_id: None })
}
