//! The stored form of a day's reconciliation.

use engine::{
    ids::MerchantId,
    ledger::TxId,
    money::Money,
    reconciliation::{Day, Finding, Movement},
};
use prost::Message;

use crate::record::{
    codes::Code,
    wire::{Bits, Damage, account, array, code, seal, time, unseal},
};

const VERSION: u8 = 1;

#[derive(Clone, PartialEq, Message)]
struct DayRecord {
    #[prost(uint64, tag = "1")]
    from_ms: u64,
    #[prost(uint64, tag = "2")]
    to_ms: u64,
    #[prost(uint64, tag = "3")]
    checked_at_ms: u64,
    #[prost(uint32, tag = "4")]
    accounts: u32,
    #[prost(uint32, tag = "5")]
    unchecked: u32,
    #[prost(string, optional, tag = "6")]
    obstacle: Option<String>,
    #[prost(uint64, tag = "7")]
    operations: u64,
    #[prost(uint32, tag = "8")]
    mismatches: u32,
    #[prost(message, repeated, tag = "9")]
    findings: Vec<FindingRecord>,
}

#[derive(Clone, PartialEq, Message)]
struct FindingRecord {
    #[prost(string, tag = "1")]
    account: String,
    #[prost(message, repeated, tag = "2")]
    merchants: Vec<Bits>,
    #[prost(message, repeated, tag = "3")]
    missing: Vec<MovementRecord>,
    #[prost(uint64, tag = "4")]
    missing_count: u64,
    #[prost(message, repeated, tag = "5")]
    extra: Vec<MovementRecord>,
    #[prost(uint64, tag = "6")]
    extra_count: u64,
}

#[derive(Clone, PartialEq, Eq, Message)]
struct MovementRecord {
    #[prost(bytes = "vec", tag = "1")]
    tx_id: Vec<u8>,
    #[prost(uint64, tag = "2")]
    units: u64,
    #[prost(uint32, tag = "3")]
    currency: u32,
}

/// Returns the stored form of a day.
pub(crate) fn day_to_bytes(day: Day) -> Vec<u8> {
    let record = DayRecord {
        from_ms: day.from.millis(),
        to_ms: day.to.millis(),
        checked_at_ms: day.checked_at.millis(),
        accounts: day.accounts,
        unchecked: day.unchecked,
        obstacle: day.obstacle,
        operations: day.operations,
        mismatches: day.mismatches,
        findings: day.findings.into_iter().map(FindingRecord::from).collect(),
    };
    seal(VERSION, &record)
}

/// Decodes a day.
pub(crate) fn day_from_bytes(bytes: &[u8]) -> Result<Day, Damage> {
    let record: DayRecord = unseal(VERSION, bytes)?;
    Ok(Day {
        from: time(record.from_ms),
        to: time(record.to_ms),
        checked_at: time(record.checked_at_ms),
        accounts: record.accounts,
        unchecked: record.unchecked,
        obstacle: record.obstacle,
        operations: record.operations,
        mismatches: record.mismatches,
        findings: record.findings.into_iter().map(Finding::try_from).collect::<Result<_, _>>()?,
    })
}

impl From<Finding> for FindingRecord {
    fn from(finding: Finding) -> Self {
        Self {
            account: finding.account.to_string(),
            merchants: finding.merchants.into_iter().map(|id| id.bits().into()).collect(),
            missing: finding.missing.into_iter().map(MovementRecord::from).collect(),
            missing_count: finding.missing_count,
            extra: finding.extra.into_iter().map(MovementRecord::from).collect(),
            extra_count: finding.extra_count,
        }
    }
}

impl TryFrom<FindingRecord> for Finding {
    type Error = Damage;
    fn try_from(record: FindingRecord) -> Result<Self, Damage> {
        let movements =
            |list: Vec<MovementRecord>| list.into_iter().map(Movement::try_from).collect::<Result<Vec<_>, _>>();
        Ok(Self {
            account: account("account", &record.account)?,
            merchants: record.merchants.into_iter().map(|bits| MerchantId::from_bits(bits.into())).collect(),
            missing: movements(record.missing)?,
            missing_count: record.missing_count,
            extra: movements(record.extra)?,
            extra_count: record.extra_count,
        })
    }
}

impl From<Movement> for MovementRecord {
    fn from(Movement { tx_id, money }: Movement) -> Self {
        Self { tx_id: tx_id.0.to_vec(), units: money.units, currency: money.currency.number() }
    }
}

impl TryFrom<MovementRecord> for Movement {
    type Error = Damage;
    fn try_from(record: MovementRecord) -> Result<Self, Damage> {
        let money = Money::new(record.units, code("currency", record.currency)?);
        Ok(Self { tx_id: TxId(array("tx_id", &record.tx_id)?), money })
    }
}

#[cfg(test)]
mod tests {
    use engine::{account::AccountName, money::Currency, reconciliation::Difference, time::Timestamp};

    use super::*;

    #[test]
    fn a_day_round_trips_and_has_these_bytes() {
        let mut day = Day {
            from: Timestamp::from_millis(1_000),
            to: Timestamp::from_millis(2_000),
            checked_at: Timestamp::from_millis(3_000),
            accounts: 4,
            unchecked: 5,
            obstacle: Some("no".to_owned()),
            operations: 6,
            ..Day::default()
        };
        let movement = |number, units| Movement { tx_id: TxId([number; 20]), money: Money::new(units, Currency::Hbd) };
        let difference = Difference { missing: vec![movement(1, 7)], extra: vec![movement(2, 8)] };
        day.record_mismatch(AccountName::parse("shop").unwrap(), vec![MerchantId::from_bits(9)], difference);
        let bytes = day_to_bytes(day.clone());
        assert_eq!(day_from_bytes(&bytes), Ok(day));
        assert_eq!(day_from_bytes(&day_to_bytes(Day::default())), Ok(Day::default()));
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "0108e80710d00f18b8172004280532026e6f380640014a4d0a0473686f7012091109000000000000001a1a0a140101010101\
             0101010101010101010101010101011007180220012a1a0a140202020202020202020202020202020202020202100818023001"
        );
    }
}
