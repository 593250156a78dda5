//! HTTP clients that connect to permitted addresses only.

use super::error::ToolsError;
use crate::config::Network;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The time limit for connecting.
const CONNECT: Duration = Duration::from_secs(10);
/// The maximum idle connections kept per host.
const IDLE: usize = 32;

/// The HTTP clients of the service: one in general, and one for each port with its own permissions. They resolve names
/// themselves and connect to the addresses that they checked, without a second lookup.
pub(super) struct Clients {
    network: Arc<Network>,
    by_port: BTreeMap<u16, Client>,
}

impl Clients {
    pub(super) fn new(network: &Network) -> Self {
        // If another provider is already installed, it is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Clients { network: Arc::new(network.clone()), by_port: BTreeMap::new() }
    }

    /// Returns the client for a URL that was checked when the configuration was read. `path` is its field.
    pub(super) fn for_url(&mut self, url: &Url, path: &[&str]) -> Result<Client, ToolsError> {
        let port = url.port_or_known_default().filter(|port| self.network.names_port(*port)).unwrap_or_default();
        if let Some(client) = self.by_port.get(&port) {
            return Ok(client.clone());
        }
        let client = client(Guard { network: self.network.clone(), port }).map_err(|error| ToolsError {
            message: format!("no HTTP client can be made: {}", innermost(&error)),
            next: "install the certificates of the system (the package ca-certificates)".to_owned(),
            ..ToolsError::at(path)
        })?;
        self.by_port.insert(port, client.clone());
        Ok(client)
    }
}

fn client(guard: Guard) -> Result<Client, reqwest::Error> {
    Client::builder()
        .user_agent(concat!("ptc-lisp/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .no_proxy()
        .connect_timeout(CONNECT)
        .pool_max_idle_per_host(IDLE)
        .dns_resolver(guard)
        .build()
}

/// Resolves names, and rejects those with forbidden addresses.
struct Guard {
    network: Arc<Network>,
    /// The port to connect to; 0 if no permission depends on it.
    port: u16,
}

/// A name resolves to an address that is not public.
#[derive(Debug)]
pub(super) struct NotPublic {
    name: String,
}

impl fmt::Display for NotPublic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} leads to an address that is not public; the operator of the service can allow it with \"{}:PORT\" in allow_private of [network]",
            self.name, self.name
        )
    }
}

impl std::error::Error for NotPublic {}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let (network, port, name) = (self.network.clone(), self.port, name.as_str().to_owned());
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            // One forbidden address is enough: a name that is only sometimes public is not trusted.
            if found.iter().any(|address| !network.permits(&name, port, address.ip())) {
                return Err(NotPublic { name }.into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// Returns the message of the innermost error. The message of the client's own error contains the URL.
pub(super) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
