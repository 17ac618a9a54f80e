"""Measures a server beyond its bounds, each bar a command of its own.

overload   goodput at ten times what the server can do, against its peak; listings meanwhile
neighbour  a point query of one caller while another has the server full
drops      how long the processor works on after a client has gone
budget     how far runs outlast their time, as their last event says, and whether their streams end with their last event

usage: bars.py overload|neighbour|drops|budget|all [--seconds 15] [--times 100]
"""

import argparse
import asyncio
import http.client
import json
import math
import os
import pathlib
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time

from server import READER, WRITER, Server

#: What is asked under load: some work, and a small answer.
WORK = "SELECT count(*) AS n, sum(v) AS s FROM facts WHERE id % 7 = 3"
POINT = "SELECT v FROM facts WHERE id = 4711"
FACTS = "CREATE TABLE facts AS SELECT value AS id, value % 997 AS v FROM generate_series(1, 200000) AS s(value)"
#: Statements without an end, each of another kind of loop.
ENDLESS = [
    "SELECT count(*) FROM generate_series(1, 1000000) a JOIN generate_series(1, 1000000) b ON a.value + b.value < 0",
    "SELECT count(*) FROM generate_series(1, 100000000) a(x), generate_series(1, 100000) b(y)",
    "SELECT x % 1000, sum(sin(x)) FROM generate_series(1, 1000000000) a(x) GROUP BY 1",
    "SELECT x, row_number() OVER (ORDER BY sin(x)) FROM generate_series(1, 100000000) a(x) ORDER BY cos(x) LIMIT 5",
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n > 0) SELECT count(*) FROM r",
    "SELECT max(length(regexp_replace(repeat('ab', 10000), '(a|b)*c', 'x', 'g'))) FROM generate_series(1, 10000000) a(x)",
]


class Bars:
    def __init__(self, settings=None, script=None):
        self.folder = tempfile.TemporaryDirectory(prefix="querent-bars-")
        root = pathlib.Path(self.folder.name)
        quick = {"runs": [{"turns": [{"events": [{"text": "nothing"}]}], "repeat_last": True}]}
        self.server = Server(root / "data", script or quick, root / "server.log", settings)
        self.server.start()
        self.server.sql(FACTS)
        self.host, port = self.server.address.rsplit(":", 1)
        self.port = int(port)

    def close(self):
        self.server.kill()
        self.folder.cleanup()

    def head(self, path, body, token):
        return (
            f"POST {path} HTTP/1.1\r\nhost: {self.host}\r\nauthorization: Bearer {token}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n{body}"
        ).encode()


class Connection:
    """A connection that is kept, with little work for this side: it shares the machine with the server."""

    def __init__(self, bars):
        self.bars, self.reader, self.writer = bars, None, None

    async def ask(self, request):
        """Sends a request; returns the status of its answer, and reads all of that."""
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection(self.bars.host, self.bars.port)
        self.writer.write(request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        status = int(head[9:12])
        lowered = head.lower()
        at = lowered.find(b"content-length:")
        if at >= 0:
            await self.reader.readexactly(int(lowered[at + 15 : lowered.index(b"\r\n", at)]))
        else:
            while True:
                size = int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16)
                await self.reader.readexactly(size + 2)
                if size == 0:
                    break
        return status

    def close(self):
        if self.writer is not None:
            self.writer.close()


class Other:
    """A process that sends one request after the other, and says how long each took."""

    def __init__(self, bars, request, seconds):
        arguments = [sys.executable, __file__, "other", "--seconds", str(seconds)]
        self.process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdin.write(json.dumps([bars.host, bars.port, request.decode()]))
        self.process.stdin.close()

    def times(self, statuses):
        answered = json.load(self.process.stdout)
        self.process.wait()
        for status, _ in answered:
            statuses[f"other {status}"] = statuses.get(f"other {status}", 0) + 1
        return [took for _, took in answered]


def other(options):
    """What such a process does."""
    host, port, request = json.load(sys.stdin)
    connection, answered, end = http.client.HTTPConnection(host, port), [], time.monotonic() + options.seconds
    head, _, body = request.partition("\r\n\r\n")
    first, *fields = head.split("\r\n")
    method, path, _ = first.split()
    headers = dict(field.split(": ", 1) for field in fields)
    while time.monotonic() < end:
        start = time.monotonic()
        connection.request(method, path, body.encode() or None, headers)
        answer = connection.getresponse()
        answer.read()
        answered.append((answer.status, (time.monotonic() - start) * 1_000))
        time.sleep(0.02)
    json.dump(answered, sys.stdout)
    return True


def get(bars, path, token):
    return f"GET {path} HTTP/1.1\r\nhost: {bars.host}\r\nauthorization: Bearer {token}\r\n\r\n".encode()


def percentile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(part * len(ordered)) - 1)] if ordered else float("nan")


async def closed_loop(bars, clients, seconds):
    """Answers a second of clients that each wait for their answer."""
    request = bars.head("/v1/query", json.dumps({"sql": WORK}), READER)
    end, done = time.monotonic() + seconds, 0

    async def work():
        nonlocal done
        connection = Connection(bars)
        while time.monotonic() < end:
            done += await connection.ask(request) == 200
        connection.close()

    await asyncio.gather(*[work() for _ in range(clients)])
    return done / seconds


async def open_loop(bars, rate, seconds, connections):
    """Sends so many requests a second, whatever comes back, over kept connections. Returns answers and refusals a second, and
    the times of listings and of point queries of another caller, meanwhile."""
    request = bars.head("/v1/query", json.dumps({"sql": WORK}), READER)
    began = time.monotonic()
    end, statuses, late = began + seconds, {}, 0
    free = asyncio.Queue()
    for _ in range(connections):
        free.put_nowait(Connection(bars))
    tasks = set()

    async def one(connection):
        nonlocal late
        try:
            status = await connection.ask(request)
        except (OSError, asyncio.IncompleteReadError):
            connection.close()
            connection, status = Connection(bars), 0
        statuses[status] = statuses.get(status, 0) + 1
        late += status == 200 and time.monotonic() > end
        free.put_nowait(connection)

    # Each of the others is a process of its own, so that its times are not those of this one's many connections.
    others = [
        Other(bars, get(bars, "/v1/catalog/schema?limit=10", WRITER), seconds),
        Other(bars, bars.head("/v1/query", json.dumps({"sql": POINT}), WRITER), seconds),
    ]
    sent = 0
    while (now := time.monotonic()) < end:
        due = int((now - began) * rate) - sent
        for _ in range(due):
            sent += 1
            if free.empty():
                # More than there are connections for: the kernel's queue would hold them.
                continue
            task = asyncio.create_task(one(free.get_nowait()))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.sleep(0.002)
    await asyncio.wait(tasks, timeout=30) if tasks else None
    times, points = [await asyncio.to_thread(other.times, statuses) for other in others]
    return sent / seconds, (statuses.get(200, 0) - late) / seconds, statuses, times, points


def overload(options):
    bars = Bars()
    try:
        for _ in range(3):
            bars.server.sql(WORK)
        peaks = {}
        for clients in (1, 2, 4, 8):
            peaks[clients] = asyncio.run(closed_loop(bars, clients, options.seconds / 3))
        peak = max(peaks.values())
        print("peak: " + ", ".join(f"{count} clients {rate:.0f}/s" for count, rate in peaks.items()))
        quiet = asyncio.run(open_loop(bars, peak / 10, options.seconds / 3, 512))
        sent, good, statuses, times, points = asyncio.run(open_loop(bars, 10 * peak, options.seconds, 512))
        print(f"at a tenth of the peak: listings p99 {percentile(quiet[3], 0.99):.0f} ms, another's point query "
              f"p99 {percentile(quiet[4], 0.99):.0f} ms")
        print(f"at ten times the peak: {sent:.0f}/s sent, goodput {good:.0f}/s = {good / peak:.2f} of the peak (bar 0.9), {statuses}")
        print(f"listings meanwhile: p50 {percentile(times, 0.5):.0f} ms, p99 {percentile(times, 0.99):.0f} ms (bar 50)")
        print(f"another's point query meanwhile: p50 {percentile(points, 0.5):.0f} ms, p99 {percentile(points, 0.99):.0f} ms")
        return good / peak >= 0.9 and percentile(times, 0.99) <= 50
    finally:
        bars.close()


def neighbour(options):
    bars = Bars({"QUERENT_MAX_CONCURRENT_QUERIES": "16"})
    try:
        stopped = threading.Event()

        def fill():
            while not stopped.is_set():
                try:
                    bars.server.request("POST", "/v1/query", {"sql": random.choice(ENDLESS)}, READER, timeout=5)
                except Exception:  # noqa: BLE001, it is cut on purpose
                    pass

        threads = [threading.Thread(target=fill, daemon=True) for _ in range(24)]
        for thread in threads:
            thread.start()
        time.sleep(2)
        times = []
        for _ in range(options.times):
            start = time.monotonic()
            bars.server.sql(POINT, WRITER)
            times.append((time.monotonic() - start) * 1_000)
        stopped.set()
        print(f"a point query while another caller has 24 endless ones: p50 {percentile(times, 0.5):.0f} ms, "
              f"p99 {percentile(times, 0.99):.0f} ms (bar 100)")
        return percentile(times, 0.99) <= 100
    finally:
        bars.close()


def drops(options):
    script = {"runs": [{"turns": [{"events": [{"tool_call": {"name": "run_sql", "arguments": {"sql": ENDLESS[1]}}}]}],
                        "repeat_last": True}]}
    bars = Bars(script=script)
    # The processor time of the server, to the nanosecond.
    clock = ((~bars.server.process.pid) << 3) | 2

    def burnt(seconds):
        before, start = time.clock_gettime(clock), time.monotonic()
        time.sleep(seconds)
        return (time.clock_gettime(clock) - before) / (time.monotonic() - start)

    try:
        times = {}
        deadline = time.monotonic() + 600
        for number in range(options.times):
            kind = number % (len(ENDLESS) + 1)
            if kind < len(ENDLESS):
                path, body = "/v1/query", {"sql": ENDLESS[kind]}
            else:
                path, body = "/v1/agent/ask", {"question": "for ever"}
            stream = socket.create_connection((bars.host, bars.port))
            stream.sendall(bars.head(path, json.dumps(body), READER))
            wait = time.monotonic() + 20
            # Of a machine that others use, too, the server gets a part.
            while burnt(0.05) < 0.15:
                assert time.monotonic() < wait, f"{body} does not begin: {bars.server.tail()}"
            stream.close()
            start = time.monotonic()
            # Idle: less than a tenth of one core, ten milliseconds long.
            while burnt(0.01) > 0.1:
                assert time.monotonic() - start < 30, f"{body} works on after its client has gone"
            times.setdefault(body.get("sql", "ask")[:60], []).append((time.monotonic() - start) * 1_000 - 10)
            if time.monotonic() > deadline:
                break
        for what, measured in times.items():
            print(f"  {percentile(measured, 0.5):5.0f} ms p50 {max(measured):5.0f} ms most  {what}")
        measured = [value for values in times.values() for value in values]
        print(f"client gone to an idle processor: p50 {percentile(measured, 0.5):.0f} ms, p99 {percentile(measured, 0.99):.0f} ms "
              f"of {len(measured)} (bar 100)")
        return percentile(measured, 0.99) <= 100
    finally:
        bars.close()


def budget(options):
    runs = [{"when": "hang", "turns": [{"events": ["hang"]}]}]
    runs += [{"when": f"query {n}.", "turns": [{"events": [{"tool_call": {"name": "run_sql", "arguments": {"sql": sql}}}]}],
              "repeat_last": True} for n, sql in enumerate(ENDLESS)]
    runs.append({"when": "trickle", "turns": [{"events": [{"text": "a "}, {"delay_ms": 5}] * 20_000}]})
    runs.append({"turns": [{"events": [{"text": "x" * 4096}] * 1_000 + ["hang"]}], "repeat_last": True})
    seconds = 1.0
    bars = Bars({"QUERENT_AGENT_RUN_TIMEOUT": f"{seconds:.0f}s"}, {"runs": runs})
    questions = ["hang", "trickle", "flood"] + [f"query {n}." for n in range(len(ENDLESS))]
    try:
        over, read, ended, lock = [], [], 0, threading.Lock()

        def one(number):
            nonlocal ended
            start = time.monotonic()
            events = bars.server.ask(questions[number % len(questions)])
            took = time.monotonic() - start
            with lock:
                ended += events[-1][0] == "run_finished"
                over.append((events[-1][1]["elapsed_ms"] - seconds * 1_000, questions[number % len(questions)]))
                read.append((took - seconds) * 1_000)

        for first in range(0, options.times, 2):
            threads = [threading.Thread(target=one, args=[number]) for number in (first, first + 1)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        values = [value for value, _ in over]
        worst = max(over)
        print(f"runs beyond their {seconds:.0f} s: p50 {percentile(values, 0.5):.0f} ms, p99 {percentile(values, 0.99):.0f} ms "
              f"of {len(over)} (bar 250; the most {worst[0]:.0f} ms: {worst[1]}); {ended} of {len(over)} streams ended with run_finished")
        print(f"until their clients have read all: p50 {percentile(read, 0.5):.0f} ms, the most {max(read):.0f} ms, of an answer of 4 MB")
        return percentile(values, 0.99) <= 250 and ended == len(over)
    finally:
        bars.close()


BARS = {"overload": overload, "neighbour": neighbour, "drops": drops, "budget": budget}


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("bar", choices=[*BARS, "all", "other"])
    options.add_argument("--seconds", type=float, default=15)
    options.add_argument("--times", type=int, default=100)
    chosen = options.parse_args()
    if chosen.bar == "other":
        sys.exit(0 if other(chosen) else 1)
    print(f"{os.cpu_count()} cores; the client shares them with the server")
    held = {}
    for name, bar in BARS.items():
        if chosen.bar in (name, "all"):
            print(f"{name}:", flush=True)
            held[name] = bar(chosen)
    print(", ".join(f"{name}: {'held' if is_held else 'NOT HELD'}" for name, is_held in held.items()))
    sys.exit(0 if all(held.values()) else 1)


if __name__ == "__main__":
    main()
