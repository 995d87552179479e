//! Where the ledger stands and how far it was read, for everybody to look at without asking.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use engine::{ledger::Head, time::Timestamp};

/// Where the ledger stands, as the scanner last saw it.
#[derive(Debug, Default)]
pub(crate) struct LedgerView {
    head_time_ms: AtomicU64,
    head_num: AtomicU32,
    irreversible_time_ms: AtomicU64,
    irreversible_num: AtomicU32,
    chain_irreversible_num: AtomicU32,
    is_reachable: AtomicBool,
    has_cursor: AtomicBool,
    is_another_chain: AtomicBool,
}

impl LedgerView {
    pub(crate) fn record_head(&self, head: Head) {
        self.head_time_ms.fetch_max(head.time.millis(), Ordering::Relaxed);
        self.head_num.store(head.block_id.number(), Ordering::Relaxed);
        self.chain_irreversible_num.fetch_max(head.irreversible_num, Ordering::Relaxed);
        self.is_reachable.store(true, Ordering::Relaxed);
    }

    pub(crate) fn record_unreachable(&self) {
        self.is_reachable.store(false, Ordering::Relaxed);
    }

    /// Notes that every block up to this one has been read and its credits are durable.
    pub(crate) fn read_up_to(&self, num: u32, time: Timestamp) {
        self.irreversible_num.fetch_max(num, Ordering::Relaxed);
        self.irreversible_time_ms.fetch_max(time.millis(), Ordering::Relaxed);
        self.has_cursor.store(true, Ordering::Release);
    }

    /// Notes whether the nodes serve the chain that was read so far.
    pub(crate) fn record_chain(&self, is_same: bool) {
        self.is_another_chain.store(!is_same, Ordering::Release);
    }

    pub(crate) fn head_time(&self) -> Timestamp {
        Timestamp::from_millis(self.head_time_ms.load(Ordering::Relaxed))
    }

    pub(crate) fn irreversible_time(&self) -> Timestamp {
        Timestamp::from_millis(self.irreversible_time_ms.load(Ordering::Relaxed))
    }

    /// Returns whether the chain is read from a known block on: before that, a payment could be overlooked.
    pub(crate) fn has_cursor(&self) -> bool {
        self.has_cursor.load(Ordering::Acquire)
    }

    /// Returns whether the chain is read from a known block on, and can be read further. If the nodes serve another chain than
    /// the one read so far, no payment could complete.
    pub(crate) fn is_followed(&self) -> bool {
        self.has_cursor() && !self.is_another_chain.load(Ordering::Acquire)
    }

    pub(crate) fn status(&self) -> LedgerStatus {
        LedgerStatus {
            is_reachable: self.is_reachable.load(Ordering::Relaxed),
            head_num: self.head_num.load(Ordering::Relaxed),
            head_time: self.head_time(),
            irreversible_num: self.chain_irreversible_num.load(Ordering::Relaxed),
            scanned_num: self.irreversible_num.load(Ordering::Relaxed),
        }
    }
}

/// Where the ledger stands and how far it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerStatus {
    /// Whether a node answered when last asked.
    pub is_reachable: bool,
    /// The newest block's number.
    pub head_num: u32,
    /// The newest block's time.
    pub head_time: Timestamp,
    /// The newest irreversible block's number.
    pub irreversible_num: u32,
    /// The newest block whose transfers are all credited.
    pub scanned_num: u32,
}
