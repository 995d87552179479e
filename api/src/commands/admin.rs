//! `admin`: the first admin key, made in a data directory or by a running engine.

use std::path::{Path, PathBuf};

use proto::{Caller, Engine, Transport, v1};
use serde_json::json;
use storage::{Idle, OpenError};

use super::{
    Failure, export_account,
    facade::remote,
    inspect, local, logs,
    running::Running,
    say,
    settings::{EngineFlags, SettingsArgs, push},
    verify_merchant,
};
use crate::config::Config;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    admin: AdminArgs,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Mark a merchant's Hive account as verified, so that the merchant can handle unmatched transfers to it
    VerifyMerchant(verify_merchant::Args),
    /// Show a payment of any merchant with its timeline; the audit log records it
    Payment(inspect::Args),
    /// Export every record that names a Hive account as a line of JSON; the audit log records it
    ExportAccount(export_account::Args),
}

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

#[derive(Debug, clap::Args)]
struct AdminArgs {
    #[command(flatten)]
    target: Target,
    /// Name of the admin's merchant
    #[arg(long, default_value = "Operator")]
    name: String,
    /// Its Hive account, which must exist
    #[arg(long, required = true)]
    account: Option<String>,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// Makes an admin and prints its key, which is shown this once.
pub(super) async fn run(args: Args) -> Result<(), Failure> {
    match args.command {
        Some(Command::VerifyMerchant(args)) => verify_merchant::run(args).await,
        Some(Command::Payment(args)) => inspect::run(args).await,
        Some(Command::ExportAccount(args)) => export_account::run(args).await,
        None => make(args.admin).await,
    }
}

async fn make(args: AdminArgs) -> Result<(), Failure> {
    let config = args.target.load()?;
    let request =
        v1::RegisterAdminRequest { name: args.name, hive_account: args.account.unwrap_or_default(), icon_url: None };
    let register = async |engine: Engine| {
        Ok(engine.merchants().register_admin(Caller::default().request(request)).await?.into_inner())
    };
    let made = ask(&config, true, register).await?;
    let id = made.merchant.map(|merchant| merchant.id).unwrap_or_default();
    let (key, secret) = (made.api_key, made.webhook_secret);
    if args.json {
        let line = json!({"id": id, "apiKey": key, "webhookSecret": secret, "privileges": ["admin"]});
        return say(&format!("{line}\n"));
    }
    say(&format!(
        "Admin merchant {id}\n  API key         {key}\n  webhook secret  {secret}\nStore both: they are shown only once.\n"
    ))
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
