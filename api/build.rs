//! Names the commit a release is built from: the variable `HIVETILL_COMMIT` for packagers, else git, else "unknown".

use std::{env, path::Path, process::Command};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=HIVETILL_COMMIT");
    let named = env::var_os("HIVETILL_COMMIT").and_then(|named| named.into_string().ok());
    let named = named.map(|named| named.trim().to_owned()).filter(|named| is_fit(named));
    // A development build asks git when it runs: otherwise each commit would compile it anew.
    let is_release = env::var_os("PROFILE").is_some_and(|profile| profile == "release");
    let commit = named.or_else(|| is_release.then(|| from_git().unwrap_or_else(|| "unknown".to_owned())));
    println!("cargo:rustc-env=BUILT_FROM_COMMIT={}", commit.unwrap_or_default());
}

/// Logs and headers show it: letters, digits, dots, dashes and the like only.
fn is_fit(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || "._+-".contains(c))
}

fn from_git() -> Option<String> {
    // The log of HEAD grows with every commit and checkout; the index changes with what is to be committed.
    for name in ["logs/HEAD", "HEAD", "index"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]).filter(|path| Path::new(path).exists()) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    git(&["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]).filter(|commit| is_fit(commit))
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
