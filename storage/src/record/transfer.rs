//! The stored forms of a payment's transfers: a transfer as a row, and the totals of those that the payment does not
//! list.

use engine::{
    ids::PaymentId,
    ledger::{ChainPosition, TxId},
    money::Money,
    payment::{Credit, CreditBlock, Disposition, DispositionTotals, Totals},
};
use prost::Message;

use crate::record::{
    codes::Code,
    wire::{Bits, Damage, account, array, code, seal, time, unseal},
};

const VERSION: u8 = 1;

/// The key of a transfer: its payment, its transaction and the operation in the transaction.
pub(crate) type TransferKey<'k> = (u128, &'k [u8; 20], u32);

#[derive(Clone, PartialEq, Message)]
pub(super) struct CreditRecord {
    #[prost(bytes = "vec", tag = "1")]
    tx_id: Vec<u8>,
    #[prost(uint32, tag = "2")]
    op_in_tx: u32,
    #[prost(message, optional, tag = "3")]
    block: Option<CreditBlockRecord>,
    #[prost(string, tag = "4")]
    from: String,
    #[prost(string, tag = "5")]
    to: String,
    #[prost(uint64, tag = "6")]
    units: u64,
    #[prost(uint32, tag = "7")]
    currency: u32,
    #[prost(string, tag = "8")]
    memo: String,
    #[prost(uint32, tag = "9")]
    finality: u32,
    #[prost(uint32, tag = "10")]
    disposition: u32,
    #[prost(uint32, tag = "11")]
    route: u32,
    #[prost(bool, tag = "12")]
    memo_normalized: bool,
    #[prost(uint64, tag = "13")]
    seq: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct CreditBlockRecord {
    #[prost(uint32, tag = "1")]
    block_num: u32,
    #[prost(uint32, tag = "2")]
    tx_in_block: u32,
    #[prost(uint32, tag = "3")]
    op_in_tx: u32,
    #[prost(uint64, tag = "4")]
    time_ms: u64,
}

/// The totals of unlisted transfers.
#[derive(Clone, PartialEq, Message)]
pub(super) struct TotalsRecord {
    #[prost(uint64, tag = "1")]
    transfers: u64,
    #[prost(uint64, tag = "2")]
    pub(super) reversible: u64,
    #[prost(uint64, tag = "3")]
    manual: u64,
    #[prost(message, repeated, tag = "4")]
    by_disposition: Vec<DispositionRecord>,
}

/// The totals of one disposition; dispositions without transfers are omitted.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
struct DispositionRecord {
    #[prost(uint32, tag = "1")]
    disposition: u32,
    #[prost(uint64, tag = "2")]
    transfers: u64,
    #[prost(message, optional, tag = "3")]
    seen_units: Option<Bits>,
    #[prost(message, optional, tag = "4")]
    irreversible_units: Option<Bits>,
}

impl TotalsRecord {
    /// Returns the amount of a disposition, smallest units, without orphaned transfers.
    pub(super) fn seen_units(&self, disposition: Disposition) -> u128 {
        let found = self.by_disposition.iter().find(|totals| totals.disposition == disposition.number());
        found.and_then(|totals| totals.seen_units).map_or(0, u128::from)
    }
}

/// Returns the stored form of a transfer, without the fields of its key.
pub(crate) fn transfer_to_bytes(credit: &Credit) -> Vec<u8> {
    seal(VERSION, &CreditRecord { tx_id: Vec::new(), op_in_tx: 0, ..credit.into() })
}

/// Decodes a transfer.
pub(crate) fn transfer_from_bytes((_, tx_id, op_in_tx): TransferKey<'_>, bytes: &[u8]) -> Result<Credit, Damage> {
    let record: CreditRecord = unseal(VERSION, bytes)?;
    CreditRecord { tx_id: tx_id.to_vec(), op_in_tx, ..record }.try_into()
}

/// Returns the key of a payment's transfer.
pub(crate) fn transfer_key(payment: PaymentId, tx_id: &TxId, op_in_tx: u32) -> TransferKey<'_> {
    (payment.bits(), &tx_id.0, op_in_tx)
}

impl From<&Credit> for CreditRecord {
    fn from(credit: &Credit) -> Self {
        Self {
            tx_id: credit.tx_id.0.to_vec(),
            op_in_tx: credit.op_in_tx,
            block: credit.block.map(CreditBlockRecord::from),
            from: credit.from.as_str().to_owned(),
            to: credit.to.as_str().to_owned(),
            units: credit.money.units,
            currency: credit.money.currency.number(),
            memo: credit.memo.clone(),
            finality: credit.finality.number(),
            disposition: credit.disposition.number(),
            route: credit.route.number(),
            memo_normalized: credit.memo_normalized,
            seq: credit.seq,
        }
    }
}

impl TryFrom<CreditRecord> for Credit {
    type Error = Damage;
    fn try_from(record: CreditRecord) -> Result<Self, Damage> {
        Ok(Self {
            seq: record.seq,
            tx_id: array("transfer tx_id", &record.tx_id).map(TxId)?,
            op_in_tx: record.op_in_tx,
            block: record.block.map(CreditBlock::from),
            from: account("transfer from", &record.from)?,
            to: account("transfer to", &record.to)?,
            money: Money::new(record.units, code("transfer currency", record.currency)?),
            memo: record.memo,
            finality: code("transfer finality", record.finality)?,
            disposition: code("transfer disposition", record.disposition)?,
            route: code("transfer route", record.route)?,
            memo_normalized: record.memo_normalized,
        })
    }
}

impl From<CreditBlock> for CreditBlockRecord {
    fn from(block: CreditBlock) -> Self {
        Self {
            block_num: block.position.block_num,
            tx_in_block: block.position.tx_in_block,
            op_in_tx: block.position.op_in_tx,
            time_ms: block.time.millis(),
        }
    }
}

impl From<CreditBlockRecord> for CreditBlock {
    fn from(record: CreditBlockRecord) -> Self {
        let CreditBlockRecord { block_num, tx_in_block, op_in_tx, time_ms } = record;
        Self { position: ChainPosition { block_num, tx_in_block, op_in_tx }, time: time(time_ms) }
    }
}

impl From<&Totals> for TotalsRecord {
    fn from(totals: &Totals) -> Self {
        let each = Disposition::ALL.into_iter().map(|disposition| (disposition, totals.with(disposition)));
        let some = each.filter(|(_, totals)| **totals != DispositionTotals::default());
        let record = |(disposition, totals): (Disposition, &DispositionTotals)| DispositionRecord {
            disposition: disposition.number(),
            transfers: totals.transfers,
            seen_units: Some(totals.seen_units.into()),
            irreversible_units: Some(totals.irreversible_units.into()),
        };
        Self {
            transfers: totals.transfers,
            reversible: totals.reversible,
            manual: totals.manual,
            by_disposition: some.map(record).collect(),
        }
    }
}

impl TryFrom<TotalsRecord> for Totals {
    type Error = Damage;
    fn try_from(record: TotalsRecord) -> Result<Self, Damage> {
        let mut totals = Self {
            transfers: record.transfers,
            reversible: record.reversible,
            manual: record.manual,
            ..Self::default()
        };
        for stored in record.by_disposition {
            let disposition: Disposition = code("totals disposition", stored.disposition)?;
            totals.by_disposition[disposition as usize] = DispositionTotals {
                transfers: stored.transfers,
                seen_units: stored.seen_units.map_or(0, u128::from),
                irreversible_units: stored.irreversible_units.map_or(0, u128::from),
            };
        }
        Ok(totals)
    }
}
