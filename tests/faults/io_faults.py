"""Disks that are full or read-only, files that are torn or gone, connections that are cut in the middle: each error is clear, what
was acknowledged is there, nothing is left behind, and the service goes on.

The server runs in a mount namespace of its own, where its data folder is a small file system in memory. That needs root or user
namespaces (Linux); where there are none the disks' cases are left out, and the program says so.

usage: io_faults.py [--only disk,readonly,limit,torn,cuts]
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import psutil
import pyarrow as pa
import pyarrow.flight
import pyarrow.parquet

from server import ADMIN, Gone, Refused, Server, binary, files_below

QUIET = {"runs": [{"turns": [{"events": [{"text": "word "}] * 2_000}], "repeat_last": True}]}
#: What a user is told of an input or output that failed; `internal` is never one of them.
UNCLEAR = {"internal", ""}
FULL = "storage_full"
#: Texts that compress badly.
WORDS = "SELECT value AS id, md5(CAST(value AS VARCHAR)) || md5(CAST(value * 7 AS VARCHAR)) AS word FROM generate_series(1, {}) AS s(value)"


class Namespaced(Server):
    """A server whose data folder is a file system of its own, `megabytes` large."""

    def __init__(self, root, megabytes, settings=None):
        self.root = pathlib.Path(root)
        self.mount = self.root / "disk"
        self.mount.mkdir()
        super().__init__(self.mount / "data", QUIET, self.root / "server.log", settings)
        self.megabytes = megabytes

    def command(self, arguments):
        script = f"mount -t tmpfs -o size={self.megabytes}m disk {self.mount} && exec \"$@\""
        return ["unshare", "-rm", "sh", "-c", script, "sh", *arguments]

    @property
    def seen(self):
        """The file system from outside of the namespace."""
        return pathlib.Path(f"/proc/{self.process.pid}/root{self.mount}")

    def fill(self, left):
        """Fills it but for so many bytes."""
        space = os.statvfs(self.seen)
        ballast = max(0, space.f_bavail * space.f_frsize - left)
        # As much as fits: the server may write something meanwhile.
        with (self.seen / "ballast").open("wb", buffering=0) as file:
            file.write(b"x" * ballast)

    def free(self):
        (self.seen / "ballast").unlink()

    def remount(self, how):
        enter = ["nsenter", "-t", str(self.process.pid), "-U", "-m", "--preserve-credentials"]
        subprocess.run([*enter, "mount", "-o", f"remount,{how},size={self.megabytes}m", str(self.mount)], check=True)


class Limited(Server):
    """A server whose files may not grow beyond so many kilobytes."""

    kilobytes = 2_048

    def command(self, arguments):
        # The signal is ignored, so that the write fails instead.
        return ["bash", "-c", f"trap '' XFSZ; ulimit -f {self.kilobytes}; exec \"$@\"", "sh", *arguments]


class Faults:
    def __init__(self):
        self.found, self.checks = [], 0

    def expect(self, holds, what):
        self.checks += 1
        if not holds:
            self.found.append(what)
            print(f"FAULT {what}", flush=True)

    def refused(self, server, sql, what, code=None):
        """A statement that must fail, and say why, with a code where one is given."""
        try:
            rows = server.sql(sql)
        except Refused as error:
            self.expect(error.code not in UNCLEAR, f"{what}: the error says nothing: {error}")
            self.expect(code in (None, error.code), f"{what}: the code is not {code}: {error}")
            return error.code
        except Gone as error:
            self.expect(False, f"{what}: no answer ({error}); {'it runs' if server.is_running() else 'it ended'}: {server.tail()}")
            return ""
        self.expect(False, f"{what}: it succeeded: {rows}")
        return ""

    def answers(self, server, sql, rows, what):
        try:
            found = server.sql(sql)
        except (Refused, Gone) as error:
            found = str(error)
        self.expect(found == rows, f"{what}: {sql} gives {found} instead of {rows}")

    def whole(self, server, what):
        """What `querent check` says of the folder."""
        status, text = server.request("POST", "/v1/check", {})
        checked = json.loads(text)
        self.expect(status == 200 and not checked.get("faults") and not checked.get("orphans"), f"{what}: the check says {text[:600]}")


def full_disk(faults, root):
    server = Namespaced(root, 24, {"QUERENT_QUERY_POOL_MEMORY": "64MiB", "QUERENT_QUERY_MEMORY": "48MiB"}).start()
    try:
        server.sql(f"CREATE TABLE kept AS {WORDS.format(20_000)}")
        server.sql("CREATE TABLE points AS SELECT value AS id, [sin(value)::float, cos(value)::float]::float[2] AS place FROM generate_series(1, 3000) AS s(value)")
        counted = [[20_000]]
        before = files_below(server.seen / "data" / "data")
        faults.refused(server, f"CREATE TABLE big AS {WORDS.format(900_000)}", "a table that does not fit", FULL)
        faults.refused(server, f"INSERT INTO kept {WORDS.format(900_000)}", "rows that do not fit", FULL)
        faults.answers(server, "SELECT count(*) FROM kept", counted, "after writes that failed")
        faults.expect(files_below(server.seen / "data" / "data") == before, "writes that failed leave no file")
        faults.refused(server, f"SELECT sum(n * id) FROM (SELECT id, row_number() OVER (ORDER BY word || word || word) AS n FROM ({WORDS.format(600_000)}) AS w) AS q",
                       "a sort that spills more than fits", FULL)
        # The tasks of a query that failed end by themselves, and their files with them.
        spilled = lambda: [name for name in files_below(server.seen / "data") if "spill" in name]
        deadline = time.monotonic() + 20
        while spilled() and time.monotonic() < deadline:
            time.sleep(0.1)
        faults.expect(not spilled(), "spill files are removed")
        server.fill(0)
        for sql in ("INSERT INTO kept VALUES (1, 'one')", "CREATE TABLE small (id INT)", "COMMENT ON TABLE kept IS 'full'", "CREATE DATABASE other",
                    "DELETE FROM kept WHERE id < 10", "UPDATE kept SET word = 'none' WHERE id < 10", f"CREATE TABLE seven AS {WORDS.format(5_000)}", "CREATE INDEX by_place ON points USING vector (place)"):
            faults.refused(server, sql, "nothing left on the disk", FULL)
        faults.answers(server, "SELECT count(*) FROM kept", counted, "while the disk is full")
        status, text = server.request("POST", "/v1/import?table=sent&format=json", [{"a": 1}])
        faults.expect(status == 507, f"an import while the disk is full: {status} {text}")
        faults.expect(server.request("GET", "/v1/catalog/schema")[0] == 200, "listings go on while the disk is full")
        try:
            events = [name for name, _ in server.ask("how are you?", ADMIN)]
            faults.expect(events[-1] == "run_finished", f"a question while the disk is full ends with {events[-1:]}")
        except Refused as error:
            faults.expect("full" in error.text, f"a question while the disk is full: {error}")
        server.free()
        server.sql("INSERT INTO kept VALUES (1, 'one')")
        server.sql("CREATE TABLE small (id INT)")
        server.sql("CREATE INDEX by_place ON points USING vector (place)")
        faults.answers(server, "SELECT count(*) FROM kept", [[20_001]], "with space again")
        faults.whole(server, "after a full disk")
    finally:
        server.kill()


def read_only(faults, root):
    server = Namespaced(root, 24).start()
    try:
        server.sql(f"CREATE TABLE kept AS {WORDS.format(20_000)}")
        server.sql("SELECT count(*) FROM kept")
        # Files that are open for writing keep a file system from becoming read-only: it is bound over itself.
        enter = ["nsenter", "-t", str(server.process.pid), "-U", "-m", "--preserve-credentials"]
        bind = f"mount --bind {server.folder}/data {server.folder}/data && mount -o remount,ro,bind {server.folder}/data"
        subprocess.run([*enter, "sh", "-c", bind], check=True)
        for sql in (f"INSERT INTO kept {WORDS.format(20_000)}", f"CREATE TABLE other AS {WORDS.format(20_000)}"):
            faults.refused(server, sql, "a read-only folder")
        faults.answers(server, "SELECT count(*) FROM kept", [[20_000]], "in a read-only folder")
        subprocess.run([*enter, "umount", f"{server.folder}/data"], check=True)
        server.sql(f"INSERT INTO kept {WORDS.format(20_000)}")
        faults.answers(server, "SELECT count(*) FROM kept", [[40_000]], "when it can be written again")
        faults.whole(server, "after a read-only folder")
    finally:
        server.kill()


def file_limit(faults, root):
    server = Limited(pathlib.Path(root) / "data", QUIET, pathlib.Path(root) / "server.log")
    server.start()
    try:
        server.sql(f"CREATE TABLE kept AS {WORDS.format(10_000)}")
        faults.refused(server, f"CREATE TABLE big AS {WORDS.format(300_000)}", "a file beyond the limit")
        faults.answers(server, "SELECT count(*) FROM kept", [[10_000]], "after a file beyond the limit")
        # The catalog's log grows until it may not.
        code, done = "", 0
        for number in range(400):
            try:
                server.sql(f"COMMENT ON TABLE kept IS '{'long ' * 4_000}{number}'")
                done += 1
            except Refused as error:
                code = error.code
                break
        faults.expect(code not in UNCLEAR or done == 400, f"a catalog that may not grow says {code!r} after {done} changes")
        faults.answers(server, "SELECT count(*) FROM kept", [[10_000]], "after the catalog might not grow")
    finally:
        server.kill()
    again = Server(pathlib.Path(root) / "data", QUIET, pathlib.Path(root) / "again.log").start()
    try:
        faults.answers(again, "SELECT count(*) FROM kept", [[10_000]], "after a restart without the limit")
        faults.whole(again, "after a restart without the limit")
    finally:
        again.kill()


def torn(faults, root):
    root = pathlib.Path(root)
    server = Server(root / "data", QUIET, root / "server.log", {"QUERENT_QUERY_COLUMN_CACHE": "0"}).start()
    server.sql(f"CREATE TABLE kept AS {WORDS.format(20_000)}")
    server.sql(f"CREATE TABLE hurt AS {WORDS.format(20_000)}")
    server.sql(f"CREATE TABLE gone AS {WORDS.format(20_000)}")
    paths = {name: next((root / "data" / "data").rglob(f"{name}/*.parquet"), None) for name in ("hurt", "gone")}
    faults.expect(all(paths.values()), f"each table has a file below its name: {files_below(root / 'data' / 'data')}")
    try:
        if all(paths.values()):
            size = paths["hurt"].stat().st_size
            os.truncate(paths["hurt"], size // 2)
            paths["gone"].unlink()
            for name in ("hurt", "gone"):
                faults.refused(server, f"SELECT sum(length(word)) FROM {name}", f"a file that is {name}")
            faults.answers(server, "SELECT count(*), min(id) FROM kept", [[20_000, 1]], "beside files that are torn")
            status, text = server.request("POST", "/v1/check", {})
            faults.expect(all(path.name in text for path in paths.values()), f"the check names torn files: {status} {text[:600]}")
        server.stop()
    finally:
        if server.is_running():
            server.kill()
    # A page in the middle, and half a file.
    catalog, whole = root / "data" / "catalog.sqlite", root / "whole.sqlite"
    shutil.copy(catalog, whole)
    size = catalog.stat().st_size
    for name, damage in (("half of the catalog", lambda: os.truncate(catalog, size // 2)),
                         ("pages of the catalog", lambda: overwrite(catalog, 4_096, b"\xff" * 16_384)),
                         ("an empty catalog", lambda: os.truncate(catalog, 0))):
        shutil.copy(whole, catalog)
        damage()
        arguments = ["timeout", "--signal=INT", "20", binary(), "serve", "--listen", "127.0.0.1:0", "--data", str(root / "data")]
        started = subprocess.run(arguments, capture_output=True, text=True, env={**os.environ, "QUERENT_EMBED_PROVIDER": "none"})
        said = started.stderr.lower()
        faults.expect(started.returncode not in (0, 124, -signal.SIGABRT, -signal.SIGSEGV) and "panicked" not in said and "catalog" in said,
                      f"{name}: {started.returncode} {started.stderr[-400:]}")
        for beside in ("-wal", "-shm"):
            pathlib.Path(f"{catalog}{beside}").unlink(missing_ok=True)
    shutil.copy(whole, catalog)
    server.start()
    try:
        faults.answers(server, "SELECT count(*), min(id) FROM kept", [[20_000, 1]], "with its catalog again")
    finally:
        server.kill()


def overwrite(path, at, data):
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


class Cutter:
    """A proxy that passes so many bytes each way, and then resets both connections."""

    def __init__(self, server, upwards=None, downwards=None):
        host, port = server.address.rsplit(":", 1)
        self.to, self.limits = (host, int(port)), {"up": upwards, "down": downwards}
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            upstream = socket.create_connection(self.to)
            for way, source, sink in (("up", client, upstream), ("down", upstream, client)):
                threading.Thread(target=self.pump, args=(source, sink, self.limits[way]), daemon=True).start()

    def pump(self, source, sink, limit):
        passed = 0
        try:
            while data := source.recv(16_384):
                if limit is not None and passed + len(data) > limit:
                    sink.sendall(data[: limit - passed])
                    break
                passed += len(data)
                sink.sendall(data)
        except OSError:
            pass
        for one in (source, sink):
            try:
                # Without a goodbye: what is on the way is lost.
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()

    def close(self):
        self.listener.close()


def cut_connections(faults, root):
    root = pathlib.Path(root)
    server = Server(root / "data", QUIET, root / "server.log").start()
    try:
        server.sql(f"CREATE TABLE kept AS {WORDS.format(60_000)}")
        server.sql("CREATE TABLE target (id BIGINT, word VARCHAR)")
        table = pa.table({"id": range(40_000), "word": [f"word {at}" * 5 for at in range(40_000)]})
        csv = "id,word\n" + "".join(f"{at},word {at} {at * 7}\n" for at in range(40_000))
        pa.parquet.write_table(table, root / "rows.parquet")
        bodies = {"csv": csv.encode(), "parquet": (root / "rows.parquet").read_bytes(), "json": b"".join(b'{"id": %d}\n' % at for at in range(40_000))}
        server.ask("how are you?", ADMIN)
        before = files_below(root / "data" / "data")
        done = 0
        for part in (0.0, 0.3, 0.7, 0.999):
            for kind, body in bodies.items():
                proxy = Cutter(server, upwards=400 + int(len(body) * part))
                cut_request(server, proxy, "POST", f"/v1/import?table=made_{kind}&format={kind}", body)
                faults.refused(server, f"SELECT * FROM made_{kind}", f"an import of {kind} that was cut at {part:.0%}")
                proxy.close()
                done += 1
            flight_put(server, faults, table, part)
            flight_get(server, faults, part)
            for path, body in (("/v1/query", {"sql": "SELECT * FROM kept"}), ("/v1/agent/ask", {"question": "how are you?"})):
                proxy = Cutter(server, downwards=300 + int(60_000 * part))
                cut_request(server, proxy, "POST", path, json.dumps(body).encode(), {"content-type": "application/json"})
                proxy.close()
                done += 1
        faults.answers(server, "SELECT count(*) FROM target", [[0]], "after writes that were cut")
        faults.answers(server, "SELECT count(*) FROM kept", [[60_000]], "after reads that were cut")
        settle(faults, lambda: json.loads(server.request("GET", "/v1/queries")[1])["queries"] == [], "queries whose connection was cut end")
        runs = lambda: json.loads(server.request("GET", "/v1/agent/runs?limit=200")[1])["runs"]  # noqa: E731
        settle(faults, lambda: all(run["status"] != "running" for run in runs()), "runs whose connection was cut end")
        settle(faults, lambda: files_below(root / "data" / "data") == before, "files of writes that were cut are removed")
        # What clients keep for their next request is one each at most.
        held = lambda: [peer for peer in psutil.Process(server.process.pid).net_connections("tcp") if peer.status in ("ESTABLISHED", "CLOSE_WAIT")]  # noqa: E731
        settle(faults, lambda: len(held()) <= 4, "connections that were cut are closed")
        faults.whole(server, "after connections that were cut")
        print(f"  {done} requests cut")
    finally:
        server.kill()


def cut_request(server, proxy, method, path, body, headers=None):
    address, server.address = server.address, proxy.address
    try:
        server.request(method, path, body, headers=headers, timeout=20)
    except Gone:
        pass
    finally:
        server.address = address


def settle(faults, holds, what, seconds=30):
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.2)
    faults.expect(holds(), what)


def flight_client(address):
    client = pa.flight.FlightClient(f"grpc://{address}")
    options = pa.flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {ADMIN}".encode())], timeout=20)
    return client, options


def flight_put(server, faults, table, part):
    """Rows by ADBC's ingestion, cut on their way."""
    import adbc_driver_flightsql
    import adbc_driver_flightsql.dbapi

    proxy = Cutter(server, upwards=2_500 + int(1_500_000 * part))
    try:
        header = adbc_driver_flightsql.DatabaseOptions.AUTHORIZATION_HEADER.value
        with adbc_driver_flightsql.dbapi.connect(f"grpc://{proxy.address}", db_kwargs={header: f"Bearer {ADMIN}"}, autocommit=True) as connection:
            with connection.cursor() as cursor:
                cursor.adbc_ingest("target", table, mode="append")
        faults.expect(False, f"an ingestion that was cut at {part:.0%} is acknowledged")
    except Exception:  # noqa: BLE001, it is cut on purpose
        pass
    finally:
        proxy.close()


def flight_get(server, faults, part):
    import adbc_driver_flightsql
    import adbc_driver_flightsql.dbapi

    proxy = Cutter(server, downwards=2_000 + int(2_000_000 * part))
    try:
        header = adbc_driver_flightsql.DatabaseOptions.AUTHORIZATION_HEADER.value
        with adbc_driver_flightsql.dbapi.connect(f"grpc://{proxy.address}", db_kwargs={header: f"Bearer {ADMIN}"}, autocommit=True) as connection:
            with connection.cursor() as cursor:
                cursor.execute("SELECT k.id, k.word, k.word || 'x' AS more FROM kept AS k")
                rows = cursor.fetch_arrow_table().num_rows
        faults.expect(rows == 60_000, f"a result that was cut at {part:.0%} seems whole with {rows} rows")
    except Exception:  # noqa: BLE001, it is cut on purpose
        pass
    finally:
        proxy.close()


CASES = {"disk": full_disk, "readonly": read_only, "limit": file_limit, "torn": torn, "cuts": cut_connections}


def has_namespaces():
    tried = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "disk", "/mnt"], capture_output=True)
    return tried.returncode == 0


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--only", help="names of cases, with commas between")
    chosen = options.parse_args()
    names = chosen.only.split(",") if chosen.only else list(CASES)
    faults = Faults()
    if not has_namespaces():
        print("left out: disk and readonly, since this machine lets nobody mount a file system")
        names = [name for name in names if name not in ("disk", "readonly")]
    for name in names:
        print(f"{name}:", flush=True)
        with tempfile.TemporaryDirectory(prefix=f"querent-{name}-") as root:
            before, start = len(faults.found), time.monotonic()
            CASES[name](faults, root)
            print(f"  {len(faults.found) - before} faults, {time.monotonic() - start:.0f} s", flush=True)
    print(f"{faults.checks} checks, {len(faults.found)} faults")
    sys.exit(1 if faults.found else 0)


if __name__ == "__main__":
    main()
