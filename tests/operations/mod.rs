//! What the person on call needs: metrics, copies of the data, ends that say why, logs without secrets, a doctor.

pub(crate) mod alarms;
mod copies;
mod doctor;
mod ends;
mod logs;
pub(crate) mod metrics;

/// Every test of operations.
pub(crate) fn all() -> Vec<libtest_mimic::Trial> {
    [alarms::all(), metrics::tests(), copies::tests(), ends::all(), doctor::tests(), logs::tests()]
        .into_iter()
        .flatten()
        .collect()
}
