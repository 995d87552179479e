//! Starting an expired payment again: a new session with the same terms.

use std::time::Duration;

use super::{Draft, Payment, State};
use crate::{fields::MetadataValue, time::Timestamp};

/// How long after its expiry a payment can be started again. Not longer than an idempotency key is kept, so that a payment
/// is started again only once.
pub const RESTART_WINDOW: Duration = Duration::from_secs(24 * 3_600);

/// The metadata key under which a payment names the expired payment that it replaces. It may exceed the limits of the
/// metadata that a merchant sends.
pub const RESTART_OF: &str = "restartOf";

/// The reason why a payment cannot be started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RestartRejection {
    /// The merchant does not allow it.
    #[error("the merchant does not allow customers to start an expired payment again")]
    Disabled,
    /// The payment is in another state, or an invoice.
    #[error("only an expired payment can be started again")]
    NotExpired,
    /// A transfer names the payment: the customer may have paid already.
    #[error("a transfer for this payment has arrived; contact the merchant")]
    HasTransfers,
    /// The payment expired too long ago.
    #[error("the payment expired more than 24 hours ago")]
    TooLate,
}

impl Payment {
    /// Returns the request for a new payment with the terms of this expired one, which its metadata names.
    ///
    /// # Errors
    /// A [`RestartRejection`].
    pub fn restarted(&self, now: Timestamp) -> Result<Draft, RestartRejection> {
        self.check_restart(now)?;
        let mut metadata = self.metadata.clone();
        metadata.insert(RESTART_OF.to_owned(), MetadataValue::Text(self.id.to_string()));
        Ok(Draft {
            amount: self.amount,
            description: self.description.clone(),
            metadata,
            redirect_url: self.redirect_url.clone(),
            cancel_url: self.cancel_url.clone(),
            lifetime: Some(self.expires_at.since(self.created_at)),
        })
    }

    /// Checks whether the payment can be started again.
    ///
    /// # Errors
    /// A [`RestartRejection`] other than [`RestartRejection::Disabled`], which the merchant decides.
    pub fn check_restart(&self, now: Timestamp) -> Result<(), RestartRejection> {
        if self.state != State::SystemCancelled || self.is_invoice {
            return Err(RestartRejection::NotExpired);
        }
        if self.transfer_count() > 0 {
            return Err(RestartRejection::HasTransfers);
        }
        if now >= self.expires_at + RESTART_WINDOW {
            return Err(RestartRejection::TooLate);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        account::AccountName,
        fields::Metadata,
        idempotency::KEY_LIFETIME,
        ids::{MerchantId, PaymentId, SlugToken},
        ledger::{ChainPosition, Transfer, TxId, memo_of},
        money::{Currency, FeePercent, Money},
        payment::{Command, FeeMode, Finality, Route, Terms},
    };

    const OPENED: u64 = 1_000_000;
    const EXPIRES: u64 = OPENED + 600;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_seconds(seconds)
    }

    fn draft() -> Draft {
        Draft {
            amount: Money::new(1_500, Currency::Hbd),
            description: "Blue mug".to_owned(),
            metadata: Metadata::from([("orderId".to_owned(), MetadataValue::Text("7".to_owned()))]),
            redirect_url: Some("https://shop.example/thanks".to_owned()),
            cancel_url: Some("https://shop.example/basket".to_owned()),
            lifetime: Some(Duration::from_secs(600)),
        }
    }

    fn open(draft: Draft) -> Payment {
        let terms = Terms {
            merchant: MerchantId::from_bits(1),
            pay_to: AccountName::parse("blue.mugs").unwrap(),
            fee_percent: FeePercent::parse("1.5").unwrap(),
            fee_mode: FeeMode::Invoice,
            rate: None,
            default_lifetime: Duration::from_secs(1_800),
            grace: Duration::ZERO,
            livemode: true,
        };
        Payment::open(draft, terms, PaymentId::from_bits(7), SlugToken::from_bits(8), at(OPENED)).unwrap()
    }

    fn after(payment: &Payment, command: &Command, seconds: u64) -> Payment {
        payment.apply(command, at(seconds)).unwrap().payment
    }

    fn expired(payment: &Payment) -> Payment {
        after(payment, &Command::Expire { irreversible_time: at(EXPIRES + 3) }, EXPIRES + 60)
    }

    fn paid(units: u64, seconds: u64) -> Command {
        let transfer = Transfer {
            tx_id: TxId([9; 20]),
            position: ChainPosition { block_num: 5, tx_in_block: 0, op_in_tx: 0 },
            block_time: at(seconds),
            from: AccountName::parse("alice").unwrap(),
            to: AccountName::parse("blue.mugs").unwrap(),
            money: Money::new(units, Currency::Hbd),
            memo: memo_of(PaymentId::from_bits(7)),
        };
        Command::Credit { transfer, finality: Finality::Irreversible, route: Route::Wallet, memo_normalized: false }
    }

    #[test]
    fn an_expired_payment_is_started_again_with_the_same_terms_and_names_itself() {
        let again = expired(&open(draft())).restarted(at(EXPIRES + 60)).unwrap();
        let mut metadata = draft().metadata;
        metadata.insert("restartOf".to_owned(), MetadataValue::Text(PaymentId::from_bits(7).to_string()));
        assert_eq!(again, Draft { metadata, ..draft() });
        // A chain of restarts names the payment before it only.
        let next = expired(&open(again)).restarted(at(EXPIRES + 60)).unwrap();
        assert_eq!(next.metadata.len(), 2);
    }

    #[test]
    fn a_payment_that_is_open_paid_or_expired_long_ago_is_not_started_again() {
        let payment = open(draft());
        let rejected = |payment: &Payment, seconds| payment.check_restart(at(seconds)).unwrap_err();
        assert_eq!(rejected(&payment, OPENED + 1), RestartRejection::NotExpired);
        // Expired by the clock, but no irreversible block confirms it.
        assert_eq!(rejected(&payment, EXPIRES + 60), RestartRejection::NotExpired);
        let completed = after(&payment, &paid(1_500, OPENED + 3), OPENED + 6);
        assert_eq!(rejected(&completed, EXPIRES + 60), RestartRejection::NotExpired);
        let partly_paid = expired(&after(&payment, &paid(500, OPENED + 3), OPENED + 6));
        assert_eq!(rejected(&partly_paid, EXPIRES + 60), RestartRejection::HasTransfers);
        let expired = expired(&payment);
        let late = after(&expired, &paid(1_500, EXPIRES + 9), EXPIRES + 70);
        assert_eq!(rejected(&late, EXPIRES + 90), RestartRejection::HasTransfers);
        let invoice = Payment { is_invoice: true, ..expired.clone() };
        assert_eq!(rejected(&invoice, EXPIRES + 90), RestartRejection::NotExpired);
        let day = RESTART_WINDOW.as_secs();
        assert_eq!(expired.check_restart(at(EXPIRES + day - 1)), Ok(()));
        assert_eq!(rejected(&expired, EXPIRES + day), RestartRejection::TooLate);
        assert!(RESTART_WINDOW <= KEY_LIFETIME, "a second restart would create a second payment");
    }
}
