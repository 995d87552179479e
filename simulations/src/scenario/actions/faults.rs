//! Reads the faults that a scenario injects.

use super::{
    super::values::{FINALITIES, find_keyword, point},
    *,
};
use crate::script::{
    ChangeableSettings, CommitOutcome, DiskFault, FaultInjection, LedgerFault, LieKind, NodeFault, OutageKind, Peer,
    ProcessFault, StoreFault,
};

/// How far a scenario may step the wall clock, milliseconds.
const MAX_CLOCK_STEP_MS: i64 = 86_400_000;

fn inject(injection: FaultInjection) -> Result<Action, Problem> {
    Ok(Action::Inject(injection))
}

// ---- nodes -----------------------------------------------------------------------------------------------------------

fn node(step: &StepReader<'_>, fault: NodeFault) -> Result<Action, Problem> {
    let node = step.number_below(step.setup.nodes)?;
    inject(FaultInjection::Node { node, fault, for_ms: step.for_ms()? })
}

pub(super) fn node_down(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    node(step, NodeFault::Down)
}

pub(super) fn node_lags(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    node(step, NodeFault::Lag { blocks: step.raw.blocks.ok_or("`blocks` is missing")? })
}

pub(super) fn node_stalls(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    node(step, NodeFault::Stalled)
}

pub(super) fn node_is_slow(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    node(step, NodeFault::Slow { delay_ms: step.by_ms()? })
}

pub(super) fn node_forks(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    node(step, NodeFault::OwnFork { depth: step.raw.depth.unwrap_or(0) })
}

pub(super) fn node_keeps_transactions(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    node(step, NodeFault::KeepsTransactions)
}

pub(super) fn node_lies(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    let lie = find_keyword("lie", required("lie", &step.raw.lie)?, &LieKind::ALL)?;
    if step.setup.nodes < 3 && !lie.is_evident() {
        return Err("`does` \"lie\": with fewer than three nodes wrong data cannot be detected".to_owned());
    }
    node(step, NodeFault::Lies(lie))
}

pub(super) fn node_serves_other_chain(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    node(step, NodeFault::OtherChain)
}

pub(super) fn node_lacks_apis(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    node(step, NodeFault::LacksApis)
}

pub(super) fn node_limits_rate(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    node(step, NodeFault::LimitsRate)
}

pub(super) fn node_has_no_price(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    node(step, NodeFault::NoPrice)
}

// ---- ledger ----------------------------------------------------------------------------------------------------------

fn ledger(fault: LedgerFault) -> Result<Action, Problem> {
    inject(FaultInjection::Ledger(fault))
}

pub(super) fn fork(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    let depth = step.raw.depth.ok_or("`depth` is missing")?;
    if depth == 0 || depth > 20 {
        return Err("`depth` must be from 1 to 20".to_owned());
    }
    ledger(LedgerFault::Fork { depth, forget: step.raw.forget.unwrap_or(false) })
}

pub(super) fn hold_finality(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    ledger(LedgerFault::HoldFinality { for_ms: step.for_ms()? })
}

pub(super) fn hold_transactions(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    ledger(LedgerFault::HoldTransactions { for_ms: step.for_ms()? })
}

pub(super) fn hold_blocks(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    ledger(LedgerFault::HoldBlocks { for_ms: step.for_ms()? })
}

pub(super) fn forget_mempool(_: &mut StepReader<'_>) -> Result<Action, Problem> {
    ledger(LedgerFault::ForgetMempool)
}

pub(super) fn price_hbd(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    let percent = step.raw.percent.filter(|percent| (10..=1_000).contains(percent));
    let percent = percent.ok_or("`percent` of a dollar must be from 10 to 1000")?;
    ledger(LedgerFault::HbdOffPeg { percent, for_ms: step.for_ms()? })
}

// ---- disk ------------------------------------------------------------------------------------------------------------

fn disk(step: &StepReader<'_>, fault: DiskFault) -> Result<Action, Problem> {
    let is_shared = step.setup.engines > 1;
    if is_shared && !matches!(fault, DiskFault::Slow { .. }) {
        return Err(format!("`who` {:?}: several engines share a store, which has no such fault", step.raw.who));
    }
    inject(FaultInjection::Disk(fault))
}

pub(super) fn power_cut(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    disk(step, step.raw.operation.map_or(DiskFault::PowerCut, DiskFault::PowerCutIn))
}

pub(super) fn disk_error(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    disk(step, DiskFault::ErrorIn(step.raw.operation.unwrap_or(1)))
}

pub(super) fn read_error(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    disk(step, DiskFault::ReadErrorIn(step.raw.operation.unwrap_or(1)))
}

pub(super) fn disk_full(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    disk(step, DiskFault::Full { for_ms: step.for_ms()? })
}

pub(super) fn disk_slow(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    disk(step, DiskFault::Slow { commit_ms: step.by_ms()?, for_ms: step.for_ms()? })
}

pub(super) fn damage_row(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    let find_table = |name: &str| {
        let found = storage::TABLE_NAMES.into_iter().find(|known| *known == name);
        found.ok_or_else(|| one_of("table", name, storage::TABLE_NAMES))
    };
    let table = step.raw.table.as_deref().map(find_table).transpose()?;
    let session = step.raw.session.as_deref().map(|name| step.names.find(name)).transpose()?;
    disk(step, DiskFault::DamageRow { table, session, pick: step.raw.operation.unwrap_or(0) << 32 })
}

pub(super) fn damage_log(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    disk(step, DiskFault::DamageLog { pick: step.raw.operation.unwrap_or(0) << 32 })
}

// ---- process ---------------------------------------------------------------------------------------------------------

fn process(fault: ProcessFault) -> Result<Action, Problem> {
    inject(FaultInjection::Process(fault))
}

/// Reads an intervention that only a process with a store of its own survives.
fn of_own_store(step: &StepReader<'_>, fault: ProcessFault) -> Result<Action, Problem> {
    if step.setup.engines > 1 {
        return Err(format!("`does` {:?}: several engines share a store", step.raw.does));
    }
    process(fault)
}

pub(super) fn kill(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    process(match &*step.raw.point {
        None => ProcessFault::Kill,
        Some(at) => ProcessFault::KillAt(point(at)?),
    })
}

pub(super) fn panic(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    process(ProcessFault::PanicAt(point(required("point", &step.raw.point)?)?))
}

pub(super) fn restart(_: &mut StepReader<'_>) -> Result<Action, Problem> {
    process(ProcessFault::Restart)
}

pub(super) fn restart_with_settings(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    process(ProcessFault::OtherSettings(settings(step.raw, step.setup)?))
}

/// Reads the settings of a restart; those that are left out are as in `[environment]`.
fn settings(raw: &RawStep, setup: &Setup) -> Result<ChangeableSettings, Problem> {
    let seconds = |name: &str, text: &Option<String>, default: u64| -> Result<u64, Problem> {
        text.as_deref().map_or(Ok(default), |text| Ok(duration(name, text)? / 1_000))
    };
    let lifetime_seconds = seconds("ttl", &raw.ttl, setup.lifetime_seconds)?;
    if !(60..=86_400).contains(&lifetime_seconds) {
        return Err("`ttl` must be from 60s to 24h".to_owned());
    }
    let finality = |word: &str| find_keyword("x402_finality", word, &FINALITIES);
    Ok(ChangeableSettings {
        lifetime_seconds,
        grace_seconds: seconds("grace", &raw.grace, setup.grace_seconds)?,
        x402_finality: raw.x402_finality.as_deref().map_or(Ok(setup.x402_finality), finality)?,
        max_active: raw.max_active.unwrap_or(setup.max_active),
    })
}

pub(super) fn rotate_master_key(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    of_own_store(step, ProcessFault::RotateMasterKey)
}

pub(super) fn pause(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    process(ProcessFault::Pause { for_ms: step.for_ms()? })
}

pub(super) fn back_up(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    of_own_store(step, ProcessFault::BackUp)
}

pub(super) fn restore(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    of_own_store(step, ProcessFault::Restore)
}

// ---- several engines ---------------------------------------------------------------------------------------------------

/// Injects a fault that only several engines over one store have.
fn shared(step: &StepReader<'_>, injection: FaultInjection) -> Result<Action, Problem> {
    if step.setup.engines < 2 {
        return Err(format!("`does` {:?} needs several `engines`", step.raw.does));
    }
    inject(injection)
}

pub(super) fn lose_store(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    shared(step, FaultInjection::Partition { peer: Peer::Store, for_ms: step.for_ms()? })
}

pub(super) fn lose_node(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    let nodes = step.setup.nodes;
    let node = step.raw.node.filter(|node| *node < nodes);
    let node = node.ok_or_else(|| format!("`node` is one of {nodes}, numbered from 0"))?;
    shared(step, FaultInjection::Partition { peer: Peer::Node(node), for_ms: step.for_ms()? })
}

pub(super) fn fail_over(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    shared(step, FaultInjection::Store(StoreFault::FailOver { for_ms: step.for_ms()? }))
}

pub(super) fn break_commit(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    let outcome = match required("manner", &step.raw.manner)? {
        "applied" => CommitOutcome::Applied,
        "dropped" => CommitOutcome::Dropped,
        "late" => CommitOutcome::Late { after_ms: step.by_ms()? },
        "running" => CommitOutcome::Running { after_ms: step.by_ms()? },
        other => return Err(one_of("manner", other, CommitOutcome::KINDS)),
    };
    shared(step, FaultInjection::Store(StoreFault::BreakCommit(outcome)))
}

// ---- receivers, callers, clock ---------------------------------------------------------------------------------------

pub(super) fn receiver_fails(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    let kind = match step.raw.manner.as_deref().unwrap_or("500") {
        "timeout" => OutageKind::Timeout,
        "refused" => OutageKind::Refused,
        "dns" => OutageKind::Dns,
        digits => match digits.parse() {
            Ok(status @ 300..=599) => OutageKind::Status(status),
            _ => {
                let known = ["timeout", "refused", "dns", "a status from 300 to 599"];
                return Err(one_of("manner", digits, known));
            }
        },
    };
    inject(FaultInjection::Outage { merchant: step.merchant()?, kind, for_ms: step.for_ms()? })
}

pub(super) fn lose_reply(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    inject(FaultInjection::LoseReplyIn(step.raw.operation.unwrap_or(1)))
}

pub(super) fn clock_steps(step: &mut StepReader<'_>) -> Result<Action, Problem> {
    let text = required("by", &step.raw.by)?;
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let ms = i64::try_from(duration("by", digits)?).unwrap_or(i64::MAX);
    if ms > MAX_CLOCK_STEP_MS {
        return Err("`by` must be at most 1d, either way".to_owned());
    }
    inject(FaultInjection::ClockStep { by_ms: sign * ms })
}
