// The answer's text: the little Markdown that models write, with a footnote at each number, date and name that is proven.
//
// Proofs count characters of the text as it was sent, so the text is cut by characters and never rewritten.
import type { ComponentChildren } from "preact";

import type { Proof } from "./run";

interface Marked {
  chars: string[];
  proofs: Proof[];
  onProof(at: number): void;
}

export function AnswerText(props: { text: string; proofs: Proof[]; onProof(at: number): void }) {
  const marked: Marked = { chars: [...props.text], proofs: props.proofs, onProof: props.onProof };
  return <div class="answer-text">{blocks(marked)}</div>;
}

interface Line {
  from: number;
  to: number;
  text: string;
}

function blocks(marked: Marked): ComponentChildren[] {
  const lines = linesOf(marked.chars);
  const shown: ComponentChildren[] = [];
  for (let at = 0; at < lines.length; ) {
    const line = lines[at]!;
    const take = (is: (line: Line) => boolean) => {
      const from = at;
      while (at < lines.length && is(lines[at]!)) at++;
      return lines.slice(from, at);
    };
    if (line.text.trim() === "") {
      at++;
    } else if (line.text.startsWith("```")) {
      at++;
      const inside = take((next) => !next.text.startsWith("```"));
      at++;
      shown.push(<pre class="code">{inside.map((next) => next.text).join("\n")}</pre>);
    } else if (isTableLine(line)) {
      shown.push(tableOf(marked, take(isTableLine)));
    } else if (LIST.test(line.text)) {
      const items = take((next) => LIST.test(next.text)).map((item) => (
        <li>{inline(marked, item.from + LIST.exec(item.text)![0].length, item.to)}</li>
      ));
      shown.push(/^\s*\d/.test(line.text) ? <ol class="listed">{items}</ol> : <ul class="listed">{items}</ul>);
    } else if (/^#{1,6} /.test(line.text)) {
      at++;
      shown.push(<p><strong>{inline(marked, line.from + line.text.indexOf(" ") + 1, line.to)}</strong></p>);
    } else {
      const paragraph = take((next) => next.text.trim() !== "" && !LIST.test(next.text) && !next.text.startsWith("```") && !isTableLine(next));
      shown.push(<p>{inline(marked, paragraph[0]!.from, paragraph.at(-1)!.to)}</p>);
    }
  }
  return shown;
}

const LIST = /^\s*([-*•]|\d+[.)])\s+/;

function linesOf(chars: string[]): Line[] {
  const lines: Line[] = [];
  let from = 0;
  for (let at = 0; at <= chars.length; at++) {
    if (at < chars.length && chars[at] !== "\n") continue;
    lines.push({ from, to: at, text: chars.slice(from, at).join("") });
    from = at + 1;
  }
  return lines;
}

function isTableLine(line: Line): boolean {
  return /^\s*\|.*\|\s*$/.test(line.text);
}

function tableOf(marked: Marked, lines: Line[]): ComponentChildren {
  const rows = lines.filter((line) => !/^[\s|:-]+$/.test(line.text)).map((line) => {
    const bars: number[] = [];
    for (let at = line.from; at < line.to; at++) if (marked.chars[at] === "|") bars.push(at);
    return bars.slice(1).map((bar, at) => inline(marked, bars[at]! + 1, bar));
  });
  const [head, ...body] = rows;
  return (
    <div class="table-scroll" tabIndex={0} role="region" aria-label="Table of the answer">
      <table class="facts">
        <thead><tr>{head?.map((cell) => <th scope="col">{cell}</th>)}</tr></thead>
        <tbody>{body.map((row) => <tr>{row.map((cell) => <td>{cell}</td>)}</tr>)}</tbody>
      </table>
    </div>
  );
}

/** Bold, code and proofs between two places. */
function inline(marked: Marked, from: number, to: number): ComponentChildren[] {
  const shown: ComponentChildren[] = [];
  let plain = "";
  const flush = () => {
    if (plain !== "") shown.push(plain);
    plain = "";
  };
  for (let at = from; at < to; ) {
    const proof = marked.proofs.findIndex((one) => one.start === at && one.end <= to && one.end > at);
    const delimiter = marked.chars[at] === "`" ? "`" : marked.chars[at] === "*" && marked.chars[at + 1] === "*" ? "**" : null;
    const close = delimiter === null ? -1 : closing(marked.chars, at + delimiter.length, to, delimiter);
    if (proof >= 0) {
      flush();
      shown.push(<Proven proof={marked.proofs[proof]!} at={proof} chars={marked.chars} onProof={marked.onProof} />);
      at = marked.proofs[proof]!.end;
    } else if (delimiter !== null && close > 0) {
      flush();
      const inside = inline(marked, at + delimiter.length, close);
      shown.push(delimiter === "`" ? <code>{inside}</code> : <strong>{inside}</strong>);
      at = close + delimiter.length;
    } else {
      plain += marked.chars[at++];
    }
  }
  flush();
  return shown;
}

function closing(chars: string[], from: number, to: number, delimiter: string): number {
  for (let at = from; at + delimiter.length <= to; at++) {
    if (chars.slice(at, at + delimiter.length).join("") === delimiter) return at;
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
