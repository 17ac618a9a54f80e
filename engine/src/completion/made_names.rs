//! The names that a statement makes itself: columns by `AS`, `extend` and `summarize`, tables by `WITH` and `let`.

use super::words::{StatementWord, WordKind};
use super::{CompletionLanguage, KQL_AGGREGATES};
use crate::identifiers::is_reserved_word;

/// Words before which names are of columns, and those before which they are of tables.
const COLUMN_CLAUSES: [&str; 2] = ["SELECT", "RETURNING"];
const TABLE_CLAUSES: [&str; 6] = ["FROM", "JOIN", "USING", "INTO", "UPDATE", "WITH"];
/// What stands before `=` in KQL and is the name of an option.
const OPTIONS: [&str; 6] = ["kind", "isfuzzy", "withsource", "with_source", "bagexpansion", "with_itemindex"];

/// The most words of a query's list that are read for the names of its columns: queries may be within each other.
const MAX_LIST_WORDS: usize = 2_000;

/// The names that a statement makes.
#[derive(Debug, Default)]
pub(super) struct MadeNames {
    pub(super) columns: Vec<String>,
    /// Tables, with the columns that are known of them.
    pub(super) tables: Vec<(String, Vec<String>)>,
}

/// Looks for the names that a statement makes.
pub(super) fn made_names(words: &[StatementWord], language: CompletionLanguage) -> MadeNames {
    match language {
        CompletionLanguage::Kql => made_in_kql(words),
        CompletionLanguage::Sql | CompletionLanguage::Either => made_in_sql(words),
    }
}

/// Returns the clause that a place is in: the last word before it that begins one, at the place's own depth.
pub(super) fn clause_before(words: &[StatementWord]) -> Option<Clause> {
    let mut depth = 0_usize;
    for word in words.iter().rev() {
        if word.is_sign(")") {
            depth += 1;
        } else if word.is_sign("(") {
            depth = depth.checked_sub(1)?;
        } else if depth == 0
            && let Some(clause) = Clause::begun_by(word)
        {
            return Some(clause);
        }
    }
    None
}

/// What the names of a clause are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clause {
    Columns,
    Tables,
    Other,
}

impl Clause {
    fn begun_by(word: &StatementWord) -> Option<Self> {
        if COLUMN_CLAUSES.iter().any(|clause| word.is(clause)) {
            Some(Clause::Columns)
        } else if TABLE_CLAUSES.iter().any(|clause| word.is(clause)) {
            Some(Clause::Tables)
        } else if ["WHERE", "ON", "BY", "HAVING", "SET", "VALUES"].iter().any(|clause| word.is(clause)) {
            Some(Clause::Other)
        } else {
            None
        }
    }
}

/// The brackets around a word, and the clause that it is in, kept while words are read in order.
#[derive(Debug, Default)]
struct ClauseNesting {
    /// Where each opens, and the clause around it.
    open: Vec<(usize, Option<Clause>)>,
    /// As [`clause_before`] the next word has it.
    clause: Option<Clause>,
    /// Where the brackets opened that the last word closed.
    closed: Option<usize>,
}

impl ClauseNesting {
    fn read(&mut self, at: usize, word: &StatementWord) {
        self.closed = None;
        if word.is_sign("(") {
            self.open.push((at, self.clause.take()));
        } else if word.is_sign(")") {
            // What stands before brackets that nothing opens is of no clause.
            let opened = self.open.pop();
            self.clause = opened.and_then(|(_, around)| around);
            self.closed = opened.map(|(opened_at, _)| opened_at);
        } else if let Some(clause) = Clause::begun_by(word) {
            self.clause = Some(clause);
        }
    }
}

fn made_in_sql(words: &[StatementWord]) -> MadeNames {
    let mut made = MadeNames::default();
    let mut brackets = ClauseNesting::default();
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1);
        let before = at.checked_sub(1).and_then(|before| words.get(before));
        let query_before = || {
            let query = words.get(brackets.closed? + 1..at - 1)?;
            query.first()?.is("SELECT").then(|| outputs(query))
        };
        if word.is("AS") {
            if next.is_some_and(|next| next.is_sign("("))
                && let Some(name) = before.filter(|name| name.is_name())
            {
                made.tables.push((name.text.clone(), outputs(words.get(at + 2..).unwrap_or_default())));
            } else if let Some(name) = next.filter(|name| name.is_name()) {
                match query_before() {
                    Some(columns) => made.tables.push((name.text.clone(), columns)),
                    None if brackets.clause == Some(Clause::Columns) => made.columns.push(name.text.clone()),
                    None => {}
                }
            }
        } else if word.is_name()
            && (word.kind == WordKind::QuotedName || !is_reserved_word(&word.text))
            && let Some(columns) = query_before()
        {
            made.tables.push((word.text.clone(), columns));
        }
        brackets.read(at, word);
    }
    made
}

/// The names of the columns of a query, which may have more behind it, as far as its list says them: the last name of each of its
/// expressions.
fn outputs(query: &[StatementWord]) -> Vec<String> {
    if !query.first().is_some_and(|word| word.is("SELECT")) {
        return Vec::new();
    }
    let mut depth = 0_usize;
    let mut last: Option<&StatementWord> = None;
    let mut names = Vec::new();
    let mut take = |last: Option<&StatementWord>| {
        if let Some(word) = last.filter(|word| word.is_name() && !word.is("SELECT")) {
            names.push(word.text.clone());
        }
    };
    for word in query.iter().skip(1).take(MAX_LIST_WORDS) {
        if depth == 0 && (word.is("FROM") || word.is_sign(")")) {
            break;
        }
        if depth == 0 && word.is_sign(",") {
            take(last);
            last = None;
            continue;
        }
        if word.is_sign("(") {
            depth += 1;
        } else if word.is_sign(")") {
            depth = depth.saturating_sub(1);
        }
        last = Some(word);
    }
    take(last);
    names
}

fn made_in_kql(words: &[StatementWord]) -> MadeNames {
    let mut made = MadeNames::default();
    for (at, word) in words.iter().enumerate() {
        let is_sign = |place: usize, sign: &str| words.get(place).is_some_and(|word| word.is_sign(sign));
        let before = at.checked_sub(1).and_then(|before| words.get(before));
        let is_let = before.is_some_and(|before| before.is("let"));
        let is_assigned = is_sign(at + 1, "=") && !is_sign(at + 2, "=") && !is_sign(at + 2, "~");
        if word.is_name() && is_assigned {
            if is_let {
                made.tables.push((word.text.clone(), Vec::new()));
            } else if !OPTIONS.iter().any(|option| word.is(option)) {
                made.columns.push(word.text.clone());
            }
        }
        // Aggregates without a name are called after themselves and their column: count_, sum_price.
        let is_aggregate = word.kind == WordKind::Name
            && is_sign(at + 1, "(")
            && KQL_AGGREGATES.split_whitespace().any(|aggregate| aggregate == word.text)
            && !before.is_some_and(|before| before.is_sign("="));
        if is_aggregate && is_sign(at + 2, ")") {
            made.columns.push(format!("{}_", word.text));
        } else if is_aggregate && is_sign(at + 3, ")") {
            let column = words.get(at + 2).filter(|column| column.is_name());
            made.columns.extend(column.map(|column| format!("{}_{}", word.text, column.text)));
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::completion::words::words_of;

    #[test]
    fn names_are_found_where_a_statement_makes_them() {
        let made = |text: &str, language| made_names(&words_of(text, language).words, language);
        let sql = made(
            "WITH x AS (SELECT a, t.b, count(*) AS n, CAST(c AS INT) FROM t), y AS (FROM t) \
             SELECT n + 1 AS more, sum(n) \"Sum\" FROM x AS u JOIN (SELECT q.k FROM q) s ON s.k = u.a",
            CompletionLanguage::Sql,
        );
        assert_eq!(sql.columns, ["n", "more"]);
        let columns = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let (x, y, s) = (columns(&["a", "b", "n"]), Vec::new(), columns(&["k"]));
        assert_eq!(sql.tables, [("x".to_owned(), x), ("y".to_owned(), y), ("s".to_owned(), s)]);
        let kql = made(
            "let T = flights | extend z = 1; T | where a == 2 | join kind=inner (u) on k | summarize n = sum(a), \
             count(), avg(b) by ['my x']",
            CompletionLanguage::Kql,
        );
        assert_eq!(kql.columns, ["z", "n", "count_", "avg_b"]);
        assert_eq!(kql.tables, [("T".to_owned(), Vec::new())]);
    }

    /// The longest text that is completed took minutes of a thread that answers requests.
    #[test]
    fn long_statements_are_read_in_time() {
        for (begin, part) in
            [("SELECT ", "a AS b, "), ("", ") a "), ("WITH ", "a AS ("), ("", "(SELECT "), ("(SELECT a", ") AS b ")]
        {
            let text = format!("{begin}{}", part.repeat((256 << 10) / part.len()));
            let began = Instant::now();
            made_names(&words_of(&text, CompletionLanguage::Sql).words, CompletionLanguage::Sql);
            assert!(began.elapsed() < Duration::from_secs(20), "{part}: {:?}", began.elapsed());
        }
    }
}
