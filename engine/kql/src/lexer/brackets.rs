//! The nesting depth of each token, so that recovery after an error finds the `|` and `;` of its own level. A bracket
//! without a partner does not count: a forgotten bracket is the likeliest error.

use super::{Token, TokenKind};

/// Returns for each token the number of pairs of brackets around it; the brackets of a pair are outside the pair.
pub(crate) fn depths(tokens: &[Token]) -> Vec<u32> {
    let partners = partners(tokens);
    let mut depth: u32 = 0;
    let mut depths = Vec::with_capacity(tokens.len());
    for (token, has_partner) in tokens.iter().zip(partners) {
        if has_partner && closed_by(token.kind).is_none() {
            depth = depth.saturating_sub(1);
        }
        depths.push(depth);
        if has_partner && closed_by(token.kind).is_some() {
            depth += 1;
        }
    }
    depths
}

/// Returns whether each token is a bracket with a partner.
fn partners(tokens: &[Token]) -> Vec<bool> {
    let mut has_partner = vec![false; tokens.len()];
    let mut open: Vec<(usize, TokenKind)> = Vec::new();
    let mut waiting = OpenBrackets::default();
    for (index, token) in tokens.iter().enumerate() {
        if let Some(closing) = closed_by(token.kind) {
            open.push((index, closing));
            waiting.add(closing, 1);
        } else if waiting.count(token.kind) > 0 {
            while let Some((opened, closing)) = open.pop() {
                waiting.add(closing, -1);
                if closing == token.kind {
                    has_partner[opened] = true;
                    has_partner[index] = true;
                    break;
                }
            }
        }
    }
    has_partner
}

/// The number of open brackets of each kind.
#[derive(Default)]
struct OpenBrackets {
    parens: isize,
    brackets: isize,
    braces: isize,
}

impl OpenBrackets {
    fn count(&self, closing: TokenKind) -> isize {
        match closing {
            TokenKind::CloseParen => self.parens,
            TokenKind::CloseBracket => self.brackets,
            TokenKind::CloseBrace => self.braces,
            _ => 0,
        }
    }

    fn add(&mut self, closing: TokenKind, change: isize) {
        match closing {
            TokenKind::CloseParen => self.parens += change,
            TokenKind::CloseBracket => self.brackets += change,
            TokenKind::CloseBrace => self.braces += change,
            _ => {}
        }
    }
}

fn closed_by(opening: TokenKind) -> Option<TokenKind> {
    match opening {
        TokenKind::OpenParen => Some(TokenKind::CloseParen),
        TokenKind::OpenBracket => Some(TokenKind::CloseBracket),
        TokenKind::OpenBrace => Some(TokenKind::CloseBrace),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::lex;

    fn depths_of(text: &str) -> Vec<u32> {
        depths(&lex(text).0)
    }

    #[test]
    fn pairs_count() {
        assert_eq!(depths_of("a(b[c])d"), [0, 0, 1, 1, 2, 1, 0, 0, 0]);
    }

    #[test]
    fn brackets_without_a_partner_do_not() {
        assert_eq!(depths_of("a((b)"), [0, 0, 0, 1, 0, 0]);
        assert_eq!(depths_of("(a]b)"), [0, 1, 1, 1, 0, 0]);
    }
}
