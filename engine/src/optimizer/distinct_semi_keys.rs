//! Semi-joins and anti-joins by keys that come often. DataFusion's hash join meets each pair of rows with the same key, though one
//! decides: `WHERE k IN (SELECT k FROM events)` of a key that a million rows have is a million times a million pairs.
//!
//! The side that only filters gets an aggregation that leaves a key out which it has had, as far as it is one that comes again:
//! DataFusion's first step of an aggregation hands rows on as they are where it finds that most of their keys are new.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{ColumnStatistics, JoinType};
use datafusion::error::Result;
use datafusion::physical_expr::PhysicalExprRef;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion::physical_plan::joins::{HashJoinExec, HashJoinExecBuilder};
use datafusion::physical_plan::projection::ProjectionExec;

/// Rows of one key, on average, up to which the side that filters stays as it is.
const FEW_ROWS: f64 = 2.0;
/// The same of the side that is filtered, where it is the one that is built: each row of the other meets so many.
const SOME_ROWS: f64 = 8.0;

/// Leaves keys out that a side which only filters has had. It comes after the rule that chooses sides.
#[derive(Debug)]
pub(crate) struct DistinctSemiKeys;

impl PhysicalOptimizerRule for DistinctSemiKeys {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let distinct = |node: Arc<dyn ExecutionPlan>| {
            Ok(match node.downcast_ref::<HashJoinExec>().map(with_distinct_keys).transpose()?.flatten() {
                Some(join) => Transformed::yes(join),
                None => Transformed::no(node),
            })
        };
        plan.transform_up(distinct).data()
    }

    fn name(&self) -> &str {
        "distinct_semi_keys"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn with_distinct_keys(join: &HashJoinExec) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let filters_left = match join.join_type() {
        JoinType::LeftSemi | JoinType::LeftAnti => true,
        JoinType::RightSemi | JoinType::RightAnti => false,
        _ => return Ok(None),
    };
    if join.filter().is_some() || join.on().is_empty() {
        return Ok(None);
    }
    let (left_keys, right_keys): (Vec<_>, Vec<_>) = join.on().iter().cloned().unzip();
    // The left side is the one that is built.
    let (filter, keys) = if filters_left { (join.right(), &right_keys) } else { (join.left(), &left_keys) };
    let meets_many = !filters_left || rows_of_key(join.left(), &left_keys).is_none_or(|rows| rows >= SOME_ROWS);
    let repeats = rows_of_key(filter, keys).is_none_or(|rows| rows > FEW_ROWS);
    if !meets_many || !repeats || is_distinct(filter, keys.len()) || !have_one_spelling(filter, keys)? {
        return Ok(None);
    }
    let named: Vec<(PhysicalExprRef, String)> = (0..keys.len()).map(|index| named_key(filter, keys, index)).collect();
    let columns =
        named.iter().enumerate().map(|(index, (_, name))| Arc::new(Column::new(name, index)) as PhysicalExprRef);
    let columns: Vec<PhysicalExprRef> = columns.collect();
    let distinct = AggregateExec::try_new(
        AggregateMode::Partial,
        PhysicalGroupBy::new_single(named),
        Vec::new(),
        Vec::new(),
        Arc::clone(filter),
        filter.schema(),
    )?;
    let distinct: Arc<dyn ExecutionPlan> = Arc::new(distinct);
    let (left, right, on) = if filters_left {
        (Arc::clone(join.left()), distinct, left_keys.into_iter().zip(columns).collect::<Vec<_>>())
    } else {
        (distinct, Arc::clone(join.right()), columns.into_iter().zip(right_keys).collect::<Vec<_>>())
    };
    let built = HashJoinExecBuilder::new(left, right, on, *join.join_type())
        .with_projection_ref(join.projection.clone())
        .with_partition_mode(*join.partition_mode())
        .with_null_equality(join.null_equality())
        .with_null_aware(join.null_aware)
        .with_fetch(join.fetch())
        .build_exec()?;
    Ok(Some(built))
}

/// Returns one of the keys with its name in the rows that are left. A column keeps its own where no other has it: by that name the
/// join's filter is handed on to what is read.
fn named_key(plan: &Arc<dyn ExecutionPlan>, keys: &[PhysicalExprRef], index: usize) -> (PhysicalExprRef, String) {
    let key = &keys[index];
    let name = |key: &PhysicalExprRef| key.downcast_ref::<Column>().map(|column| column.name().to_owned());
    let is_alone = |own: &str| {
        let fields = plan.schema().fields().iter().filter(|field| field.name() == own).count();
        fields == 1 && keys.iter().filter(|other| name(other).as_deref() == Some(own)).count() == 1
    };
    let own = name(key).filter(|own| is_alone(own));
    (Arc::clone(key), own.unwrap_or_else(|| format!("{key}#{index}")))
}

/// Returns how many rows one key is thought to have; `None` where nothing is known of it.
fn rows_of_key(plan: &Arc<dyn ExecutionPlan>, keys: &[PhysicalExprRef]) -> Option<f64> {
    let statistics = plan.partition_statistics(None).ok()?;
    let rows = *statistics.num_rows.get_value()? as f64;
    let mut distinct = 1.0;
    for key in keys {
        let column = key.downcast_ref::<Column>()?;
        distinct *= distinct_values(statistics.column_statistics.get(column.index())?)?;
    }
    Some(rows / distinct.min(rows).max(1.0))
}

/// Returns the values that a column is thought to have: those that were counted, or all that lie between its bounds.
fn distinct_values(column: &ColumnStatistics) -> Option<f64> {
    if let Some(count) = column.distinct_count.get_value() {
        return Some(*count as f64);
    }
    let (least, greatest) = (column.min_value.get_value()?, column.max_value.get_value()?);
    Some(greatest.distance(least)? as f64 + 1.0)
}

/// Returns whether a plan's rows are groups by as many values as there are keys, of which they have each once.
fn is_distinct(plan: &Arc<dyn ExecutionPlan>, keys: usize) -> bool {
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        return is_distinct(projection.input(), keys);
    }
    plan.downcast_ref::<AggregateExec>()
        .is_some_and(|groups| *groups.mode() != AggregateMode::Partial && groups.group_expr().expr().len() == keys)
}

/// Returns whether two keys that are equal are the same value; zeros and NaN of floats are not.
fn have_one_spelling(plan: &Arc<dyn ExecutionPlan>, keys: &[PhysicalExprRef]) -> Result<bool> {
    let schema = plan.schema();
    for key in keys {
        let data_type = key.data_type(&schema)?;
        let is_plain = data_type.is_integer()
            || data_type.is_decimal()
            || data_type.is_temporal()
            || matches!(
                data_type,
                DataType::Boolean
                    | DataType::Utf8
                    | DataType::LargeUtf8
                    | DataType::Utf8View
                    | DataType::Binary
                    | DataType::LargeBinary
                    | DataType::BinaryView
            );
        if !is_plain {
            return Ok(false);
        }
    }
    Ok(true)
}
