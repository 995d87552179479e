//! Accounts: authorities and balances.

use engine::{
    account::AccountName,
    hive::{AccountAuthorities, Asset, PublicKey, Symbol},
    time::Timestamp,
};

/// A balance of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BalanceKind {
    /// Liquid HIVE.
    Hive,
    /// Liquid HBD.
    Hbd,
    /// HIVE in savings.
    SavingsHive,
    /// HBD in savings.
    SavingsHbd,
    /// Vesting shares.
    Vests,
}

impl BalanceKind {
    pub(super) const COUNT: usize = 5;

    /// Returns the liquid balance of an asset.
    #[must_use]
    pub const fn liquid(symbol: Symbol) -> Self {
        match symbol {
            Symbol::Hive => Self::Hive,
            Symbol::Hbd => Self::Hbd,
            Symbol::Vests => Self::Vests,
        }
    }

    /// Returns the savings balance of an asset.
    #[must_use]
    pub const fn savings(symbol: Symbol) -> Self {
        match symbol {
            Symbol::Hive => Self::SavingsHive,
            Symbol::Hbd => Self::SavingsHbd,
            Symbol::Vests => Self::Vests,
        }
    }

    /// Returns its asset.
    #[must_use]
    pub const fn symbol(self) -> Symbol {
        match self {
            Self::Hive | Self::SavingsHive => Symbol::Hive,
            Self::Hbd | Self::SavingsHbd => Symbol::Hbd,
            Self::Vests => Symbol::Vests,
        }
    }
}

/// An account of the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its number, in order of creation.
    pub id: u32,
    /// Its name.
    pub name: AccountName,
    /// Its authorities.
    pub authorities: AccountAuthorities,
    /// The key for encrypted memos.
    pub memo_key: PublicKey,
    /// When it was created.
    pub created: Timestamp,
    /// When its authorities last changed.
    pub updated: Timestamp,
    /// Whether it has resource credits; without them every broadcast of it is refused.
    pub has_rc: bool,
    pub(super) balances: [i64; BalanceKind::COUNT],
}

impl Account {
    /// Returns one of its balances.
    #[must_use]
    pub const fn balance(&self, kind: BalanceKind) -> Asset {
        Asset { units: self.balances[kind as usize], symbol: kind.symbol() }
    }
}
