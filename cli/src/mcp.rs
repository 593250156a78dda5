//! `ptcl mcp`: the MCP server, on standard input and output or over HTTP.

use crate::exit::{Exit, Failure};
use crate::service::{ServiceOptions, at_signal, log_to_standard_error, not_begun, open_store, runtime, sweep};
use lisp_mcp::{Mcp, OpenError, add_approver};
use lisp_server::config::Config;
use lisp_server::http::{Listener, Server, approvals};
use lisp_server::runs::Service;
use lisp_server::store::{MemoryStore, Store, StoreLocation};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Serve HTTP clients at http://ADDRESS/mcp; port 0 picks a free port. Without it, serves one client on standard input and output
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Where suspended runs are kept: a file, or postgres://USER@HOST/DATABASE [default: the configuration's; without one, they end with the server]
    #[arg(long, value_name = "STORE")]
    store: Option<StoreLocation>,
    /// Tenant of the client on standard input, when the configuration has tenants
    #[arg(long, value_name = "NAME", conflicts_with = "listen")]
    tenant: Option<String>,
    /// Without --listen: address of the approvals page for tools with policy = "ask" [default: a free port]
    #[arg(long, value_name = "ADDRESS", conflicts_with = "listen")]
    approvals: Option<SocketAddr>,
    #[command(flatten)]
    options: ServiceOptions,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let config = arguments.options.config(arguments.listen.map(Into::into), arguments.store.as_ref())?;
    log_to_standard_error(&config)?;
    let runtime = runtime("mcp")?;
    let done = runtime.block_on(serve(config, arguments));
    // A thread that reads standard input cannot be stopped.
    runtime.shutdown_background();
    done
}

fn failed(error: &dyn std::fmt::Display) -> Failure {
    Failure::Service(error.to_string())
}

async fn serve(mut config: Config, arguments: &Arguments) -> Result<Exit, Failure> {
    for address in arguments.listen.iter().chain(&arguments.approvals) {
        config.check_exposure(&(*address).into()).map_err(|error| Failure::Usage(error.to_string()))?;
    }
    // Before anything is printed that looks like a start.
    match &arguments.tenant {
        _ if arguments.listen.is_some() => {}
        None if config.anonymous().is_some() => {}
        None => return Err(Failure::Usage(OpenError::NoTenant.to_string())),
        Some(name) if config.tenant_named(name).is_none() => {
            return Err(Failure::Usage(OpenError::UnknownTenant(name.clone()).to_string()));
        }
        Some(_) => {}
    }
    let token = add_approver(&mut config, arguments.tenant.as_deref()).map_err(|error| failed(&error))?;
    let bind = |address: SocketAddr| Listener::bind(&config, address.into()).map_err(|error| failed(&error));
    let listener = arguments.listen.map(bind).transpose()?;
    let approver = match (arguments.approvals, config.asks()) {
        (None, true) if listener.is_none() => Some((Ipv4Addr::LOCALHOST, 0).into()),
        (given, _) => given,
    };
    let approver = approver.map(bind).transpose()?;
    let store: Arc<dyn Store> = match config.names_store {
        true => open_store(&config).await?,
        false => Arc::new(MemoryStore::new()),
    };
    let service = Service::open(config, store).await.map_err(|error| not_begun(&error))?;
    let mcp = Mcp::new(service.clone()).await.map_err(|error| failed(&error))?;
    let sweeper = tokio::spawn(sweep(service.clone()));
    let served = match listener {
        Some(listener) => serve_http(&mcp, listener, token.as_deref()).await,
        None => serve_stdio(&mcp, arguments, approver, token.as_deref()).await,
    };
    sweeper.abort();
    served.map(|()| Exit::Ok)
}

/// Tells the person who started the server how to decide on calls. The model does not see it.
fn tell_approvers(mcp: &Mcp, server: &Server, token: Option<&str>) {
    let address = format!("{}/", server.url());
    mcp.approvals_at(&address);
    match token {
        Some(token) => tell_line!("approvals at {address}#token={token}"),
        None => tell_line!("approvals at {address}"),
    }
}

async fn serve_http(mcp: &Mcp, listener: Listener, token: Option<&str>) -> Result<(), Failure> {
    let server = Server::with_router(mcp.service().clone(), listener, mcp.router());
    tell_line!("listening on {}/mcp", server.url());
    if mcp.service().config().asks() {
        tell_approvers(mcp, &server, token);
    }
    let (stop, mcp, runtime) = (server.stop_handle(), mcp.clone(), tokio::runtime::Handle::current());
    at_signal(move || {
        stop();
        // Sessions stay open until they are ended.
        runtime.block_on(mcp.end());
    })?;
    server.serve().await.map_err(|error| failed(&error))
}

async fn serve_stdio(
    mcp: &Mcp,
    arguments: &Arguments,
    approver: Option<Listener>,
    token: Option<&str>,
) -> Result<(), Failure> {
    let approvals = approver.map(|listener| {
        let service = mcp.service().clone();
        let server = Server::with_router(service.clone(), listener, approvals(service));
        tell_approvers(mcp, &server, token);
        tokio::spawn(server.serve())
    });
    let (its, runtime) = (mcp.clone(), tokio::runtime::Handle::current());
    at_signal(move || runtime.block_on(its.end()))?;
    let served = mcp.serve_stdio(arguments.tenant.as_deref(), tokio::io::stdin(), tokio::io::stdout()).await;
    mcp.service().drain();
    mcp.service().ended().await;
    if let Some(approvals) = approvals {
        approvals.abort();
    }
    served.map_err(|error| match error {
        OpenError::NoTenant | OpenError::UnknownTenant(_) => Failure::Usage(error.to_string()),
        error => failed(&error),
    })
}
