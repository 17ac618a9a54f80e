// Query: tabs of SQL and KQL, their rows, errors and plans.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { QuerentError } from "querent-client";

import { asFailure } from "../api";
import { Cell, useCell } from "../cell";
import { asCurl, asPython } from "../clients";
import { DatabaseField } from "../database-field";
import { FORMATS, downloadRows } from "../download";
import { Editor, type EditorMark } from "../editor/editor";
import { fixOf, spanOf } from "../editor/error-span";
import type { Part } from "../editor/sql";
import { count, duration, time } from "../format";
import { Grid } from "../grid/grid";
import { FailureBox, Menu, Switch, copy, say, useClock } from "../parts";
import { type PlanPart, PlanTree, readPlan } from "../plan";
import { database } from "../preferences";
import { type Format, type Result, type Running, type Statement, isReading, placeOf, planStatement, reasonOfCut, run } from "../statement";
import {
  type Tab, addTab, changeTab, closeTab, currentTab, openAgain, openTab, queryHistory, runTab, runs, tabs, titleOf,
} from "./query-tabs";
import { ResultChart, isRendered } from "./result-chart";

const noRun = new Cell<Result | null>(null);

export function QueryView() {
  useCell(tabs);
  useCell(openTab);
  const tab = currentTab();
  const running = useCell(runs).get(tab.id) ?? null;
  const result = useCell<Result | null>((running?.result as Cell<Result | null> | undefined) ?? noRun);
  const [side, setSide] = useState<"rows" | "chart" | "plan" | "history">("rows");
  const mark = useMemo(() => markOf(tab, result), [result?.failure, tab.id, tab.language]);
  // What is selected, or the statement at the cursor; `null`: the whole text.
  const chosen = useRef<Part | null>(null);
  useEffect(() => {
    if (result?.outcome === "running") setSide("rows");
  }, [running]);
  // KQL's `render` asks for a chart.
  const isChart = result !== null && isRendered(result);
  useEffect(() => {
    if (isChart) setSide("chart");
  }, [running, isChart]);

  return (
    <div class="view query-view">
      <h1 class="off-screen">Query</h1>
      <Tabs current={tab} />
      <QueryBar tab={tab} chosen={chosen} running={running} result={result} />
      <Editor
        key={tab.id}
        text={tab.text}
        language={tab.language}
        label={`${tab.language.toUpperCase()} query`}
        mark={mark}
        autofocus
        onChange={(text) => changeTab(tab.id, { text })}
        onChoose={(part) => (chosen.current = part)}
        onRun={(part) => runTab(currentTab(), part)}
      />
      <div class="result">
        <div class="result-bar">
          <Switch
            label="What to show"
            value={side}
            options={[{ value: "rows", label: "Rows" }, { value: "chart", label: "Chart" }, { value: "plan", label: "Plan" }, { value: "history", label: "History" }]}
            onChange={(value) => setSide(value)}
          />
          {(side === "rows" || side === "chart") && <Status tab={tab} result={result} />}
          {side === "rows" && result && <ResultMenus result={result} />}
        </div>
        {side === "rows" && <Answer tab={tab} result={result} />}
        {side === "chart" && (result ? <ResultChart key={`${tab.id} ${result.startedAt}`} result={result} /> : <p class="empty">A chart comes of a query's rows: run one.</p>)}
        {side === "plan" && <Plan tab={tab} chosen={chosen} />}
        {side === "history" && <History />}
      </div>
    </div>
  );
}

function Tabs({ current }: { current: Tab }) {
  const all = useCell(tabs);
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    list.current?.querySelector(".is-open")?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [current.id, titleOf(current)]);
  return (
    <div class="tabs">
      <div class="tab-list" role="group" aria-label="Queries" ref={list}>
        {all.map((tab) => (
          <span class={`tab${tab.id === current.id ? " is-open" : ""}`} key={tab.id}>
            <button aria-current={tab.id === current.id ? "true" : undefined} onClick={() => openTab.set(tab.id)}>
              <small>{tab.language.toUpperCase()}</small> {titleOf(tab)}
            </button>
            <button class="tab-close" aria-label={`Close ${titleOf(tab)}`} onClick={() => closeTab(tab.id)}>×</button>
          </span>
        ))}
      </div>
      <button class="quiet" onClick={() => addTab("sql", "")}>+ SQL</button>
      <button class="quiet" onClick={() => addTab("kql", "")}>+ KQL</button>
    </div>
  );
}

/** The part of a tab's text that would run; it changes with the cursor, so it is read when a button is pressed. */
type Chosen = { readonly current: Part | null };

function QueryBar({ tab, chosen, running, result }: { tab: Tab; chosen: Chosen; running: Running | null; result: Result | null }) {
  const inDatabase = useCell(database);
  const isRunning = result?.outcome === "running";
  const statement = (): Statement => ({ text: chosen.current?.text ?? tab.text, language: tab.language, database: inDatabase });
  return (
    <div class="bar">
      {isRunning
        ? <button class="primary is-stop" onClick={() => running?.cancel()}>Cancel</button>
        : <button class="primary" onClick={() => runTab(tab, chosen.current)} title="Ctrl-Enter">Run <kbd>Ctrl ↵</kbd></button>}
      <DatabaseField />
      <Switch
        label="Language"
        value={tab.language}
        options={[{ value: "sql", label: "SQL" }, { value: "kql", label: "KQL" }]}
        onChange={(language) => changeTab(tab.id, { language })}
      />
      <span class="grow" />
      <Menu
        label="Copy as"
        items={[
          { label: "curl", act: () => void copy(asCurl(statement()), "curl command") },
          { label: tab.language === "kql" ? "Python" : "Python (ADBC)", act: () => void copy(asPython(statement()), "Python") },
          { label: "Link to this query", act: () => void copy(linkTo({ ...statement(), text: tab.text }), "Link") },
        ]}
      />
    </div>
  );
}

export function linkTo(statement: Statement): string {
  const params = new URLSearchParams({ q: statement.text, language: statement.language, database: statement.database });
  return `${location.origin}/#/query?${params}`;
}

function Status({ tab, result }: { tab: Tab; result: Result | null }) {
  useClock(result?.outcome === "running");
  if (!result) return <span class="status" role="status">Nothing has run here yet.</span>;
  const elapsed = duration(result.elapsedMs ?? Date.now() - result.startedAt);
  const rows = result.rows ? count(result.rows.count, "row") : "";
  const words = {
    running: `Running… ${rows && `${rows}, `}${elapsed}`,
    done: result.rows?.columns.length ? `${rows} in ${elapsed}` : `Done in ${elapsed}`,
    failed: `Failed after ${elapsed}`,
    cancelled: `Cancelled after ${elapsed}${result.rows?.count ? `, ${rows} came` : ""}`,
  };
  return (
    <span class="status" role="status" data-outcome={result.outcome}>
      {words[result.outcome]}
      {bare(tab.text) !== bare(result.statement.text) && tab.text.includes(result.statement.text) && (
        <span title={result.statement.text}> · {titleOf(result.statement)}</span>
      )}
      {result.isCut && <strong class="warning"> — there are more: only these are shown</strong>}
    </span>
  );
}

/** A statement without what may stand around it. */
function bare(text: string): string {
  return text.replace(/^\s+|[\s;]+$/g, "");
}

function ResultMenus({ result }: { result: Result }) {
  const isUsable = result.outcome === "done" && Boolean(result.rows?.columns.length) && isReading(result.statement);
  const save = async (format: Format, name: string) => {
    say(`${name} is being written…`);
    try {
      await downloadRows(result.statement, format);
      say(`${name} saved`);
    } catch (error) {
      say(`${name} was not saved: ${asFailure(error).message}`);
    }
  };
  return (
    <Menu
      label="Download"
      disabled={!isUsable}
      items={FORMATS.map(({ format, name }) => ({ label: name, act: () => void save(format, name) }))}
    />
  );
}

function Answer({ tab, result }: { tab: Tab; result: Result | null }) {
  const [reason, setReason] = useState<QuerentError | null>(null);
  useEffect(() => setReason(null), [result?.startedAt]);
  if (!result) {
    return <p class="empty">Ctrl-Enter runs the query, what is selected of it, or of several statements the one at the cursor. Ctrl-K finds everything else.</p>;
  }
  const failure = reason ?? result.failure;
  const { text } = result.statement;
  const start = placeIn(tab, result.statement);
  const fix = failure && start !== null ? fixOf(failure, text, result.statement.language) : null;
  const repair = () => {
    if (!fix || start === null) return;
    const repaired = text.slice(0, fix.span.from) + fix.text + text.slice(fix.span.to);
    changeTab(tab.id, { text: tab.text.slice(0, start) + repaired + tab.text.slice(start + text.length) });
    runTab(currentTab(), { text: repaired, from: start });
    // The button goes with its error; the keyboard is back where the text is.
    document.querySelector<HTMLElement>(".query-view > .editor .cm-content")?.focus();
  };
  const ask = async () => {
    say("Asking why…");
    setReason((await reasonOfCut(result.statement)) ?? new QuerentError(0, "rows_complete", "This time all rows came."));
  };
  return (
    <>
      {failure && (
        <FailureBox failure={failure}>
          {fix && <button onClick={repair}>Write <code>{fix.text}</code> and run</button>}
          {failure.code === "rows_cut_off" && isReading(result.statement) && <button onClick={() => void ask()}>Ask why</button>}
        </FailureBox>
      )}
      {result.rows && result.rows.columns.length > 0 && (
        <Grid rows={result.rows} version={result.version} label="Rows" />
      )}
      {result.outcome === "done" && result.rows?.columns.length === 0 && <p class="empty">The statement has no rows to show.</p>}
    </>
  );
}

/** Where a statement that ran stands in a tab; nowhere where the tab is now of the other language. */
function placeIn(tab: Tab, statement: Statement): number | null {
  return tab.language === statement.language ? placeOf(statement, tab.text) : null;
}

function markOf(tab: Tab, result: Result | null): EditorMark | null {
  const failure = result?.failure;
  if (!failure || !result) return null;
  const start = placeIn(tab, result.statement);
  const span = spanOf(failure, result.statement.text);
  if (!span || start === null) return null;
  const fix = fixOf(failure, result.statement.text, result.statement.language);
  return {
    from: start + span.from,
    to: start + span.to,
    message: failure.hint ? `${failure.message}\n${failure.hint}` : failure.message,
    fix: fix ? { text: fix.text, label: `Write ${fix.text}` } : null,
  };
}

function Plan({ tab, chosen }: { tab: Tab; chosen: Chosen }) {
  const [parts, setParts] = useState<PlanPart[] | null>(null);
  const [failure, setFailure] = useState<QuerentError | null>(null);
  const latest = useRef<Running | null>(null);
  const [isRunning, setRunning] = useState(false);
  const statement = (): Statement => ({ text: chosen.current?.text ?? tab.text, language: tab.language, database: database.value });
  const canRun = (of: Statement) => of.language === "sql" && isReading(of);
  const explain = async (isRun: boolean) => {
    const explained = statement();
    setParts(null);
    setFailure(null);
    latest.current?.cancel();
    if (explained.text.trim() === "") {
      latest.current = null;
      return setRunning(false);
    }
    const running = run(planStatement(explained, isRun && canRun(explained)));
    latest.current = running;
    setRunning(true);
    const result = await running.finished;
    if (latest.current !== running) return;
    setRunning(false);
    const { rows } = result;
    if (result.failure || !rows) return setFailure(result.failure);
    const lines = Array.from({ length: rows.count }, (_, at) => readPlan(rows.text(at, 0) ?? "", rows.text(at, 1) ?? ""));
    setParts(lines);
  };
  useEffect(() => void explain(false), [tab.id, tab.language]);
  // With times the query itself runs, which nobody waits for any more.
  useEffect(() => () => latest.current?.cancel(), []);
  return (
    <div class="scroll pad">
      <div class="row">
        <button onClick={() => void explain(false)}>Explain</button>
        {canRun(statement()) && <button onClick={() => void explain(true)}>Run it, with times</button>}
        {isRunning && <><span class="status" role="status">Running…</span><button onClick={() => latest.current?.cancel()}>Cancel the plan</button></>}
      </div>
      {failure && <FailureBox failure={failure} />}
      {parts?.map((part) => <PlanTree part={part} />)}
    </div>
  );
}

function History() {
  const entries = useCell(queryHistory);
  const [filter, setFilter] = useState("");
  const shown = entries.filter((entry) => entry.text.toLowerCase().includes(filter.toLowerCase()));
  return (
    <div class="scroll pad">
      <div class="row">
        <input type="search" aria-label="Find in history" placeholder="Find in history" value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)} />
        <button disabled={entries.length === 0} onClick={() => queryHistory.set([])}>Clear</button>
      </div>
      {shown.length === 0 && <p class="empty">What runs here is kept in this browser.</p>}
      <ul class="history">
        {shown.map((entry) => (
          <li>
            <button onClick={() => openAgain(entry)}>
              <code>{entry.text.length > 300 ? `${entry.text.slice(0, 300)}…` : entry.text}</code>
              <small>
                {entry.language.toUpperCase()} · {entry.database} · {time(entry.at)} · {duration(entry.elapsedMs)} ·{" "}
                {entry.code ? <span class="warning">{entry.code}</span> : count(entry.rows, "row")}
              </small>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
