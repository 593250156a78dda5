"""The prompts: what a model sees of an engine and of a task."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

from engines import Engine, Ptc

PYTHON = """Write one {what}.
The variable data is already defined: a dict with the data of the task, made of dict, list, str, int, float, bool and None. Assign the answer to the variable result; it must consist of
these types too. Printed text is ignored. Reading files, the network and starting programs are not needed.
Reply with the program only."""

CPYTHON = "Python 3.11 program that uses only the standard library"

MONTY = """Python program. The interpreter knows most of the language, but no yield, no del and no classes with base classes. Of the standard library it has the main functions of these
modules: collections, csv (reader and DictReader on a list of lines), datetime, decimal, functools, itertools, json, math, re, typing. It has no fractions, heapq, io, statistics and string"""

TOOLS = """Tools are functions that are already defined; call them with keyword arguments. A call that fails raises RuntimeError, whose text says why.
"""


def prompt(engine: Engine, task: dict[str, Any]) -> str:
    """Returns the whole prompt: the language, then the task."""
    language = lisp(engine, task) if isinstance(engine, Ptc) else python(engine, task)
    notes = []
    if task.get("tools"):
        writers = [tool["name"] for tool in task["tools"] if tool["effect"] == "write"]
        if writers:
            notes.append(f"These tools change something: {', '.join(writers)}.")
        if task.get("calls"):
            notes.append(f"The program can make at most {task['calls']} calls in all.")
    data = "\n".join(f"{reading(engine, name)}: {json.dumps(sample(value), ensure_ascii=False)}" for name, value in task["data"].items())
    shapes = f"Data, cut where it says \"... more\":\n{data}" if data else "There is no data."
    return "\n\n".join([language, "Task: " + task["question"], shapes, *notes]) + "\n"


def lisp(engine: Ptc, task: dict[str, Any]) -> str:
    command = [engine.ptcl, "prompt"]
    if task.get("tools"):
        listed = [{"name": t["name"], "description": t["description"], "inputSchema": t["parameters"], "outputSchema": t["returns"]} for t in task["tools"]]
        command += ["--tools", "/dev/stdin"]
        return run(command, json.dumps(listed)) + "\nReply with the program only."
    return run(command, "") + "\nReply with the program only."


def run(command: list[str], text: str) -> str:
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout.strip()


def python(engine: Engine, task: dict[str, Any]) -> str:
    text = PYTHON.format(what=CPYTHON if engine.name == "cpython" else MONTY)
    if not task.get("tools"):
        return text
    return text + "\n\n" + TOOLS + "\n".join(function(tool) for tool in task["tools"])


def function(tool: dict[str, Any]) -> str:
    """Returns a tool as the head of a Python function."""
    schema = tool["parameters"]
    names = sorted(schema["properties"], key=lambda name: name not in schema["required"])
    parameters = [f"{name}: {python_type(schema['properties'][name])}" + ("" if name in schema["required"] else " = None") for name in names]
    return f"def {tool['name']}(*, {', '.join(parameters)}) -> {python_type(tool['returns'])}: ...  # {tool['description']}"


def python_type(schema: dict[str, Any]) -> str:
    kinds = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
    if "enum" in schema:
        return f"Literal[{', '.join(repr(value) for value in schema['enum'])}]"
    types = schema.get("type", [])
    if isinstance(types, list):
        return " | ".join(kinds[kind] for kind in types) or "Any"
    if types == "array":
        limits = [f"{word} {schema[key]}" for word, key in (("at least", "minItems"), ("at most", "maxItems")) if key in schema]
        return f"list[{python_type(schema['items'])}]" + (f" ({' and '.join(limits)})" if limits else "")
    if types == "object":
        fields = [f"{name!r}{'' if name in schema['required'] else ' (may be missing)'}: {python_type(field)}" for name, field in schema.get("properties", {}).items()]
        return f"{{{', '.join(fields)}}}" if fields else "dict[str, Any]"
    limits = [f" {sign} {schema[key]}" for sign, key in ((">=", "minimum"), ("<=", "maximum")) if key in schema]
    return kinds[types] + (f" ({','.join(limits).strip()})" if limits else "")


def reading(engine: Engine, name: str) -> str:
    return f"data/{name}" if isinstance(engine, Ptc) else f'data["{name}"]'


def sample(value: Any, items: int = 3) -> Any:
    """Returns a value with its long lists, objects and strings cut."""
    if isinstance(value, str) and len(value) > 240:
        return value[:240] + f"... {len(value) - 240} more characters"
    if isinstance(value, list):
        if len(value) <= items + 1:
            return [sample(item) for item in value]
        return [sample(item) for item in value[:items]] + [f"... {len(value) - items} more"]
    if isinstance(value, dict):
        shown = list(value.items())[:10]
        more = {"...": f"... {len(value) - 10} more"} if len(value) > 10 else {}
        return {key: sample(item) for key, item in shown} | more
    return value


def repair(text: str, program: str, error: str) -> str:
    """Returns the prompt after a failure."""
    return f"{text}\nYour program was:\n```\n{program.strip()}\n```\n\nIt failed:\n{error}\n\nReply with the whole corrected program only.\n"


def program_of(reply: str) -> str:
    """Returns the program of a model's reply: the longest Markdown fence, or all of it without one."""
    fences = re.findall(r"^[ \t]*```[^\n`]*\n(.*?)^[ \t]*```[ \t]*$", reply, re.MULTILINE | re.DOTALL)
    return (max(fences, key=len) if fences else reply).strip() + "\n"
