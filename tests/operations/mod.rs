//! Operations: metrics, alarms, backups, shutdown, logs, the doctor.

pub(crate) mod alarms;
mod backups;
mod doctor;
mod exits;
mod logs;
pub(crate) mod metrics;

/// Returns every test of operations.
pub(crate) fn all() -> Vec<libtest_mimic::Trial> {
    [alarms::all(), metrics::tests(), backups::tests(), exits::all(), doctor::tests(), logs::tests()]
        .into_iter()
        .flatten()
        .collect()
}
