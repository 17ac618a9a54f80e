// Rows whose cells are lists, as KQL's `make-series` has them, as a row for each place of the lists.
import { type GridColumn, type Rows, valueText } from "./rows";

/** Rows that are made at most; a chart draws fewer. */
const MOST = 20_000;
/** Rows that say whether a column has lists. */
const SAMPLE = 20;

/**
 * The rows with each list laid out over rows of its own; the same rows where no column has lists. `axis` is the last column of
 * lists, where `make-series` has the places of its series.
 */
export function laidOut(rows: Rows): { rows: Rows; axis: number | null } {
  const isList = rows.columns.map((_, at) => hasLists(rows, at));
  if (!isList.includes(true)) return { rows, axis: null };
  const cells: (string | null)[][] = [];
  for (let row = 0; row < rows.count && cells.length < MOST; row++) {
    const values = rows.columns.map((_, at) => (isList[at] ? listOf(rows.text(row, at)) ?? [] : rows.text(row, at)));
    const length = Math.max(0, ...values.map((value) => (Array.isArray(value) ? value.length : 0)));
    for (let place = 0; place < length && cells.length < MOST; place++) {
      cells.push(values.map((value) => (Array.isArray(value) ? valueText(value[place]) : value)));
    }
  }
  const columns = rows.columns.map((column, at) => (isList[at] ? elementsOf(column, cells.map((row) => row[at] ?? null)) : column));
  return {
    rows: { columns, count: cells.length, text: (row, column) => cells[row]?.[column] ?? null },
    axis: isList.lastIndexOf(true),
  };
}

function hasLists(rows: Rows, column: number): boolean {
  let found = false;
  for (let row = 0; row < Math.min(rows.count, SAMPLE); row++) {
    const text = rows.text(row, column);
    if (text === null) continue;
    if (listOf(text) === null) return false;
    found = true;
  }
  return found;
}

function listOf(text: string | null): unknown[] | null {
  if (text === null || !text.startsWith("[")) return null;
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

/** The column of the lists' elements: numbers, instants or texts. */
function elementsOf({ name }: GridColumn, values: (string | null)[]): GridColumn {
  const known = values.filter((value) => value !== null);
  const isNumeric = known.length > 0 && known.every((value) => value.trim() !== "" && Number.isFinite(Number(value)));
  const isTime = known.length > 0 && known.every((value) => /^\d{4}-\d\d-\d\d([T ]|$)/.test(value));
  return { name, type: isNumeric ? "DOUBLE" : isTime ? "TIMESTAMP" : "VARCHAR", isNumeric };
}
