//! The bearer tokens of the gRPC port, and what each opens.

use http::HeaderMap;
use proto::access::TokenScope;
use subtle::ConstantTimeEq;

/// The tokens that the port takes: two of a scope may be valid at once, so that callers can change to a new one.
#[derive(Clone)]
pub struct Tokens(Vec<(String, TokenScope)>);

impl Tokens {
    /// Takes the operator's tokens and those of services.
    pub fn new(operator: impl IntoIterator<Item = String>, service: impl IntoIterator<Item = String>) -> Self {
        let operator = operator.into_iter().map(|token| (token, TokenScope::Operator));
        let service = service.into_iter().map(|token| (token, TokenScope::Service));
        // A service token equal to an operator's would open everything without anybody noticing: settings refuse it.
        Self(operator.chain(service).filter(|(token, _)| !token.is_empty()).collect())
    }

    /// Returns what the token of a request opens. The time it takes does not depend on how much of a token is right.
    pub(super) fn scope_of(&self, headers: &HeaderMap) -> Option<TokenScope> {
        let shown = headers.get(http::header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let shown = shown.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
        self.0.iter().fold(None, |found, (token, scope)| {
            if bool::from(shown.as_bytes().ct_eq(token.as_bytes())) { Some(*scope) } else { found }
        })
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, header::AUTHORIZATION};

    use super::*;

    #[test]
    fn each_token_opens_its_scope_and_no_other_text_opens_anything() {
        let tokens = Tokens::new(["o1".repeat(16), "o2".repeat(16)], ["s1".repeat(16), String::new()]);
        let scope_of = |value: &str| {
            let headers = [(AUTHORIZATION, HeaderValue::from_bytes(value.as_bytes()).expect("a header"))];
            tokens.scope_of(&headers.into_iter().collect())
        };
        for (token, scope) in [("o1", TokenScope::Operator), ("o2", TokenScope::Operator), ("s1", TokenScope::Service)]
        {
            let token = token.repeat(16);
            assert_eq!(scope_of(&format!("Bearer {token}")), Some(scope));
            for wrong in
                [token.clone(), format!("Basic {token}"), format!("Bearer {token} "), format!("Bearer {}", &token[1..])]
            {
                assert_eq!(scope_of(&wrong), None, "{wrong}");
            }
        }
        for nothing in ["", "Bearer", "Bearer ", "Bearer \u{e9}"] {
            assert_eq!(scope_of(nothing), None, "{nothing}");
        }
        assert_eq!(tokens.scope_of(&HeaderMap::new()), None);
    }
}
