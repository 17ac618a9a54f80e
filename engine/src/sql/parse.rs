//! Parses SQL into one statement. The length of the text and how deep a statement can nest are limited before.

use datafusion::error::DataFusionError;
use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use super::copied_characters::settle_copied;
use super::dialect::SqlDialect;
use super::marks;
use super::symmetric_ranges::write_out_symmetric;
use super::tokens::rewrite_tokens;
use super::with_weight::check_with_weight;
use crate::error::{EngineError, Result};
use crate::limits::QueryUsage;

/// The longest statement text.
const MAX_TEXT_BYTES: usize = 16 << 20;
/// The deepest nesting of brackets, CASE and prefix operators.
const MAX_BRACKETS: usize = 64;
/// How often the parser calls itself for one of them, at most. Where its own limit is reached it tries each level again in
/// another way, which takes time that doubles with each level: so what nests too deeply is refused by its tokens before.
const RECURSIONS_A_BRACKET: usize = 8;
/// The most queries in one statement, subqueries among them.
const MAX_QUERIES: usize = 2_000;
/// The longest number: parsing one takes the square of its length.
const MAX_NUMBER_BYTES: usize = 1_000;
/// The most tokens of one list item. Operator chains (`a + a + ...`, `SELECT 1 UNION SELECT 2 ...`) become trees as
/// deep as they are long, and trees are walked and dropped recursively: without a bound their depth is the sender's choice.
const MAX_CHAIN_TOKENS: usize = 2_000;

/// The most members of one UNION and tables of one FROM clause: each makes the plan a level deeper, whatever is between
/// them. A table counts as several members, since joins are planned in more steps.
const MAX_JOINED: usize = 600;
const TABLE_WEIGHT: usize = 3;
/// From this number of members, a statement is planned on a stack of its own.
const MANY_JOINED: usize = 16;

/// The highest position of a parameter.
const MAX_PARAMETERS: usize = 65_535;
/// Past this number of marks of nesting, a statement is parsed and planned on a stack of its own.
const SHALLOW_MARKS: usize = 16;
/// The size of that stack: several times what `MAX_BRACKETS` levels of subqueries need in an unoptimised build.
const DEEP_STACK_BYTES: usize = 128 << 20;

/// A statement, and how much stack it needs.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ParsedStatement {
    pub(crate) statement: Statement,
    pub(crate) nesting: Nesting,
    /// The number of its parameters, by the highest position.
    pub(crate) parameters: usize,
    /// Whether it has any, numbered or named.
    pub(crate) has_parameters: bool,
    /// The bytes of its text.
    pub(crate) text_bytes: usize,
}

impl ParsedStatement {
    /// Whether its parameters are called by names.
    pub(crate) fn has_named_parameters(&self) -> bool {
        self.has_parameters && self.parameters == 0
    }
}

/// How deep a statement may nest, as its tokens say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nesting {
    /// The stack of an ordinary thread is enough.
    Shallow,
    /// It is perhaps not enough.
    Deep,
}

impl Nesting {
    /// Runs `work`, which recurses over the statement, on a stack that is large enough.
    pub(crate) fn with_room<T>(self, work: impl FnOnce() -> T) -> T {
        match self {
            Nesting::Shallow => work(),
            Nesting::Deep => stacker::grow(DEEP_STACK_BYTES, work),
        }
    }
}

/// Parses exactly one statement.
pub(crate) fn parse_statement(text: &str) -> Result<ParsedStatement> {
    if text.len() > MAX_TEXT_BYTES {
        return Err(EngineError::Plan {
            message: format!(
                "the statement is longer than {} MiB; import data from files instead",
                MAX_TEXT_BYTES >> 20
            ),
        });
    }
    let dialect = SqlDialect;
    let mut tokens = Tokenizer::new(&dialect, text)
        .tokenize_with_location()
        .map_err(|error| DataFusionError::from(ParserError::from(error)))?;
    let check = || QueryUsage::check_current().map_err(EngineError::from);
    check()?;
    settle_copied(&mut tokens)?;
    let parameters = number_placeholders(&mut tokens)?;
    let has_parameters = tokens.iter().any(|token| matches!(token.token, Token::Placeholder(_)));
    let nesting = nesting(&tokens)?;
    let tokens = rewrite_tokens(text, tokens)?;
    check()?;
    let is_mark = |token: &TokenWithSpan| matches!(&token.token, Token::Word(word) if word.value == marks::SYMMETRIC);
    let has_symmetric = tokens.iter().any(is_mark);
    let statements = nesting.with_room(|| {
        DFParserBuilder::new(tokens)
            .with_dialect(&dialect)
            .with_recursion_limit(MAX_BRACKETS * RECURSIONS_A_BRACKET)
            .build()?
            .parse_statements()
    })?;
    check()?;
    let found = statements.len();
    let mut statements = statements.into_iter();
    match (statements.next(), found) {
        (Some(mut statement), 1) => {
            nesting.with_room(|| check_with_weight(&statement))?;
            if has_symmetric {
                nesting.with_room(|| write_out_symmetric(&mut statement))?;
            }
            Ok(ParsedStatement { statement, nesting, parameters, has_parameters, text_bytes: text.len() })
        }
        (None, _) => Err(EngineError::EmptyQuery),
        (Some(_), found) => Err(EngineError::MultipleStatements { found }),
    }
}

/// Numbers the positional parameters, as JDBC, ODBC and Python's drivers write them: the first `?` is `$1`, the next one
/// `$2`, and `?3` is `$3`. The planner knows numbered and named ones only. Returns the highest position. Errors: where `?`
/// and `$1` are mixed.
fn number_placeholders(tokens: &mut [TokenWithSpan]) -> Result<usize> {
    let mut positions = 0;
    let mut highest = 0;
    let mut has_numbered = false;
    for token in tokens {
        let Token::Placeholder(name) = &mut token.token else { continue };
        match name.strip_prefix('?') {
            Some("") => {
                positions += 1;
                *name = format!("${positions}");
            }
            Some(number) => {
                has_numbered = true;
                *name = format!("${number}");
            }
            None => has_numbered = true,
        }
        let position = name.trim_start_matches('$');
        if !position.is_empty() && position.bytes().all(|byte| byte.is_ascii_digit()) {
            // As many as there are up to the highest are described and bound, whether or not the statement has them all.
            let known = position.parse().ok().filter(|position| (1..=MAX_PARAMETERS).contains(position));
            let position: usize = known.ok_or_else(|| EngineError::Plan {
                message: format!("`{name}` is no parameter; they are numbered from $1 to ${MAX_PARAMETERS}"),
            })?;
            highest = highest.max(position);
        }
    }
    if positions > 0 && has_numbered {
        return Err(EngineError::Plan {
            message: "parameters are written either `?` or `$1`, `$2`, ..., not both in one statement".into(),
        });
    }
    Ok(highest)
}

/// Refuses a statement that would parse into a tree deeper than the engine walks, and returns how deep another may be. Lists
/// (of columns, rows, arguments, branches of CASE) do not deepen a tree, so a comma or a WHEN ends a chain; a bracket and a CASE
/// open one of their own.
fn nesting(tokens: &[TokenWithSpan]) -> Result<Nesting> {
    let mut outer: Vec<(ChainCounter, JoinCounter)> = Vec::new();
    // The chains around each CASE, with the number of brackets that it is in.
    let mut cases: Vec<(usize, ChainCounter)> = Vec::new();
    let mut chain = ChainCounter::default();
    let mut joined = JoinCounter::default();
    let mut most_joined = 0;
    let mut marks = 0;
    let mut depth = DepthCounter::default();
    for token in tokens {
        depth.see(&token.token)?;
        joined.see(&token.token);
        most_joined = most_joined.max(joined.count);
        if most_joined > MAX_JOINED {
            return Err(EngineError::too_deep());
        }
        let is_in_case = cases.last().is_some_and(|(brackets, _)| *brackets == outer.len());
        match &token.token {
            Token::Whitespace(_) => {}
            Token::Comma | Token::SemiColon => chain = ChainCounter::default(),
            Token::LParen | Token::LBracket | Token::LBrace => {
                chain.tokens += 1;
                outer.push((std::mem::take(&mut chain), std::mem::take(&mut joined)));
                marks += 1;
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                (chain, joined) = outer.pop().unwrap_or_default();
                cases.retain(|(brackets, _)| *brackets <= outer.len());
            }
            Token::Minus | Token::Plus | Token::Tilde => {
                chain.tokens += 1;
                marks += 1;
            }
            Token::Word(word) => match word.keyword {
                Keyword::CASE => {
                    chain.tokens += 1;
                    cases.push((outer.len(), std::mem::take(&mut chain)));
                    marks += 1;
                }
                Keyword::WHEN | Keyword::THEN | Keyword::ELSE if is_in_case => chain = ChainCounter::default(),
                Keyword::END if is_in_case => chain = cases.pop().map(|(_, chain)| chain).unwrap_or_default(),
                Keyword::AND | Keyword::OR => chain.see_boolean(),
                Keyword::NOT | Keyword::UNION => {
                    chain.tokens += 1;
                    marks += 1;
                }
                _ => chain.tokens += 1,
            },
            _ => chain.tokens += 1,
        }
        if chain.length() > MAX_CHAIN_TOKENS {
            return Err(EngineError::too_deep());
        }
    }
    let chained = tokens.len() > MAX_CHAIN_TOKENS / 4 || most_joined > MANY_JOINED;
    Ok(if marks > SHALLOW_MARKS || chained { Nesting::Deep } else { Nesting::Shallow })
}

/// Counts how deep a chain of operators may be.
#[derive(Debug, Default)]
struct ChainCounter {
    /// Its AND and OR.
    booleans: usize,
    /// Tokens since the last of them: what binds more closely is a tree of its own between two of them.
    tokens: usize,
}

impl ChainCounter {
    /// As of any other operator, a token for itself and one for what it takes.
    const BOOLEAN_TOKENS: usize = 2;

    fn see_boolean(&mut self) {
        self.booleans += 1;
        self.tokens = 0;
    }

    /// Returns the number of tokens that a chain of this depth has at least.
    fn length(&self) -> usize {
        self.booleans * Self::BOOLEAN_TOKENS + self.tokens
    }
}

/// Counts how deep a statement nests, and what else the parser's time grows with.
#[derive(Default)]
struct DepthCounter {
    brackets: usize,
    cases: usize,
    /// Prefix operators in a row.
    prefixes: usize,
    follows_operand: bool,
    queries: usize,
}

impl DepthCounter {
    fn see(&mut self, token: &Token) -> Result<()> {
        let mut is_prefix = false;
        let mut is_operand = false;
        match token {
            Token::Whitespace(_) => return Ok(()),
            Token::LParen | Token::LBracket | Token::LBrace => self.brackets += 1,
            Token::RParen | Token::RBracket | Token::RBrace => {
                self.brackets = self.brackets.saturating_sub(1);
                is_operand = true;
            }
            Token::Minus | Token::Plus | Token::Tilde => is_prefix = !self.follows_operand,
            Token::Number(digits, _) => {
                if digits.len() > MAX_NUMBER_BYTES {
                    let message = format!("a number has at most {MAX_NUMBER_BYTES} digits");
                    return Err(EngineError::Plan { message });
                }
                is_operand = true;
            }
            Token::Word(word) => match word.keyword {
                Keyword::NOT | Keyword::EXPLAIN | Keyword::INTERVAL | Keyword::PRIOR => is_prefix = true,
                Keyword::CASE => self.cases += 1,
                Keyword::END => self.cases = self.cases.saturating_sub(1),
                Keyword::SELECT => self.queries += 1,
                _ => is_operand = true,
            },
            Token::SingleQuotedString(_) | Token::Placeholder(_) => is_operand = true,
            _ => {}
        }
        self.prefixes = if is_prefix { self.prefixes + 1 } else { 0 };
        self.follows_operand = is_operand;
        if self.brackets + self.cases + self.prefixes > MAX_BRACKETS || self.queries > MAX_QUERIES {
            return Err(EngineError::too_deep());
        }
        Ok(())
    }
}

/// Counts what deepens a plan although commas are between: tables of a FROM clause, joins, members of a UNION, WITH queries.
#[derive(Default)]
struct JoinCounter {
    count: usize,
    in_list: bool,
}

impl JoinCounter {
    fn see(&mut self, token: &Token) {
        match token {
            Token::Comma if self.in_list => self.count += TABLE_WEIGHT,
            Token::Word(word) => match word.keyword {
                Keyword::FROM | Keyword::WITH => self.in_list = true,
                Keyword::JOIN => self.count += TABLE_WEIGHT,
                Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::MINUS => {
                    self.count += 1;
                    self.in_list = false;
                }
                Keyword::SELECT
                | Keyword::WHERE
                | Keyword::GROUP
                | Keyword::HAVING
                | Keyword::ORDER
                | Keyword::LIMIT
                | Keyword::VALUES => self.in_list = false,
                _ => {}
            },
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_statement_and_no_more() {
        assert!(parse_statement("select 1;").is_ok());
        assert_eq!(refused("select 1; drop table t"), "multiple_statements");
        assert_eq!(refused(" ; -- nothing\n"), "empty_query");
        assert_eq!(refused("selec 1"), "sql_parse_error");
        assert_eq!(refused("select 'open"), "sql_parse_error");
    }

    #[test]
    fn depth_is_bounded_whatever_makes_it() {
        let chain = format!("select 1{}", " + 1".repeat(100_000));
        let unions = format!("select 1{}", " union all select 1".repeat(100_000));
        let casts = format!("select 1{}", "::int".repeat(100_000));
        let parentheses = format!("select {}1{}", "(".repeat(5_000), ")".repeat(5_000));
        let listed_unions = format!("select 1, 1{}", " union all select 1, 1".repeat(700));
        let tables = format!("select 1 from t{}", ", t".repeat(300));
        let queries = format!("with a as (select 1){} select 1", ", b as (select 1)".repeat(300));
        let ors = format!("select a = 1{}", " or a = 1".repeat(1_001));
        let sums = format!("select a = 1 or a{} = 1", " + 1".repeat(1_000));
        let case = format!("select case when a = 1{} then 1 end", " and b".repeat(1_001));
        let after_case = format!("select case when a then 1 end{}", " + 1".repeat(1_001));
        let cases = format!("select {} 1 {}", "case when a then ".repeat(70), "end ".repeat(70));
        for text in
            [chain, unions, casts, parentheses, listed_unions, tables, queries, ors, sums, case, after_case, cases]
        {
            assert_eq!(refused(&text), "sql_plan_error");
        }
    }

    #[test]
    fn conditions_and_branches_may_be_many() {
        let ors = format!("select 1 from t where a = 1{}", " or a = 2 and b between 1 and 2".repeat(300));
        let branches =
            format!("select case{} else (case when b then 1 end) end", " when a = 1 or b then 1 + 1".repeat(2_000));
        let many = format!("select 1 from t where a = 1{}", " or a = 2".repeat(990));
        for text in [ors, branches, many] {
            assert!(parse_statement(&text).is_ok());
        }
    }

    #[test]
    fn long_lists_are_not_deep() {
        let rows = vec!["(1, 'a')"; 20_000].join(", ");
        assert!(parse_statement(&format!("insert into t values {rows}")).is_ok());
    }

    #[test]
    fn positional_parameters_are_numbered() {
        let parsed = |text: &str| parse_statement(text).unwrap_or_else(|error| panic!("{error}")).statement.to_string();
        assert_eq!(
            parsed("select ?, '?', \"?\" from t where a = ? -- ?"),
            parsed("select $1, '?', \"?\" from t where a = $2")
        );
        assert_eq!(parsed("select ?2, ?1"), "SELECT $2, $1");
        assert_eq!(refused("select ?, $1"), "sql_plan_error");
        for position in ["0", "65536", "20000000000", "99999999999999999999999"] {
            assert_eq!(refused(&format!("select ${position}")), "sql_plan_error");
        }
    }

    #[test]
    fn only_what_nests_gets_a_deep_stack() {
        let nesting = |text: &str| parse_statement(text).unwrap_or_else(|error| panic!("{error}")).nesting;
        assert_eq!(nesting("select a, count(*) from t where (a > 1) group by a"), Nesting::Shallow);
        assert_eq!(nesting(&format!("select {}1{}", "(".repeat(30), ")".repeat(30))), Nesting::Deep);
        assert_eq!(nesting(&format!("select {}true", "not ".repeat(40))), Nesting::Deep);
    }

    fn refused(text: &str) -> &'static str {
        match parse_statement(text) {
            Ok(_) => "parsed",
            Err(error) => error.code(),
        }
    }
}
