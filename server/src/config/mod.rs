//! The configuration of the service: a TOML file. `docs/service.md` lists all keys.
//!
//! ```
//! use lisp_server::config::Config;
//! let config = Config::parse("[service]\nqueue = 16\n\n[limits]\ntimeout_ms = 2000\n", "service.toml")?;
//! assert_eq!((config.service.queue, config.limits().timeout_ms), (16, 2000));
//! let error = Config::parse("[service]\nqueue = -1", "service.toml").unwrap_err();
//! assert_eq!((error.at, error.field.as_str()), (Some((2, 9)), "service.queue"));
//! # Ok::<(), lisp_server::config::ConfigError>(())
//! ```

mod address;
mod document;
mod error;
mod file;
mod location;
mod network;
mod pattern;
mod question;
mod secret;
mod service;
mod template;
mod tenants;
mod tools;

#[cfg(test)]
mod tests;

pub use address::{BadAddress, ListenAddress};
pub use error::ConfigError;
pub use file::{Decision, Method};
pub use location::StoreLocation;
pub use network::Network;
pub use pattern::ToolPattern;
pub use question::Question;
pub use secret::{Scrubber, Secret};
pub use service::{Durability, Service};
pub use template::UrlTemplate;
pub use tenants::{Tenant, TenantBudget};
pub use tools::{Api, CallSettings, Header, HttpTool, McpConnection, McpServer};

#[cfg(feature = "postgres")]
pub(crate) use location::without_password;
pub(crate) use template::encoded;
pub(crate) use tools::is_own_header;

use document::Document;
use file::{File, IsolationSetting};
use lisp_runtime::request::Isolation;
use lisp_runtime::{Check, Keys, Limits, LimitsRequest};
use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The configuration of a service. [`Config::default`] equals an empty file.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Config {
    /// Where to listen.
    pub listen: ListenAddress,
    /// Where the store is.
    pub store: StoreLocation,
    /// Whether the configuration sets `store`; otherwise it is `ptc.db`.
    pub names_store: bool,
    /// Whether the store was restored from a backup just now. It is no key of the file: `--restored` sets it.
    pub restored: bool,
    /// The isolation of runs whose request does not name one.
    pub isolation: Isolation,
    /// How keys of JSON objects are represented if the request does not say.
    pub json_keys: Keys,
    /// Whether programs are checked against their data and tools before they run.
    pub check: Check,
    /// Limits of runs that ask for none. [`Config::limits`] combines them with the defaults.
    pub limits: LimitsRequest,
    /// The highest limits that requests may ask for. [`Config::ceiling_of`] combines them with the other limits.
    pub ceiling: LimitsRequest,
    /// Limits of the service as a whole.
    pub service: Service,
    /// Certificate and key; if set, the service speaks TLS.
    pub tls: Option<Tls>,
    /// The tenants. If empty, [`Config::anonymous`] uses the service.
    pub tenants: Vec<Tenant>,
    /// HTTP endpoints, by tool name.
    pub tools: BTreeMap<String, HttpTool>,
    /// HTTP APIs, by the prefix of their tools' names.
    pub openapi: BTreeMap<String, Api>,
    /// MCP servers, by the prefix of their tools' names.
    pub mcp: BTreeMap<String, McpServer>,
    /// Which addresses tools may reach besides public ones.
    pub network: Network,
    anonymous: Tenant,
    source: Source,
}

/// Certificate and key of the service.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tls {
    /// The file with the certificate chain, as PEM.
    pub certificate: PathBuf,
    /// The file with the private key, as PEM.
    pub key: PathBuf,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7117)).into(),
            store: StoreLocation::File("ptc.db".into()),
            names_store: false,
            restored: false,
            isolation: Isolation::Process,
            json_keys: Keys::default(),
            check: Check::Warn,
            limits: LimitsRequest::default(),
            ceiling: LimitsRequest::default(),
            service: Service::default(),
            tls: None,
            tenants: Vec::new(),
            tools: BTreeMap::new(),
            openapi: BTreeMap::new(),
            mcp: BTreeMap::new(),
            network: Network::default(),
            anonymous: Tenant::anonymous(),
            source: Source::default(),
        }
    }
}

/// Returns where the store is, with the variables filled in.
fn store_of(given: Option<&str>, document: &Document<'_>) -> Result<StoreLocation, ConfigError> {
    let filled = document.secret(&["store"], given.unwrap_or("ptc.db"))?;
    let Ok(location) = filled.expose().parse();
    Ok(match location {
        StoreLocation::File(path) => StoreLocation::File(document.path(&path)),
        database => database,
    })
}

/// Name and text of the configuration, for errors found when it is used.
#[derive(Clone, Default)]
struct Source(Option<Arc<(String, String)>>);

/// Always equal: two configurations with the same content are equal, wherever they come from.
/// Where a field of the configuration is.
pub(crate) struct FieldPlace {
    /// The file.
    pub(crate) file: String,
    /// Line and column, from 1.
    pub(crate) at: Option<(usize, usize)>,
    /// The path of the field.
    pub(crate) field: String,
}

impl PartialEq for Source {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source")
    }
}

/// Checks that the limits of runs are not above the ceiling of the same file, which would lower them.
fn check_ceiling(file: &File, document: &Document<'_>) -> Result<(), ConfigError> {
    let asked = Limits::default().with(&file.limits);
    let given = asked.min(&Limits::unlimited().with(&file.ceiling));
    let fields = |limits: Limits| serde_json::to_value(limits).unwrap_or_default();
    let (asked, given) = (fields(asked), fields(given));
    for (name, limit) in asked.as_object().into_iter().flatten() {
        let path = ["limits", name.as_str()];
        if given[name] != *limit && document.has(&path) && document.has(&["ceiling", name]) {
            let (ceiling, above) = (&given[name], if *limit == 0 { "no limit" } else { "above the ceiling" });
            let message = format!("{limit} is {above}, but ceiling.{name} is {ceiling}, so runs would get {ceiling}");
            return Err(document.error(&path, message, format!("write at most {ceiling}, or raise ceiling.{name}")));
        }
    }
    Ok(())
}

impl Config {
    /// Reads a file of at most 16 MiB, with the files and environment variables it names. Relative paths start from the
    /// directory of the file.
    ///
    /// # Errors
    /// If the file cannot be read or something in it is wrong. The error has the position and a next step.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let name = path.display().to_string();
        let text = document::read_bounded(path).map_err(|error| ConfigError {
            file: name.clone(),
            at: None,
            field: String::new(),
            message: format!("the configuration cannot be read: {error}"),
            next: "correct the path after --config".to_owned(),
        })?;
        let base = path.parent().unwrap_or(Path::new("")).to_owned();
        Config::of(&text, &name, base, &variable)
    }

    /// Parses a configuration. Errors use `name` as the name of the file. Relative paths start from the working
    /// directory.
    ///
    /// # Errors
    /// See [`Config::read`].
    pub fn parse(text: &str, name: &str) -> Result<Self, ConfigError> {
        Config::parse_with(text, name, &variable)
    }

    /// Parses a configuration with environment variables from a function instead of the process.
    ///
    /// ```
    /// use lisp_server::config::Config;
    /// let text = "[tools.crm]\nurl = \"https://crm.example.com/\"\nheaders = {Authorization = \"Bearer ${CRM_TOKEN}\"}";
    /// let config = Config::parse_with(text, "service.toml", &|name| (name == "CRM_TOKEN").then(|| "t0ken".to_owned()))?;
    /// assert_eq!(config.tools["crm"].headers[0].value.expose(), "Bearer t0ken");
    /// assert!(!format!("{config:?}").contains("t0ken"));
    /// let error = Config::parse_with(text, "service.toml", &|_| None).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "service.toml:3:28: tools.crm.headers.Authorization: the environment variable CRM_TOKEN is not set, or empty; \
    ///      set CRM_TOKEN where the service starts"
    /// );
    /// # Ok::<(), lisp_server::config::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// See [`Config::read`].
    pub fn parse_with(
        text: &str,
        name: &str,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        Config::of(text, name, PathBuf::new(), environment)
    }

    fn of(
        text: &str,
        name: &str,
        base: PathBuf,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let document = Document::parse(name, text, base, environment)?;
        let file: File = document.fields()?;
        let usual = Config::default();
        let listen = match &file.listen {
            None => usual.listen,
            Some(given) => {
                let address: ListenAddress = given.parse().map_err(|_| {
                    let next =
                        "write an address and a port, such as 127.0.0.1:7117 or [::1]:7117, or unix:/run/ptc.sock";
                    document.error(&["listen"], format!("{given:?} is not an address"), next)
                })?;
                address.within(|path| document.path(path))
            }
        };
        let mut network = Network::default();
        for (index, entry) in file.network.allow_private.iter().enumerate() {
            network.allow(entry).map_err(|message| {
                let next = "write a network 10.0.0.0/8, an address 127.0.0.1:8080, or a name localhost:9000";
                document.error(&["network", "allow_private", &index.to_string()], message, next)
            })?;
        }
        let tls = file.tls.as_ref().map(|tls| Tls::read(tls, &document)).transpose()?;
        check_ceiling(&file, &document)?;
        let all = tools::read(&file, &document, &network)?;
        let mut anonymous = usual.anonymous;
        anonymous.read_approvers(&file, &document)?;
        Ok(Config {
            listen,
            store: store_of(file.store.as_deref(), &document)?,
            names_store: file.store.is_some(),
            restored: false,
            isolation: match file.isolation {
                Some(IsolationSetting::InProcess) => Isolation::InProcess,
                Some(IsolationSetting::Process) | None => Isolation::Process,
            },
            json_keys: file.json_keys.unwrap_or_default(),
            check: file.check.unwrap_or(Check::Warn),
            limits: file.limits,
            ceiling: file.ceiling,
            service: Service::read(&file.service, &document)?,
            tls,
            tenants: tenants::read(&file.tenants, &document)?,
            tools: all.tools,
            openapi: all.openapi,
            mcp: all.mcp,
            network,
            anonymous,
            source: Source(Some(Arc::new((name.to_owned(), text.to_owned())))),
        })
    }

    /// Returns where a field is. For a schema in its own file, that is the field that names the file.
    pub(crate) fn place_of(&self, path: &[String]) -> Option<FieldPlace> {
        let (name, text) = self.source.0.as_deref()?;
        let document = Document::parse(name, text, PathBuf::new(), &|_| None).ok()?;
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let in_file = path.last().map(|field| format!("{field}_file")).unwrap_or_default();
        let path = match path.as_slice() {
            [table @ .., _] if !document.has(&path) => [table, &[in_file.as_str()]].concat(),
            path => path.to_vec(),
        };
        let is_there = document.has(&path);
        let field = if is_there { path.join(".") } else { path.join(".").trim_end_matches("_file").to_owned() };
        Some(FieldPlace { file: name.clone(), at: document.position(&path), field })
    }

    /// Returns a scrubber that removes the secrets of the configuration from text.
    pub fn scrubber(&self) -> Scrubber {
        let of_tools = self.tools.values().map(|tool| &tool.headers);
        let of_apis = self.openapi.values().map(|api| &api.headers);
        let headers = of_tools.chain(of_apis).flatten().map(|header| &header.value);
        let of_servers = self.mcp.values().flat_map(|server| match &server.connection {
            McpConnection::Command { env, .. } => env.iter().map(|(_, value)| value).collect::<Vec<_>>(),
            McpConnection::Http { headers, .. } => headers.iter().map(|header| &header.value).collect(),
        });
        let password = std::env::var("PGPASSWORD").ok().filter(|_| self.store.is_shared());
        let of_store = Secret::of(self.store.secrets().into_iter().chain(password));
        Scrubber::of(headers.chain(of_servers).chain([&of_store]))
    }

    /// Checks that the certificate can be read and that the key belongs to it.
    ///
    /// # Errors
    /// If one of the two is missing or invalid, or they do not belong together.
    pub fn check_tls(&self) -> Result<(), ConfigError> {
        let Some(tls) = &self.tls else { return Ok(()) };
        tls.check().map_err(|(field, message, next)| {
            let path = ["tls".to_owned(), field.to_owned()];
            let unknown = || FieldPlace { file: "configuration".to_owned(), at: None, field: path.join(".") };
            let FieldPlace { file, at, field } = self.place_of(&path).unwrap_or_else(unknown);
            ConfigError { file, at, field, message, next: next.to_owned() }
        })
    }

    /// Returns the limits of a run that asks for none: the defaults, overridden by `[limits]`.
    pub fn limits(&self) -> Limits {
        Limits::default().with(&self.limits)
    }

    /// Returns the highest limits that a tenant's requests may ask for: the limits of runs, overridden by `[ceiling]`,
    /// overridden by the tenant's own ceiling.
    pub fn ceiling_of(&self, tenant: &Tenant) -> Limits {
        self.limits().with(&self.ceiling).with(&tenant.ceiling)
    }

    /// Returns the maximum number of requests of a tenant in progress at once. By default half of `max_connections`, so
    /// that no tenant can hold all connections; the only user of a service without tenants may.
    pub(crate) fn max_requests_of(&self, tenant: &Tenant) -> usize {
        let max = self.service.max_connections;
        tenant.max_requests.unwrap_or(if self.tenants.is_empty() { max } else { max.div_ceil(2) })
    }

    /// Returns the tenant that has this token. Takes the same time whichever tenant it is, or if none has it.
    ///
    /// ```
    /// use lisp_server::config::Config;
    /// // printf %s open | sha256sum
    /// let text = "[[tenants]]\nname = \"a\"\n\
    ///             token_sha256 = \"2348f998744212575d85959674f9607ab26f67708a917157472832386337c904\"";
    /// let config = Config::parse(text, "service.toml")?;
    /// assert_eq!(config.tenant_of("open").map(|tenant| tenant.name.as_str()), Some("a"));
    /// assert_eq!(config.tenant_of("shut"), None);
    /// # Ok::<(), lisp_server::config::ConfigError>(())
    /// ```
    pub fn tenant_of(&self, token: &str) -> Option<&Tenant> {
        tenants::find(&self.tenants, token)
    }

    /// Returns the tenant whose approver has this token. Takes as long as [`Config::tenant_of`].
    ///
    /// ```
    /// use lisp_server::config::Config;
    /// let mut config = Config::default();
    /// config.add_approver("anonymous", "s3cret");
    /// assert_eq!(config.approver_of("s3cret").map(|tenant| tenant.name.as_str()), Some("anonymous"));
    /// assert_eq!(config.approver_of("guess"), None);
    /// ```
    pub fn approver_of(&self, token: &str) -> Option<&Tenant> {
        tenants::find_approver(self.tenants.iter().chain(self.anonymous()), token)
    }

    /// Adds an approver's token to a tenant, or to the anonymous user of a service without tenants. Does nothing if no
    /// tenant has the name.
    pub fn add_approver(&mut self, tenant: &str, token: &str) {
        let is_anonymous = self.tenants.is_empty().then_some(&mut self.anonymous);
        let all = self.tenants.iter_mut().chain(is_anonymous);
        all.filter(|known| known.name == tenant).for_each(|known| known.add_approver(token));
    }

    /// Returns whether any tool needs an approver's decision on its calls.
    pub fn asks(&self) -> bool {
        let of_apis = self.openapi.values().map(|api| (api.policy, &api.policies));
        let of_servers = self.mcp.values().map(|server| (server.policy, &server.policies));
        self.tools.values().any(|tool| tool.policy == Decision::Ask)
            || of_apis
                .chain(of_servers)
                .any(|(usual, single)| usual == Decision::Ask || single.values().any(|one| *one == Decision::Ask))
    }

    /// Returns the tenant of this name, for example that of a run in the store.
    pub fn tenant_named(&self, name: &str) -> Option<&Tenant> {
        match self.anonymous() {
            Some(anonymous) => (anonymous.name == name).then_some(anonymous),
            None => self.tenants.iter().find(|tenant| tenant.name == name),
        }
    }

    /// Returns the user of a service without tenants, or `None` if there are tenants.
    pub fn anonymous(&self) -> Option<&Tenant> {
        self.tenants.is_empty().then_some(&self.anonymous)
    }

    /// Checks whether the service may listen there. Without tenants everyone who reaches an address may use the service,
    /// so it must be a loopback address, or a Unix socket, whose file has a mode. A Unix socket has no TLS.
    ///
    /// # Errors
    /// If the address is not allowed, with a next step.
    pub fn check_exposure(&self, address: &ListenAddress) -> Result<(), ConfigError> {
        let (message, next) = match address {
            ListenAddress::Unix(_) if self.tls.is_some() => (
                format!("{address} is a Unix socket, which is served without TLS"),
                "remove [tls], or listen on an address and a port",
            ),
            ListenAddress::Unix(_) => return Ok(()),
            ListenAddress::Tcp(tcp) if tcp.ip().to_canonical().is_loopback() || !self.tenants.is_empty() => {
                return Ok(());
            }
            ListenAddress::Tcp(_) => (
                format!("{address} can be reached from other machines, and without tenants anyone could run programs"),
                "add [[tenants]] with name and token_sha256 (`printf %s \"$TOKEN\" | sha256sum`), or listen on 127.0.0.1",
            ),
        };
        let (file, field) = ("configuration".to_owned(), "listen".to_owned());
        Err(ConfigError { file, at: None, field, message, next: next.to_owned() })
    }
}

impl Tls {
    fn check(&self) -> Result<(), (&'static str, String, &'static str)> {
        use rustls::pki_types::pem::PemObject;
        use rustls::pki_types::{CertificateDer, PrivateKeyDer};
        let chain = "write the path of a PEM file with the certificate and its chain";
        let private = "write the path of a file of PEM with the private key of the certificate";
        let read = |field, path: &Path, next| {
            let text = document::read_bounded(path);
            text.map_err(|error| (field, format!("the file {} cannot be read: {error}", path.display()), next))
        };
        let certificates = read("certificate", &self.certificate, chain)?;
        let certificates = CertificateDer::pem_slice_iter(certificates.as_bytes()).collect::<Result<Vec<_>, _>>();
        let certificates = certificates.map_err(|error| ("certificate", format!("it is not PEM: {error}"), chain))?;
        if certificates.is_empty() {
            return Err(("certificate", "it has no certificate".to_owned(), chain));
        }
        let key = PrivateKeyDer::from_pem_slice(read("key", &self.key, private)?.as_bytes())
            .map_err(|error| ("key", format!("it has no private key: {error}"), private))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let served = builder.and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key));
        served.map(drop).map_err(|error| ("key", format!("it does not go with the certificate: {error}"), private))
    }

    fn read(file: &file::Tls, document: &Document<'_>) -> Result<Self, ConfigError> {
        for (field, given) in [("certificate", &file.certificate), ("key", &file.key)] {
            document.file(&["tls", field], given)?;
        }
        Ok(Tls { certificate: document.path(&file.certificate), key: document.path(&file.key) })
    }
}

/// An environment variable of the process, or `None` if it is not valid Unicode.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
