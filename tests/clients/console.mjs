// Walks through the console in Chromium as a person does: each view, each flow, both sizes, both themes, with axe.
//
// usage: node console.mjs FOLDER_WITH_NODE_MODULES URL FOLDER_FOR_PICTURES [TOKEN]
//
// The server has the tables `flights` and `airlines`, and a scripted model that knows "most flights", "in a pie", which is KQL,
// "keep", which asks for approval, and "wait".

import assert from "node:assert/strict";
import { readFileSync, utimesSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [folder, url, pictures, token = ""] = process.argv.slice(2);
const require = createRequire(join(folder, "package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const browser = await chromium.launch({
  executablePath: process.env.QUERENT_CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"],
});
const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, acceptDownloads: true });
await context.grantPermissions(["clipboard-read", "clipboard-write"]);
const page = await context.newPage();
page.setDefaultTimeout(Number(process.env.QUERENT_CONSOLE_PATIENCE ?? 60_000));
const faults = [];
page.on("pageerror", (error) => faults.push(`an exception: ${error.message}`));
page.on("console", (message) => {
  // Refused requests are said in the console too; those that this script provokes are looked at where they are shown.
  if (message.type() === "error" && !/Failed to load resource/.test(message.text())) faults.push(message.text());
});
page.on("request", (request) => {
  if (/^https?:/.test(request.url()) && !request.url().startsWith(url)) faults.push(`a request to ${request.url()}`);
});

const view = (name) => page.locator(".nav").getByRole("link", { name, exact: true }).click();
const shown = (selector) => page.locator(selector).first().waitFor();
const picture = (name) => page.screenshot({ path: join(pictures, `console-${name}.png`) });

async function write(text) {
  await page.locator(".query-view .cm-content").click();
  await page.keyboard.press("ControlOrMeta+A");
  await page.keyboard.press("Delete");
  await page.keyboard.insertText(text);
}

async function run(text) {
  await write(text);
  await page.keyboard.press("ControlOrMeta+Enter");
  await page.locator('.status[data-outcome="done"]').waitFor();
  return page.locator(".status").innerText();
}

/** The grid's cells have these texts: a moment after the status says that the rows are there, they are drawn. */
async function cellsAre(expected) {
  const texts = () => page.locator(".grid-row:not([hidden]) .grid-cell").allInnerTexts();
  const until = Date.now() + 10_000;
  while ((await texts()).join("\0") !== expected.join("\0") && Date.now() < until) await page.waitForTimeout(50);
  assert.deepEqual(await texts(), expected);
}

async function accessible(name) {
  const found = await page.evaluate(`${axe}; axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
    violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html }) => html.slice(0, 160)).join(" | ")))`);
  assert.deepEqual(found, [], `axe on ${name}`);
}

// The first view: how soon, and how much script.
await page.goto(url);
await shown(".nav");
if (token !== "") {
  await page.getByText("Enter it in Settings").click();
  // What no token has in it is said, and what a header has before one is left out.
  await page.getByLabel("Token").fill(`${token}\u200b`);
  await page.getByRole("button", { name: "Use it" }).click();
  await page.getByText("A token has ASCII letters, digits and signs only").waitFor();
  await page.getByLabel("Token").fill(`Bearer ${token}`);
  await page.getByRole("button", { name: "Use it" }).click();
  await page.getByText("The server takes it.").waitFor();
  await page.getByText("questions are answered by scripted").waitFor();
  await view("Query");
}
await shown(".query-view .cm-content");
const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0);
const script = await page.evaluate(() =>
  performance.getEntriesByType("resource").filter(({ name }) => name.endsWith(".js")).map(({ encodedBodySize }) => encodedBodySize));
console.log(`first contentful paint ${Math.round(paint)} ms, script ${script.join(" + ")} bytes`);
assert.ok(script.length > 0 && script[0] > 0 && script[0] < 200_000, String(script));

// Query: rows, an error with its place and its fix, KQL, cancelling, many rows, plan, history, download, copying.
assert.match(await run("SELECT carrier, count(*) AS n FROM flights GROUP BY carrier ORDER BY n DESC"), /^\d+ rows in/);
assert.equal(await page.locator('[role="columnheader"]').first().innerText(), "carrier");
await picture("query");
await accessible("Query");
await write("SELECT * FROM fligths");
await page.keyboard.press("ControlOrMeta+Enter");
await page.getByText("table_not_found").waitFor();
assert.equal(await page.locator(".cm-lintRange-error").innerText(), "fligths");
await picture("error");
await page.getByRole("button", { name: "Write flights and run" }).click();
await page.locator('.status[data-outcome="done"]').waitFor();
assert.equal(await page.locator(".query-view .cm-content").innerText(), "SELECT * FROM flights");
// What is changed is the name, and no text or comment that has its letters.
await write("/* carier */ SELECT 'carier', carier FROM flights LIMIT 1 -- carier");
await page.keyboard.press("ControlOrMeta+Enter");
await page.getByRole("button", { name: "Write carrier and run" }).click();
await page.locator('.status[data-outcome="done"]').waitFor();
assert.equal(await page.locator(".query-view .cm-content").innerText(), "/* carier */ SELECT 'carier', carrier FROM flights LIMIT 1 -- carier");
// A name that needs quotes gets them, and stays behind the table that it is of.
await write('SELECT n.fullname FROM (SELECT carrier AS "Full Name" FROM flights LIMIT 1) AS n');
await page.keyboard.press("ControlOrMeta+Enter");
await page.getByRole("button", { name: 'Write n."Full Name" and run' }).click();
await page.locator('.status[data-outcome="done"]').waitFor();
assert.match(await page.locator(".query-view .cm-content").innerText(), /^SELECT n\."Full Name" FROM/);
// Of two statements that are the same, the error is marked in the one that ran, and that one is mended.
await write("SELECT carier FROM airlines;\nSELECT carier FROM airlines");
await page.keyboard.press("ControlOrMeta+Enter");
await page.getByRole("button", { name: "Write carrier and run" }).waitFor();
assert.equal(await page.locator(".cm-line").nth(1).locator(".cm-lintRange-error").innerText(), "carier");
assert.equal(await page.locator(".cm-lintRange-error").count(), 1);
await page.getByRole("button", { name: "Write carrier and run" }).click();
await page.locator('.status[data-outcome="done"]').waitFor();
assert.deepEqual(await page.locator(".query-view .cm-line").allInnerTexts(), ["SELECT carier FROM airlines;", "SELECT carrier FROM airlines"]);
// Of several statements that at the cursor runs, is mended, and is explained.
await write("SELECT 'one;' AS a;\n\n-- the second\nSELECT carier FROM flights LIMIT 2;\n");
await page.keyboard.press("ArrowUp");
await page.getByRole("button", { name: /^Run/ }).click();
await page.getByRole("button", { name: "Write carrier and run" }).click();
await page.locator('.status[data-outcome="done"]', { hasText: "2 rows" }).waitFor();
// The button that was pressed is gone, and the keyboard is in the text again.
await page.keyboard.press("ControlOrMeta+Home");
await page.keyboard.press("ControlOrMeta+Enter");
await page.locator('.status[data-outcome="done"]', { hasText: "SELECT 'one;' AS a" }).waitFor();
await cellsAre(["one;"]);
await page.getByRole("button", { name: "Plan", exact: true }).click();
await shown(".plan-node");
assert.equal(await page.locator(".plan", { hasText: "carrier" }).count(), 0);
await page.getByRole("button", { name: "+ KQL" }).click();
await write("flights | sumarize count()");
await page.keyboard.press("ControlOrMeta+Enter");
await page.getByRole("button", { name: "Write summarize and run" }).click();
await page.locator('.status[data-outcome="done"]').waitFor();
// Completion by the server, in both languages.
await write("flights | ");
await page.keyboard.type("summ");
await page.locator(".cm-tooltip-autocomplete li", { hasText: "summarize" }).first().waitFor();
await page.keyboard.press("Escape");
await page.getByRole("button", { name: "+ SQL" }).click();
await write("SELECT * FROM ");
await page.keyboard.type("airl");
await page.locator(".cm-tooltip-autocomplete li", { hasText: "airlines" }).first().waitFor();
await picture("completion");
await page.waitForTimeout(150); // An accidental Enter right after the list opens is a new line, so the editor waits.
await page.keyboard.press("Enter");
await page.waitForFunction(() => document.querySelector(".query-view .cm-content").innerText === "SELECT * FROM airlines");
await write("SELECT count(*) FROM generate_series(1, 1000000000) AS s(value) WHERE sin(value) > 2");
await page.keyboard.press("ControlOrMeta+Enter");
await page.locator('.status[data-outcome="running"]').waitFor();
await page.getByRole("button", { name: "Cancel" }).click();
await page.locator('.status[data-outcome="cancelled"]').waitFor();
const million = await run("SELECT value AS i, 'row ' || value AS label FROM generate_series(1, 1200000) AS s(value) ORDER BY i");
assert.match(million, /^1,000,000 rows in .*there are more/);
const frames = await page.evaluate(async () => {
  const grid = document.querySelector(".grid");
  const times = [];
  let before = performance.now();
  for (let step = 0; step < 60; step++) {
    grid.scrollTop += 97_000;
    await new Promise((next) => requestAnimationFrame(next));
    times.push(performance.now() - before);
    before = performance.now();
  }
  return times.sort((a, b) => a - b).map(Math.round);
});
await accessible("rows that were scrolled past the active cell");
console.log(`a million rows: frame ${frames[30]} ms in the middle, ${frames.at(-1)} ms at most`);
await page.locator(".grid").focus();
await page.keyboard.press("Control+End");
await page.locator(".grid-cell.is-active", { hasText: "row 1000000" }).waitFor();
await page.keyboard.press("Control+Home");
await page.locator('.grid-row:not([hidden]) .grid-cell.is-active', { hasText: /^1$/ }).waitFor();
await run("SELECT 9007199254740993 AS big, CAST(1.10 AS DECIMAL(10, 2)) AS d, NULL AS missing, DATE '2024-02-29' AS day, [1, 2] AS list");
await cellsAre(["9007199254740993", "1.10", "null", "2024-02-29", "[1,2]"]);
assert.equal(await page.locator(".grid-cell.is-null").count(), 1);
// Values inside of lists, structs and maps are as exact as those of columns; times read as the server writes them.
await run(`SELECT [1.10::DECIMAL(10, 2), NULL] AS decimals, [DATE '2024-02-29'] AS days,
  {'at': TIMESTAMP '2024-02-29 12:00:00.123456', 'big': 9007199254740993, 'none': NULL} AS struct, MAP {'k': [0.1::FLOAT]} AS map`);
await cellsAre(["[1.10,null]", '["2024-02-29"]', '{"at":"2024-02-29 12:00:00.123456","big":9007199254740993,"none":null}', '{"k":[0.1]}']);
assert.equal(await page.locator('[role="columnheader"]').first().getAttribute("title"), "decimals: DECIMAL(10,2)[]");
await run(`SELECT INTERVAL '1 month 2 days 03:00:04.5' AS long, INTERVAL '-1.5 seconds' AS back,
  TIMESTAMP '2024-01-01' - TIMESTAMP '2024-01-02' AS between, 0.1::FLOAT AS single, DATE '-0044-03-15' AS ides`);
await cellsAre(["1 mons 2 days 3 hours 4.500000000 secs", "-1.500000000 secs", "-PT86400S", "0.1", "-0044-03-15"]);
// Lists with places of 64 bits, as polars writes them, and dates and times that are infinite to DuckDB.
await run(`SELECT arrow_cast([1, NULL, 9007199254740993], 'LargeList(Int64)') AS list, arrow_cast(2147483647, 'Date32') AS never,
  arrow_cast(-9223372036854775807, 'Timestamp(Microsecond, None)') AS always`);
await cellsAre(["[1,null,9007199254740993]", "infinity", "-infinity"]);
assert.equal(await page.locator('[role="columnheader"]').first().getAttribute("title"), "list: BIGINT[]");
// Rows that end early are no answer, also where the last batch that came is whole; the reason can be had.
await write("SELECT value, 10 / (500000 - value) AS q FROM generate_series(1, 1000000) AS s(value)");
await page.keyboard.press("ControlOrMeta+Enter");
await page.locator('.status[data-outcome="failed"]').waitFor();
await page.getByRole("button", { name: "Ask why" }).click();
await page.locator(".failure", { hasText: "division by zero" }).waitFor();
// A cell is one line; the whole value is a key or two clicks away.
await run("SELECT 'one\ntwo' AS note, repeat('x', 1000) AS long, '<b>bold</b>' AS html, '{\"a\":[1,2]}' AS json");
const cell = (name) => page.locator(".grid-row:not([hidden]) .grid-cell", { hasText: name });
await cell("one↵two").waitFor();
await cell("<b>bold</b>").waitFor();
await cell("one↵two").click();
await page.keyboard.press("Enter");
await page.getByRole("dialog", { name: "note, row 1" }).waitFor();
assert.equal(await page.locator(".cell-dialog pre").innerText(), "one\ntwo");
await accessible("a value");
await page.keyboard.press("Escape");
await page.locator(".cell-dialog").waitFor({ state: "detached" });
await cell("xxx").dblclick();
assert.equal((await page.locator(".cell-dialog pre").innerText()).length, 1000);
await page.getByRole("button", { name: "Copy", exact: true }).click();
await page.getByText("Value copied").waitFor();
await page.getByRole("button", { name: "Close", exact: true }).click();
await cell('{"a":[1,2]}').dblclick();
assert.match(await page.locator(".cell-dialog pre").innerText(), /"a": \[\n/);
// On a page without TLS, where browsers have no `navigator.clipboard`, a text that is selected is copied, also in the dialog.
await page.evaluate(() => Object.defineProperty(navigator, "clipboard", { value: undefined, configurable: true }));
await page.locator(".cell-dialog").getByRole("button", { name: "Copy" }).click();
await page.getByText("Value copied").waitFor();
await page.evaluate(() => delete navigator.clipboard);
assert.equal(await page.evaluate(() => navigator.clipboard.readText()), '{"a":[1,2]}');
await page.keyboard.press("Escape");
// A statement that is longer than the editor, and none.
await run(`SELECT ${Array.from({ length: 300 }, (_, at) => `${at} AS column_number_${at}`).join(", ")}`);
await accessible("a long statement");
await write("");
await page.keyboard.press("ControlOrMeta+Enter");
await page.getByText("write a query first").waitFor();
await run("SELECT carrier, dep_delay FROM flights");
for (const format of ["CSV", "JSON", "NDJSON", "Parquet", "Arrow"]) {
  await page.getByRole("button", { name: "Download" }).click();
  const saved = page.waitForEvent("download");
  await page.getByRole("menuitem", { name: format, exact: true }).click();
  const path = await (await saved).path();
  assert.ok(readFileSync(path).length > 20, format);
}
// What a text says is no word of SQL.
await run("WITH notes AS (SELECT 'please update -- it' AS note) SELECT note FROM notes");
assert.ok(await page.getByRole("button", { name: "Download" }).isEnabled());
await page.getByRole("button", { name: "Copy as" }).click();
// A menu that the keyboard leaves hangs over nothing.
for (let step = 0; step < 3; step++) await page.keyboard.press("Tab");
await page.locator(".menu-items").waitFor({ state: "detached" });
await page.getByRole("button", { name: "Copy as" }).click();
await page.getByRole("menuitem", { name: "curl" }).click();
await page.getByText("curl command copied").waitFor();
assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^curl '.*\/v1\/query\?format=json'/);
await page.getByRole("button", { name: "Copy as" }).click();
await page.getByRole("menuitem", { name: "Python (ADBC)" }).click();
await page.getByText("Python copied").waitFor();
// Without it the driver warns that the server has no transactions.
assert.match(await page.evaluate(() => navigator.clipboard.readText()), /autocommit=True/);
// A link opens one tab, and going back goes back.
const tabsBefore = await page.locator(".tab").count();
await view("Settings");
await page.evaluate(() => (location.hash = `#/query?${new URLSearchParams({ q: "SELECT 42", language: "sql", database: "default" })}`));
await page.locator(".query-view .cm-content", { hasText: "SELECT 42" }).waitFor();
await page.goBack();
await page.getByRole("heading", { name: "Settings", exact: true }).waitFor();
await page.goForward();
await shown(".query-view .cm-content");
assert.equal(await page.locator(".tab").count(), tabsBefore + 1);
// Windows side by side: what ran in one is in the history of both.
const second = await context.newPage();
await second.goto(`${url}#/query`);
await second.locator(".query-view .cm-content").waitFor();
await page.bringToFront();
await run("SELECT 'from the first window'");
await second.getByRole("button", { name: "History", exact: true }).click();
await second.locator(".history li", { hasText: "from the first window" }).waitFor();
await second.close();
// Charts of the rows: by the columns' types, as the person wants them, and as KQL's render says.
const chosen = (name) => page.getByRole("combobox", { name, exact: true }).locator("option:checked").innerText();
const kind = () => page.getByRole("group", { name: "Kind of chart" }).locator("[aria-pressed=true]").innerText();
const marks = (shape) => page.locator(`.chart svg .mark-${shape} path`).count();
await run("SELECT carrier, count(*) AS n FROM flights GROUP BY carrier");
// Without its libraries a chart says so, and is drawn once they are there.
await page.route("**/console/vega*", (route) => route.abort());
await page.getByRole("button", { name: "Chart", exact: true }).click();
await page.getByText("The chart cannot be drawn: A part of this page could not be loaded.").waitFor();
await page.unroute("**/console/vega*");
await page.getByRole("button", { name: "Line", exact: true }).click();
await shown(".chart svg .mark-line path");
await page.getByRole("button", { name: "Rows", exact: true }).click();
await page.getByRole("button", { name: "Chart", exact: true }).click();
await shown(".chart svg .mark-rect path");
assert.deepEqual([await kind(), await chosen("Across"), await chosen("Up"), await marks("rect")], ["Bars", "carrier", "n", 2]);
await accessible("a chart of rows");
for (const [name, shape] of [["Line", "line"], ["Area", "area"], ["Points", "symbol"], ["Pie", "arc"]]) {
  await page.getByRole("button", { name, exact: true }).click();
  await shown(`.chart svg .mark-${shape} path`);
}
await picture("chart");
await run("SELECT 'UA' AS carrier, value AS a, value * value AS b FROM generate_series(1, 9) AS s(value)");
await page.getByRole("button", { name: "Chart", exact: true }).click();
await shown(".chart svg .mark-symbol path");
assert.deepEqual([await kind(), await chosen("Across"), await chosen("Up"), await chosen("Colours")], ["Points", "a", "b", "carrier"]);
await page.getByRole("combobox", { name: "Across", exact: true }).selectOption("carrier");
await page.getByRole("button", { name: "Bars", exact: true }).click();
await page.getByText("Several rows stand at one place").waitFor();
await run("SELECT 'no number'");
await page.getByRole("button", { name: "Chart", exact: true }).click();
await page.getByText("A chart needs rows with a column of numbers").waitFor();
await page.getByRole("button", { name: "+ KQL" }).click();
await run("range d from datetime(2024-01-01) to datetime(2024-01-05) step 1d | extend n = dayofyear(d) | render timechart");
await shown(".chart svg .mark-line path");
assert.deepEqual([await kind(), await chosen("Across"), await chosen("Up")], ["Line", "d", "n"]);
// Each of KQL's charts is drawn as what it says, whatever stands in comments and texts around it.
const legend = () => page.locator(".chart svg .role-legend-label text").allTextContents();
const titles = () => page.locator(".chart svg .role-axis-title text, .chart svg .role-title text").allTextContents();
const byCarrier = "flights | summarize flights = count(), late = countif(dep_delay > 40) by carrier";
await run(`${byCarrier} | project carrier, flights | render piechart with (title="Who | flies") // | render timechart`);
await shown(".chart svg .mark-arc path");
assert.deepEqual([await kind(), await marks("arc"), await titles()], ["Pie", 2, ["Who | flies"]]);
await run(`${byCarrier} | render columnchart`);
await shown(".chart svg .mark-rect path");
// All columns of numbers, side by side.
assert.deepEqual([await kind(), await chosen("Up"), await chosen("Series"), await legend()], ["Bars", "all 2", "each", ["flights", "late"]]);
const tops = () => page.locator(".chart svg .mark-rect path").evaluateAll((paths) => paths.map((path) => {
  const { x, y, width, height } = path.getBoundingClientRect();
  return [x, y, width, height].map(Math.round);
}));
assert.equal(new Set((await tops()).map(([x]) => x)).size, 4);
await run(`${byCarrier} | render columnchart with (kind=stacked, xtitle="Carrier", ytitle="Number", legend=hidden)`);
await shown(".chart svg .mark-rect path");
assert.deepEqual([await chosen("Series"), await legend(), await titles()], ["stacked", [], ["Carrier", "Number"]]);
assert.equal(new Set((await tops()).map(([x]) => x)).size, 2);
await run(`${byCarrier} | render barchart with (ycolumns=late)`);
await shown(".chart svg .mark-rect path");
assert.equal(new Set((await tops()).map(([x]) => x)).size, 1, "bars lie");
await page.locator(".chart svg .role-axis-title text", { hasText: "late" }).waitFor();
await run("flights | extend day = bin(datetime(2024-01-01) + dep_delay * 1d, 7d) | summarize n = count() by day, carrier | order by day asc | render stackedareachart");
await shown(".chart svg .mark-area path");
assert.deepEqual([await kind(), await chosen("Colours"), await chosen("Series"), await marks("area")], ["Area", "carrier", "stacked", 2]);
await run("flights | make-series n = count() on dep_delay from 0 to 50 step 10 by carrier | render linechart");
await shown(".chart svg .mark-symbol path");
assert.deepEqual([await chosen("Across"), await chosen("Colours"), await marks("line"), await marks("symbol") >= 10], ["dep_delay", "carrier", 2, true]);
await run("flights | project dep_delay, twice = 2 * dep_delay | render scatterchart");
await shown(".chart svg .mark-symbol path");
assert.equal(await kind(), "Points");
await run("flights | summarize flights = count() | render card");
await page.locator(".result .numbers div", { hasText: "flights" }).locator("dd", { hasText: "3000" }).waitFor();
await run("flights | summarize flights = count() by carrier | render treemap");
await page.getByRole("button", { name: "Chart", exact: true }).click();
await page.getByText("render treemap is not drawn here").waitFor();
await page.getByRole("button", { name: "+ SQL" }).click();
await run("SELECT carrier, count(*) AS n FROM flights WHERE dep_delay > 10 GROUP BY carrier");
await page.getByRole("button", { name: "Plan", exact: true }).click();
await shown(".plan-node");
await page.getByRole("button", { name: "Run it, with times" }).click();
await shown(".plan-time");
await picture("plan");
await accessible("Plan");
// A plan with times runs the query, which takes as long as it takes and can be ended.
await write("SELECT count(*) FROM generate_series(1, 1000000000) AS s(value) WHERE tan(value) = 2");
await page.getByRole("button", { name: "Run it, with times" }).click();
await page.getByRole("button", { name: "Cancel the plan" }).click();
await page.getByRole("button", { name: "Cancel the plan" }).waitFor({ state: "detached" });
await page.getByRole("button", { name: "History", exact: true }).click();
await page.getByLabel("Find in history").fill("AS missing");
assert.equal(await page.locator(".history li").count(), 1);
await accessible("History");

// What has run is opened for the database that it ran in.
await run("CREATE DATABASE sandbox");
const database = page.locator(".query-view").getByRole("combobox", { name: "Database" });
await database.locator("option", { hasText: "sandbox" }).waitFor({ state: "attached" });
await database.selectOption("sandbox");
await run("SELECT 'in the sandbox'");
await database.selectOption("default");
await run("SELECT 'in the sandbox'");
await page.getByRole("button", { name: "History", exact: true }).click();
const entries = page.locator(".history li", { hasText: "in the sandbox" });
assert.equal(await entries.count(), 2, "a text is another query in another database");
await entries.filter({ hasText: "· sandbox ·" }).getByRole("button").click();
await page.locator(".query-view .cm-content", { hasText: "in the sandbox" }).waitFor();
assert.equal(await database.inputValue(), "sandbox");
await database.selectOption("default");
await run("DROP DATABASE sandbox");

// The palette.
await page.keyboard.press("ControlOrMeta+K");
await page.keyboard.type("airl");
await page.locator(".palette [aria-selected=true]", { hasText: "airlines" }).waitFor();
await picture("palette");
await accessible("the palette");
await page.keyboard.press("Enter");
await shown(".catalog-view table.facts");
// The types are those of SQL, before a profile as after it.
assert.deepEqual(await page.locator("table.facts td code").allInnerTexts(), ["VARCHAR", "VARCHAR"]);

// Names with dots in them are not taken for each other.
await view("Query");
for (const [database, table, column] of [["a", "b.c", "first_one"], ["a.b", "c", "second_one"]]) {
  await run(`CREATE DATABASE "${database}"`);
  await run(`CREATE TABLE "${database}"."${table}" AS SELECT 1 AS ${column}`);
}
for (const [address, column] of [["a/b.c", "first_one"], ["a.b/c", "second_one"]]) {
  await page.evaluate((to) => (location.hash = `#/catalog/${to}`), address);
  await page.locator(".facts th[scope=row]", { hasText: column }).waitFor();
}
await view("Query");
for (const database of ["a", "a.b"]) await run(`DROP DATABASE "${database}" CASCADE`);
// A table that is made while names are still being read is known, whenever the answer of before comes.
let first = null;
await page.route("**/v1/catalog/schema*", async (route) => {
  if (first !== null) return route.continue();
  first = route;
});
await view("Catalog");
await page.waitForFunction(() => document.querySelector(".catalog-list .database") !== null);
await view("Query");
await run("CREATE TABLE late_name (a INT)");
assert.ok(first, "names are read when the catalog is opened");
const late = page.waitForResponse("**/v1/catalog/schema*");
await first.continue();
await late;
await page.keyboard.press("ControlOrMeta+K");
await page.keyboard.type("default.late_name");
await page.locator(".palette [aria-selected=true]", { hasText: "default.late_name" }).waitFor();
await page.keyboard.press("Escape");
await page.unroute("**/v1/catalog/schema*");
await run("DROP TABLE late_name");
// A link that somebody wrote by hand has question marks of its own.
await page.evaluate(() => (location.hash = "#/query?q=SELECT '?' AS sign&language=sql"));
await page.locator(".query-view .cm-content", { hasText: "SELECT '?' AS sign" }).waitFor();
// Ctrl-K closes it, too, and gives the keyboard back to where it was.
await view("Query");
await page.locator(".query-view .cm-content").focus();
await page.keyboard.press("ControlOrMeta+K");
await page.locator(".palette input").waitFor();
await page.keyboard.press("ControlOrMeta+K");
await page.locator(".palette").waitFor({ state: "detached" });
assert.ok(await page.evaluate(() => document.activeElement.classList.contains("cm-content")), "the keyboard is nowhere");
// What the palette has no name for is searched in the catalog.
await page.keyboard.press("ControlOrMeta+K");
await page.keyboard.type("who flies where");
await page.locator(".palette [aria-selected=true]", { hasText: "Search the catalog for who flies where" }).waitFor();
await page.keyboard.press("Enter");
await page.waitForFunction(() => document.querySelector(".catalog-list input").value === "who flies where");
await page.getByLabel("Search tables by meaning").fill("");
await page.locator(".database a", { hasText: "airlines" }).click();
// Of a catalog of many tables the first are known: those of a database are read when it is opened, others by search.
await page.route(/\/v1\/catalog\/schema\?limit/, async (route) => {
  const columns = [];
  const tables = Array.from({ length: 500 }, (_, at) => ({ name: `t${at}`, kind: "managed", columns }));
  await route.fulfill({ json: { databases: [{ name: "first", tables }], next_page_token: "more" } });
});
await view("Settings");
await view("Catalog");
await page.locator(".database summary", { hasText: "first" }).waitFor();
await page.locator(".database summary", { hasText: "default" }).click();
await page.locator(".database a", { hasText: "airlines" }).waitFor();
await accessible("many tables");
await page.keyboard.press("ControlOrMeta+K");
await page.keyboard.type("airlines");
await page.locator(".palette li", { hasText: "default.airlines" }).waitFor();
await page.keyboard.press("Escape");
await page.unroute(/\/v1\/catalog\/schema\?limit/);
await view("Settings");
await view("Catalog");
await page.locator(".database[open] a", { hasText: "airlines" }).click();
await page.getByRole("heading", { name: /\.airlines$/ }).waitFor();

// Catalog.
await page.getByRole("button", { name: "Profile the columns" }).click();
await shown(".missing");
await accessible("a table");
await page.getByLabel("Search tables by meaning").fill("flights late");
await page.locator(".hits a", { hasText: "flights" }).first().click();
await page.getByRole("heading", { name: /\.flights$/ }).waitFor();
await page.getByRole("button", { name: "Sample" }).click();
await shown(".sample .grid-row");
assert.deepEqual(await page.locator('.sample [role="columnheader"]').allInnerTexts(), ["carrier", "dep_delay"]);
await page.evaluate(async (token) => {
  const end = (table) => ({ database: "default", table });
  const answer = await fetch("/v1/catalog/relationships", {
    method: "POST",
    headers: { "content-type": "application/json", ...(token ? { authorization: `Bearer ${token}` } : {}) },
    body: JSON.stringify({ from: end("flights"), from_columns: ["carrier"], to: end("airlines"), to_columns: ["carrier"] }),
  });
  if (!answer.ok) throw new Error(await answer.text());
}, token);
await page.getByRole("button", { name: "Relationships" }).click();
await shown(".relationships li");
await page.getByRole("button", { name: "Graph", exact: true }).click();
await shown(".relations a[aria-current=page]");
assert.deepEqual((await page.locator(".relations a").allTextContents()).sort(), ["airlines", "flights"]);
await picture("graph");
await accessible("the graph of relationships");
// What was taught of the table: run, and dropped.
await page.evaluate(async (token) => {
  for (const [route, body] of [
    ["verified-queries", { question: "Who flies most?", sql: "SELECT carrier FROM flights GROUP BY ALL ORDER BY count(*) DESC LIMIT 1" }],
    ["metrics", { name: "late share", table: { database: "default", table: "flights" }, expression: "avg(dep_delay)", filter: "dep_delay > 0" }],
  ]) {
    const answer = await fetch(`/v1/catalog/${route}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...(token ? { authorization: `Bearer ${token}` } : {}) },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(await answer.text());
  }
}, token);
await page.getByRole("button", { name: "Questions and metrics" }).click();
await page.locator(".taught li", { hasText: "Who flies most?" }).waitFor();
await picture("taught");
await accessible("what was taught of a table");
await page.locator(".taught li", { hasText: "late share" }).getByRole("button", { name: "Run in Query" }).click();
await page.locator('.query-view .status[data-outcome="done"]', { hasText: "1 row" }).waitFor();
assert.equal(await page.locator('[role="columnheader"]').first().innerText(), "late share");
await page.goBack();
await page.getByRole("button", { name: "Questions and metrics" }).click();
for (const what of ["verified query Who flies most?", "metric late share"]) {
  await page.getByRole("button", { name: `Drop the ${what}`, exact: true }).click();
  await page.getByRole("button", { name: `Yes, drop the ${what}`, exact: true }).click();
}
await page.locator(".taught li").first().waitFor({ state: "detached" });
await page.getByRole("button", { name: "Relationships" }).click();
await page.getByRole("button", { name: "Graph", exact: true }).click();
await page.locator('.relations a[aria-label="Table default.airlines"]').focus();
await page.keyboard.press("Enter");
await page.getByRole("heading", { name: /\.airlines$/ }).waitFor();
await page.goBack();
await page.getByRole("heading", { name: /\.flights$/ }).waitFor();
await page.getByRole("button", { name: "Profile the columns" }).click();
await shown(".missing");
await shown(".histogram rect");
await page.locator(".top-values", { hasText: "UA" }).waitFor();
// Comments: kept with Enter, left as they were with Escape.
await page.getByRole("button", { name: "Add comment of table flights" }).click();
await page.getByLabel("Comment of table flights").fill("Departures of a year");
await page.keyboard.press("Enter");
await page.getByText("Comment of table flights saved").waitFor();
await page.getByRole("button", { name: "Add comment of column dep_delay" }).click();
await page.getByLabel("Comment of column dep_delay").fill("minutes late");
await accessible("a comment that is edited");
await page.keyboard.press("Enter");
await page.getByText("Comment of column dep_delay saved").waitFor();
await page.getByRole("button", { name: "Edit comment of table flights" }).click();
await page.getByLabel("Comment of table flights").fill("nothing of this");
await page.keyboard.press("Escape");
await page.locator(".table-head .comment", { hasText: "Departures of a year" }).waitFor();
// All tables are in the list, so nothing says that there are others.
assert.equal(await page.getByText("These are the first").count(), 0);
await picture("catalog");
await accessible("Catalog");

// Ask: thinking, calls, the chart, the proofs, running an edited query, replay by link, cancelling.
await view("Ask");
await page.getByRole("textbox", { name: "Question" }).fill("Which carrier had the most flights?");
await page.keyboard.press("Enter");
await page.locator('.run[data-outcome="done"]').waitFor();
await shown(".chart svg");
await shown(".answer .proof.is-unproven");
await page.locator(".answer .confidence", { hasText: "not proven" }).waitFor();
await page.locator(".answer").scrollIntoViewIfNeeded();
const proven = await page.locator(".answer .proof").allInnerTexts();
assert.ok(proven.some((text) => text.startsWith("UA")), String(proven));
await page.getByRole("button", { name: /^Proof \d+ of UA/ }).click();
await page.locator("td.is-marked", { hasText: "UA" }).waitFor();
await page.locator(".question").scrollIntoViewIfNeeded();
await picture("ask");
await accessible("Ask");
const link = page.url();
assert.match(link, /#\/ask\/run\//);
await page.goto("about:blank");
await page.goto(link);
await page.locator('.run[data-outcome="done"] .answer').waitFor();
await page.getByRole("button", { name: "Replay" }).click();
await page.locator('.run[data-outcome="running"]').waitFor();
await page.locator('.run[data-outcome="done"]').waitFor();
// Cancelling a replay, which here waits at its first event, shows the run whole.
await page.evaluate(() => {
  const real = window.setTimeout;
  window.setTimeout = (act, ms) => real(act, ms === 400 ? 1e9 : ms);
  window.restoreTimeout = () => (window.setTimeout = real);
});
await page.getByRole("button", { name: "Replay" }).click();
await page.locator('.run[data-outcome="running"]').waitFor();
await page.getByRole("button", { name: "Cancel", exact: true }).click();
await page.locator('.run[data-outcome="done"] .answer').waitFor();
await page.evaluate(() => window.restoreTimeout());
await page.locator(".call[data-tool=run_sql] .cm-content").click();
await page.keyboard.press("ControlOrMeta+End");
await page.keyboard.insertText("\nLIMIT 1");
await page.getByRole("button", { name: "Run the edited query" }).click();
await page.locator('.query-view .status[data-outcome="done"]', { hasText: "1 row in" }).waitFor();
await view("Ask");
await page.getByRole("button", { name: "New question" }).click();
// The answer's text: what models write of Markdown, a list in a list, a column of numbers.
await page.getByRole("textbox", { name: "Question" }).fill("Say it in Markdown");
await page.keyboard.press("Enter");
await page.locator('.run[data-outcome="done"]').waitFor();
assert.equal(await page.locator(".answer-text em").innerText(), "only");
assert.equal(await page.locator(".answer-text ol > li > ul > li").count(), 2);
assert.equal(await page.locator(".answer-text p", { hasText: "dep_delay and arr_delay" }).count(), 1, "names are not slanted");
assert.equal(await page.locator(".answer-text hr").count(), 1);
assert.equal(await page.locator(".answer-text blockquote").innerText(), "A note.");
assert.match(await page.locator(".answer-text td.is-number").innerText(), /^7/);
assert.equal(await page.locator(".answer-text pre.code").innerText(), "SELECT carrier\n  FROM flights");
assert.equal(await page.locator(".answer-text td", { hasText: /^\s*a \| b\s*$/ }).count(), 1, "a bar with a backslash ends no cell");
await page.getByRole("button", { name: "Ask again" }).click();
await page.locator('.run[data-outcome="done"]').nth(1).waitFor();
assert.equal(await page.locator(".run h2", { hasText: "Say it in Markdown" }).count(), 2);
await page.getByRole("button", { name: "New question" }).click();
// An answer begins where it does, also where its number was said before the call.
await page.getByRole("textbox", { name: "Question" }).fill("Are there few airlines?");
await page.keyboard.press("Enter");
await page.locator('.run[data-outcome="done"]').waitFor();
assert.equal(await page.locator(".answer .answer-text").textContent(), "21 airlines.");
await page.getByRole("button", { name: "New question" }).click();
// What KQL's `render` says is drawn.
await page.getByRole("textbox", { name: "Question" }).fill("Show the share of each in a pie");
await page.keyboard.press("Enter");
await page.locator('.run[data-outcome="done"]').waitFor();
await shown(".call[data-tool=run_kql] .chart svg .mark-arc path");
await picture("pie");
await accessible("a pie");
// A question that is half written is there when another view was looked at.
await page.getByRole("textbox", { name: "Question" }).fill("Which of the");
await view("Catalog");
await view("Ask");
assert.equal(await page.getByRole("textbox", { name: "Question" }).inputValue(), "Which of the");
// A run that there is not stands alone, and not below another's answer.
await page.evaluate(() => (location.hash = "#/ask/run/00000000-0000-7000-8000-000000000000"));
await page.locator(".ask-thread .failure").waitFor();
assert.equal(await page.locator(".run").count(), 0);
// What takes almost two minutes is no minute and sixty seconds.
const long = "00000000-0000-7000-8000-000000000002";
const ended = { event: "run_finished", data: { outcome: "success", elapsed_ms: 119_700 } };
await page.route(`**/v1/agent/runs/${long}`, (route) => route.fulfill({
  json: { run_id: long, question: "How long?", model_id: "scripted", status: "success", trace: [ended] },
}));
await page.evaluate((id) => (location.hash = `#/ask/run/${id}`), long);
await page.locator(".run footer", { hasText: "2 min 0 s" }).waitFor();
await page.unroute(`**/v1/agent/runs/${long}`);
// A question that does not arrive is there to be sent again; a stream that breaks off is said in words.
await page.route("**/v1/agent/ask", (route) => route.abort());
await page.getByRole("textbox", { name: "Question" }).fill("Which carrier had the most flights?");
await page.keyboard.press("Enter");
await page.locator(".failure-code", { hasText: "unreachable" }).waitFor();
assert.equal(await page.getByRole("textbox", { name: "Question" }).inputValue(), "Which carrier had the most flights?");
await page.unroute("**/v1/agent/ask");
await page.evaluate(() => {
  const real = window.fetch;
  window.fetch = (address, init) => {
    if (!String(address).includes("/v1/agent/ask")) return real(address, init);
    window.fetch = real;
    const begun = 'event: run_started\ndata: {"run_id": "00000000-0000-7000-8000-000000000001", "question": "?"}\n\n';
    const body = new ReadableStream({
      start: (stream) => stream.enqueue(new TextEncoder().encode(begun)),
      // What came before is read by then: an error drops what waits in a stream.
      pull: (stream) => void setTimeout(() => stream.error(new TypeError("network error")), 500),
    });
    return Promise.resolve(new Response(body, { headers: { "content-type": "text/event-stream" } }));
  };
});
await page.keyboard.press("Enter");
await page.locator(".run .failure-code", { hasText: "stream_ended" }).waitFor();
await page.getByRole("button", { name: "New question" }).click();
// A call that writes waits for the person, and the run goes on with the decision.
await page.getByRole("textbox", { name: "Question" }).fill("Please keep one row");
await page.keyboard.press("Enter");
await page.locator('.run[data-outcome="paused"] .approval[data-state="waiting"]').waitFor();
await picture("approval");
await accessible("an approval");
const paused = page.url();
await page.getByRole("button", { name: "Approve" }).click();
await page.locator('.run[data-outcome="done"] .answer', { hasText: "Kept it." }).waitFor();
await page.locator('.approval[data-state="approved"]').waitFor();
await page.goto("about:blank");
await page.goto(paused);
await page.locator('.run[data-outcome="paused"] .approval[data-state="approved"]').waitFor();
assert.equal(await page.getByRole("button", { name: "Approve" }).count(), 0, "what is decided is not asked again");
await view("Query");
assert.match(await run("SELECT one FROM kept"), /^1 row in/);
await run("DROP TABLE kept");
// What is denied is not done.
await view("Ask");
await page.getByRole("button", { name: "New question" }).click();
await page.getByRole("textbox", { name: "Question" }).fill("Please keep one row");
await page.keyboard.press("Enter");
await page.locator('.run[data-outcome="paused"] .approval[data-state="waiting"]').waitFor();
await page.getByLabel("Why, for the model").fill("not today");
await page.getByRole("button", { name: "Deny" }).click();
await page.locator('.approval[data-state="denied"]').waitFor();
await page.locator('.run[data-outcome="done"] .answer').waitFor();
await accessible("a denial");
await view("Query");
await write("SELECT one FROM kept");
await page.keyboard.press("ControlOrMeta+Enter");
await page.locator(".failure-code", { hasText: "table_not_found" }).waitFor();
await view("Ask");
await page.getByRole("button", { name: "New question" }).click();
await page.getByRole("textbox", { name: "Question" }).fill("wait");
await page.keyboard.press("Enter");
await page.getByText("Wait", { exact: true }).waitFor();
// A page that is loaded anew goes on with the answer that was on its way.
await page.reload();
await page.locator('.run[data-outcome="running"]').getByText("Wait", { exact: true }).waitFor();
// Another window that shows it sees how it ends.
const elsewhere = await context.newPage();
if (token !== "") await elsewhere.addInitScript((known) => sessionStorage.setItem("querent.token", known), token);
await elsewhere.goto(page.url());
await elsewhere.locator('.run[data-outcome="running"]').waitFor();
// Who only looked at it does not end it with a question of their own.
const passing = await context.newPage();
if (token !== "") await passing.addInitScript((known) => sessionStorage.setItem("querent.token", known), token);
await passing.goto(page.url());
await passing.locator('.run[data-outcome="running"]').waitFor();
await passing.getByRole("button", { name: "New question" }).click();
await passing.locator(".run").waitFor({ state: "detached" });
await passing.close();
await page.bringToFront();

// Activity: the run that waits, a query that is killed.
await view("Activity");
await page.locator(".activity li", { hasText: "running" }).getByRole("button", { name: "Cancel" }).click();
await page.getByText("The question was cancelled").waitFor();
await elsewhere.locator('.run[data-outcome="failed"]').waitFor();
await elsewhere.close();
await view("Query");
await write("SELECT count(*) FROM generate_series(1, 1000000000) AS s(value) WHERE cos(value) > 2");
await page.keyboard.press("ControlOrMeta+Enter");
await page.locator('.status[data-outcome="running"]').waitFor();
await view("Activity");
await page.locator(".activity li", { hasText: "cos(value)" }).waitFor();
// The number is that of the list: what this page asks for itself is in neither.
const running = await page.locator(".numbers div", { hasText: "queries run now" }).locator("dd").innerText();
assert.equal(Number(running), await page.getByRole("list", { name: "Queries that run now" }).locator("li").count());
await picture("activity");
await accessible("Activity");
for (const room of [/memory of the server\s+[\d.]+ [MG]B/, /disk left\s+[\d.]+ [MGT]B/, /spilled to disk\s+[\d.]+ (bytes?|[kMG]B)/]) {
  assert.match(await page.locator(".numbers").innerText(), room);
}
await page.locator(".activity li", { hasText: "cos(value)" }).getByRole("button", { name: /^Kill query/ }).click();
await page.locator(".activity li", { hasText: "cos(value)" }).waitFor({ state: "detached" });
// A button stays that of its query where another one comes above it.
let listed = [1];
await page.route("**/v1/queries", (route) => route.fulfill({ json: { queries: listed.map((id) => ({
  id, statement: `SELECT ${id}`, subject: "me", default_database: "default", memory_bytes: 0, started_at: new Date(1e12 + id).toISOString(),
})) } }));
await page.getByRole("button", { name: "Kill query 1", exact: true }).focus();
listed = [1, 2];
await page.getByRole("button", { name: "Kill query 2", exact: true }).waitFor();
assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Kill query 1");
await page.unroute("**/v1/queries");
await view("Query");
await page.locator(".failure-code", { hasText: "cancelled" }).waitFor();

// Data in: a file with options of its own; one that cannot be read, with what helps.
await view("Data in");
const file = join(pictures, "people.csv");
const nothing = join(pictures, "nothing.csv");
writeFileSync(nothing, "");
await page.getByLabel("Files").setInputFiles(nothing);
await page.getByRole("button", { name: "Import", exact: true }).click();
await page.getByText("nothing.csv is empty").waitFor();
// A file that was edited since it was chosen is sent by no browser.
const edited = join(pictures, "edited.csv");
writeFileSync(edited, "n\n1\n");
await page.getByLabel("Files").setInputFiles(edited);
writeFileSync(edited, "n\n1\n2\n");
utimesSync(edited, new Date(0), new Date(0));
await page.getByRole("button", { name: "Import", exact: true }).click();
await page.locator(".failure-code", { hasText: "file_changed" }).waitFor();
// Files of two formats would be read as the first one is.
const records = join(pictures, "2024 people.json");
writeFileSync(records, '{"name": "Ada"}\n');
writeFileSync(file, "name;born\nAda;10.12.1815\nGrace;9.12.1906\n");
await page.getByLabel("Files").setInputFiles([records, file]);
assert.equal(await page.getByLabel("Table", { exact: true }).inputValue(), "t_2024_people");
await page.getByRole("button", { name: "Import", exact: true }).click();
await page.getByText("are of two formats").waitFor();
await page.getByLabel("Files").setInputFiles(file);
const table = `people_${Date.now()}`;
await page.getByLabel("Table", { exact: true }).fill(table);
await page.getByText("How to read the text").click();
await page.getByLabel("Dates", { exact: true }).fill("%d.%m.%Y");
await page.getByRole("button", { name: "Import", exact: true }).click();
await page.getByText("2 rows became").waitFor();
await picture("import");
// An import goes on where another view is looked at, and how it ends is there; what is done with is not there again.
let letGo;
const held = new Promise((resolve) => (letGo = resolve));
await page.route("**/v1/import*", (route) => held.then(() => route.continue()));
await page.getByRole("combobox", { name: "If the table is there" }).selectOption("replace");
await page.getByRole("button", { name: "Import", exact: true }).click();
await page.locator(".sending").waitFor();
await view("Catalog");
await view("Data in");
await page.locator(".sending").waitFor();
await view("Catalog");
letGo();
await page.waitForResponse("**/v1/import*");
await view("Data in");
await page.getByText("2 rows became").waitFor();
await view("Catalog");
await view("Data in");
assert.equal(await page.locator(".files, .done").count(), 0);
await page.unroute("**/v1/import*");
// Lines that were set aside are a click away.
const lines = join(pictures, "lines.csv");
const numbers = `numbers_${Date.now()}`;
writeFileSync(lines, "n\n1\nx\n2\n");
await page.getByLabel("Files").setInputFiles(lines);
await page.getByText("How to read the text").click();
await page.getByLabel("Table", { exact: true }).fill(numbers);
await page.getByLabel("Types", { exact: true }).fill("n=BIGINT");
await page.getByLabel("Set bad lines aside", { exact: true }).fill("true");
await page.getByRole("button", { name: "Import", exact: true }).click();
await page.locator(".warning", { hasText: "1 line could not be read" }).getByRole("link").click();
await page.getByRole("heading", { name: `default.${numbers}_rejects`, exact: true }).waitFor();
await page.locator(".facts th[scope=row]").first().waitFor();
await view("Query");
await run(`DROP TABLE ${numbers}`);
await run(`DROP TABLE ${numbers}_rejects`);
// An option that is to be empty is written as SQL has an empty text.
await view("Data in");
const quotes = join(pictures, "quotes.csv");
writeFileSync(quotes, 'a,b\n"x,NA\n');
await page.getByLabel("Files").setInputFiles(quotes);
await page.getByLabel("Table", { exact: true }).fill(`quotes_${table}`);
await page.getByText("How to read the text").click();
await page.getByLabel("Quote", { exact: true }).fill("''");
await page.getByLabel("Null is", { exact: true }).fill("''");
await page.getByRole("button", { name: "Import", exact: true }).click();
await page.getByRole("link", { name: `default.quotes_${table}`, exact: true }).waitFor();
await view("Query");
await run(`SELECT a, b FROM quotes_${table}`);
await cellsAre(['"x', "NA"]);
await run(`DROP TABLE quotes_${table}`);
await view("Data in");
await page.getByLabel("Files").setInputFiles(file);
await page.getByLabel("Table", { exact: true }).fill(table);
await page.getByText("How to read the text").click();
// A workbook has a sheet, and no delimiter.
await page.getByRole("combobox", { name: "Format" }).selectOption("xlsx");
await page.getByLabel("Sheet", { exact: true }).waitFor();
assert.equal(await page.getByLabel("Delimiter", { exact: true }).count(), 0);
await page.getByRole("combobox", { name: "Format" }).selectOption("csv");
await accessible("Data in");
await page.getByRole("button", { name: "Import", exact: true }).click();
await page.locator(".failure-code", { hasText: "already_exists" }).waitFor();
await view("Query");
// A command that changes something is not run again for a download, whatever stands before it.
await page.getByRole("button", { name: "+ KQL" }).click();
await run("// all of them\n.show graph_models");
assert.ok(await page.getByRole("button", { name: "Download" }).isEnabled());
const steps = '[{"Kind": "AddEdges", "Query": "flights", "SourceColumn": "carrier", "TargetColumn": "dep_delay"}]';
await run(`// one more\n.create-or-alter graph_model Made {"Schema": {"Nodes": {}, "Edges": {}}, "Definition": {"Steps": ${steps}}}`);
assert.ok(await page.getByRole("button", { name: "Download" }).isDisabled());
await run(".drop graph_model Made");
await page.getByRole("button", { name: "+ SQL" }).click();
// Of a value that is very long a part is shown.
await run("SELECT repeat('x', 1000000) AS long");
await page.getByRole("grid").focus();
await page.keyboard.press("Enter");
await page.getByText("The first 200,000 letters of 1,000,000").waitFor();
await page.keyboard.press("Escape");
assert.match(await run(`SELECT born FROM ${table} WHERE born < DATE '1900-01-01'`), /^1 row in/);
await run(`DROP TABLE ${table}`);

// A file that is dropped on another view opens this one, and options that are set are seen.
await view("Catalog");
await page.evaluate(() => {
  const files = new DataTransfer();
  files.items.add(new File(["a;b\n1;2\n"], "dropped.csv"));
  document.querySelector(".main").dispatchEvent(new DragEvent("drop", { dataTransfer: files, bubbles: true, cancelable: true }));
});
await page.locator(".files", { hasText: "dropped.csv" }).waitFor();
await page.getByText("How to read the text").click();
await page.getByLabel("Delimiter", { exact: true }).fill(";");
await page.getByText("said: Delimiter").waitFor();

// Settings, and every view small and dark.
await view("Settings");
await page.getByText("Python (ADBC").click();
await page.locator(".recipe[open] .code", { hasText: new URL(url).host }).first().waitFor();
// Programs that take an address of their own are set up with a click.
const added = async (name) => page.locator(".recipe").getByRole("link", { name, includeHidden: true }).getAttribute("href");
const mcp = { url: `${new URL(url).origin}/mcp`, ...(token === "" ? {} : { headers: { Authorization: "Bearer TOKEN" } }) };
const cursor = new URL(await added("Add to Cursor"));
assert.deepEqual([cursor.protocol, JSON.parse(atob(cursor.searchParams.get("config")))], ["cursor:", mcp]);
const [scheme, config] = (await added("Add to VS Code")).split("?");
assert.deepEqual([scheme, JSON.parse(decodeURIComponent(config))], ["vscode:mcp/install", { name: "querent", type: "http", ...mcp }]);
if (token === "") {
  // Administrators see the server's settings.
  await page.getByText(/^\d+ settings, /).click();
  await page.getByLabel("Find a setting").fill("log.format");
  await page.locator("tr", { hasText: "log.format" }).waitFor();
}
// A model is tried with a click.
await page.getByRole("button", { name: "Try it: scripted" }).click();
await page.locator(".activity li", { hasText: /Answered in .*: Ready\./ }).waitFor();
assert.equal(await page.getByRole("button", { name: "Create a token" }).count(), token === "" ? 1 : 0, "tokens are an administrator's");
await picture("settings");
await accessible("Settings");
// Where nothing else was chosen the system's looks hold, also when they change, and charts are drawn for them.
await page.getByRole("group", { name: "Looks" }).getByRole("button", { name: "As the system" }).click();
await view("Query");
await run("SELECT 'a' AS name, 1 AS n");
await page.getByRole("group", { name: "What to show" }).getByRole("button", { name: "Chart" }).click();
for (const [scheme, other, colour] of [["dark", "Light", "#c3cbdd"], ["light", "Dark", "#3a4358"]]) {
  await page.emulateMedia({ colorScheme: scheme });
  await page.locator(".nav button", { hasText: other }).waitFor();
  await page.locator(`.chart svg text[fill="${colour}"]`).first().waitFor();
}
await page.getByRole("group", { name: "What to show" }).getByRole("button", { name: "Rows" }).click();
for (const theme of ["Light", "Dark"]) {
  await view("Settings");
  await page.getByRole("group", { name: "Looks" }).getByRole("button", { name: theme }).click();
  // The last is 1280 pixels at a zoom of 400 %.
  for (const size of [{ width: 1280, height: 800 }, { width: 390, height: 844 }, { width: 320, height: 256 }]) {
    await page.setViewportSize(size);
    for (const name of ["Ask", "Query", "Catalog", "Data in", "Activity", "Settings"]) {
      await view(name);
      await page.waitForFunction(() => document.querySelector(".view") !== null);
      const isWide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
      assert.ok(!isWide, `${name} is wider than ${size.width} pixels`);
      if (theme === "Dark") await picture(`${name.toLowerCase().replace(" ", "-")}-dark-${size.width}`);
      await accessible(`${name}, ${theme}, ${size.width}`);
    }
  }
}

// The smallest of them has room for rows and for a question.
const isSeen = (selector) => page.evaluate((wanted) => {
  const found = document.querySelector(wanted);
  found.scrollIntoView({ block: "center" });
  const { left, top, height } = found.getBoundingClientRect();
  return found.contains(document.elementFromPoint(left + 4, top + height / 2));
}, selector);
await view("Query");
await run("SELECT 42 AS answer");
assert.ok(await isSeen(".grid-row:not([hidden]) .grid-cell"), "rows cannot be seen");
await view("Ask");
assert.ok(await isSeen(".composer textarea"), "the question cannot be written");
assert.ok(await isSeen(".question"), "the answer cannot be seen");

// Who forgets the token leaves no names of tables and no questions behind.
if (token !== "") {
  await page.setViewportSize({ width: 1280, height: 800 });
  await view("Settings");
  await page.getByRole("button", { name: "Forget it" }).click();
  await view("Ask");
  await page.getByText("None yet.").waitFor();
  assert.equal(await page.locator(".run").count(), 0);
  await page.keyboard.press("ControlOrMeta+K");
  await page.keyboard.type("airlines");
  assert.equal(await page.locator(".palette li", { hasText: "default.airlines" }).count(), 0);
  await page.keyboard.press("Escape");
}

// The reference, to which the settings link: every route, and what is in the lists of its answers.
await page.goto(new URL("/docs", url).href);
await page.getByRole("heading", { name: "errors", exact: true }).waitFor();
const { paths } = await page.evaluate(async () => (await fetch("/openapi.json")).json());
assert.equal(await page.locator("details").count(), Object.values(paths).flatMap((item) => Object.keys(item)).length);
await page.locator("#get_v1_catalog_search summary").click();
await page.getByText("hits[].found_by", { exact: true }).waitFor();

assert.deepEqual(faults, []);
await browser.close();
console.log("ok");
