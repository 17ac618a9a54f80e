"""Drives a program in a pseudo terminal: terminal.py COLUMNS LINES PROGRAM ARGUMENT...

Standard input is a JSON list of steps, each {"expect": TEXT, "send": KEYS}: what the terminal must show since the step
before, and what is typed then; before that "columns", where a step has them, become the terminal's width. Prints the whole output and the program's exit code as JSON. A step that is not met within
a minute ends the program with code -1.
"""

import fcntl
import json
import os
import pty
import select
import struct
import sys
import termios
import time

PATIENCE = 60


def main(columns, lines, *command):
    steps = json.load(sys.stdin)
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(command[0], command)
    resize(terminal, columns, lines)
    shown = bytearray()
    seen = 0

    def read(wait):
        ready, _, _ = select.select([terminal], [], [], wait)
        if not ready:
            return True
        try:
            data = os.read(terminal, 65536)
        except OSError:
            return False
        shown.extend(data)
        return bool(data)

    missed = None
    for step in steps:
        deadline = time.monotonic() + PATIENCE
        expected = step["expect"].encode()
        while (at := shown.find(expected, seen)) < 0:
            if time.monotonic() > deadline or not read(0.2):
                missed = step["expect"]
                break
        if missed is not None:
            break
        seen = at + len(expected)
        if step.get("columns"):
            resize(terminal, step["columns"], lines)
        if step.get("send"):
            os.write(terminal, step["send"].encode())
    deadline = time.monotonic() + PATIENCE
    while missed is None and time.monotonic() < deadline and read(0.2):
        pass
    if missed is not None or time.monotonic() >= deadline:
        os.kill(pid, 9)
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    print(json.dumps({"code": -1 if missed is not None else code, "missed": missed, "shown": shown.decode(errors="replace")}))


def resize(terminal, columns, lines):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", int(lines), int(columns), 0, 0))


main(*sys.argv[1:])
