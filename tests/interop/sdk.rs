//! The SDKs: their generated code is current, and one list of journeys runs through each, installed from its pack into
//! an empty project with strict type checks.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use libtest_mimic::Trial;
use serde_json::json;

use super::{clients::run, folder, prepare, prepare_python, with};
use crate::{
    harness::{Dev, Relay, shared},
    x402::{json_of, nonce, v1},
};

/// What a shop does, through each client.
const JOURNEYS: [&str; 11] = [
    // The first one, because its transaction expires.
    "a_signed_payment_is_verified_and_settled",
    "a_payment_is_created_paid_and_waited_for",
    "a_creation_whose_response_is_lost_creates_one_payment",
    "a_rate_limit_is_waited_for",
    "a_request_that_is_not_safe_to_repeat_is_not_repeated",
    "lists_are_read_page_after_page",
    "a_refusal_names_the_field",
    "a_webhook_is_verified_in_both_families",
    "a_stream_resumes_without_a_gap",
    "an_unmatched_transfer_is_assigned",
    "keys_and_the_record_of_a_merchant_are_managed",
];

/// The bytes of a response after which a connection of the stream breaks: after the headers and some two events.
const BREAKS_AFTER: usize = 2_000;

/// Returns every test of this file.
pub(super) fn tests() -> Vec<Trial> {
    let title = |name| crate::title(module_path!(), name);
    vec![
        Trial::ignorable_test(title("the_generated_code_of_the_sdks_is_current"), || with(&both(), regenerate)),
        Trial::ignorable_test(title("every_journey_passes_through_the_typescript_sdk"), || with(&node(), typescript)),
        Trial::ignorable_test(title("every_journey_passes_through_the_python_sdk"), || with(&python(), in_python)),
    ]
}

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn sdk() -> PathBuf {
    root().join("api/sdk")
}

/// The virtual environment that generates, checks and packs.
fn bin(program: &str) -> PathBuf {
    root().join("target/sdk/bin").join(program)
}

fn node() -> Option<String> {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    MISSING.get_or_init(|| prepare(&sdk().join("typescript"))).clone()
}

fn python() -> Option<String> {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    let wanted = sdk().join("python/requirements.txt");
    MISSING.get_or_init(|| prepare_python(&root().join("target/sdk"), &wanted)).clone()
}

fn both() -> Option<String> {
    node().or_else(python)
}

/// Generates everything again and compares it with what is committed.
fn regenerate() {
    let work = crate::harness::folder("generated");
    run(Command::new(sdk().join("generate")).arg(&shared().api.base).arg(&work));
    for generated in ["typescript/src/core", "python/src/hivetill/core", "python/src/hivetill/_sync"] {
        let difference = Command::new("diff")
            .args(["-r", "--brief", "--exclude=__pycache__"])
            .args([sdk().join(generated), work.join(generated)])
            .output()
            .expect("diff starts");
        let report = String::from_utf8_lossy(&difference.stdout);
        assert!(difference.status.success(), "run api/sdk/generate beside hivetill dev:\n{report}");
    }
}

fn typescript() {
    let (source, sources) = (sdk().join("typescript"), folder().join("sdk"));
    let work = crate::harness::folder("sdk-typescript");
    // The pack is built in a copy, so that tests that run side by side do not see half of it.
    let build = work.join("build");
    copy(&source, &build, &["node_modules", "dist"]);
    let modules = source.join("node_modules");
    std::os::unix::fs::symlink(&modules, build.join("node_modules")).expect("a link");
    run(Command::new("npm").args(["pack", "--silent", "--pack-destination", ".."]).current_dir(&build));
    let project = work.join("project");
    fs::create_dir(&project).expect("an empty project");
    for file in ["journey.ts", "tsconfig.json"] {
        fs::copy(sources.join(file), project.join(file)).expect("the journey is copied");
    }
    let manifest = json!({ "name": "shop", "private": true, "type": "module" });
    fs::write(project.join("package.json"), manifest.to_string()).expect("the manifest is written");
    let pack = only_file(&work, "tgz");
    let install = ["install", "--offline", "--no-audit", "--no-fund", "--no-save"];
    run(Command::new("npm").args(install).arg(&pack).current_dir(&project));
    let types = modules.join("@types");
    run(Command::new(modules.join(".bin/tsc")).args(["-p", ".", "--typeRoots"]).arg(types).current_dir(&project));
    journeys(Command::new("node").arg("out/journey.js").current_dir(&project));
}

fn in_python() {
    let (source, sources) = (sdk().join("python"), folder().join("sdk"));
    let work = crate::harness::folder("sdk-python");
    let build = work.join("build");
    copy(&source, &build, &["__pycache__"]);
    let wheel = ["wheel", "--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "-w"];
    // The build backend is a program of the environment.
    run(Command::new(bin("python")).args(["-m", "pip"]).args(wheel).args([&work, &build]));
    let project = work.join("project");
    // What the package needs comes from the environment that was prepared; the package from its wheel.
    let packages =
        run(Command::new(bin("python")).args(["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]));
    run(Command::new(bin("python"))
        .args(["-m", "pip", "install", "--quiet", "--no-deps", "--no-index"])
        .args(["--disable-pip-version-check", "--target"])
        .args([&project, &only_file(&work, "whl")]));
    let generator = source.join("generate_sync.py");
    run(Command::new(bin("python")).arg(generator).args([sources.join("_async"), project.join("_sync")]));
    for (form, folder) in [("asynchronous", sources.join("_async")), ("synchronous", project.join("_sync"))] {
        let shop = work.join(form);
        fs::create_dir(&shop).expect("an empty project");
        fs::copy(folder.join("journey.py"), shop.join("journey.py")).expect("the journey is copied");
        fs::copy(sources.join("calls.py"), shop.join("calls.py")).expect("the types are copied");
        let checked = ["--strict", "--no-error-summary", "journey.py", "calls.py"];
        run(Command::new(bin("mypy")).args(checked).env("MYPYPATH", &project).current_dir(&shop));
        let path = format!("{}:{}", project.display(), packages.trim());
        let start = if form == "asynchronous" {
            "import asyncio, journey; asyncio.run(journey.main())"
        } else {
            "import journey; journey.main()"
        };
        let mut python = Command::new("python3");
        python.args(["-W", "error::SyntaxWarning", "-c", start]).env("PYTHONPATH", path).current_dir(&shop);
        journeys(&mut python);
    }
}

/// Runs the journeys as a new merchant, and asserts that each of the list was finished.
#[track_caller]
fn journeys(program: &mut Command) {
    let dev: &Dev = shared();
    let shop = dev.shop().prove();
    let (relay, agent) = (Relay::breaking(&shop.api, BREAKS_AFTER), dev.demo_account("alice"));
    let payment = shop.open_payment();
    let signed = dev.ledger.signed(&agent, &[(&shop.account.name, "1.500 HBD", &payment.memo)]);
    let x402 = json!({ "sessionId": payment.id, "paymentPayload": v1(&json_of(&signed), &nonce()) });
    let printed = run(program
        .env("HIVETILL_API", &shop.api.base)
        .env("HIVETILL_FLAKY_API", relay.url())
        .env("HIVETILL_API_KEY", &shop.key)
        .env("HIVETILL_WEBHOOK_SECRET", &shop.secret)
        .env("HIVETILL_MERCHANT", &shop.id)
        .env("HIVETILL_ACCOUNT", &shop.account.name)
        .env("HIVETILL_CONTROL", &dev.ledger.control.base)
        .env("HIVETILL_X402", x402.to_string()));
    let finished: Vec<&str> = printed.lines().collect();
    assert_eq!(finished, JOURNEYS);
}

/// Copies a directory without the subdirectories of some names.
fn copy(from: &Path, to: &Path, without: &[&str]) {
    fs::create_dir(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory").map(|entry| entry.expect("an entry")) {
        let (path, name) = (entry.path(), entry.file_name());
        if path.is_file() {
            fs::copy(&path, to.join(name)).expect("a file is copied");
        } else if !without.iter().any(|other| name == *other) {
            copy(&path, &to.join(name), without);
        }
    }
}

/// Returns the one file with the given suffix.
#[track_caller]
fn only_file(folder: &Path, suffix: &str) -> PathBuf {
    let files = fs::read_dir(folder).expect("a directory").map(|entry| entry.expect("an entry").path());
    let mut found = files.filter(|path| path.extension().is_some_and(|extension| extension == suffix));
    let file = found.next().unwrap_or_else(|| panic!("no {suffix} in {}", folder.display()));
    assert_eq!(found.next(), None);
    file
}
