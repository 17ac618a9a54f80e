// Where in its statement an error lies, and what would fix it, as far as the server's words say so.
import type { QuerentError } from "querent-client";

import type { Language } from "./editor";
import { sqlName } from "./sql";

export interface Span {
  from: number;
  to: number;
}

export interface Fix {
  span: Span;
  text: string;
}

/** The place that the error names by line and column, or by the name that it does not know. */
export function spanOf(failure: QuerentError, statement: string): Span | null {
  const place = /\bline (\d+),? column (\d+)/i.exec(failure.message);
  if (place) {
    const from = offsetOf(statement, Number(place[1]), Number(place[2]));
    const carets = /^\s*(\^+)\s*$/m.exec(failure.message)?.[1]?.length;
    const word = /^[\w$]+/.exec(statement.slice(from))?.[0].length;
    return { from, to: Math.min(statement.length, from + (carets ?? word ?? 1)) };
  }
  const unknown = /(?:unknown|no such|ambiguous)[^`]*`([^`]+)`/i.exec(failure.message)?.[1];
  return unknown === undefined ? null : findName(statement, unknown);
}

/** The replacement that the error suggests. */
export function fixOf(failure: QuerentError, statement: string, language: Language): Fix | null {
  const text = /did you mean `([^`]+)`/i.exec(`${failure.message} ${failure.hint ?? ""}`)?.[1];
  const span = spanOf(failure, statement);
  if (text === undefined || !span || span.to <= span.from) return null;
  const unknown = UNKNOWN_NAME.exec(failure.message)?.[1];
  return unknown === undefined ? { span, text } : fixOfName(statement, span, unknown, text, language);
}

/** Errors that suggest a name; others suggest functions and words of the language. */
const UNKNOWN_NAME = /unknown (?:column|table|database) `([^`]+)`/;

/** The name in the place of the unknown one: behind what that one was of, and in quotes where it needs them and stands in none. */
function fixOfName(statement: string, { from, to }: Span, unknown: string, name: string, language: Language): Fix {
  const at = statement.slice(from, to).lastIndexOf(unknown);
  const span = at < 0 ? { from, to } : { from: from + at, to: from + at + unknown.length };
  const quote = statement[span.from - 1];
  if (quote === '"' || quote === "'") return { span, text: language === "sql" ? name.replace(/"/g, '""') : escaped(name) };
  const before = /^.*\./s.exec(statement.slice(span.from, span.to))?.[0] ?? "";
  if (language === "sql") return { span, text: before + sqlName(name) };
  return { span, text: /^[A-Za-z_]\w*$/.test(name) ? before + name : `${before}['${escaped(name)}']` };
}

/** A name between the quotes of KQL. */
function escaped(name: string): string {
  return name.replace(/[\\'"]/g, "\\$&");
}

function offsetOf(statement: string, line: number, column: number): number {
  const lines = statement.split("\n");
  const before = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
  // Columns count characters; offsets count UTF-16 units.
  const inLine = [...(lines[line - 1] ?? "")].slice(0, column - 1).join("").length;
  return Math.min(statement.length, before + inLine);
}

/** Texts and comments of SQL, in which no name stands. Errors of KQL say their places. */
const NO_NAMES = /'(?:[^']|'')*'|--[^\n]*|\/\*[^]*?\*\//g;

function findName(statement: string, name: string): Span | null {
  const names = statement.replace(NO_NAMES, (text) => " ".repeat(text.length));
  for (const candidate of [name, name.split(".").pop() ?? name]) {
    const escaped = candidate.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    const found = new RegExp(`(?<![\\w$])${escaped}(?![\\w$])`, "i").exec(names);
    if (found) return { from: found.index, to: found.index + candidate.length };
  }
  return null;
}
