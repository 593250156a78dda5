//! Listens and serves.

use super::connection::{Acceptor, Connections};
use super::descriptors::max_connections;
#[cfg(unix)]
use super::guard::OverUnixSocket;
use super::router;
use crate::config::{Config, ListenAddress};
use crate::runs::Service;
#[cfg(unix)]
use axum::Extension;
use axum::Router;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use axum_server::{Address, Handle};
use hyper_util::rt::TokioTimer;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

/// An error while listening or serving.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// Cannot listen on the address.
    #[error("cannot listen on {address}: {error}{}", next_step(.error))]
    Address {
        /// The address.
        address: ListenAddress,
        /// The error of the operating system.
        error: io::Error,
    },
    /// The certificate or its key cannot be used.
    #[error("TLS with {certificate}: {error}")]
    Tls {
        /// The file of the certificate.
        certificate: String,
        /// What is wrong.
        error: io::Error,
    },
    /// The address is reachable from other machines, and no token is required.
    #[error(transparent)]
    Exposed(#[from] crate::config::ConfigError),
    /// Serving stopped with an error.
    #[error("serving broke off: {0}")]
    Serve(io::Error),
}

/// What to do when an address cannot be listened on.
fn next_step(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "; stop what listens there, or choose another address with --listen",
        io::ErrorKind::AddrNotAvailable => "; choose an address of this machine with --listen",
        io::ErrorKind::PermissionDenied => "; choose a port from 1024 on with --listen",
        _ => "",
    }
}

/// A socket bound to an address. It is bound before the store is opened, so a service that cannot listen never takes
/// the store.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    address: ListenAddress,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixListener, super::socket::SocketFile),
}

impl Listener {
    /// Binds the address. For a Unix socket this needs a tokio runtime; its file is removed when the listener, or its
    /// server, is dropped.
    ///
    /// # Errors
    /// If the address cannot be bound, or if other machines can reach it and no token is required.
    pub fn bind(config: &Config, address: ListenAddress) -> Result<Listener, ListenError> {
        config.check_exposure(&address)?;
        match Listener::bound(config, &address) {
            Ok((socket, address)) => Ok(Listener { socket, address }),
            Err(error) => Err(ListenError::Address { address, error }),
        }
    }

    fn bound(config: &Config, address: &ListenAddress) -> io::Result<(Socket, ListenAddress)> {
        match address {
            ListenAddress::Tcp(address) => {
                let listener = TcpListener::bind(address)?;
                let address = listener.local_addr()?.into();
                Ok((Socket::Tcp(listener), address))
            }
            #[cfg(unix)]
            ListenAddress::Unix(path) => {
                let (listener, file) = super::socket::SocketFile::bind(path, config.service.socket_mode)?;
                Ok((Socket::Unix(listener, file), address.clone()))
            }
            #[cfg(not(unix))]
            ListenAddress::Unix(_) => {
                let _ = config;
                Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no Unix sockets; use 127.0.0.1:7117"))
            }
        }
    }
}

/// Stops a server that listens on either kind of socket.
#[derive(Clone, Debug)]
enum Stop {
    Tcp(Handle<SocketAddr>),
    #[cfg(unix)]
    Unix(Handle<std::os::unix::net::SocketAddr>),
}

impl Stop {
    fn graceful_shutdown(&self, time: Duration) {
        match self {
            Stop::Tcp(handle) => handle.graceful_shutdown(Some(time)),
            #[cfg(unix)]
            Stop::Unix(handle) => handle.graceful_shutdown(Some(time)),
        }
    }
}

/// A service with the address it listens on.
#[derive(Debug)]
pub struct Server {
    service: Service,
    listener: Listener,
    stop: Stop,
    router: Router,
    connections: Connections,
}

impl Server {
    /// Binds the address and returns a server for it.
    ///
    /// # Errors
    /// See [`Listener::bind`].
    pub fn bind(service: Service, address: ListenAddress) -> Result<Server, ListenError> {
        let listener = Listener::bind(service.config(), address)?;
        Ok(Server::new(service, listener))
    }

    /// Returns a server for a bound address, with the routes of [`router`]. Raises the limit of this process for open files if
    /// that is needed for `max_connections`. If the system does not allow enough, logs it, and has fewer connections.
    pub fn new(service: Service, listener: Listener) -> Server {
        let router = router(service.clone());
        Server::with_router(service, listener, router)
    }

    /// Returns a server with routes other than those of [`router`].
    pub fn with_router(service: Service, listener: Listener, router: Router) -> Server {
        let (stop, router) = match &listener.socket {
            Socket::Tcp(_) => (Stop::Tcp(Handle::new()), router),
            #[cfg(unix)]
            Socket::Unix(..) => (Stop::Unix(Handle::new()), router.layer(Extension(OverUnixSocket))),
        };
        let connections = Connections::new(service.config(), max_connections(service.config()), service.connections());
        Server { service, listener, stop, router, connections }
    }

    /// Returns the address, with the actual port if port 0 was asked for.
    pub fn address(&self) -> &ListenAddress {
        &self.listener.address
    }

    /// Returns the address as clients write it: a URL, or `unix:` and a path.
    pub fn url(&self) -> String {
        match &self.listener.address {
            ListenAddress::Tcp(address) if self.service.config().tls.is_some() => format!("https://{address}"),
            ListenAddress::Tcp(address) => format!("http://{address}"),
            unix @ ListenAddress::Unix(_) => unix.to_string(),
        }
    }

    /// Returns a function that stops the server. New connections are then refused; requests in progress get
    /// `drain_seconds`, and a second more to send their responses.
    pub fn stop_handle(&self) -> impl Fn() + Send + Sync + 'static + use<> {
        let (service, stop) = (self.service.clone(), self.stop.clone());
        move || {
            service.drain();
            stop.graceful_shutdown(Duration::from_secs(service.config().service.drain_seconds.saturating_add(1)));
        }
    }

    /// Serves until the function of [`Server::stop_handle`] is called and the requests in progress have ended.
    ///
    /// # Errors
    /// If the certificate or its key cannot be read, or the system fails.
    pub async fn serve(self) -> Result<(), ListenError> {
        let Server { service, listener, stop, router, connections } = self;
        match (listener.socket, stop) {
            (Socket::Tcp(socket), Stop::Tcp(handle)) => {
                let server = axum_server::from_tcp(socket).map_err(ListenError::Serve)?.handle(handle);
                let server = prepared(server, service.config(), &connections);
                serve_tcp(server, service.config(), connections, router).await?;
            }
            #[cfg(unix)]
            (Socket::Unix(socket, _file), Stop::Unix(handle)) => {
                let server = axum_server::from_unix(socket).map_err(ListenError::Serve)?.handle(handle);
                let server = prepared(server, service.config(), &connections).acceptor(Acceptor(connections));
                server.serve(router.into_make_service()).await.map_err(ListenError::Serve)?;
            }
            // Both are of one kind: see `with_router`.
            #[cfg(unix)]
            _ => {}
        }
        service.ended().await;
        Ok(())
    }
}

/// Sets the limits of connections that all servers share.
fn prepared<A: Address>(
    server: axum_server::Server<A>,
    config: &Config,
    connections: &Connections,
) -> axum_server::Server<A> {
    let connections = connections.clone();
    // No file descriptor is left: close an idle connection.
    let mut server = server.accept_error_handler(move |peer, _| {
        if peer.is_none() {
            connections.close_one()
        }
    });
    let header_time = Duration::from_secs(config.service.header_seconds);
    let http = server.http_builder();
    // The connection itself enforces the time for a request's head.
    http.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(64 << 10);
    http.http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(64)
        .max_send_buf_size(64 << 10)
        .keep_alive_interval(header_time);
    server
}

async fn serve_tcp(
    server: axum_server::Server<SocketAddr>,
    config: &Config,
    connections: Connections,
    router: Router,
) -> Result<(), ListenError> {
    let (acceptor, app) = (Acceptor(connections), router.into_make_service());
    let served = match &config.tls {
        None => server.acceptor(acceptor).serve(app).await,
        Some(tls) => {
            let certificate = tls.certificate.display().to_string();
            let read = RustlsConfig::from_pem_file(&tls.certificate, &tls.key).await;
            let rustls = read.map_err(|error| ListenError::Tls { certificate, error })?;
            let header_time = Duration::from_secs(config.service.header_seconds);
            let rustls = RustlsAcceptor::new(rustls).handshake_timeout(header_time);
            server.acceptor(rustls.acceptor(acceptor)).serve(app).await
        }
    };
    served.map_err(ListenError::Serve)
}
