//! Operators that are written as one of ours, with the definitions of their functions.
//!
//! datafusion-distributed combines codecs so that a function is only ever sent as a name. An operator with a function that is
//! more than its name is enclosed once the stages are made: it is written whole by our own codec, over places for its inputs,
//! and is read as what it was. Here it acts as the operator inside.

use std::fmt;
use std::sync::Arc;

use datafusion::common::{Statistics, internal_err};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, with_new_children_if_necessary,
};
use datafusion_distributed::NetworkBoundaryExt;
use datafusion_proto::physical_plan::AsExecutionPlan;
use datafusion_proto::protobuf::PhysicalPlanNode;

use super::codec::PlanCodec;

/// The operators that have expressions, without those that share rows out: at a stage's head these are made again, of their
/// expressions alone.
const WITH_EXPRESSIONS: [&str; 10] = [
    "AggregateExec",
    "BoundedWindowAggExec",
    "FilterExec",
    "HashJoinExec",
    "NestedLoopJoinExec",
    "ProjectionExec",
    "SortExec",
    "SortExec(TopK)",
    "SortPreservingMergeExec",
    "WindowAggExec",
];

/// An operator that is written with the definitions of its functions.
#[derive(Debug)]
pub(super) struct EnclosedExec {
    operator: Arc<dyn ExecutionPlan>,
}

/// Stands for an input of an operator that is written alone.
#[derive(Debug)]
pub(super) struct InputPlaceExec {
    index: u8,
    properties: Arc<PlanProperties>,
}

/// Returns a plan with stages, whose operators are ready to be sent.
pub(crate) fn ready_to_send(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    enclosed(plan, false)
}

/// Returns a plan whose operators are enclosed where they have to be, all of them or those below stages' boundaries.
pub(super) fn enclosed(plan: Arc<dyn ExecutionPlan>, is_sent: bool) -> Result<Arc<dyn ExecutionPlan>> {
    let are_inputs_sent = is_sent || plan.as_ref().is_network_boundary();
    let inputs: Vec<Arc<dyn ExecutionPlan>> = plan.children().into_iter().map(Arc::clone).collect();
    let inputs = inputs.into_iter().map(|input| enclosed(input, are_inputs_sent)).collect::<Result<_>>()?;
    let node = with_new_children_if_necessary(plan, inputs)?;
    if is_sent && WITH_EXPRESSIONS.contains(&node.name()) && has_definitions(&node)? {
        return Ok(Arc::new(EnclosedExec { operator: node }));
    }
    Ok(node)
}

/// Returns whether an operator has functions that a name does not say all of.
pub(super) fn has_definitions(node: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let codec = PlanCodec::trusting();
    written_alone(node, &codec)?;
    Ok(codec.has_definitions())
}

fn written_alone(node: &Arc<dyn ExecutionPlan>, codec: &PlanCodec) -> Result<PhysicalPlanNode> {
    let places = node.children().into_iter().enumerate().map(|(index, input)| InputPlaceExec::of_input(index, input));
    let places = places.collect::<Result<Vec<_>>>()?;
    let alone = if places.is_empty() { Arc::clone(node) } else { Arc::clone(node).with_new_children(places)? };
    PhysicalPlanNode::try_from_physical_plan(alone, codec)
}

impl EnclosedExec {
    /// Returns an operator that ends no stage, whatever it is.
    pub(super) fn around(operator: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        Arc::new(Self { operator })
    }

    /// Returns the operator over places for its inputs.
    pub(super) fn written(&self, codec: &PlanCodec) -> Result<PhysicalPlanNode> {
        written_alone(&self.operator, codec)
    }
}

impl InputPlaceExec {
    fn of_input(index: usize, input: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let Ok(index) = u8::try_from(index) else { return internal_err!("an operator with {index} inputs") };
        Ok(Arc::new(Self { index, properties: Arc::clone(input.properties()) }))
    }

    /// Returns a place whose rows nothing is known of but their columns.
    pub(super) fn received(input: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
        let properties = PlanProperties::clone(input.properties());
        let properties = properties.with_eq_properties(EquivalenceProperties::new(input.schema()));
        Arc::new(Self { index: 0, properties: Arc::new(properties) })
    }

    pub(super) fn index(&self) -> u8 {
        self.index
    }
}

impl DisplayAs for EnclosedExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.operator.fmt_as(format, f)
    }
}

impl ExecutionPlan for EnclosedExec {
    fn name(&self) -> &str {
        self.operator.name()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.operator.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.operator.maintains_input_order()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.operator.children()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self { operator: Arc::clone(&self.operator).with_new_children(children)? }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.operator.execute(partition, context)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.operator.metrics()
    }

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        self.operator.partition_statistics(partition)
    }
}

impl DisplayAs for InputPlaceExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InputPlaceExec: {}", self.index)
    }
}

impl ExecutionPlan for InputPlaceExec {
    fn name(&self) -> &'static str {
        "InputPlaceExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() { Ok(self) } else { internal_err!("a place for an input has no children") }
    }

    fn execute(&self, _partition: usize, _context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        internal_err!("a place for an input is not executed")
    }
}
