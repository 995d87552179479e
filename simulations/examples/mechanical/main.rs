//! Mutants that rules make, not people: a copy of the workspace with each behind a run-time switch, and the hunt for them.
//!
//! ```text
//! cargo run --example mechanical -p simulations -- grow target/mechanical
//! cargo run --example mechanical -p simulations -- hunt target/mechanical --count 400 --seed 1 --jobs 2
//! cargo run --example mechanical -p simulations -- report target/mechanical
//! ```
//!
//! `grow` takes about as long as a build, `hunt` an hour or more; stopped, it goes on where it was. Each mutant may take the
//! library and 300 seeds. `report` writes docs/results/mechanical.md; what it says of a survivor is in verdicts.toml.

#![expect(clippy::print_stdout, reason = "a command line tool")]

mod hunt;
mod report;
mod rules;
mod tree;
mod trial;

use std::{path::Path, process::ExitCode};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const USAGE: &str =
    "mechanical grow TREE | hunt TREE [--count N] [--seed N] [--seeds N] [--jobs N] | report TREE | try [--seeds N]";

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str, default: u64| -> Result<u64> {
        match words.iter().position(|word| word == name).and_then(|at| words.get(at + 1)) {
            Some(value) => value.parse().map_err(|_| format!("{name} is a number").into()),
            None => Ok(default),
        }
    };
    let tree = words.get(1).map(Path::new);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("the workspace has no folder")?;
    match (words.first().map(String::as_str), tree) {
        (Some("grow"), Some(tree)) => hunt::grow(root, tree)?,
        (Some("hunt"), Some(tree)) => {
            let seeds = number("--seeds", 300)?;
            hunt::hunt(tree, number("--count", 400)?, number("--seed", 1)?, seeds, number("--jobs", 2)?)?;
        }
        (Some("report"), Some(tree)) => report::write(root, tree)?,
        (Some("try"), _) => return trial::run(root, number("--seeds", 300)?),
        _ => return Err(USAGE.into()),
    }
    Ok(ExitCode::SUCCESS)
}
