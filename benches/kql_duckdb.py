"""Times duckdb-kql on the queries of a folder, over the Parquet files of two tables, and prints JSON.

usage: kql_duckdb.py QUERIES LOGS_GLOB OWNERS_GLOB
"""

import json
import pathlib
import sys
import time

import duckdb_kql

queries, logs, owners = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
connection = duckdb_kql.connect()
for name, files in (("logs", logs), ("owners", owners)):
    connection.sql(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{files}')")
times = []
for query in sorted(queries.glob("*.kql")):
    text = query.read_text()
    started = time.perf_counter()
    try:
        duckdb_kql.kql(connection, text).fetchall()
    except duckdb_kql.KqlError as refused:
        print(f"{query.name}: {refused}", file=sys.stderr)
        times.append(None)
        continue
    times.append((time.perf_counter() - started) * 1e3)
print(json.dumps(times))
