//! `config`: prints the settings in force.

use super::{
    failure::Failure,
    output::print,
    settings::{EngineFlags, FacadeFlags, SettingsArgs},
};
use crate::config::reference;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    engine: EngineFlags,
    #[command(flatten)]
    facade: FacadeFlags,
    /// Print the reference of all settings instead (docs/reference/settings.md)
    #[arg(long)]
    reference: bool,
}

/// Prints the settings as TOML, with the source of each.
pub(super) fn run(args: Args) -> Result<(), Failure> {
    if args.reference {
        return print(&reference());
    }
    let mut flags = args.engine.into_settings();
    flags.extend(args.facade.into_settings());
    print(&args.settings.load(flags)?.show())
}
