//! `sequence_detect`: rows in which conditions hold one after the other, near enough in time. Binding reads the rows.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, UInt32Array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::scalar::ScalarValue;

use crate::ast::{ExprKind, FunctionCall, NamedExpr};
use crate::bind::{
    BindErrorCode, Binder, Environment, ExpressionScope, Result, Typed, constant_of, fail, given_name, invalid,
};
use crate::interrupt::LoopTurns;
use crate::plan::all_rows::arrow_error;
use crate::plan::key_numbers::KeyNumbers;
use crate::plan::{Column, Relation};
use crate::span::Span;
use crate::types::KqlType;

/// The most rows that are read.
const MAX_ROWS: usize = 1_000_000;

/// The times of the sequences that have come to a step.
type OpenSequences = BTreeSet<Vec<i64>>;

/// The times of a sequence's steps, and a row of its dimensions.
struct FoundSequence {
    times: Vec<i64>,
    row: u32,
}

impl<'a> Binder<'a> {
    /// `sequence_detect(timeline, step window, whole window, a = condition, b = condition, ..., dimensions)`.
    pub(super) fn sequence_detect(
        &mut self,
        input: Relation,
        call: &'a FunctionCall,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let [timeline, step, whole, rest @ ..] = call.arguments.as_slice() else {
            let takes = "`sequence_detect` takes a column of times, two windows, conditions and dimensions";
            return invalid(call.function.span, takes);
        };
        let time = self.column_of(&input, timeline)?;
        let windows =
            [self.sequence_window(step, &time, environment)?, self.sequence_window(whole, &time, environment)?];
        let (mut steps, mut dimensions) = (Vec::new(), Vec::new());
        for argument in rest {
            match &argument.expr.kind {
                ExprKind::Name(name) if input.column(&name.text).is_some_and(|it| it.kql_type != KqlType::Bool) => {
                    dimensions.push(self.column_of(&input, argument)?);
                }
                _ => {
                    let scope = ExpressionScope::over_columns(environment, &input.columns);
                    let condition = self.condition(&argument.expr, &scope)?;
                    let name = match (given_name(&argument.names), &argument.expr.kind) {
                        (Some(name), _) => name.to_owned(),
                        (None, ExprKind::Name(name)) => name.text.clone(),
                        _ => format!("Expr{}", steps.len() + 1),
                    };
                    steps.push((name, Typed::new(condition, KqlType::Bool)));
                }
            }
        }
        if steps.is_empty() {
            return invalid(call.function.span, "`sequence_detect` needs a condition");
        }
        let names: Vec<String> = steps.iter().map(|(name, _)| format!("{name}_{}", time.name)).collect();
        let mut outputs = vec![("$time".to_owned(), time.typed())];
        outputs.extend(steps.into_iter().enumerate().map(|(step, (_, typed))| (format!("$step{step}"), typed)));
        outputs.extend(dimensions.iter().map(Column::output));
        let rows = self.projected(input, outputs)?;
        let (columns, _) = self.all_rows(rows, MAX_ROWS, call.function.span, "rows for a plugin")?;
        let (times, rest) = columns.split_at(1);
        let (steps, dimensions) = rest.split_at(names.len());
        let found = sequences(&times[0].1, steps, dimensions, windows, call.function.span)?;
        self.sequence_rows(&found, &names, time.kql_type, dimensions)
    }

    /// Returns a window in the units of the timeline.
    fn sequence_window(
        &mut self,
        argument: &'a NamedExpr,
        time: &Column,
        environment: &Environment<'a>,
    ) -> Result<i64> {
        let window_type = duration_type(time.kql_type, argument.span)?;
        let typed = self.scalar(&argument.expr, &ExpressionScope::constant(environment))?;
        let typed = self.convert(typed, window_type, argument.span)?;
        match constant_of(&typed.expr)? {
            Some(ScalarValue::Int64(Some(window @ 0..))) => Ok(window),
            _ => invalid(argument.span, "expected a constant that is not negative"),
        }
    }

    fn sequence_rows(
        &mut self,
        found: &[FoundSequence],
        names: &[String],
        time_type: KqlType,
        dimensions: &[(Column, ArrayRef)],
    ) -> Result<Relation> {
        let rows: UInt32Array = found.iter().map(|sequence| Some(sequence.row)).collect();
        let mut columns: Vec<(Column, ArrayRef)> = Vec::new();
        for (column, values) in dimensions {
            columns.push((column.clone(), take(values, &rows, None).map_err(arrow_error)?));
        }
        let mut add = |name: &str, field: String, kql_type: KqlType, values: Vec<i64>| {
            let column = Column { name: name.to_owned(), field, kql_type };
            columns.push((column, Arc::new(Int64Array::from(values))));
        };
        for (step, name) in names.iter().enumerate() {
            add(name, self.field(name), time_type, found.iter().map(|sequence| sequence.times[step]).collect());
        }
        let took = found.iter().map(|sequence| sequence.times[names.len() - 1] - sequence.times[0]);
        add("Duration", self.field("Duration"), duration_type(time_type, Span::default())?, took.collect());
        self.made_table(columns, found.len())
    }
}

fn duration_type(time: KqlType, span: Span) -> Result<KqlType> {
    match time {
        KqlType::DateTime | KqlType::TimeSpan => Ok(KqlType::TimeSpan),
        KqlType::Int | KqlType::Long => Ok(KqlType::Long),
        _ => invalid(span, "a timeline is of times or of whole numbers"),
    }
}

/// Returns the sequences, by the time of their ends: all chains of steps within the windows.
fn sequences(
    times: &ArrayRef,
    steps: &[(Column, ArrayRef)],
    dimensions: &[(Column, ArrayRef)],
    [step_window, whole_window]: [i64; 2],
    span: Span,
) -> Result<Vec<FoundSequence>> {
    let times = cast(times, &DataType::Int64).map_err(arrow_error)?;
    let times: &Int64Array = times.as_primitive::<Int64Type>();
    let steps: Vec<&BooleanArray> = steps.iter().map(|(_, holds)| holds.as_boolean()).collect();
    let arrays: Vec<ArrayRef> = dimensions.iter().map(|(_, values)| Arc::clone(values)).collect();
    let keys = match arrays.is_empty() {
        true => vec![0; times.len()],
        false => KeyNumbers::default().numbers(&arrays)?,
    };
    let mut order: Vec<usize> = (0..times.len()).filter(|row| times.is_valid(*row)).collect();
    order.sort_by_key(|row| times.value(*row));
    // The sequences of each length that may go on, for each value of the dimensions.
    let mut begun: HashMap<u32, Vec<OpenSequences>> = HashMap::new();
    let mut found = Vec::new();
    let mut made = 0_usize;
    let mut turns = LoopTurns::default();
    for row in order {
        turns.count()?;
        let at = times.value(row);
        let open = begun.entry(keys[row]).or_insert_with(|| vec![OpenSequences::new(); steps.len()]);
        // From the last step, so that a row is one step of a sequence.
        for step in (0..steps.len()).rev() {
            if !(steps[step].is_valid(row) && steps[step].value(row)) {
                continue;
            }
            let longer: Vec<Vec<i64>> = match step.checked_sub(1) {
                None => vec![vec![at]],
                Some(before) => {
                    // Times only grow: what is too far away now stays so.
                    open[before].retain(|times| match (times.first(), times.last()) {
                        (Some(first), Some(last)) => at - last <= step_window && at - first <= whole_window,
                        _ => false,
                    });
                    open[before].iter().map(|times| times.iter().copied().chain([at]).collect()).collect()
                }
            };
            for times in longer {
                turns.count()?;
                if !open[step].insert(times.clone()) {
                    continue;
                }
                made += usize::from(step > 0);
                if made > MAX_ROWS {
                    return fail(BindErrorCode::TooLarge, span, "the rows have too many sequences".to_owned());
                }
                if step + 1 == steps.len() {
                    found.push(FoundSequence { times, row: row as u32 });
                }
            }
        }
    }
    Ok(found)
}
