//! The rules of the source tree: imports, captions, file sizes, dependencies, vocabulary.

mod vocabulary;

use std::{
    fs,
    path::{Path, PathBuf},
};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

crate::tests!(
    packages_depend_downwards_only,
    the_facade_uses_only_the_interface_of_the_engine,
    the_engine_is_pure,
    every_file_has_a_caption_and_a_final_newline,
    the_top_level_contains_the_expected_files,
    every_dependency_is_published_and_permissive,
    no_dependency_is_banned_and_there_is_one_tls,
    sources_contain_no_leftovers,
    every_allow_attribute_has_a_reason,
);

/// Returns every test of the rules.
pub(crate) fn all() -> Vec<libtest_mimic::Trial> {
    tests().into_iter().chain(vocabulary::tests()).collect()
}

/// Permitted imports between packages, from the bottom to the top.
const MAY_IMPORT: [(&str, &[&str]); 6] = [
    ("engine", &[]),
    ("storage", &["engine"]),
    ("proto", &[]),
    ("actors", &["engine", "storage"]),
    ("simulations", &["engine", "storage", "actors"]),
    ("api", &["engine", "storage", "proto", "actors", "simulations"]),
];

/// Licences that require attribution only.
const PERMISSIVE: [&str; 16] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "WTFPL",
    "Zlib",
];

/// The contents of the top level besides dot files.
const TOP_LEVEL: [&str; 14] = [
    "Cargo.toml",
    "Cargo.lock",
    "LICENSE",
    "README.md",
    "CHANGELOG.md",
    "rust-toolchain.toml",
    "actors",
    "api",
    "docs",
    "engine",
    "proto",
    "simulations",
    "storage",
    "tests",
];

const MAX_LINES: usize = 600;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_owned()
}

fn metadata() -> Metadata {
    let version = std::process::Command::new("rustc").arg("-vV").output().expect("rustc is there");
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc names its host");
    // Packages of other platforms may not be downloaded.
    let options = ["--locked", "--offline", "--filter-platform", host].map(str::to_owned);
    let mut command = MetadataCommand::new();
    command.manifest_path(root().join("Cargo.toml")).other_options(options.to_vec());
    command.exec().expect("cargo metadata")
}

/// Returns every file in the repository with one of these suffixes, with its text.
fn files(endings: &[&str]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    walk(&root(), &mut |path| {
        let name = path.to_string_lossy();
        if endings.iter().any(|ending| name.ends_with(ending)) {
            let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{name}: {error}"));
            found.push((path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned(), text));
        }
    });
    found.sort();
    found
}

fn walk(folder: &Path, see: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        let name = entry.file_name().expect("a name").to_string_lossy().into_owned();
        if entry.is_dir() {
            if !matches!(name.as_str(), "target" | "node_modules" | ".git") {
                walk(&entry, see);
            }
        } else {
            see(&entry);
        }
    }
}

/// Fails with all findings at once.
#[track_caller]
fn none(findings: &[String]) {
    assert!(findings.is_empty(), "\n{}", findings.join("\n"));
}

fn packages_depend_downwards_only() {
    let metadata = metadata();
    let ours = metadata.workspace_packages();
    let names: Vec<&str> = ours.iter().map(|package| package.name.as_str()).collect();
    let mut findings = Vec::new();
    for package in &ours {
        let row = MAY_IMPORT.iter().find(|(name, _)| *name == package.name.as_str());
        let Some((_, allowed)) = row else {
            findings.push(format!("{} is not a known package", package.name));
            continue;
        };
        for dependency in &package.dependencies {
            let name = dependency.name.as_str();
            if names.contains(&name) && !allowed.contains(&name) {
                findings.push(format!("{} may not depend on {name}", package.name));
            }
        }
    }
    assert_eq!(names.len(), MAY_IMPORT.len());
    none(&findings);
}

fn the_facade_uses_only_the_interface_of_the_engine() {
    let mut findings = Vec::new();
    let facade = files(&[".rs"]).into_iter().filter(|(path, _)| path.starts_with("api/src/facade/"));
    let mut count = 0;
    for (path, text) in facade {
        count += 1;
        for (number, line) in code(&text) {
            for foreign in ["actors::", "storage::", "simulations::", "crate::service", "crate::commands"] {
                let here = line.match_indices(foreign).any(|(at, _)| !is_word(line[..at].chars().next_back()));
                if here {
                    findings.push(format!("{path}:{number}: {foreign}"));
                }
            }
        }
    }
    assert!(count > 10, "the facade has moved");
    none(&findings);
}

fn is_word(before: Option<char>) -> bool {
    before.is_some_and(|c| c.is_alphanumeric() || c == '_')
}

/// Lines of code with their numbers, without comments.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line));
    lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

fn the_engine_is_pure() {
    let metadata = metadata();
    let package = metadata.workspace_packages().into_iter().find(|p| p.name.as_str() == "engine").expect("the engine");
    let mut findings = Vec::new();
    for dependency in package.dependencies.iter().filter(|dependency| dependency.kind == DependencyKind::Normal) {
        if ["tokio", "hyper", "reqwest", "redb", "rand", "getrandom", "mio"].contains(&dependency.name.as_str()) {
            findings.push(format!("engine depends on {}", dependency.name));
        }
    }
    for (path, text) in files(&[".rs"]).iter().filter(|(path, _)| path.starts_with("engine/src/")) {
        for (number, line) in code(text) {
            for impure in ["std::fs", "std::net", "std::thread", "std::env", "std::process", "SystemTime", "Instant"] {
                if line.match_indices(impure).any(|(at, _)| !is_word(line[..at].chars().next_back())) {
                    findings.push(format!("{path}:{number}: {impure}"));
                }
            }
        }
    }
    none(&findings);
}

fn every_file_has_a_caption_and_a_final_newline() {
    let mut findings = Vec::new();
    let files = files(&[".rs"]);
    for (path, text) in &files {
        let caption = text.lines().next().unwrap_or_default();
        if !caption.starts_with("//! ") || caption.len() < 20 {
            findings.push(format!("{path} has no caption"));
        }
        let lines = text.lines().count();
        if lines > MAX_LINES {
            findings.push(format!("{path} has {lines} lines: split it"));
        }
        if !text.ends_with('\n') || text.ends_with("\n\n") {
            findings.push(format!("{path} does not end with one line end"));
        }
        let stem = Path::new(path).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if matches!(stem.as_str(), "utils" | "util" | "common" | "helpers" | "misc") {
            findings.push(format!("{path} has a name without meaning"));
        }
    }
    assert!(files.len() > 100);
    none(&findings);
}

fn the_top_level_contains_the_expected_files() {
    let entries = fs::read_dir(root()).expect("the root").map(|entry| entry.expect("an entry").file_name());
    let names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    let third_parties: Vec<String> = names
        .iter()
        .filter(|name| !name.starts_with('.') && *name != "target" && !TOP_LEVEL.contains(&name.as_str()))
        .cloned()
        .collect();
    none(&third_parties);
    for wanted in ["Cargo.toml", "LICENSE", "README.md", "CHANGELOG.md"] {
        assert!(names.iter().any(|name| name == wanted), "{wanted} is missing");
    }
}

fn every_dependency_is_published_and_permissive() {
    let metadata = metadata();
    let nodes = &metadata.resolve.as_ref().expect("resolved").nodes;
    let mut findings = Vec::new();
    for package in nodes.iter().map(|node| &metadata[&node.id]) {
        let name = format!("{} {}", package.name, package.version);
        match &package.source {
            Some(source) if source.is_crates_io() => {}
            None if package.manifest_path.starts_with(root().to_str().expect("a path")) => {}
            other => findings.push(format!("{name} comes from {other:?}")),
        }
        match &package.license {
            Some(license) if Licence::parse(license).permits() => {}
            other => findings.push(format!("{name} has the licence {other:?}")),
        }
    }
    assert!(nodes.len() > 100);
    none(&findings);
}

/// Banned on any platform and with any feature: second TLS and cryptography stacks, and replacements of chosen parts.
/// `rustls` with `ring` is the one stack; its C parts are built and audited once.
const BANNED: [(&str, &str); 10] = [
    ("openssl", "TLS is rustls"),
    ("openssl-sys", "TLS is rustls"),
    ("native-tls", "TLS is rustls"),
    ("boring", "TLS is rustls"),
    ("aws-lc-rs", "the provider of rustls is ring"),
    ("aws-lc-sys", "the provider of rustls is ring"),
    ("webpki-roots", "certificate authorities are the system's"),
    ("git2", "nothing here needs a C library for git"),
    ("libsqlite3-sys", "the store is redb"),
    ("async-std", "the runtime is tokio"),
];

/// Permitted in one version only: two versions would be two sets of rules for one wire format or one signature.
const ONCE: [&str; 8] = ["rustls", "ring", "rustls-webpki", "hyper", "tokio", "k256", "secp256k1", "redb"];

/// Reads the lock file, which lists the packages of every platform and feature, unlike `cargo metadata` of one machine.
fn no_dependency_is_banned_and_there_is_one_tls() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).expect("the lock file");
    let ours = metadata().workspace_packages().iter().map(|package| package.name.to_string()).collect::<Vec<_>>();
    let mut findings = Vec::new();
    let mut versions: std::collections::BTreeMap<&str, Vec<&str>> = std::collections::BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let member =
            |name: &str| package.lines().find_map(|line| line.strip_prefix(&format!("{name} = \""))?.strip_suffix('"'));
        let (name, version) = (member("name").expect("a name"), member("version").expect("a version"));
        versions.entry(name).or_default().push(version);
        match member("source") {
            Some("registry+https://github.com/rust-lang/crates.io-index") => {
                if member("checksum").is_none() {
                    findings.push(format!("{name} {version} has no checksum"));
                }
            }
            None if ours.iter().any(|own| own == name) => {}
            other => findings.push(format!("{name} {version} comes from {other:?}")),
        }
        if let Some((_, why)) = BANNED.iter().find(|(banned, _)| *banned == name) {
            findings.push(format!("{name} {version} is banned: {why}"));
        }
        let is_pre_release = version.split('+').next().is_some_and(|version| version.contains('-'));
        if is_pre_release && (name == "ring" || name.starts_with("rustls")) {
            findings.push(format!("{name} {version} is a pre-release"));
        }
    }
    for name in ONCE {
        match versions.get(name).map(Vec::as_slice) {
            Some([_]) => {}
            found => findings.push(format!("{name} is there as {found:?}, and wanted once")),
        }
    }
    assert!(versions.len() > 100);
    none(&findings);
}

/// A parser of licence expressions (SPDX).
struct Licence {
    words: Vec<String>,
    at: usize,
}

impl Licence {
    fn parse(text: &str) -> Self {
        // An old form uses a slash for OR.
        let text = text.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
        Self { words: text.split_whitespace().map(str::to_owned).collect(), at: 0 }
    }

    fn permits(mut self) -> bool {
        let is = self.any();
        is && self.at == self.words.len()
    }

    fn takes(&mut self, word: &str) -> bool {
        let is = self.words.get(self.at).is_some_and(|next| next == word);
        self.at += usize::from(is);
        is
    }

    fn any(&mut self) -> bool {
        let mut is = self.all();
        while self.takes("OR") {
            is |= self.all();
        }
        is
    }

    fn all(&mut self) -> bool {
        let mut is = self.one();
        while self.takes("AND") {
            is &= self.one();
        }
        is
    }

    fn one(&mut self) -> bool {
        if self.takes("(") {
            let is = self.any();
            return self.takes(")") && is;
        }
        let Some(name) = self.words.get(self.at).cloned() else { return false };
        self.at += 1;
        let name = if self.takes("WITH") {
            let exception = self.words.get(self.at).cloned().unwrap_or_default();
            self.at += 1;
            format!("{name} WITH {exception}")
        } else {
            name
        };
        PERMISSIVE.contains(&name.as_str())
    }
}

fn sources_contain_no_leftovers() {
    // Written in two halves so that this file does not match.
    let words = [
        ("a macro that panics for later", ["to", "do!("]),
        ("a macro that panics for later", ["unimple", "mented!("]),
        ("a macro for looking", ["db", "g!("]),
        ("a path of one machine", ["/ro", "ot/"]),
        ("a path of one machine", ["/ho", "me/"]),
        ("a path of one machine", ["/wo", "rk/"]),
        ("a path of one machine", ["\"/tm", "p/"]),
        ("a trace of its production", ["mile", "stone"]),
        ("a trace of its production", ["language", " model"]),
        ("a trace of its production", ["co", "pilot"]),
        ("a note to oneself", ["FIX", "ME"]),
        ("a conflict", ["<<<<", "<<<"]),
    ]
    .map(|(kind, halves)| (kind, halves.concat()));
    let mut findings = Vec::new();
    for (path, text) in files(&[".rs", ".toml", ".md", ".proto", ".html", ".js", ".mjs", ".css", ".txt", "run"]) {
        for (number, line) in text.lines().enumerate() {
            for (kind, word) in words.iter().filter(|(_, word)| line.contains(word.as_str())) {
                findings.push(format!("{path}:{}: {kind}: {word}", number + 1));
            }
        }
    }
    none(&findings);
}

fn every_allow_attribute_has_a_reason() {
    let mut findings = Vec::new();
    for (path, text) in files(&[".rs"]) {
        for attribute in ["allow", "expect", "ignore"] {
            for opening in [format!("#[{attribute}"), format!("#![{attribute}")] {
                for (at, _) in text.match_indices(&opening) {
                    let rest = &text[at + opening.len()..];
                    let is_attribute = rest.starts_with(['(', ']', ' ']);
                    let body = rest.split(']').next().unwrap_or_default();
                    let quoted = text[..at].lines().last().is_some_and(|line| line.contains('"'));
                    let commented = text[..at].lines().last().is_some_and(|line| line.contains("//"));
                    if is_attribute && !quoted && !commented && !body.contains("reason = ") && !body.contains("= \"") {
                        findings.push(format!("{path}:{}: #[{attribute}]", text[..at].lines().count()));
                    }
                }
            }
        }
    }
    none(&findings);
}
