//! Reads a JSON body field by field and reports every wrong type and every unknown field by name.

use std::{collections::BTreeMap, ops::RangeInclusive};

use engine::{
    money::{Currency, Money},
    mutant,
};
use proto::{ApiError, Reason, v1};
use serde_json::{Map, Value};

use super::{nearest::nearest, strict_json};

/// A JSON object that is being read. Errors are collected and returned by [`Body::finish`]; until then a wrong field
/// reads as its default value.
#[derive(Default)]
pub(crate) struct Body {
    fields: Map<String, Value>,
    /// Names of the fields that the handler has read.
    known: Vec<String>,
    /// Path of this object with a trailing dot, such as `limits.`; empty at the top level.
    prefix: String,
    violations: Vec<(String, String)>,
    /// Whether a nested object has an unknown field.
    is_unknown_inside: bool,
}

impl Body {
    /// Parses a body.
    ///
    /// # Errors
    /// `malformed_json`; `validation_failed` if it is not an object or repeats a member.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, ApiError> {
        match strict_json::parse(bytes) {
            Ok((Value::Object(fields), duplicates)) if duplicates.is_empty() => Ok(Self::of(fields, String::new())),
            Ok((Value::Object(_), duplicates)) => {
                let error = ApiError::new(Reason::ValidationFailed);
                Err(duplicates.into_iter().fold(error, |error, field| error.and_field(field, "is set more than once")))
            }
            Ok(_) => Err(ApiError::field("body", "must be a JSON object")),
            Err(error) => {
                let why =
                    if bytes.is_empty() { "is empty; a JSON object is required".to_owned() } else { error.to_string() };
                Err(ApiError::new(Reason::MalformedJson).and_field("body", why))
            }
        }
    }

    const fn of(fields: Map<String, Value>, prefix: String) -> Self {
        Self { fields, known: Vec::new(), prefix, violations: Vec::new(), is_unknown_inside: false }
    }

    /// Wraps a nested object; `prefix` is its path with a trailing dot.
    pub(crate) const fn within(fields: Map<String, Value>, prefix: String) -> Self {
        Self::of(fields, prefix)
    }

    /// Takes a field of any type; `None` if it is missing.
    pub(crate) fn take(&mut self, field: &str) -> Option<Value> {
        self.known.push(field.to_owned());
        self.fields.remove(field)
    }

    /// Takes a required string.
    pub(crate) fn text(&mut self, field: &str) -> String {
        match self.take(field) {
            Some(Value::String(text)) => text,
            Some(other) => self.wrong(field, format!("must be a string, not {}", kind(&other))),
            None => self.wrong(field, "is required"),
        }
    }

    /// Takes a required array of strings.
    pub(crate) fn texts(&mut self, field: &str) -> Vec<String> {
        let texts = match self.take(field) {
            Some(Value::Array(items)) => items
                .into_iter()
                .map(|item| match item {
                    Value::String(text) => Some(text),
                    _ => None,
                })
                .collect::<Option<Vec<_>>>(),
            Some(_) => None,
            None => return self.wrong(field, "is required"),
        };
        texts.unwrap_or_else(|| self.wrong(field, "must be an array of strings"))
    }

    /// Takes an optional array of strings.
    pub(crate) fn maybe_texts(&mut self, field: &str) -> Option<Vec<String>> {
        if self.fields.contains_key(field) {
            return Some(self.texts(field));
        }
        self.known.push(field.to_owned());
        None
    }

    /// Takes a string that may be missing or null.
    pub(crate) fn optional_text(&mut self, field: &str) -> Option<String> {
        self.change(field).flatten()
    }

    /// Takes a string that may be missing (`None`), or null to clear it (`Some(None)`).
    pub(crate) fn change(&mut self, field: &str) -> Option<Option<String>> {
        match self.take(field)? {
            Value::String(text) => Some(Some(text)),
            Value::Null => Some(None),
            other => self.wrong(field, format!("must be a string or null, not {}", kind(&other))),
        }
    }

    /// Takes an optional string, which may not be null.
    pub(crate) fn maybe_text(&mut self, field: &str) -> Option<String> {
        match self.take(field)? {
            Value::String(text) => Some(text),
            other => Some(self.wrong(field, format!("must be a string, not {}", kind(&other)))),
        }
    }

    /// Takes the ledger account from `hiveAccount` or its alias `hiveAccountName`.
    pub(crate) fn maybe_account(&mut self) -> Option<String> {
        let account = self.maybe_text("hiveAccount");
        let alias = self.maybe_text("hiveAccountName");
        if let (Some(account), Some(alias)) = (&account, &alias)
            && account != alias
        {
            return self.wrong("hiveAccountName", "must equal hiveAccount when both are set");
        }
        account.or(alias)
    }

    /// Takes an optional Boolean.
    pub(crate) fn maybe_bool(&mut self, field: &str) -> Option<bool> {
        match self.take(field)? {
            Value::Bool(value) => Some(value),
            other => self.wrong(field, format!("must be true or false, not {}", kind(&other))),
        }
    }

    /// Takes a required Boolean.
    pub(crate) fn bool(&mut self, field: &str) -> bool {
        if self.fields.contains_key(field) {
            self.maybe_bool(field).unwrap_or_default()
        } else {
            self.wrong(field, "is required")
        }
    }

    /// Takes an integer within a range, which may be missing or null.
    pub(crate) fn optional_integer(&mut self, field: &str, range: RangeInclusive<u32>) -> Option<u32> {
        let value = self.take(field).filter(|value| !value.is_null())?;
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        match number.filter(|number| range.contains(number)) {
            Some(number) => Some(number),
            None => self.wrong(field, format!("must be a whole number from {} to {}", range.start(), range.end())),
        }
    }

    /// Takes an object that may be missing or null.
    pub(crate) fn object(&mut self, field: &str) -> Option<Self> {
        match self.take(field)? {
            Value::Null => None,
            Value::Object(fields) => Some(Self::of(fields, format!("{}{field}.", self.prefix))),
            other => self
                .wrong::<Option<()>>(field, format!("must be an object, not {}", kind(&other)))
                .map(|()| Self::default()),
        }
    }

    /// Takes a field only if it is null; returns whether it was.
    pub(crate) fn take_null(&mut self, field: &str) -> bool {
        self.known.push(field.to_owned());
        let is_null = self.fields.get(field).is_some_and(Value::is_null);
        if is_null {
            self.fields.remove(field);
        }
        is_null
    }

    /// Takes a required number of US cents.
    pub(crate) fn cents(&mut self, field: &str, max: u64) -> u64 {
        match self.take(field).map(|value| value.as_u64().filter(|cents| *cents <= max)) {
            Some(Some(cents)) => cents,
            Some(None) => self.wrong(field, format!("must be a whole number from 0 to {max}")),
            None => self.wrong(field, "is required"),
        }
    }

    /// Takes `amount` and `currency`.
    pub(crate) fn money(&mut self) -> Money {
        let code = self.text("currency");
        let currency = Currency::parse(&code);
        if currency.is_none() && self.is_valid("currency") {
            self.wrong::<()>("currency", "must be HIVE or HBD");
        }
        let currency = currency.unwrap_or(Currency::Hbd);
        match self.take("amount") {
            Some(Value::String(digits)) => match Money::parse(&digits, currency) {
                Ok(money) => return money,
                Err(error) => self.wrong("amount", error.to_string()),
            },
            Some(_) => self.wrong("amount", "must be a JSON string of digits in the smallest unit (1/1000)"),
            None => self.wrong("amount", "is required"),
        }
        Money::new(0, currency)
    }

    /// Takes `metadata`: an object whose values are strings or arrays of strings.
    pub(crate) fn metadata(&mut self) -> BTreeMap<String, v1::MetadataValue> {
        let fields = match self.take("metadata") {
            None | Some(Value::Null) => return BTreeMap::new(),
            Some(Value::Object(fields)) => fields,
            Some(other) => return self.wrong("metadata", format!("must be an object, not {}", kind(&other))),
        };
        let mut metadata = BTreeMap::new();
        for (key, value) in fields {
            match metadata_value(value) {
                Some(value) => {
                    metadata.insert(key, value);
                }
                None => self.wrong(&format!("metadata.{key}"), "must be a string or an array of strings"),
            }
        }
        metadata
    }

    /// Finishes reading.
    ///
    /// # Errors
    /// `unknown_field` if a field was not read, otherwise `validation_failed`, with every wrong field.
    pub(crate) fn finish(self) -> Result<(), ApiError> {
        let is_known = self.fields.is_empty() || mutant!("facade-unknown-fields-are-ignored");
        if is_known && self.violations.is_empty() {
            return Ok(());
        }
        let is_unknown = self.is_unknown_inside || !self.fields.is_empty();
        let reason = if is_unknown { Reason::UnknownField } else { Reason::ValidationFailed };
        let known = || self.known.iter().map(String::as_str);
        let unknown = self.fields.keys().map(|name| {
            let message = match nearest(name, known()) {
                Some(near) if near == name => "cannot be combined with the other fields".to_owned(),
                Some(near) => format!("is not a field of this request; did you mean {near}?"),
                None => "is not a field of this request".to_owned(),
            };
            (format!("{}{name}", self.prefix), message)
        });
        let all = unknown.chain(self.violations.iter().cloned());
        Err(all.fold(ApiError::new(reason), |error, (field, message)| error.and_field(field, message)))
    }

    /// Finishes reading a nested object and adds its errors to those of this one.
    pub(crate) fn absorb(&mut self, inner: Self) {
        let Err(error) = inner.finish() else { return };
        self.is_unknown_inside |= error.reason == Reason::UnknownField;
        self.violations.extend(error.fields.into_iter().map(|field| (field.field, field.message)));
    }

    /// Records an error of a field and returns the default value.
    pub(crate) fn wrong<T: Default>(&mut self, field: &str, message: impl Into<String>) -> T {
        self.violations.push((format!("{}{field}", self.prefix), message.into()));
        T::default()
    }

    /// Returns whether no error of a field is recorded.
    pub(crate) fn is_valid(&self, field: &str) -> bool {
        !self.violations.iter().any(|(named, _)| named.strip_prefix(self.prefix.as_str()) == Some(field))
    }
}

fn metadata_value(value: Value) -> Option<v1::MetadataValue> {
    use v1::metadata_value::Value as Kind;
    let value = match value {
        Value::String(text) => Kind::Text(text),
        Value::Array(items) => {
            let text = |item| if let Value::String(text) = item { Some(text) } else { None };
            Kind::List(v1::TextList { items: items.into_iter().map(text).collect::<Option<_>>()? })
        }
        _ => return None,
    };
    Some(v1::MetadataValue { value: Some(value) })
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a Boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(error: ApiError) -> Vec<String> {
        error.fields.into_iter().map(|field| field.field).collect()
    }

    #[test]
    fn every_wrong_type_is_reported_at_once() {
        let text = br#"{"a":1,"b":null,"c":"yes","d":-1,"amount":1000,"currency":"BTC","metadata":{"x":1,"y":["a",2],"z":"ok"}}"#;
        let mut body = Body::parse(text).expect("an object");
        body.text("a");
        body.maybe_text("b");
        body.maybe_bool("c");
        body.optional_integer("d", 0..=9);
        body.text("e");
        body.money();
        assert_eq!(body.metadata().len(), 1);
        let named = fields(body.finish().expect_err("all wrong"));
        assert_eq!(named, ["a", "b", "c", "d", "e", "currency", "amount", "metadata.x", "metadata.y"]);
    }

    #[test]
    fn an_unknown_field_is_reported_with_the_nearest_known_name() {
        let text = br#"{"amount":"1","currancy":"HBD","orderId":"7","limits":{"single_cents":1}}"#;
        let mut body = Body::parse(text).expect("an object");
        body.take("amount");
        body.text("currency");
        let mut limits = body.object("limits").expect("an object");
        limits.cents("singleCents", 9);
        body.absorb(limits);
        let error = body.finish().expect_err("unknown");
        assert_eq!((error.reason, error.http()), (Reason::UnknownField, 400));
        let reported: Vec<(&str, &str)> = error.fields.iter().map(|f| (f.field.as_str(), f.message.as_str())).collect();
        assert_eq!(
            reported,
            [
                ("currancy", "is not a field of this request; did you mean currency?"),
                ("orderId", "is not a field of this request"),
                ("currency", "is required"),
                ("limits.single_cents", "is not a field of this request; did you mean singleCents?"),
                ("limits.singleCents", "is required"),
            ]
        );
        assert!(error.message.starts_with("currancy: "), "{}", error.message);
    }

    #[test]
    fn a_repeated_member_is_reported_at_any_depth() {
        for (text, place) in [
            (r#"{"amount":"1","amount":"2"}"#, "amount"),
            (r#"{"metadata":{"a":"1","b":"2","a":"1"}}"#, "metadata.a"),
            (r#"{"tiers":[{},{"x":1,"x":1}]}"#, "tiers[1].x"),
            (r#"{"a":1,"\u0061":2}"#, "a"),
        ] {
            let error = Body::parse(text.as_bytes()).map(|_| ()).expect_err(text);
            assert_eq!((error.reason, error.http()), (Reason::ValidationFailed, 400), "{text}");
            assert_eq!(fields(error), [place], "{text}");
        }
    }

    #[test]
    fn an_amount_is_a_string_of_digits() {
        for amount in
            ["\"01\"", "\"1.5\"", "\"-1\"", "\"1e3\"", "\"0\"", "\"\"", "\"1000000001\"", "1", "null", "[]", "1.0"]
        {
            let mut body =
                Body::parse(format!(r#"{{"amount":{amount},"currency":"HBD"}}"#).as_bytes()).expect("an object");
            body.money();
            assert_eq!(fields(body.finish().expect_err(amount)), ["amount"], "{amount}");
        }
        let mut body = Body::parse(br#"{"amount":"1500","currency":"HIVE"}"#).expect("an object");
        assert_eq!(body.money(), Money::new(1_500, Currency::Hive));
        body.finish().expect("good");
    }

    #[test]
    fn a_body_that_is_not_an_object_is_refused() {
        for (text, reason) in [
            ("", Reason::MalformedJson),
            ("{", Reason::MalformedJson),
            ("{\"a\":01}", Reason::MalformedJson),
            ("\u{feff}{}", Reason::MalformedJson),
            ("[]", Reason::ValidationFailed),
            ("null", Reason::ValidationFailed),
        ] {
            let error = Body::parse(text.as_bytes()).map(|_| ()).expect_err(text);
            assert_eq!((error.reason, error.http()), (reason, 400), "{text}");
            assert_eq!(fields(error), ["body"], "{text}");
        }
        let deep = "[".repeat(10_000);
        assert_eq!(Body::parse(deep.as_bytes()).map(|_| ()).expect_err("deep").http(), 400);
    }

    #[test]
    fn an_account_and_its_alias_must_be_equal() {
        let mut body = Body::parse(br#"{"hiveAccount":"alice","hiveAccountName":"bob"}"#).expect("an object");
        body.maybe_account();
        assert_eq!(fields(body.finish().expect_err("two accounts")), ["hiveAccountName"]);
        let mut body = Body::parse(br#"{"hiveAccountName":"bob"}"#).expect("an object");
        assert_eq!(body.maybe_account().as_deref(), Some("bob"));
    }
}
