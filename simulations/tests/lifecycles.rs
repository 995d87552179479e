//! Whole payment lifecycles from seeds: no invariant breaks, and the same seed is the same trace.

use simulations::{
    plan::{self, Mix},
    runner, scenario,
    script::Script,
    simulation::Outcome,
};

/// Runs a script that must keep every invariant; panics with its trace if it does not.
fn keeps_every_invariant(script: &Script) -> Outcome {
    let outcome = runner::run(script, false);
    if let Some(violation) = &outcome.violation {
        let trace = runner::run(script, true);
        let about = |line: &&simulations::trace::Line| {
            line.session == violation.session || line.is_fault || line.session.is_none()
        };
        let lines: Vec<_> = trace.lines.iter().filter(about).map(ToString::to_string).collect();
        let last = lines.len().saturating_sub(60);
        panic!("{}: {violation:#?}\n{}", script.name, lines[last..].join("\n"));
    }
    outcome
}

#[test]
fn calm_simulations_keep_every_invariant() {
    for seed in 0..6 {
        let outcome = keeps_every_invariant(&plan::of_seed(seed, 30, Mix::None));
        assert!(outcome.states.get("completed").copied().unwrap_or(0) > 3, "{:?}", outcome.states);
    }
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    for seed in 0..4 {
        let script = plan::of_seed(seed, 20, Mix::Both);
        let first = runner::run(&script, true);
        for _ in 0..2 {
            let again = runner::run(&script, true);
            for (one, other) in first.lines.iter().zip(&again.lines) {
                assert_eq!(one, other, "seed {seed}");
            }
            assert_eq!(first.hash, again.hash, "seed {seed}");
        }
    }
}

#[test]
fn faulty_simulations_keep_every_invariant() {
    for seed in 100..112 {
        keeps_every_invariant(&plan::of_seed(seed, 30, Mix::Both));
    }
}

/// Nodes that stay ahead of the true time, and a session of another engine that was opened before an engine followed the ledger.
#[test]
fn seed_1608_keeps_every_invariant() {
    keeps_every_invariant(&plan::of_seed(1608, 50, Mix::Swarm));
}

/// A seller disconnects while the claim of its request is stored, and never repeats it.
#[test]
fn seed_94_keeps_every_invariant() {
    keeps_every_invariant(&plan::of_seed(94, 50, Mix::Both));
}

#[test]
fn a_malformed_scenario_names_line_and_field() {
    let step = |step: &str| format!("name = \"x\"\nsteps = [\n  {{ {step} }},\n]\n");
    let create = "at = \"1s\", who = \"merchant 0\", does = \"create\", session = \"A\"";
    let with_amount = format!("{create}, amount = \"1.000 HBD\"");
    for (text, line, message) in [
        ("name = 5".to_owned(), 1, "invalid type"),
        ("name = \"x\"\nspeed = 3".to_owned(), 2, "unknown field `speed`"),
        (
            "name = \"x\"\n[faults]\n\"disk.smoke\" = \"1%\"".to_owned(),
            3,
            "`faults` \"disk.smoke\" is none of \"rpc.error\"",
        ),
        ("name = \"x\"\n[faults]\n\"rpc.error\" = \"101%\"".to_owned(), 3, "`rpc.error` must be a share"),
        ("name = \"x\"\n[environment]\nnodes = 9".to_owned(), 2, "`nodes` must be from 1 to 5"),
        (step("at = \"-1s\", who = \"disk\", does = \"power-cut\""), 3, "`at` \"-1s\" is no duration"),
        (step("at = \"1s\", who = \"moon\", does = \"rise\""), 3, "`who` \"moon\" is none of \"merchant\""),
        (step("at = \"1s\", who = \"payer 0\", does = \"rise\""), 3, "`does` \"rise\" is none of \"pay\""),
        (step("at = \"1s\", who = \"merchant 0\", does = \"rise\""), 3, "`does` \"rise\" is none of \"create\""),
        (step("at = \"1s\", who = \"clock\", does = \"step\", by = \"-25h\""), 3, "`by` must be at most 1d"),
        (
            step("at = \"1s\", who = \"payer 0\", does = \"pay\", session = \"A\", amount = \"1.000 HBD\""),
            3,
            "`session` \"A\" is not created",
        ),
        (step(create), 3, "`amount` is missing"),
        (step(&format!("{create}, amount = \"1 HBD\"")), 3, "`amount` \"1 HBD\""),
        (step(&format!("{create}, amount = \"1.000 HBD\", colour = \"red\"")), 3, "unknown field `colour`"),
        (
            step("at = \"1s\", who = \"node 7\", does = \"be unreachable\", for = \"1s\""),
            3,
            "`who` \"node 7\": there are 3",
        ),
        (step("at = \"1s\", who = \"ledger\", does = \"fork\", depth = 99"), 3, "`depth` must be from 1 to 20"),
        (
            format!("{}\n[expect]\nA = {{ exceptions = [\"paid_twice\"] }}", step(&with_amount)),
            7,
            "`exceptions` \"paid_twice\" is none of \"underpaid\"",
        ),
        (
            format!("heal_at = \"31m\"\n{}", step("at = \"1s\", who = \"receiver 0\", does = \"fail\", for = \"3h\"")),
            4,
            "it ends after `heal_at`",
        ),
        (
            step("at = \"1s\", who = \"actor\", does = \"panic\", point = \"somewhere\""),
            3,
            "`point` \"somewhere\" is none of",
        ),
    ] {
        let error = scenario::read(&text).expect_err(&text);
        assert!(error.line == line && error.why.contains(message), "{text}\nline {}: {}", error.line, error.why);
    }
}
