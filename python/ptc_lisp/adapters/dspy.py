"""dspy: a `CodeInterpreter` for programs in PTC-Lisp.

    import dspy
    from ptc_lisp.adapters.dspy import LispInterpreter

    rlm = dspy.RLM("orders, question -> answer", tools=[price], interpreter_factory=LispInterpreter)

`LispInterpreter.factory(limits=Limits(timeout=60))` is a factory with options of `Engine`. dspy asks models for "Python code"; the
`execution_instructions` tell them what the interpreter runs. Sub-agents inside a program (`import dspy`) are Python, so that
dspy logs that they are unavailable.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterable
from typing import Any

from dspy.primitives.code_interpreter import (  # type: ignore[import-untyped]
    CodeExecutionError,
    CodeInterpreterError,
    FinalOutput,
)

from .. import Engine, Limits, Outcome, Session, Tool
from ._answers import CODE, report

_LIMITS = Limits(timeout=300.0, heap_mb=100)
_INSTRUCTIONS = f"""The code is not Python. {CODE} Write it in a code fence without a language.
- Inputs are definitions: `context` is the input context, and data/context is the same.
- Tools are (tool/NAME {{:param value}}), such as (tool/llm_query {{:prompt "..."}}) and (tool/llm_query_batched {{:prompts [...]}}).
- (println x) prints. The output is what was printed, and the value of the last expression.
- (SUBMIT {{:field value}}) submits the final output, with all of its fields, and ends the program.
- (def name value) and (defn name [args] ...) are kept for later programs. There is no import.

"""


class LispInterpreter:
    """A `CodeInterpreter` of dspy that runs programs in PTC-Lisp, one after another in a session.

    `tools` can be changed between programs. The default limits are 300 seconds and 100 MB, because programs wait for
    language models.
    """

    execution_instructions = _INSTRUCTIONS + Engine().prompt()
    """What dspy tells the model about the interpreter."""

    def __init__(self, tools: dict[str, Callable[..., Any]] | None = None, **engine_options: Any) -> None:
        """Creates an interpreter. `engine_options` are those of `Engine`, without `tools`."""
        self.tools: dict[str, Callable[..., Any]] = dict(tools or {})
        """The functions that programs call, by name."""
        self.output_fields: list[dict[str, Any]] | None = None
        """The fields of `SUBMIT`, set by dspy."""
        self._options = {"limits": _LIMITS, **engine_options}
        self._session: Session | None = None
        self._made_of: tuple[dict[str, Any], dict[str, Any], Any] | None = None
        self._submitted: list[Any] = []
        self._context = contextvars.copy_context()
        self._is_shut_down = False

    @classmethod
    def factory(cls, **engine_options: Any) -> Callable[[], LispInterpreter]:
        """Returns an `interpreter_factory` with options of `Engine`."""
        return _Factory(cls, engine_options)

    def start(self) -> None:
        """Does nothing: the session starts with the first program."""

    def execute(self, code: str, variables: dict[str, Any] | None = None) -> Any:
        """Runs a program. Returns a `FinalOutput` if it submitted one, or else what it printed with its value, as text.

        Raises `CodeExecutionError` with the report for a program that fails, and `CodeInterpreterError` for variables that
        cannot be passed and after `shutdown`.
        """
        if self._is_shut_down:
            raise CodeInterpreterError("the interpreter is shut down; create a new one")
        # Tools run in threads: they see the settings of dspy that hold here.
        self._context = contextvars.copy_context()
        session = self._prepared(variables or {})
        self._submitted.clear()
        outcome = session.run(code)
        if self._submitted:
            return FinalOutput(self._submitted[0])
        if not outcome.ok:
            raise _error(outcome)
        return "\n".join(outcome.prints + ([outcome.text] if outcome.text not in (None, "nil") else [])) or None

    def shutdown(self) -> None:
        """Ends the session."""
        self._session = None
        self._is_shut_down = True

    def _prepared(self, variables: dict[str, Any]) -> Session:
        """Returns the session with these variables and the tools; what programs have defined is kept."""
        made_of = (dict(self.tools), variables, self.output_fields)
        if self._session is not None and self._made_of == made_of:
            return self._session
        try:
            engine = Engine(tools=self._granted(), **self._options)
            if self._session is None:
                session = engine.session(data=variables)
            else:
                session = engine.load_session(self._session.save(), data=variables)
        except (TypeError, ValueError) as error:
            raise CodeInterpreterError(str(error)) from error
        definitions = [f"(def {name} data/{name})" for name in variables]
        definitions.append("(defn SUBMIT [output] (return (tool/SUBMIT output)))")
        outcome = session.run("\n".join(definitions))
        if not outcome.ok:
            raise CodeInterpreterError(outcome.error.report() if outcome.error else "the variables cannot be defined")
        self._session, self._made_of = session, made_of
        return session

    def _granted(self) -> Iterable[Tool]:
        for name, function in self.tools.items():
            yield self._tool(name, function)
        fields: dict[str, Any] = {field["name"]: {} for field in self.output_fields or ()}
        schema = {"type": "object", "properties": fields, "required": list(fields)}
        yield Tool("SUBMIT", function=self._submit, description="Submits the final output.", input_schema=schema)

    def _tool(self, name: str, function: Callable[..., Any]) -> Tool:
        try:
            tool = Tool.from_function(function, name=name)
        except TypeError:
            # Its parameters have no JSON Schema: it takes any.
            tool = Tool(name, function=function, description=function.__doc__ or "", input_schema={"type": "object"})
        if not tool.is_async:
            tool.function = lambda **arguments: self._context.copy().run(function, **arguments)
        return tool

    def _submit(self, **output: Any) -> None:
        self._submitted.append(output)


class _Factory:
    execution_instructions = LispInterpreter.execution_instructions

    def __init__(self, made: type[LispInterpreter], engine_options: dict[str, Any]) -> None:
        self._made, self._engine_options = made, engine_options

    def __call__(self) -> LispInterpreter:
        return self._made(**self._engine_options)


def _error(outcome: Outcome) -> CodeInterpreterError:
    error = outcome.error
    text = report(error) if error is not None else outcome.verdict
    return CodeInterpreterError(text) if outcome.verdict == "host_fault" else CodeExecutionError(text)
