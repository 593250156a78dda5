//! PTC-Lisp for hosts: everything that a Rust program needs to run programs that a language model wrote.
//!
//! This crate has no code of its own. It is `ptc-lisp-runtime` and, with the feature `sandbox`, `ptc-lisp-sandbox`.
//!
//! ```
//! use ptc_lisp::{Engine, Input};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = Engine::builder().tool("price", |call| call.get::<f64>("base")).build()?;
//! let outcome = engine.eval("(tool/price {:base data/base})", Input::new().json("base", "2.5"));
//! assert_eq!(outcome.value::<f64>()?, 2.5);
//! # Ok(())
//! # }
//! ```
//!
//! [`Record`] is a run as text, with which it can be replayed or resumed. [`DataSet`] is JSON that is imported once and
//! shared by many runs. The crate `ptc-lisp-runtime` explains the other terms.
//!
//! # Features
//!
//! None is on by default.
//!
//! | feature | what it adds |
//! |---|---|
//! | `async` | runs and tools as futures, on any executor |
//! | `json-schema` | tools described by JSON Schema, from MCP servers and OpenAPI descriptions |
//! | `sandbox` | the module [`sandbox`](https://docs.rs/ptc-lisp-sandbox): each program in a process of its own; Linux |
//! | `schemars` | tools defined by the Rust types of their arguments and results; turns on `json-schema` |
//! | `seal` | records with a seal that detects changes, and records of runs over data sets |
//! | `tracing` | times and figures of runs and tool calls, as spans of the crate `tracing` |

#![forbid(unsafe_code)]
// docs.rs says of each item which feature it needs.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[doc(inline)]
pub use lisp_runtime::*;

#[cfg(feature = "sandbox")]
#[doc(inline)]
pub use lisp_sandbox as sandbox;

/// The examples of the repository's README: compiled, and run where possible.
#[cfg(all(doctest, target_os = "linux", feature = "sandbox"))]
#[doc = include_str!("../README.md")]
pub struct Readme;

/// The examples of the guide for hosts.
#[cfg(all(
    doctest,
    target_os = "linux",
    feature = "sandbox",
    feature = "async",
    feature = "schemars",
    feature = "seal"
))]
#[doc = include_str!("../docs/hosts.md")]
pub struct Guide;

/// The examples of the page about agents.
#[cfg(doctest)]
#[doc = include_str!("../docs/agents.md")]
pub struct Agents;
