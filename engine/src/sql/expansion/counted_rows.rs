//! `count(t.*)` and `count(t)` count the rows of a relation. Where an outer join has nulls in the place of a row, neither the
//! planner's star nor a structure of nulls tells that there is none: such counts are found here, and refused.

use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, JoinOperator, ObjectNamePart, Select, SelectItem,
    TableFactor, TableWithJoins,
};

use crate::error::EngineError;
use crate::identifiers::same_name;
use crate::sql::syntax::{any_own_expr, relation_name};

/// A count of the rows of a relation that an outer join may leave out.
pub(super) struct UncertainCount {
    pub(super) relation: String,
    /// Whether it is `count(t.*)`, and not of what may be a column: `count(t)`.
    pub(super) is_star: bool,
}

impl UncertainCount {
    /// Returns the error that says what to write instead.
    pub(super) fn refused(&self) -> DataFusionError {
        let relation = &self.relation;
        let error = EngineError::Unsupported {
            what: format!("a count of the rows of `{relation}`, which an outer join may leave out,"),
            hint: format!("count a column of it that is never null: count({relation}.key)"),
        };
        error.into()
    }
}

/// Returns such counts in the select list and in HAVING.
pub(super) fn uncertain_counts(select: &Select) -> Vec<UncertainCount> {
    let mut optional = Vec::new();
    select.from.iter().for_each(|tables| {
        optional_relations(tables, &mut optional);
    });
    let mut counts = Vec::new();
    if optional.is_empty() {
        return counts;
    }
    let listed = select.projection.iter().filter_map(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    });
    for expr in listed.chain(&select.having) {
        any_own_expr(expr, |part| {
            if let Some((name, is_star)) = counted_relation(part)
                && optional.iter().any(|own| same_name(own, &name.value))
            {
                counts.push(UncertainCount { relation: name.value.clone(), is_star });
            }
            false
        });
    }
    counts
}

/// Adds the relations that outer joins may leave out, and returns all of these tables.
fn optional_relations(tables: &TableWithJoins, optional: &mut Vec<String>) -> Vec<String> {
    let mut all = relations_in(&tables.relation, optional);
    for join in &tables.joins {
        let joined = relations_in(&join.relation, optional);
        match &join.join_operator {
            JoinOperator::Left(_) | JoinOperator::LeftOuter(_) | JoinOperator::OuterApply => {
                optional.extend(joined.iter().cloned());
            }
            JoinOperator::Right(_) | JoinOperator::RightOuter(_) => optional.extend(all.iter().cloned()),
            JoinOperator::FullOuter(_) => optional.extend(all.iter().chain(&joined).cloned()),
            _ => {}
        }
        all.extend(joined);
    }
    all
}

fn relations_in(relation: &TableFactor, optional: &mut Vec<String>) -> Vec<String> {
    match relation {
        TableFactor::NestedJoin { table_with_joins, alias: None } => optional_relations(table_with_joins, optional),
        other => relation_name(other).into_iter().collect(),
    }
}

/// Returns the name that a `count` is of, and whether a star stands behind it.
fn counted_relation(expr: &Expr) -> Option<(&Ident, bool)> {
    let Expr::Function(function) = expr else { return None };
    let FunctionArguments::List(list) = &function.args else { return None };
    let [ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else { return None };
    let [FunctionArg::Unnamed(argument)] = list.args.as_slice() else { return None };
    if !name.value.eq_ignore_ascii_case("count") {
        return None;
    }
    match argument {
        FunctionArgExpr::QualifiedWildcard(relation) => Some((relation.0.last()?.as_ident()?, true)),
        FunctionArgExpr::Expr(Expr::Identifier(name)) => Some((name, false)),
        _ => None,
    }
}
