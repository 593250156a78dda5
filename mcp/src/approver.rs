//! Creates an approver for a server that was started without one.

use crate::handler::OpenError;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use lisp_server::config::{Config, Tenant};
use lisp_server::store::StoreError;

/// The length of a token in bytes.
const TOKEN: usize = 24;

/// Adds an approver to a tenant and returns the token. Without tenants, it is added to the only user. Returns `None` if
/// no tool needs approvals, if the tenant already has approvers, or if there are several tenants and none is named.
///
/// # Errors
/// If the system provides no random bytes.
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
