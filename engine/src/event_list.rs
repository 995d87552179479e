//! Cursors of a merchant's event list, and their validity after a restore from a backup.
//!
//! A restored store continues an older state, so that its event lists may diverge from those before the restore. Each
//! restore therefore starts a new [`Epoch`], and a cursor contains the epoch in which it was issued.

use std::{fmt, str::FromStr};

/// The period of a store between two restores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Epoch(u64);

impl Epoch {
    /// The epoch of a store that was never restored.
    pub const FIRST: Self = Self(0);
    /// The epoch of a store that was restored and not opened by an engine since.
    pub const PENDING: Self = Self(u64::MAX);

    /// Creates the epoch after a restore from random bits.
    #[must_use]
    pub const fn random(bits: u64) -> Self {
        match bits {
            0 => Self(1),
            u64::MAX => Self(u64::MAX - 1),
            bits => Self(bits),
        }
    }

    /// Decodes the stored bits.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns the bits to store.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }
}

/// A position in an event list, as clients store it: `7` in the first epoch, `00c0ffee00c0ffee-7` in a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The epoch in which it was issued.
    pub epoch: Epoch,
    /// The sequence number of the last event that the client has read; 0 is before the first.
    pub seq: u64,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.epoch {
            Epoch::FIRST => write!(f, "{}", self.seq),
            Epoch(bits) => write!(f, "{bits:016x}-{}", self.seq),
        }
    }
}

/// The string is not a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a number, or 16 hexadecimal digits, `-` and a number")]
pub struct ParseCursorError;

impl FromStr for Cursor {
    type Err = ParseCursorError;

    fn from_str(text: &str) -> Result<Self, ParseCursorError> {
        let (epoch, seq) = match text.split_once('-') {
            None => (Epoch::FIRST, text),
            Some((epoch, seq)) => {
                let is_lower_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
                if epoch.len() != 16 || !epoch.bytes().all(is_lower_hex) {
                    return Err(ParseCursorError);
                }
                (Epoch(u64::from_str_radix(epoch, 16).map_err(|_| ParseCursorError)?), seq)
            }
        };
        if seq.is_empty() || !seq.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(ParseCursorError);
        }
        Ok(Self { epoch, seq: seq.parse().map_err(|_| ParseCursorError)? })
    }
}

/// The end of a merchant's event list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail {
    /// The sequence number of the newest event; 0 if there is none.
    pub last: u64,
    /// The epoch of the newest event.
    pub epoch: Epoch,
    /// The sequence number of the newest event before that epoch.
    pub last_before_epoch: u64,
}

impl Tail {
    /// The tail of an empty list.
    pub const EMPTY: Self = Self { last: 0, epoch: Epoch::FIRST, last_before_epoch: 0 };

    /// Returns the tail after one more event.
    #[must_use]
    pub fn next(self, current: Epoch) -> Self {
        let last_before_epoch = match self.epoch == current {
            true => self.last_before_epoch,
            false if crate::mutant!("end-before-the-epoch-lost") => 0,
            false => self.last,
        };
        Self { last: self.last + 1, epoch: current, last_before_epoch }
    }
}

/// The state needed to resolve a merchant's cursors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventList {
    /// The epochs of the store after the first, oldest first; the last is the current one.
    pub epochs: Vec<Epoch>,
    /// The end of the list.
    pub tail: Tail,
}

/// The reason why a cursor cannot be resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CursorError {
    /// The store was restored after the cursor was issued: the events after it may differ.
    #[error("the store was restored from a backup; continue with {resume_from}")]
    EpochMismatch {
        /// The newest position up to which the list is known to equal the one the client has read.
        resume_from: Cursor,
    },
    /// The cursor is beyond the newest event: another store issued it.
    #[error("is of another store or beyond the end of the list ({last}); begin with an empty one")]
    OutOfRange {
        /// Before the first event.
        first: Cursor,
        /// The newest event.
        last: Cursor,
    },
}

impl EventList {
    /// Returns the current epoch.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epochs.last().copied().unwrap_or(Epoch::FIRST)
    }

    /// Returns the cursor of a sequence number.
    #[must_use]
    pub fn cursor(&self, seq: u64) -> Cursor {
        Cursor { epoch: self.epoch(), seq }
    }

    /// Returns the sequence number of a cursor. Position 0 is valid in every epoch.
    ///
    /// # Errors
    /// [`CursorError`] if the cursor is of another epoch or beyond the newest event.
    pub fn resolve(&self, cursor: Cursor) -> Result<u64, CursorError> {
        if cursor.seq == 0 {
            return Ok(0);
        }
        if cursor.epoch != self.epoch() {
            return Err(self.epoch_mismatch(cursor));
        }
        if cursor.seq > self.tail.last {
            return Err(CursorError::OutOfRange { first: self.cursor(0), last: self.cursor(self.tail.last) });
        }
        Ok(cursor.seq + u64::from(crate::mutant!("cursor-one-too-far")))
    }

    /// Returns the error for a cursor of another epoch.
    #[must_use]
    pub fn epoch_mismatch(&self, cursor: Cursor) -> CursorError {
        CursorError::EpochMismatch { resume_from: self.cursor(cursor.seq.min(self.common(cursor.epoch))) }
    }

    /// Returns the greatest sequence number up to which the list is known to equal that of `epoch`.
    fn common(&self, epoch: Epoch) -> u64 {
        let number = |wanted: Epoch| match wanted {
            Epoch::FIRST => Some(0),
            wanted => self.epochs.iter().rposition(|epoch| *epoch == wanted).map(|at| at + 1),
        };
        match (number(epoch), number(self.tail.epoch)) {
            // No events were appended since that epoch.
            (Some(then), Some(newest)) if newest <= then => self.tail.last,
            (Some(then), Some(newest)) if newest == then + 1 => self.tail.last_before_epoch,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_cursor_of_the_first_epoch_is_a_plain_number() {
        let plain = Cursor { epoch: Epoch::FIRST, seq: 7 };
        assert_eq!((plain.to_string().as_str(), "7".parse()), ("7", Ok(plain)));
        let later = Cursor { epoch: Epoch::random(0xc0_ffee), seq: 7 };
        assert_eq!((later.to_string().as_str(), "0000000000c0ffee-7".parse()), ("0000000000c0ffee-7", Ok(later)));
        for bad in ["", "-", "x", "-1", "1.5", " 1", "+1", "0000000000c0ffee-", "0000000000C0FFEE-7", "c0ffee-7"] {
            assert_eq!(bad.parse::<Cursor>(), Err(ParseCursorError), "{bad}");
        }
        assert!("99999999999999999999".parse::<Cursor>().is_err());
    }

    /// A model of a store: unique numbers stand for its events.
    #[derive(Debug, Clone)]
    struct History {
        events: Vec<u64>,
        list: EventList,
    }

    #[derive(Debug, Clone)]
    enum Step {
        Append,
        Backup,
        /// Restores one of the backups.
        Restore(prop::sample::Index),
        /// A client reads to the end and keeps the cursor.
        Read,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => Just(Step::Append),
            1 => Just(Step::Backup),
            1 => any::<prop::sample::Index>().prop_map(Step::Restore),
            1 => Just(Step::Read),
        ];
        prop::collection::vec(step, 1..60)
    }

    proptest! {
        #[test]
        fn resuming_at_the_returned_cursor_misses_no_event(steps in steps()) {
            let mut store = History { events: Vec::new(), list: EventList { epochs: Vec::new(), tail: Tail::EMPTY } };
            let (mut backups, mut readers) = (Vec::<History>::new(), Vec::<(Cursor, Vec<u64>)>::new());
            for (number, step) in (1_u64..).zip(steps) {
                match step {
                    Step::Append => {
                        store.events.push(number);
                        store.list.tail = store.list.tail.next(store.list.epoch());
                    }
                    Step::Backup => backups.push(store.clone()),
                    Step::Restore(_) if backups.is_empty() => {}
                    Step::Restore(which) => {
                        store = which.get(&backups).clone();
                        store.list.epochs.push(Epoch::random(number));
                    }
                    Step::Read => {
                        let seq = store.events.len() as u64;
                        prop_assert_eq!(store.list.resolve(store.list.cursor(seq)), Ok(seq));
                        readers.push((store.list.cursor(seq), store.events.clone()));
                    }
                }
                for (cursor, known) in &readers {
                    let seq = match store.list.resolve(*cursor) {
                        Ok(seq) => seq,
                        Err(CursorError::EpochMismatch { resume_from }) => {
                            prop_assert_ne!(cursor.epoch, store.list.epoch());
                            store.list.resolve(resume_from).unwrap()
                        }
                        Err(beyond) => return Err(TestCaseError::fail(format!("{beyond}"))),
                    };
                    let passed = &store.events[..usize::try_from(seq).unwrap()];
                    prop_assert!(passed.iter().all(|event| known.contains(event)), "{} of {:?}", seq, store);
                }
            }
        }

        #[test]
        fn a_cursor_beyond_the_end_is_refused_with_the_bounds(last in 0_u64..9, seq in 0_u64..20) {
            let tail = Tail { last, ..Tail::EMPTY };
            let list = EventList { epochs: Vec::new(), tail };
            match list.resolve(list.cursor(seq)) {
                Ok(found) => prop_assert!(found == seq && seq <= last),
                Err(CursorError::OutOfRange { first, last: end }) => {
                    prop_assert!((first.seq, end.seq) == (0, last) && seq > last);
                }
                Err(other) => return Err(TestCaseError::fail(format!("{other}"))),
            }
        }
    }
}
