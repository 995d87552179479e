//! `facade`: REST and the checkout page over an engine elsewhere; and how any command reaches such an engine.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use proto::Transport;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use super::{
    failure::Failure,
    files, logs,
    running::{ended, listen, listen_for_health, listen_for_metrics, pem, serve_metrics, serve_rest},
    serve::required,
    settings::{FacadeFlags, SettingsArgs, push},
    stop::{self, Stop},
};
use crate::{config::Config, metrics::Metrics};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    facade: FacadeFlags,
    /// URL of the engine's gRPC port (setting engine_url)
    #[arg(long, value_name = "URL")]
    engine_url: Option<String>,
    /// The engine's data directory, to read its token (setting data_dir)
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// Runs the facade alone.
pub(super) async fn run(args: Args) -> Result<(), Failure> {
    let mut flags = args.facade.into_settings();
    push(&mut flags, "engine_url", args.engine_url);
    push(&mut flags, "data_dir", args.data.map(|path| path.display().to_string()));
    let color = args.settings.color();
    let config = args.settings.load(flags)?;
    logs::start(&config, color);
    let transport =
        remote(&config)?.ok_or_else(|| Failure::Other("say where the engine is: --engine-url URL".to_owned()))?;
    stop::survive_hangup();
    let rest = listen(required(&config, "listen"), "--listen").await?;
    let health = listen_for_health(&config).await?;
    let exporter = listen_for_metrics(&config).await?;
    let stop = Stop::new();
    let mut metrics = Metrics::default();
    let mut ports = vec![serve_rest(&config, (rest, health), transport, None, &stop, &mut metrics)?];
    ports.extend(serve_metrics(exporter, metrics, &stop)?);
    stop::asked().await;
    stop.tell();
    ended(ports).await;
    Ok(())
}

/// Returns the way to the engine of the settings, if they name one. It connects when it is first used, and again
/// whenever the connection was lost.
pub(super) fn remote(config: &Config) -> Result<Option<Transport>, Failure> {
    let Some(url) = config.optional("engine_url") else { return Ok(None) };
    let token = match config.optional("grpc.token") {
        Some(token) => Some(token.to_owned()),
        None => files::kept_token(Path::new(config.text("data_dir")))?,
    };
    let token = token.ok_or_else(|| {
        Failure::Other(
            "the engine asks for a token: set HIVETILL_GRPC_TOKEN, or grpc.token in the settings file".to_owned(),
        )
    })?;
    let channel = channel(config, url)?;
    let transport = Transport::remote(channel, Some(&token));
    transport.map(Some).map_err(|_| Failure::Other("grpc.token cannot stand in a header".to_owned()))
}

fn channel(config: &Config, url: &str) -> Result<Channel, Failure> {
    let unfit = |error: tonic::transport::Error| Failure::Other(format!("engine_url {url}: {error}"));
    let mut endpoint = Endpoint::from_shared(url.to_owned())
        .map_err(unfit)?
        .tcp_nodelay(true)
        .connect_timeout(Duration::from_secs(3))
        .timeout(Duration::from_secs(30))
        .http2_keep_alive_interval(Duration::from_secs(20))
        .keep_alive_timeout(Duration::from_secs(10))
        .keep_alive_while_idle(true);
    if let Some(ca) = config.optional("grpc.tls_ca") {
        let mut tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem(ca)?));
        if let (Some(own), Some(key)) =
            (config.optional("grpc.tls_client_cert"), config.optional("grpc.tls_client_key"))
        {
            tls = tls.identity(Identity::from_pem(pem(own)?, pem(key)?));
        }
        endpoint = endpoint.tls_config(tls).map_err(unfit)?;
    } else if url.starts_with("https:") {
        return Err(Failure::Other("an engine_url with https needs grpc.tls_ca".to_owned()));
    }
    Ok(endpoint.connect_lazy())
}
