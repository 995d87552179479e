//! The languages of the checkout and their phrases.

mod phrases;

/// A language of the checkout. Its number is the index of its column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lang {
    English,
    Spanish,
    German,
    French,
    Portuguese,
    Korean,
    Arabic,
}

/// Every language with its tag and its native name, in the order of the columns.
pub(crate) const LANGUAGES: [(Lang, &str, &str); 7] = [
    (Lang::English, "en", "English"),
    (Lang::Spanish, "es", "Español"),
    (Lang::German, "de", "Deutsch"),
    (Lang::French, "fr", "Français"),
    (Lang::Portuguese, "pt", "Português"),
    (Lang::Korean, "ko", "한국어"),
    (Lang::Arabic, "ar", "العربية"),
];

impl Lang {
    /// Returns the language of a tag such as `de` or `pt-BR`.
    pub(crate) fn of_tag(tag: &str) -> Option<Self> {
        let primary = tag.split('-').next().unwrap_or_default();
        LANGUAGES.iter().find(|(_, tag, _)| tag.eq_ignore_ascii_case(primary)).map(|(lang, ..)| *lang)
    }

    /// Returns the supported language that an `Accept-Language` header prefers.
    pub(crate) fn preferred(header: &str) -> Option<Self> {
        let mut best: Option<(u32, Self)> = None;
        for part in header.split(',').take(20) {
            let (tag, weight) = part.split_once(";q=").unwrap_or((part, "1"));
            let Some(lang) = Self::of_tag(tag.trim()) else { continue };
            let weight = thousandths(weight.trim());
            if weight > 0 && best.is_none_or(|(most, _)| weight > most) {
                best = Some((weight, lang));
            }
        }
        best.map(|(_, lang)| lang)
    }

    /// Returns the tag.
    pub(crate) const fn tag(self) -> &'static str {
        LANGUAGES[self as usize].1
    }
}

/// Parses a weight such as `0.8`; an invalid weight counts as 0.
fn thousandths(weight: &str) -> u32 {
    let (whole, part) = weight.split_once('.').unwrap_or((weight, ""));
    let digits = format!("{whole}{:0<3.3}", part);
    digits.parse().map_or(0, |number: u32| number.min(1_000))
}

/// The phrases of one language.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words(pub(crate) Lang);

impl Words {
    /// Returns the tag of the language.
    pub(crate) const fn tag(self) -> &'static str {
        self.0.tag()
    }

    /// Returns the direction of the script.
    pub(crate) const fn direction(self) -> &'static str {
        self.0.direction()
    }
}

/// Replaces each placeholder `{name}` of a phrase by its value.
pub(crate) fn fill(phrase: &str, values: &[(&str, &str)]) -> String {
    let mut text = String::with_capacity(phrase.len() + 32);
    let mut rest = phrase;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let (name, after) = after.split_once('}').unwrap_or((after, ""));
        text.push_str(values.iter().find(|(key, _)| *key == name).map_or("", |(_, value)| value));
        rest = after;
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::{phrases::ROWS, *};

    /// Returns the placeholders of a phrase, sorted.
    fn places(phrase: &str) -> Vec<&str> {
        let mut names: Vec<&str> = phrase.split('{').skip(1).filter_map(|rest| rest.split('}').next()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn every_phrase_is_there_in_every_language_with_the_same_places() {
        for (name, row) in ROWS {
            for (phrase, (_, tag, _)) in row.iter().zip(LANGUAGES) {
                assert!(!phrase.trim().is_empty() && *phrase == phrase.trim(), "{name} {tag}");
                assert_eq!(places(phrase), places(row[0]), "{name} {tag}");
                assert!(!phrase.contains(['<', '>', '&', '"']), "{name} {tag}");
            }
            if row[0].len() > 24 {
                for (column, phrase) in row.iter().enumerate() {
                    assert!(!row[..column].contains(phrase), "{name} is not translated: {phrase}");
                }
            }
        }
        for (column, (lang, tag, _)) in LANGUAGES.into_iter().enumerate() {
            assert_eq!((lang as usize, Lang::of_tag(tag), lang.tag()), (column, Some(lang), tag));
        }
    }

    #[test]
    fn a_browser_gets_the_language_it_likes_best() {
        for (header, wanted) in [
            ("de", Some(Lang::German)),
            ("pt-BR,pt;q=0.9,en;q=0.8", Some(Lang::Portuguese)),
            ("nl,ko;q=0.5,fr;q=0.7", Some(Lang::French)),
            ("en;q=0.1, es;q=0.15", Some(Lang::Spanish)),
            ("de;q=0, fr;q=x", None),
            ("nl, *", None),
            ("", None),
        ] {
            assert_eq!(Lang::preferred(header), wanted, "{header}");
        }
    }

    #[test]
    fn places_are_filled_once() {
        assert_eq!(fill("{a} of {b}", &[("a", "{b}"), ("b", "<2>")]), "{b} of <2>");
        assert_eq!(fill("a {missing} b {", &[]), "a  b ");
    }
}
