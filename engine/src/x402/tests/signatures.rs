//! Tests of signatures: both digests, several keys and delegated authorities.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{key, name, paid, transaction};
use crate::{
    account::AccountName,
    hive::{Authority, ChainId, Pack, Signature, Transaction},
    x402::{Reason, authorize, candidate_ids},
};

type Accounts = BTreeMap<AccountName, Authority>;

/// Each account has one key; `firm` requires two of alice, bob and carol.
fn accounts() -> Accounts {
    let mut accounts: Accounts =
        ["alice", "bob", "carol"].into_iter().map(|each| (name(each), Authority::of_key(key(each).public()))).collect();
    let members = ["alice", "bob", "carol"].into_iter().map(|each| (name(each), 1)).collect();
    accounts
        .insert(name("firm"), Authority { weight_threshold: 2, account_auths: members, key_auths: BTreeMap::new() });
    accounts
}

fn unsigned() -> Transaction {
    transaction(paid().operations)
}

fn signed(pack: Pack, chain: ChainId, signers: &[&str]) -> Transaction {
    let mut transaction = unsigned();
    for signer in signers {
        transaction.sign(chain, pack, &key(signer));
    }
    transaction
}

/// Returns the serialization that was signed, or the reason of the refusal.
fn judge(transaction: &Transaction, payer: &str, accounts: &Accounts) -> Result<Pack, Reason> {
    match authorize(transaction, &name(payer), ChainId::MAINNET, accounts) {
        Ok(authorized) => {
            assert_eq!(authorized.tx_id, transaction.id(authorized.pack));
            assert!(candidate_ids(transaction).contains(&authorized.tx_id));
            Ok(authorized.pack)
        }
        Err(Ok(denied)) => panic!("unknown accounts {:?}", denied.unknown),
        Err(Err(refused)) => {
            assert_eq!(refused.payer, None, "a refusal of an invalid signature does not name the payer");
            Err(refused.reason)
        }
    }
}

#[test]
fn either_digest_is_accepted_and_determines_the_id() {
    for pack in Pack::ALL {
        assert_eq!(judge(&signed(pack, ChainId::MAINNET, &["alice"]), "alice", &accounts()), Ok(pack));
    }
}

#[test]
fn attack_26_a_signature_for_another_chain_is_refused() {
    for pack in Pack::ALL {
        let elsewhere = signed(pack, ChainId::ZERO, &["alice"]);
        assert_eq!(judge(&elsewhere, "alice", &accounts()), Err(Reason::Authority));
    }
}

#[test]
fn attack_17_the_threshold_of_a_shared_account_must_be_reached() {
    let by = |signers: &[&str]| judge(&signed(Pack::Legacy, ChainId::MAINNET, signers), "firm", &accounts());
    assert_eq!(by(&["alice", "carol"]), Ok(Pack::Legacy));
    assert_eq!(by(&["alice", "bob", "carol"]), Ok(Pack::Legacy), "surplus keys are allowed");
    assert_eq!(by(&["bob"]), Err(Reason::Authority));
    assert_eq!(by(&["bob", "bob"]), Err(Reason::Signature), "one key signed twice");
    assert_eq!(by(&[]), Err(Reason::Authority));
}

#[test]
fn attack_17_signatures_of_two_digests_do_not_add_up() {
    let mut mixed = signed(Pack::Legacy, ChainId::MAINNET, &["alice"]);
    mixed.sign(ChainId::MAINNET, Pack::Hf26, &key("bob"));
    assert_eq!(judge(&mixed, "firm", &accounts()), Err(Reason::Authority));
}

#[test]
fn unknown_delegates_are_returned_for_fetching() {
    let mut accounts = accounts();
    accounts.remove(&name("bob"));
    let transaction = signed(Pack::Legacy, ChainId::MAINNET, &["bob", "carol"]);
    let Err(Ok(denied)) = authorize(&transaction, &name("firm"), ChainId::MAINNET, &accounts) else {
        panic!("the authority of bob is unknown");
    };
    assert!(denied.unknown.contains(&name("bob")), "{denied:?}");
}

#[test]
fn attack_7_another_encoding_of_a_signature_changes_no_id() {
    let transaction = paid();
    let mut other = transaction.clone();
    // The 4 added for compressed keys has no meaning on this chain.
    other.signatures[0].0[0] -= 4;
    assert_ne!(transaction.signatures, other.signatures);
    assert_eq!(candidate_ids(&transaction), candidate_ids(&other));
    assert_eq!(judge(&other, "alice", &accounts()), Ok(Pack::Legacy));
    let mut twice = transaction;
    twice.signatures.extend(other.signatures);
    assert_eq!(judge(&twice, "alice", &accounts()), Err(Reason::Signature));
}

#[test]
fn invalid_signatures_are_refused() {
    let mut transaction = unsigned();
    transaction.signatures = vec![Signature([0; 65])];
    assert_eq!(judge(&transaction, "alice", &accounts()), Err(Reason::Signature));
    transaction.signatures = vec![Signature([31; 65]); 1_000];
    assert_eq!(
        judge(&transaction, "alice", &accounts()),
        Err(Reason::Signature),
        "the number of recoveries is bounded"
    );
}

proptest! {
    #[test]
    fn verifying_any_signatures_never_panics(halves in proptest::collection::vec(any::<([u8; 32], [u8; 32], u8)>(), 0..4)) {
        let mut transaction = unsigned();
        for (r, s, header) in halves {
            let mut bytes = [header; 65];
            bytes[1..33].copy_from_slice(&r);
            bytes[33..].copy_from_slice(&s);
            transaction.signatures.push(Signature(bytes));
        }
        prop_assert!(authorize(&transaction, &name("alice"), ChainId::MAINNET, &accounts()).is_err());
    }
}
