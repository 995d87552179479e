//! Checks that the payer's account and key can pay.

use std::collections::BTreeMap;

use actors::environment::Account;
use engine::{
    account::AccountName,
    hive::{Authority, ChainId, PrivateKey, PublicKey, Role, check},
    money::Money,
};

/// Why an account and a key cannot pay.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccountError {
    /// The node serves another chain than that of the offer.
    #[error("the node serves the chain {found}, not {wanted}")]
    Chain {
        /// The chain of the node.
        found: ChainId,
        /// The chain of the offer.
        wanted: ChainId,
    },
    /// The account does not exist.
    #[error("the ledger has no account {0}")]
    NoAccount(AccountName),
    /// The key is not sufficient.
    #[error("{key} alone does not satisfy the active authority of {account}")]
    NotItsKey {
        /// The public key.
        key: PublicKey,
        /// The payer.
        account: AccountName,
    },
    /// The balance is too low.
    #[error("{account} has {has}")]
    Funds {
        /// The payer.
        account: AccountName,
        /// The balance.
        has: Money,
    },
}

impl AccountError {
    /// Returns the reason for scripts.
    pub(in crate::commands) const fn as_str(&self) -> &'static str {
        match self {
            Self::Chain { .. } => "other_chain",
            Self::NoAccount(_) => "no_account",
            Self::NotItsKey { .. } => "not_its_key",
            Self::Funds { .. } => "insufficient_funds",
        }
    }
}

/// Checks that the balance is sufficient and that the key alone satisfies the account's active authority.
pub(in crate::commands) fn check_account(
    account: &Account,
    key: &PrivateKey,
    total: Money,
) -> Result<(), AccountError> {
    let name = account.name;
    let has = account.balances.into_iter().find(|balance| balance.currency == total.currency);
    let has = has.unwrap_or(Money::new(0, total.currency));
    let required = [(Role::Active, name)].into();
    let known: BTreeMap<AccountName, Authority> = [(name, account.active.clone())].into();
    let public = key.public();
    // If other accounts must sign, too, the ledger decides; only one key is known here.
    if let Err(denied) = check(&required, &known, &[public].into())
        && denied.unknown.is_empty()
    {
        return Err(AccountError::NotItsKey { key: public, account: name });
    }
    if has.units < total.units { Err(AccountError::Funds { account: name, has }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_another_account_is_refused_before_it_signs() {
        let key = |name: &str| PrivateKey::from_login(name, "active", "test").unwrap();
        let name = AccountName::parse("alice").unwrap();
        let parse = |text: &str| Money::parse_ledger(text).unwrap();
        let balances = [parse("0.000 HIVE"), parse("5.000 HBD")];
        let account = Account { name, active: Authority::of_key(key("alice").public()), balances };
        assert_eq!(check_account(&account, &key("alice"), parse("5.000 HBD")), Ok(()));
        let short = AccountError::Funds { account: name, has: parse("5.000 HBD") };
        assert_eq!(check_account(&account, &key("alice"), parse("5.001 HBD")), Err(short));
        let wrong = check_account(&account, &key("bob"), parse("5.000 HBD"));
        assert_eq!(wrong, Err(AccountError::NotItsKey { key: key("bob").public(), account: name }));
    }
}
