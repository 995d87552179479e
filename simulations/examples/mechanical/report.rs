//! The page of hunted mutants: the score, and every survivor with its verdict.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::Path,
};

use serde::Deserialize;

use crate::{Result, hunt};

/// What is known of survivors, by name.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Verdicts {
    /// Why no test can detect them.
    #[serde(default)]
    equivalent: BTreeMap<String, String>,
    /// What was added that kills them: they survived an earlier hunt.
    #[serde(default)]
    killed: BTreeMap<String, String>,
    /// Why they are not detected yet, and what would detect them.
    #[serde(default)]
    open: BTreeMap<String, String>,
}

/// Mutants of one part of the code, by outcome.
#[derive(Debug, Default)]
struct Score {
    killed: usize,
    equivalent: usize,
    survive: usize,
    unreached: usize,
}

impl Score {
    fn row(&self, part: &str) -> String {
        let real = self.killed + self.survive + self.unreached;
        let share = (self.killed * 100).checked_div(real).map_or(String::new(), |share| format!("{share} %"));
        let Self { killed, equivalent, survive, unreached } = self;
        format!("| {part} | {} | {killed} | {survive} | {unreached} | {equivalent} | {share} |\n", real + equivalent)
    }
}

/// Writes docs/results/mechanical.md.
pub(crate) fn write(root: &Path, tree: &Path) -> Result<()> {
    let known = fs::read_to_string(root.join("simulations/examples/mechanical/verdicts.toml"))?;
    let known: Verdicts = toml::from_str(&known)?;
    let hunted = hunt::read(tree)?;
    note_outdated(&known, tree)?;
    let (mut scores, mut all, mut open) = (BTreeMap::<String, Score>::new(), Score::default(), String::new());
    let (mut equivalents, mut killed) = (String::new(), String::new());
    for (name, one) in &hunted {
        let text = |field: &str| one[field].as_str().unwrap_or_default();
        let outcome = text("outcome");
        let mut parts = text("file").split('/');
        let part = [parts.next(), parts.next(), parts.next()].map(Option::unwrap_or_default).join("/");
        for score in [scores.entry(part).or_default(), &mut all] {
            if known.equivalent.contains_key(name) {
                score.equivalent += 1;
            } else if outcome.starts_with("killed") {
                score.killed += 1;
            } else if outcome == "survives" {
                score.survive += 1;
            } else {
                score.unreached += 1;
            }
        }
        if let Some(why) = known.equivalent.get(name) {
            writeln!(equivalents, "| {} | {why} |", cell(name))?;
        } else if !outcome.starts_with("killed") {
            let why = known.open.get(name).map_or("", String::as_str);
            writeln!(open, "| {} | {outcome} | {why} |", cell(name))?;
        } else if let Some(by) = known.killed.get(name) {
            writeln!(killed, "| {} | {} | {} |", cell(name), cell(by), cell(outcome))?;
        }
    }
    let mut page = String::from(INTRODUCTION);
    for (part, score) in &scores {
        page.push_str(&score.row(part));
    }
    page.push_str(&all.row("**all**"));
    write!(
        page,
        "\n## Open\n\n| mutant | outcome | what would kill it |\n|---|---|---|\n{open}\n## Killed since\n\n| mutant | what was added | outcome |\n|---|---|---|\n{killed}\n## Equivalent\n\n| mutant | why no test can detect it |\n|---|---|\n{equivalents}"
    )?;
    fs::create_dir_all(root.join("docs/results"))?;
    fs::write(root.join("docs/results/mechanical.md"), page)?;
    println!("written to docs/results/mechanical.md");
    Ok(())
}

/// Prints the verdicts on mutants that the tree does not have: the code has changed.
fn note_outdated(known: &Verdicts, tree: &Path) -> Result<()> {
    let listed = hunt::listed(tree)?;
    let names: BTreeSet<&str> = listed.iter().filter_map(|one| one["name"].as_str()).collect();
    let all = known.equivalent.keys().chain(known.killed.keys()).chain(known.open.keys());
    for name in all.filter(|name| !names.contains(name.as_str())) {
        println!("outdated verdict: {name}");
    }
    Ok(())
}

/// Returns text for a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

const INTRODUCTION: &str = "# Mechanical mutants

Mutants that rules make: a comparison, condition, constant, operator or method replaced, a statement or a match arm removed,
an argument swapped, a value dropped, an error ignored, a number off by one. `simulations/examples/mechanical` writes them
into a copy of the workspace, each behind a run-time switch. Each takes the scenario library and seeds (`--seeds`). Not mutated:
metrics and logs; HTTP, which a simulation replaces; the threads of the writer, whose interleavings loom explores; the store
in PostgreSQL, whose tests compare it with the embedded one. The share is that of the mutants killed among those that are not equivalent.

| part | mutants | killed | survive | never reached | equivalent | share |
|---|---|---|---|---|---|---|
";
