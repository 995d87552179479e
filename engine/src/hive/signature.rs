//! Signatures: 65 bytes that give back the key that made them.

use std::fmt;

use k256::ecdsa::{RecoveryId, VerifyingKey};

use super::PublicKey;

/// Half of the curve's order, rounded down, big endian: the largest S of a low-S signature.
const HALF_ORDER: [u8; 32] = [
    0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x5d, 0x57, 0x6e,
    0x73, 0x57, 0xa4, 0x50, 0x1d, 0xdf, 0xe9, 0x2f, 0x46, 0x68, 0x1b, 0x20, 0xa0,
];

/// Why a signature gives back no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The first byte is none of 27 to 34.
    #[error("has the header {header}; 27 to 34 are known")]
    Header {
        /// The byte.
        header: u8,
    },
    /// The second of two forms of one signature. The chain takes a part of these; every wallet makes the low one.
    #[error("has a high S")]
    HighS,
    /// R or S is zero or beyond the order, or no point of the curve fits.
    #[error("recovers to no key")]
    NoKey,
}

/// A signature as it travels: a header, R, S. Only [`Signature::recover`] says whether it is one.
///
/// Any R is good: the rule called "fc canonical" ended with hard fork 20, and about half of today's signatures break it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signature(pub [u8; 65]);

impl Signature {
    /// Parses exactly 130 hex characters of either case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut bytes = [0; 65];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        Some(Self(bytes))
    }

    /// Returns the key that signed the digest.
    ///
    /// # Errors
    /// [`SignatureError`]: a wrong digest is no error, it gives another key.
    pub fn recover(&self, digest: &[u8; 32]) -> Result<PublicKey, SignatureError> {
        let [header, scalars @ ..] = &self.0;
        if !(27..=34).contains(header) {
            return Err(SignatureError::Header { header: *header });
        }
        if scalars[32..] > HALF_ORDER[..] {
            return Err(SignatureError::HighS);
        }
        // 27 and 31 are the same: the four added by "compressed" change nothing on this chain.
        let recovery = RecoveryId::from_byte((header - 27) & 3).ok_or(SignatureError::NoKey)?;
        let signature = k256::ecdsa::Signature::from_slice(scalars).map_err(|_| SignatureError::NoKey)?;
        let key =
            VerifyingKey::recover_from_prehash(digest, &signature, recovery).map_err(|_| SignatureError::NoKey)?;
        let point = key.to_sec1_point(true);
        Ok(PublicKey(point.as_bytes().try_into().expect("a compressed point has 33 bytes")))
    }

    pub(super) fn from_parts(signature: &k256::ecdsa::Signature, recovery: RecoveryId) -> Self {
        let mut bytes = [31 + recovery.to_byte(); 65];
        bytes[1..].copy_from_slice(&signature.to_bytes());
        Self(bytes)
    }
}

/// Writes 130 hex characters.
impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

/// Shows the beginning only: who holds a signed transaction can send it.
impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({}..)", hex::encode(&self.0[..4]))
    }
}
