//! `hivetill transfer`: signs and broadcasts a transfer, for tests and scripts of payers.

use std::{io::Write, time::Duration};

use actors::{
    environment::{Node, NodeError, TxStatus},
    hive_rpc::HiveRpc,
};
use engine::{
    account::AccountName,
    hive::{Asset, KeyError, Pack, PrivateKey, Transaction, Transfer},
    ledger::TxId,
    money::Money,
    time::Timestamp,
};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::signing::{Anchor, Unsignable};

/// Interval between polls for the status of a transaction.
const POLL: Duration = Duration::from_millis(500);
/// Timeout of a call to the node.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Arguments of `hivetill transfer`.
#[derive(Clone, clap::Args)]
pub struct Args {
    /// Node to broadcast to
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8091")]
    pub node: String,
    /// Hive account that pays
    #[arg(long, value_name = "ACCOUNT")]
    pub from: AccountName,
    /// Hive account that receives
    #[arg(long, value_name = "ACCOUNT")]
    pub to: AccountName,
    /// Amount, such as `1.000 HBD`
    #[arg(long, value_parser = Money::parse_ledger)]
    pub amount: Money,
    /// Memo; to pay a payment, its memo `pos-<id>`
    #[arg(long, default_value = "")]
    pub memo: String,
    /// The payer's private active key (WIF). Prefer the environment variable: other users of the host can see command
    /// lines
    #[arg(long, value_name = "WIF", env = "HIVETILL_KEY", hide_env_values = true)]
    pub key: String,
    /// Serialization to sign; most wallets sign legacy
    #[arg(long, value_name = "PACK", default_value = "legacy", value_parser = pack)]
    pub pack: Pack,
    /// Seconds until the transaction expires, at most a day
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub expires_in: u32,
    /// Wait until the transaction is in a block, or in an irreversible block
    #[arg(long, value_name = "FOR", num_args = 0..=1, default_missing_value = "block")]
    pub wait: Option<Wait>,
    /// Sign and print the transaction without broadcasting it
    #[arg(long)]
    pub sign_only: bool,
}

/// Hides the key.
impl std::fmt::Debug for Args {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Args").field("from", &self.from).field("to", &self.to).finish_non_exhaustive()
    }
}

/// The block to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Wait {
    /// Any block.
    Block,
    /// An irreversible block.
    Irreversible,
}

/// The failure of a transfer.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The key is invalid.
    #[error("--key or HIVETILL_KEY {0}")]
    Key(#[from] KeyError),
    /// The transfer cannot be signed.
    #[error(transparent)]
    Unsignable(#[from] Unsignable),
    /// The HTTP client cannot be created.
    #[error("--node: {0}")]
    Setup(#[from] reqwest::Error),
    /// The node does not respond, or refuses the transaction.
    #[error("the node {0}")]
    Node(#[from] NodeError),
    /// The transaction expired without being included in a block.
    #[error("{tx_id} expired without being included in a block")]
    Expired {
        /// The transaction id.
        tx_id: TxId,
    },
    /// Standard output cannot be written.
    #[error("cannot write: {0}")]
    Output(#[from] std::io::Error),
}

/// Signs and broadcasts the transfer, waits with `--wait`, and prints one line of JSON: `{"txId", "status", "blockNum"?}`.
///
/// # Errors
/// [`Failure`].
pub async fn run(args: Args) -> Result<(), Failure> {
    let key = PrivateKey::from_wif(&args.key)?;
    let node = HiveRpc::new(&args.node, TIMEOUT)?;
    let transaction = sign(&args, Anchor::of(&node).await?, &key)?;
    let tx_id = transaction.id(args.pack);
    let mut report = json!({ "txId": tx_id.to_string() });
    if args.sign_only {
        let json = transaction.to_condenser_json();
        report["transaction"] = serde_json::from_str(&json).expect("a transaction is JSON");
    } else {
        broadcast(&node, &transaction).await?;
        report["status"] = Value::from("broadcast");
        if let Some(wait) = args.wait {
            let (status, block) = wait_for_block(&node, tx_id, transaction.expiration, wait).await?;
            report["status"] = Value::from(status);
            report["blockNum"] = Value::from(block);
        }
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{report}")?;
    Ok(out.flush()?)
}

fn sign(args: &Args, anchor: Anchor, key: &PrivateKey) -> Result<Transaction, Unsignable> {
    let transfer = Transfer {
        from: args.from.to_string(),
        to: args.to.to_string(),
        amount: Asset::from(args.amount),
        memo: args.memo.clone(),
    };
    anchor.sign(vec![transfer], Duration::from_secs(args.expires_in.into()), args.pack, key)
}

async fn broadcast(node: &HiveRpc, transaction: &Transaction) -> Result<(), Failure> {
    match node.broadcast(transaction.to_condenser_json()).await {
        // The node already has the transaction, from an earlier attempt.
        Err(NodeError::Rpc { message, .. }) if message.contains("Duplicate transaction check failed") => Ok(()),
        other => Ok(other?),
    }
}

/// Waits until a transaction is in a block. Returns the status word and the block number.
async fn wait_for_block(
    node: &HiveRpc,
    tx_id: TxId,
    expiration: Timestamp,
    wait: Wait,
) -> Result<(&'static str, u32), Failure> {
    loop {
        match node.find_transaction(tx_id, expiration).await? {
            TxStatus::InIrreversibleBlock(number) => return Ok(("irreversible", number)),
            TxStatus::InReversibleBlock(number) if wait == Wait::Block => return Ok(("in_block", number)),
            TxStatus::ExpiredIrreversible | TxStatus::TooOld => return Err(Failure::Expired { tx_id }),
            TxStatus::InReversibleBlock(_) | TxStatus::InMempool | TxStatus::Unknown | TxStatus::ExpiredReversible => {
                sleep(POLL).await;
            }
        }
    }
}

fn pack(text: &str) -> Result<Pack, String> {
    Pack::ALL.into_iter().find(|pack| pack.as_str() == text).ok_or_else(|| "must be legacy or hf26".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use engine::{
        hive::{ChainId, Invalid},
        ledger::BlockId,
    };

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn at(seconds: u64) -> Anchor {
        let head_time = Timestamp::from_seconds(seconds);
        Anchor { chain: ChainId::MAINNET, head_time, block: BlockId::default() }
    }

    fn parse(more: &[&str]) -> Result<Args, clap::Error> {
        let wif = PrivateKey::from_login("alice", "active", "test").unwrap().to_wif();
        let line = ["transfer", "--from", "alice", "--to", "bob", "--key", &wif];
        Line::try_parse_from(line.iter().chain(more)).map(|line| line.args)
    }

    #[test]
    fn invalid_transfers_are_refused_before_they_are_signed() {
        assert!(parse(&["--amount", "1.000 HBD"]).is_ok());
        for more in [["--amount", "1.0 HBD"], ["--amount", "1 HBD"], ["--amount", "-1.000 HBD"]] {
            assert!(parse(&more).is_err(), "{more:?}");
        }
        for name in ["--from", "--to"] {
            assert!(parse(&["--amount", "1.000 HBD", name, "Alice"]).is_err());
        }
        let key = PrivateKey::from_login("alice", "active", "test").unwrap();
        let sign = |args: &Args| sign(args, at(1), &key);
        let zero = parse(&["--amount", "0.000 HBD"]).unwrap();
        assert!(matches!(sign(&zero), Err(Unsignable::Invalid(Invalid::NotPositive { .. }))));
        let control = parse(&["--amount", "1.000 HBD", "--memo", "\u{1}"]).unwrap();
        assert!(matches!(sign(&control), Err(Unsignable::Memo)));
    }

    #[test]
    fn a_transfer_has_the_requested_serialization_and_expiration() {
        let key = PrivateKey::from_login("alice", "active", "test").unwrap();
        for pack in Pack::ALL {
            let args = parse(&["--amount", "1.000 HBD", "--pack", pack.as_str(), "--expires-in", "90"]).unwrap();
            let transaction = sign(&args, at(1_000), &key).unwrap();
            assert!(transaction.recover(ChainId::MAINNET, pack).unwrap().contains(&key.public()));
            assert_eq!(transaction.expiration.seconds(), 1_090);
        }
    }

    #[test]
    fn the_key_is_not_printed() {
        let args = parse(&["--amount", "1.000 HBD"]).unwrap();
        assert!(!format!("{args:?}").contains(&args.key));
    }
}
