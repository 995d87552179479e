//! Reliability campaigns: kills under load, failing nodes, failing disks, and a record of acknowledged writes.
//!
//! `HIVETILL_KILLS=200 cargo test --workspace --test tests -- reliability` runs the full campaign; see
//! docs/explanation/reliability.md.

mod client;
mod disk;
mod environment;
mod final_check;
mod kills;
mod majority;
mod model;
mod nodes;
mod settings;

use crate::harness::switch;

/// Returns every test of this module.
pub(crate) fn all() -> Vec<libtest_mimic::Trial> {
    [kills::tests(), nodes::tests(), majority::tests(), disk::all()].into_iter().flatten().collect()
}

/// Prints progress.
#[expect(clippy::print_stdout, reason = "a campaign of many minutes prints its progress and its results")]
pub(crate) fn print_progress(line: &str) {
    println!("{line}");
}

/// Returns a time truncated to whole seconds, the resolution of block times. The text sorts by time.
fn seconds(time: &serde_json::Value) -> &str {
    time.as_str().and_then(|time| time.get(..19)).unwrap_or_default()
}
