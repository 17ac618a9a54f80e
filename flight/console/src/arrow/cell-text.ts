// The text of one value of an Arrow vector, exact wherever it lies: no 64-bit integer, decimal or nanosecond goes through a
// float, in a column of its own or inside of lists, structs and maps. Times, intervals and durations read as the server's
// CSV has them.
import { DataType, type FixedSizeList, type LargeList, type List, type Map_, type Struct, TimeUnit, Vector } from "apache-arrow";

/** Digits of a second's fraction, by Arrow's units: seconds, milliseconds, microseconds, nanoseconds. */
const DIGITS = [0, 3, 6, 9];

export function cellText(vector: Vector, row: number): string | null {
  const type: DataType = vector.type;
  if (DataType.isNull(type) || !vector.isValid(row)) return null;
  const data = vector.data[0]!;
  if (DataType.isTimestamp(type)) {
    const ticks = (data.values as BigInt64Array)[row]!;
    // Nanoseconds end in 2262, which is a day as any other.
    const infinite = type.unit === TimeUnit.NANOSECOND ? null : infinityText(ticks, LAST_TICK);
    return infinite ?? instantText(ticks, DIGITS[type.unit]!, Boolean(type.timezone));
  }
  if (DataType.isDate(type)) {
    const days = type.unit === 0 ? (data.values as Int32Array)[row]! : Number(vector.get(row)) / 86_400_000;
    return infinityText(BigInt(Math.floor(days)), LAST_DAY) ?? isoDate(BigInt(Math.floor(days)));
  }
  if (DataType.isTime(type)) {
    return timeText(BigInt((data.values as Int32Array | BigInt64Array)[row]!), DIGITS[type.unit]!);
  }
  if (DataType.isDuration(type)) return durationText((data.values as BigInt64Array)[row]!, DIGITS[type.unit]!);
  if (DataType.isInterval(type)) return intervalText(data.values as Int32Array, row, type.unit);
  if (DataType.isDecimal(type)) return decimalText(data.values as Uint32Array, row, type.bitWidth / 32, type.scale);
  if (DataType.isBinary(type) || DataType.isLargeBinary(type) || DataType.isFixedSizeBinary(type)) {
    return `\\x${[...(vector.get(row) as Uint8Array)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
  }
  if (DataType.isFloat(type)) return floatText(vector.get(row) as number, type.precision === 1);
  if (isAnyList(type)) return listText(vector.get(row) as Vector);
  if (DataType.isStruct(type)) return structText(vector as Vector<Struct>, row);
  if (DataType.isMap(type)) return mapText(vector as Vector<Map_>, row);
  const value: unknown = vector.get(row);
  return typeof value === "object" ? JSON.stringify(value, withoutBigints) : String(value);
}

/** An integer that is too large for a JavaScript number, as a text: JSON.stringify refuses it otherwise. */
function withoutBigints(_: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}

/** A value inside of another, as JSON has it; numbers with all their digits, and what JSON lacks as text. */
function nestedText(vector: Vector, row: number): string {
  const text = cellText(vector, row);
  return text === null ? "null" : isWrittenBare(vector.type) ? text : JSON.stringify(text);
}

function isWrittenBare(type: DataType): boolean {
  return DataType.isInt(type) || DataType.isFloat(type) || DataType.isDecimal(type) || DataType.isBool(type)
    || isAnyList(type) || DataType.isStruct(type) || DataType.isMap(type);
}

/** Lists of any length, of many values (as polars writes all of its lists), and of a fixed number. */
export function isAnyList(type: DataType): type is List | LargeList | FixedSizeList {
  return DataType.isList(type) || DataType.isLargeList(type) || DataType.isFixedSizeList(type);
}

function listText(items: Vector): string {
  return `[${Array.from({ length: items.length }, (_, at) => nestedText(items, at)).join(",")}]`;
}

function structText(vector: Vector<Struct>, row: number): string {
  const fields = vector.type.children.map(({ name }, at) => `${JSON.stringify(name)}:${nestedText(vector.getChildAt(at)!, row)}`);
  return `{${fields.join(",")}}`;
}

function mapText(vector: Vector<Map_>, row: number): string {
  const { valueOffsets, children } = vector.data[0]!;
  const entries = new Vector([children[0]!]) as Vector<Struct>;
  const [keys, values] = [entries.getChildAt(0)!, entries.getChildAt(1)!];
  const fields: string[] = [];
  for (let at = valueOffsets[row]!; at < valueOffsets[row + 1]!; at++) {
    fields.push(`${JSON.stringify(cellText(keys, at))}:${nestedText(values, at)}`);
  }
  return `{${fields.join(",")}}`;
}

const LAST_DAY = 2n ** 31n - 1n;
const LAST_TICK = 2n ** 63n - 1n;

/** DuckDB's infinite dates and times are the ends of what there is, and read as such. */
function infinityText(value: bigint, last: bigint): string | null {
  return value === last ? "infinity" : value === -last ? "-infinity" : null;
}

/** The fewest digits that name the number among those of its precision. */
function floatText(value: number, isSingle: boolean): string {
  if (Object.is(value, -0)) return "-0";
  for (let digits = 6; isSingle && digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return String(short);
  }
  return String(value);
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
  return clock.map((part) => String(part).padStart(2, "0")).join(":") + fractionText(value % perSecond, digits);
}

function fractionText(value: bigint, digits: number): string {
  const fraction = value.toString().padStart(digits, "0").replace(/0+$/, "");
  return fraction && digits ? `.${fraction}` : "";
}

function durationText(value: bigint, digits: number): string {
  if (value === 0n) return "P0D";
  const perSecond = 10n ** BigInt(digits);
  const size = value < 0n ? -value : value;
  return `${value < 0n ? "-" : ""}PT${size / perSecond}${fractionText(size % perSecond, digits)}S`;
}

/** Months, days and what is less than a day, by Arrow's units of intervals: years and months; days and time; all three. */
function intervalText(words: Int32Array, row: number, unit: number): string {
  if (unit === 0) return partsText([[BigInt(words[row]!), "mons"]]);
  if (unit === 1) {
    return partsText([[BigInt(words[2 * row]!), "days"], ...clockParts(BigInt(words[2 * row + 1]!) * 1_000_000n)]);
  }
  const [months, days, low, high] = words.subarray(4 * row, 4 * row + 4);
  const nanoseconds = (BigInt(high!) << 32n) | BigInt(low! >>> 0);
  return partsText([[BigInt(months!), "mons"], [BigInt(days!), "days"], ...clockParts(nanoseconds)]);
}

function clockParts(nanoseconds: bigint): [bigint | string, string][] {
  const seconds = nanoseconds / 1_000_000_000n;
  const rest = nanoseconds % 1_000_000_000n;
  const ofMinute = seconds % 60n;
  const sign = ofMinute < 0n || rest < 0n ? "-" : "";
  const digits = String(rest < 0n ? -rest : rest).padStart(9, "0");
  const second = ofMinute === 0n && rest === 0n ? 0n : `${sign}${ofMinute < 0n ? -ofMinute : ofMinute}.${digits}`;
  return [[seconds / 3600n, "hours"], [(seconds / 60n) % 60n, "mins"], [second, "secs"]];
}

function partsText(parts: [bigint | string, string][]): string {
  return parts.filter(([number]) => number !== 0n).map(([number, name]) => `${number} ${name}`).join(" ") || "0 secs";
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
  const sign = year < 0 ? "-" : year > 9999 ? "+" : "";
  return `${sign}${String(Math.abs(year)).padStart(4, "0")}-${String(month).padStart(2, "0")}-${String(date).padStart(2, "0")}`;
}

function decimalText(words: Uint32Array, row: number, width: number, scale: number): string {
  let value = 0n;
  for (let at = width - 1; at >= 0; at--) value = (value << 32n) | BigInt(words[row * width + at]!);
  const text = BigInt.asIntN(width * 32, value).toString();
  if (scale <= 0) return text + "0".repeat(-scale);
  const digits = text.replace("-", "").padStart(scale + 1, "0");
  return `${text.startsWith("-") ? "-" : ""}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}
