//! The version of the build, and the commit of its sources.

use std::sync::OnceLock;

/// The version of the package.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the commit of the sources, or "unknown". Release builds contain it; development builds read it from the git
/// repository of the sources.
#[must_use]
pub fn commit() -> &'static str {
    static COMMIT: OnceLock<String> = OnceLock::new();
    COMMIT.get_or_init(|| {
        let build_commit = env!("BUILD_COMMIT");
        if build_commit.is_empty() {
            git_commit().unwrap_or_else(|| "unknown".to_owned())
        } else {
            build_commit.to_owned()
        }
    })
}

/// Returns version and commit in the format of `--version`.
#[must_use]
pub fn text() -> &'static str {
    static TEXT: OnceLock<String> = OnceLock::new();
    TEXT.get_or_init(|| format!("{VERSION} (commit {})", commit()))
}

fn git_commit() -> Option<String> {
    let git = ["-C", env!("CARGO_MANIFEST_DIR"), "rev-parse", "--short=12", "HEAD"];
    let output = std::process::Command::new("git").args(git).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned()).filter(|commit| !commit.is_empty())
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
