//! Schemas of the values in records. A type that is not published under its own name is inlined where it is used.

use std::{borrow::Cow, fmt::Display};

use engine::{
    money::{Currency, Money},
    time::Timestamp,
};
use proto::v1;
use serde::{Serialize, Serializer};
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ObjectBuilder, RefOr, Schema,
        schema::{SchemaFormat, Type},
    },
};

use super::words::{
    CANCELLED_BY_WORDS, DISPOSITION_WORDS, EXCEPTION_WORDS, FINALITY_WORDS, RESOLUTION_WORDS, ROUTE_WORDS, STATUS_WORDS,
};

/// A value that is serialized as its text.
pub(crate) struct Text<T>(pub(crate) T);

impl<T: Display> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// An amount in smallest units, as a string of digits.
pub(crate) type Units = Text<u64>;
/// An amount in the format of the ledger.
pub(crate) type Formatted = Text<Money>;
/// The code of a currency.
pub(crate) type Code = Text<Currency>;
/// A time in ISO 8601.
pub(crate) type Time = Text<Timestamp>;

fn string() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

macro_rules! texts {
    ($($Value:ty, $name:literal, $schema:expr;)+) => {
        $(
            impl PartialSchema for Text<$Value> {
                fn schema() -> RefOr<Schema> {
                    $schema.into()
                }
            }

            impl ToSchema for Text<$Value> {
                fn name() -> Cow<'static, str> {
                    $name.into()
                }
            }
        )+
    };
}

texts! {
    u64, "Units", string().pattern(Some("^[0-9]+$"));
    Money, "Formatted", string();
    Currency, "Code", string().enum_values(Some(["HIVE", "HBD"]));
    Timestamp, "Time", string().format(Some(SchemaFormat::Custom("date-time".to_owned())));
}

/// Defines a string type for each list of words. The schema of a type lists its words.
macro_rules! words {
    ($($(#[$doc:meta])* $Name:ident: $words:expr;)+) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
            #[serde(transparent)]
            pub(crate) struct $Name(pub(crate) &'static str);

            impl PartialSchema for $Name {
                fn schema() -> RefOr<Schema> {
                    string().enum_values(Some($words)).into()
                }
            }

            impl ToSchema for $Name {}
        )+
    };
}

words! {
    /// The state of a payment.
    StatusWord: STATUS_WORDS.words.iter().copied();
    /// Why a payment is in its state.
    StatusReasonWord: v1::PaymentStatusReason::ALL.iter().filter_map(|reason| reason.rest_name());
    /// An exception of a payment.
    ExceptionWord: EXCEPTION_WORDS.words.iter().copied();
    /// Whether a block can still be replaced.
    FinalityWord: FINALITY_WORDS.words.iter().copied();
    /// What a transfer counts as.
    DispositionWord: DISPOSITION_WORDS.words.iter().copied();
    /// The way a transfer was signed.
    RouteWord: ROUTE_WORDS.words.iter().copied();
    /// Who requested the cancellation.
    CancelledByWord: CANCELLED_BY_WORDS.words.iter().copied();
    /// A decision about exceptions.
    ResolutionWord: RESOLUTION_WORDS.words.iter().copied();
    /// The payment provider.
    ProviderWord: ["hive"];
}
