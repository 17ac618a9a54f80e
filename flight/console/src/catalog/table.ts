// A table as the server describes it, and where it is.
import { getJson, rowsOf } from "../api";

export interface TableDocument {
  database: string;
  name: string;
  kind: string;
  comment?: string;
  row_count?: number;
  columns: { name: string; data_type: string; nullable: boolean; comment?: string }[];
}

export function pathOf(database: string, table: string, part = ""): string {
  return `/v1/catalog/tables/${encodeURIComponent(table)}${part}?${new URLSearchParams({ database })}`;
}

/** The table; one that the catalog has no record of, such as those of `system`, as `DESCRIBE` has it. */
export async function readTable(database: string, table: string): Promise<TableDocument> {
  try {
    return await getJson<TableDocument>(pathOf(database, table));
  } catch (error) {
    const rows = await rowsOf(`DESCRIBE ${qualified(database, table)}`, database).catch(() => null);
    if (!rows) throw error;
    const columns = rows.map((row) => ({
      name: String(row["column_name"]),
      data_type: String(row["data_type"] ?? row["column_type"]),
      nullable: row["is_nullable"] !== "NO",
    }));
    return { database, name: table, kind: "system", columns };
  }
}

export function qualified(database: string, table: string): string {
  return `${quoted(database)}.${quoted(table)}`;
}

function quoted(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) && name !== "default" ? name : `"${name.replace(/"/g, '""')}"`;
}
