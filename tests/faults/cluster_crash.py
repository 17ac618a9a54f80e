"""Kills a worker in the middle of queries, over and over, and looks what its coordinator answers.

A coordinator, two workers, and a server alone with the same tables. While a query runs that both workers do a part of, one of them is
killed, or stops without a word (one time in five). The answer has to be the rows of the server alone, or one error `worker_lost`,
soon after the loss. Then nothing of the query is left anywhere, neither tasks nor files, and the worker comes back at its address
and is used again.

usage: cluster_crash.py [--kills 100] [--seed 1] [--rows 20000]
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time

from server import READER, Gone, Server

#: How long an answer may take after a worker was lost, beyond what the server alone needs: it is noticed within 6 s.
LOSS_TIME = 10
#: How long the coordinator may take to use a worker again that is there.
RETURN_TIME = 60
#: What the model says, which nobody asks.
NO_QUESTIONS = {"runs": []}
KEY = "the key of a cluster that is killed"
ROWS = 20_000

TABLE = (
    "SELECT 1 + i * 17 % 15000 AS l_orderkey, i % 2000 AS l_partkey, 1 + i % 100 AS l_suppkey, "
    "CASE i % 3 WHEN 0 THEN 'R' WHEN 1 THEN 'A' ELSE 'N' END AS l_returnflag, 'line ' || i AS l_comment "
    "FROM generate_series({first}, {last}) t(i)"
)
#: Queries of which both workers do a part: one row after much work, groups, and rows that come while they are made.
QUERIES = {
    "a join": "SELECT count(*) AS n FROM lines a JOIN lines b ON a.l_suppkey = b.l_suppkey AND a.l_partkey <> b.l_orderkey",
    "groups": "SELECT a.l_returnflag, count(*) AS n, sum(b.l_partkey) AS s FROM lines a JOIN lines b "
              "ON a.l_suppkey = b.l_suppkey WHERE a.l_partkey < 300 GROUP BY a.l_returnflag ORDER BY 1",
    "many rows": "SELECT a.l_orderkey, b.l_partkey, a.l_comment FROM lines a JOIN lines b ON a.l_suppkey = b.l_suppkey "
                 "WHERE a.l_partkey < 20",
}


class Worker(Server):
    """A worker that comes back where it was."""

    #: Addresses that no other program of this machine takes ports of.
    HOSTS = iter(range(71, 250))

    def __init__(self, folder, log):
        super().__init__(folder, NO_QUESTIONS, log, {"QUERENT_CLUSTER_ROLE": "worker", "QUERENT_CLUSTER_KEY": KEY})
        self.place = f"127.0.0.{next(self.HOSTS)}:0"

    def command(self, arguments):
        place = self.address or self.place
        return [place if argument == "127.0.0.1:0" else argument for argument in arguments]

    def tasks(self):
        """How many tasks it has."""
        status, text = self.request("GET", "/ready", timeout=10)
        assert status == 200, text
        return json.loads(text)["tasks"]


def spilled(server):
    """The files that queries of a server have on its disk."""
    return [file for file in (server.folder / "spill").rglob("*") if file.is_file()]


class ClusterCrasher:
    def __init__(self, folder, seed, rows=ROWS):
        self.rows = rows
        self.random = random.Random(seed)
        self.workers = [Worker(folder / f"worker-{number}", folder / f"worker-{number}.log") for number in (1, 2)]
        self.folder = folder
        self.alone = Server(folder / "alone", NO_QUESTIONS, folder / "alone.log")
        self.coordinator = None
        self.expected, self.alone_time, self.cluster_time = {}, {}, {}
        self.outcomes, self.waits, self.faults = {}, [], []

    def prepare(self):
        for worker in self.workers:
            worker.start()
        settings = {
            "QUERENT_CLUSTER_WORKERS": ",".join(f"http://{worker.address}" for worker in self.workers),
            "QUERENT_CLUSTER_KEY": KEY,
            "QUERENT_CLUSTER_MIN_SCAN_BYTES": "1",
        }
        self.coordinator = Server(self.folder / "coordinator", NO_QUESTIONS, self.folder / "coordinator.log", settings)
        for server in (self.alone, self.coordinator):
            server.start()
            for part in range(3):
                make = "CREATE TABLE lines AS" if part == 0 else "INSERT INTO lines"
                server.sql(f"{make} {TABLE.format(first=part * self.rows + 1, last=(part + 1) * self.rows)}")
        self.wait_for_workers()
        for what, sql in QUERIES.items():
            _, self.expected[what] = self.answer(self.alone, sql)
            for server, times in ((self.alone, self.alone_time), (self.coordinator, self.cluster_time)):
                # The first time is longer than those that follow.
                self.answer(server, sql)
                began = time.monotonic()
                self.answer(server, sql)
                times[what] = time.monotonic() - began

    def answer(self, server, sql):
        """The code of the error with which a query ended, or its rows without their order."""
        limit = LOSS_TIME * 10
        status, text = server.request("POST", "/v1/query", {"sql": sql}, READER, timeout=limit)
        lines = text.splitlines()
        last = json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}
        if isinstance(last.get("error"), dict):
            return last["error"]["code"], None
        assert status == 200, f"{status} without an error: {text[:500]}"
        return None, sorted(lines)

    def explained(self):
        return json.dumps(self.coordinator.sql(f"EXPLAIN {QUERIES['groups']}", READER))

    def wait_for_workers(self):
        deadline = time.monotonic() + RETURN_TIME
        while "runs on 2 workers" not in (explained := self.explained()):
            assert time.monotonic() < deadline, f"the workers are not used again: {explained[-500:]}"
            time.sleep(0.25)

    def lose(self, number, kill):
        what, sql = self.random.choice(list(QUERIES.items()))
        worker = self.workers[number % 2]
        answers = []

        def ask():
            try:
                answers.append(self.answer(self.coordinator, sql))
            except (Gone, AssertionError, ValueError) as fault:
                answers.append((f"{type(fault).__name__}: {fault}", None))

        asked = threading.Thread(target=ask)
        asked.start()
        # Somewhere in the query, and now and then behind it.
        time.sleep(self.random.uniform(0, 1.1 * self.cluster_time[what]))
        was_over = bool(answers)
        worker.process.send_signal(signal.SIGKILL if kill else signal.SIGSTOP)
        lost = time.monotonic()
        most = LOSS_TIME + 2 * self.alone_time[what]
        asked.join(timeout=LOSS_TIME * 10)
        took = time.monotonic() - lost
        worker.kill()
        if not answers:
            return self.faults.append(f"{number}: {what}: no answer")
        (code, rows), outcome = answers[0], "rows"
        if code is None and rows != self.expected[what]:
            outcome = "wrong rows"
            self.faults.append(f"{number}: {what}: {len(rows)} rows, not those of one server")
        elif code is not None:
            outcome = code
            if code != "worker_lost":
                self.faults.append(f"{number}: {what}: {code}")
        if took > most:
            # On a machine that has other work by now, the server alone takes longer, too.
            began = time.monotonic()
            self.answer(self.alone, sql)
            most = max(most, LOSS_TIME + 2 * (time.monotonic() - began))
        if took > most:
            self.faults.append(f"{number}: {what}: {outcome} came {took:.1f} s after the loss, more than {most:.1f} s")
        key = ("killed" if kill else "stopped", f"{outcome}, before the loss" if was_over else outcome)
        self.outcomes[key] = self.outcomes.get(key, 0) + 1
        self.waits.append(took)
        other = self.workers[(number + 1) % 2]
        deadline = time.monotonic() + LOSS_TIME
        while other.tasks() > 0:
            if time.monotonic() > deadline:
                return self.faults.append(f"{number}: {what}: {other.tasks()} tasks are left on the other worker")
            time.sleep(0.05)
        while files := spilled(self.coordinator) + spilled(other):
            if time.monotonic() > deadline:
                return self.faults.append(f"{number}: {what}: {len(files)} files are left, such as {files[0]}")
            time.sleep(0.05)

    def run(self, kills):
        self.prepare()
        samples = []
        for number in range(kills):
            self.lose(number, kill=self.random.random() >= 0.2)
            self.workers[number % 2].start()
            self.wait_for_workers()
            samples.append(self.coordinator.sample())
        running = self.coordinator.sql("SELECT statement FROM system.queries WHERE statement NOT LIKE '%system.queries%'")
        if running:
            self.faults.append(f"queries are left: {running}")
        first, last = samples[len(samples) // 4], samples[-1]
        if last["open_files"] > first["open_files"] + 8:
            self.faults.append(f"open files: {first['open_files']}, at the end {last['open_files']}")
        for (loss, outcome), count in sorted(self.outcomes.items()):
            print(f"{count} {loss}: {outcome}")
        print(f"{kills} losses; the answer came after {statistics.median(self.waits):.1f} s in the middle, {max(self.waits):.1f} s at most")
        print(f"the coordinator: {first['resident_mib']:.0f} MiB, {first['open_files']} open files after a quarter; "
              f"{last['resident_mib']:.0f} MiB, {last['open_files']} at the end")
        for fault in self.faults:
            print(f"FAULT {fault}")
        print(f"{len(self.faults)} faults")

    def stop(self):
        for server in [*self.workers, self.alone, self.coordinator]:
            if server and server.process and server.is_running():
                server.kill()


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--kills", type=int, default=100)
    options.add_argument("--seed", type=int, default=int(os.environ.get("CRASH_SEED", "1")))
    options.add_argument("--rows", type=int, default=ROWS, help="a third of the rows of the table that is joined with itself")
    chosen = options.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="querent-cluster-crash-"))
    crasher = ClusterCrasher(folder, chosen.seed, chosen.rows)
    whole = False
    try:
        crasher.run(chosen.kills)
        whole = not crasher.faults
    finally:
        crasher.stop()
        if whole:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            print(f"seed {chosen.seed}; the folder is {folder}")
    sys.exit(0 if whole else 1)


if __name__ == "__main__":
    main()
