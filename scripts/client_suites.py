"""Runs suites of client libraries that are too large to be among the tests: LangChain's standard suite, those of
`tests/clients/suites/`, and the scenarios of MCP's conformance package, with the fixtures of that folder where they ask for
them. Each library has an environment of its own, at its newest version, since their requirements exclude each other; they
speak to one server whose model calls the tools that it is given.

Used by clients.py; alone it prints what became of each.
usage: client_suites.py [NAME...]   of langchain, pydantic-ai, instructor, litellm, llama-index, mcp
"""

import contextlib
import json
import os
import re
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "tests" / "clients" / "suites"
CACHE = Path(os.environ.get("QUERENT_CACHE") or Path.home() / ".cache" / "querent")
# The longest that a server takes until it listens, and a suite takes, in seconds.
START_TIME, SUITE_TIME = 120, 1800

sys.path.insert(0, str(SCRIPTS))
import mcp_fixtures  # noqa: E402

# What is shown of it, its script, its package, and what is installed.
PYTHON_SUITES = {
    "langchain": (
        "LangChain's standard suite",
        "langchain-tests",
        ["langchain-tests", "langchain-openai", "langchain-anthropic", "langchain"],
    ),
    # It does not work with anthropic 2.
    "pydantic-ai": ("pydantic-ai", "pydantic-ai-slim", ["pydantic-ai-slim[openai,anthropic]", "anthropic<2"]),
    "instructor": ("instructor", "instructor", ["instructor", "anthropic"]),
    "litellm": ("litellm", "litellm", ["litellm"]),
    "llama-index": (
        "LlamaIndex",
        "llama-index-llms-openai",
        ["llama-index-llms-openai", "llama-index-llms-openai-like"],
    ),
}
CONFORMANCE = "@modelcontextprotocol/conformance"
# The revision 2026-07-28 is in no release of it yet.
CONFORMANCE_VERSION = "0.2.0-alpha.12"
# Those that ask for nothing of the package's own; the others are in `mcp_fixtures.py`, or ask for what a server of data has not.
SCENARIOS = [
    "server-initialize",
    "server-session-lifecycle",
    "server-stateless",
    "logging-set-level",
    "ping",
    "tools-list",
    "server-sse-multiple-streams",
    "resources-list",
    "sep-2164-resource-not-found",
    "prompts-list",
    "dns-rebinding-protection",
    "caching",
    "http-header-validation",
    "input-required-result-unsupported-methods",
]


def run_suites(folder, names=()):
    """Runs the suites, all or those that are named. Returns a row of each: library, package, version, passed, failed."""
    names = list(names) or [*PYTHON_SUITES, "mcp"]
    rows = []
    with server() as url:
        for name in names:
            row = run_conformance(folder / "mcp", url) if name == "mcp" else run_python(folder / name, name, url)
            print(*row, sep=" | ", flush=True)
            rows.append(row)
    return rows


def run_python(folder, name, url):
    title, package, wanted = PYTHON_SUITES[name]
    python = folder / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    install = [python, "-m", "pip", "install", "-q", "--upgrade", "pytest", "pytest-asyncio", *wanted]
    subprocess.run(install, check=True)
    script = SCRIPTS / f"{name.replace('-', '_')}_suite.py"
    command = [python, "-m", "pytest", "-q", "--asyncio-mode=auto", "-p", "no:cacheprovider", "--tb=short", script]
    run = subprocess.run(
        command, env=os.environ | {"QUERENT_URL": url}, stdout=subprocess.PIPE, text=True, timeout=SUITE_TIME
    )
    count = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|error)", run.stdout)}
    failed = count.get("failed", 0) + count.get("error", 0)
    if failed or not count:
        print(run.stdout, file=sys.stderr)
    version = f"import importlib.metadata; print(importlib.metadata.version('{package}'))"
    version = subprocess.run([python, "-c", version], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    return title, f"`{package}` (pip)", version, count.get("passed", 0), failed if count else "all"


def run_conformance(folder, url):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text('{"private": true}')
    subprocess.run(
        ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", f"{CONFORMANCE}@{CONFORMANCE_VERSION}"],
        cwd=folder,
        check=True,
    )
    failed = [scenario for scenario in SCENARIOS if not holds(folder, url, scenario)]
    with server(mcp_fixtures.SCRIPT) as scripted, mcp_fixtures.fixtures(scripted) as fixtures:
        failed += [scenario for scenario in mcp_fixtures.SCENARIOS if not holds(folder, fixtures, scenario)]
    passed = len(SCENARIOS) + len(mcp_fixtures.SCENARIOS) - len(failed)
    return "MCP's conformance package", f"`{CONFORMANCE}` (npm)", CONFORMANCE_VERSION, passed, len(failed)


def holds(folder, url, scenario):
    """Runs a scenario of the conformance package, and shows what is wrong. Returns whether nothing is."""
    program = folder / "node_modules" / CONFORMANCE / "dist" / "index.js"
    command = [node(), program, "server", "--url", f"{url}/mcp", "--scenario", scenario]
    run = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    # A check whose fixture is not there says so, and fails its scenario.
    wrong = [error for error in re.findall(r"Error: (.*)", run.stdout) if not error.startswith("Not testable")]
    if not wrong and "Passed: " in run.stdout:
        return True
    print(scenario, *wrong, sep="\n  ", file=sys.stderr)
    return False


def node():
    """A Node.js that is new enough for the package: that of the clients' environment."""
    wheel = CACHE / "venv" / "bin" / "node"
    return wheel if wheel.exists() else shutil.which("node")


@contextlib.contextmanager
def server(script=None):
    """A server whose model follows the script, or calls the tools that it is given; its address."""
    target = Path(os.environ.get("QUERENT_TARGET_DIR") or CACHE / "target")
    binary = Path(os.environ.get("QUERENT_BINARY") or target / "debug" / "querent")
    if not binary.exists():
        sys.exit(f"{binary} is not there; build it, or set QUERENT_BINARY")
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as running:
        config = Path(folder) / "querent.toml"
        if script:
            file = Path(folder) / "script.json"
            file.write_text(json.dumps(script))
            config.write_text(f'agent.script = "{file}"\n')
        else:
            port = free_port()
            model = subprocess.Popen([sys.executable, SCRIPTS / "tool_model.py", str(port)])
            running.callback(end, model)
            wait_for_port(port)
            config.write_text(
                f'[[agent.models]]\nname = "tools"\nprovider = "openai"\nbase_url = "http://127.0.0.1:{port}/v1"\n'
                "context_tokens = 32000\n"
            )
        command = [binary, "serve", "--listen", "127.0.0.1:0", "--data", Path(folder) / "data", "--config", config]
        environment = os.environ | {"QUERENT_EMBED_PROVIDER": "none", "QUERENT_LOG": "warn"}
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        running.callback(end, process)
        yield address_of(process)


def address_of(process):
    """Waits until the server says where it listens."""
    readable, _, _ = select.select([process.stdout], [], [], START_TIME)
    line = process.stdout.readline() if readable else ""
    found = re.search(r"http://[^\s,]+", line)
    if not found:
        sys.exit(f"the server does not listen: {line}")
    return found.group().rstrip("/")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def wait_for_port(port):
    deadline = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def end(process):
    process.terminate()
    process.wait(timeout=60)


if __name__ == "__main__":
    run_suites(CACHE / "clients-newest" / "suites", sys.argv[1:])
