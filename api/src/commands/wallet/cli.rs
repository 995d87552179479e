//! The subcommands of `hivetill wallet`.

use std::{
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
};

use actors::{environment::Clock as _, system::SystemClock};
use engine::{account::AccountName, money::Money, wallet::State};
use serde_json::{Value, json};

use super::{Error, Wallet, entry::Entry, policy_file};
use crate::commands::{failure::Failure, files, output};

#[derive(Debug, clap::Args)]
pub(in crate::commands) struct Args {
    /// The wallet's directory
    #[arg(long, value_name = "DIR", env = "HIVETILL_WALLET", global = true, default_value = "hivetill-wallet")]
    dir: PathBuf,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Create a wallet: a directory with a policy to edit
    Init {
        /// Hive account that pays
        #[arg(long, value_name = "ACCOUNT")]
        account: AccountName,
        /// Maximum amount of one payment
        #[arg(long, value_name = "AMOUNT", default_value = "1.000 HBD", value_parser = Money::parse_ledger)]
        payment: Money,
        /// Maximum amount of any 24 hours
        #[arg(long, value_name = "AMOUNT", default_value = "5.000 HBD", value_parser = Money::parse_ledger)]
        day: Money,
    },
    /// Show budgets, payments with an open outcome, and payments that await approval
    Status,
    /// List payments, the newest first
    History {
        /// Maximum number of payments
        #[arg(long, value_name = "COUNT", default_value_t = 20)]
        limit: usize,
    },
    /// Show each limit with the amounts used and left
    Limits,
    /// Show one payment with its receipt
    Show {
        /// Number of the payment
        id: u64,
    },
    /// Approve a payment above the approval threshold; repeat the request to pay
    Approve {
        /// Number of the payment
        id: u64,
    },
    /// Deny a payment above the approval threshold, for 24 hours
    Deny {
        /// Number of the payment
        id: u64,
    },
    /// Look up payments with an open outcome on the ledger, and release the amounts of expired ones
    Reconcile {
        /// Ledger node; by default those of the policy, or the setting ledger.nodes
        #[arg(long = "node", value_name = "URL")]
        nodes: Vec<String>,
    },
}

/// Number of entries that are searched for those that await approval.
const SEARCHED: usize = 1_000;

/// Runs a subcommand.
///
/// # Errors
/// [`Failure`]: of the policy, the ledger or the nodes.
pub(in crate::commands) async fn run(args: Args) -> Result<(), Failure> {
    let report = match args.action {
        Action::Init { account, payment, day } => init(&args.dir, account, payment, day)?,
        action => {
            let wallet = Wallet::open(&args.dir).map_err(failure)?;
            act(&wallet, action).await?
        }
    };
    let text = if args.json { format!("{}\n", report.json) } else { report.text };
    output::print(&text)
}

/// The output of a subcommand.
struct Report {
    json: Value,
    text: String,
}

async fn act(wallet: &Wallet, action: Action) -> Result<Report, Failure> {
    let store = &wallet.store;
    let now = SystemClock.now();
    match action {
        Action::Init { .. } => unreachable!("a wallet is created before it is opened"),
        Action::Status => status(wallet).await,
        Action::Limits => {
            let usage = usage(wallet).await?;
            Ok(Report { text: table(&usage), json: json!({ "limits": usage }) })
        }
        Action::History { limit } => {
            let entries = store.newest(limit).await.map_err(failure)?;
            let json = json!({ "payments": entries.iter().map(Entry::describe).collect::<Vec<_>>() });
            Ok(Report { text: entries.iter().map(line).collect(), json })
        }
        Action::Show { id } => {
            let receipt = store.entry(id).await.map_err(failure)?.receipt();
            let text = serde_json::to_string_pretty(&receipt).unwrap_or_default();
            Ok(Report { text: format!("{text}\n"), json: receipt })
        }
        Action::Approve { id } => decided(store.decide(id, true, now).await),
        Action::Deny { id } => decided(store.decide(id, false, now).await),
        Action::Reconcile { nodes } => {
            let ledger = wallet.ledger(&nodes, None)?;
            let mut changed = Vec::new();
            for entry in store.open_entries().await.map_err(failure)? {
                let before = entry.state;
                let entry = wallet.look_up(&ledger, entry).await?;
                if entry.state != before {
                    changed.push(entry);
                }
            }
            let open = store.open_entries().await.map_err(failure)?.len();
            let json = json!({ "changed": changed.iter().map(Entry::describe).collect::<Vec<_>>(), "open": open });
            let lines: String = changed.iter().map(line).collect();
            Ok(Report { text: format!("{lines}{} changed, {open} open\n", changed.len()), json })
        }
    }
}

fn decided(entry: Result<Entry, Error>) -> Result<Report, Failure> {
    let entry = entry.map_err(failure)?;
    Ok(Report { text: line(&entry), json: entry.describe() })
}

fn init(directory: &Path, account: AccountName, payment: Money, day: Money) -> Result<Report, Failure> {
    let path = directory.join(policy_file::FILE);
    if path.exists() {
        return Err(failure(Error::Exists(directory.to_owned())));
    }
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|error| Failure::of_file(directory, &error))?;
    files::write_private(&path, &policy_file::sample(account, payment, day))?;
    let text =
        format!("created {}: edit it, and set HIVETILL_KEY to the private active key of {account}\n", path.display());
    Ok(Report { text, json: json!({ "policy": path.display().to_string(), "account": account.as_str() }) })
}

/// Returns the status of a wallet, as `status` prints it.
async fn status(wallet: &Wallet) -> Result<Report, Failure> {
    let json = describe(wallet).await?;
    let entries = |member: &str| -> String {
        let entries = json[member].as_array().into_iter().flatten();
        entries.map(|entry| format!("  {}\n", text_line(entry))).collect()
    };
    let limits = json["limits"].as_array().cloned().unwrap_or_default();
    let mut text = format!("account {}\n{}", wallet.account(), table(&limits));
    for (member, title) in [("open", "open outcome"), ("awaitingApproval", "awaiting approval")] {
        let entries = entries(member);
        if !entries.is_empty() {
            text.push_str(&format!("{title}:\n{entries}"));
        }
    }
    Ok(Report { text, json })
}

/// Returns account, limits with usage, open payments and those that await approval.
pub(in crate::commands) async fn describe(wallet: &Wallet) -> Result<Value, Failure> {
    let store = &wallet.store;
    let open = store.open_entries().await.map_err(failure)?;
    let awaiting = store.newest(SEARCHED).await.map_err(failure)?;
    let awaiting = awaiting.iter().filter(|entry| entry.state == State::AwaitingApproval).map(Entry::describe);
    Ok(json!({
        "account": wallet.account().as_str(),
        "limits": usage(wallet).await?,
        "open": open.iter().map(Entry::describe).collect::<Vec<_>>(),
        "awaitingApproval": awaiting.collect::<Vec<_>>(),
    }))
}

async fn usage(wallet: &Wallet) -> Result<Vec<Value>, Failure> {
    let (past, now) = wallet.store.counted(SystemClock.now()).await.map_err(failure)?;
    let usage = wallet.policy().usage(&past, now);
    let row = usage.iter().map(|usage| {
        json!({
            "payee": usage.payee.map(|payee| payee.to_string()),
            "per": usage.period.as_str(),
            "limit": usage.limit.to_string(),
            "used": usage.used.to_string(),
            "remaining": usage.remaining().to_string(),
        })
    });
    Ok(row.collect())
}

fn table(limits: &[Value]) -> String {
    let text = |row: &Value, member: &str| row[member].as_str().unwrap_or_default().to_owned();
    let line = |row: &Value| {
        let payee = row["payee"].as_str().map(|payee| format!(" to {payee}")).unwrap_or_default();
        let (limit, used, left) = (text(row, "limit"), text(row, "used"), text(row, "remaining"));
        format!("{:>8} {limit:>16}  used {used:>16}  left {left:>16}{payee}\n", text(row, "per"))
    };
    limits.iter().map(line).collect()
}

fn line(entry: &Entry) -> String {
    format!("{}\n", text_line(&entry.describe()))
}

fn text_line(entry: &Value) -> String {
    let text = |member: &str| entry[member].as_str().unwrap_or_default();
    format!(
        "{:>5}  {}  {:<17} {:>16} to {:<16} {} {:?}",
        entry["id"],
        text("createdAt"),
        text("state"),
        text("amount"),
        text("payTo"),
        text("method"),
        text("url")
    )
}

/// A policy that cannot be used is an invalid setting.
fn failure(error: Error) -> Failure {
    match error {
        Error::Policy { .. } | Error::Missing(_) => Failure::Policy(error.to_string()),
        other => Failure::Other(other.to_string()),
    }
}
