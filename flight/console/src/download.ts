// Files and texts that leave the page.
import { type Format, type Statement, send } from "./statement";

export const FORMATS: { format: Format; name: string; ending: string }[] = [
  { format: "csv", name: "CSV", ending: "csv" },
  { format: "json", name: "JSON", ending: "json" },
  { format: "ndjson", name: "NDJSON", ending: "ndjson" },
  { format: "parquet", name: "Parquet", ending: "parquet" },
  { format: "arrow", name: "Arrow", ending: "arrows" },
];

/** Runs a query again, and saves all of its rows as the server writes them. */
export async function downloadRows(statement: Statement, format: Format): Promise<void> {
  const known = FORMATS.find((candidate) => candidate.format === format)!;
  const response = await send(statement, format);
  saveAs(await response.blob(), `querent-result.${known.ending}`);
}

export function saveAs(blob: Blob, name: string): void {
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** Puts a text on the clipboard, also on a page without TLS, where browsers have no `navigator.clipboard`. */
export async function copyText(text: string): Promise<boolean> {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // Not allowed: the older way may be.
    }
  }
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "off-screen";
  const focused = document.activeElement;
  // Beside a dialog that is open nothing can be selected.
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return isCopied;
}
