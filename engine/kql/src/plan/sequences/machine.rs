//! The state machine of `scan`. It keeps, for each step, the sequence that reached it last: the rows that the steps up
//! to it matched. Each row is tried on the steps from the last to the first: it moves the sequence of the step before
//! forward, continues the step's own sequence, or begins one with the first step.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, ListArray, RecordBatch, RecordBatchOptions, StructArray, new_empty_array};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use datafusion::common::DFSchema;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{Expr, PartitionEvaluator, Signature, Volatility, WindowUDF, WindowUDFImpl};
use datafusion::physical_expr::create_physical_expr;
use datafusion::physical_plan::{ColumnarValue, PhysicalExpr};
use datafusion::scalar::ScalarValue;

use crate::interrupt::LoopTurns;

/// The field with the number of a row's sequence.
pub(super) const MATCH_ID: &str = "match_id";

/// Which of a step's matches are returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ReturnedMatches {
    All,
    /// The last one of each sequence.
    Last,
    None,
}

/// A step over the machine's columns.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct MachineStep {
    pub(super) condition: Expr,
    /// The columns of the row that are assigned, by index, and their new values.
    pub(super) assignments: Vec<(usize, Expr)>,
    pub(super) returned: ReturnedMatches,
}

impl MachineStep {
    pub(super) fn assigns(&self, index: usize) -> bool {
        self.assignments.iter().any(|(assigned, _)| *assigned == index)
    }
}

/// The window function of one `scan`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Machine {
    /// Field and type of all columns that expressions may name: the row's own and declared ones, then for each step the
    /// same columns of the row that it matched last.
    columns: Vec<(String, DataType)>,
    /// By column of the row: its value before it is assigned or matched.
    defaults: Vec<ScalarValue>,
    steps: Vec<MachineStep>,
    /// The columns of the row that are returned.
    made: Vec<usize>,
    signature: Signature,
}

/// Whether a window function is the one of `scan`.
pub(crate) fn is_sequences_function(function: &WindowUDF) -> bool {
    (function.inner().as_ref() as &dyn std::any::Any).is::<Machine>()
}

impl Machine {
    pub(super) fn new(
        columns: Vec<(String, DataType)>,
        defaults: Vec<ScalarValue>,
        steps: Vec<MachineStep>,
        made: Vec<usize>,
    ) -> Self {
        Self { columns, defaults, steps, made, signature: Signature::variadic_any(Volatility::Immutable) }
    }

    /// Returns the call of the function over the rows' columns.
    pub(super) fn into_function(self) -> Arc<WindowUDF> {
        Arc::new(WindowUDF::new_from_impl(self))
    }

    fn made_fields(&self) -> Fields {
        let made = self.made.iter().map(|index| {
            let (name, data_type) = &self.columns[*index];
            Field::new(name, data_type.clone(), true)
        });
        made.chain([Field::new(MATCH_ID, DataType::Int64, false)]).collect()
    }

    fn element(&self) -> FieldRef {
        Arc::new(Field::new_list_field(DataType::Struct(self.made_fields()), false))
    }
}

impl WindowUDFImpl for Machine {
    fn name(&self) -> &str {
        "kql_scan"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn field(&self, arguments: WindowUDFFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(Field::new(arguments.name(), DataType::List(self.element()), false)))
    }

    fn partition_evaluator(&self, _arguments: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        let fields: Vec<Field> =
            self.columns.iter().map(|(name, data_type)| Field::new(name, data_type.clone(), true)).collect();
        let schema = Schema::new(fields);
        let names = DFSchema::try_from(schema.clone())?;
        let props = ExecutionProps::new();
        let compiled = |expr: &Expr| -> Result<Compiled> { Compiled::new(expr, &names, &schema, &props) };
        let steps = self.steps.iter().map(|step| {
            let assignments = step.assignments.iter().map(|(index, value)| Ok((*index, compiled(value)?)));
            Ok(CompiledStep {
                condition: compiled(&step.condition)?,
                assignments: assignments.collect::<Result<_>>()?,
                returned: step.returned,
            })
        });
        Ok(Box::new(PartitionRun {
            steps: steps.collect::<Result<_>>()?,
            defaults: self.defaults.clone(),
            made: self.made.clone(),
            fields: self.made_fields(),
            element: self.element(),
        }))
    }
}

/// An expression, and the columns that it reads.
#[derive(Debug)]
struct Compiled {
    expr: Arc<dyn PhysicalExpr>,
    schema: SchemaRef,
    /// By index.
    read: Vec<usize>,
}

impl Compiled {
    fn new(expr: &Expr, names: &DFSchema, schema: &Schema, props: &ExecutionProps) -> Result<Self> {
        let expr = create_physical_expr(expr, names, props)?;
        let mut read: Vec<usize> =
            datafusion::physical_expr::utils::collect_columns(&expr).iter().map(|column| column.index()).collect();
        read.sort_unstable();
        let narrow = Arc::new(schema.project(&read)?);
        let expr = datafusion::physical_expr::utils::reassign_expr_columns(expr, &narrow)?;
        Ok(Self { expr, schema: narrow, read })
    }

    fn value(&self, row: &[ScalarValue], sequence: Option<&Sequence>, defaults: &[ScalarValue]) -> Result<ScalarValue> {
        let arrays = self.read.iter().map(|column| {
            let (block, index) = (column / defaults.len(), column % defaults.len());
            let value = match block.checked_sub(1) {
                None => &row[index],
                Some(step) => sequence
                    .and_then(|sequence| sequence.matched.get(step))
                    .map_or(&defaults[index], |matched| &matched[index]),
            };
            value.to_array()
        });
        let arrays: Vec<ArrayRef> = arrays.collect::<Result<_>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?;
        match self.expr.evaluate(&batch)? {
            ColumnarValue::Scalar(value) => Ok(value),
            ColumnarValue::Array(array) => ScalarValue::try_from_array(&array, 0),
        }
    }
}

#[derive(Debug)]
struct CompiledStep {
    condition: Compiled,
    assignments: Vec<(usize, Compiled)>,
    returned: ReturnedMatches,
}

/// The sequence at a step: for each step up to that one, the row that it matched last.
#[derive(Debug, Clone)]
struct Sequence {
    id: i64,
    matched: Vec<Arc<[ScalarValue]>>,
}

/// A row that a step matched, with the values it has then.
#[derive(Debug)]
struct Match {
    row: usize,
    values: Arc<[ScalarValue]>,
    sequence: i64,
}

/// The matches that are returned, in the order of the rows.
#[derive(Debug, Default)]
struct Matches {
    all: Vec<Option<Match>>,
    /// Where the last one of a sequence's step is, of steps that show no others.
    last: HashMap<(i64, usize), usize>,
}

impl Matches {
    fn add(&mut self, returned: ReturnedMatches, step: usize, found: Match) {
        match returned {
            ReturnedMatches::None => return,
            ReturnedMatches::All => {}
            ReturnedMatches::Last => {
                let before = self.last.insert((found.sequence, step), self.all.len());
                if let Some(before) = before.and_then(|before| self.all.get_mut(before)) {
                    *before = None;
                }
            }
        }
        self.all.push(Some(found));
    }

    fn left(self) -> Vec<Match> {
        self.all.into_iter().flatten().collect()
    }
}

/// The run of the machine over the rows of one partition.
#[derive(Debug)]
struct PartitionRun {
    steps: Vec<CompiledStep>,
    defaults: Vec<ScalarValue>,
    made: Vec<usize>,
    fields: Fields,
    element: FieldRef,
}

impl PartitionRun {
    /// Returns the values that a row has after a step, where it matches the step with a sequence.
    fn matched(
        &self,
        step: &CompiledStep,
        row: &[ScalarValue],
        sequence: Option<&Sequence>,
    ) -> Result<Option<Arc<[ScalarValue]>>> {
        if step.condition.value(row, sequence, &self.defaults)? != ScalarValue::Boolean(Some(true)) {
            return Ok(None);
        }
        let mut extended = row.to_vec();
        for (index, value) in &step.assignments {
            extended[*index] = value.value(row, sequence, &self.defaults)?;
        }
        Ok(Some(extended.into()))
    }
}

impl PartitionEvaluator for PartitionRun {
    fn evaluate_all(&mut self, values: &[ArrayRef], num_rows: usize) -> Result<ArrayRef> {
        let mut states: Vec<Option<Sequence>> = vec![None; self.steps.len()];
        let mut next_id = 0;
        let mut returned = Matches::default();
        // All rows of a partition are one call, and what they match is in no pool.
        let mut turns = LoopTurns::default();
        for number in 0..num_rows {
            let own = values.iter().map(|array| ScalarValue::try_from_array(array, number));
            let declared = self.defaults.iter().skip(values.len()).cloned().map(Ok);
            let row: Vec<ScalarValue> = own.chain(declared).collect::<Result<_>>()?;
            for (index, step) in self.steps.iter().enumerate().rev() {
                turns.count()?;
                // From the step before.
                if let Some(earlier) = index.checked_sub(1)
                    && let Some(sequence) = &states[earlier]
                    && let Some(extended) = self.matched(step, &row, Some(sequence))?
                    && let Some(mut sequence) = states[earlier].take()
                {
                    sequence.matched.push(Arc::clone(&extended));
                    returned.add(step.returned, index, Match { row: number, values: extended, sequence: sequence.id });
                    states[index] = Some(sequence);
                    continue;
                }
                // With the step's own, or a new one.
                if states[index].is_none() && index > 0 {
                    continue;
                }
                if let Some(extended) = self.matched(step, &row, states[index].as_ref())? {
                    let sequence = states[index].get_or_insert_with(|| {
                        next_id += 1;
                        Sequence { id: next_id - 1, matched: Vec::new() }
                    });
                    sequence.matched.truncate(index);
                    sequence.matched.push(Arc::clone(&extended));
                    returned.add(step.returned, index, Match { row: number, values: extended, sequence: sequence.id });
                }
            }
        }
        let returned = returned.left();
        let mut lengths = vec![0; num_rows];
        returned.iter().for_each(|one| lengths[one.row] += 1);
        let mut columns = Vec::with_capacity(self.fields.len());
        for (index, field) in self.made.iter().zip(&self.fields) {
            columns.push(match returned.is_empty() {
                true => new_empty_array(field.data_type()),
                false => ScalarValue::iter_to_array(returned.iter().map(|one| one.values[*index].clone()))?,
            });
        }
        columns.push(Arc::new(returned.iter().map(|one| one.sequence).collect::<Int64Array>()));
        let rows = StructArray::try_new(self.fields.clone(), columns, None)?;
        let lists =
            ListArray::try_new(Arc::clone(&self.element), OffsetBuffer::from_lengths(lengths), Arc::new(rows), None);
        lists.map(|lists| Arc::new(lists) as ArrayRef).map_err(DataFusionError::from)
    }
}
