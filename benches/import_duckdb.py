"""Times DuckDB on reading a CSV file into a lake, and prints JSON.

usage: import_duckdb.py FILE FOLDER
"""

import json
import pathlib
import sys
import time

import duckdb

source, folder = sys.argv[1], pathlib.Path(sys.argv[2])
connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
try:
    import duckdb_extension_ducklake

    packaged = pathlib.Path(duckdb_extension_ducklake.__file__).parent
    [extension] = packaged.glob("extensions/v*/*.duckdb_extension")
    connection.execute(f"LOAD '{extension}'")
    connection.execute(f"ATTACH 'ducklake:{folder / 'lake.ducklake'}' AS lake (DATA_PATH '{folder / 'data'}')")
    target = "lake.orders"
except (duckdb.Error, ImportError, ValueError) as missing:
    print(f"no lake, Parquet instead: {missing}", file=sys.stderr)
    target = None

started = time.perf_counter()
if target:
    connection.execute(f"CREATE TABLE {target} AS FROM read_csv('{source}', sample_size = -1)")
else:
    connection.execute(
        f"COPY (FROM read_csv('{source}', sample_size = -1)) TO '{folder / 'orders.parquet'}' (COMPRESSION zstd)"
    )
seconds = time.perf_counter() - started
found = target or f"read_parquet('{folder / 'orders.parquet'}')"
rows = connection.execute(f"SELECT count(*) FROM {found}").fetchone()[0]
print(json.dumps({"seconds": seconds, "rows": rows}))
