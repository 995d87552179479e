//! `hivetill gate`: a reverse proxy that requires x402 payments in front of any HTTP API, and sells its tools over MCP.
//!
//! The facilitator is an engine in this process, or a running one. The gate's record (`gate.redb`) survives crashes: a payer
//! whose request was not served has a credit for it.

mod body;
mod claim;
mod delivery;
mod facilitator;
mod ledger;
mod mcp;
mod offer;
mod proxy;
mod routes;
mod state;
mod tools;
mod upstream;

use std::{
    convert::Infallible,
    io::Write as _,
    net::{IpAddr, SocketAddr},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    sync::Arc,
};

use engine::{
    merchant::Registration,
    x402::{ReceiptKey, Signer},
};
use http::Request;
use hyper::body::Incoming;
use proto::Engine;
use reqwest::Url;
use serde_json::{Value, json};
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpListener, UnixListener},
};
use tracing::info;

use super::{
    failure::Failure,
    files, http_server, logs, output,
    running::{RunningEngine, address_of, listen},
    settings::{EngineFlags, SettingsArgs, push},
    shutdown::{self, Shutdown},
    target,
};
use crate::config::{Config, environment_variables};
use facilitator::Facilitator;
use ledger::{Ledger, Payment};
use mcp::Endpoint;
use proxy::Gate;
use routes::Routes;
use upstream::Upstream;

/// The socket on which a running gate lists its credits, in its directory.
const SOCKET: &str = "gate.sock";
/// The file with the API key of the gate's own merchant.
const KEY_FILE: &str = "gate-api-key";
/// The file with the secret key that signs offers and receipts.
const RECEIPT_KEY_FILE: &str = "receipt-key";

/// Arguments of `hivetill gate`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A TOML file with the upstream, the routes and their prices (docs/reference/gate.md)
    #[arg(long, value_name = "FILE")]
    routes: PathBuf,
    /// IP address and port to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8402")]
    listen: SocketAddr,
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    engine: EngineFlags,
    /// Settle through a running engine instead of one in this process (setting engine_url); the merchant's API key is in
    /// HIVETILL_API_KEY
    #[arg(long, value_name = "URL")]
    engine_url: Option<String>,
    /// Print one line of JSON with the URL
    #[arg(long)]
    json: bool,
    /// List payments that are settled and not served, and exit; the gate may run
    #[arg(long)]
    owed: bool,
}

/// Serves until the process receives a termination signal.
pub(super) async fn run(args: Args) -> Result<(), Failure> {
    let mut flags = args.engine.into_settings();
    push(&mut flags, "engine_url", args.engine_url);
    let color = args.settings.color();
    let config = args.settings.load(flags)?;
    let directory = PathBuf::from(config.text("data_dir")).join("gate");
    if args.owed {
        return owed(&directory);
    }
    logs::start(&config, color);
    let routes =
        Routes::read(&args.routes).map_err(|why| Failure::Policy(format!("{}: {why}", args.routes.display())))?;
    files::create_directory(&directory)?;
    let ledger = Ledger::open(&directory).map_err(|error| Failure::Other(error.to_string()))?;
    let upstream = Upstream::new(routes.upstream.clone(), routes.upstream_timeout);
    let upstream = upstream.map_err(|error| Failure::Other(format!("cannot set up TLS: {error}")))?;
    let listener = listen(args.listen, "--listen").await?;
    let address = address_of(&listener)?;
    let base = routes.base_url.clone().map_or_else(|| Url::parse(&format!("http://{address}")), Ok);
    let base = base.map_err(|error| Failure::Other(error.to_string()))?;
    let signer = if routes.signs_receipts { Some(signer(&directory)?) } else { None };
    let engine = start_engine(&config, &directory, &routes).await?;
    let gate = Arc::new(Gate::new(routes, base.clone(), upstream, engine.facilitator.clone(), ledger, signer));
    let stop = Shutdown::new();
    let ports = vec![
        tokio::spawn(serve(listener, Arc::clone(&gate), stop.requested())),
        tokio::spawn(serve_owed(directory.join(SOCKET), Arc::clone(&gate), stop.requested())),
    ];
    info!("the gate is at {base} (listening on {address})");
    if args.json {
        let url = base.as_str().trim_end_matches('/');
        let mut line = json!({ "gate": url });
        if !gate.routes.tools.is_empty() {
            line["mcp"] = format!("{url}{}", mcp::PATH).into();
        }
        output::print(&format!("{line}\n"))?;
    }
    let end = match &engine.running {
        Some(running) => running.wait_for_shutdown().await,
        None => {
            shutdown::signal().await;
            Ok(())
        }
    };
    stop.request();
    match engine.running {
        Some(running) => running.shutdown(ports).await,
        None => super::running::join_ports(ports).await,
    }
    end
}

/// Returns the signer of offers and receipts, with the key in the gate's directory; generates a key if there is none.
fn signer(directory: &Path) -> Result<Signer, Failure> {
    let path = directory.join(RECEIPT_KEY_FILE);
    let secret = files::secret(&path)?;
    let invalid = || Failure::Other(format!("{}: a receipt key must be 64 hex characters", path.display()));
    ReceiptKey::from_hex(&secret).map(|key| Signer::new(&key)).ok_or_else(invalid)
}

/// The facilitator, and its engine where that is in this process.
struct Facilitating {
    facilitator: Facilitator,
    running: Option<RunningEngine>,
}

/// Connects to the running engine, or starts one in this process with a merchant for the account of the routes.
async fn start_engine(config: &Config, directory: &Path, routes: &Routes) -> Result<Facilitating, Failure> {
    let data = PathBuf::from(config.text("data_dir"));
    let key = environment_variables().into_iter().find(|(name, _)| name == "HIVETILL_API_KEY").map(|(_, key)| key);
    if let Some(transport) = target::running_engine(config, &data)? {
        let needed =
            || Failure::Other("a running engine requires the merchant's API key in HIVETILL_API_KEY".to_owned());
        let key = key.ok_or_else(needed)?;
        return Ok(Facilitating { facilitator: Facilitator::new(Engine::new(transport), &key), running: None });
    }
    let running = RunningEngine::start(config, &data, true).await.map_err(target::explain)?;
    let key = match key {
        Some(key) => key,
        None => own_key(&running, directory, routes).await?,
    };
    let facilitator = Facilitator::new(Engine::new(running.service().in_process()), &key);
    Ok(Facilitating { facilitator, running: Some(running) })
}

/// Returns the API key of the gate's own merchant: the stored one, or that of a newly registered merchant.
async fn own_key(running: &RunningEngine, directory: &Path, routes: &Routes) -> Result<String, Failure> {
    let path = directory.join(KEY_FILE);
    let merchants = running.engine().merchants;
    if let Some(kept) = files::read(&path)?.map(|key| key.trim().to_owned())
        && merchants.authenticate(&kept).await.is_ok()
    {
        return Ok(kept);
    }
    let account = routes.first_payee().ok_or_else(|| Failure::Other("no route and no tool has a price".to_owned()))?;
    let registration = Registration::check("Gate", account.as_str(), None);
    let registration = registration.map_err(|_| Failure::Other(format!("{account} cannot receive payments")))?;
    let failed = |error| Failure::Other(format!("the gate's merchant cannot be registered: {error}"));
    let made = merchants.enroll(registration, false, true).await.map_err(failed)?;
    merchants.vouch_for(made.merchant.id, None).await.map_err(failed)?;
    files::write_private(&path, &format!("{}\n", made.api_key))?;
    Ok(made.api_key)
}

async fn serve(listener: TcpListener, gate: Arc<Gate>, stop: impl Future<Output = ()>) {
    let tools = Endpoint::of(&gate);
    let service = |client: IpAddr| {
        let (gate, tools) = (Arc::clone(&gate), tools.clone());
        hyper::service::service_fn(move |request: Request<Incoming>| {
            let (gate, tools) = (Arc::clone(&gate), tools.clone());
            async move {
                let response = match tools {
                    Some(tools) if request.uri().path() == mcp::PATH => Box::pin(tools.serve(request, client)).await,
                    _ => Box::pin(gate.serve(request, client)).await,
                };
                Ok::<_, Infallible>(response)
            }
        })
    };
    http_server::serve(listener, service, stop, || ()).await;
}

fn list(payments: &[Payment]) -> Value {
    json!({ "owed": payments.iter().map(Payment::describe).collect::<Vec<_>>() })
}

/// Writes the credits of the gate to each process of its user that connects.
async fn serve_owed(path: PathBuf, gate: Arc<Gate>, stop: impl Future<Output = ()>) {
    use std::os::unix::fs::PermissionsExt as _;
    // A socket of an earlier run: no other gate uses the directory.
    let _ = std::fs::remove_file(&path);
    let listener = match UnixListener::bind(&path) {
        Ok(listener) => listener,
        Err(error) => {
            return tracing::warn!(
                "cannot open the socket {}: {error}; stop the gate before using --owed",
                path.display()
            );
        }
    };
    let _ = std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600));
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            biased;
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
        };
        if let (Ok((mut stream, _)), Ok(owed)) = (accepted, gate.ledger.credits()) {
            let _ = stream.write_all(list(&owed).to_string().as_bytes()).await;
        }
    }
    let _ = std::fs::remove_file(&path);
}

/// Prints the credits of a gate, from the running gate or from its record.
fn owed(directory: &Path) -> Result<(), Failure> {
    use std::io::Read as _;
    if let Ok(mut stream) = UnixStream::connect(directory.join(SOCKET)) {
        let mut text = String::new();
        let read = stream.flush().and_then(|()| stream.read_to_string(&mut text));
        read.map_err(|error| Failure::Other(format!("the gate does not respond: {error}")))?;
        return output::print(&format!("{text}\n"));
    }
    let ledger = Ledger::open(directory).map_err(|error| Failure::Other(error.to_string()))?;
    let owed = ledger.credits().map_err(|error| Failure::Other(error.to_string()))?;
    output::print(&format!("{}\n", list(&owed)))
}
