//! `admin`: creates an admin, in a data directory or in a running engine; other admin tasks are subcommands.

use proto::{Caller, Engine, v1};
use serde_json::json;

use super::{
    export_account,
    failure::Failure,
    inspect,
    output::print,
    receipt_key,
    target::{Target, call_engine},
    verify_merchant,
};

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
    /// Replace the key that signs x402 offers and receipts; the audit log records it
    RotateReceiptKey(receipt_key::Args),
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

/// Runs the subcommand, or creates an admin.
pub(super) async fn run(args: Args) -> Result<(), Failure> {
    match args.command {
        Some(Command::VerifyMerchant(args)) => verify_merchant::run(args).await,
        Some(Command::Payment(args)) => inspect::run(args).await,
        Some(Command::ExportAccount(args)) => export_account::run(args).await,
        Some(Command::RotateReceiptKey(args)) => receipt_key::run(args).await,
        None => create(args.admin).await,
    }
}

/// Creates an admin and prints its API key and webhook secret, which are not shown again.
async fn create(args: AdminArgs) -> Result<(), Failure> {
    let config = args.target.load()?;
    let request =
        v1::RegisterAdminRequest { name: args.name, hive_account: args.account.unwrap_or_default(), icon_url: None };
    let register = async |engine: Engine| {
        Ok(engine.merchants().register_admin(Caller::default().request(request)).await?.into_inner())
    };
    let registered = call_engine(&config, true, register).await?;
    let id = registered.merchant.map(|merchant| merchant.id).unwrap_or_default();
    let (key, secret) = (registered.api_key, registered.webhook_secret);
    if args.json {
        let line = json!({"id": id, "apiKey": key, "webhookSecret": secret, "privileges": ["admin"]});
        return print(&format!("{line}\n"));
    }
    print(&format!(
        "Admin merchant {id}\n  API key         {key}\n  webhook secret  {secret}\nStore both: they are shown only once.\n"
    ))
}
