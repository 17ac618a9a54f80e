"""A model that calls the tools it is given, over Chat Completions: what libraries' suites ask of a model, without one.

usage: tool_model.py PORT

It calls the tool that `tool_choice` names, or the first of the application's tools that the question names, with arguments
that its schema allows and the question says; answers of a schema are made the same way. After a tool's result it says that,
unless it must call another one.
"""

import itertools
import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# The tools of the server, which it calls only for questions that say `how many rows`.
OURS = {
    "run_sql",
    "run_kql",
    "describe_table",
    "sample_rows",
    "list_databases",
    "search_schema",
    "explore_schema",
    "find_references_to",
    "graph_traverse",
}
USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
# How deep optional members are filled in, which ends schemas that name themselves.
DEPTH = 4


def instance(schema, said, root, name="", depth=0):
    """A value of a JSON schema, with what the question says where that fits."""
    if not isinstance(schema, dict):
        return said.word()
    if "$ref" in schema:
        if depth > 2 * DEPTH:
            return None
        target = root
        for part in schema["$ref"].lstrip("#/").split("/"):
            target = target[part] if part else target
        return instance(target, said, root, name, depth + 1)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    for choices in (schema[key] for key in ("anyOf", "oneOf") if key in schema):
        nothing = any(choice.get("type") == "null" for choice in choices)
        if nothing and depth > DEPTH:
            return None
        return instance(next(c for c in choices if c.get("type") != "null"), said, root, name, depth + 1)
    if "allOf" in schema:
        return instance(schema["allOf"][0], said, root, name, depth + 1)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = None if "null" in kind and depth > DEPTH else next(one for one in kind if one != "null")
    if kind == "object" or "properties" in schema:
        members = schema.get("properties", {})
        wanted = members if depth <= DEPTH else schema.get("required", members)
        return {key: instance(members[key], said, root, key, depth + 1) for key in members if key in wanted}
    if kind == "array":
        count = 0 if depth > DEPTH else max(1, schema.get("minItems", 1))
        return [instance(schema.get("items", {}), said, root, name, depth + 1) for _ in range(count)]
    if kind == "integer":
        return int(said.number(3))
    if kind == "number":
        return said.number(1.5)
    return {"boolean": True, "null": None}.get(kind, said.word()) if kind in ("boolean", "null") else said.word(name)


class Question:
    """What a question says: its numbers in turn, and its names."""

    def __init__(self, text):
        self.text = text
        self.numbers = iter([float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", text)])

    def number(self, otherwise):
        return next(self.numbers, otherwise)

    def word(self, name=""):
        age = re.search(rf"{re.escape(name)}(?: is|:| =) ([^\s,.]+)", self.text) if name else None
        named = re.search(r"(?:named|name:|called) ([^\s,.]+)", self.text)
        capitals = re.findall(r"(?<=[a-z,] )[A-Z][a-z]+", self.text)
        found = age or named
        return found.group(1) if found else capitals[-1] if capitals else "text"


class Reply:
    """What the model says to one request."""

    numbers = itertools.count(1)

    def __init__(self, request):
        self.text, self.calls = "", []
        messages = request["messages"]
        asked = [content(message) for message in messages if message["role"] == "user"]
        text = asked[-1] if asked else ""
        # An answer that is wanted in another form is asked for in a message of its own, behind the question.
        self.said, self.asked = Question(text), Question("\n".join(asked))
        tools = [tool["function"] for tool in request.get("tools") or []]
        own = [tool for tool in tools if tool["name"] not in OURS]
        choice, form = request.get("tool_choice"), request.get("response_format") or {}
        if form.get("type") == "json_schema":
            self.text = self.structured(form["json_schema"]["schema"])
        elif isinstance(choice, dict) and "function" in choice:
            self.call(next(tool for tool in tools if tool["name"] == choice["function"]["name"]))
        elif choice in ("required", "any") and tools:
            done = {call["function"]["name"] for message in messages for call in message.get("tool_calls") or []}
            left = [tool for tool in own if tool["name"] not in done]
            self.call((left or own[-1:] or tools)[0])
        elif messages[-1]["role"] == "tool":
            self.text = f"The result is {content(messages[-1])}"
        elif own and choice != "none" and not re.match(r"\W*(hello|hi)\b", text, re.I):
            for tool in self.wanted(own):
                self.call(tool)
        elif "how many rows" in text.lower() and tools:
            self.calls.append(("run_sql", {"sql": "SELECT 42 AS n"}))
        else:
            self.text = f"Hello! You said: {text.strip()[-200:]}"

    def structured(self, schema):
        if not schema.get("properties") and not schema.get("$ref"):
            keys = re.findall(r"[\"'`](\w+)[\"'`]", self.asked.text)
            return json.dumps({key: self.asked.word(key) for key in keys})
        return json.dumps(instance(schema, self.asked, schema))

    def wanted(self, tools):
        words = self.said.text.lower()
        named = [tool for tool in tools if tool["name"].lower() in words]
        named = named or [tool for tool in tools if any(part in words for part in tool["name"].lower().split("_") if len(part) > 3)]
        several = re.search(r"\b(both|parallel|two)\b", words)
        return tools[:2] if several else (named or tools)[:1]

    def call(self, tool):
        schema = tool.get("parameters") or {}
        self.calls.append((tool["name"], instance(schema, self.said, schema) or {}))

    def tool_calls(self):
        number = next(self.numbers)
        for index, (name, arguments) in enumerate(self.calls):
            function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
            yield {"index": index, "id": f"call_{number}_{index}", "type": "function", "function": function}


def content(message):
    said = message.get("content") or ""
    return said if isinstance(said, str) else " ".join(part.get("text", "") for part in said)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, document):
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.send({"object": "list", "data": [{"id": "tools", "object": "model", "created": 1, "owned_by": "tests"}]})

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        reply = Reply(request)
        calls = list(reply.tool_calls())
        finish = "tool_calls" if calls else "stop"
        if not request.get("stream"):
            message = {"role": "assistant", "content": reply.text or None} | ({"tool_calls": calls} if calls else {})
            choice = {"index": 0, "message": message, "finish_reason": finish}
            return self.send(completion("chat.completion", [choice], USAGE))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        deltas = [{"content": piece} for piece in re.findall(r"\S+\s*|\s+", reply.text)]
        deltas += [{"tool_calls": [call]} for call in calls]
        chunks = [[{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas]
        chunks.append([{"index": 0, "delta": {}, "finish_reason": finish}])
        for choices in chunks:
            self.event(completion("chat.completion.chunk", choices))
        self.event(completion("chat.completion.chunk", [], USAGE))
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def event(self, document):
        self.wfile.write(f"data: {json.dumps(document)}\n\n".encode())


def completion(kind, choices, usage=None):
    document = {"id": "completion", "object": kind, "created": 1, "model": "tools", "choices": choices}
    return document | ({"usage": usage} if usage else {})


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
