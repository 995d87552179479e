//! Proof that a caller who presents a claimed payment again is its payer.

use std::collections::BTreeSet;

use super::{PaymentPayload, checks::MAX_SIGNATURES};
use crate::hive::{Authorized, ChainId, Pack, PublicKey, Transaction};

/// The stored proof of a claimed transaction. The transaction is public on the chain; only its signing keys can produce
/// the signatures, and only the payer knows the nonce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayerProof {
    /// The serialization that was signed.
    pub pack: Pack,
    /// The signed digest of the transaction and the chain id.
    pub digest: [u8; 32],
    /// The signing keys.
    pub keys: BTreeSet<PublicKey>,
}

impl PayerProof {
    /// Returns the proof of a verified transaction.
    #[must_use]
    pub fn of(transaction: &Transaction, chain: ChainId, authorized: &Authorized) -> Self {
        let Authorized { pack, keys, .. } = authorized;
        Self { pack: *pack, digest: transaction.digest(chain, *pack), keys: keys.clone() }
    }

    /// Returns whether a payload contains the same transaction, signed by the same keys, with the same nonce. Compares
    /// parsed values, so that the encoding does not matter.
    #[must_use]
    pub fn matches(&self, nonce: &str, payload: &PaymentPayload, chain: ChainId) -> bool {
        let transaction = &payload.transaction;
        payload.nonce == nonce
            && transaction.signatures.len() <= MAX_SIGNATURES
            && transaction.digest(chain, self.pack) == self.digest
            && transaction.recover(chain, self.pack).is_ok_and(|keys| keys == self.keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        hive::{Asset, Operation, PrivateKey, Signature, Symbol, Transfer},
        time::Timestamp,
        x402::Version,
    };

    const CHAIN: ChainId = ChainId::MAINNET;

    fn key(name: &str) -> PrivateKey {
        PrivateKey::from_login(name, "active", "a password").unwrap()
    }

    fn shown(signers: &[&str]) -> PaymentPayload {
        let transfer = Transfer {
            from: "agent".to_owned(),
            to: "blue.mugs".to_owned(),
            amount: Asset { units: 1_000, symbol: Symbol::Hbd },
            memo: "x".to_owned(),
        };
        let mut transaction = Transaction {
            ref_block_num: 1,
            ref_block_prefix: 2,
            expiration: Timestamp::from_seconds(1_763_647_200),
            operations: vec![Operation::Transfer(transfer)],
            signatures: Vec::new(),
        };
        for signer in signers {
            transaction.sign(CHAIN, Pack::Legacy, &key(signer));
        }
        PaymentPayload { version: Version::V1, transaction, nonce: "n".to_owned(), identifier: None, accepted: None }
    }

    fn proof(payload: &PaymentPayload) -> PayerProof {
        let keys = payload.transaction.recover(CHAIN, Pack::Legacy).unwrap();
        let tx_id = payload.transaction.id(Pack::Legacy);
        PayerProof::of(&payload.transaction, CHAIN, &Authorized { pack: Pack::Legacy, tx_id, keys })
    }

    #[test]
    fn a_payer_proof_matches_transaction_nonce_and_signing_keys() {
        let first = shown(&["agent", "second"]);
        let proof = proof(&first);
        let holds = |payload: &PaymentPayload| proof.matches("n", payload, CHAIN);
        assert!(holds(&first));
        assert!(holds(&shown(&["second", "agent"])), "the order of signatures does not matter");
        assert!(holds(&PaymentPayload { version: Version::V2, ..first.clone() }), "the version does not matter");
        for signers in
            [&[][..], &["agent"], &["second"], &["other"], &["agent", "second", "other"], &["agent", "agent"]]
        {
            assert!(!holds(&shown(signers)), "{signers:?}");
        }
        assert!(!holds(&PaymentPayload { nonce: "N".to_owned(), ..first.clone() }));
        let mut changed = first.clone();
        changed.transaction.ref_block_num = 2;
        assert!(!holds(&changed));
        let mut garbage = first.clone();
        garbage.transaction.signatures = vec![Signature([31; 65]); 2];
        assert!(!holds(&garbage));
        let mut many = first.clone();
        many.transaction.signatures = vec![first.transaction.signatures[0]; MAX_SIGNATURES + 1];
        assert!(!holds(&many));
        assert!(!proof.matches("n", &first, ChainId([7; 32])), "another chain is a different payment");
    }
}
