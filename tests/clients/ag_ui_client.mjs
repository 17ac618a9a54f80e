// AG-UI's library against a running server. Every check must hold.
//
// usage: node ag_ui_client.mjs FOLDER_WITH_NODE_MODULES URL TOKEN      with the scripted model of tests/it/openai.rs

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";

const [folder, url, token] = process.argv.slice(2);
const { HttpAgent } = createRequire(join(folder, "package.json"))("@ag-ui/client");

const agent = (threadId) =>
  new HttpAgent({ url: `${url}/ag-ui`, headers: { Authorization: `Bearer ${token}` }, threadId });
const say = (content) => ({ id: crypto.randomUUID(), role: "user", content });

// An answer in pieces, with the calls of the server's tools and their results.
const counted = agent("t1");
counted.addMessage(say("how many?"));
const seen = [];
const { newMessages } = await counted.runAgent(
  { forwardedProps: { thinking: true } },
  { onEvent: ({ event }) => void seen.push(event.type) },
);
assert.strictEqual(seen[0], "RUN_STARTED");
assert.strictEqual(seen.at(-1), "RUN_FINISHED");
for (const type of ["TEXT_MESSAGE_CONTENT", "TOOL_CALL_START", "TOOL_CALL_RESULT", "REASONING_MESSAGE_CONTENT"]) {
  assert(seen.includes(type), `${type}: ${seen}`);
}
assert(newMessages.some((message) => message.role === "assistant" && message.content === "It is 42."), JSON.stringify(newMessages));
const call = newMessages.flatMap((message) => message.toolCalls ?? [])[0];
assert.strictEqual(call.function.name, "run_sql");
assert(newMessages.some((message) => message.role === "tool" && message.toolCallId === call.id));

// The whole conversation goes back, and the next question is answered in it.
counted.addMessage(say("thanks"));
const thanked = await counted.runAgent();
assert.strictEqual(thanked.newMessages.at(-1).content, "You are welcome.");

// A tool of the application: its call ends the run, its result begins the next.
const weather = {
  name: "get_weather",
  description: "The weather of a city.",
  parameters: { type: "object", properties: { city: { type: "string" } } },
};
const asked = agent("t2");
asked.addMessage(say("weather?"));
const paused = await asked.runAgent({ tools: [weather] });
const wanted = paused.newMessages.flatMap((message) => message.toolCalls ?? [])[0];
assert.deepStrictEqual([wanted.function.name, JSON.parse(wanted.function.arguments)], ["get_weather", { city: "Paris" }]);
asked.addMessage({ id: crypto.randomUUID(), role: "tool", toolCallId: wanted.id, content: "sunny" });
const told = await asked.runAgent({ tools: [weather] });
assert.strictEqual(told.newMessages.at(-1).content, "It is sunny.");

// A run that fails.
const failing = agent("t3");
failing.addMessage(say("fail"));
let failure;
await failing.runAgent({}, { onRunErrorEvent: ({ event }) => void (failure = event) }).catch(() => {});
assert(failure?.message.includes("out of memory"), JSON.stringify(failure));
console.log("ok");
