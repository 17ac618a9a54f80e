// KQL in the editor: its colours.
import { StreamLanguage } from "@codemirror/language";

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
