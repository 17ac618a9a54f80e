// KQL in the editor: colours, and completion from the catalog and what stands before the cursor.
import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import { StreamLanguage } from "@codemirror/language";

import type { CatalogNames } from "../catalog-names";
import { FUNCTIONS } from "./kql-names";

const OPERATORS = `
  as consume count distinct evaluate extend facet fork getschema graph-match graph-shortest-paths invoke join limit
  lookup make-graph make-series mv-apply mv-expand order parse parse-kv parse-where partition print project
  project-away project-keep project-rename project-reorder project-smart reduce render sample sample-distinct scan
  search serialize sort summarize take top top-hitters top-nested union where
`.trim().split(/\s+/);

const WORDS = `
  and asc between by contains contains_cs desc endswith endswith_cs from has has_all has_any has_cs in kind let
  matches nulls of on or regex set startswith startswith_cs step to with true false null inner innerunique leftouter
  rightouter fullouter leftsemi rightsemi leftanti rightanti datatable externaldata range materialize first last
`.trim().split(/\s+/);

const TYPES = "bool datetime date decimal double dynamic guid int long real string timespan time".split(" ");

const keywords = new Set([...OPERATORS, ...WORDS]);
const functions = new Set(FUNCTIONS);

export const kqlLanguage = StreamLanguage.define<{ isVerbatim: boolean }>({
  name: "kql",
  startState: () => ({ isVerbatim: false }),
  token(stream) {
    if (stream.eatSpace()) return null;
    if (stream.match("//")) return stream.skipToEnd(), "comment";
    if (stream.match(/^[hH]?@?"(?:[^"\\]|\\.)*"?/) || stream.match(/^[hH]?@?'(?:[^'\\]|\\.)*'?/)) return "string";
    if (stream.match(/^\d+(\.\d+)?([eE][+-]?\d+)?(ms|d|h|m|s|microsecond|tick)?\b/)) return "number";
    if (stream.match(/^[A-Za-z_][\w]*(-[a-z]+)*/)) {
      const word = stream.current();
      const plain = word.split("-")[0]!;
      if (keywords.has(word)) return "keyword";
      if (plain !== word) stream.backUp(word.length - plain.length);
      if (keywords.has(plain)) return "keyword";
      if (TYPES.includes(plain)) return "typeName";
      return functions.has(plain) && stream.peek() === "(" ? "function" : "variableName";
    }
    stream.next();
    return "operator";
  },
  languageData: { commentTokens: { line: "//" }, closeBrackets: { brackets: ["(", "[", "{", '"', "'"] } },
});

/** What may stand at the cursor: operators after a pipe, else columns of the tables named before it, and functions. */
export function completeKql(names: () => CatalogNames) {
  return (context: CompletionContext): CompletionResult | null => {
    const word = context.matchBefore(/[\w-]+/);
    if (!word && !context.explicit) return null;
    const from = word?.from ?? context.pos;
    const before = context.state.sliceDoc(0, from);
    if (/\|\s*$/.test(before)) return { from, options: options(OPERATORS, "keyword"), validFor: /^[\w-]*$/ };
    const { tables } = names();
    const named = tables.filter((table) => new RegExp(`\\b${escape(table.name)}\\b`, "i").test(context.state.doc.toString()));
    const tableOptions = tables.map((table): Completion => ({
      label: plainName(table.name),
      type: "class",
      detail: table.database,
      boost: 1,
    }));
    if (/(^|;|\(|\bunion\b[^|]*|\bin\s*\()\s*$/.test(before)) {
      return { from, options: [...tableOptions, ...options(WORDS, "keyword")], validFor: /^\w*$/ };
    }
    const columns = named.flatMap((table) =>
      table.columns.map((column): Completion => ({ label: plainName(column.name), type: "property", detail: column.type, boost: 2 })),
    );
    return {
      from,
      options: [...columns, ...tableOptions, ...calls(FUNCTIONS), ...options(WORDS, "keyword"), ...options(TYPES, "type")],
      validFor: /^\w*$/,
    };
  };
}

function options(labels: string[], type: string): Completion[] {
  return labels.map((label) => ({ label, type }));
}

function calls(labels: string[]): Completion[] {
  return labels.map((label) => ({ label, type: "function", apply: `${label}(` }));
}

function plainName(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name) ? name : `['${name.replace(/'/g, "\\'")}']`;
}

function escape(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
