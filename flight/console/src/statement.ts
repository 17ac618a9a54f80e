// One statement sent to the server, and its rows as they come.
import { type CallOptions, type PostQueryInput, QuerentError } from "querent-client";

import { asFailure, client, isAbort } from "./api";
import type { ArrowRows } from "./arrow/arrow-rows";
import { Cell } from "./cell";
import type { Language } from "./editor/editor";

/** What the grid shows of one answer, and the page's memory holds; what is more is cut, and says so. */
const MOST = { rows: 1_000_000, bytes: 400_000_000 };

export interface Statement {
  text: string;
  language: Language;
  database: string;
  /** Where it begins in the text that it was written in, as far as that is known. */
  from?: number;
}

/** Where a statement stands in a text that may have changed since: of several such places the nearest to where it stood. */
export function placeOf({ text, from = 0 }: Statement, whole: string): number | null {
  let nearest: number | null = null;
  for (let at = whole.indexOf(text); at >= 0; at = whole.indexOf(text, at + 1)) {
    if (nearest !== null && Math.abs(at - from) >= Math.abs(nearest - from)) break;
    nearest = at;
  }
  return nearest;
}

export type Outcome = "running" | "done" | "failed" | "cancelled";

export interface Result {
  statement: Statement;
  outcome: Outcome;
  rows: ArrowRows | null;
  /** Grows with the rows, so that what shows them is drawn again. */
  version: number;
  isCut: boolean;
  failure: QuerentError | null;
  startedAt: number;
  firstRowsMs: number | null;
  elapsedMs: number | null;
}

export interface Running {
  result: Cell<Result>;
  finished: Promise<Result>;
  cancel(): void;
}

const CONTENT_TYPES = { sql: "application/sql", kql: "application/x-kql" } as const;

/** The forms that rows are had in. */
export type Format = NonNullable<PostQueryInput["format"]>;

export function send({ text, language, database }: Statement, format: Format, options: CallOptions = {}): Promise<Response> {
  const input = { format, contentType: CONTENT_TYPES[language], body: text, "X-Database": database };
  return client.postQuery(input, options);
}

/** Runs a statement. Its cell changes at most once a frame while rows come. */
export function run(statement: Statement): Running {
  const abort = new AbortController();
  const result = new Cell<Result>({
    statement, outcome: "running", rows: null, version: 0, isCut: false, failure: null,
    startedAt: Date.now(), firstRowsMs: null, elapsedMs: null,
  });
  const begun = performance.now();
  let frame = 0;
  const change = (fields: Partial<Result>) =>
    result.set({ ...result.value, ...fields, version: result.value.version + 1 });
  const grew = () => {
    if (result.value.firstRowsMs === null && (result.value.rows?.count ?? 0) > 0) {
      change({ firstRowsMs: performance.now() - begun });
    }
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      if (result.value.outcome === "running") change({});
    });
  };

  const finish = async (): Promise<Result> => {
    const end: Partial<Result> = { outcome: "done" };
    try {
      const [{ ArrowRows }, response] = await Promise.all([
        import("./arrow/arrow-rows"),
        send(statement, "arrow", { signal: abort.signal }),
      ]);
      const rows = new ArrowRows();
      change({ rows });
      end.isCut = await rows.read(response.body!, MOST, grew);
      // The server ends the query when nobody reads its rows any more.
      if (end.isCut) abort.abort();
    } catch (error) {
      const isStopped = isAbort(error) || abort.signal.aborted;
      end.outcome = isStopped ? "cancelled" : "failed";
      if (!isStopped) end.failure = error instanceof QuerentError ? error : cutOff(result.value, error);
    }
    cancelAnimationFrame(frame);
    change({ ...end, elapsedMs: performance.now() - begun });
    return result.value;
  };
  return { result, finished: finish(), cancel: () => abort.abort() };
}

/** A stream that ends early has no room for its reason, which NDJSON has. */
function cutOff(result: Result, error: unknown): QuerentError {
  if (result.rows === null) return asFailure(error);
  return new QuerentError(0, "rows_cut_off", "The server stopped before the last row.", "“Ask why” runs it again.");
}

/** Runs a query again for the reason why its rows end early. */
export async function reasonOfCut(statement: Statement): Promise<QuerentError | null> {
  try {
    const response = await send(statement, "ndjson");
    let last = "";
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      const lines = (last + piece.value).trimEnd().split("\n");
      last = piece.value.endsWith("\n") ? `${lines.at(-1)}\n` : (lines.at(-1) ?? "");
    }
    return isFailure(JSON.parse(last)) ? QuerentError.read(last, 0) : null;
  } catch (error) {
    return asFailure(error);
  }
}

/** Whether a line of NDJSON is the reason why there are no more, and no row of a column that is called `error`. */
function isFailure(line: Record<string, unknown>): boolean {
  const { error } = line;
  return Object.keys(line).length === 1 && typeof error === "object" && error !== null && "code" in error && "message" in error;
}

/** What texts, quoted names and comments of SQL hold is no word of it. */
const NO_WORDS = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*[^]*?\*\//g;

/** A statement's words, from its first on. */
function wordsOf(text: string): string {
  return text.replace(NO_WORDS, (part) => (/^['"]/.test(part) ? "''" : " ")).trim().replace(/^\(+\s*/, "");
}

/** Whether there may be other tables, columns or databases after a statement. */
export function isDefining(statement: Statement): boolean {
  if (statement.language === "kql") return !isReading(statement);
  return /^(create|drop|alter|comment)\b/i.test(wordsOf(statement.text));
}

/** Whether running a statement again changes nothing. */
export function isReading({ text, language }: Statement): boolean {
  if (language === "kql") {
    const command = text.replace(/^(\s|\/\/.*(\n|$))+/, "");
    return !command.startsWith(".") || /^\.show\b/.test(command);
  }
  const bare = wordsOf(text);
  if (/^with\b/i.test(bare)) return !/\b(insert\s+into|delete\s+from|update|merge\s+into)\b/i.test(bare);
  return /^(select|from|values|table|summarize|pivot|unpivot|explain|show|describe|desc)\b/i.test(bare);
}

/** The statement that shows how another is computed. */
export function planStatement(statement: Statement, isRun: boolean): Statement {
  if (statement.language === "kql") return { ...statement, text: `.show queryplan <| ${statement.text}` };
  return { ...statement, text: `EXPLAIN ${isRun ? "ANALYZE " : ""}${statement.text}` };
}
