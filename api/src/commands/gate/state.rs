//! The states of one payment at the gate: pure, so that every order of steps can be tested.

/// The state of a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// Its settlement began; its outcome may be unknown.
    Settling,
    /// It is settled, and its request is not served yet.
    Settled,
    /// It is settled, and serving its request failed: the payer has a credit for the same request.
    Owed,
    /// Its request was served.
    Served,
}

/// An event of a payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The facilitator confirms the settlement.
    Settle,
    /// The response reached its end.
    Serve,
    /// The upstream or the transfer of its response failed.
    Fail,
}

impl State {
    /// Every state.
    #[cfg(test)]
    pub(super) const ALL: [Self; 4] = [Self::Settling, Self::Settled, Self::Owed, Self::Served];

    /// Returns the word that reports use.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Settling => "settling",
            Self::Settled => "settled",
            Self::Owed => "owed",
            Self::Served => "served",
        }
    }

    /// Parses the word of a state.
    pub(super) fn parse(word: &str) -> Option<Self> {
        [Self::Settling, Self::Settled, Self::Owed, Self::Served].into_iter().find(|state| state.as_str() == word)
    }

    /// Returns the state after a step, or `None` if the state does not allow it.
    pub(super) const fn apply(self, step: Step) -> Option<Self> {
        match (self, step) {
            (Self::Settling | Self::Settled, Step::Settle) => Some(Self::Settled),
            (Self::Owed, Step::Settle | Step::Fail) | (Self::Settled, Step::Fail) => Some(Self::Owed),
            (Self::Settled | Self::Owed | Self::Served, Step::Serve) => Some(Self::Served),
            (Self::Settling, Step::Serve | Step::Fail) | (Self::Served, Step::Settle | Step::Fail) => None,
        }
    }

    /// Returns whether the payer has paid for a request that was not served.
    pub(super) const fn is_credit(self) -> bool {
        matches!(self, Self::Settled | Self::Owed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_settled_payment_is_served_once_and_a_failure_leaves_a_credit() {
        use State::*;
        use Step::*;
        let table = [
            (Settling, Settle, Some(Settled)),
            (Settling, Serve, None),
            (Settling, Fail, None),
            (Settled, Settle, Some(Settled)),
            (Settled, Serve, Some(Served)),
            (Settled, Fail, Some(Owed)),
            (Owed, Settle, Some(Owed)),
            (Owed, Serve, Some(Served)),
            (Owed, Fail, Some(Owed)),
            (Served, Settle, None),
            (Served, Serve, Some(Served)),
            (Served, Fail, None),
        ];
        for (state, step, expected) in table {
            assert_eq!(state.apply(step), expected, "{state:?} {step:?}");
        }
        assert!(State::ALL.into_iter().all(|state| State::parse(state.as_str()) == Some(state)));
        assert_eq!(State::ALL.map(State::is_credit), [false, true, true, false]);
    }
}
