//! The details of a refused call as `google.rpc.Status`, the form that gRPC's client libraries read.

use bytes::Bytes;
use prost::Message;
use prost_types::Any;
use tonic::Code;
use tonic_types::pb::{BadRequest, ErrorInfo, RetryInfo, Status, bad_request};

use crate::v1::{ErrorDetails, FieldViolation};

/// The domain of [`ErrorInfo`]: the reasons are this service's own.
pub const DOMAIN: &str = "hivetill";

/// The full name of our own message.
const ERROR_DETAILS: &str = "hivetill.engine.v1.ErrorDetails";

/// Fields whose protobuf path differs from the snake_case form of their JSON name.
const PROTO_PATHS: [(&str, &str); 8] = [
    ("amount", "amount_units"),
    ("to", "to_account"),
    ("limit", "page_size"),
    ("cursor", "page_token"),
    ("after", "page_token"),
    ("page", "skip"),
    ("percentFee", "percent_ten_thousandths"),
    // A header of REST, metadata of gRPC.
    ("Idempotency-Key", "idempotency-key"),
];

/// Encodes the details for `grpc-status-details-bin`: `ErrorInfo`, `BadRequest` with protobuf field paths, `RetryInfo`,
/// and our own message with the JSON names.
pub(crate) fn encode(code: Code, message: &str, details: &ErrorDetails) -> Bytes {
    let reason = details.reason().as_str_name().trim_start_matches("REASON_").to_owned();
    let next = details.next_cursor.iter().map(|cursor| ("nextCursor".to_owned(), cursor.clone()));
    let info = ErrorInfo { reason, domain: DOMAIN.to_owned(), metadata: next.collect() };
    let mut list = vec![any("google.rpc.ErrorInfo", &info)];
    if !details.fields.is_empty() {
        let violation = |field: &FieldViolation| bad_request::FieldViolation {
            field: proto_path(&field.field),
            description: field.message.clone(),
            ..bad_request::FieldViolation::default()
        };
        let bad = BadRequest { field_violations: details.fields.iter().map(violation).collect() };
        list.push(any("google.rpc.BadRequest", &bad));
    }
    if let Some(seconds) = details.retry_after_seconds {
        let delay = prost_types::Duration { seconds: i64::from(seconds), nanos: 0 };
        list.push(any("google.rpc.RetryInfo", &RetryInfo { retry_delay: Some(delay) }));
    }
    list.push(any(ERROR_DETAILS, details));
    let status = Status { code: code.into(), message: message.to_owned(), details: list };
    status.encode_to_vec().into()
}

/// Reads our own message out of the details; `None` where a status carries none.
pub(crate) fn decode(bytes: &[u8]) -> Option<ErrorDetails> {
    let status = (!bytes.is_empty()).then(|| Status::decode(bytes).ok()).flatten()?;
    let url = type_url(ERROR_DETAILS);
    let own = status.details.iter().find(|any| any.type_url == url)?;
    ErrorDetails::decode(own.value.as_slice()).ok()
}

/// Returns a message with its field by the protobuf path, where it begins with the first wrong field.
pub(crate) fn with_proto_path(message: &str, fields: &[FieldViolation]) -> Option<String> {
    let field = &fields.first()?.field;
    let rest = message.strip_prefix(field.as_str()).filter(|rest| rest.starts_with(": "))?;
    Some(proto_path(field) + rest)
}

/// Returns a message with its field by the JSON name again.
pub(crate) fn with_json_name(message: &str, fields: &[FieldViolation]) -> Option<String> {
    let field = &fields.first()?.field;
    let rest = message.strip_prefix(&proto_path(field)).filter(|rest| rest.starts_with(": "))?;
    Some(field.clone() + rest)
}

/// Returns the path of a field in the request's protobuf message, from its JSON name.
#[must_use]
pub fn proto_path(json_name: &str) -> String {
    // Keys below `metadata` are the caller's own.
    if json_name.starts_with("metadata.") {
        return json_name.to_owned();
    }
    json_name.split('.').map(proto_name).collect::<Vec<_>>().join(".")
}

/// Returns the name of one member, with its place in a list.
fn proto_name(json_name: &str) -> String {
    let (name, rest) = json_name.find('[').map_or((json_name, ""), |at| json_name.split_at(at));
    if let Some((_, path)) = PROTO_PATHS.iter().find(|(known, _)| *known == name) {
        return format!("{path}{rest}");
    }
    let mut path = String::with_capacity(json_name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            path.push('_');
        }
        path.push(letter.to_ascii_lowercase());
    }
    path + rest
}

fn any(name: &str, message: &impl Message) -> Any {
    Any { type_url: type_url(name), value: message.encode_to_vec() }
}

fn type_url(name: &str) -> String {
    format!("type.googleapis.com/{name}")
}
