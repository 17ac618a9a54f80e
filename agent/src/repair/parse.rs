//! From the text of a query to its syntax tree, whichever system it was written for.
//!
//! Quotes are turned where they are tokens: names in backquotes or brackets, and texts in double quotes where the
//! dialect has them as texts. In others a text in double quotes is a name until no column has it.

use sqlparser::ast::Statement;
use sqlparser::dialect::{
    BigQueryDialect, Dialect, GenericDialect, HiveDialect, MsSqlDialect, MySqlDialect, OracleDialect, SQLiteDialect,
    SnowflakeDialect,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer, Whitespace};

use super::clause_order::in_order;
use super::keep_clauses::without_keep;
use super::{Repair, RepairKind};

/// A longer query is not repaired.
pub(super) const MAX_TEXT_BYTES: usize = 64 * 1024;
/// How deep a query may nest that is repaired: its tree is walked on the stack of a task.
const MAX_NESTING: usize = 40;
const MAX_TOKENS: usize = 4_000;

/// A query, and what reading it took.
pub(crate) struct DialectQuery {
    pub(crate) statement: Statement,
    pub(crate) repairs: Vec<Repair>,
    pub(crate) habits: DialectHabits,
}

/// What the system does otherwise that a query is written for, without another word for it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DialectHabits {
    /// `7 / 2` is 3.5.
    pub(crate) divides_as_decimals: bool,
    /// Rows without a value come before all others.
    pub(crate) sorts_nulls_first: bool,
}

/// Parses the first query of a text. Returns `None` where it is none in any dialect.
pub(crate) fn parse_query(sql: &str) -> Option<DialectQuery> {
    if sql.len() > MAX_TEXT_BYTES {
        return None;
    }
    let text = statement_text(sql);
    let dialects: [(&str, &dyn Dialect); 8] = [
        ("", &GenericDialect {}),
        ("MySQL", &MySqlDialect {}),
        ("BigQuery", &BigQueryDialect {}),
        ("T-SQL", &MsSqlDialect {}),
        ("SQLite", &SQLiteDialect {}),
        ("Oracle", &OracleDialect {}),
        ("Snowflake", &SnowflakeDialect {}),
        ("Hive", &HiveDialect {}),
    ];
    // Others read Oracle's mark of outer joins as well.
    let is_oracle = text.contains("(+)");
    let read = |text: &str| {
        let mut fitting = dialects.iter().filter(|(name, _)| !is_oracle || *name == "Oracle");
        fitting.find_map(|(name, dialect)| {
            let (tokens, turned) = tokens(text, *dialect)?;
            let parser = Parser::new(*dialect).with_recursion_limit(MAX_NESTING).with_tokens_with_locations(tokens);
            let statements = all_statements(parser)?;
            Some((*name, statements, turned))
        })
    };
    let mut repairs = Vec::new();
    let mut parsed = read(text);
    let kept = if parsed.is_none() { without_keep(text) } else { None };
    if let Some(kept) = &kept {
        let why = "the value of the row with the greatest or the least key is taken by arg_max and arg_min here";
        repairs.push(Repair::new(RepairKind::Dialect, "KEEP (DENSE_RANK ...)", "arg_max or arg_min", why));
        parsed = read(kept);
    }
    let (name, statements, turned) = match parsed {
        Some(parsed) => parsed,
        None => {
            let ordered = in_order(kept.as_deref().unwrap_or(text))?;
            let why = "clauses stand in one order, and a part of a union with a LIMIT of its own in parentheses";
            repairs.push(Repair::new(RepairKind::Statement, "clauses in another order", "their order", why));
            read(&ordered)?
        }
    };
    let found = statements.len();
    let statement = statements.into_iter().next()?;
    if !matches!(statement, Statement::Query(_)) {
        return None;
    }
    if text.len() < sql.trim().trim_end_matches(';').len() {
        repairs.push(Repair::new(
            RepairKind::Statement,
            "words around the query",
            "the query alone",
            "they are not SQL",
        ));
    }
    if found > 1 {
        let why = "one statement runs at a time; only the first did";
        repairs.push(Repair::new(RepairKind::Statement, format!("{found} statements"), "the first", why));
    }
    if !name.is_empty() {
        let why = format!("the query is written as {name} has it");
        repairs.push(Repair::new(RepairKind::Dialect, format!("syntax of {name}"), "the syntax here", why));
    }
    let has_backquotes = turned.contains(&'`');
    for sign in &turned {
        let (kind, from, to, why) = match sign {
            '`' => (RepairKind::Quotes, "`name`", "\"name\"", "names are in double quotes here, not in backquotes"),
            '[' => (RepairKind::Quotes, "[name]", "\"name\"", "names are in double quotes here, not in brackets"),
            'r' => (RepairKind::Quotes, "r'text'", "'text'", "every text is raw here"),
            '%' => (RepairKind::Dialect, "MOD", "%", "the remainder is % here"),
            '*' => (RepairKind::Dialect, "GLOB", "~", "a regular expression says the same"),
            '=' => (RepairKind::Dialect, "IS", "IS NOT DISTINCT FROM", "SQLite's IS compares values"),
            '&' => (RepairKind::Dialect, "&&", "AND", "MySQL's && is AND"),
            'a' => (RepairKind::Dialect, "APPROXIMATE", "none", "values are counted one by one here"),
            _ => continue,
        };
        repairs.push(Repair::new(kind, from, to, why));
    }
    if turned.contains(&'\'') {
        let why = "texts are in single quotes; double quotes are for names";
        repairs.push(Repair::new(RepairKind::Quotes, "\"text\"", "'text'", why));
    }
    let habits = DialectHabits {
        divides_as_decimals: has_backquotes || ["MySQL", "BigQuery"].contains(&name),
        // Oracle and Snowflake sort nulls last, as here.
        sorts_nulls_first: has_backquotes || turned.contains(&'[') || !["", "Oracle", "Snowflake"].contains(&name),
    };
    Some(DialectQuery { statement, repairs, habits })
}

/// Returns the text from its first SELECT or WITH to its end, without a fence and what follows it.
fn statement_text(sql: &str) -> &str {
    let text = sql.trim();
    let text = text.find("```").map_or(text, |open| {
        let inner = &text[open + 3..];
        inner.find("```").map_or(inner, |close| &inner[..close])
    });
    let begins = |word: &str| {
        text.match_indices(|c: char| c.is_ascii_alphabetic()).map(|(index, _)| index).find(|index| {
            let ends = text[*index..].get(..word.len()).is_some_and(|found| found.eq_ignore_ascii_case(word));
            let starts = text[..*index].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '_');
            ends && starts && text[*index + word.len()..].starts_with(|c: char| !c.is_alphanumeric())
        })
    };
    // A parenthesis may open the query: what is before the word then belongs to it.
    let start = [begins("select"), begins("with")].into_iter().flatten().min().unwrap_or(0);
    let start = if text[..start].trim_start().starts_with('(') { 0 } else { start };
    text[start..].trim().trim_end_matches(';').trim()
}

/// Tokenizes a text and turns its quotes. Returns the tokens, and a sign for each kind of what was turned.
fn tokens(text: &str, dialect: &dyn Dialect) -> Option<(Vec<TokenWithSpan>, Vec<char>)> {
    let mut tokens = Tokenizer::new(dialect, text).tokenize_with_location().ok()?;
    if tokens.len() > MAX_TOKENS {
        return None;
    }
    let mut turned = Vec::new();
    for token in &mut tokens {
        match &mut token.token {
            Token::Word(word) => {
                if let Some(quote @ ('`' | '[')) = word.quote_style {
                    word.quote_style = Some('"');
                    word.keyword = Keyword::NoKeyword;
                    turned.push(quote);
                    // BigQuery quotes a whole path.
                }
            }
            Token::DoubleQuotedString(text) => {
                token.token = Token::SingleQuotedString(std::mem::take(text));
                turned.push('\'');
            }
            Token::SingleQuotedRawStringLiteral(text) | Token::DoubleQuotedRawStringLiteral(text) => {
                token.token = Token::SingleQuotedString(std::mem::take(text));
                turned.push('r');
            }
            _ => {}
        }
    }
    let tokens = with_operators(with_null_safe(tokens, &mut turned), &mut turned);
    turned.sort_unstable();
    turned.dedup();
    Some((split_paths(tokens), turned))
}

/// Writes operators that are words as those that the parser knows: `7 MOD 2`, and `name GLOB 'A*'` as a regular
/// expression.
fn with_operators(mut tokens: Vec<TokenWithSpan>, turned: &mut Vec<char>) -> Vec<TokenWithSpan> {
    let seen: Vec<usize> = (0..tokens.len()).filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_))).collect();
    for window in seen.windows(3) {
        let [before, at, after] = *window else { continue };
        // `a = 1 && b = 2`; of lists it asks whether they overlap.
        let compares =
            |token: &Token| matches!(token, Token::Eq | Token::Neq | Token::Lt | Token::Gt | Token::LtEq | Token::GtEq);
        if tokens[after].token == Token::Overlap && compares(&tokens[before].token) {
            tokens[after].token = Token::make_keyword("AND");
            turned.push('&');
            continue;
        }
        let Token::Word(word) = &tokens[at].token else { continue };
        let is_operand = match &tokens[before].token {
            Token::Word(word) => word.keyword != Keyword::NOT && word.keyword != Keyword::SELECT,
            Token::Number(..) | Token::SingleQuotedString(_) | Token::RParen => true,
            _ => false,
        };
        if word.quote_style.is_some() || !is_operand {
            continue;
        }
        let is_value = match &tokens[after].token {
            Token::Word(word) => word.keyword == Keyword::NoKeyword,
            Token::Number(..) => true,
            _ => false,
        };
        if is_value && word.value.eq_ignore_ascii_case("mod") {
            tokens[at].token = Token::Mod;
            turned.push('%');
        } else if word.value.eq_ignore_ascii_case("glob")
            && let Token::SingleQuotedString(pattern) = &tokens[after].token
        {
            let expression = expression_of_glob(pattern);
            tokens[at].token = Token::Tilde;
            turned.push('*');
            tokens[after].token = Token::SingleQuotedString(expression);
        }
    }
    tokens
}

/// Writes SQLite's `x IS 'text'` and `x IS NOT 'text'` out, and leaves Redshift's `APPROXIMATE COUNT` out.
fn with_null_safe(tokens: Vec<TokenWithSpan>, turned: &mut Vec<char>) -> Vec<TokenWithSpan> {
    let mut written: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let is_keyword = |token: &Token, wanted: Keyword| matches!(token, Token::Word(word) if word.keyword == wanted);
    for (at, token) in tokens.iter().enumerate() {
        let mut next = tokens[at + 1..].iter().filter(|next| !matches!(next.token, Token::Whitespace(_)));
        let next = next.next().map(|next| &next.token);
        let is_approximate = matches!(
            &token.token,
            Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("approximate")
        );
        if is_approximate && next.is_some_and(|next| is_keyword(next, Keyword::COUNT)) {
            turned.push('a');
            continue;
        }
        let is_value = matches!(next, Some(Token::SingleQuotedString(_) | Token::Number(..)));
        let before = written.iter().rev().find(|before| !matches!(before.token, Token::Whitespace(_)));
        let is_after_is = before.is_some_and(|before| is_keyword(&before.token, Keyword::IS));
        let words: &[&str] = match &token.token {
            known if is_value && is_keyword(known, Keyword::IS) => &["IS", "NOT", "DISTINCT", "FROM"],
            known if is_value && is_after_is && is_keyword(known, Keyword::NOT) => &["DISTINCT", "FROM"],
            _ => {
                written.push(token.clone());
                continue;
            }
        };
        turned.push('=');
        for (index, word) in words.iter().enumerate() {
            if index > 0 {
                written.push(TokenWithSpan::new(Token::Whitespace(Whitespace::Space), token.span));
            }
            written.push(TokenWithSpan::new(Token::make_keyword(word), token.span));
        }
    }
    written
}

/// Returns the regular expression of a pattern of `GLOB`.
fn expression_of_glob(pattern: &str) -> String {
    let mut expression = "^".to_owned();
    for letter in pattern.chars() {
        match letter {
            '*' => expression.push_str(".*"),
            '?' => expression.push('.'),
            '[' | ']' | '-' | '^' => expression.push(letter),
            other if other.is_alphanumeric() || other.is_whitespace() => expression.push(other),
            other => expression.extend(['\\', other]),
        }
    }
    expression.push('$');
    expression
}

/// Splits `"a.b"`, a quoted path, into `"a"."b"`, where it is the name of a table.
fn split_paths(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut split = Vec::with_capacity(tokens.len());
    let mut after_from = false;
    for token in tokens {
        match &token.token {
            Token::Whitespace(_) => {}
            Token::Word(word) if word.quote_style.is_some() && after_from && word.value.contains('.') => {
                let span = token.span;
                for (index, part) in word.value.split('.').enumerate() {
                    if index > 0 {
                        split.push(TokenWithSpan::new(Token::Period, span));
                    }
                    split.push(TokenWithSpan::new(Token::make_word(part, Some('"')), span));
                }
                after_from = false;
                continue;
            }
            Token::Word(word) => after_from = matches!(word.keyword, Keyword::FROM | Keyword::JOIN),
            _ => after_from = false,
        }
        split.push(token);
    }
    split
}

fn all_statements(mut parser: Parser<'_>) -> Option<Vec<Statement>> {
    parser.parse_statements().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_found_in_its_text_and_its_quotes_are_turned() {
        for (sql, expected) in [
            ("SELECT 1;", "SELECT 1"),
            ("```sql\nSELECT 1\n```\nThis counts.", "SELECT 1"),
            ("Here is the query: SELECT a FROM t", "SELECT a FROM t"),
            ("SELECT `a b` FROM `t`", "SELECT \"a b\" FROM \"t\""),
            ("SELECT [a b] FROM [t]", "SELECT \"a b\" FROM \"t\""),
            ("SELECT a FROM `project.sales.orders`", "SELECT a FROM \"project\".\"sales\".\"orders\""),
            ("SELECT a FROM t; SELECT 2", "SELECT a FROM t"),
            ("SELECT a FROM t WHERE a = 1 && b < 2", "SELECT a FROM t WHERE a = 1 AND b < 2"),
            ("SELECT a FROM t LIMIT 1 ORDER BY a", "SELECT a FROM t ORDER BY a LIMIT 1"),
            ("SELECT a MOD 2 FROM t", "SELECT a % 2 FROM t"),
            ("SELECT a FROM t WHERE a GLOB 'x.*'", "SELECT a FROM t WHERE a ~ '^x\\..*$'"),
            ("SELECT a FROM t WHERE a IS NOT 'x'", "SELECT a FROM t WHERE a IS DISTINCT FROM 'x'"),
            (
                "SELECT a FROM t WHERE a IS 'x' OR b IS NULL",
                "SELECT a FROM t WHERE a IS NOT DISTINCT FROM 'x' OR b IS NULL",
            ),
            ("SELECT APPROXIMATE COUNT(DISTINCT a) FROM t", "SELECT COUNT(DISTINCT a) FROM t"),
            ("SELECT a FROM `t` WHERE f(a, r'^x')", "SELECT a FROM \"t\" WHERE f(a, '^x')"),
        ] {
            let parsed = parse_query(sql).unwrap_or_else(|| panic!("{sql}"));
            assert_eq!(parsed.statement.to_string(), expected, "{sql}");
        }
        assert!(parse_query("no query").is_none());
        assert!(parse_query("DELETE FROM t").is_none());
    }
}
