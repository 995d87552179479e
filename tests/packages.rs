//! Tests of what packages contain besides the program: shell completions, manual pages, and the bill of materials.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::harness::{Dev, Process, folder, shared};

crate::tests!(
    a_completion_script_names_every_command,
    bash_completes_commands_and_flags,
    every_command_has_a_manual_page,
    the_manual_page_of_the_program_goes_to_standard_output,
    the_health_check_finds_the_gateway_by_its_settings,
    the_health_check_fails_without_a_ready_gateway,
    the_bill_of_materials_lists_the_packages_of_the_binary,
);

fn hivetill(arguments: &[&str]) -> String {
    run(Command::new(env!("CARGO_BIN_EXE_hivetill")).args(arguments).env_clear())
}

/// Runs a command, which must succeed, and returns its standard output.
#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().expect("the program starts");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Returns the names of the subcommands in the help of a command.
fn subcommands(command: &[&str]) -> Vec<String> {
    let help = hivetill(&[command, &["--help"]].concat());
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // The lines of a long description are indented further.
    let names = list.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !name.is_empty() && *name != "help").map(str::to_owned).collect()
}

/// Returns every command and subcommand, each as the words after the program's name.
fn commands() -> Vec<Vec<String>> {
    let mut found: Vec<Vec<String>> = vec![Vec::new()];
    let mut next = 0;
    while let Some(command) = found.get(next).cloned() {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        found.extend(subcommands(&words).into_iter().map(|name| [command.clone(), vec![name]].concat()));
        next += 1;
    }
    found.retain(|command| !command.is_empty());
    assert!(found.len() > 30, "{found:?}");
    assert!(found.contains(&vec!["admin".to_owned(), "payment".to_owned()]), "{found:?}");
    found
}

fn a_completion_script_names_every_command() {
    let mut findings = Vec::new();
    let scripts = ["bash", "zsh", "fish"].map(|shell| (shell, hivetill(&["completions", shell])));
    for command in commands() {
        let name = command.last().expect("a name");
        for (shell, script) in &scripts {
            let is_named = match *shell {
                "bash" => script.lines().any(|line| line.trim().ends_with(&format!(",{name})"))),
                "zsh" => script.contains(&format!("'{name}:")),
                _ => script.contains(&format!("-a \"{name}\"")),
            };
            if !is_named {
                findings.push(format!("{shell}: {}", command.join(" ")));
            }
        }
    }
    assert!(findings.is_empty(), "{findings:#?}");
}

/// Returns what bash suggests after the words of a command line, the last of which is being typed.
fn suggested(words: &[&str]) -> BTreeSet<String> {
    let (program, current) = (env!("CARGO_BIN_EXE_hivetill"), words.last().expect("a word"));
    let script = format!(
        "source <('{program}' completions bash)\ncomplete -p hivetill >&2\nCOMP_WORDS=({}) COMP_CWORD={}\n_hivetill hivetill '{current}' ''\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.join(" "),
        words.len() - 1,
    );
    run(Command::new("bash").args(["-euc", &script])).lines().map(str::to_owned).collect()
}

fn bash_completes_commands_and_flags() {
    assert_eq!(suggested(&["hivetill", "simu"]), BTreeSet::from(["simulate".to_owned()]));
    assert_eq!(suggested(&["hivetill", "admin", "pay"]), BTreeSet::from(["payment".to_owned()]));
    assert_eq!(suggested(&["hivetill", "serve", "--dat"]), BTreeSet::from(["--data".to_owned()]));
    assert_eq!(suggested(&["hivetill", "completions", "z"]), BTreeSet::from(["zsh".to_owned()]));
}

fn every_command_has_a_manual_page() {
    // A directory that does not exist yet.
    let pages = folder("man").join("man1");
    hivetill(&["man", "--to", pages.to_str().expect("a path")]);
    let written = std::fs::read_dir(&pages).expect("the pages").map(|entry| entry.expect("an entry").file_name());
    let written: BTreeSet<String> = written.map(|name| name.into_string().expect("a name")).collect();
    let names = commands().iter().map(|command| format!("hivetill-{}.1", command.join("-"))).collect::<Vec<_>>();
    let wanted: BTreeSet<String> = names.into_iter().chain(["hivetill.1".to_owned()]).collect();
    assert_eq!(written, wanted);
    let read = |name: &str| std::fs::read_to_string(pages.join(name)).expect("a page");
    let program = read("hivetill.1");
    for name in subcommands(&[]) {
        let title = format!("hivetill\\-{}(1)", name.replace('-', "\\-"));
        assert!(program.contains(&title), "the page of the program does not name {name}");
    }
    let serve = read("hivetill-serve.1");
    let title = format!(".TH HIVETILL-SERVE 1 \" \" \"Hivetill {}\" \"Hivetill manual\"", env!("CARGO_PKG_VERSION"));
    for wanted in [title.as_str(), "Run the whole gateway on the Hive ledger", "\\-\\-config", "\\-\\-data"] {
        assert!(serve.contains(wanted), "{wanted} is not in the page of serve:\n{serve}");
    }
    // The page names the environment variable and not its value.
    let listen = read("hivetill-listen.1");
    assert!(listen.contains("HIVETILL_API"), "{listen}");
}

fn the_manual_page_of_the_program_goes_to_standard_output() {
    let page = hivetill(&["man"]);
    assert!(page.contains(".TH HIVETILL 1"), "{page}");
    assert!(page.contains("Exit codes: 0 success"), "{page}");
}

fn the_health_check_finds_the_gateway_by_its_settings() {
    let api = &shared().api.base;
    let port = api.rsplit(':').next().expect("a port");
    let report = hivetill(&["health", "--url", api]);
    assert!(report.starts_with('{'), "{report}");
    hivetill(&["health", &format!("--set=listen=0.0.0.0:{port}")]);
    hivetill(&["health", "--live", "--url", api]);
    hivetill(&["health", "--set=listen=127.0.0.1:1", &format!("--set=health.listen=127.0.0.1:{port}")]);
}

fn the_health_check_fails_without_a_ready_gateway() {
    let mut dev = Dev::start();
    let url = dev.api.base.clone();
    hivetill(&["health", "--url", &url]);
    dev.process.kill();
    let ended = Process::start(&["health", "--url", &url]).finish();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains(&format!("{url}/readyz does not respond")), "{ended:?}");
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_path_buf()
}

/// Returns the checksum of every package of the lock file that has one, by name and version.
fn checksums() -> BTreeMap<(String, String), String> {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).expect("the lock file");
    let packages = lock.split("[[package]]").skip(1).filter_map(|package| {
        let member = |name: &str| {
            package
                .lines()
                .find_map(|line| Some(line.strip_prefix(&format!("{name} = \""))?.strip_suffix('"')?.to_owned()))
        };
        Some(((member("name")?, member("version")?), member("checksum")?))
    });
    packages.collect()
}

fn the_bill_of_materials_lists_the_packages_of_the_binary() {
    let (file, binary) = (folder("bill").join("hivetill.cdx.json"), root().join("LICENSE"));
    // The script hashes whatever file it is given as the binary.
    let mut script = Command::new(root().join(".ci/sbom"));
    let notices = file.with_file_name("NOTICES");
    script.args([file.as_path(), binary.as_path(), Path::new("1.2.3"), Path::new("--notices"), &notices]);
    run(script.env("SOURCE_DATE_EPOCH", "0").env("CARGO_NET_OFFLINE", "true"));
    let bill: Value = serde_json::from_str(&std::fs::read_to_string(file).expect("the bill")).expect("JSON");
    let program = &bill["metadata"]["component"];
    let hash = hex::encode(Sha256::digest(std::fs::read(binary).expect("the file")));
    assert_eq!((&bill["bomFormat"], &bill["specVersion"]), (&json!("CycloneDX"), &json!("1.6")));
    assert_eq!((&program["name"], &program["version"]), (&json!("hivetill"), &json!("1.2.3")));
    assert_eq!(program["hashes"], json!([{ "alg": "SHA-256", "content": hash }]));
    assert_eq!(bill["metadata"]["timestamp"], "1970-01-01T00:00:00Z");
    let checksums = checksums();
    let components = bill["components"].as_array().expect("components");
    // By name and version.
    let mut scopes = BTreeMap::new();
    for component in components {
        let text =
            |member: &str| component[member].as_str().unwrap_or_else(|| panic!("no {member}: {component}")).to_owned();
        let checksum = checksums.get(&(text("name"), text("version")));
        assert_eq!(component["hashes"][0]["content"].as_str(), checksum.map(String::as_str), "{component}");
        assert_eq!(component["purl"].is_string(), checksum.is_some(), "{component}");
        assert!(component["licenses"][0]["expression"].is_string(), "{component}");
        scopes.insert((text("name"), text("version")), text("scope"));
    }
    for (name, scope) in [
        ("engine", "required"),
        ("tokio", "required"),
        ("redb", "required"),
        ("serde_derive", "excluded"),
        ("cc", "excluded"),
    ] {
        let found: Vec<&String> =
            scopes.iter().filter(|((known, _), _)| known == name).map(|(_, scope)| scope).collect();
        assert_eq!(found, [scope], "{name}");
    }
    for name in ["proptest", "libtest-mimic", "chromiumoxide", "loom"] {
        assert!(scopes.keys().all(|(known, _)| known != name), "{name} is used by tests only");
    }
    let notices = std::fs::read_to_string(notices).expect("the notices");
    for ((name, version), scope) in &scopes {
        let is_listed = notices.lines().any(|line| line.starts_with(&format!("{name} {version}: ")));
        let is_foreign = checksums.contains_key(&(name.clone(), version.clone()));
        assert_eq!(is_listed, scope == "required" && is_foreign, "{name} {version} in the notices");
    }
    assert!(notices.contains("THE SOFTWARE IS PROVIDED \"AS IS\""), "the notices contain no licence");
    // The program and each component have an entry.
    assert_eq!(bill["dependencies"].as_array().map(Vec::len), Some(components.len() + 1));
}
