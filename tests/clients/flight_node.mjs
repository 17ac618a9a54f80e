// Queries and listings by the Flight SQL clients of the npm registry. Every check must hold.
//
// usage: node flight_node.mjs FOLDER_WITH_NODE_MODULES HOST:PORT TOKEN

import assert from "node:assert";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, address, token] = process.argv.slice(2);
const installed = createRequire(join(folder, "package.json"));
const load = (name) => import(pathToFileURL(installed.resolve(name)));
const { FlightSQLClient: Gizmo } = await load("@gizmodata/gizmosql-client");
const { Client: Lance } = await load("@lancedb/arrow-flight-sql-client");
const [host, port] = address.split(":");

async function refusal(call) {
  try {
    await call();
  } catch (error) {
    return String(error.message ?? error);
  }
  throw new Error("no error");
}

async function gizmo() {
  const client = new Gizmo({ host, port: Number(port), plaintext: true, username: "anybody", password: token });
  const one = await client.execute("select 41 + 1 as answer, 'x' as s, date '2024-02-29' as d");
  assert.equal(Number(one.toArray()[0].answer), 42);
  await client.execute("create table of_node (id bigint primary key, name varchar)");
  await client.execute("insert into of_node values (1, 'a'), (2, null)");
  const rows = await client.execute("select * from of_node order by id");
  assert.deepEqual(rows.toArray().map((row) => [Number(row.id), row.name]), [[1, "a"], [2, null]]);
  assert.ok((await client.getCatalogs()).includes("querent"));
  assert.ok((await client.getTables("querent", "default", "of_node")).length === 1);
  assert.match(await refusal(() => client.execute("select * from nothing_here")), /nothing_here/);
  await client.execute("drop table of_node");
  await client.close();
}

async function lance() {
  const client = await Lance.connect({ host: address, username: "anybody", password: token, insecure: true });
  const result = await client.query("select 1 as one, 'x' as s");
  assert.equal(Number((await result.collectToObjects())[0].one), 1);
  const many = await client.query("select value as i from generate_series(1, 100000) order by i");
  const rows = await many.collectToObjects();
  assert.deepEqual([rows.length, Number(rows.at(-1).i)], [100_000, 100_000]);
}

await gizmo();
await lance();
console.log("the clients of Node are content");
process.exit(0);
