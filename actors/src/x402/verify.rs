//! The two operations of x402: verify a payment, and settle it.

use engine::account::AccountName;

use crate::x402::handle::{Caller, Settled, Target, X402, X402Error, X402Request};

/// Returns the label of a verdict in the metrics.
fn verdict_word<T>(verdict: &Result<T, X402Error>) -> &'static str {
    match verdict {
        Ok(_) => "success",
        Err(X402Error::Refused(refused)) => refused.reason.as_str(),
        Err(X402Error::Unavailable(_)) => "unavailable",
    }
}

impl X402 {
    /// Verifies a payment without side effects. Returns the payer.
    ///
    /// # Errors
    /// [`X402Error::Refused`] of the first failed check.
    pub async fn verify(&self, request: &X402Request) -> Result<AccountName, X402Error> {
        let verdict = self.verified(request).await;
        self.access.context.metrics.judged("verify", verdict_word(&verdict));
        verdict
    }

    async fn verified(&self, request: &X402Request) -> Result<AccountName, X402Error> {
        let payload = &request.payload;
        let checked = match &request.target {
            Target::Session(id) => {
                let payment = self.session(*id).await?;
                self.refuse_claimed(&request.target, payment.pay_to, payload).await?;
                self.check_session(&payment, payload).await?
            }
            Target::Requirements(requirements) => {
                self.refuse_claimed(&request.target, requirements.pay_to, payload).await?;
                self.check_requirements(requirements, payload).await?
            }
        };
        Ok(checked.presented.payer)
    }

    /// Verifies a payment, claims its transaction for this purpose, broadcasts it and completes. The payer of a session
    /// gets the same receipt however often it submits the same payment.
    ///
    /// # Errors
    /// [`X402Error::Refused`]; with [`SettlementPending`](engine::x402::Reason::SettlementPending) the same request may
    /// be repeated until it is decided.
    pub async fn settle(&self, request: &X402Request) -> Result<Settled, X402Error> {
        self.settle_for(request, &Caller::default()).await
    }

    /// The same as [`X402::settle`]; for requirements of other servers, the same seller gets the same success with the
    /// same idempotency key. A session needs no key.
    ///
    /// # Errors
    /// As [`X402::settle`], [`KeyReused`](crate::error::EngineError::KeyReused) if the key was used for another
    /// request, and [`IdentifierReused`](crate::error::EngineError::IdentifierReused).
    pub async fn settle_for(&self, request: &X402Request, caller: &Caller) -> Result<Settled, X402Error> {
        let verdict = match &request.target {
            Target::Session(id) => self.settle_session(*id, &request.payload).await,
            Target::Requirements(requirements) => {
                self.settle_requirements(requirements, &request.payload, caller).await
            }
        };
        self.access.context.metrics.judged("settle", verdict_word(&verdict));
        verdict
    }
}
