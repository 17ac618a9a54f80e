// Makes the client package of the server's own document, and uses it: JSON, errors with their codes, other bodies, events.
// It is the package that is kept, and answers are as the document says.
//
// usage: node typescript_client.mjs FOLDER_WITH_NODE_MODULES URL TOKEN GENERATOR FOLDER KEPT
//
// With QUERENT_WRITE_CLIENT set, the package that is kept is written anew.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [, url, token, generator, folder, kept] = process.argv.slice(2);
const reply = await fetch(new URL("/openapi.json", url));
const document = join(folder, "openapi.json");
writeFileSync(document, await reply.text());
execFileSync(process.execPath, [generator, document, folder]);
for (const name of ["package.json", "index.js", "index.d.ts"]) {
  const [made, there] = [join(folder, name), join(kept, name)];
  if (process.env.QUERENT_WRITE_CLIENT) copyFileSync(made, there);
  const isSame = readFileSync(made, "utf8") === readFileSync(there, "utf8");
  assert.ok(isSame, `${there} is not what the document says: \`make typescript-client\` writes it anew`);
}
const { QuerentClient, QuerentError } = await import(pathToFileURL(join(folder, "index.js")));

// Browsers refuse to call `fetch` as a method of something else.
function send(...request) {
  assert.equal(this, undefined);
  return fetch(...request);
}
const client = new QuerentClient(url, { token, fetch: send });
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
await client.postQuery({ body: 'CREATE DATABASE "größe"', contentType: "application/sql" });
const there = { format: "csv", contentType: "application/sql", "X-Database": "größe" };
await client.postQuery({ ...there, body: "CREATE TABLE dimensions (id BIGINT PRIMARY KEY)" });
await client.postQuery({ ...there, body: "CREATE TABLE facts (id BIGINT REFERENCES dimensions (id))" });
assert.equal(await (await client.postQuery({ ...there, body: "SELECT count(*) AS n FROM facts" })).text(), "n\n0\n");
const imported = await client.postImport({
  table: "lines", format: "csv", types: "n=BIGINT", ignore_errors: "true", contentType: "application/octet-stream", body: "n\n1\nx\n",
});
assert.deepEqual([imported.rows, imported.rejects], [1, { lines: 1, table: "default.lines_rejects" }]);
const failure = QuerentError.read('{"error":{"code":"division_by_zero","message":"no","hint":"none"}}', 0);
assert.deepEqual([failure.code, failure.message, failure.hint], ["division_by_zero", "no", "none"]);
const events = [];
for await (const event of client.postAgentAsk({ body: { question: "how many?" } })) events.push(event);
assert.equal(events[0].event, "run_started");
assert.equal(events.at(-1).event, "run_finished");
const run = await client.getAgentRunsRunId({ run_id: events[0].data.run_id });
assert.equal(run.question, "how many?");

/** What an answer has that its schema lacks or says otherwise. */
function wrong(schema, value, at) {
  if (schema.anyOf) return schema.anyOf.some((one) => wrong(one, value, at).length === 0) ? [] : [`${at} is ${JSON.stringify(value)}`];
  const type = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
  const said = [schema.type ?? type].flat().map((one) => (one === "integer" ? "number" : one));
  if (!said.includes(type) || (schema.type === "integer" && !Number.isInteger(value))) return [`${at} is of type ${type}`];
  if (schema.enum && !schema.enum.includes(value)) return [`${at} is ${value}`];
  if (type === "array") return value.flatMap((one) => wrong(schema.items ?? {}, one, `${at}[]`));
  if (type !== "object" || !schema.properties) return [];
  const missing = (schema.required ?? []).filter((name) => !(name in value)).map((name) => `${at} has no ${name}`);
  const fields = Object.entries(value).flatMap(([name, of]) =>
    (schema.properties[name] ? wrong(schema.properties[name], of, `${at}.${name}`) : [`${at} has ${name} too`]));
  return [...missing, ...fields];
}
const { paths } = JSON.parse(readFileSync(document, "utf8"));
const [{ run_id }, table] = [run, { table: "flights" }];
const counted = { question: "how many flights?", sql: "SELECT count(*) AS n FROM flights" };
const metric = { name: "flown", table: { database: "default", table: "flights" }, expression: "count(*)" };
const answers = {
  "post /v1/catalog/verified-queries": await client.postCatalogVerifiedQueries({ body: counted }),
  "get /v1/catalog/verified-queries": client.getCatalogVerifiedQueries(),
  "post /v1/catalog/metrics": await client.postCatalogMetrics({ body: metric }),
  "get /v1/catalog/metrics": client.getCatalogMetrics(),
  "get /health": client.getHealth(),
  "post /v1/complete": client.postComplete({ body: { text: "SELECT c FROM flights", position: 8 } }),
  "post /v1/query": (await client.postQuery({ format: "json", body: { sql: "SELECT 1 AS one" } })).json(),
  "post /v1/import": imported,
  "get /v1/catalog/schema": client.getCatalogSchema({ limit: 2 }),
  "get /v1/catalog/search": client.getCatalogSearch({ q: "flights" }),
  "get /v1/catalog/tables/{table}": client.getCatalogTablesTable(table),
  "patch /v1/catalog/tables/{table}": changed,
  "get /v1/catalog/tables/{table}/profile": client.getCatalogTablesTableProfile(table),
  "patch /v1/catalog/databases/{database}": client.patchCatalogDatabasesDatabase({ database: "größe", body: { comment: null } }),
  "get /v1/catalog/relationships": client.getCatalogRelationships(),
  "get /v1/agent/runs": client.getAgentRuns({ limit: 1 }),
  "get /v1/agent/runs/{run_id}": run,
  "get /v1/agent/runs/{run_id}/approvals": client.getAgentRunsRunIdApprovals({ run_id }),
  "get /v1/queries": client.getQueries(),
  "get /v1/models": client.getModels(),
};
for (const [route, answer] of Object.entries(answers)) {
  const [method, path] = route.split(" ");
  const { responses } = paths[path][method];
  const { schema } = (responses["200"] ?? responses["201"]).content["application/json"];
  assert.ok(schema.properties, `the document says nothing of what ${route} answers`);
  assert.deepEqual(wrong(schema, await answer, route), []);
}
assert.equal((await client.getCatalogRelationships()).relationships[0].origin, "foreign_key");
await assert.rejects(new QuerentClient(url, { token: "wrong" }).getCatalogSchema(), { status: 401, code: "unauthenticated" });

const types = readFileSync(join(folder, "index.d.ts"), "utf8");
const operations = Object.values(JSON.parse(readFileSync(document, "utf8")).paths).flatMap((item) => Object.keys(item));
assert.equal(types.match(/options\?: CallOptions\): /g).length, operations.length, "a method for each operation");
console.log("ok");
