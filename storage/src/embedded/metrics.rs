//! Metrics and figures of the store: commits, stored rows, queues.

use prometheus_client::{
    metrics::{
        counter::Counter,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

use crate::embedded::damage::DamagedRows;

/// Metrics of commits. Counting takes nanoseconds, a commit takes an fsync.
#[derive(Debug, Clone)]
pub struct CommitMetrics {
    batches: Histogram,
    seconds: Histogram,
    checkpoints: Histogram,
    write_stalls: Counter,
    refused: Counter,
    failed: Counter,
    damages: DamagedRows,
}

impl Default for CommitMetrics {
    fn default() -> Self {
        Self::of(DamagedRows::default())
    }
}

impl CommitMetrics {
    /// Creates metrics with zero counts, and the counter of damaged rows.
    pub(crate) fn of(damages: DamagedRows) -> Self {
        Self {
            // 1, 2, 4, … 1024 batches.
            batches: Histogram::new(exponential_buckets(1.0, 2.0, 11)),
            // 50 us, 100 us, … 1.6 s.
            seconds: Histogram::new(exponential_buckets(0.000_05, 2.0, 16)),
            // 1 ms, 2 ms, … 8 s.
            checkpoints: Histogram::new(exponential_buckets(0.001, 2.0, 14)),
            write_stalls: Counter::default(),
            refused: Counter::default(),
            failed: Counter::default(),
            damages,
        }
    }

    /// Registers the metrics under the registry's prefix.
    pub fn register(&self, registry: &mut Registry) {
        let batches = "Batches in one group commit";
        registry.register("commit_batches", batches, self.batches.clone());
        let seconds = "Latency of commits, including fsync, in seconds";
        registry.register("commit_seconds", seconds, self.seconds.clone());
        let checkpoints = "Duration of checkpoints, in seconds";
        registry.register("checkpoint_seconds", checkpoints, self.checkpoints.clone());
        let stalls = "Times that commits waited for a checkpoint";
        registry.register("write_stalls", stalls, self.write_stalls.clone());
        registry.register("commit_refusals", "Batches refused by a check of the stored rows", self.refused.clone());
        registry.register("commit_failures", "Commits failed by the disk or the database", self.failed.clone());
        let damaged = "Damaged rows found since the start, by table; each row counts once";
        registry.register("store_damaged_rows", damaged, self.damages.counter.clone());
    }

    /// Records a group commit of which `applied` of `count` batches were applied.
    pub(crate) fn committed(&self, count: usize, applied: usize, took: std::time::Duration) {
        self.refused.inc_by((count - applied) as u64);
        if applied > 0 {
            self.batches.observe(f64::from(u32::try_from(applied).unwrap_or(u32::MAX)));
            self.seconds.observe(took.as_secs_f64());
        }
    }

    /// Records a checkpoint.
    pub(crate) fn checkpointed(&self, took: std::time::Duration) {
        self.checkpoints.observe(took.as_secs_f64());
    }

    /// Records that commits wait for a checkpoint.
    pub(crate) fn blocked(&self) {
        self.write_stalls.inc();
    }

    pub(crate) fn failed(&self) {
        self.failed.inc();
    }
}
