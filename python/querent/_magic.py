"""`%%querent` in Jupyter and IPython: cells in SQL, in KQL, or in plain language.

    %load_ext querent
    %querent querent-data

    %%querent
    SELECT carrier, count(*) AS n FROM flights GROUP BY 1

    %%querent --kql --out=delays
    flights | summarize mean = avg(dep_delay) by carrier

    %%querent --ask
    Which carrier is latest?
"""

from __future__ import annotations

import keyword
import os
import shlex
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from IPython.core.error import UsageError
from IPython.display import Markdown, display

from . import Answer, Database, QuerentError, Result, open as open_database

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

USAGE = (
    "%querent FOLDER opens a data folder; %%querent [--kql | --ask] [--database=NAME] [--session=NAME] [--out=VARIABLE] "
    "runs the cell, in SQL unless told. A cell that begins with ? is a question."
)
# How often a growing answer is drawn: a notebook draws it whole each time.
DRAWN_EVERY_SECONDS = 0.1
VEGA_LITE = "application/vnd.vegalite.v5+json"


@dataclass
class CellOptions:
    """What stands behind `%%querent`."""

    language: str = "sql"
    database: str | None = None
    session: str | None = None
    out: str | None = None


class QuerentMagic:
    """The commands of one notebook, with the folder that it has open."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._open: Database | None = None
        self._folder: str | None = None

    def line(self, line: str) -> Database | None:
        """`%querent FOLDER`; alone it says how the commands are used."""
        words = words_of(line)
        if len(words) > 1 or (words and words[0].startswith("-")):
            raise UsageError(USAGE)
        if not words:
            print(USAGE)
            return self._open
        self._use(os.path.expanduser(words[0]))
        return None

    def cell(self, line: str, cell: str) -> Result | Answer | None:
        """`%%querent`: shows what the cell answers with, or binds it to the variable of `--out`."""
        options = cell_options(line)
        text = cell.strip().rstrip(";").rstrip()
        if text.startswith("?"):
            options.language, text = "ask", text[1:].strip()
        if not text:
            raise UsageError("the cell is empty; " + USAGE)
        if self._open is None:
            self._use("querent-data")
        try:
            answered = self._answered(options, text)
        except QuerentError as error:
            # The text names what to do; a traceback of this module would hide it.
            raise UsageError(str(error)) from None
        if options.out is not None:
            self._shell.user_ns[options.out] = answered
            return None
        return None if isinstance(answered, Answer) else answered

    def _use(self, path: str) -> None:
        """Opens a folder. The one before stays open where that fails, and the same one as it is."""
        folder = os.path.realpath(path)
        if self._open is not None and self._folder == folder:
            return
        try:
            opened = open_database(path)
        except QuerentError as error:
            raise UsageError(str(error)) from None
        if self._open is not None:
            self._open.close()
        self._open, self._folder = opened, folder

    def _answered(self, options: CellOptions, text: str) -> Result | Answer:
        if options.language == "kql":
            return self._open.kql(text, database=options.database).collect()
        if options.language == "sql":
            return self._open.sql(text, database=options.database).collect()
        drawn = _GrowingAnswer()
        answer = self._open.ask(text, database=options.database, session=options.session, on_event=drawn.take)
        drawn.finish(answer)
        return answer


class _GrowingAnswer:
    """An answer on the screen, drawn anew as it grows."""

    def __init__(self) -> None:
        self._text = ""
        self._doing = "..."
        self._drawn_at = time.monotonic()
        self._place = display(Markdown(self._doing), display_id=True)

    def take(self, name: str, event: dict[str, Any]) -> None:
        if name == "answer_delta":
            self._text += event["text"]
        elif name == "tool_call":
            self._doing = f"*running {event['tool']} ...*"
        else:
            return
        now = time.monotonic()
        if now - self._drawn_at >= DRAWN_EVERY_SECONDS:
            self._drawn_at = now
            self._draw(self._text or self._doing)

    def finish(self, answer: Answer) -> None:
        query = answer.sql or answer.kql
        language = "sql" if answer.sql else "kql"
        self._draw(answer.text + (f"\n\n```{language}\n{query}\n```" if query else ""))
        if answer.rows is not None:
            display(answer.rows)
        if answer.chart is not None:
            display({VEGA_LITE: answer.chart, "text/plain": "(a chart)"}, raw=True)

    def _draw(self, text: str) -> None:
        if self._place is not None:
            self._place.update(Markdown(text))


def cell_options(line: str) -> CellOptions:
    """Reads what stands behind `%%querent`. Raises `UsageError`."""
    options = CellOptions()
    for word in words_of(line):
        name, _, value = word.partition("=")
        if name in ("--kql", "--ask", "--sql") and not value:
            options.language = name[2:]
        elif name in ("--database", "--session", "--out") and value:
            setattr(options, name[2:], value)
        else:
            raise UsageError(f"`{word}` is no option; {USAGE}")
    if options.out is not None and (not options.out.isidentifier() or keyword.iskeyword(options.out)):
        raise UsageError(f"`{options.out}` is no name of a variable")
    if options.session is not None and options.language != "ask":
        raise UsageError("a session is one of questions: add --ask")
    return options


def words_of(line: str) -> list[str]:
    """Splits what stands behind a command. Raises `UsageError`."""
    try:
        return shlex.split(line)
    except ValueError as error:
        raise UsageError(f"{error}; {USAGE}") from None


def load(shell: InteractiveShell) -> None:
    """Registers the commands."""
    magic = QuerentMagic(shell)
    shell.register_magic_function(magic.line, "line", "querent")
    shell.register_magic_function(magic.cell, "cell", "querent")
