//! Errors of transactions by validation layer.

use crate::{
    account::NameError,
    hive::{Denied, PublicKey, SignatureError},
    time::Timestamp,
};

/// The validation layers of a transaction, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// Decoding of the canonical encoding.
    Decode,
    /// Validation independent of the chain state.
    Validate,
    /// Operations that this gateway supports.
    Policy,
    /// Recovery of the signing keys, without duplicates.
    Signature,
    /// Authorization by the accounts' authorities.
    Authority,
    /// Expiration relative to the head block.
    Expiration,
    /// Reference to a block of this chain (TaPoS).
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

/// A decoding error with its path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{}{fault}", .field, if .field.is_empty() { "" } else { ": " })]
pub struct DecodeError {
    /// The path of the error, such as `operations[0].amount`; empty for the whole input.
    pub field: String,
    /// The kind of error.
    pub fault: Fault,
}

impl DecodeError {
    /// Returns the layer of the error: operations that hived accepts but this gateway does not support are `Policy`.
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

/// The kind of a decoding error.
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
    /// A duplicate key in an object; parsers differ in which one they use.
    #[error("has the key `{key}` twice")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// Nested too deeply.
    #[error("is nested deeper than 16 levels")]
    TooDeep,
    /// A number with a fraction or exponent, or beyond 64 bits.
    #[error("has a number that is not a whole 64-bit one")]
    NotWhole,
    /// A missing member.
    #[error("is missing")]
    Missing,
    /// A value of the wrong type.
    #[error("must be {wanted}")]
    Wanted {
        /// The expected type.
        wanted: &'static str,
    },
    /// Operations in both JSON formats in one transaction.
    #[error("mixes condenser and HF26 operations")]
    MixedForms,
    /// An unsupported operation, by name.
    #[error("is a `{name}`, which this codec does not read")]
    UnknownOperation {
        /// The name.
        name: String,
    },
    /// An unsupported operation, by number.
    #[error("is operation number {id}, which this codec does not read")]
    UnknownOperationId {
        /// The number.
        id: u32,
    },
    /// STEEM or SBD, which hived still maps to HIVE and HBD.
    #[error("uses the symbol STEEM or SBD of before the fork")]
    ObsoleteSymbol,
    /// Extensions, which are not supported.
    #[error("must be empty")]
    NotEmpty,
    /// Unexpected end of input.
    #[error("ends too early")]
    Truncated,
    /// Trailing bytes.
    #[error("has {count} bytes after its end")]
    Trailing {
        /// The number of bytes.
        count: usize,
    },
    /// A varint that is not minimal or exceeds 32 bits.
    #[error("has a length that is not a minimal 32-bit varint")]
    Varint,
    /// Text that is not UTF-8.
    #[error("is not UTF-8")]
    Utf8,
}

/// A transaction that is invalid in every chain state (hived: `validate()`).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// No operations.
    #[error("a transaction must have at least one operation")]
    NoOperations,
    /// An invalid account name.
    #[error("{field} {why}")]
    Name {
        /// The member.
        field: &'static str,
        /// The value.
        name: String,
        /// The reason.
        why: NameError,
    },
    /// An asset that the member does not accept.
    #[error("{field} has an asset that this operation cannot move")]
    Asset {
        /// The member.
        field: &'static str,
    },
    /// Zero or negative.
    #[error("{field} must be greater than zero")]
    NotPositive {
        /// The member.
        field: &'static str,
    },
    /// Longer than 2047 bytes.
    #[error("memo has {bytes} bytes; the chain takes at most 2047")]
    MemoTooLong {
        /// The length.
        bytes: usize,
    },
    /// A recurrent transfer more often than daily.
    #[error("recurrence must be at least 24 hours")]
    Recurrence,
    /// A recurrent transfer with fewer than two payments.
    #[error("executions must be at least 2")]
    Executions,
    /// A recurrent transfer beyond 730 days.
    #[error("a recurrent transfer must end within 730 days")]
    TooLong,
    /// A recurrent transfer to the sender.
    #[error("a recurrent transfer must go to another account")]
    ToSelf,
    /// A value out of range.
    #[error("{field} is out of range")]
    Range {
        /// The member.
        field: &'static str,
    },
}

/// The reason why a transaction is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It cannot be decoded.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// It is invalid.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// A signature is invalid.
    #[error("signature {index} {why}")]
    Signature {
        /// The index of the signature.
        index: usize,
        /// The reason.
        why: SignatureError,
    },
    /// Two signatures of one key (hived: `tx_duplicate_sig`).
    #[error("{key} has signed twice")]
    DuplicateSignature {
        /// The key.
        key: PublicKey,
    },
    /// The keys do not satisfy a required authority.
    #[error(transparent)]
    Authority(#[from] Denied),
    /// It has expired.
    #[error("expired at {expiration}, the head is at {head}")]
    Expired {
        /// The expiration.
        expiration: Timestamp,
        /// The time of the head block.
        head: Timestamp,
    },
    /// The expiration is too far in the future.
    #[error("expires at {expiration}, more than a day after the head at {head}")]
    TooFarAhead {
        /// The expiration.
        expiration: Timestamp,
        /// The time of the head block.
        head: Timestamp,
    },
    /// The reference block is not on this chain.
    #[error("refers to a block that is not of this chain")]
    Tapos,
}

impl Refusal {
    /// Returns the layer of the rejection.
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
