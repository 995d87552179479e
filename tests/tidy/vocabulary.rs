//! The vocabulary of documentation, user-facing texts and sources: terms of the field instead of home-made words.

use super::{files, is_word, none};

crate::tests!(
    texts_for_readers_use_standard_terms,
    a_banned_phrase_is_found,
    sources_use_standard_terms,
    a_banned_word_is_found_in_identifiers,
);

/// Phrases that are banned from documentation and from texts of the program: each has a standard term or a plain form.
const BANNED_PHRASES: [&str; 59] = [
    "after the end and does not count",
    "all the same",
    "answers nonsense",
    "ask again with",
    "asks again",
    "astray",
    "became of",
    "becomes of",
    "beside the plan",
    "came of it",
    "every final block up to",
    "everybody’s limits",
    "fits by",
    "for a person",
    "goes on beside",
    "hand in",
    "handed in",
    "handing in",
    "hands in",
    "have come together",
    "how much of us",
    "in clear",
    "is handed out",
    "is to become of",
    "is told",
    "it tells",
    "least amount",
    "left alone until",
    "looks like it",
    "make it anew",
    "make some and",
    "may look elsewhere",
    "may not travel so",
    "no room",
    "nobody says",
    "nothing fits this filter",
    "of those that ended",
    "on whatever decides",
    "pay by a program",
    "room on the disk",
    "send it once more",
    "send it yourself",
    "so many hours",
    "sorted out",
    "stands in block",
    "stays where it",
    "stray transfer",
    "stray transfers",
    "the middle one of",
    "the other money",
    "things are wrong",
    "thread of their own",
    "was not accepted",
    "went astray",
    "what is asked",
    "who asks",
    "who comes alone",
    "who is logged in",
    "who reads sees",
];

/// Words that are banned from documentation and sources.
const BANNED_WORDS: [&str; 61] = [
    "anybody",
    "awake",
    "bells",
    "booked",
    "buried",
    "bury",
    "deed",
    "deeds",
    "desk",
    "desks",
    "doer",
    "doers",
    "everybody",
    "fate",
    "fates",
    "foresee",
    "freeze",
    "freezes",
    "freezing",
    "froze",
    "frozen",
    "honour",
    "honoured",
    "lane",
    "lanes",
    "law",
    "laws",
    "oracle",
    "oracles",
    "pace",
    "parked",
    "patience",
    "planted",
    "reborn",
    "resting",
    "room",
    "roster",
    "rosters",
    "said",
    "saying",
    "somebody",
    "speak",
    "speaks",
    "spoke",
    "standing",
    "standings",
    "stories",
    "story",
    "stranger",
    "strangers",
    "stray",
    "strays",
    "tell",
    "telling",
    "tells",
    "thaw",
    "thawed",
    "thaws",
    "told",
    "world",
    "worlds",
];

fn texts_for_readers_use_standard_terms() {
    let mut findings = Vec::new();
    let documents = files(&[".md", ".proto", ".txt", ".json", ".yml"]);
    let documents = documents.iter().filter(|(path, _)| {
        // Results quote code.
        let is_page = path.starts_with("docs/") && !path.starts_with("docs/results/");
        let is_document = path == "README.md" || is_page || path.starts_with("proto/");
        is_document || path.starts_with("api/src/facade/openapi/words/")
    });
    let mut count = 0;
    for (path, text) in documents {
        count += 1;
        let (text, banned) = (normalized(text), BANNED_PHRASES.iter().chain(&BANNED_WORDS));
        findings.extend(banned.filter(|phrase| contains(&text, phrase)).map(|phrase| (path.clone(), *phrase)));
    }
    assert!(count > 40, "the documentation has moved");
    let is_checked =
        |path: &str| CHECKED_SOURCES.iter().any(|folder| path.starts_with(folder)) && !path.contains("tests");
    for (path, text) in files(&[".rs"]).iter().filter(|(path, _)| is_checked(path)) {
        let visible = normalized(&visible(path, text));
        let banned = BANNED_PHRASES.iter().filter(|phrase| phrase.contains(' '));
        findings.extend(banned.filter(|phrase| contains(&visible, phrase)).map(|phrase| (path.clone(), *phrase)));
    }
    none(&findings.into_iter().map(|(path, phrase)| format!("{path}: `{phrase}`")).collect::<Vec<_>>());
}

/// Sources whose comments, identifiers and texts are checked.
const CHECKED_SOURCES: [&str; 9] = [
    "actors/src/",
    "api/src/",
    "engine/src/",
    "proto/src/",
    "simulations/scenarios/",
    "simulations/src/",
    "simulations/tests/",
    "storage/src/",
    "tests/",
];

/// Words that are banned from those sources, besides `BANNED_WORDS`: each has a standard term or personifies a program.
const BANNED_WORDS_IN_SOURCES: [&str; 6] = ["answers", "asks", "handing", "hands", "says", "whom"];

fn sources_use_standard_terms() {
    let mut findings = Vec::new();
    let mut count = 0;
    for (path, text) in files(&[".rs", ".toml"]) {
        // This file names what it bans.
        let is_checked = CHECKED_SOURCES.iter().any(|source| path.starts_with(source));
        if !is_checked || path == "tests/tidy/vocabulary.rs" {
            continue;
        }
        count += 1;
        for (number, line) in text.lines().enumerate() {
            let banned = words(&checked_part(&path, line)).into_iter().filter(|word| {
                BANNED_WORDS.contains(&word.as_str()) || BANNED_WORDS_IN_SOURCES.contains(&word.as_str())
            });
            findings.extend(banned.map(|word| format!("{path}:{}: `{word}`", number + 1)));
        }
    }
    assert!(count > 500, "the checked sources have moved");
    none(&findings);
}

/// Returns a line without what keeps its name: an order book has bids and asks, the name of a random stream determines
/// what a seed draws, and the protocol of agents defines `open_world`.
fn checked_part(path: &str, line: &str) -> String {
    let has_order_book = path.ends_with("/hive_rpc.rs") || path.ends_with("/devnet/globals.rs");
    let line = if has_order_book { line.replace("asks", "") } else { line.replace("open_world", "") };
    match line.split_once(".fork(\"") {
        Some((before, rest)) => format!("{before} {}", rest.split_once('"').map_or("", |(_, after)| after)),
        None => line,
    }
}

fn a_banned_word_is_found_in_identifiers() {
    assert_eq!(words("let told_at = askWhom(HTTPDesk);"), ["let", "told", "at", "ask", "whom", "http", "desk"]);
}

/// Splits a line into words in lower case, at the word boundaries of identifiers, too.
fn words(line: &str) -> Vec<String> {
    let chars: Vec<char> = line.chars().collect();
    let mut words = vec![String::new()];
    for (at, c) in chars.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| chars[before]);
        let is_start = c.is_uppercase()
            && (before.is_some_and(char::is_lowercase)
                || before.is_some_and(char::is_uppercase) && chars.get(at + 1).is_some_and(|next| next.is_lowercase()));
        if is_start || !c.is_alphabetic() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphabetic()) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn a_banned_phrase_is_found() {
    assert!(has_phrase("Money that went ASTRAY.", "astray"));
    assert!(has_phrase("// It says what\n  // became of the payment", "became of"));
    assert!(!has_phrase("session.max_awake = 5", "awake"));
    assert!(!has_phrase("a firsthand input", "hand in"));
    let source = "// who asks\n    /// A payment that is handed in\nlet text = \"no room\";\n#[cfg(test)]\nmod tests {\"it tells\"}";
    let visible = visible("api/src/commands/pay.rs", source);
    assert!(has_phrase(&visible, "handed in") && has_phrase(&visible, "no room"));
    assert!(!has_phrase(&visible, "who asks") && !has_phrase(&visible, "it tells"));
    assert!(!has_phrase(&self::visible("actors/src/payments/payment.rs", source), "handed in"));
}

/// Returns the lines of a source that users may see: code, and the doc comments of commands, which are their help. Leaves
/// out other comments and unit tests.
fn visible(path: &str, source: &str) -> String {
    let is_command = path.starts_with("api/src/commands/");
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let is_help = |line: &str| is_command && line.starts_with("    /// ");
    let is_visible = |line: &&str| is_help(line) || !line.trim_start().starts_with("//");
    source.lines().filter(is_visible).collect::<Vec<_>>().join("\n")
}

/// Whether a text contains a phrase in lower case as whole words, also across the end of a line or of a comment's line.
fn has_phrase(text: &str, phrase: &str) -> bool {
    contains(&normalized(text), phrase)
}

/// Returns a text in lower case on one line, without the marks of comments.
fn normalized(text: &str) -> String {
    let words = text.split_whitespace().filter(|word| !matches!(*word, "//" | "///" | "//!"));
    words.collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Whether a normalized text contains a phrase as whole words.
fn contains(text: &str, phrase: &str) -> bool {
    let is_edge = |c: Option<char>| !is_word(c);
    text.match_indices(phrase)
        .any(|(at, _)| is_edge(text[..at].chars().next_back()) && is_edge(text[at + phrase.len()..].chars().next()))
}
