// Rows of an Arrow stream, batch by batch as they come. Loaded when a query first runs.
import { DataType, type RecordBatch, RecordBatchReader, type Schema, type Vector } from "apache-arrow";

import type { GridColumn, Rows } from "../grid/rows";
import { sqlTypeName } from "../type-names";
import { cellText, isAnyList } from "./cell-text";

/** Rows that grow while the stream is read. */
export class ArrowRows implements Rows {
  columns: GridColumn[] = [];
  count = 0;
  private readonly batches: RecordBatch[] = [];
  private readonly starts: number[] = [];
  private readonly vectors: Vector[][] = [];
  private near = 0;

  /** Reads a stream to its end, or until there are so many rows or bytes; says whether it was cut there. */
  async read(body: ReadableStream<Uint8Array>, most: { rows: number; bytes: number }, grew: () => void): Promise<boolean> {
    const arrived = { bytes: 0, failure: null as unknown };
    const reader = await RecordBatchReader.from(pieces(body, arrived));
    await reader.open();
    this.columns = columnsOf(reader.schema);
    grew();
    for await (const batch of reader) {
      if (batch.numRows === 0) continue;
      const room = most.rows - this.count;
      this.add(batch.numRows > room ? batch.slice(0, room) : batch);
      grew();
      if (batch.numRows > room || arrived.bytes > most.bytes) return true;
    }
    // The reader takes a stream that breaks off between two batches for one that ends there.
    if (arrived.failure !== null) throw arrived.failure;
    return false;
  }

  text(row: number, column: number): string | null {
    const at = this.batchOf(row);
    const vector = this.vectors[at]?.[column];
    return vector ? cellText(vector, row - (this.starts[at] ?? 0)) : null;
  }

  private add(batch: RecordBatch): void {
    this.starts.push(this.count);
    this.batches.push(batch);
    this.vectors.push(this.columns.map((_, at) => batch.getChildAt(at)!));
    this.count += batch.numRows;
  }

  private batchOf(row: number): number {
    const holds = (at: number) =>
      (this.starts[at] ?? Infinity) <= row && row < (this.starts[at] ?? 0) + (this.batches[at]?.numRows ?? 0);
    if (holds(this.near)) return this.near;
    let [low, high] = [0, this.batches.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.starts[middle] ?? 0) <= row) low = middle;
      else high = middle - 1;
    }
    this.near = low;
    return low;
  }
}

/** The pieces of a body as they come, with how much came and why no more did. */
async function* pieces(body: ReadableStream<Uint8Array>, arrived: { bytes: number; failure: unknown }): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  try {
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      arrived.bytes += piece.value.byteLength;
      yield piece.value;
    }
  } catch (error) {
    arrived.failure = error;
    throw error;
  }
}

function columnsOf(schema: Schema): GridColumn[] {
  return schema.fields.map((field) => ({
    name: field.name,
    type: typeName(field.type),
    isNumeric: DataType.isInt(field.type) || DataType.isFloat(field.type) || DataType.isDecimal(field.type),
  }));
}

const TIMESTAMPS = ["TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP", "TIMESTAMP_NS"];

/** The name of a type in SQL, as the catalog's pages have it; one that has none of its own stays Arrow's. */
function typeName(type: DataType): string {
  if (DataType.isInt(type)) return sqlTypeName(`${type.isSigned ? "Int" : "UInt"}${type.bitWidth}`);
  if (DataType.isTimestamp(type)) return type.timezone ? "TIMESTAMP WITH TIME ZONE" : TIMESTAMPS[type.unit]!;
  if (DataType.isDate(type)) return "DATE";
  if (DataType.isTime(type)) return "TIME";
  if (DataType.isDuration(type) || DataType.isInterval(type)) return "INTERVAL";
  if (DataType.isDecimal(type)) return `DECIMAL(${type.precision},${type.scale})`;
  if (DataType.isBool(type)) return "BOOLEAN";
  if (isAnyList(type)) return `${typeName(type.valueType)}[]`;
  if (DataType.isStruct(type)) {
    return `STRUCT(${type.children.map((field) => `${field.name} ${typeName(field.type)}`).join(", ")})`;
  }
  if (DataType.isMap(type)) return `MAP(${typeName(type.keyType)}, ${typeName(type.valueType)})`;
  return sqlTypeName(String(type));
}
