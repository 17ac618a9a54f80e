//! Writes and reads the operators that are not DataFusion's, and knows the functions that a plan may name.
//!
//! Functions travel by name, so both sides have to mean the same by it: [`functions_of_plans`] is what both of them look
//! names up in, and a plan whose function is another one than that of its name stays where it is.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::{DataFusionError, exec_err, not_impl_err};
use datafusion::error::Result;
use datafusion::execution::{SessionState, TaskContext};
use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion_proto::physical_plan::{AsExecutionPlan, PhysicalExtensionCodec};
use datafusion_proto::protobuf::PhysicalPlanNode;

use super::portable_scan::PortableScanExec;
use crate::governor::unnamed_functions;
use crate::limits::{charged_again, is_charged, pace_mark, paced_again};
use crate::tables::restricted::RestrictedExec;

const SCAN: u8 = 1;
const RESTRICTED: u8 = 2;
const PACED: u8 = 3;
const CHARGED: u8 = 4;

/// Returns the scalar functions that plans may name: those of every session, and those that stand for operators and casts.
pub(crate) fn functions_of_plans(state: &SessionState) -> HashMap<String, Arc<ScalarUDF>> {
    let own = unnamed_functions().into_iter().map(|function| (function.name().to_owned(), function));
    state.scalar_functions().iter().map(|(name, function)| (name.clone(), Arc::clone(function))).chain(own).collect()
}

/// The codec of our operators.
#[derive(Debug)]
pub(crate) struct PlanCodec {
    /// What functions are compared with; `None`: they have been.
    known: Option<KnownFunctions>,
}

#[derive(Debug)]
struct KnownFunctions {
    scalar: HashMap<String, Arc<ScalarUDF>>,
    aggregate: HashMap<String, Arc<AggregateUDF>>,
}

impl PlanCodec {
    /// A codec for plans that have been checked.
    pub(crate) fn trusting() -> Self {
        Self { known: None }
    }

    /// A codec that fails on a function that is not the one of its name.
    pub(crate) fn checking(state: &SessionState) -> Self {
        let aggregate = state.aggregate_functions().clone();
        Self { known: Some(KnownFunctions { scalar: functions_of_plans(state), aggregate }) }
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
        not_impl_err!("the operator {} does not travel", node.name())
    }

    fn try_encode_udf(&self, function: &ScalarUDF, _buf: &mut Vec<u8>) -> Result<()> {
        let Some(known) = &self.known else { return Ok(()) };
        match known.scalar.get(function.name()) {
            Some(same) if same.as_ref() == function => Ok(()),
            _ => Err(stays("function", function.name())),
        }
    }

    fn try_encode_udaf(&self, function: &AggregateUDF, _buf: &mut Vec<u8>) -> Result<()> {
        let Some(known) = &self.known else { return Ok(()) };
        match known.aggregate.get(function.name()) {
            Some(same) if same.as_ref() == function => Ok(()),
            _ => Err(stays("aggregate", function.name())),
        }
    }

    fn try_encode_udwf(&self, function: &WindowUDF, _buf: &mut Vec<u8>) -> Result<()> {
        Err(stays("window function", function.name()))
    }
}

fn stays(kind: &str, name: &str) -> DataFusionError {
    DataFusionError::NotImplemented(format!("the {kind} {name} does not travel"))
}
