//! Clients generated from the OpenAPI description by @hey-api/openapi-ts and openapi-python-client without a warning,
//! and a shop's requests with each.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use libtest_mimic::Trial;

use super::{folder, prepare, prepare_python, with};
use crate::harness::shared;

/// Returns every test of this file.
pub(super) fn tests() -> Vec<Trial> {
    let title = |name| crate::title(module_path!(), name);
    vec![
        Trial::ignorable_test(title("a_typescript_client_is_generated_and_serves_a_shop"), || {
            with(&node(), typescript)
        }),
        Trial::ignorable_test(title("a_python_client_is_generated_and_serves_a_shop"), || with(&python(), in_python)),
        Trial::ignorable_test(title("the_description_is_valid_openapi"), || with(&python(), validate)),
    ]
}

/// The directory of the journeys and of the npm generators.
fn sources() -> PathBuf {
    folder().join("clients")
}

/// The virtual environment of the PyPI generators.
fn environment() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/clients"))
}

fn node() -> Option<String> {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    MISSING.get_or_init(|| prepare(&sources())).clone()
}

pub(super) fn python() -> Option<String> {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    MISSING.get_or_init(|| prepare_python(&environment(), &sources().join("requirements.txt"))).clone()
}

/// Writes the description into a new directory.
fn described(name: &str) -> PathBuf {
    let work = crate::harness::folder(name);
    let document = shared().api.get("/openapi.json").send();
    std::fs::write(work.join("openapi.json"), &document.body).expect("the description is written");
    work
}

fn typescript() {
    let (work, modules) = (described("typescript"), sources().join("node_modules"));
    let program = |name: &str| modules.join(".bin").join(name);
    for file in ["journey.ts", "tsconfig.json", "package.json"] {
        std::fs::copy(sources().join(file), work.join(file)).expect("the journey is copied");
    }
    std::os::unix::fs::symlink(&modules, work.join("node_modules")).expect("a link");
    let report = run(Command::new(program("openapi-ts"))
        .args(["-i", "openapi.json", "-o", "generated", "-c", "@hey-api/client-fetch"])
        .current_dir(&work));
    no_warning(&report);
    run(Command::new(program("tsc")).args(["-p", "."]).current_dir(&work));
    day(Command::new("node").arg("out/journey.js"), &work);
}

fn in_python() {
    let (work, bin) = (described("python"), environment().join("bin"));
    std::fs::write(work.join("generator.yml"), "post_hooks: []\n").expect("the configuration is written");
    let arguments = ["generate", "--path", "openapi.json", "--output-path", "generated", "--meta", "none"];
    let report = run(Command::new(bin.join("openapi-python-client"))
        .args(arguments)
        .args(["--config", "generator.yml", "--fail-on-warning"])
        .current_dir(&work));
    no_warning(&report);
    let journey = sources().join("journey.py");
    // A warning of the interpreter about the generated code is a failure.
    day(Command::new(bin.join("python")).args(["-W", "error::SyntaxWarning"]).arg(journey).arg(&work), &work);
}

fn validate() {
    let work = described("validated");
    run(Command::new(environment().join("bin/openapi-spec-validator")).arg("openapi.json").current_dir(&work));
}

/// Runs a journey as a new merchant.
#[track_caller]
fn day(command: &mut Command, work: &Path) {
    let shop = shared().shop();
    let command = command.env("HIVETILL_API", &shop.api.base).env("HIVETILL_API_KEY", &shop.key).current_dir(work);
    assert_eq!(run(command).trim(), "ok");
}

/// Runs a program that must succeed, and returns its output.
#[track_caller]
pub(super) fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().expect("the program starts");
    let report = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {report}");
    report
}

#[track_caller]
fn no_warning(report: &str) {
    let lower = report.to_lowercase();
    assert!(!["warn", "skipp", "omitted", "⚠"].iter().any(|word| lower.contains(word)), "{report}");
}
