//! `rows_near`: the rows at which a condition holds, with some before and after each.

use datafusion::functions_aggregate::min_max::max_udaf;
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionDefinition, WindowFunctionParams};
use datafusion::logical_expr::{Expr as PlanExpr, WindowFrame, WindowFrameBound, WindowFrameUnits, lit, when};
use datafusion::scalar::ScalarValue;

use crate::ast::FunctionCall;
use crate::bind::{Binder, Environment, ExpressionScope, Result, invalid};
use crate::plan::{Relation, field_column};

impl<'a> Binder<'a> {
    /// `rows_near(condition, rows, rows_after)`.
    pub(super) fn rows_near(
        &mut self,
        input: Relation,
        call: &'a FunctionCall,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let (condition, before, after) = match call.arguments.as_slice() {
            [condition, rows] => (condition, rows, rows),
            [condition, before, after] => (condition, before, after),
            _ => return invalid(call.function.span, "`rows_near` takes a condition and numbers of rows"),
        };
        let (before, after) = (self.row_count(before, environment)?, self.row_count(after, environment)?);
        let scope = ExpressionScope::over_columns(environment, &input.columns);
        let holds = self.condition(&condition.expr, &scope)?;
        let rows = |count: usize| ScalarValue::UInt64(Some(u64::try_from(count).unwrap_or(u64::MAX)));
        // A row is near one that lies up to `after` rows before it or `before` rows behind it.
        let frame = WindowFrame::new_bounds(
            WindowFrameUnits::Rows,
            WindowFrameBound::Preceding(rows(after)),
            WindowFrameBound::Following(rows(before)),
        );
        let near = PlanExpr::from(WindowFunction {
            fun: WindowFunctionDefinition::AggregateUDF(max_udaf()),
            params: WindowFunctionParams {
                args: vec![when(holds, lit(1_i64)).otherwise(lit(0_i64))?],
                partition_by: input.groups.as_ref().map(|groups| groups.keys.clone()).unwrap_or_default(),
                order_by: input.order.clone(),
                window_frame: frame,
                filter: None,
                null_treatment: None,
                distinct: false,
            },
        });
        let field = self.field("near");
        let marked = self.windowed(input, vec![near.alias(field.clone())])?;
        self.filtered(marked, field_column(&field).eq(lit(1_i64)))
    }
}
