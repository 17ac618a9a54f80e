//! Samples of a relation. Without a seed rows are drawn at random. With one, a row is drawn by a hash of the seed, of the
//! row, and of how many equal rows came before it: so the same rows are drawn in whatever order they are read.

use datafusion::common::Column;
use datafusion::error::Result;
use datafusion::functions::expr_fn::random;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{Expr as Planned, ExprFunctionExt, LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::sql::sqlparser::ast::{
    Expr, TableFactor, TableSample, TableSampleKind, TableSampleQuantity, TableSampleUnit, Value,
};

use super::{Context, malformed, number_of, relations_of, subquery};
use crate::error::EngineError;
use crate::functions::row_hash;
use crate::sql::syntax::text_of;

const USAGE: &str = "a sample is written `10 PERCENT` or `10 ROWS`, and may end with REPEATABLE (seed)";

/// How much of a relation is drawn.
pub(super) struct Sample {
    amount: Amount,
    seed: Option<i64>,
}

enum Amount {
    Rows(usize),
    /// Of one.
    Share(f64),
}

/// Takes the sample from a table or a subquery.
pub(super) fn taken_from(factor: &mut TableFactor) -> Result<Option<Sample>> {
    let (TableFactor::Table { sample, .. } | TableFactor::Derived { sample, .. }) = factor else { return Ok(None) };
    let Some(TableSampleKind::BeforeTableAlias(sample) | TableSampleKind::AfterTableAlias(sample)) = sample.take()
    else {
        return Ok(None);
    };
    let TableSample { quantity, seed, .. } = *sample;
    let Some(TableSampleQuantity { value, unit, .. }) = quantity else { return Err(malformed(USAGE)) };
    let is_rows = !matches!(unit, Some(TableSampleUnit::Percent));
    let seed = match seed.map(|seed| seed.value.value) {
        None => None,
        Some(Value::Number(digits, _)) => Some(seed_of(&digits)?),
        Some(_) => return Err(malformed(USAGE)),
    };
    Ok(Some(Sample { amount: amount(&value, is_rows)?, seed }))
}

/// Plans `sample((SELECT * FROM relations), amount, 'rows' or 'percent' [, seed])`.
pub(super) fn plan(args: &[Expr], context: &mut Context<'_>) -> Result<LogicalPlan> {
    let [relations, value, unit, seed @ ..] = args else { return Err(malformed(USAGE)) };
    let relation = subquery(relations).and_then(relations_of).ok_or_else(|| malformed(USAGE))?;
    let seed = match seed {
        [] => None,
        [seed] => Some(seed_of(&seed.to_string())?),
        _ => return Err(malformed(USAGE)),
    };
    let sample = Sample { amount: amount(value, text_of(unit) == Some("rows"))?, seed };
    sample.plan(context.plan(relation)?)
}

fn amount(value: &Expr, is_rows: bool) -> Result<Amount> {
    let number = number_of(value).ok_or_else(|| malformed(USAGE))?;
    if is_rows {
        // Fractions of rows there are none, and past the largest integer no rows.
        return match number.fract() == 0.0 {
            true => Ok(Amount::Rows(number as usize)),
            false => Err(malformed("a sample has a whole number of rows")),
        };
    }
    match (0.0..=100.0).contains(&number) {
        true => Ok(Amount::Share(number / 100.0)),
        false => Err(malformed("a sample has 0 to 100 percent of the rows")),
    }
}

fn seed_of(digits: &str) -> Result<i64> {
    digits.parse().map_err(|_| EngineError::Plan { message: "a seed is a whole number".into() }.into())
}

impl Sample {
    /// Draws the sample from the rows of `input`.
    pub(super) fn plan(self, input: LogicalPlan) -> Result<LogicalPlan> {
        const HASH: &str = "__sample_hash";
        const COPY: &str = "__sample_copy";
        let Some(seed) = self.seed else {
            let columns: Vec<Planned> = input.schema().columns().into_iter().map(Planned::Column).collect();
            let builder = LogicalPlanBuilder::from(input);
            return match self.amount {
                // The order is a column, since rows without any column cannot be sorted.
                Amount::Rows(rows) => builder
                    .project(columns.iter().cloned().chain([random().alias(HASH)]))?
                    .sort([Planned::Column(Column::from_name(HASH)).sort(true, false)])?
                    .limit(0, Some(rows))?
                    .project(columns)?
                    .build(),
                Amount::Share(share) => builder.filter(random().lt(lit(share)))?.build(),
            };
        };
        let columns: Vec<Planned> = input.schema().columns().into_iter().map(Planned::Column).collect();
        let hash = |arguments: Vec<Planned>| row_hash().call(arguments);
        let hashed = std::iter::once(lit(0_i64)).chain(columns.iter().cloned()).collect();
        let with_hash = columns.iter().cloned().chain([hash(hashed).alias(HASH)]);
        let own = |name: &str| Planned::Column(Column::from_name(name));
        let copy =
            row_number().partition_by(vec![own(HASH)]).order_by(vec![own(HASH).sort(true, false)]).build()?.alias(COPY);
        let drawn = hash(vec![lit(seed), own(HASH), own(COPY)]);
        let builder = LogicalPlanBuilder::from(input).project(with_hash)?.window([copy])?;
        let builder = match self.amount {
            Amount::Rows(rows) => builder
                .project(columns.iter().cloned().chain([drawn.alias(HASH)]))?
                .sort([own(HASH).sort(true, false)])?
                .limit(0, Some(rows))?,
            Amount::Share(share) => builder.filter(drawn.lt(lit((share * u64::MAX as f64) as u64)))?,
        };
        builder.project(columns)?.build()
    }
}
