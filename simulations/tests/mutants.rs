//! Every planted bug is noticed. Runs only with `--features mutants`.
#![cfg(feature = "mutants")]

use std::sync::atomic::AtomicBool;

use simulations::{
    mutants::{self, Hunt},
    scenario,
};

#[test]
fn every_planted_bug_is_noticed_and_half_of_them_within_ten_seeds() {
    let bugs = mutants::planted().expect("this build has planted bugs");
    assert!(bugs.len() >= 40, "{} planted bugs", bugs.len());
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let scenarios: Vec<_> =
        files.iter().map(|file| scenario::read(&std::fs::read_to_string(file).unwrap()).unwrap()).collect();
    let hunt = Hunt { seeds: 100, payments: 50, jobs: 2, scenarios: &scenarios };
    let hunted = mutants::hunt_all(bugs, hunt, &AtomicBool::new(false), |one| println!("{one}"));
    let survivors: Vec<_> = hunted.iter().filter(|one| one.killed.is_none()).map(|one| one.name).collect();
    let median = mutants::median(&hunted);
    println!("{} planted, {} survive, median {median:?} seeds", hunted.len(), survivors.len());
    assert!(survivors.is_empty(), "nobody notices {}", survivors.join(", "));
    assert!(median.is_some_and(|seeds| seeds <= 10), "the median is {median:?} seeds");
}
