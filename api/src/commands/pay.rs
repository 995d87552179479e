//! `hivetill pay`: pays a URL that responds with 402, once, and prints the receipt. For agents and scripts.

use std::{io::Write as _, path::PathBuf, time::Duration};

use actors::{environment::Clock as _, system::SystemClock};
use engine::{
    account::AccountName,
    hive::{Operation, Pack, Transaction},
    ledger::TxId,
    money::Money,
    x402::{PaymentPayload, Version},
};
use reqwest::Url;
use serde_json::{Value, json};

use super::{
    payer::{
        account::check_account,
        exchange::{Response, check_transport, client, conclude, merge, new_nonce, request_quote},
        failure::Failure,
        key::KeySource,
        ledger::{Ledger, Reached},
        quote::Unacceptable,
        request::{BadRequest, Request},
        submission::{Carrier, Submission},
        target::Target,
        tool_call::ToolCall,
    },
    wallet::{Purchase, Wallet},
};

/// The exit codes, for `--help`.
const EXIT_CODES: &str = "Exit codes: 0 paid (or shown, or nothing to pay), 1 any other failure, 2 invalid command line, key or policy, 10 \
     refused before signing, 11 not paid: the server refused, or the transaction expired, 12 unknown: look up the \
     transaction before you pay again, 13 the server or the ledger is unreachable, and nothing was submitted, 14 this \
     payment was settled before, and the server no longer serves it.\n\n\
     The command prints one line of JSON, unless the command line is invalid. Its `status` is paid, free, offer, refused, \
     unpaid, unknown, unreachable or settled.";

/// Arguments of `hivetill pay`.
#[derive(Clone, clap::Args)]
#[command(after_help = EXIT_CODES)]
pub(super) struct Args {
    /// The URL to pay: one that responds with 402, such as a checkout URL; with --tool, that of an MCP server
    #[arg(value_name = "URL", value_parser = address)]
    url: Url,
    /// Pay from this wallet: its policy limits what may be spent, and a repeated request is never paid twice
    #[arg(long, value_name = "DIR", env = "HIVETILL_WALLET")]
    wallet: Option<PathBuf>,
    /// Hive account that pays; a wallet names its own
    #[arg(long, value_name = "ACCOUNT", required_unless_present = "wallet")]
    account: Option<AccountName>,
    /// Maximum amount to pay, including the fee, such as `5.000 HBD`; offers in other currencies are refused
    #[arg(long, value_name = "AMOUNT", value_parser = Money::parse_ledger, required_unless_present = "wallet")]
    max: Option<Money>,
    /// A file with the payer's private active key (WIF) that only its owner may read; by default the key is in the
    /// environment variable HIVETILL_KEY
    #[arg(long, value_name = "FILE", conflicts_with = "key_descriptor")]
    key_file: Option<PathBuf>,
    /// A file descriptor to read the key from
    #[arg(long = "key-fd", value_name = "NUMBER")]
    key_descriptor: Option<u32>,
    /// HTTP method; by default GET, with --data POST
    #[arg(long, short = 'X', value_name = "METHOD")]
    method: Option<String>,
    /// A request header, `Name: value`; may be repeated
    #[arg(long = "header", short = 'H', value_name = "HEADER")]
    headers: Vec<String>,
    /// The request body, or `@FILE`; sent as JSON unless --header names another content type
    #[arg(long, short = 'd', value_name = "DATA")]
    data: Option<String>,
    /// Call this paid tool of the MCP server at the URL; --data has its arguments, a JSON object
    #[arg(long, value_name = "NAME", requires = "wallet", conflicts_with = "method")]
    tool: Option<String>,
    /// Name of the purchase: a wallet pays a request with the same method, URL, body and key once. Sent as
    /// `Idempotency-Key`
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
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
    /// Give the same URL, --account and --max as before. A wallet repeats its payments automatically
    #[arg(long, value_name = "HEADER", conflicts_with_all = ["dry_run", "wallet"])]
    payment: Option<String>,
    /// Allow payments over plain http to another host, where others on the network can read them
    #[arg(long)]
    allow_http: bool,
}

/// Hides the payment and the request.
impl std::fmt::Debug for Args {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Args").field("account", &self.account).field("max", &self.max).finish_non_exhaustive()
    }
}

impl Args {
    /// Returns whether nothing may be printed to standard error.
    pub(super) const fn is_silent(&self) -> bool {
        self.json
    }

    fn request(&self) -> Result<Request, Failure> {
        let mut request = Request::get(self.url.clone());
        if let Some(method) = &self.method {
            request = request.with_method(method)?;
        }
        for line in &self.headers {
            request = request.with_header(line)?;
        }
        if let (Some(body), None) = (self.body()?, &self.tool) {
            request = request.with_body(body, self.method.is_some());
        }
        if let Some(key) = &self.idempotency_key {
            request = request.with_idempotency_key(key)?;
        }
        Ok(request)
    }

    fn body(&self) -> Result<Option<Vec<u8>>, Failure> {
        let Some(data) = &self.data else { return Ok(None) };
        Ok(Some(match data.strip_prefix('@') {
            Some(path) => std::fs::read(path).map_err(|error| BadRequest::Data(format!("{path}: {error}")))?,
            None => data.clone().into_bytes(),
        }))
    }

    /// Returns the request, or the call of the tool.
    fn target(&self, request: Request) -> Result<Target, Failure> {
        let Some(tool) = &self.tool else { return Ok(Target::Http(request)) };
        let arguments = self.body()?.map(|body| serde_json::from_slice(&body)).transpose();
        let arguments = arguments.map_err(|error| BadRequest::Data(format!("the arguments of a tool: {error}")))?;
        Ok(Target::Tool(ToolCall::new(request, tool.clone(), arguments.unwrap_or_default())))
    }

    /// Returns the source of the key, if a flag sets it.
    fn key_source(&self) -> Option<KeySource> {
        let file = self.key_file.clone().map(KeySource::File);
        file.or_else(|| self.key_descriptor.map(KeySource::Descriptor))
    }
}

/// A payment without a wallet: account and maximum come from the command line.
struct Single<'a> {
    args: &'a Args,
    request: &'a Request,
    account: AccountName,
    max: Money,
}

/// Reads the 402 response, pays at most the maximum, and prints one line of JSON.
///
/// # Errors
/// [`Failure`]; its exit code shows whether money can have moved.
pub(super) async fn run(args: Args) -> Result<(), Failure> {
    let mut report = json!({ "url": args.url.as_str() });
    let result = Box::pin(pay(&args, &mut report)).await;
    if let Err(failure) = &result {
        failure.describe(&mut report);
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "{report}")?;
    out.flush()?;
    result
}

async fn pay(args: &Args, report: &mut Value) -> Result<(), Failure> {
    check_transport(&args.url, args.allow_http)?;
    let request = args.request()?;
    if let Some(directory) = &args.wallet {
        let (wallet, target) = (Wallet::open(directory)?, args.target(request)?);
        let purchase = Purchase {
            wallet: &wallet,
            target: &target,
            max: args.max,
            nodes: &args.nodes,
            key: args.key_source(),
            expires_in: Duration::from_secs(args.expires_in.into()),
            is_dry_run: args.dry_run,
            progress: &|text| say(args, text),
        };
        return Box::pin(purchase.run(report)).await;
    }
    let (Some(account), Some(max)) = (args.account, args.max) else {
        unreachable!("the command line needs both without a wallet");
    };
    let single = Single { args, request: &request, account, max };
    report["payer"] = account.as_str().into();
    match &args.payment {
        Some(payment) => single.repeat(payment, report).await,
        None => single.pay(report).await,
    }
}

impl Single<'_> {
    async fn pay(&self, report: &mut Value) -> Result<(), Failure> {
        let Self { args, request, account, max } = self;
        let key = if args.dry_run { None } else { Some(args.key_source().unwrap_or_default().read()?) };
        let client = client()?;
        let quote = match request_quote(&client, request, &[max.currency]).await? {
            Response::Quoted(quote) => quote,
            Response::Free(response) => {
                report["status"] = "free".into();
                report["response"] = response;
                return Ok(());
            }
        };
        merge(report, quote.describe());
        quote.check(account, *max, SystemClock.now())?;
        say(args, &format!("{}: {}", args.url, quote.sentence()));
        let Some(key) = key else {
            report["status"] = "offer".into();
            return Ok(());
        };
        let nonce = new_nonce();
        let Reached { node, anchor, account: payer } = self.ledger()?.reach(*account).await?;
        check_account(&payer, &key, quote.total)?;
        quote.check_time(anchor.head_time)?;
        let expires_in = Duration::from_secs(args.expires_in.into());
        // Nothing after this signs again.
        let transaction = anchor.sign(quote.transfers(account, &nonce), expires_in, Pack::Legacy, &key)?;
        let tx_id = transaction.id(Pack::Legacy);
        describe_transaction(&transaction, tx_id, report);
        say(args, &format!("signed {tx_id}; submitting it"));
        let (header, value) = quote.header(&transaction, &nonce)?;
        report["payment"] = value.as_str().into();
        let carrier = Carrier::Header { request, name: header, value };
        let submission = Submission { client: &client, carrier, tx_id };
        let on_retry = |text: &str| say(args, text);
        let submitted = submission.run(&node, transaction.expiration, expires_in, &on_retry).await;
        conclude(submitted, tx_id, &args.url, report)
    }

    fn ledger(&self) -> Result<Ledger, Failure> {
        Ledger::new(&self.args.nodes, Some(&self.args.url))
    }

    /// Submits a payment that an earlier run signed.
    async fn repeat(&self, payment: &str, report: &mut Value) -> Result<(), Failure> {
        let value = if payment == "-" { std::io::read_to_string(std::io::stdin())? } else { payment.to_owned() };
        let value = value.trim().to_owned();
        let payload = match PaymentPayload::decode_header(&value) {
            Ok(Ok(payload)) => payload,
            Ok(Err(refused)) => return Err(Failure::Payment(refused.to_string())),
            Err(error) => return Err(Failure::Payment(error.to_string())),
        };
        let transaction = payload.transaction;
        check_again(&transaction, self.account, self.max)?;
        let tx_id = transaction.id(Pack::Legacy);
        describe_transaction(&transaction, tx_id, report);
        report["payment"] = value.as_str().into();
        let node = self.ledger()?.reach(self.account).await?.node;
        let header = if payload.version == Version::V1 { "x-payment" } else { "payment-signature" };
        say(self.args, &format!("submitting {tx_id} again"));
        let client = client()?;
        let carrier = Carrier::Header { request: self.request, name: header, value };
        let submission = Submission { client: &client, carrier, tx_id };
        let timeout = transaction.expiration.since(SystemClock.now());
        let on_retry = |text: &str| say(self.args, text);
        let submitted = submission.run(&node, transaction.expiration, timeout, &on_retry).await;
        conclude(submitted, tx_id, &self.args.url, report)
    }
}

/// Checks that a signed payment transfers at most `max` from `account`, and nothing else.
fn check_again(transaction: &Transaction, account: AccountName, max: Money) -> Result<(), Failure> {
    let mut units = 0_u64;
    for operation in &transaction.operations {
        let Operation::Transfer(transfer) = operation else {
            return Err(Failure::Payment("contains more than transfers".to_owned()));
        };
        if transfer.from != account.as_str() {
            return Err(Failure::Payment(format!("is from {}, not from {account}", transfer.from)));
        }
        let money = transfer.amount.money().ok_or_else(|| Failure::Payment("is in neither HIVE nor HBD".to_owned()))?;
        if money.currency != max.currency {
            return Err(Unacceptable::OtherCurrency { price: money, max }.into());
        }
        units = units.saturating_add(money.units);
    }
    let price = Money::new(units, max.currency);
    if units > max.units { Err(Unacceptable::AboveMaximum { price, max }.into()) } else { Ok(()) }
}

fn describe_transaction(transaction: &Transaction, tx_id: TxId, report: &mut Value) {
    report["txId"] = tx_id.to_string().into();
    report["expiresAt"] = transaction.expiration.to_string().into();
}

fn address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    if matches!(url.scheme(), "http" | "https") && url.has_host() {
        Ok(url)
    } else {
        Err("must begin with https:// or http://".to_owned())
    }
}

fn say(args: &Args, text: &str) {
    if !args.json {
        // A closed standard error must not prevent the payment.
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
    fn the_key_cannot_be_on_the_command_line() {
        assert!(parse(&["--key", "5abc"]).is_err());
        assert!(parse(&["--key-file", "key"]).is_ok() && parse(&["--key-fd", "3"]).is_ok());
        assert!(parse(&["--key-file", "key", "--key-fd", "3"]).is_err());
    }

    #[test]
    fn account_and_maximum_are_needed_unless_a_wallet_has_them() {
        let parse = |line: &[&str]| Line::try_parse_from(["pay", "https://a.example/"].iter().chain(line)).is_ok();
        assert!(!parse(&[]) && !parse(&["--account", "alice"]) && !parse(&["--max", "1.000 HBD"]));
        assert!(parse(&["--wallet", "agent"]));
    }

    #[test]
    fn only_web_addresses_and_ledger_amounts_are_accepted() {
        for url in ["file:///etc/passwd", "ftp://a.example/", "a.example", "https://", ""] {
            assert!(Line::try_parse_from(["pay", url, "--account", "alice", "--max", "5.000 HBD"]).is_err(), "{url}");
        }
        for max in ["5", "5.000", "5.0 HBD", "-1.000 HBD", "5.000 USD"] {
            let line = ["pay", "https://a.example/", "--account", "alice", "--max", max];
            assert!(Line::try_parse_from(line).is_err(), "{max}");
        }
    }

    #[tokio::test]
    async fn a_payment_is_not_submitted_over_plain_http_to_another_host() {
        let args = Args { url: Url::parse("http://shop.example/for/x").unwrap(), ..parse(&[]).unwrap() };
        let failure = pay(&args, &mut json!({})).await.unwrap_err();
        assert!(matches!(failure, Failure::PlainHttp(_)) && failure.exit_code() == 2, "{failure}");
    }
}
