"""Random SQL whose right answer is known: by DuckDB over the same rows, or by another way to ask for the same (SQLancer's ideas).

duckdb     the same statement in DuckDB
forms      the same, of forms that are in documentation (`sql_forms.py`), over three small tables
changed    the same rows after statements that change a table
kept       the statement again, with parameters for its literals, and once more after a row was added
where      a query against its three parts: where a predicate holds, where it does not, and where it is null
having     the same for groups
distinct   the same, with DISTINCT and with GROUP BY
aggregate  the same, with aggregates of the parts put together
counted    a filter against counting the rows for which the same expression holds
joined     ON against WHERE of a cross join; an outer join against the inner one and what has no partner
pivot      a predicate with a row's values written out against the same over the table's columns

Tables are external Parquet files of small row groups, managed tables, and managed tables of which rows were deleted and changed.
A difference is made smaller, and ends the program with 1.

usage: sql_oracles.py [--cases 2000] [--seed 1] [--only duckdb,kept,...]
"""

import argparse
import collections
import datetime
import decimal
import http.client
import json
import math
import pathlib
import re
import sys
import tempfile
import time

import duckdb
import pyarrow.ipc

from server import ADMIN, Server
import sql_forms
from sql_cases import LIST, SQL_TYPES, STORED, Numbers, Statements, literal_text, parametrised, random_table

CASES_A_ROUND = 40
#: Statements beyond these are not compared: they cost more than they show.
MOST_ROWS = 20_000
MOST_IDLE_SECONDS = 5
#: What one side refuses, and why that is no fault: the documented differences from DuckDB.
REFUSALS = {"query_timeout", "memory_exceeded", "result_too_large"}


class Failed(Exception):
    """A statement that has no answer."""

    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code = code


class Different(Exception):
    """Two answers that should be the same are not."""


def normal(value):
    """A value such that what is equal in SQL is equal here, whatever type carries it."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return (type(value).__name__, value)
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            return ("number", str(value))
        return ("number", f"{value + 0.0:.12g}" if value else "0")
    if isinstance(value, (int, decimal.Decimal)):
        return ("number", f"{decimal.Decimal(value):f}".rstrip("0").rstrip(".") if "." in f"{decimal.Decimal(value):f}"
                else f"{decimal.Decimal(value):f}")
    if isinstance(value, (list, tuple)):
        return ("list", tuple(normal(item) for item in value))
    if isinstance(value, dict):
        return ("struct", tuple((name, normal(item)) for name, item in value.items()))
    if isinstance(value, datetime.datetime):
        # Of dates and intervals DuckDB makes timestamps, at midnight, where a date is here.
        value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None) if value.tzinfo else value
        return ("time", str(value).removesuffix(" 00:00:00"))
    if isinstance(value, datetime.date):
        return ("time", str(value))
    return (type(value).__name__, str(value))


def bag(rows):
    return collections.Counter(tuple(normal(value) for value in row) for row in rows)


def expect_equal(left, right, what):
    """Fails where two lists of rows do not hold the same rows."""
    left, right = bag(left), bag(right)
    if left != right:
        only = [f"  {name}: {count} x {tuple(value for _, value in row)}"
                for name, rest in (("only in the first", left - right), ("only in the second", right - left))
                for row, count in list(rest.items())[:4]]
        raise Different(what + "\n" + "\n".join(only))


class Engines:
    """The server and DuckDB with the same tables."""

    def __init__(self, folder, tables_seed, settings):
        self.folder = pathlib.Path(folder)
        script = {"runs": [{"turns": [{"events": [{"text": "nothing"}]}], "repeat_last": True}]}
        self.server = Server(self.folder / "data", script, self.folder / "server.log", settings)
        self.server.start()
        self.duckdb = duckdb.connect()
        self.duckdb.execute("SET TimeZone = 'UTC'")
        self.connection, self.tables, self.tables_seed, self.round = None, [], tables_seed, 0
        self.asked, self.last, self.asked_at = 0, "", 0.0

    def ask(self, sql, values=()):
        """The server's rows of a statement."""
        self.asked += 1
        self.last = sql
        # The server closes a connection that is idle while DuckDB takes its time.
        if self.connection is not None and time.monotonic() - self.asked_at > MOST_IDLE_SECONDS:
            self.connection.close()
            self.connection = None
        if self.connection is None:
            host, port = self.server.address.rsplit(":", 1)
            self.connection = http.client.HTTPConnection(host, int(port), timeout=60)
        body = json.dumps({"sql": sql, "params": list(values)} if values else {"sql": sql})
        head = {"authorization": f"Bearer {ADMIN}", "content-type": "application/json"}
        try:
            self.connection.request("POST", "/v1/query?format=arrow", body.encode(), head)
            answer = self.connection.getresponse()
            data = answer.read()
            self.asked_at = time.monotonic()
        except (OSError, http.client.HTTPException) as error:
            self.connection = None
            assert self.server.is_running(), f"the server ended: {sql}\n{self.server.tail()}"
            raise Failed("cut", repr(error)) from error
        if answer.status != 200:
            error = json.loads(data)["error"]
            raise Failed(error["code"], error["message"])
        if not data:
            return []
        try:
            table = pyarrow.ipc.open_stream(data).read_all()
        except pyarrow.ArrowInvalid as error:
            raise Failed("cut", str(error)) from error
        columns = [column.to_pylist() for column in table.columns]
        return list(zip(*columns)) if columns else []

    def oracle(self, sql):
        """DuckDB's rows; nothing where it refuses."""
        try:
            return self.duckdb.execute(sql).fetchmany(MOST_ROWS)
        except duckdb.Error:
            return None

    def both(self, sql):
        self.ask(sql)
        self.duckdb.execute(sql)

    def new_tables(self):
        """Three random tables, each stored in another way."""
        numbers = Numbers(seed=self.tables_seed * 1_000_003 + self.round)
        self.round += 1
        self.tables = []
        for at, stored in enumerate(("file", "managed", "changed")):
            table, rows = random_table(numbers, f"t{at}")
            if at == 0 and rows and numbers.chance(30):
                # Several row groups and batches.
                rows = [[str(len(rows) * copy + int(row[0])), *row[1:]] for copy in range(60) for row in rows]
            for engine in (self.ask, self.duckdb.execute):
                engine(f"DROP TABLE IF EXISTS {table.name}")
            columns = ", ".join(f"{name} {SQL_TYPES[kind]}" for name, kind in table.columns)
            self.duckdb.execute(f"CREATE TABLE {table.name} ({columns})")
            insert = ", ".join(f"({', '.join(row)})" for row in rows)
            if rows:
                self.duckdb.execute(f"INSERT INTO {table.name} VALUES {insert}")
            file = self.folder / f"{table.name}-{self.round}.parquet"
            self.duckdb.execute(f"COPY (FROM {table.name} ORDER BY id) TO '{file}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")
            if stored == "file":
                self.ask(f"CREATE EXTERNAL TABLE {table.name} STORED AS PARQUET LOCATION '{file}'")
            elif stored == "managed":
                self.ask(f"CREATE TABLE {table.name} AS SELECT * FROM '{file}'")
            else:
                self.ask(f"CREATE TABLE {table.name} ({columns})")
                for first in range(0, len(rows), 9):
                    part = ", ".join(f"({', '.join(row)})" for row in rows[first : first + 9])
                    self.ask(f"INSERT INTO {table.name} VALUES {part}")
                self.both(f"DELETE FROM {table.name} WHERE id % 5 = 2")
                name, kind = table.columns[-1]
                self.both(f"UPDATE {table.name} SET {name} = {numbers.one(['NULL', *STORED[kind]])} WHERE id % 7 = 3")
            self.tables.append(table)
        for name in sql_forms.TABLES:
            rows = ", ".join(f"({', '.join(row)})" for row in sql_forms.random_rows(numbers, name))
            for engine in (self.ask, self.duckdb.execute):
                engine(f"CREATE OR REPLACE TABLE {name} ({sql_forms.definition(name)})")
                if rows:
                    engine(f"INSERT INTO {name} VALUES {rows}")

    def stop(self):
        self.server.kill()


def statements(engines, numbers):
    return Statements(numbers, list(engines.tables))


def against_duckdb(engines, numbers):
    sql = literal_text(statements(engines, numbers).statement())
    expected = engines.oracle(sql)
    if expected is None or len(expected) == MOST_ROWS:
        return
    expect_equal(engines.ask(sql), expected, f"the server, then DuckDB: {sql}")


def forms(engines, numbers):
    sql = sql_forms.Forms(numbers).statement()
    expected = engines.oracle(sql)
    if expected is None or len(expected) == MOST_ROWS:
        return
    expect_equal(engines.ask(sql), expected, f"the server, then DuckDB: {sql}")


def changed(engines, numbers):
    made = sql_forms.Forms(numbers)
    engines.both("CREATE OR REPLACE TABLE changed_rows AS SELECT * FROM v")
    statements = []
    for _ in range(1 + numbers.below(3)):
        statements.append(made.change())
        try:
            engines.duckdb.execute(statements[-1])
        except duckdb.Error:
            return
        engines.ask(statements[-1])
    expect_equal(engines.ask("SELECT * FROM changed_rows"), engines.oracle("SELECT * FROM changed_rows"), f"the server, then DuckDB: {'; '.join(statements)}")


def kept(engines, numbers):
    marked = statements(engines, numbers).statement()
    sql = literal_text(marked)
    first = engines.ask(sql)
    expect_equal(engines.ask(sql), first, f"the second time, then the first: {sql}")
    with_parameters, values = parametrised(marked)
    if values:
        try:
            answer = engines.ask(with_parameters, values)
            again = engines.ask(with_parameters, values)
        except Failed as error:
            if error.code == "internal":
                raise
        else:
            expect_equal(answer, first, f"with parameters {values}, then without: {with_parameters}")
            expect_equal(again, first, f"with parameters {values} again, then without: {with_parameters}")
    table = numbers.one(engines.tables[1:])
    cells = ["NULL" if numbers.chance(20) else numbers.one(STORED[kind]) for _, kind in table.columns[1:]]
    engines.both(f"INSERT INTO {table.name} SELECT coalesce(max(id), 0) + 1, {', '.join(cells)} FROM {table.name}")
    expected = engines.oracle(sql)
    if expected is not None and len(expected) < MOST_ROWS:
        expect_equal(engines.ask(sql), expected, f"after a row was added to {table.name}, then DuckDB: {sql}")


def parts(predicate):
    return [predicate, f"NOT ({predicate})", f"({predicate}) IS NULL"]


def query_parts(engines, numbers):
    """A FROM clause, its columns, and a predicate over them."""
    made = statements(engines, numbers)
    source, scope = made.from_clause(1)
    predicate = made.predicate(scope, 1 + numbers.below(2))
    return made, literal_text(source), scope, literal_text(predicate)


def partitioned_where(engines, numbers):
    made, source, scope, predicate = query_parts(engines, numbers)
    items = literal_text(", ".join(made.items(scope, 1)[0]))
    whole = engines.ask(f"SELECT {items} FROM {source}")
    rows = [row for part in parts(predicate) for row in engines.ask(f"SELECT {items} FROM {source} WHERE {part}")]
    expect_equal(rows, whole, f"parts by {predicate}, then the whole: SELECT {items} FROM {source}")


def partitioned_distinct(engines, numbers):
    made, source, scope, predicate = query_parts(engines, numbers)
    items, kinds = made.items(scope, 1)
    items = literal_text(", ".join(items))
    group = "" if LIST in kinds or numbers.chance(50) else f" GROUP BY {', '.join(str(at + 1) for at in range(len(kinds)))}"
    select = f"SELECT {items}" if group else f"SELECT DISTINCT {items}"
    whole = engines.ask(f"{select} FROM {source}{group}")
    rows = {tuple(map(normal, row)): row for part in parts(predicate) for row in engines.ask(f"{select} FROM {source} WHERE {part}{group}")}
    expect_equal(rows.values(), whole, f"parts by {predicate}, then the whole: {select} FROM {source}{group}")


def partitioned_having(engines, numbers):
    made, source, scope, _ = query_parts(engines, numbers)
    key = literal_text(made.expression("int", scope, 1))
    value = literal_text(made.expression("int", scope, 1))
    predicate = literal_text(f"sum({value}) {numbers.one(['>', '=', '<>'])} {made.literal('int')} OR max({value}) IS NULL AND bool_or({key} > 1)")
    query = f"SELECT {key} AS k, count(*), sum({value}) FROM {source} GROUP BY 1"
    whole = engines.ask(query)
    rows = [row for part in parts(predicate) for row in engines.ask(f"{query} HAVING {part}")]
    expect_equal(rows, whole, f"parts by {predicate}, then the whole: {query}")


def partitioned_aggregate(engines, numbers):
    made, source, scope, predicate = query_parts(engines, numbers)
    value = literal_text(made.expression("int", scope, 1))
    text = literal_text(made.expression("text", scope, 1))
    query = f"SELECT count(*), count({value}), sum({value}), max({value}), min({text}) FROM {source}"
    whole = engines.ask(query)
    rows = [engines.ask(f"{query} WHERE {part}")[0] for part in parts(predicate)]
    columns = [[value for value in column if value is not None] for column in zip(*rows)]
    together = [folded(column) if column else None for folded, column in zip((sum, sum, sum, max, min), columns)]
    # Texts are ordered by their bytes.
    if columns[4]:
        together[4] = min(columns[4], key=lambda item: item.encode())
    expect_equal([together], whole, f"parts by {predicate}, then the whole: {query}")


def counted(engines, numbers):
    _, source, _, predicate = query_parts(engines, numbers)
    filtered = engines.ask(f"SELECT count(*) FROM {source} WHERE {predicate}")
    added = engines.ask(f"SELECT coalesce(sum(CASE WHEN p THEN 1 ELSE 0 END), 0) FROM (SELECT {predicate} AS p FROM {source}) AS q")
    expect_equal(filtered, added, f"filtered, then counted: FROM {source} WHERE {predicate}")


def joined(engines, numbers):
    made = statements(engines, numbers)
    (left, of_left), (right, of_right) = made.source(1), made.source(1)
    pairs = [(a, b) for a, kind in of_left for b, other in of_right if kind == other and kind != LIST]
    condition = "{} = {}".format(*numbers.one(pairs)) if pairs and numbers.chance(70) else "true"
    condition = literal_text(f"{condition} AND {made.predicate(of_left + of_right, 1)}")
    left, right = literal_text(left), literal_text(right)
    first, second = (", ".join(name for name, _ in scope) for scope in (of_left, of_right))
    nulls = ", ".join(f"NULL AS n{at}" for at in range(len(of_right)))
    inner = engines.ask(f"SELECT {first}, {second} FROM {left} JOIN {right} ON {condition}")
    crossed = engines.ask(f"SELECT {first}, {second} FROM {left} CROSS JOIN {right} WHERE {condition}")
    expect_equal(inner, crossed, f"ON, then WHERE: {left} JOIN {right} ON {condition}")
    alone = engines.ask(f"SELECT {first}, {nulls} FROM {left} WHERE NOT EXISTS (SELECT 1 FROM {right} WHERE {condition})")
    anti = engines.ask(f"SELECT {first}, {nulls} FROM {left} ANTI JOIN {right} ON {condition}")
    expect_equal(anti, alone, f"ANTI JOIN, then NOT EXISTS: {left}, {right}, {condition}")
    outer = engines.ask(f"SELECT {first}, {second} FROM {left} LEFT JOIN {right} ON {condition}")
    expect_equal(outer, inner + alone, f"LEFT JOIN, then its parts: {left}, {right}, {condition}")


def pivot(engines, numbers):
    made = statements(engines, numbers)
    table = numbers.one(engines.tables)
    scope = [(f"p.{name}", kind) for name, kind in table.columns]
    predicate = literal_text(made.predicate(scope, 2))
    ids = engines.duckdb.execute(f"SELECT id FROM {table.name} ORDER BY id").fetchall()
    if not ids:
        return
    chosen = numbers.one(ids)[0]
    texts = engines.duckdb.execute(
        f"SELECT {', '.join(f'CAST({name} AS VARCHAR)' for name, _ in table.columns)} FROM {table.name} WHERE id = {chosen}"
    ).fetchall()[0]
    if any(kind == LIST for _, kind in table.columns):
        return
    written = [f"CAST({'NULL' if text is None else chr(39) + text + chr(39)} AS {SQL_TYPES[kind]}) AS {name}"
               for text, (name, kind) in zip(texts, table.columns)]
    constant = engines.ask(f"SELECT {predicate} FROM (SELECT {', '.join(written)}) AS p")
    stored = engines.ask(f"SELECT {predicate} FROM {table.name} AS p WHERE p.id = {chosen}")
    expect_equal(constant, stored, f"written out, then stored: {predicate}; row {chosen} of {table.name} AS p")


ORACLES = {"duckdb": against_duckdb, "forms": forms, "changed": changed, "kept": kept, "where": partitioned_where, "having": partitioned_having,
           "distinct": partitioned_distinct, "aggregate": partitioned_aggregate, "counted": counted, "joined": joined, "pivot": pivot}
#: How often each is taken; `forms` and `changed` where `--only` names them.
WEIGHTS = ["duckdb"] * 8 + ["kept"] * 3 + ["where", "having", "distinct", "aggregate", "counted", "joined", "joined", "pivot"]


def fault(engines, oracle, numbers):
    """What is wrong with a case: its kind and what was seen. Nothing where all is well."""
    try:
        ORACLES[oracle](engines, numbers)
    except Different as difference:
        return "different", str(difference)
    except Failed as error:
        if error.code in REFUSALS:
            return None
        # A name of ours in an error is of a plan that we made wrong.
        return "internal" if "`__" in str(error) else error.code, f"{error}\n{engines.last}"
    return None


def smaller(engines, oracle, taken, kind, seconds=60):
    """The same fault from fewer and smaller numbers."""
    deadline = time.monotonic() + seconds

    def shows(candidate):
        seen = fault(engines, oracle, Numbers(candidate))
        return seen is not None and seen[0] == kind

    best, width = list(taken), max(1, len(taken) // 2)
    while width and time.monotonic() < deadline:
        at = 0
        while at < len(best) and time.monotonic() < deadline:
            shorter = best[:at] + best[at + width :]
            zeroed = best[:at] + [0] * len(best[at : at + width]) + best[at + width :]
            if shows(shorter):
                best = shorter
            elif any(best[at : at + width]) and shows(zeroed):
                best, at = zeroed, at + width
            else:
                at += width
        width //= 2
    return best


def pattern(text):
    """An error without the names in it."""
    return re.sub(r"[`'\"][^`'\"]*[`'\"]|\d+", "_", text.split("\n")[0])[:120]


def run(options):
    found, refused, told, done = [], collections.Counter(), collections.Counter(), collections.Counter()
    names = options.only.split(",") if options.only else WEIGHTS
    with tempfile.TemporaryDirectory(prefix="querent-oracles-") as folder:
        engines = Engines(folder, options.seed, {"QUERENT_QUERY_TIMEOUT": "10s"})
        try:
            for case in range(options.cases):
                if case % CASES_A_ROUND == 0:
                    engines.new_tables()
                numbers = Numbers(seed=options.seed * 1_000_000_007 + case)
                oracle = numbers.one(names)
                begun = numbers.at
                done[oracle] += 1
                seen = fault(engines, oracle, numbers)
                if seen is None:
                    continue
                kind, text = seen
                if kind not in ("different", "internal", "cut"):
                    refused[pattern(text)] += 1
                    if not options.refusals or refused[pattern(text)] > 1:
                        continue
                # Of faults that say the same the first is enough; those that say nothing but other rows are all told.
                if kind != "different":
                    told[pattern(text)] += 1
                    if told[pattern(text)] > 1:
                        continue
                least = smaller(engines, oracle, numbers.taken[begun:], kind)
                last = fault(engines, oracle, Numbers(least))
                found.append(f"case {case} of seed {options.seed}, {oracle}: {kind}\n{(last or seen)[1][:3_000]}")
                print(f"FAULT {found[-1]}", flush=True)
                if len(found) >= options.most and not options.refusals:
                    break
        finally:
            engines.stop()
    print(f"{sum(done.values())} cases, {engines.asked} statements: " + ", ".join(f"{name} {count}" for name, count in sorted(done.items())))
    if refused:
        print(f"{sum(refused.values())} cases have no answer here, by their errors:")
        for text, count in refused.most_common(12):
            print(f"  {count} x {text}")
    print(f"{len(found)} faults")
    return not found


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--cases", type=int, default=2_000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--only", help="names of oracles, with commas between")
    options.add_argument("--refusals", action="store_true", help="show what is refused here and not by DuckDB, too")
    options.add_argument("--most", type=int, default=20, help="faults after which it ends")
    sys.exit(0 if run(options.parse_args()) else 1)


if __name__ == "__main__":
    main()
