// The AI SDK against a running server. Every check must hold.
//
// usage: node ai_sdk_client.mjs FOLDER_WITH_NODE_MODULES URL TOKEN      with the scripted model of tests/it/openai.rs

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, url, token] = process.argv.slice(2);
const installed = createRequire(join(folder, "package.json"));
const load = (name) => import(pathToFileURL(installed.resolve(name)));
const { Output, generateText, stepCountIs, streamText, tool } = await load("ai");
const { createOpenAI } = await load("@ai-sdk/openai");
const { z } = await load("zod");

globalThis.AI_SDK_LOG_WARNINGS = false;
const openai = createOpenAI({ baseURL: `${url}/v1`, apiKey: token });
const responses = openai.responses("querent");
const models = { responses, chat: openai.chat("querent") };
const inputSchema = z.object({ city: z.string() });
const tools = { get_weather: tool({ description: "weather", inputSchema, execute: async () => "sunny" }) };
const loop = { tools, stopWhen: stepCountIs(3), maxRetries: 0 };

async function streamed(options) {
  const result = streamText({ maxRetries: 0, onError() {}, ...options });
  const kinds = [];
  for await (const part of result.fullStream) {
    kinds.push(part.type);
    if (part.type === "error") throw part.error;
  }
  return { kinds, text: await result.text, finishReason: await result.finishReason };
}

const checks = {
  async text() {
    for (const model of Object.values(models)) {
      const whole = await generateText({ model, prompt: "how many?", maxRetries: 0 });
      assert.match(whole.text, /It is 42\.$/);
      assert.equal(whole.usage.totalTokens, 235);
      const pieces = await streamed({ model, prompt: "how many?" });
      assert.equal(pieces.text, whole.text);
      assert.equal(pieces.finishReason, "stop");
    }
  },
  async toolsOfTheServer() {
    const { content, toolCalls } = await generateText({ model: responses, prompt: "both", maxRetries: 0 });
    // The cells that prove the answer are its sources.
    const expected = ["tool-call", "tool-result", "tool-call", "tool-result", "text", "source", "source"];
    assert.deepEqual(content.map((part) => part.type), expected);
    assert(toolCalls.every((call) => call.providerExecuted && !call.invalid));
    const { kinds, finishReason } = await streamed({ model: responses, prompt: "both" });
    assert.equal(kinds.filter((kind) => kind === "tool-result").length, 2);
    assert.equal(finishReason, "stop");
  },
  async toolsOfTheClient() {
    for (const model of Object.values(models)) {
      const { text, steps } = await generateText({ model, prompt: "weather?", ...loop });
      assert.equal(text, "It is sunny.");
      assert.deepEqual(steps.map((step) => step.finishReason), ["tool-calls", "stop"]);
      assert.equal((await streamed({ model, prompt: "weather?", ...loop })).text, "It is sunny.");
    }
  },
  // The question comes again with each output, also within a conversation.
  async conversations() {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const made = await fetch(`${url}/v1/conversations`, { method: "POST", headers, body: "{}" });
    const { id } = await made.json();
    const providerOptions = { openai: { conversation: id } };
    const { text } = await generateText({ model: responses, prompt: "weather?", providerOptions, ...loop });
    assert.equal(text, "It is sunny.");
  },
  // With storage the history comes as references to items, without it in part.
  async history() {
    for (const store of [true, false]) {
      const providerOptions = { openai: { store } };
      const [messages, answers] = [[], []];
      for (const content of ["weather?", "both", "thanks"]) {
        messages.push({ role: "user", content });
        const { response, text } = await generateText({ model: responses, messages, providerOptions, ...loop });
        messages.push(...response.messages);
        answers.push(text);
      }
      assert.deepEqual(answers, ["It is sunny.", "1 and 2.", "You are welcome."]);
    }
  },
  async structured() {
    for (const model of Object.values(models)) {
      const output = Output.object({ schema: z.object({ name: z.string(), n: z.number() }) });
      const result = await generateText({ model, prompt: "structured", output, maxRetries: 0 });
      assert.deepEqual(result.output, { name: "UA", n: 3 });
    }
  },
  async approvals() {
    const mcp = openai.tools.mcp({ serverLabel: "tables", serverUrl: url, requireApproval: "always" });
    for (const store of [true, false]) {
      const options = { model: responses, tools: { mcp }, providerOptions: { openai: { store } }, maxRetries: 0 };
      const messages = [{ role: "user", content: "create a table" }];
      const paused = await generateText({ ...options, messages });
      const { approvalId } = paused.content.find((part) => part.type === "tool-approval-request");
      const decision = { type: "tool-approval-response", approvalId, approved: false, providerExecuted: true };
      messages.push(...paused.response.messages, { role: "tool", content: [decision] });
      const { text } = await generateText({ ...options, messages });
      assert.equal(text, "It is made.");
    }
  },
  async failures() {
    await assert.rejects(generateText({ model: responses, prompt: "fail", maxRetries: 0 }), /out of memory/);
    await assert.rejects(streamed({ model: responses, prompt: "fail" }), /out of memory/);
    const other = createOpenAI({ baseURL: `${url}/v1`, apiKey: "wrong" }).responses("querent");
    await assert.rejects(generateText({ model: other, prompt: "thanks", maxRetries: 0 }), { statusCode: 401 });
  },
};

for (const [name, check] of Object.entries(checks)) {
  await check();
  console.log(name);
}
