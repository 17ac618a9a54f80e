// The conversation that the ask view shows, the run that goes on in it, and past runs.
import type {
  CallOptions, GetAgentRunsAnswer, GetAgentRunsRunIdAnswer, PostAgentRunsRunIdApprovalsInput, QuerentError, ServerEvent,
} from "querent-client";

import { asFailure, client, isAbort, randomId, runClient, token } from "../api";
import { Cell, storedCell } from "../cell";
import { database } from "../preferences";
import { type ApprovalState, type AskRun, decided, fold, newRun } from "./run";

/** The runs of the conversation that is open, oldest first. */
export const thread = new Cell<AskRun[]>([]);

export const withThinking = storedCell<boolean>("thinking", true);

/** Why the last question could not be asked at all. */
export const askFailure = new Cell<QuerentError | null>(null);

export type PastRun = GetAgentRunsAnswer["runs"][number];

export const pastRuns = new Cell<PastRun[]>([]);

let abort: AbortController | null = null;
let replay = 0;
/** The run that is being replayed. */
let replayed: string | null = null;

export async function readPastRuns(): Promise<void> {
  const asked = token.value;
  const { runs } = await client.getAgentRuns({ limit: 60 });
  // An answer that comes late is of the token before.
  if (token.value === asked) pastRuns.set(runs);
}

/** Asks a question in the open conversation. Returns whether a run began. */
export async function ask(question: string): Promise<boolean> {
  stopReplay();
  const sessionId = thread.value.at(-1)?.sessionId ?? `console-${randomId()}`;
  const body = {
    question, database: database.value, include_thinking: withThinking.value, session_id: sessionId, approvals: true,
  };
  return stream(newRun(question, sessionId), (options) => runClient.postAgentAsk({ body }, options));
}

/** A decision on a call of a paused run. */
export type Verdict = NonNullable<PostAgentRunsRunIdApprovalsInput["body"]["decisions"]>[number];

/** Decides on the calls of a paused run; the run that goes on is shown below it. */
export async function decide(paused: AskRun, verdicts: Verdict[]): Promise<void> {
  const run_id = paused.id;
  if (run_id === null) return;
  stopReplay();
  const next = { ...newRun(paused.question, paused.sessionId), continues: run_id };
  const states = new Map(verdicts.map((one): [string, ApprovalState] => [one.approval_id, one.approve ? "approved" : "denied"]));
  const send = (options: CallOptions) => runClient.postAgentRunsRunIdApprovals({ run_id, body: { decisions: verdicts } }, options);
  const isTaken = await stream(next, send, () =>
    thread.update((runs) => runs.map((run) => (run.id === run_id ? decided(run, states) : run))));
  // Somebody else, or another tab, may have been faster.
  if (!isTaken) await readDecisions(run_id);
}

/** Sends what begins a run and shows the run, as the last of the conversation. Returns whether it began. */
async function stream(
  begun: AskRun, send: (options: CallOptions) => AsyncIterable<ServerEvent>, onStarted: () => void = () => undefined,
): Promise<boolean> {
  let run = begun;
  let lastEvent = "";
  askFailure.set(null);
  thread.update((runs) => [...runs, run]);
  const show = (next: AskRun) => {
    const shown = run;
    run = next;
    // Another conversation may have been opened meanwhile; the run goes on without being shown.
    thread.update((runs) => runs.map((one) => (one === shown ? next : one)));
  };
  const read = async (events: AsyncIterable<ServerEvent>) => {
    for await (const event of events) {
      lastEvent = event.id ?? lastEvent;
      show(fold(run, event));
      if (event.event !== "run_started" || !run.id) continue;
      if (thread.value.includes(run)) history.replaceState(null, "", `#/ask/run/${run.id}`);
      onStarted();
    }
  };
  const mine = new AbortController();
  abort = mine;
  try {
    await read(send({ signal: mine.signal })).catch((error: unknown) => {
      if (run.id === null || asFailure(error).code !== "connection_lost") throw error;
    });
    // The run goes on when its connection breaks off; what has happened since is there to be read.
    for (const wait of READ_AGAIN_AFTER) {
      if (run.outcome !== "running" || run.id === null) break;
      await new Promise((resume) => setTimeout(resume, wait));
      await read(client.getAgentRunsRunIdEvents({ run_id: run.id, "Last-Event-ID": lastEvent }, { signal: mine.signal }))
        .catch((error: unknown) => { if (isAbort(error)) throw error; });
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
  if (abort === mine) abort = null;
  readPastRuns().catch(() => undefined);
  return run.id !== null;
}

/** How long to wait before a run whose connection broke off is read on, in milliseconds. */
const READ_AGAIN_AFTER = [300, 1000, 2000, 4000];

/** Reads what was decided on the calls of a run that is shown. */
async function readDecisions(id: string): Promise<void> {
  const { approvals } = await client.getAgentRunsRunIdApprovals({ run_id: id }).catch(() => ({ approvals: [] }));
  const states = new Map(approvals.map((one): [string, ApprovalState] => [one.approval_id, one.state]));
  thread.update((runs) => runs.map((run) => (run.id === id ? decided(run, states) : run)));
}

/** Stops the run that goes on: by its id, so that its stream ends as it should. One that is replayed is shown whole. */
export async function cancel(): Promise<void> {
  if (replayed !== null) return openRun(replayed, false);
  const running = thread.value.at(-1);
  const reading = abort;
  if (!running?.id) return reading?.abort();
  try {
    await client.postAgentRunsRunIdCancel({ run_id: running.id });
  } catch {
    reading?.abort();
  }
}

/** Opens a past run: whole, or event by event as it happened. */
export async function openRun(id: string, isReplayed: boolean): Promise<void> {
  stopReplay();
  const turn = replay;
  askFailure.set(null);
  let stored: GetAgentRunsRunIdAnswer;
  try {
    stored = await client.getAgentRunsRunId({ run_id: id });
  } catch (error) {
    if (turn !== replay) return;
    // What was shown before is not what this address names.
    thread.set([]);
    askFailure.set(asFailure(error));
    return;
  }
  if (turn !== replay) return;
  if (stored.status === "running") {
    // It was begun in another window, or before this page was loaded.
    thread.set([]);
    const followed = { ...newRun(stored.question, null), isFollowed: true };
    await stream(followed, (options) => client.getAgentRunsRunIdEvents({ run_id: id }, options));
    return;
  }
  let run: AskRun = { ...newRun(stored.question, null), id: stored.run_id, model: stored.model_id };
  if (isReplayed) replayed = id;
  for (const event of stored.trace) {
    run = fold(run, event);
    if (!isReplayed) continue;
    thread.set([run]);
    await new Promise((resume) => setTimeout(resume, PACE[event.event] ?? 30));
    if (turn !== replay) return;
  }
  replayed = null;
  if (run.outcome === "running") run = failed(run, stored.status, `The run ended: ${stored.status}.`);
  thread.set([run]);
  if (run.outcome === "paused") await readDecisions(stored.run_id);
}

/** How long a replay waits after an event, in milliseconds; the trace has no times. */
const PACE: Record<string, number> = { run_started: 400, tool_call: 900, tool_result: 700, approval_requested: 900, answer_final: 200 };

export function stopReplay(): void {
  replay++;
  replayed = null;
}

/** Another caller has other questions. */
export function forgetConversation(): void {
  clear();
  pastRuns.set([]);
}

/** Begins another conversation; a run of this one that goes on is stopped, unless it was begun elsewhere and only looked at. */
export function newConversation(): void {
  const last = thread.value.at(-1);
  if (last?.isFollowed) abort?.abort();
  else if (replayed === null && last?.outcome === "running") void cancel();
  clear();
}

function clear(): void {
  stopReplay();
  thread.set([]);
  askFailure.set(null);
}

function failed(run: AskRun, code: string, message: string): AskRun {
  return { ...run, outcome: "failed", error: run.error ?? { code, message } };
}
