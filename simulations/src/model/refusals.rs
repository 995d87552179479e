//! Commits in the model: why the store must refuse a batch, and that it refuses nothing else.

use engine::{
    compliance::ComplianceChange,
    ids::MerchantId,
    ledger::TxId,
    payment::{Payment, State},
    webhook::{Delivery, DeliveryRecord, DeliveryState},
    x402::{ClaimOutcome, ClaimRecord, Purpose},
};
use storage::{Batch, CommitError, Handling, HoldReason, Write};

use super::{KEY_LIFETIME, StoreModel};
use crate::observer::Observer;

impl Observer {
    /// Checks that a batch was refused for a reason.
    pub(crate) fn refused_commit(&mut self, batch: &Batch, refused: &CommitError) {
        // The content of a damaged row is not known.
        if self.was_damaged || self.has_several_engines {
            return;
        }
        let is_right = match refused {
            // It is not known what of it is written.
            CommitError::Unavailable(_) => true,
            // One engine holds every duty.
            CommitError::Deposed(_) => false,
            CommitError::Conflict { .. } => batch.writes.iter().any(|write| self.is_stale(write, batch)),
            CommitError::Claimed(earlier) => self.is_claimed_by(batch, earlier),
            CommitError::Assigned(payment) => batch.writes.iter().any(|write| match write {
                Write::Claim(claimed) => self.assigned_to(claimed.tx_id) == Some(*payment),
                _ => false,
            }),
            CommitError::Remembered(earlier) => batch.writes.iter().any(|write| match write {
                Write::Remember { remembered, .. } => {
                    let known = self.model.keys.get(&(remembered.merchant, remembered.key));
                    known.is_some_and(|known| *known == **earlier && remembered.at < known.at + KEY_LIFETIME)
                }
                _ => false,
            }),
            CommitError::KeysFull => batch.writes.iter().any(|write| match write {
                Write::Remember { remembered, most } => self.model.keys_of(remembered.merchant) >= *most,
                _ => false,
            }),
            CommitError::OnHold(refusal) => batch.writes.iter().any(|write| match write {
                Write::CheckCompliance(check) => self.compliance_refusal(check) == Some(*refusal),
                _ => false,
            }),
            CommitError::QuotaReached(_) => batch.writes.iter().any(|write| match write {
                Write::Admit { merchant, quota, .. } => {
                    let is_full = quota.open_payments > 0 && self.open_payments(*merchant) >= quota.open_payments;
                    is_full || quota.stored_bytes > 0
                }
                _ => false,
            }),
            CommitError::Overloaded | CommitError::Unknown(_) => true,
        };
        if is_right {
            self.passes("refusals-have-a-reason");
        } else {
            let text = format!("a commit was refused without a reason: {refused}");
            self.violate("refusals-have-a-reason", text, None);
        }
    }

    /// Checks that the store had no reason to refuse a batch that it committed. Called before the batch is added to the model.
    pub(crate) fn accepted_commit(&mut self, batch: &Batch) {
        if self.was_damaged || self.has_several_engines {
            return;
        }
        let flaw = batch.writes.iter().find_map(|write| self.flaw_of(write, batch));
        match flaw {
            Some(text) => self.violate("commits-replace-what-was-read", text, None),
            None => self.passes("commits-replace-what-was-read"),
        }
    }

    fn flaw_of(&self, write: &Write, batch: &Batch) -> Option<String> {
        if self.is_stale(write, batch) {
            return Some(format!("a stale write was committed: {}", name_of(write)));
        }
        match write {
            Write::Claim(claimed) if self.assigned_to(claimed.tx_id).is_some() => {
                Some(format!("{} is assigned to a payment and was claimed", claimed.tx_id))
            }
            Write::Claim(new) => {
                let is_taken = |known: &&ClaimRecord| {
                    let is_same_name =
                        new.nonce == known.nonce || new.identifier.is_some() && new.identifier == known.identifier;
                    new.tx_id == known.tx_id || new.pay_to == known.pay_to && is_same_name
                };
                let kept = self.claims.values().filter(|known| !self.model.deleted_claims.contains(&known.tx_id));
                kept.into_iter().find(is_taken).map(|known| format!("{} is claimed beside {}", new.tx_id, known.tx_id))
            }
            Write::Remember { remembered, .. } => {
                let known = self.model.keys.get(&(remembered.merchant, remembered.key))?;
                let is_kept = known.at >= self.model.keys_from && remembered.at < known.at + KEY_LIFETIME;
                is_kept.then(|| "an idempotency key was used for two requests".to_owned())
            }
            Write::Admit { merchant, quota, .. } => {
                let open = self.open_payments(*merchant);
                let is_full = quota.open_payments > 0 && open >= quota.open_payments;
                is_full.then(|| format!("{merchant} has {open} open payments and created another"))
            }
            _ => None,
        }
    }

    /// Returns whether a write conflicts with what is durable.
    fn is_stale(&self, write: &Write, batch: &Batch) -> bool {
        match write {
            Write::Payment { payment, expected } => {
                let known = self.payments.get(&payment.id).map(|known| &known.payment);
                known.map(|known| known.version) != *expected
            }
            Write::Merchant { merchant, expected } => {
                self.merchants.get(&merchant.id).map(|known| known.version) != *expected
            }
            Write::Transfer { payment, .. } => !batch
                .writes
                .iter()
                .any(|write| matches!(write, Write::Payment { payment: own, .. } if own.id == *payment)),
            Write::Event(record) => self.events.contains_key(&record.id),
            Write::ClaimOutcome { tx_id, expected, .. } => {
                let known = self.known_claim(*tx_id);
                known.is_none_or(|known| known.outcome != *expected)
            }
            Write::Attempt { delivery, .. } | Write::Undeliverable(delivery) => !self.is_delivery_as_seen(delivery),
            Write::Hold { delivery, reason } => {
                let applies = match reason {
                    HoldReason::Disabled => {
                        self.endpoints.get(&delivery.endpoint).is_some_and(|seen| seen.known.disabled.is_some())
                    }
                    HoldReason::NoEndpoint { merchant_version } => {
                        self.merchants.get(&delivery.merchant).map(|known| known.version) == *merchant_version
                    }
                };
                !applies || !self.is_delivery_as_seen(delivery)
            }
            Write::Replay { delivery, .. } => !self.may_be_replayed(delivery),
            Write::Redeliver(delivery) => self.model.deliveries.contains_key(&delivery.id),
            Write::Cursor { expected, .. } => self.cursor != *expected,
            Write::Handle { account, place, .. } => {
                let known = self.model.unmatched.get(&(*account, *place));
                let is_new = batch.writes.iter().any(|write| match write {
                    Write::Unmatched(unmatched) => {
                        (unmatched.transfer.to, unmatched.transfer.position) == (*account, *place)
                    }
                    _ => false,
                });
                let is_assigned = known.is_some_and(|known| matches!(known.handling, Handling::Assigned { .. }));
                is_assigned || (known.is_none() && !is_new)
            }
            Write::ForgetClaims(tx_ids) => tx_ids.iter().any(|tx_id| !self.may_be_deleted(*tx_id)),
            Write::Invoice(invoicing) => {
                let key = (invoicing.period.month, invoicing.period.merchant);
                let known = self.model.periods.get(&key);
                known.is_none_or(|known| {
                    (known.usage, &known.invoice) != (invoicing.period.usage, &invoicing.period.invoice)
                })
            }
            Write::FeeTiers { expected, .. } => self.model.tiers.as_ref().map_or(0, |tiers| tiers.version) != *expected,
            Write::ReceiptKeys { expected, .. } => {
                self.model.receipt_keys.as_ref().map_or(0, |keys| keys.version) != *expected
            }
            Write::Compliance { merchant, change } => {
                let status = self.model.compliance.get(merchant).cloned().unwrap_or_default();
                match change {
                    ComplianceChange::Hold(_) => status.hold.is_some(),
                    ComplianceChange::Clear(_) => status.hold.is_none(),
                    ComplianceChange::Limit { from, .. } => status.limits != *from,
                }
            }
            _ => false,
        }
    }

    fn is_delivery_as_seen(&self, delivery: &Delivery) -> bool {
        let is_as_seen = |known: &DeliveryRecord| {
            known.state == DeliveryState::Pending
                && (known.delivery.attempts, known.delivery.due_at) == (delivery.attempts, delivery.due_at)
        };
        self.model.deliveries.get(&delivery.id).is_some_and(is_as_seen)
    }

    fn may_be_replayed(&self, delivery: &Delivery) -> bool {
        let known = self.model.deliveries.get(&delivery.id);
        known.is_some_and(|known| StoreModel::is_replayable(known) && known.delivery.attempts == delivery.attempts)
    }

    /// Returns a claim that is not deleted.
    pub(crate) fn known_claim(&self, tx_id: TxId) -> Option<&ClaimRecord> {
        self.claims.get(&tx_id).filter(|_| !self.model.deleted_claims.contains(&tx_id))
    }

    /// Returns whether a claim may be deleted: it is decided, and no merchant asked for it.
    fn may_be_deleted(&self, tx_id: TxId) -> bool {
        self.known_claim(tx_id).is_some_and(|claimed| match &claimed.purpose {
            Purpose::Session(_) => false,
            Purpose::Facilitated(sale) => sale.seller.is_none() && claimed.outcome != ClaimOutcome::Open,
        })
    }

    /// Returns whether a claim of a batch, or an assignment in it, has to give way to an earlier claim.
    fn is_claimed_by(&self, batch: &Batch, earlier: &ClaimRecord) -> bool {
        if self.known_claim(earlier.tx_id) != Some(earlier) {
            return false;
        }
        batch.writes.iter().any(|write| match write {
            Write::Claim(new) => {
                let is_same_payee = new.pay_to == earlier.pay_to;
                let is_same_name =
                    new.nonce == earlier.nonce || new.identifier.is_some() && new.identifier == earlier.identifier;
                new.tx_id == earlier.tx_id || (is_same_payee && is_same_name)
            }
            Write::Handle { account, place, handling: Handling::Assigned { .. } } => {
                let kept = self.model.unmatched.get(&(*account, *place));
                kept.is_some_and(|kept| kept.transfer.tx_id == earlier.tx_id) && earlier.sale().is_some()
            }
            _ => false,
        })
    }

    /// Returns the payment that a transfer of a transaction is assigned to.
    fn assigned_to(&self, tx_id: TxId) -> Option<engine::ids::PaymentId> {
        self.model.unmatched.values().filter(|kept| kept.transfer.tx_id == tx_id).find_map(|kept| match kept.handling {
            Handling::Assigned { payment, .. } => Some(payment),
            _ => None,
        })
    }

    /// Returns how many payments of a merchant are pending or processing.
    fn open_payments(&self, merchant: MerchantId) -> u64 {
        let is_open = |payment: &&Payment| {
            payment.merchant == merchant && matches!(payment.state, State::Pending | State::Processing)
        };
        self.payments.values().map(|known| &*known.payment).filter(is_open).count() as u64
    }
}

impl StoreModel {
    /// Returns how many idempotency keys a merchant may have, including those that may be deleted.
    fn keys_of(&self, merchant: MerchantId) -> u64 {
        self.keys.range((merchant, [0; 32])..=(merchant, [u8::MAX; 32])).count() as u64
    }
}

/// Names a write in a violation, without its values: they may be secrets.
fn name_of(write: &Write) -> &'static str {
    match write {
        Write::Payment { .. } => "a payment",
        Write::Merchant { .. } => "a merchant",
        Write::Transfer { .. } => "a transfer",
        Write::Event(_) => "an event",
        Write::Claim(_) | Write::ClaimOutcome { .. } | Write::ForgetClaims(_) => "a claim",
        Write::Attempt { .. } | Write::Hold { .. } | Write::Undeliverable(_) | Write::Replay { .. } => "a delivery",
        Write::Redeliver(_) => "a redelivery",
        Write::Cursor { .. } => "the cursor",
        Write::Handle { .. } => "an unmatched transfer",
        Write::Invoice(_) => "an invoice",
        Write::FeeTiers { .. } => "the fee tiers",
        Write::ReceiptKeys { .. } => "the receipt keys",
        Write::Compliance { .. } => "a compliance status",
        _ => "another row",
    }
}
