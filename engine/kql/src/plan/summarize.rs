//! `summarize`, and the operators built on it: `top-nested`, `top-hitters`.

use std::cell::RefCell;

use datafusion::common::{Column as PlanColumn, JoinType, NullEquality};
use datafusion::logical_expr::{Expr as PlanExpr, LogicalPlanBuilder, SortExpr, lit};

use super::columns::Assigned;
use super::relation::Groups;
use super::{Column, Relation, field_of, plain_key};
use crate::aggregates::{self, AggregateOutput};
use crate::ast::{NamedExpr, Names, SortDirection, SortKey, TopLevel};
use crate::bind::{
    Binder, Environment, ExpressionScope, Result, Typed, argument_name, given_name, invalid, null_of, too_many_names,
    unique_name,
};
use crate::span::Span;
use crate::types::KqlType;

/// Refuses an expression over aggregates that reads a column outside of them: a group has many values of it.
pub(super) fn refuse_row_column(value: &Typed, input: &Relation, span: Span) -> Result<()> {
    let read = value.expr.column_refs();
    match input.columns.iter().find(|column| read.iter().any(|it| it.name == column.field)) {
        Some(column) => invalid(span, format!("`{}` is a value of each row; put it in an aggregate", column.name)),
        None => Ok(()),
    }
}

impl<'a> Binder<'a> {
    pub(super) fn summarize(
        &mut self,
        input: Relation,
        aggregates: &'a [NamedExpr],
        by: &'a [NamedExpr],
        span: Span,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        if aggregates.is_empty() && by.is_empty() {
            return invalid(span, "`summarize` needs aggregates or `by`");
        }
        let (input, keys) = self.assigned(input, by, environment)?;
        for key in &keys {
            if key.value.kql_type == KqlType::Dynamic {
                let message = "rows cannot be grouped by a dynamic value; convert it, for example with tostring(...)";
                return invalid(key.span, message);
            }
        }
        // `*` of an aggregate leaves out the columns that are keys; one whose name a computed key has stays.
        let is_key = |column: &Column| keys.iter().any(|key| field_of(&key.value.expr) == Some(column.field.as_str()));
        let key_names: Vec<String> =
            input.columns.iter().filter(|column| is_key(column)).map(|column| column.name.clone()).collect();
        let collected = RefCell::new(Vec::new());
        let assigned = self.aggregated(&input, aggregates, &key_names, &collected, environment)?;
        let count = keys.len();
        let mut keys = self.named(keys.into_iter().chain(assigned).collect(), &input.columns)?;
        let outputs = keys.split_off(count);
        self.grouped(input, keys, collected.into_inner(), outputs)
    }

    /// Binds aggregates and expressions over them.
    pub(super) fn aggregated(
        &mut self,
        input: &Relation,
        exprs: &'a [NamedExpr],
        keys: &[String],
        collected: &RefCell<Vec<PlanExpr>>,
        environment: &Environment<'a>,
    ) -> Result<Vec<Assigned>> {
        let mut all = Vec::with_capacity(exprs.len());
        for named in exprs {
            let scope = ExpressionScope {
                aggregates: Some(collected),
                order: &input.order,
                keys,
                ..ExpressionScope::over_columns(environment, &input.columns)
            };
            let called =
                aggregates::aggregate_call(&named.expr).filter(|call| environment.find(&call.function.text).is_none());
            let Some(call) = called else {
                let before = collected.borrow().len();
                let value = self.scalar(&named.expr, &scope)?;
                if collected.borrow().len() == before && value.expr.any_column_refs() {
                    return invalid(named.span, "expected an aggregate");
                }
                refuse_row_column(&value, input, named.span)?;
                if let Names::Several(names) = &named.names {
                    return too_many_names(names.len(), 1, named.span);
                }
                let given = given_name(&named.names).map(str::to_owned);
                let natural = argument_name(&named.expr);
                all.push(Assigned { given, natural, value, span: named.span, is_rest: false });
                continue;
            };
            let outputs = self.aggregate(call, named.expr.span, &scope, collected)?;
            all.extend(assigned_outputs(named, outputs)?);
        }
        Ok(all)
    }

    /// Groups by the keys, and computes the columns of each group: first the keys, then the aggregates.
    pub(crate) fn grouped(
        &mut self,
        input: Relation,
        keys: Vec<(String, Typed)>,
        collected: Vec<PlanExpr>,
        outputs: Vec<(String, Typed)>,
    ) -> Result<Relation> {
        let mut group: Vec<PlanExpr> = Vec::with_capacity(keys.len());
        let mut columns: Vec<(String, Typed)> = Vec::with_capacity(keys.len() + outputs.len());
        for (name, key) in keys {
            let Typed { expr, kql_type } = plain_key(key)?;
            let field = self.field(&name);
            group.push(expr.alias(field.clone()));
            columns.push((name, Typed::new(super::field_column(&field), kql_type)));
        }
        let carried = self.carried_aggregates(&input);
        if let Some(groups) = &input.groups {
            group.extend(groups.keys.iter().cloned());
        }
        let mut aggregates = collected;
        aggregates.extend(carried);
        if group.is_empty() && aggregates.is_empty() {
            aggregates.push(datafusion::functions_aggregate::count::count_all().alias(self.field("count")));
        }
        let plan = LogicalPlanBuilder::from(input.plan).aggregate(group, aggregates)?.build()?;
        let grouped = Relation { groups: input.groups, ..Relation::new(plan, Vec::new()) };
        columns.extend(outputs);
        self.projected(grouped, columns)
    }

    /// `top-hitters 3 of a by b`: the values with the greatest sums of `b`, or without `by` the most frequent ones. Of
    /// those with equal sums the greatest values are kept.
    pub(super) fn top_hitters(
        &mut self,
        input: Relation,
        count: &'a NamedExpr,
        of: &'a NamedExpr,
        by: Option<&'a SortKey>,
        _span: Span,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let rows = self.row_count(count, environment)?;
        let scope = ExpressionScope::over_columns(environment, &input.columns);
        let value = self.scalar(&of.expr, &scope)?;
        let name = argument_name(&of.expr).unwrap_or_else(|| "Column1".to_owned());
        let (weight, weight_name) = match by {
            Some(by) => {
                let weight = self.scalar(&by.expr.expr, &scope)?;
                let name = argument_name(&by.expr.expr).unwrap_or_default();
                (self.summable(weight, by.span)?, format!("approximate_sum_{name}"))
            }
            None => (Typed::new(lit(1_i64), KqlType::Long), format!("approximate_count_{name}")),
        };
        let kql_type = weight.kql_type;
        let field = self.field("sum");
        let sum = datafusion::functions_aggregate::expr_fn::sum(weight.expr).alias(field.clone());
        let outputs = vec![(weight_name, Typed::new(super::field_column(&field), kql_type))];
        let grouped = self.grouped(input, vec![(name, value)], vec![sum], outputs)?;
        let mut order = Vec::new();
        let sum = Typed::new(super::field_column(&field), kql_type);
        let grouped = self.push_sort_keys(grouped, sum, false, false, &mut order)?;
        order.extend(grouped.columns.first().map(|value| value.typed().expr.sort(false, false)));
        if grouped.groups.is_some() {
            let first = self.first_of_groups(Relation { order, ..grouped }, rows)?;
            return Ok(Relation { is_serialized: true, ..first });
        }
        let plan = LogicalPlanBuilder::from(grouped.plan.clone()).sort(order.clone())?.limit(0, Some(rows))?.build()?;
        Ok(Relation { order, is_serialized: true, ..grouped }.over(plan))
    }

    /// `top-nested 3 of a by count(), top-nested 2 of b by sum(c)`: each level groups the rows that belong to the
    /// groups which the level before it kept, and keeps the first of its groups in each of them.
    pub(super) fn top_nested(
        &mut self,
        input: Relation,
        levels: &'a [TopLevel],
        span: Span,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let mut input = input;
        let mut keys: Vec<(String, Typed)> = Vec::with_capacity(levels.len());
        let mut kept: Vec<Relation> = Vec::with_capacity(levels.len());
        for level in levels {
            let (extended, assigned) = self.assigned(input, std::slice::from_ref(&level.of), environment)?;
            input = extended;
            for one in assigned.into_iter().take(1) {
                let name = one.given.or(one.natural).unwrap_or_default();
                let name = unique_name(&name, |name| keys.iter().any(|(known, _)| known == name));
                keys.push((name, one.value));
            }
            let key_name = keys.last().map(|(name, _)| name.clone()).unwrap_or_default();
            let collected = RefCell::new(Vec::new());
            let aggregates = std::slice::from_ref(&level.by.expr);
            let assigned = self.aggregated(&input, aggregates, &[], &collected, environment)?;
            let outputs: Vec<(String, Typed)> = assigned
                .into_iter()
                .take(1)
                .map(|one| (one.given.unwrap_or_else(|| format!("aggregated_{key_name}")), one.value))
                .collect();
            let grouped = self.grouped(input.clone(), keys.clone(), collected.into_inner(), outputs)?;
            let below = match kept.last() {
                Some(above) => self.below(above.clone(), &grouped, keys.len() - 1)?,
                None => grouped,
            };
            let [.., key, aggregate] = below.columns.as_slice() else {
                return invalid(level.span, "expected an aggregate");
            };
            let ascending = level.by.direction == Some(SortDirection::Ascending);
            let (key, aggregate) = (key.expr(), aggregate.typed());
            let above: Vec<PlanExpr> = below.columns.iter().step_by(2).take(keys.len() - 1).map(Column::expr).collect();
            kept.push(match &level.count {
                Some(count) => {
                    let rows = self.row_count(count, environment)?;
                    let mut order = Vec::with_capacity(3);
                    let below = self.push_sort_keys(below, aggregate, ascending, ascending, &mut order)?;
                    order.push(key.sort(false, false));
                    let groups = Some(Groups { keys: above, carried: Vec::new() });
                    let first = self.first_of_groups(Relation { groups, order, ..below }, rows)?;
                    Relation { groups: None, order: Vec::new(), ..first }
                }
                None => below,
            });
        }
        let Some(chosen) = kept.last().cloned() else { return invalid(span, "`top-nested` needs a level") };
        let mut rest: Vec<Relation> = Vec::new();
        for depth in 0..levels.len() {
            if levels[depth..].iter().any(|level| level.others.is_some()) {
                rest.push(self.left_out(&input, levels, &keys, &kept, depth, environment)?);
            }
        }
        let mut all =
            if rest.is_empty() { chosen } else { self.united(std::iter::once(chosen).chain(rest).collect(), &[])? };
        let mut order: Vec<SortExpr> = Vec::with_capacity(all.columns.len());
        let columns = all.columns.clone();
        for (pair, level) in columns.chunks(2).zip(levels) {
            let ascending = level.by.direction == Some(SortDirection::Ascending);
            if let [key, aggregate] = pair {
                all = self.push_sort_keys(all, aggregate.typed(), ascending, ascending, &mut order)?;
                order.push(key.expr().sort(false, false));
            }
        }
        let plan = LogicalPlanBuilder::from(all.plan.clone()).sort(order.clone())?.build()?;
        Ok(Relation { order, ..all }.over(plan))
    }

    /// Returns a row of the rows whose groups the level at `depth` did not keep, in each group of the level above: this
    /// level and those below it have the name that `with others` gives them and their aggregate of these rows, and
    /// nothing where they are without.
    fn left_out(
        &mut self,
        input: &Relation,
        levels: &'a [TopLevel],
        keys: &[(String, Typed)],
        kept: &[Relation],
        depth: usize,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let mut rows = input.clone();
        let mut left = Vec::with_capacity(depth + 1);
        for (name, key) in &keys[..=depth] {
            let (with_key, field) = self.with_field(rows, name, key.expr.clone())?;
            rows = with_key;
            left.push(PlanColumn::new_unqualified(field));
        }
        let right = kept[depth].columns.iter().step_by(2);
        let right: Vec<PlanColumn> = right.map(|column| PlanColumn::new_unqualified(&column.field)).collect();
        let plan = LogicalPlanBuilder::from(rows.plan.clone())
            .join_detailed(
                kept[depth].plan.clone(),
                JoinType::LeftAnti,
                (left, right),
                None,
                NullEquality::NullEqualsNull,
            )?
            .build()?;
        let rest = rows.over(plan);
        let collected = RefCell::new(Vec::new());
        let mut outputs: Vec<(String, Typed)> = Vec::with_capacity(2 * (levels.len() - depth) + 1);
        for ((level, groups), (name, key)) in levels.iter().zip(kept).zip(keys).skip(depth) {
            let aggregate_name = groups.columns.last().map(|column| column.name.clone()).unwrap_or_default();
            let Some(others) = &level.others else {
                let nothing = |kql_type| Typed::new(lit(null_of(kql_type)), kql_type);
                outputs.push((name.clone(), nothing(key.kql_type)));
                let aggregate = groups.columns.last().map(|column| nothing(column.kql_type));
                outputs.extend(aggregate.map(|aggregate| (aggregate_name, aggregate)));
                continue;
            };
            let literal = self.scalar(others, &ExpressionScope::constant(environment))?;
            outputs.push((name.clone(), self.convert(literal, key.kql_type, others.span)?));
            let aggregates = std::slice::from_ref(&level.by.expr);
            let assigned = self.aggregated(&rest, aggregates, &[], &collected, environment)?;
            outputs.extend(assigned.into_iter().next().map(|aggregate| (aggregate_name, aggregate.value)));
        }
        let count = self.field("count");
        let mut aggregates = collected.into_inner();
        aggregates.push(datafusion::functions_aggregate::count::count_all().alias(count.clone()));
        outputs.push((count.clone(), Typed::new(super::field_column(&count), KqlType::Long)));
        let mut grouped = self.grouped(rest, keys[..depth].to_vec(), aggregates, outputs)?;
        if let Some(count) = grouped.columns.pop() {
            grouped = self.filtered(grouped, count.expr().gt(lit(0_i64)))?;
        }
        match depth.checked_sub(1) {
            Some(above) => self.below(kept[above].clone(), &grouped, depth),
            None => Ok(grouped),
        }
    }

    /// Returns the groups of a level that are within those which the level above kept, with that level's columns first.
    fn below(&mut self, above: Relation, grouped: &Relation, keys: usize) -> Result<Relation> {
        let fields =
            |columns: Vec<&Column>| columns.iter().map(|column| PlanColumn::new_unqualified(&column.field)).collect();
        let left: Vec<PlanColumn> = fields(above.columns.iter().step_by(2).collect());
        let right: Vec<PlanColumn> = fields(grouped.columns.iter().take(keys).collect());
        let plan = LogicalPlanBuilder::from(above.plan.clone()).join_detailed(
            grouped.plan.clone(),
            JoinType::Inner,
            (left, right),
            None,
            NullEquality::NullEqualsNull,
        )?;
        let own = grouped.columns.iter().skip(keys);
        let outputs = above.columns.iter().chain(own).map(Column::output).collect();
        self.projected(Relation::new(plan.build()?, Vec::new()), outputs)
    }
}

/// Returns the columns of an aggregate, under the names that the query gives them.
fn assigned_outputs(named: &NamedExpr, outputs: Vec<AggregateOutput>) -> Result<Vec<Assigned>> {
    let given: Vec<String> = match &named.names {
        Names::Unnamed => Vec::new(),
        Names::One(name) => vec![name.text.clone()],
        Names::Several(names) => names.iter().map(|name| name.text.clone()).collect(),
    };
    if given.len() > outputs.len() {
        return too_many_names(given.len(), outputs.len(), named.span);
    }
    let mut given = given.into_iter();
    let mut all = Vec::with_capacity(outputs.len());
    for AggregateOutput { name, typed } in outputs {
        all.push(Assigned { given: given.next(), natural: Some(name), value: typed, span: named.span, is_rest: false });
    }
    Ok(all)
}
