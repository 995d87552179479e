//! Encryption at rest: sealing of webhook secrets and of the key that signs receipts, and the change of the master key.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use chacha20poly1305::{
    KeyInit, XChaCha20Poly1305, XNonce,
    aead::{Aead, Payload},
};
use engine::{ids::MerchantId, merchant::Merchant, mutant};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

use crate::record::wire::Damage;

/// Size of the key id before each sealed text, bytes.
const ID_LEN: usize = 8;
const NONCE_LEN: usize = 24;

/// The key that seals secrets: 256 bits, stored outside the store.
#[derive(Clone, PartialEq, Eq)]
pub struct MasterKey([u8; 32]);

impl MasterKey {
    /// Creates a key from 32 random bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the id of the key, which does not reveal the key.
    pub(crate) fn id(&self) -> [u8; ID_LEN] {
        let digest: [u8; 32] = Sha256::new().chain_update("hivetill master key").chain_update(self.0).finalize().into();
        let mut id = [0; ID_LEN];
        id.copy_from_slice(&digest[..ID_LEN]);
        id
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new_from_slice(&self.0).expect("a master key has 32 bytes")
    }

    /// Seals a text for one place. The nonce is derived from key, place and text: the same text at the same place seals
    /// to the same bytes, and two texts never share a nonce.
    fn seal(&self, place: &[u8], text: &[u8]) -> Vec<u8> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        for part in [b"nonce".as_slice(), &(place.len() as u64).to_be_bytes(), place, text] {
            mac.update(part);
        }
        let mut nonce = [0; NONCE_LEN];
        nonce.copy_from_slice(&mac.finalize().into_bytes()[..NONCE_LEN]);
        let payload = Payload { msg: text, aad: place };
        let sealed = self.cipher().encrypt(&XNonce::from(nonce), payload).expect("a secret is shorter than 256 GiB");
        [self.id().as_slice(), &nonce, &sealed].concat()
    }

    fn open(&self, place: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
        let (id, rest) = sealed.split_at_checked(ID_LEN)?;
        let (nonce, sealed) = rest.split_at_checked(NONCE_LEN)?;
        let nonce: [u8; NONCE_LEN] = nonce.try_into().ok()?;
        if id != self.id() {
            return None;
        }
        self.cipher().decrypt(&XNonce::from(nonce), Payload { msg: sealed, aad: place }).ok()
    }
}

/// Hides the key.
impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKey(..)")
    }
}

/// The keys with which a store seals and opens secrets, and a cache of opened merchants.
#[derive(Debug, Clone, Default)]
pub struct Vault {
    pub(crate) current: Option<MasterKey>,
    pub(crate) previous: Option<MasterKey>,
    cache: MerchantCache,
}

/// Cache of recently read merchants by their stored bytes. Every request reads a merchant, and opening its secret costs
/// several times the lookup. After another writer stores a merchant, its bytes differ and it is decoded again.
#[derive(Clone, Default)]
struct MerchantCache(Arc<Mutex<BTreeMap<MerchantId, CachedMerchant>>>);

struct CachedMerchant {
    bytes: Box<[u8]>,
    merchant: Arc<Merchant>,
}

/// Maximum number of cached merchants, about 2 MB.
const MAX_CACHED_MERCHANTS: usize = 1_024;

/// Hides the secrets.
impl fmt::Debug for MerchantCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MerchantCache(..)")
    }
}

/// A stored secret.
pub(crate) enum StoredSecret {
    Plain(String),
    Sealed(Vec<u8>),
}

impl Vault {
    /// Creates a vault that seals with the current key, or not at all, and opens with the current and the previous key
    /// while the store changes its master key.
    #[must_use]
    pub fn new(current: Option<MasterKey>, previous: Option<MasterKey>) -> Self {
        Self { current, previous, cache: MerchantCache::default() }
    }

    /// Returns the cached merchant of these bytes, or decodes and caches it.
    pub(crate) fn merchant(
        &self,
        id: MerchantId,
        bytes: &[u8],
        read: impl FnOnce() -> Result<Merchant, Damage>,
    ) -> Result<Arc<Merchant>, Damage> {
        let cache = || self.cache.0.lock().unwrap_or_else(PoisonError::into_inner);
        let cached =
            cache().get(&id).filter(|cached| *cached.bytes == *bytes).map(|cached| Arc::clone(&cached.merchant));
        if let Some(merchant) = cached {
            return Ok(merchant);
        }
        let merchant = Arc::new(read()?);
        let mut cache = cache();
        if cache.len() >= MAX_CACHED_MERCHANTS {
            cache.clear();
        }
        cache.insert(id, CachedMerchant { bytes: bytes.into(), merchant: Arc::clone(&merchant) });
        Ok(merchant)
    }

    pub(crate) fn seal(&self, merchant: MerchantId, field: &str, text: &str) -> StoredSecret {
        self.seal_at(&place(merchant, field), text)
    }

    /// Opens a text that was sealed for a merchant's field; `name` is the field's name in the error.
    pub(crate) fn open(
        &self,
        merchant: MerchantId,
        (field, name): (&str, &'static str),
        sealed: &[u8],
    ) -> Result<String, Damage> {
        self.open_at(&place(merchant, field), name, sealed)
    }

    /// Seals a secret of the installation, which belongs to no merchant.
    pub(crate) fn seal_own(&self, field: &str, text: &str) -> StoredSecret {
        self.seal_at(field.as_bytes(), text)
    }

    /// Opens a secret of the installation.
    pub(crate) fn open_own(&self, field: &'static str, sealed: &[u8]) -> Result<String, Damage> {
        self.open_at(field.as_bytes(), field, sealed)
    }

    fn seal_at(&self, place: &[u8], text: &str) -> StoredSecret {
        match &self.current {
            Some(_) if mutant!("secrets-not-encrypted") => StoredSecret::Plain(text.to_owned()),
            Some(key) => StoredSecret::Sealed(key.seal(place, text.as_bytes())),
            None => StoredSecret::Plain(text.to_owned()),
        }
    }

    fn open_at(&self, place: &[u8], name: &'static str, sealed: &[u8]) -> Result<String, Damage> {
        let keys = [&self.current, &self.previous].into_iter().flatten();
        let text = keys.into_iter().find_map(|key| key.open(place, sealed));
        let text = text.and_then(|text| String::from_utf8(text).ok());
        text.ok_or_else(|| Damage::Value { field: name, value: "opened with this master key".to_owned() })
    }
}

/// Returns the two fields of a stored secret, one of which is empty.
pub(crate) fn plain_and_sealed(stored: StoredSecret) -> (String, Vec<u8>) {
    match stored {
        StoredSecret::Plain(text) => (text, Vec::new()),
        StoredSecret::Sealed(bytes) => (String::new(), bytes),
    }
}

/// How many merchants of a store have sealed secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Secrets {
    /// Merchants whose secrets are all sealed.
    pub sealed: u64,
    /// Merchants with an unencrypted secret.
    pub plain: u64,
}

/// Returns the associated data of a sealed secret: it does not open for another merchant or field.
fn place(merchant: MerchantId, field: &str) -> Vec<u8> {
    format!("{merchant} {field}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_secret_opens_with_its_key_in_its_place_only() {
        let (key, other) = (MasterKey::new([1; 32]), MasterKey::new([2; 32]));
        let (one, two) = (MerchantId::from_bits(1), MerchantId::from_bits(2));
        let vault = Vault::new(Some(key.clone()), None);
        let StoredSecret::Sealed(sealed) = vault.seal(one, "secret", "whsec_x") else { panic!("it is not sealed") };
        assert!(!sealed.windows(6).any(|bytes| bytes == b"whsec_"));
        assert_eq!(vault.open(one, ("secret", "secret"), &sealed), Ok("whsec_x".to_owned()));
        for (merchant, field) in [(two, "secret"), (one, "previous secret")] {
            assert!(vault.open(merchant, (field, "secret"), &sealed).is_err());
        }
        assert!(Vault::new(Some(other.clone()), None).open(one, ("secret", "secret"), &sealed).is_err());
        let changing = Vault::new(Some(other), Some(key));
        assert_eq!(changing.open(one, ("secret", "secret"), &sealed), Ok("whsec_x".to_owned()));
        for at in 0..sealed.len() {
            let mut damaged = sealed.clone();
            damaged[at] ^= 1;
            assert!(vault.open(one, ("secret", "secret"), &damaged).is_err(), "byte {at}");
        }
        assert!(vault.open(one, ("secret", "secret"), &sealed[..20]).is_err());
        assert!(!format!("{vault:?}").contains('1'));
    }

    #[test]
    fn a_merchant_is_decoded_again_when_its_bytes_change() {
        let vault = Vault::default();
        let id = MerchantId::from_bits(1);
        let registration = engine::merchant::Registration::check("Blue Mugs", "blue.mugs", None).expect("good fields");
        let credentials = engine::merchant::Credentials {
            id,
            key_id: engine::ids::KeyId::from_bits(2),
            api_key: "sk_live_x",
            secret: engine::webhook::Secret::from_random([3; 32]),
        };
        let first = Merchant::register(registration, credentials, false, engine::time::Timestamp::from_seconds(1));
        let second = first.set_active(false, engine::time::Timestamp::from_seconds(2));
        let read = |bytes: &[u8], merchant: &Merchant| vault.merchant(id, bytes, || Ok(merchant.clone()));
        assert_eq!(read(b"first", &first).as_deref(), Ok(&first));
        assert_eq!(read(b"first", &second).as_deref(), Ok(&first), "the same bytes are decoded once");
        assert_eq!(read(b"second", &second).as_deref(), Ok(&second));
        let damaged = vault.merchant(id, b"third", || Err(Damage::Missing("key")));
        assert_eq!(damaged, Err(Damage::Missing("key")));
        assert!(!format!("{vault:?}").contains("Blue"));
    }
}
