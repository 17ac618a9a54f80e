// What a table joins: declared relationships as a list, and as a graph, whose code is loaded when it is first shown.
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { GetCatalogRelationshipsAnswer, QuerentError } from "querent-client";

import { asFailure, client } from "../api";
import { FailureBox, Switch } from "../parts";
import { address } from "../router";
import type { GraphProps } from "./graph";

export type Relationship = GetCatalogRelationshipsAnswer["relationships"][number];
export type TableEnd = Relationship["from"];

/** Relationships of the whole catalog that are read for the graph. */
const MOST_READ = 500;

export function Relationships({ database, table }: { database: string; table: string }) {
  const [known, setKnown] = useState<Relationship[] | null>(null);
  const [failure, setFailure] = useState<QuerentError | null>(null);
  const [form, setForm] = useState<"list" | "graph">("list");
  useEffect(() => {
    client.getCatalogRelationships({ database, table, limit: 100 }).then(
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
    <section>
      <div class="row section-head">
        <Switch
          label="Shown as"
          value={form}
          options={[{ value: "list", label: "List" }, { value: "graph", label: "Graph" }]}
          onChange={(chosen) => setForm(chosen)}
        />
      </div>
      {form === "graph" ? <LoadedGraph database={database} table={table} /> : <List known={known} />}
    </section>
  );
}

function List({ known }: { known: Relationship[] }) {
  return (
    <ul class="relationships">
      {known.map((one) => (
        <li>
          <EndOf end={one.from} columns={one.from_columns} /> <span aria-hidden="true">→</span>
          <span class="off-screen">refers to</span> <EndOf end={one.to} columns={one.to_columns} />
          <small> {one.origin}</small>
        </li>
      ))}
    </ul>
  );
}

function EndOf({ end, columns }: { end: TableEnd; columns: string[] }) {
  return <a href={address("catalog", [end.database, end.table])}>{end.database}.{end.table} <code>({columns.join(", ")})</code></a>;
}

function LoadedGraph({ database, table }: { database: string; table: string }) {
  const [Graph, setGraph] = useState<{ Shown: ComponentType<GraphProps> } | null>(null);
  const [all, setAll] = useState<GetCatalogRelationshipsAnswer | null>(null);
  const [failure, setFailure] = useState<QuerentError | null>(null);
  useEffect(() => {
    Promise.all([import("./graph"), client.getCatalogRelationships({ limit: MOST_READ })]).then(
      ([{ RelationsGraph }, answer]) => { setGraph({ Shown: RelationsGraph }); setAll(answer); },
      (error: unknown) => setFailure(asFailure(error)),
    );
  }, []);
  if (failure) return <FailureBox failure={failure} />;
  if (!Graph || !all) return <p class="empty">Reading…</p>;
  return (
    <>
      <Graph.Shown center={{ database, table }} relationships={all.relationships} />
      {all.next_page_token && <p class="note">There are more relationships than the first {MOST_READ}, which are looked at.</p>}
    </>
  );
}
