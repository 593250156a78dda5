#!/usr/bin/env python3
"""Draws docs/pictures/terminal.svg: commands as typed, and what they print, in colour.

    cargo build -p ptcl && docs/pictures/terminal.py target/debug/ptcl
"""
import html
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
COMMANDS = [
    "ptcl run -e '(sum-by :total (filterr :paid data/in))' < orders.json",
    "ptcl run -e '(sum-by :total (filter :paid data/in))' < orders.json",
    "ptcl run --table -e '(sort-by :total > data/in)' < orders.json",
    "ptcl run -e '(loop [n 0] (recur (inc n)))'",
]
ORDERS = '[{"id": 1, "total": 25, "paid": true}, {"id": 2, "total": 40, "paid": false}, {"id": 3, "total": 17, "paid": true}]'
COLOURS = {"31": "#ff7b72", "32": "#7ee787", "33": "#e3b341", "34": "#79c0ff", "35": "#d2a8ff", "36": "#79c0ff"}
TEXT, DIM, BACK = "#e6edf3", "#8b949e", "#0d1117"
WIDTH, HEIGHT, MARGIN = 8.43, 19, 18


def spans(line):
    """The parts of a line between its colour codes, each with its style."""
    fill, bold = TEXT, False
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if not part.startswith("\x1b"):
            if part:
                yield part, fill, bold
            continue
        for code in part[2:-1].split(";"):
            if code in ("", "0"):
                fill, bold = TEXT, False
            elif code == "1":
                bold = True
            elif code == "2":
                fill = DIM
            else:
                fill = COLOURS.get(code, fill)


def drawn(number, line):
    y = MARGIN + 14 + number * HEIGHT
    x, out = MARGIN, []
    for part, fill, bold in spans(line):
        weight = ' font-weight="bold"' if bold else ""
        length = f'textLength="{len(part) * WIDTH:.1f}"'
        out.append(f'<text x="{x:.1f}" y="{y}" fill="{fill}"{weight} {length}>{html.escape(part)}</text>')
        x += len(part) * WIDTH
    return "".join(out)


def main():
    ptcl = Path(sys.argv[1]).resolve()
    lines = []
    for command in COMMANDS:
        lines.append(f"\x1b[32m$\x1b[0m {command}")
        script = command.replace("ptcl ", f"{ptcl} --color always ", 1).replace("< orders.json", "")
        done = subprocess.run(["sh", "-c", script], input=ORDERS, capture_output=True, text=True, cwd=ROOT)
        lines += (done.stdout + done.stderr).splitlines() + [""]
    while lines[-1] == "":
        lines.pop()
    width = 2 * MARGIN + WIDTH * max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in lines)
    height = 2 * MARGIN + HEIGHT * len(lines)
    body = "\n".join(drawn(number, line) for number, line in enumerate(lines) if line)
    picture = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" height="{height}">\n'
        f'<rect width="100%" height="100%" rx="8" fill="{BACK}"/>\n'
        f'<g font-family="ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace" font-size="14" xml:space="preserve">\n'
        f"{body}\n</g>\n</svg>\n"
    )
    Path(__file__).with_name("terminal.svg").write_text(picture)


main()
