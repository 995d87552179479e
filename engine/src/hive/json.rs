//! Strict JSON parser: no duplicate keys, no fractions, at most 16 levels.

use std::{cell::RefCell, fmt};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use super::{DecodeError, Fault};

/// Maximum nesting; a signed transfer needs 6.
const MAX_DEPTH: usize = 16;

/// A JSON value with ordered members and integer numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Int(i128),
    /// A number that is not an integer or exceeds 64 bits; an error when it is read.
    Fraction,
    Text(String),
    List(Vec<Json>),
    Map(Vec<(String, Json)>),
}

impl Json {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::read(bytes, false)
    }

    /// Parses JSON that may contain other numbers than integers in members that are not read.
    pub(crate) fn parse_with_fractions(bytes: &[u8]) -> Result<Self, DecodeError> {
        Self::read(bytes, true)
    }

    fn read(bytes: &[u8], fractions: bool) -> Result<Self, DecodeError> {
        let fault = RefCell::new(None);
        let mut reader = serde_json::Deserializer::from_slice(bytes);
        Strict { depth: 0, fractions, fault: &fault }
            .deserialize(&mut reader)
            .and_then(|json| reader.end().map(|()| json))
            .map_err(|error| {
                let not_json = || Fault::NotJson { line: error.line(), column: error.column() };
                fault.take().unwrap_or_else(not_json).into()
            })
    }

    pub(crate) fn get(&self, key: &str) -> Result<Option<&Self>, DecodeError> {
        match self {
            Self::Map(members) => Ok(members.iter().find(|(name, _)| name == key).map(|(_, value)| value)),
            _ => Err(Fault::Wanted { wanted: "an object" }.into()),
        }
    }

    pub(crate) fn member(&self, key: &'static str) -> Result<&Self, DecodeError> {
        self.get(key)?.ok_or_else(|| DecodeError { field: key.to_owned(), fault: Fault::Missing })
    }

    pub(crate) fn list(&self) -> Result<&[Self], DecodeError> {
        match self {
            Self::List(items) => Ok(items),
            _ => Err(Fault::Wanted { wanted: "an array" }.into()),
        }
    }

    pub(crate) fn text(&self) -> Result<&str, DecodeError> {
        match self {
            Self::Text(text) => Ok(text),
            _ => Err(Fault::Wanted { wanted: "a string" }.into()),
        }
    }

    pub(crate) fn whole<T: TryFrom<i128>>(&self, wanted: &'static str) -> Result<T, DecodeError> {
        match self {
            Self::Int(number) => T::try_from(*number).map_err(|_| Fault::Wanted { wanted }.into()),
            _ => Err(Fault::Wanted { wanted }.into()),
        }
    }
}

/// Writes a quoted string with the minimal JSON escapes.
pub(super) fn write_text(out: &mut String, text: &str) {
    out.push_str(&serde_json::to_string(text).expect("a string is always JSON"));
}

/// Writes `[a,b]`.
pub(super) fn write_list<T>(
    out: &mut String,
    items: impl IntoIterator<Item = T>,
    mut item: impl FnMut(&mut String, T),
) {
    out.push('[');
    for (index, each) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        item(out, each);
    }
    out.push(']');
}

#[derive(Clone, Copy)]
struct Strict<'f> {
    depth: usize,
    fractions: bool,
    fault: &'f RefCell<Option<Fault>>,
}

impl Strict<'_> {
    fn refuse<E: serde::de::Error>(self, fault: Fault) -> E {
        let error = E::custom(&fault);
        self.fault.replace(Some(fault));
        error
    }

    fn deeper<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth == MAX_DEPTH {
            return Err(self.refuse(Fault::TooDeep));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Json;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Int(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Int(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<Json, E> {
        if self.fractions { Ok(Json::Fraction) } else { Err(self.refuse(Fault::NotWhole)) }
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Json, E> {
        Ok(Json::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let inner = self.deeper()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(inner)? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Json, A::Error> {
        let inner = self.deeper()?;
        let mut map: Vec<(String, Json)> = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        while let Some(key) = members.next_key::<String>()? {
            if !seen.insert(key.clone()) {
                return Err(self.refuse(Fault::DuplicateKey { key }));
            }
            map.push((key, members.next_value_seed(inner)?));
        }
        Ok(Json::Map(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> Fault {
        Json::parse(text.as_bytes()).expect_err(text).fault
    }

    #[test]
    fn duplicate_keys_are_refused_at_any_depth_and_with_any_escapes() {
        assert_eq!(fault(r#"{"to":1,"to":1}"#), Fault::DuplicateKey { key: "to".into() });
        assert_eq!(fault(r#"[{"a":{"to":1,"\u0074o":2}}]"#), Fault::DuplicateKey { key: "to".into() });
    }

    #[test]
    fn only_64_bit_integers_are_parsed() {
        for text in ["1.0", "1e3", "18446744073709551616", "-0.5", "-9223372036854775809"] {
            assert_eq!(fault(text), Fault::NotWhole, "{text}");
        }
        assert_eq!(Json::parse(b"18446744073709551615"), Ok(Json::Int(u64::MAX.into())));
        let json = Json::parse_with_fractions(br#"{"price":0.5,"units":1}"#).unwrap();
        assert!(json.member("price").unwrap().whole::<i64>("a number").is_err());
        assert_eq!(json.member("units").unwrap().whole::<i64>("a number"), Ok(1));
    }

    #[test]
    fn nesting_is_limited_to_sixteen_levels() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(Json::parse(nested(16).as_bytes()).is_ok());
        assert_eq!(fault(&nested(17)), Fault::TooDeep);
    }

    #[test]
    fn anything_but_one_json_value_is_refused() {
        for text in ["", "{", "{} {}", "nul", "{\"a\":}", "\"\u{1}\""] {
            assert!(matches!(fault(text), Fault::NotJson { .. }), "{text:?}");
        }
        assert!(matches!(Json::parse(b"\"\xff\"").unwrap_err().fault, Fault::NotJson { .. }));
    }
}
