"""The code of the documentation and the examples runs."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
from service import Service

ROOT = pathlib.Path(__file__).parent.parent.parent
PAGES = [page for page in (ROOT / "README.md", ROOT / "docs/python.md", ROOT / "python/README.md") if page.exists()]


def blocks():
    for page in PAGES:
        text = page.read_text()
        for found in re.finditer(r"^```python\n(.*?)^```", text, re.M | re.S):
            line = text.count("\n", 0, found.start(1))
            yield pytest.param("\n" * line + found[1], page, id=f"{page.name}:{line + 1}")


@pytest.mark.parametrize(("code", "page"), list(blocks()))
def test_a_block(code, page, tmp_path):
    if "ptc_lisp.client" in code:
        with Service(tmp_path) as service:
            run(code.replace("http://127.0.0.1:7117", service.url), page)
    else:
        run(code, page)


def run(code, page):
    exec(compile(code, str(page), "exec"), {"__name__": "page"})


def test_blocks_are_typed(tmp_path):
    pytest.importorskip("mypy")
    for number, block in enumerate(blocks()):
        code, page = block.values
        (tmp_path / f"{page.stem.lower()}_{number}.py").write_text(code)
    arguments = ["--strict", "--cache-dir", tmp_path / "cache", *sorted(tmp_path.glob("*.py"))]
    package = {**os.environ, "MYPYPATH": str(ROOT / "python")}
    done = subprocess.run([sys.executable, "-m", "mypy", *arguments], capture_output=True, text=True, env=package)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("example", sorted((ROOT / "examples/python").glob("*.py")), ids=lambda path: path.name)
def test_an_example(example):
    done = subprocess.run([sys.executable, example], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout, done.stderr
