//! Writes a script as a scenario file that reads back as the same script.

mod line;
mod steps;

use std::{collections::BTreeMap, fmt::Write as _};

use self::steps::write_action;
use super::{setup, values::show};
use crate::script::{Expect, Script};

/// The names of sessions, by number.
type SessionNames = BTreeMap<u32, String>;

/// Writes a scenario file that reads back as this script.
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
    let names = write_steps(&mut out, script);
    setup::write(&mut out, &script.setup);
    let _ = writeln!(out, "\n[faults]");
    for (fault, ppm) in script.faults.on() {
        let _ = writeln!(out, "{:?} = \"{}.{:04}%\"", fault.as_str(), ppm / 10_000, ppm % 10_000);
    }
    if !script.expect.is_empty() || !script.expect_nodes.is_empty() {
        let _ = writeln!(out, "\n[expect]");
    }
    for (node, condition) in &script.expect_nodes {
        let _ = writeln!(out, "\"node {node}\" = {{ condition = {:?} }}", condition.as_str());
    }
    for expect in &script.expect {
        if let Some(name) = names.get(&expect.session) {
            let _ = writeln!(out, "{name:?} = {{ {} }}", expected_state(expect));
        }
    }
    out
}

/// Writes the steps; returns the names of the sessions that they create.
fn write_steps(out: &mut String, script: &Script) -> SessionNames {
    // Sessions are numbered in the order of their creation when the file is read.
    let mut names = SessionNames::new();
    let _ = writeln!(out, "steps = [");
    for step in &script.steps {
        if let Some(session) = step.action.opens() {
            let next = names.len();
            let known = usize::try_from(session).ok().and_then(|number| script.names.get(number));
            names.entry(session).or_insert_with(|| known.cloned().unwrap_or_else(|| letter(next)));
        }
        if let Some(line) = write_action(&step.action, step.engine, &names) {
            let _ = writeln!(out, "  {{ at = {:?}, {line} }},", show(step.at_ms));
        }
    }
    let _ = writeln!(out, "]\n");
    names
}

fn expected_state(expect: &Expect) -> String {
    let mut parts = vec![format!("state = {:?}", expect.states)];
    if let Some(money) = expect.credited {
        parts.push(format!("credited = {:?}", money.to_string()));
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
    parts.join(", ")
}

/// Returns the name of a session that has none.
fn letter(number: usize) -> String {
    match u8::try_from(number) {
        Ok(small) if small < 26 => char::from(b'A' + small).to_string(),
        _ => format!("S{number}"),
    }
}
