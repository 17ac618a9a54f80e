//! One Flight message of record batches, in Arrow's IPC format, without copying their values.
//!
//! The body is a list of pieces: the batches' own buffers wherever they are large, and what has to be written anew (offsets
//! that do not begin at zero, bits, padding). A column's buffer may come from several batches, one piece after the other,
//! so small batches become one message without being concatenated.
//!
//! Invariant: the header and the body's bytes are what arrow-ipc writes for the concatenated batches; string and binary
//! views aside, of whose data buffers the parts are sent that they refer to.

use std::ops::Range;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanBufferBuilder, ByteView, GenericByteViewArray, OffsetSizeTrait, RecordBatch,
    make_array,
};
use arrow::buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{BinaryViewType, ByteViewType, StringViewType};
use arrow_flight::FlightData;
use arrow_ipc::{
    DictionaryBatchBuilder, FieldNode, MessageBuilder, MessageHeader, MetadataVersion, RecordBatchBuilder,
};
use arrow_schema::{ArrowError, DataType};
use bytes::{Bytes, BytesMut};
use flatbuffers::FlatBufferBuilder;

/// Smaller pieces are copied together: a frame of its own costs more.
const LEAST_PIECE_BYTES: usize = 8 << 10;
/// Buffers begin at multiples of this, from the beginning of the body.
const ALIGNMENT: usize = 64;
/// What a message's header takes beside its lists of nodes and buffers, without views.
const HEADER_BYTES: usize = 256;
const PADDING: [u8; ALIGNMENT] = [0; ALIGNMENT];
/// How much of the data buffers of a views' column may be what its rows do not use.
const UNUSED_SHARE: usize = 8;
const UNUSED_BYTES: usize = 4 << 10;

/// A message: its flatbuffer, and its body in pieces.
#[derive(Debug, Clone, Default)]
pub(super) struct EncodedMessage {
    pub(super) header: Bytes,
    pub(super) body: Vec<Bytes>,
    pub(super) body_bytes: usize,
}

impl From<FlightData> for EncodedMessage {
    fn from(message: FlightData) -> Self {
        let body_bytes = message.data_body.len();
        let body = if body_bytes == 0 { Vec::new() } else { vec![message.data_body] };
        Self { header: message.data_header, body, body_bytes }
    }
}

impl From<EncodedMessage> for FlightData {
    fn from(message: EncodedMessage) -> Self {
        let mut pieces = message.body;
        let body = match pieces.len() {
            0 => Bytes::new(),
            1 => pieces.swap_remove(0),
            _ => {
                let mut whole = BytesMut::with_capacity(message.body_bytes);
                pieces.iter().for_each(|piece| whole.extend_from_slice(piece));
                whole.freeze()
            }
        };
        FlightData::new().with_data_header(message.header).with_data_body(body)
    }
}

/// Returns whether columns of this type can be encoded here; arrow-ipc encodes the others.
pub(super) fn can_encode(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, value) => can_nest(value),
        other => can_nest(other),
    }
}

fn can_nest(data_type: &DataType) -> bool {
    match data_type {
        DataType::Null
        | DataType::Boolean
        | DataType::Utf8
        | DataType::Binary
        | DataType::LargeUtf8
        | DataType::LargeBinary
        | DataType::Utf8View
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => true,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => can_nest(item.data_type()),
        DataType::Struct(fields) => fields.iter().all(|field| can_nest(field.data_type())),
        other => other.primitive_width().is_some(),
    }
}

/// Returns the message of all rows of `batches`, which have one schema, whose types [`can_encode`] accepts.
/// Errors: a type that is not supported.
pub(super) fn encode_batches(batches: &[RecordBatch]) -> Result<EncodedMessage, ArrowError> {
    let mut body = BodyBuilder::default();
    let columns = batches.first().map_or(0, RecordBatch::num_columns);
    for index in 0..columns {
        let chunks: Vec<ArrayRef> = batches.iter().map(|batch| ArrayRef::clone(batch.column(index))).collect();
        body.column(&chunks)?;
    }
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    Ok(body.finish(rows, None))
}

/// Returns the message that gives the dictionary `id` the values of `values`. Errors: as [`encode_batches`].
pub(super) fn encode_dictionary(id: i64, values: &ArrayRef) -> Result<EncodedMessage, ArrowError> {
    let mut body = BodyBuilder::default();
    body.column(std::slice::from_ref(values))?;
    Ok(body.finish(values.len(), Some(id)))
}

/// A message's body, buffer after buffer.
#[derive(Default)]
struct BodyBuilder {
    nodes: Vec<FieldNode>,
    buffers: Vec<arrow_ipc::Buffer>,
    /// The number of data buffers of each column of views.
    variadic_counts: Vec<i64>,
    pieces: Vec<Bytes>,
    /// Small pieces that follow each other.
    copied: BytesMut,
    bytes: usize,
}

impl BodyBuilder {
    fn column(&mut self, chunks: &[ArrayRef]) -> Result<(), ArrowError> {
        let Some(first) = chunks.first() else { return Ok(()) };
        let data_type = first.data_type();
        let rows: usize = chunks.iter().map(|chunk| chunk.len()).sum();
        if *data_type == DataType::Null {
            self.nodes.push(FieldNode::new(rows as i64, rows as i64));
            return Ok(());
        }
        let nulls: usize = chunks.iter().map(|chunk| chunk.null_count()).sum();
        self.nodes.push(FieldNode::new(rows as i64, nulls as i64));
        self.validity(chunks, rows, nulls);
        match data_type {
            DataType::Boolean => self.booleans(chunks, rows),
            DataType::Utf8 => self.bytes_column(chunks.iter().map(|chunk| {
                let chunk = chunk.as_string::<i32>();
                (chunk.offsets(), chunk.values())
            })),
            DataType::Binary => self.bytes_column(chunks.iter().map(|chunk| {
                let chunk = chunk.as_binary::<i32>();
                (chunk.offsets(), chunk.values())
            })),
            DataType::LargeUtf8 => self.bytes_column(chunks.iter().map(|chunk| {
                let chunk = chunk.as_string::<i64>();
                (chunk.offsets(), chunk.values())
            })),
            DataType::LargeBinary => self.bytes_column(chunks.iter().map(|chunk| {
                let chunk = chunk.as_binary::<i64>();
                (chunk.offsets(), chunk.values())
            })),
            DataType::Utf8View => self.views(chunks.iter().map(|chunk| chunk.as_byte_view::<StringViewType>())),
            DataType::BinaryView => self.views(chunks.iter().map(|chunk| chunk.as_byte_view::<BinaryViewType>())),
            DataType::List(_) => {
                let lists = chunks.iter().map(|chunk| chunk.as_list::<i32>());
                return self.lists(lists.map(|list| (list.offsets(), ArrayRef::clone(list.values()))));
            }
            DataType::LargeList(_) => {
                let lists = chunks.iter().map(|chunk| chunk.as_list::<i64>());
                return self.lists(lists.map(|list| (list.offsets(), ArrayRef::clone(list.values()))));
            }
            DataType::Map(_, _) => {
                let maps = chunks.iter().map(|chunk| chunk.as_map());
                return self.lists(maps.map(|map| (map.offsets(), make_array(map.entries().to_data()))));
            }
            DataType::FixedSizeList(_, _) => {
                let lists = chunks.iter().map(|chunk| chunk.as_fixed_size_list());
                let values: Vec<ArrayRef> = lists.map(|list| ArrayRef::clone(list.values())).collect();
                return self.column(&values);
            }
            DataType::Struct(fields) => {
                for index in 0..fields.len() {
                    let columns: Vec<ArrayRef> =
                        chunks.iter().map(|chunk| ArrayRef::clone(chunk.as_struct().column(index))).collect();
                    self.column(&columns)?;
                }
            }
            other => {
                let width = fixed_width(other).ok_or_else(|| {
                    ArrowError::NotYetImplemented(format!("{other} in a Flight message that is not copied"))
                })?;
                self.buffer(chunks.iter().map(|chunk| {
                    let data = chunk.to_data();
                    data.buffers()[0].slice_with_length(data.offset() * width, data.len() * width)
                }));
            }
        }
        Ok(())
    }

    fn validity(&mut self, chunks: &[ArrayRef], rows: usize, nulls: usize) {
        if nulls == 0 {
            return self.buffer([]);
        }
        if let [chunk] = chunks {
            return self.buffer(chunk.nulls().map(|nulls| nulls.inner().sliced()));
        }
        let mut bits = BooleanBufferBuilder::new(rows);
        for chunk in chunks {
            match chunk.nulls() {
                Some(nulls) => bits.append_buffer(nulls.inner()),
                None => bits.append_n(chunk.len(), true),
            }
        }
        self.buffer([bits.finish().into_inner()]);
    }

    fn booleans(&mut self, chunks: &[ArrayRef], rows: usize) {
        if let [chunk] = chunks {
            return self.buffer([chunk.as_boolean().values().sliced()]);
        }
        let mut bits = BooleanBufferBuilder::new(rows);
        chunks.iter().for_each(|chunk| bits.append_buffer(chunk.as_boolean().values()));
        self.buffer([bits.finish().into_inner()]);
    }

    fn bytes_column<'c, O: OffsetSizeTrait>(
        &mut self,
        chunks: impl Iterator<Item = (&'c OffsetBuffer<O>, &'c Buffer)> + Clone,
    ) {
        self.offsets(chunks.clone().map(|(offsets, _)| offsets));
        self.buffer(chunks.map(|(offsets, values)| {
            let (start, length) = range(offsets);
            values.slice_with_length(start, length)
        }));
    }

    fn lists<'c, O: OffsetSizeTrait>(
        &mut self,
        chunks: impl Iterator<Item = (&'c OffsetBuffer<O>, ArrayRef)> + Clone,
    ) -> Result<(), ArrowError> {
        self.offsets(chunks.clone().map(|(offsets, _)| offsets));
        let values: Vec<ArrayRef> = chunks
            .map(|(offsets, values)| {
                let (start, length) = range(offsets);
                values.slice(start, length)
            })
            .collect();
        self.column(&values)
    }

    /// Writes the offsets of all chunks, from zero on.
    fn offsets<'c, O: OffsetSizeTrait>(&mut self, chunks: impl Iterator<Item = &'c OffsetBuffer<O>> + Clone) {
        let mut rest = chunks.clone();
        if let (Some(only), None) = (rest.next(), rest.next())
            && range(only).0 == 0
        {
            let buffer = only.inner().inner().slice_with_length(0, only.len() * size_of::<O>());
            return self.buffer([buffer]);
        }
        let mut whole: Vec<O> = Vec::with_capacity(chunks.clone().map(|offsets| offsets.len()).sum());
        whole.push(O::default());
        let mut end = O::default();
        for offsets in chunks {
            let Some((first, following)) = offsets.split_first() else { continue };
            let shift = end;
            whole.extend(following.iter().map(|offset| *offset - *first + shift));
            end = whole.last().copied().unwrap_or(end);
        }
        self.buffer([Buffer::from_vec(whole)]);
    }

    /// Writes views and what they refer to of their data buffers.
    fn views<'c, T: ByteViewType + ?Sized>(&mut self, chunks: impl Iterator<Item = &'c GenericByteViewArray<T>>) {
        let (mut views, mut data) = (Vec::new(), Vec::new());
        for chunk in chunks {
            match used_ranges(chunk.views(), chunk.data_buffers().len()) {
                Some(used) => views.push(refer_to(&used, chunk.views(), chunk.data_buffers(), &mut data)),
                None => {
                    let copied = chunk.gc();
                    let whole: Vec<Range<usize>> = copied.data_buffers().iter().map(|buffer| 0..buffer.len()).collect();
                    views.push(refer_to(&whole, copied.views(), copied.data_buffers(), &mut data));
                }
            }
        }
        self.buffer(views);
        self.variadic_counts.push(data.len() as i64);
        data.into_iter().for_each(|buffer| self.buffer([buffer]));
    }

    /// Writes one buffer, which consists of `pieces`, and pads it.
    fn buffer(&mut self, pieces: impl IntoIterator<Item = Buffer>) {
        let start = self.bytes;
        for piece in pieces {
            self.bytes += piece.len();
            if piece.len() < LEAST_PIECE_BYTES {
                self.copied.extend_from_slice(&piece);
            } else {
                self.end_copied();
                self.pieces.push(Bytes::from_owner(BufferOwner(piece)));
            }
        }
        self.buffers.push(arrow_ipc::Buffer::new(start as i64, (self.bytes - start) as i64));
        let padding = self.bytes.next_multiple_of(ALIGNMENT) - self.bytes;
        self.copied.extend_from_slice(&PADDING[..padding]);
        self.bytes += padding;
    }

    fn end_copied(&mut self) {
        if !self.copied.is_empty() {
            self.pieces.push(self.copied.split().freeze());
        }
    }

    /// Returns the message of a record batch, or of the dictionary with that id.
    fn finish(mut self, rows: usize, dictionary: Option<i64>) -> EncodedMessage {
        self.end_copied();
        // It would begin with nothing, and be copied each time that it has grown to twice its size.
        let lists = size_of_val(self.nodes.as_slice()) + size_of_val(self.buffers.as_slice());
        let mut builder = FlatBufferBuilder::with_capacity(HEADER_BYTES + lists);
        let buffers = builder.create_vector(&self.buffers);
        let nodes = builder.create_vector(&self.nodes);
        let variadic_counts = match self.variadic_counts.as_slice() {
            [] => None,
            counts => Some(builder.create_vector(counts)),
        };
        let batch = {
            let mut batch = RecordBatchBuilder::new(&mut builder);
            batch.add_length(rows as i64);
            batch.add_nodes(nodes);
            batch.add_buffers(buffers);
            if let Some(counts) = variadic_counts {
                batch.add_variadicBufferCounts(counts);
            }
            batch.finish()
        };
        let (kind, header) = match dictionary {
            None => (MessageHeader::RecordBatch, batch.as_union_value()),
            Some(id) => {
                let mut dictionary = DictionaryBatchBuilder::new(&mut builder);
                dictionary.add_id(id);
                dictionary.add_data(batch);
                dictionary.add_isDelta(false);
                (MessageHeader::DictionaryBatch, dictionary.finish().as_union_value())
            }
        };
        let message = {
            let mut message = MessageBuilder::new(&mut builder);
            message.add_version(MetadataVersion::V5);
            message.add_header_type(kind);
            message.add_bodyLength(self.bytes as i64);
            message.add_header(header);
            message.finish()
        };
        builder.finish(message, None);
        let header = Bytes::copy_from_slice(builder.finished_data());
        EncodedMessage { header, body: self.pieces, body_bytes: self.bytes }
    }
}

/// Keeps an Arrow buffer for as long as its bytes are being sent.
struct BufferOwner(Buffer);

impl AsRef<[u8]> for BufferOwner {
    fn as_ref(&self) -> &[u8] {
        self.0.as_slice()
    }
}

/// Returns where the values begin that the offsets refer to, and how many there are.
fn range<O: OffsetSizeTrait>(offsets: &OffsetBuffer<O>) -> (usize, usize) {
    let (start, end) = (offsets[0].as_usize(), offsets[offsets.len() - 1].as_usize());
    (start, end - start)
}

/// Returns the bytes of a value of a type whose values all have as many; of a dictionary, those of its keys.
pub(super) fn fixed_width(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::FixedSizeBinary(width) => usize::try_from(*width).ok(),
        DataType::Dictionary(key, _) => key.primitive_width(),
        other => other.primitive_width(),
    }
}

/// Returns the part of each data buffer that views refer to; `None` where much of these parts is not used, so that the values
/// are better copied.
fn used_ranges(views: &[u128], buffers: usize) -> Option<Vec<Range<usize>>> {
    // The beginning and the end of each.
    let mut parts = vec![(usize::MAX, 0); buffers];
    let mut used = 0;
    for view in views {
        let view = ByteView::from(*view);
        if view.length > INLINE {
            let (start, length) = (view.offset as usize, view.length as usize);
            let part = parts.get_mut(view.buffer_index as usize)?;
            *part = (part.0.min(start), part.1.max(start + length));
            used += length;
        }
    }
    let ranges: Vec<Range<usize>> =
        parts.into_iter().map(|(start, end)| if start < end { start..end } else { 0..0 }).collect();
    let kept: usize = ranges.iter().map(|range| range.len()).sum();
    (kept <= most_kept(used)).then_some(ranges)
}

/// Adds the used parts of data buffers to `sent`, and returns the views as they refer to them there.
fn refer_to(used: &[Range<usize>], views: &ScalarBuffer<u128>, data: &[Buffer], sent: &mut Vec<Buffer>) -> Buffer {
    // The index and the beginning of each part.
    let mut parts = Vec::with_capacity(data.len());
    for (buffer, range) in data.iter().zip(used) {
        parts.push((sent.len() as u32, range.start as u32));
        if !range.is_empty() {
            sent.push(buffer.slice_with_length(range.start, range.len()));
        }
    }
    if parts.iter().enumerate().all(|(index, part)| *part == (index as u32, 0)) {
        return views.inner().slice_with_length(0, views.len() * size_of::<u128>());
    }
    let moved = views.iter().map(|view| {
        let view = ByteView::from(*view);
        match parts.get(view.buffer_index as usize) {
            Some((buffer_index, start)) if view.length > INLINE => {
                ByteView { buffer_index: *buffer_index, offset: view.offset - start, ..view }.as_u128()
            }
            _ => view.as_u128(),
        }
    });
    moved.collect::<Vec<u128>>().into()
}

/// Returns how much is sent of data buffers of which so much is used.
fn most_kept(used: usize) -> usize {
    used + used / UNUSED_SHARE + UNUSED_BYTES
}

/// Returns the most bytes that are sent of the data buffers of views.
pub(super) fn view_data_bytes(views: &[u128]) -> usize {
    let lengths = views.iter().map(|view| ByteView::from(*view).length);
    most_kept(lengths.filter(|length| *length > INLINE).map(|long| long as usize).sum())
}

/// The longest value that a view holds in itself.
const INLINE: u32 = 12;
