//! A segment of the write-ahead log: one of its two files.

use engine::mutant;
use redb::StorageBackend;

use crate::embedded::fault::Fault;

/// Growth of a segment, bytes. A sync that also stores a new file length takes longer, so segments grow rarely.
const GROWTH: u64 = 64 * 1024;

/// A file to which entries are appended.
#[derive(Debug)]
pub(super) struct Segment {
    backend: Box<dyn StorageBackend>,
    /// The length, bytes.
    length: u64,
}

impl Segment {
    pub(super) fn of(backend: Box<dyn StorageBackend>) -> Result<Self, Fault> {
        let length = backend.len()?;
        Ok(Self { backend, length })
    }

    /// Returns whether it is empty.
    pub(super) const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns its content.
    pub(super) fn read(&self) -> Result<Vec<u8>, Fault> {
        let mut bytes = vec![0; usize::try_from(self.length).map_err(std::io::Error::other)?];
        self.backend.read(0, &mut bytes)?;
        Ok(bytes)
    }

    /// Writes an entry and syncs the file.
    pub(super) fn write(&mut self, offset: u64, entry: &[u8]) -> Result<(), Fault> {
        let end = offset + entry.len() as u64;
        if end > self.length {
            let longer = end.next_multiple_of(GROWTH);
            self.backend.set_len(longer)?;
            // Zeros allocate the blocks: a sync of allocated blocks needs no metadata.
            let zeros = vec![0; usize::try_from(longer - self.length).map_err(std::io::Error::other)?];
            self.backend.write(self.length, &zeros)?;
            self.length = longer;
        }
        self.backend.write(offset, entry)?;
        if !mutant!("commit-not-synced") {
            self.backend.sync_data()?;
        }
        Ok(())
    }

    /// Truncates the file to zero length, durably.
    pub(super) fn clear(&mut self) -> Result<(), Fault> {
        self.backend.set_len(0)?;
        self.backend.sync_data()?;
        self.length = 0;
        Ok(())
    }
}
