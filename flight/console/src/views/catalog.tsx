// Catalog: databases and tables, search by meaning, and what is known of one table.
import { useEffect, useState } from "preact/hooks";
import type { GetCatalogSearchAnswer, QuerentError } from "querent-client";

import { asFailure, client } from "../api";
import { TablePage } from "../catalog/table-page";
import { type CatalogTable, type TablesPage, catalogNames, readCatalogNames, readTablesOf } from "../catalog-names";
import { Cell, useCell } from "../cell";
import { count } from "../format";
import { FailureBox } from "../parts";
import { address, route } from "../router";

const FOUND_BY: Record<GetCatalogSearchAnswer["hits"][number]["found_by"][number], string> = {
  name: "name", bm25: "words", dense: "meaning", column: "columns", value: "values", relationship: "joins",
  verified_query: "verified queries", metric: "metrics",
};

/** What is searched for. */
export const searchText = new Cell<string>("");

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
          ? <TablePage key={JSON.stringify([database, table])} database={database} table={table} />
          : <p class="empty">Choose a table, or search for what it is about.</p>}
      </div>
    </div>
  );
}

function Search() {
  const text = useCell(searchText);
  const [answer, setAnswer] = useState<GetCatalogSearchAnswer | null>(null);
  const [failure, setFailure] = useState<QuerentError | null>(null);
  useEffect(() => {
    if (text.trim() === "") {
      setAnswer(null);
      setFailure(null);
      return;
    }
    let isCurrent = true;
    const timer = setTimeout(async () => {
      try {
        const found = await client.getCatalogSearch({ q: text, limit: 30 });
        if (!isCurrent) return;
        setAnswer(found);
        setFailure(null);
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

function Hits({ answer }: { answer: GetCatalogSearchAnswer }) {
  return (
    <div class="scroll">
      {answer.missing_meaning && (
        <p class="note">
          Searched without meaning: {answer.missing_meaning.reason}.
          {answer.missing_meaning.hint && ` What helps: ${answer.missing_meaning.hint}.`}
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
  const [failure, setFailure] = useState<QuerentError | null>(null);
  useEffect(() => {
    readCatalogNames().then(() => setFailure(null), (error: unknown) => setFailure(asFailure(error)));
  }, []);
  // What was read before is still there to go to.
  return (
    <div class="scroll">
      {failure && <FailureBox failure={failure} />}
      {names.databases.map((database) => (names.isCut
        ? <ClosedDatabase key={database} database={database} />
        : (
          <details class="database" open>
            <summary>{database}</summary>
            <Tables tables={names.tables.filter((table) => table.database === database)} />
          </details>
        )
      ))}
      {names.isRead && names.tables.length === 0 && <p class="empty">There are no tables yet. <a href={address("import")}>Bring data in</a></p>}
    </div>
  );
}

function Tables({ tables }: { tables: CatalogTable[] }) {
  const { parts } = useCell(route);
  return (
    <ul>
      {tables.map(({ database, name, kind, columns }) => (
        <li>
          <a href={address("catalog", [database, name])} aria-current={parts[0] === database && parts[1] === name ? "page" : undefined}>
            {name} <small>{kind === "managed" ? count(columns.length, "column") : kind}</small>
          </a>
        </li>
      ))}
    </ul>
  );
}

/** A database of a catalog of many tables: they are read when it is opened, a page at a time. */
function ClosedDatabase({ database }: { database: string }) {
  const [page, setPage] = useState<TablesPage | null>(null);
  const [failure, setFailure] = useState<QuerentError | null>(null);
  const read = () => {
    readTablesOf(database, page).then(
      (next) => { setPage(next); setFailure(null); },
      (error: unknown) => setFailure(asFailure(error)),
    );
  };
  return (
    <details class="database" onToggle={(event) => event.currentTarget.open && page === null && read()}>
      <summary>{database}</summary>
      {page && <Tables tables={page.tables} />}
      {page === null && !failure && <p class="empty">Reading…</p>}
      {page?.tables.length === 0 && <p class="empty">No tables.</p>}
      {failure && <FailureBox failure={failure} />}
      {page?.next && <p class="note">These are the first {page.tables.length}. <button class="link" onClick={read}>Show more of {database}</button></p>}
    </details>
  );
}
