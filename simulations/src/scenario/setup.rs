//! The table `[environment]` of a scenario file: the simulated environment and the engine's settings.

mod policies;

use std::fmt::Write as _;

use super::{
    Problem,
    file::RawSetup,
    values::{FINALITIES, duration, find_keyword, keyword_of, read_percent, show},
};
use crate::options::Setup;

/// How far lease clocks may drift apart, parts per million.
const MAX_DRIFT_PPM: u32 = 50_000;

/// Reads the table; keys that are left out keep the setup's values.
pub(super) fn read(raw: &RawSetup, setup: &mut Setup) -> Result<(), Problem> {
    read_counts(raw, setup)?;
    read_times(raw, setup)?;
    policies::read(raw, &mut setup.policies)?;
    setup.finality_lag = raw.finality_lag.unwrap_or(setup.finality_lag).min(1_000);
    setup.max_active = raw.max_active.unwrap_or(setup.max_active);
    setup.split_fee = raw.split_fee.unwrap_or(setup.split_fee);
    setup.cache_bytes = raw.cache_bytes.unwrap_or(setup.cache_bytes);
    setup.log_bytes = raw.log_bytes.unwrap_or(setup.log_bytes);
    setup.signatures = raw.signatures.unwrap_or(setup.signatures);
    setup.seal_secrets = raw.seal_secrets.unwrap_or(setup.seal_secrets);
    setup.heal_without_restart = raw.heal_without_restart.unwrap_or(setup.heal_without_restart);
    setup.days = raw.days.unwrap_or(setup.days);
    setup.facade = raw.facade.unwrap_or(setup.facade);
    if setup.days > 60 {
        return Err("`days` must be at most 60".to_owned());
    }
    if let Some(faulty) = &raw.faulty_nodes {
        if faulty.iter().any(|node| *node >= setup.nodes) {
            return Err(format!("`faulty_nodes`: there are {} nodes, numbered from 0", setup.nodes));
        }
        setup.faulty_nodes.clone_from(faulty);
    }
    if let Some(text) = &raw.clock_drift {
        let drift_ppm = read_percent(text).filter(|ppm| *ppm <= MAX_DRIFT_PPM);
        setup.drift_ppm = drift_ppm.ok_or_else(|| "`clock_drift` must be from \"0%\" to \"5%\"".to_owned())?;
    }
    if let Some(word) = &raw.x402_finality {
        setup.x402_finality = find_keyword("x402_finality", word, &FINALITIES)?;
    }
    Ok(())
}

fn read_counts(raw: &RawSetup, setup: &mut Setup) -> Result<(), Problem> {
    let range = |name: &str, value: usize, low: usize, high: usize| {
        if (low..=high).contains(&value) { Ok(value) } else { Err(format!("`{name}` must be from {low} to {high}")) }
    };
    if let Some(engines) = raw.engines {
        setup.engines = range("engines", engines, 1, 5)?;
    }
    if let Some(nodes) = raw.nodes {
        setup.nodes = range("nodes", nodes, 1, 5)?;
    }
    if let Some(merchants) = raw.merchants {
        setup.merchants = range("merchants", merchants, 1, 4)?;
    }
    Ok(())
}

fn read_times(raw: &RawSetup, setup: &mut Setup) -> Result<(), Problem> {
    let ms = |name: &str, text: &Option<String>, value: &mut u64| -> Result<(), Problem> {
        if let Some(text) = text {
            *value = duration(name, text)?;
        }
        Ok(())
    };
    let mut block_ms = setup.block_seconds * 1_000;
    let (mut ttl_ms, mut grace_ms) = (setup.lifetime_seconds * 1_000, setup.grace_seconds * 1_000);
    ms("block_time", &raw.block_time, &mut block_ms)?;
    ms("ttl", &raw.ttl, &mut ttl_ms)?;
    ms("grace", &raw.grace, &mut grace_ms)?;
    ms("node_delay", &raw.node_delay, &mut setup.rpc_ms)?;
    ms("commit_delay", &raw.commit_delay, &mut setup.commit_ms)?;
    ms("webhook_delay", &raw.webhook_delay, &mut setup.webhook_ms)?;
    ms("poll", &raw.poll, &mut setup.poll_ms)?;
    ms("store_delay", &raw.store_delay, &mut setup.store_ms)?;
    let mut lease_ms = setup.lease_seconds * 1_000;
    ms("lease", &raw.lease, &mut lease_ms)?;
    setup.lease_seconds = lease_ms / 1_000;
    if !(5..=300).contains(&setup.lease_seconds) {
        return Err("`lease` must be from 5s to 5m".to_owned());
    }
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
    Ok(())
}

/// Writes the table.
pub(super) fn write(out: &mut String, setup: &Setup) {
    let finality = keyword_of(&setup.x402_finality, &FINALITIES);
    let _ = writeln!(out, "[environment]");
    if setup.engines > 1 {
        let _ = writeln!(out, "engines = {}\nstore_delay = {:?}", setup.engines, show(setup.store_ms));
        let _ = writeln!(out, "lease = {:?}", show(setup.lease_seconds * 1_000));
        let (whole, rest) = (setup.drift_ppm / 10_000, setup.drift_ppm % 10_000);
        let _ = writeln!(out, "clock_drift = \"{whole}.{rest:04}%\"");
    }
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
    let _ = writeln!(out, "max_active = {}\nsplit_fee = {}", setup.max_active, setup.split_fee);
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
    policies::write(out, &setup.policies);
    if !setup.faulty_nodes.is_empty() {
        let _ = writeln!(out, "faulty_nodes = {:?}", setup.faulty_nodes);
    }
}
