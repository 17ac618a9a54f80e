//! Keys of sorting that are computed with, as columns below. DataFusion 54 asks an expression for the range of its values while it
//! looks whether rows have the order that an operator asks for; it has none for functions, CASE and subqueries, and a comparison or
//! sum of them has an error in its place. Rows that were just sorted by such a key then count as unsorted, and the statement fails.
//!
//! And keys of rows that an outer join may fill with nulls: DataFusion 54 takes what is one value on a side of a join (`'x' AS k`,
//! `WHERE k = 'x'`, `ON ... AND k = 'x'`) for one value behind the join too, where it is null for rows without a match, and leaves
//! the sort out. What is one value in each part of a union it leaves out of the key, and the first rows of one part then end the
//! search in the others. Such keys are computed of what is no constant.
//!
//! And costly keys, as distances of vectors are, by which a search for the nearest sorts: a sort of the first rows computes its keys
//! twice, for its filter and for itself.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, JoinType, Result};
use datafusion::functions::expr_fn::random;
use datafusion::logical_expr::expr::{Alias, Case, Cast, Sort as SortExpr};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, LogicalPlanBuilder, Operator, lit};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// What the columns that hold keys are called.
const KEY: &str = "__sort_key";

/// Computes such keys below sorts, windows and ordered aggregates. It comes once types are coerced.
#[derive(Debug)]
pub(crate) struct ComputeSortKeys {
    /// Whether the function of a name is worth to be computed once.
    pub(crate) is_costly: fn(&str) -> bool,
}

impl OptimizerRule for ComputeSortKeys {
    fn name(&self) -> &str {
        "compute_sort_keys"
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        plan.transform_up_with_subqueries(|node| with_computed_keys(node, self.is_costly))
    }
}

fn with_computed_keys(node: LogicalPlan, is_costly: fn(&str) -> bool) -> Result<Transformed<LogicalPlan>> {
    let input = match &node {
        LogicalPlan::Sort(sort) => Arc::clone(&sort.input),
        LogicalPlan::Window(window) => Arc::clone(&window.input),
        LogicalPlan::Aggregate(aggregate) => Arc::clone(&aggregate.input),
        _ => return Ok(Transformed::no(node)),
    };
    let (is_sort, is_aggregate) = (matches!(node, LogicalPlan::Sort(_)), matches!(node, LogicalPlan::Aggregate(_)));
    let original = Arc::clone(node.schema());
    let names = NamePreserver::new(&node);
    let unmatched = match input.as_ref().exists(|node| Ok(is_outer_join_or_union(node)))? {
        true => unmatched_columns(&input),
        false => HashSet::new(),
    };
    let mut keys = SortKeys::above(&input, is_costly);
    let node = node.map_expressions(|expr| {
        if is_sort {
            return Ok(computed(expr, &unmatched, &mut keys));
        }
        let name = names.save(&expr);
        let written = expr.transform_up(|expr| Ok(with_keys(expr, &unmatched, &mut keys)))?;
        Ok(written.update_data(|expr| name.restore(expr)))
    })?;
    if keys.found.is_empty() {
        return Ok(node);
    }
    let own = input.schema().columns().into_iter().map(Expr::Column);
    let columns = own.chain(keys.columns()).collect::<Vec<_>>();
    let below = LogicalPlanBuilder::from(Arc::clone(&input)).project(columns)?.build()?;
    let node = node.data.map_children(|_| Ok(Transformed::yes(below.clone())))?.data.recompute_schema()?;
    if is_aggregate {
        return Ok(Transformed::yes(node));
    }
    let columns = original.columns().into_iter().map(Expr::Column).collect::<Vec<_>>();
    Ok(Transformed::yes(LogicalPlanBuilder::from(node).project(columns)?.build()?))
}

/// The keys that become columns below a node.
struct SortKeys {
    /// The number of the first. What is below may have some of another pass of the optimizer, in which a key was another
    /// expression.
    first: usize,
    found: Vec<Expr>,
    is_costly: fn(&str) -> bool,
}

impl SortKeys {
    fn above(input: &LogicalPlan, is_costly: fn(&str) -> bool) -> Self {
        let taken =
            input.schema().fields().iter().filter_map(|field| field.name().strip_prefix(KEY)?.parse::<usize>().ok());
        Self { first: taken.max().map_or(0, |last| last + 1), found: Vec::new(), is_costly }
    }

    /// Returns the column of a key.
    fn column_of(&mut self, key: Expr) -> Expr {
        let place = self.found.iter().position(|known| *known == key).unwrap_or_else(|| {
            self.found.push(key);
            self.found.len() - 1
        });
        Expr::Column(Column::new_unqualified(format!("{KEY}{}", self.first + place)))
    }

    fn columns(self) -> impl Iterator<Item = Expr> {
        let first = self.first;
        self.found.into_iter().enumerate().map(move |(at, key)| key.alias(format!("{KEY}{}", first + at)))
    }
}

/// Returns a function of windows or an aggregate with its keys as columns.
fn with_keys(expr: Expr, unmatched: &HashSet<Column>, keys: &mut SortKeys) -> Transformed<Expr> {
    let before = keys.found.len();
    let expr = match expr {
        Expr::WindowFunction(mut call) => {
            let groups = std::mem::take(&mut call.params.partition_by).into_iter();
            // Partitions need no order.
            let none = HashSet::new();
            call.params.partition_by = groups.map(|group| computed(group, &none, keys).data).collect();
            call.params.order_by = with_sort_keys(std::mem::take(&mut call.params.order_by), unmatched, keys);
            Expr::WindowFunction(call)
        }
        Expr::AggregateFunction(mut call) => {
            let order = std::mem::take(&mut call.params.order_by);
            let written: Vec<Expr> = order.iter().map(|sort| sort.expr.clone()).collect();
            call.params.order_by = with_sort_keys(order, unmatched, keys);
            // Distinct values are sorted by what is aggregated and nothing else.
            if call.params.distinct {
                for arg in &mut call.params.args {
                    if let Some(place) = written.iter().position(|key| key == arg) {
                        *arg = call.params.order_by[place].expr.clone();
                    }
                }
            }
            Expr::AggregateFunction(call)
        }
        other => other,
    };
    Transformed::new_transformed(expr, keys.found.len() > before)
}

fn with_sort_keys(order: Vec<SortExpr>, unmatched: &HashSet<Column>, keys: &mut SortKeys) -> Vec<SortExpr> {
    order.into_iter().map(|sort| SortExpr { expr: computed(sort.expr, unmatched, keys).data, ..sort }).collect()
}

/// Returns the column of a key that has no range, that is costly, or that may be null where DataFusion takes it for a constant, and
/// other keys as they are.
fn computed(key: Expr, unmatched: &HashSet<Column>, keys: &mut SortKeys) -> Transformed<Expr> {
    let may_be_unmatched = !unmatched.is_empty() && key.column_refs().iter().any(|column| unmatched.contains(*column));
    if !may_be_unmatched && !lacks_range(&key) && !is_costly(&key, keys.is_costly) {
        return Transformed::no(key);
    }
    let key = if may_be_unmatched { varying(key) } else { key };
    Transformed::yes(keys.column_of(key))
}

/// Returns an expression of the same values that is no constant whatever it is computed of: the condition always holds.
fn varying(key: Expr) -> Expr {
    let holds = random().gt_eq(lit(0.0_f64));
    Expr::Case(Case::new(None, vec![(Box::new(holds), Box::new(key))], None))
}

fn is_outer_join_or_union(node: &LogicalPlan) -> bool {
    match node {
        LogicalPlan::Union(_) => true,
        LogicalPlan::Join(join) => matches!(join.join_type, JoinType::Left | JoinType::Right | JoinType::Full),
        _ => false,
    }
}

/// Returns the columns of a plan's rows that an outer join in it fills with nulls, that are one value in a part of a union, or
/// that are computed of some.
fn unmatched_columns(plan: &LogicalPlan) -> HashSet<Column> {
    let own = || plan.schema().columns().into_iter();
    match plan {
        LogicalPlan::Join(join) => {
            let (of_left, of_right) = match join.join_type {
                JoinType::Left => (false, true),
                JoinType::Right => (true, false),
                JoinType::Full => (true, true),
                _ => (false, false),
            };
            let of = |input: &LogicalPlan, all: bool| match all {
                true => input.schema().columns().into_iter().collect(),
                false => unmatched_columns(input),
            };
            let mut found: HashSet<Column> = of(&join.left, of_left);
            found.extend(of(&join.right, of_right));
            found
        }
        LogicalPlan::Projection(projection) => {
            let below = unmatched_columns(&projection.input);
            let columns = projection.expr.iter().zip(own()).filter(|(expr, column)| {
                !column.name.starts_with(KEY) && expr.column_refs().iter().any(|inner| below.contains(*inner))
            });
            columns.map(|(_, column)| column).collect()
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let below = unmatched_columns(&alias.input);
            let columns = alias.input.schema().columns().into_iter().zip(own());
            columns.filter(|(inner, _)| below.contains(inner)).map(|(_, column)| column).collect()
        }
        // Groups are values of the rows below; aggregates are computed.
        LogicalPlan::Aggregate(aggregate) => {
            let below = unmatched_columns(&aggregate.input);
            let is_unmatched = |expr: &Expr| expr.column_refs().iter().any(|inner| below.contains(*inner));
            if let [Expr::GroupingSet(_)] = aggregate.group_expr.as_slice() {
                let groups = if below.is_empty() { 0 } else { aggregate.group_expr_len().unwrap_or_default() };
                return own().take(groups).collect();
            }
            let groups = aggregate.group_expr.iter().zip(own()).filter(|(expr, _)| is_unmatched(expr));
            groups.map(|(_, column)| column).collect()
        }
        LogicalPlan::Union(union) => {
            let at = |input: &Arc<LogicalPlan>| {
                let below = unmatched_columns(input);
                let columns = input.schema().columns().into_iter().zip(own());
                let varies = |inner: &Column| below.contains(inner) || may_be_constant(input, inner);
                columns.filter(|(inner, _)| varies(inner)).map(|(_, column)| column).collect::<Vec<_>>()
            };
            union.inputs.iter().flat_map(at).collect()
        }
        other => {
            let below = other.inputs().into_iter().flat_map(unmatched_columns);
            below.filter(|column| other.schema().has_column(column)).collect()
        }
    }
}

/// Whether a column of a plan's rows may be known as one value: it is written, or a condition says it.
fn may_be_constant(plan: &LogicalPlan, column: &Column) -> bool {
    let place = || plan.schema().columns().iter().position(|own| own == column);
    match plan {
        LogicalPlan::Projection(projection) => {
            let expr = place().and_then(|place| projection.expr.get(place));
            expr.is_some_and(|expr| expr.column_refs().iter().all(|inner| may_be_constant(&projection.input, inner)))
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let inner = place().and_then(|place| alias.input.schema().columns().into_iter().nth(place));
            inner.is_some_and(|inner| may_be_constant(&alias.input, &inner))
        }
        LogicalPlan::Filter(filter) => fixes(&filter.predicate, column) || may_be_constant(&filter.input, column),
        LogicalPlan::TableScan(scan) => scan.filters.iter().any(|filter| fixes(filter, column)),
        LogicalPlan::Values(_) | LogicalPlan::EmptyRelation(_) => true,
        // A condition moves below the join later, and what it says of one key is said of the other too.
        LogicalPlan::Join(join) => {
            let is_own = |expr: &Expr| matches!(expr, Expr::Column(own) if own == column);
            join.on.iter().any(|(left, right)| is_own(left) || is_own(right))
                || join.filter.as_ref().is_some_and(|condition| fixes(condition, column))
                || [&join.left, &join.right]
                    .into_iter()
                    .any(|input| input.schema().has_column(column) && may_be_constant(input, column))
        }
        other => {
            other.inputs().into_iter().any(|input| input.schema().has_column(column) && may_be_constant(input, column))
        }
    }
}

/// Whether some part of a condition says what a column is.
fn fixes(condition: &Expr, column: &Column) -> bool {
    let is_column = |expr: &Expr| matches!(expr, Expr::Column(own) if own == column);
    let mut found = false;
    let visited = condition.apply(|part| {
        found |= match part {
            // The optimizer makes an equality of what is denied.
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq | Operator::NotEq, right }) => {
                is_column(left) || is_column(right)
            }
            Expr::InList(list) => is_column(&list.expr),
            Expr::IsNull(inner) => is_column(inner),
            Expr::Not(inner) => matches!(inner.as_ref(), Expr::IsNotNull(denied) if is_column(denied)),
            _ => false,
        };
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    visited.is_err() || found
}

/// Whether some part of a key is a call of a costly function.
fn is_costly(key: &Expr, function: fn(&str) -> bool) -> bool {
    key.exists(|part| Ok(matches!(part, Expr::ScalarFunction(call) if function(call.name())))).unwrap_or(true)
}

/// Whether some part of a key is computed of what has no range of values.
fn lacks_range(key: &Expr) -> bool {
    let mut lacks = false;
    let visited = key.apply(|part| {
        lacks = match part {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
                needs_ranges(*op) && !(has_range(left) && has_range(right))
            }
            Expr::Negative(_) => true,
            _ => false,
        };
        Ok(if lacks { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    visited.is_err() || lacks
}

fn has_range(expr: &Expr) -> bool {
    match expr {
        Expr::Column(_) | Expr::Literal(..) => true,
        Expr::Alias(Alias { expr, .. }) | Expr::Cast(Cast { expr, .. }) => has_range(expr),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => needs_ranges(*op) && has_range(left) && has_range(right),
        _ => false,
    }
}

/// Whether an operator computes its range of those of its operands.
fn needs_ranges(op: Operator) -> bool {
    matches!(
        op,
        Operator::Plus
            | Operator::Minus
            | Operator::Gt
            | Operator::GtEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::And
            | Operator::Or
    )
}

#[cfg(test)]
mod tests {
    use datafusion::functions::expr_fn::character_length;
    use datafusion::prelude::col;

    use super::*;

    #[test]
    fn keys_that_are_computed_of_functions_have_no_range() {
        let length = || character_length(col("b"));
        assert!(!lacks_range(&length()));
        assert!(!lacks_range(&(col("a") + lit(1)).gt(col("c"))));
        assert!(!lacks_range(&length().eq(lit(1))));
        assert!(lacks_range(&length().gt(col("a"))));
        assert!(lacks_range(&(col("a") * col("a")).lt(lit(1))));
        assert!(lacks_range(&Expr::Negative(Box::new(length()))));
        assert!(lacks_range(&length().gt(lit(1)).is_null()));
    }

    #[test]
    fn columns_that_are_one_value_in_a_part_of_a_union_are_known() {
        let tagged =
            |tag: i64| LogicalPlanBuilder::empty(true).project([lit(tag).alias("tag")]).unwrap().build().unwrap();
        let both = LogicalPlanBuilder::from(tagged(1)).union(tagged(2)).unwrap().build().unwrap();
        assert_eq!(unmatched_columns(&both).len(), 1);
        let condition = col("a").eq(lit(1)).and(col("b").gt(lit(2)));
        assert!(fixes(&condition, &Column::from_name("a")) && !fixes(&condition, &Column::from_name("b")));
    }

    #[test]
    fn columns_of_rows_without_a_match_are_known_through_the_plan() {
        let one = |name: &str| LogicalPlanBuilder::empty(true).project([lit(1).alias(name)]).unwrap().build().unwrap();
        let joined = |kind| {
            let on = (vec![Column::from_name("a")], vec![Column::from_name("b")]);
            let both = LogicalPlanBuilder::from(one("a")).join(one("b"), kind, on, None).unwrap();
            both.project([(col("b") + lit(1)).alias("c"), col("a")]).unwrap().build().unwrap()
        };
        let names = |kind| {
            let mut names: Vec<String> =
                unmatched_columns(&joined(kind)).into_iter().map(|column| column.name).collect();
            names.sort_unstable();
            names
        };
        assert_eq!(names(JoinType::Left), ["c"]);
        assert_eq!(names(JoinType::Right), ["a"]);
        assert_eq!(names(JoinType::Full), ["a", "c"]);
        assert!(names(JoinType::Inner).is_empty());
    }
}
