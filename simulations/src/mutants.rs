//! Planted bugs: how many seeds it takes to notice each. Compiled in only where the feature `mutants` is on.

/// Returns the planted bugs and what each does; none in a build without them.
#[must_use]
pub fn planted() -> Option<&'static [(&'static str, &'static str)]> {
    engine::mutants::planted()
}

/// Plants one bug and runs seeds until an invariant breaks. Returns how many it took and which invariant broke.
#[must_use]
pub fn hunt(name: &str, seeds: u64, payments: u32) -> Option<(u64, &'static str)> {
    engine::mutants::plant(Some(name));
    let mut found = None;
    for seed in 1..=seeds {
        let outcome = crate::world::run(&crate::plan::of_seed(seed, payments, crate::plan::Mix::Both), false);
        if let Some(violation) = outcome.violation {
            found = Some((seed, violation.invariant));
            break;
        }
    }
    engine::mutants::plant(None);
    found
}
