#!/usr/bin/env python3
"""Makes an animated SVG of a terminal session that `script --log-out TEXT --log-timing TIMES` has recorded.

`make demo` as docs/demo.svg, by a run of one's own:

    script -q --log-out demo.txt --log-timing demo.times -c "stty cols 100; make demo"
    python3 scripts/record_svg.py demo.txt demo.times --title "make demo" > docs/demo.svg

Every line is as it was printed, at its time; only pauses are shortened, to --pause seconds, and the title says so.
Lines of progress are shown as they were last, and bold and faint text as such; other codes of the terminal are left out.
"""

import argparse
import html
import re

ROW, CHARACTER, MARGIN = 17, 7.8, 14
CODE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("text", help="what `script` wrote by --log-out")
    arguments.add_argument("times", help="what it wrote by --log-timing")
    arguments.add_argument("--title", default="")
    arguments.add_argument("--pause", type=float, default=1.0, help="seconds that a pause takes at most")
    arguments.add_argument("--width", type=int, default=100, help="characters of a line")
    arguments.add_argument("--replace", nargs=2, action="append", default=[], metavar=("TEXT", "BY"))
    given = arguments.parse_args()
    frames, seconds = recorded(given.text, given.times, given.replace, given.width)
    print(svg(frames, seconds, given))


def recorded(text, times, replacements, width):
    """Returns the lines that stay, each with the time when it was whole, and how long the session took."""
    with open(text, "rb") as file:
        log = file.read()
    log = log[log.index(b"\n") + 1 :]
    lines, at, clock, line, column = [], 0, 0.0, [], 0
    pending = b""
    with open(times) as file:
        for entry in file:
            delay, count = entry.split()[-2:]
            clock += float(delay)
            pending += log[at : at + int(count)]
            at += int(count)
            # A character of several bytes may arrive in two parts.
            try:
                chunk, pending = pending.decode(), b""
            except UnicodeDecodeError:
                continue
            for piece in re.split(r"(\x1b\[[0-9;?]*[A-Za-z]|\r|\n)", chunk):
                code = CODE.fullmatch(piece)
                if piece == "\n":
                    lines.append((clock, line))
                    line, column = [], 0
                elif piece == "\r":
                    column = 0
                elif code and code[2] == "m":
                    line.insert(column, (piece, "code"))
                    column += 1
                elif code and code[2] == "K":
                    line, column = [], 0
                elif code and code[2] == "A":
                    # Bars are drawn over themselves; what stands at the end is what stays.
                    for _ in range(min(int(code[1] or 1), len(lines))):
                        line = lines.pop()[1]
                    column = 0
                elif not code:
                    for character in piece:
                        line[column : column + 1] = [(character, "text")]
                        column += 1
    if line:
        lines.append((clock, line))
    shown = []
    for moment, cells in lines:
        content = "".join(character for character, _ in cells).rstrip()
        for old, new in replacements:
            content = content.replace(old, new)
        if re.match(r"\s*[\u2801-\u28ff] ", content):
            continue
        shown.append((moment, content))
    while shown and not CODE.sub("", shown[-1][1]).strip():
        shown.pop()
    while shown and not CODE.sub("", shown[0][1]).strip():
        shown.pop(0)
    return shown, clock


def spans(content, width):
    """Returns the spans of SVG of a line with the terminal's codes."""
    style, made, left = "", [], width
    for piece in re.split(r"(\x1b\[[0-9;?]*[A-Za-z])", content):
        code = CODE.fullmatch(piece)
        if code:
            style = {"1": ' class="b"', "2": ' class="f"'}.get(code[1], "")
        elif piece:
            part, left = piece[:left], max(left - len(piece), 0)
            made.append(f"<tspan{style}>{html.escape(part, quote=False)}</tspan>")
    return "".join(made)


def svg(lines, seconds, given):
    clock, before, rows = 0.5, lines[0][0], []
    for index, (moment, content) in enumerate(lines):
        clock += min(max(moment - before, 0.0), given.pause)
        before = moment
        y = MARGIN + ROW * (index + 2)
        placed = f'xml:space="preserve" x="{MARGIN}" y="{y}" style="animation-delay:{clock:.2f}s"'
        rows.append(f"<text {placed}>{spans(content, given.width)}</text>")
    width, height = round(given.width * CHARACTER + 2 * MARGIN), MARGIN * 2 + ROW * (len(lines) + 2)
    title = f"{given.title}: a recording of {seconds:.0f} seconds, its pauses shortened"
    return f"""<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">
<title>{html.escape(title)}</title>
<style>
text {{ font: 13px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #d7dae0; white-space: pre; }}
text:not(.t) {{ opacity: 0; animation: shown 0.05s forwards; }}
.b {{ font-weight: bold; fill: #ffffff; }} .f, .t {{ fill: #8f96a3; }}
@keyframes shown {{ to {{ opacity: 1; }} }}
@media (prefers-reduced-motion: reduce) {{ text:not(.t) {{ opacity: 1; animation: none; }} }}
</style>
<rect width="{width}" height="{height}" rx="8" fill="#1b1e25"/>
<text class="t" x="{MARGIN}" y="{MARGIN + ROW - 6}" xml:space="preserve">{html.escape(title)}</text>
{chr(10).join(rows)}
</svg>"""


if __name__ == "__main__":
    main()
