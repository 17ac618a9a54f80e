// Names of tables and columns, for completion and for the catalog's list. A catalog may be larger than any list: what was
// not read is said, and found by search.
import type { GetCatalogSchemaAnswer } from "querent-client";

import { client } from "./api";
import { Cell } from "./cell";
import { sqlTypeName } from "./type-names";

export interface CatalogColumn {
  name: string;
  type: string;
  nullable: boolean;
  comment: string | null;
}

export interface CatalogTable {
  database: string;
  name: string;
  kind: string;
  comment: string | null;
  columns: CatalogColumn[];
}

export interface CatalogNames {
  databases: string[];
  tables: CatalogTable[];
  /** There are more tables than were read. */
  isCut: boolean;
}

const MOST_TABLES = 2000;
const PAGE = 500;

export const catalogNames = new Cell<CatalogNames>({ databases: [], tables: [], isCut: false });

let reading: Promise<void> | null = null;

/** Reads the names, unless that is being done. */
export function readCatalogNames(): Promise<void> {
  reading ??= readPages().finally(() => (reading = null));
  return reading;
}

async function readPages(): Promise<void> {
  const names: CatalogNames = { databases: [], tables: [], isCut: false };
  let next: string | null = null;
  do {
    const page: GetCatalogSchemaAnswer = await client.getCatalogSchema({ limit: PAGE, ...(next ? { page_token: next } : {}) });
    for (const database of page.databases) {
      if (!names.databases.includes(database.name)) names.databases.push(database.name);
      for (const table of database.tables) names.tables.push(readTable(database.name, table));
    }
    next = page.next_page_token ?? null;
  } while (next && names.tables.length < MOST_TABLES);
  names.isCut = next !== null;
  catalogNames.set(names);
}

function readTable(database: string, table: GetCatalogSchemaAnswer["databases"][number]["tables"][number]): CatalogTable {
  return {
    database,
    name: table.name,
    kind: table.kind,
    comment: table.comment ?? null,
    columns: table.columns.map((column) => ({
      name: column.name,
      type: sqlTypeName(column.data_type),
      nullable: column.nullable,
      comment: column.comment ?? null,
    })),
  };
}
