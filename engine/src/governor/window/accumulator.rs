//! Accumulators of window aggregates.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::compute::concat;
use arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{Accumulator, AggregateUDF};
use datafusion::physical_expr::{PhysicalExpr, PhysicalSortExpr};

use super::Repetition;
use crate::limits::{
    InterruptWatch, KeptFrameRows, WindowMemory, array_bytes, has_fixed_width, keeps_rows, scalar_bytes,
};

/// A value is copied once more when the values of all rows become a column.
const COPIES: usize = 2;

/// An accumulator whose rows and values are charged to the window that it works for.
#[derive(Debug)]
pub(super) struct GovernedAccumulator {
    inner: Box<dyn Accumulator>,
    watch: InterruptWatch,
    repetition: Repetition,
    /// Where its values have any length.
    memory: Option<Arc<WindowMemory>>,
    /// Where it keeps its rows.
    kept: Option<KeptFrameRows>,
    rows: usize,
}

impl GovernedAccumulator {
    pub(super) fn new(name: &str, return_type: &DataType, repetition: Repetition, inner: Box<dyn Accumulator>) -> Self {
        let memory = if has_fixed_width(return_type) { None } else { WindowMemory::current() };
        let kept =
            memory.as_ref().filter(|_| keeps_rows(name)).map(|memory| KeptFrameRows::in_memory(Arc::clone(memory)));
        Self { inner, watch: InterruptWatch::of_current_query(), repetition, memory, kept, rows: 0 }
    }
}

#[warn(clippy::missing_trait_methods)]
impl Accumulator for GovernedAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.watch.check()?;
        if let Some(kept) = &mut self.kept {
            kept.grow(bytes_of(values))?;
        }
        self.rows += values.first().map_or(0, |column| column.len());
        self.inner.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.watch.check()?;
        let value = self.inner.evaluate()?;
        if let Some(memory) = &self.memory {
            let bytes = scalar_bytes(&value).saturating_mul(COPIES);
            match self.repetition {
                Repetition::Once => memory.made(bytes)?,
                Repetition::AllRows => memory.made(bytes.saturating_mul(self.rows))?,
                Repetition::FilteredRows => memory.repeated(bytes)?,
            }
        }
        Ok(value)
    }

    fn size(&self) -> usize {
        self.inner.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.inner.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        if let Some(kept) = &mut self.kept {
            kept.shrink(bytes_of(values));
        }
        self.inner.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

fn bytes_of(values: &[ArrayRef]) -> usize {
    values.iter().map(|column| array_bytes(column.as_ref())).sum()
}

/// An accumulator that cannot take rows out: it keeps the rows of its frame, and starts again for each value.
#[derive(Debug)]
pub(super) struct RecomputedAccumulator {
    function: Arc<AggregateUDF>,
    args: OwnedAccumulatorArgs,
    /// The columns of the frame's rows, in order.
    batches: VecDeque<Vec<ArrayRef>>,
}

impl RecomputedAccumulator {
    /// Errors: those of the function's own accumulator.
    pub(super) fn new(function: Arc<AggregateUDF>, args: OwnedAccumulatorArgs) -> Result<Self> {
        function.accumulator(args.borrowed())?;
        Ok(Self { function, args, batches: VecDeque::new() })
    }

    /// Makes one batch of all rows, so that the next value has no slices of single rows to read.
    fn gather(&mut self) -> Result<()> {
        let columns = self.batches.front().map_or(0, Vec::len);
        if self.batches.len() < 2 {
            return Ok(());
        }
        let gathered = (0..columns).map(|column| {
            let parts: Vec<&dyn Array> =
                self.batches.iter().filter_map(|batch| batch.get(column)).map(AsRef::as_ref).collect();
            Ok(concat(&parts)?)
        });
        let gathered = gathered.collect::<Result<Vec<ArrayRef>>>()?;
        self.batches = VecDeque::from([gathered]);
        Ok(())
    }

    fn fresh(&mut self) -> Result<Box<dyn Accumulator>> {
        self.gather()?;
        let mut fresh = self.function.accumulator(self.args.borrowed())?;
        for batch in &self.batches {
            fresh.update_batch(batch)?;
        }
        Ok(fresh)
    }
}

impl Accumulator for RecomputedAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        if row_count(values) > 0 {
            self.batches.push_back(values.to_vec());
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.fresh()?.evaluate()
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.batches.iter().map(|batch| bytes_of(batch)).sum::<usize>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.fresh()?.state()
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        Err(datafusion::error::DataFusionError::Internal("the rows of a frame are not merged".into()))
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let mut left = row_count(values);
        while left > 0 {
            let Some(first) = self.batches.pop_front() else { break };
            let rows = row_count(&first);
            if rows > left {
                self.batches.push_front(first.iter().map(|column| column.slice(left, rows - left)).collect());
            }
            left = left.saturating_sub(rows);
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }
}

fn row_count(values: &[ArrayRef]) -> usize {
    values.first().map_or(0, |column| column.len())
}

/// What an accumulator is made from, kept for the next one.
#[derive(Debug, Clone)]
pub(super) struct OwnedAccumulatorArgs {
    return_field: FieldRef,
    schema: Arc<Schema>,
    ignore_nulls: bool,
    order_bys: Vec<PhysicalSortExpr>,
    is_reversed: bool,
    name: String,
    is_distinct: bool,
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    expr_fields: Vec<FieldRef>,
}

impl OwnedAccumulatorArgs {
    pub(super) fn from_args(args: &AccumulatorArgs) -> Self {
        Self {
            return_field: Arc::clone(&args.return_field),
            schema: Arc::new(args.schema.clone()),
            ignore_nulls: args.ignore_nulls,
            order_bys: args.order_bys.to_vec(),
            is_reversed: args.is_reversed,
            name: args.name.to_owned(),
            is_distinct: args.is_distinct,
            exprs: args.exprs.to_vec(),
            expr_fields: args.expr_fields.to_vec(),
        }
    }

    pub(super) fn returned(&self) -> &FieldRef {
        &self.return_field
    }

    pub(super) fn borrowed(&self) -> AccumulatorArgs<'_> {
        AccumulatorArgs {
            return_field: Arc::clone(&self.return_field),
            schema: &self.schema,
            ignore_nulls: self.ignore_nulls,
            order_bys: &self.order_bys,
            is_reversed: self.is_reversed,
            name: &self.name,
            is_distinct: self.is_distinct,
            exprs: &self.exprs,
            expr_fields: &self.expr_fields,
        }
    }
}
