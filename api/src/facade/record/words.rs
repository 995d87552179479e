//! The words of the interface for the enumerations of the gRPC messages.

use proto::v1::{
    self, CancelledBy, Disposition, Finality, PaymentException, PaymentStatus, ResolutionKind, Route, UnmatchedReason,
    UnmatchedStatus,
};

/// Returns the word of a payment status.
pub(crate) fn status_word(wire: i32) -> &'static str {
    word(PaymentStatus::try_from(wire), PaymentStatus::Unspecified, PaymentStatus::as_str_name, &STATUS_WORDS)
}

/// Returns the payment status of a word.
pub(crate) fn status_of_word(text: &str) -> Option<PaymentStatus> {
    (1..=6).filter_map(|wire| PaymentStatus::try_from(wire).ok()).find(|status| status_word((*status).into()) == text)
}

/// Maps the names of an enumeration to words by their common prefix: `PAYMENT_STATUS_PENDING` is `pending`.
pub(crate) struct Words {
    pub(crate) prefix: &'static str,
    pub(crate) words: &'static [&'static str],
}

pub(crate) fn word<T: Copy, E>(
    read: Result<T, E>,
    unknown: T,
    name: fn(&T) -> &'static str,
    words: &Words,
) -> &'static str {
    let name = name(&read.unwrap_or(unknown));
    let bare = name.strip_prefix(words.prefix).unwrap_or(name);
    words.words.iter().find(|word| word.eq_ignore_ascii_case(bare)).copied().unwrap_or("unknown")
}

pub(crate) static STATUS_WORDS: Words = Words {
    prefix: "PAYMENT_STATUS_",
    words: &["pending", "processing", "completed", "failed", "user_cancelled", "system_cancelled"],
};
pub(crate) static EXCEPTION_WORDS: Words = Words {
    prefix: "PAYMENT_EXCEPTION_",
    words: &[
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
pub(crate) static FINALITY_WORDS: Words =
    Words { prefix: "FINALITY_", words: &["reversible", "irreversible", "orphaned"] };
pub(crate) static DISPOSITION_WORDS: Words = Words {
    prefix: "DISPOSITION_",
    words: &["counted", "surplus", "late", "after_cancel", "after_failure", "wrong_currency", "self", "fee"],
};
pub(crate) static ROUTE_WORDS: Words = Words { prefix: "ROUTE_", words: &["wallet", "x402", "manual"] };
pub(crate) static CANCELLED_BY_WORDS: Words = Words { prefix: "CANCELLED_BY_", words: &["customer", "merchant"] };
pub(crate) static RESOLUTION_WORDS: Words =
    Words { prefix: "RESOLUTION_KIND_", words: &["accepted", "refunded", "ignored"] };

pub(crate) fn exception_word(wire: i32) -> &'static str {
    let read = PaymentException::try_from(wire);
    word(read, PaymentException::Unspecified, PaymentException::as_str_name, &EXCEPTION_WORDS)
}

pub(crate) fn finality_word(wire: i32) -> &'static str {
    word(Finality::try_from(wire), Finality::Unspecified, Finality::as_str_name, &FINALITY_WORDS)
}

pub(crate) fn disposition_word(wire: i32) -> &'static str {
    word(Disposition::try_from(wire), Disposition::Unspecified, Disposition::as_str_name, &DISPOSITION_WORDS)
}

pub(crate) fn resolution_word(wire: i32) -> &'static str {
    let read = ResolutionKind::try_from(wire);
    word(read, ResolutionKind::Unspecified, ResolutionKind::as_str_name, &RESOLUTION_WORDS)
}

pub(crate) fn route_word(wire: i32) -> &'static str {
    word(Route::try_from(wire), Route::Unspecified, Route::as_str_name, &ROUTE_WORDS)
}

pub(crate) fn cancelled_by_word(wire: i32) -> &'static str {
    word(CancelledBy::try_from(wire), CancelledBy::Unspecified, CancelledBy::as_str_name, &CANCELLED_BY_WORDS)
}

pub(crate) static UNMATCHED_REASON_WORDS: Words = Words {
    prefix: "UNMATCHED_REASON_",
    words: &[
        "no_session",
        "ambiguous_memo",
        "encrypted_memo",
        "unknown_session",
        "other_account",
        "unsupported_operation",
    ],
};
pub(crate) static UNMATCHED_STATUS_WORDS: Words =
    Words { prefix: "UNMATCHED_STATUS_", words: &["open", "assigned", "ignored"] };

pub(crate) fn unmatched_reason_word(wire: i32) -> &'static str {
    let read = UnmatchedReason::try_from(wire);
    word(read, UnmatchedReason::Unspecified, UnmatchedReason::as_str_name, &UNMATCHED_REASON_WORDS)
}

pub(crate) fn unmatched_status_word(wire: i32) -> &'static str {
    let read = UnmatchedStatus::try_from(wire);
    word(read, UnmatchedStatus::Unspecified, UnmatchedStatus::as_str_name, &UNMATCHED_STATUS_WORDS)
}

/// Returns the words of a payment's exceptions.
pub(crate) fn exception_words(wire: &[i32]) -> Vec<&'static str> {
    wire.iter().map(|wire| exception_word(*wire)).collect()
}

/// Returns the word of a network.
pub(crate) const fn network_word(network: v1::LedgerNetwork) -> &'static str {
    match network {
        v1::LedgerNetwork::Mainnet => "mainnet",
        v1::LedgerNetwork::Testnet => "testnet",
        v1::LedgerNetwork::Development => "development",
        v1::LedgerNetwork::Unspecified => "unknown",
    }
}

/// Returns the word of an account's verification status.
pub(crate) const fn verification_word(verification: v1::AccountVerification) -> &'static str {
    match verification {
        v1::AccountVerification::Verified => "verified",
        v1::AccountVerification::Stale => "stale",
        v1::AccountVerification::Unverified | v1::AccountVerification::Unspecified => "unverified",
    }
}

/// Returns the word of the method by which an account was proven.
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

    /// Checks that every value of the enumeration from 1 on has a word, and that there are no further words.
    fn walk(words: &Words, word_of: impl Fn(i32) -> &'static str) {
        let count = i32::try_from(words.words.len()).expect("few");
        for wire in 1..=count {
            assert_ne!(word_of(wire), "unknown", "{}{wire}", words.prefix);
        }
        assert_eq!(word_of(0), "unknown");
        assert_eq!(word_of(count + 1), "unknown", "{} has a number without a word", words.prefix);
    }

    #[test]
    fn every_number_of_the_wire_has_a_word() {
        walk(&STATUS_WORDS, status_word);
        walk(&EXCEPTION_WORDS, exception_word);
        walk(&FINALITY_WORDS, finality_word);
        walk(&DISPOSITION_WORDS, disposition_word);
        walk(&UNMATCHED_REASON_WORDS, unmatched_reason_word);
        walk(&UNMATCHED_STATUS_WORDS, unmatched_status_word);
        walk(&ROUTE_WORDS, |wire| word(Route::try_from(wire), Route::Unspecified, Route::as_str_name, &ROUTE_WORDS));
        walk(&CANCELLED_BY_WORDS, |wire| {
            word(CancelledBy::try_from(wire), CancelledBy::Unspecified, CancelledBy::as_str_name, &CANCELLED_BY_WORDS)
        });
        walk(&RESOLUTION_WORDS, resolution_word);
        assert_eq!(status_of_word("user_cancelled"), Some(PaymentStatus::UserCancelled));
        assert_eq!(status_of_word("PENDING"), None);
    }
}
