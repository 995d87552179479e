//! `serve`: the whole gateway in one process; `engine`: only the engine.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use super::{
    database,
    failure::Failure,
    files, logs,
    running::{RunningEngine, listen, listen_for_health, listen_for_metrics, serve_grpc, serve_metrics, serve_rest},
    settings::{EngineFlags, FacadeFlags, SettingsArgs},
    shutdown::Shutdown,
    socket,
};
use crate::{config::Config, metrics::Metrics};

/// The default address of the gRPC port of `engine`.
const GRPC_DEFAULT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8081);

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    engine: EngineFlags,
    #[command(flatten)]
    facade: FacadeFlags,
    /// Create a store if there is none; without this flag a missing store is an error
    #[arg(long)]
    init: bool,
}

/// Runs engine and facade in this process.
pub(super) async fn run(args: Args) -> Result<(), Failure> {
    let mut flags = args.engine.into_settings();
    flags.extend(args.facade.into_settings());
    let color = args.settings.color();
    let config = args.settings.load(flags)?;
    logs::start(&config, color);
    let rest = listen(required(&config, "listen"), "--listen").await?;
    let grpc = match config.address("grpc.listen") {
        Some(address) => Some(listen(address, "--grpc-listen").await?),
        None => None,
    };
    let health = listen_for_health(&config).await?;
    let exporter = listen_for_metrics(&config).await?;
    let data = PathBuf::from(config.text("data_dir"));
    let running = start_engine(&config, &data, args.init).await?;
    let shutdown = Shutdown::new();
    let mut metrics = Metrics::default();
    running.register_metrics(&mut metrics, &data);
    let mut ports =
        vec![serve_rest(&config, (rest, health), running.service().in_process(), None, &shutdown, &mut metrics)?];
    if let Some(grpc) = grpc {
        ports.push(serve_grpc(&config, &data, grpc, &running, &shutdown)?);
    }
    ports.extend(socket::serve(&config, &data, &running, &shutdown)?);
    ports.extend(serve_metrics(exporter, metrics, &shutdown)?);
    let end = running.wait_for_shutdown().await;
    shutdown.request();
    running.shutdown(ports).await;
    end
}

/// Starts the engine. With a database, the data directory has only the socket and the tokens: a missing one is created.
async fn start_engine(config: &Config, data: &Path, may_create: bool) -> Result<RunningEngine, Failure> {
    let running = RunningEngine::start(config, data, may_create).await?;
    if database::address(config)?.is_some()
        && let Err(failure) = files::create_directory(data)
    {
        running.shutdown(Vec::new()).await;
        return Err(failure);
    }
    Ok(running)
}

#[derive(Debug, clap::Args)]
pub(super) struct EngineArgs {
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    engine: EngineFlags,
    /// Create a store if there is none; without this flag a missing store is an error
    #[arg(long)]
    init: bool,
}

/// Runs the engine with its gRPC port.
pub(super) async fn run_engine(args: EngineArgs) -> Result<(), Failure> {
    let color = args.settings.color();
    let config = args.settings.load(args.engine.into_settings())?;
    logs::start(&config, color);
    let grpc = listen(config.address("grpc.listen").unwrap_or(GRPC_DEFAULT), "--grpc-listen").await?;
    let exporter = listen_for_metrics(&config).await?;
    let data = PathBuf::from(config.text("data_dir"));
    let running = start_engine(&config, &data, args.init).await?;
    let shutdown = Shutdown::new();
    let mut metrics = Metrics::default();
    running.register_metrics(&mut metrics, &data);
    let mut ports = vec![serve_grpc(&config, &data, grpc, &running, &shutdown)?];
    ports.extend(socket::serve(&config, &data, &running, &shutdown)?);
    ports.extend(serve_metrics(exporter, metrics, &shutdown)?);
    let end = running.wait_for_shutdown().await;
    shutdown.request();
    running.shutdown(ports).await;
    end
}

/// Returns the address of a setting that cannot be empty.
pub(super) fn required(config: &Config, name: &'static str) -> SocketAddr {
    config.address(name).expect("this setting cannot be empty")
}
