// The server's SQL as the editor colours it: words that columns are often called are no keywords here.
import { SQLDialect } from "@codemirror/lang-sql";
import { ensureSyntaxTree } from "@codemirror/language";
import type { EditorState } from "@codemirror/state";

export const querentSql = SQLDialect.define({
  keywords: `
    all alter analyze and anti any as asc asof between both by cascade case cast column columns comment copy create cross
    current_date current_timestamp database databases deallocate delete desc describe distinct drop else end escape
    except exclude execute exists explain extract external false fetch filter first following format from full function
    functions group grouping having if ilike import in inner insert intersect interval into is join kill last lateral left
    like limit location materialized natural not null nulls offset on or order outer over overwrite partition pivot
    preceding prepare qualify range recursive rename replace reset returning right rollup row rows schema schemas select
    semi set sets show similar some summarize system table tables tablesample then ties to trim true truncate try_cast
    unbounded union unique unnest unpivot update using values verbose view when where window with within
  `,
  types: `
    array bigint binary boolean bytea char date decimal double float float4 float8 int int2 int4 int8 integer interval
    json map numeric precision real smallint string struct text time timestamp timestamptz tinyint ubigint uinteger
    uuid varchar
  `,
  builtin: "",
  doubleDollarQuotedStrings: true,
  operatorChars: "*+-%<>!=&|~^/?:@",
});

const KEYWORDS = new Set(querentSql.spec.keywords?.trim().split(/\s+/));

/** A name as SQL has it: in quotes, unless it is plain and certainly no word of the language. */
export function sqlName(name: string): string {
  const isPlain = /^[a-z_][a-z0-9_]*$/.test(name) && name !== "default" && !KEYWORDS.has(name);
  return isPlain ? name : `"${name.replace(/"/g, '""')}"`;
}

/** A part of a text, and where it begins. */
export interface Part {
  text: string;
  from: number;
}

/** The statement at a place of a text that has several; `null` where it has one. */
export function statementAt(state: EditorState, at: number): Part | null {
  const tree = ensureSyntaxTree(state, state.doc.length, PARSE_MS);
  const statements: { from: number; to: number }[] = [];
  for (let node = tree?.topNode.firstChild; node; node = node.nextSibling) {
    // A semicolon after another is a statement of its own to the parser.
    if (node.name === "Statement" && node.firstChild?.name !== ";") statements.push(node);
  }
  if (statements.length < 2) return null;
  // Behind a statement, on its last line, it is still meant; in a comment above one, that one is.
  const begun = statements.filter((one) => one.from <= at).at(-1);
  const isMeant = begun && (at <= begun.to || !state.sliceDoc(begun.to, at).includes("\n"));
  const { from, to } = (isMeant ? begun : statements.find((one) => one.from > at)) ?? statements.at(-1)!;
  return { text: state.sliceDoc(from, to).replace(/;\s*$/, ""), from };
}

/** How long a text may be parsed for; one that takes longer is run as a whole. */
const PARSE_MS = 50;
