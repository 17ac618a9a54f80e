// One tool call of a run: what was called, its query to edit and run again, its rows, its chart.
import { useMemo, useState } from "preact/hooks";

import { Chart } from "../chart";
import { isShown } from "../chart-choice";
import { Editor, type Language } from "../editor/editor";
import type { Part } from "../editor/sql";
import { count } from "../format";
import { type Rows, isNumericType, valueText } from "../grid/rows";
import { renderedBy } from "../kql-render";
import { RowsChart } from "../rows-chart";
import { sqlTypeName } from "../type-names";
import { openQuery } from "../views/query-tabs";
import { database } from "../preferences";
import type { Step, ToolResult } from "./run";

type ToolStep = Extract<Step, { kind: "tool" }>;

export interface MarkedCell {
  call: number;
  row: number;
  column: string;
}

const FEW_ROWS = 12;

const WORDS: Record<string, string> = {
  run_sql: "SQL", run_kql: "KQL", search_schema: "Searched the catalog", describe_table: "Looked at a table",
  list_databases: "Listed the databases", sample_rows: "Drew sample rows", explore_schema: "Explored the schema",
  find_references_to: "Looked for a value", graph_traverse: "Walked a graph", create_table_as: "Made a table",
  insert_rows: "Added rows", save_verified_query: "Kept a verified query",
};

export function ToolCall({ step, marked }: { step: ToolStep; marked: MarkedCell | null }) {
  const query = queryOf(step);
  const { result } = step;
  const rendered = useMemo(() => (query?.language === "kql" ? renderedBy(query.text) : null), [query?.text]);
  const rows = useMemo(() => rowsOf(result), [result]);
  return (
    <section class="call" id={`call-${step.index}`} data-tool={step.tool}>
      <header class="call-head">
        <span class="call-number" aria-hidden="true">{step.index + 1}</span>
        <strong>{WORDS[step.tool] ?? step.tool}</strong>
        <span class="soft">{result ? outcomeOf(result) : "running…"}</span>
      </header>
      {query ? <EditableQuery query={query} step={step} /> : <Arguments args={step.args} />}
      {result && <Remarks result={result} />}
      {result?.error && (
        <div class="failure">
          <code class="failure-code">{result.error.code}</code>
          <pre>{result.error.message}</pre>
          {result.error.hint && <p class="failure-hint">{result.error.hint}</p>}
        </div>
      )}
      {rows && rows.count > 0 && isShown(rendered)
        ? <RowsChart rows={rows} rendered={rendered} />
        : step.chart && result?.rows && <Chart spec={step.chart} rows={result.rows} />}
      {result?.rows && result.columns && <ResultTable result={result} marked={marked?.call === step.index ? marked : null} />}
      {result && !result.rows && !result.error && <details><summary>Result</summary><pre class="code">{JSON.stringify(result, null, 1)}</pre></details>}
    </section>
  );
}

function queryOf(step: ToolStep): { text: string; language: Language } | null {
  const repaired = step.result?.repaired?.ran;
  const text = repaired ?? step.args["sql"] ?? step.args["kql"] ?? (/^run_/.test(step.tool) ? step.args["query"] : null);
  const language: Language = step.tool === "run_kql" || step.args["kql"] !== undefined ? "kql" : "sql";
  return typeof text === "string" ? { text, language } : null;
}

/** The rows of a result as charts see them. */
function rowsOf(result: ToolResult | null): Rows | null {
  if (!result?.rows || !result.columns) return null;
  const { rows, columns } = result;
  return {
    columns: columns.map(({ name, type }) => ({ name, type: sqlTypeName(type), isNumeric: isNumericType(type) })),
    count: rows.length,
    text: (row, column) => valueText(rows[row]?.[columns[column]!.name]),
  };
}

function outcomeOf(result: ToolResult): string {
  if (result.error) return "failed";
  if (result.row_count === undefined) return "";
  const total = result.total_rows;
  if (total !== undefined && total > result.row_count) {
    return `${count(result.row_count, "row")} of ${result.total_rows_is_lower_bound ? "at least " : ""}${total.toLocaleString("en-US")}`;
  }
  return `${count(result.row_count, "row")}${result.truncated ? ", cut" : ""}`;
}

function EditableQuery({ query, step }: { query: { text: string; language: Language }; step: ToolStep }) {
  const [edited, setEdited] = useState<string | null>(null);
  const text = edited ?? query.text;
  const run = (selected: Part | null) => {
    if (typeof step.args["database"] === "string") database.set(step.args["database"]);
    openQuery(query.language, selected?.text ?? text, true);
  };
  return (
    <div class="call-query">
      <Editor text={text} language={query.language} label={`Query of call ${step.index + 1}`} onChange={setEdited} onRun={run} />
      <button onClick={() => run(null)}>{edited === null || edited === query.text ? "Run in Query" : "Run the edited query"}</button>
    </div>
  );
}

function Arguments({ args }: { args: Record<string, unknown> }) {
  return (
    <p class="chips">
      {Object.entries(args).map(([name, value]) => <span class="chip is-soft">{name}: {valueText(value) ?? "null"}</span>)}
    </p>
  );
}

function Remarks({ result }: { result: ToolResult }) {
  return (
    <>
      {result.repaired?.changes.map((change) => (
        <p class="remark">Repaired: <code>{change.from}</code> became <code>{change.to}</code>: {change.why}</p>
      ))}
      {result.checks?.map((check) => <p class="remark is-warning">{check.message}</p>)}
    </>
  );
}

function ResultTable({ result, marked }: { result: ToolResult; marked: MarkedCell | null }) {
  const [isWhole, setWhole] = useState(false);
  const rows = result.rows ?? [];
  const columns = result.columns ?? [];
  const most = isWhole || (marked && marked.row >= FEW_ROWS) ? rows.length : FEW_ROWS;
  return (
    <>
      <div class="table-scroll call-rows" tabIndex={0} role="group" aria-label="Rows of the call">
        <table class="facts">
          <thead><tr>{columns.map((column) => <th scope="col" title={column.type} class={classOf(column.type)}>{column.name}</th>)}</tr></thead>
          <tbody>
            {rows.slice(0, most).map((row, at) => (
              <tr>
                {columns.map(({ name, type }) => {
                  const text = valueText(row[name]);
                  const isMarked = marked?.row === at && marked.column === name;
                  return (
                    <td class={`${classOf(type)}${isLong(text) ? " is-long" : ""}${isMarked ? " is-marked" : ""}`}>
                      {text === null ? <em class="soft">null</em> : text}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > most && <button class="link" onClick={() => setWhole(true)}>All {count(rows.length, "row")}</button>}
    </>
  );
}

/** Whether a value takes several lines; a date or an identifier does not break. */
function isLong(text: string | null): boolean {
  return text !== null && (text.length > 40 || text.includes("\n"));
}

function classOf(type: string): string {
  return isNumericType(type) ? "is-number" : "";
}
