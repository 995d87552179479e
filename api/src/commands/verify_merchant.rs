//! `admin verify-merchant`: the operator vouches for a merchant's Hive account.

use std::path::PathBuf;

use proto::{Caller, Carried, Engine, v1};
use serde_json::json;

use super::{
    Failure, admin, logs,
    running::Running,
    say,
    settings::{EngineFlags, SettingsArgs, push},
};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    engine: EngineFlags,
    /// Asks a running engine instead of opening the data directory (setting engine_url)
    #[arg(long, value_name = "URL")]
    engine_url: Option<String>,
    /// The merchant's id, mer_…
    #[arg(long, value_name = "ID")]
    merchant: String,
    /// Its Hive account, or the one of a pending change [default: its account]
    #[arg(long)]
    account: Option<String>,
    /// Prints one line of JSON
    #[arg(long)]
    json: bool,
}

/// Marks the account as verified by the operator; the audit log records it.
pub(super) async fn run(args: Args) -> Result<(), Failure> {
    let mut flags = args.engine.into_settings();
    push(&mut flags, "engine_url", args.engine_url);
    let color = args.settings.color();
    let config = args.settings.load(flags)?;
    logs::start(&config, color);
    let request = v1::VerifyMerchantRequest { merchant_id: args.merchant, hive_account: args.account };
    let data = PathBuf::from(config.text("data_dir"));
    let merchant = match admin::reachable(&config, &data)? {
        Some(transport) => verify(&Engine::new(transport), request).await?,
        None => {
            let running = Running::start(&config, &data, false).await.map_err(admin::explain)?;
            let verified = verify(&Engine::new(running.service().in_process()), request).await;
            running.end(Vec::new()).await;
            verified?
        }
    };
    if args.json {
        let line = json!({ "id": merchant.id, "hiveAccount": merchant.hive_account });
        return say(&format!("{line}\n"));
    }
    match &merchant.pending_account {
        Some(pending) => say(&format!(
            "Merchant {} is verified for @{}. Its change to @{} takes effect as soon as both accounts are proven and \
             the waiting time is over.\n",
            merchant.id, merchant.hive_account, pending.hive_account
        )),
        None => say(&format!("Merchant {} is verified for @{}.\n", merchant.id, merchant.hive_account)),
    }
}

async fn verify(engine: &Engine, request: v1::VerifyMerchantRequest) -> Result<v1::Merchant, Failure> {
    Ok(engine.account_proofs().verify_merchant(Caller::default().request(request)).await?.carried()?)
}
