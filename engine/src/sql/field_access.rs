//! Subscripts of what is no list: `'text'[2:3]` are characters, `row(1, 2)[1]` is a field. Fields of structures without regard to
//! case. Arithmetic that Arrow lacks: a time of day and an interval, an interval and a number. And texts that are compared with
//! booleans, times of day of other digits, `MAP {key: value}`, and lists of bytes and nulls.

use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::utils::list_ndims;
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::functions::core::expr_fn::get_field;
use datafusion::functions_nested::expr_fn::{array_concat, array_element, map_extract};
use datafusion::logical_expr::expr::{Case, Cast};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr, RawFieldAccessExpr};
use datafusion::logical_expr::{Expr, ExprSchemable, GetFieldAccess, lit};
use datafusion::sql::TableReference;
use datafusion::sql::sqlparser::ast::BinaryOperator;

use super::number_types::meeting_types::is_finer_time_of_day;
use crate::error::EngineError;
use crate::functions::{MAP, STEPPED_SLICE, bytes_type, list_literal, own_scalar_functions};
use crate::identifiers::same_name;

/// Plans such subscripts and sums.
#[derive(Debug)]
pub(super) struct FieldAccess;

impl ExprPlanner for FieldAccess {
    fn plan_make_map(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for (place, arg) in args.into_iter().enumerate() {
            let side = if place % 2 == 0 { &mut keys } else { &mut values };
            side.push(arg);
        }
        Ok(PlannerResult::Planned(own_call(MAP, vec![list_literal(keys), list_literal(values)])?))
    }

    fn plan_array_literal(&self, exprs: Vec<Expr>, schema: &DFSchema) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(match has_bytes_and_nulls(&exprs, schema) {
            true => PlannerResult::Planned(list_literal(exprs)),
            false => PlannerResult::Original(exprs),
        })
    }

    fn plan_field_access(
        &self,
        expr: RawFieldAccessExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        let RawFieldAccessExpr { field_access, expr: value } = expr;
        let value_type = value.get_type(schema)?;
        let is_text = matches!(value_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
        match field_access {
            GetFieldAccess::ListIndex { key } if is_text => {
                Ok(PlannerResult::Planned(own_call("text_element", vec![value, *key])?))
            }
            GetFieldAccess::ListRange { start, stop, stride } if is_text => {
                if !is_one(&stride) {
                    let message = "a part of a text has no step; write it without".to_owned();
                    return Err(EngineError::Plan { message }.into());
                }
                Ok(PlannerResult::Planned(own_call("text_slice", vec![value, *start, *stop])?))
            }
            GetFieldAccess::ListRange { start, stop, stride }
                if !is_one(&stride)
                    && matches!(
                        value_type,
                        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(_, _)
                    ) =>
            {
                Ok(PlannerResult::Planned(own_call(STEPPED_SLICE, vec![value, *start, *stop, *stride])?))
            }
            GetFieldAccess::NamedStructField { name } if is_other_key(&value_type, &name.data_type()) => {
                Ok(PlannerResult::Planned(value_of_key(value, Expr::Literal(name, None))))
            }
            GetFieldAccess::NamedStructField { name } => {
                let spelled = name.try_as_str().flatten().and_then(|name| spelled_field(&value_type, name));
                let name = spelled.map(|field| ScalarValue::from(field.name().as_str())).unwrap_or(name);
                let field_access = GetFieldAccess::NamedStructField { name };
                Ok(PlannerResult::Original(RawFieldAccessExpr { field_access, expr: value }))
            }
            GetFieldAccess::ListIndex { key }
                if matches!(value_type, DataType::Struct(_))
                    && key.get_type(schema).is_ok_and(|key| key.is_integer()) =>
            {
                Ok(PlannerResult::Planned(own_call("struct_extract_at", vec![value, *key])?))
            }
            // DataFusion takes constants only, of the very type of the keys, and compares a list or a structure with one key of all
            // maps.
            GetFieldAccess::ListIndex { key }
                if matches!(value_type, DataType::Map(_, _))
                    && (key.any_column_refs()
                        || key.contains_outer()
                        || key
                            .get_type(schema)
                            .is_ok_and(|found| found.is_nested() || is_other_key(&value_type, &found))) =>
            {
                Ok(PlannerResult::Planned(value_of_key(value, *key)))
            }
            other => Ok(PlannerResult::Original(RawFieldAccessExpr { field_access: other, expr: value })),
        }
    }

    fn plan_compound_identifier(
        &self,
        field: &Field,
        qualifier: Option<&TableReference>,
        nested_names: &[String],
    ) -> Result<PlannerResult<Vec<Expr>>> {
        let mut data_type = field.data_type();
        let mut value = Expr::Column(Column::new(qualifier.cloned(), field.name()));
        for name in nested_names {
            // What has no such field is for the next planner to refuse.
            let Some(part) = spelled_field(data_type, name) else { return Ok(PlannerResult::Original(Vec::new())) };
            value = get_field(value, part.name().as_str());
            data_type = part.data_type();
        }
        Ok(PlannerResult::Planned(value))
    }

    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let RawBinaryExpr { op, left, right } = expr;
        let (left_type, right_type) = (left.get_type(schema).ok(), right.get_type(schema).ok());
        let list_depth = |found: &Option<DataType>| found.as_ref().map_or(0, list_ndims);
        let is_time = |found: &Option<DataType>| matches!(found, Some(DataType::Time32(_) | DataType::Time64(_)));
        let is_interval = |found: &Option<DataType>| matches!(found, Some(DataType::Interval(_)));
        let is_number = |found: &Option<DataType>| found.as_ref().is_some_and(DataType::is_numeric);
        let (left, right) = match op {
            BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::Lt
            | BinaryOperator::LtEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq => {
                let (left, right) = (beside_boolean(left, &right_type), beside_boolean(right, &left_type));
                (beside_finer_time(left, &left_type, &right_type), beside_finer_time(right, &right_type, &left_type))
            }
            _ => (left, right),
        };
        let (times, plus) = ("interval_times", "time_plus");
        let planned = match op {
            BinaryOperator::StringConcat
                if list_depth(&left_type) > 0 && list_depth(&left_type) == list_depth(&right_type) =>
            {
                joined_lists(left, right)
            }
            BinaryOperator::Plus if is_time(&left_type) && is_interval(&right_type) => {
                own_call(plus, vec![left, right])?
            }
            BinaryOperator::Plus if is_interval(&left_type) && is_time(&right_type) => {
                own_call(plus, vec![right, left])?
            }
            BinaryOperator::Minus if is_time(&left_type) && is_interval(&right_type) => {
                own_call(plus, vec![left, Expr::Negative(Box::new(right))])?
            }
            BinaryOperator::Multiply if is_interval(&left_type) && is_number(&right_type) => {
                own_call(times, vec![left, right])?
            }
            BinaryOperator::Multiply if is_number(&left_type) && is_interval(&right_type) => {
                own_call(times, vec![right, left])?
            }
            BinaryOperator::Divide if is_interval(&left_type) && is_number(&right_type) => {
                own_call(times, vec![left, lit(1.0_f64) / right])?
            }
            op => return Ok(PlannerResult::Original(RawBinaryExpr { op, left, right })),
        };
        Ok(PlannerResult::Planned(planned))
    }
}

/// Whether the values of a list are bytes beside a null, or beside a parameter, whose type is open while it is planned.
fn has_bytes_and_nulls(values: &[Expr], schema: &DFSchema) -> bool {
    let may_be_untyped = |value: &Expr| match value {
        Expr::Literal(value, _) => value.is_null(),
        other => matches!(other, Expr::Placeholder(_)),
    };
    // Types of nested lists are asked for again at each level; most lists have no such value.
    if !values.iter().any(may_be_untyped) {
        return false;
    }
    let types = values.iter().map(|value| value.get_type(schema)).collect::<Result<Vec<_>>>();
    types.is_ok_and(|types| bytes_type(&types).is_some())
}

/// Returns the field of a structure that is spelled so, or else the one of that name in another case.
fn spelled_field<'a>(data_type: &'a DataType, name: &str) -> Option<&'a FieldRef> {
    let DataType::Struct(fields) = data_type else { return None };
    let exact = fields.iter().find(|field| field.name() == name);
    exact.or_else(|| {
        let mut others = fields.iter().filter(|field| same_name(field.name(), name));
        others.next().filter(|_| others.next().is_none())
    })
}

/// Returns whether a value is a map whose keys are of another type, so that one of this type has to be cast.
fn is_other_key(map: &DataType, key: &DataType) -> bool {
    let DataType::Map(entries, _) = map else { return false };
    match entries.data_type() {
        DataType::Struct(fields) => fields.first().is_some_and(|own| own.data_type() != key),
        _ => false,
    }
}

/// Returns the value that a map has of a key.
fn value_of_key(map: Expr, key: Expr) -> Expr {
    array_element(map_extract(map, key), lit(1_i64))
}

/// Returns a text that is compared with a boolean as one, as in DuckDB and PostgreSQL: the planner asks for the type of the
/// comparison at once, and DataFusion finds none.
fn beside_boolean(expr: Expr, compared_with: &Option<DataType>) -> Expr {
    let is_text = matches!(&expr, Expr::Literal(value, _) if value.try_as_str().flatten().is_some());
    match is_text && *compared_with == Some(DataType::Boolean) {
        true => Expr::Cast(Cast::new(Box::new(expr), DataType::Boolean)),
        false => expr,
    }
}

/// Returns a time of day that is compared with one of more digits as one of its type, for the same reason.
fn beside_finer_time(expr: Expr, own: &Option<DataType>, compared_with: &Option<DataType>) -> Expr {
    match (own, compared_with) {
        (Some(own), Some(finer)) if is_finer_time_of_day(finer, own) => {
            Expr::Cast(Cast::new(Box::new(expr), finer.clone()))
        }
        _ => expr,
    }
}

/// `list || list` is null where one of them is, as in DuckDB; `array_concat` leaves nulls out. What is joined to another list is
/// joined with it at once, so that a chain stays as long as it is written.
fn joined_lists(left: Expr, right: Expr) -> Expr {
    let mut are_known: Option<Expr> = None;
    let mut lists = Vec::new();
    for side in [left, right] {
        let is_known = match joined_before(&side) {
            Some((is_known, joined)) => {
                lists.extend(joined);
                is_known
            }
            None => {
                let is_known = side.clone().is_not_null();
                lists.push(side);
                is_known
            }
        };
        are_known = Some(match are_known {
            Some(before) => before.and(is_known),
            None => is_known,
        });
    }
    let joined = array_concat(lists);
    match are_known {
        Some(are_known) => Expr::Case(Case::new(None, vec![(Box::new(are_known), Box::new(joined))], None)),
        None => joined,
    }
}

/// Returns when lists are joined, and the lists, of an expression that joins some.
fn joined_before(expr: &Expr) -> Option<(Expr, Vec<Expr>)> {
    let Expr::Case(Case { expr: None, when_then_expr, else_expr: None }) = expr else { return None };
    let [(is_known, joined)] = when_then_expr.as_slice() else { return None };
    match joined.as_ref() {
        Expr::ScalarFunction(call) if call.name() == "array_concat" => {
            Some((is_known.as_ref().clone(), call.args.clone()))
        }
        _ => None,
    }
}

/// Whether a part is taken item by item, as it is where no step is written.
fn is_one(stride: &Expr) -> bool {
    matches!(stride, Expr::Literal(step, _) if *step == ScalarValue::from(1_i64))
}

/// Returns a call of one of the engine's own functions.
pub(super) fn own_call(name: &str, arguments: Vec<Expr>) -> Result<Expr> {
    match own_scalar_functions().iter().find(|function| function.name() == name) {
        Some(function) => Ok(function.call(arguments)),
        None => Err(EngineError::Internal(format!("the function {name} is missing")).into()),
    }
}
