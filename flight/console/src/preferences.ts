// What the person has chosen for all views.
import { storedCell } from "./cell";

export type Theme = "system" | "light" | "dark";

/** Where bare names resolve. */
export const database = storedCell<string>("database", "default");

export const theme = storedCell<Theme>("theme", "system");

const prefersDark = matchMedia("(prefers-color-scheme: dark)");

export function isDark(): boolean {
  return theme.value === "dark" || (theme.value === "system" && prefersDark.matches);
}

export function applyTheme(): void {
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
}

theme.watch(applyTheme);
// What is drawn for one of them is drawn again where the system changes.
prefersDark.addEventListener("change", () => theme.set(theme.value));
