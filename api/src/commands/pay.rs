//! `hivetill pay`: pays an address that answers 402, once, and prints the receipt. For agents and scripts.

use std::{io::Write as _, time::Duration};

use actors::{
    environment::{Account, Clock as _, Entropy, Node as _, NodeError},
    hive_rpc::HiveRpc,
    system::{SystemClock, SystemEntropy},
};
use engine::{
    account::AccountName,
    hive::{Authority, ChainId, KeyError, Operation, Pack, PrivateKey, PublicKey, Role, Transaction, check},
    ledger::TxId,
    money::{Currency, Money},
    x402::{PaymentPayload, Version},
};
use reqwest::{Client, Url, header::ACCEPT, redirect::Policy};
use serde_json::{Value, json};

mod asked;
mod handing;

use asked::{Asked, Unacceptable};
use handing::{Handed, Hands};

use super::signing::{Anchor, Unsignable};
use crate::config::{Config, ConfigError, Layers, environment_variables};

/// How long one exchange with the server may take: a gateway holds a payment for 20 s, others wait for a block.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How long one call to a ledger node may take.
const NODE_TIMEOUT: Duration = Duration::from_secs(10);
/// Where `hivetill dev` has its ledger.
const DEV_NODE: &str = "http://127.0.0.1:8091";

/// The exit codes, for `--help`.
const EXIT_CODES: &str = "Exit codes: 0 paid (or shown, or nothing to pay), 1 any other failure, 2 invalid command line, 10 refused before signing, \
     11 not paid: the server refused, or the transaction expired, 12 unknown: look up the transaction before you \
     pay again, 13 the server or the ledger is unreachable, and nothing was submitted, 14 this payment was settled \
     before, and the server serves nothing for it any more.\n\n\
     The command prints one line of JSON, unless the command line is invalid. Its `status` is paid, free, offer, refused, \
     unpaid, unknown, unreachable or settled.";

/// Arguments of `hivetill pay`.
#[derive(Clone, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(super) struct Args {
    /// The URL to pay: one that responds with 402, such as a checkout URL
    #[arg(value_name = "URL", value_parser = address)]
    url: Url,
    /// Hive account that pays
    #[arg(long, value_name = "ACCOUNT")]
    account: AccountName,
    /// Maximum amount to pay, including the fee, such as `5.000 HBD`; offers in other currencies are refused
    #[arg(long, value_name = "AMOUNT", value_parser = Money::parse_ledger)]
    max: Money,
    /// The payer's private active key (WIF). Prefer the environment variable: other users of the host can see command
    /// lines
    #[arg(long, value_name = "WIF", env = "HIVETILL_KEY", hide_env_values = true)]
    key: Option<String>,
    /// Ledger node for the transaction. By default the setting ledger.nodes; for a URL on this host, the ledger of
    /// `hivetill dev`
    #[arg(long = "node", value_name = "URL")]
    nodes: Vec<String>,
    /// Seconds until the signed payment expires
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(15..=3_600))]
    expires_in: u32,
    /// Print only the JSON, nothing to standard error
    #[arg(long)]
    json: bool,
    /// Show what would be paid, without signing; needs no key
    #[arg(long)]
    dry_run: bool,
    /// Submit this signed payment again and sign nothing: `payment` of an earlier run's JSON, or `-` for standard input.
    /// Give the same URL, --account and --max as before
    #[arg(long, value_name = "HEADER", conflicts_with = "dry_run")]
    payment: Option<String>,
    /// Allow payments over plain http to another host, where others on the network can read them
    #[arg(long)]
    allow_http: bool,
}

impl Args {
    /// Says whether nothing may be printed to standard error.
    pub(super) const fn is_silent(&self) -> bool {
        self.json
    }
}

/// Hides the key and the payment.
impl std::fmt::Debug for Args {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Args").field("account", &self.account).field("max", &self.max).finish_non_exhaustive()
    }
}

/// Why nothing was paid, or is not known to be.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// There is no key to sign with.
    #[error("--key or HIVETILL_KEY is needed to pay")]
    NoKey,
    /// The key is none.
    #[error("--key or HIVETILL_KEY {0}")]
    Key(#[from] KeyError),
    /// `--payment` is none of this account.
    #[error("--payment {0}")]
    Payment(String),
    /// The header is a bearer token: whoever reads it can submit it first.
    #[error("{0} uses plain http to another host; add --allow-http to pay there nevertheless")]
    PlainHttp(Url),
    /// Settings cannot be used.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// A client cannot be made.
    #[error("cannot make a client: {0}")]
    Setup(#[from] reqwest::Error),
    /// The offer is not one to accept.
    #[error("refused: {0}")]
    Unacceptable(#[from] Unacceptable),
    /// What was offered cannot be put into a transaction.
    #[error("refused: {0}")]
    Unsignable(#[from] Unsignable),
    /// The account cannot pay this.
    #[error("refused: {0}")]
    Account(#[from] NotOurs),
    /// No exchange with the server.
    #[error("{url} cannot be reached: {why}")]
    Server {
        /// The address.
        url: Url,
        /// Why not.
        why: String,
    },
    /// No exchange with the ledger.
    #[error("cannot query the ledger: the node {0}")]
    Ledger(#[from] NodeError),
    /// The server asks for no payment and gives nothing either.
    #[error("the server refused: HTTP {status}{}", .reason.as_ref().map(|word| format!(", {word}")).unwrap_or_default())]
    NotOffered {
        /// HTTP status.
        status: u16,
        /// The word it says.
        reason: Option<String>,
    },
    /// A payment of this session is under way: perhaps one of an earlier run.
    #[error("another payment is in flight ({reason}{}): wait for its outcome before you pay", .tx_id.as_ref().map(|id| format!(", {id}")).unwrap_or_default())]
    Busy {
        /// The word the server says.
        reason: String,
        /// The transaction that is under way, where the server names it.
        tx_id: Option<String>,
    },
    /// It was submitted and refused, or expired.
    #[error("not paid: {reason}{}", .message.as_ref().map(|message| format!(" ({message})")).unwrap_or_default())]
    Unpaid {
        /// The word.
        reason: String,
        /// A sentence.
        message: Option<String>,
    },
    /// It was submitted, and its outcome is unknown.
    #[error("unknown whether the payment succeeded ({reason}): look up {tx_id} before you pay again")]
    Unknown {
        /// The transaction.
        tx_id: TxId,
        /// The last word heard.
        reason: String,
    },
    /// It was settled before, and the server serves nothing for it any more.
    #[error("{0} was settled before: do not submit it again and sign no other; ask the seller")]
    Settled(TxId),
    /// The terminal is gone.
    #[error("cannot write: {0}")]
    Output(#[from] std::io::Error),
}

/// Why this account and key do not pay.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotOurs {
    /// The node's chain is not the one that is paid on.
    #[error("the node serves the chain {found}, not {wanted}")]
    Chain {
        /// What it serves.
        found: ChainId,
        /// What is paid on.
        wanted: ChainId,
    },
    /// The ledger does not know it.
    #[error("the ledger has no account {0}")]
    NoAccount(AccountName),
    /// The key is not enough.
    #[error("{key} alone does not satisfy the active authority of {account}")]
    NotItsKey {
        /// The key's public half.
        key: PublicKey,
        /// Who was to pay.
        account: AccountName,
    },
    /// There is less.
    #[error("{account} has {has}")]
    Funds {
        /// Who was to pay.
        account: AccountName,
        /// What it has.
        has: Money,
    },
}

impl Failure {
    /// Returns the exit code.
    pub(super) const fn exit_code(&self) -> u8 {
        match self {
            Self::Output(_) | Self::Setup(_) => 1,
            Self::NoKey | Self::Key(_) | Self::Payment(_) | Self::PlainHttp(_) | Self::Config(_) => 2,
            Self::Unacceptable(_) | Self::Unsignable(_) | Self::Account(_) => 10,
            Self::NotOffered { .. } | Self::Unpaid { .. } => 11,
            Self::Unknown { .. } | Self::Busy { .. } => 12,
            Self::Server { .. } | Self::Ledger(_) => 13,
            Self::Settled(_) => 14,
        }
    }

    fn status(&self) -> &'static str {
        match self.exit_code() {
            11 => "unpaid",
            12 => "unknown",
            13 => "unreachable",
            14 => "settled",
            _ => "refused",
        }
    }

    /// Returns the word for scripts.
    fn reason(&self) -> String {
        match self {
            Self::NoKey => "no_key".into(),
            Self::Key(_) => "bad_key".into(),
            Self::Payment(_) => "bad_payment".into(),
            Self::PlainHttp(_) => "plain_http".into(),
            Self::Config(_) => "bad_settings".into(),
            Self::Setup(_) | Self::Output(_) => "failed".into(),
            Self::Unacceptable(why) => why.word().into(),
            Self::Unsignable(_) => "not_a_transfer".into(),
            Self::Account(NotOurs::Chain { .. }) => "other_chain".into(),
            Self::Account(NotOurs::NoAccount(_)) => "no_account".into(),
            Self::Account(NotOurs::NotItsKey { .. }) => "not_its_key".into(),
            Self::Account(NotOurs::Funds { .. }) => "insufficient_funds".into(),
            Self::Server { .. } => "server_unreachable".into(),
            Self::Ledger(_) => "ledger_unreachable".into(),
            Self::Settled(_) => engine::x402::Reason::DuplicateSettlement.as_str().into(),
            Self::NotOffered { status, reason } => reason.clone().unwrap_or_else(|| format!("http_{status}")),
            Self::Unpaid { reason, .. } | Self::Unknown { reason, .. } | Self::Busy { reason, .. } => reason.clone(),
        }
    }
}

/// Reads the 402, pays at most `--max`, and prints one line of JSON.
///
/// # Errors
/// [`Failure`]; its exit code says whether money can have moved.
pub(super) async fn run(args: Args) -> Result<(), Failure> {
    let mut told = json!({ "url": args.url.as_str(), "payer": args.account.as_str() });
    let result = Box::pin(pay(&args, &mut told)).await;
    if let Err(failure) = &result {
        told["status"] = failure.status().into();
        told["reason"] = failure.reason().into();
        told["message"] = failure.to_string().into();
        if let Failure::Busy { tx_id: Some(tx_id), .. } = failure {
            told["txId"] = tx_id.as_str().into();
        }
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{told}")?;
    out.flush()?;
    result
}

async fn pay(args: &Args, told: &mut Value) -> Result<(), Failure> {
    if args.url.scheme() == "http" && !is_here(&args.url) && !args.allow_http {
        return Err(Failure::PlainHttp(args.url.clone()));
    }
    if let Some(payment) = &args.payment {
        return repeat(args, payment, told).await;
    }
    let key = match &args.key {
        Some(wif) => Some(PrivateKey::from_wif(wif)?),
        None if args.dry_run => None,
        None => return Err(Failure::NoKey),
    };
    let client = client()?;
    let asked = match ask(&client, &args.url, args.max.currency).await? {
        Offer::Asked(asked) => asked,
        Offer::Free(response) => {
            told["status"] = "free".into();
            told["response"] = response;
            return Ok(());
        }
    };
    merge(told, asked.describe());
    asked.check(&args.account, args.max, SystemClock.now())?;
    say(args, &format!("{}: {}", args.url, asked.sentence()));
    let Some(key) = key.filter(|_| !args.dry_run) else {
        told["status"] = "offer".into();
        return Ok(());
    };
    let nonce = hex::encode((&SystemEntropy as &dyn Entropy).bytes::<16>());
    let (node, transaction) = sign(args, &asked, &nonce, &key).await?;
    let tx_id = transaction.id(Pack::Legacy);
    told["txId"] = tx_id.to_string().into();
    told["expiresAt"] = transaction.expiration.to_string().into();
    say(args, &format!("signed {tx_id}; submitting it"));
    let (header, value) = asked.header(&transaction, &nonce)?;
    told["payment"] = value.as_str().into();
    let hands = Hands { client: &client, url: &args.url, header, value, tx_id };
    let patience = Duration::from_secs(args.expires_in.into());
    let handed = hands.hand_in(&node, transaction.expiration, patience, |word| say(args, word)).await;
    report(handed, tx_id, args.url.clone(), told)
}

/// A client that follows no redirect: it could hand the payment to somebody else.
fn client() -> Result<Client, Failure> {
    Ok(Client::builder().redirect(Policy::none()).timeout(TIMEOUT).build()?)
}

/// Submits a payment that an earlier run signed.
async fn repeat(args: &Args, payment: &str, told: &mut Value) -> Result<(), Failure> {
    let value = if payment == "-" { std::io::read_to_string(std::io::stdin())? } else { payment.to_owned() };
    let value = value.trim().to_owned();
    let payload = match PaymentPayload::decode_header(&value) {
        Ok(Ok(payload)) => payload,
        Ok(Err(refused)) => return Err(Failure::Payment(refused.to_string())),
        Err(error) => return Err(Failure::Payment(error.to_string())),
    };
    let transaction = payload.transaction;
    check_again(&transaction, args)?;
    let tx_id = transaction.id(Pack::Legacy);
    told["txId"] = tx_id.to_string().into();
    told["expiresAt"] = transaction.expiration.to_string().into();
    told["payment"] = value.as_str().into();
    let (nodes, wanted) = ledger(args)?;
    let (node, ..) = reach(&nodes, wanted, args.account).await?;
    let header = if payload.version == Version::V1 { "x-payment" } else { "payment-signature" };
    say(args, &format!("submitting {tx_id} again"));
    let client = client()?;
    let hands = Hands { client: &client, url: &args.url, header, value, tx_id };
    let patience = transaction.expiration.since(SystemClock.now());
    let handed = hands.hand_in(&node, transaction.expiration, patience, |word| say(args, word)).await;
    report(handed, tx_id, args.url.clone(), told)
}

/// Checks that a signed payment takes at most `--max` from `--account`, and nothing else.
fn check_again(transaction: &Transaction, args: &Args) -> Result<(), Failure> {
    let mut units = 0_u64;
    for operation in &transaction.operations {
        let Operation::Transfer(transfer) = operation else {
            return Err(Failure::Payment("contains more than transfers".to_owned()));
        };
        if transfer.from != args.account.as_str() {
            return Err(Failure::Payment(format!("is from {}, not from {}", transfer.from, args.account)));
        }
        let money = transfer.amount.money().ok_or_else(|| Failure::Payment("is in neither HIVE nor HBD".to_owned()))?;
        if money.currency != args.max.currency {
            return Err(Unacceptable::OtherCurrency { asked: money, max: args.max }.into());
        }
        units = units.saturating_add(money.units);
    }
    let asked = Money::new(units, args.max.currency);
    if units > args.max.units { Err(Unacceptable::AboveMaximum { asked, max: args.max }.into()) } else { Ok(()) }
}

fn report(handed: Handed, tx_id: TxId, url: Url, told: &mut Value) -> Result<(), Failure> {
    told["attempts"] = handed.attempts.into();
    if let Some(status) = handed.http_status {
        told["httpStatus"] = status.into();
    }
    if let Some(receipt) = handed.receipt {
        told["receipt"] = receipt;
    }
    match handed.outcome {
        handing::Outcome::Paid { response } => {
            if let Some(told) = told.as_object_mut() {
                told.remove("payment");
            }
            told["status"] = "paid".into();
            told["response"] = response;
            Ok(())
        }
        handing::Outcome::Unpaid { reason, message } => Err(Failure::Unpaid { reason, message }),
        handing::Outcome::Unknown { reason } => Err(Failure::Unknown { tx_id, reason }),
        handing::Outcome::Settled => Err(Failure::Settled(tx_id)),
        handing::Outcome::NeverSent { why } => Err(Failure::Server { url, why }),
    }
}

enum Offer {
    Asked(Box<Asked>),
    Free(Value),
}

/// Asks what the address costs.
async fn ask(client: &Client, url: &Url, currency: Currency) -> Result<Offer, Failure> {
    let unreachable =
        |error: reqwest::Error| Failure::Server { url: url.clone(), why: handing::causes(&error.without_url()) };
    let answer = client.get(url.clone()).header(ACCEPT, "application/json").send().await.map_err(unreachable)?;
    let status = answer.status().as_u16();
    let headers = answer.headers().clone();
    let body = handing::read(answer).await.map_err(unreachable)?;
    match status {
        402 => Ok(Offer::Asked(Box::new(Asked::read(&headers, &body, currency)?))),
        200..=299 => Ok(Offer::Free(handing::shown(&body))),
        409 if handing::is_under_way(&body) => Err(Failure::Busy {
            reason: handing::word_of(&body).unwrap_or_default(),
            tx_id: handing::shown(&body)["txId"].as_str().map(str::to_owned),
        }),
        _ => Err(Failure::NotOffered { status, reason: handing::word_of(&body) }),
    }
}

/// Checks that the account can pay, and signs. Nothing after this signs again.
async fn sign(args: &Args, asked: &Asked, nonce: &str, key: &PrivateKey) -> Result<(HiveRpc, Transaction), Failure> {
    let (nodes, wanted) = ledger(args)?;
    let (node, anchor, account) = reach(&nodes, wanted, args.account).await?;
    check_account(&account, key, asked.total)?;
    asked.check_time(anchor.head_time)?;
    let expires_in = Duration::from_secs(args.expires_in.into());
    let transaction = anchor.sign(asked.transfers(&args.account, nonce), expires_in, Pack::Legacy, key)?;
    Ok((node, transaction))
}

/// Returns the nodes to ask, and the chain that they must serve.
fn ledger(args: &Args) -> Result<(Vec<String>, ChainId), Failure> {
    let own = if is_here(&args.url) { vec![("ledger.nodes", DEV_NODE.to_owned())] } else { Vec::new() };
    let environment = environment_variables();
    let config = Config::load(Layers { command: own, command_name: "pay", environment, ..Layers::default() })?;
    let nodes = if args.nodes.is_empty() { config.list("ledger.nodes") } else { args.nodes.clone() };
    Ok((nodes, config.engine().chain_id))
}

/// Returns the first node that responds, its head, and the payer's account.
async fn reach(nodes: &[String], wanted: ChainId, payer: AccountName) -> Result<(HiveRpc, Anchor, Account), Failure> {
    let mut last = NodeError::Unreachable("no node is set".to_owned());
    for url in nodes {
        let node = HiveRpc::new(url, NODE_TIMEOUT)?;
        let found = async { Ok((Anchor::of(&node).await?, node.accounts(vec![payer]).await?)) };
        let (anchor, accounts) = match found.await {
            Ok(found) => found,
            Err(error) => {
                last = error;
                continue;
            }
        };
        if anchor.chain != wanted {
            return Err(NotOurs::Chain { found: anchor.chain, wanted }.into());
        }
        let account = accounts.into_iter().find(|account| account.name == payer);
        return Ok((node, anchor, account.ok_or(NotOurs::NoAccount(payer))?));
    }
    Err(last.into())
}

fn check_account(account: &Account, key: &PrivateKey, total: Money) -> Result<(), NotOurs> {
    let name = account.name;
    let has = account.balances.into_iter().find(|balance| balance.currency == total.currency);
    let has = has.unwrap_or(Money::new(0, total.currency));
    let required = [(Role::Active, name)].into();
    let known: std::collections::BTreeMap<AccountName, Authority> = [(name, account.active.clone())].into();
    let public = key.public();
    // Where others must sign too, or an account's account, the ledger will say; here only one key is known.
    if let Err(denied) = check(&required, &known, &[public].into())
        && denied.unknown.is_empty()
    {
        return Err(NotOurs::NotItsKey { key: public, account: name });
    }
    if has.units < total.units { Err(NotOurs::Funds { account: name, has }) } else { Ok(()) }
}

fn is_here(url: &Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

fn address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    if matches!(url.scheme(), "http" | "https") && url.has_host() {
        Ok(url)
    } else {
        Err("must begin with https:// or http://".to_owned())
    }
}

fn merge(into: &mut Value, from: Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        into.extend(from);
    }
}

fn say(args: &Args, text: &str) {
    if !args.json {
        // Nobody to tell is no reason not to pay.
        let _ = writeln!(std::io::stderr(), "hivetill: {text}");
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn parse(more: &[&str]) -> Result<Args, clap::Error> {
        let line = ["pay", "http://127.0.0.1:1/for/x", "--account", "alice", "--max", "5.000 HBD"];
        Line::try_parse_from(line.iter().chain(more)).map(|line| line.args)
    }

    #[test]
    fn the_key_is_not_printed() {
        let wif = PrivateKey::from_login("alice", "active", "test").unwrap().to_wif();
        let args = parse(&["--key", &wif]).unwrap();
        assert!(!format!("{args:?}").contains(&*wif));
    }

    #[test]
    fn only_web_addresses_and_ledger_amounts_are_taken() {
        for url in ["file:///etc/passwd", "ftp://a.example/", "a.example", "https://", ""] {
            assert!(Line::try_parse_from(["pay", url, "--account", "alice", "--max", "5.000 HBD"]).is_err(), "{url}");
        }
        for max in ["5", "5.000", "5.0 HBD", "-1.000 HBD", "5.000 USD"] {
            let line = ["pay", "https://a.example/", "--account", "alice", "--max", max];
            assert!(Line::try_parse_from(line).is_err(), "{max}");
        }
    }

    #[test]
    fn this_machine_is_told_from_others() {
        for url in ["http://localhost:1/", "http://127.0.0.1/", "http://[::1]:8080/", "http://shop.localhost/"] {
            assert!(is_here(&Url::parse(url).unwrap()), "{url}");
        }
        for url in ["http://localhost.example/", "http://10.0.0.1/", "http://[::2]/"] {
            assert!(!is_here(&Url::parse(url).unwrap()), "{url}");
        }
    }

    #[tokio::test]
    async fn a_payment_is_not_handed_over_plain_http_to_another_machine() {
        let args = Args { url: Url::parse("http://shop.example/for/x").unwrap(), ..parse(&[]).unwrap() };
        let failure = pay(&args, &mut json!({})).await.unwrap_err();
        assert!(matches!(failure, Failure::PlainHttp(_)) && failure.exit_code() == 2, "{failure}");
    }

    #[test]
    fn a_key_that_is_not_the_accounts_is_found_out_before_it_signs() {
        let key = |name: &str| PrivateKey::from_login(name, "active", "test").unwrap();
        let name = AccountName::parse("alice").unwrap();
        let parse = |text: &str| Money::parse_ledger(text).unwrap();
        let balances = [parse("0.000 HIVE"), parse("5.000 HBD")];
        let account = Account { name, active: Authority::of_key(key("alice").public()), balances };
        assert_eq!(check_account(&account, &key("alice"), parse("5.000 HBD")), Ok(()));
        let short = NotOurs::Funds { account: name, has: parse("5.000 HBD") };
        assert_eq!(check_account(&account, &key("alice"), parse("5.001 HBD")), Err(short));
        let wrong = check_account(&account, &key("bob"), parse("5.000 HBD"));
        assert_eq!(wrong, Err(NotOurs::NotItsKey { key: key("bob").public(), account: name }));
    }
}
