//! Mutants that rules make, not people: a copy of the workspace with each behind a run-time switch, and the hunt for them.
//!
//! ```text
//! cargo run --example mechanical -p simulations -- grow target/mechanical
//! cargo run --example mechanical -p simulations -- hunt target/mechanical --count 400 --seed 1 --jobs 2
//! cargo run --example mechanical -p simulations -- report target/mechanical
//! ```
//!
//! `grow` takes about as long as a build, `hunt` an hour or more; a stopped hunt resumes. Each mutant may take the library
//! and 300 seeds. `report` writes docs/results/mechanical.md; its verdicts on survivors are in verdicts.toml.

#![expect(clippy::print_stdout, reason = "a command line tool")]

mod hunt;
mod names;
mod recording;
mod report;
mod rules;
mod tree;
mod trial;

use std::{path::Path, process::ExitCode};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const USAGE: &str = "mechanical grow TREE
mechanical hunt TREE [--count N] [--seed N] [--seeds N] [--jobs N]   draws mutants
mechanical hunt TREE --of FILE [--seeds N] [--jobs N]                hunts those that a report or a list names
mechanical hunt TREE --again [--seeds N] [--jobs N]                  hunts those again that nothing has noticed
mechanical list TREE                                                 prints the name of every mutant
mechanical report TREE
mechanical try FILE                                                  runs the simulations that a file names";

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
    let value = |name: &str| words.iter().position(|word| word == name).and_then(|at| words.get(at + 1));
    let number = |name: &str, default: u64| -> Result<u64> {
        value(name).map_or(Ok(default), |value| value.parse().map_err(|_| format!("{name} is a number").into()))
    };
    let tree = words.get(1).map(Path::new);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("the workspace has no folder")?;
    match (words.first().map(String::as_str), tree) {
        (Some("grow"), Some(tree)) => hunt::grow(root, tree)?,
        (Some("hunt"), Some(tree)) => {
            let which = match value("--of") {
                Some(file) => hunt::Which::Of(Path::new(file).to_owned()),
                None if words.iter().any(|word| word == "--again") => hunt::Which::Again,
                None => hunt::Which::Drawn { count: number("--count", 400)?, seed: number("--seed", 1)? },
            };
            hunt::hunt(tree, &which, number("--seeds", 300)?, number("--jobs", 2)?)?;
        }
        (Some("list"), Some(tree)) => {
            for one in hunt::listed(tree)? {
                println!("{}", one["name"].as_str().unwrap_or_default());
            }
        }
        (Some("report"), Some(tree)) => report::write(root, tree)?,
        (Some("try"), Some(list)) => return trial::run(root, list),
        _ => return Err(USAGE.into()),
    }
    Ok(ExitCode::SUCCESS)
}
