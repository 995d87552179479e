//! The stored form of a merchant's compliance status.

use engine::{
    compliance::{Clearance, ComplianceStatus, LimitBreach, Thresholds, Window},
    time::Timestamp,
};
use prost::Message;

use crate::record::{
    codes::Code,
    wire::{Damage, code, seal, time, unseal},
};

const VERSION: u8 = 1;

#[derive(Clone, PartialEq, Message)]
struct ComplianceRecord {
    #[prost(message, optional, tag = "1")]
    hold: Option<LimitBreachRecord>,
    #[prost(message, optional, tag = "2")]
    limits: Option<ThresholdsRecord>,
    /// The hours. `cents` holds the sum of each hour at the same index, US cents.
    #[prost(uint64, repeated, tag = "3")]
    hours: Vec<u64>,
    #[prost(uint64, repeated, tag = "4")]
    cents: Vec<u64>,
    #[prost(uint64, repeated, tag = "5")]
    near_single_ms: Vec<u64>,
    #[prost(message, repeated, tag = "6")]
    notices: Vec<LimitBreachRecord>,
    #[prost(message, repeated, tag = "7")]
    clearances: Vec<ClearanceRecord>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct LimitBreachRecord {
    #[prost(uint32, tag = "1")]
    window: u32,
    #[prost(uint64, tag = "2")]
    usd_cents: u64,
    #[prost(uint64, tag = "3")]
    limit_cents: u64,
    #[prost(uint64, tag = "4")]
    at_ms: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct ThresholdsRecord {
    #[prost(uint64, tag = "1")]
    single_cents: u64,
    #[prost(uint64, tag = "2")]
    daily_cents: u64,
    #[prost(uint64, tag = "3")]
    monthly_cents: u64,
}

#[derive(Clone, PartialEq, Message)]
struct ClearanceRecord {
    #[prost(string, tag = "1")]
    by: String,
    #[prost(string, tag = "2")]
    reason: String,
    #[prost(uint64, tag = "3")]
    at_ms: u64,
}

/// Returns the stored form of a status. It omits the merchant, which is the key.
pub(crate) fn compliance_to_bytes(status: &ComplianceStatus) -> Vec<u8> {
    let Thresholds { single_cents, daily_cents, monthly_cents } = status.limits.unwrap_or_default();
    let record = ComplianceRecord {
        hold: status.hold.map(LimitBreachRecord::from),
        limits: status.limits.map(|_| ThresholdsRecord { single_cents, daily_cents, monthly_cents }),
        hours: status.hours.keys().copied().collect(),
        cents: status.hours.values().copied().collect(),
        near_single_ms: status.near_single.iter().map(|at| at.millis()).collect(),
        notices: status.notices.iter().copied().map(LimitBreachRecord::from).collect(),
        clearances: status
            .clearances
            .iter()
            .map(|clearance| ClearanceRecord {
                by: clearance.by.clone(),
                reason: clearance.reason.clone(),
                at_ms: clearance.at.millis(),
            })
            .collect(),
    };
    seal(VERSION, &record)
}

/// Decodes a status.
pub(crate) fn compliance_from_bytes(bytes: &[u8]) -> Result<ComplianceStatus, Damage> {
    let record: ComplianceRecord = unseal(VERSION, bytes)?;
    if record.hours.len() != record.cents.len() {
        return Err(Damage::Value { field: "cents", value: format!("{} long", record.cents.len()) });
    }
    let thresholds = |ThresholdsRecord { single_cents, daily_cents, monthly_cents }| Thresholds {
        single_cents,
        daily_cents,
        monthly_cents,
    };
    Ok(ComplianceStatus {
        hold: record.hold.map(LimitBreach::try_from).transpose()?,
        limits: record.limits.map(thresholds),
        hours: record.hours.into_iter().zip(record.cents).collect(),
        near_single: record.near_single_ms.into_iter().map(time).collect(),
        notices: record.notices.into_iter().map(LimitBreach::try_from).collect::<Result<_, _>>()?,
        clearances: record
            .clearances
            .into_iter()
            .map(|clearance| Clearance { by: clearance.by, reason: clearance.reason, at: time(clearance.at_ms) })
            .collect(),
    })
}

impl From<LimitBreach> for LimitBreachRecord {
    fn from(breach: LimitBreach) -> Self {
        Self {
            window: breach.window.number(),
            usd_cents: breach.usd_cents,
            limit_cents: breach.limit_cents,
            at_ms: breach.at.millis(),
        }
    }
}

impl TryFrom<LimitBreachRecord> for LimitBreach {
    type Error = Damage;
    fn try_from(record: LimitBreachRecord) -> Result<Self, Damage> {
        let window: Window = code("window", record.window)?;
        let at: Timestamp = time(record.at_ms);
        Ok(Self { window, usd_cents: record.usd_cents, limit_cents: record.limit_cents, at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compliance_status_round_trips_and_has_these_bytes() {
        let at = Timestamp::from_millis(9_000);
        let breach = LimitBreach { window: Window::Monthly, usd_cents: 300, limit_cents: 200, at };
        let status = ComplianceStatus {
            hold: Some(breach),
            limits: Some(Thresholds { single_cents: 1, daily_cents: 0, monthly_cents: 3 }),
            hours: [(500_000, 7), (500_001, 8)].into(),
            near_single: vec![at],
            notices: vec![breach],
            clearances: vec![Clearance { by: "key_1".to_owned(), reason: "verified".to_owned(), at }],
        };
        let bytes = compliance_to_bytes(&status);
        assert_eq!(compliance_from_bytes(&bytes), Ok(status));
        assert_eq!(
            compliance_from_bytes(&compliance_to_bytes(&ComplianceStatus::default())),
            Ok(ComplianceStatus::default())
        );
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "010a0b080310ac0218c80120a84612040801180\
             31a06a0c21ea1c21e220207082a02a846320b080310ac0218c80120a8463a140a056b65795f31120876657269666965641\
             8a846"
        );
    }
}
