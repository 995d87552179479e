//! Interoperability with unmodified clients of wallets, shops and agents: dhive, hive-tx, wax, hive-nectar, and the
//! official x402 packages with Hivetill's scheme for Hive. They need Node and npm, or Python; without these the tests
//! are ignored with a reason.

mod clients;
mod grpc;
mod mcp;
mod payers;
mod sdk;
mod sellers;
mod shops;

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use libtest_mimic::{Completion, Failed, Trial};
use serde_json::Value;

use crate::harness::{Dev, shared};

const CLIENTS: [&str; 3] = ["dhive", "hive-tx", "wax"];

/// Returns every test of this module.
pub(crate) fn tests() -> Vec<Trial> {
    let pays = CLIENTS.map(|client| {
        let title = format!("a_payment_by_{}_completes", client.replace('-', "_"));
        Trial::ignorable_test(crate::title(module_path!(), &title), move || with_node(|| pay(client)))
    });
    let suite = crate::title(module_path!(), "the_clients_read_and_pay_the_dev_ledger_as_their_own");
    let suite = Trial::ignorable_test(suite, || with_node(run_suite));
    let nectar = crate::title(module_path!(), "hive_nectar_pays_and_reads_its_history");
    let nectar = Trial::ignorable_test(nectar, || with(&prepare_nectar(), pay_with_nectar));
    let x402 = X402_MODES.map(|(title, settings)| {
        let title = crate::title(module_path!(), title);
        Trial::ignorable_test(title, move || with_x402(|| run_x402_suite(settings)))
    });
    pays.into_iter()
        .chain([suite, nectar])
        .chain(x402)
        .chain(clients::tests())
        .chain(grpc::tests())
        .chain(shops::tests())
        .chain(sellers::tests())
        .chain(mcp::tests())
        .chain(payers::tests())
        .chain(sdk::tests())
        .collect()
}

/// The official x402 packages against gateways in fee modes with one and with two transfers.
const X402_MODES: [(&str, &[&str]); 2] = [
    ("the_official_x402_packages_pay_settle_and_sell", &[]),
    (
        "the_official_x402_packages_pay_a_collected_fee_too",
        &["--set=fees.mode=split", "--set=fees.account=hivetill.fees"],
    ),
];

/// Runs a test if Node is installed, otherwise ignores it with a reason.
fn with_node(test: impl FnOnce()) -> Result<Completion, Failed> {
    with(&prepare_clients(), test)
}

/// Installs the npm packages of the clients; returns what is missing.
pub(crate) fn prepare_clients() -> Option<String> {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    MISSING.get_or_init(|| prepare(&folder())).clone()
}

fn with_x402(test: impl FnOnce()) -> Result<Completion, Failed> {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    with(MISSING.get_or_init(|| prepare(&scheme())), test)
}

fn with(missing: &Option<String>, test: impl FnOnce()) -> Result<Completion, Failed> {
    match missing {
        Some(why) => Ok(Completion::ignored_with(why)),
        None => {
            test();
            Ok(Completion::Completed)
        }
    }
}

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/interop"))
}

/// The package of the x402 scheme for Hive.
fn scheme() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/x402-hive"))
}

/// Installs the packages of a directory; returns what is missing.
fn prepare(folder: &Path) -> Option<String> {
    let version = |program: &str| {
        let output = Command::new(program).arg("--version").output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().trim_start_matches('v').to_owned())
    };
    let Some(node) = version("node") else { return Some("node is not installed".to_owned()) };
    let major: u32 = node.split('.').next().and_then(|major| major.parse().ok()).unwrap_or(0);
    if major < 20 {
        return Some(format!("node {node} is too old; 20 is needed"));
    }
    // npm writes this file last, so that its presence means a complete installation; its age is compared with the
    // manifest.
    let age = |path: &str| std::fs::metadata(folder.join(path)).and_then(|file| file.modified()).ok();
    if age("node_modules/.package-lock.json") >= age("package-lock.json") {
        return None;
    }
    if version("npm").is_none() {
        return Some("npm is not installed".to_owned());
    }
    let install = ["ci", "--no-audit", "--no-fund", "--ignore-scripts"];
    let done = Command::new("npm").args(install).current_dir(folder).stdin(Stdio::null()).output();
    match done {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let report = String::from_utf8_lossy(&output.stderr).into_owned();
            Some(format!("`npm ci` failed: {}", report.lines().next().unwrap_or_default()))
        }
        Err(error) => Some(format!("npm does not start: {error}")),
    }
}

/// The directory of the Python clients.
fn python() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/nectar"))
}

/// Installs hive-nectar; returns what is missing.
fn prepare_nectar() -> Option<String> {
    prepare_python(&python(), &folder().join("requirements.txt"))
}

/// Installs a requirements file into a virtual environment; returns what is missing.
fn prepare_python(python: &Path, wanted: &Path) -> Option<String> {
    let done = python.join("requirements.txt");
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    if read(&done).is_some() && read(&done) == read(wanted) {
        return None;
    }
    let run = |program: &Path, args: &[&str]| {
        let output = Command::new(program).args(args).stdin(Stdio::null()).output();
        match output {
            Ok(output) if output.status.success() => None,
            Ok(output) => {
                let report = String::from_utf8_lossy(&output.stderr).into_owned();
                Some(format!("`{}` failed: {}", program.display(), report.lines().last().unwrap_or_default()))
            }
            Err(error) => Some(format!("`{}` does not start: {error}", program.display())),
        }
    };
    let (at, list) = (python.display().to_string(), wanted.display().to_string());
    let missing = run(Path::new("python3"), &["-m", "venv", &at])
        .or_else(|| run(&python.join("bin/pip"), &["install", "--quiet", "--disable-pip-version-check", "-r", &list]));
    // Copied last: its presence means a complete installation.
    missing.or_else(|| std::fs::copy(wanted, &done).err().map(|error| error.to_string()))
}

/// Pays and reads with hive-nectar, which stops using a node at the first missing method.
fn pay_with_nectar() {
    let dev: &Dev = shared();
    let (shop, carol) = (dev.shop(), dev.demo_account("carol"));
    let payment = shop.open_payment();
    let output = Command::new(python().join("bin/python"))
        .arg(folder().join("hive_nectar.py"))
        .args(["--rpc", &dev.ledger.rpc.base, "--from", "carol", "--to", &shop.account.name])
        .args(["--amount", "1.500", "--currency", "HBD", "--memo", &payment.memo])
        .env("HIVETILL_KEY", &carol.key)
        // It stores its settings in the home directory.
        .env("HOME", crate::harness::folder("nectar"))
        .stdin(Stdio::null())
        .output()
        .expect("python starts");
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{report}\n{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_str(report.trim()).expect("one line of JSON");
    let done = shop.until_status(&payment.id, "completed");
    assert_eq!(done["internalId"], report["txId"], "the client and we call the transaction the same");
    let amount = serde_json::json!({ "amount": "1500", "nai": "@@000000013", "precision": 3 });
    let entry = serde_json::json!({ "to": shop.account.name, "amount": amount, "txId": report["txId"] });
    assert_eq!(report["history"], serde_json::json!([entry]), "{report}");
    assert_eq!(report["onlyTransfers"], serde_json::json!(["transfer"]), "{report}");
    assert_eq!((&report["fund"], &report["witnesses"]), (&"post".into(), &21.into()), "{report}");
    assert!(report["head"].as_u64() > Some(0), "{report}");
}

fn pay(client: &str) {
    let dev: &Dev = shared();
    let (shop, alice) = (dev.shop(), dev.demo_account("alice"));
    let payment = shop.open_payment();
    let output = Command::new("node")
        .args(["run.mjs", "--client", client, "--rpc", &dev.ledger.rpc.base, "--from", "alice", "--wif", &alice.key])
        .args(["--to", &shop.account.name, "--amount", "1.500 HBD", "--memo", &payment.memo])
        .current_dir(folder())
        .stdin(Stdio::null())
        .output()
        .expect("node starts");
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{client}: {report}\n{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_str(report.trim()).expect("one line of JSON");
    let done = shop.until_status(&payment.id, "completed");
    assert_eq!(done["internalId"], report["txId"], "{client} and we call the transaction the same");
    assert_eq!(done["amountPaid"], "1500");
}

/// Runs the directory's own tests.
fn run_suite() {
    let dev = shared();
    let mut node = Command::new("node");
    node.args(["--test", "interop.test.mjs"])
        .env("HIVETILL_RPC", &dev.ledger.rpc.base)
        .env("HIVETILL_FROM", "bob")
        .env("HIVETILL_KEY", dev.demo_account("bob").key)
        .env("HIVETILL_TO", "shop.demo")
        .current_dir(folder());
    all_pass(node);
}

/// Runs the tests of the x402 scheme against a gateway.
fn run_x402_suite(settings: &[&str]) {
    let dev = Dev::with(settings);
    let mut node = Command::new("node");
    node.arg("--test")
        .env("HIVETILL_API", &dev.api.base)
        .env("HIVETILL_RPC", &dev.ledger.rpc.base)
        .env("HIVETILL_CONTROL", &dev.ledger.control.base)
        .env("HIVETILL_API_KEY", dev.startup["merchant"]["apiKey"].as_str().expect("a key"))
        .env("HIVETILL_ACCOUNT", "alice")
        .env("HIVETILL_KEY", dev.demo_account("alice").key)
        .env("HIVETILL_TO", "shop.demo")
        .current_dir(scheme());
    all_pass(node);
}

/// Runs Node's tests and asserts that there are some, that all pass, and that none is skipped.
#[track_caller]
fn all_pass(mut node: Command) {
    let output = node.stdin(Stdio::null()).output().expect("node starts");
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{report}\n{}", String::from_utf8_lossy(&output.stderr));
    let counts = |word: &str| {
        let line = report.lines().find_map(|line| line.trim_start_matches(['#', 'ℹ', ' ']).strip_prefix(word));
        line.and_then(|count| count.trim().parse::<u32>().ok())
    };
    assert!(counts("pass ").is_some_and(|passed| passed > 0), "{report}");
    assert_eq!(counts("skipped "), Some(0), "{report}");
}
