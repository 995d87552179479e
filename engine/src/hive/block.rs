//! Parsing of blocks from node responses in both JSON formats, reduced to transfers of money.
//!
//! Other operations are skipped without allocation. A transfer that cannot be parsed is an error of the whole block,
//! because skipping it would lose a payment.

mod operation_names;
mod transfers;

use std::{borrow::Cow, collections::BTreeMap};

use serde::Deserialize;
use serde_json::value::RawValue;

pub use self::operation_names::{OTHER_OPERATIONS, UNKNOWN_OPERATIONS_MAX};
use self::transfers::{MoneyOperation, Operations, TransferJson};
use crate::{
    ledger::{Block, BlockId, ChainPosition, Head, Transfer, TxId, VirtualOperations},
    time::Timestamp,
};

/// The reason why a response of a node could not be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// Not JSON of the expected shape.
    #[error("the answer is not of the expected shape (line {line}, column {column})")]
    Shape {
        /// The line of the error, from 1.
        line: usize,
        /// The column of the error.
        column: usize,
    },
    /// An invalid block id.
    #[error("`{field}` is not a block id")]
    BlockId {
        /// The member.
        field: &'static str,
    },
    /// An invalid time.
    #[error("`timestamp` is not a time of the ledger")]
    Time,
    /// The numbers of ids and transactions differ.
    #[error("block {block} has {transactions} transactions and {ids} ids")]
    Ids {
        /// The block number.
        block: u32,
        /// The number of transactions.
        transactions: usize,
        /// The number of ids.
        ids: usize,
    },
    /// An invalid transaction id.
    #[error("transaction {tx_in_block} of block {block} has an id that is none")]
    TxId {
        /// The block number.
        block: u32,
        /// The index of the transaction.
        tx_in_block: u32,
    },
    /// An invalid transfer.
    #[error("the transfer at {position:?} has a `{field}` that cannot be read")]
    Transfer {
        /// The position on the chain.
        position: ChainPosition,
        /// The member.
        field: &'static str,
    },
}

impl From<serde_json::Error> for BlockError {
    fn from(error: serde_json::Error) -> Self {
        Self::Shape { line: error.line(), column: error.column() }
    }
}

/// Parses the result of `block_api.get_block`: `{"block":{…}}`, or `{}` for an unknown block.
///
/// # Errors
/// [`BlockError`] if the response cannot be parsed.
pub fn parse_block(result: &str) -> Result<Option<Block>, BlockError> {
    #[derive(Deserialize)]
    struct Answer<'a> {
        #[serde(borrow)]
        block: Option<BlockJson<'a>>,
    }
    serde_json::from_str::<Answer<'_>>(result)?.block.map(BlockJson::read).transpose()
}

/// Parses the result of `block_api.get_block_range`: `{"blocks":[…]}`, with fewer blocks than requested at the head.
///
/// # Errors
/// [`BlockError`] if the response cannot be parsed.
pub fn parse_block_range(result: &str) -> Result<Vec<Block>, BlockError> {
    #[derive(Deserialize)]
    struct Answer<'a> {
        #[serde(borrow)]
        blocks: Vec<BlockJson<'a>>,
    }
    serde_json::from_str::<Answer<'_>>(result)?.blocks.into_iter().map(BlockJson::read).collect()
}

/// Parses the result of `condenser_api.get_block`: the block, or `null` for an unknown block.
///
/// # Errors
/// [`BlockError`] if the response cannot be parsed.
pub fn parse_condenser_block(result: &str) -> Result<Option<Block>, BlockError> {
    serde_json::from_str::<Option<BlockJson<'_>>>(result)?.map(BlockJson::read).transpose()
}

/// Parses the result of `account_history_api.get_ops_in_block` for virtual operations: payments of recurrent transfers
/// and withdrawals from savings, which are not part of blocks, and unknown operations. `None` if there are no
/// operations: every block has a producer reward, so that the node does not have the block as an irreversible one.
///
/// The position of each is transaction [`u32::MAX`] of its block and its index among the block's virtual operations.
/// Without a transaction, its transaction id is the block number and zeros.
///
/// # Errors
/// [`BlockError`] if the response cannot be parsed.
pub fn parse_virtual_operations(result: &str) -> Result<Option<VirtualOperations>, BlockError> {
    #[derive(Deserialize)]
    struct Answer<'a> {
        #[serde(borrow)]
        ops: Vec<Happening<'a>>,
    }
    #[derive(Deserialize)]
    struct Happening<'a> {
        #[serde(borrow)]
        trx_id: Cow<'a, str>,
        block: u32,
        #[serde(borrow)]
        timestamp: Cow<'a, str>,
        #[serde(borrow)]
        op: VirtualJson<'a>,
    }
    #[derive(Deserialize)]
    struct VirtualJson<'a> {
        #[serde(borrow, rename = "type")]
        name: Cow<'a, str>,
        #[serde(borrow)]
        value: &'a RawValue,
    }
    let happened: Answer<'_> = serde_json::from_str(result)?;
    if happened.ops.is_empty() {
        return Ok(None);
    }
    let mut read = VirtualOperations::default();
    for (op_in_tx, Happening { trx_id, block, timestamp, op }) in (0..).zip(happened.ops) {
        if !matches!(&*op.name, "fill_recurrent_transfer_operation" | "fill_transfer_from_savings_operation") {
            if let Some(kind) = operation_names::unknown_virtual(&op.name) {
                operation_names::count(&mut read.unknown, &kind);
            }
            continue;
        }
        let tx_id = TxId::parse(&trx_id).ok_or(BlockError::TxId { block, tx_in_block: u32::MAX })?;
        let position = ChainPosition { block_num: block, tx_in_block: u32::MAX, op_in_tx };
        let time = Timestamp::parse_ledger(&timestamp).ok_or(BlockError::Time)?;
        let tx_id = if tx_id == TxId::default() { without_transaction(block) } else { tx_id };
        read.transfers.push(serde_json::from_str::<TransferJson<'_>>(op.value.get())?.read(tx_id, position, time)?);
    }
    Ok(Some(read))
}

/// An entry of an account's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEntry {
    /// The index in the account's history, from 0 without gaps.
    pub number: u64,
    /// The time of its block.
    pub time: Timestamp,
    /// The transfers of the operation: none, one, or two for an escrow release in both currencies.
    pub transfers: Vec<Transfer>,
}

/// Parses the result of `account_history_api.get_account_history`: transfers and escrow releases of blocks, without
/// virtual operations.
///
/// # Errors
/// [`BlockError`] if the response cannot be parsed.
pub fn parse_account_history(result: &str) -> Result<Vec<HistoryEntry>, BlockError> {
    #[derive(Deserialize)]
    struct Answer<'a> {
        #[serde(borrow)]
        history: Vec<(u64, Happening<'a>)>,
    }
    #[derive(Deserialize)]
    struct Happening<'a> {
        #[serde(borrow)]
        trx_id: Cow<'a, str>,
        block: u32,
        trx_in_block: u32,
        op_in_trx: u32,
        virtual_op: bool,
        #[serde(borrow)]
        timestamp: Cow<'a, str>,
        #[serde(borrow)]
        op: &'a RawValue,
    }
    let read = |(number, happened): (u64, Happening<'_>)| {
        let time = Timestamp::parse_ledger(&happened.timestamp).ok_or(BlockError::Time)?;
        let mut entry = HistoryEntry { number, time, transfers: Vec::new() };
        if happened.virtual_op {
            return Ok(entry);
        }
        let alone = format!("[{}]", happened.op.get());
        let operations: Operations<'_> = serde_json::from_str(&alone)?;
        for (_, paying) in &operations.paying {
            let (block, tx_in_block) = (happened.block, happened.trx_in_block);
            let tx_id = TxId::parse(&happened.trx_id).ok_or(BlockError::TxId { block, tx_in_block })?;
            let position = ChainPosition { block_num: block, tx_in_block, op_in_tx: happened.op_in_trx };
            match paying {
                MoneyOperation::Transfer(transfer) => entry.transfers.push(transfer.read(tx_id, position, time)?),
                MoneyOperation::Release(release) => entry.transfers.extend(release.read(tx_id, position, time)?),
            }
        }
        Ok(entry)
    };
    serde_json::from_str::<Answer<'_>>(result)?.history.into_iter().map(read).collect()
}

fn without_transaction(block: u32) -> TxId {
    let mut id = TxId::default();
    id.0[..4].copy_from_slice(&block.to_be_bytes());
    id
}

/// Parses the result of `get_dynamic_global_properties` of either API.
///
/// # Errors
/// [`BlockError`] if the response cannot be parsed.
pub fn parse_head(result: &str) -> Result<Head, BlockError> {
    #[derive(Deserialize)]
    struct Properties<'a> {
        #[serde(borrow)]
        head_block_id: Cow<'a, str>,
        #[serde(borrow)]
        time: Cow<'a, str>,
        last_irreversible_block_num: u32,
    }
    let properties: Properties<'_> = serde_json::from_str(result)?;
    Ok(Head {
        block_id: BlockId::parse(&properties.head_block_id).ok_or(BlockError::BlockId { field: "head_block_id" })?,
        time: Timestamp::parse_ledger(&properties.time).ok_or(BlockError::Time)?,
        irreversible_num: properties.last_irreversible_block_num,
    })
}

#[derive(Deserialize)]
struct BlockJson<'a> {
    #[serde(borrow)]
    block_id: Cow<'a, str>,
    #[serde(borrow)]
    previous: Cow<'a, str>,
    #[serde(borrow)]
    timestamp: Cow<'a, str>,
    #[serde(borrow)]
    transactions: Vec<TransactionJson<'a>>,
    #[serde(borrow)]
    transaction_ids: Vec<Text<'a>>,
}

#[derive(Deserialize)]
struct TransactionJson<'a> {
    #[serde(borrow)]
    operations: Operations<'a>,
}

/// A string, borrowed if it has no escapes; serde always copies a `Cow` in a list.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl BlockJson<'_> {
    fn read(self) -> Result<Block, BlockError> {
        let id = BlockId::parse(&self.block_id).ok_or(BlockError::BlockId { field: "block_id" })?;
        let previous = BlockId::parse(&self.previous).ok_or(BlockError::BlockId { field: "previous" })?;
        let time = Timestamp::parse_ledger(&self.timestamp).ok_or(BlockError::Time)?;
        let (transactions, ids) = (self.transactions.len(), self.transaction_ids.len());
        if transactions != ids {
            return Err(BlockError::Ids { block: id.number(), transactions, ids });
        }
        let (mut transfers, mut escrow_releases) = (Vec::new(), Vec::new());
        let mut unknown_operations = BTreeMap::new();
        for (tx_in_block, (transaction, tx_id)) in (0u32..).zip(self.transactions.iter().zip(&self.transaction_ids)) {
            for kind in &transaction.operations.unknown {
                operation_names::count(&mut unknown_operations, kind);
            }
            if transaction.operations.paying.is_empty() {
                continue;
            }
            let tx_id = TxId::parse(&tx_id.0).ok_or(BlockError::TxId { block: id.number(), tx_in_block })?;
            for (op_in_tx, paying) in &transaction.operations.paying {
                let position = ChainPosition { block_num: id.number(), tx_in_block, op_in_tx: *op_in_tx };
                match paying {
                    MoneyOperation::Transfer(transfer) => transfers.push(transfer.read(tx_id, position, time)?),
                    MoneyOperation::Release(release) => escrow_releases.extend(release.read(tx_id, position, time)?),
                }
            }
        }
        Ok(Block { id, previous, time, transfers, escrow_releases, unknown_operations })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{transfers::SECOND_CURRENCY, *};
    use crate::{
        account::AccountName,
        money::{Currency, Money},
    };

    const ID: &str = "000f4240e8f91385f7bff8f5aeebddc9b14e4281";
    const HF26: &str = r#"{"type":"transfer_operation","value":{"from":"alice","to":"bob","amount":{"amount":"1000","precision":3,"nai":"@@000000021"},"memo":"a\u00e9\"b"}}"#;
    const CONDENSER: &str = r#"["transfer",{"from":"alice","to":"bob","amount":"1.000 HIVE","memo":"aé\"b"}]"#;

    fn block(operations: &str) -> String {
        format!(
            r#"{{"previous":"{ID}","timestamp":"2026-11-20T14:00:00","witness":"w","extensions":[],
            "transactions":[{{"operations":[["vote",{{"x":[1,2,{{}}]}}]],"signatures":[]}},{{"operations":[{operations}]}}],
            "block_id":"{ID}","transaction_ids":["{ID}","292318c5bbd68dca097d7c91781d96f913bb5fef"]}}"#
        )
    }

    fn transfers(operations: &str) -> Result<Vec<Transfer>, BlockError> {
        parse_condenser_block(&block(operations)).map(|block| block.unwrap().transfers)
    }

    #[test]
    fn a_transfer_reads_the_same_in_both_forms_and_in_either_order_of_members() {
        let expected = Transfer {
            tx_id: TxId::parse("292318c5bbd68dca097d7c91781d96f913bb5fef").unwrap(),
            position: ChainPosition { block_num: 1_000_000, tx_in_block: 1, op_in_tx: 0 },
            block_time: Timestamp::parse_ledger("2026-11-20T14:00:00").unwrap(),
            from: AccountName::parse("alice").unwrap(),
            to: AccountName::parse("bob").unwrap(),
            money: Money::new(1_000, Currency::Hive),
            memo: "aé\"b".to_owned(),
        };
        let (_, value) = HF26.split_once(",\"value\":").unwrap();
        let reversed = format!(r#"{{"value":{},"type":"transfer_operation"}}"#, &value[..value.len() - 1]);
        for operation in [HF26, CONDENSER, &reversed] {
            assert_eq!(transfers(operation), Ok(vec![expected.clone()]), "{operation}");
        }
        let second = transfers(&format!(r#"{{"type":"custom_json_operation","value":{{"id":"transfer"}}}},{HF26}"#));
        assert_eq!(second.unwrap()[0].position.op_in_tx, 1);
    }

    #[test]
    fn an_unknown_operation_is_skipped_wherever_it_stands_and_counted_by_its_name() {
        let unknown = r#"{"type":"pay_later_operation","value":{"to":"bob","amount":[[[{"x":1}]]]},"extensions":[7]}"#;
        let legacy = r#"["pay_later",{"amount":"1.000 HIVE"},"a third part"]"#;
        let bare = r#"{"type":"pay_later_operation"}"#;
        let nameless = r#"{"value":{"type":"transfer_operation"},"type":"Pay\u0007\"} later"}"#;
        for (operations, position, kinds) in [
            (format!("{unknown},{HF26}"), 1, vec![("pay_later", 1)]),
            (format!("{HF26},{legacy}"), 0, vec![("pay_later", 1)]),
            (format!("{bare},{CONDENSER},{unknown}"), 1, vec![("pay_later", 2)]),
            (format!("{nameless},{unknown},{HF26},{legacy}"), 2, vec![("malformed", 1), ("pay_later", 2)]),
        ] {
            let read = parse_condenser_block(&block(&operations)).unwrap().unwrap();
            assert_eq!(read.transfers.len(), 1, "{operations}");
            assert_eq!(read.transfers[0].position.op_in_tx, position, "{operations}");
            let counts: Vec<_> = read.unknown_operations.iter().map(|(kind, count)| (kind.as_str(), *count)).collect();
            assert_eq!(counts, kinds, "{operations}");
        }
        let many: Vec<_> = (0..40).map(|n| format!(r#"["kind{n}",{{}}]"#)).collect();
        let read = parse_condenser_block(&block(&many.join(","))).unwrap().unwrap();
        assert_eq!(read.unknown_operations.len(), UNKNOWN_OPERATIONS_MAX + 1);
        assert_eq!(read.unknown_operations[OTHER_OPERATIONS], 24);
        let extended =
            block(HF26).replace(r#""signatures":[]"#, r#""signatures":[],"extensions":[["future",{"x":1}]]"#);
        assert_eq!(parse_condenser_block(&extended).unwrap().unwrap().transfers.len(), 1);
    }

    #[test]
    fn a_transfer_that_cannot_be_read_is_an_error_of_the_block() {
        let position = ChainPosition { block_num: 1_000_000, tx_in_block: 1, op_in_tx: 0 };
        for (from, to, field) in [
            (r#""alice""#, r#""Alice""#, "from"),
            (r#""bob""#, r#""b""#, "to"),
            ("1.000 HIVE", "1.000 STEEM", "amount"),
            ("1.000 HIVE", "-1.000 HIVE", "amount"),
        ] {
            let error = transfers(&CONDENSER.replace(from, to)).unwrap_err();
            assert_eq!(error, BlockError::Transfer { position, field });
        }
        for (from, to) in [("@@000000021", "@@000000037"), (":3", ":6"), (r#""1000""#, r#""+1000""#)] {
            let error = transfers(&HF26.replace(from, to)).unwrap_err();
            assert_eq!(error, BlockError::Transfer { position, field: "amount" });
        }
        for broken in [
            CONDENSER.replace(r#","memo":"aé\"b""#, ""),
            CONDENSER.replace(r#""1.000 HIVE""#, "1.0"),
            r#"["transfer"]"#.to_owned(),
            r#"{"type":"transfer_operation"}"#.to_owned(),
            r#"{"value":{}}"#.to_owned(),
            "7".to_owned(),
        ] {
            assert!(matches!(transfers(&broken), Err(BlockError::Shape { .. })), "{broken}");
        }
    }

    #[test]
    fn an_escrow_release_pays_in_each_currency_it_holds() {
        let release = r#"{"type":"escrow_release_operation","value":{"from":"alice","to":"bob","agent":"carol",
            "who":"carol","receiver":"bob","escrow_id":7,"hbd_amount":{"amount":"1000","precision":3,"nai":"@@000000013"},
            "hive_amount":{"amount":"2000","precision":3,"nai":"@@000000021"}}}"#;
        let legacy = r#"["escrow_release",{"from":"alice","to":"bob","agent":"carol","who":"carol","receiver":"bob",
            "escrow_id":7,"hbd_amount":"1.000 HBD","hive_amount":"2.000 HIVE"}]"#;
        for operation in [release, legacy] {
            let read = parse_condenser_block(&block(operation)).unwrap().unwrap();
            let paid: Vec<_> =
                read.escrow_releases.iter().map(|t| (t.to.as_str(), t.money, t.position.op_in_tx)).collect();
            let (hbd, hive) = (Money::new(1_000, Currency::Hbd), Money::new(2_000, Currency::Hive));
            assert_eq!((paid, read.transfers), (vec![("bob", hbd, 0), ("bob", hive, SECOND_CURRENCY)], vec![]));
            let broken = operation.replace(r#""receiver":"bob""#, r#""receiver":"B""#);
            assert!(matches!(
                parse_condenser_block(&block(&broken)),
                Err(BlockError::Transfer { field: "receiver", .. })
            ));
        }
        let hive_only = parse_condenser_block(&block(&legacy.replace("1.000 HBD", "0.000 HBD"))).unwrap().unwrap();
        assert_eq!(hive_only.escrow_releases.len(), 1);
    }

    #[test]
    fn account_history_contains_transfers_of_blocks_only() {
        let entry = |number: u64, is_virtual: bool, op: &str| {
            format!(
                r#"[{number},{{"trx_id":"292318c5bbd68dca097d7c91781d96f913bb5fef","block":7,"trx_in_block":1,
                "op_in_trx":2,"virtual_op":{is_virtual},"timestamp":"2026-11-20T14:00:00","op":{op},"operation_id":0}}]"#
            )
        };
        let vote = r#"{"type":"vote_operation","value":{"voter":"alice"}}"#;
        let answer = format!(
            r#"{{"history":[{},{},{}]}}"#,
            entry(4, false, HF26),
            entry(5, false, vote),
            entry(6, true, r#"{"type":"producer_reward_operation","value":{}}"#)
        );
        let read = parse_account_history(&answer).unwrap();
        let numbers: Vec<_> = read.iter().map(|entry| (entry.number, entry.transfers.len())).collect();
        assert_eq!(numbers, [(4, 1), (5, 0), (6, 0)]);
        let transfer = &read[0].transfers[0];
        assert_eq!((transfer.from.as_str(), transfer.position.block_num, transfer.position.op_in_tx), ("alice", 7, 2));
        assert_eq!(transfer.block_time, read[1].time);
        assert_eq!(parse_account_history(r#"{"history":[]}"#), Ok(vec![]));
        for broken in ["{}", r#"{"history":[[1]]}"#, &answer.replace("2026-11", "2026x11")] {
            assert!(parse_account_history(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn transfers_of_virtual_operations_are_parsed() {
        let entry = |trx_id: &str, kind: &str, rest: &str| {
            format!(
                r#"{{"trx_id":"{trx_id}","block":9,"trx_in_block":4294967295,"op_in_trx":1,"virtual_op":true,
                "timestamp":"2026-11-20T14:00:00","operation_id":0,"op":{{"type":"{kind}_operation","value":{{"from":"alice",
                "to":"bob","amount":{{"amount":"5000","precision":3,"nai":"@@000000013"}},"memo":"m",{rest}}}}}}}"#
            )
        };
        let none = "0000000000000000000000000000000000000000";
        let later = entry(none, "pay_later", r#""x":1"#);
        let text = format!(
            r#"{{"ops":[{},{},{},{later},{later}]}}"#,
            entry(ID, "fill_recurrent_transfer", r#""remaining_executions":11,"extensions":[]"#),
            entry(none, "producer_reward", r#""x":1"#),
            entry(none, "fill_transfer_from_savings", r#""request_id":7"#),
        );
        let read = parse_virtual_operations(&text).unwrap().unwrap();
        let position = |op_in_tx| ChainPosition { block_num: 9, tx_in_block: u32::MAX, op_in_tx };
        assert_eq!(read.unknown, BTreeMap::from([("pay_later".to_owned(), 2)]));
        let read = read.transfers;
        assert_eq!(read.iter().map(|t| t.position).collect::<Vec<_>>(), [position(0), position(2)]);
        let ids: Vec<_> = read.iter().map(|t| t.tx_id.to_string()).collect();
        assert_eq!(ids, [ID, "0000000900000000000000000000000000000000"]);
        assert!(read.iter().all(|t| t.money == Money::new(5_000, Currency::Hbd) && t.memo == "m"));
        let quiet = format!(r#"{{"ops":[{}]}}"#, entry(none, "producer_reward", r#""x":1"#));
        assert_eq!(parse_virtual_operations(&quiet), Ok(Some(VirtualOperations::default())));
        assert_eq!(parse_virtual_operations(r#"{"ops":[]}"#), Ok(None));
        let error = parse_virtual_operations(&text.replace("alice", "Alice")).unwrap_err();
        assert_eq!(error, BlockError::Transfer { position: position(0), field: "from" });
    }

    #[test]
    fn every_transaction_has_its_id() {
        let text = block(CONDENSER).replace(&format!(r#""transaction_ids":["{ID}","#), "\"transaction_ids\":[");
        let error = parse_condenser_block(&text).unwrap_err();
        assert_eq!(error, BlockError::Ids { block: 1_000_000, transactions: 2, ids: 1 });
    }

    #[test]
    fn an_unknown_block_is_none() {
        assert_eq!(parse_block("{}"), Ok(None));
        assert_eq!(parse_condenser_block("null"), Ok(None));
        assert_eq!(parse_block_range(r#"{"blocks":[]}"#), Ok(vec![]));
        assert!(parse_block_range("{}").is_err());
    }

    #[test]
    fn the_head_is_parsed_from_either_api() {
        let text = format!(
            r#"{{"head_block_id":"{ID}","id":0,"time":"2026-11-20T14:00:00","last_irreversible_block_num":9}}"#
        );
        let head = parse_head(&text).unwrap();
        assert_eq!((head.block_id.number(), head.irreversible_num), (1_000_000, 9));
    }

    proptest! {
        #[test]
        fn parsing_any_response_never_panics(text in ".{0,300}", at in any::<prop::sample::Index>(), byte in " -~") {
            let _ = parse_block(&text);
            let mut changed = block(HF26);
            let at = at.index(changed.len());
            if changed.is_char_boundary(at) && changed.is_char_boundary(at + 1) {
                changed.replace_range(at..=at, &byte);
                let _ = parse_condenser_block(&changed);
            }
        }
    }
}
