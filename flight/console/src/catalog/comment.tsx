// A comment that is edited in place: Enter keeps it, Escape leaves it as it was.
import { useEffect, useRef, useState } from "preact/hooks";

import { asFailure } from "../api";
import { useIsReader } from "../caller";
import { say } from "../parts";

export function Comment(props: { of: string; text: string; onSave(text: string | null): Promise<void> }) {
  const [draft, setDraft] = useState<string | null>(null);
  const [isSaving, setSaving] = useState(false);
  const box = useRef<HTMLInputElement>(null);
  const opener = useRef<HTMLButtonElement>(null);
  const wasOpen = useRef(false);
  const isReader = useIsReader();
  const isOpen = draft !== null;
  useEffect(() => {
    if (isOpen) box.current?.focus();
    else if (wasOpen.current) opener.current?.focus();
    wasOpen.current = isOpen;
  }, [isOpen]);
  const save = async () => {
    if (draft === null) return;
    setSaving(true);
    try {
      await props.onSave(draft.trim() === "" ? null : draft.trim());
      say(`Comment of ${props.of} saved`);
      setDraft(null);
    } catch (error) {
      say(`The comment was not saved: ${asFailure(error).message}`);
    }
    setSaving(false);
  };
  if (draft === null) {
    return (
      <span class="comment">
        {props.text !== "" && <span>{props.text} </span>}
        {!isReader && <button ref={opener} class="link" aria-label={`${props.text === "" ? "Add" : "Edit"} comment of ${props.of}`} onClick={() => setDraft(props.text)}>
          {props.text === "" ? "Comment" : "Edit"}
        </button>}
      </span>
    );
  }
  return (
    <form class="comment row" onSubmit={(event) => { event.preventDefault(); void save(); }}>
      <input
        ref={box}
        class="grow"
        aria-label={`Comment of ${props.of}`}
        value={draft}
        disabled={isSaving}
        onInput={(event) => setDraft(event.currentTarget.value)}
        onKeyDown={(event) => event.key === "Escape" && setDraft(null)}
      />
      <button class="primary" disabled={isSaving}>Save</button>
      <button type="button" onClick={() => setDraft(null)}>Cancel</button>
    </form>
  );
}
