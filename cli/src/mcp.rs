//! `ptcl mcp`: programs for MCP clients, on standard input and output or over HTTP.

use crate::exit::{Exit, Failure};
use crate::service::{ServiceOptions, at_signal, log_to_standard_error, runtime, store_in_file, sweep};
use lisp_mcp::{Mcp, OpenError};
use lisp_server::config::Config;
use lisp_server::http::Server;
use lisp_server::runs::Service;
use lisp_server::store::SqliteStore;
use std::net::SocketAddr;
use std::path::PathBuf;

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Serve HTTP clients at http://ADDRESS/mcp; port 0 is any that is free. Without it, one client on standard input and output
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// The file that paused runs are kept in. Without it, that of the configuration, or else they end with the server
    #[arg(long, value_name = "FILE")]
    store: Option<PathBuf>,
    /// The tenant whose programs those of standard input are, when the configuration has tenants
    #[arg(long, value_name = "NAME", conflicts_with = "listen")]
    tenant: Option<String>,
    #[command(flatten)]
    options: ServiceOptions,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let config = arguments.options.config(arguments.listen, arguments.store.as_ref())?;
    log_to_standard_error();
    let runtime = runtime("mcp")?;
    let done = runtime.block_on(serve(config, arguments));
    // A thread that reads standard input cannot be ended.
    runtime.shutdown_background();
    done
}

fn failed(error: &dyn std::fmt::Display) -> Failure {
    Failure::Service(error.to_string())
}

async fn serve(config: Config, arguments: &Arguments) -> Result<Exit, Failure> {
    if let Some(listen) = arguments.listen {
        config.check_exposure(listen).map_err(|error| Failure::Usage(error.to_string()))?;
    }
    let store = if config.names_store { store_in_file(&config) } else { SqliteStore::in_memory() };
    let store = store.map_err(|error| failed(&error))?;
    let service = Service::open(config, Box::new(store)).await.map_err(|error| failed(&error))?;
    let mcp = Mcp::new(service.clone()).map_err(|error| failed(&error))?;
    let sweeper = tokio::spawn(sweep(service.clone()));
    let served = match arguments.listen {
        Some(listen) => serve_http(&mcp, listen).await,
        None => serve_stdio(&mcp, arguments.tenant.as_deref()).await,
    };
    sweeper.abort();
    served.map(|()| Exit::Ok)
}

async fn serve_http(mcp: &Mcp, listen: SocketAddr) -> Result<(), Failure> {
    let server = Server::bind_router(mcp.service().clone(), listen, mcp.router()).map_err(|error| failed(&error))?;
    let scheme = if mcp.service().config().tls.is_some() { "https" } else { "http" };
    tell_line!("listening on {scheme}://{}/mcp", server.address());
    let (stop, mcp, runtime) = (server.stop_handle(), mcp.clone(), tokio::runtime::Handle::current());
    at_signal(move || {
        stop();
        // Sessions stay open as long as nobody ends them.
        runtime.block_on(mcp.end());
    })?;
    server.serve().await.map_err(|error| failed(&error))
}

async fn serve_stdio(mcp: &Mcp, tenant: Option<&str>) -> Result<(), Failure> {
    let (its, runtime) = (mcp.clone(), tokio::runtime::Handle::current());
    at_signal(move || runtime.block_on(its.end()))?;
    let served = mcp.serve_stdio(tenant, tokio::io::stdin(), tokio::io::stdout()).await;
    mcp.service().drain();
    mcp.service().ended().await;
    served.map_err(|error| match error {
        OpenError::NoTenant | OpenError::UnknownTenant(_) => Failure::Usage(error.to_string()),
        error => failed(&error),
    })
}
