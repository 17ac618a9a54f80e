//! `scan`: sequences of steps over ordered rows. A window function computes what a row becomes as a list, with one
//! element for each step that the row matches.

mod machine;

use datafusion::common::Column as PlanColumn;
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionDefinition, WindowFunctionParams};
use datafusion::logical_expr::{Expr as PlanExpr, LogicalPlanBuilder, WindowFrame};
use datafusion::scalar::ScalarValue;

use super::{Column, Relation, field_column};
use crate::ast::{Operator, ParameterKind, ParameterValue, Scan, ScanOutput, ScanStep};
use crate::bind::{
    BindErrorCode, Binder, Environment, ExpressionScope, Result, Typed, constant_of, fail, given_name, invalid,
    not_supported, null_of,
};
use crate::types::KqlType;
pub(super) use machine::is_sequences_function;
use machine::{MATCH_ID, Machine, MachineStep, ReturnedMatches};

impl<'a> Binder<'a> {
    pub(super) fn scan_sequences(
        &mut self,
        input: Relation,
        scan: &'a Scan,
        operator: &'a Operator,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let span = operator.span;
        let (input, order) = match scan.order_by.as_slice() {
            [] => {
                let order = input.order.clone();
                (input, order)
            }
            keys => self.order(input, keys, environment)?,
        };
        if order.is_empty() && !input.is_serialized {
            return fail(BindErrorCode::Invalid, span, "`scan` needs rows in an order; put `sort by` before it");
        }
        let match_id = operator.parameter("with_match_id").and_then(|parameter| match &parameter.value {
            ParameterValue::Name(name) => Some(name.text.clone()),
            ParameterValue::Literal(_) => None,
        });
        let mut partition_by = input.groups.as_ref().map(|groups| groups.keys.clone()).unwrap_or_default();
        for key in &scan.partition_by {
            partition_by.push(self.scalar(key, &ExpressionScope::over_columns(environment, &input.columns))?.expr);
        }

        // The columns of a row: its own, then the declared ones.
        let mut row: Vec<Column> = input.columns.clone();
        let mut defaults: Vec<ScalarValue> = row.iter().map(|column| null_of(column.kql_type)).collect();
        for declared in &scan.declarations {
            let name = &declared.name.text;
            let ParameterKind::Scalar { scalar_type, default } = &declared.kind else {
                return invalid(declared.span, format!("`{name}` must be a value"));
            };
            if row.iter().any(|column| column.name == *name) {
                return invalid(declared.span, format!("the column `{name}` is there already"));
            }
            let kql_type = KqlType::from(*scalar_type);
            defaults.push(match default {
                Some(default) => {
                    let value = self.scalar(default, &ExpressionScope::constant(environment))?;
                    let value = self.convert(value, kql_type, declared.span)?;
                    match constant_of(&value.expr)? {
                        Some(value) => value,
                        None => return invalid(declared.span, "a default is a constant"),
                    }
                }
                None => null_of(kql_type),
            });
            row.push(Column { name: name.clone(), field: self.field(name), kql_type });
        }
        if let Some(name) = &match_id
            && row.iter().any(|column| column.name == *name)
        {
            return invalid(span, format!("the column `{name}` is there already"));
        }

        // Expressions may name the row's columns, and as `step.column` those of the row that each step matched last.
        let mut seen = row.clone();
        let names: Vec<String> = scan.steps.iter().map(|step| step.name.text.clone()).collect();
        for name in &names {
            for column in &row {
                let qualified = format!("{name}.{}", column.name);
                let field = self.field(&qualified);
                seen.push(Column { name: qualified, field, kql_type: column.kql_type });
            }
        }
        let scope = ExpressionScope { steps: &names, ..ExpressionScope::over_columns(environment, &seen) };
        let mut steps = Vec::with_capacity(scan.steps.len());
        for step in &scan.steps {
            steps.push(self.scan_step(step, &row, &scope)?);
        }

        // The window function returns only the columns that steps assign; the row keeps the others.
        let made: Vec<usize> = (0..row.len())
            .filter(|index| *index >= input.columns.len() || steps.iter().any(|step| step.assigns(*index)))
            .collect();
        let columns = seen.iter().map(|column| (column.field.clone(), column.kql_type.arrow_type())).collect();
        let machine = Machine::new(columns, defaults, steps, made.clone());
        let window = PlanExpr::from(WindowFunction {
            fun: WindowFunctionDefinition::WindowUDF(machine.into_function()),
            params: WindowFunctionParams {
                args: input.columns.iter().map(Column::expr).collect(),
                partition_by,
                order_by: order.clone(),
                window_frame: WindowFrame::new(None),
                filter: None,
                null_treatment: None,
                distinct: false,
            },
        });
        let list = self.field("matches");
        let matched = self.windowed(input, vec![window.alias(list.clone())])?;
        let options = datafusion::common::UnnestOptions::default().with_preserve_nulls(false);
        let plan = LogicalPlanBuilder::from(matched.plan.clone())
            .unnest_columns_with_options(vec![PlanColumn::new_unqualified(&list)], options)?
            .unnest_column(PlanColumn::new_unqualified(&list))?
            .build()?;
        let part = |name: &str| field_column(&format!("{list}.{name}"));
        let mut outputs: Vec<(String, Typed)> = row
            .iter()
            .enumerate()
            .map(|(index, column)| match made.contains(&index) {
                true => (column.name.clone(), Typed::new(part(&column.field), column.kql_type)),
                false => column.output(),
            })
            .collect();
        if let Some(name) = match_id {
            outputs.push((name, Typed::new(part(MATCH_ID), KqlType::Long)));
        }
        let matched = Relation { order, is_serialized: true, ..matched.over(plan) };
        self.projected(matched, outputs)
    }

    fn scan_step(
        &mut self,
        step: &'a ScanStep,
        row: &[Column],
        scope: &ExpressionScope<'_, 'a>,
    ) -> Result<MachineStep> {
        if step.optional {
            return not_supported(step.span, "an optional step of `scan`");
        }
        let returned = match step.output {
            None | Some(ScanOutput::All) => ReturnedMatches::All,
            Some(ScanOutput::Last) => ReturnedMatches::Last,
            Some(ScanOutput::None) => ReturnedMatches::None,
        };
        let condition = self.predicate(&step.condition, scope)?;
        let mut assignments = Vec::with_capacity(step.assignments.len());
        for assignment in &step.assignments {
            let name = given_name(&assignment.names).unwrap_or_default();
            let Some(index) = row.iter().position(|column| column.name == name) else {
                let message = format!("`{name}` is neither a column nor declared");
                return fail(BindErrorCode::UnknownColumn, assignment.span, message);
            };
            let value = self.scalar(&assignment.expr, scope)?;
            let value = self.convert(value, row[index].kql_type, assignment.span)?;
            assignments.push((index, value.expr));
        }
        Ok(MachineStep { condition, assignments, returned })
    }
}
