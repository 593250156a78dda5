"""Tools of this process that a run in the service calls."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from .._engine import to_json
from .._errors import ToolError
from ..tools import Tool
from ._models import OpenCall

_log = logging.getLogger("ptc_lisp")

ToolLike = Tool | Callable[..., Any]
"""A tool, or a function that becomes one as with the decorator `tool`."""


@dataclass
class ServiceCall:
    """A call as the function of a tool sees it, in a parameter that is annotated with `ptc_lisp.ToolCall`.

    It has the attributes of that class. `remaining` is always `None`: the time of a run does not pass while it waits for
    its client.
    """

    tool: str
    """The name of the tool."""
    place: str
    """The name of the call in its run."""
    key: str
    """A unique key of the call, the same whenever it is repeated."""
    traceparent: str | None = None
    """Always `None`: the service does not pass it to clients."""
    remaining: float | None = None
    """Always `None`."""
    is_cancelled: bool = field(default=False)
    """Whether the result is needed no longer."""


def by_name(*several: Iterable[ToolLike]) -> dict[str, Tool]:
    """Returns tools by name; later ones replace earlier ones. Raises `ValueError` for one that the service cannot offer."""
    tools: dict[str, Tool] = {}
    for given in several:
        for one in given:
            made = one if isinstance(one, Tool) else Tool.from_function(one)
            _check(made)
            tools[made.name] = made
    return tools


def _check(tool: Tool) -> None:
    options = {
        "tagged": tool.tagged,
        "max_calls": tool.max_calls is not None,
        "concurrency": tool.concurrency is not None,
        "redact": bool(tool.redact),
    }
    for name, is_set in options.items():
        if is_set:
            raise ValueError(
                f"the tool {tool.name} has {name}, which the service does not have for tools of clients; "
                f"leave {name} out, or configure the tool in the service"
            )


def described(tool: Tool) -> str:
    """Returns the description of a tool for a request, as JSON text."""
    fields = ['"client":true']
    for name, text in (("description", tool.description), ("signature", tool.signature)):
        if text:
            fields.append(f'"{name}":{json.dumps(text)}')
    for name, schema in (("input", tool.input_schema), ("output", tool.output_schema)):
        if schema is not None:
            fields.append(f'"{name}":{schema}')
    if tool.cached:
        fields.append('"cache":true')
    return "{" + ",".join(fields) + "}"


class Served:
    """A call that a function of this process serves. The clients call it; what they reply is made here."""

    def __init__(self, tool: Tool, open_call: OpenCall) -> None:
        assert tool.function is not None
        self.tool = tool
        self.open_call = open_call
        self.function = tool.function
        self.call = ServiceCall(tool.name, open_call.name, f"{open_call.run_id}/{open_call.name}")

    def arguments(self) -> dict[str, Any]:
        """Returns the arguments of the function."""
        arguments = dict(self.open_call.arguments)
        if self.tool.adapt is not None:
            arguments = self.tool.adapt(arguments)
        if self.tool.call_parameter is not None:
            arguments[self.tool.call_parameter] = self.call
        return arguments

    def begin(self) -> Any:
        """Calls the function. An async function returns its coroutine."""
        return self.function(**self.arguments())

    def result(self, returned: Any) -> str:
        """Returns the reply with what the function returned, as JSON text."""
        dumped = self.tool.dump(returned) if self.tool.dump is not None else returned
        return f'{{"result":{to_json(dumped, "its result")},"phase":{json.dumps(self.open_call.phase)}}}'

    def failed(self, error: Exception) -> str:
        """Returns the reply with an exception of the function, as JSON text."""
        text = str(error)
        if isinstance(error, ToolError):
            return self.error(text, error.code)
        _log.warning("tool/%s raised", self.tool.name, exc_info=error)
        name = type(error).__name__
        return self.error(f"{name}: {text}" if text else name)

    def error(self, message: str, code: str | int | None = None) -> str:
        """Returns the reply with an error, as JSON text."""
        described: dict[str, Any] = {"message": message}
        if code is not None:
            described["code"] = code
        return json.dumps({"error": described, "phase": self.open_call.phase})
