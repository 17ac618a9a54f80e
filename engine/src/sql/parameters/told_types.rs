//! The types of parameters that the planner leaves open, by the places where they stand: what they are compared with, chosen
//! among or united with, a condition, and the argument of a function that takes one type there.
//!
//! They are told to clients, some of which send nothing for a parameter without a type. A statement is planned by the types of
//! the values that are bound.

use std::collections::BTreeMap;

use arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::types::NativeType;
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::expr::{
    Between, BinaryExpr, Case, InList, InSubquery, Like, Placeholder, ScalarFunction,
};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Operator, TypeSignature, TypeSignatureClass};

use super::note_type;

/// The types that the places of each parameter tell.
pub(super) type ToldTypes = BTreeMap<String, Vec<DataType>>;

/// Functions whose result is one of their arguments, which are of one type.
const CHOOSING_FUNCTIONS: [&str; 6] = ["coalesce", "greatest", "ifnull", "least", "nullif", "nvl"];

/// Returns what the places of the parameters tell that have no type.
pub(super) fn told_types(plan: &LogicalPlan) -> DataFusionResult<ToldTypes> {
    let mut told = ToldTypes::new();
    plan.apply_with_subqueries(|node| {
        note_in_node(node, &mut told)?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(told)
}

fn note_in_node(node: &LogicalPlan, told: &mut ToldTypes) -> DataFusionResult<()> {
    match node {
        LogicalPlan::Filter(filter) => note_type(&filter.predicate, &DataType::Boolean, told),
        LogicalPlan::Union(union) => {
            for input in &union.inputs {
                let LogicalPlan::Projection(projection) = input.as_ref() else { continue };
                for (value, field) in projection.expr.iter().zip(union.schema.fields()) {
                    if *field.data_type() != DataType::Null {
                        note_type(value, field.data_type(), told);
                    }
                }
            }
        }
        _ => {}
    }
    let mut has_open = false;
    node.apply_expressions(|expr| {
        has_open |= expr.exists(|part| Ok(is_open(part)))?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    if !has_open {
        return Ok(());
    }
    let schema = merge_schema(&node.inputs());
    node.apply_expressions(|expr| {
        expr.apply(|part| {
            note_in_expr(part, &schema, told);
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(())
}

fn is_open(expr: &Expr) -> bool {
    matches!(expr, Expr::Placeholder(Placeholder { field: None, .. }))
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
                note_type(left, &DataType::Boolean, told);
                note_type(right, &DataType::Boolean, told);
            }
            _ => {}
        },
        Expr::Not(condition)
        | Expr::IsTrue(condition)
        | Expr::IsFalse(condition)
        | Expr::IsUnknown(condition)
        | Expr::IsNotTrue(condition)
        | Expr::IsNotFalse(condition)
        | Expr::IsNotUnknown(condition) => note_type(condition, &DataType::Boolean, told),
        Expr::Between(Between { expr, low, high, .. }) => {
            note_peers(&[expr.as_ref(), low.as_ref(), high.as_ref()], schema, told);
        }
        Expr::InList(InList { expr, list, .. }) => {
            let peers: Vec<&Expr> = list.iter().chain([expr.as_ref()]).collect();
            note_peers(&peers, schema, told);
        }
        Expr::InSubquery(InSubquery { expr, subquery, .. }) => {
            if let Some(field) = subquery.subquery.schema().fields().first()
                && *field.data_type() != DataType::Null
            {
                note_type(expr, field.data_type(), told);
            }
        }
        Expr::Like(Like { expr, pattern, .. }) | Expr::SimilarTo(Like { expr, pattern, .. }) => {
            note_type(expr, &DataType::Utf8, told);
            note_type(pattern, &DataType::Utf8, told);
        }
        Expr::Case(Case { expr, when_then_expr, else_expr }) => {
            let whens = when_then_expr.iter().map(|(when, _)| when.as_ref());
            match expr {
                Some(compared) => {
                    let peers: Vec<&Expr> = whens.chain([compared.as_ref()]).collect();
                    note_peers(&peers, schema, told);
                }
                None => whens.for_each(|condition| note_type(condition, &DataType::Boolean, told)),
            }
            let results = when_then_expr.iter().map(|(_, then)| then.as_ref());
            let results: Vec<&Expr> = results.chain(else_expr.iter().map(|otherwise| otherwise.as_ref())).collect();
            note_peers(&results, schema, told);
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) => {
            if CHOOSING_FUNCTIONS.contains(&func.name()) {
                let peers: Vec<&Expr> = args.iter().collect();
                return note_peers(&peers, schema, told);
            }
            for (at, argument) in args.iter().enumerate() {
                if is_open(argument)
                    && let Some(data_type) = argument_type(&func.signature().type_signature, args.len(), at)
                {
                    note_type(argument, &data_type, told);
                }
            }
        }
        _ => {}
    }
}

/// Notes that the parameters among `peers` are what the others are, where these are of one type.
fn note_peers(peers: &[&Expr], schema: &DFSchema, told: &mut ToldTypes) {
    if !peers.iter().any(|peer| is_open(peer)) {
        return;
    }
    let types = peers.iter().filter(|peer| !is_open(peer)).filter_map(|peer| peer.get_type(schema).ok());
    let mut types = types.filter(|data_type| *data_type != DataType::Null);
    let Some(first) = types.next() else { return };
    if types.all(|data_type| data_type == first) {
        peers.iter().for_each(|peer| note_type(peer, &first, told));
    }
}

/// Returns the type that a function of so many arguments takes in one place; `None` where it takes several.
fn argument_type(signature: &TypeSignature, count: usize, at: usize) -> Option<DataType> {
    match signature {
        TypeSignature::String(length) if *length == count => Some(DataType::Utf8),
        TypeSignature::Exact(types) if types.len() == count => types.get(at).cloned(),
        TypeSignature::Uniform(length, types) if *length == count => match types.as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        },
        TypeSignature::Coercible(coercions) if coercions.len() == count => match coercions.get(at)?.desired_type() {
            TypeSignatureClass::Native(native) => match native.native() {
                NativeType::Boolean => Some(DataType::Boolean),
                NativeType::Int64 => Some(DataType::Int64),
                NativeType::Float64 => Some(DataType::Float64),
                NativeType::String => Some(DataType::Utf8),
                _ => None,
            },
            TypeSignatureClass::Integer => Some(DataType::Int64),
            _ => None,
        },
        TypeSignature::OneOf(signatures) => {
            let mut fitting = signatures.iter().filter(|signature| takes(signature, count));
            let first = argument_type(fitting.next()?, count, at)?;
            fitting.all(|signature| argument_type(signature, count, at).as_ref() == Some(&first)).then_some(first)
        }
        _ => None,
    }
}

/// Whether a function may have so many arguments, as far as its signature says.
fn takes(signature: &TypeSignature, count: usize) -> bool {
    match signature {
        TypeSignature::String(length) | TypeSignature::Uniform(length, _) => *length == count,
        TypeSignature::Exact(types) => types.len() == count,
        TypeSignature::Coercible(coercions) => coercions.len() == count,
        TypeSignature::Numeric(length) | TypeSignature::Any(length) | TypeSignature::Comparable(length) => {
            *length == count
        }
        _ => true,
    }
}
