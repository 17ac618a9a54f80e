//! The types of parameters that the planner leaves open, by the places where they stand: what they are compared with (also as
//! a part of a row, or as a list with ANY and ALL), chosen among or united with, a condition, and the argument of a function
//! that takes one type there. Beside a time in a sum or a difference the planner takes a parameter for such a time, which it
//! seldom is: what the sum is compared with, or assigned to, tells.
//!
//! Where a place tells only that a value is a number, or a time of some kind, the likeliest type is told. A parameter that an inner
//! query names is looked for by that name, too.
//!
//! They are told to clients, some of which send nothing for a parameter without a type. A statement is planned by the types of
//! the values that are bound.

use std::collections::BTreeMap;

use arrow::datatypes::{DataType, IntervalUnit};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::expr::{
    AggregateFunction, Between, BinaryExpr, Case, Cast, InList, InSubquery, Like, Placeholder, ScalarFunction, TryCast,
    WindowFunction,
};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    ArrayFunctionArgument, ArrayFunctionSignature, Expr, ExprSchemable, LogicalPlan, Operator, ScalarUDF,
    TypeSignature, Union, WindowFunctionDefinition,
};

use super::argument_types::{argument_type, likely_argument_type, likely_types_beside};
use super::note_type;
use super::sources::{has_untyped_columns, is_untyped_subquery, source_of_place, with_sources};
use crate::functions::{COMPLETE_ROW, NESTED_ORDER};
use crate::sql::row_values::STRUCT;
use crate::sql::write_statement::WriteStatement;

/// The types that the places of each parameter tell.
#[derive(Debug, Default)]
pub(super) struct ToldTypes {
    /// Of those that the planner leaves open.
    pub(super) open: BTreeMap<String, Vec<DataType>>,
    /// Of those that are added to a time or taken from it, whatever the planner took them for.
    pub(super) in_sums: BTreeMap<String, Vec<DataType>>,
    /// Of those of which no place tells more than a class of types, the likeliest of it.
    pub(super) likely: BTreeMap<String, Vec<DataType>>,
}

/// Functions whose arguments are of one type: their result is one of them, their list, or their order.
const PEER_FUNCTIONS: [&str; 8] =
    ["coalesce", "greatest", "ifnull", "least", "make_array", NESTED_ORDER, "nullif", "nvl"];
/// A field of a struct, or the value of a key.
const GET_FIELD: &str = "get_field";
/// Functions whose result is an element of their one list: what `> ANY (list)` and its like are compared with.
const LIST_BOUNDS: [&str; 2] = ["array_max", "array_min"];

/// Returns what the places of the parameters tell that have no type.
pub(super) fn told_types(plan: &LogicalPlan) -> DataFusionResult<ToldTypes> {
    let mut told = ToldTypes::default();
    plan.apply_with_subqueries(|node| {
        note_in_node(node, &mut told)?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(told)
}

fn note_in_node(node: &LogicalPlan, told: &mut ToldTypes) -> DataFusionResult<()> {
    match node {
        LogicalPlan::Filter(filter) => note_type(&filter.predicate, &DataType::Boolean, &mut told.open),
        LogicalPlan::Union(union) => note_in_union(union, told),
        LogicalPlan::Extension(_) => note_assigned_values(node, told),
        _ => {}
    }
    let has_sources = has_untyped_columns(node);
    let mut has_untold = has_sources;
    node.apply_expressions(|expr| {
        has_untold |= expr.exists(|part| Ok(is_open(part) || is_taken_for_time(part) || is_untyped_subquery(part)))?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    if !has_untold {
        return Ok(());
    }
    let schema = merge_schema(&node.inputs());
    if let LogicalPlan::Join(join) = node {
        for (left, right) in &join.on {
            note_peers(&[&with_sources(left, node)?, &with_sources(right, node)?], &schema, told);
        }
    }
    node.apply_expressions(|expr| {
        with_sources(expr, node)?.apply(|part| {
            note_in_expr(part, &schema, told);
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(())
}

/// Notes that the values that an UPDATE or a MERGE assigns are what its columns are.
fn note_assigned_values(node: &LogicalPlan, told: &mut ToldTypes) {
    let Some(statement) = WriteStatement::from_plan(node) else { return };
    let Some(values) = statement.input() else { return };
    let schema = merge_schema(&values.inputs());
    for (value, data_type) in statement.assigned_values() {
        note_value(value, data_type, &schema, told);
    }
}

/// Notes that each value of a union is what those of the other queries are in its place.
fn note_in_union(union: &Union, told: &mut ToldTypes) {
    for at in 0..union.schema.fields().len() {
        let Some(data_type) = type_in_union(union, at) else { continue };
        for input in &union.inputs {
            if let LogicalPlan::Projection(projection) = input.as_ref()
                && let Some(value) = projection.expr.get(at)
            {
                note_type(value, data_type, &mut told.open);
            }
            if let Some(source) = source_of_place(at, input) {
                note_type(&source, data_type, &mut told.open);
            }
        }
    }
}

/// Returns the type of a union's values in a place, which its first query may leave open; `None` where they have several.
fn type_in_union(union: &Union, at: usize) -> Option<&DataType> {
    let united = union.schema.field(at).data_type();
    if *united != DataType::Null {
        return Some(united);
    }
    let types = union.inputs.iter().map(|input| input.schema().field(at).data_type());
    let mut known = types.filter(|data_type| **data_type != DataType::Null);
    let first = known.next()?;
    known.all(|data_type| data_type == first).then_some(first)
}

/// Whether an expression is a parameter without a type.
pub(super) fn is_open(expr: &Expr) -> bool {
    matches!(expr, Expr::Placeholder(Placeholder { field: None, .. }))
}

/// Whether the planner took a parameter for a time, as it does beside one.
fn is_taken_for_time(expr: &Expr) -> bool {
    matches!(expr, Expr::Placeholder(Placeholder { field: Some(field), .. }) if field.data_type().is_temporal())
}

/// Whether the type of an expression is that of a parameter which its place is to tell.
fn is_untold(expr: &Expr) -> bool {
    match expr {
        Expr::Alias(alias) => is_untold(&alias.expr),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Plus | Operator::Minus, right }) => {
            is_taken_for_time(left) || is_taken_for_time(right)
        }
        Expr::ScalarFunction(call) if row_parts(expr).is_some() || LIST_BOUNDS.contains(&call.name()) => {
            call.args.iter().any(is_untold)
        }
        other => is_open(other),
    }
}

/// Returns the values of a row.
fn row_parts(expr: &Expr) -> Option<&[Expr]> {
    match expr {
        Expr::ScalarFunction(call) if [STRUCT, COMPLETE_ROW].contains(&call.name()) => Some(&call.args),
        _ => None,
    }
}

fn note_in_expr(expr: &Expr, schema: &DFSchema, told: &mut ToldTypes) {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom => note_peers(&[left.as_ref(), right.as_ref()], schema, told),
            Operator::And | Operator::Or => {
                note_type(left, &DataType::Boolean, &mut told.open);
                note_type(right, &DataType::Boolean, &mut told.open);
            }
            Operator::Plus | Operator::Minus => note_in_sum(left, *op, right, None, schema, told),
            _ => {}
        },
        Expr::Not(condition)
        | Expr::IsTrue(condition)
        | Expr::IsFalse(condition)
        | Expr::IsUnknown(condition)
        | Expr::IsNotTrue(condition)
        | Expr::IsNotFalse(condition)
        | Expr::IsNotUnknown(condition) => note_type(condition, &DataType::Boolean, &mut told.open),
        Expr::Between(Between { expr, low, high, .. }) => {
            note_peers(&[expr.as_ref(), low.as_ref(), high.as_ref()], schema, told);
        }
        Expr::InList(InList { expr, list, .. }) => {
            let peers: Vec<&Expr> = list.iter().chain([expr.as_ref()]).collect();
            note_peers(&peers, schema, told);
        }
        Expr::InSubquery(InSubquery { expr, subquery, .. }) => {
            let Some(field) = subquery.subquery.schema().fields().first() else { return };
            if *field.data_type() != DataType::Null {
                return note_value(expr, field.data_type(), schema, told);
            }
            if let Some(source) = source_of_place(0, &subquery.subquery) {
                note_peers(&[expr.as_ref(), &source], schema, told);
            }
        }
        Expr::Like(Like { expr, pattern, .. }) | Expr::SimilarTo(Like { expr, pattern, .. }) => {
            note_type(expr, &DataType::Utf8, &mut told.open);
            note_type(pattern, &DataType::Utf8, &mut told.open);
        }
        Expr::Case(Case { expr, when_then_expr, else_expr }) => {
            let whens = when_then_expr.iter().map(|(when, _)| when.as_ref());
            match expr {
                Some(compared) => {
                    let peers: Vec<&Expr> = whens.chain([compared.as_ref()]).collect();
                    note_peers(&peers, schema, told);
                }
                None => whens.for_each(|condition| note_type(condition, &DataType::Boolean, &mut told.open)),
            }
            let results = when_then_expr.iter().map(|(_, then)| then.as_ref());
            let results: Vec<&Expr> = results.chain(else_expr.iter().map(|otherwise| otherwise.as_ref())).collect();
            note_peers(&results, schema, told);
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) => {
            if PEER_FUNCTIONS.contains(&func.name()) {
                let peers: Vec<&Expr> = args.iter().collect();
                return note_peers(&peers, schema, told);
            }
            if let Some(kinds) = list_arguments(&func.signature().type_signature, args.len()) {
                return note_list_arguments(kinds, args, schema, told);
            }
            note_call(func, args, schema, told);
        }
        Expr::AggregateFunction(AggregateFunction { func, params }) => {
            note_arguments(&func.signature().type_signature, &params.args, told);
            params.filter.iter().for_each(|filter| note_type(filter, &DataType::Boolean, &mut told.open));
        }
        Expr::WindowFunction(call) => note_window_call(call, schema, told),
        Expr::Cast(Cast { expr, field }) | Expr::TryCast(TryCast { expr, field }) => {
            note_type(expr, field.data_type(), &mut told.open);
        }
        Expr::Negative(value) => note_type(value, &DataType::Float64, &mut told.likely),
        _ => {}
    }
}

/// Notes that the parameters among `peers` are what the others are, where these are of one type.
fn note_peers(peers: &[&Expr], schema: &DFSchema, told: &mut ToldTypes) {
    if !peers.iter().any(|peer| is_untold(peer)) {
        return;
    }
    if let Some(rows) = peers.iter().map(|peer| row_parts(peer)).collect::<Option<Vec<_>>>() {
        let width = rows.iter().map(|row| row.len()).max().unwrap_or(0);
        for place in 0..width {
            let parts: Vec<&Expr> = rows.iter().filter_map(|row| row.get(place)).collect();
            note_peers(&parts, schema, told);
        }
        return;
    }
    let types = peers.iter().filter(|peer| !is_untold(peer)).filter_map(|peer| peer.get_type(schema).ok());
    let mut types = types.filter(|data_type| *data_type != DataType::Null);
    let Some(first) = types.next() else { return };
    if types.all(|data_type| data_type == first) {
        peers.iter().for_each(|peer| note_value(peer, &first, schema, told));
    }
}

/// Notes that a value is one of a type, where that is for parameters in it to be.
fn note_value(value: &Expr, data_type: &DataType, schema: &DFSchema, told: &mut ToldTypes) {
    match value {
        Expr::Alias(alias) => note_value(&alias.expr, data_type, schema, told),
        Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::Plus | Operator::Minus), right }) => {
            note_in_sum(left, *op, right, Some(data_type), schema, told);
        }
        Expr::ScalarFunction(call) => match (row_parts(value), data_type) {
            (Some(parts), DataType::Struct(fields)) if parts.len() == fields.len() => {
                for (part, field) in parts.iter().zip(fields.iter()) {
                    note_value(part, field.data_type(), schema, told);
                }
            }
            (None, element) if LIST_BOUNDS.contains(&call.name()) => {
                let list = DataType::new_list(element.clone(), true);
                call.args.iter().for_each(|argument| note_type(argument, &list, &mut told.open));
            }
            _ => {}
        },
        other => note_type(other, data_type, &mut told.open),
    }
}

/// Notes what a parameter is that stands beside a time or an interval, in a sum or a difference of the type `result`.
fn note_in_sum(
    left: &Expr,
    op: Operator,
    right: &Expr,
    result: Option<&DataType>,
    schema: &DFSchema,
    told: &mut ToldTypes,
) {
    let (parameter, beside, is_left) = match (left, right) {
        (Expr::Placeholder(_), Expr::Placeholder(_)) => return,
        (Expr::Placeholder(parameter), beside) => (parameter, beside, true),
        (beside, Expr::Placeholder(parameter)) => (parameter, beside, false),
        _ => return,
    };
    let Ok(beside) = beside.get_type(schema) else { return };
    if parameter.field.as_ref().is_some_and(|field| *field.data_type() != beside) {
        return;
    }
    // Nothing is taken from an interval but an interval, and a time only from a time.
    let is_first_or_added = is_left || op == Operator::Plus;
    let is_second_or_added = !is_left || op == Operator::Plus;
    let data_type = match result {
        Some(result) if is_elapsed(&beside) && is_instant(result) && is_first_or_added => result.clone(),
        Some(result) if is_instant(&beside) && is_elapsed(result) && op == Operator::Minus => beside,
        Some(result) if is_date(&beside) && is_date(result) && op == Operator::Minus && !is_left => DataType::Int64,
        // Days are added to a date as a number, too.
        Some(result)
            if is_instant(&beside)
                && is_instant(result)
                && !(is_date(&beside) && is_date(result))
                && is_second_or_added =>
        {
            DataType::Interval(IntervalUnit::MonthDayNano)
        }
        None if is_instant(&beside) && !is_date(&beside) && op == Operator::Plus => {
            DataType::Interval(IntervalUnit::MonthDayNano)
        }
        _ => return,
    };
    told.in_sums.entry(parameter.id.clone()).or_default().push(data_type);
}

fn is_elapsed(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Interval(_) | DataType::Duration(_))
}

fn is_date(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32 | DataType::Date64)
}

fn is_instant(data_type: &DataType) -> bool {
    data_type.is_temporal() && !is_elapsed(data_type)
}

/// Returns what a function of lists takes as so many arguments; `None` for any other function.
fn list_arguments(signature: &TypeSignature, count: usize) -> Option<&[ArrayFunctionArgument]> {
    match signature {
        TypeSignature::ArraySignature(ArrayFunctionSignature::Array { arguments, .. }) if arguments.len() == count => {
            Some(arguments)
        }
        TypeSignature::OneOf(signatures) => signatures.iter().find_map(|signature| list_arguments(signature, count)),
        _ => None,
    }
}

/// Notes which lists and elements the parameters among a function's arguments are, as the other arguments tell.
fn note_list_arguments(kinds: &[ArrayFunctionArgument], args: &[Expr], schema: &DFSchema, told: &mut ToldTypes) {
    let mut others = kinds.iter().zip(args).filter(|(_, argument)| !is_untold(argument));
    let element = others.find_map(|(kind, argument)| {
        let element = match (kind, argument.get_type(schema).ok()?) {
            (ArrayFunctionArgument::Element, element) => element,
            (
                ArrayFunctionArgument::Array,
                DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _),
            ) => field.data_type().clone(),
            _ => return None,
        };
        (element != DataType::Null).then_some(element)
    });
    for (kind, argument) in kinds.iter().zip(args) {
        let data_type = match kind {
            ArrayFunctionArgument::Element => element.clone(),
            ArrayFunctionArgument::Array => element.clone().map(|element| DataType::new_list(element, true)),
            ArrayFunctionArgument::Index => Some(DataType::Int64),
            ArrayFunctionArgument::String => Some(DataType::Utf8),
        };
        if let Some(data_type) = data_type {
            note_type(argument, &data_type, &mut told.open);
        }
    }
}

/// Notes the types that a function takes where it has parameters.
fn note_arguments(signature: &TypeSignature, args: &[Expr], told: &mut ToldTypes) {
    for (at, argument) in args.iter().enumerate().filter(|(_, argument)| is_open(argument)) {
        if let Some(data_type) = argument_type(signature, args.len(), at) {
            note_type(argument, &data_type, &mut told.open);
        } else if let Some(data_type) = likely_argument_type(signature, args.len(), at) {
            note_type(argument, &data_type, &mut told.likely);
        }
    }
}

fn note_call(function: &ScalarUDF, args: &[Expr], schema: &DFSchema, told: &mut ToldTypes) {
    if let (GET_FIELD, [map, key]) = (function.name(), args)
        && let Ok(DataType::Map(entries, _)) = map.get_type(schema)
        && let DataType::Struct(fields) = entries.data_type()
        && let Some(field) = fields.first()
    {
        return note_type(key, field.data_type(), &mut told.open);
    }
    if function.signature().type_signature != TypeSignature::UserDefined {
        return note_arguments(&function.signature().type_signature, args, told);
    }
    if args.iter().any(is_open) {
        for (argument, data_type) in args.iter().zip(likely_types_beside(function, args, schema)) {
            if let Some(data_type) = data_type {
                note_type(argument, &data_type, &mut told.likely);
            }
        }
    }
}

fn note_window_call(call: &WindowFunction, schema: &DFSchema, told: &mut ToldTypes) {
    let args = call.params.args.as_slice();
    call.params.filter.iter().for_each(|filter| note_type(filter, &DataType::Boolean, &mut told.open));
    match (&call.fun, args) {
        (WindowFunctionDefinition::AggregateUDF(function), _) => {
            note_arguments(&function.signature().type_signature, args, told);
        }
        (WindowFunctionDefinition::WindowUDF(function), [value, places, others @ ..])
            if ["lag", "lead", "nth_value"].contains(&function.name()) =>
        {
            note_type(places, &DataType::Int64, &mut told.open);
            others.iter().for_each(|default| note_peers(&[value, default], schema, told));
        }
        (WindowFunctionDefinition::WindowUDF(function), _) => {
            note_arguments(&function.signature().type_signature, args, told);
        }
    }
}
