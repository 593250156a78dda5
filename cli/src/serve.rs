//! `ptcl serve`: the HTTP service.

use crate::exit::{Exit, Failure};
use crate::service::{ServiceOptions, at_signal, log_to_standard_error, not_begun, open_store, runtime, sweep};
use lisp_server::config::{Config, ListenAddress};
use lisp_server::http::{Listener, Server};
use lisp_server::runs::Service;
use lisp_server::store::StoreLocation;

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Address to listen on, or unix:PATH for a Unix socket; port 0 picks a free port [default: the configuration's, or 127.0.0.1:7117]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<ListenAddress>,
    /// Where runs and sessions are kept: a file, or postgres://USER@HOST/DATABASE [default: the configuration's, or ptc.db]
    #[arg(long, value_name = "STORE")]
    store: Option<StoreLocation>,
    /// Do not execute durable runs here; `ptcl worker` processes with the same store do
    #[arg(long)]
    no_worker: bool,
    #[command(flatten)]
    options: ServiceOptions,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let config = arguments.options.config(arguments.listen.clone(), arguments.store.as_ref())?;
    log_to_standard_error(&config)?;
    let runtime = runtime("serve")?;
    runtime.block_on(serve(config, arguments.no_worker))
}

async fn serve(config: Config, is_front: bool) -> Result<Exit, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Service(error.to_string());
    let listen = config.listen.clone();
    config.check_exposure(&listen).map_err(|error| Failure::Usage(error.to_string()))?;
    if is_front && !config.store.is_shared() {
        return Err(Failure::Usage(format!(
            "--no-worker needs a store that other processes can use, and {} is a file: leave out --no-worker, or name a \
             database with --store postgres://USER@HOST/DATABASE",
            config.store
        )));
    }
    let listener = Listener::bind(&config, listen).map_err(|error| failed(&error))?;
    let store = open_store(&config).await?;
    let opened = match is_front {
        true => Service::open_front(config, store).await,
        false => Service::open(config, store).await,
    };
    let service = opened.map_err(|error| not_begun(&error))?;
    let server = Server::new(service.clone(), listener);
    tell_line!("listening on {}", server.url());
    at_signal(server.stop_handle())?;
    let sweeper = tokio::spawn(sweep(service));
    let served = server.serve().await;
    sweeper.abort();
    served.map(|()| Exit::Ok).map_err(|error| failed(&error))
}
