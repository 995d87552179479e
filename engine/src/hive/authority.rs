//! Authorities: whether a set of keys satisfies an account's authority, by hived's rules and limits.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    DecodeError, Fault, Form, PublicKey,
    field::Field,
    json::{Json, write_list, write_text},
    pack::{Reader, Writer},
};
use crate::account::AccountName;

/// Maximum recursion depth of account authorities (`HIVE_MAX_SIG_CHECK_DEPTH`).
const MAX_DEPTH: usize = 2;
/// Maximum members evaluated per authority (`HIVE_MAX_AUTHORITY_MEMBERSHIP`).
const MAX_MEMBERSHIP: usize = 40;
/// Maximum accounts evaluated per transaction (`HIVE_MAX_SIG_CHECK_ACCOUNTS`).
const MAX_ACCOUNTS: usize = 125;

/// The role of an authority. Since hard fork 28 no role implies another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Changes the account's keys.
    Owner,
    /// Moves money.
    Active,
    /// Votes and writes.
    Posting,
}

/// The required authorities: role and account.
pub(super) type Required = BTreeSet<(Role, AccountName)>;

/// An authority: keys and accounts whose weights must reach a threshold. With a threshold of 0 no signature is needed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Authority {
    /// The weight threshold.
    pub weight_threshold: u32,
    /// Delegated accounts with their weights.
    pub account_auths: BTreeMap<AccountName, u16>,
    /// Keys, with their weights.
    pub key_auths: BTreeMap<PublicKey, u16>,
}

impl Authority {
    /// Returns the authority of one key.
    #[must_use]
    pub fn of_key(key: PublicKey) -> Self {
        Self { weight_threshold: 1, account_auths: BTreeMap::new(), key_auths: BTreeMap::from([(key, 1)]) }
    }

    /// Parses `{"weight_threshold":1,"account_auths":[["bob",1]],"key_auths":[["STM…",1]]}`.
    ///
    /// # Errors
    /// [`DecodeError`] with the path of the member.
    pub fn parse(json: &[u8]) -> Result<Self, DecodeError> {
        Self::read(&Json::parse(json)?, Form::Hf26)
    }

    /// Returns the JSON that [`Authority::parse`] accepts.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, Form::Hf26);
        out
    }
}

/// The authorities of one account.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccountAuthorities {
    /// Changes the account's keys.
    pub owner: Authority,
    /// Moves money.
    pub active: Authority,
    /// Votes and writes.
    pub posting: Authority,
}

/// A source of authorities.
pub trait Authorities {
    /// Returns an account's authority, if the account is known.
    fn authority(&self, role: Role, account: &AccountName) -> Option<&Authority>;
}

/// Active authorities only, which transfers require; other roles are unknown.
impl Authorities for BTreeMap<AccountName, Authority> {
    fn authority(&self, role: Role, account: &AccountName) -> Option<&Authority> {
        if role == Role::Active { self.get(account) } else { None }
    }
}

impl Authorities for BTreeMap<AccountName, AccountAuthorities> {
    fn authority(&self, role: Role, account: &AccountName) -> Option<&Authority> {
        self.get(account).map(|all| match role {
            Role::Owner => &all.owner,
            Role::Active => &all.active,
            Role::Posting => &all.posting,
        })
    }
}

/// The keys do not satisfy an authority.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("missing the {role:?} authority of {account}")]
pub struct Denied {
    /// The role of the missing authority.
    pub role: Role,
    /// The account.
    pub account: AccountName,
    /// Accounts whose authorities are unknown. Callers fetch those that exist and check again; an unknown account is
    /// denied, as on the chain.
    pub unknown: BTreeSet<AccountName>,
}

/// Checks whether the keys satisfy every required authority (hived: `sign_state.hpp`, hard fork 28).
///
/// # Errors
/// [`Denied`] with the first missing authority.
pub fn check(
    required: &BTreeSet<(Role, AccountName)>,
    accounts: &impl Authorities,
    keys: &BTreeSet<PublicKey>,
) -> Result<(), Denied> {
    let mut unknown = BTreeSet::new();
    for role in [Role::Active, Role::Owner, Role::Posting] {
        let mut check = Check { role, accounts, keys, approved: BTreeSet::new(), looked_at: 0, unknown: &mut unknown };
        for (_, account) in required.iter().filter(|(wanted, _)| *wanted == role) {
            check.looked_at += 1;
            // hived throws on unknown accounts, even if the threshold is reached otherwise.
            if !check.account(account, 0) || !check.unknown.is_empty() {
                return Err(Denied { role, account: *account, unknown });
            }
        }
    }
    Ok(())
}

struct Check<'a, A> {
    role: Role,
    accounts: &'a A,
    keys: &'a BTreeSet<PublicKey>,
    approved: BTreeSet<AccountName>,
    looked_at: usize,
    unknown: &'a mut BTreeSet<AccountName>,
}

impl<A: Authorities> Check<'_, A> {
    fn account(&mut self, account: &AccountName, depth: usize) -> bool {
        let accounts = self.accounts;
        if let Some(authority) = accounts.authority(self.role, account) {
            self.authority(authority, depth)
        } else {
            self.unknown.insert(*account);
            false
        }
    }

    fn authority(&mut self, authority: &Authority, depth: usize) -> bool {
        let mut weight = 0u32;
        let mut members = 0;
        for (key, each) in &authority.key_auths {
            if self.keys.contains(key) {
                weight += u32::from(*each);
                if weight >= authority.weight_threshold {
                    return true;
                }
            }
            members += 1;
            if members >= MAX_MEMBERSHIP {
                return false;
            }
        }
        for (account, each) in &authority.account_auths {
            let approved = if self.approved.contains(account) {
                true
            } else if depth == MAX_DEPTH {
                continue;
            } else if self.looked_at >= MAX_ACCOUNTS {
                return false;
            } else {
                self.looked_at += 1;
                self.account(account, depth + 1)
            };
            if approved {
                self.approved.insert(*account);
                weight += u32::from(*each);
                if weight >= authority.weight_threshold {
                    return true;
                }
            }
            members += 1;
            if members >= MAX_MEMBERSHIP {
                return false;
            }
        }
        weight >= authority.weight_threshold
    }
}

impl Field for Authority {
    fn pack(&self, writer: &mut Writer) {
        self.weight_threshold.pack(writer);
        writer.varint(self.account_auths.len());
        for (account, weight) in &self.account_auths {
            writer.text(account.as_str());
            weight.pack(writer);
        }
        writer.varint(self.key_auths.len());
        for (key, weight) in &self.key_auths {
            key.pack(writer);
            weight.pack(writer);
        }
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut authority = Self { weight_threshold: u32::unpack(reader)?, ..Self::default() };
        for _ in 0..reader.count()? {
            let name = AccountName::parse(&reader.text()?).map_err(|_| Fault::Wanted { wanted: "an account name" })?;
            add(&mut authority.account_auths, name, u16::unpack(reader)?)?;
        }
        for _ in 0..reader.count()? {
            add(&mut authority.key_auths, PublicKey::unpack(reader)?, u16::unpack(reader)?)?;
        }
        Ok(authority)
    }

    fn read(json: &Json, form: Form) -> Result<Self, DecodeError> {
        let threshold = u32::read(json.member("weight_threshold")?, form).map_err(|e| e.inside("weight_threshold"))?;
        let mut authority = Self { weight_threshold: threshold, ..Self::default() };
        let pairs = |member: &'static str| -> Result<Vec<(&Json, u16)>, DecodeError> {
            let pair = |pair| match Json::list(pair)? {
                [of, weight] => Ok((of, u16::read(weight, form)?)),
                _ => Err(Fault::Wanted { wanted: "a pair" }.into()),
            };
            json.member(member)?
                .list()?
                .iter()
                .map(pair)
                .collect::<Result<_, DecodeError>>()
                .map_err(|e| e.inside(member))
        };
        for (name, weight) in pairs("account_auths")? {
            let name = AccountName::parse(name.text()?).map_err(|_| Fault::Wanted { wanted: "an account name" })?;
            add(&mut authority.account_auths, name, weight)?;
        }
        for (key, weight) in pairs("key_auths")? {
            add(&mut authority.key_auths, PublicKey::read(key, form)?, weight)?;
        }
        Ok(authority)
    }

    fn write(&self, out: &mut String, _: Form) {
        out.push_str(&format!(r#"{{"weight_threshold":{},"account_auths":"#, self.weight_threshold));
        write_list(out, &self.account_auths, |out, (name, weight)| {
            out.push('[');
            write_text(out, name.as_str());
            out.push_str(&format!(",{weight}]"));
        });
        out.push_str(",\"key_auths\":");
        write_list(out, &self.key_auths, |out, (key, weight)| out.push_str(&format!(r#"["{key}",{weight}]"#)));
        out.push('}');
    }
}

/// Adds a member once: hived stores members sorted and unique.
fn add<K: Ord>(members: &mut BTreeMap<K, u16>, member: K, weight: u16) -> Result<(), DecodeError> {
    match members.insert(member, weight) {
        None => Ok(()),
        Some(_) => Err(Fault::Wanted { wanted: "without repetition" }.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u8) -> PublicKey {
        PublicKey([seed; 33])
    }

    fn name(text: &str) -> AccountName {
        AccountName::parse(text).unwrap()
    }

    fn delegates(names: impl IntoIterator<Item = String>) -> Authority {
        let account_auths = names.into_iter().map(|each| (name(&each), 1)).collect();
        Authority { weight_threshold: 1, account_auths, key_auths: BTreeMap::new() }
    }

    fn alice(accounts: &BTreeMap<AccountName, Authority>) -> Result<(), Denied> {
        check(&BTreeSet::from([(Role::Active, name("alice"))]), accounts, &BTreeSet::from([key(1)]))
    }

    #[test]
    fn unknown_accounts_are_returned_for_fetching() {
        let mut accounts = BTreeMap::new();
        assert_eq!(alice(&accounts).unwrap_err().unknown, BTreeSet::from([name("alice")]));
        accounts.insert(name("alice"), delegates(["bob".into(), "carol".into()]));
        assert_eq!(alice(&accounts).unwrap_err().unknown, BTreeSet::from([name("bob"), name("carol")]));
        accounts.insert(name("carol"), Authority::of_key(key(1)));
        assert!(alice(&accounts).is_err(), "hived fails at bob before it evaluates carol");
        accounts.insert(name("bob"), Authority::of_key(key(2)));
        assert_eq!(alice(&accounts), Ok(()));
    }

    #[test]
    fn at_most_forty_members_are_evaluated() {
        let accounts_with = |before: u16| {
            let mut authority = Authority { weight_threshold: 1, ..Authority::default() };
            for each in 0..before {
                let mut bytes = [0; 33];
                bytes[..2].copy_from_slice(&each.to_be_bytes());
                authority.key_auths.insert(PublicKey(bytes), 1);
            }
            authority.key_auths.insert(key(1), 1);
            BTreeMap::from([(name("alice"), authority)])
        };
        assert_eq!(alice(&accounts_with(39)), Ok(()));
        assert!(alice(&accounts_with(40)).is_err());
    }

    #[test]
    fn at_most_125_accounts_are_evaluated_per_transaction() {
        // alice, then 4 groups of 30: 1 + 4 * 31 = 125 accounts; the last of them is evaluated, one more is not.
        let accounts_with = |last: usize| {
            let mut accounts = BTreeMap::new();
            accounts.insert(name("alice"), delegates((0..4).map(|group| format!("group{group}"))));
            for group in 0..4 {
                let size = if group == 3 { last } else { 30 };
                let member = |each: usize| format!("member{group}{each:02}");
                accounts.insert(name(&format!("group{group}")), delegates((0..size).map(member)));
                for each in 0..size {
                    let signs = group == 3 && each + 1 == size;
                    accounts.insert(name(&member(each)), Authority::of_key(key(if signs { 1 } else { 2 })));
                }
            }
            accounts
        };
        assert_eq!(alice(&accounts_with(30)), Ok(()));
        assert!(alice(&accounts_with(31)).is_err());
    }

    #[test]
    fn no_role_implies_another() {
        let all = AccountAuthorities {
            owner: Authority::of_key(key(1)),
            active: Authority::of_key(key(2)),
            posting: Authority::of_key(key(3)),
        };
        let accounts = BTreeMap::from([(name("alice"), all)]);
        for (role, signer) in [(Role::Owner, 1), (Role::Active, 2), (Role::Posting, 3)] {
            for each in 1..=3 {
                let required = BTreeSet::from([(role, name("alice"))]);
                let granted = check(&required, &accounts, &BTreeSet::from([key(each)])).is_ok();
                assert_eq!(granted, each == signer, "{role:?} by key {each}");
            }
        }
    }

    #[test]
    fn an_authority_round_trips() {
        let mut authority = delegates(["bob".into(), "carol".into()]);
        authority.key_auths.insert(key(2), 7);
        assert_eq!(Authority::parse(authority.to_json().as_bytes()), Ok(authority));
        assert!(Authority::parse(br#"{"weight_threshold":1,"account_auths":[[]],"key_auths":[]}"#).is_err());
    }
}
