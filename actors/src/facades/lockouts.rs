//! Lockouts of clients that sent too many invalid API keys, counted over all facades.

use std::time::Duration;

use engine::time::Timestamp;

use super::shards::Fields;

/// Maximum number of clients of a note.
const MAX_OF_NOTE: usize = 1_024;
/// The version of the stored form.
const VERSION: u8 = 1;

/// When a client is locked out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockoutPolicy {
    /// Invalid keys that lead to a lockout.
    pub burst: u32,
    /// Time after which `burst` keys are forgiven, one by one.
    pub window: Duration,
    /// Duration of a lockout.
    pub lockout: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Client {
    key: u128,
    /// When all its invalid keys are forgiven.
    forgiven_at: Timestamp,
    locked_until: Timestamp,
}

impl Client {
    fn ends_at(&self) -> Timestamp {
        self.forgiven_at.max(self.locked_until)
    }
}

/// The clients of a note.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Lockouts(Vec<Client>);

impl Lockouts {
    /// Decodes the stored form; `None` if it is damaged.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields(bytes);
        let [version] = fields.take()?;
        let mut clients = Vec::new();
        while version == VERSION && !fields.is_empty() {
            let key = u128::from_be_bytes(fields.take()?);
            let forgiven_at = Timestamp::from_millis(u64::from_be_bytes(fields.take()?));
            let locked_until = Timestamp::from_millis(u64::from_be_bytes(fields.take()?));
            clients.push(Client { key, forgiven_at, locked_until });
        }
        (version == VERSION).then_some(Self(clients))
    }

    /// Encodes the stored form.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        for client in &self.0 {
            bytes.extend(client.key.to_be_bytes());
            bytes.extend(client.forgiven_at.millis().to_be_bytes());
            bytes.extend(client.locked_until.millis().to_be_bytes());
        }
        bytes
    }

    /// Returns how long a client is still locked out.
    pub(super) fn remaining(&self, key: u128, now: Timestamp) -> Option<Duration> {
        let client = self.0.iter().find(|client| client.key == key)?;
        Some(client.locked_until.since(now)).filter(|remaining| !remaining.is_zero())
    }

    /// Counts an invalid key of a client. Returns how long it is locked out now.
    pub(super) fn count(&mut self, key: u128, policy: LockoutPolicy, now: Timestamp) -> Option<Duration> {
        self.0.retain(|client| client.ends_at() > now);
        let known = self.0.iter().position(|client| client.key == key);
        let mut client = known.map_or(Client { key, forgiven_at: now, locked_until: now }, |at| self.0.swap_remove(at));
        let used = client.forgiven_at.since(now) + policy.window / policy.burst.max(1);
        client.forgiven_at = now + used.min(policy.window);
        // The next key would exceed the window.
        if used + policy.window / policy.burst.max(1) > policy.window {
            client.locked_until = now + policy.lockout;
        }
        if self.0.len() >= MAX_OF_NOTE {
            let first = self.0.iter().enumerate().min_by_key(|(_, client)| client.ends_at()).map(|(at, _)| at);
            self.0.swap_remove(first.unwrap_or(0));
        }
        self.0.push(client);
        self.remaining(key, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::from_millis(1_000_000);
    const POLICY: LockoutPolicy =
        LockoutPolicy { burst: 3, window: Duration::from_secs(60), lockout: Duration::from_secs(900) };

    #[test]
    fn the_last_key_of_the_burst_locks_a_client_out_for_a_while() {
        let mut lockouts = Lockouts::default();
        assert_eq!(lockouts.count(1, POLICY, START), None);
        assert_eq!(lockouts.count(1, POLICY, START), None);
        assert_eq!(lockouts.count(2, POLICY, START), None);
        assert_eq!(lockouts.count(1, POLICY, START), Some(POLICY.lockout));
        let later = START + Duration::from_secs(899);
        assert_eq!(lockouts.remaining(1, later), Some(Duration::from_secs(1)));
        assert_eq!(lockouts.remaining(1, START + POLICY.lockout), None);
        assert_eq!(lockouts.remaining(2, START), None);
        assert_eq!(Lockouts::decode(&lockouts.encode()), Some(lockouts));
    }

    #[test]
    fn keys_are_forgiven_one_by_one() {
        let mut lockouts = Lockouts::default();
        for number in 0..20 {
            let now = START + Duration::from_secs(20 * number);
            assert_eq!(lockouts.count(1, POLICY, now), None, "{number}");
        }
        // Two more at once are too many.
        let now = START + Duration::from_secs(20 * 19);
        assert_eq!(lockouts.count(1, POLICY, now), None);
        assert!(lockouts.count(1, POLICY, now).is_some());
    }

    #[test]
    fn the_size_is_bounded_and_a_locked_client_is_kept() {
        let mut lockouts = Lockouts::default();
        for _ in 0..3 {
            lockouts.count(1, POLICY, START);
        }
        for key in 2..3_000 {
            lockouts.count(key, POLICY, START);
        }
        assert_eq!(lockouts.0.len(), MAX_OF_NOTE);
        assert!(lockouts.remaining(1, START).is_some());
        lockouts.count(1, POLICY, START + Duration::from_secs(10_000));
        assert_eq!(lockouts.0.len(), 1, "what has ended is removed");
        for damaged in [&[][..], &[2], &[VERSION, 1]] {
            assert_eq!(Lockouts::decode(damaged), None);
        }
    }
}
