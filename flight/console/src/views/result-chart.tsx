// A chart of a query's rows: which columns it shows is chosen by their types, and by the person.
import { useMemo, useState } from "preact/hooks";

import { Chart } from "../chart";
import { type ChartChoice, KINDS, MOST_ROWS, chartRows, choiceOf, isDrawn, isShared, renderedKind, specOf } from "../chart-choice";
import { Switch } from "../parts";
import type { Result } from "../statement";

export function ResultChart({ result }: { result: Result }) {
  const { rows, statement } = result;
  const isDone = result.outcome !== "running";
  const fitting = useMemo(() => {
    if (!isDone || !rows || rows.count === 0) return null;
    return choiceOf(rows, statement.language === "kql" ? renderedKind(statement.text) : null);
  }, [rows, isDone]);
  const [changed, change] = useState<Partial<ChartChoice>>({});
  const choice = fitting && { ...fitting, ...changed };
  const drawn = useMemo(() => {
    if (!rows || !choice) return null;
    const isSummed = ["bar", "area", "arc"].includes(choice.kind) && isShared(rows, choice);
    return { spec: specOf(rows.columns, choice), isSummed, ...chartRows(rows, choice) };
  }, [rows, choice?.kind, choice?.x, choice?.y, choice?.color]);
  if (!isDone) return <p class="empty">The chart comes when all rows are there.</p>;
  if (!rows || !choice || !drawn) return <p class="empty">A chart needs rows with a column of numbers and another column.</p>;
  const columns = rows.columns.map((column, at) => ({ column, at })).filter(({ column }) => isDrawn(column));
  return (
    <div class="scroll pad">
      <div class="row chart-choice">
        <Switch label="Kind of chart" value={choice.kind} options={KINDS} onChange={(kind) => change({ ...changed, kind })} />
        <Part label={choice.kind === "arc" ? "Pieces" : "Across"} value={choice.x} columns={columns} onChange={(x) => change({ ...changed, x: x ?? choice.x })} />
        <Part label={choice.kind === "arc" ? "Sizes" : "Up"} value={choice.y} columns={columns.filter(({ column }) => column.isNumeric)} onChange={(y) => change({ ...changed, y: y ?? choice.y })} />
        {choice.kind !== "arc" && (
          <Part label="Colours" value={choice.color} columns={columns} isOptional onChange={(color) => change({ ...changed, color })} />
        )}
      </div>
      <Chart spec={drawn.spec} rows={drawn.shown} />
      {drawn.isSummed && <p class="note">Several rows stand at one place: they are stacked on each other.</p>}
      {drawn.isCut && <p class="note">The chart has the first {Math.min(MOST_ROWS, drawn.shown.length).toLocaleString("en-US")} rows: aggregate or filter to see all.</p>}
    </div>
  );
}

interface PartProps {
  label: string;
  value: number | null;
  columns: { column: { name: string }; at: number }[];
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
        {columns.map(({ column, at }) => <option value={String(at)}>{column.name}</option>)}
      </select>
    </label>
  );
}
