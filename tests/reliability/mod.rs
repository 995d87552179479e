//! Hours of bad luck in seconds: kills under load, nodes that fail, disks that fill, and an oracle that remembers.
//!
//! `HIVETILL_KILLS=200 cargo test --workspace --test tests -- reliability` is the campaign; docs/explanation/reliability.md tells the rest.

mod client;
mod disk;
mod kills;
mod majority;
mod memory;
mod nodes;
mod settings;
mod settled;
mod world;

/// Every test of this room.
pub(crate) fn all() -> Vec<libtest_mimic::Trial> {
    [kills::tests(), nodes::tests(), majority::tests(), disk::all()].into_iter().flatten().collect()
}

/// Reads a number from a variable: the arguments belong to the test runner.
#[expect(clippy::disallowed_methods, reason = "the switches of the campaigns")]
fn switch(name: &str, usual: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")),
        Err(_) => usual,
    }
}

/// Tells whoever watches how it goes.
#[expect(clippy::print_stdout, reason = "a campaign of many minutes says where it is, and what it found")]
fn say(line: &str) {
    println!("{line}");
}

/// Returns the part of a time that the ledger's blocks have too: whole seconds, which sort as text.
fn seconds(time: &serde_json::Value) -> &str {
    time.as_str().and_then(|time| time.get(..19)).unwrap_or_default()
}
