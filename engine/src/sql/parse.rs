//! SQL text to one statement. Bounded before it is parsed: text size, and how deep a statement can nest.

use datafusion::error::DataFusionError;
use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use crate::{EngineError, Result};

/// The longest statement text.
const MAX_TEXT_BYTES: usize = 16 << 20;
/// How deep parentheses, subqueries and prefix operators nest.
const MAX_RECURSION: usize = 64;
/// The most tokens of one list item. Operator chains (`a + a + ...`, `SELECT 1 UNION SELECT 2 ...`) become trees as
/// deep as they are long, and trees are walked and dropped recursively: without a bound their depth is the sender's choice.
const MAX_CHAIN_TOKENS: usize = 4_000;

/// Parses exactly one statement.
pub(crate) fn parse(text: &str) -> Result<Statement> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(EngineError::Plan {
            message: format!(
                "the statement is longer than {} MiB; import data from files instead",
                MAX_TEXT_BYTES >> 20
            ),
        });
    }
    let dialect = GenericDialect {};
    let tokens = Tokenizer::new(&dialect, text).tokenize_with_location().map_err(|error| {
        EngineError::from(DataFusionError::from(datafusion::sql::sqlparser::parser::ParserError::from(error)))
    })?;
    check_chains(&tokens)?;
    let statements = DFParserBuilder::new(tokens)
        .with_dialect(&dialect)
        .with_recursion_limit(MAX_RECURSION)
        .build()?
        .parse_statements()?;
    let found = statements.len();
    let mut statements = statements.into_iter();
    match (statements.next(), found) {
        (Some(statement), 1) => Ok(statement),
        (None, _) => Err(EngineError::EmptyQuery),
        (Some(_), found) => Err(EngineError::MultipleStatements { found }),
    }
}

/// Refuses what would parse into a tree deeper than the engine walks. Lists (of columns, rows, arguments) do not
/// deepen a tree, so a comma starts the count anew; a bracket opens a count of its own.
fn check_chains(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut outer: Vec<usize> = Vec::new();
    let mut run = 0;
    for token in tokens {
        match &token.token {
            Token::Whitespace(_) => {}
            Token::Comma | Token::SemiColon => run = 0,
            Token::LParen | Token::LBracket | Token::LBrace => {
                outer.push(run + 1);
                run = 0;
            }
            Token::RParen | Token::RBracket | Token::RBrace => run = outer.pop().unwrap_or(0),
            _ => run += 1,
        }
        if run > MAX_CHAIN_TOKENS {
            return Err(EngineError::too_deep());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_statement_and_no_more() {
        assert!(parse("select 1;").is_ok());
        assert_eq!(parse("select 1; drop table t").unwrap_err().code(), "multiple_statements");
        assert_eq!(parse(" ; -- nothing\n").unwrap_err().code(), "empty_query");
        assert_eq!(parse("selec 1").unwrap_err().code(), "sql_parse_error");
        assert_eq!(parse("select 'open").unwrap_err().code(), "sql_parse_error");
    }

    #[test]
    fn depth_is_bounded_whatever_makes_it() {
        let chain = format!("select 1{}", " + 1".repeat(100_000));
        let unions = format!("select 1{}", " union all select 1".repeat(100_000));
        let casts = format!("select 1{}", "::int".repeat(100_000));
        let parentheses = format!("select {}1{}", "(".repeat(5_000), ")".repeat(5_000));
        for text in [chain, unions, casts, parentheses] {
            assert_eq!(parse(&text).unwrap_err().code(), "sql_plan_error");
        }
    }

    #[test]
    fn long_lists_are_not_deep() {
        let rows = vec!["(1, 'a')"; 20_000].join(", ");
        assert!(parse(&format!("insert into t values {rows}")).is_ok());
    }
}
