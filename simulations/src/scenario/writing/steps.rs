//! Writes actions as the lines that [`actions`](super::super::actions) reads.

use engine::money::Currency;

use super::{
    super::values::{FINALITIES, keyword_of},
    SessionNames,
    line::Line,
};
use crate::script::{
    Action, AgentBehavior, CommitOutcome, DiskFault, FacadeCall, FaultInjection, LedgerFault, LieKind,
    ManagementAction, Memo, MerchantChange, NodeFault, OutageKind, OwnershipAction, Peer, ProcessFault, SessionAction,
    StoreFault,
};

/// Writes an action; none for one about a session that no step before creates.
pub(super) fn write_action(action: &Action, engine: Option<usize>, names: &SessionNames) -> Option<String> {
    let line = match action {
        Action::Inject(injection) => write_injection(injection, names),
        Action::Create { .. }
        | Action::CreateElsewhere { .. }
        | Action::Assign { .. }
        | Action::ActOnSession { .. }
        | Action::ChangeMerchant { .. }
        | Action::Manage { .. }
        | Action::Ownership { .. } => write_merchant(action, names)?,
        _ => write_client(action, names)?,
    };
    Some(line.optional("engine", engine).finish())
}

/// Writes what a merchant does.
fn write_merchant<'a>(action: &Action, names: &'a SessionNames) -> Option<Line<'a>> {
    let line = |merchant: usize, does: &str| Line::new(names, format_args!("merchant {merchant}"), does);
    Some(match *action {
        Action::Create { session, merchant, units, currency, lifetime_seconds } => {
            let line = line(merchant, "create").session(session)?.amount(units, currency);
            with_lifetime(line, lifetime_seconds)
        }
        Action::CreateElsewhere { session, merchant, units, lifetime_seconds } => {
            let line = line(merchant, "create elsewhere").session(session)?.amount(units, Currency::Hbd);
            with_lifetime(line, lifetime_seconds)
        }
        Action::Assign { session } => line(0, "assign").session(session)?,
        Action::ActOnSession { session, action: action @ (SessionAction::ReportWallet | SessionAction::Watch) } => {
            Line::new(names, "customer", keyword_of(&action, &SessionAction::ALL)).session(session)?
        }
        Action::Manage { action, .. } if action.is_operators() => {
            Line::new(names, "operator", keyword_of(&action, &ManagementAction::ALL))
        }
        Action::Manage { merchant, action } => line(merchant, keyword_of(&action, &ManagementAction::ALL)),
        Action::ActOnSession { session, action } => {
            line(0, keyword_of(&action, &SessionAction::ALL)).session(session)?
        }
        Action::ChangeMerchant { merchant, change: MerchantChange::RotateSecret { grace_seconds } } => {
            line(merchant, "rotate secret").duration("grace", grace_seconds * 1_000)
        }
        Action::ChangeMerchant { merchant, change } => line(merchant, keyword_of(&change, &MerchantChange::ALL)),
        Action::Ownership { merchant, action } => line(merchant, keyword_of(&action, &OwnershipAction::ALL)),
        _ => return None,
    })
}

fn with_lifetime(line: Line<'_>, seconds: Option<u64>) -> Line<'_> {
    match seconds {
        Some(seconds) => line.duration("lifetime", seconds * 1_000),
        None => line,
    }
}

/// Writes what payers, customers, agents, other engines and clients of the facade do.
fn write_client<'a>(action: &Action, names: &'a SessionNames) -> Option<Line<'a>> {
    let numbered = |who: &str, number: usize, does: &str| Line::new(names, format_args!("{who} {number}"), does);
    Some(match *action {
        Action::HandOver { session } => Line::new(names, "other engine", "hand over").session(session)?,
        Action::PayAgain { session, payer, units, currency, every_hours, times } => {
            numbered("payer", payer, "start a recurrent transfer")
                .session(session)?
                .amount(units, currency)
                .quoted("every", format!("{every_hours}h"))
                .value("times", times)
        }
        Action::Pay { session, payer, units, currency, memo } => {
            let (who, number) = payer.map_or(("merchant", 0), |payer| ("payer", payer));
            numbered(who, number, "pay")
                .session(session)?
                .amount(units, currency)
                .quoted("memo", keyword_of(&memo, &Memo::ALL))
        }
        Action::Cancel { session, by_merchant } => {
            let who = if by_merchant { "merchant 0" } else { "customer" };
            Line::new(names, who, "cancel").session(session)?
        }
        Action::Settle { session, agent, behavior } => {
            let line = numbered("agent", agent, "settle").session(session)?;
            match behavior {
                AgentBehavior::Honest => line,
                AgentBehavior::Replay { of } => line.quoted("trick", "replay").session_as("of", of)?,
                other => line.quoted("trick", keyword_of(&other, &AgentBehavior::ALL)),
            }
        }
        Action::Facilitate { agent, resource, units } => {
            numbered("agent", agent, "pay elsewhere").value("resource", resource).amount(units, Currency::Hbd)
        }
        Action::PayWithWallet { request, units } => {
            numbered("agent", 0, "pay with a wallet").value("resource", request).amount(units, Currency::Hbd)
        }
        Action::Purchase { agent, resource, shown, seller, key, units } => numbered("agent", agent, "pay a seller")
            .value("resource", resource)
            .value("shown", shown)
            .optional("seller", seller)
            .optional("key", key)
            .amount(units, Currency::Hbd),
        Action::CallFacade { session, call } => {
            Line::new(names, "client", keyword_of(&call, &FacadeCall::ALL)).session(session)?
        }
        _ => return None,
    })
}

fn write_injection<'a>(injection: &FaultInjection, names: &'a SessionNames) -> Line<'a> {
    match injection {
        FaultInjection::Process(fault) => write_process_fault(fault, names),
        FaultInjection::Disk(fault) => write_disk_fault(fault, names),
        FaultInjection::Node { node, fault, for_ms } => write_node_fault(*node, fault, names).lasting(*for_ms),
        FaultInjection::Ledger(fault) => write_ledger_fault(fault, names),
        FaultInjection::Outage { merchant, kind, for_ms } => {
            let kind = match kind {
                OutageKind::Status(status) => status.to_string(),
                OutageKind::Timeout => "timeout".to_owned(),
                OutageKind::Refused => "refused".to_owned(),
                OutageKind::Dns => "dns".to_owned(),
            };
            Line::new(names, format_args!("receiver {merchant}"), "fail").quoted("manner", kind).lasting(*for_ms)
        }
        FaultInjection::LoseReplyIn(n) => Line::new(names, "client", "lose a response").value("operation", n),
        FaultInjection::ClockStep { by_ms } => {
            let sign = if *by_ms < 0 { "-" } else { "" };
            let by = super::show(by_ms.unsigned_abs());
            Line::new(names, "clock", "step").quoted("by", format!("{sign}{by}"))
        }
        FaultInjection::Partition { peer: Peer::Store, for_ms } => {
            Line::new(names, "process", "lose the store").lasting(*for_ms)
        }
        FaultInjection::Partition { peer: Peer::Node(node), for_ms } => {
            Line::new(names, "process", "lose a node").value("node", node).lasting(*for_ms)
        }
        FaultInjection::Store(StoreFault::FailOver { for_ms }) => {
            Line::new(names, "store", "fail over").lasting(*for_ms)
        }
        FaultInjection::Store(StoreFault::BreakCommit(outcome)) => {
            let line = Line::new(names, "store", "break a commit").quoted("manner", outcome.as_str());
            match outcome {
                CommitOutcome::Applied | CommitOutcome::Dropped => line,
                outcome => line.duration("by", outcome.after_ms()),
            }
        }
    }
}

fn write_process_fault<'a>(fault: &ProcessFault, names: &'a SessionNames) -> Line<'a> {
    let line = |does: &str| Line::new(names, "process", does);
    match fault {
        ProcessFault::Kill => line("be killed"),
        ProcessFault::KillAt(point) => line("be killed").quoted("point", point),
        ProcessFault::Restart => line("restart"),
        ProcessFault::PanicAt(point) => Line::new(names, "actor", "panic").quoted("point", point),
        ProcessFault::Pause { for_ms } => line("pause").lasting(*for_ms),
        ProcessFault::OtherSettings(settings) => line("restart with other settings")
            .duration("ttl", settings.lifetime_seconds * 1_000)
            .duration("grace", settings.grace_seconds * 1_000)
            .quoted("x402_finality", keyword_of(&settings.x402_finality, &FINALITIES))
            .value("max_active", settings.max_active),
        ProcessFault::RotateMasterKey => line("restart with another master key"),
        ProcessFault::BackUp => line("be backed up"),
        ProcessFault::Restore => line("be restored"),
    }
}

fn write_disk_fault<'a>(fault: &DiskFault, names: &'a SessionNames) -> Line<'a> {
    let line = |does: &str| Line::new(names, "disk", does);
    match fault {
        DiskFault::PowerCut => line("power-cut"),
        DiskFault::PowerCutIn(n) => line("power-cut").value("operation", n),
        DiskFault::ErrorIn(n) => line("fail").value("operation", n),
        DiskFault::ReadErrorIn(n) => line("fail to read").value("operation", n),
        DiskFault::Full { for_ms } => line("fill up").lasting(*for_ms),
        DiskFault::Slow { commit_ms, for_ms } => line("be slow").duration("by", *commit_ms).lasting(*for_ms),
        DiskFault::DamageLog { pick } => line("damage the log").value("operation", pick >> 32),
        DiskFault::DamageRow { table, session, pick } => {
            let name = session.and_then(|session| names.get(&session));
            let quoted = |text: &str| format!("{text:?}");
            line("damage a row")
                .optional("table", table.map(quoted))
                .optional("session", name.map(|name| quoted(name)))
                .value("operation", pick >> 32)
        }
    }
}

fn write_node_fault<'a>(node: usize, fault: &NodeFault, names: &'a SessionNames) -> Line<'a> {
    let line = |does: &str| Line::new(names, format_args!("node {node}"), does);
    match fault {
        NodeFault::Down => line("be unreachable"),
        NodeFault::Lag { blocks } => line("lag").value("blocks", blocks),
        NodeFault::Slow { delay_ms } => line("respond late").duration("by", *delay_ms),
        NodeFault::Stalled => line("stall"),
        NodeFault::OwnFork { depth } => line("fork alone").value("depth", depth),
        NodeFault::KeepsTransactions => line("withhold transactions"),
        NodeFault::OtherChain => line("serve another chain"),
        NodeFault::LacksApis => line("lack APIs"),
        NodeFault::LimitsRate => line("limit the rate"),
        NodeFault::NoPrice => line("lack the price of HBD"),
        NodeFault::Lies(lie) => line("lie").quoted("lie", keyword_of(lie, &LieKind::ALL)),
    }
}

fn write_ledger_fault<'a>(fault: &LedgerFault, names: &'a SessionNames) -> Line<'a> {
    let line = |does: &str| Line::new(names, "ledger", does);
    match fault {
        LedgerFault::Fork { depth, forget } => line("fork").value("depth", depth).value("forget", forget),
        LedgerFault::HoldFinality { for_ms } => line("hold finality").lasting(*for_ms),
        LedgerFault::HoldTransactions { for_ms } => line("hold transactions").lasting(*for_ms),
        LedgerFault::HoldBlocks { for_ms } => line("hold blocks").lasting(*for_ms),
        LedgerFault::ForgetMempool => line("drop pending transactions"),
        LedgerFault::HbdOffPeg { percent, for_ms } => {
            Line::new(names, "market", "price HBD").value("percent", percent).lasting(*for_ms)
        }
    }
}
