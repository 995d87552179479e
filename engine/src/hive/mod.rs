//! The Hive codec: transactions in both serializations, ids, digests, keys, signatures, authorities and blocks.
//!
//! Hive has two serializations of a transaction, and therefore two digests and two ids ([`Pack`]). Which one a wallet
//! signed is found by verifying the signature: [`Transaction::authorize`] tries both in hived's order. The rules follow
//! hived's source (hard fork 28). Parsing is strict where hived is lenient, so that what is checked is exactly what is
//! broadcast.

mod asset;
mod authority;
pub mod block;
mod error;
mod field;
mod header;
pub(crate) mod json;
mod keys;
pub mod memo;
mod operation;
mod pack;
mod signature;
mod transaction;
pub mod uri;

use std::fmt;

pub use asset::{Asset, Symbol};
pub use authority::{AccountAuthorities, Authorities, Authority, Denied, Role, check};
pub use error::{DecodeError, Fault, Invalid, Layer, Refusal};
pub use header::{BlockHeader, merkle_root};
pub use keys::{KeyError, PrivateKey, PublicKey};
pub use operation::{
    AccountCreate, AccountWitnessProxy, AccountWitnessVote, Comment, CustomJson, FeedPublish, MAX_MEMO_BYTES,
    Operation, PairId, Price, RecurrentTransfer, Transfer, TransferFromSavings, TransferToSavings, TransferToVesting,
    Vote, WithdrawVesting,
};
pub use signature::{Signature, SignatureError};
pub use transaction::{Authorized, MAX_SECONDS_UNTIL_EXPIRATION, Transaction, tapos_of};

/// The serialization of a transaction: the encodings differ in asset symbols only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pack {
    /// Eight-byte symbols with the old names STEEM and SBD; signed by most wallets.
    Legacy,
    /// Four-byte asset numbers, since hard fork 26.
    Hf26,
}

impl Pack {
    /// Both serializations, in the order in which hived tries them.
    pub const ALL: [Self; 2] = [Self::Hf26, Self::Legacy];

    /// Returns the name in hived's API: `legacy` or `hf26`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Hf26 => "hf26",
        }
    }
}

impl fmt::Display for Pack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The JSON format of a transaction, independent of the serialization that was signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `["transfer", {"amount": "1.000 HBD"}]`.
    Condenser,
    /// `{"type": "transfer_operation", "value": {"amount": {"amount": "1000", "precision": 3, "nai": "@@000000013"}}}`.
    Hf26,
}

/// The chain id: the prefix of every signed digest, so that a signature is valid on one chain only.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ChainId(pub [u8; 32]);

impl ChainId {
    /// The main chain since hard fork 24: `beeab0de` and zeros.
    pub const MAINNET: Self = {
        let mut id = [0; 32];
        [id[0], id[1], id[2], id[3]] = [0xbe, 0xea, 0xb0, 0xde];
        Self(id)
    };
    /// The main chain before hard fork 24.
    pub const ZERO: Self = Self([0; 32]);

    /// Parses 64 hex characters.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut id = [0; 32];
        hex::decode_to_slice(text, &mut id).ok()?;
        Some(Self(id))
    }
}

/// The Hive network that the engine follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Network {
    /// The main chain.
    Mainnet,
    /// A public chain with another id, such as a testnet or a mirrornet.
    Testnet,
    /// A development ledger, whatever its chain id.
    Development,
}

impl Network {
    /// Returns the network of a chain. Development ledgers may have the main chain's id, so that wallets sign for them.
    #[must_use]
    pub fn of(chain: ChainId, is_development: bool) -> Self {
        match (is_development, chain == ChainId::MAINNET) {
            (true, _) => Self::Development,
            (false, true) => Self::Mainnet,
            (false, false) => Self::Testnet,
        }
    }

    /// Returns whether the network uses real money.
    #[must_use]
    pub fn is_live(self) -> bool {
        self == Self::Mainnet
    }
}

impl fmt::Display for ChainId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for ChainId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_main_chain_is_live() {
        for (chain, is_development, network, is_live) in [
            (ChainId::MAINNET, false, Network::Mainnet, true),
            (ChainId::MAINNET, true, Network::Development, false),
            (ChainId([0x18; 32]), false, Network::Testnet, false),
            (ChainId([0x18; 32]), true, Network::Development, false),
        ] {
            assert_eq!((Network::of(chain, is_development), network.is_live()), (network, is_live));
        }
    }
}
