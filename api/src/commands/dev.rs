//! `dev`: the whole gateway with a development ledger, a demo merchant and funded accounts.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use actors::{Engine, environment::Clock as _, system::SystemClock};
use engine::{hive::Role, merchant::Registration};
use serde::{Deserialize, Serialize};
use serde_json::json;
use simulations::{
    devnet::{self, Devnet},
    ledger::Genesis,
};
use storage::Store;

use super::{
    failure::{Failure, of_ledger},
    files::{self, TemporaryDirectory},
    logs, master_key,
    output::print,
    running::{
        RunningEngine, address_of, listen, listen_for_health, listen_for_metrics, serve_grpc, serve_metrics, serve_rest,
    },
    serve::required,
    settings::{SettingsArgs, push},
    shutdown::Shutdown,
    socket, tokens,
};
use crate::metrics::Metrics;

/// Name and Hive account of the demo merchant.
const SHOP: (&str, &str) = ("Blue Mug Shop", "shop.demo");
/// Name and Hive account of the demo admin.
const OPERATOR: (&str, &str) = ("Operator", "hivetill.fees");
/// Timeout for the engine to synchronize with the ledger at the start.
const START_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    settings: SettingsArgs,
    /// IP address and port of the REST API and the checkout page; port 0 takes a free port
    #[arg(long, value_name = "ADDRESS", default_value_t = local(8080))]
    listen: SocketAddr,
    /// IP address and port of the ledger's JSON-RPC
    #[arg(long, value_name = "ADDRESS", default_value_t = local(8091))]
    ledger_listen: SocketAddr,
    /// IP address and port of the engine's gRPC server
    #[arg(long, value_name = "ADDRESS", default_value_t = local(8081))]
    grpc_listen: SocketAddr,
    /// IP address and port of the ledger's control methods; by default the port after the ledger's
    #[arg(long, value_name = "ADDRESS")]
    control_listen: Option<SocketAddr>,
    /// Directory for all data; by default a temporary directory that is deleted at exit
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Time between blocks, such as 3s or 250ms
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = super::duration::parse)]
    block_interval: Duration,
    /// Rate and compliance limits: off or production
    #[arg(long, default_value = "off", value_parser = ["off", "production"])]
    limits: String,
    /// Print one line of JSON with all URLs and keys
    #[arg(long)]
    json: bool,
}

const fn local(port: u16) -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

/// The demo's keys. They are stored in a file, because the store contains only digests of API keys.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Credentials {
    merchant_id: String,
    api_key: String,
    webhook_secret: String,
    admin_api_key: String,
}

/// Runs ledger, engine and facade, prints their URLs and keys, and serves until a signal or a failure.
pub(super) async fn run(args: Args) -> Result<(), Failure> {
    let temporary = if args.data.is_none() { Some(TemporaryDirectory::create()?) } else { None };
    let data = args.data.clone().or_else(|| temporary.as_ref().map(|folder| folder.0.clone())).unwrap_or_default();
    files::create_directory(&data)?;
    let key_file = data.join(master_key::FILE_NAME);
    let defaults = default_settings(&args, &key_file);
    let mut flags = Vec::new();
    push(&mut flags, "listen", Some(args.listen));
    push(&mut flags, "grpc.listen", Some(args.grpc_listen));
    push(&mut flags, "data_dir", Some(data.display()));
    let color = args.settings.color();
    let config = args.settings.clone().load_over(("dev", defaults.clone()), flags.clone())?;
    logs::start(&config, color);

    let rest = listen(required(&config, "listen"), "--listen").await?;
    let grpc = listen(required(&config, "grpc.listen"), "--grpc-listen").await?;
    let health = listen_for_health(&config).await?;
    let exporter = listen_for_metrics(&config).await?;
    let ledger = start_ledger(&args, &data).await?;
    push(&mut flags, "ledger.nodes", Some(ledger.rpc_url(0)));
    let config = args.settings.clone().load_over(("dev", defaults), flags)?;

    if config.text("master_key_file") == key_file.display().to_string() {
        files::secret(&key_file)?;
    }
    let running = RunningEngine::start(&config, &data, true).await?;
    wait_until_ready(&running.engine(), &*running.store.actor_store()).await?;
    let credentials = credentials(&running.engine(), &data).await?;
    let shutdown = Shutdown::new();
    let endpoints = Endpoints {
        api: config.optional("base_url").map_or(format!("http://{}", address_of(&rest)?), str::to_owned),
        ledger: ledger.rpc_url(0),
        control: ledger.control_addr.map(|address| format!("http://{address}")).unwrap_or_default(),
        grpc: format!(
            "{}://{}",
            if config.text("grpc.tls_cert").is_empty() { "http" } else { "https" },
            address_of(&grpc)?
        ),
        grpc_token: tokens::token(&config, &data)?,
    };
    let mut metrics = Metrics::default();
    running.register_metrics(&mut metrics, &data);
    let control = Some(endpoints.control.clone());
    let mut ports = vec![
        serve_rest(&config, (rest, health), running.service().in_process(), control, &shutdown, &mut metrics)?,
        serve_grpc(&config, &data, grpc, &running, &shutdown)?,
    ];
    ports.extend(socket::serve(&config, &data, &running, &shutdown)?);
    ports.extend(serve_metrics(exporter, metrics, &shutdown)?);
    let accounts = accounts(ledger.genesis());
    if args.json {
        print(&json_line(&endpoints, &credentials, &accounts))?;
    } else {
        print(&screen(&endpoints, &credentials, &accounts, args.data.as_deref()))?;
    }

    let result = running.wait_for_shutdown().await;
    shutdown.request();
    running.shutdown(ports).await;
    ledger.shutdown().await;
    result
}

/// Returns the defaults of `dev`; settings of the caller override them.
fn default_settings(args: &Args, key_file: &Path) -> Vec<(&'static str, String)> {
    let poll_ms = (args.block_interval.as_millis() / 3).clamp(20, 1_000);
    vec![
        ("network", "dev".to_owned()),
        ("fees.percent", "1.5".to_owned()),
        ("webhooks.allow_insecure", "true".to_owned()),
        ("ledger.block_interval_ms", args.block_interval.as_millis().clamp(20, 60_000).to_string()),
        ("ledger.poll_interval_ms", poll_ms.to_string()),
        ("log.level", "warn".to_owned()),
        ("limits.profile", args.limits.clone()),
        ("master_key_file", key_file.display().to_string()),
    ]
}

async fn start_ledger(args: &Args, data: &Path) -> Result<Devnet, Failure> {
    let clock: devnet::Clock = Arc::new(|| SystemClock.now());
    // The first block is produced at once with the current time, so the genesis is one block interval earlier.
    let genesis = Genesis::demo(files::random(), clock().minus(args.block_interval.max(Duration::from_secs(1))));
    let next = if args.ledger_listen.port() == 0 { 0 } else { args.ledger_listen.port().wrapping_add(1) };
    let control = args.control_listen.unwrap_or(SocketAddr::new(args.ledger_listen.ip(), next));
    let options = devnet::Options {
        nodes: vec![args.ledger_listen],
        control: Some(control),
        block_interval: args.block_interval,
        state: Some(data.join("ledger.journal")),
        ..devnet::Options::new(genesis, clock)
    };
    let lag = options.irreversibility_lag;
    let ledger = Devnet::start(options).await.map_err(of_ledger)?;
    produce_first_block(&ledger, lag)
        .await
        .map_err(|error| Failure::Other(format!("the ledger cannot start: {error:?}")))?;
    Ok(ledger)
}

/// Produces the first block of a new chain as irreversible, so that payments can be created at once.
async fn produce_first_block(ledger: &Devnet, lag: u32) -> Result<(), devnet::Failure> {
    let status = ledger.control("control.status", json!({})).await?;
    if status["irreversible"] == 0 {
        ledger.control("control.set_irreversibility_lag", json!({"blocks": 0})).await?;
        ledger.control("control.produce", json!({})).await?;
        ledger.control("control.set_irreversibility_lag", json!({"blocks": lag})).await?;
    }
    Ok(())
}

/// Waits until payments in both currencies can be created.
async fn wait_until_ready(engine: &Engine, store: &dyn Store) -> Result<(), Failure> {
    let ready = async {
        loop {
            let is_following = engine.operations.health().await.is_ok_and(|health| health.is_following);
            if is_following && matches!(store.rate().await, Ok(Some(_))) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let ready = tokio::time::timeout(START_TIMEOUT, ready).await;
    ready.map_err(|_| Failure::Other("the engine does not follow the ledger; see the log".to_owned()))
}

/// Returns the demo's keys: those of an earlier run in this data directory, or new ones.
async fn credentials(engine: &Engine, data: &Path) -> Result<Credentials, Failure> {
    let path = data.join("dev.json");
    if let Some(text) = files::read(&path)? {
        let invalid = |error: serde_json::Error| Failure::File { path: path.clone(), reason: error.to_string() };
        let stored: Credentials = serde_json::from_str(&text).map_err(invalid)?;
        let shop = engine.merchants.authenticate(&stored.api_key).await;
        if let Ok(shop) = shop
            && engine.merchants.authenticate(&stored.admin_api_key).await.is_ok()
        {
            // The secret may have been rotated since the file was written.
            let webhook_secret = shop.secrets.current.reveal().to_owned();
            return Ok(Credentials { webhook_secret, ..stored });
        }
        // A key was reissued, or the store was replaced: register a new demo.
    }
    let register = async |(name, account): (&str, &str), is_admin| {
        let registration = Registration::check(name, account, None)
            .map_err(|_| Failure::Other("the names of the demo are invalid".to_owned()))?;
        let failed = |error| Failure::Other(format!("the demo merchant cannot be registered: {error}"));
        let registered = engine.merchants.enroll(registration, is_admin, true).await.map_err(failed)?;
        engine.merchants.vouch_for(registered.merchant.id, None).await.map_err(failed)?;
        Ok::<_, Failure>(registered)
    };
    let shop = register(SHOP, false).await?;
    let operator = register(OPERATOR, true).await?;
    let credentials = Credentials {
        merchant_id: shop.merchant.id.to_string(),
        api_key: shop.api_key,
        webhook_secret: shop.secret.reveal().to_owned(),
        admin_api_key: operator.api_key,
    };
    let text = serde_json::to_string_pretty(&credentials).map_err(|error| Failure::Other(error.to_string()))?;
    files::write_private(&path, &text)?;
    Ok(credentials)
}

/// The URLs of the gateway's ports, and the access token of the gRPC port.
struct Endpoints {
    api: String,
    ledger: String,
    control: String,
    grpc: String,
    grpc_token: String,
}

struct FundedAccount {
    name: &'static str,
    units: u64,
    active_key: String,
}

fn accounts(genesis: &Genesis) -> Vec<FundedAccount> {
    let account = |(name, units)| FundedAccount {
        name,
        units,
        active_key: genesis.key(name, Role::Active).to_wif().as_str().to_owned(),
    };
    Genesis::DEMO.into_iter().map(account).collect()
}

fn json_line(endpoints: &Endpoints, credentials: &Credentials, accounts: &[FundedAccount]) -> String {
    let accounts: Vec<_> =
        accounts.iter().map(|account| json!({"name": account.name, "activeKey": account.active_key})).collect();
    let line = json!({
        "api": endpoints.api,
        "ledger": endpoints.ledger,
        "control": endpoints.control,
        "grpc": endpoints.grpc,
        "grpcToken": endpoints.grpc_token,
        "merchant": {
            "id": credentials.merchant_id,
            "apiKey": credentials.api_key,
            "webhookSecret": credentials.webhook_secret,
            "account": SHOP.1,
        },
        "admin": {"apiKey": credentials.admin_api_key},
        "accounts": accounts,
    });
    format!("{line}\n")
}

/// Returns the text that `dev` prints: URLs, keys, accounts, and the commands of a first payment.
fn screen(endpoints: &Endpoints, credentials: &Credentials, accounts: &[FundedAccount], data: Option<&Path>) -> String {
    let Endpoints { api, ledger, control, grpc, grpc_token } = endpoints;
    let Credentials { api_key, webhook_secret, admin_api_key, merchant_id } = credentials;
    let (shop, account) = SHOP;
    let data =
        data.map_or("a temporary directory; use --data DIR to keep it".to_owned(), |data| data.display().to_string());
    let funded: String = accounts
        .iter()
        .map(|account| format!("    {:<14} {:>6}  {}\n", account.name, account.units / 1_000, account.active_key))
        .collect();
    let program = std::env::args().next().unwrap_or_else(|| "hivetill".to_owned());
    let payer_key = accounts.first().map(|payer| payer.active_key.as_str()).unwrap_or_default();
    format!(
        "
  Hivetill is running at  {api}
  with a development ledger: no real money. Press Ctrl-C to stop.

  Merchant          {shop} (@{account})  {merchant_id}
    API key         {api_key}
    webhook secret  {webhook_secret}
  Admin's API key   {admin_api_key}
  Ledger JSON-RPC   {ledger}    control  {control}
  Engine gRPC       {grpc}    token  {grpc_token}
  Data              {data}

  Accounts: name, balance in HIVE and in HBD, active key
{funded}
  1. Create a payment of 1.500 HBD; the second line prints its id and its checkout URL

RESPONSE=$(curl -s {api}/api/public/payments -H 'x-api-key: {api_key}' -H 'content-type: application/json' -d '{{\"amount\":\"1500\",\"currency\":\"HBD\",\"description\":\"A blue mug\"}}')
ID=$(echo $RESPONSE | grep -o 'pay_[0-9a-z]*' | head -1); echo $ID {api}/checkout/$ID

  2. Pay it as alice (or open {api}/dashboard in a browser, log in with the API key, and pay it there with test money; the checkout page supports only real wallets)

{program} transfer --node {ledger} --from alice --to {account} --amount '1.500 HBD' --memo pos-$ID --key {payer_key}

  3. Read its status: pending, then completed once the block is irreversible

curl -s {api}/api/public/payments/$ID/status -H 'x-api-key: {api_key}'

"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_json_line_has_all_urls_and_keys() {
        let endpoints = Endpoints {
            api: "a".into(),
            ledger: "l".into(),
            control: "c".into(),
            grpc: "g".into(),
            grpc_token: "t".into(),
        };
        let credentials = Credentials {
            merchant_id: "mer_1".into(),
            api_key: "k".into(),
            webhook_secret: "w".into(),
            admin_api_key: "x".into(),
        };
        let accounts = [FundedAccount { name: "alice", units: 1, active_key: "5".into() }];
        let line = json_line(&endpoints, &credentials, &accounts);
        assert_eq!(line.matches('\n').count(), 1);
        let read: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(
            read,
            json!({
                "api": "a", "ledger": "l", "control": "c", "grpc": "g", "grpcToken": "t",
                "merchant": {"id": "mer_1", "apiKey": "k", "webhookSecret": "w", "account": "shop.demo"},
                "admin": {"apiKey": "x"},
                "accounts": [{"name": "alice", "activeKey": "5"}],
            })
        );
    }
}
