//! A transcript: requests and complete responses as text, with ids, keys and times replaced by numbered placeholders.

use std::{collections::BTreeMap, fmt::Write};

use http::HeaderMap;
use serde_json::Value;

use crate::harness::{Api, Hook};

/// Headers that are not part of the interface.
const DROPPED: [&str; 4] = ["date", "content-length", "connection", "host"];

/// A transcript under construction.
pub(super) struct Script<'a> {
    api: &'a Api,
    text: String,
}

impl<'a> Script<'a> {
    pub(super) const fn new(api: &'a Api) -> Self {
        Self { api, text: String::new() }
    }

    /// Sends a request, records the exchange, and returns the response body.
    pub(super) fn exchange(
        &mut self,
        title: &str,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: Option<&Value>,
    ) -> Value {
        let mut builder = self.api.request(method, path).header("x-request-id", "golden");
        let out = &mut self.text;
        let _ = writeln!(out, "### {title}\n\n> {method} {path}");
        if let Some(key) = key {
            builder = builder.bearer(key);
            let _ = writeln!(out, "> authorization: Bearer {key}");
        }
        if let Some(body) = body {
            builder = builder.json(body);
            let _ = writeln!(out, "> content-type: application/json\n>\n> {body}");
        }
        let response = builder.send();
        let _ = writeln!(out, "\n{}", response.status);
        write_headers(out, &response.headers);
        let _ = writeln!(out, "\n{}\n", indent(&response.text()));
        response.json()
    }

    /// Records a received webhook.
    pub(super) fn hear(&mut self, title: &str, hook: &Hook) {
        let out = &mut self.text;
        let _ = writeln!(out, "### {title}\n\n{}", hook.head);
        let mut headers = hook.headers.clone();
        for (name, value) in &mut headers {
            let name = name.as_str();
            let kind = match name {
                "webhook-signature" => "v1,<signature> v1,<signature of the old secret>",
                "x-hivetill-signature" | "x-hivetill-signature-previous" => "<signature>",
                "x-hivetill-timestamp" => "<milliseconds>",
                "webhook-timestamp" => "<seconds>",
                _ => continue,
            };
            *value = kind.parse().expect("a header");
        }
        write_headers(out, &headers);
        let _ = writeln!(out, "\n{}\n", indent(&String::from_utf8_lossy(&hook.body)));
    }

    /// Returns the transcript with placeholders for everything that varies between runs.
    pub(super) fn text(self) -> String {
        let host = self.api.base.strip_prefix("http://").unwrap_or_default();
        neutral(&self.text.replace(&self.api.base, "<base>").replace(host, "<host>"))
    }
}

fn write_headers(out: &mut String, headers: &HeaderMap) {
    let mut lines: Vec<String> = headers
        .iter()
        .filter(|(name, _)| !DROPPED.contains(&name.as_str()))
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap_or("?")))
        .collect();
    lines.sort();
    for line in lines {
        let _ = writeln!(out, "{line}");
    }
}

/// Formats JSON with line breaks, in the original order.
fn indent(json: &str) -> String {
    let (mut out, mut depth, mut in_text, mut escaped) = (String::new(), 0_usize, false, false);
    let mut chars = json.chars().peekable();
    while let Some(c) = chars.next() {
        if in_text {
            out.push(c);
            in_text = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            '{' | '[' if matches!(chars.peek(), Some('}' | ']')) => {
                out.push(c);
                out.extend(chars.next());
            }
            '{' | '[' => {
                depth += 1;
                out.push(c);
                line(&mut out, depth);
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            '"' => {
                in_text = true;
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

fn line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

/// Replaces what varies between runs by placeholders, numbered in order of occurrence.
fn neutral(text: &str) -> String {
    let mut names = BTreeMap::<String, String>::new();
    let mut counts = BTreeMap::<&'static str, u32>::new();
    let mut out = String::new();
    for text_line in text.lines() {
        if let Some((member, _)) = text_line.split_once("\"blockNum\": ") {
            let _ = writeln!(out, "{member}\"blockNum\": <number>,");
            continue;
        }
        if let Some((member, _)) = text_line.split_once("\"apiKeyLast4\": ") {
            let _ = writeln!(out, "{member}\"apiKeyLast4\": \"<last4>\",");
            continue;
        }
        let mut rest = text_line;
        while !rest.is_empty() {
            // Base64 contains slashes, which end words elsewhere.
            let word = if rest.starts_with("whsec_") { rest.find('"').unwrap_or(rest.len()) } else { word_len(rest) };
            if word == 0 {
                let first = rest.chars().next().map_or(1, char::len_utf8);
                out.push_str(&rest[..first]);
                rest = &rest[first..];
                continue;
            }
            replace_word(&rest[..word], &mut names, &mut counts, &mut out);
            rest = &rest[word..];
        }
        out.push('\n');
    }
    out
}

/// Returns the length of a word of an id, key, slug or time.
fn word_len(text: &str) -> usize {
    text.find(|c: char| !(c.is_ascii_alphanumeric() || "_-:.+".contains(c))).unwrap_or(text.len())
}

fn replace_word<'w>(
    word: &'w str,
    names: &mut BTreeMap<String, String>,
    counts: &mut BTreeMap<&'static str, u32>,
    out: &mut String,
) {
    let is_id = |text: &str| text.len() == 26 && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let mut named = |kind: &'static str, whole: &'w str| {
        let name = names.entry(whole.to_owned()).or_insert_with(|| {
            let count = counts.entry(kind).or_default();
            *count += 1;
            format!("<{kind} {count}>")
        });
        name.clone()
    };
    let plain = word.strip_prefix("pos-").unwrap_or(word);
    for (prefix, kind) in [("pay_", "payment"), ("mer_", "merchant"), ("evt_", "event"), ("whd_", "delivery")] {
        if let Some(id) = plain.strip_prefix(prefix)
            && is_id(id)
            && !id.bytes().all(|b| b == b'0')
        {
            out.push_str(&word[..word.len() - plain.len()]);
            out.push_str(&named(kind, plain));
            return;
        }
    }
    let replaced = if is_time(word) {
        "<time>".to_owned()
    } else if word.strip_prefix("sk_live_").is_some_and(|key| key.len() == 48) {
        named("api key", word)
    } else if word.starts_with("whsec_") {
        named("webhook secret", word)
    } else if word.len() == 40 && word.bytes().all(|b| b.is_ascii_hexdigit()) {
        named("transaction", word)
    } else if let Some((title, token)) = word.rsplit_once('-').filter(|(_, token)| is_id(token)) {
        format!("{title}-{}", named("slug", token))
    } else {
        word.to_owned()
    };
    out.push_str(&replaced);
}

/// Matches `2026-11-20T14:00:00.000Z`.
fn is_time(word: &str) -> bool {
    word.len() == 24 && word.ends_with('Z') && engine::time::Timestamp::parse(word).is_some()
}
