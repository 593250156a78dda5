//! Connections: how many, how slow, how they end.

use super::router;
use crate::config::Config;
use crate::runs::Service;
use axum::Router;
use axum_server::Handle;
use axum_server::accept::Accept;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use hyper_util::rt::TokioTimer;
use prometheus_client::metrics::gauge::Gauge;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_io_timeout::TimeoutStream;

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

/// A service that listens.
#[derive(Debug)]
pub struct Server {
    service: Service,
    listener: TcpListener,
    address: SocketAddr,
    handle: Handle<SocketAddr>,
    router: Router,
}

impl Server {
    /// Takes the address.
    ///
    /// # Errors
    /// It cannot be had, or it is open to others while nobody needs a token.
    pub fn bind(service: Service, address: SocketAddr) -> Result<Server, ListenError> {
        let router = router(service.clone());
        Server::bind_router(service, address, router)
    }

    /// Takes the address, for other routes than those of [`router`].
    ///
    /// # Errors
    /// As of [`Server::bind`].
    pub fn bind_router(service: Service, address: SocketAddr, router: Router) -> Result<Server, ListenError> {
        service.config().check_exposure(address)?;
        let failed = |error| ListenError::Address { address, error };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Server { service, listener, address, handle: Handle::new(), router })
    }

    /// The address, with the port that was found.
    pub fn address(&self) -> SocketAddr {
        self.address
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
        let acceptor = Acceptor::new(&config, service.connections());
        let app = router.into_make_service();
        let mut server = axum_server::from_tcp(listener).map_err(ListenError::Serve)?.handle(handle);
        let header_time = Duration::from_secs(config.service.header_seconds);
        let http = server.http_builder();
        http.http1().timer(TokioTimer::new()).header_read_timeout(header_time).max_buf_size(64 << 10);
        http.http2().timer(TokioTimer::new()).max_concurrent_streams(64).keep_alive_interval(header_time);
        let served = match &config.tls {
            None => server.acceptor(acceptor).serve(app).await,
            Some(tls) => {
                let certificate = tls.certificate.display().to_string();
                let read = RustlsConfig::from_pem_file(&tls.certificate, &tls.key).await;
                let rustls = read.map_err(|error| ListenError::Tls { certificate, error })?;
                server.acceptor(RustlsAcceptor::new(rustls).acceptor(acceptor)).serve(app).await
            }
        };
        served.map_err(ListenError::Serve)?;
        service.ended().await;
        Ok(())
    }
}

/// Lets connections in, so many, and cuts off those that do not read.
#[derive(Clone, Debug)]
struct Acceptor {
    places: Arc<Semaphore>,
    write_time: Duration,
    open: Gauge,
}

impl Acceptor {
    fn new(config: &Config, open: Gauge) -> Self {
        let places = Arc::new(Semaphore::new(config.service.max_connections.min(Semaphore::MAX_PERMITS)));
        Acceptor { places, write_time: Duration::from_secs(config.service.body_seconds), open }
    }
}

/// A connection with its place.
struct Connection {
    stream: Pin<Box<TimeoutStream<TcpStream>>>,
    _place: OwnedSemaphorePermit,
    _counted: Counted,
}

/// One of the connections that are open.
struct Counted(Gauge);

impl Counted {
    fn one_of(open: Gauge) -> Counted {
        open.inc();
        Counted(open)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl<S: Send + 'static> Accept<TcpStream, S> for Acceptor {
    type Stream = Connection;
    type Service = S;
    type Future = Pin<Box<dyn Future<Output = io::Result<(Connection, S)>> + Send>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let place = self.places.clone().try_acquire_owned();
        let (write_time, open) = (self.write_time, self.open.clone());
        Box::pin(async move {
            let place = place.map_err(|_| io::Error::other("there are max_connections connections already"))?;
            stream.set_nodelay(true)?;
            let mut stream = TimeoutStream::new(stream);
            stream.set_write_timeout(Some(write_time));
            Ok((Connection { stream: Box::pin(stream), _place: place, _counted: Counted::one_of(open) }, service))
        })
    }
}

mod io_of_connection {
    use super::Connection;
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

    impl AsyncRead for Connection {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            into: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            self.stream.as_mut().poll_read(context, into)
        }
    }

    impl AsyncWrite for Connection {
        fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            self.stream.as_mut().poll_write(context, bytes)
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            bytes: &[io::IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            self.stream.as_mut().poll_write_vectored(context, bytes)
        }

        fn is_write_vectored(&self) -> bool {
            self.stream.is_write_vectored()
        }

        fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.stream.as_mut().poll_flush(context)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            self.stream.as_mut().poll_shutdown(context)
        }
    }
}
