// The frame around the views: navigation, the command palette, notices.
import type { ComponentType } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { needsToken, token } from "./api";
import { forgetConversation } from "./ask/asking";
import { readCaller } from "./caller";
import { forgetCatalogNames, readCatalogNames } from "./catalog-names";
import { useCell } from "./cell";
import { type IconName, Icon } from "./icons";
import { Palette } from "./palette";
import { notice } from "./parts";
import { database, isDark, theme } from "./preferences";
import { address, go, route } from "./router";
import { ActivityView } from "./views/activity";
import { AskView } from "./views/ask";
import { CatalogView } from "./views/catalog";
import { ImportView, droppedFiles } from "./views/import";
import { QueryView } from "./views/query";
import { forgetRows, openQuery } from "./views/query-tabs";
import { SettingsView } from "./views/settings";

interface View {
  name: string;
  icon: IconName;
  Shown: ComponentType;
}

export const VIEWS: Record<string, View> = {
  ask: { name: "Ask", icon: "ask", Shown: AskView },
  query: { name: "Query", icon: "query", Shown: QueryView },
  catalog: { name: "Catalog", icon: "catalog", Shown: CatalogView },
  import: { name: "Data in", icon: "import", Shown: ImportView },
  activity: { name: "Activity", icon: "activity", Shown: ActivityView },
  settings: { name: "Settings", icon: "settings", Shown: SettingsView },
};

export function App() {
  const at = useCell(route);
  const isRefused = useCell(needsToken);
  const [isPaletteOpen, openPalette] = useState(false);
  useCell(theme);

  const known = useCell(token);
  const before = useRef(known);
  // Another token sees other tables, other rows and other questions.
  useEffect(() => {
    if (before.current !== known) {
      before.current = known;
      forgetCatalogNames();
      forgetConversation();
      forgetRows();
    }
    readCatalogNames().catch(() => undefined);
    readCaller().catch(() => undefined);
  }, [known]);

  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        openPalette((isOpen) => !isOpen);
      }
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);

  // A file that is dropped anywhere is to be imported; the browser would leave the page for it.
  useEffect(() => {
    const over = (event: DragEvent) => {
      if (!event.defaultPrevented && event.dataTransfer?.types.includes("Files")) event.preventDefault();
    };
    const drop = (event: DragEvent) => {
      if (event.defaultPrevented || !event.dataTransfer?.files.length) return;
      event.preventDefault();
      droppedFiles.set(event.dataTransfer.files);
      go("import");
    };
    addEventListener("dragover", over);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragover", over);
      removeEventListener("drop", drop);
    };
  }, []);

  useEffect(() => {
    const statement = at.view === "query" ? at.params.get("q") : null;
    if (statement === null) return;
    database.set(at.params.get("database") ?? database.value);
    // The link is used once: going back over it would open it again.
    history.replaceState(null, "", "#/query");
    openQuery(at.params.get("language") === "kql" ? "kql" : "sql", statement, false);
  }, [at]);

  const view = VIEWS[at.view] ?? VIEWS["query"]!;
  useEffect(() => void (document.title = `${view.name} · Querent`), [view]);
  return (
    <div class="frame">
      <nav class="nav" aria-label="Views">
        <a class="brand" href={address("ask")} aria-label="Querent"><Icon name="brand" /></a>
        {Object.entries(VIEWS).map(([id, { name, icon }]) => (
          <a href={address(id)} aria-current={view.name === name ? "page" : undefined}>
            <Icon name={icon} />
            <span>{name}</span>
          </a>
        ))}
        <span class="grow" />
        <button onClick={() => openPalette(true)} title="Ctrl-K"><Icon name="search" /><span>Find</span></button>
        <button onClick={() => theme.set(isDark() ? "light" : "dark")} title="Dark or light">
          <Icon name={isDark() ? "sun" : "moon"} /><span>{isDark() ? "Light" : "Dark"}</span>
        </button>
      </nav>
      <main class="main">
        {isRefused && at.view !== "settings" && (
          <p class="banner" role="alert">
            {known === "" ? "This server asks for a token." : "This server does not take the token any more."}{" "}
            <a href={address("settings")}>Enter {known === "" ? "it" : "another"} in Settings</a>
          </p>
        )}
        <view.Shown key={view.name} />
      </main>
      <div class="notice" role="status" aria-live="polite">{useCell(notice)}</div>
      {isPaletteOpen && <Palette onClose={() => openPalette(false)} />}
    </div>
  );
}
