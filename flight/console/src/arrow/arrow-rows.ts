// Rows of an Arrow stream, batch by batch as they come, and the text of their cells. Loaded when a query first runs.
import { DataType, type RecordBatch, RecordBatchReader, type Schema, type Vector } from "apache-arrow";

import type { GridColumn, Rows } from "../grid/rows";

/** Rows that grow while the stream is read. */
export class ArrowRows implements Rows {
  columns: GridColumn[] = [];
  count = 0;
  private readonly batches: RecordBatch[] = [];
  private readonly starts: number[] = [];
  private readonly vectors: Vector[][] = [];
  private near = 0;

  /** Reads a stream to its end, or until there are `most` rows; says whether it was cut there. */
  async read(body: ReadableStream<Uint8Array>, most: number, grew: () => void): Promise<boolean> {
    const reader = await RecordBatchReader.from(body);
    await reader.open();
    this.columns = columnsOf(reader.schema);
    grew();
    for await (const batch of reader) {
      if (batch.numRows === 0) continue;
      const room = most - this.count;
      this.add(batch.numRows > room ? batch.slice(0, room) : batch);
      grew();
      if (batch.numRows > room) return true;
    }
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

function columnsOf(schema: Schema): GridColumn[] {
  return schema.fields.map((field) => ({
    name: field.name,
    type: typeName(field.type),
    isNumeric: DataType.isInt(field.type) || DataType.isFloat(field.type) || DataType.isDecimal(field.type),
  }));
}

const UNITS = ["s", "ms", "µs", "ns"];
const DIGITS = [0, 3, 6, 9];

function typeName(type: DataType): string {
  if (DataType.isTimestamp(type)) return `Timestamp(${UNITS[type.unit]}${type.timezone ? `, ${type.timezone}` : ""})`;
  return String(type);
}

/** The text of one value, exact: no 64-bit integer, decimal or nanosecond goes through a float. */
export function cellText(vector: Vector, row: number): string | null {
  if (!vector.isValid(row)) return null;
  const type: DataType = vector.type;
  const data = vector.data[0]!;
  if (DataType.isTimestamp(type)) {
    return instantText((data.values as BigInt64Array)[row]!, DIGITS[type.unit]!, Boolean(type.timezone));
  }
  if (DataType.isDate(type)) {
    const days = type.unit === 0 ? (data.values as Int32Array)[row]! : Number(vector.get(row)) / 86_400_000;
    return isoDate(BigInt(Math.floor(days)));
  }
  if (DataType.isTime(type)) {
    return timeText(BigInt((data.values as Int32Array | BigInt64Array)[row]!), DIGITS[type.unit]!);
  }
  if (DataType.isDuration(type)) return `${(data.values as BigInt64Array)[row]} ${UNITS[type.unit]}`;
  if (DataType.isDecimal(type)) return decimalText(data.values as Uint32Array, row, type.bitWidth / 32, type.scale);
  if (DataType.isBinary(type) || DataType.isFixedSizeBinary(type)) {
    return `\\x${[...(vector.get(row) as Uint8Array)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
  }
  return plainText(vector.get(row));
}

function plainText(value: unknown): string {
  if (typeof value === "string") return value;
  if (typeof value === "object" && value !== null) return JSON.stringify(value, exactInteger);
  return String(value);
}

function exactInteger(_: string, value: unknown): unknown {
  if (typeof value === "bigint") return value >= -(2n ** 53n) && value <= 2n ** 53n ? Number(value) : String(value);
  return ArrayBuffer.isView(value) ? [...(value as unknown as Iterable<unknown>)] : value;
}

function instantText(value: bigint, digits: number, isZoned: boolean): string {
  const perSecond = 10n ** BigInt(digits);
  const perDay = 86_400n * perSecond;
  const rest = ((value % perDay) + perDay) % perDay;
  return `${isoDate((value - rest) / perDay)}${isZoned ? "T" : " "}${timeText(rest, digits)}${isZoned ? "Z" : ""}`;
}

function timeText(value: bigint, digits: number): string {
  const perSecond = 10n ** BigInt(digits);
  const seconds = Number(value / perSecond);
  const clock = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const fraction = (value % perSecond).toString().padStart(digits, "0").replace(/0+$/, "");
  return clock.map((part) => String(part).padStart(2, "0")).join(":") + (fraction && digits ? `.${fraction}` : "");
}

/** A day since 1970 as a date of the proleptic Gregorian calendar (Howard Hinnant's `civil_from_days`). */
function isoDate(day: bigint): string {
  const shifted = Number(day) + 719_468;
  const era = Math.floor(shifted / 146_097);
  const ofEra = shifted - era * 146_097;
  const years = Math.floor((ofEra - Math.floor(ofEra / 1460) + Math.floor(ofEra / 36_524) - Math.floor(ofEra / 146_096)) / 365);
  const ofYear = ofEra - (365 * years + Math.floor(years / 4) - Math.floor(years / 100));
  const month = (Math.floor((5 * ofYear + 2) / 153) + 2) % 12 + 1;
  const date = ofYear - Math.floor((153 * ((month + 9) % 12) + 2) / 5) + 1;
  const year = years + era * 400 + (month <= 2 ? 1 : 0);
  return `${String(year).padStart(4, "0")}-${String(month).padStart(2, "0")}-${String(date).padStart(2, "0")}`;
}

function decimalText(words: Uint32Array, row: number, width: number, scale: number): string {
  let value = 0n;
  for (let at = width - 1; at >= 0; at--) value = (value << 32n) | BigInt(words[row * width + at]!);
  const text = BigInt.asIntN(width * 32, value).toString();
  if (scale <= 0) return text + "0".repeat(-scale);
  const digits = text.replace("-", "").padStart(scale + 1, "0");
  return `${text.startsWith("-") ? "-" : ""}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}
