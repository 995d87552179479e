//! The bearer tokens of the gRPC port and their scopes.

use http::HeaderMap;
use proto::access::TokenScope;
use subtle::ConstantTimeEq;

/// The valid tokens of the port. Several tokens of a scope may be valid at once, so that callers can rotate them.
#[derive(Clone)]
pub struct Tokens(Vec<(String, TokenScope)>);

impl Tokens {
    /// Creates the set of the operator's tokens and the service tokens. Empty tokens are ignored.
    pub fn new(operator: impl IntoIterator<Item = String>, service: impl IntoIterator<Item = String>) -> Self {
        let operator = operator.into_iter().map(|token| (token, TokenScope::Operator));
        let service = service.into_iter().map(|token| (token, TokenScope::Service));
        // The settings refuse a service token that equals an operator's: it would silently have the operator's scope.
        Self(operator.chain(service).filter(|(token, _)| !token.is_empty()).collect())
    }

    /// Returns the scope of the token of a request; `None` if it has no valid token. Compares in constant time.
    pub(super) fn scope_of(&self, headers: &HeaderMap) -> Option<TokenScope> {
        let value = headers.get(http::header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let candidate = value.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
        self.0.iter().fold(None, |found, (token, scope)| {
            if bool::from(candidate.as_bytes().ct_eq(token.as_bytes())) { Some(*scope) } else { found }
        })
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, header::AUTHORIZATION};

    use super::*;

    #[test]
    fn each_token_has_its_scope_and_other_texts_have_none() {
        let tokens = Tokens::new(["o1".repeat(16), "o2".repeat(16)], ["s1".repeat(16), String::new()]);
        let scope_of = |value: &str| {
            let headers = [(AUTHORIZATION, HeaderValue::from_bytes(value.as_bytes()).expect("a header"))];
            tokens.scope_of(&headers.into_iter().collect())
        };
        for (token, scope) in [("o1", TokenScope::Operator), ("o2", TokenScope::Operator), ("s1", TokenScope::Service)]
        {
            let token = token.repeat(16);
            assert_eq!(scope_of(&format!("Bearer {token}")), Some(scope));
            for invalid in
                [token.clone(), format!("Basic {token}"), format!("Bearer {token} "), format!("Bearer {}", &token[1..])]
            {
                assert_eq!(scope_of(&invalid), None, "{invalid}");
            }
        }
        for invalid in ["", "Bearer", "Bearer ", "Bearer \u{e9}"] {
            assert_eq!(scope_of(invalid), None, "{invalid}");
        }
        assert_eq!(tokens.scope_of(&HeaderMap::new()), None);
    }
}
