//! Rows of what comes from the ledger: claims, unmatched transfers, ledger entries.

use engine::{
    account::AccountName,
    ids::PaymentId,
    ledger::{ChainPosition, TxId},
    money::{Currency, Money},
    time::Timestamp,
    x402::{ClaimOutcome, ClaimRecord, Purpose},
};
use tokio_postgres::Row;

use crate::{
    batch::{Handling, Unmatched},
    postgres::{
        fault::Fault,
        table::{Collision, Column, Table},
        values::{Cell, Id, Kind, Moment, bytes_of, column, unsigned},
        whole::Whole,
    },
    record::{self},
    store::ledger_entries::LedgerEntryKey,
};

/// A claim.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClaimRow {
    pub(crate) version: u64,
    pub(crate) claim: ClaimRecord,
}

impl Table for ClaimRow {
    type Key = [u8; 20];

    const NAME: &'static str = "claims";
    const KEY: &'static [Column] = &[("tx_id", Kind::Bytes)];
    const VALUES: &'static [Column] = &[
        ("version", Kind::Integer),
        ("pay_to", Kind::Text),
        ("payment_id", Kind::Uuid),
        ("outcome", Kind::Text),
        ("is_open_facilitation", Kind::Flag),
        ("claimed_at", Kind::Time),
        ("record", Kind::Bytes),
    ];
    const READ: &'static [&'static str] = &["version", "record"];
    const GUARD: Option<&'static str> = Some("version");

    fn key_cells(key: &[u8; 20]) -> Vec<Cell> {
        vec![key.as_slice().into()]
    }

    fn cells(&self) -> Vec<Cell> {
        let ClaimRecord { pay_to, purpose, outcome, at, .. } = &self.claim;
        let (payment, is_facilitation) = match purpose {
            Purpose::Session(payment) => (Some(payment.bits()), false),
            Purpose::Facilitated(_) => (None, true),
        };
        vec![
            self.version.into(),
            pay_to.as_str().into(),
            payment.into(),
            outcome_text(outcome).into(),
            (is_facilitation && outcome.is_open()).into(),
            (*at).into(),
            record::claimed_to_bytes(&self.claim).into(),
        ]
    }

    fn guard(&self) -> u64 {
        self.version
    }

    fn read(row: &Row) -> Result<([u8; 20], Self), Fault> {
        let tx_id = bytes_of(row, 0)?;
        Ok((tx_id, Self { version: unsigned(column(row, 1)?), claim: claim(tx_id, column(row, 2)?)? }))
    }
}

const fn outcome_text(outcome: &ClaimOutcome) -> &'static str {
    match outcome {
        ClaimOutcome::Open => "open",
        ClaimOutcome::Shared => "shared",
        ClaimOutcome::Settled { .. } => "settled",
        ClaimOutcome::Refused { .. } => "refused",
        ClaimOutcome::Expired => "expired",
    }
}

/// Reads a claim's record.
pub(crate) fn claim(tx_id: [u8; 20], bytes: &[u8]) -> Result<ClaimRecord, Fault> {
    let tx_id = TxId(tx_id);
    record::claimed_from_bytes(tx_id, bytes).map_err(Fault::damaged("claims", tx_id))
}

/// The transaction of a nonce or payment identifier.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct NameRow(pub(crate) [u8; 20]);

impl Table for NameRow {
    type Key = [u8; 32];

    const NAME: &'static str = "claim_names";
    const KEY: &'static [Column] = &[("digest", Kind::Bytes)];
    const VALUES: &'static [Column] = &[("tx_id", Kind::Bytes)];
    const READ: &'static [&'static str] = &["tx_id"];

    fn key_cells(key: &[u8; 32]) -> Vec<Cell> {
        vec![key.as_slice().into()]
    }

    fn cells(&self) -> Vec<Cell> {
        vec![self.0.as_slice().into()]
    }

    fn read(row: &Row) -> Result<([u8; 32], Self), Fault> {
        Ok((bytes_of(row, 0)?, Self(bytes_of(row, 1)?)))
    }
}

/// What a transaction was used for.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct UseRow {
    pub(crate) version: u64,
    /// The payment that one of its transfers was assigned to.
    pub(crate) assigned: Option<u128>,
}

impl Table for UseRow {
    type Key = [u8; 20];

    const NAME: &'static str = "transaction_uses";
    const KEY: &'static [Column] = &[("tx_id", Kind::Bytes)];
    const VALUES: &'static [Column] = &[("version", Kind::Integer), ("assigned_payment_id", Kind::Uuid)];
    const READ: &'static [&'static str] = &["version", "assigned_payment_id"];
    const GUARD: Option<&'static str> = Some("version");

    fn key_cells(key: &[u8; 20]) -> Vec<Cell> {
        vec![key.as_slice().into()]
    }

    fn cells(&self) -> Vec<Cell> {
        vec![self.version.into(), self.assigned.into()]
    }

    fn guard(&self) -> u64 {
        self.version
    }

    fn read(row: &Row) -> Result<([u8; 20], Self), Fault> {
        let assigned = column::<Option<Id>>(row, 2)?.map(|Id(payment)| payment);
        Ok((bytes_of(row, 0)?, Self { version: unsigned(column(row, 1)?), assigned }))
    }
}

/// The key of an unmatched transfer: the account, and block, transaction and operation.
pub(crate) type UnmatchedKey = (AccountName, ChainPosition);

/// An unmatched transfer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct UnmatchedRow {
    pub(crate) version: u64,
    pub(crate) unmatched: Unmatched,
    /// The unknown payment that it names, until it is handled.
    pub(crate) waits_for: Option<u128>,
}

impl Table for UnmatchedRow {
    type Key = UnmatchedKey;

    const NAME: &'static str = "unmatched_transfers";
    const KEY: &'static [Column] = &[
        ("account", Kind::Text),
        ("block_num", Kind::Integer),
        ("tx_in_block", Kind::Integer),
        ("op_in_tx", Kind::Integer),
    ];
    const VALUES: &'static [Column] = &[
        ("version", Kind::Integer),
        ("tx_id", Kind::Bytes),
        ("sender", Kind::Text),
        ("amount_units", Kind::Integer),
        ("currency", Kind::Text),
        ("reason", Kind::Text),
        ("handling", Kind::Text),
        ("waits_for_payment_id", Kind::Uuid),
        ("record", Kind::Bytes),
    ];
    const READ: &'static [&'static str] = &["record", "version", "waits_for_payment_id"];
    const GUARD: Option<&'static str> = Some("version");

    fn key_cells((account, place): &UnmatchedKey) -> Vec<Cell> {
        vec![account.as_str().into(), place.block_num.into(), place.tx_in_block.into(), place.op_in_tx.into()]
    }

    fn cells(&self) -> Vec<Cell> {
        let Unmatched { transfer, reason, handling } = &self.unmatched;
        let handling = match handling {
            Handling::Open => "open",
            Handling::Assigned { .. } => "assigned",
            Handling::Ignored { .. } => "ignored",
        };
        vec![
            self.version.into(),
            transfer.tx_id.0.as_slice().into(),
            transfer.from.as_str().into(),
            transfer.money.units.into(),
            transfer.money.currency.code().into(),
            reason.as_str().into(),
            handling.into(),
            self.waits_for.into(),
            record::unmatched_to_bytes(self.unmatched.clone()).into(),
        ]
    }

    fn guard(&self) -> u64 {
        self.version
    }

    fn read(row: &Row) -> Result<(UnmatchedKey, Self), Fault> {
        let unmatched = unmatched(row, 0)?;
        let key = (*unmatched.account(), unmatched.transfer.position);
        let waits_for = column::<Option<Id>>(row, 6)?.map(|Id(payment)| payment);
        Ok((key, Self { version: unsigned(column(row, 5)?), unmatched, waits_for }))
    }
}

/// Reads an unmatched transfer from the columns of its key and its record.
pub(crate) fn unmatched(row: &Row, first: usize) -> Result<Unmatched, Fault> {
    let number = |place| Ok::<_, Fault>(u32::try_from(unsigned(column(row, first + place)?)).unwrap_or(u32::MAX));
    let key = (column::<&str>(row, first)?, number(1)?, number(2)?, number(3)?);
    let damaged = Fault::damaged("unmatched_transfers", format!("{key:?}"));
    record::unmatched_from_bytes(key, column(row, first + 4)?).map_err(damaged)
}

/// A ledger entry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct EntryRow(pub(crate) Money);

impl Table for EntryRow {
    type Key = (AccountName, EntryKey);

    const NAME: &'static str = "ledger_entries";
    const KEY: &'static [Column] = &[
        ("account", Kind::Text),
        ("block_time", Kind::Time),
        ("tx_id", Kind::Bytes),
        ("op_in_tx", Kind::Integer),
        ("kind", Kind::Small),
        ("payment_id", Kind::Uuid),
    ];
    const VALUES: &'static [Column] = &[("amount_units", Kind::Integer), ("currency", Kind::Text)];
    const READ: &'static [&'static str] = &[];
    // The same entry again is the same row.
    const COLLISION: Collision = Collision::Replace;

    fn key_cells((account, key): &Self::Key) -> Vec<Cell> {
        let EntryKey(at_ms, tx_id, op_in_tx, kind, payment) = key;
        vec![
            account.as_str().into(),
            Timestamp::from_millis(*at_ms).into(),
            tx_id.as_slice().into(),
            (*op_in_tx).into(),
            Cell::Small(i16::try_from(*kind).unwrap_or(i16::MAX)),
            (*payment).into(),
        ]
    }

    fn cells(&self) -> Vec<Cell> {
        vec![self.0.units.into(), self.0.currency.code().into()]
    }

    fn read(_: &Row) -> Result<(Self::Key, Self), Fault> {
        Err(Fault::Failed("ledger entries are not loaded by key".to_owned()))
    }
}

impl Whole for EntryRow {
    fn whole(row: &Row) -> Result<(Self::Key, Self), Fault> {
        let name: &str = column(row, 0)?;
        let damaged = |why: String| Fault::inconsistent("ledger_entries", name, why);
        let account = AccountName::parse(name).map_err(|why| damaged(why.to_string()))?;
        let (Moment(at), tx_id, Id(payment)) = (column(row, 1)?, bytes_of(row, 2)?, column(row, 5)?);
        let op_in_tx = u32::try_from(column::<i64>(row, 3)?).map_err(|why| damaged(why.to_string()))?;
        let kind = u32::try_from(column::<i16>(row, 4)?).map_err(|why| damaged(why.to_string()))?;
        let code: &str = column(row, 7)?;
        let currency = Currency::ALL.into_iter().find(|one| one.code() == code);
        let currency = currency.ok_or_else(|| damaged(format!("{code} is no currency")))?;
        let money = Money::new(unsigned(column(row, 6)?), currency);
        Ok(((account, EntryKey(at.millis(), tx_id, op_in_tx, kind, payment)), Self(money)))
    }
}

/// Time in milliseconds, transaction, operation, kind and payment of a ledger entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntryKey(pub(crate) u64, pub(crate) [u8; 20], pub(crate) u32, pub(crate) u32, pub(crate) u128);

impl From<LedgerEntryKey> for EntryKey {
    fn from(key: LedgerEntryKey) -> Self {
        Self(key.at_ms, key.tx_id, key.op_in_tx, key.kind, key.payment)
    }
}

/// Returns the payment that an unmatched transfer waits for.
pub(crate) fn named(unmatched: &Unmatched) -> Option<u128> {
    crate::embedded::read::unmatched::named(unmatched).map(PaymentId::bits)
}
