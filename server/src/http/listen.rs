//! Connections: how many, how slow, how they end.

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

/// Why nobody listens.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The address cannot be had.
    #[error("cannot listen on {address}: {error}")]
    Address {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// The certificate or its key.
    #[error("TLS with {certificate}: {error}")]
    Tls {
        /// The file.
        certificate: String,
        /// What is wrong.
        error: io::Error,
    },
    /// The address is open to others, and nobody needs a token.
    #[error(transparent)]
    Exposed(#[from] crate::config::ConfigError),
    /// Serving broke off.
    #[error("serving broke off: {0}")]
    Serve(io::Error),
}

/// An address that nobody else listens on. It is taken before the store is opened: a service that cannot listen takes no store.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Takes an address.
    ///
    /// # Errors
    /// It cannot be had, or it is open to others while nobody needs a token.
    pub fn bind(config: &Config, address: SocketAddr) -> Result<Listener, ListenError> {
        config.check_exposure(address)?;
        let failed = |error| ListenError::Address { address, error };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Listener { listener, address })
    }
}

/// A service that listens.
#[derive(Debug)]
pub struct Server {
    service: Service,
    listener: Listener,
    handle: Handle<SocketAddr>,
    router: Router,
}

impl Server {
    /// Takes the address.
    ///
    /// # Errors
    /// As of [`Listener::bind`].
    pub fn bind(service: Service, address: SocketAddr) -> Result<Server, ListenError> {
        let listener = Listener::bind(service.config(), address)?;
        Ok(Server::new(service, listener))
    }

    /// Serves at an address.
    pub fn new(service: Service, listener: Listener) -> Server {
        let router = router(service.clone());
        Server::with_router(service, listener, router)
    }

    /// Serves other routes than those of [`router`].
    pub fn with_router(service: Service, listener: Listener, router: Router) -> Server {
        Server { service, listener, handle: Handle::new(), router }
    }

    /// The address, with the port that was found.
    pub fn address(&self) -> SocketAddr {
        self.listener.address
    }

    /// Ends the server: nobody new is let in, requests under way have the time that the configuration says.
    pub fn stop_handle(&self) -> impl Fn() + Send + Sync + 'static + use<> {
        let (service, handle) = (self.service.clone(), self.handle.clone());
        move || {
            service.drain();
            handle.graceful_shutdown(Some(Duration::from_secs(service.config().service.drain_seconds)));
        }
    }

    /// Serves until [`Server::stop_handle`] is called, and then until the requests under way are answered.
    ///
    /// # Errors
    /// The certificate cannot be read, or the system fails.
    pub async fn serve(self) -> Result<(), ListenError> {
        let Server { service, listener, handle, router, .. } = self;
        let config = service.config().clone();
        let connections = Connections::new(&config, service.connections());
        let acceptor = Acceptor(connections.clone());
        let app = router.into_make_service();
        let mut server = axum_server::from_tcp(listener.listener).map_err(ListenError::Serve)?.handle(handle);
        // There are no descriptors for another one: one that is idle gives up its own.
        server = server.accept_error_handler(move |peer, _| {
            if peer.is_none() {
                connections.close_one()
            }
        });
        let header_time = Duration::from_secs(config.service.header_seconds);
        let http = server.http_builder();
        // The time that a head may take is looked after by the connection.
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
