//! Merchants that prove the ownership of ledger accounts, and accounts that are used without a valid proof.

use actors::Issued;
use engine::{
    merchant::Merchant,
    ownership::{Action as Agreed, Challenge, Rejection, VerificationStatus},
};
use sha2::{Digest as _, Sha256};
use storage::{Unmatched, UnmatchedReason};

use super::*;
use crate::script::OwnershipAction;

/// The lifetime of a challenge, milliseconds.
const TOO_LATE_MS: u64 = 960_000;
/// Account changes of a merchant that exceeds the limit of a day.
const CHANGES: usize = 5;

pub(super) async fn act_on_ownership(
    sim: &Arc<Simulation>,
    engine: &Running,
    merchant: usize,
    step: OwnershipAction,
) -> Again {
    let Some(id) = sim.clients().merchants.get(&merchant).map(|shop| shop.id) else { return Again::In(1_000) };
    match step {
        OwnershipAction::Prove => match challenge(sim, engine, id).await {
            Ok(issued) => {
                send_proof(sim, issued.challenge.account.as_str(), issued.challenge.account.as_str(), &issued.memo);
                Again::No
            }
            Err(again) => again,
        },
        OwnershipAction::ProveTooLate => match challenge(sim, engine, id).await {
            Ok(issued) => {
                sim.sleep(TOO_LATE_MS).await;
                let account = issued.challenge.account;
                send_proof(sim, account.as_str(), account.as_str(), &issued.memo);
                sim.mark("a merchant proves its account too late");
                Again::No
            }
            Err(again) => again,
        },
        OwnershipAction::ProveAndReplaceKeys => match challenge(sim, engine, id).await {
            Ok(issued) => {
                let account = issued.challenge.account;
                send_proof(sim, account.as_str(), account.as_str(), &issued.memo);
                replace_keys(sim, &account);
                Again::No
            }
            Err(again) => again,
        },
        OwnershipAction::ProveByThirdParty => match challenge(sim, engine, id).await {
            Ok(issued) => {
                prove_by_third_party(sim, &issued);
                Again::No
            }
            Err(again) => again,
        },
        OwnershipAction::UseOthersAccount => use_others_account(sim, engine, id, merchant).await,
        OwnershipAction::RegisterByOther => register_by_other(sim, engine, merchant).await,
        OwnershipAction::ChangeOften => change_often(sim, engine, id, merchant).await,
        OwnershipAction::Ignore => ignore_unmatched(sim, engine, id).await,
    }
}

/// Returns an account that is not the merchant's.
fn others_account(sim: &Simulation, merchant: usize) -> AccountName {
    let count = sim.script.setup.merchants;
    let name = if count > 1 { account((merchant + 1) % count, false) } else { THIRD_PARTY.to_owned() };
    AccountName::parse(&name).expect("a name of ours")
}

/// Requests a challenge for the account that is not proven yet.
async fn challenge(sim: &Arc<Simulation>, engine: &Running, id: MerchantId) -> Result<Issued, Again> {
    let before = sim.observe(|observer| observer.proofs.keys());
    match engine.merchants.issue_challenge(id, None, false).await {
        Ok(issued) => {
            let account = issued.challenge.account;
            let (memo, expires_at) = (issued.memo.clone(), issued.challenge.expires_at);
            sim.observe(|observer| observer.proofs.challenges(memo, (id, account), expires_at, &before));
            Ok(issued)
        }
        Err(EngineError::Ownership(_)) => Err(Again::No),
        Err(_) => Err(Again::In(2_000)),
    }
}

/// Responds to a challenge with a signature: by the account's own key, or by another account's, which proves nothing.
pub(super) async fn sign_proof(sim: &Arc<Simulation>, engine: &Running, id: MerchantId) -> Again {
    let issued = match challenge(sim, engine, id).await {
        Ok(issued) => issued,
        Err(again) => return again,
    };
    let account = issued.challenge.account;
    let is_forged = (sim.now_ms() / 1_000).is_multiple_of(4);
    let signer = if is_forged { payer(0) } else { account.to_string() };
    let signature = {
        let text = text_to_sign(&sim.engine_settings().server, id, &issued.challenge);
        let digest: [u8; 32] = Sha256::digest(text).into();
        sim.hive().sign(&signer, &digest)
    };
    if !is_forged {
        sim.observe(|observer| observer.proofs.signs((id, account)));
    }
    let answered = engine.merchants.submit_signatures(id, issued.challenge.nonce, &[signature]).await;
    let (is_taken, is_refused) = match &answered {
        Ok(answered) => (answered.is_complete, false),
        Err(EngineError::Ownership(rejection)) => (false, matches!(rejection, Rejection::Signature { index: 0 })),
        Err(_) => return Again::In(2_000),
    };
    // Without `signatures`, only the merchants' accounts have keys.
    let has_keys = account.as_str().starts_with("shop-") || account.as_str().starts_with("else-");
    let flaw = match (is_forged, is_taken) {
        (true, true) => Some("the signature of another account proves it"),
        (false, false) if is_refused && has_keys => Some("its own signature does not"),
        _ => None,
    };
    sim.observe(|observer| match flaw {
        Some(why) => observer.violate("proofs-come-from-the-account", format!("@{account}: {why}"), None),
        None => observer.passes("proofs-come-from-the-account"),
    });
    if is_taken {
        sim.mark("a merchant proves its account by a signature");
    }
    Again::No
}

/// Writes what an account signs to answer a challenge.
fn text_to_sign(server: &str, merchant: MerchantId, challenge: &Challenge) -> String {
    let Challenge { account, action, nonce, expires_at, .. } = challenge;
    let action = match action {
        Agreed::Verify => "verify".to_owned(),
        Agreed::ChangeTo(account) => format!("change to {account}"),
        Agreed::Cancel => "cancel change".to_owned(),
    };
    [
        "Hivetill account proof".to_owned(),
        format!("server: {server}"),
        format!("merchant: {merchant}"),
        format!("account: {account}"),
        format!("action: {action}"),
        format!("nonce: {nonce}"),
        format!("expires: {expires_at}"),
    ]
    .join("\n")
}

/// Sends a transfer with the memo of a proof.
fn send_proof(sim: &Arc<Simulation>, from: &str, to: &str, memo: &str) {
    let sent = {
        let mut hive = sim.hive();
        let transfer = Hive::transfer(from, to, 1, Currency::Hive, memo);
        let transaction = hive.transaction(from, vec![transfer], Duration::from_secs(60));
        (hive.id_of(&transaction), hive.chain.broadcast(transaction).is_ok())
    };
    let (tx_id, is_sent) = sent;
    sim.observe(|observer| {
        observer.intents.insert(tx_id, None);
        observer.own_broadcasts.insert(tx_id);
        observer.ever_accepted.insert(tx_id);
    });
    if is_sent {
        sim.event(Source::Merchant, "proof", None, 0, || format!("{from} sends {to} a proof of an account"));
    }
}

/// A third party sends the proof to itself, and to the account.
fn prove_by_third_party(sim: &Arc<Simulation>, issued: &Issued) {
    let third_party = payer(0);
    send_proof(sim, &third_party, &third_party, &issued.memo);
    send_proof(sim, &third_party, issued.challenge.account.as_str(), &issued.memo);
    sim.mark("a third party sends a merchant's proof");
}

/// Gives an account another active authority.
fn replace_keys(sim: &Arc<Simulation>, account: &AccountName) {
    let replaced = sim.observe(|observer| observer.proofs.replaces_keys(*account));
    sim.hive().replace_keys(account, replaced);
    sim.nodes_may_differ();
    sim.event(Source::Ledger, "keys", None, u64::from(replaced), || format!("the keys of {account} are replaced"));
}

/// Changes the account to another merchant's, and calls what only the owner may call.
async fn use_others_account(sim: &Arc<Simulation>, engine: &Running, id: MerchantId, merchant: usize) -> Again {
    let update = Update { hive_account: Some(others_account(sim, merchant)), ..Update::default() };
    match engine.merchants.update(id, update).await {
        Ok(_) => {
            sim.event(Source::Merchant, "takes", None, merchant as u64, || {
                format!("shop {merchant} wants to use the account of a third party")
            });
            ignore_unmatched(sim, engine, id).await
        }
        Err(EngineError::Ownership(_)) => Again::No,
        Err(_) => Again::In(2_000),
    }
}

/// A third party registers with a merchant's account and calls what only the owner may call; its proofs are rejected.
async fn register_by_other(sim: &Arc<Simulation>, engine: &Running, merchant: usize) -> Again {
    let registration = Registration::check("Third party", &account(merchant, false), None);
    let registration = registration.expect("a name and an account of ours");
    let Ok(registered) = engine.merchants.register(registration, false).await else { return Again::In(2_000) };
    let id = registered.merchant.id;
    sim.mark("a third party registers with a merchant's account");
    sim.event(Source::Merchant, "registered_again", None, merchant as u64, || {
        format!("a third party registers with the account of shop {merchant}")
    });
    if let Ok(issued) = challenge(sim, engine, id).await {
        prove_by_third_party(sim, &issued);
    }
    // Other steps retry what has no response now.
    let _ = ignore_unmatched(sim, engine, id).await;
    Again::No
}

/// Changes the account back and forth, more often than a merchant may.
async fn change_often(sim: &Arc<Simulation>, engine: &Running, id: MerchantId, merchant: usize) -> Again {
    for number in 0..CHANGES {
        let hive_account = Some(AccountName::parse(&account(merchant, number % 2 == 0)).expect("a name of ours"));
        match engine.merchants.update(id, Update { hive_account, ..Update::default() }).await {
            Ok(_) => sim.sleep(1_000).await,
            Err(EngineError::Ownership(_)) => {
                sim.mark("an account is changed too often");
                return Again::No;
            }
            Err(_) => return Again::In(5_000),
        }
    }
    Again::No
}

/// Reads the unmatched transfers of a merchant's account, and ignores one of them.
async fn ignore_unmatched(sim: &Arc<Simulation>, engine: &Running, id: MerchantId) -> Again {
    let Ok(record) = engine.merchants.get(id).await else { return Again::In(2_000) };
    let account = record.hive_account;
    match engine.payments.unmatched(&record, None, 50).await {
        Ok(listed) => sim.observe(|observer| observer.reads_unmatched(&record, &listed.rows)),
        Err(EngineError::NotProven { .. }) => sim.mark("an unproven account is refused"),
        Err(_) => return Again::In(2_000),
    }
    let place = sim.observe(|observer| {
        // A transfer that names a session may still be matched.
        let is_open =
            |kept: &Unmatched| kept.handling == Handling::Open && kept.reason != UnmatchedReason::UnknownSession;
        let of_it = |kept: &&Unmatched| kept.transfer.to == account && is_open(kept);
        observer.unmatched.values().find(of_it).map(|kept| kept.transfer.position)
    });
    let Some(place) = place else { return Again::No };
    let before = sim.observe(|observer| observer.proofs.keys());
    match engine.payments.ignore(&record, place, id.to_string(), String::new()).await {
        Ok(_) => {
            decided(sim, &record, &account, &before);
            sim.mark("a merchant ignores a transfer");
            Again::No
        }
        Err(EngineError::NotProven { status: found, .. }) => {
            if found == VerificationStatus::Stale {
                sim.mark("a stale proof is refused");
            }
            Again::No
        }
        Err(EngineError::TransferAssigned(_) | EngineError::TransferSettled(_)) => Again::No,
        Err(_) => Again::In(2_000),
    }
}

/// Checks that a merchant that decided about money of an account has proven it, under keys that it had meanwhile.
pub(super) fn decided(
    sim: &Arc<Simulation>,
    record: &Merchant,
    account: &AccountName,
    before: &BTreeMap<AccountName, u32>,
) {
    sim.observe(|observer| observer.decides(record.id, account, before));
}
