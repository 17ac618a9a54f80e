// Whom the server takes this page for: what they may not do is not offered.
import type { GetCallerAnswer } from "querent-client";

import { client, token } from "./api";
import { Cell, useCell } from "./cell";

export const caller = new Cell<GetCallerAnswer | null>(null);

/** Asks the server; until it answers, and where it does not, everything is offered. */
export async function readCaller(): Promise<void> {
  caller.set(null);
  const asked = token.value;
  const answer = await client.getCaller();
  // An answer that comes late is of the token before.
  if (token.value === asked) caller.set(answer);
}

/** Whether the token is for reading only. */
export function useIsReader(): boolean {
  return useCell(caller)?.role === "read";
}
