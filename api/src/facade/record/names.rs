//! The names in the interface of the enumerations of the gRPC messages.

use proto::v1::{
    self, CancelledBy, Disposition, Finality, PaymentException, PaymentStatus, ResolutionKind, Route, UnmatchedReason,
    UnmatchedStatus,
};

/// Returns the name of a payment status.
pub(crate) fn status_name(wire: i32) -> &'static str {
    name_of(PaymentStatus::try_from(wire), PaymentStatus::Unspecified, PaymentStatus::as_str_name, &STATUS_NAMES)
}

/// Returns the payment status of a name.
pub(crate) fn status_of_name(text: &str) -> Option<PaymentStatus> {
    (1..=6).filter_map(|wire| PaymentStatus::try_from(wire).ok()).find(|status| status_name((*status).into()) == text)
}

/// Maps the values of an enumeration to names by their common prefix: `PAYMENT_STATUS_PENDING` is `pending`.
pub(crate) struct EnumNames {
    pub(crate) prefix: &'static str,
    pub(crate) names: &'static [&'static str],
}

pub(crate) fn name_of<T: Copy, E>(
    read: Result<T, E>,
    unknown: T,
    name: fn(&T) -> &'static str,
    names: &EnumNames,
) -> &'static str {
    let name = name(&read.unwrap_or(unknown));
    let bare = name.strip_prefix(names.prefix).unwrap_or(name);
    names.names.iter().find(|name| name.eq_ignore_ascii_case(bare)).copied().unwrap_or("unknown")
}

pub(crate) static STATUS_NAMES: EnumNames = EnumNames {
    prefix: "PAYMENT_STATUS_",
    names: &["pending", "processing", "completed", "failed", "user_cancelled", "system_cancelled"],
};
pub(crate) static EXCEPTION_NAMES: EnumNames = EnumNames {
    prefix: "PAYMENT_EXCEPTION_",
    names: &[
        "underpaid",
        "overpaid",
        "paid_again",
        "paid_late",
        "paid_after_cancel",
        "paid_after_failure",
        "wrong_currency",
        "self_transfer",
        "settlement_reversed",
        "manual",
    ],
};
pub(crate) static FINALITY_NAMES: EnumNames =
    EnumNames { prefix: "FINALITY_", names: &["reversible", "irreversible", "orphaned"] };
pub(crate) static DISPOSITION_NAMES: EnumNames = EnumNames {
    prefix: "DISPOSITION_",
    names: &["counted", "surplus", "late", "after_cancel", "after_failure", "wrong_currency", "self", "fee"],
};
pub(crate) static ROUTE_NAMES: EnumNames = EnumNames { prefix: "ROUTE_", names: &["wallet", "x402", "manual"] };
pub(crate) static CANCELLED_BY_NAMES: EnumNames =
    EnumNames { prefix: "CANCELLED_BY_", names: &["customer", "merchant"] };
pub(crate) static RESOLUTION_NAMES: EnumNames =
    EnumNames { prefix: "RESOLUTION_KIND_", names: &["accepted", "refunded", "ignored"] };

pub(crate) fn exception_name(wire: i32) -> &'static str {
    let read = PaymentException::try_from(wire);
    name_of(read, PaymentException::Unspecified, PaymentException::as_str_name, &EXCEPTION_NAMES)
}

pub(crate) fn finality_name(wire: i32) -> &'static str {
    name_of(Finality::try_from(wire), Finality::Unspecified, Finality::as_str_name, &FINALITY_NAMES)
}

pub(crate) fn disposition_name(wire: i32) -> &'static str {
    name_of(Disposition::try_from(wire), Disposition::Unspecified, Disposition::as_str_name, &DISPOSITION_NAMES)
}

pub(crate) fn resolution_name(wire: i32) -> &'static str {
    let read = ResolutionKind::try_from(wire);
    name_of(read, ResolutionKind::Unspecified, ResolutionKind::as_str_name, &RESOLUTION_NAMES)
}

pub(crate) fn route_name(wire: i32) -> &'static str {
    name_of(Route::try_from(wire), Route::Unspecified, Route::as_str_name, &ROUTE_NAMES)
}

pub(crate) fn cancelled_by_name(wire: i32) -> &'static str {
    name_of(CancelledBy::try_from(wire), CancelledBy::Unspecified, CancelledBy::as_str_name, &CANCELLED_BY_NAMES)
}

pub(crate) static UNMATCHED_REASON_NAMES: EnumNames = EnumNames {
    prefix: "UNMATCHED_REASON_",
    names: &[
        "no_session",
        "ambiguous_memo",
        "encrypted_memo",
        "unknown_session",
        "other_account",
        "unsupported_operation",
    ],
};
pub(crate) static UNMATCHED_STATUS_NAMES: EnumNames =
    EnumNames { prefix: "UNMATCHED_STATUS_", names: &["open", "assigned", "ignored"] };

pub(crate) fn unmatched_reason_name(wire: i32) -> &'static str {
    let read = UnmatchedReason::try_from(wire);
    name_of(read, UnmatchedReason::Unspecified, UnmatchedReason::as_str_name, &UNMATCHED_REASON_NAMES)
}

pub(crate) fn unmatched_status_name(wire: i32) -> &'static str {
    let read = UnmatchedStatus::try_from(wire);
    name_of(read, UnmatchedStatus::Unspecified, UnmatchedStatus::as_str_name, &UNMATCHED_STATUS_NAMES)
}

/// Returns the names of a payment's exceptions.
pub(crate) fn exception_names(wire: &[i32]) -> Vec<&'static str> {
    wire.iter().map(|wire| exception_name(*wire)).collect()
}

/// Returns the name of a network.
pub(crate) const fn network_name(network: v1::LedgerNetwork) -> &'static str {
    match network {
        v1::LedgerNetwork::Mainnet => "mainnet",
        v1::LedgerNetwork::Testnet => "testnet",
        v1::LedgerNetwork::Development => "development",
        v1::LedgerNetwork::Unspecified => "unknown",
    }
}

/// Returns the name of an account's verification status.
pub(crate) const fn verification_name(verification: v1::AccountVerification) -> &'static str {
    match verification {
        v1::AccountVerification::Verified => "verified",
        v1::AccountVerification::Stale => "stale",
        v1::AccountVerification::Unverified | v1::AccountVerification::Unspecified => "unverified",
    }
}

/// Returns the name of the method by which an account was proven.
pub(crate) const fn proof_method_name(method: v1::AccountProofMethod) -> Option<&'static str> {
    match method {
        v1::AccountProofMethod::Unspecified => None,
        v1::AccountProofMethod::Signature => Some("signature"),
        v1::AccountProofMethod::Transfer => Some("transfer"),
        v1::AccountProofMethod::Operator => Some("operator"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that every value of the enumeration from 1 on has a name, and that there are no further names.
    fn walk(names: &EnumNames, name_of_wire: impl Fn(i32) -> &'static str) {
        let count = i32::try_from(names.names.len()).expect("few");
        for wire in 1..=count {
            assert_ne!(name_of_wire(wire), "unknown", "{}{wire}", names.prefix);
        }
        assert_eq!(name_of_wire(0), "unknown");
        assert_eq!(name_of_wire(count + 1), "unknown", "{} has a number without a name", names.prefix);
    }

    #[test]
    fn every_number_of_the_wire_has_a_name() {
        walk(&STATUS_NAMES, status_name);
        walk(&EXCEPTION_NAMES, exception_name);
        walk(&FINALITY_NAMES, finality_name);
        walk(&DISPOSITION_NAMES, disposition_name);
        walk(&UNMATCHED_REASON_NAMES, unmatched_reason_name);
        walk(&UNMATCHED_STATUS_NAMES, unmatched_status_name);
        walk(&ROUTE_NAMES, |wire| name_of(Route::try_from(wire), Route::Unspecified, Route::as_str_name, &ROUTE_NAMES));
        walk(&CANCELLED_BY_NAMES, |wire| {
            name_of(
                CancelledBy::try_from(wire),
                CancelledBy::Unspecified,
                CancelledBy::as_str_name,
                &CANCELLED_BY_NAMES,
            )
        });
        walk(&RESOLUTION_NAMES, resolution_name);
        assert_eq!(status_of_name("user_cancelled"), Some(PaymentStatus::UserCancelled));
        assert_eq!(status_of_name("PENDING"), None);
    }
}
