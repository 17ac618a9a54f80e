// One table: its columns and what they hold, comments that are edited in place, first rows, what it joins, and what was
// taught of it.
import { useEffect, useState } from "preact/hooks";
import type { PatchCatalogTablesTableInput, QuerentError } from "querent-client";

import { asFailure, client } from "../api";
import { readChangedNames } from "../catalog-names";
import { count } from "../format";
import { Grid } from "../grid/grid";
import { FailureBox, Switch } from "../parts";
import { database as chosenDatabase } from "../preferences";
import { address } from "../router";
import { type Result, run } from "../statement";
import { openQuery } from "../views/query-tabs";
import { Comment } from "./comment";
import { Columns } from "./columns";
import { Relationships } from "./relationships";
import { type TableDocument, qualified, readTable } from "./table";
import { Taught } from "./taught";

type Side = "columns" | "rows" | "relationships" | "taught";

export function TablePage({ database, table }: { database: string; table: string }) {
  const [shown, setShown] = useState<TableDocument | null>(null);
  const [failure, setFailure] = useState<QuerentError | null>(null);
  const [side, setSide] = useState<Side>("columns");
  useEffect(() => {
    readTable(database, table).then(setShown, (error: unknown) => setFailure(asFailure(error)));
  }, []);
  const name = qualified(database, table);
  const open = () => {
    chosenDatabase.set(database);
    openQuery("sql", `SELECT * FROM ${name} LIMIT 1000`, true);
  };
  /** Sets comments, and shows the table as it is then. */
  const change = async (comments: PatchCatalogTablesTableInput["body"]) => {
    setShown(await client.patchCatalogTablesTable({ table, database, body: comments }));
    readChangedNames().catch(() => undefined);
  };
  return (
    <article class="pad">
      <header class="table-head">
        <a class="back" href={address("catalog")}>All tables</a>
        <h2>{database}.{table}</h2>
        {shown && (
          <>
            <p class="soft">
              {shown.kind}
              {shown.row_count !== undefined && ` · ${count(shown.row_count, "row")}`}
              {` · ${count(shown.columns.length, "column")}`}
            </p>
            <Comment of={`table ${table}`} text={shown.comment ?? ""} onSave={(comment) => change({ comment })} />
          </>
        )}
        <div class="row">
          <button class="primary" onClick={open}>Query it</button>
          <Switch<Side>
            label="Of this table"
            value={side}
            options={[
              { value: "columns", label: "Columns" },
              { value: "rows", label: "Sample" },
              { value: "relationships", label: "Relationships" },
              { value: "taught", label: "Questions and metrics" },
            ]}
            onChange={(chosen) => setSide(chosen)}
          />
        </div>
      </header>
      {failure && <FailureBox failure={failure} />}
      {side === "columns" && shown && (
        <Columns table={shown} onComment={(column, comment) => change({ columns: { [column]: comment } })} />
      )}
      {side === "rows" && <Sample name={name} database={database} />}
      {side === "relationships" && <Relationships database={database} table={table} />}
      {side === "taught" && <Taught database={database} table={table} />}
    </article>
  );
}

function Sample({ name, database }: { name: string; database: string }) {
  const [result, setResult] = useState<Result | null>(null);
  useEffect(() => {
    const running = run({ text: `SELECT * FROM ${name} LIMIT 100`, language: "sql", database });
    void running.finished.then(setResult);
    return () => running.cancel();
  }, []);
  if (!result) return <p class="empty">Reading…</p>;
  if (result.failure || !result.rows) return result.failure && <FailureBox failure={result.failure} />;
  if (result.rows.count === 0) return <p class="empty">The table has no rows.</p>;
  return (
    <section class="sample">
      <p class="soft">The first {count(result.rows.count, "row")}.</p>
      <Grid rows={result.rows} version={result.version} label="First rows" />
    </section>
  );
}
