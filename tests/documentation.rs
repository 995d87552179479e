//! Tests of the documentation: links resolve, and commands do what their page states.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use engine::payment::Exception;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use yaml_rust2::{Yaml, YamlLoader};

use crate::{
    golden::is_update,
    harness::{Dev, Hook, Receiver, shared, until},
};

crate::tests!(
    every_link_of_the_documentation_resolves,
    every_path_in_the_contributing_guide_exists,
    the_commands_for_testing_a_shop_work,
    variables_exported_by_the_guides_are_not_read_as_settings,
    the_webhook_page_shows_complete_requests_as_sent,
    the_files_for_scaling_out_name_existing_settings_and_commands,
    the_compose_file_for_scaling_out_is_consistent,
    the_page_about_scaling_out_names_what_exists,
);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_path_buf()
}

/// Returns every page, at the top level and below `docs`.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    let mut folders = vec![root().join("docs"), root().join("api/sdk")];
    let is_page = |path: &Path| path.extension().is_some_and(|ending| ending == "md");
    let top = std::fs::read_dir(root()).expect("the root").flatten().map(|entry| entry.path());
    pages.extend(top.filter(|path| is_page(path)));
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() && !path.ends_with("node_modules") {
                folders.push(path);
            } else if is_page(&path) {
                pages.push(path);
            }
        }
    }
    pages
}

/// Returns a page's text without code.
fn prose(text: &str) -> String {
    text.split("```").step_by(2).collect()
}

/// Returns the anchor of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn every_link_of_the_documentation_resolves() {
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

fn every_path_in_the_contributing_guide_exists() {
    let tops = ["engine", "storage", "actors", "proto", "api", "simulations", "tests", "docs", ".ci"];
    let (mut findings, mut paths) = (Vec::new(), 0);
    for name in ["contributing.md", "explanation/architecture.md", "explanation/simulation.md"] {
        let text = std::fs::read_to_string(root().join("docs").join(name)).expect("a page");
        for word in prose(&text).split('`').skip(1).step_by(2).filter(|word| !word.contains([' ', '*'])) {
            // Results exist only after `.ci/long` has run.
            let is_path = word.split_once('/').is_some_and(|(top, _)| tops.contains(&top));
            if is_path && !word.starts_with("docs/results/") {
                paths += 1;
                if !root().join(word).exists() {
                    findings.push(format!("{name}: {word} does not exist"));
                }
            }
        }
    }
    assert!(paths > 50, "{paths}");
    assert!(findings.is_empty(), "{findings:#?}");
}

/// Returns a page's code blocks of a language, in order.
pub(crate) fn blocks(page: &str, language: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join(page)).expect("the page");
    let opening = format!("{language}\n");
    let blocks = text.split("```").skip(1).step_by(2);
    blocks.filter_map(|block| block.strip_prefix(&opening).map(str::to_owned)).collect()
}

fn variables_exported_by_the_guides_are_not_read_as_settings() {
    let mut exported = BTreeSet::new();
    for page in pages().iter().filter(|page| page.parent().is_some_and(|folder| folder.ends_with("how-to"))) {
        let text = std::fs::read_to_string(page).expect("a page");
        let is_part = |c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
        exported.extend(text.split(is_part).filter(|word| word.starts_with("HIVETILL_")).map(str::to_owned));
    }
    // An exported setting must not be read as one.
    let settings = [
        "HIVETILL_LEDGER_NODES",
        "HIVETILL_GRPC_TOKEN",
        "HIVETILL_GRPC_SERVICE_TOKEN",
        "HIVETILL_STORE_URL",
        "HIVETILL_MASTER_KEY_FILE",
        "HIVETILL_BASE_URL",
    ];
    assert!(settings.iter().all(|name| exported.remove(*name)) && exported.len() > 4, "{exported:?}");
    let mut config = Command::new(env!("CARGO_BIN_EXE_hivetill"));
    config.arg("config").env_clear().envs(exported.iter().map(|name| (name, "x")));
    let output = config.output().expect("the binary starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn the_commands_for_testing_a_shop_work() {
    let dev = Dev::start();
    let commands = blocks("docs/how-to/test-your-shop.md", "sh");
    assert!(commands.len() > 9, "the page is read wrongly");
    for exception in Exception::ALL {
        let waited_for = format!("\"exceptions\":\\[\"{}\"\\]", exception.as_str());
        assert!(commands.iter().any(|block| block.contains(&waited_for)), "{} is not produced", exception.as_str());
    }
    let program = Path::new(env!("CARGO_BIN_EXE_hivetill")).parent().expect("its folder").display();
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &format!("PATH={program}:$PATH\n{}", commands.join("\n"))])
        .env("HIVETILL_LEDGER_NODES", &dev.ledger.rpc.base)
        .env("HIVETILL_API", &dev.api.base)
        .env("HIVETILL_CONTROL", &dev.ledger.control.base)
        .env("HIVETILL_API_KEY", dev.startup["merchant"]["apiKey"].as_str().expect("a key"))
        .stdin(Stdio::null())
        .output()
        .expect("bash starts");
    let report = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{report}");
    assert!(!report.contains("\"error\""), "{report}");
}

/// The page of webhook requests, and the secret of its examples.
const WEBHOOKS: &str = "docs/reference/webhook-requests.md";
const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const MILLISECONDS: &str = "1795183512000";

fn the_webhook_page_shows_complete_requests_as_sent() {
    let (shop, receiver) = (shared().shop(), Receiver::start());
    shop.set_webhook(&receiver);
    let hook_of = |is: &dyn Fn(&Value) -> bool| {
        until("the webhook", || receiver.hooks().into_iter().find(|hook| is(&hook.json()["data"])))
    };
    let order = json!({
        "amount": "1500", "currency": "HBD", "description": "A blue mug", "metadata": { "orderId": "A-1001" },
    });
    let (paid, cancelled) = (shop.open_with(&order), shop.open_with(&order));
    shared().ledger.transfer(&shared().ledger.account("payer"), &shop.account.name, "1.500 HBD", &paid.memo);
    shop.cancelled(&cancelled.id);
    shop.post(&format!("/api/public/merchants/{}/webhook-test", shop.id), &json!({})).send().ok(200);
    let hooks = [
        hook_of(&|data| data["id"] == paid.id.as_str()),
        hook_of(&|data| data["id"] == cancelled.id.as_str()),
        hook_of(&|data| data["id"].as_str().is_some_and(|id| id.starts_with("test_"))),
    ];
    let shown = hooks.map(|hook| shown(&hook));
    let path = root().join(WEBHOOKS);
    if is_update() {
        let text = std::fs::read_to_string(&path).expect("the page");
        let mut parts: Vec<String> = text.split("```http\n").map(str::to_owned).collect();
        for (part, shown) in parts[1..].iter_mut().zip(&shown) {
            let rest = part.split_once("```").expect("a block that ends").1.to_owned();
            *part = format!("{shown}```{rest}");
        }
        std::fs::write(&path, parts.join("```http\n")).expect("the page is written");
    }
    for (written, shown) in blocks(WEBHOOKS, "http").iter().zip(&shown) {
        assert_eq!(
            shown, written,
            "run: HIVETILL_UPDATE_GOLDEN=1 cargo test --workspace --test tests -- documentation"
        );
    }
    assert_eq!(blocks(WEBHOOKS, "http").len(), shown.len());
}

/// Formats a request with fixed ids and times, signed with the page's secret.
fn shown(hook: &Hook) -> String {
    let event = hook.json();
    let is_test = event["data"]["id"].as_str().is_some_and(|id| id.starts_with("test_"));
    let payment = if is_test { "test_01m82at8z2ebrs1794qvc3pdbw" } else { "pay_01m82at8z2ebrs1794qvc3pdbw" };
    let samples = [
        (&event["id"], "evt_01m82atc5k3v8q2w4e6r8t0y1a"),
        (&event["data"]["id"], payment),
        (&event["data"]["merchantId"], "mer_01m82at8z2ebrs1794qvc3pdbw"),
        (&event["data"]["internalId"], "cae1f2d35c8b4f9a1e6d7c0b2a3948576c5d4e3f"),
        (&event["createdAt"], "2026-11-20T14:05:12.000Z"),
    ];
    let mut body = String::from_utf8(hook.body.clone()).expect("text");
    for (value, sample) in samples {
        if let Some(value) = value.as_str() {
            body = body.replace(value, sample);
        }
    }
    let mac = |key: &[u8], prefix: &str| {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any key");
        mac.update(prefix.as_bytes());
        mac.update(body.as_bytes());
        mac.finalize().into_bytes()
    };
    let seconds = &MILLISECONDS[..10];
    let bytes = BASE64_STANDARD.decode(&SECRET["whsec_".len()..]).expect("base64");
    let (id, delivery) = ("evt_01m82atc5k3v8q2w4e6r8t0y1a", "whd_01m82atcw4q6t8y0v2x4z6b8d0");
    let mut lines = vec![hook.head.replace("?shop=7", "")];
    for (name, value) in &hook.headers {
        let value = match name.as_str() {
            "host" => "shop.example.com".to_owned(),
            "content-length" => body.len().to_string(),
            "x-hivetill-timestamp" => MILLISECONDS.to_owned(),
            "x-hivetill-delivery" => delivery.to_owned(),
            "x-hivetill-signature" => hex::encode(mac(SECRET.as_bytes(), &format!("{MILLISECONDS}."))),
            "webhook-id" => id.to_owned(),
            "webhook-timestamp" => seconds.to_owned(),
            "webhook-signature" => format!("v1,{}", BASE64_STANDARD.encode(mac(&bytes, &format!("{id}.{seconds}.")))),
            _ => value.to_str().expect("a text").to_owned(),
        };
        lines.push(format!("{name}: {value}"));
    }
    lines[1..].sort_unstable();
    format!("{}\n\n{body}\n", lines.join("\n"))
}

const SCALE_OUT: &str = "docs/deploy/scale-out";

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the names of all settings and their environment variables.
fn settings() -> BTreeSet<String> {
    let page = read("docs/reference/settings.md");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let names: BTreeSet<String> = rows
        .flat_map(|row| [row.split('`').nth(1), row.split("`HIVETILL_").nth(1).and_then(|rest| rest.split('`').next())])
        .flatten()
        .map(|name| {
            if name.starts_with(|c: char| c.is_ascii_uppercase()) {
                format!("HIVETILL_{name}")
            } else {
                name.to_owned()
            }
        })
        .collect();
    assert!(names.contains("store.url") && names.contains("HIVETILL_STORE_URL"), "{names:?}");
    names
}

/// Checks that a command line of the program has a command and flags that exist.
#[track_caller]
fn check_command(line: &str) {
    let mut words = line.split_whitespace();
    let program = words.next().expect("a program");
    assert!(program == "hivetill" || program.ends_with("/hivetill"), "{line}");
    let command = words.next().expect("a command");
    let help =
        Command::new(env!("CARGO_BIN_EXE_hivetill")).args([command, "--help"]).output().expect("the binary starts");
    assert!(help.status.success(), "{line}");
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    for flag in words.filter(|word| word.starts_with("--")) {
        let flag = flag.trim_end_matches([')', '`']).split('=').next().unwrap_or(flag);
        assert!(
            help.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).any(|word| word == flag),
            "{line}: {flag}"
        );
    }
}

/// Checks that the program accepts settings: of a file, and of environment variables.
#[track_caller]
fn check_settings(file: Option<&str>, variables: &[(String, String)]) {
    let mut config = Command::new(env!("CARGO_BIN_EXE_hivetill"));
    config.arg("config").env_clear().envs(variables.iter().map(|(name, value)| (name, value)));
    if let Some(file) = file {
        config.arg("--config").arg(root().join(file));
    }
    let output = config.output().expect("the binary starts");
    assert!(output.status.success(), "{file:?} {variables:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn the_files_for_scaling_out_name_existing_settings_and_commands() {
    let left_alone =
        |unit: &str| unit.lines().find(|line| line.starts_with("RestartPreventExitStatus=")).map(str::to_owned);
    let whole = left_alone(&read("docs/deploy/hivetill.service")).expect("a list");
    for (name, files) in [("engine", 4), ("facade", 3)] {
        let unit = read(&format!("{SCALE_OUT}/hivetill-{name}@.service"));
        let lines = unit.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let (mut variables, mut credentials, mut sections) = (Vec::new(), BTreeSet::new(), Vec::new());
        for line in lines {
            if line.starts_with('[') {
                sections.push(line);
                continue;
            }
            let (key, value) = line.split_once('=').unwrap_or_else(|| panic!("{line} is no setting of a unit"));
            match key {
                "ExecStart" => check_command(value),
                "Environment" => {
                    let pairs = value.split(' ').filter_map(|pair| pair.split_once('='));
                    variables.extend(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
                }
                "LoadCredential" => drop(credentials.insert(value.split(':').next().expect("a name").to_owned())),
                _ => {}
            }
        }
        assert_eq!(sections, ["[Unit]", "[Service]", "[Install]"]);
        let used: BTreeSet<String> =
            variables.iter().filter_map(|(_, value)| value.strip_prefix("%d/")).map(str::to_owned).collect();
        assert_eq!((&credentials, credentials.len()), (&used, files), "{name}");
        check_settings(Some(&format!("{SCALE_OUT}/{name}.toml")), &variables);
        assert_eq!(left_alone(&unit), Some(whole.clone()));
    }
}

/// Returns the variables of an environment, with a text of its own for each of the shell's variables.
fn environment(yaml: &Yaml) -> Vec<(String, String)> {
    let pairs = yaml.as_hash().expect("an environment").iter();
    let text = |yaml: &Yaml| yaml.as_str().expect("a text").to_owned();
    let resolve = |value: String| {
        let mut parts = value.split("${");
        let mut resolved = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (variable, rest) = part.split_once('}').expect("its end");
            let name = variable.split(':').next().unwrap_or(variable).to_lowercase();
            resolved.push_str(&format!("{name:x<40}{rest}"));
        }
        resolved
    };
    pairs.map(|(name, value)| (text(name), resolve(text(value)))).collect()
}

fn the_compose_file_for_scaling_out_is_consistent() {
    let (settings, text) = (settings(), read(&format!("{SCALE_OUT}/compose.yaml")));
    let file = YamlLoader::load_from_str(&text).expect("YAML").remove(0);
    let names = |yaml: &Yaml| -> BTreeSet<String> {
        let of = |yaml: &Yaml| yaml.as_str().map(str::to_owned);
        match yaml {
            Yaml::Hash(hash) => hash.keys().filter_map(of).collect(),
            Yaml::Array(list) => list.iter().filter_map(|item| of(item).or_else(|| of(&item["source"]))).collect(),
            _ => BTreeSet::new(),
        }
    };
    let services = names(&file["services"]);
    let mut commands = Vec::new();
    for name in &services {
        let service = &file["services"][name.as_str()];
        for (own, all) in
            [("configs", &file["configs"]), ("secrets", &file["secrets"]), ("depends_on", &file["services"])]
        {
            assert!(names(&service[own]).is_subset(&names(all)), "{name}: {own}");
        }
        for volume in names(&service["volumes"]) {
            let source = volume.split(':').next().expect("a source").to_owned();
            // A file that the operator makes, a file beside this one, or a volume.
            let is_there = source == "./userlist.txt" || root().join(SCALE_OUT).join(&source).is_file();
            assert!(is_there || names(&file["volumes"]).contains(&source), "{name}: {source}");
        }
        if service["<<"] != file["x-hivetill"] {
            continue;
        }
        commands.push(service["command"].as_str().expect("a command"));
        check_command(&format!("hivetill {}", service["command"].as_str().expect("a command")));
        let variables = environment(&service["environment"]);
        assert!(variables.iter().all(|(name, _)| settings.contains(name)), "{variables:?}");
        check_settings(None, &variables);
        for (_, value) in variables.iter().filter(|(name, _)| name == "HIVETILL_ENGINE_URL") {
            let host = |url: &str| url.trim_start_matches("http://").trim_end_matches(":8081").to_owned();
            assert!(value.split(',').all(|url| services.contains(&host(url))), "{value}");
        }
    }
    commands.sort_unstable();
    assert_eq!(commands, ["engine", "engine", "facade", "facade", "migrate"]);
}

fn the_page_about_scaling_out_names_what_exists() {
    const PAGE: &str = "docs/how-to/scale-out.md";
    let (settings, metrics) = (settings(), read("docs/reference/metrics.md"));
    let commands = blocks(PAGE, "sh").join("");
    let numbers = commands.lines().filter_map(|line| line.rsplit_once("# ")?.1.parse::<usize>().ok());
    assert_eq!(numbers.collect::<Vec<_>>(), (1..=10).collect::<Vec<_>>(), "ten commands");
    let text = read(PAGE);
    let ours = commands.lines().flat_map(|line| line.split("&& ")).filter(|part| part.starts_with("hivetill "));
    let shown = text.split('`').skip(1).step_by(2).filter(|word| word.starts_with("hivetill "));
    let mut checked = 0;
    for command in ours.chain(shown) {
        check_command(command.split("  #").next().unwrap_or(command));
        checked += 1;
    }
    assert!(checked >= 4, "{checked}");
    let is_part = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    for word in text.split(is_part).filter(|word| word.starts_with("HIVETILL_")) {
        assert!(settings.contains(word), "{word}");
    }
    for word in text.split(is_part).filter(|word| word.starts_with("hivetill_")) {
        assert!(metrics.contains(&format!("`{word}`")), "{word}");
    }
    let sections: BTreeSet<&str> =
        settings.iter().filter_map(|name| name.split_once('.')).map(|(section, _)| section).collect();
    let dotted = text
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| word.split_once('.').is_some_and(|(s, _)| sections.contains(s)));
    for name in dotted {
        assert!(settings.contains(name), "{name}");
    }
}
