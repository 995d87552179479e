//! The numbers of enums in stored bytes. A number is never reused for another meaning; 0 means none.

use engine::{
    compliance::Window,
    hive::Pack,
    money::Currency,
    ownership::VerificationMethod,
    payment::{Canceller, ClaimFinality, Disposition, Finality, ResolutionKind, Route, State},
    webhook::{DeliveryState, DisableReason, EventType, Trigger},
};

use crate::batch::UnmatchedReason;

/// An enum with a stored number.
pub(crate) trait Code: Copy {
    /// Returns the stored number.
    fn number(self) -> u32;
    /// Returns the value of a stored number.
    fn from_number(number: u32) -> Option<Self>;
}

macro_rules! codes {
    ($($type:ident { $($variant:ident = $code:literal),+ $(,)? })+) => {$(
        impl Code for $type {
            fn number(self) -> u32 {
                match self {
                    $(Self::$variant => $code,)+
                }
            }

            fn from_number(number: u32) -> Option<Self> {
                match number {
                    $($code => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    )+};
}

codes! {
    State { Pending = 1, Processing = 2, Completed = 3, Failed = 4, UserCancelled = 5, SystemCancelled = 6 }
    Currency { Hive = 1, Hbd = 2 }
    Finality { Orphaned = 1, Reversible = 2, Irreversible = 3 }
    Disposition {
        Counted = 1,
        Surplus = 2,
        Late = 3,
        AfterCancel = 4,
        AfterFailure = 5,
        WrongCurrency = 6,
        SelfTransfer = 7,
        Fee = 8,
    }
    VerificationMethod { Signature = 1, Transfer = 2, Operator = 3 }
    Window { Single = 1, Daily = 2, Monthly = 3, NearSingle = 4 }
    Route { Wallet = 1, X402 = 2, Manual = 3 }
    Pack { Legacy = 1, Hf26 = 2 }
    ClaimFinality { Accepted = 1, InBlock = 2, Irreversible = 3 }
    Canceller { Customer = 1, Merchant = 2 }
    ResolutionKind { Accepted = 1, Refunded = 2, Ignored = 3 }
    EventType {
        StatusChanged = 1,
        Exception = 2,
        X402Settled = 3,
        AccountChange = 4,
        RefundCompleted = 5,
        TransferUnmatched = 6,
    }
    Trigger { Auto = 1, Manual = 2, Test = 3 }
    DeliveryState { Pending = 1, Held = 2, Delivered = 3, Failed = 4 }
    DisableReason { Gone = 1, Failing = 2 }
    UnmatchedReason {
        NoSession = 1,
        AmbiguousMemo = 2,
        EncryptedMemo = 3,
        UnknownSession = 4,
        OtherAccount = 5,
        UnsupportedOperation = 6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_states_and_currencies_are_fixed() {
        assert_eq!(State::ALL.map(Code::number), [1, 2, 3, 4, 5, 6]);
        assert_eq!(Currency::ALL.map(Code::number), [1, 2]);
        assert_eq!(ResolutionKind::ALL.map(Code::number), [1, 2, 3]);
        assert_eq!(UnmatchedReason::ALL.map(Code::number), [1, 2, 3, 4, 5, 6]);
        for state in State::ALL {
            assert_eq!(State::from_number(state.number()), Some(state));
        }
        assert_eq!((State::from_number(0), State::from_number(7)), (None, None));
    }
}
