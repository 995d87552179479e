//! Tests of account proofs, challenges and changes.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::{
    hive::{PrivateKey, PublicKey, Signature},
    ids::{KeyId, MerchantId},
    ledger::{ChainPosition, TxId},
    merchant::{Credentials, Registration, api_key_text},
    money::{Currency, Money},
    webhook::Secret,
};

const SERVER: &str = "pay.example.com";
const START: Timestamp = Timestamp::from_seconds(1_800_000_000);
const DAY: Duration = Duration::from_secs(86_400);

fn name(text: &str) -> AccountName {
    AccountName::parse(text).unwrap()
}

fn key(seed: u8) -> PrivateKey {
    PrivateKey::from_bytes(&[seed; 32]).unwrap()
}

fn after(seconds: u64) -> Timestamp {
    START + Duration::from_secs(seconds)
}

fn merchant() -> Merchant {
    let registration = Registration::check("Blue Mugs", "blue.mugs", None).unwrap();
    let credentials = Credentials {
        id: MerchantId::from_bits(1),
        key_id: KeyId::from_bits(2),
        api_key: &api_key_text([7; 24]),
        secret: Secret::from_random([3; 32]),
    };
    Merchant::register(registration, credentials, false, START)
}

fn authority(threshold: u32, keys: &[(u8, u16)]) -> Authority {
    let key_auths = keys.iter().map(|(seed, weight)| (key(*seed).public(), *weight)).collect();
    Authority { weight_threshold: threshold, account_auths: BTreeMap::new(), key_auths }
}

fn of(account: &str, authority: Authority) -> BTreeMap<AccountName, Authority> {
    BTreeMap::from([(name(account), authority)])
}

/// The active authority of every account.
const DIGEST: AuthorityDigest = AuthorityDigest([1; 32]);

/// Issues the next challenge with a nonce made of `n`.
fn challenged(merchant: &Merchant, account: Option<&str>, n: u8, now: Timestamp) -> (Merchant, Challenge) {
    let question = merchant.challenge_target(account.map(name), false).unwrap();
    merchant.with_challenge(question, DIGEST, Nonce([n; 16]), now)
}

fn proof(now: Timestamp) -> Proof {
    Proof::new(VerificationMethod::Signature, Some(DIGEST), now)
}

/// The authorities that gave the proofs of these tests.
fn same_keys() -> BTreeMap<AccountName, AuthorityDigest> {
    ["blue.mugs", "red.mugs"].map(|account| (name(account), AuthorityDigest([1; 32]))).into()
}

fn proven(merchant: &Merchant, account: Option<&str>, n: u8, now: Timestamp) -> Merchant {
    let (merchant, challenge) = challenged(merchant, account, n, now);
    merchant.with_proof(challenge.nonce, proof(now), now).unwrap()
}

fn sign(challenge: &Challenge, server: &str, id: MerchantId, seed: u8) -> Signature {
    key(seed).sign(&challenge.digest(server, id))
}

fn moved(from: &str, to: &str, memo: &str, block_time: Timestamp) -> Transfer {
    Transfer {
        tx_id: TxId([1; 20]),
        position: ChainPosition { block_num: 1, tx_in_block: 0, op_in_tx: 0 },
        block_time,
        from: name(from),
        to: name(to),
        money: Money::new(1, Currency::Hbd),
        memo: memo.to_owned(),
    }
}

#[test]
fn the_challenge_text_and_memo_have_the_documented_format() {
    let (merchant, challenge) = challenged(&merchant(), None, 0xab, START);
    let id = merchant.id;
    assert_eq!(
        challenge.text(SERVER, id),
        format!(
            "Hivetill account proof\nserver: pay.example.com\nmerchant: {id}\naccount: blue.mugs\naction: verify\n\
             nonce: abababababababababababababababab\nexpires: 2027-01-15T08:15:00.000Z"
        )
    );
    let memo = challenge.memo(SERVER, id);
    assert_eq!(memo, format!("Merchant {id} at pay.example.com may use @blue.mugs: abababababababababababababababab"));
    assert_eq!(merchant_in_proof_memo(&moved("blue.mugs", "blue.mugs", &memo, START)), Some(id));
    assert_eq!(
        merchant_in_proof_memo(&moved("alice", "blue.mugs", &memo, START)),
        None,
        "a customer's transfer is a payment"
    );
    for other in ["", "Merchant", &format!("Merchant {id} at home"), "pos-pay_1"] {
        assert_eq!(merchant_in_proof_memo(&moved("blue.mugs", "blue.mugs", other, START)), None, "{other}");
    }
}

#[test]
fn only_active_keys_and_this_challenge_text_are_accepted() {
    let (merchant, challenge) = challenged(&merchant(), None, 1, START);
    let id = merchant.id;
    let owner = of("blue.mugs", authority(1, &[(1, 1)]));
    let check = |signature: Signature, now| challenge.check(SERVER, id, &[signature], &owner, now);
    let good = sign(&challenge, SERVER, id, 1);
    assert_eq!(check(good, after(900)), Ok(SignatureCheck::Complete));
    assert_eq!(check(good, after(901)), Err(Rejection::Expired { at: after(900) }));
    let refused = Err(Rejection::Signature { index: 0 });
    assert_eq!(check(sign(&challenge, SERVER, id, 2), START), refused, "another key");
    assert_eq!(check(sign(&challenge, "pay.example.org", id, 1), START), refused, "another server");
    assert_eq!(check(sign(&challenge, SERVER, MerchantId::from_bits(9), 1), START), refused, "another merchant");
    let other = Challenge { nonce: Nonce([9; 16]), ..challenge.clone() };
    assert_eq!(check(sign(&other, SERVER, id, 1), START), refused, "another nonce");
    assert_eq!(check(Signature([0; 65]), START), refused, "no signature");
    let open = of("blue.mugs", authority(0, &[(1, 1)]));
    assert_eq!(challenge.check(SERVER, id, &[good], &open, START), Err(Rejection::OpenAuthority));
    assert_eq!(challenge.check(SERVER, id, &[], &open, START), refused, "nothing was signed");
}

#[test]
fn signatures_add_up_to_the_threshold() {
    let (merchant, challenge) = challenged(&merchant(), None, 1, START);
    let id = merchant.id;
    let shared = of("blue.mugs", authority(3, &[(1, 1), (2, 1), (3, 2)]));
    let first = challenge.check(SERVER, id, &[sign(&challenge, SERVER, id, 1)], &shared, START).unwrap();
    let keys = BTreeSet::from([key(1).public()]);
    assert_eq!(first, SignatureCheck::Incomplete(keys.clone()));
    let merchant = merchant.with_signed_keys(challenge.nonce, keys, START).unwrap();
    let challenge = merchant.challenge(challenge.nonce).unwrap().clone();
    let again = challenge.check(SERVER, id, &[sign(&challenge, SERVER, id, 1)], &shared, START).unwrap();
    assert!(matches!(again, SignatureCheck::Incomplete(keys) if keys.len() == 1), "one key counts once");
    let mixed = [sign(&challenge, SERVER, id, 2), sign(&challenge, SERVER, id, 9)];
    assert_eq!(challenge.check(SERVER, id, &mixed, &shared, START), Err(Rejection::Signature { index: 1 }));
    let last = challenge.check(SERVER, id, &[sign(&challenge, SERVER, id, 3)], &shared, START);
    assert_eq!(last, Ok(SignatureCheck::Complete));
    // A key that was removed from the authority meanwhile does not count.
    let without = of("blue.mugs", authority(3, &[(2, 1), (3, 2)]));
    let rest = challenge.check(SERVER, id, &[sign(&challenge, SERVER, id, 3)], &without, START).unwrap();
    assert_eq!(rest, SignatureCheck::Incomplete(BTreeSet::from([key(3).public()])));
}

#[test]
fn delegates_sign_for_their_account() {
    let (merchant, challenge) = challenged(&merchant(), None, 1, START);
    let delegated =
        Authority { weight_threshold: 1, account_auths: [(name("carol"), 1)].into(), ..Authority::default() };
    let mut known = of("blue.mugs", delegated);
    let signatures = [sign(&challenge, SERVER, merchant.id, 5)];
    let check = |known: &_| challenge.check(SERVER, merchant.id, &signatures, known, START);
    assert_eq!(check(&known), Ok(SignatureCheck::Unknown(BTreeSet::from([name("carol")]))));
    known.insert(name("carol"), Authority::of_key(key(5).public()));
    assert_eq!(check(&known), Ok(SignatureCheck::Complete));
    known.insert(name("carol"), Authority::of_key(PublicKey([2; 33])));
    assert_eq!(check(&known), Err(Rejection::Signature { index: 0 }));
}

#[test]
fn a_transfer_to_oneself_proves_an_account_before_its_challenge_expires() {
    let (merchant, challenge) = challenged(&merchant(), None, 1, START);
    let memo = challenge.memo(SERVER, merchant.id);
    let proves = |transfer: &Transfer, server| merchant.challenge_answered_by(transfer, server).is_some();
    assert!(proves(&moved("blue.mugs", "blue.mugs", &memo, after(900)), SERVER));
    assert!(!proves(&moved("blue.mugs", "blue.mugs", &memo, after(901)), SERVER), "too late");
    assert!(!proves(&moved("blue.mugs", "blue.mugs", &memo, START.minus(Duration::from_secs(31))), SERVER));
    assert!(!proves(&moved("alice", "blue.mugs", &memo, START), SERVER), "a customer");
    assert!(!proves(&moved("blue.mugs", "alice", &memo, START), SERVER));
    assert!(!proves(&moved("alice", "alice", &memo, START), SERVER), "another account");
    assert!(!proves(&moved("blue.mugs", "blue.mugs", &format!("{memo} "), START), SERVER));
    assert!(!proves(&moved("blue.mugs", "blue.mugs", &memo, START), "pay.example.org"));
}

#[test]
fn a_challenge_is_answered_once() {
    let (issued, challenge) = challenged(&merchant(), None, 1, START);
    let (same, again) = challenged(&issued, None, 2, after(60));
    assert_eq!((&same, again.nonce), (&issued, challenge.nonce), "it is reused while enough time is left");
    let (_, fresh) = challenged(&issued, None, 2, after(601));
    assert_ne!(fresh.nonce, challenge.nonce);
    let done = issued.with_proof(challenge.nonce, proof(START), START).unwrap();
    assert_eq!(done.ownership.verification_status(), VerificationStatus::Verified);
    assert_eq!(done.with_proof(challenge.nonce, proof(START), START), Err(Rejection::UnknownChallenge));
    assert_eq!(done.challenge_target(Some(name("alice")), false), Err(Rejection::OtherAccount(name("alice"))));
    let mut many = done;
    for n in 0..50 {
        many = challenged(&many, None, n, after(u64::from(n) * 700)).0;
    }
    assert_eq!(many.ownership.challenges.len(), MAX_CHALLENGES);
}

#[test]
fn a_changed_authority_makes_a_proof_stale() {
    let verified = proven(&merchant(), None, 1, START);
    let account = name("blue.mugs");
    assert_eq!(verified.with_authority(&account, AuthorityDigest([1; 32]), START), None);
    let stale = verified.with_authority(&account, AuthorityDigest([2; 32]), START).unwrap();
    assert_eq!(stale.ownership.verification_status(), VerificationStatus::Stale);
    // Restoring the old authority does not make the proof valid again.
    assert_eq!(stale.with_authority(&account, AuthorityDigest([1; 32]), START), None);
    assert_eq!(proven(&stale, None, 2, START).ownership.verification_status(), VerificationStatus::Verified);
    let by_transfer = Proof::new(VerificationMethod::Transfer, None, START);
    let learned = merchant().verified_by_operator(account, by_transfer, START).unwrap();
    let learned = learned.with_authority(&account, AuthorityDigest([3; 32]), START).unwrap();
    assert_eq!(learned.ownership.proof.unwrap().authority, Some(AuthorityDigest([3; 32])));
}

#[test]
fn an_unverified_account_changes_at_once_without_its_proofs() {
    let changed = merchant().with_account(name("red.mugs"), DAY, START).unwrap();
    assert_eq!((changed.hive_account, &changed.ownership.pending), (name("red.mugs"), &None));
    assert_eq!(changed.proof_for(&name("blue.mugs")), None);
    // A challenge for the former account is invalid.
    let (issued, challenge) = challenged(&merchant(), None, 1, START);
    let left = issued.with_account(name("red.mugs"), DAY, START).unwrap();
    assert_eq!(left.with_proof(challenge.nonce, proof(START), START), Err(Rejection::UnknownChallenge));
}

#[test]
fn a_verified_account_changes_after_both_proofs_and_the_wait() {
    let verified = proven(&merchant(), None, 1, START);
    let asked = verified.with_account(name("red.mugs"), DAY, START).unwrap();
    assert_eq!(asked.hive_account, name("blue.mugs"));
    assert_eq!(
        asked.with_account(name("red.mugs"), DAY, after(5)),
        Ok(asked.clone()),
        "a repeated request changes nothing"
    );
    assert_eq!(asked.with_due_change_applied(&same_keys(), after(86_400)), None, "no account has agreed");
    assert_eq!(asked.challenge_target(None, false), Ok((name("blue.mugs"), Action::ChangeTo(name("red.mugs")))));
    let consented = proven(&asked, None, 2, after(60));
    let agreed = proven(&consented, None, 3, after(120));
    assert!(agreed.ownership.pending.as_ref().unwrap().is_proven());
    assert_eq!(agreed.with_due_change_applied(&same_keys(), after(86_399)), None, "the waiting period is not over");
    let changed = agreed.with_due_change_applied(&same_keys(), after(86_400)).unwrap();
    assert_eq!(
        (changed.hive_account, changed.ownership.verification_status()),
        (name("red.mugs"), VerificationStatus::Verified)
    );
    assert!(changed.proof_for(&name("blue.mugs")).is_some(), "former accounts stay accessible");
    assert_eq!(changed.proof_for(&name("alice")), None);

    let only_new = proven(&asked, Some("red.mugs"), 4, after(60));
    assert_eq!(
        only_new.with_due_change_applied(&same_keys(), after(86_400)),
        None,
        "the current account has not agreed"
    );
    let lapsed = only_new.with_due_change_applied(&same_keys(), after(8 * 86_400)).unwrap();
    assert_eq!((lapsed.hive_account, &lapsed.ownership.pending), (name("blue.mugs"), &None));
}

#[test]
fn consent_by_replaced_keys_is_discarded() {
    let verified = proven(&merchant(), None, 1, START);
    let asked = verified.with_account(name("red.mugs"), DAY, START).unwrap();
    let agreed = proven(&proven(&asked, None, 2, after(60)), None, 3, after(120));
    assert!(agreed.ownership.pending.as_ref().unwrap().is_proven());
    assert_eq!(agreed.with_due_change_applied(&BTreeMap::new(), after(86_400)), None, "no majority names the keys");
    for replaced in ["blue.mugs", "red.mugs"] {
        let mut keys = same_keys();
        keys.insert(name(replaced), AuthorityDigest([9; 32]));
        let left = agreed.with_due_change_applied(&keys, after(86_400)).unwrap();
        let pending = left.ownership.pending.as_ref().unwrap();
        let consents = (pending.current.is_some(), pending.new.is_some());
        assert_eq!(
            (left.hive_account, consents),
            (name("blue.mugs"), (replaced != "blue.mugs", replaced != "red.mugs"))
        );
        assert_eq!(left.with_due_change_applied(&keys, after(86_401)), None, "it waits for a new consent");
        assert_eq!(
            left.with_due_change_applied(&keys, after(8 * 86_400)).unwrap().ownership.pending,
            None,
            "it lapses"
        );
    }
}

#[test]
fn consent_applies_to_one_change_and_the_change_can_be_cancelled() {
    let verified = proven(&merchant(), None, 1, START);
    let asked = verified.with_account(name("red.mugs"), DAY, START).unwrap();
    let (asked, consent) = challenged(&asked, None, 2, START);
    let elsewhere = asked.with_account(name("mallory"), DAY, START).unwrap();
    assert_eq!(elsewhere.with_proof(consent.nonce, proof(START), START), Err(Rejection::NothingPending));
    let question = asked.challenge_target(None, true).unwrap();
    let (asked, cancel) = asked.with_challenge(question, DIGEST, Nonce([7; 16]), START);
    let kept = asked.with_proof(cancel.nonce, proof(START), START).unwrap();
    assert_eq!((kept.hive_account, &kept.ownership.pending), (name("blue.mugs"), &None));
    assert_eq!(kept.with_proof(consent.nonce, proof(START), START), Err(Rejection::NothingPending));
    assert_eq!(kept.challenge_target(None, true), Err(Rejection::NothingPending));
    assert_eq!(asked.without_pending(START).unwrap().ownership.pending, None);
    assert_eq!(kept.without_pending(START), Err(Rejection::NothingPending));
}

#[test]
fn confirmation_by_the_operator_replaces_both_proofs() {
    let word = Proof::new(VerificationMethod::Operator, Some(AuthorityDigest([4; 32])), START);
    let verified = merchant().verified_by_operator(name("blue.mugs"), word, START).unwrap();
    assert_eq!(verified.ownership.verification_status(), VerificationStatus::Verified);
    assert_eq!(verified.verified_by_operator(name("alice"), word, START), Err(Rejection::OtherAccount(name("alice"))));
    let asked = verified.with_account(name("red.mugs"), DAY, START).unwrap();
    let vouched = asked.verified_by_operator(name("red.mugs"), word, START).unwrap();
    assert_eq!(vouched.with_due_change_applied(&same_keys(), after(86_399)), None);
    assert_eq!(vouched.with_due_change_applied(&same_keys(), after(86_400)).unwrap().hive_account, name("red.mugs"));
}

#[test]
fn an_account_changes_three_times_a_day() {
    let mut changing = merchant();
    for (n, to) in ["red.mugs", "green.mugs", "black.mugs"].into_iter().enumerate() {
        changing = changing.with_account(name(to), DAY, after(n as u64)).unwrap();
    }
    let fourth = changing.with_account(name("blue.mugs"), DAY, after(100));
    assert_eq!(fourth, Err(Rejection::TooManyChanges { again_at: after(86_400) }));
    assert_eq!(changing.with_account(name("black.mugs"), DAY, after(100)), Ok(changing.clone()), "no change is none");
    assert!(changing.with_account(name("blue.mugs"), DAY, after(86_400)).is_ok());
}
