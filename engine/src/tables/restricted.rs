//! A table of which its caller sees a part: rows that policies leave, columns that are granted, values behind masks.
//!
//! The part is a plan of its own, which is made and optimised when it is scanned, behind an operator that nothing is pushed
//! through. What a statement says is evaluated on the rows that are there and on no other one: a division by zero, a cast or a
//! function that fails says nothing of a hidden row. Of the statement's conditions those that cannot fail are also used to
//! read less, and its columns and limit are.
//!
//! Nothing is known of the rows before they are read: the statistics of the files are those of other rows too. Nor is anything
//! left of what is hidden in the buffers of the rows ([`shown_values`]), and a condition that fails does not say on which value.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::Column;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, Operator, TableProviderFilterPushDown, TableType,
};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, Partitioning, PlanProperties,
};
use futures::StreamExt;

use super::shown_values::shown_values;
use crate::error::EngineError;
use crate::limits::ScanBudget;

/// A part of a table.
pub(crate) struct RestrictedTable {
    /// What of the table is there; its columns are those that the caller sees.
    plan: LogicalPlan,
    schema: SchemaRef,
    /// The columns that are read as they are, by which a scan may be told what is not wanted.
    plain: BTreeSet<String>,
}

impl RestrictedTable {
    /// Makes the table of a plan whose columns have the names of the table's. `plain` are those that the plan does not change.
    pub(crate) fn new(plan: LogicalPlan, plain: BTreeSet<String>) -> Self {
        let schema = Arc::clone(plan.schema().inner());
        Self { plan, schema, plain }
    }

    /// Returns whether the part reads one table and nothing that was worked out when it was planned, such as a series.
    pub(crate) fn scans_tables_only(&self) -> bool {
        let mut scans = 0;
        let visited = self.plan.apply_with_subqueries(|node| {
            scans += usize::from(matches!(node, LogicalPlan::TableScan(_)));
            Ok(TreeNodeRecursion::Continue)
        });
        visited.is_ok() && scans == 1
    }

    /// Counts the whole part in the statement's budget, whatever the statement's conditions, which would otherwise find out
    /// what is in files whose rows are not there for it. Returns the state to plan with further, in which nothing counts.
    async fn count(&self, state: &dyn Session) -> Result<Option<SessionState>> {
        let Some(budget) = ScanBudget::of(state) else { return Ok(None) };
        let Some(state) = state.as_any().downcast_ref::<SessionState>() else { return Ok(None) };
        let (mut state, hidden) = (state.clone(), Arc::new(ScanBudget::default()));
        state.config_mut().set_extension(Arc::clone(&hidden));
        state.create_physical_plan(&self.plan).await.map_err(without_policies)?;
        budget.count_hidden(&hidden);
        Ok(Some(state))
    }

    /// Whether a condition of a statement may be evaluated on rows that are not there: it cannot fail, whatever the row.
    fn is_harmless(&self, filter: &Expr) -> bool {
        let mut is_harmless = true;
        let visited = filter.apply(|expr| {
            let known = match expr {
                Expr::Column(column) => self.plain.contains(column.name()),
                // A parameter is a literal once the table is scanned.
                Expr::Literal(..)
                | Expr::Placeholder(_)
                | Expr::IsNull(_)
                | Expr::IsNotNull(_)
                | Expr::Not(_)
                | Expr::Between(_)
                | Expr::InList(_) => true,
                Expr::BinaryExpr(binary) => matches!(
                    binary.op,
                    Operator::Eq
                        | Operator::NotEq
                        | Operator::Lt
                        | Operator::LtEq
                        | Operator::Gt
                        | Operator::GtEq
                        | Operator::And
                        | Operator::Or
                ),
                _ => false,
            };
            is_harmless = known;
            Ok(if known { TreeNodeRecursion::Continue } else { TreeNodeRecursion::Stop })
        });
        visited.is_ok() && is_harmless
    }
}

impl fmt::Debug for RestrictedTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither the conditions nor the hidden columns are for whoever prints it.
        f.debug_struct("RestrictedTable").finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProvider for RestrictedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let answer = |filter: &&Expr| match self.is_harmless(filter) {
            true => TableProviderFilterPushDown::Inexact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(answer).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let unbounded = self.count(state).await?;
        let state = unbounded.as_ref().map_or(state, |state| state as &dyn Session);
        let mut plan = LogicalPlanBuilder::from(self.plan.clone());
        let harmless: Vec<Expr> = filters.iter().filter(|filter| self.is_harmless(filter)).cloned().collect();
        if let Some(wanted) = conjunction(harmless) {
            plan = plan.filter(wanted)?;
        }
        let mut schema = Arc::clone(&self.schema);
        if let Some(projection) = projection {
            schema = Arc::new(schema.project(projection)?);
            let columns = schema.fields().iter().map(|field| Expr::Column(Column::from_name(field.name())));
            plan = plan.project(columns.collect::<Vec<_>>())?;
        }
        // A limit counts rows that are there, and those that a condition above takes away are not asked for here.
        if let Some(limit) = limit.filter(|_| filters.is_empty()) {
            plan = plan.limit(0, Some(limit))?;
        }
        let input = state.create_physical_plan(&plan.build()?).await.map_err(without_policies)?;
        Ok(Arc::new(RestrictedExec::new(input, schema)))
    }
}

/// The operator that nothing is pushed through: no filter, projection, limit or sort of the statement reaches what is below,
/// and no statistics what is above.
#[derive(Debug)]
pub(crate) struct RestrictedExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl RestrictedExec {
    /// Stands above `input`, whose columns it gives the types of `schema`.
    pub(crate) fn new(input: Arc<dyn ExecutionPlan>, schema: SchemaRef) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Self { input, properties: Arc::new(properties) }
    }
}

impl DisplayAs for RestrictedExec {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("RestrictedExec")
    }
}

impl ExecutionPlan for RestrictedExec {
    fn name(&self) -> &'static str {
        "RestrictedExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = self.schema();
        match <[_; 1]>::try_from(children) {
            Ok([input]) => Ok(Arc::new(Self::new(input, schema))),
            Err(_) => Err(DataFusionError::Internal("a restricted table has one input".into())),
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        let announced = Arc::clone(&schema);
        // Optimising the part alone may have found that a column has no nulls; the statement was planned without that.
        let rows = self.input.execute(partition, context)?.map(move |batch| {
            let batch = batch.map_err(without_values)?;
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            let columns = batch.columns().iter().map(shown_values).collect::<Result<Vec<_>, ArrowError>>()?;
            Ok(RecordBatch::try_new_with_options(Arc::clone(&announced), columns, &options)?)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}

/// Returns the error of planning a part without what it says of conditions and masks, which were planned when they were written.
fn without_policies(error: DataFusionError) -> DataFusionError {
    let tells = matches!(
        error.find_root(),
        DataFusionError::Plan(_) | DataFusionError::NotImplemented(_) | DataFusionError::SchemaError(..)
    );
    if !tells {
        return error;
    }
    tracing::warn!(%error, "a policy cannot be applied");
    EngineError::NotAllowed {
        what: "reading a table".to_owned(),
        why: ": one of its policies cannot be applied; an administrator finds it in the server's log".to_owned(),
    }
    .into()
}

/// Returns the error of a condition or a mask without the value that it fails on, which may be one of a hidden row.
fn without_values(error: DataFusionError) -> DataFusionError {
    let tells = match error.find_root() {
        DataFusionError::Execution(_) => true,
        DataFusionError::ArrowError(inner, _) => matches!(
            inner.as_ref(),
            ArrowError::CastError(_)
                | ArrowError::ParseError(_)
                | ArrowError::ComputeError(_)
                | ArrowError::InvalidArgumentError(_)
                | ArrowError::ArithmeticOverflow(_)
        ),
        DataFusionError::External(inner) => {
            matches!(inner.downcast_ref::<EngineError>(), Some(EngineError::InvalidValue { .. }))
        }
        _ => false,
    };
    if !tells {
        return error;
    }
    tracing::warn!(%error, "a condition or a mask of a policy fails on a row");
    let message = "a policy of a table fails on a row; an administrator finds it in the server's log".to_owned();
    EngineError::InvalidValue { message }.into()
}
