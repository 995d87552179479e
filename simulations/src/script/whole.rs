//! What is asked of a whole script: what a scenario expects, how many sessions it has, when it is over.

use super::{Script, Step, Trouble};

/// What must be so at the end of a scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expect {
    /// The session.
    pub session: u32,
    /// One of these states.
    pub states: Vec<String>,
    /// What is credited, in 1/1000.
    pub credited_units: Option<u64>,
    /// What it is worth, in US cents.
    pub usd_cents: Option<u64>,
    /// Exactly these exceptions.
    pub exceptions: Option<Vec<String>>,
    /// How many different events the merchant hears of it.
    pub webhooks: Option<usize>,
}

impl Script {
    /// Returns how many sessions it speaks of.
    #[must_use]
    pub fn sessions(&self) -> u32 {
        self.steps.iter().filter_map(|step| step.action.opens()).map(|session| session + 1).max().unwrap_or(0)
    }

    /// Returns what tells two scripts apart in a report: the same for the same story, seed, world and faults.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        // FNV-1a of the file it is written as.
        let text = crate::scenario::write(self);
        text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    }

    /// Returns when the last step is over.
    #[must_use]
    pub fn last_step_ms(&self) -> u64 {
        self.steps.iter().map(Step::ends_ms).max().unwrap_or(0)
    }
}

impl Trouble {
    /// Returns how long it lasts, milliseconds.
    #[must_use]
    pub const fn lasts_ms(&self) -> u64 {
        match self {
            Self::DiskFull { for_ms }
            | Self::NodeDown { for_ms, .. }
            | Self::NodeLag { for_ms, .. }
            | Self::NodeSlow { for_ms, .. }
            | Self::NodeFreeze { for_ms, .. }
            | Self::NodeLie { for_ms, .. }
            | Self::NodeBranch { for_ms, .. }
            | Self::NodeKeeps { for_ms, .. }
            | Self::NodeForeign { for_ms, .. }
            | Self::NodeLacks { for_ms, .. }
            | Self::NodeLimits { for_ms, .. }
            | Self::NodeWithoutPrice { for_ms, .. }
            | Self::HoldFinality { for_ms }
            | Self::HoldTransactions { for_ms }
            | Self::HoldBlocks { for_ms }
            | Self::HbdOffPeg { for_ms, .. }
            | Self::Freeze { for_ms }
            | Self::DiskSlow { for_ms, .. }
            | Self::Outage { for_ms, .. } => *for_ms,
            _ => 0,
        }
    }
}
