//! Charts: a Vega-Lite 5 specification for a result that is worth plotting, without its rows.
//!
//! It is composed by the rules of `plan` from what the result's columns are, refined by what the model offered as far
//! as that fits, and made of the types of `spec`, so that it is valid whatever the result. A client binds the rows, an
//! object each by the columns' names, to the data set `table`; values may be JSON's or all text.

mod columns;
mod compose;
mod fields;
mod offer;
mod plan;
mod spec;

use serde_json::Value;

pub(crate) use columns::ColumnKind;
pub use fields::{Expression, ReadAs, field_name, field_path};
pub use spec::{
    Channel, Encoding, FieldType, Mark, MarkType, NamedData, SCHEMA, Scale, ScaleType, Sort, Spec, TABLE, Transform,
};

use columns::Column;
use offer::Offer;
use plan::{Plan, proposals};

/// Columns that are looked at.
const MAX_COLUMNS: usize = 32;

/// The chart of a result, where it is worth one. Each row has a cell a column; `offered` is what the model wants.
pub(crate) fn chart_of(
    names: &[String],
    kinds: &[ColumnKind],
    rows: &[Vec<Value>],
    offered: Option<&Value>,
) -> Option<Spec> {
    let columns: Vec<Column<'_>> = names
        .iter()
        .zip(kinds)
        .take(MAX_COLUMNS)
        .enumerate()
        .map(|(index, (name, kind))| {
            let cells: Vec<&Value> = rows.iter().map(|row| row.get(index).unwrap_or(&Value::Null)).collect();
            Column::new(name, *kind, &cells)
        })
        .collect();
    let fits = |plan: &Plan| plan.fits(&columns, rows.len());
    let ruled = proposals(&columns).into_iter().find(fits).map(|plan| plan.laid_out(&columns));
    let offer = offered.map(|offered| Offer::read(offered, &columns)).unwrap_or_default();
    let wanted = offered.and_then(|_| offer.plans(ruled.as_ref(), &columns).into_iter().find(fits));
    let plan = wanted.map(|plan| plan.laid_out(&columns)).or(ruled)?;
    Some(compose::spec(&plan, &offer, &columns))
}

#[cfg(test)]
mod tests;
