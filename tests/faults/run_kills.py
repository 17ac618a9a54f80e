"""Kills a server in the middle of the agent's runs, over and over, in every protocol, and reads each run back.

Each round asks one question in each protocol and kills the server (SIGKILL) at a time that the seed draws. After the next start a
run whose beginning a client has seen must be there, ended, and whole in its protocol: its question, its first and its last event,
and a status that is none of progress; no run at all may be left in progress.

usage: run_kills.py [--kills 100] [--seconds 1.5] [--seed 1]
"""

import argparse
import http.client
import json
import os
import pathlib
import random
import shutil
import sys
import tempfile
import threading
import time

from server import ADMIN, Gone, Refused, Server

CUBE = "/api/v1/public/acme/agents/1/chat/stream-chat-state"
KSADK = "/agentengine/api/v1"
CODE = "server_restarted"


def script():
    """A model that says a word, queries, and says more words, for a second or so."""
    query = {"name": "run_sql", "arguments": {"sql": "SELECT 1 AS a"}}
    words = [event for word in "There is one row , and it has a one .".split() for event in ({"text": word + " "}, {"delay_ms": 80})]
    turns = [{"events": [{"delay_ms": 80}, {"text": "I look. "}, {"delay_ms": 80}, {"tool_call": query}]}, {"events": words}]
    return {"runs": [{"turns": turns, "repeat_last": True}]}


class Asked:
    """One question in one protocol: how it is asked, what was seen of its answer, and how it is read back."""

    def __init__(self, name, number):
        self.name = name
        self.question = f"question {number} of {name}"
        self.key = f"{name}-{number}"
        #: What has come of the answer, and whether that was all of it.
        self.seen, self.is_whole = "", False

    def has_begun(self):
        """Whether the client knows that its run has begun: the answer's first bytes have come."""
        return bool(self.seen)

    def request(self):
        question = self.question
        user = [{"role": "user", "content": question}]
        part = {"kind": "text", "text": question}
        asked = {
            "ask": ("/v1/agent/ask", {"question": question, "session_id": self.key}),
            "responses": ("/v1/responses", {"input": question, "stream": True}),
            "background": ("/v1/responses", {"input": question, "background": True}),
            "chat": ("/v1/chat/completions", {"messages": user, "stream": True, "store": True}),
            "messages": ("/v1/messages", {"model": "querent", "max_tokens": 500, "stream": True, "messages": user}),
            "holmes": ("/api/chat", {"ask": question, "stream": True}),
            "cube": (CUBE, {"input": question, "chatId": self.key, "sessionSettings": {"externalId": "ann"}}),
            "ksadk": (f"{KSADK}/RunAgent", {"AgentId": "querent", "UserId": "u1", "SessionId": self.key, "Stream": True, "Messages": user}),
            "adk": ("/run_sse", {"appName": "querent", "userId": "u1", "sessionId": self.key, "streaming": True,
                                 "newMessage": {"role": "user", "parts": [{"text": question}]}}),
            "ag_ui": ("/ag-ui", {"threadId": self.key, "runId": "r", "messages": [{"id": "m", **user[0]}]}),
            "a2a": ("/a2a", {"jsonrpc": "2.0", "id": 1, "method": "message/stream",
                             "params": {"message": {"kind": "message", "messageId": "m", "role": "user", "parts": [part]}}}),
        }
        return asked[self.name]

    def ask(self, server):
        """Asks, and reads the answer until it or the server ends."""
        host, port = server.address.rsplit(":", 1)
        connection = http.client.HTTPConnection(host, int(port), timeout=60)
        path, body = self.request()
        scheme = "Api-Key" if self.name == "cube" else "Bearer"
        try:
            sent = {"authorization": f"{scheme} {ADMIN}", "content-type": "application/json"}
            connection.request("POST", path, json.dumps(body), sent)
            answer = connection.getresponse()
            assert answer.status == 200, f"{path}: {answer.status} {answer.read()[:500]}"
            while piece := answer.read1(65_536):
                self.seen += piece.decode("utf-8", "replace")
            self.is_whole = True
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()

    def check(self, server, run):
        """Reads the run back: `run` as every protocol's is kept, and then as this protocol shows it."""
        names = [frame["event"] for frame in run["trace"]]
        assert (names[0], names[-1]) == ("run_started", "run_finished"), names
        assert run["status"] in ("success", "error"), run["status"]
        assert run["status"] == "success" or CODE in json.dumps(run["trace"]), run["trace"]
        is_ok = run["status"] == "success"
        # What the client has seen the end of has not failed.
        assert is_ok or not self.is_whole or self.name == "background", "its whole answer had come"
        check = getattr(self, f"check_{self.name}", None)
        if check:
            check(server, run, is_ok)

    def check_ask(self, server, _run, _is_ok):
        turns = server.json("GET", f"/v1/agent/sessions/{self.key}/turns")
        assert self.question in json.dumps(turns), turns

    def check_responses(self, server, _run, is_ok):
        ids = self.seen.split('"id":"resp_')
        response_id = "resp_" + ids[1].split('"')[0]
        path, wanted = f"/v1/responses/{response_id}", "completed" if is_ok else "failed"
        response = server.json("GET", path)
        assert (response["id"], response["status"]) == (response_id, wanted), response
        assert is_ok or CODE in response["error"]["message"], response
        _, stream = server.request("GET", f"{path}?stream=true")
        names = [line[7:] for line in stream.splitlines() if line.startswith("event: ")]
        assert (names[0], names[-1]) == ("response.created", f"response.{wanted}"), names
        numbers = [json.loads(line[6:])["sequence_number"] for line in stream.splitlines() if line.startswith("data: ")]
        assert numbers == list(range(len(numbers))), numbers
        assert self.question in json.dumps(server.json("GET", f"{path}/input_items"))

    check_background = check_responses

    def check_chat(self, server, _run, is_ok):
        completion_id = self.seen.split('"id":"')[1].split('"')[0]
        status, text = server.request("GET", f"/v1/chat/completions/{completion_id}")
        assert status == (200 if is_ok else 404), text

    def check_cube(self, server, _run, _is_ok):
        state = {"chatId": self.key, "sessionSettings": {"externalId": "ann"}}
        status, text = server.request("POST", CUBE, state, headers={"authorization": f"Api-Key {ADMIN}"})
        lines = [json.loads(line) for line in text.splitlines() if line.strip()]
        assert status == 200 and lines[-1]["id"] == "__state__", text
        assert [line["content"] for line in lines if line.get("role") == "user"][0] == self.question, text
        assert [line["state"]["isStreaming"] for line in lines if line["id"] == "__cutoff__"] == [False], text

    def check_ksadk(self, server, _run, is_ok):
        session = {"AgentId": "querent", "UserId": "u1", "SessionId": self.key}
        events = json.dumps(server.json("POST", f"{KSADK}/ListSessionEvents", session))
        assert self.question in events and (is_ok or CODE in events), events
        assert self.question in json.dumps(server.json("POST", f"{KSADK}/ListSessionMessages", session))

    def check_adk(self, server, _run, is_ok):
        session = json.dumps(server.json("GET", f"/apps/querent/users/u1/sessions/{self.key}"))
        assert self.question in session and (is_ok or CODE in session), session

    def check_a2a(self, server, run, is_ok):
        get = {"jsonrpc": "2.0", "id": 2, "method": "tasks/get", "params": {"id": run["run_id"]}}
        task = server.json("POST", "/a2a", get)["result"]
        assert task["status"]["state"] == ("completed" if is_ok else "failed"), task


#: In the order of the table of the documentation.
PROTOCOLS = ["ask", "responses", "background", "chat", "messages", "holmes", "cube", "ksadk", "adk", "ag_ui", "a2a"]


class RunKiller:
    def __init__(self, folder, seed, seconds):
        self.random, self.seconds = random.Random(seed), seconds
        self.folder = folder
        self.server = None
        self.begun = dict.fromkeys(PROTOCOLS, 0)
        self.cut = dict.fromkeys(PROTOCOLS, 0)
        self.faults = []

    def start(self):
        self.server = Server(self.folder / "data", script(), self.folder / "server.log").start()

    def round(self, number):
        asked = [Asked(name, number) for name in PROTOCOLS]
        threads = [threading.Thread(target=self.ask, args=[one], daemon=True) for one in asked]
        for thread in threads:
            thread.start()
        time.sleep(self.random.uniform(0.1, self.seconds))
        self.server.kill()
        for thread in threads:
            thread.join(timeout=120)
            assert not thread.is_alive(), "a client does not end"
        self.start()
        kept = {run["question"]: run for run in self.server.json("GET", "/v1/agent/runs?limit=50")["runs"]}
        for one in asked:
            run = kept.get(one.question)
            if not one.has_begun() and run is None:
                continue
            self.begun[one.name] += 1
            try:
                assert run is not None, f"a run that had begun is lost; its client saw {one.seen[:300]}"
                self.cut[one.name] += run["status"] != "success"
                if one.has_begun():
                    one.check(self.server, self.server.json("GET", f"/v1/agent/runs/{run['run_id']}"))
            except (AssertionError, LookupError, ValueError, Refused, Gone) as fault:
                self.faults.append(f"round {number}, {one.name}: {fault!r}"[:1_500])
                print(f"FAULT {self.faults[-1]}", flush=True)
        left = [question for question, run in kept.items() if run["status"] not in ("success", "error")]
        if left:
            self.faults.append(f"round {number}: in progress after a start: {left}")

    def ask(self, one):
        try:
            one.ask(self.server)
        except AssertionError as fault:
            self.faults.append(f"{one.name}: {fault}")

    def run(self, kills):
        began = time.monotonic()
        self.start()
        for number in range(kills):
            if len(self.faults) >= 10:
                break
            self.round(number)
        self.server.stop()
        for name in PROTOCOLS:
            print(f"  {name:<12} {self.begun[name]:>4} begun, {self.cut[name]:>4} cut off")
        begun, cut = sum(self.begun.values()), sum(self.cut.values())
        print(f"{kills} kills, {begun} runs, {cut} cut off, {len(self.faults)} faults, {time.monotonic() - began:.0f} s in all")


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--kills", type=int, default=100)
    options.add_argument("--seconds", type=float, default=1.5, help="the longest time between a start and its kill")
    options.add_argument("--seed", type=int, default=int(os.environ.get("CRASH_SEED", "1")))
    chosen = options.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="querent-run-kills-"))
    killer = RunKiller(folder, chosen.seed, chosen.seconds)
    try:
        killer.run(chosen.kills)
    finally:
        if killer.faults:
            print(f"seed {chosen.seed}; the folder is {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    for fault in killer.faults:
        print(f"FAULT {fault}")
    sys.exit(1 if killer.faults else 0)


if __name__ == "__main__":
    main()
