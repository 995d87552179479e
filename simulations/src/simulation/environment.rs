//! The engine's environment in a simulation: clock, entropy, and the probe of named points of the code.

use super::*;

impl Time {
    /// Follows the runtime's clock from now on.
    pub(super) fn start(&self) {
        *lock(&self.started) = Some(Instant::now());
    }

    /// Returns when it began to follow the runtime's clock.
    fn started(&self) -> Option<Instant> {
        *lock(&self.started)
    }

    /// Stops until the next process starts.
    pub(super) fn stop(&self) {
        self.base_ms.store(self.now_ms(), Ordering::Relaxed);
        *lock(&self.started) = None;
    }

    /// Advances between two processes.
    pub(super) fn pass(&self, ms: u64) {
        self.base_ms.fetch_add(ms, Ordering::Relaxed);
        self.moved();
    }

    /// Records that the runtime slept: only then its clock advances.
    pub(super) fn moved(&self) {
        self.is_read.store(false, Ordering::Relaxed);
    }

    pub(super) fn now_ms(&self) -> u64 {
        if !self.is_read.load(Ordering::Relaxed) {
            let started = *lock(&self.started);
            let elapsed = started.map_or(0, |started| u64::try_from(started.elapsed().as_millis()).unwrap_or(0));
            self.read_ms.store(self.base_ms.load(Ordering::Relaxed) + elapsed, Ordering::Relaxed);
            self.is_read.store(true, Ordering::Relaxed);
        }
        self.read_ms.load(Ordering::Relaxed)
    }
}

pub(super) struct SimClock(pub(super) Seam);

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let Seam { sim, process, .. } = &self.0;
        let now_ms = sim.now_ms();
        sim.count_spin(process, now_ms);
        sim.wall_at(process, now_ms)
    }

    fn monotonic(&self) -> Instant {
        let Seam { sim, process, .. } = &self.0;
        let now = Instant::now();
        let Some(started) = sim.time.started().filter(|_| process.drift_ppm != 0) else { return now };
        let elapsed = now.saturating_duration_since(started);
        started + elapsed / 1_000_000 * (1_000_000 + process.drift_ppm).unsigned_abs()
    }
}

pub(super) struct SimEntropy(pub(super) Seam);

impl Entropy for SimEntropy {
    fn fill(&self, out: &mut [u8]) {
        self.0.process.draw(out);
    }
}

/// The payload of an injected panic.
pub(super) struct Planned;

pub(super) struct SimProbe(pub(super) Seam);

impl Probe for SimProbe {
    fn reach(&self, point: &'static str) {
        let Seam { sim, process, .. } = &self.0;
        sim.count_spin(process, sim.now_ms());
        if self.0.is_closed() {
            return;
        }
        sim.mark(point);
        let (kills, panics) = {
            let mut armed = lock(&process.armed);
            let next = |armed: &mut VecDeque<String>| {
                let at = armed.iter().position(|wanted| wanted == point);
                at.is_some_and(|at| armed.remove(at).is_some())
            };
            let (kill, panic) = (next(&mut armed.kill_at), next(&mut armed.panic_at));
            if kill || panic {
                lock(&sim.armed_faults).struck_points.insert(point);
            }
            let random = &mut lock(&process.points);
            (kill || random.chance(sim.rate(Fault::KillAtPoint)), panic || random.chance(sim.rate(Fault::ActorPanic)))
        };
        if kills {
            sim.fault(process.source(), Fault::KillAtPoint.as_str(), 0, || format!("killed at {point:?}"));
            sim.exit_process(process, ProcessExit::Killed);
        } else if panics && !point.starts_with("gateway") {
            // A panic in the handle is a panic of its caller; the facade catches that, callers here do not.
            sim.fault(process.source(), Fault::ActorPanic.as_str(), 0, || format!("panics at {point:?}"));
            std::panic::resume_unwind(Box::new(Planned));
        }
    }
}
