//! Reports as text: one screen for a failure, a summary of a campaign; `page` writes them as HTML.

mod page;

use std::fmt::Write as _;

use crate::{
    campaign::Summary,
    coverage::REQUIRED_MARKS,
    invariants::INVARIANTS,
    observer::Violation,
    options::Fault,
    plan::Mix,
    script::{Action, Script},
    simulation::Outcome,
    trace::{Line, show_ms},
};

pub use page::{campaign_html, html};

/// Lines of the trace on the screen of a failure.
const TRACE_LINES: usize = 20;
/// Faults shown before a failure.
const LAST_FAULTS: usize = 5;

/// Writes the screen of a failure.
#[must_use]
pub fn failure(script: &Script, outcome: &Outcome, violation: &Violation, build: &str, replay: &str) -> String {
    let mut out = String::new();
    let rule = INVARIANTS.iter().find(|one| one.name == violation.invariant);
    let code = rule.map_or("", |one| one.code);
    let code = if code.is_empty() { String::new() } else { format!(" ({code})") };
    let _ = writeln!(out, "BROKEN  {}{code}", violation.invariant);
    let _ = writeln!(out, "rule    {}", rule.map_or("", |one| one.description));
    let _ = writeln!(out, "seen    {}", violation.text);
    let _ = writeln!(out, "where   {}, at {}", script.name, show_ms(violation.at_ms));
    let _ = writeln!(out, "seed    {} of {build}, scenario {:016x}", script.seed, script.fingerprint());
    let _ = writeln!(out, "replay  {replay}");
    let lines = trace_lines(script, &outcome.lines, violation);
    let whose = violation.session.map_or("all sessions".to_owned(), |session| format!("session {session}"));
    let _ = writeln!(out, "\ntrace of {}", named(script, &whose));
    if lines.len() > TRACE_LINES {
        let _ = writeln!(out, "  ({} earlier lines left out)", lines.len() - TRACE_LINES);
    }
    for repeated in &lines[lines.len().saturating_sub(TRACE_LINES)..] {
        let again = if repeated.times > 1 { format!(" ({} times)", repeated.times) } else { String::new() };
        let _ = writeln!(out, "{}{again}", named(script, &repeated.line.to_string()));
    }
    let _ = writeln!(out, "{:>12} ! BROKEN   {}", show_ms(violation.at_ms), violation.invariant);
    let faults = faults_around(&outcome.lines, violation);
    if !faults.is_empty() {
        let _ = writeln!(out, "\nlast faults while it happened ({} in all)", faults.len());
        for line in &faults[faults.len().saturating_sub(LAST_FAULTS)..] {
            let _ = writeln!(out, "{line}");
        }
    }
    out
}

/// A line of a trace, and the number of its consecutive repetitions.
struct RepeatedLine<'a> {
    line: &'a Line,
    times: u32,
}

/// Returns the lines about the broken session: its own, and those of others that may explain it.
fn trace_lines<'a>(script: &Script, lines: &'a [Line], violation: &Violation) -> Vec<RepeatedLine<'a>> {
    let begins = first_of(lines, violation);
    let is_shown = |line: &&Line| match violation.session {
        Some(session) => line.session == violation.session || is_cause(script, line, session, begins),
        None => !line.is_fault,
    };
    folded(lines.iter().filter(is_shown))
}

/// Merges consecutive equal lines, and a kill with the exit of the process that follows.
fn folded<'a>(lines: impl Iterator<Item = &'a Line>) -> Vec<RepeatedLine<'a>> {
    let is_kill = |line: &Line| line.kind == Fault::ProcessKill.as_str();
    let mut repeated: Vec<RepeatedLine<'a>> = Vec::new();
    for line in lines {
        match repeated.last_mut() {
            Some(last) if is_kill(last.line) && line.kind == "dead" && last.line.at_ms == line.at_ms => {
                last.line = line;
            }
            Some(last) if (last.line.kind, &last.line.text) == (line.kind, &line.text) => last.times += 1,
            _ => repeated.push(RepeatedLine { line, times: 1 }),
        }
    }
    repeated
}

/// Returns whether a line without a session may explain what happened to a session whose first line is at `begins`:
/// the process ended or started, a fork removed blocks, the outcome of a commit was unknown, its shop was changed before.
fn is_cause(script: &Script, line: &Line, session: u32, begins: u64) -> bool {
    match line.kind {
        "boot" | "dead" | "heal" | "commit.unknown" | "commit.refused" => line.at_ms >= begins,
        "changed" | "change_fails" => {
            let shop = script.steps.iter().find_map(|step| match step.action {
                Action::Create { session: of, merchant, .. }
                | Action::CreateElsewhere { session: of, merchant, .. }
                    if of == session =>
                {
                    Some(format!("shop {merchant}:"))
                }
                _ => None,
            });
            shop.is_some_and(|shop| line.text.starts_with(&shop))
        }
        kind => kind == Fault::Fork.as_str() && line.at_ms >= begins,
    }
}

/// Names sessions as the scenario's file does.
#[must_use]
pub fn named(script: &Script, text: &str) -> String {
    const SESSION: &str = "session ";
    let mut parts = text.split(SESSION);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let name = part[..digits].parse::<usize>().ok().and_then(|number| script.names.get(number));
        out.push_str(SESSION);
        out.push_str(name.map_or(&part[..digits], String::as_str));
        out.push_str(&part[digits..]);
    }
    out
}

/// Returns the time of the first line of the broken session; the beginning where there is none.
fn first_of(lines: &[Line], violation: &Violation) -> u64 {
    let own = lines.iter().find(|line| violation.session.is_some() && line.session == violation.session);
    own.map_or(0, |line| line.at_ms)
}

/// How long after the last line of a session a fault may still concern it, milliseconds.
const AFTERMATH_MS: u64 = 120_000;

/// Returns the time span of the broken session.
fn window(lines: &[Line], violation: &Violation) -> std::ops::RangeInclusive<u64> {
    let own = lines.iter().rfind(|line| violation.session.is_some() && line.session == violation.session);
    let ends = own.map_or(u64::MAX, |line| line.at_ms.saturating_add(AFTERMATH_MS));
    first_of(lines, violation)..=ends
}

/// Returns the faults of that time span.
fn faults_around<'a>(lines: &'a [Line], violation: &Violation) -> Vec<&'a Line> {
    let window = window(lines, violation);
    lines.iter().filter(|line| line.is_fault && window.contains(&line.at_ms)).collect()
}

/// Writes the result of a campaign.
#[must_use]
pub fn summary(summary: &Summary, mix: Mix, payments: u32, build: &str) -> String {
    let mut out = String::new();
    let seconds = summary.took.as_millis();
    let _ = writeln!(
        out,
        "{} runs of {payments} sessions ({mix:?}) in {}.{:03} s{}, {build}",
        summary.runs,
        seconds / 1_000,
        seconds % 1_000,
        if summary.was_stopped { ", stopped early" } else { "" }
    );
    let _ = writeln!(
        out,
        "{} lifecycles, {} a second; {} virtual hours, {} times real time; {} boots, {} syncs, {} events",
        summary.lifecycles,
        summary.lifecycles_per_second(),
        summary.virtual_ms / 3_600_000,
        summary.times_real(),
        summary.boots,
        summary.syncs,
        summary.events
    );
    let _ = writeln!(
        out,
        "real redb and real actors; JSON of bodies and broadcasts in the loop; signatures in about one run of sixteen"
    );
    let list = |of: &std::collections::BTreeMap<&'static str, u64>| {
        of.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
    };
    let _ = writeln!(out, "final states: {}", list(&summary.states));
    let _ = writeln!(out, "faults: {}", list(&summary.faults));
    let _ = writeln!(out, "reached: {}", list(&summary.marks));
    let asked: u64 = summary.passes.iter().sum();
    let _ = writeln!(out, "{} invariants held {asked} times", INVARIANTS.len());
    for mark in summary.missed() {
        let _ = writeln!(out, "NEVER REACHED: {mark}");
    }
    for failure in summary.failures.iter().take(10) {
        let Violation { invariant, text, .. } = &failure.violation;
        let _ = writeln!(out, "FAILED seed {}: {invariant}: {text}", failure.seed);
    }
    if summary.failures.len() > 10 {
        let _ = writeln!(out, "... and {} more", summary.failures.len() - 10);
    }
    out
}
