// Small parts that several views have.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { QuerentError } from "querent-client";

import { Cell } from "./cell";
import { copyText } from "./download";

/** A short word to the person, read out by screen readers too. */
export const notice = new Cell<string>("");

let noticeTimer = 0;

export function say(text: string): void {
  notice.set(text);
  clearTimeout(noticeTimer);
  noticeTimer = window.setTimeout(() => notice.set(""), 4000);
}

export async function copy(text: string, what: string): Promise<void> {
  say((await copyText(text)) ? `${what} copied` : `${what} could not be copied: the browser does not allow it`);
}

export function FailureBox(props: { failure: QuerentError; children?: ComponentChildren }) {
  const { failure } = props;
  return (
    <div class="failure" role="alert">
      <div class="failure-head">
        <code class="failure-code">{failure.code}</code>
        <span class="failure-actions">{props.children}</span>
      </div>
      <pre>{failure.message}</pre>
      {failure.hint && <p class="failure-hint">{failure.hint}</p>}
    </div>
  );
}

export interface MenuItem {
  label: string;
  act(): void;
}

/** A button with a menu below it. */
export function Menu(props: { label: string; items: MenuItem[]; disabled?: boolean }) {
  const [isOpen, setOpen] = useState(false);
  const place = useRef<HTMLDivElement>(null);
  // Before the page is painted: a key that comes right after the click would be overtaken.
  useLayoutEffect(() => {
    if (isOpen) place.current?.querySelector<HTMLElement>("[role=menuitem]")?.focus();
  }, [isOpen]);
  useEffect(() => {
    if (!isOpen) return;
    const outside = (event: Event) => {
      if (!place.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", outside);
    return () => document.removeEventListener("pointerdown", outside);
  }, [isOpen]);
  // Where the keyboard goes on elsewhere, nothing hangs over it; a click in Safari takes the focus nowhere.
  const left = ({ relatedTarget }: FocusEvent) => {
    if (relatedTarget !== null && !place.current?.contains(relatedTarget as Node)) setOpen(false);
  };
  const key = (event: KeyboardEvent) => {
    const items = [...(place.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
    const at = items.indexOf(document.activeElement as HTMLElement);
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (event.key === "Escape") {
      setOpen(false);
      place.current?.querySelector<HTMLElement>("button")?.focus();
    } else if (step !== 0 && items.length > 0) {
      event.preventDefault();
      items[(at + step + items.length) % items.length]!.focus();
    }
  };
  return (
    <div class="menu" ref={place} onKeyDown={key} onFocusOut={left}>
      <button aria-haspopup="menu" aria-expanded={isOpen} disabled={props.disabled ?? false} onClick={() => setOpen(!isOpen)}>
        {props.label} <span aria-hidden="true">▾</span>
      </button>
      {isOpen && (
        <div class="menu-items" role="menu" aria-label={props.label}>
          {props.items.map((item) => (
            <button role="menuitem" onClick={() => { setOpen(false); item.act(); }}>{item.label}</button>
          ))}
        </div>
      )}
    </div>
  );
}

/** A button for what cannot be taken back, so it takes two clicks. */
export function TwoClicks({ act, what, onAct }: { act: string; what: string; onAct(): void }) {
  const [isAsked, ask] = useState(false);
  return isAsked
    ? <button class="danger" aria-label={`Yes, ${act.toLowerCase()} the ${what}`} onClick={() => { ask(false); onAct(); }} onBlur={() => ask(false)}>Yes, {act.toLowerCase()}</button>
    : <button aria-label={`${act} the ${what}`} onClick={() => ask(true)}>{act}</button>;
}

/** Switches between parts of a view; the parts are the caller's. */
export function Switch<T extends string>(props: { label: string; value: T; options: { value: T; label: string }[]; onChange(value: T): void }) {
  return (
    <div class="switch" role="group" aria-label={props.label}>
      {props.options.map(({ value, label }) => (
        <button aria-pressed={value === props.value} onClick={() => props.onChange(value)}>{label}</button>
      ))}
    </div>
  );
}

/** Draws again while something runs, for its clock. */
export function useClock(isRunning: boolean): void {
  const [, tick] = useState(0);
  useEffect(() => {
    if (!isRunning) return;
    const timer = setInterval(() => tick((value) => value + 1), 100);
    return () => clearInterval(timer);
  }, [isRunning]);
}
