//! Texts that a query compares a column with, as the column spells them: in another case, with accents, in the plural,
//! by a part of a name, or dates in another form. Values are those that the catalog keeps of a column, else the column
//! is asked within a bound.
//!
//! Tried only where a query has found nothing, or a date could not be read.

mod matching;
mod places;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::DataType;
use chrono::{Months, NaiveDate};
use futures::StreamExt;
use querent_catalog::TableName;
use querent_engine::Session;
use sqlparser::ast::{BinaryOperator, Expr, Query, Select, Statement, Value, VisitMut, VisitorMut};

use super::joins::expression;
use super::scopes::{Scopes, column_of};
use super::{KnownTables, Repair, RepairKind, RepairedQuery, TablesAtHand, known_tables, parse};
use crate::coverage::unaccented;
use crate::sql_text::{quote_identifier, quoted_table};
use matching::{ValueMatch, date_in, value_meant};
use places::{TextPlace, place_of};

/// Values that are read of a column, and how long that may take.
const MAX_VALUES: usize = 5_000;
const READ_TIMEOUT: Duration = Duration::from_secs(2);
/// How long the texts of one query may be looked for in other columns.
const PLACES_TIMEOUT: Duration = Duration::from_secs(6);
/// Why a comparison with a year or a month is written otherwise.
const OF_PERIOD: &str = "a year or a month is all of its days";
/// Columns of one query whose values are read.
const MAX_COLUMNS: usize = 4;

/// Returns the words of a text as literals are compared: without case, accents and separators, in the singular.
pub(crate) fn folded_words(text: &str) -> Vec<String> {
    matching::words(&matching::fold(text))
}

/// A column of a table.
type ColumnKey = (TableName, String);

/// A text that a column is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
struct LiteralComparison {
    column: ColumnKey,
    is_time: bool,
    literal: String,
}

/// A text that is not among the values of the column it is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnknownLiteral {
    pub(crate) table: TableName,
    pub(crate) column: String,
    pub(crate) literal: String,
    /// Values that are nearest.
    pub(crate) near: Vec<String>,
}

/// The texts of a query, with the values of the columns that they are compared with.
pub(crate) struct ComparedTexts {
    statement: Statement,
    known: KnownTables,
    comparisons: Vec<LiteralComparison>,
    values: BTreeMap<ColumnKey, Vec<String>>,
    /// Whether some of them took too long to be looked for.
    is_cut: AtomicBool,
}

impl ComparedTexts {
    /// Reads a query and the values of its columns. Returns `None` where it is no query.
    pub(crate) async fn read(session: &Session, at_hand: &TablesAtHand, sql: &str) -> Option<Self> {
        let mut statement = parse::parse_query(sql)?.statement;
        let known = known_tables(session, at_hand, &statement).await;
        let comparisons = comparisons(&mut statement, &known, session.database());
        let is_cut = AtomicBool::new(false);
        let values = values_of(session, &known, &comparisons, &is_cut).await;
        Some(Self { statement, known, comparisons, values, is_cut })
    }

    /// Whether some texts took too long to be looked for, and may be spelled otherwise or be elsewhere.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed)
    }

    /// Returns the texts that are not among the values of their columns.
    pub(crate) fn unknown(&self) -> Vec<UnknownLiteral> {
        let mut unknown = Vec::new();
        for LiteralComparison { column, is_time, literal } in &self.comparisons {
            let Some(values) = self.values.get(column).filter(|_| !is_time) else { continue };
            if !values.contains(literal) {
                let near = matching::nearest_values(literal, values);
                let (table, column) = column.clone();
                unknown.push(UnknownLiteral { table, column, literal: literal.clone(), near });
            }
        }
        unknown
    }

    /// Spells the texts as their columns do. Returns `None` where all are, or none is near.
    pub(crate) fn spelled(&self, session: &Session) -> Option<RepairedQuery> {
        let mut meant: BTreeMap<(ColumnKey, String), ValueMatch> = BTreeMap::new();
        for LiteralComparison { column, is_time, literal } in &self.comparisons {
            let found = match (is_time, self.values.get(column)) {
                (true, _) => date_in(literal)
                    .filter(|date| date != literal)
                    .map(|date| ValueMatch { values: vec![date], why: "the date is in another form here".to_owned() }),
                (false, Some(values)) => value_meant(literal, values),
                (false, None) => None,
            };
            if let Some(found) = found {
                meant.insert((column.clone(), literal.clone()), found);
            }
        }
        self.rewritten(session, LiteralStep::Write { meant: &meant, repairs: Vec::new() })
    }

    /// Looks for the texts in other columns than those that they are compared with and whose rows do not have them.
    /// Returns `None` where there is none.
    pub(crate) async fn moved(&self, session: &Session, at_hand: &TablesAtHand) -> Option<RepairedQuery> {
        let mut places: BTreeMap<(ColumnKey, String), TextPlace> = BTreeMap::new();
        let deadline = tokio::time::Instant::now() + PLACES_TIMEOUT;
        for LiteralComparison { column, is_time, literal } in &self.comparisons {
            let is_unknown = self.values.get(column).is_some_and(|values| !is_time && !values.contains(literal));
            if !is_unknown {
                continue;
            }
            let is_cut = AtomicBool::new(false);
            let search = place_of(session, at_hand, &self.known, column, literal, &is_cut);
            let found = tokio::time::timeout_at(deadline, search).await;
            // Where some columns were not looked at in time, the one that has the text may not be the only one.
            if found.is_err() || is_cut.into_inner() {
                self.is_cut.store(true, Ordering::Relaxed);
            } else if let Ok(Some(place)) = found {
                places.insert((column.clone(), literal.clone()), place);
            }
        }
        self.rewritten(session, LiteralStep::Move { places: &places, repairs: Vec::new() })
    }

    fn rewritten(&self, session: &Session, step: LiteralStep<'_>) -> Option<RepairedQuery> {
        let mut statement = self.statement.clone();
        let mut writer = LiteralWriter { scopes: Scopes::new(&self.known, session.database()), step };
        let _: ControlFlow<()> = VisitMut::visit(&mut statement, &mut writer);
        let repairs = match writer.step {
            LiteralStep::Write { repairs, .. } | LiteralStep::Move { repairs, .. } => repairs,
            LiteralStep::Find(_) => return None,
        };
        (!repairs.is_empty()).then(|| RepairedQuery { sql: statement.to_string(), repairs })
    }
}

fn comparisons(statement: &mut Statement, known: &KnownTables, database: &str) -> Vec<LiteralComparison> {
    let mut finder = LiteralWriter { scopes: Scopes::new(known, database), step: LiteralStep::Find(Vec::new()) };
    let _: ControlFlow<()> = VisitMut::visit(statement, &mut finder);
    match finder.step {
        LiteralStep::Find(found) => found,
        LiteralStep::Write { .. } | LiteralStep::Move { .. } => Vec::new(),
    }
}

/// What is done with the comparisons of a statement.
enum LiteralStep<'a> {
    Find(Vec<LiteralComparison>),
    Write { meant: &'a BTreeMap<(ColumnKey, String), ValueMatch>, repairs: Vec<Repair> },
    Move { places: &'a BTreeMap<(ColumnKey, String), TextPlace>, repairs: Vec<Repair> },
}

struct LiteralWriter<'a> {
    scopes: Scopes<'a>,
    step: LiteralStep<'a>,
}

impl VisitorMut for LiteralWriter<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.scopes.enter_query(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.scopes.leave_query();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        self.scopes.enter_select(select);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<()> {
        self.scopes.leave_select();
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::BinaryOp { left, op, right } if is_comparison(op) => {
                let (column, literal) = if text_of(right).is_some() { (&*left, &**right) } else { (&*right, &**left) };
                let Some(literal) = text_of(literal) else { return ControlFlow::Continue(()) };
                let Some((key, is_time)) = self.column(column).or_else(|| self.number_column(column, &literal)) else {
                    return ControlFlow::Continue(());
                };
                let (op, column) = (op.clone(), column.clone());
                if !is_time && !matches!(op, BinaryOperator::Eq | BinaryOperator::NotEq) {
                    return ControlFlow::Continue(());
                }
                let is_left = text_of(right).is_some();
                if is_time
                    && is_left
                    && let Some(of_period) = self.of_period(&column, &op, &literal)
                {
                    *expr = of_period;
                    return ControlFlow::Continue(());
                }
                if op == BinaryOperator::Eq
                    && is_time
                    && let Some(of_day) = self.of_day(&column, &literal)
                {
                    *expr = of_day;
                    return ControlFlow::Continue(());
                }
                if op == BinaryOperator::Eq
                    && let Some(moved) = self.moved(&key, &literal, &column)
                {
                    *expr = moved;
                    return ControlFlow::Continue(());
                }
                if let Some(values) = self.take(key, is_time, &literal) {
                    *expr = comparison(&column, &op, &values, is_left);
                }
            }
            Expr::InList { expr: column, list, negated } => {
                let literals: Vec<String> = list.iter().filter_map(text_of).collect();
                let compared = (**column).clone();
                let of_numbers = || self.number_column(&compared, literals.first()?);
                let Some((key, is_time)) = self.column(&compared).or_else(of_numbers) else {
                    return ControlFlow::Continue(());
                };
                if literals.len() == list.len()
                    && let Some(moved) = self.moved_list(&key, &literals, &compared, *negated)
                {
                    *expr = moved;
                    return ControlFlow::Continue(());
                }
                let mut written = Vec::with_capacity(list.len());
                for item in list.iter() {
                    match text_of(item).and_then(|literal| self.take(key.clone(), is_time, &literal)) {
                        Some(values) => written.extend(values.iter().map(|value| text(value))),
                        None => written.push(item.clone()),
                    }
                }
                *list = written;
            }
            Expr::Case { operand: Some(column), conditions, .. } => {
                let Some((key, false)) = self.column(column) else { return ControlFlow::Continue(()) };
                for when in conditions {
                    // One branch is of one value.
                    if let Some(values) = text_of(&when.condition).and_then(|one| self.take(key.clone(), false, &one))
                        && let [only] = values.as_slice()
                    {
                        when.condition = text(only);
                    }
                }
            }
            Expr::Between { expr: column, low, high, negated } => {
                let Some((key, true)) = self.column(column) else { return ControlFlow::Continue(()) };
                let ends = (text_of(low), text_of(high));
                if let (Some(from), Some(to)) = ends
                    && let Some(of_periods) = self.of_periods(column, *negated, &from, &to)
                {
                    *expr = of_periods;
                    return ControlFlow::Continue(());
                }
                for bound in [low, high] {
                    if let Some(values) = text_of(bound).and_then(|literal| self.take(key.clone(), true, &literal))
                        && let Some(first) = values.first()
                    {
                        **bound = text(first);
                    }
                }
            }
            Expr::Like { expr: column, pattern, any: false, negated, escape_char: None } => {
                let Some(literal) = text_of(pattern) else { return ControlFlow::Continue(()) };
                let Some((_, false)) = self.column(column) else { return ControlFlow::Continue(()) };
                let LiteralStep::Write { repairs, .. } = &mut self.step else { return ControlFlow::Continue(()) };
                let plain: String = literal.to_lowercase().chars().map(unaccented).collect();
                let not = if *negated { "NOT " } else { "" };
                let written = format!("strip_accents({column}) {not}ILIKE {}", text(&plain));
                let Some(ilike) = expression(&written) else { return ControlFlow::Continue(()) };
                let why = "LIKE minds the case and the accents here";
                repairs.push(Repair::new(RepairKind::Literal, expr.to_string(), written, why));
                *expr = ilike;
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl LiteralWriter<'_> {
    /// Returns the column of a table that an expression is, and whether it holds times; `None` where it holds neither
    /// times nor texts.
    fn column(&self, expr: &Expr) -> Option<(ColumnKey, bool)> {
        let (source, name, data_type) = self.scopes.inner_to_outer().find_map(|scope| column_of(scope, expr))?;
        let is_time = match data_type? {
            kind if kind.is_string() => false,
            DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, _) => true,
            _ => return None,
        };
        Some(((source.table.clone()?, name.to_owned()), is_time))
    }

    /// Returns the column of whole numbers that an expression is, where a text which is no number is compared with it:
    /// what the numbers refer to may be called so.
    fn number_column(&self, expr: &Expr, literal: &str) -> Option<(ColumnKey, bool)> {
        let (source, name, data_type) = self.scopes.inner_to_outer().find_map(|scope| column_of(scope, expr))?;
        let is_unfit = literal.trim().parse::<f64>().is_err() && data_type.is_some_and(DataType::is_integer);
        is_unfit.then_some(((source.table.clone()?, name.to_owned()), false))
    }

    /// Returns what stands for the comparison of a time with a day, which only its midnight is equal to.
    fn of_day(&mut self, column: &Expr, literal: &str) -> Option<Expr> {
        let kind = self.scopes.inner_to_outer().find_map(|scope| column_of(scope, column)).and_then(|found| found.2)?;
        let day = date_in(literal).filter(|_| matches!(kind, DataType::Timestamp(_, _)))?;
        let LiteralStep::Write { repairs, .. } = &mut self.step else { return None };
        let written = format!("CAST({column} AS DATE) = {}", text(&day));
        let why = "the column has times of day, and only midnight is equal to a day";
        repairs.push(Repair::new(RepairKind::Literal, format!("{column} = {}", text(literal)), written.clone(), why));
        expression(&written)
    }

    /// Returns what stands for the comparison of a time with a year or a month: `joined > '2022'` is after its end.
    fn of_period(&mut self, column: &Expr, op: &BinaryOperator, literal: &str) -> Option<Expr> {
        let (first, next) = period_in(literal)?;
        let LiteralStep::Write { repairs, .. } = &mut self.step else { return None };
        let written = match op {
            BinaryOperator::Eq => format!("({column} >= '{first}' AND {column} < '{next}')"),
            BinaryOperator::Gt => format!("{column} >= '{next}'"),
            BinaryOperator::GtEq => format!("{column} >= '{first}'"),
            BinaryOperator::Lt => format!("{column} < '{first}'"),
            BinaryOperator::LtEq => format!("{column} < '{next}'"),
            _ => return None,
        };
        let from = format!("{column} {op} {}", text(literal));
        repairs.push(Repair::new(RepairKind::Literal, from, written.clone(), OF_PERIOD));
        expression(&written)
    }

    /// Returns what stands for `BETWEEN '2024-01' AND '2024-03'`: from the first day of the one to the last of the other.
    fn of_periods(&mut self, column: &Expr, is_negated: bool, from: &str, to: &str) -> Option<Expr> {
        let (low, high) = (period_in(from), period_in(to));
        if low.is_none() && high.is_none() {
            return None;
        }
        let LiteralStep::Write { repairs, .. } = &mut self.step else { return None };
        let low = low.map(|(first, _)| first.to_string()).or_else(|| date_in(from))?;
        let upper = match high {
            Some((_, next)) => format!("{column} < '{next}'"),
            None => format!("{column} <= '{}'", date_in(to)?),
        };
        let not = if is_negated { "NOT " } else { "" };
        let written = format!("{not}({column} >= '{low}' AND {upper})");
        let sent = format!("{column} {not}BETWEEN {} AND {}", text(from), text(to));
        repairs.push(Repair::new(RepairKind::Literal, sent, written.clone(), OF_PERIOD));
        expression(&written)
    }

    /// Returns what stands for the comparison of a column with a text that is elsewhere.
    fn moved(&mut self, key: &ColumnKey, literal: &str, column: &Expr) -> Option<Expr> {
        let LiteralStep::Move { places, repairs } = &mut self.step else { return None };
        let place = places.get(&(key.clone(), literal.to_owned()))?;
        let moved = place.comparison(column)?;
        let from = format!("{column} = {}", text(literal));
        repairs.push(Repair::new(RepairKind::Literal, from, moved.to_string(), place.why(key)));
        Some(moved)
    }

    /// Returns what stands for the comparison of a column with a list of texts, all of which are in one other column.
    fn moved_list(&mut self, key: &ColumnKey, literals: &[String], column: &Expr, negated: bool) -> Option<Expr> {
        let LiteralStep::Move { places, repairs } = &mut self.step else { return None };
        let found: Option<Vec<&TextPlace>> =
            literals.iter().map(|literal| places.get(&(key.clone(), literal.clone()))).collect();
        let found = found?;
        let moved = TextPlace::list_comparison(&found, column, negated)?;
        let written: Vec<String> = literals.iter().map(|literal| text(literal).to_string()).collect();
        let not = if negated { "NOT " } else { "" };
        let from = format!("{column} {not}IN ({})", written.join(", "));
        repairs.push(Repair::new(RepairKind::Literal, from, moved.to_string(), found.first()?.why(key)));
        Some(moved)
    }

    /// Notes a comparison, or returns what stands for its text.
    fn take(&mut self, column: ColumnKey, is_time: bool, literal: &str) -> Option<Vec<String>> {
        match &mut self.step {
            LiteralStep::Find(found) => {
                let one = LiteralComparison { column, is_time, literal: literal.to_owned() };
                if !found.contains(&one) {
                    found.push(one);
                }
                None
            }
            LiteralStep::Write { meant, repairs } => {
                let found = meant.get(&(column.clone(), literal.to_owned()))?;
                let to: Vec<String> = found.values.iter().map(|value| text(value).to_string()).collect();
                let why = format!("`{}.{}`: {}", column.0, column.1, found.why);
                let repair = Repair::new(RepairKind::Literal, text(literal).to_string(), to.join(", "), why);
                if !repairs.contains(&repair) {
                    repairs.push(repair);
                }
                Some(found.values.clone())
            }
            LiteralStep::Move { .. } => None,
        }
    }
}

/// Returns the first day of the year, the quarter or the month that a text is, and the first one after it.
fn period_in(text: &str) -> Option<(NaiveDate, NaiveDate)> {
    let of_months = |first: NaiveDate, months: u32| Some((first, first.checked_add_months(Months::new(months))?));
    // `January 2026`, `Jan 2026`.
    if let Ok(first) = NaiveDate::parse_from_str(&format!("1 {}", text.trim()), "%d %B %Y") {
        return of_months(first, 1);
    }
    if let Some((year, quarter)) = quarter_in(text) {
        return of_months(NaiveDate::from_ymd_opt(year, quarter * 3 - 2, 1)?, 3);
    }
    let is_number = |part: &str| part.chars().all(|c| c.is_ascii_digit());
    let (year, month) = match text.trim().split_once(['-', '/']) {
        Some((year, month)) if (1..=2).contains(&month.len()) => (year, Some(month)),
        Some(_) => return None,
        None => (text.trim(), None),
    };
    if year.len() != 4 || !is_number(year) || !month.is_none_or(is_number) {
        return None;
    }
    let first = NaiveDate::from_ymd_opt(year.parse().ok()?, month.unwrap_or("1").parse().ok()?, 1)?;
    of_months(first, if month.is_some() { 1 } else { 12 })
}

/// Returns the year and the quarter that a text is: `2026-Q1`, `Q1 2026`.
fn quarter_in(text: &str) -> Option<(i32, u32)> {
    let (one, other) = text.trim().split_once([' ', '-'])?;
    let (year, quarter) = if one.starts_with(['Q', 'q']) { (other, one) } else { (one, other) };
    let quarter = quarter.strip_prefix(['Q', 'q'])?.parse::<u32>().ok().filter(|quarter| (1..=4).contains(quarter))?;
    let is_year = year.len() == 4 && year.chars().all(|c| c.is_ascii_digit());
    Some((year.parse().ok().filter(|_| is_year)?, quarter))
}

fn is_comparison(op: &BinaryOperator) -> bool {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Gt | GtEq | Lt | LtEq)
}

fn text_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    }
}

fn text(value: &str) -> Expr {
    Expr::Value(Value::SingleQuotedString(value.to_owned()).into())
}

/// Compares a column with one value, or with several where the text stands for them.
fn comparison(column: &Expr, op: &BinaryOperator, values: &[String], is_left: bool) -> Expr {
    if let [only] = values {
        let (left, right) = if is_left { (column.clone(), text(only)) } else { (text(only), column.clone()) };
        return Expr::BinaryOp { left: Box::new(left), op: op.clone(), right: Box::new(right) };
    }
    Expr::InList {
        expr: Box::new(column.clone()),
        list: values.iter().map(|value| text(value)).collect(),
        negated: *op == BinaryOperator::NotEq,
    }
}

/// Returns the values of the columns of texts that are compared, as far as they are few.
async fn values_of(
    session: &Session,
    known: &KnownTables,
    comparisons: &[LiteralComparison],
    is_cut: &AtomicBool,
) -> BTreeMap<ColumnKey, Vec<String>> {
    let mut values = BTreeMap::new();
    for comparison in comparisons.iter().filter(|comparison| !comparison.is_time) {
        let is_read = values.len() >= MAX_COLUMNS || values.contains_key(&comparison.column);
        if is_read || known.get(&comparison.column.0).is_none() {
            continue;
        }
        let read = tokio::time::timeout(READ_TIMEOUT, read_values(session, &comparison.column)).await;
        is_cut.fetch_or(read.is_err(), Ordering::Relaxed);
        if let Ok(Ok(Some(found))) = read {
            values.insert(comparison.column.clone(), found);
        }
    }
    values
}

/// Reads the values of a column as the caller sees them; `None` where there are too many.
async fn read_values(session: &Session, (table, column): &ColumnKey) -> querent_engine::Result<Option<Vec<String>>> {
    let column = quote_identifier(column);
    let limit = MAX_VALUES + 1;
    let sql = format!("SELECT DISTINCT {column} FROM {} WHERE {column} IS NOT NULL LIMIT {limit}", quoted_table(table));
    let mut values = read_texts(session, &sql).await?;
    values.sort_unstable();
    Ok((values.len() <= MAX_VALUES).then_some(values))
}

/// Reads the first column of a query as texts, within the time for one. `None` where it fails, and where it takes longer, which
/// `is_cut` then says.
async fn read_in_time(session: &Session, sql: &str, is_cut: &AtomicBool) -> Option<Vec<String>> {
    let read = tokio::time::timeout(READ_TIMEOUT, read_texts(session, sql)).await;
    is_cut.fetch_or(read.is_err(), Ordering::Relaxed);
    read.ok()?.ok()
}

/// Reads the first column of a query as texts.
async fn read_texts(session: &Session, sql: &str) -> querent_engine::Result<Vec<String>> {
    let mut stream = session.sql(sql).await?;
    let mut values = Vec::new();
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        let Some(texts) = batch.columns().first().and_then(|column| cast(column, &DataType::Utf8).ok()) else { break };
        values.extend(texts.as_string::<i32>().iter().flatten().map(str::to_owned));
    }
    Ok(values)
}
