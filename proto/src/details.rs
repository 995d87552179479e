//! Error details as `google.rpc.Status`, the format that gRPC client libraries parse.

use bytes::Bytes;
use prost::Message;
use prost_types::Any;
use tonic::Code;
use tonic_types::pb::{BadRequest, ErrorInfo, RetryInfo, Status, bad_request};

use crate::v1::{ErrorDetails, FieldViolation};

/// The domain of [`ErrorInfo`].
pub const DOMAIN: &str = "hivetill";

/// The full name of [`ErrorDetails`].
const ERROR_DETAILS: &str = "hivetill.engine.v1.ErrorDetails";

/// Fields whose protobuf path differs from the snake_case form of their JSON name. The idempotency key is metadata.
const PROTO_PATHS: [(&str, &str); 10] = [
    ("Idempotency-Key", "idempotency-key"),
    ("sessionId", "payment.session_id"),
    ("webhookEvents", "webhook_events.types"),
    ("amount", "amount_units"),
    ("to", "to_account"),
    ("limit", "page_size"),
    ("cursor", "page_token"),
    ("after", "page_token"),
    ("page", "skip"),
    ("percentFee", "percent_ten_thousandths"),
];

/// Encodes the details for `grpc-status-details-bin`: `ErrorInfo`, `BadRequest` with protobuf field paths, `RetryInfo`,
/// and [`ErrorDetails`] with the JSON names.
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

/// Decodes [`ErrorDetails`] of a status; `None` if there are none.
pub(crate) fn decode(bytes: &[u8]) -> Option<ErrorDetails> {
    let status = (!bytes.is_empty()).then(|| Status::decode(bytes).ok()).flatten()?;
    let url = type_url(ERROR_DETAILS);
    let own = status.details.iter().find(|any| any.type_url == url)?;
    ErrorDetails::decode(own.value.as_slice()).ok()
}

/// Replaces the JSON name of the first invalid field at the start of a message with the protobuf path.
pub(crate) fn with_proto_path(message: &str, fields: &[FieldViolation]) -> Option<String> {
    let field = &fields.first()?.field;
    let rest = message.strip_prefix(field.as_str()).filter(|rest| rest.starts_with(": "))?;
    Some(proto_path(field) + rest)
}

/// Reverts [`with_proto_path`].
pub(crate) fn with_json_name(message: &str, fields: &[FieldViolation]) -> Option<String> {
    let field = &fields.first()?.field;
    let rest = message.strip_prefix(&proto_path(field)).filter(|rest| rest.starts_with(": "))?;
    Some(field.clone() + rest)
}

/// Returns the path of a field in the request's protobuf message, from its JSON name.
#[must_use]
pub fn proto_path(json_name: &str) -> String {
    // Keys of `metadata` are defined by the caller.
    if json_name.starts_with("metadata.") {
        return json_name.to_owned();
    }
    json_name.split('.').map(proto_name).collect::<Vec<_>>().join(".")
}

/// Returns the name of one member with its list index.
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

#[cfg(test)]
mod tests {
    use prost_types::{DescriptorProto, FileDescriptorSet};

    use super::*;

    /// Calls of every method with valid and invalid input, and the field paths of the errors.
    const METHODS: &str = include_str!("../../tests/interop/grpc/methods.json");
    /// Names of gRPC metadata, which are not fields.
    const METADATA: [&str; 1] = ["idempotency-key"];

    fn messages() -> Vec<(String, DescriptorProto)> {
        let files = FileDescriptorSet::decode(crate::DESCRIPTOR).expect("our own description");
        let of_file = |file: prost_types::FileDescriptorProto| {
            let package = file.package().to_owned();
            file.message_type.into_iter().map(move |message| (format!(".{package}.{}", message.name()), message))
        };
        files.file.into_iter().flat_map(of_file).collect()
    }

    /// Returns whether a path such as `limits.daily_cents` or `tiers[0].from` resolves to a field of a message.
    fn resolves(messages: &[(String, DescriptorProto)], message: &str, path: &str) -> bool {
        let mut at = message.to_owned();
        path.split('.').all(|step| {
            let name = step.split('[').next().unwrap_or_default();
            let within = messages.iter().find(|(known, _)| *known == at);
            let field = within.and_then(|(_, message)| message.field.iter().find(|field| field.name() == name));
            field.is_some_and(|field| {
                at = field.type_name().to_owned();
                true
            })
        })
    }

    #[test]
    fn every_violation_has_a_field_path_of_its_request() {
        let messages = messages();
        let mut paths = 0;
        for line in METHODS.lines().filter(|line| line.contains("\"method\"")) {
            let quoted = |rest: &str| rest.split('"').nth(1).map(str::to_owned).expect("a text");
            let method = quoted(line.split_once("\"method\":").expect("a method").1);
            let request = format!(".hivetill.engine.v1.{}Request", method.rsplit('/').next().expect("a name"));
            assert!(messages.iter().any(|(name, _)| *name == request), "{request} is not described");
            let rest = line.rsplit_once("\"fields\": [").expect("fields").1;
            let fields = rest.split("]}").next().expect("their end");
            for path in fields.split(',').map(|field| field.trim().trim_matches('"')).filter(|path| !path.is_empty()) {
                let is_known = METADATA.contains(&path) || resolves(&messages, &request, path);
                assert!(is_known, "{method}: {path} is not a field of {request}");
                paths += 1;
            }
        }
        assert!(paths > 30, "{paths}");
        assert!(!resolves(&messages, ".hivetill.engine.v1.SettlePaymentRequest", "session_id"));
    }

    #[test]
    fn json_names_that_differ_from_fields_are_mapped() {
        let messages = messages();
        for (json, request) in [
            ("sessionId", "SettlePayment"),
            ("sessionId", "VerifyPayment"),
            ("webhookEvents", "UpdateMerchant"),
            ("hiveAccount", "UpdateMerchant"),
            ("amount", "CreatePayment"),
            ("limits.dailyCents", "ClearHold"),
            ("tiers[0].percentFee", "SetFeeTiers"),
            ("overlapHours", "RollApiKey"),
        ] {
            let (path, request) = (proto_path(json), format!(".hivetill.engine.v1.{request}Request"));
            assert!(resolves(&messages, &request, &path), "{json}: {path} is not a field of {request}");
        }
        assert_eq!(proto_path("Idempotency-Key"), "idempotency-key", "the name of the metadata");
        assert_eq!(proto_path("metadata.orderId"), "metadata.orderId", "the key is defined by the caller");
    }
}
