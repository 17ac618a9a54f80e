// A chart of rows: which columns it shows is chosen by their types or by KQL's `render`, and by the person.
import { useMemo, useState } from "preact/hooks";

import { Chart } from "./chart";
import {
  ARRANGEMENTS, type Arrangement, type ChartChoice, KINDS, MOST_ROWS, chartRows, choiceOf, isCard, isChart, isColoured, isDrawn, isShared, specOf,
} from "./chart-choice";
import type { Rows } from "./grid/rows";
import { laidOut } from "./grid/series-rows";
import type { Rendered } from "./kql-render";
import { Switch } from "./parts";

/** All columns of numbers at once. */
const ALL = -1;

export function RowsChart(props: { rows: Rows; rendered: Rendered | null }) {
  return isCard(props.rendered) && props.rows.count > 0 ? <Card rows={props.rows} /> : <Drawn {...props} />;
}

/** The values of the first row. */
function Card({ rows }: { rows: Rows }) {
  return (
    <dl class="numbers">
      {rows.columns.map(({ name }, at) => <div><dt>{name}</dt><dd>{rows.text(0, at) ?? "null"}</dd></div>)}
    </dl>
  );
}

function Drawn({ rows: given, rendered }: { rows: Rows; rendered: Rendered | null }) {
  const { rows, axis } = useMemo(() => (isChart(rendered) ? laidOut(given) : { rows: given, axis: null }), [given]);
  const fitting = useMemo(() => (rows.count === 0 ? null : choiceOf(rows, rendered, axis)), [rows]);
  const [changed, change] = useState<Partial<ChartChoice>>({});
  const choice = useMemo(() => fitting && { ...fitting, ...changed }, [fitting, changed]);
  const drawn = useMemo(() => {
    if (!choice) return null;
    const isSummed = choice.arrangement !== "each" && ["bar", "area", "arc"].includes(choice.kind) && isShared(rows, choice);
    return { spec: specOf(rows.columns, choice), isSummed, ...chartRows(rows, choice) };
  }, [rows, choice]);
  if (!choice || !drawn) return <p class="empty">A chart needs rows with a column of numbers and another column.</p>;
  const columns = rows.columns.map((column, at) => ({ name: column.name, at, column })).filter(({ column }) => isDrawn(column));
  const numbers = columns.filter(({ column, at }) => column.isNumeric && at !== choice.x);
  const set = (fields: Partial<ChartChoice>) => change({ ...changed, ...fields });
  const unknown = rendered === null || isChart(rendered) || rendered.chart === "table" ? null : rendered.chart;
  const isPie = choice.kind === "arc";
  const several = numbers.length > 1 && !isPie ? [{ name: `all ${numbers.length}`, at: ALL }] : [];
  return (
    <>
      <div class="row chart-choice">
        <Switch label="Kind of chart" value={choice.kind} options={KINDS}
          onChange={(kind) => set({ kind, ...(kind === "arc" ? { y: choice.y.slice(0, 1), color: null } : {}) })} />
        <Part label={isPie ? "Pieces" : "Across"} value={choice.x} columns={columns} onChange={(x) => set({ x: x ?? choice.x })} />
        <Part label={isPie ? "Sizes" : "Up"} value={choice.y.length > 1 ? ALL : choice.y[0]!} columns={[...numbers, ...several]}
          onChange={(y) => set({ y: y === ALL ? numbers.map(({ at }) => at) : [y ?? choice.y[0]!] })} />
        {!isPie && (
          <Part label="Colours" value={choice.color} columns={columns} isOptional onChange={(color) => set({ color })} />
        )}
        {isColoured(choice) && (choice.kind === "bar" || choice.kind === "area") && (
          <label class="field">
            <span>Series</span>
            <select aria-label="Series" value={choice.arrangement}
              onChange={(event) => set({ arrangement: event.currentTarget.value as Arrangement })}>
              {ARRANGEMENTS.map(({ value, label }) => <option value={value}>{label}</option>)}
            </select>
          </label>
        )}
      </div>
      {unknown !== null && (
        <p class="note"><code>render {unknown}</code> is not drawn here: this is what fits the columns.</p>
      )}
      <Chart spec={drawn.spec} rows={drawn.shown} />
      {drawn.isSummed && <p class="note">Several rows stand at one place: they are stacked on each other.</p>}
      {drawn.isCut && <p class="note">The chart has the first {Math.min(MOST_ROWS, drawn.shown.length).toLocaleString("en-US")} rows: aggregate or filter to see all.</p>}
    </>
  );
}

interface PartProps {
  label: string;
  value: number | null;
  columns: { name: string; at: number }[];
  isOptional?: boolean;
  onChange(value: number | null): void;
}

function Part({ label, value, columns, isOptional, onChange }: PartProps) {
  return (
    <label class="field">
      <span>{label}</span>
      <select aria-label={label} value={value === null ? "" : String(value)}
        onChange={(event) => onChange(event.currentTarget.value === "" ? null : Number(event.currentTarget.value))}>
        {isOptional && <option value="">none</option>}
        {columns.map(({ name, at }) => <option value={String(at)}>{name}</option>)}
      </select>
    </label>
  );
}
