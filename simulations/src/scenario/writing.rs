//! Writes a script back as the file it could have been read from.

use super::*;

/// Writes a scenario that reads back as this script.
#[must_use]
pub fn write(script: &Script) -> String {
    let mut out = String::new();
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let _ = writeln!(out, "name = {}", quoted(&script.name));
    let _ = writeln!(out, "why = {}", quoted(&script.why));
    let _ = writeln!(out, "seed = {}", script.seed);
    if let Some(heal_at) = script.heal_at_ms {
        let _ = writeln!(out, "heal_at = {:?}", show(heal_at));
    }
    // Sessions are numbered in the order of their creation when the file is read.
    let mut order = BTreeMap::new();
    let _ = writeln!(out, "steps = [");
    for step in &script.steps {
        if let Some(session) = step.action.opens() {
            let next = order.len();
            let named = usize::try_from(session).ok().and_then(|number| script.names.get(number));
            order.entry(session).or_insert_with(|| named.cloned().unwrap_or_else(|| letter(next)));
        }
        if let Some(line) = write_step(step, &order) {
            let _ = writeln!(out, "  {{ at = {:?}, {line} }},", show(step.at_ms));
        }
    }
    let _ = writeln!(out, "]\n");
    write_world(&mut out, &script.setup);
    let _ = writeln!(out, "\n[faults]");
    for (fault, ppm) in script.faults.on() {
        let _ = writeln!(out, "{:?} = \"{}.{:04}%\"", fault.word(), ppm / 10_000, ppm % 10_000);
    }
    if !script.expect.is_empty() {
        let _ = writeln!(out, "\n[expect]");
    }
    for expect in &script.expect {
        let Some(name) = order.get(&expect.session) else { continue };
        let mut parts = vec![format!("state = {:?}", expect.states)];
        if let Some(units) = expect.credited_units {
            parts.push(format!("credited = {:?}", Money::new(units, Currency::Hbd).to_string()));
        }
        if let Some(cents) = expect.usd_cents {
            parts.push(format!("usd_cents = {cents}"));
        }
        if let Some(exceptions) = &expect.exceptions {
            parts.push(format!("exceptions = {exceptions:?}"));
        }
        if let Some(webhooks) = expect.webhooks {
            parts.push(format!("webhooks = {webhooks}"));
        }
        let _ = writeln!(out, "{name:?} = {{ {} }}", parts.join(", "));
    }
    out
}

fn write_world(out: &mut String, setup: &Setup) {
    let finality = FINALITIES.iter().find(|(known, _)| *known == setup.x402_finality).map_or("in_block", |(_, w)| w);
    let _ = writeln!(out, "[world]");
    let _ = writeln!(out, "nodes = {}\nmerchants = {}", setup.nodes, setup.merchants);
    let _ =
        writeln!(out, "block_time = {:?}\nfinality_lag = {}", show(setup.block_seconds * 1_000), setup.finality_lag);
    let _ = writeln!(
        out,
        "ttl = {:?}\ngrace = {:?}",
        show(setup.lifetime_seconds * 1_000),
        show(setup.grace_seconds * 1_000)
    );
    let _ = writeln!(out, "node_delay = {:?}\ncommit_delay = {:?}", show(setup.rpc_ms), show(setup.commit_ms));
    let _ = writeln!(out, "webhook_delay = {:?}\npoll = {:?}", show(setup.webhook_ms), show(setup.poll_ms));
    let _ = writeln!(out, "max_awake = {}\nsplit_fee = {}", setup.max_awake, setup.split_fee);
    let _ = writeln!(out, "x402_finality = {finality:?}");
    let _ = writeln!(out, "cache_bytes = {}\nlog_bytes = {}", setup.cache_bytes, setup.log_bytes);
    if setup.seal_secrets {
        out.push_str("seal_secrets = true\n");
    }
    let _ = writeln!(out, "signatures = {}\nheal_without_restart = {}", setup.signatures, setup.heal_without_restart);
    if setup.facade {
        let _ = writeln!(out, "facade = true");
    }
    if setup.days > 0 {
        let _ = writeln!(out, "days = {}", setup.days);
    }
    if !setup.faulty_nodes.is_empty() {
        let _ = writeln!(out, "faulty_nodes = {:?}", setup.faulty_nodes);
    }
}

fn write_step(step: &Step, names: &BTreeMap<u32, String>) -> Option<String> {
    let name = |session: &u32| names.get(session).map(|name| format!("session = {name:?}"));
    let lifetime = |seconds: &Option<u64>| {
        seconds.map_or(String::new(), |seconds| format!(", lifetime = {:?}", show(seconds * 1_000)))
    };
    let money = |units: u64, currency: Currency| format!("amount = {:?}", Money::new(units, currency).to_string());
    Some(match &step.action {
        Action::Create { session, merchant, units, currency, lifetime_seconds } => format!(
            "who = \"merchant {merchant}\", does = \"create\", {}, {}{}",
            name(session)?,
            money(*units, *currency),
            lifetime(lifetime_seconds)
        ),
        Action::OpenElsewhere { session, merchant, units, lifetime_seconds } => format!(
            "who = \"merchant {merchant}\", does = \"create elsewhere\", {}, {}{}",
            name(session)?,
            money(*units, Currency::Hbd),
            lifetime(lifetime_seconds)
        ),
        Action::HandOver { session } => format!("who = \"other engine\", does = \"hand over\", {}", name(session)?),
        Action::PayAgain { session, payer, units, currency, every_hours, times } => format!(
            "who = \"payer {payer}\", does = \"pay again and again\", {}, {}, every = \"{every_hours}h\", times = {times}",
            name(session)?,
            money(*units, *currency)
        ),
        Action::Pay { session, payer, units, currency, memo } => {
            let who = payer.map_or("merchant 0".to_owned(), |payer| format!("payer {payer}"));
            let word = Memo::ALL.iter().find(|(known, _)| known == memo).map_or("exact", |(_, word)| word);
            format!("who = {who:?}, does = \"pay\", {}, {}, memo = {word:?}", name(session)?, money(*units, *currency))
        }
        Action::Cancel { session, by_merchant } => {
            let who = if *by_merchant { "merchant 0" } else { "customer" };
            format!("who = {who:?}, does = \"cancel\", {}", name(session)?)
        }
        Action::Assign { session } => format!("who = \"merchant 0\", does = \"assign\", {}", name(session)?),
        Action::Desk { session, deed } => {
            let word = Deed::ALL.iter().find(|(known, _)| known == deed).map_or("resolve", |(_, word)| word);
            format!("who = \"merchant 0\", does = {word:?}, {}", name(session)?)
        }
        Action::Settle { session, agent, trick } => {
            let trick = match trick {
                Trick::None => String::new(),
                Trick::Replay { of } => format!(", trick = \"replay\", of = {:?}", names.get(of)?),
                other => {
                    let word = TRICKS.iter().find(|(known, _)| known == other).map_or("twice", |(_, word)| word);
                    format!(", trick = {word:?}")
                }
            };
            format!("who = \"agent {agent}\", does = \"settle\", {}{trick}", name(session)?)
        }
        Action::Facilitate { agent, resource, units } => format!(
            "who = \"agent {agent}\", does = \"pay elsewhere\", resource = {resource}, {}",
            money(*units, Currency::Hbd)
        ),
        Action::Purchase { agent, resource, shown, seller, key, units } => {
            let seller = seller.map_or(String::new(), |seller| format!(", seller = {seller}"));
            let key = key.map_or(String::new(), |key| format!(", key = {key}"));
            format!(
                "who = \"agent {agent}\", does = \"pay a seller\", resource = {resource}, shown = {shown}{seller}{key}, {}",
                money(*units, Currency::Hbd)
            )
        }
        Action::Merchant { merchant, change: Change::RotateSecret { grace_seconds } } => format!(
            "who = \"merchant {merchant}\", does = \"rotate secret\", grace = {:?}",
            show(grace_seconds * 1_000)
        ),
        Action::Merchant { merchant, change } => {
            let word = CHANGES.iter().find(|(known, _)| known == change).map_or("roll its key", |(_, word)| word);
            format!("who = \"merchant {merchant}\", does = {word:?}")
        }
        Action::Own { merchant, step } => {
            let word =
                Ownership::ALL.iter().find(|(known, _)| known == step).map_or("prove its account", |(_, word)| word);
            format!("who = \"merchant {merchant}\", does = {word:?}")
        }
        Action::Trouble(trouble) => write_trouble(trouble, names),
        Action::Visit { session, visit } => {
            let word = Visit::ALL.iter().find(|(known, _)| known == visit).map_or("read", |(_, word)| word);
            format!("who = \"client\", does = {word:?}, {}", name(session)?)
        }
    })
}

fn write_trouble(trouble: &Trouble, names: &BTreeMap<u32, String>) -> String {
    let lasting = |ms: &u64| format!("for = {:?}", show(*ms));
    match trouble {
        Trouble::PowerCut => "who = \"disk\", does = \"power-cut\"".to_owned(),
        Trouble::PowerCutIn(n) => format!("who = \"disk\", does = \"power-cut\", operation = {n}"),
        Trouble::DiskErrorIn(n) => format!("who = \"disk\", does = \"fail\", operation = {n}"),
        Trouble::ReadErrorIn(n) => format!("who = \"disk\", does = \"fail to read\", operation = {n}"),
        Trouble::DiskFull { for_ms } => format!("who = \"disk\", does = \"fill up\", {}", lasting(for_ms)),
        Trouble::Kill => "who = \"process\", does = \"be killed\"".to_owned(),
        Trouble::KillAt(point) => format!("who = \"process\", does = \"be killed\", point = {point:?}"),
        Trouble::Restart => "who = \"process\", does = \"restart\"".to_owned(),
        Trouble::Freeze { for_ms } => format!("who = \"process\", does = \"freeze\", {}", lasting(for_ms)),
        Trouble::DiskSlow { commit_ms, for_ms } => {
            format!("who = \"disk\", does = \"be slow\", by = {:?}, {}", show(*commit_ms), lasting(for_ms))
        }
        Trouble::RotateMasterKey => "who = \"process\", does = \"restart with another master key\"".to_owned(),
        Trouble::BackUp => "who = \"process\", does = \"be backed up\"".to_owned(),
        Trouble::Restore => "who = \"process\", does = \"be restored\"".to_owned(),
        Trouble::DamageLog { pick } => format!("who = \"disk\", does = \"damage the log\", operation = {}", pick >> 32),
        Trouble::DamageRow { table, session, pick } => {
            let table = table.map(|table| format!(", table = {table:?}")).unwrap_or_default();
            let session = session.and_then(|session| names.get(&session));
            let session = session.map(|name| format!(", session = {name:?}")).unwrap_or_default();
            format!("who = \"disk\", does = \"damage a row\"{table}{session}, operation = {}", pick >> 32)
        }
        Trouble::OtherSettings(settings) => {
            let word =
                FINALITIES.iter().find(|(known, _)| *known == settings.x402_finality).map_or("", |(_, word)| word);
            let (ttl, grace) = (show(settings.lifetime_seconds * 1_000), show(settings.grace_seconds * 1_000));
            format!(
                "who = \"process\", does = \"restart with other settings\", ttl = {ttl:?}, grace = {grace:?}, \
                 x402_finality = {word:?}, max_awake = {}",
                settings.max_awake
            )
        }
        Trouble::PanicAt(point) => format!("who = \"actor\", does = \"panic\", point = {point:?}"),
        Trouble::NodeDown { node, for_ms } => format!("who = \"node {node}\", does = \"go away\", {}", lasting(for_ms)),
        Trouble::NodeLag { node, blocks, for_ms } => {
            format!("who = \"node {node}\", does = \"lag\", blocks = {blocks}, {}", lasting(for_ms))
        }
        Trouble::NodeSlow { node, delay_ms, for_ms } => {
            format!("who = \"node {node}\", does = \"answer late\", by = {:?}, {}", show(*delay_ms), lasting(for_ms))
        }
        Trouble::NodeFreeze { node, for_ms } => {
            format!("who = \"node {node}\", does = \"freeze\", {}", lasting(for_ms))
        }
        Trouble::NodeBranch { node, depth, for_ms } => {
            format!("who = \"node {node}\", does = \"fork alone\", depth = {depth}, {}", lasting(for_ms))
        }
        Trouble::NodeKeeps { node, for_ms } => {
            format!("who = \"node {node}\", does = \"keep what it takes\", {}", lasting(for_ms))
        }
        Trouble::NodeForeign { node, for_ms } => {
            format!("who = \"node {node}\", does = \"serve another chain\", {}", lasting(for_ms))
        }
        Trouble::NodeLacks { node, for_ms } => {
            format!("who = \"node {node}\", does = \"lack APIs\", {}", lasting(for_ms))
        }
        Trouble::NodeLimits { node, for_ms } => {
            format!("who = \"node {node}\", does = \"limit the rate\", {}", lasting(for_ms))
        }
        Trouble::NodeWithoutPrice { node, for_ms } => {
            format!("who = \"node {node}\", does = \"know no price of HBD\", {}", lasting(for_ms))
        }
        Trouble::NodeLie { node, lie, for_ms } => {
            let word = Lying::ALL.iter().find(|(known, _)| known == lie).map_or("omits", |(_, word)| word);
            format!("who = \"node {node}\", does = \"lie\", lie = {word:?}, {}", lasting(for_ms))
        }
        Trouble::Fork { depth, forget } => {
            format!("who = \"ledger\", does = \"fork\", depth = {depth}, forget = {forget}")
        }
        Trouble::HoldFinality { for_ms } => format!("who = \"ledger\", does = \"hold finality\", {}", lasting(for_ms)),
        Trouble::HoldTransactions { for_ms } => {
            format!("who = \"ledger\", does = \"hold transactions\", {}", lasting(for_ms))
        }
        Trouble::HbdOffPeg { percent, for_ms } => {
            format!("who = \"market\", does = \"price HBD\", percent = {percent}, {}", lasting(for_ms))
        }
        Trouble::HoldBlocks { for_ms } => format!("who = \"ledger\", does = \"hold blocks\", {}", lasting(for_ms)),
        Trouble::ForgetMempool => "who = \"ledger\", does = \"forget what waits\"".to_owned(),
        Trouble::Outage { merchant, manner, for_ms } => {
            let manner = match manner {
                Manner::Status(status) => status.to_string(),
                Manner::Timeout => "timeout".to_owned(),
                Manner::Refused => "refused".to_owned(),
                Manner::Dns => "dns".to_owned(),
            };
            format!("who = \"receiver {merchant}\", does = \"fail\", manner = {manner:?}, {}", lasting(for_ms))
        }
        Trouble::LoseReplyIn(n) => format!("who = \"client\", does = \"lose a reply\", operation = {n}"),
        Trouble::ClockStep { by_ms } => {
            let sign = if *by_ms < 0 { "-" } else { "" };
            format!("who = \"clock\", does = \"step\", by = \"{sign}{}\"", show(by_ms.unsigned_abs()))
        }
    }
}

fn letter(number: usize) -> String {
    match u8::try_from(number) {
        Ok(small) if small < 26 => char::from(b'A' + small).to_string(),
        _ => format!("S{number}"),
    }
}

/// Writes a time as [`duration`] reads it.
fn show(ms: u64) -> String {
    let mut text = String::new();
    let mut left = ms;
    for (unit, size) in [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)] {
        if left >= size {
            let _ = write!(text, "{}{unit}", left / size);
            left %= size;
        }
    }
    if text.is_empty() { "0s".to_owned() } else { text }
}
