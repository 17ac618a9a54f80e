// Takes every chart that a server made: it must be valid against Vega-Lite's own schema, Vega-Lite must compile it
// without a warning, and Vega must draw a mark a row, however the rows are bound: as they came, or all as text.
//
// usage: node vega_lite.mjs FOLDER_WITH_NODE_MODULES CHARTS.json      [{name, spec, rows, marks, shown}, ...]

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [folder, charts] = process.argv.slice(2);
const installed = (path) => pathToFileURL(join(folder, "node_modules", path));
const vega = await import(installed("vega/build/vega-node.js"));
const vegaLite = await import(installed("vega-lite/build/vega-lite.js"));
const require = createRequire(join(folder, "package.json"));
const Ajv = require("ajv").default;
const schema = require("vega-lite/build/vega-lite-schema.json");

const isValid = new Ajv({ allErrors: true, strict: false, validateFormats: false }).compile(schema);
const { compile } = vegaLite.default ?? vegaLite;
const { View, parse, None } = vega.default ?? vega;

// Every warning is a failure.
const logger = {
  level: () => logger,
  error: (...said) => assert.fail(said.join(" ")),
  warn: (...said) => assert.fail(said.join(" ")),
  info: () => logger,
  debug: () => logger,
};

async function draw(spec, bind) {
  const view = new View(parse(compile(spec, { logger }).spec), { renderer: "none", logger });
  await bind(view).runAsync();
  const svg = await view.toSVG();
  view.finalize();
  return svg;
}

// The marks themselves: not axes, not the legend's symbols.
const marks = (svg) => [...svg.matchAll(/aria-roledescription="(bar|point|circle)" d="([^"]+)"|<path ([^>]*)aria-roledescription="(bar|point|circle)"([^>]*)>/g)];
const text = (svg) => [...svg.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map(([, inner]) => unescaped(inner));
const unescaped = (inner) => inner.replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&quot;/g, '"').replace(/&amp;/g, "&");

let failed = 0;
for (const { name, spec, rows, marks: expected, shown } of JSON.parse(readFileSync(charts, "utf8"))) {
  try {
    assert.ok(isValid(spec), JSON.stringify((isValid.errors ?? []).slice(-3)));
    assert.equal(spec.data.values, undefined);
    const asText = rows.map((row) =>
      Object.fromEntries(Object.entries(row).map(([column, value]) => [column, value === null ? null : String(value)])));
    const copied = () => rows.map((row) => ({ ...row }));
    const svgs = [
      await draw(spec, (view) => view.insert("table", copied())),
      await draw(spec, (view) => view.insert("table", asText)),
      await draw({ ...spec, data: { values: copied() } }, (view) => view),
      await draw({ ...spec, data: { ...spec.data, values: asText } }, (view) => view),
    ];
    const outlines = svgs.map((svg) => marks(svg).map(([mark]) => mark.match(/ d="([^"]*)"/)?.[1]));
    for (const [way, svg] of svgs.entries()) {
      assert.ok(!/NaN|undefined|Infinity/.test(svg), svg);
      assert.equal(outlines[way].length, expected, `marks, rows bound in way ${way}: ${svg}`);
      assert.deepEqual(outlines[way], outlines[0], `way ${way} draws otherwise`);
      for (const label of shown) assert.ok(text(svg).includes(label), `${label} is not among ${text(svg)}`);
    }
  } catch (error) {
    failed += 1;
    console.error(`${name}: ${error.message}\n${JSON.stringify(spec)}`);
  }
}
process.exit(failed === 0 ? 0 : 1);
