//! The stored form of a merchant's ownership of its account, a part of the merchant's record.

use engine::{
    hive::PublicKey,
    ownership::{
        Action, AuthorityDigest, Challenge, FormerAccount, Nonce, Ownership, PendingChange, Proof, VerificationMethod,
    },
    time::Timestamp,
};
use prost::Message;

use crate::record::{
    codes::Code,
    wire::{Damage, account, array, code, time},
};

#[derive(Clone, PartialEq, Message)]
pub(super) struct OwnershipRecord {
    #[prost(message, optional, tag = "1")]
    proof: Option<ProofRecord>,
    #[prost(message, optional, tag = "2")]
    pending: Option<PendingRecord>,
    #[prost(message, repeated, tag = "3")]
    former: Vec<FormerRecord>,
    #[prost(message, repeated, tag = "4")]
    challenges: Vec<ChallengeRecord>,
    #[prost(uint64, repeated, tag = "5")]
    changed_at_ms: Vec<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct ProofRecord {
    #[prost(uint32, tag = "1")]
    means: u32,
    #[prost(uint64, tag = "2")]
    at_ms: u64,
    #[prost(bytes = "vec", optional, tag = "3")]
    authority: Option<Vec<u8>>,
    #[prost(uint64, optional, tag = "4")]
    stale_since_ms: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct PendingRecord {
    #[prost(string, tag = "1")]
    account: String,
    #[prost(uint64, tag = "2")]
    requested_at_ms: u64,
    #[prost(uint64, tag = "3")]
    effective_at_ms: u64,
    #[prost(message, optional, tag = "4")]
    current: Option<ProofRecord>,
    #[prost(message, optional, tag = "5")]
    new: Option<ProofRecord>,
}

#[derive(Clone, PartialEq, Message)]
struct FormerRecord {
    #[prost(string, tag = "1")]
    account: String,
    #[prost(message, optional, tag = "2")]
    proof: Option<ProofRecord>,
}

#[derive(Clone, PartialEq, Message)]
struct ChallengeRecord {
    #[prost(string, tag = "1")]
    account: String,
    /// 1 verifies, 2 changes to `to`, 3 cancels.
    #[prost(uint32, tag = "2")]
    action: u32,
    #[prost(string, tag = "3")]
    to: String,
    #[prost(bytes = "vec", tag = "4")]
    nonce: Vec<u8>,
    #[prost(uint64, tag = "5")]
    issued_at_ms: u64,
    #[prost(uint64, tag = "6")]
    expires_at_ms: u64,
    #[prost(bytes = "vec", repeated, tag = "7")]
    keys: Vec<Vec<u8>>,
    #[prost(bytes = "vec", tag = "8")]
    authority: Vec<u8>,
}

impl OwnershipRecord {
    pub(super) fn is_proven(&self) -> bool {
        self.proof.is_some()
    }

    /// Returns when a pending change takes effect or lapses.
    pub(super) fn due_at(&self) -> Result<Option<Timestamp>, Damage> {
        let pending = self.pending.clone().map(pending_from).transpose()?;
        Ok(pending.map(|pending| pending.due_at()))
    }
}

/// Returns the stored form; none for a merchant that has no ownership data.
pub(super) fn ownership_to_record(ownership: Ownership) -> Option<OwnershipRecord> {
    let is_blank = ownership == Ownership::default();
    let record = OwnershipRecord {
        proof: ownership.proof.map(proof_to),
        pending: ownership.pending.map(|pending| PendingRecord {
            account: pending.account.to_string(),
            requested_at_ms: pending.requested_at.millis(),
            effective_at_ms: pending.effective_at.millis(),
            current: pending.current.map(proof_to),
            new: pending.new.map(proof_to),
        }),
        former: ownership
            .former
            .into_iter()
            .map(|former| FormerRecord { account: former.account.to_string(), proof: Some(proof_to(former.proof)) })
            .collect(),
        challenges: ownership.challenges.into_iter().map(challenge_to).collect(),
        changed_at_ms: ownership.changed_at.into_iter().map(Timestamp::millis).collect(),
    };
    (!is_blank).then_some(record)
}

/// Decodes the form that [`ownership_to_record`] returns.
pub(super) fn ownership_from_record(record: Option<OwnershipRecord>) -> Result<Ownership, Damage> {
    let Some(record) = record else { return Ok(Ownership::default()) };
    let former = |former: FormerRecord| {
        Ok(FormerAccount {
            account: account("former account", &former.account)?,
            proof: proof_from(former.proof.ok_or(Damage::Missing("proof"))?)?,
        })
    };
    Ok(Ownership {
        proof: record.proof.map(proof_from).transpose()?,
        pending: record.pending.map(pending_from).transpose()?,
        former: record.former.into_iter().map(former).collect::<Result<_, Damage>>()?,
        challenges: record.challenges.into_iter().map(challenge_from).collect::<Result<_, _>>()?,
        changed_at: record.changed_at_ms.into_iter().map(time).collect(),
    })
}

fn proof_to(proof: Proof) -> ProofRecord {
    ProofRecord {
        means: proof.method.number(),
        at_ms: proof.at.millis(),
        authority: proof.authority.map(|digest| digest.0.to_vec()),
        stale_since_ms: proof.stale_since.map(Timestamp::millis),
    }
}

fn proof_from(record: ProofRecord) -> Result<Proof, Damage> {
    let means: VerificationMethod = code("means", record.means)?;
    let authority = record.authority.map(|bytes| array("authority", &bytes).map(AuthorityDigest)).transpose()?;
    Ok(Proof { method: means, at: time(record.at_ms), authority, stale_since: record.stale_since_ms.map(time) })
}

fn pending_from(record: PendingRecord) -> Result<PendingChange, Damage> {
    Ok(PendingChange {
        account: account("pending account", &record.account)?,
        requested_at: time(record.requested_at_ms),
        effective_at: time(record.effective_at_ms),
        current: record.current.map(proof_from).transpose()?,
        new: record.new.map(proof_from).transpose()?,
    })
}

fn challenge_to(challenge: Challenge) -> ChallengeRecord {
    let (action, to) = match challenge.action {
        Action::Verify => (1, String::new()),
        Action::ChangeTo(to) => (2, to.to_string()),
        Action::Cancel => (3, String::new()),
    };
    ChallengeRecord {
        account: challenge.account.to_string(),
        action,
        to,
        nonce: challenge.nonce.0.to_vec(),
        issued_at_ms: challenge.issued_at.millis(),
        expires_at_ms: challenge.expires_at.millis(),
        keys: challenge.keys.into_iter().map(|key| key.0.to_vec()).collect(),
        authority: challenge.authority.0.to_vec(),
    }
}

fn challenge_from(record: ChallengeRecord) -> Result<Challenge, Damage> {
    let action = match record.action {
        1 => Action::Verify,
        2 => Action::ChangeTo(account("to", &record.to)?),
        3 => Action::Cancel,
        other => return Err(Damage::Value { field: "action", value: other.to_string() }),
    };
    let keys = record.keys.iter().map(|key| array("key", key).map(PublicKey)).collect::<Result<_, _>>()?;
    Ok(Challenge {
        account: account("challenged account", &record.account)?,
        action,
        authority: AuthorityDigest(array("challenged authority", &record.authority)?),
        nonce: Nonce(array("nonce", &record.nonce)?),
        issued_at: time(record.issued_at_ms),
        expires_at: time(record.expires_at_ms),
        keys,
    })
}

#[cfg(test)]
mod tests {
    use engine::account::AccountName;

    use super::*;

    #[test]
    fn an_ownership_round_trips_and_has_these_bytes() {
        let name = |text| AccountName::parse(text).unwrap();
        let at = Timestamp::from_millis;
        let proof = Proof {
            method: VerificationMethod::Transfer,
            at: at(5),
            authority: Some(AuthorityDigest([1; 32])),
            stale_since: Some(at(6)),
        };
        let challenge = |action| Challenge {
            account: name("shop"),
            action,
            authority: AuthorityDigest([4; 32]),
            nonce: Nonce([2; 16]),
            issued_at: at(7),
            expires_at: at(8),
            keys: [PublicKey([3; 33])].into(),
        };
        let ownership = Ownership {
            proof: Some(proof),
            pending: Some(PendingChange {
                account: name("till"),
                requested_at: at(9),
                effective_at: at(10),
                current: Some(Proof::new(VerificationMethod::Signature, None, at(11))),
                new: Some(Proof::new(VerificationMethod::Operator, None, at(12))),
            }),
            former: vec![FormerAccount { account: name("stall"), proof }],
            challenges: [Action::Verify, Action::ChangeTo(name("till")), Action::Cancel].map(challenge).to_vec(),
            changed_at: vec![at(13), at(14)],
        };
        let record = ownership_to_record(ownership.clone()).unwrap();
        assert_eq!(record.due_at(), Ok(Some(at(10))));
        let bytes = record.encode_to_vec();
        assert_eq!(ownership_from_record(OwnershipRecord::decode(&bytes[..]).ok()), Ok(ownership));
        assert_eq!(ownership_to_record(Ownership::default()), None);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "0a28080210051a200101010101010101010101010101010101010101010101010101010101010101200612160a04746\
             96c6c1009180a22040801100b2a040803100c1a310a057374616c6c1228080210051a20010101010101010101010101\
             0101010101010101010101010101010101010101200622630a0473686f7010012210020202020202020202020202020\
             20202280730083a21030303030303030303030303030303030303030303030303030303030303030303422004040404\
             0404040404040404040404040404040404040404040404040404040422690a0473686f7010021a0474696c6c2210020\
             20202020202020202020202020202280730083a21030303030303030303030303030303030303030303030303030303\
             0303030303034220040404040404040404040404040404040404040404040404040404040404040422630a0473686f7\
             01003221002020202020202020202020202020202280730083a21030303030303030303030303030303030303030303\
             030303030303030303030303422004040404040404040404040404040404040404040404040404040404040404042a0\
             20d0e"
        );
    }
}
