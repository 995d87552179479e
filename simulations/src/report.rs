//! What a person reads: one screen for a failure, a page for a campaign, and swim lanes in one HTML file.

use std::fmt::Write as _;

use crate::{
    campaign::{REQUIRED_MARKS, Summary},
    observer::Violation,
    oracles::INVARIANTS,
    plan::Mix,
    script::Script,
    trace::{Lane, Line, show_ms},
    world::Outcome,
};

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
    let _ = writeln!(out, "seed    {} of {build}", script.seed);
    let _ = writeln!(out, "replay  {replay}");
    let story: Vec<&Line> = story(&outcome.lines, violation);
    let _ =
        writeln!(out, "\nstory of {}", violation.session.map_or("everybody".to_owned(), |s| format!("session {s}")));
    if story.len() > STORY_LINES {
        let _ = writeln!(out, "  ({} earlier lines left out)", story.len() - STORY_LINES);
    }
    for line in &story[story.len().saturating_sub(STORY_LINES)..] {
        let _ = writeln!(out, "{line}");
    }
    let faults: Vec<&Line> = outcome.lines.iter().filter(|line| line.is_fault).collect();
    if !faults.is_empty() {
        let _ = writeln!(out, "\nlast faults before it");
        for line in &faults[faults.len().saturating_sub(LAST_FAULTS)..] {
            let _ = writeln!(out, "{line}");
        }
    }
    out
}

fn story<'a>(lines: &'a [Line], violation: &Violation) -> Vec<&'a Line> {
    let boots = |line: &Line| matches!(line.kind, "boot" | "dead" | "heal");
    match violation.session {
        Some(_) => lines.iter().filter(|line| line.session == violation.session || boots(line)).collect(),
        None => lines.iter().filter(|line| !line.is_fault).collect(),
    }
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

/// Writes a self-contained page: swim lanes on virtual time, faults as marks, dead processes as lines, and the tables.
#[must_use]
pub fn html(script: &Script, outcome: &Outcome, build: &str, replay: &str) -> String {
    let mut out = String::new();
    let verdict = outcome.violation.as_ref().map_or_else(
        || "<p class=good>Every invariant held.</p>".to_owned(),
        |violation| {
            let rule = INVARIANTS.iter().find(|one| one.name == violation.invariant).map_or("", |one| one.says);
            format!(
                "<div class=bad><b>{}</b>: {}<br>Seen at {}: {}</div>",
                escape(violation.invariant),
                escape(rule),
                show_ms(violation.at_ms),
                escape(&violation.text)
            )
        },
    );
    let _ = write!(
        out,
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
         <title>{title}</title><style>{STYLE}</style><h1>{title}</h1><p>{why}</p>{verdict}\
         <p class=small>Seed {seed} of {build}. Replay: <code>{replay}</code></p>",
        title = escape(&script.name),
        why = escape(&script.why),
        seed = script.seed,
        build = escape(build),
        replay = escape(replay)
    );
    let shown = shown_lines(outcome);
    lanes(&mut out, &shown, outcome);
    story_table(&mut out, &shown, outcome);
    tables(&mut out, outcome);
    out.push_str("</html>\n");
    out
}

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:1200px;padding:0 1rem;color:#1b1b1b;background:#fff}\
    h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}.bad{background:#fde8e8;border-left:5px solid #b3261e;padding:.7rem 1rem}\
    .good{background:#e6f4ea;border-left:5px solid #1e7e34;padding:.7rem 1rem}.small{color:#555;font-size:.85rem}\
    table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.2rem .6rem;border-bottom:1px solid #e4e4e4;vertical-align:top}\
    td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}tr.fault td{color:#b3261e}tr.never td{color:#8a5a00;font-weight:600}\
    svg{width:100%;height:auto;border:1px solid #ddd}svg text{font:11px system-ui,sans-serif;fill:#444}\
    .ev{fill:#2b5c8a}.ev:hover{fill:#e08a00}.flt{stroke:#b3261e;stroke-width:2}.flt:hover{stroke:#e08a00}.dead{stroke:#b3261e;stroke-dasharray:4 3}\
    .boot{stroke:#1e7e34;stroke-dasharray:2 3}.pending{fill:#f2c94c}.processing{fill:#c58af9}.completed{fill:#57ab5a}.failed{fill:#b3261e}\
    .user_cancelled,.system_cancelled{fill:#9aa4ae}code{background:#f3f3f3;padding:.1rem .3rem;overflow-wrap:anywhere}";

/// Returns the lines worth a place: those of the broken session where there is one, and everything that has none.
fn shown_lines(outcome: &Outcome) -> Vec<&Line> {
    let session = outcome.violation.as_ref().and_then(|violation| violation.session);
    let near = outcome.violation.as_ref().map_or(0, |violation| violation.at_ms.saturating_sub(1_800_000));
    let wanted =
        |line: &&Line| session.is_none() || line.session == session || (line.session.is_none() && line.at_ms >= near);
    outcome.lines.iter().filter(wanted).collect()
}

const LEFT: u64 = 90;
const WIDTH: u64 = 1_100;
const LANE_HEIGHT: u64 = 46;

fn lanes(out: &mut String, shown: &[&Line], outcome: &Outcome) {
    let first = shown.first().map_or(0, |line| line.at_ms);
    let last = shown.last().map_or(1, |line| line.at_ms).max(first + 1);
    let x = |at_ms: u64| LEFT + (at_ms.clamp(first, last) - first) * (WIDTH - LEFT - 20) / (last - first);
    let lanes = Lane::ALL.len() as u64;
    let height = lanes * LANE_HEIGHT + 40;
    let _ = write!(
        out,
        "<h2>What happened</h2><svg viewBox=\"0 0 {WIDTH} {height}\" role=img aria-label=\"Swim lanes on virtual time\">"
    );
    for (number, lane) in (0u64..).zip(Lane::ALL) {
        let y = 20 + number * LANE_HEIGHT;
        let fill = if number % 2 == 0 { "#fafafa" } else { "#f1f4f7" };
        let _ = write!(
            out,
            "<rect x=0 y={y} width={WIDTH} height={LANE_HEIGHT} fill=\"{fill}\"/><text x=8 y={}>{}</text>",
            y + 27,
            lane.word()
        );
    }
    bands(out, outcome, &x, last);
    for line in shown {
        let at = x(line.at_ms);
        let hover = format!("{} {}", show_ms(line.at_ms), line.text);
        let number = Lane::ALL.iter().position(|lane| *lane == line.lane).unwrap_or(0) as u64;
        let y = 20 + number * LANE_HEIGHT;
        match line.kind {
            "dead" | "boot" => {
                let _ = write!(
                    out,
                    "<line class={} x1={at} x2={at} y1=20 y2={}><title>{}</title></line>",
                    line.kind,
                    20 + lanes * LANE_HEIGHT,
                    escape(&hover)
                );
            }
            _ if line.is_fault => {
                let _ = write!(
                    out,
                    "<line class=flt x1={at} x2={at} y1={} y2={}><title>{}</title></line>",
                    y + 4,
                    y + LANE_HEIGHT - 4,
                    escape(&hover)
                );
            }
            _ => {
                let _ = write!(
                    out,
                    "<circle class=ev cx={at} cy={} r=4><title>{}</title></circle>",
                    y + LANE_HEIGHT / 2,
                    escape(&hover)
                );
            }
        }
    }
    for tick in 0..=6u64 {
        let at_ms = first + (last - first) * tick / 6;
        let _ = write!(out, "<text x={} y={} text-anchor=middle>{}</text>", x(at_ms), height - 6, show_ms(at_ms));
    }
    out.push_str("</svg><p class=small>Dots are events, red strokes are faults; a dashed red line is the death of the process, a dotted green one its start. Bands in the session lane are its state. Hold the pointer over anything to read it.</p>");
}

/// Draws the state of each session (at most three) as a band.
fn bands(out: &mut String, outcome: &Outcome, x: &impl Fn(u64) -> u64, last: u64) {
    let session_lane = Lane::ALL.iter().position(|lane| *lane == Lane::Session).unwrap_or(0) as u64;
    let mut sessions: Vec<u32> = match outcome.violation.as_ref().and_then(|violation| violation.session) {
        Some(session) => vec![session],
        None => outcome.lines.iter().filter_map(|line| line.session).collect(),
    };
    sessions.sort_unstable();
    sessions.dedup();
    for (row, session) in (0u64..).zip(sessions.into_iter().take(3)) {
        let states = outcome.lines.iter().filter(|line| line.session == Some(session) && line.kind == "stored");
        let states: Vec<_> = states.filter_map(|line| state_in(&line.text).map(|state| (line.at_ms, state))).collect();
        for (at, (from, state)) in states.iter().enumerate() {
            let to = states.get(at + 1).map_or(last, |(to, _)| *to);
            let (left, right) = (x(*from), x(to).max(x(*from) + 1));
            let _ = write!(
                out,
                "<rect class={state} x={left} y={} width={} height=11><title>session {session} is {state} from {}</title></rect>",
                20 + session_lane * LANE_HEIGHT + 4 + row * 13,
                right - left,
                show_ms(*from)
            );
        }
    }
}

fn state_in(text: &str) -> Option<&'static str> {
    let word = text.split(" is ").nth(1)?.split(' ').next()?;
    engine::payment::State::parse(word).map(engine::payment::State::word)
}

fn story_table(out: &mut String, shown: &[&Line], outcome: &Outcome) {
    const MOST: usize = 400;
    let skipped = shown.len().saturating_sub(MOST);
    let _ = write!(out, "<h2>The story in words</h2>");
    if skipped > 0 {
        let _ = write!(out, "<p class=small>The first {skipped} lines are left out.</p>");
    }
    out.push_str("<table><tr><th>time<th>who<th>session<th>what</tr>");
    for line in &shown[skipped..] {
        let class = if line.is_fault { " class=fault" } else { "" };
        let session = line.session.map_or(String::new(), |session| session.to_string());
        let _ = write!(
            out,
            "<tr{class}><td class=n>{}<td>{}<td>{session}<td>{}</tr>",
            show_ms(line.at_ms),
            line.lane.word(),
            escape(&line.text)
        );
    }
    if let Some(violation) = &outcome.violation {
        let _ = write!(
            out,
            "<tr class=fault><td class=n>{}<td>invariant<td><td><b>{}</b>: {}</tr>",
            show_ms(violation.at_ms),
            violation.invariant,
            escape(&violation.text)
        );
    }
    out.push_str("</table>");
}

fn tables(out: &mut String, outcome: &Outcome) {
    out.push_str("<h2>Faults</h2><table><tr><th>fault<th>times</tr>");
    for (name, count) in &outcome.faults {
        let _ = write!(out, "<tr><td>{}<td class=n>{count}</tr>", escape(name));
    }
    out.push_str("</table><h2>Rare places</h2><table><tr><th>place<th>times</tr>");
    for (name, count) in &outcome.marks {
        let _ = write!(out, "<tr><td>{}<td class=n>{count}</tr>", escape(name));
    }
    for mark in REQUIRED_MARKS.iter().filter(|mark| !outcome.marks.contains_key(*mark)) {
        let _ = write!(out, "<tr class=never><td>{}<td class=n>never, here</tr>", escape(mark));
    }
    out.push_str("</table><h2>Invariants</h2><table><tr><th>name<th>from<th>rule<th>held</tr>");
    for (one, passes) in INVARIANTS.iter().zip(&outcome.passes) {
        let _ = write!(out, "<tr><td>{}<td>{}<td>{}<td class=n>{passes}</tr>", one.name, one.code, escape(one.says));
    }
    out.push_str("</table>");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
