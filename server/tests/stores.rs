//! The stores: each agrees with the model.

#[path = "stores/ops.rs"]
mod ops;
#[path = "stores/suite.rs"]
mod suite;

use lisp_server::store::{MemoryStore, Store};
use std::sync::Arc;
use tokio::runtime::Runtime;

#[test]
fn the_model_agrees_with_itself() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    suite::check_cases(&Runtime::new().unwrap(), &store, 16);
}
