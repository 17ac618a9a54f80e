// A query's plan as a tree. The server sends lines whose indentation is the depth.
import { useState } from "preact/hooks";

export interface PlanNode {
  name: string;
  detail: string;
  rows: string | null;
  time: string | null;
  nanoseconds: number;
  metrics: string | null;
  children: PlanNode[];
}

export interface PlanPart {
  title: string;
  nodes: PlanNode[];
}

/** Reads one plan's lines. */
export function readPlan(title: string, text: string): PlanPart {
  const roots: PlanNode[] = [];
  const open: { depth: number; node: PlanNode }[] = [];
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    const depth = line.search(/\S/);
    const node = readNode(line.trim());
    while (open.length > 0 && open.at(-1)!.depth >= depth) open.pop();
    (open.at(-1)?.node.children ?? roots).push(node);
    open.push({ depth, node });
  }
  return { title, nodes: roots };
}

function readNode(line: string): PlanNode {
  const metrics = /,? metrics=\[(.*)\]$/.exec(line);
  const said = metrics ? line.slice(0, metrics.index) : line;
  const [, name = said, detail = ""] = /^([\w ]+?):\s*(.*)$/s.exec(said) ?? [];
  const time = /elapsed_compute=([\d.]+)(ns|µs|ms|s)/.exec(metrics?.[1] ?? "");
  const units: Record<string, number> = { ns: 1, µs: 1e3, ms: 1e6, s: 1e9 };
  return {
    name,
    detail,
    rows: /output_rows=([\d.]+ ?[KMB]?)/.exec(metrics?.[1] ?? "")?.[1] ?? null,
    time: time ? `${time[1]} ${time[2]}` : null,
    nanoseconds: time ? Number(time[1]) * units[time[2]!]! : 0,
    metrics: metrics?.[1] ?? null,
    children: [],
  };
}

export function PlanTree({ part }: { part: PlanPart }) {
  const slowest = Math.max(1, ...part.nodes.flatMap(timesOf));
  return (
    <section class="plan">
      <h2>{part.title.replace(/_/g, " ")}</h2>
      <ul>{part.nodes.map((node) => <PlanItem node={node} slowest={slowest} />)}</ul>
    </section>
  );
}

function timesOf(node: PlanNode): number[] {
  return [node.nanoseconds, ...node.children.flatMap(timesOf)];
}

function PlanItem({ node, slowest }: { node: PlanNode; slowest: number }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <li>
      <div class="plan-node">
        <strong>{node.name}</strong>
        {node.time && (
          <span class="plan-time">
            <meter min={0} max={slowest} value={node.nanoseconds} aria-label={`time of ${node.name}`} />
            {node.time}
          </span>
        )}
        {node.rows && <span class="plan-rows">{node.rows} rows</span>}
        {node.metrics && (
          <button class="link" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>all numbers</button>
        )}
        {node.detail && <code>{node.detail}</code>}
        {isOpen && <code class="plan-metrics">{node.metrics}</code>}
      </div>
      {node.children.length > 0 && (
        <ul>{node.children.map((child) => <PlanItem node={child} slowest={slowest} />)}</ul>
      )}
    </li>
  );
}
