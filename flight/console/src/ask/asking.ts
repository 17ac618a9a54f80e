// The conversation that the ask view shows, the run that goes on in it, and past runs.
import { ApiFailure, asFailure, getJson, isAbort, request } from "../api";
import { Cell, storedCell } from "../cell";
import { database } from "../preferences";
import { type ApprovalState, type AskRun, type RunEvent, decided, fold, newRun, readEvents } from "./run";

/** The runs of the conversation that is open, oldest first. */
export const thread = new Cell<AskRun[]>([]);

export const withThinking = storedCell<boolean>("thinking", true);

/** Why the last question could not be asked at all. */
export const askFailure = new Cell<ApiFailure | null>(null);

export interface PastRun {
  run_id: string;
  question: string;
  model_id: string | null;
  status: string;
  started_at: string;
  finished_at: string | null;
}

export const pastRuns = new Cell<PastRun[]>([]);

let abort: AbortController | null = null;
let replay = 0;

export async function readPastRuns(): Promise<void> {
  const answer = await getJson<{ runs: PastRun[] }>("/v1/agent/runs?limit=60");
  pastRuns.set(answer.runs);
}

/** Asks a question in the open conversation. */
export async function ask(question: string): Promise<void> {
  stopReplay();
  const sessionId = thread.value.at(-1)?.sessionId ?? `console-${randomId()}`;
  await stream(newRun(question, sessionId), "/v1/agent/ask", {
    question, database: database.value, include_thinking: withThinking.value, session_id: sessionId, approvals: true,
  });
}

/** A decision on a call of a paused run. */
export interface Verdict {
  approval_id: string;
  approve: boolean;
  reason?: string;
}

/** Decides on the calls of a paused run; the run that goes on is shown below it. */
export async function decide(paused: AskRun, verdicts: Verdict[]): Promise<void> {
  if (paused.id === null) return;
  stopReplay();
  const next = { ...newRun(paused.question, paused.sessionId), continues: paused.id };
  const states = new Map(verdicts.map((one): [string, ApprovalState] => [one.approval_id, one.approve ? "approved" : "denied"]));
  const isTaken = await stream(next, `/v1/agent/runs/${encodeURIComponent(paused.id)}/approvals`, { decisions: verdicts }, () =>
    thread.update((runs) => runs.map((run) => (run.id === paused.id ? decided(run, states) : run))));
  // Somebody else, or another tab, may have been faster.
  if (!isTaken) await readDecisions(paused.id);
}

/** Posts what begins a run and shows the run, as the last of the conversation. Returns whether it began. */
async function stream(begun: AskRun, path: string, body: object, onStarted: () => void = () => undefined): Promise<boolean> {
  let run = begun;
  askFailure.set(null);
  thread.update((runs) => [...runs, run]);
  const show = (next: AskRun) => {
    const shown = run;
    run = next;
    // Another conversation may have been opened meanwhile; the run goes on without being shown.
    thread.update((runs) => runs.map((one) => (one === shown ? next : one)));
  };
  abort = new AbortController();
  try {
    const response = await request(path, {
      method: "POST",
      signal: abort.signal,
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    for await (const event of readEvents(response.body!)) {
      show(fold(run, event));
      if (event.event !== "run_started" || !run.id) continue;
      history.replaceState(null, "", `#/ask/run/${run.id}`);
      onStarted();
    }
    if (run.outcome === "running") show(failed(run, "stream_ended", "The server stopped before the answer was whole."));
  } catch (error) {
    const failure = asFailure(error);
    if (run.id === null && !isAbort(error)) {
      thread.update((runs) => runs.filter((one) => one !== run));
      askFailure.set(failure);
    } else {
      show(failed(run, isAbort(error) ? "cancelled" : failure.code, isAbort(error) ? "The question was cancelled." : failure.message));
    }
  }
  abort = null;
  readPastRuns().catch(() => undefined);
  return run.id !== null;
}

/** Reads what was decided on the calls of a run that is shown. */
async function readDecisions(id: string): Promise<void> {
  const answer = await getJson<{ approvals: { approval_id: string; state: ApprovalState }[] }>(
    `/v1/agent/runs/${encodeURIComponent(id)}/approvals`,
  ).catch(() => ({ approvals: [] }));
  const states = new Map(answer.approvals.map((one): [string, ApprovalState] => [one.approval_id, one.state]));
  thread.update((runs) => runs.map((run) => (run.id === id ? decided(run, states) : run)));
}

/** Stops the run that goes on: by its id, so that its stream ends as it should. */
export async function cancel(): Promise<void> {
  const running = thread.value.at(-1);
  if (!running?.id) return abort?.abort();
  try {
    await request(`/v1/agent/runs/${running.id}/cancel`, { method: "POST" });
  } catch {
    abort?.abort();
  }
}

interface StoredRun {
  run_id: string;
  question: string;
  model_id: string | null;
  status: string;
  trace: RunEvent[];
}

/** Opens a past run: whole, or event by event as it happened. */
export async function openRun(id: string, isReplayed: boolean): Promise<void> {
  stopReplay();
  const turn = replay;
  askFailure.set(null);
  let stored: StoredRun;
  try {
    stored = await getJson<StoredRun>(`/v1/agent/runs/${encodeURIComponent(id)}`);
  } catch (error) {
    askFailure.set(asFailure(error));
    return;
  }
  if (turn !== replay) return;
  let run: AskRun = { ...newRun(stored.question, null), id: stored.run_id, model: stored.model_id };
  for (const event of stored.trace) {
    run = fold(run, event);
    if (!isReplayed) continue;
    thread.set([run]);
    await new Promise((resume) => setTimeout(resume, PACE[event.event] ?? 30));
    if (turn !== replay) return;
  }
  if (run.outcome === "running" && stored.status !== "running") run = failed(run, stored.status, `The run ended: ${stored.status}.`);
  thread.set([run]);
  if (run.outcome === "paused") await readDecisions(stored.run_id);
  if (run.outcome !== "running") return;
  // It runs elsewhere: what has happened since is looked at until it ends, or something else is shown.
  await new Promise((resume) => setTimeout(resume, LOOK_AGAIN));
  if (turn === replay && thread.value.includes(run)) await openRun(id, false);
}

/** How long to wait before a run of another window is looked at again, in milliseconds. */
const LOOK_AGAIN = 1000;

/** How long a replay waits after an event, in milliseconds; the trace has no times. */
const PACE: Record<string, number> = { run_started: 400, tool_call: 900, tool_result: 700, approval_requested: 900, answer_final: 200 };

export function stopReplay(): void {
  replay++;
}

export function newConversation(): void {
  stopReplay();
  abort?.abort();
  thread.set([]);
  askFailure.set(null);
}

function failed(run: AskRun, code: string, message: string): AskRun {
  return { ...run, outcome: "failed", error: run.error ?? { code, message } };
}

/** Pages without TLS have no `crypto.randomUUID`. */
function randomId(): string {
  return [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
