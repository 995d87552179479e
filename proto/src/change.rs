//! Conversions to changes of optional strings.

use crate::v1::{TextChange, text_change::Change};

impl From<Option<String>> for TextChange {
    fn from(text: Option<String>) -> Self {
        Self { change: Some(text.map_or(Change::Remove(()), Change::Value)) }
    }
}
