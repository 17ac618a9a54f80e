// Drives a server with Microsoft's Kusto client for Node, unchanged. Every check must hold.
//
// usage: node kusto.mjs FOLDER_WITH_NODE_MODULES URL [TOKEN]      with the table `default.otel_logs`

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, url, token] = process.argv.slice(2);
const client = join(folder, "node_modules", "azure-kusto-data");
const { main } = JSON.parse(await readFile(join(client, "package.json"), "utf8"));
const { Client, ClientRequestProperties, KustoConnectionStringBuilder } = await import(pathToFileURL(join(client, main)));

const connect = (token) =>
  new Client(token ? KustoConnectionStringBuilder.withAccessToken(url, token) : new KustoConnectionStringBuilder(url));
const kusto = connect(token);
const first = (response) => [...response.primaryResults[0].rows()].map((row) => row.toJSON());

const checks = {
  async "version 2: every type arrives"() {
    const query = `print b = true, i = int(7), r = 1.5, s = 'ä', t = datetime(2024-02-29 12:00:00.5), span = time(1.02:03:04.5),
        j = dynamic({"a": [1]}), n = long(null)`;
    const response = await kusto.execute("default", query);
    const types = response.primaryResults[0].columns.map((column) => column.type);
    assert.deepEqual(types, ["bool", "int", "real", "string", "datetime", "timespan", "dynamic", "long"]);
    const span = ((26 * 60 + 3) * 60 + 4.5) * 1000;
    const then = new Date("2024-02-29T12:00:00.500Z");
    assert.deepEqual(first(response), [{ b: true, i: 7, r: 1.5, s: "ä", t: then, span, j: { a: [1] }, n: null }]);
    assert.equal(response.dataSetCompletion.HasErrors, false);
  },
  async "version 1: the same rows, and how it went"() {
    const query = "otel_logs | where severity_text == 'ERROR' | summarize n = count() by service_name | top 2 by n";
    const rows = [{ service_name: "payments", n: 12 }, { service_name: "web", n: 10 }];
    const old = await kusto.executeQueryV1("default", query);
    assert.deepEqual(first(old), rows);
    assert.deepEqual(old.tableNames.length, 4);
    assert.deepEqual(old.getErrorsCount(), { warnings: 0, errors: 0 });
    assert.deepEqual(first(await kusto.execute("default", query)), rows);
  },
  async "commands"() {
    const shown = first(await kusto.execute("default", ".show tables"));
    assert.ok(shown.some((row) => row.TableName === "otel_logs"), JSON.stringify(shown));
    const schema = first(await kusto.executeMgmt("default", ".show database default schema as json"));
    assert.ok(JSON.parse(schema[0].DatabaseSchema).Databases.default.Tables.otel_logs);
  },
  async "parameters and options"() {
    const properties = new ClientRequestProperties({ query_take_max_records: 2 }, { least: "3" });
    properties.setTimeout(60_000);
    const query = "declare query_parameters(least:long); range x from 1 to 10 step 1 | where x >= least";
    assert.deepEqual(first(await kusto.execute("default", query, properties)), [{ x: 3 }, { x: 4 }]);
  },
  async "errors"() {
    const refused = await kusto.execute("default", "otel_logs | where nope == 1").catch((error) => error);
    assert.equal(refused.response.status, 400);
    assert.match(refused.response.data.error["@message"], /^Semantic error: .*unknown column `nope`/s);
    const cut = new ClientRequestProperties({ truncationmaxrecords: 10 });
    await assert.rejects(kusto.execute("default", "range x from 1 to 100 step 1", cut), /more than 10 rows/);
    if (token) {
      const stranger = await connect("wrong").execute("default", "print 1").catch((error) => error);
      assert.equal(stranger.response.status, 401);
    }
  },
};

for (const [name, check] of Object.entries(checks)) {
  await check();
  console.log("ok", name);
}
kusto.close();
