// The command palette: views, tables, commands and past queries by a few letters.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import { client } from "./api";
import { catalogNames } from "./catalog-names";
import { useCell } from "./cell";
import { isDark, theme } from "./preferences";
import { go } from "./router";
import { searchText } from "./views/catalog";
import { openAgain, openQuery, queryHistory } from "./views/query-tabs";
import { VIEWS } from "./app";

interface Command {
  name: string;
  kind: string;
  act(): void;
}

const MOST_SHOWN = 30;
const MOST_FOUND = 8;
const SEARCH_AFTER_MS = 180;

export function Palette({ onClose }: { onClose(): void }) {
  const [text, setText] = useState("");
  const [chosen, choose] = useState(0);
  const dialog = useRef<HTMLDialogElement>(null);
  const names = useCell(catalogNames);
  const commands = useMemo(() => allCommands(), [names]);
  const found = useFound(text);
  const shown = useMemo(() => {
    const known = matching(commands, text);
    const others = found.filter(({ name }) => !known.some((one) => one.kind === "table" && one.name === name));
    return [...known, ...others, ...searchFor(text)];
  }, [commands, text, found]);

  // Before the next key, so that what is typed right after Ctrl-K is not lost.
  useLayoutEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    shown?.querySelector("input")?.focus();
    // Closing gives the keyboard back to where it was; a dialog that is only taken away does not.
    return () => shown?.close();
  }, []);
  useEffect(() => {
    dialog.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [chosen]);

  const act = (command: Command | undefined) => {
    if (!command) return;
    onClose();
    command.act();
  };
  const key = (event: KeyboardEvent) => {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step !== 0 && shown.length > 0) {
      event.preventDefault();
      choose((chosen + step + shown.length) % shown.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      act(shown[chosen]);
    }
  };
  const press = (event: MouseEvent) => {
    if (event.target === dialog.current) onClose();
  };
  return (
    <dialog class="palette" ref={dialog} aria-label="Find" onClose={onClose} onClick={press} onKeyDown={key}>
      <div>
        <input
          type="text"
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant={shown.length > 0 ? `palette-${chosen}` : undefined}
          aria-label="Find a view, a table, a command or a past query"
          placeholder="Find a view, a table, a command or a past query"
          value={text}
          onInput={(event) => { setText(event.currentTarget.value); choose(0); }}
        />
        <ul id="palette-list" role="listbox" aria-label="Found">
          {shown.map((command, at) => (
            <li id={`palette-${at}`} role="option" aria-selected={at === chosen} onClick={() => act(command)}>
              <span>{command.name}</span><small>{command.kind}</small>
            </li>
          ))}
        </ul>
      </div>
    </dialog>
  );
}

function allCommands(): Command[] {
  const views = Object.entries(VIEWS).map(([id, { name }]) => ({ name, kind: "view", act: () => go(id) }));
  const commands = [
    { name: "New SQL query", kind: "command", act: () => openQuery("sql", "", false) },
    { name: "New KQL query", kind: "command", act: () => openQuery("kql", "", false) },
    { name: "Dark or light", kind: "command", act: () => theme.set(isDark() ? "light" : "dark") },
  ];
  const tables = catalogNames.value.tables.map(({ database, name }) => ({
    name: `${database}.${name}`,
    kind: "table",
    act: () => go("catalog", [database, name]),
  }));
  const past = queryHistory.value.map((entry) => ({
    name: entry.text.replace(/\s+/g, " ").slice(0, 200),
    kind: `past ${entry.language.toUpperCase()}`,
    act: () => openAgain(entry),
  }));
  return [...views, ...commands, ...tables, ...past];
}

/** Tables that the server finds, where the palette does not know all of them. */
function useFound(text: string): Command[] {
  const [found, setFound] = useState<Command[]>([]);
  const { isCut } = useCell(catalogNames);
  const wanted = text.trim();
  useEffect(() => {
    setFound([]);
    if (!isCut || wanted === "") return;
    let isCurrent = true;
    const timer = setTimeout(async () => {
      const answer = await client.getCatalogSearch({ q: wanted, limit: MOST_FOUND }).catch(() => null);
      if (!isCurrent || !answer) return;
      setFound(answer.hits.map(({ database, table }) => ({
        name: `${database}.${table}`,
        kind: "table",
        act: () => go("catalog", [database, table]),
      })));
    }, SEARCH_AFTER_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [wanted, isCut]);
  return found;
}

/** A search of the whole catalog, of which the palette may not know all tables. */
function searchFor(text: string): Command[] {
  const wanted = text.trim();
  if (wanted === "") return [];
  const act = () => {
    searchText.set(wanted);
    go("catalog");
  };
  return [{ name: `Search the catalog for ${wanted}`, kind: "search", act }];
}

/** Those that have the letters in their order, those with the whole text first. */
function matching(commands: Command[], text: string): Command[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return commands.slice(0, MOST_SHOWN);
  const scored = commands.map((command) => ({ command, score: score(command.name.toLowerCase(), wanted) }));
  return scored.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score).slice(0, MOST_SHOWN)
    .map(({ command }) => command);
}

function score(name: string, wanted: string): number {
  const whole = name.indexOf(wanted);
  if (whole >= 0) return 1000 - Math.min(whole, 500);
  let at = -1;
  for (const letter of wanted) {
    at = name.indexOf(letter, at + 1);
    if (at < 0) return 0;
  }
  return Math.max(1, 400 - at);
}
