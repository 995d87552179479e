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
    let most = (name.chars().count() / 3).clamp(1, 3);
    // Two swapped letters are one edit.
    let near = known.into_iter().map(|known| (strsim::osa_distance(&name, &plain(known)), known));
    near.filter(|(distance, _)| *distance <= most).min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_' | '[' | ']')).flat_map(char::to_lowercase).collect()
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
            ("amuont", Some("amount")),
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
