//! The documentation is held to the truth: links lead somewhere, and commands do what their page says.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::harness::Dev;

crate::tests!(every_link_of_the_documentation_leads_somewhere, the_page_on_testing_a_shop_does_what_it_says);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_path_buf()
}

/// Returns every page: at the top, and below `docs`.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    let mut folders = vec![root().join("docs")];
    let is_page = |path: &Path| path.extension().is_some_and(|ending| ending == "md");
    let top = std::fs::read_dir(root()).expect("the root").flatten().map(|entry| entry.path());
    pages.extend(top.filter(|path| is_page(path)));
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if is_page(&path) {
                pages.push(path);
            }
        }
    }
    pages
}

/// Returns a page's text outside of code.
fn prose(text: &str) -> String {
    text.split("```").step_by(2).collect()
}

/// Returns the anchor of a heading as code hosts make it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn every_link_of_the_documentation_leads_somewhere() {
    let (mut findings, mut links) = (Vec::new(), 0);
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page");
        for target in prose(&text).split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            links += 1;
            let (file, place) = target.split_once('#').unwrap_or((target, ""));
            let path = if file.is_empty() { page.clone() } else { page.parent().expect("a folder").join(file) };
            let name = page.strip_prefix(root()).unwrap_or(&page).display().to_string();
            if !path.exists() {
                findings.push(format!("{name}: {target} does not exist"));
            } else if !place.is_empty() && path.is_file() {
                let there = std::fs::read_to_string(&path).expect("a page");
                let headings = there.lines().filter(|line| line.starts_with('#')).map(|l| l.trim_start_matches('#'));
                if !headings.map(anchor).any(|known| known == place) {
                    findings.push(format!("{name}: {target} names no heading"));
                }
            }
        }
    }
    assert!(links > 30, "{links}");
    assert!(findings.is_empty(), "{findings:#?}");
}

/// Returns a page's blocks of a language, in order.
pub(crate) fn blocks(page: &str, language: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join(page)).expect("the page");
    let opening = format!("{language}\n");
    let blocks = text.split("```").skip(1).step_by(2);
    blocks.filter_map(|block| block.strip_prefix(&opening).map(str::to_owned)).collect()
}

fn the_page_on_testing_a_shop_does_what_it_says() {
    let dev = Dev::start();
    let commands = blocks("docs/how-to/test-your-shop.md", "sh");
    assert!(commands.len() > 9, "the page is read wrongly");
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &commands.join("\n")])
        .env("HIVETILL_API", &dev.api.base)
        .env("HIVETILL_CONTROL", &dev.ledger.control.base)
        .env("HIVETILL_API_KEY", dev.said["merchant"]["apiKey"].as_str().expect("a key"))
        .stdin(Stdio::null())
        .output()
        .expect("bash starts");
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("\"error\""), "{said}");
}
