//! Which columns of text hold JSON, and which UUIDs. To SQL they are text; KQL reads the first as dynamic values, and what is
//! written to the others is checked. A column holds one of them where CREATE TABLE says so, where a call that makes it made it, and
//! where a query takes it as it is from a column that does, also by way of a list or a structure that the query makes.

use std::cell::Cell;
use std::sync::Arc;

use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{ColumnUnnestList, Distinct, Expr, JoinType, LogicalPlan, TableScan, TableSource};
use datafusion::sql::sqlparser::ast;
use querent_catalog::ColumnInfo;

use super::catalog_table::CatalogTable;
use super::function_forms::makes_json;
use super::row_values::STRUCT;
use super::sql_types::is_uuid_type;
use super::syntax::folded_name;
use crate::functions::{STEPPED_SLICE, TO_UUID, TO_UUID_LIST, TRY_TO_UUID};

/// The functions that give one of their arguments.
pub(super) const CHOOSING: [&str; 4] = ["coalesce", "greatest", "least", "nvl"];
/// The functions that give their first argument, of one row or another.
const OF_FIRST: [&str; 8] = ["nullif", "min", "max", "first_value", "last_value", "nth_value", "mode", "single_value"];
/// The same, with a value behind it for rows that are not there.
const OF_OTHER_ROWS: [&str; 2] = ["lag", "lead"];

/// The functions that give items of their first argument, a list, as a list.
const OF_ITEMS: [&str; 10] = [
    "array_sort",
    "array_distinct",
    "array_reverse",
    "array_slice",
    STEPPED_SLICE,
    "trim_array",
    "array_compact",
    "array_remove",
    "array_remove_all",
    "array_filter",
];

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

    fn is_made_by(self, function: &str, within: &[NestedStep]) -> bool {
        match (self, within) {
            (Self::Json, []) => makes_json(function),
            (Self::Uuid, []) => matches!(function, TO_UUID | TRY_TO_UUID | "uuid"),
            (Self::Uuid, [NestedStep::Item]) => function == TO_UUID_LIST,
            _ => false,
        }
    }
}

/// From a value to one within it.
#[derive(Debug, Clone, PartialEq)]
enum NestedStep {
    /// To the items of a list.
    Item,
    /// To a field of a structure, by its name.
    Field(String),
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
    KindSearch::of(kind).is_of_kind(expr, inputs, &[])
}

/// Returns whether a value is known to be a list of such values.
pub(super) fn is_list_of_kind(expr: &Expr, inputs: &[&LogicalPlan], kind: TextKind) -> bool {
    KindSearch::of(kind).is_of_kind(expr, inputs, &[NestedStep::Item])
}

/// Returns whether a column of a plan is known to be of a kind.
pub(super) fn holds(plan: &LogicalPlan, index: usize, kind: TextKind) -> bool {
    KindSearch::of(kind).holds(plan, index, &[])
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

    /// Whether what is within a value, as far as the steps go, is of the kind.
    fn is_of_kind(&self, expr: &Expr, inputs: &[&LogicalPlan], within: &[NestedStep]) -> bool {
        let Some(left) = self.steps.get().checked_sub(1) else { return false };
        self.steps.set(left);
        let is_of_kind = |value: &Expr| self.is_of_kind(value, inputs, within);
        match expr {
            Expr::Alias(alias) => is_of_kind(&alias.expr),
            Expr::Column(column) => inputs.iter().any(|input| {
                input.schema().maybe_index_of_column(column).is_some_and(|index| self.holds(input, index, within))
            }),
            Expr::ScalarFunction(call) => self.is_made_of_kind(call.func.name(), &call.args, inputs, within),
            Expr::Case(case) => {
                let results = case.when_then_expr.iter().map(|(_, then)| then).chain(&case.else_expr);
                self.are_of_kind(results.map(AsRef::as_ref), inputs, within)
            }
            Expr::AggregateFunction(call) => {
                self.is_aggregated_of_kind(call.func.name(), &call.params.args, inputs, within)
            }
            Expr::WindowFunction(call) => {
                let (name, args) = (call.fun.name(), call.params.args.as_slice());
                match OF_OTHER_ROWS.contains(&name) {
                    true => args.len() < 3 && args.first().is_some_and(is_of_kind),
                    false => self.is_aggregated_of_kind(name, args, inputs, within),
                }
            }
            Expr::ScalarSubquery(query) => self.holds(&query.subquery, 0, within),
            _ => false,
        }
    }

    fn is_made_of_kind(&self, name: &str, args: &[Expr], inputs: &[&LogicalPlan], within: &[NestedStep]) -> bool {
        let first_holds =
            |within: &[NestedStep]| args.first().is_some_and(|value| self.is_of_kind(value, inputs, within));
        let deeper = |steps: Vec<NestedStep>| first_holds(&[steps.as_slice(), within].concat());
        let named = |name: &Expr| name.as_literal().and_then(|name| name.try_as_str().flatten()).map(str::to_owned);
        match (name, within) {
            (name, _) if CHOOSING.contains(&name) => self.are_of_kind(args.iter(), inputs, within),
            (name, _) if OF_FIRST.contains(&name) => first_holds(within),
            (name, [NestedStep::Item, ..]) if OF_ITEMS.contains(&name) => first_holds(within),
            ("array_concat", [NestedStep::Item, ..]) => self.are_of_kind(args.iter(), inputs, within),
            ("make_array", [NestedStep::Item, rest @ ..]) => self.are_of_kind(args.iter(), inputs, rest),
            ("named_struct", [NestedStep::Field(field), rest @ ..]) => {
                let own = args.chunks_exact(2).find(|pair| named(&pair[0]).as_ref() == Some(field));
                own.is_some_and(|pair| self.is_of_kind(&pair[1], inputs, rest))
            }
            (STRUCT, [NestedStep::Field(field), rest @ ..]) => {
                let place = field.strip_prefix('c').and_then(|place| place.parse::<usize>().ok());
                place.and_then(|place| args.get(place)).is_some_and(|value| self.is_of_kind(value, inputs, rest))
            }
            ("array_element", _) => deeper(vec![NestedStep::Item]),
            ("get_field", _) => {
                let fields = args.iter().skip(1).map(|name| named(name).map(NestedStep::Field));
                fields.collect::<Option<Vec<_>>>().is_some_and(deeper)
            }
            (name, within) => self.kind.is_made_by(name, within),
        }
    }

    fn is_aggregated_of_kind(&self, name: &str, args: &[Expr], inputs: &[&LogicalPlan], within: &[NestedStep]) -> bool {
        let within = match (name, within) {
            ("array_agg", [NestedStep::Item, rest @ ..]) => rest,
            (name, within) if OF_FIRST.contains(&name) => within,
            _ => return false,
        };
        args.first().is_some_and(|value| self.is_of_kind(value, inputs, within))
    }

    /// Whether values are of the kind, but for nulls, and not all are null.
    fn are_of_kind<'a>(
        &self,
        values: impl Iterator<Item = &'a Expr>,
        inputs: &[&LogicalPlan],
        within: &[NestedStep],
    ) -> bool {
        let mut known = values.filter(|value| !is_null_value(value)).peekable();
        known.peek().is_some() && known.all(|value| self.is_of_kind(value, inputs, within))
    }

    fn holds(&self, plan: &LogicalPlan, mut index: usize, within: &[NestedStep]) -> bool {
        let mut plan = plan;
        loop {
            plan = match plan {
                LogicalPlan::Projection(projection) => {
                    let value = projection.expr.get(index);
                    return value.is_some_and(|value| self.is_of_kind(value, &[projection.input.as_ref()], within));
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
                    return value.is_some_and(|value| self.is_of_kind(value, &[aggregate.input.as_ref()], within));
                }
                LogicalPlan::Filter(filter) => filter.input.as_ref(),
                LogicalPlan::Sort(sort) => sort.input.as_ref(),
                LogicalPlan::Limit(limit) => limit.input.as_ref(),
                LogicalPlan::Distinct(Distinct::All(input)) => input.as_ref(),
                LogicalPlan::Distinct(Distinct::On(rows)) => {
                    let value = rows.select_expr.get(index);
                    return value.is_some_and(|value| self.is_of_kind(value, &[rows.input.as_ref()], within));
                }
                LogicalPlan::SubqueryAlias(alias) => alias.input.as_ref(),
                LogicalPlan::Subquery(query) => query.subquery.as_ref(),
                // Its columns are those of what it begins with.
                LogicalPlan::RecursiveQuery(query) => query.static_term.as_ref(),
                LogicalPlan::Window(window) => match index.checked_sub(window.input.schema().fields().len()) {
                    None => window.input.as_ref(),
                    Some(place) => {
                        let value = window.window_expr.get(place);
                        return value.is_some_and(|value| self.is_of_kind(value, &[window.input.as_ref()], within));
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
                    return known.peek().is_some() && known.all(|input| self.holds(input, index, within));
                }
                LogicalPlan::Unnest(unnest) => {
                    let Some(input) = unnest.dependency_indices.get(index).copied() else { return false };
                    let output = unnest.schema.qualified_field(index).1.name();
                    let is_own = |(list, column): &&(usize, ColumnUnnestList)| {
                        *list == input && column.output_column.name() == output
                    };
                    let depth = unnest.list_type_columns.iter().find(is_own).map_or(0, |(_, column)| column.depth);
                    let is_fields = depth == 0 && unnest.struct_type_columns.contains(&input);
                    let within = [vec![NestedStep::Item; depth].as_slice(), within].concat();
                    return !is_fields && self.holds(&unnest.input, input, &within);
                }
                LogicalPlan::TableScan(scan) => return self.is_scanned(scan, index, within),
                _ => return false,
            };
        }
    }

    fn is_scanned(&self, scan: &TableScan, index: usize, within: &[NestedStep]) -> bool {
        let stored = scan.projection.as_ref().map_or(Some(index), |projection| projection.get(index).copied());
        let Some(stored) = stored else { return false };
        match CatalogTable::resolved_behind(&scan.source) {
            Some(table) => {
                let column = table.info.columns.get(stored).filter(|_| within.is_empty());
                column.is_some_and(|column| self.kind.is_held_by(column))
            }
            None => scan.source.get_logical_plan().is_some_and(|plan| self.holds(&plan, stored, within)),
        }
    }
}
