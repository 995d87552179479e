//! Injects faults into the process, the disk, nodes, the ledger, webhook receivers and the clock.

use super::*;

impl Simulation {
    /// Injects a fault now; what affects an engine affects the one that is named, or the first.
    pub(crate) fn inject(self: &Arc<Self>, injection: &FaultInjection, named: Option<usize>) {
        let process = &self.processes[named.unwrap_or(0).min(self.processes.len() - 1)];
        let now_ms = self.now_ms();
        let happened = match injection {
            FaultInjection::Process(fault) => self.inject_process(process, fault),
            FaultInjection::Disk(fault) => self.inject_disk(fault, now_ms),
            FaultInjection::Node { node, fault, for_ms } => {
                let payee = self.newest_payee();
                self.hive().inject_node(*node, fault, now_ms, *for_ms, payee)
            }
            FaultInjection::Ledger(fault) => {
                // The newest session is looked up as for a node: observations count in the trace.
                let _ = self.newest_payee();
                self.hive().inject_ledger(fault, now_ms)
            }
            FaultInjection::Outage { merchant, kind, for_ms } => {
                self.receivers().fail_until(*merchant, *kind, now_ms + for_ms)
            }
            FaultInjection::LoseReplyIn(n) => {
                lock(&self.armed_faults).lose_reply_in = Some((*n).max(1));
                true
            }
            FaultInjection::ClockStep { by_ms } => {
                self.set_clock(process, process.skew_ms() + by_ms);
                true
            }
            FaultInjection::Partition { peer, for_ms } => {
                self.cut_off(process, *peer, now_ms + for_ms);
                true
            }
            FaultInjection::Store(fault) => self.inject_store(process, fault, now_ms),
        };
        self.observe_market();
        if happened {
            let (source, kind) = injection_text::source(injection);
            let source = if source == Source::Process { process.source() } else { source };
            self.fault(source, kind, 0, || injection_text::describe(injection));
            let lasts_ms = injection.lasts_ms();
            if lasts_ms > 0 {
                let text = || format!("fault over: {}", injection_text::describe(injection));
                self.trace().fault_will_end(now_ms + lasts_ms, source, text);
            }
            if let Some((fault, node)) = injection_text::node_fault(injection) {
                self.trace().count_node_fault(fault, node);
            }
        }
    }

    /// Injects a fault of the process; returns whether it had an effect.
    fn inject_process(self: &Arc<Self>, process: &Arc<Process>, fault: &ProcessFault) -> bool {
        match fault {
            ProcessFault::Kill => self.exit_process(process, ProcessExit::Killed),
            ProcessFault::KillAt(point) => lock(&process.armed).kill_at.push_back(point.clone()),
            ProcessFault::PanicAt(point) => lock(&process.armed).panic_at.push_back(point.clone()),
            ProcessFault::Restart => self.exit_process(process, ProcessExit::Restart),
            ProcessFault::Pause { for_ms } if self.has_shared_store() => self.pause_engine(process, *for_ms),
            ProcessFault::Pause { for_ms } => lock(&process.armed).pause_ms = Some(*for_ms),
            ProcessFault::OtherSettings(settings) => {
                lock(&process.setup).change(settings);
                self.mark("other settings are in force");
                self.exit_process(process, ProcessExit::Restart);
            }
            ProcessFault::RotateMasterKey => return self.rotate_master_key(process),
            ProcessFault::BackUp => return self.back_up(),
            ProcessFault::Restore => {
                if !self.may_restore() {
                    return false;
                }
                self.restore_later();
                self.exit_process(process, ProcessExit::Restart);
            }
        }
        true
    }

    /// Injects a fault of the store that several engines share; returns whether there is one.
    fn inject_store(&self, process: &Process, fault: &StoreFault, now_ms: u64) -> bool {
        let Some(store) = lock(&self.shared_store).clone() else { return false };
        match fault {
            StoreFault::FailOver { for_ms } => {
                let drops = |unconfirmed: usize| lock(&self.streams).cluster.index(unconfirmed + 1);
                store.fail_over(now_ms + for_ms, drops);
            }
            StoreFault::BreakCommit(outcome) => store.break_next_commit(process.number, *outcome),
        }
        true
    }

    /// Restarts the process with another master key, unless the last change is not finished.
    fn rotate_master_key(&self, process: &Process) -> bool {
        let mut sealing = lock(&self.sealing);
        // One change at a time: a start that failed is repeated with the same two keys.
        if sealing.previous.is_some() || self.is_damaged() {
            return false;
        }
        sealing.rotate();
        drop(sealing);
        self.mark("another master key is in force");
        self.exit_process(process, ProcessExit::Restart);
        true
    }

    /// Injects a fault of the disk; returns whether it had an effect.
    fn inject_disk(&self, fault: &DiskFault, now_ms: u64) -> bool {
        match fault {
            DiskFault::PowerCut => self.exit_process(&self.processes[0], ProcessExit::PowerCut),
            DiskFault::PowerCutIn(n) => self.disk.cut_in(*n),
            DiskFault::ErrorIn(n) => self.disk.fail_in(*n),
            DiskFault::ReadErrorIn(n) => self.disk.fail_read_in(*n),
            DiskFault::Full { for_ms } => {
                self.disk.set_spare(Some(0));
                lock(&self.armed_faults).disk_full_until = Some(now_ms + for_ms);
            }
            DiskFault::Slow { commit_ms, for_ms } => {
                lock(&self.armed_faults).disk_slow = Some((*commit_ms, now_ms + for_ms));
            }
            DiskFault::DamageLog { pick } => return self.damage_log(*pick),
            DiskFault::DamageRow { table, session, pick } => return self.damage_row(*table, *session, *pick),
        }
        true
    }

    /// Returns the account and the memo of the newest session: what a node that invents a transfer names.
    fn newest_payee(&self) -> Option<(AccountName, String)> {
        let id = self.clients().sessions.last_key_value().map(|(_, session)| session.id)?;
        self.observe(|observer| observer.payments.get(&id).map(|known| (known.payment.pay_to, memo_of(id))))
    }
}
