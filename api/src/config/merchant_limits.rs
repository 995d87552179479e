//! Settings that limit one merchant. They apply if `limits.profile` is `production`.

use engine::{
    compliance::{Limits, Thresholds},
    quota::Quota,
};

use super::Config;

impl Config {
    /// Returns the storage quota of a merchant; `None` if limits are off.
    pub(super) fn quota(&self) -> Option<Quota> {
        (self.text("limits.profile") == "production").then(|| Quota {
            open_payments: self.integer("limits.open_payments"),
            stored_bytes: self.integer("limits.stored_bytes"),
        })
    }

    /// Returns the compliance limits; `None` if limits are off.
    pub(super) fn compliance(&self) -> Option<actors::Compliance> {
        let thresholds = |prefix: &str| {
            let cents = |window: &str| self.integer(&format!("limits.compliance_{prefix}{window}_cents"));
            Thresholds { single_cents: cents("single"), daily_cents: cents("daily"), monthly_cents: cents("monthly") }
        };
        (self.text("limits.profile") == "production").then(|| actors::Compliance {
            limits: Limits { hard: thresholds(""), soft: thresholds("soft_") },
            contact: self.text("limits.compliance_contact").to_owned(),
        })
    }
}
