//! Block headers: id, digest for the witness signature, and transaction merkle root.

use ripemd::Ripemd160;
use sha2::{Digest, Sha224, Sha256};

use super::{Pack, Signature, field::Field, pack::Writer};
use crate::{ledger::BlockId, time::Timestamp};

/// The header of a block without extensions (hived: `block_header.hpp`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockHeader {
    /// The id of the previous block.
    pub previous: BlockId,
    /// The block time, whole seconds.
    pub timestamp: Timestamp,
    /// The witness.
    pub witness: String,
    /// The [`merkle_root`] of its transactions.
    pub transaction_merkle_root: [u8; 20],
}

impl BlockHeader {
    fn bytes(&self) -> Writer {
        let mut writer = Writer::new(Pack::Legacy);
        writer.put(&self.previous.0);
        u32::try_from(self.timestamp.seconds()).unwrap_or(u32::MAX).pack(&mut writer);
        writer.text(&self.witness);
        writer.put(&self.transaction_merkle_root);
        writer.varint(0);
        writer
    }

    /// Returns the digest that the witness signs; it does not include the chain id.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(&self.bytes().bytes).into()
    }

    /// Returns the block id: a hash of the signed header with the first four bytes replaced by the block number.
    #[must_use]
    pub fn id(&self, witness_signature: &Signature) -> BlockId {
        let mut writer = self.bytes();
        writer.put(&witness_signature.0);
        let hash = Sha224::digest(&writer.bytes);
        let mut id: [u8; 20] = hash[..20].try_into().expect("a hash has 28 bytes");
        id[..4].copy_from_slice(&(self.previous.number() + 1).to_be_bytes());
        BlockId(id)
    }
}

/// Returns the merkle root of signed transactions; the last hash of an odd level moves up unchanged.
#[must_use]
pub fn merkle_root<'b>(signed_transactions: impl IntoIterator<Item = &'b [u8]>) -> [u8; 20] {
    let mut hashes: Vec<[u8; 32]> = signed_transactions.into_iter().map(|bytes| Sha256::digest(bytes).into()).collect();
    if hashes.is_empty() {
        return [0; 20];
    }
    while hashes.len() > 1 {
        hashes = hashes
            .chunks(2)
            .map(
                |pair| if let [left, right] = pair { Sha256::digest([*left, *right].concat()).into() } else { pair[0] },
            )
            .collect();
    }
    Ripemd160::digest(hashes[0]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_of_an_id_are_the_number() {
        let mut previous = BlockId::default();
        previous.0[3] = 41;
        let header = BlockHeader {
            previous,
            timestamp: Timestamp::from_seconds(3),
            witness: "hivetill".into(),
            transaction_merkle_root: merkle_root([]),
        };
        assert_eq!(header.id(&Signature([0; 65])).number(), 42);
        assert_ne!(header.id(&Signature([0; 65])), header.id(&Signature([1; 65])));
    }

    #[test]
    fn an_odd_merkle_leaf_moves_up_unchanged() {
        let [a, b, c] = [b"a", b"b", b"c"].map(|leaf| <[u8; 32]>::from(Sha256::digest(leaf)));
        let pair: [u8; 32] = Sha256::digest([a, b].concat()).into();
        let top: [u8; 32] = Sha256::digest([pair, c].concat()).into();
        assert_eq!(merkle_root([&b"a"[..], b"b", b"c"]), <[u8; 20]>::from(Ripemd160::digest(top)));
    }
}
