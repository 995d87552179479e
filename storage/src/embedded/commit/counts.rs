//! Counts of a merchant's payments by state, of the bytes of its payments and of its idempotency keys: accumulated in
//! memory, written once per group.

use engine::{
    ids::{MerchantId, PaymentId},
    payment::State,
    quota::{Quota, Usage},
};

use crate::{
    batch::CommitError,
    embedded::{
        commit::group::{Checked, Group, Overlay},
        fault::Fault,
        read::listed::{self, Facets},
        tables::{BYTES_COUNT, KEYS_COUNT},
    },
    record::codes::Code,
};

impl Group<'_> {
    /// Writes the changed counts.
    pub(crate) fn write_counts(&mut self) -> Result<(), Fault> {
        for (key, change) in std::mem::take(&mut self.counts) {
            let counts = self.tables.payment_counts();
            let before = match counts.skip_damaged(counts.get(key))? {
                Some(before) => before.map_or(0, |count| count.value()),
                // The counted rows were written before.
                None => {
                    counts.insert(key, self.recount(key)?);
                    continue;
                }
            };
            let after = before.checked_add_signed(change).ok_or_else(|| {
                Fault::inconsistent("payment_counts", format!("{key:?}"), format!("{before} cannot change by {change}"))
            })?;
            counts.insert(key, after);
        }
        Ok(())
    }

    /// Returns a count, including the changes of the group.
    pub(crate) fn counted(&self, key: (u128, u32)) -> Result<u64, Fault> {
        let counts = self.tables.payment_counts();
        let stored = match counts.skip_damaged(counts.get(key))? {
            Some(stored) => stored.map_or(0, |count| count.value()),
            None => self.recount(key)?,
        };
        Ok(stored.saturating_add_signed(self.counts.get(&key).copied().unwrap_or(0)))
    }

    /// Checks a new payment against its merchant's quota and everything committed before it.
    pub(crate) fn check_quota(
        &self,
        payment: PaymentId,
        merchant: MerchantId,
        quota: Quota,
        overlay: &Overlay,
    ) -> Checked {
        let counted = |code| self.counted((merchant.bits(), code));
        let usage = Usage {
            open_payments: counted(State::Pending.number())?.saturating_add(counted(State::Processing.number())?),
            stored_bytes: counted(BYTES_COUNT)?,
        };
        let bytes = overlay.payments.get(&payment.bits()).map_or(0, |facts| facts.bytes);
        Ok(quota.check(usage, bytes).map_err(CommitError::QuotaReached))
    }

    /// Counts the rows again, in place of a damaged count.
    pub(crate) fn recount(&self, (merchant, code): (u128, u32)) -> Result<u64, Fault> {
        let mut count = 0;
        if code == KEYS_COUNT {
            let keys = self.tables.idempotency();
            for entry in keys.range((merchant, &[0; 32])..=(merchant, &[u8::MAX; 32]))? {
                entry?;
                count += 1;
            }
            return Ok(count);
        }
        for listed in listed::newest(self.tables.snapshot(), merchant, Facets::ALL, listed::ANY_ID)? {
            let (id, summary) = listed?;
            if code == BYTES_COUNT {
                let payments = self.tables.payments();
                let record = payments.get_intact(id)?;
                count += record.map_or(0, |bytes| bytes.value().len() as u64);
                continue;
            }
            count += u64::from(summary.state.number() == code);
        }
        Ok(count)
    }
}
