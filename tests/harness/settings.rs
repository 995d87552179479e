//! The settings of a test run, from environment variables: arguments belong to the test runner.

/// Where the gateways under test keep their records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreKind {
    /// In their data directories.
    Embedded,
    /// In PostgreSQL, each in a database of its own.
    Postgres,
}

/// Returns the store of `HIVETILL_TEST_STORE`: `embedded`, which is the default, or `postgres`.
pub(crate) fn store_kind() -> StoreKind {
    match text("HIVETILL_TEST_STORE").as_deref() {
        None | Some("" | "embedded") => StoreKind::Embedded,
        Some("postgres") => StoreKind::Postgres,
        Some(other) => panic!("HIVETILL_TEST_STORE is neither embedded nor postgres: {other}"),
    }
}

/// Returns a number.
pub(crate) fn switch(name: &str, usual: u64) -> u64 {
    match text(name) {
        Some(text) => text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")),
        None => usual,
    }
}

#[expect(clippy::disallowed_methods, reason = "the only place of the tests that reads their settings")]
fn text(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
