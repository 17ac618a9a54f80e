// Writes a client package for TypeScript and JavaScript from a server's OpenAPI document: one method for each operation,
// with the types of its parameters, body and answer. It has no dependencies, in browsers and in Node.js 20.
//
// usage: node scripts/typescript_client.mjs OPENAPI.json FOLDER
//
// Methods are named by the operations: `get_v1_catalog_search` is `getCatalogSearch`, which takes a `GetCatalogSearchInput`
// and answers with a `GetCatalogSearchAnswer`. `clients/typescript/` is what it makes of the document of this version.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const METHODS = ["get", "post", "patch", "delete"];
const STREAM = "text/event-stream";
const JSON_TYPE = "application/json";

const [source, folder] = process.argv.slice(2);
if (!source || !folder) {
  console.error("usage: node scripts/typescript_client.mjs OPENAPI.json FOLDER");
  process.exit(2);
}
const document = JSON.parse(readFileSync(source, "utf8"));
const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  METHODS.filter((method) => item[method]).map((method) => read(path, method, item[method])));
const twice = operations.find((one, at) => operations.findIndex((other) => other.name === one.name) !== at);
if (twice) throw new Error(`two operations are called ${twice.name}`);

mkdirSync(folder, { recursive: true });
write("package.json", `${JSON.stringify({
  name: "querent-client",
  version: document.info.version,
  description: "A client of Querent's HTTP routes, made from its OpenAPI document",
  license: "Apache-2.0",
  type: "module",
  sideEffects: false,
  main: "index.js",
  types: "index.d.ts",
  files: ["index.js", "index.d.ts"],
}, null, 2)}\n`);
write("index.js", script());
write("index.d.ts", declarations());

function write(name, text) {
  writeFileSync(join(folder, name), text);
}

/** What both files say of an operation. */
function read(path, method, operation) {
  const words = operation.operationId.split("_").filter((word) => word !== "v1");
  const name = words.map((word, at) => (at === 0 ? word : word[0].toUpperCase() + word.slice(1))).join("");
  const parameters = operation.parameters ?? [];
  const bodies = Object.entries(operation.requestBody?.content ?? {});
  const status = Object.keys(operation.responses).find((code) => code.startsWith("2"));
  const answers = Object.entries(operation.responses[status]?.content ?? {});
  return { name, path, method, operation, parameters, bodies, answers, kind: kindOf(answers) };
}

/** `json`, `events`, or `response` where the caller chooses the form, or there is nothing. */
function kindOf(answers) {
  const types = answers.map(([type]) => type);
  if (types.length === 1 && types[0] === JSON_TYPE) return "json";
  if (types.length === 1 && types[0] === STREAM) return "events";
  return "response";
}

function script() {
  const methods = operations.map(({ name, path, method, parameters, bodies, kind }) => {
    const named = (place) => JSON.stringify(parameters.filter((one) => one.in === place).map((one) => one.name));
    const route = [path, method.toUpperCase(), bodies.length > 0].map((part) => JSON.stringify(part)).join(", ");
    return `  ${name}(input = {}, options = {}) {\n    return this.#${kind}(${route}, ${named("query")}, ${named("header")}, input, options);\n  }\n`;
  });
  return `// Made by scripts/typescript_client.mjs of Querent ${document.info.version}.

/** What the server said no with. \`code\` is stable. */
export class QuerentError extends Error {
  constructor(status, code, message, hint = null) {
    super(message);
    this.name = "QuerentError";
    this.status = status;
    this.code = code;
    this.hint = hint;
  }

  static read(text, status, code) {
    let error = text;
    try {
      const body = JSON.parse(text);
      error = body.error ?? body.detail ?? text;
    } catch {
      // No JSON: the text is the message.
    }
    const message = typeof error === "string" ? error : (error.message ?? text);
    return new QuerentError(status, code ?? error.code ?? \`http_\${status}\`, message || \`HTTP \${status}\`, error.hint ?? null);
  }
}

export class QuerentClient {
  #url;
  #token;
  #fetch;

  constructor(url, { token, fetch = globalThis.fetch } = {}) {
    this.#url = String(url).replace(/\\/+$/, "");
    this.#token = token;
    this.#fetch = fetch;
  }

${methods.join("\n")}
  async #response(path, method, hasBody, query, headers, input, { signal } = {}) {
    const filled = path.replace(/\\{(\\w+)\\}/g, (_, name) => {
      if (input[name] === undefined) throw new TypeError(\`\${name} is missing\`);
      return encodeURIComponent(input[name]);
    });
    const params = new URLSearchParams();
    for (const name of query) {
      const value = input[name];
      if (value === undefined || value === null) continue;
      if (Array.isArray(value)) for (const entry of value) params.append(name, String(entry));
      else if (typeof value === "object") for (const key in value) params.set(\`\${name}[\${key}]\`, String(value[key]));
      else params.set(name, String(value));
    }
    const sent = new Headers();
    for (const name of headers) if (input[name] !== undefined && input[name] !== null) sent.set(name, asHeader(String(input[name])));
    if (this.#token) sent.set("authorization", \`Bearer \${this.#token}\`);
    let body;
    if (hasBody && input.contentType !== undefined) {
      sent.set("content-type", input.contentType);
      // A form says its own boundary.
      if (input.contentType === "multipart/form-data") sent.delete("content-type");
      body = input.body;
    } else if (hasBody) {
      sent.set("content-type", "application/json");
      body = JSON.stringify(input.body ?? {});
    }
    const address = this.#url + filled + (params.size > 0 ? \`?\${params}\` : "");
    // Browsers refuse to call it as a method of something else.
    const send = this.#fetch;
    const response = await send(address, { method, headers: sent, body, signal });
    if (response.ok) return response;
    throw QuerentError.read(await response.text(), response.status, response.headers.get("x-querent-error-code"));
  }

  async #json(...request) {
    return (await this.#response(...request)).json();
  }

  async *#events(...request) {
    const response = await this.#response(...request);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    try {
      for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
        const frames = (rest + piece.value).replace(/\\r\\n/g, "\\n").split("\\n\\n");
        rest = frames.pop();
        for (const frame of frames) {
          const event = readEvent(frame);
          if (event) yield event;
        }
      }
    } finally {
      await reader.cancel();
    }
  }
}

function readEvent(frame) {
  const found = { event: "message", id: null };
  const data = [];
  for (const line of frame.split("\\n")) {
    const [, name, value] = /^(event|data|id): ?(.*)$/.exec(line) ?? [];
    if (name === "data") data.push(value);
    else if (name) found[name] = value;
  }
  if (data.length === 0) return null;
  const text = data.join("\\n");
  try {
    return { ...found, data: JSON.parse(text) };
  } catch {
    return { ...found, data: text };
  }
}

/** A text as a header can carry it: UTF-8, a byte a character. */
function asHeader(text) {
  return [...new TextEncoder().encode(text)].map((byte) => String.fromCharCode(byte)).join("");
}
`;
}

function declarations() {
  const named = [];
  const methods = operations.map(({ name, path, method, operation, parameters, bodies, answers, kind }) => {
    const fields = parameters.map((one) => field(one.name, one.required, one.schema, one.description ?? one.schema?.description));
    if (bodies.length > 0) fields.push(...bodyFields(bodies));
    const types = name[0].toUpperCase() + name.slice(1);
    if (fields.length > 0) named.push(`export interface ${types}Input {\n${fields.join("")}}\n`);
    const json = answers.find(([type]) => type === JSON_TYPE)?.[1].schema;
    const properties = Object.entries(json?.properties ?? {});
    if (properties.length > 0) {
      const answered = properties.map(([key, of]) => field(key, json.required?.includes(key), of));
      named.push(`export interface ${types}Answer {\n${answered.join("")}}\n`);
    }
    const answer = { json: () => (properties.length > 0 ? `${types}Answer` : typeOf(json)), response: () => "Response" }[kind]?.();
    const returned = kind === "events" ? "AsyncGenerator<ServerEvent, void, undefined>" : `Promise<${answer}>`;
    const isNeeded = parameters.some((one) => one.required) || bodies.length > 0;
    const input = fields.length === 0 ? "Record<string, never>" : `${types}Input`;
    const about = comment(`${operation.summary}. \`${method.toUpperCase()} ${path}\``, "  ");
    return `${about}  ${name}(input${isNeeded ? "" : "?"}: ${input}, options?: CallOptions): ${returned};\n`;
  });
  return `// Made by scripts/typescript_client.mjs of Querent ${document.info.version}.

/** What the server said no with. \`code\` is stable. */
export declare class QuerentError extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string | null;
  constructor(status: number, code: string, message: string, hint?: string | null);

  /** Reads the body of a refusal, or the last line of rows that break off; \`code\` is what a header says. */
  static read(text: string, status: number, code?: string | null): QuerentError;
}

export interface CallOptions {
  signal?: AbortSignal;
}

export interface ClientOptions {
  token?: string;
  fetch?: typeof globalThis.fetch;
}

/** A server-sent event. */
export interface ServerEvent {
  event: string;
  id: string | null;
  data: any;
}

export declare class QuerentClient {
  constructor(url: string | URL, options?: ClientOptions);

${methods.join("\n")}}

${named.join("\n")}`;
}

/** One body of JSON is \`body\`; of several content types the caller names one, unless it sends JSON. */
function bodyFields(bodies) {
  const json = bodies.find(([type]) => type === JSON_TYPE);
  const others = bodies.filter(([type]) => type !== JSON_TYPE).map(([type]) => JSON.stringify(type));
  if (others.length === 0) return [field("body", true, json[1].schema)];
  const types = others.join(" | ");
  const body = json ? `${typeOf(json[1].schema)} | BodyInit` : "BodyInit";
  return [`  body: ${indented(body)};\n`, `  contentType${json ? "?" : ""}: ${types};\n`];
}

function field(name, isRequired, schema, about = schema?.description) {
  return `${about ? comment(about, "  ") : ""}  ${key(name)}${isRequired ? "" : "?"}: ${indented(typeOf(schema))};\n`;
}

/** A type within a field: the lines of its own fields stand further in. */
function indented(type) {
  return type.replace(/\n/g, "\n  ");
}

function key(name) {
  return /^[A-Za-z_]\w*$/.test(name) ? name : JSON.stringify(name);
}

function comment(text, indent) {
  return `${indent}/** ${text.replace(/\*\//g, "* /").replace(/\s+/g, " ")} */\n`;
}

function typeOf(schema) {
  if (!schema) return "any";
  if (schema.$ref) return typeOf(schema.$ref.split("/").slice(1).reduce((found, part) => found[part], document));
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const several = schema.anyOf ?? schema.oneOf;
  if (several) return [...new Set(several.map(typeOf))].join(" | ");
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeOf({ ...schema, type })).join(" | ");
  switch (schema.type) {
    case "string":
      return schema.format === "binary" ? "Blob" : "string";
    case "integer":
    case "number":
      return "number";
    case "boolean":
      return "boolean";
    case "null":
      return "null";
    case "array": {
      const items = typeOf(schema.items);
      return /^\w+$/.test(items) || schema.items?.properties ? `${items}[]` : `(${items})[]`;
    }
    default:
      return objectType(schema);
  }
}

function objectType(schema) {
  const fields = Object.entries(schema.properties ?? {});
  if (fields.length === 0) return schema.type === "object" ? "Record<string, any>" : "any";
  const required = new Set(schema.required ?? []);
  return `{\n${fields.map(([name, of]) => field(name, required.has(name), of)).join("")}}`;
}
