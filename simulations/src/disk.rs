//! A disk in memory under the real redb and its log: it loses unsynced writes, tears sectors, fails, fills up, and loses power
//! at any operation.

use std::{
    fmt, io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use redb::StorageBackend;

use crate::random::Random;

const SECTOR_LEN: usize = 512;

/// How often a disk fails, in parts per million of its operations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskFaults {
    /// A read fails.
    pub read_error: u32,
    /// A write fails.
    pub write_error: u32,
    /// A sync fails; its writes may be durable or not.
    pub sync_error: u32,
    /// Power is lost at this operation.
    pub power_cut: u32,
}

/// An incident that the disk injected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Incident {
    /// An operation failed.
    Error(&'static str),
    /// The disk was full.
    Full,
    /// Power was lost.
    PowerCut,
}

/// A disk. Handles become invalid with the process that holds them; the bytes stay.
#[derive(Clone)]
pub struct SimDisk(Arc<Mutex<State>>);

/// A process's handle of one file of the disk.
pub struct Handle {
    disk: SimDisk,
    file: usize,
    boot: u64,
    on_incident: Arc<dyn Fn(Incident) + Send + Sync>,
}

struct State {
    /// The database and the two of its log.
    files: [File; 3],
    /// Which process may use it.
    boot: u64,
    operations: u64,
    syncs: u64,
    faults: DiskFaults,
    is_quiet: bool,
    /// Bytes it may grow to.
    capacity: u64,
    cut_in: Option<u64>,
    fail_in: Option<u64>,
    fail_read_in: Option<u64>,
    random: Random,
}

#[derive(Default)]
struct File {
    bytes: Vec<u8>,
    /// The undo log of unsynced changes, oldest first.
    undo: Vec<Undo>,
    /// What they replaced.
    replaced: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
enum Undo {
    /// `replaced[from..from + len]` was at `offset`.
    Write { offset: usize, len: usize, from: usize },
    /// The length was `before`; the last `gone` bytes of it are `replaced[from..from + gone]`.
    Length { before: usize, gone: usize, from: usize },
}

impl SimDisk {
    /// Returns an empty disk.
    #[must_use]
    pub fn new(random: Random) -> Self {
        Self(Arc::new(Mutex::new(State {
            files: Default::default(),
            boot: 0,
            operations: 0,
            syncs: 0,
            faults: DiskFaults::default(),
            is_quiet: false,
            capacity: u64::MAX,
            cut_in: None,
            fail_in: None,
            fail_read_in: None,
            random,
        })))
    }

    /// Gives the disk's files, the database and the two of its log, to a new process; earlier handles become invalid.
    /// `on_incident` is called for every injected error.
    #[must_use]
    pub fn attach(&self, on_incident: &Arc<dyn Fn(Incident) + Send + Sync>) -> [Handle; 3] {
        let mut state = self.state();
        state.boot += 1;
        [0, 1, 2].map(|file| Handle {
            disk: self.clone(),
            file,
            boot: state.boot,
            on_incident: Arc::clone(on_incident),
        })
    }

    /// Invalidates the handles of the process that holds the disk: their operations fail and change nothing.
    pub fn detach(&self) {
        self.state().boot += 1;
    }

    /// Loses part of what was not synced: each sector of each unsynced write is kept, lost or torn. Returns whether a
    /// sector was torn.
    pub fn lose_unsynced(&self) -> bool {
        let mut state = self.state();
        let State { files, random, .. } = &mut *state;
        let mut torn = false;
        for file in files {
            torn |= file.lose_unsynced(random);
        }
        torn
    }

    /// Returns whether something waits to be synced.
    #[must_use]
    pub fn has_unsynced(&self) -> bool {
        self.state().files.iter().any(|file| !file.undo.is_empty())
    }

    /// Sets how often it fails.
    pub fn set_faults(&self, faults: DiskFaults) {
        self.state().faults = faults;
    }

    /// Returns whether a file holds these bytes: 0 is the database, 1 and 2 are its log.
    #[must_use]
    pub fn has(&self, file: usize, bytes: &[u8]) -> bool {
        memchr::memmem::find(&self.state().files[file].bytes, bytes).is_some()
    }

    /// Replaces bytes by others of the same length wherever a file contains them, as a defect of the disk would.
    pub fn replace(&self, file: usize, bytes: &[u8], others: &[u8]) {
        let file = &mut self.state().files[file].bytes;
        let places: Vec<_> = memchr::memmem::find_iter(file, bytes).collect();
        for place in places {
            file[place..place + others.len()].copy_from_slice(others);
        }
    }

    /// Empties it.
    pub fn erase(&self) {
        self.state().files = Default::default();
    }

    /// Suspends faults while an observer reads, or resumes them.
    pub fn set_quiet(&self, is_quiet: bool) {
        self.state().is_quiet = is_quiet;
    }

    /// Limits its growth to `spare` bytes; none for no limit.
    pub fn set_spare(&self, spare: Option<u64>) {
        let mut state = self.state();
        state.capacity = spare.map_or(u64::MAX, |spare| state.used() + spare);
    }

    /// Loses power at the `n`th write or sync from now.
    pub fn cut_in(&self, n: u64) {
        self.state().cut_in = Some(n.max(1));
    }

    /// Makes the `n`th operation from now fail.
    pub fn fail_in(&self, n: u64) {
        self.state().fail_in = Some(n.max(1));
    }

    /// Makes the `n`th read from now fail.
    pub fn fail_read_in(&self, n: u64) {
        self.state().fail_read_in = Some(n.max(1));
    }

    /// Clears the faults that are scheduled for an operation.
    pub fn disarm(&self) {
        let mut state = self.state();
        (state.cut_in, state.fail_in, state.fail_read_in) = (None, None, None);
    }

    /// Returns the numbers of operations and syncs.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        let state = self.state();
        (state.operations, state.syncs)
    }

    /// Returns a digest of its bytes, and their number.
    #[must_use]
    pub fn digest(&self) -> (u64, u64) {
        let state = self.state();
        let digests = state.files.each_ref().map(|file| crate::trace::digest(&file.bytes));
        (digests.into_iter().fold(0, |all, file| all.rotate_left(1) ^ file), state.used())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("boot", &self.boot).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Sync,
}

impl Handle {
    fn operate<T>(&self, kind: Kind, operation: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.disk.state();
        if state.boot != self.boot {
            return Err(io::Error::other("the process was killed"));
        }
        state.operations += 1;
        if state.is_quiet {
            return operation(&mut state);
        }
        let incident = state.incident(kind);
        match incident {
            None => {}
            Some(Incident::PowerCut) => {
                state.boot += 1;
                drop(state);
                (self.on_incident)(Incident::PowerCut);
                return Err(io::Error::other("power was lost"));
            }
            Some(incident) => {
                // A failed sync may have synced: the bytes stay unsynced here, and a cut decides.
                drop(state);
                (self.on_incident)(incident);
                return Err(io::Error::other("input/output error"));
            }
        }
        let outcome = operation(&mut state);
        drop(state);
        if outcome.as_ref().err().is_some_and(|error| error.kind() == io::ErrorKind::StorageFull) {
            (self.on_incident)(Incident::Full);
        }
        outcome
    }
}

impl State {
    fn incident(&mut self, kind: Kind) -> Option<Incident> {
        if let Some(left) = &mut self.fail_in {
            *left -= 1;
            if *left == 0 {
                self.fail_in = None;
                return Some(Incident::Error("error at a chosen operation"));
            }
        }
        if kind == Kind::Read
            && let Some(left) = &mut self.fail_read_in
        {
            *left -= 1;
            if *left == 0 {
                self.fail_read_in = None;
                return Some(Incident::Error("error at a chosen read"));
            }
        }
        if kind != Kind::Read
            && let Some(left) = &mut self.cut_in
        {
            *left -= 1;
            if *left == 0 {
                self.cut_in = None;
                return Some(Incident::PowerCut);
            }
        }
        let (rate, what) = match kind {
            Kind::Read => (self.faults.read_error, "read error"),
            Kind::Write => (self.faults.write_error, "write error"),
            Kind::Sync => (self.faults.sync_error, "sync error"),
        };
        if self.random.chance(rate) {
            return Some(Incident::Error(what));
        }
        (kind != Kind::Read && self.random.chance(self.faults.power_cut)).then_some(Incident::PowerCut)
    }

    /// Returns the total size of its files, bytes.
    fn used(&self) -> u64 {
        self.files.iter().map(|file| file.bytes.len() as u64).sum()
    }

    fn space_for(&self, file: usize, end: usize) -> io::Result<()> {
        let growth = end.saturating_sub(self.files[file].bytes.len());
        if growth > 0 && self.used() + growth as u64 > self.capacity {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "no space left on device"));
        }
        Ok(())
    }

    fn resize(&mut self, file: usize, len: usize) -> io::Result<()> {
        self.space_for(file, len)?;
        let File { bytes, undo, replaced } = &mut self.files[file];
        let (before, from) = (bytes.len(), replaced.len());
        // What is cut off is kept, so that a power cut may bring it back.
        replaced.extend_from_slice(bytes.get(len..).unwrap_or_default());
        undo.push(Undo::Length { before, gone: before.saturating_sub(len), from });
        if len > bytes.capacity() {
            // Unused capacity costs less than a reallocation.
            bytes.reserve_exact(4 * len - before);
        }
        bytes.resize(len, 0);
        Ok(())
    }
}

impl File {
    /// Keeps, loses or tears each sector of each unsynced write; returns whether one was torn.
    fn lose_unsynced(&mut self, random: &mut Random) -> bool {
        let undo = std::mem::take(&mut self.undo);
        let mut redo = Vec::with_capacity(undo.len());
        for step in undo.iter().rev() {
            match *step {
                Undo::Write { offset, len, from } => {
                    let end = (offset + len).min(self.bytes.len());
                    let start = offset.min(end);
                    redo.push((offset, Some(self.bytes[start..end].to_vec()), 0));
                    self.bytes[start..end].copy_from_slice(&self.replaced[from..from + (end - start)]);
                }
                Undo::Length { before, gone, from } => {
                    redo.push((0, None, self.bytes.len()));
                    self.bytes.resize(before, 0);
                    self.bytes[before - gone..].copy_from_slice(&self.replaced[from..from + gone]);
                }
            }
        }
        self.replaced.clear();
        // All, nothing, or a bit of each: whole outcomes are as real as torn ones.
        let manner = random.below(4);
        let mut torn = false;
        for (offset, data, len) in redo.into_iter().rev() {
            let Some(data) = data else {
                if manner == 0 || (manner > 1 && random.below(2) == 0) {
                    self.bytes.resize(len, 0);
                }
                continue;
            };
            let (mut at, end) = (offset, offset + data.len());
            while at < end {
                let sector_end = ((at / SECTOR_LEN + 1) * SECTOR_LEN).min(end);
                let kept = match manner {
                    0 => sector_end,
                    1 => at,
                    _ => match random.below(8) {
                        0..4 => sector_end,
                        4 => {
                            torn = true;
                            at + random.index(sector_end - at)
                        }
                        _ => at,
                    },
                };
                if kept > at {
                    if self.bytes.len() < kept {
                        self.bytes.resize(kept, 0);
                    }
                    self.bytes[at..kept].copy_from_slice(&data[at - offset..kept - offset]);
                }
                at = sector_end;
            }
        }
        torn
    }
}

fn place(offset: u64) -> io::Result<usize> {
    usize::try_from(offset).map_err(io::Error::other)
}

impl StorageBackend for Handle {
    fn len(&self) -> io::Result<u64> {
        self.operate(Kind::Read, |state| Ok(state.files[self.file].bytes.len() as u64))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.operate(Kind::Read, |state| {
            let offset = place(offset)?;
            let bytes =
                state.files[self.file].bytes.get(offset..offset + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
            out.copy_from_slice(bytes);
            Ok(())
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.operate(Kind::Write, |state| state.resize(self.file, place(len)?))
    }

    fn sync_data(&self) -> io::Result<()> {
        self.operate(Kind::Sync, |state| {
            let file = &mut state.files[self.file];
            file.undo.clear();
            file.replaced.clear();
            state.syncs += 1;
            Ok(())
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.operate(Kind::Write, |state| {
            let offset = place(offset)?;
            let end = offset + data.len();
            if end > state.files[self.file].bytes.len() {
                state.resize(self.file, end)?;
            }
            let File { bytes, undo, replaced } = &mut state.files[self.file];
            undo.push(Undo::Write { offset, len: data.len(), from: replaced.len() });
            replaced.extend_from_slice(&bytes[offset..end]);
            bytes[offset..end].copy_from_slice(data);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(disk: &SimDisk) -> Vec<u8> {
        disk.state().files[0].bytes.clone()
    }

    #[test]
    fn what_was_synced_survives_every_power_cut() {
        for seed in 0..50 {
            let disk = SimDisk::new(Random::new(seed));
            let [handle, ..] = disk.attach(&(Arc::new(|_| {}) as Arc<dyn Fn(Incident) + Send + Sync>));
            handle.set_len(2_000).unwrap();
            handle.write(0, &[1; 2_000]).unwrap();
            handle.sync_data().unwrap();
            handle.write(500, &[2; 1_000]).unwrap();
            handle.set_len(3_000).unwrap();
            handle.write(2_500, &[3; 100]).unwrap();
            disk.detach();
            assert!(handle.write(0, &[9; 10]).is_err(), "a killed process writes nothing");
            disk.lose_unsynced();
            let left = bytes(&disk);
            assert!(left.len() >= 2_000);
            assert!(left[..500].iter().all(|byte| *byte == 1) && left[1_500..2_000].iter().all(|byte| *byte == 1));
            assert!(left[500..1_500].iter().all(|byte| matches!(byte, 1 | 2)), "old or new, nothing else");
        }
    }

    #[test]
    fn the_power_goes_at_the_chosen_operation() {
        let disk = SimDisk::new(Random::new(1));
        let cut = Arc::new(Mutex::new(Vec::new()));
        let incidents = Arc::clone(&cut);
        let on_incident: Arc<dyn Fn(Incident) + Send + Sync> =
            Arc::new(move |incident| incidents.lock().unwrap().push(incident));
        let [handle, ..] = disk.attach(&on_incident);
        disk.cut_in(3);
        handle.set_len(10).unwrap();
        handle.write(0, &[1; 10]).unwrap();
        assert!(handle.sync_data().is_err());
        assert_eq!(*cut.lock().unwrap(), [Incident::PowerCut]);
        assert!(handle.len().is_err());
    }

    #[test]
    fn a_full_disk_takes_changes_and_no_growth() {
        let disk = SimDisk::new(Random::new(1));
        let [handle, ..] = disk.attach(&(Arc::new(|_| {}) as Arc<dyn Fn(Incident) + Send + Sync>));
        handle.set_len(100).unwrap();
        disk.set_spare(Some(50));
        assert_eq!(handle.set_len(151).unwrap_err().kind(), io::ErrorKind::StorageFull);
        handle.set_len(150).unwrap();
        handle.write(0, &[1; 150]).unwrap();
    }
}
