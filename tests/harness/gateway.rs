//! Whole gateways to test against: `hivetill dev`, one shared by all who leave it as it is, or one's own.

use std::sync::OnceLock;

use serde_json::{Value, json};

use super::{
    http::Api,
    ledger::{Ledger, Payer},
    process::Process,
    shop::Shop,
    wait::until,
};

/// A running `hivetill dev`.
pub(crate) struct Dev {
    pub(crate) api: Api,
    pub(crate) ledger: Ledger,
    /// What it said of itself.
    pub(crate) said: Value,
    pub(crate) process: Process,
}

/// Ports that the kernel chooses, and blocks that come fast.
pub(crate) const QUICK: [&str; 10] = [
    "--json",
    "--listen",
    "127.0.0.1:0",
    "--ledger-listen",
    "127.0.0.1:0",
    "--grpc-listen",
    "127.0.0.1:0",
    "--block-interval",
    "250ms",
    "--set=ledger.poll_interval_ms=50",
];

/// Returns the gateway that tests share. Whoever uses it registers merchants and accounts of their own and changes
/// nothing that others see: not the chain's time, not its finality, not its node.
pub(crate) fn shared() -> &'static Dev {
    static DEV: OnceLock<Dev> = OnceLock::new();
    DEV.get_or_init(Dev::start)
}

impl Dev {
    /// Starts a gateway of one's own.
    #[track_caller]
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    /// Starts it with further arguments.
    #[track_caller]
    pub(crate) fn with(more: &[&str]) -> Self {
        let args: Vec<&str> = ["dev"].into_iter().chain(QUICK).chain(more.iter().copied()).collect();
        let mut process = Process::start(&args);
        let said = process.ready();
        let text = |member: &str| said[member].as_str().unwrap_or_else(|| panic!("no {member} in {said}"));
        let (api, ledger) = (Api::new(text("api")), Ledger::new(text("ledger"), text("control")));
        let dev = Self { api, ledger, said, process };
        dev.until_ready();
        dev
    }

    /// Waits until the gateway follows its ledger.
    #[track_caller]
    pub(crate) fn until_ready(&self) {
        until_ready(&self.api);
    }

    /// Returns a demo account.
    #[track_caller]
    pub(crate) fn demo_account(&self, name: &str) -> Payer {
        let accounts = self.said["accounts"].as_array().expect("accounts");
        let account = accounts.iter().find(|account| account["name"] == name).expect("the demo account");
        Payer { name: name.to_owned(), key: account["activeKey"].as_str().expect("its key").to_owned() }
    }

    /// Returns the admin's key.
    #[track_caller]
    pub(crate) fn admin_key(&self) -> &str {
        self.said["admin"]["apiKey"].as_str().expect("the admin's key")
    }

    /// Registers a merchant with an account of its own.
    #[track_caller]
    pub(crate) fn shop(&self) -> Shop {
        Shop::open(&self.api, &self.ledger)
    }

    /// Waits until the scanner has read what is irreversible now.
    #[track_caller]
    pub(crate) fn until_scanned(&self) {
        let wanted = self.ledger.order("status", &json!({}))["irreversible"].as_u64().expect("a number");
        until("the scanner to catch up", || {
            let ready = self.api.get("/readyz").send().json();
            (ready["scannedBlock"].as_u64()? >= wanted).then_some(())
        });
    }
}

/// Waits until a gateway says that everything works.
#[track_caller]
pub(crate) fn until_ready(api: &Api) {
    until("the gateway to be ready", || {
        let answer = api.get("/readyz").try_send().ok()?;
        (answer.status == 200).then_some(())
    });
}
