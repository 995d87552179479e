//! Which build this is: the version of the package and the commit of its sources.

use std::sync::OnceLock;

/// The version of the package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the commit of the sources, "unknown" where nobody can say. A release was told when it was built; a development
/// build asks git about the folder it was built in.
#[must_use]
pub fn commit() -> &'static str {
    static COMMIT: OnceLock<String> = OnceLock::new();
    COMMIT.get_or_init(|| {
        let built_from = env!("BUILT_FROM_COMMIT");
        if built_from.is_empty() {
            checked_out().unwrap_or_else(|| "unknown".to_owned())
        } else {
            built_from.to_owned()
        }
    })
}

/// Returns version and commit, as `--version` shows them.
#[must_use]
pub fn text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| format!("{VERSION} (commit {})", commit()))
}

fn checked_out() -> Option<String> {
    let git = ["-C", env!("CARGO_MANIFEST_DIR"), "rev-parse", "--short=12", "HEAD"];
    let output = std::process::Command::new("git").args(git).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned()).filter(|commit| !commit.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_names_its_version_and_a_commit() {
        let commit = commit();
        assert!(commit == "unknown" || commit.len() >= 7, "{commit}");
        assert!(commit.chars().all(|c| c.is_ascii_alphanumeric() || "._+-".contains(c)), "{commit}");
        assert_eq!(text(), format!("{VERSION} (commit {commit})"));
    }
}
