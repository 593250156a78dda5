//! The tools of a run in the first line of its record.

use super::record_error::RecordError;
use crate::tools::naming::{self, names_in};
use crate::tools::signature::Signature;
use crate::tools::tool::{Effect, Tool};
use crate::tools::tool_set::Tools;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The names of tools, with their signatures.
pub(super) type Signatures<'a> = BTreeMap<Cow<'a, str>, Option<Cow<'a, str>>>;

/// The JSON Schemas of a tool.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Schemas<'a> {
    #[serde(borrow)]
    input: &'a RawValue,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    output: Option<&'a RawValue>,
}

/// How calls of a tool are treated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Treatment {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tagged: bool,
    /// The maximum number of calls in a run; 0 is no limit. Older records have it as `most_calls`.
    #[serde(alias = "most_calls")]
    max_calls: u64,
    /// The redacted arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) redacted: Vec<String>,
}

/// The declared effects by tool name. A tool without an entry declared nothing.
pub(super) type Effects<'a> = BTreeMap<Cow<'a, str>, Declared>;

/// The declared effects of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Declared {
    effect: Effect,
    /// Whether a repeated call has no further effect.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    idempotent: bool,
}

impl Treatment {
    fn of(tool: &Tool) -> Self {
        Treatment { tagged: tool.tagged, max_calls: tool.max_calls, redacted: tool.redacted().to_vec() }
    }
}

/// The tools of a run.
#[derive(Default)]
pub(super) struct RecordedTools<'a> {
    pub(super) signatures: Signatures<'a>,
    /// The cached tools; `None` in records of versions that did not store it.
    pub(super) cached: Option<BTreeSet<Cow<'a, str>>>,
    /// The schemas of the tools that the programs name: others cannot be called.
    pub(super) schemas: BTreeMap<Cow<'a, str>, Schemas<'a>>,
    /// The tools with a treatment that is not the default.
    pub(super) treatments: BTreeMap<Cow<'a, str>, Treatment>,
    /// The declared effects; `None` in records of versions that did not store them.
    pub(super) effects: Option<Effects<'a>>,
}

impl<'a> RecordedTools<'a> {
    /// Returns the tools that these programs name: a run cannot call others. If names are equal, the last tool counts.
    pub(super) fn of(all: impl Iterator<Item = &'a Tool>, sources: &[&str]) -> Self {
        let mut all: BTreeMap<&str, &Tool> = all.map(|tool| (&*tool.name, tool)).collect();
        let named = named(sources, |name| all.contains_key(name));
        all.retain(|name, _| named.contains(name));
        let cached = all.values().filter(|tool| tool.cached).map(|tool| Cow::Borrowed(&*tool.name));
        let (cached, effects) = (Some(cached.collect()), Some(Effects::new()));
        let mut tools = RecordedTools { cached, effects, ..RecordedTools::default() };
        for (name, tool) in all {
            let treatment = Treatment::of(tool);
            if treatment != Treatment::default() {
                tools.treatments.insert(name.into(), treatment);
            }
            let declared = Declared { effect: tool.effect, idempotent: tool.idempotent };
            if declared != Declared::default() {
                tools.effects.get_or_insert_default().insert(name.into(), declared);
            }
            tools.signatures.insert(name.into(), tool.signature.as_deref().map(Cow::Borrowed));
            if let Some(contract) = tool.json_contract.as_deref() {
                let (input, output) = contract.texts();
                tools.schemas.insert(name.into(), Schemas { input, output });
            }
        }
        tools
    }

    /// Checks that the tools which the programs name exist and take what they took: those of the run itself first, then
    /// those of the engine. New optional parameters are no difference.
    pub(super) fn check(&self, engine: &Tools, own: Option<&Tools>, sources: &[&str]) -> Result<(), RecordError> {
        let now = |name: &str| own.and_then(|own| own.get(name)).or_else(|| engine.get(name));
        // Older records have the tools that the programs do not name, too.
        let named = named(sources, |name| self.signatures.contains_key(name));
        let used = || self.signatures.iter().filter(|(name, _)| named.contains(&***name));
        let missing: Vec<String> =
            used().filter(|(name, _)| now(name).is_none()).map(|(name, _)| name.to_string()).collect();
        if !missing.is_empty() {
            return Err(RecordError::MissingTools(missing));
        }
        for (name, was) in used() {
            let Some(tool) = now(name) else { continue };
            let differs = |is: String, was: String| Err(RecordError::Tool { name: name.to_string(), is, was });
            let says = |signature: Option<&str>| match signature {
                Some(signature) => format!("has the signature {signature}"),
                None => "has no signature".to_owned(),
            };
            let has_schemas = self.schemas.contains_key(name) && tool.json_contract.is_some();
            if !has_schemas && !extends(tool.signature.as_deref(), was.as_deref()) {
                return differs(says(tool.signature.as_deref()), says(was.as_deref()));
            }
            let was = self.treatments.get(name).cloned().unwrap_or_default();
            if Treatment::of(tool) != was {
                let says = |it: &Treatment| {
                    let Treatment { tagged, max_calls, redacted } = it;
                    format!("has tagged {tagged}, max_calls {max_calls}, redacted {redacted:?}")
                };
                return differs(says(&Treatment::of(tool)), says(&was));
            }
            let Some(cached) = &self.cached else { continue };
            if cached.contains(name) != tool.cached {
                let says = |is: bool| if is { "is cached" } else { "is not cached" }.to_owned();
                return differs(says(tool.cached), says(!tool.cached));
            }
            let is_same = match (self.schemas.get(name), &tool.json_contract) {
                (None, None) => true,
                (None, Some(_)) | (Some(_), None) => false,
                (Some(schemas), Some(contract)) => contract.extends(schemas.input, schemas.output),
            };
            if let (false, Some(schemas), Some(contract)) = (is_same, self.schemas.get(name), &tool.json_contract) {
                let (is, was) = contract.difference(schemas.input, schemas.output);
                return differs(is, was);
            }
            if !is_same {
                let has = |is: bool| if is { "has a JSON Schema of its own" } else { "has no JSON Schema" }.to_owned();
                let was = self.schemas.get(name).map(|schemas| {
                    let output = schemas.output.map_or("any", RawValue::get);
                    format!("has the schemas {} -> {}", shown(schemas.input.get()), shown(output))
                });
                return differs(has(tool.json_contract.is_some()), was.unwrap_or_else(|| has(false)));
            }
        }
        Ok(())
    }

    /// Returns what a tool declared, if the record stores it.
    pub(super) fn declared(&self, tool: &str) -> Option<(Effect, bool)> {
        let Declared { effect, idempotent } = self.effects.as_ref()?.get(tool).copied().unwrap_or_default();
        Some((effect, idempotent))
    }

    /// Returns the tools that the record does not declare as reading: what their started calls did is unknown. Empty if
    /// the record does not store effects.
    pub(super) fn changing(&self) -> BTreeSet<String> {
        let Some(effects) = &self.effects else { return BTreeSet::new() };
        let reads = |name: &str| effects.get(name).is_some_and(|declared| declared.effect == Effect::Read);
        self.signatures.keys().filter(|name| !reads(name)).map(|name| name.to_string()).collect()
    }

    /// Returns the tools as external ones.
    pub(super) fn external(self) -> Result<Vec<Tool>, RecordError> {
        let mut all = Vec::with_capacity(self.signatures.len());
        for (name, signature) in &self.signatures {
            let mut tool = match self.schemas.get(name) {
                Some(Schemas { input, output }) => {
                    Tool::of_schemas(&naming::name(name), input.get(), output.map(RawValue::get))
                        .map_err(|error| RecordError::Line { line: 1, why: format!("tool/{name}: {error}") })?
                }
                None => Tool::external(&**name),
            };
            if let Some(text) = signature {
                // A signature that is not valid was only a text in the original run, too.
                tool = match tool.json_contract {
                    Some(_) => tool.described(text.clone().into_owned()),
                    None => tool.signature(&**text).lenient(),
                };
            }
            tool.name = name.clone().into_owned();
            tool.cached = self.cached.as_ref().is_some_and(|cached| cached.contains(name));
            let declared = self.effects.as_ref().and_then(|effects| effects.get(name)).copied().unwrap_or_default();
            (tool.effect, tool.idempotent) = (declared.effect, declared.idempotent);
            if let Some(Treatment { tagged, max_calls, redacted }) = self.treatments.get(name).cloned() {
                tool.tagged = tagged;
                tool = tool.max_calls(max_calls).redact(redacted);
            }
            all.push(tool);
        }
        Ok(all)
    }
}

/// Returns the tools that programs name, of those that are known: a text may name any number of others.
fn named<'s>(sources: &[&'s str], is_known: impl Fn(&str) -> bool) -> BTreeSet<&'s str> {
    sources.iter().flat_map(|source| names_in(source)).filter(|name| is_known(name)).collect()
}

/// Returns whether a signature takes all that another one took.
fn extends(is: Option<&str>, was: Option<&str>) -> bool {
    let read = |text| Signature::parse(text).ok();
    let optional = || Some(read(is?)?.extends(&read(was?)?));
    is == was || optional().unwrap_or(false)
}

/// Returns the beginning of a schema.
fn shown(schema: &str) -> Cow<'_, str> {
    const MAX: usize = 200;
    match schema.char_indices().nth(MAX) {
        None => Cow::Borrowed(schema),
        Some((end, _)) => Cow::Owned(format!("{}...", &schema[..end])),
    }
}
