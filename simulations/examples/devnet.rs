//! Runs a dev ledger until it is interrupted, and prints its endpoints and the funded accounts.
//!
//! `cargo run -p simulations --example devnet -- 8091 8092`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::{
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use engine::time::Timestamp;
use simulations::{
    devnet::{Devnet, Options},
    ledger::{Genesis, Role},
};

#[expect(clippy::disallowed_methods, reason = "the example's own wall clock")]
fn wall() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Timestamp::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut ports = std::env::args().skip(1).map(|port| port.parse::<u16>());
    let mut address = || ports.next().transpose().map(|port| ([127, 0, 0, 1], port.unwrap_or(0)).into());
    let options = Options::new(Genesis::demo([7; 32], wall()), Arc::new(wall));
    let options = Options { nodes: vec![address()?], control: Some(address()?), ..options };
    let devnet = Devnet::start(options).await?;
    println!("node    {}", devnet.rpc_url(0));
    if let Some(control) = devnet.control_addr {
        println!("control http://{control}");
    }
    for (name, _) in Genesis::DEMO {
        println!("{name:15} {}", devnet.genesis().key(name, Role::Active).to_wif().as_str());
    }
    tokio::signal::ctrl_c().await?;
    devnet.shutdown().await;
    Ok(())
}
