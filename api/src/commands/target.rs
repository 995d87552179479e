//! The engine that an operator command calls: a running one, or one started in process on the data directory.

use std::path::{Path, PathBuf};

use proto::{Engine, Transport};
use storage::{Idle, OpenError};

use super::{
    database,
    facade::remote,
    failure::Failure,
    logs,
    running::RunningEngine,
    settings::{EngineFlags, SettingsArgs, push},
    socket,
};
use crate::config::Config;

/// Flags that select the engine of an operator command.
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
    /// Loads the settings and starts logging.
    pub(super) fn load(self) -> Result<Config, Failure> {
        let mut flags = self.engine.into_settings();
        push(&mut flags, "engine_url", self.engine_url);
        let color = self.settings.color();
        let config = self.settings.load(flags)?;
        logs::start(&config, color);
        Ok(config)
    }
}

/// Calls a running engine, or an engine started on the data directory for this call, which creates a missing store if
/// `may_create` is set.
pub(super) async fn call_engine<T>(
    config: &Config,
    may_create: bool,
    call: impl AsyncFnOnce(Engine) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let data = PathBuf::from(config.text("data_dir"));
    if let Some(transport) = running_engine(config, &data)? {
        return call(Engine::new(transport)).await;
    }
    let running = RunningEngine::start(config, &data, may_create).await.map_err(explain)?;
    let transport = running.service().in_process_for_operator(running.maintenance());
    let result = call(Engine::new(transport)).await;
    running.shutdown(Vec::new()).await;
    result
}

/// Returns the transport to a running engine: the one at `engine_url`, or the one that uses the data directory; `None` if
/// there is none.
pub(super) fn running_engine(config: &Config, data: &Path) -> Result<Option<Transport>, Failure> {
    if let Some(transport) = remote(config)? {
        return Ok(Some(transport));
    }
    // Engines may share a database: the command starts one of its own.
    if database::address(config)?.is_some() {
        return Ok(None);
    }
    match Idle::take_store(data) {
        Err(OpenError::Locked(_)) => match socket::transport(config, data)? {
            Some(transport) => Ok(Some(transport)),
            None => Err(Failure::InUse {
                path: data.to_owned(),
                hint: "it has no socket in that directory: use --engine-url URL",
            }),
        },
        // Other errors are reported when the engine is started.
        _ => Ok(None),
    }
}

/// Explains a lock that another engine acquired since the data directory was checked.
pub(super) fn explain(failure: Failure) -> Failure {
    match failure {
        Failure::Store { path, source: OpenError::Locked(_) } => {
            Failure::InUse { path, hint: "it has just started: run the command again" }
        }
        other => other,
    }
}
