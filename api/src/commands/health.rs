//! `health`: checks whether a running gateway is ready, for the health check of a container.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use reqwest::{Client, redirect::Policy};

use super::{failure::Failure, output::print, serve, settings::SettingsArgs};

/// Timeout of the request.
const TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    settings: SettingsArgs,
    /// URL of the gateway; by default the address of the setting health.listen or listen
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Check only that the process responds (/livez), for orchestrators that restart an unhealthy container
    #[arg(long)]
    live: bool,
}

/// Prints the gateway's response.
///
/// # Errors
/// If the gateway is not ready, or does not respond within five seconds.
pub(super) async fn run(args: Args) -> Result<(), Failure> {
    let base = match args.url {
        Some(url) => url,
        None => {
            let config = args.settings.load(Vec::new())?;
            let address = config.address("health.listen").unwrap_or_else(|| serve::required(&config, "listen"));
            format!("http://{}", reachable(address))
        }
    };
    let path = if args.live { "livez" } else { "readyz" };
    let url = format!("{}/{path}", base.trim_end_matches('/'));
    let client = Client::builder().no_proxy().redirect(Policy::none()).timeout(TIMEOUT).build();
    let client = client.map_err(|error| Failure::Other(format!("cannot create a client: {error}")))?;
    let unreachable =
        |error: reqwest::Error| Failure::Other(format!("{url} does not respond: {}", error.without_url()));
    let response = client.get(&url).send().await.map_err(unreachable)?;
    let status = response.status();
    let report = response.text().await.map_err(unreachable)?;
    if !status.is_success() {
        return Err(Failure::Other(format!("unhealthy: {url} responded with {}: {}", status.as_u16(), report.trim())));
    }
    print(&format!("{}\n", report.trim()))
}

/// Returns the address to connect to: that of this host if the server listens on all addresses.
fn reachable(listening: SocketAddr) -> SocketAddr {
    let ip = match listening.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, listening.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_all_addresses_is_reached_on_this_host() {
        for (listening, reached) in [
            ("0.0.0.0:8080", "127.0.0.1:8080"),
            ("[::]:8080", "[::1]:8080"),
            ("127.0.0.1:1", "127.0.0.1:1"),
            ("192.0.2.7:80", "192.0.2.7:80"),
        ] {
            let listening: SocketAddr = listening.parse().expect("an address");
            assert_eq!(reachable(listening).to_string(), reached);
        }
    }
}
