//! Where the literals of a query stand: those that say which rows are read, and those that are only returned. A value of a
//! question may take the place of the former alone.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, Word};

/// Where a literal stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LiteralPlace {
    /// It says which rows, or how many: `x = 1`, `IN (1, 2)`, `LIMIT 5`, `date_trunc('month', d)`.
    Chosen,
    /// It is what is returned, or how it is written: `THEN 1`, `SELECT 'late'`, `ORDER BY 1`, `round(x, 2)`.
    Label,
    /// A minus stands before it.
    Signed,
}

/// Returns where the literal at an index stands, by what is before it.
pub(super) fn place_of(tokens: &[Token], index: usize) -> LiteralPlace {
    let mut before = tokens[..index].iter().rev().filter(|token| !matches!(token, Token::Whitespace(_)));
    match before.next() {
        None | Some(Token::StringConcat) => LiteralPlace::Label,
        Some(Token::Minus) => LiteralPlace::Signed,
        Some(Token::Word(word)) if is_before_label(word) => LiteralPlace::Label,
        Some(Token::Comma) => {
            // Back to the parenthesis that is open here.
            let mut depth = 0_usize;
            while let Some(token) = before.next() {
                match token {
                    Token::RParen => depth += 1,
                    Token::LParen if depth > 0 => depth -= 1,
                    Token::LParen => {
                        let is_in = matches!(before.next(), Some(Token::Word(word)) if word.keyword == Keyword::IN);
                        return if is_in { LiteralPlace::Chosen } else { LiteralPlace::Label };
                    }
                    Token::Word(word) if depth == 0 && word.keyword == Keyword::SELECT => break,
                    _ => {}
                }
            }
            LiteralPlace::Label
        }
        Some(_) => LiteralPlace::Chosen,
    }
}

fn is_before_label(word: &Word) -> bool {
    matches!(
        word.keyword,
        Keyword::THEN | Keyword::ELSE | Keyword::SELECT | Keyword::DISTINCT | Keyword::AS | Keyword::BY
    )
}
