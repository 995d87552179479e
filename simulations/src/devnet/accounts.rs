//! Accounts as the nodes' API returns them.

use std::collections::BTreeSet;

use engine::{
    account::AccountName,
    hive::{Authority, PublicKey, Role, Symbol, check},
};
use serde_json::{Value, json};

use super::{
    failure::Failure,
    node_api::{CallResult, NodeApi, number, param, text, texts},
    shape::Shape,
};
use crate::ledger::{Account, BalanceKind};

/// The most accounts that one call gives (`DATABASE_API_SINGLE_QUERY_LIMIT`).
const MAX_ACCOUNTS: usize = 1_000;

impl NodeApi<'_> {
    pub(super) fn condenser_accounts(&self, params: &Value) -> CallResult {
        let found = self.shown(&texts(params, 0, "accounts")?, Shape::Condenser)?;
        Ok(found.into_iter().flatten().collect())
    }

    pub(super) fn lookup_account_names(&self, params: &Value) -> CallResult {
        let found = self.shown(&texts(params, 0, "accounts")?, Shape::Condenser)?;
        Ok(found.into_iter().map(Option::unwrap_or_default).collect())
    }

    pub(super) fn find_accounts(&self, params: &Value) -> CallResult {
        let found = self.shown(&texts(params, 0, "accounts")?, Shape::Nai)?;
        Ok(json!({ "accounts": found.into_iter().flatten().collect::<Vec<_>>() }))
    }

    fn shown(&self, names: &[&str], shape: Shape) -> Result<Vec<Option<Value>>, Failure> {
        if names.len() > MAX_ACCOUNTS {
            return Err(Failure::assert("args.accounts.size() <= DATABASE_API_SINGLE_QUERY_LIMIT", ""));
        }
        let view = self.view();
        Ok(names.iter().map(|name| view.account(name).map(|account| account_json(&account, shape))).collect())
    }

    pub(super) fn list_accounts(&self, params: &Value) -> CallResult {
        let limit = number(params, 1, "limit")?.min(1_000);
        let start = param(params, 0, "start")?.as_str().unwrap_or_default().to_owned();
        let view = self.view();
        let accounts: Vec<Value> = view
            .chain()
            .accounts()
            .filter(|account| account.name.as_str() >= start.as_str())
            .take(usize::try_from(limit).unwrap_or(MAX_ACCOUNTS))
            .map(|account| account_json(account, Shape::Nai))
            .collect();
        Ok(json!({ "accounts": accounts }))
    }

    pub(super) fn lookup_accounts(&self, params: &Value) -> CallResult {
        let limit = number(params, 1, "limit")?.min(1_000);
        let start = text(params, 0, "lower_bound_name")?;
        let names = self.host.chain.accounts().map(|account| account.name.as_str()).filter(|name| *name >= start);
        Ok(names.take(usize::try_from(limit).unwrap_or(MAX_ACCOUNTS)).collect())
    }

    pub(super) fn key_references(&self, api: &str, params: &Value) -> CallResult {
        let references: Vec<Vec<&str>> = texts(params, 0, "keys")?
            .into_iter()
            .map(|key| {
                let key = PublicKey::parse(key).map_err(|_| Failure::params("a key is STM…"))?;
                let named = |account: &&Account| {
                    let all = &account.authorities;
                    [&all.owner, &all.active, &all.posting].iter().any(|each| each.key_auths.contains_key(&key))
                };
                Ok(self.host.chain.accounts().filter(named).map(|account| account.name.as_str()).collect())
            })
            .collect::<Result<_, Failure>>()?;
        Ok(if api == "condenser_api" { json!(references) } else { json!({ "accounts": references }) })
    }

    /// Returns whether these keys have the authority of an account, by one role.
    pub(super) fn verify_account_authority(&self, api: &str, params: &Value) -> CallResult {
        let name = text(params, 0, "account")?;
        let keys: BTreeSet<PublicKey> = texts(params, 1, "signers")?
            .into_iter()
            .map(|key| PublicKey::parse(key).map_err(|_| Failure::params("a key is STM…")))
            .collect::<Result<_, _>>()?;
        let role = match params.get("level").and_then(Value::as_str) {
            None | Some("active") => Role::Active,
            Some("owner") => Role::Owner,
            Some("posting") => Role::Posting,
            Some(_) => return Err(Failure::params("level is owner, active or posting")),
        };
        let account = self.host.chain.account(name).ok_or_else(|| Failure::assert("account", "no such account"))?;
        let accounts = self.authorities();
        let valid = check(&BTreeSet::from([(role, account.name)]), &accounts, &keys).is_ok();
        Ok(if api == "condenser_api" { Value::Bool(valid) } else { json!({ "valid": valid }) })
    }

    pub(super) fn authorities(&self) -> std::collections::BTreeMap<AccountName, engine::hive::AccountAuthorities> {
        self.host.chain.accounts().map(|account| (account.name, account.authorities.clone())).collect()
    }
}

/// The time of something that never happened, as hived writes it.
const EPOCH: &str = "1970-01-01T00:00:00";
/// When a vote expires or a withdrawal is due that does not exist, as hived writes it.
const NEVER: &str = "1969-12-31T23:59:59";

/// Writes an account with every field that hived has; those of features that the chain lacks are empty.
fn account_json(account: &Account, shape: Shape) -> Value {
    let parts =
        [identity_json(account), balances_json(account, shape), unused_json(), unused_assets_json(account, shape)];
    let of_shape = match shape {
        Shape::Condenser => json!({
            "guest_bloggers": [], "market_history": [], "other_history": [], "post_history": [], "reputation": 0,
            "tags_usage": [], "transfer_history": [], "vesting_balance": "0.000 HIVE", "vote_history": [],
            "voting_power": 0, "witness_votes": [],
        }),
        Shape::Nai => json!({ "is_smt": false, "last_post_edit": EPOCH }),
    };
    let mut json = serde_json::Map::new();
    for part in parts.into_iter().chain([of_shape]) {
        let Value::Object(part) = part else { unreachable!("every part is an object") };
        json.extend(part);
    }
    Value::Object(json)
}

fn identity_json(account: &Account) -> Value {
    let authority =
        |authority: &Authority| serde_json::from_str::<Value>(&authority.to_json()).expect("an authority is JSON");
    let updated = account.updated.to_ledger();
    json!({
        "active": authority(&account.authorities.active),
        "created": account.created.to_ledger(),
        "id": account.id,
        "last_account_update": updated,
        "last_owner_update": updated,
        "memo_key": account.memo_key.to_string(),
        "name": account.name.as_str(),
        "owner": authority(&account.authorities.owner),
        "posting": authority(&account.authorities.posting),
        "recovery_account": "initminer",
        "reset_account": "null",
    })
}

fn balances_json(account: &Account, shape: Shape) -> Value {
    let balance = |pot| shape.amount(account.balance(pot));
    json!({
        "balance": balance(BalanceKind::Hive),
        "hbd_balance": balance(BalanceKind::Hbd),
        "post_voting_power": balance(BalanceKind::Vests),
        "savings_balance": balance(BalanceKind::SavingsHive),
        "savings_hbd_balance": balance(BalanceKind::SavingsHbd),
        "vesting_shares": balance(BalanceKind::Vests),
    })
}

/// Amounts and voting power of features that the chain lacks: rewards, delegation, withdrawal.
fn unused_assets_json(account: &Account, shape: Shape) -> Value {
    let none = |symbol| shape.units(0, symbol);
    let mana = json!({ "current_mana": 0, "last_update_time": account.created.seconds() });
    json!({
        "delegated_vesting_shares": none(Symbol::Vests),
        "downvote_manabar": mana,
        "received_vesting_shares": none(Symbol::Vests),
        "reward_hbd_balance": none(Symbol::Hbd),
        "reward_hive_balance": none(Symbol::Hive),
        "reward_vesting_balance": none(Symbol::Vests),
        "reward_vesting_hive": none(Symbol::Hive),
        "vesting_withdraw_rate": none(Symbol::Vests),
        "voting_manabar": mana,
    })
}

/// Counters, times and texts of features that the chain lacks: posts, votes, interest, recovery.
fn unused_json() -> Value {
    json!({
        "can_vote": true,
        "comment_count": 0,
        "curation_rewards": 0,
        "delayed_votes": [],
        "governance_vote_expiration_ts": NEVER,
        "hbd_last_interest_payment": EPOCH,
        "hbd_seconds": "0",
        "hbd_seconds_last_update": EPOCH,
        "json_metadata": "",
        "last_account_recovery": EPOCH,
        "last_post": EPOCH,
        "last_root_post": EPOCH,
        "last_vote_time": EPOCH,
        "lifetime_vote_count": 0,
        "mined": false,
        "next_vesting_withdrawal": NEVER,
        "open_recurrent_transfers": 0,
        "pending_claimed_accounts": 0,
        "pending_transfers": 0,
        "post_bandwidth": 0,
        "post_count": 0,
        "posting_json_metadata": "",
        "posting_rewards": 0,
        "previous_owner_update": EPOCH,
        "proxied_vsf_votes": [0, 0, 0, 0],
        "proxy": "",
        "savings_hbd_last_interest_payment": EPOCH,
        "savings_hbd_seconds": "0",
        "savings_hbd_seconds_last_update": EPOCH,
        "savings_withdraw_requests": 0,
        "to_withdraw": 0,
        "withdraw_routes": 0,
        "withdrawn": 0,
        "witnesses_voted_for": 0,
    })
}
