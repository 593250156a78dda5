//! An approver for a server that a person starts without having set one up.

use crate::handler::OpenError;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use lisp_server::config::{Config, Tenant};
use lisp_server::store::StoreError;

/// Bytes of a token.
const TOKEN: usize = 24;

/// Adds an approver to a tenant, or to the only user of a configuration without tenants, and returns the token. Returns `None`
/// when no tool asks for approvals, when the tenant has approvers, and when it is not said which of several tenants is meant.
///
/// # Errors
/// The system gives no random bytes.
pub fn add_approver(config: &mut Config, tenant: Option<&str>) -> Result<Option<String>, OpenError> {
    let found = tenant.map_or_else(|| config.anonymous(), |name| config.tenant_named(name));
    let Some(name) = found.filter(|tenant| !Tenant::has_approvers(tenant)).map(|tenant| tenant.name.clone()) else {
        return Ok(None);
    };
    if !config.asks() {
        return Ok(None);
    }
    let mut bytes = [0; TOKEN];
    getrandom::fill(&mut bytes).map_err(|error| StoreError::Failed(format!("no random bytes: {error}")))?;
    let token = BASE64.encode(bytes);
    config.add_approver(&name, &token);
    Ok(Some(token))
}
