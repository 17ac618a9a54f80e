//! Writes and reads the operators that are not DataFusion's, and the functions that names do not say all of
//! (`functions.rs`).
//!
//! Functions travel by name where both sides mean the same by it (`functions_of_plans`); a plan with one that neither
//! travels so nor can be written down stays where it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::common::{DataFusionError, exec_err, not_impl_err};
use datafusion::error::Result;
use datafusion::execution::{SessionState, TaskContext};
use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion_proto::physical_plan::{AsExecutionPlan, PhysicalExtensionCodec};
use datafusion_proto::protobuf::PhysicalPlanNode;

use super::enclosed::{EnclosedExec, InputPlaceExec};
use super::functions::{
    NamedFunctions, aggregate_definition, defined_aggregate, defined_scalar, defined_window, scalar_definition,
    window_definition,
};
use super::portable_scan::PortableScanExec;
use crate::functions::is_checked_sum;
use crate::governor::{ungoverned_aggregate, ungoverned_window_function};
use crate::limits::{
    charged_again, checked_width, is_charged, is_checked_width, pace_mark, paced_again, window_mark,
    window_watched_again,
};
use crate::tables::restricted::RestrictedExec;

const SCAN: u8 = 1;
const RESTRICTED: u8 = 2;
const PACED: u8 = 3;
const CHARGED: u8 = 4;
const WINDOW: u8 = 5;
const ENCLOSED: u8 = 6;
const INPUT_PLACE: u8 = 7;
const WIDTH: u8 = 8;

/// The codec of our operators.
#[derive(Debug, Default)]
pub(crate) struct PlanCodec {
    /// What functions are compared with while they are written; `None`: they have been.
    compared: Option<NamedFunctions>,
    /// What the operator that is read has for inputs, and what definitions of its functions name.
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    named: NamedFunctions,
    /// Whether a function had to be written down.
    has_definitions: AtomicBool,
}

impl PlanCodec {
    /// A codec for plans that have been checked.
    pub(crate) fn trusting() -> Self {
        Self::default()
    }

    /// A codec that fails on a function that neither is the one of its name nor can be written down.
    pub(super) fn checking(state: &SessionState) -> Self {
        Self { compared: Some(NamedFunctions::of_state(state)), ..Self::default() }
    }

    /// A codec that reads one operator over these inputs.
    fn over_inputs(inputs: &[Arc<dyn ExecutionPlan>], context: &TaskContext) -> Self {
        Self { inputs: inputs.to_vec(), named: NamedFunctions::of_task(context), ..Self::default() }
    }

    /// Returns whether a function had to be written down.
    pub(super) fn has_definitions(&self) -> bool {
        self.has_definitions.load(Ordering::Relaxed)
    }

    fn define(&self, definition: Vec<u8>, buf: &mut Vec<u8>) {
        self.has_definitions.store(true, Ordering::Relaxed);
        buf.extend(definition);
    }
}

impl PhysicalExtensionCodec for PlanCodec {
    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (buf.split_first(), inputs) {
            (Some((&SCAN, rest)), []) => Ok(Arc::new(PortableScanExec::read(rest, context)?)),
            (Some((&RESTRICTED, rest)), [input]) => {
                let schema = PhysicalPlanNode::try_decode(rest)?.try_into_physical_plan(context, self)?.schema();
                Ok(Arc::new(RestrictedExec::new(Arc::clone(input), schema)))
            }
            (Some((&PACED, mark)), [input]) => paced_again(mark, input),
            (Some((&CHARGED, [])), [input]) => Ok(charged_again(input)),
            (Some((&WIDTH, [])), [input]) => Ok(checked_width(input)),
            (Some((&WINDOW, mark)), [input]) => window_watched_again(mark, input),
            (Some((&ENCLOSED, rest)), inputs) => {
                let codec = Self::over_inputs(inputs, context);
                PhysicalPlanNode::try_decode(rest)?.try_into_physical_plan(context, &codec)
            }
            (Some((&INPUT_PLACE, &[index])), []) => match self.inputs.get(usize::from(index)) {
                Some(input) => Ok(Arc::clone(input)),
                None => exec_err!("an operator without its input"),
            },
            _ => exec_err!("an operator that this version does not know"),
        }
    }

    fn try_encode(&self, node: Arc<dyn ExecutionPlan>, buf: &mut Vec<u8>) -> Result<()> {
        if let Some(scan) = node.downcast_ref::<PortableScanExec>() {
            buf.push(SCAN);
            return scan.write(buf);
        }
        if node.is::<RestrictedExec>() {
            buf.push(RESTRICTED);
            let schema = Arc::new(EmptyExec::new(node.schema()));
            return PhysicalPlanNode::try_from_physical_plan(schema, self)?.try_encode(buf);
        }
        if let Some(mark) = pace_mark(&node) {
            buf.push(PACED);
            buf.extend(mark);
            return Ok(());
        }
        if is_charged(&node) {
            buf.push(CHARGED);
            return Ok(());
        }
        if is_checked_width(&node) {
            buf.push(WIDTH);
            return Ok(());
        }
        if let Some(mark) = window_mark(&node) {
            buf.extend([WINDOW, mark]);
            return Ok(());
        }
        if let Some(enclosed) = node.downcast_ref::<EnclosedExec>() {
            buf.push(ENCLOSED);
            return enclosed.written(self)?.try_encode(buf);
        }
        if let Some(place) = node.downcast_ref::<InputPlaceExec>() {
            buf.extend([INPUT_PLACE, place.index()]);
            return Ok(());
        }
        not_impl_err!("the operator {} does not travel", node.name())
    }

    fn try_encode_udf(&self, function: &ScalarUDF, buf: &mut Vec<u8>) -> Result<()> {
        if let Some(definition) = scalar_definition(function)? {
            self.define(definition, buf);
            return Ok(());
        }
        match &self.compared {
            Some(known) if !known.has_scalar(function) => Err(stays("function", function.name())),
            _ => Ok(()),
        }
    }

    fn try_decode_udf(&self, name: &str, buf: &[u8]) -> Result<Arc<ScalarUDF>> {
        if buf.is_empty() { exec_err!("no function {name}") } else { defined_scalar(buf) }
    }

    fn try_encode_udaf(&self, function: &AggregateUDF, buf: &mut Vec<u8>) -> Result<()> {
        let inner = ungoverned_aggregate(function).map_or(function, |(inner, _)| inner.as_ref());
        let is_known = |known: &NamedFunctions| {
            known.has_aggregate(inner) || is_checked_sum(inner) || querent_kql::written_aggregate(inner).is_some()
        };
        if self.compared.as_ref().is_some_and(|known| !is_known(known)) {
            return Err(stays("aggregate", function.name()));
        }
        if let Some(definition) = aggregate_definition(function)? {
            self.define(definition, buf);
        }
        Ok(())
    }

    fn try_decode_udaf(&self, name: &str, buf: &[u8]) -> Result<Arc<AggregateUDF>> {
        if buf.is_empty() { exec_err!("no aggregate {name}") } else { defined_aggregate(buf, &self.named) }
    }

    fn try_encode_udwf(&self, function: &WindowUDF, buf: &mut Vec<u8>) -> Result<()> {
        let inner = ungoverned_window_function(function).map_or(function, Arc::as_ref);
        let is_known =
            |known: &NamedFunctions| known.has_window(inner) || querent_kql::written_window_function(inner).is_some();
        if self.compared.as_ref().is_some_and(|known| !is_known(known)) {
            return Err(stays("window function", function.name()));
        }
        if let Some(definition) = window_definition(function)? {
            self.define(definition, buf);
        }
        Ok(())
    }

    fn try_decode_udwf(&self, name: &str, buf: &[u8]) -> Result<Arc<WindowUDF>> {
        if buf.is_empty() { exec_err!("no window function {name}") } else { defined_window(buf, &self.named) }
    }
}

fn stays(kind: &str, name: &str) -> DataFusionError {
    DataFusionError::NotImplemented(format!("the {kind} {name} does not travel"))
}
