//! Shrinks a failing script: fewer customers, fewer steps, fewer faults, while the same invariant breaks.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash, Hasher},
    sync::atomic::{AtomicBool, Ordering},
};

use crate::{
    options::{Fault, Faults, Setup},
    script::{Action, Script, Step},
    simulation::runner,
};

/// A shrunk failing script.
#[derive(Debug, Clone)]
pub struct Shrunk {
    /// The shrunk script.
    pub script: Script,
    /// The invariant that breaks in it.
    pub invariant: &'static str,
    /// The number of runs.
    pub runs: u32,
}

/// Maximum steps of a script for which more seeds and single faults are tried: larger simulations run longer.
const FEW_STEPS: usize = 60;
/// The factor of the rate of a fault that is tried alone, and the maximum rate, parts per million: a failure that needed a rare
/// coincidence must not need it at every attempt.
const OFTENER: [u32; 2] = [64, 8];
const OFTEN_PPM: u32 = 300_000;
/// Maximum number of faults whose rates are raised: a run with many frequent faults takes long.
const FEW_FAULTS: usize = 3;
/// The longest wait between two consecutive events of a trace.
const LONG_WAIT_MS: u64 = 120_000;

/// A log that three payments fill.
const SHORT_LOG_BYTES: u64 = 4 * 1024;

/// Shrinks a script in at most `max_runs` runs, or until `stop`; none if it does not fail.
#[must_use]
pub fn shrink(script: &Script, max_runs: u32, stop: &AtomicBool) -> Option<Shrunk> {
    let first = runner::run(script, false).violation?;
    let (invariant, broken_at_ms) = (first.invariant, first.at_ms);
    let mut search =
        Search { best: script.clone(), broken_at_ms, invariant, runs: 1, max_runs, tried: BTreeSet::new(), stop };
    search.attempt(|script| {
        script.steps.retain(|step| step.at_ms <= broken_at_ms);
        script.heal_at_ms = None;
    });
    // A failure that needs a full log then needs fewer payments.
    search.attempt(|script| script.setup.log_bytes = SHORT_LOG_BYTES);
    if let Some(session) = first.session {
        search.attempt(|script| script.steps.retain(|step| step.action.session().is_none_or(|of| of == session)));
    }
    // Large simulations run long: single faults are tried when few steps are left.
    let mut is_thorough = false;
    while !search.is_over() {
        let before = search.size();
        is_thorough |= before.0 <= FEW_STEPS;
        search.faults(is_thorough);
        search.oftener();
        search.sessions();
        search.times();
        search.steps();
        search.setup();
        if search.size() == before && std::mem::replace(&mut is_thorough, true) {
            break;
        }
    }
    let Search { best, invariant, runs, .. } = search;
    let why = format!("Breaks {invariant}; shrunk from {} steps.", script.steps.len());
    Some(Shrunk { script: Script { why, ..best }, invariant, runs })
}

struct Search<'a> {
    best: Script,
    /// When the invariant breaks in it.
    broken_at_ms: u64,
    invariant: &'static str,
    runs: u32,
    max_runs: u32,
    /// Scripts that were run: a repetition has the same result.
    tried: BTreeSet<u64>,
    stop: &'a AtomicBool,
}

fn fingerprint(script: &Script) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{script:?}").hash(&mut hasher);
    hasher.finish()
}

impl Search<'_> {
    fn is_over(&self) -> bool {
        self.runs >= self.max_runs || self.stop.load(Ordering::Relaxed)
    }

    fn size(&self) -> (usize, usize) {
        (self.best.steps.len(), self.best.faults.on().count())
    }

    /// Keeps a change if the same invariant still breaks with one of a few seeds.
    fn attempt(&mut self, change: impl Fn(&mut Script)) -> bool {
        let is_slow = self.best.steps.len() > FEW_STEPS || self.best.faults.on().count() > FEW_FAULTS;
        let dice = if is_slow { 2 } else { 4 };
        self.attempt_with(dice, change)
    }

    fn attempt_with(&mut self, dice: usize, change: impl Fn(&mut Script)) -> bool {
        let mut candidate = self.best.clone();
        change(&mut candidate);
        if candidate == self.best {
            return false;
        }
        let seed = self.best.seed;
        let others = [seed, seed.wrapping_add(1_000_003), seed.wrapping_add(2_000_029), seed.wrapping_add(3_000_017)];
        for other in others.iter().take(dice) {
            if self.is_over() {
                return false;
            }
            candidate.seed = *other;
            if !self.tried.insert(fingerprint(&candidate)) {
                continue;
            }
            self.runs += 1;
            let broken = runner::run(&candidate, false).violation;
            if let Some(broken) = broken.filter(|broken| broken.invariant == self.invariant) {
                (self.best, self.broken_at_ms) = (candidate, broken.at_ms);
                return true;
            }
        }
        false
    }

    /// Removes all items, then halves, quarters, and single ones.
    fn without<T: Copy>(&mut self, list: impl Fn(&Script) -> Vec<T>, leave_out: impl Fn(&mut Script, &[T])) {
        let mut chunk = list(&self.best).len();
        while chunk > 0 {
            for part in list(&self.best).chunks(chunk) {
                self.attempt(|script| leave_out(script, part));
            }
            chunk = if chunk == 1 { 0 } else { chunk.div_ceil(2) };
        }
    }

    fn faults(&mut self, is_thorough: bool) {
        let on = |script: &Script| script.faults.on().map(|(fault, _)| fault).collect::<Vec<Fault>>();
        if self.best.faults.on().count() > 1 {
            if self.attempt(|script| script.faults = Faults::default()) {
                return;
            }
            let on = self.best.faults.on().collect::<Vec<_>>();
            for (times, (fault, ppm)) in OFTENER.iter().flat_map(|times| on.iter().map(move |fault| (times, *fault))) {
                let often = ppm.saturating_mul(*times).min(OFTEN_PPM).max(ppm);
                let alone = |script: &mut Script| {
                    script.faults = Faults::default();
                    script.faults.set(fault, often);
                };
                if self.attempt_with(1, alone) {
                    return;
                }
            }
            // Two faults are needed: at higher rates they coincide more often.
            self.attempt_with(1, |script| {
                for (fault, ppm) in &on {
                    script.faults.set(*fault, ppm.saturating_mul(4).min(OFTEN_PPM).max(*ppm));
                }
            });
        }
        if is_thorough {
            self.without(on, |script, part| part.iter().for_each(|fault| script.faults.set(*fault, 0)));
        }
    }

    /// Raises the rates of faults, so that fewer steps are needed until one happens.
    fn oftener(&mut self) {
        if self.best.faults.on().count() > FEW_FAULTS {
            return;
        }
        for (fault, _) in self.best.faults.on().collect::<Vec<_>>() {
            let now = |script: &Script| script.faults.on().find(|(on, _)| *on == fault).map_or(0, |(_, ppm)| ppm);
            while now(&self.best) < OFTEN_PPM
                && self.attempt_with(2, |script| {
                    script.faults.set(fault, now(script).saturating_mul(8).min(OFTEN_PPM));
                })
            {}
        }
    }

    fn sessions(&mut self) {
        let of = |step: &Step| step.action.session();
        let all = |script: &Script| script.steps.iter().filter_map(of).collect::<BTreeSet<_>>().into_iter().collect();
        self.without(all, |script, part: &[u32]| {
            script.steps.retain(|step| of(step).is_none_or(|session| part.binary_search(&session).is_err()));
        });
    }

    fn steps(&mut self) {
        // What happens after the failure is not part of the trace.
        let broken_at_ms = self.broken_at_ms;
        self.attempt(|script| script.steps.retain(|step| step.at_ms <= broken_at_ms));
        let mut at = self.best.steps.len();
        while at > 0 {
            at -= 1;
            let removed = self.attempt(|script| {
                if at < script.steps.len() {
                    let step = script.steps.remove(at);
                    // A session that is not opened has no trace.
                    if let Some(session) = step.action.opens() {
                        script.steps.retain(|step| step.action.session() != Some(session));
                    }
                }
            });
            if removed {
                at = at.min(self.best.steps.len());
            }
        }
    }

    /// Shortens long waits without events.
    fn times(&mut self) {
        let first = self.best.steps.iter().map(|step| step.at_ms).min().unwrap_or(0);
        if first > 60_000 {
            self.attempt(|script| {
                for step in &mut script.steps {
                    step.at_ms -= first - 20_000;
                }
            });
        }
        self.attempt(|script| {
            let (mut before, mut cut) = (0, 0);
            for step in &mut script.steps {
                cut += (step.at_ms - before).saturating_sub(LONG_WAIT_MS);
                before = step.at_ms;
                step.at_ms -= cut;
            }
        });
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
        | Action::CreateElsewhere { merchant, .. }
        | Action::ChangeMerchant { merchant, .. }
        | Action::Manage { merchant, .. }
        | Action::Ownership { merchant, .. } => Some(merchant),
        _ => None,
    });
    merchants.max().unwrap_or(0)
}
