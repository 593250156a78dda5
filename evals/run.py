"""Runs the programs of the tasks on an engine, or has them written.

    python3 evals/run.py --engine ptc --programs evals/programs/ptc [ID..]
    python3 evals/run.py --engine ptc --write 'COMMAND' --programs DIR [--repairs N] [ID..]
    python3 evals/run.py --engine ptc --prompts DIR [ID..]
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import subprocess
import sys
from collections import Counter
from typing import Any

import engines
import prompts
import values
from tools import WORLDS, World

Result = dict[str, Any]


class CommandFailed(Exception):
    """The command that writes programs failed: that says nothing about its programs."""


def judge(engine: engines.Engine, task: dict[str, Any], program: str) -> Result:
    """Runs a program, and compares its value and the state of the tools with the task's."""
    world = WORLDS.get(task["id"], World)(task)
    outcome = engine.run(program, task, world)
    result = {"task": task["id"], "calls": world.calls}
    if outcome.error is not None:
        return {**result, "outcome": "error", "detail": outcome.error}
    state = json.loads(json.dumps(world.state()))
    different = values.difference(task["answer"], outcome.value) or values.difference(task.get("state"), state, "state of the tools")
    return {**result, "outcome": "wrong" if different else "right", "detail": different, "value": outcome.value}


def run_written(engine: engines.Engine, task: dict[str, Any], programs: pathlib.Path) -> Result:
    path = programs / (task["id"] + engine.suffix)
    if not path.exists():
        return {"task": task["id"], "calls": 0, "outcome": "error", "detail": f"no program: {path} does not exist"}
    return judge(engine, task, path.read_text(encoding="utf-8"))


def ask(command: str, prompt: str, task: dict[str, Any]) -> str:
    """Runs the command with a prompt, and returns the program of its reply."""
    done = subprocess.run(command, shell=True, input=prompt, stdout=subprocess.PIPE, text=True, encoding="utf-8", env={**os.environ, "EVALS_TASK": task["id"]})
    if done.returncode:
        raise CommandFailed(f"{task['id']}: the command ended with exit code {done.returncode}; go on with the ids of this and the following tasks")
    return prompts.program_of(done.stdout)


def write(engine: engines.Engine, task: dict[str, Any], programs: pathlib.Path, command: str, repairs: int) -> Result:
    """Has a program written and runs it; after an error has it repaired. A wrong value is no reason: its writer would not see it either."""
    text = prompts.prompt(engine, task)
    program = ask(command, text, task)
    tries: list[Result] = []
    while True:
        (programs / (task["id"] + engine.suffix)).write_text(program, encoding="utf-8")
        tries.append({**judge(engine, task, program), "program": program})
        if tries[-1]["outcome"] != "error" or len(tries) > repairs:
            return {**tries[-1], "tries": tries}
        program = ask(command, prompts.repair(text, program, tries[-1]["detail"]), task)


def counted(results: list[Result]) -> str:
    counts = Counter(result["outcome"] for result in results)
    errors = f"{counts['error']} error{'' if counts['error'] == 1 else 's'}"
    return f"{counts['right']} of {len(results)} right, {counts['wrong']} wrong, {errors}"


def report(engine: engines.Engine, results: list[Result], options: argparse.Namespace) -> int:
    if options.write:
        print(f"{engine.name}: first try: {counted([result['tries'][0] for result in results])}")
        repaired = sum(len(result["tries"]) > 1 and result["outcome"] == "right" for result in results)
        print(f"{engine.name}: after repair: {counted(results)} ({repaired} repaired)")
    else:
        print(f"{engine.name}: {counted(results)}")
    if options.json:
        options.json.write_text(json.dumps({"engine": engine.name, "results": results}, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    right = sum(result["outcome"] == "right" for result in results)
    if right < options.min:
        print(f"fewer than {options.min} are right")
        return 1
    return 0


def run(engine: engines.Engine, tasks: list[dict[str, Any]], options: argparse.Namespace) -> int:
    if options.prompts:
        options.prompts.mkdir(parents=True, exist_ok=True)
        for task in tasks:
            (options.prompts / f"{task['id']}.txt").write_text(prompts.prompt(engine, task), encoding="utf-8")
        print(f"{engine.name}: wrote {len(tasks)} prompts to {options.prompts}")
        return 0
    programs = options.programs or values.HERE / "programs" / engine.folder
    results = []
    if options.write:
        programs.mkdir(parents=True, exist_ok=True)
    for task in tasks:
        if options.write:
            result = write(engine, task, programs, options.write, options.repairs)
        else:
            result = run_written(engine, task, programs)
        results.append(result)
        if result["outcome"] != "right":
            print(f"{task['id']}: {result['outcome']}: " + result["detail"].replace("\n", "\n    "), flush=True)
    return report(engine, results, options)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ids", nargs="*", metavar="ID", help="tasks; all if none is given")
    parser.add_argument("--engine", choices=engines.NAMES, required=True)
    parser.add_argument("--programs", type=pathlib.Path, metavar="DIR", help="folder of the programs, ID.clj or ID.py [default: evals/programs/ptc or python]")
    parser.add_argument("--ptcl", metavar="PATH", help="the command ptcl [default: the environment variable PTCL, or ptcl]")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the results to a file")
    parser.add_argument("--min", type=int, default=0, metavar="N", help="exit with 1 if fewer tasks are right")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--write", metavar="COMMAND", help="shell command that reads a prompt and prints a program; EVALS_TASK has the task's id")
    mode.add_argument("--prompts", type=pathlib.Path, metavar="DIR", help="only write the prompts, one file for each task")
    parser.add_argument("--repairs", type=int, default=0, metavar="N", help="with --write: how often a program that fails is written again")
    options = parser.parse_args()
    if options.write and not options.programs:
        parser.error("--write needs --programs DIR, where it saves the programs")
    tasks = values.select(values.load(), options.ids)
    try:
        engine = engines.make(options.engine, options.ptcl)
    except engines.EngineMissing as missing:
        print(missing, file=sys.stderr)
        return 2
    try:
        return run(engine, tasks, options)
    except CommandFailed as failed:
        print(failed, file=sys.stderr)
        return 2
    finally:
        engine.close()


if __name__ == "__main__":
    sys.exit(main())
