//! A cache of API keys that the engine accepted: their requests count by merchant, and no lockout of an IP address applies.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use sha2::{Digest, Sha256};
use tokio::time::Instant;

/// Maximum number of keys, about 150 bytes each.
const MAX_KEYS: usize = 100_000;
/// How long after its last use a key is exempt from lockouts.
const LATELY: Duration = Duration::from_secs(24 * 3_600);
/// How long after its last use a key is not verified again before a body is read.
const JUST_NOW: Duration = Duration::from_secs(10);

/// The accepted keys, by digest. The engine still verifies the key of every call.
#[derive(Default)]
pub(crate) struct AcceptedKeys {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    keys: BTreeMap<u128, Accepted>,
    order: BTreeSet<(Instant, u128)>,
}

/// An accepted key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Accepted {
    /// Digest of the merchant's id.
    pub(crate) merchant: u128,
    at: Instant,
}

impl Accepted {
    /// Returns whether the engine accepted it within the last 10 seconds.
    pub(crate) fn is_fresh(&self) -> bool {
        self.at.elapsed() < JUST_NOW
    }
}

impl AcceptedKeys {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // If a panic left the two maps different, a key is evicted early at worst.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that the engine accepted a key of a merchant.
    pub(crate) fn insert(&self, key: &[u8], merchant_id: &str) -> Accepted {
        let (key, now) = (digest(key), Instant::now());
        let accepted = Accepted { merchant: digest(merchant_id.as_bytes()), at: now };
        let mut inner = self.lock();
        inner.remove(key);
        inner.keys.insert(key, accepted);
        inner.order.insert((now, key));
        while inner.order.len() > MAX_KEYS {
            let Some((_, oldest)) = inner.order.first().copied() else { break };
            inner.remove(oldest);
        }
        accepted
    }

    /// Returns the entry of a key that was accepted within a day.
    pub(crate) fn get(&self, key: &[u8]) -> Option<Accepted> {
        let key = digest(key);
        let mut inner = self.lock();
        let found = inner.keys.get(&key).copied()?;
        if found.at.elapsed() < LATELY {
            return Some(found);
        }
        inner.remove(key);
        None
    }

    /// Removes a key that the engine refused.
    pub(crate) fn remove(&self, key: &[u8]) {
        self.lock().remove(digest(key));
    }
}

impl Inner {
    fn remove(&mut self, key: u128) {
        if let Some(before) = self.keys.remove(&key) {
            self.order.remove(&(before.at, key));
        }
    }
}

/// Omits keys and their digests.
impl fmt::Debug for AcceptedKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcceptedKeys").field("keys", &self.lock().keys.len()).finish_non_exhaustive()
    }
}

/// Returns the first 128 bits of SHA-256. Collisions are infeasible to find.
pub(crate) fn digest(bytes: &[u8]) -> u128 {
    let whole: [u8; 32] = Sha256::digest(bytes).into();
    whole.iter().take(16).fold(0, |bits, byte| (bits << 8) | u128::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_key_is_cached_for_a_day_after_its_last_use() {
        let keys = AcceptedKeys::default();
        assert!(keys.get(b"a").is_none());
        keys.insert(b"a", "mer_1");
        assert!(keys.get(b"a").expect("known").is_fresh());
        tokio::time::advance(JUST_NOW).await;
        assert!(!keys.get(b"a").expect("known").is_fresh());
        tokio::time::advance(LATELY - JUST_NOW - Duration::from_secs(1)).await;
        let again = keys.insert(b"a", "mer_1");
        assert!(again.is_fresh() && again.merchant == digest(b"mer_1"));
        tokio::time::advance(LATELY).await;
        assert!(keys.get(b"a").is_none());
        keys.insert(b"a", "mer_1");
        keys.remove(b"a");
        assert!(keys.get(b"a").is_none());
        assert_eq!(format!("{keys:?}"), "AcceptedKeys { keys: 0, .. }");
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_keys_is_bounded_and_the_oldest_is_evicted() {
        let keys = AcceptedKeys::default();
        keys.insert(b"first", "mer_1");
        tokio::time::advance(Duration::from_millis(1)).await;
        for number in 0..MAX_KEYS {
            keys.insert(&number.to_be_bytes(), "mer_2");
        }
        let inner = keys.lock();
        assert_eq!((inner.keys.len(), inner.order.len()), (MAX_KEYS, MAX_KEYS));
        drop(inner);
        assert!(keys.get(b"first").is_none());
    }
}
