"""Tests of the tasks, the reference and the runner: `python3 -m unittest discover evals`. PTCL names the command ptcl."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from typing import Any
from unittest import mock

import engines
import prompts
import reference
import run
import values
from tools import WORLDS, ToolError

TASKS = {task["id"]: task for task in values.load()}
SUM = {"id": "sum", "question": "Sum `xs`.", "data": {"xs": [1, 2, 3.5]}, "answer": {"sum": 6.5, "none": None}}
PAY = {
    **TASKS["transfer-queue"],
    "data": {"to": "B"},
    "hidden": {"accounts": {"A": 10, "B": 0}},
    "answer": {"left": 4, "refused": True},
    "state": {"accounts": {"A": 4, "B": 6}, "carried_out": [["A", "B", 6]]},
}
PYTHON = {
    "right": 'print("noise")\nresult = {"sum": sum(data["xs"]), "none": None}',
    "wrong": 'result = {"sum": 7, "none": None}',
    "error": 'result = data["missing"]',
    "unset": 'total = sum(data["xs"])',
    "pay": """left = transfer(from_account="A", to_account=data["to"], amount=6)["balance"]
try:
    transfer("A", "B", 50)
    refused = False
except RuntimeError as error:
    refused = "insufficient funds" in str(error)
result = {"left": left, "refused": refused}""",
    "pretend": 'result = {"left": 4, "refused": True}',
}
PROGRAMS = {
    "ptc": {
        "right": '(println "noise") {:sum (sum data/xs) :none nil}',
        "wrong": "{:sum 7 :none nil}",
        "error": "(inc nil)",
        "unset": '(fail "no total")',
        "pay": """(def left (:balance (tool/transfer {:from_account "A" :to_account data/to :amount 6})))
(def refused (try (do (tool/transfer {:from_account "A" :to_account "B" :amount 50}) false)
  (catch Exception e (boolean (re-find #"insufficient funds" (:message e))))))
{:left left :refused refused}""",
        "pretend": "{:left 4 :refused true}",
    },
    "cpython": PYTHON,
    "monty": PYTHON,
}
SAYS = {"ptc": ("inc", "no total"), "cpython": ("KeyError: 'missing'", "variable result"), "monty": ("KeyError", "variable result")}


class Reference(unittest.TestCase):
    def test_agrees_with_the_tasks(self) -> None:
        for task in TASKS.values():
            expected = json.loads(json.dumps(reference.solve(task)))
            self.assertIsNone(values.difference(expected, {key: task[key] for key in ("answer", "state") if key in task}), task["id"])

    def test_tasks_are_complete(self) -> None:
        self.assertEqual(len(TASKS), len(values.load()), "an id occurs twice")
        self.assertEqual({id for id, task in TASKS.items() if task.get("tools")}, set(WORLDS))
        for id, world in WORLDS.items():
            for tool in TASKS[id]["tools"]:
                self.assertTrue(callable(getattr(world, tool["name"])), tool["name"])
                self.assertIn(tool["effect"], ("read", "write"))

    def test_refuses_to_round_the_middle(self) -> None:
        self.assertEqual(reference.rounded(reference.exact(2.346), 2), 2.35)
        with self.assertRaises(ValueError):
            reference.rounded(reference.exact(2.345), 2)


class Values(unittest.TestCase):
    def test_difference(self) -> None:
        same = [(1, 1.0), (0.1 + 0.2, 0.3), ([{"a": None}], [{"a": None}]), ({"a": 1, "b": 2}, {"b": 2, "a": 1})]
        other = [(1, 1.000001), (1, True), (0, None), ("1", 1), ([1, 2], [2, 1]), ([1], [1, 1]), ({"a": 1}, {}), ({}, {"a": None}), ([], {})]
        for expected, got in same:
            self.assertIsNone(values.difference(expected, got))
        for expected, got in other:
            self.assertIsNotNone(values.difference(expected, got), (expected, got))
        self.assertEqual(values.difference({"a": [{"b": 1}]}, {"a": [{"b": 2}]}), "answer.a[0].b: expected 1, got 2")


class Worlds(unittest.TestCase):
    def test_checks_arguments_and_counts_calls(self) -> None:
        world = WORLDS["batch-lookup"](TASKS["batch-lookup"])
        refused = [{}, {"ids": []}, {"ids": "u1"}, {"ids": [1]}]
        for arguments in refused:
            with self.assertRaises(ToolError):
                world.call("get_users", arguments)
        with self.assertRaisesRegex(ToolError, "too many calls: at most 4"):
            world.call("get_users", {"ids": ["u1"]})

    def test_runs_do_not_share_state(self) -> None:
        for _ in range(2):
            world = WORLDS["transfer-queue"](PAY)
            self.assertEqual(world.call("transfer", {"from_account": "A", "to_account": "B", "amount": 6}), {"balance": 4})
            self.assertEqual(world.state(), PAY["state"])


class Prompts(unittest.TestCase):
    def test_a_program_is_taken_from_a_reply(self) -> None:
        replies = {
            "(inc 1)": "(inc 1)\n",
            "```clojure\n(inc 1)\n```": "(inc 1)\n",
            "Here it is:\n\n```\n(inc 1)\n(dec 2)\n```\nUse it as `x`, or:\n```\n1\n```\n": "(inc 1)\n(dec 2)\n",
        }
        for reply, program in replies.items():
            self.assertEqual(prompts.program_of(reply), program)

    def test_a_sample_is_short(self) -> None:
        self.assertEqual(prompts.sample({"a": [1, 2, 3, 4, 5], "b": "x" * 250}), {"a": [1, 2, 3, "... 2 more"], "b": "x" * 240 + "... 10 more characters"})

    def test_python_sees_the_tools(self) -> None:
        text = prompts.prompt(engines.CPython(), TASKS["transfer-queue"])
        self.assertIn("def transfer(*, from_account: str, to_account: str, amount: int (>= 1)) -> {'balance': int}: ...", text)
        self.assertIn("These tools change something: transfer.", text)
        self.assertIn('data["transfers"]: [{"id": 1,', text)


class OnEngine:
    """The tests that each engine has to pass."""

    name: str
    engine: engines.Engine

    @classmethod
    def setUpClass(cls) -> None:
        try:
            cls.engine = engines.make(cls.name)
        except engines.EngineMissing as missing:
            if cls.name == "ptc" and "PTCL" in os.environ:
                raise
            raise unittest.SkipTest(str(missing)) from None

    @classmethod
    def tearDownClass(cls) -> None:
        cls.engine.close()

    def judged(self, task: Any, program: str) -> Any:
        return run.judge(self.engine, task, PROGRAMS[self.name][program])

    def test_right(self) -> None:
        self.assertEqual(self.judged(SUM, "right"), {"task": "sum", "calls": 0, "outcome": "right", "detail": None, "value": SUM["answer"]})

    def test_wrong(self) -> None:
        result = self.judged(SUM, "wrong")
        self.assertEqual((result["outcome"], result["detail"]), ("wrong", "answer.sum: expected 6.5, got 7"))

    def test_error(self) -> None:
        for program, text in zip(("error", "unset"), SAYS[self.name]):
            result = self.judged(SUM, program)
            self.assertEqual(result["outcome"], "error")
            self.assertIn(text, result["detail"])

    def test_tools_and_their_state(self) -> None:
        result = self.judged(PAY, "pay")
        self.assertEqual((result["outcome"], result["detail"], result["calls"]), ("right", None, 2))
        result = self.judged(PAY, "pretend")
        self.assertEqual(result["outcome"], "wrong")
        self.assertIn("state of the tools.accounts.A: expected 4, got 10", result["detail"])

    def test_prompt(self) -> None:
        for task in TASKS.values():
            text = prompts.prompt(self.engine, task)
            self.assertIn(task["question"], text)
            for tool in task.get("tools", []):
                self.assertIn(f"tool/{tool['name']} (" if self.name == "ptc" else f"def {tool['name']}(", text)

    def test_a_program_is_repaired(self) -> None:
        task = TASKS["first-bad-build"]
        broken = PROGRAMS[self.name]["error"]
        answer = task["answer"]
        lisp = f'{{:first_bad {answer["first_bad"]} :author "{answer["author"]}"}}'
        fixed = lisp if self.name == "ptc" else f"result = {answer}"
        with tempfile.TemporaryDirectory() as directory:
            model = pathlib.Path(directory, "model.py")
            model.write_text(
                "import os, sys\nprompt = sys.stdin.read()\nassert os.environ['EVALS_TASK'] == 'first-bad-build' and 'Builds are numbered' in prompt\n"
                f"seen = 'It failed:' in prompt and {broken!r} in prompt and {SAYS[self.name][0]!r} in prompt\n"
                f"print('```\\n' + ({fixed!r} if seen else {broken!r}) + '\\n```')\n"
            )
            command = ["--engine", self.name, "--write", f'"{sys.executable}" "{model}"', "--programs", directory, "first-bad-build"]
            once = runner(*command)
            self.assertIn(f"{self.name}: first try: 0 of 1 right, 0 wrong, 1 error\n{self.name}: after repair: 0 of 1 right, 0 wrong, 1 error (0 repaired)\n", once.stdout)
            twice = runner(*command, "--repairs", "2", "--json", f"{directory}/results.json")
            self.assertEqual(
                twice.stdout,
                f"{self.name}: first try: 0 of 1 right, 0 wrong, 1 error\n{self.name}: after repair: 1 of 1 right, 0 wrong, 0 errors (1 repaired)\n",
            )
            self.assertEqual(pathlib.Path(directory, "first-bad-build" + self.engine.suffix).read_text(), fixed + "\n")
            tries = json.loads(pathlib.Path(directory, "results.json").read_text())["results"][0]["tries"]
            self.assertEqual([tried["outcome"] for tried in tries], ["error", "right"])


class OnPtc(OnEngine, unittest.TestCase):
    name = "ptc"

    def test_parallel_calls(self) -> None:
        task = {**TASKS["batch-lookup"], "answer": 3}
        program = '(count (pmap (fn [id] (tool/get_users {:ids [id]})) ["u1" "u2" "u3"]))'
        result = run.judge(self.engine, task, program)
        self.assertEqual((result["outcome"], result["calls"]), ("right", 3))

    def test_a_program_that_goes_on_calling(self) -> None:
        task = {**TASKS["batch-lookup"], "calls": 10**6}
        program = '(doseq [n (range 9000)] (tool/get_users {:ids ["u1"]}))'
        # The service itself starts with the usual limits.
        self.judged(SUM, "right")
        with mock.patch.object(engines, "SECONDS", 0.01):
            result = run.judge(self.engine, task, program)
        self.assertEqual((result["outcome"], result["detail"]), ("error", "timed out after 0.06 seconds"))


class OnCPython(OnEngine, unittest.TestCase):
    name = "cpython"

    def test_a_program_that_does_not_end(self) -> None:
        with mock.patch.object(engines, "SECONDS", 1):
            result = run.judge(self.engine, SUM, "while True: pass")
        self.assertEqual((result["outcome"], result["detail"]), ("error", "timed out after 1 seconds"))

    def test_a_program_that_ends_the_interpreter(self) -> None:
        result = run.judge(self.engine, SUM, "import os\nos._exit(0)")
        self.assertEqual((result["outcome"], result["detail"]), ("error", "the program ended the interpreter"))

    def test_a_result_that_is_not_json(self) -> None:
        self.assertIn("result is not JSON", run.judge(self.engine, SUM, "result = {1, 2}")["detail"])


class OnMonty(OnEngine, unittest.TestCase):
    name = "monty"


def runner(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(values.HERE / "run.py"), *arguments], capture_output=True, text=True, env={**os.environ, "PYTHONIOENCODING": "utf-8"})


class Runner(unittest.TestCase):
    def test_lines_and_exit_codes(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            answer = TASKS["dense-rank"]["answer"]
            pathlib.Path(directory, "dense-rank.py").write_text(f"result = {answer!r}\n")
            pathlib.Path(directory, "csv-text.py").write_text("result = {}\n")
            chosen = ["--engine", "cpython", "--programs", directory, "dense-rank", "csv-text", "free-slots"]
            done = runner(*chosen)
            self.assertEqual(done.returncode, 0)
            self.assertEqual(
                done.stdout.splitlines(),
                [
                    "csv-text: wrong: answer: missing longest, totals",
                    f"free-slots: error: no program: {directory}/free-slots.py does not exist",
                    "cpython: 1 of 3 right, 1 wrong, 1 error",
                ],
            )
            self.assertEqual([runner(*chosen, "--min", least).returncode for least in ("1", "2")], [0, 1])

    def test_failures_of_the_runner(self) -> None:
        done = runner("--engine", "ptc", "--ptcl", "/nonexistent/ptcl")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("ptcl not found", done.stderr)
        with tempfile.TemporaryDirectory() as directory:
            done = runner("--engine", "cpython", "--write", "exit 3", "--programs", directory, "csv-text")
            self.assertEqual(done.returncode, 2)
            self.assertIn("csv-text: the command ended with exit code 3", done.stderr)


if __name__ == "__main__":
    unittest.main()
