//! How far the chain has been read, and the price of HIVE.

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
    /// How far the chain has been read, and the price of HIVE.
    Chain {
        /// Returns the newest irreversible block whose every effect is durable.
        cursor() -> Option<Cursor>;

        /// Returns the newest price of HIVE that was read.
        rate() -> Option<Rate>;
    }
}
