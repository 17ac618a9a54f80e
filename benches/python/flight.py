"""The Flight clients of the cell `flight`, and pyarrow's own server.

    flight.py serve FOLDER                 serves FOLDER/*.arrow with pyarrow's C++ server; prints its port
    flight.py read ROUNDS NAME=URI=KIND:WHAT[:HEADER] ...
                                           reads each in turn, ROUNDS times; prints seconds and bytes by name as JSON
    flight.py slow URI SQL PAUSE_MS        reads a result with a pause after each message; prints its bytes
    flight.py ingest URI FILE ROUNDS       writes FILE's rows to a managed table by ADBC and to a DuckLake by DuckDB, in
                                           turn; prints seconds by name as JSON
    flight.py idle URI HTTP CURSORS TRIES  opens cursors that it does not read, then times new queries; prints JSON

KIND is `sql`, a statement over Flight SQL, `session`, all rows of a table copied into a temporary one first, or `ticket`,
a plain ticket.
"""

import json
import pathlib
import sys
import tempfile
import time
import urllib.request

import pyarrow as pa
import pyarrow.flight as flight

SQL = b"type.googleapis.com/arrow.flight.protocol.sql.CommandStatementQuery"


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out) + bytes([number])


def field(tag, value):
    return bytes([tag << 3 | 2]) + varint(len(value)) + value


def statement(client, sql, options):
    """The ticket of a statement."""
    command = field(1, SQL) + field(2, field(1, sql.encode()))
    info = client.get_flight_info(flight.FlightDescriptor.for_command(command), options)
    return info.endpoints[0].ticket


def ticket_and_options(client, kind, what, header):
    options = flight.FlightCallOptions(headers=[tuple(part.encode() for part in header.split("="))] if header else [])
    ticket = statement(client, what, options) if kind == "sql" else flight.Ticket(what.encode())
    return ticket, options


def serve(folder):
    tables = {}
    for path in pathlib.Path(folder).glob("*.arrow"):
        # In memory, as the other servers have it, and not in pages of the file.
        with pa.OSFile(str(path)) as file:
            tables[path.stem] = pa.ipc.open_file(file).read_all()

    class Server(flight.FlightServerBase):
        def do_get(self, context, ticket):
            return flight.RecordBatchStream(tables[ticket.ticket.decode()])

    server = Server("grpc://127.0.0.1:0")
    print(server.port, flush=True)
    server.serve()


def read(rounds, sources):
    clients, taken = {}, {}
    for source in sources:
        name, uri, what = source.split("=", 2)
        kind, what = what.split(":", 1)
        what, _, header = what.partition("|")
        client = flight.connect(uri)
        if kind == "session":
            ticket, options = ticket_and_options(client, "sql", f"CREATE TEMPORARY TABLE copied AS SELECT * FROM {what}", "")
            client.do_get(ticket, options).read_all()
            kind, what = "sql", "SELECT * FROM copied"
        clients[name] = (client, kind, what, header)
        taken[name] = {"seconds": [], "bytes": 0, "rows": 0, "messages": 0}
    for number in range(rounds + 1):
        for name, (client, kind, what, header) in clients.items():
            ticket, options = ticket_and_options(client, kind, what, header)
            size = rows = messages = 0
            started = time.perf_counter()
            reader = client.do_get(ticket, options)
            while True:
                try:
                    batch = reader.read_chunk().data
                except StopIteration:
                    break
                size += batch.nbytes
                rows += batch.num_rows
                messages += 1
            seconds = time.perf_counter() - started
            # The first round warms up.
            if number:
                taken[name]["seconds"].append(seconds)
            taken[name].update(bytes=size, rows=rows, messages=messages)
    print(json.dumps(taken))


def slow(uri, sql, pause_ms):
    client = flight.connect(uri)
    ticket, options = ticket_and_options(client, "sql", sql, "")
    size = 0
    for chunk in client.do_get(ticket, options):
        size += chunk.data.nbytes
        time.sleep(pause_ms / 1e3)
    print(json.dumps({"bytes": size}))


def ingest(uri, path, rounds):
    import adbc_driver_flightsql.dbapi as adbc
    import duckdb
    import duckdb_extension_ducklake
    import duckdb_extension_sqlite_scanner

    with pa.OSFile(path) as file:
        arriving = table = pa.ipc.open_file(file).read_all()
    lake = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for package in (duckdb_extension_sqlite_scanner, duckdb_extension_ducklake):
        (extension,) = pathlib.Path(package.__file__).parent.rglob("*.duckdb_extension")
        lake.execute(f"LOAD '{extension}'")
    seconds = {"ours": [], "duckdb": []}
    with tempfile.TemporaryDirectory() as folder, adbc.connect(uri, autocommit=True) as connection:
        lake.execute(f"ATTACH 'ducklake:sqlite:{folder}/lake.sqlite' AS lake (DATA_PATH '{folder}/data')")
        for number in range(rounds + 1):
            started = time.perf_counter()
            with connection.cursor() as cursor:
                cursor.adbc_ingest("ingested", table, mode="replace")
            ours = time.perf_counter() - started
            started = time.perf_counter()
            lake.execute("CREATE OR REPLACE TABLE lake.ingested AS SELECT * FROM arriving")
            theirs = time.perf_counter() - started
            # The first round warms up.
            if number:
                seconds["ours"].append(ours)
                seconds["duckdb"].append(theirs)
    print(json.dumps(seconds))


def idle(uri, http, cursors, tries):
    sql = "SELECT value, repeat('x', 1000) AS s FROM generate_series(1, 100000000) AS t(value)"
    held = []
    for _ in range(cursors):
        # A connection of its own for each.
        client = flight.connect(uri, generic_options=[("grpc.use_local_subchannel_pool", 1)])
        ticket, options = ticket_and_options(client, "sql", sql, "")
        reader = client.do_get(ticket, options)
        reader.read_chunk()
        held.append((client, reader))
    time.sleep(2)
    answers = {"flight": [], "http": []}
    client = flight.connect(uri, generic_options=[("grpc.use_local_subchannel_pool", 1)])
    for _ in range(tries):
        started = time.perf_counter()
        ticket, options = ticket_and_options(client, "sql", "SELECT 1", "")
        assert client.do_get(ticket, options).read_all().num_rows == 1
        answers["flight"].append((time.perf_counter() - started) * 1e3)
        started = time.perf_counter()
        with urllib.request.urlopen(urllib.request.Request(f"{http}/v1/query", data=b"SELECT 1")) as answer:
            assert answer.status == 200 and answer.read()
        answers["http"].append((time.perf_counter() - started) * 1e3)
    print(json.dumps(answers), flush=True)


def main():
    command, *arguments = sys.argv[1:]
    if command == "serve":
        serve(*arguments)
    elif command == "read":
        read(int(arguments[0]), arguments[1:])
    elif command == "ingest":
        ingest(arguments[0], arguments[1], int(arguments[2]))
    elif command == "slow":
        slow(arguments[0], arguments[1], float(arguments[2]))
    elif command == "idle":
        idle(arguments[0], arguments[1], int(arguments[2]), int(arguments[3]))
    else:
        sys.exit(__doc__)


main()
