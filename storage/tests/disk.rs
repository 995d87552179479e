//! Simulated disks: one that fails at the n-th operation, one whose syncs wait at a gate.

use std::{
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard},
    time::Duration,
};

use redb::{StorageBackend, backends::InMemoryBackend};
use storage::{CommitMode, EmbeddedStore, OpenError, Options, Vault};

use crate::samples::INLINE;

const SECTOR_LEN: usize = 512;

/// The fault, and the operation at which it occurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Power loss: this operation and all later ones fail.
    PowerCut {
        at: u64,
    },
    /// This operation fails, later ones succeed.
    Error {
        at: u64,
    },
    None,
}

/// A disk with the files of a store. A power loss discards data that is not synced.
#[derive(Debug, Clone)]
pub(crate) struct Disk(Arc<Mutex<State>>);

/// The content of the files: the database and the two segments of the log.
pub(crate) type Image = [Vec<u8>; 3];

/// One of the files.
#[derive(Debug)]
struct File {
    disk: Disk,
    index: usize,
}

#[derive(Debug)]
struct State {
    files: [Contents; 3],
    operations: u64,
    trouble: Trouble,
}

#[derive(Debug)]
struct Contents {
    /// The content that the process sees.
    live: Vec<u8>,
    /// The content that survives a power loss.
    durable: Vec<u8>,
    /// Changes that may survive a power loss, in part.
    pending: Vec<Change>,
}

#[derive(Debug)]
enum Change {
    Write(usize, Vec<u8>),
    Length(usize),
}

impl Disk {
    pub(crate) fn new(trouble: Trouble) -> Self {
        Self::of(Image::default(), trouble)
    }

    pub(crate) fn of(image: Image, trouble: Trouble) -> Self {
        let files = image.map(|bytes| Contents { live: bytes.clone(), durable: bytes, pending: Vec::new() });
        Self(Arc::new(Mutex::new(State { files, operations: 0, trouble })))
    }

    pub(crate) fn open(&self) -> Result<EmbeddedStore, OpenError> {
        self.open_with(INLINE)
    }

    pub(crate) fn open_with(&self, options: Options) -> Result<EmbeddedStore, OpenError> {
        let [database, logs @ ..] = [0, 1, 2].map(|index| File { disk: self.clone(), index });
        EmbeddedStore::open_backends(database, logs, options, Vault::default())
    }

    pub(crate) fn operations(&self) -> u64 {
        self.state().operations
    }

    /// Returns the content that the process saw last, as after the death of the process only.
    pub(crate) fn seen(&self) -> Image {
        self.state().files.each_ref().map(|file| file.live.clone())
    }

    /// Returns the content after a power loss: what was synced, and some sectors of the rest, as the seed determines.
    /// Seed 0 discards all of the rest, seed 1 keeps all of it, others keep some sectors and tear some writes.
    pub(crate) fn after_power_cut(&self, seed: u64) -> Image {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        self.state().files.each_ref().map(|file| file.after_power_cut(seed, &mut random))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn operate<T>(&self, operation: impl FnOnce(&mut State) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.state();
        state.operations += 1;
        let fails = match state.trouble {
            Trouble::PowerCut { at } => state.operations >= at,
            Trouble::Error { at } => state.operations == at,
            Trouble::None => false,
        };
        if fails { Err(io::Error::other("the disk failed")) } else { operation(&mut state) }
    }
}

impl Contents {
    fn after_power_cut(&self, seed: u64, random: &mut Random) -> Vec<u8> {
        let mut image = self.durable.clone();
        for change in &self.pending {
            match change {
                Change::Length(length) => {
                    if seed == 1 || (seed > 1 && random.below(2) == 0) {
                        image.resize(*length, 0);
                    }
                }
                Change::Write(offset, data) => {
                    let mut at = *offset;
                    let end = offset + data.len();
                    while at < end {
                        let sector_end = ((at / SECTOR_LEN + 1) * SECTOR_LEN).min(end);
                        let kept = match seed {
                            0 => at,
                            1 => sector_end,
                            _ => match random.below(8) {
                                0..4 => sector_end,
                                4 => at + usize::try_from(random.below((sector_end - at) as u64)).unwrap(),
                                _ => at,
                            },
                        };
                        if kept > at {
                            image.resize(image.len().max(kept), 0);
                            image[at..kept].copy_from_slice(&data[at - offset..kept - offset]);
                        }
                        at = sector_end;
                    }
                }
            }
        }
        image
    }
}

impl File {
    fn operate<T>(&self, operation: impl FnOnce(&mut Contents) -> io::Result<T>) -> io::Result<T> {
        self.disk.operate(|state| operation(&mut state.files[self.index]))
    }
}

impl StorageBackend for File {
    fn len(&self) -> io::Result<u64> {
        self.operate(|file| Ok(file.live.len() as u64))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.operate(|file| {
            let offset = usize::try_from(offset).unwrap();
            let bytes = file.live.get(offset..offset + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
            out.copy_from_slice(bytes);
            Ok(())
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.operate(|file| {
            let len = usize::try_from(len).unwrap();
            file.live.resize(len, 0);
            file.pending.push(Change::Length(len));
            Ok(())
        })
    }

    fn sync_data(&self) -> io::Result<()> {
        self.operate(|file| {
            file.durable = file.live.clone();
            file.pending.clear();
            Ok(())
        })
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.operate(|file| {
            let offset = usize::try_from(offset).unwrap();
            let end = offset + data.len();
            if end > file.live.len() {
                file.live.resize(end, 0);
            }
            file.live[offset..end].copy_from_slice(data);
            file.pending.push(Change::Write(offset, data.to_vec()));
            Ok(())
        })
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit.max(1)
    }
}

/// A gate at which every sync of a store can be blocked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<GateState>, Condvar)>);

#[derive(Debug, Default)]
struct GateState {
    is_blocked: bool,
    syncs_fail: bool,
    waiting: usize,
    syncs: usize,
    last_thread: String,
}

impl Gate {
    /// Opens a store whose syncs pass the gate, with a writer thread and a queue of `queue` batches.
    pub(crate) fn open(&self, queue: usize) -> EmbeddedStore {
        let options = Options { mode: CommitMode::Thread { queue }, ..Options::default() };
        self.open_before(self, options)
    }

    /// Opens a store whose database is behind this gate, and whose log is behind another one.
    pub(crate) fn open_before(&self, log: &Self, options: Options) -> EmbeddedStore {
        let behind = |gate: &Self| Gated { memory: InMemoryBackend::new(), gate: gate.clone() };
        EmbeddedStore::open_backends(behind(self), [behind(log), behind(log)], options, Vault::default()).unwrap()
    }

    pub(crate) fn block(&self) {
        self.state().is_blocked = true;
    }

    pub(crate) fn unblock(&self) {
        self.state().is_blocked = false;
        self.0.1.notify_all();
    }

    /// Unblocks all syncs and makes every sync fail from now on.
    pub(crate) fn fail_syncs(&self) {
        self.state().syncs_fail = true;
        self.unblock();
    }

    /// Waits until a sync is blocked.
    pub(crate) async fn sync_is_blocked(&self) {
        let waits = async {
            while !self.has_blocked_sync() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), waits).await.expect("a sync reaches the gate");
    }

    /// Returns whether a sync is blocked.
    pub(crate) fn has_blocked_sync(&self) -> bool {
        self.state().waiting > 0
    }

    pub(crate) fn syncs(&self) -> usize {
        self.state().syncs
    }

    /// Returns the name of the thread of the last sync.
    pub(crate) fn last_thread(&self) -> String {
        self.state().last_thread.clone()
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        self.0.0.lock().unwrap()
    }

    fn pass(&self) -> io::Result<()> {
        let mut state = self.state();
        state.waiting += 1;
        let limit = Duration::from_secs(20);
        let (mut state, waited) = self.0.1.wait_timeout_while(state, limit, |state| state.is_blocked).unwrap();
        state.waiting -= 1;
        state.syncs += 1;
        state.last_thread = std::thread::current().name().unwrap_or_default().to_owned();
        if state.syncs_fail || waited.timed_out() { Err(io::Error::other("the disk failed")) } else { Ok(()) }
    }
}

#[derive(Debug)]
struct Gated {
    memory: InMemoryBackend,
    gate: Gate,
}

impl StorageBackend for Gated {
    fn len(&self) -> io::Result<u64> {
        self.memory.len()
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.memory.read(offset, out)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.memory.set_len(len)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.gate.pass()
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.memory.write(offset, data)
    }
}
