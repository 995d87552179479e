//! Reads the API key of a request from `Authorization: Bearer`, from `x-api-key`, or from both if they are equal.

use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use proto::{ApiError, Reason, caller::API_KEY};

/// Prefix of every API key.
const KEY_PREFIX: &str = "sk_live_";

/// Returns the API key of a request. Only its form is checked: the engine decides whether it is valid.
///
/// # Errors
/// `invalid_api_key` with the problem of the header, `conflicting_credentials` with two different keys.
pub(crate) fn api_key(headers: &HeaderMap) -> Result<HeaderValue, ApiError> {
    let mut problem = None;
    let mut key: Option<&HeaderValue> = None;
    let mut text = "";
    let values = headers.get_all(AUTHORIZATION).iter().map(|value| (value, true));
    let values = values.chain(headers.get_all(API_KEY).iter().map(|value| (value, false)));
    for (value, is_authorization) in values {
        match if is_authorization { bearer(value) } else { plain(value) } {
            Ok(other) if key.is_some() && other != text => return Err(ApiError::new(Reason::ConflictingCredentials)),
            Ok(found) => (key, text) = (Some(value), found),
            Err(message) => problem = problem.or(Some(message)),
        }
    }
    if key.is_none() {
        return Err(ApiError::with_message(Reason::InvalidApiKey, problem.unwrap_or(NONE)));
    }
    let refused = |message| Err(ApiError::with_message(Reason::InvalidApiKey, message));
    match text {
        _ if text.starts_with("whsec_") => refused(SECRET),
        _ if !text.starts_with(KEY_PREFIX) => refused(NO_KEY),
        _ => HeaderValue::from_str(text).map_err(|_| ApiError::with_message(Reason::InvalidApiKey, INVALID_CHARACTERS)),
    }
}

const NONE: &str = "no API key was sent; send it as `Authorization: Bearer sk_live_…` or as `x-api-key: sk_live_…`";
const EMPTY: &str = "the header of the API key is empty";
const INVALID_CHARACTERS: &str = "the API key contains characters that no API key has; copy it again";
const NO_SCHEME: &str = "the Authorization header needs `Bearer` and a space before the API key";
const OTHER_SCHEME: &str = "the Authorization header must be `Bearer` and the API key; other schemes are not supported";
const SECRET: &str = "this is a webhook secret; requests need the API key, which starts with `sk_live_`";
const NO_KEY: &str = "this is not an API key; API keys start with `sk_live_`";

/// Reads `x-api-key`.
fn plain(value: &HeaderValue) -> Result<&str, &'static str> {
    let text = value.to_str().map_err(|_| INVALID_CHARACTERS)?.trim();
    match text {
        "" => Err(EMPTY),
        text => Ok(text),
    }
}

/// Reads `Authorization`.
fn bearer(value: &HeaderValue) -> Result<&str, &'static str> {
    let text = plain(value)?;
    match text.split_once(' ') {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => Ok(key.trim()),
        None if text.eq_ignore_ascii_case("bearer") => Err(EMPTY),
        None => Err(NO_SCHEME),
        Some(_) => Err(OTHER_SCHEME),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&'static str, &str)]) -> Result<String, (Reason, String)> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_bytes(value.as_bytes()).expect("a header"));
        }
        let key = api_key(&headers).map_err(|error| (error.reason, error.message.into_owned()))?;
        Ok(key.to_str().expect("text").to_owned())
    }

    #[test]
    fn both_headers_carry_a_key_and_two_must_agree() {
        for headers in [
            &[("authorization", "Bearer sk_live_k")][..],
            &[("authorization", "bearer  sk_live_k ")],
            &[("x-api-key", " sk_live_k")],
            &[("x-api-key", "sk_live_k"), ("authorization", "Bearer sk_live_k")],
            &[("x-api-key", "sk_live_k"), ("authorization", "Basic dTpw")],
        ] {
            assert_eq!(of(headers), Ok("sk_live_k".to_owned()), "{headers:?}");
        }
        for headers in [
            &[("x-api-key", "sk_live_k"), ("authorization", "Bearer other")][..],
            &[("x-api-key", "sk_live_k"), ("x-api-key", "sk_live_other")],
        ] {
            assert_eq!(of(headers).expect_err("two keys").0, Reason::ConflictingCredentials, "{headers:?}");
        }
    }

    #[test]
    fn a_refusal_names_the_problem_of_the_header_and_repeats_nothing_of_it() {
        for (headers, message) in [
            (&[][..], NONE),
            (&[("authorization", "Basic dTpw")], OTHER_SCHEME),
            (&[("authorization", "Token sk_live_0123")], OTHER_SCHEME),
            (&[("authorization", "sk_live_0123")], NO_SCHEME),
            (&[("authorization", "Bearer ")], EMPTY),
            (&[("authorization", "Bearer")], EMPTY),
            (&[("x-api-key", "")], EMPTY),
            (&[("x-api-key", "sk_live_\u{e9}")], INVALID_CHARACTERS),
            (&[("authorization", "Bearer whsec_0123")], SECRET),
            (&[("x-api-key", "pk_0123")], NO_KEY),
        ] {
            let refused = of(headers).expect_err(message);
            assert_eq!(refused, (Reason::InvalidApiKey, message.to_owned()), "{headers:?}");
            assert!(!refused.1.contains("0123") && message.len() < 200, "{message}");
        }
    }
}
