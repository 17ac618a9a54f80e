//! Which columns of text hold JSON, and which UUIDs. To SQL they are text; KQL reads the first as dynamic values, and what is
//! written to the others is checked. A column holds one of them where CREATE TABLE says so, where a call that makes it made it, and
//! where a query takes it as it is from a column that does.

use std::cell::Cell;
use std::sync::Arc;

use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{Distinct, Expr, JoinType, LogicalPlan, TableScan, TableSource};
use datafusion::sql::sqlparser::ast;
use querent_catalog::ColumnInfo;

use super::catalog_table::CatalogTable;
use super::function_forms::makes_json;
use super::sql_types::is_uuid_type;
use super::syntax::folded_name;
use crate::functions::{TO_UUID, TRY_TO_UUID};

/// The functions that give one of their arguments.
pub(super) const CHOOSING: [&str; 4] = ["coalesce", "greatest", "least", "nvl"];
/// The functions that give their first argument, of one row or another.
const OF_FIRST: [&str; 8] = ["nullif", "min", "max", "first_value", "last_value", "nth_value", "mode", "single_value"];
/// The same, with a value behind it for rows that are not there.
const OF_OTHER_ROWS: [&str; 2] = ["lag", "lead"];

/// The most values that are looked at to know what one is.
const MOST_STEPS: u32 = 10_000;

/// What a column of text holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum TextKind {
    Json,
    Uuid,
}

impl TextKind {
    fn is_held_by(self, column: &ColumnInfo) -> bool {
        match self {
            Self::Json => column.is_json,
            Self::Uuid => column.is_uuid,
        }
    }

    fn is_made_by(self, function: &str) -> bool {
        match self {
            Self::Json => makes_json(function),
            Self::Uuid => matches!(function, TO_UUID | TRY_TO_UUID | "uuid"),
        }
    }
}

/// The names of columns of text that hold something.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TextColumns {
    /// Those with JSON.
    pub(crate) json: Vec<String>,
    /// Those with UUIDs.
    pub(crate) uuids: Vec<String>,
}

impl TextColumns {
    /// Returns the columns that CREATE TABLE declares; `None` where the statement's query says what the columns are.
    pub(super) fn declared(table: &ast::CreateTable) -> Option<Self> {
        let of_type = |is_it: fn(&ast::DataType) -> bool| -> Vec<String> {
            let columns = table.columns.iter().filter(|column| is_it(&column.data_type));
            columns.map(|column| folded_name(&column.name)).collect()
        };
        (!table.columns.is_empty()).then(|| Self { json: of_type(is_json_type), uuids: of_type(is_uuid_type) })
    }

    /// Returns those of a plan's columns.
    pub(super) fn of_plan(plan: &LogicalPlan) -> Self {
        Self { json: columns_of(plan, TextKind::Json), uuids: columns_of(plan, TextKind::Uuid) }
    }

    /// Returns those of a table or of a view.
    pub(crate) fn behind(source: &Arc<dyn TableSource>) -> Self {
        Self { json: columns_behind(source, TextKind::Json), uuids: columns_behind(source, TextKind::Uuid) }
    }
}

/// Whether a type is JSON.
pub(super) fn is_json_type(data_type: &ast::DataType) -> bool {
    matches!(data_type, ast::DataType::JSON | ast::DataType::JSONB)
}

fn columns_of(plan: &LogicalPlan, kind: TextKind) -> Vec<String> {
    let fields = plan.schema().fields().iter().enumerate();
    fields.filter(|(index, _)| holds(plan, *index, kind)).map(|(_, field)| field.name().clone()).collect()
}

fn columns_behind(source: &Arc<dyn TableSource>, kind: TextKind) -> Vec<String> {
    match (source.get_logical_plan(), CatalogTable::resolved_behind(source)) {
        (_, Some(table)) if table.info.columns.iter().any(|column| kind.is_held_by(column)) => {
            let columns = table.info.columns.iter().filter(|column| kind.is_held_by(column));
            columns.map(|column| column.name.clone()).collect()
        }
        (Some(plan), _) => columns_of(&plan, kind),
        (None, _) => Vec::new(),
    }
}

/// Returns whether a value is known to be of a kind, by the plans that it is computed over.
pub(super) fn is_of_kind(expr: &Expr, inputs: &[&LogicalPlan], kind: TextKind) -> bool {
    KindSearch::of(kind).is_of_kind(expr, inputs)
}

/// Returns whether a column of a plan is known to be of a kind.
pub(super) fn holds(plan: &LogicalPlan, index: usize, kind: TextKind) -> bool {
    KindSearch::of(kind).holds(plan, index)
}

/// Returns whether a value is null as it is written.
pub(super) fn is_null_value(value: &Expr) -> bool {
    match value {
        Expr::Alias(alias) => is_null_value(&alias.expr),
        Expr::Cast(cast) => is_null_value(&cast.expr),
        Expr::Literal(value, _) => value.is_null(),
        _ => false,
    }
}

/// Returns whether a column of a plan is null as it is written.
pub(super) fn is_null_column(plan: &LogicalPlan, index: usize) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => match projection.expr.get(index) {
            Some(Expr::Column(column)) => {
                let below = projection.input.schema().maybe_index_of_column(column);
                below.is_some_and(|below| is_null_column(&projection.input, below))
            }
            value => value.is_some_and(is_null_value),
        },
        LogicalPlan::SubqueryAlias(alias) => is_null_column(&alias.input, index),
        _ => false,
    }
}

/// What a value is computed of, searched for values of another kind. The steps are bounded, since queries within queries that name
/// a column several times each would double them with each level.
struct KindSearch {
    kind: TextKind,
    steps: Cell<u32>,
}

impl KindSearch {
    fn of(kind: TextKind) -> Self {
        Self { kind, steps: Cell::new(MOST_STEPS) }
    }

    fn is_of_kind(&self, expr: &Expr, inputs: &[&LogicalPlan]) -> bool {
        let Some(left) = self.steps.get().checked_sub(1) else { return false };
        self.steps.set(left);
        match expr {
            Expr::Alias(alias) => self.is_of_kind(&alias.expr, inputs),
            Expr::Column(column) => inputs.iter().any(|input| {
                input.schema().maybe_index_of_column(column).is_some_and(|index| self.holds(input, index))
            }),
            Expr::ScalarFunction(call) if CHOOSING.contains(&call.func.name()) => {
                self.are_of_kind(call.args.iter(), inputs)
            }
            Expr::ScalarFunction(call) if OF_FIRST.contains(&call.func.name()) => {
                call.args.first().is_some_and(|value| self.is_of_kind(value, inputs))
            }
            Expr::ScalarFunction(call) => self.kind.is_made_by(call.func.name()),
            Expr::Case(case) => {
                let results = case.when_then_expr.iter().map(|(_, then)| then).chain(&case.else_expr);
                self.are_of_kind(results.map(AsRef::as_ref), inputs)
            }
            Expr::AggregateFunction(call) if OF_FIRST.contains(&call.func.name()) => {
                call.params.args.first().is_some_and(|value| self.is_of_kind(value, inputs))
            }
            Expr::WindowFunction(call) => {
                let (name, args) = (call.fun.name(), call.params.args.as_slice());
                let is_chosen = OF_FIRST.contains(&name) || (OF_OTHER_ROWS.contains(&name) && args.len() < 3);
                is_chosen && args.first().is_some_and(|value| self.is_of_kind(value, inputs))
            }
            Expr::ScalarSubquery(query) => self.holds(&query.subquery, 0),
            _ => false,
        }
    }

    /// Whether values are of the kind, but for nulls, and not all are null.
    fn are_of_kind<'a>(&self, values: impl Iterator<Item = &'a Expr>, inputs: &[&LogicalPlan]) -> bool {
        let mut known = values.filter(|value| !is_null_value(value)).peekable();
        known.peek().is_some() && known.all(|value| self.is_of_kind(value, inputs))
    }

    fn holds(&self, plan: &LogicalPlan, mut index: usize) -> bool {
        let mut plan = plan;
        loop {
            plan = match plan {
                LogicalPlan::Projection(projection) => {
                    let value = projection.expr.get(index);
                    return value.is_some_and(|value| self.is_of_kind(value, &[projection.input.as_ref()]));
                }
                LogicalPlan::Aggregate(aggregate) => {
                    let groups = aggregate.schema.fields().len().saturating_sub(aggregate.aggr_expr.len());
                    let value = match index.checked_sub(groups) {
                        Some(place) => aggregate.aggr_expr.get(place),
                        None => match grouping_set_to_exprlist(&aggregate.group_expr) {
                            Ok(keys) => keys.get(index).copied(),
                            Err(_) => None,
                        },
                    };
                    return value.is_some_and(|value| self.is_of_kind(value, &[aggregate.input.as_ref()]));
                }
                LogicalPlan::Filter(filter) => filter.input.as_ref(),
                LogicalPlan::Sort(sort) => sort.input.as_ref(),
                LogicalPlan::Limit(limit) => limit.input.as_ref(),
                LogicalPlan::Distinct(Distinct::All(input)) => input.as_ref(),
                LogicalPlan::Distinct(Distinct::On(rows)) => {
                    let value = rows.select_expr.get(index);
                    return value.is_some_and(|value| self.is_of_kind(value, &[rows.input.as_ref()]));
                }
                LogicalPlan::SubqueryAlias(alias) => alias.input.as_ref(),
                LogicalPlan::Subquery(query) => query.subquery.as_ref(),
                // Its columns are those of what it begins with.
                LogicalPlan::RecursiveQuery(query) => query.static_term.as_ref(),
                LogicalPlan::Window(window) => match index.checked_sub(window.input.schema().fields().len()) {
                    None => window.input.as_ref(),
                    Some(place) => {
                        let value = window.window_expr.get(place);
                        return value.is_some_and(|value| self.is_of_kind(value, &[window.input.as_ref()]));
                    }
                },
                LogicalPlan::Join(join) => {
                    let left = join.left.schema().fields().len();
                    match join.join_type {
                        JoinType::LeftSemi | JoinType::LeftAnti => join.left.as_ref(),
                        JoinType::RightSemi | JoinType::RightAnti => join.right.as_ref(),
                        _ if index < left => join.left.as_ref(),
                        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => {
                            index -= left;
                            join.right.as_ref()
                        }
                        JoinType::LeftMark | JoinType::RightMark => return false,
                    }
                }
                LogicalPlan::Union(union) => {
                    let mut known = union.inputs.iter().filter(|input| !is_null_column(input, index)).peekable();
                    return known.peek().is_some() && known.all(|input| self.holds(input, index));
                }
                LogicalPlan::TableScan(scan) => return self.is_scanned(scan, index),
                _ => return false,
            };
        }
    }

    fn is_scanned(&self, scan: &TableScan, index: usize) -> bool {
        let stored = scan.projection.as_ref().map_or(Some(index), |projection| projection.get(index).copied());
        let Some(stored) = stored else { return false };
        match CatalogTable::resolved_behind(&scan.source) {
            Some(table) => table.info.columns.get(stored).is_some_and(|column| self.kind.is_held_by(column)),
            None => scan.source.get_logical_plan().is_some_and(|plan| self.holds(&plan, stored)),
        }
    }
}
