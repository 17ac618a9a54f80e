// Measures how soon the words of an answer are on the screen after the server has sent them: of each word, from when it
// passes between the server and Chromium to after the frame that shows it.
//
// usage: node console_tokens.mjs FOLDER_WITH_NODE_MODULES URL MOST_MILLISECONDS
//
// The server has a scripted model that answers "word by word" with some hundred words.

import assert from "node:assert/strict";
import { createServer, request } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";

const [folder, url, most] = process.argv.slice(2);
const { chromium } = createRequire(join(folder, "package.json"))("playwright-core");
const server = new URL(url);
const LEAST_WORDS = 100;

const clock = () => performance.timeOrigin + performance.now();
/** When each word of the answer was sent, in milliseconds of the machine's clock. */
const sent = [];

/** Notes the words that are whole in what has come of a stream of events. */
function noteWords(events) {
  const text = [...events.matchAll(/event: answer_delta\r?\ndata: (.*)\r?\n/g)].map(([, data]) => JSON.parse(data).text).join("");
  const words = text.split(/\s+/).filter((word) => word !== "").length;
  while (sent.length < words) sent.push(clock());
}

const between = createServer((asked, answer) => {
  const { method, url: path, headers } = asked;
  const passed = request({ host: server.hostname, port: server.port, method, path, headers }, (reply) => {
    answer.writeHead(reply.statusCode, reply.headers);
    let events = "";
    reply.on("data", (piece) => {
      if (path === "/v1/agent/ask") noteWords((events += piece));
      answer.write(piece);
    });
    reply.on("end", () => answer.end());
  });
  passed.on("error", () => answer.destroy());
  asked.pipe(passed);
});
await new Promise((listening) => between.listen(0, "127.0.0.1", listening));

const browser = await chromium.launch({
  executablePath: process.env.QUERENT_CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"],
});
// So small that the words do not fit: they are followed.
const page = await browser.newPage({ viewport: { width: 390, height: 640 } });
await page.goto(`http://127.0.0.1:${between.address().port}/#/ask`);
await page.getByRole("textbox", { name: "Question" }).fill("Answer word by word");
await page.evaluate(() => {
  const seen = (window.seen = []);
  const look = () => {
    const text = document.querySelector(".run .answer-text")?.textContent ?? "";
    const words = text.split(/\s+/).filter((word) => word !== "").length;
    if (words <= seen.length) return;
    // A task after the next frame comes when that frame was painted.
    requestAnimationFrame(() => {
      const painted = new MessageChannel();
      painted.port1.onmessage = () => {
        while (seen.length < words) seen.push(performance.timeOrigin + performance.now());
        const thread = document.querySelector(".ask-thread");
        window.below = Math.max(window.below ?? 0, thread.scrollHeight - thread.scrollTop - thread.clientHeight);
      };
      painted.port2.postMessage(null);
    });
  };
  new MutationObserver(look).observe(document.body, { childList: true, subtree: true, characterData: true });
});
await page.keyboard.press("Enter");
await page.locator('.run[data-outcome="done"]').waitFor();
await page.waitForTimeout(200); // The last frame.
const { seen, below, top } = await page.evaluate(() =>
  ({ seen: window.seen, below: window.below, top: document.querySelector(".ask-thread").scrollTop }));
await browser.close();
between.close();
between.closeAllConnections();

const count = Math.min(sent.length, seen.length);
assert.ok(count >= LEAST_WORDS, `${sent.length} words were sent, ${seen.length} seen`);
const waits = sent.slice(0, count).map((at, word) => seen[word] - at).sort((one, other) => one - other);
const [half, p99] = [waits[count >> 1], waits[Math.ceil(count * 0.99) - 1]];
console.log(`${count} words: on the screen ${half.toFixed(1)} ms after they were sent, p99 ${p99.toFixed(1)} ms, the first ${(seen[0] - sent[0]).toFixed(1)} ms`);
assert.ok(top > 0 && below < 60, `the last words stood up to ${below} pixels below the view, which is at ${top}`);
assert.ok(p99 < Number(most), `p99 is ${p99.toFixed(1)} ms, of ${most} at most`);
console.log("ok");
