//! Names in the REST interface of values that are enums over gRPC.

use crate::v1::{
    ApiKeyScope, EventType, LedgerNodeCondition, LimitWindow, PaymentStatusReason, ReconciliationOutcome,
    RegistrationMode, WebhookDisabledReason, WebhookOutcome, WebhookWarning,
};

macro_rules! rest_names {
    ($($kind:ident { $($value:ident = $name:literal),+ $(,)? })+) => {$(
        impl $kind {
            /// Every value except `Unspecified`.
            pub const ALL: &[Self] = &[$(Self::$value),+];

            /// Parses the name in the REST interface.
            #[must_use]
            pub fn from_rest_name(name: &str) -> Option<Self> {
                Self::ALL.iter().find(|value| value.rest_name() == Some(name)).copied()
            }

            /// Returns the name in the REST interface; `None` for `Unspecified`.
            #[must_use]
            pub const fn rest_name(self) -> Option<&'static str> {
                match self {
                    Self::Unspecified => None,
                    $(Self::$value => Some($name)),+
                }
            }
        }
    )+};
}

rest_names! {
    ApiKeyScope {
        PaymentsRead = "payments:read",
        PaymentsWrite = "payments:write",
        MerchantWrite = "merchant:write",
        MerchantPayout = "merchant:payout",
        Admin = "admin",
    }
    EventType {
        PaymentStatusChanged = "payment.status_changed",
        PaymentException = "payment.exception",
        X402Settled = "x402.settled",
        MerchantAccountChange = "merchant.account_change",
        RefundCompleted = "refund.completed",
        TransferUnmatched = "transfer.unmatched",
    }
    PaymentStatusReason {
        SettlementPending = "settlement_pending",
        Paid = "paid",
        TransactionExpired = "transaction_expired",
        CancelledByCustomer = "cancelled_by_customer",
        CancelledByMerchant = "cancelled_by_merchant",
        Expired = "expired",
    }
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
    WebhookDisabledReason { Gone = "gone", Failing = "failing", Merchant = "merchant" }
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

#[cfg(test)]
mod tests {
    use prost::Message;
    use prost_types::{FileDescriptorSet, field_descriptor_proto::Type};

    use super::*;

    /// Names of fields with a closed set of values.
    const CLOSED: [&str; 13] = [
        "action",
        "asset",
        "condition",
        "currency",
        "kind",
        "mode",
        "network",
        "outcome",
        "scopes",
        "state",
        "status",
        "type",
        "types",
    ];
    /// Fields with such names that are strings; their comments state the reason.
    const OPEN: [&str; 2] = ["AuditEntry.action", "X402Accepted.asset"];

    #[test]
    fn a_field_with_a_closed_set_of_values_is_an_enum() {
        let set = FileDescriptorSet::decode(crate::DESCRIPTOR).expect("our own description");
        let (mut texts, mut seen) = (Vec::new(), 0);
        for message in
            set.file.iter().filter(|file| file.package() == "hivetill.engine.v1").flat_map(|f| &f.message_type)
        {
            for field in &message.field {
                let name = field.name();
                let last = name.rsplit('_').next().unwrap_or(name);
                if !CLOSED.contains(&last) && name != "status_reason" {
                    continue;
                }
                seen += 1;
                if field.r#type() == Type::String {
                    texts.push(format!("{}.{name}", message.name()));
                }
            }
        }
        assert!(seen > 20, "{seen}");
        texts.sort();
        assert_eq!(texts, OPEN, "make it an enum, or state in its comment why the set is open");
    }

    #[test]
    fn rest_names_round_trip() {
        for kind in EventType::ALL {
            assert_eq!(kind.rest_name().and_then(EventType::from_rest_name), Some(*kind));
        }
        assert_eq!((EventType::from_rest_name("payment.created"), EventType::from_rest_name("")), (None, None));
    }
}
