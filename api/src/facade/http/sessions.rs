//! Who is logged in: sessions kept by this process, found by the token of a cookie, ended by time or by their owner.
//!
//! The API key stays in memory, for the engine asks for it with every call; it is on no disk and in no browser.

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

/// A session that nobody uses ends after this.
const IDLE: Duration = Duration::from_secs(12 * 3_600);
/// Every session ends after this.
const LIFE: Duration = Duration::from_secs(7 * 86_400);
/// Sessions kept at once; the one unused for longest makes room.
const MAX_SESSIONS: usize = 10_000;
/// Sessions of one merchant kept at once: one merchant's logins end no other's sessions.
const MAX_SESSIONS_OF_ONE: usize = 50;

/// What the dashboard needs.
#[derive(Debug)]
pub struct Desk {
    pub(crate) sessions: Sessions,
    /// The control address of a development ledger, whose play money pays test payments.
    pub(crate) test_ledger: Option<String>,
}

impl Desk {
    /// Makes a dashboard whose sessions come from `secret`, which must be random. `test_ledger` is the control address
    /// of a development ledger, if that is what the engine follows.
    #[must_use]
    pub fn new(secret: [u8; 32], test_ledger: Option<String>) -> Self {
        Self { sessions: Sessions::new(secret), test_ledger }
    }
}

/// A session's name in our table: what its token hashes to, so that a memory dump opens no session.
type Name = [u8; 32];

/// The open sessions.
pub(crate) struct Sessions {
    secret: [u8; 32],
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    count: u64,
    sessions: BTreeMap<Name, Session>,
}

impl Open {
    /// Ends those of the chosen sessions that were unused for longest, until there is room for one more.
    fn make_room(&mut self, most: usize, is_chosen: impl Fn(&Session) -> bool) {
        let mut chosen: Vec<(Instant, Name)> =
            self.sessions.iter().filter(|(_, session)| is_chosen(session)).map(|(name, s)| (s.used, *name)).collect();
        chosen.sort_unstable();
        for (_, name) in chosen.iter().take((chosen.len() + 1).saturating_sub(most)) {
            self.sessions.remove(name);
        }
    }
}

/// One login.
#[derive(Clone)]
pub(crate) struct Session {
    /// The merchant's key, which speaks for the visitor.
    pub(crate) key: HeaderValue,
    /// Whose it is.
    pub(crate) merchant_id: String,
    opened: Instant,
    used: Instant,
}

impl Sessions {
    /// Keeps sessions whose tokens come from `secret`, which must be random and nobody else's.
    pub(crate) fn new(secret: [u8; 32]) -> Self {
        Self { secret, open: Mutex::default() }
    }

    fn mac(&self, what: &[u8], text: &[u8]) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret).expect("HMAC takes a key of any length");
        mac.update(what);
        mac.update(text);
        mac.finalize().into_bytes().into()
    }

    fn open_now(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a session and returns its token, which only the cookie holds.
    pub(crate) fn open(&self, mut key: HeaderValue, merchant_id: String) -> String {
        key.set_sensitive(true);
        let now = Instant::now();
        let mut open = self.open_now();
        open.count += 1;
        let token = hex::encode(self.mac(b"token", &open.count.to_be_bytes()));
        open.sessions.retain(|_, session| session.is_alive(now));
        open.make_room(MAX_SESSIONS_OF_ONE, |session| session.merchant_id == merchant_id);
        open.make_room(MAX_SESSIONS, |_| true);
        open.sessions.insert(self.mac(b"name", token.as_bytes()), Session { key, merchant_id, opened: now, used: now });
        token
    }

    /// Finds the session of a token and counts this as its use.
    pub(crate) fn find(&self, token: &str) -> Option<Session> {
        let now = Instant::now();
        let name = self.mac(b"name", token.as_bytes());
        let mut open = self.open_now();
        if !open.sessions.get(&name)?.is_alive(now) {
            open.sessions.remove(&name);
            return None;
        }
        let session = open.sessions.get_mut(&name)?;
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

    /// Returns what every form of a session carries, so that no other site can send one.
    pub(crate) fn form_token(&self, token: &str) -> String {
        hex::encode(&self.mac(b"form", token.as_bytes())[..16])
    }

    /// Says whether a form carries its session's own.
    pub(crate) fn is_form_token(&self, token: &str, shown: &str) -> bool {
        self.form_token(token).as_bytes().ct_eq(shown.as_bytes()).into()
    }
}

impl Session {
    fn is_alive(&self, now: Instant) -> bool {
        now.duration_since(self.used) < IDLE && now.duration_since(self.opened) < LIFE
    }
}

/// Shows neither key nor token.
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
    async fn a_session_ends_by_rest_by_age_and_by_its_owner() {
        let sessions = sessions();
        let (one, two) = (sessions.open(key(), "mer_1".into()), sessions.open(key(), "mer_1".into()));
        let other = sessions.open(key(), "mer_2".into());
        assert!(one != two && one.len() == 64 && sessions.find(&one).is_some());
        tokio::time::advance(IDLE - Duration::from_secs(1)).await;
        assert!(sessions.find(&one).is_some());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(sessions.find(&two).is_none(), "it rested too long");
        assert_eq!((sessions.count("mer_1"), sessions.count("mer_2")), (1, 0));
        for _ in 0..20 {
            tokio::time::advance(IDLE - Duration::from_secs(1)).await;
            sessions.find(&one);
        }
        assert!(sessions.find(&one).is_none() && sessions.find(&other).is_none(), "it is too old");
    }

    #[tokio::test]
    async fn logging_out_everywhere_ends_ones_own_sessions_only() {
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
    async fn a_forms_token_is_its_sessions_own() {
        let sessions = sessions();
        let (one, two) = (sessions.open(key(), "mer_1".into()), sessions.open(key(), "mer_1".into()));
        let token = sessions.form_token(&one);
        assert!(sessions.is_form_token(&one, &token) && !sessions.is_form_token(&two, &token));
        assert!(!sessions.is_form_token(&one, "") && !sessions.is_form_token(&one, &token[1..]));
        assert!(Sessions::new([8; 32]).find(&one).is_none());
    }
}
