//! `facade`: the REST API and the checkout page in front of a separate engine; the gRPC transport of all commands.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use proto::Transport;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};

use super::{
    failure::Failure,
    files, logs,
    running::{join_ports, listen, listen_for_health, listen_for_metrics, pem, serve_metrics, serve_rest},
    serve::required,
    settings::{FacadeFlags, SettingsArgs, push},
    shutdown::{self, Shutdown},
};
use crate::{config::Config, metrics::Metrics, service::server::check_validity};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    facade: FacadeFlags,
    /// URL of the gRPC port of an engine; may be repeated for several engines over one store (setting engine_url)
    #[arg(long = "engine-url", value_name = "URL")]
    engine_urls: Vec<String>,
    /// The engine's data directory, to read its token (setting data_dir)
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// Runs the facade alone.
pub(super) async fn run(args: Args) -> Result<(), Failure> {
    let mut flags = args.facade.into_settings();
    push(&mut flags, "engine_url", Some(args.engine_urls.join(",")).filter(|urls| !urls.is_empty()));
    push(&mut flags, "data_dir", args.data.map(|path| path.display().to_string()));
    let color = args.settings.color();
    let config = args.settings.load(flags)?;
    logs::start(&config, color);
    let transport =
        remote(&config)?.ok_or_else(|| Failure::Other("set the URLs of the engines: --engine-url URL".to_owned()))?;
    shutdown::ignore_hangup();
    let rest = listen(required(&config, "listen"), "--listen").await?;
    let health = listen_for_health(&config).await?;
    let exporter = listen_for_metrics(&config).await?;
    let shutdown = Shutdown::new();
    let mut metrics = Metrics::default();
    let mut ports = vec![serve_rest(&config, (rest, health), transport, None, &shutdown, &mut metrics)?];
    ports.extend(serve_metrics(exporter, metrics, &shutdown)?);
    shutdown::signal().await;
    shutdown.request();
    join_ports(ports).await;
    Ok(())
}

/// Returns the transport to the engines at the setting `engine_url`; `None` if it is not set. The transport connects on the
/// first call, and reconnects after a connection was lost.
pub(super) fn remote(config: &Config) -> Result<Option<Transport>, Failure> {
    let Some((token, mut channels)) = channels(config)? else { return Ok(None) };
    let transport = match channels.len() {
        1 => Transport::remote(channels.remove(0).1, Some(&token)),
        _ => Transport::cluster(channels, Some(&token)),
    };
    transport.map(Some).map_err(|_| invalid_token())
}

/// Returns a transport to each engine at the setting `engine_url`, with its URL; none if it is not set.
pub(super) fn each(config: &Config) -> Result<Vec<(String, Transport)>, Failure> {
    let Some((token, channels)) = channels(config)? else { return Ok(Vec::new()) };
    let transport = |(url, channel): (String, Channel)| {
        let transport = Transport::remote(channel, Some(&token));
        transport.map(|transport| (url, transport)).map_err(|_| invalid_token())
    };
    channels.into_iter().map(transport).collect()
}

fn invalid_token() -> Failure {
    Failure::Other("grpc.token is not a valid header value".to_owned())
}

/// The token of the engines, and their URLs with channels to them.
type Channels = (String, Vec<(String, Channel)>);

fn channels(config: &Config) -> Result<Option<Channels>, Failure> {
    let urls = config.list("engine_url");
    if urls.is_empty() {
        return Ok(None);
    }
    let token = match config.optional("grpc.token") {
        Some(token) => Some(token.to_owned()),
        None => files::stored_token(Path::new(config.text("data_dir")))?,
    };
    let token = token.ok_or_else(|| {
        Failure::Other(
            "the engine requires an access token: set HIVETILL_GRPC_TOKEN, or grpc.token in the settings file"
                .to_owned(),
        )
    })?;
    let channels = urls.into_iter().map(|url| channel(config, &url).map(|channel| (url, channel)));
    Ok(Some((token, channels.collect::<Result<_, _>>()?)))
}

fn channel(config: &Config, url: &str) -> Result<Channel, Failure> {
    let invalid = |error: tonic::transport::Error| Failure::Other(format!("engine_url {url}: {error}"));
    let mut endpoint = Endpoint::from_shared(url.to_owned())
        .map_err(invalid)?
        .tcp_nodelay(true)
        .connect_timeout(Duration::from_secs(3))
        .timeout(Duration::from_secs(30))
        .http2_keep_alive_interval(Duration::from_secs(20))
        .keep_alive_timeout(Duration::from_secs(10))
        .keep_alive_while_idle(true);
    if let Some(ca) = config.optional("grpc.tls_ca") {
        let mut tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem(ca)?));
        if let (Some(certificate), Some(key)) =
            (config.optional("grpc.tls_client_cert"), config.optional("grpc.tls_client_key"))
        {
            let certificate = pem(certificate)?;
            check_validity(&certificate)
                .map_err(|error| Failure::Setting { setting: "grpc.tls_client_cert", reason: error.to_string() })?;
            tls = tls.identity(Identity::from_pem(certificate, pem(key)?));
        }
        endpoint = endpoint.tls_config(tls).map_err(invalid)?;
    } else if url.starts_with("https:") {
        return Err(Failure::Other("an engine_url with https needs grpc.tls_ca".to_owned()));
    }
    Ok(endpoint.connect_lazy())
}
