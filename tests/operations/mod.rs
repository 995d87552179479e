//! What the person on call needs: metrics, copies of the data, ends that say why, logs without secrets.

mod copies;
mod metrics;

/// Every test of operations.
pub(crate) fn all() -> Vec<libtest_mimic::Trial> {
    [metrics::tests(), copies::tests()].into_iter().flatten().collect()
}
