//! The control API: what tests do to the ledger so that they need not wait. JSON-RPC on a port of its own.
//!
//! Parameters are objects; unknown members are refused, so that a misspelt one does not go unnoticed. `node` is a
//! node's place among [`Options::nodes`](super::Options::nodes), 0 if left out.
//!
//! `help.rs` has the methods; `control.help` lists them.
//!
//! The changes of `create_account`, `set_authority`, `grant`, `set_rc` and `set_price` need no block, and no fork takes
//! them back. A restart resets faults of nodes, held things and the market's price; the chain stays.

use std::{collections::BTreeSet, time::Duration};

use engine::{
    hive::{Asset, Authority, Pack, Role},
    ledger::TxId,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    failure::Failure,
    foreign::Foreign,
    help,
    host::Host,
    node_faults::{heal, node},
    params::{money, name, price, public, read, wrong},
    status::status,
};
use crate::ledger::{BalanceKind, Orphans};

/// More blocks than this at once are a mistake.
const MAX_BLOCKS: u32 = 100_000;

/// Executes one call.
pub(super) fn call(host: &mut Host, method: &str, params: &Value) -> Result<Value, Failure> {
    match method {
        "control.help" => read::<Nothing>(params).map(|_| help::help()),
        "control.status" => read::<Nothing>(params).map(|_| status(host)),
        "control.accounts" => read::<Nothing>(params).map(|_| accounts(host)),
        "control.produce" => produce(host, read(params)?),
        "control.advance_time" => advance_time(host, read(params)?),
        "control.auto_produce" => auto_produce(host, &read(params)?),
        "control.hold_irreversibility" => {
            host.chain.hold_irreversibility(read::<Held>(params)?.held);
            Ok(status(host))
        }
        "control.set_irreversibility_lag" => {
            host.chain.set_irreversibility_lag(read::<Lag>(params)?.blocks);
            Ok(status(host))
        }
        "control.hold_transactions" => {
            host.chain.hold_transactions(read::<Held>(params)?.held);
            Ok(status(host))
        }
        "control.forget_mempool" => {
            read::<Nothing>(params)?;
            Ok(json!({ "forgotten": host.chain.forget_mempool() }))
        }
        "control.fork" => fork(host, read(params)?),
        "control.node" => node(host, params),
        "control.heal" => heal(host, params),
        "control.create_account" => create_account(host, &read(params)?),
        "control.set_authority" => set_authority(host, &read(params)?),
        "control.grant" => grant(host, &read(params)?),
        "control.foreign_operations" => add_foreign(host, params),
        "control.set_rc" => set_rc(host, &read(params)?),
        "control.set_price" => set_price(host, &read(params)?),
        "control.set_market" => set_market(host, &read(params)?),
        "control.transfer" => transfer(host, &read(params)?),
        _ => Err(help::unknown(method)),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Held {
    held: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Lag {
    blocks: u32,
}

fn accounts(host: &Host) -> Value {
    let each = |account: &crate::ledger::Account| {
        let mut json = json!({
            "name": account.name.as_str(),
            "balance": account.balance(BalanceKind::Hive).to_string(),
            "hbdBalance": account.balance(BalanceKind::Hbd).to_string(),
        });
        let (derived, memo_key) = host.genesis.authorities(account.name.as_str());
        if account.authorities == derived && account.memo_key == memo_key {
            json["keys"] = keys(host, account.name.as_str());
        }
        json
    };
    host.chain.accounts().map(each).collect()
}

fn keys(host: &Host, name: &str) -> Value {
    let wif = |role| host.genesis.key(name, role).to_wif().to_string();
    json!({
        "owner": wif(Role::Owner),
        "active": wif(Role::Active),
        "posting": wif(Role::Posting),
        "memo": host.genesis.memo_key(name).to_wif().to_string(),
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Produce {
    #[serde(default = "one")]
    count: u32,
}

const fn one() -> u32 {
    1
}

fn produce(host: &mut Host, params: Produce) -> Result<Value, Failure> {
    blocks(host, params.count)?;
    Ok(status(host))
}

fn blocks(host: &mut Host, count: u32) -> Result<(), Failure> {
    if count > MAX_BLOCKS {
        return Err(wrong("at most 100000 blocks at once"));
    }
    let now = host.now();
    for _ in 0..count {
        host.chain.produce(now);
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AdvanceTime {
    seconds: u64,
    #[serde(default = "one")]
    blocks: u32,
}

fn advance_time(host: &mut Host, params: AdvanceTime) -> Result<Value, Failure> {
    let ten_years = 10 * 366 * 86_400;
    if params.seconds > ten_years {
        return Err(wrong("at most ten years at once"));
    }
    // The chain may already be ahead of the clock; the requested time is added to its present time.
    let stands = host.chain.head_time().since(host.now());
    host.ahead += stands + Duration::from_secs(params.seconds);
    blocks(host, params.blocks)?;
    Ok(status(host))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct AutoProduce {
    on: bool,
    interval_ms: Option<u64>,
}

fn auto_produce(host: &mut Host, params: &AutoProduce) -> Result<Value, Failure> {
    if params.interval_ms == Some(0) {
        return Err(wrong("intervalMs must be at least 1"));
    }
    host.auto_produce = params.on;
    host.block_interval = params.interval_ms.map_or(host.block_interval, Duration::from_millis);
    Ok(status(host))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fork {
    depth: u32,
    #[serde(default)]
    transactions: Transactions,
    blocks: Option<u32>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
enum Transactions {
    #[default]
    Keep,
    #[serde(untagged)]
    Word(DropKeyword),
    #[serde(untagged)]
    These { drop: Vec<String> },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum DropKeyword {
    Drop,
}

fn fork(host: &mut Host, params: Fork) -> Result<Value, Failure> {
    let orphans = match params.transactions {
        Transactions::Keep => Orphans::Keep,
        Transactions::Word(DropKeyword::Drop) => Orphans::Drop,
        Transactions::These { drop } => {
            let ids = drop.iter().map(|id| TxId::parse(id).ok_or_else(|| wrong("an id has 40 hex characters")));
            Orphans::DropThese(ids.collect::<Result<BTreeSet<_>, _>>()?)
        }
    };
    let count = params.blocks.unwrap_or(params.depth.saturating_add(1));
    if count > MAX_BLOCKS {
        return Err(wrong("at most 100000 blocks at once"));
    }
    let fork = host.chain.fork(params.depth, &orphans).map_err(|error| Failure::assert("", &error.to_string()))?;
    blocks(host, count)?;
    Ok(json!({
        "orphanedBlocks": fork.orphaned_blocks.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "dropped": fork.dropped.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "status": status(host),
    }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct CreateAccount {
    name: String,
    #[serde(default)]
    balances: Vec<String>,
    owner: Option<Value>,
    active: Option<Value>,
    posting: Option<Value>,
    memo_key: Option<String>,
}

fn create_account(host: &mut Host, params: &CreateAccount) -> Result<Value, Failure> {
    let account = name(&params.name)?;
    if host.chain.account(&params.name).is_some() {
        return Err(wrong("there is an account of this name; use control.set_authority or control.grant"));
    }
    let money = params.balances.iter().map(|text| money(text)).collect::<Result<Vec<_>, _>>()?;
    let (mut authorities, mut memo_key) = host.genesis.authorities(&params.name);
    let given = [
        (&mut authorities.owner, &params.owner),
        (&mut authorities.active, &params.active),
        (&mut authorities.posting, &params.posting),
    ];
    for (authority, value) in given {
        if let Some(value) = value {
            *authority = read_authority(value)?;
        }
    }
    if let Some(key) = &params.memo_key {
        memo_key = public(key)?;
    }
    host.chain.set_account(&account, authorities, memo_key);
    for each in money {
        host.chain.grant(&account, each.currency, i64::try_from(each.units).unwrap_or(i64::MAX));
    }
    Ok(json!({ "name": params.name, "keys": keys(host, &params.name) }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetAuthority {
    name: String,
    role: String,
    authority: Value,
}

fn set_authority(host: &mut Host, params: &SetAuthority) -> Result<Value, Failure> {
    let account = host.chain.account(&params.name).ok_or_else(|| wrong("there is no such account"))?;
    let (name, mut authorities, memo_key) = (account.name, account.authorities.clone(), account.memo_key);
    let authority = read_authority(&params.authority)?;
    match params.role.as_str() {
        "owner" => authorities.owner = authority,
        "active" => authorities.active = authority,
        "posting" => authorities.posting = authority,
        _ => return Err(wrong("role is owner, active or posting")),
    }
    host.chain.set_account(&name, authorities, memo_key);
    Ok(json!({ "name": params.name }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Grant {
    name: String,
    amount: String,
}

fn grant(host: &mut Host, params: &Grant) -> Result<Value, Failure> {
    let (taken, text) = params.amount.strip_prefix('-').map_or((false, &*params.amount), |text| (true, text));
    let money = money(text)?;
    let units = i64::try_from(money.units).unwrap_or(i64::MAX);
    if !host.chain.grant(&name(&params.name)?, money.currency, if taken { -units } else { units }) {
        return Err(wrong("there is no such account"));
    }
    let pot = BalanceKind::liquid(Asset::from(money).symbol);
    let balance = host.chain.account(&params.name).map(|account| account.balance(pot).to_string());
    Ok(json!({ "name": params.name, "balance": balance }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct SetRc {
    name: String,
    has_rc: bool,
}

fn set_rc(host: &mut Host, params: &SetRc) -> Result<Value, Failure> {
    if !host.chain.set_rc(&name(&params.name)?, params.has_rc) {
        return Err(wrong("there is no such account"));
    }
    Ok(json!({ "name": params.name, "hasRc": params.has_rc }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetPrice {
    base: String,
    quote: String,
}

fn set_price(host: &mut Host, params: &SetPrice) -> Result<Value, Failure> {
    host.chain.set_price(price(&params.base, &params.quote)?);
    Ok(json!({ "base": params.base, "quote": params.quote }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetMarket {
    base: Option<String>,
    quote: Option<String>,
}

fn set_market(host: &mut Host, params: &SetMarket) -> Result<Value, Failure> {
    host.chain.set_market(match (&params.base, &params.quote) {
        (Some(base), Some(quote)) => Some(price(base, quote)?),
        (None, None) => None,
        _ => return Err(wrong("base and quote are given together, or neither")),
    });
    Ok(json!({ "base": params.base, "quote": params.quote }))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TransferParams {
    from: String,
    to: String,
    amount: String,
    #[serde(default)]
    memo: String,
    #[serde(default)]
    pack: Option<String>,
}

fn transfer(host: &mut Host, params: &TransferParams) -> Result<Value, Failure> {
    let TransferParams { from, to, amount, memo, pack } = params;
    let key = host.genesis.key(from, Role::Active);
    let built = host.chain.transfer(from, to, amount, memo, &key);
    let mut transaction = built.map_err(|error| wrong(&format!("amount {error}")))?;
    match pack.as_deref() {
        None | Some("legacy") => {}
        Some("hf26") => {
            transaction.signatures.clear();
            transaction.sign(host.chain.chain_id(), Pack::Hf26, &key);
        }
        Some(_) => return Err(wrong("pack is legacy or hf26")),
    }
    let id = host.chain.broadcast(transaction)?;
    Ok(json!({ "id": id.to_string() }))
}

/// Adds operations of a later hard fork to the next blocks.
fn add_foreign(host: &mut Host, params: &Value) -> Result<Value, Failure> {
    let first_block = host.chain.head().number() + 1;
    host.foreign.push(Foreign::read(first_block, params)?);
    Ok(json!({ "firstBlock": first_block }))
}

/// Reads an authority: one key, or the whole with weights.
fn read_authority(value: &Value) -> Result<Authority, Failure> {
    match value {
        Value::String(key) => public(key).map(Authority::of_key),
        other => {
            Authority::parse(other.to_string().as_bytes()).map_err(|error| wrong(&format!("the authority: {error}")))
        }
    }
}
