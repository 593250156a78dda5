"""OpenAI Agents SDK: a tool that runs programs.

    from ptc_lisp.adapters.openai_agents import program_tool

    agent = Agent(name="shop", tools=[program_tool(Engine(tools=[price, stock]))])
"""

from __future__ import annotations

import json
from typing import Any

from agents import FunctionTool

from .. import Engine
from ._answers import CODE, answer


def program_tool(engine: Engine, *, name: str = "run_program") -> FunctionTool:
    """Returns a tool that runs a program with the tools of the engine.

    Its description has the language and the signatures of the tools. The model gets the result as JSON, or the report of
    the error.
    """

    async def run(context: Any, arguments: str) -> str:
        return answer(await engine.run_async(json.loads(arguments)["program"]))

    return FunctionTool(
        name=name,
        description=engine.prompt(),
        params_json_schema={
            "type": "object",
            "properties": {"program": {"type": "string", "description": CODE}},
            "required": ["program"],
            "additionalProperties": False,
        },
        on_invoke_tool=run,
    )
