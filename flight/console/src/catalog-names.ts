// Names of tables and columns, for completion and for the catalog's list. A catalog may be larger than any list: what was
// not read is said, and found by search.
import type { GetCatalogSchemaAnswer } from "querent-client";

import { client, rowsOf } from "./api";
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
  /** The catalog was read; until then there may be tables that are not known. */
  isRead: boolean;
}

const MOST_TABLES = 2000;
const PAGE = 500;

const UNREAD: CatalogNames = { databases: [], tables: [], isCut: false, isRead: false };

export const catalogNames = new Cell<CatalogNames>(UNREAD);

let reading: Promise<void> | null = null;

/** Forgets the names, which another caller may not see. */
export function forgetCatalogNames(): void {
  reading = null;
  catalogNames.set(UNREAD);
}

/** Reads the names, unless that is being done. */
export function readCatalogNames(): Promise<void> {
  if (reading) return reading;
  const mine: Promise<void> = readPages(() => reading === mine).finally(() => {
    if (reading === mine) reading = null;
  });
  reading = mine;
  return mine;
}

/** Reads the names after a change, which a reading that goes on may have missed. */
export function readChangedNames(): Promise<void> {
  reading = null;
  return readCatalogNames();
}

async function readPages(isCurrent: () => boolean): Promise<void> {
  const names: CatalogNames = { databases: [], tables: [], isCut: false, isRead: true };
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
  // There are few of them, and each is to be chosen, also where its tables were not read.
  if (names.isCut) {
    const all = await rowsOf("SHOW DATABASES").catch(() => []);
    names.databases = [...new Set([...names.databases, ...all.map((row) => String(row["schema_name"]))])];
  }
  if (isCurrent()) catalogNames.set(names);
}

/** The tables of a database that were read, and where the others begin. */
export interface TablesPage {
  tables: CatalogTable[];
  next: string | null;
}

/** Reads the first tables of a database, or those after a page beside it. */
export async function readTablesOf(database: string, before: TablesPage | null): Promise<TablesPage> {
  const after = before?.next ? { page_token: before.next } : {};
  const page = await client.getCatalogSchema({ database, limit: PAGE, ...after });
  const read = page.databases.flatMap(({ name, tables }) => tables.map((table) => readTable(name, table)));
  return { tables: [...(before?.tables ?? []), ...read], next: page.next_page_token ?? null };
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
