// The server that this page came from, by the client package that is made of its OpenAPI document. Public routes only.
import { type PostQueryAnswer, QuerentClient, QuerentError } from "querent-client";

import { Cell } from "./cell";

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

/** The token in what a person pastes: without spaces, and without the word before it in a header. */
export function tokenIn(text: string): string {
  return text.trim().replace(/^Bearer\s+/i, "");
}

/** Whether a header can carry it. */
export function isSendable(text: string): boolean {
  return /^[\x21-\x7e]*$/.test(text);
}

export function isTokenRemembered(): boolean {
  return localStorage.getItem(TOKEN) !== null;
}

/** Its methods throw a `QuerentError` unless the server answers with success. */
export const client = new QuerentClient("", { fetch: send });

/** The same with a key for each request: a run that is begun with one goes on when this page is left or loaded anew. */
export const runClient = new QuerentClient("", {
  fetch: (address, init = {}) => {
    const headers = new Headers(init.headers);
    headers.set("idempotency-key", `console-${randomId()}`);
    return send(address, { ...init, headers });
  },
});

/** Pages without TLS have no `crypto.randomUUID`. */
export function randomId(): string {
  return [...crypto.getRandomValues(new Uint8Array(12))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Sends a request with the token that the person gave, and notices where one is wanted. */
async function send(address: string | URL | Request, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (token.value !== "") headers.set("authorization", `Bearer ${token.value}`);
  let response: Response;
  try {
    response = await fetch(address, { ...init, headers });
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new QuerentError(0, "unreachable", "The server does not answer.", "Is it still running?");
  }
  if (response.status === 401) needsToken.set(true);
  else if (response.ok && needsToken.value) needsToken.set(false);
  return response;
}

/** The rows of a small SQL query, an object each. */
export async function rowsOf(sql: string, database?: string): Promise<Record<string, unknown>[]> {
  const response = await client.postQuery({
    format: "json", contentType: "application/sql", body: sql, ...(database === undefined ? {} : { "X-Database": database }),
  });
  const { columns, rows } = (await response.json()) as PostQueryAnswer;
  return rows.map((row: unknown[]) => Object.fromEntries(columns.map((column, at) => [column.name, row[at]])));
}

/** What a browser throws where a script of the page is not there, in the words of Chromium, Firefox and Safari. */
const UNLOADED = /dynamically imported module|importing a module script/i;

/** What a browser throws where a connection breaks off, in the words of Chromium, Firefox and Safari. */
const BROKEN = /network|failed to fetch|load failed|input stream/i;

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

/** Any error as one of the server's. */
export function asFailure(error: unknown): QuerentError {
  if (error instanceof QuerentError) return error;
  if (error instanceof TypeError && UNLOADED.test(error.message)) {
    return new QuerentError(0, "page_outdated", "A part of this page could not be loaded.", "Load the page anew: the server may be of another version by now.");
  }
  if (error instanceof TypeError && BROKEN.test(error.message)) {
    return new QuerentError(0, "connection_lost", "The connection to the server broke off.", "Is it still running?");
  }
  return new QuerentError(0, "console_error", error instanceof Error ? error.message : String(error));
}
