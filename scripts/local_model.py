#!/usr/bin/env python3
"""Serves one GGUF model over Ollama's HTTP protocol, for machines without Ollama.

Not Ollama: the part of its protocol that Querent uses (/api/version, /api/tags, /api/show, /api/chat), over
llama.cpp from the `xllamacpp` package. One model, one slot; a generation stops when its client goes away.

    local_model.py --model qwen2.5-coder:1.5b=/path/to/model.gguf --port 11434

Prints one line `ready http://127.0.0.1:PORT MODEL` when it answers; `--port 0` takes a free port.
"""

import argparse
import http.client
import json
import math
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import xllamacpp

# Ollama's option names, and what llama.cpp's chat endpoint calls them.
OPTIONS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "min_p": "min_p",
    "seed": "seed",
    "num_predict": "max_tokens",
    "stop": "stop",
    "repeat_penalty": "repeat_penalty",
}


class Gguf:
    """What a GGUF file's header says of its model. Layout: github.com/ggml-org/ggml/blob/master/docs/gguf.md"""

    STRING, ARRAY = 8, 9
    SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}

    def __init__(self, path):
        self.size = os.path.getsize(path)
        self.fields = {}
        self.parameters = 0
        with open(path, "rb") as file:
            magic, version, tensors, fields = self._unpack(file, "4sIQQ")
            if magic != b"GGUF" or version < 2:
                raise SystemExit(f"{path} is not a GGUF file of version 2 or later")
            for _ in range(fields):
                key = self._string(file)
                (kind,) = self._unpack(file, "I")
                self.fields[key] = self._value(file, kind)
            for _ in range(tensors):
                self._string(file)
                (dimensions,) = self._unpack(file, "I")
                self.parameters += math.prod(self._unpack(file, f"{dimensions}Q"))
                self._unpack(file, "IQ")

    @property
    def architecture(self):
        return self.fields.get("general.architecture", "")

    def model_info(self):
        """As /api/show reports it: the scalar fields, and the parameters counted from the tensors."""
        scalars = {key: value for key, value in self.fields.items() if not isinstance(value, list)}
        scalars.pop("tokenizer.chat_template", None)
        return {**scalars, "general.parameter_count": self.parameters}

    def parameter_size(self):
        if self.parameters >= 1_000_000_000:
            return f"{self.parameters / 1e9:.1f}B"
        return f"{self.parameters / 1e6:.0f}M"

    def can_call_tools(self):
        return "tools" in self.fields.get("tokenizer.chat_template", "")

    @staticmethod
    def _unpack(file, layout):
        layout = "<" + layout
        return struct.unpack(layout, file.read(struct.calcsize(layout)))

    def _string(self, file):
        (length,) = self._unpack(file, "Q")
        return file.read(length).decode("utf-8", errors="replace")

    def _value(self, file, kind):
        if kind == self.STRING:
            return self._string(file)
        if kind == self.ARRAY:
            item_kind, length = self._unpack(file, "IQ")
            return [self._value(file, item_kind) for _ in range(length)]
        return self._unpack(file, self.SCALARS[kind])[0]


class Model:
    """The loaded model, reached through llama.cpp's own server inside this process."""

    def __init__(self, name, path, threads, context):
        self.name = name if ":" in name else name + ":latest"
        self.gguf = Gguf(path)
        self.modified_at = rfc3339(os.path.getmtime(path))
        params = xllamacpp.CommonParams()
        params.model.path = path
        params.hostnames = ["127.0.0.1"]
        params.port = 0
        params.n_ctx = context
        params.n_parallel = 1
        params.n_gpu_layers = 0
        params.cpuparams.n_threads = threads
        params.cpuparams_batch.n_threads = threads
        params.use_jinja = True
        params.verbosity = 1
        self.server = xllamacpp.Server(params)
        self.address = urlsplit(self.server.listening_address).netloc

    def is_called(self, name):
        return (name if ":" in name else name + ":latest").lower() == self.name.lower()

    def details(self):
        return {
            "format": "gguf",
            "family": self.gguf.architecture,
            "families": [self.gguf.architecture],
            "parameter_size": self.gguf.parameter_size(),
        }

    def listing(self):
        return {
            "name": self.name,
            "model": self.name,
            "modified_at": self.modified_at,
            "size": self.gguf.size,
            "details": self.details(),
        }

    def card(self):
        capabilities = ["completion"] + (["tools"] if self.gguf.can_call_tools() else [])
        return {
            "details": self.details(),
            "model_info": self.gguf.model_info(),
            "capabilities": capabilities,
            "modified_at": self.modified_at,
        }

    def start_chat(self, body):
        """Sends a chat to llama.cpp; returns the connection and its streaming response."""
        connection = http.client.HTTPConnection(self.address)
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"})
        return connection, connection.getresponse()


def upstream_body(chat):
    """An Ollama chat request as llama.cpp's chat endpoint takes it."""
    body = {
        "messages": upstream_messages(chat.get("messages") or []),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if chat.get("tools"):
        body["tools"] = chat["tools"]
    options = chat.get("options") or {}
    body.update({theirs: options[ours] for ours, theirs in OPTIONS.items() if options.get(ours) is not None})
    output_format = chat.get("format")
    if output_format == "json":
        body["response_format"] = {"type": "json_object"}
    elif isinstance(output_format, dict):
        schema = {"name": "reply", "strict": True, "schema": output_format}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return body


def upstream_messages(messages):
    """Ollama's messages refer to a tool's result by order; llama.cpp's by an id, given here."""
    translated, unanswered, calls_made = [], [], 0
    for message in messages:
        entry = {"role": message["role"], "content": message.get("content") or ""}
        if message.get("tool_calls"):
            entry["tool_calls"] = []
            for call in message["tool_calls"]:
                calls_made += 1
                call_id = f"call_{calls_made}"
                unanswered.append(call_id)
                function = call["function"]
                arguments = json.dumps(function.get("arguments") or {}, ensure_ascii=False)
                entry["tool_calls"].append(
                    {"id": call_id, "type": "function", "function": {"name": function["name"], "arguments": arguments}}
                )
        if message["role"] == "tool" and unanswered:
            entry["tool_call_id"] = unanswered.pop(0)
        translated.append(entry)
    return translated


class ToolCalls:
    """Puts together the tool calls that llama.cpp recognised, from their pieces."""

    def __init__(self):
        self.calls = {}

    def add(self, pieces):
        for piece in pieces:
            call = self.calls.setdefault(piece.get("index", 0), {"name": "", "arguments": ""})
            function = piece.get("function") or {}
            call["name"] += function.get("name") or ""
            call["arguments"] += function.get("arguments") or ""

    def finished(self):
        """In Ollama's form: the arguments are an object."""
        return [
            {"function": {"name": call["name"], "arguments": json.loads(call["arguments"] or "{}")}}
            for _, call in sorted(self.calls.items())
        ]


def replies(response, model_name, started):
    """llama.cpp's event stream as Ollama's lines: text as it comes, tool calls and the counts at the end."""

    def line(message, **fields):
        return {"model": model_name, "created_at": rfc3339(time.time()), "message": message, **fields}

    tool_calls, usage, timings, stopped_by = ToolCalls(), {}, {}, None
    for event in events_of(response):
        if "error" in event:
            yield {"error": message_of(event)}
            return
        usage = event.get("usage") or usage
        timings = event.get("timings") or timings
        for choice in event.get("choices") or []:
            delta = choice.get("delta") or {}
            stopped_by = choice.get("finish_reason") or stopped_by
            tool_calls.add(delta.get("tool_calls") or [])
            if delta.get("reasoning_content"):
                message = {"role": "assistant", "content": "", "thinking": delta["reasoning_content"]}
                yield line(message, done=False)
            if delta.get("content"):
                yield line({"role": "assistant", "content": delta["content"]}, done=False)
    if tool_calls.calls:
        yield line({"role": "assistant", "content": "", "tool_calls": tool_calls.finished()}, done=False)
    yield line(
        {"role": "assistant", "content": ""},
        done=True,
        done_reason="length" if stopped_by == "length" else "stop",
        total_duration=int((time.time() - started) * 1e9),
        load_duration=0,
        prompt_eval_count=usage.get("prompt_tokens", 0),
        prompt_eval_duration=int(timings.get("prompt_ms", 0) * 1e6),
        eval_count=usage.get("completion_tokens", 0),
        eval_duration=int(timings.get("predicted_ms", 0) * 1e6),
    )


def events_of(response):
    """The JSON events of a server-sent event stream."""
    for raw in response:
        kind, _, data = raw.decode("utf-8").strip().partition(": ")
        if kind == "error":
            yield {"error": json.loads(data)}
        elif kind == "data" and data != "[DONE]":
            yield json.loads(data)


def message_of(failure):
    error = failure.get("error")
    return error.get("message", str(error)) if isinstance(error, dict) else str(error)


class ClientWatch:
    """Calls `when_gone` once the client has closed its connection, also while nothing is being sent to it."""

    def __init__(self, connection, when_gone):
        self.connection, self.when_gone = connection, when_gone
        self.finished = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self):
        while not self.finished.wait(0.1):
            if self._is_gone():
                self.when_gone()
                return

    def _is_gone(self):
        try:
            readable, _, _ = select.select([self.connection], [], [], 0)
            # Something to read is the client's next request; nothing to read, ever again, is its end.
            return bool(readable) and not self.connection.recv(1, socket.MSG_PEEK)
        except (OSError, ValueError):
            return True

    def stop(self):
        self.finished.set()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    model = None

    def do_GET(self):
        if self.path == "/api/version":
            self.send_json({"version": "0.0.0-local-model"})
        elif self.path == "/api/tags":
            self.send_json({"models": [self.model.listing()]})
        else:
            self.send_failure(HTTPStatus.NOT_FOUND, f"no such path: {self.path}")

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            body = json.loads(raw)
        except ValueError as error:
            return self.send_failure(HTTPStatus.BAD_REQUEST, f"the body is not JSON: {error}")
        if self.path not in ("/api/show", "/api/chat"):
            return self.send_failure(HTTPStatus.NOT_FOUND, f"no such path: {self.path}")
        wanted = body.get("model") or body.get("name") or ""
        if not self.model.is_called(wanted):
            return self.send_failure(HTTPStatus.NOT_FOUND, f"model '{wanted}' not found")
        if self.path == "/api/show":
            return self.send_json(self.model.card())
        return self.chat(body)

    def chat(self, body):
        started = time.time()
        connection, response = self.model.start_chat(upstream_body(body))
        watch = ClientWatch(self.connection, lambda: cut(connection))
        try:
            if response.status != HTTPStatus.OK:
                return self.send_failure(response.status, message_of(json.loads(response.read())))
            lines = replies(response, body["model"], started)
            if body.get("stream", True):
                self.send_lines(lines)
            else:
                self.send_json(joined(lines))
        except (OSError, http.client.HTTPException):
            # The client went away, or the watch cut the generation because it did.
            self.close_connection = True
        finally:
            watch.stop()
            connection.close()

    def send_lines(self, lines):
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for line in lines:
            data = json.dumps(line, ensure_ascii=False).encode() + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.write(b"0\r\n\r\n")

    def send_json(self, value, status=HTTPStatus.OK):
        data = json.dumps(value, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def send_failure(self, status, message):
        self.send_json({"error": message}, status)

    def log_message(self, *_):
        """Requests are not logged: the client does that."""


def joined(lines):
    """A stream's lines as the one object that a request without streaming gets."""
    reply, content, tool_calls = {}, "", []
    for line in lines:
        if "error" in line:
            return line
        content += line["message"]["content"]
        tool_calls += line["message"].get("tool_calls", [])
        reply = line
    reply["message"] = {"role": "assistant", "content": content, **({"tool_calls": tool_calls} if tool_calls else {})}
    return reply


def cut(connection):
    """Makes llama.cpp stop generating: it looks whether its client is still there."""
    try:
        connection.sock.shutdown(socket.SHUT_RDWR)
    except (AttributeError, OSError):
        # It has just been closed: the generation had ended.
        pass


def rfc3339(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--model", required=True, metavar="NAME=FILE.gguf", help="its name and its file")
    parser.add_argument("--port", type=int, default=11434, help="0 takes a free one (default: 11434)")
    parser.add_argument("--threads", type=int, default=1, help="more only pay where cores are idle (default: 1)")
    parser.add_argument("--context", type=int, default=8192, help="tokens (default: 8192)")
    parser.add_argument("--until-stdin-closes", action="store_true", help="stop with the process that started this")
    parsed = parser.parse_args()
    if "=" not in parsed.model:
        parser.error("--model is written NAME=FILE.gguf")
    return parsed


def main():
    options = arguments()
    name, path = options.model.split("=", 1)
    Handler.model = Model(name, path, options.threads, options.context)
    listener = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    listener.daemon_threads = True

    def stop(*_):
        threading.Thread(target=listener.shutdown, daemon=True).start()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    if options.until_stdin_closes:
        threading.Thread(target=lambda: (sys.stdin.read(), stop()), daemon=True).start()
    print(f"ready http://127.0.0.1:{listener.server_port} {Handler.model.name}", flush=True)
    listener.serve_forever()
    listener.server_close()
    # llama.cpp's threads would hold the interpreter until a running generation ends.
    os._exit(0)


if __name__ == "__main__":
    main()
