"""Kills a server in the middle of everything, over and over, and looks what became of it.

Clients create tables, append, update, delete, merge, alter, import, replace, comment, grant, revoke, ask, approve, upload and
search at the same time, and write down what was acknowledged. Then the server is killed (SIGKILL), now and then while it starts,
and another one opens the folder. What was acknowledged must be there, what was not must be there whole or not at all, `check`
must find nothing wrong, no file may be left that no table has, and DuckDB must read the same rows.

usage: crash.py [--kills 500] [--seconds 1.0] [--seed 1]
"""

import argparse
import os
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time

import changes
import row_changes
from server import Gone, Refused, Server, files_below

#: The approvals' numbers that one start of the server knows.
APPROVALS_A_START = 400


def script(start):
    """What the model says: one row for each number that it is asked to insert, a count, and words for the rest."""
    runs = []
    for number in range(start, start + APPROVALS_A_START):
        row = {"name": "insert_rows", "arguments": {"table": "approved", "rows": [{"n": number}]}}
        runs.append({"when": f"insert {number}.", "turns": [{"events": [{"tool_call": row}]}, {"events": [{"text": "Done."}]}],
                     "repeat_last": True})
    count = {"name": "run_sql", "arguments": {"sql": "SELECT count(*) AS n FROM approved"}}
    runs.append({"turns": [{"events": [{"text": "I look. "}, {"tool_call": count}]},
                           {"events": [{"text": "There "}, {"delay_ms": 30}, {"text": "they are."}]}], "repeat_last": True})
    return {"runs": runs}


class Crasher:
    def __init__(self, folder, seed, seconds):
        self.random = random.Random(seed)
        self.seconds = seconds
        self.folder = folder / "data"
        self.log = folder / "server.log"
        self.approvals = 0
        self.kinds = [*changes.all_kinds(seed), row_changes.Changed(seed), row_changes.Revoked(seed)]
        self.kills = self.starts_killed = 0
        self.stopped = threading.Event()
        self.faults = []

    def server(self):
        server = Server(self.folder, script(self.approvals), self.log)
        server.numbers = iter(range(self.approvals, self.approvals + APPROVALS_A_START))
        self.approvals += APPROVALS_A_START
        return server

    def prepare(self):
        server = self.server().start()
        for kind in self.kinds:
            kind.prepare(server)
        return server

    def load(self, server):
        """Lets every client work until the server is gone."""

        def work(kind):
            while not self.stopped.is_set():
                try:
                    kind.change(server)
                except Gone:
                    return
                except Refused as refused:
                    # A server that is about to end may refuse; one that is not has to say why.
                    if server.is_running() and not kind.is_expected(refused):
                        self.faults.append(f"{kind.name}: {refused}")
                        return
                except Exception as error:  # noqa: BLE001, a fault of the client itself has to be seen
                    if not self.stopped.is_set() and server.is_running():
                        self.faults.append(f"{kind.name}: {error!r}")
                    return

        self.stopped.clear()
        threads = [threading.Thread(target=work, args=[kind], daemon=True) for kind in self.kinds]
        for thread in threads:
            thread.start()
        time.sleep(self.random.uniform(0.05, self.seconds))
        self.stopped.set()
        server.kill()
        for thread in threads:
            thread.join(timeout=120)
            assert not thread.is_alive(), "a client does not end"
        self.kills += 1

    def recover(self):
        """Starts a server on the folder; now and then the first of them is killed while it starts."""
        while self.random.random() < 0.15:
            server = self.server()
            server.spawn()
            time.sleep(self.random.uniform(0.0, 0.6))
            server.kill()
            self.kills += 1
            self.starts_killed += 1
        return self.server().start()

    def check(self, server):
        for kind in self.kinds:
            try:
                kind.check(server)
            except (AssertionError, Refused, Gone) as fault:
                self.faults.append(f"after kill {self.kills}, {kind.name}: {fault}")
        found = server.json("POST", "/v1/check?remove_orphans=true&grace_seconds=0", {}, timeout=300)
        if found["faults"]:
            self.faults.append(f"after kill {self.kills}, check: {found['faults'][:5]}")
        removed = found.get("removed", 0)
        left = server.json("POST", "/v1/check", {}, timeout=300)["orphans"]
        foreign = [name for name in files_below(self.folder / "data") if not name.endswith(".parquet")]
        spilled = files_below(self.folder / "spill") if (self.folder / "spill").exists() else []
        if left or foreign or spilled:
            self.faults.append(f"after kill {self.kills}, files are left: {(left, foreign, spilled)}"[:1_000])
        return removed

    def compare_with_duckdb(self, server):
        for kind in self.kinds:
            try:
                kind.compare(server, self.folder)
            except (AssertionError, Refused, Gone) as fault:
                self.faults.append(f"after kill {self.kills}, DuckDB, {kind.name}: {fault}")

    def run(self, kills):
        began, slowest, removed, reported = time.monotonic(), 0.0, 0, 0
        server = self.prepare()
        while self.kills < kills and len(self.faults) < 10:
            self.load(server)
            start = time.monotonic()
            server = self.recover()
            slowest = max(slowest, time.monotonic() - start)
            removed += self.check(server)
            if self.kills % 25 < 2:
                self.compare_with_duckdb(server)
            for fault in self.faults[reported:]:
                print(f"FAULT {fault}", flush=True)
            reported = len(self.faults)
            if self.kills % 10 == 0:
                print(f"{self.kills} kills, {self.acknowledged()} acknowledged, {time.monotonic() - began:.0f} s", flush=True)
        self.compare_with_duckdb(server)
        server.stop()
        # In order it ends clean: the next start has nothing to do.
        server = self.server().start()
        self.check(server)
        server.stop()
        for fault in self.faults[reported:]:
            print(f"FAULT {fault}", flush=True)
        for kind in self.kinds:
            print(f"  {kind.name:<16} {kind.acknowledged:>6} acknowledged  {kind.unknown:>5} cut off, of which {kind.survived} were there")
        print(
            f"{self.kills} kills ({self.starts_killed} while starting), {self.acknowledged()} acknowledged changes, "
            f"{len(self.faults)} faults, {removed} orphans removed, slowest recovery {slowest:.1f} s, "
            f"{time.monotonic() - began:.0f} s in all"
        )

    def acknowledged(self):
        return sum(kind.acknowledged for kind in self.kinds)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--kills", type=int, default=500)
    options.add_argument("--seconds", type=float, default=1.5, help="the longest time between two kills")
    options.add_argument("--seed", type=int, default=int(os.environ.get("CRASH_SEED", "1")))
    options.add_argument("--keep", action="store_true", help="keep the folder")
    chosen = options.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="querent-crash-"))
    crasher = Crasher(folder, chosen.seed, chosen.seconds)
    try:
        crasher.run(chosen.kills)
    finally:
        if crasher.faults or chosen.keep:
            print(f"seed {chosen.seed}; the folder is {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if crasher.faults else 0)


if __name__ == "__main__":
    main()
