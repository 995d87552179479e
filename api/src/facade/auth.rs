//! Which key a request carries: `Authorization: Bearer`, `x-api-key`, or both if they agree.

use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use proto::{ApiError, Reason, caller::API_KEY};

/// Returns the key of a request. Whether it is one of ours the engine decides.
///
/// # Errors
/// `invalid_api_key` without a key, `conflicting_credentials` with two different ones.
pub(super) fn api_key(headers: &HeaderMap) -> Result<HeaderValue, ApiError> {
    let bearers = headers.get_all(AUTHORIZATION).iter().filter_map(bearer);
    let plain = headers.get_all(API_KEY).iter().filter_map(text);
    let mut keys = bearers.chain(plain).filter(|key| !key.is_empty());
    let key = keys.next().ok_or_else(|| ApiError::new(Reason::InvalidApiKey))?;
    if keys.any(|other| other != key) {
        return Err(ApiError::new(Reason::ConflictingCredentials));
    }
    HeaderValue::from_str(key).map_err(|_| ApiError::new(Reason::InvalidApiKey))
}

fn text(value: &HeaderValue) -> Option<&str> {
    value.to_str().ok().map(str::trim)
}

fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, key) = text(value)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&'static str, &str)]) -> Result<String, Reason> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).expect("a header"));
        }
        let key = api_key(&headers).map_err(|error| error.reason)?;
        Ok(key.to_str().expect("text").to_owned())
    }

    #[test]
    fn both_headers_carry_a_key_and_two_must_agree() {
        type Headers<'a> = &'a [(&'static str, &'a str)];
        let table: [(Headers<'_>, Result<&str, Reason>); 11] = [
            (&[("authorization", "Bearer k")], Ok("k")),
            (&[("authorization", "bearer  k ")], Ok("k")),
            (&[("x-api-key", "k")], Ok("k")),
            (&[("x-api-key", "k"), ("authorization", "Bearer k")], Ok("k")),
            (&[("x-api-key", "k"), ("authorization", "Bearer other")], Err(Reason::ConflictingCredentials)),
            (&[("x-api-key", "k"), ("x-api-key", "other")], Err(Reason::ConflictingCredentials)),
            (&[("x-api-key", "k"), ("authorization", "Basic dTpw")], Ok("k")),
            (&[("authorization", "Basic dTpw")], Err(Reason::InvalidApiKey)),
            (&[("authorization", "Bearer ")], Err(Reason::InvalidApiKey)),
            (&[("x-api-key", "")], Err(Reason::InvalidApiKey)),
            (&[], Err(Reason::InvalidApiKey)),
        ];
        for (headers, expected) in table {
            assert_eq!(of(headers), expected.map(str::to_owned), "{headers:?}");
        }
    }
}
