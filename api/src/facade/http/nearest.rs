//! Suggests the known name nearest to an unknown one.

/// Longer names get no suggestion.
const MAX_CHARS: usize = 40;

/// Returns the known name nearest to `name`, if the edit distance is small. Case, hyphens, underscores and brackets are
/// ignored.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.chars().take(MAX_CHARS + 1).count() > MAX_CHARS {
        return None;
    }
    let name = plain(name);
    let most = (name.len() / 3).clamp(1, 3);
    let near = known.into_iter().map(|known| (distance(&name, &plain(known)), known));
    near.filter(|(distance, _)| *distance <= most).min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

fn plain(name: &str) -> Vec<char> {
    name.chars().filter(|c| !matches!(c, '-' | '_' | '[' | ']')).flat_map(char::to_lowercase).collect()
}

/// Returns the Levenshtein distance.
fn distance(one: &[char], other: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, c) in one.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, d) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(c != d);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_name_is_recognized_and_another_word_is_not() {
        let known = ["amount", "currency", "description", "redirectUrl", "cancelUrl", "metadata", "expiresInSeconds"];
        for (name, wanted) in [
            ("redirect_url", Some("redirectUrl")),
            ("RedirectURL", Some("redirectUrl")),
            ("currancy", Some("currency")),
            ("amout", Some("amount")),
            ("desc", None),
            ("expires_in", None),
            ("expiresInSecond", Some("expiresInSeconds")),
            ("orderId", None),
            ("", None),
            ("🐝", None),
        ] {
            assert_eq!(nearest(name, known), wanted, "{name}");
        }
        assert_eq!(nearest(&"x".repeat(60_000), known), None);
        assert_eq!(nearest("unusal", ["status", "unusual"]), Some("unusual"));
        assert_eq!(nearest("status[]", ["status"]), Some("status"));
    }
}
