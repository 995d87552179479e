//! The state of the ledger and the scan progress, readable by all actors without a message.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use engine::{ledger::Head, time::Timestamp};

/// The state of the ledger, as the scanner last saw it.
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

    /// Records that every block up to this one is scanned and its credits are durable.
    pub(crate) fn read_up_to(&self, num: u32, time: Timestamp) {
        self.irreversible_num.fetch_max(num, Ordering::Relaxed);
        self.irreversible_time_ms.fetch_max(time.millis(), Ordering::Relaxed);
        self.has_cursor.store(true, Ordering::Release);
    }

    /// Records whether the nodes serve the chain that was scanned so far.
    pub(crate) fn record_chain(&self, is_same: bool) {
        self.is_another_chain.store(!is_same, Ordering::Release);
    }

    pub(crate) fn head_time(&self) -> Timestamp {
        Timestamp::from_millis(self.head_time_ms.load(Ordering::Relaxed))
    }

    pub(crate) fn irreversible_time(&self) -> Timestamp {
        Timestamp::from_millis(self.irreversible_time_ms.load(Ordering::Relaxed))
    }

    /// Returns whether the chain is scanned from a known block: before that, a payment could be overlooked.
    pub(crate) fn has_cursor(&self) -> bool {
        self.has_cursor.load(Ordering::Acquire)
    }

    /// Returns whether the chain is scanned from a known block, and can be scanned further. If the nodes serve another
    /// chain than the one scanned so far, no payment could complete.
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

/// The state of the ledger and the scan progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerStatus {
    /// Whether a node responded to the last request.
    pub is_reachable: bool,
    /// The number of the head block.
    pub head_num: u32,
    /// The time of the head block.
    pub head_time: Timestamp,
    /// The newest irreversible block's number.
    pub irreversible_num: u32,
    /// The number of the last block whose transfers are all credited.
    pub scanned_num: u32,
}
