//! What concerns a script as a whole: expected final states, number of sessions, duration, fingerprint.

use engine::money::Money;

use super::{Script, Step};

/// The expected final state of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expect {
    /// The session.
    pub session: u32,
    /// The allowed states; any if empty.
    pub states: Vec<String>,
    /// The credited amount.
    pub credited: Option<Money>,
    /// Its value, in US cents.
    pub usd_cents: Option<u64>,
    /// Exactly these exceptions.
    pub exceptions: Option<Vec<String>>,
    /// The number of different events that the merchant receives about it.
    pub webhooks: Option<usize>,
}

impl Script {
    /// Returns the number of sessions.
    #[must_use]
    pub fn sessions(&self) -> u32 {
        self.steps.iter().filter_map(|step| step.action.opens()).map(|session| session + 1).max().unwrap_or(0)
    }

    /// Returns a hash that is equal for scripts with the same scenario file.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        // FNV-1a of the file it is written as.
        let text = crate::scenario::write(self);
        text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }

    /// Returns when the last step ends, virtual milliseconds.
    #[must_use]
    pub fn last_step_ms(&self) -> u64 {
        self.steps.iter().map(Step::ends_ms).max().unwrap_or(0)
    }
}
