//! Private keys in wallet import format (WIF) and public keys as `STM…`.

use std::fmt;

use k256::{
    SecretKey,
    elliptic_curve::{sec1::ToSec1Point, zeroize::Zeroizing},
};
use ripemd::Ripemd160;
use sha2::{Digest, Sha256};

use super::{
    DecodeError, Fault, Form, Signature,
    field::Field,
    json::{Json, write_text},
    pack::{Reader, Writer},
};

/// The reason why a string is not a key; contains no part of the string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Not base58, or a wrong length or version byte.
    #[error("is not a private key in wallet import format, uncompressed")]
    NotWif,
    /// Not `STM` and 37 bytes in base58.
    #[error("is not a public key of the form STM…")]
    NotPublic,
    /// The checksum is wrong.
    #[error("has a wrong checksum: a character is mistyped")]
    Checksum,
    /// Zero, or not below the curve order.
    #[error("is outside the curve's order")]
    Range,
}

/// A private key. Zeroized when dropped and never printed.
#[derive(Clone)]
pub struct PrivateKey(SecretKey);

impl PrivateKey {
    /// The version byte of private keys.
    const VERSION: u8 = 0x80;

    /// Parses the wallet import format, `5…`; the compressed form (`K…`, `L…`) is not used on this chain.
    ///
    /// # Errors
    /// [`KeyError`], without any part of the string.
    pub fn from_wif(wif: &str) -> Result<Self, KeyError> {
        let bytes = Zeroizing::new(bs58::decode(wif).into_vec().map_err(|_| KeyError::NotWif)?);
        let (body, checksum) = bytes.split_last_chunk::<4>().ok_or(KeyError::NotWif)?;
        let [Self::VERSION, secret @ ..] = body else { return Err(KeyError::NotWif) };
        let secret: &[u8; 32] = secret.try_into().map_err(|_| KeyError::NotWif)?;
        if Sha256::digest(Sha256::digest(body))[..4] != *checksum {
            return Err(KeyError::Checksum);
        }
        Self::from_bytes(secret)
    }

    /// Creates a key from 32 bytes.
    ///
    /// # Errors
    /// [`KeyError::Range`] for zero and from the curve order on.
    pub fn from_bytes(secret: &[u8; 32]) -> Result<Self, KeyError> {
        SecretKey::from_slice(secret).map(Self).map_err(|_| KeyError::Range)
    }

    /// Derives the key that wallets derive from an account's name, role and password.
    ///
    /// # Errors
    /// [`KeyError::Range`], with a probability of 2^-128.
    pub fn from_login(account: &str, role: &str, password: &str) -> Result<Self, KeyError> {
        let hash = Sha256::new().chain_update(account).chain_update(role).chain_update(password).finalize();
        Self::from_bytes(&hash.into())
    }

    /// Returns the key in wallet import format, zeroized when dropped.
    #[must_use]
    pub fn to_wif(&self) -> Zeroizing<String> {
        let mut bytes = Zeroizing::new([Self::VERSION; 37]);
        bytes[1..33].copy_from_slice(&Zeroizing::new(self.0.to_bytes())[..]);
        let checksum = Sha256::digest(Sha256::digest(&bytes[..33]));
        bytes[33..].copy_from_slice(&checksum[..4]);
        Zeroizing::new(bs58::encode(&bytes[..]).into_string())
    }

    /// Returns the public key.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        let point = self.0.public_key().to_sec1_point(true);
        PublicKey(point.as_bytes().try_into().expect("a compressed point has 33 bytes"))
    }

    /// Signs a digest. Signatures are deterministic (RFC 6979), with low S and a header of 31 or 32.
    #[must_use]
    pub fn sign(&self, digest: &[u8; 32]) -> Signature {
        Signature::of(&self.0, digest)
    }

    pub(super) const fn secret(&self) -> &SecretKey {
        &self.0
    }
}

/// Hides the key.
impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(..)")
    }
}

/// A public key: a compressed point of the curve. Ordered by its bytes, as on the chain.
///
/// The bytes need not be a valid point: the chain accepts any, and no signature can match an invalid one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey(pub [u8; 33]);

impl PublicKey {
    const PREFIX: &'static str = "STM";

    /// Parses `STM…`.
    ///
    /// # Errors
    /// [`KeyError::NotPublic`] or [`KeyError::Checksum`].
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let encoded = text.strip_prefix(Self::PREFIX).ok_or(KeyError::NotPublic)?;
        let bytes = bs58::decode(encoded).into_vec().map_err(|_| KeyError::NotPublic)?;
        let (point, checksum) = bytes.split_last_chunk::<4>().ok_or(KeyError::NotPublic)?;
        let point: [u8; 33] = point.try_into().map_err(|_| KeyError::NotPublic)?;
        if Ripemd160::digest(point)[..4] != *checksum {
            return Err(KeyError::Checksum);
        }
        Ok(Self(point))
    }
}

impl std::str::FromStr for PublicKey {
    type Err = KeyError;
    fn from_str(text: &str) -> Result<Self, KeyError> {
        Self::parse(text)
    }
}

/// Formats as `STM…`.
impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let checksum = Ripemd160::digest(self.0);
        let bytes = [&self.0[..], &checksum[..4]].concat();
        write!(f, "{}{}", Self::PREFIX, bs58::encode(bytes).into_string())
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Field for PublicKey {
    fn pack(&self, writer: &mut Writer) {
        writer.put(&self.0);
    }

    fn unpack(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.array().map(Self)
    }

    fn read(json: &Json, _: Form) -> Result<Self, DecodeError> {
        Self::parse(json.text()?).map_err(|_| Fault::Wanted { wanted: "a public key, STM…" }.into())
    }

    fn write(&self, out: &mut String, _: Form) {
        write_text(out, &self.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_key_is_never_printed() {
        let key = PrivateKey::from_login("bob", "posting", "P5KtestPasswordNotReal").unwrap();
        assert_eq!(format!("{key:?}"), "PrivateKey(..)");
        assert!(key.to_wif().starts_with('5'));
    }

    #[test]
    fn signatures_are_deterministic_and_recover_to_the_signer() {
        for seed in 1..=64u8 {
            let key = PrivateKey::from_bytes(&[seed; 32]).unwrap();
            let digest: [u8; 32] = Sha256::digest([seed]).into();
            let signature = key.sign(&digest);
            assert_eq!(signature.recover(&digest), Ok(key.public()));
            assert_eq!(signature, key.sign(&digest));
            assert!(matches!(signature.0[0], 31 | 32), "header {}", signature.0[0]);
        }
    }
}
