//! Tests of the table of errors and of conversions to and from a gRPC status.

use proptest::prelude::*;
use tonic::{Status, TimeoutExpired};

use super::*;
use crate::{details, v1::ErrorDetails};

#[test]
fn every_reason_has_one_row_with_its_name() {
    let known: Vec<Reason> = (0..200).filter_map(|number| Reason::try_from(number).ok()).collect();
    assert_eq!(known.len(), TABLE.len());
    for reason in known {
        assert_eq!(TABLE.iter().filter(|row| row.reason == reason).count(), 1, "{reason:?}");
        let name = reason.as_str_name().to_lowercase();
        assert_eq!(name.strip_prefix("reason_"), Some(row_of(reason).name));
    }
}

#[test]
fn the_http_status_decides_the_rest_code() {
    for row in &TABLE {
        let expected = match row.http {
            400 | 422 => "VALIDATION_ERROR",
            401 => "AUTHENTICATION_ERROR",
            403 => "FORBIDDEN_ERROR",
            404 => "NOT_FOUND_ERROR",
            429 => "RATE_LIMIT_ERROR",
            402 | 405 | 408 | 409 | 410 | 413 | 414 | 415 | 431 => "API_ERROR",
            500 | 501 | 503 => "SERVER_ERROR",
            other => panic!("{}: unexpected status {other}", row.name),
        };
        assert_eq!(ApiError::new(row.reason).rest_code().as_str(), expected, "{}", row.name);
        assert!(row.grpc != Code::Ok && !row.message.is_empty());
        assert!(row.http < 500 || !row.message.contains("API key"), "a 5xx never blames the caller's key");
    }
}

#[test]
fn a_status_without_details_maps_to_a_server_error() {
    for code in [Code::Unavailable, Code::Unauthenticated, Code::Unknown, Code::Internal, Code::Cancelled] {
        let error = ApiError::from(Status::new(code, "tcp connect error: 10.0.0.7"));
        assert!(error.http() >= 500, "{code:?}");
        assert!(!error.message.contains("10.0.0.7"), "{code:?}");
    }
}

#[test]
fn a_cancelled_status_without_a_timeout_is_unavailable() {
    let reason = |status| ApiError::from(status).reason;
    assert_eq!(reason(Status::cancelled("operation was canceled")), Reason::EngineUnavailable);
    assert_eq!(reason(Status::from_error(Box::new(TimeoutExpired(())))), Reason::Timeout);
    assert_eq!(reason(Status::deadline_exceeded("too late")), Reason::Timeout);
}

#[test]
fn an_unknown_reason_falls_back_to_the_grpc_code() {
    let details = ErrorDetails { reason: 9_999, fields: Vec::new(), retry_after_seconds: Some(7), next_cursor: None };
    let status = Status::with_details(Code::NotFound, "?", details::encode(Code::NotFound, "?", &details));
    let error = ApiError::from(status);
    assert_eq!((error.reason, error.retry_after_seconds), (Reason::NotFound, Some(7)));
}

fn any_error() -> impl Strategy<Value = ApiError> {
    let fields = proptest::collection::vec((".{0,300}", ".{0,300}"), 0..30);
    let reason = (1..TABLE.len()).prop_map(|at| TABLE[at].reason);
    (reason, ".{0,300}", fields, proptest::option::of(any::<u32>())).prop_map(|(reason, message, fields, retry)| {
        let mut error = ApiError::with_message(reason, message);
        for (field, message) in fields {
            error = error.and_field(field, message);
        }
        error.retry_after_seconds = retry;
        error
    })
}

proptest! {
    #[test]
    fn an_error_round_trips_through_a_grpc_status(error in any_error()) {
        let status = Status::from(error.clone());
        let headers = status.into_http::<()>().into_parts().0.headers;
        let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        prop_assert!(bytes < 8_000, "{bytes} bytes of headers");
        let read = Status::from_header_map(&headers).expect("a status");
        prop_assert_eq!(ApiError::from(read), error);
    }
}
