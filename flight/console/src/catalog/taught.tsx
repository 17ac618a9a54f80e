// What people have taught of a table: questions with the SQL that answers them, and names for numbers.
import { useEffect, useState } from "preact/hooks";
import type { GetCatalogMetricsAnswer, GetCatalogVerifiedQueriesAnswer, QuerentError } from "querent-client";

import { asFailure, client } from "../api";
import { useIsReader } from "../caller";
import { FailureBox, TwoClicks, say } from "../parts";
import { database as chosenDatabase } from "../preferences";
import { openQuery } from "../views/query-tabs";
import { qualified } from "./table";

type VerifiedQuery = GetCatalogVerifiedQueriesAnswer["verified_queries"][number];
type Metric = GetCatalogMetricsAnswer["metrics"][number];

/** Pages of the catalog's list that are looked through for the table's. */
const MOST_PAGES = 10;

export function Taught({ database, table }: { database: string; table: string }) {
  const [known, setKnown] = useState<{ queries: VerifiedQuery[]; metrics: Metric[] } | null>(null);
  const [failure, setFailure] = useState<QuerentError | null>(null);
  const isReader = useIsReader();
  const read = () => {
    readTaught(database, table).then(setKnown, (error: unknown) => setFailure(asFailure(error)));
  };
  useEffect(read, []);
  const drop = async (call: () => Promise<unknown>) => {
    try {
      await call();
      say("Dropped");
    } catch (error) {
      say(`It was not dropped: ${asFailure(error).message}`);
    }
    read();
  };
  const open = (of: string, sql: string) => {
    chosenDatabase.set(of);
    openQuery("sql", sql, true);
  };
  if (failure) return <FailureBox failure={failure} />;
  if (!known) return <p class="empty">Reading…</p>;
  return (
    <section class="taught">
      <h3>Verified queries</h3>
      {known.queries.length === 0 && (
        <p class="empty">None. A question with the SQL that answers it is kept by <code>POST /v1/catalog/verified-queries</code>.</p>
      )}
      <ul aria-label="Verified queries">
        {known.queries.map((one) => (
          <li key={one.id}>
            <strong>{one.question}</strong>
            <pre class="code" tabIndex={0}>{one.sql}</pre>
            <div class="row">
              <button onClick={() => open(one.database, one.sql)}>Run in Query</button>
              {!isReader && <TwoClicks act="Drop" what={`verified query ${one.question}`}
                onAct={() => void drop(() => client.deleteCatalogVerifiedQueriesId({ id: String(one.id) }))} />}
            </div>
          </li>
        ))}
      </ul>
      <h3>Metrics</h3>
      {known.metrics.length === 0 && (
        <p class="empty">None. A name for a number is kept by <code>POST /v1/catalog/metrics</code>.</p>
      )}
      <ul aria-label="Metrics">
        {known.metrics.map((one) => (
          <li key={one.id}>
            <strong>{one.name}</strong>
            {one.description && <p>{one.description}</p>}
            <pre class="code" tabIndex={0}>{one.expression}{one.filter && `\nWHERE ${one.filter}`}</pre>
            <div class="row">
              <button onClick={() => open(one.database, sqlOf(one))}>Run in Query</button>
              {!isReader && <TwoClicks act="Drop" what={`metric ${one.name}`}
                onAct={() => void drop(() => client.deleteCatalogMetricsId({ id: String(one.id) }))} />}
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}

function sqlOf({ name, expression, table, filter }: Metric): string {
  const from = qualified(table.database, table.table);
  return `SELECT ${expression} AS "${name.replace(/"/g, '""')}"\nFROM ${from}${filter ? `\nWHERE ${filter}` : ""}`;
}

async function readTaught(database: string, table: string): Promise<{ queries: VerifiedQuery[]; metrics: Metric[] }> {
  const isThis = (end: { database: string; table: string }) => end.database === database && end.table === table;
  const queries: VerifiedQuery[] = [];
  const metrics: Metric[] = [];
  const read = async (page: (after: { page_token?: string }) => Promise<string | null>) => {
    let next = await page({});
    for (let pages = 1; next !== null && pages < MOST_PAGES; pages++) next = await page({ page_token: next });
  };
  await Promise.all([
    read(async (after) => {
      const answer = await client.getCatalogVerifiedQueries({ limit: 100, ...after });
      queries.push(...answer.verified_queries.filter((one) => one.tables.some(isThis)));
      return answer.next_page_token ?? null;
    }),
    read(async (after) => {
      const answer = await client.getCatalogMetrics({ limit: 100, ...after });
      metrics.push(...answer.metrics.filter((one) => isThis(one.table)));
      return answer.next_page_token ?? null;
    }),
  ]);
  return { queries, metrics };
}
