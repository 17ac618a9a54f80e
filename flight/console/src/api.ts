// Requests to the server that this page came from, over its public routes only.
import { Cell } from "./cell";

/** What the server said no with. */
export class ApiFailure extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly hint: string | null,
    readonly status: number,
  ) {
    super(message);
  }
}

const TOKEN = "querent.token";

/** The token that requests carry; kept for this tab, or for this browser where the person says so. */
export const token = new Cell<string>(sessionStorage.getItem(TOKEN) ?? localStorage.getItem(TOKEN) ?? "");

/** Whether the last request was refused for want of a token. */
export const needsToken = new Cell<boolean>(false);

export function setToken(value: string, remember: boolean): void {
  sessionStorage.removeItem(TOKEN);
  localStorage.removeItem(TOKEN);
  if (value !== "") (remember ? localStorage : sessionStorage).setItem(TOKEN, value);
  token.set(value);
  needsToken.set(false);
}

export function isTokenRemembered(): boolean {
  return localStorage.getItem(TOKEN) !== null;
}

/** Sends a request; throws an `ApiFailure` unless the server answers with success. */
export async function request(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (token.value !== "") headers.set("authorization", `Bearer ${token.value}`);
  let response: Response;
  try {
    response = await fetch(path, { ...init, headers });
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new ApiFailure("unreachable", "The server does not answer.", "Is it still running?", 0);
  }
  if (response.ok) {
    if (needsToken.value) needsToken.set(false);
    return response;
  }
  if (response.status === 401) needsToken.set(true);
  throw await failureOf(response);
}

export async function getJson<T>(path: string, init: RequestInit = {}): Promise<T> {
  const response = await request(path, init);
  return (await response.json()) as T;
}

/** The rows of a small SQL query, an object each. */
export async function rowsOf(sql: string, database?: string): Promise<Record<string, unknown>[]> {
  const headers: Record<string, string> = { "content-type": "application/sql", accept: "application/json" };
  if (database !== undefined) headers["x-database"] = encodeHeader(database);
  const answer = await getJson<JsonRows>("/v1/query", { method: "POST", body: sql, headers });
  return answer.rows.map((row) => Object.fromEntries(answer.columns.map((column, at) => [column.name, row[at]])));
}

export interface JsonRows {
  columns: { name: string; type: string }[];
  rows: unknown[][];
  row_count: number;
  truncated: boolean;
}

/** A name as a header can carry it: UTF-8, a byte a character. */
export function encodeHeader(name: string): string {
  return [...new TextEncoder().encode(name)].map((byte) => String.fromCharCode(byte)).join("");
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** Any error as one of the server's. */
export function asFailure(error: unknown): ApiFailure {
  if (error instanceof ApiFailure) return error;
  return new ApiFailure("console_error", error instanceof Error ? error.message : String(error), null, 0);
}

async function failureOf(response: Response): Promise<ApiFailure> {
  const text = await response.text();
  const code = response.headers.get("x-querent-error-code") ?? `http_${response.status}`;
  try {
    return readFailure(JSON.parse(text), code, response.status);
  } catch {
    return new ApiFailure(code, text || response.statusText, null, response.status);
  }
}

/** Reads both shapes of errors: `{"error": {"code", "message", "hint"}}` and `{"error": "message"}`. */
export function readFailure(body: unknown, code: string, status: number): ApiFailure {
  const error = (body as { error?: unknown }).error;
  if (typeof error === "string") return new ApiFailure(code, error, null, status);
  const fields = error as { code?: string; message?: string; hint?: string };
  return new ApiFailure(fields.code ?? code, fields.message ?? "no message", fields.hint ?? null, status);
}
