//! The version of the build, and the commit of its sources.

/// The version of the package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the commit of the sources that were built, or "unknown".
#[must_use]
pub const fn commit() -> &'static str {
    env!("BUILD_COMMIT")
}

/// Returns version and commit in the format of `--version`.
#[must_use]
pub const fn text() -> &'static str {
    concat!(env!("CARGO_PKG_VERSION"), " (commit ", env!("BUILD_COMMIT"), ")")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_the_version_and_a_commit() {
        let commit = commit();
        assert!(commit == "unknown" || commit.len() >= 7, "{commit}");
        assert!(commit.chars().all(|c| c.is_ascii_alphanumeric() || "._+-".contains(c)), "{commit}");
        assert_eq!(text(), format!("{VERSION} (commit {commit})"));
    }
}
