// Catalog: databases and tables, search by meaning, and what is known of one table.
import { useEffect, useState } from "preact/hooks";
import type { GetCatalogSearchAnswer, QuerentError } from "querent-client";

import { asFailure, client } from "../api";
import { TablePage } from "../catalog/table-page";
import { catalogNames, readCatalogNames } from "../catalog-names";
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
          ? <TablePage key={`${database}.${table}`} database={database} table={table} />
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
  const { parts } = useCell(route);
  const [failure, setFailure] = useState<QuerentError | null>(null);
  useEffect(() => {
    readCatalogNames().then(() => setFailure(null), (error: unknown) => setFailure(asFailure(error)));
  }, []);
  // What was read before is still there to go to.
  return (
    <div class="scroll">
      {failure && <FailureBox failure={failure} />}
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
      {names.isRead && names.tables.length === 0 && <p class="empty">There are no tables yet. <a href={address("import")}>Bring data in</a></p>}
      {names.isCut && <p class="note">These are the first {names.tables.length} tables; search finds the others.</p>}
    </div>
  );
}
