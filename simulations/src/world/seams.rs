//! The seams of the engine, as the world fills them: time, randomness, where the code tells how far it came.

use super::*;

impl Time {
    /// Goes with the runtime's clock from now on.
    pub(super) fn start(&self) {
        *lock(&self.started) = Some(Instant::now());
    }

    /// Stands still until the next process starts.
    pub(super) fn stop(&self) {
        self.base_ms.store(self.now_ms(), Ordering::Relaxed);
        *lock(&self.started) = None;
    }

    /// Goes on between two processes.
    pub(super) fn pass(&self, ms: u64) {
        self.base_ms.fetch_add(ms, Ordering::Relaxed);
        self.moved();
    }

    /// Notes that the runtime slept: only then does its clock move on.
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

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) struct SimClock(pub(super) Arc<World>);

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        let now_ms = self.0.now_ms();
        self.0.count_spin(now_ms);
        self.0.wall_at(now_ms)
    }
}

pub(super) struct SimEntropy(pub(super) Arc<World>);

impl Entropy for SimEntropy {
    fn fill(&self, out: &mut [u8]) {
        lock(&self.0.entropy).fill(out);
    }
}

/// What an actor panics with when the simulation makes it.
pub(super) struct Planned;

pub(super) struct SimProbe(pub(super) Arc<World>);

impl Probe for SimProbe {
    fn reach(&self, point: &'static str) {
        let world = &self.0;
        world.count_spin(world.now_ms());
        if world.is_dead.load(Ordering::Relaxed) {
            return;
        }
        world.mark(point);
        let (kills, panics) = {
            let mut traps = lock(&world.traps);
            let next = |traps: &mut VecDeque<String>| {
                let at = traps.iter().position(|wanted| wanted == point);
                at.is_some_and(|at| traps.remove(at).is_some())
            };
            let (kill, panic) = (next(&mut traps.kill_at), next(&mut traps.panic_at));
            let random = &mut lock(&world.streams).points;
            (
                kill || random.chance(world.rate(Fault::KillAtPoint)),
                panic || random.chance(world.rate(Fault::ActorPanic)),
            )
        };
        if kills {
            world.fault(Lane::Process, Fault::KillAtPoint.word(), 0, || format!("killed at {point:?}"));
            world.die(Death::Killed);
        } else if panics && !point.starts_with("gateway") {
            // A panic in the handle is a panic of its caller; the facade catches that, callers here do not.
            world.fault(Lane::Process, Fault::ActorPanic.word(), 0, || format!("panics at {point:?}"));
            std::panic::resume_unwind(Box::new(Planned));
        }
    }
}
