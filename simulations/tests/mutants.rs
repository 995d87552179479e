//! Every planted bug is noticed. Runs only with `--features mutants`.
#![cfg(feature = "mutants")]

use std::sync::atomic::AtomicBool;

use simulations::mutants::{self, Hunt};

#[test]
fn every_planted_bug_is_noticed_and_half_of_them_within_ten_seeds() {
    let bugs = mutants::planted().expect("this build has planted bugs");
    assert!(bugs.len() >= 40, "{} planted bugs", bugs.len());
    let hunt = Hunt { seeds: 60, payments: 50, jobs: 2 };
    let hunted = mutants::hunt_all(bugs, hunt, &AtomicBool::new(false), |one| match one.killed {
        Some((seeds, invariant)) => println!("killed   {:<36} after {seeds:>2} seeds by {invariant}", one.name),
        None => println!("SURVIVES {:<36} {}", one.name, one.says),
    });
    let survivors: Vec<_> = hunted.iter().filter(|one| one.killed.is_none()).map(|one| one.name).collect();
    let median = mutants::median(&hunted).expect("some bug was noticed");
    println!("{} planted, {} survive, median {median} seeds", hunted.len(), survivors.len());
    assert!(survivors.is_empty(), "nobody notices {}", survivors.join(", "));
    assert!(median <= 10, "the median is {median} seeds");
}
