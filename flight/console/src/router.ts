// Addresses after `#`: `#/query`, `#/catalog/default/flights`, `#/ask/run/ID`. The server only ever sees `/`.
import { Cell } from "./cell";

export interface Route {
  view: string;
  parts: string[];
  params: URLSearchParams;
}

export const VIEWS = ["ask", "query", "catalog", "import", "activity", "settings"] as const;

export const route = new Cell<Route>(parse(location.hash));

window.addEventListener("hashchange", () => route.set(parse(location.hash)));

export function go(view: string, parts: string[] = [], params: Record<string, string> = {}): void {
  location.hash = address(view, parts, params);
}

export function address(view: string, parts: string[] = [], params: Record<string, string> = {}): string {
  const query = new URLSearchParams(params).toString();
  return `#/${[view, ...parts].map(encodeURIComponent).join("/")}${query ? `?${query}` : ""}`;
}

function parse(hash: string): Route {
  // A query that somebody wrote by hand may have question marks of its own.
  const [, path = "", query = ""] = /^#?\/?([^?]*)\??(.*)$/s.exec(hash) ?? [];
  const [view = "", ...parts] = path.split("/").filter((part) => part !== "").map(decode);
  return { view: (VIEWS as readonly string[]).includes(view) ? view : "query", parts, params: new URLSearchParams(query) };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
