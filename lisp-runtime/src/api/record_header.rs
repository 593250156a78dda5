//! The first line of a record: the program, its input and its terms.

use super::input::{Input, Source};
use super::record_error::RECORD_SCHEMA;
use super::recorded_tools::{RecordedTool, RecordedTools, Schemas};
use crate::terms::keys::Keys;
use crate::terms::limits::{Limits, LimitsRequest};
use crate::tools::contract::Treatment;
use lisp_core::cost::COST_SCHEDULE_VERSION;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The first line of a record.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header<'a> {
    pub(super) schema: Cow<'a, str>,
    pub(super) run_id: String,
    /// The version of this crate.
    pub(super) language: Cow<'a, str>,
    pub(super) cost_schedule: u32,
    pub(super) program: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) setup: Vec<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) given: Vec<Given<'a>>,
    /// The digests of data sets, which must be given again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) data_sets: Vec<Cow<'a, str>>,
    pub(super) strict_data: bool,
    pub(super) json_keys: Keys,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) signature: Option<Cow<'a, str>>,
    /// All limits. A limit that an older version did not have keeps its current value.
    pub(super) limits: LimitsRequest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) now_ms: Option<i64>,
    /// The tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) tenant: Option<Cow<'a, str>>,
    /// The tools, with their signatures, JSON Schemas and treatments.
    #[serde(borrow, default)]
    pub(super) contracts: RecordedTools<'a>,
    // Instead of `contracts`, records of earlier versions have a map of signatures, and others.
    #[serde(default, skip_serializing)]
    tools: BTreeMap<Cow<'a, str>, Option<Cow<'a, str>>>,
    #[serde(default, skip_serializing)]
    cached: Option<BTreeSet<Cow<'a, str>>>,
    #[serde(borrow, default, skip_serializing)]
    schemas: BTreeMap<Cow<'a, str>, Schemas<'a>>,
    #[serde(default, skip_serializing)]
    treatments: BTreeMap<Cow<'a, str>, Treatment>,
    #[serde(default, skip_serializing)]
    effects: Option<BTreeMap<Cow<'a, str>, Treatment>>,
}

impl<'a> Header<'a> {
    /// Reads the first line of a record of this version or an earlier one.
    pub(super) fn read(line: &'a str) -> Result<Self, serde_json::Error> {
        let mut header: Header<'a> = serde_json::from_str(line)?;
        let (lacks_cached, lacks_effect) = (header.cached.is_none(), header.effects.is_none());
        let (cached, mut effects) =
            (header.cached.take().unwrap_or_default(), header.effects.take().unwrap_or_default());
        for (name, signature) in std::mem::take(&mut header.tools) {
            let Treatment { effect, idempotent, .. } = effects.remove(&name).unwrap_or_default();
            let others = header.treatments.remove(&name).unwrap_or_default();
            let treatment = Treatment { effect, idempotent, cached: cached.contains(&name), ..others };
            let schemas = header.schemas.remove(&name);
            let tool = RecordedTool { signature, schemas, treatment, lacks_cached, lacks_effect };
            header.contracts.0.insert(name, tool);
        }
        Ok(header)
    }
}

/// A [`Source`] in a record.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Given<'a> {
    Data(Cow<'a, str>, Text<'a>),
    Typed(Cow<'a, str>, Text<'a>),
    Object(Text<'a>),
    Memory(Text<'a>),
    History(Text<'a>),
}

/// JSON as text, or the reason why it could not be written.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Text<'a> {
    Json(Cow<'a, str>),
    Fault(Cow<'a, str>),
}

impl<'a> Given<'a> {
    pub(super) fn of(source: &'a Source<'_>) -> Given<'a> {
        let text = |text: &'a Result<Cow<'_, str>, String>| match text {
            Ok(json) => Text::Json(Cow::Borrowed(json)),
            Err(why) => Text::Fault(Cow::Borrowed(why)),
        };
        match source {
            Source::Data(name, json) => Given::Data(Cow::Borrowed(name), text(json)),
            Source::Typed(name, typed) => Given::Typed(Cow::Borrowed(name), text(typed)),
            Source::DataObject(json) => Given::Object(text(json)),
            Source::Memory(json) => Given::Memory(text(json)),
            Source::History(json) => Given::History(text(json)),
        }
    }

    pub(super) fn source(&self) -> Source<'static> {
        let text = |text: &Text<'_>| match text {
            Text::Json(json) => Ok(Cow::Owned(json.clone().into_owned())),
            Text::Fault(why) => Err(why.clone().into_owned()),
        };
        match self {
            Given::Data(name, json) => Source::Data(Cow::Owned(name.clone().into_owned()), text(json)),
            Given::Typed(name, typed) => Source::Typed(Cow::Owned(name.clone().into_owned()), text(typed)),
            Given::Object(json) => Source::DataObject(text(json)),
            Given::Memory(json) => Source::Memory(text(json)),
            Given::History(json) => Source::History(text(json)),
        }
    }
}

/// Replaces the digest of a data set in a build that cannot compute one. No data set has this digest.
pub(super) const NO_DIGEST: &str = "(none: the record was made without the feature seal of ptc-lisp-runtime)";

/// The terms of a run besides its program and input.
pub(super) struct Terms<'a> {
    pub(super) keys: Keys,
    pub(super) limits: Limits,
    pub(super) tools: RecordedTools<'a>,
}

/// Returns the first line of the record of a run.
pub(super) fn header(run_id: String, source: &str, setup: &[String], input: &Input<'_>, terms: Terms<'_>) -> String {
    let header = Header {
        schema: Cow::Borrowed(RECORD_SCHEMA),
        run_id,
        language: Cow::Borrowed(env!("CARGO_PKG_VERSION")),
        cost_schedule: COST_SCHEDULE_VERSION,
        program: Cow::Borrowed(source),
        setup: setup.iter().map(|source| Cow::Borrowed(&**source)).collect(),
        given: input.sources.iter().map(Given::of).collect(),
        data_sets: input
            .sets
            .iter()
            .map(|set| Cow::Owned(set.digest().unwrap_or_else(|| NO_DIGEST.to_owned())))
            .collect(),
        strict_data: input.strict_data,
        json_keys: terms.keys,
        signature: input.signature.as_deref().map(Cow::Borrowed),
        limits: LimitsRequest::all(&terms.limits),
        now_ms: input.now_ms,
        tenant: input.tenant.as_deref().map(Cow::Borrowed),
        contracts: terms.tools,
        tools: BTreeMap::new(),
        cached: None,
        schemas: BTreeMap::new(),
        treatments: BTreeMap::new(),
        effects: None,
    };
    // Maps with string keys and texts that this crate wrote: this cannot fail.
    let mut line = serde_json::to_string(&header).unwrap_or_default();
    line.push('\n');
    line
}
