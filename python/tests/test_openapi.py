"""Tools of an OpenAPI document, against a real HTTP server."""

import asyncio
import gzip
import json
import logging
import re
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

import pytest

from ptc_lisp import Engine, Limits, Suspended, ToolError, Tools, ask

DOCUMENT = {
    "openapi": "3.0.3",
    "info": {"title": "Shop", "version": "1"},
    "servers": [{"url": "/api"}],
    "paths": {
        "/items/{sku}": {
            "parameters": [{"$ref": "#/components/parameters/sku"}],
            "get": {
                "operationId": "getItem",
                "summary": "Returns an item.",
                "parameters": [
                    {"name": "fields", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
                    {"name": "where", "in": "query", "style": "deepObject", "schema": {"type": "object"}},
                    {"name": "ids", "in": "query", "style": "pipeDelimited", "explode": False, "schema": {"type": "array"}},
                    {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
                    {"name": "Authorization", "in": "header", "schema": {"type": "string"}},
                    {"name": "session", "in": "cookie", "schema": {"type": "string"}},
                ],
                "responses": {"200": {"description": "it", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Echo"}}}}},
            },
            "put": {
                "operationId": "put.item",
                "requestBody": {"required": True, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Item"}}}},
                "responses": {"200": {"description": "it"}},
            },
            "delete": {"responses": {"204": {"description": "gone"}}},
        },
        "/notes": {
            "post": {
                "operationId": "note",
                "requestBody": {"content": {"application/x-www-form-urlencoded": {"schema": {"type": "object"}}}},
                "responses": {"200": {"description": "text"}},
            }
        },
        "/files": {"post": {"operationId": "upload", "requestBody": {"required": True, "content": {"multipart/form-data": {}}}, "responses": {}}},
        "/out": {"get": {"operationId": "out", "parameters": [{"name": "x", "in": "query", "schema": {"$ref": "other.yaml#/x"}}], "responses": {}}},
        "/status/{code}": {"get": {"operationId": "status", "parameters": [{"name": "code", "in": "path", "required": True, "schema": {"type": "integer"}}], "responses": {}}},
    },
    "components": {
        "parameters": {"sku": {"name": "sku", "in": "path", "required": True, "description": "the item", "schema": {"type": "string"}}},
        "schemas": {
            "Echo": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
            "Item": {
                "type": "object",
                "properties": {
                    "id": {"type": "integer", "readOnly": True},
                    "note": {"type": "string", "nullable": True},
                    "price": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
                    "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Item"}},
                },
                "required": ["id", "price"],
                "additionalProperties": False,
            },
        },
    },
}


class _Api(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _serve(self):
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        if url.path.startswith("/api/status/"):
            code = int(url.path.rsplit("/", 1)[1])
            headers = {"Location": "/elsewhere"} if code == 302 else {}
            return self._send(code, b"it went wrong", "text/plain", headers)
        if self.command == "DELETE":
            return self._send(204, b"", "", {})
        if url.path == "/api/notes":
            return self._send(200, body.encode(), "text/plain; charset=utf-8", {})
        names = ("X-Trace", "Cookie", "X-Key", "Idempotency-Key", "Authorization", "Content-Type")
        echo = {
            "method": self.command,
            "path": url.path,
            "query": parse_qsl(url.query),
            "headers": {name: self.headers[name] for name in names if name in self.headers},
            "body": json.loads(body) if body else None,
        }
        return self._send(200, json.dumps(echo).encode(), "application/json", {})

    do_GET = do_PUT = do_POST = do_DELETE = _serve

    def _send(self, status, body, kind, headers):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        if kind:
            self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def address():
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Api)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/api"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def tools(address):
    return Tools.from_openapi(DOCUMENT, base_url=address, headers={"X-Key": "secret"})


@pytest.fixture(scope="module")
def engine(tools):
    return Engine(tools=tools, limits=Limits(timeout=60))


def test_one_tool_for_each_operation(tools, address, caplog):
    found = {tool.name: (tool.effect, tool.idempotent) for tool in tools}
    assert found == {
        "getItem": ("read", True),
        "put_item": ("write", True),
        "delete_items_sku": ("write", True),
        "note": ("write", False),
        "status": ("read", True),
    }
    with caplog.at_level(logging.WARNING, logger="ptc_lisp"):
        Tools.from_openapi(json.dumps(DOCUMENT), base_url=address, prefix="shop__")
    assert "POST /files is not a tool: its body is multipart/form-data" in caplog.text
    assert "GET /out is not a tool: the reference other.yaml#/x leads out of the document" in caplog.text


def test_arguments_are_put_where_they_belong(engine):
    outcome = engine.run(
        """(tool/getItem {:sku "a/b ?" :fields ["id" "price"] :where {:a 1} :ids [1 2] :X-Trace "t" :session "s 1"})"""
    )
    echo = outcome.raise_for_error().value
    assert (echo["method"], echo["path"]) == ("GET", "/api/items/a%2Fb%20%3F")
    assert echo["query"] == [["fields", "id"], ["fields", "price"], ["where[a]", "1"], ["ids", "1|2"]]
    assert echo["headers"] == {"X-Trace": "t", "Cookie": "session=s%201", "X-Key": "secret"}


@pytest.mark.parametrize("sku", ["", ".", ".."])
def test_the_path_cannot_be_left(engine, sku):
    error = engine.run("(tool/getItem {:sku data/sku})", data={"sku": sku}).error
    assert error.reason == "tool_error" and "is a part of the path" in error.message


def test_a_header_is_one_line(engine):
    assert "printable" in engine.run('(tool/getItem {:sku "a" :X-Trace "a\\nX-Key: b"})').error.message


def test_bodies(engine):
    echo = engine.run('(tool/put_item {:sku "a" :body {:price 2.5 :note nil :parts [{:price 1}]}})').raise_for_error().value
    assert echo["body"] == {"price": 2.5, "note": None, "parts": [{"price": 1}]} and echo["method"] == "PUT"
    assert echo["headers"]["Content-Type"] == "application/json" and "Idempotency-Key" not in echo["headers"]
    assert engine.run('(tool/note {:body {:text "a b" :tags ["x" "y"]}})').value == "tags=x&tags=y&text=a+b"
    assert engine.run('(tool/delete_items_sku {:sku "a"})').raise_for_error().value is None


@pytest.mark.parametrize(
    "program",
    [
        '(tool/put_item {:sku "a" :body {:price 0}})',
        '(tool/put_item {:sku "a" :body {:price 1 :parts [{:price "x"}]}})',
        '(tool/put_item {:sku "a" :body {:price 1 :id 5}})',
        '(tool/put_item {:sku "a"})',
        '(tool/getItem {:sku "a" :Authorization "mine"})',
    ],
)
def test_arguments_are_checked(engine, program):
    assert engine.run(program).error.reason == "invalid_tool_args"


def test_errors_of_the_service(engine):
    program = "(try (tool/status {:code data/code}) (catch Exception e [(:code e) (:message e)]))"
    code, message = engine.run(program, data={"code": 404}).value
    assert code == 404 and "status 404 Not Found: it went wrong" in message
    code, message = engine.run(program, data={"code": 302}).value
    assert code == 302 and "to /elsewhere, which is not followed" in message


def test_a_response_is_bounded(address):
    engine = Engine(tools=Tools.from_openapi(DOCUMENT, base_url=address, max_response_bytes=100), limits=Limits(timeout=60))
    assert "larger than 100 bytes" in engine.run('(tool/note {:body {:a (apply str (repeat 200 "x"))}})').error.message
    assert engine.run('(tool/note {:body {:a "x"}})').value == "a=x"


def test_a_server_that_is_not_there():
    engine = Engine(tools=Tools.from_openapi(DOCUMENT, base_url="http://127.0.0.1:9"))
    assert "http://127.0.0.1:9 did not respond" in engine.run('(tool/getItem {:sku "a"})').error.message


def test_async_and_parallel(engine):
    run = engine.run_async('(mapv :path (pmap #(tool/getItem {:sku (str %)}) (range 4)))')
    assert asyncio.run(run).value == [f"/api/items/{n}" for n in range(4)]


def test_recorded_writes_have_a_key(address):
    tools = Tools.from_openapi(DOCUMENT, base_url=address)
    engine = Engine(tools=tools, policy=lambda call: ask("write?"), limits=Limits(timeout=60))
    run = engine.start('(:headers (tool/put_item {:sku "a" :body {:price 1}}))')
    assert isinstance(run, Suspended)
    assert run.approve(run.calls[0]).value["Idempotency-Key"] == f"{run.run_id}/1"


def test_documents_that_are_refused():
    with pytest.raises(ValueError, match="OpenAPI 3.x"):
        Tools.from_openapi({"swagger": "2.0", "paths": {}})
    with pytest.raises(ValueError, match="base_url="):
        Tools.from_openapi(DOCUMENT)
    assert len(Tools.from_openapi({**DOCUMENT, "servers": [{"url": "https://{host}/v1", "variables": {"host": {"default": "shop.example"}}}]})) == 5


def test_references_are_bounded(caplog):
    def document(schemas, parameters=()):
        operation = {"operationId": "it", "parameters": list(parameters), "responses": {}, "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/s0"}}}}}
        return {"openapi": "3.1.0", "paths": {"/": {"post": operation}}, "components": {"schemas": schemas, "parameters": {"p": {"$ref": "#/components/parameters/p"}}}}

    many = {f"s{n}": {"properties": {"next": {"$ref": f"#/components/schemas/s{n + 1}"}}} for n in range(900)}
    with caplog.at_level(logging.WARNING, logger="ptc_lisp"):
        (chain,) = Tools.from_openapi(document({**many, "s900": {"type": "integer"}}), base_url="http://x")
        assert len(json.loads(chain.input_schema)["$defs"]) == 901
        wide = {"s0": {"anyOf": [{"$ref": f"#/components/schemas/s{n}"} for n in range(1, 1_101)]}}
        wide.update({f"s{n}": {"type": "integer"} for n in range(1, 1_101)})
        assert len(Tools.from_openapi(document(wide), base_url="http://x")) == 0
        assert "more than 1000 schemas" in caplog.text
        deep = {"type": "integer"}
        for _ in range(80):
            deep = {"type": "array", "items": deep}
        assert len(Tools.from_openapi(document({"s0": deep}), base_url="http://x")) == 0
        assert "more than 64 deep" in caplog.text
        loop = document({"s0": {}}, [{"$ref": "#/components/parameters/p"}])
        assert len(Tools.from_openapi(loop, base_url="http://x")) == 0
        assert "references lead from one to the next" in caplog.text


def described(paths, **more):
    return {"openapi": "3.1.0", "paths": paths, **more}


GET = {"operationId": "it", "responses": {}}


@pytest.mark.parametrize("path", [":{port}/steal", "@127.0.0.1:{port}/x", ".evil.com/x", "x", "", "?x", "#x", 5])
def test_no_operation_leads_to_another_origin(path, address, caplog):
    port = address.split(":")[2].split("/")[0]
    path = path.replace("{port}", port) if isinstance(path, str) else path
    with caplog.at_level(logging.WARNING, logger="ptc_lisp"):
        tools = Tools.from_openapi(described({path: {"get": GET}}), base_url="http://127.0.0.1", headers={"X-Key": "secret"})
    assert len(tools) == 0 and "its path does not start with /" in caplog.text


def test_the_origin_is_compared_before_sending(address):
    from ptc_lisp import _openapi

    api = _openapi.Api(_openapi.Connections({}), "http://127.0.0.1", 1.0, 1)
    assert str(api.url("/a%2Fb")) == "http://127.0.0.1/a%2Fb"
    for path in (":1/x", "@evil.com/x", ".evil.com/x"):
        with pytest.raises(ToolError, match="nothing was sent"):
            api.url(path)


def test_headers_of_the_host_are_no_arguments(address, caplog):
    names = ["Host", "content-length", "Transfer-Encoding", "Connection", "Cookie", "Proxy-Authorization", "x-KEY", "Authorization"]
    parameters = [{"name": name, "in": "header", "required": True, "schema": {"type": "string"}} for name in names]
    parameters += [{"name": "X-Trace", "in": "header"}, {"name": "sid", "in": "cookie"}]
    headers = {"X-Key": "secret", "cookie": "sid=mine"}
    tools = Tools.from_openapi(described({"/h": {"get": {**GET, "parameters": parameters}}}), base_url=address, headers=headers)
    assert list(json.loads(tools[0].input_schema)["properties"]) == ["X-Trace"]
    echo = Engine(tools=tools, limits=Limits(timeout=60)).run('(tool/it {:X-Trace "t"})').raise_for_error().value
    assert echo["headers"] == {"X-Trace": "t", "Cookie": "sid=mine", "X-Key": "secret"}
    with caplog.at_level(logging.WARNING, logger="ptc_lisp"):
        for where, name in (("cookie", "a; b"), ("cookie", "a=b"), ("header", "X: y"), ("header", "X\n")):
            bad = {**GET, "parameters": [{"name": name, "in": where}]}
            assert len(Tools.from_openapi(described({"/h": {"get": bad}}), base_url=address)) == 0
            assert f"{name!r} is not a name of a {where}" in caplog.text


def test_credentials_of_the_address_are_not_shown(address):
    engine = Engine(tools=Tools.from_openapi(DOCUMENT, base_url="http://user:pa55@127.0.0.1:9"))
    message = engine.run('(tool/getItem {:sku "a"})').error.message
    assert "http://127.0.0.1:9 did not respond" in message and "pa55" not in message
    for bad in ("http://user:pa55@h:port", "user:pa55@h", "", "ftp://user:pa55@h"):
        with pytest.raises(ValueError, match="base_url=") as raised:
            Tools.from_openapi(DOCUMENT, base_url=bad)
        assert "pa55" not in str(raised.value)


def body(schema):
    return {"post": {**GET, "requestBody": {"content": {"application/json": {"schema": schema}}}}}


def deep_all_of():
    schema = {"type": "object"}
    for _ in range(60):
        schema = {"allOf": [schema]}
    return schema


@pytest.mark.parametrize(
    "item",
    [
        [],
        "x",
        None,
        {"get": []},
        {"get": None},
        {"get": {**GET, "parameters": [{"in": "query"}]}},
        {"get": {**GET, "parameters": [{"name": 5, "in": "query"}]}},
        {"get": {**GET, "parameters": [{"name": "a"}]}},
        {"get": {**GET, "parameters": 5}},
        {"get": {**GET, "parameters": [{"$ref": "#/components/nothing"}]}},
        {"get": {**GET, "parameters": [{"name": "a", "in": "query", "content": ["x"]}]}},
        {"get": {**GET, "responses": ["x"]}},
        {"get": {**GET, "responses": {"200": []}}},
        {"get": {**GET, "operationId": "x" * 10_000}},
        {"get": {**GET, "operationId": "ä"}},
        {"$ref": "#/nowhere"},
        body({"properties": []}),
        body({"properties": {"a": {"type": "banana"}}}),
        body({"type": "string", "pattern": "("}),
        body({"$ref": "#/components/schemas/Self"}),
        body({"$ref": ["x"]}),
        body({"enum": [{1, 2}]}),
        {"post": {**GET, "requestBody": {"content": {"application/json": []}}}},
        {"post": {**GET, "requestBody": 5}},
    ],
)
def test_one_bad_operation_leaves_the_others(item, caplog):
    paths = {"/bad": item, "/good": {"get": {**GET, "operationId": "good"}}}
    document = described(paths, components={"schemas": {"Self": {"$ref": "#/components/schemas/Self"}}}, servers=["x"])
    with caplog.at_level(logging.WARNING, logger="ptc_lisp"):
        tools = Tools.from_openapi(document, base_url="http://x")
    assert [tool.name for tool in tools] == ["good"] and "/bad" in caplog.text
    Engine(tools=tools)


def test_an_engine_takes_all_tools_that_are_made():
    tools = Tools.from_openapi(described({"/bad": body(deep_all_of())}), base_url="http://x")
    Engine(tools=tools)


@pytest.mark.parametrize("document", ["", "[", "[" * 100_000, "5", "null", [], 5, {}, {"openapi": "3.0.0", "paths": []}, {"openapi": "3.0.0", "paths": "x"}])
def test_no_document(document):
    with pytest.raises(ValueError):
        Tools.from_openapi(document, base_url="http://x")


@pytest.mark.parametrize("servers", [["x"], 5, {"url": "http://x"}, [{"url": "http://x", "variables": ["x"]}], [[]]])
def test_malformed_servers_are_no_address(servers):
    with pytest.raises(ValueError, match="base_url="):
        Tools.from_openapi(described({}, servers=servers))


def test_definitions_do_not_collide():
    schemas = {"A_2": {"type": "string"}, "A": {"type": "integer"}}
    references = ["#/components/schemas/A_2", "#/components/schemas/A", "#/x/A", "#/x/A_2"]
    document = described(
        {"/": body({"properties": {str(n): {"$ref": reference} for n, reference in enumerate(references)}})},
        components={"schemas": schemas},
        x={"A": {"type": "boolean"}, "A_2": {"type": "number"}},
    )
    (tool,) = Tools.from_openapi(document, base_url="http://x")
    schema = json.loads(tool.input_schema)
    properties = schema["properties"]["body"]["properties"]
    kinds = [schema["$defs"][properties[str(n)]["$ref"].rsplit("/", 1)[1]]["type"] for n in range(4)]
    assert kinds == ["string", "integer", "boolean", "number"]


class Raw:
    """A server that answers each request with bytes of a test, and keeps the requests."""

    def __init__(self, answer, more=None):
        self._answer, self._more = answer, more
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._over = threading.Event()
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.requests = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with client:
            try:
                received = b""
                while b"\r\n\r\n" not in received:
                    received += client.recv(65536)
                self.requests.append(received.decode())
                client.sendall(self._answer)
                while self._more and not self._over.wait(0.005):
                    client.sendall(self._more)
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._over.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def http(status, body, *headers):
    head = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers])
    return head.encode("latin-1") + b"\r\n\r\n" + body


def engine_of(url, paths=None, timeout=60.0, **options):
    paths = paths or {"/it": {"get": GET, "post": {**GET, "operationId": "do"}, "put": {**GET, "operationId": "set"}}}
    return Engine(tools=Tools.from_openapi(described(paths), base_url=url, **options), limits=Limits(timeout=timeout))


def test_no_cookies_are_kept():
    with Raw(http("200 OK", b"{}", "Content-Type: application/json", "Set-Cookie: session=secret; Path=/")) as api:
        engine = engine_of(api.url)
        for tenant in ("one", "other"):
            engine.run("(tool/it {})", tenant=tenant).raise_for_error()
        assert len(api.requests) == 2 and "cookie" not in "".join(api.requests).lower()


def test_compressed_responses_are_not_read():
    twice = gzip.compress(gzip.compress(b" " * 10_000_000))
    with Raw(http("200 OK", twice, "Content-Type: application/json", "Content-Encoding: gzip, gzip")) as api:
        accept = {"name": "accept-encoding", "in": "header", "required": True, "schema": {"type": "string"}}
        engine = engine_of(api.url, {"/it": {"get": {**GET, "parameters": [accept]}}}, headers={"Accept-Encoding": "br"})
        message = engine.run("(tool/it {})").error.message
        assert message.endswith("the response is compressed with 'gzip, gzip', which was not asked for")
        assert re.findall(r"(?im)^accept-encoding: (.*)\r$", api.requests[0]) == ["identity"]


@pytest.mark.parametrize("where", ["mailto:x", "javascript:alert(1)", "http://xn--/", "http://[", "//", "http://a:99999999/"])
def test_redirects_to_no_address_are_named(where):
    with Raw(http("302 Found", b"", f"Location: {where}")) as api:
        outcome = engine_of(api.url).run("(try (tool/do {}) (catch Exception e [(:code e) (:message e)]))")
        assert outcome.value == [302, f"tool/do: status 302 Found to {where}, which is not followed"]


@pytest.mark.parametrize("address", ["http://xn--/", "http://a b", "http://h:99999", "http://[", "http://\0"])
def test_an_address_that_is_none_is_misuse(address):
    with pytest.raises(ValueError, match="the address of the API is not valid"):
        Tools.from_openapi(described({}), base_url=address)


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", b"what?\r\n\r\n"])
def test_a_write_without_a_response_is_unknown(answer):
    with Raw(answer) as api:
        engine = engine_of(api.url)
        error = engine.run("(try (tool/do {}) (catch Exception e 1))").error
        assert error.reason == "unknown_call" and len(api.requests) == 1
        # These have no second effect.
        assert engine.run("(mapv (fn [f] (try (f) (catch Exception e 1))) [#(tool/it {}) #(tool/set {})])").value == [1, 1]
    assert engine.run("(try (tool/do {}) (catch Exception e 1))").value == 1, "nothing listens: nothing was sent"


@pytest.mark.parametrize(
    "answer, why",
    [
        (http("201 Created", b"{" * 200, "Content-Type: application/json"), "larger than 100 bytes"),
        (http("201 Created", b"{", "Content-Type: application/json"), "not valid JSON"),
        (http("201 Created", b"[" * 99, "Content-Encoding: br"), "compressed with 'br'"),
    ],
)
def test_a_write_whose_response_is_not_read_had_its_effect(answer, why):
    with Raw(answer) as api:
        engine = engine_of(api.url, max_response_bytes=100)
        message = engine.run("(tool/do {})").error.message
        assert message.startswith("tool/do: status 201, so the request had its effect; ") and why in message
        assert "request less" not in message and "had its effect" not in engine.run("(tool/it {})").error.message


@pytest.mark.parametrize(
    "path, what", [("/u/{id}", "{id}"), ("/u/{sku}/{id}", "{id}"), ("/u/{", "{"), ("/u/}", "}"), ("/u/{}", "{}")]
)
def test_a_path_with_parameters_that_are_not_described(path, what, caplog):
    parameters = [{"name": "sku", "in": "path", "required": True}, {"name": "id", "in": "query"}]
    with caplog.at_level(logging.WARNING, logger="ptc_lisp"):
        tools = Tools.from_openapi(described({path: {"get": {**GET, "parameters": parameters}}}), base_url="http://x")
    assert len(tools) == 0 and f"its path has {what}, which is none of its described parameters" in caplog.text


@pytest.mark.parametrize(
    "answer, more",
    [
        (b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n"),
        (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000),
    ],
)
def test_headers_without_end_end_at_the_timeout(answer, more):
    with Raw(answer, more) as api:
        started = time.monotonic()
        engine = Engine(tools=Tools.from_openapi(described({"/it": {"get": GET}}), base_url=api.url, timeout=0.2), limits=Limits(timeout=60))
        assert "did not respond" in engine.run("(tool/it {})").error.message
        assert time.monotonic() - started < 20


def test_a_body_without_end_ends_with_the_run():
    with Raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"0") as api:
        started = time.monotonic()
        assert engine_of(api.url, timeout=0.3).run("(tool/it {})").error is not None
        assert time.monotonic() - started < 20


@pytest.mark.parametrize("charset", ["hex", "zlib", "idna", "undefined", "nothing"])
def test_a_charset_that_is_none(charset):
    with Raw(http("200 OK", b"abc", f"Content-Type: text/plain; charset={charset}")) as api:
        assert engine_of(api.url).run("(tool/it {})").value == "abc"


def test_a_key_of_a_recorded_write_replaces_an_argument():
    with Raw(http("200 OK", b"")) as api:
        given = {"name": "idempotency-key", "in": "header", "schema": {"type": "string"}}
        tools = Tools.from_openapi(described({"/it": {"post": {**GET, "parameters": [given]}}}), base_url=api.url)
        engine = Engine(tools=tools, policy=lambda call: ask("write?"), limits=Limits(timeout=60))
        run = engine.start('(tool/it {:idempotency-key "mine"})')
        assert run.approve(run.calls[0]).ok
        assert re.findall(r"(?im)^idempotency-key: (.*)\r$", api.requests[0]) == [f"{run.run_id}/1"]


def test_a_forked_process_has_connections_of_its_own():
    # In a process without threads.
    script = """
import os
from ptc_lisp import _openapi
connections = _openapi.Connections({"X": "1"})
first = connections.client
child = os.fork()
if child == 0:
    own = connections.client
    os._exit(0 if own is not first and own.headers["X"] == "1" and connections.client is own else 1)
assert os.waitpid(child, 0)[1] == 0
assert connections.client is first and not first.is_closed
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
