//! Rows of compliance, billing, idempotency keys, the audit log and single values.

use engine::{
    audit::Entry,
    billing::{Month, Period},
    compliance::ComplianceStatus,
    idempotency::IdempotencyRecord,
    ids::MerchantId,
    reconciliation::Day,
    time::Timestamp,
};
use tokio_postgres::Row;

use crate::{
    postgres::{
        fault::Fault,
        table::{Collision, Column, Table},
        values::{Cell, Id, Kind, Moment, bytes_of, column, unsigned},
        whole::{Whole, named},
    },
    record,
};

/// The compliance status of a merchant.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ComplianceRow {
    pub(crate) version: u64,
    pub(crate) status: ComplianceStatus,
}

impl Table for ComplianceRow {
    type Key = u128;

    const NAME: &'static str = "compliance_statuses";
    const KEY: &'static [Column] = &[("merchant_id", Kind::Uuid)];
    const VALUES: &'static [Column] =
        &[("version", Kind::Integer), ("is_on_hold", Kind::Flag), ("record", Kind::Bytes)];
    const READ: &'static [&'static str] = &["version", "record"];
    const GUARD: Option<&'static str> = Some("version");

    fn key_cells(key: &u128) -> Vec<Cell> {
        vec![(*key).into()]
    }

    fn cells(&self) -> Vec<Cell> {
        vec![self.version.into(), self.status.hold.is_some().into(), record::compliance_to_bytes(&self.status).into()]
    }

    fn guard(&self) -> u64 {
        self.version
    }

    fn read(row: &Row) -> Result<(u128, Self), Fault> {
        let Id(merchant) = column(row, 0)?;
        Ok((merchant, Self { version: unsigned(column(row, 1)?), status: compliance(merchant, column(row, 2)?)? }))
    }
}

/// Reads the record of a compliance status.
pub(crate) fn compliance(merchant: u128, bytes: &[u8]) -> Result<ComplianceStatus, Fault> {
    record::compliance_from_bytes(bytes).map_err(Fault::damaged("compliance_statuses", MerchantId::from_bits(merchant)))
}

/// A merchant's month.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PeriodRow {
    pub(crate) version: u64,
    pub(crate) period: Period,
}

impl Table for PeriodRow {
    /// Merchant and the number of the month.
    type Key = (u128, u32);

    const NAME: &'static str = "billing_periods";
    const KEY: &'static [Column] = &[("merchant_id", Kind::Uuid), ("month", Kind::Whole)];
    const VALUES: &'static [Column] = &[
        ("version", Kind::Integer),
        ("is_unsettled", Kind::Flag),
        ("volume_cents", Kind::Integer),
        ("payments", Kind::Integer),
        ("record", Kind::Bytes),
    ];
    const READ: &'static [&'static str] = &["version", "record"];
    const GUARD: Option<&'static str> = Some("version");

    fn key_cells((merchant, month): &Self::Key) -> Vec<Cell> {
        vec![(*merchant).into(), Cell::Whole(i32::try_from(*month).unwrap_or(i32::MAX))]
    }

    fn cells(&self) -> Vec<Cell> {
        let usage = &self.period.usage;
        vec![
            self.version.into(),
            self.period.is_unsettled().into(),
            usage.volume_cents.into(),
            usage.payments.into(),
            record::period_to_bytes(&self.period).into(),
        ]
    }

    fn guard(&self) -> u64 {
        self.version
    }

    fn read(row: &Row) -> Result<(Self::Key, Self), Fault> {
        let (Id(merchant), number) = (column(row, 0)?, column::<i32>(row, 1)?);
        let period = period(merchant, number, column(row, 3)?)?;
        Ok(((merchant, period.month.number()), Self { version: unsigned(column(row, 2)?), period }))
    }
}

/// Reads the record of a merchant's month.
pub(crate) fn period(merchant: u128, number: i32, bytes: &[u8]) -> Result<Period, Fault> {
    let merchant = MerchantId::from_bits(merchant);
    let month = u32::try_from(number).ok().and_then(Month::from_number);
    let month =
        month.ok_or_else(|| Fault::inconsistent("billing_periods", merchant, format_args!("{number} is no month")))?;
    let damaged = Fault::damaged("billing_periods", format!("{month} of {merchant}"));
    record::period_from_bytes(merchant, month, bytes).map_err(damaged)
}

/// The month that a payment is the invoice of: month and merchant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct InvoiceRow(pub(crate) u32, pub(crate) u128);

impl Table for InvoiceRow {
    type Key = u128;

    const NAME: &'static str = "invoice_payments";
    const KEY: &'static [Column] = &[("payment_id", Kind::Uuid)];
    const VALUES: &'static [Column] = &[("month", Kind::Whole), ("merchant_id", Kind::Uuid)];
    const READ: &'static [&'static str] = &["month", "merchant_id"];
    const COLLISION: Collision = Collision::Replace;

    fn key_cells(key: &u128) -> Vec<Cell> {
        vec![(*key).into()]
    }

    fn cells(&self) -> Vec<Cell> {
        vec![Cell::Whole(i32::try_from(self.0).unwrap_or(i32::MAX)), self.1.into()]
    }

    fn read(row: &Row) -> Result<(u128, Self), Fault> {
        let (Id(payment), month, Id(merchant)) = (column(row, 0)?, column::<i32>(row, 1)?, column(row, 2)?);
        Ok((payment, Self(u32::try_from(month).unwrap_or(0), merchant)))
    }
}

/// An idempotency key. The time that it was made guards it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct IdempotencyRow(pub(crate) IdempotencyRecord);

impl Table for IdempotencyRow {
    /// Merchant and digest.
    type Key = (u128, [u8; 32]);

    const NAME: &'static str = "idempotency";
    const KEY: &'static [Column] = &[("merchant_id", Kind::Uuid), ("key", Kind::Bytes)];
    const VALUES: &'static [Column] = &[("made_ms", Kind::Integer), ("record", Kind::Bytes)];
    const READ: &'static [&'static str] = &["record"];
    const GUARD: Option<&'static str> = Some("made_ms");

    fn key_cells((merchant, key): &Self::Key) -> Vec<Cell> {
        vec![(*merchant).into(), key.as_slice().into()]
    }

    fn cells(&self) -> Vec<Cell> {
        vec![self.0.at.millis().into(), record::idempotency_to_bytes(&self.0).into()]
    }

    fn guard(&self) -> u64 {
        self.0.at.millis()
    }

    fn read(row: &Row) -> Result<(Self::Key, Self), Fault> {
        let (Id(merchant), key) = (column(row, 0)?, bytes_of(row, 1)?);
        Ok(((merchant, key), Self(idempotency_record(merchant, key, column(row, 2)?)?)))
    }
}

/// Reads the record of an idempotency key.
pub(crate) fn idempotency_record(merchant: u128, key: [u8; 32], bytes: &[u8]) -> Result<IdempotencyRecord, Fault> {
    let merchant = MerchantId::from_bits(merchant);
    record::idempotency_from_bytes(merchant, key, bytes).map_err(Fault::damaged("idempotency", merchant))
}

/// An entry of the audit log, which commits only append.
#[derive(Debug, Clone)]
pub(crate) struct AuditRow(pub(crate) Entry);

impl Table for AuditRow {
    type Key = u64;

    const NAME: &'static str = "audit_log";
    const KEY: &'static [Column] = &[("seq", Kind::Integer)];
    const VALUES: &'static [Column] = &[
        ("merchant_id", Kind::Uuid),
        ("actor_id", Kind::Uuid),
        ("action", Kind::Text),
        ("happened_at", Kind::Time),
        ("record", Kind::Bytes),
    ];
    const READ: &'static [&'static str] = &["record"];

    fn key_cells(key: &u64) -> Vec<Cell> {
        vec![(*key).into()]
    }

    fn cells(&self) -> Vec<Cell> {
        let merchant = self.0.merchant.bits();
        let actor = self.0.actor.merchant.map(MerchantId::bits).filter(|actor| *actor != merchant);
        let (action, at) = (Cell::from(self.0.action.as_str()), self.0.at);
        vec![merchant.into(), actor.into(), action, at.into(), record::audit_to_bytes(self.0.clone()).into()]
    }

    fn read(row: &Row) -> Result<(u64, Self), Fault> {
        let seq = unsigned(column(row, 0)?);
        let entry = record::audit_from_bytes(seq, column(row, 1)?).map_err(Fault::damaged("audit_log", seq))?;
        Ok((seq, Self(entry)))
    }
}

/// A single value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SingleRow {
    pub(crate) version: u64,
    pub(crate) value: Vec<u8>,
}

impl Table for SingleRow {
    type Key = String;

    const NAME: &'static str = "single_values";
    const KEY: &'static [Column] = &[("name", Kind::Text)];
    const VALUES: &'static [Column] = &[("version", Kind::Integer), ("value", Kind::Bytes)];
    const READ: &'static [&'static str] = &["version", "value"];
    const GUARD: Option<&'static str> = Some("version");

    fn key_cells(key: &String) -> Vec<Cell> {
        vec![key.as_str().into()]
    }

    fn cells(&self) -> Vec<Cell> {
        vec![self.version.into(), self.value.as_slice().into()]
    }

    fn guard(&self) -> u64 {
        self.version
    }

    fn read(row: &Row) -> Result<(String, Self), Fault> {
        Ok((column(row, 0)?, Self { version: unsigned(column(row, 1)?), value: column(row, 2)? }))
    }
}

/// The reconciliation of a day, by the time at which the day began.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReconciledRow {
    pub(crate) version: u64,
    /// When it was made; none if the record is damaged.
    pub(crate) checked_at: Option<Timestamp>,
    /// The record; empty for a row that was loaded.
    record: Vec<u8>,
}

impl ReconciledRow {
    /// Returns the row of a day.
    pub(crate) fn of(version: u64, day: &Day) -> Self {
        Self { version, checked_at: Some(day.checked_at), record: record::day_to_bytes(day.clone()) }
    }

    /// Returns the record; it is empty for a row that was loaded.
    pub(crate) fn record(&self) -> &[u8] {
        &self.record
    }
}

impl Whole for ReconciledRow {
    fn whole(row: &Row) -> Result<(Timestamp, Self), Fault> {
        let (from, reconciled) = Self::read(row)?;
        let record: Vec<u8> = named(row, "record")?;
        record::day_from_bytes(&record).map_err(Fault::damaged("reconciled_days", from))?;
        Ok((from, Self { record, ..reconciled }))
    }
}

impl Table for ReconciledRow {
    type Key = Timestamp;

    const NAME: &'static str = "reconciled_days";
    const KEY: &'static [Column] = &[("begins_at", Kind::Time)];
    const VALUES: &'static [Column] = &[("version", Kind::Integer), ("record", Kind::Bytes)];
    const READ: &'static [&'static str] = &["version", "record"];
    const GUARD: Option<&'static str> = Some("version");

    fn key_cells(key: &Timestamp) -> Vec<Cell> {
        vec![(*key).into()]
    }

    fn cells(&self) -> Vec<Cell> {
        vec![self.version.into(), self.record.as_slice().into()]
    }

    fn guard(&self) -> u64 {
        self.version
    }

    fn read(row: &Row) -> Result<(Timestamp, Self), Fault> {
        let Moment(from) = column(row, 0)?;
        let checked_at = record::day_from_bytes(column(row, 2)?).ok().map(|day| day.checked_at);
        Ok((from, Self { version: unsigned(column(row, 1)?), checked_at, record: Vec::new() }))
    }
}
