//! Syntax of other systems that the parser reads and that is not planned here: `TOP`, `LIMIT 5, 10`, hints, `CONVERT`,
//! `SAFE_CAST`, `REGEXP`, collations, `INTERVAL 1 DAY`, types of columns, and division as MySQL and BigQuery have it.

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Expr, LimitClause, ObjectName, Query, SetExpr, Statement, TableFactor,
    TopQuantity, Value, VisitMut, VisitorMut,
};

use super::foreign_functions::function_here;
use super::joins::expression;
use super::{Repair, RepairKind};

/// Rewrites what other systems write in another way. `divides_as_decimals`: whether `7 / 2` is 3.5 there.
pub(super) fn repair(statement: &mut Statement, divides_as_decimals: bool, repairs: &mut Vec<Repair>) {
    let mut writer = DialectWriter { divides_as_decimals, repairs };
    let _: ControlFlow<()> = VisitMut::visit(statement, &mut writer);
}

struct DialectWriter<'a> {
    divides_as_decimals: bool,
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

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Some((replaced, why)) = self.here(expr) else { return ControlFlow::Continue(()) };
        self.note(expr.to_string(), replaced.to_string(), why);
        *expr = replaced;
        ControlFlow::Continue(())
    }
}

impl DialectWriter<'_> {
    /// Returns what stands here for an expression of another system, and why.
    fn here(&self, expr: &Expr) -> Option<(Expr, String)> {
        let with = |replaced: Expr, why: &str| Some((replaced, why.to_owned()));
        match expr {
            Expr::Function(function) => function_here(function),
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
            Expr::RLike { negated, expr: inner, pattern, .. } => {
                let operator = if *negated { "!~" } else { "~" };
                with(expression(&format!("{inner} {operator} {pattern}"))?, "REGEXP is the operator ~ here")
            }
            Expr::Collate { expr: inner, collation } => {
                let ignores_case = ends_with(collation, "nocase") || ends_with(collation, "_ci");
                let text = if ignores_case { format!("lower({inner})") } else { inner.to_string() };
                with(expression(&text)?, "there are no collations here")
            }
            Expr::BinaryOp { left, op: BinaryOperator::Spaceship, right } => {
                with(expression(&format!("{left} IS NOT DISTINCT FROM {right}"))?, "<=> is written so here")
            }
            Expr::BinaryOp { left, op: BinaryOperator::MyIntegerDivide, right } => {
                with(expression(&format!("div({left}, {right})"))?, "DIV is a function here")
            }
            Expr::BinaryOp { left, op: BinaryOperator::Divide, right }
                if self.divides_as_decimals && !is_cast(left) && !is_cast(right) =>
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

pub(super) fn number(text: &str) -> Expr {
    Expr::Value(Value::Number(text.to_owned(), false).into())
}

/// Returns the type here for one of another system.
fn type_here(data_type: &DataType) -> Option<DataType> {
    let name = data_type.to_string().to_uppercase();
    let name = name.split('(').next().unwrap_or_default().trim();
    Some(match name {
        "SIGNED" | "SIGNED INTEGER" | "INT64" => DataType::BigInt(None),
        "UNSIGNED" | "UNSIGNED INTEGER" => DataType::BigIntUnsigned(None),
        "FLOAT64" | "MONEY" => DataType::Double(sqlparser::ast::ExactNumberInfo::None),
        "STRING" | "NVARCHAR" | "NCHAR" | "NTEXT" | "CLOB" => DataType::Varchar(None),
        "DATETIME" | "DATETIME2" | "SMALLDATETIME" => DataType::Timestamp(None, sqlparser::ast::TimezoneInfo::None),
        "BOOL" | "BIT" => DataType::Boolean,
        "BIGNUMERIC" => DataType::Double(sqlparser::ast::ExactNumberInfo::None),
        _ => return None,
    })
}
