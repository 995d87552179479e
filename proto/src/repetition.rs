//! Which methods may be called again after a lost response.

use http::HeaderMap;

use crate::caller::IDEMPOTENCY_KEY;

/// Prefixes of read-only methods.
const READ_PREFIXES: [&str; 9] =
    ["Count", "Describe", "Get", "Inspect", "List", "Watch", "Export", "Prepare", "Verify"];
/// A read-only method with another name.
const OTHER_READ: &str = "CopyStore";
/// Writes with the prefix of a read.
const OTHER_WRITE: &str = "VerifyMerchant";
/// Methods that support an idempotency key.
const KEYED: [&str; 4] = ["CreatePayment", "SendTestWebhook", "RedeliverWebhook", "SettlePayment"];
/// Writes whose second call changes nothing and returns the same. An invalid API key may be counted twice.
const IDEMPOTENT: [&str; 11] = [
    "CancelCheckout",
    "CancelPayment",
    "CloseAllDashboardSessions",
    "CloseDashboardSession",
    "DeletePaymentMetadata",
    "DeletePaymentNote",
    "OpenDashboardSession",
    "RecordInvalidKey",
    "ReportWallet",
    "RestartCheckout",
    "SignOffer",
];

/// What a second call of a method does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repetition {
    /// It reads, and changes nothing.
    Read,
    /// It returns the result of the first call if both have the same idempotency key, and otherwise acts again.
    Keyed,
    /// It changes nothing.
    Idempotent,
    /// It may act again, or be refused although the first call succeeded.
    Unsafe,
}

impl Repetition {
    /// Returns what a second call of the method with this path does.
    #[must_use]
    pub fn of(path: &str) -> Self {
        let method = path.rsplit('/').next().unwrap_or(path);
        let is_read = READ_PREFIXES.iter().any(|prefix| method.starts_with(prefix)) || method == OTHER_READ;
        match method {
            OTHER_WRITE => Self::Unsafe,
            _ if is_read => Self::Read,
            _ if KEYED.contains(&method) => Self::Keyed,
            _ if IDEMPOTENT.contains(&method) => Self::Idempotent,
            _ => Self::Unsafe,
        }
    }

    /// Returns whether a call with these headers may be repeated if its outcome is unknown.
    #[must_use]
    pub fn is_safe(self, headers: &HeaderMap) -> bool {
        match self {
            Self::Read | Self::Idempotent => true,
            Self::Keyed => headers.contains_key(IDEMPOTENCY_KEY),
            Self::Unsafe => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    /// Methods that may act again. A new method that creates something belongs here or into `KEYED`.
    const UNSAFE: [&str; 27] = [
        "AssignUnmatched",
        "CancelAccountChange",
        "ClearHold",
        "CreateApiKey",
        "CreateWebhookEndpoint",
        "DeleteWebhookEndpoint",
        "EnableWebhookEndpoint",
        "GenerateInvoices",
        "IgnoreUnmatched",
        "IssueAccountChallenge",
        "RegisterAdmin",
        "RegisterMerchant",
        "ReissueApiKey",
        "ReplayWebhooks",
        "ResolvePayment",
        "RevokeApiKey",
        "RollApiKey",
        "RotateReceiptKey",
        "RotateWebhookEndpointSecret",
        "RotateWebhookSecret",
        "SetFeeTiers",
        "SetMerchantActive",
        "SetMerchantLimits",
        "SubmitAccountProof",
        "UpdateMerchant",
        "UpdateWebhookEndpoint",
        "VerifyMerchant",
    ];

    #[test]
    fn every_method_is_classified() {
        let found = |wanted: Repetition| {
            let methods = crate::METHODS.iter().filter(|path| Repetition::of(path) == wanted);
            let mut methods: Vec<&str> = methods.filter_map(|path| path.rsplit('/').next()).collect();
            methods.sort_unstable();
            methods
        };
        assert_eq!(found(Repetition::Unsafe), UNSAFE);
        assert_eq!(found(Repetition::Keyed).len(), KEYED.len());
        assert_eq!(found(Repetition::Idempotent).len(), IDEMPOTENT.len());
    }

    #[test]
    fn a_creation_is_repeated_only_with_a_key() {
        let with_key: HeaderMap =
            [(http::HeaderName::from_static(IDEMPOTENCY_KEY), HeaderValue::from_static("order-1"))]
                .into_iter()
                .collect();
        let creation = Repetition::of("/hivetill.engine.v1.PaymentService/CreatePayment");
        assert!(creation.is_safe(&with_key) && !creation.is_safe(&HeaderMap::new()));
        let registration = Repetition::of("/hivetill.engine.v1.MerchantService/RegisterMerchant");
        assert!(!registration.is_safe(&with_key));
        assert!(Repetition::of("/hivetill.engine.v1.PaymentService/GetPayment").is_safe(&HeaderMap::new()));
    }
}
