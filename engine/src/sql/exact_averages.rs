//! Averages of decimals, which are doubles: the quotient of their exact sum and their number, as in DuckDB. A sum of doubles has lost
//! digits on the way, so that the average of 0.1, 0.2 and 0.3 would be 0.20000000000000004. Of decimals with more digits than
//! [`MOST_DIGITS`], whose sum may be beyond 38 digits where the average is not, it is one of doubles.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult};
use datafusion::common::{DFSchema, Result};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction};
use datafusion::logical_expr::{
    Aggregate, AggregateUDF, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Window, WindowFunctionDefinition,
};

use super::field_access::own_call;
use super::plan_nodes::any_node;
use crate::functions::DECIMAL_MEAN;

/// The most digits of decimals whose sums are exact: ten million of them have room.
const MOST_DIGITS: u8 = 31;

/// Returns the plan with sums and counts in the places of such averages.
pub(super) fn with_exact_averages(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !any_node(&plan, |node| Ok(has_averages(node)))? {
        return Ok(plan);
    }
    plan.transform_up_with_subqueries(|node| match node {
        node if !has_averages(&node) => Ok(Transformed::no(node)),
        LogicalPlan::Aggregate(aggregate) => with_sums(aggregate).map(Transformed::yes),
        LogicalPlan::Window(window) => with_sums_of_windows(window).map(Transformed::yes),
        other => Ok(Transformed::no(other)),
    })
    .data()
}

fn has_averages(node: &LogicalPlan) -> bool {
    match node {
        LogicalPlan::Aggregate(aggregate) => {
            aggregate.aggr_expr.iter().any(|expr| parts(expr, aggregate.input.schema()).is_some())
        }
        LogicalPlan::Window(window) => {
            window.window_expr.iter().any(|expr| parts(expr, window.input.schema()).is_some())
        }
        _ => false,
    }
}

/// Returns the sum and the count of an average of decimals; `None` for all else.
fn parts(expr: &Expr, schema: &DFSchema) -> Option<[Expr; 2]> {
    let is_exact = |function: &AggregateUDF, args: &[Expr]| {
        let data_type = args.first().and_then(|arg| arg.get_type(schema).ok());
        let digits = match data_type {
            Some(DataType::Decimal32(digits, _) | DataType::Decimal64(digits, _) | DataType::Decimal128(digits, _)) => {
                digits
            }
            _ => return false,
        };
        function.name() == "avg" && digits <= MOST_DIGITS
    };
    match expr {
        Expr::Alias(alias) => parts(&alias.expr, schema),
        Expr::AggregateFunction(call) if is_exact(&call.func, &call.params.args) => Some(
            [sum_udaf(), count_udaf()]
                .map(|func| Expr::AggregateFunction(AggregateFunction { func, params: call.params.clone() })),
        ),
        Expr::WindowFunction(call) => match &call.fun {
            WindowFunctionDefinition::AggregateUDF(function) if is_exact(function, &call.params.args) => {
                Some([sum_udaf(), count_udaf()].map(|function| {
                    let fun = WindowFunctionDefinition::AggregateUDF(function);
                    Expr::from(WindowFunction { fun, params: call.params.clone() })
                }))
            }
            _ => None,
        },
        _ => None,
    }
}

/// Where the values of a node are that is computed with others.
enum ValuePlace {
    Own(usize),
    Average { sum: usize, count: usize },
}

/// The values that a node computes, each once.
struct Computed {
    values: Vec<Expr>,
    places: Vec<ValuePlace>,
}

impl Computed {
    fn of(exprs: Vec<Expr>, schema: &DFSchema) -> Self {
        let mut computed = Self { values: Vec::with_capacity(exprs.len()), places: Vec::with_capacity(exprs.len()) };
        for expr in exprs {
            let place = match parts(&expr, schema) {
                Some([sum, count]) => ValuePlace::Average { sum: computed.place(sum), count: computed.place(count) },
                None => ValuePlace::Own(computed.place(expr)),
            };
            computed.places.push(place);
        }
        computed
    }

    fn place(&mut self, value: Expr) -> usize {
        // The query may ask for the sum too, and a name is there once.
        let name = value.schema_name().to_string();
        self.values.iter().position(|known| known.schema_name().to_string() == name).unwrap_or_else(|| {
            self.values.push(value);
            self.values.len() - 1
        })
    }
}

fn with_sums(aggregate: Aggregate) -> Result<LogicalPlan> {
    let Aggregate { input, group_expr, aggr_expr, schema, .. } = aggregate;
    let groups = schema.fields().len() - aggr_expr.len();
    let Computed { values, places } = Computed::of(aggr_expr, input.schema());
    let plan = LogicalPlan::Aggregate(Aggregate::try_new(input, group_expr, values)?);
    shown(plan, groups, &places, &schema)
}

fn with_sums_of_windows(window: Window) -> Result<LogicalPlan> {
    let Window { input, window_expr, schema } = window;
    let own = input.schema().fields().len();
    let Computed { values, places } = Computed::of(window_expr, input.schema());
    let plan = LogicalPlan::Window(Window::try_new(values, input)?);
    shown(plan, own, &places, &schema)
}

/// Returns the columns that a node had, of which the first `kept` are as they were.
fn shown(plan: LogicalPlan, kept: usize, places: &[ValuePlace], schema: &Arc<DFSchema>) -> Result<LogicalPlan> {
    let columns = plan.schema().columns();
    let value = |place: usize| Expr::Column(columns[kept + place].clone());
    let mut exprs = Vec::with_capacity(schema.fields().len());
    for (at, (relation, field)) in schema.iter().enumerate() {
        let expr = match at.checked_sub(kept).map(|at| &places[at]) {
            // Sets of groups have a column of their own, which is nobody else's.
            None if field.name() == Aggregate::INTERNAL_GROUPING_ID => continue,
            None => Expr::Column(columns[at].clone()),
            Some(ValuePlace::Own(place)) => value(*place),
            Some(ValuePlace::Average { sum, count }) => own_call(DECIMAL_MEAN, vec![value(*sum), value(*count)])?
                .alias_qualified(relation.cloned(), field.name()),
        };
        exprs.push(expr);
    }
    LogicalPlanBuilder::from(plan).project(exprs)?.build()
}
