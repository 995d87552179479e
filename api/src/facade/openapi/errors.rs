//! The reference of errors, docs/reference/errors.md: each reason with its status, cause and fix, generated from the
//! table.

use std::{collections::BTreeMap, fmt::Write as _};

use proto::status::TABLE;

/// Causes and fixes by reason.
const WORDS: &str = include_str!("words/errors.txt");

/// Returns the rows of the text, in its order.
fn rows() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let lines = WORDS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.filter_map(|line| {
        let mut columns = line.split(" | ");
        Some((columns.next()?, columns.next()?, columns.next()?))
    })
}

/// Generates the page.
fn page() -> String {
    let places: BTreeMap<&str, usize> = rows().enumerate().map(|(place, (word, _, _))| (word, place)).collect();
    let mut known: Vec<_> = TABLE.iter().filter(|row| places.contains_key(row.name)).collect();
    known.sort_by_key(|row| (row.http, places[row.name]));
    let words: BTreeMap<_, _> = rows().map(|(word, cause, fix)| (word, (cause, fix))).collect();
    let mut page = String::from(
        "# Errors\n\n\
         Generated from the code by `HIVETILL_UPDATE_GOLDEN=1 cargo test --workspace --lib -- errors`; a test compares them.\n\n\
         Every refused request has this body. Compare `reason`; it is one word of the list below and never changes its meaning.\n\
         `statusMessage` and `details[].message` are for people and may change.\n\n\
         ```json\n\
         {\n  \"statusCode\": 400,\n  \"statusMessage\": \"amount: must be digits of the smallest unit\",\n  \
         \"code\": \"VALIDATION_ERROR\",\n  \"reason\": \"validation_failed\",\n  \
         \"requestId\": \"req_01m82at8z2ebrs1794qvc3pdbw\",\n  \
         \"details\": [{ \"field\": \"amount\", \"message\": \"must be digits of the smallest unit\" }]\n}\n\
         ```\n\n\
         `requestId` is empty where the request was no HTTP that could be read (`bad_request`).\n\n\
         ## What to do by class\n\n\
         | status | code | repeat? |\n|---|---|---|\n\
         | 400, 422 | `VALIDATION_ERROR` | no: the same request fails again; correct it |\n\
         | 401 | `AUTHENTICATION_ERROR` | no: check the key |\n\
         | 403 | `FORBIDDEN_ERROR` | no: the key or the merchant may not do it |\n\
         | 404 | `NOT_FOUND_ERROR` | no |\n\
         | 409, 410 | `API_ERROR` | read the record first: its state decides |\n\
         | 405, 408, 413, 414, 415, 431 | `API_ERROR` | no, but 408: the request itself is too large, too slow, or of a kind \
         that is not taken |\n\
         | 429 | `RATE_LIMIT_ERROR` | yes, after `Retry-After` |\n\
         | 5xx, a lost connection | `SERVER_ERROR` | yes, after `Retry-After`, with the same `Idempotency-Key` |\n\n\
         x402 responses also have `errorReason` or `invalidReason`: [x402](x402.md#every-word) explains each.\n\n\
         ## Every reason\n\n\
         | status | reason | cause | fix |\n|---|---|---|---|\n",
    );
    for row in known {
        let (cause, fix) = words[row.name];
        let _ = writeln!(page, "| {} | `{}` | {cause} | {fix} |", row.http, row.name);
    }
    page
}

/// The path of the page.
const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/errors.md");

#[test]
fn every_reason_has_a_cause_and_a_fix() {
    let wanted: Vec<&str> = TABLE.iter().map(|row| row.name).filter(|word| *word != "unspecified").collect();
    let written: Vec<&str> = rows().map(|(word, _, _)| word).collect();
    let missing: Vec<_> = wanted.iter().filter(|word| !written.contains(word)).collect();
    assert!(missing.is_empty(), "add a row to openapi/words/errors.txt for each of {missing:?}");
    assert!(rows().all(|(_, cause, fix)| !cause.is_empty() && !fix.is_empty()));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the one switch of the tests")]
fn the_page_of_errors_is_current() {
    if std::env::var("HIVETILL_UPDATE_GOLDEN").is_ok() {
        std::fs::write(PATH, page()).expect("the page is written");
    }
    let written = std::fs::read_to_string(PATH).unwrap_or_default();
    assert!(written == page(), "run: HIVETILL_UPDATE_GOLDEN=1 cargo test --workspace --lib -- errors");
}
