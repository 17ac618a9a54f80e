"""The fixtures that MCP's conformance package asks for by name: a server of tests that passes its calls on to a running one, where
each stands for something of ours, and a script of the model behind `ask`.

Only names are put in the place of others; what is answered, and in which frames, is the server's. What no tool of ours does
(pictures, sounds, subscriptions, sampling) has no fixture.

usage: mcp_fixtures.py URL      prints the address of the fixtures
"""

import contextlib
import json
import sys
import threading
import urllib.parse
import urllib.request
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SINGERS = "How many singers are there?"
# Three calls of a tool, which `ask` tells of, and a question that has two readings.
SCRIPT = {
    "runs": [
        {
            "when": "singers",
            "turns": [
                {"events": [{"tool_call": {"name": "run_sql", "arguments": {"sql": "SELECT count(*) AS n FROM concerts.singer"}}}]},
                {"events": [{"text": "There are 2 singers."}]},
            ],
            "repeat_last": True,
        },
        {
            "turns": [
                *[
                    {"events": [{"tool_call": {"name": "run_sql", "arguments": {"sql": f"SELECT {n} AS n"}}}]}
                    for n in range(3)
                ],
                {"events": [{"text": "It is 2."}]},
            ],
        },
    ]
}
TABLES = [
    'CREATE TABLE "123" AS SELECT 1 AS a',
    "CREATE SCHEMA concerts",
    "CREATE SCHEMA opera",
    "CREATE TABLE concerts.singer (singer_id BIGINT, name VARCHAR)",
    "CREATE TABLE opera.singer (singer_id BIGINT, name VARCHAR)",
    "INSERT INTO concerts.singer VALUES (1, 'Ann'), (2, 'Bo')",
    "INSERT INTO opera.singer VALUES (1, 'Mirella'), (2, 'Luciano'), (3, 'Jessye')",
]
VERIFIED = {"question": "How many numbers are there?", "sql": 'SELECT count(*) AS n FROM "123"', "database": "default"}

# The package's tools, and ours with their arguments.
TOOLS = {
    "test_simple_text": ("run_sql", {"sql": "SELECT 'This is a simple text response for testing.' AS text"}),
    "test_error_handling": ("run_sql", {"sql": "SELECT nothing FROM nowhere"}),
    "test_tool_with_progress": ("ask", {"question": "What is the third number?"}),
    "test_input_required_result_elicitation": ("ask", {"question": SINGERS}),
}
# The input that the package's tool asks for, with its field, and ours.
INPUT, READING = ("user_name", "name"), "reading"
# The scenarios that these fixtures serve.
SCENARIOS = [
    "completion-complete",
    "tools-call-simple-text",
    "tools-call-error",
    "tools-call-with-progress",
    "resources-read-text",
    "resources-templates-read",
    "prompts-get-simple",
    "prompts-get-with-args",
    "input-required-result-basic-elicitation",
    "input-required-result-missing-input-response",
    "input-required-result-result-type",
    "input-required-result-validate-input",
]


@contextlib.contextmanager
def fixtures(url):
    """Serves the fixtures of the server at `url`, whose model follows `SCRIPT`; yields their address."""
    for sql in TABLES:
        post(url, "/v1/query", {"sql": sql})
    prompt = f"verified_query_{post(url, '/v1/catalog/verified-queries', VERIFIED)['id']}"
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(url, prompt))
    # A client that goes away is no error.
    server.handle_error = lambda *_: None
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


def post(url, path, body):
    request = urllib.request.Request(url + path, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.loads(reply.read() or b"null")


def handler(url, prompt):
    address = urllib.parse.urlsplit(url).netloc

    class Fixtures(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def pass_on(self):
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "content-length")}
            if body:
                message = json.loads(body)
                body = json.dumps(with_our_names(message, headers, prompt)).encode()
            upstream = HTTPConnection(address, timeout=60)
            upstream.request(self.command, self.path, body or None, headers)
            reply = upstream.getresponse()
            text = b"".join(with_their_names(line) for line in reply.read().splitlines(keepends=True))
            self.send_response(reply.status)
            for name in ("content-type", "mcp-session-id", "allow"):
                if reply.getheader(name):
                    self.send_header(name, reply.getheader(name))
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_DELETE = pass_on

    return Fixtures


def with_our_names(message, headers, prompt):
    """Puts what is ours in the place of the package's fixtures, in the message and in its header."""
    method, params = message.get("method"), message.get("params") or {}
    named = params.get("name")
    if method == "tools/call" and named in TOOLS:
        params["name"], params["arguments"] = TOOLS[named]
        responses = params.get("inputResponses")
        if isinstance(responses, dict) and INPUT[0] in responses:
            said = responses.pop(INPUT[0])
            if isinstance(said, dict) and INPUT[1] in (said.get("content") or {}):
                said["content"] = {READING: "2"}
            responses[READING] = said
    elif method == "resources/read":
        read = params["uri"].replace("test://static-text", "querent://schema/default/123")
        params["uri"] = read.replace("test://template/", "querent://schema/default/").removesuffix("/data")
    elif method == "prompts/get" and named == "test_simple_prompt":
        params["name"] = prompt
    elif method == "prompts/get" and named == "test_prompt_with_arguments":
        params["name"], params["arguments"] = "ask", {"question": " ".join(params["arguments"].values())}
    elif method == "completion/complete":
        params["ref"] = {"type": "ref/resource", "uri": "querent://schema/{database}"}
        params["argument"] = {"name": "database", "value": "c"}
    for name in headers:
        if name.lower() == "mcp-name":
            headers[name] = params.get("name") or params.get("uri") or headers[name]
    return message


def with_their_names(line):
    """Puts the package's input in the place of ours, in a line of an answer."""
    start = b"data:" if line.startswith(b"data:") else b""
    try:
        message = json.loads(line.removeprefix(start))
        requests = message["result"]["inputRequests"]
    except (ValueError, KeyError, TypeError):
        return line
    requests[INPUT[0]] = requests.pop(READING)
    return start + json.dumps(message).encode() + b"\n"


if __name__ == "__main__":
    with fixtures(sys.argv[1].rstrip("/")) as address:
        print(address, flush=True)
        threading.Event().wait()
