//! Encrypted memos: `#…`, which the memo keys of sender and recipient can decrypt.
//!
//! `#` + base58(sender key 33 | receiver key 33 | nonce u64 | check u32 | length | ciphertext), AES-256 in CBC mode
//! with a key derived from the shared point and the nonce; the plaintext is prefixed by its length.

use aes::Aes256;
use cbc::{
    Decryptor, Encryptor,
    cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyIvInit, block_padding::Pkcs7},
};
use k256::{
    PublicKey as Point,
    elliptic_curve::{sec1::ToSec1Point, zeroize::Zeroizing},
};
use sha2::{Digest, Sha256, Sha512};

use super::{
    Pack, PrivateKey, PublicKey,
    pack::{Reader, Writer},
};

/// The reason why a memo cannot be decrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MemoError {
    /// No `#`, not base58, or truncated.
    #[error("is not an encrypted memo")]
    Malformed,
    /// The key is neither that of the sender nor that of the recipient.
    #[error("is encrypted for other keys")]
    NotForThisKey,
    /// A key in the memo is not a point of the curve.
    #[error("names a key that is none")]
    Key,
    /// The checksum or the padding is wrong, or the text is not UTF-8.
    #[error("does not decrypt")]
    Corrupt,
}

/// Encrypts a text (without its `#`) so that the holders of both keys can decrypt it. A nonce must be used only once.
///
/// # Errors
/// [`MemoError::Key`] if the recipient's key is not a point of the curve.
pub fn encrypt(text: &str, from: &PrivateKey, to: &PublicKey, nonce: u64) -> Result<String, MemoError> {
    let secret = Secret::new(from, to, nonce)?;
    let mut inner = Writer::new(Pack::Legacy);
    inner.text(text);
    let ciphertext = Encryptor::<Aes256>::new_from_slices(secret.key(), secret.iv())
        .expect("a key has 32 bytes and a vector 16")
        .encrypt_padded_vec::<Pkcs7>(&inner.bytes);
    let mut memo = Writer::new(Pack::Legacy);
    memo.put(&from.public().0);
    memo.put(&to.0);
    memo.put(&nonce.to_le_bytes());
    memo.put(&secret.check());
    memo.varint(ciphertext.len());
    memo.put(&ciphertext);
    Ok(format!("#{}", bs58::encode(memo.bytes).into_string()))
}

/// Decrypts a memo with the sender's or the recipient's key. Returns the text without the `#`.
///
/// # Errors
/// [`MemoError`].
pub fn decrypt(memo: &str, key: &PrivateKey) -> Result<String, MemoError> {
    let bytes =
        memo.strip_prefix('#').and_then(|text| bs58::decode(text).into_vec().ok()).ok_or(MemoError::Malformed)?;
    let mut reader = Reader::new(&bytes);
    let mut parts = || -> Result<_, super::DecodeError> {
        let (from, to): ([u8; 33], [u8; 33]) = (reader.array()?, reader.array()?);
        let (nonce, check): ([u8; 8], [u8; 4]) = (reader.array()?, reader.array()?);
        let length = reader.varint()? as usize;
        Ok((PublicKey(from), PublicKey(to), u64::from_le_bytes(nonce), check, reader.take(length)?))
    };
    let (from, to, nonce, check, ciphertext) = parts().map_err(|_| MemoError::Malformed)?;
    reader.end().map_err(|_| MemoError::Malformed)?;
    let own = key.public();
    let other = match () {
        () if own == to => from,
        () if own == from => to,
        () => return Err(MemoError::NotForThisKey),
    };
    let secret = Secret::new(key, &other, nonce)?;
    if secret.check() != check {
        return Err(MemoError::Corrupt);
    }
    let inner = Decryptor::<Aes256>::new_from_slices(secret.key(), secret.iv())
        .expect("a key has 32 bytes and a vector 16")
        .decrypt_padded_vec::<Pkcs7>(ciphertext)
        .map_err(|_| MemoError::Corrupt)?;
    let mut reader = Reader::new(&inner);
    let text = reader.text().map_err(|_| MemoError::Corrupt)?;
    reader.end().map(|()| text).map_err(|_| MemoError::Corrupt)
}

/// The shared secret: a 32-byte key and a 16-byte initialization vector.
struct Secret(Zeroizing<[u8; 64]>);

impl Secret {
    fn new(own: &PrivateKey, other: &PublicKey, nonce: u64) -> Result<Self, MemoError> {
        let point = Point::from_sec1_bytes(&other.0).map_err(|_| MemoError::Key)?;
        let shared = (point.to_projective() * *own.secret().to_nonzero_scalar()).to_affine().to_sec1_point(true);
        let shared = Zeroizing::new(<[u8; 64]>::from(Sha512::digest(&shared.as_bytes()[1..])));
        let hash = Sha512::new().chain_update(nonce.to_le_bytes()).chain_update(&shared[..]).finalize();
        Ok(Self(Zeroizing::new(hash.into())))
    }

    fn key(&self) -> &[u8] {
        &self.0[..32]
    }

    fn iv(&self) -> &[u8] {
        &self.0[32..48]
    }

    fn check(&self) -> [u8; 4] {
        let hash = Sha256::digest(&self.0[..]);
        [hash[0], hash[1], hash[2], hash[3]]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(seed: u8) -> PrivateKey {
        PrivateKey::from_bytes(&[seed; 32]).unwrap()
    }

    #[test]
    fn only_the_two_memo_keys_decrypt_a_memo() {
        let memo = encrypt("pos-pay_1 é", &key(1), &key(2).public(), 7).unwrap();
        assert_eq!(decrypt(&memo, &key(1)).as_deref(), Ok("pos-pay_1 é"));
        assert_eq!(decrypt(&memo, &key(2)).as_deref(), Ok("pos-pay_1 é"));
        assert_eq!(decrypt(&memo, &key(3)), Err(MemoError::NotForThisKey));
        assert_eq!(encrypt("x", &key(1), &PublicKey([0; 33]), 7), Err(MemoError::Key));
    }

    proptest! {
        #[test]
        fn decrypting_any_memo_never_panics(text in "#?[1-9A-Za-z]{0,250}", bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = decrypt(&text, &key(1));
            let head = [&key(1).public().0[..], &key(2).public().0[..], &bytes[..]].concat();
            let _ = decrypt(&format!("#{}", bs58::encode(head).into_string()), &key(1));
        }
    }
}
