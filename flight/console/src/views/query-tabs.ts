// The query view's tabs, what runs in them, and what has run before.
import { readChangedNames } from "../catalog-names";
import { Cell, storedCell } from "../cell";
import type { Language } from "../editor/editor";
import type { Part } from "../editor/sql";
import { type Running, type Statement, isDefining, run } from "../statement";
import { say } from "../parts";
import { database } from "../preferences";

export interface Tab {
  id: string;
  language: Language;
  text: string;
}

export interface HistoryEntry {
  text: string;
  language: Language;
  database: string;
  at: number;
  elapsedMs: number;
  rows: number;
  code: string | null;
}

const MOST_HISTORY = 200;
const FIRST: Tab = { id: "first", language: "sql", text: "SHOW ALL TABLES" };

/** Windows of the same browser share the tabs; what is open here stays as it is here. */
export const tabs: Cell<Tab[]> = storedCell<Tab[]>("tabs", [FIRST], (theirs, mine) => {
  const open = mine.find((tab) => tab.id === openTab.value);
  if (!open) return theirs;
  const isThere = theirs.some((tab) => tab.id === open.id);
  return isThere ? theirs.map((tab) => (tab.id === open.id ? open : tab)) : [...theirs, open];
});
export const openTab = storedCell<string>("open-tab", FIRST.id);
export const queryHistory = storedCell<HistoryEntry[]>("history", [], (theirs) => theirs);

/** What was last run in each tab. */
export const runs = new Cell<ReadonlyMap<string, Running>>(new Map());

export function currentTab(): Tab {
  return tabs.value.find((tab) => tab.id === openTab.value) ?? tabs.value[0] ?? FIRST;
}

export function addTab(language: Language, text: string): void {
  const tab = { id: crypto.randomUUID?.() ?? String(Math.random()), language, text };
  tabs.update((all) => [...all, tab]);
  openTab.set(tab.id);
}

export function changeTab(id: string, fields: Partial<Tab>): void {
  tabs.update((all) => all.map((tab) => (tab.id === id ? { ...tab, ...fields } : tab)));
}

export function closeTab(id: string): void {
  forgetRows([id]);
  const at = tabs.value.findIndex((tab) => tab.id === id);
  const rest = tabs.value.filter((tab) => tab.id !== id);
  if (rest.length === 0) rest.push({ ...FIRST, id: String(Math.random()), text: "" });
  tabs.set(rest);
  if (!rest.some((tab) => tab.id === openTab.value)) openTab.set(rest[Math.max(0, at - 1)]!.id);
}

/** Lets go of what ran in tabs, of all unless some are named, and of its rows. */
export function forgetRows(ids: Iterable<string> = runs.value.keys()): void {
  const kept = new Map(runs.value);
  for (const id of ids) {
    kept.get(id)?.cancel();
    kept.delete(id);
  }
  runs.set(kept);
}

export function runTab(tab: Tab, part: Part | null = null): void {
  const { text, from } = part ?? { text: tab.text, from: 0 };
  const statement: Statement = { text, language: tab.language, database: database.value, from };
  if (statement.text.trim() === "") {
    say("There is nothing to run: write a query first");
    return;
  }
  runs.value.get(tab.id)?.cancel();
  const running = run(statement);
  runs.set(new Map(runs.value).set(tab.id, running));
  void running.finished.then((result) => {
    if (result.outcome === "done" && isDefining(statement)) readChangedNames().catch(() => undefined);
    const entry: HistoryEntry = {
      text,
      language: statement.language,
      database: statement.database,
      at: result.startedAt,
      elapsedMs: Math.round(result.elapsedMs ?? 0),
      rows: result.rows?.count ?? 0,
      code: result.failure?.code ?? (result.outcome === "cancelled" ? "cancelled" : null),
    };
    queryHistory.update((all) => [entry, ...all.filter((other) => !isSame(other, entry))].slice(0, MOST_HISTORY));
  });
}

/** A text is another query in another language or database. */
function isSame(one: HistoryEntry, other: HistoryEntry): boolean {
  return one.text === other.text && one.language === other.language && one.database === other.database;
}

/** Opens a query in a tab of its own, and runs it. */
export function openQuery(language: Language, text: string, isRun: boolean): void {
  addTab(language, text);
  location.hash = "#/query";
  if (isRun) runTab(currentTab());
}

/** Opens what has run before, for the database that it ran in. */
export function openAgain(entry: HistoryEntry): void {
  database.set(entry.database);
  openQuery(entry.language, entry.text, false);
}

/** The name of a tab or a statement: its first words. */
export function titleOf({ text }: { text: string }): string {
  const words = text.replace(/^\s*(--|\/\/).*$/gm, "").trim().replace(/\s+/g, " ");
  return words === "" ? "Empty" : words.length > 26 ? `${words.slice(0, 25)}…` : words;
}
