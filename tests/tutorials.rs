//! Tutorials: every shell block of a page runs in order, in one shell, and prints what the page shows below it.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use libtest_mimic::Trial;

use crate::harness::folder;

crate::tests!(
    the_tutorial_on_agents_prints_what_it_shows,
    the_tutorial_on_integration_prints_what_it_shows,
    the_five_minute_payment_of_the_readme_works_as_printed,
    a_shell_block_is_paired_with_the_output_directly_below_it,
    only_ids_and_ports_may_differ_from_the_output_shown,
);

const AGENTS: &str = "docs/how-to/agents.md";
const INTEGRATE: &str = "docs/how-to/integrate.md";
/// Pages whose blocks all need root or another machine; they are listed as ignored.
const INSTALL: &str = "docs/how-to/install.md";

/// Printed before each block's output.
const MARK: &str = "---- block of the page ----";

/// Returns every test of this module, and each block that is not run as an ignored test with its reason.
pub(crate) fn all() -> Vec<Trial> {
    let mut all = tests();
    for page in [AGENTS, INTEGRATE, INSTALL] {
        for block in shell_blocks(&read(page)) {
            if let Some(reason) = block.skipped {
                let title = format!("tutorials::skipped::{page}:{}: {reason}", block.line);
                all.push(Trial::test(title, || Err("the block needs another machine".into())).with_ignored_flag(true));
            }
        }
    }
    all
}

/// A shell block of a page.
#[derive(Debug, PartialEq)]
struct Block {
    /// The line of its fence, from 1.
    line: usize,
    commands: String,
    /// The output shown: the block of `text` or `json` directly below.
    shown: String,
    /// Why it does not run here: the rest of a fence such as `sh skip needs root`.
    skipped: Option<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_path_buf()
}

fn read(page: &str) -> String {
    std::fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// Returns the shell blocks of a page, each with the output shown for it.
fn shell_blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut lines = text.lines().enumerate();
    // Whether only blank lines have passed since the last shell block.
    let mut is_directly_below = false;
    while let Some((index, line)) = lines.next() {
        let Some(fence) = line.strip_prefix("```") else {
            is_directly_below &= line.trim().is_empty();
            continue;
        };
        let body: String = lines
            .by_ref()
            .map(|(_, line)| line)
            .take_while(|line| *line != "```")
            .flat_map(|line| [line, "\n"])
            .collect();
        let (language, note) = fence.split_once(' ').unwrap_or((fence, ""));
        match language {
            "sh" => {
                let skipped = note.strip_prefix("skip ").map(str::to_owned);
                assert!(note.is_empty() || skipped.is_some(), "line {}: {fence}", index + 1);
                blocks.push(Block { line: index + 1, commands: body, shown: String::new(), skipped });
                is_directly_below = true;
            }
            "text" | "json" if is_directly_below => {
                blocks.last_mut().expect("the block above").shown = body;
                is_directly_below = false;
            }
            _ => is_directly_below = false,
        }
    }
    blocks
}

/// Replaces what differs from run to run: ids (26 letters and digits), hashes (40) and ports of this machine.
fn shape(text: &str) -> String {
    let mut shape = String::new();
    let mut word = String::new();
    for c in text.trim().chars().chain(['\n']) {
        if c.is_ascii_alphanumeric() {
            word.push(c);
            continue;
        }
        let is_id = matches!(word.len(), 26 | 40) && word.contains(|c: char| c.is_ascii_digit());
        let is_port = shape.ends_with("127.0.0.1:") && !word.is_empty();
        shape.push_str(if is_id || is_port { "…" } else { &word });
        word.clear();
        shape.push(c);
    }
    shape
}

/// Runs a script with the binary in its path, in a new folder, and returns its output; kills its remaining processes.
#[track_caller]
fn run(what: &str, script: &str) -> String {
    let work = folder("tutorial");
    let program = Path::new(env!("CARGO_BIN_EXE_hivetill")).parent().expect("a folder").display().to_string();
    let script = format!("trap 'kill $(jobs -p) 2>/dev/null || :' EXIT\nPATH={program}:$PATH\n{script}");
    let mut command = Command::new("bash");
    command.args(["-eu", "-c", &script]).current_dir(&work).env("HOME", &work).stdin(Stdio::null());
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"HIVETILL_")) {
        command.env_remove(name);
    }
    let output = command.output().expect("bash is there");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{what}, after the last block below: {}\n{stdout}\n{stderr}", output.status);
    stdout
}

/// Runs the blocks of a page, and compares what each prints with what the page shows; a block without a shown output
/// prints nothing.
#[track_caller]
fn check(page: &str, count: usize) {
    let blocks: Vec<Block> = shell_blocks(&read(page)).into_iter().filter(|block| block.skipped.is_none()).collect();
    assert_eq!(blocks.len(), count, "the shell blocks of {page}");
    let script: String = blocks.iter().map(|block| format!("printf '%s\\n' '{MARK}'\n{}\n", block.commands)).collect();
    let printed = run(page, &script);
    let printed: Vec<&str> = printed.split(&format!("{MARK}\n")).skip(1).collect();
    assert_eq!(printed.len(), blocks.len(), "{printed:#?}");
    for (block, printed) in blocks.iter().zip(printed) {
        assert_eq!(shape(printed), shape(&block.shown), "{page}:{}\n{}", block.line, block.commands);
    }
}

fn the_tutorial_on_agents_prints_what_it_shows() {
    check(AGENTS, 7);
}

fn the_tutorial_on_integration_prints_what_it_shows() {
    check(INTEGRATE, 11);
}

fn the_five_minute_payment_of_the_readme_works_as_printed() {
    let readme = read("README.md");
    let (_, steps) = readme.split_once("## Take a payment in five minutes").expect("its heading");
    for step in ["1. **Create** a payment of 1.500 HBD", "2. **Pay** it as alice", "3. **Read** its status"] {
        assert!(steps.contains(step), "{step}");
    }
    // The screen's command lines are the only lines that are not indented: two to create, one to pay, one to read.
    let printed = run(
        "README.md",
        r#"
hivetill dev --listen 127.0.0.1:0 --ledger-listen 127.0.0.1:0 --grpc-listen 127.0.0.1:0 --block-interval 250ms > screen &
until grep -q '^curl .*/status' screen; do sleep 0.2; done
grep '^[^ ]' screen > commands
test "$(wc -l < commands)" = 4
eval "$(sed -n 1,2p commands)"
eval "$(sed -n 3p commands)" > transfer
read_status() { eval "$(sed -n 4p commands)"; }
until read_status | grep -q '"status":"completed"'; do sleep 0.2; done
"#,
    );
    let (id, url) = printed.trim().split_once(' ').expect("the payment's id and its checkout URL");
    assert!(id.starts_with("pay_") && url.ends_with(&format!("/checkout/{id}")), "{printed}");
}

fn a_shell_block_is_paired_with_the_output_directly_below_it() {
    let page = "Text\n\n```sh\necho 1\necho 2\n```\n\n```text\n1\n2\n```\n\n```json\n{}\n```\n\n```sh skip needs root\nid\n```\n\n\
                Not its output:\n\n```text\n0\n```\n";
    let expected = [
        Block { line: 3, commands: "echo 1\necho 2\n".into(), shown: "1\n2\n".into(), skipped: None },
        Block { line: 17, commands: "id\n".into(), shown: String::new(), skipped: Some("needs root".into()) },
    ];
    assert_eq!(shell_blocks(page), expected);
}

fn only_ids_and_ports_may_differ_from_the_output_shown() {
    let shown = "{\"id\": \"pay_01m82at8z2ebrs1794qvc3pdbw\", \"url\": \"http://127.0.0.1:8080/hook\"}";
    let printed = "{\"id\": \"pay_01m8amra0peadvmjztxpt5a7bg\", \"url\": \"http://127.0.0.1:40445/hook\"}\n";
    assert_eq!(shape(shown), shape(printed));
    for other in [printed.replace("pay_", "mer_"), printed.replace("hook", "other"), printed.replace("5a7bg", "5a7b")] {
        assert_ne!(shape(shown), shape(&other));
    }
    assert_ne!(shape("200"), shape("401"));
}
