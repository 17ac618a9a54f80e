//! Characters that come with a text that was copied from a page, a chat or a document, or that an editor has put before it.
//! Those that nobody sees are space; those that look like a character of SQL are refused by what to write in their place.
//!
//! Texts, names in quotes and comments may hold any of them: they are tokens of their own only elsewhere.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Whitespace};

use crate::error::{EngineError, Result};

/// The byte order mark, which editors and PowerShell put at the beginning of a file.
pub(super) const BYTE_ORDER_MARK: char = '\u{feff}';
/// What pages have between words, besides what Unicode calls space.
const INVISIBLE: [char; 4] = [BYTE_ORDER_MARK, '\u{200b}', '\u{2060}', '\u{180e}'];

/// Takes characters that nobody sees for space. Errors: `sql_parse_error` at the first that only looks like one of SQL.
pub(super) fn settle_copied(tokens: &mut [TokenWithSpan]) -> Result<()> {
    for token in tokens {
        let Token::Char(character) = token.token else { continue };
        if INVISIBLE.contains(&character) {
            token.token = Token::Whitespace(Whitespace::Space);
        } else if let Some(meant) = meant_by(character) {
            let (line, column) = (token.span.start.line, token.span.start.column);
            let message = format!("`{character}` at line {line}, column {column} is no character of SQL; {meant}");
            return Err(EngineError::Parse { message });
        }
    }
    Ok(())
}

/// Returns what to write for a character that looks like one of SQL.
fn meant_by(character: char) -> Option<&'static str> {
    Some(match character {
        '‘' | '’' | '‚' | '‛' | '´' | '′' | '＇' => "texts are in straight quotes, 'so'",
        '“' | '”' | '„' | '‟' | '«' | '»' | '″' | '＂' => {
            "texts are in straight quotes, 'so', and names in double ones, \"so\""
        }
        '–' | '—' | '−' | '‐' | '‑' | '－' => "minus is `-`, and a comment begins with `--`",
        '×' | '∗' | '＊' => "write `*`",
        '÷' | '∕' => "write `/`",
        '≤' => "write `<=`",
        '≥' => "write `>=`",
        '≠' => "write `<>`",
        '，' | '、' => "write `,`",
        '；' => "write `;`",
        '（' | '）' => "brackets are `(` and `)`",
        '＝' => "write `=`",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use crate::sql::parse::parse_statement;

    #[test]
    fn what_nobody_sees_is_space() {
        for text in [
            "\u{feff}SELECT 1",
            "SELECT\u{200b}1",
            "SELECT\u{a0}1\u{2060};\u{200b}",
            "\u{feff}-- note\nSELECT '\u{feff}', \"\u{200b}\" /* “ */",
        ] {
            assert!(parse_statement(text).is_ok(), "{text:?}");
        }
        assert_eq!(parse_statement("\u{feff}").unwrap_err().code(), "empty_query");
    }

    #[test]
    fn what_looks_like_a_quote_or_a_sign_is_named() {
        for (text, said) in [
            ("SELECT ‘UA’", "`‘` at line 1, column 8 is no character of SQL; texts are in straight quotes"),
            ("SELECT\n  “name” FROM t", "`“` at line 2, column 3 is"),
            ("SELECT 3 – 1", "minus is `-`"),
            ("SELECT 1 ≤ 2", "write `<=`"),
            ("SELECT count（*） FROM t", "brackets are"),
        ] {
            let error = parse_statement(text).unwrap_err();
            assert_eq!(error.code(), "sql_parse_error", "{text}");
            assert!(error.to_string().contains(said), "{text}: {error}");
        }
        // Between quotes they are what they are.
        assert!(parse_statement("SELECT '‘UA’ – ≤' AS \"“a”\"").is_ok());
    }
}
