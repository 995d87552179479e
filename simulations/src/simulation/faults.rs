//! Blocks, and the faults that are drawn at each of them; the exit of the process.

use super::*;

/// The maximum error of the wall clock by steps, milliseconds.
pub(super) const MAX_STEPPED_MS: i64 = 25_000;
/// The probability that a clock that has jumped is corrected, per block.
const JUMPS_BACK_PPM: u32 = 30_000;

impl Simulation {
    pub(super) fn fill_event_queue(&self) {
        let script = &self.script;
        self.schedule(0, Event::Block);
        for merchant in 0..script.setup.merchants {
            self.schedule(1_000, Event::Register(merchant));
        }
        if script.setup.policies.bills {
            self.schedule(8_000, Event::BeginBilling);
        }
        for step in &script.steps {
            self.schedule(step.at_ms, Event::Act(step.action.clone(), 0, step.engine));
        }
        let heal_at = script.heal_at_ms.unwrap_or(script.last_step_ms() + 45_000);
        self.schedule(heal_at, Event::Heal);
    }

    pub(super) fn set_disk_faults(&self) {
        if self.has_shared_store() {
            return;
        }
        self.disk.set_faults(DiskFaults {
            read_error: self.rate(Fault::DiskRead),
            write_error: self.rate(Fault::DiskWrite),
            sync_error: self.rate(Fault::DiskSync),
            power_cut: self.rate(Fault::PowerCut),
        });
    }

    pub(super) fn block(self: &Arc<Self>, at_ms: u64) {
        let setup = &self.script.setup;
        let now = Timestamp::from_millis(EPOCH_SECONDS * 1_000 + at_ms);
        self.schedule(at_ms + setup.block_seconds * 1_000, Event::Block);
        self.processes.iter().for_each(|process| self.stops_after_store_error(process, at_ms));
        if self.are_faults_on() {
            self.roll();
        }
        let disk_is_free = {
            let mut armed_faults = lock(&self.armed_faults);
            let over = armed_faults.disk_full_until.is_some_and(|until| at_ms >= until);
            if over {
                armed_faults.disk_full_until = None;
            }
            over
        };
        if disk_is_free {
            self.disk.set_spare(None);
        }
        let produced = self.hive().produce(at_ms, now);
        self.observe_market();
        if let Some(depth) = produced.forked {
            self.fault(Source::Ledger, Fault::Fork.as_str(), u64::from(depth), || {
                format!("a fork replaces {}", counted(u64::from(depth), "block"))
            });
        }
        if !produced.included.is_empty() {
            let count = produced.included.len() as u64;
            self.event(Source::Ledger, "block", None, count, || {
                format!("block {} holds {}", produced.number, counted(count, "transaction"))
            });
        }
        self.observe(|observer| {
            let number = produced.number;
            observer.included_in.extend(produced.included.iter().map(|tx_id| (*tx_id, number)));
            let now_ms = observer.now_ms;
            observer.broadcasts.included(&produced.included, now_ms);
            observer.ever_included.extend(produced.included);
            for block in produced.finalized {
                observer.finalized(block.number(), block.time, block.transfers);
            }
            observer.recurrent_transfers_executed(produced.recurrent);
            observer.check_open_claims();
            observer.requests_are_shared();
            observer.failures_are_bridged();
        });
    }

    pub(super) fn roll(self: &Arc<Self>) {
        let now_ms = self.now_ms();
        // Each block affects one of several engines.
        let struck = self.has_shared_store().then(|| lock(&self.streams).engines.index(self.processes.len()));
        let process = &self.processes[struck.unwrap_or(0)];
        let mut injections = self.hive().roll(now_ms, |fault| self.rate(fault));
        if let Some((merchant, kind, for_ms)) = self.receivers().roll(self.rate(Fault::HookOutage)) {
            injections.push(FaultInjection::Outage { merchant, kind, for_ms });
        }
        {
            let random = &mut lock(&self.streams).process;
            if random.chance(self.rate(Fault::DiskFull)) {
                injections.push(FaultInjection::Disk(DiskFault::Full { for_ms: random.between(1_000, 60_000) }));
            }
            if random.chance(self.rate(Fault::ClockStep)) {
                let skew = process.skew_ms();
                let by = i64::try_from(random.below(40_001)).unwrap_or(0) - 20_000;
                // Steps do not accumulate: a clock that is far off has jumped.
                let by = if (skew + by).abs() > MAX_STEPPED_MS { -by } else { by };
                injections.push(FaultInjection::ClockStep { by_ms: by });
            }
            if random.chance(self.rate(Fault::ProcessKill)) {
                injections.push(if random.chance(400_000) && !self.has_shared_store() {
                    FaultInjection::Disk(DiskFault::PowerCutIn(random.between(1, 40)))
                } else {
                    FaultInjection::Process(ProcessFault::Kill)
                });
            }
            if random.chance(self.rate(Fault::GracefulRestart)) {
                injections.push(FaultInjection::Process(ProcessFault::Restart));
            }
        }
        injections.extend(self.roll_clock(process));
        {
            let random = &mut lock(&self.streams).market;
            if random.chance(self.rate(Fault::HbdOffPeg)) {
                let percent = *random.pick(&[50, 80, 94, 96, 104, 106, 120, 200]);
                injections.push(FaultInjection::Ledger(LedgerFault::HbdOffPeg {
                    percent,
                    for_ms: random.between(60_000, 3_600_000),
                }));
            }
        }
        injections.extend(self.roll_process());
        injections.extend(self.roll_row());
        injections.extend(self.roll_log());
        if lock(&self.streams).keys.chance(self.rate(Fault::KeyRotated)) {
            injections.push(FaultInjection::Process(ProcessFault::RotateMasterKey));
        }
        {
            let random = &mut lock(&self.streams).backups;
            if random.chance(self.rate(Fault::Restored)) {
                let fault = if random.chance(500_000) { ProcessFault::Restore } else { ProcessFault::BackUp };
                injections.push(FaultInjection::Process(fault));
            }
        }
        for injection in injections {
            self.inject(&injection, struck);
        }
        for (engine, injection) in self.roll_cluster() {
            self.inject(&injection, Some(engine));
        }
    }

    /// Draws whether the wall clock of a process jumps, or is corrected after a jump.
    fn roll_clock(&self, process: &Process) -> Option<FaultInjection> {
        let random = &mut lock(&self.streams).clock;
        let skew = process.skew_ms();
        if skew.abs() > 2 * MAX_STEPPED_MS {
            return random.chance(JUMPS_BACK_PPM).then_some(FaultInjection::ClockStep { by_ms: -skew });
        }
        if !random.chance(self.rate(Fault::ClockJump)) {
            return None;
        }
        let by = i64::try_from(random.between(60_000, 6 * 3_600_000)).unwrap_or(0);
        Some(FaultInjection::ClockStep { by_ms: if random.chance(500_000) { by } else { -by } })
    }

    /// Draws the faults of a process other than its exit.
    fn roll_process(&self) -> Option<FaultInjection> {
        let random = &mut lock(&self.streams).host;
        if random.chance(self.rate(Fault::ProcessPause)) {
            let most = *random.pick(&[2_000, 20_000, 120_000]);
            return Some(FaultInjection::Process(ProcessFault::Pause { for_ms: random.between(500, most) }));
        }
        if random.chance(self.rate(Fault::DiskSlow)) {
            let commit_ms = random.between(500, 20_000);
            return Some(FaultInjection::Disk(DiskFault::Slow { commit_ms, for_ms: random.between(5_000, 60_000) }));
        }
        let settings = random.chance(self.rate(Fault::OtherSettings)).then(|| ChangeableSettings::draw(random));
        settings.map(|settings| FaultInjection::Process(ProcessFault::OtherSettings(settings)))
    }

    /// Draws which row is damaged.
    fn roll_row(&self) -> Option<FaultInjection> {
        let random = &mut lock(&self.streams).rows;
        random.chance(self.rate(Fault::RowDamaged)).then(|| {
            FaultInjection::Disk(DiskFault::DamageRow { table: None, session: None, pick: random.below(u64::MAX) })
        })
    }

    /// Draws whether the log is damaged.
    fn roll_log(&self) -> Option<FaultInjection> {
        let random = &mut lock(&self.streams).rows;
        let is_drawn = random.chance(self.rate(Fault::LogDamaged));
        is_drawn.then(|| FaultInjection::Disk(DiskFault::DamageLog { pick: random.below(u64::MAX) }))
    }

    /// Sets the wall clock of a process so far ahead of the true time.
    pub(super) fn set_clock(&self, process: &Process, skew_ms: i64) {
        let before = process.set_skew(skew_ms);
        if (skew_ms - before).abs() > 2 * MAX_STEPPED_MS {
            self.observe(Observer::clock_jumped);
        }
    }

    /// Records what the market pays for HBD, and whether most nodes have the price.
    pub(super) fn observe_market(&self) {
        let now_ms = self.now_ms();
        let (percent, price, priceless_until_ms) = {
            let hive = self.hive();
            (hive.hbd_percent(), hive.hive_price(), hive.priceless_until(now_ms))
        };
        self.observe(|observer| {
            observer.market_price_changed(percent);
            observer.hive_price_changed(price);
            observer.priceless_until_ms = priceless_until_ms.unwrap_or(observer.priceless_until_ms);
        });
    }

    pub(super) fn note_disk_incident(&self, incident: Incident) {
        self.disk_failed.store(true, Ordering::Relaxed);
        match incident {
            Incident::Error(what) => self.fault(Source::Disk, "disk.error", 0, || format!("the disk fails: {what}")),
            Incident::Full => self.fault(Source::Disk, "disk.out_of_space", 0, || "the disk is full".to_owned()),
            Incident::PowerCut => {
                self.fault(Source::Disk, Fault::PowerCut.as_str(), 0, || {
                    "power is lost during a disk operation".to_owned()
                });
                self.mark("power is lost during a disk operation");
                self.exit_process(&self.processes[0], ProcessExit::PowerCut);
            }
        }
    }

    /// Records that a read of the store failed with an I/O error.
    pub(crate) fn read_fails(&self, process: &Process, name: &'static str) {
        self.mark("a read of the store fails");
        self.event(Source::Disk, "read.failed", None, 0, || format!("the store cannot read {name}"));
        process.store_failed_ms.fetch_min(self.now_ms(), Ordering::Relaxed);
    }

    /// Records that the engine receives that the outcome of a commit is unknown.
    pub(crate) fn commit_fails(&self, process: &Process) {
        process.store_failed_ms.fetch_min(self.now_ms(), Ordering::Relaxed);
    }

    /// Checks that the engine stops soon after its store has failed.
    fn stops_after_store_error(&self, process: &Process, now_ms: u64) {
        let failed_ms = process.store_failed_ms.load(Ordering::Relaxed);
        if process.has_exited() || failed_ms == u64::MAX {
            return;
        }
        if now_ms > failed_ms + STOPS_WITHIN_MS {
            let text =
                format!("the store failed {} s ago, and the engine is still running", (now_ms - failed_ms) / 1_000);
            self.observe(|observer| observer.violate("store-error-stops-the-engine", text, None));
        } else {
            self.observe(|observer| observer.passes("store-error-stops-the-engine"));
        }
    }

    /// Kills a process.
    pub(super) fn exit_process(&self, process: &Process, exit: ProcessExit) {
        // A graceful shutdown lets the actors finish first; a shared store is on no engine's disk.
        if exit != ProcessExit::Restart && !self.has_shared_store() {
            self.disk.detach();
        }
        process.exits(exit);
    }

    /// Returns whether a process is about to exit.
    pub(crate) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed) || self.processes.iter().any(|process| process.has_exited())
    }

    /// Counts a call of a process, and ends the run if calls go on while virtual time does not advance.
    pub(super) fn count_spin(&self, process: &Process, now_ms: u64) {
        if self.time.last_ms.swap(now_ms, Ordering::Relaxed) != now_ms {
            self.time.spins.store(0, Ordering::Relaxed);
        } else if self.time.spins.fetch_add(1, Ordering::Relaxed) == MAX_SPINS {
            self.observe(|observer| {
                let text = format!("{MAX_SPINS} calls without an advance of virtual time");
                observer.violate("time-moves", text, None);
            });
            process.exits(ProcessExit::Over);
        }
    }
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
