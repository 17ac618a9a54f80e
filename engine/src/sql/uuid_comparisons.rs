//! What is compared with UUIDs is read as one, as PostgreSQL and DuckDB do: `A0EE...` and `a0ee...` are two texts, and one UUID.
//! UUIDs are columns that are declared so, casts to UUID, and what a query takes of them as it is. Where a text stands beside a
//! UUID as another value of one column, as in UNION and `coalesce`, it is written as a UUID if it is one, and stays what it is if not.
//! Lists and structures that are written out are compared part by part, and lists of texts beside UUIDs and lists of them are read.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::logical_expr::expr::{Case, Cast, Exists, InList, InSubquery, ScalarFunction, SetComparison};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Between, BinaryExpr, Expr, ExprSchemable, Join, LogicalPlan, Projection, Subquery, Union, lit,
};

use super::catalog_table::CatalogTable;
use super::elapsed_times::compares;
use super::field_access::own_call;
use super::in_subqueries::with_values;
use super::json_columns::{CHOOSING, TextKind, holds, is_list_of_kind, is_null_column, is_null_value, is_of_kind};
use super::list_casts::is_list;
use super::plan_nodes::any_node;
use super::row_values::STRUCT;
use crate::error::EngineError;
use crate::functions::{TO_UUID, TO_UUID_LIST, TRY_TO_UUID, no_uuid, uuid_text};

/// The functions that look for a value in a list.
const OF_ITEM: [&str; 5] = ["array_has", "array_position", "array_positions", "array_remove", "array_remove_all"];
/// The functions that compare the items of lists.
const OF_LISTS: [&str; 4] = ["array_has_any", "array_has_all", "array_except", "array_intersect"];
const MAKE_ARRAY: &str = "make_array";
const NAMED_STRUCT: &str = "named_struct";

/// Returns the plan with what is compared with UUIDs as UUIDs. Errors: `invalid_value` of a literal that is none.
pub(super) fn with_compared_uuids(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !has_uuids(&plan)? {
        return Ok(plan);
    }
    plan.transform_up_with_subqueries(|node| {
        let below: Vec<LogicalPlan> = node.inputs().into_iter().cloned().collect();
        let inputs: Vec<&LogicalPlan> = below.iter().collect();
        let rows = RowOperands { schema: merge_schema(&inputs), inputs };
        // What is above refers to an expression by its name.
        let names = NamePreserver::new(&node);
        let node = node.map_expressions(|expr| {
            let name = names.save(&expr);
            let with_uuids = expr.transform_up(|expr| rows.compared(expr))?;
            Ok(with_uuids.update_data(|expr| name.restore(expr)))
        })?;
        let node = node.transform_data(with_joined_uuids)?.transform_data(with_united_uuids)?;
        match node.transformed {
            true => node.map_data(LogicalPlan::recompute_schema),
            false => Ok(node),
        }
    })
    .data()
}

fn has_uuids(plan: &LogicalPlan) -> Result<bool> {
    any_node(plan, |node| {
        if let LogicalPlan::TableScan(scan) = node {
            let has_columns = match (CatalogTable::resolved_behind(&scan.source), scan.source.get_logical_plan()) {
                (Some(table), _) => table.info.columns.iter().any(|column| column.is_uuid),
                (None, Some(plan)) => has_uuids(&plan)?,
                (None, None) => false,
            };
            if has_columns {
                return Ok(true);
            }
        }
        let mut is_found = false;
        node.apply_expressions(|expr| {
            is_found = expr.exists(|expr| Ok(is_cast(expr)))?;
            Ok(if is_found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        Ok(is_found)
    })
}

fn is_cast(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if matches!(call.func.name(), TO_UUID | TO_UUID_LIST | TRY_TO_UUID))
}

/// The rows that expressions are computed over.
struct RowOperands<'a> {
    inputs: Vec<&'a LogicalPlan>,
    schema: DFSchema,
}

impl RowOperands<'_> {
    fn is_uuid(&self, expr: &Expr) -> bool {
        is_of_kind(expr, &self.inputs, TextKind::Uuid)
    }

    fn is_uuid_list(&self, expr: &Expr) -> bool {
        expr.get_type(&self.schema).is_ok_and(|data_type| is_list(&data_type))
            && is_list_of_kind(expr, &self.inputs, TextKind::Uuid)
    }

    fn compared(&self, expr: Expr) -> Result<Transformed<Expr>> {
        let is_uuid = |expr: &Expr| self.is_uuid(expr);
        let read = |expr: Box<Expr>| -> Result<Box<Expr>> { Ok(Box::new(self.read(*expr)?)) };
        Ok(match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(op) => {
                let pair = self.compared_pair(*left, *right)?;
                pair.update_data(|(left, right)| Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))))
            }
            Expr::Between(Between { expr, negated, low, high })
                if is_uuid(&expr) || is_uuid(&low) || is_uuid(&high) =>
            {
                Transformed::yes(Expr::Between(Between::new(read(expr)?, negated, read(low)?, read(high)?)))
            }
            Expr::InList(InList { expr, list, negated }) if is_uuid(&expr) || list.iter().any(is_uuid) => {
                let list = list.into_iter().map(|item| self.read(item)).collect::<Result<_>>()?;
                Transformed::yes(Expr::InList(InList::new(read(expr)?, list, negated)))
            }
            Expr::InList(InList { expr, list, negated }) if values_of_row(&expr).is_some() => {
                let items = list.into_iter().map(|item| Ok(self.compared_pair(expr.as_ref().clone(), item)?.data.1));
                let items = items.collect::<Result<_>>()?;
                Transformed::yes(Expr::InList(InList::new(expr, items, negated)))
            }
            Expr::Case(Case { expr: Some(value), when_then_expr, else_expr })
                if is_uuid(&value) || when_then_expr.iter().any(|(when, _)| is_uuid(when)) =>
            {
                let cases = when_then_expr.into_iter().map(|(when, then)| Ok((read(when)?, then)));
                let when_then_expr = cases.collect::<Result<_>>()?;
                self.with_uuid_results(Case { expr: Some(read(value)?), when_then_expr, else_expr })?
            }
            Expr::Case(case) => self.with_uuid_results(case)?,
            Expr::ScalarFunction(ScalarFunction { func, args })
                if (CHOOSING.contains(&func.name()) || func.name() == "nullif") && args.iter().any(is_uuid) =>
            {
                let args = args.into_iter().map(|arg| self.read_where_one(arg)).collect::<Result<_>>()?;
                Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args }))
            }
            Expr::ScalarFunction(ScalarFunction { func, mut args })
                if args.len() > 1 && (OF_ITEM.contains(&func.name()) || OF_LISTS.contains(&func.name())) =>
            {
                let is_of_lists = OF_LISTS.contains(&func.name());
                let are_uuids = (
                    self.is_uuid_list(&args[0]),
                    if is_of_lists { self.is_uuid_list(&args[1]) } else { is_uuid(&args[1]) },
                );
                let other = match are_uuids {
                    (true, false) => 1,
                    (false, true) => 0,
                    _ => return Ok(Transformed::no(Expr::ScalarFunction(ScalarFunction { func, args }))),
                };
                let value = std::mem::replace(&mut args[other], lit(false));
                args[other] = if is_of_lists || other == 0 { self.read_list(value)? } else { self.read(value)? };
                Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args }))
            }
            Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                let (expr, subquery) = self.compared_query(expr, subquery)?;
                Transformed::yes(Expr::InSubquery(InSubquery { expr, subquery, negated }))
            }
            Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
                let (expr, subquery) = self.compared_query(expr, subquery)?;
                Transformed::yes(Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }))
            }
            Expr::Exists(Exists { subquery, negated }) => {
                Transformed::yes(Expr::Exists(Exists { subquery: self.with_outer(subquery)?, negated }))
            }
            Expr::ScalarSubquery(subquery) => Transformed::yes(Expr::ScalarSubquery(self.with_outer(subquery)?)),
            other => Transformed::no(other),
        })
    }

    /// Returns two values that are compared, or the rows of such values.
    fn compared_pair(&self, left: Expr, right: Expr) -> Result<Transformed<(Expr, Expr)>> {
        match (self.is_uuid(&left), self.is_uuid(&right)) {
            (true, false) => return Ok(Transformed::yes((left, self.read(right)?))),
            (false, true) => return Ok(Transformed::yes((self.read(left)?, right))),
            (true, true) => return Ok(Transformed::no((left, right))),
            (false, false) => {}
        }
        match (self.is_uuid_list(&left), self.is_uuid_list(&right)) {
            (true, false) => return Ok(Transformed::yes((left, self.read_list(right)?))),
            (false, true) => return Ok(Transformed::yes((self.read_list(left)?, right))),
            (true, true) => return Ok(Transformed::no((left, right))),
            (false, false) => {}
        }
        let widths = (values_of_row(&left).map(<[Expr]>::len), values_of_row(&right).map(<[Expr]>::len));
        match (left, right) {
            (Expr::ScalarFunction(mut left), Expr::ScalarFunction(mut right))
                if widths.0.is_some() && widths.0 == widths.1 && left.func.name() == right.func.name() =>
            {
                let values = std::mem::take(&mut left.args).into_iter().zip(std::mem::take(&mut right.args));
                let mut changed = false;
                for (one, other) in values {
                    let pair = self.compared_pair(one, other)?;
                    changed |= pair.transformed;
                    left.args.push(pair.data.0);
                    right.args.push(pair.data.1);
                }
                let rows = (Expr::ScalarFunction(left), Expr::ScalarFunction(right));
                Ok(Transformed::new_transformed(rows, changed))
            }
            pair => Ok(Transformed::no(pair)),
        }
    }

    /// Returns a value and the query with whose values it is compared.
    fn compared_query(&self, expr: Box<Expr>, subquery: Subquery) -> Result<(Box<Expr>, Subquery)> {
        let subquery = self.with_outer(subquery)?;
        match (self.is_uuid(&expr), holds(&subquery.subquery, 0, TextKind::Uuid)) {
            (true, false) => {
                let values = subquery.subquery.schema().fields().first();
                let is_text = values.is_some_and(|values| values.data_type().is_string());
                let subquery = match is_text {
                    true => with_values(subquery, |value| own_call(TO_UUID, vec![value]))?,
                    false => subquery,
                };
                Ok((expr, subquery))
            }
            (false, true) => Ok((Box::new(self.read(*expr)?), subquery)),
            _ => Ok((expr, subquery)),
        }
    }

    /// Returns a query with what it compares with values of these rows as UUIDs, where one of both is.
    fn with_outer(&self, subquery: Subquery) -> Result<Subquery> {
        if subquery.outer_ref_columns.is_empty() {
            return Ok(subquery);
        }
        let plan = self.with_outer_in(subquery.subquery.as_ref().clone())?;
        Ok(subquery.with_plan(Arc::new(plan)))
    }

    fn with_outer_in(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(|node| {
            let below: Vec<LogicalPlan> = node.inputs().into_iter().cloned().collect();
            let inputs: Vec<&LogicalPlan> = below.iter().collect();
            let inner = RowOperands { schema: merge_schema(&inputs), inputs };
            let names = NamePreserver::new(&node);
            node.map_expressions(|expr| {
                let name = names.save(&expr);
                let compared = expr.transform_up(|expr| match expr {
                    Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(op) => {
                        let (left, right) = match (self.is_outer_uuid(&left), self.is_outer_uuid(&right)) {
                            (Some(true), None) => (left, Box::new(inner.read(*right)?)),
                            (None, Some(true)) => (Box::new(inner.read(*left)?), right),
                            (Some(false), None) if inner.is_uuid(&right) => (outer_text(left)?, right),
                            (None, Some(false)) if inner.is_uuid(&left) => (left, outer_text(right)?),
                            (Some(true), Some(false)) => (left, outer_text(right)?),
                            (Some(false), Some(true)) => (outer_text(left)?, right),
                            _ => (left, right),
                        };
                        Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(left, op, right))))
                    }
                    other => Ok(Transformed::no(other)),
                })?;
                Ok(compared.update_data(|expr| name.restore(expr)))
            })
        })
        .data()
    }

    /// Returns whether what a query names of these rows is a UUID; `None` where it names nothing of them.
    fn is_outer_uuid(&self, expr: &Expr) -> Option<bool> {
        let Expr::OuterReferenceColumn(_, column) = expr else { return None };
        self.schema.maybe_index_of_column(column)?;
        Some(self.is_uuid(&Expr::Column(column.clone())))
    }

    /// Returns a text that is compared with a UUID as one; what is no text, and is one already, as it is.
    fn read(&self, expr: Expr) -> Result<Expr> {
        if let Some(text) = expr.as_literal().and_then(|value| value.try_as_str().flatten()) {
            return match uuid_text(text) {
                Some(id) => Ok(lit(id)),
                None => Err(EngineError::InvalidValue { message: no_uuid(text) }.into()),
            };
        }
        if matches!(expr, Expr::Placeholder(_)) {
            return own_call(TO_UUID, vec![Expr::Cast(Cast::new(Box::new(expr), DataType::Utf8))]);
        }
        let is_text = expr.get_type(&self.schema).is_ok_and(|data_type| data_type.is_string());
        // What a value of the rows further out is, is known there.
        let is_outer = expr.exists(|part| Ok(matches!(part, Expr::OuterReferenceColumn(..))))?;
        match is_text && !is_outer && !self.is_uuid(&expr) {
            true => own_call(TO_UUID, vec![expr]),
            false => Ok(expr),
        }
    }

    /// Returns a list of texts that is compared with UUIDs as a list of them; what is none, and is one already, as it is.
    fn read_list(&self, expr: Expr) -> Result<Expr> {
        match expr {
            Expr::ScalarFunction(ScalarFunction { func, args }) if func.name() == MAKE_ARRAY => {
                let args = args.into_iter().map(|item| self.read(item)).collect::<Result<_>>()?;
                Ok(Expr::ScalarFunction(ScalarFunction { func, args }))
            }
            Expr::Placeholder(_) => {
                let texts = DataType::new_list(DataType::Utf8, true);
                own_call(TO_UUID_LIST, vec![Expr::Cast(Cast::new(Box::new(expr), texts))])
            }
            other => {
                let is_of_texts = match other.get_type(&self.schema) {
                    Ok(DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _)) => {
                        item.data_type().is_string()
                    }
                    _ => false,
                };
                let is_outer = other.exists(|part| Ok(matches!(part, Expr::OuterReferenceColumn(..))))?;
                match is_of_texts && !is_outer && !self.is_uuid_list(&other) {
                    true => own_call(TO_UUID_LIST, vec![other]),
                    false => Ok(other),
                }
            }
        }
    }

    /// Returns a text that stands beside UUIDs as one if it is one.
    fn read_where_one(&self, expr: Expr) -> Result<Expr> {
        let Some(found) = expr.get_type(&self.schema).ok().filter(DataType::is_string) else { return Ok(expr) };
        if self.is_uuid(&expr) || is_null_value(&expr) {
            return Ok(expr);
        }
        if let Some(text) = expr.as_literal().and_then(|value| value.try_as_str().flatten()) {
            return Ok(uuid_text(text).map_or(expr.clone(), lit));
        }
        let read = own_call(TRY_TO_UUID, vec![expr.clone()])?;
        Ok(coalesce(vec![Expr::Cast(Cast::new(Box::new(read), found)), expr]))
    }

    /// Returns a CASE some of whose results are UUIDs with the others as such where they are.
    fn with_uuid_results(&self, case: Case) -> Result<Transformed<Expr>> {
        let mut results = case.when_then_expr.iter().map(|(_, then)| then).chain(&case.else_expr);
        if !results.any(|result| self.is_uuid(result)) {
            return Ok(Transformed::yes(Expr::Case(case)));
        }
        let read = |result: Box<Expr>| self.read_where_one(*result).map(Box::new);
        let cases = case.when_then_expr.into_iter().map(|(when, then)| Ok((when, read(then)?)));
        let when_then_expr = cases.collect::<Result<_>>()?;
        let else_expr = case.else_expr.map(read).transpose()?;
        Ok(Transformed::yes(Expr::Case(Case { expr: case.expr, when_then_expr, else_expr })))
    }
}

/// Returns a text of the rows further out as a UUID.
fn outer_text(expr: Box<Expr>) -> Result<Box<Expr>> {
    match expr.as_ref() {
        Expr::OuterReferenceColumn(field, _) if field.data_type().is_string() => {
            own_call(TO_UUID, vec![*expr]).map(Box::new)
        }
        _ => Ok(expr),
    }
}

/// Returns the values of a row, a list or a structure that is written out, of a structure with the names of its fields.
fn values_of_row(expr: &Expr) -> Option<&[Expr]> {
    match expr {
        Expr::ScalarFunction(call) if matches!(call.func.name(), STRUCT | MAKE_ARRAY | NAMED_STRUCT) => {
            Some(&call.args)
        }
        _ => None,
    }
}

/// Reads the keys of a join whose others are UUIDs, and what a query beside a relation compares with its UUIDs.
fn with_joined_uuids(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Join(mut join) = node else { return Ok(Transformed::no(node)) };
    let (left, right) = (Arc::clone(&join.left), Arc::clone(&join.right));
    let left_rows = RowOperands { schema: DFSchema::clone(left.schema()), inputs: vec![left.as_ref()] };
    let right_rows = RowOperands { schema: DFSchema::clone(right.schema()), inputs: vec![right.as_ref()] };
    let mut changed = false;
    let mut on = Vec::with_capacity(join.on.len());
    for (one, other) in std::mem::take(&mut join.on) {
        let are_uuids = (left_rows.is_uuid(&one), right_rows.is_uuid(&other));
        changed |= are_uuids.0 != are_uuids.1;
        on.push(match are_uuids {
            (true, false) => (one, right_rows.read(other)?),
            (false, true) => (left_rows.read(one)?, other),
            _ => (one, other),
        });
    }
    let is_lateral = any_node(&right, |node| {
        let LogicalPlan::Subquery(query) = node else { return Ok(false) };
        Ok(query.outer_ref_columns.iter().any(|outer| left_rows.is_outer_uuid(outer).is_some()))
    })?;
    if is_lateral {
        join.right = Arc::new(left_rows.with_outer_in(right.as_ref().clone())?);
        changed = true;
    }
    Ok(Transformed::new_transformed(LogicalPlan::Join(Join { on, ..join }), changed))
}

/// Reads the texts of a union's columns that hold UUIDs in others of its queries.
fn with_united_uuids(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Union(Union { inputs, schema }) = node else { return Ok(Transformed::no(node)) };
    let is_mixed = |index: &usize| {
        let is_uuid = |input: &Arc<LogicalPlan>| holds(input, *index, TextKind::Uuid);
        inputs.iter().any(is_uuid) && !inputs.iter().all(|input| is_uuid(input) || is_null_column(input, *index))
    };
    let mixed: Vec<usize> = (0..schema.fields().len()).filter(is_mixed).collect();
    if mixed.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Union(Union { inputs, schema })));
    }
    let read = |input: Arc<LogicalPlan>| -> Result<Arc<LogicalPlan>> {
        let rows = RowOperands { schema: DFSchema::clone(input.schema()), inputs: vec![input.as_ref()] };
        let columns = input.schema().columns().into_iter().enumerate().map(|(index, column)| {
            if !mixed.contains(&index) {
                return Ok(Expr::Column(column));
            }
            let Column { relation, name, spans: _ } = column.clone();
            match rows.read_where_one(Expr::Column(column))? {
                same @ Expr::Column(_) => Ok(same),
                text => Ok(text.alias_qualified(relation, name)),
            }
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(columns, Arc::clone(&input))?)))
    };
    let inputs = inputs.into_iter().map(read).collect::<Result<_>>()?;
    Ok(Transformed::yes(LogicalPlan::Union(Union { inputs, schema })))
}
