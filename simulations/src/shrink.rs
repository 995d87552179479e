//! Makes a failing script small: fewer customers, fewer steps, fewer faults, as long as the same invariant breaks.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, Ordering},
};

use crate::{
    options::{Fault, Faults, Setup},
    script::{Action, Script, Step},
    world,
};

/// A failing script, made small.
#[derive(Debug, Clone)]
pub struct Shrunk {
    /// The small script.
    pub script: Script,
    /// The invariant that breaks in it.
    pub invariant: &'static str,
    /// Runs it took.
    pub runs: u32,
}

/// Shrinks a script in at most `max_runs` runs, or until `stop`; none if it does not fail.
#[must_use]
pub fn shrink(script: &Script, max_runs: u32, stop: &AtomicBool) -> Option<Shrunk> {
    let first = world::run(script, false).violation?;
    let mut search = Search { best: script.clone(), invariant: first.invariant, runs: 1, max_runs, stop };
    // What happens after the failure is not part of the story.
    let ends_at = first.at_ms;
    search.attempt(|script| {
        script.steps.retain(|step| step.at_ms <= ends_at);
        script.heal_at_ms = None;
    });
    if let Some(session) = first.session {
        search.attempt(|script| script.steps.retain(|step| step.action.session().is_none_or(|of| of == session)));
    }
    loop {
        let before = search.size();
        search.faults();
        search.sessions();
        search.steps();
        search.setup();
        if search.size() == before || search.is_over() {
            break;
        }
    }
    let Search { best, invariant, runs, .. } = search;
    let why = format!("Breaks {invariant}; shrunk from {} steps.", script.steps.len());
    Some(Shrunk { script: Script { why, ..best }, invariant, runs })
}

struct Search<'a> {
    best: Script,
    invariant: &'static str,
    runs: u32,
    max_runs: u32,
    stop: &'a AtomicBool,
}

impl Search<'_> {
    fn is_over(&self) -> bool {
        self.runs >= self.max_runs || self.stop.load(Ordering::Relaxed)
    }

    fn size(&self) -> (usize, usize) {
        (self.best.steps.len(), self.best.faults.on().count())
    }

    /// Keeps a change if the same invariant still breaks. A few seeds are tried: what is left meets other dice.
    fn attempt(&mut self, change: impl Fn(&mut Script)) -> bool {
        let mut candidate = self.best.clone();
        change(&mut candidate);
        if candidate == self.best {
            return false;
        }
        let seed = self.best.seed;
        for other in [seed, seed.wrapping_add(1_000_003), seed.wrapping_add(2_000_029), seed.wrapping_add(3_000_017)] {
            if self.is_over() {
                return false;
            }
            candidate.seed = other;
            self.runs += 1;
            let broken = world::run(&candidate, false).violation;
            if broken.is_some_and(|violation| violation.invariant == self.invariant) {
                self.best = candidate;
                return true;
            }
        }
        false
    }

    fn faults(&mut self) {
        if self.attempt(|script| script.faults = Faults::default()) {
            return;
        }
        for fault in Fault::ALL {
            if self.best.faults.ppm(*fault) > 0 {
                self.attempt(|script| script.faults.set(*fault, 0));
            }
        }
    }

    /// Drops halves, then quarters, then single sessions.
    fn sessions(&mut self) {
        let of = |step: &Step| step.action.session();
        let mut chunk = self.best.steps.iter().filter_map(of).collect::<BTreeSet<_>>().len().div_ceil(2);
        while chunk > 0 {
            let sessions: Vec<u32> =
                self.best.steps.iter().filter_map(of).collect::<BTreeSet<_>>().into_iter().collect();
            for part in sessions.chunks(chunk) {
                let part: BTreeSet<u32> = part.iter().copied().collect();
                self.attempt(|script| {
                    script.steps.retain(|step| of(step).is_none_or(|session| !part.contains(&session)));
                });
            }
            chunk /= 2;
        }
    }

    fn steps(&mut self) {
        let mut at = self.best.steps.len();
        while at > 0 {
            at -= 1;
            let removed = self.attempt(|script| {
                if at < script.steps.len() {
                    let step = script.steps.remove(at);
                    // A session that is not opened has no story.
                    if let Some(session) = step.action.opens() {
                        script.steps.retain(|step| step.action.session() != Some(session));
                    }
                }
            });
            if removed {
                at = at.min(self.best.steps.len());
            }
        }
        // Nobody reads of an hour in which nothing happens.
        let first = self.best.steps.iter().map(|step| step.at_ms).min().unwrap_or(0);
        if first > 60_000 {
            self.attempt(|script| {
                for step in &mut script.steps {
                    step.at_ms -= first - 20_000;
                }
            });
        }
    }

    fn setup(&mut self) {
        let plain = Setup::default();
        self.attempt(|script| script.setup = plain.clone());
        self.attempt(|script| script.setup.rpc_ms = 0);
        self.attempt(|script| script.setup.commit_ms = 0);
        self.attempt(|script| script.setup.split_fee = false);
        self.attempt(|script| script.setup.merchants = 1.max(most_merchant(script) + 1));
    }
}

fn most_merchant(script: &Script) -> usize {
    let merchants = script.steps.iter().filter_map(|step| match step.action {
        Action::Create { merchant, .. }
        | Action::OpenElsewhere { merchant, .. }
        | Action::Merchant { merchant, .. } => Some(merchant),
        _ => None,
    });
    merchants.max().unwrap_or(0)
}
