// What a query is in other clients: text to copy.
import { token } from "./api";
import { hostAndPort, shellWord } from "./recipes";
import type { Statement } from "./statement";

function pythonText(text: string): string {
  return text.includes("\n") && !text.includes('"""') && !text.includes("\\") && !text.endsWith('"')
    ? `"""${text}"""`
    : JSON.stringify(text);
}

export function asCurl(statement: Statement): string {
  const type = statement.language === "kql" ? "application/x-kql" : "application/sql";
  return [
    `curl ${shellWord(`${location.origin}/v1/query?format=json`)}`,
    `-H 'Content-Type: ${type}'`,
    `-H ${shellWord(`X-Database: ${statement.database}`)}`,
    ...(token.value ? [`-H "Authorization: Bearer $QUERENT_TOKEN"`] : []),
    `--data-binary ${shellWord(statement.text)}`,
  ].join(" \\\n  ");
}

/** Python with ADBC's Flight SQL driver; KQL goes over HTTP, since Flight SQL has no word for it. */
export function asPython(statement: Statement): string {
  if (statement.language === "kql") return asPythonHttp(statement);
  const scheme = location.protocol === "https:" ? "grpc+tls" : "grpc";
  // A header of gRPC is ASCII, which names of databases need not be; the session's database is any text.
  const options = [
    ...(token.value ? [`db_kwargs={"adbc.flight.sql.authorization_header": f"Bearer {os.environ['QUERENT_TOKEN']}"},`] : []),
    `conn_kwargs={"adbc.connection.db_schema": ${JSON.stringify(statement.database)}},`,
    "autocommit=True,",
  ];
  return [
    ...(token.value ? ["import os"] : []),
    "import adbc_driver_flightsql.dbapi",
    "",
    "with adbc_driver_flightsql.dbapi.connect(",
    `    "${scheme}://${hostAndPort(location)}",`,
    ...options.map((option) => `    ${option}`),
    ") as connection, connection.cursor() as cursor:",
    `    cursor.execute(${pythonText(statement.text)})`,
    "    print(cursor.fetch_arrow_table())",
    "",
  ].join("\n");
}

function asPythonHttp(statement: Statement): string {
  // Python writes headers as Latin-1; the server reads UTF-8.
  const encoded = /^[\x20-\x7e]*$/.test(statement.database) ? "" : `.encode().decode("latin-1")`;
  const headers = [`"Content-Type": "application/x-kql"`, `"X-Database": ${JSON.stringify(statement.database)}${encoded}`];
  if (token.value) headers.push(`"Authorization": f"Bearer {os.environ['QUERENT_TOKEN']}"`);
  return [
    ...(token.value ? ["import os"] : []),
    "import urllib.request",
    "import pyarrow as pa",
    "",
    `query = ${pythonText(statement.text)}`,
    `request = urllib.request.Request("${location.origin}/v1/query?format=arrow", query.encode(), {`,
    ...headers.map((header) => `    ${header},`),
    "})",
    "print(pa.ipc.open_stream(urllib.request.urlopen(request)).read_all())",
    "",
  ].join("\n");
}
