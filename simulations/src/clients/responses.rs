//! Checks the responses to verification and settlement requests against what their callers know.

use actors::Settled;
use engine::x402::{ClaimOutcome, Refused};

use super::*;
use crate::observer::Sold;

/// Reasons that are independent of the agent's deviation.
const OF_THE_SESSION: [Reason; 11] = [
    Reason::DuplicateSettlement,
    Reason::SettlementPending,
    Reason::UnexpectedVerifyError,
    Reason::UnexpectedSettleError,
    Reason::SessionNotPending,
    Reason::SessionExpired,
    Reason::SessionCancelling,
    Reason::MerchantInactive,
    Reason::X402Disabled,
    Reason::InvalidTransactionState,
    Reason::PaymentExpired,
];
/// Reasons that are given only once the payer's signatures are verified.
const OF_A_KNOWN_PAYER: [Reason; 3] =
    [Reason::SettlementPending, Reason::InsufficientFunds, Reason::InvalidTransactionState];

/// A presented payment.
pub(super) struct Shown<'a> {
    /// The session; none for a seller's resource.
    pub(super) session: Option<PaymentId>,
    pub(super) payer: &'a str,
    pub(super) tx_id: TxId,
    /// Its deviation; none where it is presented to a seller.
    pub(super) behavior: Option<AgentBehavior>,
    /// Whether it pays less than required.
    pub(super) owes: bool,
}

impl Shown<'_> {
    /// Records that a caller begins to request its settlement.
    pub(super) fn begins(&self, sim: &Simulation) {
        sim.observe(|observer| observer.shown.entry(self.tx_id).or_default().begun += 1);
    }

    /// Checks the response to a settlement.
    pub(super) fn settled(&self, sim: &Simulation, settled: &Settled) {
        if sim.script.setup.facade {
            // The facade returns less, which is checked against the record elsewhere.
            return self.accepted(sim, "settled");
        }
        sim.observe(|observer| {
            let shown = observer.shown.entry(self.tx_id).or_default();
            let was_made = shown.is_made;
            shown.is_made |= !settled.is_replay;
            let is_first = shown.begun < 2;
            let replays = match settled.is_replay {
                true if is_first => Some("the only request for it is reported as a replay"),
                false if was_made => Some("two requests are reported as the first"),
                _ => None,
            };
            if let Some(text) = replays {
                observer.violate("replays-are-marked", format!("{}: {text}", self.tx_id), self.session);
            } else {
                observer.passes("replays-are-marked");
            }
            let was_there = settled
                .block_num
                .is_none_or(|number| !observer.has_one_chain || observer.included_in.contains(&(self.tx_id, number)));
            let is_own = settled.tx_id == self.tx_id && settled.payer.as_str() == self.payer;
            if is_own && was_there {
                observer.passes("responses-name-only-their-payer");
            } else {
                let text = format!("{} of {} returns {settled:?}", self.tx_id, self.payer);
                observer.violate("responses-name-only-their-payer", text, self.session);
            }
        });
        self.accepted(sim, "settled");
    }

    /// Checks that an invalid payment is not accepted.
    fn accepted(&self, sim: &Simulation, how: &str) {
        let is_wrong = match self.behavior {
            Some(AgentBehavior::TooLittle) => self.owes,
            Some(
                AgentBehavior::OtherCurrency
                | AgentBehavior::NoMoney
                | AgentBehavior::FurtherTransfer
                | AgentBehavior::FarExpiration,
            ) => true,
            Some(behavior) => behavior.is_about_fee(),
            None => false,
        };
        sim.observe(|observer| {
            // A clock that is set forward finds no expiration too far away.
            let is_wrong = is_wrong && !(self.behavior == Some(AgentBehavior::FarExpiration) && observer.has_jumped());
            if is_wrong {
                let text = format!("{} is {how} though its payer does this: {:?}", self.tx_id, self.behavior);
                observer.violate("verdicts-are-right", text, self.session);
            } else {
                observer.passes("verdicts-are-right");
            }
        });
    }

    /// Checks the response to a verification.
    pub(super) fn verified(&self, sim: &Simulation, verdict: &Result<AccountName, X402Error>) {
        match verdict {
            Ok(payer) => {
                if payer.as_str() != self.payer {
                    let text = format!("{} of {} is verified as a payment of {payer}", self.tx_id, self.payer);
                    sim.observe(|observer| observer.violate("responses-name-only-their-payer", text, self.session));
                }
                self.accepted(sim, "verified");
            }
            Err(X402Error::Refused(refused)) => self.refused(sim, refused),
            Err(X402Error::Unavailable(_)) => {}
        }
    }

    /// Checks the content of a refusal.
    pub(super) fn refused(&self, sim: &Simulation, refused: &Refused) {
        if sim.script.setup.facade {
            // The facade returns only a reason.
            return;
        }
        let Refused { reason, payer, tx_id, .. } = refused;
        let is_own = payer.is_none_or(|payer| payer.as_str() == self.payer)
            && tx_id.is_none_or(|tx_id| tx_id == self.tx_id)
            && (payer.is_some() || !OF_A_KNOWN_PAYER.contains(reason));
        let is_unregistered = self.session.is_none() && sim.engine_settings().x402.only_registered;
        let wanted = match self.behavior {
            None if is_unregistered => {
                &[Reason::AcceptedRequirementsMismatch, Reason::RecipientMismatch, Reason::InvalidPaymentRequirements][..]
            }
            Some(behavior) => reasons_of(behavior),
            None => &[Reason::AcceptedRequirementsMismatch, Reason::RecipientMismatch][..],
        };
        let is_right = OF_THE_SESSION.contains(reason) || wanted.contains(reason);
        sim.observe(|observer| {
            // A clock that is set back finds every expiration too far away until it has seen the ledger.
            let is_right = is_right || (*reason == Reason::ExpirationTooFar && observer.has_jumped());
            if !is_own {
                let text = format!("{} of {} is refused with {refused:?}", self.tx_id, self.payer);
                observer.violate("responses-name-only-their-payer", text, self.session);
            }
            if is_right {
                observer.passes("verdicts-are-right");
            } else {
                let text = format!(
                    "{} is refused for {}, and its payer does {:?}",
                    self.tx_id,
                    reason.as_str(),
                    self.behavior
                );
                observer.violate("verdicts-are-right", text, self.session);
            }
            if *reason == Reason::SettlementPending && self.session.is_some() {
                let shown = observer.shown.entry(self.tx_id).or_default();
                // No other request can have made it.
                shown.is_made |= shown.begun == 1;
            }
        });
    }
}

/// Returns the reasons for which a payment may be refused because of its agent's deviation.
const fn reasons_of(behavior: AgentBehavior) -> &'static [Reason] {
    match behavior {
        AgentBehavior::TooLittle | AgentBehavior::SmallFee => &[Reason::Amount],
        AgentBehavior::OtherCurrency | AgentBehavior::OtherFeeCurrency => &[Reason::AssetMismatch],
        AgentBehavior::FarExpiration => &[Reason::ExpirationTooFar],
        AgentBehavior::FurtherTransfer => &[Reason::Operations],
        AgentBehavior::NoMoney | AgentBehavior::SpendFirst => &[Reason::InsufficientFunds],
        AgentBehavior::OtherFeeMemo => &[Reason::MemoMismatch],
        AgentBehavior::ReplaceKeys => &[Reason::Authority],
        AgentBehavior::Replay { .. } => &[
            Reason::AcceptedRequirementsMismatch,
            Reason::Operations,
            Reason::RecipientMismatch,
            Reason::AssetMismatch,
            Reason::Amount,
            Reason::AmountMismatch,
            Reason::MemoMismatch,
            Reason::ExpirationTooFar,
            Reason::InsufficientFunds,
        ],
        _ => &[],
    }
}

/// Checks that a payment for a seller's resource is one success, of one request.
pub(super) fn sells(sim: &Simulation, tx_id: TxId, sold: &Sold, settled: &Settled) {
    sim.observe(|observer| {
        let first = observer.sold.entry(tx_id).or_insert_with(|| sold.clone()).clone();
        // An idempotency key without a seller has no owner.
        let may_repeat = first == *sold && sold.seller.is_some() && sold.key.is_some();
        let is_reported = observer.reported.contains(&tx_id);
        let claimed = observer.claims.get(&tx_id);
        let facilitation = claimed.and_then(|claimed| claimed.sale());
        let is_its = facilitation.is_some_and(|sale| {
            sale.resource == sold.resource && sale.seller.is_none_or(|seller| Some(seller) == sold.seller)
        });
        if first != *sold || (is_reported && !may_repeat) || !is_its {
            let text = format!("{tx_id} is a success for {sold:?}, and was one for {first:?}");
            observer.violate("one-success-per-request", text, None);
        } else {
            observer.passes("one-success-per-request");
        }
        // A request with the same key may get the success before the one that made it.
        if !settled.is_replay {
            observer.responded(&Response::Facilitated { tx_id });
        }
    });
}

/// Returns the idempotency key of a seller's request.
pub(super) fn key_of(number: u32) -> IdempotencyKey {
    IdempotencyKey::parse(&format!("request-{number}")).expect("a key of ours")
}

/// Checks that a request that may have the success of a payment is not refused before any caller has it.
pub(super) fn refuses_sale(sim: &Simulation, tx_id: TxId, sold: &Sold, refused: &Refused) {
    if refused.reason != Reason::DuplicateSettlement {
        return;
    }
    sim.observe(|observer| {
        let claimed = observer.claims.get(&tx_id);
        let Some((claimed, sale)) = claimed.and_then(|claimed| Some((claimed, claimed.sale()?))) else { return };
        let is_untold =
            matches!(claimed.outcome, ClaimOutcome::Open | ClaimOutcome::Settled { is_reported: false, .. });
        let is_its_seller = sale.seller.is_none_or(|seller| Some(seller) == sold.seller);
        let key = sold.key.filter(|_| sold.seller.is_some()).map(|key| key_of(key).digest("x402 settle"));
        let is_its_key = sale.request_key.is_none() || sale.request_key == key;
        if is_untold && is_its_seller && is_its_key && sale.resource == sold.resource && !observer.was_damaged {
            let text = format!("{tx_id} is refused to {sold:?}, and nobody has its success");
            observer.violate("sellers-receive-their-success", text, None);
        } else {
            observer.passes("sellers-receive-their-success");
        }
    });
}
