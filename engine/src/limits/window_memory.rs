//! The memory of window functions. DataFusion computes a value for every row of a batch before it hands any on, and charges
//! nobody: the list of all rows until here, for each of eight thousand rows, is more than a machine has.
//!
//! So an operator whose window functions make values of any length gets its input in slices, as a projection does, and what
//! they make is reserved in the query's pool while they make it. The operator above a window enters its [`WindowMemory`]
//! whenever it is polled; the functions (`governor::window`) find it there, as they find the query.

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::internal_err;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::window::{PlainAggregateWindowExpr, SlidingAggregateWindowExpr, WindowExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use futures::{Stream, StreamExt};

use super::input_watch::{InputWatch, WatchedInputExec};
use super::row_pace::{batch_bytes, has_fixed_width, paced};

/// Values are reserved in steps, so that small ones cost nothing.
const MADE_STEP: usize = 1 << 20;
const KEPT_STEP: usize = 4 << 10;
/// The marks of operators that are written down.
const CHARGES: u8 = 1;
const KEEPS: u8 = 2;
/// Aggregates whose value is one of the rows' own.
const PICKING: [&str; 10] =
    ["any_value", "arg_max", "arg_min", "first_value", "last_value", "max", "max_by", "min", "min_by", "nth_value"];

thread_local! {
    static CURRENT: RefCell<Option<Arc<WindowMemory>>> = const { RefCell::new(None) };
}

/// Returns the plan with its windows within the query's memory.
pub(crate) fn charge_windows(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        let holds_all = node.downcast_ref::<WindowAggExec>().is_some();
        if !holds_all && !makes_window_values(node.as_ref()) {
            return Ok(Transformed::no(node));
        }
        let node = if holds_all {
            let inputs = node.children().into_iter().map(|input| WatchedInputExec::of_input(input, KeepInput));
            let inputs = inputs.collect();
            node.with_new_children(inputs)?
        } else {
            paced(node)?
        };
        Ok(Transformed::yes(WatchedInputExec::of_input(&node, ChargeWindow)))
    })
    .data()
}

/// Whether an operator computes window functions whose values have any length.
pub(super) fn makes_window_values(node: &dyn ExecutionPlan) -> bool {
    window_exprs(node).iter().any(|expr| has_length(expr.as_ref()))
}

/// Whether an operator computes window aggregates whose values grow with the rows of their frames.
pub(super) fn grows_window_values(node: &dyn ExecutionPlan) -> bool {
    window_exprs(node).iter().any(|expr| {
        let expr = expr.as_ref();
        aggregate_name(expr).is_some_and(|name| has_length(expr) && keeps_rows(name))
    })
}

/// Whether an aggregate whose value has any length keeps all the rows of a frame for it.
pub(crate) fn keeps_rows(aggregate: &str) -> bool {
    !PICKING.contains(&aggregate)
}

fn window_exprs(node: &dyn ExecutionPlan) -> &[Arc<dyn WindowExpr>] {
    if let Some(window) = node.downcast_ref::<BoundedWindowAggExec>() {
        return window.window_expr();
    }
    match node.downcast_ref::<WindowAggExec>() {
        Some(window) => window.window_expr(),
        None => &[],
    }
}

fn has_length(expr: &dyn WindowExpr) -> bool {
    expr.field().is_ok_and(|field| !has_fixed_width(field.data_type()))
}

fn aggregate_name(expr: &dyn WindowExpr) -> Option<&str> {
    let expr = expr.as_any();
    let plain = expr.downcast_ref::<PlainAggregateWindowExpr>().map(PlainAggregateWindowExpr::get_aggregate_expr);
    let sliding = expr.downcast_ref::<SlidingAggregateWindowExpr>().map(SlidingAggregateWindowExpr::get_aggregate_expr);
    plain.or(sliding).map(|aggregate| aggregate.fun().name())
}

/// What the window functions of one partition of an operator hold.
#[derive(Debug)]
pub(crate) struct WindowMemory {
    held: MemoryReservation,
    /// Bytes of the values of the next batch: reserved, and not yet reserved.
    made: AtomicUsize,
    unreserved: AtomicUsize,
    /// The most that values of filtered aggregates may become, of those bytes.
    repeated: AtomicUsize,
    input_rows: AtomicUsize,
}

impl WindowMemory {
    fn in_pool_of(context: &TaskContext) -> Arc<Self> {
        let held = MemoryConsumer::new("window functions").register(context.memory_pool());
        Arc::new(Self {
            held,
            made: AtomicUsize::new(0),
            unreserved: AtomicUsize::new(0),
            repeated: AtomicUsize::new(0),
            input_rows: AtomicUsize::new(0),
        })
    }

    /// Returns the memory of the window that this thread computes.
    pub(crate) fn current() -> Option<Arc<Self>> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Reserves bytes of values that were made, until the batch that has them is handed on. Errors: `memory_exceeded`.
    pub(crate) fn made(&self, bytes: usize) -> Result<()> {
        let unreserved = self.unreserved.load(Ordering::Relaxed).saturating_add(bytes);
        if unreserved < MADE_STEP {
            self.unreserved.store(unreserved, Ordering::Relaxed);
            return Ok(());
        }
        self.held.try_grow(unreserved)?;
        self.unreserved.store(0, Ordering::Relaxed);
        self.made.fetch_add(unreserved, Ordering::Relaxed);
        Ok(())
    }

    /// Reserves what a value becomes that is repeated for at most all the rows of the input. Errors: `memory_exceeded`.
    pub(crate) fn repeated(&self, value_bytes: usize) -> Result<()> {
        let most = value_bytes.saturating_mul(self.input_rows.load(Ordering::Relaxed));
        let more = most.saturating_sub(self.repeated.load(Ordering::Relaxed));
        if more > 0 {
            self.made(more)?;
            self.repeated.store(most, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Gives back what the batch before had.
    fn release_made(&self) {
        self.held.shrink(self.made.swap(0, Ordering::Relaxed));
        self.unreserved.store(0, Ordering::Relaxed);
        self.repeated.store(0, Ordering::Relaxed);
    }
}

/// Bytes that a function keeps of its rows; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct KeptFrameRows {
    memory: Arc<WindowMemory>,
    kept: usize,
    reserved: usize,
}

impl KeptFrameRows {
    pub(crate) fn in_memory(memory: Arc<WindowMemory>) -> Self {
        Self { memory, kept: 0, reserved: 0 }
    }

    /// Reserves bytes of more rows. Errors: `memory_exceeded`.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<()> {
        self.kept = self.kept.saturating_add(bytes);
        let more = self.kept.saturating_sub(self.reserved);
        if more >= KEPT_STEP {
            self.memory.held.try_grow(more)?;
            self.reserved += more;
        }
        Ok(())
    }

    /// Gives back bytes of rows that have left the frame.
    pub(crate) fn shrink(&mut self, bytes: usize) {
        self.kept = self.kept.saturating_sub(bytes);
        let less = self.reserved.saturating_sub(self.kept);
        if less >= KEPT_STEP {
            self.memory.held.shrink(less);
            self.reserved -= less;
        }
    }
}

impl Drop for KeptFrameRows {
    fn drop(&mut self) {
        self.memory.held.shrink(self.reserved);
    }
}

/// Returns the mark by which an operator of this module is made again around an input; `None` of others.
pub(crate) fn window_mark(node: &Arc<dyn ExecutionPlan>) -> Option<u8> {
    if node.is::<WatchedInputExec<ChargeWindow>>() {
        return Some(CHARGES);
    }
    node.is::<WatchedInputExec<KeepInput>>().then_some(KEEPS)
}

/// Returns the operator of a [`window_mark`] around an input.
pub(crate) fn window_watched_again(mark: &[u8], input: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    match mark {
        [CHARGES] => Ok(WatchedInputExec::of_input(input, ChargeWindow)),
        [KEEPS] => Ok(WatchedInputExec::of_input(input, KeepInput)),
        _ => internal_err!("no such mark of a window"),
    }
}

/// Charges what the window below makes.
#[derive(Clone)]
struct ChargeWindow;

impl InputWatch for ChargeWindow {
    const NAME: &'static str = "WindowChargeExec";

    fn watched(&self, input: SendableRecordBatchStream, context: &TaskContext) -> SendableRecordBatchStream {
        Box::pin(WindowChargeStream { input, memory: WindowMemory::in_pool_of(context) })
    }
}

struct WindowChargeStream {
    input: SendableRecordBatchStream,
    memory: Arc<WindowMemory>,
}

impl Stream for WindowChargeStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.memory.release_made();
        let _entered = EnteredWindow::enter(Arc::clone(&self.memory));
        self.input.poll_next_unpin(cx)
    }
}

impl RecordBatchStream for WindowChargeStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}

/// Puts back the memory that the thread worked with before.
struct EnteredWindow(Option<Arc<WindowMemory>>);

impl EnteredWindow {
    fn enter(memory: Arc<WindowMemory>) -> Self {
        Self(CURRENT.with_borrow_mut(|current| current.replace(memory)))
    }
}

impl Drop for EnteredWindow {
    fn drop(&mut self) {
        let before = self.0.take();
        CURRENT.with_borrow_mut(|current| *current = before);
    }
}

/// Charges the input of a window that keeps all of it until the end.
#[derive(Clone)]
struct KeepInput;

impl InputWatch for KeepInput {
    const NAME: &'static str = "WindowInputExec";

    fn watched(&self, input: SendableRecordBatchStream, _context: &TaskContext) -> SendableRecordBatchStream {
        Box::pin(KeptInputStream { input })
    }
}

struct KeptInputStream {
    input: SendableRecordBatchStream,
}

impl Stream for KeptInputStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.input.poll_next_unpin(cx);
        // The window drops its input before it computes, and keeps the batches: they are its own memory's.
        if let Poll::Ready(Some(Ok(batch))) = &polled
            && let Some(memory) = WindowMemory::current()
        {
            memory.input_rows.fetch_add(batch.num_rows(), Ordering::Relaxed);
            if let Err(error) = memory.held.try_grow(batch_bytes(batch)) {
                return Poll::Ready(Some(Err(error)));
            }
        }
        polled
    }
}

impl RecordBatchStream for KeptInputStream {
    fn schema(&self) -> SchemaRef {
        self.input.schema()
    }
}
