//! Long lists of constants in the text of a plan, as a vector of hundreds of numbers or the values of `IN`: the first of them are
//! shown, and how many more there are. What is no list of constants stays as it is.

/// The most items of a list that is shown in full.
const MOST_ITEMS: usize = 20;
/// How many items of a longer one are shown.
const SHOWN_ITEMS: usize = 5;
/// How deep lists are looked into.
const DEEPEST: usize = 16;

/// Returns the text of a plan with its long lists cut.
pub(super) fn with_short_constants(text: &str) -> String {
    let mut short = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['[', '(']) {
        let (before, list) = rest.split_at(at);
        short.push_str(before);
        // Texts that a column is compared with stand there without quotes.
        let has_words = short.ends_with(" IN (") || short.ends_with(" IN (SET) (");
        let end = match constants(list, has_words, 0) {
            Some(found) if found.count > MOST_ITEMS => {
                short.push_str(&list[..found.shown_end]);
                short.push_str(&format!(", ... {} more", found.count - SHOWN_ITEMS));
                short.push_str(&list[found.end - 1..found.end]);
                found.end
            }
            _ => {
                short.push_str(&list[..1]);
                1
            }
        };
        rest = &list[end..];
    }
    short.push_str(rest);
    short
}

/// A list of constants: how many, and where those that are shown and the list itself end.
struct Constants {
    count: usize,
    shown_end: usize,
    end: usize,
}

/// Returns the list that a text begins with, with its bracket; `None` where an item is no constant.
fn constants(text: &str, has_words: bool, depth: usize) -> Option<Constants> {
    if depth > DEEPEST {
        return None;
    }
    let close = if text.starts_with('[') { ']' } else { ')' };
    let (mut at, mut count, mut shown_end) = (1, 0, 1);
    loop {
        at += constant(&text[at..], has_words, depth)?;
        count += 1;
        if count == SHOWN_ITEMS {
            shown_end = at;
        }
        let after = &text[at..];
        if after.starts_with(close) {
            return Some(Constants { count, shown_end, end: at + 1 });
        }
        at += if after.starts_with(", ") { 2 } else { after.strip_prefix(',').map(|_| 1)? };
    }
}

/// Returns the length of the constant that a text begins with.
fn constant(text: &str, has_words: bool, depth: usize) -> Option<usize> {
    match text.chars().next()? {
        '[' | '(' => constants(text, has_words, depth + 1).map(|list| list.end),
        quote @ ('"' | '\'') => text[1..].find(quote).map(|end| end + 2),
        _ => {
            let end = text.find(['[', '(', ']', ')', ','])?;
            let word = &text[..end];
            if is_number(word) {
                return Some(end);
            }
            // `Int64(1)`, `Utf8("a")`: a constant with its type, unlike a function, whose name is of one case.
            let is_type = word.starts_with(|first: char| first.is_ascii_uppercase())
                && word.bytes().any(|byte| byte.is_ascii_lowercase())
                && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
            if is_type && text[end..].starts_with(['[', '(']) {
                return constants(&text[end..], true, depth + 1).map(|list| end + list.end);
            }
            (has_words && !word.is_empty() && !word.contains('@')).then_some(end)
        }
    }
}

/// Whether a word is a number, a date, a time, a truth value or a null.
fn is_number(word: &str) -> bool {
    let unsigned = word.strip_prefix('-').unwrap_or(word);
    let is_digits = unsigned.starts_with(|first: char| first.is_ascii_digit())
        && unsigned.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-:TZ ".contains(&byte));
    is_digits || matches!(unsigned, "NULL" | "NaN" | "inf" | "true" | "false")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(item: impl Fn(usize) -> String, count: usize) -> String {
        (1..=count).map(item).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn long_lists_of_constants_are_cut() {
        let numbers = |count| list(|at| format!("0.{at}"), count);
        let typed = |count| list(|at| format!("Utf8(\"it's, ({at})\")"), count);
        let words = list(|at| format!("a word {at}"), 30);
        for (text, short) in [
            (format!("f(a@0, [{}]) DESC", numbers(384)), "f(a@0, [0.1, 0.2, 0.3, 0.4, 0.5, ... 379 more]) DESC"),
            (format!("FixedSizeList([{}])", numbers(25)), "FixedSizeList([0.1, 0.2, 0.3, 0.4, 0.5, ... 20 more])"),
            (
                format!("t.a IN ([{}])", list(|at| format!("Int64({at})"), 21)),
                "t.a IN ([Int64(1), Int64(2), Int64(3), Int64(4), Int64(5), ... 16 more])",
            ),
            (
                format!("b@1 IN (SET) ([{words}])"),
                "b@1 IN (SET) ([a word 1, a word 2, a word 3, a word 4, a word 5, ... 25 more])",
            ),
            (
                format!("make_array({})", list(|at| format!("Decimal128(Some({at}),3,1)"), 22)),
                "make_array(Decimal128(Some(1),3,1), Decimal128(Some(2),3,1), Decimal128(Some(3),3,1), \
                 Decimal128(Some(4),3,1), Decimal128(Some(5),3,1), ... 17 more)",
            ),
            (
                format!("[[1, 2], [{}]]", list(|at| (-(at as i64)).to_string(), 30)),
                "[[1, 2], [-1, -2, -3, -4, -5, ... 25 more]]",
            ),
        ] {
            assert_eq!(with_short_constants(&text), short);
        }
        let cut = with_short_constants(&format!("s IN ([{}])", typed(40)));
        assert!(cut.ends_with("Utf8(\"it's, (5)\"), ... 35 more])"), "{cut}");
    }

    #[test]
    fn all_else_stays() {
        for text in [
            format!("projection=[{}]", list(|at| format!("c{at}"), 30)),
            format!("ProjectionExec: expr=[{}]", list(|at| format!("c{at}@{at} as c{at}"), 30)),
            format!("gby=[{}]", list(|at| format!("CAST(t.c{at} AS Int64)"), 30)),
            format!("coalesce({})", list(|at| format!("abs(t.c{at})"), 30)),
            format!("[{}]", list(|at| at.to_string(), 20)),
            "(".repeat(100_000),
            format!("[{}", list(|at| at.to_string(), 30)),
            "Utf8(\"ü [1, (2\") ]".to_owned(),
        ] {
            assert_eq!(with_short_constants(&text), text);
        }
    }
}
