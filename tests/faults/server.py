"""A server as a process of its own, for the programs of this folder: started, killed, asked over HTTP, and looked at from outside."""

import http.client
import json
import os
import pathlib
import select
import signal
import subprocess
import time
import urllib.parse

import psutil

ADMIN, WRITER, READER = "boss-token", "writer-token", "reader-token"
TOKENS = f"{ADMIN}:admin:boss,{WRITER}:write:wendy,{READER}:read:rita"
#: The longest that a server may take until it listens, in seconds.
START_TIME = 120


class Gone(Exception):
    """The server did not answer: nothing is known of what it was asked to do."""


def binary():
    """The program: QUERENT_BINARY, or that of a debug build."""
    target = os.environ.get("QUERENT_TARGET_DIR", os.path.expanduser("~/.cache/querent/target"))
    found = pathlib.Path(os.environ.get("QUERENT_BINARY", f"{target}/debug/querent"))
    if not found.exists():
        raise SystemExit(f"{found} is not there; build it, or set QUERENT_BINARY")
    return str(found)


class Server:
    """`querent serve` on a folder. `script` is what its model says."""

    def __init__(self, folder, script, log, settings=None):
        self.folder, self.log = pathlib.Path(folder), pathlib.Path(log)
        self.script_file = self.log.with_suffix(".script.json")
        self.script_file.write_text(json.dumps(script))
        self.settings = settings or {}
        self.process = None
        self.address = None

    def spawn(self):
        """Begins to start it; `wait_ready` waits for the end of that."""
        environment = dict(
            os.environ,
            QUERENT_EMBED_PROVIDER="none",
            QUERENT_AUTH_TOKENS=TOKENS,
            QUERENT_AGENT_SCRIPT=str(self.script_file),
            QUERENT_AGENT_WRITE_TOOLS="true",
            QUERENT_LOG="warn",
            QUERENT_SHUTDOWN_TIMEOUT="10s",
            **self.settings,
        )
        arguments = [binary(), "serve", "--listen", "127.0.0.1:0", "--data", str(self.folder)]
        self.process = subprocess.Popen(
            self.command(arguments), env=environment, stdout=subprocess.PIPE, stderr=self.log.open("ab"), text=True
        )

    def command(self, arguments):
        """The command that starts it."""
        return arguments

    def wait_ready(self):
        """Waits until it says where it listens."""
        deadline = time.monotonic() + START_TIME
        while True:
            readable, _, _ = select.select([self.process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            if not readable:
                raise AssertionError(f"the server does not listen after {START_TIME} s: {self.tail()}")
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError(f"the server ended before it listened ({self.process.wait()}): {self.tail()}")
            if "http://" in line:
                self.address = line[line.index("http://") + 7 :].split()[0].rstrip("/")
                return self

    def start(self):
        self.spawn()
        return self.wait_ready()

    def tail(self):
        return self.log.read_text(errors="replace")[-2_000:]

    def kill(self):
        """Ends it at once, without a word to it."""
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def stop(self):
        """Ends it in order."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout=60)
        self.process.stdout.close()
        assert status == 0, f"it ended with {status}: {self.tail()}"

    def is_running(self):
        return self.process.poll() is None

    def request(self, method, path, body=None, token=ADMIN, headers=None, timeout=60):
        """Sends a request and returns the status and the whole answer. Raises `Gone` where there is none."""
        sent = {"authorization": f"Bearer {token}", "connection": "close"}
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
            sent["content-type"] = "application/json"
        sent.update(headers or {})
        host, port = self.address.rsplit(":", 1)
        connection = http.client.HTTPConnection(host, int(port), timeout=timeout)
        try:
            connection.request(method, path, body.encode() if isinstance(body, str) else body, sent)
            answer = connection.getresponse()
            return answer.status, answer.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            raise Gone(repr(error)) from error
        finally:
            connection.close()

    def sql(self, sql, token=ADMIN, timeout=60):
        """Runs SQL; returns its rows, or raises `Refused`."""
        status, text = self.request("POST", "/v1/query?format=json", {"sql": sql}, token, timeout=timeout)
        if status != 200:
            raise Refused(sql, status, text)
        return json.loads(text)["rows"] if text.strip() else []

    def json(self, method, path, body=None, token=ADMIN, timeout=60):
        """The same for any route whose answer is JSON."""
        status, text = self.request(method, path, body, token, timeout=timeout)
        if status not in (200, 201, 204):
            raise Refused(path, status, text)
        return json.loads(text) if text.strip() else None

    def ask(self, question, token=READER, timeout=60):
        """Asks a question; returns the events of its stream, each its name and its data."""
        status, text = self.request("POST", "/v1/agent/ask", {"question": question}, token, timeout=timeout)
        if status != 200:
            raise Refused(question, status, text)
        events = []
        for frame in text.split("\n\n"):
            fields = dict(line.split(": ", 1) for line in frame.splitlines() if ": " in line and line[0] != ":")
            if "event" in fields:
                events.append((fields["event"], json.loads(fields["data"])))
        return events

    def sample(self):
        """What it takes of the machine now."""
        process = psutil.Process(self.process.pid)
        with process.oneshot():
            return {
                "resident_mib": process.memory_info().rss / (1 << 20),
                "open_files": process.num_fds(),
                "threads": process.num_threads(),
            }


class Refused(Exception):
    """The server answered with an error."""

    def __init__(self, what, status, text):
        super().__init__(f"{what}: {status} {text[:1_000]}")
        self.status, self.text = status, text

    @property
    def code(self):
        try:
            return json.loads(self.text.splitlines()[-1])["error"]["code"]
        except (ValueError, KeyError, TypeError, IndexError):
            return ""


def files_below(folder):
    """Paths of all files below a folder, relative to it."""
    folder = pathlib.Path(folder)
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def quoted(path):
    return urllib.parse.quote(str(path), safe="")
