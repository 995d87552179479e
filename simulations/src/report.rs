//! What a person reads: one screen for a failure, a summary of a campaign; the pages to look at are in `page`.

mod page;

use std::fmt::Write as _;

use crate::{
    campaign::{REQUIRED_MARKS, Summary},
    observer::Violation,
    oracles::INVARIANTS,
    plan::Mix,
    script::Script,
    trace::{Line, show_ms},
    world::Outcome,
};

pub use page::{campaign_html, html};

/// Lines of the story on the screen of a failure.
const STORY_LINES: usize = 20;
/// Faults shown before a failure.
const LAST_FAULTS: usize = 5;

/// Writes the screen of a failure.
#[must_use]
pub fn failure(script: &Script, outcome: &Outcome, violation: &Violation, build: &str, replay: &str) -> String {
    let mut out = String::new();
    let rule = INVARIANTS.iter().find(|one| one.name == violation.invariant);
    let _ = writeln!(out, "BROKEN  {} ({})", violation.invariant, rule.map_or("", |one| one.code));
    let _ = writeln!(out, "rule    {}", rule.map_or("", |one| one.says));
    let _ = writeln!(out, "seen    {}", violation.text);
    let _ = writeln!(out, "where   {}, at {}", script.name, show_ms(violation.at_ms));
    let _ = writeln!(out, "seed    {} of {build}, scenario {:016x}", script.seed, script.fingerprint());
    let _ = writeln!(out, "replay  {replay}");
    let story = story(&outcome.lines, violation);
    let _ =
        writeln!(out, "\nstory of {}", violation.session.map_or("everybody".to_owned(), |s| format!("session {s}")));
    if story.len() > STORY_LINES {
        let _ = writeln!(out, "  ({} earlier lines left out)", story.len() - STORY_LINES);
    }
    for told in &story[story.len().saturating_sub(STORY_LINES)..] {
        let again = if told.times > 1 { format!(" ({} times)", told.times) } else { String::new() };
        let _ = writeln!(out, "{}{again}", told.line);
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

/// A line of a story, and how often it came in a row.
struct Told<'a> {
    line: &'a Line,
    times: u32,
}

/// Returns what is told of the broken session: its own lines and, from its first on, the deaths and starts of the process.
fn story<'a>(lines: &'a [Line], violation: &Violation) -> Vec<Told<'a>> {
    let begins = first_of(lines, violation);
    let boots = |line: &Line| matches!(line.kind, "boot" | "dead" | "heal") && line.at_ms >= begins;
    let is_told = |line: &&Line| match violation.session {
        Some(_) => line.session == violation.session || boots(line),
        None => !line.is_fault,
    };
    let mut told: Vec<Told<'a>> = Vec::new();
    for line in lines.iter().filter(is_told) {
        match told.last_mut() {
            Some(last) if last.line.text == line.text => last.times += 1,
            _ => told.push(Told { line, times: 1 }),
        }
    }
    told
}

/// Returns when the broken session is first told of; the beginning where there is none.
fn first_of(lines: &[Line], violation: &Violation) -> u64 {
    let own = lines.iter().find(|line| violation.session.is_some() && line.session == violation.session);
    own.map_or(0, |line| line.at_ms)
}

/// How long after the last that is told of a session a fault may still have to do with it, milliseconds.
const AFTERMATH_MS: u64 = 120_000;

/// Returns the time in which something happened to the broken session.
fn window(lines: &[Line], violation: &Violation) -> std::ops::RangeInclusive<u64> {
    let own = lines.iter().rfind(|line| violation.session.is_some() && line.session == violation.session);
    let ends = own.map_or(u64::MAX, |line| line.at_ms.saturating_add(AFTERMATH_MS));
    first_of(lines, violation)..=ends
}

/// Returns the faults of that time.
fn faults_around<'a>(lines: &'a [Line], violation: &Violation) -> Vec<&'a Line> {
    let window = window(lines, violation);
    lines.iter().filter(|line| line.is_fault && window.contains(&line.at_ms)).collect()
}

/// Writes what came of a campaign.
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
    for mark in summary.missed_marks() {
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
