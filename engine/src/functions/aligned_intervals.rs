//! Intervals at addresses that Arrow copies them from. It copies values of 16 bytes as integers of that size, and panics where they
//! lie at an odd multiple of eight bytes, as they may in a message or a file; the alignment that it asks of intervals is eight.

use arrow::array::{Array, ArrayData, ArrayRef, RecordBatch, make_array};
use arrow::buffer::Buffer;
use arrow::datatypes::{DataType, IntervalUnit};
use arrow::error::ArrowError;

/// Returns the rows with intervals at such addresses, also within other values.
pub(crate) fn rows_with_aligned_intervals(rows: RecordBatch) -> Result<RecordBatch, ArrowError> {
    if !rows.schema_ref().fields().iter().any(|field| has_intervals(field.data_type())) {
        return Ok(rows);
    }
    let aligned_column = |column: ArrayRef| -> Result<ArrayRef, ArrowError> {
        match has_intervals(column.data_type()) {
            true => Ok(make_array(aligned(column.to_data())?)),
            false => Ok(column),
        }
    };
    let (schema, columns, _) = rows.into_parts();
    let columns = columns.into_iter().map(aligned_column).collect::<Result<Vec<_>, ArrowError>>()?;
    RecordBatch::try_new(schema, columns)
}

fn has_intervals(data_type: &DataType) -> bool {
    match data_type {
        DataType::Interval(IntervalUnit::MonthDayNano) => true,
        DataType::Dictionary(_, values) => has_intervals(values),
        DataType::Struct(fields) => fields.iter().any(|field| has_intervals(field.data_type())),
        DataType::List(part)
        | DataType::LargeList(part)
        | DataType::ListView(part)
        | DataType::LargeListView(part)
        | DataType::FixedSizeList(part, _)
        | DataType::Map(part, _)
        | DataType::RunEndEncoded(_, part) => has_intervals(part.data_type()),
        _ => false,
    }
}

fn aligned(data: ArrayData) -> Result<ArrayData, ArrowError> {
    let is_interval = *data.data_type() == DataType::Interval(IntervalUnit::MonthDayNano);
    let aligned_buffer = |buffer: &Buffer| match is_interval && buffer.as_ptr().align_offset(align_of::<i128>()) > 0 {
        true => Buffer::from(buffer.as_slice()),
        false => buffer.clone(),
    };
    let buffers = data.buffers().iter().map(aligned_buffer).collect();
    let parts = data.child_data().iter().cloned().map(aligned).collect::<Result<Vec<_>, ArrowError>>()?;
    data.into_builder().buffers(buffers).child_data(parts).build()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{AsArray, FixedSizeListArray, IntervalMonthDayNanoArray};
    use arrow::buffer::ScalarBuffer;
    use arrow::compute::concat;
    use arrow::datatypes::{Field, IntervalMonthDayNano, IntervalMonthDayNanoType};

    use super::*;

    #[test]
    fn intervals_of_a_message_are_copied_as_others() {
        let interval = IntervalMonthDayNano::new(1, 2, 3);
        let bytes: Vec<u8> =
            [1_u64, 1 | (2 << 32), 3, 1 | (2 << 32), 3].iter().flat_map(|word| word.to_le_bytes()).collect();
        let message = Buffer::from(bytes.as_slice());
        let buffer = message.slice_with_length(8, 32);
        assert!(buffer.as_ptr().align_offset(align_of::<i128>()) > 0);
        let values: ArrayRef = Arc::new(IntervalMonthDayNanoArray::new(ScalarBuffer::new(buffer, 0, 2), None));
        let item = Arc::new(Field::new_list_field(values.data_type().clone(), true));
        let lists: ArrayRef = Arc::new(FixedSizeListArray::new(item, 1, values, None));
        let rows = RecordBatch::try_from_iter([("spans", lists)]).unwrap();
        let rows = rows_with_aligned_intervals(rows).unwrap();
        let spans = rows.column(0).as_ref();
        let twice = concat(&[spans, spans]).unwrap();
        let values = twice.as_fixed_size_list().values().as_primitive::<IntervalMonthDayNanoType>();
        assert_eq!(values.values().to_vec(), [interval; 4]);
    }
}
