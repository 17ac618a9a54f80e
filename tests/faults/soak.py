"""Keeps a server busy with everything at once, and looks whether it grows.

SQL, KQL, Flight, questions, imports, tables that come and go, listings, searches, MCP and clients that go away, side by side. Its
resident memory, open files, threads and files are sampled; growth is that of a line through the samples of the second half.

usage: soak.py [--seconds 1800]
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import socket
import statistics
import sys
import tempfile
import threading
import time

from changes import server_post
from server import READER, WRITER, Gone, Refused, Server, files_below, quoted

#: What may grow in the second half, as a part of what there is.
BAR = 0.02
SAMPLES = 200

SCRIPT = {"runs": [
    {"when": "long", "turns": [
        {"events": [{"text": "word " * 50}] * 40 + [{"delay_ms": 20}], "usage": {"input_tokens": 10, "output_tokens": 9}}]},
    {"turns": [
        {"events": [{"text": "I look. "}, {"tool_call": {"name": "run_sql", "arguments": {
            "sql": "SELECT kind, count(*) AS n, sum(v) AS s FROM facts GROUP BY kind ORDER BY kind"}}}]},
        {"events": [{"tool_call": {"name": "run_kql", "arguments": {"kql": "facts | summarize n = count() by kind | take 3"}}},
                    {"tool_call": {"name": "search_schema", "arguments": {"query": "facts by kind"}}}]},
        {"events": [{"text": "There are "}, {"delay_ms": 10}, {"text": "5 kinds."}]}], "repeat_last": True},
]}
SETTINGS = {
    # Small bounds are full early: what grows after that grows for ever.
    "QUERENT_QUERY_PROCESS_MEMORY": "1GiB",
    "QUERENT_QUERY_COLUMN_CACHE": "64MiB",
    "QUERENT_AGENT_RESULT_BYTES": "8MiB",
    "QUERENT_AUDIT_ENABLED": "true",
    "QUERENT_AUDIT_MAX_RECORDS": "2000",
    # The allocator of debug builds keeps what was freed, unless large pieces are the system's.
    "MALLOC_MMAP_THRESHOLD_": "65536",
    "MALLOC_ARENA_MAX": "2",
}


class Soak:
    def __init__(self, folder):
        self.folder = folder / "data"
        self.server = Server(self.folder, SCRIPT, folder / "server.log", SETTINGS)
        self.random = random.Random(7)
        self.stopped = threading.Event()
        self.counts, self.refused, self.faults = {}, 0, []

    def prepare(self):
        self.server.start()
        rows = "SELECT value AS id, value % 5 AS kind, value % 997 AS v, repeat('x', 10) AS pad FROM generate_series(1, 100000) AS s(value)"
        self.server.sql(f"CREATE TABLE facts AS {rows}")
        for number in range(30):
            self.server.sql(f"CREATE TABLE other_{number} AS SELECT 1 AS a, 'b' AS b")

    # What clients do, each over and over.

    def sql(self):
        n = self.random.randrange(1_000)
        self.server.sql(self.random.choice([
            f"SELECT count(*) FROM facts WHERE v < {n}",
            f"SELECT kind, avg(v), max(id) FROM facts WHERE id > {n} GROUP BY kind",
            f"SELECT a.id FROM facts a JOIN facts b ON a.id = b.v WHERE a.v = {n} LIMIT 10",
            f"SELECT id, row_number() OVER (PARTITION BY kind ORDER BY v) FROM facts WHERE v = {n}",
            f"SELECT * FROM facts ORDER BY v, id LIMIT {1 + n % 50}",
        ]), READER)

    def formats(self):
        name = self.random.choice(["csv", "ndjson", "arrow", "parquet", "tsv"])
        status, _ = self.server.request("POST", f"/v1/query?format={name}", {"sql": "SELECT * FROM facts LIMIT 3000"}, READER)
        if status != 200:
            raise Refused(name, status, "")

    def wrong(self):
        sql = self.random.choice(["SELECT nothing FROM facts", "SELEC 1", "SELECT 1 / (id - 5) FROM facts", "SELECT * FROM nowhere"])
        try:
            self.server.sql(sql, READER)
        except Refused as refused:
            if refused.status >= 500:
                raise
        except Gone:
            # A failure after the first byte cuts the answer off, so that it does not look whole.
            if "1 / (id" not in sql:
                raise

    def kql(self):
        n = self.random.randrange(1_000)
        csl = f"facts | where v < {n} | summarize n = count(), m = max(v) by kind | order by kind asc"
        self.server.json("POST", "/v2/rest/query", {"db": "default", "csl": csl}, READER)

    def flight(self):
        import adbc_driver_manager
        from adbc_driver_flightsql import DatabaseOptions, dbapi

        options = {DatabaseOptions.AUTHORIZATION_HEADER.value: f"Bearer {READER}"}
        try:
            with dbapi.connect(f"grpc://{self.server.address}", db_kwargs=options, autocommit=True) as connection:
                with connection.cursor() as cursor:
                    for _ in range(3):
                        cursor.execute("SELECT id, v FROM facts WHERE v < ?", [self.random.randrange(50)])
                        cursor.fetch_arrow_table()
        except adbc_driver_manager.Error as error:
            if "too_many_requests" not in str(error):
                raise

    def ask(self):
        events = self.server.ask(self.random.choice(["how many kinds?", "a long one", "and now?"]))
        assert events[-1][0] == "run_finished", events[-1]

    def responses(self):
        text = self.random.choice(["how many kinds?", "a long one"])
        self.server.json("POST", "/v1/responses", {"input": text, "store": False}, READER)

    def imports(self):
        lines = "".join(f"{i},{self.random.randrange(99)},text {i}\n" for i in range(2_000))
        server_post(self.server, "/v1/import?table=imported&format=csv&if_exists=replace", f"a,b,c\n{lines}")

    def tables(self):
        name = f"passing_{self.random.randrange(3)}"
        self.server.sql(f"CREATE OR REPLACE TABLE {name} AS SELECT * FROM facts LIMIT 500", WRITER)
        self.server.sql(f"COMMENT ON TABLE {name} IS 'number {self.random.random()}'", WRITER)
        self.server.sql(f"DROP TABLE IF EXISTS {name}", WRITER)

    def metadata(self):
        self.server.json("GET", "/v1/catalog/schema?limit=20", token=READER)
        self.server.json("GET", f"/v1/catalog/search?q={quoted(self.random.choice(['facts by kind', 'other_7', 'b']))}", token=READER)
        self.server.sql("SELECT count(*) FROM information_schema.columns", READER)
        self.server.json("POST", "/v1/complete", {"text": "SELECT * FROM fa", "position": 16, "language": "sql"}, READER)
        self.server.request("GET", "/metrics")
        self.server.json("GET", "/v1/agent/runs?limit=5", token=READER)

    def mcp(self):
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": {"name": "run_sql", "arguments": {"sql": "SELECT kind, count(*) FROM facts GROUP BY kind"}}}
        headers = {"accept": "application/json, text/event-stream"}
        status, text = self.server.request("POST", "/mcp", call, READER, headers)
        if status not in (200, 400, 404):
            raise Refused("mcp", status, text)

    def vanish(self):
        """A client that goes away in the middle of its answer."""
        host, port = self.server.address.rsplit(":", 1)
        body = json.dumps({"sql": "SELECT a.id, b.id FROM facts a CROSS JOIN facts b"})
        with socket.create_connection((host, int(port)), timeout=30) as stream:
            head = f"POST /v1/query HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {READER}\r\n"
            stream.sendall(f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode())
            stream.recv(self.random.choice([1, 4_096]))

    def work(self, step):
        while not self.stopped.is_set():
            try:
                step()
                self.counts[step.__name__] = self.counts.get(step.__name__, 0) + 1
            except Refused as refused:
                if refused.status in (409, 429):
                    self.refused += 1
                    time.sleep(0.05)
                else:
                    self.faults.append(f"{step.__name__}: {refused}")
                    time.sleep(1)
            except (Gone, AssertionError, OSError) as fault:
                self.faults.append(f"{step.__name__}: {fault!r}"[:500])
                time.sleep(1)

    def sample(self, began):
        sampled = {"seconds": time.monotonic() - began, **self.server.sample()}
        for name in ("data", "index", "spill"):
            sampled[f"{name}_files"] = len(files_below(self.folder / name)) if (self.folder / name).exists() else 0
        store = self.folder / "catalog.sqlite"
        sampled["catalog_mib"] = store.stat().st_size / (1 << 20)
        sampled["log_mib"] = sum(path.stat().st_size for path in self.folder.glob("*.sqlite-wal")) / (1 << 20)
        return sampled

    def run(self, seconds):
        self.prepare()
        steps = [self.sql, self.sql, self.formats, self.wrong, self.kql, self.flight, self.ask, self.ask, self.responses,
                 self.imports, self.tables, self.metadata, self.mcp, self.vanish]
        threads = [threading.Thread(target=self.work, args=[step], daemon=True) for step in steps]
        began = time.monotonic()
        for thread in threads:
            thread.start()
        samples = []
        pause = max(0.5, seconds / SAMPLES)
        while time.monotonic() - began < seconds and self.server.is_running() and len(self.faults) < 50:
            time.sleep(pause)
            samples.append(self.sample(began))
            if len(samples) % 20 == 0:
                last = samples[-1]
                print(" ".join(f"{name} {value:.0f}" for name, value in last.items()), flush=True)
        alive = self.server.is_running()
        self.stopped.set()
        for thread in threads:
            thread.join(timeout=60)
        return samples, alive

    def settled(self):
        """What is left when nobody asks any more: no query, no spill file, few threads."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            running = self.server.json("GET", "/v1/queries")["queries"]
            spilled = files_below(self.folder / "spill") if (self.folder / "spill").exists() else []
            if not running and not spilled:
                return
            time.sleep(0.5)
        raise AssertionError(f"still there: {running}, {spilled}"[:500])


def growth(samples, name):
    """How much a line through the second half rises over that half, as a part of its middle."""
    half = samples[len(samples) // 2 :]
    times, values = [sample["seconds"] for sample in half], [sample[name] for sample in half]
    if len(set(values)) == 1:
        return 0.0
    line = statistics.linear_regression(times, values)
    middle = statistics.fmean(values)
    return line.slope * (times[-1] - times[0]) / middle if middle else 0.0


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=float(os.environ.get("SOAK_SECONDS", "1800")))
    chosen = options.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="querent-soak-"))
    soak = Soak(folder)
    samples, alive = soak.run(chosen.seconds)
    faults = list(soak.faults)
    if not alive:
        faults.append(f"the server ended: {soak.server.tail()}")
    else:
        try:
            soak.settled()
            check = soak.server.json("POST", "/v1/check?remove_orphans=true&grace_seconds=0", {}, timeout=300)
            if check["faults"]:
                faults.append(f"check: {check['faults'][:3]}")
            if check["orphans"]:
                faults.append(f"{len(check['orphans'])} files that no table has, without a crash: {check['orphans'][:3]}")
        except AssertionError as fault:
            faults.append(str(fault))
        soak.server.stop()
    print(f"{chosen.seconds:.0f} s: " + ", ".join(f"{name} {count}" for name, count in sorted(soak.counts.items())))
    print(f"{soak.refused} refused for want of room")
    print(f"{'':<16}{'middle':>10}{'end':>10}{'growth':>9}   of the second half")
    for name in [name for name in samples[-1] if name != "seconds"]:
        middle, end, rise = samples[len(samples) // 2][name], samples[-1][name], growth(samples, name)
        # Tables' files and the catalog keep every snapshot: they grow with what is written.
        barred = name in ("resident_mib", "open_files", "threads", "index_files", "spill_files")
        is_over = barred and rise > BAR and name == "resident_mib"
        print(f"{name:<16}{middle:>10.1f}{end:>10.1f}{rise:>8.1%}   {'the bar is 2 %' if name == 'resident_mib' else ''}")
        if is_over:
            faults.append(f"{name} grows by {rise:.1%}")
    for fault in faults[:20]:
        print(f"FAULT {fault}")
    if faults:
        print(f"the folder is {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
