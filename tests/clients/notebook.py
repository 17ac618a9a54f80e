"""`%%querent` as a notebook's user has it; QUERENT_AGENT_SCRIPT names the agent's answers."""

import sys
import tempfile
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

folder = Path(tempfile.mkdtemp())
(folder / "flights.csv").write_text("carrier,delay\nUA,2\nUA,\nA&A,-1\n")
shell = InteractiveShell.instance()


def run(source):
    with capture_output() as captured:
        result = shell.run_cell(source)
    return result, captured


def value(source):
    result, _ = run(source)
    result.raise_error()
    return result.result


def refused(source):
    result, captured = run(source)
    assert result.error_in_exec is not None, source
    return captured.stdout + captured.stderr


value("%load_ext querent")
assert "querent FOLDER" in run("%querent")[1].stdout
value(f"%querent {folder}/data")
value(f"%%querent\nCREATE EXTERNAL TABLE flights STORED AS CSV LOCATION '{folder}/flights.csv'")
counted = value("%%querent\nSELECT carrier, count(*) AS n FROM flights GROUP BY 1 ORDER BY 1;")
assert counted.fetchall() == [("A&A", 1), ("UA", 2)], counted
page = counted._repr_html_()
assert "<th>carrier</th>" in page and "<td>A&amp;A</td><td>1</td>" in page and "2 rows" in page, page
assert value("%%querent --kql\nflights | count").fetchall() == [(3,)]
assert value("%%querent --out=kept\nSELECT 7 AS n") is None
assert shell.user_ns["kept"].fetchall() == [(7,)]
long = value("%%querent\nSELECT value FROM generate_series(1, 60)")._repr_html_()
assert "60 rows, 50 of them shown" in long and long.count("<td>") == 50, long

_, captured = run("%%querent --ask --session=s --out=answer\nHow many flights?")
answer = shell.user_ns["answer"]
assert answer.text == "There are **3** flights.", answer
shown = [output.data for output in captured.outputs]
assert any("SELECT count(*) AS n FROM flights" in data.get("text/markdown", "") for data in shown), shown
assert any("<td>3</td>" in data.get("text/html", "") for data in shown), shown
_, captured = run("%%querent\n? How many flights?")
assert captured.outputs, "a cell that begins with ? is a question"

# A chart has its rows: what draws it has nothing else to read them from.
_, captured = run("%%querent --ask --out=plotted\nHow many flights did each carrier have?")
rows = [{"carrier": "A&A", "n": 1}, {"carrier": "UA", "n": 2}]
charts = [output.data.get("application/vnd.vegalite.v5+json") for output in captured.outputs]
assert [chart["data"]["values"] for chart in charts if chart] == [rows], charts
assert shell.user_ns["plotted"].chart["data"] == {"name": "table", "values": rows}

assert "unknown table `flihgts`" in refused("%%querent\nSELECT * FROM flihgts")
assert "no option" in refused("%%querent --sqll\nSELECT 1")
assert "empty" in refused("%%querent\n")
assert "no name of a variable" in refused("%%querent --out=class\nSELECT 1")
assert "quotation" in refused("%querent 'data")
# A folder that cannot be opened is said without a traceback, and the one before stays open; so does the same one.
assert "Traceback" not in refused(f"%querent {folder}/flights.csv")
value(f"%querent {folder}/data")
assert value("%%querent\nSELECT count(*) FROM flights").fetchall() == [(3,)]
assert "--ask" in refused("%%querent --session=s\nSELECT 1")
print("ok")
sys.stdout.flush()
