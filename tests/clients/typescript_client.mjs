// Makes the client package of the server's own document, and uses it: JSON, errors with their codes, other bodies, events.
//
// usage: node typescript_client.mjs FOLDER_WITH_NODE_MODULES URL TOKEN GENERATOR FOLDER

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [, url, token, generator, folder] = process.argv.slice(2);
const reply = await fetch(new URL("/openapi.json", url));
const document = join(folder, "openapi.json");
writeFileSync(document, await reply.text());
execFileSync(process.execPath, [generator, document, folder]);
const { QuerentClient, QuerentError } = await import(pathToFileURL(join(folder, "index.js")));

const client = new QuerentClient(url, { token });
assert.equal((await client.getHealth()).status, "ok");
const rows = await client.postQuery({ format: "json", body: { sql: "SELECT $1 + 1 AS next", params: [41] } });
assert.deepEqual((await rows.json()).rows, [[42]]);
const csv = await client.postQuery({ format: "csv", contentType: "application/sql", body: "SELECT 1 AS one" });
assert.equal(await csv.text(), "one\n1\n");
await client.postQuery({ body: "CREATE TABLE flights AS SELECT 'UA' AS carrier", contentType: "application/sql" });
const changed = await client.patchCatalogTablesTable({ table: "flights", body: { comment: "some", columns: { carrier: "who" } } });
assert.deepEqual([changed.comment, changed.columns[0].comment], ["some", "who"]);
assert.equal((await client.getCatalogTablesTableProfile({ table: "flights" })).rows, 1);
await assert.rejects(client.getCatalogTablesTable({ table: "fligths" }), (error) => {
  assert.ok(error instanceof QuerentError);
  assert.equal(error.code, "table_not_found");
  assert.match(error.message, /flights/);
  return true;
});
await assert.rejects(client.getCatalogTablesTable({}), TypeError);
const events = [];
for await (const event of client.postAgentAsk({ body: { question: "how many?" } })) events.push(event);
assert.equal(events[0].event, "run_started");
assert.equal(events.at(-1).event, "run_finished");
const run = await client.getAgentRunsRunId({ run_id: events[0].data.run_id });
assert.equal(run.question, "how many?");
await assert.rejects(new QuerentClient(url, { token: "wrong" }).getCatalogSchema(), { status: 401, code: "unauthenticated" });

const types = readFileSync(join(folder, "index.d.ts"), "utf8");
const operations = Object.values(JSON.parse(readFileSync(document, "utf8")).paths).flatMap((item) => Object.keys(item));
assert.equal(types.match(/options\?: CallOptions\): /g).length, operations.length, "a method for each operation");
console.log("ok");
