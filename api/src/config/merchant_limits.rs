//! The settings that bound what one merchant may take, where limits hold.

use engine::{
    compliance::{Limits, Thresholds},
    quota::Quota,
};

use super::Config;

impl Config {
    pub(super) fn quota(&self) -> Option<Quota> {
        (self.text("limits.profile") == "production").then(|| Quota {
            open_payments: self.integer("limits.open_payments"),
            stored_bytes: self.integer("limits.stored_bytes"),
        })
    }

    pub(super) fn compliance(&self) -> Option<actors::Compliance> {
        let thresholds = |lead: &str| {
            let cents = |window: &str| self.integer(&format!("limits.compliance_{lead}{window}_cents"));
            Thresholds { single_cents: cents("single"), daily_cents: cents("daily"), monthly_cents: cents("monthly") }
        };
        (self.text("limits.profile") == "production").then(|| actors::Compliance {
            limits: Limits { hard: thresholds(""), soft: thresholds("soft_") },
            contact: self.text("limits.compliance_contact").to_owned(),
        })
    }
}
