//! Joins within others without brackets: in `a LEFT JOIN b JOIN c ON x ON y`, `b` and `c` are joined first, since the last condition
//! is that of the first join. The parser knows them in brackets.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::is_word;

/// A join whose condition is still to come.
struct OpenJoin {
    /// Where its right side begins.
    side: usize,
    /// Whether that side is joined with others.
    is_joined: bool,
}

/// Puts such joins in brackets.
pub(super) fn nested_joins(tokens: &mut Vec<TokenWithSpan>) {
    if tokens.iter().filter(|token| is_word(&token.token, "join")).count() < 2 {
        return;
    }
    // One list for each bracket around.
    let mut open: Vec<Vec<OpenJoin>> = vec![Vec::new()];
    let mut brackets: Vec<(usize, Token)> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let is_outermost = open.len() == 1;
        let Some(joins) = open.last_mut() else { return };
        match &token.token {
            Token::LParen => open.push(Vec::new()),
            // One too many is the parser's to report.
            Token::RParen if is_outermost => return,
            Token::RParen => {
                open.pop();
            }
            Token::Comma | Token::SemiColon => joins.clear(),
            word if is_word(word, "join") && has_condition(&tokens[..at]) => {
                if let Some(around) = joins.last_mut() {
                    around.is_joined = true;
                }
                joins.push(OpenJoin { side: at + 1, is_joined: false });
            }
            // `ON CONFLICT` is none of a join.
            word if is_word(word, "on") && tokens.get(at + 1).is_some_and(|next| is_word(&next.token, "conflict")) => {
                joins.clear();
            }
            word if is_word(word, "on") || is_word(word, "using") => {
                if let Some(join) = joins.pop().filter(|join| join.is_joined) {
                    brackets.extend([(join.side, Token::LParen), (at, Token::RParen)]);
                }
            }
            word if ["select", "from", "where"].iter().any(|end| is_word(word, end)) => joins.clear(),
            _ => {}
        }
    }
    if brackets.is_empty() {
        return;
    }
    // Of several at one place the last one found comes first.
    brackets.reverse();
    brackets.sort_by_key(|(at, _)| *at);
    let mut brackets = brackets.into_iter().peekable();
    let mut written = Vec::with_capacity(tokens.len() + brackets.len());
    for (at, token) in std::mem::take(tokens).into_iter().enumerate() {
        while let Some((_, bracket)) = brackets.next_if(|(place, _)| *place == at) {
            written.push(TokenWithSpan { token: bracket, span: token.span });
        }
        written.push(token);
    }
    *tokens = written;
}

/// Returns whether the join behind these tokens is one on a condition.
fn has_condition(before: &[TokenWithSpan]) -> bool {
    const KINDS: [&str; 8] = ["left", "right", "full", "inner", "outer", "semi", "anti", "asof"];
    let is_kind = |token: &&TokenWithSpan| KINDS.iter().any(|kind| is_word(&token.token, kind));
    let first = before.iter().rev().find(|token| !is_kind(token));
    first.is_none_or(|first| !["natural", "cross", "positional"].iter().any(|kind| is_word(&first.token, kind)))
}
