//! Expressions that are written out as calls: patterns, subscripts of bytes and intervals, parts of times, arrays of queries.

use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, CastKind, DataType, DateTimeField, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArguments, ObjectName, ObjectNamePart, OrderByKind, SelectItem, SetExpr,
    StructField, TypedString, UnaryOperator, Value, ValueWithSpan,
};

use super::collations::is_comparison;
use super::function_forms::parsed_form;
use super::marks;
use super::row_values::row_values;
use super::shorthand::{call, taken, text};
use super::sql_types::{is_uuid_list_type, is_uuid_type, refuse_inner_uuids};
use super::volatile_queries::calls_volatile;
use super::windowed_extremes::{first_of_partition, value_of_window, with_order_of_window};
use crate::error::{EngineError, Result};
use crate::functions::{TO_UUID, TO_UUID_LIST, TRY_TO_UUID, with_units};
use crate::identifiers::same_name;

/// Writes out an expression; others stay as they are. Errors: `unsupported`.
pub(super) fn write_out_form(expr: &mut Expr) -> Result<()> {
    match expr {
        Expr::SimilarTo { negated, expr: value, pattern, escape_char: None } => {
            let matches = call("similar_to", vec![taken(value), taken(pattern)]);
            *expr = not_if(*negated, matches);
        }
        Expr::Like { negated, any: false, expr: value, pattern, escape_char: Some(escape) }
            if !is_backslash(escape) =>
        {
            let escape = Expr::Value(escape.clone());
            let matches = call("like_escape", vec![taken(value), taken(pattern), escape]);
            *expr = not_if(*negated, matches);
        }
        Expr::ILike { negated, any: false, expr: value, pattern, escape_char: Some(escape) }
            if !is_backslash(escape) =>
        {
            let escape = Expr::Value(escape.clone());
            let matches = call("ilike_escape", vec![taken(value), taken(pattern), escape]);
            *expr = not_if(*negated, matches);
        }
        // DataFusion has a value that is not found among others and a null for none of them, and not for unknown.
        Expr::AnyOp { right, .. } if may_have_nulls(right) => {
            let list = right.as_ref().clone();
            let unknown = "$1 OR CASE WHEN list_count($2) < len($2) THEN NULL ELSE false END";
            *expr = Expr::Nested(Box::new(parsed_form(unknown, &[taken(expr), list])?));
        }
        // The planner computes the value for each end, so that each would be compared with another one.
        Expr::Between { expr: value, negated, low, high } if calls_volatile(value) => {
            let not = if *negated { "NOT " } else { "" };
            let meaning = format!("array_any_match(make_array($1), __value -> __value {not}BETWEEN $2 AND $3)");
            *expr = parsed_form(&meaning, &[taken(value), taken(low), taken(high)])?;
        }
        Expr::BinaryOp { left, op: BinaryOperator::Custom(name), right } => {
            let written = match name.as_str() {
                marks::GLOB | marks::NOT_GLOB => call("glob_matches", vec![taken(left), taken(right)]),
                marks::IN_LIST | marks::NOT_IN_LIST => call("array_has", vec![taken(right), taken(left)]),
                _ => return Ok(()),
            };
            let is_negated = name == marks::NOT_GLOB || name == marks::NOT_IN_LIST;
            *expr = not_if(is_negated, written);
        }
        Expr::Cast { kind, expr: operand, data_type, .. } if is_uuid_type(data_type) => {
            let is_try = matches!(kind, CastKind::TryCast | CastKind::SafeCast);
            *expr = call(if is_try { TRY_TO_UUID } else { TO_UUID }, vec![typed_parameter(taken(operand))]);
        }
        Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, data_type, .. } if is_uuid_list_type(data_type) => {
            let text = Box::new(DataType::Varchar(None));
            *data_type = DataType::Array(ArrayElemTypeDef::SquareBracket(text, None));
            *expr = call(TO_UUID_LIST, vec![taken(expr)]);
        }
        Expr::Cast { kind: CastKind::TryCast | CastKind::SafeCast, data_type, .. } => refuse_inner_uuids(data_type)?,
        Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, expr: operand, data_type, .. } => {
            refuse_inner_uuids(data_type)?;
            let function = match data_type {
                DataType::Blob(_) => "blob",
                DataType::Bytea => "bytea",
                DataType::Interval { .. } => {
                    write_out_units(operand);
                    return Ok(());
                }
                DataType::Struct(fields, _) => {
                    if let Some(named) = named_row(operand, fields)? {
                        *expr = named;
                    }
                    return Ok(());
                }
                _ => return Ok(()),
            };
            *expr = call(function, vec![taken(operand)]);
        }
        Expr::TypedString(TypedString { data_type, value, .. }) => {
            let function = match data_type {
                _ if is_uuid_type(data_type) => TO_UUID,
                DataType::Blob(_) => "blob",
                DataType::Bytea => "bytea",
                _ => return Ok(()),
            };
            *expr = call(function, vec![Expr::Value(value.clone())]);
        }
        Expr::Interval(interval) => {
            let digits = literal_digits(&interval.value);
            let Some(field) = interval.leading_field.clone() else {
                if matches!(interval.value.as_ref(), Expr::Value(value) if matches!(value.value, Value::Number(..))) {
                    let message = format!("INTERVAL {} has no unit; write INTERVAL 1 DAY", interval.value);
                    return Err(EngineError::Plan { message });
                }
                write_out_units(&mut interval.value);
                return Ok(());
            };
            if let Some(digits) = digits {
                // The planner knows the other units.
                let unit = match field {
                    DateTimeField::Quarter => "quarters",
                    DateTimeField::Millennium | DateTimeField::Millenium => "millennia",
                    _ => {
                        *interval.value = text(&digits);
                        return Ok(());
                    }
                };
                interval.leading_field = None;
                *interval.value = text(&format!("{digits} {unit}"));
                write_out_units(&mut interval.value);
                return Ok(());
            }
            if matches!(interval.value.as_ref(), Expr::Value(_)) {
                return Ok(());
            }
            let function = match field {
                DateTimeField::Millennium | DateTimeField::Millenium => "to_millennia",
                DateTimeField::Century => "to_centuries",
                DateTimeField::Decade => "to_decades",
                DateTimeField::Year | DateTimeField::Years => "to_years",
                DateTimeField::Quarter => "to_quarters",
                DateTimeField::Month | DateTimeField::Months => "to_months",
                DateTimeField::Week(_) | DateTimeField::Weeks => "to_weeks",
                DateTimeField::Day | DateTimeField::Days => "to_days",
                DateTimeField::Hour | DateTimeField::Hours => "to_hours",
                DateTimeField::Minute | DateTimeField::Minutes => "to_minutes",
                DateTimeField::Second | DateTimeField::Seconds => "to_seconds",
                DateTimeField::Millisecond | DateTimeField::Milliseconds => "to_milliseconds",
                DateTimeField::Microsecond | DateTimeField::Microseconds => "to_microseconds",
                _ => return Ok(()),
            };
            *expr = call(function, vec![taken(&mut interval.value)]);
        }
        Expr::Extract { field, expr: time, .. } => {
            let part = match field {
                DateTimeField::Century => "century",
                DateTimeField::Decade => "decade",
                DateTimeField::Millennium | DateTimeField::Millenium => "millennium",
                DateTimeField::Julian => "julian",
                DateTimeField::Custom(name) => match name.value.to_lowercase().as_str() {
                    "era" => "era",
                    "weekday" => "weekday",
                    "yearweek" => "yearweek",
                    "century" | "centuries" => "century",
                    "decade" | "decades" => "decade",
                    "millennium" | "millennia" => "millennium",
                    "julian" => "julian",
                    _ => return Ok(()),
                },
                _ => return Ok(()),
            };
            *expr = call(part, vec![taken(time)]);
        }
        // PostgreSQL's: the part that a pattern matches, or its first group.
        Expr::Substring { expr: value, substring_from: Some(pattern), substring_for: None, .. } => {
            let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) = pattern.as_ref() else {
                return Ok(());
            };
            let group = if has_group(text) { ", 1" } else { "" };
            let meaning = format!("CASE WHEN regexp_like($1, $2) THEN regexp_extract($1, $2{group}) END");
            let part = parsed_form(&meaning, &[taken(value), taken(pattern)])?;
            *expr = Expr::Nested(Box::new(part));
        }
        Expr::Function(function) => {
            without_pg_catalog(&mut function.name);
            if let Some(ordered) = with_order_of_window(function) {
                *function = ordered;
            }
            let written = match (first_of_partition(function)?, value_of_window(function)?) {
                (Some(written), _) | (None, Some(written)) => Some(written),
                (None, None) => of_function(function)?,
            };
            if let Some(written) = written {
                *expr = written;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Returns what becomes a UUID; of a parameter it is said that it is text.
fn typed_parameter(operand: Expr) -> Expr {
    if !matches!(operand, Expr::Value(ValueWithSpan { value: Value::Placeholder(_), .. })) {
        return operand;
    }
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(operand),
        data_type: DataType::Varchar(None),
        array: false,
        format: None,
    }
}

/// PostgreSQL's dumps and clients call its own functions by their schema.
fn without_pg_catalog(name: &mut ObjectName) {
    let is_own = |part: &ObjectNamePart| part.as_ident().is_some_and(|part| same_name(&part.value, "pg_catalog"));
    if name.0.len() == 2 && name.0.first().is_some_and(is_own) {
        name.0.remove(0);
    }
}

/// Returns whether what ANY looks through is a list in which a null may be. Of a parameter that is not looked into.
fn may_have_nulls(list: &Expr) -> bool {
    match list {
        Expr::Subquery(_) | Expr::Value(_) => false,
        Expr::Nested(inner) => may_have_nulls(inner),
        Expr::Array(array) => array.elem.iter().any(|item| match item {
            Expr::Value(ValueWithSpan { value, .. }) => matches!(value, Value::Null),
            Expr::UnaryOp { .. } | Expr::TypedString(_) => false,
            _ => true,
        }),
        _ => true,
    }
}

/// The most patterns of one LIKE ANY: each makes its condition a level deeper.
const MAX_PATTERNS: usize = 64;

/// Writes out `text LIKE ANY ('a%', 'b%')` as its patterns joined by OR; other expressions stay as they are.
pub(super) fn write_out_patterns(expr: &mut Expr) {
    let (Expr::Like { any: true, pattern, .. } | Expr::ILike { any: true, pattern, .. }) = &*expr else { return };
    let Some(patterns) = listed_patterns(pattern) else { return };
    let conditions = patterns.into_iter().map(|single| {
        let mut condition = expr.clone();
        if let Expr::Like { any, pattern, .. } | Expr::ILike { any, pattern, .. } = &mut condition {
            *any = false;
            **pattern = single;
        }
        condition
    });
    let joined = conditions.reduce(|left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: BinaryOperator::Or,
        right: Box::new(right),
    });
    if let Some(joined) = joined {
        *expr = Expr::Nested(Box::new(joined));
    }
}

/// Returns the patterns of a LIKE ANY that are written out, where they are not too many.
pub(super) fn listed_patterns(pattern: &Expr) -> Option<Vec<Expr>> {
    let is_text = |expr: &Expr| {
        matches!(expr, Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(_) | Value::Placeholder(_), .. }))
    };
    let patterns = match pattern {
        Expr::Nested(inner) if is_text(inner.as_ref()) => vec![inner.as_ref().clone()],
        Expr::Nested(inner) => return listed_patterns(inner),
        Expr::Tuple(patterns) => patterns.clone(),
        Expr::Array(array) => array.elem.clone(),
        _ => return None,
    };
    (1..=MAX_PATTERNS).contains(&patterns.len()).then_some(patterns)
}

/// Returns a row that is cast to a structure: its values get the names and types of the fields, by their places.
fn named_row(row: &Expr, fields: &[StructField]) -> Result<Option<Expr>> {
    let Some(values) = row_values(row).filter(|values| values.len() == fields.len()) else { return Ok(None) };
    let mut named = Vec::with_capacity(2 * fields.len());
    for (field, value) in fields.iter().zip(values) {
        let Some(name) = &field.field_name else { return Ok(None) };
        let mut value = Expr::Cast {
            kind: CastKind::Cast,
            expr: Box::new(value),
            data_type: field.field_type.clone(),
            array: false,
            format: None,
        };
        write_out_form(&mut value)?;
        named.extend([text(&name.value), value]);
    }
    Ok(Some(call("named_struct", named)))
}

/// Whether a regular expression has a group that is kept.
fn has_group(pattern: &str) -> bool {
    let (mut is_escaped, mut in_class) = (false, false);
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class && characters.peek() != Some(&'?') => return true,
            _ => {}
        }
    }
    false
}

/// Returns the number of an interval that is written out.
fn literal_digits(value: &Expr) -> Option<String> {
    match value {
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _) | Value::SingleQuotedString(digits), .. }) => {
            Some(digits.clone())
        }
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => Some(format!("-{digits}")),
            _ => None,
        },
        _ => None,
    }
}

fn write_out_units(value: &mut Expr) {
    if let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(written), .. }) = value
        && let Some(units) = with_units(written)
    {
        *value = text(&units);
    }
}

pub(super) fn not_if(is_negated: bool, expr: Expr) -> Expr {
    match is_negated {
        true => Expr::Nested(Box::new(Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(expr) })),
        false => expr,
    }
}

fn is_backslash(escape: &ValueWithSpan) -> bool {
    matches!(&escape.value, Value::SingleQuotedString(text) if text == "\\")
}

/// `sum(a > 1)` is how many rows the condition holds for, and null where it is for all.
fn count_conditions(arguments: &mut FunctionArguments) -> Result<()> {
    if let FunctionArguments::List(list) = arguments
        && let [FunctionArg::Unnamed(FunctionArgExpr::Expr(value))] = list.args.as_mut_slice()
        && is_condition(value)
    {
        *value = parsed_form("CAST($1 AS BIGINT)", &[taken(value)])?;
    }
    Ok(())
}

/// Whether an expression is a boolean, as far as its text says.
fn is_condition(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_condition(inner),
        Expr::BinaryOp { op, .. } => is_comparison(op) || matches!(op, BinaryOperator::And | BinaryOperator::Or),
        Expr::Value(ValueWithSpan { value: Value::Boolean(_), .. })
        | Expr::UnaryOp { op: UnaryOperator::Not, .. }
        | Expr::IsNull(_)
        | Expr::IsNotNull(_)
        | Expr::IsTrue(_)
        | Expr::IsFalse(_)
        | Expr::IsNotTrue(_)
        | Expr::IsNotFalse(_)
        | Expr::IsDistinctFrom(_, _)
        | Expr::IsNotDistinctFrom(_, _)
        | Expr::InList { .. }
        | Expr::Between { .. }
        | Expr::Like { .. }
        | Expr::ILike { .. } => true,
        _ => false,
    }
}

fn of_function(function: &mut Function) -> Result<Option<Expr>> {
    let name = function.name.to_string().to_lowercase();
    if name == "sum" {
        count_conditions(&mut function.args)?;
    }
    match (&mut function.args, name.as_str()) {
        (FunctionArguments::Subquery(query), "array") => {
            let refused = || EngineError::Unsupported {
                what: "ARRAY of a query with this clause".into(),
                hint: "write (SELECT array_agg(column ORDER BY column) FROM (query))".into(),
            };
            let order_by = match query.order_by.take().map(|order_by| order_by.kind) {
                Some(OrderByKind::Expressions(sorts)) => sorts,
                Some(OrderByKind::All(_)) => return Err(refused()),
                None => Vec::new(),
            };
            let SetExpr::Select(select) = query.body.as_mut() else { return Err(refused()) };
            let is_plain = query.limit_clause.is_none() && query.fetch.is_none() && query.with.is_none();
            let groups = matches!(&select.group_by, datafusion::sql::sqlparser::ast::GroupByExpr::Expressions(all, _) if all.is_empty());
            let [SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. }] =
                select.projection.as_mut_slice()
            else {
                return Err(refused());
            };
            if !is_plain || !groups || select.distinct.is_some() || select.having.is_some() {
                return Err(refused());
            }
            let mut collected = call("array_agg", vec![value.clone()]);
            if let Expr::Function(Function { args: FunctionArguments::List(list), .. }) = &mut collected
                && !order_by.is_empty()
            {
                list.clauses.push(FunctionArgumentClause::OrderBy(order_by));
            }
            let nothing = call("make_array", Vec::new());
            *value = call("coalesce", vec![collected, nothing]);
            Ok(Some(Expr::Subquery(query.clone())))
        }
        // Their answer is the same in any order.
        (FunctionArguments::List(list), "sum" | "min" | "max" | "avg" | "count" | "bool_and" | "bool_or")
            if function.over.is_none() =>
        {
            list.clauses.retain(|clause| !matches!(clause, FunctionArgumentClause::OrderBy(_)));
            Ok(None)
        }
        // The ordered-set aggregates that have a name of their own here.
        (FunctionArguments::List(list), "mode" | "percentile_disc") if !function.within_group.is_empty() => {
            let [sort] = function.within_group.as_slice() else { return Ok(None) };
            if sort.options.asc == Some(false) {
                return Err(EngineError::Unsupported {
                    what: format!("{name} WITHIN GROUP of a descending order"),
                    hint: "order upwards, and take 1 - fraction".into(),
                });
            }
            let mut arguments = vec![FunctionArg::Unnamed(FunctionArgExpr::Expr(sort.expr.clone()))];
            arguments.append(&mut list.args);
            let mut written = function.clone();
            written.within_group.clear();
            if let (Expr::Function(named), FunctionArguments::List(list)) =
                (call(if name == "mode" { "mode" } else { "quantile_disc" }, Vec::new()), &mut written.args)
            {
                written.name = named.name;
                list.args = arguments;
            }
            Ok(Some(Expr::Function(written)))
        }
        _ => Ok(None),
    }
}
