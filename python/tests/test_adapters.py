"""Adapters against the real packages, with scripted models."""

import asyncio
import json

import pytest

from ptc_lisp import Engine, ask, tool

PROGRAM = '(sum (pmap #(:price (tool/item {:sku %})) ["a" "b"]))'
WRONG = "(+ 1 nil)"


def test_fastmcp():
    fastmcp = pytest.importorskip("fastmcp")
    from ptc_lisp.adapters.fastmcp import LispCodeMode, LispSandbox

    server = fastmcp.FastMCP("shop", transforms=[LispCodeMode()])

    @server.tool(annotations={"readOnlyHint": True})
    def item(sku: str) -> dict:
        "An item."
        return {"price": 2 if sku == "a" else 3}

    @server.tool
    def count(words: list[str]) -> int:
        if not words:
            raise fastmcp.exceptions.ToolError("no words")
        return len(words)

    async def main():
        async with fastmcp.Client(server) as client:
            names = {tool.name: tool for tool in await client.list_tools()}
            execute = names["execute"]
            assert "PTC-Lisp" in execute.input_schema["properties"]["code"]["description"]

            async def run(code):
                result = await client.call_tool("execute", {"code": code}, raise_on_error=False)
                return result.is_error, result.content[0].text

            assert await run(PROGRAM) == (False, "5")
            assert await run('(tool/count {:words ["x" "y"]})') == (False, "2")
            assert await run('(try (tool/count {:words []}) (catch Exception e "none"))') == (False, "none")
            failed, text = await run(WRONG)
            assert failed and "expects numbers" in text and "^^^" in text
            failed, text = await run('(tool/item {:skuu "a"})')
            assert failed and ":sku" in text

    asyncio.run(main())

    async def call_tool(tool_name, params):
        return [tool_name, params]

    run = LispSandbox().run('(tool/call_tool {:tool_name "x" :params {:n data/n}})', inputs={"n": 1}, external_functions={"call_tool": call_tool})
    assert asyncio.run(run) == ["x", {"n": 1}]


def test_langchain():
    core = pytest.importorskip("langchain_core")
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool as langchain_tool

    from ptc_lisp.adapters.langchain import program_tool

    @langchain_tool
    def item(sku: str) -> dict:
        "An item."
        return {"price": 2 if sku == "a" else 3}

    made = program_tool([item])
    assert core and "tool/item (sku :string)" in made.description
    assert asyncio.run(made.ainvoke({"program": PROGRAM})) == "5"
    assert made.invoke({"program": PROGRAM}) == "5"
    assert "expects numbers" in made.invoke({"program": WRONG})

    agents = pytest.importorskip("langchain.agents")

    class Scripted(GenericFakeChatModel):
        def bind_tools(self, tools, **_):
            assert [one.name for one in tools] == ["run_program"]
            return self

    call = {"name": "run_program", "args": {"program": PROGRAM}, "id": "1", "type": "tool_call"}
    model = Scripted(messages=iter([AIMessage(content="", tool_calls=[call]), AIMessage(content="done")]))
    agent = agents.create_agent(model, tools=[made])
    messages = agent.invoke({"messages": [{"role": "user", "content": "price?"}]})["messages"]
    assert [message.content for message in messages] == ["price?", "", "5", "done"]


@tool(effect="read")
async def item(sku: str) -> dict:
    "An item."
    await asyncio.sleep(0)
    return {"price": 2 if sku == "a" else 3}


def test_openai_agents():
    agents = pytest.importorskip("agents")
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    from ptc_lisp.adapters.openai_agents import program_tool

    def say(text):
        content = ResponseOutputText(text=text, type="output_text", annotations=[])
        return ResponseOutputMessage(id="1", content=[content], role="assistant", status="completed", type="message")

    def call(program):
        arguments = json.dumps({"program": program})
        return ResponseFunctionToolCall(call_id=str(len(program)), name="run_program", arguments=arguments, type="function_call")

    seen = []

    class Scripted(agents.Model):
        answers = iter([call(WRONG), call(PROGRAM), say("done")])

        async def get_response(self, system_instructions, input, *rest, **named):
            seen.append(input)
            return agents.ModelResponse(output=[next(self.answers)], usage=agents.Usage(), response_id=None)

        def stream_response(self, *rest, **named):
            raise NotImplementedError

    agents.set_tracing_disabled(True)
    agent = agents.Agent(name="shop", model=Scripted(), tools=[program_tool(Engine(tools=[item]))])
    result = asyncio.run(agents.Runner.run(agent, "price?"))
    assert result.final_output == "done"
    outputs = [part["output"] for part in seen[-1] if part.get("type") == "function_call_output"]
    assert "expects numbers" in outputs[0] and outputs[1] == "5"


def test_pydantic_ai():
    pydantic_ai = pytest.importorskip("pydantic_ai")
    from pydantic_ai.messages import ModelResponse, RetryPromptPart, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel

    from ptc_lisp.adapters.pydantic_ai import LispCodeMode

    programs = iter([WRONG, PROGRAM])
    seen = []

    def model(messages, info):
        assert [one.name for one in info.function_tools] == ["run_program"]
        assert "tool/item (sku :string)" in info.function_tools[0].description
        seen.extend(part for part in messages[-1].parts if isinstance(part, (RetryPromptPart, ToolReturnPart)))
        program = next(programs, None)
        if program is None:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart("run_program", {"program": program})])

    agent = pydantic_ai.Agent(FunctionModel(model), capabilities=[LispCodeMode()])

    @agent.tool_plain
    async def item(sku: str) -> dict[str, int]:
        "An item."
        return {"price": 2 if sku == "a" else 3}

    assert asyncio.run(agent.run("price?")).output == "done"
    assert "expects numbers" in seen[0].content and seen[1].content == "5"


@pytest.fixture
def pydantic_agent():
    """Returns a function that makes an agent whose model makes these calls, and what the model saw."""
    pydantic_ai = pytest.importorskip("pydantic_ai")
    from pydantic_ai.messages import ModelResponse, RetryPromptPart, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel

    from ptc_lisp.adapters.pydantic_ai import LispCodeMode

    def make(*calls, **options):
        left, seen = iter(calls), {"tools": [], "results": [], "prompts": []}

        def model(messages, info):
            seen["tools"].append([one.name for one in info.function_tools])
            seen["prompts"].append(info.function_tools[0].description)
            parts = messages[-1].parts
            seen["results"] += [part.content for part in parts if isinstance(part, (RetryPromptPart, ToolReturnPart))]
            call = next(left, None)
            if call is None:
                return ModelResponse(parts=[TextPart("done")])
            name, arguments = call if isinstance(call, tuple) else ("run_program", {"program": call})
            return ModelResponse(parts=[ToolCallPart(name, arguments)])

        output = [str, pydantic_ai.DeferredToolRequests]
        capabilities = [LispCodeMode(engine_options=options)]
        return pydantic_ai.Agent(FunctionModel(model), output_type=output, capabilities=capabilities), seen

    return make


def test_pydantic_ai_keeps_approvals(pydantic_agent):
    from pydantic_ai import DeferredToolRequests, DeferredToolResults, ExternalToolset, ToolDenied
    from pydantic_ai.tools import ToolDefinition

    refund = ("refund", {"amount": 5})
    agent, seen = pydantic_agent("(tool/refund {:amount 5})", "(tool/look {})", refund, ("wire", {"to": "x"}))
    refunded = []

    @agent.tool_plain(requires_approval=True)
    def refund(amount: int) -> str:
        refunded.append(amount)
        return f"refunded {amount}"

    @agent.tool_plain
    def look() -> int:
        return 7

    wire = ToolDefinition(name="wire", parameters_json_schema={"type": "object", "properties": {"to": {"type": "string"}}})
    first = asyncio.run(agent.run("refund", toolsets=[ExternalToolset([wire])]))
    assert set(seen["tools"][0]) == {"run_program", "refund", "wire"}
    assert "tool/look" in seen["prompts"][0] and "tool/refund" not in seen["prompts"][0]
    assert "there is no tool/refund" in seen["results"][0] and seen["results"][1] == "7" and refunded == []
    assert isinstance(first.output, DeferredToolRequests)
    [asked] = first.output.approvals
    assert (asked.tool_name, asked.args) == ("refund", {"amount": 5})

    def answered(decision):
        results = DeferredToolResults(approvals={asked.tool_call_id: decision})
        history = first.all_messages()
        toolsets = [ExternalToolset([wire])]
        return asyncio.run(agent.run(message_history=history, deferred_tool_results=results, toolsets=toolsets))

    second = answered(True)
    assert refunded == [5] and "refunded 5" in seen["results"]
    [external] = second.output.calls
    assert (external.tool_name, external.args) == ("wire", {"to": "x"})
    assert answered(ToolDenied("no")).output == "done" and refunded == [5]


def test_pydantic_ai_approvals_inside_a_program_are_errors(pydantic_agent):
    from pydantic_ai import ApprovalRequired, CallDeferred, FunctionToolset, RunContext, ToolFailed

    caught = "(try (tool/{} {{}}) (catch Exception e [(:code e) (:message e)]))"
    names = ["asks", "defers", "guarded", "wrapped"]
    agent, seen = pydantic_agent(*[caught.format(name) for name in names], "(tool/fails {})")
    made = []

    @agent.tool
    def asks(ctx: RunContext) -> int:
        if not ctx.tool_call_approved:
            raise ApprovalRequired()
        return made.append("asks")

    @agent.tool_plain
    def defers() -> int:
        raise CallDeferred()

    def guard(ctx: RunContext) -> None:
        raise ApprovalRequired()

    @agent.tool_plain(args_validator=guard)
    def guarded() -> int:
        return made.append("guarded")

    @agent.tool_plain
    def fails() -> int:
        raise ToolFailed("no such order")

    def wrapped() -> int:
        return made.append("wrapped")

    outcome = asyncio.run(agent.run("go", toolsets=[FunctionToolset([wrapped]).approval_required()]))
    assert outcome.output == "done" and made == []
    for name, result in zip(names, seen["results"]):
        code, message = json.loads(result)
        assert code == "APPROVAL_REQUIRED" and f"tool/{name} waits for an approval or an input of Pydantic AI" in message
        assert "a program cannot wait for it" in message and "requires_approval=True" in message
    assert "no such order" in seen["results"][-1]


def test_a_policy_that_asks_says_to_a_model_what_it_can_do(pydantic_agent):
    agent, seen = pydantic_agent("(tool/pay {})", policy=lambda call: ask("pay?"))

    @agent.tool_plain
    def pay() -> int:
        raise AssertionError

    asyncio.run(agent.run("pay"))
    [text] = seen["results"]
    assert "tool/pay needs approval: pay?" in text and "write a program without this call" in text
    assert "engine." not in text and "(...)" not in text


def test_pydantic_ai_refuses_a_name_that_is_taken(pydantic_agent):
    agent, _ = pydantic_agent("1")

    @agent.tool_plain(requires_approval=True)
    def run_program() -> int:
        return 1

    with pytest.raises(ValueError, match="has a tool run_program already"):
        asyncio.run(agent.run("go"))


def test_langchain_interrupts_inside_a_program_are_errors():
    pytest.importorskip("langgraph")
    agents = pytest.importorskip("langchain.agents")
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool as langchain_tool
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import interrupt

    from ptc_lisp.adapters.langchain import program_tool

    paid = []

    @langchain_tool
    def pay(amount: int) -> int:
        "Pays."
        if interrupt("pay?"):
            paid.append(amount)
        return amount

    class Scripted(GenericFakeChatModel):
        def bind_tools(self, tools, **_):
            return self

    program = "(try (tool/pay {:amount 5}) (catch Exception e [(:code e) (:message e)]))"
    call = {"name": "run_program", "args": {"program": program}, "id": "1", "type": "tool_call"}
    # Workers of a program that blocks are threads without the context of the graph.
    program = f"(first (pmap (fn [_] {program}) [1]))"
    call_of_worker = {"name": "run_program", "args": {"program": program}, "id": "2", "type": "tool_call"}

    def agent():
        messages = [AIMessage(content="", tool_calls=[call, call_of_worker]), AIMessage(content="done")]
        tools = [program_tool([pay])]
        return agents.create_agent(Scripted(messages=iter(messages)), tools=tools, checkpointer=InMemorySaver())

    asked, config = {"messages": [{"role": "user", "content": "pay"}]}, {"configurable": {"thread_id": "1"}}
    for result in (agent().invoke(asked, config), asyncio.run(agent().ainvoke(asked, config))):
        assert "__interrupt__" not in result
        for of_tool in result["messages"][2:4]:
            code, message = json.loads(of_tool.content)
            assert code == "APPROVAL_REQUIRED" and "tool/pay waits for an approval or an input of LangGraph" in message
            assert "give the tool to the agent itself" in message
        assert result["messages"][4].content == "done"
    assert paid == []


def test_dspy():
    dspy = pytest.importorskip("dspy")
    from dspy.primitives.code_interpreter import CodeExecutionError, CodeInterpreter, CodeInterpreterError, FinalOutput

    from ptc_lisp.adapters.dspy import LispInterpreter

    interpreter = LispInterpreter({"item": lambda sku: {"price": 2 if sku == "a" else 3}})
    assert isinstance(interpreter, CodeInterpreter)
    assert interpreter.execute("(def total 40) (println total)") == "40"
    assert interpreter.execute("(+ total n data/n)", {"n": 1}) == "42"
    interpreter.tools["twice"] = lambda n: 2 * n
    assert interpreter.execute('(+ total (tool/twice {:n (:price (tool/item {:sku "b"}))}))', {"n": 1}) == "46"
    assert interpreter.execute("nil") is None
    with pytest.raises(CodeExecutionError, match="expects numbers"):
        interpreter.execute(WRONG)
    with pytest.raises(CodeExecutionError):
        interpreter.execute("import sys as _dspy_sys\nx = 1")
    with pytest.raises(CodeInterpreterError, match=r'data\["f"\]') as refused:
        interpreter.execute("1", {"f": object()})
    assert not isinstance(refused.value, CodeExecutionError)
    interpreter.output_fields = [{"name": "answer", "type": "int"}]
    assert interpreter.execute("(SUBMIT {:answer total}) (println :not-reached)") == FinalOutput({"answer": 40})
    with pytest.raises(CodeExecutionError, match="answer: the field is missing"):
        interpreter.execute("(SUBMIT {:anwser total})")
    assert interpreter.execute("total") == "40"
    interpreter.shutdown()
    with pytest.raises(CodeInterpreterError, match="shut down"):
        interpreter.execute("1")

    seen = []

    class Scripted(dspy.BaseLM):
        programs = iter([WRONG, PROGRAM, '(SUBMIT {:answer (str (tool/llm_query {:prompt question}) " " (count orders))})'])

        def forward(self, prompt=None, messages=None, **_):
            raise NotImplementedError

        def __call__(self, prompt=None, messages=None, **_):
            if messages is None:
                return [f"sub-answer to {prompt}"]
            seen.append(messages)
            return [f"[[ ## reasoning ## ]]\nso\n\n[[ ## code ## ]]\n```\n{next(self.programs)}\n```\n\n[[ ## completed ## ]]"]

    def item(sku: str) -> dict:
        "An item."
        return {"price": 2 if sku == "a" else 3}

    with dspy.context(lm=Scripted("scripted")):
        rlm = dspy.RLM("orders: list, question -> answer", tools=[item], interpreter_factory=LispInterpreter.factory())
        result = rlm(orders=[1, 2, 3], question="why?")
    assert result.answer == "sub-answer to why? 3"
    outputs = [step["output"] for step in result.trajectory]
    assert "expects numbers" in outputs[0] and outputs[1] == "5"
    assert "The code is not Python" in str(seen[0])


def test_langchain_approvals_of_tools_beside_programs():
    pytest.importorskip("langgraph")
    agents = pytest.importorskip("langchain.agents")
    from langchain.agents.middleware import HumanInTheLoopMiddleware
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool as langchain_tool
    from langgraph.checkpoint.memory import InMemorySaver

    from ptc_lisp.adapters.langchain import program_tool

    paid = []

    @langchain_tool
    def pay(amount: int) -> int:
        "Pays."
        paid.append(amount)
        return amount

    class Scripted(GenericFakeChatModel):
        def bind_tools(self, tools, **_):
            return self

    def is_interrupted(name, arguments, names, tools):
        call = {"name": name, "args": arguments, "id": "1", "type": "tool_call"}
        model = Scripted(messages=iter([AIMessage(content="", tool_calls=[call]), AIMessage(content="done")]))
        middleware = [HumanInTheLoopMiddleware(interrupt_on=dict.fromkeys(names, True))]
        agent = agents.create_agent(model, tools=tools, checkpointer=InMemorySaver(), middleware=middleware)
        asked = {"messages": [{"role": "user", "content": "pay"}]}
        return "__interrupt__" in agent.invoke(asked, {"configurable": {"thread_id": "1"}})

    program = {"program": "(tool/pay {:amount 1})"}
    assert is_interrupted("pay", {"amount": 1}, ["pay"], [program_tool(), pay]) and paid == []
    assert is_interrupted("run_program", program, ["run_program"], [program_tool([pay])]) and paid == []
    # As docs/python.md says: the middleware sees the calls of the model only.
    assert not is_interrupted("run_program", program, ["pay"], [program_tool([pay])]) and paid == [1]


def test_langchain_the_answer_to_another_question_approves_no_call():
    pytest.importorskip("langgraph")
    from typing import TypedDict

    from langchain_core.tools import tool as lc_tool
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.graph import START, StateGraph
    from langgraph.types import Command, interrupt

    from ptc_lisp.adapters.langchain import program_tool

    deleted = []

    @lc_tool
    async def delete(name: str) -> str:
        "Deletes a customer, after an approval."
        if interrupt(f"delete {name}?"):
            deleted.append(name)
        return "done"

    program = program_tool([delete])

    class State(TypedDict):
        report: str
        ok: bool

    async def node(state: State) -> State:
        report = await program.ainvoke({"program": '(tool/delete {:name "acme"})'})
        return {"report": report, "ok": interrupt("publish the report?")}

    async def asked_and_approved():
        graph = StateGraph(State)
        graph.add_node("node", node)
        graph.add_edge(START, "node")
        compiled = graph.compile(checkpointer=InMemorySaver())
        config = {"configurable": {"thread_id": "1"}}
        asked = await compiled.ainvoke({"report": "", "ok": False}, config)
        return asked, await compiled.ainvoke(Command(resume=True), config)

    asked, ended = asyncio.run(asked_and_approved())
    assert [question.value for question in asked["__interrupt__"]] == ["publish the report?"]
    assert deleted == [] and ended["ok"] is True and "LangGraph" in ended["report"]
