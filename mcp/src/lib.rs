//! PTC-Lisp for MCP clients: the tools `run`, `search`, `describe`, `resume` and `runs`.
//!
//! The tools use a [`lisp_server::runs::Service`]. They are served over standard input and output, or over
//! MCP's *streamable HTTP*: one URL for requests and for streams of events. `docs/mcp.md` describes each of them.
//!
//! ```
//! use lisp_mcp::Mcp;
//! use lisp_server::{config::Config, runs::Service, store::MemoryStore};
//! use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, duplex};
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
//! let config = Config::parse("isolation = \"in-process\"", "service.toml")?;
//! let mcp = Mcp::new(Service::open(config, std::sync::Arc::new(MemoryStore::new())).await?).await?;
//! let (mut client, server) = duplex(1 << 16);
//! let (read, write) = tokio::io::split(server);
//! tokio::spawn(async move { mcp.serve_stdio(None, read, write).await });
//! client.write_all(b"{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"}\n").await?;
//! let mut line = String::new();
//! BufReader::new(client).read_line(&mut line).await?;
//! assert_eq!(line, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The crate has no features.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

mod accept;
mod approver;
mod ask;
mod connection;
mod drive;
mod handler;
mod http;
mod in_progress;
mod lookup;
mod message;
mod notes;
mod resume;
mod run;
mod runs;
mod schema;
mod show;
mod stdio;
mod ticket;

pub use approver::add_approver;
pub use handler::{Mcp, OpenError};
