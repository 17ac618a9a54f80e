// Catalog: databases and tables, search by meaning, and what is known of one table.
import { useEffect, useMemo, useState } from "preact/hooks";

import { ApiFailure, asFailure, getJson, rowsOf } from "../api";
import { type CatalogTable, catalogNames, readCatalogNames } from "../catalog-names";
import { Cell, useCell } from "../cell";
import { count } from "../format";
import { Grid } from "../grid/grid";
import { ObjectRows } from "../grid/rows";
import { FailureBox, Switch } from "../parts";
import { database as chosenDatabase } from "../preferences";
import { address, route } from "../router";
import { openQuery } from "./query-tabs";

interface Hit {
  database: string;
  table: string;
  kind: string;
  comment: string | null;
  row_count: number | null;
  score: number;
  found_by: string[];
  why: string[];
}

interface SearchAnswer {
  hits: Hit[];
  missing_meaning?: { reason: string; hint?: string | null } | null;
}

const FOUND_BY: Record<string, string> = {
  name: "name", bm25: "words", dense: "meaning", column: "columns", value: "values", join: "joins", verified: "verified queries",
};

const searchText = new Cell<string>("");

export function CatalogView() {
  const { parts } = useCell(route);
  const [database, table] = parts;
  const isTable = database !== undefined && table !== undefined;
  return (
    <div class={`view catalog-view${isTable ? " has-table" : ""}`}>
      <h1 class="off-screen">Catalog</h1>
      <div class="catalog-list">
        <Search />
      </div>
      <div class="catalog-table scroll">
        {isTable
          ? <TablePage key={`${database}.${table}`} database={database} table={table} />
          : <p class="empty">Choose a table, or search for what it is about.</p>}
      </div>
    </div>
  );
}

function Search() {
  const text = useCell(searchText);
  const [answer, setAnswer] = useState<SearchAnswer | null>(null);
  const [failure, setFailure] = useState<ApiFailure | null>(null);
  useEffect(() => {
    if (text.trim() === "") {
      setAnswer(null);
      setFailure(null);
      return;
    }
    let isCurrent = true;
    const timer = setTimeout(async () => {
      try {
        const found = await getJson<SearchAnswer>(`/v1/catalog/search?${new URLSearchParams({ q: text, limit: "30" })}`);
        if (isCurrent) setAnswer(found);
      } catch (error) {
        if (isCurrent) setFailure(asFailure(error));
      }
    }, 180);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [text]);
  return (
    <>
      <div class="pad">
        <input
          type="search"
          class="wide"
          aria-label="Search tables by meaning"
          placeholder="Search by meaning: late planes…"
          value={text}
          onInput={(event) => searchText.set(event.currentTarget.value)}
        />
      </div>
      {failure && <FailureBox failure={failure} />}
      {answer ? <Hits answer={answer} /> : <Tree />}
    </>
  );
}

function Hits({ answer }: { answer: SearchAnswer }) {
  return (
    <div class="scroll">
      {answer.missing_meaning && (
        <p class="note">
          Searched without meaning: {answer.missing_meaning.reason}
          {answer.missing_meaning.hint && ` ${answer.missing_meaning.hint}`}
        </p>
      )}
      {answer.hits.length === 0 && <p class="empty">No table fits.</p>}
      <ul class="hits" aria-label="Tables found">
        {answer.hits.map((hit) => (
          <li>
            <a href={address("catalog", [hit.database, hit.table])}>
              <strong>{hit.database}.{hit.table}</strong>
              {hit.row_count !== null && <small>{count(hit.row_count, "row")}</small>}
              {hit.comment && <p>{hit.comment}</p>}
              <p class="chips">
                {hit.found_by.map((way) => <span class="chip">{FOUND_BY[way] ?? way}</span>)}
                {hit.why.map((why) => <span class="chip is-soft">{why}</span>)}
              </p>
            </a>
          </li>
        ))}
      </ul>
    </div>
  );
}

function Tree() {
  const names = useCell(catalogNames);
  const { parts } = useCell(route);
  const [failure, setFailure] = useState<ApiFailure | null>(null);
  useEffect(() => {
    readCatalogNames().catch((error: unknown) => setFailure(asFailure(error)));
  }, []);
  if (failure) return <FailureBox failure={failure} />;
  return (
    <div class="scroll">
      {names.databases.map((database) => (
        <details class="database" open>
          <summary>{database}</summary>
          <ul>
            {names.tables.filter((table) => table.database === database).map((table) => (
              <li>
                <a
                  href={address("catalog", [database, table.name])}
                  aria-current={parts[0] === database && parts[1] === table.name ? "page" : undefined}
                >
                  {table.name} <small>{table.kind === "managed" ? count(table.columns.length, "column") : table.kind}</small>
                </a>
              </li>
            ))}
          </ul>
        </details>
      ))}
      {names.databases.length === 0 && <p class="empty">There are no tables yet. <a href={address("import")}>Bring data in</a></p>}
      {names.isCut && <p class="note">These are the first {names.tables.length} tables; search finds the others.</p>}
    </div>
  );
}

type Side = "columns" | "rows" | "relationships";

function TablePage({ database, table }: { database: string; table: string }) {
  const names = useCell(catalogNames);
  const listed = names.tables.find((known) => known.database === database && known.name === table) ?? null;
  const [found, setFound] = useState<CatalogTable | null>(null);
  const [numbers, setNumbers] = useState<Record<string, unknown> | null>(null);
  const [failure, setFailure] = useState<ApiFailure | null>(null);
  const [side, setSide] = useState<Side>("columns");
  useEffect(() => {
    tableNumbers(database, table).then(setNumbers, (error: unknown) => setFailure(asFailure(error)));
    if (!listed) columnsOf(database, table).then(setFound, () => undefined);
  }, []);
  const shown = listed ?? found;
  const name = qualified(database, table);
  const open = () => {
    chosenDatabase.set(database);
    openQuery("sql", `SELECT * FROM ${name} LIMIT 1000`, true);
  };
  return (
    <article class="pad">
      <header class="table-head">
        <a class="back" href={address("catalog")}>All tables</a>
        <h2>{database}.{table}</h2>
        <p class="soft">
          {shown?.kind ?? String(numbers?.["kind"] ?? "")}
          {typeof numbers?.["row_count"] === "number" && ` · ${count(numbers["row_count"], "row")}`}
          {shown && ` · ${count(shown.columns.length, "column")}`}
        </p>
        {typeof numbers?.["comment"] === "string" && <p>{numbers["comment"]}</p>}
        <div class="row">
          <button class="primary" onClick={open}>Query it</button>
          <Switch<Side>
            label="Of this table"
            value={side}
            options={[
              { value: "columns", label: "Columns" },
              { value: "rows", label: "Sample" },
              { value: "relationships", label: "Relationships" },
            ]}
            onChange={setSideOf(setSide)}
          />
        </div>
      </header>
      {failure && <FailureBox failure={failure} />}
      {side === "columns" && shown && <Columns table={shown} name={name} />}
      {side === "rows" && <Sample name={name} database={database} />}
      {side === "relationships" && <Relationships database={database} table={table} />}
    </article>
  );
}

function setSideOf(set: (side: Side) => void): (side: Side) => void {
  return (side) => set(side);
}

interface Profile {
  column_name: string;
  min: string | null;
  max: string | null;
  approx_unique: number | null;
  avg: string | null;
  null_percentage: string | null;
}

function Columns({ table, name }: { table: CatalogTable; name: string }) {
  const [profiles, setProfiles] = useState<Map<string, Profile> | null>(null);
  const [failure, setFailure] = useState<ApiFailure | null>(null);
  const [isRunning, setRunning] = useState(false);
  const profile = async () => {
    setRunning(true);
    setFailure(null);
    try {
      const rows = (await rowsOf(`SUMMARIZE ${name}`, table.database)) as unknown as Profile[];
      setProfiles(new Map(rows.map((row) => [row.column_name, row])));
    } catch (error) {
      setFailure(asFailure(error));
    }
    setRunning(false);
  };
  return (
    <section>
      <div class="row section-head">
        <button onClick={() => void profile()} disabled={isRunning}>{isRunning ? "Reading all rows…" : "Profile the columns"}</button>
        {!profiles && <small>Least, most, distinct and missing values, of all rows.</small>}
      </div>
      {failure && <FailureBox failure={failure} />}
      <div class="table-scroll" tabIndex={0} role="region" aria-label="Columns">
        <table class="facts">
          <thead>
            <tr>
              <th scope="col">Column</th><th scope="col">Type</th>
              {profiles && <><th scope="col">Missing</th><th scope="col" class="is-number">Distinct</th><th scope="col">Least</th><th scope="col">Most</th><th scope="col" class="is-number">Mean</th></>}
            </tr>
          </thead>
          <tbody>
            {table.columns.map((column) => {
              const known = profiles?.get(column.name);
              return (
                <tr>
                  <th scope="row">{column.name}{column.comment && <small> {column.comment}</small>}</th>
                  <td><code>{column.type}</code>{!column.nullable && <small> not null</small>}</td>
                  {profiles && (
                    <>
                      <td><Missing percentage={known?.null_percentage ?? null} name={column.name} /></td>
                      <td class="is-number">{known?.approx_unique?.toLocaleString("en-US") ?? ""}</td>
                      <td><code>{known?.min ?? ""}</code></td>
                      <td><code>{known?.max ?? ""}</code></td>
                      <td class="is-number">{shortNumber(known?.avg ?? null)}</td>
                    </>
                  )}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Missing({ percentage, name }: { percentage: string | null; name: string }) {
  const value = Number(percentage ?? 0);
  return (
    <span class="missing">
      <meter min={0} max={100} value={value} aria-label={`missing values of ${name}`} />
      {value === 0 ? "none" : value < 0.1 ? "< 0.1 %" : `${value.toFixed(1)} %`}
    </span>
  );
}

function shortNumber(text: string | null): string {
  if (text === null || text === "") return "";
  const value = Number(text);
  return Number.isFinite(value) ? value.toLocaleString("en-US", { maximumSignificantDigits: 5 }) : text;
}

function Sample({ name, database }: { name: string; database: string }) {
  const [rows, setRows] = useState<Record<string, unknown>[] | null>(null);
  const [failure, setFailure] = useState<ApiFailure | null>(null);
  useEffect(() => {
    rowsOf(`SELECT * FROM ${name} LIMIT 100`, database).then(setRows, (error: unknown) => setFailure(asFailure(error)));
  }, []);
  const shown = useMemo(() => {
    const columns = Object.entries(rows?.[0] ?? {});
    return new ObjectRows(columns.map(([column, value]) => ({ name: column, type: typeof value === "number" ? "Int64" : "" })), rows ?? []);
  }, [rows]);
  if (failure) return <FailureBox failure={failure} />;
  if (!rows) return <p class="empty">Reading…</p>;
  if (rows.length === 0) return <p class="empty">The table has no rows.</p>;
  return (
    <section class="sample">
      <p class="soft">The first {count(rows.length, "row")}.</p>
      <Grid rows={shown} version={0} label="First rows" />
    </section>
  );
}

interface End {
  database: string;
  table: string;
}

interface Relationship {
  id: string | number;
  from: End;
  from_columns: string[];
  to: End;
  to_columns: string[];
  origin?: string;
}

function Relationships({ database, table }: { database: string; table: string }) {
  const [known, setKnown] = useState<Relationship[] | null>(null);
  const [failure, setFailure] = useState<ApiFailure | null>(null);
  useEffect(() => {
    const params = new URLSearchParams({ database, table, limit: "100" });
    getJson<{ relationships: Relationship[] }>(`/v1/catalog/relationships?${params}`).then(
      (answer) => setKnown(answer.relationships),
      (error: unknown) => setFailure(asFailure(error)),
    );
  }, []);
  if (failure) return <FailureBox failure={failure} />;
  if (!known) return <p class="empty">Reading…</p>;
  if (known.length === 0) {
    return (
      <p class="empty">
        No relationships of this table are declared. One is declared by <code>POST /v1/catalog/relationships</code>, or by
        a foreign key.
      </p>
    );
  }
  return (
    <ul class="relationships">
      {known.map((one) => (
        <li>
          <EndOf end={one.from} columns={one.from_columns} /> <span aria-hidden="true">→</span>
          <span class="off-screen">refers to</span> <EndOf end={one.to} columns={one.to_columns} />
          {one.origin && <small> {one.origin}</small>}
        </li>
      ))}
    </ul>
  );
}

function EndOf({ end, columns }: { end: End; columns: string[] }) {
  return <a href={address("catalog", [end.database, end.table])}>{end.database}.{end.table} <code>({columns.join(", ")})</code></a>;
}

async function tableNumbers(database: string, table: string): Promise<Record<string, unknown> | null> {
  const where = `database = ${literal(database)} AND name = ${literal(table)}`;
  return (await rowsOf(`SELECT kind, comment, row_count FROM system.tables WHERE ${where}`))[0] ?? null;
}

/** The columns of a table that is not among the names that were read. */
async function columnsOf(database: string, table: string): Promise<CatalogTable> {
  const rows = await rowsOf(`DESCRIBE ${qualified(database, table)}`, database);
  const columns = rows.map((row) => ({
    name: String(row["column_name"]),
    type: String(row["data_type"] ?? row["column_type"]),
    nullable: row["is_nullable"] !== "NO",
    comment: null,
  }));
  return { database, name: table, kind: "", comment: null, columns };
}

export function qualified(database: string, table: string): string {
  return `${quoted(database)}.${quoted(table)}`;
}

function quoted(name: string): string {
  return /^[a-z_][a-z0-9_]*$/.test(name) && name !== "default" ? name : `"${name.replace(/"/g, '""')}"`;
}

function literal(text: string): string {
  return `'${text.replace(/'/g, "''")}'`;
}
