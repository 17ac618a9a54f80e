// The models that answer questions, each tried with a click.
import { useEffect, useState } from "preact/hooks";
import { QuerentError } from "querent-client";

import { asFailure, client, token } from "../api";
import { useCell } from "../cell";
import { duration } from "../format";

interface Models {
  current: string;
  names: string[];
}

/** What a trial asks: nothing that needs a table. */
const QUESTION = "Reply with the word ready.";

export function Models() {
  const known = useCell(token);
  const [models, setModels] = useState<Models | null>(null);
  useEffect(() => {
    let isCurrent = true;
    const show = (answer: Models | null) => isCurrent && setModels(answer);
    client.getModels().then(
      (answer) => show({
        current: answer.current ?? "",
        names: answer.data.filter((model) => model.owned_by === "operator").map((model) => model.id),
      }),
      () => show(null),
    );
    return () => void (isCurrent = false);
  }, [known]);
  if (models === null) return null;
  return (
    <section>
      <h2>Models</h2>
      <p class="soft">Questions are answered by <code>{models.current}</code> unless a client names another one.</p>
      <ul class="activity" aria-label="Models">
        {models.names.map((name) => <Model key={name} name={name} isDefault={name === models.current} />)}
      </ul>
    </section>
  );
}

type Trial = { step: "running" } | { step: "answered"; text: string; ms: number } | { step: "failed"; failure: QuerentError };

function Model({ name, isDefault }: { name: string; isDefault: boolean }) {
  const [trial, setTrial] = useState<Trial | null>(null);
  const run = async () => {
    setTrial({ step: "running" });
    const begun = performance.now();
    try {
      const body = { model: name, stream: false, messages: [{ role: "user", content: QUESTION }] };
      const answer = await (await client.postChatCompletions({ body })).json();
      setTrial({ step: "answered", text: String(answer.choices[0].message.content ?? ""), ms: performance.now() - begun });
    } catch (error) {
      setTrial({ step: "failed", failure: asFailure(error) });
    }
  };
  return (
    <li>
      <div class="grow">
        <code>{name}</code>
        <small role="status">
          {isDefault && !trial && "the default"}
          {trial?.step === "running" && "Asked; a first answer may take a while…"}
          {trial?.step === "answered" && `Answered in ${duration(trial.ms)}: ${trial.text.slice(0, 200)}`}
          {trial?.step === "failed" && <span class="warning">{trial.failure.code}: {trial.failure.message} {trial.failure.hint}</span>}
        </small>
      </div>
      <button disabled={trial?.step === "running"} aria-label={`Try it: ${name}`} onClick={() => void run()}>Try it</button>
    </li>
  );
}
