//! A quick check of the mutants: those named as new, and a sample of the others, must be killed. All of them:
//! `cargo run -- simulate mutants`.
#![cfg(debug_assertions)]

use std::sync::atomic::AtomicBool;

use simulations::{
    mutants::{self, Hunt},
    random::Random,
    scenario,
};

/// Mutants that the current change adds: always hunted. Empty it when the change after it lands.
const NEW: &[&str] = &[
    "claimed-session-is-passivated",
    "refund-not-notified",
    "unmatched-not-notified",
    "event-to-unsubscribed-endpoint",
];
/// How many of the others are drawn, unless `MUTANTS` sets the number (no name of a setting: the program refuses those it does not know).
const SAMPLED: usize = 8;
/// The seed that draws them, unless `HIVETILL_MUTANT_SEED` is set.
const SEED: u64 = 1;

#[test]
#[allow(clippy::print_stdout, reason = "the seed and what each mutant took are the result")]
fn sampled_mutants_are_noticed_and_half_of_them_within_ten_seeds() {
    let all = mutants::available().expect("this build has mutants");
    assert!(all.len() >= 40, "{} mutants", all.len());
    for name in NEW {
        assert!(all.iter().any(|(known, _)| known == name), "there is no mutant {name:?}");
    }
    let number = |name: &str| {
        std::env::var_os(name).map(|text| {
            let number = text.to_str().and_then(|text| text.parse::<u64>().ok());
            number.unwrap_or_else(|| panic!("{name} is a number"))
        })
    };
    let seed = number("HIVETILL_MUTANT_SEED").unwrap_or(SEED);
    let sampled = number("MUTANTS").and_then(|count| usize::try_from(count).ok()).unwrap_or(SAMPLED);
    let (mut wanted, mut others): (Vec<_>, Vec<_>) = all.iter().copied().partition(|(name, _)| NEW.contains(name));
    let mut random = Random::new(seed).fork("mutants");
    while wanted.len() < NEW.len() + sampled && !others.is_empty() {
        wanted.push(others.swap_remove(random.index(others.len())));
    }
    let names: Vec<_> = wanted.iter().map(|(name, _)| *name).collect();
    let names = names.join(", ");
    println!("{} of {} mutants, drawn by HIVETILL_MUTANT_SEED={seed}: {names}", wanted.len(), all.len());
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let scenarios: Vec<_> =
        files.iter().map(|file| scenario::read(&std::fs::read_to_string(file).unwrap()).unwrap()).collect();
    let hunt = Hunt { seeds: 100, payments: 50, jobs: 2, scenarios: &scenarios };
    let hunted = mutants::hunt_all(&wanted, hunt, &AtomicBool::new(false), |one| println!("{one}"));
    let survivors: Vec<_> = hunted.iter().filter(|one| one.killed.is_none()).map(|one| one.name).collect();
    let median = mutants::median(&hunted);
    println!("{} hunted, {} survive, median {median:?} seeds", hunted.len(), survivors.len());
    assert!(survivors.is_empty(), "nothing notices {} (seed {seed})", survivors.join(", "));
    assert!(median.is_some_and(|seeds| seeds <= 10), "the median is {median:?} seeds (seed {seed})");
}
