//! Blocks and transactions as the nodes' API returns them.

use engine::{ledger::TxId, time::Timestamp};
use serde_json::{Value, json};

use super::{
    failure::Failure,
    foreign,
    node_api::{CallResult, NodeApi, flag, number, text},
    shape::{Shape, header},
};
use crate::ledger::Status;

/// The most blocks that one call gives.
const MAX_RANGE: u32 = 1_000;

impl NodeApi<'_> {
    fn block_json(&self, number: u32, shape: Shape) -> Option<Value> {
        let view = self.view();
        let mut block = shape.block(view.block(number)?.as_ref(), &view.chain().signing_key().to_string());
        foreign::show(&self.host.foreign, number, shape, &mut block);
        Some(block)
    }

    pub(super) fn condenser_block(&self, params: &Value) -> CallResult {
        Ok(self.block_json(number(params, 0, "block_num")?, Shape::Condenser).unwrap_or(Value::Null))
    }

    pub(super) fn condenser_header(&self, params: &Value) -> CallResult {
        let number = number(params, 0, "block_num")?;
        Ok(self.view().block(number).map_or(Value::Null, |block| header(&block)))
    }

    pub(super) fn block(&self, params: &Value) -> CallResult {
        let number = number(params, 0, "block_num")?;
        Ok(self.block_json(number, Shape::Nai).map_or_else(|| json!({}), |block| json!({ "block": block })))
    }

    pub(super) fn header(&self, params: &Value) -> CallResult {
        let number = number(params, 0, "block_num")?;
        let block = self.view().block(number);
        Ok(block.map_or_else(|| json!({}), |block| json!({ "header": header(&block) })))
    }

    pub(super) fn block_range(&self, params: &Value) -> CallResult {
        let first = number(params, 0, "starting_block_num")?;
        let count = number(params, 1, "count")?;
        if first == 0 {
            return Err(Failure::assert("args.starting_block_num > 0", "Invalid starting block number"));
        }
        if count == 0 {
            return Err(Failure::assert("args.count > 0", "Why ask for zero blocks?"));
        }
        if count > MAX_RANGE {
            return Err(Failure::assert("args.count <= 1000", "You can only ask for 1000 blocks at a time"));
        }
        let first = self.view().first_of_range(first);
        let numbers = first..first.saturating_add(count);
        let blocks: Vec<Value> = numbers.map_while(|number| self.block_json(number, Shape::Nai)).collect();
        Ok(json!({ "blocks": blocks }))
    }

    pub(super) fn condenser_operations(&self, params: &Value) -> CallResult {
        let number = number(params, 0, "block_num")?;
        let only_virtual = flag(params, 1, "only_virtual");
        Ok(Value::from(self.happenings(number, only_virtual, false, Shape::Condenser)))
    }

    pub(super) fn operations(&self, params: &Value) -> CallResult {
        let number = number(params, 0, "block_num")?;
        let (only_virtual, reversible) = (flag(params, 1, "only_virtual"), flag(params, 2, "include_reversible"));
        Ok(json!({ "ops": self.happenings(number, only_virtual, reversible, Shape::Nai) }))
    }

    fn happenings(&self, number: u32, only_virtual: bool, reversible: bool, shape: Shape) -> Vec<Value> {
        let view = self.view();
        if number > view.irreversible_num() && !reversible {
            return Vec::new();
        }
        let foreign = foreign::virtual_operations(&self.host.foreign, number, shape);
        view.block(number).map(|block| shape.happenings(&block, only_virtual, foreign)).unwrap_or_default()
    }

    /// Returns entries of an account's history, oldest first, up to `start` (-1: the newest), `limit` at most. An
    /// operation is in the history of every account it names.
    pub(super) fn account_history(&self, params: &Value) -> CallResult {
        let masks = ["operation_filter_low", "operation_filter_high"].map(|name| mask(params.get(name)));
        let last = if flag(params, 3, "include_reversible") {
            self.view().head().0.number()
        } else {
            self.view().irreversible_num()
        };
        let asked = Asked {
            account: text(params, 0, "account")?,
            start: params.get("start"),
            limit: params.get("limit"),
            filter: filter(masks),
        };
        Ok(json!({ "history": self.history(&asked, last, Shape::Nai)? }))
    }

    /// The same in the form of `condenser_api`, which knows irreversible blocks only and takes its filter by place.
    pub(super) fn condenser_account_history(&self, params: &Value) -> CallResult {
        let asked = Asked {
            account: text(params, 0, "account")?,
            start: params.get(1),
            limit: params.get(2),
            filter: filter([3, 4].map(|place| mask(params.get(place)))),
        };
        let history = self.history(&asked, self.view().irreversible_num(), Shape::Condenser)?;
        Ok(Value::from(history.into_iter().map(|(number, entry)| json!([number, entry])).collect::<Vec<_>>()))
    }

    fn history(&self, asked: &Asked<'_>, last: u32, shape: Shape) -> Result<Vec<(u64, Value)>, Failure> {
        let start = asked.start.and_then(Value::as_i64).unwrap_or(-1);
        let limit = asked.limit.and_then(Value::as_u64).unwrap_or(1_000);
        if !(1..=1_000).contains(&limit) {
            return Err(Failure::assert("args.limit <= 1000", "limit of 1000 is exceeded, or there is none"));
        }
        let start = u64::try_from(start).ok();
        if start.is_some_and(|start| start < limit - 1) {
            return Err(Failure::assert(
                "args.start >= args.limit-1",
                "start must be greater than or equal to limit-1",
            ));
        }
        let names = |happened: &Value| {
            let (_, members) = operation_of(happened, shape);
            members.as_object().is_some_and(|members| members.values().any(|value| value == asked.account))
        };
        let is_wanted = |happened: &Value| {
            asked.filter.is_none_or(|filter| {
                let (name, _) = operation_of(happened, shape);
                let name = name.trim_end_matches("_operation");
                OPERATIONS.iter().position(|known| *known == name).is_some_and(|id| filter >> id & 1 == 1)
            })
        };
        let all = (1..=last).flat_map(|number| self.happenings(number, false, true, shape)).filter(names);
        let numbered = (0u64..).zip(all).filter(|(number, _)| start.is_none_or(|start| *number <= start));
        let mut wanted: Vec<_> = numbered.filter(|(_, happened)| is_wanted(happened)).collect();
        let skipped = wanted.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(wanted.split_off(skipped))
    }

    pub(super) fn condenser_transaction(&self, params: &Value) -> CallResult {
        self.find(text(params, 0, "id")?, Shape::Condenser)
    }

    pub(super) fn transaction(&self, params: &Value) -> CallResult {
        self.find(text(params, 0, "id")?, Shape::Nai)
    }

    fn find(&self, id: &str, shape: Shape) -> CallResult {
        let unknown = || Failure::assert("false", &format!("Unknown Transaction {id}"));
        let view = self.view();
        let (number, place) = TxId::parse(id).and_then(|id| view.chain().find(id)).ok_or_else(unknown)?;
        let block = view.block(number).ok_or_else(unknown)?;
        let place = usize::try_from(place).expect("a place fits");
        let included = block.transactions.get(place).ok_or_else(unknown)?;
        Ok(shape.placed_transaction(included, number, place))
    }

    pub(super) fn find_transaction(&self, params: &Value) -> CallResult {
        let id = tx_id(text(params, 0, "transaction_id")?)?;
        let expiration = match text(params, 1, "expiration") {
            Ok(text) => {
                Some(Timestamp::parse_ledger(text).ok_or_else(|| Failure::params("expiration must be a time"))?)
            }
            Err(_) => None,
        };
        let view = self.view();
        let status = match view.chain().status(id, expiration) {
            // A node that is behind has not seen the newest blocks; it may still have the transaction waiting.
            Status::WithinReversibleBlock(number) | Status::WithinIrreversibleBlock(number) => {
                if number > view.head().0.number() {
                    Status::WithinMempool
                } else if number <= view.irreversible_num() {
                    Status::WithinIrreversibleBlock(number)
                } else {
                    Status::WithinReversibleBlock(number)
                }
            }
            status => status,
        };
        let found = |status: &str, number: u32| json!({ "status": status, "block_num": number, "rc_cost": 157 });
        Ok(match status {
            Status::Unknown => json!({ "status": "unknown" }),
            Status::WithinMempool => json!({ "status": "within_mempool" }),
            Status::WithinReversibleBlock(number) => found("within_reversible_block", number),
            Status::WithinIrreversibleBlock(number) => found("within_irreversible_block", number),
            Status::ExpiredReversible => json!({ "status": "expired_reversible" }),
            Status::ExpiredIrreversible => json!({ "status": "expired_irreversible" }),
            Status::TooOld => json!({ "status": "too_old" }),
        })
    }

    pub(super) fn is_known_transaction(&self, api: &str, params: &Value) -> CallResult {
        let known = self.host.chain.is_known(tx_id(text(params, 0, "id")?)?);
        Ok(if api == "condenser_api" { Value::Bool(known) } else { json!({ "is_known": known }) })
    }
}

/// Which part of an account's history is asked for.
struct Asked<'p> {
    account: &'p str,
    start: Option<&'p Value>,
    limit: Option<&'p Value>,
    /// A bit for each operation that is wanted, by its number; none: all.
    filter: Option<u128>,
}

/// Name and members of an entry's operation.
fn operation_of(happened: &Value, shape: Shape) -> (&str, &Value) {
    let (name, members) = match shape {
        Shape::Condenser => (&happened["op"][0], &happened["op"][1]),
        Shape::Nai => (&happened["op"]["type"], &happened["op"]["value"]),
    };
    (name.as_str().unwrap_or_default(), members)
}

/// Reads 64 bits of a filter, a number or its digits.
fn mask(value: Option<&Value>) -> Option<u64> {
    let value = value?;
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn filter([low, high]: [Option<u64>; 2]) -> Option<u128> {
    let filter = (u128::from(high.unwrap_or(0)) << 64) | u128::from(low.unwrap_or(0));
    (filter != 0).then_some(filter)
}

/// Every operation by its number, the virtual ones after those of transactions: filters count in it.
const OPERATIONS: [&str; 85] = [
    "vote",
    "comment",
    "transfer",
    "transfer_to_vesting",
    "withdraw_vesting",
    "limit_order_create",
    "limit_order_cancel",
    "feed_publish",
    "convert",
    "account_create",
    "account_update",
    "witness_update",
    "account_witness_vote",
    "account_witness_proxy",
    "pow",
    "custom",
    "witness_block_approve",
    "delete_comment",
    "custom_json",
    "comment_options",
    "set_withdraw_vesting_route",
    "limit_order_create2",
    "claim_account",
    "create_claimed_account",
    "request_account_recovery",
    "recover_account",
    "change_recovery_account",
    "escrow_transfer",
    "escrow_dispute",
    "escrow_release",
    "pow2",
    "escrow_approve",
    "transfer_to_savings",
    "transfer_from_savings",
    "cancel_transfer_from_savings",
    "custom_binary",
    "decline_voting_rights",
    "reset_account",
    "set_reset_account",
    "claim_reward_balance",
    "delegate_vesting_shares",
    "account_create_with_delegation",
    "witness_set_properties",
    "account_update2",
    "create_proposal",
    "update_proposal_votes",
    "remove_proposal",
    "update_proposal",
    "collateralized_convert",
    "recurrent_transfer",
    "fill_convert_request",
    "author_reward",
    "curation_reward",
    "comment_reward",
    "liquidity_reward",
    "interest",
    "fill_vesting_withdraw",
    "fill_order",
    "shutdown_witness",
    "fill_transfer_from_savings",
    "hardfork",
    "comment_payout_update",
    "return_vesting_delegation",
    "comment_benefactor_reward",
    "producer_reward",
    "clear_null_account_balance",
    "proposal_pay",
    "dhf_funding",
    "hardfork_hive",
    "hardfork_hive_restore",
    "delayed_voting",
    "consolidate_treasury_balance",
    "effective_comment_vote",
    "ineffective_delete_comment",
    "dhf_conversion",
    "expired_account_notification",
    "changed_recovery_account",
    "transfer_to_vesting_completed",
    "pow_reward",
    "vesting_shares_split",
    "account_created",
    "fill_collateralized_convert_request",
    "system_warning",
    "fill_recurrent_transfer",
    "failed_recurrent_transfer",
];

fn tx_id(text: &str) -> Result<TxId, Failure> {
    TxId::parse(text).ok_or_else(|| Failure::params("a transaction id has 40 hex characters"))
}
