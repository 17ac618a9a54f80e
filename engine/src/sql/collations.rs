//! `COLLATE NOCASE` in comparisons and orders: both sides are compared in lower case, as in DuckDB. `C`, `POSIX` and `BINARY`
//! are how texts compare anyway. Elsewhere a collation would have to follow the value, and is refused.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Function, FunctionArgumentClause, FunctionArguments, ObjectName, OrderByExpr, OrderByKind,
    Query, Value, ValueWithSpan, WindowType,
};

use super::shorthand::{call, taken};
use crate::error::{EngineError, Result};

/// A collation that there is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Collation {
    /// By the bytes of a text.
    Bytes,
    /// Without regard to case.
    NoCase,
}

/// Refuses a collation that there is not. Errors: `unsupported`.
pub(super) fn check_collation(name: &ObjectName) -> Result<()> {
    collation(name).map(|_| ())
}

fn collation(name: &ObjectName) -> Result<Collation> {
    let parts = name.0.iter().map(|part| part.as_ident().map(|ident| ident.value.to_lowercase()).unwrap_or_default());
    let parts: Vec<String> = parts.collect();
    // PostgreSQL's has a schema, and DuckDB joins several.
    let own = match parts.as_slice() {
        [schema, own] if schema == "pg_catalog" => own.as_str(),
        [own] => own.as_str(),
        _ => "",
    };
    match own {
        "c" | "posix" | "binary" | "default" => Ok(Collation::Bytes),
        "nocase" => Ok(Collation::NoCase),
        _ => Err(EngineError::Unsupported {
            what: format!("COLLATE {name}"),
            hint: "there are NOCASE and C: compare lower(text), or leave it out".into(),
        }),
    }
}

/// Writes out collations in the order of a query. Errors: `unsupported`.
pub(super) fn write_out_order(query: &mut Query) -> Result<()> {
    match query.order_by.as_mut().map(|order_by| &mut order_by.kind) {
        Some(OrderByKind::Expressions(sorts)) => sorted(sorts),
        Some(OrderByKind::All(_)) | None => Ok(()),
    }
}

/// Writes out collations in an expression, before those in its parts are. Errors: `unsupported`.
pub(super) fn write_out_collations(expr: &mut Expr) -> Result<()> {
    match expr {
        Expr::BinaryOp { left, op, right } if is_comparison(op) => folded(&mut [left.as_mut(), right.as_mut()]),
        Expr::IsDistinctFrom(left, right) | Expr::IsNotDistinctFrom(left, right) => {
            folded(&mut [left.as_mut(), right.as_mut()])
        }
        Expr::Between { expr, low, high, .. } => folded(&mut [expr.as_mut(), low.as_mut(), high.as_mut()]),
        Expr::Like { expr, pattern, .. } => folded(&mut [expr.as_mut(), pattern.as_mut()]),
        Expr::InList { expr, list, .. } => {
            folded(&mut std::iter::once(expr.as_mut()).chain(list.iter_mut()).collect::<Vec<_>>())
        }
        Expr::Function(Function { args, over, within_group, .. }) => {
            if let FunctionArguments::List(list) = args {
                for clause in &mut list.clauses {
                    if let FunctionArgumentClause::OrderBy(sorts) = clause {
                        sorted(sorts)?;
                    }
                }
            }
            if let Some(WindowType::WindowSpec(window)) = over {
                sorted(&mut window.order_by)?;
            }
            sorted(within_group)
        }
        Expr::Collate { expr: value, collation: name } => match collation(name)? {
            Collation::Bytes => {
                *expr = Expr::Nested(Box::new(taken(value)));
                Ok(())
            }
            Collation::NoCase => Err(EngineError::Unsupported {
                what: "COLLATE NOCASE other than in a comparison or ORDER BY".into(),
                hint: "write lower(text)".into(),
            }),
        },
        _ => Ok(()),
    }
}

/// Returns whether an operator compares its sides by their order.
pub(super) fn is_comparison(op: &BinaryOperator) -> bool {
    matches!(
        op,
        BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::Lt
            | BinaryOperator::LtEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq
    )
}

/// Puts all sides of a comparison into lower case where one of them is collated so.
fn folded(sides: &mut [&mut Expr]) -> Result<()> {
    let mut without_case = false;
    for side in sides.iter() {
        without_case |= is_without_case(side)?;
    }
    if without_case {
        sides.iter_mut().for_each(|side| **side = lowered(uncollated(taken(side))));
    }
    Ok(())
}

fn sorted(sorts: &mut [OrderByExpr]) -> Result<()> {
    for sort in sorts {
        if !is_without_case(&sort.expr)? {
            continue;
        }
        let value = uncollated(taken(&mut sort.expr));
        if matches!(&value, Expr::Value(ValueWithSpan { value: Value::Number(..), .. })) {
            return Err(EngineError::Unsupported {
                what: "COLLATE of a column's number".into(),
                hint: "write the column's name".into(),
            });
        }
        sort.expr = lowered(value);
    }
    Ok(())
}

fn is_without_case(expr: &Expr) -> Result<bool> {
    match expr {
        Expr::Nested(inner) => is_without_case(inner),
        Expr::Collate { collation: name, .. } => Ok(collation(name)? == Collation::NoCase),
        _ => Ok(false),
    }
}

fn lowered(value: Expr) -> Expr {
    match value {
        // A null has no case.
        Expr::Value(ValueWithSpan { value: Value::Null, .. }) => value,
        value => call("lower", vec![value]),
    }
}

fn uncollated(expr: Expr) -> Expr {
    match expr {
        Expr::Collate { expr, .. } => *expr,
        Expr::Nested(inner) if matches!(inner.as_ref(), Expr::Collate { .. } | Expr::Nested(_)) => uncollated(*inner),
        other => other,
    }
}
