//! Idempotency keys: insertion within a limit, and pruning.

use engine::{
    idempotency::{self, IdempotencyRecord, Refusal},
    time::Timestamp,
};

use crate::{
    batch::CommitError,
    embedded::{
        commit::group::{Checked, Group, Overlay},
        fault::Fault,
        tables::KEYS_COUNT,
    },
    record,
};

/// Maximum number of idempotency keys that one commit deletes.
const MAX_DELETED_KEYS: usize = 1_000;

impl Group<'_> {
    pub(crate) fn check_remember(
        &mut self,
        new: &IdempotencyRecord,
        most: u64,
        before: &mut Option<IdempotencyRecord>,
        overlay: &mut Overlay,
    ) -> Checked {
        let key = (new.merchant.bits(), new.key);
        // A key that an earlier step deletes can be used again, unless a step after that stores it.
        let (stored, is_kept) = match overlay.remembered.get(&key) {
            Some(remembered) => (Some(*remembered), !overlay.deleted_keys.contains(&key)),
            None => match self.tables.idempotency().get((key.0, &key.1))? {
                Some(bytes) => {
                    let stored = record::idempotency_from_bytes(new.merchant, new.key, bytes.value())
                        .map_err(Fault::damaged("idempotency", new.merchant))?;
                    (Some(stored), stored.at >= overlay.keys_deleted_before)
                }
                None => (None, false),
            },
        };
        let count = || self.counted((key.0, KEYS_COUNT));
        match idempotency::admit(stored.as_ref(), is_kept, new.at, most, count)? {
            Ok(()) => {}
            Err(Refusal::Repeated(stored)) => return Ok(Err(CommitError::Remembered(stored))),
            Err(Refusal::Full) => return Ok(Err(CommitError::KeysFull)),
        }
        *before = stored;
        overlay.remembered.insert(key, *new);
        overlay.deleted_keys.remove(&key);
        Ok(Ok(()))
    }

    pub(crate) fn write_remembered(
        &mut self,
        new: &IdempotencyRecord,
        before: Option<IdempotencyRecord>,
    ) -> Result<(), Fault> {
        let merchant = new.merchant.bits();
        self.tables.idempotency().insert((merchant, &new.key), record::idempotency_to_bytes(new).as_slice());
        let times = self.tables.idempotency_times();
        // An earlier step of the batch may have deleted and subtracted it.
        let mut is_replaced = false;
        if let Some(before) = before {
            let place = (before.at.millis(), merchant, &new.key);
            is_replaced = times.has(place)?;
            times.remove(place)?;
        }
        times.insert((new.at.millis(), merchant, &new.key), ());
        if !is_replaced {
            *self.counts.entry((merchant, KEYS_COUNT)).or_default() += 1;
        }
        Ok(())
    }

    pub(crate) fn forget(&mut self, made_before: Timestamp) -> Result<(), Fault> {
        let end = (made_before.millis(), 0, &[0; 32]);
        let mut old = Vec::new();
        for entry in self.tables.idempotency_times().range(..end)?.take(MAX_DELETED_KEYS) {
            let (entry, _) = entry?;
            let (millis, merchant, key) = entry.value();
            old.push((millis, merchant, *key));
        }
        for (millis, merchant, key) in old {
            self.tables.idempotency_times().remove((millis, merchant, &key))?;
            self.tables.idempotency().remove((merchant, &key))?;
            *self.counts.entry((merchant, KEYS_COUNT)).or_default() -= 1;
        }
        Ok(())
    }
}
