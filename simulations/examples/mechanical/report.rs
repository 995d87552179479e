//! The page of what was hunted: the score, and every survivor with what is known of it.

use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

use serde::Deserialize;
use serde_json::Value;

use crate::{Result, hunt};

/// What people found out about survivors.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Verdicts {
    #[serde(default)]
    equivalent: BTreeMap<String, String>,
    #[serde(default)]
    killed: BTreeMap<String, String>,
}

/// Mutants of one part of the code, by what came of them.
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
    let (mut scores, mut all, mut open) = (BTreeMap::<String, Score>::new(), Score::default(), String::new());
    let mut equivalents = String::new();
    for (name, one) in &hunted {
        let text = |field: &str| one[field].as_str().unwrap_or_default();
        let outcome = text("outcome");
        let mut parts = text("file").split('/');
        let part = [parts.next(), parts.next(), parts.next()].map(Option::unwrap_or_default).join("/");
        for score in [scores.entry(part).or_default(), &mut all] {
            if known.equivalent.contains_key(name) {
                score.equivalent += 1;
            } else if outcome.starts_with("noticed") || known.killed.contains_key(name) {
                score.killed += 1;
            } else if outcome == "survives" {
                score.survive += 1;
            } else {
                score.unreached += 1;
            }
        }
        if let Some(why) = known.equivalent.get(name) {
            writeln!(equivalents, "| {} | {why} |", place(one))?;
        } else if !outcome.starts_with("noticed") {
            let verdict = known.killed.get(name).map_or(outcome.to_owned(), |by| format!("killed since: {by}"));
            writeln!(open, "| {} | {verdict} |", place(one))?;
        }
    }
    let mut page = String::from(INTRODUCTION);
    for (part, score) in &scores {
        page.push_str(&score.row(part));
    }
    page.push_str(&all.row("**all**"));
    write!(
        page,
        "\n## Survivors\n\n| mutant | outcome |\n|---|---|\n{open}\n## Equivalent\n\n| mutant | why nothing can notice it |\n|---|---|\n{equivalents}"
    )?;
    fs::create_dir_all(root.join("docs/results"))?;
    fs::write(root.join("docs/results/mechanical.md"), page)?;
    println!("written to docs/results/mechanical.md");
    Ok(())
}

const INTRODUCTION: &str = "# Mechanical mutants

Mutants that rules make: a comparison, condition, constant, operator or method replaced, a statement or a match arm removed,
an argument swapped, a value dropped, an error ignored, a number off by one. `simulations/examples/mechanical` writes them
into a copy of the workspace, each behind a run-time switch. Each may take the scenario library and 300 seeds; metrics and
logs are not mutated. Share is what was noticed of those that are not equivalent.

| part | mutants | noticed | survive | never reached | equivalent | share |
|---|---|---|---|---|---|---|
";

fn place(one: &Value) -> String {
    let text = |field: &str| {
        let mut text = one[field]
            .as_str()
            .unwrap_or_default()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
            .replace('|', "\\|");
        if text.len() > 90 {
            let cut = (0..=90).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
            text.truncate(cut);
            text.push('…');
        }
        text
    };
    let after = text("after");
    let after = if after.is_empty() { "nothing".to_owned() } else { format!("`{after}`") };
    format!("{} `{}`, {}: `{}` becomes {after}", text("file"), text("function"), text("rule"), text("before"))
}
