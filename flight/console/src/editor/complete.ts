// Completion by the server, which knows the catalog, the functions of both languages, and what may stand where.
import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import type { PostCompleteAnswer } from "querent-client";

import { client, isAbort } from "../api";
import { database } from "../preferences";
import type { Language } from "./editor";

/** Columns first, then what they are of; words of the language last. */
const BOOST: Record<PostCompleteAnswer["suggestions"][number]["kind"], number> = {
  column: 3, table: 2, database: 1, function: 0, keyword: -1,
};

/** Asks the server what may stand at the cursor. A server that does not answer completes nothing. */
export function completeOnServer(language: () => Language) {
  return async (context: CompletionContext): Promise<CompletionResult | null> => {
    // After a letter, a dot, an opening quote, and in KQL after a pipe; elsewhere only when the person asks.
    if (!context.explicit && !context.matchBefore(/[\w.$"[]|\|\s*/)) return null;
    const abort = new AbortController();
    context.addEventListener("abort", () => abort.abort());
    let answer: PostCompleteAnswer;
    try {
      const body = { text: context.state.doc.toString(), position: context.pos, language: language(), database: database.value };
      answer = await client.postComplete({ body }, { signal: abort.signal });
    } catch (error) {
      if (!isAbort(error)) console.debug("no completion", error);
      return null;
    }
    const options = answer.suggestions.map(({ text, kind, detail }): Completion => ({
      label: text, type: kind, boost: BOOST[kind], ...(detail === undefined ? {} : { detail }),
    }));
    // A list that was cut is asked for again with each letter, and one of before the first letter, which has no functions.
    const isWhole = !answer.truncated && answer.start < context.pos;
    return { from: answer.start, options, ...(isWhole ? { validFor: /^[\w"']*$/ } : {}) };
  };
}
