//! Listens and serves.

use super::connection::{Acceptor, Connections};
use super::router;
use crate::config::Config;
use crate::runs::Service;
use axum::Router;
use axum_server::Handle;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use hyper_util::rt::TokioTimer;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

/// An error while listening or serving.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// Cannot listen on the address.
    #[error("cannot listen on {address}: {error}")]
    Address {
        /// The address.
        address: SocketAddr,
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

/// A socket bound to an address. It is bound before the store is opened, so a service that cannot listen never takes
/// the store.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Binds the address.
    ///
    /// # Errors
    /// If the address cannot be bound, or if other machines can reach it and no token is required.
    pub fn bind(config: &Config, address: SocketAddr) -> Result<Listener, ListenError> {
        config.check_exposure(address)?;
        let failed = |error| ListenError::Address { address, error };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Listener { listener, address })
    }
}

/// A service with the address it listens on.
#[derive(Debug)]
pub struct Server {
    service: Service,
    listener: Listener,
    handle: Handle<SocketAddr>,
    router: Router,
}

impl Server {
    /// Binds the address and returns a server for it.
    ///
    /// # Errors
    /// See [`Listener::bind`].
    pub fn bind(service: Service, address: SocketAddr) -> Result<Server, ListenError> {
        let listener = Listener::bind(service.config(), address)?;
        Ok(Server::new(service, listener))
    }

    /// Returns a server for a bound address, with the routes of [`router`].
    pub fn new(service: Service, listener: Listener) -> Server {
        let router = router(service.clone());
        Server::with_router(service, listener, router)
    }

    /// Returns a server with routes other than those of [`router`].
    pub fn with_router(service: Service, listener: Listener, router: Router) -> Server {
        Server { service, listener, handle: Handle::new(), router }
    }

    /// Returns the address, with the actual port if port 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.listener.address
    }

    /// Returns a function that stops the server. New connections are then refused; requests in progress get
    /// `drain_seconds`.
    pub fn stop_handle(&self) -> impl Fn() + Send + Sync + 'static + use<> {
        let (service, handle) = (self.service.clone(), self.handle.clone());
        move || {
            service.drain();
            handle.graceful_shutdown(Some(Duration::from_secs(service.config().service.drain_seconds)));
        }
    }

    /// Serves until the function of [`Server::stop_handle`] is called and the requests in progress have ended.
    ///
    /// # Errors
    /// If the certificate or its key cannot be read, or the system fails.
    pub async fn serve(self) -> Result<(), ListenError> {
        let Server { service, listener, handle, router, .. } = self;
        let config = service.config().clone();
        let connections = Connections::new(&config, service.connections());
        let acceptor = Acceptor(connections.clone());
        let app = router.into_make_service();
        let mut server = axum_server::from_tcp(listener.listener).map_err(ListenError::Serve)?.handle(handle);
        // No file descriptor is left: close an idle connection.
        server = server.accept_error_handler(move |peer, _| {
            if peer.is_none() {
                connections.close_one()
            }
        });
        let header_time = Duration::from_secs(config.service.header_seconds);
        let http = server.http_builder();
        // The connection itself enforces the time for a request's head.
        http.http1().timer(TokioTimer::new()).header_read_timeout(None).max_buf_size(64 << 10);
        http.http2().timer(TokioTimer::new()).max_concurrent_streams(64).keep_alive_interval(header_time);
        let served = match &config.tls {
            None => server.acceptor(acceptor).serve(app).await,
            Some(tls) => {
                let certificate = tls.certificate.display().to_string();
                let read = RustlsConfig::from_pem_file(&tls.certificate, &tls.key).await;
                let rustls = read.map_err(|error| ListenError::Tls { certificate, error })?;
                let rustls = RustlsAcceptor::new(rustls).handshake_timeout(header_time);
                server.acceptor(rustls.acceptor(acceptor)).serve(app).await
            }
        };
        served.map_err(ListenError::Serve)?;
        service.ended().await;
        Ok(())
    }
}
