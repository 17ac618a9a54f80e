// A grid over any number of rows. Only the cells in view are in the document; their elements are used again while the
// person scrolls. Browsers bound an element's height, so beyond it the scroll bar is a scale and the wheel moves by pixels.
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import { copy } from "../parts";
import type { Rows } from "./rows";

const ROW = 26;
const HEADER = 30;
const MOST_PIXELS = 8_000_000;
const WIDTH_SAMPLE = 60;
const WIDEST = 420;
const NARROWEST = 64;
/** Letters of a value in its cell. */
const MOST_LETTERS = 400;
/** Letters of a value as a whole; browsers take seconds to lay out more. */
const MOST_SHOWN = 200_000;

export function Grid(props: { rows: Rows; version: number; label: string }) {
  const place = useRef<HTMLDivElement>(null);
  const painter = useRef<GridPainter | null>(null);
  const [open, setOpen] = useState<OpenCell | null>(null);
  // Rows are on the screen with the frame that brings them, not one or two later.
  useLayoutEffect(() => {
    const made = new GridPainter(place.current!, props.label, setOpen);
    painter.current = made;
    return () => made.remove();
  }, []);
  useLayoutEffect(() => painter.current?.show(props.rows), [props.rows, props.version]);
  return (
    <>
      <div class="grid-place" ref={place} />
      {open && <CellDialog cell={open} onClose={() => setOpen(null)} />}
    </>
  );
}

interface OpenCell {
  name: string;
  row: number;
  text: string | null;
}

/** A value as a whole; objects and lists over several lines. */
function CellDialog({ cell, onClose }: { cell: OpenCell; onClose(): void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const whole = cell.text === null ? "null" : indented(cell.text);
  const text = whole.slice(0, MOST_SHOWN);
  const press = (event: MouseEvent) => {
    if (event.target === dialog.current) dialog.current?.close();
  };
  return (
    <dialog class="cell-dialog" ref={dialog} aria-label={`${cell.name}, row ${cell.row + 1}`} onClose={onClose} onClick={press}>
      <div>
        <div class="row">
          <strong class="grow">{cell.name}, row {(cell.row + 1).toLocaleString("en-US")}</strong>
          <button onClick={() => void copy(cell.text ?? "", "Value")}>Copy</button>
          <button onClick={() => dialog.current?.close()}>Close</button>
        </div>
        <pre tabIndex={0} class={cell.text === null ? "is-null" : ""}>{text}</pre>
        {text !== whole && <p class="note">The first {MOST_SHOWN.toLocaleString("en-US")} letters of {whole.length.toLocaleString("en-US")}; Copy takes all of them.</p>}
      </div>
    </dialog>
  );
}

class GridPainter {
  private readonly box = element("div", "grid");
  private readonly header = element("div", "grid-header");
  private readonly canvas = element("div", "grid-canvas");
  private readonly pool: HTMLElement[] = [];
  private readonly watcher: ResizeObserver;
  private rows: Rows | null = null;
  private lefts: number[] = [];
  private widths: number[] = [];
  private sampled = 0;
  /** How often the widths were measured. */
  private measured = 0;
  /** Of each line, by which measure its cells stand, and for which columns. */
  private readonly placed = new Map<HTMLElement, string>();
  /** Pixels from the first row's top to the view's, as if there were no bound. */
  private top = 0;
  private frame = 0;
  private active = { row: 0, column: 0 };
  /** The cell that shows it, where it is in view. */
  private activeCell: HTMLElement | null = null;
  private readonly id = `grid${Math.random().toString(36).slice(2)}`;

  constructor(place: HTMLElement, label: string, private readonly onOpen: (cell: OpenCell) => void) {
    this.box.tabIndex = 0;
    this.box.setAttribute("role", "grid");
    this.box.setAttribute("aria-label", label);
    this.box.setAttribute("aria-readonly", "true");
    this.header.setAttribute("role", "row");
    this.header.setAttribute("aria-rowindex", "1");
    this.canvas.setAttribute("role", "rowgroup");
    const head = element("div", "grid-head");
    head.setAttribute("role", "rowgroup");
    head.append(this.header);
    this.box.append(head, this.canvas);
    place.append(this.box);
    this.box.addEventListener("scroll", () => this.scrolled());
    this.box.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.box.addEventListener("keydown", (event) => this.key(event));
    this.box.addEventListener("mousedown", (event) => this.pressed(event));
    this.box.addEventListener("dblclick", (event) => {
      if ((event.target as HTMLElement).closest("[role=gridcell]")) this.open();
    });
    this.watcher = new ResizeObserver(() => this.schedule());
    this.watcher.observe(this.box);
  }

  remove(): void {
    cancelAnimationFrame(this.frame);
    this.watcher.disconnect();
    this.box.remove();
  }

  show(rows: Rows): void {
    const isNew = rows !== this.rows || this.sampled === 0;
    if (rows !== this.rows) {
      this.rows = rows;
      this.top = 0;
      this.active = { row: 0, column: 0 };
      this.sampled = 0;
      this.widths = [];
      this.box.scrollTop = 0;
      this.box.scrollLeft = 0;
    }
    if (this.sampled === 0 || rows.count >= 4 * this.sampled) this.measure(rows);
    this.box.setAttribute("aria-rowcount", String(rows.count + 1));
    this.box.setAttribute("aria-colcount", String(rows.columns.length));
    this.canvas.style.height = `${Math.min(rows.count * ROW, MOST_PIXELS)}px`;
    if (isNew) this.paint();
    else this.schedule();
  }

  /** Widths from rows spread over all that are there, and again whenever there are four times as many. */
  private measure(rows: Rows): void {
    this.sampled = rows.count;
    this.measured++;
    const samples = Math.min(rows.count, WIDTH_SAMPLE);
    // On a narrow screen numbers at the right of a wide column would be out of sight.
    const widest = Math.max(NARROWEST, Math.min(WIDEST, (this.box.clientWidth || WIDEST) * 0.75));
    this.widths = rows.columns.map((column, at) => {
      // The header's letters are bold, and wider.
      let longest = column.name.length * 1.15;
      for (let sample = 0; sample < samples; sample++) {
        const row = Math.floor((sample * (rows.count - 1)) / Math.max(1, samples - 1));
        longest = Math.max(longest, (rows.text(row, at) ?? "").length);
      }
      const width = Math.max(NARROWEST, Math.min(widest, Math.ceil(longest * 7.7) + 32));
      return Math.max(width, this.widths[at] ?? 0);
    });
    let left = 0;
    this.lefts = this.widths.map((width) => (left += width) - width);
    this.canvas.style.width = this.header.style.width = `${left}px`;
  }

  private schedule(): void {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.paint());
  }

  /** How many pixels of rows one pixel of the scroll bar is. */
  private scale(): number {
    const all = (this.rows?.count ?? 0) * ROW;
    const seen = this.box.clientHeight - HEADER;
    return all <= MOST_PIXELS ? 1 : (all - seen) / (MOST_PIXELS - seen);
  }

  private scrolled(): void {
    // A scroll that this class made keeps the exact place; the person's own says a new one.
    if (Math.abs(this.box.scrollTop - this.top / this.scale()) >= 1) this.top = this.box.scrollTop * this.scale();
    this.schedule();
  }

  private wheel(event: WheelEvent): void {
    if (this.scale() === 1 || event.deltaY === 0 || event.ctrlKey) return;
    event.preventDefault();
    const unit = event.deltaMode === 1 ? ROW : event.deltaMode === 2 ? this.box.clientHeight : 1;
    this.moveTo(this.top + event.deltaY * unit);
  }

  private moveTo(top: number): void {
    const most = Math.max(0, (this.rows?.count ?? 0) * ROW - (this.box.clientHeight - HEADER));
    this.top = Math.max(0, Math.min(most, top));
    this.box.scrollTop = this.top / this.scale();
    this.schedule();
  }

  private paint(): void {
    const rows = this.rows;
    if (!rows) return;
    const { clientHeight, clientWidth, scrollLeft, scrollTop } = this.box;
    const first = Math.max(0, Math.floor(this.top / ROW));
    const last = Math.min(rows.count, Math.ceil((this.top + clientHeight - HEADER) / ROW) + 1);
    const firstColumn = Math.max(0, this.lefts.findIndex((left, at) => left + (this.widths[at] ?? 0) > scrollLeft));
    let lastColumn = firstColumn;
    while (lastColumn < this.lefts.length && (this.lefts[lastColumn] ?? 0) < scrollLeft + clientWidth) lastColumn++;

    this.place(this.header, firstColumn, lastColumn, "columnheader", (cell, at) => {
      const column = rows.columns[at]!;
      cell.title = `${column.name}: ${column.type}`;
      cell.className = column.isNumeric ? "grid-cell is-number" : "grid-cell";
      cell.textContent = column.name;
    });
    while (this.pool.length < last - first) {
      const row = element("div", "grid-row");
      row.setAttribute("role", "row");
      this.pool.push(row);
      this.canvas.append(row);
    }
    this.activeCell?.removeAttribute("id");
    this.activeCell = null;
    this.pool.forEach((line, at) => {
      const row = first + at;
      line.hidden = row >= last;
      if (line.hidden) return;
      line.setAttribute("aria-rowindex", String(row + 2));
      line.style.transform = `translateY(${scrollTop + row * ROW - this.top}px)`;
      line.classList.toggle("is-odd", row % 2 === 1);
      this.place(line, firstColumn, lastColumn, "gridcell");
      for (let column = firstColumn; column < lastColumn; column++) {
        const cell = line.children[column - firstColumn] as HTMLElement;
        const text = rows.text(row, column);
        const isActive = row === this.active.row && column === this.active.column;
        cell.className = cellClass(rows.columns[column]!.isNumeric, text === null, isActive);
        cell.textContent = text === null ? "null" : inOneLine(text);
        if (!isActive) continue;
        cell.id = this.id;
        this.activeCell = cell;
      }
    });
    // A reader of the screen is told of the active cell while it is in the document.
    if (this.activeCell !== null) this.box.setAttribute("aria-activedescendant", this.id);
    else this.box.removeAttribute("aria-activedescendant");
  }

  /** Lets a line have cells for these columns where they belong; `draw` is called for each that was not there. */
  private place(
    line: HTMLElement, from: number, to: number, role: string, draw: (cell: HTMLElement, column: number) => void = () => undefined,
  ): void {
    const wanted = `${this.measured} ${from} ${to}`;
    if (this.placed.get(line) === wanted) return;
    this.placed.set(line, wanted);
    while (line.childElementCount > to - from) line.lastElementChild!.remove();
    while (line.childElementCount < to - from) {
      const cell = element("div", "grid-cell");
      cell.setAttribute("role", role);
      line.append(cell);
    }
    for (let column = from; column < to; column++) {
      const cell = line.children[column - from] as HTMLElement;
      cell.style.left = `${this.lefts[column]}px`;
      cell.style.width = `${this.widths[column]}px`;
      cell.setAttribute("aria-colindex", String(column + 1));
      draw(cell, column);
    }
  }

  private pressed(event: MouseEvent): void {
    const cell = (event.target as HTMLElement).closest("[role=gridcell]");
    if (!cell) return;
    const row = Number(cell.parentElement!.getAttribute("aria-rowindex")) - 2;
    this.active = { row, column: Number(cell.getAttribute("aria-colindex")) - 1 };
    this.schedule();
  }

  private key(event: KeyboardEvent): void {
    const rows = this.rows;
    if (!rows || rows.count === 0) return;
    const page = Math.max(1, Math.floor((this.box.clientHeight - HEADER) / ROW) - 1);
    const { row, column } = this.active;
    const isAll = event.ctrlKey || event.metaKey;
    const [lastRow, lastColumn] = [rows.count - 1, rows.columns.length - 1];
    const moves: Record<string, [number, number]> = {
      ArrowDown: [row + 1, column],
      ArrowUp: [row - 1, column],
      ArrowRight: [row, column + 1],
      ArrowLeft: [row, column - 1],
      PageDown: [row + page, column],
      PageUp: [row - page, column],
      Home: isAll ? [0, 0] : [row, 0],
      End: isAll ? [lastRow, lastColumn] : [row, lastColumn],
    };
    if (event.key === "c" && isAll && String(getSelection()) === "") {
      event.preventDefault();
      void copy(rows.text(row, column) ?? "", "Value");
      return;
    }
    if (event.key === "Enter" && !isAll) {
      event.preventDefault();
      this.open();
      return;
    }
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    this.active = { row: clamp(move[0], lastRow), column: clamp(move[1], lastColumn) };
    this.reveal();
  }

  /** Shows the whole value of the active cell. */
  private open(): void {
    const { row, column } = this.active;
    const name = this.rows?.columns[column]?.name;
    if (this.rows && name !== undefined) this.onOpen({ name, row, text: this.rows.text(row, column) });
  }

  private reveal(): void {
    const { row, column } = this.active;
    const seen = this.box.clientHeight - HEADER;
    if (row * ROW < this.top) this.moveTo(row * ROW);
    else if ((row + 1) * ROW > this.top + seen) this.moveTo((row + 1) * ROW - seen);
    const left = this.lefts[column] ?? 0;
    const right = left + (this.widths[column] ?? 0);
    if (left < this.box.scrollLeft) this.box.scrollLeft = left;
    else if (right > this.box.scrollLeft + this.box.clientWidth) this.box.scrollLeft = right - this.box.clientWidth;
    this.schedule();
  }
}

function cellClass(isNumeric: boolean, isNull: boolean, isActive: boolean): string {
  return `grid-cell${isNumeric ? " is-number" : ""}${isNull ? " is-null" : ""}${isActive ? " is-active" : ""}`;
}

/** A value as a line: line ends and tabs as signs, what is long as its beginning. */
function inOneLine(text: string): string {
  const start = text.length > MOST_LETTERS ? `${text.slice(0, MOST_LETTERS).replace(/[\ud800-\udbff]$/, "")}…` : text;
  return start.replace(/\r\n|\r|\n/g, "↵").replace(/\t/g, "⇥");
}

function indented(text: string): string {
  if (!/^\s*[[{]/.test(text) || text.length > 1_000_000) return text;
  try {
    const value: unknown = JSON.parse(text);
    const written = JSON.stringify(value, null, 2);
    // Numbers that JavaScript has no exact value for stay as they came.
    return JSON.stringify(value) === text ? written : text;
  } catch {
    return text;
  }
}

function clamp(value: number, most: number): number {
  return Math.max(0, Math.min(most, value));
}

function element(tag: string, className: string): HTMLElement {
  const made = document.createElement(tag);
  made.className = className;
  return made;
}
