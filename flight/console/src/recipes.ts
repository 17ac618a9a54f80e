// How other clients reach this server, with its address filled in.

export interface Recipe {
  name: string;
  about: string;
  text: string;
}

export function recipes({ origin, host, protocol }: Location, hasToken: boolean): Recipe[] {
  const isEncrypted = protocol === "https:";
  const grpc = `${isEncrypted ? "grpc+tls" : "grpc"}://${host}`;
  const flag = hasToken ? " --token TOKEN" : "";
  const bearer = hasToken ? ` -H 'Authorization: Bearer TOKEN'` : "";
  const key = hasToken ? "TOKEN" : "none";
  const mcp = { url: `${origin}/mcp`, ...(hasToken ? { headers: { Authorization: "Bearer TOKEN" } } : {}) };
  return [
    { name: "Command line", about: "", text: `querent --server ${origin}${flag}\nquerent ask --server ${origin}${flag} 'how many rows does each table have?'` },
    { name: "curl", about: "", text: `curl '${origin}/v1/query?format=csv'${bearer} -d 'SHOW TABLES'` },
    {
      name: "Python (ADBC, pandas, polars)",
      about: "pip install adbc-driver-flightsql pandas pyarrow",
      text: [
        "import pandas",
        "from adbc_driver_flightsql import dbapi",
        "",
        `with dbapi.connect("${grpc}"${hasToken ? ', db_kwargs={"username": "me", "password": "TOKEN"}' : ""}, autocommit=True) as connection:`,
        '    print(pandas.read_sql("SHOW TABLES", connection))',
      ].join("\n"),
    },
    {
      name: "DBeaver and other JDBC programs",
      about: `Driver: Apache Arrow Flight SQL.${hasToken ? " User: anything; password: the token." : ""}`,
      text: `jdbc:arrow-flight-sql://${host}/?useEncryption=${isEncrypted}`,
    },
    { name: "Grafana", about: `Data source FlightSQL.${hasToken ? " Auth type: token." : " Auth type: none."} Require TLS: ${isEncrypted ? "on" : "off"}.`, text: host },
    { name: "Claude Code", about: "", text: `claude mcp add --transport http querent ${origin}/mcp${hasToken ? ' --header "Authorization: Bearer TOKEN"' : ""}` },
    { name: "Cursor", about: ".cursor/mcp.json", text: JSON.stringify({ mcpServers: { querent: mcp } }, null, 2) },
    { name: "VS Code", about: ".vscode/mcp.json", text: JSON.stringify({ servers: { querent: { type: "http", ...mcp } } }, null, 2) },
    {
      name: "OpenAI's client libraries",
      about: "",
      text: [
        "from openai import OpenAI",
        "",
        `client = OpenAI(base_url="${origin}/v1", api_key="${key}")`,
        'print(client.responses.create(model="querent", input="how many rows does each table have?").output_text)',
      ].join("\n"),
    },
    { name: "Kusto's clients", about: "KQL over Kusto's REST interface.", text: origin },
  ];
}
