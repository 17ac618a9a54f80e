"""Random statements that make and change tables, one after the other, in a server and in DuckDB: after each of them the table's
columns and rows are the same, and so are the rows that conditions find, whatever statistics say of its files.

In between small files are merged, the server is killed and started again, and DuckDB changes the same tables in the server's
data folder (`--lake`), where it also reads them.

A difference is made smaller by leaving statements out, and ends the program with 1.

usage: table_changes.py [--sequences 20] [--steps 40] [--seed 1] [--lake] [--minutes 10]
"""

import argparse
import collections
import fractions
import glob
import http.client
import itertools
import json
import math
import os
import pathlib
import re
import sys
import tempfile
import time
import uuid
import zlib

import duckdb
import pyarrow as pa
import pyarrow.ipc

from server import ADMIN, Server
from sql_cases import Numbers
from sql_oracles import MOST_IDLE_SECONDS, Failed
from table_statements import NESTED, Changes

#: What the server calls types otherwise than DuckDB does.
NAMES = {"REAL": "FLOAT", "HUGEINT": "DECIMAL(38,0)", "FLOAT[]": "FLOAT[3]"}


class Different(Exception):
    """The server and DuckDB do not agree."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


def plain(value):
    """A value of Arrow such that what is equal in SQL is equal here."""
    if value is None:
        return None
    if isinstance(value, float):
        return str(value) if math.isnan(value) or math.isinf(value) else f"{value + 0.0:.9g}"
    if isinstance(value, (list, tuple)):
        return tuple(plain(item) for item in value)
    if isinstance(value, dict):
        return tuple((key, plain(item)) for key, item in value.items())
    if isinstance(value, uuid.UUID):
        return str(value)
    return value


def values(column):
    """The values of a column: times as their numbers, since some lie outside of Python's years."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(column.type, pa.BaseExtensionType):
        return values(column.storage)
    kind = column.type
    if pa.types.is_timestamp(kind):
        return list(map(units, column.cast(pa.int64()).to_pylist(), [kind.unit] * len(column)))
    if pa.types.is_time(kind):
        width = pa.int32() if kind.bit_width == 32 else pa.int64()
        return list(map(units, column.cast(width).to_pylist(), [kind.unit] * len(column)))
    if pa.types.is_date32(kind):
        return column.cast(pa.int32()).to_pylist()
    if pa.types.is_decimal(kind):
        return [None if value is None else fractions.Fraction(value) for value in column.to_pylist()]
    if pa.types.is_fixed_size_binary(kind) and kind.byte_width == 16:
        return [None if value is None else str(uuid.UUID(bytes=value)) for value in column.to_pylist()]
    return [plain(value) for value in column.to_pylist()]


def units(value, unit):
    return None if value is None else value * {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[unit]


def bag(table):
    columns = [values(column) for column in table.columns]
    return collections.Counter(zip(*columns)) if columns else collections.Counter()


class Ours:
    """The server, asked for Arrow."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        script = {"runs": [{"turns": [{"events": [{"text": "nothing"}]}], "repeat_last": True}]}
        self.server = Server(self.folder / "data", script, self.folder / "server.log", {"QUERENT_QUERY_TIMEOUT": "30s"})
        self.server.start()
        self.connection, self.asked, self.last, self.asked_at = None, 0, "", 0.0

    def table(self, sql, database):
        """The server's answer as an Arrow table. A connection lasts as long as nobody is idle."""
        self.asked += 1
        if self.connection is not None and time.monotonic() - self.asked_at > MOST_IDLE_SECONDS:
            self.connection.close()
            self.connection = None
        if self.connection is None:
            host, port = self.server.address.rsplit(":", 1)
            self.connection = http.client.HTTPConnection(host, int(port), timeout=60)
        head = {"authorization": f"Bearer {ADMIN}", "content-type": "application/json"}
        try:
            body = json.dumps({"sql": sql, "database": database})
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
        return pyarrow.ipc.open_stream(data).read_all() if data else pa.table({})

    def restart(self):
        self.server.kill()
        self.connection = None
        self.server.start()


class Lake:
    """DuckDB over the server's data folder."""

    def __init__(self, folder, options=""):
        import duckdb_extension_ducklake
        import duckdb_extension_sqlite_scanner

        self.connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
        self.connection.execute("SET enable_progress_bar = false; SET TimeZone = 'UTC'")
        for package in (duckdb_extension_sqlite_scanner, duckdb_extension_ducklake):
            below = os.path.dirname(package.__file__)
            extension = glob.glob(os.path.join(below, "**", "*.duckdb_extension"), recursive=True)[0]
            self.connection.execute(f"LOAD '{extension}'")
        self.connection.execute(f"ATTACH 'ducklake:sqlite:{folder}/catalog.sqlite' AS lake{options}")

    def execute(self, sql):
        """Runs a statement, again while the server has the catalog locked."""
        for attempt in range(50):
            try:
                return self.connection.execute(sql)
            except duckdb.Error as error:
                if "locked" not in str(error) or attempt == 49:
                    raise
                time.sleep(0.1)
        return None


class Sequence:
    """One database of the server beside one of DuckDB, and what was done to both."""

    def __init__(self, ours, name, lake):
        """`lake`: the options with which DuckDB attaches the lake; None where it does not."""
        self.ours, self.name, self.with_lake = ours, name, lake
        ours.table(f"CREATE DATABASE {name}", "default")
        self.oracle = duckdb.connect(config={"threads": 1})
        self.oracle.execute("SET TimeZone = 'UTC'; SET enable_progress_bar = false")
        self.lake = None
        self.tables = {}
        self.unlike, self.looks = collections.Counter(), 0

    def ask(self, sql):
        """The server's answer as an Arrow table."""
        return self.ours.table(sql, self.name)

    def theirs(self):
        if self.lake is None:
            self.lake = Lake(self.ours.folder / "data", self.with_lake)
        self.lake.execute(f"USE lake.\"{self.name}\"")
        return self.lake

    def look(self):
        """Takes in which tables there are."""
        found = self.oracle.execute(
            "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal AND schema_name = 'main' ORDER BY table_name, column_index"
        ).fetchall()
        self.tables.clear()
        for table, column, kind in found:
            self.tables.setdefault(table, []).append((quoted(column), kind))

    def take(self, step):
        """Does a step on both sides and compares. Returns what was refused here and not by DuckDB, or None."""
        who, sql, table = step
        if who == "restart":
            self.ours.restart()
            self.look()
            for name in self.tables:
                self.compare(name, None)
            return None
        if who == "optimize":
            if table not in self.tables:
                return None
            try:
                self.ask(f"OPTIMIZE {table}")
            except Failed as error:
                return f"OPTIMIZE: {error}"
            self.compare(table, None)
            return None
        self.oracle.execute("BEGIN")
        expected, refused = None, None
        try:
            expected = self.oracle.execute(sql).to_arrow_table()
        except duckdb.Error as error:
            refused = str(error)
            self.oracle.execute("ROLLBACK")
        if who == "lake":
            if refused is not None:
                return None
            try:
                self.theirs().execute(sql)
            except duckdb.Error as error:
                self.oracle.execute("ROLLBACK")
                self.unlike[f"DuckDB's lake: {pattern(str(error))}"] += 1
                return None
            self.oracle.execute("COMMIT")
            self.look()
            if table in self.tables:
                self.compare(table, None)
            return None
        try:
            answer = self.ask(sql)
        except Failed as error:
            if error.code in ("internal", "cut", "bad_data", "catalog_corrupt"):
                raise Different(f"{error.code} {pattern(str(error))}", f"{sql}\n  {error}") from error
            if refused is None:
                self.oracle.execute("ROLLBACK")
                return str(error)
            return None
        if refused is not None:
            raise Different(f"accepted {pattern(refused)}", f"accepted here: {sql}\n  DuckDB: {refused[:300]}")
        self.oracle.execute("COMMIT")
        is_change = sql.split()[0] in ("INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE")
        if is_change and bag(answer) != bag(expected):
            raise Different("answer", f"the answer of {sql}\n  here {answer.to_pylist()[:5]}\n  DuckDB {expected.to_pylist()[:5]}")
        self.look()
        if table in self.tables:
            self.compare(table, sql)
        return None

    def columns_here(self, table):
        described = self.ask(f"DESCRIBE {table}").to_pylist()
        return [tuple(row.values())[:3] for row in described]

    def compare(self, table, sql):
        """Compares the columns and rows of a table, and what some conditions find."""
        expected = [(name, kind, null) for name, kind, null, *_ in self.oracle.execute(f"DESCRIBE {table}").fetchall()]
        found = [(name, NAMES.get(kind, kind), null) for name, kind, null in self.columns_here(table)]
        known = [(name, shown(kind), null) for name, kind, null in expected]
        if [(name, shown(kind), null) for name, kind, null in found] != known:
            raise Different("columns", f"columns of {table}\n  here {found}\n  DuckDB {expected}")
        self.expect(f"SELECT * FROM {table}", table)
        numbers = Numbers(seed=zlib.crc32(f"{table} {sql} {self.looks}".encode()))
        self.looks += 1
        changes = Changes(numbers, self.tables)
        scope = self.tables[table]
        # All of them in one statement, each with its number.
        parts = [f"SELECT {at} AS part, * FROM {table} WHERE {changes.predicate(scope)}" for at in range(4)]
        self.expect(" UNION ALL ".join(parts), table)
        column, kind = numbers.one(scope)
        bounds = "" if kind in NESTED or kind == "JSON" else f", min({column}), max({column})"
        self.expect(f"SELECT count(*), count({column}){bounds} FROM {table}", table)
        if self.with_lake is not None:
            self.expect_lake(table, scope, changes)

    def expect(self, sql, table):
        expected = bag(self.oracle.execute(sql).to_arrow_table())
        try:
            found = bag(self.ask(sql))
        except Failed as error:
            raise Different(f"query {pattern(str(error))}", f"{sql}\n  {error}") from error
        different(found, expected, sql)

    def expect_lake(self, table, scope, changes):
        condition = changes.predicate(scope)
        for sql in (f"SELECT * FROM {table}", f"SELECT * FROM {table} WHERE {condition}"):
            expected = bag(self.oracle.execute(sql).to_arrow_table())
            try:
                found = bag(self.theirs().execute(sql).to_arrow_table())
            except duckdb.Error as error:
                raise Different(f"lake {pattern(str(error))}", f"DuckDB over the lake: {sql}\n  {error}") from error
            different(found, expected, f"DuckDB over the lake: {sql}")


def shown(kind):
    return NAMES.get(kind, kind).replace("FLOAT[3]", "FLOAT[]").replace("REAL", "FLOAT").replace('"', "").replace(", ", ",")


def different(found, expected, sql):
    if found != expected:
        more = [f"  {who}: {count} x {row}" for who, rest in (("only here", found - expected), ("only in DuckDB", expected - found))
                for row, count in list(rest.items())[:3]]
        raise Different("rows", f"{sql}\n" + "\n".join(more))


def quoted(name):
    return name if re.fullmatch("[a-z]\\w*", name) and name != "order" else f'"{name}"'


def pattern(text):
    """An error without the names in it."""
    return re.sub(r"[`'\"][^`'\"]*[`'\"]|\d+", "_", text.split("\n")[0])[:110]


def steps_of(sequence, numbers, lake):
    """The next step: who does it, the SQL and the table that it changes."""
    if sequence.tables:
        if numbers.chance(5):
            return "optimize", "", numbers.one(sorted(sequence.tables))
        if numbers.chance(1):
            return "restart", "", None
    changes = Changes(numbers, sequence.tables)
    widened = changes.alter_in_lake() if lake and sequence.tables and numbers.chance(5) else None
    if widened:
        return "lake", *widened
    sql, table = changes.statement()
    return ("lake" if lake and numbers.chance(25) and not sql.startswith("CREATE") else "both"), sql, table


def fault_of(ours, name, steps, lake):
    """What is wrong after some steps, and at which: its kind and what was seen."""
    sequence = Sequence(ours, name, lake)
    for at, step in enumerate(steps):
        try:
            sequence.take(step)
        except Different as fault:
            return fault.kind, str(fault), at
        except duckdb.Error:
            return None
    return None


def smaller(ours, steps, kind, names, lake, seconds):
    """The same fault by fewer steps."""
    deadline, width = time.monotonic() + seconds, max(1, len(steps) // 2)
    while width and time.monotonic() < deadline:
        at = 0
        while at < len(steps) and time.monotonic() < deadline:
            fewer = steps[:at] + steps[at + width :]
            seen = fault_of(ours, next(names), fewer, lake)
            if seen is not None and seen[0] == kind:
                steps = fewer[: seen[2] + 1]
            else:
                at += width
        width //= 2
    return steps


def run(options):
    refused, examples, told, faults, taken = collections.Counter(), {}, collections.Counter(), 0, 0
    names = (f"d{number}" for number in itertools.count())
    with tempfile.TemporaryDirectory(prefix="querent-changes-") as folder:
        ours = Ours(folder)
        try:
            deadline = time.monotonic() + 60 * options.minutes
            for at in range(options.sequences):
                if time.monotonic() > deadline:
                    break
                numbers = Numbers(seed=options.seed * 1_000_003 + at)
                lake = numbers.one(["", " (DATA_INLINING_ROW_LIMIT 0)"]) if options.lake else None
                sequence, steps = Sequence(ours, next(names), lake), []
                for _ in range(options.steps):
                    if time.monotonic() > deadline:
                        break
                    step = steps_of(sequence, numbers, options.lake)
                    steps.append(step)
                    taken += 1
                    try:
                        why = sequence.take(step)
                    except Different as fault:
                        told[fault.kind] += 1
                        if told[fault.kind] > (3 if fault.kind == "rows" else 1):
                            break
                        faults += 1
                        print(f"FAULT {fault.kind} (sequence {at} of seed {options.seed}, step {len(steps)})\n{fault}"[:2500], flush=True)
                        least = smaller(ours, steps, fault.kind, names, lake, options.seconds)
                        seen = fault_of(ours, next(names), least, lake)
                        print("BY\n" + "\n".join(f"  {who}: {sql or table};" for who, sql, table in least), flush=True)
                        print(f"SEEN {seen[1] if seen else 'no more'}\n"[:2500], flush=True)
                        break
                    if why is not None:
                        refused[pattern(why)] += 1
                        examples.setdefault(pattern(why), (step[1], why))
                for text, count in sequence.unlike.items():
                    refused[text] += count
                if faults >= options.most:
                    break
        finally:
            ours.server.kill()
    print(f"{taken} steps, {ours.asked} statements")
    for text, count in refused.most_common(40):
        print(f"  refused {count} x {text}")
        if options.refusals and text in examples:
            print(f"      {examples[text][0][:400]}\n      {examples[text][1][:300]}")
    print(f"{faults} faults")
    return not faults


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--sequences", type=int, default=20)
    options.add_argument("--steps", type=int, default=40)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--minutes", type=float, default=600, help="after which it ends")
    options.add_argument("--seconds", type=int, default=60, help="for making a fault smaller")
    options.add_argument("--lake", action="store_true", help="DuckDB reads and changes the tables in the data folder, too")
    options.add_argument("--refusals", action="store_true", help="show what is refused here and not by DuckDB")
    options.add_argument("--most", type=int, default=20, help="faults after which it ends")
    sys.exit(0 if run(options.parse_args()) else 1)


if __name__ == "__main__":
    main()
