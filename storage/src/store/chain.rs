//! The scanner's cursor, and the price of HIVE.

use engine::payment::Rate;

use crate::{
    batch::Cursor,
    store::{
        error::Read,
        topic::topic,
        wrapped::{Call, Wrapped},
    },
};

topic! {
    /// The scanner's cursor, and the price of HIVE.
    Chain {
        /// Returns the last irreversible block whose effects are all durable.
        cursor() -> Option<Cursor>;

        /// Returns the latest price of HIVE.
        rate() -> Option<Rate>;
    }
}
