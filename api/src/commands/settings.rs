//! Command line flags for settings, shared by commands.

use std::{io::IsTerminal, net::SocketAddr, path::PathBuf};

use clap::Args;

use super::failure::Failure;
use crate::config::{Config, Layers, environment_variables};

/// Sources of settings besides the defaults and environment variables.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct SettingsArgs {
    /// A TOML file of settings (docs/reference/settings.md)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Set any setting, such as ledger.poll_interval_ms=500; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pairs: Vec<String>,
    /// Write log lines without color, the default if the output is not a terminal
    #[arg(long)]
    no_color: bool,
}

impl SettingsArgs {
    /// Returns whether log lines have color.
    pub(super) fn color(&self) -> bool {
        !self.no_color && std::io::stderr().is_terminal()
    }

    /// Loads the settings; `flags` are settings with dedicated flags of the command.
    pub(super) fn load(self, flags: Vec<(&'static str, String)>) -> Result<Config, Failure> {
        self.load_over(("", Vec::new()), flags)
    }

    /// Loads the settings over the defaults of a command: its name and its settings.
    pub(super) fn load_over(
        self,
        command: (&'static str, Vec<(&'static str, String)>),
        flags: Vec<(&'static str, String)>,
    ) -> Result<Config, Failure> {
        let layers = Layers {
            command_name: command.0,
            command: command.1,
            file: self.config,
            environment: environment_variables(),
            pairs: self.pairs,
            flags,
        };
        Ok(Config::load(layers)?)
    }
}

/// Flags of commands that run an engine.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct EngineFlags {
    /// The data directory (setting data_dir)
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// A ledger node; may be repeated (setting ledger.nodes)
    #[arg(long = "node", value_name = "URL")]
    nodes: Vec<String>,
    /// mainnet or dev (setting network)
    #[arg(long)]
    network: Option<String>,
    /// IP address and port of the gRPC server (setting grpc.listen)
    #[arg(long, value_name = "ADDRESS")]
    grpc_listen: Option<SocketAddr>,
}

impl EngineFlags {
    pub(super) fn into_settings(self) -> Vec<(&'static str, String)> {
        let mut flags = Vec::new();
        push(&mut flags, "data_dir", self.data.map(|path| path.display().to_string()));
        push(&mut flags, "ledger.nodes", Some(self.nodes.join(",")).filter(|nodes| !nodes.is_empty()));
        push(&mut flags, "network", self.network);
        push(&mut flags, "grpc.listen", self.grpc_listen);
        flags
    }
}

/// Flags of commands that run a facade.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct FacadeFlags {
    /// IP address and port of the REST API and the checkout page (setting listen)
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Public URL of this service (setting base_url)
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
}

impl FacadeFlags {
    pub(super) fn into_settings(self) -> Vec<(&'static str, String)> {
        let mut flags = Vec::new();
        push(&mut flags, "listen", self.listen);
        push(&mut flags, "base_url", self.base_url);
        flags
    }
}

/// Adds a setting if its flag is set.
pub(super) fn push(flags: &mut Vec<(&'static str, String)>, key: &'static str, value: Option<impl ToString>) {
    if let Some(value) = value {
        flags.push((key, value.to_string()));
    }
}
