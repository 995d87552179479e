//! The stored forms of a merchant's month and of the fee tiers.

use engine::{
    billing::{Invoice, Month, Period, RawTier, Schedule, Tiers, Usage},
    ids::{MerchantId, PaymentId},
};
use prost::Message;

use crate::record::wire::{Bits, Damage, seal, time, unseal};

const VERSION: u8 = 1;

#[derive(Clone, PartialEq, Message)]
struct PeriodRecord {
    #[prost(uint64, tag = "1")]
    volume_cents: u64,
    #[prost(uint64, tag = "2")]
    payments: u64,
    #[prost(uint64, tag = "3")]
    split_volume_cents: u64,
    #[prost(sint64, tag = "4")]
    missing_fee_millicents: i64,
    #[prost(uint64, tag = "5")]
    created_at_ms: u64,
    #[prost(uint64, tag = "6")]
    updated_at_ms: u64,
    #[prost(message, optional, tag = "7")]
    invoice: Option<InvoiceRecord>,
}

#[derive(Clone, PartialEq, Message)]
struct InvoiceRecord {
    #[prost(uint64, tag = "1")]
    cents: u64,
    #[prost(message, optional, tag = "2")]
    session: Option<Bits>,
    #[prost(string, tag = "3")]
    slug: String,
    #[prost(uint64, tag = "4")]
    created_at_ms: u64,
    #[prost(uint64, tag = "5")]
    due_at_ms: u64,
    #[prost(uint64, optional, tag = "6")]
    paid_at_ms: Option<u64>,
    #[prost(uint64, tag = "7")]
    tiers_version: u64,
}

#[derive(Clone, PartialEq, Message)]
struct ScheduleRecord {
    #[prost(uint64, tag = "1")]
    version: u64,
    #[prost(uint64, tag = "2")]
    updated_at_ms: u64,
    #[prost(message, repeated, tag = "3")]
    tiers: Vec<TierRecord>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct TierRecord {
    #[prost(uint64, tag = "1")]
    min_cents: u64,
    #[prost(uint64, optional, tag = "2")]
    max_cents: Option<u64>,
    #[prost(uint32, tag = "3")]
    percent_ten_thousandths: u32,
}

/// Returns the stored form of a period. Merchant and month are the key and not repeated.
pub(crate) fn period_to_bytes(period: &Period) -> Vec<u8> {
    let invoice = period.invoice.as_ref().map(|invoice| InvoiceRecord {
        cents: invoice.cents,
        session: invoice.session.as_ref().map(|(id, _)| id.bits().into()),
        slug: invoice.session.as_ref().map(|(_, slug)| slug.clone()).unwrap_or_default(),
        created_at_ms: invoice.created_at.millis(),
        due_at_ms: invoice.due_at.millis(),
        paid_at_ms: invoice.paid_at.map(|at| at.millis()),
        tiers_version: invoice.tiers_version,
    });
    let Usage { volume_cents, payments, split_volume_cents, missing_fee_millicents } = period.usage;
    let record = PeriodRecord {
        volume_cents,
        payments,
        split_volume_cents,
        missing_fee_millicents,
        created_at_ms: period.created_at.millis(),
        updated_at_ms: period.updated_at.millis(),
        invoice,
    };
    seal(VERSION, &record)
}

/// Decodes a period.
pub(crate) fn period_from_bytes(merchant: MerchantId, month: Month, bytes: &[u8]) -> Result<Period, Damage> {
    let record: PeriodRecord = unseal(VERSION, bytes)?;
    let invoice = record.invoice.map(|invoice| Invoice {
        cents: invoice.cents,
        session: invoice.session.map(|bits| (PaymentId::from_bits(bits.into()), invoice.slug)),
        created_at: time(invoice.created_at_ms),
        due_at: time(invoice.due_at_ms),
        paid_at: invoice.paid_at_ms.map(time),
        tiers_version: invoice.tiers_version,
    });
    let usage = Usage {
        volume_cents: record.volume_cents,
        payments: record.payments,
        split_volume_cents: record.split_volume_cents,
        missing_fee_millicents: record.missing_fee_millicents,
    };
    let (created_at, updated_at) = (time(record.created_at_ms), time(record.updated_at_ms));
    Ok(Period { merchant, month, usage, invoice, created_at, updated_at })
}

/// Returns the stored form of the fee tiers.
pub(crate) fn schedule_to_bytes(schedule: &Schedule) -> Vec<u8> {
    let tiers = schedule.tiers.iter().map(|tier| TierRecord {
        min_cents: tier.min_cents,
        max_cents: tier.max_cents,
        percent_ten_thousandths: tier.percent.ten_thousandths(),
    });
    let (version, updated_at_ms) = (schedule.version, schedule.updated_at.millis());
    seal(VERSION, &ScheduleRecord { version, updated_at_ms, tiers: tiers.collect() })
}

/// Decodes the fee tiers.
pub(crate) fn schedule_from_bytes(bytes: &[u8]) -> Result<Schedule, Damage> {
    let record: ScheduleRecord = unseal(VERSION, bytes)?;
    let raw = record.tiers.iter().map(|tier| RawTier {
        min_cents: tier.min_cents,
        max_cents: tier.max_cents,
        percent_ten_thousandths: tier.percent_ten_thousandths,
    });
    let tiers = Tiers::check(&raw.collect::<Vec<_>>());
    let why = |violations: Vec<engine::fields::Violation>| {
        let value = violations.first().map(ToString::to_string).unwrap_or_default();
        Damage::Value { field: "tiers", value }
    };
    Ok(Schedule { version: record.version, tiers: tiers.map_err(why)?, updated_at: time(record.updated_at_ms) })
}

#[cfg(test)]
mod tests {
    use engine::time::Timestamp;

    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[test]
    fn a_period_has_these_bytes() {
        let (merchant, month) = (MerchantId::from_bits(1), Month::new(2026, 11).unwrap());
        let bare = Period::begin(merchant, month, at(9_000));
        assert_eq!(hex(&period_to_bytes(&bare)), "0128a84630a846");
        let invoice = Invoice {
            cents: 7,
            session: Some((PaymentId::from_bits((2 << 64) | 3), "fees".to_owned())),
            created_at: at(1),
            due_at: at(2),
            paid_at: Some(at(3)),
            tiers_version: 4,
        };
        let usage = Usage { volume_cents: 300, payments: 2, split_volume_cents: 200, missing_fee_millicents: -1 };
        let full = Period { usage, invoice: Some(invoice), ..bare.clone() };
        let bytes = period_to_bytes(&full);
        assert_eq!(
            hex(&bytes),
            "0108ac02100218c801200128a84630a8463a2408071212090200000000000000110300000000000000\
             1a04666565732001280230033804"
        );
        assert_eq!(period_from_bytes(merchant, month, &bytes), Ok(full));
        assert_eq!(period_from_bytes(merchant, month, &period_to_bytes(&bare)), Ok(bare));
    }

    #[test]
    fn fee_tiers_have_these_bytes() {
        let raw = |min_cents, max_cents| RawTier { min_cents, max_cents, percent_ten_thousandths: 15_000 };
        let tiers = Tiers::check(&[raw(0, Some(99_999)), raw(100_000, None)]).unwrap();
        let schedule = Schedule { version: 3, tiers, updated_at: at(9_000) };
        let bytes = schedule_to_bytes(&schedule);
        assert_eq!(hex(&bytes), "01080310a8461a07109f8d061898751a0708a08d06189875");
        assert_eq!(schedule_from_bytes(&bytes), Ok(schedule));
        let gap = hex(&bytes).replace("08a08d06", "08a18d06");
        let gap: Vec<u8> =
            (0..gap.len()).step_by(2).map(|at| u8::from_str_radix(&gap[at..at + 2], 16).unwrap()).collect();
        assert!(matches!(schedule_from_bytes(&gap), Err(Damage::Value { field: "tiers", .. })));
    }
}
