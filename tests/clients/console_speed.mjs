// Measures the console in Chromium: its first paint and its scripts, and a million rows in the grid.
//
// usage: node console_speed.mjs FOLDER_WITH_NODE_MODULES URL TIMES
//
// The bars are for a released build on a quiet machine; TIMES is how many times as long things may take here. What is sent
// may be no more anywhere.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";

const [folder, url, times = "1"] = process.argv.slice(2);
const { chromium } = createRequire(join(folder, "package.json"))("playwright-core");
const LOADS = 3;
const PATIENCE = Number(process.env.QUERENT_CONSOLE_PATIENCE ?? 120_000);
const BARS = { paint: 1000, script: 200_000, rows: 300, frame: 50 };
const MILLION = "SELECT value AS i, value * 0.5 AS half, 'row ' || value AS label FROM generate_series(1, 1000000) AS s(value)";

const browser = await chromium.launch({
  executablePath: process.env.QUERENT_CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"],
});
const median = (values) => values.toSorted((one, other) => one - other)[values.length >> 1];

/** A browser that has nothing of the console yet opens it: milliseconds to its first paint, bytes of its scripts. */
async function load() {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  await browser.startTracing(page, { categories: ["loading", "blink.user_timing"] });
  await page.goto(url);
  await page.locator(".query-view .cm-content").waitFor();
  const { traceEvents } = JSON.parse(await browser.stopTracing());
  const painted = traceEvents.find(({ name, args }) => name === "firstContentfulPaint" && args.data?.navigationId);
  assert.ok(painted, "Chromium's trace has no first contentful paint");
  const of = ({ args }) => args.data?.navigationId === painted.args.data.navigationId;
  const begun = traceEvents.find((event) => event.name === "navigationStart" && of(event));
  const scripts = await page.evaluate(() =>
    performance.getEntriesByType("resource").filter(({ name }) => name.endsWith(".js")).map(({ encodedBodySize }) => encodedBodySize));
  await context.close();
  return { paint: (painted.ts - begun.ts) / 1000, script: scripts.reduce((sum, bytes) => sum + bytes, 0) };
}

const loads = [];
for (let at = 0; at < LOADS; at++) loads.push(await load());
const paint = median(loads.map((one) => one.paint));
const { script } = loads[0];
console.log(`first contentful paint ${paint.toFixed(0)} ms, the median of ${LOADS}; ${script} bytes of script, compressed`);

const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
page.setDefaultTimeout(PATIENCE);
await page.goto(url);
await page.locator(".query-view .cm-content").click();

/**
 * Milliseconds from the key that runs the statement to the frame that has its first rows, and how many of them passed before the
 * server began to answer.
 */
async function firstRows(statement) {
  await page.keyboard.press("ControlOrMeta+A");
  await page.keyboard.insertText(statement);
  await page.evaluate(() => {
    window.firstRows = new Promise((shown) => {
      let began = 0;
      const pressed = (event) => {
        if (event.key !== "Enter") return;
        document.removeEventListener("keydown", pressed, true);
        began = performance.now();
        look();
      };
      // The rows of the statement before are there until its own first ones are.
      const before = document.querySelector(".grid-row:not([hidden]) .grid-cell")?.textContent ?? "";
      const look = () => {
        const text = document.querySelector(".grid-row:not([hidden]) .grid-cell")?.textContent ?? "";
        if (text !== "" && text !== before) requestAnimationFrame(() => shown(performance.now() - began));
        else requestAnimationFrame(look);
      };
      document.addEventListener("keydown", pressed, true);
    });
  });
  await page.evaluate(() => performance.clearResourceTimings());
  await page.keyboard.press("ControlOrMeta+Enter");
  const shown = await page.evaluate(() => window.firstRows);
  await page.locator('.status[data-outcome="done"]', { hasText: /^1,000,000 rows in/ }).waitFor();
  const served = await page.evaluate(() => {
    const request = performance.getEntriesByType("resource").find(({ name }) => name.includes("/v1/query"));
    return request.responseStart - request.startTime;
  });
  return { shown, served };
}

/**
 * The frames, longest first, while the wheel turns over the rows, and the processor time of the page's longest task meanwhile, which
 * other programs on the machine do not make longer.
 */
async function scrolling() {
  await page.locator(".grid").hover();
  await browser.startTracing(page, { categories: ["toplevel"] });
  await page.evaluate(() => {
    window.frames = [];
    let before = performance.now();
    const next = () => {
      const now = performance.now();
      window.frames.push(now - before);
      before = now;
      window.framesTimer = requestAnimationFrame(next);
    };
    window.framesTimer = requestAnimationFrame(next);
  });
  for (let turn = 0; turn < 120; turn++) await page.mouse.wheel(0, 4_000);
  const frames = await page.evaluate(() => {
    cancelAnimationFrame(window.framesTimer);
    return window.frames.slice(1).sort((one, other) => other - one);
  });
  const { traceEvents } = JSON.parse(await browser.stopTracing());
  const threads = traceEvents.filter(({ name, args }) => name === "thread_name" && args.name === "CrRendererMain");
  const isPages = ({ pid, tid }) => threads.some((thread) => thread.pid === pid && thread.tid === tid);
  const tasks = traceEvents.filter((event) => event.name.endsWith("RunTask") && event.tdur !== undefined && isPages(event));
  assert.ok(tasks.length > frames.length, `Chromium's trace has ${tasks.length} tasks`);
  return { frames, task: Math.max(...tasks.map(({ tdur }) => tdur)) / 1000 };
}

// What the page loads for its first rows is there by then, and each run has another first row.
const waits = [];
for (let at = 0; at < LOADS + 1; at++) {
  waits.push(await firstRows(MILLION.replace("1, 1000000", `${at + 1}, ${1_000_000 + at}`)));
  if (at === 0) console.log(`the first rows of all after ${waits[0].shown.toFixed(0)} ms, with what the page loads for them`);
}
const rows = median(waits.slice(1).map(({ shown }) => shown));
const served = median(waits.slice(1).map((wait) => wait.served));
const { frames, task } = await scrolling();
const late = frames.filter((frame) => frame > BARS.frame).length;
console.log(`first rows of a million after ${rows.toFixed(0)} ms, the median of ${LOADS}; the server began to answer after ${served.toFixed(0)} ms`);
console.log(`scrolling them: ${frames.length} frames, ${median(frames).toFixed(0)} ms in the middle, ${frames[0].toFixed(0)} ms at most, ${late} over ${BARS.frame} ms`);
console.log(`the longest task of the page meanwhile took ${task.toFixed(1)} ms of processor time`);
const seen = await page.locator(".grid").evaluate((grid) => grid.scrollTop);
assert.ok(seen > 0, "the wheel moved nothing");
await browser.close();

const most = (bar) => bar * Number(times);
assert.ok(script > 0 && script < BARS.script, `${script} bytes of script, of ${BARS.script} at most`);
for (const [what, value, bar] of [["first paint", paint, BARS.paint], ["first rows", rows, BARS.rows], ["a frame", frames[0], BARS.frame]]) {
  assert.ok(value < most(bar), `${what} took ${value.toFixed(0)} ms, of ${most(bar)} at most`);
}
assert.ok(task < most(BARS.frame), `a task of the page took ${task.toFixed(1)} ms of processor time, of ${most(BARS.frame)} at most`);
console.log("ok");
