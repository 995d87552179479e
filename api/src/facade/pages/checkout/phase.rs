//! The phases of the checkout page and their texts.

use engine::money::Money;
use proto::{
    ApiError,
    v1::{CancelledBy, Disposition, Finality, Payment, PaymentException, PaymentStatus, Transfer},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::facade::{
    pages::words::{Words, fill},
    record::{self, StatusName, Time, Units, cancellation},
};

/// A phase of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Phase {
    Waiting,
    Part,
    Seen,
    Checking,
    Processing,
    Completed,
    Cancelling,
    Cancelled,
    Expired,
    Failed,
}

impl Phase {
    pub(crate) fn of(payment: &Payment) -> Self {
        match PaymentStatus::try_from(payment.status).unwrap_or(PaymentStatus::Unspecified) {
            PaymentStatus::Processing => Self::Processing,
            PaymentStatus::Completed => Self::Completed,
            PaymentStatus::Failed => Self::Failed,
            PaymentStatus::UserCancelled => Self::Cancelled,
            PaymentStatus::SystemCancelled => Self::Expired,
            PaymentStatus::Pending | PaymentStatus::Unspecified => Self::of_open(payment),
        }
    }

    fn of_open(payment: &Payment) -> Self {
        if payment.claim_tx_id.is_some() {
            Self::Processing
        } else if is_seen(payment) {
            Self::Seen
        } else if cancellation::undecided(payment).is_some() {
            Self::Cancelling
        } else if payment.expired {
            Self::Checking
        } else if payment.amount_paid_units > 0 {
            Self::Part
        } else {
            Self::Waiting
        }
    }

    pub(crate) const fn takes_money(self) -> bool {
        matches!(self, Self::Waiting | Self::Part)
    }

    pub(crate) const fn is_live(self) -> bool {
        matches!(self, Self::Waiting | Self::Part | Self::Seen | Self::Checking | Self::Processing | Self::Cancelling)
    }

    /// Returns how many of the three steps are done: waiting, confirming, paid.
    pub(crate) const fn steps(self) -> Option<usize> {
        match self {
            Self::Waiting | Self::Part => Some(0),
            Self::Seen | Self::Processing => Some(1),
            Self::Completed => Some(2),
            Self::Checking | Self::Cancelling | Self::Cancelled | Self::Expired | Self::Failed => None,
        }
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Part => "part",
            Self::Seen => "seen",
            Self::Checking => "checking",
            Self::Processing => "processing",
            Self::Completed => "completed",
            Self::Cancelling => "cancelling",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::Failed => "failed",
        }
    }
}

/// Returns whether a reversible transfer counts and is not negligible: it pays everything, or a notable part. Anyone
/// can send tiny transfers that count, which must not hide the payment form.
fn is_seen(payment: &Payment) -> bool {
    let is_worth_it = |transfer: &Transfer| {
        let units = transfer.amount.as_ref().map_or(0, |amount| amount.units);
        transfer.finality == Finality::Reversible as i32
            && transfer.disposition == Disposition::Counted as i32
            && units.saturating_mul(100) >= payment.amount_units
    };
    // Many later transfers can push the customer's out of the list.
    payment.transfers.iter().any(is_worth_it) || payment.detected
}

/// The text of a phase: a headline and a sentence.
pub(crate) struct PhaseText {
    pub(crate) headline: &'static str,
    pub(crate) message: String,
}

impl PhaseText {
    /// Returns the text of the phase. A visitor with limited access gets the headline only.
    ///
    /// # Errors
    /// `internal` where the payment's currency is unknown.
    pub(crate) fn of(payment: &Payment, words: Words, whole: bool) -> Result<Self, ApiError> {
        let phase = Phase::of(payment);
        let currency = record::currency(payment.currency)?;
        let money = |units| words.0.money(Money::new(units, currency));
        let has = |exception: PaymentException| payment.exceptions.contains(&(exception as i32));
        let is_wrong = phase == Phase::Waiting && has(PaymentException::WrongCurrency);
        let by_shop = payment.cancellation.as_ref().is_some_and(|request| request.by == CancelledBy::Merchant as i32);
        let (headline, phrase) = match phase {
            Phase::Waiting if is_wrong => (words.wrong(), words.wrong_more()),
            Phase::Waiting => (words.waiting(), words.waiting_more()),
            Phase::Part => (words.part(), words.part_more()),
            Phase::Seen => (words.seen(), words.seen_more()),
            Phase::Checking => (words.checking(), words.checking_more()),
            Phase::Processing => (words.processing(), words.processing_more()),
            Phase::Completed if payment.amount_overpaid_units > 0 => (words.paid(), words.overpaid_more()),
            Phase::Completed => (words.paid(), words.paid_more()),
            Phase::Cancelling => (words.cancelling(), words.cancelling_more()),
            Phase::Cancelled if by_shop => (words.cancelled(), words.shop_cancelled_more()),
            Phase::Cancelled => (words.cancelled(), words.cancelled_more()),
            Phase::Expired if payment.amount_paid_units > 0 => (words.expired(), words.expired_part_more()),
            Phase::Expired if payment.restartable => (words.expired(), words.expired_restart_more()),
            Phase::Expired => (words.expired(), words.expired_more()),
            Phase::Failed => (words.failed(), words.failed_more()),
        };
        if !whole {
            return Ok(Self { headline, message: String::new() });
        }
        let values = [
            ("shop", payment.merchant_name.as_str()),
            ("amount", &money(payment.amount_units)),
            ("paid", &money(payment.amount_paid_units)),
            ("rest", &money(payment.amount_remaining_units)),
            ("over", &money(payment.amount_overpaid_units)),
            ("late", &money(payment.amount_late_units)),
        ];
        let mut message = fill(phrase, &values);
        if payment.amount_late_units > 0 {
            message = format!("{message} {}", fill(words.late_more(), &values));
        }
        Ok(Self { headline, message })
    }
}

/// Changes whenever the page would change. For a visitor with limited access it does not depend on amounts.
pub(crate) fn version(payment: &Payment, whole: bool) -> String {
    let phase = Phase::of(payment).as_str();
    if !whole {
        return phase.to_owned();
    }
    let Payment { amount_paid_units: paid, amount_late_units: late, amount_overpaid_units: over, .. } = payment;
    format!("{phase}-{paid}-{late}-{over}-{}", payment.exceptions.len())
}

/// The live status of the checkout page: the payment's state and the text to show.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Live<'a> {
    id: &'a str,
    status: StatusName,
    #[schema(required = true)]
    completed_at: Option<Time>,
    expired: bool,
    sequence: u64,
    phase: Phase,
    /// A version that changes whenever the page would change.
    version: String,
    /// In the language of the request.
    headline: &'static str,
    /// In the language of the request.
    message: String,
    amount_remaining: Units,
}

impl<'a> Live<'a> {
    /// Returns the live status with everything the visitor may see: everything, or only state and amount.
    ///
    /// # Errors
    /// `internal` where the payment's currency is unknown.
    pub(crate) fn of(payment: &'a Payment, words: Words, whole: bool) -> Result<Self, ApiError> {
        let PhaseText { headline, message } = PhaseText::of(payment, words, whole)?;
        Ok(Self {
            id: &payment.id,
            status: StatusName(record::status_name(payment.status)),
            completed_at: payment.completed_at.map(|at| record::Text(record::instant(at))),
            expired: payment.expired,
            // Every exception increments it.
            sequence: if whole { payment.sequence } else { 0 },
            phase: Phase::of(payment),
            version: version(payment, whole),
            headline,
            message,
            amount_remaining: record::Text(payment.amount_remaining_units),
        })
    }
}

#[cfg(test)]
mod tests {
    use proto::v1::Cancellation;

    use super::*;
    use crate::facade::pages::words::{LANGUAGES, Lang};

    fn payment(status: PaymentStatus) -> Payment {
        Payment {
            status: status.into(),
            currency: proto::v1::Currency::Hbd.into(),
            amount_units: 10_500,
            merchant_name: "Blue Mugs".to_owned(),
            ..Payment::default()
        }
    }

    #[test]
    fn every_state_has_its_phase_and_its_own_words_in_every_language() {
        let transfer = |disposition: Disposition| Transfer {
            finality: Finality::Reversible.into(),
            disposition: disposition.into(),
            block_num: Some(91),
            amount: Some(proto::v1::Money { units: 10_500, ..Default::default() }),
            ..Transfer::default()
        };
        let mut seen = payment(PaymentStatus::Pending);
        seen.transfers.push(transfer(Disposition::Counted));
        let mut dust = payment(PaymentStatus::Pending);
        let amount = Some(proto::v1::Money { units: 1, ..Default::default() });
        dust.transfers.push(Transfer { amount, ..transfer(Disposition::Counted) });
        assert_eq!(Phase::of(&dust), Phase::Waiting, "dust of a third party keeps nobody from paying");
        dust.detected = true;
        assert_eq!(Phase::of(&dust), Phase::Seen, "the customer's transfer need not be listed");
        let mut wrong = payment(PaymentStatus::Pending);
        wrong.transfers.push(transfer(Disposition::WrongCurrency));
        wrong.exceptions.push(PaymentException::WrongCurrency.into());
        let part = Payment { amount_paid_units: 500, ..payment(PaymentStatus::Pending) };
        let checking = Payment { expired: true, ..payment(PaymentStatus::Pending) };
        let claimed = Payment { claim_tx_id: Some("ab".to_owned()), ..payment(PaymentStatus::Pending) };
        let over = Payment { amount_overpaid_units: 7, ..payment(PaymentStatus::Completed) };
        let requested = |by: CancelledBy| Some(Cancellation { by: by.into(), ..Cancellation::default() });
        let by_shop =
            Payment { cancellation: requested(CancelledBy::Merchant), ..payment(PaymentStatus::UserCancelled) };
        let cancelling = Payment { cancellation: requested(CancelledBy::Customer), ..payment(PaymentStatus::Pending) };
        let expired_part = Payment { amount_paid_units: 500, ..payment(PaymentStatus::SystemCancelled) };
        let late = Payment { amount_late_units: 9, ..payment(PaymentStatus::SystemCancelled) };
        let restartable = Payment { restartable: true, ..payment(PaymentStatus::SystemCancelled) };
        let cases = [
            (payment(PaymentStatus::Pending), Phase::Waiting),
            (wrong, Phase::Waiting),
            (part, Phase::Part),
            (seen, Phase::Seen),
            (checking, Phase::Checking),
            (payment(PaymentStatus::Processing), Phase::Processing),
            (payment(PaymentStatus::Completed), Phase::Completed),
            (over, Phase::Completed),
            (payment(PaymentStatus::UserCancelled), Phase::Cancelled),
            (by_shop, Phase::Cancelled),
            (cancelling, Phase::Cancelling),
            (payment(PaymentStatus::SystemCancelled), Phase::Expired),
            (expired_part, Phase::Expired),
            (late, Phase::Expired),
            (restartable, Phase::Expired),
            (payment(PaymentStatus::Failed), Phase::Failed),
        ];
        for (lang, tag, _) in LANGUAGES {
            let mut texts: Vec<String> = Vec::new();
            for (payment, phase) in &cases {
                assert_eq!(Phase::of(payment), *phase);
                assert_eq!(serde_json::to_string(phase).expect("a word"), format!("\"{}\"", phase.as_str()));
                let PhaseText { headline, message } =
                    PhaseText::of(payment, Words(lang), true).expect("a known currency");
                let both = format!("{headline}: {message}");
                assert!(!both.contains(['{', '}']) && !texts.contains(&both), "{tag} {both}");
                texts.push(both);
                assert!(PhaseText::of(payment, Words(lang), false).expect("a known currency").message.is_empty());
            }
        }
        assert_eq!(Phase::of(&claimed), Phase::Processing);
        let seen = PhaseText::of(&cases[3].0, Words(Lang::English), true).expect("a known currency");
        assert!(seen.message.contains("Confirming"));
        assert_eq!(
            cases.iter().map(|(payment, _)| version(payment, true)).collect::<std::collections::BTreeSet<_>>().len(),
            14
        );
    }
}
