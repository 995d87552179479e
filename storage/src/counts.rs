//! How many payments a merchant has in each state, and how many idempotency keys: counted in memory, written once a group.

use crate::{apply::Group, fault::Fault, queries::summary, record::Code, tables::KEYS_COUNT};

impl Group<'_> {
    /// Writes the counts that the group changed.
    pub(crate) fn write_counts(&mut self) -> Result<(), Fault> {
        for (key, change) in std::mem::take(&mut self.counts) {
            let counts = self.tables.payment_counts();
            let before = match counts.pass(counts.get(key))? {
                Some(before) => before.map_or(0, |count| count.value()),
                // The rows it counts are written already.
                None => {
                    counts.insert(key, self.recount(key)?);
                    continue;
                }
            };
            let after = before.checked_add_signed(change).ok_or_else(|| {
                Fault::contradicted("payment_counts", format!("{key:?}"), format!("{before} cannot change by {change}"))
            })?;
            counts.insert(key, after);
        }
        Ok(())
    }

    /// Counts what a damaged row of the counts should say.
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
        let list = self.tables.payments_by_merchant();
        for entry in list.range::<(u128, u128)>((merchant, 0)..=(merchant, u128::MAX))? {
            let (key, bytes) = entry?;
            let (_, id) = key.value();
            let state = list.pass(summary(merchant, id, bytes.value()))?.map(|summary| summary.state.number());
            count += u64::from(state == Some(code));
        }
        Ok(count)
    }
}
