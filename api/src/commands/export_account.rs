//! `admin export-account`: exports all records about a Hive account.

use proto::{Caller, Engine, v1};

use super::{
    failure::Failure,
    output::print,
    target::{Target, call_engine},
};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,
    /// The Hive account
    #[arg(value_name = "NAME")]
    account: String,
}

/// Prints every record that names the account; the audit log records it first.
pub(super) async fn run(args: Args) -> Result<(), Failure> {
    let config = args.target.load()?;
    let request = v1::ExportAccountRequest { hive_account: args.account };
    let export = async |engine: Engine| {
        let mut client = engine.maintenance().max_decoding_message_size(usize::MAX);
        let mut records = client.export_account(Caller::default().request(request)).await?.into_inner();
        while let Some(record) = records.message().await? {
            print(&format!("{}\n", record.json))?;
        }
        Ok(())
    };
    call_engine(&config, false, export).await
}
