#!/usr/bin/env python3
"""Makes the data folder that tests keep of a format of the catalog: tests/folders/format-N.

usage: folder_fixture.py QUERENT

Run it with a build whose format has a new number, before the next migration is written, and commit what it makes. A folder that is
there is never made again: it is what that version wrote. tests/it/older_folders.rs opens a copy of each with the build at hand.
"""
import gzip
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request

# Rows of deletes name their data file by its whole path, so that it should tell nothing of whose machine this is.
DATA = pathlib.Path("/tmp/querent-folder-fixture")
FOLDERS = pathlib.Path(__file__).resolve().parent.parent / "tests" / "folders"
SCRIPT = {"runs": [{"turns": [
    {"events": [{"tool_call": {"name": "run_sql", "arguments": {"sql": "SELECT count(*) AS n FROM sales.orders"}}}]},
    {"events": [{"text": "There are 2 orders."}]},
]}]}
STATEMENTS = [
    "CREATE DATABASE sales",
    "COMMENT ON DATABASE sales IS 'what was sold'",
    "CREATE TABLE sales.orders (id BIGINT NOT NULL, region VARCHAR, amount DECIMAL(10,2) DEFAULT 0, placed DATE, at TIMESTAMP, "
    "tags VARCHAR[], PRIMARY KEY (id))",
    "INSERT INTO sales.orders VALUES (1, 'EU', 10.50, DATE '2026-01-02', TIMESTAMP '2026-01-02 03:04:05', ['a', 'b']), "
    "(2, 'US', 20.25, DATE '2026-02-03', NULL, NULL), (3, NULL, -0.01, NULL, TIMESTAMP '1969-12-31 23:59:59', [])",
    "DELETE FROM sales.orders WHERE id = 2",
    "COMMENT ON TABLE sales.orders IS 'one row an order'",
    "COMMENT ON COLUMN sales.orders.amount IS 'in euros'",
    "ALTER TABLE sales.orders ADD COLUMN note VARCHAR",
    "CREATE VIEW sales.europe AS SELECT id, amount FROM sales.orders WHERE region = 'EU'",
    "CREATE TABLE sales.customers (id BIGINT, name VARCHAR)",
    "GRANT SELECT ON DATABASE sales TO ROLE analyst",
    "CREATE ROW POLICY own_region ON sales.orders USING (region = attribute('region')) TO ROLE analyst",
    "CREATE MASK hide ON sales.orders(amount) USING (0) TO PUBLIC EXCEPT ROLE boss",
]


class Server:
    def __init__(self, binary):
        shutil.rmtree(DATA, ignore_errors=True)
        script = DATA.with_suffix(".json")
        script.write_text(json.dumps(SCRIPT))
        environment = os.environ | {"QUERENT_EMBED_PROVIDER": "none", "QUERENT_AGENT_SCRIPT": str(script)}
        command = [binary, "serve", "--data", str(DATA), "--listen", "127.0.0.1:0", "--set", "audit.enabled=true"]
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = self.process.stdout.readline().split(" at ")[1].split()[0]

    def post(self, path, body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or "{}")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(60)


def fill(server):
    for sql in STATEMENTS:
        server.post("/v1/query", {"sql": sql, "format": "json"})
    orders, customers = ({"database": "sales", "table": table} for table in ("orders", "customers"))
    verified = {"question": "How many orders are there?", "sql": "SELECT count(*) FROM orders", "database": "sales"}
    server.post("/v1/catalog/verified-queries", verified)
    server.post("/v1/catalog/metrics", {"name": "turnover", "table": orders, "expression": "sum(amount)"})
    joined = {"from": orders, "from_columns": ["id"], "to": customers, "to_columns": ["id"]}
    server.post("/v1/catalog/relationships", joined)
    conversation = server.post("/v1/conversations", {"metadata": {"topic": "kept"}})["id"]
    server.post("/v1/responses", {"input": "How many orders are there?", "conversation": conversation})
    # From here on nobody is let in without it; it is not kept.
    server.post("/v1/tokens", {"name": "boss", "role": "admin"})
    time.sleep(1)


def keep():
    catalog = sqlite3.connect(DATA / "catalog.sqlite")
    (version,) = catalog.execute("SELECT max(version) FROM querent_migrations").fetchone()
    catalog.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    catalog.close()
    kept = FOLDERS / f"format-{version}"
    if kept.exists():
        sys.exit(f"{kept} is there, and is what that version wrote")
    for store in ("catalog", "audit"):
        target = kept / f"{store}.sqlite.gz"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(gzip.compress((DATA / f"{store}.sqlite").read_bytes(), mtime=0))
    for file in sorted(DATA.glob("data/**/*.parquet")):
        target = kept / file.relative_to(DATA)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    print(kept, sum(file.stat().st_size for file in kept.rglob("*") if file.is_file()), "bytes")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    server = Server(sys.argv[1])
    try:
        fill(server)
    finally:
        server.stop()
    keep()
    shutil.rmtree(DATA)
    DATA.with_suffix(".json").unlink()


if __name__ == "__main__":
    main()
