//! Why a transaction is refused, layer by layer.

use crate::{
    account::NameError,
    hive::{Denied, PublicKey, SignatureError},
    time::Timestamp,
};

/// The layers a transaction passes, in the order they are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// Is it a transaction at all, written in the one canonical way?
    Decode,
    /// Could any chain state accept it?
    Validate,
    /// Is it something this gateway reads?
    Policy,
    /// Does every signature recover to a key, and no key twice?
    Signature,
    /// Do the keys speak for the accounts?
    Authority,
    /// Does it live at this head time?
    Expiration,
    /// Does it name a block of this chain?
    Tapos,
}

impl Layer {
    /// Returns the layer's name in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Decode => "decode",
            Self::Validate => "validate",
            Self::Policy => "policy",
            Self::Signature => "signature",
            Self::Authority => "authority",
            Self::Expiration => "expiration",
            Self::Tapos => "tapos",
        }
    }
}

/// A text or bytes that are no transaction: where, and what is wrong there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}{fault}", .field, if .field.is_empty() { "" } else { ": " })]
pub struct DecodeError {
    /// The path to the fault, such as `operations[0].amount`; empty for the whole.
    pub field: String,
    /// What is wrong there.
    pub fault: Fault,
}

impl DecodeError {
    /// Returns the layer that refuses: what hived would take but we do not read is policy, not nonsense.
    #[must_use]
    pub const fn layer(&self) -> Layer {
        match self.fault {
            Fault::ObsoleteSymbol | Fault::UnknownOperation { .. } => Layer::Policy,
            Fault::Utf8 => Layer::Validate,
            _ => Layer::Decode,
        }
    }

    pub(crate) fn inside(mut self, outer: &str) -> Self {
        let dot = if self.field.is_empty() || self.field.starts_with('[') { "" } else { "." };
        self.field = format!("{outer}{dot}{}", self.field);
        self
    }
}

impl From<Fault> for DecodeError {
    fn from(fault: Fault) -> Self {
        Self { field: String::new(), fault }
    }
}

/// What can be wrong at one place of a text or of bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Not JSON.
    #[error("is not JSON (line {line}, column {column})")]
    NotJson {
        /// Line of the first wrong character, from 1.
        line: usize,
        /// Its column.
        column: usize,
    },
    /// One object says the same key twice; readers differ in which they believe.
    #[error("has the key `{key}` twice")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// Nested deeper than any transaction needs.
    #[error("is nested deeper than 16 levels")]
    TooDeep,
    /// A number with a fraction or exponent, or beyond 64 bits.
    #[error("has a number that is not a whole 64-bit one")]
    NotWhole,
    /// A member is missing.
    #[error("is missing")]
    Missing,
    /// Something of another type.
    #[error("must be {wanted}")]
    Wanted {
        /// The type, in words.
        wanted: &'static str,
    },
    /// Operations of both JSON forms in one transaction.
    #[error("mixes condenser and HF26 operations")]
    MixedForms,
    /// An operation we do not read, by name.
    #[error("is a `{name}`, which this codec does not read")]
    UnknownOperation {
        /// Its name.
        name: String,
    },
    /// An operation we do not read, by number.
    #[error("is operation number {id}, which this codec does not read")]
    UnknownOperationId {
        /// Its number.
        id: u32,
    },
    /// STEEM or SBD; hived still maps them, nobody means them.
    #[error("uses the symbol STEEM or SBD of before the fork")]
    ObsoleteSymbol,
    /// Extensions, where there are none.
    #[error("must be empty")]
    NotEmpty,
    /// The bytes end too early.
    #[error("ends too early")]
    Truncated,
    /// Bytes after the end.
    #[error("has {count} bytes after its end")]
    Trailing {
        /// How many.
        count: usize,
    },
    /// A length that is not written in the fewest bytes, or beyond 32 bits.
    #[error("has a length that is not a minimal 32-bit varint")]
    Varint,
    /// Text that is not UTF-8.
    #[error("is not UTF-8")]
    Utf8,
}

/// A transaction that no state of the chain could accept (hived: `validate()`).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// No operations.
    #[error("a transaction must have at least one operation")]
    NoOperations,
    /// A name breaks the rule.
    #[error("{field} {why}")]
    Name {
        /// Which member.
        field: &'static str,
        /// What it says.
        name: String,
        /// Which half of the rule it breaks.
        why: NameError,
    },
    /// VESTS, or HBD where only HIVE goes.
    #[error("{field} has an asset that this operation cannot move")]
    Asset {
        /// Which member.
        field: &'static str,
    },
    /// Zero or negative.
    #[error("{field} must be greater than zero")]
    NotPositive {
        /// Which member.
        field: &'static str,
    },
    /// Longer than 2047 bytes.
    #[error("memo has {bytes} bytes; the chain takes at most 2047")]
    MemoTooLong {
        /// Its length.
        bytes: usize,
    },
    /// More often than daily.
    #[error("recurrence must be at least 24 hours")]
    Recurrence,
    /// Fewer than two times.
    #[error("executions must be at least 2")]
    Executions,
    /// A recurrent transfer beyond 730 days.
    #[error("a recurrent transfer must end within 730 days")]
    TooLong,
    /// A recurrent transfer to oneself.
    #[error("a recurrent transfer must go to another account")]
    ToSelf,
    /// A number or text outside its range.
    #[error("{field} is out of range")]
    Range {
        /// Which member.
        field: &'static str,
    },
}

/// Why a transaction is refused, with the facts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Not a transaction.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// Not a possible one.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// A signature does not hold.
    #[error("signature {index} {why}")]
    Signature {
        /// Which one.
        index: usize,
        /// Why.
        why: SignatureError,
    },
    /// Two signatures of one key (hived: `tx_duplicate_sig`).
    #[error("{key} has signed twice")]
    DuplicateSignature {
        /// The key.
        key: PublicKey,
    },
    /// The keys do not speak for the accounts.
    #[error(transparent)]
    Authority(#[from] Denied),
    /// The head has reached the expiration.
    #[error("expired at {expiration}, the head is at {head}")]
    Expired {
        /// When it ended.
        expiration: Timestamp,
        /// The head's time.
        head: Timestamp,
    },
    /// Expires later than the chain allows.
    #[error("expires at {expiration}, more than a day after the head at {head}")]
    TooFarAhead {
        /// When it ends.
        expiration: Timestamp,
        /// The head's time.
        head: Timestamp,
    },
    /// Its reference block is not ours.
    #[error("refers to a block that is not of this chain")]
    Tapos,
}

impl Refusal {
    /// Returns the layer that refuses.
    #[must_use]
    pub const fn layer(&self) -> Layer {
        match self {
            Self::Decode(error) => error.layer(),
            Self::Invalid(_) => Layer::Validate,
            Self::Signature { .. } | Self::DuplicateSignature { .. } => Layer::Signature,
            Self::Authority(_) => Layer::Authority,
            Self::Expired { .. } | Self::TooFarAhead { .. } => Layer::Expiration,
            Self::Tapos => Layer::Tapos,
        }
    }
}
