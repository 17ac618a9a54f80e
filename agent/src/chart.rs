//! Charts: a Vega-Lite 5 specification for a result that is worth plotting, without its rows.
//!
//! The rules of `plan` choose a chart from the roles of the result's columns; the chart that the model offers refines
//! it as far as it fits. It consists of the types of `spec`, so that it is valid whatever the result. A client binds
//! the rows, objects by the columns' names, to the data set `table`; values may be JSON values or all text.

mod column_roles;
mod compose;
mod fields;
mod offer;
mod plan;
mod spec;

use serde_json::Value;

pub(crate) use column_roles::ColumnKind;
pub use fields::{Expression, ReadAs, field_name, field_path};
pub use spec::{
    Channel, Encoding, FieldType, Mark, MarkType, NamedData, SCHEMA, Scale, ScaleType, Sort, Spec, TABLE, Transform,
};

use column_roles::ChartColumn;
use offer::ChartOffer;
use plan::{ChartPlan, proposals};

/// Columns considered for a chart.
const MAX_COLUMNS: usize = 32;

/// Returns the chart of a result that is worth one. Each row has a cell for each column; `offered` is the chart that
/// the model asks for.
pub(crate) fn chart_of(
    names: &[String],
    kinds: &[ColumnKind],
    rows: &[Vec<Value>],
    offered: Option<&Value>,
) -> Option<Spec> {
    let columns: Vec<ChartColumn<'_>> = names
        .iter()
        .zip(kinds)
        .take(MAX_COLUMNS)
        .enumerate()
        .map(|(index, (name, kind))| {
            let cells: Vec<&Value> = rows.iter().map(|row| row.get(index).unwrap_or(&Value::Null)).collect();
            ChartColumn::new(name, *kind, &cells)
        })
        .collect();
    let fits = |plan: &ChartPlan| plan.fits(&columns, rows.len());
    let ruled = proposals(&columns).into_iter().find(fits).map(|plan| plan.laid_out(&columns));
    let offer = offered.map(|offered| ChartOffer::read(offered, &columns)).unwrap_or_default();
    let wanted = offered.and_then(|_| offer.plans(ruled.as_ref(), &columns).into_iter().find(fits));
    let plan = wanted.map(|plan| plan.laid_out(&columns)).or(ruled)?;
    Some(compose::spec(&plan, &offer, &columns))
}

#[cfg(test)]
mod tests;
