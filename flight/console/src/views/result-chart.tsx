// The chart of a query's rows, once all of them are there.
import { isShown } from "../chart-choice";
import { renderedBy } from "../kql-render";
import { RowsChart } from "../rows-chart";
import type { Result } from "../statement";

export function ResultChart({ result }: { result: Result }) {
  const { rows, statement } = result;
  if (result.outcome === "running") return <p class="empty">The chart comes when all rows are there.</p>;
  if (!rows) return <p class="empty">A chart needs rows with a column of numbers and another column.</p>;
  return <div class="scroll pad"><RowsChart rows={rows} rendered={renderOf(statement)} /></div>;
}

/** What KQL's `render` says. */
function renderOf({ text, language }: Result["statement"]) {
  return language === "kql" ? renderedBy(text) : null;
}

/** Whether a result is to be shown as a chart at once. */
export function isRendered({ outcome, statement }: Result): boolean {
  return outcome === "done" && isShown(renderOf(statement));
}
