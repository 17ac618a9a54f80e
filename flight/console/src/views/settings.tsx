// Settings: the token, the looks, models, the server's tokens and settings, and how other clients reach this server.
import { useEffect, useState } from "preact/hooks";
import type { GetSettingsAnswer } from "querent-client";

import { asFailure, client, isSendable, isTokenRemembered, setToken, token, tokenIn } from "../api";
import { caller } from "../caller";
import { readCatalogNames } from "../catalog-names";
import { useCell } from "../cell";
import { Switch, copy } from "../parts";
import { type Theme, theme } from "../preferences";
import { type Recipe, recipes } from "../recipes";
import { Models } from "../settings/models";
import { ServerTokens } from "../settings/tokens";

export function SettingsView() {
  const chosenTheme = useCell(theme);
  const hasToken = useCell(token) !== "";
  return (
    <div class="view scroll page">
      <h1>Settings</h1>
      <Version />
      <Token />
      <section>
        <h2>Looks</h2>
        <Switch<Theme>
          label="Looks"
          value={chosenTheme}
          options={[{ value: "system", label: "As the system" }, { value: "light", label: "Light" }, { value: "dark", label: "Dark" }]}
          onChange={(value) => theme.set(value)}
        />
      </section>
      <Models />
      <ServerTokens />
      <ServerSettings />
      <section>
        <h2>Other clients</h2>
        <p class="soft">
          Each with this server's address. {hasToken && "Write your token where it says TOKEN. "}
          {location.protocol === "https:" && (
            <>
              Where the authority of its certificate is not one that the system knows, <code>--ca FILE</code> names it to{" "}
              <code>querent</code>, and <code>SSL_CERT_FILE</code> to most of the others.
            </>
          )}
        </p>
        {recipes(location, hasToken).map((recipe) => <RecipeBox recipe={recipe} key={recipe.name} />)}
      </section>
    </div>
  );
}

function Token() {
  const known = useCell(token);
  const who = useCell(caller);
  const [text, setText] = useState(known);
  const [isRemembered, remember] = useState(isTokenRemembered());
  const [said, say] = useState("");
  // The first token of a server is made below.
  useEffect(() => setText(known), [known]);
  const save = async () => {
    const given = tokenIn(text);
    if (!isSendable(given)) return say("A token has ASCII letters, digits and signs only: was it copied with something else?");
    setToken(given, isRemembered);
    try {
      await readCatalogNames();
      say("The server takes it.");
    } catch (error) {
      say(asFailure(error).message);
    }
  };
  return (
    <form onSubmit={(event) => { event.preventDefault(); void save(); }}>
      <h2>Token</h2>
      <p class="soft">Only a server with tokens asks for one. It is sent to this server and nowhere else.</p>
      <div class="row">
        <input type="password" autocomplete="off" aria-label="Token" placeholder="Token" value={text}
          onInput={(event) => setText(event.currentTarget.value)} />
        <label class="field">
          <input type="checkbox" checked={isRemembered} onChange={(event) => remember(event.currentTarget.checked)} />
          keep it in this browser
        </label>
        <button class="primary">Use it</button>
        {known !== "" && <button type="button" onClick={() => { setText(""); setToken("", false); say("Forgotten."); }}>Forget it</button>}
      </div>
      <p role="status" class="soft">{said}</p>
      {who && who.subject !== "local" && (
        <p class="soft">
          The server takes you for {who.subject}, with the role <code>{who.role}</code>
          {who.databases && ` in ${who.databases.join(", ") || "no database"}`}.
        </p>
      )}
    </form>
  );
}

function Version() {
  const [version, setVersion] = useState("");
  useEffect(() => {
    client.getHealth().then((health) => setVersion(health.version), () => undefined);
  }, []);
  return <p class="soft">Querent {version}, <a href="/docs">all of its routes</a></p>;
}

/** The server's settings, which only administrators may see; for others there is nothing here. */
function ServerSettings() {
  const known = useCell(token);
  const [settings, setSettings] = useState<GetSettingsAnswer["settings"]>([]);
  const [filter, setFilter] = useState("");
  useEffect(() => {
    let isCurrent = true;
    const show = (all: GetSettingsAnswer["settings"]) => isCurrent && setSettings(all);
    client.getSettings().then((answer) => show(answer.settings), () => show([]));
    return () => void (isCurrent = false);
  }, [known]);
  if (settings.length === 0) return null;
  const words = filter.toLowerCase();
  const shown = settings.filter((one) => [one.name, one.value, one.about].some((text) => text.toLowerCase().includes(words)));
  return (
    <section>
      <h2>Settings of the server</h2>
      <details class="recipe">
        <summary>{settings.length} settings, {settings.filter((one) => one.origin !== "default").length} of them set</summary>
        <input type="search" class="settings-filter" aria-label="Find a setting" placeholder="Find a setting" value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)} />
        <div class="table-scroll" tabIndex={0} role="group" aria-label="Settings of the server">
          <table class="facts">
            <thead><tr><th scope="col">Setting</th><th scope="col">Value</th><th scope="col">From</th><th scope="col">What it is</th></tr></thead>
            <tbody>
              {shown.map((one) => (
                <tr><th scope="row"><code>{one.name}</code></th><td><code>{one.value}</code></td><td>{one.origin}</td><td>{one.about}</td></tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </section>
  );
}

function RecipeBox({ recipe }: { recipe: Recipe }) {
  return (
    <details class="recipe">
      <summary>{recipe.name}</summary>
      {recipe.about && <p class="soft">{recipe.about}</p>}
      <pre class="code">{recipe.text}</pre>
      <div class="row">
        <button onClick={() => void copy(recipe.text, recipe.name)}>Copy</button>
        {recipe.link && <a href={recipe.link.address}>{recipe.link.name}</a>}
      </div>
    </details>
  );
}
