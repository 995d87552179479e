//! The state file: one JSON record a line, on disk before any response shows the block. Readable by its owner only,
//! because the seed of all keys is in it.
//!
//! A kill may tear the last line; the next start truncates that line, since no response had shown it.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use engine::{account::AccountName, hive::ChainId, money::HivePrice, time::Timestamp};
use serde::{Deserialize, Serialize};
use tracing::warn;

use crate::ledger::{Chain, Genesis, GenesisAccount, Record, ReplayError};

/// The content of the first line.
const FORMAT: &str = "hivetill dev ledger 1";

/// Why a state file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The disk failed.
    #[error("the state file {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Another process has it.
    #[error("the state file {} is in use by another process", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// It is not a state file of the dev ledger.
    #[error("{} is not a state file of the dev ledger, or of another version", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// A line before the last cannot be parsed.
    #[error("line {line} of the state file {} cannot be parsed", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// A record does not fit the chain before it.
    #[error("line {line} of the state file {}: {source}", path.display())]
    Replay {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// Why not.
        source: ReplayError,
    },
}

/// The first line: what the chain begins with.
#[derive(Serialize, Deserialize)]
struct Founding {
    format: String,
    chain_id: String,
    seconds: u64,
    seed: String,
    accounts: Vec<(String, u64, u64)>,
    price: HivePrice,
}

/// An open state file, locked for this process.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    path: PathBuf,
}

/// A process that was forked meanwhile holds the file, too, until it calls `exec`: closing alone would
/// leave the lock to it.
impl Drop for Journal {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

impl Journal {
    /// Opens the file and replays it, or begins one.
    pub(super) fn open(path: &Path, genesis: &Genesis) -> Result<(Self, Genesis, Chain), JournalError> {
        let fail = |source| JournalError::Io { path: path.to_owned(), source };
        let mut options = OpenOptions::new();
        let mut file =
            options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path).map_err(fail)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(JournalError::Locked { path: path.to_owned() }),
            Err(TryLockError::Error(source)) => return Err(fail(source)),
        }
        file.set_permissions(std::fs::Permissions::from_mode(0o600)).map_err(fail)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(fail)?;
        let mut journal = Self { file, path: path.to_owned() };
        // A kill before the first line was whole leaves nothing to keep.
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if whole < text.len() {
            warn!(bytes = text.len() - whole, "the last line of the state file was torn and has been truncated");
        }
        if whole == 0 && !text.is_empty() && !text.starts_with(b"{\"format\"") {
            return Err(JournalError::Foreign { path: path.to_owned() });
        }
        journal.file.set_len(whole as u64).map_err(fail)?;
        journal.file.seek(SeekFrom::End(0)).map_err(fail)?;
        if whole == 0 {
            let genesis = Genesis { keep_records: true, ..genesis.clone() };
            journal.write(&[line(&Founding::of(&genesis))]).map_err(fail)?;
            if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                File::open(folder).and_then(|folder| folder.sync_all()).map_err(fail)?;
            }
            let chain = Chain::new(&genesis);
            return Ok((journal, genesis, chain));
        }
        let (genesis, chain) = replay(path, &text[..whole])?;
        Ok((journal, genesis, chain))
    }

    /// Adds records and waits until they are on disk.
    pub(super) fn append(&mut self, records: &[Record]) -> Result<(), JournalError> {
        if records.is_empty() {
            return Ok(());
        }
        let lines: Vec<Vec<u8>> = records.iter().map(line).collect();
        self.write(&lines).map_err(|source| JournalError::Io { path: self.path.clone(), source })
    }

    /// Makes every later write fail, as a full disk does.
    #[cfg(test)]
    pub(super) fn fail_from_now_on(&mut self) {
        self.file = File::open(&self.path).expect("the file is there");
    }

    fn write(&mut self, lines: &[Vec<u8>]) -> io::Result<()> {
        self.file.write_all(&lines.concat())?;
        self.file.sync_data()
    }
}

fn line(record: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(record).expect("a record is JSON");
    line.push(b'\n');
    line
}

fn replay(path: &Path, text: &[u8]) -> Result<(Genesis, Chain), JournalError> {
    let mut lines = text.split_inclusive(|byte| *byte == b'\n').enumerate();
    let foreign = || JournalError::Foreign { path: path.to_owned() };
    let (_, first) = lines.next().ok_or_else(foreign)?;
    let founding: Founding = serde_json::from_slice(first).map_err(|_| foreign())?;
    let genesis = founding.genesis().ok_or_else(foreign)?;
    let mut chain = Chain::new(&genesis);
    // Forks of a time when finality was held must find their blocks reversible again.
    chain.hold_irreversibility(true);
    for (index, text) in lines {
        let line = index + 1;
        let record: Record =
            serde_json::from_slice(text).map_err(|_| JournalError::Damaged { path: path.to_owned(), line })?;
        chain.replay(&record).map_err(|source| JournalError::Replay { path: path.to_owned(), line, source })?;
    }
    chain.hold_irreversibility(false);
    Ok((genesis, chain))
}

impl Founding {
    fn of(genesis: &Genesis) -> Self {
        let account = |account: &GenesisAccount| (account.name.to_string(), account.hive_units, account.hbd_units);
        Self {
            format: FORMAT.to_owned(),
            chain_id: genesis.chain_id.to_string(),
            seconds: genesis.time.seconds(),
            seed: hex::encode(genesis.seed),
            accounts: genesis.accounts.iter().map(account).collect(),
            price: genesis.price,
        }
    }

    fn genesis(&self) -> Option<Genesis> {
        if self.format != FORMAT {
            return None;
        }
        let account = |(name, hive_units, hbd_units): &(String, u64, u64)| {
            let name = AccountName::parse(name).ok()?;
            Some(GenesisAccount { name, hive_units: *hive_units, hbd_units: *hbd_units })
        };
        let mut seed = [0; 32];
        hex::decode_to_slice(&self.seed, &mut seed).ok()?;
        Some(Genesis {
            chain_id: ChainId::parse(&self.chain_id)?,
            time: Timestamp::from_seconds(self.seconds),
            seed,
            accounts: self.accounts.iter().map(account).collect::<Option<_>>()?,
            price: HivePrice::new(self.price.base_hbd_units, self.price.quote_hive_units)?,
            sign_blocks: true,
            keep_records: true,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::ledger::{Orphans, Role};

    fn genesis() -> Genesis {
        Genesis::demo([7; 32], Timestamp::from_seconds(1_800_000_000))
    }

    /// A chain with transfers, a fork and an account from outside, written to `path`.
    fn written(path: &Path) -> Chain {
        let (mut journal, genesis, mut chain) = Journal::open(path, &genesis()).unwrap();
        let key = genesis.key("alice", Role::Active);
        for round in 0..8 {
            let transfer = chain.transfer("alice", "bob", "1.000 HBD", &format!("round {round}"), &key).unwrap();
            chain.broadcast(transfer).unwrap();
            chain.produce(chain.time_after(Duration::from_secs(3)));
            if round == 5 {
                chain.hold_irreversibility(true);
                chain.fork(2, &Orphans::Drop).unwrap();
                chain.hold_irreversibility(false);
            }
            journal.append(&chain.take_records()).unwrap();
        }
        let name = AccountName::parse("mallory").unwrap();
        let (authorities, memo_key) = genesis.authorities("mallory");
        chain.set_account(&name, authorities, memo_key);
        chain.grant(&name, engine::money::Currency::Hbd, 5_000);
        journal.append(&chain.take_records()).unwrap();
        chain
    }

    fn same(left: &Chain, right: &Chain) {
        assert_eq!(left.head(), right.head());
        assert!(left.accounts().eq(right.accounts()));
        assert_eq!(left.irreversible_num(), right.irreversible_num());
    }

    #[test]
    fn the_same_chain_comes_again_and_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chain");
        let mut before = written(&path);
        let other = Genesis::demo([8; 32], Timestamp::from_seconds(1));
        let (_journal, genesis, mut after) = Journal::open(&path, &other).unwrap();
        assert_eq!(genesis.seed, [7; 32], "the file's own genesis counts");
        same(&before, &after);
        let time = before.time_after(Duration::from_secs(3));
        assert_eq!(before.produce(time).id, after.produce(time).id);
    }

    #[test]
    fn the_file_is_the_owners_alone_and_one_process_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chain");
        std::fs::write(&path, "").unwrap();
        let (_journal, ..) = Journal::open(&path, &genesis()).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(matches!(Journal::open(&path, &genesis()), Err(JournalError::Locked { .. })));
    }

    #[test]
    fn wherever_a_kill_tears_the_file_the_whole_lines_count() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chain");
        drop(written(&path));
        let text = std::fs::read(&path).unwrap();
        let torn = folder.path().join("torn");
        for end in (0..text.len()).step_by(97) {
            std::fs::write(&torn, &text[..end]).unwrap();
            let (journal, _, chain) = Journal::open(&torn, &genesis()).unwrap();
            drop(journal);
            let (_, _, again) = Journal::open(&torn, &genesis()).unwrap();
            same(&chain, &again);
        }
    }

    #[test]
    fn a_damaged_or_foreign_file_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chain");
        drop(written(&path));
        let text = std::fs::read_to_string(&path).unwrap();
        let damaged = text.replacen("\"generation\":0", "\"generation\":1", 1);
        for (content, line) in [(damaged, 2), (text.replacen("{\"block\"", "{\"black\"", 1), 2)] {
            std::fs::write(&path, &content).unwrap();
            let error = Journal::open(&path, &genesis()).unwrap_err();
            let at = match error {
                JournalError::Damaged { line, .. } | JournalError::Replay { line, .. } => line,
                other => panic!("{other}"),
            };
            assert_eq!(at, line);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
        }
        for foreign in ["hello\n", "hello", "{\"format\":\"something else\"}\n"] {
            std::fs::write(&path, foreign).unwrap();
            assert!(matches!(Journal::open(&path, &genesis()), Err(JournalError::Foreign { .. })), "{foreign:?}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), foreign);
        }
    }
}
