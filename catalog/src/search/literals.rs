//! Finds literals in a question: quoted strings, codes (`UA`, `checkout-svc`, `N14228`) and capitalised names. Columns
//! that are known to hold them show which table is meant, whatever its name.

/// The most literals of a question.
const MAX_LITERALS: usize = 16;
/// Longer literals are ignored, since no such values are kept.
const MAX_LITERAL_BYTES: usize = crate::values::MAX_VALUE_BYTES;
/// The most consecutive capitalised words that may be one value.
const MAX_WORDS: usize = 3;
/// Opening and closing quotation marks.
const QUOTES: [(char, char); 6] = [('\'', '\''), ('"', '"'), ('`', '`'), ('“', '”'), ('‘', '’'), ('«', '»')];

/// The literals of a question, most certain first.
pub(super) fn literals(question: &str, is_stop_word: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut add = |literal: &str| {
        let literal = literal.trim();
        let is_usable = !literal.is_empty() && literal.len() <= MAX_LITERAL_BYTES && found.len() < MAX_LITERALS;
        if is_usable && !found.iter().any(|known| known == literal) {
            found.push(literal.to_owned());
        }
    };
    for literal in quoted(question) {
        add(literal);
    }
    let words: Vec<&str> = question.split_whitespace().map(trimmed).filter(|word| !word.is_empty()).collect();
    for word in words.iter().filter(|word| is_code(word)) {
        add(word);
    }
    let is_name = |word: &&str| word.starts_with(char::is_uppercase) && !is_stop_word(word);
    for size in (1..=MAX_WORDS).rev() {
        for run in words.windows(size).filter(|run| run.iter().all(is_name)) {
            add(&run.join(" "));
        }
    }
    found
}

/// The quoted parts of a question. An apostrophe inside a word does not open a quotation.
fn quoted(question: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = question;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let inside = &rest[c.len_utf8()..];
        let closing = QUOTES.iter().find(|(open, _)| *open == c).map(|(_, close)| *close);
        if let Some(close) = closing.filter(|_| !before.is_alphanumeric())
            && let Some(end) = inside.find(close)
        {
            found.push(&inside[..end]);
            rest = &inside[end + close.len_utf8()..];
            before = close;
            continue;
        }
        before = c;
        rest = inside;
    }
    found
}

fn trimmed(word: &str) -> &str {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    word.strip_suffix("'s").or_else(|| word.strip_suffix("’s")).unwrap_or(word)
}

/// Whether a word is a code: it mixes letters and digits, is all capitals, or has parts joined like an identifier's.
fn is_code(word: &str) -> bool {
    let has = |test: fn(char) -> bool| word.chars().any(test);
    let is_mixed = has(|c| c.is_ascii_digit()) && has(char::is_alphabetic);
    let is_capitals = word.chars().count() > 1 && has(char::is_uppercase) && !has(char::is_lowercase);
    let is_joined = has(|c| matches!(c, '-' | '_' | '.' | '/' | ':' | '@'));
    is_mixed || is_capitals || is_joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_of_questions() {
        let cases: [(&str, &[&str]); 7] = [
            ("How many flights did UA have?", &["UA"]),
            ("errors of checkout-svc since 'last week'", &["last week", "checkout-svc"]),
            ("who made N14228?", &["N14228"]),
            ("orders shipped to New York", &["New York", "New", "York"]),
            ("what's the customer's name", &[]),
            ("status is \"in progress\" or “done”", &["in progress", "done"]),
            ("BOEING's planes", &["BOEING"]),
        ];
        for (question, expected) in cases {
            let found = literals(question, |word| matches!(word, "How" | "Who"));
            assert_eq!(found, expected, "{question}");
        }
    }

    #[test]
    fn long_questions_are_bounded() {
        assert!(literals(&"A1 B2 C3 ".repeat(1_000), |_| false).len() <= MAX_LITERALS);
        let many: String = (0..1_000).map(|n| format!("code-{n} ")).collect();
        assert_eq!(literals(&many, |_| false).len(), MAX_LITERALS);
    }
}
