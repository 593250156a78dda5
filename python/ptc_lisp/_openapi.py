"""Tools of an API that an OpenAPI document describes: one for each operation."""

from __future__ import annotations

import base64
import itertools
import json
import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar, cast
from urllib.parse import quote, urlsplit

from ._errors import CallInterrupted, ToolError

if TYPE_CHECKING:
    import httpx

    from ._engine import ToolCall

_log = logging.getLogger("ptc_lisp")
_Made = TypeVar("_Made")

METHODS = ("get", "head", "post", "put", "patch", "delete")
READS = ("get", "head")
REPEATABLE = ("get", "head", "put", "delete")

_MAX_REFERENCES = 32
"""How many references may lead from one to the next."""
_MAX_SCHEMAS = 1_000
"""How many schemas of the document one tool may refer to."""
_MAX_DEPTH = 64
"""How deep a schema may be, without its references."""
_IGNORED_HEADERS = {
    *("accept", "authorization", "content-type"),
    # They say how a request is sent and to whom, which no argument decides.
    *("host", "content-length", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade", "cookie"),
    *("expect", "accept-encoding", "content-encoding"),
    # They make another method of it, with another effect.
    *("x-http-method", "x-http-method-override", "x-method-override"),
}
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
"""A name of RFC 9110, for headers and cookies."""
_STYLES = {
    "path": ("simple",),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
_ABOUT_ONLY = ("discriminator", "xml", "example", "examples", "externalDocs", "deprecated", "readOnly", "writeOnly", "nullable")


class _LeftOut(Exception):
    """An operation that cannot be requested, and why."""


class Parameter(NamedTuple):
    """A parameter of an operation."""

    name: str
    where: str
    style: str
    explode: bool
    is_json: bool


class Operation(NamedTuple):
    """An operation, and the schemas of the tool that requests it."""

    name: str
    method: str
    path: str
    description: str
    parameters: list[Parameter]
    body: str | None
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None


class Document:
    """An OpenAPI document, whose references are resolved within it, with bounds."""

    def __init__(self, document: Mapping[str, Any] | str, headers: Mapping[str, str] | None = None) -> None:
        try:
            read: Any = json.loads(document) if isinstance(document, str) else document
        except RecursionError:
            raise ValueError("the document is nested too deep; no OpenAPI document is") from None
        if not isinstance(read, Mapping) or not str(read.get("openapi", "")).startswith("3."):
            raise ValueError('the document must be OpenAPI 3.x, with "openapi": "3..."; convert other versions first')
        if not isinstance(read.get("paths", {}), (Mapping, type(None))):
            raise ValueError("the document's paths must be an object, of descriptions by path")
        self.root: Mapping[str, Any] = read
        self._configured = {name.lower() for name in headers or {}}

    def base_url(self) -> str | None:
        """Returns the address of the first server, if it is complete."""
        try:
            server = (self.root.get("servers") or [{}])[0]
            url = str(server.get("url", ""))
            for name, variable in (server.get("variables") or {}).items():
                url = url.replace("{" + name + "}", str(variable.get("default", "")))
        except (AttributeError, KeyError, TypeError):
            # It is malformed.
            return None
        return url.rstrip("/") if re.match(r"https?://", url) else None

    def made(self, prefix: str, with_own_servers: bool, make: Callable[[Operation], _Made]) -> Iterator[_Made]:
        """Returns what is made of each operation. One that cannot be made is left out, and logged with the reason."""
        names: set[str] = set()
        for path, item in (self.root.get("paths") or {}).items():
            for method in self._methods(path, item):
                try:
                    operation = self._operation(prefix, method, path, self._resolved(item), with_own_servers)
                    if operation.name in names:
                        raise _LeftOut(f"there are two operations {operation.name}; give them different operationIds")
                    made = make(operation)
                except Exception as why:
                    # Any part of the document may be of any kind, and no operation may keep the others from being tools.
                    about = "" if isinstance(why, (_LeftOut, ValueError)) else f"it is malformed: {type(why).__name__}: "
                    _log.warning("%s %s is not a tool: %s%s", method.upper(), path, about, why)
                    continue
                names.add(operation.name)
                yield made

    def _methods(self, path: Any, item: Any) -> list[str]:
        """Returns the methods that a path has."""
        try:
            item = self._resolved(item)
        except _LeftOut as why:
            _log.warning("the operations of %s are not tools: %s", path, why)
            return []
        return [method for method in METHODS if method in item]

    def _is_ours(self, where: Any, name: str) -> bool:
        """Returns whether the host or the package sets a parameter, which is then no argument."""
        name = name.lower()
        if where == "header":
            return name in _IGNORED_HEADERS or name.startswith("proxy-") or name in self._configured
        return where == "cookie" and "cookie" in self._configured

    def _operation(
        self, prefix: str, method: str, path: Any, item: Mapping[str, Any], with_own_servers: bool
    ) -> Operation:
        described = item[method]
        if not isinstance(path, str) or not path.startswith("/"):
            # Put behind the address of the API, it could lead to another one.
            raise _LeftOut("its path does not start with /")
        if not with_own_servers and (item.get("servers") or described.get("servers")):
            raise _LeftOut("it has a server of its own; pass base_url= to send it to that one")
        collected = _Schemas(self)
        parameters: dict[tuple[str, str], Mapping[str, Any]] = {}
        for given in [*(item.get("parameters") or ()), *(described.get("parameters") or ())]:
            one = self._resolved(given)
            name, where = one.get("name"), one.get("in")
            if not isinstance(name, str) or not name or not isinstance(where, str):
                raise _LeftOut('it has a parameter without a "name" or an "in"')
            if not self._is_ours(where, name):
                parameters[(name, where)] = one
        properties: dict[str, Any] = {}
        required: list[str] = []
        made: list[Parameter] = []
        for (name, _), one in parameters.items():
            if name in properties:
                raise _LeftOut(f"it has two parameters {name}")
            parameter, schema = self._parameter(one)
            made.append(parameter)
            properties[name] = collected.rewritten(schema, one.get("description"))
            if one.get("required") or parameter.where == "path":
                required.append(name)
        _check_path(path, made)
        body = self._body(described, properties, required, collected)
        schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
        about = [described.get("summary") or "", described.get("description") or ""]
        name = described.get("operationId") or f"{method}{path}"
        return Operation(
            name=prefix + re.sub(r"[^A-Za-z0-9_-]+", "_", str(name)).strip("_"),
            method=method,
            path=path,
            description="\n".join(text for text in dict.fromkeys(about) if text),
            parameters=made,
            body=body,
            input_schema=collected.closed(schema),
            output_schema=self._result(described),
        )

    def _parameter(self, one: Mapping[str, Any]) -> tuple[Parameter, Any]:
        name, where = one["name"], one["in"]
        if where not in _STYLES:
            raise _LeftOut(f"the parameter {name} is in {where}, which does not exist")
        if where in ("header", "cookie") and not _TOKEN.match(name):
            raise _LeftOut(f"{name!r} is not a name of a {where}")
        style = one.get("style", _STYLES[where][0])
        if style not in _STYLES[where]:
            raise _LeftOut(f"the parameter {name} has the style {style}, which is not supported")
        content = one.get("content")
        if content and set(content) != {"application/json"}:
            raise _LeftOut(f"the parameter {name} is not JSON")
        schema = content["application/json"].get("schema", {}) if content else one.get("schema", {})
        return Parameter(name, where, style, bool(one.get("explode", style == "form")), bool(content)), schema

    def _body(
        self, described: Mapping[str, Any], properties: dict[str, Any], required: list[str], collected: _Schemas
    ) -> str | None:
        """Adds the argument `body`, if the operation has one, and returns its content type."""
        if "requestBody" not in described:
            return None
        body = self._resolved(described["requestBody"])
        content = body.get("content") or {}
        chosen: list[str] = [kind for kind in content if _is_json(kind)] + [
            kind for kind in content if kind == "application/x-www-form-urlencoded" or kind.startswith("text/")
        ]
        if chosen and not (chosen[0].isprintable() and chosen[0].isascii()):
            raise _LeftOut(f"its body has the content type {chosen[0]!r}, which no header can have")
        if not chosen:
            if body.get("required"):
                raise _LeftOut(f"its body is {', '.join(content) or 'not described'}, which is not supported")
            return None
        if "body" in properties:
            raise _LeftOut("it has a parameter `body` and a body")
        properties["body"] = collected.rewritten(content[chosen[0]].get("schema", {}), body.get("description"))
        if body.get("required"):
            required.append("body")
        return chosen[0]

    def _result(self, described: Mapping[str, Any]) -> dict[str, Any] | None:
        """Returns the schema of the result, if all responses that succeed have the same kind."""
        responses = [
            self._resolved(response)
            for status, response in (described.get("responses") or {}).items()
            if str(status).startswith("2")
        ]
        schemas = [
            media.get("schema")
            for response in responses
            for kind, media in (response.get("content") or {}).items()
            if _is_json(kind)
        ]
        if len(responses) != 1 or len(schemas) != 1 or not schemas[0]:
            return None
        collected = _Schemas(self, is_result=True)
        return collected.closed(collected.rewritten(schemas[0], None))

    def _resolved(self, one: Any) -> Mapping[str, Any]:
        """Follows the references of a part of the document."""
        for _ in range(_MAX_REFERENCES):
            if not isinstance(one, Mapping):
                raise _LeftOut("a part of its description is not an object")
            if "$ref" not in one:
                return one
            one = self.at(one["$ref"])
        raise _LeftOut(f"more than {_MAX_REFERENCES} references lead from one to the next")

    def at(self, reference: Any) -> Any:
        """Returns what a reference within the document points to."""
        if not isinstance(reference, str) or not reference.startswith("#/"):
            raise _LeftOut(f"the reference {reference} leads out of the document; nothing is fetched")
        found: Any = self.root
        for step in reference[2:].split("/"):
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, Sequence) and not isinstance(found, str) and step.isdigit() and int(step) < len(found):
                found = found[int(step)]
            elif isinstance(found, Mapping) and step in found:
                found = found[step]
            else:
                raise _LeftOut(f"the reference {reference} leads nowhere")
        return found


class _Schemas:
    """The schemas of one tool: those of the document that it refers to become its own definitions."""

    def __init__(self, document: Document, is_result: bool = False) -> None:
        self._document = document
        self._is_result = is_result
        self._names: dict[str, str] = {}
        self._definitions: dict[str, Any] = {}
        self._waiting: list[tuple[str, Any]] = []

    def rewritten(self, schema: Any, description: str | None) -> Any:
        """Returns a schema as JSON Schema, with references to the definitions."""
        made = self._rewrite(schema, 0)
        # One after another: a definition may refer to itself, and a chain of them may be long.
        while self._waiting:
            name, target = self._waiting.pop()
            self._definitions[name] = self._rewrite(target, 0)
        if description and isinstance(made, dict) and "description" not in made:
            made["description"] = description
        return made

    def closed(self, schema: Any) -> dict[str, Any]:
        """Returns a schema with the definitions that it refers to."""
        closed = dict(schema) if isinstance(schema, Mapping) else {}
        return {**closed, "$defs": self._definitions} if self._definitions else closed

    def _rewrite(self, schema: Any, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise _LeftOut(f"a schema is more than {_MAX_DEPTH} deep")
        if isinstance(schema, list):
            return [self._rewrite(one, depth + 1) for one in schema]
        if not isinstance(schema, Mapping):
            return schema
        if "$ref" in schema:
            return {"$ref": f"#/$defs/{self._defined(schema['$ref'])}"}
        made: dict[str, Any] = {}
        for name, value in schema.items():
            if name in _ABOUT_ONLY:
                continue
            if name in ("enum", "const", "default", "required"):
                made[name] = value
            elif name in ("properties", "patternProperties", "$defs", "definitions"):
                made[name] = {key: self._rewrite(one, depth + 1) for key, one in value.items()}
            else:
                made[name] = self._rewrite(value, depth + 1)
        self._without_hidden(schema, made)
        return _of_3_0(schema, made)

    def _without_hidden(self, schema: Mapping[str, Any], made: dict[str, Any]) -> None:
        """Removes properties that only the other direction has."""
        mark = "writeOnly" if self._is_result else "readOnly"
        hidden = [name for name, one in (schema.get("properties") or {}).items() if isinstance(one, Mapping) and one.get(mark)]
        for name in hidden:
            del made["properties"][name]
        if hidden and "required" in made:
            made["required"] = [name for name in made["required"] if name not in hidden]

    def _defined(self, reference: Any) -> str:
        if reference not in self._names:
            if len(self._names) == _MAX_SCHEMAS:
                raise _LeftOut(f"it refers to more than {_MAX_SCHEMAS} schemas")
            target = self._document.at(reference)
            base = re.sub(r"[^A-Za-z0-9_]+", "_", str(reference).rsplit("/", 1)[1]) or "schema"
            others = (f"{base}_{number}" for number in itertools.count(2))
            name = next(name for name in itertools.chain((base,), others) if name not in self._definitions)
            self._names[reference] = name
            self._definitions[name] = {}
            self._waiting.append((name, target))
        return self._names[reference]


def _of_3_0(schema: Mapping[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    """Changes what OpenAPI 3.0 writes in another way than JSON Schema."""
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(made.get(exclusive), bool):
            if made.pop(exclusive) and bound in made:
                made[exclusive] = made.pop(bound)
    if schema.get("nullable") is True:
        return {"anyOf": [made, {"type": "null"}]}
    return made


def _check_path(path: str, parameters: list[Parameter]) -> None:
    """Checks that each parameter of a path is described, so that no request has a template for a path."""
    rest = path
    for parameter in parameters:
        if parameter.where == "path":
            rest = rest.replace("{" + parameter.name + "}", "")
    found = re.search(r"\{[^{}]*\}?|\}", rest)
    if found:
        raise _LeftOut(f"its path has {found[0]}, which is none of its described parameters")


def _is_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


CALL = "ptc_lisp_call"
"""The parameter of a tool's function that receives the call."""


class Connections:
    """The connections of an API, which are closed when no tool uses them any more. A forked process has its own: two that
    read from one connection would get each other's responses."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = headers
        self._process = os.getpid()
        self._all = [self._new()]

    def _new(self) -> httpx.Client:
        import httpx

        from . import _exchange

        # All runs of all tenants share the connections: no cookie of one may reach another.
        hooks = {"response": [_exchange.keep_location]}
        return httpx.Client(headers=self._headers, cookies=_exchange.no_cookies(), event_hooks=hooks)

    @property
    def client(self) -> httpx.Client:
        """The connections of this process."""
        if self._process != os.getpid():
            # Those of the other process stay open: to close them here would end them there.
            self._all.append(self._new())
            self._process = os.getpid()
        return self._all[-1]

    def __del__(self) -> None:
        if len(self._all) == 1 and self._process == os.getpid():
            self._all[0].close()


class Api(NamedTuple):
    """Where an API is, and how it is requested."""

    http: Connections
    base_url: str
    timeout: float
    max_response_bytes: int

    def checked(self) -> Api:
        """Returns this API. Raises `ValueError` if its address is none."""
        from . import _exchange

        if _exchange.address(self.base_url) is None:
            # Without the address: it may have a password.
            raise ValueError('the address of the API is not valid; pass base_url="https://..."')
        return self

    def url(self, path: str) -> httpx.URL:
        """Returns the address of a path. It must be of this API, whose credentials are sent there."""
        import httpx

        base = httpx.URL(self.base_url)
        url = httpx.URL(self.base_url + path)
        if (url.scheme, url.host, url.port) != (base.scheme, base.host, base.port):
            raise ToolError("the address of the operation is not that of the API; nothing was sent")
        return url

    def without_credentials(self, text: str) -> str:
        """Returns a text without the name and the password that the address may have."""
        credentials, at, _ = urlsplit(self.base_url).netloc.rpartition("@")
        return text.replace(credentials + at, "") if at else text


def function_of(operation: Operation, api: Api) -> Callable[..., Any]:
    """Returns the function that requests an operation."""

    def request(**arguments: Any) -> Any:
        call: ToolCall = arguments.pop(CALL)
        return _Requested(operation, api, call).exchanged(arguments)

    return request


class _Requested:
    """A request of an operation."""

    def __init__(self, operation: Operation, api: Api, call: ToolCall) -> None:
        self._operation = operation
        self._api = api
        self._call = call

    def exchanged(self, arguments: Mapping[str, Any]) -> Any:
        """Sends the request, and returns the result of its response."""
        import httpx

        from . import _exchange

        left = self._call.remaining
        timeout = self._api.timeout if left is None else max(min(self._api.timeout, left), 0.001)
        exchange = _exchange.Exchange(None if left is None else time.monotonic() + left, timeout)
        try:
            with _exchange.bounded(exchange) as trace:
                request = self._request(arguments, timeout, trace)
                response = self._api.http.client.send(request, stream=True, follow_redirects=False)
                try:
                    return self._result(response)
                finally:
                    response.close()
        except httpx.TransportError as error:
            self._raise_lost(error, exchange.may_have_arrived)

    def _request(self, arguments: Mapping[str, Any], timeout: float, trace: Any) -> httpx.Request:
        import httpx

        operation, api = self._operation, self._api
        path, query, given, cookies = _placed(operation, arguments)
        # Names in any case, each once: those that are set here replace arguments.
        headers = httpx.Headers(given)
        headers["Accept-Encoding"] = "identity"
        content = None
        if operation.body is not None and "body" in arguments:
            headers["Content-Type"] = operation.body
            content = _encoded(operation.body, arguments["body"])
        if operation.method not in READS and self._call.key is not None:
            headers["Idempotency-Key"] = self._call.key
        if cookies:
            headers["Cookie"] = "; ".join(cookies)
        try:
            return api.http.client.build_request(
                operation.method.upper(),
                api.url(path),
                params=tuple(query),
                headers=headers,
                content=content,
                timeout=timeout,
                extensions={"trace": trace},
            )
        except (httpx.InvalidURL, ValueError):
            # Its text may have a part of the address.
            raise ToolError("the address of the operation is not valid; nothing was sent") from None

    def _raise_lost(self, error: Exception, may_have_arrived: bool) -> NoReturn:
        failed = f"{self._api.base_url} did not respond: {str(error) or type(error).__name__}"
        failed = self._api.without_credentials(failed)
        if may_have_arrived and self._operation.method not in REPEATABLE:
            # The program must not make the call again.
            raise CallInterrupted(f"{failed}; it is unknown whether the request was carried out") from error
        raise ToolError(failed) from error

    def _result(self, response: httpx.Response) -> Any:
        try:
            return _result_of(response, self._api.max_response_bytes)
        except _NotRead as why:
            if self._operation.method in READS:
                raise ToolError(f"{why}{why.instead}") from None
            raise ToolError(f"status {response.status_code}, so the request had its effect; {why}") from None


class _NotRead(Exception):
    """Why a response has no result, and what to do instead if it can be requested again."""

    def __init__(self, why: str, instead: str = "") -> None:
        super().__init__(why)
        self.instead = instead


def _placed(
    operation: Operation, arguments: Mapping[str, Any]
) -> tuple[str, list[tuple[str, str]], dict[str, str], list[str]]:
    """Returns the path, the query, the headers and the cookies that have the arguments."""
    path, query, headers, cookies = operation.path, [], {}, []
    for parameter in operation.parameters:
        value = arguments.get(parameter.name)
        if value is None:
            if parameter.where == "path":
                raise ToolError(f"the argument {parameter.name} is a part of the path and must not be nil")
            continue
        if parameter.where == "query":
            query += _pairs(parameter, value)
        elif parameter.where == "path":
            path = path.replace("{" + parameter.name + "}", _segment(parameter, value))
        elif parameter.where == "header":
            headers[parameter.name] = _line(parameter.name, _joined(parameter, value))
        else:
            cookies.append(f"{parameter.name}={quote(_joined(parameter, value), safe='')}")
    return path, query, headers, cookies


def _line(name: str, text: str) -> str:
    if not text.isprintable() or not text.isascii():
        raise ToolError(f"the argument {name} is a header and must be printable ASCII")
    return text


def _segment(parameter: Parameter, value: Any) -> str:
    text = _joined(parameter, value)
    if text in ("", ".", ".."):
        raise ToolError(f"the argument {parameter.name} is a part of the path and must not be {text!r}")
    return quote(text, safe="")


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _joined(parameter: Parameter, value: Any) -> str:
    if parameter.is_json:
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return ",".join(_text(one) for one in value)
    if isinstance(value, dict):
        between = "=" if parameter.explode else ","
        return ",".join(f"{key}{between}{_text(one)}" for key, one in value.items())
    return _text(value)


def _pairs(parameter: Parameter, value: Any) -> list[tuple[str, str]]:
    name = parameter.name
    if parameter.is_json or not isinstance(value, (list, dict)):
        return [(name, _joined(parameter, value))]
    if parameter.style == "deepObject" and isinstance(value, dict):
        return [(f"{name}[{key}]", _text(one)) for key, one in value.items()]
    if parameter.explode:
        return [(name, _text(one)) for one in value] if isinstance(value, list) else [(key, _text(one)) for key, one in value.items()]
    between = {"spaceDelimited": " ", "pipeDelimited": "|"}.get(parameter.style, ",")
    parts = value if isinstance(value, list) else [part for pair in value.items() for part in pair]
    return [(name, between.join(_text(part) for part in parts))]


def _encoded(content_type: str, body: Any) -> bytes:
    if _is_json(content_type):
        return json.dumps(body, ensure_ascii=False).encode()
    if content_type.startswith("text/"):
        return _text(body).encode()
    from urllib.parse import urlencode

    if not isinstance(body, dict):
        raise ToolError("the argument body is a form and must be a map")
    pairs = [(key, one) for key, value in body.items() for one in (value if isinstance(value, list) else [value])]
    return urlencode([(key, _text(one)) for key, one in pairs if one is not None]).encode()


def _content_of(response: httpx.Response, max_bytes: int) -> bytes:
    from . import _exchange

    encoding = _exchange.encoding_of(response)
    if encoding is not None:
        # What it becomes may be a thousand times as large, more than once.
        raise _NotRead(f"the response is compressed with {encoding!r}, which was not asked for")
    parts: list[bytes] = []
    size = 0
    for received in response.iter_raw():
        parts.append(received)
        size += len(received)
        if size > max_bytes:
            raise _NotRead(f"the response is larger than {max_bytes} bytes", "; request less")
    return b"".join(parts)


def _decoded(response: httpx.Response, content: bytes) -> str:
    try:
        return content.decode(response.charset_encoding or "utf-8", "replace")
    except (LookupError, ValueError):
        # Not every name of a codec is one of text.
        return content.decode("utf-8", "replace")


def _result_of(response: httpx.Response, max_bytes: int) -> Any:
    from . import _exchange

    status = response.status_code
    if not 200 <= status < 300:
        to = _exchange.location(response)
        where = f" to {to}, which is not followed" if to is not None else ""
        try:
            text = _decoded(response, _content_of(response, max_bytes))
        except _NotRead as why:
            text = str(why)
        about = f": {text[:500]}" if text else ""
        raise ToolError(f"status {status} {response.reason_phrase}{where}{about}", code=status)
    content = _content_of(response, max_bytes)
    kind = response.headers.get("content-type", "")
    if not content:
        return None
    if _is_json(kind):
        try:
            return cast(Any, json.loads(content))
        except (ValueError, RecursionError) as error:
            raise _NotRead(f"the response is not valid JSON: {error}") from error
    if kind.startswith("text/") or "xml" in kind:
        return _decoded(response, content)
    return {"base64": base64.b64encode(content).decode(), "content_type": kind}
