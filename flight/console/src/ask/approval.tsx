// The calls that a paused run waits for: what each would do, and the decision of the person.
import { useState } from "preact/hooks";

import { valueText } from "../grid/rows";
import { type Verdict, decide } from "./asking";
import type { AskRun, Step } from "./run";

type ApprovalStep = Extract<Step, { kind: "approval" }>;

const STATES = { approved: "approved", denied: "denied", abandoned: "left undecided: the conversation went on", waiting: "" };

/** All calls of a run are decided together: with several of them, the last choice sends them. */
export function Approvals({ run }: { run: AskRun }) {
  const steps = run.steps.filter((step): step is ApprovalStep => step.kind === "approval");
  const [chosen, choose] = useState<ReadonlyMap<string, boolean>>(new Map());
  const [reason, setReason] = useState("");
  const [isSending, setSending] = useState(false);
  if (steps.length === 0) return null;
  const isOpen = run.outcome === "paused" && steps.some((step) => step.state === "waiting") && !isSending;
  const decideOne = async (id: string, approve: boolean) => {
    const next = new Map(chosen).set(id, approve);
    choose(next);
    if (steps.some((step) => !next.has(step.id))) return;
    setSending(true);
    const because = reason.trim() === "" ? {} : { reason: reason.trim() };
    await decide(run, steps.map((step): Verdict => ({ approval_id: step.id, approve: next.get(step.id)!, ...because })));
    setSending(false);
  };
  return (
    <section class="approvals" role="group" aria-label="Calls that wait for approval">
      {steps.map((step) => (
        <div class="approval" data-state={step.state}>
          <p><strong>{isOpen ? "May this be done?" : step.state === "waiting" ? "Waits for approval" : `This was ${STATES[step.state]}`}</strong> <code>{step.tool}</code></p>
          <dl class="approval-args">
            {Object.entries(step.args).map(([name, value]) => (
              <div><dt>{name}</dt><dd><pre class="code">{typeof value === "object" ? JSON.stringify(value, null, 1) : valueText(value) ?? "null"}</pre></dd></div>
            ))}
          </dl>
          {isOpen && (
            <div class="row">
              <button class="primary" aria-pressed={chosen.get(step.id) === true} onClick={() => void decideOne(step.id, true)}>Approve</button>
              <button aria-pressed={chosen.get(step.id) === false} onClick={() => void decideOne(step.id, false)}>Deny</button>
            </div>
          )}
        </div>
      ))}
      {isOpen && (
        <label class="field">
          Why, for the model
          <input value={reason} placeholder="optional" onInput={(event) => setReason(event.currentTarget.value)} />
        </label>
      )}
    </section>
  );
}
