//! Validation of display text: normalized, without invisible characters and direction controls.

use std::fmt;

use unicode_normalization::{
    UnicodeNormalization,
    char::{canonical_combining_class, is_combining_mark},
};

/// Maximum consecutive combining marks; more overlap the surrounding text.
const MAX_MARKS: usize = 8;
/// The combining class of a virama, after which Indic scripts write a joiner at the end of a word.
const VIRAMA: u8 = 9;

/// The reason why a string is not valid display text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextError {
    /// A control character.
    Control,
    /// A character that changes the text direction.
    Direction(char),
    /// An invisible character.
    Hidden(char),
    /// A joiner or a variation selector in an invalid position.
    Joiner(char),
    /// Too many consecutive combining marks.
    Marks,
    /// No visible character.
    Blank,
}

/// Formats the rule as the end of a sentence that starts with the field name.
impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = |c: &char| u32::from(*c);
        match self {
            Self::Control => f.write_str("must not contain control characters"),
            Self::Direction(c) => write!(f, "must not contain text direction controls such as U+{:04X}", code(c)),
            Self::Hidden(c) => write!(f, "must not contain invisible characters such as U+{:04X}", code(c)),
            Self::Joiner(c) => write!(f, "may contain U+{:04X} only between visible characters", code(c)),
            Self::Marks => write!(f, "must have at most {MAX_MARKS} combining marks in a row"),
            Self::Blank => f.write_str("must have a visible character"),
        }
    }
}

/// Validates display text and returns it in normalization form C.
///
/// # Errors
/// [`TextError`] if the string is not valid display text. Emoji sequences and the joiners of Persian and Indic scripts
/// are valid.
pub fn visible(text: &str) -> Result<String, TextError> {
    let text: String = text.nfc().collect();
    let mut marks = 0;
    let mut has_visible = false;
    let mut before = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if is_joiner(c) {
            let is_at_end = chars.peek().is_none_or(|next| next.is_whitespace());
            let is_after_virama = before.is_some_and(|last| canonical_combining_class(last) == VIRAMA);
            let fits = before.is_some_and(|last| is_visible(last) || last == VARIATION)
                && (!is_at_end || is_after_virama)
                && chars.peek().is_none_or(|next| !is_joiner(*next) && *next != VARIATION);
            if !fits {
                return Err(TextError::Joiner(c));
            }
        } else if c == VARIATION {
            if !before.is_some_and(is_visible) {
                return Err(TextError::Joiner(c));
            }
        } else {
            check(c)?;
            marks = if is_combining_mark(c) { marks + 1 } else { 0 };
            if marks > MAX_MARKS {
                return Err(TextError::Marks);
            }
            has_visible |= is_visible(c) && !is_combining_mark(c);
        }
        before = Some(c);
    }
    if has_visible { Ok(text) } else { Err(TextError::Blank) }
}

/// Returns whether a character is invisible or changes how others are displayed, including joiners.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    is_joiner(c) || c == VARIATION || c == BRAILLE_BLANK || check(c).is_err()
}

/// The variation selector for emoji presentation.
const VARIATION: char = '\u{fe0f}';

/// The zero-width joiner and non-joiner.
const fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

fn is_visible(c: char) -> bool {
    !c.is_whitespace() && !is_joiner(c) && c != VARIATION && c != BRAILLE_BLANK
}

/// An empty glyph that Unicode does not classify as whitespace.
const BRAILLE_BLANK: char = '\u{2800}';

/// Rejects characters that are not valid in display text. Ranges: Unicode 16, properties `Bidi_Control`,
/// `Default_Ignorable_Code_Point`, `Noncharacter_Code_Point`, and the separators of lines and paragraphs.
fn check(c: char) -> Result<(), TextError> {
    match c {
        _ if c.is_control() => Err(TextError::Control),
        '\u{2028}' | '\u{2029}' => Err(TextError::Control),
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            Err(TextError::Direction(c))
        }
        '\u{ad}'
        | '\u{34f}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'
        | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}'
        | '\u{3164}'
        | '\u{fdd0}'..='\u{fdef}'
        | '\u{fe00}'..='\u{fe0e}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => Err(TextError::Hidden(c)),
        _ if u32::from(c) & 0xfffe == 0xfffe => Err(TextError::Hidden(c)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_in_many_scripts_and_emoji_are_valid() {
        for name in [
            "The Golden Mug",
            "Größe 42, é & 🐝",
            "فروشگاه کتاب‌های من",
            "دکان می‌خواهم",
            "क्‍ष दुकान",
            "ക്‍ കട",
            "കടയില്‍",
            "ශ්‍රී ලංකා",
            "👨‍👩‍👧‍👦 Family",
            "I ❤️ tea",
            "❤️",
            "🏳️‍🌈",
            "👩🏽‍🚀",
            "1️⃣ shop",
            "שלום",
            "مقهى",
            "東京\u{3000}商店",
            "한국",
        ] {
            assert_eq!(visible(name).as_deref(), Ok(name), "{name}");
        }
        assert_eq!(visible("Cafe\u{301}").as_deref(), Ok("Café"), "form C");
        assert_eq!(visible("\u{1112}\u{1161}\u{11ab}").as_deref(), Ok("한"));
    }

    #[test]
    fn invisible_characters_and_direction_controls_are_refused() {
        type Is = fn(&TextError) -> bool;
        let cases: [(&str, Is); 26] = [
            ("a\u{202e}b", |u| matches!(u, TextError::Direction('\u{202e}'))),
            ("a\u{2066}b", |u| matches!(u, TextError::Direction(_))),
            ("a\u{200f}b", |u| matches!(u, TextError::Direction(_))),
            ("\u{61c}a", |u| matches!(u, TextError::Direction(_))),
            ("Shop\u{e0041}", |u| matches!(u, TextError::Hidden(_))),
            ("\u{1f3f4}\u{e0067}\u{e007f}", |u| matches!(u, TextError::Hidden(_))),
            ("a\u{200b}b", |u| matches!(u, TextError::Hidden('\u{200b}'))),
            ("a\u{feff}", |u| matches!(u, TextError::Hidden(_))),
            ("a\u{ad}b", |u| matches!(u, TextError::Hidden(_))),
            ("\u{3164}", |u| matches!(u, TextError::Hidden(_))),
            ("a\u{fe0e}", |u| matches!(u, TextError::Hidden(_))),
            ("a\u{e0100}", |u| matches!(u, TextError::Hidden(_))),
            ("a\u{fffe}", |u| matches!(u, TextError::Hidden(_))),
            ("a\nb", |u| *u == TextError::Control),
            ("a\u{2028}b", |u| *u == TextError::Control),
            ("\u{200d}a", |u| matches!(u, TextError::Joiner(_))),
            ("a\u{200d}", |u| matches!(u, TextError::Joiner(_))),
            ("a\u{200c} b", |u| matches!(u, TextError::Joiner(_))),
            ("a\u{200d}\u{200d}b", |u| matches!(u, TextError::Joiner(_))),
            ("a\u{200c}\u{fe0f}b", |u| matches!(u, TextError::Joiner(_))),
            ("\u{fe0f}a", |u| matches!(u, TextError::Joiner(_))),
            ("", |u| *u == TextError::Blank),
            (" \u{a0}\u{3000}", |u| *u == TextError::Blank),
            ("\u{2800}", |u| *u == TextError::Blank),
            ("\u{301}", |u| *u == TextError::Blank),
            ("a\u{316}\u{316}\u{316}\u{316}\u{316}\u{316}\u{316}\u{316}\u{316}", |u| *u == TextError::Marks),
        ];
        for (text, is_expected) in cases {
            let refused = visible(text).expect_err(text);
            assert!(is_expected(&refused), "{text:?}: {refused:?}");
        }
    }

    proptest! {
        #[test]
        fn valid_text_is_unchanged_by_revalidation(text in "\\PC{0,40}|[a\\u{200d}\\u{200c}\\u{fe0f}\\u{94d}\\u{301} ]{0,12}") {
            if let Ok(taken) = visible(&text) {
                prop_assert_eq!(visible(&taken), Ok(taken));
            }
        }
    }
}
