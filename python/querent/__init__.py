"""Querent in this process: SQL, KQL and plain language over files and data frames.

    >>> import querent
    >>> db = querent.open("querent-data")
    >>> db.import_files("flights.csv")
    >>> db.sql("SELECT count(*) AS n FROM flights").to_pandas()

`open` without a path makes a folder that goes with the connection. Everything may be used from several threads; other
threads run while a statement does, and Ctrl-C ends it.
"""

from __future__ import annotations

import atexit
import html
import json
import os
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

# Lance leaves two cores free by default: on a small machine a search would wait for a build of its index.
os.environ.setdefault("LANCE_CPU_THREADS", str(2 * (os.cpu_count() or 1)))

from . import _querent
from ._querent import QuerentError, __version__

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

# The rows that a notebook shows.
_SHOWN_ROWS = 50

__all__ = ["Answer", "Database", "QuerentError", "Result", "__version__", "open"]


def open(path: str | os.PathLike[str] | None = None, *, settings: Mapping[str, object] | None = None) -> Database:
    """Opens a data folder, or makes it; without a path a folder that goes with the connection.

    `settings` are those of `querent.toml`, by their path: `{"agent.model": "qwen3:8b", "embed.provider": "none"}`. They
    go before the environment's and the file's. A folder that a server or another process has open is refused.
    """
    return Database(path, settings or {})


class Database:
    """A data folder, open in this process. Closes at the end of a `with` block, or of the program."""

    def __init__(self, path: str | os.PathLike[str] | None, settings: Mapping[str, object]) -> None:
        self._connection = _querent.Connection(path, {name: _text(value) for name, value in settings.items()})
        _open.add(self)

    def sql(self, text: str, parameters: Sequence[object] = (), *, database: str | None = None) -> Result:
        """Runs one SQL statement; `$1`, `$2`, ... or `?` are bound to `parameters`, in their order."""
        if isinstance(parameters, (str, bytes, Mapping)):
            raise TypeError(f"parameters are a list or a tuple of values, not {type(parameters).__name__}")
        return Result(self._connection.sql(text, list(parameters), database))

    def kql(self, text: str, *, database: str | None = None) -> Result:
        """Runs one KQL query."""
        return Result(self._connection.kql(text, database))

    def ask(
        self,
        question: str,
        *,
        session: str | None = None,
        database: str | None = None,
        thinking: bool = False,
        on_event: Callable[[str, dict[str, Any]], object] | None = None,
    ) -> Answer:
        """Asks in plain language. The model of the settings writes and runs queries until it knows the answer.

        `session`, any name, makes the question part of a conversation. `on_event` is called with each event's name and
        data as it arrives: `answer_delta`, `tool_call`, `tool_result` and so on, as docs/http.md lists them.
        Raises `QuerentError` where the run ends without an answer.
        """
        request: dict[str, object] = {"question": question, "include_thinking": thinking}
        if session is not None:
            request["session_id"] = session
        if database is not None:
            request["database"] = database
        answer = Answer(question=question)

        def take(name: str, data: str) -> None:
            event = json.loads(data)
            answer._take(name, event)
            if on_event is not None:
                on_event(name, event)

        self._connection.ask(json.dumps(request), take)
        if answer._error is not None:
            error = QuerentError(f"{answer._error['message']} [{answer._error['detail_code']}]")
            error.code = answer._error["detail_code"]
            raise error
        if answer._ticket is not None:
            answer.rows = Result(self._connection.rows_of_ticket(answer._ticket))
        return answer

    def search(self, query: str, *, limit: int = 10, database: str | None = None) -> list[dict[str, Any]]:
        """Finds tables by name, by text and by meaning, best first."""
        return json.loads(self._connection.search(query, limit, database))["hits"]

    def import_files(
        self,
        source: str | os.PathLike[str],
        table: str | None = None,
        *,
        database: str | None = None,
        if_exists: Literal["error", "append", "replace"] = "error",
        external: bool = False,
        format: Literal["csv", "json", "parquet", "arrow", "xlsx", "lance"] | None = None,
        **options: object,
    ) -> dict[str, Any]:
        """Makes a table of files: a path, a folder, a glob or a URL. All of it is imported, or nothing.

        The table is named after the file unless `table` says otherwise. `external` leaves the files where they are.
        `options` say how text is read: `has_header`, `delimiter`, `types`, `encoding`, `null_value` and so on, as docs/import.md
        lists them. Returns what was done and what was decided.
        """
        given = {name: _option(value) for name, value in options.items()}
        done = self._connection.import_files(os.fspath(source), table, database, if_exists, external, format, given)
        return json.loads(done)

    def register(self, name: str, rows: object) -> int:
        """Makes a table of this connection alone of a pyarrow table, a pandas or polars frame or a DuckDB relation.

        It is read now, without a copy where its types are the engine's, and found before tables of the folder. Returns
        the number of rows.
        """
        return self._connection.ingest(name, _without_objects(rows), "replace", True)

    def unregister(self, name: str) -> bool:
        """Forgets a registered table; says whether there was one."""
        return self._connection.unregister(name)

    def ingest(
        self,
        table: str,
        rows: object,
        *,
        mode: Literal["create", "append", "replace", "create_append"] = "create",
        database: str | None = None,
    ) -> int:
        """Writes rows of such an object to a table of the folder, all or none. Returns their number."""
        return self._connection.ingest(table, _without_objects(rows), mode, False, database)

    def close(self) -> None:
        """Stops what runs and closes the folder. Closing again does nothing."""
        self._connection.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()


class Result:
    """The rows of a statement: for `pyarrow.table(result)`, `polars.from_arrow(result)`, DuckDB, or the methods here.

    A reader that streams, such as `pyarrow.RecordBatchReader.from_stream(result)`, gets rows as they arrive, once;
    `collect()`, `len`, `print` and the methods below keep them, so that they can be read again.
    """

    def __init__(self, rows: _querent.Rows) -> None:
        self._rows = rows

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._rows.columns

    @property
    def types(self) -> list[str]:
        """Their types, as Arrow names them."""
        return self._rows.types

    @property
    def truncated(self) -> bool:
        """Whether a limit left rows out."""
        return self._rows.truncated

    def collect(self) -> Result:
        """Reads all rows into memory."""
        self._rows.collect()
        return self

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Returns all rows as tuples of Python's values. Needs no other library."""
        return self._rows.fetchall()

    def to_arrow(self) -> pyarrow.Table:
        """Returns a pyarrow table."""
        import pyarrow

        return pyarrow.table(self.collect())

    def to_pandas(self) -> pandas.DataFrame:
        """Returns a pandas frame (by pyarrow)."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Returns a polars frame."""
        import polars

        for name, kind in zip(self.columns, self.types):
            if "Interval" in kind:
                raise TypeError(f"polars has no type for intervals; SELECT CAST({_quoted(name)} AS VARCHAR) is text")
        return polars.DataFrame(self.collect())

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.fetchall())

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return repr(self._rows)

    def _repr_html_(self) -> str:
        """The rows as a notebook shows them: the first and how many there are."""
        try:
            total = len(self)
        except QuerentError as error:
            if error.code != "rows_already_read":
                raise
            return f"<p>{html.escape(repr(self))}</p>"
        rows = self._rows.fetchall(_SHOWN_ROWS)
        cells = lambda row, kind: "".join(f"<{kind}>{html.escape(_cell(value))}</{kind}>" for value in row)
        shown = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
        left = f", {_SHOWN_ROWS} of them shown" if total > _SHOWN_ROWS else ""
        cut = "; a limit left rows out" if self.truncated else ""
        count = "1 row" if total == 1 else f"{total} rows"
        head = f"<thead><tr>{cells(self.columns, 'th')}</tr></thead>"
        return f"<table>{head}<tbody>{shown}</tbody></table><p>{count}{left}{cut}</p>"

    def __arrow_c_schema__(self) -> object:
        return self._rows.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._rows.__arrow_c_stream__(requested_schema)


@dataclass
class Answer:
    """What the agent answered, and how it came to it."""

    question: str
    text: str = ""
    """The answer, as Markdown."""
    run_id: str | None = None
    model: str | None = None
    sql: str | None = None
    """The SQL that it rests on."""
    kql: str | None = None
    """The KQL that it rests on."""
    rows: Result | None = None
    """The rows of its last query."""
    chart: dict[str, Any] | None = None
    """The Vega-Lite specification of a chart, with its rows, where a query's are worth one."""
    usage: dict[str, int] = field(default_factory=dict)
    elapsed_ms: int = 0
    _error: dict[str, Any] | None = field(default=None, repr=False)
    _ticket: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return self.text

    def _take(self, name: str, event: dict[str, Any]) -> None:
        if name == "run_started":
            self.run_id, self.model = event["run_id"], event["model"]
        elif name == "tool_result":
            if "vegaSpec" in event:
                # A specification names its rows and does not have them.
                rows = {**event["vegaSpec"]["data"], "values": event["result"]["rows"]}
                self.chart = {**event["vegaSpec"], "data": rows}
        elif name == "answer_final":
            self.text, self.sql, self.kql = event["text"], event["sql_used"], event["kql_used"]
            self._ticket = event.get("ticket")
        elif name == "run_error":
            self._error = event
        elif name == "run_finished":
            self.usage, self.elapsed_ms = event["usage"], event["elapsed_ms"]


def _without_objects(rows: object) -> object:
    """Refuses polars' columns of Python's objects, such as UUIDs: of these polars passes on addresses, not values."""
    if type(rows).__module__.startswith("polars.") and hasattr(rows, "__arrow_c_stream__"):
        for name, kind in getattr(rows, "schema", {}).items():
            if str(kind) == "Object":
                raise TypeError(f"column {name!r} holds Python's objects, which polars cannot pass on; make it text or numbers")
    return rows


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _cell(value: object) -> str:
    return "NULL" if value is None else str(value)


def _option(value: object) -> str:
    """Returns an option of an import as the engine reads it; names of columns may hold what separates others."""
    if isinstance(value, Mapping):
        return json.dumps({str(name): str(kind) for name, kind in value.items()})
    return _text(value)


def _text(value: object) -> str:
    """Returns a setting or an option as the engine reads it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return ",".join(f"{name}={kind}" for name, kind in value.items())
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value)


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext querent`: cells in SQL, KQL and plain language, by `%%querent`."""
    from ._magic import load

    load(shell)


_open: weakref.WeakSet[Database] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for database in list(_open):
        database.close()
