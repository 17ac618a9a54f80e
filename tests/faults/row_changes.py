"""Changes of rows and columns that stand on one another, and rights that are taken away, while a server is killed: each statement
holds whole or not at all, and none of those before it is undone."""

import json

from changes import Kind, WRITER, Refused, duckdb_rows


class Changed(Kind):
    """A table whose rows are inserted, updated, deleted and merged, whose files are merged, and whose columns come and go."""

    name = "changed rows"

    def __init__(self, seed):
        super().__init__(seed)
        # Key to value, and the columns; what was cut off: what both would be.
        self.rows, self.columns, self.cut = {}, ["k", "v"], None
        self.last = 0

    def prepare(self, server):
        server.sql("CREATE TABLE changed (k BIGINT, v BIGINT)")

    def change(self, server):
        rows, columns = dict(self.rows), list(self.columns)
        number, step = self.next(), self.random.random()
        divisor, rest = self.random.choice([2, 3, 7, 50]), self.random.randrange(2)
        chosen = [key for key in rows if key % divisor == rest]
        more = self.random.choice([1, 100, 2_000]) if len(rows) < 6_000 else 1
        first, self.last = self.last + 1, self.last + more
        new = f"SELECT value AS k, {number} AS v FROM generate_series({first}, {self.last}) AS s(value)"
        if step < 0.3:
            sql = f"INSERT INTO changed (k, v) {new}"
            rows.update((key, number) for key in range(first, self.last + 1))
        elif step < 0.5:
            sql = f"UPDATE changed SET v = v + {number} WHERE k % {divisor} = {rest}"
            rows.update((key, rows[key] + number) for key in chosen)
        elif step < 0.65:
            sql = f"DELETE FROM changed WHERE k % {divisor} = {rest}"
            for key in chosen:
                del rows[key]
        elif step < 0.8:
            sql = (
                f"MERGE INTO changed AS t USING ({new} UNION ALL SELECT k, v FROM changed WHERE k % {divisor} = {rest}) AS s "
                f"ON t.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v + 1 WHEN NOT MATCHED THEN INSERT (k, v) VALUES (s.k, s.v)"
            )
            rows.update((key, rows[key] + 1) for key in chosen)
            rows.update((key, number) for key in range(first, self.last + 1))
        elif step < 0.9:
            sql = "OPTIMIZE changed"
        elif len(columns) > 2:
            sql = f"ALTER TABLE changed DROP COLUMN {columns.pop()}"
        else:
            columns.append(f"more_{number}")
            sql = f"ALTER TABLE changed ADD COLUMN more_{number} VARCHAR DEFAULT 'x'"
        self.cut = (rows, columns)
        try:
            server.sql(sql, WRITER)
        except Refused:
            self.cut = None
            raise
        self.rows, self.columns, self.cut = rows, columns, None
        self.acknowledged += 1

    def check(self, server):
        found = {int(key): int(value) for key, value in server.sql("SELECT k, v FROM changed")}
        count = int(server.sql("SELECT count(*) FROM changed")[0][0])
        columns = [row[0] for row in server.sql("DESCRIBE changed")]
        assert count == len(found), f"{count} rows of {len(found)} keys"
        if self.cut is not None:
            there = (found, columns) == self.cut
            self.resolved(there)
            if there:
                self.rows, self.columns = self.cut
            self.cut = None
        wrong = {key for key in found.keys() | self.rows.keys() if found.get(key) != self.rows.get(key)}
        example = [(key, self.rows.get(key), found.get(key)) for key in sorted(wrong)[:5]]
        assert not wrong, f"{len(wrong)} rows are not what was acknowledged: {example}"
        assert columns == self.columns, f"columns {columns}, acknowledged {self.columns}"

    def compare(self, server, folder):
        ours = [int(value or 0) for value in server.sql("SELECT count(*), sum(k), sum(v) FROM changed")[0]]
        sql = 'SELECT count(*), sum(k), sum(v) FROM lake."default".changed'
        theirs = [int(value or 0) for value in duckdb_rows(folder, sql)[0]]
        assert ours == theirs, f"changed: {ours} here, {theirs} in DuckDB"


class Revoked(Kind):
    """Tokens and grants that are taken away: what was revoked is let in by no later server."""

    name = "revoked"

    def __init__(self, seed):
        super().__init__(seed)
        self.tokens, self.subjects, self.cut = {}, set(), None

    def change(self, server):
        subject = f"gone-{self.next()}"
        made = server.json("POST", "/v1/tokens", {"name": subject, "role": "read", "subject": subject})
        server.sql(f'GRANT SELECT ON TABLE generation TO SUBJECT "{subject}"')
        self.cut = subject
        identifier = made["id"]
        server.json("DELETE", f"/v1/tokens/{identifier}")
        self.tokens[subject] = made["token"]
        self.acknowledged += 1
        server.sql(f'REVOKE SELECT ON TABLE generation FROM SUBJECT "{subject}"')
        self.subjects.add(subject)
        self.acknowledged += 1
        self.cut = None

    def check(self, server):
        if self.cut is not None:
            self.resolved(False)
            self.cut = None
        for subject in self.random.sample(sorted(self.tokens), min(5, len(self.tokens))):
            status, text = server.request("GET", "/v1/queries", token=self.tokens[subject])
            assert status == 401, f"{subject} was revoked and is let in: {status} {text[:200]}"
        grants = "\n".join(json.dumps(row) for row in server.sql("SHOW GRANTS"))
        left = [subject for subject in self.subjects if f"{subject}\\" in grants or f'{subject}"' in grants]
        assert not left, f"revoked, and granted again: {left[:5]}"
