//! Whole gateways to test against: `hivetill dev`, one that tests share or a separate one; and the same as separate
//! processes.

use std::{
    path::{Path, PathBuf},
    sync::OnceLock,
};

use serde_json::{Value, json};

use super::{
    described,
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
    /// The line that it printed at its start.
    pub(crate) startup: Value,
    pub(crate) process: Process,
}

/// Ports chosen by the kernel, and a short block interval.
const QUICK: [&str; 10] = [
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

/// Returns the gateway that tests share. A test that uses it registers merchants and accounts of its own and changes
/// nothing that affects others: neither the chain's time, nor its finality, nor its node.
pub(crate) fn shared() -> &'static Dev {
    static DEV: OnceLock<Dev> = OnceLock::new();
    DEV.get_or_init(|| described::unjudged(Dev::start))
}

impl Dev {
    /// Starts a separate gateway.
    #[track_caller]
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    /// Starts it with further arguments.
    #[track_caller]
    pub(crate) fn with(more: &[&str]) -> Self {
        let args: Vec<&str> = ["dev"].into_iter().chain(QUICK).chain(more.iter().copied()).collect();
        let mut process = Process::start(&args);
        let startup = process.ready();
        let text = |member: &str| startup[member].as_str().unwrap_or_else(|| panic!("no {member} in {startup}"));
        let (api, ledger) = (Api::new(text("api")), Ledger::new(text("ledger"), text("control")));
        let dev = Self { api, ledger, startup, process };
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
        demo_account(&self.startup, name)
    }

    /// Returns the admin's key.
    #[track_caller]
    pub(crate) fn admin_key(&self) -> &str {
        self.startup["admin"]["apiKey"].as_str().expect("the admin's key")
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

/// Waits until a gateway reports that it is ready.
#[track_caller]
pub(crate) fn until_ready(api: &Api) {
    until("the gateway to be ready", || {
        let response = api.get("/readyz").try_send().ok()?;
        (response.status == 200).then_some(())
    });
}

/// The development ledger alone.
pub(crate) struct LedgerProcess {
    pub(crate) ledger: Ledger,
    pub(crate) process: Process,
    /// The URLs of its nodes.
    pub(crate) nodes: Vec<String>,
    startup: Value,
}

impl LedgerProcess {
    /// Starts a ledger that keeps its chain in `state`. Its node listens at `address`.
    #[track_caller]
    pub(crate) fn start(state: &Path, address: &str) -> Self {
        Self::with_nodes(state, &[address])
    }

    /// Starts a ledger with a node at each of these addresses.
    #[track_caller]
    pub(crate) fn with_nodes(state: &Path, addresses: &[&str]) -> Self {
        let state = state.to_str().expect("a path");
        let fixed =
            ["ledger", "--json", "--control-listen", "127.0.0.1:0", "--block-interval", "250ms", "--state", state];
        let listen = addresses.iter().flat_map(|address| ["--listen", *address]);
        let args: Vec<&str> = fixed.into_iter().chain(listen).collect();
        let mut process = Process::start(&args);
        let startup = process.ready();
        let text = |member: &str| startup[member].as_str().unwrap_or_else(|| panic!("no {member} in {startup}"));
        let nodes = startup["nodes"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let nodes = nodes.map(str::to_owned).collect();
        Self { ledger: Ledger::new(text("ledger"), text("control")), process, nodes, startup }
    }

    /// Returns a demo account.
    #[track_caller]
    pub(crate) fn demo_account(&self, name: &str) -> Payer {
        demo_account(&self.startup, name)
    }
}

/// A gateway of separate processes over a ledger: `serve`, or `engine` and `facade`.
pub(crate) struct Serve {
    pub(crate) api: Api,
    pub(crate) process: Process,
}

/// The settings under which such a gateway follows the dev ledger as `dev` does.
const AS_DEV: [&str; 5] = [
    "--set=ledger.block_interval_ms=250",
    "--set=ledger.poll_interval_ms=50",
    "--set=webhooks.allow_insecure=true",
    "--set=fees.percent=1.5",
    "--set=limits.profile=off",
];

impl Serve {
    /// Starts `serve` on a data directory and waits until it follows the ledger.
    #[track_caller]
    pub(crate) fn start(data: &Path, ledger: &Ledger) -> Self {
        let serve = Self::start_unready(data, ledger);
        until_ready(&serve.api);
        serve
    }

    /// Starts `serve` and waits only until it listens.
    #[track_caller]
    pub(crate) fn start_unready(data: &Path, ledger: &Ledger) -> Self {
        Self::listening(Process::start(&Self::args(data, ledger, &[])))
    }

    /// Starts `serve` with further arguments and waits until it follows the ledger.
    #[track_caller]
    pub(crate) fn with(data: &Path, ledger: &Ledger, more: &[&str]) -> Self {
        let serve = Self::listening(Process::start(&Self::args(data, ledger, more)));
        until_ready(&serve.api);
        serve
    }

    fn listening(mut process: Process) -> Self {
        let address = process.log_after("listening on ");
        Self { api: Api::new(&format!("http://{address}")), process }
    }

    /// Starts `serve` over several nodes and waits until it follows the ledger.
    #[track_caller]
    pub(crate) fn over(data: &Path, nodes: &[String], more: &[&str]) -> Self {
        let mut args = Self::args(data, &Ledger::new(&nodes[0], ""), more);
        args.extend(nodes[1..].iter().map(|node| format!("--node={node}")));
        let mut process = Process::start(&args);
        let api = Api::new(&format!("http://{}", process.log_after("listening on ")));
        until_ready(&api);
        Self { api, process }
    }

    /// Returns the command line of `serve`.
    pub(crate) fn args(data: &Path, ledger: &Ledger, more: &[&str]) -> Vec<String> {
        let init: &[&str] = if data.join("hivetill.redb").exists() { &[] } else { &["--init"] };
        let data = data.to_str().expect("a path");
        let fixed =
            ["serve", "--network", "dev", "--listen", "127.0.0.1:0", "--data", data, "--node", &ledger.rpc.base];
        fixed.iter().chain(&AS_DEV).chain(init).chain(more).map(|arg| (*arg).to_owned()).collect()
    }
}

/// A gateway of two processes.
pub(crate) struct Split {
    pub(crate) api: Api,
    pub(crate) grpc: String,
    pub(crate) data: PathBuf,
    pub(crate) engine: Process,
    pub(crate) facade: Process,
}

impl Split {
    #[track_caller]
    pub(crate) fn start(data: &Path, ledger: &Ledger) -> Self {
        let (engine, grpc) = Self::engine(data, ledger, "127.0.0.1:0");
        let token = std::fs::read_to_string(data.join("grpc-token")).expect("the engine's token");
        let url = format!("--engine-url={grpc}");
        let token = format!("--set=grpc.token={}", token.trim());
        let mut facade =
            Process::start(&["facade", "--listen", "127.0.0.1:0", "--set=limits.profile=off", &url, &token]);
        let address = facade.log_after("listening on ");
        let api = Api::new(&format!("http://{address}"));
        until_ready(&api);
        Self { api, grpc, data: data.to_owned(), engine, facade }
    }

    /// Starts the engine alone; returns its process and the URL of its port.
    #[track_caller]
    pub(crate) fn engine(data: &Path, ledger: &Ledger, address: &str) -> (Process, String) {
        Self::engine_with(data, ledger, address, &[])
    }

    /// The same with further arguments.
    #[track_caller]
    pub(crate) fn engine_with(data: &Path, ledger: &Ledger, address: &str, more: &[&str]) -> (Process, String) {
        let mut args = Serve::args(data, ledger, &[&["--grpc-listen", address], more].concat());
        args[0] = "engine".to_owned();
        // The engine has no REST port.
        let listen = args.iter().position(|arg| arg == "--listen").expect("there");
        args.drain(listen..listen + 2);
        let mut engine = Process::start(&args);
        let address = engine.log_after("gRPC port is ");
        (engine, format!("http://{address}"))
    }

    /// Returns the token of the engine's port.
    pub(crate) fn token(&self) -> String {
        let token = std::fs::read_to_string(self.data.join("grpc-token")).expect("the engine's token");
        token.trim().to_owned()
    }
}

#[track_caller]
fn demo_account(startup: &Value, name: &str) -> Payer {
    let accounts = startup["accounts"].as_array().expect("accounts");
    let account = accounts.iter().find(|account| account["name"] == name).expect("the demo account");
    Payer { name: name.to_owned(), key: account["activeKey"].as_str().expect("its key").to_owned() }
}
