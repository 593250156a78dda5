"""JSON Schemas of type hints.

Plain hints are converted here. If a hint is not plain (a model, a dataclass, a date ...), pydantic converts all hints of
the function, which is imported only then.
"""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from ._engine import ToolCall
from ._errors import InvalidArguments

if typing.TYPE_CHECKING:
    Schema = dict[str, Any]

_SCALARS: dict[Any, dict[str, Any]] = {
    Any: {},
    object: {},
    None: {"type": "null"},
    type(None): {"type": "null"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    list: {"type": "array"},
    dict: {"type": "object"},
    collections.abc.Mapping: {"type": "object"},
    collections.abc.Sequence: {"type": "array"},
}
_LISTS = (list, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection)
_DICTS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)


class _NotPlain(Exception):
    """The hint needs pydantic."""


def _required(hint: Any) -> tuple[Any, bool | None]:
    """Returns a hint without `Required` and `NotRequired`, and which of them it had."""
    name = getattr(get_origin(hint), "__name__", None) or getattr(get_origin(hint), "_name", None)
    if name in ("Required", "NotRequired"):
        return get_args(hint)[0], name == "Required"
    return hint, None


def _schema(hint: Any) -> Schema:
    """Returns the JSON Schema of a plain hint. Hints are as deep as their author wrote them."""
    try:
        if hint in _SCALARS:
            return dict(_SCALARS[hint])
    except TypeError:
        raise _NotPlain from None
    origin, args = get_origin(hint), get_args(hint)
    if origin is typing.Annotated:
        schema = _schema(args[0])
        texts = [extra for extra in args[1:] if isinstance(extra, str)]
        if len(texts) < len(args) - 1:
            raise _NotPlain
        return {**schema, "description": " ".join(texts)}
    if origin is Literal:
        if not all(value is None or isinstance(value, (str, int, bool)) for value in args):
            raise _NotPlain
        return {"enum": list(args)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema(arg) for arg in args]}
    if origin in _LISTS:
        return {"type": "array", "items": _schema(args[0])}
    if origin in _DICTS and args[0] is str:
        return {"type": "object", "additionalProperties": _schema(args[1])}
    if typing.is_typeddict(hint):
        properties, required = {}, []
        for name, field in get_type_hints(hint, include_extras=True).items():
            field, is_required = _required(field)
            properties[name] = _schema(field)
            if is_required if is_required is not None else name in hint.__required_keys__:
                required.append(name)
        return {"type": "object", "properties": properties, "required": required}
    raise _NotPlain


class Parameters:
    """What is known of a function from its hints."""

    def __init__(self, function: Callable[..., Any], descriptions: Mapping[str, str]) -> None:
        self.call_parameter: str | None = None
        self.adapt: Callable[[dict[str, Any]], dict[str, Any]] | None = None
        self.dump: Callable[[Any], Any] | None = None
        signature = inspect.signature(function)
        try:
            hints = get_type_hints(function, include_extras=True)
        except NameError as error:
            raise TypeError(f"{_name(function)}: the type hint {error.name} is not defined where the function is") from error
        result = hints.pop("return", Any)
        parameters: dict[str, tuple[Any, Any]] = {}
        for name, parameter in signature.parameters.items():
            hint = hints.get(name, Any)
            if hint is ToolCall:
                self.call_parameter = name
            elif parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                parameters[name] = (hint, parameter.default)
            else:
                raise TypeError(f"{_name(function)}: the parameter {name} has no name for programs; use named parameters only")
        try:
            self.input_schema = self._plain(parameters, descriptions)
        except _NotPlain:
            self.input_schema = self._of_pydantic(function, parameters, descriptions)
        self.output_schema = self._result(function, result)

    def _plain(self, parameters: Mapping[str, tuple[Any, Any]], descriptions: Mapping[str, str]) -> Schema:
        properties: Schema = {}
        required: list[str] = []
        for name, (hint, default) in parameters.items():
            schema = _schema(hint)
            if name in descriptions and "description" not in schema:
                schema["description"] = descriptions[name]
            if default is inspect.Parameter.empty:
                required.append(name)
            elif default is None or isinstance(default, (str, int, float, bool)):
                schema["default"] = default
            properties[name] = schema
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}

    def _of_pydantic(
        self, function: Callable[..., Any], parameters: Mapping[str, tuple[Any, Any]], descriptions: Mapping[str, str]
    ) -> Schema:
        pydantic = _pydantic(function)
        fields: dict[str, Any] = {}
        for name, (hint, default) in parameters.items():
            value = ... if default is inspect.Parameter.empty else default
            fields[f"p_{name}"] = (hint, pydantic.Field(value, alias=name, description=descriptions.get(name)))
        config = pydantic.ConfigDict(extra="forbid", arbitrary_types_allowed=False)
        model = pydantic.create_model("Arguments", __config__=config, **fields)
        error_class = pydantic.ValidationError

        def adapt(arguments: dict[str, Any]) -> dict[str, Any]:
            try:
                checked = model.model_validate(arguments)
            except error_class as error:
                first = error.errors()[0]
                path = ".".join(str(step) for step in first["loc"])
                raise InvalidArguments(f"argument {path}: {first['msg']}") from None
            return {name: getattr(checked, f"p_{name}") for name in parameters if name in arguments}

        self.adapt = adapt
        schema: Schema = model.model_json_schema(by_alias=True)
        schema.pop("title", None)
        for field in schema.get("properties", {}).values():
            field.pop("title", None)
        return schema

    def _result(self, function: Callable[..., Any], hint: Any) -> Schema | None:
        try:
            return _schema(hint) or None
        except _NotPlain:
            pass
        pydantic = _pydantic(function)
        adapter = pydantic.TypeAdapter(hint)

        def dump(result: Any) -> Any:
            return adapter.dump_python(adapter.validate_python(result), mode="json")

        self.dump = dump
        schema: Schema = adapter.json_schema(mode="serialization")
        return schema


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", repr(function))


def _pydantic(function: Callable[..., Any]) -> Any:
    try:
        import pydantic
    except ImportError:
        raise TypeError(
            f"{_name(function)}: its type hints need pydantic; install ptc-lisp[pydantic], or use str, int, float, bool, list,"
            " dict, Literal, TypedDict and unions of them"
        ) from None
    return pydantic
