//! `hivetill tx inspect`: decodes and validates transactions from standard input, and writes a line of JSON for each.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, BufRead, Write},
    path::PathBuf,
};

use engine::{
    account::AccountName,
    hive::{AccountAuthorities, Authority, ChainId, Form, Layer, Pack, PublicKey, Refusal, Role, Transaction},
};
use serde_json::{Value, json};

/// Maximum length of a line in bytes; a transaction has at most 64 KiB.
const MAX_LINE: usize = 1 << 20;

/// Arguments of `hivetill tx`.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// The subcommand
    #[command(subcommand)]
    pub command: Command,
}

/// Commands on transactions.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum Command {
    /// Read transactions from standard input, one JSON object a line in condenser or HF26 form, and write a line of
    /// JSON for each: ids, digests and signers in both serializations, the operations, and errors
    Inspect(InspectArgs),
}

/// Arguments of `hivetill tx inspect`.
#[derive(Debug, Clone, clap::Args)]
pub struct InspectArgs {
    /// Chain id of the signatures, 64 hex characters; by default the main chain
    #[arg(long, value_name = "HEX", value_parser = chain_id)]
    pub chain_id: Option<ChainId>,
    /// Also check whether each transaction is authorized by the authorities in this JSON file: an object from names to
    /// `{"active": …}`, or a response of `find_accounts` or `get_accounts`
    #[arg(long, value_name = "FILE")]
    pub accounts: Option<PathBuf>,
}

/// The failure of an inspection.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A file, standard input or standard output cannot be read or written.
    #[error("{name}: {source}")]
    Io {
        /// The path or the name of the stream.
        name: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The accounts file is invalid.
    #[error("the accounts file: {0}")]
    Accounts(String),
}

/// Runs a command on transactions.
///
/// # Errors
/// [`Failure`]. An invalid transaction is not a failure: its line contains the problems.
#[expect(clippy::unused_async, reason = "all commands are asynchronous")]
pub async fn run(args: Args) -> Result<(), Failure> {
    let Command::Inspect(args) = args.command;
    let accounts = match &args.accounts {
        Some(path) => {
            let text =
                std::fs::read(path).map_err(|source| Failure::Io { name: path.display().to_string(), source })?;
            Some(read_accounts(&text).map_err(Failure::Accounts)?)
        }
        None => None,
    };
    let chain = args.chain_id.unwrap_or(ChainId::MAINNET);
    inspect_lines(io::stdin().lock(), io::stdout().lock(), chain, accounts.as_ref())
        .map_err(|source| Failure::Io { name: "standard input or output".to_owned(), source })
}

type Accounts = BTreeMap<AccountName, AccountAuthorities>;

/// Writes a line of JSON for each non-empty line.
fn inspect_lines(
    mut input: impl BufRead,
    mut output: impl Write,
    chain: ChainId,
    accounts: Option<&Accounts>,
) -> io::Result<()> {
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let limit = u64::try_from(MAX_LINE).unwrap_or(u64::MAX);
        if io::Read::take(&mut input, limit).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let is_truncated = line.len() == MAX_LINE && !line.ends_with(b"\n");
        if is_truncated {
            input.skip_until(b'\n')?;
        }
        let text = line.trim_ascii();
        if text.is_empty() {
            continue;
        }
        let mut json = if is_truncated { too_long() } else { inspect(text, chain, accounts) };
        json["line"] = Value::from(number);
        writeln!(output, "{json}")?;
    }
    output.flush()
}

fn too_long() -> Value {
    json!({ "ok": false, "problems": [{ "layer": "decode", "message": "the line is longer than 1 MiB" }] })
}

/// Returns the description of a transaction, with its problems.
#[must_use]
pub fn inspect(text: &[u8], chain: ChainId, accounts: Option<&Accounts>) -> Value {
    let transaction = match Transaction::parse(text) {
        Ok(transaction) => transaction,
        Err(error) => {
            let problem =
                json!({ "layer": error.layer().as_str(), "field": error.field, "message": error.to_string() });
            return json!({ "ok": false, "problems": [problem] });
        }
    };
    let mut problems = Vec::new();
    let mut add_problem =
        |layer: Layer, message: String| problems.push(json!({ "layer": layer.as_str(), "message": message }));
    if let Err(invalid) = transaction.validate() {
        add_problem(Layer::Validate, invalid.to_string());
    }
    if !transaction.survives_json() {
        add_problem(
            Layer::Policy,
            "has control characters that hived's JSON cannot represent: its signature would be invalid".into(),
        );
    }
    // Key recovery is expensive: it runs once for each serialization.
    let recovered = Pack::ALL.map(|pack| transaction.recover(chain, pack));
    let [hf26, legacy] = &recovered;
    for (pack, keys) in [(Pack::Hf26, hf26), (Pack::Legacy, legacy)] {
        if let Err(refusal) = keys {
            add_problem(refusal.layer(), format!("{pack}: {refusal}"));
        }
    }
    let required: Vec<Value> = transaction
        .required()
        .unwrap_or_default()
        .into_iter()
        .map(|(role, account)| json!({ "account": account.as_str(), "role": role_name(role) }))
        .collect();
    let mut json = json!({
        "expiration": transaction.expiration.to_ledger(),
        "refBlockNum": transaction.ref_block_num,
        "refBlockPrefix": transaction.ref_block_prefix,
        "operations": operations(&transaction),
        "signatures": transaction.signatures.len(),
        "required": required,
        "legacy": serialization(&transaction, chain, Pack::Legacy, legacy),
        "hf26": serialization(&transaction, chain, Pack::Hf26, hf26),
    });
    if let Some(accounts) = accounts {
        let authorized = transaction.authorize_by(accounts, |pack| match pack {
            Pack::Hf26 => hf26.clone(),
            Pack::Legacy => legacy.clone(),
        });
        if let Err(refusal) = &authorized {
            add_problem(refusal.layer(), refusal.to_string());
        }
        json["authorized"] = authorization(authorized);
    }
    json["ok"] = Value::from(problems.is_empty());
    json["problems"] = Value::from(problems);
    json
}

/// Returns id, digest and signing keys of a transaction in one serialization.
fn serialization(
    transaction: &Transaction,
    chain: ChainId,
    pack: Pack,
    keys: &Result<BTreeSet<PublicKey>, Refusal>,
) -> Value {
    json!({
        "id": transaction.id(pack).to_string(),
        "digest": hex::encode(transaction.digest(chain, pack)),
        "keys": keys.as_ref().ok().map(|keys| keys.iter().map(PublicKey::to_string).collect::<Vec<_>>()),
    })
}

fn operations(transaction: &Transaction) -> Vec<Value> {
    let json = |form| serde_json::from_str::<Value>(&transaction.to_json(form)).expect("a transaction is JSON");
    match json(Form::Condenser)["operations"].take() {
        Value::Array(operations) => operations,
        _ => Vec::new(),
    }
}

fn authorization(authorized: Result<engine::hive::Authorized, Refusal>) -> Value {
    match authorized {
        Ok(authorized) => {
            json!({ "authorized": true, "pack": authorized.pack.as_str(), "id": authorized.tx_id.to_string() })
        }
        Err(Refusal::Authority(denied)) => json!({
            "authorized": false,
            "missing": { "account": denied.account.as_str(), "role": role_name(denied.role) },
            "unknownAccounts": denied.unknown.iter().map(AccountName::as_str).collect::<Vec<_>>(),
        }),
        Err(_) => json!({ "authorized": false }),
    }
}

const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Owner => "owner",
        Role::Active => "active",
        Role::Posting => "posting",
    }
}

/// Parses accounts: `{"alice": {"active": …}}`, `[{"name": "alice", "active": …}]` or `{"accounts": […]}`.
fn read_accounts(text: &[u8]) -> Result<Accounts, String> {
    let json: Value = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let list = json.get("accounts").unwrap_or(&json);
    let pairs: Vec<(&str, &Value)> = match (list, &json) {
        (Value::Array(list), _) => list
            .iter()
            .map(|account| Ok((account["name"].as_str().ok_or("an account has no `name`")?, account)))
            .collect::<Result<_, String>>()?,
        (_, Value::Object(map)) => map.iter().map(|(name, account)| (name.as_str(), account)).collect(),
        _ => return Err("must be an object or an array of accounts".to_owned()),
    };
    let each = |(name, json): (&str, &Value)| {
        let account = AccountName::parse(name).map_err(|error| format!("`{name}` {error}"))?;
        let role = |role: &str| match json.get(role) {
            Some(authority) => Authority::parse(authority.to_string().as_bytes())
                .map_err(|error| format!("the {role} authority of `{name}`: {error}")),
            // An authority that nobody satisfies: a threshold of 1 and no members.
            None => Ok(Authority { weight_threshold: 1, ..Authority::default() }),
        };
        Ok((account, AccountAuthorities { owner: role("owner")?, active: role("active")?, posting: role("posting")? }))
    };
    pairs.into_iter().map(each).collect()
}

fn chain_id(text: &str) -> Result<ChainId, String> {
    ChainId::parse(text).ok_or_else(|| "must be 64 hex characters".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNED: &str = r#"{"ref_block_num":1,"ref_block_prefix":2,"expiration":"2026-11-20T14:05:00","operations":[["transfer",{"from":"alice","to":"shop.payments","amount":"1.000 HBD","memo":"single_key"}]],"extensions":[],"signatures":["206c4de6f944093897aff91a6c4ca37b605f5c99027cbf264839cc1762709f6c2b500329632bd1d24322a8108aad07bdddd4afb276d3649183c9be963b1a0fcbc1"]}"#;
    const ALICE: &str = r#"{"weight_threshold":1,"account_auths":[],"key_auths":[["STM8Cf87R6ie9vPFzXNtNH6S5LyB7pt1b38ecGrZG8hUL8HfBL3X1",1]]}"#;

    fn lines(input: &str, accounts: Option<&str>) -> Vec<Value> {
        let accounts = accounts.map(|text| read_accounts(text.as_bytes()).unwrap());
        let mut output = Vec::new();
        inspect_lines(input.as_bytes(), &mut output, ChainId::MAINNET, accounts.as_ref()).unwrap();
        String::from_utf8(output).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn a_valid_transaction_has_ids_signers_and_operations() {
        let [line] = &lines(SIGNED, None)[..] else { panic!("one line") };
        assert_eq!(line["ok"], true);
        assert_eq!(line["legacy"]["keys"][0], "STM8Cf87R6ie9vPFzXNtNH6S5LyB7pt1b38ecGrZG8hUL8HfBL3X1");
        assert_ne!(line["hf26"]["keys"][0], line["legacy"]["keys"][0]);
        assert_ne!(line["hf26"]["id"], line["legacy"]["id"]);
        assert_eq!(line["operations"][0][1]["to"], "shop.payments");
        assert_eq!(line["required"], json!([{ "account": "alice", "role": "active" }]));
        assert_eq!(line.get("authorized"), None);
    }

    #[test]
    fn accounts_are_read_in_three_formats() {
        for accounts in [
            format!(r#"{{"alice":{{"active":{ALICE}}}}}"#),
            format!(r#"[{{"name":"alice","active":{ALICE},"owner":{ALICE}}}]"#),
            format!(r#"{{"accounts":[{{"name":"alice","active":{ALICE}}}]}}"#),
        ] {
            let line = &lines(SIGNED, Some(&accounts))[0];
            assert_eq!(line["authorized"]["authorized"], true, "{accounts}");
            assert_eq!(line["authorized"]["pack"], "legacy");
        }
        let line = &lines(SIGNED, Some("{}"))[0];
        assert_eq!(line["authorized"]["unknownAccounts"], json!(["alice"]));
        assert_eq!((&line["ok"], &line["problems"][0]["layer"]), (&json!(false), &json!("authority")));
        assert!(read_accounts(br#"{"alice":{"active":{"weight_threshold":-1}}}"#).is_err());
    }

    #[test]
    fn every_line_has_a_result_with_its_number() {
        let input = format!("{SIGNED}\n\nnonsense\n{}\n{SIGNED}", "x".repeat(MAX_LINE + 5));
        let lines = lines(&input, None);
        let results: Vec<_> = lines.iter().map(|line| (line["line"].as_u64().unwrap(), line["ok"] == true)).collect();
        assert_eq!(results, [(1, true), (3, false), (4, false), (5, true)]);
    }

    #[test]
    fn problems_have_their_layer_and_field() {
        let line = &lines(&SIGNED.replace("1.000 HBD", "1.0 HBD"), None)[0];
        assert_eq!(line["problems"][0]["field"], "operations[0].amount");
        let line = &lines(&SIGNED.replace("1.000 HBD", "0.000 HBD"), None)[0];
        assert_eq!(line["problems"][0]["layer"], "validate");
        let line = &lines(&SIGNED.replace("[\"20", "[\"00"), None)[0];
        assert_eq!(line["problems"][0]["layer"], "signature");
        assert_eq!(line["legacy"]["keys"], Value::Null);
        let line = &lines(&SIGNED.replace("single_key", "\\u0001"), None)[0];
        assert_eq!(line["problems"][0]["layer"], "policy");
    }
}
