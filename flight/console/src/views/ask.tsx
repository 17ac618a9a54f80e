// Ask: a question in plain words, the run that answers it as it happens, and past runs.
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { AnswerText, proofText } from "../ask/answer-text";
import { Approvals } from "../ask/approval";
import {
  ask, askFailure, cancel, newConversation, openRun, pastRuns, readPastRuns, thread, withThinking,
} from "../ask/asking";
import type { AskRun, Confidence, Proof } from "../ask/run";
import { type MarkedCell, ToolCall } from "../ask/tool-call";
import { catalogNames } from "../catalog-names";
import { Cell, useCell } from "../cell";
import { DatabaseField } from "../database-field";
import { duration, time } from "../format";
import { FailureBox, copy } from "../parts";
import { address, route } from "../router";

export function AskView() {
  const { parts, params } = useCell(route);
  const runs = useCell(thread);
  const failure = useCell(askFailure);
  const wanted = parts[0] === "run" ? parts[1] : undefined;
  const isReplayed = params.has("replay");
  const place = useRef<HTMLDivElement>(null);
  const lastSeen = useRef<{ box: HTMLElement | null; top: number; height: number }>({ box: null, top: 0, height: 0 });
  const isFollowing = useRef(true);
  useEffect(() => {
    if (wanted !== undefined && (isReplayed || !thread.value.some((run) => run.id === wanted))) void openRun(wanted, isReplayed);
  }, [wanted, isReplayed]);
  useEffect(() => {
    readPastRuns().catch(() => undefined);
  }, []);
  const last = runs.at(-1);
  useLayoutEffect(() => {
    isFollowing.current = true;
  }, [runs.length]);
  // What streams is followed to its end, until the person scrolls up.
  useLayoutEffect(() => {
    if (last?.outcome === "running" && isFollowing.current && place.current) showEnd(place.current);
  }, [last]);
  const scrolled = ({ currentTarget: box }: { currentTarget: HTMLElement }) => {
    const before = lastSeen.current;
    lastSeen.current = { box, top: box.scrollTop, height: box.scrollHeight };
    // What has become less high scrolls up by itself.
    const isScrolledUp = before.box === box && box.scrollTop < before.top && box.scrollHeight >= before.height;
    if (box.scrollHeight - box.scrollTop - box.clientHeight < NEAR_END) isFollowing.current = true;
    else if (isScrolledUp) isFollowing.current = false;
  };

  return (
    <div class="view ask-view">
      <h1 class="off-screen">Ask</h1>
      <div class="ask-main" onScroll={scrolled}>
        <div class="scroll ask-thread" ref={place} onScroll={scrolled}>
          {runs.length === 0 && !failure && <Welcome />}
          {runs.map((run, at) => (
            <Run run={run} isContinued={run.continues !== null && runs[at - 1]?.id === run.continues} key={run.id ?? run.question} />
          ))}
          {failure && <FailureBox failure={failure} />}
        </div>
        <Composer isRunning={last?.outcome === "running"} isFollowing={runs.length > 0} />
      </div>
      <PastRuns current={last?.id ?? null} />
    </div>
  );
}

/** Pixels above the end of a conversation from which it is followed. */
const NEAR_END = 40;

/** Pixels of what stands below the words of an answer that are shown with them. */
const BELOW = 24;

/** Scrolls down to the end of the last run's answer, whose proofs stand below it; where it has none yet, to the end. */
function showEnd(thread: HTMLElement): void {
  // Where there is little height, what is around it scrolls.
  const box = thread.scrollHeight > thread.clientHeight ? thread : thread.parentElement!;
  const text = [...box.querySelectorAll(".run")].at(-1)?.querySelector(".answer-text");
  const end = text ? text.getBoundingClientRect().bottom - box.getBoundingClientRect().top + box.scrollTop + BELOW : Infinity;
  box.scrollTop = Math.max(box.scrollTop, Math.min(box.scrollHeight, end) - box.clientHeight);
}

function Welcome() {
  const { tables, isRead } = useCell(catalogNames);
  return (
    <div class="welcome">
      <h2>Ask your data</h2>
      <p class="soft">
        A language model writes the queries; every number of the answer is linked to the cell that proves it.
      </p>
      {tables.length === 0
        ? isRead && <p>There are no tables yet. <a href={address("import")}>Bring data in</a> first.</p>
        : (
          <ul class="examples">
            {tables.slice(0, 4).map((table) => {
              const question = `How many rows does ${table.name} have?`;
              return <li><button onClick={() => void ask(question)}>{question}</button></li>;
            })}
          </ul>
        )}
    </div>
  );
}

/** What is written and not yet asked; it stays where another view is looked at meanwhile. */
const draft = new Cell<string>("");

function Composer({ isRunning, isFollowing }: { isRunning: boolean; isFollowing: boolean }) {
  const text = useCell(draft);
  const thinks = useCell(withThinking);
  const box = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    if (matchMedia("(min-width: 700px)").matches) box.current?.focus();
  }, []);
  const send = () => {
    if (text.trim() === "" || isRunning) return;
    const question = text.trim();
    draft.set("");
    void ask(question).then((isAsked) => {
      // A question that did not arrive is there to be sent again.
      if (!isAsked && draft.value === "") draft.set(question);
    });
  };
  const key = (event: KeyboardEvent) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      send();
    }
  };
  return (
    <form class="composer" onSubmit={(event) => { event.preventDefault(); send(); }}>
      <textarea
        ref={box}
        rows={2}
        aria-label="Question"
        placeholder={isFollowing ? "Ask on" : "Which carrier had the longest delays?"}
        value={text}
        onInput={(event) => draft.set(event.currentTarget.value)}
        onKeyDown={key}
      />
      <div class="row">
        <DatabaseField />
        <label class="field">
          <input type="checkbox" checked={thinks} onChange={(event) => withThinking.set(event.currentTarget.checked)} />
          thinking
        </label>
        <span class="grow" />
        {isFollowing && (
          <button type="button" aria-label="New question"
            onClick={() => { newConversation(); location.hash = address("ask"); box.current?.focus(); }}>
            New<span class="if-wide"> question</span>
          </button>
        )}
        {isRunning
          ? <button type="button" class="primary is-stop" onClick={() => void cancel()}>Cancel</button>
          : <button class="primary" disabled={text.trim() === ""}>Ask</button>}
      </div>
    </form>
  );
}

function Run({ run, isContinued }: { run: AskRun; isContinued: boolean }) {
  const [marked, mark] = useState<MarkedCell | null>(null);
  const place = useRef<HTMLElement>(null);
  const show = (proof: Proof) => {
    // The rows of an earlier run are not shown here.
    const call = proof.cell?.run_id === undefined ? proof.cell?.call_index : undefined;
    if (proof.cell && call !== undefined) mark({ call: proof.cell.call_index, row: proof.cell.row, column: proof.cell.column });
    if (call === undefined) return;
    requestAnimationFrame(() => {
      const found = place.current?.querySelector(`#call-${call} .is-marked`) ?? place.current?.querySelector(`#call-${call}`);
      found?.scrollIntoView({ block: "center", behavior: "smooth" });
    });
  };
  const proofs = run.answer?.proof ?? [];
  return (
    <article class="run" ref={place} data-outcome={run.outcome}>
      <h2 class={isContinued ? "soft" : "question"}>{isContinued ? "After the decision" : run.question}</h2>
      {run.steps.map((step, at) => {
        if (step.kind === "tool") return <ToolCall key={step.index} step={step} marked={marked} />;
        if (step.kind === "approval") return null;
        if (step.kind === "text") return <AnswerText text={step.text} proofs={[]} onProof={() => undefined} />;
        const isOpen = run.outcome === "running" && at === run.steps.length - 1;
        return (
          <details class="thinking" open={isOpen}>
            <summary>Thinking</summary>
            <pre>{step.text}</pre>
          </details>
        );
      })}
      <Approvals run={run} />
      {run.outcome === "running" && <p class="working" role="status">Working…</p>}
      {run.answer && (
        <section class="answer" role="group" aria-label="Answer">
          <AnswerText text={run.answer.text} proofs={proofs} onProof={(at) => show(proofs[at]!)} />
          {proofs.length > 0 && (
            <ol class="footnotes">
              {proofs.map((proof) => (
                <li class={`is-${proof.origin}`}>
                  <button class="link" onClick={() => show(proof)}>{proof.text}</button>: {proofText(proof)}
                </li>
              ))}
            </ol>
          )}
          {run.answer.confidence && <ConfidenceLine confidence={run.answer.confidence} />}
        </section>
      )}
      {run.error && (
        <div class="failure" role="alert">
          <code class="failure-code">{run.error.code}</code>
          <pre>{run.error.message}</pre>
        </div>
      )}
      {run.outcome !== "running" && <RunFoot run={run} />}
    </article>
  );
}

function ConfidenceLine({ confidence: { level, probability, reasons } }: { confidence: Confidence }) {
  return (
    <p class={`confidence is-${level}`}>
      <strong>{level}{probability !== undefined && ` (${Math.round(100 * probability)} %)`}</strong>
      {reasons.length > 0 && `: ${reasons.join("; ")}`}
    </p>
  );
}

function RunFoot({ run }: { run: AskRun }) {
  return (
    <footer class="row soft">
      <small>
        {[
          run.model,
          run.elapsedMs !== null && duration(run.elapsedMs),
          run.tokens && run.tokens.input + run.tokens.output > 0 && `${run.tokens.input.toLocaleString("en-US")} + ${run.tokens.output.toLocaleString("en-US")} tokens`,
        ].filter(Boolean).join(" · ")}
      </small>
      <span class="grow" />
      {run.outcome !== "paused" && <button class="link" onClick={() => void ask(run.question)}>Ask again</button>}
      {run.id && (
        <>
          <button class="link" onClick={() => void openRun(run.id!, true)}>Replay</button>
          <button class="link" onClick={() => void copy(`${location.origin}/${address("ask", ["run", run.id!])}`, "Link")}>Copy link</button>
        </>
      )}
    </footer>
  );
}

function PastRuns({ current }: { current: string | null }) {
  const runs = useCell(pastRuns);
  return (
    <aside class="past" aria-label="Past questions">
      <details open={matchMedia("(min-width: 1000px)").matches}>
        <summary>Past questions</summary>
        <ul>
          {runs.map((run) => (
            <li key={run.run_id}>
              <a href={address("ask", ["run", run.run_id])} aria-current={run.run_id === current ? "page" : undefined}>
                {run.question}
                <small>{time(run.started_at)}{run.status !== "success" && <span class="warning"> · {run.status === "paused" ? "waits for approval" : run.status}</span>}</small>
              </a>
            </li>
          ))}
        </ul>
        {runs.length === 0 && <p class="empty">None yet.</p>}
      </details>
    </aside>
  );
}
