// What a chart of a result shows: a kind, and columns for its parts. Chosen by the columns' types, and by KQL's `render`.
import type { GridColumn, Rows } from "./grid/rows";

export type ChartKind = "bar" | "line" | "area" | "point" | "arc";

export interface ChartChoice {
  kind: ChartKind;
  /** Columns by their places. */
  x: number;
  y: number;
  color: number | null;
}

export const KINDS: { value: ChartKind; label: string }[] = [
  { value: "bar", label: "Bars" }, { value: "line", label: "Line" }, { value: "area", label: "Area" },
  { value: "point", label: "Points" }, { value: "arc", label: "Pie" },
];

/** Rows that a chart has; more are not told apart, and take long to draw. */
export const MOST_ROWS = 5000;
/** Bars, or pieces of a pie, that are told apart. */
const MOST_BARS = 200;
const MOST_COLOURS = 12;

const RENDERED: Record<string, ChartKind> = {
  timechart: "line", linechart: "line", areachart: "area", stackedareachart: "area", columnchart: "bar", barchart: "bar",
  scatterchart: "point", piechart: "arc",
};

/** The kind of chart that a KQL query ends with. */
export function renderedKind(query: string): ChartKind | null {
  const [, name = ""] = /\|\s*render\s+(\w+)[^|]*$/.exec(query) ?? [];
  return RENDERED[name.toLowerCase()] ?? null;
}

export function isTime(column: GridColumn): boolean {
  return /^(DATE|TIMESTAMP)/.test(column.type);
}

/** Whether a column can be drawn at all: lists, structs and bytes cannot. */
export function isDrawn(column: GridColumn): boolean {
  return column.isNumeric || isTime(column) || /^(VARCHAR|BOOLEAN)$/.test(column.type);
}

/** A chart that fits the columns; `null` where no column has numbers, or nothing is left for the other axis. */
export function choiceOf(rows: Rows, rendered: ChartKind | null): ChartChoice | null {
  const columns = rows.columns.map((column, at) => ({ column, at })).filter(({ column }) => isDrawn(column));
  const time = columns.find(({ column }) => isTime(column));
  const words = columns.filter(({ column }) => !column.isNumeric && !isTime(column));
  const numbers = columns.filter(({ column }) => column.isNumeric);
  const x = time ?? words[0] ?? (numbers.length > 1 ? numbers[0] : undefined);
  const y = numbers.find((one) => one.at !== x?.at);
  if (!x || !y) return null;
  const color = words.find((one) => one.at !== x.at && valuesOf(rows, one.at).size <= MOST_COLOURS);
  const fitting = time ? "line" : words.length > 0 ? "bar" : isInOrder(rows, x.at) ? "line" : "point";
  const choice: ChartChoice = { kind: rendered ?? fitting, x: x.at, y: y.at, color: color?.at ?? null };
  if (rendered !== null || fitting === "point" || !isShared(rows, choice)) return choice;
  // Several rows at a place are points: a line between them would mean nothing, and bars would be sums.
  const [first, second] = numbers;
  if (time || !first || !second) return { ...choice, kind: "point" };
  const group = words.find((one) => valuesOf(rows, one.at).size <= MOST_COLOURS);
  return { kind: "point", x: first.at, y: second.at, color: group?.at ?? null };
}

/** Whether several rows stand at one place of the chart. */
export function isShared(rows: Rows, { x, color }: ChartChoice): boolean {
  const places = new Set<string>();
  for (let row = 0; row < Math.min(rows.count, MOST_ROWS); row++) {
    const place = JSON.stringify([rows.text(row, x), color === null ? null : rows.text(row, color)]);
    if (places.has(place)) return true;
    places.add(place);
  }
  return false;
}

/** Whether numbers only grow, as years and hours do. */
function isInOrder(rows: Rows, column: number): boolean {
  let last = -Infinity;
  for (let row = 0; row < Math.min(rows.count, MOST_ROWS); row++) {
    const value = Number(rows.text(row, column) ?? NaN);
    if (!(value > last)) return false;
    last = value;
  }
  return true;
}

function valuesOf(rows: Rows, column: number): Set<string | null> {
  const values = new Set<string | null>();
  for (let row = 0; row < Math.min(rows.count, MOST_ROWS) && values.size <= MOST_COLOURS; row++) values.add(rows.text(row, column));
  return values;
}

export type ChartRow = Record<"x" | "y" | "color", string | number | null>;

/** The rows of a chart, and whether there are more than it shows. */
export function chartRows(rows: Rows, choice: ChartChoice): { shown: ChartRow[]; isCut: boolean } {
  const isDiscrete = choice.kind === "arc" || (choice.kind === "bar" && !isTime(rows.columns[choice.x]!) && !rows.columns[choice.x]!.isNumeric);
  const shown: ChartRow[] = [];
  const places = new Set<string | number | null>();
  for (let row = 0; row < Math.min(rows.count, MOST_ROWS); row++) {
    const x = drawnValue(rows, row, choice.x, choice.kind === "arc");
    if (isDiscrete && !places.has(x) && places.size >= MOST_BARS) return { shown, isCut: true };
    places.add(x);
    const color = choice.color === null ? null : rows.text(row, choice.color) ?? "null";
    shown.push({ x, y: drawnValue(rows, row, choice.y, false), color });
  }
  return { shown, isCut: rows.count > MOST_ROWS };
}

/** A number, the milliseconds of an instant, or a text. */
function drawnValue(rows: Rows, row: number, at: number, isText: boolean): string | number | null {
  const column = rows.columns[at]!;
  const text = rows.text(row, at);
  if (isText) return text ?? "null";
  if (text === null) return column.isNumeric || isTime(column) ? null : "null";
  const value = column.isNumeric ? Number(text) : isTime(column) ? Date.parse(instant(text)) : NaN;
  if (column.isNumeric || isTime(column)) return Number.isFinite(value) ? value : null;
  return text;
}

/** A timestamp without a zone is shown as it is written, which is UTC's clock. */
function instant(text: string): string {
  const written = text.replace(" ", "T");
  return /[zZ]$/.test(written) || !written.includes("T") ? written : `${written}Z`;
}

/** The Vega-Lite specification of a chart. */
export function specOf(columns: GridColumn[], { kind, x, y, color }: ChartChoice): object {
  const titled = (at: number) => ({ title: columns[at]!.name });
  const measure = { field: "y", type: "quantitative", ...titled(y) };
  const description = `${columns[y]!.name} by ${columns[x]!.name}`;
  if (kind === "arc") {
    const pieces = { field: "x", type: "nominal", sort: null, ...titled(x) };
    return { description, mark: { type: "arc", tooltip: true }, encoding: { theta: { ...measure, stack: true }, color: pieces, order: { field: "y", sort: "descending" } } };
  }
  const column = columns[x]!;
  const type = isTime(column) ? "temporal" : column.isNumeric && kind !== "bar" ? "quantitative" : column.isNumeric ? "ordinal" : "nominal";
  const scale = type === "temporal" ? { scale: { type: "utc" } } : type === "quantitative" ? { scale: { zero: false } } : { sort: null };
  const colour = color === null ? {} : { color: { field: "color", type: "nominal", ...titled(color) } };
  return {
    description,
    mark: { type: kind, tooltip: true, ...(kind === "line" ? { point: true } : {}) },
    encoding: { x: { field: "x", type, ...titled(x), ...scale }, y: { ...measure, ...(kind === "point" ? { scale: { zero: false } } : {}) }, ...colour },
  };
}
