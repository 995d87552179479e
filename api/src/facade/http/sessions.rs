//! Dashboard sessions, found by the token of a cookie. They end by timeout or logout.
//!
//! The engine stores them, so that a session of one facade is valid at all of them. A stored session contains the API key
//! of its login, encrypted with a key derived from the token, which only the browser has.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};

use chacha20poly1305::{
    ChaCha20Poly1305, Nonce,
    aead::{Aead, Payload},
};
use hmac::{Hmac, KeyInit, Mac};
use http::HeaderValue;
use proto::{ApiError, Caller, Engine, Reason, v1};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The state of the dashboard.
pub struct DashboardState {
    /// Derives the tokens of new sessions.
    secret: [u8; 32],
    count: AtomicU64,
    /// The control URL of the development ledger that pays test payments.
    pub(crate) test_ledger: Option<String>,
}

/// The token of a session: a byte that depends on its merchant, by which the engine finds the sessions of a merchant, and
/// 32 random bytes.
#[derive(Clone, Copy)]
pub(crate) struct Token([u8; 33]);

/// One login.
pub(crate) struct Session {
    /// The API key of the login, used for calls of the engine.
    pub(crate) key: HeaderValue,
    /// The merchant that is logged in.
    pub(crate) merchant_id: String,
}

impl DashboardState {
    /// Creates the state. `secret` must be random. `test_ledger` is the control URL of a development ledger, if the engine
    /// follows one.
    #[must_use]
    pub fn new(secret: [u8; 32], test_ledger: Option<String>) -> Self {
        Self { secret, count: AtomicU64::new(0), test_ledger }
    }

    /// Returns the token of a new session of a merchant.
    fn token(&self, merchant_id: &str) -> Token {
        let count = self.count.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let of_merchant: [u8; 32] = Sha256::digest(merchant_id.as_bytes()).into();
        let mut token = [0; 33];
        token[0] = of_merchant[0];
        token[1..].copy_from_slice(&mac(&self.secret, &[b"token", &count]));
        Token(token)
    }

    /// Opens a session with an API key of a merchant, and returns its token.
    ///
    /// # Errors
    /// The error of the engine.
    pub(crate) async fn open(
        &self,
        engine: &Engine,
        caller: &Caller,
        key: HeaderValue,
        merchant_id: &str,
    ) -> Result<Token, ApiError> {
        let token = self.token(merchant_id);
        let message = v1::OpenDashboardSessionRequest {
            session_id: token.id(),
            sealed_api_key: token.seal(key.as_bytes()).into(),
        };
        let caller = Caller { api_key: Some(key), ..caller.clone() };
        engine.facades().open_dashboard_session(caller.request(message)).await?;
        Ok(token)
    }
}

/// Returns the session of a token; `None` if it has ended.
///
/// # Errors
/// The error of the engine.
pub(crate) async fn find(engine: &Engine, caller: &Caller, token: &Token) -> Result<Option<Session>, ApiError> {
    let request = caller.request(v1::GetDashboardSessionRequest { session_id: token.id() });
    match engine.facades().get_dashboard_session(request).await.map_err(ApiError::from) {
        Ok(found) => {
            let found = found.into_inner();
            let key = token.unseal(&found.sealed_api_key).and_then(|key| HeaderValue::from_bytes(&key).ok());
            Ok(key.map(|mut key| {
                key.set_sensitive(true);
                Session { key, merchant_id: found.merchant_id }
            }))
        }
        Err(refused) if refused.reason == Reason::NotFound => Ok(None),
        Err(refused) => Err(refused),
    }
}

/// Ends a session.
///
/// # Errors
/// The error of the engine.
pub(crate) async fn close(engine: &Engine, caller: &Caller, token: &Token) -> Result<(), ApiError> {
    let request = caller.request(v1::CloseDashboardSessionRequest { session_id: token.id() });
    engine.facades().close_dashboard_session(request).await.map(drop).map_err(Into::into)
}

impl Token {
    /// Reads the token of a cookie.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut token = [0; 33];
        hex::decode_to_slice(text, &mut token).ok().map(|()| Self(token))
    }

    /// Returns the text for the cookie.
    pub(crate) fn text(&self) -> String {
        hex::encode(self.0)
    }

    /// Returns the id of its session, which does not reveal the token.
    pub(crate) fn id(&self) -> bytes::Bytes {
        let digest = mac(&self.0, &[b"id"]);
        [&self.0[..1], &digest[..31]].concat().into()
    }

    /// Returns the CSRF token of its session, which each of the session's forms contains.
    pub(crate) fn form_token(&self) -> String {
        hex::encode(&mac(&self.0, &[b"form"])[..16])
    }

    /// Returns whether a form contains the CSRF token of its session.
    pub(crate) fn is_form_token(&self, sent: &str) -> bool {
        self.form_token().as_bytes().ct_eq(sent.as_bytes()).into()
    }

    /// Each token encrypts one text, so the nonce may be constant.
    fn cipher(&self) -> (ChaCha20Poly1305, Nonce) {
        let cipher = ChaCha20Poly1305::new_from_slice(&mac(&self.0, &[b"api key"])).expect("a key of 32 bytes");
        (cipher, Nonce::default())
    }

    fn seal(&self, key: &[u8]) -> Vec<u8> {
        let (cipher, nonce) = self.cipher();
        cipher.encrypt(&nonce, Payload::from(key)).expect("a key is shorter than 256 GiB")
    }

    fn unseal(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        let (cipher, nonce) = self.cipher();
        cipher.decrypt(&nonce, Payload::from(sealed)).ok()
    }
}

fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC accepts keys of any length");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

/// Omits the secret.
impl fmt::Debug for DashboardState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DashboardState").field("test_ledger", &self.test_ledger).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens() -> [Token; 3] {
        let state = DashboardState::new([7; 32], None);
        [state.token("mer_1"), state.token("mer_1"), state.token("mer_2")]
    }

    #[test]
    fn tokens_differ_and_their_text_round_trips() {
        let [one, two, other] = tokens();
        assert_ne!(one.text(), two.text());
        assert_eq!(one.text().len(), 66);
        assert_eq!(Token::parse(&one.text()).map(|token| token.0), Some(one.0));
        for invalid in ["", "00", &one.text()[1..], &format!("{}g", &one.text()[1..])] {
            assert!(Token::parse(invalid).is_none(), "{invalid}");
        }
        assert_eq!(one.id()[0], two.id()[0], "the sessions of a merchant are found together");
        assert!(one.id() != two.id() && one.id().len() == 32 && other.id().len() == 32);
        assert!(!one.text().contains(&hex::encode(&one.id()[1..])));
    }

    #[test]
    fn a_key_is_readable_only_with_its_token() {
        let [one, two, _] = tokens();
        let sealed = one.seal(b"sk_live_x");
        assert_eq!(one.unseal(&sealed).as_deref(), Some(&b"sk_live_x"[..]));
        assert_eq!(two.unseal(&sealed), None);
        assert_eq!(one.unseal(&sealed[1..]), None);
        assert!(!sealed.windows(7).any(|part| part == b"sk_live"));
    }

    #[test]
    fn a_form_token_is_bound_to_its_session() {
        let [one, two, _] = tokens();
        let token = one.form_token();
        assert!(one.is_form_token(&token) && !two.is_form_token(&token));
        assert!(!one.is_form_token("") && !one.is_form_token(&token[1..]));
    }
}
