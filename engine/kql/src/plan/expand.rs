//! `mv-expand` and `mv-apply`: a row for each element of a dynamic value. Several values expand side by side, the
//! shorter ones filled with nulls. `mv-apply` numbers the rows first; its body then runs on each number's rows
//! separately.

mod elements;

use datafusion::common::{Column as PlanColumn, UnnestOptions};
use datafusion::logical_expr::{Expr as PlanExpr, LogicalPlanBuilder, SortExpr};
use datafusion::scalar::ScalarValue;

use super::relation::Groups;
use super::{Column, Relation, field_column, field_of};
use crate::ast::{Expansion, Expr, ExprKind, MvApply, MvExpand, Names, Operator, ParameterValue};
use crate::bind::{
    BindErrorCode, Binder, Environment, ExpressionScope, Result, Typed, argument_name, constant_of, fail, given_name,
    invalid, unique_name,
};
use crate::functions;
use crate::span::Span;
use crate::types::KqlType;
pub(super) use elements::{Elements, elements, elements_of_function, is_elements_function};

impl<'a> Binder<'a> {
    pub(super) fn mv_expand(
        &mut self,
        input: Relation,
        expand: &'a MvExpand,
        operator: &'a Operator,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        if input.order.is_empty() && !input.is_serialized {
            return self.expanded(input, None, &expand.columns, expand.limit.as_ref(), operator, environment);
        }
        let (numbered, _) = self.with_row_numbers(input)?;
        let rows = Some(numbered.order.clone());
        self.expanded(numbered, rows, &expand.columns, expand.limit.as_ref(), operator, environment)
    }

    /// Returns a row for each element. Where the order of the rows that it makes counts, `before` is what it starts
    /// with; within that, elements are ordered as in their value.
    fn expanded(
        &mut self,
        input: Relation,
        before: Option<Vec<SortExpr>>,
        columns: &'a [Expansion],
        limit: Option<&'a Expr>,
        operator: &'a Operator,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let as_arrays = ["bagexpansion", "kind"]
            .iter()
            .filter_map(|name| operator.parameter(name))
            .any(|parameter| matches!(&parameter.value, ParameterValue::Name(name) if name.text == "array"));
        let limit = match limit {
            Some(limit) => {
                let typed = self.scalar(limit, &ExpressionScope::constant(environment))?;
                match constant_of(&self.convert(typed, KqlType::Long, limit.span)?.expr)? {
                    Some(ScalarValue::Int64(Some(limit))) => usize::try_from(limit).ok(),
                    _ => return invalid(limit.span, "the limit must be a constant"),
                }
            }
            None => None,
        };
        let index_name = operator.parameter("with_itemindex").and_then(|parameter| match &parameter.value {
            ParameterValue::Name(name) => Some(name.text.clone()),
            ParameterValue::Literal(_) => None,
        });
        let make = Elements { as_arrays, limit, indexes: false };
        let (names, values) = self.expansions(&input, columns, environment)?;

        let mut plan_input = input;
        let mut lists: Vec<String> = Vec::with_capacity(values.len() + 1);
        for (name, value) in names.iter().zip(&values) {
            let (with_list, field) =
                self.with_field(plan_input, name, elements(make).call(vec![value.expr.clone()]))?;
            plan_input = with_list;
            lists.push(field);
        }
        if index_name.is_some() || before.is_some() {
            let all: Vec<PlanExpr> = values.iter().map(|value| value.expr.clone()).collect();
            let (with_list, field) =
                self.with_field(plan_input, "index", elements(Elements { indexes: true, ..make }).call(all))?;
            plan_input = with_list;
            lists.push(field);
        }
        let unnested = lists.iter().map(PlanColumn::new_unqualified).collect();
        let options = UnnestOptions { preserve_nulls: false, ..UnnestOptions::default() };
        let plan = LogicalPlanBuilder::from(plan_input.plan.clone())
            .unnest_columns_with_options(unnested, options)?
            .build()?;
        let mut unnested = plan_input.over(plan);
        if let Some((mut order, field)) = before.zip(lists.last()) {
            order.push(field_column(field).sort(true, false));
            unnested.order = order;
        }

        let mut outputs: Vec<(String, Typed)> = Vec::with_capacity(unnested.columns.len() + lists.len());
        outputs.extend(unnested.columns.iter().map(Column::output));
        for ((name, expansion), field) in names.iter().zip(columns).zip(&lists) {
            let element = Typed::new(field_column(field), KqlType::Dynamic);
            let element = match expansion.to {
                Some(to) => self.element_to(element, KqlType::from(to), expansion.expr.span)?,
                None => element,
            };
            match outputs.iter_mut().find(|(known, _)| known == name) {
                Some(output) => output.1 = element,
                None => outputs.push((name.clone(), element)),
            }
        }
        if let Some((name, field)) = index_name.zip(lists.last()) {
            let name = unique_name(&name, |name| outputs.iter().any(|(known, _)| known == name));
            outputs.push((name, Typed::new(field_column(field), KqlType::Long)));
        }
        self.projected(unnested, outputs)
    }

    /// Returns the values to expand, and the names of the results.
    fn expansions(
        &mut self,
        input: &Relation,
        columns: &'a [Expansion],
        environment: &Environment<'a>,
    ) -> Result<(Vec<String>, Vec<Typed>)> {
        let mut names: Vec<String> = Vec::with_capacity(columns.len());
        let mut declared: Vec<&str> = Vec::with_capacity(columns.len());
        let mut values = Vec::with_capacity(columns.len());
        let mut unnamed = 0_usize;
        for expansion in columns {
            let value =
                self.scalar(&expansion.expr.expr, &ExpressionScope::over_columns(environment, &input.columns))?;
            if value.kql_type != KqlType::Dynamic {
                let message = format!("only dynamic values expand, this is a {}", value.kql_type.name());
                return fail(BindErrorCode::TypeMismatch, expansion.expr.span, message);
            }
            if let Some(name) = given_name(&expansion.expr.names).or_else(|| own_name(expansion)) {
                if declared.contains(&name) {
                    return invalid(expansion.expr.span, format!("the column `{name}` is there twice"));
                }
                declared.push(name);
            }
            let name = given_name(&expansion.expr.names).map(str::to_owned);
            let name = name.or_else(|| argument_name(&expansion.expr.expr));
            names.push(name.unwrap_or_else(|| {
                unnamed += 1;
                format!("Column{unnamed}")
            }));
            values.push(value);
        }
        Ok((names, values))
    }

    /// Converts an element to the type that it expands to. Only a value of that kind does: a text is no number.
    fn element_to(&mut self, element: Typed, to: KqlType, span: Span) -> Result<Typed> {
        let of_kind = match to {
            KqlType::Dynamic | KqlType::String => element,
            KqlType::Int | KqlType::Long | KqlType::Real | KqlType::Decimal => {
                self.apply(functions::NUMBER_ONLY, vec![element], span)?
            }
            KqlType::Bool => self.apply(functions::TRUTH_ONLY, vec![element], span)?,
            KqlType::DateTime | KqlType::Guid => self.apply(functions::TEXT_ONLY, vec![element], span)?,
            KqlType::TimeSpan => element,
        };
        self.convert(of_kind, to, span)
    }

    pub(super) fn mv_apply(
        &mut self,
        input: Relation,
        apply: &'a MvApply,
        operator: &'a Operator,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let outer = input.groups.clone();
        let outer_columns = input.columns.clone();
        let is_serialized = input.is_serialized;
        let (numbered, field) = self.with_row_numbers(input)?;
        let rows = numbered.order.clone();
        // No two rows have one number, within whatever group they are: what identifies that one is carried. DataFusion 54
        // takes the number of a row around this one for a key of its elements, and would leave out this one beside it.
        let keys = vec![field_column(&field)];
        let mut carried: Vec<String> = Vec::with_capacity(outer_columns.len());
        if let Some(groups) = &outer {
            carried.extend(groups.keys.iter().filter_map(field_of).map(str::to_owned));
            carried.extend(groups.carried.iter().cloned());
        }
        for column in &outer_columns {
            if !carried.contains(&column.field) {
                carried.push(column.field.clone());
            }
        }
        let grouped =
            Relation { groups: Some(Groups { keys, carried }), order: Vec::new(), is_serialized: true, ..numbered };
        let limit = apply.limit.as_ref();
        let expanded = self.expanded(grouped, Some(Vec::new()), &apply.columns, limit, operator, environment)?;
        let mut body = expanded;
        for operator in &apply.body.operators {
            body = self.operator(body, operator, environment)?;
        }
        let mut outputs: Vec<(String, Typed)> = Vec::with_capacity(outer_columns.len() + body.columns.len());
        // A column that is expanded under its own name stands where the body has it, not among the others.
        let is_around =
            |column: &&Column| !apply.columns.iter().any(|expansion| own_name(expansion) == Some(column.name.as_str()));
        for column in outer_columns.iter().filter(is_around) {
            match body.column(&column.name) {
                Some(shown) => outputs.push((column.name.clone(), shown.typed())),
                None => outputs.push(column.output()),
            }
        }
        for column in &body.columns {
            if !outer_columns.iter().filter(is_around).any(|outer| outer.name == column.name) {
                outputs.push(column.output());
            }
        }
        let keeps_order = is_serialized && body.groups.is_some();
        let order = if keeps_order { rows.into_iter().chain(body.order.clone()).collect() } else { Vec::new() };
        let ungrouped = Relation { groups: outer, order, is_serialized: keeps_order, ..body };
        self.projected(ungrouped, outputs)
    }
}

/// Returns the name of the column that is expanded, where it is one and gets no other name.
fn own_name(expansion: &Expansion) -> Option<&str> {
    match (&expansion.expr.names, &expansion.expr.expr.kind) {
        (Names::Unnamed, ExprKind::Name(column)) => Some(&column.text),
        _ => None,
    }
}
