//! Injected faults in the trace: source, kind, text, and node.

use super::*;
use crate::trace::show_ms;

/// Returns the source of the trace and the kind of event.
pub(super) fn source(injection: &FaultInjection) -> (Source, &'static str) {
    match injection {
        FaultInjection::Process(fault) => source_of_process(fault),
        FaultInjection::Disk(fault) => (Source::Disk, kind_of_disk(fault)),
        FaultInjection::Node { fault, .. } => (Source::Ledger, kind_of_node(fault)),
        FaultInjection::Ledger(fault) => (Source::Ledger, kind_of_ledger(fault)),
        FaultInjection::Outage { .. } => (Source::Webhook, Fault::HookOutage.as_str()),
        FaultInjection::LoseReplyIn(_) => (Source::Process, "client.reply_lost_at"),
        FaultInjection::ClockStep { by_ms } if by_ms.abs() > 2 * faults::MAX_STEPPED_MS => {
            (Source::Process, Fault::ClockJump.as_str())
        }
        FaultInjection::ClockStep { .. } => (Source::Process, Fault::ClockStep.as_str()),
        FaultInjection::Partition { peer: Peer::Store, .. } => (Source::Process, Fault::StoreCut.as_str()),
        FaultInjection::Partition { peer: Peer::Node(_), .. } => (Source::Process, Fault::NodeCut.as_str()),
        FaultInjection::Store(StoreFault::FailOver { .. }) => (Source::Disk, Fault::StoreFailover.as_str()),
        FaultInjection::Store(StoreFault::BreakCommit(_)) => (Source::Process, "store.commit_will_break"),
    }
}

fn source_of_process(fault: &ProcessFault) -> (Source, &'static str) {
    match fault {
        ProcessFault::BackUp => (Source::Disk, "process.backed_up"),
        ProcessFault::Kill => (Source::Process, Fault::ProcessKill.as_str()),
        ProcessFault::KillAt(_) => (Source::Process, Fault::KillAtPoint.as_str()),
        ProcessFault::Restart => (Source::Process, Fault::GracefulRestart.as_str()),
        ProcessFault::PanicAt(_) => (Source::Process, Fault::ActorPanic.as_str()),
        ProcessFault::Pause { .. } => (Source::Process, Fault::ProcessPause.as_str()),
        ProcessFault::OtherSettings(_) => (Source::Process, Fault::OtherSettings.as_str()),
        ProcessFault::RotateMasterKey => (Source::Process, Fault::KeyRotated.as_str()),
        ProcessFault::Restore => (Source::Process, Fault::Restored.as_str()),
    }
}

fn kind_of_disk(fault: &DiskFault) -> &'static str {
    match fault {
        DiskFault::PowerCut | DiskFault::PowerCutIn(_) => Fault::PowerCut.as_str(),
        DiskFault::ErrorIn(_) => "disk.error_at",
        DiskFault::ReadErrorIn(_) => Fault::DiskRead.as_str(),
        DiskFault::Full { .. } => Fault::DiskFull.as_str(),
        DiskFault::Slow { .. } => Fault::DiskSlow.as_str(),
        DiskFault::DamageLog { .. } => Fault::LogDamaged.as_str(),
        DiskFault::DamageRow { .. } => Fault::RowDamaged.as_str(),
    }
}

fn kind_of_node(fault: &NodeFault) -> &'static str {
    match fault {
        NodeFault::Down => Fault::NodeDown.as_str(),
        NodeFault::Lag { .. } => Fault::NodeLag.as_str(),
        NodeFault::Slow { .. } => Fault::NodeSlow.as_str(),
        NodeFault::Stalled => Fault::NodeStall.as_str(),
        NodeFault::OwnFork { .. } => Fault::NodeBranch.as_str(),
        NodeFault::KeepsTransactions => Fault::NodeKeeps.as_str(),
        NodeFault::OtherChain => Fault::NodeForeign.as_str(),
        NodeFault::LacksApis => Fault::NodeLacks.as_str(),
        NodeFault::LimitsRate => Fault::NodeLimits.as_str(),
        NodeFault::NoPrice => Fault::NodeWithoutPrice.as_str(),
        NodeFault::Lies(_) => Fault::NodeLie.as_str(),
    }
}

fn kind_of_ledger(fault: &LedgerFault) -> &'static str {
    match fault {
        LedgerFault::Fork { .. } => "ledger.fork_wanted",
        LedgerFault::HoldFinality { .. } => Fault::FinalityHeld.as_str(),
        LedgerFault::HoldTransactions { .. } => Fault::TransactionsHeld.as_str(),
        LedgerFault::HoldBlocks { .. } => Fault::MissedBlock.as_str(),
        LedgerFault::ForgetMempool => Fault::MempoolLost.as_str(),
        LedgerFault::HbdOffPeg { .. } => Fault::HbdOffPeg.as_str(),
    }
}

/// Returns the fault of a node by its name in the coverage, and the node.
pub(super) fn node_fault(injection: &FaultInjection) -> Option<(&'static str, usize)> {
    match injection {
        FaultInjection::Node { node, fault: NodeFault::Lies(lie), .. } => Some((word_of_lie(*lie), *node)),
        FaultInjection::Node { node, fault, .. } => Some((kind_of_node(fault), *node)),
        _ => None,
    }
}

fn word_of_lie(lie: LieKind) -> &'static str {
    LieKind::ALL.iter().find(|(known, _)| *known == lie).map_or("", |(_, word)| *word)
}

/// Describes a fault for readers of the trace.
pub(super) fn describe(injection: &FaultInjection) -> String {
    match injection {
        FaultInjection::Process(fault) => describe_process(fault),
        FaultInjection::Disk(fault) => describe_disk(fault),
        FaultInjection::Node { node, fault: NodeFault::Lies(lie), for_ms } => {
            format!("node {node} returns wrong data for {}: it {}", show_ms(*for_ms), word_of_lie(*lie))
        }
        FaultInjection::Node { node, fault, for_ms } => {
            format!("node {node} {} for {}", describe_node(fault), show_ms(*for_ms))
        }
        FaultInjection::Ledger(fault) => describe_ledger(fault),
        FaultInjection::Outage { merchant, kind, for_ms } => {
            format!("the receiver of shop {merchant} fails for {} ({kind:?})", show_ms(*for_ms))
        }
        FaultInjection::LoseReplyIn(n) => format!("the response to the {n}th call from now will be lost"),
        FaultInjection::ClockStep { by_ms } => format!("the wall clock steps by {by_ms} ms"),
        FaultInjection::Partition { peer: Peer::Store, for_ms } => {
            format!("the engine cannot reach the store for {}", show_ms(*for_ms))
        }
        FaultInjection::Partition { peer: Peer::Node(node), for_ms } => {
            format!("the engine cannot reach node {node} for {}", show_ms(*for_ms))
        }
        FaultInjection::Store(StoreFault::FailOver { for_ms }) => {
            format!("the store fails over, and is unreachable for {}", show_ms(*for_ms))
        }
        FaultInjection::Store(StoreFault::BreakCommit(outcome)) => {
            format!("the connection will break during the engine's next commit, which is {}", outcome.as_str())
        }
    }
}

fn describe_process(fault: &ProcessFault) -> String {
    match fault {
        ProcessFault::Kill => "the process is killed".to_owned(),
        ProcessFault::KillAt(point) => format!("the process will be killed when it reaches {point:?}"),
        ProcessFault::Restart => "the process is stopped and started again".to_owned(),
        ProcessFault::PanicAt(point) => format!("the actor that next reaches {point:?} will panic"),
        ProcessFault::Pause { for_ms } => format!("the process is paused for {}", show_ms(*for_ms)),
        ProcessFault::OtherSettings(settings) => format!("the process is stopped and started with {settings}"),
        ProcessFault::RotateMasterKey => "the process is stopped and started with another master key".to_owned(),
        ProcessFault::BackUp => "the store is backed up".to_owned(),
        ProcessFault::Restore => "the process is stopped, and started with the newest backup".to_owned(),
    }
}

fn describe_disk(fault: &DiskFault) -> String {
    match fault {
        DiskFault::PowerCut => "power is lost".to_owned(),
        DiskFault::PowerCutIn(n) => format!("power will be lost at write or sync number {n} from now"),
        DiskFault::ErrorIn(n) => format!("disk operation number {n} from now will fail"),
        DiskFault::ReadErrorIn(n) => format!("disk read number {n} from now will fail"),
        DiskFault::Full { for_ms } => format!("the disk is full for {}", show_ms(*for_ms)),
        DiskFault::Slow { commit_ms, for_ms } => {
            format!("a commit takes up to {}, for {}", show_ms(*commit_ms), show_ms(*for_ms))
        }
        DiskFault::DamageLog { .. } => "a bit of the log is flipped".to_owned(),
        DiskFault::DamageRow { table, .. } => {
            format!(
                "a bit of a stored row is flipped{}",
                table.map(|table| format!(", of {table}")).unwrap_or_default()
            )
        }
    }
}

fn describe_node(fault: &NodeFault) -> String {
    match fault {
        NodeFault::Down => "goes away".to_owned(),
        NodeFault::Lag { blocks } => format!("falls {blocks} blocks behind"),
        NodeFault::Slow { delay_ms } => format!("responds {} late", show_ms(*delay_ms)),
        NodeFault::Stalled => "stops advancing".to_owned(),
        NodeFault::OwnFork { depth } => format!("has its own fork from {depth} blocks below the head on,"),
        NodeFault::KeepsTransactions => "relays no transactions".to_owned(),
        NodeFault::OtherChain => "serves another chain".to_owned(),
        NodeFault::LacksApis => "lacks the account history and transaction status APIs".to_owned(),
        NodeFault::LimitsRate => "limits the rate".to_owned(),
        NodeFault::NoPrice => "lacks the price of HBD".to_owned(),
        NodeFault::Lies(lie) => word_of_lie(*lie).to_owned(),
    }
}

fn describe_ledger(fault: &LedgerFault) -> String {
    match fault {
        LedgerFault::Fork { depth, forget } => {
            let orphaned = if *forget { "drops their transactions" } else { "makes their transactions pending again" };
            format!("the ledger will replace its newest {depth} reversible blocks and {orphaned}")
        }
        LedgerFault::HoldFinality { for_ms } => format!("nothing becomes irreversible for {}", show_ms(*for_ms)),
        LedgerFault::HoldTransactions { for_ms } => format!("blocks stay empty for {}", show_ms(*for_ms)),
        LedgerFault::HoldBlocks { for_ms } => format!("no block is produced for {}", show_ms(*for_ms)),
        LedgerFault::ForgetMempool => "the nodes lose their pending transactions".to_owned(),
        LedgerFault::HbdOffPeg { percent, for_ms } => {
            format!("the market pays {percent} % of a dollar for HBD, for {}", show_ms(*for_ms))
        }
    }
}
