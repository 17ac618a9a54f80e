//! Estimates how many tokens a text costs, without the model's tokenizer.
//!
//! The estimate follows the way byte-level BPE tokenizers cut text (words with the sign before them, digits one by
//! one, runs of signs) and rounds up: on identifiers, SQL, JSON, prose, hexadecimal noise and non-Latin scripts it
//! stays at or above what Qwen's tokenizer counts, and a third above it on a typical schema. A budget kept by it is
//! kept by the model; the price is that the budget is not filled to its last token.

/// SQL words that are one token in every tokenizer.
const WHOLE_WORDS: [&str; 14] = [
    "VARCHAR",
    "DOUBLE",
    "TIMESTAMP",
    "SELECT",
    "WHERE",
    "GROUP",
    "ORDER",
    "COUNT",
    "FROM",
    "JOIN",
    "LIMIT",
    "BOOLEAN",
    "INTEGER",
    "DATE",
];

/// Estimates the tokens of `text`, on the high side.
pub fn estimate_tokens(text: &str) -> usize {
    let mut halves = 0;
    let mut rest = text;
    let mut after_digit = false;
    while let Some(first) = rest.chars().next() {
        let kind = CharClass::of(first);
        let end = rest.find(|c| CharClass::of(c) != kind).unwrap_or(rest.len());
        let (run, following) = rest.split_at(end);
        let next = following.chars().next().map(CharClass::of);
        halves += match kind {
            CharClass::Digit => 2 * run.len(),
            CharClass::Letter => word_halves(run, after_digit || next == Some(CharClass::Digit)),
            // One space, or one sign, goes with the word after it.
            CharClass::Space if run == " " && matches!(next, Some(CharClass::Letter | CharClass::Sign)) => 0,
            CharClass::Space => 2 * (1 + run.len() / 4),
            CharClass::Sign if run.len() == 1 && next == Some(CharClass::Letter) => 0,
            CharClass::Sign => 2 * run.len().div_ceil(2),
        };
        after_digit = kind == CharClass::Digit;
        rest = following;
    }
    halves.div_ceil(2)
}

/// Returns the longest beginning of `text` that costs at most `tokens`, cut between characters.
pub(crate) fn take_tokens(text: &str, tokens: usize) -> &str {
    if estimate_tokens(text) <= tokens {
        return text;
    }
    let (mut fits, mut too_long) = (0, text.len());
    while too_long - fits > 1 {
        let mut middle = (fits + too_long) / 2;
        while !text.is_char_boundary(middle) {
            middle -= 1;
        }
        if middle == fits {
            break;
        }
        if estimate_tokens(&text[..middle]) <= tokens { fits = middle } else { too_long = middle }
    }
    &text[..fits]
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CharClass {
    Letter,
    Digit,
    Space,
    Sign,
}

impl CharClass {
    fn of(c: char) -> Self {
        match c {
            '0'..='9' => CharClass::Digit,
            c if c.is_ascii_alphabetic() || !c.is_ascii() => CharClass::Letter,
            c if c.is_whitespace() => CharClass::Space,
            _ => CharClass::Sign,
        }
    }
}

/// Returns the half tokens of a run of letters: `camelCase` is read as its parts, a non-ASCII character by its bytes.
fn word_halves(word: &str, beside_digit: bool) -> usize {
    // Letters between digits are an id or a hash far more often than a word.
    let noise = beside_digit && word.len() <= 4;
    let mut halves = 0;
    let mut rest = word;
    while let Some(first) = rest.chars().next() {
        if !first.is_ascii() {
            halves += match first.len_utf8() {
                2 => 2,
                3 => 3,
                _ => 6,
            };
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let capitals = rest.bytes().take_while(u8::is_ascii_uppercase).count();
        let end = if capitals > 1 {
            capitals
        } else {
            capitals + rest.bytes().skip(capitals).take_while(u8::is_ascii_lowercase).count()
        };
        let (part, following) = rest.split_at(end);
        halves += 2 * if noise { (part.len() * 2).div_ceil(3) } else { part_tokens(part) };
        rest = following;
    }
    halves
}

/// Returns the tokens of one lowercase, capitalised or all-capitals part.
fn part_tokens(part: &str) -> usize {
    if WHOLE_WORDS.contains(&part) {
        return 1;
    }
    if part.len() > 3 && part.bytes().all(|b| b.is_ascii_uppercase()) {
        return (part.len() * 3).div_ceil(5);
    }
    // What cannot be pronounced (long runs of consonants, rare letters) is not in the vocabulary.
    let (mut run, mut hard) = (0, 0);
    for byte in part.bytes().map(|b| b.to_ascii_lowercase()) {
        run = if matches!(byte, b'a' | b'e' | b'i' | b'o' | b'u' | b'y') { 0 } else { run + 1 };
        hard += usize::from(run > 2) + usize::from(matches!(byte, b'j' | b'q' | b'x' | b'z' | b'w' | b'k'));
    }
    (part.len() + 3 * hard).div_ceil(5)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counted with the tokenizer of Qwen2.5-Coder.
    const COUNTED: [(&str, usize); 14] = [
        (
            "flights(year BIGINT, month BIGINT, dep_delay BIGINT, carrier VARCHAR 'UA', time_hour TIMESTAMP) -- 336776 rows",
            33,
        ),
        ("SELECT a.x, COUNT(*) FROM t a JOIN u ON a.id = u.id WHERE x >= 10 AND y <> 'z' GROUP BY 1", 33),
        (r#"{"tool":"run_sql","args":{"sql":"SELECT carrier FROM flights"}}"#, 15),
        ("9b74c9897bac770ffc029102a200c5de 3f2504e0-4f89-11d3-9a0c-0305e82c3301", 64),
        ("xqzk wpfhg nbvtr lkjhq QXZW PLMKN", 18),
        ("CustomerShippingAddress17 VARCHAR, orderTotalAmount18 DECIMAL(10,2)", 20),
        ("表名(用户编号 BIGINT, 订单金额 DOUBLE) 客户的所有订单，按月汇总。", 23),
        ("Übersicht über die Straßenverkehrsunfälle größer als fünf", 13),
        ("таблица заказов клиентов, сумма, дата создания", 14),
        ("2013-01-01T10:00:00Z | -0.0123456789 | 1e-9 | NULL", 42),
        ("Which airline had the worst average arrival delay? Give its name, and say how many flights it had.", 21),
        ("a    b\n\n\n   c\t\t d", 8),
        ("((((----====____!!!!####", 6),
        ("AIRBUS INDUSTRIE, BOEING, EMBRAER, MCDONNELL DOUGLAS", 24),
    ];

    #[test]
    fn the_estimate_is_not_below_a_real_tokenizer() {
        for (text, real) in COUNTED {
            let estimate = estimate_tokens(text);
            assert!(estimate >= real, "{estimate} < {real}: {text}");
            assert!(estimate <= 4 * real, "{estimate} is far above {real}: {text}");
        }
    }

    #[test]
    fn taking_never_exceeds_and_never_splits_a_character() {
        for text in ["SELECT carrier, count(*) FROM flights", "größer als fünf 客户的所有订单", "", "😀🚀📊"]
        {
            for tokens in 0..12 {
                let taken = take_tokens(text, tokens);
                assert!(estimate_tokens(taken) <= tokens);
                assert!(text.starts_with(taken));
            }
        }
    }
}
