//! The clauses of a query in the order in which SQL has them: a small model writes `LIMIT 1 ORDER BY x`, a WHERE behind
//! GROUP BY, and unions whose parts have a LIMIT without parentheses.

use sqlparser::dialect::GenericDialect;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, Tokenizer};

/// The place of ORDER BY among the clauses: it and those behind it are of a whole union.
const ORDER: usize = 6;

/// A part of a query: its place among the clauses, and its tokens.
type PlacedClause = (usize, Vec<Token>);

/// Returns a query with its clauses in order; `None` where they are.
pub(super) fn in_order(text: &str) -> Option<String> {
    let tokens = Tokenizer::new(&GenericDialect {}, text).with_unescape(false).tokenize().ok()?;
    let mut arms: Vec<Vec<PlacedClause>> = vec![vec![(0, Vec::new())]];
    // What stands between the parts of a union.
    let mut operators: Vec<Vec<Token>> = Vec::new();
    let mut depth = 0_usize;
    let mut before: Option<Token> = None;
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.checked_sub(1)?,
            _ => {}
        }
        let next = tokens[at..].iter().find(|next| !matches!(next, Token::Whitespace(_)));
        if depth == 0 && is_set_operator(token) {
            let mut operator = vec![token.clone()];
            while let Some(more) = tokens.get(at).filter(|more| is_of_operator(more)) {
                operator.push(more.clone());
                at += 1;
            }
            operators.push(operator);
            arms.push(vec![(0, Vec::new())]);
            before = None;
            continue;
        }
        if depth == 0
            && let Some(place) = place_of(token, before.as_ref(), next)
        {
            arms.last_mut()?.push((place, Vec::new()));
        }
        arms.last_mut()?.last_mut()?.1.push(token.clone());
        if !matches!(token, Token::Whitespace(_)) {
            before = Some(token.clone());
        }
    }
    let is_sorted = arms.iter().all(|arm| arm.is_sorted_by_key(|(place, _)| *place));
    let last = arms.len() - 1;
    let has_own_order = arms[..last].iter().flatten().any(|(place, _)| *place >= ORDER);
    if is_sorted && !has_own_order {
        return None;
    }
    let mut written = String::new();
    for (index, mut arm) in arms.into_iter().enumerate() {
        arm.sort_by_key(|(place, _)| *place);
        let clauses: Vec<String> =
            arm.iter().map(|(_, tokens)| tokens.iter().map(ToString::to_string).collect::<String>()).collect();
        let text = clauses.iter().map(|clause| clause.trim()).collect::<Vec<_>>().join(" ");
        let text = text.trim();
        written.push_str(&if has_own_order { format!("({text})") } else { text.to_owned() });
        if let Some(operator) = operators.get(index) {
            let operator: String = operator.iter().map(ToString::to_string).collect();
            written.push_str(&format!(" {} ", operator.trim()));
        }
    }
    Some(written)
}

fn is_set_operator(token: &Token) -> bool {
    let Token::Word(word) = token else { return false };
    matches!(word.keyword, Keyword::UNION | Keyword::INTERSECT | Keyword::EXCEPT)
}

/// Whether a token belongs to the operator before it: `UNION ALL`.
fn is_of_operator(token: &Token) -> bool {
    match token {
        Token::Whitespace(_) => true,
        Token::Word(word) => matches!(word.keyword, Keyword::ALL | Keyword::DISTINCT),
        _ => false,
    }
}

/// Returns the place of the clause that a token begins.
fn place_of(token: &Token, before: Option<&Token>, next: Option<&Token>) -> Option<usize> {
    let Token::Word(word) = token else { return None };
    let is =
        |token: Option<&Token>, keyword: Keyword| matches!(token, Some(Token::Word(word)) if word.keyword == keyword);
    match word.keyword {
        // `IS DISTINCT FROM` compares.
        Keyword::FROM if !is(before, Keyword::DISTINCT) => Some(1),
        Keyword::WHERE => Some(2),
        Keyword::GROUP if is(next, Keyword::BY) => Some(3),
        Keyword::HAVING => Some(4),
        Keyword::QUALIFY => Some(5),
        Keyword::ORDER if is(next, Keyword::BY) => Some(ORDER),
        Keyword::LIMIT => Some(7),
        Keyword::OFFSET => Some(8),
        Keyword::FETCH => Some(9),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_are_put_in_order() {
        for (sql, expected) in [
            ("SELECT a FROM t LIMIT 1 ORDER BY b", "SELECT a FROM t ORDER BY b LIMIT 1"),
            ("SELECT a, sum(b) FROM t GROUP BY a WHERE c = 1", "SELECT a, sum(b) FROM t WHERE c = 1 GROUP BY a"),
            ("SELECT a FROM t ORDER BY a WHERE b IN (SELECT 1)", "SELECT a FROM t WHERE b IN (SELECT 1) ORDER BY a"),
            (
                "SELECT a FROM t ORDER BY b LIMIT 1 UNION ALL SELECT a FROM t ORDER BY b DESC LIMIT 1",
                "(SELECT a FROM t ORDER BY b LIMIT 1) UNION ALL (SELECT a FROM t ORDER BY b DESC LIMIT 1)",
            ),
        ] {
            assert_eq!(in_order(sql).as_deref(), Some(expected), "{sql}");
        }
        for sql in [
            "SELECT a FROM t WHERE a = 'x LIMIT' ORDER BY b LIMIT 1",
            "SELECT a FROM t UNION SELECT b FROM u ORDER BY 1",
            "SELECT extract(year FROM a) FROM t WHERE b IS DISTINCT FROM c",
            "SELECT a FROM t)",
        ] {
            assert_eq!(in_order(sql), None, "{sql}");
        }
    }
}
