//! `admin verify-merchant`: marks a merchant's Hive account as verified by the operator.

use proto::{Caller, Engine, IntoRecord, v1};
use serde_json::json;

use super::{
    failure::Failure,
    output::print,
    target::{Target, call_engine},
};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,
    /// Id of the merchant, mer_…
    #[arg(long, value_name = "ID")]
    merchant: String,
    /// Its Hive account, or the account of a pending change [default: its account]
    #[arg(long)]
    account: Option<String>,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// Marks the account as verified by the operator; the audit log records it.
pub(super) async fn run(args: Args) -> Result<(), Failure> {
    let config = args.target.load()?;
    let request = v1::VerifyMerchantRequest { merchant_id: args.merchant, hive_account: args.account };
    let verify = async |engine: Engine| {
        Ok(engine.account_proofs().verify_merchant(Caller::default().request(request)).await?.into_record()?)
    };
    let merchant = call_engine(&config, false, verify).await?;
    if args.json {
        let line = json!({ "id": merchant.id, "hiveAccount": merchant.hive_account });
        return print(&format!("{line}\n"));
    }
    match &merchant.pending_account {
        Some(pending) => print(&format!(
            "Merchant {} is verified for @{}. Its change to @{} takes effect once both accounts are proven and the delay \
             has passed.\n",
            merchant.id, merchant.hive_account, pending.hive_account
        )),
        None => print(&format!("Merchant {} is verified for @{}.\n", merchant.id, merchant.hive_account)),
    }
}
