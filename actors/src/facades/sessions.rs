//! Dashboard sessions: a list of logins, which end by logout, by age, or when they are not used.

use std::time::Duration;

use engine::{ids::MerchantId, time::Timestamp};

use super::shards::Fields;

/// Idle timeout of a session.
pub(super) const IDLE: Duration = Duration::from_secs(12 * 3_600);
/// Maximum age of a session.
pub(super) const LIFE: Duration = Duration::from_secs(7 * 86_400);
/// A use is stored if the last stored one is older, so that pages cause few commits.
const USE_ACCURACY: Duration = Duration::from_secs(300);
/// Maximum number of sessions of one merchant, so that one merchant's logins end no other's sessions.
pub(super) const MAX_OF_ONE: usize = 50;
/// Maximum number of sessions of a note.
const MAX_OF_NOTE: usize = 640;
/// Maximum size of a sealed API key, in bytes.
pub const MAX_SEALED_BYTES: usize = 255;
/// The version of the stored form.
const VERSION: u8 = 1;

/// Identifies a session: a digest of its token. The first byte depends on the merchant only, and chooses the note.
pub type SessionId = [u8; 32];

/// A session of the dashboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DashboardSession {
    /// The id.
    pub id: SessionId,
    /// The merchant that is logged in.
    pub merchant: MerchantId,
    /// The API key of the login, encrypted with a key that only the holder of the session's token has.
    pub sealed_key: Vec<u8>,
    pub(super) opened_at: Timestamp,
    pub(super) used_at: Timestamp,
}

impl DashboardSession {
    fn is_alive(&self, now: Timestamp) -> bool {
        now.since(self.used_at) < IDLE && now.since(self.opened_at) < LIFE
    }
}

/// The sessions of a note.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Sessions(Vec<DashboardSession>);

impl Sessions {
    /// Decodes the stored form; `None` if it is damaged.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields(bytes);
        let [version] = fields.take()?;
        let mut sessions = Vec::new();
        while version == VERSION && !fields.is_empty() {
            let id = fields.take()?;
            let merchant = MerchantId::from_bits(u128::from_be_bytes(fields.take()?));
            let opened_at = Timestamp::from_millis(u64::from_be_bytes(fields.take()?));
            let used_at = Timestamp::from_millis(u64::from_be_bytes(fields.take()?));
            let [length] = fields.take()?;
            let sealed_key = fields.take_slice(length.into())?.to_vec();
            sessions.push(DashboardSession { id, merchant, sealed_key, opened_at, used_at });
        }
        (version == VERSION).then_some(Self(sessions))
    }

    /// Encodes the stored form.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        for session in &self.0 {
            bytes.extend(session.id);
            bytes.extend(session.merchant.bits().to_be_bytes());
            bytes.extend(session.opened_at.millis().to_be_bytes());
            bytes.extend(session.used_at.millis().to_be_bytes());
            bytes.push(u8::try_from(session.sealed_key.len()).expect("checked when the session was opened"));
            bytes.extend(&session.sealed_key);
        }
        bytes
    }

    /// Opens a session, and ends the least recently used ones beyond the maximum. Sessions that have ended are removed.
    pub(super) fn open(&mut self, id: SessionId, merchant: MerchantId, sealed_key: Vec<u8>, now: Timestamp) {
        self.0.retain(|session| session.is_alive(now) && session.id != id);
        self.evict(MAX_OF_ONE, |session| session.merchant == merchant);
        self.evict(MAX_OF_NOTE, |_| true);
        self.0.push(DashboardSession { id, merchant, sealed_key, opened_at: now, used_at: now });
    }

    /// Ends the least recently used of the selected sessions until fewer than `max` remain.
    fn evict(&mut self, max: usize, is_selected: impl Fn(&DashboardSession) -> bool) {
        let selected = self.0.iter().filter(|session| is_selected(session));
        let mut selected: Vec<_> = selected.map(|session| (session.used_at, session.opened_at, session.id)).collect();
        selected.sort_unstable();
        let ended = selected.len().saturating_sub(max - 1);
        self.0.retain(|session| selected[..ended].iter().all(|(_, _, id)| *id != session.id));
    }

    /// Returns a session that has not ended.
    pub(super) fn find(&self, id: &SessionId, now: Timestamp) -> Option<&DashboardSession> {
        self.0.iter().find(|session| session.id == *id && session.is_alive(now))
    }

    /// Records the use of a session. Returns whether it changed.
    pub(super) fn record_use(&mut self, id: &SessionId, now: Timestamp) -> bool {
        let found = self.0.iter_mut().find(|session| session.id == *id);
        let found = found.filter(|session| now.since(session.used_at) >= USE_ACCURACY);
        found.map(|session| session.used_at = now).is_some()
    }

    /// Ends the selected sessions. Returns whether there were any.
    pub(super) fn close(&mut self, is_selected: impl Fn(&DashboardSession) -> bool) -> bool {
        let before = self.0.len();
        self.0.retain(|session| !is_selected(session));
        self.0.len() != before
    }

    /// Counts the sessions of a merchant.
    pub(super) fn count(&self, merchant: MerchantId, now: Timestamp) -> usize {
        self.0.iter().filter(|session| session.merchant == merchant && session.is_alive(now)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_000_000);

    fn id(number: u8) -> SessionId {
        [number; 32]
    }

    fn merchant(number: u128) -> MerchantId {
        MerchantId::from_bits(number)
    }

    fn opened(sessions: &[(u8, u128)]) -> Sessions {
        let mut all = Sessions::default();
        for (number, of) in sessions {
            all.open(id(*number), merchant(*of), vec![*number; 72], START);
        }
        all
    }

    #[test]
    fn the_stored_form_round_trips_and_a_damaged_one_is_recognized() {
        let sessions = opened(&[(1, 1), (2, 1), (3, 2)]);
        let bytes = sessions.encode();
        assert_eq!(Sessions::decode(&bytes), Some(sessions));
        assert_eq!(Sessions::decode(&[VERSION]), Some(Sessions::default()));
        for damaged in [&bytes[..bytes.len() - 1], &[], &[VERSION + 1]] {
            assert_eq!(Sessions::decode(damaged), None);
        }
    }

    #[test]
    fn a_session_ends_when_idle_when_old_and_on_logout() {
        let mut sessions = opened(&[(1, 1), (2, 1), (3, 2)]);
        let almost = START + (IDLE - Duration::from_secs(1));
        assert!(sessions.record_use(&id(1), almost) && !sessions.record_use(&id(1), almost), "few commits");
        let later = START + IDLE;
        assert!(sessions.find(&id(1), later).is_some());
        assert!(sessions.find(&id(2), later).is_none(), "it was idle too long");
        assert_eq!((sessions.count(merchant(1), later), sessions.count(merchant(2), later)), (1, 0));
        let mut now = later;
        while now.since(START) < LIFE {
            sessions.record_use(&id(1), now);
            now = now + Duration::from_secs(3_600);
        }
        assert!(sessions.find(&id(1), now).is_none(), "it is too old");

        let mut sessions = opened(&[(1, 1), (2, 1), (3, 2)]);
        assert!(sessions.close(|session| session.id == id(1)) && !sessions.close(|session| session.id == id(1)));
        assert!(sessions.find(&id(1), START).is_none() && sessions.find(&id(2), START).is_some());
        assert!(sessions.close(|session| session.merchant == merchant(1)));
        assert!(sessions.find(&id(2), START).is_none() && sessions.find(&id(3), START).is_some());
    }

    #[test]
    fn many_logins_of_one_merchant_end_its_oldest_session_and_no_others() {
        let mut sessions = opened(&[(200, 2), (0, 1)]);
        for number in 1..=50 {
            sessions.open(id(number), merchant(1), Vec::new(), START + Duration::from_secs(number.into()));
        }
        let now = START + Duration::from_secs(60);
        assert_eq!(sessions.count(merchant(1), now), MAX_OF_ONE);
        assert!(sessions.find(&id(0), now).is_none());
        assert!(sessions.find(&id(50), now).is_some() && sessions.find(&id(200), now).is_some());
    }

    #[test]
    fn a_repeated_login_with_one_id_is_one_session() {
        let sessions = opened(&[(1, 1), (1, 1)]);
        assert_eq!(sessions.count(merchant(1), START), 1);
    }
}
