"""LangChain and LangGraph: a tool that runs programs over other tools.

    from ptc_lisp.adapters.langchain import program_tool

    agent = create_agent(model, tools=[program_tool([search, order])])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from .. import Engine, Tool
from ._answers import CODE, answer


def tools_of(tools: Sequence[BaseTool]) -> list[Tool]:
    """Returns LangChain tools as tools of an engine."""
    return [_tool(tool) for tool in tools]


def _tool(tool: BaseTool) -> Tool:
    async def call(**arguments: Any) -> Any:
        return await tool.ainvoke(arguments)

    parameters = convert_to_openai_tool(tool)["function"].get("parameters") or {"type": "object"}
    # An argument that the tool does not have is an error, so that the model learns of it.
    schema = {"additionalProperties": False, **parameters}
    return Tool(tool.name, function=call, description=tool.description, input_schema=schema)


def program_tool(
    tools: Sequence[BaseTool] = (), *, engine: Engine | None = None, name: str = "run_program", **engine_options: Any
) -> StructuredTool:
    """Returns a tool that runs a program, in which each of `tools` is a function: `(tool/search {:query "x"})`.

    Its description has the language and the signatures of the tools. The model gets the result as JSON, or the report of
    the error. `engine_options` are those of `Engine`; or pass an `engine` that has its tools already.
    """
    used = engine if engine is not None else Engine(tools=tools_of(tools), **engine_options)

    async def run(program: str) -> str:
        return answer(await used.run_async(program))

    def run_here(program: str) -> str:
        return answer(used.run(program))

    schema = {
        "type": "object",
        "properties": {"program": {"type": "string", "description": CODE}},
        "required": ["program"],
    }
    return StructuredTool(name=name, description=used.prompt(), args_schema=schema, func=run_here, coroutine=run)
