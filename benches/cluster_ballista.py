"""Times Apache Ballista on the queries of a folder, over the Parquet files of another, and prints JSON.

usage: cluster_ballista.py QUERIES DATA ROUNDS THREADS

A scheduler and two executors of THREADS tasks each are processes of this machine; DataFusion alone, of the version that they have,
has THREADS partitions in this one. Every query runs in turn on both, and its rows are compared every time. The first of ROUNDS + 1
rounds is the cold one. Needs `pip install ballista==54.1.0`, whose wheels are for glibc 2.39 and later.
"""

import json
import math
import multiprocessing
import pathlib
import socket
import sys
import time

START_SECONDS = 60


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def other_address():
    """An address of this machine that is not the loopback's. Each executor has a port that Python cannot set: two need two addresses."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return probe.getsockname()[0]


def be_scheduler(port):
    from ballista import BallistaScheduler

    scheduler = BallistaScheduler("0.0.0.0", port)
    scheduler.start()
    scheduler.wait_for_termination()


def be_executor(address, port, scheduler_port, tasks):
    from ballista import BallistaExecutor

    executor = BallistaExecutor(port, address, address, scheduler_port, tasks)
    executor.start()
    executor.wait_for_termination()


def wait_for(address, port):
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            socket.create_connection((address, port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    sys.exit(f"nothing listens on {address}:{port}")


def alone(threads):
    from datafusion import SessionConfig, SessionContext

    return SessionContext(SessionConfig().with_target_partitions(threads))


def distributed(port, threads):
    from ballista import BallistaSessionContext

    partitions = {"datafusion.execution.target_partitions": str(2 * threads)}
    return BallistaSessionContext(f"df://127.0.0.1:{port}", cluster_config=partitions)


def rows(context, text):
    """Milliseconds, and the rows in an order of their own, since queries order them by some of their columns only."""
    started = time.monotonic()
    batches = context.sql(text).collect()
    taken = (time.monotonic() - started) * 1e3
    found = [row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns))]
    return taken, sorted(found, key=lambda row: [str(value) for value in row if not isinstance(value, float)])


def is_same(found, expected):
    """Whether two values are equal; doubles but for the order of their sums."""
    if isinstance(found, float) and isinstance(expected, float):
        return math.isclose(found, expected, rel_tol=1e-6)
    return found == expected


def first_difference(found, expected):
    if len(found) != len(expected):
        return f"{len(found)} rows, not {len(expected)}"
    for ours, theirs in zip(found, expected):
        if not all(map(is_same, ours, theirs)):
            return f"{ours} is not {theirs}"
    return None


def main():
    queries, data, rounds, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    processes = multiprocessing.get_context("fork")
    scheduler = free_port()
    started = [processes.Process(target=be_scheduler, args=(scheduler,), daemon=True)]
    started[0].start()
    wait_for("127.0.0.1", scheduler)
    for address in ["127.0.0.1", other_address()]:
        port = free_port()
        started.append(processes.Process(target=be_executor, args=(address, port, scheduler, threads), daemon=True))
        started[-1].start()
        wait_for(address, port)
    contexts = {"datafusion": alone(threads), "ballista": distributed(scheduler, threads)}
    for context in contexts.values():
        for file in sorted(pathlib.Path(data).glob("*.parquet")):
            context.register_parquet(file.stem, str(file))
    texts = [(file.stem, file.read_text()) for file in sorted(pathlib.Path(queries).glob("*.sql"))]
    times = {name: [] for name in contexts}
    for _ in range(rounds + 1):
        for taken in times.values():
            taken.append([])
        for query, text in texts:
            found = {name: rows(context, text) for name, context in contexts.items()}
            for name, (taken, _) in found.items():
                times[name][-1].append(taken)
            difference = first_difference(found["ballista"][1], found["datafusion"][1])
            if difference:
                sys.exit(f"{query}: {difference}")
    json.dump({"queries": [query for query, _ in texts], **times}, sys.stdout)


if __name__ == "__main__":
    main()
