//! Whether a plan may be kept for the next time that its statement is asked, and how values get into it then.
//!
//! A plan is kept where all that it reads is read when it is scanned: tables of the catalog and of the session. What was worked
//! out while it was planned (series of numbers, system tables, vectors) is not kept.
//!
//! Values are put into an analysed or optimised plan only where they are compared with a column of their type, or are the vector
//! to which distances are measured. There nothing but the comparison or the distance depends on the value, so that the plan is
//! the one that a literal in the same place has. Each expression is simplified once its value is there, as the optimizer would
//! have, so that scans prune by it and vector indexes find their rows.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, DFSchemaRef, Result, ScalarValue, plan_err};
use datafusion::execution::SessionState;
use datafusion::logical_expr::expr::{InList, Placeholder, WindowFunctionDefinition};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Between, BinaryExpr, Cast, Expr, LogicalPlan, Operator, Volatility};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

use super::catalog_table::{CatalogTable, KeptSource};
use super::parameters::position;
use super::vector_search::is_distance;
use crate::functions::EMBED;
use crate::governor::Folding;
use crate::optimizer::separate_lists::with_lists_apart;

/// The most operators, expressions and columns of a plan that is kept.
const MAX_PARTS: usize = 4_000;
/// The most bytes of constants of a plan that is kept.
const MAX_CONSTANT_BYTES: usize = 64 << 10;

/// What a plan that may be kept is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeptTraits {
    /// Its operators, expressions and columns.
    pub(crate) parts: usize,
    /// Whether it has parameters.
    pub(crate) has_parameters: bool,
    /// Whether no function of it knows the time or makes up values.
    pub(crate) is_fixed: bool,
    /// Whether it reads tables of the session.
    pub(crate) reads_temporary: bool,
    /// Whether it reads tables whose rows may change without a commit.
    pub(crate) reads_varying: bool,
}

/// Returns what a plan is like; `None` where it is not to be kept.
pub(crate) fn kept_traits(plan: &LogicalPlan, takes_dictionaries: bool) -> Option<KeptTraits> {
    let mut traits =
        KeptTraits { parts: 0, has_parameters: false, is_fixed: true, reads_temporary: false, reads_varying: false };
    let mut is_kept = true;
    let visited = plan.apply_with_subqueries(|node| {
        traits.parts += 1 + node.schema().fields().len();
        is_kept &= traits.parts <= MAX_PARTS && traits.see_node(node, takes_dictionaries);
        if !is_kept {
            return Ok(TreeNodeRecursion::Stop);
        }
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                traits.parts += 1;
                is_kept &= traits.parts <= MAX_PARTS && traits.see_expr(part);
                Ok(if is_kept { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
            })
        })
    });
    (visited.is_ok() && is_kept && has_small_constants(plan)).then_some(traits)
}

/// Returns whether the constants of a plan are few enough for it to be kept.
pub(crate) fn has_small_constants(plan: &LogicalPlan) -> bool {
    let mut bytes = 0_usize;
    let counted = plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                if let Expr::Literal(value, _) = part {
                    bytes = bytes.saturating_add(value.size() - size_of::<ScalarValue>());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    counted.is_ok() && bytes <= MAX_CONSTANT_BYTES
}

impl KeptTraits {
    /// Returns whether a plan with such an operator is kept.
    fn see_node(&mut self, node: &LogicalPlan, takes_dictionaries: bool) -> bool {
        match node {
            LogicalPlan::TableScan(scan) => match CatalogTable::kept_source(&scan.source, takes_dictionaries) {
                KeptSource::Managed => true,
                KeptSource::Varying => {
                    self.reads_varying = true;
                    true
                }
                KeptSource::Temporary => {
                    self.reads_temporary = true;
                    true
                }
                KeptSource::Other => false,
            },
            LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::Join(_)
            | LogicalPlan::Repartition(_)
            | LogicalPlan::Union(_)
            | LogicalPlan::EmptyRelation(_)
            | LogicalPlan::Subquery(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Limit(_)
            | LogicalPlan::Values(_)
            | LogicalPlan::Distinct(_)
            | LogicalPlan::Unnest(_) => true,
            LogicalPlan::Explain(_)
            | LogicalPlan::Analyze(_)
            | LogicalPlan::Extension(_)
            | LogicalPlan::Statement(_)
            | LogicalPlan::Dml(_)
            | LogicalPlan::Ddl(_)
            | LogicalPlan::Copy(_)
            | LogicalPlan::DescribeTable(_)
            | LogicalPlan::RecursiveQuery(_) => false,
        }
    }

    /// Returns whether a plan with such an expression is kept.
    fn see_expr(&mut self, expr: &Expr) -> bool {
        let volatility = match expr {
            Expr::ScalarFunction(call) if call.name() == EMBED || call.func.as_async().is_some() => return false,
            Expr::ScalarVariable(..) => return false,
            Expr::Placeholder(_) => {
                self.has_parameters = true;
                return true;
            }
            Expr::ScalarFunction(call) => call.func.signature().volatility,
            Expr::HigherOrderFunction(call) => call.func.signature().volatility,
            Expr::AggregateFunction(call) => call.func.signature().volatility,
            Expr::WindowFunction(call) => match &call.fun {
                WindowFunctionDefinition::AggregateUDF(function) => function.signature().volatility,
                WindowFunctionDefinition::WindowUDF(function) => function.signature().volatility,
            },
            _ => return true,
        };
        self.is_fixed &= volatility == Volatility::Immutable;
        true
    }
}

/// Returns whether every parameter of an analysed plan is compared with something of its type in a condition on rows, or is the
/// vector of a distance in a condition, an order or a column, and is nowhere else.
pub(crate) fn compares_parameters_only(plan: &LogicalPlan) -> bool {
    let mut holds = true;
    let visited = plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            holds &= match node {
                LogicalPlan::Filter(_) => is_comparison(expr),
                LogicalPlan::Sort(_) | LogicalPlan::Projection(_) => !has_other_placeholder(expr),
                _ => !has_placeholder(expr),
            };
            Ok(if holds { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
        })
    });
    visited.is_ok() && holds
}

/// Returns whether [`with_values`] reaches every parameter of a plan.
pub(crate) fn takes_values(plan: &LogicalPlan) -> bool {
    let (mut all, mut reached) = (0, 0);
    let counted = plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            all += placeholders(expr);
            Ok(TreeNodeRecursion::Continue)
        })
    });
    let of_tree = plan.apply(|node| {
        if may_take_values(node) {
            node.apply_expressions(|expr| {
                reached += placeholders(expr);
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        Ok(TreeNodeRecursion::Continue)
    });
    counted.is_ok() && of_tree.is_ok() && all == reached
}

/// Returns the plan with values in place of `$1`, `$2`, ... where it may have them; with a state, the expressions are simplified
/// by them. Columns keep their names. Errors: those of a value that cannot be converted.
pub(crate) fn with_values(
    plan: &LogicalPlan,
    values: &[ScalarValue],
    simplified_in: Option<&SessionState>,
) -> Result<LogicalPlan> {
    if values.is_empty() {
        return Ok(plan.clone());
    }
    // A comparison with zero is another one: see `float_order`.
    if values.iter().any(|value| matches!(value, ScalarValue::Float64(Some(0.0)) | ScalarValue::Float32(Some(0.0)))) {
        return plan_err!("a plan for other values");
    }
    let replaced = plan.clone().transform_down(|node| {
        if !may_take_values(&node) || !holds_placeholder(&node)? {
            return Ok(Transformed::no(node));
        }
        let simplifier = match simplified_in {
            None => None,
            Some(state) => Some(simplifier(&node, state)?),
        };
        let has_names = matches!(node, LogicalPlan::Sort(_) | LogicalPlan::Projection(_));
        node.map_expressions(|expr| {
            if !has_placeholder(&expr) {
                return Ok(Transformed::no(expr));
            }
            // As where DataFusion binds values.
            let name = (has_names && !matches!(expr, Expr::Alias(_))).then(|| expr.qualified_name());
            let bound = with_literals(expr, values)?;
            let bound = match &simplifier {
                Some(simplifier) => {
                    let _folding = Folding::start();
                    with_lists_apart(bound, |bound| simplifier.simplify(bound))?
                }
                None => bound,
            };
            Ok(Transformed::yes(match name {
                Some((relation, name)) => bound.alias_qualified(relation, name),
                None => bound,
            }))
        })
    });
    replaced.data()
}

fn may_take_values(node: &LogicalPlan) -> bool {
    matches!(
        node,
        LogicalPlan::Filter(_) | LogicalPlan::TableScan(_) | LogicalPlan::Sort(_) | LogicalPlan::Projection(_)
    )
}

fn holds_placeholder(node: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    node.apply_expressions(|expr| {
        found |= has_placeholder(expr);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// As the optimizer's rule has it: a scan's conditions are about all columns of its table.
fn simplifier(node: &LogicalPlan, state: &SessionState) -> Result<ExprSimplifier> {
    let schema: DFSchemaRef = match node {
        LogicalPlan::TableScan(scan) => {
            Arc::new(DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?)
        }
        LogicalPlan::Filter(filter) => Arc::clone(filter.input.schema()),
        LogicalPlan::Projection(projection) => Arc::clone(projection.input.schema()),
        other => Arc::clone(other.schema()),
    };
    let context = SimplifyContext::builder()
        .with_schema(schema)
        .with_config_options(Arc::clone(state.config_options()))
        .with_query_execution_start_time(state.execution_props().query_execution_start_time)
        .build();
    Ok(ExprSimplifier::new(context))
}

fn with_literals(expr: Expr, values: &[ScalarValue]) -> Result<Expr> {
    let replaced = expr.transform_up(|part| {
        let value = match &part {
            Expr::Placeholder(Placeholder { id, .. }) => value_of(id, values),
            _ => None,
        };
        Ok(match value {
            Some(value) => Transformed::yes(Expr::Literal(value.clone(), None)),
            None => Transformed::no(part),
        })
    });
    replaced.data()
}

fn value_of<'v>(id: &str, values: &'v [ScalarValue]) -> Option<&'v ScalarValue> {
    values.get(position(id)?.checked_sub(1)?)
}

/// Returns whether an expression is made of comparisons, as far as it has parameters.
fn is_comparison(expr: &Expr) -> bool {
    match expr {
        expr if !has_other_placeholder(expr) => true,
        Expr::Not(inner) => is_comparison(inner),
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::And | Operator::Or, right }) => {
            is_comparison(left) && is_comparison(right)
        }
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: Operator::Eq | Operator::NotEq | Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq,
            right,
        }) => (is_value(left) && !has_other_placeholder(right)) || (is_value(right) && !has_other_placeholder(left)),
        Expr::Between(Between { expr, low, high, .. }) => {
            let is_bound = |bound: &Expr| is_value(bound) || !has_other_placeholder(bound);
            !has_other_placeholder(expr) && is_bound(low) && is_bound(high)
        }
        Expr::InList(InList { expr, list, .. }) => {
            !has_other_placeholder(expr) && list.iter().all(|item| is_value(item) || !has_other_placeholder(item))
        }
        _ => false,
    }
}

/// Whether an expression is a parameter of a known type, as it is: analysis gives both sides of a comparison one type. An integer
/// may be converted to a wider one.
fn is_value(expr: &Expr) -> bool {
    let type_of = |expr: &Expr| match expr {
        Expr::Placeholder(Placeholder { field, .. }) => field.as_ref().map(|field| field.data_type().clone()),
        _ => None,
    };
    match expr {
        Expr::Cast(Cast { expr, field }) => {
            field.data_type().is_signed_integer() && type_of(expr).is_some_and(|from| from.is_signed_integer())
        }
        other => type_of(other).is_some_and(|known| known != DataType::Null),
    }
}

/// Whether an expression has a parameter that is not the vector of a distance.
fn has_other_placeholder(expr: &Expr) -> bool {
    let mut found = false;
    let visited = expr.apply(|part| {
        if is_distance(part, is_vector) {
            return Ok(TreeNodeRecursion::Jump);
        }
        found |= matches!(part, Expr::Placeholder(_));
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    visited.is_err() || found
}

/// Whether an expression is a parameter that is a list of numbers, which may be converted to another such list.
fn is_vector(expr: &Expr) -> bool {
    let placeholder = match expr {
        Expr::Cast(Cast { expr, field }) if is_list(field.data_type()) => expr.as_ref(),
        other => other,
    };
    let Expr::Placeholder(Placeholder { field: Some(field), .. }) = placeholder else { return false };
    is_list(field.data_type())
}

fn is_list(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            item.data_type().is_numeric()
        }
        _ => false,
    }
}

fn has_placeholder(expr: &Expr) -> bool {
    // Without a closure that fails, this cannot.
    expr.exists(|part| Ok(matches!(part, Expr::Placeholder(_)))).unwrap_or(true)
}

fn placeholders(expr: &Expr) -> usize {
    let mut count = 0;
    let counted = expr.apply(|part| {
        count += usize::from(matches!(part, Expr::Placeholder(_)));
        Ok(TreeNodeRecursion::Continue)
    });
    counted.map_or(usize::MAX, |_| count)
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{Field, Schema};
    use datafusion::datasource::{MemTable, provider_as_source};
    use datafusion::execution::SessionStateBuilder;
    use datafusion::functions::expr_fn::{now, random, upper};
    use datafusion::logical_expr::{LogicalPlanBuilder, cast, col, lit};

    use super::*;
    use crate::sql::field_access::own_call;

    fn scan() -> LogicalPlanBuilder {
        let fields = [Field::new("id", DataType::Int32, true), Field::new("name", DataType::Utf8, true)];
        let schema = Arc::new(Schema::new(fields.to_vec()));
        let rows = MemTable::try_new(schema, vec![Vec::new()]).unwrap();
        let source = provider_as_source(Arc::new(CatalogTable::temporary("t", Arc::new(rows))));
        LogicalPlanBuilder::scan("t", source, None).unwrap()
    }

    fn parameter(id: &str, data_type: DataType) -> Expr {
        let field = Some(Arc::new(Field::new(id.trim_start_matches('$'), data_type, true)));
        Expr::Placeholder(Placeholder { id: id.to_owned(), field })
    }

    fn filtered(condition: Expr) -> LogicalPlan {
        scan().filter(condition).unwrap().project([col("name")]).unwrap().build().unwrap()
    }

    fn analysed(state: &SessionState, plan: LogicalPlan) -> LogicalPlan {
        state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {}).unwrap()
    }

    fn optimized(state: &SessionState, plan: LogicalPlan) -> LogicalPlan {
        state.optimizer().optimize(plan, state, |_, _| {}).unwrap()
    }

    #[test]
    fn a_plan_with_values_is_the_one_of_literals() {
        let state = SessionStateBuilder::new().with_default_features().build();
        let number = || parameter("$1", DataType::Int64);
        let text = || parameter("$2", DataType::Utf8);
        let values = [ScalarValue::Int64(Some(7)), ScalarValue::from("x")];
        for condition in [col("id").eq(number()), number().lt(col("id")), col("name").not_eq(text())] {
            let open = filtered(condition);
            let exact = analysed(&state, open.clone().with_param_values(values.to_vec()).unwrap());
            let open = analysed(&state, open);
            assert!(compares_parameters_only(&open), "{open}");
            assert_eq!(with_values(&open, &values, None).unwrap(), exact);
            let ready = with_values(&optimized(&state, open), &values, Some(&state)).unwrap();
            let exact = optimized(&state, exact);
            assert_eq!(ready.display_indent().to_string(), exact.display_indent().to_string());
        }
        for condition in [
            col("id").eq(number()).and(col("name").eq(text())),
            number().lt(col("id")).or(col("name").in_list(vec![text(), lit("y")], false)),
            col("id").between(number(), lit(9_i64)).and(text().not_eq(col("name"))),
        ] {
            let open = analysed(&state, filtered(condition));
            assert!(compares_parameters_only(&open), "{open}");
            let ready = optimized(&state, open);
            assert!(takes_values(&ready), "{ready}");
            let ready = with_values(&ready, &values, Some(&state)).unwrap();
            assert!(!kept_traits(&ready, false).unwrap().has_parameters, "{ready}");
        }
    }

    #[test]
    fn vectors_of_distances_are_put_in() {
        let state = SessionStateBuilder::new().with_default_features().build();
        let floats = || DataType::FixedSizeList(Arc::new(Field::new_list_field(DataType::Float32, true)), 2);
        let fields = [Field::new("id", DataType::Int32, true), Field::new("v", floats(), true)];
        let rows = MemTable::try_new(Arc::new(Schema::new(fields.to_vec())), vec![Vec::new()]).unwrap();
        let source = provider_as_source(Arc::new(CatalogTable::temporary("t", Arc::new(rows))));
        let distance = |vector: Expr| own_call("cosine_distance", vec![col("v"), vector]).unwrap();
        let scan = || LogicalPlanBuilder::scan("t", Arc::clone(&source), None).unwrap();
        let near = |vector: Expr| {
            let sorted = scan().sort_with_limit([distance(vector.clone()).sort(true, false)], Some(3)).unwrap();
            sorted.project([col("id"), distance(vector)]).unwrap().build().unwrap()
        };
        let numbers = ScalarValue::new_list_nullable(&[0.5_f64.into(), 2.0_f64.into()], &DataType::Float64);
        let values = [ScalarValue::List(numbers)];
        let open = near(parameter("$1", values[0].data_type()));
        let exact = analysed(&state, open.clone().with_param_values(values.to_vec()).unwrap());
        let open = analysed(&state, open);
        assert!(compares_parameters_only(&open), "{open}");
        assert_eq!(with_values(&open, &values, None).unwrap(), exact);
        let ready = optimized(&state, open);
        assert!(takes_values(&ready), "{ready}");
        let ready = with_values(&ready, &values, Some(&state)).unwrap();
        assert_eq!(ready.schema(), exact.schema());
        assert!(!kept_traits(&ready, false).unwrap().has_parameters, "{ready}");
        assert!(!is_distance(&distance(col("v")), is_vector));
    }

    #[test]
    fn other_places_take_no_values() {
        let state = SessionStateBuilder::new().with_default_features().build();
        let number = || parameter("$1", DataType::Int64);
        for open in [
            filtered((col("id") + number()).eq(lit(1_i64))),
            filtered(col("name").eq(upper(parameter("$1", DataType::Utf8)))),
            filtered(col("id").eq(cast(parameter("$1", DataType::Utf8), DataType::Int32))),
            filtered(number().eq(number())),
            scan().project([number()]).unwrap().build().unwrap(),
        ] {
            assert!(!compares_parameters_only(&analysed(&state, open.clone())), "{open}");
        }
    }

    #[test]
    fn what_is_kept_and_what_is_fixed() {
        let traits = kept_traits(&filtered(col("id").eq(parameter("$1", DataType::Int64))), false).unwrap();
        assert!(traits.has_parameters && traits.is_fixed && traits.reads_temporary);
        for varying in [now(), random()] {
            let plan = scan().project([varying]).unwrap().build().unwrap();
            assert!(!kept_traits(&plan, false).unwrap().is_fixed);
        }
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int32, true)]));
        let other = provider_as_source(Arc::new(MemTable::try_new(schema, vec![Vec::new()]).unwrap()));
        let plan = LogicalPlanBuilder::scan("other", other, None).unwrap().build().unwrap();
        assert_eq!(kept_traits(&plan, false), None);
        let numbers: Vec<Expr> = (0..4_000_i64).map(lit).collect();
        assert_eq!(kept_traits(&filtered(col("id").in_list(numbers, false)), false), None);
    }
}
