//! Global data: properties, prices, versions.

use engine::hive::{Asset, Symbol};
use serde_json::{Value, json};

use super::{
    failure::Failure,
    node_api::{CallResult, NodeApi, text, texts},
    shape::Shape,
};
use crate::ledger::BalanceKind;

/// The hived whose rules this chain follows.
const HIVED: &str = "1.28.0";
/// Hard fork 28 and all before.
const HARDFORKS: usize = 28;
/// The minimum of the totals of vests: 1 000.000000 VESTS for 1.000 HIVE.
const VESTS_AT_LEAST: i64 = 1_000_000_000;
/// Witnesses that take turns.
const WITNESSES: u32 = 21;
/// The main chain's terms for accounts that are claimed.
const ACCOUNT_SUBSIDY_BUDGET: u32 = 797;
const ACCOUNT_SUBSIDY_DECAY: u32 = 347_321;

impl NodeApi<'_> {
    pub(super) fn properties(&self, shape: Shape) -> Value {
        let view = self.view();
        let chain = view.chain();
        let (head, time) = view.head();
        let supply = |pots: [BalanceKind; 2]| pots.into_iter().map(|pot| chain.supply(pot).units).sum::<i64>();
        let hive = supply([BalanceKind::Hive, BalanceKind::SavingsHive]);
        let hbd = supply([BalanceKind::Hbd, BalanceKind::SavingsHbd]);
        // Clients divide by the totals; nobody here has vests, and the main chain always has some.
        let vests = chain.supply(BalanceKind::Vests).units.max(VESTS_AT_LEAST);
        let none = |symbol| shape.units(0, symbol);
        let witness = chain.block(head.number()).map_or("", |block| block.header.witness.as_str());
        let mut json = json!({
            "available_account_subsidies": 15_302_864,
            "content_reward_percent": 6_500,
            "current_aslot": head.number(),
            "current_hbd_supply": shape.units(hbd, Symbol::Hbd),
            "current_remove_threshold": 200,
            "current_supply": shape.units(hive, Symbol::Hive),
            "current_witness": witness,
            "delegation_return_period": 432_000,
            "dhf_interval_ledger": none(Symbol::Hbd),
            "downvote_pool_percent": 2_500,
            "early_voting_seconds": 86_400,
            "hbd_interest_rate": 1_500,
            "hbd_print_rate": 10_000,
            "hbd_start_percent": 2_000,
            "hbd_stop_percent": 2_000,
            "head_block_id": head.to_string(),
            "head_block_number": head.number(),
            "init_hbd_supply": none(Symbol::Hbd),
            "last_budget_time": chain.genesis_time().to_ledger(),
            "last_irreversible_block_num": view.irreversible_num(),
            "max_consecutive_recurrent_transfer_failures": 10,
            "max_open_recurrent_transfers": 255,
            "max_recurrent_transfer_end_date": 730,
            "maximum_block_size": 65_536,
            "mid_voting_seconds": 172_800,
            "min_recurrent_transfers_recurrence": 24,
        });
        let rest = json!({
            "next_daily_maintenance_time": chain.genesis_time().to_ledger(),
            "next_maintenance_time": chain.genesis_time().to_ledger(),
            "num_pow_witnesses": 0,
            "participation_count": 128,
            "pending_rewarded_vesting_hive": none(Symbol::Hive),
            "pending_rewarded_vesting_shares": none(Symbol::Vests),
            "proposal_fund_percent": 1_000,
            "recent_slots_filled": u128::MAX.to_string(),
            "required_actions_partition_percent": 0,
            "reverse_auction_seconds": 0,
            "target_votes_per_period": 50,
            "time": time.to_ledger(),
            "total_pow": 0,
            "total_reward_fund_hive": none(Symbol::Hive),
            "total_reward_shares2": "0",
            "total_vesting_fund_hive": shape.units(vests / 1_000_000, Symbol::Hive),
            "total_vesting_shares": shape.units(vests, Symbol::Vests),
            "vesting_reward_percent": 1_500,
            "virtual_supply": shape.units(hive, Symbol::Hive),
            "vote_power_reserve_rate": 10,
        });
        if let (Value::Object(members), Value::Object(rest)) = (&mut json, rest) {
            members.extend(rest);
        }
        if shape == Shape::Nai {
            json["id"] = Value::from(0);
        }
        json
    }

    pub(super) fn price(&self, shape: Shape) -> Value {
        let price = self.view().price();
        let units = |units: u64| i64::try_from(units).unwrap_or(i64::MAX);
        json!({
            "base": shape.amount(Asset { units: units(price.base_hbd_units), symbol: Symbol::Hbd }),
            "quote": shape.amount(Asset { units: units(price.quote_hive_units), symbol: Symbol::Hive }),
        })
    }

    pub(super) fn feed(&self, shape: Shape) -> Value {
        let price = self.price(shape);
        json!({
            "id": 0,
            "current_median_history": price,
            "market_median_history": price,
            "current_min_history": price,
            "current_max_history": price,
            "price_history": [price],
        })
    }

    /// The internal market: one bid and one ask at its price.
    pub(super) fn order_book(&self) -> Value {
        let (view, shape) = (self.view(), Shape::Condenser);
        let (price, created) = (view.chain().market(), view.head().1.to_ledger());
        let amount =
            |units: u64, symbol| shape.amount(Asset { units: i64::try_from(units).unwrap_or(i64::MAX), symbol });
        let hbd = amount(price.base_hbd_units, Symbol::Hbd);
        let hive = amount(price.quote_hive_units, Symbol::Hive);
        let micro = u128::from(price.base_hbd_units) * 1_000_000 / u128::from(price.quote_hive_units);
        let real_price = format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000);
        let order = |base: &Value, quote: &Value| {
            json!({
                "order_price": { "base": base, "quote": quote },
                "real_price": real_price,
                "hive": price.quote_hive_units,
                "hbd": price.base_hbd_units,
                "created": created,
            })
        };
        json!({ "bids": [order(&hbd, &hive)], "asks": [order(&hive, &hbd)] })
    }

    pub(super) fn witnesses(&self) -> Value {
        (0..WITNESSES).map(|each| format!("witness-{each:02}")).collect()
    }

    /// The schedule never changes: the same witnesses take turns, by the same properties.
    pub(super) fn witness_schedule(&self, shape: Shape) -> Value {
        let next = self.view().head().0.number() / WITNESSES * WITNESSES + WITNESSES;
        let subsidy = json!({
            "resource_unit": 10_000,
            "budget_per_time_unit": ACCOUNT_SUBSIDY_BUDGET,
            "pool_eq": 157_691_079,
            "max_pool_size": 157_691_079,
            "decay_params": {
                "decay_per_time_unit": ACCOUNT_SUBSIDY_DECAY,
                "decay_per_time_unit_denom_shift": 36,
            },
            "min_decay": 0,
        });
        json!({
            "id": 0,
            "current_virtual_time": "0",
            "next_shuffle_block_num": next,
            "current_shuffled_witnesses": self.witnesses(),
            "num_scheduled_witnesses": WITNESSES,
            "elected_weight": 1,
            "timeshare_weight": 5,
            "miner_weight": 1,
            "witness_pay_normalization_factor": 25,
            "median_props": {
                "account_creation_fee": shape.units(0, Symbol::Hive),
                "maximum_block_size": 65_536,
                "hbd_interest_rate": 1_500,
                "account_subsidy_budget": ACCOUNT_SUBSIDY_BUDGET,
                "account_subsidy_decay": ACCOUNT_SUBSIDY_DECAY,
            },
            "majority_version": HIVED,
            "max_voted_witnesses": 20,
            "max_miner_witnesses": 0,
            "max_runner_witnesses": 1,
            "hardfork_required_witnesses": 17,
            "account_subsidy_rd": subsidy,
            "account_subsidy_witness_rd": subsidy,
            "min_witness_account_subsidy_decay": 0,
        })
    }

    /// The fund for posts, which is empty: this chain pays no rewards.
    pub(super) fn post_fund(&self, shape: Shape) -> Value {
        json!({
            "id": 0,
            "name": "post",
            "reward_balance": shape.units(0, Symbol::Hive),
            "recent_claims": "0",
            "last_update": self.view().head().1.to_ledger(),
            "content_constant": "2000000000000",
            "percent_curation_rewards": 5_000,
            "percent_content_rewards": 10_000,
            "author_reward_curve": "linear",
            "curation_reward_curve": "linear",
        })
    }

    /// Returns the empty response of a list that this chain never has; none for a method that is no such list.
    pub(super) fn nothing_of(api: &str, name: &str) -> Option<Value> {
        let member = match (api, name) {
            (
                "condenser_api",
                "get_conversion_requests"
                | "get_expiring_vesting_delegations"
                | "get_open_orders"
                | "get_vesting_delegations"
                | "get_withdraw_routes"
                | "get_witnesses_by_vote",
            ) => return Some(json!([])),
            ("database_api", "find_hbd_conversion_requests" | "list_hbd_conversion_requests") => "requests",
            ("database_api", "find_limit_orders") => "orders",
            ("database_api", "find_vesting_delegations" | "list_vesting_delegations") => "delegations",
            ("database_api", "find_withdraw_vesting_routes") => "routes",
            ("database_api", "find_witnesses" | "list_witnesses") => "witnesses",
            _ => return None,
        };
        Some(json!({ member: [] }))
    }

    /// Follows: what social nodes return for an account without any.
    pub(super) fn follow_count(&self, params: &Value) -> CallResult {
        let account = text(params, 0, "account")?;
        Ok(json!({ "account": account, "following_count": 0, "follower_count": 0 }))
    }

    pub(super) fn reward_fund(&self, params: &Value) -> CallResult {
        match text(params, 0, "name")? {
            "post" => Ok(self.post_fund(Shape::Condenser)),
            name => Err(Failure::assert("fund != nullptr", &format!("Invalid reward fund name: {name}"))),
        }
    }

    /// The name shows that this is no public chain, whatever its chain id.
    pub(super) fn version(&self) -> Value {
        json!({
            "blockchain_version": HIVED,
            "hive_revision": format!("hivetill-dev {}", env!("CARGO_PKG_VERSION")),
            "fc_revision": "hivetill-dev",
            "chain_id": self.host.chain.chain_id().to_string(),
            "node_type": "hivetill-dev",
        })
    }

    pub(super) fn chain_properties(&self) -> Value {
        json!({
            "account_creation_fee": "0.000 HIVE",
            "maximum_block_size": 65_536,
            "hbd_interest_rate": 1_500,
            "account_subsidy_budget": ACCOUNT_SUBSIDY_BUDGET,
            "account_subsidy_decay": ACCOUNT_SUBSIDY_DECAY,
        })
    }

    pub(super) fn next_hardfork(&self) -> Value {
        json!({ "hf_version": "0.0.0", "live_time": "1969-12-31T23:59:59" })
    }

    pub(super) fn hardforks(&self) -> Value {
        let genesis = self.host.chain.genesis_time().to_ledger();
        json!({
            "id": 0,
            "processed_hardforks": vec![genesis; HARDFORKS + 1],
            "last_hardfork": HARDFORKS,
            "current_hardfork_version": HIVED,
            "next_hardfork": HIVED,
            "next_hardfork_time": "1969-12-31T23:59:59",
        })
    }

    pub(super) fn config(&self) -> Value {
        let chain = &self.host.chain;
        json!({
            "IS_TEST_NET": false,
            "HIVE_ADDRESS_PREFIX": "STM",
            "HIVE_BLOCKCHAIN_HARDFORK_VERSION": HIVED,
            "HIVE_BLOCKCHAIN_VERSION": HIVED,
            "HIVE_BLOCK_INTERVAL": 3,
            "HIVE_CHAIN_ID": chain.chain_id().to_string(),
            "HIVE_GENESIS_TIME": chain.genesis_time().to_ledger(),
            "HIVE_MAX_ACCOUNT_NAME_LENGTH": 16,
            "HIVE_MAX_AUTHORITY_MEMBERSHIP": 40,
            "HIVE_MAX_BLOCK_SIZE": 2_097_152,
            "HIVE_MAX_MEMO_SIZE": 2_048,
            "HIVE_MAX_SIG_CHECK_ACCOUNTS": 125,
            "HIVE_MAX_SIG_CHECK_DEPTH": 2,
            "HIVE_MAX_TIME_UNTIL_EXPIRATION": 3_600,
            "HIVE_MAX_TIME_UNTIL_SIGNATURE_EXPIRATION": 86_400,
            "HIVE_MAX_TRANSACTION_SIZE": 65_536,
            "HIVE_MAX_WITNESSES": 21,
            "HIVE_MIN_ACCOUNT_NAME_LENGTH": 3,
            "HIVE_MIN_TRANSACTION_EXPIRATION_LIMIT": 15,
            "HIVE_NULL_ACCOUNT": "null",
            "HIVE_TEMP_ACCOUNT": "temp",
            "HIVE_TREASURY_ACCOUNT": "hive.fund",
            "HIVE_INIT_MINER_NAME": "initminer",
            "HIVE_SYMBOL": { "nai": Symbol::Hive.nai(), "decimals": 3 },
            "HBD_SYMBOL": { "nai": Symbol::Hbd.nai(), "decimals": 3 },
            "VESTS_SYMBOL": { "nai": Symbol::Vests.nai(), "decimals": 6 },
        })
    }

    pub(super) fn rc_accounts(&self, params: &Value) -> CallResult {
        let accounts: Vec<Value> = texts(params, 0, "accounts")?
            .into_iter()
            .filter_map(|name| self.host.chain.account(name))
            .map(|account| {
                let mana = if account.has_rc { "1000000000000" } else { "0" };
                json!({
                    "account": account.name.as_str(),
                    "rc_manabar": { "current_mana": mana, "last_update_time": self.view().head().1.seconds() },
                    "max_rc_creation_adjustment": Shape::Nai.units(0, Symbol::Vests),
                    "max_rc": "1000000000000",
                    "delegated_rc": 0,
                    "received_delegated_rc": 0,
                })
            })
            .collect();
        Ok(json!({ "rc_accounts": accounts }))
    }
}
