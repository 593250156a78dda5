"""Pydantic AI: a capability that lets an agent write programs over its tools.

    from ptc_lisp.adapters.pydantic_ai import LispCodeMode

    agent = Agent(model, tools=[price, stock], capabilities=[LispCodeMode()])

The model sees one tool, which runs a program; each tool of the agent is a function of the program.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset
from pydantic_core import SchemaValidator, core_schema

from .. import Engine, Tool, ToolError
from ._answers import CODE, answer

_ARGUMENTS = SchemaValidator(
    core_schema.typed_dict_schema({"program": core_schema.typed_dict_field(core_schema.str_schema())})
)
_ANY: TypeAdapter[Any] = TypeAdapter(Any)


@dataclass
class LispCodeMode(AbstractCapability[Any]):
    """Replaces the tools of an agent by one that runs programs over them.

    `engine_options` are those of `Engine`. A failed program asks the model to try again, with the report of the error.
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

    async def _engine(self, ctx: RunContext[Any]) -> Engine:
        tools = await self.wrapped.get_tools(ctx)
        return Engine(tools=[self._tool(name, tool, ctx) for name, tool in tools.items()], **self.engine_options)

    def _tool(self, name: str, tool: ToolsetTool[Any], ctx: RunContext[Any]) -> Tool:
        async def call(**arguments: Any) -> Any:
            checked = tool.args_validator.validate_python(arguments)
            try:
                result = await self.wrapped.call_tool(name, checked, ctx, tool)
            except ModelRetry as error:
                raise ToolError(error.message) from None
            return _ANY.dump_python(result, mode="json")

        definition = tool.tool_def
        schema = definition.parameters_json_schema
        return Tool(name, function=call, description=definition.description or "", input_schema=schema)

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        engine = await self._engine(ctx)
        definition = ToolDefinition(
            name=self.name,
            description=engine.prompt(),
            parameters_json_schema={
                "type": "object",
                "properties": {"program": {"type": "string", "description": CODE}},
                "required": ["program"],
                "additionalProperties": False,
            },
        )
        return {self.name: ToolsetTool(toolset=self, tool_def=definition, max_retries=3, args_validator=_ARGUMENTS)}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        engine = await self._engine(ctx)
        outcome = await engine.run_async(tool_args["program"])
        if not outcome.ok:
            raise ModelRetry(answer(outcome))
        return answer(outcome)
