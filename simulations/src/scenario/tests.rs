//! The page of the scenario format has what the code has.

use super::*;

/// Returns a section of the page.
fn section(heading: &str) -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/scenario-format.md");
    let page = std::fs::read_to_string(path).expect("the page");
    let (_, section) = page.split_once(&format!("\n## {heading}\n\n")).expect("the section");
    section.split("\n## ").next().expect("its text").to_owned()
}

#[test]
fn the_page_has_the_default_of_every_key_of_the_environment() {
    let section = section("Environment");
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let rows: Vec<(&str, &str)> = rows
        .filter_map(|row| row.split_once("` | `"))
        .map(|(key, rest)| (key, rest.split('`').next().unwrap_or("")))
        .collect();
    let lines: String = rows.iter().map(|(key, default)| format!("{key} = {default}\n")).collect();
    let script =
        read(&format!("name = \"a simulation with the defaults\"\n[environment]\n{lines}")).expect("a scenario");
    assert_eq!(script.setup, Setup::default());
    // What is written is every key.
    let written = write(&script);
    let (_, environment) = written.split_once("[environment]\n").expect("the keys");
    let keys = environment.lines().take_while(|line| !line.is_empty()).filter_map(|line| line.split_once(" = "));
    for (key, _) in keys {
        assert!(rows.iter().any(|(known, _)| *known == key), "{key} is not in the page");
    }
}

/// Writes parts per million as a share, `0.03%`.
fn share(ppm: u32) -> String {
    let digits = format!("{}.{:04}", ppm / 10_000, ppm % 10_000);
    format!("{}%", digits.trim_end_matches('0').trim_end_matches('.'))
}

#[test]
fn the_page_has_every_fault() {
    let rows = Fault::ALL
        .iter()
        .map(|fault| format!("| `{}` | {} | {} |\n", fault.as_str(), share(fault.default_ppm()), fault.description()));
    let table = format!("| fault | default | meaning |\n|---|---|---|\n{}", rows.collect::<String>());
    assert!(section("Faults").ends_with(&table), "the table must be\n{table}");
}

#[test]
fn the_page_has_every_action() {
    let section = section("Steps");
    for (who, actions) in actions::ACTORS {
        let named = section.contains(&format!("`{who}"))
            && actions.iter().all(|(does, _)| section.contains(&format!("`{does}`")));
        assert!(named, "{who} with {:?}", actions.iter().map(|(does, _)| does).collect::<Vec<_>>());
    }
}

#[test]
fn a_step_before_its_session_is_created_is_refused() {
    let steps = |paid: &str| {
        format!(
            r#"name = "Paid in time"
steps = [
  {{ at = "1m", who = "merchant 0", does = "create", session = "A", amount = "1.000 HBD" }},
  {{ at = "{paid}", who = "payer 0", does = "pay", session = "A", amount = "1.000 HBD" }},
]"#
        )
    };
    assert!(read(&steps("1m")).is_ok());
    let refused = read(&steps("59s")).expect_err("it is too early").to_string();
    assert!(refused.contains(r#"line 4: `session` "A" is not created until 1m"#), "{refused}");
}

#[test]
fn a_key_that_an_action_does_not_have_is_refused() {
    let step = |keys: &str| {
        format!(
            r#"name = "A node"
steps = [
  {{ at = "1m", who = "node 0", does = "be unreachable", for = "1m"{keys} }},
]"#
        )
    };
    assert!(read(&step("")).is_ok());
    let refused = read(&step(r#", by = "1s""#)).expect_err("it has no delay").to_string();
    assert_eq!(refused, r#"line 3: `by` has no meaning for `does` "be unreachable""#);
}
