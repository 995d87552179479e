//! Observed proofs of accounts: challenges, transfers in response to them, verifications by the operator, replaced keys.

use engine::ownership::{Proof, VerificationMethod};

use super::*;

/// How often a merchant may change its account within [`CHANGES_WINDOW`].
const MAX_CHANGES: usize = 3;
/// The time in which changes are counted.
const CHANGES_WINDOW: Duration = Duration::from_secs(86_400);

/// A merchant and an account.
type Owner = (MerchantId, AccountName);

/// What the observer knows of proofs.
#[derive(Clone, Default)]
pub struct Proofs {
    /// The issued challenges by their memo, and until when each may be answered.
    challenges: BTreeMap<String, (Owner, Timestamp)>,
    /// Irreversible transfers of accounts to themselves with the memo of a proof, and the time of the first.
    transfers: BTreeMap<(AccountName, String), Timestamp>,
    /// Accounts whose challenges were answered with a signature by their own keys.
    signed: BTreeSet<Owner>,
    /// Accounts whose verification by the operator was requested.
    vouched: BTreeSet<Owner>,
    /// How often the keys of accounts were replaced.
    replaced: BTreeMap<AccountName, u32>,
    /// The keys under which a proof was given, by how often they had been replaced before.
    given_under: BTreeMap<Owner, BTreeSet<u32>>,
    /// When merchants changed their account, or requested it.
    changed_at: BTreeMap<MerchantId, Vec<Timestamp>>,
}

impl Proofs {
    /// Returns whether a transfer is the proof of an account, and therefore no payment.
    #[must_use]
    pub fn is_proof(transfer: &Transfer) -> bool {
        transfer.from == transfer.to && transfer.memo.starts_with("Merchant ")
    }

    /// Records a proof on the chain.
    pub fn is_final(&mut self, transfer: &Transfer) {
        self.transfers.entry((transfer.from, transfer.memo.clone())).or_insert(transfer.block_time);
    }

    /// Returns how often the keys of each account were replaced so far.
    #[must_use]
    pub fn keys(&self) -> BTreeMap<AccountName, u32> {
        self.replaced.clone()
    }

    /// Sets how often the keys of each account were replaced.
    pub fn set_keys(&mut self, replaced: BTreeMap<AccountName, u32>) {
        self.replaced = replaced;
    }

    /// Records that the keys of an account are replaced; returns how often they were.
    pub fn replaces_keys(&mut self, account: AccountName) -> u32 {
        let replaced = self.replaced.entry(account).or_default();
        *replaced += 1;
        *replaced
    }

    /// Records an issued challenge; `before` is what [`Proofs::keys`] was when it was requested.
    pub fn challenges(
        &mut self,
        memo: String,
        owner: Owner,
        expires_at: Timestamp,
        before: &BTreeMap<AccountName, u32>,
    ) {
        self.challenges.insert(memo, (owner, expires_at));
        self.gives(owner, before);
    }

    /// Records that an account signs a challenge.
    pub fn signs(&mut self, owner: Owner) {
        self.signed.insert(owner);
    }

    /// Records that the verification of an account by the operator is requested.
    pub fn operator_verifies(&mut self, owner: Owner) {
        self.vouched.insert(owner);
        let now = self.keys();
        self.gives(owner, &now);
    }

    /// Records that the operator has verified an account.
    pub fn operator_verified(&mut self, owner: Owner) {
        let now = self.keys();
        self.gives(owner, &now);
    }

    fn gives(&mut self, owner: Owner, before: &BTreeMap<AccountName, u32>) {
        let under = self.under(&owner.1, before);
        self.given_under.entry(owner).or_default().extend(under);
    }

    /// Returns the keys that an account had since, by how often they were replaced.
    fn under(&self, account: &AccountName, before: &BTreeMap<AccountName, u32>) -> core::ops::RangeInclusive<u32> {
        let count = |replaced: &BTreeMap<AccountName, u32>| replaced.get(account).copied().unwrap_or(0);
        count(before)..=count(&self.replaced)
    }

    /// Returns why a proof is invalid.
    fn flaw(&self, merchant: MerchantId, account: AccountName, of: &[AccountName], proof: &Proof) -> Option<String> {
        let is_given = match proof.method {
            VerificationMethod::Operator => of.iter().any(|account| self.vouched.contains(&(merchant, *account))),
            VerificationMethod::Transfer => self.transfers.iter().any(|((from, memo), at)| {
                let challenge = self.challenges.get(memo);
                let is_its =
                    |(owner, expires_at): &(Owner, Timestamp)| *owner == (merchant, account) && at <= expires_at;
                *from == account && challenge.is_some_and(is_its)
            }),
            VerificationMethod::Signature => self.signed.contains(&(merchant, account)),
        };
        (!is_given).then(|| format!("@{account} counts as proven by {merchant} ({:?}), and is not", proof.method))
    }
}

impl Observer {
    /// Records the accounts of a merchant that is written.
    pub(super) fn ownership_written(&mut self, merchant: &Merchant) {
        let before = self.merchants.get(&merchant.id);
        if before.is_some_and(|before| {
            before.hive_account == merchant.hive_account && before.ownership == merchant.ownership
        }) {
            return;
        }
        let (own, id) = (&merchant.ownership, merchant.id);
        let pending = own.pending.as_ref();
        let proofs = [
            own.proof.map(|proof| (merchant.hive_account, proof)),
            pending.and_then(|pending| Some((merchant.hive_account, pending.current?))),
            pending.and_then(|pending| Some((pending.account, pending.new?))),
        ];
        let former = own.former.iter().map(|former| (former.account, former.proof));
        // The operator verifies a pending change as a whole.
        let vouched_for = |account| [Some(account), pending.map(|pending| pending.account)];
        let flaw = proofs.into_iter().flatten().chain(former).find_map(|(account, proof)| {
            let of: Vec<_> = vouched_for(account).into_iter().flatten().collect();
            self.proofs.flaw(id, account, &of, &proof)
        });
        let is_change = before.is_some_and(|before| {
            let pending_before = before.ownership.pending.as_ref().map(|pending| pending.account);
            let is_new = pending.is_some_and(|pending| pending_before != Some(pending.account));
            // A proven account is exchanged when a pending change takes effect, which is no request.
            is_new || (before.hive_account != merchant.hive_account && pending_before.is_none())
        });
        let proves = own.proof.filter(|_| before.is_some_and(|before| before.ownership.proof.is_none()));
        if proves.is_some_and(|proof| proof.method == VerificationMethod::Transfer) {
            self.marks.push("a merchant proves its account by a transfer");
        }
        let changed = self.account_flaw(merchant);
        match changed {
            Some(text) => self.violate("accounts-change-by-consent", text, None),
            None => self.passes("accounts-change-by-consent"),
        }
        match flaw {
            Some(text) => self.violate("proofs-come-from-the-account", text, None),
            None => self.passes("proofs-come-from-the-account"),
        }
        if is_change {
            let now = merchant.updated_at;
            let changed_at = self.proofs.changed_at.entry(id).or_default();
            changed_at.retain(|at| now.since(*at) < CHANGES_WINDOW);
            changed_at.push(now);
            if changed_at.len() > MAX_CHANGES {
                let text = format!("{id} changed its account {} times in a day", changed_at.len());
                self.violate("accounts-change-rarely", text, None);
            } else {
                self.passes("accounts-change-rarely");
            }
        }
    }

    /// Returns what is wrong with a change of a merchant's account or its proof.
    fn account_flaw(&self, after: &Merchant) -> Option<String> {
        let before = self.merchants.get(&after.id)?;
        let (was, is) = (&before.ownership, &after.ownership);
        if before.hive_account != after.hive_account && was.proof.is_some() {
            let Some(pending) = was.pending.as_ref().filter(|pending| pending.account == after.hive_account) else {
                return Some(format!("{} leaves an account that it has proven for @{}", after.id, after.hive_account));
            };
            let is_due = pending.current.is_some() && pending.new.is_some() && after.updated_at >= pending.effective_at;
            if !is_due || is.pending.is_some() || is.proof.is_none() {
                return Some(format!(
                    "{} changes to @{} at {}: {pending:?}",
                    after.id, after.hive_account, after.updated_at
                ));
            }
        }
        let is_new = is.pending.as_ref().filter(|pending| {
            was.pending
                .as_ref()
                .is_none_or(|known| (known.account, known.requested_at) != (pending.account, pending.requested_at))
        });
        if let Some(pending) = is_new {
            let earliest = pending.requested_at + self.account_change_wait;
            let is_clean =
                pending.current.is_none() && pending.new.is_none() && pending.requested_at == after.updated_at;
            if pending.effective_at != earliest || !is_clean {
                return Some(format!(
                    "a change of {} is requested as {pending:?}, and waits until {earliest}",
                    after.id
                ));
            }
        }
        let proves = [
            (was.proof, is.proof),
            (was.pending.as_ref().and_then(|one| one.current), is.pending.as_ref().and_then(|one| one.current)),
            (was.pending.as_ref().and_then(|one| one.new), is.pending.as_ref().and_then(|one| one.new)),
        ];
        let is_answer = |(was, is): &(Option<Proof>, Option<Proof>)| {
            let given = |proof: &Proof| (proof.method, proof.at);
            is.is_some_and(|is| {
                is.method != VerificationMethod::Operator && was.as_ref().map(given) != Some(given(&is))
            })
        };
        let is_same_account = before.hive_account == after.hive_account;
        if is_same_account && proves.iter().any(is_answer) && is.challenges.len() >= was.challenges.len() {
            return Some(format!("a challenge of {} stays after its response", after.id));
        }
        None
    }

    /// Records that a merchant read unmatched transfers.
    pub fn reads_unmatched(&mut self, merchant: &Merchant, rows: &[Unmatched]) {
        let account = merchant.hive_account;
        let durable = self.merchants.get(&merchant.id);
        let is_owner = has_proven(merchant, &account) || durable.is_some_and(|durable| has_proven(durable, &account));
        let others = rows.iter().find(|kept| kept.transfer.to != account);
        if let Some(kept) = others {
            let text = format!("{} is returned to a merchant of @{account}", kept.transfer.tx_id);
            self.violate("only-owners-read", text, None);
        } else if is_owner {
            self.passes("only-owners-read");
        } else {
            let text = format!("{} reads the transfers of @{account} and has not proven it", merchant.id);
            self.violate("only-owners-read", text, None);
        }
    }

    /// Records that a merchant decided about money of an account; `before` is what [`Proofs::keys`] was when it asked to.
    pub fn decides(&mut self, merchant: MerchantId, account: &AccountName, before: &BTreeMap<AccountName, u32>) {
        let given = self.proofs.given_under.get(&(merchant, *account));
        let mut under = self.proofs.under(account, before);
        if under.any(|keys| given.is_some_and(|given| given.contains(&keys))) {
            self.passes("only-owners-decide");
        } else {
            let text = format!("{merchant} decides about money of @{account} without a proof by its keys");
            self.violate("only-owners-decide", text, None);
        }
    }
}
