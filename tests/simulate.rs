//! `hivetill simulate` as a tester runs it: its exit codes, and what is rejected before a run.

use std::process::{Command, Output};

use crate::harness::until;

crate::tests!(
    the_library_runs_and_a_failed_expectation_fits_on_one_screen,
    a_malformed_scenario_names_file_line_and_field,
    an_unwritable_report_fails_before_the_run,
    a_development_build_detects_its_mutants_and_a_release_build_has_none,
    a_seed_has_the_same_trace_here_and_in_a_new_process,
    a_campaign_ends_cleanly_on_sigterm,
    clients_of_the_facade_see_no_violation,
    a_seed_with_clients_of_the_facade_has_the_same_trace_every_time,
    a_development_build_detects_the_mutants_of_the_facade,
);

fn simulate(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hivetill"));
    command.env_clear().arg("simulate").args(arguments).output().expect("the binary starts")
}

fn report(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

const SCENARIO: &str = r#"name = "One payment"
steps = [
  { at = "1m", who = "merchant 0", does = "create", session = "A", amount = "10.000 HBD" },
  { at = "2m", who = "payer 0", does = "pay", session = "A", amount = "10.000 HBD" },
]
"#;

fn the_library_runs_and_a_failed_expectation_fits_on_one_screen() {
    let folder = tempfile::tempdir().unwrap();
    let (good, bad, page) = (folder.path().join("good"), folder.path().join("bad"), folder.path().join("page.html"));
    std::fs::write(&good, format!("{SCENARIO}[expect]\nA = {{ state = [\"completed\"] }}\n")).unwrap();
    std::fs::write(&bad, format!("{SCENARIO}[expect]\nA = {{ state = [\"failed\"] }}\n")).unwrap();
    let output = simulate(&["run", good.to_str().unwrap()]);
    assert_eq!((output.status.code(), report(&output).as_str()), (Some(0), "ok      One payment\n"));
    let output = simulate(&["run", bad.to_str().unwrap(), "--html", page.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(10), "{}", report(&output));
    for part in ["BROKEN  expected", "it is completed, expected failed", "replay  hivetill simulate run", "--seed 0"] {
        assert!(report(&output).contains(part), "{}", report(&output));
    }
    assert!(report(&output).lines().count() <= 40, "{}", report(&output));
    assert!(std::fs::read_to_string(&page).unwrap().contains("breaks here"));
}

fn a_malformed_scenario_names_file_line_and_field() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.toml");
    std::fs::write(&file, SCENARIO.replace("at = \"2m\"", "at = \"-2m\"")).unwrap();
    let output = simulate(&["run", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{}", report(&output));
    for part in ["wrong.toml", "line 4", "`at` \"-2m\" is no duration"] {
        assert!(report(&output).contains(part), "{part:?} is not in {}", report(&output));
    }
}

fn an_unwritable_report_fails_before_the_run() {
    // A campaign of this size would take days.
    let many = ["campaign", "--runs", "10000000", "--html", "/nowhere/at/all.html"];
    let output = simulate(&many);
    assert_eq!(output.status.code(), Some(1));
    assert!(report(&output).contains("/nowhere/at/all.html"), "{}", report(&output));
}

fn a_development_build_detects_its_mutants_and_a_release_build_has_none() {
    let output = simulate(&["mutants", "partial-amount-completes", "--payments", "10"]);
    if cfg!(debug_assertions) {
        assert_eq!(output.status.code(), Some(0), "{}", report(&output));
        assert!(report(&output).contains("1 killed, 0 survive, median"), "{}", report(&output));
    } else {
        assert_eq!(output.status.code(), Some(1));
        assert!(report(&output).contains("a release build has no mutants"), "{}", report(&output));
    }
}

fn a_seed_has_the_same_trace_here_and_in_a_new_process() {
    let output = simulate(&["check-determinism", "--seed", "7", "--seeds", "2", "--payments", "10", "--jobs", "2"]);
    assert_eq!(output.status.code(), Some(0), "{}", report(&output));
    assert!(
        report(&output).contains("2 seeds produced the same trace 2 times in this process and once in a new process")
    );
}

fn clients_of_the_facade_see_no_violation() {
    let output = simulate(&["campaign", "--facade", "--runs", "6", "--payments", "25", "--jobs", "2"]);
    assert_eq!(output.status.code(), Some(0), "{}", report(&output));
    for reached in [
        "a client requests another merchant's data",
        "a client forges a form",
        "a client exceeds a rate limit",
        "a merchant calls by gRPC",
        "a merchant uses the dashboard",
        "a watch ends with its session",
        "an agent's payment settles",
        "an idempotency key is reused",
        "another request reuses an idempotency key",
    ] {
        assert!(report(&output).contains(reached), "{reached:?} is not in {}", report(&output));
    }
}

fn a_seed_with_clients_of_the_facade_has_the_same_trace_every_time() {
    let arguments = ["check-determinism", "--facade", "--seed", "3", "--seeds", "2", "--payments", "12", "--jobs", "2"];
    let output = simulate(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", report(&output));
}

fn a_development_build_detects_the_mutants_of_the_facade() {
    if !cfg!(debug_assertions) {
        return;
    }
    let mutants = [
        "facade-form-token-not-checked",
        "facade-dashboard-token-not-checked",
        "facade-logout-keeps-the-session",
        "facade-other-merchant-reads",
        "facade-status-is-the-previous-one",
        "facade-bad-json-is-500",
        "facade-no-retry-after",
        "facade-checkout-is-unlimited",
        "facade-unknown-fields-are-ignored",
        "facade-key-reuse-returns-the-first",
    ];
    let arguments = ["mutants", "--seeds", "8", "--payments", "25", "--jobs", "2"];
    let output = simulate(&[&arguments[..], &mutants[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", report(&output));
    assert!(report(&output).contains("10 killed, 0 survive"), "{}", report(&output));
}

fn a_campaign_ends_cleanly_on_sigterm() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hivetill"));
    let many = ["simulate", "campaign", "--runs", "10000000", "--payments", "5", "--html"];
    let child = command.env_clear().args(many).arg(&page).stdout(std::process::Stdio::piped()).spawn().unwrap();
    // The page is requested before the first run; by then the server listens.
    until("the page is opened", || page.exists().then_some(()));
    let asked = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(asked.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", report(&output));
    assert!(report(&output).contains("stopped early"), "{}", report(&output));
    assert!(std::fs::read_to_string(&page).unwrap().contains("A campaign of simulated payments"));
}
