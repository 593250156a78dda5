//! What a host decides on each call of a tool.

use super::argument::{argument, arguments};
use super::tool::{Effect, Tool, ToolError};
use crate::terms::place::Place;
use serde::de::DeserializeOwned;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Decides on every call of a tool: [`crate::EngineBuilder::policy`]. A closure that takes an [`AskedCall`] is one;
/// it says the type of the call, `|call: &AskedCall<'_>|`.
///
/// It is asked on the thread on which the call was come to, at both doors, once for each call, those of parallel workers and those
/// that an earlier result would serve among them, before anything of the call is done. Arguments that do not fit the tool are
/// refused before. A call that an earlier result serves is not made: nobody is asked to approve it. A run that is [resumed](crate::Engine::resume) keeps the decisions of its record. A policy that panics
/// denies the call.
///
/// ```
/// use lisp_runtime::{AskedCall, Effect, Engine, Input, PolicyDecision, Reason, Tool};
/// let engine = Engine::builder()
///     .grant(Tool::new("drop_table", |_| Ok(true)).effect(Effect::Write))
///     .policy(|call: &AskedCall<'_>| match call.effect() {
///         Effect::Read => PolicyDecision::Allow,
///         _ => PolicyDecision::Deny("only reading is allowed here".to_owned()),
///     })
///     .build()?;
/// let outcome = engine.eval("(tool/drop_table {})", Input::new());
/// assert_eq!(outcome.problem().map(|problem| problem.reason()), Some(Reason::ToolDenied));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait ToolPolicy: Send + Sync {
    /// Decides on a call.
    fn decide(&self, call: &AskedCall<'_>) -> PolicyDecision;

    /// Does a run of this tenant see the tool at all? To a run that does not, it is a tool that was not granted: its name stands in
    /// no error and no hint. Asked again and again: a quick answer that stays the same is wanted.
    fn shows(&self, tool: &Tool, tenant: Option<&str>) -> bool {
        let _ = (tool, tenant);
        true
    }
}

impl<F: Fn(&AskedCall<'_>) -> PolicyDecision + Send + Sync> ToolPolicy for F {
    fn decide(&self, call: &AskedCall<'_>) -> PolicyDecision {
        self(call)
    }
}

/// A decision on a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyDecision {
    /// The call is made.
    Allow,
    /// The call is made with other arguments: a JSON object. They are checked against the tool's
    /// signature or JSON Schema, if it has one.
    AllowWith(String),
    /// The program ends with `tool_denied` and this reason, which no `try` catches.
    Deny(String),
    /// Somebody is asked. A run that is driven by hand stops with [`crate::Progress::Approval`]; another ends with
    /// `approval_required`, and when it is recorded it goes on after [`crate::Record::approve`].
    Ask(String),
}

/// A call that a policy decides on.
#[derive(Clone, Copy)]
pub struct AskedCall<'a> {
    pub(super) tool: &'a Tool,
    pub(super) arguments: &'a str,
    pub(super) place: &'a Place,
    pub(super) tenant: Option<&'a str>,
    pub(super) calls: u64,
    pub(super) calls_of_tool: u64,
}

impl AskedCall<'_> {
    /// The tool that is called.
    pub fn tool(&self) -> &Tool {
        self.tool
    }

    /// The tool's name, as it was given.
    pub fn name(&self) -> &str {
        self.tool.given_name()
    }

    /// What a call of it does to the world.
    pub fn effect(&self) -> Effect {
        self.tool.effect_of()
    }

    /// The arguments as the tool would get them: JSON text, an object.
    pub fn json(&self) -> &str {
        self.arguments
    }

    /// The arguments as a type of the host's.
    ///
    /// # Errors
    /// They do not fit.
    pub fn arguments<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        arguments(self.arguments, self.tool.redacted())
    }

    /// One argument.
    ///
    /// ```
    /// use lisp_runtime::{AskedCall, Engine, Input, PolicyDecision};
    /// let engine = Engine::builder()
    ///     .tool("pay", |call| call.get::<f64>("amount"))
    ///     .policy(|call: &AskedCall<'_>| match call.get::<f64>("amount") {
    ///         Ok(amount) if amount <= 100.0 => PolicyDecision::Allow,
    ///         Ok(amount) => PolicyDecision::Deny(format!("{amount} is too much")),
    ///         Err(error) => PolicyDecision::Deny(error.to_string()),
    ///     })
    ///     .build()?;
    /// assert!(engine.eval("(tool/pay {:amount 7})", Input::new()).is_success());
    /// assert!(!engine.eval("(tool/pay {:amount 700})", Input::new()).is_success());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// It is missing or does not fit; take an `Option` for one that may be missing.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<T, ToolError> {
        argument(self.arguments, key, self.tool.redacted())
    }

    /// The name of the call in its run.
    pub fn place(&self) -> &Place {
        self.place
    }

    /// Who the run is for: [`crate::Input::tenant`].
    pub fn tenant(&self) -> Option<&str> {
        self.tenant
    }

    /// How many calls the run has made before, without those served from an earlier result. For the call of a worker: before the parallel
    /// call of the program that it is of, so that it does not depend on how far other workers are.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// How many of them were of this tool.
    pub fn calls_of_tool(&self) -> u64 {
        self.calls_of_tool
    }
}

impl fmt::Debug for AskedCall<'_> {
    /// Without the arguments.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AskedCall")
            .field("tool", &self.tool.name)
            .field("place", &self.place.to_string())
            .field("tenant", &self.tenant)
            .finish_non_exhaustive()
    }
}

/// The policy of an engine, if it has one.
#[derive(Clone, Default)]
pub(crate) struct Policy(Option<Arc<dyn ToolPolicy>>);

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Policy").field(&self.0.is_some()).finish()
    }
}

impl Policy {
    pub(crate) fn by(policy: impl ToolPolicy + 'static) -> Self {
        Policy(Some(Arc::new(policy)))
    }

    pub(crate) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn decide(&self, call: &AskedCall<'_>) -> PolicyDecision {
        let Some(policy) = &self.0 else { return PolicyDecision::Allow };
        let decided = catch_unwind(AssertUnwindSafe(|| policy.decide(call)));
        decided.unwrap_or_else(|_| PolicyDecision::Deny("the host's policy panicked".to_owned()))
    }

    /// Does a run of this tenant see the tool?
    pub(crate) fn shows(&self, tool: &Tool, tenant: Option<&str>) -> bool {
        let Some(policy) = &self.0 else { return true };
        catch_unwind(AssertUnwindSafe(|| policy.shows(tool, tenant))).unwrap_or(false)
    }
}
