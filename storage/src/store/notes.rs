//! Small named values.

use crate::store::{
    error::Read,
    topic::topic,
    wrapped::{Call, Wrapped},
};

topic! {
    /// Small named values.
    Notes {
        /// Returns a small named value that was stored with [`Write::Note`](crate::Write::Note).
        note(name: &'static str) -> Option<Vec<u8>>;
    }
}
