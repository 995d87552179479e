//! Reports of a failure: one screen of text, and one self-contained HTML page.

use simulations::{report, runner, scenario};

const WRONG: &str = r#"
name = "A scenario that expects <too much>"
steps = [
  { at = "1m", who = "merchant 0", does = "create", session = "A", amount = "10.000 HBD" },
  { at = "90s", who = "process", does = "be killed" },
  { at = "2m", who = "agent 0", does = "settle", session = "A" },
]

[faults]
"rpc.error" = "20%"

[expect]
A = { state = ["failed"] }
"#;

#[test]
fn a_failure_fits_on_one_screen_with_rule_observation_seed_and_command_to_repeat() {
    let script = scenario::read(WRONG).unwrap();
    let outcome = runner::run(&script, true);
    let violation = outcome.violation.clone().expect("the scenario expects what does not happen");
    let screen = report::failure(&script, &outcome, &violation, "a build", "a command");
    assert!(screen.lines().count() <= 40, "{screen}");
    for part in [
        "BROKEN  expected",
        "rule    What the scenario expects.",
        "seen    it is completed, expected failed",
        "where   A scenario that expects <too much>",
        "seed    0 of a build",
        "replay  a command",
        "trace of session A",
        "the process is killed",
        "session A is completed",
        "last faults while it happened",
    ] {
        assert!(screen.contains(part), "{part:?} is not in\n{screen}");
    }
    let trace = screen.lines().skip_while(|line| !line.starts_with("trace of")).skip(1);
    assert!(trace.take_while(|line| !line.is_empty()).count() <= 22);
}

#[test]
fn a_page_is_one_file_with_every_swimlane_and_the_broken_rule() {
    let script = scenario::read(WRONG).unwrap();
    let outcome = runner::run(&script, true);
    let page = report::html(&script, &outcome, "a build", "a command");
    for source in ["payer", "ledger", "scanner", "session", "disk", "webhook", "merchant", "process"] {
        assert!(page.contains(&format!(">{source}</text>")), "no source {source}");
    }
    for part in
        ["the invariant breaks here", "it is completed, expected failed", "class=dead", "class=boot", "class=completed"]
    {
        assert!(page.contains(part), "{part:?} is missing");
    }
    assert!(page.contains("A scenario that expects &lt;too much&gt;"), "names are escaped");
    assert!(!page.contains("src=") && !page.contains("url(") && !page.contains("href=\"http"), "it loads nothing");
}

#[test]
fn a_trace_keeps_events_of_others_that_may_be_the_cause() {
    let text = r#"
name = "The account changes before, and a fork takes the transfer back"
steps = [
  { at = "30s", who = "merchant 0", does = "use its other account" },
  { at = "30s", who = "merchant 1", does = "use its other account" },
  { at = "1m", who = "merchant 0", does = "create", session = "blue mug", amount = "10.000 HBD" },
  { at = "90s", who = "payer 0", does = "pay", session = "blue mug", amount = "10.000 HBD" },
  { at = "98s", who = "ledger", does = "fork", depth = 4, forget = true },
]

[environment]
finality_lag = 20

[expect]
"blue mug" = { state = ["completed"] }
"#;
    let script = scenario::read(text).unwrap();
    let outcome = runner::run(&script, true);
    let violation = outcome.violation.clone().expect("the transfer is gone");
    let screen = report::failure(&script, &outcome, &violation, "a build", "a command");
    let page = report::html(&script, &outcome, "a build", "a command");
    for text in [&screen, &page] {
        for part in ["session blue mug", "shop 0: OtherAccount", "a fork replaces 4 blocks"] {
            assert!(text.contains(part), "{part:?} is not in\n{text}");
        }
        assert!(!text.contains("shop 1: OtherAccount"), "another shop has nothing to do with it");
    }
}
