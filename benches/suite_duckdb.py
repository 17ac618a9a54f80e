"""Times DuckDB on the queries of a folder, over the Parquet files of another or over copies in its own format, and prints JSON.

usage: suite_duckdb.py parquet|native QUERIES DATA ROUNDS ROWS_FILE

The first of ROUNDS + 1 rounds is the cold one. The rows of each query go to ROWS_FILE, numbers as doubles, the rest as text.
"""

import decimal
import json
import pathlib
import sys
import time

import duckdb

kind, queries, data, rounds, rows_file = sys.argv[1:]
connection = duckdb.connect()
for file in sorted(pathlib.Path(data).glob("*.parquet")):
    what = "TABLE" if kind == "native" else "VIEW"
    connection.execute(f"CREATE {what} {file.stem} AS SELECT * FROM read_parquet('{file}')")


def plain(value):
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, (int, float, decimal.Decimal)):
        return float(value)
    return str(value)


texts = [file.read_text() for file in sorted(pathlib.Path(queries).glob("*.sql"))]
times, answers = [], []
for number in range(int(rounds) + 1):
    taken = []
    for text in texts:
        started = time.perf_counter()
        rows = connection.execute(text).fetchall()
        taken.append((time.perf_counter() - started) * 1e3)
        if number == 0:
            answers.append([[plain(value) for value in row] for row in rows])
    times.append(taken)
pathlib.Path(rows_file).write_text(json.dumps(answers))
print(json.dumps(times))
