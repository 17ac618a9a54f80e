//! Queries over several servers: which plans run on workers, how they get there, and what is left of their bounds.
//!
//! A statement is planned and authorised where it arrives, the coordinator. A plan that reads enough, and of which every
//! operator, function and file can travel ([`placement`]), becomes stages, which datafusion-distributed sends to workers.
//! Invariant: a plan is sent only if what a worker would decode of it is the same plan, operator by operator; whatever
//! cannot travel keeps the whole query on the coordinator, and `EXPLAIN` says why. Rows that policies hide are taken away by
//! operators of the plan, which travel with it or keep it here.
//!
//! `portable_scan.rs` is a scan of files that can travel and be shared out, `codec.rs` writes and reads our own operators,
//! `functions.rs` functions that are more than their names, `enclosed.rs` sends operators that have such; `cluster.rs` knows
//! the workers, `task_headers.rs` is what a task is told of its query's limits, `window_orders.rs` keeps the orders of
//! windows known to workers.

mod cluster;
mod codec;
mod enclosed;
mod functions;
mod placement;
mod portable_scan;
mod task_headers;
mod window_orders;

pub(crate) use cluster::Cluster;
pub(crate) use codec::PlanCodec;
pub(crate) use enclosed::ready_to_send;
pub(crate) use functions::functions_of_plans;
pub(crate) use placement::{Placement, WorkerPlan};
pub(crate) use task_headers::TaskHeaders;
