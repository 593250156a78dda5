//! The stores: each agrees with the model, and keeps its word when processes, disks and files fail.

#[path = "stores/contract.rs"]
mod contract;
#[path = "stores/file.rs"]
mod file;
#[path = "stores/ops.rs"]
mod ops;
#[path = "stores/processes.rs"]
mod processes;
#[path = "stores/sqlite.rs"]
mod sqlite;
#[path = "stores/suite.rs"]
mod suite;

use file::TestFile;
use lisp_server::store::{MemoryStore, Store};
use std::sync::Arc;
use tokio::runtime::Runtime;

#[test]
fn the_model_agrees_with_itself() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    suite::check_cases(&Runtime::new().unwrap(), &store, 16);
}

#[test]
fn sqlite_agrees_with_the_model() {
    let file = TestFile::new("suite");
    let store: Arc<dyn Store> = Arc::new(file.open());
    suite::check_cases(&Runtime::new().unwrap(), &store, 64);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_keeps_the_contract() {
    contract::check(Arc::new(MemoryStore::new())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_keeps_the_contract() {
    let file = TestFile::new("contract");
    contract::check(Arc::new(file.open())).await;
}
