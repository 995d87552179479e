//! The names of mutants: where each is and what it does, so that a name never passes to another mutant.

use std::collections::BTreeMap;

use crate::rules::Mutant;

/// Maximum bytes of the code before and after that a name contains.
const MAX_CODE: usize = 90;

/// Returns the name of each mutant. Mutants that do the same in one function are numbered.
pub(crate) fn of(mutants: &[Mutant]) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let name = |one: &Mutant| {
        let name = text(&one.file, &one.function, one.rule, &one.before, &one.after);
        let count = seen.entry(name.clone()).or_default();
        *count += 1;
        if *count == 1 { name } else { format!("{name}, number {count}") }
    };
    mutants.iter().map(name).collect()
}

fn text(file: &str, function: &str, rule: &str, before: &str, after: &str) -> String {
    let after = if after.is_empty() { "nothing".to_owned() } else { format!("`{}`", short(after)) };
    match before {
        "" => format!("{file} `{function}`, {rule}: {after}"),
        before => format!("{file} `{function}`, {rule}: `{}` becomes {after}", short(before)),
    }
}

/// Returns code in one line, cut to a length at which it can be read.
fn short(code: &str) -> String {
    let mut text = code.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.len() > MAX_CODE {
        let cut = (0..=MAX_CODE).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
        text.truncate(cut);
        text.push('…');
    }
    text
}
