//! The tools of the service: HTTP endpoints, HTTP APIs and MCP servers.

use super::document::Document;
use super::error::ConfigError;
use super::file::{self, Decision, Method};
use super::network::Network;
use super::question::Question;
use super::secret::Secret;
use super::template::UrlTemplate;
use lisp_runtime::internal::near_names;
use lisp_runtime::tools::Effect;
use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// The maximum number of headers of a tool or environment variables of a process.
const PAIRS: usize = 100;
/// The maximum number of redacted arguments.
const REDACTED: usize = 100;
/// Headers that only the service sets.
const OWN_HEADERS: &[&str] = &[
    "connection",
    "content-length",
    "expect",
    "host",
    "idempotency-key",
    "keep-alive",
    "te",
    "traceparent",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Settings for the calls of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallSettings {
    /// What a call does outside; `None` follows the HTTP method or the MCP server.
    pub effect: Option<Effect>,
    /// Whether two equal calls have the effect of one; `None` follows the HTTP method or the MCP server.
    pub idempotent: Option<bool>,
    /// Whether repeated calls of a run get the result of the first.
    pub cached: bool,
    /// Whether failures are values of the program.
    pub tagged: bool,
    /// The maximum number of calls in progress at once, over all runs; more wait.
    pub concurrency: usize,
    /// The maximum number of calls of one run; 0 is no limit.
    pub max_calls: u64,
    /// Arguments that the ledger and the record do not show.
    pub redact: Vec<String>,
    /// How long a call may take; never longer than the rest of the run's time.
    pub timeout_ms: u64,
    /// The maximum bytes of a response.
    pub max_response_bytes: usize,
}

/// A header of a tool's requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The header name.
    pub name: HeaderName,
    /// The header value.
    pub value: Secret,
}

/// An HTTP endpoint as a tool: `[tools.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpTool {
    /// The URL, with argument names in braces in its path.
    pub url: UrlTemplate,
    /// The HTTP method.
    pub method: Method,
    /// The description that models read.
    pub description: String,
    /// The JSON Schema of the arguments, as JSON text.
    pub input: String,
    /// The JSON Schema of the result, as JSON text.
    pub output: Option<String>,
    /// Headers of each request.
    pub headers: Vec<Header>,
    /// Settings for calls.
    pub calls: CallSettings,
    /// The policy for calls.
    pub policy: Decision,
    /// The question asked about a call.
    pub question: Option<Question>,
}

/// An HTTP API with an OpenAPI description: `[openapi.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Api {
    /// The description as JSON text.
    pub description: String,
    /// Replaces the servers of the description.
    pub base_url: Option<Url>,
    /// Headers of each request.
    pub headers: Vec<Header>,
    /// Settings for calls.
    pub calls: CallSettings,
    /// The policy for calls.
    pub policy: Decision,
    /// The policy for single operations, by `operationId`.
    pub policies: BTreeMap<String, Decision>,
}

/// How an MCP server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpConnection {
    /// A process, over its standard input and output.
    Command {
        /// The program.
        program: String,
        /// Its arguments.
        arguments: Vec<String>,
        /// Its environment, besides `PATH`.
        env: Vec<(String, Secret)>,
    },
    /// Streamable HTTP.
    Http {
        /// The endpoint.
        url: Url,
        /// Headers of each request.
        headers: Vec<Header>,
    },
}

/// An MCP server: `[mcp.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpServer {
    /// How it is reached.
    pub connection: McpConnection,
    /// How long it may take to start and to list its tools.
    pub start_timeout_ms: u64,
    /// Settings for calls.
    pub calls: CallSettings,
    /// The policy for calls.
    pub policy: Decision,
    /// The policy for single tools, by the server's names.
    pub policies: BTreeMap<String, Decision>,
}

/// The call settings that all three kinds of tools share.
struct CallsFile<'a> {
    effect: Option<Effect>,
    idempotent: Option<bool>,
    cached: bool,
    tagged: bool,
    concurrency: Option<u64>,
    max_calls: Option<u64>,
    redact: &'a [String],
    timeout_ms: Option<u64>,
    max_response_bytes: Option<u64>,
}

macro_rules! calls_file {
    ($file:expr, $effect:expr, $idempotent:expr, $cached:expr) => {
        CallsFile {
            effect: $effect,
            idempotent: $idempotent,
            cached: $cached,
            tagged: $file.tagged,
            concurrency: $file.concurrency,
            max_calls: $file.max_calls,
            redact: &$file.redact,
            timeout_ms: $file.timeout_ms,
            max_response_bytes: $file.max_response_bytes,
        }
    };
}

impl CallSettings {
    fn read(file: &CallsFile<'_>, path: &[&str], document: &Document<'_>) -> Result<Self, ConfigError> {
        let of = |field| [path, &[field]].concat();
        if file.cached && !file.redact.is_empty() {
            let message = "a cached tool keeps results by their arguments, and cannot redact any";
            return Err(document.error(&of("redact"), message, "remove cached or redact"));
        }
        if file.redact.len() > REDACTED {
            let message = format!("there are {}; the maximum is {REDACTED}", file.redact.len());
            return Err(document.error(&of("redact"), message, "put them into one argument"));
        }
        let number = |field, given: Option<u64>, usual, least, max| {
            given.map_or(Ok(usual), |given| document.within(&of(field), given, least..=max))
        };
        let count = |number| usize::try_from(number).unwrap_or(usize::MAX);
        Ok(CallSettings {
            effect: file.effect,
            idempotent: file.idempotent,
            cached: file.cached,
            tagged: file.tagged,
            concurrency: count(number("concurrency", file.concurrency, 256, 1, 100_000)?),
            max_calls: number("max_calls", file.max_calls, 0, 0, 1_000_000_000)?,
            redact: file.redact.to_vec(),
            timeout_ms: number("timeout_ms", file.timeout_ms, 10_000, 1, 3_600_000)?,
            max_response_bytes: count(number(
                "max_response_bytes",
                file.max_response_bytes,
                1_048_576,
                1,
                1_073_741_824,
            )?),
        })
    }
}

fn headers(
    given: &BTreeMap<String, String>,
    path: &[&str],
    document: &Document<'_>,
) -> Result<Vec<Header>, ConfigError> {
    if given.len() > PAIRS {
        let message = format!("there are {}; the maximum is {PAIRS}", given.len());
        return Err(document.error(&[path, &["headers"]].concat(), message, "remove some"));
    }
    let read = |(text, template): (&String, &String)| {
        let at = [path, &["headers", text.as_str()]].concat();
        let name = HeaderName::from_bytes(text.as_bytes()).map_err(|_| {
            document.error(&at, "it is not a valid name of a header", "write letters, digits and hyphens")
        })?;
        if OWN_HEADERS.contains(&name.as_str()) || name.as_str().starts_with("proxy-") {
            return Err(document.error(&at, "the service sets this header itself", "remove it"));
        }
        let value = document.secret(&at, template)?;
        if HeaderValue::from_str(value.expose()).is_err() || !value.expose().is_ascii() {
            let message = "its value has a character that a header cannot have, such as a line break";
            return Err(document.error(&at, message, "write characters of ASCII that can be seen"));
        }
        Ok(Header { name, value })
    };
    given.iter().map(read).collect()
}

/// Returns whether only the service may set this header.
pub(crate) fn is_own_header(name: &HeaderName) -> bool {
    OWN_HEADERS.contains(&name.as_str()) || name.as_str().starts_with("proxy-")
}

fn url(given: &str, at: &[&str], document: &Document<'_>, network: &Network) -> Result<Url, ConfigError> {
    let url = Url::parse(given).map_err(|error| {
        document.error(at, format!("it is not a URL: {error}"), "write a URL such as https://api.example.com/v1")
    })?;
    network.check(&url).map_err(|(message, next)| document.error(at, message, next))?;
    if url.fragment().is_some() {
        return Err(document.error(at, "it has a fragment, which is not sent", "remove # and what follows it"));
    }
    Ok(url)
}

impl HttpTool {
    fn read(name: &str, file: &file::Tool, document: &Document<'_>, network: &Network) -> Result<Self, ConfigError> {
        let path = ["tools", name];
        let of = |field| ["tools", name, field];
        if name.is_empty() || name.len() > 200 {
            return Err(document.error(&path, "a tool's name has 1 to 200 bytes", "write another name"));
        }
        let url = UrlTemplate::parse(&file.url).map_err(|message| {
            let next = "write a URL such as https://api.example.com/orders/{id}, with argument names in braces";
            document.error(&of("url"), message, next)
        })?;
        network.check(url.origin()).map_err(|(message, next)| document.error(&of("url"), message, next))?;
        let input = document.schema(&path, file.input.as_ref(), file.input_file.as_deref(), ["input", "input_file"])?;
        let output =
            document.schema(&path, file.output.as_ref(), file.output_file.as_deref(), ["output", "output_file"])?;
        let calls = CallSettings::read(&calls_file!(file, file.effect, file.idempotent, file.cached), &path, document)?;
        let question = match (&file.question, file.policy) {
            (None, _) => None,
            (Some(text), Decision::Ask) => Some(Question::parse(text).map_err(|message| {
                document.error(&of("question"), message, "write a text with names of arguments in braces")
            })?),
            (Some(_), _) => {
                let message = "the question is never asked, because the policy is not \"ask\"";
                return Err(document.error(&of("question"), message, "write policy = \"ask\", or remove question"));
            }
        };
        for (field, names) in [
            ("url", url.arguments().collect::<Vec<_>>()),
            ("question", question.iter().flat_map(Question::arguments).collect()),
        ] {
            names.into_iter().try_for_each(|name| check_argument(name, input.as_deref(), &of(field), document))?;
        }
        let shown = question.iter().flat_map(Question::arguments).find(|name| calls.redact.iter().any(|r| r == name));
        if let Some(argument) = shown {
            let message = format!("it shows the redacted argument {argument}");
            return Err(document.error(&of("question"), message, "remove it from the question"));
        }
        Ok(HttpTool {
            url,
            method: file.method,
            description: file.description.clone(),
            input: input.unwrap_or_else(|| "{\"type\": \"object\"}".to_owned()),
            output,
            headers: headers(&file.headers, &path, document)?,
            calls,
            policy: file.policy,
            question,
        })
    }
}

/// Checks that a name in braces is an argument of the tool, as far as the schema of its arguments names them all.
fn check_argument(name: &str, input: Option<&str>, at: &[&str], document: &Document<'_>) -> Result<(), ConfigError> {
    const OTHERS: [&str; 7] = ["$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas"];
    let Some(Ok(Json::Object(schema))) = input.map(serde_json::from_str) else { return Ok(()) };
    let Some(Json::Object(properties)) = schema.get("properties") else { return Ok(()) };
    if properties.contains_key(name) || OTHERS.iter().any(|other| schema.contains_key(*other)) {
        return Ok(());
    }
    let next = match near_names(name, properties.keys().map(String::as_str), 1).first() {
        Some(near) => format!("did you mean {near}?"),
        None => "add it to the properties of input, or remove it".to_owned(),
    };
    Err(document.error(at, format!("{name} is not an argument of the tool"), next))
}

/// Checks the name of an API or MCP server, which is the prefix of its tools' names.
fn check_prefix(kind: &str, name: &str, document: &Document<'_>) -> Result<(), ConfigError> {
    let is_name = (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if is_name {
        return Ok(());
    }
    let message = format!("{name:?} is not a valid prefix of tool names");
    Err(document.error(&[kind, name], message, "write 1 to 64 letters, digits, - and _"))
}

impl Api {
    fn read(name: &str, file: &file::Api, document: &Document<'_>, network: &Network) -> Result<Self, ConfigError> {
        let path = ["openapi", name];
        check_prefix("openapi", name, document)?;
        let read = |given: &String| {
            let base_url = url(given, &["openapi", name, "base_url"], document, network)?;
            if base_url.query().is_some() || given.contains(['{', '}']) {
                let next = "write scheme, host and the beginning of the path only";
                return Err(document.error(&["openapi", name, "base_url"], "it has a query or braces", next));
            }
            Ok(base_url)
        };
        let base_url = file.base_url.as_ref().map(read).transpose()?;
        Ok(Api {
            description: document.file(&["openapi", name, "file"], &file.file)?,
            base_url,
            headers: headers(&file.headers, &path, document)?,
            calls: CallSettings::read(&calls_file!(file, file.effect, None, file.cached), &path, document)?,
            policy: file.policy,
            policies: file.policies.clone(),
        })
    }
}

impl McpServer {
    fn read(name: &str, file: &file::Mcp, document: &Document<'_>, network: &Network) -> Result<Self, ConfigError> {
        let path = ["mcp", name];
        let of = |field| ["mcp", name, field];
        check_prefix("mcp", name, document)?;
        let connection = match (file.command.as_deref(), &file.url) {
            (Some([program, arguments @ ..]), None) if !program.is_empty() => {
                if !file.headers.is_empty() {
                    let message = "a server that is a process gets no headers";
                    return Err(document.error(&of("headers"), message, "write env in their place"));
                }
                let env = environment(&file.env, &of("env"), document)?;
                McpConnection::Command { program: program.clone(), arguments: arguments.to_vec(), env }
            }
            (Some(_), None) => {
                let next = "write a program and its arguments: [\"program\", \"argument\"]";
                return Err(document.error(&of("command"), "it names no program", next));
            }
            (None, Some(given)) => {
                if !file.env.is_empty() {
                    let message = "a server with a URL has no environment";
                    return Err(document.error(&of("env"), message, "write headers in its place"));
                }
                let url = url(given, &of("url"), document, network)?;
                McpConnection::Http { url, headers: headers(&file.headers, &path, document)? }
            }
            (None, None) => {
                let next = "add command = [\"program\", \"argument\"], or url";
                return Err(document.error(&path, "it has neither command nor url", next));
            }
            (Some(_), Some(_)) => {
                return Err(document.error(&of("url"), "command is given, too", "remove one of the two"));
            }
        };
        let start = file.start_timeout_ms;
        Ok(McpServer {
            connection,
            start_timeout_ms: start
                .map_or(Ok(30_000), |given| document.within(&of("start_timeout_ms"), given, 1..=600_000))?,
            calls: CallSettings::read(&calls_file!(file, None, None, false), &path, document)?,
            policy: file.policy,
            policies: file.policies.clone(),
        })
    }
}

fn environment(
    given: &BTreeMap<String, String>,
    path: &[&str],
    document: &Document<'_>,
) -> Result<Vec<(String, Secret)>, ConfigError> {
    if given.len() > PAIRS {
        let message = format!("there are {}; the maximum is {PAIRS}", given.len());
        return Err(document.error(path, message, "remove some"));
    }
    let read = |(name, template): (&String, &String)| {
        let at = [path, &[name.as_str()]].concat();
        if name.is_empty() || name.contains(['=', '\0']) {
            let message = "it is not a valid name of an environment variable";
            return Err(document.error(&at, message, "write letters, digits and underscores"));
        }
        let value = document.secret(&at, template)?;
        if value.expose().contains('\0') {
            return Err(document.error(&at, "its value has a zero byte", "remove it"));
        }
        Ok((name.clone(), value))
    };
    given.iter().map(read).collect()
}

/// Reads all tools of one kind.
fn all<F, T>(
    files: &BTreeMap<String, F>,
    document: &Document<'_>,
    network: &Network,
    read: impl Fn(&str, &F, &Document<'_>, &Network) -> Result<T, ConfigError>,
) -> Result<BTreeMap<String, T>, ConfigError> {
    files.iter().map(|(name, file)| Ok((name.clone(), read(name, file, document, network)?))).collect()
}

/// The tools of all three kinds.
pub(super) struct AllTools {
    pub(super) tools: BTreeMap<String, HttpTool>,
    pub(super) openapi: BTreeMap<String, Api>,
    pub(super) mcp: BTreeMap<String, McpServer>,
}

/// Reads the tools of all three kinds.
pub(super) fn read(file: &file::File, document: &Document<'_>, network: &Network) -> Result<AllTools, ConfigError> {
    Ok(AllTools {
        tools: all(&file.tools, document, network, HttpTool::read)?,
        openapi: all(&file.openapi, document, network, Api::read)?,
        mcp: all(&file.mcp, document, network, McpServer::read)?,
    })
}
