//! `min` and `max` of structs and lists. DataFusion 54 compares field by field and passes over one that is null, so that what the
//! greatest is goes by the order of rows; a struct in a list it does not compare at all. Here a null within a value is the
//! greatest, as where rows are sorted.

use std::cmp::Ordering;

use arrow::array::ArrayRef;
use arrow::compute::SortOptions;
use arrow::datatypes::DataType;
use arrow::row::{OwnedRow, RowConverter, SortField};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::Accumulator;

use super::ExtremeSide;

/// The least or the greatest of nested values.
#[derive(Debug)]
pub(super) struct NestedExtreme {
    side: ExtremeSide,
    data_type: DataType,
    converter: RowConverter,
    extreme: Option<OwnedRow>,
}

impl NestedExtreme {
    /// Whether values of a type are nested.
    pub(super) fn is_of(data_type: &DataType) -> bool {
        data_type.is_nested()
    }

    /// Errors: maps have no order, alone and within other values.
    pub(super) fn new(side: ExtremeSide, data_type: &DataType) -> Result<Self> {
        let nulls_last = SortOptions::default().with_nulls_first(false);
        let converter = RowConverter::new(vec![SortField::new_with_options(data_type.clone(), nulls_last)])?;
        Ok(Self { side, data_type: data_type.clone(), converter, extreme: None })
    }
}

impl Accumulator for NestedExtreme {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(nested) = values.first() else { return Ok(()) };
        let rows = self.converter.convert_columns(values)?;
        let beyond = match self.side {
            ExtremeSide::Least => Ordering::Less,
            ExtremeSide::Greatest => Ordering::Greater,
        };
        let mut extreme = None;
        for row in rows.iter().enumerate().filter(|(at, _)| nested.is_valid(*at)).map(|(_, row)| row) {
            let before = extreme.or_else(|| self.extreme.as_ref().map(OwnedRow::row));
            if before.is_none_or(|before| row.cmp(&before) == beyond) {
                extreme = Some(row);
            }
        }
        if let Some(row) = extreme {
            self.extreme = Some(row.owned());
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let Some(extreme) = &self.extreme else { return ScalarValue::try_new_null(&self.data_type) };
        let columns = self.converter.convert_rows([extreme.row()])?;
        match columns.first() {
            Some(column) => ScalarValue::try_from_array(column, 0),
            None => ScalarValue::try_new_null(&self.data_type),
        }
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.converter.size() + self.extreme.as_ref().map_or(0, |row| row.row().data().len())
    }
}
