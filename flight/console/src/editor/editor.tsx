// The text editor of queries.
import { autocompletion, closeBrackets, closeBracketsKeymap, closeCompletion, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { HighlightStyle, LanguageSupport, bracketMatching, indentOnInput, syntaxHighlighting } from "@codemirror/language";
import { type Diagnostic, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { Compartment, EditorState, type Extension, Prec } from "@codemirror/state";
import {
  EditorView, drawSelection, highlightActiveLine, highlightSpecialChars, keymap, lineNumbers, placeholder,
} from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "preact/hooks";

import { completeOnServer } from "./complete";
import { kqlLanguage } from "./kql";
import { type Part, querentSql, statementAt } from "./sql";

export type Language = "sql" | "kql";

export interface EditorMark {
  from: number;
  to: number;
  message: string;
  fix: { text: string; label: string } | null;
}

interface EditorProps {
  text: string;
  language: Language;
  label: string;
  mark?: EditorMark | null;
  autofocus?: boolean;
  onChange(text: string): void;
  /** What would run is another part of the text; `null`: all of it. */
  onChoose?(chosen: Part | null): void;
  onRun(chosen: Part | null): void;
}

/** Colours come from the page's style, so that they follow its theme. */
const colours = HighlightStyle.define([
  { tag: tags.keyword, class: "tok-keyword" },
  { tag: [tags.string, tags.special(tags.string)], class: "tok-string" },
  { tag: [tags.number, tags.bool, tags.null], class: "tok-number" },
  { tag: tags.comment, class: "tok-comment" },
  { tag: [tags.typeName, tags.standard(tags.name)], class: "tok-type" },
  { tag: [tags.function(tags.variableName), tags.special(tags.name)], class: "tok-function" },
  { tag: [tags.operator, tags.punctuation], class: "tok-operator" },
]);

export function Editor(props: EditorProps) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef(props);
  latest.current = props;
  const language = useRef(new Compartment());
  // Texts that were told to the owner and have yet to come back as `text`. One that comes back is no change of the
  // owner's, and may be older than what stands in the editor by then.
  const echoes = useRef<string[]>([]);
  const isGiven = useRef(false);

  useEffect(() => {
    const nonce = document.querySelector<HTMLMetaElement>("meta[name=csp-nonce]")?.content ?? "";
    const run = (editor: EditorView) => {
      closeCompletion(editor);
      latest.current.onRun(chosenPart(editor.state, latest.current.language));
      return true;
    };
    const made = new EditorView({
      parent: place.current!,
      state: EditorState.create({
        doc: props.text,
        extensions: [
          EditorView.cspNonce.of(nonce),
          Prec.highest(keymap.of([{ key: "Mod-Enter", run }])),
          lineNumbers(), highlightSpecialChars(), history(), drawSelection(), indentOnInput(), bracketMatching(),
          closeBrackets(), highlightActiveLine(), syntaxHighlighting(colours),
          autocompletion({ icons: false, override: [completeOnServer(() => latest.current.language)] }),
          EditorView.lineWrapping,
          placeholder("Write a query; Ctrl-Enter runs it"),
          // Tab indents; Escape and then Tab leaves the editor, as CodeMirror has it.
          keymap.of([...closeBracketsKeymap, ...completionKeymap, ...historyKeymap, ...lintKeymap, ...defaultKeymap, indentWithTab]),
          // What scrolls has something that takes the focus, also for checks that do not know editable elements.
          EditorView.contentAttributes.of({ "aria-label": props.label, tabindex: "0" }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged || update.selectionSet) {
              latest.current.onChoose?.(chosenPart(update.state, latest.current.language));
            }
            if (!update.docChanged || isGiven.current) return;
            const text = update.state.doc.toString();
            echoes.current.push(text);
            latest.current.onChange(text);
          }),
          language.current.of(languageOf(props.language)),
        ],
      }),
    });
    view.current = made;
    props.onChoose?.(chosenPart(made.state, props.language));
    if (props.autofocus && matchMedia("(min-width: 700px)").matches) made.focus();
    return () => made.destroy();
  }, []);

  useEffect(() => {
    const editor = view.current;
    if (!editor) return;
    editor.dispatch({ effects: language.current.reconfigure(languageOf(props.language)) });
    latest.current.onChoose?.(chosenPart(editor.state, props.language));
  }, [props.language]);

  useEffect(() => {
    const editor = view.current;
    const echo = echoes.current.lastIndexOf(props.text);
    if (echo >= 0) {
      echoes.current.splice(0, echo + 1);
    } else if (editor && editor.state.doc.toString() !== props.text) {
      isGiven.current = true;
      editor.dispatch({ changes: changeBetween(editor.state.doc.toString(), props.text) });
      isGiven.current = false;
    }
  }, [props.text]);

  useEffect(() => {
    const editor = view.current;
    if (editor) editor.dispatch(setDiagnostics(editor.state, props.mark ? [diagnostic(props.mark, editor)] : []));
  }, [props.mark]);

  return <div class="editor" ref={place} />;
}

/** What runs: what is selected, or the statement at the cursor where there are several; `null`: the whole text. */
function chosenPart(state: EditorState, language: Language): Part | null {
  const { from, to } = state.selection.main;
  if (from !== to) return { text: state.sliceDoc(from, to), from };
  return language === "sql" ? statementAt(state, from) : null;
}

/** The part in which two texts differ, so that the cursor stays where the others are the same. */
function changeBetween(before: string, after: string): { from: number; to: number; insert: string } {
  const most = Math.min(before.length, after.length);
  let start = 0;
  while (start < most && before[start] === after[start]) start++;
  let end = 0;
  while (end < most - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  return { from: start, to: before.length - end, insert: after.slice(start, after.length - end) };
}

function diagnostic(mark: EditorMark, editor: EditorView): Diagnostic {
  const length = editor.state.doc.length;
  const { fix } = mark;
  const apply = (view: EditorView, from: number, to: number) =>
    view.dispatch({ changes: { from, to, insert: fix?.text ?? "" } });
  return {
    from: Math.min(mark.from, length),
    to: Math.min(mark.to, length),
    severity: "error",
    message: mark.message,
    actions: fix ? [{ name: fix.label, apply }] : [],
  };
}

function languageOf(language: Language): Extension {
  return language === "kql" ? kqlLanguage : new LanguageSupport(querentSql.language);
}
