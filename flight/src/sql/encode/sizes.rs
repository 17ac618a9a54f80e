//! What rows take in the body of a message, before it is made.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow_schema::{DataType, Field, SchemaRef};

use super::message::{fixed_width, view_data_bytes};

/// Returns how many rows from `start` take at most `limit` body bytes; at least one.
pub(super) fn rows_that_fit(batch: &RecordBatch, start: usize, limit: usize) -> usize {
    let remaining = batch.num_rows() - start;
    let bytes_of = |rows: usize| batch_body_bytes(batch, start, rows);
    let mut most = bytes_of(remaining);
    if most <= limit {
        return remaining;
    }
    // More rows never take fewer bytes. Mostly they take as many each, which tells where to look for the boundary: to count the
    // bytes of views means to read them all. Where they do not, the middle is looked at in between.
    let (mut fitting, mut too_many) = (1, remaining);
    let mut least = bytes_of(fitting);
    for look in 1.. {
        let between = too_many - fitting;
        if between <= 1 {
            break;
        }
        let step = if look % 3 == 0 {
            between / 2
        } else {
            between.saturating_mul(limit.saturating_sub(least)) / most.saturating_sub(least).max(1)
        };
        let rows = fitting + step.clamp(1, between - 1);
        let bytes = bytes_of(rows);
        if bytes <= limit {
            (fitting, least) = (rows, bytes);
        } else {
            (too_many, most) = (rows, bytes);
        }
    }
    fitting
}

pub(super) fn batch_body_bytes(batch: &RecordBatch, start: usize, rows: usize) -> usize {
    batch.columns().iter().map(|column| body_bytes(column.as_ref(), start, rows)).sum()
}

/// Returns the bytes that `rows` rows of `array` from `start` take in a message body, as arrow-ipc writes slices: validity
/// (if there are nulls), offsets, and only the values that the slice refers to, each buffer padded to 64 bytes.
fn body_bytes(array: &dyn Array, start: usize, rows: usize) -> usize {
    let validity = if array.null_count() > 0 { padded(rows.div_ceil(8)) } else { 0 };
    validity
        + match array.data_type() {
            DataType::Null => 0,
            DataType::Boolean => padded(rows.div_ceil(8)),
            DataType::Utf8 => {
                let offsets = array.as_string::<i32>().value_offsets();
                padded((rows + 1) * 4) + padded((offsets[start + rows] - offsets[start]) as usize)
            }
            DataType::Binary => {
                let offsets = array.as_binary::<i32>().value_offsets();
                padded((rows + 1) * 4) + padded((offsets[start + rows] - offsets[start]) as usize)
            }
            DataType::LargeUtf8 => {
                let offsets = array.as_string::<i64>().value_offsets();
                padded((rows + 1) * 8) + padded((offsets[start + rows] - offsets[start]) as usize)
            }
            DataType::LargeBinary => {
                let offsets = array.as_binary::<i64>().value_offsets();
                padded((rows + 1) * 8) + padded((offsets[start + rows] - offsets[start]) as usize)
            }
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                let offsets = list.value_offsets();
                let (from, to) = (offsets[start] as usize, offsets[start + rows] as usize);
                padded((rows + 1) * 4) + body_bytes(list.values().as_ref(), from, to - from)
            }
            DataType::Map(_, _) => {
                let map = array.as_map();
                let offsets = map.value_offsets();
                let (from, to) = (offsets[start] as usize, offsets[start + rows] as usize);
                padded((rows + 1) * 4) + body_bytes(map.entries(), from, to - from)
            }
            DataType::FixedSizeList(_, size) => {
                let size = usize::try_from(*size).unwrap_or(0);
                body_bytes(array.as_fixed_size_list().values().as_ref(), start * size, rows * size)
            }
            DataType::Struct(_) => {
                array.as_struct().columns().iter().map(|column| body_bytes(column.as_ref(), start, rows)).sum()
            }
            DataType::Utf8View => view_bytes(&array.as_string_view().views()[start..start + rows]),
            DataType::BinaryView => view_bytes(&array.as_binary_view().views()[start..start + rows]),
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                let offsets = list.value_offsets();
                let (from, to) = (offsets[start] as usize, offsets[start + rows] as usize);
                padded((rows + 1) * 8) + body_bytes(list.values().as_ref(), from, to - from)
            }
            other => match fixed_width(other) {
                Some(width) => padded(rows * width),
                // Unions and other types that are written whole whatever the slice.
                None => array.get_array_memory_size(),
            },
        }
}

fn view_bytes(views: &[u128]) -> usize {
    padded(size_of_val(views)) + padded(view_data_bytes(views))
}

fn padded(bytes: usize) -> usize {
    bytes.next_multiple_of(64)
}

/// Returns an upper bound of a batch message's flatbuffer: 16 bytes a node and a buffer, at most three buffers a field.
pub(super) fn header_bytes(schema: &SchemaRef) -> usize {
    fn fields(field: &Field) -> usize {
        1 + match field.data_type() {
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::FixedSizeList(item, _)
            | DataType::Map(item, _) => fields(item),
            DataType::Struct(children) => children.iter().map(|child| fields(child)).sum(),
            DataType::Union(children, _) => children.iter().map(|(_, child)| fields(child)).sum(),
            _ => 0,
        }
    }
    256 + 64 * schema.fields().iter().map(|field| fields(field)).sum::<usize>()
}
