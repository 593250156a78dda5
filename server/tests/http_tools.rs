//! Tools that are HTTP requests, against a server of the test's own.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use futures_util::stream::{self, StreamExt};
use lisp_runtime::tools::Approval;
use lisp_runtime::{Engine, Input, Limits, Outcome, Reason, Recording, ToolCall};
use lisp_server::config::Config;
use lisp_server::tools::ServiceTools;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

#[path = "openapi/requests.rs"]
mod requests;

#[derive(Clone, Default)]
struct Seen {
    requests: Arc<AtomicUsize>,
    /// Requests of `/landed`, where redirects lead.
    landed: Arc<AtomicUsize>,
    /// Chunks that were sent.
    chunks: Arc<AtomicUsize>,
    in_progress: Arc<AtomicUsize>,
    max_in_progress: Arc<AtomicUsize>,
}

async fn answer(State(seen): State<Seen>, request: Request) -> Response {
    seen.requests.fetch_add(1, SeqCst);
    let path = request.uri().path().to_owned();
    let json = |text: &'static str| ([(header::CONTENT_TYPE, "application/json")], text).into_response();
    let chunks = |chunk: &'static [u8], pause: u64| {
        let sent = seen.chunks.clone();
        stream::iter(0..10_000).then(move |_| {
            let sent = sent.clone();
            async move {
                tokio::time::sleep(Duration::from_millis(pause)).await;
                sent.fetch_add(1, SeqCst);
                Ok::<_, std::io::Error>(Bytes::from_static(chunk))
            }
        })
    };
    match path.as_str() {
        "/text" => "two\nlines".into_response(),
        "/empty" => StatusCode::NO_CONTENT.into_response(),
        "/bytes" => ([(header::CONTENT_TYPE, "image/png")], &b"\xff\xfe"[..]).into_response(),
        "/latin" => {
            ([(header::CONTENT_TYPE, "text/plain; charset=\"ISO-8859-1\"")], &b"gr\xf6\xdfe"[..]).into_response()
        }
        "/mark" => ([(header::CONTENT_TYPE, "application/json")], &b"\xEF\xBB\xBF{\"a\":1}"[..]).into_response(),
        "/wide" => {
            ([(header::CONTENT_TYPE, "application/json; charset=utf-16le")], &b"[\x001\x00]\x00"[..]).into_response()
        }
        "/unknown-charset" => ([(header::CONTENT_TYPE, "text/plain; charset=klingon")], "x").into_response(),
        "/bad-text" => ([(header::CONTENT_TYPE, "text/plain")], &b"\xff\xfd"[..]).into_response(),
        "/bad-json" => json("{\"a\": 1"),
        "/problem" => (
            StatusCode::UNPROCESSABLE_ENTITY,
            [(header::CONTENT_TYPE, "application/problem+json")],
            "{\"title\": \"no such order\"}",
        )
            .into_response(),
        "/long-error" => (StatusCode::INTERNAL_SERVER_ERROR, "é".repeat(4_000)).into_response(),
        "/leak" => {
            let sent = request.headers()[header::AUTHORIZATION].to_str().unwrap().to_owned();
            (StatusCode::UNAUTHORIZED, format!("{sent} is wrong")).into_response()
        }
        // Of a secret that stands where an error is cut.
        "/leak-late" => {
            let sent = request.headers()[header::AUTHORIZATION].to_str().unwrap().to_owned();
            let before = request.uri().query().and_then(|query| query.strip_prefix("n=")).unwrap().parse().unwrap();
            (StatusCode::UNAUTHORIZED, format!("{}{sent}{}", "x".repeat(before), "y".repeat(9_000))).into_response()
        }
        "/leak-moved" => {
            let sent = request.headers()[header::AUTHORIZATION].to_str().unwrap().replace(' ', "-");
            let before = request.uri().query().and_then(|query| query.strip_prefix("n=")).unwrap().parse().unwrap();
            (StatusCode::FOUND, [(header::LOCATION, format!("/{}{sent}", "x".repeat(before)))]).into_response()
        }
        "/gzip" => ([(header::CONTENT_ENCODING, "gzip")], &[0x1f, 0x8b, 8][..]).into_response(),
        "/redirect" => (StatusCode::FOUND, [(header::LOCATION, "/landed")]).into_response(),
        "/redirect-308" => (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, "/landed")]).into_response(),
        "/landed" => {
            seen.landed.fetch_add(1, SeqCst);
            "landed".into_response()
        }
        "/huge" => Body::from_stream(chunks(&[b'x'; 10_000], 0)).into_response(),
        "/huge-known" => {
            ([(header::CONTENT_TYPE, "application/json")], serde_json::to_string(&"x".repeat(100_000)).unwrap())
                .into_response()
        }
        "/slow" => {
            tokio::time::sleep(Duration::from_secs(600)).await;
            "late".into_response()
        }
        "/trickle" => Body::from_stream(chunks(b"x", 20)).into_response(),
        "/busy" => {
            let now = seen.in_progress.fetch_add(1, SeqCst) + 1;
            seen.max_in_progress.fetch_max(now, SeqCst);
            tokio::time::sleep(Duration::from_millis(20)).await;
            seen.in_progress.fetch_sub(1, SeqCst);
            "1".into_response()
        }
        _ => {
            let (parts, body) = request.into_parts();
            let body = axum::body::to_bytes(body, 1_000_000).await.unwrap();
            let headers: serde_json::Map<String, Value> = parts
                .headers
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_str().unwrap_or("?").into()))
                .collect();
            let echo = json!({
                "method": parts.method.as_str(),
                "target": parts.uri.to_string(),
                "headers": headers,
                "body": String::from_utf8_lossy(&body),
            });
            axum::Json(echo).into_response()
        }
    }
}

/// A server, and what it saw.
async fn server() -> (SocketAddr, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Seen::default();
    let routes = Router::new().fallback(any(answer)).with_state(seen.clone());
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    (address, seen)
}

fn environment(name: &str) -> Option<String> {
    (name == "SECRET").then(|| "s3cret-value".to_owned())
}

/// The tools of a configuration, in which `@` is the address of the server.
async fn service(text: &str, address: SocketAddr) -> ServiceTools {
    let text =
        format!("{}\n[network]\nallow_private = [\"{address}\"]", text.replace('@', &format!("http://{address}")));
    let base = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/");
    let config = Config::parse_with(&text.replace("FIXTURES/", base), "test.toml", &environment).unwrap();
    ServiceTools::connect(&config).await.unwrap()
}

fn engine(service: &ServiceTools) -> Engine {
    let limits = Limits::default().with_timeout_ms(20_000).with_parallel_window(64).with_parallel_workers(64);
    Engine::builder().limits(limits).grant_all(service.tools.clone()).policy(service.policy.clone()).build().unwrap()
}

async fn run_with(service: &ServiceTools, program: &str, input: Input<'static>) -> Outcome {
    let engine = engine(service);
    engine.run_async(&engine.compile(program).unwrap(), input).await
}

async fn value(service: &ServiceTools, program: &str) -> Value {
    let outcome = run_with(service, program, Input::new()).await;
    outcome.value().unwrap_or_else(|error| panic!("{program}: {error}: {:?}", outcome.problem()))
}

async fn failure(service: &ServiceTools, program: &str) -> (Reason, String) {
    let outcome = run_with(service, program, Input::new()).await;
    let problem = outcome.problem().unwrap_or_else(|| panic!("{program}: {:?}", outcome.text()));
    (problem.reason(), problem.error.message.clone())
}

#[tokio::test]
async fn arguments_go_into_body_query_and_path() {
    let (address, _) = server().await;
    let tools = service(
        r#"
        [tools.post]
        url = "@/orders/{id}/lines?fixed=1"
        headers = { X-Key = "k", Accept = "text/csv" }
        [tools.put]
        url = "@/x"
        method = "PUT"
        [tools.get]
        url = "@/find?fixed=1"
        method = "GET"
        [tools.delete]
        url = "@/orders/{id}"
        method = "DELETE"
        "#,
        address,
    )
    .await;
    let sent = value(&tools, r#"(tool/post {:id "a/b c" :n 12345678901234567890123 :list [1 {:a nil}]})"#).await;
    assert_eq!(sent["method"], "POST");
    assert_eq!(sent["target"], "/orders/a%2Fb%20c/lines?fixed=1");
    assert_eq!(sent["body"], r#"{"list":[1,{"a":null}],"n":12345678901234567890123}"#);
    let headers = &sent["headers"];
    assert_eq!(
        [&headers["x-key"], &headers["accept"], &headers["content-type"]],
        ["k", "text/csv", "application/json"]
    );
    assert_eq!(headers["user-agent"], concat!("ptc-lisp/", env!("CARGO_PKG_VERSION")));
    assert_eq!([&headers["accept-encoding"], &headers["idempotency-key"], &headers["cookie"]], [&Value::Null; 3]);

    let sent = value(&tools, "(tool/put {})").await;
    assert_eq!([&sent["method"], &sent["body"]], ["PUT", "{}"]);
    let sent = value(&tools, r#"(tool/get {:q "a&b=c #" :n 1.5 :tags ["x" "y"] :none nil :m {:a 1}})"#).await;
    assert_eq!(sent["target"], "/find?fixed=1&m=%7B%22a%22%3A1%7D&n=1.5&q=a%26b%3Dc+%23&tags=x&tags=y");
    assert_eq!(
        [&sent["method"], &sent["body"], &sent["headers"]["content-type"]],
        [&json!("GET"), &json!(""), &Value::Null]
    );
    let sent = value(&tools, "(tool/delete {:id 7 :force true})").await;
    assert_eq!([&sent["method"], &sent["target"]], ["DELETE", "/orders/7?force=true"]);

    for (program, wanted) in [
        (r#"(tool/get {:fixed 2})"#, "set by the service"),
        (r#"(tool/post {:id ".."})"#, "leads elsewhere"),
        (r#"(tool/post {:id "%2e%2e"})"#, "leads elsewhere"),
        (r#"(tool/post {:id "a\r\nHost: evil"})"#, "control character"),
        (r#"(tool/post {:id ""})"#, "0 bytes"),
        (r#"(tool/post {:n 1})"#, "the argument id is missing"),
        (r#"(tool/delete {:id 1 :q (apply str (repeat 9000 "x"))})"#, "the maximum is 8000"),
    ] {
        let (reason, message) = failure(&tools, program).await;
        assert_eq!(reason, Reason::InvalidToolArgs, "{message}");
        assert!(message.contains(wanted), "{program}: {message}");
    }
    for id in ["@evil.com", "//evil.com/", "?x=1#", "%2f%2fevil.com", ":80", "\\\\evil.com", "http://evil.com"] {
        let sent = value(&tools, &format!("(tool/post {{:id {id:?}}})")).await;
        let target = sent["target"].as_str().unwrap();
        assert_eq!(target.matches('/').count(), 3, "{id}: {target}");
        assert_eq!(sent["headers"]["host"], address.to_string());
    }
}

/// Wherever an error is cut, no part of a secret is left in it.
#[tokio::test]
async fn no_part_of_a_secret_is_in_an_error() {
    let (address, _) = server().await;
    let of = |name: &str, path: &str| {
        format!(
            "[tools.{name}]\nurl = \"@{path}\"\nmethod = \"GET\"\nheaders = {{ Authorization = \"Bearer ${{SECRET}}\" }}\n"
        )
    };
    let tools = service(&(of("late", "/leak-late") + &of("moved", "/leak-moved")), address).await;
    for before in (470..=500).step_by(3).chain(1_980..=2_000).chain([0]) {
        for tool in ["late", "moved"] {
            let (_, message) = failure(&tools, &format!("(tool/{tool} {{:n {before}}})")).await;
            assert!(message.contains("HTTP "), "{message}");
            assert!(!message.contains("s3") && !message.contains("ret-"), "{tool} {before}: {message}");
            assert!(before >= 480 || message.contains("[secret]"), "{tool} {before}: {message}");
        }
    }
}

#[tokio::test]
async fn operations_of_an_api_are_requests() {
    let (address, _) = server().await;
    let tools = service(
        r#"
        [openapi.pets]
        file = "FIXTURES/pets.json"
        base_url = "@/v2/"
        headers = { X-Api-Key = "${SECRET}" }
        policies = { deletePet = "deny", addPhoto = "deny" }
        "#,
        address,
    )
    .await;
    let names: Vec<&str> = tools.tools.names().collect();
    assert_eq!(names, ["pets__addPet", "pets__addPhoto", "pets__deletePet", "pets__getPet", "pets__putPet"]);
    assert_eq!(tools.refused.len(), 0);

    let call = r#"(tool/pets__getPet {:id "a/b" :fields ["name" "age"] "X-Shop" "s 1" :session "a;b c"})"#;
    let sent = value(&tools, call).await;
    assert_eq!([&sent["method"], &sent["target"]], ["GET", "/v2/pets/a%2Fb?fields=name&fields=age"]);
    let headers = &sent["headers"];
    assert_eq!(
        [&headers["x-shop"], &headers["cookie"], &headers["x-api-key"]],
        ["s 1", "session=a%3Bb%20c", "s3cret-value"]
    );
    let sent = value(&tools, r#"(tool/pets__putPet {:id "1" :body {:name "Rex"}})"#).await;
    assert_eq!([&sent["method"], &sent["body"], &sent["target"]], ["PUT", "{\"name\":\"Rex\"}", "/v2/pets/1"]);
    let sent = value(&tools, r#"(tool/pets__addPet {:body {:name "a b&c" :tags ["x" "y"]}})"#).await;
    assert_eq!(sent["body"], "name=a%20b%26c&tags=x&tags=y");
    assert_eq!(sent["headers"]["content-type"], "application/x-www-form-urlencoded");
    for (program, reason, wanted) in [
        (r#"(tool/pets__getPet {:id "1" "X-Shop" "a\r\nX-Evil: 1"})"#, Reason::InvalidToolArgs, "line break"),
        (r#"(tool/pets__getPet {:id "1" "X-Shop" "größe"})"#, Reason::InvalidToolArgs, "not ASCII"),
        (r#"(tool/pets__getPet {:id "1" "Host" "evil.com"})"#, Reason::InvalidToolArgs, "sets itself"),
        (r#"(tool/pets__getPet {:id ".."})"#, Reason::InvalidToolArgs, "leads elsewhere"),
        (r#"(tool/pets__deletePet {:id "1"})"#, Reason::ToolDenied, "allows no call"),
        (r#"(tool/pets__addPhoto {})"#, Reason::ToolDenied, "allows no call"),
    ] {
        let (got, message) = failure(&tools, program).await;
        assert_eq!(got, reason, "{message}");
        assert!(message.contains(wanted), "{program}: {message}");
    }
}

#[tokio::test]
async fn descriptions_are_read_as_apis_write_them() {
    let (address, _) = server().await;
    let port = address.port();
    let api = json!({
        "openapi": "3.1.0",
        "servers": [{"url": "http://{host}:{port}/v3", "variables": {"host": {"default": "127.0.0.1"}, "port": {"default": port.to_string()}}}],
        "paths": {
            "/users/{id}": {"$ref": "#/components/pathItems/User"},
            "/elsewhere": {"servers": [{"url": "https://other.example.com"}], "get": {"operationId": "elsewhere"}},
            "/gone": {"get": {"operationId": "gone", "parameters": [{"$ref": "#/components/parameters/Nope"}]}},
            "/remote": {"$ref": "other.yaml#/paths/remote"},
            "/odd": {"get": {"operationId": "odd", "parameters": [{"name": "a", "in": "header", "style": "form", "schema": {}}]}},
            "/xml": {"post": {"operationId": "xml", "requestBody": {"content": {"application/xml": {"schema": {}}}}}},
            "/keys": {"get": {"operationId": "keys", "parameters": [
                {"name": "o", "in": "query", "schema": {"type": "object"}}, {"name": "token", "in": "query", "schema": {}},
            ]}},
            "/upload": {"post": {"operationId": "upload", "requestBody": {"content": {"application/octet-stream": {}}}}},
            "/form": {"post": {"operationId": "form", "requestBody": {"content": {"multipart/form-data": {"schema": {
                "type": "object", "properties": {"file": {"type": "string", "format": "binary"}, "meta": {"type": "object"}, "n": {"type": "integer"}},
            }}}}}},
            "/events/{list}": {"get": {"operationId": "events", "parameters": [
                {"name": "list", "in": "path", "required": true, "style": "label", "explode": true, "schema": {"type": "array"}},
                {"name": "f", "in": "query", "style": "deepObject", "explode": true, "schema": {"type": "object"}},
            ]}},
        },
        "components": {
            "pathItems": {"User": {"parameters": [{"$ref": "#/components/parameters/Id", "description": "Whose."}], "put": {
                "operationId": "putUser", "requestBody": {"$ref": "#/components/requestBodies/User"},
                "responses": {"200": {"$ref": "#/components/responses/User"}},
            }}},
            "parameters": {"Id": {"name": "id", "in": "path", "required": true, "schema": {"$ref": "#/components/schemas/Id"}}},
            "requestBodies": {"User": {"required": true, "content": {"application/json; charset=utf-8": {"schema": {"allOf": [{"$ref": "#/components/schemas/User"}]}}}}},
            "responses": {"User": {"content": {"application/json": {"schema": {"$ref": "#/paths/~1form/post/requestBody/content/multipart~1form-data/schema/properties/meta"}}}}},
            "schemas": {
                "Id": {"type": ["integer", "string"]},
                "User": {"type": "object", "properties": {"id": {"$ref": "#/components/schemas/Id", "readOnly": true}, "name": {"type": "string"}, "secret": {"type": "string", "writeOnly": true}},
                    "required": ["id", "name", "secret"], "additionalProperties": false},
            },
        },
    });
    let file = std::env::temp_dir().join(format!("ptc-openapi-{}.json", std::process::id()));
    std::fs::write(&file, format!("\u{feff}{api}")).unwrap();
    let tools = service(&format!("[openapi.a]\nfile = {file:?}"), address).await;
    std::fs::remove_file(&file).unwrap();
    let refused: Vec<_> = tools.refused.iter().map(|refused| format!("{}: {}", refused.name, refused.why)).collect();
    for wanted in [
        "openapi.a: elsewhere: its server is https://other.example.com/",
        "openapi.a: gone: it refers to \"#/components/parameters/Nope\", which the description does not have",
        "openapi.a: /remote: it refers to \"other.yaml#/paths/remote\", which is another document",
        "openapi.a: odd: its parameter a has the style \"form\", which one in the header cannot have",
        "openapi.a: xml: its body is application/xml",
    ] {
        assert!(refused.iter().any(|refused| refused.starts_with(wanted)), "{wanted}: {refused:#?}");
    }
    assert_eq!(refused.len(), 5, "{refused:#?}");
    for (program, target, body) in [
        (r#"(tool/a__putUser {:id 7 :body {:name "n" :secret "s"}})"#, "/v3/users/7", r#"{"name":"n","secret":"s"}"#),
        (r#"(tool/a__keys {:o {:a 1 :b "x y"} :token "t"})"#, "/v3/keys?a=1&b=x%20y&token=t", ""),
        (r#"(tool/a__upload {:body "größe"})"#, "/v3/upload", "größe"),
        (r#"(tool/a__upload {:body {:base64 "Z3LDtsOfZQ=="}})"#, "/v3/upload", "größe"),
        (
            r#"(tool/a__events {:list ["a" "b.c"] :f {:a {:b 1} :l [1 2] :m [{:x 1}]}})"#,
            "/v3/events/.a.b.c?f%5Ba%5D%5Bb%5D=1&f%5Bl%5D%5B%5D=1&f%5Bl%5D%5B%5D=2&f%5Bm%5D%5B0%5D%5Bx%5D=1",
            "",
        ),
    ] {
        let sent = value(&tools, program).await;
        assert_eq!((sent["target"].as_str(), sent["body"].as_str()), (Some(target), Some(body)), "{program}");
    }
    let sent = value(&tools, r#"(tool/a__form {:body {:file "data" :meta {:a 1} :n 5}})"#).await;
    let boundary =
        sent["headers"]["content-type"].as_str().unwrap().strip_prefix("multipart/form-data; boundary=").unwrap();
    let wanted = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"file\"\r\nContent-Type: application/octet-stream\r\n\r\ndata\r\n\
         --{boundary}\r\nContent-Disposition: form-data; name=\"meta\"\r\nContent-Type: application/json\r\n\r\n{{\"a\":1}}\r\n\
         --{boundary}\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\n5\r\n--{boundary}--\r\n"
    );
    assert_eq!(sent["body"], wanted);
    for (program, wanted) in [
        (r#"(tool/a__putUser {:id 7 :body {:id 1 :name "n" :secret "s"}})"#, "id"),
        (r#"(tool/a__keys {:o {:token "mine"}})"#, "is the name of another argument"),
        (r#"(tool/a__events {:list [".." "x"]})"#, "leads elsewhere"),
        (r#"(tool/a__events {:list []})"#, "missing"),
        (r#"(tool/a__upload {:body {:base64 "?"}})"#, "base64 cannot be read"),
    ] {
        let (reason, message) = failure(&tools, program).await;
        assert!(reason == Reason::InvalidToolArgs && message.contains(wanted), "{program}: {message}");
    }
}

#[tokio::test]
async fn responses_are_values_or_errors() {
    let (address, seen) = server().await;
    let tools = service(
        r#"
        [tools.get]
        url = "@/{path}"
        method = "GET"
        max_response_bytes = 50000
        headers = { Authorization = "Bearer ${SECRET}" }
        "#,
        address,
    )
    .await;
    assert_eq!(value(&tools, r#"(tool/get {:path "text"})"#).await, "two\nlines");
    assert_eq!(value(&tools, r#"(tool/get {:path "empty"})"#).await, Value::Null);
    for (path, wanted) in [
        ("bytes", json!({"base64": "//4=", "content_type": "image/png"})),
        ("latin", json!("größe")),
        ("mark", json!({"a": 1})),
        ("wide", json!([1])),
    ] {
        assert_eq!(value(&tools, &format!("(tool/get {{:path {path:?}}})")).await, wanted, "{path}");
    }
    for (path, wanted) in [
        ("unknown-charset", "the response is in the charset \"klingon\", which is unknown"),
        ("bad-text", "the response is not text in UTF-8 (content type \"text/plain\"), and names no charset"),
        ("bad-json", "the response is not JSON: "),
        ("problem", "HTTP 422 Unprocessable Entity: {\"title\": \"no such order\"}"),
        ("leak", "HTTP 401 Unauthorized: Bearer [secret] is wrong"),
        ("gzip", "compressed (\"gzip\")"),
        ("redirect", "HTTP 302: it redirects to /landed; redirects are not followed"),
        ("redirect-308", "HTTP 308: it redirects to /landed; "),
        ("huge", "the response has more than 50000 bytes (max_response_bytes of tools.get)"),
        ("huge-known", "the response has more than 50000 bytes (max_response_bytes of tools.get)"),
    ] {
        let (reason, message) = failure(&tools, &format!("(tool/get {{:path {path:?}}})")).await;
        assert_eq!(reason, Reason::ToolError, "{path}");
        assert!(message.contains(wanted) && !message.contains("s3cret"), "{path}: {message}");
    }
    let code = |path: &str| format!("(try (tool/get {{:path {path:?}}}) (catch Exception e (:code e)))");
    for (path, wanted) in
        [("problem", json!(422)), ("leak", json!(401)), ("redirect", json!(302)), ("bad-json", Value::Null)]
    {
        assert_eq!(value(&tools, &code(path)).await, wanted, "{path}");
    }
    let (_, message) = failure(&tools, r#"(tool/get {:path "long-error"})"#).await;
    assert!(message.ends_with(&format!("{}... (cut after 500 characters)", "é".repeat(500))), "{message}");
    assert_eq!(seen.landed.load(SeqCst), 0);
    // What was not read was not sent: socket buffers took some of it.
    assert!(seen.chunks.load(SeqCst) < 2_000, "{}", seen.chunks.load(SeqCst));
}

/// The test above once more, in a process whose environment names a proxy that nobody is behind.
#[test]
fn proxies_of_the_environment_are_not_used() {
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    again.args(["responses_are_values_or_errors", "--exact"]);
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"] {
        again.env(name, "http://127.0.0.1:9");
    }
    let output = again.env_remove("NO_PROXY").env_remove("no_proxy").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[tokio::test]
async fn slow_servers_are_not_waited_for() {
    let (address, _) = server().await;
    let tools = service(
        "[tools.get]\nurl = \"@/{path}\"\nmethod = \"GET\"\ntimeout_ms = 200\n[tools.patient]\nurl = \"@/slow\"\nmethod = \"GET\"",
        address,
    )
    .await;
    for path in ["slow", "trickle"] {
        let begun = Instant::now();
        let (_, message) = failure(&tools, &format!("(tool/get {{:path {path:?}}})")).await;
        assert!(message.contains("it took longer than 200 ms (timeout_ms of tools.get)"), "{message}");
        assert!(begun.elapsed() < Duration::from_secs(100), "{:?}", begun.elapsed());
    }
    let engine = Engine::builder()
        .limits(Limits::default().with_timeout_ms(200))
        .grant_all(tools.tools.clone())
        .build()
        .unwrap();
    let begun = Instant::now();
    let outcome = engine.run_async(&engine.compile("(tool/patient {})").unwrap(), Input::new()).await;
    assert_eq!(outcome.problem().unwrap().reason(), Reason::Timeout);
    assert!(begun.elapsed() < Duration::from_secs(100), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn writes_have_a_key_and_runs_a_trace() {
    let (address, _) = server().await;
    let tools = service(
        "[tools.write]\nurl = \"@/w\"\neffect = \"write\"\n[tools.read]\nurl = \"@/r\"\nmethod = \"GET\"\n[tools.look]\nurl = \"@/l\"\neffect = \"read\"",
        address,
    )
    .await;
    let recording = Recording::new();
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let input = Input::new().record(&recording).run_id("run-7").traceparent(parent);
    let program = "[(tool/write {}) (tool/read {}) (tool/look {}) (tool/write {})]";
    let sent: Value = run_with(&tools, program, input).await.value().unwrap();
    let keys: Vec<&Value> = (0..4).map(|index| &sent[index]["headers"]["idempotency-key"]).collect();
    assert_eq!([keys[1], keys[2]], [&Value::Null; 2]);
    assert!(keys[0].as_str().unwrap().starts_with("run-7"), "{keys:?}");
    assert_ne!(keys[0], keys[3]);
    assert!((0..4).all(|index| sent[index]["headers"]["traceparent"] == parent));
}

#[tokio::test]
async fn names_that_lead_to_private_addresses_are_refused() {
    let (address, seen) = server().await;
    let port = address.port();
    let connect = async |allowed: &str| {
        let text = format!(
            "[tools.get]\nurl = \"http://localhost:{port}/text\"\nmethod = \"GET\"\n[network]\nallow_private = [{allowed}]"
        );
        ServiceTools::connect(&Config::parse(&text, "test.toml").unwrap()).await.unwrap()
    };
    for allowed in [
        String::new(),
        format!("\"localhost:{}\"", port ^ 1),
        "\"10.0.0.0/8\"".to_owned(),
        format!("\"127.0.0.1:{}\"", port ^ 1),
    ] {
        let tools = connect(&allowed).await;
        let (reason, message) = failure(&tools, "(tool/get {})").await;
        assert_eq!(reason, Reason::ToolError);
        assert!(message.contains("localhost leads to an address that is not public"), "{allowed}: {message}");
        assert!(!message.contains("127.0.0.1"), "{message}");
    }
    assert_eq!(seen.requests.load(SeqCst), 0);
    for allowed in [
        format!("\"localhost:{port}\""),
        format!("\"127.0.0.1:{port}\", \"[::1]:{port}\""),
        "\"127.0.0.0/8\", \"::1\"".to_owned(),
    ] {
        let tools = connect(&allowed).await;
        assert_eq!(value(&tools, "(tool/get {})").await, "two\nlines", "{allowed}");
    }
}

#[tokio::test]
async fn connections_that_fail_say_how() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4_096];
            let read = stream.read(&mut request).await.unwrap();
            let response: &[u8] = match &request[..read] {
                text if text.starts_with(b"GET /short") => b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort",
                text if text.starts_with(b"GET /garbage") => b"220 mail.example.com ESMTP\r\n",
                _ => b"",
            };
            stream.write_all(response).await.unwrap();
        }
    });
    let tools = service(
        "[tools.get]\nurl = \"@/{path}\"\nmethod = \"GET\"\nheaders = { Authorization = \"${SECRET}\" }",
        address,
    )
    .await;
    for (path, wanted) in
        [("short", "the response broke off: "), ("garbage", "the request failed: "), ("closed", "the request failed: ")]
    {
        let (_, message) = failure(&tools, &format!("(tool/get {{:path {path:?}}})")).await;
        assert!(
            message.contains(wanted) && !message.contains("http:") && !message.contains("s3cret"),
            "{path}: {message}"
        );
    }
    let nobody = { TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap() };
    let tools = service("[tools.get]\nurl = \"@/x\"\nmethod = \"GET\"", nobody).await;
    let (_, message) = failure(&tools, "(tool/get {})").await;
    assert!(message.contains("it cannot be connected to: Connection refused"), "{message}");
}

#[tokio::test]
async fn calls_wait_for_their_turn() {
    let (address, seen) = server().await;
    let text = "[tools.busy]\nurl = \"@/busy\"\nmethod = \"GET\"\nconcurrency = 3\n[tools.stuck]\nurl = \"@/slow\"\nmethod = \"GET\"\nconcurrency = 1\ntimeout_ms = 300";
    let tools = service(text, address).await;
    assert_eq!(value(&tools, "(count (pmap (fn [_] (tool/busy {})) (range 20)))").await, 20);
    assert_eq!((seen.requests.load(SeqCst), seen.max_in_progress.load(SeqCst)), (20, 3));
    let (_, message) = failure(&tools, "(pmap (fn [_] (tool/stuck {})) [1 2])").await;
    assert!(message.contains("300 ms"), "{message}");
    // Places are given back by calls that fail.
    let (_, message) = failure(&tools, "(tool/stuck {})").await;
    assert!(message.ends_with("(timeout_ms of tools.stuck)"), "{message}");
}

#[tokio::test]
async fn policies_hide_deny_and_ask() {
    let (address, seen) = server().await;
    let digest = "81b637d8fcd2c6da6359e6963113a1170de795e4b725b84d1e0b4cfd9ec58ce9";
    let text = format!(
        r#"
        [[tenants]]
        name = "shop"
        token_sha256 = "{digest}"
        tools = ["crm__*", "look"]
        [[tenants]]
        name = "office"
        token_sha256 = "{digest_2}"
        [tools.crm__refund]
        url = "@/refund"
        policy = "ask"
        question = "Refund {{amount}} to {{who}}?"
        [tools.crm__plain]
        url = "@/plain"
        policy = "ask"
        [tools.look]
        url = "@/look"
        policy = "deny"
        [tools.other]
        url = "@/other"
        "#,
        digest_2 = digest.replace('8', "9"),
    );
    let tools = service(&text, address).await;
    let run = async |program: &str, tenant: Option<&str>| {
        let input = Input::new().approvals(|call: ToolCall| async move {
            match call.question() {
                Some("Refund 5 to Ada?" | "call crm__plain?") => Approval::Approve,
                other => Approval::Reject(format!("not {other:?}")),
            }
        });
        let input = tenant.into_iter().fold(input, |input, tenant| input.tenant(tenant));
        run_with(&tools, program, input).await
    };
    for (program, tenant, reason) in [
        (r#"(tool/crm__refund {:amount 5 :who "Ada"})"#, Some("shop"), None),
        (r#"(tool/crm__refund {:amount 50 :who "Ada"})"#, Some("shop"), Some(Reason::ToolDenied)),
        ("(tool/crm__plain {})", Some("shop"), None),
        ("(tool/look {})", Some("shop"), Some(Reason::ToolDenied)),
        ("(tool/other {})", Some("shop"), Some(Reason::UnknownTool)),
        ("(tool/other {})", Some("office"), None),
        ("(tool/other {})", Some("nobody"), Some(Reason::UnknownTool)),
        ("(tool/other {})", None, Some(Reason::UnknownTool)),
    ] {
        let outcome = run(program, tenant).await;
        assert_eq!(
            outcome.problem().map(|problem| problem.reason()),
            reason,
            "{program} {tenant:?} {:?}",
            outcome.problem()
        );
    }
    assert_eq!(seen.requests.load(SeqCst), 3);
    // A tool that the caller brings is everybody's.
    let engine = Engine::builder().policy(tools.policy.clone()).tool("own", |_| Ok(1)).build().unwrap();
    assert_eq!(engine.eval("(tool/own {})", Input::new()).text(), Some("1"));
}

#[tokio::test]
async fn settings_reach_the_tools() {
    let (address, seen) = server().await;
    let tools = service(
        r#"
        [tools.cached]
        url = "@/text"
        method = "GET"
        cached = true
        [tools.tagged]
        url = "@/problem"
        tagged = true
        [tools.few]
        url = "@/x"
        max_calls = 1
        redact = ["password"]
        [tools.typed]
        url = "@/text"
        input = { type = "object", properties = { n = { type = "integer" } }, required = ["n"] }
        output = { type = "integer" }
        "#,
        address,
    )
    .await;
    assert_eq!(value(&tools, "(count (map (fn [_] (tool/cached {})) (range 5)))").await, 5);
    assert_eq!(seen.requests.load(SeqCst), 1);
    assert_eq!(value(&tools, "(:reason (:error (tool/tagged {})))").await, "tool_error");
    let outcome = run_with(&tools, r#"(tool/few {:password "hush"})"#, Input::new()).await;
    assert!(outcome.ledger[0].arguments.text.contains("[redacted]"), "{:?}", outcome.ledger[0]);
    for (program, reason) in [
        ("[(tool/few {}) (tool/few {})]", Reason::ToolCallLimitExceeded),
        ("(tool/typed {:n \"1\"})", Reason::InvalidToolArgs),
        ("(tool/typed {:n 1})", Reason::ToolError),
    ] {
        assert_eq!(failure(&tools, program).await.0, reason, "{program}");
    }
}

#[tokio::test]
async fn what_cannot_be_made_is_named() {
    let base = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/");
    for (text, field, wanted) in [
        ("[tools.a]\nurl = \"https://a.com\"\ninput = { type = 5 }", "tools.a.input", "type"),
        ("[tools.a]\nurl = \"https://a.com\"\noutput = { type = 5 }", "tools.a.output", "test.toml:3:10: "),
        (
            "[openapi.a]\nfile = \"FIXTURES/order.schema.json\"\nbase_url = \"https://a.com\"",
            "openapi.a.file",
            "OpenAPI",
        ),
        (
            "[openapi.a]\nfile = \"FIXTURES/pets.json\"\nbase_url = \"https://a.com\"\npolicies = { none = \"deny\" }",
            "openapi.a.policies.none",
            "no tool none",
        ),
        (
            "[openapi.a]\nfile = \"FIXTURES/pets.json\"\nbase_url = \"https://a.com\"\n[tools.a__getPet]\nurl = \"https://a.com\"",
            "openapi.a",
            "two tools named a__getPet",
        ),
        ("[mcp.a]\ncommand = [\"/nowhere/server\"]", "mcp.a", "/nowhere/server cannot be started"),
    ] {
        let config = Config::parse(&text.replace("FIXTURES/", base), "test.toml").unwrap();
        let error = ServiceTools::connect(&config).await.unwrap_err();
        assert_eq!(error.field, field, "{error}");
        assert!(error.to_string().contains(wanted) && !error.next.is_empty(), "{error}");
    }
}
