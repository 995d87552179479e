//! An agent with a wallet, as scripts run it.

use std::{
    os::unix::process::ExitStatusExt as _,
    path::PathBuf,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::harness::{Dev, Ledger, Payer, folder};

/// The initial balance of a new account of the development ledger, in thousandths.
const ENDOWMENT: u64 = 1_000_000_000;

/// An agent: a wallet's directory and the paying account.
pub(crate) struct Agent {
    pub(crate) directory: PathBuf,
    pub(crate) payer: Payer,
    pub(crate) ledger: Ledger,
}

/// The exit status and output of a command.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The exit code; none after a signal.
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) json: Value,
    pub(crate) stderr: String,
}

impl Agent {
    /// Creates a wallet with these limits and sections.
    #[track_caller]
    pub(crate) fn new(dev: &Dev, policy: &str) -> Self {
        let (directory, payer) = (folder("agent"), dev.ledger.account("agent"));
        let agent = Self { directory, payer, ledger: dev.ledger.clone() };
        agent.set_policy(policy);
        agent
    }

    /// Replaces the policy.
    pub(crate) fn set_policy(&self, policy: &str) {
        let Self { payer, ledger, .. } = self;
        let text = format!("account = \"{}\"\nnodes = [\"{}\"]\n{policy}", payer.name, ledger.rpc.base);
        std::fs::write(self.directory.join("wallet.toml"), text).expect("the policy is written");
    }

    /// Returns the command `hivetill pay` with the wallet.
    pub(crate) fn pay_command(&self, url: &str, more: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hivetill"));
        let directory = self.directory.to_str().expect("a path");
        command.env_clear().env("HIVETILL_KEY", &self.payer.key).stdin(Stdio::null());
        command.args(["pay", url, "--wallet", directory]).args(more);
        command
    }

    #[track_caller]
    pub(crate) fn pay(&self, url: &str, more: &[&str]) -> Ended {
        run(self.pay_command(url, more))
    }

    /// Runs a subcommand of `hivetill wallet`.
    #[track_caller]
    pub(crate) fn wallet(&self, action: &[&str]) -> Ended {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hivetill"));
        let directory = self.directory.to_str().expect("a path");
        command.env_clear().args(["wallet", "--dir", directory, "--json"]).args(action).stdin(Stdio::null());
        run(command)
    }

    /// Returns the used amount of the largest window of HBD, in thousandths.
    #[track_caller]
    pub(crate) fn used(&self) -> u64 {
        let limits = self.wallet(&["limits"]).json;
        let rows = limits["limits"].as_array().expect("limits");
        let rows = rows.iter().filter(|row| row["payee"].is_null() && row["per"] != "payment");
        rows.map(|row| units(row["used"].as_str().expect("an amount"))).max().expect("a limit")
    }

    /// Returns the amount that left the account in HBD, in thousandths.
    #[track_caller]
    pub(crate) fn charged(&self) -> u64 {
        let accounts = self.ledger.call("condenser_api.get_accounts", &json!([[self.payer.name]]));
        let accounts = accounts.expect("the node responds");
        ENDOWMENT - units(accounts[0]["hbd_balance"].as_str().expect("a balance"))
    }
}

/// Parses `1.500 HBD` as thousandths.
pub(crate) fn units(text: &str) -> u64 {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    digits.parse().expect("an amount")
}

#[track_caller]
pub(crate) fn run(mut command: Command) -> Ended {
    let output = command.output().expect("the binary starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    let json = serde_json::from_str(stdout.trim()).unwrap_or(Value::Null);
    Ended { code: output.status.code(), signal: output.status.signal(), json, stderr }
}
