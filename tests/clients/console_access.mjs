// Tokens in the console: the first administrator's, one for a reader, what the reader may not do, and its end.
//
// usage: node console_access.mjs FOLDER_WITH_NODE_MODULES URL FOLDER_FOR_PICTURES
//
// The server has no token yet, and the tables `flights` and `airlines` (tests/it/console.rs).

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const [folder, url, pictures] = process.argv.slice(2);
const require = createRequire(join(folder, "package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const browser = await chromium.launch({
  executablePath: process.env.QUERENT_CHROMIUM || "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"],
});
const faults = [];

/** A person with a browser of their own. */
async function person() {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } });
  const page = await context.newPage();
  page.setDefaultTimeout(Number(process.env.QUERENT_CONSOLE_PATIENCE ?? 60_000));
  page.on("pageerror", (error) => faults.push(`an exception: ${error.message}`));
  const view = (name) => page.locator(".nav").getByRole("link", { name, exact: true }).click();
  return { page, view };
}

async function accessible(page, name) {
  const found = await page.evaluate(`${axe}; axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
    violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html }) => html.slice(0, 160)).join(" | ")))`);
  assert.deepEqual(found, [], `axe on ${name}`);
}

const boss = await person();
const made = boss.page.locator(".done .code");
const create = async (name, role, ends) => {
  await boss.page.getByLabel("Name", { exact: true }).fill(name);
  if (role) await boss.page.getByRole("combobox", { name: "Role", exact: true }).selectOption(role);
  await boss.page.getByRole("combobox", { name: "Ends", exact: true }).selectOption(ends);
  await boss.page.getByRole("button", { name: "Create a token" }).click();
  await boss.page.locator(".done", { hasText: `The token of ${name}.` }).waitFor();
  return made.innerText();
};

// The first token is an administrator's, and this page goes on with it.
await boss.page.goto(url);
await boss.view("Settings");
await boss.page.getByText("There are none: everybody who reaches this server is an administrator").waitFor();
assert.ok(await boss.page.getByRole("combobox", { name: "Role", exact: true }).isDisabled());
const first = await create("boss", null, "");
assert.match(first, /^qrt_[0-9a-f]{64}$/);
assert.equal(await boss.page.getByLabel("Token", { exact: true }).inputValue(), first);
await boss.page.getByRole("button", { name: "I have it" }).click();
await boss.page.locator("tr", { hasText: "boss" }).getByText("active").waitFor();
// Recipes have a place for the token as soon as there is one.
await boss.page.locator(".recipe", { hasText: "curl" }).locator("summary").click();
await boss.page.locator(".recipe .code", { hasText: "Authorization: Bearer TOKEN" }).first().waitFor();
const second = await create("looker", "read", "7");
await boss.page.locator(".done").scrollIntoViewIfNeeded();
await boss.page.screenshot({ path: join(pictures, "console-tokens.png") });
await accessible(boss.page, "Settings with tokens");
await boss.page.setViewportSize({ width: 390, height: 844 });
assert.ok(await boss.page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "tokens are wider than 390 pixels");
await accessible(boss.page, "Settings with tokens, 390");
await boss.page.setViewportSize({ width: 1280, height: 800 });

// A reader is asked for the token, sees what it may, and is told what it may not.
const reader = await person();
await reader.page.goto(url);
await reader.page.getByText("This server asks for a token.").waitFor();
await reader.page.getByText("Enter it in Settings").click();
await reader.page.getByLabel("Token", { exact: true }).fill("qrt_of_somebody_else");
await reader.page.getByRole("button", { name: "Use it" }).click();
await reader.page.getByText("the token is not known to this server").waitFor();
await reader.page.getByLabel("Token", { exact: true }).fill(second);
await reader.page.getByRole("button", { name: "Use it" }).click();
await reader.page.getByText("The server takes it.").waitFor();
assert.equal(await reader.page.getByRole("button", { name: "Create a token" }).count(), 0);
assert.equal(await reader.page.getByText("Settings of the server").count(), 0);
await reader.view("Query");
const write = async (text) => {
  await reader.page.locator(".query-view .cm-content").click();
  await reader.page.keyboard.press("ControlOrMeta+A");
  await reader.page.keyboard.press("Delete");
  await reader.page.keyboard.insertText(text);
  await reader.page.keyboard.press("ControlOrMeta+Enter");
};
await write("SELECT count(*) FROM flights");
await reader.page.locator('.status[data-outcome="done"]').waitFor();
await write("DROP TABLE flights");
await reader.page.locator(".failure", { hasText: "it needs role write" }).waitFor();
await reader.page.screenshot({ path: join(pictures, "console-forbidden.png") });
await accessible(reader.page, "a refusal");
// What needs another role is not offered, and the reason is said.
await reader.view("Data in");
await reader.page.getByText("The token of looker has the role read, which imports nothing").waitFor();
assert.equal(await reader.page.getByLabel("Files").count(), 0);
await accessible(reader.page, "no import");
await reader.view("Catalog");
await reader.page.getByRole("link", { name: /^flights/ }).click();
await reader.page.getByRole("columnheader", { name: "Type" }).waitFor();
assert.equal(await reader.page.getByRole("button", { name: /comment of/ }).count(), 0);
await reader.view("Settings");
await reader.page.getByText("The server takes you for looker, with the role read.").waitFor();

// Revoked, it is not taken any more, and the page says so.
await boss.page.getByRole("button", { name: "Revoke the token looker" }).click();
await boss.page.getByRole("button", { name: "Yes, revoke the token looker" }).click();
await boss.page.locator("tr", { hasText: "looker" }).getByText("revoked").waitFor();
await reader.view("Query");
await write("SELECT count(*) FROM flights");
await reader.page.getByText("This server does not take the token any more.").waitFor();

assert.deepEqual(faults, []);
await browser.close();
console.log("ok");
