//! Recoverable ECDSA signatures of 65 bytes.

use std::fmt;

use k256::SecretKey;
#[cfg(any(test, not(feature = "libsecp256k1")))]
use k256::ecdsa::RecoveryId;
#[cfg(feature = "libsecp256k1")]
use k256::elliptic_curve::zeroize::Zeroizing;

use super::PublicKey;

/// Half of the curve order, rounded down, big endian: the maximum S of a low-S signature.
const HALF_ORDER: [u8; 32] = [
    0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x5d, 0x57, 0x6e,
    0x73, 0x57, 0xa4, 0x50, 0x1d, 0xdf, 0xe9, 0x2f, 0x46, 0x68, 0x1b, 0x20, 0xa0,
];

/// The reason why no key can be recovered from a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The first byte is not between 27 and 34.
    #[error("has the header {header}; 27 to 34 are known")]
    Header {
        /// The byte.
        header: u8,
    },
    /// A high S. The chain accepts some of these signatures; every wallet creates a low S.
    #[error("has a high S")]
    HighS,
    /// R or S is out of range, or there is no matching point of the curve.
    #[error("recovers to no key")]
    NoKey,
}

/// A serialized signature: header, R and S. [`Signature::recover`] validates it.
///
/// R is not restricted: the "fc canonical" rule ended with hard fork 20.
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
    /// [`SignatureError`]; a wrong digest is not an error but yields another key.
    pub fn recover(&self, digest: &[u8; 32]) -> Result<PublicKey, SignatureError> {
        let [header, scalars @ ..] = &self.0;
        if !(27..=34).contains(header) {
            return Err(SignatureError::Header { header: *header });
        }
        if scalars[32..] > HALF_ORDER[..] {
            return Err(SignatureError::HighS);
        }
        // The 4 added for compressed keys has no meaning on this chain.
        recover((header - 27) & 3, scalars, digest).map(PublicKey).ok_or(SignatureError::NoKey)
    }

    /// Signs a digest deterministically (RFC 6979), with low S.
    pub(super) fn of(secret: &SecretKey, digest: &[u8; 32]) -> Self {
        let (recovery, scalars) = sign(secret, digest);
        let mut bytes = [31 + recovery; 65];
        bytes[1..].copy_from_slice(&scalars);
        Self(bytes)
    }
}

/// Signs with k256; returns the recovery id, R and S.
#[cfg(any(test, not(feature = "libsecp256k1")))]
fn sign_by_k256(secret: &SecretKey, digest: &[u8; 32]) -> (u8, [u8; 64]) {
    let (signature, recovery) = k256::ecdsa::SigningKey::from(secret).sign_prehash_recoverable(digest);
    (recovery.to_byte(), signature.to_bytes().into())
}

#[cfg(not(feature = "libsecp256k1"))]
use sign_by_k256 as sign;

/// The same with libsecp256k1.
#[cfg(feature = "libsecp256k1")]
fn sign(secret: &SecretKey, digest: &[u8; 32]) -> (u8, [u8; 64]) {
    use secp256k1::{Message, Secp256k1, SignOnly};

    // Cached precomputed tables: creating them takes longer than a signature.
    static CURVE: std::sync::OnceLock<Secp256k1<SignOnly>> = std::sync::OnceLock::new();
    let bytes = Zeroizing::new(secret.to_bytes());
    let mut key = secp256k1::SecretKey::from_byte_array((*bytes).into()).expect("a key of k256 is one");
    let curve = CURVE.get_or_init(Secp256k1::signing_only);
    let signature = curve.sign_ecdsa_recoverable(Message::from_digest(*digest), &key);
    key.non_secure_erase();
    let (recovery, scalars) = signature.serialize_compact();
    (u8::try_from(i32::from(recovery)).expect("there are four"), scalars)
}

/// Recovers a compressed point with k256.
#[cfg(any(test, not(feature = "libsecp256k1")))]
fn recover_by_k256(recovery: u8, scalars: &[u8; 64], digest: &[u8; 32]) -> Option<[u8; 33]> {
    let recovery = RecoveryId::from_byte(recovery)?;
    let signature = k256::ecdsa::Signature::from_slice(scalars).ok()?;
    let key = k256::ecdsa::VerifyingKey::recover_from_prehash(digest, &signature, recovery).ok()?;
    key.to_sec1_point(true).as_bytes().try_into().ok()
}

#[cfg(not(feature = "libsecp256k1"))]
use recover_by_k256 as recover;

/// Recovers a compressed point with libsecp256k1.
#[cfg(feature = "libsecp256k1")]
fn recover(recovery: u8, scalars: &[u8; 64], digest: &[u8; 32]) -> Option<[u8; 33]> {
    use secp256k1::{Message, Secp256k1, VerifyOnly, ecdsa};

    // Cached precomputed tables: creating them takes longer than a recovery.
    static CURVE: std::sync::OnceLock<Secp256k1<VerifyOnly>> = std::sync::OnceLock::new();
    let recovery = ecdsa::RecoveryId::try_from(i32::from(recovery)).ok()?;
    let signature = ecdsa::RecoverableSignature::from_compact(scalars, recovery).ok()?;
    let curve = CURVE.get_or_init(Secp256k1::verification_only);
    let key = curve.recover_ecdsa(Message::from_digest(*digest), &signature).ok()?;
    Some(key.serialize())
}

/// Formats as 130 hex characters.
impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

/// Truncated: whoever has a signed transaction can broadcast it.
impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({}..)", hex::encode(&self.0[..4]))
    }
}

#[cfg(all(test, feature = "libsecp256k1"))]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::hive::PrivateKey;

    /// Boundary values of the field and the group order, where the two libraries could differ.
    fn edge() -> impl Strategy<Value = [u8; 32]> {
        const ORDER: &str = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
        const FIELD: &str = "fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2f";
        // The largest R with a recovery id above 1: the field size minus the order.
        const GAP: &str = "000000000000000000000000000000014551231950b75fc4402da1722fc9baee";
        let near = (0..4usize, -3i16..4).prop_map(|(which, by)| {
            let mut bytes = [0; 32];
            let text = [ORDER, FIELD, GAP][which % 3];
            hex::decode_to_slice(text, &mut bytes).expect("hex");
            if which == 3 {
                bytes = HALF_ORDER;
            }
            let last = i16::from(bytes[31]) + by;
            bytes[31] = last.clamp(0, 255).to_le_bytes()[0];
            bytes
        });
        prop_oneof![
            near,
            Just([0; 32]),
            (0u8..9).prop_map(|last| {
                let mut b = [0; 32];
                b[31] = last;
                b
            }),
            any::<[u8; 32]>()
        ]
    }

    proptest! {
        #[test]
        fn both_libraries_sign_the_same(secret in 1u8..255, rest: [u8; 31], digest: [u8; 32]) {
            let mut bytes = [secret; 32];
            bytes[1..].copy_from_slice(&rest);
            let secret = SecretKey::from_slice(&bytes).unwrap();
            prop_assert_eq!(sign(&secret, &digest), sign_by_k256(&secret, &digest));
        }

        #[test]
        fn both_libraries_recover_the_same(
            secret in 1u8.., digest in any::<[u8; 32]>(), r in edge(), s in edge(), recovery in 0u8..4, change in 0usize..4,
        ) {
            let signed = PrivateKey::from_bytes(&[secret % 250 + 1; 32]).unwrap().sign(&digest);
            let mut scalars: [u8; 64] = signed.0[1..].try_into().unwrap();
            if change & 1 != 0 {
                scalars[..32].copy_from_slice(&r);
            }
            if change & 2 != 0 {
                scalars[32..].copy_from_slice(&s);
            }
            for recovery in [recovery, (signed.0[0] - 27) & 3] {
                prop_assert_eq!(
                    recover(recovery, &scalars, &digest).map(hex::encode),
                    recover_by_k256(recovery, &scalars, &digest).map(hex::encode)
                );
            }
        }
    }
}
