//! The operator's policies: retention, limits of merchants, and billing.

use std::time::Duration;

use actors::{BillingSettings, Compliance, Settings};
use engine::{
    compliance::{Limits, Thresholds},
    quota::Quota,
};

use crate::random::Random;

/// The operator's policies. A limit or a retention of 0 means that there is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policies {
    /// How long events are kept, seconds.
    pub event_retention_seconds: u64,
    /// How long the metadata of a payment is kept after its last change, seconds.
    pub metadata_retention_seconds: u64,
    /// How long the note of a decision is kept, seconds.
    pub note_retention_seconds: u64,
    /// Maximum of one payment before its merchant is put on hold, US cents.
    pub single_limit_cents: u64,
    /// The same for 24 hours.
    pub daily_limit_cents: u64,
    /// The same for 30 days.
    pub monthly_limit_cents: u64,
    /// Maximum open payments of a merchant.
    pub open_payments: u64,
    /// Maximum idempotency keys of a merchant.
    pub idempotency_keys: u64,
    /// Whether merchants are billed: merchant 0 is paid for their invoices.
    pub bills: bool,
    /// Whether merchants may roll their API keys.
    pub key_roll: bool,
    /// The minimum delay of the change of a proven account, seconds.
    pub account_change_wait_seconds: u64,
    /// From this value on an agent's payment completes only on an irreversible block, US cents.
    pub irreversible_from_cents: u64,
    /// Whether payments for other servers are accepted only for accounts of merchants.
    pub only_registered: bool,
    /// Whether payments in HBD are refused while it is off its peg.
    pub refuses_off_peg: bool,
}

impl Default for Policies {
    fn default() -> Self {
        Self {
            event_retention_seconds: 60 * 86_400,
            metadata_retention_seconds: 0,
            note_retention_seconds: 0,
            single_limit_cents: 0,
            daily_limit_cents: 0,
            monthly_limit_cents: 0,
            open_payments: 0,
            idempotency_keys: 1_000_000,
            bills: false,
            key_roll: false,
            account_change_wait_seconds: 86_400,
            irreversible_from_cents: 100_000,
            only_registered: false,
            refuses_off_peg: false,
        }
    }
}

impl Policies {
    /// Draws policies for a simulation of hours, or of days.
    #[must_use]
    pub fn swarm(random: &mut Random, lasts_days: bool) -> Self {
        let unit = if lasts_days { 86_400 } else { 1_200 };
        let mut policies = Self::default();
        if random.chance(350_000) {
            policies.event_retention_seconds = unit * random.between(1, 4);
        }
        if random.chance(350_000) {
            policies.metadata_retention_seconds = unit * random.between(1, 3) / 2;
            policies.note_retention_seconds = unit * random.between(1, 3) / 2;
        }
        if random.chance(150_000) {
            policies.single_limit_cents = *random.pick(&[0, 5_000, 150_000]);
            policies.daily_limit_cents = *random.pick(&[0, 20_000, 400_000]);
            policies.monthly_limit_cents = *random.pick(&[0, 30_000, 600_000]);
        }
        if random.chance(150_000) {
            policies.open_payments = random.between(2, 8);
        }
        if random.chance(80_000) {
            policies.idempotency_keys = random.between(4, 20);
        }
        policies.bills = random.chance(500_000);
        policies.key_roll = random.chance(700_000);
        policies.account_change_wait_seconds = *random.pick(&[300, 300, 1_800, 86_400]);
        policies.irreversible_from_cents = *random.pick(&[100_000, 100_000, 1_000]);
        policies.only_registered = random.chance(100_000);
        policies.refuses_off_peg = random.chance(200_000);
        policies
    }

    /// Returns the limits of a merchant's volume, if any.
    #[must_use]
    pub fn limits(&self) -> Option<Limits> {
        let hard = Thresholds {
            single_cents: self.single_limit_cents,
            daily_cents: self.daily_limit_cents,
            monthly_cents: self.monthly_limit_cents,
        };
        let soft = Thresholds {
            single_cents: hard.single_cents / 2,
            daily_cents: hard.daily_cents / 2,
            monthly_cents: hard.monthly_cents / 2,
        };
        (hard != Thresholds::default()).then_some(Limits { hard, soft })
    }

    /// Adds the policies to the engine's settings.
    pub(super) fn apply(&self, settings: &mut Settings) {
        let some = |seconds: u64| (seconds > 0).then(|| Duration::from_secs(seconds));
        settings.event_retention = Duration::from_secs(self.event_retention_seconds);
        settings.metadata_retention = some(self.metadata_retention_seconds);
        settings.note_retention = some(self.note_retention_seconds);
        settings.compliance =
            self.limits().map(|limits| Compliance { limits, contact: "compliance@hivetill.example".to_owned() });
        settings.quota =
            (self.open_payments > 0).then_some(Quota { open_payments: self.open_payments, stored_bytes: 0 });
        settings.idempotency_keys = self.idempotency_keys;
        settings.billing = BillingSettings::default();
        settings.key_roll = self.key_roll;
        settings.account_change_wait = Duration::from_secs(self.account_change_wait_seconds);
        settings.x402.irreversible_from_cents = self.irreversible_from_cents;
        settings.x402.only_registered = self.only_registered;
        settings.hbd_peg.refuses = self.refuses_off_peg;
    }
}
