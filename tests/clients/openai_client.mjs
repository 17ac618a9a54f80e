// Drives a server with OpenAI's own library for Node, unchanged. Every check must hold.
//
// usage: node openai_client.mjs FOLDER_WITH_NODE_MODULES URL TOKEN      with the scripted model of tests/it/openai.rs

import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, url, token] = process.argv.slice(2);
const { default: OpenAI } = await import(pathToFileURL(join(folder, "node_modules", "openai", "index.mjs")));
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: token });
const model = "querent";

const checks = {
  async responses() {
    const stream = client.responses.stream({ model, input: "how many?", reasoning: { summary: "auto" } });
    const kinds = [];
    for await (const event of stream) kinds.push(event.type);
    const final = await stream.finalResponse();
    assert.equal(kinds[0], "response.created");
    assert.equal(kinds.at(-1), "response.completed");
    assert.equal(final.output_text, "I will count. It is 42.");
    assert.deepEqual(final.output.map((item) => item.type), ["reasoning", "message", "mcp_call", "message"]);
    const again = await client.responses.retrieve(final.id);
    assert.equal(again.id, final.id);
  },
  async clientTools() {
    const tools = [{ type: "function", name: "get_weather", parameters: { type: "object", properties: {} }, strict: false }];
    const final = await client.responses.stream({ model, input: "weather?", tools }).finalResponse();
    const [call] = final.output;
    assert.equal(call.type, "function_call");
    const answer = await client.responses.create({
      model,
      tools,
      previous_response_id: final.id,
      input: [{ type: "function_call_output", call_id: call.call_id, output: "sunny" }],
    });
    assert.equal(answer.output_text, "It is sunny.");
  },
  async approval() {
    const paused = await client.responses.stream({ model, input: "create a table" }).finalResponse();
    const request = paused.output.at(-1);
    assert.equal(request.type, "mcp_approval_request");
    const input = [{ type: "mcp_approval_response", approval_request_id: request.id, approve: false, reason: "no" }];
    const answer = await client.responses.create({ model, input });
    assert.equal(answer.output_text, "It is made.");
  },
  async failure() {
    const kinds = [];
    for await (const event of await client.responses.create({ model, input: "fail", stream: true })) kinds.push(event.type);
    assert.equal(kinds.at(-1), "response.failed");
    await assert.rejects(client.responses.create({ model, input: "fail" }), OpenAI.InternalServerError);
    await assert.rejects(client.responses.create({ model, input: 7 }), OpenAI.BadRequestError);
  },
  async cancellation() {
    const { id } = await client.responses.create({ model, input: "slow", background: true });
    const kinds = [];
    let cancelled;
    for await (const event of client.responses.stream({ response_id: id })) {
      kinds.push(event.type);
      cancelled ??= client.responses.cancel(id);
    }
    assert.equal(kinds.at(-1), "response.incomplete");
    assert.equal((await cancelled).status, "cancelled");
    assert.equal((await client.responses.retrieve(id)).status, "cancelled");
  },
  async chat() {
    const messages = [{ role: "user", content: "how many?" }];
    const stream = client.chat.completions.stream({ model, messages, stream_options: { include_usage: true } });
    const completion = await stream.finalChatCompletion();
    assert.equal(completion.choices[0].message.content, "I will count. \n\nIt is 42.");
    assert.equal(completion.choices[0].finish_reason, "stop");
    assert.equal(completion.usage.total_tokens, 235);
    const tools = [{ type: "function", function: { name: "get_weather", parameters: { type: "object" } } }];
    const asked = [{ role: "user", content: "weather?" }];
    const called = await client.chat.completions.stream({ model, messages: asked, tools }).finalChatCompletion();
    assert.equal(called.choices[0].finish_reason, "tool_calls");
    assert.equal(called.choices[0].message.tool_calls[0].function.arguments, '{"city":"Paris"}');
  },
  async conversations() {
    const { id } = await client.conversations.create({ items: [{ role: "user", content: "my name is Ann" }] });
    const first = await client.responses.create({ model, input: "how many?", conversation: id });
    const items = [];
    for await (const item of client.conversations.items.list(id, { order: "asc", limit: 2 })) items.push(item);
    assert.deepEqual(items.map((item) => item.type), ["message", "message", "message", "mcp_call", "message"]);
    const references = first.output.map((item) => ({ type: "item_reference", id: item.id }));
    const input = [...references, { role: "user", content: "thanks" }];
    assert.equal((await client.responses.create({ model, input })).output_text, "You are welcome.");
    assert.equal((await client.conversations.delete(id)).deleted, true);
    await assert.rejects(client.conversations.retrieve(id), OpenAI.NotFoundError);
  },
  async rawStreams() {
    const events = [];
    for await (const event of await client.responses.create({ model, input: "how many?", stream: true })) events.push(event);
    assert.deepEqual(events.map((event) => event.sequence_number), events.map((_, number) => number));
    const { id } = events.at(-1).response;
    const later = [];
    for await (const event of await client.responses.retrieve(id, { stream: true, starting_after: 3 })) later.push(event);
    assert.deepEqual(later, events.slice(4));
    const chunks = [];
    const messages = [{ role: "user", content: "how many?" }];
    for await (const chunk of await client.chat.completions.create({ model, messages, stream: true })) chunks.push(chunk);
    assert.equal(chunks.map((chunk) => chunk.choices[0].delta.content ?? "").join(""), "I will count. \n\nIt is 42.");
    assert.equal(chunks.at(-1).choices[0].finish_reason, "stop");
    const failing = await client.chat.completions.create({ model, messages: [{ role: "user", content: "fail" }], stream: true });
    await assert.rejects(async () => {
      for await (const _ of failing);
    }, OpenAI.APIError);
  },
  async files() {
    const file = await client.files.create({ file: new File(["a,b\n1,2\n"], "notes.csv", { type: "text/csv" }), purpose: "user_data" });
    assert.equal(file.bytes, 8);
    const content = [{ type: "input_text", text: "thanks" }, { type: "input_file", file_id: file.id }];
    assert.equal((await client.responses.create({ model, input: [{ role: "user", content }] })).output_text, "You are welcome.");
    assert.equal((await client.files.delete(file.id)).deleted, true);
    const ids = [];
    for await (const { id } of client.models.list()) ids.push(id);
    assert.deepEqual(ids, ["querent", "scripted"]);
  },
  async structured() {
    const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
    const text = { format: { type: "json_schema", name: "count", schema } };
    const response = await client.responses.parse({ model, input: "structured", text });
    assert.equal(response.output_parsed.n, 3);
  },
};

for (const [name, check] of Object.entries(checks)) {
  await check();
  console.log(name);
}
