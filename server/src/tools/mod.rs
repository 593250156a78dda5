//! The tools that the configuration names: HTTP endpoints, operations of HTTP APIs, and tools of MCP servers.

#![expect(clippy::result_large_err, reason = "tools are made once, when a service starts")]

mod body;
mod clients;
mod endpoint;
mod error;
mod lenient;
mod lenient_http;
mod policy;
mod process;
mod request;
mod sending;
mod style;
mod upstream;

pub use error::ToolsError;
pub use policy::ServicePolicy;
pub(crate) use sending::{SENDS, Sends};

use crate::config::{
    Api, CallSettings, Config, Decision, Header, HttpTool, McpConnection, McpServer, Method, Network, Scrubber,
};
use clients::Clients;
use endpoint::{Endpoint, with_settings};
use futures_util::future::try_join_all;
use lisp_runtime::tools::{Effect, Operation, SchemaError};
use lisp_runtime::{Tool, ToolCall, Tools};
use policy::Rule;
use request::Request;
use reqwest::Url;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use tokio::sync::Semaphore;
use upstream::{ServerTools, Upstream};

/// The tools of the service, connected.
///
/// All tools are async: a waiting call holds no thread. Use [`lisp_runtime::Engine::run_async`], or `run_async` of the
/// sandbox. The tools belong to the tokio runtime on which they were connected. [`ServiceTools::close`] ends the
/// processes of MCP servers; they are killed when the last clone of the tools is dropped.
///
/// ```
/// use lisp_runtime::Engine;
/// use lisp_server::config::Config;
/// use lisp_server::tools::ServiceTools;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let config = Config::parse("[tools.weather]\nurl = \"https://weather.example.com/{city}\"\nmethod = \"GET\"", "service.toml")?;
/// let service = ServiceTools::connect(&config).await?;
/// let engine = Engine::builder().grant_all(service.tools.clone()).policy(service.policy.clone()).build()?;
/// # let _ = engine;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct ServiceTools {
    /// The tools, for [`lisp_runtime::EngineBuilder::grant_all`].
    pub tools: Tools,
    /// The policy for calls, for [`lisp_runtime::EngineBuilder::policy`].
    pub policy: ServicePolicy,
    /// The tools of APIs and MCP servers that cannot be used, with reasons. The log has them too.
    pub refused: Vec<RefusedTool>,
    upstreams: Vec<Arc<Upstream>>,
}

impl fmt::Debug for ServiceTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceTools")
            .field("tools", &self.tools)
            .field("refused", &self.refused)
            .finish_non_exhaustive()
    }
}

/// A tool that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedTool {
    /// Its source and name: `mcp.files: read_file`.
    pub name: String,
    /// What is wrong with it.
    pub why: String,
}

impl ServiceTools {
    /// Creates the configured tools, and connects to all MCP servers at once.
    ///
    /// # Errors
    /// If a schema or description cannot be read, two tools have one name, an MCP server does not start or cannot list
    /// its tools, or a policy names an unknown tool. The error names it.
    pub async fn connect(config: &Config) -> Result<Self, ToolsError> {
        ServiceTools::connect_all(config).await.map_err(|error| error.placed(config))
    }

    async fn connect_all(config: &Config) -> Result<Self, ToolsError> {
        let mut builder = ToolsBuilder {
            clients: Clients::new(&config.network),
            network: config.network.clone(),
            tools: Tools::new(),
            rules: BTreeMap::new(),
            refused: Vec::new(),
        };
        for (name, tool) in &config.tools {
            builder.add_http(name, tool)?;
        }
        for (name, api) in &config.openapi {
            builder.add_api(name, api)?;
        }
        let mut upstreams = Vec::new();
        for (name, server) in &config.mcp {
            let client = match &server.connection {
                McpConnection::Command { .. } => None,
                McpConnection::Http { url, .. } => Some(builder.clients.for_url(url, &["mcp", name, "url"])?),
            };
            upstreams.push(Arc::new(Upstream::new(name, server, client)));
        }
        let lists = try_join_all(upstreams.iter().map(|upstream| upstream.list())).await?;
        for ((upstream, list), (name, server)) in upstreams.iter().zip(lists).zip(&config.mcp) {
            builder.add_mcp(name, server, upstream, &list)?;
        }
        for RefusedTool { name, why } in &builder.refused {
            tracing::warn!(target: "ptc_lisp", name, why, "a tool cannot be used");
        }
        let policy = ServicePolicy::new(config, builder.rules);
        Ok(ServiceTools { tools: builder.tools, policy, refused: builder.refused, upstreams })
    }

    /// Closes the connections to MCP servers. A process gets two seconds to end before it is killed. A later call
    /// connects again.
    pub async fn close(&self) {
        futures_util::future::join_all(self.upstreams.iter().map(|upstream| upstream.close())).await;
    }
}

/// The tools created so far.
struct ToolsBuilder {
    clients: Clients,
    network: Network,
    tools: Tools,
    rules: BTreeMap<String, Rule>,
    refused: Vec<RefusedTool>,
}

impl ToolsBuilder {
    fn add(&mut self, path: &[&str], tool: Tool, rule: Rule) -> Result<(), ToolsError> {
        let name = tool.given_name().to_owned();
        self.tools.add(tool).map_err(|error| ToolsError {
            message: format!("{name}: {error}"),
            next: "give one of them another name".to_owned(),
            ..ToolsError::at(path)
        })?;
        self.rules.insert(name, rule);
        Ok(())
    }

    fn refuse(&mut self, field: &str, refused: Vec<(String, SchemaError)>, policies: &mut Policies<'_>) {
        for (name, error) in refused {
            policies.rule(&name);
            self.refused.push(RefusedTool { name: format!("{field}: {name}"), why: error.to_string() });
        }
    }

    fn add_http(&mut self, name: &str, http: &HttpTool) -> Result<(), ToolsError> {
        let (path, field) = (["tools", name], format!("tools.{name}"));
        let tool = Tool::from_json_schema(name, &http.description, &http.input, http.output.as_deref());
        let mut tool = tool.map_err(|error| {
            let message = error.to_string();
            let is_input = Tool::from_json_schema(name, &http.description, &http.input, None).is_err();
            let of = if is_input { "input" } else { "output" };
            ToolsError { message, next: format!("change `{of}`"), ..ToolsError::at(&["tools", name, of]) }
        })?;
        if http.method == Method::Get {
            tool = tool.with_effect(Effect::Read);
        }
        let is_safe = matches!(http.method, Method::Get | Method::Put | Method::Delete);
        if http.calls.idempotent.unwrap_or(is_safe) {
            tool = tool.idempotent();
        }
        let client = self.clients.for_url(http.url.origin(), &["tools", name, "url"])?;
        let request = Request::new(http.method.into(), http.url.clone());
        let places = Arc::new(Semaphore::new(http.calls.concurrency));
        let tool = served(tool, client, request, (&http.headers, &http.calls, places), &field);
        self.add(&path, tool, Rule { decision: http.policy, question: http.question.clone() })
    }

    fn add_api(&mut self, name: &str, api: &Api) -> Result<(), ToolsError> {
        let field = format!("openapi.{name}");
        let imported = Tools::from_openapi(&api.description).map_err(|error| ToolsError {
            message: error.to_string(),
            next: "write the description as JSON or YAML of OpenAPI 3.0 or 3.1".to_owned(),
            ..ToolsError::at(&["openapi", name, "file"])
        })?;
        let mut policies = Policies::new(api.policy, &api.policies);
        self.refuse(&field, imported.refused, &mut policies);
        let (mut client, network): (Option<reqwest::Client>, _) = (None, self.network.clone());
        let base_of = |tool: &Tool| base_of(api, tool.operation(), &network);
        let origin = usual_origin(imported.tools.all().filter_map(|tool| base_of(tool).ok()));
        let places = Arc::new(Semaphore::new(api.calls.concurrency));
        for tool in imported.tools.all() {
            let own = tool.given_name();
            let rule = policies.rule(own);
            let request = base_of(tool).and_then(|base| {
                let operation = tool.operation().ok_or("it is not an operation")?;
                // The headers may only be sent to the origin that they were written for.
                if Some(base.origin().ascii_serialization()) != origin {
                    return Err(format!(
                        "its server is {base}, and not that of others: give it an [openapi] of its own, with base_url"
                    ));
                }
                if client.is_none() {
                    client = Some(self.clients.for_url(&base, &["openapi", name]).map_err(|error| error.to_string())?);
                }
                let client = client.clone().ok_or("it has no client")?;
                Ok((Request::of_operation(operation, &base)?, client))
            });
            match request {
                Err(why) => self.refused.push(RefusedTool { name: format!("{field}: {own}"), why }),
                Ok((request, client)) => {
                    let named = Tool::clone(tool).renamed(&format!("{name}__{own}"));
                    let settings = (api.headers.as_slice(), &api.calls, places.clone());
                    self.add(&["openapi", name], served(named, client, request, settings, &field), rule)?;
                }
            }
        }
        policies.finish(["openapi", name])
    }

    fn add_mcp(
        &mut self,
        name: &str,
        server: &McpServer,
        upstream: &Arc<Upstream>,
        list: &ServerTools,
    ) -> Result<(), ToolsError> {
        let field = format!("mcp.{name}");
        let imported = Tools::from_mcp_list(&list.json).map_err(|error| ToolsError {
            message: format!("its list of tools cannot be read: {error}"),
            next: "run another version of the server".to_owned(),
            ..ToolsError::at(&["mcp", name])
        })?;
        let mut policies = Policies::new(server.policy, &server.policies);
        self.refuse(&field, imported.refused, &mut policies);
        for tool in imported.tools.all() {
            let own: Arc<str> = tool.given_name().into();
            let rule = policies.rule(&own);
            let has_output = list.with_output.contains(&*own);
            let upstream = upstream.clone();
            let named = Tool::clone(tool).renamed(&format!("{name}__{own}"));
            let served = with_settings(named, &server.calls).with_async_handler(move |call: ToolCall| {
                let (upstream, own) = (upstream.clone(), own.clone());
                async move { upstream.call(&own, has_output, &call).await }
            });
            self.add(&["mcp", name], served, rule)?;
        }
        policies.finish(["mcp", name])
    }
}

/// Returns the origin of most operations of an API; on a tie, the first.
fn usual_origin(bases: impl Iterator<Item = Url>) -> Option<String> {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for base in bases {
        match counts.iter_mut().find(|(origin, _)| *origin == base.origin().ascii_serialization()) {
            Some((_, count)) => *count += 1,
            None => counts.push((base.origin().ascii_serialization(), 1)),
        }
    }
    counts.into_iter().rev().max_by_key(|(_, count)| *count).map(|(origin, _)| origin)
}

/// Returns the base URL of an operation's path.
fn base_of(api: &Api, operation: Option<&Operation>, network: &Network) -> Result<Url, String> {
    if let Some(base) = &api.base_url {
        return Ok(base.clone());
    }
    let next = "write base_url";
    let server = operation
        .and_then(|operation| operation.server.as_deref())
        .ok_or(format!("the description names no server: {next}"))?;
    let base = Url::parse(server).map_err(|_| format!("its server {server:?} is not a complete URL: {next}"))?;
    if base.query().is_some() || base.fragment().is_some() || base.path().contains("%7B") {
        return Err(format!("its server {server:?} has more than a path: {next}"));
    }
    network.check(&base).map_err(|(message, next)| format!("its server {server:?}: {message}; {next}"))?;
    Ok(base)
}

/// Creates a tool that sends HTTP requests.
fn served(
    tool: Tool,
    client: reqwest::Client,
    request: Request,
    (headers, calls, places): (&[Header], &CallSettings, Arc<Semaphore>),
    field: &str,
) -> Tool {
    let tool = with_settings(tool, calls);
    let endpoint = Arc::new(Endpoint {
        client,
        request,
        headers: headers.to_vec(),
        secrets: Scrubber::of(headers.iter().map(|header| &header.value)),
        settings: calls.clone(),
        effect: tool.effect(),
        places,
        field: field.to_owned(),
    });
    tool.with_async_handler(move |call: ToolCall| {
        let endpoint = endpoint.clone();
        async move { endpoint.call(&call).await }
    })
}

/// The policies for the tools of one source. A policy for an unknown tool is an error: the name may be misspelled.
struct Policies<'a> {
    usual: Decision,
    left: BTreeMap<&'a str, Decision>,
}

impl<'a> Policies<'a> {
    fn new(usual: Decision, by_name: &'a BTreeMap<String, Decision>) -> Self {
        Policies { usual, left: by_name.iter().map(|(name, decision)| (name.as_str(), *decision)).collect() }
    }

    fn rule(&mut self, name: &str) -> Rule {
        Rule { decision: self.left.remove(name).unwrap_or(self.usual), question: None }
    }

    fn finish(&self, [kind, source]: [&str; 2]) -> Result<(), ToolsError> {
        let Some(name) = self.left.keys().next() else { return Ok(()) };
        Err(ToolsError {
            message: format!("there is no tool {name} that can be used"),
            next: "correct the name, or remove the policy".to_owned(),
            ..ToolsError::at(&[kind, source, "policies", name])
        })
    }
}
