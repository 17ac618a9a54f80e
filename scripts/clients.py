"""Runs the tests of the client libraries and writes the table of docs/clients.md: which library in which version passes.

usage: clients.py            installs the newest version of each library beside the pinned ones, which `make test` takes, and
                             runs the suites of client_suites.py too
       clients.py --pinned   runs with the pinned ones, without the suites
       clients.py --suites   runs the suites only
       clients.py --tests PROGRAM   runs the tests of a built target/debug/deps/it-HASH, and builds nothing
The last column of a row that failed says whose fault it is; it is written by people and kept.
"""

import argparse
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from client_suites import run_suites

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "clients.md"
CACHE = Path(os.environ.get("QUERENT_CACHE") or Path.home() / ".cache" / "querent")
# The name, where it comes from, its package or packages, and the tests that drive it.
LIBRARIES = [
    ("openai for Python", "pip", "openai", ["openai::openai_for_python"]),
    ("openai for Node", "npm", "openai", ["openai::openai_for_node"]),
    ("LangChain", "pip", "langchain-openai", ["openai::langchain_and_httpx_sse"]),
    ("openai-agents", "pip", "openai-agents", ["openai::openai_agents"]),
    ("AI SDK", "npm", "ai", ["openai::ai_sdk"]),
    ("Open Responses", "pip", "openresponses-types", ["openai::open_responses"]),
    ("anthropic for Python", "pip", "anthropic", ["openai::anthropic_for_python"]),
    ("AG-UI", "npm", "@ag-ui/client", ["openai::agents::ag_ui_for_node"]),
    ("A2A", "pip", "a2a-sdk", ["openai::agents::a2a_for_python"]),
    ("MCP for Python", "pip", "mcp", ["mcp::the_official_client_", "mcp::more::a_client_asks_its_user_"]),
    ("Holmes over httpx", "pip", "httpx", ["holmes::clients::"]),
    ("Kusto for Python", "pip", "azure-kusto-data", ["clients::kusto_for_python"]),
    ("Kusto for Node", "npm", "azure-kusto-data", ["clients::kusto_for_node"]),
    ("Cube over httpx and fetch", "pip", "httpx", ["cube::clients_as_people_write_them"]),
    ("ADBC", "pip", "adbc-driver-flightsql", ["clients::adbc_"]),
    ("pyarrow Flight", "pip", "pyarrow", ["clients::pyarrow_flight"]),
    ("pandas, polars, SQLAlchemy", "pip", "pandas, polars, sqlalchemy", ["clients::pandas_polars_duckdb_and_sqlalchemy"]),
    ("Flight SQL for Node", "npm", "@lancedb/arrow-flight-sql-client", ["clients::flight_sql_for_node"]),
]
# What does not work in its newest version together with the others.
HELD = {"sqlalchemy": "sqlalchemy<2"}
# What the tables of the page stand between.
MATRIX = "<!-- matrix -->\n", "<!-- end of matrix -->"
SUITES = "<!-- suites -->\n", "<!-- end of suites -->"
HEAD = ["| library | package | version | passed | failed | whose fault |", "|---|---|---|---|---|---|"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pinned", action="store_true")
    parser.add_argument("--suites", action="store_true")
    parser.add_argument("--tests", type=Path)
    asked = parser.parse_args()
    failed = 0
    if not asked.suites:
        python = Path(os.environ.get("QUERENT_PYTHON") or CACHE / "venv" / "bin" / "python")
        node = Path(os.environ.get("QUERENT_NODE") or CACHE / "node")
        if not asked.pinned:
            python, node = install_newest(CACHE / "clients-newest")
        results = run_tests(python, node, asked.tests)
        versions = {"pip": pip_versions(python), "npm": lambda package: npm_version(node, package)}
        failed += write_table(MATRIX, [row_of(library, results, versions) for library in LIBRARIES])
    if not asked.pinned:
        failed += write_table(SUITES, run_suites(CACHE / "clients-newest" / "suites"))
    sys.exit(1 if failed else 0)


def install_newest(folder):
    python, node = folder / "venv" / "bin" / "python", folder / "node"
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    names = [re.split("[=<>]", line.strip())[0] for line in (ROOT / "scripts/requirements/clients.in").open()]
    names = [HELD.get(name, name) for name in names if name and not name.startswith("-")]
    subprocess.run([python, "-m", "pip", "install", "-q", "--upgrade", *names], check=True)
    node.mkdir(parents=True, exist_ok=True)
    wanted = json.loads((ROOT / "scripts/requirements/node/package.json").read_text())["dependencies"]
    (node / "package.json").write_text(json.dumps({"private": True, "type": "module"}))
    newest = [f"{package}@latest" for package in wanted]
    subprocess.run(["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", *newest], cwd=node, check=True)
    return python, node


def run_tests(python, node, program):
    """Returns what became of each test, by its name."""
    names = sorted({name for _, _, _, tests in LIBRARIES for name in tests})
    environment = os.environ | {"QUERENT_PYTHON": str(python), "QUERENT_NODE": str(node), "RUST_BACKTRACE": "0"}
    command = ["cargo", "test", "--workspace", "--test", "it", "--", *names]
    if program:
        command = [program.resolve(), "--test-threads", "2", *names]
        # What `cargo test` would say; the tests that need the binary `querent` ask cargo to build it.
        environment |= {"CARGO_MANIFEST_DIR": str(ROOT / "tests"), "CARGO": shutil.which("true")}
    run = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
    results = dict(re.findall(r"^test (\S+) \.\.\. (ok|FAILED|ignored)", run.stdout, re.M))
    if not results:
        sys.exit("the tests did not run; see above")
    return results


def pip_versions(python):
    listed = subprocess.run([python, "-m", "pip", "list", "--format=json"], check=True, stdout=subprocess.PIPE)
    versions = {package["name"].lower().replace("_", "-"): package["version"] for package in json.loads(listed.stdout)}
    return lambda package: versions.get(package, "absent")


def npm_version(node, package):
    about = node / "node_modules" / package / "package.json"
    return json.loads(about.read_text())["version"] if about.exists() else "absent"


def row_of(library, results, versions):
    """Library, package, version, passed, failed."""
    name, registry, package, tests = library
    outcomes = [outcome for test, outcome in results.items() if any(test.startswith(start) for start in tests)]
    version = ", ".join(versions[registry](one) for one in package.split(", "))
    return name, f"`{package}` ({registry})", version, outcomes.count("ok"), outcomes.count("FAILED")


def write_table(marks, rows):
    """Writes a table of the page, and returns how many of its rows have failures. What people wrote of those is kept."""
    begin, end = marks
    before, rest = PAGE.read_text().split(begin)
    old, after = rest.split(end)
    notes = {cells[1].strip(): cells[-2].strip() for cells in (line.split("|") for line in old.splitlines()) if len(cells) > 5}
    lines = [f"Tested on {datetime.date.today()}:", "", *HEAD]
    for name, package, version, passed, failed in rows:
        note = (notes.get(name) or "not looked at") if failed else ""
        lines.append(f"| {name} | {package} | {version} | {passed} | {failed} | {note} |")
    PAGE.write_text(before + begin + "\n".join(lines) + "\n" + end + after)
    print("\n".join(lines))
    return sum(1 for row in rows if row[-1])


main()
