// A run of the agent as its events tell it. A stream and a stored trace hold the same events, so both are folded here.
import type { GetAgentRunsRunIdApprovalsAnswer } from "querent-client";

export interface Proof {
  text: string;
  start: number;
  end: number;
  origin: "cell" | "expression" | "row_count" | "question" | "query" | "conversation" | "unproven";
  /** `run_id`: of an earlier run of the conversation. */
  cell?: { run_id?: string; call_index: number; row: number; column: string };
  value?: unknown;
  expression?: string;
  corrected_from?: string;
}

export interface ToolResult {
  columns?: { name: string; type: string }[];
  rows?: Record<string, unknown>[];
  row_count?: number;
  total_rows?: number;
  total_rows_is_lower_bound?: boolean;
  truncated?: boolean;
  repaired?: { sent: string; ran: string; changes: { kind: string; from: string; to: string; why: string }[] };
  checks?: { kind: string; message: string }[];
  error?: { code: string; message: string; hint?: string };
  [other: string]: unknown;
}

/** `abandoned`: the conversation went on without a decision. */
export type ApprovalState = GetAgentRunsRunIdApprovalsAnswer["approvals"][number]["state"];

export type Step =
  | { kind: "thinking"; text: string }
  | { kind: "text"; text: string }
  | { kind: "approval"; id: string; tool: string; args: Record<string, unknown>; description: string; state: ApprovalState }
  | { kind: "tool"; index: number; tool: string; args: Record<string, unknown>; result: ToolResult | null; chart: object | null };

export interface AskRun {
  id: string | null;
  sessionId: string | null;
  question: string;
  model: string | null;
  /** `paused`: a person has to decide on its calls. */
  outcome: "running" | "done" | "failed" | "paused";
  /** It was begun elsewhere, or before this page was loaded, and is looked at. */
  isFollowed: boolean;
  /** The paused run that it goes on from. */
  continues: string | null;
  steps: Step[];
  answer: { text: string; proof: Proof[]; confidence: Confidence | null } | null;
  error: { code: string; message: string } | null;
  elapsedMs: number | null;
  tokens: { input: number; output: number } | null;
}

/** How far an answer is to be trusted, in a word, and why. */
export interface Confidence {
  level: "verified" | "likely" | "unsure" | "doubtful";
  probability?: number;
  reasons: string[];
}

export interface RunEvent {
  event: string;
  data: Record<string, unknown>;
}

export function newRun(question: string, sessionId: string | null): AskRun {
  return {
    id: null, sessionId, question, model: null, outcome: "running", isFollowed: false, continues: null, steps: [], answer: null, error: null,
    elapsedMs: null, tokens: null,
  };
}

/** The run after one more event. Events of kinds that this page does not know change nothing. */
export function fold(run: AskRun, { event, data }: RunEvent): AskRun {
  switch (event) {
    case "run_started":
      return {
        ...run,
        id: text(data["run_id"]),
        question: text(data["question"]) ?? run.question,
        model: text(data["model"]),
        continues: text(data["continues"]),
        sessionId: text(data["session_id"]) ?? run.sessionId,
      };
    case "thinking_delta":
      return { ...run, steps: appended(run.steps, "thinking", String(data["text"])) };
    case "answer_delta":
      return { ...run, steps: appended(run.steps, "text", String(data["text"])) };
    case "tool_call": {
      const step: Step = {
        kind: "tool",
        index: Number(data["call_index"]),
        tool: String(data["tool"]),
        args: (data["args"] ?? {}) as Record<string, unknown>,
        result: null,
        chart: null,
      };
      return { ...run, steps: [...run.steps, step] };
    }
    case "tool_result": {
      const index = Number(data["call_index"]);
      const result = (data["result"] ?? {}) as ToolResult;
      const chart = (data["vegaSpec"] ?? null) as object | null;
      return {
        ...run,
        steps: run.steps.map((step) => (step.kind === "tool" && step.index === index ? { ...step, result, chart } : step)),
      };
    }
    case "approval_requested": {
      const step: Step = {
        kind: "approval",
        id: String(data["approval_id"]),
        tool: String(data["tool"]),
        args: argumentsOf(data["args"]),
        description: String(data["description"] ?? ""),
        state: "waiting",
      };
      return { ...run, steps: [...run.steps, step] };
    }
    case "answer_final":
      return { ...run, steps: withoutLastText(run.steps), answer: answerOf(data, run.steps) };
    case "run_error":
      return { ...run, error: { code: text(data["detail_code"]) ?? String(data["code"]), message: String(data["message"]) } };
    case "run_finished": {
      const usage = (data["usage"] ?? {}) as { input_tokens?: number; output_tokens?: number };
      return {
        ...run,
        outcome: run.error ? "failed" : data["outcome"] === "paused" ? "paused" : "done",
        elapsedMs: Number(data["elapsed_ms"]),
        tokens: { input: usage.input_tokens ?? 0, output: usage.output_tokens ?? 0 },
      };
    }
    default:
      return run;
  }
}

/** The run with what was decided on its calls, by their ids. */
export function decided(run: AskRun, states: ReadonlyMap<string, ApprovalState>): AskRun {
  const steps = run.steps.map((step) => (step.kind === "approval" ? { ...step, state: states.get(step.id) ?? step.state } : step));
  return { ...run, steps };
}

function argumentsOf(value: unknown): Record<string, unknown> {
  return value !== null && typeof value === "object" ? (value as Record<string, unknown>) : { arguments: value };
}

function answerOf(data: Record<string, unknown>, steps: Step[]): AskRun["answer"] {
  const proof = (data["proof"] ?? []) as Proof[];
  const chars = [...String(data["text"])];
  const begin = beginOfAnswer(chars, proof, steps);
  return {
    text: chars.slice(begin ?? 0).join(""),
    proof: begin === null ? [] : proof,
    confidence: (data["confidence"] ?? null) as Confidence | null,
  };
}

/**
 * Where the answer itself begins in the final text, which also has what was said before the tool calls. Proofs count from
 * there, and say what they stand at; `null` where they fit nowhere.
 */
function beginOfAnswer(chars: string[], proof: Proof[], steps: Step[]): number | null {
  const fits = (begin: number) =>
    proof.every((one) => chars.slice(begin + one.start, begin + one.end).join("") === one.text);
  const last = steps.at(-1);
  const streamed = last?.kind === "text" ? [...last.text.trim()].length : 0;
  const end = chars.length - streamed;
  const isSuffix = streamed > 0 && chars.slice(end).join("") === (last as { text: string }).text.trim();
  if (proof.length === 0) return isSuffix ? end : 0;
  // What was said before the calls may have the same numbers at the same distances.
  if (isSuffix && fits(end)) return end;
  for (let begin = 0; begin < chars.length; begin++) if (fits(begin)) return begin;
  return null;
}

/** The final text stands for what streamed after the last tool call; what was said before stays. */
function withoutLastText(steps: Step[]): Step[] {
  const kept = [...steps];
  while (kept.at(-1)?.kind === "text") kept.pop();
  return kept;
}

function appended(steps: Step[], kind: "thinking" | "text", more: string): Step[] {
  const last = steps.at(-1);
  if (last?.kind === kind) return [...steps.slice(0, -1), { kind, text: last.text + more }];
  return [...steps, { kind, text: more }];
}

function text(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
