// A value that views watch. State lives outside the components, so that a view which is left and opened again shows what
// it showed before.
import { useEffect, useState } from "preact/hooks";

export class Cell<T> {
  private readonly watchers = new Set<() => void>();

  constructor(private current: T) {}

  get value(): T {
    return this.current;
  }

  set(next: T): void {
    this.current = next;
    for (const watcher of [...this.watchers]) watcher();
  }

  update(change: (value: T) => T): void {
    this.set(change(this.current));
  }

  watch(watcher: () => void): () => void {
    this.watchers.add(watcher);
    return () => this.watchers.delete(watcher);
  }
}

/** The value of a cell; the component is drawn again when it changes. */
export function useCell<T>(cell: Cell<T>): T {
  const [, redraw] = useState({});
  useEffect(() => {
    const stop = cell.watch(() => redraw({}));
    redraw({});
    return () => void stop();
  }, [cell]);
  return cell.value;
}

/**
 * A cell whose value outlives the page, in the browser's local storage under `querent.NAME`. With `merge` it takes in what
 * other windows store there meanwhile; without it, each window goes on with its own.
 */
export function storedCell<T>(name: string, initial: T, merge?: (theirs: T, mine: T) => T): Cell<T> {
  const key = `querent.${name}`;
  const cell = new Cell<T>(read(key, initial));
  let isTheirs = false;
  if (merge) {
    addEventListener("storage", (event) => {
      if (event.key !== key || event.newValue === null) return;
      isTheirs = true;
      cell.set(merge(read(key, initial), cell.value));
      isTheirs = false;
    });
  }
  cell.watch(() => {
    if (isTheirs) return;
    try {
      localStorage.setItem(key, JSON.stringify(cell.value));
    } catch {
      // Storage is full or switched off: the value lasts as long as the page.
    }
  });
  return cell;
}

function read<T>(key: string, initial: T): T {
  try {
    const text = localStorage.getItem(key);
    return text === null ? initial : (JSON.parse(text) as T);
  } catch {
    return initial;
  }
}
