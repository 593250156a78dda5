"""FastMCP: a server whose clients write programs over its tools.

    from fastmcp import FastMCP
    from ptc_lisp.adapters.fastmcp import LispCodeMode

    server = FastMCP("shop", transforms=[LispCodeMode()])

Every tool of the catalogue is a function of the program: `(tool/price {:sku "KB-01"})`. With another `CodeMode` of your own,
use `LispSandbox` as its `sandbox_provider`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from fastmcp.exceptions import ToolError as FastMCPToolError
from fastmcp.experimental.transforms.code_mode import CodeMode
from fastmcp.server.context import Context
from fastmcp.tools.base import Tool as FastMCPTool
from fastmcp.tools.base import ToolResult
from pydantic import Field

from .. import Engine, Limits, Outcome, Tool, ToolError
from ._answers import CODE, answer, plain

_LIMITS = Limits(timeout=30.0, heap_mb=100)


class LispSandbox:
    """A `SandboxProvider` of FastMCP: runs programs, in which `call_tool` is `(tool/call_tool {...})`.

    `engine_options` are those of `Engine`, such as `isolation="process"`. The default limits are those of FastMCP's own
    provider: 30 seconds and 100 MB.
    """

    def __init__(self, **engine_options: Any) -> None:
        """Creates a provider."""
        self.engine_options: dict[str, Any] = {"limits": _LIMITS, **engine_options}

    async def run(
        self,
        code: str,
        *,
        inputs: dict[str, Any] | None = None,
        external_functions: dict[str, Callable[..., Any]] | None = None,
    ) -> Any:
        """Runs a program with the inputs as its data. Raises FastMCP's `ToolError` with the report if it fails."""
        functions = (external_functions or {}).items()
        tools = [Tool.from_function(function, name=name) for name, function in functions]
        return _result(await Engine(tools=tools, **self.engine_options).run_async(code, data=inputs))


class LispCodeMode(CodeMode):
    """FastMCP's `CodeMode` for programs in PTC-Lisp, with one function for each tool that the client may see."""

    def __init__(self, *, engine_options: dict[str, Any] | None = None, **options: Any) -> None:
        """Creates the transform. `engine_options` are those of `Engine`, and `options` those of `CodeMode`."""
        self._sandbox = LispSandbox(**(engine_options or {}))
        super().__init__(sandbox_provider=self._sandbox, **options)

    def _build_execute_description(self) -> str:
        if self.execute_description is not None:
            return self.execute_description
        prompt = Engine().prompt()
        return f"Runs a program that calls tools: (tool/NAME {{:param value}}).\n\n{prompt}"

    def _make_execute_tool(self) -> FastMCPTool:
        async def execute(
            code: Annotated[str, Field(description=CODE)],
            ctx: Context = None,  # type: ignore[assignment]
        ) -> Any:
            """Runs a program that calls tools."""
            catalogue: Sequence[FastMCPTool] = await self.get_tool_catalog(ctx)
            engine = Engine(tools=[_tool(tool, ctx) for tool in catalogue], **self._sandbox.engine_options)
            limits = None if self.max_tool_calls is None else Limits(tool_calls=self.max_tool_calls)
            return _result(await engine.run_async(code, limits=limits))

        description = self._build_execute_description()
        return FastMCPTool.from_function(fn=execute, name=self.execute_tool_name, description=description)


def _tool(tool: FastMCPTool, ctx: Context) -> Tool:
    async def call(**arguments: Any) -> Any:
        result = await ctx.fastmcp.call_tool(tool.name, arguments)
        if result.is_error:
            raise ToolError(_text(result) or "the tool returned an error")
        content = result.structured_content
        if content is None:
            return _text(result)
        is_wrapped = bool((tool.output_schema or {}).get("x-fastmcp-wrap-result"))
        return content.get("result") if is_wrapped else content

    reads = tool.annotations is not None and bool(tool.annotations.read_only_hint)
    return Tool(
        tool.name,
        function=call,
        description=tool.description or "",
        input_schema=tool.parameters,
        effect="read" if reads else "unknown",
    )


def _text(result: ToolResult) -> str:
    return "\n".join(text for text in (getattr(part, "text", None) for part in result.content) if text)


def _result(outcome: Outcome) -> Any:
    if not outcome.ok:
        raise FastMCPToolError(answer(outcome))
    return plain(outcome)
