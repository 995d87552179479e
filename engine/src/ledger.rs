//! Ledger types independent of a node's encoding: blocks, transfers and payment memos.

use std::{collections::BTreeMap, fmt};

use unicode_normalization::UnicodeNormalization;

use crate::{
    account::AccountName,
    ids::{ENCODED_LEN, PaymentId},
    money::Money,
    mutant,
    time::Timestamp,
};

macro_rules! hash20 {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub [u8; 20]);

        impl $name {
            /// Parses 40 hex characters.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                let mut bytes = [0; 20];
                hex::decode_to_slice(text, &mut bytes).ok()?;
                Some(Self(bytes))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut text = [0; 40];
                hex::encode_to_slice(self.0, &mut text).expect("20 bytes take 40 characters");
                f.write_str(std::str::from_utf8(&text).expect("hex is ASCII"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

hash20!(/// A transaction's id: the first 20 bytes of the hash of its unsigned bytes.
    TxId);
hash20!(/// A block's id; its first 4 bytes are the block's number, big endian.
    BlockId);

impl BlockId {
    /// Returns the block's number.
    #[must_use]
    pub const fn number(self) -> u32 {
        u32::from_be_bytes([self.0[0], self.0[1], self.0[2], self.0[3]])
    }
}

/// The position of an operation on the chain, ordered by block, transaction and operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChainPosition {
    /// The block's number.
    pub block_num: u32,
    /// The transaction's index in its block.
    pub tx_in_block: u32,
    /// The operation's index in its transaction.
    pub op_in_tx: u32,
}

impl fmt::Display for ChainPosition {
    /// Formats the id of a transfer: `block-transaction-operation`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.block_num, self.tx_in_block, self.op_in_tx)
    }
}

/// A transfer of liquid funds in a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// The transaction that contains it.
    pub tx_id: TxId,
    /// The position on the chain.
    pub position: ChainPosition,
    /// The time of its block.
    pub block_time: Timestamp,
    /// The sender.
    pub from: AccountName,
    /// The recipient.
    pub to: AccountName,
    /// The amount.
    pub money: Money,
    /// The memo as stored on the chain.
    pub memo: String,
}

/// The parts of a block that a payment engine needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The id, which contains the block number.
    pub id: BlockId,
    /// The id of the previous block.
    pub previous: BlockId,
    /// The block time, whole seconds.
    pub time: Timestamp,
    /// Every `transfer` operation in it, in order.
    pub transfers: Vec<Transfer>,
    /// Payouts of escrows: liquid funds received without a transfer; they never pay a session.
    pub escrow_releases: Vec<Transfer>,
    /// Counts of unknown operations by name; the number of names is limited, the rest is counted together.
    pub unknown_operations: BTreeMap<String, u32>,
}

/// Result of the virtual operations of an irreversible block.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VirtualOperations {
    /// Their payouts, in order.
    pub transfers: Vec<Transfer>,
    /// Counts of unknown virtual operations by name; the number of names is limited, the rest is counted together.
    pub unknown: BTreeMap<String, u32>,
}

impl Block {
    /// Returns the block's number.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.id.number()
    }
}

/// The head of the chain as reported by a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// The head block.
    pub block_id: BlockId,
    /// The time of the head block.
    pub time: Timestamp,
    /// The number of the last irreversible block.
    pub irreversible_num: u32,
}

/// The result of matching a memo to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoMatch {
    /// The memo is exactly `pos-<id>`.
    Exact(PaymentId),
    /// The memo contains the id of one session, with other text, case or whitespace.
    Normalized(PaymentId),
    /// The memo contains the ids of several sessions.
    Ambiguous,
    /// The memo is encrypted (it starts with `#`); only the recipient can read it.
    Encrypted,
    /// The memo contains no session id.
    None,
}

/// The prefix of payment memos, followed by the payment id.
pub const MEMO_PREFIX: &str = "pos-";

/// Returns the memo that pays a session: `pos-<id>`.
#[must_use]
pub fn memo_of(payment: PaymentId) -> String {
    format!("{MEMO_PREFIX}{payment}")
}

/// The prefix of refund memos, followed by the payment id.
pub const REFUND_MEMO_PREFIX: &str = "refund-";

/// Returns the memo of a refund: `refund-<id>`.
#[must_use]
pub fn refund_memo_of(payment: PaymentId) -> String {
    format!("{REFUND_MEMO_PREFIX}{payment}")
}

/// Returns the payment of a refund memo: the only id preceded by `refund-`.
#[must_use]
pub fn match_refund_memo(memo: &str) -> Option<PaymentId> {
    match find_id(memo, REFUND_MEMO_PREFIX) {
        MemoMatch::Exact(id) | MemoMatch::Normalized(id) => Some(id),
        MemoMatch::Ambiguous | MemoMatch::Encrypted | MemoMatch::None => None,
    }
}

/// Matches a memo to a session. Wallets may add text and change case; an id matches only if no character of the id
/// alphabet is adjacent to it.
#[must_use]
pub fn match_memo(memo: &str) -> MemoMatch {
    if let Some(id) = memo.strip_prefix(MEMO_PREFIX).and_then(|id| id.parse().ok()) {
        return MemoMatch::Exact(id);
    }
    if mutant!("only-exact-memos") { MemoMatch::None } else { find_id(memo, MEMO_PREFIX) }
}

/// Matches the memo of a fee transfer, which contains the session id in any text, such as `fee-<id>`.
#[must_use]
pub fn match_fee_memo(memo: &str) -> MemoMatch {
    find_id(memo, "")
}

/// Finds the only session id in `memo` that is preceded by `lead`.
fn find_id(memo: &str, lead: &str) -> MemoMatch {
    if memo.starts_with('#') && !mutant!("encrypted-memo-is-matched") {
        return MemoMatch::Encrypted;
    }
    let start = format!("{lead}{}", PaymentId::PREFIX);
    let token_len = start.len() + ENCODED_LEN;
    let folded = if memo.is_ascii() { folded_ascii(memo) } else { folded(memo) };
    let mut found = None;
    for (at, _) in folded.match_indices(&start) {
        let left = folded[..at].chars().next_back();
        let right = folded.get(at + token_len..).and_then(|tail| tail.chars().next());
        let token = folded.get(at + lead.len()..at + token_len);
        let id = token.and_then(|token| token.parse::<PaymentId>().ok());
        if let Some(id) = id.filter(|_| !touches(left) && !touches(right)) {
            match found {
                Some(other) if mutant!("ambiguous-memo-pays-the-first") => found = Some(other),
                Some(other) if other != id => return MemoMatch::Ambiguous,
                _ => found = Some(id),
            }
        }
    }
    found.map_or(MemoMatch::None, MemoMatch::Normalized)
}

/// Normalizes a memo for matching: composes it first, so that a decomposed look-alike does not match a plain letter.
fn folded(memo: &str) -> String {
    memo.nfc().filter(|c| !is_invisible(*c)).flat_map(char::to_lowercase).collect()
}

/// The same for ASCII memos, which need no composition.
fn folded_ascii(memo: &str) -> String {
    let mut text = String::with_capacity(memo.len());
    text.extend(memo.chars().filter(|c| !is_invisible(*c)).map(|c| c.to_ascii_lowercase()));
    text
}

/// Returns whether an adjacent character could belong to the id.
fn touches(neighbour: Option<char>) -> bool {
    neighbour.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Returns whether a character is an invisible control, zero-width or direction mark. Line breaks and tabs separate
/// words and are kept.
fn is_invisible(c: char) -> bool {
    c.is_control() && !c.is_whitespace()
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(bits: u128) -> PaymentId {
        PaymentId::from_bits(bits)
    }

    #[test]
    fn the_exact_memo_matches_its_session() {
        assert_eq!(match_memo(&memo_of(id(7))), MemoMatch::Exact(id(7)));
    }

    #[test]
    fn surrounding_text_case_spaces_and_invisible_marks_do_not_prevent_a_match() {
        let memo = memo_of(id(u128::MAX / 7));
        for text in [
            format!(" {memo}"),
            format!("{memo} thanks!"),
            memo.to_uppercase(),
            format!("order 5: ({memo})"),
            format!("\u{200b}{memo}\n"),
            format!("{memo} {memo}"),
            format!("{memo}\n{memo}"),
            format!("order\r\n{memo}\tthanks"),
            format!("{memo} AB12"),
            format!("{}\u{200d}{}", &memo[..10], &memo[10..]),
            format!("é{memo}é"),
            format!("pos-{memo}"),
        ] {
            assert_eq!(match_memo(&text), MemoMatch::Normalized(id(u128::MAX / 7)), "{text:?}");
        }
    }

    #[test]
    fn incomplete_or_adjoined_ids_do_not_match() {
        let memo = memo_of(id(7));
        for text in [
            String::new(),
            "thanks".to_owned(),
            format!("x{memo}"),
            format!("{memo}x"),
            format!("{memo}_"),
            format!("0{memo}"),
            memo[..memo.len() - 1].to_owned(),
            memo.replace("pos-", ""),
            memo.replace("pay_", "mer_"),
            "pos-pay_".to_owned(),
            memo.replace('0', "o"),
        ] {
            assert_eq!(match_memo(&text), MemoMatch::None, "{text:?}");
        }
        assert_eq!(match_memo(&format!("#{memo}")), MemoMatch::Encrypted);
        assert_eq!(match_memo(&format!("{memo} {}", memo_of(id(8)))), MemoMatch::Ambiguous);
        assert_eq!(match_memo(&format!("{memo}/{memo}/{}", memo_of(id(8)))), MemoMatch::Ambiguous);
    }

    #[test]
    fn a_fee_memo_matches_a_session_id_within_any_text() {
        for text in [format!("fee-{}", id(7)), memo_of(id(7)), format!("Fee for {} (1.5 %)", id(7))] {
            assert_eq!(match_fee_memo(&text), MemoMatch::Normalized(id(7)), "{text:?}");
        }
        assert_eq!(match_fee_memo(&format!("fee-{} {}", id(7), id(8))), MemoMatch::Ambiguous);
        assert_eq!(match_fee_memo(&format!("fee_{}", id(7))), MemoMatch::None);
    }

    #[test]
    fn a_refund_memo_matches_one_payment_and_a_payment_memo_is_no_refund() {
        assert_eq!(match_refund_memo(&refund_memo_of(id(7))), Some(id(7)));
        assert_eq!(match_refund_memo(&format!("Sorry! REFUND-{} ", id(7))), Some(id(7)));
        let two = format!("{} {}", refund_memo_of(id(7)), refund_memo_of(id(8)));
        for text in [memo_of(id(7)), two, format!("#{}", refund_memo_of(id(7))), format!("xrefund-{}", id(7))] {
            assert_eq!(match_refund_memo(&text), None, "{text:?}");
        }
        assert_eq!(match_memo(&refund_memo_of(id(7))), MemoMatch::None);
    }

    proptest! {
        #[test]
        fn matching_any_memo_never_panics_and_a_match_contains_the_id(memo in ".{0,120}") {
            if let MemoMatch::Exact(found) | MemoMatch::Normalized(found) = match_memo(&memo) {
                prop_assert!(memo.to_lowercase().contains(&found.to_string()[4..8]));
            }
        }

        #[test]
        fn ascii_normalization_equals_unicode_normalization(memo in "[\\x00-\\x7f]{0,120}") {
            prop_assert_eq!(folded_ascii(&memo), folded(&memo));
        }

        #[test]
        fn an_id_between_other_characters_matches(bits in any::<u128>(), left in "[^0-9a-zA-Z_#]{0,9}", right in "[^0-9a-zA-Z_]{0,9}") {
            let folded_touch = |text: &str| text.chars().filter(|c| !is_invisible(*c)).flat_map(char::to_lowercase).any(|c| c.is_ascii_lowercase());
            prop_assume!(!folded_touch(&left) && !folded_touch(&right) && !right.nfc().next().is_some_and(|c| ('\u{300}'..='\u{36f}').contains(&c)));
            let text = format!("{left}{}{right}", memo_of(id(bits)));
            prop_assert!(matches!(match_memo(&text), MemoMatch::Exact(found) | MemoMatch::Normalized(found) if found == id(bits)));
        }
    }
}
