"""Pydantic AI: a capability that lets an agent write programs over its tools.

    from ptc_lisp.adapters.pydantic_ai import LispCodeMode

    agent = Agent(model, tools=[price, stock], capabilities=[LispCodeMode()])

The model sees one tool, which runs a program; each tool of the agent is a function of the program. Tools that need an
approval (`requires_approval=True`) and external tools stay tools of the agent, beside the program: Pydantic AI defers their
calls as always.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ModelRetry, ToolFailed
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
from pydantic_core import SchemaValidator, core_schema

from .. import Engine, Tool, ToolError
from ._answers import CODE, answer, cannot_wait

_ARGUMENTS = SchemaValidator(
    core_schema.typed_dict_schema({"program": core_schema.typed_dict_field(core_schema.str_schema())})
)
_ANY: TypeAdapter[Any] = TypeAdapter(Any)
_INSTEAD = (
    "declare the tool with requires_approval=True, so that it is called beside programs, or use a policy of the engine"
)


def _is_called(tool: ToolsetTool[Any]) -> bool:
    """Returns whether programs may call a tool: it needs neither an approval nor a result from outside."""
    return tool.tool_def.kind == "function"


@dataclass
class LispCodeMode(AbstractCapability[Any]):
    """Replaces the tools of an agent by one that runs programs over them.

    `engine_options` are those of `Engine`. A failed program asks the model to try again, with the report of the error.

    A program cannot wait for an approval of Pydantic AI. So tools with `requires_approval=True`, and external ones, are no
    functions of the program: the model sees them beside it. A tool that raises `ApprovalRequired` or `CallDeferred` when a
    program calls it fails, with a `ToolError`. Hooks of other capabilities run for `run_program`, not for calls of programs.
    """

    name: str = "run_program"
    """The name of the tool that the model sees."""
    engine_options: dict[str, Any] = field(default_factory=dict)
    """The options of `Engine`, such as `limits` and `isolation`."""

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        """Wraps the tools of the agent."""
        return _Programs(toolset, self.name, self.engine_options)


@dataclass
class _Programs(WrapperToolset[Any]):
    name: str
    engine_options: dict[str, Any]

    def _engine(self, tools: dict[str, ToolsetTool[Any]], ctx: RunContext[Any]) -> Engine:
        called = [self._tool(name, tool, ctx) for name, tool in tools.items() if _is_called(tool)]
        return Engine(tools=called, **self.engine_options)

    def _tool(self, name: str, tool: ToolsetTool[Any], of_program: RunContext[Any]) -> Tool:
        # The approval of a program is not one of the calls in it.
        ctx = replace(of_program, tool_name=name, tool_call_approved=False, tool_call_metadata=None)

        async def call(**arguments: Any) -> Any:
            try:
                checked = tool.args_validator.validate_python(arguments, context=ctx.validation_context)
                if tool.args_validator_func is not None:
                    validated = tool.args_validator_func(ctx, **checked)
                    if inspect.isawaitable(validated):
                        await validated
                result = await self.wrapped.call_tool(name, checked, ctx, tool)
            except (ApprovalRequired, CallDeferred):
                raise cannot_wait(f"tool/{name}", "Pydantic AI", _INSTEAD) from None
            except (ModelRetry, ToolFailed) as error:
                raise ToolError(error.message) from None
            return _ANY.dump_python(result, mode="json")

        definition = tool.tool_def
        schema = definition.parameters_json_schema
        return Tool(name, function=call, description=definition.description or "", input_schema=schema)

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        tools = await self.wrapped.get_tools(ctx)
        others = {name: tool for name, tool in tools.items() if not _is_called(tool)}
        if self.name in others:
            raise ValueError(f"the agent has a tool {self.name} already; name another, as in LispCodeMode(name=...)")
        definition = ToolDefinition(
            name=self.name,
            description=self._engine(tools, ctx).prompt(),
            parameters_json_schema={
                "type": "object",
                "properties": {"program": {"type": "string", "description": CODE}},
                "required": ["program"],
                "additionalProperties": False,
            },
        )
        made = ToolsetTool(toolset=self, tool_def=definition, max_retries=3, args_validator=_ARGUMENTS)
        return {self.name: made, **others}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        if name != self.name:
            return await self.wrapped.call_tool(name, tool_args, ctx, tool)
        engine = self._engine(await self.wrapped.get_tools(ctx), ctx)
        outcome = await engine.run_async(tool_args["program"])
        if not outcome.ok:
            raise ModelRetry(answer(outcome))
        return answer(outcome)
