"""The command `ptcl`, which is also the template of process isolation."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def find() -> str | None:
    """Returns the path of the program `ptcl`: of `PTCL`, of this package, or of `PATH`."""
    named = os.environ.get("PTCL")
    if named:
        return named
    bundled = Path(__file__).with_name("bin") / "ptcl"
    if bundled.exists():
        return str(bundled)
    found = shutil.which("ptcl")
    # The console command of this package is a script, which cannot be a template.
    if found and Path(found).read_bytes()[:4] == b"\x7fELF":
        return found
    return None


def main() -> None:
    """Runs `ptcl` with the arguments of this process."""
    program = find()
    if program is None:
        sys.exit("ptcl: this package was built without the program; build it with: cargo build --profile dist -p ptcl")
    os.execv(program, [program, *sys.argv[1:]])
