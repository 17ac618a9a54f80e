//! Rust source as words: comments and the contents of literals are gone, so that what a rule finds is code.

use std::ops::Range;

/// Returns the words of a source: identifiers, `::`, and every other sign of its own. A literal is the word `""`.
pub(super) fn words(source: &str) -> Vec<&str> {
    let bytes = source.as_bytes();
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let rest = &source[at..];
        let length = match byte {
            b'/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            b'/' if rest.starts_with("/*") => block_comment(rest),
            b'"' => {
                words.push("\"\"");
                string(rest)
            }
            b'\'' => match character(rest) {
                Some(length) => {
                    words.push("\"\"");
                    length
                }
                None => 1,
            },
            b'r' | b'b' | b'c' if literal_prefix(rest).is_some() => {
                words.push("\"\"");
                literal_prefix(rest).unwrap_or(1)
            }
            // A name that is a word of the language is that word without its mark.
            b'r' if rest.starts_with("r#") => 2,
            _ if is_word(byte) => {
                let length = rest.bytes().take_while(|byte| is_word(*byte)).count();
                words.push(&rest[..length]);
                length
            }
            b':' if rest.starts_with("::") => {
                words.push("::");
                2
            }
            _ if byte.is_ascii_whitespace() => 1,
            _ => {
                let length = rest.chars().next().map_or(1, char::len_utf8);
                words.push(&rest[..length]);
                length
            }
        };
        at += length;
    }
    words
}

/// Returns the words without those of items under `#[cfg(test)]`.
pub(super) fn without_tests<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < words.len() {
        match test_item(words, at) {
            Some(item) => at = item.end,
            None => {
                kept.push(words[at]);
                at += 1;
            }
        }
    }
    kept
}

/// Returns the names of the modules under `#[cfg(test)]` that are files of their own.
pub(super) fn test_modules<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let items = (0..words.len()).filter_map(|at| test_item(words, at));
    items
        .filter_map(|item| match &words[item] {
            [.., "mod", name, ";"] => Some(*name),
            _ => None,
        })
        .collect()
}

/// The item under `#[cfg(test)]` or `#[cfg(all(test, ...))]` that starts there, with its attributes.
fn test_item(words: &[&str], at: usize) -> Option<Range<usize>> {
    const ATTRIBUTES: [&[&str]; 2] = [&["#", "[", "cfg", "(", "test"], &["#", "[", "cfg", "(", "all", "(", "test"]];
    if !ATTRIBUTES.iter().any(|attribute| words[at..].starts_with(attribute)) {
        return None;
    }
    let mut end = at;
    let mut depth = 0_usize;
    while let Some(word) = words.get(end) {
        end += 1;
        match *word {
            "{" | "(" | "[" => depth += 1,
            ")" | "]" => depth = depth.saturating_sub(1),
            "}" => {
                depth = depth.saturating_sub(1);
                if depth == 0 && words.get(end) != Some(&";") {
                    break;
                }
            }
            ";" if depth == 0 => break,
            _ => {}
        }
    }
    Some(at..end)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let step = match &text.as_bytes()[at..] {
            [b'/', b'*', ..] => {
                depth += 1;
                2
            }
            [b'*', b'/', ..] => {
                depth -= 1;
                2
            }
            _ => 1,
        };
        at += step;
        if depth == 0 {
            break;
        }
    }
    at
}

/// The length of a string from its opening quote.
fn string(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut at = 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// The length of a character from its opening quote; `None` for a lifetime.
fn character(text: &str) -> Option<usize> {
    let mut letters = text.char_indices().skip(1);
    let (_, first) = letters.next()?;
    if first == '\\' {
        let (start, _) = letters.next()?;
        return text[start + 1..].find('\'').map(|end| start + end + 2);
    }
    let (end, last) = letters.next()?;
    (last == '\'').then_some(end + 1)
}

/// The length of a literal that begins with `r`, `b` or `c`.
fn literal_prefix(text: &str) -> Option<usize> {
    let letters = text.bytes().take_while(|byte| matches!(byte, b'r' | b'b' | b'c')).count();
    let (prefix, rest) = text.split_at(letters);
    let is_raw = prefix.ends_with('r');
    if letters > 2 {
        return None;
    }
    if is_raw {
        let hashes = rest.bytes().take_while(|byte| *byte == b'#').count();
        let end = format!("\"{}", "#".repeat(hashes));
        let inner = rest[hashes..].strip_prefix('"')?;
        return Some(letters + hashes + 1 + inner.find(&end)? + end.len());
    }
    match rest.bytes().next()? {
        b'"' => Some(letters + string(rest)),
        b'\'' if prefix == "b" => Some(letters + character(rest)?),
        _ => None,
    }
}

#[test]
fn what_is_no_code_has_no_words() {
    let source = r##"
//! crate::doc
/* crate::a /* nested */ b */
fn f<'a>(c: char) -> &'a str { if c == '"' || c == '\'' || c == '\\' { r#"crate::raw "quoted""# } else { "x\"y" } }
"##;
    let words = words(source).join(" ");
    assert!(!words.contains("crate") && !words.contains("raw") && !words.contains("nested"), "{words}");
    assert!(words.ends_with("{ \"\" } else { \"\" } }"), "{words}");
}

#[test]
fn tests_are_left_out() {
    let source = "use a::b; #[cfg(test)] mod replay; #[cfg(all(test, unix))] mod more; #[cfg(test)] #[expect(x, reason = \"y\")] mod tests { fn f() { g[0]; } } fn after() {}";
    let all = words(source);
    assert_eq!(without_tests(&all).join(" "), "use a :: b ; fn after ( ) { }");
    assert_eq!(test_modules(&all), ["replay", "more"]);
}
