// What the `render` at the end of a KQL query asks for. Texts and comments may hold anything, so the query is read in tokens.

export interface Rendered {
  /** As written, in small letters: `timechart`. */
  chart: string;
  /** In small letters, each with its values: `kind`, `title`, `xcolumn`, `ycolumns`, `series`, ... */
  properties: Map<string, string[]>;
}

interface Token {
  kind: "word" | "text" | "sign";
  text: string;
}

const TOKEN = /\/\/[^\n]*|[hH]?@"(?:[^"]|"")*"|[hH]?@'(?:[^']|'')*'|[hH]?"(?:[^"\\]|\\.)*"|[hH]?'(?:[^'\\]|\\.)*'|```[^]*?```|[\w$.-]+|\S/g;

/** Returns what a query's last operator says; `null` where it is no `render`. */
export function renderedBy(query: string): Rendered | null {
  const tokens = tokensOf(query);
  while (tokens.at(-1)?.text === ";") tokens.pop();
  let begin = tokens.length - 1;
  while (begin > 0 && !(isSign(tokens[begin], "|") || isSign(tokens[begin], ";"))) begin--;
  const [bar, word, chart, ...rest] = tokens.slice(begin);
  if (!isSign(bar, "|") || word?.kind !== "word" || word.text !== "render" || chart === undefined) return null;
  return { chart: chart.text.toLowerCase(), properties: propertiesOf(rest) };
}

/** `with (a = x, b = y, z)`, or without `with` and parentheses as in older queries. */
function propertiesOf(tokens: Token[]): Map<string, string[]> {
  const properties = new Map<string, string[]>();
  let values: string[] | null = null;
  tokens.forEach((token, at) => {
    if (isSign(tokens[at + 1], "=")) properties.set(token.text.toLowerCase(), (values = []));
    else if (token.kind === "word" && token.text === "by") properties.set("series", (values = []));
    else if (token.kind !== "sign") values?.push(token.text);
  });
  return properties;
}

function tokensOf(query: string): Token[] {
  const tokens: Token[] = [];
  for (const [written] of query.matchAll(TOKEN)) {
    if (written.startsWith("//")) continue;
    const quoted = /^[hH]?(@?)(["'])([^]*)\2$/.exec(written);
    const text = written.startsWith("```") && written.length >= 6 ? written.slice(3, -3)
      : quoted === null ? written
      : quoted[1] === "@" ? quoted[3]!.replaceAll(quoted[2]! + quoted[2]!, quoted[2]!)
      : quoted[3]!.replace(/\\(.)/g, (_, letter: string) => ({ n: "\n", t: "\t" })[letter] ?? letter);
    tokens.push({ kind: text !== written ? "text" : /^[\w$.-]/.test(written) ? "word" : "sign", text });
  }
  return tokens;
}

function isSign(token: Token | undefined, text: string): boolean {
  return token?.kind === "sign" && token.text === text;
}
