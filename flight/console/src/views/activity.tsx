// Activity: what runs now, with a way to end it, what the agent was asked, and the server's own numbers.
import { useEffect, useRef, useState } from "preact/hooks";
import type { GetAgentRunsAnswer, GetQueriesAnswer, QuerentError } from "querent-client";

import { asFailure, client } from "../api";
import { bytes, duration, time } from "../format";
import { FailureBox, say } from "../parts";
import { address } from "../router";

const EVERY_MS = 2000;

interface Shown {
  queries: GetQueriesAnswer["queries"];
  runs: GetAgentRunsAnswer["runs"];
  numbers: Map<string, number>;
}

export function ActivityView() {
  const [shown, setShown] = useState<Shown | null>(null);
  const [failure, setFailure] = useState<QuerentError | null>(null);
  const reading = useRef(false);
  const read = async () => {
    // On a slow network one answer is waited for before the next is asked for.
    if (reading.current) return;
    reading.current = true;
    await readActivity().then(
      (next) => { setShown(next); setFailure(null); },
      (error: unknown) => setFailure(asFailure(error)),
    );
    reading.current = false;
  };
  useEffect(() => {
    void read();
    // A page that nobody looks at asks nothing.
    const timer = setInterval(() => document.visibilityState === "visible" && void read(), EVERY_MS);
    return () => clearInterval(timer);
  }, []);
  const kill = async (id: number) => {
    try {
      await client.deleteQueriesId({ id: String(id) });
      say(`Query ${id} was ended`);
    } catch (error) {
      say(asFailure(error).message);
    }
    void read();
  };
  return (
    // It may have nothing in it that takes the focus, and scrolls by keys all the same.
    <div class="view scroll page" role="group" aria-label="Activity" tabIndex={0}>
      <h1>Activity</h1>
      {failure && <FailureBox failure={failure} />}
      {shown && <Numbers shown={shown} />}
      <h2>Queries that run now</h2>
      {shown?.queries.length === 0 && <p class="empty">None.</p>}
      <ul class="activity" aria-label="Queries that run now">
        {shown?.queries.map((query) => (
          <li key={query.id}>
            <div class="grow">
              <code>{query.statement}</code>
              <small>
                {query.id} · {query.subject} · {query.default_database} ·{" "}
                {duration(Math.max(0, Date.now() - Date.parse(query.started_at)))} ·{" "}
                {(query.memory_bytes / 1e6).toFixed(1)} MB
              </small>
            </div>
            <button class="danger" aria-label={`Kill query ${query.id}`} onClick={() => void kill(query.id)}>Kill</button>
          </li>
        ))}
      </ul>
      <h2>{shown && shown.runs.length >= MOST_QUESTIONS ? `The last ${MOST_QUESTIONS} questions` : "Questions"}</h2>
      {shown?.runs.length === 0 && <p class="empty">None yet.</p>}
      <ul class="activity" aria-label="Questions">
        {shown?.runs.map((run) => (
          <li key={run.run_id}>
            <div class="grow">
              <a href={address("ask", ["run", run.run_id])}>{run.question}</a>
              <small>{run.status} · {run.model_id} · {run.protocol} · {time(run.started_at)}</small>
            </div>
            {run.status === "running" && (
              <button class="danger" onClick={() => void stopRun(run.run_id)}>Cancel</button>
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}

function Numbers({ shown: { queries, numbers } }: { shown: Shown }) {
  const sum = (name: string, label = "") =>
    [...numbers].filter(([key]) => key === name || (key.startsWith(`${name}{`) && key.includes(label)))
      .reduce((total, [, value]) => total + value, 0);
  const facts: [string, string][] = [
    // The server's own number has those of others in it, which may not be listed here.
    ["queries run now", `${whole(queries.length)}${queries.length >= MOST_QUERIES ? "+" : ""}`],
    ["connections now", whole(sum("querent_connections"))],
    ["queries answered", whole(sum("querent_queries_total", 'outcome="success"'))],
    ["queries failed", whole(sum("querent_queries_total", 'outcome="error"'))],
    ["rows sent", whole(sum("querent_query_rows_total"))],
    ["questions asked", whole(sum("querent_runs_total"))],
    ["memory of the server", bytes(sum("querent_resident_bytes"))],
    ["disk left", bytes(sum("querent_disk_free_bytes"))],
    ["spilled to disk", bytes(sum("querent_spill_bytes"))],
    ["objects to index", whole(sum("querent_index_in_memory"))],
    ["not found by meaning yet", whole(sum("querent_index_without_vector"))],
  ];
  return (
    <>
      <dl class="numbers">
        {facts.map(([name, value]) => <div><dt>{name}</dt><dd>{value}</dd></div>)}
      </dl>
      <p class="soft"><small>What was answered, sent and asked is counted since the server started.</small></p>
    </>
  );
}

function whole(value: number): string {
  return value.toLocaleString("en-US");
}

async function stopRun(id: string): Promise<void> {
  try {
    await client.postAgentRunsRunIdCancel({ run_id: id });
    say("The question was cancelled");
  } catch (error) {
    say(asFailure(error).message);
  }
}

const MOST_QUERIES = 200;
const MOST_QUESTIONS = 50;

async function readActivity(): Promise<Shown> {
  const [{ queries }, { runs }, metrics] = await Promise.all([
    client.getQueries(),
    client.getAgentRuns({ limit: MOST_QUESTIONS }),
    client.getMetrics().then((response) => response.text()),
  ]);
  queries.sort((one, other) => Date.parse(other.started_at) - Date.parse(one.started_at));
  return { queries: queries.slice(0, MOST_QUERIES), runs, numbers: readMetrics(metrics) };
}

/** Prometheus text: a name, perhaps with labels, and a number. */
function readMetrics(text: string): Map<string, number> {
  const numbers = new Map<string, number>();
  for (const line of text.split("\n")) {
    const at = line.lastIndexOf(" ");
    if (at > 0 && !line.startsWith("#")) numbers.set(line.slice(0, at), Number(line.slice(at + 1)));
  }
  return numbers;
}
