// Drives a server with @microsoft/fetch-event-source, unchanged. Every check must hold.
//
// usage: node holmes.mjs FOLDER_WITH_NODE_MODULES URL

import assert from "node:assert/strict";
import { createServer, connect } from "node:net";
import { createRequire } from "node:module";
import { join } from "node:path";

const [folder, url] = process.argv.slice(2);
// What the library wants of a browser.
globalThis.window = globalThis;
globalThis.document = { hidden: false, addEventListener() {}, removeEventListener() {} };
const { fetchEventSource } = createRequire(join(folder, "package.json"))("@microsoft/fetch-event-source");

const frontendTools = [
  {
    name: "render_chart",
    description: "Draws a metric.",
    mode: "pause",
    parameters: {
      type: "object",
      properties: { chart_type: { type: "string", enum: ["line", "bar", "pie"] }, metric: { type: "string" } },
      required: ["chart_type", "metric"],
    },
  },
  {
    name: "navigate_to_page",
    description: "Shows another view.",
    mode: "noop",
    noop_response: "Shown.",
  },
];

/** One request; its events as the page's handler gets them. */
async function streamChat(body, base = url) {
  const events = [];
  await fetchEventSource(`${base}/api/chat`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ stream: true, ...body }),
    onmessage(event) {
      events.push({ event: event.event, id: event.id, data: JSON.parse(event.data) });
    },
  });
  return events;
}

/** Passes bytes on to the server, and cuts the first connection once the server has said `word`. */
async function cuttingProxy(word) {
  const { hostname, port } = new URL(url);
  const seen = { connections: 0 };
  const proxy = createServer((client) => {
    const cuts = seen.connections++ === 0;
    const upstream = connect(Number(port), hostname);
    client.on("data", (bytes) => upstream.write(bytes)).on("close", () => upstream.destroy()).on("error", () => {});
    upstream.on("close", () => client.end()).on("error", () => {});
    upstream.on("data", (bytes) => {
      client.write(bytes, () => {
        if (cuts && bytes.includes(word)) setTimeout(() => (client.destroy(), upstream.destroy()), 50);
      });
    });
  });
  await new Promise((listening) => proxy.listen(0, "127.0.0.1", listening));
  return { seen, base: `http://127.0.0.1:${proxy.address().port}`, close: () => proxy.close() };
}

const names = (events) => events.map(({ event }) => event);
const last = (events) => events.at(-1);

const checks = {
  async "a question, and another in the same conversation"() {
    const first = await streamChat({ ask: "tools" });
    assert.deepEqual(names(first), [
      "token_count", "ai_message", "start_tool_calling", "tool_calling_result", "token_count", "token_count",
      "ai_answer_end",
    ]);
    const answer = last(first).data;
    assert.equal(answer.analysis, "It is 1.");
    const second = await streamChat({ ask: "plain", conversation_history: answer.conversation_history });
    assert.equal(last(second).data.analysis, "Hello there.");
    assert.equal(last(second).data.conversation_history.length, 7);
  },
  async "a tool of the client's, in two requests"() {
    const paused = last(await streamChat({ ask: "chart", frontend_tools: frontendTools }));
    assert.equal(paused.event, "approval_required");
    const results = paused.data.pending_frontend_tool_calls.map((call) => ({
      tool_call_id: call.tool_call_id,
      tool_name: call.tool_name,
      result: JSON.stringify({ rendered: call.arguments.chart_type }),
    }));
    const rest = await streamChat({
      ask: "chart",
      frontend_tools: frontendTools,
      conversation_history: paused.data.conversation_history,
      frontend_tool_results: results,
    });
    assert.deepEqual(names(rest), ["tool_calling_result", "token_count", "ai_answer_end"]);
    assert.equal(rest[0].data.result.data, '{"rendered":"line"}');
  },
  async "a tool that nobody waits for"() {
    const events = await streamChat({ ask: "navigate", frontend_tools: frontendTools });
    const started = events.find(({ event }) => event === "start_tool_calling").data;
    assert.equal(started.tool_name, "navigate_to_page");
    assert.equal(last(events).event, "ai_answer_end");
  },
  async "a person approves"() {
    const paused = last(await streamChat({ ask: "keep", enable_tool_approval: true })).data;
    const events = await streamChat({
      enable_tool_approval: true,
      conversation_history: paused.conversation_history,
      tool_decisions: paused.pending_approvals.map(({ tool_call_id }) => ({ tool_call_id, approved: true })),
    });
    assert.equal(events[0].data.result.status, "success");
    assert.equal(last(events).event, "ai_answer_end");
  },
  async "a connection that breaks in the middle: one run, every event once"() {
    const proxy = await cuttingProxy("tool_calling_result");
    const events = await streamChat({ ask: "slowly" }, proxy.base);
    proxy.close();
    assert.ok(proxy.seen.connections >= 2, "it was sent again");
    assert.equal(last(events).data.analysis, "At last.");
    assert.equal(new Set(events.map(({ id }) => id)).size, events.length);
    assert.equal(new Set(events.map(({ id }) => id.split(":")[0])).size, 1, "one run");
  },
};

for (const [name, check] of Object.entries(checks)) {
  try {
    await check();
  } catch (error) {
    console.error(`${name}: ${error.stack}`);
    process.exit(1);
  }
}
process.exit(0);
