"""What clients change while a server is killed: each kind of change knows what was acknowledged, what was cut off, and how to see
whether it is there. One thread makes the changes of a kind, so at most one of each is cut off by a kill."""

import glob
import json
import os
import random

from server import Gone, READER, WRITER, Refused, quoted


class Kind:
    """A kind of change."""

    name = ""

    def __init__(self, seed):
        self.random = random.Random(f"{seed} {self.name}")
        self.acknowledged = self.unknown = self.survived = 0
        self.number = 0

    def prepare(self, server):
        """Makes what the changes need."""

    def change(self, server):
        """Makes one change, and writes down whether it was acknowledged."""
        raise NotImplementedError

    def check(self, server):
        """Compares what is there with what was acknowledged."""
        raise NotImplementedError

    def compare(self, server, folder):
        """Compares what DuckDB reads with what the server does."""

    def is_expected(self, refused):
        """Whether a refusal belongs to the load: too much at once, or two that changed one thing."""
        return refused.status == 429 or refused.code in ("conflict", "catalog_busy")

    def next(self):
        self.number += 1
        return self.number

    def resolved(self, there):
        """Notes what became of a change that was cut off."""
        self.unknown += 1
        self.survived += bool(there)


class Rows(Kind):
    """Batches of rows that are appended to a table: each is there whole or not at all."""

    def __init__(self, seed, table):
        self.name = f"{self.door} {table}"
        self.table = table
        self.sizes, self.cut = {}, None
        super().__init__(seed)

    def prepare(self, server):
        server.sql(f"CREATE TABLE {self.table} (batch BIGINT, i BIGINT, pad VARCHAR)")

    def change(self, server):
        batch, size = self.next(), self.random.choice([1, 3, 50, 1_000, 20_000])
        self.cut = (batch, size)
        try:
            self.append(server, batch, size)
        except Refused:
            self.cut = None
            raise
        self.sizes[batch], self.cut = size, None
        self.acknowledged += 1

    def check(self, server):
        sql = f"SELECT batch, count(*) AS n, count(DISTINCT i) AS d, sum(i) AS s FROM {self.table} GROUP BY batch"
        found = {int(row[0]): tuple(int(value) for value in row[1:]) for row in server.sql(sql)}
        if self.cut is not None:
            batch, size = self.cut
            self.cut = None
            self.resolved(batch in found)
            if batch in found:
                self.sizes[batch] = size
        expected = {batch: (size, size, size * (size - 1) // 2) for batch, size in self.sizes.items()}
        wrong = {batch: (expected.get(batch), found.get(batch)) for batch in expected.keys() | found.keys()
                 if expected.get(batch) != found.get(batch)}
        assert not wrong, f"{self.table}: batches that were appended, and that are there: {dict(list(wrong.items())[:8])}"

    def compare(self, server, folder):
        sql = f'SELECT count(*), sum(i), sum(length(pad)), count(DISTINCT batch) FROM {{}}"default".{self.table}'
        theirs = [None if value is None else int(value) for value in duckdb_rows(folder, sql.format("lake."))[0]]
        ours = [None if value is None else int(value) for value in server.sql(sql.format(""))[0]]
        assert ours == theirs, f"{self.table}: {ours} here, {theirs} in DuckDB"


class Inserted(Rows):
    door = "insert"

    def append(self, server, batch, size):
        rows = f"SELECT {batch}, value, repeat('p', 20) FROM generate_series(0, {size - 1}) AS s(value)"
        server.sql(f"INSERT INTO {self.table} {rows}", WRITER)


class Compacted(Inserted):
    """The same, and now and then all files of the table become one while others append."""

    door = "compacted"

    def append(self, server, batch, size):
        super().append(server, batch, size)
        if batch % 10 == 0:
            # It changes no row: whether it was acknowledged does not matter, but the rows do.
            self.sizes[batch], self.cut = size, None
            try:
                server.sql(f"INSERT OVERWRITE {self.table} SELECT * FROM {self.table}", WRITER)
            except Refused as refused:
                if not self.is_expected(refused):
                    raise


class CompactedBeside(Kind):
    """Rewrites a table that another client appends to: of both one wins, and nothing is lost."""

    name = "rewrites"

    def __init__(self, seed, table):
        super().__init__(seed)
        self.table = table

    def change(self, server):
        if self.next() % 2 == 0:
            server.sql(f"INSERT OVERWRITE {self.table} SELECT * FROM {self.table} WHERE i >= 0", WRITER)
            self.acknowledged += 1
        else:
            server.sql(f"SELECT count(*) FROM {self.table}")

    def check(self, server):
        """The rows' own kind looks."""


class Imported(Rows):
    door = "import"

    def append(self, server, batch, size):
        if self.random.random() < 0.5:
            lines = "".join(f"{batch},{i},pppppppppppppppppppp\n" for i in range(size))
            body, kind = f"batch,i,pad\n{lines}", "csv"
        else:
            body = "".join(f'{{"batch":{batch},"i":{i},"pad":"pppppppppppppppppppp"}}\n' for i in range(size))
            kind = "ndjson"
        path = f"/v1/import?table={self.table}&format={kind}&if_exists=append&types=batch=BIGINT,i=BIGINT,pad=VARCHAR"
        server.json("POST", path, None, WRITER) if body is None else server_post(server, path, body)


class Ingested(Rows):
    """Over Flight, by the ADBC driver."""

    door = "flight"

    def append(self, server, batch, size):
        import adbc_driver_manager
        import pyarrow
        from adbc_driver_flightsql import DatabaseOptions, dbapi

        rows = pyarrow.table({
            "batch": pyarrow.array([batch] * size, pyarrow.int64()),
            "i": pyarrow.array(range(size), pyarrow.int64()),
            "pad": pyarrow.array(["p" * 20] * size),
        })
        options = {DatabaseOptions.AUTHORIZATION_HEADER.value: f"Bearer {WRITER}"}
        try:
            with dbapi.connect(f"grpc://{server.address}", db_kwargs=options, autocommit=True) as connection:
                with connection.cursor() as cursor:
                    cursor.adbc_ingest(self.table, rows, mode="append")
        except adbc_driver_manager.Error as error:
            if server.is_running() and "Unavailable" not in str(error) and "UNAVAILABLE" not in str(error):
                raise Refused(self.table, 429 if "too_many" in str(error) else 500, str(error)) from error
            raise Gone(str(error)) from error


class Replaced(Kind):
    """A table that is made again and again: its rows are those of one generation."""

    name = "replace"

    def __init__(self, seed):
        super().__init__(seed)
        self.held, self.cut = 0, None

    def prepare(self, server):
        self.make(server, 0)

    @staticmethod
    def make(server, generation):
        rows = f"SELECT {generation} AS g, value AS i FROM generate_series(1, {100 + generation % 900}) AS s(value)"
        server.sql(f"CREATE OR REPLACE TABLE generation AS {rows}", WRITER)

    def change(self, server):
        self.cut = self.next()
        try:
            self.make(server, self.cut)
        except Refused:
            self.cut = None
            raise
        self.held, self.cut = self.cut, None
        self.acknowledged += 1

    def check(self, server):
        found = server.sql("SELECT g, count(*) AS n, max(i) AS m FROM generation GROUP BY g")
        assert len(found) == 1, f"rows of {len(found)} generations: {found}"
        generation, count, largest = (int(value) for value in found[0])
        assert count == largest == 100 + generation % 900, f"a part of generation {generation}: {found}"
        if self.cut is not None:
            self.resolved(generation == self.cut)
            if generation == self.cut:
                self.held = generation
            self.cut = None
        assert generation == self.held, f"generation {generation}, {self.held} was acknowledged"


class Objects(Kind):
    """Tables, views and databases that come and go; their comments; and whether a search finds them."""

    name = "objects"

    def __init__(self, seed):
        super().__init__(seed)
        # Name to its comment; what was cut off: what it would be, or None where it was to go.
        self.tables, self.cut = {}, None

    def change(self, server):
        step = self.random.random()
        names = sorted(self.tables)
        if names and (step < 0.3 or len(names) > 25):
            name = self.random.choice(names)
            self.do(server, name, None, f"DROP TABLE {name}")
        elif names and step < 0.6:
            name, comment = self.random.choice(names), f"comment {self.next()}"
            self.do(server, name, comment, f"COMMENT ON TABLE {name} IS '{comment}'")
        else:
            number = self.next()
            name = f"made_{number}"
            self.do(server, name, "", f"CREATE TABLE {name} AS SELECT value AS i FROM generate_series(1, 77) AS s(value)")
            if number % 3 == 0:
                # Within one database that comes and goes with what is in it.
                server.sql(f"CREATE DATABASE IF NOT EXISTS passing_{number}", WRITER)
                server.sql(f"CREATE TABLE passing_{number}.t AS SELECT * FROM {name}", WRITER)
                server.sql(f"CREATE VIEW passing_{number}.v AS SELECT count(*) AS n FROM passing_{number}.t", WRITER)
                server.sql(f"DROP DATABASE passing_{number} CASCADE", WRITER)
                self.acknowledged += 4

    def do(self, server, name, comment, sql):
        self.cut = (name, comment)
        try:
            server.sql(sql, WRITER)
        except Refused:
            self.cut = None
            raise
        self.hold(name, comment)
        self.cut = None
        self.acknowledged += 1

    def hold(self, name, comment):
        if comment is None:
            self.tables.pop(name, None)
        else:
            self.tables[name] = comment

    def check(self, server):
        listed = server.sql("SELECT name, comment FROM system.tables WHERE database = 'default' AND name LIKE 'made_%'")
        found = {row[0]: row[1] or "" for row in listed}
        if self.cut is not None:
            name, comment = self.cut
            self.cut = None
            there = found.get(name) == comment
            self.resolved(there)
            if there:
                self.hold(name, comment)
        assert found == self.tables, f"tables: {difference(self.tables, found)}"
        for name in self.random.sample(sorted(found), min(3, len(found))):
            count = server.sql(f"SELECT count(*) AS n, sum(i) AS s FROM {name}")[0]
            assert [int(value) for value in count] == [77, 77 * 78 // 2], f"{name}: {count}"
            hits = server.json("GET", f"/v1/catalog/search?q={quoted(name)}&limit=5")
            assert name in json.dumps(hits), f"a search for {name} finds {hits}"
        for database in server.sql("SELECT name FROM system.databases WHERE name LIKE 'passing_%'"):
            for row in server.sql(f"SELECT name FROM system.tables WHERE database = '{database[0]}' AND name = 't'"):
                count = server.sql(f"SELECT count(*) FROM {database[0]}.{row[0]}")
                assert int(count[0][0]) == 77, f"{database[0]}: {count}"
            server.sql(f"DROP DATABASE {database[0]} CASCADE", WRITER)


class Named(Kind):
    """Things that are made once and stay: a set of what was acknowledged."""

    def __init__(self, seed):
        super().__init__(seed)
        self.held, self.cut = {}, None

    def change(self, server):
        name = f"{self.name}-{self.next()}"
        self.cut = name
        try:
            self.held[name] = self.make(server, name)
        except Refused:
            self.cut = None
            raise
        self.cut = None
        self.acknowledged += 1

    def check(self, server):
        found = self.there(server)
        if self.cut is not None:
            self.resolved(self.cut in found)
            if self.cut in found:
                self.held[self.cut] = found[self.cut]
            self.cut = None
        assert found.keys() == self.held.keys(), f"{difference(self.held, found)}"


class Grants(Named):
    name = "grant"

    def make(self, server, name):
        server.sql(f"GRANT SELECT ON TABLE generation TO SUBJECT \"{name}\"")
        if self.number % 5 == 0:
            server.sql(f"CREATE OR REPLACE MASK passing ON approved(n) USING ({self.number}) TO SUBJECT \"{name}\"")
        return None

    def prepare(self, server):
        # Everything else of the database stays readable, and writable, for everybody.
        server.sql("GRANT ALL ON DATABASE \"default\" TO PUBLIC")

    def is_expected(self, refused):
        return super().is_expected(refused) or "OR REPLACE" in refused.args[0]

    def there(self, server):
        subjects = [json.dumps(row) for row in server.sql("SHOW GRANTS")]
        known = set(self.held) | ({self.cut} if self.cut else set())
        text = "\n".join(subjects)
        return {name: None for name in known if f"{name}\\" in text or f"{name}\"" in text}


class Tokens(Named):
    name = "token"

    def make(self, server, name):
        made = server.json("POST", "/v1/tokens", {"name": name, "role": "read", "subject": name})
        return made["token"]

    def there(self, server):
        found, page = {}, ""
        while page is not None:
            listed = server.json("GET", f"/v1/tokens?limit=1000{page}")
            found.update({token["name"]: None for token in listed["tokens"] if token["name"].startswith("token-")})
            following = listed.get("next_page_token")
            page = f"&page_token={following}" if following else None
        for name in self.random.sample(sorted(self.held), min(3, len(self.held))):
            if self.held[name] is not None:
                status, text = server.request("GET", "/v1/queries", token=self.held[name])
                assert status == 200, f"{name} is not taken: {status} {text}"
        return found


class Knowledge(Named):
    name = "verified"

    def make(self, server, name):
        body = {"question": name, "sql": f"SELECT {self.number} AS n", "database": "default"}
        server.json("POST", "/v1/catalog/verified-queries", body, WRITER)

    def there(self, server):
        found, page = {}, ""
        while page is not None:
            listed = server.json("GET", f"/v1/catalog/verified-queries?limit=1000{page}")
            items = next(value for value in listed.values() if isinstance(value, list))
            found.update({item["question"]: None for item in items})
            following = listed.get("next_page_token")
            page = f"&page_token={following}" if following else None
        return found


class Uploads(Named):
    """Files and conversations of OpenAI's routes."""

    name = "upload"

    def make(self, server, name):
        boundary = "boundary-of-the-crasher"
        content = name * 2_000
        body = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nuser_data\r\n'
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}.txt"\r\n'
            f"Content-Type: text/plain\r\n\r\n{content}\r\n--{boundary}--\r\n"
        )
        headers = {"content-type": f"multipart/form-data; boundary={boundary}"}
        status, text = server.request("POST", "/v1/files", body, WRITER, headers)
        if status != 200:
            raise Refused("/v1/files", status, text)
        return json.loads(text)["id"]

    def there(self, server):
        found, after = {}, ""
        while True:
            page = server.json("GET", f"/v1/files?limit=1000{after}", token=WRITER)
            for item in page["data"]:
                found[item["filename"].removesuffix(".txt")] = item["id"]
            if not page.get("has_more") or not page["data"]:
                break
            after = f"&after={page['data'][-1]['id']}"
        for name in self.random.sample(sorted(found), min(2, len(found))):
            status, text = server.request("GET", f"/v1/files/{found[name]}/content", token=WRITER)
            assert (status, text) == (200, name * 2_000), f"{name}: {status}, {len(text)} bytes"
        return found


class Runs(Kind):
    """Questions: a run whose last event was read is stored as it ended; one that was cut off has ended, and has a last event."""

    name = "runs"

    def __init__(self, seed):
        super().__init__(seed)
        self.finished, self.cut = {}, 0

    def change(self, server):
        self.cut += 1
        events = server.ask(f"how many? {self.next()}")
        self.cut -= 1
        names = [name for name, _ in events]
        if names[-1:] != ["run_finished"]:
            if not server.is_running():
                raise Gone("cut")
            # The socket ended with the process, a moment before anybody noticed.
            self.cut += 1
            raise Gone("a stream without its last event")
        self.finished[events[-1][1]["run_id"]] = "answer_final" in names
        self.acknowledged += 1

    def check(self, server):
        for _ in range(self.cut):
            self.resolved(False)
        self.cut = 0
        unended = server.sql("SELECT run_id, status FROM system.runs WHERE status = 'running'")
        assert not unended, f"runs that never end: {unended}"
        stored = dict(server.sql("SELECT run_id, status FROM system.runs"))
        lost = [run for run in self.finished if run not in stored]
        assert not lost, f"{len(lost)} runs are lost: {lost[:5]}"
        wrong = {run: stored[run] for run, answered in self.finished.items() if answered and stored[run] != "success"}
        assert not wrong, f"runs that were answered: {dict(list(wrong.items())[:5])}"
        for run in self.random.sample(sorted(stored), min(3, len(stored))):
            trace = server.json("GET", f"/v1/agent/runs/{run}")["trace"]
            if stored[run] != "paused":
                assert trace[-1]["event"] == "run_finished", f"{run} ({stored[run]}): {trace[-1]}"


class Approvals(Kind):
    """Calls that write and wait for a person: each is executed once, or not at all, whatever is sent again."""

    name = "approvals"

    def __init__(self, seed):
        super().__init__(seed)
        # Number to the id of its request, as far as nobody has said yes to it.
        self.waiting, self.cut, self.done = {}, {}, set()

    def prepare(self, server):
        server.sql("CREATE TABLE approved (n BIGINT)")

    def change(self, server):
        if len(self.waiting) > 3 or (self.waiting and self.random.random() < 0.5):
            number = self.random.choice(sorted(self.waiting))
            self.cut[number] = self.waiting.pop(number)
            self.approve(server, number, self.cut[number])
            del self.cut[number]
            self.done.add(number)
            self.acknowledged += 1
            return
        number = next(server.numbers, None)
        if number is None:
            raise Gone("no more numbers")
        response = self.respond(server, f"insert {number}.")
        asked = [item for item in response["output"] if item["type"] == "mcp_approval_request"]
        assert asked, f"nobody is asked: {response}"
        self.waiting[number] = asked[0]["id"]

    @staticmethod
    def respond(server, given):
        response = server.json("POST", "/v1/responses", {"input": given}, WRITER)
        if response["status"] not in ("completed", "incomplete") and not server.is_running():
            raise Gone("cut")
        return response

    def approve(self, server, number, request):
        answer = [{"type": "mcp_approval_response", "approval_request_id": request, "approve": True}]
        response = self.respond(server, answer)
        calls = [item for item in response["output"] if item["type"] == "mcp_call"]
        failed = [item for item in calls if item.get("error")]
        assert response["status"] == "completed" and calls and not failed, f"{number}: {json.dumps(response)[:2000]}"

    def check(self, server):
        rows = {int(row[0]): int(row[1]) for row in server.sql("SELECT n, count(*) AS c FROM approved GROUP BY n")}
        for number, request in self.cut.items():
            self.resolved(number in rows)
            # Sent again: what was executed is not executed again.
            try:
                self.approve(server, number, request)
            except (AssertionError, Refused):
                pass
            again = server.sql(f"SELECT count(*) FROM approved WHERE n = {number}")
            times = int(again[0][0])
            assert times <= 1, f"approved once, executed {times} times: {number}"
            assert times >= rows.get(number, 0), f"{number} is gone"
            if times:
                self.done.add(number)
                rows[number] = times
        self.cut = {}
        # A request that nobody has answered waits across starts.
        for number in self.random.sample(sorted(self.waiting), min(1, len(self.waiting))):
            self.approve(server, number, self.waiting.pop(number))
            self.done.add(number)
            rows[number] = int(server.sql(f"SELECT count(*) FROM approved WHERE n = {number}")[0][0])
        lost = self.done - rows.keys()
        assert not lost, f"approved and lost: {sorted(lost)[:5]}"
        more = {number: times for number, times in rows.items() if times != 1 or number not in self.done}
        assert not more, f"executed without a person's yes, or twice: {more}"


def all_kinds(seed):
    return [
        Inserted(seed, "inserted"),
        Compacted(seed, "compacted"),
        Inserted(seed, "contested"),
        CompactedBeside(seed, "contested"),
        Imported(seed, "imported"),
        Ingested(seed, "ingested"),
        Replaced(seed),
        Objects(seed),
        Grants(seed),
        Tokens(seed),
        Knowledge(seed),
        Uploads(seed),
        Approvals(seed),
        Runs(seed),
    ]


def server_post(server, path, body):
    status, text = server.request("POST", path, body, WRITER)
    if status != 200:
        raise Refused(path, status, text)


def difference(expected, found):
    gone = [name for name in expected if name not in found]
    more = [name for name in found if name not in expected]
    other = [name for name in expected if name in found and isinstance(expected, dict) and expected[name] != found[name]]
    return f"lost {gone[:5]}, not made {more[:5]}, different {other[:5]}"


def duckdb_rows(folder, sql):
    """Rows of a query of DuckDB over the folder, which the server has open."""
    import duckdb
    import duckdb_extension_ducklake
    import duckdb_extension_sqlite_scanner

    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    connection.execute("SET enable_progress_bar = false")
    try:
        for package in (duckdb_extension_sqlite_scanner, duckdb_extension_ducklake):
            below = os.path.dirname(package.__file__)
            extension = glob.glob(os.path.join(below, "**", "*.duckdb_extension"), recursive=True)[0]
            connection.execute(f"LOAD '{extension}'")
        connection.execute(f"ATTACH 'ducklake:sqlite:{folder}/catalog.sqlite' AS lake (READ_ONLY)")
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


__all__ = ["Kind", "READER", "all_kinds", "duckdb_rows"]
