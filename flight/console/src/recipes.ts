// How other clients reach this server, with its address filled in.

export interface Recipe {
  name: string;
  about: string;
  text: string;
  /** Where a program of this machine asks whether to set itself up so. */
  link?: { name: string; address: string };
}

/** An address that a program opens with these settings in Base64, which is of bytes. */
function base64(settings: object): string {
  return encodeURIComponent(btoa(String.fromCharCode(...new TextEncoder().encode(JSON.stringify(settings)))));
}

/** A text as one word of a POSIX shell. */
export function shellWord(text: string): string {
  return `'${text.replace(/'/g, `'\\''`)}'`;
}

/** The host with its port, which browsers leave away where it is the usual one and gRPC's clients want. */
export function hostAndPort({ host, port, protocol }: Pick<Location, "host" | "port" | "protocol">): string {
  return port === "" ? `${host}:${protocol === "https:" ? 443 : 80}` : host;
}

export function recipes(place: Location, hasToken: boolean): Recipe[] {
  const { origin, hostname } = place;
  const host = hostAndPort(place);
  const isEncrypted = place.protocol === "https:";
  const grpc = `${isEncrypted ? "grpc+tls" : "grpc"}://${host}`;
  const flag = hasToken ? " --token TOKEN" : "";
  const bearer = hasToken ? ` -H 'Authorization: Bearer TOKEN'` : "";
  const key = hasToken ? "TOKEN" : "none";
  const mcp = { url: `${origin}/mcp`, ...(hasToken ? { headers: { Authorization: "Bearer TOKEN" } } : {}) };
  const vscode = { name: "querent", type: "http", ...mcp };
  const desktop = {
    command: "querent", args: ["mcp", "--server", origin], ...(hasToken ? { env: { QUERENT_TOKEN: "TOKEN" } } : {}),
  };
  const sqlalchemy = `datafusion://${hasToken ? "me:TOKEN@" : ""}${host}${isEncrypted ? "" : "?insecure=True"}`;
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
    {
      name: "ODBC programs",
      about: "Driver: Arrow Flight SQL ODBC.",
      text: `HOST=${hostname};PORT=${host.slice(host.lastIndexOf(":") + 1)};useEncryption=${isEncrypted}${hasToken ? ";UID=me;PWD=TOKEN" : ""}`,
    },
    { name: "Grafana", about: `Data source FlightSQL.${hasToken ? " Auth type: token." : " Auth type: none."} Require TLS: ${isEncrypted ? "on" : "off"}.`, text: host },
    { name: "Superset", about: "pip install flightsql-dbapi where Superset runs; Database connections, Other.", text: sqlalchemy },
    { name: "Claude Code", about: "", text: `claude mcp add --transport http querent ${origin}/mcp${hasToken ? ' --header "Authorization: Bearer TOKEN"' : ""}` },
    { name: "Claude Desktop", about: "claude_desktop_config.json (Settings, Developer, Edit Config); it starts the program querent, which is to be on this path.", text: JSON.stringify({ mcpServers: { querent: desktop } }, null, 2) },
    {
      name: "Cursor",
      about: ".cursor/mcp.json, or ~/.cursor/mcp.json for all projects",
      text: JSON.stringify({ mcpServers: { querent: mcp } }, null, 2),
      link: { name: "Add to Cursor", address: `cursor://anysphere.cursor-deeplink/mcp/install?name=querent&config=${base64(mcp)}` },
    },
    {
      name: "VS Code",
      about: "One line; or in .vscode/mcp.json, as querent mcp --print-config vscode has it.",
      text: `code --add-mcp ${shellWord(JSON.stringify(vscode))}`,
      link: { name: "Add to VS Code", address: `vscode:mcp/install?${encodeURIComponent(JSON.stringify(vscode))}` },
    },
    {
      name: "Codex",
      about: "~/.codex/config.toml",
      text: [
        "[mcp_servers.querent]",
        'command = "querent"',
        `args = ["mcp", "--server", "${origin}"]`,
        ...(hasToken ? ["", "[mcp_servers.querent.env]", 'QUERENT_TOKEN = "TOKEN"'] : []),
      ].join("\n"),
    },
    { name: "Zed", about: "settings.json", text: JSON.stringify({ context_servers: { querent: mcp } }, null, 2) },
    {
      name: "OpenAI's client libraries",
      about: "pip install openai",
      text: [
        "from openai import OpenAI",
        "",
        `client = OpenAI(base_url="${origin}/v1", api_key="${key}")`,
        'print(client.responses.create(model="querent", input="how many rows does each table have?").output_text)',
      ].join("\n"),
    },
    {
      name: "LangChain",
      about: "pip install langchain-openai",
      text: [
        "from langchain_openai import ChatOpenAI",
        "",
        `model = ChatOpenAI(model="querent", base_url="${origin}/v1", api_key="${key}", use_responses_api=True)`,
        'print(model.invoke("how many rows does each table have?").text)',
      ].join("\n"),
    },
    {
      name: "Kusto's clients",
      about: "KQL over Kusto's REST interface; pip install azure-kusto-data",
      text: [
        "from azure.kusto.data import KustoClient, KustoConnectionStringBuilder",
        "",
        hasToken
          ? `address = KustoConnectionStringBuilder.with_aad_user_token_authentication("${origin}", "TOKEN")`
          : `address = KustoConnectionStringBuilder("${origin}")`,
        'print(KustoClient(address).execute("default", ".show tables").primary_results[0])',
      ].join("\n"),
    },
  ];
}
