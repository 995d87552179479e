//! Parsing of the operations of a block that transfer money; others are skipped.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize,
    de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use super::{BlockError, Text, operation_names};
use crate::{
    account::AccountName,
    hive::Symbol,
    ledger::{ChainPosition, Transfer, TxId},
    money::{Currency, Money},
    time::Timestamp,
};

#[derive(Deserialize)]
pub(super) struct TransferJson<'a> {
    #[serde(borrow)]
    from: Cow<'a, str>,
    #[serde(borrow)]
    to: Cow<'a, str>,
    #[serde(borrow)]
    amount: AmountJson<'a>,
    #[serde(borrow)]
    memo: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum AmountJson<'a> {
    Condenser(#[serde(borrow)] Cow<'a, str>),
    Hf26 {
        #[serde(borrow)]
        amount: Cow<'a, str>,
        precision: usize,
        #[serde(borrow)]
        nai: Cow<'a, str>,
    },
}

impl AmountJson<'_> {
    fn read(&self) -> Option<Money> {
        match self {
            Self::Condenser(text) => Money::parse_ledger(text).ok(),
            Self::Hf26 { amount, precision, nai } => {
                let currencies = [(Symbol::Hive, Currency::Hive), (Symbol::Hbd, Currency::Hbd)];
                let (symbol, currency) = currencies.into_iter().find(|(symbol, _)| symbol.nai() == nai)?;
                let digits = amount.bytes().all(|b| b.is_ascii_digit());
                let units = amount.parse().ok().filter(|units| digits && i64::try_from(*units).is_ok())?;
                (*precision == symbol.precision()).then_some(Money::new(units, currency))
            }
        }
    }
}

impl TransferJson<'_> {
    pub(super) fn read(
        &self,
        tx_id: TxId,
        position: ChainPosition,
        block_time: Timestamp,
    ) -> Result<Transfer, BlockError> {
        let name = |field, text: &str| AccountName::parse(text).map_err(|_| BlockError::Transfer { position, field });
        Ok(Transfer {
            tx_id,
            position,
            block_time,
            from: name("from", &self.from)?,
            to: name("to", &self.to)?,
            money: self.amount.read().ok_or(BlockError::Transfer { position, field: "amount" })?,
            memo: self.memo.as_ref().to_owned(),
        })
    }
}

#[derive(Deserialize)]
pub(super) struct ReleaseJson<'a> {
    #[serde(borrow)]
    from: Cow<'a, str>,
    #[serde(borrow)]
    receiver: Cow<'a, str>,
    #[serde(borrow, alias = "sbd_amount")]
    hbd_amount: AmountJson<'a>,
    #[serde(borrow, alias = "steem_amount")]
    hive_amount: AmountJson<'a>,
}

/// Distinguishes the positions of the two currencies of an escrow release, which are in one operation.
pub(super) const SECOND_CURRENCY: u32 = 1 << 31;

impl ReleaseJson<'_> {
    /// Returns the released amount of each currency, if not zero.
    pub(super) fn read(
        &self,
        tx_id: TxId,
        position: ChainPosition,
        block_time: Timestamp,
    ) -> Result<Vec<Transfer>, BlockError> {
        let name = |field, text: &str| AccountName::parse(text).map_err(|_| BlockError::Transfer { position, field });
        let (from, to) = (name("from", &self.from)?, name("receiver", &self.receiver)?);
        let hbd = self.hbd_amount.read().ok_or(BlockError::Transfer { position, field: "hbd_amount" })?;
        let hive = self.hive_amount.read().ok_or(BlockError::Transfer { position, field: "hive_amount" })?;
        let second = ChainPosition { op_in_tx: position.op_in_tx | SECOND_CURRENCY, ..position };
        let parts = [(hbd, position), (hive, second)].into_iter().filter(|(money, _)| money.units > 0);
        Ok(parts
            .map(|(money, position)| Transfer { tx_id, position, block_time, from, to, money, memo: String::new() })
            .collect())
    }
}

/// The money operations of a transaction with their indexes, and unknown operations.
pub(super) struct Operations<'a> {
    pub(super) paying: Vec<(u32, MoneyOperation<'a>)>,
    /// The names of unknown operations.
    pub(super) unknown: Vec<String>,
}

pub(super) enum MoneyOperation<'a> {
    Transfer(TransferJson<'a>),
    Release(ReleaseJson<'a>),
}

/// The kind of an operation by name, in either format.
#[derive(Clone, Copy)]
enum Kind {
    Transfer,
    Release,
    Other,
}

impl Kind {
    fn of(name: &str) -> Self {
        match name {
            "transfer" | "transfer_operation" => Self::Transfer,
            "escrow_release" | "escrow_release_operation" => Self::Release,
            _ => Self::Other,
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Operations<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Operations<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("operations")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
                let (mut all, mut unknown) = (Vec::new(), Vec::new());
                let mut position = 0;
                while let Some(operation) = items.next_element()? {
                    match operation {
                        OperationJson::MoneyOperation(paying) => all.push((position, paying)),
                        OperationJson::Known => {}
                        OperationJson::Unknown(kind) => unknown.push(kind),
                    }
                    position += 1;
                }
                Ok(Operations { paying: all, unknown })
            }
        }
        deserializer.deserialize_seq(Each)
    }
}

/// One operation.
enum OperationJson<'a> {
    MoneyOperation(MoneyOperation<'a>),
    /// A known operation that transfers no money.
    Known,
    /// An unknown operation, possibly added by a hard fork.
    Unknown(String),
}

impl OperationJson<'_> {
    fn of_name(name: &str) -> Self {
        operation_names::unknown(name).map_or(Self::Known, Self::Unknown)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for OperationJson<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOperation)
    }
}

struct OneOperation;

impl<'de> Visitor<'de> for OneOperation {
    type Value = OperationJson<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an operation")
    }

    /// `["transfer", {…}]`
    fn visit_seq<A: SeqAccess<'de>>(self, mut pair: A) -> Result<Self::Value, A::Error> {
        use serde::de::Error;
        let name: Text<'de> = pair.next_element()?.ok_or_else(|| A::Error::custom("an operation without a name"))?;
        let missing = || A::Error::custom("an operation without members");
        let operation = match Kind::of(&name.0) {
            Kind::Transfer => {
                OperationJson::MoneyOperation(MoneyOperation::Transfer(pair.next_element()?.ok_or_else(missing)?))
            }
            Kind::Release => {
                OperationJson::MoneyOperation(MoneyOperation::Release(pair.next_element()?.ok_or_else(missing)?))
            }
            Kind::Other => {
                // The members of other operations are skipped.
                while pair.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(OperationJson::of_name(&name.0));
            }
        };
        match pair.next_element::<IgnoredAny>()? {
            None => Ok(operation),
            Some(_) => Err(A::Error::custom("an operation of more than two parts")),
        }
    }

    /// `{"type": "transfer_operation", "value": {…}}`, in either order.
    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        use serde::de::Error;
        let mut kind = None;
        let mut other = OperationJson::Known;
        let mut paying = None;
        let mut value_before_type: Option<&'de RawValue> = None;
        while let Some(key) = members.next_key::<Text<'de>>()? {
            match (&*key.0, kind) {
                ("type", None) => {
                    let name = members.next_value::<Text<'de>>()?.0;
                    other = OperationJson::of_name(&name);
                    kind = Some(Kind::of(&name));
                }
                ("type", Some(_)) => return Err(A::Error::custom("an operation of two types")),
                ("value", Some(Kind::Transfer)) => paying = Some(MoneyOperation::Transfer(members.next_value()?)),
                ("value", Some(Kind::Release)) => paying = Some(MoneyOperation::Release(members.next_value()?)),
                ("value", None) => value_before_type = Some(members.next_value()?),
                _ => drop(members.next_value::<IgnoredAny>()?),
            }
        }
        if let Some(value) = value_before_type {
            paying = match kind {
                Some(Kind::Transfer) => Some(MoneyOperation::Transfer(read_value(value)?)),
                Some(Kind::Release) => Some(MoneyOperation::Release(read_value(value)?)),
                _ => None,
            };
        }
        match (kind, paying) {
            (Some(Kind::Other), _) => Ok(other),
            (Some(_), Some(paying)) => Ok(OperationJson::MoneyOperation(paying)),
            _ => Err(A::Error::custom("an operation without its type or value")),
        }
    }
}

fn read_value<'a, T: Deserialize<'a>, E: serde::de::Error>(value: &'a RawValue) -> Result<T, E> {
    serde_json::from_str(value.get()).map_err(E::custom)
}
