//! PTC-Lisp as an HTTP service: runs, durable runs and sessions, with a store and configured tools.
//! `docs/service.md` describes the service, and `ptcl serve` runs it.
//!
//! ```
//! use lisp_server::{config::Config, http::Server, runs::Service, store::MemoryStore};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//! use tokio::net::TcpStream;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = Config::parse("isolation = \"in-process\"", "service.toml")?;
//! let service = Service::open(config, std::sync::Arc::new(MemoryStore::new())).await?;
//! let server = Server::bind(service, "127.0.0.1:0".parse()?)?;
//! let (address, stop) = (server.address().to_string(), server.stop_handle());
//! let serving = tokio::spawn(server.serve());
//!
//! let body = r#"{"program": "(+ 1 2)"}"#;
//! let mut client = TcpStream::connect(&address).await?;
//! let head = format!("POST /v1/run HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
//! client.write_all(format!("{head}content-type: application/json\r\n\r\n{body}").as_bytes()).await?;
//! let mut response = String::new();
//! client.read_to_string(&mut response).await?;
//! assert!(response.starts_with("HTTP/1.1 200 OK") && response.contains("\"value\":3"), "{response}");
//!
//! stop();
//! serving.await??;
//! # Ok(())
//! # }
//! ```
//!
//! With the feature `postgres` the store can be in PostgreSQL, and many processes can share it: see
//! [`store::StoreLocation`]. On Linux every program runs in a process of its own, unless the configuration says otherwise.
//!
//! # Terms
//!
//! | term | meaning |
//! |---|---|
//! | durable run | a run that is stored, and continues after a restart |
//! | journal | the stored lines about what a durable run did: its calls and clock readings, with their results |
//! | claim | taking a queued run from the store, to run it |
//! | attempt | a durable run in one process, from its claim until it ends or is suspended |
//! | lease | the right of one attempt to write its run; it expires unless it is renewed |
//! | news | a message of the store to its processes: a run is new, was cancelled or got a reply |
//! | front, worker | a process that serves the API and leaves durable runs to others; a process that runs them |
//! | slot | capacity for one run |

#![forbid(unsafe_code)]
// docs.rs says of each item which feature it needs.
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

pub mod config;
pub mod http;
pub mod runs;
pub mod store;
pub mod tools;
