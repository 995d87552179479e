//! A request of a logged-in visitor, and the frame of every page of the dashboard.

use proto::{ApiError, v1};

use crate::facade::{
    http::{
        call::Call,
        query::Query,
        sessions::{DashboardState, Token},
        state::Facade,
    },
    record,
};

/// One request of a logged-in visitor.
pub(super) struct Visit<'f> {
    pub(super) facade: &'f Facade,
    pub(super) dashboard: &'f DashboardState,
    pub(super) call: Call,
    pub(super) token: Token,
    pub(super) merchant: v1::Merchant,
    /// The fields of a submitted form.
    pub(super) form: Query,
}

/// The frame of every page.
pub(super) struct Frame<'v> {
    pub(super) merchant: &'v v1::Merchant,
    pub(super) form_token: String,
    /// The current menu item.
    pub(super) section: &'static str,
    /// The confirmation of the last action.
    pub(super) done: Option<&'static str>,
    /// The errors of the last form.
    pub(super) problems: Vec<String>,
}

impl Visit<'_> {
    pub(super) fn frame(&self, section: &'static str, problems: Vec<String>) -> Frame<'_> {
        Frame {
            merchant: &self.merchant,
            form_token: self.token.form_token(),
            section,
            done: self.call.query().get("done").and_then(done),
            problems,
        }
    }

    /// Returns the API key of the session.
    pub(super) fn key(&self) -> &str {
        self.call.caller.api_key.as_ref().and_then(|key| key.to_str().ok()).unwrap_or_default()
    }

    pub(super) fn request<T>(&self, message: T) -> tonic::Request<T> {
        self.call.caller.request(message)
    }
}

/// Returns the confirmation that a query parameter names; other values show nothing.
fn done(word: &str) -> Option<&'static str> {
    Some(match word {
        "saved" => "Saved.",
        "cancelled" => "Cancellation requested. It takes effect within seconds.",
        "sent" => "Transfer sent. It is final after a few blocks.",
        "assigned" => "The transfer was assigned to this payment.",
        "ignored" => "The transfer was ignored.",
        "metadata-deleted" => "Metadata deleted.",
        "note-deleted" => "Note deleted.",
        "resolved" => "The decision was saved.",
        "tested" => "A test event was sent.",
        "endpoint-deleted" => "The endpoint was deleted.",
        "enabled" => "The endpoint is enabled.",
        "redelivered" => "The event is being redelivered.",
        "replayed" => "Undelivered events are being sent again.",
        "active" => "The merchant is active.",
        "inactive" => "The merchant is inactive.",
        "cleared" => "The hold was ended.",
        "proven" => "Ownership is proven.",
        "kept" => "The change was cancelled.",
        "limited" => "Individual limits were set.",
        "unlimited" => "The default limits apply.",
        _ => return None,
    })
}

/// Returns the errors of a request, one line for each field.
pub(super) fn problems(refused: &ApiError) -> Vec<String> {
    match refused.fields.as_slice() {
        [] => vec![refused.message.clone().into()],
        fields => fields.iter().map(|field| format!("{} {}", field.field, field.message)).collect(),
    }
}

/// Formats an amount without its currency.
pub(super) fn decimal(units: u64) -> String {
    format!("{}.{:03}", units / 1_000, units % 1_000)
}

/// Formats US cents as dollars.
pub(super) fn dollars(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// Parses an amount with at most three decimals.
pub(super) fn units(text: &str) -> Option<u64> {
    let (whole, part) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    let are_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || part.len() > 3 || !are_digits(whole) || !are_digits(part) {
        return None;
    }
    whole.parse::<u64>().ok()?.checked_mul(1_000)?.checked_add(format!("{part:0<3}").parse().ok()?)
}

/// Formats an instant to the minute.
pub(super) fn minute(wire: impl Into<Option<proto::time::Timestamp>>) -> String {
    let text = record::instant(wire).to_ledger();
    text.chars().take(16).collect::<String>().replace('T', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_read_as_people_type_it() {
        for (text, wanted) in [
            ("1", Some(1_000)),
            ("1.5", Some(1_500)),
            (" 0.001 ", Some(1)),
            ("12.345", Some(12_345)),
            ("1.2345", None),
            (".5", None),
            ("", None),
            ("-1", None),
            ("1e3", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(units(text), wanted, "{text}");
        }
        assert_eq!(decimal(12_045), "12.045");
    }
}
