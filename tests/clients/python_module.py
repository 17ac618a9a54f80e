"""The Python module as its users have it: `querent` can be imported, and QUERENT_AGENT_SCRIPT names the agent's answers.

Prints how long the first answer took.
"""

import datetime
import decimal
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path

started = time.monotonic()
import querent

with querent.open(settings={"embed.provider": "none"}) as first:
    assert first.sql("SELECT 40 + 2 AS answer").fetchall() == [(42,)]
print(f"the first answer took {time.monotonic() - started:.2f} s")

import duckdb
import pandas
import polars
import pyarrow

folder = Path(tempfile.mkdtemp())
(folder / "flights.csv").write_text("carrier,tailnum,delay\nUA,N1,2\nUA,N2,\nAA,N3,-1\n")
(folder / "zips.txt").write_text("zip;born\n00501;31.12.2024\n06090;01.02.2023\n")


def refused(code, action):
    try:
        action()
    except querent.QuerentError as error:
        assert error.code == code and str(error).endswith(f"[{code}]"), (error.code, str(error))
        return str(error)
    raise AssertionError(f"not refused with {code}")


db = querent.open(folder / "data", settings={"embed.provider": "none"})

# Files become tables; what was decided is said, and can be told.
done = db.import_files(folder / "flights.csv")
assert (done["table"], done["rows"]) == ("flights", 3), done
done = db.import_files(folder / "zips.txt", format="csv", types={"zip": "VARCHAR", "born": "DATE"}, date_format="%d.%m.%Y")
assert db.sql("SELECT * FROM zips ORDER BY zip").fetchall() == [
    ("00501", datetime.date(2024, 12, 31)),
    ("06090", datetime.date(2023, 2, 1)),
]
refused("already_exists", lambda: db.import_files(folder / "flights.csv"))
assert db.import_files(folder / "flights.csv", if_exists="replace")["rows"] == 3
refused("no_files", lambda: db.import_files(folder / "nothing.csv"))

# Statements, parameters, values.
assert db.sql("SELECT count(*) FROM flights WHERE carrier = $1 AND delay > $2", ["UA", 1]).fetchall() == [(1,)]
assert db.sql("SELECT $1 AS a, $2 AS b", [None, b"\x00\x01"]).fetchall() == [(None, b"\x00\x01")]
for view in (bytearray(b"\x00\x01"), memoryview(b"\x00\x01"), memoryview(b"\x00?\x01")[::2]):
    assert db.sql("SELECT $1 AS a", [view]).fetchall() == [(b"\x00\x01",)], view
for unlike in ({"a": 1}, "ab"):
    try:
        db.sql("SELECT $1 AS a", unlike)
    except TypeError as error:
        assert "parameters are a list" in str(error), error
    else:
        raise AssertionError(f"{unlike} was bound")
import numpy

assert db.sql("SELECT $1 AS a, $2 AS b", [numpy.int32(7), numpy.float32(0.5)]).fetchall() == [(7, 0.5)]
day = datetime.date(2024, 12, 31)
assert len(db.sql("SELECT zip FROM zips WHERE born = $1", [day])) == 1
# A parameter is a value of its type, and comes back as what it was.
for value in [
    day,
    datetime.date(1, 1, 1),
    datetime.datetime(2024, 1, 2, 3, 4, 5, 6),
    datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc),
    datetime.time(1, 2, 3),
    datetime.time(1, 2, 3, 450000),
    decimal.Decimal("-1.250"),
    decimal.Decimal("0.001"),
    decimal.Decimal("12E3"),
    decimal.Decimal(10) ** 37,
]:
    back = db.sql("SELECT ? AS x", [value]).fetchall()[0][0]
    assert back == value and type(back) is type(value), (value, back)
assert db.sql("SELECT typeof(?), ? - DATE '2024-12-01'", [day, day]).fetchall() == [("DATE", 30)]
# A list, a tuple or an array is a list, such as the vector of a search.
for value in [[1, None, 3], (1, None, 3), numpy.array([1, 2, 3]), ["a", "b"], [[0.5, 1], []], [day]]:
    back = db.sql("SELECT ? AS x", [value]).fetchall()[0][0]
    plain = value.tolist() if isinstance(value, numpy.ndarray) else value
    assert back == list(plain), (value, back)
near = db.sql(
    "SELECT id FROM (VALUES (1, [3, 4]::FLOAT[2]), (2, [0, 1]::FLOAT[2])) AS t(id, v) ORDER BY array_distance(v, $1) LIMIT 1",
    [numpy.array([0.1, 0.9], dtype="float32")],
)
assert near.fetchall() == [(2,)]
for mixed in [[1, "a"], [0.5, 2**53 + 1]]:
    try:
        db.sql("SELECT ? AS x", [mixed])
        raise AssertionError(f"{mixed} is no parameter")
    except ValueError as error:
        assert "a list parameter has" in str(error), error
# An identifier is text, as in tables; a timedelta is an interval.
key = uuid.UUID("8a6e0804-2bd0-4672-b79d-d97027f9071a")
assert db.sql("SELECT ? AS x", [key]).fetchall() == [(str(key),)]
span = datetime.timedelta(days=1, seconds=90, microseconds=5)
later = db.sql("SELECT TIMESTAMP '2024-01-31 00:00:00' + ? AS x", [span]).fetchall()
assert later == [(datetime.datetime(2024, 2, 1, 0, 1, 30, 5),)], later
# What pandas and NumPy have besides: no value, and nanoseconds.
for value in [pandas.NaT, pandas.NA, numpy.datetime64("NaT"), numpy.timedelta64("NaT", "ns")]:
    assert db.sql("SELECT ? AS x", [value]).fetchall() == [(None,)], value
for value in [pandas.Timestamp("2024-01-01 00:00:00.123456789"), numpy.datetime64("2024-01-01T00:00:00.123456789")]:
    assert db.sql("SELECT CAST(? AS VARCHAR) AS x", [value]).fetchall() == [("2024-01-01 00:00:00.123456789",)], value
days = numpy.array(["2024-01-01", "2024-01-02"], dtype="datetime64[ns]")
assert db.sql("SELECT ? AS x", [days]).fetchall() == [([datetime.datetime(2024, 1, 1), datetime.datetime(2024, 1, 2)],)]
later = db.sql("SELECT TIMESTAMP '2024-01-31 00:00:00' + ? AS x", [numpy.timedelta64(90_000_000_000, "ns")]).fetchall()
assert later == [(datetime.datetime(2024, 1, 31, 0, 1, 30),)], later
assert db.sql("SELECT ? AS x, ? AS y", [polars.Series([1, 2]), pyarrow.scalar("a")]).fetchall() == [([1, 2], "a")]
try:
    db.sql("SELECT ? AS x", [2**64])
    raise AssertionError("such a number is no parameter")
except ValueError as error:
    assert "Decimal" in str(error), error
offset = datetime.timezone(datetime.timedelta(hours=2))
instant = datetime.datetime(2024, 7, 1, 12, tzinfo=offset)
assert db.sql("SELECT ? AS x", [instant]).fetchall() == [(instant,)]
for wrong in [decimal.Decimal("NaN"), decimal.Decimal("1E38")]:
    try:
        db.sql("SELECT ? AS x", [wrong])
        raise AssertionError(f"{wrong} is no parameter")
    except ValueError as error:
        assert "at most 38 digits" in str(error), error
row = db.sql(
    """SELECT 1.25::DECIMAL(10, 2) AS d, TIMESTAMP '2024-01-02 03:04:05.000006' AS t, [1, NULL, 3] AS l,
              {'a': 1, 'b': 'x'} AS s, true AS b, 0.5 AS f, DATE '2024-02-29' AS day, NULL AS n"""
).fetchall()[0]
assert row == (
    decimal.Decimal("1.25"),
    datetime.datetime(2024, 1, 2, 3, 4, 5, 6),
    [1, None, 3],
    {"a": 1, "b": "x"},
    True,
    row[5],
    datetime.date(2024, 2, 29),
    None,
), row
assert float(row[5]) == 0.5
zoned = db.sql("SELECT TIMESTAMPTZ '2024-07-01 12:00:00+02:00' AS t").fetchall()[0][0]
assert zoned == datetime.datetime(2024, 7, 1, 10, tzinfo=datetime.timezone.utc), zoned
# Years that Python does not have are text.
assert db.sql("SELECT DATE '-0044-03-15' AS ides").fetchall() == [("-0044-03-15",)]
assert db.sql("SELECT DATE '9999-12-31' + INTERVAL '1 day' AS late").fetchall() == [("+10000-01-01",)]
assert db.sql("SELECT TIME '01:02:03.45' AS t").fetchall() == [(datetime.time(1, 2, 3, 450000),)]
message = refused("table_not_found", lambda: db.sql("SELECT * FROM flihgts"))
assert "flights" in message, message
refused("database_not_found", lambda: db.sql("SELECT 1", database="nowhere"))
try:
    db.sql("SELECT $1", [object()])
    raise AssertionError("an object is no parameter")
except TypeError as error:
    assert "parameter" in str(error)

# A connection is a session: what a statement sets holds for what follows.
db.sql("CREATE SCHEMA sales")
db.sql("USE sales")
db.sql("CREATE TABLE orders AS SELECT 7 AS id")
assert db.sql("SHOW schema").fetchall() == [("sales",)]
assert db.kql("orders | count").fetchall() == [(1,)]
assert db.ingest("more", pyarrow.table({"id": [8]})) == 1
assert db.import_files(folder / "flights.csv", "flown")["database"] == "sales"
assert db.sql("SELECT id FROM sales.more").fetchall() == [(8,)]
assert db.sql("SELECT count(*) FROM flights", database="default").fetchall() == [(3,)]
refused("table_not_found", lambda: db.sql("SELECT * FROM flights"))
db.sql("PREPARE increased AS SELECT $1 + 1 AS n")
assert db.sql("EXECUTE increased(1)").fetchall() == [(2,)]
db.sql("USE default")
assert db.sql("SELECT count(*) FROM flights").fetchall() == [(3,)]

# KQL, search, and writing.
assert db.kql("flights | summarize n = count() by carrier | top 1 by n").fetchall() == [("UA", 2)]
spans = db.kql("print a = 90s, b = -1.5h, c = timespan(null)").fetchall()
assert spans == [(datetime.timedelta(seconds=90), datetime.timedelta(hours=-1.5), None)], spans
assert [hit["table"] for hit in db.search("flights")][:1] == ["flights"]
db.sql("CREATE TABLE notes (id BIGINT, note VARCHAR)")
assert db.sql("INSERT INTO notes VALUES (1, 'a'), (2, 'b')").fetchall() == [(2,)]

# Rows out, by Arrow's capsules and by the methods.
result = db.sql("SELECT * FROM flights ORDER BY tailnum")
assert result.columns == ["carrier", "tailnum", "delay"] and "(3 rows)" in repr(result)
assert repr(db.sql("CREATE SCHEMA IF NOT EXISTS sales")) == "done"
lists = pyarrow.map_(pyarrow.list_(pyarrow.int64()), pyarrow.string())
db.register("keyed", pyarrow.table({"m": pyarrow.array([[([1, 2], "a")]], lists)}))
assert db.sql("SELECT m FROM keyed").fetchall() == [({"[1, 2]": "a"},)]
# Dates that DuckDB has beyond all days.
db.register("endless", duckdb.sql("SELECT DATE 'infinity' AS d, TIMESTAMP '-infinity' AS t"))
assert db.sql("SELECT d, t FROM endless").fetchall() == [("infinity", "-infinity")]
assert "| infinity | -infinity |" in repr(db.sql("SELECT d, t FROM endless"))
null_and_empty = repr(db.sql("SELECT NULL AS none, '' AS t"))
assert "| NULL |   |" in null_and_empty, null_and_empty
assert pyarrow.table(result).num_rows == 3 and len(result.to_pandas()) == 3
assert result.to_polars()["carrier"].to_list() == ["UA", "UA", "AA"]
assert duckdb.sql("SELECT sum(delay) FROM result").fetchall() == [(1,)]
streamed = db.sql("SELECT * FROM generate_series(1, 300000) AS t(i)")
reader = pyarrow.RecordBatchReader.from_stream(streamed)
total = sum(batch.num_rows for batch in reader)
assert total == 300_000, total
refused("rows_already_read", streamed.fetchall)
assert streamed._repr_html_().startswith("<p>"), "a notebook shows that they were read"
many = db.sql("SELECT value FROM generate_series(1, 1000) AS s(value)")._repr_html_()
assert many.count("<tr>") == 51 and "1000 rows, 50 of them shown" in many, many[-100:]
# Why rows could not be read is said as often as they are asked for.
failing = db.sql("SELECT 10 / (500 - value) AS q FROM generate_series(1, 1000) AS s(value)")
for read in [failing.fetchall, failing.collect, lambda: pyarrow.table(failing)]:
    assert "zero" in refused("invalid_value", read)
(folder / "odd.csv").write_text('"a,b",c=d\n007,1\n')
db.import_files(folder / "odd.csv", types={"a,b": "BIGINT", "c=d": "VARCHAR"})
assert db.sql("SELECT * FROM odd").fetchall() == [(7, "1")]
assert "read" in repr(streamed)

# Rows in: tables of this connection, and of the folder.
frames = {
    "of_pandas": pandas.DataFrame({"k": ["UA", "AA"], "name": ["United", "American"]}),
    "of_polars": polars.DataFrame({"k": ["UA", "AA"], "name": ["United", "American"]}),
    "of_pyarrow": pyarrow.table({"k": ["UA", "AA"], "name": ["United", "American"]}),
    "of_a_batch": pyarrow.record_batch({"k": ["UA", "AA"], "name": ["United", "American"]}),
    "of_duckdb": duckdb.sql("SELECT * FROM (VALUES ('UA', 'United'), ('AA', 'American')) t(k, name)"),
    "of_querent": db.sql("SELECT * FROM (VALUES ('UA', 'United'), ('AA', 'American')) t(k, name)"),
}
for name, frame in frames.items():
    assert db.register(name, frame) == 2, name
    joined = f"SELECT name FROM flights f JOIN {name} ON k = carrier WHERE tailnum = 'N3'"
    assert db.sql(joined).fetchall() == [("American",)], name
    joined = f"flights | where tailnum == 'N3' | join kind=inner ({name}) on $left.carrier == $right.k | project name"
    assert db.kql(joined).fetchall() == [("American",)], name
assert db.register("of_pandas", frames["of_pandas"].iloc[:1]) == 1, "registered again, it is another table"
assert db.unregister("of_pandas") and not db.unregister("of_pandas")
refused("table_not_found", lambda: db.sql("SELECT * FROM of_pandas"))
# They come before tables of the folder, in both languages.
db.register("flights", pyarrow.table({"carrier": ["B6"]}))
assert db.sql("SELECT carrier FROM flights").fetchall() == db.kql("flights").fetchall() == [("B6",)]
assert db.kql("union fl* | count").fetchall() == [(1,)]
assert db.kql("database('default').flights | count").fetchall() == [(3,)]
assert db.unregister("flights") and db.kql("flights | count").fetchall() == [(3,)]


def batches():
    for start in range(5):
        yield pyarrow.record_batch({"i": [start]})


lazy = pyarrow.RecordBatchReader.from_batches(pyarrow.schema([("i", pyarrow.int64())]), batches())
assert db.ingest("numbers", lazy) == 5
refused("already_exists", lambda: db.ingest("numbers", pyarrow.table({"i": [1]})))
assert db.ingest("numbers", pyarrow.table({"I": [9]}), mode="append") == 1
assert db.sql("SELECT sum(i) FROM numbers").fetchall() == [(19,)]


def broken():
    yield pyarrow.record_batch({"i": [1]})
    raise ValueError("no more")


bad = pyarrow.RecordBatchReader.from_batches(pyarrow.schema([("i", pyarrow.int64())]), broken())
assert "no more" in refused("bad_data", lambda: db.ingest("partial", bad))
refused("table_not_found", lambda: db.sql("SELECT * FROM partial"))
try:
    db.register("nothing", {"a": [1]})
    raise AssertionError("a dict is no table")
except TypeError as error:
    assert "__arrow_c_stream__" in str(error)

# Columns of nulls, in polars with a buffer of their own, also within others; rows that are null as a whole.
nothing = polars.DataFrame({"n": [None, None], "l": [[], []], "s": [{"a": None, "b": 1}, None]})
assert db.register("nothing", nothing) == 2
assert db.sql("SELECT * FROM nothing").fetchall() == [(None, [], {"a": None, "b": 1}), (None, [], None)]
absent = pyarrow.array([{"a": 1, "t": "x"}, None, {"a": 3, "t": "z"}])
assert db.register("absent", absent) == 3
assert (None, "absent", "LOCAL TEMPORARY") in db.sql("SHOW TABLES LIKE 'abs%'").fetchall()
assert db.sql("SELECT * FROM absent").fetchall() == [(1, "x"), (None, None), (3, "z")]
assert db.register("absent", absent.slice(1)) == 2
assert db.sql("SELECT * FROM absent").fetchall() == [(None, None), (3, "z")]
# A column by itself has no name, an object of Python no value.
for single, word in [
    (polars.Series("s", [1]), "one column"),
    (pandas.Series([1], name="s"), "one column"),
    (pyarrow.array([1]), "one column"),
    (pyarrow.chunked_array([[1]]), "one column"),
    (polars.DataFrame({"u": [uuid.uuid4()]}), "column 'u'"),
]:
    try:
        db.register("single", single)
        raise AssertionError(f"{type(single)} is no table")
    except TypeError as error:
        assert word in str(error), error
wide = refused("unsupported_type", lambda: db.register("wide", polars.DataFrame({"w": polars.Series([1], dtype=polars.Int128)})))
assert "column `w`" in wide, wide
try:
    db.sql("SELECT INTERVAL '1 month' AS i").to_polars()
    raise AssertionError("polars has intervals now")
except TypeError as error:
    assert "CAST" in str(error), error

# A job in the background inherits that Ctrl-C is ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Other threads run while a statement does, and Ctrl-C ends it.
slow = "SELECT count(*) FROM generate_series(1, 4000000) a(x), generate_series(1, 4000000) b(y) WHERE x * y % 7 = 3"
ticks = []
ticking = threading.Event()


def tick():
    while not ticking.is_set():
        ticks.append(time.monotonic())
        time.sleep(0.02)


ticker = threading.Thread(target=tick)
ticker.start()
threading.Timer(0.7, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
begun = time.monotonic()
try:
    db.sql(slow).fetchall()
    raise AssertionError("the slow statement ended by itself")
except KeyboardInterrupt:
    took = time.monotonic() - begun
finally:
    ticking.set()
    ticker.join()
assert took < 5, took
assert len(ticks) >= 10, f"other threads waited: {len(ticks)}"
assert db.sql("SELECT 1").fetchall() == [(1,)], "a statement was ended, not the connection"

# Threads that read the same rows wait for the one that reads them.
shared = db.sql("SELECT count(*) AS n FROM generate_series(1, 2000) a(x), generate_series(1, 2000) b(y) WHERE x * y % 7 = 3")
read = []
readers = [threading.Thread(target=lambda: read.append(shared.fetchall())) for _ in range(3)]
for reader in readers:
    reader.start()
for reader in readers:
    reader.join()
assert len(read) == 3 and read[0] == read[1] == read[2], read

# The agent.
events = []


def note(name, data):
    """Statements may be run while a question is answered, and folders opened and left."""
    events.append((name, db.sql("SELECT 1").fetchall()))
    if name == "run_started":
        querent.open(settings={"embed.provider": "none"}).sql("SELECT 1").fetchall()


answer = db.ask("How many flights?", on_event=note)
assert all(rows == [(1,)] for _, rows in events), events
events = [name for name, _ in events]
assert answer.text == "There are **3** flights." and str(answer) == answer.text, answer
assert answer.sql == "SELECT count(*) AS n FROM flights", answer
assert answer.rows.fetchall() == [(3,)]
assert events[0] == "run_started" and events[-1] == "run_finished" and "tool_result" in events, events


def stop(name, data):
    raise RuntimeError("enough")


try:
    db.ask("How many flights?", on_event=stop)
    raise AssertionError("a failing callback is not hidden")
except RuntimeError as error:
    assert str(error) == "enough"

# The folder is one process's; closing gives it back.
refused("data_folder_in_use", lambda: querent.open(folder / "data"))
db.close()
db.close()
refused("closed", lambda: db.sql("SELECT 1"))
with querent.open(folder / "data", settings={"embed.provider": "none"}) as again:
    assert again.sql("SELECT count(*) FROM notes").fetchall() == [(2,)]
refused("config_error", lambda: querent.open(folder / "data", settings={"no.such": 1}))

# The command line is in the package.
command = [sys.executable, "-m", "querent"]
environment = {**os.environ, "QUERENT_EMBED_PROVIDER": "none"}
shown = subprocess.run([*command, "--version"], env=environment, capture_output=True, text=True, check=True)
assert shown.stdout.split() == ["querent", querent.__version__], shown.stdout
query = ["sql", "--data", str(folder / "data"), "--output", "csv", "SELECT count(*) AS n FROM notes"]
shown = subprocess.run([*command, *query], env=environment, capture_output=True, text=True, check=True)
assert shown.stdout.splitlines() == ["n", "2"], shown
wrong = subprocess.run([*command, "sql", "--data", str(folder / "data"), "SELEC"], env=environment, capture_output=True, text=True)
assert wrong.returncode == 1 and "error" in wrong.stderr, wrong
wrong = subprocess.run([*command, "serv"], env=environment, capture_output=True, text=True)
assert wrong.returncode == 2 and "did you mean `serve`" in wrong.stderr, wrong
print("ok")
