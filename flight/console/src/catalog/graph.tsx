// Tables that join, as a graph: those within two steps of one table. The layout is computed before it is drawn, from fixed
// places on a circle, so that the same catalog always looks the same and nothing moves.
import { address } from "../router";
import type { Relationship, TableEnd } from "./relationships";

export interface GraphProps {
  center: TableEnd;
  relationships: Relationship[];
}

interface Node {
  end: TableEnd;
  x: number;
  y: number;
}

const WIDTH = 760;
const HEIGHT = 440;
const MOST_NODES = 60;
const STEPS = 400;
/** How long an edge wants to be. */
const LENGTH = 130;
const NODE_HEIGHT = 30;

export function RelationsGraph({ center, relationships }: GraphProps) {
  const { nodes, edges, isCut } = neighbourhood(center, relationships);
  layOut(nodes, edges);
  const of = new Map(nodes.map((node) => [keyOf(node.end), node]));
  return (
    <figure class="relations">
      <div class="table-scroll framed" tabIndex={0} role="group" aria-label="Graph of relationships">
        <svg width={WIDTH} height={HEIGHT} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="group" aria-label={`${nodes.length} tables and ${edges.length} relationships`}>
          <defs>
            <marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">
              <path d="M0 0 L8 4 L0 8 z" />
            </marker>
          </defs>
          {edges.map((edge) => {
            const [from, to] = [of.get(keyOf(edge.from))!, of.get(keyOf(edge.to))!];
            const [start, end] = [borderOf(from, to), borderOf(to, from)];
            return (
              <g class="relation">
                <title>{edge.from.table} ({edge.from_columns.join(", ")}) refers to {edge.to.table} ({edge.to_columns.join(", ")})</title>
                <line x1={start.x} y1={start.y} x2={end.x} y2={end.y} marker-end="url(#arrow)" />
                <text x={(start.x + end.x) / 2} y={(start.y + end.y) / 2 - 4} text-anchor="middle">{edge.from_columns.join(", ")}</text>
              </g>
            );
          })}
          {nodes.map((node) => {
            const isCenter = keyOf(node.end) === keyOf(center);
            const width = widthOf(node.end);
            return (
              <a href={address("catalog", [node.end.database, node.end.table])} aria-label={`Table ${node.end.database}.${node.end.table}`} aria-current={isCenter ? "page" : undefined}>
                <rect x={node.x - width / 2} y={node.y - NODE_HEIGHT / 2} width={width} height={NODE_HEIGHT} rx={8} />
                <text x={node.x} y={node.y + 4} text-anchor="middle">{shortened(node.end.table)}</text>
              </a>
            );
          })}
        </svg>
      </div>
      <figcaption class="soft">
        An arrow goes from the columns that refer to the table that they refer to.
        {isCut && ` Only ${MOST_NODES} tables are shown.`}
      </figcaption>
    </figure>
  );
}

/** The tables within two steps of one, and the relationships between them. */
function neighbourhood(center: TableEnd, relationships: Relationship[]) {
  const ends = new Map([[keyOf(center), center]]);
  let isCut = false;
  for (let step = 0; step < 2; step++) {
    const known = new Set(ends.keys());
    for (const { from, to } of relationships) {
      for (const [here, there] of [[from, to], [to, from]] as const) {
        if (!known.has(keyOf(here)) || ends.has(keyOf(there))) continue;
        if (ends.size >= MOST_NODES) isCut = true;
        else ends.set(keyOf(there), there);
      }
    }
  }
  const edges = relationships.filter(({ from, to }) => ends.has(keyOf(from)) && ends.has(keyOf(to)) && keyOf(from) !== keyOf(to));
  const nodes = [...ends.values()].map((end, at): Node => {
    const angle = (2 * Math.PI * at) / ends.size;
    const radius = at === 0 ? 0 : LENGTH * (1 + (at % 3) / 3);
    return { end, x: WIDTH / 2 + radius * Math.cos(angle), y: HEIGHT / 2 + radius * Math.sin(angle) };
  });
  return { nodes, edges, isCut };
}

/** Tables push each other away and relationships pull them together, less and less. The first table stays in the middle. */
function layOut(nodes: Node[], edges: Relationship[]): void {
  const at = new Map(nodes.map((node, index) => [keyOf(node.end), index]));
  for (let step = 0; step < STEPS; step++) {
    const heat = 12 * (1 - step / STEPS);
    const force = nodes.map(() => ({ x: 0, y: 0 }));
    const push = (one: number, other: number, strength: (distance: number) => number) => {
      const [a, b] = [nodes[one]!, nodes[other]!];
      // Labels are wide: being beside each other needs more room than being above each other.
      const [dx, dy] = [(a.x - b.x) / 1.6 || 0.1 * (one - other), a.y - b.y];
      const distance = Math.max(1, Math.hypot(dx, dy));
      const by = strength(distance);
      for (const [index, sign] of [[one, 1], [other, -1]] as const) {
        force[index]!.x += (sign * by * dx) / distance;
        force[index]!.y += (sign * by * dy) / distance;
      }
    };
    for (let one = 0; one < nodes.length; one++) {
      for (let other = 0; other < one; other++) push(one, other, (distance) => LENGTH ** 2 / distance / 8);
    }
    for (const { from, to } of edges) push(at.get(keyOf(from))!, at.get(keyOf(to))!, (distance) => -(distance ** 2) / LENGTH / 4);
    nodes.forEach((node, index) => {
      if (index === 0) return;
      const { x, y } = force[index]!;
      const size = Math.max(1, Math.hypot(x, y));
      const room = widthOf(node.end) / 2 + 4;
      node.x = clamp(node.x + (x / size) * Math.min(size, heat), room, WIDTH - room);
      node.y = clamp(node.y + (y / size) * Math.min(size, heat), NODE_HEIGHT, HEIGHT - NODE_HEIGHT);
    });
  }
}

/** Where the line from the middle of one box to another leaves it. */
function borderOf(node: Node, towards: Node): { x: number; y: number } {
  const [dx, dy] = [towards.x - node.x, towards.y - node.y];
  const scale = Math.min(widthOf(node.end) / 2 / Math.max(0.01, Math.abs(dx)), NODE_HEIGHT / 2 / Math.max(0.01, Math.abs(dy)), 1);
  return { x: node.x + dx * scale, y: node.y + dy * scale };
}

function widthOf(end: TableEnd): number {
  return 24 + 7.2 * shortened(end.table).length;
}

function shortened(name: string): string {
  return name.length > 24 ? `${name.slice(0, 23)}…` : name;
}

function keyOf(end: TableEnd): string {
  return JSON.stringify([end.database, end.table]);
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
