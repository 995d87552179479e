//! Sets the commit of a release build: the environment variable `HIVETILL_COMMIT` for packagers, else git, else "unknown".

use std::{env, path::Path, process::Command};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=HIVETILL_COMMIT");
    let commit = env::var_os("HIVETILL_COMMIT").and_then(|commit| commit.into_string().ok());
    let commit = commit.map(|commit| commit.trim().to_owned()).filter(|commit| is_valid(commit));
    // Development builds read git at run time: otherwise every commit would recompile the package.
    let is_release = env::var_os("PROFILE").is_some_and(|profile| profile == "release");
    let commit = commit.or_else(|| is_release.then(|| from_git().unwrap_or_else(|| "unknown".to_owned())));
    println!("cargo:rustc-env=BUILD_COMMIT={}", commit.unwrap_or_default());
}

/// Returns whether a commit contains only characters that are safe in logs and headers.
fn is_valid(commit: &str) -> bool {
    (1..=64).contains(&commit.len()) && commit.chars().all(|c| c.is_ascii_alphanumeric() || "._+-".contains(c))
}

/// Returns the commit of the working tree; `None` without a git repository.
fn from_git() -> Option<String> {
    // The log of HEAD changes with every commit and checkout, the index with every staged change.
    for name in ["logs/HEAD", "HEAD", "index"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]).filter(|path| Path::new(path).exists()) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    git(&["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]).filter(|commit| is_valid(commit))
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
