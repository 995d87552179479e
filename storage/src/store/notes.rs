//! Small named values, and the keys that sign offers and receipts.

use engine::x402::ReceiptKeys;

use crate::store::{
    error::Read,
    topic::topic,
    wrapped::{Call, Wrapped},
};

topic! {
    /// Small named values, and the keys that sign offers and receipts.
    Notes {
        /// Returns a small named value that was stored with [`Write::Note`](crate::Write::Note).
        note(name: &'static str) -> Option<Vec<u8>>;

        /// Returns the keys that sign offers and receipts; none before the first use.
        receipt_keys() -> Option<ReceiptKeys>;
    }
}
