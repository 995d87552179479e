//! HTML pages of a run (the broken invariant, swimlanes over virtual time, the trace, tables) and of a campaign.

use super::*;
use crate::trace::Source;

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:1240px;padding:0 1rem;color:#1b1b1b;background:#fff}\
    h1{font-size:1.4rem;margin-bottom:.2rem}h2{font-size:1.1rem;margin-top:2rem}.bad,.good{padding:.8rem 1.1rem;border-radius:4px}\
    .bad{background:#fde8e8;border-left:6px solid #b3261e}.good{background:#e6f4ea;border-left:6px solid #1e7e34}.small{color:#555;font-size:.87rem}\
    dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;margin:0}dt{font-weight:600}dd{margin:0}\
    table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.2rem .6rem;border-bottom:1px solid #e4e4e4;vertical-align:top}\
    .scroll{display:flex}.scroll svg{flex:none}.names{position:sticky;left:0;background:#fff;border-right:1px solid #ddd}\
    td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}tr.fault td{color:#b3261e}tr.never td{color:#8a5a00;font-weight:600}\
    tr.broken td{background:#fde8e8;font-weight:600}tr:target td{background:#fff3c4}.scroll{overflow-x:auto;border:1px solid #ddd}\
    svg text{font:12px system-ui,sans-serif;fill:#333}svg text.t{font-size:10px;fill:#666}svg text.b{fill:#b3261e;font-weight:600}svg text.no{font-size:9px;fill:#fff;text-anchor:middle;pointer-events:none}\
    .ev{fill:#2b5c8a}.ev:hover,.flt:hover{fill:#e08a00}.flt{fill:#b3261e}.dead{stroke:#b3261e;stroke-width:2;stroke-dasharray:5 3}\
    .boot{stroke:#1e7e34;stroke-width:2;stroke-dasharray:2 3}.heal{stroke:#1e7e34;stroke-width:3}.end{stroke:#b3261e;stroke-width:5}\
    .pending{fill:#f2c94c}.processing{fill:#c58af9}.completed{fill:#57ab5a}.failed{fill:#d9534f}.user_cancelled,.system_cancelled{fill:#9aa4ae}\
    code{background:#f3f3f3;padding:.1rem .3rem;overflow-wrap:anywhere}details{margin-top:1rem}summary{cursor:pointer;font-weight:600}";

/// The legend of the swimlanes.
const LEGEND: &str = "<b>payer</b> customers and agents; <b>ledger</b> the Hive chain and its nodes; <b>scanner</b> the scanner's cursor; \
    <b>session</b> the stored payment session; <b>disk</b> the storage below the database; <b>webhook</b> webhooks to the shop; \
    <b>merchant</b> the shop; <b>process</b> the engine's process and its restarts; <b>engine</b> each of several engines over one store.";

/// Writes a self-contained page: the broken invariant, swimlanes over virtual time, the trace, and tables.
#[must_use]
pub fn html(script: &Script, outcome: &Outcome, build: &str, replay: &str) -> String {
    let mut out = String::new();
    let why = if script.why.is_empty() {
        "A run whose customers, merchants and faults are drawn from its seed."
    } else {
        &script.why
    };
    begin(&mut out, &script.name, why);
    match &outcome.violation {
        None => out.push_str("<p class=good>Every invariant held.</p>"),
        Some(violation) => {
            let rule = INVARIANTS.iter().find(|one| one.name == violation.invariant).map_or("", |one| one.description);
            let whose =
                violation.session.map_or("no single session".to_owned(), |session| format!("session {session}"));
            let whose = escape(&named(script, &whose));
            let _ = write!(
                out,
                "<dl class=bad><dt>Invariant<dd>{}<dt>Observed<dd>{}<dt>About<dd>{whose}, {} after the start \
                 (virtual time)<dt>Name of the invariant<dd>{}</dl>",
                escape(rule),
                escape(&violation.text),
                show_ms(violation.at_ms),
                violation.invariant
            );
        }
    }
    let _ = write!(
        out,
        "<p class=small>Seed {} of {}, scenario {:016x}. Repeat with <code>{}</code></p>",
        script.seed,
        escape(build),
        script.fingerprint(),
        escape(replay)
    );
    let shown = shown(script, outcome);
    swimlanes(&mut out, script, &shown, outcome);
    trace_table(&mut out, script, &shown, outcome);
    faults_and_marks(&mut out, &outcome.faults, &outcome.marks);
    invariants(&mut out, &outcome.passes, outcome.violation.as_ref().map(|violation| violation.invariant));
    out.push_str("</html>\n");
    out
}

/// Writes a self-contained page of the result of a campaign.
#[must_use]
pub fn campaign_html(summary: &Summary, mix: Mix, payments: u32, build: &str) -> String {
    let mut out = String::new();
    begin(&mut out, "A campaign of simulated payments", "Payment lifecycles from seeds, with injected faults.");
    let missed = summary.missed().len();
    let _ = match (summary.failures.len(), missed) {
        (0, 0) => write!(out, "<p class=good>Every invariant held in every run.</p>"),
        (failed, missed) => {
            write!(out, "<p class=bad>{failed} runs failed, {missed} required states were never reached.</p>")
        }
    };
    let _ = write!(
        out,
        "<pre class=small>{}</pre><h2>Final states</h2>",
        escape(&super::summary(summary, mix, payments, build))
    );
    counts(&mut out, "state", &summary.states);
    faults_and_marks(&mut out, &summary.faults, &summary.marks);
    invariants(&mut out, &summary.passes, summary.failures.first().map(|failure| failure.violation.invariant));
    out.push_str("</html>\n");
    out
}

fn begin(out: &mut String, title: &str, why: &str) {
    let _ = write!(
        out,
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
         <title>{title}</title><style>{STYLE}</style><h1>{title}</h1><p>{why}</p>",
        title = escape(title),
        why = escape(why),
    );
}

/// Maximum moments in the picture and lines in the table.
const MOST: usize = 160;

/// Returns the relevant lines, consecutive equal lines merged: of the broken session, of what may
/// explain it, and the faults around it; without a broken session, of every session and of the process.
fn shown<'a>(script: &Script, outcome: &'a Outcome) -> Vec<RepeatedLine<'a>> {
    // A call of a node fails every few seconds: it matters when something happened to the session. Blocks fill a long trace.
    let hides_blocks = outcome.lines.iter().filter(|line| line.kind == "block").count() > MOST / 8;
    let is_usual =
        |line: &Line| matches!(line.kind, "node.call_fails" | "cursor") || (hides_blocks && line.kind == "block");
    let Some(violation) = &outcome.violation else {
        let mut all = folded(outcome.lines.iter().filter(|line| !is_usual(line)));
        all.truncate(MOST);
        return all;
    };
    let own = |line: &Line| violation.session.is_some() && line.session == violation.session;
    let begins = first_of(&outcome.lines, violation);
    let near = |line: &Line| outcome.lines.iter().any(|other| own(other) && other.at_ms.abs_diff(line.at_ms) <= 3_000);
    let window = window(&outcome.lines, violation);
    let is_wanted = |line: &&Line| {
        let is_why = violation.session.is_some_and(|session| is_cause(script, line, session, begins));
        let is_fault = line.is_fault && window.contains(&line.at_ms) && (!is_usual(line) || near(line));
        own(line) || is_why || is_fault || (violation.session.is_none() && !is_usual(line))
    };
    let mut shown = folded(outcome.lines.iter().filter(is_wanted));
    shown.split_off(shown.len().saturating_sub(MOST))
}

/// Returns the text of a line, with its number of repetitions.
fn describe_line(script: &Script, repeated: &RepeatedLine<'_>) -> String {
    let again = if repeated.times > 1 { format!(" ({} times)", repeated.times) } else { String::new() };
    format!("{}{again}", named(script, &repeated.line.text))
}

/// Width of the names of the swimlanes; they stay in place while the picture is scrolled.
const NAMES: u64 = 80;
const WIDTH: u64 = 1_200;
const SWIMLANE_HEIGHT: u64 = 48;
const TOP: u64 = 24;

/// The position of each moment on the time axis, which compresses long gaps.
struct Axis(Vec<(u64, u64)>);

impl Axis {
    fn of(moments: impl Iterator<Item = u64>) -> Self {
        let mut at: Vec<(u64, u64)> = Vec::new();
        for moment in moments {
            let x = match at.last() {
                None => 20,
                Some((before, x)) if *before >= moment => *x + 17,
                Some((before, x)) => x + 17 + u64::from((moment - before).ilog2()) * 3,
            };
            at.push((moment, x));
        }
        // A short trace fills the page.
        let end = at.last().map_or(0, |(_, x)| *x);
        let (from, available) = (20, WIDTH - NAMES - 80);
        if end > from && end - from < available {
            for (_, x) in &mut at {
                *x = from + (*x - from) * available / (end - from);
            }
        }
        Self(at)
    }

    fn end(&self) -> u64 {
        self.0.last().map_or(0, |(_, x)| *x) + 60
    }
}

fn swimlanes(out: &mut String, script: &Script, shown: &[RepeatedLine<'_>], outcome: &Outcome) {
    let last_ms = outcome.violation.as_ref().map(|violation| violation.at_ms);
    let axis = Axis::of(shown.iter().map(|repeated| repeated.line.at_ms).chain(last_ms));
    let all = Source::of_run(script.setup.engines);
    let swimlanes = all.len() as u64;
    let (width, bottom) = (axis.end().max(WIDTH - NAMES), TOP + swimlanes * SWIMLANE_HEIGHT);
    let _ = write!(
        out,
        "<h2>What happened</h2><p class=small>Time runs from left to right; the numbers are the lines of the trace below (click). Blue is an \
         event, red an injected fault. Dashed red: the process exits; dotted green: it starts; solid green: faults end. The coloured band is the \
         session's state. {LEGEND}</p><div class=scroll><svg class=names width={NAMES} height={} aria-hidden=true>",
        bottom + 46
    );
    for (number, source) in (0u64..).zip(&all) {
        let _ = write!(out, "<text x=8 y={}>{}</text>", TOP + number * SWIMLANE_HEIGHT + 28, source.as_str());
    }
    let _ = write!(
        out,
        "</svg><svg width={width} height={} role=img aria-label=\"Swimlanes on virtual time\">",
        bottom + 46
    );
    for number in 0..swimlanes {
        let y = TOP + number * SWIMLANE_HEIGHT;
        let fill = if number % 2 == 0 { "#fafafa" } else { "#eef2f6" };
        let _ = write!(out, "<rect x=0 y={y} width={width} height={SWIMLANE_HEIGHT} fill=\"{fill}\"/>");
    }
    bands(out, script, shown, &axis, outcome);
    let mut labelled = 0;
    for (number, (repeated, (at_ms, x))) in shown.iter().zip(&axis.0).enumerate() {
        let line = repeated.line;
        let hover = escape(&format!("{} {}", show_ms(*at_ms), describe_line(script, repeated)));
        let source = all.iter().position(|source| *source == line.source).unwrap_or(0) as u64;
        let y = TOP + source * SWIMLANE_HEIGHT + SWIMLANE_HEIGHT / 2;
        if matches!(line.kind, "dead" | "boot" | "heal") {
            let _ = write!(
                out,
                "<line class={} x1={x} x2={x} y1={TOP} y2={bottom}><title>{hover}</title></line>",
                line.kind
            );
        }
        let class = if line.is_fault { "flt" } else { "ev" };
        let number = number + 1;
        let _ = write!(
            out,
            "<a href=\"#s{number}\"><circle class={class} cx={x} cy={y} r=8><title>{hover}</title></circle></a><text class=no x={x} y={}>{number}</text>",
            y + 3
        );
        if *x >= labelled {
            let _ = write!(out, "<text class=t x={x} y={}>{}</text>", bottom + 16, show_ms(*at_ms));
            labelled = x + 74;
        }
    }
    if let (Some(violation), Some((_, x))) = (&outcome.violation, axis.0.last()) {
        let _ = write!(
            out,
            "<line class=end x1={x} x2={x} y1={TOP} y2={bottom}><title>{}</title></line><text x={} y=16 class=b text-anchor=end>the invariant \
             breaks here</text>",
            escape(&violation.text),
            x + 4
        );
    }
    out.push_str("</svg></div>");
    if outcome.violation.is_some() {
        // The violation is at the end: scroll there.
        out.push_str("<script>document.querySelector('.scroll').scrollLeft=1e6</script>");
    }
}

/// Draws the states of the broken session, or of the first one, as a band.
fn bands(out: &mut String, script: &Script, shown: &[RepeatedLine<'_>], axis: &Axis, outcome: &Outcome) {
    let source = Source::ALL.iter().position(|source| *source == Source::Session).unwrap_or(0) as u64;
    let broken = outcome.violation.as_ref().and_then(|violation| violation.session);
    let Some(session) = broken.or_else(|| shown.iter().find_map(|repeated| repeated.line.session)) else { return };
    let states = shown.iter().zip(&axis.0).filter(|(repeated, _)| repeated.line.session == Some(session)).filter_map(
        |(repeated, (_, x))| {
            let state = match repeated.line.kind {
                "created" => Some("pending"),
                "stored" => state_in(&repeated.line.text),
                _ => None,
            };
            state.map(|state| (*x, state))
        },
    );
    let states: Vec<_> = states.collect();
    for (at, (x, state)) in states.iter().enumerate() {
        let to = states.get(at + 1).map_or(axis.end() - 40, |(to, _)| *to);
        let y = TOP + source * SWIMLANE_HEIGHT + SWIMLANE_HEIGHT - 13;
        let _ = write!(
            out,
            "<rect class={state} x={x} y={y} width={} height=12><title>{} is {state}</title></rect>",
            to.saturating_sub(*x),
            escape(&named(script, &format!("session {session}")))
        );
        let is_new = at == 0 || states[at - 1].1 != *state;
        if is_new && to.saturating_sub(*x) > 9 * state.len() as u64 {
            let _ = write!(out, "<text class=t x={} y={}>{state}</text>", x + 3, y + 10);
        }
    }
}

fn state_in(text: &str) -> Option<&'static str> {
    let word = text.split(" is ").nth(1)?.split(' ').next()?;
    engine::payment::State::parse(word).map(engine::payment::State::as_str)
}

fn trace_table(out: &mut String, script: &Script, shown: &[RepeatedLine<'_>], outcome: &Outcome) {
    out.push_str("<h2>Trace</h2><table><tr><th><th>time<th>who<th>session<th>what</tr>");
    for (number, repeated) in shown.iter().enumerate() {
        let line = repeated.line;
        let class = if line.is_fault { " class=fault" } else { "" };
        let session = line.session.map_or(String::new(), |session| {
            let name = usize::try_from(session).ok().and_then(|number| script.names.get(number));
            name.map_or_else(|| session.to_string(), |name| escape(name))
        });
        let number = number + 1;
        let _ = write!(
            out,
            "<tr{class} id=s{number}><td class=n>{number}<td class=n>{}<td>{}<td>{session}<td>{}</tr>",
            show_ms(line.at_ms),
            line.source.as_str(),
            escape(&describe_line(script, repeated))
        );
    }
    if let Some(violation) = &outcome.violation {
        let text = escape(&violation.text);
        let _ = write!(
            out,
            "<tr class=broken><td><td class=n>{}<td>invariant broken<td><td>{text}</tr>",
            show_ms(violation.at_ms)
        );
    }
    out.push_str("</table>");
}

type Counts = std::collections::BTreeMap<&'static str, u64>;

fn counts(out: &mut String, what: &str, counted: &Counts) {
    let _ = write!(out, "<table><tr><th>{what}<th>times</tr>");
    for (name, count) in counted {
        let _ = write!(out, "<tr><td>{}<td class=n>{count}</tr>", escape(name));
    }
    out.push_str("</table>");
}

fn faults_and_marks(out: &mut String, faults: &Counts, marks: &Counts) {
    out.push_str("<details><summary>Injected faults</summary>");
    counts(out, "fault", faults);
    out.push_str("</details><details><summary>Rare states that were reached</summary>");
    counts(out, "state", marks);
    out.push_str("<table>");
    for mark in REQUIRED_MARKS.iter().filter(|mark| !marks.contains_key(*mark)) {
        let _ = write!(out, "<tr class=never><td>{}<td class=n>not in this run</tr>", escape(mark));
    }
    out.push_str("</table></details>");
}

fn invariants(out: &mut String, passes: &[u64], broken: Option<&str>) {
    out.push_str("<details><summary>Invariants, and how often each was checked</summary><table><tr><th>name<th>from<th>rule<th>held</tr>");
    for (one, passes) in INVARIANTS.iter().zip(passes) {
        let class = if Some(one.name) == broken { " class=broken" } else { "" };
        let _ = write!(
            out,
            "<tr{class}><td>{}<td>{}<td>{}<td class=n>{passes}</tr>",
            one.name,
            one.code,
            escape(one.description)
        );
    }
    out.push_str("</table></details>");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
