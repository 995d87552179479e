//! Errors: reason, gRPC code, HTTP status, REST code and message.

mod conversion;

use std::borrow::Cow;

use tonic::Code;

use crate::v1::FieldViolation;
pub use crate::v1::Reason;

/// The codes of the REST interface's error body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestCode {
    /// 400 and 422.
    Validation,
    /// 401.
    Authentication,
    /// 403.
    Forbidden,
    /// 404.
    NotFound,
    /// 429.
    RateLimit,
    /// 5xx.
    Server,
    /// Every other status.
    Api,
}

impl RestCode {
    /// Returns the code in the body.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Validation => "VALIDATION_ERROR",
            Self::Authentication => "AUTHENTICATION_ERROR",
            Self::Forbidden => "FORBIDDEN_ERROR",
            Self::NotFound => "NOT_FOUND_ERROR",
            Self::RateLimit => "RATE_LIMIT_ERROR",
            Self::Server => "SERVER_ERROR",
            Self::Api => "API_ERROR",
        }
    }

    /// Returns the code that belongs to an HTTP status.
    #[must_use]
    pub const fn of(http: u16) -> Self {
        match http {
            400 | 422 => Self::Validation,
            401 => Self::Authentication,
            403 => Self::Forbidden,
            404 => Self::NotFound,
            429 => Self::RateLimit,
            500.. => Self::Server,
            _ => Self::Api,
        }
    }
}

/// The representation of a reason in gRPC and REST.
#[derive(Debug)]
pub struct Row {
    /// The reason.
    pub reason: Reason,
    /// The name in the REST body.
    pub name: &'static str,
    /// The gRPC code.
    pub grpc: Code,
    /// The HTTP status.
    pub http: u16,
    /// The default message.
    pub message: &'static str,
}

const fn row(reason: Reason, name: &'static str, grpc: Code, http: u16, message: &'static str) -> Row {
    Row { reason, name, grpc, http, message }
}

/// All reasons.
pub const TABLE: [Row; 70] = [
    row(Reason::Unspecified, "unspecified", Code::Unknown, 500, "unknown error"),
    row(Reason::ValidationFailed, "validation_failed", Code::InvalidArgument, 400, "the request is not valid"),
    row(Reason::MalformedJson, "malformed_json", Code::InvalidArgument, 400, "the body is not valid JSON"),
    row(Reason::UnknownField, "unknown_field", Code::InvalidArgument, 400, "the request has an unknown field"),
    row(Reason::UnknownAccount, "unknown_account", Code::InvalidArgument, 400, "the ledger has no such account"),
    row(Reason::RefusedAccount, "refused_account", Code::InvalidArgument, 400, "this account cannot receive payments"),
    row(Reason::InvalidApiKey, "invalid_api_key", Code::Unauthenticated, 401, "missing or invalid API key"),
    row(
        Reason::ConflictingCredentials,
        "conflicting_credentials",
        Code::Unauthenticated,
        401,
        "two different API keys in one request",
    ),
    row(
        Reason::ForbiddenMerchant,
        "forbidden_merchant",
        Code::PermissionDenied,
        403,
        "this API key belongs to another merchant",
    ),
    row(
        Reason::AdminRequired,
        "admin_required",
        Code::PermissionDenied,
        403,
        "this operation requires the API key of an admin",
    ),
    row(
        Reason::InsufficientScope,
        "insufficient_scope",
        Code::PermissionDenied,
        403,
        "this API key lacks the required scope",
    ),
    row(
        Reason::TooManyApiKeys,
        "too_many_api_keys",
        Code::FailedPrecondition,
        409,
        "the merchant has the maximum number of API keys; revoke one",
    ),
    row(
        Reason::TooManyWebhookEndpoints,
        "too_many_webhook_endpoints",
        Code::FailedPrecondition,
        409,
        "the merchant has the maximum number of webhook endpoints; delete one",
    ),
    row(
        Reason::TooManyIdempotencyKeys,
        "too_many_idempotency_keys",
        Code::ResourceExhausted,
        429,
        "too many idempotency keys were used in the last 24 hours",
    ),
    row(
        Reason::KeyRollDisabled,
        "key_roll_disabled",
        Code::PermissionDenied,
        403,
        "rolling is disabled; create a second API key and revoke the old one",
    ),
    row(
        Reason::ApiKeyInUse,
        "api_key_in_use",
        Code::FailedPrecondition,
        409,
        "this API key cannot be revoked: it authenticates this request, or is the last one",
    ),
    row(Reason::InactiveMerchant, "inactive_merchant", Code::PermissionDenied, 403, "the merchant account is inactive"),
    row(
        Reason::InvalidFormToken,
        "invalid_form_token",
        Code::PermissionDenied,
        403,
        "the form token is missing or belongs to another payment; reload the page",
    ),
    row(
        Reason::ComplianceHold,
        "compliance_hold",
        Code::PermissionDenied,
        403,
        "this account is on hold until its identity is verified",
    ),
    row(
        Reason::BillingNotConfigured,
        "billing_not_configured",
        Code::FailedPrecondition,
        409,
        "no merchant is configured to receive invoice payments; set billing.merchant_id",
    ),
    row(
        Reason::AccountNotProven,
        "account_not_proven",
        Code::PermissionDenied,
        403,
        "prove ownership of the Hive account first",
    ),
    row(
        Reason::RegistrationClosed,
        "registration_closed",
        Code::PermissionDenied,
        403,
        "registration is closed; contact the operator for an account",
    ),
    row(
        Reason::TooManyAccountChanges,
        "too_many_account_changes",
        Code::ResourceExhausted,
        429,
        "the Hive account can be changed at most 3 times in 24 hours",
    ),
    row(
        Reason::TooManyWebhookSecrets,
        "too_many_webhook_secrets",
        Code::FailedPrecondition,
        409,
        "three replaced webhook secrets are still valid",
    ),
    row(
        Reason::ChallengeExpired,
        "challenge_expired",
        Code::FailedPrecondition,
        410,
        "the challenge has expired; request a new one",
    ),
    row(
        Reason::NoPendingAccount,
        "no_pending_account",
        Code::FailedPrecondition,
        409,
        "no change of the Hive account is pending",
    ),
    row(
        Reason::CursorOfAnotherEpoch,
        "cursor_of_another_epoch",
        Code::OutOfRange,
        410,
        "the store has been restored from a backup; continue with nextCursor",
    ),
    row(
        Reason::CursorOutOfRange,
        "cursor_out_of_range",
        Code::OutOfRange,
        400,
        "the cursor is of another store or beyond the last event; begin with an empty one",
    ),
    row(Reason::NotFound, "not_found", Code::NotFound, 404, "not found"),
    row(Reason::UnknownRoute, "unknown_route", Code::NotFound, 404, "no such route"),
    row(
        Reason::PaymentNotPending,
        "payment_not_pending",
        Code::FailedPrecondition,
        409,
        "the payment is no longer pending",
    ),
    row(
        Reason::PaymentDetected,
        "payment_detected",
        Code::FailedPrecondition,
        409,
        "a transfer for this payment was detected on the ledger",
    ),
    row(
        Reason::PaymentInFlight,
        "payment_in_flight",
        Code::FailedPrecondition,
        409,
        "a signed transaction for this payment is in flight",
    ),
    row(
        Reason::SessionCancelling,
        "session_cancelling",
        Code::FailedPrecondition,
        410,
        "cancellation was requested; the payment accepts no new transactions",
    ),
    row(
        Reason::RestartDisabled,
        "restart_disabled",
        Code::PermissionDenied,
        403,
        "the merchant does not allow customers to start an expired payment again",
    ),
    row(
        Reason::PaymentNotRestartable,
        "payment_not_restartable",
        Code::FailedPrecondition,
        409,
        "only a payment that expired less than 24 hours ago without any transfer can be started again",
    ),
    row(Reason::PaymentExpired, "payment_expired", Code::FailedPrecondition, 409, "the payment has expired"),
    row(Reason::Conflict, "conflict", Code::Aborted, 409, "the record was changed concurrently; try again"),
    row(
        Reason::IdempotencyKeyReused,
        "idempotency_key_reused",
        Code::InvalidArgument,
        422,
        "this idempotency key was used for another request",
    ),
    row(
        Reason::PaymentIdentifierReused,
        "payment_identifier_reused",
        Code::FailedPrecondition,
        409,
        "this payment-identifier names another payment",
    ),
    row(
        Reason::IdempotencyInProgress,
        "idempotency_in_progress",
        Code::Aborted,
        409,
        "the first request with this idempotency key is still running",
    ),
    row(
        Reason::SessionCompleted,
        "session_completed",
        Code::FailedPrecondition,
        409,
        "the payment is already completed",
    ),
    row(
        Reason::NothingToResolve,
        "nothing_to_resolve",
        Code::FailedPrecondition,
        409,
        "the payment has nothing to resolve",
    ),
    row(Reason::PaymentOpen, "payment_open", Code::FailedPrecondition, 409, "the payment can still change"),
    row(
        Reason::TransferAssigned,
        "transfer_assigned",
        Code::FailedPrecondition,
        409,
        "the transfer is already assigned to a payment",
    ),
    row(Reason::TransferSettled, "transfer_settled", Code::FailedPrecondition, 409, "the transfer is an x402 sale"),
    row(
        Reason::NoWebhookEndpoint,
        "no_webhook_endpoint",
        Code::FailedPrecondition,
        409,
        "the merchant has no webhook endpoint",
    ),
    row(
        Reason::TooManyOpenPayments,
        "too_many_open_payments",
        Code::ResourceExhausted,
        429,
        "the merchant has too many open payments",
    ),
    row(
        Reason::StoredBytesReached,
        "stored_bytes_reached",
        Code::ResourceExhausted,
        429,
        "the payment records of this merchant have reached their maximum size",
    ),
    row(Reason::RateLimited, "rate_limited", Code::ResourceExhausted, 429, "too many requests"),
    row(Reason::Overloaded, "overloaded", Code::Unavailable, 503, "the engine is busy; try again"),
    row(
        Reason::NodeUnavailable,
        "node_unavailable",
        Code::Unavailable,
        503,
        "no ledger node responds, or the engine has read no block yet",
    ),
    row(Reason::RateUnavailable, "rate_unavailable", Code::Unavailable, 503, "no price of HIVE is available yet"),
    row(
        Reason::HbdOffPeg,
        "hbd_off_peg",
        Code::Unavailable,
        503,
        "HBD is off its peg: new payments in HBD are refused",
    ),
    row(Reason::StoreUnavailable, "store_unavailable", Code::Unavailable, 503, "the store is not available"),
    row(Reason::RecordDamaged, "record_damaged", Code::DataLoss, 500, "a stored record is damaged"),
    row(Reason::EngineUnavailable, "engine_unavailable", Code::Unavailable, 503, "the engine cannot be reached"),
    // A wrong token of the facade is a configuration error, not an error of its caller: 503, not 401.
    row(
        Reason::EngineAccessDenied,
        "engine_access_denied",
        Code::Unauthenticated,
        503,
        "the engine rejected this caller's credentials",
    ),
    // Facades never make such calls.
    row(
        Reason::OperatorTokenRequired,
        "operator_token_required",
        Code::PermissionDenied,
        503,
        "this call needs the operator's token (grpc.token)",
    ),
    row(Reason::Timeout, "timeout", Code::DeadlineExceeded, 503, "the response timed out; the outcome is unknown"),
    row(Reason::Internal, "internal", Code::Internal, 500, "internal error"),
    row(Reason::NotImplemented, "not_implemented", Code::Unimplemented, 501, "not implemented in this version"),
    row(
        Reason::MethodNotAllowed,
        "method_not_allowed",
        Code::Unimplemented,
        405,
        "this route does not support the method",
    ),
    row(Reason::BodyTooLarge, "body_too_large", Code::ResourceExhausted, 413, "the body is too large"),
    row(
        Reason::UnsupportedMediaType,
        "unsupported_media_type",
        Code::InvalidArgument,
        415,
        "the body must be application/json",
    ),
    row(Reason::HeadersTooLarge, "headers_too_large", Code::ResourceExhausted, 431, "the headers are too large"),
    row(Reason::UriTooLong, "uri_too_long", Code::InvalidArgument, 414, "the URL is too long"),
    row(Reason::RequestTimeout, "request_timeout", Code::DeadlineExceeded, 408, "the request timed out"),
    row(
        Reason::PaymentRequired,
        "payment_required",
        Code::FailedPrecondition,
        402,
        "payment required; see the payment requirements",
    ),
    row(Reason::BadRequest, "bad_request", Code::InvalidArgument, 400, "invalid HTTP request"),
];

/// Returns the row of a reason.
#[must_use]
pub fn row_of(reason: Reason) -> &'static Row {
    TABLE.iter().find(|row| row.reason == reason).unwrap_or(&TABLE[0])
}

// Size limits of an error: it is sent in a header, and gRPC clients accept 8 KiB of headers by default.

/// The maximum number of invalid fields in an error.
const MAX_FIELDS: usize = 20;
/// The maximum size of all invalid fields in an error, in bytes.
const MAX_FIELD_BYTES: usize = 1_800;
/// The maximum size of a name or a message, in bytes.
const MAX_TEXT_BYTES: usize = 200;

/// An error of the interface, equal on client and server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The reason.
    pub reason: Reason,
    /// The human-readable message.
    pub message: Cow<'static, str>,
    /// The invalid fields.
    pub fields: Vec<FieldViolation>,
    /// Seconds after which a retry may succeed.
    pub retry_after_seconds: Option<u32>,
    /// The cursor to continue with instead of a refused one.
    pub next_cursor: Option<String>,
}

impl ApiError {
    /// Creates an error with the default message.
    #[must_use]
    pub fn new(reason: Reason) -> Self {
        Self {
            reason,
            message: Cow::Borrowed(row_of(reason).message),
            fields: Vec::new(),
            retry_after_seconds: default_retry(reason),
            next_cursor: None,
        }
    }

    /// Creates an error with a message.
    #[must_use]
    pub fn with_message(reason: Reason, message: impl Into<Cow<'static, str>>) -> Self {
        Self { message: shorten(message.into()), ..Self::new(reason) }
    }

    /// Creates a validation error of one field.
    #[must_use]
    pub fn field(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Reason::ValidationFailed).and_field(field, message)
    }

    /// Adds an invalid field. The first also becomes part of the message.
    #[must_use]
    pub fn and_field(mut self, field: impl Into<String>, message: impl Into<String>) -> Self {
        if self.fields.len() < MAX_FIELDS {
            let field = shorten(Cow::Owned(field.into())).into_owned();
            let message = shorten(Cow::Owned(message.into())).into_owned();
            if self.fields.is_empty() && matches!(self.reason, Reason::ValidationFailed | Reason::UnknownField) {
                self.message = shorten(Cow::Owned(format!("{field}: {message}")));
            }
            let bytes: usize = self.fields.iter().map(|known| known.field.len() + known.message.len()).sum();
            if bytes + field.len() + message.len() <= MAX_FIELD_BYTES {
                self.fields.push(FieldViolation { field, message });
            }
        }
        self
    }

    /// Sets the seconds after which a retry may succeed.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after_seconds = Some(seconds);
        self
    }

    /// Sets the cursor to continue with instead of a refused one.
    #[must_use]
    pub fn with_next_cursor(mut self, cursor: impl Into<String>) -> Self {
        self.next_cursor = Some(cursor.into());
        self
    }

    /// Returns the row of the reason.
    #[must_use]
    pub fn row(&self) -> &'static Row {
        row_of(self.reason)
    }

    /// Returns the HTTP status.
    #[must_use]
    pub fn http(&self) -> u16 {
        self.row().http
    }

    /// Returns the code of the REST body.
    #[must_use]
    pub fn rest_code(&self) -> RestCode {
        RestCode::of(self.http())
    }
}

impl From<Reason> for ApiError {
    fn from(reason: Reason) -> Self {
        Self::new(reason)
    }
}

/// Returns the default retry delay in seconds: short for transient errors, longer if the condition takes time to change.
const fn default_retry(reason: Reason) -> Option<u32> {
    match reason {
        Reason::Conflict
        | Reason::IdempotencyInProgress
        | Reason::Overloaded
        | Reason::RateLimited
        | Reason::EngineUnavailable
        | Reason::Timeout => Some(1),
        Reason::NodeUnavailable | Reason::RateUnavailable | Reason::StoreUnavailable => Some(5),
        Reason::TooManyOpenPayments | Reason::HbdOffPeg => Some(60),
        Reason::TooManyIdempotencyKeys => Some(300),
        _ => None,
    }
}

/// Truncates a text to [`MAX_TEXT_BYTES`], with an ellipsis at the end.
fn shorten(text: Cow<'static, str>) -> Cow<'static, str> {
    if text.len() <= MAX_TEXT_BYTES {
        return text;
    }
    let end = text.floor_char_boundary(MAX_TEXT_BYTES - '…'.len_utf8());
    Cow::Owned(format!("{}…", &text[..end]))
}

#[cfg(test)]
mod tests;
