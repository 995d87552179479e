//! `completions`: the completion script of a shell, generated from the definition of the command line.

use clap::Command;
use clap_complete::Shell;

use super::{failure::Failure, output::print};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Prints the completion script.
pub(super) fn run(args: Args, mut definition: Command) -> Result<(), Failure> {
    let name = definition.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut definition, name, &mut script);
    print(&String::from_utf8_lossy(&script))
}
