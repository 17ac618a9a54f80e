// A table as the server describes it, and where it is.
import type { GetCatalogTablesTableAnswer } from "querent-client";

import { client, rowsOf } from "../api";
import { sqlName } from "../editor/sql";

/** `system`: a table that the catalog has no record of. */
export type TableDocument = Omit<GetCatalogTablesTableAnswer, "kind"> & { kind: GetCatalogTablesTableAnswer["kind"] | "system" };

/** The table; one that the catalog has no record of, such as those of `system`, as `DESCRIBE` has it. */
export async function readTable(database: string, table: string): Promise<TableDocument> {
  try {
    return await client.getCatalogTablesTable({ table, database });
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
  return `${sqlName(database)}.${sqlName(table)}`;
}
