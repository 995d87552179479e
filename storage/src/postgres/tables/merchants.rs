//! Rows of merchants, their keys and their accounts.

use engine::{account::AccountName, ids::MerchantId, merchant::Merchant, time::Timestamp};
use tokio_postgres::Row;

use crate::{
    postgres::{
        fault::Fault,
        table::{Column, Table},
        values::{Cell, Id, Kind, Moment, bytes_of, column, unsigned},
        whole::Whole,
    },
    record::{self, merchant::MerchantFacts, vault::Vault},
};

/// A merchant.
#[derive(Debug, Clone)]
pub(crate) struct MerchantRow {
    pub(crate) facts: MerchantFacts,
    /// Columns that are written but never read; none for a row that was loaded.
    shown: Option<(String, bool, Timestamp)>,
    record: Vec<u8>,
}

impl MerchantRow {
    /// Returns the row of a merchant, whose secrets are sealed.
    pub(crate) fn of(merchant: Merchant, vault: &Vault) -> Self {
        let shown = Some((merchant.name.clone(), merchant.is_active, merchant.created_at));
        Self { facts: MerchantFacts::of(&merchant), shown, record: record::merchant_to_bytes(merchant, vault) }
    }

    /// Returns the row of a record, with every column. Its secrets stay as they are.
    pub(crate) fn decoded(id: u128, record: Vec<u8>) -> Result<Self, Fault> {
        let damaged = || Fault::damaged("merchants", MerchantId::from_bits(id));
        let facts = record::merchant_facts(&record).map_err(damaged())?;
        let shown = record::merchant_shown(&record).map_err(damaged())?;
        Ok(Self { facts, shown: Some(shown), record })
    }

    /// Returns the record.
    pub(crate) fn record(&self) -> &[u8] {
        &self.record
    }
}

impl Table for MerchantRow {
    type Key = u128;

    const NAME: &'static str = "merchants";
    const KEY: &'static [Column] = &[("id", Kind::Uuid)];
    const VALUES: &'static [Column] = &[
        ("version", Kind::Integer),
        ("name", Kind::Text),
        ("account", Kind::Text),
        ("is_active", Kind::Flag),
        ("is_account_proven", Kind::Flag),
        ("account_change_due_at", Kind::Time),
        ("created_at", Kind::Time),
        ("record", Kind::Bytes),
    ];
    const READ: &'static [&'static str] = &["record"];
    const GUARD: Option<&'static str> = Some("version");

    fn key_cells(key: &u128) -> Vec<Cell> {
        vec![(*key).into()]
    }

    fn cells(&self) -> Vec<Cell> {
        let (name, is_active, created_at) = self.shown.as_ref().expect("a row that is written was made of a merchant");
        // A text of PostgreSQL has no zero byte; the record keeps the name as it is.
        let name = name.replace('\0', "");
        vec![
            self.facts.version.into(),
            name.as_str().into(),
            self.facts.account.as_str().into(),
            (*is_active).into(),
            self.facts.is_proven.into(),
            self.facts.pending_due_at.into(),
            (*created_at).into(),
            self.record.as_slice().into(),
        ]
    }

    fn guard(&self) -> u64 {
        self.facts.version
    }

    fn read(row: &Row) -> Result<(u128, Self), Fault> {
        let (Id(id), record) = (column(row, 0)?, column::<Vec<u8>>(row, 1)?);
        let facts = record::merchant_facts(&record).map_err(Fault::damaged("merchants", MerchantId::from_bits(id)))?;
        Ok((id, Self { facts, shown: None, record }))
    }
}

impl Whole for MerchantRow {
    fn whole(row: &Row) -> Result<(u128, Self), Fault> {
        let Id(id) = column(row, 0)?;
        Ok((id, Self::decoded(id, column(row, 1)?)?))
    }
}

/// The merchant of an API key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct KeyRow(pub(crate) u128);

impl Table for KeyRow {
    type Key = [u8; 32];

    const NAME: &'static str = "api_keys";
    const KEY: &'static [Column] = &[("digest", Kind::Bytes)];
    const VALUES: &'static [Column] = &[("merchant_id", Kind::Uuid)];
    const READ: &'static [&'static str] = &["merchant_id"];

    fn key_cells(key: &[u8; 32]) -> Vec<Cell> {
        vec![key.as_slice().into()]
    }

    fn cells(&self) -> Vec<Cell> {
        vec![self.0.into()]
    }

    fn read(row: &Row) -> Result<([u8; 32], Self), Fault> {
        let Id(merchant) = column(row, 1)?;
        Ok((bytes_of(row, 0)?, Self(merchant)))
    }
}

/// A watched account.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct AccountRow {
    pub(crate) version: u64,
    /// Its place in the order in which accounts were watched for the first time.
    pub(crate) number: u64,
    pub(crate) watched_since: Timestamp,
    /// When it need no longer be watched; none while a merchant has it.
    pub(crate) unwatch_at: Option<Timestamp>,
}

impl AccountRow {
    /// Returns the row after one more merchant came or went.
    pub(crate) const fn next(self) -> Self {
        Self { version: self.version + 1, ..self }
    }
}

impl Table for AccountRow {
    type Key = AccountName;

    const NAME: &'static str = "accounts";
    const KEY: &'static [Column] = &[("name", Kind::Text)];
    const VALUES: &'static [Column] = &[
        ("version", Kind::Integer),
        ("number", Kind::Integer),
        ("watched_since", Kind::Time),
        ("unwatch_at", Kind::Time),
    ];
    const READ: &'static [&'static str] = &["version", "number", "watched_since", "unwatch_at"];
    const GUARD: Option<&'static str> = Some("version");

    fn key_cells(key: &AccountName) -> Vec<Cell> {
        vec![key.as_str().into()]
    }

    fn cells(&self) -> Vec<Cell> {
        vec![self.version.into(), self.number.into(), self.watched_since.into(), self.unwatch_at.into()]
    }

    fn guard(&self) -> u64 {
        self.version
    }

    fn read(row: &Row) -> Result<(AccountName, Self), Fault> {
        let name: &str = column(row, 0)?;
        let account = AccountName::parse(name).map_err(|why| Fault::inconsistent("accounts", name, why))?;
        let (Moment(watched_since), unwatch_at) = (column(row, 3)?, column::<Option<Moment>>(row, 4)?);
        let unwatch_at = unwatch_at.map(|Moment(at)| at);
        let (version, number) = (unsigned(column(row, 1)?), unsigned(column(row, 2)?));
        Ok((account, Self { version, number, watched_since, unwatch_at }))
    }
}
