//! `man`: the manual pages, generated from the definition of the command line.

use std::{fs, path::PathBuf};

use clap::Command;
use clap_mangen::Man;

use super::{failure::Failure, output::print};
use crate::version::VERSION;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Write a page for every command to this directory
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
}

/// Prints the page of the program, or writes the pages of all commands to a directory.
pub(super) fn run(args: Args, definition: Command) -> Result<(), Failure> {
    let mut program = definition.disable_help_subcommand(true);
    // Names the pages of subcommands after their parents: hivetill-admin-payment.
    program.build();
    let Some(folder) = args.to else {
        return print(&String::from_utf8_lossy(&rendered(&page(&program))?));
    };
    fs::create_dir_all(&folder).map_err(|error| Failure::of_file(&folder, &error))?;
    let mut commands = vec![&program];
    while let Some(command) = commands.pop() {
        commands.extend(command.get_subcommands().filter(|command| !command.is_hide_set()));
        let page = page(command);
        let path = folder.join(page.get_filename());
        fs::write(&path, rendered(&page)?).map_err(|error| Failure::of_file(&path, &error))?;
    }
    Ok(())
}

/// Returns the page of a command.
fn page(command: &Command) -> Man {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_uppercase();
    let page = Man::new(command.clone()).title(name).source(format!("Hivetill {VERSION}")).manual("Hivetill manual");
    // An empty date would not be quoted, and the source would take its place.
    page.date(" ")
}

/// Returns the source of a page, in the format of `man`.
fn rendered(page: &Man) -> Result<Vec<u8>, Failure> {
    let mut text = Vec::new();
    page.render(&mut text).map_err(|error| Failure::Other(format!("cannot generate a manual page: {error}")))?;
    Ok(text)
}
