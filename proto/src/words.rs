//! The words of the REST interface for values that are enums over gRPC: one table.

use crate::v1::{
    LedgerNodeCondition, LimitWindow, ReconciliationOutcome, RegistrationMode, WebhookDisabledReason, WebhookOutcome,
    WebhookWarning,
};

macro_rules! words {
    ($($kind:ident { $($value:ident = $word:literal),+ $(,)? })+) => {$(
        impl $kind {
            /// Returns the word of the REST interface; none where nothing is set.
            #[must_use]
            pub const fn word(self) -> Option<&'static str> {
                match self {
                    Self::Unspecified => None,
                    $(Self::$value => Some($word)),+
                }
            }
        }
    )+};
}

words! {
    LedgerNodeCondition {
        Ok = "ok",
        Unknown = "unknown",
        Slow = "slow",
        Stale = "stale",
        Disagreeing = "disagreeing",
        Failing = "failing",
        RateLimited = "rate_limited",
    }
    LimitWindow { Single = "single", Daily = "24h", Monthly = "30d", NearSingle = "near_single" }
    ReconciliationOutcome { Ok = "ok", Mismatch = "mismatch", NotChecked = "not_checked" }
    RegistrationMode { Open = "open", Approval = "approval", Closed = "closed" }
    WebhookDisabledReason { Gone = "gone", Failing = "failing" }
    WebhookWarning { Failing24h = "failing_24h", Failing72h = "failing_72h" }
    WebhookOutcome {
        Success = "success",
        HttpError = "http_error",
        Timeout = "timeout",
        Connect = "connect",
        Tls = "tls",
        Dns = "dns",
        Blocked = "blocked",
        Refused = "refused",
        Reset = "reset",
    }
}
