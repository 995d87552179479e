//! The policy file of a wallet, `wallet.toml`: strict TOML, in which an unknown key is an error with a suggestion.

use std::{
    collections::BTreeSet,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use engine::{
    account::AccountName,
    money::{Currency, Money},
    wallet::{HostPattern, Limits, Lists, Period, Policy},
};
use toml::Table;

use super::error::Error;
use crate::commands::{
    payer::key::KeySource,
    section::{Reading, Section},
};

/// The name of the file in the wallet's directory.
pub(super) const FILE: &str = "wallet.toml";
/// Maximum time that a payment may wait for an approval.
const MAX_WAIT_SECONDS: i64 = 3_600;

/// A wallet's policy file.
#[derive(Debug, Clone)]
pub(in crate::commands) struct PolicyFile {
    /// The paying account.
    pub(in crate::commands) account: AccountName,
    /// Ledger nodes; empty for the setting `ledger.nodes`.
    pub(in crate::commands) nodes: Vec<String>,
    /// The source of the account's key.
    pub(in crate::commands) key: KeySource,
    /// The limits and lists.
    pub(in crate::commands) policy: Policy,
    /// How long a payment waits for an approval before it is refused.
    pub(in crate::commands) approval_wait: Duration,
}

impl PolicyFile {
    /// Reads the policy of a wallet's directory.
    ///
    /// # Errors
    /// [`Error::Missing`], and [`Error::Policy`] with the error and its location.
    pub(in crate::commands) fn read(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(FILE);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::Missing(directory.to_owned()));
            }
            Err(error) => return Err(Error::policy(&path, error.to_string())),
        };
        check_mode(&path)?;
        Self::parse(&text, directory).map_err(|why| Error::policy(&path, why))
    }

    fn parse(text: &str, directory: &Path) -> Reading<Self> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
        let mut file = Section::new("", &table);
        let account = file.text("account")?.ok_or("`account` is missing: the Hive account that pays")?;
        let account = AccountName::parse(account).map_err(|error| format!("`account` {error}"))?;
        let nodes = file.list("nodes")?.unwrap_or_default().iter().map(|node| (*node).to_owned()).collect();
        let key = file.section("key")?.map_or(Ok(KeySource::default()), |section| key(section, directory))?;
        let limits = file.section("limits")?.map_or(Ok(Limits::new()), limits)?;
        if limits.is_empty() {
            return Err("`limits` is missing or empty: a currency without a limit cannot be spent".to_owned());
        }
        let mut payees = std::collections::BTreeMap::new();
        if let Some(section) = file.section("payees")? {
            for name in section.table.keys() {
                let payee = AccountName::parse(name).map_err(|error| format!("`payees.{name}` {error}"))?;
                let table = section.table[name].as_table().ok_or_else(|| format!("`payees.{name}` must be a table"))?;
                payees.insert(payee, self::limits(Section::new(&format!("payees.{name}"), table))?);
            }
        }
        let accounts = lists(file.section("accounts")?, |names| {
            let parse = |name: &&str| AccountName::parse(name).map_err(|error| format!("`{name}` {error}"));
            names.iter().map(parse).collect::<Reading<BTreeSet<_>>>()
        })?;
        let hosts = lists(file.section("hosts")?, |patterns| {
            let parse = |pattern: &&str| HostPattern::parse(pattern).map_err(|error| format!("`{pattern}` {error}"));
            patterns.iter().map(parse).collect::<Reading<Vec<_>>>()
        })?;
        let (approval_above, approval_wait) = approval(file.section("approval")?)?;
        file.end()?;
        let policy = Policy { limits, payees, accounts, hosts, approval_above };
        Ok(Self { account, nodes, key, policy, approval_wait })
    }
}

/// Rejects a policy that another user may change.
fn check_mode(path: &Path) -> Result<(), Error> {
    let file = std::fs::metadata(path).map_err(|error| Error::policy(path, error.to_string()))?;
    let mode = file.mode() & 0o777;
    if mode & 0o022 == 0 {
        return Ok(());
    }
    let why = format!("other users can change it (mode {mode:o}): run `chmod go-w {}`", path.display());
    Err(Error::policy(path, why))
}

fn key(mut section: Section<'_>, directory: &Path) -> Reading<KeySource> {
    let file = section.text("file")?.map(|file| KeySource::File(directory.join(PathBuf::from(file))));
    let variable = section.text("environment")?.map(|name| KeySource::Variable(name.to_owned()));
    let descriptor = match section.integer("descriptor")? {
        None => None,
        Some(number) => {
            let number = u32::try_from(number).map_err(|_| "`key.descriptor` must be a file descriptor".to_owned())?;
            Some(KeySource::Descriptor(number))
        }
    };
    section.end()?;
    let mut named = [file, variable, descriptor].into_iter().flatten();
    match (named.next(), named.next()) {
        (Some(source), None) => Ok(source),
        _ => Err("`key` must have one of `file`, `environment` and `descriptor`".to_owned()),
    }
}

fn limits(mut section: Section<'_>) -> Reading<Limits> {
    let mut limits = Limits::new();
    for period in Period::ALL {
        for money in section.amounts(period.as_str())? {
            limits.insert((period, money.currency), money.units);
        }
    }
    section.end()?;
    Ok(limits)
}

fn lists<T: Default>(section: Option<Section<'_>>, parse: impl Fn(&[&str]) -> Reading<T>) -> Reading<Lists<T>> {
    let Some(mut section) = section else { return Ok(Lists::default()) };
    let mut list = |key: &'static str| {
        let name = section.path(key);
        let entries = section.list(key)?;
        entries.map(|entries| parse(&entries)).transpose().map_err(|why| format!("`{name}`: {why}"))
    };
    let (allow, deny) = (list("allow")?, list("deny")?.unwrap_or_default());
    section.end()?;
    Ok(Lists { allow, deny })
}

fn approval(section: Option<Section<'_>>) -> Reading<(std::collections::BTreeMap<Currency, u64>, Duration)> {
    let Some(mut section) = section else { return Ok(Default::default()) };
    let above = section.amounts("above")?.into_iter().map(|money| (money.currency, money.units)).collect();
    let wait = section.integer("wait_seconds")?.unwrap_or(0);
    section.end()?;
    let wait = u64::try_from(wait).ok().filter(|_| wait <= MAX_WAIT_SECONDS);
    let wait = wait.ok_or_else(|| format!("`approval.wait_seconds` must be 0 to {MAX_WAIT_SECONDS}"))?;
    Ok((above, Duration::from_secs(wait)))
}

/// Returns a policy file for a new wallet.
pub(super) fn sample(account: AccountName, payment: Money, day: Money) -> String {
    format!(
        r#"# What this wallet may pay: docs/reference/wallet.md. Other users must not be able to change this file.

account = "{account}"

# The account's private active key. Without this table: the environment variable HIVETILL_KEY.
# [key]
# file = "active.key"         # mode 600, relative to this directory
# environment = "AGENT_KEY"
# descriptor = 3

# Limits of all payments together. An hour is any 60 minutes, a day any 24 hours, a month any 31 days.
# A currency without a limit cannot be spent. Several currencies: ["1.000 HBD", "5.000 HIVE"]
[limits]
payment = "{payment}"
day = "{day}"

# Further limits of single payees.
# [payees."shop.demo"]
# day = "1.000 HBD"

# Accounts that may receive a transfer, fee accounts included.
# [accounts]
# allow = ["shop.demo"]
# deny = []

# Hosts that may be paid: a name, `*.` and a domain, optionally a port.
# [hosts]
# allow = ["pay.example", "*.shop.example", "127.0.0.1:8080"]
# deny = []

# Amounts above need `hivetill wallet approve ID`. A payment waits so long for it, then it is refused.
# [approval]
# above = "0.500 HBD"
# wait_seconds = 0
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Reading<PolicyFile> {
        PolicyFile::parse(text, Path::new("agent"))
    }

    const LEAST: &str = "account = \"agent.demo\"\n[limits]\nday = \"5.000 HBD\"\n";

    #[test]
    fn a_policy_is_read_whole() {
        let file = parse(
            r#"
            account = "agent.demo"
            nodes = ["https://a.example", "https://b.example"]
            [key]
            file = "active.key"
            [limits]
            payment = ["1.000 HBD", "5.000 HIVE"]
            day = "5.000 HBD"
            [payees."shop.demo"]
            hour = "0.500 HBD"
            [accounts]
            deny = ["bad.actor"]
            [hosts]
            allow = ["*.example", "127.0.0.1:8080"]
            [approval]
            above = "0.500 HBD"
            wait_seconds = 30
            "#,
        );
        let file = file.unwrap();
        assert_eq!((file.account.as_str(), file.nodes.len()), ("agent.demo", 2));
        assert_eq!(file.key, KeySource::File(PathBuf::from("agent/active.key")));
        assert_eq!(file.policy.limits.len(), 3);
        assert_eq!(file.policy.limits[&(Period::Payment, Currency::Hive)], 5_000);
        assert_eq!(file.policy.payees.len(), 1);
        assert_eq!((file.policy.accounts.allow.is_none(), file.policy.accounts.deny.len()), (true, 1));
        assert_eq!(file.policy.hosts.allow.map(|hosts| hosts.len()), Some(2));
        assert_eq!(file.policy.approval_above[&Currency::Hbd], 500);
        assert_eq!(file.approval_wait, Duration::from_secs(30));
        assert_eq!(parse(LEAST).unwrap().key, KeySource::default());
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest_known() {
        let cases = [
            ("acount = \"x\"\n", "`account` is missing"),
            (&format!("limit = 1\n{LEAST}"), "there is no key `limit`: did you mean `limits`?"),
            (&format!("{LEAST}dya = \"1.000 HBD\"\n"), "there is no key `limits.dya`: did you mean `limits.day`?"),
            (
                &format!("{LEAST}week = \"1.000 HBD\"\n"),
                "there is no key `limits.week`; known here: payment, hour, day, month",
            ),
            (&format!("{LEAST}[host]\n"), "there is no key `host`: did you mean `hosts`?"),
            (&format!("{LEAST}[accounts]\nalow = []\n"), "did you mean `accounts.allow`?"),
            (&format!("{LEAST}[approval]\nwait_second = 1\n"), "did you mean `approval.wait_seconds`?"),
            (
                &format!("{LEAST}[payees.\"shop.demo\"]\npyment = \"1.000 HBD\"\n"),
                "did you mean `payees.shop.demo.payment`?",
            ),
            (&format!("{LEAST}[key]\nfil = \"x\"\n"), "did you mean `key.file`?"),
        ];
        for (text, expected) in cases {
            let why = parse(text).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
        }
    }

    #[test]
    fn a_wrong_value_is_refused_with_its_key() {
        let cases = [
            ("account = \"Agent\"\n", "`account` must be"),
            ("account = \"agent.demo\"\n", "`limits` is missing"),
            ("account = \"agent.demo\"\n[limits]\nday = \"5\"\n", "`limits.day`: `5` must look like"),
            ("account = \"agent.demo\"\n[limits]\nday = 5\n", "`limits.day` must be a list of strings"),
            (
                "account = \"agent.demo\"\n[limits]\nday = [\"5.000 HBD\", \"6.000 HBD\"]\n",
                "`limits.day` names HBD twice",
            ),
            (&format!("{LEAST}[accounts]\nallow = [\"Shop\"]\n"), "`accounts.allow`: `Shop` must"),
            (
                &format!("{LEAST}[hosts]\nallow = [\"https://a.example\"]\n"),
                "`hosts.allow`: `https://a.example` must be a host",
            ),
            (&format!("{LEAST}[payees.Shop]\n"), "`payees.Shop` must"),
            (&format!("{LEAST}[key]\nfile = \"x\"\ndescriptor = 3\n"), "`key` must have one of"),
            (&format!("{LEAST}[approval]\nwait_seconds = 3601\n"), "`approval.wait_seconds` must be 0 to 3600"),
            ("account = \"agent.demo\"\naccount = \"agent.demo\"\n", "duplicate key"),
        ];
        for (text, expected) in cases {
            let why = parse(text).unwrap_err();
            assert!(why.contains(expected), "{text}: {why}");
        }
    }

    #[test]
    fn the_sample_is_a_policy_also_with_every_comment_removed() {
        let amount = |text| Money::parse_ledger(text).unwrap();
        let sample = sample(AccountName::parse("agent.demo").unwrap(), amount("1.000 HBD"), amount("5.000 HBD"));
        assert_eq!(parse(&sample).unwrap().policy.limits.len(), 2);
        let settings = sample.lines().skip_while(|line| !line.starts_with("account"));
        let is_prose =
            |line: &&str| line.strip_prefix("# ").is_some_and(|text| !text.starts_with('[') && !text.contains(" = "));
        let settings =
            settings.filter(|line| !is_prose(line) && !line.contains("environment") && !line.contains("descriptor"));
        let text: String = settings.map(|line| format!("{}\n", line.trim_start_matches("# "))).collect();
        let whole = parse(&text).unwrap_or_else(|why| panic!("{why}\n{text}"));
        assert_eq!((whole.policy.payees.len(), whole.policy.approval_above.len()), (1, 1));
    }
}
