//! The commands of operators: `ptcl runs` and `ptcl store`. They work on the store itself.

pub(crate) mod runs;
mod show;
pub(crate) mod store;

use crate::exit::Failure;
use crate::service::{log_to_standard_error, read_config, runtime};
use lisp_server::config::Config;
use lisp_server::store::{Store, StoreError, StoreLocation};
use std::path::PathBuf;
use std::sync::Arc;

/// Where the store is.
#[derive(Debug, clap::Args)]
struct Place {
    /// The store: a file, or postgres://USER@HOST/DATABASE [default: the configuration's, or ptc.db]
    #[arg(long, global = true, value_name = "STORE")]
    store: Option<StoreLocation>,
    /// Configuration file of the service
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl Place {
    /// Reads the configuration, and runs a command with it.
    fn run<T>(&self, command: impl AsyncFnOnce(Config) -> Result<T, Failure>) -> Result<T, Failure> {
        let config = read_config(self.config.as_deref(), self.store.as_ref())?;
        log_to_standard_error(&config)?;
        runtime("operate")?.block_on(command(config))
    }
}

/// Opens a store that exists, and does not change its format. Of a file that is in use, says what to do instead.
async fn open(config: &Config, instead: &str) -> Result<Arc<dyn Store>, Failure> {
    exists(&config.store)?;
    config.store.open_existing(config.service.durability).await.map_err(|error| not_opened(error, instead))
}

fn not_opened(error: StoreError, instead: &str) -> Failure {
    match error {
        StoreError::Owned { path, owner } => {
            Failure::Service(format!("the store {path} is in use by {owner}: {instead}, or stop it first"))
        }
        error => failed(&error),
    }
}

/// To name no store is a mistake of the command line; a store that fails is one of the system.
fn failed(error: &StoreError) -> Failure {
    match error {
        StoreError::Missing { .. } => Failure::Usage(error.to_string()),
        error => Failure::Service(error.to_string()),
    }
}

/// Checks that there is a store: an operator's command creates none.
fn exists(store: &StoreLocation) -> Result<(), Failure> {
    match store {
        StoreLocation::File(path) if !path.exists() => {
            Err(Failure::Usage(format!("there is no store {}: name an existing one with --store", path.display())))
        }
        _ => Ok(()),
    }
}
