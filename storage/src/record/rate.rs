//! The stored form of a price.

use engine::{
    money::{HbdPrice, HivePrice},
    payment::Rate,
};
use prost::Message;

use crate::record::wire::{Damage, seal, time, unseal};

pub(crate) const RATE_VERSION: u8 = 1;

/// Returns the stored form of the price.
pub(crate) fn rate_to_bytes(rate: Rate) -> Vec<u8> {
    seal(RATE_VERSION, &RateRecord::from(rate))
}

/// Decodes the price.
pub(crate) fn rate_from_bytes(bytes: &[u8]) -> Result<Rate, Damage> {
    unseal::<RateRecord>(RATE_VERSION, bytes)?.try_into()
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct RateRecord {
    #[prost(uint64, tag = "1")]
    base_hbd_units: u64,
    #[prost(uint64, tag = "2")]
    quote_hive_units: u64,
    #[prost(uint64, tag = "3")]
    at_ms: u64,
    #[prost(uint64, tag = "4")]
    hbd_micro_usd: u64,
}

impl From<Rate> for RateRecord {
    fn from(rate: Rate) -> Self {
        Self {
            base_hbd_units: rate.price.base_hbd_units,
            quote_hive_units: rate.price.quote_hive_units,
            at_ms: rate.at.millis(),
            hbd_micro_usd: rate.hbd.map_or(0, HbdPrice::micro_usd),
        }
    }
}

impl TryFrom<RateRecord> for Rate {
    type Error = Damage;
    fn try_from(record: RateRecord) -> Result<Self, Damage> {
        let price = HivePrice::new(record.base_hbd_units, record.quote_hive_units).ok_or_else(|| Damage::Value {
            field: "price",
            value: format!("{}/{}", record.base_hbd_units, record.quote_hive_units),
        })?;
        Ok(Self { price, hbd: HbdPrice::of_micro_usd(record.hbd_micro_usd), at: time(record.at_ms) })
    }
}
