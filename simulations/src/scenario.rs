//! Scenario files: a script as a story in TOML. Reading names the line and the field of what is wrong; writing gives a
//! file that reads back as the same script.

mod values;
mod words;
mod writing;

use std::{collections::BTreeMap, fmt::Write as _};

use engine::{
    money::{Currency, Money},
    payment::{ClaimFinality, Exception},
};
use serde::Deserialize;
use toml::Spanned;

use crate::{
    options::{Fault, Faults, Setup},
    plan::{self, Mix},
    script::{
        Action, Change, Changeable, Deed, Expect, Lying, Manner, Memo, Ownership, Script, Step, Trick, Trouble, Visit,
    },
};

use self::{
    values::{amount, credited, duration, one_of, point, read_percent, required},
    words::{CHANGES, FINALITIES, TRICKS, WHO_DOES},
};

/// Why a file is no scenario.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct ScenarioError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there, with the field's name.
    pub why: String,
}

pub use self::{words::POINTS, writing::write};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    #[serde(default)]
    why: String,
    #[serde(default)]
    seed: u64,
    #[serde(default)]
    payments: Option<Spanned<u32>>,
    #[serde(default)]
    heal_at: Option<Spanned<String>>,
    #[serde(default)]
    world: Option<Spanned<World>>,
    #[serde(default)]
    faults: BTreeMap<Spanned<String>, Spanned<toml::Value>>,
    #[serde(default)]
    steps: Vec<Spanned<RawStep>>,
    #[serde(default)]
    expect: BTreeMap<Spanned<String>, RawExpect>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct World {
    nodes: Option<usize>,
    merchants: Option<usize>,
    block_time: Option<String>,
    finality_lag: Option<u32>,
    node_delay: Option<String>,
    commit_delay: Option<String>,
    webhook_delay: Option<String>,
    ttl: Option<String>,
    grace: Option<String>,
    poll: Option<String>,
    max_awake: Option<usize>,
    split_fee: Option<bool>,
    x402_finality: Option<String>,
    cache_bytes: Option<usize>,
    log_bytes: Option<u64>,
    signatures: Option<bool>,
    heal_without_restart: Option<bool>,
    faulty_nodes: Option<Vec<usize>>,
    days: Option<u64>,
    seal_secrets: Option<bool>,
    facade: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    at: String,
    who: String,
    does: String,
    session: Option<String>,
    amount: Option<String>,
    lifetime: Option<String>,
    every: Option<String>,
    times: Option<u16>,
    memo: Option<String>,
    trick: Option<String>,
    of: Option<String>,
    resource: Option<u32>,
    grace: Option<String>,
    r#for: Option<String>,
    by: Option<String>,
    operation: Option<u64>,
    point: Option<String>,
    blocks: Option<u32>,
    depth: Option<u32>,
    forget: Option<bool>,
    lie: Option<String>,
    manner: Option<String>,
    percent: Option<u64>,
    ttl: Option<String>,
    x402_finality: Option<String>,
    max_awake: Option<usize>,
    table: Option<String>,
    shown: Option<u32>,
    seller: Option<usize>,
    key: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawExpect {
    #[serde(default)]
    state: Vec<String>,
    credited: Option<String>,
    usd_cents: Option<u64>,
    exceptions: Option<Vec<String>>,
    webhooks: Option<usize>,
}

/// What a problem is before its line is known.
type Problem = String;

/// Reads a scenario.
///
/// # Errors
/// [`ScenarioError`] names the line and the field.
pub fn read(text: &str) -> Result<Script, ScenarioError> {
    let line_at =
        |offset: usize| text.as_bytes()[..offset.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1;
    let file: File = toml::from_str(text).map_err(|error| ScenarioError {
        line: line_at(error.span().map_or(0, |span| span.start)),
        why: error.message().to_owned(),
    })?;
    let wrong = |offset: usize| move |why: Problem| ScenarioError { line: line_at(offset), why };
    let mut setup = Setup::default();
    if let Some(world) = &file.world {
        read_world(world.get_ref(), &mut setup).map_err(wrong(world.span().start))?;
    }
    let mut faults = Faults::default();
    let mut is_swarm = false;
    for (name, value) in &file.faults {
        let at = value.span().start;
        if name.get_ref() == "swarm" {
            is_swarm =
                value.get_ref().as_bool().ok_or_else(|| wrong(at)("`swarm` must be true or false".to_owned()))?;
            continue;
        }
        let fault = Fault::ALL.iter().find(|fault| fault.word() == name.get_ref());
        let fault = fault.ok_or_else(|| {
            wrong(name.span().start)(one_of("faults", name.get_ref(), Fault::ALL.iter().map(|fault| fault.word())))
        })?;
        let ppm = value.get_ref().as_str().and_then(read_percent);
        let ppm = ppm.ok_or_else(|| {
            wrong(at)(format!("`{}` must be a share from \"0%\" to \"100%\", such as \"2.5%\"", fault.word()))
        })?;
        faults.set(*fault, ppm);
    }
    let heal_at_ms = file
        .heal_at
        .as_ref()
        .map(|heal_at| duration("heal_at", heal_at.get_ref()).map_err(wrong(heal_at.span().start)));
    let heal_at_ms = heal_at_ms.transpose()?;
    let mut names = Names::default();
    let mut steps = Vec::new();
    for step in &file.steps {
        let raw = step.get_ref();
        let read = (|| {
            let at_ms = duration("at", &raw.at)?;
            let step = Step { at_ms, action: action(raw, &mut names, &setup)? };
            if heal_at_ms.is_some_and(|heal_at_ms| heal_at_ms < step.ends_ms()) {
                return Err("it is not over at `heal_at`, which would cut it short".to_owned());
            }
            Ok(step)
        })();
        steps.push(read.map_err(wrong(step.span().start))?);
    }
    let mut script = Script {
        name: file.name,
        why: file.why,
        seed: file.seed,
        setup,
        faults,
        steps,
        heal_at_ms,
        expect: Vec::new(),
        names: names.list(),
    };
    for (name, raw) in &file.expect {
        let expect = read_expect(name.get_ref(), raw, &names).map_err(wrong(name.span().start))?;
        script.expect.push(expect);
    }
    if let Some(payments) = &file.payments {
        let count = *payments.get_ref();
        if !script.steps.is_empty() {
            return Err(wrong(payments.span().start)("`payments` and `steps` exclude each other".to_owned()));
        }
        if is_swarm {
            let drawn = plan::of_seed(script.seed, count, Mix::Swarm);
            (script.setup, script.faults, script.steps) = (drawn.setup, drawn.faults, drawn.steps);
        } else {
            script.steps = plan::steps(&script.setup, &crate::random::Random::new(script.seed), count);
        }
    } else if is_swarm {
        script.faults = Faults::swarm(&mut crate::random::Random::new(script.seed).fork("faults"));
    }
    script.steps.sort_by_key(|step| step.at_ms);
    Ok(script)
}

fn read_world(world: &World, setup: &mut Setup) -> Result<(), Problem> {
    let range = |name: &str, value: usize, low: usize, high: usize| {
        if (low..=high).contains(&value) { Ok(value) } else { Err(format!("`{name}` must be from {low} to {high}")) }
    };
    let ms = |name: &str, text: &Option<String>, at: &mut u64| -> Result<(), Problem> {
        if let Some(text) = text {
            *at = duration(name, text)?;
        }
        Ok(())
    };
    if let Some(nodes) = world.nodes {
        setup.nodes = range("nodes", nodes, 1, 5)?;
    }
    if let Some(merchants) = world.merchants {
        setup.merchants = range("merchants", merchants, 1, 4)?;
    }
    let mut block_ms = setup.block_seconds * 1_000;
    let (mut ttl_ms, mut grace_ms) = (setup.lifetime_seconds * 1_000, setup.grace_seconds * 1_000);
    ms("block_time", &world.block_time, &mut block_ms)?;
    ms("ttl", &world.ttl, &mut ttl_ms)?;
    ms("grace", &world.grace, &mut grace_ms)?;
    ms("node_delay", &world.node_delay, &mut setup.rpc_ms)?;
    ms("commit_delay", &world.commit_delay, &mut setup.commit_ms)?;
    ms("webhook_delay", &world.webhook_delay, &mut setup.webhook_ms)?;
    ms("poll", &world.poll, &mut setup.poll_ms)?;
    if !(1_000..=60_000).contains(&block_ms) {
        return Err("`block_time` must be from 1s to 60s".to_owned());
    }
    if setup.poll_ms < 100 {
        return Err("`poll` must be at least 100ms".to_owned());
    }
    (setup.block_seconds, setup.lifetime_seconds, setup.grace_seconds) =
        (block_ms / 1_000, ttl_ms / 1_000, grace_ms / 1_000);
    if !(60..=86_400).contains(&setup.lifetime_seconds) {
        return Err("`ttl` must be from 60s to 24h".to_owned());
    }
    setup.finality_lag = world.finality_lag.unwrap_or(setup.finality_lag).min(1_000);
    setup.max_awake = world.max_awake.unwrap_or(setup.max_awake);
    setup.split_fee = world.split_fee.unwrap_or(setup.split_fee);
    setup.cache_bytes = world.cache_bytes.unwrap_or(setup.cache_bytes);
    setup.log_bytes = world.log_bytes.unwrap_or(setup.log_bytes);
    setup.signatures = world.signatures.unwrap_or(setup.signatures);
    setup.seal_secrets = world.seal_secrets.unwrap_or(setup.seal_secrets);
    setup.heal_without_restart = world.heal_without_restart.unwrap_or(setup.heal_without_restart);
    setup.days = world.days.unwrap_or(setup.days);
    setup.facade = world.facade.unwrap_or(setup.facade);
    if setup.days > 60 {
        return Err("`days` must be at most 60".to_owned());
    }
    if let Some(faulty) = &world.faulty_nodes {
        if faulty.iter().any(|node| *node >= setup.nodes) {
            return Err(format!("`faulty_nodes`: there are {} nodes, numbered from 0", setup.nodes));
        }
        setup.faulty_nodes.clone_from(faulty);
    }
    if let Some(word) = &world.x402_finality {
        setup.x402_finality = finality(word)?;
    }
    Ok(())
}

fn finality(word: &str) -> Result<ClaimFinality, Problem> {
    let found = FINALITIES.iter().find(|(_, known)| *known == word);
    Ok(found.ok_or_else(|| one_of("x402_finality", word, FINALITIES.iter().map(|(_, word)| *word)))?.0)
}

/// Reads the settings of a restart; what is not named is as the world has it at its beginning.
fn settings(raw: &RawStep, setup: &Setup) -> Result<Changeable, Problem> {
    let seconds = |name: &str, text: &Option<String>, usual: u64| -> Result<u64, Problem> {
        text.as_deref().map_or(Ok(usual), |text| Ok(duration(name, text)? / 1_000))
    };
    let lifetime_seconds = seconds("ttl", &raw.ttl, setup.lifetime_seconds)?;
    if !(60..=86_400).contains(&lifetime_seconds) {
        return Err("`ttl` must be from 60s to 24h".to_owned());
    }
    Ok(Changeable {
        lifetime_seconds,
        grace_seconds: seconds("grace", &raw.grace, setup.grace_seconds)?,
        x402_finality: raw.x402_finality.as_deref().map_or(Ok(setup.x402_finality), finality)?,
        max_awake: raw.max_awake.unwrap_or(setup.max_awake),
    })
}

/// How far a scenario may set the wall clock, milliseconds.
const MAX_CLOCK_STEP_MS: i64 = 86_400_000;

#[derive(Default)]
struct Names(BTreeMap<String, u32>);

impl Names {
    fn create(&mut self, name: &str) -> u32 {
        let next = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        *self.0.entry(name.to_owned()).or_insert(next)
    }

    /// Returns the names by their number.
    fn list(&self) -> Vec<String> {
        let mut names: Vec<_> = self.0.iter().collect();
        names.sort_unstable_by_key(|(_, number)| **number);
        names.into_iter().map(|(name, _)| name.clone()).collect()
    }

    fn find(&self, name: &str) -> Result<u32, Problem> {
        self.0.get(name).copied().ok_or_else(|| format!("`session` {name:?} is not created before"))
    }
}

fn action(raw: &RawStep, names: &mut Names, setup: &Setup) -> Result<Action, Problem> {
    let (who, number) = match raw.who.split_once(' ') {
        Some(("other", "engine")) => ("other engine", 0),
        Some((who, digits)) => {
            let number = digits.parse::<usize>().map_err(|_| format!("`who` {:?} ends in no number", raw.who))?;
            (who, number)
        }
        None => (raw.who.as_str(), 0),
    };
    let limit = |count: usize| {
        if number < count {
            Ok(number)
        } else {
            Err(format!("`who` {:?}: there are {count}, numbered from 0", raw.who))
        }
    };
    let money = || amount("amount", required("amount", &raw.amount)?);
    let for_ms = || duration("for", required("for", &raw.r#for)?);
    let session = |names: &Names| names.find(required("session", &raw.session)?);
    let trouble = |trouble| Ok(Action::Trouble(trouble));
    match (who, raw.does.as_str()) {
        ("merchant", "create") => {
            let (merchant, money, lifetime_seconds) = (limit(setup.merchants)?, money()?, lifetime(raw)?);
            let session = names.create(required("session", &raw.session)?);
            Ok(Action::Create { session, merchant, units: money.units, currency: money.currency, lifetime_seconds })
        }
        ("merchant", "create elsewhere") => {
            let (merchant, money, lifetime_seconds) = (limit(setup.merchants)?, money()?, lifetime(raw)?);
            if money.currency != Currency::Hbd {
                return Err("`amount` of a session of another engine must be in HBD".to_owned());
            }
            let session = names.create(required("session", &raw.session)?);
            Ok(Action::OpenElsewhere { session, merchant, units: money.units, lifetime_seconds })
        }
        ("other engine", "hand over") => Ok(Action::HandOver { session: session(names)? }),
        ("payer", "pay") => {
            let (payer, money) = (Some(limit(plan::PAYERS)?), money()?);
            pay(raw, session(names)?, payer, money)
        }
        ("payer", "pay again and again") => {
            let (payer, money, session) = (limit(plan::PAYERS)?, money()?, session(names)?);
            let hours = duration("every", required("every", &raw.every)?)? / 3_600_000;
            let (every_hours, times) =
                (u16::try_from(hours).unwrap_or(u16::MAX), raw.times.ok_or("`times` is missing")?);
            if every_hours < 24 {
                return Err("`every` must be at least 24h, and counts in hours".to_owned());
            }
            if times < 2 || u32::from(every_hours) * u32::from(times) > 730 * 24 {
                return Err("`times` must be at least 2, and the last within 730 days".to_owned());
            }
            Ok(Action::PayAgain { session, payer, units: money.units, currency: money.currency, every_hours, times })
        }
        ("merchant", "pay") => pay(raw, session(names)?, None, money()?),
        ("customer", "cancel") => Ok(Action::Cancel { session: session(names)?, by_merchant: false }),
        ("merchant", "cancel") => Ok(Action::Cancel { session: session(names)?, by_merchant: true }),
        ("merchant", "assign") => Ok(Action::Assign { session: session(names)? }),
        ("merchant", word) if Deed::ALL.iter().any(|(_, known)| *known == word) => {
            let found = Deed::ALL.iter().find(|(_, known)| *known == word);
            let (deed, _) = *found.ok_or_else(|| one_of("does", word, Deed::ALL.iter().map(|(_, word)| *word)))?;
            Ok(Action::Desk { session: session(names)?, deed })
        }
        ("agent", "settle") => {
            let agent = limit(plan::AGENTS)?;
            let trick = match raw.trick.as_deref() {
                Some("replay") => Trick::Replay { of: names.find(required("of", &raw.of)?)? },
                None => Trick::None,
                Some(word) => {
                    let found = TRICKS.iter().find(|(_, known)| *known == word);
                    found.ok_or_else(|| one_of("trick", word, TRICKS.iter().map(|(_, word)| *word)))?.0
                }
            };
            Ok(Action::Settle { session: session(names)?, agent, trick })
        }
        ("agent", "pay elsewhere") => {
            let (agent, units) = (limit(plan::AGENTS)?, money()?.units);
            Ok(Action::Facilitate { agent, resource: raw.resource.unwrap_or(0), units })
        }
        ("agent", "pay a seller") => {
            let (agent, units, resource) = (limit(plan::AGENTS)?, money()?.units, raw.resource.unwrap_or(0));
            let seller = raw.seller.map_or(Ok(None), |seller| {
                let known = (seller < setup.merchants).then_some(Some(seller));
                known.ok_or_else(|| format!("`seller` {seller}: there are {}, numbered from 0", setup.merchants))
            })?;
            let (shown, key) = (raw.shown.unwrap_or(resource), raw.key);
            Ok(Action::Purchase { agent, resource, shown, seller, key, units })
        }
        ("merchant", "rotate secret") => {
            let grace = raw.grace.as_deref().map_or(Ok(0), |text| duration("grace", text))?;
            let change = Change::RotateSecret { grace_seconds: grace / 1_000 };
            Ok(Action::Merchant { merchant: limit(setup.merchants)?, change })
        }
        ("merchant", word) if Ownership::ALL.iter().any(|(_, known)| *known == word) => {
            let found = Ownership::ALL.iter().find(|(_, known)| *known == word);
            let (step, _) = *found.ok_or_else(|| one_of("does", word, Ownership::ALL.iter().map(|(_, word)| *word)))?;
            Ok(Action::Own { merchant: limit(setup.merchants)?, step })
        }
        ("merchant", word) => {
            let found = CHANGES.iter().find(|(_, known)| *known == word);
            let deeds = || WHO_DOES.iter().filter(|(who, _)| *who == "merchant").flat_map(|(_, deeds)| *deeds).copied();
            let (change, _) = found.ok_or_else(|| one_of("does", word, deeds()))?;
            Ok(Action::Merchant { merchant: limit(setup.merchants)?, change: *change })
        }
        ("disk", "power-cut") => trouble(raw.operation.map_or(Trouble::PowerCut, Trouble::PowerCutIn)),
        ("disk", "fail") => trouble(Trouble::DiskErrorIn(raw.operation.unwrap_or(1))),
        ("disk", "fail to read") => trouble(Trouble::ReadErrorIn(raw.operation.unwrap_or(1))),
        ("disk", "fill up") => trouble(Trouble::DiskFull { for_ms: for_ms()? }),
        ("process", "be killed") => trouble(match &raw.point {
            None => Trouble::Kill,
            Some(at) => Trouble::KillAt(point(at)?),
        }),
        ("process", "restart") => trouble(Trouble::Restart),
        ("process", "freeze") => trouble(Trouble::Freeze { for_ms: for_ms()? }),
        ("process", "restart with other settings") => trouble(Trouble::OtherSettings(settings(raw, setup)?)),
        ("process", "restart with another master key") => trouble(Trouble::RotateMasterKey),
        ("process", "be backed up") => trouble(Trouble::BackUp),
        ("process", "be restored") => trouble(Trouble::Restore),
        ("disk", "damage the log") => trouble(Trouble::DamageLog { pick: raw.operation.unwrap_or(0) << 32 }),
        ("disk", "damage a row") => {
            let table = match raw.table.as_deref() {
                None => None,
                Some(name) => {
                    let found = storage::TABLE_NAMES.into_iter().find(|known| *known == name);
                    Some(found.ok_or_else(|| one_of("table", name, storage::TABLE_NAMES))?)
                }
            };
            let session = raw.session.as_deref().map(|name| names.find(name)).transpose()?;
            trouble(Trouble::DamageRow { table, session, pick: raw.operation.unwrap_or(0) << 32 })
        }
        ("disk", "be slow") => {
            let commit_ms = duration("by", required("by", &raw.by)?)?;
            trouble(Trouble::DiskSlow { commit_ms, for_ms: for_ms()? })
        }
        ("actor", "panic") => trouble(Trouble::PanicAt(point(required("point", &raw.point)?)?)),
        ("node", "go away") => trouble(Trouble::NodeDown { node: limit(setup.nodes)?, for_ms: for_ms()? }),
        ("node", "lag") => {
            let blocks = raw.blocks.ok_or("`blocks` is missing")?;
            trouble(Trouble::NodeLag { node: limit(setup.nodes)?, blocks, for_ms: for_ms()? })
        }
        ("node", "answer late") => {
            let delay_ms = duration("by", required("by", &raw.by)?)?;
            trouble(Trouble::NodeSlow { node: limit(setup.nodes)?, delay_ms, for_ms: for_ms()? })
        }
        ("node", "freeze") => trouble(Trouble::NodeFreeze { node: limit(setup.nodes)?, for_ms: for_ms()? }),
        ("node", "fork alone") => {
            let (node, depth) = (limit(setup.nodes)?, raw.depth.unwrap_or(0));
            trouble(Trouble::NodeBranch { node, depth, for_ms: for_ms()? })
        }
        ("node", "keep what it takes") => trouble(Trouble::NodeKeeps { node: limit(setup.nodes)?, for_ms: for_ms()? }),
        ("node", "serve another chain") => {
            trouble(Trouble::NodeForeign { node: limit(setup.nodes)?, for_ms: for_ms()? })
        }
        ("node", "lack APIs") => trouble(Trouble::NodeLacks { node: limit(setup.nodes)?, for_ms: for_ms()? }),
        ("node", "limit the rate") => trouble(Trouble::NodeLimits { node: limit(setup.nodes)?, for_ms: for_ms()? }),
        ("node", "know no price of HBD") => {
            trouble(Trouble::NodeWithoutPrice { node: limit(setup.nodes)?, for_ms: for_ms()? })
        }
        ("node", "lie") => {
            if setup.nodes < 3 {
                return Err(
                    "`does` \"lie\": with fewer than three nodes nobody can tell a lie from the truth".to_owned()
                );
            }
            let word = required("lie", &raw.lie)?;
            let found = Lying::ALL.iter().find(|(_, known)| *known == word);
            let (lie, _) = *found.ok_or_else(|| one_of("lie", word, Lying::ALL.iter().map(|(_, word)| *word)))?;
            trouble(Trouble::NodeLie { node: limit(setup.nodes)?, lie, for_ms: for_ms()? })
        }
        ("ledger", "fork") => {
            let depth = raw.depth.ok_or("`depth` is missing")?;
            if depth == 0 || depth > 20 {
                return Err("`depth` must be from 1 to 20".to_owned());
            }
            trouble(Trouble::Fork { depth, forget: raw.forget.unwrap_or(false) })
        }
        ("ledger", "hold finality") => trouble(Trouble::HoldFinality { for_ms: for_ms()? }),
        ("ledger", "hold transactions") => trouble(Trouble::HoldTransactions { for_ms: for_ms()? }),
        ("ledger", "hold blocks") => trouble(Trouble::HoldBlocks { for_ms: for_ms()? }),
        ("ledger", "forget what waits") => trouble(Trouble::ForgetMempool),
        ("market", "price HBD") => {
            let percent = raw.percent.filter(|percent| (10..=1_000).contains(percent));
            let percent = percent.ok_or("`percent` of a dollar must be from 10 to 1000")?;
            trouble(Trouble::HbdOffPeg { percent, for_ms: for_ms()? })
        }
        ("receiver", "fail") => {
            let manner = match raw.manner.as_deref().unwrap_or("500") {
                "timeout" => Manner::Timeout,
                "refused" => Manner::Refused,
                "dns" => Manner::Dns,
                digits => match digits.parse() {
                    Ok(status @ 300..=599) => Manner::Status(status),
                    _ => {
                        return Err(one_of(
                            "manner",
                            digits,
                            ["timeout", "refused", "dns", "a status from 300 to 599"],
                        ));
                    }
                },
            };
            trouble(Trouble::Outage { merchant: limit(setup.merchants)?, manner, for_ms: for_ms()? })
        }
        ("clock", "step") => {
            let text = required("by", &raw.by)?;
            let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
            let ms = i64::try_from(duration("by", digits)?).unwrap_or(i64::MAX);
            if ms > MAX_CLOCK_STEP_MS {
                return Err("`by` must be at most 1d, either way".to_owned());
            }
            trouble(Trouble::ClockStep { by_ms: sign * ms })
        }
        ("client", word) if Visit::ALL.iter().any(|(_, known)| *known == word) => {
            let found = Visit::ALL.iter().find(|(_, known)| *known == word);
            let (visit, _) = *found.ok_or_else(|| one_of("does", word, Visit::ALL.iter().map(|(_, word)| *word)))?;
            Ok(Action::Visit { session: session(names)?, visit })
        }
        ("client", "lose a reply") => trouble(Trouble::LoseReplyIn(raw.operation.unwrap_or(1))),
        (who, does) => match WHO_DOES.iter().find(|(known, _)| *known == who) {
            Some((_, deeds)) => Err(one_of("does", does, deeds.iter().copied())),
            None => Err(one_of("who", who, WHO_DOES.iter().map(|(known, _)| *known))),
        },
    }
}

fn lifetime(raw: &RawStep) -> Result<Option<u64>, Problem> {
    let lifetime = raw.lifetime.as_deref().map(|text| duration("lifetime", text)).transpose()?;
    match lifetime.map(|ms| ms / 1_000) {
        Some(seconds) if !(60..=86_400).contains(&seconds) => Err("`lifetime` must be from 60s to 24h".to_owned()),
        seconds => Ok(seconds),
    }
}

fn pay(raw: &RawStep, session: u32, payer: Option<usize>, money: Money) -> Result<Action, Problem> {
    let memo = match raw.memo.as_deref() {
        None => Memo::Exact,
        Some(word) => {
            let found = Memo::ALL.iter().find(|(_, known)| *known == word);
            found.ok_or_else(|| one_of("memo", word, Memo::ALL.iter().map(|(_, word)| *word)))?.0
        }
    };
    Ok(Action::Pay { session, payer, units: money.units, currency: money.currency, memo })
}

fn read_expect(name: &str, raw: &RawExpect, names: &Names) -> Result<Expect, Problem> {
    let session = names.find(name)?;
    for word in &raw.state {
        if engine::payment::State::parse(word).is_none() {
            return Err(one_of("state", word, engine::payment::State::ALL.iter().map(|state| state.as_str())));
        }
    }
    for word in raw.exceptions.iter().flatten() {
        if !Exception::ALL.iter().any(|exception| exception.as_str() == word) {
            return Err(one_of("exceptions", word, Exception::ALL.iter().map(|exception| exception.as_str())));
        }
    }
    let credited_units = raw.credited.as_deref().map(|text| credited("credited", text)).transpose()?;
    Ok(Expect {
        session,
        states: raw.state.clone(),
        credited_units,
        usd_cents: raw.usd_cents,
        exceptions: raw.exceptions.clone(),
        webhooks: raw.webhooks,
    })
}

#[cfg(test)]
mod tests;
