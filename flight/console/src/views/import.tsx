// Data in: files dropped or chosen become a table, all of them or nothing.
import { useEffect, useRef, useState } from "preact/hooks";
import { type PostImportAnswer, type PostImportInput, QuerentError } from "querent-client";

import { asFailure, needsToken, token } from "../api";
import { caller, useIsReader } from "../caller";
import { catalogNames, readChangedNames } from "../catalog-names";
import { Cell, useCell } from "../cell";
import { bytes, count } from "../format";
import { FailureBox, say } from "../parts";
import { database } from "../preferences";
import { address } from "../router";

/** What is said of an import beside its files. */
type Parameters = Omit<PostImportInput, "body" | "contentType">;
type Format = NonNullable<Parameters["format"]>;
type IfExists = NonNullable<Parameters["if_exists"]>;

type State =
  | { step: "choosing" }
  | { step: "sending"; sent: number; of: number; stop(): void }
  | { step: "done"; answer: PostImportAnswer }
  | { step: "failed"; failure: QuerentError };

const OPTIONS = [
  ["types", "Types", "zip=VARCHAR, born=DATE"],
  ["has_header", "Header", "true or false"],
  ["delimiter", "Delimiter", "; or \\t"],
  ["quote", "Quote", `"; '' for none`],
  ["escape", "Escape", "\\; '' for none"],
  ["encoding", "Encoding", "latin-1"],
  ["skip", "Lines to skip", "0"],
  ["comment", "Comment begins with", "#; '' for nothing"],
  ["null_value", "Null is", "NA, -; '' for no text"],
  ["null_padding", "Short lines end in nulls", "true or false"],
  ["allow_quoted_nulls", "Nulls in quotes", "true or false"],
  ["date_format", "Dates", "%d.%m.%Y"],
  ["timestamp_format", "Timestamps", "%d.%m.%Y %H:%M"],
  ["decimal_separator", "Fractions begin with", ". or ,"],
  ["thousands", "Between thousands", ","],
  ["ignore_errors", "Set bad lines aside", "true or false"],
  ["rejects", "Table of bad lines", ""],
  ["compression", "Compression", "gzip"],
] as const satisfies [keyof Parameters, string, string][];

/** What is written for an option that is to be empty; a field without letters leaves it to the server. */
const NOTHING = "''";

/** How a workbook is read: the server refuses the others. */
const SHEET_OPTIONS = [
  ["sheet", "Sheet", "the first that holds something"],
  ["range", "Cells", "B3:F"],
  ...OPTIONS.filter(([name]) => ["types", "has_header", "skip", "null_value", "ignore_errors", "rejects"].includes(name)),
] as const;

const FORMATS: Record<string, Format> = {
  csv: "csv", tsv: "csv", tab: "csv", txt: "csv", json: "ndjson", ndjson: "ndjson", jsonl: "ndjson", geojson: "ndjson",
  parquet: "parquet", parq: "parquet", pq: "parquet", arrow: "arrow", arrows: "arrow", ipc: "arrow", feather: "arrow",
  dat: "csv", xlsx: "xlsx", xlsm: "xlsx", xlsb: "xlsx", xls: "xlsx", ods: "xlsx",
};

/** Files that were dropped outside of this view, which then opens. */
export const droppedFiles = new Cell<FileList | null>(null);

/** What is to be imported, as the person says it. */
interface Form {
  files: File[];
  table: string;
  format: Format;
  ifExists: IfExists;
  options: Record<string, string>;
}

const UNSAID: Form = { files: [], table: "", format: "csv", ifExists: "error", options: {} };

/** An import goes on where the view is left, and is there with its form when it is opened again. */
const form = new Cell<Form>(UNSAID);
const progress = new Cell<State>({ step: "choosing" });

function change(fields: Partial<Form>): void {
  form.update((said) => ({ ...said, ...fields }));
}

function forgetImport(): void {
  form.set(UNSAID);
  progress.set({ step: "choosing" });
}

export function ImportView() {
  const names = useCell(catalogNames);
  const chosen = useCell(database);
  const { files, table, format, ifExists, options } = useCell(form);
  const state = useCell(progress);
  const [isOver, setOver] = useState(false);
  const picker = useRef<HTMLInputElement>(null);
  const isReader = useIsReader();

  const choose = (list: FileList | null | undefined) => {
    const all = [...(list ?? [])];
    if (all.length === 0) return;
    // What is being sent would be shown as if it were these.
    if (state.step === "sending") return say("Wait for the import that goes on, or cancel it");
    const { base, ending } = readName(all[0]!.name);
    change({ files: all, table: base, format: FORMATS[ending] ?? "csv" });
    progress.set({ step: "choosing" });
  };
  // What is done with is not there again.
  useEffect(() => () => {
    if (progress.value.step === "done") forgetImport();
  }, []);
  const dropped = useCell(droppedFiles);
  useEffect(() => {
    if (dropped === null) return;
    droppedFiles.set(null);
    choose(dropped);
  }, [dropped]);
  const isText = format === "csv" || format === "ndjson";
  const shown = isText ? OPTIONS : format === "xlsx" ? SHEET_OPTIONS : [];
  const chosenOptions = shown.filter(([name]) => options[name]).map(([, label]) => label);
  const send = () => {
    const said: Parameters = { table, format, database: chosen, if_exists: ifExists };
    for (const [name] of shown) if (options[name]) said[name] = options[name] === NOTHING ? "" : options[name];
    const empty = files.length === 1 && files[0]!.size === 0 ? files[0] : undefined;
    const other = unlike(files);
    if (other) progress.set({ step: "failed", failure: other });
    else if (empty) progress.set({ step: "failed", failure: new QuerentError(0, "empty_file", `${empty.name} is empty: there is nothing to import.`) });
    else upload(files, said);
  };
  const databases = names.databases.includes(chosen) ? names.databases : [chosen, ...names.databases];
  if (isReader) return <Refusal />;
  return (
    <div class="view scroll page">
      <h1>Data in</h1>
      <div
        class={`drop${isOver ? " is-over" : ""}`}
        onDragOver={(event) => { event.preventDefault(); setOver(true); }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => { event.preventDefault(); setOver(false); choose(event.dataTransfer?.files); }}
      >
        <p>Drop CSV, JSON, Excel, Parquet or Arrow files here; several become one table.</p>
        <button onClick={() => picker.current?.click()}>Choose files</button>
        <input ref={picker} type="file" multiple class="off-screen" tabIndex={-1} aria-label="Files"
          onChange={({ currentTarget: input }) => {
            choose(input.files);
            // The same file may be chosen again, as after it has changed: browsers tell of other files only.
            input.value = "";
          }} />
        {files.length > 0 && (
          <ul class="files">{files.map((file) => <li>{file.name} <small>{bytes(file.size)}</small></li>)}</ul>
        )}
      </div>
      {files.length > 0 && (
        <form class="form" onSubmit={(event) => { event.preventDefault(); send(); }}>
          <div class="form-grid">
            <label>Table<input required value={table} onInput={(event) => change({ table: event.currentTarget.value })} /></label>
            <label>Database
              <select value={chosen} onChange={(event) => database.set(event.currentTarget.value)}>
                {databases.map((name) => <option>{name}</option>)}
              </select>
            </label>
            <label>Format
              <select value={format} onChange={(event) => change({ format: event.currentTarget.value as Format })}>
                <option value="csv">CSV</option><option value="ndjson">JSON</option>
                <option value="xlsx">Excel</option><option value="parquet">Parquet</option><option value="arrow">Arrow</option>
              </select>
            </label>
            <label>If the table is there
              <select value={ifExists} onChange={(event) => change({ ifExists: event.currentTarget.value as IfExists })}>
                <option value="error">stop</option><option value="append">add rows</option><option value="replace">replace it</option>
              </select>
            </label>
          </div>
          {shown.length > 0 && (
            <details open={chosenOptions.length > 0}>
              <summary>
                How to read the {isText ? "text" : "sheet"} ({chosenOptions.length > 0 ? `said: ${chosenOptions.join(", ")}` : "found in the file where nothing is said"})
              </summary>
              <div class="form-grid">
                {shown.map(([name, label, example]) => (
                  <label>{label}
                    <input name={name} placeholder={example} value={options[name] ?? ""}
                      onInput={(event) => change({ options: { ...options, [name]: event.currentTarget.value } })} />
                  </label>
                ))}
              </div>
            </details>
          )}
          <div class="row">
            <button class="primary" disabled={state.step === "sending" || table === ""}>Import</button>
            {state.step === "sending" && <button type="button" onClick={state.stop}>Cancel</button>}
          </div>
        </form>
      )}
      <Outcome state={state} />
    </div>
  );
}

/** Why a reader cannot import, and what helps. */
function Refusal() {
  return (
    <div class="view scroll page">
      <h1>Data in</h1>
      <p class="empty">
        The token of {caller.value?.subject} has the role <code>read</code>, which imports nothing: it takes one with the
        role <code>write</code>. <a href={address("settings")}>Enter another in Settings</a>
      </p>
    </div>
  );
}

function Outcome({ state }: { state: State }) {
  switch (state.step) {
    case "choosing":
      return null;
    case "sending": {
      const isSent = state.sent >= state.of;
      return (
        <div class="sending" role="status">
          <progress max={state.of} value={isSent ? undefined : state.sent} aria-label="Sent" />
          {isSent ? "All is sent; the server reads it…" : `${bytes(state.sent)} of ${bytes(state.of)} sent`}
        </div>
      );
    }
    case "failed":
      return <FailureBox failure={state.failure} />;
    case "done":
      return <Done answer={state.answer} />;
  }
}

function Done({ answer }: { answer: PostImportAnswer }) {
  return (
    <section class="done" role="status">
      <h2>
        {count(answer.rows, "row")} {answer.created ? "became" : "went into"}{" "}
        <a href={address("catalog", [answer.database, answer.table])}>{answer.database}.{answer.table}</a>
      </h2>
      {answer.rejects && answer.rejects.lines > 0 && (
        <p class="warning">
          {count(answer.rejects.lines, "line")} could not be read and are in{" "}
          <a href={address("catalog", [answer.database, answer.rejects.table.slice(answer.database.length + 1)])}>{answer.rejects.table}</a>
        </p>
      )}
      {answer.reading && <Reading reading={answer.reading} />}
    </section>
  );
}

/** What the server found in the file, or was told. */
function Reading({ reading }: { reading: Record<string, unknown> }) {
  const { columns, ...rest } = reading;
  return (
    <>
      <p class="chips">
        {Object.entries(rest).filter(([, value]) => value !== null && value !== "" && String(value) !== "").map(([name, value]) => (
          <span class="chip is-soft">{name.replace(/_/g, " ")}: {typeof value === "object" ? JSON.stringify(value) : String(value)}</span>
        ))}
      </p>
      {Array.isArray(columns) && (
        <div class="table-scroll" tabIndex={0} role="group" aria-label="Columns that were read">
          <table class="facts">
            <thead><tr><th scope="col">Column</th><th scope="col">Type</th><th scope="col">Read as</th></tr></thead>
            <tbody>
              {columns.map((column: Record<string, unknown>) => (
                <tr>
                  <th scope="row">{String(column["name"])}</th>
                  <td><code>{String(column["type"] ?? "")}</code></td>
                  <td>{Object.entries(column).filter(([name, value]) => name !== "name" && name !== "type" && value !== null)
                    .map(([name, value]) => `${name.replace(/_/g, " ")}: ${String(value)}`).join("; ")}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

/** Sends the files with `XMLHttpRequest`, which tells how much has gone. */
function upload(files: File[], said: Parameters): void {
  const request = new XMLHttpRequest();
  const of = files.reduce((sum, file) => sum + file.size, 0);
  const fail = (failure: QuerentError) => progress.set({ step: "failed", failure });
  const params = new URLSearchParams(files.length === 1 ? { ...said, filename: files[0]!.name } : { ...said });
  request.open("POST", `/v1/import?${params}`);
  if (token.value !== "") request.setRequestHeader("authorization", `Bearer ${token.value}`);
  request.upload.onprogress = (event) => progress.set({ step: "sending", sent: event.loaded, of: Math.max(of, event.total), stop: () => request.abort() });
  request.onerror = () => void whyUnsent(files).then(fail);
  request.onabort = () => fail(new QuerentError(0, "cancelled", "The import was cancelled; nothing was imported."));
  request.onload = () => {
    try {
      if (request.status === 401) needsToken.set(true);
      if (request.status >= 300) fail(withWayOut(QuerentError.read(request.responseText, request.status)));
      else progress.set({ step: "done", answer: JSON.parse(request.responseText) as PostImportAnswer });
    } catch (error) {
      fail(asFailure(error));
    }
    readChangedNames().catch(() => undefined);
  };
  progress.set({ step: "sending", sent: 0, of, stop: () => request.abort() });
  if (files.length === 1) {
    request.setRequestHeader("content-type", "application/octet-stream");
    request.send(files[0]!);
  } else {
    const form = new FormData();
    for (const file of files) form.append("file", file, file.name);
    request.send(form);
  }
}

/** Why files did not arrive: a browser reads a file as it was when it was chosen, and sends nothing of one that has changed. */
async function whyUnsent(files: File[]): Promise<QuerentError> {
  for (const file of files) {
    try {
      await file.slice(0, 1).arrayBuffer();
    } catch {
      const message = `${file.name} cannot be read: it has changed or is gone since it was chosen, or it is a folder.`;
      return new QuerentError(0, "file_changed", message, "Choose it again; of a folder its files.");
    }
  }
  return new QuerentError(0, "unreachable", "The server did not take the files.", "Is it still running?");
}

/** Names the fields of the form that would help, where the server's words cannot know of them. */
function withWayOut(failure: QuerentError): QuerentError {
  if (failure.code !== "already_exists" || failure.hint) return failure;
  const hint = "Write another name for the table, or choose above that rows are added to it or that it is replaced.";
  return new QuerentError(failure.status, failure.code, failure.message, hint);
}

/** What is wrong with files whose names say several formats: they would all be read as the first one is. */
function unlike(files: File[]): QuerentError | null {
  const said = (file: File) => FORMATS[readName(file.name).ending];
  const first = files.find((file) => said(file));
  const other = first && files.find((file) => said(file) && said(file) !== said(first));
  if (!other) return null;
  const message = `${first.name} and ${other.name} are of two formats, and one table has files of one.`;
  return new QuerentError(0, "several_formats", message, "Import them one after the other.");
}

/** A table's name and the format's ending from a file's name; endings of compression are passed over. */
function readName(name: string): { base: string; ending: string } {
  const parts = name.replace(/\.(gz|zst|zstd|bz2|xz)$/i, "").split(".");
  const ending = parts.length > 1 ? parts.pop()!.toLowerCase() : "";
  const base = parts.join("_").replace(/[^\p{L}\p{N}_]+/gu, "_").replace(/^_+|_+$/g, "").toLowerCase();
  // A name that begins with a digit would need quotes.
  return { base: base === "" ? "imported" : /^\p{N}/u.test(base) ? `t_${base}` : base, ending };
}
