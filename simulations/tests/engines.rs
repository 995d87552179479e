//! Several engines over one shared store: runs repeat exactly, faults reach the engine that a scenario names, and files are
//! checked.

use simulations::{
    plan::{self, Mix},
    runner, scenario,
};

#[test]
fn runs_with_several_engines_repeat_exactly() {
    for seed in 1..=2 {
        let script = plan::of_seed_with(seed, 6, Mix::Engines, None);
        assert!(script.setup.engines > 1);
        let [first, second] = [(); 2].map(|()| runner::run(&script, false));
        assert_eq!(first.hash, second.hash, "seed {seed}");
        assert_eq!((first.boots, first.events), (second.boots, second.events), "seed {seed}");
    }
}

#[test]
fn a_scenario_names_the_engine_that_is_killed_paused_or_cut_off() {
    let text = r#"
name = "Three engines, each with a fault of its own"
seed = 1
steps = [
  { at = "30s", who = "process", does = "be killed", engine = 1 },
  { at = "31s", who = "process", does = "pause", for = "20s", engine = 2 },
  { at = "32s", who = "process", does = "lose the store", for = "5s" },
  { at = "33s", who = "process", does = "lose a node", node = 1, for = "5s", engine = 2 },
  { at = "40s", who = "store", does = "fail over", for = "3s" },
  { at = "50s", who = "store", does = "break a commit", manner = "late", by = "2s", engine = 2 },
]
[environment]
engines = 3
store_delay = "20ms"
lease = "10s"
clock_drift = "1%"
"#;
    let script = scenario::read(text).unwrap();
    assert_eq!(scenario::read(&scenario::write(&script)).unwrap(), script, "it reads back");
    let lines = runner::run(&script, true).lines;
    for (source, text) in [
        ("engine 1", "the process is killed"),
        ("engine 2", "the process is paused"),
        ("engine 0", "cannot reach the store"),
        ("engine 2", "cannot reach node 1"),
        ("disk", "the store fails over"),
    ] {
        let is_there = lines.iter().any(|line| line.source.as_str() == source && line.text.contains(text));
        assert!(is_there, "{source}: {text:?} is not among\n{}", faults(&lines));
    }
    let boots =
        |source: &str| lines.iter().filter(|line| line.source.as_str() == source && line.kind == "boot").count();
    assert_eq!((boots("engine 0"), boots("engine 1"), boots("engine 2")), (1, 2, 1));
}

fn faults(lines: &[simulations::trace::Line]) -> String {
    lines.iter().filter(|line| line.is_fault).map(|line| format!("{line}\n")).collect()
}

#[test]
fn faults_that_do_not_fit_the_number_of_engines_are_refused() {
    let file = |engines: usize, step: &str| {
        format!("name = \"x\"\nsteps = [\n  {{ at = \"1s\", {step} }},\n]\n[environment]\nengines = {engines}\n")
    };
    for (engines, step, message) in [
        (1, r#"who = "process", does = "be killed", engine = 1"#, "`engine` 1: there are 1"),
        (3, r#"who = "process", does = "be killed", engine = 3"#, "`engine` 3: there are 3"),
        (1, r#"who = "store", does = "fail over", for = "3s""#, "needs several `engines`"),
        (1, r#"who = "process", does = "lose the store", for = "3s""#, "needs several `engines`"),
        (2, r#"who = "process", does = "lose a node", for = "3s""#, "`node` is one of 3"),
        (2, r#"who = "store", does = "break a commit", manner = "twice""#, "`manner` \"twice\" is none of"),
        (2, r#"who = "disk", does = "power-cut""#, "several engines share a store"),
        (2, r#"who = "process", does = "be backed up""#, "several engines share a store"),
        (6, r#"who = "process", does = "be killed""#, "`engines` must be from 1 to 5"),
    ] {
        let error = scenario::read(&file(engines, step)).expect_err(step);
        assert!(error.why.contains(message), "{step}: {}", error.why);
    }
}
