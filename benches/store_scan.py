"""The first scan of a table by a new process: of files in an object store whose parts the disk's cache has, against local files.

Two servers, one after the other, each with the same rows: one with its files in its data folder, one with them in moto's S3 on this
machine. Each round starts a server anew, so that nothing is in its memory, and times one query over all columns.

usage: store_scan.py [--rows 2000000] [--rounds 5] [--bar 1.15]
QUERENT_BINARY names the program; QUERENT_S3_PYTHON a Python with moto (scripts/setup.sh s3).
"""

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests/faults"))
from server import Server  # noqa: E402

NO_QUESTIONS = {"runs": []}
TABLE = """CREATE TABLE lines AS SELECT i AS id, i * 7919 % 100003 AS part, i % 97 AS day, (i * 31 % 10007) / 7.0 AS price,
  'line ' || i * 104729 % 1000003 AS comment, CASE i % 3 WHEN 0 THEN 'R' WHEN 1 THEN 'A' ELSE 'N' END AS flag
  FROM generate_series(1, {rows}) AS s(i)"""
SCAN = "SELECT count(*) AS n, sum(id) AS id, sum(part) AS part, max(day) AS day, max(price) AS price, max(comment) AS comment, min(flag) AS flag FROM lines"
PATIENCE = 600


def store():
    """Starts the object store; returns its process and its address."""
    cache = pathlib.Path(os.environ.get("QUERENT_CACHE", pathlib.Path.home() / ".cache/querent"))
    python = os.environ.get("QUERENT_S3_PYTHON", str(cache / "s3-venv/bin/python"))
    program = HERE.parent / "tests/clients/s3_server.py"
    process = subprocess.Popen([python, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return process, process.stdout.readline().strip()


def number(server, name):
    """One of the server's own numbers."""
    status, text = server.request("GET", "/metrics")
    assert status == 200, text
    return float(next(line for line in text.splitlines() if line.startswith(f"{name} ")).split()[-1])


def first_scan(server):
    """Starts the server, times its first scan and stops it: milliseconds, rows, blocks that the disk had, and that it had not."""
    server.start()
    try:
        server.sql("SELECT count(*) AS n FROM system.tables", timeout=PATIENCE)  # The catalog is open.
        began = time.perf_counter()
        rows = server.sql(SCAN, timeout=PATIENCE)
        elapsed = 1000 * (time.perf_counter() - began)
        return elapsed, rows, number(server, "querent_file_cache_hits_total"), number(server, "querent_file_cache_misses_total")
    finally:
        server.stop()


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rows", type=int, default=2_000_000)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--bar", type=float, default=1.15)
    given = arguments.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="querent-store-scan."))
    process, address = store()
    credentials = {"AWS_ENDPOINT": address, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
                   "AWS_ACCESS_KEY_ID": "querent", "AWS_SECRET_ACCESS_KEY": "querent"}
    common = {"QUERENT_QUERY_TIMEOUT": f"{PATIENCE}s"}
    servers = {
        "local files": Server(folder / "local", NO_QUESTIONS, folder / "local.log", common),
        "object store": Server(folder / "remote", NO_QUESTIONS, folder / "remote.log",
                               {**common, **credentials, "QUERENT_DATA_PATH": "s3://lake/scan/"}),
    }
    try:
        for server in servers.values():
            server.start()
            server.sql(TABLE.format(rows=given.rows), timeout=PATIENCE)
            server.stop()
        expected = None
        times = {name: [] for name in servers}
        # What the first round fetches is on the disk afterwards; what the server wrote itself is there before.
        for round_number in range(given.rounds + 1):
            for name, server in servers.items():
                elapsed, rows, hits, misses = first_scan(server)
                expected = expected or rows
                assert rows == expected, f"{name}: {rows}, not {expected}"
                if round_number == 0:
                    print(f"{name}, for the first time: {elapsed:.0f} ms, {misses:.0f} blocks of the store", flush=True)
                    continue
                assert misses == 0, f"{name}: {misses:.0f} blocks were fetched though the disk had them"
                assert (hits > 0) == (name == "object store"), f"{name}: {hits:.0f} blocks of the cache"
                times[name].append(elapsed)
        medians = {name: statistics.median(found) for name, found in times.items()}
        for name, found in times.items():
            print(f"{name}: {medians[name]:.0f} ms in the middle of {', '.join(f'{one:.0f}' for one in found)}")
        ratio = medians["object store"] / medians["local files"]
        print(f"object store with a warm cache against local files: {ratio:.2f}x, of {given.bar}x at most")
        sys.exit(ratio > given.bar)
    finally:
        process.stdin.close()
        process.wait(timeout=30)
        for server in servers.values():
            if server.process and server.is_running():
                server.kill()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
