//! Repairs of a query without a model: what is deterministic about a query that fails is put right by code, on its
//! syntax tree and what the catalog knows. A small model writes the database as the table, drops the database of a
//! joined table, asks the wrong table for a column, puts texts in double quotes, and writes the SQL of other systems;
//! asked to correct that, it sends the same again.
//!
//! A repair is tried only where the query as sent has failed or found nothing, and it never changes what a query means
//! without saying so: each has a line of what was written, what ran, and why.

mod aggregates;
mod clause_order;
mod columns;
mod counts;
mod dialects;
mod foreign_functions;
mod foreign_syntax;
mod grouping;
mod joins;
mod keep_clauses;
mod literals;
mod near;
mod parse;
mod scopes;
mod subqueries;
mod tables;
mod time_formats;
mod types;
mod weekdays;
mod written_values;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use querent_catalog::{PageRequest, Relationship, TableFilter, TableInfo, TableName};
use querent_engine::Session;
use serde::Serialize;
use sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, ObjectNamePart,
    Statement, UnaryOperator, visit_expressions, visit_relations_mut,
};

pub(crate) use grouping::selected_as;
pub(crate) use joins::{is_key, refer_alike, relationships_of};
pub(crate) use literals::{ComparedTexts, folded_words};
pub(crate) use parse::parse_query;
pub(crate) use scopes::{Scope, ScopeSource, Scopes, column_of, constraint_of};
pub(crate) use weekdays::{misnumbers_days, weekday_note};

use self::grouping::aggregate;
use crate::sql_text::visit_own_exprs;

/// How often the passes are repeated: a column of a subquery that was repaired may be one of the outer query.
const ROUNDS: usize = 3;
/// Tables of which joins are looked for, those that a query names first.
const MOST_TABLES: usize = 40;

/// The tables that a run knows of: those that its prompt shows, best first, and how they join.
#[derive(Debug, Clone, Default)]
pub(crate) struct TablesAtHand {
    pub(crate) tables: Vec<TableInfo>,
    pub(crate) relationships: Vec<Relationship>,
}

/// What a repair is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RepairKind {
    /// The text around the statement.
    Statement,
    /// Syntax or a function of another system.
    Dialect,
    /// The name of a table.
    Table,
    /// The name of a column, or the table that it is asked of.
    Column,
    /// A table that is joined by a known relationship.
    Join,
    /// A text in double quotes.
    Quotes,
    /// A column that is neither grouped nor aggregated, and an aggregate where none can stand.
    Grouping,
    /// A column computed with as another type.
    Type,
    /// A value as the column spells it.
    Literal,
}

/// One change of a query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Repair {
    pub(crate) kind: RepairKind,
    /// What was written.
    pub(crate) from: String,
    /// What ran in its place.
    pub(crate) to: String,
    /// Why.
    pub(crate) why: String,
}

impl Repair {
    fn new(kind: RepairKind, from: impl Into<String>, to: impl Into<String>, why: impl Into<String>) -> Self {
        Self { kind, from: from.into(), to: to.into(), why: why.into() }
    }

    /// Returns the repair in a line.
    pub(crate) fn to_line(&self) -> String {
        format!("{} -> {} ({})", self.from, self.to, self.why)
    }
}

/// A query that was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RepairedQuery {
    pub(crate) sql: String,
    pub(crate) repairs: Vec<Repair>,
}

/// The tables that names of a statement find, by their lowercase names.
#[derive(Debug, Default)]
pub(crate) struct KnownTables {
    tables: BTreeMap<(String, String), TableInfo>,
}

impl KnownTables {
    fn insert(&mut self, info: TableInfo) {
        self.tables.insert(key_of(&info.name), info);
    }

    fn get(&self, name: &TableName) -> Option<&TableInfo> {
        self.tables.get(&key_of(name))
    }

    /// Returns the tables that a statement names, each once.
    pub(crate) fn named_in(&self, statement: &Statement, database: &str) -> Vec<&TableInfo> {
        let mut named: Vec<&TableInfo> = Vec::new();
        for name in tables::names_in(statement) {
            let found = tables::full_name(&name, database).and_then(|name| self.get(&name));
            named.extend(found.filter(|found| !named.iter().any(|one| one.name == found.name)));
        }
        named
    }
}

fn key_of(name: &TableName) -> (String, String) {
    (name.database.to_lowercase(), name.table.to_lowercase())
}

/// Repairs a query that failed. Returns `None` where nothing deterministic can be done about it.
pub(crate) async fn repair(session: &Session, at_hand: &TablesAtHand, sql: &str) -> Option<RepairedQuery> {
    let parsed = parse::parse_query(sql)?;
    let (mut statement, mut repairs) = (parsed.statement, parsed.repairs);
    dialects::repair(&mut statement, parsed.habits, &mut repairs);
    let mut known = known_tables(session, at_hand, &statement).await;
    let database = session.database();
    // A client of MCP was shown no tables: at hand are those of the databases that it names.
    let of_databases = match at_hand.tables.is_empty() {
        true => {
            let names = tables::names_in(&statement);
            let named = names.iter().filter_map(|name| tables::full_name(name, database));
            let databases = named.map(|name| name.database).collect();
            Some(with_databases(session, at_hand, Vec::new(), databases).await)
        }
        false => None,
    };
    let at_hand = of_databases.as_ref().unwrap_or(at_hand);
    let compared_with_themselves = self_comparisons(&statement);
    tables::repair(&mut statement, at_hand, &known, database, &mut repairs);
    let at_hand = &with_neighbours(session, at_hand, &statement, &known).await;
    at_hand.tables.iter().for_each(|table| known.insert(table.clone()));
    subqueries::repair(&mut statement, &known, database, &mut repairs);
    for _ in 0..ROUNDS {
        let before = repairs.len();
        columns::repair(&mut statement, at_hand, &known, database, &mut repairs);
        if repairs.len() == before {
            break;
        }
    }
    // A join by a column that one side does not have is no join of every row with every other.
    if self_comparisons(&statement) > compared_with_themselves {
        return None;
    }
    types::repair(&mut statement, &known, database, &mut repairs);
    aggregates::repair(&mut statement, &known, database, &mut repairs);
    grouping::repair(&mut statement, &known, database, &mut repairs);
    (!repairs.is_empty()).then(|| RepairedQuery { sql: statement.to_string(), repairs })
}

/// Returns the tables at hand with the others of the databases that a statement reads, and how they join: a prompt shows
/// only the tables that rank best, and a column may be of another one.
async fn with_neighbours(
    session: &Session,
    at_hand: &TablesAtHand,
    statement: &Statement,
    known: &KnownTables,
) -> TablesAtHand {
    let tables: Vec<TableInfo> = known.named_in(statement, session.database()).into_iter().cloned().collect();
    let databases = tables.iter().map(|table| table.name.database.clone()).collect();
    with_databases(session, at_hand, tables, databases).await
}

/// Returns tables, those at hand and those of some databases, and how they join.
async fn with_databases(
    session: &Session,
    at_hand: &TablesAtHand,
    mut tables: Vec<TableInfo>,
    mut databases: Vec<String>,
) -> TablesAtHand {
    databases.sort_unstable();
    databases.dedup();
    tables.extend(at_hand.tables.iter().cloned());
    let (catalog, who) = (session.engine().catalog(), session.principal());
    for database in databases {
        let filter = TableFilter { database: Some(database), ..TableFilter::default() };
        let page = catalog.tables().list_with_columns(who, &filter, PageRequest::first(MOST_TABLES)).await;
        tables.extend(page.map(|page| page.items).unwrap_or_default());
    }
    let mut seen = std::collections::BTreeSet::new();
    tables.retain(|table| seen.insert(key_of(&table.name)));
    tables.truncate(MOST_TABLES.max(at_hand.tables.len()));
    let ids: Vec<i64> = tables.iter().map(|table| table.id).collect();
    let mut relationships = at_hand.relationships.clone();
    for one in catalog.relationships().among(who, &ids).await.unwrap_or_default() {
        let is_same = |other: &Relationship| {
            (&other.from, &other.from_columns, &other.to, &other.to_columns)
                == (&one.from, &one.from_columns, &one.to, &one.to_columns)
        };
        if !relationships.iter().any(is_same) {
            relationships.push(one);
        }
    }
    // Those at hand stay the first, best first.
    let rank = |table: &TableInfo| {
        at_hand.tables.iter().position(|known| known.name == table.name).unwrap_or(at_hand.tables.len())
    };
    tables.sort_by_key(rank);
    TablesAtHand { tables, relationships }
}

/// Counts the comparisons of a column with itself.
fn self_comparisons(statement: &Statement) -> usize {
    let mut count = 0;
    let _: ControlFlow<()> = visit_expressions(statement, |expr| {
        if let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = expr
            && let (Expr::CompoundIdentifier(left), Expr::CompoundIdentifier(right)) = (&**left, &**right)
        {
            let is_same = |(left, right): (&Ident, &Ident)| left.value.eq_ignore_ascii_case(&right.value);
            count += usize::from(left.len() == right.len() && left.iter().zip(right).all(is_same));
        }
        ControlFlow::Continue(())
    });
    count
}

/// Whether a query runs here and says something else than it was written for: `format(day, 'yyyy-MM')` of T-SQL would write
/// the text into the day, and `substr(name, -3)`, of which others take the end, is all of the name here.
pub(crate) fn is_misread(sql: &str) -> bool {
    let lower = sql.to_ascii_lowercase();
    if !["format", "substr"].iter().any(|name| lower.contains(name)) {
        return false;
    }
    let Some(parsed) = parse::parse_query(sql) else { return false };
    let text = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value))) => value.value.clone().into_string(),
        _ => None,
    };
    let found: ControlFlow<()> = visit_expressions(&parsed.statement, |expr| match expr {
        Expr::Function(Function { name, args: FunctionArguments::List(list), .. })
            if name.to_string().eq_ignore_ascii_case("format")
                && matches!(list.args.as_slice(), [first, second]
                    if text(first).is_none() && text(second).is_some_and(|format| !format.contains('{'))) =>
        {
            ControlFlow::Break(())
        }
        Expr::Substring { substring_from: Some(from), .. }
            if matches!(from.as_ref(), Expr::UnaryOp { op: UnaryOperator::Minus, expr }
                if matches!(expr.as_ref(), Expr::Value(_))) =>
        {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

/// Whether a query runs here and compares days with a number, `hired > 2016`, as if it were one of days.
pub(crate) async fn is_misdated(session: &Session, at_hand: &TablesAtHand, sql: &str) -> bool {
    let has_long_number = sql
        .split(|c: char| !c.is_ascii_alphanumeric())
        .any(|word| matches!(word.len(), 4 | 8) && word.bytes().all(|byte| byte.is_ascii_digit()));
    if !has_long_number {
        return false;
    }
    let Some(parsed) = parse::parse_query(sql) else { return false };
    // Quoted days are none, and no table is looked up for them.
    if !types::has_number_of_time(&parsed.statement) {
        return false;
    }
    let known = known_tables(session, at_hand, &parsed.statement).await;
    types::compares_days_with_numbers(&parsed.statement, &known, session.database())
}

/// Whether a query takes an aggregate of an aggregate.
pub(crate) fn nests_aggregates(sql: &str) -> bool {
    let Some(parsed) = parse::parse_query(sql) else { return false };
    let found: ControlFlow<()> = visit_expressions(&parsed.statement, |expr| {
        let mut inner = 0;
        if aggregate(expr).is_some() {
            visit_own_exprs(expr, |part| inner += usize::from(aggregate(part).is_some()));
        }
        if inner > 1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    found.is_break()
}

/// Returns the tables that a query reads, as far as the caller may see them; none for what cannot be parsed.
pub(crate) async fn tables_read(session: &Session, at_hand: &TablesAtHand, sql: &str) -> Vec<TableInfo> {
    let Some(parsed) = parse::parse_query(sql) else { return Vec::new() };
    let known = known_tables(session, at_hand, &parsed.statement).await;
    known.named_in(&parsed.statement, session.database()).into_iter().cloned().collect()
}

/// Returns a query with one table in the place of another; `None` where it does not name that.
pub(crate) fn query_of_table(sql: &str, database: &str, from: &TableName, to: &TableName) -> Option<String> {
    let mut statement = parse::parse_query(sql)?.statement;
    let mut is_named = false;
    let _: ControlFlow<()> = visit_relations_mut(&mut statement, |name| {
        if tables::full_name(name, database).is_some_and(|full| key_of(&full) == key_of(from)) {
            let parts = [&to.database, &to.table].map(|part| ObjectNamePart::Identifier(tables::identifier(part)));
            *name = ObjectName(parts.into());
            is_named = true;
        }
        ControlFlow::Continue(())
    });
    is_named.then(|| statement.to_string())
}

/// Returns a query that finds the tables of a database wherever it runs; `None` where it names others by their bare names, or
/// cannot be parsed.
pub(crate) fn query_in_database(sql: &str, database: &str, tables: &[TableInfo]) -> Option<String> {
    let mut statement = parse::parse_query(sql)?.statement;
    tables::qualify(&mut statement, database, tables).then(|| statement.to_string())
}

/// Returns a query over another table of the same name, with why.
pub(crate) fn repair_database(sql: &str, database: &str, from: &TableName, to: &TableName) -> Option<RepairedQuery> {
    let why = "nothing of that is there; of the shown tables of that name only this one has it";
    let repair = Repair::new(RepairKind::Table, from.to_string(), to.to_string(), why);
    Some(RepairedQuery { sql: query_of_table(sql, database, from, to)?, repairs: vec![repair] })
}

/// Whether a question in lower case names a table's database, by a word that the table's own name does not have.
pub(crate) fn names_database(question: &str, table: &TableName) -> bool {
    let (database, table) = (table.database.to_lowercase(), table.table.to_lowercase());
    // `sales2019` has two words.
    let letters = database.split(|c: char| !c.is_alphabetic());
    let numbers = database.split(|c: char| !c.is_ascii_digit());
    let mut words = letters.chain(numbers).filter(|word| word.chars().count() > 1);
    let asked: Vec<&str> = question.split(|c: char| !c.is_alphanumeric()).collect();
    let is_asked = |word: &str| match word.chars().count() {
        2 => asked.contains(&word),
        _ => asked.iter().any(|one| one.starts_with(word)),
    };
    words.any(|word| !table.contains(word) && is_asked(word))
}

/// Resolves the names of a statement, as the caller may see them; the tables at hand are known beside them.
pub(crate) async fn known_tables(session: &Session, at_hand: &TablesAtHand, statement: &Statement) -> KnownTables {
    let mut known = KnownTables::default();
    for info in &at_hand.tables {
        known.insert(info.clone());
    }
    let names: Vec<TableName> = tables::names_in(statement)
        .iter()
        .filter_map(|name| tables::full_name(name, session.database()))
        .filter(|name| known.get(name).is_none())
        .collect();
    if let Ok(resolved) = session.engine().catalog().tables().resolve(session.principal(), &names).await {
        for table in resolved.into_iter().flatten() {
            known.insert(table.info);
        }
    }
    known
}
