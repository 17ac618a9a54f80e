// The tokens of the server, for administrators: what there is, another one, and an end to one.
import { useEffect, useState } from "preact/hooks";
import type { GetTokensAnswer, PostTokensAnswer, PostTokensInput, QuerentError } from "querent-client";

import { asFailure, client, isTokenRemembered, setToken, token } from "../api";
import { useCell } from "../cell";
import { time } from "../format";
import { FailureBox, TwoClicks, copy, say } from "../parts";

type Token = GetTokensAnswer["tokens"][number];
type Role = PostTokensInput["body"]["role"];

const PAGE = 200;

const ROLES: { value: Role; label: string }[] = [
  { value: "read", label: "read: queries and questions" },
  { value: "write", label: "write: also changes tables" },
  { value: "admin", label: "admin: everything" },
];

const DAYS = [["", "never"], ["7", "in 7 days"], ["30", "in 30 days"], ["90", "in 90 days"], ["365", "in a year"]] as const;

export function ServerTokens() {
  const known = useCell(token);
  const [tokens, setTokens] = useState<{ shown: Token[]; isCut: boolean } | null>(null);
  const [made, setMade] = useState<PostTokensAnswer | null>(null);
  const [failure, setFailure] = useState<QuerentError | null>(null);
  const read = () => {
    const asked = token.value;
    // Who is no administrator may not see them: for others there is nothing here. An answer that comes late is of the token before.
    client.getTokens({ limit: PAGE }).then(
      (answer) => token.value === asked && setTokens({ shown: answer.tokens, isCut: Boolean(answer.next_page_token) }),
      () => token.value === asked && setTokens(null),
    );
  };
  useEffect(read, [known]);
  if (tokens === null) return null;
  // A server that has no token lets everybody in; the first ends that.
  const isFirst = known === "" && tokens.shown.length === 0;
  const create = async (body: PostTokensInput["body"]) => {
    setFailure(null);
    try {
      const answer = await client.postTokens({ body });
      setMade(answer);
      if (isFirst && body.role === "admin") setToken(answer.token, isTokenRemembered());
      read();
      return true;
    } catch (error) {
      setFailure(asFailure(error));
      return false;
    }
  };
  const revoke = async (one: Token) => {
    try {
      await client.deleteTokensId({ id: String(one.id) });
      say(`The token ${one.name} was revoked`);
    } catch (error) {
      say(`It was not revoked: ${asFailure(error).message}`);
    }
    read();
  };
  return (
    <section>
      <h2>Tokens of the server</h2>
      {isFirst && (
        <p class="soft">
          There are none: everybody who reaches this server is an administrator. The first one is an administrator's; from then
          on nobody is let in without a token.
        </p>
      )}
      <NewToken key={String(isFirst)} isFirst={isFirst} onCreate={create} />
      {failure && <FailureBox failure={failure} />}
      {made && (
        <div class="done" role="status">
          <p>The token of <strong>{made.name}</strong>. It is shown here only, and not again:</p>
          <pre class="code" tabIndex={0}>{made.token}</pre>
          <div class="row">
            <button class="primary" onClick={() => void copy(made.token, "Token")}>Copy</button>
            <button onClick={() => setMade(null)}>I have it</button>
          </div>
        </div>
      )}
      {tokens.shown.length > 0 && <List tokens={tokens.shown} onRevoke={(one) => void revoke(one)} />}
      {tokens.isCut && <p class="note">These are the first {PAGE}; <code>querent token list</code> has all.</p>}
    </section>
  );
}

function NewToken({ isFirst, onCreate }: { isFirst: boolean; onCreate(body: PostTokensInput["body"]): Promise<boolean> }) {
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>(isFirst ? "admin" : "read");
  const [databases, setDatabases] = useState("");
  const [days, setDays] = useState("");
  const create = async () => {
    const only = databases.split(",").map((one) => one.trim()).filter((one) => one !== "");
    const isCreated = await onCreate({
      name: name.trim(), role,
      ...(only.length > 0 ? { databases: only } : {}),
      ...(days === "" ? {} : { expires_at: new Date(Date.now() + Number(days) * 86_400_000).toISOString() }),
    });
    if (isCreated) setName("");
  };
  return (
    <form onSubmit={(event) => { event.preventDefault(); void create(); }}>
      <div class="form-grid">
        <label>Name<input required autocomplete="off" placeholder="grafana" value={name} onInput={(event) => setName(event.currentTarget.value)} /></label>
        <label>Role
          <select value={role} disabled={isFirst} onChange={(event) => setRole(event.currentTarget.value as Role)}>
            {ROLES.map(({ value, label }) => <option value={value}>{label}</option>)}
          </select>
        </label>
        <label>Only databases<input placeholder="all" disabled={isFirst} value={databases} onInput={(event) => setDatabases(event.currentTarget.value)} /></label>
        <label>Ends
          <select value={days} onChange={(event) => setDays(event.currentTarget.value)}>
            {DAYS.map(([value, label]) => <option value={value}>{label}</option>)}
          </select>
        </label>
      </div>
      <div class="row"><button disabled={name.trim() === ""}>Create a token</button></div>
    </form>
  );
}

function List({ tokens, onRevoke }: { tokens: Token[]; onRevoke(one: Token): void }) {
  return (
    <div class="table-scroll" tabIndex={0} role="group" aria-label="Tokens of the server">
      <table class="facts">
        <thead>
          <tr><th scope="col">Name</th><th scope="col">Role</th><th scope="col">Databases</th><th scope="col">Created</th><th scope="col">Ends</th><th scope="col">State</th><th scope="col"><span class="off-screen">Revoke</span></th></tr>
        </thead>
        <tbody>
          {tokens.map((one) => (
            <tr key={one.id}>
              <th scope="row">{one.name}{one.subject !== one.name && <small> for {one.subject}</small>}</th>
              <td>{[one.role, ...one.roles].join(", ")}</td>
              <td>{one.databases?.join(", ") ?? "all"}</td>
              <td>{time(one.created_at)} <small>by {one.created_by}</small></td>
              <td>{one.expires_at === null ? "never" : time(one.expires_at)}</td>
              <td>{one.state}</td>
              <td>{one.state === "active" && <TwoClicks act="Revoke" what={`token ${one.name}`} onAct={() => onRevoke(one)} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
