//! Counter-checks of a query that has run: what can make its rows other than what was asked, although nothing failed.
//! Each is a look at the syntax tree and, where that leaves a doubt, one cheap query as the caller. It speaks only
//! when it has found something.

mod conditions;
mod dates;
mod fan_out;
mod joins;
mod left_out;
mod limits;
mod nulls;
mod numbers;
mod repeats;
mod scales;
mod spellings;
mod texts;

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::StreamExt;
use querent_engine::Session;
use serde::Serialize;
use sqlparser::ast::{Query, Select, SetExpr, Statement, Visit, Visitor};

use crate::config::CheckTimes;
use crate::repair::{ComparedTexts, KnownTables, Scope, Scopes, TablesAtHand, known_tables, parse_query};

/// The most that is said of one query.
const MAX_FINDINGS: usize = 4;
/// Relationships of the tables of one query.
const MAX_RELATIONSHIPS: usize = 100;
/// Queries within a query that are looked at, itself among them.
const MAX_QUERIES: usize = 5;

/// What a check is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CheckKind {
    /// A join repeats rows of what is summed.
    FanOut,
    /// Nulls leave rows out.
    Nulls,
    /// A text is not among the values of its column.
    Literal,
    /// A day or a month is cut.
    Period,
    /// A limit leaves rows out, or one of equals.
    Limit,
    /// Whole numbers are divided.
    Division,
    /// Averages are averaged, or equal values summed once.
    Average,
    /// Numbers that are kept as texts are ordered as texts.
    Text,
    /// Tables are joined by other columns than those that refer to each other, or not at all.
    Join,
    /// A condition is true of every row or of none, or binds otherwise than it reads.
    Condition,
}

/// Something that a check has found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) kind: CheckKind,
    pub(crate) message: String,
}

impl Finding {
    fn new(kind: CheckKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

/// What the checks of one query work with.
struct Checked<'a> {
    session: &'a Session,
    query: &'a Query,
    known: &'a KnownTables,
    at_hand: &'a TablesAtHand,
    times: CheckTimes,
    /// Whether a query of a check took too long.
    is_cut: &'a AtomicBool,
}

/// What the checks of a query have found.
#[derive(Debug, Default)]
pub(crate) struct CheckedQuery {
    /// The gravest first.
    pub(crate) findings: Vec<Finding>,
    /// Whether some checks took too long, and may have found more.
    pub(crate) is_cut: bool,
}

/// Returns the rows that a SELECT reads, from FROM to WHERE.
fn rows_read(select: &Select) -> String {
    let from: Vec<String> = select.from.iter().map(ToString::to_string).collect();
    let filter = select.selection.as_ref().map(|filter| format!(" WHERE {filter}")).unwrap_or_default();
    format!("FROM {}{filter}", from.join(", "))
}

impl Checked<'_> {
    /// Returns the query's WITH and a space; nothing where it has none.
    fn with_clause(&self) -> String {
        self.query.with.as_ref().map(|with| format!("{with} ")).unwrap_or_default()
    }

    /// Returns whether a query has rows, within the time of one check.
    async fn has_rows(&self, sql: &str) -> bool {
        self.rows(sql, 1).await.is_some_and(|rows| !rows.is_empty())
    }

    /// Returns the first rows of a query as texts; `None` where it fails or takes too long.
    async fn rows(&self, sql: &str, most: usize) -> Option<Vec<Vec<String>>> {
        let read = async {
            let mut stream = self.session.sql(sql).await.ok()?;
            let mut rows = Vec::new();
            while rows.len() < most
                && let Some(batch) = stream.next().await
            {
                let batch = batch.ok()?;
                for row in 0..batch.num_rows().min(most - rows.len()) {
                    let values = batch
                        .columns()
                        .iter()
                        .map(|column| arrow::util::display::array_value_to_string(column, row).unwrap_or_default());
                    rows.push(values.collect());
                }
            }
            Some(rows)
        };
        let read = tokio::time::timeout(self.times.one, read).await;
        self.is_cut.fetch_or(read.is_err(), Ordering::Relaxed);
        read.ok().flatten()
    }

    fn scopes(&self) -> Scopes<'_> {
        let mut scopes = Scopes::new(self.known, self.session.database());
        scopes.enter_query(self.query);
        scopes
    }

    /// Returns the query's own scope.
    fn scope(&self) -> Scope {
        self.scopes().stack.pop().unwrap_or_default()
    }

    /// Returns the scope of a query within it.
    fn scope_within(&self, query: &Query) -> Scope {
        let mut scopes = self.scopes();
        scopes.enter_query(query);
        scopes.stack.pop().unwrap_or_default()
    }
}

/// Checks a query that has returned `rows` rows, within some times.
pub(crate) async fn check(
    session: &Session,
    at_hand: &TablesAtHand,
    times: CheckTimes,
    sql: &str,
    rows: usize,
) -> CheckedQuery {
    let Some(parsed) = parse_query(sql) else { return CheckedQuery::default() };
    let Statement::Query(query) = &parsed.statement else { return CheckedQuery::default() };
    let known = known_tables(session, at_hand, &parsed.statement).await;
    let read: Vec<i64> =
        known.named_in(&parsed.statement, session.database()).into_iter().map(|table| table.id).collect();
    let related = with_relationships(session, at_hand, &read).await;
    let at_hand = related.as_ref();
    let mut findings = Vec::new();
    let is_cut = AtomicBool::new(false);
    let checks = async {
        for (index, query) in queries_within(query).iter().enumerate() {
            let SetExpr::Select(select) = query.body.as_ref() else { continue };
            let checked = Checked { session, query, known: &known, at_hand, times, is_cut: &is_cut };
            findings.extend(joins::check(&checked, select).await);
            findings.extend(fan_out::check(&checked, select).await);
            findings.extend(repeats::check(&checked, select, index == 0 && rows > 1).await);
            findings.extend(conditions::check(select));
            findings.extend(dates::check(&checked, select).await);
            findings.extend(nulls::check(&checked, select).await);
            findings.extend(left_out::check(&checked, select).await);
            findings.extend(numbers::check(&checked, select));
            findings.extend(texts::check(&checked, select).await);
            findings.extend(match index {
                0 => limits::check(&checked, select, rows).await,
                _ => limits::check_within(&checked, select).await,
            });
            findings.extend(spellings::check(&checked, select).await);
            findings.extend(scales::check(&checked, select).await);
        }
        let texts = ComparedTexts::read(session, at_hand, sql).await;
        is_cut.fetch_or(texts.as_ref().is_some_and(ComparedTexts::is_cut), Ordering::Relaxed);
        for unknown in texts.iter().flat_map(ComparedTexts::unknown) {
            let near: Vec<String> = unknown.near.iter().map(|value| format!("'{value}'")).collect();
            let near = if near.is_empty() { String::new() } else { format!("; the nearest are {}", near.join(", ")) };
            let message = format!("no row of `{}.{}` has '{}'{near}", unknown.table, unknown.column, unknown.literal);
            findings.push(Finding::new(CheckKind::Literal, message));
        }
    };
    let are_late = tokio::time::timeout(times.all, checks).await.is_err();
    let mut said: Vec<Finding> = Vec::new();
    for finding in findings {
        if !said.contains(&finding) {
            said.push(finding);
        }
    }
    said.truncate(MAX_FINDINGS);
    CheckedQuery { findings: said, is_cut: are_late || is_cut.into_inner() }
}

/// Returns the tables at hand with the relationships of those that a query reads, by their ids.
async fn with_relationships<'a>(session: &Session, at_hand: &'a TablesAtHand, read: &[i64]) -> Cow<'a, TablesAtHand> {
    if read.len() < 2 {
        return Cow::Borrowed(at_hand);
    }
    let relationships = session.engine().catalog().relationships();
    let found = relationships.with_neighbors(session.principal(), read, MAX_RELATIONSHIPS).await;
    let mut all = at_hand.clone();
    all.relationships.extend(found.unwrap_or_default());
    Cow::Owned(all)
}

/// Returns a query and those within it, of WITH, FROM and conditions. What a check asks of one that depends on the query
/// around fails, and finds nothing.
fn queries_within(query: &Query) -> Vec<Query> {
    struct QueryFinder(Vec<Query>);
    impl Visitor for QueryFinder {
        type Break = ();
        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            self.0.push(query.clone());
            if self.0.len() < MAX_QUERIES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        }
    }
    let mut finder = QueryFinder(Vec::new());
    let _: ControlFlow<()> = query.visit(&mut finder);
    finder.0
}
