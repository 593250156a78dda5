//! The policy for the service's tools, and who sees them.

use crate::config::{Config, Decision, Question, ToolPattern};
use lisp_runtime::tools::{AskedCall, PolicyDecision};
use lisp_runtime::{Tool, ToolPolicy};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Decides on calls of the service's tools, as configured.
///
/// Tools that are not the service's, such as those that a client answers, are visible and allowed. A tool of the
/// service is hidden from tenants whose `tools` do not match it. If there are tenants, it is also hidden from runs
/// without one.
#[derive(Clone, Debug)]
pub struct ServicePolicy(Arc<Rules>);

#[derive(Debug, Default)]
struct Rules {
    /// By the names in the configuration.
    tools: BTreeMap<String, Rule>,
    /// The tools of each tenant; `None` if there are no tenants.
    tenants: Option<BTreeMap<String, Option<Vec<ToolPattern>>>>,
}

/// The policy for one tool.
#[derive(Clone, Debug, Default)]
pub(super) struct Rule {
    pub(super) decision: Decision,
    pub(super) question: Option<Question>,
}

impl ServicePolicy {
    pub(super) fn new(config: &Config, tools: BTreeMap<String, Rule>) -> Self {
        let seen = config.tenants.iter().map(|tenant| (tenant.name.clone(), tenant.tools.clone())).collect();
        let tenants = config.anonymous().is_none().then_some(seen);
        ServicePolicy(Arc::new(Rules { tools, tenants }))
    }

    /// Returns why a call that was allowed or approved may not be made any more, for this tenant; `None` if it may.
    ///
    /// A call of a durable run may wait for days. By then the service may deny it.
    pub fn denies_now(&self, tool: &str, tenant: &str) -> Option<&'static str> {
        let rule = self.0.tools.get(tool)?;
        if !self.0.shows(tool, Some(tenant)) {
            return Some("it is not a tool of this tenant any more");
        }
        (rule.decision == Decision::Deny).then_some("the service allows no call of it any more")
    }

    /// Returns whether calls of a tool of the service need approval.
    pub fn asks_for(&self, tool: &Tool) -> bool {
        self.0.tools.get(tool.given_name()).is_some_and(|rule| rule.decision == Decision::Ask)
    }
}

impl Rules {
    fn shows(&self, name: &str, tenant: Option<&str>) -> bool {
        let Some(tenants) = &self.tenants else { return true };
        if !self.tools.contains_key(name) {
            return true;
        }
        match tenant.and_then(|tenant| tenants.get(tenant)) {
            None => false,
            Some(None) => true,
            Some(Some(patterns)) => patterns.iter().any(|pattern| pattern.fits(name)),
        }
    }
}

impl ToolPolicy for ServicePolicy {
    fn decide(&self, call: &AskedCall<'_>) -> PolicyDecision {
        let name = call.name();
        // The rules are for the service's tools, not for tools that a request defines under the same name.
        if call.tool().is_scripted() {
            return PolicyDecision::Allow;
        }
        let Some(rule) = self.0.tools.get(name) else { return PolicyDecision::Allow };
        if !self.0.shows(name, call.tenant()) {
            return PolicyDecision::Deny("it is not a tool of this tenant".to_owned());
        }
        match (rule.decision, &rule.question) {
            (Decision::Allow, _) => PolicyDecision::Allow,
            (Decision::Deny, _) => PolicyDecision::Deny("the service allows no call of it".to_owned()),
            (Decision::Ask, None) => PolicyDecision::Ask(format!("call {name}?")),
            (Decision::Ask, Some(question)) => match call.arguments() {
                Ok(arguments) => PolicyDecision::Ask(question.fill(&arguments)),
                Err(error) => PolicyDecision::Deny(format!("its arguments are not an object: {error}")),
            },
        }
    }

    fn shows(&self, tool: &Tool, tenant: Option<&str>) -> bool {
        tool.is_scripted() || self.0.shows(tool.given_name(), tenant)
    }
}
