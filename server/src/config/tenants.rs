//! Tenants and approvers.

use super::document::Document;
use super::error::ConfigError;
use super::file;
use super::pattern::ToolPattern;
use lisp_runtime::{Amounts, LimitsRequest};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use subtle::{Choice, ConstantTimeEq};

/// The maximum number of tenants.
const TENANTS: usize = 10_000;
/// The maximum number of tokens of a tenant.
const TOKENS: usize = 100;
/// The maximum number of patterns of a tenant.
const PATTERNS: usize = 1_000;

/// A tenant: an entry of `[[tenants]]`, with its tokens and limits.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Tenant {
    /// The name used in runs, metrics and logs.
    pub name: String,
    /// The maximum number of its runs in progress at once; `None` uses that of the service.
    pub concurrency: Option<usize>,
    /// The maximum number of its runs that wait for a slot; `None` uses that of the service.
    pub queue: Option<usize>,
    /// The maximum number of its requests in progress at once; `None` is half of the service's `max_connections`.
    pub max_requests: Option<usize>,
    /// The rate at which it may start runs, per second; `None` is unlimited.
    pub runs_per_second: Option<f64>,
    /// How many runs it may start at once within that rate; at least 1.
    pub burst: u32,
    /// The highest limits that its requests may ask for; overrides `[ceiling]`.
    pub ceiling: LimitsRequest,
    /// The tools that exist for its programs; `None` is all.
    pub tools: Option<Vec<ToolPattern>>,
    /// Whether its runs share processes: see [`lisp_sandbox::Domain`].
    pub domain: bool,
    /// What its runs may use together.
    pub budget: Option<TenantBudget>,
    /// SHA-256 of its tokens.
    tokens: Vec<[u8; 32]>,
    /// SHA-256 of its approvers' tokens.
    approvers: Vec<[u8; 32]>,
}

/// What the runs of a tenant may use together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TenantBudget {
    /// The amounts.
    pub amounts: Amounts,
    /// The interval after which the full amounts are available again; `None` is never.
    pub refill_seconds: Option<u64>,
}

impl Tenant {
    /// The user of a service without tenants.
    pub(super) fn anonymous() -> Self {
        Tenant {
            name: "anonymous".to_owned(),
            concurrency: None,
            queue: None,
            max_requests: None,
            runs_per_second: None,
            burst: 1,
            ceiling: LimitsRequest::default(),
            tools: None,
            domain: false,
            budget: None,
            tokens: Vec::new(),
            approvers: Vec::new(),
        }
    }

    /// Returns whether the tenant has approvers. If so, only a request with an approver's token may approve or reject a
    /// call.
    pub fn has_approvers(&self) -> bool {
        !self.approvers.is_empty()
    }

    /// Adds an approver's token.
    pub(super) fn add_approver(&mut self, token: &str) {
        self.approvers.push(Sha256::digest(token.as_bytes()).into());
    }

    /// Reads the approvers of a service without tenants.
    pub(super) fn read_approvers(&mut self, file: &file::File, document: &Document<'_>) -> Result<(), ConfigError> {
        let (one, more) = (&file.approver_token_sha256, &file.approver_tokens_sha256);
        self.approvers = digests(one.as_ref(), more, &[], APPROVER_FIELDS, document)?;
        match self.has_approvers() && !file.tenants.is_empty() {
            true => {
                let field = if one.is_some() { APPROVER_FIELDS[0] } else { APPROVER_FIELDS[1] };
                let message = "it is for a service without tenants, and there are some";
                Err(document.error(
                    &[field],
                    message,
                    "move it into the [[tenants]] whose runs the approver decides on",
                ))
            }
            false => Ok(()),
        }
    }

    /// Returns whether the tool exists for this tenant.
    pub fn sees(&self, tool: &str) -> bool {
        self.tools.as_ref().is_none_or(|patterns| patterns.iter().any(|pattern| pattern.fits(tool)))
    }

    fn read(file: &file::Tenant, index: &str, document: &Document<'_>) -> Result<Self, ConfigError> {
        let path = |field| ["tenants", index, field];
        let is_name = |name: &str| {
            (1..=64).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        };
        if !is_name(&file.name) || file.name == "anonymous" {
            let next = "write 1 to 64 letters, digits, -, _ and ., other than anonymous";
            return Err(document.error(
                &path("name"),
                format!("{:?} is not a valid name of a tenant", file.name),
                next,
            ));
        }
        let rate = file.runs_per_second;
        if rate.is_some_and(|rate| !(0.001..=1_000_000.0).contains(&rate)) {
            let message = "it must be 0.001 to 1000000";
            return Err(document.error(&path("runs_per_second"), message, "write a number within this range"));
        }
        if file.burst.is_some() && rate.is_none() {
            let message = "it needs runs_per_second";
            return Err(document.error(&path("burst"), message, "add runs_per_second, or remove burst"));
        }
        let count = |field, given: Option<u64>, least, max| {
            given.map(|given| document.count(&path(field), given, least..=max)).transpose()
        };
        // The default burst is one second's worth of runs.
        let usual = rate.map_or(1, |rate| (1..=1_000_000).find(|n| f64::from(*n) >= rate).unwrap_or(1_000_000));
        let burst = match file.burst {
            Some(given) => u32::try_from(document.within(&path("burst"), given, 1..=1_000_000)?).unwrap_or(u32::MAX),
            None => usual,
        };
        Ok(Tenant {
            name: file.name.clone(),
            concurrency: count("concurrency", file.concurrency, 1, 100_000)?,
            queue: count("queue", file.queue, 0, 1_000_000)?,
            max_requests: count("max_requests", file.max_requests, 1, 1_000_000)?,
            runs_per_second: rate,
            burst,
            ceiling: file.ceiling,
            tools: file.tools.as_deref().map(|tools| patterns(tools, index, document)).transpose()?,
            domain: file.domain,
            budget: file.budget.as_ref().map(|budget| TenantBudget::read(budget, index, document)).transpose()?,
            tokens: tokens(file, index, document)?,
            approvers: digests(
                file.approver_token_sha256.as_ref(),
                &file.approver_tokens_sha256,
                &["tenants", index],
                APPROVER_FIELDS,
                document,
            )?,
        })
    }
}

impl TenantBudget {
    fn read(file: &file::Budget, index: &str, document: &Document<'_>) -> Result<Self, ConfigError> {
        let mut amounts = Amounts::new();
        (amounts.runs, amounts.fuel, amounts.calls, amounts.bytes) = (file.runs, file.fuel, file.calls, file.bytes);
        if amounts == Amounts::new() {
            let next = "write at least one of runs, fuel, calls, bytes";
            return Err(document.error(&["tenants", index, "budget"], "it counts nothing", next));
        }
        let path = ["tenants", index, "budget", "refill_seconds"];
        let refill = file.refill_seconds.map(|given| document.within(&path, given, 1..=31_622_400)).transpose()?;
        Ok(TenantBudget { amounts, refill_seconds: refill })
    }
}

fn patterns(given: &[String], index: &str, document: &Document<'_>) -> Result<Vec<ToolPattern>, ConfigError> {
    let path = ["tenants", index, "tools"];
    if given.len() > PATTERNS {
        let message = format!("there are {}; the maximum is {PATTERNS}", given.len());
        return Err(document.error(&path, message, "write the beginnings of names with *"));
    }
    let read = |text: &String| {
        ToolPattern::parse(text).ok_or_else(|| {
            let message = format!("{text:?} is not a tool name or prefix");
            document.error(&path, message, "write a name, or a prefix with one * at the end")
        })
    };
    given.iter().map(read).collect()
}

/// The fields with approvers' tokens.
const APPROVER_FIELDS: [&str; 2] = ["approver_token_sha256", "approver_tokens_sha256"];
/// The next step for an invalid token field.
const TOKEN_NEXT: &str =
    "write the 64 hex digits that `printf %s \"$TOKEN\" | sha256sum` prints, without the ` -` after them";

fn tokens(file: &file::Tenant, index: &str, document: &Document<'_>) -> Result<Vec<[u8; 32]>, ConfigError> {
    let fields = ["token_sha256", "tokens_sha256"];
    let tokens = digests(file.token_sha256.as_ref(), &file.tokens_sha256, &["tenants", index], fields, document)?;
    match tokens.is_empty() {
        true => Err(document.error(
            &["tenants", index, "name"],
            "the tenant has no token",
            format!("add token_sha256: {TOKEN_NEXT}"),
        )),
        false => Ok(tokens),
    }
}

/// Reads token digests from a field with one and a field with several.
fn digests(
    one: Option<&String>,
    more: &[String],
    table: &[&str],
    [field_of_one, field_of_more]: [&'static str; 2],
    document: &Document<'_>,
) -> Result<Vec<[u8; 32]>, ConfigError> {
    let path = |field| [table, &[field]].concat();
    let given = one.map(|text| (field_of_one, text)).into_iter().chain(more.iter().map(|text| (field_of_more, text)));
    let read = |(field, text): (&'static str, &String)| {
        digest_of(text).ok_or_else(|| document.error(&path(field), "it is not a SHA-256 in hex digits", TOKEN_NEXT))
    };
    let tokens = given.map(read).collect::<Result<Vec<_>, _>>()?;
    if tokens.len() > TOKENS {
        let message = format!("there are {} tokens; the maximum is {TOKENS}", tokens.len());
        return Err(document.error(&path(field_of_more), message, "remove old ones"));
    }
    Ok(tokens)
}

fn digest_of(text: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, pair) in digest.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(digest)
}

/// Reads all tenants.
pub(super) fn read(files: &[file::Tenant], document: &Document<'_>) -> Result<Vec<Tenant>, ConfigError> {
    if files.len() > TENANTS {
        let message = format!("there are {}; the maximum is {TENANTS}", files.len());
        return Err(document.error(&["tenants"], message, "run a second service for the others"));
    }
    let (mut names, mut tokens) = (BTreeSet::new(), BTreeSet::new());
    let mut tenants = Vec::with_capacity(files.len());
    for (index, file) in files.iter().enumerate() {
        let index = index.to_string();
        let tenant = Tenant::read(file, &index, document)?;
        if !names.insert(tenant.name.clone()) {
            let message = format!("there is a tenant {:?} already", tenant.name);
            return Err(document.error(&["tenants", &index, "name"], message, "write another name"));
        }
        if !tenant.tokens.iter().chain(&tenant.approvers).all(|token| tokens.insert(*token)) {
            let field = if file.token_sha256.is_some() { "token_sha256" } else { "tokens_sha256" };
            let message = "one of its tokens is already in use";
            return Err(document.error(
                &["tenants", &index, field],
                message,
                "give each tenant, and its approvers, tokens of their own",
            ));
        }
        tenants.push(tenant);
    }
    Ok(tenants)
}

/// Returns the tenant that has this token. Compares with all tokens of all tenants, in the same time whichever matches.
pub(super) fn find<'a>(tenants: impl IntoIterator<Item = &'a Tenant>, token: &str) -> Option<&'a Tenant> {
    find_by(tenants, token, |tenant| &tenant.tokens)
}

/// Returns the tenant whose approver has this token, in the same time as [`find`].
pub(super) fn find_approver<'a>(tenants: impl IntoIterator<Item = &'a Tenant>, token: &str) -> Option<&'a Tenant> {
    find_by(tenants, token, |tenant| &tenant.approvers)
}

fn find_by<'a>(
    tenants: impl IntoIterator<Item = &'a Tenant>,
    token: &str,
    tokens_of: impl Fn(&'a Tenant) -> &'a [[u8; 32]],
) -> Option<&'a Tenant> {
    let digest = Sha256::digest(token.as_bytes());
    let mut found = None;
    for tenant in tenants {
        let mut fits = Choice::from(0);
        for known in tokens_of(tenant) {
            fits |= known.as_slice().ct_eq(digest.as_slice());
        }
        if bool::from(fits) {
            found = Some(tenant);
        }
    }
    found
}
