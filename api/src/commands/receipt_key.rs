//! `admin rotate-receipt-key`: replaces the key that signs offers and receipts.

use engine::x402::receipt_key_id;
use proto::{Caller, Engine, v1};
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
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// Replaces the key; the audit log records it. The old public key remains in the key set.
pub(super) async fn run(args: Args) -> Result<(), Failure> {
    let config = args.target.load()?;
    let rotate = async |engine: Engine| {
        let request = Caller::default().request(v1::RotateReceiptKeyRequest {});
        Ok(engine.x402().rotate_receipt_key(request).await?.into_inner().public_key)
    };
    let public = call_engine(&config, false, rotate).await?;
    let public = <[u8; 32]>::try_from(&public[..]);
    let id = public.map(|public| receipt_key_id(&public));
    let id = id.map_err(|_| Failure::Other("the engine returned an invalid key".to_owned()))?;
    if args.json {
        return print(&format!("{}\n", json!({ "keyId": id })));
    }
    print(&format!(
        "Offers and receipts are signed with the new key {id}\nOther engines of the same store use it within ten seconds. Earlier \
         keys remain in /.well-known/jwks.json.\n"
    ))
}
