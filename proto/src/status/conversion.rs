//! The conversions between an error of the API and a gRPC status.

use std::{borrow::Cow, error::Error as _};

use tonic::{Code, Status, TimeoutExpired};

use super::{ApiError, Reason, row_of};
use crate::{details, v1::ErrorDetails};

impl From<ApiError> for Status {
    fn from(error: ApiError) -> Self {
        let details = ErrorDetails {
            reason: error.reason.into(),
            fields: error.fields,
            retry_after_seconds: error.retry_after_seconds,
            next_cursor: error.next_cursor,
        };
        let code = row_of(error.reason).grpc;
        let message = details::with_proto_path(&error.message, &details.fields);
        let message = message.map_or(error.message, Cow::Owned);
        let bytes = details::encode(code, &message, &details);
        Self::with_details(code, message, bytes)
    }
}

impl From<Status> for ApiError {
    fn from(status: Status) -> Self {
        let details = details::decode(status.details());
        // tonic also cancels calls that the connection dropped before they were sent: the engine is unavailable.
        let code = match status.code() {
            Code::Cancelled if !is_client_timeout(&status) => Code::Unavailable,
            code => code,
        };
        let Some(details) = details else {
            return Self::new(reason_without_details(code));
        };
        match Reason::try_from(details.reason) {
            Ok(reason) if reason != Reason::Unspecified => Self {
                reason,
                message: details::with_json_name(status.message(), &details.fields)
                    .unwrap_or_else(|| status.message().to_owned())
                    .into(),
                fields: details.fields,
                retry_after_seconds: details.retry_after_seconds,
                next_cursor: details.next_cursor,
            },
            // A reason of a newer engine: the gRPC code determines the kind of error.
            _ => Self { retry_after_seconds: details.retry_after_seconds, ..Self::new(reason_without_details(code)) },
        }
    }
}

/// Returns whether the client timed out.
fn is_client_timeout(status: &Status) -> bool {
    std::iter::successors(status.source(), |&error| error.source()).any(|error| error.is::<TimeoutExpired>())
}

/// Returns the reason for a status without details, which comes from the transport or from tonic, not from the engine.
const fn reason_without_details(code: Code) -> Reason {
    match code {
        Code::InvalidArgument | Code::OutOfRange => Reason::ValidationFailed,
        Code::NotFound => Reason::NotFound,
        Code::PermissionDenied => Reason::ForbiddenMerchant,
        Code::Unauthenticated => Reason::EngineAccessDenied,
        Code::ResourceExhausted => Reason::Overloaded,
        Code::FailedPrecondition | Code::AlreadyExists | Code::Aborted => Reason::Conflict,
        Code::Unavailable => Reason::EngineUnavailable,
        Code::DeadlineExceeded | Code::Cancelled => Reason::Timeout,
        Code::Unimplemented => Reason::NotImplemented,
        Code::Ok | Code::Unknown | Code::Internal | Code::DataLoss => Reason::Internal,
    }
}
