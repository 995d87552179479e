//! What befalls a world: blocks, faults of ledger and disk, deaths.

use super::*;

/// How far the wall clock gets off by steps, milliseconds.
const MAX_STEPPED_MS: i64 = 25_000;
/// How likely a clock that has jumped is set right, per block.
const JUMPS_BACK_PPM: u32 = 30_000;

impl World {
    pub(super) fn fill_agenda(&self) {
        let script = &self.script;
        self.schedule(0, Event::Block);
        for merchant in 0..script.setup.merchants {
            self.schedule(1_000, Event::Register(merchant));
        }
        for step in &script.steps {
            self.schedule(step.at_ms, Event::Act(step.action.clone(), 0));
        }
        let heal_at = script.heal_at_ms.unwrap_or(script.last_step_ms() + 45_000);
        self.schedule(heal_at, Event::Heal);
    }

    pub(super) fn set_disk_faults(&self) {
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
        self.stops_after_read_error(at_ms);
        if self.are_faults_on() {
            self.roll();
        }
        let disk_is_free = {
            let mut traps = lock(&self.traps);
            let over = traps.disk_full_until.is_some_and(|until| at_ms >= until);
            if over {
                traps.disk_full_until = None;
            }
            over
        };
        if disk_is_free {
            self.disk.set_spare(None);
        }
        let produced = self.hive().produce(at_ms, now);
        self.observe_market();
        if let Some(depth) = produced.forked {
            self.fault(Lane::Ledger, Fault::Fork.word(), u64::from(depth), || {
                format!("a fork replaces {}", counted(u64::from(depth), "block"))
            });
        }
        if !produced.included.is_empty() {
            let count = produced.included.len() as u64;
            self.event(Lane::Ledger, "block", None, count, || {
                format!("block {} holds {}", produced.number, counted(count, "transaction"))
            });
        }
        self.observe(|observer| {
            let number = produced.number;
            observer.included_in.extend(produced.included.iter().map(|tx_id| (*tx_id, number)));
            observer.ever_included.extend(produced.included);
            for block in produced.finalized {
                observer.finalized(block.number(), block.time, block.transfers);
            }
            observer.paid_by_itself(produced.by_itself);
        });
    }

    pub(super) fn roll(self: &Arc<Self>) {
        let now_ms = self.now_ms();
        let mut troubles = self.hive().roll(now_ms, |fault| self.rate(fault));
        if let Some((merchant, manner, for_ms)) = self.receivers().roll(self.rate(Fault::HookOutage)) {
            troubles.push(Trouble::Outage { merchant, manner, for_ms });
        }
        {
            let random = &mut lock(&self.streams).process;
            if random.chance(self.rate(Fault::DiskFull)) {
                troubles.push(Trouble::DiskFull { for_ms: random.between(1_000, 60_000) });
            }
            if random.chance(self.rate(Fault::ClockStep)) {
                let skew = self.time.skew_ms.load(Ordering::Relaxed);
                let by = i64::try_from(random.below(40_001)).unwrap_or(0) - 20_000;
                // Steps do not add up: a clock that is far off has jumped.
                let by = if (skew + by).abs() > MAX_STEPPED_MS { -by } else { by };
                troubles.push(Trouble::ClockStep { by_ms: by });
            }
            if random.chance(self.rate(Fault::ProcessKill)) {
                troubles.push(if random.chance(400_000) {
                    Trouble::PowerCutIn(random.between(1, 40))
                } else {
                    Trouble::Kill
                });
            }
            if random.chance(self.rate(Fault::GracefulRestart)) {
                troubles.push(Trouble::Restart);
            }
        }
        {
            let random = &mut lock(&self.streams).clock;
            let skew = self.time.skew_ms.load(Ordering::Relaxed);
            if skew.abs() > 2 * MAX_STEPPED_MS {
                if random.chance(JUMPS_BACK_PPM) {
                    troubles.push(Trouble::ClockStep { by_ms: -skew });
                }
            } else if random.chance(self.rate(Fault::ClockJump)) {
                let by = i64::try_from(random.between(60_000, 6 * 3_600_000)).unwrap_or(0);
                troubles.push(Trouble::ClockStep { by_ms: if random.chance(500_000) { by } else { -by } });
            }
        }
        {
            let random = &mut lock(&self.streams).market;
            if random.chance(self.rate(Fault::HbdOffPeg)) {
                let percent = *random.pick(&[50, 80, 94, 96, 104, 106, 120, 200]);
                troubles.push(Trouble::HbdOffPeg { percent, for_ms: random.between(60_000, 3_600_000) });
            }
        }
        troubles.extend(self.roll_process());
        troubles.extend(self.roll_row());
        troubles.extend(self.roll_log());
        if lock(&self.streams).keys.chance(self.rate(Fault::KeyRotated)) {
            troubles.push(Trouble::RotateMasterKey);
        }
        {
            let random = &mut lock(&self.streams).copies;
            if random.chance(self.rate(Fault::Restored)) {
                troubles.push(if random.chance(500_000) { Trouble::Restore } else { Trouble::BackUp });
            }
        }
        for trouble in troubles {
            self.suffer(&trouble);
        }
    }

    /// Draws what a process meets beside its end.
    fn roll_process(&self) -> Option<Trouble> {
        let random = &mut lock(&self.streams).host;
        if random.chance(self.rate(Fault::ProcessFreeze)) {
            let most = *random.pick(&[2_000, 20_000, 120_000]);
            return Some(Trouble::Freeze { for_ms: random.between(500, most) });
        }
        if random.chance(self.rate(Fault::DiskSlow)) {
            let commit_ms = random.between(500, 20_000);
            return Some(Trouble::DiskSlow { commit_ms, for_ms: random.between(5_000, 60_000) });
        }
        random.chance(self.rate(Fault::OtherSettings)).then(|| Trouble::OtherSettings(Changeable::draw(random)))
    }

    /// Draws which row is damaged.
    fn roll_row(&self) -> Option<Trouble> {
        let random = &mut lock(&self.streams).rows;
        random.chance(self.rate(Fault::RowDamaged)).then(|| Trouble::DamageRow {
            table: None,
            session: None,
            pick: random.below(u64::MAX),
        })
    }

    /// Draws whether the log is damaged.
    fn roll_log(&self) -> Option<Trouble> {
        let random = &mut lock(&self.streams).rows;
        random.chance(self.rate(Fault::LogDamaged)).then(|| Trouble::DamageLog { pick: random.below(u64::MAX) })
    }

    /// Sets the wall clock so far ahead of the true time.
    pub(super) fn set_clock(&self, skew_ms: i64) {
        let before = self.time.skew_ms.swap(skew_ms, Ordering::Relaxed);
        if (skew_ms - before).abs() > 2 * MAX_STEPPED_MS {
            self.observe(Observer::clock_jumps);
        }
    }

    /// Lets something go wrong now.
    pub(crate) fn suffer(self: &Arc<Self>, trouble: &Trouble) {
        let now_ms = self.now_ms();
        let (lane, kind) = named(trouble);
        let happened = match trouble {
            Trouble::PowerCut => {
                self.die(Death::PowerCut);
                true
            }
            Trouble::Kill => {
                self.die(Death::Killed);
                true
            }
            Trouble::Restart => {
                self.die(Death::Restart);
                true
            }
            Trouble::OtherSettings(settings) => {
                lock(&self.setup).change(settings);
                self.mark("other settings are in force");
                self.die(Death::Restart);
                true
            }
            Trouble::Freeze { for_ms } => {
                lock(&self.traps).freeze_ms = Some(*for_ms);
                true
            }
            Trouble::RotateMasterKey => {
                let mut sealing = lock(&self.sealing);
                // One change at a time: a start that failed is tried again with the same two keys.
                let is_free = sealing.previous.is_none() && !self.is_damaged();
                if is_free {
                    sealing.rotate();
                    drop(sealing);
                    self.mark("another master key is in force");
                    self.die(Death::Restart);
                }
                is_free
            }
            Trouble::BackUp => self.back_up(),
            Trouble::Restore => {
                let may_restore = self.may_restore();
                if may_restore {
                    self.restore_later();
                    self.die(Death::Restart);
                }
                may_restore
            }
            Trouble::DamageLog { pick } => self.damage_log(*pick),
            Trouble::DamageRow { table, session, pick } => self.damage_row(*table, *session, *pick),
            Trouble::DiskSlow { commit_ms, for_ms } => {
                lock(&self.traps).disk_slow = Some((*commit_ms, now_ms + for_ms));
                true
            }
            Trouble::PowerCutIn(n) => {
                self.disk.cut_in(*n);
                true
            }
            Trouble::DiskErrorIn(n) => {
                self.disk.fail_in(*n);
                true
            }
            Trouble::ReadErrorIn(n) => {
                self.disk.fail_read_in(*n);
                true
            }
            Trouble::DiskFull { for_ms } => {
                self.disk.set_spare(Some(0));
                lock(&self.traps).disk_full_until = Some(now_ms + for_ms);
                true
            }
            Trouble::LoseReplyIn(n) => {
                lock(&self.traps).lose_reply_in = Some((*n).max(1));
                true
            }
            Trouble::KillAt(point) => {
                lock(&self.traps).kill_at.push_back(point.clone());
                true
            }
            Trouble::PanicAt(point) => {
                lock(&self.traps).panic_at.push_back(point.clone());
                true
            }
            Trouble::Outage { merchant, manner, for_ms } => {
                self.receivers().suffer(*merchant, *manner, now_ms + for_ms)
            }
            Trouble::ClockStep { by_ms } => {
                self.set_clock(self.time.skew_ms.load(Ordering::Relaxed) + by_ms);
                true
            }
            of_the_ledger => {
                let payee = {
                    let people = self.people();
                    people.sessions.last_key_value().map(|(_, session)| session.id)
                };
                let payee = payee.and_then(|id| {
                    self.observe(|observer| observer.payments.get(&id).map(|known| (known.payment.pay_to, memo_of(id))))
                });
                self.hive().suffer(of_the_ledger, now_ms, payee)
            }
        };
        self.observe_market();
        if happened {
            self.fault(lane, kind, 0, || said(trouble));
            if let Some((fault, node)) = struck(trouble, kind) {
                self.trace().strike(fault, node);
            }
        }
    }

    /// Notes what the market pays for HBD, and whether most nodes know it.
    pub(super) fn observe_market(&self) {
        let now_ms = self.now_ms();
        let (percent, priceless_until_ms) = {
            let hive = self.hive();
            (hive.hbd_percent(), hive.priceless_until(now_ms))
        };
        self.observe(|observer| {
            observer.market_pays(percent);
            observer.priceless_until_ms = priceless_until_ms.unwrap_or(observer.priceless_until_ms);
        });
    }

    pub(super) fn disk_tells(&self, incident: Incident) {
        self.disk_failed.store(true, Ordering::Relaxed);
        match incident {
            Incident::Error(what) => self.fault(Lane::Disk, "disk.error", 0, || format!("the disk fails: {what}")),
            Incident::Full => self.fault(Lane::Disk, "disk.no_room", 0, || "the disk is full".to_owned()),
            Incident::PowerCut => {
                self.fault(Lane::Disk, Fault::PowerCut.word(), 0, || {
                    "the power goes inside a disk operation".to_owned()
                });
                self.mark("the power goes inside a disk operation");
                self.die(Death::PowerCut);
            }
        }
    }

    /// Notes that a read of the store failed with an I/O error.
    pub(crate) fn read_fails(&self, name: &'static str) {
        self.mark("a read of the store fails");
        self.event(Lane::Disk, "read.failed", None, 0, || format!("the store cannot read {name}"));
        self.read_failed_ms.fetch_min(self.now_ms(), Ordering::Relaxed);
    }

    /// Holds that the engine stops soon after a read of its store failed with an I/O error.
    fn stops_after_read_error(&self, now_ms: u64) {
        let failed_ms = self.read_failed_ms.load(Ordering::Relaxed);
        if self.is_dead() || failed_ms == u64::MAX {
            return;
        }
        if now_ms > failed_ms + STOPS_WITHIN_MS {
            let text = format!("a read failed {} s ago, and the engine goes on", (now_ms - failed_ms) / 1_000);
            self.observe(|observer| observer.violate("read-error-stops-the-engine", text, None));
        } else {
            self.observe(|observer| observer.passes("read-error-stops-the-engine"));
        }
    }

    /// Ends the process here and now: nothing it still does reaches anybody.
    pub(super) fn die(&self, death: Death) {
        lock(&self.death).get_or_insert(death.clone());
        // A stop in order lets the actors finish first.
        if death != Death::Restart {
            self.disk.detach();
        }
        self.is_dead.fetch_or(death != Death::Restart, Ordering::Relaxed);
        self.died.notify_one();
    }

    /// Waits until the process dies.
    pub(super) async fn dead(&self) {
        while !self.is_dead() {
            self.died.notified().await;
        }
    }

    pub(super) fn take_death(&self) -> Death {
        lock(&self.death).take().unwrap_or(Death::Killed)
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.is_dead.load(Ordering::Relaxed) || lock(&self.death).is_some()
    }

    // ---- what everybody here uses ----------------------------------------------------------------------------------

    /// Returns at once in a living process, and never in a dead one. Counts, to notice who spins.
    pub(crate) async fn alive(&self) {
        self.count_spin(self.now_ms());
        if self.is_dead.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }

    pub(super) fn count_spin(&self, now_ms: u64) {
        if self.time.last_ms.swap(now_ms, Ordering::Relaxed) != now_ms {
            self.time.spins.store(0, Ordering::Relaxed);
        } else if self.time.spins.fetch_add(1, Ordering::Relaxed) == MAX_SPINS {
            self.observe(|observer| {
                let text = format!("{MAX_SPINS} calls and virtual time stands still");
                observer.violate("time-moves", text, None);
            });
        }
    }
}

fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Says what goes wrong, for whoever reads the story.
fn said(trouble: &Trouble) -> String {
    let time = crate::trace::show_ms;
    match trouble {
        Trouble::PowerCut => "the power goes".to_owned(),
        Trouble::PowerCutIn(n) => format!("the power will go at the disk's write or sync number {n} from now"),
        Trouble::DiskErrorIn(n) => format!("the disk will fail at its operation number {n} from now"),
        Trouble::ReadErrorIn(n) => format!("the disk will fail at its read number {n} from now"),
        Trouble::DiskFull { for_ms } => format!("the disk may not grow for {}", time(*for_ms)),
        Trouble::Kill => "the process is killed".to_owned(),
        Trouble::KillAt(point) => format!("the process will be killed when it reaches {point:?}"),
        Trouble::Restart => "the process is stopped and started again".to_owned(),
        Trouble::PanicAt(point) => format!("the actor that next reaches {point:?} will panic"),
        Trouble::NodeDown { node, for_ms } => format!("node {node} goes away for {}", time(*for_ms)),
        Trouble::NodeLag { node, blocks, for_ms } => {
            format!("node {node} falls {blocks} blocks behind for {}", time(*for_ms))
        }
        Trouble::NodeSlow { node, delay_ms, for_ms } => {
            format!("node {node} answers {} late for {}", time(*delay_ms), time(*for_ms))
        }
        Trouble::NodeFreeze { node, for_ms } => format!("node {node} freezes for {}", time(*for_ms)),
        Trouble::NodeBranch { node, depth, for_ms } => {
            format!("node {node} has other blocks than the newest {depth}, and after them, for {}", time(*for_ms))
        }
        Trouble::NodeKeeps { node, for_ms } => {
            format!("node {node} passes on no transaction for {}", time(*for_ms))
        }
        Trouble::NodeForeign { node, for_ms } => format!("node {node} serves another chain for {}", time(*for_ms)),
        Trouble::NodeLacks { node, for_ms } => {
            format!("node {node} keeps neither histories nor the state of transactions for {}", time(*for_ms))
        }
        Trouble::NodeLimits { node, for_ms } => format!("node {node} limits the rate for {}", time(*for_ms)),
        Trouble::NodeWithoutPrice { node, for_ms } => {
            format!("node {node} knows no price of HBD for {}", time(*for_ms))
        }
        Trouble::NodeLie { node, lie, for_ms } => {
            let word = Lying::ALL.iter().find(|(known, _)| known == lie).map_or("", |(_, word)| *word);
            format!("node {node} lies for {}: it {word}", time(*for_ms))
        }
        Trouble::Fork { depth, forget } => {
            let fate = if *forget { "forgets their transactions" } else { "lets their transactions wait again" };
            format!("the ledger will replace its newest {depth} reversible blocks and {fate}")
        }
        Trouble::HoldFinality { for_ms } => format!("nothing becomes irreversible for {}", time(*for_ms)),
        Trouble::HoldTransactions { for_ms } => format!("blocks stay empty for {}", time(*for_ms)),
        Trouble::HoldBlocks { for_ms } => format!("no block is made for {}", time(*for_ms)),
        Trouble::ForgetMempool => "the nodes forget what waits for a block".to_owned(),
        Trouble::Outage { merchant, manner, for_ms } => {
            format!("the receiver of shop {merchant} fails for {} ({manner:?})", time(*for_ms))
        }
        Trouble::LoseReplyIn(n) => format!("the answer to a caller will be lost, {n} from now"),
        Trouble::ClockStep { by_ms } => format!("the wall clock steps by {by_ms} ms"),
        Trouble::HbdOffPeg { percent, for_ms } => {
            format!("the market pays {percent} % of a dollar for HBD, for {}", time(*for_ms))
        }
        Trouble::Freeze { for_ms } => format!("the process stands still for {}", time(*for_ms)),
        Trouble::DiskSlow { commit_ms, for_ms } => {
            format!("a commit takes up to {}, for {}", time(*commit_ms), time(*for_ms))
        }
        Trouble::RotateMasterKey => "the process is stopped and started with another master key".to_owned(),
        Trouble::BackUp => "the store is backed up".to_owned(),
        Trouble::Restore => "the process is stopped, and started with the newest backup".to_owned(),
        Trouble::DamageLog { .. } => "a bit of the log changes".to_owned(),
        Trouble::DamageRow { table, .. } => {
            format!("a bit of a stored row changes{}", table.map(|table| format!(", of {table}")).unwrap_or_default())
        }
        Trouble::OtherSettings(settings) => format!("the process is stopped and started with {settings}"),
    }
}

/// Returns which node is struck, and by what.
fn struck(trouble: &Trouble, kind: &'static str) -> Option<(&'static str, usize)> {
    match trouble {
        Trouble::NodeLie { node, lie, .. } => {
            Lying::ALL.iter().find(|(known, _)| known == lie).map(|(_, word)| (*word, *node))
        }
        Trouble::NodeDown { node, .. }
        | Trouble::NodeLag { node, .. }
        | Trouble::NodeSlow { node, .. }
        | Trouble::NodeFreeze { node, .. }
        | Trouble::NodeBranch { node, .. }
        | Trouble::NodeKeeps { node, .. }
        | Trouble::NodeForeign { node, .. }
        | Trouble::NodeLacks { node, .. }
        | Trouble::NodeLimits { node, .. }
        | Trouble::NodeWithoutPrice { node, .. } => Some((kind, *node)),
        _ => None,
    }
}

fn named(trouble: &Trouble) -> (Lane, &'static str) {
    match trouble {
        Trouble::PowerCut | Trouble::PowerCutIn(_) => (Lane::Disk, Fault::PowerCut.word()),
        Trouble::DiskErrorIn(_) => (Lane::Disk, "disk.error_at"),
        Trouble::ReadErrorIn(_) => (Lane::Disk, Fault::DiskRead.word()),
        Trouble::DiskFull { .. } => (Lane::Disk, Fault::DiskFull.word()),
        Trouble::Kill => (Lane::Process, Fault::ProcessKill.word()),
        Trouble::KillAt(_) => (Lane::Process, Fault::KillAtPoint.word()),
        Trouble::Restart => (Lane::Process, Fault::GracefulRestart.word()),
        Trouble::PanicAt(_) => (Lane::Process, Fault::ActorPanic.word()),
        Trouble::NodeDown { .. } => (Lane::Ledger, Fault::NodeDown.word()),
        Trouble::NodeLag { .. } => (Lane::Ledger, Fault::NodeLag.word()),
        Trouble::NodeSlow { .. } => (Lane::Ledger, Fault::NodeSlow.word()),
        Trouble::NodeFreeze { .. } => (Lane::Ledger, Fault::NodeFreeze.word()),
        Trouble::NodeLie { .. } => (Lane::Ledger, Fault::NodeLie.word()),
        Trouble::NodeBranch { .. } => (Lane::Ledger, Fault::NodeBranch.word()),
        Trouble::NodeKeeps { .. } => (Lane::Ledger, Fault::NodeKeeps.word()),
        Trouble::NodeForeign { .. } => (Lane::Ledger, Fault::NodeForeign.word()),
        Trouble::NodeLacks { .. } => (Lane::Ledger, Fault::NodeLacks.word()),
        Trouble::NodeLimits { .. } => (Lane::Ledger, Fault::NodeLimits.word()),
        Trouble::NodeWithoutPrice { .. } => (Lane::Ledger, Fault::NodeWithoutPrice.word()),
        Trouble::Fork { .. } => (Lane::Ledger, "ledger.fork_wanted"),
        Trouble::HoldFinality { .. } => (Lane::Ledger, Fault::FinalityHeld.word()),
        Trouble::HoldTransactions { .. } => (Lane::Ledger, Fault::TransactionsHeld.word()),
        Trouble::HoldBlocks { .. } => (Lane::Ledger, Fault::MissedBlock.word()),
        Trouble::ForgetMempool => (Lane::Ledger, Fault::MempoolLost.word()),
        Trouble::Outage { .. } => (Lane::Webhook, Fault::HookOutage.word()),
        Trouble::LoseReplyIn(_) => (Lane::Process, "client.reply_lost_at"),
        Trouble::ClockStep { by_ms } if by_ms.abs() > 2 * MAX_STEPPED_MS => (Lane::Process, Fault::ClockJump.word()),
        Trouble::ClockStep { .. } => (Lane::Process, Fault::ClockStep.word()),
        Trouble::HbdOffPeg { .. } => (Lane::Ledger, Fault::HbdOffPeg.word()),
        Trouble::Freeze { .. } => (Lane::Process, Fault::ProcessFreeze.word()),
        Trouble::DiskSlow { .. } => (Lane::Disk, Fault::DiskSlow.word()),
        Trouble::OtherSettings(_) => (Lane::Process, Fault::OtherSettings.word()),
        Trouble::DamageRow { .. } => (Lane::Disk, Fault::RowDamaged.word()),
        Trouble::RotateMasterKey => (Lane::Process, Fault::KeyRotated.word()),
        Trouble::BackUp => (Lane::Disk, "process.backed_up"),
        Trouble::Restore => (Lane::Process, Fault::Restored.word()),
        Trouble::DamageLog { .. } => (Lane::Disk, Fault::LogDamaged.word()),
    }
}
