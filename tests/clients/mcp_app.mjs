// The viewer of results as an MCP host shows it: a page with a sandboxed frame under the policy that the specification
// makes of no declared domains, and this program as the host, which passes the server's own results on.
//
// usage: node mcp_app.mjs FOLDER_WITH_NODE_MODULES URL FOLDER_FOR_PICTURES
//
// The server has a scripted model that answers any question with "It is 42." after `SELECT 42 AS n`.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [folder, url, pictures] = process.argv.slice(2);
const require = createRequire(join(folder, "package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const MIME_TYPE = "text/html;profile=mcp-app";
const POLICY =
  "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
  "media-src 'self' data:; connect-src 'none'; frame-src 'none'; object-src 'none'; base-uri 'self'";

/** Asks the server for one result. */
async function server(method, params) {
  const answer = await fetch(new URL("/mcp", url), {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  const text = await answer.text();
  const lines = text.split("\n").filter((line) => line.startsWith("data:")).map((line) => line.slice(5));
  const { result, error } = JSON.parse(lines.at(-1) ?? text);
  assert.ok(result, JSON.stringify(error));
  return result;
}

// The viewer is named to a host that says that it shows such.
const extensions = { "io.modelcontextprotocol/ui": { mimeTypes: [MIME_TYPE] } };
const { tools } = await server("tools/list", { _meta: { "io.modelcontextprotocol/clientCapabilities": { extensions } } });
const run = tools.find(({ name }) => name === "run_sql");
const { contents: [{ mimeType, text: html }] } = await server("resources/read", { uri: run._meta.ui.resourceUri });
assert.equal(mimeType, MIME_TYPE);

const browser = await chromium.launch({
  executablePath: process.env.QUERENT_CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"],
});
const faults = [];

/** Opens the viewer and goes through the protocol's beginning. */
async function opened(tool, { context = {}, capabilities = {}, width = 720 } = {}) {
  const page = await browser.newPage({ viewport: { width: width + 40, height: 900 } });
  page.setDefaultTimeout(30_000);
  page.on("pageerror", (error) => faults.push(`an exception: ${error.message}`));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  const host = `<!doctype html><html lang="en"><title>Host</title><body style="margin:0">
    <iframe title="Result" sandbox="allow-scripts" src="http://view.test/" style="border:0;width:${width}px;height:50px"></iframe>
    <script>
      addEventListener("message", ({ data, source }) => {
        const frame = document.querySelector("iframe");
        if (source !== frame.contentWindow) return;
        if (data.method === "ui/notifications/size-changed") frame.style.height = data.params.height + "px";
        window.heard(data);
      });
    </script>`;
  await page.route("**/*", (route) => {
    const at = route.request().url();
    if (at === "http://host.test/") return route.fulfill({ contentType: "text/html", body: host });
    if (at === "http://view.test/") {
      return route.fulfill({ contentType: "text/html", body: html, headers: { "content-security-policy": POLICY } });
    }
    if (!at.endsWith("/favicon.ico")) faults.push(`a request to ${at}`);
    return route.abort();
  });
  const heard = [];
  const listeners = new Set();
  await page.exposeFunction("heard", (message) => {
    heard.push(message);
    for (const listener of listeners) listener();
  });
  const message = (what, wanted) => new Promise((resolve, reject) => {
    const patience = setTimeout(() => reject(new Error(`no ${what} in ${JSON.stringify(heard)}`)), 30_000);
    const look = () => {
      const found = heard.find(wanted);
      if (!found) return;
      clearTimeout(patience);
      listeners.delete(look);
      resolve(found);
    };
    listeners.add(look);
    look();
  });
  const send = (said) => page.evaluate(
    (data) => document.querySelector("iframe").contentWindow.postMessage(data, "*"), { jsonrpc: "2.0", ...said });
  const asked = (method) => message(method, (one) => one.method === method);
  await page.goto("http://host.test/");
  const begun = await asked("ui/initialize");
  assert.equal(begun.jsonrpc, "2.0");
  assert.equal(begun.params.protocolVersion, "2026-01-26");
  assert.deepEqual(Object.keys(begun.params.appInfo).sort(), ["name", "title", "version"]);
  assert.deepEqual(begun.params.appCapabilities, { availableDisplayModes: ["inline", "fullscreen"] });
  assert.ok(!heard.some(({ method }) => method === "ui/notifications/initialized"), "it waits for the answer");
  await send({ id: begun.id, result: {
    protocolVersion: "2026-01-26",
    hostInfo: { name: "test", version: "1" },
    hostCapabilities: capabilities,
    hostContext: { theme: "light", toolInfo: { tool }, ...context },
  } });
  await asked("ui/notifications/initialized");
  const frame = page.frameLocator("iframe");
  const notify = (method, params) => send({ method: `ui/notifications/${method}`, params });
  return { page, frame, heard, message, asked, send, notify };
}

async function called(view, name, input) {
  await view.notify("tool-input", { arguments: input });
  const result = await server("tools/call", { name, arguments: input });
  await view.notify("tool-result", result);
  return result;
}

const sql = (view, query, more = {}) => called(view, "run_sql", { sql: query, ...more });
const texts = (view, selector) => view.frame.locator(selector).allInnerTexts();
const status = (view, text) => view.frame.locator("#status", { hasText: text }).waitFor();
const picture = (view, name) => view.page.screenshot({ path: join(pictures, `mcp-app-${name}.png`) });

async function accessible(view, name) {
  const frame = view.page.frames().at(-1);
  const found = await frame.evaluate(`${axe}; axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
    violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html }) => html.slice(0, 160)).join(" | ")))`);
  assert.deepEqual(found, [], `axe on ${name}`);
}

// Bars, a table that is sorted, and the size.
const view = await opened(run);
await sql(view, "SELECT * FROM (VALUES ('UA', 3), ('B6', 20), ('EV', NULL), ('<b>AA</b>', 100)) AS t(carrier, flights)");
await status(view, "4 rows");
await view.frame.locator("#chart svg rect.mark").nth(2).waitFor();
assert.equal(await view.frame.locator("#chart svg rect.mark").count(), 3, "a missing value has no bar");
assert.deepEqual(await texts(view, "tbody td:first-child"), ["UA", "B6", "EV", "<b>AA</b>"]);
const header = view.frame.getByRole("button", { name: "flights" });
await header.click();
assert.deepEqual(await texts(view, "tbody td:last-child"), ["3", "20", "100", "null"]);
assert.equal(await view.frame.locator("th[aria-sort=ascending]").count(), 1);
await header.click();
assert.deepEqual(await texts(view, "tbody td:last-child"), ["100", "20", "3", "null"]);
await header.click();
assert.deepEqual(await texts(view, "tbody td:last-child"), ["3", "20", "null", "100"]);
const frame = view.page.frames().at(-1);
await frame.waitForFunction(() => Math.abs(document.body.getBoundingClientRect().height - innerHeight) < 2);
const sizes = view.heard.filter(({ method }) => method === "ui/notifications/size-changed");
assert.ok(sizes.length < 10 && sizes.at(-1).params.width === 720, JSON.stringify(sizes));
await accessible(view, "bars");
await picture(view, "bars");

// The theme and the variables of the host, at the beginning and when they change.
const back = () => frame.evaluate(() => getComputedStyle(document.body).backgroundColor);
assert.equal(await back(), "rgb(255, 255, 255)");
await view.notify("host-context-changed", { theme: "dark" });
await frame.waitForFunction(() => getComputedStyle(document.body).backgroundColor === "rgb(22, 26, 34)");
await accessible(view, "bars in the dark");
await picture(view, "bars-dark");
await view.notify("host-context-changed", { styles: { variables: { "--color-background-primary": "rgb(1, 2, 3)" } } });
await frame.waitForFunction(() => getComputedStyle(document.body).backgroundColor === "rgb(1, 2, 3)");
await view.notify("host-context-changed", { theme: "light", styles: { variables: { "--color-background-primary": "#fff" } } });

// Lines over time, points, bars that lie, several measures; each with the marks that its rows have.
for (const [name, query, selector, marks] of [
  ["line", "SELECT * FROM (VALUES (DATE '2013-01-01', 4), (DATE '2013-02-01', 9), (DATE '2013-03-01', 1)) AS t(day, n)",
    "polyline.mark", 1],
  ["lines", "SELECT * FROM (VALUES (DATE '2013-01-01', 'UA', 1), (DATE '2013-01-01', 'B6', 4), (DATE '2013-01-02', 'UA', 2), \
(DATE '2013-01-02', 'B6', 3)) AS t(day, carrier, n)", "polyline.mark", 2],
  ["points", "SELECT value * 1.5 AS distance, value * value + 0.5 AS delay FROM generate_series(1, 30) AS s(value)", "circle.mark", 30],
  ["lying", "SELECT * FROM (VALUES ('United Air Lines Incorporated', 1.5), ('JetBlue Airways and Company', -2.25)) AS t(name, share)",
    "rect.mark", 2],
  ["grouped", "SELECT * FROM (VALUES ('a', 4, 5), ('b', 9, 3)) AS t(k, one, two)", "rect.mark", 4],
]) {
  const { structuredContent } = await sql(view, query);
  assert.ok(structuredContent?.vegaSpec, `${name} is worth a chart: ${JSON.stringify(structuredContent)}`);
  await status(view, `${structuredContent.rows.length} rows`);
  await view.frame.locator(`#chart svg ${selector}`).first().waitFor({ state: "attached" });
  assert.equal(await view.frame.locator(`#chart svg ${selector}`).count(), marks, name);
  await accessible(view, name);
  await picture(view, name);
}

// What is cut is said; values are those of the result, and big integers are sorted by value.
await sql(view, "SELECT value FROM generate_series(1, 5000) AS s(value)", { max_rows: 10 });
await status(view, /^Cut: the first 10 of 5,000 rows$/);
assert.equal(await view.frame.locator("#chart svg").count(), 0, "the chart of the result before is gone");
await sql(view, "SELECT * FROM (VALUES (9007199254740993, [1, 2]), (9007199254740992, NULL), (7, [0])) AS t(big, list)");
await status(view, "3 rows");
await view.frame.getByRole("button", { name: "big" }).click();
assert.deepEqual(await texts(view, "tbody td:first-child"), ["7", "9007199254740992", "9007199254740993"]);
assert.deepEqual((await texts(view, "tbody td:last-child")).map((text) => text.replaceAll(" ", "")), ["[0]", "null", "[1,2]"]);

// Failures, cancelling, and requests of the host.
await sql(view, "SELECT * FROM nowhere");
await status(view, "Failed: table_not_found");
await view.frame.locator("#failure", { hasText: "nowhere" }).waitFor();
await accessible(view, "a failure");
await view.notify("tool-cancelled", { reason: "user action" });
await status(view, "The call was cancelled: user action");
await view.send({ id: 71, method: "ping", params: {} });
await view.send({ id: 72, method: "ui/resource-teardown", params: {} });
await view.send({ id: 73, method: "ui/nothing", params: {} });
const answer = (id) => view.message(`an answer to ${id}`, (one) => one.id === id && one.method === undefined);
assert.deepEqual((await answer(71)).result, {});
assert.deepEqual((await answer(72)).result, {});
assert.equal((await answer(73)).error.code, -32601);
await view.page.close();

// An answer of the agent: its rows come by a call through the host, which may have none.
const ask = tools.find(({ name }) => name === "ask");
const alone = await opened(ask);
await called(alone, "ask", { question: "how many?" });
await alone.frame.locator("#answer", { hasText: "It is 42." }).waitFor();
assert.equal(await alone.frame.getByRole("button", { name: "Show the rows" }).count(), 0);
await alone.page.close();
const asking = await opened(ask, {
  capabilities: { serverTools: {} },
  context: { theme: "dark", displayMode: "inline", availableDisplayModes: ["inline", "fullscreen"] },
  width: 360,
});
await called(asking, "ask", { question: "how many?", database: "default" });
await asking.frame.locator("#answer", { hasText: "It is 42." }).waitFor();
await asking.frame.getByRole("button", { name: "Show the rows" }).click();
const call = await asking.asked("tools/call");
assert.deepEqual(call.params, { name: "run_sql", arguments: { sql: "SELECT 42 AS n", database: "default" } });
await asking.send({ id: call.id, result: await server("tools/call", call.params) });
await status(asking, "1 row");
assert.deepEqual(await texts(asking, "tbody td"), ["42"]);
await asking.frame.getByRole("button", { name: "Full screen" }).click();
const mode = await asking.asked("ui/request-display-mode");
assert.deepEqual(mode.params, { mode: "fullscreen" });
await asking.send({ id: mode.id, result: { mode: "fullscreen" } });
await asking.frame.getByRole("button", { name: "Back" }).waitFor();
await accessible(asking, "an answer, small");
await picture(asking, "answer-small");

assert.deepEqual(faults, []);
await browser.close();
console.log("ok");
