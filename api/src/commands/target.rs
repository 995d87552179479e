//! Which engine a command of the operator is for: a running one, or one that is started on the data directory.

use std::path::{Path, PathBuf};

use proto::{Engine, Transport};
use storage::{Idle, OpenError};

use super::{
    facade::remote,
    failure::Failure,
    local, logs,
    running::Running,
    settings::{EngineFlags, SettingsArgs, push},
};
use crate::config::Config;

/// Which engine a command of the operator is for.
#[derive(Debug, clap::Args)]
pub(super) struct Target {
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    engine: EngineFlags,
    /// Call a running engine instead of opening the data directory (setting engine_url)
    #[arg(long, value_name = "URL")]
    engine_url: Option<String>,
}

impl Target {
    /// Reads the settings and starts the log.
    pub(super) fn load(self) -> Result<Config, Failure> {
        let mut flags = self.engine.into_settings();
        push(&mut flags, "engine_url", self.engine_url);
        let color = self.settings.color();
        let config = self.settings.load(flags)?;
        logs::start(&config, color);
        Ok(config)
    }
}

/// Calls the running engine, or one that is started on the data directory for this call; `makes_store` lets it make
/// a new store.
pub(super) async fn ask<T>(
    config: &Config,
    makes_store: bool,
    call: impl AsyncFnOnce(Engine) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let data = PathBuf::from(config.text("data_dir"));
    if let Some(transport) = reachable(config, &data)? {
        return call(Engine::new(transport)).await;
    }
    let running = Running::start(config, &data, makes_store).await.map_err(explain)?;
    let transport = running.service().in_process_for_operator(running.maintenance());
    let answered = call(Engine::new(transport)).await;
    running.end(Vec::new()).await;
    answered
}

/// Returns the way to a running engine: the one that is named, or the one that has the data directory open.
pub(super) fn reachable(config: &Config, data: &Path) -> Result<Option<Transport>, Failure> {
    if let Some(transport) = remote(config)? {
        return Ok(Some(transport));
    }
    match Idle::take_store(data) {
        Err(OpenError::Locked(_)) => match local::running(config, data)? {
            Some(transport) => Ok(Some(transport)),
            None => Err(Failure::InUse {
                path: data.to_owned(),
                hint: "it has no socket in that directory: use --engine-url URL",
            }),
        },
        // Whatever else is wrong with it is reported by the start.
        _ => Ok(None),
    }
}

/// An engine that started meanwhile has the data directory now.
pub(super) fn explain(failure: Failure) -> Failure {
    match failure {
        Failure::Store { path, source: OpenError::Locked(_) } => {
            Failure::InUse { path, hint: "it has just started: run the command again" }
        }
        other => other,
    }
}
