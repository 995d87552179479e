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

use super::names::{
    CANCELLED_BY_NAMES, DISPOSITION_NAMES, EXCEPTION_NAMES, FINALITY_NAMES, RESOLUTION_NAMES, ROUTE_NAMES, STATUS_NAMES,
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

/// Defines a string type for each list of names. The schema of a type lists them.
macro_rules! names {
    ($($(#[$doc:meta])* $Name:ident: $names:expr;)+) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
            #[serde(transparent)]
            pub(crate) struct $Name(pub(crate) &'static str);

            impl PartialSchema for $Name {
                fn schema() -> RefOr<Schema> {
                    string().enum_values(Some($names)).into()
                }
            }

            impl ToSchema for $Name {}
        )+
    };
}

names! {
    /// The state of a payment.
    StatusName: STATUS_NAMES.names.iter().copied();
    /// Why a payment is in its state.
    StatusReasonName: v1::PaymentStatusReason::ALL.iter().filter_map(|reason| reason.rest_name());
    /// An exception of a payment.
    ExceptionName: EXCEPTION_NAMES.names.iter().copied();
    /// Whether a block can still be replaced.
    FinalityName: FINALITY_NAMES.names.iter().copied();
    /// What a transfer counts as.
    DispositionName: DISPOSITION_NAMES.names.iter().copied();
    /// The way a transfer was signed.
    RouteName: ROUTE_NAMES.names.iter().copied();
    /// Who requested the cancellation.
    CancelledByName: CANCELLED_BY_NAMES.names.iter().copied();
    /// A decision about exceptions.
    ResolutionName: RESOLUTION_NAMES.names.iter().copied();
    /// The payment provider.
    ProviderName: ["hive"];
}
