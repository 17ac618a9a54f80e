//! Syntax of other systems that the parser reads and that is not planned here: `TOP`, `LIMIT 5, 10`, hints, `CONVERT`,
//! `SAFE_CAST`, `REGEXP`, collations, `INTERVAL 1 DAY`, types of columns, `ROWNUM`, `DUAL`, `MINUS`, where nulls are
//! sorted, and division as MySQL and BigQuery have it. Clauses of a SELECT are in `foreign_syntax.rs`.

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, CastKind, DataType, ExactNumberInfo, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, GroupByExpr, Ident, LimitClause, ObjectName, OrderByKind, Query, Select, SelectItem, SetExpr,
    SetOperator, Statement, TableFactor, TopQuantity, UnaryOperator, Value, Visit, VisitMut, Visitor, VisitorMut,
};

use super::foreign_functions::{function_here, time_as_text, unit_of};
use super::foreign_syntax::{clauses_here, element_here, numbered_limit};
use super::grouping::has_aggregate;
use super::joins::expression;
use super::parse::DialectHabits;
use super::weekdays::{counts_days_from_one, weekday_here};
use super::{Repair, RepairKind};
use crate::sql_text::number_text;

/// Rewrites what other systems write in another way.
pub(super) fn repair(statement: &mut Statement, habits: DialectHabits, repairs: &mut Vec<Repair>) {
    let divides_as_decimals = habits.divides_as_decimals || calls_of_mysql(statement);
    let counts_days_from_one = divides_as_decimals || counts_days_from_one(statement);
    let habits = DialectHabits { divides_as_decimals, ..habits };
    let mut writer = DialectWriter { habits, counts_days_from_one, repairs };
    let _: ControlFlow<()> = VisitMut::visit(statement, &mut writer);
}

struct DialectWriter<'a> {
    habits: DialectHabits,
    /// Sunday is the first day of the week, by its number.
    counts_days_from_one: bool,
    repairs: &'a mut Vec<Repair>,
}

impl DialectWriter<'_> {
    fn note(&mut self, from: impl Into<String>, to: impl Into<String>, why: impl Into<String>) {
        let repair = Repair::new(RepairKind::Dialect, from, to, why);
        if !self.repairs.contains(&repair) {
            self.repairs.push(repair);
        }
    }
}

impl VisitorMut for DialectWriter<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        self.minus(&mut query.body);
        self.row_numbers(query);
        let has_top = matches!(query.body.as_ref(), SetExpr::Select(select) if select.top.is_some());
        if has_top || self.habits.sorts_nulls_first {
            self.null_order(query);
        }
        if let Some((from, to, why)) = numbered_limit(query) {
            self.note(from, to, why);
        }
        if let SetExpr::Select(select) = query.body.as_mut()
            && query.limit_clause.is_none()
            && let Some(top) = select.top.take_if(|top| !top.percent && !top.with_ties)
        {
            let limit = match top.quantity {
                Some(TopQuantity::Constant(count)) => number(&count.to_string()),
                Some(TopQuantity::Expr(expr)) => expr,
                None => number("1"),
            };
            self.note(format!("TOP {limit}"), format!("LIMIT {limit}"), "T-SQL's TOP is LIMIT here");
            query.limit_clause =
                Some(LimitClause::LimitOffset { limit: Some(limit), offset: None, limit_by: Vec::new() });
        }
        if let Some(LimitClause::OffsetCommaLimit { offset, limit }) = &query.limit_clause {
            let (offset, limit) = (offset.clone(), limit.clone());
            self.note(
                format!("LIMIT {offset}, {limit}"),
                format!("LIMIT {limit} OFFSET {offset}"),
                "the offset comes first in MySQL and SQLite",
            );
            query.limit_clause = Some(LimitClause::LimitOffset {
                limit: Some(limit),
                offset: Some(sqlparser::ast::Offset { value: offset, rows: sqlparser::ast::OffsetRows::None }),
                limit_by: Vec::new(),
            });
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        let is_dual = |factor: &TableFactor| match factor {
            TableFactor::Table { name, alias: None, .. } => name.to_string().eq_ignore_ascii_case("dual"),
            _ => false,
        };
        if let [from] = select.from.as_slice()
            && from.joins.is_empty()
            && is_dual(&from.relation)
        {
            select.from.clear();
            self.note("FROM DUAL", "no FROM", "a query without tables needs no FROM here");
        }
        for (from, to, why) in clauses_here(select) {
            self.note(from, to, why);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { with_hints, index_hints, .. } = factor
            && !(with_hints.is_empty() && index_hints.is_empty())
        {
            with_hints.clear();
            index_hints.clear();
            self.note("hints of a table", "none", "they change no result, and there are none here");
        }
        ControlFlow::Continue(())
    }

    /// A collation without case is of all that is compared.
    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
        let sides: Vec<&mut Expr> = match expr {
            Expr::BinaryOp { left, op: Eq | Gt | GtEq | Lt | LtEq | NotEq, right } => {
                vec![left.as_mut(), right.as_mut()]
            }
            Expr::Between { expr, low, high, .. } => vec![expr.as_mut(), low.as_mut(), high.as_mut()],
            Expr::Like { expr, pattern, .. } => vec![expr.as_mut(), pattern.as_mut()],
            Expr::InList { expr, list, .. } => std::iter::once(expr.as_mut()).chain(list.iter_mut()).collect(),
            _ => return ControlFlow::Continue(()),
        };
        if sides.iter().any(|side| ignores_case(side)) {
            for side in sides {
                if !ignores_case(side)
                    && let Some(lowered) = expression(&format!("lower({side})"))
                {
                    *side = lowered;
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Some((replaced, why)) = self.here(expr) else { return ControlFlow::Continue(()) };
        self.note(expr.to_string(), replaced.to_string(), why);
        *expr = replaced;
        ControlFlow::Continue(())
    }
}

impl DialectWriter<'_> {
    /// Oracle's `MINUS` is EXCEPT.
    fn minus(&mut self, body: &mut SetExpr) {
        if let SetExpr::SetOperation { op, left, right, .. } = body {
            if *op == SetOperator::Minus {
                *op = SetOperator::Except;
                self.note("MINUS", "EXCEPT", "Oracle's MINUS is EXCEPT here");
            }
            self.minus(left);
            self.minus(right);
        }
    }

    /// Oracle's `WHERE ROWNUM <= 5` is a limit, where rows are not counted before.
    fn row_numbers(&mut self, query: &mut Query) {
        if names_row_number(query) {
            return;
        }
        let SetExpr::Select(select) = query.body.as_mut() else { return };
        let is_counted = select.distinct.is_some()
            || !matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty())
            || select.projection.iter().any(|item| match item {
                SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => has_aggregate(expr),
                _ => false,
            });
        if is_counted || query.limit_clause.is_some() {
            return;
        }
        let Some(filter) = select.selection.take() else { return };
        let mut limit = None;
        let mut kept = Vec::new();
        for part in conjuncts(filter) {
            match row_limit(&part) {
                Some(count) if limit.is_none() => {
                    let why = "Oracle's ROWNUM is LIMIT here, which counts after ORDER BY";
                    self.note(part.to_string(), format!("LIMIT {count}"), why);
                    limit = Some(count);
                }
                _ => kept.push(part),
            }
        }
        select.selection = all_of(kept);
        if let Some(count) = limit {
            let limit = Some(number(&count.to_string()));
            query.limit_clause = Some(LimitClause::LimitOffset { limit, offset: None, limit_by: Vec::new() });
        }
    }

    /// SQLite, MySQL, BigQuery and T-SQL sort nulls before all values, and here they come after them.
    fn null_order(&mut self, query: &mut Query) {
        let Some(OrderByKind::Expressions(parts)) = query.order_by.as_mut().map(|order| &mut order.kind) else {
            return;
        };
        for part in parts.iter_mut().filter(|part| part.options.nulls_first.is_none()) {
            let before = part.to_string();
            part.options.nulls_first = Some(part.options.asc != Some(false));
            self.note(before, part.to_string(), "rows without a value come first there, and last here");
        }
    }

    /// Returns the number of a day of the week where the other system has another.
    fn weekday(&self, function: &Function) -> Option<String> {
        if self.counts_days_from_one { weekday_here(function, self.habits.divides_as_decimals) } else { None }
    }

    /// Returns what stands here for an expression of another system, and why.
    fn here(&self, expr: &Expr) -> Option<(Expr, String)> {
        let with = |replaced: Expr, why: &str| Some((replaced, why.to_owned()));
        match expr {
            // There a null makes all of it null; here CONCAT leaves nulls out.
            Expr::Function(function) if self.habits.divides_as_decimals && joined_texts(function).is_some() => {
                with(expression(&joined_texts(function)?)?, "CONCAT of a null is null there")
            }
            // From 1 for Sunday, as MySQL counts, and from 0 for Monday.
            Expr::Function(function) => match self.weekday(function) {
                Some(day) => with(expression(&day)?, "days of the week have other numbers there"),
                None => function_here(function),
            },
            // SQLite's cuts where others round: a difference of days is counted whole.
            Expr::Cast { expr: inner, data_type, .. }
                if is_whole_type(data_type) && inner.to_string().contains(JULIAN_DAY) && !is_cut(inner) =>
            {
                with(expression(&format!("CAST(trunc({inner}) AS BIGINT)"))?, "SQLite's CAST to a whole number cuts")
            }
            Expr::Cast { kind, expr: inner, data_type, .. } => {
                let known = type_here(data_type);
                let kind_here = if *kind == CastKind::SafeCast { CastKind::TryCast } else { kind.clone() };
                if known.is_none() && kind_here == *kind {
                    return None;
                }
                let data_type = known.unwrap_or_else(|| data_type.clone());
                let name = if kind_here == CastKind::TryCast { "TRY_CAST" } else { "CAST" };
                with(expression(&format!("{name}({inner} AS {data_type})"))?, "the type has another name here")
            }
            Expr::Convert { expr: time, data_type: Some(data_type), styles, .. } if !styles.is_empty() => {
                let text = time_as_text(&data_type.to_string(), time, styles.first()?)?;
                with(expression(&text)?, "CONVERT with a style is strftime here")
            }
            Expr::Convert { is_try, expr: inner, data_type: Some(data_type), .. } => {
                let name = if *is_try { "TRY_CAST" } else { "CAST" };
                // T-SQL names the type first, which another parser takes for the value.
                let text = match (inner.as_ref(), data_type) {
                    (Expr::Identifier(first), DataType::Custom(value, parameters)) if parameters.is_empty() => {
                        format!("{name}({value} AS {first})")
                    }
                    _ => {
                        let data_type = type_here(data_type).unwrap_or_else(|| data_type.clone());
                        format!("{name}({inner} AS {data_type})")
                    }
                };
                with(expression(&text)?, "CONVERT is CAST here")
            }
            // From the end, as SQLite, MySQL and Oracle count.
            Expr::Substring { expr: text, substring_from: Some(from), substring_for, .. } => {
                let Expr::UnaryOp { op: UnaryOperator::Minus, expr: places } = from.as_ref() else { return None };
                let Expr::Value(_) = places.as_ref() else { return None };
                let end = format!("right({text}, {places})");
                let text = match substring_for {
                    Some(length) => format!("substr({end}, 1, {length})"),
                    None => end,
                };
                with(expression(&text)?, "a negative start counts from the end there")
            }
            Expr::CompoundFieldAccess { .. } => with(element_here(expr)?, "elements are counted from 1 here"),
            Expr::Identifier(name) if name.quote_style.is_none() && is_now(name) => {
                with(expression("now()")?, "Oracle's SYSDATE is now() here")
            }
            Expr::Extract { field, expr: time, .. } if field.to_string().eq_ignore_ascii_case("YEAR_MONTH") => {
                let text = format!("CAST(date_part('year', {time}) * 100 + date_part('month', {time}) AS BIGINT)");
                with(expression(&text)?, "a year with its month is a number there")
            }
            Expr::Extract { field, expr: time, .. } if field.to_string() == "DAYOFWEEK" => {
                let first = if self.counts_days_from_one { " + 1" } else { "" };
                let text = format!("(CAST(date_part('dow', {time}) AS BIGINT){first})");
                let why = match self.counts_days_from_one {
                    true => "the day of the week has another name here",
                    false => "the day of the week has another name here, and is 0 on Sundays",
                };
                with(expression(&text)?, why)
            }
            Expr::RLike { negated, expr: inner, pattern, regexp } => {
                // MySQL's REGEXP does not mind the case, Hive's RLIKE does.
                let ignores_case = *regexp && self.habits.divides_as_decimals;
                let operator = match (*negated, ignores_case) {
                    (true, true) => "!~*",
                    (true, false) => "!~",
                    (false, true) => "~*",
                    (false, false) => "~",
                };
                with(expression(&format!("{inner} {operator} {pattern}"))?, "REGEXP is the operator ~ here")
            }
            Expr::Collate { expr: inner, collation } => {
                let ignores_case = ends_with(collation, "nocase") || ends_with(collation, "_ci");
                let text = if ignores_case { format!("lower({inner})") } else { inner.to_string() };
                with(expression(&text)?, "there are no collations here")
            }
            // `SYSDATE - 30`, and `SYSDATE - 1 / 24`.
            Expr::BinaryOp { left, op: op @ (BinaryOperator::Plus | BinaryOperator::Minus), right }
                if is_present(left) =>
            {
                let interval = interval_of_days(right)?;
                with(expression(&format!("({left} {op} {interval})"))?, "a number beside a time is one of days there")
            }
            Expr::BinaryOp { left, op: BinaryOperator::Spaceship, right } => {
                with(expression(&format!("{left} IS NOT DISTINCT FROM {right}"))?, "<=> is written so here")
            }
            Expr::BinaryOp { left, op: BinaryOperator::MyIntegerDivide, right } => {
                with(expression(&format!("div({left}, {right})"))?, "DIV is a function here")
            }
            Expr::BinaryOp { left, op: BinaryOperator::Divide, right }
                if self.habits.divides_as_decimals && !is_cast(left) && !is_cast(right) =>
            {
                let text = format!("CAST({left} AS DOUBLE) / {right}");
                with(expression(&text)?, "whole numbers divide to a fraction there, and to a whole number here")
            }
            Expr::Interval(interval) => {
                // `INTERVAL 1 DAY` as MySQL and BigQuery have it.
                let unit = interval.leading_field.as_ref()?.to_string().to_lowercase();
                let Expr::Value(value) = interval.value.as_ref() else { return None };
                let Value::Number(count, _) = &value.value else { return None };
                with(expression(&format!("INTERVAL '{count} {unit}'"))?, "intervals are texts here")
            }
            _ => None,
        }
    }
}

/// Whether a statement calls functions that MySQL has and that others do not, or that divide as it does.
fn calls_of_mysql(statement: &Statement) -> bool {
    const NAMES: [&str; 6] =
        ["date_format", "str_to_date", "curdate", "timestampdiff", "find_in_set", "substring_index"];
    struct MysqlCalls;
    impl Visitor for MysqlCalls {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match expr {
                Expr::Function(function) if NAMES.contains(&function.name.to_string().to_lowercase().as_str()) => {
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }
        }
    }
    statement.visit(&mut MysqlCalls).is_break()
}

/// Whether a name is the present time in Oracle.
fn is_now(name: &Ident) -> bool {
    ["sysdate", "systimestamp"].iter().any(|known| name.value.eq_ignore_ascii_case(known))
}

/// Whether an expression is the present time.
fn is_present(expr: &Expr) -> bool {
    // Nothing longer is written out.
    if !matches!(expr, Expr::Function(_) | Expr::Identifier(_)) {
        return false;
    }
    let text = expr.to_string();
    ["now()", "current_timestamp", "localtimestamp"].iter().any(|name| text.eq_ignore_ascii_case(name))
}

/// Returns the interval that a number of days is, whole or as `1 / 24` of one.
fn interval_of_days(expr: &Expr) -> Option<String> {
    let whole = |expr: &Expr| number_text(expr)?.parse::<u32>().ok();
    match expr {
        Expr::Nested(inner) => interval_of_days(inner),
        Expr::BinaryOp { left, op: BinaryOperator::Divide, right } => {
            let unit = match whole(right)? {
                24 => "hours",
                1440 => "minutes",
                86_400 => "seconds",
                _ => return None,
            };
            Some(format!("INTERVAL '{} {unit}'", whole(left)?))
        }
        _ => Some(format!("INTERVAL '{} days'", whole(expr)?)),
    }
}

/// Returns the arguments of `CONCAT`, joined with `||`.
fn joined_texts(function: &Function) -> Option<String> {
    let FunctionArguments::List(list) = &function.args else { return None };
    if !function.name.to_string().eq_ignore_ascii_case("concat") {
        return None;
    }
    let parts: Option<Vec<String>> = list
        .args
        .iter()
        .map(|argument| match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => Some(format!("CAST({argument} AS VARCHAR)")),
            _ => None,
        })
        .collect();
    parts.filter(|parts| parts.len() > 1).map(|parts| format!("({})", parts.join(" || ")))
}

/// How a Julian day is written here.
const JULIAN_DAY: &str = "/ 86400.0 + 2440587.5";

fn is_whole_type(data_type: &DataType) -> bool {
    let name = data_type.to_string().to_uppercase();
    ["INT", "INTEGER", "BIGINT", "SMALLINT"].contains(&name.as_str())
}

fn is_cut(expr: &Expr) -> bool {
    matches!(expr, Expr::Function(function) if function.name.to_string() == "trunc")
}

/// Returns the parts of a filter that all must hold.
pub(super) fn conjuncts(filter: Expr) -> Vec<Expr> {
    match filter {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            let mut parts = conjuncts(*left);
            parts.extend(conjuncts(*right));
            parts
        }
        other => vec![other],
    }
}

/// Returns the filter whose parts all must hold; none of no parts.
pub(super) fn all_of(parts: Vec<Expr>) -> Option<Expr> {
    parts.into_iter().reduce(|left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: BinaryOperator::And,
        right: Box::new(right),
    })
}

/// Whether a query calls something of its own `rownum`, such as `row_number() OVER (...) AS rownum`.
fn names_row_number(query: &Query) -> bool {
    struct Aliases;
    impl Visitor for Aliases {
        type Break = ();
        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            let tables = query.with.iter().flat_map(|with| &with.cte_tables);
            let mut columns = tables.flat_map(|table| &table.alias.columns);
            match columns.any(|column| is_row_number(&column.name)) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
        fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
            let is_called = |item: &SelectItem| match item {
                SelectItem::ExprWithAlias { alias, .. } => is_row_number(alias),
                _ => false,
            };
            match select.projection.iter().any(is_called) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
        fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
            match factor {
                TableFactor::Derived { alias: Some(alias), .. }
                    if alias.columns.iter().any(|column| is_row_number(&column.name)) =>
                {
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }
        }
    }
    query.visit(&mut Aliases).is_break()
}

fn is_row_number(name: &Ident) -> bool {
    name.value.eq_ignore_ascii_case("rownum")
}

/// Returns how many rows a condition on Oracle's `ROWNUM` keeps.
fn row_limit(part: &Expr) -> Option<u64> {
    let Expr::BinaryOp { left, op, right } = part else { return None };
    let Expr::Identifier(name) = left.as_ref() else { return None };
    let Expr::Value(value) = right.as_ref() else { return None };
    let Value::Number(text, _) = &value.value else { return None };
    let count: u64 = text.parse().ok()?;
    if !is_row_number(name) {
        return None;
    }
    match op {
        BinaryOperator::LtEq => Some(count),
        BinaryOperator::Lt => count.checked_sub(1),
        BinaryOperator::Eq if count == 1 => Some(1),
        _ => None,
    }
}

fn is_cast(expr: &Expr) -> bool {
    match expr {
        Expr::Cast { .. } => true,
        Expr::Nested(inner) => is_cast(inner),
        Expr::Value(value) => matches!(&value.value, Value::Number(text, _) if text.contains('.')),
        Expr::BinaryOp { left, right, .. } => is_cast(left) || is_cast(right),
        _ => false,
    }
}

fn ends_with(name: &ObjectName, ending: &str) -> bool {
    name.to_string().trim_matches(['"', '\'']).to_lowercase().ends_with(ending)
}

fn ignores_case(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => ignores_case(inner),
        Expr::Collate { collation, .. } => ends_with(collation, "nocase") || ends_with(collation, "_ci"),
        _ => false,
    }
}

/// Whether an argument is a unit in quotes: then the call is the one here.
pub(super) fn is_unit_text(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(_)) && unit_of(expr).is_some()
}

pub(super) fn number(text: &str) -> Expr {
    Expr::Value(Value::Number(text.to_owned(), false).into())
}

/// Returns the type here for one of another system.
fn type_here(data_type: &DataType) -> Option<DataType> {
    if let DataType::Custom(custom, parameters) = data_type
        && custom.to_string().eq_ignore_ascii_case("number")
        && let [precision, scale] = parameters.as_slice()
        && let (Ok(precision), Ok(scale)) = (precision.parse(), scale.parse())
    {
        return Some(DataType::Decimal(ExactNumberInfo::PrecisionAndScale(precision, scale)));
    }
    if let DataType::Custom(custom, parameters) = data_type
        && custom.to_string().eq_ignore_ascii_case("number")
        && let [precision] = parameters.as_slice()
        && let Ok(precision) = precision.parse()
    {
        return Some(DataType::Decimal(ExactNumberInfo::PrecisionAndScale(precision, 0)));
    }
    let name = data_type.to_string().to_uppercase();
    let name = name.split('(').next().unwrap_or_default().trim();
    Some(match name {
        "SIGNED" | "SIGNED INTEGER" | "INT64" => DataType::BigInt(None),
        "UNSIGNED" | "UNSIGNED INTEGER" => DataType::BigIntUnsigned(None),
        "FLOAT64" | "MONEY" | "NUMBER" => DataType::Double(ExactNumberInfo::None),
        "STRING" | "NVARCHAR" | "NCHAR" | "NTEXT" | "CLOB" => DataType::Varchar(None),
        "DATETIME" | "DATETIME2" | "SMALLDATETIME" => DataType::Timestamp(None, sqlparser::ast::TimezoneInfo::None),
        "BOOL" | "BIT" => DataType::Boolean,
        "BIGNUMERIC" => DataType::Double(ExactNumberInfo::None),
        _ => return None,
    })
}
