"""Times another engine of PyPI on the queries of a folder, over the Parquet files of another, and prints JSON.

usage: suite_peers.py polars|chdb|datafusion QUERIES DATA ROUNDS ROWS_FILE

The first of ROUNDS + 1 rounds is the cold one. A query that the engine refuses, or that takes more than a minute, is null in every
round and is not tried again. The rows of each query go to ROWS_FILE as suite_duckdb.py writes them.
"""

import datetime
import decimal
import json
import pathlib
import signal
import sys
import time

MINUTE = 60

engine, queries, data, rounds, rows_file = sys.argv[1:]
files = sorted(pathlib.Path(data).glob("*.parquet"))


def polars_engine():
    import polars

    context = polars.SQLContext({file.stem: polars.scan_parquet(file) for file in files})
    return lambda text: context.execute(text, eager=True).rows()


def chdb_engine():
    from chdb.session import Session

    session = Session()
    for file in files:
        session.query(f"CREATE VIEW {file.stem} AS SELECT * FROM file('{file}', Parquet)")

    def run(text):
        table = session.query(text, "ArrowTable")
        return list(zip(*(column.to_pylist() for column in table.columns)))

    return run


def datafusion_engine():
    import datafusion

    context = datafusion.SessionContext()
    for file in files:
        context.register_parquet(file.stem, str(file))

    def run(text):
        batches = context.sql(text).collect()
        return [row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns))]

    return run


def plain(value):
    match value:
        case None | str():
            return value
        case int() | float() | decimal.Decimal():
            return float(value)
        case bytes():
            return value.decode(errors="replace")
        case datetime.datetime():
            return str(value.replace(tzinfo=None))
        case _:
            return str(value)


def too_long(*_):
    raise TimeoutError


signal.signal(signal.SIGALRM, too_long)
run = {"polars": polars_engine, "chdb": chdb_engine, "datafusion": datafusion_engine}[engine]()
texts = [file.read_text() for file in sorted(pathlib.Path(queries).glob("*.sql"))]
times, answers = [], [None] * len(texts)
for number in range(int(rounds) + 1):
    taken = []
    for query, text in enumerate(texts):
        if number and answers[query] is None:
            taken.append(None)
            continue
        started = time.perf_counter()
        signal.alarm(MINUTE)
        try:
            rows = run(text)
        # Engines raise what they like, a panic of Rust's among it, which is no Exception.
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            print(f"{engine}, query {query + 1}: {str(error)[:200]}", file=sys.stderr)
            taken.append(None)
            continue
        finally:
            signal.alarm(0)
        taken.append((time.perf_counter() - started) * 1e3)
        if number == 0:
            answers[query] = [[plain(value) for value in row] for row in rows]
    times.append(taken)
pathlib.Path(rows_file).write_text(json.dumps(answers))
print(json.dumps(times))
