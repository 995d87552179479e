//! Dashboard sessions, found by the token of a cookie. They end by timeout or logout.
//!
//! Sessions are in memory only, since each holds its API key for calls of the engine.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use hmac::{Hmac, KeyInit, Mac};
use http::HeaderValue;
use sha2::Sha256;
use subtle::ConstantTimeEq;
use tokio::time::Instant;

/// Idle timeout of a session.
const IDLE: Duration = Duration::from_secs(12 * 3_600);
/// Maximum age of a session.
const LIFE: Duration = Duration::from_secs(7 * 86_400);
/// Maximum number of sessions; a login beyond it ends the least recently used one.
const MAX_SESSIONS: usize = 10_000;
/// Maximum number of sessions of one merchant, so that one merchant's logins end no other's sessions.
const MAX_SESSIONS_OF_ONE: usize = 50;

/// The state of the dashboard.
#[derive(Debug)]
pub struct DashboardState {
    pub(crate) sessions: Sessions,
    /// The control URL of the development ledger that pays test payments.
    pub(crate) test_ledger: Option<String>,
}

impl DashboardState {
    /// Creates the state. `secret` must be random; session tokens are derived from it. `test_ledger` is the control URL of
    /// a development ledger, if the engine follows one.
    #[must_use]
    pub fn new(secret: [u8; 32], test_ledger: Option<String>) -> Self {
        Self { sessions: Sessions::new(secret), test_ledger }
    }
}

/// Identifies a session: a MAC of its token, so that a memory dump reveals no token.
type SessionId = [u8; 32];

/// The open sessions.
pub(crate) struct Sessions {
    secret: [u8; 32],
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    count: u64,
    sessions: BTreeMap<SessionId, Session>,
}

impl Open {
    /// Ends the least recently used of the selected sessions until fewer than `max` remain.
    fn evict(&mut self, max: usize, is_selected: impl Fn(&Session) -> bool) {
        let mut selected: Vec<(Instant, SessionId)> =
            self.sessions.iter().filter(|(_, session)| is_selected(session)).map(|(id, s)| (s.used, *id)).collect();
        selected.sort_unstable();
        for (_, id) in selected.iter().take((selected.len() + 1).saturating_sub(max)) {
            self.sessions.remove(id);
        }
    }
}

/// One login.
#[derive(Clone)]
pub(crate) struct Session {
    /// The API key of the login, used for calls of the engine.
    pub(crate) key: HeaderValue,
    /// The merchant that is logged in.
    pub(crate) merchant_id: String,
    opened: Instant,
    used: Instant,
}

impl Sessions {
    /// Creates an empty store of sessions. `secret` must be random.
    pub(crate) fn new(secret: [u8; 32]) -> Self {
        Self { secret, open: Mutex::default() }
    }

    fn mac(&self, purpose: &[u8], text: &[u8]) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret).expect("HMAC accepts keys of any length");
        mac.update(purpose);
        mac.update(text);
        mac.finalize().into_bytes().into()
    }

    fn open_now(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a session and returns its token for the cookie.
    pub(crate) fn open(&self, mut key: HeaderValue, merchant_id: String) -> String {
        key.set_sensitive(true);
        let now = Instant::now();
        let mut open = self.open_now();
        open.count += 1;
        let token = hex::encode(self.mac(b"token", &open.count.to_be_bytes()));
        open.sessions.retain(|_, session| session.is_alive(now));
        open.evict(MAX_SESSIONS_OF_ONE, |session| session.merchant_id == merchant_id);
        open.evict(MAX_SESSIONS, |_| true);
        open.sessions.insert(self.mac(b"name", token.as_bytes()), Session { key, merchant_id, opened: now, used: now });
        token
    }

    /// Returns the session of a token and marks it as used.
    pub(crate) fn find(&self, token: &str) -> Option<Session> {
        let now = Instant::now();
        let id = self.mac(b"name", token.as_bytes());
        let mut open = self.open_now();
        if !open.sessions.get(&id)?.is_alive(now) {
            open.sessions.remove(&id);
            return None;
        }
        let session = open.sessions.get_mut(&id)?;
        session.used = now;
        Some(session.clone())
    }

    /// Ends one session.
    pub(crate) fn close(&self, token: &str) {
        self.open_now().sessions.remove(&self.mac(b"name", token.as_bytes()));
    }

    /// Ends every session of a merchant.
    pub(crate) fn close_all(&self, merchant_id: &str) {
        self.open_now().sessions.retain(|_, session| session.merchant_id != merchant_id);
    }

    /// Counts the sessions of a merchant.
    pub(crate) fn count(&self, merchant_id: &str) -> usize {
        let now = Instant::now();
        let open = self.open_now();
        open.sessions.values().filter(|session| session.merchant_id == merchant_id && session.is_alive(now)).count()
    }

    /// Returns the CSRF token of a session, which each of its forms contains.
    pub(crate) fn form_token(&self, token: &str) -> String {
        hex::encode(&self.mac(b"form", token.as_bytes())[..16])
    }

    /// Returns whether a form contains the CSRF token of its session.
    pub(crate) fn is_form_token(&self, token: &str, sent: &str) -> bool {
        self.form_token(token).as_bytes().ct_eq(sent.as_bytes()).into()
    }
}

impl Session {
    fn is_alive(&self, now: Instant) -> bool {
        now.duration_since(self.used) < IDLE && now.duration_since(self.opened) < LIFE
    }
}

/// Omits keys and tokens.
impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("open", &self.open_now().sessions.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sessions() -> Sessions {
        Sessions::new([7; 32])
    }

    fn key() -> HeaderValue {
        HeaderValue::from_static("sk_live_x")
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_ends_when_idle_when_old_and_on_logout() {
        let sessions = sessions();
        let (one, two) = (sessions.open(key(), "mer_1".into()), sessions.open(key(), "mer_1".into()));
        let other = sessions.open(key(), "mer_2".into());
        assert!(one != two && one.len() == 64 && sessions.find(&one).is_some());
        tokio::time::advance(IDLE - Duration::from_secs(1)).await;
        assert!(sessions.find(&one).is_some());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(sessions.find(&two).is_none(), "it was idle too long");
        assert_eq!((sessions.count("mer_1"), sessions.count("mer_2")), (1, 0));
        for _ in 0..20 {
            tokio::time::advance(IDLE - Duration::from_secs(1)).await;
            sessions.find(&one);
        }
        assert!(sessions.find(&one).is_none() && sessions.find(&other).is_none(), "it is too old");
    }

    #[tokio::test]
    async fn logging_out_everywhere_ends_only_sessions_of_the_merchant() {
        let sessions = sessions();
        let tokens = [sessions.open(key(), "mer_1".into()), sessions.open(key(), "mer_1".into())];
        let other = sessions.open(key(), "mer_2".into());
        sessions.close_all("mer_1");
        assert!(tokens.iter().all(|token| sessions.find(token).is_none()) && sessions.find(&other).is_some());
        sessions.close(&other);
        assert!(sessions.find(&other).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn many_logins_of_one_merchant_end_its_oldest_session_and_no_others() {
        let sessions = sessions();
        let other = sessions.open(key(), "mer_2".into());
        let first = sessions.open(key(), "mer_1".into());
        let mut last = String::new();
        for _ in 0..MAX_SESSIONS_OF_ONE {
            tokio::time::advance(Duration::from_secs(1)).await;
            last = sessions.open(key(), "mer_1".into());
        }
        assert_eq!(sessions.count("mer_1"), MAX_SESSIONS_OF_ONE);
        assert!(sessions.find(&first).is_none() && sessions.find(&last).is_some() && sessions.find(&other).is_some());
    }

    #[tokio::test]
    async fn a_form_token_is_bound_to_its_session() {
        let sessions = sessions();
        let (one, two) = (sessions.open(key(), "mer_1".into()), sessions.open(key(), "mer_1".into()));
        let token = sessions.form_token(&one);
        assert!(sessions.is_form_token(&one, &token) && !sessions.is_form_token(&two, &token));
        assert!(!sessions.is_form_token(&one, "") && !sessions.is_form_token(&one, &token[1..]));
        assert!(Sessions::new([8; 32]).find(&one).is_none());
    }
}
