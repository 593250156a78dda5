//! Policies: the host's decision on each tool call.

use super::argument::{argument, arguments};
use super::contract::Effect;
use super::tool::{Tool, ToolError};
use crate::terms::place::Place;
use serde::de::DeserializeOwned;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Decides on every tool call. Set one with [`crate::EngineBuilder::policy`].
///
/// A closure that takes an [`AskedCall`] is a policy; it must name the type: `|call: &AskedCall<'_>|`.
///
/// A policy is called once per tool call, before any side effect, on the calling thread, with any isolation. This
/// includes calls from workers and calls that would be served from the cache. Arguments that do not match the tool are
/// rejected before. A call that is served from the cache is not made, so it needs no approval. A run that is
/// [resumed](crate::Engine::resume) keeps the decisions in its record. A policy that panics denies the call.
///
/// ```
/// use lisp_runtime::{Engine, Input, Reason, Tool};
/// use lisp_runtime::tools::{AskedCall, Effect, PolicyDecision};
/// let engine = Engine::builder()
///     .grant(Tool::new("drop_table", |_| Ok(true)).with_effect(Effect::Write))
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

    /// Returns whether runs of a tenant see the tool; the default is true.
    ///
    /// If not, the tool does not exist for them: its name is not in errors or hints. Called often, so it should be fast
    /// and must always return the same answer.
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

/// The decision of a policy on a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyDecision {
    /// The call is made.
    Allow,
    /// The call is made with other arguments, a JSON object. They are checked against the tool's signature or JSON
    /// Schema, if it has one.
    AllowWith(String),
    /// The program ends with `tool_denied` and this reason. `try` does not catch it.
    Deny(String),
    /// The call needs approval, with this question.
    ///
    /// A run that is driven step by step suspends with [`crate::Progress::Approval`]. Other runs end with
    /// `approval_required`, and a recorded run can be resumed after [`crate::Record::approve`]. With `Input::approvals`,
    /// calls of async tools are decided while the run continues.
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
    /// Returns the tool.
    pub fn tool(&self) -> &Tool {
        self.tool
    }

    /// Returns the original name of the tool.
    pub fn name(&self) -> &str {
        self.tool.given_name()
    }

    /// Returns the declared effect of the tool's calls.
    pub fn effect(&self) -> Effect {
        self.tool.effect()
    }

    /// Returns the arguments for the tool as JSON text: an object.
    pub fn json(&self) -> &str {
        self.arguments
    }

    /// Returns the arguments as a Rust type.
    ///
    /// # Errors
    /// They do not match the type.
    pub fn arguments<T: DeserializeOwned>(&self) -> Result<T, ToolError> {
        arguments(self.arguments, &self.tool.treatment.redacted)
    }

    /// Returns one argument as a Rust type.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input};
    /// use lisp_runtime::tools::{AskedCall, PolicyDecision};
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
    /// It is missing or does not match. Use an `Option` for an optional argument.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<T, ToolError> {
        argument(self.arguments, key, &self.tool.treatment.redacted)
    }

    /// Returns the name of the call in its run.
    pub fn place(&self) -> &Place {
        self.place
    }

    /// Returns the tenant of the run: [`crate::Input::tenant`].
    pub fn tenant(&self) -> Option<&str> {
        self.tenant
    }

    /// Returns how many calls the run has made before, without calls served from the cache. For the call of a worker,
    /// only calls before its outermost parallel call count, so that the number does not depend on timing.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Returns how many of these calls were of this tool.
    pub fn calls_of_tool(&self) -> u64 {
        self.calls_of_tool
    }
}

impl fmt::Debug for AskedCall<'_> {
    /// Leaves out the arguments.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AskedCall")
            .field("tool", &self.tool.name())
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

    /// Returns whether runs of this tenant see the tool.
    pub(crate) fn shows(&self, tool: &Tool, tenant: Option<&str>) -> bool {
        let Some(policy) = &self.0 else { return true };
        catch_unwind(AssertUnwindSafe(|| policy.shows(tool, tenant))).unwrap_or(false)
    }
}
