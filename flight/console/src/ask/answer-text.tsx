// The answer's text: the little Markdown that models write, with a footnote at each number, date and name that is proven.
//
// Proofs count characters of the text as it was sent, so the text is cut by characters and never rewritten.
import { type ComponentChildren, Fragment } from "preact";
import { useRef } from "preact/hooks";

import { GrowingText, type Line } from "./growing-text";
import type { Proof } from "./run";

interface Marked {
  chars: string[];
  proofs: Proof[];
  onProof(at: number): void;
  /** Lines as they were drawn, by the first of them. */
  drawn: WeakMap<Line, Map<string, { last: Line; shown: ComponentChildren }>>;
}

export function AnswerText(props: { text: string; proofs: Proof[]; onProof(at: number): void }) {
  const { text, drawn } = useRef({ text: new GrowingText(), drawn: new WeakMap() }).current;
  text.become(props.text);
  return <div class="answer-text">{blocks({ chars: text.chars, proofs: props.proofs, onProof: props.onProof, drawn }, text.lines)}</div>;
}

/** Draws lines, unless the same ones were drawn so before: a text grows word by word, and its proofs come when it is whole. */
function piece(marked: Marked, kind: string, lines: Line[], draw: () => ComponentChildren): ComponentChildren {
  if (marked.proofs.length > 0) return draw();
  const [first, last] = [lines[0]!, lines.at(-1)!];
  const kinds = marked.drawn.get(first) ?? new Map<string, { last: Line; shown: ComponentChildren }>();
  const known = kinds.get(kind);
  const shown = known?.last === last ? known.shown : draw();
  marked.drawn.set(first, kinds.set(kind, { last, shown }));
  return shown;
}

/** So many items or rows are passed over at once where none of them changed. */
const CHUNK = 50;

/** Draws groups of lines, such as items of a list. */
function pieces(marked: Marked, kind: string, groups: Line[][], draw: (lines: Line[]) => ComponentChildren): ComponentChildren[] {
  const shown: ComponentChildren[] = [];
  for (let from = 0; from < groups.length; from += CHUNK) {
    const chunk = groups.slice(from, from + CHUNK);
    const drawChunk = () => <Fragment>{chunk.map((lines) => piece(marked, kind, lines, () => draw(lines)))}</Fragment>;
    shown.push(piece(marked, `${kind}s`, [chunk[0]![0]!, chunk.at(-1)!.at(-1)!], drawChunk));
  }
  return shown;
}

/** Paragraphs, lists, tables and so on. */
function blocks(marked: Marked, lines: Line[]): ComponentChildren[] {
  const shown: ComponentChildren[] = [];
  for (let at = 0; at < lines.length; ) {
    const from = at;
    const line = lines[at]!;
    const take = (is: (line: Line) => boolean) => {
      const first = at;
      while (at < lines.length && is(lines[at]!)) at++;
      return lines.slice(first, at);
    };
    const add = (draw: () => ComponentChildren) => shown.push(piece(marked, "block", lines.slice(from, at), draw));
    if (line.text.trim() === "") {
      at++;
    } else if (FENCE.test(line.text)) {
      const fence = FENCE.exec(line.text)![1]!;
      at++;
      const inside = take((next) => !next.text.trimStart().startsWith(fence));
      at++;
      // Code of an item of a list stands as far in as the item's text.
      const indent = new RegExp(`^\\s{0,${indentOf(line)}}`);
      add(() => <pre class="code">{inside.map((next) => next.text.replace(indent, "")).join("\n")}</pre>);
    } else if (isTableLine(line)) {
      shown.push(tableOf(marked, take(isTableLine)));
    } else if (RULE.test(line.text)) {
      at++;
      add(() => <hr />);
    } else if (LIST.test(line.text)) {
      shown.push(listOf(marked, take((next) => LIST.test(next.text) && !RULE.test(next.text))));
    } else if (QUOTE.test(line.text)) {
      const quoted = take((next) => QUOTE.test(next.text));
      add(() => (
        <blockquote>{quoted.map((next) => <p>{inline(marked, next.from + QUOTE.exec(next.text)![0].length, next.to)}</p>)}</blockquote>
      ));
    } else if (/^#{1,6} /.test(line.text)) {
      at++;
      add(() => <p><strong>{inline(marked, line.from + line.text.indexOf(" ") + 1, line.to)}</strong></p>);
    } else {
      const paragraph = take((next) => next.text.trim() !== "" && !isOther(next));
      add(() => <p>{inline(marked, paragraph[0]!.from, paragraph.at(-1)!.to)}</p>);
    }
  }
  return shown;
}

const LIST = /^\s*([-*+•]|\d+[.)])\s+/;
const RULE = /^\s*([-*_])(\s*\1){2,}\s*$/;
const QUOTE = /^\s*>\s?/;
const FENCE = /^\s*(```|~~~)[^`]*$/;

/** Whether a line ends the paragraph before it. */
function isOther(line: Line): boolean {
  return [LIST, RULE, QUOTE, FENCE].some((kind) => kind.test(line.text)) || isTableLine(line);
}

/** Items of a list; those that stand further in are a list of the item above them. */
function listOf(marked: Marked, lines: Line[]): ComponentChildren {
  const indent = indentOf(lines[0]!);
  const groups: Line[][] = [];
  for (const line of lines) {
    if (groups.length > 0 && indentOf(line) > indent) groups.at(-1)!.push(line);
    else groups.push([line]);
  }
  const items = pieces(marked, "item", groups, ([item, ...below]) => (
    <li>
      {inline(marked, item!.from + LIST.exec(item!.text)![0].length, item!.to)}
      {below.length > 0 && listOf(marked, below)}
    </li>
  ));
  const first = /^\s*(\d+)/.exec(lines[0]!.text)?.[1];
  return first === undefined ? <ul class="listed">{items}</ul> : <ol class="listed" start={Number(first)}>{items}</ol>;
}

function indentOf(line: Line): number {
  return line.text.search(/\S/);
}

function isTableLine(line: Line): boolean {
  return /^\s*\|.*\|\s*$/.test(line.text);
}

/** The line below a table's head: `|---|---:|`. */
const RULER = /^[\s|:-]+$/;

function tableOf(marked: Marked, lines: Line[]): ComponentChildren {
  const ruler = lines.find((line) => RULER.test(line.text))?.text ?? "";
  const columns = ruler.split("|").slice(1);
  const classOf = (column: number) => (/^\s*-+:\s*$/.test(columns[column] ?? "") ? "is-number" : "");
  const cellsOf = (line: Line) => {
    const bars: number[] = [];
    for (let at = line.from; at < line.to; at++) if (marked.chars[at] === "|" && marked.chars[at - 1] !== "\\") bars.push(at);
    return bars.slice(1).map((bar, at) => inline(marked, bars[at]! + 1, bar));
  };
  const [head, ...body] = lines.filter((line) => !RULER.test(line.text));
  const rows = pieces(marked, `row ${ruler}`, body.map((line) => [line]), ([line]) => (
    <tr>{cellsOf(line!).map((cell, at) => <td class={classOf(at)}>{cell}</td>)}</tr>
  ));
  return (
    <div class="table-scroll" tabIndex={0} role="group" aria-label="Table of the answer">
      <table class="facts">
        <thead><tr>{head && cellsOf(head).map((cell, at) => <th scope="col" class={classOf(at)}>{cell}</th>)}</tr></thead>
        <tbody>{rows}</tbody>
      </table>
    </div>
  );
}

/** Bold, slanted text, code and proofs between two places. */
function inline(marked: Marked, from: number, to: number, isCode = false): ComponentChildren[] {
  const shown: ComponentChildren[] = [];
  let plain = "";
  const flush = () => {
    if (plain !== "") shown.push(plain);
    plain = "";
  };
  for (let at = from; at < to; ) {
    const proof = marked.proofs.findIndex((one) => one.start === at && one.end <= to && one.end > at);
    const delimiter = isCode ? null : delimiterAt(marked.chars, at, from);
    const close = delimiter === null ? -1 : closing(marked.chars, at + delimiter.length, to, delimiter);
    if (proof >= 0) {
      flush();
      shown.push(<Proven proof={marked.proofs[proof]!} at={proof} chars={marked.chars} onProof={marked.onProof} />);
      at = marked.proofs[proof]!.end;
    } else if (delimiter !== null && close > 0) {
      flush();
      const inside = inline(marked, at + delimiter.length, close, delimiter === "`");
      shown.push(delimiter === "`" ? <code>{inside}</code> : delimiter.length === 2 ? <strong>{inside}</strong> : <em>{inside}</em>);
      at = close + delimiter.length;
    } else {
      if (isEscape(marked.chars, at, to, isCode)) at++;
      plain += marked.chars[at++];
    }
  }
  flush();
  return shown;
}

/** Whether a backslash only says that the sign behind it is meant as it is; in code that is so of the bars of tables. */
function isEscape(chars: string[], at: number, to: number, isCode: boolean): boolean {
  return chars[at] === "\\" && at + 1 < to && (isCode ? /[|]/ : /[|*_`]/).test(chars[at + 1]!);
}

/** What begins code, bold or slanted text at a place: a star or a line before a letter and after none. */
function delimiterAt(chars: string[], at: number, from: number): string | null {
  const [char, next] = [chars[at], chars[at + 1]];
  if (char === "`") return "`";
  if (char === "*" && next === "*") return "**";
  if ((char !== "*" && char !== "_") || next === undefined || /[\s*_]/.test(next)) return null;
  return at > from && /[\p{L}\p{N}_]/u.test(chars[at - 1]!) ? null : char;
}

function closing(chars: string[], from: number, to: number, delimiter: string): number {
  const isSlanted = delimiter === "*" || delimiter === "_";
  for (let at = from; at + delimiter.length <= to; at++) {
    if (delimiter !== "`" && chars[at - 1] === "\\") continue;
    if (chars[at] !== delimiter[0] || (delimiter.length === 2 && chars[at + 1] !== delimiter[1])) continue;
    if (!isSlanted) return at;
    // `snake_case` and `2 * 3 * 4` are not slanted, and what is bold inside ends later.
    if (chars[at + 1] === delimiter) at++;
    else if (at > from && !/\s/.test(chars[at - 1]!) && !/[\p{L}\p{N}_]/u.test(at + 1 < to ? chars[at + 1]! : " ")) return at;
  }
  return -1;
}

function Proven({ proof, at, chars, onProof }: { proof: Proof; at: number; chars: string[]; onProof(at: number): void }) {
  return (
    <span class={`proof is-${proof.origin}`}>
      {chars.slice(proof.start, proof.end).join("")}
      <button class="footnote" aria-label={`Proof ${at + 1} of ${proof.text}`} title={proofText(proof)} onClick={() => onProof(at)}>
        {at + 1}
      </button>
    </span>
  );
}

/** What proves a part of the answer, in words. */
export function proofText(proof: Proof): string {
  const corrected = proof.corrected_from === undefined ? "" : `; the model had written ${proof.corrected_from}`;
  switch (proof.origin) {
    case "cell": {
      const { cell } = proof;
      const ofRun = cell?.run_id === undefined ? "" : `run ${cell.run_id}, `;
      return cell
        ? `${ofRun}call ${cell.call_index + 1}, row ${cell.row + 1}, column ${cell.column}: ${String(proof.value)}${corrected}`
        : `a cell${corrected}`;
    }
    case "expression":
      return `computed${proof.expression === undefined ? "" : `: ${proof.expression}`}${proof.value === undefined ? "" : ` = ${String(proof.value)}`}${corrected}`;
    case "row_count":
      return `the number of rows of a result${corrected}`;
    case "question":
      return "the question says it";
    case "query":
      return "the query says it";
    case "conversation":
      return "it was said or returned earlier in the conversation";
    case "unproven":
      return "not proven by any row: do not trust it";
  }
}
