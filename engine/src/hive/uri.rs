//! `hive://sign/…` URIs, which open a wallet with a prepared transaction, and the equivalent HiveSigner URLs.
//!
//! Their base64 uses `-` for `+`, `_` for `/` and `.` for `=`, with padding.

use base64::{Engine, engine::general_purpose::STANDARD};

use super::{Asset, Operation, Transfer, json::write_list};
use crate::{account::AccountName, hive::Form, money::Money};

/// The placeholder for the signing account.
pub const SIGNER: &str = "__signer";

/// Parameters of a signing URI; unset members are omitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Params<'a> {
    /// Sign without broadcasting.
    pub no_broadcast: bool,
    /// The signing account.
    pub signer: Option<&'a str>,
    /// The callback URL; the wallet replaces `{{id}}` and `{{sig}}`.
    pub callback: Option<&'a str>,
    /// The authority to sign with: `active` or `posting`.
    pub authority: Option<&'a str>,
}

/// Returns a transfer from an account or from the signing account.
#[must_use]
pub fn transfer(from: Option<&AccountName>, to: &AccountName, money: Money, memo: &str) -> Operation {
    Operation::Transfer(Transfer {
        from: from.map_or(SIGNER, AccountName::as_str).to_owned(),
        to: to.to_string(),
        amount: Asset::from(money),
        memo: memo.to_owned(),
    })
}

/// Returns `hive://sign/op/…` for one operation.
#[must_use]
pub fn sign_op(operation: &Operation, params: &Params<'_>) -> String {
    let mut json = String::new();
    operation.write(&mut json, Form::Condenser);
    format!("hive://sign/op/{}{}", encode(&json), query(params))
}

/// Returns `hive://sign/ops/…` for several operations.
#[must_use]
pub fn sign_ops(operations: &[Operation], params: &Params<'_>) -> String {
    let mut json = String::new();
    write_list(&mut json, operations, |out, operation| operation.write(out, Form::Condenser));
    format!("hive://sign/ops/{}{}", encode(&json), query(params))
}

/// Returns the equivalent HiveSigner URL, for users without a wallet for `hive://`.
#[must_use]
pub fn hivesigner(uri: &str) -> String {
    uri.replacen("hive://", "https://hivesigner.com/", 1)
}

/// Encodes text in the base64 variant of these URIs.
#[must_use]
pub fn encode(text: &str) -> String {
    let swap = |c| match c {
        '+' => '-',
        '/' => '_',
        '=' => '.',
        other => other,
    };
    STANDARD.encode(text).chars().map(swap).collect()
}

/// Decodes the output of [`encode`].
#[must_use]
pub fn decode(text: &str) -> Option<String> {
    let swap = |c| match c {
        '-' => Some('+'),
        '_' => Some('/'),
        '.' => Some('='),
        '+' | '/' | '=' => None,
        other => Some(other),
    };
    let standard: Option<String> = text.chars().map(swap).collect();
    String::from_utf8(STANDARD.decode(standard?).ok()?).ok()
}

fn query(params: &Params<'_>) -> String {
    let mut query = String::new();
    let mut add = |key: &str, value: &str| {
        query.push(if query.is_empty() { '?' } else { '&' });
        query.push_str(key);
        query.push('=');
        query.push_str(value);
    };
    if params.no_broadcast {
        add("nb", "");
    }
    if let Some(signer) = params.signer {
        add("s", signer);
    }
    if let Some(callback) = params.callback {
        add("cb", &encode(callback));
    }
    if let Some(authority) = params.authority {
        add("a", authority);
    }
    query
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn uri_encoding_round_trips_without_reserved_characters(text in any::<String>()) {
            let encoded = encode(&text);
            prop_assert!(encoded.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)));
            prop_assert_eq!(decode(&encoded), Some(text));
        }
    }
}
