// What a chart of a result shows: a kind, and columns for its parts. Chosen by the columns' types, and by KQL's `render`.
import type { GridColumn, Rows } from "./grid/rows";
import type { Rendered } from "./kql-render";

export type ChartKind = "bar" | "line" | "area" | "point" | "arc";
/** How bars or areas of one place stand: beside or before each other, on each other, or as parts of a whole. */
export type Arrangement = "each" | "stacked" | "stacked100";
/** Where an axis begins and ends, what it is called, and how it grows. */
export interface AxisChoice {
  title?: string;
  isLog?: boolean;
  least?: number;
  most?: number;
}

export interface ChartChoice {
  kind: ChartKind;
  /** Columns by their places. */
  x: number;
  /** Several are told apart by colour. */
  y: number[];
  color: number | null;
  arrangement: Arrangement;
  /** Bars that lie. */
  isHorizontal: boolean;
  /** Each value with those before it added. */
  isAccumulated: boolean;
  title?: string;
  hasLegend: boolean;
  xAxis: AxisChoice;
  yAxis: AxisChoice;
}

export const KINDS: { value: ChartKind; label: string }[] = [
  { value: "bar", label: "Bars" }, { value: "line", label: "Line" }, { value: "area", label: "Area" },
  { value: "point", label: "Points" }, { value: "arc", label: "Pie" },
];

export const ARRANGEMENTS: { value: Arrangement; label: string }[] = [
  { value: "each", label: "each" }, { value: "stacked", label: "stacked" }, { value: "stacked100", label: "as parts of 100 %" },
];

/** Marks that a chart has; more are not told apart, and take long to draw. */
export const MOST_ROWS = 5000;
/** Bars, or pieces of a pie, that are told apart. */
const MOST_BARS = 200;
const MOST_COLOURS = 12;

const RENDERED: Record<string, Partial<ChartChoice> & { kind: ChartKind }> = {
  timechart: { kind: "line" },
  linechart: { kind: "line" },
  anomalychart: { kind: "line" },
  areachart: { kind: "area" },
  stackedareachart: { kind: "area", arrangement: "stacked" },
  columnchart: { kind: "bar" },
  barchart: { kind: "bar", isHorizontal: true },
  scatterchart: { kind: "point" },
  piechart: { kind: "arc" },
};

/** Whether `render` asks for a chart of rows: not for a table, a card or a picture that this page does not draw. */
export function isChart(rendered: Rendered | null): boolean {
  return rendered !== null && RENDERED[rendered.chart] !== undefined;
}

/** Whether `render` asks for the values of the first row, large. */
export function isCard(rendered: Rendered | null): boolean {
  return rendered?.chart === "card";
}

/** Whether `render` asks for something that this page shows: a chart or a card. */
export function isShown(rendered: Rendered | null): boolean {
  return isChart(rendered) || isCard(rendered);
}

export function isTime(column: GridColumn): boolean {
  return /^(DATE|TIMESTAMP)/.test(column.type);
}

/** Whether a column can be drawn at all: lists, structs and bytes cannot. */
export function isDrawn(column: GridColumn): boolean {
  return column.isNumeric || isTime(column) || /^(VARCHAR|BOOLEAN)$/.test(column.type);
}

const PLAIN = { arrangement: "stacked", isHorizontal: false, isAccumulated: false, hasLegend: true, xAxis: {}, yAxis: {} } as const;

/**
 * A chart that fits the columns; `null` where no column has numbers, or nothing is left for the other axis. `axis` is the column
 * of places where the rows were series.
 */
export function choiceOf(rows: Rows, rendered: Rendered | null, axis: number | null): ChartChoice | null {
  const columns = rows.columns.map((column, at) => ({ column, at })).filter(({ column }) => isDrawn(column));
  if (rendered !== null && isChart(rendered)) return choiceOfRender(rows, rendered, columns.map(({ at }) => at), axis);
  const time = columns.find(({ column }) => isTime(column));
  const words = columns.filter(({ column }) => !column.isNumeric && !isTime(column));
  const numbers = columns.filter(({ column }) => column.isNumeric);
  const x = time ?? words[0] ?? (numbers.length > 1 ? numbers[0] : undefined);
  const y = numbers.find((one) => one.at !== x?.at);
  if (!x || !y) return null;
  const color = words.find((one) => one.at !== x.at && valuesOf(rows, one.at).size <= MOST_COLOURS);
  const fitting = time ? "line" : words.length > 0 ? "bar" : isInOrder(rows, x.at) ? "line" : "point";
  const choice: ChartChoice = { ...PLAIN, kind: fitting, x: x.at, y: [y.at], color: color?.at ?? null };
  if (fitting === "point" || !isShared(rows, choice)) return choice;
  // Several rows at a place are points: a line between them would mean nothing, and bars would be sums.
  const [first, second] = numbers;
  if (time || !first || !second) return { ...choice, kind: "point" };
  const group = words.find((one) => valuesOf(rows, one.at).size <= MOST_COLOURS);
  return { ...PLAIN, kind: "point", x: first.at, y: [second.at], color: group?.at ?? null };
}

/**
 * The chart of `render`, as Kusto has it: the first column goes across, for a time chart the first of times; every other
 * column of numbers up; one of text tells series apart. Its properties say otherwise.
 */
function choiceOfRender(rows: Rows, { chart, properties }: Rendered, drawn: number[], places: number | null): ChartChoice | null {
  const { columns } = rows;
  const said = (name: string) => properties.get(name)?.[0];
  const number = (name: string) => {
    const value = said(name);
    return value === undefined || !Number.isFinite(Number(value)) ? undefined : Number(value);
  };
  const named = (name: string) =>
    (properties.get(name) ?? []).map((wanted) => columns.findIndex((column) => column.name === wanted)).filter((at) => at >= 0);
  const first = chart === "timechart" || chart === "anomalychart" ? drawn.find((at) => isTime(columns[at]!)) : undefined;
  const x = named("xcolumn")[0] ?? first ?? places ?? drawn[0];
  const numbers = drawn.filter((at) => columns[at]!.isNumeric && at !== x);
  const wanted = named("ycolumns").filter((at) => columns[at]!.isNumeric);
  const y = wanted.length > 0 ? wanted : numbers;
  if (x === undefined || y.length === 0) return null;
  const series = named("series")[0] ?? drawn.find((at) => at !== x && !columns[at]!.isNumeric && !isTime(columns[at]!));
  const { kind, ...layout } = RENDERED[chart]!;
  const axis = (name: "x" | "y"): AxisChoice => ({
    title: said(`${name}title`), least: number(`${name}min`), most: number(`${name}max`), isLog: said(`${name}axis`) === "log",
  });
  const stacking = said("kind");
  return {
    ...PLAIN,
    arrangement: stacking === "stacked" || stacking === "stacked100" ? stacking : "each",
    ...layout,
    kind, x, y: kind === "arc" ? y.slice(0, 1) : y, color: kind === "arc" ? null : series ?? null,
    isAccumulated: said("accumulate") === "true",
    title: said("title"),
    hasLegend: said("legend") !== "hidden",
    xAxis: axis("x"), yAxis: axis("y"),
  };
}

/** Whether several rows stand at one place of the chart. */
export function isShared(rows: Rows, { x, color }: Pick<ChartChoice, "x" | "color">): boolean {
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

/** Whether series are told apart by colour. */
export function isColoured({ color, y }: ChartChoice): boolean {
  return color !== null || y.length > 1;
}

/** Whether bars of one place stand beside each other, which they can where the places are words. */
function isSideBySide(choice: ChartChoice): boolean {
  return choice.kind === "bar" && isColoured(choice) && choice.arrangement === "each";
}

/** The rows of a chart, and whether there are more than it shows. */
export function chartRows(rows: Rows, choice: ChartChoice): { shown: ChartRow[]; isCut: boolean } {
  const isText = choice.kind === "arc" || (isSideBySide(choice) && isTime(rows.columns[choice.x]!));
  const isDiscrete = isText || (choice.kind === "bar" && !isTime(rows.columns[choice.x]!) && !rows.columns[choice.x]!.isNumeric);
  const shown: ChartRow[] = [];
  const places = new Set<string | number | null>();
  const sums = new Map<string | null, number>();
  for (let row = 0; row < rows.count; row++) {
    if (shown.length + choice.y.length > MOST_ROWS) return { shown, isCut: true };
    const x = drawnValue(rows, row, choice.x, isText);
    if (isDiscrete && !places.has(x) && places.size >= MOST_BARS) return { shown, isCut: true };
    places.add(x);
    const group = choice.color === null ? null : rows.text(row, choice.color) ?? "null";
    for (const at of choice.y) {
      const color = choice.y.length === 1 ? group : group === null ? rows.columns[at]!.name : `${group}: ${rows.columns[at]!.name}`;
      let y = drawnValue(rows, row, at, false) as number | null;
      if (choice.isAccumulated && y !== null) sums.set(color, (y += sums.get(color) ?? 0));
      shown.push({ x, y, color });
    }
  }
  return { shown, isCut: false };
}

/** A number, the milliseconds of an instant, or a text. */
function drawnValue(rows: Rows, row: number, at: number, isText: boolean): string | number | null {
  const column = rows.columns[at]!;
  const text = rows.text(row, at);
  if (isText) return isTime(column) ? text?.replace(/[T ]00:00(:00(\.0+)?)?Z?$/, "") ?? "null" : text ?? "null";
  if (text === null) return column.isNumeric || isTime(column) ? null : "null";
  const value = column.isNumeric ? Number(text) : isTime(column) ? Date.parse(instant(text)) : NaN;
  if (column.isNumeric || isTime(column)) return Number.isFinite(value) ? value : null;
  return text;
}

/** A timestamp without a zone is shown as it is written, which is UTC's clock. */
function instant(text: string): string {
  const written = text.replace(" ", "T");
  return /(Z|[+-]\d\d:?\d\d)$/i.test(written) || !written.includes("T") ? written : `${written}Z`;
}

/** The Vega-Lite specification of a chart. */
export function specOf(columns: GridColumn[], choice: ChartChoice): object {
  const { kind, x, y, color, arrangement, isHorizontal } = choice;
  const measured = y.map((at) => columns[at]!.name).join(", ");
  const across = choice.xAxis.title ?? columns[x]!.name;
  const up = choice.yAxis.title ?? (measured.length > 60 ? "value" : measured);
  const described = { description: `${measured} by ${columns[x]!.name}`, ...(choice.title === undefined ? {} : { title: choice.title }) };
  const legend = choice.hasLegend ? {} : { legend: null };
  if (kind === "arc") {
    const pieces = { field: "x", type: "nominal", sort: null, title: across, ...legend };
    const theta = { field: "y", type: "quantitative", title: up, stack: true };
    return { ...described, mark: { type: "arc", tooltip: true }, encoding: { theta, color: pieces, order: { field: "y", sort: "descending" } } };
  }
  const column = columns[x]!;
  const type = isTime(column) && !isSideBySide(choice) ? "temporal" : column.isNumeric && kind !== "bar" ? "quantitative" : column.isNumeric ? "ordinal" : "nominal";
  const hasColour = isColoured(choice);
  const colouredBy = y.length > 1 ? "measure" : color === null ? "" : columns[color]!.name;
  const stack = kind !== "bar" && kind !== "area" ? {}
    : { stack: !hasColour || arrangement === "stacked" ? "zero" : arrangement === "stacked100" ? "normalize" : null };
  const base = {
    field: "x", type, title: across,
    ...(type === "nominal" || type === "ordinal" ? { sort: null } : {}),
    ...scaleOf(choice.xAxis, type === "temporal" ? { type: "utc" } : type === "quantitative" ? { zero: false } : {}),
  };
  const measure = {
    field: "y", type: "quantitative", title: up, ...stack,
    ...scaleOf(choice.yAxis, kind === "point" ? { zero: false } : {}),
  };
  const offset = isSideBySide(choice) ? { [isHorizontal ? "yOffset" : "xOffset"]: { field: "color", type: "nominal", sort: null } } : {};
  const colour = hasColour ? { color: { field: "color", type: "nominal", sort: null, title: colouredBy, ...legend } } : {};
  const mark = {
    type: kind, tooltip: true,
    ...(kind === "line" ? { point: true } : {}),
    // Areas that stand before each other are seen through.
    ...(kind === "area" && hasColour && arrangement === "each" ? { opacity: 0.55, line: true } : {}),
  };
  const axes = isHorizontal && kind === "bar" ? { x: measure, y: base } : { x: base, y: measure };
  return { ...described, mark, encoding: { ...axes, ...offset, ...colour } };
}

function scaleOf({ isLog, least, most }: AxisChoice, usual: object): { scale?: object } {
  const scale = {
    ...usual,
    ...(isLog ? { type: "log" } : {}),
    ...(least === undefined ? {} : { domainMin: least }),
    ...(most === undefined ? {} : { domainMax: most }),
  };
  return Object.keys(scale).length > 0 ? { scale } : {};
}
