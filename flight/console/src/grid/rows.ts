// Rows as the grid sees them, wherever they come from.

export interface GridColumn {
  name: string;
  type: string;
  /** Numbers stand at the right. */
  isNumeric: boolean;
}

export interface Rows {
  readonly columns: GridColumn[];
  readonly count: number;
  /** A cell's text; `null` where there is no value. */
  text(row: number, column: number): string | null;
}

export function valueText(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  if (typeof value === "string") return value;
  if (typeof value === "object") return JSON.stringify(value);
  return String(value);
}

export function isNumericType(type: string): boolean {
  return /^(U?Int\d+|Float\d+|Decimal)/.test(type);
}
