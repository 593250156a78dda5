"""LangChain and LangGraph: a tool that runs programs over other tools.

    from ptc_lisp.adapters.langchain import program_tool

    agent = create_agent(model, tools=[program_tool([search, order])])

A program cannot wait for an approval of LangGraph. A tool that calls `interrupt()` fails inside a program, and
`HumanInTheLoopMiddleware` does not see the calls of a program: give such tools to the agent itself, beside `program_tool`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import BaseTool, StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from .. import Engine, Tool
from ._answers import CODE, answer, cannot_wait

try:
    from langgraph.types import interrupt
except ImportError:
    # LangChain without LangGraph has no interrupts.
    _INTERRUPT = None
else:
    _INTERRUPT = interrupt.__code__

_SCRATCHPAD = "__pregel_scratchpad"
_INSTEAD = "give the tool to the agent itself, beside programs, or use a policy of the engine"


def tools_of(tools: Sequence[BaseTool]) -> list[Tool]:
    """Returns LangChain tools as tools of an engine."""
    return [_tool(tool) for tool in tools]


def _tool(tool: BaseTool) -> Tool:
    async def call(**arguments: Any) -> Any:
        config = var_child_runnable_config.set(_outside_of_graphs(var_child_runnable_config.get()))
        try:
            return await tool.ainvoke(arguments)
        except Exception as error:
            if _is_of_interrupt(error):
                raise cannot_wait(f"tool/{tool.name}", "LangGraph", _INSTEAD) from None
            raise
        finally:
            var_child_runnable_config.reset(config)

    parameters = convert_to_openai_tool(tool)["function"].get("parameters") or {"type": "object"}
    # An argument that the tool does not have is an error, so that the model learns of it.
    schema = {"additionalProperties": False, **parameters}
    return Tool(tool.name, function=call, description=tool.description, input_schema=schema)


def _outside_of_graphs(config: RunnableConfig | None) -> RunnableConfig | None:
    """Returns the config without what `interrupt()` needs. With it, the answer to another question of the node would be
    returned to a tool of a program, as the approval of its call."""
    if config is None or _SCRATCHPAD not in config.get("configurable", {}):
        return config
    configurable = {key: value for key, value in config["configurable"].items() if key != _SCRATCHPAD}
    return {**config, "configurable": configurable}


def _is_of_interrupt(error: Exception) -> bool:
    """Returns whether `interrupt()` raised: `GraphInterrupt`, or what it raises in threads that have no graph."""
    at = error.__traceback__
    while at is not None and (_INTERRUPT is None or at.tb_frame.f_code is not _INTERRUPT):
        at = at.tb_next
    return at is not None


def program_tool(
    tools: Sequence[BaseTool] = (), *, engine: Engine | None = None, name: str = "run_program", **engine_options: Any
) -> StructuredTool:
    """Returns a tool that runs a program, in which each of `tools` is a function: `(tool/search {:query "x"})`.

    Its description has the language and the signatures of the tools. The model gets the result as JSON, or the report of
    the error. `engine_options` are those of `Engine`; or pass an `engine` that has its tools already.

    Tools that wait for a person belong to the agent itself. In a program, one that calls `interrupt()` fails with a
    `ToolError`, and `HumanInTheLoopMiddleware` sees the call of this tool only, not the calls that its program makes.
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
