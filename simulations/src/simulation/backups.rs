//! Backups: a snapshot of the store, and the store replaced by it later. What was durable since is lost, and read
//! from the chain again.

use engine::event_list::Epoch;
use storage::{Row, prelude::*};

use super::*;
use crate::observer::Durable;

/// The state of backups.
#[derive(Default)]
pub(super) struct Backups {
    newest: Option<Backup>,
    /// Whether the store is replaced before the next start.
    is_due: bool,
    /// Whether it was replaced before the last start.
    was_restored: bool,
    /// The epochs that the store had, in their order.
    epochs: Vec<Epoch>,
}

/// A copy of the store, with what was durable then.
struct Backup {
    rows: Vec<Row>,
    durable: Durable,
    /// Which master key seals its secrets.
    key: u8,
}

impl Simulation {
    /// Returns whether the store matches what the observer knows.
    fn is_sound_store(&self) -> bool {
        let is_sealed = lock(&self.sealing).previous.is_none();
        is_sealed
            && !self.is_damaged()
            && lock(&self.damaged_log).is_none()
            && self.observe(|observer| observer.unknown_commits.is_empty())
    }

    /// Copies the store, as `backup` does; returns whether it succeeded.
    pub(super) fn back_up(&self) -> bool {
        let Some(store) = self.running_store() else { return false };
        let has_all = self.clients().merchants.len() == self.script.setup.merchants;
        if !has_all || !self.is_sound_store() {
            return false;
        }
        let mut rows = Vec::new();
        self.disk.set_quiet(true);
        let read = store.rows.each_row_inline(&mut |row: Row| rows.push(row));
        self.disk.set_quiet(false);
        if read.is_err() {
            return false;
        }
        let durable = self.observe(|observer| observer.durable());
        lock(&self.backups).newest = Some(Backup { rows, durable, key: lock(&self.sealing).current });
        true
    }

    /// Returns whether there is a backup, and whether it may be restored now.
    pub(super) fn may_restore(&self) -> bool {
        lock(&self.backups).newest.is_some() && !lock(&self.backups).is_due && self.is_sound_store()
    }

    /// Schedules the restore of the newest backup before the next start.
    pub(super) fn restore_later(&self) {
        lock(&self.backups).is_due = true;
    }

    /// Replaces the store by the newest backup if that is due, while no process runs.
    pub(super) fn restore_copy(&self) {
        if !std::mem::take(&mut lock(&self.backups).is_due) {
            return;
        }
        // The restored store has no damage.
        self.disk.set_spare(None);
        lock(&self.armed_faults).disk_full_until = None;
        lock(&self.damaged).clear();
        *lock(&self.damaged_log) = None;
        self.disk.erase();
        self.disk.set_quiet(true);
        let on_incident: Arc<dyn Fn(Incident) + Send + Sync> = Arc::new(|_| {});
        let [database, ..] = self.disk.attach(&on_incident);
        let mut backups = lock(&self.backups);
        let backup = backups.newest.as_ref().expect("it is due only where there is one");
        let restored = storage::restore_backend(database, backup.rows.clone());
        let (durable, key) = (backup.durable.clone(), backup.key);
        backups.was_restored = true;
        drop(backups);
        self.disk.set_quiet(false);
        self.disk.detach();
        *lock(&self.sealing) = Sealing { current: key, previous: None };
        self.observe(|observer| {
            observer.restored(durable);
            if let Err(why) = restored {
                observer.violate("durable-survives-boot", format!("a backup cannot be restored: {why}"), None);
            }
        });
        let known: Vec<PaymentId> = self.observe(|observer| observer.payments.keys().copied().collect());
        self.clients().forget_all_but(&known);
        self.mark("a backup is restored");
        self.event(Source::Disk, "restored", None, 0, || "the store is replaced by a backup of it".to_owned());
    }

    /// Checks that a store begins a new epoch when it was restored, and at no other time.
    pub(super) async fn check_epoch(&self, store: &EmbeddedStore) {
        self.disk.set_quiet(true);
        let epoch = store.epoch().await;
        self.disk.set_quiet(false);
        // An unreadable store or a damaged row shows nothing.
        let Ok(epoch) = epoch else { return };
        let is_right = {
            let mut backups = lock(&self.backups);
            let was_restored = std::mem::take(&mut backups.was_restored);
            let is_known = backups.epochs.contains(&epoch);
            let is_last = backups.epochs.last().is_none_or(|last| *last == epoch);
            backups.epochs.push(epoch);
            epoch != Epoch::PENDING && if was_restored { !is_known } else { is_last }
        };
        self.observe(|observer| {
            if is_right {
                observer.passes("restore-begins-an-epoch");
            } else {
                observer.violate("restore-begins-an-epoch", format!("the epoch of the events is {epoch:?}"), None);
            }
        });
    }
}
