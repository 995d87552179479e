//! `dev`: the whole gateway over a Hive ledger of its own, ready to take a payment.

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
use storage::{EmbeddedStore, prelude::*};

use super::{
    failure::{Failure, of_ledger},
    files::{self, TemporaryDirectory},
    local, logs, master_key,
    output::say,
    running::{
        Running, address_of, listen, listen_for_health, listen_for_metrics, serve_grpc, serve_metrics, serve_rest,
    },
    serve::required,
    settings::{SettingsArgs, push},
    stop::Stop,
    tokens,
};
use crate::metrics::Metrics;

/// The demo's shop and its operator, both accounts of the demo ledger.
const SHOP: (&str, &str) = ("Blue Mug Shop", "shop.demo");
const OPERATOR: (&str, &str) = ("Operator", "hivetill.fees");
/// How long the engine may take to follow its own ledger.
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

/// What must survive a restart besides ledger and store: the only copies of the demo's keys.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Credentials {
    merchant_id: String,
    api_key: String,
    webhook_secret: String,
    admin_api_key: String,
}

/// Runs ledger, engine and facade, prints where they are, and serves until it is asked to end.
pub(super) async fn run(args: Args) -> Result<(), Failure> {
    let temporary = if args.data.is_none() { Some(TemporaryDirectory::make()?) } else { None };
    let data = args.data.clone().or_else(|| temporary.as_ref().map(|folder| folder.0.clone())).unwrap_or_default();
    files::make_directory(&data)?;
    let key_file = data.join(master_key::FILE_NAME);
    let own = own_settings(&args, &key_file);
    let mut flags = Vec::new();
    push(&mut flags, "listen", Some(args.listen));
    push(&mut flags, "grpc.listen", Some(args.grpc_listen));
    push(&mut flags, "data_dir", Some(data.display()));
    let color = args.settings.color();
    let config = args.settings.clone().load_over(("dev", own.clone()), flags.clone())?;
    logs::start(&config, color);

    let rest = listen(required(&config, "listen"), "--listen").await?;
    let grpc = listen(required(&config, "grpc.listen"), "--grpc-listen").await?;
    let health = listen_for_health(&config).await?;
    let exporter = listen_for_metrics(&config).await?;
    let ledger = start_ledger(&args, &data).await?;
    push(&mut flags, "ledger.nodes", Some(ledger.rpc_url(0)));
    let config = args.settings.clone().load_over(("dev", own), flags)?;

    if config.text("master_key_file") == key_file.display().to_string() {
        files::kept_secret(&key_file)?;
    }
    let running = Running::start(&config, &data, true).await?;
    wait_until_ready(&running.engine(), &running.store).await?;
    let credentials = credentials(&running.engine(), &data).await?;
    let stop = Stop::new();
    let places = Places {
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
    running.show(&mut metrics, &data);
    let control = Some(places.control.clone());
    let mut ports = vec![
        serve_rest(&config, (rest, health), running.service().in_process(), control, &stop, &mut metrics)?,
        serve_grpc(&config, &data, grpc, &running, &stop)?,
    ];
    ports.extend(local::serve(&config, &data, &running, &stop)?);
    ports.extend(serve_metrics(exporter, metrics, &stop)?);
    let accounts = accounts(ledger.genesis());
    if args.json {
        say(&json_line(&places, &credentials, &accounts))?;
    } else {
        say(&screen(&places, &credentials, &accounts, args.data.as_deref()))?;
    }

    let end = running.until_end().await;
    stop.tell();
    running.end(ports).await;
    ledger.shutdown().await;
    end
}

/// Returns the settings that `dev` starts with, below those of the caller.
fn own_settings(args: &Args, key_file: &Path) -> Vec<(&'static str, String)> {
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
    // The first block is made at once and is of the present: the chain began a block before.
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
    begin(&ledger, lag).await.map_err(|error| Failure::Other(format!("the ledger cannot start: {error:?}")))?;
    Ok(ledger)
}

/// Makes a new chain's first block, and makes it final, so that nobody waits for the ledger to begin.
async fn begin(ledger: &Devnet, lag: u32) -> Result<(), devnet::Failure> {
    let status = ledger.control("control.status", json!({})).await?;
    if status["irreversible"] == 0 {
        ledger.control("control.set_irreversibility_lag", json!({"blocks": 0})).await?;
        ledger.control("control.produce", json!({})).await?;
        ledger.control("control.set_irreversibility_lag", json!({"blocks": lag})).await?;
    }
    Ok(())
}

/// Waits until payments in both currencies can be created.
async fn wait_until_ready(engine: &Engine, store: &EmbeddedStore) -> Result<(), Failure> {
    let ready = async {
        loop {
            let follows = engine.operations.health().await.is_ok_and(|health| health.is_following);
            if follows && matches!(store.rate().await, Ok(Some(_))) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(START_TIMEOUT, ready).await;
    waited.map_err(|_| Failure::Other("the engine does not follow its ledger; see the log".to_owned()))
}

/// Returns the demo's keys: those of the last run in this directory, or new ones.
async fn credentials(engine: &Engine, data: &Path) -> Result<Credentials, Failure> {
    let path = data.join("dev.json");
    if let Some(text) = files::read(&path)? {
        let broken = |error: serde_json::Error| Failure::File { path: path.clone(), why: error.to_string() };
        let kept: Credentials = serde_json::from_str(&text).map_err(broken)?;
        let shop = engine.merchants.authenticate(&kept.api_key).await;
        if let Ok(shop) = shop
            && engine.merchants.authenticate(&kept.admin_api_key).await.is_ok()
        {
            // The secret may have been rotated since.
            let webhook_secret = shop.secrets.current.reveal().to_owned();
            return Ok(Credentials { webhook_secret, ..kept });
        }
        // The key was re-issued meanwhile, or the store is another's: make a new demo.
    }
    let register = async |(name, account): (&str, &str), is_admin| {
        let registration = Registration::check(name, account, None)
            .map_err(|_| Failure::Other("the demo's names are not accepted".to_owned()))?;
        let failed = |error| Failure::Other(format!("the demo merchant cannot be registered: {error}"));
        let made = engine.merchants.enroll(registration, is_admin, true).await.map_err(failed)?;
        engine.merchants.vouch_for(made.merchant.id, None).await.map_err(failed)?;
        Ok::<_, Failure>(made)
    };
    let shop = register(SHOP, false).await?;
    let operator = register(OPERATOR, true).await?;
    let made = Credentials {
        merchant_id: shop.merchant.id.to_string(),
        api_key: shop.api_key,
        webhook_secret: shop.secret.reveal().to_owned(),
        admin_api_key: operator.api_key,
    };
    let text = serde_json::to_string_pretty(&made).map_err(|error| Failure::Other(error.to_string()))?;
    files::write_private(&path, &text)?;
    Ok(made)
}

/// Where everything is.
struct Places {
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

fn json_line(places: &Places, credentials: &Credentials, accounts: &[FundedAccount]) -> String {
    let accounts: Vec<_> =
        accounts.iter().map(|account| json!({"name": account.name, "activeKey": account.active_key})).collect();
    let line = json!({
        "api": places.api,
        "ledger": places.ledger,
        "control": places.control,
        "grpc": places.grpc,
        "grpcToken": places.grpc_token,
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

/// The one screen a newcomer sees.
fn screen(places: &Places, credentials: &Credentials, accounts: &[FundedAccount], data: Option<&Path>) -> String {
    let Places { api, ledger, control, grpc, grpc_token } = places;
    let Credentials { api_key, webhook_secret, admin_api_key, merchant_id } = credentials;
    let (shop, account) = SHOP;
    let kept =
        data.map_or("a temporary directory; use --data DIR to keep it".to_owned(), |data| data.display().to_string());
    let funded: String = accounts
        .iter()
        .map(|account| format!("    {:<14} {:>6}  {}\n", account.name, account.units / 1_000, account.active_key))
        .collect();
    let program = std::env::args().next().unwrap_or_else(|| "hivetill".to_owned());
    let payer_key = accounts.first().map(|payer| payer.active_key.as_str()).unwrap_or_default();
    format!(
        "
  Hivetill takes payments at  {api}
  over a Hive ledger of its own. No real money moves. Ctrl-C ends it.

  Merchant          {shop} (@{account})  {merchant_id}
    API key         {api_key}
    webhook secret  {webhook_secret}
  Admin's API key   {admin_api_key}
  Ledger JSON-RPC   {ledger}    control  {control}
  Engine gRPC       {grpc}    token  {grpc_token}
  Data              {kept}

  Accounts, with so many HIVE and HBD each, and their active keys
{funded}
  1. Create a payment of 1.500 HBD; the second line shows its id and its checkout page

ANSWER=$(curl -s {api}/api/public/payments -H 'x-api-key: {api_key}' -H 'content-type: application/json' -d '{{\"amount\":\"1500\",\"currency\":\"HBD\",\"description\":\"A blue mug\"}}')
ID=$(echo $ANSWER | grep -o 'pay_[0-9a-z]*' | head -1); echo $ID {api}/checkout/$ID

  2. Pay it as alice (or open {api}/dashboard in a browser, log in with the API key, and pay it there with play money; the checkout page takes real wallets only)

{program} transfer --node {ledger} --from alice --to {account} --amount '1.500 HBD' --memo pos-$ID --key {payer_key}

  3. Read its status: pending, and completed as soon as the block cannot change any more

curl -s {api}/api/public/payments/$ID/status -H 'x-api-key: {api_key}'

"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_for_scripts_has_exactly_what_scripts_read() {
        let places = Places {
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
        let line = json_line(&places, &credentials, &accounts);
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
