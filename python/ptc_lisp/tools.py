"""Tools: what a program may call."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeVar, overload

from . import _openapi
from ._engine import check_tool
from ._hints import Parameters

Effect = Literal["read", "write", "unknown"]
"""What the calls of a tool do to the outside world."""

_Function = TypeVar("_Function", bound=Callable[..., Any])
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


class Tool:
    """A tool: its name, what it takes and returns, and the function that serves its calls.

    Make one with the decorator `tool`, or with `Tool.from_json_schema` or `Tool.external`. A tool can be granted to any
    number of engines, and can be called like its function.
    """

    def __init__(
        self,
        name: str,
        *,
        function: Callable[..., Any] | None = None,
        description: str = "",
        input_schema: Mapping[str, Any] | None = None,
        output_schema: Mapping[str, Any] | None = None,
        signature: str | None = None,
        effect: Effect = "unknown",
        idempotent: bool = False,
        cached: bool = False,
        detached: bool = False,
        tagged: bool = False,
        max_calls: int | None = None,
        concurrency: int | None = None,
        redact: Sequence[str] = (),
    ) -> None:
        """Creates a tool.

        - `function` is called with the arguments by name; it may be async. Without one, the tool is external: the host
          replies to its calls (`Engine.start`).
        - `input_schema` and `output_schema` are JSON Schemas; `signature` is the short form, such as
          `"(sku :string) -> :float"`. Arguments and results are checked against them.
        - `effect` is what a call does to the outside world. A run that is resumed repeats only calls of `"read"` tools.
        - `idempotent`: a repeated call has no further effect. A resumed run does not repeat it for that, only those of
          `"read"` tools; but an error of a run that ended during the call does not warn of it. `cached`: a repeated call
          with equal arguments in one run returns the first result.
        - `detached` runs the function in a thread, so that a run ends on time although the function does not return.
        - `tagged` makes failures values of the program: `{:ok result}` or `{:error {...}}`.
        - `max_calls` bounds the calls of a run, and `concurrency` those in progress at once in all runs.
        - `redact` names arguments that the ledger and records must not show.

        Raises `ValueError` when an engine is built with a schema, signature or effect that is not valid.
        """
        self.name = name
        self.description = description
        self.input_schema = None if input_schema is None else json.dumps(input_schema)
        self.output_schema = None if output_schema is None else json.dumps(output_schema)
        self.signature = signature
        self.effect = effect
        self.idempotent = idempotent
        self.cached = cached
        self.detached = detached
        self.tagged = tagged
        self.max_calls = max_calls
        self.concurrency = concurrency
        self.redact = list(redact)
        self.function = function
        self.is_async = function is not None and _is_async(function)
        self.adapt: Callable[[dict[str, Any]], dict[str, Any]] | None = None
        self.dump: Callable[[Any], Any] | None = None
        self.call_parameter: str | None = None

    @classmethod
    def from_function(
        cls, function: Callable[..., Any], *, name: str | None = None, description: str | None = None, **options: Any
    ) -> Tool:
        """Creates a tool from a function: its parameters and result from the type hints, its description from the
        docstring. `options` are those of `Tool`. Raises `TypeError` for hints that have no JSON Schema."""
        text, parameters = _documentation(function)
        hints = Parameters(function, parameters)
        made = cls(
            name or _name_of(function),
            function=function,
            description=text if description is None else description,
            input_schema=hints.input_schema,
            output_schema=hints.output_schema,
            **options,
        )
        made.adapt, made.dump, made.call_parameter = hints.adapt, hints.dump, hints.call_parameter
        return made

    @classmethod
    def from_json_schema(
        cls,
        name: str,
        input_schema: Mapping[str, Any],
        function: Callable[..., Any] | None = None,
        *,
        description: str = "",
        output_schema: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Tool:
        """Creates a tool from JSON Schemas. The function gets the arguments by name."""
        return cls(
            name,
            function=function,
            description=description,
            input_schema=input_schema,
            output_schema=output_schema,
            **options,
        )

    @classmethod
    def external(cls, name: str, signature: str | None = None, *, description: str = "", **options: Any) -> Tool:
        """Creates a tool without a function: a run of `Engine.start` suspends at its calls, and the host replies."""
        return cls(name, signature=signature, description=description, **options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function of the tool, without the checks of an engine."""
        if self.function is None:
            raise TypeError(f"the tool {self.name} is external and has no function")
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<Tool {self.name}>"


class Tools(Sequence[Tool]):
    """Several tools, such as those of an MCP server or of an API."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        """Creates a list of tools."""
        self._tools = list(tools)

    @classmethod
    def from_mcp(cls, tools: Iterable[Any], call: Callable[[str, dict[str, Any]], Any]) -> Tools:
        """Creates tools from the list of an MCP server.

        `tools` has what `tools/list` returns: dicts, or objects of an MCP library, with `name`, `description`,
        `inputSchema`, `outputSchema` and `annotations`. `call(name, arguments)` calls one; it may be async.
        """
        return cls(_of_mcp(_plain_dict(tool), call) for tool in tools)

    @classmethod
    def from_openapi(
        cls,
        document: Mapping[str, Any] | str,
        *,
        base_url: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 30.0,
        max_response_bytes: int = 1_048_576,
        prefix: str = "",
    ) -> Tools:
        """Creates tools from an OpenAPI 3.x document, one for each operation. Needs httpx (`ptc-lisp[client]`).

        - `document` is the parsed document, or its JSON text. References are resolved within it; nothing is fetched.
        - `base_url` is the address of the API; the default is the document's first server.
        - `headers` are sent with each request. Programs do not see them.
        - `timeout` is how many seconds the headers of a response may take, and then the API may send nothing. The response
          ends with the run at the latest. One of more than `max_response_bytes`, or that is compressed, is an error of the
          tool.
        - `prefix` is put before the names, which are the `operationId` of each operation.

        Arguments are the parameters by name, and `body`. GET and HEAD have `effect="read"`, others `"write"`. A response
        with another status than 2xx is an error of the tool with the status as its code, and so is a redirect. An operation
        that is malformed, has a schema that an engine refuses, or cannot be requested, for example with a body of files, is
        left out and logged. Headers that `headers` has, `Authorization`, `Cookie`, and those of the connection are no
        arguments. Requests go only to the scheme, host and port of the address. Cookies of responses are not kept.

        A POST or PATCH that was sent and has no response ends the run with `unknown_call`, which programs do not catch: it
        may have been carried out.

        Raises `ValueError` if the document is not OpenAPI 3.x, or if there is no complete address: that of `base_url`, or of
        the document.
        """
        return cls(_of_openapi(document, base_url, headers, (timeout, max_response_bytes), prefix))

    @overload
    def __getitem__(self, index: int) -> Tool: ...
    @overload
    def __getitem__(self, index: slice) -> list[Tool]: ...
    def __getitem__(self, index: int | slice) -> Tool | list[Tool]:
        return self._tools[index]

    def __len__(self) -> int:
        return len(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools)


def _plain_dict(tool: Any) -> dict[str, Any]:
    if isinstance(tool, Mapping):
        return dict(tool)
    return dict(tool.model_dump(by_alias=True, exclude_none=True))


def _of_mcp(tool: dict[str, Any], call: Callable[[str, dict[str, Any]], Any]) -> Tool:
    name = tool["name"]
    hints = tool.get("annotations") or {}
    effect: Effect = "read" if hints.get("readOnlyHint") else "write" if hints.get("destructiveHint") else "unknown"

    async def call_async(**arguments: Any) -> Any:
        return await call(name, arguments)

    def call_here(**arguments: Any) -> Any:
        return call(name, arguments)

    return Tool(
        name,
        function=call_async if _is_async(call) else call_here,
        description=tool.get("description") or "",
        input_schema=tool.get("inputSchema") or {"type": "object"},
        output_schema=tool.get("outputSchema"),
        effect=effect,
        idempotent=bool(hints.get("idempotentHint")),
    )


def _of_openapi(
    document: Mapping[str, Any] | str,
    base_url: str | None,
    headers: Mapping[str, str] | None,
    bounds: tuple[float, int],
    prefix: str,
) -> Iterator[Tool]:
    try:
        http = _openapi.Connections(headers or {})
    except ImportError:
        raise ImportError("Tools.from_openapi needs httpx; install it with: pip install ptc-lisp[client]") from None
    read = _openapi.Document(document, headers)
    address = base_url.rstrip("/") if base_url is not None else read.base_url()
    if address is None:
        raise ValueError('the document has no complete address of a server; pass base_url="https://..."')
    api = _openapi.Api(http, address, *bounds).checked()

    def make(operation: _openapi.Operation) -> Tool:
        made = Tool(
            operation.name,
            function=_openapi.function_of(operation, api),
            description=operation.description,
            input_schema=operation.input_schema,
            output_schema=operation.output_schema,
            effect="read" if operation.method in _openapi.READS else "write",
            idempotent=operation.method in _openapi.REPEATABLE,
        )
        made.call_parameter = _openapi.CALL
        check_tool(made)
        return made

    return read.made(prefix, base_url is not None, make)


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))


def _name_of(function: Callable[..., Any]) -> str:
    name: str = getattr(function, "__name__", "")
    if not _NAME.match(name):
        raise TypeError(f"{function!r} has no name for programs; pass name=\"...\"")
    return name


def _documentation(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Returns the description of a docstring, and the descriptions of parameters in its section `Args:`."""
    text = inspect.getdoc(function) or ""
    about, _, rest = text.partition("\nArgs:\n")
    if not rest:
        return text.strip(), {}
    parameters: dict[str, str] = {}
    name = None
    for line in rest.splitlines():
        if line and not line.startswith(" "):
            break
        found = re.match(r" {2,4}(\w+)(?: \([^)]*\))?: *(.*)", line)
        if found:
            name = found[1]
            parameters[name] = found[2].strip()
        elif name and line.strip():
            parameters[name] += " " + line.strip()
    return about.strip(), parameters


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    effect: Effect = "unknown",
    idempotent: bool = False,
    cached: bool = False,
    detached: bool = False,
    tagged: bool = False,
    max_calls: int | None = None,
    concurrency: int | None = None,
    redact: Sequence[str] = (),
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Makes a tool of a function, as a decorator. `Tool` describes the options.

    The parameters and the result come from the type hints, the description from the docstring. A parameter annotated with
    `ToolCall` is not an argument: it receives the call itself.
    """
    if function is not None:
        return Tool.from_function(function)
    return lambda function: Tool.from_function(function, **options)
