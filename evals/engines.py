"""The engines: each runs one program on the data and tools of a task."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from typing import Any, NamedTuple

from tools import ToolError, World

SECONDS = 10
"""The time of one program, in every engine."""

HERE = pathlib.Path(__file__).resolve().parent


class EngineMissing(Exception):
    """The engine cannot run here. The text says what to install."""


class Outcome(NamedTuple):
    """How a program ended: with a JSON value, or with the text of an error."""

    value: Any = None
    error: str | None = None


class Engine:
    name: str
    suffix: str
    folder: str

    def run(self, program: str, task: dict[str, Any], world: World) -> Outcome:
        raise NotImplementedError

    def close(self) -> None:
        """Ends what the engine started."""


class Ptc(Engine):
    """Runs programs in `ptcl serve`. The tools of a task are tools of the client, whose calls `run` answers."""

    name, suffix, folder = "ptc", ".clj", "ptc"

    def __init__(self, ptcl: str | None = None) -> None:
        self.ptcl = shutil.which(ptcl or os.environ.get("PTCL") or "ptcl")
        if not self.ptcl:
            raise EngineMissing("ptcl not found: build it, and name it with --ptcl PATH or the environment variable PTCL")
        self.ptcl = os.path.abspath(self.ptcl)
        self.service: subprocess.Popen[str] | None = None

    def start(self) -> None:
        self.directory = tempfile.mkdtemp(prefix="evals-")
        config = pathlib.Path(self.directory, "service.toml")
        config.write_text(f"[limits]\ntimeout_ms = {SECONDS * 1000}\n")
        command = [self.ptcl, "serve", "--listen", "127.0.0.1:0", "--store", str(config.with_name("runs.db")), "--config", str(config), "--isolation", "in-process"]
        service = subprocess.Popen(command, cwd=self.directory, stderr=subprocess.PIPE, text=True)
        lines = []
        for line in service.stderr:
            lines.append(line)
            if "listening on " in line:
                break
        else:
            service.wait()
            service.stderr.close()
            shutil.rmtree(self.directory)
            raise RuntimeError(f"ptcl serve ended: {''.join(lines)}")
        self.url = lines[-1].split("listening on ")[1].strip()
        # The pipe must not fill up.
        self.drain = threading.Thread(target=service.stderr.read, daemon=True)
        self.drain.start()
        self.service = service

    def request(self, path: str, body: Any = None, method: str | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, data, method=method), timeout=90) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{path}: {error.code} {error.read().decode()}") from None

    def run(self, program: str, task: dict[str, Any], world: World) -> Outcome:
        if self.service is None:
            self.start()
        tools = {t["name"]: {"client": True, "description": t["description"], "input": t["parameters"], "output": t["returns"]} for t in task.get("tools", [])}
        request = {"program": program, "data": task["data"], "tools": tools, "omit": ["text", "memory", "limits"]}
        if not tools:
            return self.outcome(self.request("/v1/run", request))
        run = f"/v1/runs/{self.request('/v1/runs', request)['run_id']}"
        deadline = time.monotonic() + 6 * SECONDS
        while True:
            state = self.request(f"{run}?wait=10")
            if state["status"] == "done":
                return self.outcome(state["answer"])
            if state["status"] == "stuck":
                return Outcome(error=f"the run is stuck: {state.get('error')}")
            if time.monotonic() > deadline:
                self.request(run, method="DELETE")
                return Outcome(error=f"timed out after {6 * SECONDS} seconds")
            for call in state["calls"]:
                self.request(f"{run}/calls/{call['call']}", self.reply(world, call))

    @staticmethod
    def reply(world: World, call: dict[str, Any]) -> Any:
        try:
            return {"result": world.call(call["name"], call["arguments"])}
        except ToolError as error:
            return {"error": {"message": str(error)}}

    @staticmethod
    def outcome(answer: dict[str, Any]) -> Outcome:
        if answer.get("outcome") == "fail":
            return Outcome(error=f"the program failed with {json.dumps(answer.get('value'), ensure_ascii=False)}")
        if answer["verdict"] == "ok" and "value" not in answer["truncated"]:
            return Outcome(value=answer.get("value"))
        error = answer.get("error") or {"reason": answer["verdict"], "message": json.dumps(answer.get("value", answer["truncated"]))}
        where = f"line {error['line']}, column {error['column']}: " if error.get("line") else ""
        return Outcome(error=f"{where}{error['reason']}: {error['message']}" + (f"\nhint: {error['hint']}" if error.get("hint") else ""))

    def close(self) -> None:
        if self.service is not None:
            self.service.terminate()
            self.service.wait()
            self.drain.join()
            self.service.stderr.close()
            self.service = None
            shutil.rmtree(self.directory)


class CPython(Engine):
    """Runs programs in a fresh `python3 -I` each. This is no sandbox: a program can do what the user can do."""

    name, suffix, folder = "cpython", ".py", "python"

    def run(self, program: str, task: dict[str, Any], world: World) -> Outcome:
        child = subprocess.Popen(
            [sys.executable, "-I", str(HERE / "child.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8"
        )
        timer = threading.Timer(SECONDS, child.kill)
        timer.start()
        try:
            tools = {tool["name"]: list(tool["parameters"]["properties"]) for tool in task.get("tools", [])}
            self.send(child, {"program": program, "data": task["data"], "tools": tools})
            for line in child.stdout:
                message = json.loads(line)
                if "call" not in message:
                    return Outcome(**message)
                try:
                    self.send(child, {"result": world.call(message["call"], message["arguments"])})
                except ToolError as error:
                    self.send(child, {"error": str(error)})
            return Outcome(error="the program ended the interpreter" if timer.is_alive() else f"timed out after {SECONDS} seconds")
        finally:
            timer.cancel()
            child.kill()
            child.wait()
            child.stdout.close()
            with contextlib.suppress(BrokenPipeError):
                child.stdin.close()

    @staticmethod
    def send(child: subprocess.Popen[str], message: Any) -> None:
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write(json.dumps(message) + "\n")
            child.stdin.flush()


class Monty(Engine):
    """Runs programs in pydantic-monty, an interpreter of a part of Python."""

    name, suffix, folder = "monty", ".py", "python"

    def __init__(self) -> None:
        try:
            import pydantic_monty
        except ImportError:
            raise EngineMissing(f"pydantic-monty not found: {sys.executable} -m pip install pydantic-monty") from None
        self.monty = pydantic_monty
        self.pool = pydantic_monty.Monty()
        self.pool.__enter__()

    def run(self, program: str, task: dict[str, Any], world: World) -> Outcome:
        functions = {tool["name"]: self.function(world, tool) for tool in task.get("tools", [])}
        with self.pool.checkout(limits={"max_feed_duration_secs": SECONDS}) as session:
            try:
                # The program may print; that is not part of the answer.
                session.feed_run(program, inputs={"data": task["data"]}, external_lookup=functions, print_callback=lambda stream, text: None)
                value = session.feed_run("result", external_lookup={})
            except self.monty.MontyError as error:
                shown = error.display() if hasattr(error, "display") else str(error)
                if "name 'result' is not defined" in shown:
                    shown = "the program does not set the variable result"
                return Outcome(error=shown)
        return json_outcome(value)

    @staticmethod
    def function(world: World, tool: dict[str, Any]) -> Any:
        names = list(tool["parameters"]["properties"])

        def call(*args: Any, **arguments: Any) -> Any:
            if len(args) > len(names):
                raise TypeError(f"{tool['name']} takes at most {len(names)} arguments")
            try:
                return world.call(tool["name"], {**dict(zip(names, args)), **arguments})
            except ToolError as error:
                raise RuntimeError(str(error)) from None

        return call

    def close(self) -> None:
        self.pool.__exit__(None, None, None)


def json_outcome(value: Any) -> Outcome:
    """Returns a Python value as JSON: tuples become lists, keys strings. Other values, and NaN, are an error."""
    try:
        return Outcome(value=json.loads(json.dumps(value, allow_nan=False)))
    except (TypeError, ValueError) as error:
        return Outcome(error=f"result is not JSON: {error}")


def make(name: str, ptcl: str | None = None) -> Engine:
    """Returns an engine by its name. Raises EngineMissing if it is not installed."""
    return {"ptc": lambda: Ptc(ptcl), "cpython": CPython, "monty": Monty}[name]()


NAMES = ["ptc", "cpython", "monty"]
