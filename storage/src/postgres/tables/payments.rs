//! Rows of payments, their transfers and the words by which they are found.

use engine::{
    account::AccountName,
    ids::{MerchantId, PaymentId},
    ledger::TxId,
    payment::{Credit, Finality, Payment},
    time::Timestamp,
};
use tokio_postgres::Row;

use crate::{
    postgres::{
        fault::Fault,
        table::{Collision, Column, Table},
        values::{Cell, Id, Kind, bytes_of, column, unsigned},
        whole::{Whole, named},
    },
    record::{self, indexed::PaymentFacts, summary::facet},
};

/// A payment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PaymentRow {
    pub(crate) facts: PaymentFacts,
    /// Columns that are written but never read; none for a row that was loaded.
    shown: Option<(AccountName, Timestamp)>,
    pub(crate) record: Vec<u8>,
}

impl PaymentRow {
    /// Returns the row of a payment.
    pub(crate) fn of(payment: &Payment) -> Self {
        let record = record::payment_to_bytes(payment);
        let facts = PaymentFacts::of(payment, &record);
        Self { facts, shown: Some((payment.pay_to, payment.expires_at)), record }
    }

    /// Returns the payment of a record and its row, with every column.
    pub(crate) fn decoded(id: u128, record: Vec<u8>) -> Result<(Payment, Self), Fault> {
        let id = PaymentId::from_bits(id);
        let payment = record::payment_from_bytes(id, &record).map_err(Fault::damaged("payments", id))?;
        let facts = PaymentFacts::of(&payment, &record);
        let shown = Some((payment.pay_to, payment.expires_at));
        Ok((payment, Self { facts, shown, record }))
    }

    /// Returns a row that was stored.
    pub(crate) fn stored(id: u128, record: Vec<u8>) -> Result<Self, Fault> {
        let facts = record::payment_facts(&record).map_err(Fault::damaged("payments", PaymentId::from_bits(id)))?;
        Ok(Self { facts, shown: None, record })
    }
}

impl Table for PaymentRow {
    type Key = u128;

    const NAME: &'static str = "payments";
    const KEY: &'static [Column] = &[("id", Kind::Uuid)];
    const VALUES: &'static [Column] = &[
        ("merchant_id", Kind::Uuid),
        ("version", Kind::Integer),
        ("state", Kind::Text),
        ("facet", Kind::Small),
        ("needs_attention", Kind::Flag),
        ("is_invoice", Kind::Flag),
        ("slug", Kind::Uuid),
        ("amount_units", Kind::Integer),
        ("currency", Kind::Text),
        ("usd_cents", Kind::Integer),
        ("pay_to", Kind::Text),
        ("created_at", Kind::Time),
        ("expires_at", Kind::Time),
        ("completed_at", Kind::Time),
        ("deadline", Kind::Time),
        ("in_flight", Kind::Flag),
        ("record", Kind::Bytes),
    ];
    const READ: &'static [&'static str] = &["record"];
    const GUARD: Option<&'static str> = Some("version");

    fn key_cells(key: &u128) -> Vec<Cell> {
        vec![(*key).into()]
    }

    fn cells(&self) -> Vec<Cell> {
        let PaymentFacts { summary, .. } = &self.facts;
        let (pay_to, expires_at) = self.shown.as_ref().expect("a row that is written was made of a payment");
        vec![
            self.facts.merchant.into(),
            self.facts.version.into(),
            summary.state.as_str().into(),
            Cell::Small(facet(summary).into()),
            summary.is_unusual.into(),
            summary.is_invoice.into(),
            self.facts.slug.into(),
            summary.amount.units.into(),
            summary.amount.currency.code().into(),
            summary.usd_cents.into(),
            pay_to.as_str().into(),
            summary.created_at.into(),
            (*expires_at).into(),
            summary.completed_at.into(),
            self.facts.deadline_ms.map(Timestamp::from_millis).into(),
            self.facts.is_in_flight.into(),
            self.record.as_slice().into(),
        ]
    }

    fn guard(&self) -> u64 {
        self.facts.version
    }

    fn read(row: &Row) -> Result<(u128, Self), Fault> {
        let Id(id) = column(row, 0)?;
        Ok((id, Self::stored(id, column(row, 1)?)?))
    }
}

impl Whole for PaymentRow {
    fn whole(row: &Row) -> Result<(u128, Self), Fault> {
        let Id(id) = column(row, 0)?;
        Ok((id, Self::decoded(id, column(row, 1)?)?.1))
    }
}

/// The key of a transfer: payment, transaction, operation.
pub(crate) type TransferKey = (u128, [u8; 20], u32);

/// A transfer of a payment.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TransferRow {
    pub(crate) credit: Credit,
    /// The merchant of the payment; 0 for a row that was loaded.
    pub(crate) merchant: MerchantId,
}

impl Table for TransferRow {
    type Key = TransferKey;

    const NAME: &'static str = "transfers";
    const KEY: &'static [Column] = &[("payment_id", Kind::Uuid), ("tx_id", Kind::Bytes), ("op_in_tx", Kind::Integer)];
    const VALUES: &'static [Column] = &[
        ("seq", Kind::Integer),
        ("merchant_id", Kind::Uuid),
        ("sender", Kind::Text),
        ("receiver", Kind::Text),
        ("amount_units", Kind::Integer),
        ("currency", Kind::Text),
        ("block_num", Kind::Integer),
        ("is_final", Kind::Flag),
        ("record", Kind::Bytes),
    ];
    const READ: &'static [&'static str] = &["record"];

    fn key_cells((payment, tx_id, op): &TransferKey) -> Vec<Cell> {
        vec![(*payment).into(), tx_id.as_slice().into(), (*op).into()]
    }

    fn cells(&self) -> Vec<Cell> {
        let Credit { seq, from, to, money, block, finality, .. } = &self.credit;
        vec![
            (*seq).into(),
            self.merchant.bits().into(),
            from.as_str().into(),
            to.as_str().into(),
            money.units.into(),
            money.currency.code().into(),
            Cell::Integer(block.map(|block| block.position.block_num.into())),
            (*finality == Finality::Irreversible).into(),
            record::transfer_to_bytes(&self.credit).into(),
        ]
    }

    fn read(row: &Row) -> Result<(TransferKey, Self), Fault> {
        let (Id(payment), tx_id) = (column(row, 0)?, bytes_of(row, 1)?);
        let key = (payment, tx_id, u32::try_from(unsigned(column(row, 2)?)).unwrap_or(u32::MAX));
        Ok((key, Self { credit: credit(key, column(row, 3)?)?, merchant: MerchantId::from_bits(0) }))
    }
}

impl Whole for TransferRow {
    fn whole(row: &Row) -> Result<(TransferKey, Self), Fault> {
        let (key, transfer) = Self::read(row)?;
        // The record does not repeat the merchant of the payment.
        let Id(merchant) = named(row, "merchant_id")?;
        Ok((key, Self { merchant: MerchantId::from_bits(merchant), ..transfer }))
    }
}

/// Reads a transfer's record.
pub(crate) fn credit((payment, tx_id, op): TransferKey, bytes: &[u8]) -> Result<Credit, Fault> {
    let name = format!("{} of {}", TxId(tx_id), PaymentId::from_bits(payment));
    record::transfer_from_bytes((payment, &tx_id, op), bytes).map_err(Fault::damaged("transfers", name))
}

/// A word by which a payment is found: merchant, word, payment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct WordRow;

impl Table for WordRow {
    type Key = (u128, String, u128);

    const NAME: &'static str = "payment_words";
    const KEY: &'static [Column] = &[("merchant_id", Kind::Uuid), ("word", Kind::Text), ("payment_id", Kind::Uuid)];
    const VALUES: &'static [Column] = &[];
    const READ: &'static [&'static str] = &[];
    const COLLISION: Collision = Collision::Keep;

    fn key_cells((merchant, word, payment): &Self::Key) -> Vec<Cell> {
        vec![(*merchant).into(), word.as_str().into(), (*payment).into()]
    }

    fn cells(&self) -> Vec<Cell> {
        Vec::new()
    }

    fn read(row: &Row) -> Result<(Self::Key, Self), Fault> {
        let (Id(merchant), Id(payment)) = (column(row, 0)?, column(row, 2)?);
        Ok(((merchant, column(row, 1)?, payment), Self))
    }
}
