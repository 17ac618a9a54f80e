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
