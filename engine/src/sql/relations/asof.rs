//! Joins ASOF: with each row of the left side the one row of the right side that is nearest in an order. Both sides are
//! sorted together once, and each left row takes the last right row that it meets.

use std::sync::Arc;

use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::functions::core::expr_fn::{get_field, named_struct};
use datafusion::functions_window::nth_value::last_value_udwf;
use datafusion::logical_expr::expr::{NullTreatment, WindowFunction};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    BinaryExpr, Expr as Planned, ExprFunctionExt, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Operator,
    WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition, lit,
};
use datafusion::sql::sqlparser::ast::Expr;

use super::{Context, malformed, relations_of, subquery};
use crate::error::EngineError;
use crate::identifiers::same_name;
use crate::sql::syntax::text_of;

const USAGE: &str =
    "an ASOF JOIN is on equalities and one inequality of both sides: ON a.key = b.key AND a.time >= b.time";
const TIME: &str = "__asof_time";
const SIDE: &str = "__asof_side";
const LEFT: &str = "__asof_left";
const RIGHT: &str = "__asof_right";
const FOUND: &str = "__asof_found";

/// What the sides are compared by: expressions over the left side, and over the right.
struct Comparison {
    keys: Vec<(Planned, Planned)>,
    left_time: Planned,
    /// Between the left time and the right one.
    op: Operator,
    right_time: Planned,
    /// Columns that are once in the result.
    merged: Vec<String>,
}

/// Plans `asof((SELECT * FROM left), (SELECT * FROM right), condition or columns, 'inner' or 'left')`.
pub(super) fn plan(args: &[Expr], context: &mut Context<'_>) -> Result<LogicalPlan> {
    let [left, right, condition, kind] = args else { return Err(malformed(USAGE)) };
    let relation = |side: &Expr| subquery(side).and_then(relations_of).ok_or_else(|| malformed(USAGE));
    let (left, right) = (context.plan(relation(left)?)?, context.plan(relation(right)?)?);
    let comparison = match condition {
        Expr::Tuple(columns) => comparison_of_columns(columns, &left, &right)?,
        condition => {
            let schema = left.schema().join(right.schema())?;
            let condition = context.sql_to_expr(condition.clone(), &schema)?;
            let using = [Default::default()];
            let schemas = [&[&schema][..]];
            let condition = datafusion::logical_expr::expr_rewriter::normalize_col_with_schemas_and_ambiguity_check(
                condition, &schemas, &using,
            )?;
            comparison_of(&condition, left.schema(), right.schema())?
        }
    };
    joined(left, right, comparison, text_of(kind) == Some("left"))
}

fn comparison_of_columns(columns: &[Expr], left: &LogicalPlan, right: &LogicalPlan) -> Result<Comparison> {
    let pair = |column: &Expr| -> Result<(String, Planned, Planned)> {
        let Expr::Identifier(ident) = column else { return Err(malformed(USAGE)) };
        let find = |schema: &DFSchema| -> Result<Planned> {
            let found = schema.columns().into_iter().find(|column| same_name(&column.name, &ident.value));
            let message = || format!("both sides of an ASOF JOIN need the column `{}`", ident.value);
            Ok(Planned::Column(found.ok_or_else(|| EngineError::Plan { message: message() })?))
        };
        Ok((ident.value.clone(), find(left.schema())?, find(right.schema())?))
    };
    let mut pairs = columns.iter().map(pair).collect::<Result<Vec<_>>>()?;
    let merged = pairs.iter().map(|(name, _, _)| name.clone()).collect();
    let Some((_, left_time, right_time)) = pairs.pop() else { return Err(malformed(USAGE)) };
    let keys = pairs.into_iter().map(|(_, left, right)| (left, right)).collect();
    Ok(Comparison { keys, left_time, op: Operator::GtEq, right_time, merged })
}

fn comparison_of(condition: &Planned, left: &DFSchema, right: &DFSchema) -> Result<Comparison> {
    let belongs = |expr: &Planned, schema: &DFSchema| expr.column_refs().iter().all(|column| schema.has_column(column));
    let mut keys = Vec::new();
    let mut time = None;
    for part in split_conjunction(condition) {
        let Planned::BinaryExpr(BinaryExpr { left: first, op, right: second }) = part else {
            return Err(malformed(USAGE));
        };
        let (own, other, op) = if belongs(first, left) && belongs(second, right) {
            (first, second, Some(*op))
        } else if belongs(second, left) && belongs(first, right) {
            (second, first, op.swap())
        } else {
            return Err(malformed(USAGE));
        };
        let (own, other) = (own.as_ref().clone(), other.as_ref().clone());
        match op {
            Some(Operator::Eq) => keys.push((own, other)),
            Some(op @ (Operator::Gt | Operator::GtEq | Operator::Lt | Operator::LtEq)) if time.is_none() => {
                time = Some((own, op, other));
            }
            _ => return Err(malformed(USAGE)),
        }
    }
    let Some((left_time, op, right_time)) = time else { return Err(malformed(USAGE)) };
    Ok(Comparison { keys, left_time, op, right_time, merged: Vec::new() })
}

fn joined(left: LogicalPlan, right: LogicalPlan, comparison: Comparison, keeps_unmatched: bool) -> Result<LogicalPlan> {
    let Comparison { keys, left_time, op, right_time, merged } = comparison;
    let key_name = |index: usize| format!("__asof_key{index}");
    // A left row meets right rows of the same time first, where they count, or last, where they do not.
    let (left_side, right_side) = if matches!(op, Operator::GtEq | Operator::LtEq) { (1_i32, 0_i32) } else { (0, 1) };
    let ascending = matches!(op, Operator::Gt | Operator::GtEq);

    let (left_row, right_row) = (row_of(left.schema()), row_of(right.schema()));
    let no_left = lit(ScalarValue::try_from(left_row.get_type(left.schema())?)?);
    let no_right = lit(ScalarValue::try_from(right_row.get_type(right.schema())?)?);
    let mut left_columns = Vec::new();
    let mut right_columns = Vec::new();
    let mut right_filter = right_time.clone().is_not_null();
    for (index, (left_key, right_key)) in keys.iter().enumerate() {
        let (own, other) = same_type(left_key, left.schema(), right_key, right.schema())?;
        left_columns.push(own.alias(key_name(index)));
        right_columns.push(other.alias(key_name(index)));
        right_filter = right_filter.and(right_key.clone().is_not_null());
    }
    let (own, other) = same_type(&left_time, left.schema(), &right_time, right.schema())?;
    left_columns.extend([own.alias(TIME), lit(left_side).alias(SIDE), left_row.alias(LEFT), no_right.alias(RIGHT)]);
    right_columns.extend([other.alias(TIME), lit(right_side).alias(SIDE), no_left.alias(LEFT), right_row.alias(RIGHT)]);

    let (left_schema, right_schema) = (Arc::clone(left.schema()), Arc::clone(right.schema()));
    let left = LogicalPlanBuilder::from(left).project(left_columns)?.build()?;
    let right = LogicalPlanBuilder::from(right).filter(right_filter)?.project(right_columns)?.build()?;
    let own = |name: &str| Planned::Column(Column::from_name(name));
    let last =
        Planned::from(WindowFunction::new(WindowFunctionDefinition::WindowUDF(last_value_udwf()), vec![own(RIGHT)]))
            .partition_by((0..keys.len()).map(|index| own(&key_name(index))).collect())
            .order_by(vec![own(TIME).sort(ascending, false), own(SIDE).sort(true, false)])
            .window_frame(WindowFrame::new_bounds(
                WindowFrameUnits::Rows,
                WindowFrameBound::Preceding(ScalarValue::UInt64(None)),
                WindowFrameBound::CurrentRow,
            ))
            .null_treatment(NullTreatment::IgnoreNulls)
            .build()?
            .alias(FOUND);
    let builder = LogicalPlanBuilder::from(left).union(right)?.window([last])?.filter(own(SIDE).eq(lit(left_side)))?;
    let builder = match keeps_unmatched {
        true => builder,
        false => builder.filter(own(FOUND).is_not_null().and(own(TIME).is_not_null()))?,
    };
    let mut columns = fields_of(LEFT, &left_schema, &[]);
    let found = fields_of(FOUND, &right_schema, &merged);
    columns.extend(
        found
            .into_iter()
            .map(|column| match (keeps_unmatched, column) {
                // A left row without a time has no neighbour.
                (true, Planned::Alias(alias)) => {
                    let value = datafusion::logical_expr::when(own(TIME).is_not_null(), *alias.expr).end()?;
                    Ok(value.alias_qualified(alias.relation, alias.name))
                }
                (_, column) => Ok(column),
            })
            .collect::<Result<Vec<_>>>()?,
    );
    builder.project(columns)?.build()
}

/// Returns both with one type, which comparisons and the union need.
fn same_type(
    left: &Planned,
    left_schema: &DFSchema,
    right: &Planned,
    right_schema: &DFSchema,
) -> Result<(Planned, Planned)> {
    let (own, other) = (left.get_type(left_schema)?, right.get_type(right_schema)?);
    let common = datafusion::logical_expr::type_coercion::binary::comparison_coercion(&own, &other);
    let Some(common) = common else {
        return Err(EngineError::Plan { message: "the two sides of an ASOF JOIN do not compare".into() }.into());
    };
    Ok((left.clone().cast_to(&common, left_schema)?, right.clone().cast_to(&common, right_schema)?))
}

/// A whole row as one value, with fields by position: two columns may have one name.
fn row_of(schema: &DFSchema) -> Planned {
    let columns = schema.columns().into_iter().enumerate();
    named_struct(columns.flat_map(|(index, column)| [lit(format!("c{index}")), Planned::Column(column)]).collect())
}

/// The columns of a row, under their names.
fn fields_of(row: &str, schema: &DFSchema, without: &[String]) -> Vec<Planned> {
    let kept = |name: &str| !without.iter().any(|merged| same_name(merged, name));
    let columns = schema.iter().enumerate().filter(|(_, (_, field))| kept(field.name()));
    columns
        .map(|(index, (qualifier, field))| {
            let row = Planned::Column(Column::from_name(row));
            get_field(row, format!("c{index}")).alias_qualified(qualifier.cloned(), field.name())
        })
        .collect()
}
