//! Sets the commit of the build: the environment variable `HIVETILL_COMMIT` for packagers, else git, else "unknown".

use std::{env, path::Path, process::Command};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=HIVETILL_COMMIT");
    let commit = env::var_os("HIVETILL_COMMIT").and_then(|commit| commit.into_string().ok());
    let commit = commit.map(|commit| commit.trim().to_owned()).filter(|commit| is_valid(commit));
    let is_release = env::var_os("PROFILE").is_some_and(|profile| profile == "release");
    let commit = commit.or_else(|| from_git(is_release)).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo:rustc-env=BUILD_COMMIT={commit}");
}

/// Returns whether a commit contains only characters that are safe in logs and headers.
fn is_valid(commit: &str) -> bool {
    (1..=64).contains(&commit.len()) && commit.chars().all(|c| c.is_ascii_alphanumeric() || "._+-".contains(c))
}

/// Returns the commit of the working tree; `None` if no git repository tracks these sources. A release build also names
/// uncommitted changes (`-dirty`): it runs again when the index changes, a development build only after a commit or a checkout.
fn from_git(is_release: bool) -> Option<String> {
    // Sources without a repository may be unpacked inside another one.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    // A commit changes the branch and the log of HEAD; a repository may keep no log.
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]).unwrap_or_default();
    let watched = ["logs/HEAD", "HEAD", "packed-refs", &branch].into_iter().chain(is_release.then_some("index"));
    for name in watched.filter(|name| !name.is_empty()) {
        if let Some(path) = git(&["rev-parse", "--git-path", name]).filter(|path| Path::new(path).exists()) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    let commit = if is_release {
        git(&["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"])
    } else {
        git(&["rev-parse", "--short=12", "HEAD"])
    };
    commit.filter(|commit| is_valid(commit))
}

fn git(arguments: &[&str]) -> Option<String> {
    // Without optional locks `describe --dirty` does not refresh the index, which would mark this script as changed.
    let output = Command::new("git")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .args(arguments)
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
